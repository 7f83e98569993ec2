/*
 * pipe/waves.c - the batched pipeline. Mini-batches (waves) are pulled from
 * the plan under one lock and carried out by up to FLIGHT runners at once,
 * each a loop over the wave's runs on the thread pool: while one wave's last
 * chunks are decoded the next one's are being fetched. The caller's thread is
 * the first runner; the others are tasks that may come late or never, so no
 * request waits for a busy pool. Shards are opened by the runner that holds
 * the plan. Stores that are not answered from the decoding thread get the
 * whole wave's ranges as one batch first.
 *
 * What makes a wave: docs/internals/pipe.md.
 * Thread class: one flow a request, locks inside.
 */
#include "pipe/pipe_int.h"

#include <string.h>

enum {
    FLIGHT = 3,
    READ_TRIES = 3
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
    struct zr_crew crew;
    const zarr_mem *fetched; /* by run; NULL: not fetched in advance */
    bool granted;            /* the wave has its bytes from the budget */
    struct zr_slabs *slabs;
};

/* ---- carrying out one wave ------------------------------------------------------------
 */

static zarr_status run_one(void *arg, uint64_t i, uint32_t worker, zarr_error *err)
{
    struct wave_job *j = arg;
    struct zr_work w = {.io = j->flow->io, .rq = j->flow->rq, .granted = j->granted};
    const zarr_mem *fetched = NULL;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_crew_kit(&j->crew, worker, &w.kit, err));
    if (j->fetched != NULL && j->fetched[i].handle != NULL)
        fetched = &j->fetched[i];
    ZR_TRY(zr_run_exec(&w, j->wave, &j->wave->run[i], fetched, err));
out:
    return st;
}

static zarr_status open_one(void *arg, uint64_t i, uint32_t worker, zarr_error *err)
{
    struct wave_job *j = arg;
    struct zr_work w = {.io = j->flow->io, .rq = j->flow->rq};
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_crew_kit(&j->crew, worker, &w.kit, err));
    ZR_TRY(zr_open_exec(&w, &j->wave->open[i], err));
out:
    return st;
}

