/*
 * pipe/batch/decode.c - takes chunks through the stages of one program together,
 * and their elements to the tensor or to blocks. A stage with an implementation that
 * takes batches is called once for all chunks that it accepts; chunks that it refuses go
 * through its fallback one by one, and those that it declines later are read alone at the
 * end. Any other stage is a parallel loop over the chunks.
 * Thread class: one batch; helpers take worker contexts.
 */
#include "pipe/batch/batch_int.h"

static zarr_status take_slices(const struct zr_io *io, int32_t device, uint64_t align,
                               uint64_t *step, uint64_t n, zarr_memory *slab,
                               zarr_error *err)
{
    const zarr_memory *tensor = &io->view.base;
    uint64_t all = 0;

    if (!zr_add(*step, align - 1, step))
        return zr_fail(err, ZARR_ERR_LIMIT, "a wave too large for memory");
    *step = *step / align * align;
    if (!zr_mul(*step, n, &all))
        return zr_fail(err, ZARR_ERR_LIMIT, "a wave too large for memory");
    zr_pool_give(io->engine->pool, slab);
    *slab = (zarr_memory){0};
    all = ZR_MAX(all, (uint64_t)ZR_CHUNK_ALIGNMENT);
    if (zr_io_is_host(io, device) && !zr_io_is_host(io, tensor->device_type))
        return zr_pool_take_staging(io->engine->pool, tensor->device_type,
                                    tensor->device_id, all, slab, err);
    return zr_pool_take(io->engine->pool, device, zr_io_device_id(io, device), all, slab,
                        err);
}

zarr_status zr_take_slices(const struct zr_io *io, int32_t device, uint64_t *step,
                           uint64_t n, zarr_memory *slab, zarr_error *err)
{
    return take_slices(io, device, ZR_CHUNK_ALIGNMENT, step, n, slab, err);
}

zarr_status zr_take_near_slices(const struct zr_io *io, int32_t device, uint64_t *step,
                                uint64_t n, zarr_memory *slab, zarr_error *err)
{
    return take_slices(io, device, ZR_NEAR_ALIGNMENT, step, n, slab, err);
}

/* A chunk that a copy left on the host is still in the slab before. */
static bool slab_has_chunks(const struct zr_batch *l, const zarr_memory *slab)
{
    for (uint32_t k = 0; k < l->n && slab->handle; k++)
        if (!l->item[k].again && l->item[k].cur.handle == slab->handle)
            return true;
    return false;
}

/* Gives back a slab once no work uses it, at the latest with zr_batch_end(). */
static zarr_status slab_give(struct zr_batch *l, zarr_memory *slab, zarr_error *err)
{
    struct zr_batch_kept *kept = NULL;

    if (!slab_has_chunks(l, slab))
        return zr_flow_hold(l->flow, slab, err);
    kept = zr_arena_alloc(l->arena, sizeof *kept);
    if (!kept)
        return zr_fail_memory(err, sizeof *kept);
    *kept = (struct zr_batch_kept){.next = l->kept, .block = *slab};
    l->kept = kept;
    *slab = (zarr_memory){0};
    return ZARR_OK;
}

void zr_batch_end(struct zr_batch *l)
{
    struct zr_pool *pool = l->io->engine->pool;

    for (; l->kept; l->kept = l->kept->next)
        zr_pool_give(pool, &l->kept->block);
    zr_pool_give(pool, &l->slab[0]);
    zr_pool_give(pool, &l->slab[1]);
    zr_pool_give(pool, &l->aligned);
}

zarr_status zr_batch_slab(struct zr_batch *l, int32_t device, uint64_t *step, uint64_t n,
                          zarr_memory *slab, zarr_error *err)
{
    zarr_status st = slab_give(l, slab, err);

    return st == ZARR_OK ? zr_take_slices(l->io, device, step, n, slab, err) : st;
}

zarr_status zr_batch_name(struct zr_batch *l, zarr_status st, zarr_error *err)
{
    const struct zr_batch_item *it;

    if (st == ZARR_OK)
        return st;
    if (l->flow->failed)
        l = l->flow->failed;
    l->flow->failed = l;
    if (!err || err->item >= l->n)
        return st;
    it = &l->item[err->item];
    if (!it->segment || !l->wave)
        return st;
    err->item = (uint64_t)(it->segment - l->wave->segment);
    return zr_item_prefix(it->segment, it->item, st, err);
}

