/*
 * pipe/chunk/direct.c - the table of direct routes, which read a chunk without a fetch of
 * all its bytes, without a block or without a copy. The first route that applies reads
 * the chunk. No route knows another. A chunk for which none applies takes the general way
 * (segment.c). Also all routes except that of large uncompressed chunks (slabs.c). Thread
 * class: on the worker context.
 */
#include "pipe/chunk/chunk_int.h"

#include <string.h>

enum {
    RANGE_COST = 32 * 1024,      /* a request costs as much as reading so many bytes */
    DECODE_RANGE_COST = 4 * 1024 /* and a range costs a decoder as much as so many */
};

/* ---- uncompressed chunks ----------------------------------------------------------- */

/* A chunk whose length contradicts the metadata takes the general way, which reports the
 * error. */
static bool is_raw(const struct zr_segment *segment)
{
    const struct zr_program *p = segment->level->decode;
    const uint64_t bytes = segment->item[0]->bytes;

    return p->raw && segment->n_items == 1 && !segment->item[0]->target.many &&
           segment->key && (bytes == UINT64_MAX || bytes == p->decoded_bytes);
}

/* A GET of the segment's only chunk; its destination is not set yet. */
static struct zr_get raw_get(const struct zr_segment *segment)
{
    const struct zr_program *p = segment->level->decode;

    if (segment->shard)
        return (struct zr_get){.key = segment->key,
                               .pin = zr_shard_pin(segment->shard),
                               .offset = segment->item[0]->offset,
                               .known = "shard"};
    return (struct zr_get){.key = segment->key, .object_bytes = p->decoded_bytes};
}

bool zr_raw_is_direct(const struct zr_io *io, const struct zr_segment *segment,
                      zarr_memory *at)
{
    const struct zr_program *p = segment->level->decode;
    const struct zr_target *t = &segment->item[0]->target;

    return is_raw(segment) &&
           p->fetch_device == zr_target_view(io, t)->base.device_type &&
           zr_target_is_direct(io, p, t, at);
}

static bool whole_applies(const struct zr_work *w, struct zr_direct *d)
{
    return !d->fetched && zr_raw_is_direct(w->io, d->segment, &d->at);
}

/* Reads stored elements that need no change into the view. */
static zarr_status whole_read(const struct zr_work *w, struct zr_direct *d, bool *done,
                              zarr_error *err)
{
    const struct zr_program *p = d->segment->level->decode;
    struct zr_get g = raw_get(d->segment);

    g.dst = d->at;
    ZR_CHECK(zr_get(w, &g, err));
    ZR_CHECK(zr_block_unpad(w, p, &g.dst, err));
    w->worker->stats.bytes_decoded += p->decoded_bytes;
    zr_item_count(w, d->item, true);
    *done = true;
    return ZARR_OK;
}

/* All ranges of a chunk are read from one version: through the shard's pin or a pin of
 * the chunk. A store that cannot tell versions apart gets one range. block: room for
 * s->span. */
static zarr_status read_ranges(const struct zr_work *w, const struct zr_segment *segment,
                               struct zr_store_pin *pin, const struct zr_ranges *s,
                               const zarr_memory *block, zarr_error *err)
{
    struct zr_get g = raw_get(segment);
    const uint64_t base = g.offset;
    uint64_t at[ZARR_MAX_RANK] = {0};

    if (pin)
        g.pin = pin;
    for (uint64_t r = 0; r < s->n_reads; r++) {
        const uint64_t offset = zr_ranges_next(s, at);

        g.offset = base + offset;
        if (!zr_mem_slice(block, offset - s->first, s->read_bytes, &g.dst))
            return zr_internal(err);
        ZR_CHECK(zr_get(w, &g, err));
        ZR_CHECK(zr_block_unpad(w, segment->level->decode, &g.dst, err));
        if (!g.known)
            g.known = "chunk"; /* the object was there when it was pinned */
    }
    return ZARR_OK;
}

