/*
 * pipe/submitted_requests.c - requests whose caller does not wait: a task of the pool
 * carries them out. At its end a request tells in this order: its event is set, so that
 * waits return; its descriptor becomes readable; its continuations are called. Then it is
 * settled, and may be freed. A continuation that frees its own request only marks it, and
 * the thread that calls the continuations frees it after the last one. Thread class:
 * shared. A request inherited through fork is CANCELLED: the parent's threads do not
 * exist in the child, and its mutex may be held for ever.
 */
#include "pipe/pipe_int.h"

#include <string.h>

struct zr_then {
    struct zr_then *next;
    zarr_request_fn fn;
    void *user;
};

/* ---- life ----------------------------------------------------------------------- */

static void request_destroy(struct zarr_request *rq)
{
    void (*const release)(void *) = rq->release;
    void *const owner = rq->owner;
    struct zr_then *t = NULL;

    zr_fd_event_close(&rq->locked.fd);
    while ((t = rq->locked.then)) { /* in a forked child: the parent calls them */
        rq->locked.then = t->next;
        zr_free(rq->alloc, t);
    }
    if (!zr_has_forked(rq->fork_generation)) {
        zr_event_deinit(&rq->done);
        zr_event_deinit(&rq->settled);
        zr_mutex_deinit(&rq->locked.mutex);
    }
    zr_free(rq->alloc, rq);
    if (release) /* last: the owner may hold the context, which owns the engine */
        release(owner);
}

static void call_then(struct zr_then *t, zarr_status status, const zarr_error *err)
{
    zr_block_begin(); /* the function may take long */
    t->fn(t->user, status, status == ZARR_OK ? NULL : err);
    zr_block_end();
}

/* Calls the continuations in order, also those that are added meanwhile. */
static void request_settle(struct zarr_request *rq)
{
    struct zr_then *t = NULL;
    bool freed = false;

    if (zr_has_forked(rq->fork_generation)) /* the work forked, and this is the child */
        return;
    zr_mutex_lock(&rq->locked.mutex);
    rq->locked.done = true;
    rq->locked.settler = zr_thread_self();
    zr_fd_event_set(&rq->locked.fd);
    while ((t = rq->locked.then)) {
        rq->locked.then = t->next;
        if (!t->next)
            rq->locked.last_then = NULL;
        zr_mutex_unlock(&rq->locked.mutex);
        call_then(t, rq->status, &rq->error);
        zr_free(rq->alloc, t);
        /* the function forked, and this is the child */
        if (zr_has_forked(rq->fork_generation))
            return;
        zr_mutex_lock(&rq->locked.mutex);
    }
    rq->locked.settled = true;
    freed = rq->locked.freed;
    zr_mutex_unlock(&rq->locked.mutex);
    if (freed)
        request_destroy(rq);
    else
        zr_event_set(&rq->settled);
}

static void request_work(struct zarr_request *rq)
{
    rq->error = (zarr_error){0};
    rq->status =
        rq->work ? rq->work(rq->owner, rq, &rq->error) : zr_request_run(rq, &rq->error);
}

static void request_end(struct zarr_request *rq)
{
    zr_event_set(&rq->done);
    request_settle(rq);
}

static void request_task(void *arg)
{
    struct zarr_request *rq = arg;

    request_work(rq);
    request_end(rq);
}

static zarr_status request_create(struct zarr_request **out, const zarr_allocator *alloc,
                                  const struct zr_io *io, const zarr_cancel *cancel,
                                  zarr_error *err)
{
    struct zarr_request *rq = zr_malloc(alloc, sizeof *rq);

    *out = rq;
    if (!rq)
        return zr_fail_memory(err, sizeof *rq);
    zr_request_init(rq, io, cancel);
    zr_event_init(&rq->done);
    zr_event_init(&rq->settled);
    zr_fd_event_init(&rq->locked.fd);
    rq->alloc = alloc;
    rq->submitted = true;
    return ZARR_OK;
}

static void request_start(struct zarr_request *rq)
{
    rq->task = (struct zr_task){.fn = request_task, .arg = rq};
    /* the system has no thread for us: the caller's does the work */
    if (zr_task_submit(&rq->task, NULL) != ZARR_OK)
        request_task(rq);
}

/* Tries to carry the request out on the caller's thread. False: nothing counts of what it
 * did. */
static bool request_attempt(struct zarr_request *rq)
{
    const uint32_t max_threads = rq->io.max_threads;
    bool done = false;

    if (!zr_attempt_is_worth(&rq->io) || zr_attempt_runs())
        return false;
    rq->io.max_threads = 1;
    zr_attempt_begin();
    request_work(rq);
    done = zr_attempt_end();
    rq->io.max_threads = max_threads;
    if (done || zr_has_forked(rq->fork_generation))
        return true;
    zr_request_again(rq, &(const zarr_stats){0});
    memset(rq->locked.counter, 0, sizeof rq->locked.counter);
    return false;
}

