/*
 * unit/array/array_test.h - short ways to make, fill and check arrays in a world.
 */
#ifndef ZR_ARRAY_TEST_H
#define ZR_ARRAY_TEST_H

#include "unit/node/node_test.h"

/* 2-d int32 arrays of chunks 2 x 2, fill -1; format 2, 3, or 4: v3 with shards of 4 x 4.
 */
zarr_array *make_array(struct world *w, const char *path, int kind, uint64_t rows,
                       uint64_t cols);
/* Writes row * 1000 + col everywhere. */
void fill_array(zarr_array *a);
/* Element of a 2-d int32 array. */
int32_t read_at(zarr_array *a, uint64_t row, uint64_t col);
/* Wrong cells where [0, rows) x [0, cols) should be as fill_array() wrote it and the rest
 * -1. */
int count_wrong(zarr_array *a, uint64_t rows, uint64_t cols);

#endif
