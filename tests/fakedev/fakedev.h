/*
 * tests/fakedev/fakedev.h - a device made of pages that the CPU cannot touch,
 * for tests only. It is registered like any plug-in's memory, as device type
 * ZARR_DEVICE_EXT, through the public table alone. A handle points at pages
 * without access, so that a dereference crashes at once; the device
 * itself works on a second mapping of the same pages. Freed memory is unmapped
 * and never used again.
 *
 * Two faces: C tests name a fake device of their own; programs that load
 * libzarrc_fakedev.so (Python's ctypes) use plain functions with the same names.
 * Thread class: shared.
 */
#ifndef ZARR_FAKEDEV_H
#define ZARR_FAKEDEV_H

#include <zarrc/plugin/memory.h>

ZARR_BEGIN_DECLS

/** A table with strided copies and fills. Static. */
ZARR_API const zarr_memory_vtable *zarr_fakedev_vtable(void);
/** The same device without copy_box and fill_box: the library has to go through the host.
 */
ZARR_API const zarr_memory_vtable *zarr_fakedev_vtable_plain(void);

/** `self` for a table; NULL: no memory. The table's close() frees it, or
 * zarr_fakedev_free(). */
ZARR_API void *zarr_fakedev_create(void);
ZARR_API void zarr_fakedev_free(void *self);

/** A second device type for one process: the number in copied tables that are made for
 * it. */
ZARR_API void zarr_fakedev_set_type(void *self, int32_t device_type);

typedef struct zarr_fakedev_counters {
    uint64_t allocs, frees, live_blocks, live_bytes, peak_bytes;
    uint64_t copies_up, copies_down, copies_device, bytes_up, bytes_down, bytes_device;
    uint64_t boxes, fills;
    uint64_t faults; /**< calls that broke a rule; each failed with DEVICE */
} zarr_fakedev_counters;
ZARR_API void zarr_fakedev_count(void *self, zarr_fakedev_counters *out);

enum {
    ZARR_FAKEDEV_ALLOC = 1,
    ZARR_FAKEDEV_COPY = 2,
    ZARR_FAKEDEV_BOX = 4,
    ZARR_FAKEDEV_FILL = 8
};
/** The k-th call from now on (1: the next) of the kinds in `calls` fails with `status`; k
 * 0: none. */
ZARR_API void zarr_fakedev_fail(void *self, uint32_t calls, uint64_t k,
                                zarr_status status);

/** Reads and writes the memory behind a handle past the guard, as a test's own eyes. 0:
 * done; -1: not a live handle of any fake device, or out of bounds. */
ZARR_API int zarr_fakedev_peek(const void *handle, uint64_t offset, void *host,
                               uint64_t bytes);
ZARR_API int zarr_fakedev_poke(const void *handle, uint64_t offset, const void *host,
                               uint64_t bytes);

ZARR_END_DECLS

#endif
