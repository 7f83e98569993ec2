/*
 * array/shape/trim_rows.c - finds the chunks that a shrink must look at. A few are tried
 * one by one. If there are many, the store lists which exist, because a huge array may be
 * nearly empty. A store that cannot list bounds how many are tried. Thread class: solo.
 */
#include "array/shape/trim_int.h"

#include <string.h>

enum {
    TRIM_DIRECT_MAX = 256,    /* most chunks that are tried if the store can list */
    TRIM_PROBES_MAX = 1 << 20 /* and if it cannot */
};

void zr_trim_range(const struct zr_array_state *s, int32_t d, uint64_t chunk,
                   uint64_t *low, uint64_t *high)
{
    uint64_t size = 0;

    if (chunk >= zr_grid_n_chunks(&s->meta.grid, d)) {
        *low = *high = s->meta.shape[d];
        return;
    }
    zr_grid_extent(&s->meta.grid, d, chunk, low, &size);
    if (!zr_add(*low, size, high))
        *high = UINT64_MAX;
    *high = ZR_MIN(*high, s->meta.shape[d]);
}

static void count_kept(struct zr_trim *t)
{
    const struct zr_grid *grid = &t->old->meta.grid;

    for (int32_t d = 0; d < grid->ndim; d++) {
        const uint64_t len = t->new_shape[d];
        uint64_t low = 0, high = 0;

        if (len >= grid->shape[d]) {
            t->keep[d] = zr_grid_n_chunks(grid, d);
        } else if (len == 0) {
            t->keep[d] = 0;
        } else {
            t->keep[d] = zr_grid_locate(grid, d, len - 1);
            zr_trim_range(t->old, d, t->keep[d], &low, &high);
            t->keep[d] += high <= len;
        }
    }
}

/* Chunks of the old grid that are not wholly inside: for each dimension d, those that are
 * inside in all earlier dimensions but not in d. */
static uint64_t count_candidates(const struct zr_trim *t)
{
    const struct zr_grid *grid = &t->old->meta.grid;
    uint64_t total = 0;

    for (int32_t d = 0; d < grid->ndim; d++) {
        uint64_t n[ZARR_MAX_RANK], product = 0;

        for (int32_t e = 0; e < grid->ndim; e++)
            n[e] = e < d ? t->keep[e] : zr_grid_n_chunks(grid, e);
        n[d] -= t->keep[d];
        if (!zr_product_u64(n, (size_t)grid->ndim, &product) ||
            !zr_add(total, product, &total))
            return UINT64_MAX;
    }
    return total;
}

static zarr_status add_candidates(struct zr_trim *t, int32_t d, zarr_error *err)
{
    const struct zr_grid *grid = &t->old->meta.grid;
    const size_t width = (size_t)grid->ndim + 1;
    uint64_t at[ZARR_MAX_RANK] = {0}, begin[ZARR_MAX_RANK] = {0},
             end[ZARR_MAX_RANK] = {0};
    struct zr_stored *rows = &t->rows;

    for (int32_t e = 0; e < grid->ndim; e++) {
        end[e] = e < d ? t->keep[e] : zr_grid_n_chunks(grid, e);
        begin[e] = e == d ? t->keep[e] : 0;
        if (begin[e] >= end[e])
            return ZARR_OK;
        at[e] = begin[e];
    }
    do {
        ZR_CHECK(zr_grow(rows->alloc, &rows->row, &rows->cap, rows->n + 1,
                         width * sizeof *rows->row, err));
        memcpy(rows->row + rows->n * width, at, (width - 1) * sizeof *at);
        rows->row[rows->n++ * width + width - 1] = UINT64_MAX;
    } while (zr_grid_step(at, begin, end, grid->ndim));
    return ZARR_OK;
}

static zarr_status check_probes(uint64_t n, zarr_error *err)
{
    if (n <= TRIM_PROBES_MAX)
        return ZARR_OK;
    return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                   "%" PRIu64 " chunks may be outside of the shape: too many to try one "
                   "by one (%d), and the store of the chunks cannot list",
                   n, TRIM_PROBES_MAX);
}

zarr_status zr_trim_check(const struct zr_trim_job *job, zarr_error *err)
{
    struct zr_trim t = {
        .job = job, .a = job->a, .old = job->old, .new_shape = job->shape};

    if (zr_store_can(job->a->chunk_store, ZARR_STORE_CAP_LIST))
        return ZARR_OK;
    count_kept(&t);
    return check_probes(count_candidates(&t), err);
}

zarr_status zr_trim_find_rows(struct zr_trim *t, zarr_error *err)
{
    uint64_t n = 0;

    count_kept(t);
    n = count_candidates(t);
    t->rows = (struct zr_stored){.ndim = t->old->meta.ndim, .alloc = t->a->h.ctx->alloc};
    t->listed = (t->job->everything || n > TRIM_DIRECT_MAX) &&
                zr_store_can(t->a->chunk_store, ZARR_STORE_CAP_LIST);
    if (t->listed)
        return zr_stored_list(&t->rows, t->a, t->old, t->keep, false, t->job->cancel,
                              err);
    ZR_CHECK(check_probes(n, err));
    for (int32_t d = 0; d < t->rows.ndim; d++)
        ZR_CHECK(add_candidates(t, d, err));
    return ZARR_OK;
}
