/*
 * pipe/memory_limit.c - refuses a call whose own limit of memory (zr_io.memory_bytes) has
 * no room for one chunk, or for one shard that is not streamed. The metadata tells what
 * they need, so the refusal comes before any I/O.
 * Thread class: plain functions.
 */
#include "pipe/pipe_int.h"

/* A read of one chunk, and the values of the shards around it. Shards that are held have
 * half of the limit (zr_held_most()). */
static uint64_t read_least(const struct zr_io *io)
{
    const struct zr_layout *l = io->layout;
    const struct zr_level *leaf = &l->level[l->n_levels - 1];
    uint64_t held = 0, need = 0;

    for (uint32_t i = 0; i < l->n_levels; i++)
        if (l->level[i].bytes_decode)
            held = zr_add_cap(held, zr_add_cap(zr_mul_cap(zr_body_bytes(&l->level[i]), 2),
                                               l->level[i].encoded_bound));
    need = zr_add_cap(zr_chunk_on_host(io, leaf), held);
    return held > 0 ? zr_mul_cap(need, 2) : need;
}

/* A write of one block. full: no old value is needed. */
static uint64_t write_least(const struct zr_io *io, bool full)
{
    const struct zr_work w = {.io = io};
    const struct zr_level *lv = &io->layout->level[0];
    /* another order of inner chunks needs room for them once more */
    uint64_t need = zr_unit_budget(lv, full && io->inner_order == 0);

    if (zr_shard_can_stream(&w, lv))
        return ZR_MIN(need, zr_shard_stream_least(io, lv, full));
    if (!lv->is_shard && zr_is_batched(io, lv->encode)) /* between two stages */
        need = zr_add_cap(need, zr_add_cap(lv->decoded_bytes, lv->encoded_bound));
    return need;
}

/* What a read takes whose chunks are read in part, in slabs, or straight into the tensor
 * (chunk/direct.c), if that is less than *least. Each is an object of a store of our own,
 * of which no more is fetched at once. */
static zarr_status direct_least(const struct zr_io *io, uint64_t *least, zarr_error *err)
{
    const struct zr_layout *l = io->layout;
    uint64_t need = 0;
    struct zr_plan_args args;
    struct zr_plan *plan = NULL;
    struct zr_wave wave;
    zarr_status st = ZARR_OK;

    if (l->n_levels > 1 || !l->level[0].decode->raw || !zr_store_is_own(io->store) ||
        !zr_io_is_host(io, io->view.base.device_type) ||
        (io->pipeline->vt.flags & ZARR_PIPELINE_PLAIN))
        return ZARR_OK;
    zr_wave_init(&wave, io->engine->alloc);
    zr_waves_cut(io, &args);
    ZR_TRY(zr_plan_open(&plan, &args, io->engine->alloc, err));
    do {
        ZR_TRY(zr_plan_next(plan, &wave, err));
        for (uint32_t i = 0; i < wave.n_segments; i++)
            need = ZR_MAX(need, zr_segment_need(io, &wave.segment[i]).host);
    } while (wave.kind != ZR_WAVE_END && need < *least);
    *least = ZR_MIN(*least, need);
out:
    zr_wave_deinit(&wave);
    zr_plan_free(plan);
    return st;
}

static zarr_status check_least(const struct zr_io *io, uint64_t least, zarr_error *err)
{
    const bool is_shard = io->write && io->layout->level[0].is_shard;

    return zr_memory_fits(io, least, is_shard ? "shard" : "chunk", err);
}

zarr_status zr_memory_check(const struct zr_io *io, uint64_t *need, zarr_error *err)
{
    uint64_t least = 0;

    if (io->memory_bytes == 0)
        return ZARR_OK;
    least = io->write ? write_least(io, false) : read_least(io);
    if (need)
        least = *need = ZR_MAX(least, *need);
    return check_least(io, least, err);
}

/* Whether a write covers all of its units, so that it needs no old value. */
static zarr_status covers_units(const struct zr_io *io, bool *out, zarr_error *err)
{
    struct zr_projector *p = NULL;
    struct zr_projection proj;
    zarr_selection *all = NULL;
    zarr_status st = ZARR_OK;

    *out = true;
    ZR_TRY(zr_io_project(&p, io, &all, err));
    while (*out && zr_next_unit(io, p, &proj))
        *out = proj.full;
out:
    zr_project_free(p);
    zarr_selection_free(all);
    return st;
}

zarr_status zr_request_memory_check(const struct zr_io *io, zarr_error *err)
{
    uint64_t least = io->write ? write_least(io, false) : read_least(io);
    bool full = false;

    if (io->session || least <= io->memory_bytes) /* a session has its own check */
        return ZARR_OK;
    if (io->write) {
        ZR_CHECK(covers_units(io, &full, err));
        least = write_least(io, full);
    } else {
        ZR_CHECK(direct_least(io, &least, err));
    }
    return check_least(io, least, err);
}