zarr_status zr_io_submit(zarr_request **out, const struct zr_io *io,
                         void (*release)(void *owner), void *owner, zarr_error *err)
{
    zarr_status st = request_create(out, io->engine->alloc, io, io->cancel, err);

    if (st != ZARR_OK)
        return st;
    (*out)->release = release;
    (*out)->owner = owner;
    if (request_attempt(*out))
        request_end(*out);
    else
        request_start(*out);
    return ZARR_OK;
}

zarr_status zr_request_create(zarr_request **out, const zarr_allocator *alloc,
                              const zarr_cancel *cancel,
                              const struct zr_request_work *work, zarr_error *err)
{
    zarr_status st = request_create(out, alloc, NULL, cancel, err);

    if (st != ZARR_OK)
        return st;
    (*out)->work = work->fn;
    (*out)->release = work->release;
    (*out)->owner = work->owner;
    request_start(*out);
    return ZARR_OK;
}

zarr_cancel *zr_request_cancel(zarr_request *rq)
{
    return &rq->cancel;
}

/* ---- the public door --------------------------------------------------------------- */

static zarr_status fail_from_parent(zarr_error *err)
{
    return zr_fail(err, ZARR_ERR_CANCELLED, "the request belongs to the parent process");
}

zarr_status zarr_request_wait(zarr_request *rq, uint64_t timeout_ns, int *done,
                              zarr_error *err)
{
    uint64_t deadline = UINT64_MAX;

    if (!rq)
        return zr_fail(err, ZARR_ERR_INVALID, "request is NULL");
    if (zr_has_forked(rq->fork_generation)) {
        if (done)
            *done = 1;
        return fail_from_parent(err);
    }
    if (timeout_ns != ZARR_WAIT_FOREVER && !zr_add(zr_now_ns(), timeout_ns, &deadline))
        deadline = UINT64_MAX;
    if (!zr_event_wait(&rq->done, deadline)) {
        if (done)
            *done = 0;
        return ZARR_OK;
    }
    if (done)
        *done = 1;
    if (rq->status != ZARR_OK && err)
        *err = rq->error;
    return rq->status;
}

zarr_status zarr_request_then(zarr_request *rq, zarr_request_fn fn, void *user,
                              zarr_error *err)
{
    struct zr_then now = {.fn = fn, .user = user}, *t = NULL;
    zarr_error why = {0};
    zarr_status st = ZARR_OK;
    bool settled = false;

    if (!rq || !fn)
        return zr_fail(err, ZARR_ERR_INVALID, "request or function is NULL");
    if (zr_has_forked(rq->fork_generation)) {
        st = fail_from_parent(&why);
        call_then(&now, st, &why);
        return ZARR_OK;
    }
    t = zr_malloc(rq->alloc, sizeof *t);
    if (!t)
        return zr_fail_memory(err, sizeof *t);
    *t = now;
    zr_mutex_lock(&rq->locked.mutex);
    settled = rq->locked.settled;
    if (!settled) {
        if (rq->locked.last_then)
            rq->locked.last_then->next = t;
        else
            rq->locked.then = t;
        rq->locked.last_then = t;
    }
    zr_mutex_unlock(&rq->locked.mutex);
    if (settled) {
        zr_free(rq->alloc, t);
        st = rq->status;
        why = rq->error;
        call_then(&now, st, &why); /* which may free the request */
    }
    return ZARR_OK;
}

zarr_status zarr_request_fd(zarr_request *rq, int *fd, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    *fd = -1;
    if (!rq)
        return zr_fail(err, ZARR_ERR_INVALID, "request is NULL");
    if (zr_has_forked(rq->fork_generation))
        return fail_from_parent(err);
    zr_mutex_lock(&rq->locked.mutex);
    if (!zr_fd_event_is_open(&rq->locked.fd)) {
        ZR_TRY(zr_fd_event_open(&rq->locked.fd, err));
        if (rq->locked.done)
            zr_fd_event_set(&rq->locked.fd);
    }
    *fd = rq->locked.fd.read_fd;
out:
    zr_mutex_unlock(&rq->locked.mutex);
    return st;
}

void zarr_request_cancel(zarr_request *rq)
{
    if (rq)
        zarr_cancel_set(&rq->cancel);
}

void zarr_request_progress(zarr_request *rq, zarr_stats *out)
{
    if (rq && !zr_has_forked(rq->fork_generation))
        zr_request_stats(rq, out);
}

void zarr_request_free(zarr_request *rq)
{
    bool later = false;

    if (!rq)
        return;
    if (!zr_has_forked(rq->fork_generation)) {
        zarr_request_cancel(rq);
        zr_mutex_lock(&rq->locked.mutex);
        later = rq->locked.done && !rq->locked.settled &&
                zr_thread_is_self(&rq->locked.settler);
        rq->locked.freed = later;
        zr_mutex_unlock(&rq->locked.mutex);
        if (later) /* called by one of its continuations */
            return;
        (void)zr_event_wait(&rq->settled, UINT64_MAX);
    }
    request_destroy(rq);
}
