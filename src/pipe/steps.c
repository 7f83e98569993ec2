/*
 * pipe/steps.c - the steps of a read as functions for plug-ins' pipelines
 * (zarrc/plugin/pipeline.h). They call the same inner functions as `waves` and `serial`.
 * Each opaque struct of the plug-in interface wraps one inner struct. Writes are in
 * steps_write.c.
 * Thread class: as each step says; the table is frozen.
 */
#include "pipe/pipe_int.h"

#include <string.h>

struct zarr_pipeline_plan {
    struct zarr_request *rq;
    struct zr_plan *plan;
};

struct zarr_pipeline_wave {
    const struct zarr_pipeline_plan *plan;
    struct zr_wave wave;
};

/* ---- the request ------------------------------------------------------------- */

static void step_request(zarr_request *rq, zarr_pipeline_request *out)
{
    const struct zr_layout *l = rq->io.layout;

    *out = (zarr_pipeline_request){
        .struct_size = sizeof *out,
        .write = rq->io.write,
        .threads = zr_io_threads(&rq->io),
        .ndim = l->grid->ndim,
        .wave_bytes = zr_io_wave_bytes(&rq->io),
        .prefix = rq->io.prefix,
        .dtype = l->dtype,
        .shape = l->grid->shape,
        .device_type = rq->io.view.base.device_type,
        .device_id = rq->io.view.base.device_id,
        .levels = l->n_levels,
    };
}

static const zarr_codec_spec *step_codec(zarr_request *rq, uint32_t level, uint64_t i)
{
    const struct zr_layout *l = rq->io.layout;

    if (level >= l->n_levels || i >= l->level[level].chain->n)
        return NULL;
    return &l->level[level].chain->codec[i];
}

static int step_is_cancelled(zarr_request *rq)
{
    return zr_is_cancelled(&rq->cancel);
}

/* What the steps have on the tensor's device while buffers have so many bytes of host
 * memory: one chunk a worker. */
static uint64_t steps_on_device(const struct zarr_request *rq, uint64_t bytes)
{
    const struct zr_layout *l = rq->io.layout;
    const struct zr_level *leaf = &l->level[l->n_levels - 1];
    const uint64_t each = zr_add_cap(leaf->encoded_bound, leaf->decoded_bytes);
    const uint64_t n = ZR_MAX(bytes / ZR_MAX(each, UINT64_C(1)), UINT64_C(1));

    if (!rq->device || bytes == 0)
        return 0;
    return zr_mul_cap(zr_device_need(&rq->io, leaf, rq->io.write, false, 1),
                      ZR_MIN(n, (uint64_t)zr_io_threads(&rq->io)));
}

static zarr_status step_reserve(zarr_request *rq, uint64_t bytes, zarr_error *err)
{
    const struct zr_need need = {.host = bytes, .device = steps_on_device(rq, bytes)};
    zarr_status st = zr_request_take(rq, need, err);

    if (st != ZARR_OK || need.device == 0)
        return st;
    zr_request_lock(rq);
    rq->locked.reserved.host += need.host;
    rq->locked.reserved.device += need.device;
    zr_request_unlock(rq);
    return ZARR_OK;
}

/* The share of the device's bytes that goes with so many of the host's, which need not be
 * given back as they were taken. */
static uint64_t device_share(const struct zr_need *of, uint64_t bytes)
{
    if (bytes >= of->host)
        return of->device;
    return zr_add_cap(zr_mul_cap(of->device / of->host, bytes),
                      zr_mul_cap(of->device % of->host, bytes) / of->host);
}

static void step_release(zarr_request *rq, uint64_t bytes)
{
    struct zr_need need = {.host = bytes};

    if (rq->device && bytes > 0) {
        struct zr_need *reserved = &rq->locked.reserved;

        zr_request_lock(rq);
        need.device = device_share(reserved, bytes);
        reserved->host -= ZR_MIN(bytes, reserved->host);
        reserved->device -= need.device;
        zr_request_unlock(rq);
    }
    zr_request_give(rq, need);
}

