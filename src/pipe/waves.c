/*
 * pipe/waves.c - the reads of the pipeline `waves`. The caller's thread and its helpers,
 * FLIGHT threads at most, pull waves from the plan under one lock. Each carries its wave
 * out in a parallel loop over the segments, so the next wave is fetched while the last
 * chunks of one are decoded. Helpers are tasks that may start late or never, so no
 * request waits for a busy pool. The thread that holds the plan opens shards.
 * Writing is in waves_write.c, batches for slow stores are in prefetch.c.
 *
 * docs/internals/pipe.md says what makes a wave.
 * Thread class: one struct per request, with locks inside.
 */
#include "pipe/pipe_int.h"

#include <string.h>

enum {
    FLIGHT = 3,
    OPENS_FAR = 256 /* shards opened in one round trip */
};

/* One read under way. */
struct reading {
    atomic_uint refs; /* threads that may still use this struct */
    /* without a worker context: the threads of each loop take their own */
    struct zr_work work;
    struct {
        zr_mutex mutex;
        zr_cond idle;
        struct zr_plan *plan;
        bool closed;        /* no more waves are pulled */
        uint32_t n_active;  /* helpers inside a wave or the plan */
        uint64_t failed_at; /* ordinal of the lowest failing item */
        zarr_status status;
        zarr_error error;
    } locked;
};

static void fail_locked(struct reading *r, zarr_status st, const zarr_error *err,
                        uint64_t ordinal)
{
    if (r->locked.status == ZARR_OK || ordinal < r->locked.failed_at) {
        r->locked.status = st;
        r->locked.failed_at = ordinal;
        r->locked.error = *err;
    }
    r->locked.closed = true;
}

/* Its holder may be opening shards, which can take long; the wait counts as blocked in
 * the pool. */
static void lock_plan(struct reading *r)
{
    if (zr_mutex_try(&r->locked.mutex))
        return;
    zr_block_begin();
    zr_mutex_lock(&r->locked.mutex);
    zr_block_end();
}

/* ---- carrying out one wave --------------------------------------------------- */

struct wave_job {
    struct zr_wave *wave;
    const zarr_mem *fetched; /* by segment; NULL: not fetched in advance */
};

static zarr_status segment_one(void *arg, uint64_t i, const struct zr_work *w,
                               zarr_error *err)
{
    const struct wave_job *j = arg;
    const zarr_mem *fetched = NULL;

    if (j->fetched && j->fetched[i].handle)
        fetched = &j->fetched[i];
    if (w->io->parts)
        return zr_parts_read(w, &j->wave->segment[i], fetched, err);
    return zr_segment_read(w, &j->wave->segment[i], fetched, err);
}

/* About how long a segment takes: decoding runs at some 2 GB/s per core. */
static uint64_t segment_ns(const struct zr_wave *w)
{
    uint64_t bytes = w->n_segments == 0 ? 0 : w->decoded_bytes / w->n_segments;

    return 2000 + bytes / 2;
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
    struct zr_slabs s;
    zarr_status st = ZARR_OK;

    *done = false;
    if (wave->n_segments != 1 || opts.max_threads == 1 ||
        !zr_slabs_fit(w->io, &wave->segment[0]))
        return ZARR_OK;
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
    if (st != ZARR_OK && zr_parts_take(w->rq, st)) {
        *done = false;
        return ZARR_OK;
    }
    return st;
}

static void do_wave(struct reading *r, struct zr_wave *wave)
{
    const struct zr_parallel_options opts = {.max_threads = zr_io_threads(r->work.io),
                                             .item_ns = segment_ns(wave)};
    struct zarr_request *rq = r->work.rq;
    const uint64_t begun_ns = zr_request_wave_begin(rq);
    struct zr_work w = r->work;
    struct wave_job j = {.wave = wave};
    struct zr_prefetch p = {0};
    zarr_error err = {0};
    zarr_status st = ZARR_OK;
    bool lockstep = zr_goes_lockstep(w.io, wave->level->decode), done = false;
    struct zr_need need = {0, 0};

    ZR_TRY(one_in_slabs(&w, wave, &done, &err));
    if (done)
        goto out;
    if (lockstep ||
        (wave->n_segments > 1 && zr_wants_batches(w.io, wave->level->decode))) {
        need = zr_prefetch_need(rq, wave, lockstep);
        st = zr_request_take(rq, need, &err);
        w.granted = st == ZARR_OK;
        ZR_TRY(st);
        ZR_TRY(zr_prefetch_run(w.io, rq, wave, &p, &err));
        j.fetched = p.mem;
    }
    if (lockstep)
        ZR_TRY(zr_lockstep_exec(w.io, rq, wave, j.fetched, &err));
    else
        ZR_TRY(zr_workers_run(&w, wave->n_segments, &opts, segment_one, &j, &err));
out:
    zr_prefetch_end(w.io, wave, &p);
    if (w.granted)
        zr_request_give(rq, need);
    zr_request_wave(rq, wave->n_segments, begun_ns);
    zr_request_report(rq);
    if (st != ZARR_OK) {
        zr_mutex_lock(&r->locked.mutex);
        fail_locked(r, st, &err,
                    err.item < wave->n_segments ? wave->segment[err.item].item[0]->ordinal
                                                : UINT64_MAX);
        zr_mutex_unlock(&r->locked.mutex);
    }
}

