/*
 * pipe/waves_write.c - the writes of the pipeline `waves`. Outer chunks (units) come from
 * the projector. A batch of them is written by as many threads as there are units; in a
 * small batch each unit gets several threads instead. Codecs that take whole batches get
 * them first (lockstep_units.c).
 * Thread class: one thread per request.
 */
#include "pipe/pipe_int.h"

#include <string.h>

enum {
    UNITS = 64,
    UNITS_TOGETHER = 1024 /* if their PUTs are sent together */
};

struct units {
    const struct zr_io *io;
    struct zarr_request *rq;
    struct zr_projection *proj;
    struct zr_arena lists;
    bool *done, *full, *wait, *sent; /* by unit */
    uint32_t n, most, threads_each;
    struct zr_later *later; /* by unit; NULL: units are put one by one */
    bool granted;           /* the full units are being encoded, to be put together */
};

static zarr_status unit_one(void *arg, uint64_t i, const struct zr_work *w,
                            zarr_error *err)
{
    struct units *u = arg;
    struct zr_work own = *w;
    zarr_status st = ZARR_OK;

    if (u->done[i])
        return ZARR_OK;
    if (u->granted) {
        own.granted = true;
        own.later = &u->later[i];
    }
    ZR_TRY(zr_parts_write(&own, &u->proj[i], u->threads_each, err));
    u->done[i] = true;
    if (u->io->progress) {
        zr_request_merge(u->rq, w->worker);
        zr_request_report(u->rq);
    }
out:
    return st;
}

/* The bytes for all full units of the batch: what each thread needs for the unit that it
 * encodes, and the encoded bytes of all. UINT64_MAX: too many, or no two full units. */
static uint64_t together_budget(const struct units *u, uint32_t threads)
{
    const struct zr_level *lv = &u->io->layout->level[0];
    uint64_t bytes = 0, work = 0, n = 0;

    for (uint32_t i = 0; i < u->n; i++)
        n += u->full[i];
    if (n < 2 || !zr_mul_u64(n, lv->encoded_bound, &bytes) ||
        !zr_mul_u64(ZR_MIN((uint64_t)threads, n), zr_unit_budget(lv, true), &work) ||
        !zr_add_u64(bytes, work, &bytes) || bytes > zr_io_budget(u->io) / 2)
        return UINT64_MAX;
    return bytes;
}

/* Writes the full units, and sends their PUTs together. */
static zarr_status put_together(struct units *u, const struct zr_parallel_options *opts,
                                zarr_error *err)
{
    const struct zr_work w = {.io = u->io, .rq = u->rq};
    uint64_t need = 0;
    zarr_status st = ZARR_OK;

    for (uint32_t i = 0; i < u->n; i++) {
        u->full[i] = !u->done[i] && u->proj[i].full;
        u->wait[i] = !u->done[i] && !u->full[i];
        u->done[i] = !u->full[i];
    }
    need = together_budget(u, opts->max_threads);
    memset(u->sent, 0, u->n * sizeof *u->sent);
    if (need != UINT64_MAX) {
        ZR_TRY(zr_request_take(u->rq, need, err));
        u->granted = true;
        st = zr_workers_run(&w, u->n, opts, unit_one, u, err);
        u->granted = false;
        if (st == ZARR_OK)
            st = zr_later_run(u->io, u->rq, u->later, u->n, &u->lists, err);
        for (uint32_t i = 0; i < u->n; i++)
            u->sent[i] = zr_later_done(&u->later[i]);
        zr_later_end(u->io, u->later, u->n);
        zr_request_give(u->rq, need);
    }
    for (uint32_t i = 0; i < u->n; i++)
        u->done[i] = !u->wait[i] && (!u->full[i] || u->sent[i]);
out:
    return st;
}

