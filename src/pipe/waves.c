/*
 * pipe/waves.c - the reads of the pipeline `waves`. The caller's thread and its helpers
 * (flights.c) pull waves from the plan under one lock. Each carries its wave out in a
 * parallel loop over the segments, so the next wave is fetched while the last chunks of
 * one are decoded. The thread that holds the plan opens shards.
 * Writing is in waves_write.c, batches for slow stores are in prefetch.c.
 *
 * docs/internals/pipe.md says what makes a wave.
 * Thread class: one struct per request, with locks inside.
 */
#include "pipe/pipe_int.h"

#include <string.h>

/* One read under way. */
struct reading {
    struct zr_flights f; /* its lock is also that of the plan */
    /* without a worker context: the threads of each loop take their own */
    struct zr_work work;
    struct zr_plan *plan;
    zr_mutex turn; /* of fetching for a device */
};

/* ---- carrying out one wave --------------------------------------------------- */

struct wave_job {
    struct zr_wave *wave;
    const zarr_memory *fetched; /* by segment; NULL: not fetched in advance */
};

static zarr_status segment_one(void *arg, uint64_t i, const struct zr_work *w,
                               zarr_error *err)
{
    const struct wave_job *j = arg;
    const zarr_memory *fetched = NULL;

    if (j->fetched && j->fetched[i].handle)
        fetched = &j->fetched[i];
    return (w->io->parts ? zr_parts_read : zr_segment_read)(w, &j->wave->segment[i],
                                                            fetched, err);
}

static zarr_status slab_one(void *arg, uint64_t i, const struct zr_work *w,
                            zarr_error *err)
{
    struct zr_slabs *s = arg;

    return zr_item_prefix(s->segment, NULL, zr_slabs_one(w, s, i, err), err);
}

/* Reads a wave of one large uncompressed chunk with all threads. *done false: it must be
 * read in the common way. */
static zarr_status one_in_slabs(const struct zr_work *w, const struct zr_wave *wave,
                                bool *done, zarr_error *err)
{
    struct zr_parallel_options opts = {.max_threads = zr_io_threads(w->io)};
    struct zr_need need;
    struct zr_slabs s;
    zarr_status st = ZARR_OK;

    if (opts.max_threads == 1 || !zr_slabs_fit(w->io, &wave->segment[0]))
        return ZARR_OK;
    need = zr_segment_need(w->io, &wave->segment[0]); /* of one thread */
    opts.max_threads = (uint32_t)ZR_MIN(
        (uint64_t)opts.max_threads, ZR_MAX(zr_io_budget(w->io) / need.host, UINT64_C(1)));
    need.host *= opts.max_threads;
    st = zr_request_take(w->rq, need, err);
    if (st != ZARR_OK)
        return st;
    /* The common way repeats a failed read and reports its error, because it knows what
     * is missing. */
    if (zr_slabs_open(&s, w->io, &wave->segment[0], NULL) == ZARR_OK && s.n > 0) {
        *done = true;
        opts.item_ns = s.rows * s.row_bytes / 8;
        st = zr_workers_run(w, s.n, &opts, slab_one, &s, err);
        if (err)
            err->item = 0; /* the wave's only segment */
    }
    zr_slabs_close(&s);
    zr_request_give(w->rq, need);
    if (st != ZARR_OK && zr_parts_take(w->rq, st)) {
        *done = false;
        return ZARR_OK;
    }
    return st;
}

/* Whether waves are fetched one after the other: the CPU copies the bytes with all
 * threads, so that a device begins with the first wave while the second one is copied. */
static bool fetches_in_turn(const struct zr_io *io, const struct zr_wave *wave)
{
    return !zr_io_is_host(io, io->view.base.device_type) &&
           zr_store_can(io->store, ZARR_STORE_CAP_FAST_GET) &&
           wave->n_segments >= zr_io_threads(io);
}

static zarr_status fetch_wave(struct reading *r, struct zr_wave *wave,
                              struct zr_prefetch *p, zarr_error *err)
{
    const bool in_turn = fetches_in_turn(r->work.io, wave);
    zarr_status st = ZARR_OK;

    if (in_turn && !zr_mutex_try(&r->turn)) {
        zr_block_begin();
        zr_mutex_lock(&r->turn);
        zr_block_end();
    }
    st = zr_prefetch_run(r->work.io, r->work.rq, wave, p, err);
    if (in_turn)
        zr_mutex_unlock(&r->turn);
    return st;
}

