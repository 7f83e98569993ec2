/*
 * pipe/batch/flow.c - the work of one wave on a device. Copies and calls of codecs are
 * queued on one stream and waited for once. Blocks that queued work uses are held until
 * then, and each codec that left work is asked how it went. Thread class: one thread.
 */
#include "pipe/batch/batch_int.h"

zarr_status zr_flow_begin(struct zr_flow *f, const struct zr_work *w, int32_t device,
                          struct zr_arena *arena, zarr_error *err)
{
    const struct zr_io *io = w->io;

    *f = (struct zr_flow){.w = *w, .arena = arena};
    f->last = &f->first;
    if (device == 0 || zr_io_is_host(io, device))
        return ZARR_OK;
    ZR_CHECK(zr_stream_take(&f->stream, &io->engine->streams, io->engine->memory, device,
                            zr_io_device_id(io, device), err));
    f->stream.pool = io->engine->pool;
    f->device = device;
    return ZARR_OK;
}

zarr_status zr_flow_worker(struct zr_flow *f, zarr_error *err)
{
    if (f->w.worker)
        return ZARR_OK;
    f->own_worker = true;
    return zr_worker_take(f->w.io->engine, &f->w.rq->cancel, &f->w.worker, err);
}

/* ---- waiting ------------------------------------------------------------------ */

static zarr_status flow_sync(struct zr_flow *f, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    if (!f->stream.queued)
        return ZARR_OK;
    zr_block_begin(); /* meanwhile another thread of the pool may work */
    st = zr_stream_sync(&f->stream, err);
    zr_block_end();
    return st;
}

static void flow_give_held(struct zr_flow *f)
{
    for (; f->held; f->held = f->held->next)
        zr_pool_give(f->w.io->engine->pool, &f->held->block);
}

/* The item of an error becomes the owner of its job. */
static void flow_name(const struct zr_flow_call *c, zarr_error *err)
{
    if (err)
        err->item = err->item < c->call.n ? c->owner[err->item] : UINT64_MAX;
}

/* A call that failed as a whole gives no job this status: then each job failed that has
 * none. */
static void flow_fail_jobs(const struct zr_flow_call *c, zarr_status st)
{
    for (uint64_t i = 0; i < c->call.n; i++)
        if (c->call.jobs[i].status == st)
            return;
    for (uint64_t i = 0; i < c->call.n; i++)
        if (c->call.jobs[i].status == ZARR_OK)
            c->call.jobs[i].status = st;
}

/* Reports the jobs of a failed call that must be done again. False: the failure is one of
 * the whole flow. */
static bool flow_declines(struct zr_flow *f, const struct zr_flow_call *c, zarr_status st)
{
    const bool own = zr_stage_declines(c->stage, st);

    flow_fail_jobs(c, st);
    if (!f->declined || (!own && !f->any_declined))
        return false;
    for (uint64_t i = 0; i < c->call.n; i++) {
        const zarr_status job = c->call.jobs[i].status;

        if (job != ZARR_OK)
            f->declined(c->of, c->owner[i],
                        zr_stage_declines(c->stage, job) ? c->stage : NULL);
    }
    f->any_declined = true;
    return true;
}

/* *failed: the call whose failure is returned; unchanged if it is none of them. */
static zarr_status flow_wait(struct zr_flow *f, const struct zr_flow_call **failed,
                             zarr_error *err)
{
    zarr_status st = flow_sync(f, err);

    f->n_waits++;
    if (st != ZARR_OK) {
        f->failed = NULL;
        if (err)
            err->item = UINT64_MAX;
    }
    for (struct zr_flow_call *c = f->first; c; c = c->next) {
        zarr_error own = ZARR_ERROR_INIT;
        const zarr_status one = zr_stage_end(c->stage, &c->call, f->encode, &own);

        zr_worker_count_call(f->w.worker, &c->call);
        if (one == ZARR_OK || st != ZARR_OK || flow_declines(f, c, one))
            continue;
        st = one;
        *failed = c;
        f->failed = c->of;
        flow_name(c, &own);
        if (err)
            *err = own;
    }
    f->first = NULL;
    f->last = &f->first;
    flow_give_held(f);
    return st;
}

zarr_status zr_flow_wait(struct zr_flow *f, zarr_error *err)
{
    const struct zr_flow_call *failed = NULL;

    return flow_wait(f, &failed, err);
}

