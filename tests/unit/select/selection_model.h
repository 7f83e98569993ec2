/*
 * unit/select/selection_model.h - a random selection of a small array, made twice: by the
 * library, and as a plain map from flat result position to flat array position, computed
 * by the most naive means.
 */
#ifndef ZR_SELECTION_MODEL_H
#define ZR_SELECTION_MODEL_H

#include "unit/select/select_test.h"

enum {
    MAX_ITEMS = 4096
};

/* A selection, and the same selection as a map. */
struct both {
    zarr_selection *sel;
    int32_t ndim; /* dimensions of the result */
    uint64_t shape[ZARR_MAX_RANK];
    uint64_t n;
    uint64_t *map; /* n flat positions in the array */
};

uint64_t product(const uint64_t *v, int32_t n);
uint64_t flatten(const uint64_t *at, const uint64_t *shape, int32_t ndim);
bool turn(uint64_t *at, const uint64_t *shape, int32_t ndim);
void *must_alloc(uint64_t n, size_t size);
void both_free(struct both *b);
void random_selection(struct rng *r, struct both *b, int32_t ndim, const uint64_t *shape);

#endif
