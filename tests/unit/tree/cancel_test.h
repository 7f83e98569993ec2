/*
 * unit/tree/cancel_test.h - a store that sets a cancel object before its n-th operation,
 * and trees to work on.
 */
#ifndef ZR_TESTS_CANCEL_TEST_H
#define ZR_TESTS_CANCEL_TEST_H

#include "unit/array/array_test.h"

#include <zarrc/plugin/store.h>

#include <stdbool.h>

enum {
    ROWS = 7,
    COLS = 5
};

/* The store's state; there is one such store at a time. */
struct trap {
    zarr_store *below;
    zarr_cancel *cancel;
    atomic_int left;  /* operations until the object is set; below 0: never */
    atomic_int after; /* operations that began afterwards */
};

extern struct trap trap;
extern const zarr_store_vtable trap_vtable;

void trap_caps(void *self, zarr_store_caps *out);
void trap_run(void *self, zarr_store_op *op, zarr_error *err);
zarr_status trap_list(void *self, const char *prefix, uint32_t how, zarr_store_list_fn fn,
                      void *user, const zarr_cancel *cancel, zarr_error *err);
/* Opens a world with the trees, and the store in front of its own. */
void open_trap(struct world *w, zarr_store **s, zarr_cancel *c, int left);
/* src: a group with a (chunks) and g/s (shards); old: a v2 group with v. */
void make_trees(struct world *w);
zarr_array *open_array(zarr_store *s, const char *path);
/* Reads (what 0), writes (1) or appends (2) ROWS rows. */
zarr_status rows_io(zarr_store *s, const char *path, zarr_cancel *cancel, int what);
/* Each element of src/a is old or new, if src is still there. */
void check_elements(struct world *w);

#endif
