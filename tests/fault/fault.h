/*
 * fault/fault.h - helpers of the fault tests: a world (a context with a counting
 * allocator that can fail, and a store), scenarios that run with each single step
 * failing, and the check that the store holds either its old contents or the result of
 * the scenario. Uses the public API only.
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

#include "../tuning.h"
#include <zarrc/plugin/plugin.h>
#include <zarrc/zarrc.h>

/* Counts down. The step that it reaches fails, once or with all later ones. 0: off. */
struct fuse {
    atomic_int_fast64_t left;
    atomic_bool blown;
    bool forever;
};

void fuse_set(struct fuse *f, int64_t k, bool forever);
/* True: the caller must fail now. */
bool fuse_burns(struct fuse *f);
/* Turns it off. True if it was reached. */
bool fuse_off(struct fuse *f);

struct world {
    zarr_allocator alloc;
    atomic_int_fast64_t n_blocks;
    struct fuse memory;
    zarr_context *ctx;
    zarr_store *store;
};

/* max_threads 1 makes the order of steps the same in every run. */
void world_context(struct world *w, uint32_t max_threads);
/* Writes two groups with filled arrays to the store; the world takes over the store. The
 * first call writes all arrays through the library. Later calls put the keys and values
 * that the first one stored, but of arrays that not every scenario needs only those that
 * `extra` names. */
void world_fill(struct world *w, zarr_store *store, const char *extra);
/* Writes the same as files below the new folder root. Returns false and does nothing
 * before the first world_fill(). */
bool world_files(const char *root, const char *extra);
/* Asserts that no block is still allocated. */
void world_close(struct world *w);

/* ---- for scenarios ---- */

enum {
    ROWS = 12,
    COLS = 10,
    CELLS = ROWS * COLS
};

void world_must(zarr_status st, const zarr_error *err, const char *what);
/* The element at i (C order) written with `seed`: 1 in world_fill(), 2 in scenarios. */
int32_t world_cell(int seed, int64_t i);
/* An array of ROWS x COLS. kind 2: format 2; 3: format 3; 4: shards; 5: no compression;
 * 6: chunks of different shapes; 7: shards of different shapes. */
zarr_status world_make(struct world *w, const char *path, int kind, zarr_error *err);
/* Reads or writes rows first .. first + n of the array, all columns. */
zarr_status world_rows_io(struct world *w, const char *path, bool write, uint64_t first,
                          uint64_t n, int32_t *data, zarr_error *err);
zarr_status world_write_rows(struct world *w, const char *path, int seed, uint64_t first,
                             uint64_t n, zarr_error *err);
/* Checks that they are as world_fill() wrote them. */
zarr_status world_read_rows(struct world *w, const char *path, uint64_t first, uint64_t n,
                            zarr_error *err);
/* Does a GET or STAT of a store that wraps another one. */
zarr_status inner_get(zarr_store *inner, zarr_store_op *op, zarr_error *err);

struct scenario {
    const char *name;
    zarr_status (*run)(struct world *w, zarr_error *err);
    /* The contents of the store before and after success. Aborts on any other contents.
     * NULL: it changes nothing. */
    void (*check)(struct world *w, bool done);
    /* The arrays that it needs beside g/shard, g/plain and v2/x: names below g, separated
     * by blanks. NULL: none. */
    const char *extra;
    const char *changes; /* which of g/plain and v2/x it changes; NULL: none */
};

struct scenarios {
    const struct scenario *one;
    size_t n;
};

extern const struct scenarios element_scenarios, node_scenarios, store_scenarios;

/* Makes a test of each scenario, which it gets as its initial state. Returns how many. */
size_t scenario_tests(struct CMUnitTest *tests, size_t most, CMUnitTestFunction test);

/* Checks that each array that the scenario does not touch is as world_fill() wrote it,
 * and that each array can be read completely. Then runs the scenario's own check. */
void world_check(struct world *w, const struct scenario *s, bool done);

#endif
