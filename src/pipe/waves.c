/*
 * pipe/waves.c - the batched pipeline. Mini-batches (waves) are pulled from
 * the plan under one lock and carried out by up to FLIGHT runners at once,
 * each a loop over the wave's runs on the thread pool: while one wave's last
 * chunks are decoded the next one's are being fetched. The caller's thread is
 * the first runner; the others are tasks that may come late or never, so no
 * request waits for a busy pool. Shards are opened by the runner that holds
 * the plan. Writing is in waves_write.c, batches for slow stores in prefetch.c.
 *
 * What makes a wave: docs/internals/pipe.md.
 * Thread class: one flow a request, locks inside.
 */
#include "pipe/pipe_int.h"

#include <string.h>

enum {
    FLIGHT = 3
};

struct flow {
    atomic_uint refs; /* runners that may still look here */
    const struct zr_io *io;
    struct zarr_request *rq;
    struct {
        zr_mutex mutex;
        zr_cond idle;
        struct zr_plan *plan;
        bool closed;        /* no more waves for anyone */
        uint32_t n_active;  /* helpers inside a wave or the plan */
        uint64_t failed_at; /* ordinal of the lowest failing item */
        zarr_status status;
        zarr_error error;
    } locked;
};

struct wave_job {
    struct flow *flow;
    struct zr_wave *wave;
    struct zr_workers workers;
    const zarr_mem *fetched; /* by run; NULL: not fetched in advance */
    bool granted;            /* the wave has its bytes from the budget */
    struct zr_slabs *slabs;
};

/* ---- carrying out one wave --------------------------------------------------- */

static zarr_status run_one(void *arg, uint64_t i, uint32_t worker, zarr_error *err)
{
    struct wave_job *j = arg;
    struct zr_work w = {.io = j->flow->io, .rq = j->flow->rq, .granted = j->granted};
    const zarr_mem *fetched = NULL;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_workers_get(&j->workers, worker, &w.worker, err));
    if (j->fetched != NULL && j->fetched[i].handle != NULL)
        fetched = &j->fetched[i];
    ZR_TRY(zr_run_exec(&w, &j->wave->run[i], fetched, err));
out:
    return st;
}

static zarr_status open_one(void *arg, uint64_t i, uint32_t worker, zarr_error *err)
{
    struct wave_job *j = arg;
    struct zr_work w = {.io = j->flow->io, .rq = j->flow->rq};
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_workers_get(&j->workers, worker, &w.worker, err));
    ZR_TRY(zr_open_exec(&w, &j->wave->open[i], err));
out:
    return st;
}

static zarr_status loop(struct wave_job *j, uint64_t n, zr_item_fn fn, uint64_t item_ns,
                        zarr_error *err)
{
    struct zr_parallel_options opts = {.max_threads = zr_io_threads(&j->flow->rq->io),
                                       .item_ns = item_ns,
                                       .cancel = &j->flow->rq->cancel};
    zarr_status st = ZARR_OK;

    zr_workers_init(&j->workers, j->flow->rq, zr_parallel_workers(n, &opts));
    st = zr_parallel_run(n, &opts, fn, j, err);
    zr_workers_deinit(&j->workers);
    return st;
}

/* About how long a run takes: decoding runs at some 2 GB/s a core. */
static uint64_t run_ns(const struct zr_wave *w)
{
    uint64_t bytes = w->n_runs == 0 ? 0 : w->decoded_bytes / w->n_runs;

    return 2000 + bytes / 2;
}

static void note_failure(struct flow *f, zarr_status st, const zarr_error *err,
                         uint64_t ordinal)
{
    zr_mutex_lock(&f->locked.mutex);
    if (f->locked.status == ZARR_OK || ordinal < f->locked.failed_at) {
        f->locked.status = st;
        f->locked.failed_at = ordinal;
        f->locked.error = *err;
    }
    f->locked.closed = true;
    zr_mutex_unlock(&f->locked.mutex);
}

/* Its holder may be opening shards: a long wait for a thread of the pool. */
static void lock_plan(struct flow *f)
{
    if (zr_mutex_try(&f->locked.mutex))
        return;
    zr_block_begin();
    zr_mutex_lock(&f->locked.mutex);
    zr_block_end();
}

/* ---- waves ------------------------------------------------------------------- */

static zarr_status slab_one(void *arg, uint64_t i, uint32_t worker, zarr_error *err)
{
    struct wave_job *j = arg;
    struct zr_work w = {.io = j->flow->io, .rq = j->flow->rq};
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_workers_get(&j->workers, worker, &w.worker, err));
    ZR_TRY(zr_item_prefix(j->slabs->run, NULL, zr_slabs_one(&w, j->slabs, i, err), err));
out:
    return st;
}

/* A wave of one large uncompressed chunk: all threads at that chunk. *done false: the
 * common way. */
