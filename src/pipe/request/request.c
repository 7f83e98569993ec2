/*
 * pipe/request/request.c - a read or write under way: its counters, its progress, and the
 * budgets that it takes bytes from. pipe/run.c carries it out.
 * Thread class: shared.
 */
#include "pipe/request/request.h"

#include <string.h>

enum {
    PROGRESS_NS = 50 * 1000 * 1000
};

void zr_request_lock(struct zarr_request *rq)
{
    if (!zr_has_forked(rq->fork_generation))
        zr_mutex_lock(&rq->locked.mutex);
}

void zr_request_unlock(struct zarr_request *rq)
{
    if (!zr_has_forked(rq->fork_generation))
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
    for (size_t i = 0; i < ZR_COUNTERS; i++)
        rq->locked.counter[i] += worker->counter[i];
    zr_request_unlock(rq);
    memset(worker->counter, 0, sizeof worker->counter);
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
    if (zr_has_forked(
            rq->fork_generation)) { /* this is a child that the function forked */
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
           rq->io.write ? "blocks" : "segments", (zr_now_ns() - begun_ns) / 1000,
           now.chunks_done, now.bytes_stored, now.bytes_decoded, now.store_gets,
           now.store_puts);
}

void zr_request_total(struct zarr_request *rq, uint64_t chunks)
{
    zr_request_lock(rq);
    rq->locked.stats.chunks_total = chunks;
    zr_request_unlock(rq);
}

void zr_request_again(struct zarr_request *rq, const zarr_stats *before)
{
    zarr_stats *s = &rq->locked.stats;

    zr_request_lock(rq);
    zr_forget_chunks(s, before);
    s->chunks_partial = before->chunks_partial;
    atomic_store(&rq->delivered, 0);
    zr_request_unlock(rq);
}

uint64_t zr_held_most(uint64_t total)
{
    return total / 4;
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

void zr_request_report_end(struct zarr_request *rq)
{
    zarr_stats now;

    if (zr_has_forked(rq->fork_generation))
        return;
    zr_request_lock(rq);
    publish_locked(rq, &now);
    zr_request_unlock(rq);
    call_progress(rq, &now);
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

void zr_forget_chunks(zarr_stats *now, const zarr_stats *before)
{
    now->chunks_done = before->chunks_done;
    now->chunks_missing = before->chunks_missing;
    now->chunks_direct = before->chunks_direct;
    now->elements = before->elements;
}

zarr_status zr_memory_fits(const struct zr_io *io, uint64_t need, const char *what,
                           zarr_error *err)
{
    if (io->memory_bytes == 0 || need <= io->memory_bytes)
        return ZARR_OK;
    return zr_fail_limit(err, "memory_bytes", io->memory_bytes,
                         "one %s needs %" PRIu64 " bytes of memory", what, need);
}
