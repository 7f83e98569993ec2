/*
 * pipe/chunk/store_ops.c - runs several operations of a store at once, and waits for all.
 * Thread class: on the request's thread; the store may report the end of an operation on
 * any thread.
 */
#include "pipe/chunk/chunk_int.h"

struct ops {
    const zarr_store_op *op; /* the first */
    atomic_uint left;
    struct zr_event all;
    zr_mutex mutex; /* protects what *watch has of a failure */
    struct zr_ops_watch *watch;
};

static void ops_note(struct ops *g, const zarr_store_op *op, const zarr_error *err)
{
    const uint32_t i = (uint32_t)(op - g->op);

    zr_mutex_lock(&g->mutex);
    if (i < g->watch->failed) {
        g->watch->failed = i;
        g->watch->error = *err;
        g->watch->error.code = op->status;
    }
    zr_mutex_unlock(&g->mutex);
}

/* Whether the caller looks at the status: OK, missing, or a write that met another
 * writer's change. A PUT without a condition that answers NOT_FOUND has failed. */
static bool ops_is_left(const zarr_store_op *op)
{
    const bool conditional = (op->flags & ZARR_STORE_OP_IF_VERSION) != 0;

    return op->status == ZARR_OK ||
           (op->status == ZARR_ERR_NOT_FOUND &&
            (op->verb != ZARR_STORE_PUT || conditional)) ||
           (op->status == ZARR_ERR_CONFLICT && conditional);
}

static void ops_finish_one(void *arg, zarr_store_op *op, const zarr_error *err)
{
    struct ops *g = arg;

    if (g->watch && g->watch->ended)
        g->watch->ended(g->watch->arg, (uint32_t)(op - g->op), false);
    if (g->watch && err && !ops_is_left(op))
        ops_note(g, op, err);
    if (atomic_fetch_sub(&g->left, 1) == 1)
        zr_event_set(&g->all);
}

static void ops_count(const struct zr_io *io, struct zarr_request *rq,
                      const zarr_store_op *op, uint32_t n)
{
    struct zr_worker *worker = NULL;

    if (zr_worker_take(io->engine, &rq->cancel, &worker, NULL) != ZARR_OK)
        return;
    for (uint32_t i = 0; i < n; i++)
        zr_worker_count(worker, &op[i]);
    zr_request_merge(rq, worker);
    zr_worker_give(worker);
}

/* Returns false in a forked child, where the operations do not end. */
static bool ops_wait(const struct zr_io *io, const struct zarr_request *rq, struct ops *g,
                     zarr_store_op **ptr, uint32_t n)
{
    atomic_init(&g->left, n);
    zr_event_init(&g->all);
    zr_mutex_init(&g->mutex);
    zr_store_submit(io->store, ptr, n, ops_finish_one, g);
    while (!zr_has_forked(rq->fork_generation) &&
           !zr_event_wait(&g->all, zr_now_ns() + UINT64_C(20000000)))
        if (zr_is_cancelled(&rq->cancel))
            zr_store_cancel(io->store, g);
    if (zr_has_forked(rq->fork_generation)) {
        for (uint32_t i = 0; g->watch && g->watch->ended && i < n; i++)
            g->watch->ended(g->watch->arg, (uint32_t)(ptr[i] - g->op), true);
        return false;
    }
    zr_mutex_deinit(&g->mutex);
    zr_event_deinit(&g->all);
    return true;
}

zarr_status zr_ops_run(const struct zr_io *io, struct zarr_request *rq, zarr_store_op *op,
                       uint32_t n, struct zr_ops_watch *watch, struct zr_arena *arena,
                       zarr_error *err)
{
    zarr_store_op **ptr =
        zr_arena_alloc(arena, ((size_t)n + 1) * sizeof(zarr_store_op *));
    struct ops g = {.op = op, .watch = watch};
    uint32_t n_run = 0;

    if (!ptr)
        return zr_fail_memory(err, n * sizeof *op);
    for (uint32_t i = 0; i < n; i++) {
        op[i].cancel = &rq->cancel;
        if (op[i].status != ZARR_OK)
            ptr[n_run++] = &op[i];
    }
    if (n_run > 0 && !ops_wait(io, rq, &g, ptr, n_run))
        return zr_request_inherited(err);
    ops_count(io, rq, op, n);
    return zr_cancel_check(&rq->cancel, err);
}
