/**
 * @file
 * How to make a memory backend: functions for a kind of memory, such as a device, pinned
 * pages or an application's pool. For extenders: stable for each plug-in ABI number.
 *
 * The library touches memory itself only if its backend has the flags
 * ZARR_MEMORY_HOST_READ and ZARR_MEMORY_HOST_WRITE. Otherwise it calls the functions
 * below. Metadata, shard indexes and plans are always in host memory.
 */
#ifndef ZARRC_PLUGIN_MEMORY_H
#define ZARRC_PLUGIN_MEMORY_H

#include <zarrc/base.h>
#include <zarrc/error.h>
#include <zarrc/memory.h>

ZARR_BEGIN_DECLS

/** What the CPU can do with a kind of memory. */
enum {
    ZARR_MEMORY_HOST_READ = 1,  /**< the CPU can read through the pointer */
    ZARR_MEMORY_HOST_WRITE = 2, /**< the CPU can write through the pointer */
    /** work is queued on a stream, and sync() waits for it; for listings */
    ZARR_MEMORY_STREAM_ORDERED = 4
};

/** One side of a copy of boxes. */
typedef struct zarr_box_side {
    /** `offset` is where the first element begins; `bytes` is how many bytes from
     * `handle` on the copy may touch */
    zarr_mem mem;
    int64_t stride[ZARR_MAX_RANK]; /**< bytes to the next element, of any sign */
} zarr_box_side;

/** A box of elements to copy or to fill. */
typedef struct zarr_box {
    uint32_t struct_size;
    int32_t ndim;                  /**< number of dimensions */
    uint32_t item_bytes;           /**< bytes of an element */
    uint32_t swap_bytes;           /**< above 1: reverse each unit of so many bytes */
    uint64_t shape[ZARR_MAX_RANK]; /**< lengths of the dimensions in elements */
    zarr_box_side dst;             /**< where elements go */
    zarr_box_side src;             /**< where they come from; not used when filling */
} zarr_box;

/**
 * A memory backend. Required are `name`, `device_type`, alloc(), free() and copy(). Any
 * other entry may be NULL or 0, which has the meaning that its comment gives.
 *
 * The library calls the functions from any thread, several at once. `self` is what
 * zarr_context_register_memory() got. `stream` is always NULL now: the work is done when
 * the function returns. Functions that fail fill `err` with one line of text.
 */
typedef struct zarr_memory_vtable {
    uint32_t struct_size, flags; /**< `flags`: ZARR_MEMORY_*; 0: the CPU cannot use it */
    const char *name;            /**< such as "host" or "cuda" */
    int32_t device_type; /**< number of DLPack; each number has one backend at most */
    uint32_t alignment;  /**< alignment of blocks of alloc() in bytes; 0: 64 */
    /** Allocates a block of `bytes` bytes on a device, in `*out`. */
    zarr_status (*alloc)(void *self, int32_t device_id, uint64_t bytes, zarr_mem *out,
                         zarr_error *err);
    /** Frees a block of alloc(). */
    void (*free)(void *self, zarr_mem *mem);
    /** Copies `bytes` bytes. Both sides are memory of this backend, or one of them is
     * host memory. */
    zarr_status (*copy)(void *self, const zarr_mem *dst, const zarr_mem *src,
                        uint64_t bytes, void *stream, zarr_error *err);
    /** Copies a box of elements, between the same memories as copy(). NULL: the library
     * packs elements on the host and copies rows. */
    zarr_status (*copy_box)(void *self, const zarr_box *box, void *stream,
                            zarr_error *err);
    /** Sets each element of `box->dst` to the `item_bytes` bytes of `pattern`, which is
     * host memory. NULL: the library makes the elements on the host and copies them. */
    zarr_status (*fill_box)(void *self, const zarr_box *box, const void *pattern,
                            void *stream, zarr_error *err);
    /** Waits for all work on a stream. NULL: nothing is ever queued. */
    zarr_status (*sync)(void *self, void *stream, zarr_error *err);
    /** Frees self with the context; cannot fail. NULL: nothing to free. */
    void (*close)(void *self);
} zarr_memory_vtable;

ZARR_END_DECLS

#endif