zarr_status zr_batch_parallel(const struct zr_io *io, struct zarr_request *rq, uint64_t n,
                              zr_work_fn fn, void *arg, zarr_error *err)
{
    const struct zr_work w = {.io = io, .rq = rq, .granted = true};
    const struct zr_parallel_options opts = {.max_threads = zr_io_threads(io)};

    return zr_workers_run(&w, n, &opts, fn, arg, err);
}

/* Runs a loop over the items of the wave. */
static zarr_status parallel_items(struct zr_batch *l, zr_work_fn fn, zarr_error *err)
{
    return zr_batch_name(l, zr_batch_parallel(l->io, l->rq, l->n, fn, l, err), err);
}

zarr_status zr_batch_wait(struct zr_batch *l, zarr_error *err)
{
    return l->queued == l->flow->n_waits + 1 ? zr_flow_wait(l->flow, err) : ZARR_OK;
}

/* ---- stages ------------------------------------------------------------ */

bool zr_batch_next_is_aligned(const struct zr_batch *l, uint32_t i)
{
    const struct zr_stage *next = &l->p->stage[i + 1];

    return i + 1 < l->p->n && next->kind == ZR_STAGE_CODEC &&
           next->impl->vt.alignment > 1;
}

/* Whether the outputs of this stage are copied to a device next, in runs of
 * neighbours. */
static bool list_follows(const struct zr_batch *l, uint32_t i)
{
    if (l->flow->device == 0 || !zr_io_is_host(l->io, l->p->stage[i].out_device))
        return false;
    return i + 1 == l->p->n ? l->end.decoded_device != l->p->decoded_device
                            : l->p->stage[i + 1].kind == ZR_STAGE_COPY &&
                                  !zr_batch_next_is_aligned(l, i + 1);
}

/* Assigns each chunk a place for its output: the destination itself after the last stage
 * if it fits, else a slice of a pool block. */
static zarr_status stage_rooms(struct zr_batch *l, uint32_t i, zarr_error *err)
{
    const struct zr_stage *s = &l->p->stage[i];
    zarr_memory *slab = &l->slab[i % 2];
    uint64_t step = 0, most = s->out_bytes;

    if (s->kind == ZR_STAGE_COPY)
        for (uint32_t k = 0; k < l->n; k++)
            most = ZR_MAX(most, l->item[k].cur.bytes);
    step = most;
    ZR_CHECK(slab_give(l, slab, err));
    ZR_CHECK((list_follows(l, i) ? zr_take_near_slices : zr_take_slices)(
        l->io, s->out_device, &step, l->n, slab, err));
    for (uint32_t k = 0; k < l->n; k++) {
        struct zr_batch_item *it = &l->item[k];

        it->direct = i + 1 == l->p->n && zr_batch_is_direct(l, it, l->p);
        if (!it->direct &&
            !zr_mem_slice(slab, k * step, s->kind == ZR_STAGE_COPY ? it->cur.bytes : most,
                          &it->next))
            return zr_internal(err);
    }
    return ZARR_OK;
}

bool zr_batch_is_direct(const struct zr_batch *l, struct zr_batch_item *it,
                        const struct zr_program *p)
{
    it->next = it->into;
    return it->into.handle || zr_target_is_direct(l->io, p, &it->item->target, &it->next);
}

/* Runs one chunk through the current stage. */
static zarr_status single_stage(void *arg, uint64_t i, const struct zr_work *w,
                                zarr_error *err)
{
    struct zr_batch *l = arg;
    struct zr_batch_item *it = &l->item[i];
    const uint32_t k = (uint32_t)(l->stage - l->p->stage);
    struct zr_coding c = {.p = l->p, .cur = it->cur, .done = k, .skip = it->skip};
    zarr_status st = ZARR_OK;

    if (it->again)
        return ZARR_OK;
    st = zr_stages_run(w, &c, k + 1, &it->next, err);
    it->cur = c.cur;
    it->skip = c.skip;
    return st;
}

/* A batch, and the chunks that its implementation does not take. */
struct stage_batch {
    struct zr_batch *l;
    zarr_codec_job *job;
    uint32_t *owner, *refused;
    uint32_t n, n_refused;
};

