/*
 * pipe/lockstep_encode.c - encodes leaves in lock step, by programs with an
 * implementation that takes batches (ZARR_CODEC_BATCH). Gathering elements, comparing
 * them with the fill value, and stages without such an implementation are parallel loops
 * over the leaves. Outer chunks come from lockstep_units.c, inner ones from
 * shard_write.c.
 * Thread class: on the worker context; helpers take worker contexts.
 */
#include "pipe/pipe_int.h"

struct lock_leaf {
    struct zr_leaf_write *lw;
    zarr_mem cur, next;
};

struct leaves {
    const struct zr_work *w;
    const struct zr_program *p;
    struct zr_leaf_write *lw;
    uint32_t n, threads;
    struct lock_leaf *leaf; /* first all leaves, then those that are not empty */
    zarr_codec_job *job;
    uint32_t n_left;
    const struct zr_stage *stage; /* of the current loop */
    zarr_mem block, host, slab[2];
};

static zarr_status each(struct leaves *l, uint64_t n, zr_work_fn fn, zarr_error *err)
{
    const struct zr_parallel_options opts = {
        .max_threads = l->threads, .grain = 1, .item_ns = 2000 + l->p->decoded_bytes};

    return zr_workers_run(l->w, n, &opts, fn, l, err);
}

/* ---- elements ---------------------------------------------------------- */

/* Whether a chunk's elements must be gathered into a block instead of read from the
 * caller's memory. */
static bool leaf_needs_block(const struct leaves *l, const struct zr_leaf_write *lw)
{
    struct zr_target t;
    zarr_mem at;

    zr_target_borrow(&t, lw->proj);
    return l->p->padded || !lw->proj->full || !zr_target_direct(l->w->io, l->p, &t, &at);
}

/* A program that begins with a copy to the host uses the copy that was compared with the
 * fill value. */
static bool leaves_need_host(const struct leaves *l)
{
    return l->w->io->skip_empty && l->p->stage[l->p->n - 1].kind == ZR_STAGE_COPY &&
           !zr_io_is_host(l->w->io, l->p->decoded_device);
}

static zarr_status element_rooms(struct leaves *l, zarr_error *err)
{
    const uint64_t bytes = l->p->decoded_bytes;
    uint64_t step = bytes, host_step = bytes, n = 0;
    zarr_status st = ZARR_OK;

    for (uint32_t i = 0; i < l->n; i++)
        n += leaf_needs_block(l, &l->lw[i]);
    if (n > 0)
        ZR_TRY(zr_take_slices(l->w->io, l->p->decoded_device, &step, n, &l->block, err));
    if (leaves_need_host(l))
        ZR_TRY(
            zr_take_slices(l->w->io, ZARR_DEVICE_CPU, &host_step, l->n, &l->host, err));
    n = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        struct zr_leaf_write *lw = &l->lw[i];

        lw->block = lw->host = (zarr_mem){0};
        if ((leaf_needs_block(l, lw) &&
             !zr_mem_slice(&l->block, n++ * step, bytes, &lw->block)) ||
            (l->host.handle && !zr_mem_slice(&l->host, i * host_step, bytes, &lw->host)))
            return zr_internal(err);
    }
out:
    return st;
}

static zarr_status prepare_one(void *arg, uint64_t i, const struct zr_work *w,
                               zarr_error *err)
{
    struct leaves *l = arg;
    struct zr_leaf_write *lw = &l->lw[i];
    zarr_mem elements = {0}, host = {0};
    zarr_status st = ZARR_OK;

    st = zr_leaf_prepare(w, lw, &elements, &host, err);
    zr_worker_trim(w->worker);
    ZR_TRY(st);
    l->leaf[i] = (struct lock_leaf){.lw = lw, .cur = lw->host.handle ? host : elements};
    if (!lw->empty)
        w->worker->stats.bytes_decoded += elements.bytes;
out:
    return st;
}

/* ---- stages ------------------------------------------------------------ */

static zarr_status leaf_rooms(struct leaves *l, uint32_t k, zarr_error *err)
{
    const bool last = k + 1 == l->p->n;
    uint64_t most = 0, step = 0;
    zarr_status st = ZARR_OK;

    if (l->stage->kind != ZR_STAGE_COPY)
        most = l->stage->in_bytes;
    for (uint32_t i = 0; i < l->n_left && l->stage->kind == ZR_STAGE_COPY; i++)
        most = ZR_MAX(most, l->leaf[i].cur.bytes);
    step = most;
    if (!last)
        ZR_TRY(zr_take_slices(l->w->io, l->stage->in_device, &step, l->n_left,
                              &l->slab[k % 2], err));
    for (uint32_t i = 0; i < l->n_left; i++) {
        struct lock_leaf *leaf = &l->leaf[i];

        if (last)
            leaf->next = leaf->lw->room;
        else if (!zr_mem_slice(&l->slab[k % 2], i * step, most, &leaf->next))
            return zr_internal(err);
    }
out:
    return st;
}