bool zr_raw_in_ranges(const struct zr_io *io, const struct zr_segment *segment,
                      struct zr_ranges *out)
{
    const struct zr_program *p = segment->level->decode;
    const struct zr_target *t = &segment->item[0]->target;
    uint64_t most = UINT64_MAX;

    if (p->decoded_bytes <= RANGE_COST || !is_raw(segment) || io->no_direct ||
        t->kind != ZR_PROJ_DIMS || !t->arithmetic ||
        !zr_store_can(io->store, ZARR_STORE_CAP_RANGES) ||
        t->n_items * 2 > p->decoded_bytes / p->item_bytes)
        return false;
    if (!zr_store_pins(io->store, segment->key))
        most = 1; /* several could be of several values */
    return zr_ranges_choose(p, t, RANGE_COST, most, out) < p->decoded_bytes;
}

static bool ranges_apply(const struct zr_work *w, struct zr_direct *d)
{
    struct zr_ranges ranges;

    if (!zr_raw_in_ranges(w->io, d->segment, &ranges))
        return false;
    d->bytes = ranges.span;
    return !d->fetched || d->fetched->bytes == ranges.span;
}

/* Sets *block to scratch memory that has the ranges of a chunk in their places. */
static zarr_status fetch_ranges(const struct zr_work *w, const struct zr_segment *segment,
                                const struct zr_ranges *s, zarr_memory *block,
                                zarr_error *err)
{
    const int32_t device = segment->level->decode->fetch_device;
    struct zr_store_pin pin = {0};
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_worker_scratch(w, ZR_SCRATCH_A, device, s->span, block, err));
    if (!segment->shard && s->n_reads > 1)
        ZR_TRY(zr_store_pin_init(&pin, w->io->store, segment->key, err));
    ZR_TRY(read_ranges(w, segment, pin.key ? &pin : NULL, s, block, err));
out:
    zr_store_pin_deinit(&pin);
    return st;
}

/* Reads the cheapest set of ranges (ranges.c) of a chunk, unless they were fetched with
 * those of others. A length that contradicts the metadata fails the first of them. */
static zarr_status ranges_read(const struct zr_work *w, struct zr_direct *d, bool *done,
                               zarr_error *err)
{
    const struct zr_program *p = d->segment->level->decode;
    struct zr_target t = d->item->target;
    struct zr_piece piece[ZARR_MAX_RANK];
    struct zr_ranges s;
    zarr_memory block = {0};

    if (!zr_raw_in_ranges(w->io, d->segment, &s))
        ZR_CHECK(zr_internal(err));
    if (d->fetched)
        block = *d->fetched;
    else
        ZR_CHECK(fetch_ranges(w, d->segment, &s, &block, err));
    w->worker->stats.chunks_partial++;
    w->worker->stats.bytes_decoded += s.n_reads * s.read_bytes;
    zr_item_count(w, d->item, false);
    *done = true;
    memcpy(piece, t.dim, (size_t)t.ndim * sizeof *piece);
    for (int32_t i = 0; i < s.ndim; i++)
        piece[p->order[i]].c0 -= s.lo[i];
    t.dim = piece;
    return zr_scatter_target(w, p, &t, &block, err);
}

/* ---- decoding in part -------------------------------------------------------------- */

/* If at most half of a chunk is needed: by a codec that decodes ranges (blosc: its
 * blocks). */
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
    struct zr_ranges s;
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
    ZR_TRY(zr_take_stage_scratch(w, &p->stage[0], ZARR_DEVICE_CPU, &scratch, err));
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

/* ---- decoding to strides ----------------------------------------------------------- */

/* Finds the place and the strides of a whole chunk in the view. stride has ZARR_MAX_RANK
 * entries. */
