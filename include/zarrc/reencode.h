/**
 * @file
 * Re-encoding: zarr_node_reencode() writes a node with everything below it in other
 * chunks, shards, codecs, keys or another format. Every element is decoded and encoded
 * again, which zarr_node_copy() and zarr_node_migrate() avoid.
 */
#ifndef ZARRC_REENCODE_H
#define ZARRC_REENCODE_H

#include <zarrc/base.h>
#include <zarrc/create.h>
#include <zarrc/error.h>
#include <zarrc/io.h>
#include <zarrc/memory.h>
#include <zarrc/progress.h>
#include <zarrc/types.h>

ZARR_BEGIN_DECLS

/** Flags of zarr_reencode_options. */
enum {
    /** continue an interrupted call that had the same options. If there is none, begin;
     * if the destination is complete, do nothing */
    ZARR_REENCODE_RESUME = 1,
    ZARR_REENCODE_OVERWRITE = 2, /**< delete the node at the destination first */
    ZARR_REENCODE_VERIFY = 4,    /**< at the end, read both nodes and compare every bit */
    /** if the format changes, leave fill values and attributes `_FillValue` as they are,
     * even if this changes which elements are missing */
    ZARR_REENCODE_KEEP_FILL = 8,
    /** the call fails with ZARR_ERR_NOT_FOUND if the source lacks a chunk. Default: its
     * elements have the fill value */
    ZARR_REENCODE_MISSING_ERROR = 16,
    /** with ZARR_REENCODE_OVERWRITE: first remove the old nodes from the consolidated
     * metadata of the groups above (ZARR_CONSOLIDATED_REMOVE). Call
     * zarr_group_consolidated_update() afterwards to add the new nodes */
    ZARR_REENCODE_CONSOLIDATED = 32
};

/** What a call had to do. */
enum {
    ZARR_REENCODE_NEW = 0,     /**< everything */
    ZARR_REENCODE_RESUMED = 1, /**< the rest of an interrupted call */
    ZARR_REENCODE_COMPLETE = 2 /**< nothing: the destination was complete */
};

/** What the destination holds if the call fails with ZARR_ERR_EXISTS. */
enum {
    ZARR_REENCODE_FOUND_NODE = 1,  /**< another node */
    ZARR_REENCODE_FOUND_FILES = 2, /**< keys that are not a node */
    ZARR_REENCODE_FOUND_JOB = 3,   /**< the work of an interrupted call, to be continued
                                    with ZARR_REENCODE_RESUME */
    ZARR_REENCODE_FOUND_OTHER_JOB = 4 /**< that of another source or options */
};

/** Flag of a zarr_progress: the comparison of ZARR_REENCODE_VERIFY has begun, and the
 * numbers began again. */
#define ZARR_PROGRESS_COMPARING 1u

/** Options of zarr_node_reencode(). */
typedef struct zarr_reencode_options {
    uint32_t struct_size, flags; /**< `flags`: ZARR_REENCODE_* */
    int32_t zarr_format;         /**< format of new groups and arrays: 2 or 3; 0: the
                                    source's. With `make`: of groups */
    uint32_t reserved;
    /**
     * creates the metadata of one new array: calls zarr_array_create() with `path` and
     * the store `target`, which gets only metadata. The new array must have the shape and
     * the data type of `source`; with `read`, only as many dimensions. Its spec may be
     * `like` `source`. If the function fails, the call returns its status before anything
     * is written. NULL: new arrays are as `changes` says
     */
    zarr_status (*make)(void *user, zarr_array *source, zarr_store *target,
                        const char *path, zarr_error *err);
    void *make_user; /**< passed to `make` */
    /** bytes for buffers, not counted in the context's budget. A larger shard of the
     * destination is written in parts (zarr_shard_writer_open()). If a chunk is larger,
     * or a shard that cannot be written in parts, the call fails with ZARR_ERR_LIMIT
     * before it changes anything. 0: half of the context's memory_bytes */
    uint64_t buffer_bytes;
    zarr_progress_fn progress; /**< receives decoded bytes and objects; may be NULL */
    void *progress_user;       /**< passed to `progress` */
    /** stops the call with ZARR_ERR_CANCELLED once it is set; borrowed; may be NULL */
    zarr_cancel *cancel;
    /**
     * how new arrays differ from the arrays of the source. Each new array is `like` its
     * source, with these changes: chunks, shards, codecs, keys, fill value, names,
     * attributes and order. `shape`, `data_type`, `document` and `like` must be NULL. In
     * a group, `chunk_shape`, `shard_shape`, `chunk_grid` and `dimension_names` apply to
     * the arrays with `ndim` dimensions. NULL: only `zarr_format` differs. Borrowed for
     * the call; excludes `make`
     */
    const zarr_array_spec *changes;
    /** called before anything is written, for each node that loses something in the new
     * format, such as its missing value. `path` is that of the source, and `text` says in
     * one line what is lost. May be NULL */
    void (*warn)(void *user, const char *path, const char *text);
    void *warn_user; /**< passed to `warn` */
    /**
     * reads a box of the new array from `source`, for a crop or another data type. The
     * box begins at `start` in the new array and has the shape of `dst`. `dst` is host
     * memory in C order, without gaps, of the new array's data type. The function passes
     * `io` to zarr_array_read(). NULL: elements keep their places and their data type
     */
    zarr_status (*read)(void *user, zarr_array *source, const uint64_t *start,
                        const zarr_tensor *dst, const zarr_io_options *io,
                        zarr_error *err);
    void *read_user; /**< passed to `read` */
    /** says in any words what `read` does. ZARR_REENCODE_RESUME only continues a call
     * with the same text. Borrowed for the call; NULL: "" */
    const char *read_text;
} zarr_reencode_options;

