/*
 * pipe/waves_write.c - the writes of the pipeline `waves`. Blocks (units) come from
 * the projector. A batch of them is written by as many threads as there are units; in a
 * batch of fewer shards, several threads write one after the other. Codecs that take
 * whole batches get them first (batch_units.c). Of elements from a device several batches
 * are in work at once (flights.c), so that one is encoded while others come down or are
 * stored. Thread class: one struct per batch; the projector under the lock of the
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
    bool *done, *together; /* by unit */
    uint32_t n, most, threads_each;
    /* NULL until units are put together */
    struct zr_later *later; /* by unit */
    struct zr_old_value *old_value;
    uint32_t
        *old_value_index; /* by unit: which of them; UINT32_MAX: it needs no old value */
    uint32_t first;       /* of the group that is being encoded */
};

/* Writes a unit and stores it, unless that is done. */
static zarr_status unit_alone(void *arg, uint64_t i, const struct zr_work *w,
                              zarr_error *err)
{
    const struct units *u = arg;
    zarr_status st = ZARR_OK;

    if (u->done[i])
        return ZARR_OK;
    ZR_TRY(zr_unit_write(w, &u->proj[i], u->threads_each, NULL, err));
    u->done[i] = true;
    if (u->io->progress) { /* the callback may write: no lock is held */
        zr_request_merge(u->rq, w->worker);
        zr_request_report(u->rq);
    }
out:
    return st;
}

/* ---- units that are put together ------------------------------------------------ */

/* Adds units to a group, as many as half of the budget has room for: what each thread
 * needs for the unit that it encodes, and the encoded bytes, old and new, of all. Returns
 * the first one behind it. */
static uint32_t group_end(const struct units *u, uint32_t first, uint32_t threads,
                          uint64_t *need)
{
    const struct zr_level *lv = &u->io->layout->level[0];
    const uint64_t most = zr_io_budget(u->io) / 2;
    uint64_t each = zr_unit_budget(lv, true), bytes = 0;
    uint32_t i = first, locks = zr_old_values_most(u->io);

    *need = 0;
    for (; i < u->n; i++) {
        const uint64_t work = ZR_MIN(i - first + 1, threads);

        if ((!u->proj[i].full && locks-- == 0) ||
            !zr_add_u64(bytes, lv->encoded_bound, &bytes) ||
            (!u->proj[i].full && !zr_add_u64(bytes, lv->encoded_bound, &bytes)) ||
            each > most || bytes > most - each || work > (most - bytes) / each)
            break;
        *need = bytes + work * each;
    }
    return i;
}

/* Locks the units of a group that need their old value, and reads it. */
static zarr_status group_old_values(struct units *u, uint32_t end,
                                    struct zr_old_values *l, zarr_error *err)
{
    const struct zr_level *lv = &u->io->layout->level[0];
    zarr_status st = ZARR_OK;

    *l = (struct zr_old_values){.unit = u->old_value};
    for (uint32_t i = u->first; i < end; i++) {
        u->old_value_index[i] = UINT32_MAX;
        if (u->done[i] || u->proj[i].full)
            continue;
        u->old_value_index[i] = l->n;
        u->old_value[l->n++] = (struct zr_old_value){.proj = &u->proj[i], .lv = lv};
    }
    if (l->n > 0)
        ZR_TRY(zr_old_values_run(u->io, u->rq, l, &u->lists, err));
    for (uint32_t i = u->first; i < end; i++)
        u->together[i] = !u->done[i] && (u->old_value_index[i] == UINT32_MAX ||
                                         u->old_value[u->old_value_index[i]].ready);
out:
    return st;
}

/* Encodes a unit of a group, whose bytes are granted. It is stored later. */
static zarr_status unit_of_group(void *arg, uint64_t at, const struct zr_work *w,
                                 zarr_error *err)
{
    const struct units *u = arg;
    const uint64_t i = u->first + at;
    struct zr_later *later = &u->later[i];
    struct zr_work own = *w;
    zarr_status st = ZARR_OK;

    if (!u->together[i])
        return ZARR_OK;
    own.granted = true;
    zr_later_count(later, &w->worker->stats, false);
    if (u->old_value_index[i] != UINT32_MAX)
        later->old_value = &u->old_value[u->old_value_index[i]];
    ZR_TRY(zr_unit_write(&own, &u->proj[i], u->threads_each, later, err));
    zr_later_count(later, &w->worker->stats, true);
out:
    return st;
}

/* What was not stored, because another writer was faster or because its parts failed, is
 * left to be written alone. */
static void group_done(struct units *u, uint32_t end)
{
    for (uint32_t i = u->first; i < end; i++) {
        if (!u->together[i])
            continue;
        u->done[i] = zr_later_is_done(&u->later[i]);
        if (!u->done[i])
            zr_later_forget(u->rq, &u->later[i]);
    }
}

/* What the units of a group that are not done have on the device: those in work, and the
 * bytes to store if they are there. */
static uint64_t group_on_device(const struct units *u, uint32_t end, uint32_t threads)
{
    const struct zr_level *lv = &u->io->layout->level[0];
    const uint64_t each = zr_unit_on_device(u->io, lv);
    uint64_t n = 0, stored = 0;

    for (uint32_t i = u->first; i < end; i++)
        n += !u->done[i];
    if (!lv->is_shard && lv->encode && !zr_io_is_host(u->io, lv->encode->fetch_device))
        stored = zr_mul_cap(lv->encoded_bound, n);
    return zr_add_cap(zr_mul_cap(each, ZR_MIN(n, (uint64_t)threads)), stored);
}