static zarr_status one_in_slabs(struct wave_job *j, bool *done, zarr_error *err)
{
    const struct zr_io *io = j->flow->io;
    struct zr_slabs s;
    zarr_status st = ZARR_OK;

    *done = false;
    if (j->wave->n_runs != 1 || zr_io_threads(&j->flow->rq->io) == 1 ||
        !zr_slabs_fit(io, &j->wave->run[0]))
        return ZARR_OK;
    /* A failure is told by the common way, which knows what is missing. */
    if (zr_slabs_open(&s, io, &j->wave->run[0], NULL) == ZARR_OK && s.n > 0) {
        *done = true;
        j->slabs = &s;
        st = loop(j, s.n, slab_one, s.rows * s.row_bytes / 8, err);
        if (err != NULL)
            err->item = 0; /* the wave's only run */
    }
    zr_slabs_close(&s);
    return st;
}

static void do_wave(struct flow *f, struct zr_wave *w)
{
    struct wave_job j = {.flow = f, .wave = w};
    struct zr_prefetch p = {0};
    zarr_error err = {0};
    zarr_status st = ZARR_OK;
    bool lockstep = zr_wants_lockstep(w->level->decode), done = false;
    uint64_t need = 0;

    ZR_TRY(one_in_slabs(&j, &done, &err));
    if (done)
        goto out;
    if (lockstep || (w->n_runs > 1 && zr_wants_batches(f->io, w->level->decode))) {
        need = zr_prefetch_budget(f->rq, w, lockstep);
        st =
            zr_budget_take(f->io->engine->budget, need, UINT64_MAX, &f->rq->cancel, &err);
        if (st != ZARR_OK) {
            need = 0;
            goto out;
        }
        j.granted = true;
        ZR_TRY(zr_prefetch_run(f->io, f->rq, w, &p, &err));
        j.fetched = p.mem;
    }
    if (lockstep)
        ZR_TRY(zr_lockstep_exec(f->io, f->rq, w, j.fetched, &err));
    else
        ZR_TRY(loop(&j, w->n_runs, run_one, run_ns(w), &err));
out:
    zr_prefetch_end(f->io, w, &p);
    if (need > 0)
        zr_budget_give(f->io->engine->budget, need);
    zr_mutex_lock(&f->rq->locked.mutex);
    f->rq->locked.stats.waves++;
    zr_mutex_unlock(&f->rq->locked.mutex);
    zr_request_report(f->rq);
    if (st != ZARR_OK)
        note_failure(f, st, &err,
                     err.item < w->n_runs ? w->run[err.item].item[0]->ordinal
                                          : UINT64_MAX);
}

static void do_opens(struct flow *f, struct zr_wave *w, zarr_status *st, zarr_error *err)
{
    struct wave_job j = {.flow = f, .wave = w};

    *st = loop(&j, w->n_opens, open_one, 20000, err);
    if (*st == ZARR_OK)
        *st = zr_plan_feed(f->locked.plan, w, err);
}

/* Pulls until there is data to carry out; false: nothing is left for this runner. Plan
 * lock held inside. */
static bool pull_wave(struct flow *f, struct zr_wave *w)
{
    zarr_status st = ZARR_OK;
    zarr_error err = {0};
    bool have = false;

    lock_plan(f);
    while (!f->locked.closed && !have) {
        if (atomic_load(&f->rq->cancel)) {
            f->locked.closed = true;
            break;
        }
        st = zr_plan_next(f->locked.plan, w, &err);
        if (st == ZARR_OK && w->n_opens > 0)
            do_opens(f, w, &st, &err);
        if (st != ZARR_OK) {
            uint64_t at = w->n_opens > 0 && err.item < w->n_opens
                              ? w->open[err.item].ordinal
                              : UINT64_MAX;
            if (f->locked.status == ZARR_OK || at < f->locked.failed_at) {
                f->locked.status = st;
                f->locked.error = err;
                f->locked.failed_at = at;
            }
            f->locked.closed = true;
        } else if (w->n_runs > 0) {
            have = true;
        } else if (w->kind == ZR_WAVE_END) {
            f->locked.closed = true;
        }
    }
    zr_mutex_unlock(&f->locked.mutex);
    return have;
}

static void runner(struct flow *f)
{
    struct zr_wave w;

    zr_wave_init(&w, f->io->engine->alloc);
    while (pull_wave(f, &w))
        do_wave(f, &w);
    zr_wave_deinit(&w);
}

/* ---- helpers: runners on the pool --------------------------------------------- */

/* A helper that the pool starts late may outlive the request, and even the context with
 * its allocator: flow and helpers are the process's memory. */
struct helper {
    struct zr_task task;
    struct flow *flow;
};

