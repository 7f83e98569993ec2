/*
 * pipe/chunk/segment.c - reads one segment of a data wave on one thread: fetches its
 * range, decodes each of its chunks, and copies the elements to their places. Chunks that
 * need not be fetched whole, decoded or copied take a direct route (direct.c). The last
 * decoder writes into the destination if the layouts agree. `serial` turns all of this
 * off. Thread class: on the worker context.
 */
#include "pipe/chunk/chunk_int.h"

#include <stdio.h>
#include <string.h>

/* The coordinates of an item's chunk in the array's grid of chunks. Each shard begins at
 * a multiple of their shape. */
static size_t chunk_text(char *text, size_t cap, const struct zr_segment *segment,
                         const struct zr_item *item)
{
    const struct zr_level *lv = segment->level;
    const uint64_t *origin = segment->shard->origin;
    uint64_t chunk[ZARR_MAX_RANK];

    for (int32_t i = 0; i < lv->ndim; i++) {
        const uint8_t d = lv->to_array[i];

        chunk[d] = (origin ? origin[d] / lv->shape[i] : 0) + item->target.chunk[i];
    }
    return zr_coord_text(text, cap, chunk, lv->ndim);
}

zarr_status zr_item_prefix(const struct zr_segment *segment, const struct zr_item *item,
                           zarr_status st, zarr_error *err)
{
    const char *name = segment->key ? segment->key : "";
    struct zr_text_part part[ZARR_ERROR_PARTS] = {{0, 0}};
    char at[160] = "";
    size_t n = 0;

    if (st == ZARR_OK || !err)
        return st;
    if (st == ZARR_ERR_CORRUPT)
        zr_error_operation(err, ZARR_OPERATION_DECODE);
    if (segment->shard && item) {
        name = segment->shard->key;
        n = chunk_text(at, sizeof at, segment, item);
        part[ZARR_ERROR_CHUNK] =
            (struct zr_text_part){strlen(name) + strlen(" chunk ["), n};
    }
    part[ZARR_ERROR_KEY] = (struct zr_text_part){0, strlen(name)};
    if (n > 0)
        return zr_prefix_parts(err, st, part, "%s chunk [%s]", name, at);
    return zr_prefix_parts(err, st, part, "%s", name);
}

zarr_status zr_item_count_missing(const struct zr_work *w,
                                  const struct zr_segment *segment,
                                  const struct zr_item *item, zarr_error *err)
{
    if (item->is_bad)
        return zr_shard_index_check(segment->shard->index, item->offset, err);
    if (w->io->present && item->fill_level == 0 && item->unit < w->io->n_present)
        w->io->present[item->unit] = 0;
    w->worker->stats.chunks_missing += item->n_chunks;
    w->worker->stats.chunks_done += item->n_chunks;
    w->worker->stats.elements += zr_target_items(&item->target);
    if (w->io->missing_error)
        return zr_fail(err, ZARR_ERR_NOT_FOUND, "the chunk is missing");
    return ZARR_OK;
}

zarr_status zr_item_fill(const struct zr_work *w, const struct zr_segment *segment,
                         const struct zr_item *item, zarr_error *err)
{
    const struct zr_level *lv = &w->io->layout->level[item->fill_level];
    const zarr_status st = zr_item_count_missing(w, segment, item, err);

    return st == ZARR_OK ? zr_fill_target(w, lv, &item->target, err) : st;
}

void zr_item_count(const struct zr_work *w, const struct zr_item *item, bool direct)
{
    w->worker->stats.chunks_done++;
    w->worker->stats.chunks_direct += direct;
    w->worker->stats.elements += zr_target_items(&item->target);
}

zarr_status zr_item_finish(const struct zr_work *w, const struct zr_segment *segment,
                           const struct zr_item *item, const zarr_memory *block,
                           bool direct, zarr_error *err)
{
    zr_item_count(w, item, direct);
    if (direct)
        return ZARR_OK;
    return zr_scatter_target(w, segment->level->decode, &item->target, block, err);
}

/* Whether the store wrote an uncompressed chunk to its place in the view
 * (pipe/read/prefetch.c). */
static bool lies_in_place(const struct zr_io *io, const struct zr_program *p,
                          const struct zr_item *item, const zarr_memory *encoded)
{
    zarr_memory at;

    return encoded->handle == zr_target_view(io, &item->target)->base.handle &&
           zr_target_is_direct(io, p, &item->target, &at) && encoded->offset == at.offset;
}

