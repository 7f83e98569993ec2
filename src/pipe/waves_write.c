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
    UNITS = 64
};

struct units {
    const struct zr_io *io;
    struct zarr_request *rq;
    struct zr_projection *proj;
    struct zr_arena lists;
    bool done[UNITS];
    uint32_t n, threads_each;
};

static zarr_status unit_one(void *arg, uint64_t i, const struct zr_work *w,
                            zarr_error *err)
{
    struct units *u = arg;
    zarr_status st = ZARR_OK;

    if (u->done[i])
        return ZARR_OK;
    ZR_TRY(zr_unit_write(w, &u->proj[i], u->threads_each, err));
    if (u->io->progress) {
        zr_request_merge(u->rq, w->worker);
        zr_request_report(u->rq);
    }
out:
    return st;
}

static zarr_status do_units(struct units *u, zarr_error *err)
{
    const struct zr_work w = {.io = u->io, .rq = u->rq};
    const uint32_t threads = zr_io_threads(u->io);
    const struct zr_parallel_options opts = {
        .max_threads = threads,
        .grain = 1,
        .item_ns = 20000 + u->io->layout->level[0].decoded_bytes};
    zarr_status st = ZARR_OK;

    memset(u->done, 0, sizeof u->done);
    ZR_TRY(zr_units_lockstep(u->io, u->rq, u->proj, u->n, u->done, err));
    u->threads_each = u->n >= threads ? 1 : threads;
    st = zr_workers_run(&w, u->n, &opts, unit_one, u, err);
    zr_request_wave(u->rq);
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

uint64_t zr_units_most(const struct zr_io *io)
{
    const uint64_t n =
        zr_io_wave_bytes(io) / ZR_MAX(io->layout->level[0].decoded_bytes, UINT64_C(1));

    return ZR_MIN(ZR_MAX(n, (uint64_t)zr_io_threads(io)), (uint64_t)UNITS);
}

/* Sets chunks_total, which counts leaf chunks for writes, too. */
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

zarr_status zr_waves_write(void *self, zarr_request *rq, const zarr_pipeline_steps *steps,
                           zarr_error *err)
{
    const struct zr_io *io = &rq->io;
    const struct zr_grid *grid = io->layout->grid;
    struct units u = {.io = io, .rq = rq};
    struct zr_projector *p = NULL;
    struct zr_projection proj;
    zarr_selection *all = NULL;
    const zarr_selection *sel = io->selection;
    const uint64_t most = zr_units_most(io);
    zarr_status st = ZARR_OK;
    bool more = true;

    ZR_UNUSED(self);
    ZR_UNUSED(steps);
    zr_arena_init(&u.lists, io->engine->alloc);
    u.proj = zr_malloc(io->engine->alloc, most * sizeof *u.proj);
    if (!u.proj)
        ZR_TRY(zr_fail_memory(err, most * sizeof *u.proj));
    if (!sel) {
        ZR_TRY(zarr_selection_all(&all, grid->ndim, grid->shape, err));
        sel = all;
    }
    ZR_TRY(zr_project_open(&p, io->engine->alloc, grid, sel, err));
    if (rq->submitted || io->progress)
        ZR_TRY(count_written(io, rq, sel, err));
    while (more && !zr_is_cancelled(&rq->cancel)) {
        u.n = 0;
        zr_arena_reset(&u.lists);
        while (u.n < most && (more = zr_next_unit(io, p, &proj))) {
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
    zr_arena_deinit(&u.lists);
    return st;
}