static zarr_status put_group(struct units *u, uint32_t end, uint64_t bytes,
                             const struct zr_parallel_options *opts, zarr_error *err)
{
    const struct zr_work w = {.io = u->io, .rq = u->rq};
    const struct zr_need need = {.host = bytes,
                                 .device = group_on_device(u, end, opts->max_threads)};
    const uint32_t n = end - u->first;
    struct zr_old_values old_values = {0};
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_request_take(u->rq, need, err));
    st = group_old_values(u, end, &old_values, err);
    if (st == ZARR_OK)
        st = zr_workers_run(&w, n, opts, unit_of_group, u, err);
    if (st == ZARR_OK)
        st = zr_later_run(u->io, u->rq, &u->later[u->first], n, &old_values, &u->lists,
                          err);
    zr_old_values_end(u->io, &old_values);
    if (st == ZARR_OK)
        group_done(u, end);
    zr_later_end(u->io, &u->later[u->first], n);
    zr_request_give(u->rq, need);
    if (u->io->progress)
        zr_request_report(u->rq);
out:
    return st;
}

/* Whether units can be put together: they are of one size that metadata bounds. */
static bool can_put_together(const struct zr_io *io)
{
    return !io->sink && !io->layout->variants && !io->layout->level[0].unsized;
}

static zarr_status together_room(struct units *u, zarr_error *err)
{
    const zarr_allocator *alloc = u->io->engine->alloc;

    if (u->later)
        return ZARR_OK;
    u->old_value = zr_calloc(alloc, u->most, sizeof *u->old_value);
    u->old_value_index = zr_calloc(alloc, u->most, sizeof *u->old_value_index);
    if (u->old_value && u->old_value_index)
        u->later = zr_calloc(alloc, u->most, sizeof *u->later);
    return u->later ? ZARR_OK : zr_fail_memory(err, u->most * sizeof *u->later);
}

/* Writes the units in groups: reads the old values of a group in one submit, and stores
 * the new ones in one. */
static zarr_status put_together(struct units *u, const struct zr_parallel_options *opts,
                                zarr_error *err)
{
    zarr_status st = ZARR_OK;
    uint64_t need = 0;
    uint32_t end = 0;

    ZR_TRY(together_room(u, err));
    for (; u->first < u->n; u->first = ZR_MAX(end, u->first + 1)) {
        end = group_end(u, u->first, opts->max_threads, &need);
        if (end > u->first + 1)
            ZR_TRY(put_group(u, end, need, opts, err));
    }
out:
    u->first = 0;
    return st;
}

/* Sets which of two loops is parallel: the one over the units if there are as many as
 * threads, or if they have no chunks inside, else the one over the chunks of each shard.
 */
static void choose_loop(struct units *u, struct zr_parallel_options *opts)
{
    const struct zr_level *lv = &u->io->layout->level[0];
    const uint32_t threads = zr_io_threads(u->io);
    const bool over_units = u->n >= threads || !lv->is_shard;

    u->threads_each = over_units ? 1 : threads;
    *opts = (struct zr_parallel_options){.max_threads = over_units ? threads : 1,
                                         .grain = 1,
                                         .item_ns = 20000 + lv->decoded_bytes};
}

/* Writes the units that are encoded or stored together. If the loop over units is not
 * parallel, their fetches and PUTs still are. */
static zarr_status write_together(struct units *u, const struct zr_parallel_options *opts,
                                  zarr_error *err)
{
    zarr_status st = ZARR_OK;

    memset(u->done, 0, u->most * sizeof *u->done);
    ZR_TRY(zr_write_batch(u->io, u->rq, u->proj, u->n, u->done, err));
    if (u->n > 1 && can_put_together(u->io) &&
        (u->threads_each > 1 || !zr_store_can(u->io->store, ZARR_STORE_CAP_FAST_GET)))
        st = put_together(u, opts, err);
out:
    return st;
}

/* Each thread has a unit, of one batch or of all that are in flight. */
static uint64_t most_units(const struct zr_io *io)
{
    const bool many =
        !zr_io_is_host(io, io->view.base.device_type) ||
        (can_put_together(io) && !zr_store_can(io->store, ZARR_STORE_CAP_FAST_GET));
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
    u->done = zr_calloc(alloc, 2 * n, sizeof *u->done);
    if (!u->proj || !u->done)
        return zr_fail_memory(err, n * sizeof *u->proj);
    u->together = u->done + n;
    return ZARR_OK;
}

static void units_free(struct units *u)
{
    const zarr_allocator *alloc = u->io->engine->alloc;

    zr_free(alloc, u->proj);
    zr_free(alloc, u->done);
    zr_free(alloc, u->old_value);
    zr_free(alloc, u->old_value_index);
    zr_free(alloc, u->later);
    zr_arena_deinit(&u->lists);
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
    struct zr_parallel_options opts;
    zarr_error err = ZARR_ERROR_INIT;
    struct units u;
    uint64_t first = 0;
    zarr_status st = units_room(&u, w->io, w->rq, (size_t)w->most, &err);

    while (st == ZARR_OK && pull_units(w, &u, &first)) {
        const uint64_t begun_ns = zr_request_wave_begin(w->rq);

        if (first > 0) /* the request made a check before the first wave */
            st = zr_request_check(w->rq, &err);
        choose_loop(&u, &opts);
        if (st == ZARR_OK)
            st = write_together(&u, &opts, &err);
        if (st != ZARR_OK)
            break;
        st = zr_workers_run(&work, u.n, &opts, unit_alone, &u, &err);
        zr_request_wave(w->rq, u.n, begun_ns);
    }
    if (st != ZARR_OK && zr_flights_lock(f)) {
        zr_flights_fail(f, st, &err, first);
        zr_mutex_unlock(&f->locked.mutex);
    }
    units_free(&u);
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

    ZR_UNUSED(self);
    ZR_UNUSED(steps);
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
