/*
 * unit/node/node_test.h - helpers of the tests of node, array, group and tree: a context
 * with a counting allocator, a store in memory or in a fresh directory, and functions
 * that write and read documents. world_close() asserts that nothing leaked.
 */
#ifndef ZR_NODE_TEST_H
#define ZR_NODE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <zarrc/plugin/plugin.h>
#include "tuning.h"
#include <zarrc/zarrc.h>

#include "unit/assert_call.h"

enum world_sort {
    WORLD_MEMORY,
    WORLD_LOCAL,
    WORLD_PLAIN, /* an application's store: no locks, no versions, no ranges */
    N_WORLDS
};

struct world {
    zarr_allocator alloc;
    atomic_int_fast64_t n_blocks, fail_at; /* fail_at 1: the next call fails; 0: none */
    int forever;
    char log[4096]; /* lines logged by the context */
    zarr_context *ctx;
    zarr_store *store;
    char dir[64];
};

/* Opens context and store. Tests with failing allocators create the context
 * separately. */
void world_open(struct world *w, enum world_sort sort);
void world_begin(struct world *w,
                 enum world_sort sort); /* only the allocator and the directory */
zarr_status world_context(struct world *w, zarr_error *err);
zarr_status world_store(struct world *w, enum world_sort sort, zarr_error *err);
void world_close(struct world *w);
/* The cancel object of this test program, not set. */
zarr_cancel *fresh_cancel(void);
const char *world_name(enum world_sort sort);

void put_text(struct world *w, const char *key, const char *text);
/* In a static buffer; NULL if not found. */
const char *get_text(struct world *w, const char *key);
int n_keys(struct world *w, const char *prefix);

extern zarr_error terr; /* error of the last call in a macro below */
/* The last message contains this text. */
#define assert_says(text)                                                                \
    do {                                                                                 \
        if (!strstr(terr.message, text))                                                 \
            fail_msg("\"%s\" does not say \"%s\"", terr.message, text);                  \
    } while (0)

#endif