static zarr_status loop(struct wave_job *j, uint64_t n, zr_item_fn fn, uint64_t item_ns,
                        zarr_error *err)
{
    struct zr_parallel_options opts = {.max_threads = zr_request_threads(j->flow->rq),
                                       .item_ns = item_ns,
                                       .cancel = &j->flow->rq->cancel};
    zarr_status st = ZARR_OK;

    zr_crew_init(&j->crew, j->flow->rq, zr_parallel_workers(n, &opts));
    st = zr_parallel_run(n, &opts, fn, j, err);
    zr_crew_deinit(&j->crew);
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

/* ---- batches for stores with their own concurrency
 * ---------------------------------------- */

struct prefetch {
    zarr_store_op *op;
    zarr_store_op **ptr;
    zarr_mem *mem, *block; /* by run: what was got, and the pool's block it lies in */
    uint32_t *run;         /* op -> run */
    uint32_t n;
    atomic_uint left;
    struct zr_event all;
};

static void fetched_one(void *arg, zarr_store_op *op, const zarr_error *err)
{
    struct prefetch *p = arg;

    ZR_UNUSED(op);
    ZR_UNUSED(err); /* the worker tries again and says what is wrong */
    if (atomic_fetch_sub(&p->left, 1) == 1)
        zr_event_set(&p->all);
}

static zarr_status prefetch_ops(struct flow *f, const struct zr_wave *w,
                                struct prefetch *p, zarr_error *err)
{
    const struct zr_program *prog = w->level->decode;
    zarr_status st = ZARR_OK;

    for (uint32_t i = 0; i < w->n_runs; i++) {
        const struct zr_run *r = &w->run[i];
        zarr_store_op *op = &p->op[p->n];
        uint64_t bytes = r->bytes == UINT64_MAX ? prog->encoded_bound : r->bytes;
        uint64_t most = zr_encoded_most(f->io, prog->encoded_bound, prog->encoded_exact);

        if (!zr_mul_u64(most, r->n_items, &most))
            most = UINT64_MAX;
        if (r->bytes == ZR_ITEM_MISSING || r->key == NULL || r->bytes == 0 ||
            (r->bytes != UINT64_MAX && bytes > f->io->engine->wave_bytes &&
             bytes - f->io->engine->wave_bytes > most))
            continue;
        *op = (zarr_store_op){.verb = ZARR_STORE_GET,
                              .key = r->key,
                              .offset = r->bytes == UINT64_MAX ? 0 : r->offset,
                              .length =
                                  r->bytes == UINT64_MAX ? ZARR_STORE_TO_END : r->bytes,
                              .object_bytes = UINT64_MAX};
        if (r->shard != NULL) {
            const struct zr_shard *root = r->shard;

            while (root->parent != NULL)
                root = root->parent;
            op->flags = ZR_STORE_OP_PINNED;
            op->lock = root->held;
        }
        ZR_TRY(zr_pool_take(
            f->io->engine->pool, prog->fetch_device,
            prog->fetch_device == ZARR_DEVICE_CPU ? 0 : f->io->view.base.device_id,
            ZR_MAX(bytes, UINT64_C(64)), &p->block[i], err));
        op->mem = p->block[i];
        op->mem.bytes = bytes;
        p->run[p->n] = i;
        p->ptr[p->n] = op;
        p->n++;
    }
out:
    return st;
}

/* Which runs were got completely; the others are left to the worker, which knows every
 * case. */
static void prefetch_keep(struct flow *f, const struct zr_wave *w, struct prefetch *p)
{
    for (uint32_t k = 0; k < p->n; k++) {
        const zarr_store_op *op = &p->op[k];
        uint32_t i = p->run[k];
        bool whole = w->run[i].bytes == UINT64_MAX;
        bool good =
            op->status == ZARR_OK &&
            (whole ? op->object_bytes == UINT64_MAX || op->object_bytes <= op->done_bytes
                   : op->done_bytes == w->run[i].bytes);

        if (good) {
            p->mem[i] = p->block[i];
            p->mem[i].bytes = op->done_bytes;
        } else {
            zr_pool_give(f->io->engine->pool, &p->block[i]);
        }
    }
}

static void prefetch_count(struct flow *f, const struct prefetch *p)
{
    struct zr_kit *kit = NULL;

    if (zr_kit_take(f->io->engine, &kit, NULL) != ZARR_OK)
        return;
    kit->stats.store_gets += p->n;
    for (uint32_t k = 0; k < p->n; k++) {
        kit->stats.store_ranges += p->op[k].length != ZARR_STORE_TO_END;
        kit->stats.bytes_stored += p->op[k].status == ZARR_OK ? p->op[k].done_bytes : 0;
    }
    zr_request_merge(f->rq, kit);
    zr_kit_give(kit);
}

static zarr_status prefetch_run(struct flow *f, struct zr_wave *w, struct prefetch *p,
                                zarr_error *err)
{
    zarr_status st = ZARR_OK;

    p->op = zr_arena_alloc(&w->arena, (w->n_runs + 1) * sizeof(*p->op));
    p->ptr = zr_arena_alloc(&w->arena, (w->n_runs + 1) * sizeof(zarr_store_op *));
    p->mem = zr_arena_alloc(&w->arena, (w->n_runs + 1) * sizeof(*p->mem));
    p->block = zr_arena_alloc(&w->arena, (w->n_runs + 1) * sizeof(*p->block));
    p->run = zr_arena_alloc(&w->arena, (w->n_runs + 1) * sizeof(*p->run));
    if (p->op == NULL || p->ptr == NULL || p->mem == NULL || p->block == NULL ||
        p->run == NULL) {
        p->block = NULL;
        return zr_fail_memory(err, w->n_runs * sizeof(*p->op));
    }
    memset(p->mem, 0, (w->n_runs + 1) * sizeof(*p->mem));
    memset(p->block, 0, (w->n_runs + 1) * sizeof(*p->block));
    ZR_TRY(prefetch_ops(f, w, p, err));
    if (p->n == 0)
        goto out;
    atomic_init(&p->left, p->n);
    zr_event_init(&p->all);
    zr_store_submit(f->io->store, p->ptr, p->n, fetched_one, p);
    while (!zr_event_wait(&p->all, zr_now_ns() + UINT64_C(20000000)))
        if (atomic_load(&f->rq->cancel))
            zr_store_cancel(f->io->store, p);
    zr_event_deinit(&p->all);
    prefetch_count(f, p);
    prefetch_keep(f, w, p);
out:
    return st;
}

static void prefetch_end(struct flow *f, const struct zr_wave *w, struct prefetch *p)
{
    if (p->block == NULL)
        return;
    for (uint32_t i = 0; i < w->n_runs; i++)
        zr_pool_give(f->io->engine->pool, &p->block[i]);
}

/* ---- waves
 * ------------------------------------------------------------------------------------ */

static zarr_status slab_one(void *arg, uint64_t i, uint32_t worker, zarr_error *err)
{
    struct wave_job *j = arg;
    struct zr_work w = {.io = j->flow->io, .rq = j->flow->rq};
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_crew_kit(&j->crew, worker, &w.kit, err));
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
    if (j->wave->n_runs != 1 || zr_request_threads(j->flow->rq) == 1 ||
        !zr_slabs_fit(io, j->wave, &j->wave->run[0]))
        return ZARR_OK;
    /* A failure is told by the common way, which knows what is missing. */
    if (zr_slabs_open(&s, io, j->wave, &j->wave->run[0], NULL) == ZARR_OK && s.n > 0) {
        *done = true;
        j->slabs = &s;
        st = loop(j, s.n, slab_one, s.rows * s.row_bytes / 8, err);
        if (err != NULL)
            err->item = 0; /* the wave's only run */
    }
    zr_slabs_close(&s);
    return st;
}

