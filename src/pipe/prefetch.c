/*
 * pipe/prefetch.c - batches for stores with their own concurrency. If a store is not read
 * on the decoding thread, the ranges of a whole wave are fetched at once, before its
 * chunks are decoded. Ranges that could not be fetched are left to the worker, which
 * handles every case.
 * Thread class: on the runner of the wave.
 */
#include "pipe/pipe_int.h"

#include <string.h>

static void fetched_one(void *arg, zarr_store_op *op, const zarr_error *err)
{
    struct zr_prefetch *p = arg;

    ZR_UNUSED(op);
    ZR_UNUSED(err); /* the worker tries again and reports the error */
    if (atomic_fetch_sub(&p->left, 1) == 1)
        zr_event_set(&p->all);
}

static zarr_status prefetch_ops(const struct zr_io *io, struct zarr_request *rq,
                                const struct zr_wave *w, struct zr_prefetch *p,
                                zarr_error *err)
{
    zarr_status st = ZARR_OK;

    for (uint32_t i = 0; i < w->n_segments; i++) {
        const struct zr_segment *r = &w->segment[i];
        const struct zr_program *prog = r->level->decode;
        zarr_store_op *op = &p->op[p->n];
        uint64_t bytes = r->bytes == UINT64_MAX ? prog->encoded_bound : r->bytes;
        uint64_t most = zr_program_most(io, prog);

        if (!zr_mul_u64(most, r->n_items, &most))
            most = UINT64_MAX;
        if (r->bytes == ZR_ITEM_MISSING || !r->key || r->bytes == 0 ||
            (r->bytes != UINT64_MAX && bytes > io->engine->wave_bytes &&
             bytes - io->engine->wave_bytes > most))
            continue;
        *op = (zarr_store_op){.verb = ZARR_STORE_GET,
                              .flags = ZARR_STORE_OP_CHUNK,
                              .key = r->key,
                              .offset = r->bytes == UINT64_MAX ? 0 : r->offset,
                              .length =
                                  r->bytes == UINT64_MAX ? ZARR_STORE_TO_END : r->bytes,
                              .object_bytes = UINT64_MAX,
                              .cancel = &rq->cancel};
        if (r->shard) {
            op->flags |= ZR_STORE_OP_PINNED;
            op->lock = zr_shard_pin(r->shard);
        }
        p->segment[p->n++] = i;
        op->mem.device_type = prog->fetch_device;
        if (zr_store_lend(io->store, op))
            continue;
        ZR_TRY(zr_pool_take(io->engine->pool, prog->fetch_device,
                            zr_io_device_id(io, prog->fetch_device),
                            ZR_MAX(bytes, UINT64_C(64)), &p->block[i], err));
        op->mem = p->block[i];
        op->mem.bytes = bytes;
        p->ptr[p->n_gets++] = op;
    }
out:
    return st;
}

/* Keeps the segments that were fetched completely. The others are left to the worker,
 * which handles every case. */
static void prefetch_keep(const struct zr_io *io, const struct zr_wave *w,
                          struct zr_prefetch *p)
{
    for (uint32_t k = 0; k < p->n; k++) {
        const zarr_store_op *op = &p->op[k];
        uint32_t i = p->segment[k];
        bool whole = w->segment[i].bytes == UINT64_MAX;
        bool good =
            op->status == ZARR_OK &&
            (whole ? op->object_bytes == UINT64_MAX || op->object_bytes <= op->done_bytes
                   : op->done_bytes == w->segment[i].bytes);

        if (good) {
            p->mem[i] = op->mem;
            p->mem[i].bytes = op->done_bytes;
        } else {
            zr_pool_give(io->engine->pool, &p->block[i]);
        }
    }
}

static void prefetch_count(const struct zr_io *io, struct zarr_request *rq,
                           const struct zr_prefetch *p)
{
    struct zr_worker *worker = NULL;

    if (zr_worker_take(io->engine, &rq->cancel, &worker, NULL) != ZARR_OK)
        return;
    for (uint32_t k = 0; k < p->n; k++)
        zr_worker_count(worker, &p->op[k]);
    zr_request_merge(rq, worker);
    zr_worker_give(worker);
}

static void prefetch_wait(const struct zr_io *io, struct zarr_request *rq,
                          struct zr_prefetch *p)
{
    atomic_init(&p->left, p->n_gets);
    zr_event_init(&p->all);
    zr_store_submit(io->store, p->ptr, p->n_gets, fetched_one, p);
    while (!zr_event_wait(&p->all, zr_now_ns() + UINT64_C(20000000)))
        if (zr_is_cancelled(&rq->cancel))
            zr_store_cancel(io->store, p);
    zr_event_deinit(&p->all);
}

zarr_status zr_prefetch_run(const struct zr_io *io, struct zarr_request *rq,
                            struct zr_wave *w, struct zr_prefetch *p, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    p->op = zr_arena_alloc(&w->arena, (w->n_segments + 1) * sizeof *p->op);
    p->ptr = zr_arena_alloc(&w->arena, (w->n_segments + 1) * sizeof(zarr_store_op *));
    p->mem = zr_arena_alloc(&w->arena, (w->n_segments + 1) * sizeof *p->mem);
    p->block = zr_arena_alloc(&w->arena, (w->n_segments + 1) * sizeof *p->block);
    p->segment = zr_arena_alloc(&w->arena, (w->n_segments + 1) * sizeof *p->segment);
    if (!p->op || !p->ptr || !p->mem || !p->block || !p->segment) {
        p->block = NULL;
        return zr_fail_memory(err, w->n_segments * sizeof *p->op);
    }
    memset(p->mem, 0, (w->n_segments + 1) * sizeof *p->mem);
    memset(p->block, 0, (w->n_segments + 1) * sizeof *p->block);
    ZR_TRY(prefetch_ops(io, rq, w, p, err));
    if (p->n == 0)
        goto out;
    if (p->n_gets > 0)
        prefetch_wait(io, rq, p);
    prefetch_count(io, rq, p);
    prefetch_keep(io, w, p);
out:
    return st;
}

void zr_prefetch_end(const struct zr_io *io, const struct zr_wave *w,
                     struct zr_prefetch *p)
{
    if (!p->block)
        return;
    for (uint32_t i = 0; i < w->n_segments; i++)
        zr_pool_give(io->engine->pool, &p->block[i]);
}

bool zr_wants_batches(const struct zr_io *io, const struct zr_program *p)
{
    return zr_wants_lockstep(p) || !zr_store_can(io->store, ZARR_STORE_CAP_FAST_GET);
}

uint64_t zr_prefetch_budget(const struct zarr_request *rq, const struct zr_wave *w,
                            bool lockstep)
{
    uint64_t most = w->level->decode->decoded_bytes; /* of one chunk */
    uint64_t n = lockstep ? 2 * (uint64_t)w->n_items
                          : ZR_MIN(zr_io_threads(&rq->io), w->n_segments);
    uint64_t need = 0;

    for (uint32_t i = 0; i < w->n_segments; i++)
        most = ZR_MAX(most, w->segment[i].level->decode->decoded_bytes);
    if (!zr_mul_u64(n, most, &need))
        return UINT64_MAX;
    for (uint32_t i = 0; i < w->n_segments; i++) {
        const struct zr_segment *r = &w->segment[i];

        if (r->bytes != ZR_ITEM_MISSING && r->key &&
            !zr_add_u64(
                need, r->bytes == UINT64_MAX ? r->level->decode->encoded_bound : r->bytes,
                &need))
            return UINT64_MAX;
    }
    return need;
}
