/*
 * pipe/waves_write.c - the writes of the pipeline `waves`. Blocks (units) come from
 * the projector. Those that are encoded or stored together come first (batch_units.c).
 * The others are written by as many threads as there are units; in a batch of fewer
 * shards, several threads write one after the other. Of elements from a device several
 * batches are in work at once (flights.c), so that one is encoded while others come down
 * or are stored. Thread class: one struct per batch; the projector under the lock of the
 * flights.
 */
#include "pipe/pipe_int.h"

#include <string.h>

enum {
    UNITS = 64,
    UNITS_TOGETHER = 1024 /* if they are read and put, or encoded, together */
};

struct units {
    const struct zr_io *io;
    struct zarr_request *rq;
    struct zr_projection *proj;
    struct zr_arena lists;
    bool *done; /* by unit */
    uint32_t n, most, threads_each;
};

/* Writes a unit and stores it, unless that is done. */
static zarr_status unit_alone(void *arg, uint64_t i, const struct zr_work *w,
                              zarr_error *err)
{
    const struct units *u = arg;

    if (u->done[i])
        return ZARR_OK;
    ZR_CHECK(zr_unit_write(w, &u->proj[i], u->threads_each, err));
    u->done[i] = true;
    if (u->io->progress) { /* the callback may write: no lock is held */
        zr_request_merge(u->rq, w->worker);
        zr_request_report(u->rq);
    }
    return ZARR_OK;
}

/* Each thread has a unit, of one batch or of all that are in flight. */
static uint64_t most_units(const struct zr_io *io)
{
    const bool many =
        zr_puts_together(io) || !zr_io_is_host(io, io->view.base.device_type);
    const uint64_t n =
        zr_io_wave_bytes(io) / ZR_MAX(io->layout->level[0].decoded_bytes, UINT64_C(1));
    const uint32_t flights = zr_write_flights(io);
    const uint64_t least = (zr_io_threads(io) + flights - 1) / flights;

    return ZR_MIN(ZR_MAX(n, least), (uint64_t)(many ? UNITS_TOGETHER : UNITS));
}

uint64_t zr_io_units(const struct zr_io *io)
{
    return io->pipeline->vt.flags & ZARR_PIPELINE_PLAIN ? 1 : most_units(io);
}

/* Sets chunks_total, which counts leaf chunks for writes, too. */
static zarr_status count_written(const struct zr_io *io, struct zarr_request *rq,
                                 zarr_error *err)
{
    const struct zr_plan_args args = {.layout = io->layout,
                                      .prefix = io->prefix,
                                      .selection = io->selection,
                                      .selections = io->selections,
                                      .n_selections = io->n_parts};
    struct zr_plan *plan = NULL;
    zarr_status st = zr_plan_open(&plan, &args, io->engine->alloc, err);

    if (st != ZARR_OK)
        return st;
    zr_request_total(rq, zr_plan_count(plan));
    zr_plan_free(plan);
    return ZARR_OK;
}

static zarr_status units_room(struct units *u, const struct zr_io *io,
                              struct zarr_request *rq, size_t n, zarr_error *err)
{
    const zarr_allocator *alloc = io->engine->alloc;

    *u = (struct units){.io = io, .rq = rq, .most = (uint32_t)n};
    zr_arena_init(&u->lists, alloc);

    u->proj = zr_malloc(alloc, n * sizeof *u->proj);
    u->done = zr_calloc(alloc, n, sizeof *u->done);
    return u->proj && u->done ? ZARR_OK : zr_fail_memory(err, n * sizeof *u->proj);
}

/* ---- batches -------------------------------------------------------------------- */

/* One write under way. */
struct writing {
    struct zr_flights f; /* its lock is also that of the projector */
    const struct zr_io *io;
    struct zarr_request *rq;
    struct zr_projector *p;
    uint64_t n_units; /* taken from the projector */
    uint64_t most;    /* units of a batch */
};