/* Ends the request with the error of a wave. The wave goes first: the thread that has
 * the lock may wait for the bytes of its shards. */
static void fail_wave(struct reading *r, struct zr_wave *wave, zarr_status st,
                      const zarr_error *err)
{
    const uint64_t at = err->item < wave->n_segments
                            ? wave->segment[err->item].item[0]->ordinal
                            : UINT64_MAX;

    zr_wave_release(wave);
    if (!zr_flights_lock(&r->f))
        return;
    zr_flights_fail(&r->f, st, err, at);
    zr_mutex_unlock(&r->f.locked.mutex);
}

/* Whether the ranges of a wave are fetched at once. The worker fetches one range as
 * well, but several of one chunk one after the other. */
static bool is_fetched_at_once(const struct zr_io *io, const struct zr_wave *wave)
{
    struct zr_ranges ranges;

    return zr_wants_batches(io, wave->level->decode) &&
           (wave->n_segments > 1 ||
            (zr_raw_in_ranges(io, &wave->segment[0], &ranges) && ranges.n_reads > 1));
}

static void do_wave(struct reading *r, struct zr_wave *wave)
{
    /* decoding runs at some 2 GB/s per core */
    const struct zr_parallel_options opts = {
        .max_threads = zr_io_threads(r->work.io),
        .item_ns = 2000 + wave->decoded_bytes / ZR_MAX(wave->n_segments, 1u) / 2};
    struct zarr_request *rq = r->work.rq;
    const uint64_t begun_ns = zr_request_wave_begin(rq);
    struct zr_work w = r->work;
    struct wave_job j = {.wave = wave};
    struct zr_prefetch p = {0};
    zarr_error err = {0};
    zarr_status st = ZARR_OK;
    bool batched = zr_is_batched(w.io, wave->level->decode), done = false;
    struct zr_need need = {0, 0};

    if (wave->n_segments == 1 && wave->segment[0].level->decode->raw)
        ZR_TRY(one_in_slabs(&w, wave, &done, &err));
    if (done)
        goto out;
    if (batched || is_fetched_at_once(w.io, wave)) {
        ZR_TRY(zr_prefetch_begin(w.io, wave, &p, &err));
        need = batched || wave->n_segments > 1 ? zr_prefetch_need(rq, wave, &p, batched)
                                               : zr_segment_need(w.io, &wave->segment[0]);
        st = zr_request_take(rq, need, &err);
        w.granted = st == ZARR_OK;
        ZR_TRY(st);
        ZR_TRY(fetch_wave(r, wave, &p, &err));
        j.fetched = p.mem;
    }
    if (batched) {
        st = zr_read_batch(w.io, rq, wave, j.fetched, &err);
        if (wave->n_items == 1 && zr_is_too_large(&w, wave->segment[0].level, false, st))
            zr_work_on_host(&w, wave->segment[0].level, false);
        else
            ZR_TRY(st);
        zr_error_clear(&err);
    }
    if (!batched || w.on_host)
        ZR_TRY(zr_workers_run(&w, wave->n_segments, &opts, segment_one, &j, &err));
out:
    if (p.block)
        zr_prefetch_end(w.io, &p);
    if (w.granted)
        zr_request_give(rq, need);
    zr_request_wave(rq, wave->n_segments, begun_ns);
    zr_request_report(rq);
    if (st != ZARR_OK)
        fail_wave(r, wave, st, &err);
}

/* ---- waves from the plan ----------------------------------------------------- */

static zarr_status open_one(void *arg, uint64_t i, const struct zr_work *w,
                            zarr_error *err)
{
    const struct zr_wave *wave = arg;

    return (w->io->parts ? zr_parts_open : zr_open_exec)(w, &wave->open[i], err);
}

static zarr_status open_shards(struct reading *r, struct zr_wave *w, zarr_error *err)
{
    const struct zr_parallel_options opts = {.max_threads = zr_io_threads(r->work.io),
                                             .item_ns = 20000};
    const bool holds = w->open->lv->bytes_decode != NULL;
    const bool ahead =
        w->n_opens > 1 && !zr_store_can(r->work.io->store, ZARR_STORE_CAP_FAST_GET);
    zarr_status st = ZARR_OK;

    if (holds)
        st = zr_opens_hold(r->work.rq, w->open, w->n_opens, err);
    if (st == ZARR_OK && ahead)
        st = zr_opens_ahead(r->work.io, r->work.rq, w, err);
    if (st == ZARR_OK)
        st = zr_workers_run(&r->work, w->n_opens, &opts, open_one, w, err);
    if (ahead)
        zr_opens_ahead_end(r->work.io, w);
    if (holds)
        zr_opens_let_go(w->open, w->n_opens);
    return st == ZARR_OK ? zr_plan_resume(r->plan, w, err) : st;
}

