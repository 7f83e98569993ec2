/*
 * pipe/lockstep.c - carries out a wave in lock step, for programs with an implementation
 * that takes batches (ZARR_CODEC_BATCH). A stage with such an implementation is called
 * once for all chunks that it accepts; chunks that it refuses go through its fallback one
 * by one. Any other stage is a parallel loop over the chunks. Segments that were not
 * fetched in advance (missing, short, or otherwise unusual) are read one by one in the
 * ordinary way.
 * Thread class: one wave; helpers take worker contexts.
 */
#include "pipe/pipe_int.h"

#include <string.h>

enum {
    ALIGNMENT = 256 /* implementations on devices need aligned chunks */
};

struct lock_item {
    const struct zr_segment *segment;
    const struct zr_item *item;
    zarr_mem cur, next;
    bool direct;
};

struct lockstep {
    const struct zr_io *io;
    struct zarr_request *rq;
    struct zr_wave *wave;
    const struct zr_program *p;
    const zarr_mem *fetched;
    struct lock_item *item;
    zarr_codec_job *job;
    uint32_t *job_item;
    uint32_t n;
    const struct zr_level *
        *level; /* of the segments in work: each level has its own program */
    uint32_t n_levels;
    const struct zr_stage *stage; /* of the current loop */
    zarr_mem slab[2];             /* pool blocks for the outputs of stages, in turn */
};

bool zr_wants_lockstep(const struct zr_program *p)
{
    if (!p || p->unsized) /* only decoding tells the size of each chunk */
        return false;
    for (uint32_t i = 0; i < p->n; i++)
        if (p->stage[i].kind == ZR_STAGE_CODEC &&
            (p->stage[i].impl->vt.caps & ZARR_CODEC_BATCH) != 0)
            return true;
    return false;
}

zarr_status zr_take_slices(const struct zr_io *io, int32_t device, uint64_t *step,
                           uint64_t n, zarr_mem *slab, zarr_error *err)
{
    uint64_t all = 0;

    if (!zr_add_u64(*step, ALIGNMENT - 1, step))
        return zr_fail(err, ZARR_ERR_LIMIT, "a wave too large for memory");
    *step = *step / ALIGNMENT * ALIGNMENT;
    if (!zr_mul_u64(*step, n, &all))
        return zr_fail(err, ZARR_ERR_LIMIT, "a wave too large for memory");
    zr_pool_give(io->engine->pool, slab);
    *slab = (zarr_mem){0};
    return zr_pool_take(io->engine->pool, device, zr_io_device_id(io, device),
                        ZR_MAX(all, (uint64_t)ALIGNMENT), slab, err);
}

static zarr_status parallel(struct lockstep *l, uint64_t n, zr_work_fn fn,
                            zarr_error *err)
{
    const struct zr_work w = {.io = l->io, .rq = l->rq, .granted = true};
    const struct zr_parallel_options opts = {.max_threads = zr_io_threads(l->io)};

    return zr_workers_run(&w, n, &opts, fn, l, err);
}

/* Runs a loop over the items of the wave. err->item becomes that of the segment, as
 * callers expect. */
static zarr_status parallel_items(struct lockstep *l, zr_work_fn fn, zarr_error *err)
{
    zarr_status st = parallel(l, l->n, fn, err);

    if (st != ZARR_OK && err && err->item < l->n)
        err->item = (uint64_t)(l->item[err->item].segment - l->wave->segment);
    return st;
}

/* ---- who takes part ---------------------------------------------------- */

static zarr_status read_ordinary_segment(void *arg, uint64_t i, const struct zr_work *w,
                                         zarr_error *err)
{
    struct lockstep *l = arg;

    if (l->fetched[i].handle)
        return ZARR_OK;
    return zr_segment_read(w, &l->wave->segment[i], NULL, err);
}

static zarr_status collect_segment(struct lockstep *l, const struct zr_segment *segment,
                                   const zarr_mem *bytes, zarr_error *err)
{
    for (uint32_t k = 0; k < segment->n_items; k++) {
        struct lock_item *it = &l->item[l->n];
        const struct zr_item *item = segment->item[k];

        *it = (struct lock_item){.segment = segment, .item = item, .cur = *bytes};
        if (segment->bytes != UINT64_MAX &&
            !zr_mem_slice(bytes, item->offset - segment->offset, item->bytes, &it->cur))
            return zr_internal(err);
        l->n++;
    }
    return ZARR_OK;
}

