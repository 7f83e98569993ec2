/*
 * unit/array/array_test.h - helpers that make, fill and check arrays in a test's world.
 */
#ifndef ZR_ARRAY_TEST_H
#define ZR_ARRAY_TEST_H

#include "unit/node/node_test.h"

/* A 2-d int32 array with chunks of 2 x 2 and fill value -1. Format 2 or 3; 4 means v3
 * with shards of 4 x 4. */
zarr_array *make_array(struct world *w, const char *path, int kind, uint64_t rows,
                       uint64_t cols);
/* Writes row * 1000 + col to every element. */
void fill_array(zarr_array *a);
/* One element of a 2-d int32 array. */
int32_t read_at(zarr_array *a, uint64_t row, uint64_t col);
/* Counts wrong elements: [0, rows) x [0, cols) must be as fill_array() wrote it and the
 * rest -1. */
int count_wrong(zarr_array *a, uint64_t rows, uint64_t cols);

#endif
