/*
 * ctx/heap.c - zarr_heap: a heap of the room mem, and the context that made it. The heap
 * uses the context's allocator and keeps the context alive.
 * Thread class: shared; clear and free are solo.
 */
#include "ctx/ctx.h"

#include <zarrc/vlen.h>

zarr_status zarr_heap_create(zarr_heap **out, zarr_context *ctx, uint64_t max_bytes,
                             zarr_error *err)
{
    *out = NULL;
    ZR_NEED(ctx, err);
    zarr_heap *h = zr_calloc(ctx->alloc, 1, sizeof *h);

    if (!h)
        return zr_fail_memory(err, sizeof *h);
    zr_heap_init(&h->heap, max_bytes ? max_bytes : ctx->budget.total, ctx->alloc);
    h->ctx = zarr_context_ref(ctx);
    *out = h;
    return ZARR_OK;
}

void zarr_heap_clear(zarr_heap *heap)
{
    if (!heap)
        return;
    zr_heap_clear(&heap->heap);
}

void zarr_heap_free(zarr_heap *heap)
{
    zarr_context *ctx = heap ? heap->ctx : NULL;

    if (!heap)
        return;
    zr_heap_clear(&heap->heap);
    zr_free(ctx->alloc, heap);
    zarr_context_free(ctx);
}

uint64_t zarr_heap_bytes(const zarr_heap *heap)
{
    return heap ? zr_heap_bytes(&heap->heap) : 0;
}