zarr_status zr_flow_hold(struct zr_flow *f, zarr_memory *block, zarr_error *err)
{
    struct zr_flow_held *held = NULL;
    zarr_status st = ZARR_OK;

    if (!block->handle)
        return ZARR_OK;
    if (f->stream.queued)
        held = zr_arena_alloc(f->arena, sizeof *held);
    if (f->stream.queued && !held)
        st = zr_flow_wait(f, err);
    if (held) {
        *held = (struct zr_flow_held){.next = f->held, .block = *block};
        f->held = held;
        *block = (zarr_memory){0};
    } else {
        zr_pool_give(f->w.io->engine->pool, block);
    }
    return st;
}

void zr_flow_end(struct zr_flow *f)
{
    (void)zr_flow_wait(f, NULL);
    zr_stream_give(&f->w.io->engine->streams, &f->stream);
    if (!f->own_worker || !f->w.worker)
        return;
    zr_request_merge(f->w.rq, f->w.worker);
    zr_worker_give(f->w.worker);
    f->w.worker = NULL;
}

/* ---- codecs ------------------------------------------------------------------- */

static struct zr_flow_call *flow_call(struct zr_flow *f, const struct zr_stage *s,
                                      const struct zr_flow_jobs *j)
{
    struct zr_flow_call *c = zr_arena_alloc(f->arena, sizeof *c);

    if (!c)
        return NULL;
    *c = (struct zr_flow_call){.stage = s, .of = j->of, .owner = j->owner};
    c->call =
        (struct zr_stage_call){.jobs = j->job, .n = j->n, .ts = &f->w.worker->states};
    if (zr_stage_is_async(s) && (s->in_device == f->device || s->out_device == f->device))
        c->call.stream = f->stream.handle;
    return c;
}

/* Notes how a call ended: results may be on their way, and jobs may be declined. */
static zarr_status flow_note_call(struct zr_flow *f, struct zr_flow_call *c,
                                  zarr_status st, zarr_error *err)
{
    const struct zr_flow_call *failed = NULL;
    zarr_status waited = ZARR_OK;
    zarr_error own = ZARR_ERROR_INIT;
    bool declined;

    if (c->call.pending) {
        f->n_pending++;
        f->stream.queued = true;
        *f->last = c;
        f->last = &c->next;
    }
    zr_worker_count_call(f->w.worker, &c->call);
    if (st == ZARR_OK)
        return ZARR_OK;
    flow_name(c, err);
    declined = flow_declines(f, c, st); /* first: other jobs may fail in the wait */
    if (f->declined && f->first)        /* whose input was it? */
        waited = flow_wait(f, &failed, &own);
    if (waited != ZARR_OK &&
        (declined || (failed != c && zr_stage_declines(c->stage, st))))
        return zr_pass(err, waited, &own); /* an earlier call failed; this one declines */
    if (declined || (waited == ZARR_OK && flow_declines(f, c, st)))
        return ZARR_OK;
    f->failed = c->of;
    return st;
}

zarr_status zr_flow_run(struct zr_flow *f, const struct zr_stage *s,
                        const struct zr_flow_jobs *jobs, zarr_error *err)
{
    struct zr_engine *engine = f->w.io->engine;
    const int32_t device = f->encode ? s->in_device : s->out_device;
    const uint64_t need = zr_stage_scratch(s, jobs->n);
    struct zr_flow_call *c = NULL;
    zarr_memory scratch = {0};
    zarr_status st = ZARR_OK, held;

    ZR_TRY(zr_flow_worker(f, err));
    c = flow_call(f, s, jobs);
    if (!c)
        ZR_FAIL_MEMORY(err, sizeof *c);
    if (!c->call.stream) /* it needs its input now */
        ZR_TRY(zr_flow_wait(f, err));
    if (need > 0)
        st = zr_pool_take(engine->pool, device, zr_io_device_id(f->w.io, device), need,
                          &scratch, err);
    if (st != ZARR_OK) { /* an implementation that needs less may do the jobs */
        st = flow_note_call(f, c, st, err);
        goto out;
    }
    c->call.scratch = scratch;
    f->w.worker->encodes = f->encode;
    st = zr_stage_run(s, &c->call, f->encode, err);
    f->w.worker->encodes = false;
    st = flow_note_call(f, c, st, err);
    held = zr_flow_hold(f, &scratch, st == ZARR_OK ? err : NULL);
    st = st == ZARR_OK ? held : st;
out:
    return st;
}
