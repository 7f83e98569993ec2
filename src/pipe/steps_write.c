/*
 * pipe/steps_write.c - the steps of a write for plug-ins' pipelines: units, one outer
 * chunk each, collected in batches so that several threads can work on them. The table is
 * in steps.c.
 * Thread class: units are solo while they are collected, then frozen.
 */
#include "pipe/pipe_int.h"

enum {
    STEP_UNITS_MAX = 1024
};

struct zarr_pipeline_blocks {
    struct zarr_request *rq;
    struct zr_projector *projector;
    zarr_selection *all; /* used if the request has no selection */
    struct zr_projection *unit;
    size_t cap;
    uint32_t n;
    bool is_begun; /* a batch was taken */
    struct zr_arena lists;
};

void zr_step_blocks_close(zarr_pipeline_blocks *u)
{
    if (!u)
        return;
    zr_project_free(u->projector);
    zarr_selection_free(u->all);
    zr_free(u->rq->io.engine->alloc, u->unit);
    zr_arena_deinit(&u->lists);
    zr_free(u->rq->io.engine->alloc, u);
}

zarr_status zr_step_blocks_open(zarr_pipeline_blocks **out, zarr_request *rq,
                                zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct zarr_pipeline_blocks *u = zr_calloc(rq->io.engine->alloc, 1, sizeof *u);

    *out = NULL;
    if (!u)
        return zr_fail_memory(err, sizeof *u);
    u->rq = rq;
    zr_arena_init(&u->lists, rq->io.engine->alloc);
    ZR_TRY(zr_io_project(&u->projector, &rq->io, &u->all, err));
    *out = u;
    u = NULL; /* moved */
out:
    zr_step_blocks_close(u);
    return st;
}

zarr_status zr_step_blocks_next(zarr_pipeline_blocks *u, uint32_t most, uint32_t *n,
                                zarr_error *err)
{
    struct zr_projection proj;

    *n = u->n = 0;
    zr_arena_reset(&u->lists);
    most = ZR_MIN(most, (uint32_t)STEP_UNITS_MAX);
    while (u->n < most && zr_next_unit(&u->rq->io, u->projector, &proj)) {
        ZR_CHECK(zr_grow(u->rq->io.engine->alloc, &u->unit, &u->cap, u->n + (size_t)1,
                         sizeof *u->unit, err));
        if (!zr_projection_keep(&u->unit[u->n], &proj, &u->lists))
            return zr_fail_memory(err, sizeof proj);
        u->n++;
    }
    if (u->n > 0) {
        if (u->is_begun) /* the request made a check before the first batch */
            ZR_CHECK(zr_request_check(u->rq, err));
        u->is_begun = true;
        zr_request_wave(u->rq, 0, 0);
    }
    *n = u->n;
    return ZARR_OK;
}

static uint64_t unit_items(const struct zr_projection *unit)
{
    uint64_t n = 0;

    for (; unit; unit = unit->next)
        n += unit->n_items;
    return n;
}

static bool unit_is_simple(const zarr_pipeline_blocks *u, uint32_t i)
{
    return u->unit[i].full && !u->rq->io.layout->level[0].is_shard;
}

void zr_step_block_get(const zarr_pipeline_blocks *u, uint32_t i,
                       zarr_pipeline_block *out)
{
    *out = (zarr_pipeline_block){
        .struct_size = sizeof *out,
        .ndim = u->unit[i].ndim,
        .block = u->unit[i].chunk,
        .n_elements = unit_items(&u->unit[i]),
        .simple = unit_is_simple(u, i),
    };
}

static zarr_status unit_check(const zarr_pipeline_blocks *u, uint32_t i, bool simple,
                              zarr_error *err)
{
    if (i >= u->n)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "pipeline: there is no block %" PRIu32 " among %" PRIu32, i, u->n);
    if (simple && !unit_is_simple(u, i))
        return zr_fail(err, ZARR_ERR_INVALID,
                       "pipeline: block %" PRIu32 " is not simple: use write()", i);
    return ZARR_OK;
}

zarr_status zr_step_write(zarr_pipeline_worker *worker, const zarr_pipeline_blocks *u,
                          uint32_t i, uint32_t threads, zarr_error *err)
{
    zarr_error e = ZARR_ERROR_INIT;
    zarr_status st = unit_check(u, i, false, &e);

    if (st == ZARR_OK)
        st = zr_unit_write(&worker->w, &u->unit[i], ZR_MAX(threads, 1u), &e);
    if (st == ZARR_OK)
        atomic_fetch_add(&u->rq->delivered, unit_items(&u->unit[i]));
    return zr_pass(err, st, &e);
}

zarr_status zr_step_encode(zarr_pipeline_worker *worker, const zarr_pipeline_blocks *u,
                           uint32_t i, zarr_memory *out, int *empty, zarr_error *err)
{
    struct zr_leaf_write lw = {0};
    zarr_status st = ZARR_OK;

    *out = (zarr_memory){0};
    *empty = 0;
    ZR_TRY(unit_check(u, i, true, err));
    lw.proj = &u->unit[i];
    ZR_TRY(zr_layout_outer(u->rq->io.layout, lw.proj->shape, &lw.level, err));
    ZR_TRY(zr_leaf_room(&worker->w, lw.level, &lw.room, err));
    ZR_TRY(zr_leaf_encode(&worker->w, &lw, err));
    *empty = lw.empty;
    if (!lw.empty)
        *out = lw.out;
out:
    zr_level_give(lw.level);
    return st;
}

zarr_status zr_step_put(zarr_pipeline_worker *worker, const zarr_pipeline_blocks *u,
                        uint32_t i, const zarr_memory *bytes, zarr_error *err)
{
    ZR_CHECK(unit_check(u, i, true, err));
    ZR_CHECK(zr_unit_put(&worker->w, &u->unit[i], bytes, err));
    atomic_fetch_add(&u->rq->delivered, unit_items(&u->unit[i]));
    return ZARR_OK;
}
