/*
 * pipe/request/io.c - what follows from the parameters of a request: its memory, its
 * threads and its selections; how much of it is in work at once (the waves and segments
 * of a read, the batches of a write); and whether chunks go through their stages
 * together. Metadata, store and device decide it; nothing is read for it.
 * Thread class: plain functions.
 */
#include "pipe/request/request.h"

enum {
    OPENS_FAR = 256, /* shards opened in one round trip */
    WAVE_ITEMS = 4096,
    ITEMS_EACH = 128, /* four segments of 32 items for a thread */
    /* bytes of a chunk that is a range of its own if the tensor has its layout, or
     * if any part of it may be wanted */
    APART_DIRECT = 16 << 10,
    APART = 64 << 10
};

/* ---- memory and threads ------------------------------------------------------------ */

bool zr_io_is_host(const struct zr_io *io, int32_t device_type)
{
    return zr_device_is_host(io->engine->memory, device_type);
}

int32_t zr_io_device_id(const struct zr_io *io, int32_t device_type)
{
    return zr_io_is_host(io, device_type) ? 0 : io->view.base.device_id;
}

const struct zr_view *zr_target_view(const struct zr_io *io, const struct zr_target *t)
{
    return io->parts ? &io->parts[t->part].view : &io->view;
}

uint32_t zr_io_threads(const struct zr_io *io)
{
    const uint32_t n = io->max_threads != 0 ? io->max_threads : io->engine->max_threads;

    return ZR_MIN(ZR_MAX(n, 1u), (uint32_t)ZR_MAX_THREADS);
}

uint64_t zr_io_budget(const struct zr_io *io)
{
    const uint64_t total = io->engine->budget->total;

    return io->memory_bytes != 0 ? ZR_MIN(io->memory_bytes, total) : total;
}

uint64_t zr_io_wave_bytes(const struct zr_io *io)
{
    uint64_t bytes = io->wave_bytes;

    if (bytes == 0)
        bytes = io->engine->wave_bytes;
    if (io->wave_bytes == 0 && !zr_io_is_host(io, io->view.base.device_type))
        bytes = ZR_MAX(bytes, zr_device_wave(io));

    return io->memory_bytes != 0 ? ZR_MIN(bytes, io->memory_bytes) : bytes;
}

/* ---- selections -------------------------------------------------------------------- */

uint64_t zr_io_elements(const struct zr_io *io)
{
    const struct zr_grid *grid = io->layout->grid;
    uint64_t n = 0;

    for (uint32_t i = 0; io->parts && i < io->n_parts; i++)
        if (!zr_add(n, zarr_selection_n_items(io->parts[i].selection), &n))
            return UINT64_MAX;
    if (io->parts)
        return n;
    if (io->selection)
        return zarr_selection_n_items(io->selection);
    return zr_product_u64(grid->shape, (size_t)grid->ndim, &n) ? n : UINT64_MAX;
}

zarr_status zr_io_project(struct zr_projector **out, const struct zr_io *io,
                          zarr_selection **all, zarr_error *err)
{
    const struct zr_grid *grid = io->layout->grid;
    const zarr_allocator *alloc = io->engine->alloc;

    if (io->parts)
        return zr_project_open_many(out, alloc, grid, io->selections, io->n_parts, err);
    if (io->selection)
        return zr_project_open(out, alloc, grid, io->selection, err);
    ZR_CHECK(zarr_selection_dims(all, grid->ndim, grid->shape, 0, NULL, err));
    return zr_project_open(out, alloc, grid, *all, err);
}

bool zr_next_unit(const struct zr_io *io, struct zr_projector *p,
                  struct zr_projection *out)
{
    if (!zr_project_next(p, out))
        return false;
    out->whole = out->whole && !io->field.on;
    out->full = (out->full || io->reset_outside) && out->whole && !io->guard;
    return true;
}

/* ---- waves and batches ------------------------------------------------------------- */

bool zr_is_batched(const struct zr_io *io, const struct zr_program *p)
{
    const bool host = zr_io_is_host(io, io->view.base.device_type);

    /* only decoding tells the size of each unsized chunk; a failure of parts must be that
     * of single chunks (on a device, see read_parts() and zr_write_batch()) */
    if (!p || p->unsized || (io->parts && host))
        return false;
    for (uint32_t i = 0; i < p->n; i++)
        if (p->stage[i].kind == ZR_STAGE_CODEC &&
            (p->stage[i].impl->vt.caps & ZARR_CODEC_BATCH) != 0)
            return true; /* an implementation takes batches */
    if (p->variable || p->padded || host)
        return false;
    /* a store that reaches the device reads raw chunks into it without us */
    return !p->raw || p->encode || zr_io_is_host(io, p->fetch_device);
}

