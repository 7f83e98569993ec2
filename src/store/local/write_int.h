/*
 * store/local/write_int.h - what the files that write values of the local store share.
 */
#ifndef ZR_LOCAL_WRITE_INT_H
#define ZR_LOCAL_WRITE_INT_H

#include "store/local/local_int.h"

enum {
    ZR_LOCAL_TEMP_BYTES = 64
};

/* Where the bytes of a value come from, unless they are parts in its file. */
struct zr_local_source {
    uint64_t bytes;
    const void *mem; /* NULL: the memory of a device */
    int fd;          /* of the value that a COPY reads; -1: none */
};

/* The file that becomes the value, or is it. */
struct zr_local_file {
    int fd;
    uint64_t bytes; /* of the value */
    bool is_dirty;  /* has bytes of an earlier attempt */
    struct zr_local_owners owners;
    dev_t device; /* 0: set when the value is written */
    ino_t inode;
};

/* These return 0 or an errno. */
int zr_local_write_all(int fd, const unsigned char *from, uint64_t at, uint64_t n);
int zr_local_set_length(int fd, uint64_t n);
/* Copies the first n bytes of a file to `at` in another one. If both are in one file
 * system that shares blocks between files, no bytes are copied. */
int zr_local_copy_bytes(const struct zr_local *l, int from, int to, uint64_t at,
                        uint64_t n);
/* After the last byte: sets the time of the file, syncs it if it must be, and sets op's
 * version if that is wanted. */
int zr_local_write_end(struct zr_local *l, zarr_store_op *op, struct zr_local_file *f);
/* Opens the source of a COPY. The caller closes out->fd unless it is -1. */
zarr_status zr_local_open_source(zarr_store_op *op, struct zr_local_source *out,
                                 zarr_error *err);
/* Ends op, which failed with an errno. */
zarr_status zr_local_fail_write(const struct zr_local *l, zarr_store_op *op, int os_code,
                                const char *what, zarr_error *err);
/* Call it under the lock. OK if the key still has the version op->version. */
zarr_status zr_local_check_version(struct zr_local *l, zarr_store_op *op,
                                   zarr_error *err);
/* Checks a lock that the caller passed, also by a look at its file. If its folder was
 * moved, what the holder read by the key is not what the write would replace. If another
 * process removed the lock file, its name may belong to another writer. */
zarr_status zr_local_check_lock(const struct zr_local *l, zarr_store_op *op,
                                struct zr_local_lock *lk, bool look, zarr_error *err);
/* Writes op's value into a lock file, and gives it the key. */
zarr_status zr_local_put_into_lock(struct zr_local *l, zarr_store_op *op,
                                   struct zr_local_lock *lk,
                                   const struct zr_local_source *from, zarr_error *err);

/* A temporary file in the directory of its key. */
struct zr_local_temp {
    struct zr_local_dir dir;
    int fd; /* -1: none */
    char name[ZR_LOCAL_TEMP_BYTES];
};

/* Makes the file. Returns 0 or an errno. Call zr_local_temp_close() in any case. */
int zr_local_temp_open(struct zr_local *l, const char *key, struct zr_local_temp *t);
/* Writes op's value into the file, and gives it the key. Closes the file, unless it has
 * parts and still its own name after a failure: then the commit may be sent again. */
zarr_status zr_local_temp_put(struct zr_local *l, zarr_store_op *op,
                              struct zr_local_temp *t, const struct zr_local_source *from,
                              zarr_error *err);
/* Removes a file that did not become a value. */
void zr_local_temp_close(struct zr_local_temp *t);

/* A PUT with ZARR_STORE_OP_IN_PARTS. */
zarr_status zr_local_put_parts(struct zr_local *l, zarr_store_op *op,
                               const struct zr_local_source *from, zarr_error *err);

#endif