/* Takes the next batch. Returns false if nothing is left for this thread. */
static bool pull_units(struct writing *w, struct units *u, uint64_t *first)
{
    struct zr_projection proj;
    bool fits = true;

    u->n = 0;
    zr_arena_reset(&u->lists);
    if (!zr_flights_lock(&w->f))
        return false;
    *first = w->n_units;
    if (zr_is_cancelled(&w->rq->cancel))
        w->f.locked.closed = true;
    while (!w->f.locked.closed && u->n < u->most) {
        if (!zr_next_unit(w->io, w->p, &proj)) {
            w->f.locked.closed = true;
            break;
        }
        fits = zr_projection_keep(&u->proj[u->n], &proj, &u->lists);
        if (!fits) {
            zarr_error err = ZARR_ERROR_INIT;

            zr_flights_fail(&w->f, zr_fail_memory(&err, sizeof proj), &err, *first);
            break;
        }
        u->n++;
    }
    w->n_units += u->n;
    zr_mutex_unlock(&w->f.locked.mutex);
    return fits && u->n > 0;
}

static void pull_batches(struct zr_flights *f)
{
    struct writing *w = (struct writing *)f;
    const struct zr_work work = {.io = w->io, .rq = w->rq};
    const struct zr_level *lv = &w->io->layout->level[0];
    const uint32_t threads = zr_io_threads(w->io);
    zarr_error err = ZARR_ERROR_INIT;
    struct units u;
    uint64_t first = 0;
    zarr_status st = units_room(&u, w->io, w->rq, (size_t)w->most, &err);

    while (st == ZARR_OK && pull_units(w, &u, &first)) {
        const uint64_t begun_ns = zr_request_wave_begin(w->rq);
        /* One of two loops is parallel: that over the units if there are as many as
         * threads, or if they have no chunks inside, else that over the chunks of each
         * shard. */
        const bool over_units = u.n >= threads || !lv->is_shard;
        const struct zr_parallel_options opts = {.max_threads = over_units ? threads : 1,
                                                 .grain = 1,
                                                 .item_ns = 20000 + lv->decoded_bytes};

        u.threads_each = over_units ? 1 : threads;
        if (first > 0) /* the request made a check before the first wave */
            st = zr_request_check(w->rq, &err);
        memset(u.done, 0, u.most * sizeof *u.done);
        if (st == ZARR_OK && zr_units_join(w->io, lv, u.n))
            st = zr_write_batch(w->io, w->rq, u.proj, u.n, u.done, &err);
        if (st != ZARR_OK)
            break;
        st = zr_workers_run(&work, u.n, &opts, unit_alone, &u, &err);
        zr_request_wave(w->rq, u.n, begun_ns);
    }
    if (st != ZARR_OK && zr_flights_lock(f)) {
        zr_flights_fail(f, st, &err, first);
        zr_mutex_unlock(&f->locked.mutex);
    }
    zr_free(w->io->engine->alloc, u.proj);
    zr_free(w->io->engine->alloc, u.done);
    zr_arena_deinit(&u.lists);
}

zarr_status zr_waves_write(void *self, zarr_request *rq, const zarr_pipeline_steps *steps,
                           zarr_error *err)
{
    const struct zr_io *io = &rq->io;
    const uint32_t n = zr_write_flights(io);
    struct writing alone = {.f = {.is_callers = true}};
    struct writing *w = n > 1 ? zr_calloc(NULL, 1, sizeof *w) : &alone;
    zarr_selection *all = NULL;
    zarr_status st = ZARR_OK;

    ZR_UNUSED(self, steps);
    if (!w)
        return zr_fail_memory(err, sizeof *w);
    zr_flights_init(&w->f, pull_batches);
    w->io = io;
    w->rq = rq;
    ZR_TRY(zr_io_project(&w->p, io, &all, err));
    w->most = ZR_MIN(most_units(io), ZR_MAX(zr_project_count(w->p), UINT64_C(1)));
    if (rq->submitted || io->progress)
        ZR_TRY(count_written(io, rq, err));
    if (n > 1)
        zr_flights_start(&w->f, n);
    pull_batches(&w->f);
    st = zr_flights_end(&w->f, err);
    if (zr_has_forked(w->f.fork_generation))
        return st;
out:
    zr_project_free(w->p);
    w->p = NULL;
    zarr_selection_free(all);
    zr_flights_unref(&w->f);
    return st;
}
