/*
 * select_test.h - for tests of selections.
 */
#ifndef SELECT_TEST_H
#define SELECT_TEST_H

#include "select/select.h"
#include "unit/grid/grid_test.h"

/* Selects blocks of the regular grid of an array. */
static inline zarr_status grid_blocks(zarr_selection **out, int32_t ndim,
                                      const uint64_t *shape, const uint64_t *edge,
                                      int32_t n_dims, const zarr_dim_selection *dims,
                                      zarr_error *err)
{
    struct zr_grid grid;
    zarr_status st = zr_grid_init_regular(&grid, ndim, shape, edge, "chunk_shape", err);

    return st ? st : zr_select_blocks(out, &grid, n_dims, dims, err);
}

#endif
