/*
 * mem/heap.c - memory for elements of variable length: blocks that live as long as their
 * heap, one for each chunk that is read. Blocks lie side by side in slabs. A new slab is
 * as large as all blocks before it, so a heap has about twice the memory that was asked
 * for, but slabs for several blocks together stay within the heap's limit. Large heaps
 * are on huge pages. A block that is as large as a slab would be is alone in its memory.
 *
 * There is no lock, which a forked child could inherit locked. Blocks are cut from the
 * current slab. If several threads make the next one at the same moment, the first puts
 * its slab there. The others free theirs, of which they touched no more than the header,
 * and try again. All slabs are freed together.
 * Thread class: shared; clearing is solo.
 */
#include "mem/mem_int.h"

#define HEAP_ALIGN     ((size_t)16)         /* as malloc's */
#define HEAP_SLAB_MOST ((uint64_t)32 << 20) /* of a slab for several blocks */

struct zr_heap_slab {
    struct zr_heap_slab *next;
    size_t bytes; /* behind this header */
    atomic_size_t used;
    bool from_pages;
};
#define HEAP_HEADER                                                                      \
    ((sizeof(struct zr_heap_slab) + HEAP_ALIGN - 1) / HEAP_ALIGN * HEAP_ALIGN)

void zr_heap_init(struct zr_heap *h, uint64_t most, const zarr_allocator *alloc)
{
    atomic_init(&h->current, NULL);
    atomic_init(&h->slabs, NULL);
    atomic_init(&h->bytes, 0);
    atomic_init(&h->held, 0);
    h->most = most;
    h->alloc = alloc;
}

static void slab_free(const struct zr_heap *h, struct zr_heap_slab *s)
{
    if (s->from_pages)
        zr_pages_free(s, s->bytes + HEAP_HEADER);
    else
        zr_free(h->alloc, s);
}

void zr_heap_clear(struct zr_heap *h)
{
    struct zr_heap_slab *s = atomic_exchange(&h->slabs, NULL);

    atomic_store(&h->current, NULL);
    while (s) {
        struct zr_heap_slab *next = s->next;

        slab_free(h, s);
        s = next;
    }
    atomic_store(&h->bytes, 0);
    atomic_store(&h->held, 0);
}

uint64_t zr_heap_bytes(const struct zr_heap *h)
{
    return atomic_load_explicit(&((struct zr_heap *)(uintptr_t)h)->bytes,
                                memory_order_relaxed);
}

/* Cuts a block from a slab; NULL if it has no room. */
static void *slab_cut(struct zr_heap_slab *s, size_t bytes)
{
    size_t used = atomic_load_explicit(&s->used, memory_order_relaxed);

    do {
        if (bytes > s->bytes - used)
            return NULL;
    } while (!atomic_compare_exchange_weak_explicit(
        &s->used, &used, used + bytes, memory_order_relaxed, memory_order_relaxed));
    return (uint8_t *)s + HEAP_HEADER + used;
}

/* The size of a slab with its header. Large ones have whole huge pages: fewer than were
 * asked for, so that no page is beyond the limit, but enough for the first block. */
static bool slab_size(uint64_t room, size_t first, bool *from_pages, size_t *size)
{
    const size_t huge = (size_t)ZR_HOST_HUGE_BYTES;
    size_t least = 0, whole = 0;

    if (!zr_fits(room, size) || !zr_add(*size, HEAP_HEADER + huge - 1, size))
        return false;
    *size -= huge - 1;
    least = first + HEAP_HEADER;
    *from_pages = *from_pages && *size >= ZR_HOST_LARGE_BYTES;
    if (!*from_pages)
        return true;
    whole = *size / huge * huge;
    *size = whole >= least ? whole : (least + huge - 1) / huge * huge;
    return true;
}

/* Makes a slab that has `room` bytes, and cuts its first block of `first`. NULL: there is
 * no memory. */
static struct zr_heap_slab *slab_make(const struct zr_heap *h, uint64_t room,
                                      size_t first)
{
    struct zr_heap_slab *s = NULL;
    bool from_pages = !h->alloc;
    size_t size = 0;

    if (!slab_size(room, first, &from_pages, &size))
        return NULL;
    s = from_pages ? zr_pages_alloc(size) : zr_malloc(h->alloc, size);
    if (!s)
        return NULL;
    if (!from_pages)
        zr_pages_advise(s, size);
    s->bytes = size - HEAP_HEADER;
    s->from_pages = from_pages;
    atomic_init(&s->used, first);
    return s;
}

