/*
 * zip/zip.h - the door to zip archives: a store whose keys are the members of an archive,
 * which is the value of one key of another store. It reads and writes the archive by
 * public calls of that store only (zarrc/plugin/store.h), so the archive can be in a
 * file, in memory, or behind any other store.
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

/* The form that writers give to an archive. */
enum zr_zip_form {
    ZR_ZIP_FORM_BY_NAME, /* .ozx: single-file OME-Zarr, in order if the archive is new */
    ZR_ZIP_FORM_PLAIN,
    ZR_ZIP_FORM_OZX /* single-file OME-Zarr; each flush brings members in order */
};
struct zr_zip_options {
    uint32_t flags;     /* ZARR_STORE_READ_ONLY, ZARR_STORE_CREATE */
    bool always_copies; /* each flush replaces the whole archive */
    enum zr_zip_form form;
    const zarr_cancel *cancel; /* ends the call; may be NULL */
    const char *temp_folder;   /* of the file of a new archive; copied; NULL: /tmp */
};

/* Reads the directory of the archive, and makes the `self` for the functions. It adds an
 * owner to `store`. Copies key and env; env must outlive it, as for zr_store_open().
 * NOT_FOUND: there is no such key, and the options or the store do not allow a new
 * archive. CORRUPT: it is no zip archive, or a damaged one. */
zarr_status zr_zip_open(void **self, const struct zr_store_env *env, zarr_store *store,
                        const char *key, const struct zr_zip_options *opts,
                        zarr_error *err);

#endif
