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
/* Memory of the host under the name of pinned or managed memory; NULL for other types.
 * Its `self` is the table itself. */
ZARR_API const zarr_memory_vtable *zarr_fakedev_vtable_near(int32_t device_type);

/**
 * The same device with every entry of the table. Work on a stream is done only when the
 * stream is waited for, so that a missing wait shows wrong data. Until then the host's
 * side of a copy down holds 0xEE, changed sources are faults, and freeing memory of
 * queued work aborts.
 */
ZARR_API const zarr_memory_vtable *zarr_fakedev_vtable_late(void);

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

/** What only the table of late streams counts. */
typedef struct zarr_fakedev_late_counters {
    uint64_t calls;             /**< of all entries except allocations and limit() */
    uint64_t lists, list_items; /**< calls with lists, and their runs or boxes */
    uint64_t equals;            /**< runs compared on the device */
    uint64_t queued, syncs, orders;
    uint64_t streams, streams_opened; /**< open now; ever opened */
    uint64_t pinned_allocs, pinned_blocks, pinned_bytes, pinned_peak;
} zarr_fakedev_late_counters;
ZARR_API void zarr_fakedev_late_count(void *self, zarr_fakedev_late_counters *out);

enum {
    ZARR_FAKEDEV_ALLOC = 1,
    ZARR_FAKEDEV_COPY = 2,
    ZARR_FAKEDEV_BOX = 4,
    ZARR_FAKEDEV_FILL = 8,
    ZARR_FAKEDEV_LIST = 16,   /**< copy_list() */
    ZARR_FAKEDEV_BOXES = 32,  /**< copy_boxes() */
    ZARR_FAKEDEV_FILLS = 64,  /**< fill_boxes() */
    ZARR_FAKEDEV_EQUAL = 128, /**< equal_list() */
    ZARR_FAKEDEV_STREAM = 256,
    ZARR_FAKEDEV_ORDER = 512,
    ZARR_FAKEDEV_SYNC = 1024,
    ZARR_FAKEDEV_HOST = 2048, /**< host_alloc() */
    ZARR_FAKEDEV_LIMIT = 4096,
    ZARR_FAKEDEV_ALL = 8191
};
/** Calls of these kinds answer UNSUPPORTED from now on; 0: none. */
ZARR_API void zarr_fakedev_decline(void *self, uint32_t calls);
/** Budgets in bytes, which limit() tells and allocations keep; 0: none. */
ZARR_API void zarr_fakedev_budget(void *self, uint64_t device_bytes,
                                  uint64_t pinned_bytes);
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
