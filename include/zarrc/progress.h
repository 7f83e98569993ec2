/**
 * @file
 * The progress of calls on whole hierarchies: zarr_node_verify(), zarr_node_diff() and
 * zarr_node_reencode().
 */
#ifndef ZARRC_PROGRESS_H
#define ZARRC_PROGRESS_H

#include <zarrc/base.h>

ZARR_BEGIN_DECLS

/**
 * The progress of a call. Numbers of what is done never fall during a call, except at
 * ZARR_PROGRESS_COMPARING, and totals do not change. Totals: 0 means not known, and
 * UINT64_MAX that much or more.
 */
typedef struct zarr_progress {
    uint32_t struct_size, flags;
    const char *path; /**< current node, from the store's root; borrowed for the call */
    uint64_t objects_done;  /**< stored objects that were checked or written */
    uint64_t objects_total; /**< objects that the call will check or write */
    uint64_t bytes_done;    /**< bytes of these objects, or of decoded elements */
    uint64_t bytes_total;   /**< value of `bytes_done` at the end */
    /** bytes in `bytes_done` that needed no work, because they were finished before or
     * are not stored. A rate should not count them */
    uint64_t bytes_skipped;
} zarr_progress;

/** Initial value of a zarr_progress. */
#define ZARR_PROGRESS_INIT ZARR_SIZE_FIRST(zarr_progress)

/** Receives the progress of a call. Called on any thread, also of the pool, unless the
 * call says otherwise; one call at a time, without a lock held. */
typedef void (*zarr_progress_fn)(void *user, const zarr_progress *so_far);

ZARR_END_DECLS

#endif
