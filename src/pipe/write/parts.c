/*
 * pipe/write/parts.c - writes of a request with several selections. A unit that fails is
 * the failure of the parts that touch it.
 * Thread class: on the worker context.
 */
#include "pipe/write/write.h"

zarr_status zr_parts_write(const struct zr_work *w, const struct zr_projection *proj,
                           uint32_t threads, struct zr_later *later, zarr_error *err)
{
    const struct zr_grid *grid = w->io->layout->grid;
    zarr_error e = ZARR_ERROR_INIT;
    uint64_t ordinal = 0;
    zarr_status st = ZARR_OK;

    if (!w->io->parts)
        return zr_unit_write(w, proj, threads, later, err);
    st = zr_unit_write(w, proj, threads, later, &e);
    if (st == ZARR_OK || !zr_parts_take(w->rq, st))
        return zr_pass(err, st, &e);
    for (int32_t d = 0; d < grid->ndim; d++)
        if (!zr_mul_u64(ordinal, zr_grid_n_chunks(grid, d), &ordinal) ||
            !zr_add_u64(ordinal, proj->chunk[d], &ordinal))
            ordinal = UINT64_MAX - 1;
    zr_parts_fail(w->rq, proj, st, &e, ordinal);
    return ZARR_OK;
}