static zarr_status batch_sort(struct stage_batch *b, zarr_error *err)
{
    struct zr_batch *l = b->l;
    struct zr_arena *arena = l->arena;
    const uint32_t k = (uint32_t)(l->stage - l->p->stage);
    const size_t n = (size_t)l->n + 1;

    b->job = zr_arena_alloc(arena, n * sizeof *b->job);
    b->owner = zr_arena_alloc(arena, n * sizeof *b->owner);
    b->refused = zr_arena_alloc(arena, n * sizeof *b->refused);
    if (!b->job || !b->owner || !b->refused)
        return zr_fail_memory(err, n * sizeof *b->job);
    for (uint32_t i = 0; i < l->n; i++) {
        const struct zr_batch_item *it = &l->item[i];
        const zarr_codec_job job = {.src = it->cur, .dst = it->next};

        if (it->again)
            continue;
        if (zr_batch_skips(it, k) ||
            (l->stage->fallback && !zr_stage_has_looked(l->stage) &&
             !zr_stage_accepts(l->stage, &job))) {
            b->refused[b->n_refused++] = i;
            continue;
        }
        b->job[b->n] = job;
        b->owner[b->n++] = i;
    }
    return ZARR_OK;
}

static zarr_status refused_one(void *arg, uint64_t i, const struct zr_work *w,
                               zarr_error *err)
{
    const struct stage_batch *b = arg;

    return single_stage(b->l, b->refused[i], w, err);
}

static zarr_status batch_decode_refused(struct stage_batch *b, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    if (b->n_refused == 0)
        return ZARR_OK;
    ZR_TRY(zr_batch_wait(b->l, err)); /* their input may be on its way */
    st = zr_batch_parallel(b->l->io, b->l->rq, b->n_refused, refused_one, b, err);
    if (st != ZARR_OK && err)
        err->item = err->item < b->n_refused ? b->refused[err->item] : UINT64_MAX;
out:
    return st;
}

/* Moves inputs that do not begin where the decoder wants them: chunks of a shard, from a
 * store that reaches the device. */
static zarr_status batch_align(struct zr_batch *l, zarr_error *err)
{
    zarr_memory *dst = NULL, *src = NULL;
    uint64_t step = 0;
    uint32_t n = 0;

    for (uint32_t k = 0; k < l->n; k++)
        if (!zr_stage_takes_at(l->io, l->stage, &l->item[k].cur)) {
            step = ZR_MAX(step, l->item[k].cur.bytes);
            n++;
        }
    if (n == 0)
        return ZARR_OK;
    dst = zr_arena_alloc(l->arena, n * sizeof *dst);
    src = zr_arena_alloc(l->arena, n * sizeof *src);
    if (!dst || !src)
        return zr_fail_memory(err, n * sizeof *dst);
    ZR_CHECK(zr_flow_worker(l->flow, err));
    ZR_CHECK(zr_batch_slab(l, l->stage->in_device, &step, n, &l->aligned, err));
    n = 0;
    for (uint32_t k = 0; k < l->n; k++) {
        zarr_memory *cur = &l->item[k].cur;

        if (zr_stage_takes_at(l->io, l->stage, cur))
            continue;
        src[n] = *cur;
        if (!zr_mem_slice(&l->aligned, n * step, src[n].bytes, &dst[n]))
            return zr_internal(err);
        *cur = dst[n++];
    }
    ZR_CHECK(zr_mem_copy_list(l->io->engine->memory, dst, src, n, &l->flow->stream,
                              &l->flow->w.worker->copies, err));
    zr_batch_note_queued(l);
    return ZARR_OK;
}

static zarr_status batch_stage(struct zr_batch *l, zarr_error *err)
{
    struct stage_batch b = {.l = l};
    struct zr_flow_jobs jobs;
    zarr_status st = ZARR_OK;

    ZR_TRY(batch_align(l, err));
    /* Codecs before it may decline jobs, and a checksum among them must be known to be
     * right if it does not check its input. Copies before it need no wait. */
    if (!zr_stage_is_async(l->stage) || (l->called == l->flow->n_waits + 1 &&
                                         !(l->stage->impl->vt.caps & ZARR_CODEC_SAFE)))
        ZR_TRY(zr_batch_wait(l, err));
    ZR_TRY(batch_sort(&b, err));
    ZR_TRY(batch_decode_refused(&b, err));
    jobs = (struct zr_flow_jobs){.job = b.job, .of = l, .owner = b.owner, .n = b.n};
    if (b.n > 0) {
        const uint64_t before = l->flow->n_pending;

        ZR_TRY(zr_flow_run(l->flow, l->stage, &jobs, err));
        zr_batch_note_queued(l);
        if (l->flow->n_pending != before)
            l->called = l->queued;
    }
    for (uint32_t k = 0; k < b.n; k++) {
        struct zr_batch_item *it = &l->item[b.owner[k]];

        if (it->again) /* it has no output */
            continue;
        it->cur = it->next;
        it->cur.bytes = b.job[k].dst_used;
    }
out:
    return zr_batch_name(l, st, err);
}

