/*
 * zip/zip.h - the door to zip archives: a store whose keys are the members of an archive,
 * which is the value of one key of another store. It reads the archive by public calls of
 * that store only (zarrc/plugin/store.h), so the archive can be in a file, in memory, or
 * behind any other store. It writes nothing.
 *
 * NOT_FOUND means that the directory of the archive was read in full and does not name
 * the key. If the archive itself has disappeared, that is IO.
 *
 * Thread class: shared.
 */
#ifndef ZR_ZIP_H
#define ZR_ZIP_H

#include "base/base.h"
#include "store/store.h"

/* The functions of the store, without `open`. */
extern const zarr_store_vtable zr_zip_vtable;

/* Reads the directory of the archive, and makes the `self` for the functions. It adds an
 * owner to `store`. Copies key and env; env must outlive it, as for zr_store_open().
 * cancel: ends the call; may be NULL.
 * NOT_FOUND: there is no such key. CORRUPT: it is no zip archive, or a damaged one. */
zarr_status zr_zip_open(void **self, const struct zr_store_env *env, zarr_store *store,
                        const char *key, const zarr_cancel *cancel, zarr_error *err);

#endif