static zarr_status collect_room(struct lockstep *l, zarr_error *err)
{
    struct zr_arena *arena = &l->wave->arena;
    uint32_t most = l->wave->n_items;

    l->item = zr_arena_alloc(arena, (most + 1) * sizeof *l->item);
    l->job = zr_arena_alloc(arena, (most + 1) * sizeof *l->job);
    l->job_item = zr_arena_alloc(arena, (most + 1) * sizeof *l->job_item);
    l->level = zr_arena_alloc(arena, ((size_t)l->wave->n_segments + 1) *
                                         sizeof(struct zr_level *));
    if (!l->item || !l->job || !l->job_item || !l->level)
        return zr_fail_memory(err, most * sizeof *l->item);
    return ZARR_OK;
}

/* Collects the levels of the segments that were fetched: one, unless chunks differ in
 * shape. */
static void collect_levels(struct lockstep *l)
{
    for (uint32_t i = 0; i < l->wave->n_segments; i++) {
        const struct zr_level *lv = l->wave->segment[i].level;
        uint32_t k = 0;

        if (!l->fetched[i].handle)
            continue;
        while (k < l->n_levels && l->level[k] != lv)
            k++;
        if (k == l->n_levels)
            l->level[l->n_levels++] = lv;
    }
}

static zarr_status collect(struct lockstep *l, const struct zr_level *lv, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    l->n = 0;
    l->p = lv->decode;
    for (uint32_t i = 0; i < l->wave->n_segments; i++)
        if (l->fetched[i].handle && l->wave->segment[i].level == lv)
            ZR_TRY(collect_segment(l, &l->wave->segment[i], &l->fetched[i], err));
out:
    return st;
}

/* ---- stages ------------------------------------------------------------ */

/* Assigns each chunk a place for its output: the destination itself after the last stage
 * if it fits, else a slice of a pool block. */
static zarr_status stage_rooms(struct lockstep *l, uint32_t i, zarr_error *err)
{
    const struct zr_stage *s = &l->p->stage[i];
    zarr_mem *slab = &l->slab[i % 2];
    uint64_t step = 0, most = s->out_bytes;
    zarr_status st = ZARR_OK;

    if (s->kind == ZR_STAGE_COPY)
        for (uint32_t k = 0; k < l->n; k++)
            most = ZR_MAX(most, l->item[k].cur.bytes);
    step = most;
    ZR_TRY(zr_take_slices(l->io, s->out_device, &step, l->n, slab, err));
    for (uint32_t k = 0; k < l->n; k++) {
        struct lock_item *it = &l->item[k];

        it->direct = i + 1 == l->p->n &&
                     zr_target_direct(l->io, l->p, &it->item->target, &it->next);
        if (!it->direct &&
            !zr_mem_slice(slab, k * step, s->kind == ZR_STAGE_COPY ? it->cur.bytes : most,
                          &it->next))
            return zr_internal(err);
    }
out:
    return st;
}

/* Runs one chunk through the current stage. */
static zarr_status stage_alone(const struct lockstep *l, const struct zr_work *w,
                               struct lock_item *it, zarr_error *err)
{
    const uint32_t k = (uint32_t)(l->stage - l->p->stage);
    struct zr_coding c = {.p = l->p, .cur = it->cur, .done = k};
    zarr_status st = zr_stages_run(w, &c, k + 1, &it->next, err);

    it->cur = c.cur;
    return st;
}

static zarr_status single_stage(void *arg, uint64_t i, const struct zr_work *w,
                                zarr_error *err)
{
    struct lockstep *l = arg;
    struct lock_item *it = &l->item[i];
    zarr_status st = stage_alone(l, w, it, err);

    return zr_item_prefix(it->segment, it->item, st, err);
}

