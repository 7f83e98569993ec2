/*
 * pipe/request/request.c - a read or write under way: its counters, its progress, and how
 * it is carried out on one thread. submitted_requests.c does that as a task of the pool.
 * Thread class: shared.
 */
#include "pipe/pipe_int.h"

#include <string.h>

enum {
    PROGRESS_NS = 50 * 1000 * 1000,
    READ_TRIES = 3
};

static void add_copies(struct zr_copy_counters *to, const struct zr_copy_counters *from)
{
    to->copies_host += from->copies_host;
    to->bytes_host += from->bytes_host;
    to->copies_up += from->copies_up;
    to->bytes_up += from->bytes_up;
    to->copies_down += from->copies_down;
    to->bytes_down += from->bytes_down;
    to->copies_device += from->copies_device;
    to->bytes_device += from->bytes_device;
    to->staged += from->staged;
    to->detours += from->detours;
    to->calls += from->calls;
}

static void add_stats(zarr_stats *to, const zarr_stats *from)
{
    to->chunks_done += from->chunks_done;
    to->chunks_missing += from->chunks_missing;
    to->chunks_direct += from->chunks_direct;
    to->chunks_partial += from->chunks_partial;
    to->chunks_fallback += from->chunks_fallback;
    to->chunks_distrusted += from->chunks_distrusted;
    to->elements += from->elements;
    to->bytes_stored += from->bytes_stored;
    to->bytes_decoded += from->bytes_decoded;
    to->store_gets += from->store_gets;
    to->store_puts += from->store_puts;
    to->store_erases += from->store_erases;
    to->store_ranges += from->store_ranges;
    to->index_reads += from->index_reads;
    to->index_hits += from->index_hits;
    to->copies_decoded_host += from->copies_decoded_host;
    to->waves += from->waves;
    to->read_modify_writes += from->read_modify_writes;
    to->bytes_heap += from->bytes_heap;
}

void zr_request_lock(struct zarr_request *rq)
{
    if (!zr_request_is_inherited(rq))
        zr_mutex_lock(&rq->locked.mutex);
}

void zr_request_unlock(struct zarr_request *rq)
{
    if (!zr_request_is_inherited(rq))
        zr_mutex_unlock(&rq->locked.mutex);
}

zarr_status zr_request_inherited(zarr_error *err)
{
    return zr_fail(err, ZARR_ERR_CANCELLED, "inherited through fork");
}

static void publish_locked(const struct zarr_request *rq, zarr_stats *out)
{
    const struct zr_copy_counters *c = &rq->locked.copies;

    *out = rq->locked.stats;
    out->struct_size = sizeof *out;
    out->elements *= ZR_MAX(rq->io.elements_each, 1u);
    out->copies_decoded_host += c->detours;
    out->copies_host = c->copies_host;
    out->bytes_host = c->bytes_host;
    out->copies_up = c->copies_up;
    out->bytes_up = c->bytes_up;
    out->copies_down = c->copies_down;
    out->bytes_down = c->bytes_down;
    out->copies_device = c->copies_device;
    out->bytes_device = c->bytes_device;
    out->chunks_total = ZR_MAX(out->chunks_total, out->chunks_done);
    out->wall_ns = zr_now_ns() - rq->begun_ns;
}

void zr_request_merge(struct zarr_request *rq, struct zr_worker *worker)
{
    zr_request_lock(rq);
    add_stats(&rq->locked.stats, &worker->stats);
    add_copies(&rq->locked.copies, &worker->copies);
    zr_request_unlock(rq);
    worker->stats = (zarr_stats){0};
    worker->copies = (struct zr_copy_counters){0};
}

static void call_progress(const struct zarr_request *rq, const zarr_stats *now)
{
    zr_block_begin(); /* the callback may take long */
    rq->io.progress(rq->io.progress_user, now);
    zr_block_end();
}

void zr_request_report(struct zarr_request *rq)
{
    zarr_stats now;
    bool call = false;

    if (!rq->io.progress)
        return;
    zr_request_lock(rq);
    if (!rq->locked.in_progress_call && zr_now_ns() >= rq->locked.next_progress_ns) {
        call = rq->locked.in_progress_call = true;
        publish_locked(rq, &now);
    }
    zr_request_unlock(rq);
    if (!call)
        return;
    call_progress(rq, &now);
    if (zr_request_is_inherited(rq)) { /* this is a child that the function forked */
        zarr_cancel_set(&rq->cancel);
        return;
    }
    zr_request_lock(rq);
    rq->locked.in_progress_call = false;
    rq->locked.next_progress_ns = zr_now_ns() + PROGRESS_NS;
    zr_request_unlock(rq);
}

