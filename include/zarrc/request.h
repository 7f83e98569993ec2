/**
 * @file
 * Requests: reads, writes and appends that run in the background. A program learns of the
 * end of a request in one of three ways. It waits, the library calls a function of the
 * program, or a file descriptor for the event loop becomes readable.
 */
#ifndef ZARRC_REQUEST_H
#define ZARRC_REQUEST_H

#include <zarrc/base.h>
#include <zarrc/error.h>
#include <zarrc/plan.h>
#include <zarrc/types.h>

ZARR_BEGIN_DECLS

/** A timeout that never ends. */
#define ZARR_WAIT_FOREVER UINT64_MAX

/**
 * Waits until a request is done, or until a time has passed. The program may call it
 * again, even after the request is done, and from several threads.
 *
 * @param request from a call that submits: zarr_array_read_submit(),
 * zarr_array_write_submit(), zarr_array_append_submit(), zarr_array_read_many_submit() or
 * zarr_array_write_many_submit()
 * @param timeout_ns nanoseconds to wait at most; 0: only ask; ZARR_WAIT_FOREVER: no limit
 * @param done becomes 1 if the request is done, else 0; may be NULL
 * @return ZARR_OK while the request runs; afterwards the status of the request, as the
 * blocking call would return it
 * @retval ZARR_ERR_CANCELLED the request was cancelled, or the parent of this process
 * submitted it
 * @retval ZARR_ERR_INVALID `request` is NULL
 * @see zarr_request_then(), zarr_request_fd(), zarr_request_cancel(),
 * zarr_request_free(), zarr_request_progress()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_request_wait(zarr_request *request,
                                                       uint64_t timeout_ns, int *done,
                                                       zarr_error *err);

/**
 * Receives the end of a request.
 * @param user as given to zarr_request_then()
 * @param status what zarr_request_wait() returns
 * @param err why it failed, borrowed for the call; NULL if `status` is ZARR_OK
 */
typedef void (*zarr_request_fn)(void *user, zarr_status status, const zarr_error *err);

/**
 * Adds a function that the library calls once, when a request is done. The library holds
 * no lock meanwhile: the function may submit another request, wait for another one, free
 * this one, or run for long.
 *
 * The functions of one request run one after another, in the order in which they were
 * added, on the thread that ends the request. If the request is done and all earlier
 * functions have returned, this call itself calls the function before it returns.
 *
 * zarr_request_wait() may return before the library calls the functions.
 * zarr_request_free() returns after the last function has returned, unless a function
 * calls it. In that case the program must not use the handle any more, and the library
 * still calls the remaining functions.
 *
 * After a fork, functions that were added before it run in the parent process only. A
 * function that the child adds to a request of the parent is called at once, with
 * ZARR_ERR_CANCELLED.
 *
 * @param request borrowed
 * @param fn called with `user`, the status and the error of the request
 * @param user passed to `fn`; must be valid until then
 * @retval ZARR_ERR_NO_MEMORY an allocation failed; `fn` is not called
 * @retval ZARR_ERR_INVALID `request` or `fn` is NULL
 * @see zarr_request_fd(), zarr_request_wait()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_request_then(zarr_request *request,
                                                       zarr_request_fn fn, void *user,
                                                       zarr_error *err);

/**
 * Gets a file descriptor that becomes readable when a request is done, and stays
 * readable. zarr_request_wait() then returns at once. The descriptor works in poll(),
 * epoll, kqueue, and add_reader() of Python's asyncio. Each call returns the same
 * descriptor. The program must not read from it, write to it or close it.
 * zarr_request_free() closes it, so remove it from the event loop before. It is closed on
 * exec.
 *
 * In a child process, a descriptor that was inherited through fork still reports the end
 * of the parent's request.
 *
 * @param request borrowed
 * @param fd becomes the descriptor, owned by the request; -1 after a failure
 * @retval ZARR_ERR_IO the system has no descriptor left
 * @retval ZARR_ERR_CANCELLED the parent of this process submitted the request
 * @retval ZARR_ERR_INVALID `request` is NULL
 * @see zarr_request_then()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_request_fd(zarr_request *request, int *fd,
                                                     zarr_error *err);

/**
 * Asks a request to stop. It finishes chunks in progress and begins no others. The call
 * returns at once. Wait for the request afterwards: until it is done, it uses the memory
 * of its tensor. Setting the object `cancel` of its options does the same.
 * @param request may be NULL
 * @see zarr_request_wait(), zarr_request_free(), zarr_cancel_set()
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
 * Frees a request. If it still runs, the call cancels it first, and waits for its end and
 * for the functions of zarr_request_then(). A function of zarr_request_then() may free
 * its own request; then the call returns at once.
 *
 * Thread class: solo; no other thread may use the request any more.
 * @param request may be NULL
 */
ZARR_API void zarr_request_free(zarr_request *request);

ZARR_END_DECLS

#endif