/* ---- waves from the plan ----------------------------------------------------- */

static zarr_status open_one(void *arg, uint64_t i, const struct zr_work *w,
                            zarr_error *err)
{
    const struct zr_wave *wave = arg;

    return (w->io->parts ? zr_parts_open : zr_open_exec)(w, &wave->open[i], err);
}

/* Pulls waves, opening shards, until one has data. Returns false if nothing is left for
 * this thread. */
static bool pull_wave(struct reading *r, struct zr_wave *w)
{
    const struct zr_parallel_options opts = {.max_threads = zr_io_threads(r->work.io),
                                             .item_ns = 20000};
    bool have = false;

    lock_plan(r);
    while (!r->locked.closed && !have) {
        zarr_error err = {0};
        zarr_status st = ZARR_OK;

        if (zr_is_cancelled(&r->work.rq->cancel)) {
            r->locked.closed = true;
            break;
        }
        st = zr_plan_next(r->locked.plan, w, &err);
        if (st == ZARR_OK && w->n_opens > 0) {
            st = zr_opens_ahead(r->work.io, r->work.rq, w, &err);
            if (st == ZARR_OK)
                st = zr_workers_run(&r->work, w->n_opens, &opts, open_one, w, &err);
            zr_opens_ahead_end(r->work.io, w);
            if (st == ZARR_OK)
                st = zr_plan_resume(r->locked.plan, w, &err);
        }
        if (st != ZARR_OK)
            fail_locked(r, st, &err,
                        err.item < w->n_opens ? w->open[err.item].ordinal : UINT64_MAX);
        else if (w->n_segments > 0)
            have = true;
        else if (w->kind == ZR_WAVE_END)
            r->locked.closed = true;
    }
    zr_mutex_unlock(&r->locked.mutex);
    return have;
}

static void pull_waves(struct reading *r)
{
    struct zr_wave w;

    zr_wave_init(&w, r->work.io->engine->alloc);
    while (pull_wave(r, &w))
        do_wave(r, &w);
    zr_wave_deinit(&w);
}

/* ---- helpers: tasks on the pool ------------------------------------------------ */

/* A helper that the pool starts late may outlive the request, and even the context with
 * its allocator. So the structs `reading` and `helper` are allocated by the process, not
 * by the context. */
struct helper {
    struct zr_task task;
    struct reading *reading;
};

static void reading_unref(struct reading *r)
{
    if (atomic_fetch_sub(&r->refs, 1) != 1)
        return;
    zr_cond_deinit(&r->locked.idle);
    zr_mutex_deinit(&r->locked.mutex);
    zr_free(NULL, r);
}

static void helper_task(void *arg)
{
    struct helper *h = arg;
    struct reading *r = h->reading;
    bool late = false;

    lock_plan(r);
    late = r->locked.closed;
    r->locked.n_active += !late;
    zr_mutex_unlock(&r->locked.mutex);
    zr_free(NULL, h);
    if (!late) { /* the caller waits for this helper, so what io borrows is valid */
        pull_waves(r);
        lock_plan(r);
        if (--r->locked.n_active == 0)
            zr_cond_broadcast(&r->locked.idle);
        zr_mutex_unlock(&r->locked.mutex);
    }
    reading_unref(r);
}