/* After the last step of a chunk: the worker gives its blocks on the device back, which
 * count in a reservation. What fetch() gave stays for the other chunks of the segment. */
static void step_leave_device(const zarr_pipeline_worker *worker, bool fetched)
{
    if (worker->w.rq->device)
        zr_worker_leave_device(worker->w.worker, fetched);
}

/* ---- workers ------------------------------------------------------------------- */

static zarr_status step_worker_open(zarr_pipeline_worker **out, zarr_request *rq,
                                    uint32_t flags, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct zarr_pipeline_worker *worker = NULL;

    *out = NULL;
    ZR_TRY(zr_flags_check(flags, ZARR_PIPELINE_PLAIN, "worker", err));
    worker = zr_calloc(rq->io.engine->alloc, 1, sizeof *worker);
    if (!worker)
        return zr_fail_memory(err, sizeof *worker);
    worker->w = (struct zr_work){.io = &rq->io, .rq = rq};
    if (flags & ZARR_PIPELINE_PLAIN) {
        worker->plain = zr_malloc(rq->io.engine->alloc, sizeof *worker->plain);
        if (!worker->plain)
            ZR_FAIL_MEMORY(err, sizeof *worker->plain);
        *worker->plain = rq->io;
        worker->plain->no_direct = true;
        worker->w.io = worker->plain;
    }
    ZR_TRY(zr_worker_take(rq->io.engine, &rq->cancel, &worker->w.worker, err));
    *out = worker;
    worker = NULL; /* moved */
out:
    if (worker) {
        zr_free(rq->io.engine->alloc, worker->plain);
        zr_free(rq->io.engine->alloc, worker);
    }
    return st;
}

static void step_worker_close(zarr_pipeline_worker *worker)
{
    const zarr_allocator *alloc = NULL;

    if (!worker)
        return;
    alloc = worker->w.io->engine->alloc;
    zr_request_merge(worker->w.rq, worker->w.worker);
    zr_worker_give(worker->w.worker);
    zr_free(alloc, worker->plain);
    zr_free(alloc, worker);
}

struct step_loop {
    zarr_status (*fn)(void *arg, uint64_t i, zarr_pipeline_worker *worker,
                      zarr_error *err);
    void *arg;
};

static zarr_status step_loop_one(void *arg, uint64_t i, const struct zr_work *w,
                                 zarr_error *err)
{
    const struct step_loop *l = arg;
    zarr_pipeline_worker worker = {.w = *w};

    return l->fn(l->arg, i, &worker, err);
}

static zarr_status step_parallel(zarr_request *rq, uint64_t n,
                                 zarr_status (*fn)(void *arg, uint64_t i,
                                                   zarr_pipeline_worker *worker,
                                                   zarr_error *err),
                                 void *arg, zarr_error *err)
{
    const struct zr_work w = {.io = &rq->io, .rq = rq};
    const struct zr_parallel_options opts = {.max_threads = zr_io_threads(&rq->io)};
    struct step_loop l = {.fn = fn, .arg = arg};

    return zr_workers_run(&w, n, &opts, step_loop_one, &l, err);
}

/* ---- plans and waves ------------------------------------------------------------- */

static void take_u64(uint64_t *to, uint64_t wish)
{
    if (wish != 0)
        *to = wish;
}

static void step_plan_close(zarr_pipeline_plan *plan)
{
    if (!plan)
        return;
    zr_plan_free(plan->plan);
    zr_free(plan->rq->io.engine->alloc, plan);
}

static void take_wishes(struct zr_plan_args *args, const zarr_pipeline_cut *cut)
{
    take_u64(&args->wave_bytes, cut->wave_bytes);
    take_u64(&args->segment_bytes, cut->segment_bytes);
    take_u64(&args->segment_gap, cut->segment_gap);
    if (cut->wave_items != 0) {
        args->wave_items = cut->wave_items;
        args->wave_items_in_order = 0;
    }
    args->threads = cut->threads != 0 ? cut->threads : args->threads;
}

