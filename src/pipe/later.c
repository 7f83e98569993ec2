/*
 * pipe/later.c - PUTs of a batch of units that are sent together, for stores that are not
 * written on the encoding thread. A unit is encoded as always, but its bytes are kept.
 * When all units of the batch are encoded, the PUTs of those with a lock are one submit,
 * and after the locks are given back the others are one. The old values that units need
 * come from one submit, too (before.c).
 * Thread class: a slot belongs to the thread that writes its unit; run on the request's
 * thread.
 */
#include "pipe/pipe_int.h"

/* Elements that are stored as the caller has them stay where they are. */
static bool callers_memory(const struct zr_io *io, const zarr_mem *mem)
{
    for (uint32_t i = 0; i < io->n_parts; i++)
        if (mem->handle == io->parts[i].view.base.handle)
            return true;
    return !io->parts && mem->handle == io->view.base.handle;
}

zarr_status zr_put_later(const struct zr_work *w, const zarr_store_op *op,
                         zarr_error *err)
{
    const zarr_allocator *alloc = w->io->engine->alloc;
    struct zr_later *l = w->later;
    zarr_status st = ZARR_OK;

    l->op = *op;
    l->op.cancel = &w->rq->cancel;
    l->op.status = ZARR_ERR_INTERNAL;
    l->key = zr_strdup(alloc, op->key);
    if (!l->key)
        return zr_fail_memory(err, 1);
    l->op.key = l->key;
    if (op->mem.bytes == 0 || callers_memory(w->io, &op->mem))
        return ZARR_OK;
    ZR_TRY(zr_pool_take(w->io->engine->pool, op->mem.device_type,
                        zr_io_device_id(w->io, op->mem.device_type),
                        ZR_MAX(op->mem.bytes, UINT64_C(64)), &l->block, err));
    l->op.mem = l->block;
    l->op.mem.bytes = op->mem.bytes;
    st = zr_mem_copy_bytes(w->io->engine->memory, &l->op.mem, &op->mem, op->mem.bytes,
                           &w->worker->copies, err);
out:
    return st;
}

void zr_later_end(const struct zr_io *io, struct zr_later *l, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        zr_pool_give(io->engine->pool, &l[i].block);
        zr_free(io->engine->alloc, l[i].key);
        l[i] = (struct zr_later){.key = NULL};
    }
}

void zr_later_count(struct zr_later *l, const zarr_stats *stats, bool encoded)
{
    l->chunks_done = stats->chunks_done - (encoded ? l->chunks_done : 0);
    l->chunks_missing = stats->chunks_missing - (encoded ? l->chunks_missing : 0);
    l->chunks_direct = stats->chunks_direct - (encoded ? l->chunks_direct : 0);
    l->elements = stats->elements - (encoded ? l->elements : 0);
}

void zr_later_forget(struct zarr_request *rq, const struct zr_later *l)
{
    zarr_stats *stats = &rq->locked.stats;

    zr_mutex_lock(&rq->locked.mutex);
    stats->chunks_done -= l->chunks_done;
    stats->chunks_missing -= l->chunks_missing;
    stats->chunks_direct -= l->chunks_direct;
    stats->elements -= l->elements;
    zr_mutex_unlock(&rq->locked.mutex);
}

static bool later_has_turn(const struct zr_later *l, bool locked)
{
    return l->key && ((l->op.flags & ZARR_STORE_OP_LOCKED) != 0) == locked;
}

zarr_status zr_later_run(const struct zr_io *io, struct zarr_request *rq,
                         struct zr_later *l, uint32_t n, bool locked,
                         struct zr_arena *arena, zarr_error *err)
{
    zarr_store_op *op = zr_arena_alloc(arena, ((size_t)n + 1) * sizeof *op);
    struct zr_ops_failure failed = {.op = UINT32_MAX};
    uint32_t n_ops = 0;
    zarr_status st = ZARR_OK;

    if (!op)
        return zr_fail_memory(err, n * sizeof *op);
    for (uint32_t i = 0; i < n; i++)
        if (later_has_turn(&l[i], locked))
            op[n_ops++] = l[i].op;
    if (n_ops == 0)
        return ZARR_OK;
    ZR_TRY(zr_ops_run(io, rq, op, n_ops, &failed, arena, err));
    n_ops = 0;
    for (uint32_t i = 0; i < n; i++)
        if (later_has_turn(&l[i], locked))
            l[i].op.status = op[n_ops++].status;
    if (io->parts) /* units whose PUT failed are written again, one by one */
        return ZARR_OK;
    if (failed.op != UINT32_MAX)
        return zr_prefix_key(err, zr_pass(err, failed.error.code, &failed.error),
                             op[failed.op].key);
out:
    return st;
}
