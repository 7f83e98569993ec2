/*
 * pipe/write/deferred_put.c - PUTs of a batch of units that are sent together, for stores
 * that are not written on the encoding thread. A unit is encoded as always, but its bytes
 * are kept. When all units of the batch are encoded, their PUTs are one submit
 * (old_values.c). The old values that units need come from one submit, too. Thread class:
 * a slot belongs to the thread that writes its unit; run on the request's thread.
 */
#include "pipe/write/write_int.h"

/* Elements that are stored as the caller has them stay where they are. */
static bool is_callers_memory(const struct zr_io *io, const zarr_memory *mem)
{
    for (uint32_t i = 0; i < io->n_parts; i++)
        if (mem->handle == io->parts[i].view.base.handle)
            return true;
    return !io->parts && mem->handle == io->view.base.handle;
}

zarr_status zr_put_later(const struct zr_work *w, const zarr_store_op *op,
                         struct zr_later *l, zarr_error *err)
{
    const zarr_allocator *alloc = w->io->engine->alloc;
    zarr_status st = ZARR_OK;

    l->op = *op;
    l->op.cancel = &w->rq->cancel;
    l->op.status = ZARR_ERR_INTERNAL;
    l->key = zr_strdup(alloc, op->key);
    if (!l->key)
        return zr_fail_memory(err, 1);
    l->op.key = l->key;
    if (op->mem.bytes == 0 || l->block.handle || is_callers_memory(w->io, &op->mem))
        return ZARR_OK;
    ZR_TRY(zr_pool_take(w->io->engine->pool, op->mem.device_type,
                        zr_io_device_id(w->io, op->mem.device_type),
                        ZR_MAX(op->mem.bytes, UINT64_C(64)), &l->block, err));
    l->op.mem = l->block;
    l->op.mem.bytes = op->mem.bytes;
    st = zr_mem_copy_bytes(w->io->engine->memory, &l->op.mem, &op->mem, op->mem.bytes,
                           &w->worker->copies, err);
out:
    if (st != ZARR_OK) { /* a unit of parts that failed is not stored */
        zr_free(alloc, l->key);
        l->key = NULL;
    }
    return st;
}

void zr_later_end(const struct zr_io *io, struct zr_later *l, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (l[i].key) /* a reader may have cached the old index until the PUT */
            zr_index_cache_drop(io->indexes, l[i].key);
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

    zr_request_lock(rq);
    stats->chunks_done -= l->chunks_done;
    stats->chunks_missing -= l->chunks_missing;
    stats->chunks_direct -= l->chunks_direct;
    stats->elements -= l->elements;
    zr_request_unlock(rq);
}

zarr_status zr_later_run(const struct zr_io *io, struct zarr_request *rq,
                         struct zr_later *l, uint32_t n, struct zr_old_values *values,
                         struct zr_arena *arena, zarr_error *err)
{
    struct zr_puts puts;
    zarr_status st = zr_puts_room(&puts, n, arena, err);
    uint32_t k = 0;

    if (st != ZARR_OK)
        return st;
    for (int locked = 1; locked >= 0; locked--)
        for (uint32_t i = 0; i < n; i++)
            if (l[i].key && (l[i].old_value != NULL) == locked)
                *zr_puts_add(&puts, l[i].old_value) = l[i].op;
    ZR_TRY(zr_puts_run(io, rq, &puts, values, arena, err));
    for (int locked = 1; locked >= 0; locked--)
        for (uint32_t i = 0; i < n; i++)
            if (l[i].key && (l[i].old_value != NULL) == locked)
                l[i].op.status = puts.op[k++].status;
    if (io->parts) /* units whose PUT failed are written again, one by one */
        return ZARR_OK;
    if (puts.failed != UINT32_MAX)
        st = zr_prefix_key(err, zr_pass(err, puts.error.code, &puts.error),
                           puts.op[puts.failed].key);
out:
    return st;
}