static zarr_status step_plan_open(zarr_pipeline_plan **out, zarr_request *rq,
                                  const zarr_pipeline_cut *wish, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct zarr_pipeline_plan *plan = NULL;
    struct zr_plan_args args;
    zarr_pipeline_cut cut;

    *out = NULL;
    ZR_TRY(zr_struct_read(&cut, sizeof cut, 2 * sizeof(uint32_t), wish, ZR_TAIL_REFUSE,
                          "zarr_pipeline_cut", err));
    ZR_TRY(zr_flags_check(cut.flags, ZARR_PIPELINE_PLAIN, "plan", err));
    (cut.flags & ZARR_PIPELINE_PLAIN ? zr_serial_cut : zr_waves_cut)(&rq->io, &args);
    if (!args.plain)
        take_wishes(&args, &cut);
    plan = zr_calloc(rq->io.engine->alloc, 1, sizeof *plan);
    if (!plan)
        ZR_FAIL_MEMORY(err, sizeof *plan);
    plan->rq = rq;
    ZR_TRY(zr_plan_open(&plan->plan, &args, rq->io.engine->alloc, err));
    if (rq->submitted || rq->io.progress || zr_attempt_runs())
        ZR_TRY(zr_count_chunks(rq, plan->plan, err));
    *out = plan;
    plan = NULL; /* moved */
out:
    step_plan_close(plan);
    return st;
}

static zarr_status step_wave_open(zarr_pipeline_wave **out, zarr_pipeline_plan *plan,
                                  zarr_error *err)
{
    const zarr_allocator *alloc = plan->rq->io.engine->alloc;
    struct zarr_pipeline_wave *wave = zr_calloc(alloc, 1, sizeof *wave);

    *out = wave;
    if (!wave)
        return zr_fail_memory(err, sizeof *wave);
    wave->plan = plan;
    zr_wave_init(&wave->wave, alloc);
    return ZARR_OK;
}

static void step_wave_close(zarr_pipeline_wave *wave)
{
    if (!wave)
        return;
    zr_wave_deinit(&wave->wave);
    zr_free(wave->plan->rq->io.engine->alloc, wave);
}

static zarr_status step_next(zarr_pipeline_plan *plan, zarr_pipeline_wave *wave,
                             uint32_t *kind, zarr_error *err)
{
    zarr_status st = zr_plan_next(plan->plan, &wave->wave, err);
    struct zarr_request *rq = plan->rq;

    if (st == ZARR_OK && zr_attempt_runs())
        st = zr_attempt_check(&wave->wave, err);
    *kind = ZARR_WAVE_END;
    if (st != ZARR_OK || (wave->wave.kind == ZR_WAVE_END && wave->wave.n_segments == 0))
        return st;
    *kind = ZARR_WAVE_MORE;
    if (wave->wave.n_segments > 0)
        zr_request_wave(rq, 0, 0);
    return ZARR_OK;
}

static void step_wave_counts(const zarr_pipeline_wave *wave, uint32_t *n_opens,
                             uint32_t *n_segments)
{
    *n_opens = wave->wave.n_opens;
    *n_segments = wave->wave.n_segments;
}

static zarr_status fail_out_of_range(const char *what, uint32_t i, uint32_t n,
                                     zarr_error *err)
{
    return zr_fail(err, ZARR_ERR_INVALID,
                   "pipeline: there is no %s %" PRIu32 " among %" PRIu32, what, i, n);
}

static zarr_status step_open(zarr_pipeline_worker *worker, zarr_pipeline_wave *wave,
                             uint32_t i, zarr_error *err)
{
    struct zr_work w = worker->w;

    if (i >= wave->wave.n_opens)
        return fail_out_of_range("shard", i, wave->wave.n_opens, err);
    w.granted = true; /* the pipeline may hold bytes, so it must not wait for more */
    return zr_parts_open(&w, &wave->wave.open[i], err);
}