void zr_batch_note_declined(void *of, uint32_t owner, const struct zr_stage *s)
{
    struct zr_batch *l = of;

    l->item[owner].again = true;
    if (s)
        zr_batch_skip(&l->item[owner], (uint32_t)(s - l->p->stage));
}

static zarr_status run_stage(struct zr_batch *l, uint32_t i, zarr_error *err)
{
    const struct zr_stage *s = &l->p->stage[i];

    l->stage = s;
    if (s->kind == ZR_STAGE_COPY && l->flow->device != 0)
        return ZARR_OK; /* zr_batch_copy() did it */
    ZR_CHECK(stage_rooms(l, i, err));
    if (s->kind == ZR_STAGE_CODEC && (s->impl->vt.caps & ZARR_CODEC_BATCH))
        return batch_stage(l, err);
    ZR_CHECK(zr_batch_name(l, zr_batch_wait(l, err), err));
    return parallel_items(l, single_stage, err);
}

/* ---- elements ---------------------------------------------------------- */

static zarr_status check_elements(const struct zr_batch *l,
                                  const struct zr_batch_item *it, zarr_error *err)
{
    if (it->cur.bytes == l->p->decoded_bytes)
        return ZARR_OK;
    return zr_fail(err, ZARR_ERR_CORRUPT,
                   "chunk has %" PRIu64
                   " bytes where its shape and data type need %" PRIu64,
                   it->cur.bytes, l->p->decoded_bytes);
}

static zarr_status finish_one(void *arg, uint64_t i, const struct zr_work *w,
                              zarr_error *err)
{
    struct zr_batch *l = arg;
    struct zr_batch_item *it = &l->item[i];

    if (it->again)
        return ZARR_OK;
    w->worker->stats.bytes_decoded += it->cur.bytes;
    w->worker->stats.chunks_distrusted += l->p->distrusts;
    ZR_CHECK(check_elements(l, it, err));
    ZR_CHECK(zr_block_unpad(w, l->p, &it->cur, err));
    if (it->item)
        ZR_CHECK(zr_item_finish(w, it->segment, it->item, &it->cur, it->direct, err));
    return ZARR_OK;
}

/* Whether elements go to the device in lists. */
static bool ends_on_device(const struct zr_batch *l)
{
    return l->flow->device != 0 && !l->io->layout->variable && !l->p->padded;
}

static zarr_status sizes_are_right(struct zr_batch *l, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    for (uint32_t k = 0; k < l->n && st == ZARR_OK; k++) {
        if (l->item[k].again)
            continue;
        st = check_elements(l, &l->item[k], err);
        if (st != ZARR_OK && err)
            err->item = k;
    }
    return zr_batch_name(l, st, err);
}

static void count_batch_items(struct zr_batch *l)
{
    for (uint32_t k = 0; k < l->n; k++) {
        const struct zr_batch_item *it = &l->item[k];

        if (it->again)
            continue;
        l->flow->w.worker->stats.bytes_decoded += it->cur.bytes;
        l->flow->w.worker->stats.chunks_distrusted += l->p->distrusts;
        if (it->item)
            zr_item_count(&l->flow->w, it->item, it->direct);
    }
}

/* All elements go to their places. On a device that takes a few calls, and ends with one
 * wait. */
static zarr_status finish(struct zr_batch *l, uint32_t n, zarr_error *err)
{
    const bool on_device = ends_on_device(l);

    for (uint32_t i = 0; i < n && on_device; i++)
        ZR_CHECK(sizes_are_right(&l[i], err));
    if (on_device) {
        ZR_CHECK(zr_flow_worker(l->flow, err));
        ZR_CHECK(zr_batch_copy(l, n, ZR_BATCH_END, err));
        ZR_CHECK(zr_batch_scatter(l, n, err));
        ZR_CHECK(zr_batch_fill(l, err));
    }
    ZR_CHECK(zr_batch_name(l, zr_flow_wait(l->flow, err), err));
    for (uint32_t i = 0; i < n; i++)
        if (on_device)
            count_batch_items(&l[i]);
        else
            ZR_CHECK(parallel_items(&l[i], finish_one, err));
    return ZARR_OK;
}