static void flow_unref(struct flow *f)
{
    if (atomic_fetch_sub(&f->refs, 1) != 1)
        return;
    zr_cond_deinit(&f->locked.idle);
    zr_mutex_deinit(&f->locked.mutex);
    zr_free(NULL, f);
}

static void helper_task(void *arg)
{
    struct helper *h = arg;
    struct flow *f = h->flow;
    bool late = false;

    lock_plan(f);
    late = f->locked.closed;
    f->locked.n_active += !late;
    zr_mutex_unlock(&f->locked.mutex);
    zr_free(NULL, h);
    if (!late) { /* the caller waits for us: what io borrows is alive */
        runner(f);
        lock_plan(f);
        if (--f->locked.n_active == 0)
            zr_cond_broadcast(&f->locked.idle);
        zr_mutex_unlock(&f->locked.mutex);
    }
    flow_unref(f);
}

static void start_helpers(struct flow *f)
{
    for (int i = 1; i < FLIGHT; i++) {
        struct helper *h = zr_calloc(NULL, 1, sizeof(*h));

        if (h == NULL)
            return; /* fewer in flight: slower, not wrong */
        h->flow = f;
        h->task = (struct zr_task){.fn = helper_task, .arg = h};
        atomic_fetch_add(&f->refs, 1);
        if (zr_task_submit(&h->task, NULL) != ZARR_OK) {
            atomic_fetch_sub(&f->refs, 1);
            zr_free(NULL, h);
            return;
        }
    }
}

static void wait_helpers(struct flow *f)
{
    zr_mutex_lock(&f->locked.mutex);
    f->locked.closed = true;
    while (f->locked.n_active > 0)
        zr_cond_wait(&f->locked.idle, &f->locked.mutex);
    zr_mutex_unlock(&f->locked.mutex);
}

void zr_waves_cut(const struct zr_io *io, struct zr_plan_args *out)
{
    const struct zr_program *leaf = io->layout->level[io->layout->n_levels - 1].decode;
    bool fast = zr_store_can(io->store, ZARR_STORE_CAP_FAST_GET);

    *out = (struct zr_plan_args){
        .layout = io->layout,
        .prefix = io->prefix,
        .selection = io->selection,
        .wave_bytes = zr_io_wave_bytes(io),
        .wave_items = 4096,
        .run_bytes = fast ? UINT64_C(1) << 20 : UINT64_C(16) << 20,
        .run_gap = fast ? UINT64_C(16) << 10 : UINT64_C(1) << 20,
        .threads = zr_io_threads(io),
    };
    if (zr_wants_batches(io, leaf)) { /* a whole wave is in memory: several must fit */
        uint64_t share = ZR_MAX(io->engine->budget->total / (FLIGHT + 1), UINT64_C(1));

        out->wave_bytes = ZR_MIN(out->wave_bytes, share);
        share /= ZR_MAX(leaf->encoded_bound, UINT64_C(1));
        out->wave_items =
            (uint32_t)ZR_MIN(ZR_MAX(share, UINT64_C(1)), (uint64_t)out->wave_items);
    }
}

static zarr_status waves_read(void *self, zarr_request *rq,
                              const zarr_pipeline_steps *steps, zarr_error *err)
{
    const struct zr_io *io = &rq->io;
    struct zr_plan_args args;
    struct flow *f = zr_calloc(NULL, 1, sizeof(*f));
    zarr_status st = ZARR_OK;
    uint64_t elements = 1;

    ZR_UNUSED(self);
    ZR_UNUSED(steps);
    if (f == NULL)
        return zr_fail_memory(err, sizeof(*f));
    atomic_init(&f->refs, 1);
    f->io = io;
    f->rq = rq;
    zr_mutex_init(&f->locked.mutex);
    zr_cond_init(&f->locked.idle);
    zr_waves_cut(io, &args);
    ZR_TRY(zr_plan_open(&f->locked.plan, &args, io->engine->alloc, err));
    if (rq->submitted || io->progress != NULL)
        zr_request_total(rq, zr_plan_count(f->locked.plan));
    for (int32_t d = 0; d < io->view.ndim; d++)
        elements *= io->view.shape[d];
    /* One wave's worth of elements is not worth a helper. */
    if (args.threads > 1 && elements * io->layout->item_bytes > args.wave_bytes)
        start_helpers(f);
    runner(f);
    wait_helpers(f);
    st = f->locked.status;
    if (st != ZARR_OK && err != NULL)
        *err = f->locked.error;
out:
    zr_plan_free(f->locked.plan);
    f->locked.plan = NULL;
    flow_unref(f);
    return st;
}

const zarr_pipeline_vtable zr_pipeline_waves = {.struct_size = sizeof zr_pipeline_waves,
                                                .name = "waves",
                                                .read = waves_read,
                                                .write = zr_waves_write};
