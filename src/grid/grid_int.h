/*
 * grid/grid_int.h - what the files of this room share. All array coordinates are below
 * 2^63 (zr_check_shape()), so a coordinate fits int64_t and the end of a chunk fits
 * uint64_t.
 */
#ifndef ZR_GRID_INT_H
#define ZR_GRID_INT_H

#include "grid/grid.h"

/* INVALID unless this is a list with one item for each dimension. */
zarr_status zr_grid_check_list(const struct zr_json *list, const char *member,
                               int32_t ndim, zarr_error *err);
/* Fills self and vt from the configuration, and also chunk_shape if all chunks have one
 * shape. */
zarr_status zr_rectilinear_make(struct zr_grid *g, const struct zr_json *config,
                                const zarr_allocator *alloc, zarr_error *err);

#endif
