/*
 * cuda/cufile.h - the part of NVIDIA's cuFile that the plug-in uses, in declarations of
 * its own, and reads and writes of files by it. libcufile.so.0 is loaded when the first
 * store with a URL "gds:" is opened, never before the driver has found a device:
 * cuFileDriverOpen() does not return on a machine without one.
 *
 * Spec: cuFile API reference guide.
 */
#ifndef CUDA_CUFILE_H
#define CUDA_CUFILE_H

#include "device.h"

#include <stdbool.h>
#include <sys/types.h>

struct cufile_result {
    int code; /* 0: success; else CUfileOpError, from 5001 on */
    int cuda; /* CUresult, if the code says that the driver failed */
};
struct cufile_properties {
    struct {
        unsigned major, minor;
        size_t poll_threshold, most_direct;
        unsigned status, control;
    } nvfs;
    unsigned features, device_cache, buffer_cache, pinned, batch, batch_timeout;
    unsigned char room[256]; /* for newer versions */
};
struct cufile_file {
    int type;
    union {
        int fd;
        void *handle;
    } is;
    const void *operations;
};
enum {
    CUFILE_OPAQUE_FD = 1,
    CUFILE_ALLOW_COMPAT_MODE = 1 /* a parameter of cuFileSetParameterBool() */
};

/* X(result, name, arguments) */
#define CUFILE_CALLS(X)                                                                  \
    X(struct cufile_result, cuFileSetParameterBool, (int which, bool value))             \
    X(struct cufile_result, cuFileDriverOpen, (void))                                    \
    X(struct cufile_result, cuFileDriverClose_v2, (void))                                \
    X(struct cufile_result, cuFileDriverGetProperties, (struct cufile_properties * out)) \
    X(struct cufile_result, cuFileHandleRegister,                                        \
      (void **out, struct cufile_file *file))                                            \
    X(void, cuFileHandleDeregister, (void *handle))                                      \
    X(struct cufile_result, cuFileBufRegister,                                           \
      (const void *base, size_t bytes, int flags))                                       \
    X(struct cufile_result, cuFileBufDeregister, (const void *base))                     \
    X(ssize_t, cuFileRead,                                                               \
      (void *handle, void *base, size_t bytes, off_t file_offset, off_t base_offset))    \
    X(ssize_t, cuFileWrite,                                                              \
      (void *handle, const void *base, size_t bytes, off_t file_offset,                  \
       off_t base_offset))

struct cufile_library {
#define CUFILE_MEMBER(result, name, arguments) result(*name) arguments;
    CUFILE_CALLS(CUFILE_MEMBER)
#undef CUFILE_MEMBER
};

/* ---- cufile.c -------------------- */

extern struct cufile_library cufile; /* filled by cufile_start() */

/* Where the library is: a file; NULL: where the loader finds it. Before cufile_start().
 */
void cufile_place(const char *path);
/* Loads the library and opens its driver, once. UNSUPPORTED says why it is not used. */
zarr_status cufile_start(zarr_error *err);
/* Whether it was started, and works in this process. */
int cufile_runs(void);
/* Closes the driver. Nothing is registered any more. */
void cufile_stop(void);
/* For the child of a fork. */
void cufile_in_child(void);

/* ---- cufile_handle.c: registered files -------------------- */

struct cufile_handle;
/* Opens the file of a descriptor again, with O_DIRECT, and registers it. UNSUPPORTED: the
 * file system or cuFile refuses. `keep`: handles for reading are kept for later. */
zarr_status cufile_handle_take(int file, int keep, struct cufile_handle **out,
                               zarr_error *err);
void *cufile_raw_handle(const struct cufile_handle *h);
void cufile_handle_give(struct cufile_handle *h);
extern pthread_mutex_t cufile_handles_mutex;
/* Closes all; none is in use. */
void cufile_handles_close(void);

/* ---- gds.c: entries of the memory's table -------------------- */

extern pthread_mutex_t gds_mutex; /* of the blocks of all devices */
/* For contexts of the library; the last one frees what is kept and stops cuFile. */
void gds_hold(void);
void gds_release(void);
zarr_status gds_reaches_files(void *self, int directory, zarr_error *err);
zarr_status gds_read_file(void *self, int file, uint64_t offset, const zarr_memory *dst,
                          uint64_t *count, zarr_error *err);
zarr_status gds_write_file(void *self, int file, const zarr_memory *src, uint64_t *count,
                           zarr_error *err);

#endif
