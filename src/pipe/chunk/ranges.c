/*
 * pipe/chunk/ranges.c - which bytes of a chunk a target needs, as ranges: outer
 * dimensions are walked index by index; inner ones are taken as one range with the bytes
 * between. A store reads these ranges of an uncompressed chunk, and a codec that can
 * decode in part gets them (direct.c). Thread class: plain functions.
 */
#include "pipe/chunk/chunk_int.h"

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

    s->split = 0;
    s->n_reads = s->read_bytes = 0;
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
    s->first = 0;
    s->span = s->read_bytes;
    for (int32_t i = 0; i < s->ndim; i++) {
        s->first += s->lo[i] * s->stride[i];
        if (i < s->split)
            s->span += (s->n[i] - 1) * (uint64_t)s->step[i] * s->stride[i];
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
