/**
 * @file
 * Requests: reads and writes that run while the caller does something else. The blocking
 * calls are carried out in the same way.
 */
#ifndef ZARRC_REQUEST_H
#define ZARRC_REQUEST_H

#include <zarrc/base.h>
#include <zarrc/error.h>
#include <zarrc/plan.h>

ZARR_BEGIN_DECLS

/** A read or write in progress. Thread class: shared. */
typedef struct zarr_request zarr_request;

/** A timeout that never ends. */
#define ZARR_WAIT_FOREVER UINT64_MAX

/**
 * Waits until a request is done, or until a time has passed. It may be called again, also
 * after the request is done, and from several threads.
 *
 * @param request from zarr_array_read_submit() or zarr_array_write_submit()
 * @param timeout_ns nanoseconds to wait at most; 0: only ask; ZARR_WAIT_FOREVER: no limit
 * @param done becomes 1 if the request is done, else 0; may be NULL
 * @return ZARR_OK while the request runs; the status of the read or write when it is done
 * @retval ZARR_ERR_CANCELLED the request was cancelled, or the parent of this process
 * submitted it
 * @retval ZARR_ERR_INVALID `request` is NULL
 * @see zarr_request_cancel(), zarr_request_free(), zarr_request_progress()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_request_wait(zarr_request *request,
                                                       uint64_t timeout_ns, int *done,
                                                       zarr_error *err);

/**
 * Asks a request to stop. Chunks in progress are finished, and no new ones begin.
 * The call returns at once. Wait for the request afterwards: until it is done, it uses
 * the memory of its tensor.
 * @param request may be NULL
 * @see zarr_request_wait(), zarr_request_free()
 */
ZARR_API void zarr_request_cancel(zarr_request *request);

/**
 * Tells how far a request is: `chunks_done` of `chunks_total` chunks. When the request is
 * done, the numbers are final.
 * @param request borrowed
 * @param out filled; `struct_size` must be set, as ZARR_STATS_INIT does, and tells how
 * many bytes are written
 * @see zarr_stats
 */
ZARR_API void zarr_request_progress(zarr_request *request, zarr_stats *out);

/**
 * Frees a request. A request that still runs is cancelled first, and the call waits for
 * its end. Afterwards the memory of its tensor is free.
 *
 * Thread class: solo; no other thread may use the request any more.
 * @param request may be NULL
 */
ZARR_API void zarr_request_free(zarr_request *request);

ZARR_END_DECLS

#endif
