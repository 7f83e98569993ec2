/*
 * zarrc/request.h - a read or write under way. The blocking calls of
 * zarrc/array.h are submit + wait; there is one path.
 */
#ifndef ZARRC_REQUEST_H
#define ZARRC_REQUEST_H

#include <zarrc/base.h>
#include <zarrc/error.h>
#include <zarrc/plan.h>

ZARR_BEGIN_DECLS

/** Thread class: shared. */
typedef struct zarr_request zarr_request;

#define ZARR_WAIT_FOREVER UINT64_MAX

/**
 * Waits until the request is done or timeout_ns have passed. *done (may be NULL) tells
 * which.
 * @return the request's own status once done, ZARR_OK while it is not. A request
 * inherited through fork() is CANCELLED in the child.
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_request_wait(zarr_request *request,
                                                       uint64_t timeout_ns, int *done,
                                                       zarr_error *err);

/**
 * Asks the request to stop; chunks under way are finished, no new ones begin. Wait
 * afterwards: memory of the caller is in use until then.
 */
ZARR_API void zarr_request_cancel(zarr_request *request);

/**
 * Counters so far (chunks_done of chunks_total is the progress); the final ones once
 * done. out->struct_size (ZARR_STATS_INIT) says how many bytes are written; 0: none.
 */
ZARR_API void zarr_request_progress(zarr_request *request, zarr_stats *out);

/** Cancels, waits, and frees. NULL is fine. */
ZARR_API void zarr_request_free(zarr_request *request);

ZARR_END_DECLS

#endif