static zarr_status single_one(void *arg, uint64_t i, const struct zr_work *w,
                              zarr_error *err)
{
    struct leaves *l = arg;
    struct lock_leaf *leaf = &l->leaf[i];
    const uint32_t k = l->p->n - 1 - (uint32_t)(l->stage - l->p->stage);
    struct zr_coding c = {.p = l->p, .cur = leaf->cur, .done = k};
    zarr_status st = ZARR_OK;

    w->worker->states.keep_empty = !w->io->skip_empty;
    st = zr_stages_run(w, &c, k + 1, &leaf->next, err);
    leaf->cur = c.cur;
    return st;
}

static zarr_status encode_batch_stage(struct leaves *l, zarr_error *err)
{
    const struct zr_stage *s = l->stage;
    struct zr_worker *worker = l->w->worker;
    struct zr_stage_call call = {.jobs = l->job, .n = l->n_left, .ts = &worker->states};
    uint64_t need = zr_stage_scratch(s, l->n_left);
    zarr_status st = ZARR_OK;

    for (uint32_t i = 0; i < l->n_left; i++)
        l->job[i] = (zarr_codec_job){.src = l->leaf[i].cur, .dst = l->leaf[i].next};
    if (need > 0)
        ZR_TRY(zr_worker_scratch(l->w, ZR_SCRATCH_CODEC, s->in_device, need,
                                 &call.scratch, err));
    worker->states.keep_empty = !l->w->io->skip_empty;
    worker->encodes = true;
    st = zr_stage_run(s, &call, true, err);
    worker->encodes = false;
    for (uint32_t i = 0; i < l->n_left && st == ZARR_OK; i++) {
        l->leaf[i].cur = l->leaf[i].next;
        l->leaf[i].cur.bytes = l->job[i].dst_used;
    }
out:
    return st;
}

static zarr_status one_stage(struct leaves *l, uint32_t k, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    l->stage = &l->p->stage[l->p->n - 1 - k];
    if (l->stage->kind == ZR_STAGE_COPY && k == 0 && l->host.handle)
        return ZARR_OK; /* the comparison made that copy */
    ZR_TRY(leaf_rooms(l, k, err));
    if (l->stage->kind == ZR_STAGE_CODEC &&
        (l->stage->impl->vt.caps & ZARR_CODEC_BATCH) != 0)
        st = encode_batch_stage(l, err);
    else
        st = each(l, l->n_left, single_one, err);
out:
    if (st != ZARR_OK && err && err->item < l->n_left)
        err->item = (uint64_t)(l->leaf[err->item].lw - l->lw);
    return st;
}

static void drop_empty(struct leaves *l)
{
    for (uint32_t i = 0; i < l->n; i++)
        if (!l->lw[i].empty)
            l->leaf[l->n_left++] = l->leaf[i];
}

static zarr_status run_leaves(struct leaves *l, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    ZR_TRY(element_rooms(l, err));
    ZR_TRY(each(l, l->n, prepare_one, err));
    drop_empty(l);
    for (uint32_t k = 0; k < l->p->n && l->n_left > 0; k++)
        ZR_TRY(one_stage(l, k, err));
    for (uint32_t i = 0; i < l->n_left; i++)
        l->leaf[i].lw->out = l->leaf[i].cur;
out:
    return st;
}

zarr_status zr_leaves_encode(const struct zr_work *w, struct zr_leaf_write *lw,
                             uint32_t n, uint32_t threads, zarr_error *err)
{
    struct zr_pool *pool = w->io->engine->pool;
    const zarr_allocator *alloc = w->io->engine->alloc;
    struct leaves l = {.w = w,
                       .p = lw[0].level->encode,
                       .lw = lw,
                       .n = n,
                       .threads = threads,
                       .leaf = zr_calloc(alloc, n, sizeof *l.leaf),
                       .job = zr_calloc(alloc, n, sizeof *l.job)};
    zarr_status st = ZARR_OK;

    if (!l.leaf || !l.job)
        ZR_TRY(zr_fail_memory(err, n * (sizeof *l.leaf + sizeof *l.job)));
    ZR_TRY(run_leaves(&l, err));
out:
    zr_pool_give(pool, &l.block);
    zr_pool_give(pool, &l.host);
    zr_pool_give(pool, &l.slab[0]);
    zr_pool_give(pool, &l.slab[1]);
    zr_free(alloc, l.leaf);
    zr_free(alloc, l.job);
    return st;
}