uint64_t zr_request_wave_begin(const struct zarr_request *rq)
{
    const struct zr_log *log = rq->io.engine->log;

    return log->fn && log->level >= ZARR_LOG_TRACE ? zr_now_ns() : 0;
}

void zr_request_wave(struct zarr_request *rq, uint32_t n, uint64_t begun_ns)
{
    const char *path = *rq->io.prefix ? rq->io.prefix : "/";
    zarr_stats now;

    zr_request_lock(rq);
    rq->locked.stats.waves++;
    now = rq->locked.stats;
    zr_request_unlock(rq);
    if (begun_ns == 0)
        return;
    zr_log(rq->io.engine->log, ZARR_LOG_TRACE,
           "%s: wave %" PRIu64 " of a %s: %" PRIu32 " %s in %" PRIu64
           " us; so far %" PRIu64 " chunks, %" PRIu64 " bytes stored, %" PRIu64
           " decoded, %" PRIu64 " GETs, %" PRIu64 " PUTs",
           path, now.waves, rq->io.write ? "write" : "read", n,
           rq->io.write ? "units" : "segments", (zr_now_ns() - begun_ns) / 1000,
           now.chunks_done, now.bytes_stored, now.bytes_decoded, now.store_gets,
           now.store_puts);
}

void zr_request_total(struct zarr_request *rq, uint64_t chunks)
{
    zr_request_lock(rq);
    rq->locked.stats.chunks_total = chunks;
    zr_request_unlock(rq);
}

void zr_request_again(struct zarr_request *rq)
{
    zarr_stats *s = &rq->locked.stats;

    zr_request_lock(rq);
    s->chunks_done = s->chunks_missing = s->chunks_direct = 0;
    s->chunks_partial = s->elements = 0;
    atomic_store(&rq->delivered, 0);
    zr_request_unlock(rq);
}

uint32_t zr_io_threads(const struct zr_io *io)
{
    const uint32_t n = io->max_threads != 0 ? io->max_threads : io->engine->max_threads;

    return ZR_MIN(ZR_MAX(n, 1u), (uint32_t)ZR_MAX_THREADS);
}

uint64_t zr_io_budget(const struct zr_io *io)
{
    const uint64_t total = io->engine->budget->total;

    return io->memory_bytes != 0 ? ZR_MIN(io->memory_bytes, total) : total;
}

uint64_t zr_io_wave_bytes(const struct zr_io *io)
{
    const uint64_t bytes = io->wave_bytes != 0
                               ? io->wave_bytes
                               : ZR_MAX(io->engine->wave_bytes, zr_device_wave(io));

    return io->memory_bytes != 0 ? ZR_MIN(bytes, io->memory_bytes) : bytes;
}

/* The budgets in one order: a holder of bytes of one waits for those after it alone. */
zarr_status zr_request_take(struct zarr_request *rq, struct zr_need need, zarr_error *err)
{
    struct zr_budget *const from[] = {need.device ? rq->device : NULL,
                                      rq->has_own ? &rq->own : NULL,
                                      rq->io.engine->budget};
    zarr_status st = ZARR_OK;
    size_t n = 0;

    for (; n < ZR_COUNT(from) && st == ZARR_OK; n++)
        if (from[n])
            st = zr_budget_take(from[n], n == 0 ? need.device : need.host, UINT64_MAX,
                                &rq->cancel, err);
    if (st == ZARR_OK)
        return ZARR_OK;
    for (n--; n-- > 0;)
        if (from[n])
            zr_budget_give(from[n], n == 0 ? need.device : need.host);
    return st;
}

void zr_request_give(struct zarr_request *rq, struct zr_need need)
{
    zr_budget_give(rq->io.engine->budget, need.host);
    if (rq->has_own)
        zr_budget_give(&rq->own, need.host);
    if (rq->device && need.device)
        zr_budget_give(rq->device, need.device);
}

