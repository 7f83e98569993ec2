/*
 * pipe/request/workers.c - worker contexts: codec contexts, scratch blocks and counters.
 * A thread takes one for the length of a loop. So in the steady state a chunk costs no
 * allocation and no lock, and an idle thread holds nothing.
 *
 * Buffers that grow: the final size of an unsized chunk is unknown, so it is not in what
 * its segment took from the budget. It is counted in a budget of its own. A worker that
 * finds no room there releases all that it has of it, waits until no other worker has
 * any, and starts the chunk again. So a worker that waits for this budget holds none of
 * it, and one that holds some waits for nothing else and releases it at the end of the
 * chunk.
 * Thread class: the list of idle contexts is shared; a worker context belongs to the
 * thread that took it.
 */
#include "pipe/request/request.h"

#include <string.h>

enum {
    WORKER_KEEPS_BYTES =
        1024 * 1024 /* largest scratch block that an idle worker context keeps */
};
#define WORKER_ALONE_NS UINT64_C(30000000000) /* longer than any chunk takes */

static void worker_free(struct zr_worker *worker)
{
    for (uint32_t i = 0; i < ZR_SCRATCH_SLOTS; i++)
        zr_pool_give(worker->engine->pool, &worker->scratch[i]);
    for (size_t i = 0; i < ZR_COUNT(worker->decode_buffer); i++) {
        zr_buffer_free(&worker->decode_buffer[i], &worker->states);
        zr_buffer_free(&worker->encode_buffer[i], &worker->states);
    }
    zr_thread_states_close(worker->engine->impls, &worker->states);
    zr_str_deinit(&worker->key);
    zr_free(worker->engine->alloc, worker);
}

void zr_workers_free(struct zr_engine *e)
{
    struct zr_worker *worker = NULL, *next = NULL;

    zr_mutex_lock(&e->workers.mutex);
    worker = e->workers.free;
    e->workers.free = NULL;
    zr_mutex_unlock(&e->workers.mutex);
    for (; worker; worker = next) {
        next = worker->next;
        worker_free(worker);
    }
}

static zarr_status grant_take(void *arg, uint64_t bytes, zarr_error *err)
{
    struct zr_worker *worker = arg;
    struct zr_budget *budget = &worker->engine->unsized_budget;

    worker->has_large = true;
    if (worker->encodes || worker->alone)
        return ZARR_OK;
    if (!zr_budget_try(budget, bytes)) {
        worker->starved = true;
        return zr_fail_limit(err, "memory_bytes", budget->total,
                             "no room for %" PRIu64 " bytes beside other chunks", bytes);
    }
    worker->granted += bytes;
    return ZARR_OK;
}

void zr_worker_trim(struct zr_worker *worker)
{
    if (worker->has_large) {
        for (size_t i = 0; i < ZR_COUNT(worker->decode_buffer); i++)
            zr_buffer_trim(&worker->decode_buffer[i], &worker->states);
        zr_thread_states_trim(&worker->states, false);
    }
    if (worker->granted > 0)
        zr_budget_give(&worker->engine->unsized_budget, worker->granted);
    worker->granted = 0;
    worker->alone = worker->starved = false;
}

void zr_worker_leave_device(struct zr_worker *worker, bool fetched)
{
    for (uint32_t i = 0; i < ZR_SCRATCH_SLOTS; i++)
        if (worker->scratch[i].handle && (fetched || i != ZR_SCRATCH_FETCH) &&
            !zr_device_is_host(worker->engine->memory, worker->scratch[i].device_type))
            zr_pool_give(worker->engine->pool, &worker->scratch[i]);
}

zarr_status zr_worker_alone(struct zr_worker *worker, const zarr_cancel *cancel,
                            zarr_error *err)
{
    struct zr_budget *budget = &worker->engine->unsized_budget;
    const uint64_t all = ZR_MAX(budget->total, UINT64_C(1));

    zr_worker_trim(worker);
    ZR_CHECK(zr_budget_take(budget, all, WORKER_ALONE_NS, cancel, err));
    worker->granted = all;
    worker->alone = true;
    return ZARR_OK;
}

zarr_status zr_worker_take(struct zr_engine *e, const zarr_cancel *cancel,
                           struct zr_worker **out, zarr_error *err)
{
    struct zr_worker *worker = NULL;

    zr_mutex_lock(&e->workers.mutex);
    worker = e->workers.free;
    if (worker)
        e->workers.free = worker->next;
    zr_mutex_unlock(&e->workers.mutex);
    if (!worker) {
        worker = zr_calloc(e->alloc, 1, sizeof *worker);
        if (!worker)
            return zr_fail_memory(err, sizeof *worker);
        worker->engine = e;
        worker->states.alloc = e->alloc;
        worker->grant = (struct zr_grant){.take = grant_take, .arg = worker};
        worker->states.grant = &worker->grant;
        zr_str_init(&worker->key, e->alloc);
    }
    worker->next = NULL;
    worker->alike.state = ZR_ALIKE_NONE;
    worker->states.cancel = cancel;
    *out = worker;
    return ZARR_OK;
}

void zr_worker_count(struct zr_worker *worker, const zarr_store_op *op)
{
    zarr_stats *s = &worker->stats;

    if (op->verb == ZARR_STORE_GET) {
        s->store_gets++;
        s->store_ranges += op->offset != 0 || op->length != ZARR_STORE_TO_END;
    } else if (op->verb == ZARR_STORE_PUT) {
        s->store_puts++;
    } else {
        s->store_erases++;
    }
    if (op->verb != ZARR_STORE_ERASE)
        zr_worker_count_bytes(worker, op);
}

