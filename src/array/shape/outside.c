/*
 * array/shape/outside.c - looks at elements that are stored outside of the array's shape:
 * in the part of a border chunk that the shape cuts off. They are read through a state
 * whose shape is larger, and compared with the fill value bit for bit. Thread class:
 * plain functions.
 */
#include "array/io/io_int.h"
#include "array/shape/shape_int.h"

#include <string.h>

/* The end of the last chunk, or the array's length if there is none. */
static uint64_t chunks_end(const struct zr_grid *grid, int32_t d)
{
    const uint64_t n = zr_grid_n_chunks(grid, d);
    uint64_t origin = 0, size = 0, end = 0;

    if (n == 0)
        return grid->shape[d];
    zr_grid_extent(grid, d, n - 1, &origin, &size);
    if (!zr_add(origin, size, &end) || end > INT64_MAX)
        return grid->shape[d];
    return ZR_MAX(end, grid->shape[d]);
}

zarr_status zr_outside_state(struct zr_array_state **out, const zarr_array *a,
                             const struct zr_array_state *s, const uint64_t *shape,
                             zarr_error *err)
{
    uint64_t ends[ZARR_MAX_RANK] = {0};
    const struct zr_shape_change change = {
        .array = (zarr_array *)(uintptr_t)a, /* is only read */
        .before = s,
        .shape = shape ? shape : ends};

    for (int32_t d = 0; d < s->meta.ndim; d++)
        ends[d] = chunks_end(&s->meta.grid, d);
    return zr_shape_derive(out, &change, err);
}

zarr_status zr_array_lossy(const zarr_array *a, struct zr_array_state *s, bool *lossy,
                           zarr_error *err)
{
    const struct zr_layout_key host = {.tensor = ZARR_DEVICE_CPU};
    const struct zr_layout *l = NULL;

    *lossy = false;
    ZR_CHECK(zr_array_layout(&l, a, s, &host, err));
    for (uint32_t i = 0; i < l->n_levels; i++)
        *lossy = *lossy || zr_chain_lossy(l->level[i].chain, &l->level[i].reps);
    return ZARR_OK;
}

/* ---- reading boxes ------------------------------------------------------ */

struct outside_look {
    const zarr_array *a;
    struct zr_array_state *s;
    void *block; /* owned; room for one tile */
    uint64_t room;
    struct zr_heap heap;
    const zarr_cancel *cancel;
};

static zarr_status look_at_tile(struct outside_look *l, const uint64_t *start,
                                const uint64_t *count, bool *yes, zarr_error *err)
{
    const struct zr_array_meta *m = &l->s->meta;
    zarr_tensor tensor;
    struct zr_view_want want = {
        .ndim = m->ndim, .shape = count, .role = ZR_VIEW_DESTINATION};
    zarr_selection *box = NULL;
    uint64_t n = 0, bytes = 0;
    size_t size = 0;
    struct zr_io io;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_array_io(&io, l->a, l->s, ZARR_DEVICE_CPU, NULL, err));
    if (!zr_product_u64(count, (size_t)m->ndim, &n) ||
        !zr_mul(n, io.layout->item_bytes, &bytes) || !zr_fits(bytes, &size))
        ZR_FAIL_MEMORY(err, UINT64_MAX);
    if (bytes > l->room) {
        zr_free(l->a->h.ctx->alloc, l->block);
        l->room = 0;
        l->block = zr_malloc(l->a->h.ctx->alloc, size);
        if (!l->block)
            ZR_FAIL_MEMORY(err, bytes);
        l->room = bytes;
    }
    zarr_tensor_host(&tensor, NULL, l->block, bytes, m->ndim, count);
    want.item_bytes = io.layout->item_bytes;
    want.swap_unit = io.layout->swap_unit;
    ZR_TRY(zr_view_from_tensor(&io.view, &l->a->h.ctx->memory, &tensor, &want, err));
    ZR_TRY(zarr_selection_box(&box, m->ndim, m->shape, start, count, err));
    io.selection = box;
    io.heap = io.layout->variable ? &l->heap : NULL;
    io.missing_error = false;
    io.max_threads = 1;
    io.cancel = l->cancel;
    ZR_TRY(zr_io_run(&io, NULL, err));
    *yes = zr_is_fill(io.layout, l->block, n);
out:
    zr_heap_clear(&l->heap);
    zarr_selection_free(box);
    return st;
}

/* Cuts the box [low, high) into tiles, so that each chunk is decoded once and no more
 * than one is in memory. Chunks that differ in shape are one tile. */
static zarr_status look_at_box(struct outside_look *l, const uint64_t *low,
                               const uint64_t *high, bool *yes, zarr_error *err)
{
    const int32_t ndim = l->s->meta.ndim;
    const uint64_t *leaf = l->s->leaf_shape;
    uint64_t at[ZARR_MAX_RANK], count[ZARR_MAX_RANK] = {0};
    int32_t d = 0;

    memcpy(at, low, sizeof at);
    while (*yes && d >= 0) {
        for (d = 0; d < ndim; d++) {
            count[d] = high[d] - at[d];
            if (leaf[d] > 0)
                count[d] = ZR_MIN(count[d], leaf[d] - at[d] % leaf[d]);
        }
        ZR_CHECK(look_at_tile(l, at, count, yes, err));
        for (d = ndim - 1; d >= 0; d--) {
            at[d] += count[d];
            if (at[d] < high[d])
                break;
            at[d] = low[d];
        }
    }
    return ZARR_OK;
}

zarr_status zr_outside_is_fill(const zarr_array *a, struct zr_array_state *larger,
                               const uint64_t *chunk, const uint64_t *shape,
                               const zarr_cancel *cancel, bool *yes, zarr_error *err)
{
    struct outside_look l = {.a = a, .s = larger, .cancel = cancel};
    uint64_t low[ZARR_MAX_RANK] = {0}, high[ZARR_MAX_RANK] = {0};
    zarr_status st = ZARR_OK;

    *yes = true;
    zr_heap_init(&l.heap, a->h.ctx->budget.total, a->h.ctx->alloc);
    for (int32_t d = 0; d < larger->meta.ndim; d++)
        zr_trim_range(larger, d, chunk[d], &low[d], &high[d]);
    /* the boxes of several dimensions may overlap, so what was looked at is cut off */
    for (int32_t d = 0; d < larger->meta.ndim && *yes; d++) {
        const uint64_t from = low[d];

        if (shape[d] >= high[d])
            continue;
        low[d] = ZR_MAX(from, shape[d]);
        ZR_TRY(look_at_box(&l, low, high, yes, err));
        low[d] = from;
        high[d] = ZR_MAX(from, shape[d]);
        if (high[d] == from)
            break;
    }
out:
    zr_free(a->h.ctx->alloc, l.block);
    return st;
}
