/*
 * pipe/run.c - carries a request out by its pipeline on the calling thread: what is
 * checked before and after, and a read that starts again after CONFLICT.
 * submitted_requests.c does that as a task of the pool.
 * Thread class: one thread for each request.
 */
#include "pipe/pipe_int.h"

#include <string.h>

enum {
    READ_TRIES = 3
};

/* Asks for huge pages for new destinations: they are several times faster to fill than
 * small ones. */
static void advise_output(const struct zr_io *io)
{
    for (uint32_t i = 0; i < (io->parts ? io->n_parts : 1); i++) {
        const struct zr_view *v = io->parts ? &io->parts[i].view : &io->view;
        uint64_t bytes = v->item_bytes;
        void *p = NULL;

        for (int32_t d = 0; d < v->ndim; d++)
            bytes = zr_mul_cap(bytes, v->shape[d]);
        if (bytes >= (UINT64_C(4) << 20) && zr_view_is_contiguous(v) &&
            v->base.device_type == ZARR_DEVICE_CPU &&
            zr_mem_host_ptr(io->engine->memory, &v->base, bytes, &p, NULL) == ZARR_OK)
            zr_pages_advise(p, (size_t)bytes);
    }
}

/* A plug-in's pipeline may return OK although it left elements of the caller unset or
 * chunks unwritten. Compares what its steps delivered with what the request wants. */
static zarr_status check_delivered(struct zarr_request *rq, zarr_error *err)
{
    const struct zr_io *io = &rq->io;
    const uint64_t got = atomic_load(&rq->delivered), want = zr_io_elements(io);

    if (got >= want)
        return ZARR_OK;
    return zr_fail(err, ZARR_ERR_INTERNAL,
                   "pipeline \"%s\" returned OK, but has %s %" PRIu64 " of %" PRIu64
                   " elements",
                   io->pipeline->name, io->write ? "written" : "read", got, want);
}

/* An array that was moved, deleted or replaced has missing objects, chunks of other
 * codecs, or keys that lead nowhere, and a check before may have found it so. Then the
 * check's error says more than the request's. */
static zarr_status check_after(struct zarr_request *rq, zarr_status st, bool *gone,
                               zarr_error *err)
{
    const bool write = rq->io.write, odd = st == ZARR_ERR_NOT_FOUND ||
                                           st == ZARR_ERR_CORRUPT ||
                                           (write && st == ZARR_ERR_CONFLICT);
    zarr_error why = {0};
    const zarr_stats *n = &rq->locked.stats;
    zarr_status now = ZARR_OK;

    if (st == ZARR_ERR_CANCELLED || (st != ZARR_OK && !odd && !write) ||
        (st == ZARR_OK && !write && n->chunks_missing == 0))
        return st;
    now = rq->io.check(rq->io.check_arg, !write && n->chunks_missing == n->chunks_done,
                       &why);
    if (now == ZARR_OK)
        return st;
    *gone = zr_is_overtaken(now);
    if (write && *gone)
        zr_take_back(rq, &why);
    else if (write && (!rq->io.session || zr_shard_session_is_stored(rq->io.session)))
        zr_tell_unchecked(&why);
    if (st != ZARR_OK && !(odd && *gone)) {
        *gone = false;
        return st;
    }
    *gone = true;
    *err = why;
    return now;
}

/* What remains once the pipeline has returned st. */
static zarr_status request_check(struct zarr_request *rq, zarr_status st, zarr_error *err)
{
    const struct zr_pipeline *p = rq->io.pipeline;
    bool of_parts = false, gone = false;

    if (st == ZARR_OK && zr_is_cancelled(&rq->cancel))
        st = zr_fail(err, ZARR_ERR_CANCELLED, "the request was cancelled");
    else if (st == ZARR_OK && (rq->io.write ? p->has_foreign_write : p->is_foreign))
        st = check_delivered(rq, err);
    if (st == ZARR_OK && rq->io.parts) {
        st = zr_parts_status(rq, err);
        of_parts = st != ZARR_OK;
    }
    if (rq->io.check)
        st = check_after(rq, st, &gone, err);
    if (st != ZARR_OK && (gone || !of_parts))
        zr_parts_fail_all(rq, st, err);
    return st;
}

