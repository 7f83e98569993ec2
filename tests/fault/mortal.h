/*
 * fault/mortal.h - a store that kills its process with SIGKILL before or after one of its
 * operations, on a folder that lives until mortal_end(). Its worlds have one thread, so
 * operations follow each other: the store after one is the store before the next.
 */
#ifndef ZR_TESTS_MORTAL_H
#define ZR_TESTS_MORTAL_H

#include "fault.h"

struct mortal {
    zarr_store *inner;
    int64_t left; /* operations until the kill; 0: it lives */
    bool late;    /* killed after the operation */
    bool lists;
    const char *counted;      /* a key; may be NULL */
    int64_t n_ops, n_counted; /* all operations, and those on the key */
};

extern const char *const mortal_folder; /* of all these stores */

void mortal_begin(const char *name); /* makes the place of the folder */
void mortal_end(void);
void mortal_empty(void); /* empties the folder */
/* Keeps what is in the folder, and brings it back: much faster than to write it again. */
void mortal_keep(void);
void mortal_restore(void);
/* Opens the world with this store. */
void mortal_open(struct world *w, struct mortal *m);
/* Runs a function in a process with a copy of this store. Returns true if it was killed,
 * false if the function succeeded before. A function that fails ends the test. */
bool mortal_killed(zarr_status (*fn)(zarr_store *store, const void *arg, zarr_error *err),
                   const void *arg, const struct mortal *how);

#endif