static zarr_status step_resume(zarr_pipeline_plan *plan, zarr_pipeline_wave *wave,
                               zarr_error *err)
{
    return zr_plan_resume(plan->plan, &wave->wave, err);
}

/* ---- segments and items ------------------------------------------------ */

static void count_delivered(const zarr_pipeline_worker *worker,
                            const struct zr_item *item)
{
    atomic_fetch_add(&worker->w.rq->delivered, zr_target_items(&item->target));
}

static zarr_status step_read(zarr_pipeline_worker *worker, zarr_pipeline_wave *wave,
                             uint32_t i, zarr_error *err)
{
    const struct zr_segment *segment = &wave->wave.segment[i];
    zarr_status st = ZARR_OK;

    if (i >= wave->wave.n_segments)
        return fail_out_of_range("segment", i, wave->wave.n_segments, err);
    st = zr_parts_read(&worker->w, segment, NULL, err);
    for (uint32_t k = 0; st == ZARR_OK && k < segment->n_items; k++)
        count_delivered(worker, segment->item[k]);
    return st;
}

static void step_segment_get(const zarr_pipeline_wave *wave, uint32_t i,
                             zarr_pipeline_segment *out)
{
    const struct zr_segment *r = &wave->wave.segment[i];

    *out = (zarr_pipeline_segment){
        .struct_size = sizeof *out,
        .n_items = r->n_items,
        .key = r->key,
        .offset = r->offset,
        .bytes = r->bytes,
        .device_type =
            !r->key ? r->shard->buffer.device_type : r->level->decode->fetch_device,
    };
}

static void step_item_get(const zarr_pipeline_wave *wave, uint32_t i, uint32_t item,
                          zarr_pipeline_item *out)
{
    const struct zr_segment *r = &wave->wave.segment[i];
    const struct zr_item *it = r->item[item];
    const struct zr_program *p = r->level->decode;

    *out = (zarr_pipeline_item){
        .struct_size = sizeof *out,
        .ndim = it->target.ndim,
        .offset = r->bytes >= ZR_ITEM_MISSING ? 0 : it->offset - r->offset,
        .bytes = it->bytes,
        .chunk = it->target.chunk,
        .n_elements = zr_target_items(&it->target),
        .chunk_shape = p->stored_shape,
        .chunk_bytes = p->decoded_bytes,
        .swap_bytes = p->swap_bytes,
        .device_type = p->decoded_device,
    };
}

static zarr_status find_item(const zarr_pipeline_wave *wave, uint32_t i, uint32_t item,
                             const struct zr_segment **segment, zarr_error *err)
{
    if (i >= wave->wave.n_segments)
        return fail_out_of_range("segment", i, wave->wave.n_segments, err);
    *segment = &wave->wave.segment[i];
    return item < (*segment)->n_items
               ? ZARR_OK
               : fail_out_of_range("item", item, (*segment)->n_items, err);
}

static zarr_status step_fetch(zarr_pipeline_worker *worker,
                              const zarr_pipeline_wave *wave, uint32_t i,
                              zarr_memory *out, zarr_error *err)
{
    const struct zr_segment *segment = NULL;
    struct zr_work w = worker->w;
    zarr_status st = find_item(wave, i, 0, &segment, err);

    *out = (zarr_memory){0};
    w.own_bytes = true; /* the pipeline may overwrite them */
    if (st == ZARR_OK)
        st = zr_segment_fetch(&w, segment, out, err);
    return st == ZARR_OK ? st : zr_item_prefix(segment, NULL, st, err);
}