static void start_helpers(struct reading *r)
{
    for (int i = 1; i < FLIGHT; i++) {
        struct helper *h = zr_calloc(NULL, 1, sizeof *h);

        if (!h)
            return; /* fewer waves in flight: slower, not wrong */
        h->reading = r;
        h->task = (struct zr_task){.fn = helper_task, .arg = h};
        atomic_fetch_add(&r->refs, 1);
        if (zr_task_submit(&h->task, NULL) != ZARR_OK) {
            atomic_fetch_sub(&r->refs, 1);
            zr_free(NULL, h);
            return;
        }
    }
}

static void wait_helpers(struct reading *r)
{
    zr_mutex_lock(&r->locked.mutex);
    r->locked.closed = true;
    while (r->locked.n_active > 0)
        zr_cond_wait(&r->locked.idle, &r->locked.mutex);
    zr_mutex_unlock(&r->locked.mutex);
}

void zr_waves_cut(const struct zr_io *io, struct zr_plan_args *out)
{
    const struct zr_level *lv = &io->layout->level[io->layout->n_levels - 1];
    const struct zr_program *leaf = lv->decode;
    bool fast = zr_store_can(io->store, ZARR_STORE_CAP_FAST_GET);

    *out = (struct zr_plan_args){
        .layout = io->layout,
        .prefix = io->prefix,
        .selection = io->selection,
        .selections = io->selections,
        .n_selections = io->n_parts,
        .wave_bytes = zr_io_wave_bytes(io),
        .wave_items = 4096,
        .segment_bytes = fast ? UINT64_C(1) << 20 : UINT64_C(16) << 20,
        .segment_gap = fast ? UINT64_C(16) << 10 : UINT64_C(1) << 20,
        .opens = fast ? 0 : OPENS_FAR,
        .threads = zr_io_threads(io),
    };
    if (io->coalesce_gap != 0)
        out->segment_gap = io->coalesce_gap;
    if (io->coalesce_bytes != 0)
        out->segment_bytes = io->coalesce_bytes;
    if (io->memory_bytes != 0)
        out->segment_bytes = ZR_MIN(out->segment_bytes, io->memory_bytes);
    /* a wave is in memory as a whole, and several must fit */
    if (zr_wants_batches(io, leaf)) {
        uint64_t share = ZR_MAX(zr_io_budget(io) / (FLIGHT + 1), UINT64_C(1));

        out->wave_bytes = ZR_MIN(out->wave_bytes, share);
        share /= ZR_MAX(leaf->encoded_bound, UINT64_C(1));
        out->wave_items =
            (uint32_t)ZR_MIN(ZR_MAX(share, UINT64_C(1)), (uint64_t)out->wave_items);
    }
    if (zr_goes_lockstep(io, leaf))
        out->wave_items =
            ZR_MIN(out->wave_items, zr_device_most(io, lv, false, false, FLIGHT));
}

static zarr_status waves_read(void *self, zarr_request *rq,
                              const zarr_pipeline_steps *steps, zarr_error *err)
{
    const struct zr_io *io = &rq->io;
    struct zr_plan_args args;
    struct reading *r = zr_calloc(NULL, 1, sizeof *r);
    zarr_status st = ZARR_OK;
    uint64_t elements = 0;

    ZR_UNUSED(self);
    ZR_UNUSED(steps);
    if (!r)
        return zr_fail_memory(err, sizeof *r);
    atomic_init(&r->refs, 1);
    r->work = (struct zr_work){.io = io, .rq = rq};
    zr_mutex_init(&r->locked.mutex);
    zr_cond_init(&r->locked.idle);
    zr_waves_cut(io, &args);
    ZR_TRY(zr_plan_open(&r->locked.plan, &args, io->engine->alloc, err));
    if (rq->submitted || io->progress)
        zr_request_total(rq, zr_plan_count(r->locked.plan));
    elements = zr_io_elements(io);
    /* A request of one wave's elements is not worth a helper. */
    if (args.threads > 1 && elements > args.wave_bytes / io->layout->item_bytes)
        start_helpers(r);
    pull_waves(r);
    wait_helpers(r);
    st = r->locked.status;
    if (st != ZARR_OK && err)
        *err = r->locked.error;
out:
    zr_plan_free(r->locked.plan);
    r->locked.plan = NULL;
    reading_unref(r);
    return st;
}

const zarr_pipeline_vtable zr_pipeline_waves = {.struct_size = sizeof zr_pipeline_waves,
                                                .name = "waves",
                                                .read = waves_read,
                                                .write = zr_waves_write};
