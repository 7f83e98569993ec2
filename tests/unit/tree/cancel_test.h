/*
 * unit/tree/cancel_test.h - a store that sets a cancel object before its n-th operation,
 * one that hangs until it is cancelled, alarms, and trees to work on.
 */
#ifndef ZR_TESTS_CANCEL_TEST_H
#define ZR_TESTS_CANCEL_TEST_H

#include "unit/array/array_test.h"

#include <zarrc/plugin/store.h>

#include <pthread.h>
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

/* The state of a store whose operations end only if it is asked to; there is one. */
struct hung_store {
    const char *what; /* a part of the keys whose operations hang */
    uint32_t verb;    /* only these; 0: all */
    int skip;         /* so many of these do not hang */
    pthread_mutex_t mutex;
    zarr_store_op *op[64];
    int n;
    void (*done)(void *arg, zarr_store_op *op, const zarr_error *err);
    void *arg;
    int n_cancelled;
    bool is_done;  /* a write that hangs was done */
    bool signals;  /* an operation that hangs sets the object itself */
    int n_endless; /* operations that nothing would have ended */
};

extern struct hung_store hung_store;
extern const zarr_store_vtable hung_vtable;
zarr_store *open_hung(struct world *w); /* a world as of open_trap() */

/* SIGALRM sets this object. */
extern zarr_cancel *alarm_cancel;
void begin_alarms(void);
void alarm_in_ms(int ms);
void end_alarms(void);

#endif
