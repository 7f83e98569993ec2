/*
 * fault/fault.h - what the programs of this folder share: a world (context with
 * a counting allocator that can fail, and a store), the scenarios that are run
 * with every single step failing, and the check that the store holds what it
 * held before or what the scenario makes of it. Public API only.
 */
#ifndef ZR_TESTS_FAULT_H
#define ZR_TESTS_FAULT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <zarrc/plugin/plugin.h>
#include <zarrc/zarrc.h>

/* Counts down; what it meets fails, once or from there on. 0: off. */
struct fuse {
    atomic_int_fast64_t left;
    atomic_bool blown;
    bool forever;
};

void fuse_set(struct fuse *f, int64_t k, bool forever);
/* True: the caller shall fail now. */
bool fuse_burns(struct fuse *f);
/* Off from here on; whether it was reached. */
bool fuse_off(struct fuse *f);

struct world {
    zarr_allocator alloc;
    atomic_int_fast64_t n_blocks;
    struct fuse memory;
    zarr_context *ctx;
    zarr_store *store;
};

/* n_threads 1 makes the order of steps the same in every run. */
void world_context(struct world *w, uint32_t n_threads);
/* Two groups and five arrays, filled; store is moved. */
void world_fill(struct world *w, zarr_store *store);
/* Asserts that no block is left. */
void world_close(struct world *w);

struct scenario {
    const char *name;
    zarr_status (*run)(struct world *w, zarr_error *err);
    /* What the store holds: before, and after success. Aborts on what is neither. */
    void (*check)(struct world *w, bool done);
};

extern const struct scenario scenarios[];
extern const int n_scenarios;

/* Every array that the scenario does not touch is as world_fill() left it, and every one
 * can be read completely; then the scenario's own check. */
void world_check(struct world *w, const struct scenario *s, bool done);

#endif
