/*
 * mem/heap.c - memory for elements of variable length: blocks that live as long as their
 * heap, one for each chunk that is read. A block is pushed on a list without a lock. All
 * blocks are freed together.
 * Thread class: shared; clearing is solo.
 */
#include "mem/mem.h"

struct zr_heap_block {
    struct zr_heap_block *next;
    uint64_t bytes; /* 16 bytes before the data, which keeps malloc's alignment */
};

void zr_heap_init(struct zr_heap *h, uint64_t most, const zarr_allocator *alloc)
{
    atomic_init(&h->first, NULL);
    atomic_init(&h->bytes, 0);
    h->most = most;
    h->alloc = alloc;
}

void zr_heap_clear(struct zr_heap *h)
{
    struct zr_heap_block *b = atomic_exchange(&h->first, NULL);

    while (b) {
        struct zr_heap_block *next = b->next;

        zr_free(h->alloc, b);
        b = next;
    }
    atomic_store(&h->bytes, 0);
}

uint64_t zr_heap_bytes(const struct zr_heap *h)
{
    return atomic_load_explicit(&((struct zr_heap *)(uintptr_t)h)->bytes,
                                memory_order_relaxed);
}

zarr_status zr_heap_alloc(struct zr_heap *h, uint64_t bytes, void **out, zarr_error *err)
{
    struct zr_heap_block *b = NULL, *first = NULL;
    uint64_t all = 0, before = atomic_load_explicit(&h->bytes, memory_order_relaxed);
    size_t size = 0;

    *out = NULL;
    do {
        if (!zr_add_u64(before, bytes, &all) || all > h->most)
            return zr_fail(err, ZARR_ERR_LIMIT,
                           "the heap has %" PRIu64 " bytes and gets %" PRIu64
                           " more, its limit is %" PRIu64,
                           before, bytes, h->most);
    } while (!atomic_compare_exchange_weak(&h->bytes, &before, all));
    if (zr_to_size(bytes, &size) && zr_add_size(size, sizeof *b, &size))
        b = zr_malloc(h->alloc, size);
    if (!b) {
        atomic_fetch_sub(&h->bytes, bytes);
        return zr_fail_memory(err, bytes);
    }
    b->bytes = bytes;
    first = atomic_load_explicit(&h->first, memory_order_relaxed);
    do {
        b->next = first;
    } while (!atomic_compare_exchange_weak(&h->first, &first, b));
    *out = b + 1;
    return ZARR_OK;
}
