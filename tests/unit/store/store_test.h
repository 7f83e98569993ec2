/*
 * unit/store/store_test.h - helpers of the store tests: all kinds of stores, opened on a
 * fresh directory or on memory, and functions that read and write. world_free() closes
 * and removes everything.
 */
#ifndef ZR_STORE_TEST_H
#define ZR_STORE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "store/store.h"

enum sort {
    SORT_LOCAL,
    SORT_LOCAL_NO_LOCKS,
    SORT_MEMORY,
    SORT_ASYNC,     /* event loop: random delays and order */
    SORT_COMPOSITE, /* documents in a directory, other keys in memory */
    SORT_PLAIN,     /* only run(): no ranges, no suffix, no list, no versions, no STAT */
    N_SORTS
};

struct world {
    /* Counts blocks; fail_at: this allocation, counted from now, fails; with `forever`
     * all later ones fail as well. */
    zarr_allocator alloc;
    atomic_int_fast64_t n_blocks, fail_at;
    bool forever;
    struct zr_memory_registry memory;
    struct zr_store_registry *registry;
    struct zr_store_env env;
    char dir[64];
    atomic_int ctx_refs;
    uint32_t lock_wait_ms; /* of stores that are opened from now on */
};

void world_init(struct world *w);
void world_free(struct world *w); /* asserts that nothing leaked */
/* The same as set-up and tear-down of a test; *state is the world. */
int world_setup(void **state);
int world_teardown(void **state);

zarr_store *open_local(struct world *w, const zarr_store_options *opts);
zarr_store *open_sort(struct world *w, enum sort sort);
const char *sort_name(enum sort sort);
/* The application's stores of open_sort(), each on a memory store of its own. */
zarr_status open_async(zarr_store **out, struct world *w, uint32_t caps, zarr_error *err);
zarr_status open_plain(zarr_store **out, struct world *w, uint32_t caps, zarr_error *err);

zarr_status put_text(zarr_store *s, const char *key, const char *text);
/* The value as text in a static buffer, or NULL if not found. Other errors fail the
 * test. */
const char *get_text(zarr_store *s, const char *key);
zarr_store_op get_op(const char *key, uint64_t offset, uint64_t length, void *to,
                     uint64_t bytes);
int count_open_fds(void);
void path_in(const struct world *w, char *out, size_t cap, const char *name);

#define assert_status(got, want)                                                         \
    do {                                                                                 \
        zarr_status got_ = (got);                                                        \
        if (got_ != (want))                                                              \
            fail_msg("%s: got \"%s\", wanted \"%s\"", #got, zarr_status_text(got_),      \
                     zarr_status_text(want));                                            \
    } while (0)

#endif
