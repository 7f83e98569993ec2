/*
 * unit/array/hook_store.h - a store that calls the test right before and after each
 * operation, so that a test can force any order of two writers. Also two handles of that
 * store, and an array in it.
 */
#ifndef ZR_HOOK_STORE_H
#define ZR_HOOK_STORE_H

#include "array_test.h"

#include <zarrc/plugin/store.h>

/* Called before (done is 0) and after (done is 1) each operation, with no lock held. May
 * be NULL. */
typedef void (*hook_fn)(const zarr_store_op *op, int done);
extern _Atomic(hook_fn) hook;       /* a hook may take itself away */
extern _Thread_local int is_others; /* in a hook: the operation came through `other` */
/* Called for each flush; may be NULL. */
typedef zarr_status (*flush_fn)(zarr_error *e);
extern _Atomic(flush_fn) flush_hook;
/* Asked before each operation: an error ends it. May be NULL. */
typedef zarr_status (*fault_fn)(const zarr_store_op *op);
extern _Atomic(fault_fn) fault_hook;
/* Takes the hooks away. */
void unhook(void);

extern struct world world;
extern zarr_store *other; /* another handle than world.store, on the same keys */
extern zarr_array *mine, *theirs;
extern atomic_int n_hooked; /* operations may run on several threads */
extern zarr_status their_status;

/* Opens an empty store with these additional capabilities, and creates `mine` in it.
 * Format 0: no array. */
void begin(uint32_t caps, int format, uint64_t length, uint64_t chunk);
/* Closes everything of the above that is open. */
void end(void);

/* Creates an int32 array "a". */
zarr_array *line(zarr_store *s, int format, uint64_t length, uint64_t chunk);
/* Appends n elements with the values first, first + 1, ... */
zarr_status append(zarr_array *a, int32_t first, int n);
/* Refreshes the handle and checks the elements. want: the expected number of
 * elements. */
void read_all(zarr_array *a, int32_t *data, uint64_t want);

/* True once: for the first operation with this verb and a key that has this prefix. */
int is_at(const zarr_store_op *op, uint32_t verb, const char *key);

#endif
