/*
 * mem/heap.c - memory for elements of variable length: blocks that live as long as their
 * heap, one for each chunk that is read. Blocks lie side by side in slabs. A new slab is
 * as large as all blocks before it, so a heap has about twice the memory that was asked
 * for, and a slab more for each thread that makes one at the same moment. Large heaps are
 * on huge pages. A block is cut from the newest slab, and a slab pushed on a list,
 * without a lock. All slabs are freed together.
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
    atomic_init(&h->newest, NULL);
    atomic_init(&h->bytes, 0);
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
    struct zr_heap_slab *s = atomic_exchange(&h->newest, NULL);

    while (s) {
        struct zr_heap_slab *next = s->next;

        slab_free(h, s);
        s = next;
    }
    atomic_store(&h->bytes, 0);
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

/* Makes a slab whose first block has `bytes`. all: of the heap's blocks. NULL: there is
 * no memory. */
static struct zr_heap_slab *slab_make(const struct zr_heap *h, size_t bytes, uint64_t all)
{
    const uint64_t room = ZR_MAX((uint64_t)bytes, ZR_MIN(all, HEAP_SLAB_MOST));
    struct zr_heap_slab *s = NULL;
    bool from_pages = false;
    size_t size = 0;

    if (!zr_to_size(room, &size) ||
        !zr_add_size(size, HEAP_HEADER + (size_t)ZR_HOST_HUGE_BYTES - 1, &size))
        return NULL;
    size -= (size_t)ZR_HOST_HUGE_BYTES - 1;
    from_pages = !h->alloc && size >= ZR_HOST_LARGE_BYTES;
    if (from_pages) /* the system gives whole pages */
        size = (size + (size_t)ZR_HOST_HUGE_BYTES - 1) / (size_t)ZR_HOST_HUGE_BYTES *
               (size_t)ZR_HOST_HUGE_BYTES;
    s = from_pages ? zr_pages_alloc(size) : zr_malloc(h->alloc, size);
    if (!s)
        return NULL;
    if (!from_pages)
        zr_pages_advise(s, size);
    s->bytes = size - HEAP_HEADER;
    s->from_pages = from_pages;
    atomic_init(&s->used, bytes);
    return s;
}

/* Counts a block's bytes. *all: of all blocks, with it. */
static zarr_status heap_count(struct zr_heap *h, uint64_t bytes, uint64_t *all,
                              zarr_error *err)
{
    uint64_t before = atomic_load_explicit(&h->bytes, memory_order_relaxed);

    do {
        if (!zr_add_u64(before, bytes, all) || *all > h->most)
            return zr_fail(err, ZARR_ERR_LIMIT,
                           "the heap has %" PRIu64 " bytes and gets %" PRIu64
                           " more, its limit is %" PRIu64,
                           before, bytes, h->most);
    } while (!atomic_compare_exchange_weak(&h->bytes, &before, *all));
    return ZARR_OK;
}

zarr_status zr_heap_alloc(struct zr_heap *h, uint64_t bytes, void **out, zarr_error *err)
{
    struct zr_heap_slab *newest = NULL, *s = NULL;
    uint64_t all = 0;
    size_t size = 0;
    bool fits = false;
    zarr_status st = ZARR_OK;

    *out = NULL;
    ZR_TRY(heap_count(h, bytes, &all, err));
    fits = zr_to_size(bytes, &size) && zr_add_size(size, HEAP_ALIGN - 1, &size);
    size = size / HEAP_ALIGN * HEAP_ALIGN;
    newest = atomic_load_explicit(&h->newest, memory_order_acquire);
    if (fits && newest)
        *out = slab_cut(newest, size);
    if (*out)
        goto out;
    s = fits ? slab_make(h, size, all) : NULL;
    if (!s) {
        atomic_fetch_sub(&h->bytes, bytes);
        return zr_fail_memory(err, bytes);
    }
    *out = (uint8_t *)s + HEAP_HEADER;
    s->next = newest;
    while (!atomic_compare_exchange_weak_explicit(
        &h->newest, &s->next, s, memory_order_release, memory_order_relaxed))
        ;
out:
    return st;
}