void zr_worker_count_bytes(struct zr_worker *worker, const zarr_store_op *op)
{
    if (op->status == ZARR_OK)
        worker->stats.bytes_stored += op->done_bytes;
    worker->copies.copies_up += op->up_bytes != 0;
    worker->copies.bytes_up += op->up_bytes;
    worker->copies.copies_down += op->down_bytes != 0;
    worker->copies.bytes_down += op->down_bytes;
}

void zr_worker_count_call(struct zr_worker *worker, struct zr_stage_call *call)
{
    struct zr_copy_counters *c = &worker->copies;

    c->copies_up += call->up_copies;
    c->bytes_up += call->up_bytes;
    c->copies_down += call->down_copies;
    c->bytes_down += call->down_bytes;
    call->up_copies = call->up_bytes = call->down_copies = call->down_bytes = 0;
}

void zr_worker_give(struct zr_worker *worker)
{
    struct zr_engine *e = NULL;

    if (!worker)
        return;
    e = worker->engine;
    worker->states.cancel = NULL;
    zr_worker_trim(worker);
    if (worker->has_large) {
        for (size_t i = 0; i < ZR_COUNT(worker->encode_buffer); i++)
            zr_buffer_trim(&worker->encode_buffer[i], &worker->states);
        zr_thread_states_trim(&worker->states, true);
        worker->has_large = false;
    }
    /* Large blocks go back to the pool, which keeps a bounded number of bytes, and so do
     * those on devices. */
    for (uint32_t i = 0; i < ZR_SCRATCH_SLOTS; i++)
        if (worker->scratch[i].handle &&
            (worker->scratch[i].bytes > WORKER_KEEPS_BYTES ||
             !zr_device_is_host(e->memory, worker->scratch[i].device_type)))
            zr_pool_give(e->pool, &worker->scratch[i]);
    zr_mutex_lock(&e->workers.mutex);
    worker->next = e->workers.free;
    e->workers.free = worker;
    zr_mutex_unlock(&e->workers.mutex);
}

zarr_status zr_worker_scratch(const struct zr_work *w, enum zr_scratch_slot slot,
                              int32_t device_type, uint64_t bytes, zarr_memory *out,
                              zarr_error *err)
{
    const int32_t device_id = zr_io_device_id(w->io, device_type);
    struct zr_pool *pool = w->worker->engine->pool;
    zarr_memory *m = &w->worker->scratch[slot];

    if (!m->handle || m->device_type != device_type || m->device_id != device_id ||
        m->bytes < bytes) {
        zarr_status st = ZARR_OK;

        zr_pool_give(pool, m);
        *m = (zarr_memory){0};
        st = zr_pool_take(pool, device_type, device_id, ZR_MAX(bytes, UINT64_C(64)), m,
                          err);
        if (st != ZARR_OK) {
            *m = (zarr_memory){0};
            return st;
        }
    }
    *out = *m;
    out->bytes = bytes;
    return ZARR_OK;
}

/* ---- loops ------------------------------------------------------------------- */

struct work_loop {
    const struct zr_work *w;
    zr_work_fn fn;
    void *arg;
    struct zr_worker *worker[ZR_MAX_THREADS]; /* by worker number */
};

static zarr_status work_item(void *arg, uint64_t i, uint32_t worker, zarr_error *err)
{
    struct work_loop *l = arg;
    struct zr_work w = *l->w;

    if (worker != 0 || !w.worker) {
        if (!l->worker[worker])
            ZR_CHECK(
                zr_worker_take(w.io->engine, &w.rq->cancel, &l->worker[worker], err));
        w.worker = l->worker[worker];
    }
    return l->fn(l->arg, i, &w, err);
}

/* Adds what a helper counted to the caller's context, which may still forget it
 * (zr_forget_chunks()), or to the request if the caller has none. */
static void merge_helper(const struct zr_work *w, struct zr_worker *helper)
{
    if (!w->worker) {
        zr_request_merge(w->rq, helper);
        return;
    }
    for (size_t i = 0; i < ZR_COUNTERS; i++)
        w->worker->counter[i] += helper->counter[i];
    memset(helper->counter, 0, sizeof helper->counter);
}

/* A loop that needs one thread runs here, so that a loop inside of another adds no
 * frames.
 */
zarr_status zr_workers_run(const struct zr_work *w, uint64_t n,
                           const struct zr_parallel_options *opts, zr_work_fn fn,
                           void *arg, zarr_error *err)
{
    struct zr_parallel_options own = *opts;
    const uint32_t n_workers = zr_parallel_workers(n, opts);
    struct work_loop l;
    struct zr_work one = *w;
    zarr_status st = ZARR_OK;

    own.cancel = &w->rq->cancel;
    l.w = w;
    l.fn = fn;
    l.arg = arg;
    memset(l.worker, 0, n_workers * sizeof(struct zr_worker *));
    if (n_workers > 1) {
        st = zr_parallel_run(n, &own, work_item, &l, err);
    } else if (n > 0 && !w->worker) {
        ZR_TRY(zr_worker_take(w->io->engine, own.cancel, &l.worker[0], err));
        one.worker = l.worker[0];
    }
    for (uint64_t i = 0; n_workers == 1 && st == ZARR_OK && i < n; i++) {
        st = zr_is_cancelled(own.cancel) ? zr_fail(err, ZARR_ERR_CANCELLED, "cancelled")
                                         : fn(arg, i, &one, err);
        if (zr_has_forked(w->rq->fork_generation))
            return zr_request_inherited(err);
        if (st != ZARR_OK && err)
            err->item = i;
    }
    if (zr_has_forked(
            w->rq->fork_generation)) /* threads of the parent were using contexts */
        return st;
    for (uint32_t i = 0; i < n_workers; i++)
        if (l.worker[i]) {
            merge_helper(w, l.worker[i]);
            zr_worker_give(l.worker[i]);
        }
out:
    return st;
}