static zarr_status do_units(struct units *u, zarr_error *err)
{
    const struct zr_work w = {.io = u->io, .rq = u->rq};
    const uint32_t threads = zr_io_threads(u->io);
    const uint64_t begun_ns = zr_request_wave_begin(u->rq);
    const struct zr_parallel_options opts = {
        .max_threads = threads,
        .grain = 1,
        .item_ns = 20000 + u->io->layout->level[0].decoded_bytes};
    zarr_status st = ZARR_OK;

    memset(u->done, 0, u->most * sizeof *u->done);
    if (!u->io->parts)
        ZR_TRY(zr_units_lockstep(u->io, u->rq, u->proj, u->n, u->done, err));
    u->threads_each = u->n >= threads ? 1 : threads;
    if (u->later)
        ZR_TRY(put_together(u, &opts, err));
    st = zr_workers_run(&w, u->n, &opts, unit_one, u, err);
    zr_request_wave(u->rq, u->n, begun_ns);
out:
    return st;
}

/* Copies a projection so that it outlives the projector's next step. */
static bool keep_unit(struct units *u, const struct zr_projection *from)
{
    struct zr_projection *to = &u->proj[u->n];

    *to = *from;
    return zr_projection_keep(to, from, &u->lists);
}

/* Whether full units are put together: the store is not written on the encoding thread,
 * and units are of one size that metadata bounds. */
static bool puts_together(const struct zr_io *io)
{
    return !io->sink && !io->layout->variants && !io->layout->level[0].unsized &&
           !zr_store_can(io->store, ZARR_STORE_CAP_FAST_GET);
}

uint64_t zr_units_most(const struct zr_io *io)
{
    const uint64_t n =
        zr_io_wave_bytes(io) / ZR_MAX(io->layout->level[0].decoded_bytes, UINT64_C(1));

    return ZR_MIN(ZR_MAX(n, (uint64_t)zr_io_threads(io)),
                  (uint64_t)(puts_together(io) ? UNITS_TOGETHER : UNITS));
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

static zarr_status units_room(struct units *u, zarr_error *err)
{
    const zarr_allocator *alloc = u->io->engine->alloc;
    const size_t n = u->most;

    u->proj = zr_malloc(alloc, n * sizeof *u->proj);
    u->done = zr_calloc(alloc, 4 * n, sizeof *u->done);
    if (!u->proj || !u->done)
        return zr_fail_memory(err, n * sizeof *u->proj);
    u->full = u->done + n;
    u->wait = u->full + n;
    u->sent = u->wait + n;
    if (!puts_together(u->io) || n < 2)
        return ZARR_OK;
    u->later = zr_calloc(alloc, n, sizeof *u->later);
    return u->later ? ZARR_OK : zr_fail_memory(err, n * sizeof *u->later);
}

zarr_status zr_waves_write(void *self, zarr_request *rq, const zarr_pipeline_steps *steps,
                           zarr_error *err)
{
    const struct zr_io *io = &rq->io;
    struct units u = {.io = io, .rq = rq, .most = (uint32_t)zr_units_most(io)};
    struct zr_projector *p = NULL;
    struct zr_projection proj;
    zarr_selection *all = NULL;
    zarr_status st = ZARR_OK;
    bool more = true;

    ZR_UNUSED(self);
    ZR_UNUSED(steps);
    zr_arena_init(&u.lists, io->engine->alloc);
    ZR_TRY(units_room(&u, err));
    ZR_TRY(zr_io_project(&p, io, &all, err));
    if (rq->submitted || io->progress)
        ZR_TRY(count_written(io, rq, err));
    while (more && !zr_is_cancelled(&rq->cancel)) {
        u.n = 0;
        zr_arena_reset(&u.lists);
        while (u.n < u.most && (more = zr_next_unit(io, p, &proj))) {
            if (!keep_unit(&u, &proj))
                ZR_TRY(zr_fail_memory(err, sizeof proj));
            u.n++;
        }
        if (u.n > 0)
            ZR_TRY(do_units(&u, err));
    }
out:
    zr_project_free(p);
    zarr_selection_free(all);
    zr_free(io->engine->alloc, u.proj);
    zr_free(io->engine->alloc, u.done);
    zr_free(io->engine->alloc, u.later);
    zr_arena_deinit(&u.lists);
    return st;
}