/* Pulls waves, opening shards, until one has data. Returns false if nothing is left for
 * this thread. */
static bool pull_wave(struct reading *r, struct zr_wave *w)
{
    bool have = false;

    if (!zr_flights_lock(&r->f))
        return false;
    while (!r->f.locked.closed && !have) {
        zarr_error err = {0};
        zarr_status st = ZARR_OK;

        if (zr_is_cancelled(&r->work.rq->cancel)) {
            r->f.locked.closed = true;
            break;
        }
        st = zr_plan_next(r->plan, w, &err);
        if (st == ZARR_OK && zr_attempt_runs())
            st = zr_attempt_check(w, &err);
        if (st == ZARR_OK && w->n_opens > 0)
            st = open_shards(r, w, &err);
        if (st != ZARR_OK)
            zr_flights_fail(&r->f, st, &err,
                            err.item < w->n_opens ? w->open[err.item].ordinal
                                                  : UINT64_MAX);
        else if (w->n_segments > 0)
            have = true;
        else if (w->kind == ZR_WAVE_END)
            r->f.locked.closed = true;
    }
    zr_mutex_unlock(&r->f.locked.mutex);
    return have;
}

static void pull_waves(struct zr_flights *f)
{
    struct reading *r = (struct reading *)f;
    struct zr_wave w;

    zr_wave_init(&w, r->work.io->engine->alloc);
    while (pull_wave(r, &w)) {
        do_wave(r, &w);
        zr_wave_release(&w); /* the lock's owner may wait for its bytes */
    }
    zr_wave_deinit(&w);
}

/* Whether a request has more than one wave, about; one is not worth a helper. */
static bool has_more_waves(const struct zr_io *io, const struct zr_plan_args *args,
                           const struct zr_plan *plan)
{
    const uint64_t elements = zr_io_elements(io), most = args->wave_items_in_order;

    if (elements > args->wave_bytes / io->layout->item_bytes)
        return true;
    /* Each chunk has an element, so few elements need no count. Many points are taken for
     * many chunks: to count them takes longer than a helper that finds nothing. */
    return most != 0 && elements > most &&
           (zr_plan_count_sorts(plan) || zr_plan_count(plan) > most);
}

static zarr_status waves_read(void *self, zarr_request *rq,
                              const zarr_pipeline_steps *steps, zarr_error *err)
{
    const struct zr_io *io = &rq->io;
    struct zr_plan_args args;
    struct reading *r = zr_calloc(NULL, 1, sizeof *r);
    zarr_status st = ZARR_OK;
    bool many = false;

    ZR_UNUSED(self, steps);
    if (!r)
        return zr_fail_memory(err, sizeof *r);
    zr_flights_init(&r->f, pull_waves);
    zr_mutex_init(&r->turn);
    r->work = (struct zr_work){.io = io, .rq = rq};
    zr_waves_cut(io, &args);
    ZR_TRY(zr_plan_open(&r->plan, &args, io->engine->alloc, err));
    if (rq->submitted || io->progress || zr_attempt_runs())
        ZR_TRY(zr_count_chunks(rq, r->plan, err));
    many = args.threads > 1 && has_more_waves(io, &args, r->plan);
    if (many)
        zr_flights_start(&r->f, zr_read_flights(io));
    pull_waves(&r->f);
    st = zr_flights_end(&r->f, err);
    if (zr_has_forked(r->f.fork_generation))
        return st;
out:
    zr_mutex_deinit(&r->turn);
    zr_plan_free(r->plan);
    r->plan = NULL;
    zr_flights_unref(&r->f);
    return st;
}

const zarr_pipeline_vtable zr_pipeline_waves = {.struct_size = sizeof zr_pipeline_waves,
                                                .flags = ZARR_PIPELINE_AT_ONCE,
                                                .name = "waves",
                                                .read = waves_read,
                                                .write = zr_waves_write};
