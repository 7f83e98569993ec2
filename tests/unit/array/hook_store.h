/*
 * unit/array/hook_store.h - a store that calls the test right before or after an
 * operation, so that each order of two writers can be made happen; two handles
 * of it, and an array in it.
 */
#ifndef ZR_HOOK_STORE_H
#define ZR_HOOK_STORE_H

#include "array_test.h"

#include <zarrc/plugin/store.h>

/* Called before (done 0) and after each operation, with no lock held; may be NULL. */
extern void (*hook)(const zarr_store_op *op, int done);

extern struct world world;
extern zarr_store *other; /* not what world.store is, but the same keys */
extern zarr_array *mine, *theirs;
extern atomic_int n_hooked; /* operations may run on several threads */
extern zarr_status their_status;

/* An empty store with these capabilities more, and `mine` in it (format 0: none). */
void begin(uint32_t caps, int format, uint64_t length, uint64_t chunk);
/* Closes all of the above that is open. */
void end(void);

/* A new array "a" of int32. */
zarr_array *line(zarr_store *s, int format, uint64_t length, uint64_t chunk);
/* n elements first, first + 1, ... */
zarr_status append(zarr_array *a, int32_t first, int n);
/* After a refresh; want: how many elements there have to be. */
void read_all(zarr_array *a, int32_t *data, uint64_t want);

/* Whether op is the first with this verb and a key that begins so: true once. */
int is_at(const zarr_store_op *op, uint32_t verb, const char *key);

#endif
