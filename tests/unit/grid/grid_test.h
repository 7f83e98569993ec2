/*
 * unit/grid/grid_test.h - helpers of the grid tests: a seeded random generator, and an
 * irregular chunk grid, which shows that any separable grid works through the vtable
 * alone.
 */
#ifndef GRID_TEST_H
#define GRID_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "grid/grid.h"

struct rng {
    uint64_t state;
};
uint64_t rng_next(struct rng *r);
/* 0 to n - 1; 0 for n = 0. */
uint64_t rng_below(struct rng *r, uint64_t n);
bool rng_chance(struct rng *r, unsigned percent);
/* The number of random cases and the first seed: ZR_CASES and ZR_SEED, or these
 * defaults. */
uint64_t test_number(const char *name, uint64_t otherwise);

/* Configuration {"edges": [[2,3],[4,4]]}: the edges of each dimension. They must cover
 * it. */
extern const zarr_grid_vtable rect_grid;

/* A registry with the built-ins and rect_grid. */
void registry_make(struct zr_grid_registry *r);
/* Parses JSON text and creates a grid from it. */
zarr_status grid_make(struct zr_grid *g, const struct zr_grid_registry *r, int32_t ndim,
                      const uint64_t *shape, const char *name, const char *config,
                      zarr_error *err);

#endif
