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
    bool full = false;
    zarr_status st = ZARR_OK;

    if (io->session) /* it has its own check */
        return ZARR_OK;
    if (!io->write || write_least(io, false) <= io->memory_bytes)
        return zr_memory_check(io, NULL, err);
    ZR_TRY(covers_units(io, &full, err));
    st = check_least(io, write_least(io, full), err);
out:
    return st;
}