static zarr_status batch_call(struct lockstep *l, const struct zr_work *w, uint32_t n,
                              zarr_error *err)
{
    const struct zr_stage *s = l->stage;
    struct zr_stage_call call = {.jobs = l->job, .n = n, .ts = &w->worker->states};
    uint64_t need = zr_stage_scratch(s, n);
    zarr_status st = ZARR_OK;

    if (need > 0)
        ZR_TRY(zr_worker_scratch(w, ZR_SCRATCH_CODEC, s->out_device, need, &call.scratch,
                                 err));
    st = zr_stage_run(s, &call, false, err);
    if (st != ZARR_OK) {
        uint64_t k = err && err->item < n ? err->item : 0;
        const struct lock_item *it = &l->item[l->job_item[k]];

        if (err)
            err->item = (uint64_t)(it->segment - l->wave->segment);
        return zr_item_prefix(it->segment, it->item, st, err);
    }
    for (uint32_t k = 0; k < n; k++) {
        struct lock_item *it = &l->item[l->job_item[k]];

        it->cur = it->next;
        it->cur.bytes = l->job[k].dst_used;
    }
out:
    return st;
}

static zarr_status batch_stage(struct lockstep *l, zarr_error *err)
{
    struct zr_work w = {.io = l->io, .rq = l->rq};
    uint32_t n = 0;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_worker_take(l->io->engine, &l->rq->cancel, &w.worker, err));
    for (uint32_t i = 0; i < l->n; i++) {
        struct lock_item *it = &l->item[i];
        zarr_codec_job job = {.src = it->cur, .dst = it->next};

        if (l->stage->fallback && !zr_stage_accepts(l->stage, &job)) {
            st = stage_alone(l, &w, it, err);
            if (st != ZARR_OK && err)
                err->item = (uint64_t)(it->segment - l->wave->segment);
            ZR_TRY(zr_item_prefix(it->segment, it->item, st, err));
            continue;
        }
        l->job[n] = job;
        l->job_item[n++] = i;
    }
    if (n > 0)
        ZR_TRY(batch_call(l, &w, n, err));
out:
    if (w.worker)
        zr_request_merge(l->rq, w.worker);
    zr_worker_give(w.worker);
    return st;
}

static zarr_status run_stages(struct lockstep *l, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    for (uint32_t i = 0; i < l->p->n; i++) {
        l->stage = &l->p->stage[i];
        ZR_TRY(stage_rooms(l, i, err));
        if (l->stage->kind == ZR_STAGE_CODEC &&
            (l->stage->impl->vt.caps & ZARR_CODEC_BATCH) != 0)
            ZR_TRY(batch_stage(l, err));
        else
            ZR_TRY(parallel_items(l, single_stage, err));
    }
out:
    return st;
}

static zarr_status finish_one(void *arg, uint64_t i, const struct zr_work *w,
                              zarr_error *err)
{
    struct lockstep *l = arg;
    struct lock_item *it = &l->item[i];
    zarr_status st = ZARR_OK;

    w->worker->stats.bytes_decoded += it->cur.bytes;
    if (it->cur.bytes != l->p->decoded_bytes)
        ZR_TRY(zr_fail(err, ZARR_ERR_CORRUPT,
                       "chunk has %" PRIu64
                       " bytes where its shape and data type need %" PRIu64,
                       it->cur.bytes, l->p->decoded_bytes));
    ZR_TRY(zr_block_unpad(w, l->p, &it->cur, err));
    ZR_TRY(zr_item_finish(w, it->segment, it->item, &it->cur, it->direct, err));
out:
    return zr_item_prefix(it->segment, it->item, st, err);
}

zarr_status zr_lockstep_exec(const struct zr_io *io, struct zarr_request *rq,
                             struct zr_wave *wave, const zarr_mem *fetched,
                             zarr_error *err)
{
    struct lockstep l = {.io = io, .rq = rq, .wave = wave, .fetched = fetched};
    zarr_status st = ZARR_OK;

    ZR_TRY(parallel(&l, wave->n_segments, read_ordinary_segment, err));
    ZR_TRY(collect_room(&l, err));
    collect_levels(&l);
    for (uint32_t k = 0; k < l.n_levels; k++) {
        ZR_TRY(collect(&l, l.level[k], err));
        ZR_TRY(run_stages(&l, err));
        ZR_TRY(parallel_items(&l, finish_one, err));
    }
out:
    zr_pool_give(io->engine->pool, &l.slab[0]);
    zr_pool_give(io->engine->pool, &l.slab[1]);
    return st;
}
