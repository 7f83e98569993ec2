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
/* Two groups and their arrays, filled; store is moved. The first call writes them through
 * the library, later ones put the keys and values that the first one left. */
void world_fill(struct world *w, zarr_store *store);
/* The same as files below the new folder root. False, and nothing done, before the first
 * world_fill(). */
bool world_files(const char *root);
/* Asserts that no block is left. */
void world_close(struct world *w);

/* ---- for scenarios ---- */

enum {
    ROWS = 12,
    COLS = 10,
    CELLS = ROWS * COLS
};

void world_must(zarr_status st, const zarr_error *err, const char *what);
/* The element at i (C order) that `seed` writes: 1 by world_fill(), 2 by scenarios. */
int32_t world_cell(int seed, int64_t i);
/* An array of ROWS x COLS; kind 2: format 2, 3: one of format 3, 4: shards, 5: without
 * compression, 6: chunks that differ, 7: shards that differ. */
zarr_status world_make(struct world *w, const char *path, int kind, zarr_error *err);
/* Rows first .. first + n of the array, all columns: in or out. */
zarr_status world_rows_io(struct world *w, const char *path, bool write, uint64_t first,
                          uint64_t n, int32_t *data, zarr_error *err);
zarr_status world_write_rows(struct world *w, const char *path, int seed, uint64_t first,
                             uint64_t n, zarr_error *err);
/* They must be what world_fill() wrote. */
zarr_status world_read_rows(struct world *w, const char *path, uint64_t first, uint64_t n,
                            zarr_error *err);

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
