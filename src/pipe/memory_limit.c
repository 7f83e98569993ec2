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

/* A write of one chunk or shard whose old value is needed. */
static uint64_t write_least(const struct zr_io *io)
{
    const struct zr_work w = {.io = io};
    const struct zr_level *lv = &io->layout->level[0];
    uint64_t need = zr_unit_budget(lv, false);

    if (zr_shard_can_stream(&w, lv))
        return ZR_MIN(need, zr_shard_stream_least(io, lv));
    if (!lv->is_shard && zr_goes_lockstep(io, lv->encode)) /* between two stages */
        need = zr_add_cap(need, zr_add_cap(lv->decoded_bytes, lv->encoded_bound));
    return need;
}

zarr_status zr_memory_fits(const struct zr_io *io, uint64_t need, const char *what,
                           zarr_error *err)
{
    if (io->memory_bytes == 0 || need <= io->memory_bytes)
        return ZARR_OK;
    return zr_fail_limit(err, "memory_bytes", io->memory_bytes,
                         "one %s needs %" PRIu64 " bytes of memory", what, need);
}

zarr_status zr_memory_check(const struct zr_io *io, uint64_t *need, zarr_error *err)
{
    const bool is_shard = io->write && io->layout->level[0].is_shard;
    uint64_t least = 0;

    if (io->memory_bytes == 0 || io->session) /* it has its own check */
        return ZARR_OK;
    least = io->write ? write_least(io) : read_least(io);
    if (need)
        least = *need = ZR_MAX(least, *need);
    return zr_memory_fits(io, least, is_shard ? "shard" : "chunk", err);
}