/** Initial value of a zarr_reencode_options. */
#define ZARR_REENCODE_OPTIONS_INIT ZARR_SIZE_FIRST(zarr_reencode_options)

/** What zarr_node_reencode() did. */
typedef struct zarr_reencode_result {
    uint32_t struct_size, flags;
    uint32_t state;           /**< ZARR_REENCODE_NEW, RESUMED or COMPLETE */
    uint32_t found;           /**< with ZARR_ERR_EXISTS: ZARR_REENCODE_FOUND_*; else 0 */
    uint32_t verified;        /**< 1: every bit was compared */
    uint32_t differs;         /**< with ZARR_ERR_CORRUPT: 1: a bit differs */
    uint64_t n_arrays;        /**< arrays of the node */
    uint64_t n_groups;        /**< groups of the node */
    uint64_t bytes;           /**< decoded bytes of all arrays */
    uint64_t bytes_skipped;   /**< bytes of these that were finished before */
    uint64_t bytes_empty;     /**< bytes of these that are not stored */
    uint64_t objects_written; /**< blocks that were written */
    uint64_t unit_bytes;      /**< with ZARR_ERR_LIMIT: the least `buffer_bytes`, or 0 */
} zarr_reencode_result;

/** Initial value of a zarr_reencode_result. */
#define ZARR_REENCODE_RESULT_INIT ZARR_SIZE_FIRST(zarr_reencode_result)

/**
 * Writes a node with everything below it in another encoding. The source is not changed.
 * All functions of the options are called on the caller's thread.
 *
 * If the format of an array with dimension names changes, its missing value stays the
 * same, as zarr_node_migrate() describes. No element changes. A fill value and an
 * attribute `_FillValue` that `make` or `changes` give stay as given.
 *
 * The destination becomes a node at the end, when every chunk is written. Until then it
 * has chunks and one object, `.zarrc-job`. If the call is interrupted, the same call with
 * ZARR_REENCODE_RESUME continues. After a loss of power use ZARR_REENCODE_VERIFY as well.
 *
 * @param src,src_path store and path of the node
 * @param dst,dst_path store and path of the new node; the store may be the same
 * @param result filled up to its struct_size, also after a failure; may be NULL
 * @param opts options; NULL: defaults
 * @retval ZARR_ERR_NOT_FOUND there is no node at the source
 * @retval ZARR_ERR_EXISTS the destination is not empty; `result->found` tells what it
 * holds
 * @retval ZARR_ERR_INVALID source and destination are one place, or one is inside the
 * other; or `make` created an array of another shape or data type; or a member of
 * `changes` is wrong
 * @retval ZARR_ERR_LIMIT buffers are too small, or a grid has more than 2^64 chunks
 * @retval ZARR_ERR_CORRUPT a node or chunk of the source cannot be read, or
 * `result->differs`
 * @retval ZARR_ERR_UNSUPPORTED the new format has no form for an array of the source
 * @retval ZARR_ERR_CONFLICT another call copies, re-encodes or deletes at the destination
 * (`os_code` EBUSY), and nothing was changed; or another writer resized the source
 * @retval ZARR_ERR_CANCELLED `cancel` was set
 * @retval ZARR_ERR_IO a store failed
 * @see zarr_node_copy(), zarr_node_migrate()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_node_reencode(
    zarr_store *src, const char *src_path, zarr_store *dst, const char *dst_path,
    zarr_reencode_result *result, const zarr_reencode_options *opts, zarr_error *err);

ZARR_END_DECLS

#endif
