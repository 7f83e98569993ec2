/*
 * tree/reencode_box.c - cuts an array into boxes for re-encoding. Two grids meet: chunks
 * of the source, each of which should be decoded once, and blocks of the
 * destination (the units), each of which must be written once and whole, because
 * an object that exists counts as finished. So a box is made of whole units. If memory
 * allows, it is widened to whole chunks of the source (the least common multiple, or the
 * next multiple of the unit), then to whole rows. If units differ in shape, the steps are
 * at least as long as the largest unit, and a box has as many units as fit into them.
 * Thread class: plain functions.
 */
#include "array/array.h"
#include "tree/reencode_int.h"

#include <string.h>

enum {
    PART_BUFFER = 64 << 20 /* larger ones gain nothing */
};

/* A common multiple of two lengths, neither of which is 0. */
static uint64_t common_multiple(uint64_t a, uint64_t b)
{
    uint64_t x = a, y = b;

    while (y) {
        const uint64_t rest = x % y;

        x = y;
        y = rest;
    }
    return x ? zr_mul_cap(a / x, b) : 0;
}

/* Bytes of a box if step[d] were n. */
static uint64_t bytes_with(const struct zr_box_walk *b, int32_t d, uint64_t n,
                           uint64_t item_bytes)
{
    uint64_t bytes = zr_mul_cap(n, item_bytes);

    for (int32_t i = 0; i < b->ndim; i++)
        if (i != d)
            bytes = zr_mul_cap(bytes, b->step[i]);
    return bytes;
}

static void try_step(struct zr_reencode_shape *s, int32_t d, uint64_t n, uint64_t limit)
{
    n = ZR_MIN(n, s->boxes.shape[d]);
    if (n > s->boxes.step[d] && bytes_with(&s->boxes, d, n, s->item_bytes) <= limit)
        s->boxes.step[d] = n;
}

/* Widens to whole chunks of the source, first in the dimension that gains most. */
static void align_to_source(struct zr_reencode_shape *s, const uint64_t *chunk,
                            uint64_t limit)
{
    bool tried[ZARR_MAX_RANK] = {false};

    for (int32_t i = 0; i < s->boxes.ndim; i++) {
        int32_t best = -1;

        for (int32_t d = s->boxes.ndim - 1; d >= 0; d--)
            if (!tried[d] && (best < 0 || chunk[d] / s->boxes.step[d] >
                                              chunk[best] / s->boxes.step[best]))
                best = d;
        tried[best] = true;
        if (chunk[best] > s->unit[best])
            try_step(
                s, best,
                zr_mul_cap(zr_ceil_div_u64(chunk[best], s->unit[best]), s->unit[best]),
                limit);
        try_step(s, best, common_multiple(chunk[best], s->unit[best]), limit);
    }
}

/* Widens to longer rows: fewer boxes, each with more parallel work. */
static void widen(struct zr_reencode_shape *s, uint64_t limit)
{
    for (int32_t d = s->boxes.ndim - 1; d >= 0; d--) {
        const uint64_t step = s->boxes.step[d];
        const uint64_t bytes = bytes_with(&s->boxes, d, step, s->item_bytes);

        if (bytes && limit / bytes > 1)
            s->boxes.step[d] = ZR_MIN(zr_mul_cap(step, limit / bytes), s->boxes.shape[d]);
        if (s->boxes.step[d] < s->boxes.shape[d])
            break;
    }
}

/* For units that are larger than the buffers. */
static zarr_status fit_parts(struct zr_reencode *r, const struct zr_reencode_pair *pair,
                             struct zr_reencode_shape *s, uint64_t limit, zarr_error *err)
{
    const uint64_t *chunk = zarr_array_chunk_shape(pair->dst);
    const uint64_t part = s->boxes.grid ? 0 : zr_array_part_bytes(pair->dst);

    if (part == 0 || part > limit || !chunk) {
        const zarr_tuning tuning = {.struct_size = sizeof tuning, .memory_bytes = limit};
        const zarr_io_options o = {.struct_size = sizeof o, .tuning = &tuning};
        const zarr_status st =
            zr_array_memory_check(pair->dst, ZARR_DEVICE_CPU, &o, true, NULL, err);

        r->result.unit_bytes = part ? part : s->unit_bytes;
        return st != ZARR_OK
                   ? st
                   : zr_fail_limit(err, "memory_bytes", limit,
                                   "one block needs %" PRIu64 " bytes of memory",
                                   r->result.unit_bytes);
    }
    s->in_parts = true;
    s->n_buffers = 1;
    s->buffer_bytes = ZR_MAX(part, ZR_MIN(limit, (uint64_t)PART_BUFFER));
    for (int32_t d = 0; r->comparing && d < s->boxes.ndim; d++)
        s->boxes.step[d] = ZR_MIN(chunk[d], s->boxes.shape[d]);
    return ZARR_OK;
}

zarr_status zr_reencode_shape(struct zr_reencode *r, const struct zr_reencode_pair *pair,
                              struct zr_reencode_shape *s, zarr_error *err)
{
    static const uint64_t enough = 64u << 20; /* boxes larger than this gain nothing */
    const bool alike = zarr_array_block_shape(pair->dst) != NULL;
    const uint64_t *chunk = zarr_array_chunk_shape(pair->src);
    const uint64_t limit =
        r->opts.buffer_bytes ? r->opts.buffer_bytes : r->ctx->budget.total / 2;
    const int32_t ndim = zarr_array_ndim(pair->dst);

    s->item_bytes = zarr_dtype_item_bytes(zarr_array_dtype(pair->dst));
    s->n_buffers = 0;
    zr_box_walk_init(&s->boxes, ndim, zarr_array_shape(pair->dst), NULL, 1);
    if (s->boxes.done || s->item_bytes == 0) { /* no elements */
        s->boxes.done = true;
        return ZARR_OK;
    }
    zarr_array_block_largest(pair->dst, s->unit);
    zarr_array_block_counts(pair->dst, s->grid);
    s->boxes.grid = alike ? NULL : pair->grid;
    for (int32_t d = 0; d < ndim; d++)
        s->boxes.step[d] = ZR_MIN(s->unit[d], s->boxes.shape[d]);
    if (zr_product_cap(s->grid, (size_t)ndim) == UINT64_MAX)
        return zr_fail(err, ZARR_ERR_LIMIT, "/%s would have more than 2^64 chunks",
                       pair->path);
    s->unit_bytes =
        zr_mul_cap(zr_product_cap(s->boxes.step, (size_t)ndim), s->item_bytes);
    if (s->unit_bytes > limit)
        return fit_parts(r, pair, s, limit, err);
    s->n_buffers = s->unit_bytes > limit / 2 ? 1 : 2;
    if (chunk && alike)
        align_to_source(s, chunk, limit / 2);
    widen(s, ZR_MIN(limit / 2, enough));
    s->buffer_bytes =
        zr_mul_cap(zr_product_cap(s->boxes.step, (size_t)ndim), s->item_bytes);
    return ZARR_OK;
}

zarr_status zr_reencode_buffer(const struct zr_reencode *r,
                               const struct zr_reencode_shape *s, void **out,
                               zarr_error *err)
{
    size_t n = 0;

    if (zr_fits(s->buffer_bytes, &n))
        *out = zr_malloc(r->ctx->alloc, n);
    return *out ? ZARR_OK : zr_fail_memory(err, s->buffer_bytes);
}
