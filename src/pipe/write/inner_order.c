/*
 * pipe/write/inner_order.c - the order of inner chunks in the value of a shard.
 * shard_write.c appends them in C order, because it gets them so from the projector; here
 * they are moved to the order that the caller wants. That costs a copy of the encoded
 * bytes. Thread class: on the worker context.
 */
#include "pipe/write/write_int.h"

#include <stdlib.h>
#include <string.h>

struct ordered {
    const struct zr_level *lv;
    uint64_t id;
};

static void split_inner_id(const struct zr_level *lv, uint64_t id, uint64_t *at)
{
    for (int32_t d = lv->ndim - 1; d >= 0; d--) {
        at[d] = id % lv->n_inner[d];
        id /= lv->n_inner[d];
    }
}

/* Whether the highest bit of a is below that of b. */
static bool less_bit(uint64_t a, uint64_t b)
{
    return a < b && a < (a ^ b);
}

/* The Z-order curve: bits of all coordinates are interleaved, that of dimension 0
 * lowest. The highest bit that differs decides. */
static int by_morton(const void *x, const void *y)
{
    const struct ordered *p = x, *q = y;
    uint64_t a[ZARR_MAX_RANK], b[ZARR_MAX_RANK], most = 0;
    int32_t dim = 0;

    split_inner_id(p->lv, p->id, a);
    split_inner_id(p->lv, q->id, b);
    for (int32_t d = 0; d < p->lv->ndim; d++)
        if (!less_bit(a[d] ^ b[d], most)) {
            most = a[d] ^ b[d];
            dim = d;
        }
    return p->lv->ndim == 0 || a[dim] == b[dim] ? 0 : a[dim] < b[dim] ? -1 : 1;
}

static int by_column(const void *x, const void *y)
{
    const struct ordered *p = x, *q = y;
    uint64_t a[ZARR_MAX_RANK], b[ZARR_MAX_RANK];

    split_inner_id(p->lv, p->id, a);
    split_inner_id(p->lv, q->id, b);
    for (int32_t d = p->lv->ndim - 1; d >= 0; d--)
        if (a[d] != b[d])
            return a[d] < b[d] ? -1 : 1;
    return 0;
}

/* Copies the chunks one after the other, and changes their places in the index. */
static zarr_status copy_chunks(const struct zr_work *w, const struct ordered *order,
                               uint64_t n, uint64_t *pairs, const zarr_memory *from,
                               const zarr_memory *to, zarr_error *err)
{
    const struct zr_shard_spec *spec = order->lv->shard;
    uint64_t pos = spec->index_at_end ? 0 : order->lv->index_bytes;

    for (uint64_t i = 0; i < n; i++) {
        uint64_t *pair = &pairs[2 * order[i].id];
        zarr_memory src, dst;

        if (pair[0] == ZR_INDEX_MISSING)
            continue;
        if (!zr_mem_slice(from, pair[0], pair[1], &src) ||
            !zr_mem_slice(to, pos, pair[1], &dst))
            return zr_internal(err);
        ZR_CHECK(zr_mem_copy_bytes(w->io->engine->memory, &dst, &src, pair[1],
                                   &w->worker->copies, err));
        pair[0] = pos;
        pos += pair[1];
    }
    return ZARR_OK;
}

zarr_status zr_shard_reorder(const struct zr_work *w, const struct zr_level *lv,
                             uint64_t *pairs, zarr_memory *block, uint64_t used,
                             zarr_error *err)
{
    const bool morton = w->io->inner_order == ZARR_INNER_ORDER_MORTON;
    const zarr_allocator *alloc = w->io->engine->alloc;
    const size_t n = (size_t)lv->n_inner_all;
    struct ordered *order = zr_calloc(alloc, n, sizeof *order);
    zarr_memory room = {0};
    zarr_status st = ZARR_OK;

    if (!order)
        return zr_fail_memory(err, n * sizeof *order);
    for (size_t i = 0; i < n; i++)
        order[i] = (struct ordered){.lv = lv, .id = i};
    qsort(order, n, sizeof *order, morton ? by_morton : by_column);
    ZR_TRY(zr_pool_take(w->io->engine->pool, ZARR_DEVICE_CPU, 0,
                        ZR_MAX(used, block->bytes), &room, err));
    ZR_TRY(copy_chunks(w, order, n, pairs, block, &room, err));
    zr_pool_give(w->io->engine->pool, block);
    *block = room;
    room = (zarr_memory){0};
out:
    zr_pool_give(w->io->engine->pool, &room);
    zr_free(alloc, order);
    return st;
}
