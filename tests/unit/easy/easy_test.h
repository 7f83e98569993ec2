/*
 * unit/easy/easy_test.h - helpers of the tests of the short calls: a world whose nodes
 * are named by their location.
 */
#ifndef ZR_EASY_TEST_H
#define ZR_EASY_TEST_H

#include "unit/node/node_test.h"

/* The location of a node in the directory of the world; in one of four static buffers. */
const char *place(const struct world *w, const char *node);
/* Creates an array in the world's store, through the short call. */
zarr_array *make_easy(struct world *w, const char *node, const char *data_type,
                      int32_t ndim, const uint64_t *shape);

#endif
