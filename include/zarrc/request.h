/**
 * @file
 * Requests: reads, writes and appends that run while the caller does something else. The
 * blocking calls are carried out in the same way. A program learns of the end of a
 * request by waiting, by a function that is called, or by a descriptor for its event
 * loop.
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
 * Waits until a request is done, or until a time has passed. It may be called again, also
 * after the request is done, and from several threads.
 *
 * @param request from a call that submits: zarr_array_read_submit(),
 * zarr_array_write_submit(), zarr_array_append_submit(), zarr_array_read_many_submit() or
 * zarr_array_write_many_submit()
 * @param timeout_ns nanoseconds to wait at most; 0: only ask; ZARR_WAIT_FOREVER: no limit
 * @param done becomes 1 if the request is done, else 0; may be NULL
 * @return ZARR_OK while the request runs; the status of the call when it is done
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
 * Has a function called when a request is done. It is called exactly once, with no lock
 * held, and may do what it likes: submit another request, wait for another one, free this
 * one, or take its time.
 *
 * Functions of one request are called one after another, in the order in which they were
 * added, on the thread that ends the request: a thread of the pool, or the submitting
 * thread inside its call if the system has no thread to start. If the request is done and
 * all its functions have returned, the function is called at once on the calling thread,
 * before this call returns. zarr_request_wait() may return before the functions are
 * called; zarr_request_free() returns after the last one has returned, unless one of them
 * calls it. Then the handle is gone for the program, and the functions that are left are
 * still called.
 *
 * After a fork, functions that were added before are called in the parent process only.
 * In the child, a function that is added to a request of the parent is called at once,
 * with ZARR_ERR_CANCELLED.
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
 * Gives a file descriptor that becomes readable when a request is done. It stays
 * readable, and zarr_request_wait() then returns at once. It works in poll(), epoll,
 * kqueue, and the add_reader() of Python's asyncio. The descriptor is the same at each
 * call. The program must not read from it, write to it or close it; zarr_request_free()
 * closes it, so the event loop must forget it before. It is closed on exec.
 *
 * A descriptor that a child process inherited through fork tells of the parent's request.
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
 * Asks a request to stop. Chunks in progress are finished, and no new ones begin.
 * The call returns at once. Wait for the request afterwards: until it is done, it uses
 * the memory of its tensor.
 * The object `cancel` of its options does the same.
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
 * Frees a request. A request that still runs is cancelled first, and the call waits for
 * its end and for the functions of zarr_request_then(). Afterwards the memory of its
 * tensor is free. A function of zarr_request_then() may free its own request; then the
 * call returns at once.
 *
 * Thread class: solo; no other thread may use the request any more.
 * @param request may be NULL
 */
ZARR_API void zarr_request_free(zarr_request *request);

ZARR_END_DECLS

#endif
