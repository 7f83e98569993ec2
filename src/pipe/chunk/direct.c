/*
 * pipe/chunk/direct.c - the table of direct routes, which read a chunk without a fetch of
 * all its bytes, without a block or without a copy. The first route that applies reads
 * the chunk. No route knows another. A chunk for which none applies takes the general way
 * (segment.c). Also the routes for uncompressed chunks that fit into one block. Thread
 * class: on the worker context.
 */
#include "pipe/chunk/chunk_int.h"

enum {
    RANGE_COST = 32 * 1024
}; /* a request costs as much as reading so many bytes */

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

static bool whole_applies(const struct zr_work *w, struct zr_direct *d)
{
    const struct zr_program *p = d->segment->level->decode;
    const struct zr_target *t = &d->item->target;

    return is_raw(d->segment) &&
           p->fetch_device == zr_target_view(w->io, t)->base.device_type &&
           zr_target_is_direct(w->io, p, t, &d->at);
}

/* Reads stored elements that need no change into the view. */
static zarr_status whole_read(const struct zr_work *w, struct zr_direct *d, bool *done,
                              zarr_error *err)
{
    const struct zr_program *p = d->segment->level->decode;
    struct zr_get g = raw_get(d->segment);
    zarr_status st = ZARR_OK;

    g.dst = d->at;
    ZR_TRY(zr_get(w, &g, err));
    ZR_TRY(zr_block_unpad(w, p, &g.dst, err));
    w->worker->stats.bytes_decoded += p->decoded_bytes;
    zr_item_count(w, d->item, true);
    *done = true;
out:
    return st;
}

/* All ranges of a chunk are read from one version: through the shard's pin or a pin of
 * the chunk. A store that cannot tell versions apart gets one range. block: room for the
 * whole chunk. */
static zarr_status read_ranges(const struct zr_work *w, const struct zr_segment *segment,
                               struct zr_store_pin *pin, const struct zr_ranges *s,
                               const zarr_memory *block, zarr_error *err)
{
    struct zr_get g = raw_get(segment);
    const uint64_t base = g.offset;
    uint64_t at[ZARR_MAX_RANK] = {0};
    zarr_status st = ZARR_OK;

    if (pin)
        g.pin = pin;
    for (uint64_t r = 0; r < s->n_reads; r++) {
        const uint64_t offset = zr_ranges_next(s, at);

        g.offset = base + offset;
        if (!zr_mem_slice(block, offset, s->read_bytes, &g.dst))
            return zr_internal(err);
        ZR_TRY(zr_get(w, &g, err));
        ZR_TRY(zr_block_unpad(w, segment->level->decode, &g.dst, err));
        if (!g.known)
            g.known = "chunk"; /* the object was there when it was pinned */
    }
out:
    return st;
}

bool zr_raw_in_ranges(const struct zr_io *io, const struct zr_segment *segment,
                      struct zr_ranges *out)
{
    const struct zr_program *p = segment->level->decode;
    const struct zr_target *t = &segment->item[0]->target;
    uint64_t most = UINT64_MAX;

    *out = (struct zr_ranges){0};
    if (!is_raw(segment) || io->no_direct || t->kind != ZR_PROJ_DIMS || !t->arithmetic ||
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

    return zr_raw_in_ranges(w->io, d->segment, &ranges);
}

/* Reads the cheapest set of ranges (ranges.c) of a chunk. */
static zarr_status ranges_read(const struct zr_work *w, struct zr_direct *d, bool *done,
                               zarr_error *err)
{
    const struct zr_segment *segment = d->segment;
    const struct zr_program *p = segment->level->decode;
    struct zr_ranges s;
    struct zr_store_pin pin = {0};
    zarr_memory block = {0};
    zarr_status st = ZARR_OK;

    if (!zr_raw_in_ranges(w->io, segment, &s))
        ZR_TRY(zr_internal(err));
    ZR_TRY(zr_worker_scratch(w, ZR_SCRATCH_A, p->fetch_device, p->decoded_bytes, &block,
                             err));
    if (!segment->shard && s.n_reads > 1) {
        ZR_TRY(zr_store_pin_init(&pin, w->io->store, segment->key, err));
        if (pin.object_bytes != UINT64_MAX && pin.object_bytes != p->decoded_bytes)
            goto out; /* the general way reports the error */
    }
    ZR_TRY(read_ranges(w, segment, pin.key ? &pin : NULL, &s, &block, err));
    w->worker->stats.chunks_partial++;
    w->worker->stats.bytes_decoded += s.n_reads * s.read_bytes;
    zr_item_count(w, d->item, false);
    *done = true;
    ZR_TRY(zr_scatter_target(w, p, &d->item->target, &block, err));
out:
    zr_store_pin_deinit(&pin);
    return st;
}

/* ---- the table -------------------------------------------------------------------- */

static const struct zr_direct_route raw_whole = {false, whole_applies, whole_read};
static const struct zr_direct_route raw_ranges = {false, ranges_apply, ranges_read};

static const struct zr_direct_route *const routes[] = {
    &zr_route_slabs, &raw_whole, &raw_ranges, &zr_route_partial, &zr_route_strided,
};

const struct zr_direct_route *zr_find_route(const struct zr_work *w, struct zr_direct *d)
{
    for (size_t k = 0; k < ZR_COUNT(routes); k++)
        if (routes[k]->encoded == (d->coding != NULL) && routes[k]->applies(w, d))
            return routes[k];
    return NULL;
}