void zr_request_keep(struct zarr_request *rq, uint64_t bytes, uint64_t taken)
{
    zr_budget_keep(rq->io.engine->budget, bytes, taken);
    if (rq->has_own)
        zr_budget_keep(&rq->own, bytes, taken);
}

void zr_io_cut(const struct zr_io *io, struct zr_plan_args *out)
{
    (io->pipeline->is_serial ? zr_serial_cut : zr_waves_cut)(io, out);
}

uint64_t zr_io_units(const struct zr_io *io)
{
    return io->pipeline->is_serial ? 1 : zr_units_most(io);
}

void zr_request_init(struct zarr_request *rq, const struct zr_io *io,
                     const zarr_cancel *cancel)
{
    const size_t head = offsetof(struct zarr_request, locked);

    if (io)
        rq->io = *io; /* it is large: no byte is set twice */
    else
        memset(rq, 0, head);
    memset((uint8_t *)rq + head, 0, sizeof *rq - head);
    zr_mutex_init(&rq->locked.mutex);
    zr_cancel_init(&rq->cancel, cancel);
    atomic_init(&rq->delivered, 0);
    rq->fork_generation = zr_fork_generation();
    rq->begun_ns = zr_now_ns();
    rq->locked.next_progress_ns = rq->begun_ns + PROGRESS_NS;
}

static uint64_t view_extent(const struct zr_view *v)
{
    uint64_t n = v->item_bytes;

    for (int32_t d = 0; d < v->ndim; d++)
        if (!zr_mul_u64(n, v->shape[d], &n))
            return 0;
    return n;
}

/* Asks for huge pages for a new destination: they are several times faster to fill than
 * small ones. */
static void advise_view(const struct zr_io *io, const struct zr_view *v)
{
    uint64_t bytes = view_extent(v);
    void *p = NULL;

    if (io->write || io->no_huge_pages || bytes < (UINT64_C(4) << 20) ||
        !zr_view_is_contiguous(v) || v->base.device_type != ZARR_DEVICE_CPU ||
        zr_mem_host_ptr(io->engine->memory, &v->base, bytes, &p, NULL) != ZARR_OK)
        return;
    zr_pages_advise(p, (size_t)bytes);
}

static void advise_output(const struct zr_io *io)
{
    if (!io->parts)
        advise_view(io, &io->view);
    for (uint32_t i = 0; io->parts && i < io->n_parts; i++)
        advise_view(io, &io->parts[i].view);
}

/* A plug-in's pipeline may return OK although it left elements of the caller unset or
 * chunks unwritten. Compares what its steps delivered with what the request wants. */