static zarr_status step_decode(zarr_pipeline_worker *worker,
                               const zarr_pipeline_wave *wave, uint32_t i, uint32_t item,
                               const zarr_memory *fetched, zarr_memory *block,
                               zarr_error *err)
{
    zarr_status st = ZARR_OK;
    const struct zr_segment *segment = NULL;
    struct zr_work w = worker->w;
    zarr_pipeline_item at;
    zarr_memory encoded = *fetched;

    *block = (zarr_memory){0};
    w.own_block = true; /* the pipeline may overwrite what it fetched */
    zr_worker_trim(worker->w.worker);
    ZR_TRY(find_item(wave, i, item, &segment, err));
    step_item_get(wave, i, item, &at);
    if (at.bytes == ZARR_PIPELINE_MISSING)
        ZR_FAIL(err, ZARR_ERR_INVALID, "pipeline: a missing item is not decoded");
    if (at.bytes != ZARR_PIPELINE_WHOLE &&
        !zr_mem_slice(fetched, at.offset, at.bytes, &encoded))
        ZR_FAIL(err, ZARR_ERR_INVALID,
                "pipeline: %" PRIu64 " bytes at %" PRIu64 " are not in the %" PRIu64
                " given",
                at.bytes, at.offset, fetched->bytes);
    st = zr_chunk_decode(&w, segment->level->decode, &encoded, NULL, block, err);
    st = zr_item_prefix(segment, segment->item[item], st, err);
out:
    return st;
}

static zarr_status step_scatter(zarr_pipeline_worker *worker,
                                const zarr_pipeline_wave *wave, uint32_t i, uint32_t item,
                                const zarr_memory *block, zarr_error *err)
{
    const struct zr_program *p = NULL;
    const struct zr_segment *segment = NULL;
    zarr_status st = ZARR_OK;

    ZR_TRY(find_item(wave, i, item, &segment, err));
    p = segment->level->decode;
    if (block->bytes < p->decoded_bytes)
        ZR_FAIL(err, ZARR_ERR_CORRUPT,
                "pipeline: a block of %" PRIu64 " bytes where the chunk has %" PRIu64,
                block->bytes, p->decoded_bytes);
    st = zr_item_finish(&worker->w, segment, segment->item[item], block, false, err);
    step_leave_device(worker, false);
    if (st == ZARR_OK)
        count_delivered(worker, segment->item[item]);
    st = zr_item_prefix(segment, segment->item[item], st, err);
out:
    return st;
}

static zarr_status step_fill(zarr_pipeline_worker *worker, const zarr_pipeline_wave *wave,
                             uint32_t i, uint32_t item, zarr_error *err)
{
    const struct zr_segment *segment = NULL;
    zarr_status st = ZARR_OK;

    ZR_TRY(find_item(wave, i, item, &segment, err));
    st = zr_item_fill(&worker->w, segment, segment->item[item], err);
    if (st == ZARR_OK)
        count_delivered(worker, segment->item[item]);
    st = zr_item_prefix(segment, segment->item[item], st, err);
out:
    return st;
}

const zarr_pipeline_steps zr_pipeline_steps = {
    .struct_size = sizeof(zarr_pipeline_steps),
    .request = step_request,
    .codec = step_codec,
    .cancelled = step_is_cancelled,
    .worker_open = step_worker_open,
    .worker_close = step_worker_close,
    .reserve = step_reserve,
    .release = step_release,
    .parallel = step_parallel,
    .plan_open = step_plan_open,
    .plan_close = step_plan_close,
    .wave_open = step_wave_open,
    .wave_close = step_wave_close,
    .next = step_next,
    .wave_counts = step_wave_counts,
    .open = step_open,
    .resume = step_resume,
    .read = step_read,
    .segment_get = step_segment_get,
    .item_get = step_item_get,
    .fetch = step_fetch,
    .decode = step_decode,
    .scatter = step_scatter,
    .fill = step_fill,
    .blocks_open = zr_step_blocks_open,
    .blocks_close = zr_step_blocks_close,
    .blocks_next = zr_step_blocks_next,
    .block_get = zr_step_block_get,
    .write = zr_step_write,
    .encode = zr_step_encode,
    .put = zr_step_put,
};