/* Counts the units that a read touches, and checks that the caller has room for all. */
static zarr_status present_room(const struct zr_io *io, uint64_t *n, zarr_error *err)
{
    struct zr_projector *p = NULL;
    zarr_selection *all = NULL;
    zarr_status st = ZARR_OK;

    if (io->parts || !io->selection ||
        !zr_project_count_box(n, io->layout->grid, io->selection)) {
        ZR_TRY(zr_io_project(&p, io, &all, err));
        *n = zr_project_count(p);
    }
    if (*n > io->n_present)
        st = zr_fail(err, ZARR_ERR_INVALID,
                     "io options: present has %" PRIu64 " bytes for %" PRIu64 " blocks",
                     io->n_present, *n);
out:
    zr_project_free(p);
    zarr_selection_free(all);
    return st;
}

/* Waits for what the application's stream had at entry. Reads and writes touch tensors in
 * many ways (lists, single copies, the CPU), so there is one wait before all of them. */
static zarr_status request_order(const struct zr_io *io, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    zr_block_begin();
    st = zr_stream_sync(io->after, err);
    zr_block_end();
    return st;
}

/* The budgets of the request alone, if it has a limit of its own. */
static void own_budgets_init(struct zarr_request *rq)
{
    const uint64_t bytes = rq->io.memory_bytes;

    zr_budget_init(&rq->own, bytes);
    if (zr_io_holds(&rq->io))
        zr_holders_init(&rq->own_holders, bytes);
}

static void own_budgets_deinit(struct zarr_request *rq)
{
    if (zr_io_holds(&rq->io))
        zr_holders_deinit(&rq->own_holders);
    zr_budget_deinit(&rq->own);
    rq->has_own = false;
}

/* *n_units: bytes of io->present that are used. */
static zarr_status request_begin(struct zarr_request *rq, uint64_t *n_units,
                                 zarr_error *err)
{
    const struct zr_io *io = &rq->io;

    rq->device = NULL;
    rq->has_own = io->memory_bytes != 0 && io->memory_bytes < io->engine->budget->total;
    if (rq->has_own)
        own_budgets_init(rq);
    if (!zr_io_is_host(io, io->view.base.device_type))
        ZR_CHECK(zr_device_budget_find(&rq->device, io->engine, &io->view.base, err));
    if (io->after)
        ZR_CHECK(request_order(io, err));
    if (io->session)
        ZR_CHECK(zr_shard_session_check(io, err));
    if (io->present && !io->write)
        ZR_CHECK(present_room(io, n_units, err));
    if (io->write && io->check)
        ZR_CHECK(io->check(io->check_arg, false, err));
    if (!io->write && !io->no_huge_pages)
        advise_output(io);
    return ZARR_OK;
}

/* What remains once the pipeline has returned st: checks, and tells the caller how the
 * request and its parts ended. before: the status of what comes before the pipeline. */
static zarr_status request_close(struct zarr_request *rq, zarr_status before,
                                 zarr_status st, zarr_error *failed, zarr_error *err)
{
    const struct zr_io *io = &rq->io;

    if (rq->has_own)
        own_budgets_deinit(rq);
    if (before == ZARR_OK)
        st = request_check(rq, st, failed);
    else
        zr_parts_fail_all(rq, st, failed);
    if (io->write)
        zr_put_notes_free(rq);
    if (st == ZARR_OK && io->finish)
        st = io->finish(io->finish_arg, failed);
    if (st != ZARR_OK && err) {
        *err = *failed;
        zr_error_mark_path(err, io->prefix);
    }
    if (io->parts && st == ZARR_OK) /* a chunk that parts share counts once */
        zr_request_total(rq, rq->locked.stats.chunks_done);
    if (io->parts)
        zr_parts_tell(rq);
    if (io->progress)
        zr_request_report_end(rq);
    return st;
}