static zarr_status check_delivered(struct zarr_request *rq, zarr_error *err)
{
    const struct zr_io *io = &rq->io;
    const bool checks =
        io->write ? io->pipeline->checks_write : io->pipeline->checks_read;
    const uint64_t got = atomic_load(&rq->delivered), want = zr_io_elements(io);

    if (!checks || got >= want)
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

    if (!rq->io.check || st == ZARR_ERR_CANCELLED || (st != ZARR_OK && !odd && !write) ||
        (st == ZARR_OK && !write && n->chunks_missing == 0))
        return st;
    now = rq->io.check(rq->io.check_arg, !write && n->chunks_missing == n->chunks_done,
                       &why);
    *gone = zr_is_overtaken(now);
    if (write && *gone)
        zr_take_back(rq, &why);
    else if (write && now != ZARR_OK &&
             (!rq->io.session || zr_shard_session_is_stored(rq->io.session)))
        zr_tell_unchecked(&why);
    if (now == ZARR_OK || (st != ZARR_OK && !(odd && *gone))) {
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
    bool of_parts = false, gone = false;

    if (st == ZARR_OK && zr_is_cancelled(&rq->cancel))
        st = zr_fail(err, ZARR_ERR_CANCELLED, "the request was cancelled");
    else if (st == ZARR_OK)
        st = check_delivered(rq, err);
    if (st == ZARR_OK) {
        st = zr_parts_status(rq, err);
        of_parts = st != ZARR_OK;
    }
    st = check_after(rq, st, &gone, err);
    if (st != ZARR_OK && (gone || !of_parts))
        zr_parts_fail_all(rq, st, err);
    return st;
}

static void report_end(struct zarr_request *rq)
{
    zarr_stats now;

    if (!rq->io.progress || zr_request_is_inherited(rq))
        return;
    zr_request_lock(rq);
    publish_locked(rq, &now);
    zr_request_unlock(rq);
    call_progress(rq, &now);
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

    if (!io->after)
        return ZARR_OK;
    zr_block_begin();
    st = zr_stream_sync(io->after, err);
    zr_block_end();
    return st;
}

/* *n_units: bytes of io->present that are used. */
static zarr_status request_begin(const struct zr_io *io, uint64_t *n_units,
                                 zarr_error *err)
{
    zarr_status st = request_order(io, err);

    if (st == ZARR_OK)
        st = zr_shard_session_check(io, err);
    if (st != ZARR_OK)
        return st;
    if (io->present && !io->write)
        return present_room(io, n_units, err);
    return io->write && io->check ? io->check(io->check_arg, false, err) : ZARR_OK;
}

/* The budgets of the request alone, if it has a limit of its own. */
static void own_budgets_init(struct zarr_request *rq)
{
    const uint64_t bytes = rq->io.memory_bytes;

    rq->has_own = bytes != 0 && bytes < rq->io.engine->budget->total;
    if (!rq->has_own)
        return;
    zr_budget_init(&rq->own, bytes);
    if (zr_io_holds(&rq->io))
        zr_holders_init(&rq->own_holders, bytes);
}

static void own_budgets_deinit(struct zarr_request *rq)
{
    if (!rq->has_own)
        return;
    if (zr_io_holds(&rq->io))
        zr_holders_deinit(&rq->own_holders);
    zr_budget_deinit(&rq->own);
    rq->has_own = false;
}

/* Calls the pipeline itself: the depth of its call stack is bounded (count-frames). */
zarr_status zr_request_run(struct zarr_request *rq, zarr_error *err)
{
    const struct zr_io *io = &rq->io;
    const struct zr_pipeline *p = io->pipeline;
    /* a chunk that is missing now leaves its message here, too */
    zarr_error failed = {0};
    zarr_status before = ZARR_OK, st = ZARR_OK;
    uint64_t n_units = 0;

    advise_output(io);
    own_budgets_init(rq);
    before = st = zr_device_budget_find(&rq->device, io->engine, &io->view.base, &failed);
    if (before == ZARR_OK)
        before = st = request_begin(io, &n_units, &failed);
    for (int tries = 1; before == ZARR_OK; tries++) {
        rq->last_try = io->write || tries == READ_TRIES;
        zr_parts_begin(rq);
        if (n_units > 0)
            memset(io->present, 1, (size_t)n_units);
        st = (io->write ? p->vt.write : p->vt.read)(p->self, rq, &zr_pipeline_steps,
                                                    &failed);
        if (zr_request_is_inherited(rq))
            st = zr_request_inherited(&failed);
        if (st != ZARR_ERR_CONFLICT || io->write)
            break;
        /* A shard was replaced between reading its index and its chunks: read everything
         * again. */
        zr_index_cache_drop(io->indexes, NULL);
        zr_request_again(rq);
        if (tries == READ_TRIES)
            break;
    }
    own_budgets_deinit(rq);
    if (before == ZARR_OK)
        st = request_check(rq, st, &failed);
    else
        zr_parts_fail_all(rq, st, &failed);
    zr_put_notes_free(rq);
    if (st == ZARR_OK && io->finish)
        st = io->finish(io->finish_arg, &failed);
    if (st == ZARR_OK && io->parts) /* a chunk that parts share counts once */
        zr_request_total(rq, rq->locked.stats.chunks_done);
    if (st != ZARR_OK && err) {
        *err = failed;
        zr_error_mark_path(err, io->prefix);
    }
    zr_parts_tell(rq);
    report_end(rq);
    return st;
}

void zr_request_stats(struct zarr_request *rq, zarr_stats *out)
{
    zarr_stats now;
    uint32_t bytes = 0;

    if (!out)
        return;
    zr_request_lock(rq);
    publish_locked(rq, &now);
    zr_request_unlock(rq);
    bytes = out->struct_size;
    now.struct_size = bytes;
    /* the struct of a caller compiled against an older header is shorter */
    memcpy(out, &now, ZR_MIN((size_t)bytes, sizeof now));
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
