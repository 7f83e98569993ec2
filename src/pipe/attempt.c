/*
 * pipe/attempt.c - which reads the caller of zarr_array_read_submit() may carry out
 * itself (ZARR_IO_AT_ONCE): those that take less time than to wake another thread. What
 * the metadata tell is checked first, then the number of chunks, then the bytes of each
 * wave.
 * Thread class: plain functions.
 */
#include "pipe/pipe_int.h"

enum {
    AT_ONCE_BYTES = 64 << 10,       /* of decoded chunks: some 30 to 80 us */
    AT_ONCE_INDEX_BYTES = 64 << 10, /* of shard indexes */
    AT_ONCE_CHUNKS = 8
};

/* Whether a codec is the library's own: one of an application or a plug-in may wait for
 * anything, even for the thread that submits the read. A codec with chains inside of it
 * may run such a codec, or thousands of inner chunks. */
static bool stage_is_core(const struct zr_stage *s)
{
    return s->kind != ZR_STAGE_CODEC ||
           (zr_streq(s->impl->entry.origin, "core") && s->spec.n_sub == 0 &&
            s->spec.structure.kind != ZR_STRUCTURE_SHARD);
}

static bool attempt_trusts(const struct zr_program *p)
{
    for (uint32_t i = 0; p && i < p->n; i++)
        for (const struct zr_stage *s = &p->stage[i]; s; s = s->fallback)
            if (!stage_is_core(s))
                return false;
    return true;
}

static bool attempt_trusts_all(const struct zr_layout *layout)
{
    for (uint32_t i = 0; i < layout->n_levels; i++)
        if (!attempt_trusts(layout->level[i].decode) ||
            (layout->level[i].index && !attempt_trusts(layout->level[i].index->decode)))
            return false;
    return true;
}

bool zr_attempt_is_worth(const struct zr_io *io)
{
    const struct zr_layout *layout = io->layout;
    const struct zr_level *leaf = NULL;

    if (!io->at_once || io->write || io->parts || io->after || io->progress ||
        layout->variable || !(io->pipeline->vt.flags & ZARR_PIPELINE_AT_ONCE))
        return false;
    leaf = &layout->level[layout->n_levels - 1];
    return leaf->decoded_bytes <= AT_ONCE_BYTES &&
           zr_io_elements(io) <= AT_ONCE_BYTES / layout->item_bytes && !io->groups &&
           zr_io_is_host(io, io->view.base.device_type) &&
           zr_store_can(io->store, ZARR_STORE_CAP_FAST_GET) &&
           !zr_wants_batches(io, leaf->decode) && !zr_io_holds(io) &&
           attempt_trusts_all(layout);
}

/* To plan more than a wave of a few chunks may take milliseconds. */
zarr_status zr_count_chunks(struct zarr_request *rq, const struct zr_plan *plan,
                            zarr_error *err)
{
    const uint64_t n = zr_plan_count(plan);

    zr_request_total(rq, n);
    return zr_attempt_runs() && n > AT_ONCE_CHUNKS ? zr_attempt_fail(err) : ZARR_OK;
}

zarr_status zr_attempt_check(const struct zr_wave *w, zarr_error *err)
{
    uint64_t index_bytes = 0;

    for (uint32_t i = 0; i < w->n_opens && index_bytes <= AT_ONCE_INDEX_BYTES; i++)
        index_bytes +=
            ZR_MIN(w->open[i].lv->index_bytes, (uint64_t)AT_ONCE_INDEX_BYTES + 1);
    return index_bytes <= AT_ONCE_INDEX_BYTES && w->decoded_bytes <= AT_ONCE_BYTES
               ? ZARR_OK
               : zr_attempt_fail(err);
}