/* How much a new slab has: a block alone, if no more would be left than `cur` still has.
 * all: of the heap's blocks. It is counted at once, so that slabs that threads make at
 * the same moment stay within the limit together. */
static uint64_t room_take(struct zr_heap *h, struct zr_heap_slab *cur, size_t first,
                          uint64_t all)
{
    const size_t used = cur ? atomic_load_explicit(&cur->used, memory_order_relaxed) : 0;
    const uint64_t rest = cur ? cur->bytes - used : 0;
    uint64_t held = atomic_load_explicit(&h->held, memory_order_relaxed), room, left;

    do {
        left = h->most - ZR_MIN(held, h->most);
        room = ZR_MAX((uint64_t)first, ZR_MIN(ZR_MIN(all, HEAP_SLAB_MOST), left));
        if (room - first <= rest)
            room = first;
    } while (!atomic_compare_exchange_weak_explicit(
        &h->held, &held, held + room, memory_order_relaxed, memory_order_relaxed));
    return room;
}

static void room_give(struct zr_heap *h, uint64_t room)
{
    atomic_fetch_sub_explicit(&h->held, room, memory_order_relaxed);
}

/* Takes a new slab in place of `cur`, or a block alone if there is no room or memory for
 * more. NULL: there is none, or *again: another thread has just made one. */
static void *slab_add(struct zr_heap *h, struct zr_heap_slab *cur, size_t first,
                      uint64_t all, bool *again)
{
    uint64_t room = room_take(h, cur, first, all);
    struct zr_heap_slab *s = slab_make(h, room, first);

    *again = false;
    if (!s && room > first && atomic_load(&h->current) == cur) {
        room_give(h, room - first);
        room = first;
        s = slab_make(h, room, first);
    }
    *again = s && room > first ? !atomic_compare_exchange_strong(&h->current, &cur, s)
                               : !s && atomic_load(&h->current) != cur;
    if (!s || *again) {
        room_give(h, room);
        if (s)
            slab_free(h, s);
        return NULL;
    }
    s->next = atomic_load_explicit(&h->slabs, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(
        &h->slabs, &s->next, s, memory_order_release, memory_order_relaxed))
        ;
    return (uint8_t *)s + HEAP_HEADER;
}

/* Counts a block's bytes. *all: of all blocks, with it. */
static zarr_status heap_count(struct zr_heap *h, uint64_t bytes, uint64_t *all,
                              zarr_error *err)
{
    uint64_t before = atomic_load_explicit(&h->bytes, memory_order_relaxed);

    do {
        if (!zr_add(before, bytes, all) || *all > h->most)
            return zr_fail(err, ZARR_ERR_LIMIT,
                           "the heap has %" PRIu64 " bytes and gets %" PRIu64
                           " more, its limit is %" PRIu64,
                           before, bytes, h->most);
    } while (!atomic_compare_exchange_weak(&h->bytes, &before, *all));
    return ZARR_OK;
}

zarr_status zr_heap_alloc(struct zr_heap *h, uint64_t bytes, void **out, zarr_error *err)
{
    struct zr_heap_slab *cur = NULL;
    uint64_t all = 0;
    size_t size = 0;
    bool again = false;
    zarr_status st = ZARR_OK;

    *out = NULL;
    ZR_TRY(heap_count(h, bytes, &all, err));
    again = zr_fits(bytes, &size) && zr_add(size, HEAP_ALIGN - 1, &size);
    size = size / HEAP_ALIGN * HEAP_ALIGN;
    while (again) {
        cur = atomic_load_explicit(&h->current, memory_order_acquire);
        *out = cur ? slab_cut(cur, size) : NULL;
        if (*out)
            goto out;
        *out = slab_add(h, cur, size, all, &again);
    }
    if (!*out) {
        atomic_fetch_sub(&h->bytes, bytes);
        st = zr_fail_memory(err, bytes);
    }
out:
    return st;
}