zarr_status zr_item_decode(const struct zr_work *w, const struct zr_segment *segment,
                           const struct zr_item *item, const zarr_memory *encoded,
                           uint64_t skip, zarr_error *err)
{
    const struct zr_program *p = segment->level->decode;
    struct zr_coding c = {.p = p, .cur = *encoded, .skip = skip};
    struct zr_direct d = {.segment = segment, .item = item, .coding = &c};
    const struct zr_direct_route *route = NULL;
    bool done = false;

    /* elements of variable length point into scratch until their bytes are copied */
    d.placed =
        !w->io->layout->variable && !w->on_host &&
        (p->n > 0 ? zr_target_is_direct(w->io, p, &item->target, &d.at)
                  : segment->n_items == 1 && lies_in_place(w->io, p, item, encoded));
    if (p->has_routes && !d.placed && !skip && !w->on_host)
        route = zr_find_route(w, &d);
    if (route)
        ZR_CHECK(route->read(w, &d, &done, err));
    if (!done) {
        if (p->unsized)
            ZR_CHECK(zr_chunk_decode_unsized(w, p, encoded, &d.at, &c.cur, err));
        else if (p->n > 0)
            ZR_CHECK(zr_stages_run(w, &c, p->n, &d.at, err));
        ZR_CHECK(zr_decode_end(w, p, encoded, &c.cur, err));
    }
    return zr_item_finish(w, segment, item, &c.cur, d.placed, err);
}

/* ---- encoded bytes ------------------------------------------------------------ */

/* *item: the item whose size is wrong; else the first. */
static zarr_status check_segment_bytes(const struct zr_work *w,
                                       const struct zr_segment *segment,
                                       const struct zr_item **item, zarr_error *err)
{
    uint64_t most = 0;

    *item = segment->item[0];
    if (segment->bytes == UINT64_MAX)
        return ZARR_OK;
    most = zr_program_most(w->io, segment->level->decode);
    for (uint32_t i = 0; i < segment->n_items; i++) {
        if (segment->item[i]->bytes <= most)
            continue;
        *item = segment->item[i];
        return zr_fail(err, zr_excess(w->io),
                       "the shard index gives %" PRIu64
                       " bytes, but the chunk can have at most %" PRIu64
                       " (limit encoded_bytes)",
                       (*item)->bytes, most);
    }
    return ZARR_OK;
}

static zarr_status fetch_object(const struct zr_work *w, const struct zr_segment *segment,
                                zarr_memory *out, zarr_error *err)
{
    const struct zr_program *p = segment->level->decode;
    struct zr_fetch f = {.key = segment->key,
                         .slot = ZR_SCRATCH_FETCH,
                         .device_type = w->on_host ? ZARR_DEVICE_CPU : p->fetch_device,
                         .expect = p->encoded_bound,
                         .most = zr_program_most(w->io, p),
                         .gaps = p->gaps};

    return zr_fetch_object(w, &f, out, err);
}

zarr_status zr_segment_range(const struct zr_work *w, const struct zr_segment *segment,
                             zarr_memory *out, zarr_error *err)
{
    const int32_t device =
        w->on_host ? ZARR_DEVICE_CPU : segment->level->decode->fetch_device;
    struct zr_get g = {.key = segment->key, .offset = segment->offset, .known = "shard"};

    if (!segment->key) {
        if (!zr_mem_slice(&segment->shard->buffer, segment->offset, segment->bytes, out))
            return zr_internal(err);
        return ZARR_OK;
    }
    g.pin = zr_shard_pin(segment->shard);
    g.dst = (zarr_memory){.device_type = device, .bytes = segment->bytes};
    if (zr_store_lends(w->io->store) && zr_lend_range(w, &g, out))
        return ZARR_OK;
    ZR_CHECK(zr_worker_scratch(w, ZR_SCRATCH_FETCH, device, segment->bytes, &g.dst, err));
    *out = g.dst;
    return zr_get(w, &g, err);
}

zarr_status zr_segment_fetch(const struct zr_work *w, const struct zr_segment *segment,
                             zarr_memory *out, zarr_error *err)
{
    const struct zr_item *item = NULL;

    if (segment->bytes == ZR_ITEM_MISSING)
        return zr_fail(err, ZARR_ERR_NOT_FOUND, "the chunk is missing");
    ZR_CHECK(check_segment_bytes(w, segment, &item, err));
    return segment->bytes == UINT64_MAX ? fetch_object(w, segment, out, err)
                                        : zr_segment_range(w, segment, out, err);
}

/* ---- segments --------------------------------------------------------------------- */

static zarr_status segment_fill(const struct zr_work *w, const struct zr_segment *segment,
                                zarr_error *err)
{
    for (uint32_t i = 0; i < segment->n_items; i++) {
        zarr_status st = zr_item_fill(w, segment, segment->item[i], err);

        if (st != ZARR_OK)
            return zr_item_prefix(segment, segment->item[i], st, err);
    }
    return ZARR_OK;
}

/* d->bytes: of the route; route NULL: the general way. */
static struct zr_need segment_need(const struct zr_io *io, const struct zr_direct *d,
                                   const struct zr_direct_route *route)
{
    const struct zr_segment *segment = d->segment;
    const struct zr_program *p = segment->level->decode;
    uint64_t fetch = segment->bytes == UINT64_MAX ? p->encoded_bound : segment->bytes;
    struct zr_need need = {0, 0};

    if (!zr_io_is_host(io, io->view.base.device_type))
        need.device = zr_device_need(io, segment->level, false, false, 1);
    else if (route)
        return (struct zr_need){.host = d->bytes};
    if (!zr_add(fetch, p->decoded_bytes, &need.host))
        need.host = UINT64_MAX;
    return need;
}