bool zr_wants_batches(const struct zr_io *io, const struct zr_program *p)
{
    return zr_is_batched(io, p) || !zr_store_can(io->store, ZARR_STORE_CAP_FAST_GET);
}

/* What a wave has at most while its inner chunks are stored in order; 0: WAVE_ITEMS. One
 * thread plans it, and an item takes some 400 bytes. So a wave of inner chunks from a
 * fast store has as few as the threads need: it is read while the next one is planned, in
 * memory that is in the caches. An object of its own takes so long that more waves would
 * cost more than they save. */
static uint32_t items_in_order(const struct zr_io *io, const struct zr_program *leaf)
{
    const uint32_t threads = ZR_MAX(zr_io_threads(io), (uint32_t)2);

    if (zr_wants_batches(io, leaf) || io->layout->n_levels == 1 ||
        threads >= WAVE_ITEMS / ITEMS_EACH)
        return 0;
    return threads * ITEMS_EACH;
}

/* Whether each chunk of a shard is a range of its own for a store that merges ranges: so
 * a part of it can be fetched, or the store can write it to its place in the tensor. Of
 * small chunks that costs more than it saves. */
static bool is_apart(const struct zr_io *io, const struct zr_program *leaf)
{
    const struct zr_view *v = &io->view;
    int64_t stride = (int64_t)io->layout->item_bytes;

    if (!leaf->raw || leaf->decoded_bytes < APART_DIRECT)
        return false;
    if (leaf->decoded_bytes >= APART)
        return true;
    if (io->no_direct || io->n_parts > 0 || io->field.on || v->ndim != leaf->ndim ||
        (leaf->swap_bytes > 1) != (v->swap_bytes > 1))
        return false;
    for (int32_t s = leaf->ndim - 1; s >= 0; s--) {
        if (leaf->stored_shape[s] > 1 && v->stride[leaf->order[s]] != stride)
            return false;
        stride *= (int64_t)leaf->stored_shape[s];
    }
    return true;
}

void zr_waves_cut(const struct zr_io *io, struct zr_plan_args *out)
{
    const struct zr_level *lv = &io->layout->level[io->layout->n_levels - 1];
    const struct zr_program *leaf = lv->decode;
    bool fast = zr_store_can(io->store, ZARR_STORE_CAP_FAST_GET);
    const uint32_t flights = zr_read_flights(io);
    /* the store itself merges the ranges of a wave, into less memory */
    const bool merges =
        zr_store_can(io->store, ZARR_STORE_CAP_COALESCES) && zr_wants_batches(io, leaf);

    *out = (struct zr_plan_args){
        .layout = io->layout,
        .prefix = io->prefix,
        .selection = io->selection,
        .selections = io->selections,
        .n_selections = io->n_parts,
        .wave_bytes = zr_io_wave_bytes(io),
        .wave_items = WAVE_ITEMS,
        .wave_items_in_order = items_in_order(io, leaf),
        .segment_bytes = fast ? UINT64_C(1) << 20 : UINT64_C(16) << 20,
        .segment_gap = fast ? UINT64_C(16) << 10 : UINT64_C(1) << 20,
        .part_hole = fast ? 0 : UINT64_C(1) << 20,
        .opens = fast ? 0 : OPENS_FAR,
        /* the next ones are opened while the chunks of these are read */
        .held_bytes = ZR_MAX(zr_held_most(zr_io_budget(io)) / 2, UINT64_C(1)),
        .threads = zr_io_threads(io),
    };
    if (merges)
        out->segment_gap = 0;
    out->apart = merges && io->coalesce_gap == 0 && is_apart(io, leaf);
    if (io->coalesce_gap != 0)
        out->segment_gap = io->coalesce_gap;
    if (io->coalesce_bytes != 0)
        out->segment_bytes = io->coalesce_bytes;
    if (io->memory_bytes > leaf->decoded_bytes) /* a chunk of it is decoded beside it */
        out->segment_bytes =
            ZR_MIN(out->segment_bytes, io->memory_bytes - leaf->decoded_bytes);
    /* a wave is in memory as a whole, and several must fit; so must the holes */
    out->wave_gaps = ZR_MAX(zr_io_budget(io) / (flights + 1) / 4, UINT64_C(1));
    if (zr_wants_batches(io, leaf)) {
        uint64_t share = ZR_MAX(zr_io_budget(io) / (flights + 1), UINT64_C(1));

        if (io->memory_bytes != 0) /* elements twice, encoded bytes, and holes */
            share = ZR_MAX(share / 4, UINT64_C(1));
        out->wave_bytes = ZR_MIN(out->wave_bytes, share);
        share /= ZR_MAX(leaf->encoded_bound, UINT64_C(1));
        out->wave_items =
            (uint32_t)ZR_MIN(ZR_MAX(share, UINT64_C(1)), (uint64_t)out->wave_items);
    }
    if (zr_is_batched(io, leaf))
        out->wave_items =
            ZR_MIN(out->wave_items, zr_device_most(io, lv, false, false, flights));
}

