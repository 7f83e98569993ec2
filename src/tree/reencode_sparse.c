/*
 * tree/reencode_sparse.c - finds the boxes in which there is anything to do. If source
 * and destination have one fill value, a box without a stored chunk is done. So huge
 * arrays with few chunks are re-encoded by these chunks alone.
 * Thread class: plain functions.
 */
#include "tree/reencode_int.h"

#include <string.h>

enum {
    REENCODE_FEW_BOXES = 64, /* arrays of fewer boxes are not worth a listing */
    REENCODE_SPARSE_PART = 4 /* if more than 1/4 of the boxes are touched, all are done */
};

struct touched {
    const struct zr_box_walk *b;
    const zarr_array *array;
    struct zr_coord_set *boxes;
    zarr_cancel *cancel;
    uint64_t most;
    bool many;
    zarr_status st;
    zarr_error *err;
};

/* Finds the boxes that a chunk touches in each dimension: [first, end). */
static zarr_status touched_range(const struct touched *t, const uint64_t *chunk,
                                 uint64_t *first, uint64_t *end)
{
    const struct zr_box_walk *b = t->b;
    uint64_t start[ZARR_MAX_RANK], count[ZARR_MAX_RANK];
    zarr_status st = zarr_array_block_extent(t->array, chunk, start, count, t->err);

    for (int32_t d = 0; d < b->ndim && st == ZARR_OK; d++) {
        const uint64_t rest = b->shape[d] - start[d];

        first[d] = start[d] / b->step[d];
        end[d] = (start[d] + ZR_MIN(count[d], rest) - 1) / b->step[d] + 1;
    }
    return st;
}

static zarr_status touch(struct touched *t, const uint64_t *chunk)
{
    uint64_t first[ZARR_MAX_RANK], end[ZARR_MAX_RANK], at[ZARR_MAX_RANK];
    zarr_status st = touched_range(t, chunk, first, end);
    bool more = true;

    if (st != ZARR_OK)
        return st;
    memcpy(at, first, sizeof at);
    while (more) {
        if (t->boxes->n / 2 > t->most) { /* remove duplicates: chunks share boxes */
            zr_coord_set_sort(t->boxes);
            t->many = t->boxes->n > t->most;
        }
        if (t->many)
            break;
        ZR_TRY(zr_coord_set_add(t->boxes, at, t->err));
        more = zr_grid_step(at, first, end, t->boxes->ndim);
    }
out:
    return st;
}

static int touch_chunk(void *user, const zarr_block_info *chunk)
{
    struct touched *t = user;

    t->st = touch(t, chunk->coordinates);
    return t->st != ZARR_OK || t->many;
}

/* *few false: the boxes are many, or the store cannot list them. */
static zarr_status touch_all(struct touched *t, zarr_array *array, bool *few,
                             zarr_error *err)
{
    const zarr_io_options io = {.struct_size = sizeof io, .cancel = t->cancel};
    zarr_error why = {0};
    zarr_status st;

    t->array = array;
    t->err = err;
    st = zarr_array_list_blocks(array, ZARR_BLOCKS_STORED, touch_chunk, t, &io, &why);
    *few = st == ZARR_OK && !t->many;
    if (st == ZARR_ERR_NO_MEMORY || st == ZARR_ERR_CANCELLED)
        return zr_pass(err, st, &why);
    return t->st;
}

zarr_status zr_reencode_sparse(const struct zr_reencode *r,
                               const struct zr_reencode_pair *pair,
                               const struct zr_box_walk *b, bool both,
                               struct zr_coord_set *out, bool *few, zarr_error *err)
{
    struct touched t = {.b = b, .boxes = out, .cancel = r->opts.cancel};
    uint64_t counts[ZARR_MAX_RANK];
    bool same = false;
    zarr_status st = ZARR_OK;

    *few = false;
    zr_coord_set_init(out, b->ndim, r->ctx->alloc);
    if (b->grid || r->opts.read || r->opts.flags & ZARR_REENCODE_MISSING_ERROR)
        return ZARR_OK;
    for (int32_t d = 0; d < b->ndim; d++)
        counts[d] = zr_ceil_div_u64(b->shape[d], b->step[d]);
    t.most = zr_product_cap(counts, (size_t)b->ndim) / REENCODE_SPARSE_PART;
    if (t.most <= REENCODE_FEW_BOXES / REENCODE_SPARSE_PART)
        return ZARR_OK;
    ZR_TRY(zr_same_fill(pair->src, pair->dst, &same, err));
    if (!same)
        goto out;
    ZR_TRY(touch_all(&t, pair->src, few, err));
    if (*few && both)
        ZR_TRY(touch_all(&t, pair->dst, few, err));
    zr_coord_set_sort(out);
    *few = *few && out->n <= t.most;
out:
    return st;
}