/* ---- chunks that were declined ------------------------------------------ */

/* Decodes a chunk into its block. */
static zarr_status again_into(const struct zr_work *w, const struct zr_program *p,
                              const struct zr_batch_item *it, zarr_error *err)
{
    struct zr_coding c = {.p = p, .cur = it->encoded, .skip = it->skip};

    ZR_CHECK(zr_stages_run(w, &c, p->n, &it->into, err));
    ZR_CHECK(zr_decode_end(w, p, &it->encoded, &c.cur, err));
    if (c.cur.handle != it->into.handle || c.cur.offset != it->into.offset)
        ZR_CHECK(zr_mem_copy_bytes(w->io->engine->memory, &it->into, &c.cur, c.cur.bytes,
                                   &w->worker->copies, err));
    return ZARR_OK;
}

static zarr_status again_one(void *arg, uint64_t i, const struct zr_work *w,
                             zarr_error *err)
{
    const struct stage_batch *b = arg;
    const struct zr_batch_item *it = &b->l->item[b->refused[i]];

    if (!it->item)
        return again_into(w, b->l->p, it, err);
    return zr_item_decode(w, it->segment, it->item, &it->encoded, it->skip, err);
}

/* Reads the chunks alone that no implementation took in a batch. */
static zarr_status read_again(struct zr_batch *l, zarr_error *err)
{
    struct stage_batch b = {.l = l};
    zarr_status st = ZARR_OK;

    if (!l->flow->any_declined)
        return ZARR_OK;
    b.refused = zr_arena_alloc(l->arena, l->n * sizeof *b.refused);
    if (!b.refused)
        ZR_FAIL_MEMORY(err, l->n * sizeof *b.refused);
    for (uint32_t k = 0; k < l->n; k++)
        if (l->item[k].again)
            b.refused[b.n_refused++] = k;
    if (b.n_refused > 0)
        st = zr_batch_parallel(l->io, l->rq, b.n_refused, again_one, &b, err);
    if (st != ZARR_OK && err)
        err->item = err->item < b.n_refused ? b.refused[err->item] : UINT64_MAX;
out:
    return zr_batch_name(l, st, err);
}

zarr_status zr_batch_run(struct zr_batch *l, uint32_t n, zarr_error *err)
{
    uint32_t most = 0;

    for (uint32_t k = 0; k < n; k++)
        most = ZR_MAX(most, l[k].p->n);
    for (uint32_t i = 0; i < most; i++) {
        if (l->flow->device != 0)
            ZR_CHECK(zr_batch_copy(l, n, i, err));
        for (uint32_t k = 0; k < n; k++)
            if (i < l[k].p->n)
                ZR_CHECK(run_stage(&l[k], i, err));
    }
    ZR_CHECK(finish(l, n, err));
    for (uint32_t k = 0; k < n; k++)
        ZR_CHECK(read_again(&l[k], err));
    return ZARR_OK;
}

/* The chunk that failed, counted over all programs. `item` is one of flow->failed. */
static uint64_t item_of_all(const struct zr_batch *l, uint32_t n, uint64_t item)
{
    const struct zr_batch *of = l->flow->failed;
    uint64_t before = 0;

    for (uint32_t k = 0; k < n; k++) {
        if (of == &l[k])
            return item < l[k].n ? before + item : UINT64_MAX;
        before += l[k].n;
    }
    return UINT64_MAX;
}

zarr_status zr_batch_blocks(const struct zr_work *w, struct zr_batch *l, uint32_t n,
                            struct zr_arena *arena, zarr_error *err)
{
    struct zr_flow flow;
    zarr_status st = ZARR_OK;

    for (uint32_t k = 0; k < n; k++) {
        l[k].io = w->io;
        l[k].rq = w->rq;
        l[k].arena = arena;
        l[k].end = *l[k].p;
        l[k].flow = &flow;
    }
    ZR_TRY(zr_flow_begin(&flow, w, w->io->view.base.device_type, arena, err));
    flow.declined = zr_batch_note_declined;
    ZR_TRY(zr_batch_run(l, n, err));
out:
    if (st != ZARR_OK && err)
        err->item = item_of_all(l, n, err->item);
    zr_flow_end(&flow);
    for (uint32_t k = 0; k < n; k++)
        zr_batch_end(&l[k]);
    return st;
}