/* One chunk per segment, on the caller's thread. */
void zr_serial_cut(const struct zr_io *io, struct zr_plan_args *out)
{
    *out = (struct zr_plan_args){.layout = io->layout,
                                 .prefix = io->prefix,
                                 .selection = io->selection,
                                 .selections = io->selections,
                                 .n_selections = io->n_parts,
                                 .wave_bytes = 1,
                                 .wave_items = 1,
                                 .threads = 1,
                                 .plain = true};
}

void zr_io_cut(const struct zr_io *io, struct zr_plan_args *out)
{
    const bool plain = (io->pipeline->vt.flags & ZARR_PIPELINE_PLAIN) != 0;

    (plain ? zr_serial_cut : zr_waves_cut)(io, out);
}

/* A device needs long for the streams of one wave, and has room for those of several. */
uint32_t zr_read_flights(const struct zr_io *io)
{
    enum {
        CHUNKS = 1536, /* at once; more only share the device's caches */
        LEAST = 6
    };
    const struct zr_level *leaf = &io->layout->level[io->layout->n_levels - 1];
    uint64_t wave;

    if (zr_io_is_host(io, io->view.base.device_type))
        return ZR_FLIGHTS;
    wave = zr_io_wave_bytes(io) / ZR_MAX(leaf->decoded_bytes, UINT64_C(1));
    return (uint32_t)ZR_MIN(
        ZR_MAX(CHUNKS / ZR_MAX(wave, UINT64_C(1)), UINT64_C(1) * LEAST),
        UINT64_C(1) * ZR_DEVICE_FLIGHTS);
}

bool zr_level_is_batched(const struct zr_io *io, const struct zr_level *lv)
{
    const struct zr_layout *l = io->layout;

    if (!lv->is_shard)
        return zr_is_batched(io, lv->encode);
    return !zr_io_is_host(io, io->view.base.device_type) &&
           zr_is_batched(io, l->level[l->n_levels - 1].encode);
}

/* Whether units can be encoded in a loop and put together. */
static bool can_put_together(const struct zr_io *io)
{
    return !io->sink && !io->layout->variants && !io->layout->level[0].unsized &&
           zr_io_is_host(io, io->view.base.device_type);
}

bool zr_puts_together(const struct zr_io *io)
{
    return !zr_store_can(io->store, ZARR_STORE_CAP_FAST_GET) && can_put_together(io);
}

bool zr_units_join(const struct zr_io *io, const struct zr_level *lv, uint32_t n)
{
    if (io->session || io->guard)
        return false;
    if (zr_level_is_batched(io, lv))
        return true;
    return n > 1 && (lv->is_shard && n < zr_io_threads(io) ? can_put_together(io)
                                                           : zr_puts_together(io));
}

/* Counters of parts that failed are taken back, and sinks get their units in order, so
 * such requests do one batch after the other. So do those whose elements are one wave. */
uint32_t zr_write_flights(const struct zr_io *io)
{
    if (zr_io_is_host(io, io->view.base.device_type) || io->parts || io->sink ||
        zr_io_threads(io) == 1 ||
        zr_io_elements(io) <= zr_io_wave_bytes(io) / io->layout->item_bytes)
        return 1;
    return ZR_DEVICE_WRITES;
}
