/*
 * pipe/chunk/ranges.c - which bytes of a chunk a target needs, as ranges: outer
 * dimensions are walked index by index; inner ones are taken as one range with the bytes
 * between. For uncompressed chunks the store reads these ranges (direct.c). If at most
 * half of a chunk is needed, a codec that can decode in part gets them (blosc: its
 * blocks); this file calls it. Thread class: plain functions; on the worker context.
 */
#include "pipe/chunk/chunk_int.h"

enum {
    DECODE_RANGE_COST = 4 * 1024 /* a range costs a decoder as much as so many bytes */
};

static void range_dims(const struct zr_program *p, const struct zr_target *t,
                       struct zr_ranges *s, uint64_t *extent)
{
    uint64_t stride = p->item_bytes;

    s->ndim = p->ndim;
    for (int32_t i = p->ndim - 1; i >= 0; i--) {
        const struct zr_piece *q = &t->dim[p->order[i]];
        uint64_t last = q->c0 + (uint64_t)((int64_t)(q->n - 1) * q->c_step);

        s->lo[i] = ZR_MIN(q->c0, last);
        s->n[i] = q->n;
        s->step[i] = q->c_step < 0 ? -q->c_step : q->c_step;
        extent[i] = ZR_MAX(q->c0, last) - s->lo[i] + 1;
        s->stride[i] = stride;
        stride *= p->stored_shape[i];
    }
}

uint64_t zr_ranges_choose(const struct zr_program *p, const struct zr_target *t,
                          uint64_t each, uint64_t most, struct zr_ranges *s)
{
    uint64_t extent[ZARR_MAX_RANK + 1], best = UINT64_MAX, reads = 1;

    range_dims(p, t, s, extent);
    for (int32_t k = 0; k <= s->ndim; k++) {
        uint64_t bytes = p->item_bytes, cost = 0, all = 0;

        for (int32_t i = k; i < s->ndim; i++)
            bytes += (extent[i] - 1) * s->stride[i];
        if (!zr_add(bytes, each, &cost) || !zr_mul(cost, reads, &cost) ||
            !zr_mul(bytes, reads, &all))
            break;
        if (cost < best) {
            best = cost;
            s->split = k;
            s->n_reads = reads;
            s->read_bytes = bytes;
        }
        if (k < s->ndim && (!zr_mul(reads, s->n[k], &reads) || reads > most))
            break;
    }
    return best;
}

uint64_t zr_ranges_next(const struct zr_ranges *s, uint64_t *at)
{
    uint64_t offset = 0;
    int32_t k = s->split - 1;

    for (int32_t i = 0; i < s->ndim; i++)
        offset +=
            (s->lo[i] + (i < s->split ? at[i] * (uint64_t)s->step[i] : 0)) * s->stride[i];
    while (k >= 0 && ++at[k] == s->n[k])
        at[k--] = 0;
    return offset;
}

/* ---- decoding in part -------------------------------------------------------------- */

static bool partial_applies(const struct zr_work *w, struct zr_direct *d)
{
    const struct zr_program *p = d->coding->p;
    const struct zr_target *t = &d->item->target;

    return p->decodes_ranges && !w->io->no_direct && !t->many &&
           p->decoded_device == ZARR_DEVICE_CPU && t->kind == ZR_PROJ_DIMS &&
           t->arithmetic && t->n_items * 2 <= p->decoded_bytes / p->item_bytes;
}

/* Decodes only what the item needs, into its places in a scratch block, if that saves
 * half of the bytes. */
static zarr_status partial_read(const struct zr_work *w, struct zr_direct *d, bool *done,
                                zarr_error *err)
{
    const struct zr_program *p = d->coding->p;
    struct zr_ranges s = {0};
    uint64_t at[ZARR_MAX_RANK] = {0}, bytes = 0;
    zarr_codec_job job = {.src = d->coding->cur};
    zarr_codec_range *ranges = NULL;
    zarr_memory block = {0}, list = {0}, scratch = {0};
    zarr_status st = ZARR_OK;

    if (zr_ranges_choose(p, &d->item->target, DECODE_RANGE_COST, UINT64_MAX, &s) >
            p->decoded_bytes / 2 ||
        !zr_mul(s.n_reads, sizeof *ranges, &bytes))
        return ZARR_OK;
    ZR_TRY(zr_worker_scratch(w, ZR_SCRATCH_A, ZARR_DEVICE_CPU, p->decoded_bytes, &block,
                             err));
    ZR_TRY(zr_worker_scratch(w, ZR_SCRATCH_B, ZARR_DEVICE_CPU, bytes, &list, err));
    bytes = zr_stage_scratch(&p->stage[0], 1);
    if (bytes)
        ZR_TRY(zr_worker_scratch(w, ZR_SCRATCH_CODEC, ZARR_DEVICE_CPU, bytes, &scratch,
                                 err));
    ranges = (zarr_codec_range *)((uintptr_t)list.handle + list.offset);
    for (uint64_t r = 0; r < s.n_reads; r++)
        ranges[r] = (zarr_codec_range){zr_ranges_next(&s, at), s.read_bytes};
    ZR_TRY(zr_bring_encoded(w, &p->stage[0], &job.src, err));
    job.dst = block;
    job.dst.bytes = p->decoded_bytes;
    if (!zr_stage_accepts(&p->stage[0], &job))
        goto out;
    st = zr_stage_partial(&p->stage[0], &job, ranges, s.n_reads, &w->worker->states,
                          scratch, err);
    if (zr_stage_declines(&p->stage[0], st))
        st = ZARR_OK;
    else
        *done = st == ZARR_OK;
    if (!*done)
        goto out;
    for (uint64_t r = 0; r < s.n_reads && p->padded; r++) {
        zarr_memory part;

        if (!zr_mem_slice(&job.dst, ranges[r].offset, ranges[r].bytes, &part))
            ZR_TRY(zr_internal(err));
        ZR_TRY(zr_block_unpad(w, p, &part, err));
    }
    w->worker->stats.chunks_partial++;
    w->worker->stats.bytes_decoded += job.dst_used;
    w->worker->stats.chunks_distrusted += p->distrusts;
    block.bytes = p->decoded_bytes;
    d->coding->cur = block;
out:
    return st;
}

const struct zr_direct_route zr_route_partial = {true, partial_applies, partial_read};
