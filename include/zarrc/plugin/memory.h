/*
 * zarrc/plugin/memory.h - how to make a kind of memory known: a device, pinned
 * pages, an application's pool. FOR EXTENDERS: stable per plug-in ABI number.
 *
 * The library never touches memory whose backend does not say HOST_READ or
 * HOST_WRITE; it calls these functions instead. Metadata, shard indexes and
 * plans never live there.
 */
#ifndef ZARRC_PLUGIN_MEMORY_H
#define ZARRC_PLUGIN_MEMORY_H

#include <zarrc/base.h>
#include <zarrc/error.h>
#include <zarrc/memory.h>

ZARR_BEGIN_DECLS

enum {
    ZARR_MEMORY_HOST_READ = 1,     /**< the CPU may read through the pointer */
    ZARR_MEMORY_HOST_WRITE = 2,    /**< the CPU may write through the pointer */
    ZARR_MEMORY_STREAM_ORDERED = 4 /**< work is queued on a stream; sync() ends it */
};

/** One side of a strided box: byte strides of any sign, the address of its first element.
 */
typedef struct zarr_box_side {
    zarr_mem mem; /**< offset is the first element's place; bytes the extent that may be
                     touched behind handle + 0 */
    int64_t stride[ZARR_MAX_RANK];
} zarr_box_side;

/** Copies shape[0] x ... elements of item_bytes; swap_bytes > 1 reverses each unit of
 * that many bytes on the way. */
typedef struct zarr_box {
    uint32_t struct_size;
    int32_t ndim;
    uint32_t item_bytes, swap_bytes;
    uint64_t shape[ZARR_MAX_RANK];
    zarr_box_side dst, src;
} zarr_box;

/**
 * Required: name, device_type, alloc, free and copy; every other entry may be NULL or 0,
 * with the default told at it. All may be called from any thread at once. stream NULL:
 * done on return; the library passes nothing else now.
 */
typedef struct zarr_memory_vtable {
    uint32_t struct_size, flags; /**< ZARR_MEMORY_*; 0: the CPU cannot touch it */
    const char *name;            /**< "host", "fake", "cuda" */
    int32_t device_type;         /**< DLPack's number; one backend a number */
    uint32_t alignment;          /**< of alloc(); 0: 64 */
    zarr_status (*alloc)(void *self, int32_t device_id, uint64_t bytes, zarr_mem *out,
                         zarr_error *err);
    void (*free)(void *self, zarr_mem *mem);
    /** Copies between two memories of this backend, or between one of it and host memory
     * (either way). */
    zarr_status (*copy)(void *self, const zarr_mem *dst, const zarr_mem *src,
                        uint64_t bytes, void *stream, zarr_error *err);
    /** The same for strided boxes. NULL: the library packs on the host and copies rows.
     */
    zarr_status (*copy_box)(void *self, const zarr_box *box, void *stream,
                            zarr_error *err);
    /** Fills box->dst with one element's pattern (host memory, item_bytes long). NULL:
     * staged from the host. */
    zarr_status (*fill_box)(void *self, const zarr_box *box, const void *pattern,
                            void *stream, zarr_error *err);
    /** Waits for all work queued on stream. NULL: nothing is ever queued. */
    zarr_status (*sync)(void *self, void *stream, zarr_error *err);
    /** Frees self with the context; cannot fail. NULL: nothing to do. */
    void (*close)(void *self);
} zarr_memory_vtable;

ZARR_END_DECLS

#endif
