/**
 * @file
 * How to make a memory backend: functions for a kind of memory, such as a device, pinned
 * pages or an application's pool. For extenders: stable for each plug-in ABI number.
 *
 * The library touches memory itself only if its backend has the flags
 * ZARR_MEMORY_HOST_READ and ZARR_MEMORY_HOST_WRITE. Otherwise it calls the functions
 * below. Tensors in memory with both flags are used like host memory: stores read into
 * them, and codecs of the CPU decode into them. Metadata, shard indexes and plans are
 * always in host memory.
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
    ZARR_MEMORY_STREAM_ORDERED = 4,
    /**
     * the table is an allocator for a kind of memory that another backend copies, such as
     * an application's pool beside a plug-in. The library uses only alloc(), free(),
     * host_alloc(), host_free(), limit(), classify() and close(), and copy() may be NULL.
     * A kind has any number of allocators. zarr_context_options.allocators chooses the
     * one that the library allocates with, zarr_memory_alloc_from() any of them. Not for
     * ZARR_DEVICE_CPU, whose memory comes from zarr_context_options.allocator
     */
    ZARR_MEMORY_ALLOCATOR = 8
};

/** One side of a copy of boxes. */
typedef struct zarr_box_side {
    /** `offset` is where the first element begins; `bytes` is how many bytes from
     * `handle` on the copy may touch */
    zarr_memory mem;
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

/** What a listing shows of a device. */
typedef struct zarr_device_facts {
    uint32_t struct_size, reserved;
    uint64_t total_bytes; /**< size of its memory; 0: not known */
    uint64_t free_bytes;  /**< memory that is free now; 0: not known */
    char name[128];       /**< such as the product's name, as UTF-8; "": not known */
} zarr_device_facts;

/**
 * A memory backend. Required are `name`, `device_type`, alloc(), free() and copy(), which
 * an allocator need not have. Any other entry may be NULL or 0, which has the meaning
 * that its comment gives. The table grows at its end: a backend sets `struct_size` to the
 * size of its own table, and the library does without the entries that the table lacks.
 *
 * The library calls the functions from any thread, several at once. `self` is what
 * zarr_context_register_memory() got. Functions that fail fill `err` with one line of
 * text.
 *
 * Streams. If `stream` is NULL, the work is done when the function returns. Otherwise the
 * function may queue the work on that stream, which stream_open() made. Work on one
 * stream is done in the order of the calls. One thread at a time uses a stream. The
 * arguments themselves (lists, boxes, patterns) are only borrowed for the call, so a
 * function copies what it needs later. The memory that they describe stays valid and
 * unchanged until sync() returns, also after a failure: a function that fails may have
 * queued a part of its work. NO_MEMORY and DEVICE may be reported late, by any later
 * call on the stream.
 *
 * Lists. Their runs and boxes do not overlap and may be done in any order. In one call
 * all destinations are memory of one device, or all are host memory; so are all sources.
 */
typedef struct zarr_memory_vtable {
    uint32_t struct_size, flags; /**< `flags`: ZARR_MEMORY_*; 0: the CPU cannot use it */
    const char *name;            /**< such as "host" or "cuda" */
    /** number of DLPack; each number has one backend at most that is not an allocator */
    int32_t device_type;
    uint32_t alignment; /**< alignment of blocks of alloc() in bytes; 0: 64 */
    /** Allocates a block of `bytes` bytes on a device, in `*out`. */
    zarr_status (*alloc)(void *self, int32_t device_id, uint64_t bytes, zarr_memory *out,
                         zarr_error *err);
    /** Frees a block of alloc(). No queued work uses the block. */
    void (*free)(void *self, zarr_memory *mem);
    /** Copies `bytes` bytes. Both sides are memory of this backend, or one of them is
     * host memory. */
    zarr_status (*copy)(void *self, const zarr_memory *dst, const zarr_memory *src,
                        uint64_t bytes, void *stream, zarr_error *err);
    /** Copies a box of elements, between the same memories as copy(). UNSUPPORTED, NULL:
     * if the host is one side, the library packs the elements in a block of the device,
     * by boxes inside of the device, and copies the block. If that is UNSUPPORTED, too,
     * it packs them on the host and copies rows. Nothing was queued. */
    zarr_status (*copy_box)(void *self, const zarr_box *box, void *stream,
                            zarr_error *err);
    /** Sets each element of `box->dst` to the `item_bytes` bytes of `pattern`, which is
     * host memory. UNSUPPORTED, NULL: the library makes the elements on the host and
     * copies them. */
    zarr_status (*fill_box)(void *self, const zarr_box *box, const void *pattern,
                            void *stream, zarr_error *err);
    /** Waits for all work on a stream: one of stream_open(), or a foreign one, see
     * order(). NULL: nothing is ever queued. */
    zarr_status (*sync)(void *self, void *stream, zarr_error *err);
    /** Frees self with the context; cannot fail. NULL: nothing to free. */
    void (*close)(void *self);

    /** Copies `n` runs, run i of `dst[i].bytes` bytes, between the same memories as
     * copy(). `src[i].bytes` is the same. UNSUPPORTED, NULL: the library calls copy() for
     * each run; nothing was queued. */
    zarr_status (*copy_list)(void *self, const zarr_memory *dst, const zarr_memory *src,
                             uint64_t n, void *stream, zarr_error *err);
    /** Copies `n` boxes as copy_box(). UNSUPPORTED, NULL: the library calls copy_box()
     * for each; nothing was queued. */
    zarr_status (*copy_boxes)(void *self, const zarr_box *boxes, uint64_t n, void *stream,
                              zarr_error *err);
    /** Fills `n` boxes as fill_box(), all with the same pattern and `item_bytes`.
     * UNSUPPORTED, NULL: the library calls fill_box() for each; nothing was queued. */
    zarr_status (*fill_boxes)(void *self, const zarr_box *boxes, uint64_t n,
                              const void *pattern, void *stream, zarr_error *err);
    /**
     * Tells which of `n` runs in memory of this backend hold nothing but repetitions of a
     * pattern of `item_bytes` bytes, compared bit for bit. `src[i].bytes` is a multiple
     * of `item_bytes`. equal[i] becomes 1 or 0; `equal` is ordinary host memory that
     * stays valid until sync(), and has its values after sync(). UNSUPPORTED, NULL: the
     * library copies the runs to the host in pieces and compares there; nothing was
     * queued.
     */
    zarr_status (*equal_list)(void *self, const zarr_memory *src, uint64_t n,
                              const void *pattern, uint32_t item_bytes, uint8_t *equal,
                              void *stream, zarr_error *err);
    /** Makes a stream of a device, which is not NULL. The library opens streams only if
     * sync() is there, too, and keeps a few of them for later requests, until
     * zarr_context_trim() or the end of the context. NULL: there are none, and `stream`
     * is always NULL. */
    zarr_status (*stream_open)(void *self, int32_t device_id, void **stream,
                               zarr_error *err);
    /** Frees a stream of stream_open(). The library has called sync() after the last
     * work. NULL: nothing to free. */
    void (*stream_close)(void *self, void *stream);
    /**
     * Makes work that is queued on `stream` later run after the work that is on `foreign`
     * now. `foreign` is a stream of the application in the form of the device's own
     * interface, such as a CUstream; it is not NULL. DLPack's numbers for default streams
     * are legal where the device has them (CUDA: 1 legacy, 2 per thread). NULL: the
     * library calls sync(`foreign`).
     */
    zarr_status (*order)(void *self, void *stream, void *foreign, zarr_error *err);
    /**
     * Allocates host memory that the device reads and writes fast (pinned pages), for
     * copies to and from `device_id`. `out->device_type` is ZARR_DEVICE_CPU, so that
     * stores and codecs of the CPU use it as any host memory. The alignment is that of
     * `alignment`. NULL: the library takes ordinary host memory.
     */
    zarr_status (*host_alloc)(void *self, int32_t device_id, uint64_t bytes,
                              zarr_memory *out, zarr_error *err);
    /** Frees a block of host_alloc(). Required with host_alloc(). No queued work uses the
     * block. */
    void (*host_free)(void *self, zarr_memory *mem);
    /**
     * Tells whether a pointer is memory of the device's interface: returns 1 and sets
     * both numbers, also those of a related kind (managed, pinned); else returns 0. Only
     * for kinds whose handles are addresses of the process. It must not follow the
     * pointer. NULL: no pointer is known.
     */
    int (*classify)(void *self, const void *pointer, int32_t *device_type,
                    int32_t *device_id);
    /** Tells how many bytes of a device's memory the library may use in all, such as the
     * memory that is free now. `*bytes` arrives as UINT64_MAX, which means no limit. The
     * library asks once, before it first allocates there. NULL: there is no limit. */
    zarr_status (*limit)(void *self, int32_t device_id, uint64_t *bytes, zarr_error *err);
    /** Tells how many devices there are; their numbers begin at 0. `*n` arrives as 1.
     * NULL: there is one. */
    zarr_status (*device_count)(void *self, uint32_t *n, zarr_error *err);
    /** Describes a device for listings. `*out` arrives with its `struct_size`, and with
     * zeros. NULL: only the number of the device is listed. */
    zarr_status (*describe)(void *self, int32_t device_id, zarr_device_facts *out,
                            zarr_error *err);
    /**
     * Tells whether files below a directory can be read into memory of this kind, and
     * written from it, without a way through host memory. `directory` is a descriptor of
     * it. UNSUPPORTED says in `err` what is missing. NULL: they cannot. A store of URL
     * "gds:" asks once, when it is opened.
     */
    zarr_status (*reaches_files)(void *self, int directory, zarr_error *err);
    /**
     * Reads `dst->bytes` bytes of a file from `offset` on, before it returns. `file` is a
     * descriptor opened for reading; the function may open the file again by it, and
     * keeps nothing of the descriptor. Adds to `*staged` the bytes that went through host
     * memory. CONFLICT: the file ends before. Required with reaches_files().
     */
    zarr_status (*read_file)(void *self, int file, uint64_t offset,
                             const zarr_memory *dst, uint64_t *staged, zarr_error *err);
    /** Writes `src->bytes` bytes at the beginning of a file, which is empty or has only
     * space reserved, before it returns. `file` is open for reading and writing. `staged`
     * as for read_file(). Required with reaches_files(). */
    zarr_status (*write_file)(void *self, int file, const zarr_memory *src,
                              uint64_t *staged, zarr_error *err);
    /** Finds the number of a device that a text names, such as a UUID. It is what follows
     * the colon in a text of zarr_memory_parse(), and begins with a letter. NULL: devices
     * have numbers only.
     * @retval ZARR_ERR_INVALID no device, or more than one, has the name */
    zarr_status (*find)(void *self, const char *text, int32_t *device_id,
                        zarr_error *err);
} zarr_memory_vtable;

ZARR_END_DECLS

#endif