/* Runs are got for a whole wave at once, not one by one by the workers. */
static bool wants_batches(const struct zr_io *io, const struct zr_program *p)
{
    return zr_wants_lockstep(p) || !zr_store_can(io->store, ZARR_STORE_CAP_FAST_GET);
}

/* What a wave that is got at once has in memory: encoded bytes of all its runs, and
 * blocks of elements: of a chunk a worker, or in lock step of all chunks, in and out. */
static uint64_t wave_budget(const struct flow *f, const struct zr_wave *w, bool lockstep)
{
    const struct zr_program *p = w->level->decode;
    uint64_t n = lockstep ? 2 * (uint64_t)w->n_items
                          : ZR_MIN(zr_request_threads(f->rq), w->n_runs);
    uint64_t need = 0;

    if (!zr_mul_u64(n, p->decoded_bytes, &need))
        return UINT64_MAX;
    for (uint32_t i = 0; i < w->n_runs; i++) {
        const struct zr_run *r = &w->run[i];

        if (r->bytes != ZR_ITEM_MISSING && r->key != NULL &&
            !zr_add_u64(need, r->bytes == UINT64_MAX ? p->encoded_bound : r->bytes,
                        &need))
            return UINT64_MAX;
    }
    return need;
}

static void do_wave(struct flow *f, struct zr_wave *w)
{
    struct wave_job j = {.flow = f, .wave = w};
    struct prefetch p = {0};
    zarr_error err = {0};
    zarr_status st = ZARR_OK;
    bool lockstep = zr_wants_lockstep(w->level->decode), done = false;
    uint64_t need = 0;

    ZR_TRY(one_in_slabs(&j, &done, &err));
    if (done)
        goto out;
    if (lockstep || (w->n_runs > 1 && wants_batches(f->io, w->level->decode))) {
        need = wave_budget(f, w, lockstep);
        st =
            zr_budget_take(f->io->engine->budget, need, UINT64_MAX, &f->rq->cancel, &err);
        if (st != ZARR_OK) {
            need = 0;
            goto out;
        }
        j.granted = true;
        ZR_TRY(prefetch_run(f, w, &p, &err));
        j.fetched = p.mem;
    }
    if (lockstep)
        ZR_TRY(zr_lockstep_exec(f->io, f->rq, w, j.fetched, &err));
    else
        ZR_TRY(loop(&j, w->n_runs, run_one, run_ns(w), &err));
out:
    prefetch_end(f, w, &p);
    if (need > 0)
        zr_budget_give(f->io->engine->budget, need);
    zr_mutex_lock(&f->rq->locked.mutex);
    f->rq->locked.stats.waves++;
    zr_mutex_unlock(&f->rq->locked.mutex);
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

    zr_mutex_lock(&f->locked.mutex);
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

/* ---- helpers: runners on the pool
 * ---------------------------------------------------------------- */

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

    zr_mutex_lock(&f->locked.mutex);
    late = f->locked.closed;
    f->locked.n_active += !late;
    zr_mutex_unlock(&f->locked.mutex);
    zr_free(NULL, h);
    if (!late) { /* the caller waits for us: what io borrows is alive */
        runner(f);
        zr_mutex_lock(&f->locked.mutex);
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

static void plan_args(const struct zr_io *io, const struct zarr_request *rq,
                      struct zr_plan_args *out)
{
    const struct zr_program *leaf = io->layout->level[io->layout->n_levels - 1].decode;
    bool fast = zr_store_can(io->store, ZARR_STORE_CAP_FAST_GET);

    *out = (struct zr_plan_args){
        .layout = io->layout,
        .prefix = io->prefix,
        .selection = io->selection,
        .wave_bytes = zr_request_wave_bytes(rq),
        .wave_items = 4096,
        .run_bytes = fast ? UINT64_C(1) << 20 : UINT64_C(16) << 20,
        .run_gap = fast ? UINT64_C(16) << 10 : UINT64_C(1) << 20,
        .threads = zr_request_threads(rq),
    };
    if (wants_batches(io, leaf)) { /* a whole wave is in memory: several must fit */
        uint64_t share = ZR_MAX(io->engine->budget->total / (FLIGHT + 1), UINT64_C(1));

        out->wave_bytes = ZR_MIN(out->wave_bytes, share);
        share /= ZR_MAX(leaf->encoded_bound, UINT64_C(1));
        out->wave_items =
            (uint32_t)ZR_MIN(ZR_MAX(share, UINT64_C(1)), (uint64_t)out->wave_items);
    }
}

static zarr_status read_once(const struct zr_io *io, struct zarr_request *rq,
                             zarr_error *err)
{
    struct zr_plan_args args;
    struct flow *f = zr_calloc(NULL, 1, sizeof(*f));
    zarr_status st = ZARR_OK;
    uint64_t elements = 1;

    if (f == NULL)
        return zr_fail_memory(err, sizeof(*f));
    atomic_init(&f->refs, 1);
    f->io = io;
    f->rq = rq;
    zr_mutex_init(&f->locked.mutex);
    zr_cond_init(&f->locked.idle);
    plan_args(io, rq, &args);
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

static zarr_status waves_read(const struct zr_io *io, struct zarr_request *rq,
                              zarr_error *err)
{
    zarr_status st = ZARR_OK;

    /* A shard replaced between its index and its chunks: read everything again. */
    for (int tries = 0; tries < READ_TRIES; tries++) {
        st = read_once(io, rq, err);
        if (st != ZARR_ERR_CONFLICT)
            break;
        zr_index_cache_drop(io->indexes, NULL);
        zr_request_again(rq);
    }
    return st;
}

/* ---- writing
 * ----------------------------------------------------------------------------------------
 */

enum {
    UNITS = 64
};

struct units {
    const struct zr_io *io;
    struct zarr_request *rq;
    struct zr_projection *proj;
    struct zr_arena lists;
    struct zr_crew crew;
    uint32_t n, threads_each;
};

static zarr_status unit_one(void *arg, uint64_t i, uint32_t worker, zarr_error *err)
{
    struct units *u = arg;
    struct zr_work w = {.io = u->io, .rq = u->rq};
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_crew_kit(&u->crew, worker, &w.kit, err));
    ZR_TRY(zr_unit_write(&w, &u->proj[i], u->threads_each, err));
out:
    return st;
}

static zarr_status do_units(struct units *u, zarr_error *err)
{
    struct zr_parallel_options opts = {
        .max_threads = zr_request_threads(u->rq), .run = 1, .cancel = &u->rq->cancel};
    uint64_t bytes = u->io->layout->level[0].decoded_bytes;
    uint32_t threads = opts.max_threads;
    zarr_status st = ZARR_OK;

    opts.item_ns = 20000 + bytes;
    u->threads_each = u->n >= threads ? 1 : threads;
    zr_crew_init(&u->crew, u->rq, zr_parallel_workers(u->n, &opts));
    st = zr_parallel_run(u->n, &opts, unit_one, u, err);
    zr_crew_deinit(&u->crew);
    zr_mutex_lock(&u->rq->locked.mutex);
    u->rq->locked.stats.waves++;
    zr_mutex_unlock(&u->rq->locked.mutex);
    return st;
}

/* Copies a projection so that it outlives the projector's next step. */
static bool keep_unit(struct units *u, const struct zr_projection *from)
{
    struct zr_projection *to = &u->proj[u->n];

    *to = *from;
    return zr_projection_keep(to, from, &u->lists);
}

/* chunks_total means leaf chunks here as well. */
static zarr_status count_written(const struct zr_io *io, struct zarr_request *rq,
                                 const zarr_selection *sel, zarr_error *err)
{
    const struct zr_plan_args args = {
        .layout = io->layout, .prefix = io->prefix, .selection = sel};
    struct zr_plan *plan = NULL;
    zarr_status st = zr_plan_open(&plan, &args, io->engine->alloc, err);

    if (st != ZARR_OK)
        return st;
    zr_request_total(rq, zr_plan_count(plan));
    zr_plan_free(plan);
    return ZARR_OK;
}

static zarr_status waves_write(const struct zr_io *io, struct zarr_request *rq,
                               zarr_error *err)
{
    const struct zr_grid *grid = io->layout->grid;
    struct units u = {.io = io, .rq = rq};
    struct zr_projector *p = NULL;
    struct zr_projection proj;
    zarr_selection *all = NULL;
    const zarr_selection *sel = io->selection;
    uint64_t most = zr_request_wave_bytes(rq) /
                    ZR_MAX(io->layout->level[0].decoded_bytes, UINT64_C(1));
    zarr_status st = ZARR_OK;
    bool more = true;

    zr_arena_init(&u.lists, io->engine->alloc);
    most = ZR_MIN(ZR_MAX(most, (uint64_t)zr_request_threads(rq)), (uint64_t)UNITS);
    u.proj = zr_malloc(io->engine->alloc, most * sizeof(*u.proj));
    if (u.proj == NULL)
        ZR_TRY(zr_fail_memory(err, most * sizeof(*u.proj)));
    if (sel == NULL) {
        ZR_TRY(zarr_selection_all(&all, grid->ndim, grid->shape, err));
        sel = all;
    }
    ZR_TRY(zr_project_open(&p, io->engine->alloc, grid, sel, err));
    if (rq->submitted || io->progress != NULL)
        ZR_TRY(count_written(io, rq, sel, err));
    while (more && !atomic_load(&rq->cancel)) {
        u.n = 0;
        zr_arena_reset(&u.lists);
        while (u.n < most && (more = zr_project_next(p, &proj))) {
            if (!keep_unit(&u, &proj))
                ZR_TRY(zr_fail_memory(err, sizeof(proj)));
            u.n++;
        }
        if (u.n > 0)
            ZR_TRY(do_units(&u, err));
    }
out:
    zr_project_free(p);
    zarr_selection_free(all);
    zr_free(io->engine->alloc, u.proj);
    zr_arena_deinit(&u.lists);
    return st;
}

const struct zr_pipeline zr_pipeline_waves = {
    .name = "waves", .read = waves_read, .write = waves_write};