/* Makes the request that of one memory, and keeps what it has counted before. */
static void group_begin(struct zarr_request *rq, struct zr_io *whole, uint32_t group,
                        zarr_stats *before)
{
    if (group == 0)
        *whole = rq->io;
    else if (rq->has_own)
        own_budgets_deinit(rq);
    zr_request_lock(rq); /* its owner may ask for its progress */
    rq->io = whole->groups[group];
    rq->io.progress = whole->progress; /* of a submitted request, set after the groups */
    rq->io.progress_user = whole->progress_user;
    *before = rq->locked.stats;
    zr_request_unlock(rq);
}

static void groups_end(struct zarr_request *rq, const struct zr_io *whole)
{
    zr_request_lock(rq);
    rq->io = *whole;
    zr_request_unlock(rq);
}

/* Calls the pipeline itself: the depth of its call stack is bounded (count-frames). It
 * does so once, or for one memory after the other. */
zarr_status zr_request_run(struct zarr_request *rq, zarr_error *err)
{
    const struct zr_io *io = &rq->io;
    const struct zr_pipeline *p = io->pipeline;
    zarr_status (*const work)(void *, zarr_request *, const zarr_pipeline_steps *,
                              zarr_error *) = io->write ? p->vt.write : p->vt.read;
    const uint32_t n_groups = io->n_groups;
    /* a chunk that is missing now leaves its message here, too */
    zarr_error failed = {0};
    zarr_status before = ZARR_OK, st = ZARR_OK;
    struct zr_io whole; /* if there are groups */
    zarr_stats counted = {0};
    uint64_t n_units = 0;
    uint32_t group = 0;

    do {
        if (n_groups > 0)
            group_begin(rq, &whole, group, &counted);
        before = st = request_begin(rq, &n_units, &failed);
        for (int tries = 1; before == ZARR_OK; tries++) {
            rq->last_try = io->write || tries == READ_TRIES;
            if (io->parts)
                zr_parts_begin(rq);
            if (n_units > 0)
                memset(io->present, 1, (size_t)n_units);
            st = work(p->self, rq, &zr_pipeline_steps, &failed);
            if (zr_has_forked(rq->fork_generation))
                st = zr_request_inherited(&failed);
            if (st != ZARR_ERR_CONFLICT || io->write)
                break;
            /* A shard was replaced between reading its index and its chunks: read
             * everything again. */
            zr_index_cache_drop(io->indexes, NULL);
            zr_request_again(rq, &counted);
            if (tries == READ_TRIES)
                break;
        }
    } while (st == ZARR_OK && ++group < n_groups);
    if (n_groups > 0)
        groups_end(rq, &whole);
    return request_close(rq, before, st, &failed, err);
}

zarr_status zr_io_run(const struct zr_io *io, zarr_stats *stats, zarr_error *err)
{
    struct zarr_request rq;
    zarr_status st = ZARR_OK;

    zr_request_init(&rq, io, io->cancel);
    st = zr_request_run(&rq, err);
    zr_request_stats(&rq, stats);
    zr_mutex_deinit(&rq.locked.mutex);
    return st;
}

zarr_status zr_io_try(const struct zr_io *io, zarr_stats *stats, zarr_error *err)
{
    struct zarr_request rq;
    zarr_status st = ZARR_OK;

    if (!zr_attempt_is_worth(io) || zr_attempt_runs())
        return zr_fail(err, ZARR_ERR_CANCELLED, "this may take long");
    zr_request_init(&rq, io, io->cancel);
    rq.io.max_threads = 1;
    zr_attempt_begin();
    st = zr_request_run(&rq, err);
    if (zr_attempt_end())
        zr_request_stats(&rq, stats);
    else
        st = zr_fail(err, ZARR_ERR_CANCELLED, "this would have to wait");
    zr_mutex_deinit(&rq.locked.mutex);
    return st;
}

zarr_status zr_io_run_in(struct zarr_request *rq, const struct zr_io *io,
                         zarr_stats *stats, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    if (!rq)
        return zr_io_run(io, stats, err);
    zr_request_lock(rq); /* its owner may ask for its progress */
    rq->io = *io;
    zr_request_unlock(rq);
    st = zr_request_run(rq, err);
    zr_request_stats(rq, stats);
    return st;
}
