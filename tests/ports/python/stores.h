/*
 * ports/python/stores.h - stores of the language: a dictionary, and a store with an
 * asynchronous protocol over one, which runs on the event loop.
 */
#ifndef PORT_STORES_H
#define PORT_STORES_H

#include "host.h"

#include <zarrc/plugin/store.h>
#include <zarrc/zarrc.h>

/* ---- a dictionary: the caller has the lock ---------------------------------- */

enum {
    DICT_KEYS = 256
};
struct dict {
    char *key[DICT_KEYS];
    struct bytes *value[DICT_KEYS];
    unsigned n, gets, sets, deletes;
};
/* Borrowed; NULL: there is no such key. */
struct bytes *dict_get(struct dict *d, const char *key);
/* Takes the value over; NULL deletes the key. */
void dict_set(struct dict *d, const char *key, struct bytes *value);
void dict_clear(struct dict *d);
/* Copies all values of a store of the library. */
void dict_load(struct dict *d, zarr_store *from);

/* ---- an asynchronous store ----------------------------------------------------- */

/* What a store does instead of its work. */
enum async_trouble {
    ASYNC_WORKS,
    ASYNC_RAISES, /* each operation on a chunk fails, as an exception does */
    ASYNC_HANGS   /* operations end only when they are cancelled */
};
enum {
    ASYNC_EXCEPTION = 77 /* the number under which the binding keeps the exception */
};
struct async_store {
    struct dict values;
    enum async_trouble trouble;
    unsigned rounds;     /* calls of submit */
    unsigned operations; /* in all of these */
    struct task *hanging;
};
/* The library's view of the store. `self` must outlive it. */
zarr_status async_store_open(zarr_store **out, zarr_context *ctx,
                             struct async_store *self, zarr_error *err);

#endif