static bool places(const struct zr_io *io, const struct zr_program *p,
                   const struct zr_target *t, zarr_codec_strided *to, int64_t *stride)
{
    const struct zr_view *v = zr_target_view(io, t);
    int64_t offset = 0;

    if (io->no_direct || t->many || io->field.on || io->layout->variable ||
        t->kind != ZR_PROJ_DIMS || !t->arithmetic ||
        v->base.device_type != p->decoded_device ||
        (p->swap_bytes > 1) != (v->swap_bytes > 1))
        return false;
    for (int32_t s = 0; s < p->ndim; s++) {
        const struct zr_piece *piece = &t->dim[p->order[s]];
        const int64_t vs = piece->result_dim < 0 ? 0 : v->stride[piece->result_dim];

        if (piece->n != p->stored_shape[s] || piece->c0 != 0 ||
            (piece->n > 1 && (piece->c_step != 1 || vs == 0)))
            return false;
        stride[s] = piece->n > 1 ? piece->r_step * vs : (int64_t)io->layout->item_bytes;
        offset += (int64_t)piece->r0 * vs;
    }
    *to = (zarr_codec_strided){.struct_size = sizeof *to,
                               .ndim = p->ndim,
                               .item_bytes = io->layout->item_bytes,
                               .first = v->base,
                               .shape = p->stored_shape,
                               .stride = stride};
    to->first.offset += (uint64_t)offset;
    to->first.bytes = to->item_bytes;
    return true;
}

/* Runs the last stage from c->cur with strides. */
static zarr_status last_stage(const struct zr_work *w, const struct zr_coding *c,
                              const zarr_codec_strided *to, bool *done, zarr_error *err)
{
    const struct zr_stage *s = &c->p->stage[c->p->n - 1];
    zarr_codec_job job = {.src = c->cur};
    zarr_memory scratch = {0};
    zarr_status st = ZARR_OK;

    if (!zr_stage_accepts(s, &job))
        return ZARR_OK;
    ZR_TRY(zr_take_stage_scratch(w, s, s->out_device, &scratch, err));
    st = zr_stage_decode_strided(s, &job, to, &w->worker->states, scratch, err);
    *done = st == ZARR_OK;
    if (*done) {
        w->worker->stats.bytes_decoded += job.dst_used;
        w->worker->stats.chunks_distrusted += c->p->distrusts;
    }
    if (st == ZARR_ERR_UNSUPPORTED || zr_stage_declines(s, st))
        st = ZARR_OK;
out:
    return st;
}

static bool strided_applies(const struct zr_work *w, struct zr_direct *d)
{
    ZR_UNUSED(w);
    return d->coding->p->decodes_strided;
}

static zarr_status strided_read(const struct zr_work *w, struct zr_direct *d, bool *done,
                                zarr_error *err)
{
    struct zr_coding *c = d->coding;
    const struct zr_program *p = c->p;
    int64_t stride[ZARR_MAX_RANK];
    zarr_codec_strided to;

    if (!places(w->io, p, &d->item->target, &to, stride))
        return ZARR_OK;
    ZR_CHECK(zr_stages_run(w, c, p->n - 1, NULL, err));
    if (c->done == 0)
        ZR_CHECK(zr_bring_encoded(w, &p->stage[0], &c->cur, err));
    ZR_CHECK(last_stage(w, c, &to, done, err));
    d->placed = *done;
    return ZARR_OK;
}

/* ---- the table -------------------------------------------------------------------- */

static const struct zr_direct_route raw_whole = {false, whole_applies, whole_read};
static const struct zr_direct_route raw_ranges = {false, ranges_apply, ranges_read};
static const struct zr_direct_route by_parts = {true, partial_applies, partial_read};
static const struct zr_direct_route by_strides = {true, strided_applies, strided_read};

static const struct zr_direct_route *const routes[] = {
    &zr_route_slabs, &raw_whole, &raw_ranges, &by_parts, &by_strides,
};

const struct zr_direct_route *zr_find_route(const struct zr_work *w, struct zr_direct *d)
{
    for (size_t k = 0; k < ZR_COUNT(routes); k++)
        if (routes[k]->encoded == (d->coding != NULL) && routes[k]->applies(w, d))
            return routes[k];
    return NULL;
}