struct zr_need zr_segment_need(const struct zr_io *io, const struct zr_segment *segment)
{
    const struct zr_work w = {.io = io};
    struct zr_direct d = {.segment = segment, .item = segment->item[0]};
    const bool raw = segment->level->decode->raw;

    return segment_need(io, &d, raw ? zr_find_route(&w, &d) : NULL);
}

/* Sets *out to the encoded bytes of an item of a segment. */
static bool item_bytes(const struct zr_segment *segment, const struct zr_item *item,
                       const zarr_memory *range, zarr_memory *out)
{
    if (segment->bytes != UINT64_MAX)
        return zr_mem_slice(range, item->offset - segment->offset, item->bytes, out);
    *out = *range;
    return true;
}

/* Reads a segment without short cuts. *at: the item in work. */
static zarr_status segment_on_host(const struct zr_work *w,
                                   const struct zr_segment *segment,
                                   const zarr_memory *fetched, const struct zr_item **at,
                                   zarr_error *err)
{
    const bool whole_object = segment->bytes == UINT64_MAX;
    zarr_memory range = {0}, encoded = {0};
    zarr_status st = ZARR_OK;

    *at = segment->item[0];
    if (fetched)
        range = *fetched;
    else
        st = (whole_object ? fetch_object : zr_segment_range)(w, segment, &range, err);
    if (st == ZARR_ERR_NOT_FOUND && whole_object)
        return zr_item_fill(w, segment, *at, err);
    for (uint32_t i = 0; i < segment->n_items && st == ZARR_OK; i++) {
        *at = segment->item[i];
        if (!item_bytes(segment, *at, &range, &encoded))
            return zr_internal(err);
        st = zr_item_decode(w, segment, *at, &encoded, 0, err);
    }
    return st;
}

/* A segment that failed because a chunk is too large for the device is read once more, in
 * host memory. */
static zarr_status segment_retry(const struct zr_work *w,
                                 const struct zr_segment *segment,
                                 const zarr_memory *fetched, const struct zr_item **at,
                                 const zarr_stats *before, zarr_status st,
                                 zarr_error *err)
{
    struct zr_work own = *w;

    if (zr_is_too_large(w, segment->level, false, st)) {
        zr_forget_chunks(&w->worker->stats, before);
        zr_worker_leave_device(w->worker, true);
        zr_work_on_host(&own, segment->level, false);
        if (err)
            zr_error_clear(err);
        st = segment_on_host(&own, segment, fetched, at, err);
    }
    return zr_too_large_tell(&own, segment->level, false, st, err);
}

zarr_status zr_segment_read(const struct zr_work *w, const struct zr_segment *segment,
                            const zarr_memory *fetched, zarr_error *err)
{
    const bool whole_object = segment->bytes == UINT64_MAX;
    struct zr_need need = {0, 0};
    const struct zr_item *item = segment->item[0];
    zarr_memory range = fetched ? *fetched : (zarr_memory){0}, encoded = {0};
    struct zr_direct direct = {.segment = segment, .item = item, .fetched = fetched};
    const struct zr_direct_route *route = NULL;
    zarr_stats before; /* only for a device */
    bool done = false;
    zarr_status st = ZARR_OK;

    if (segment->bytes == ZR_ITEM_MISSING)
        return segment_fill(w, segment, err);
    if (w->rq->device)
        before = w->worker->stats;
    st = check_segment_bytes(w, segment, &item, err);
    if (st == ZARR_OK && segment->level->decode->raw)
        route = zr_find_route(w, &direct);
    if (!w->granted && st == ZARR_OK) {
        need = segment_need(w->io, &direct, route);
        ZR_TRY(zr_request_take(w->rq, need, err));
    }
    if (route)
        st = route->read(w, &direct, &done, err);
    if (!fetched && st == ZARR_OK && !done)
        st = whole_object ? fetch_object(w, segment, &range, err)
                          : zr_segment_range(w, segment, &range, err);
    /* the store reports it missing: the fill value */
    if (st == ZARR_ERR_NOT_FOUND && whole_object) {
        st = zr_item_fill(w, segment, item, err);
        done = true;
    }
    for (uint32_t i = 0; i < segment->n_items && st == ZARR_OK && !done; i++) {
        item = segment->item[i];
        st = item_bytes(segment, item, &range, &encoded)
                 ? zr_item_decode(w, segment, item, &encoded, 0, err)
                 : zr_internal(err);
    }
    if (st != ZARR_OK && w->rq->device)
        st = segment_retry(w, segment, fetched, &item, &before, st, err);
    zr_worker_trim(w->worker);
    if (!w->granted) {
        if (need.device)
            zr_worker_leave_device(w->worker, true);
        zr_request_give(w->rq, need);
    }
    if (st != ZARR_OK)
        st = zr_item_prefix(segment, item, st, err);
out:
    return st;
}
