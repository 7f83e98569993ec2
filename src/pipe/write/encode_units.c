/*
 * pipe/write/encode_units.c - makes the new values of a batch of units (batch_units.c):
 * together (batch/encode.c, shard_write.c), or in a parallel loop over the units, which
 * keeps the bytes of each until all are encoded.
 * Thread class: one thread per request; helpers take worker contexts.
 */
#include "pipe/write/write_int.h"

/* ---- room for leaves -------------------------------------------------------------- */

/* Bytes of a leaf, and of the distance to the next one. tight: as many as it has, not as
 * many as it may have. False: they are too many. */
static bool leaf_bytes(const struct zr_io *io, const struct zr_leaf_write *lw, bool tight,
                       uint64_t *bytes, uint64_t *step)
{
    *bytes = tight ? (lw->empty ? 0 : lw->out.bytes) : lw->level->encoded_bound;
    if (!zr_leaf_needs_room(io, lw))
        *bytes = 0;
    if (!zr_add(*bytes, (uint64_t)ZR_CHUNK_ALIGNMENT - 1, step))
        return false;
    *step = *step / ZR_CHUNK_ALIGNMENT * ZR_CHUNK_ALIGNMENT;
    return true;
}

/* Room for each leaf in one block. For struct zr_leaf_rooms. */
static zarr_status take_leaf_rooms(void *arg, bool tight, zarr_error *err)
{
    struct zr_unit_batch *b = arg;
    const struct zr_io *io = b->w.io;
    uint64_t at = 0, bytes = 0, step = 0, all = 0;
    zarr_status st = ZARR_OK;

    for (uint32_t i = 0; i < b->n; i++)
        if (!leaf_bytes(io, &b->leaf[i], tight, &bytes, &step) ||
            !zr_add(all, step, &all))
            ZR_FAIL(err, ZARR_ERR_LIMIT, "a batch too large for memory");
    if (all == 0)
        goto out; /* the caller has them all, or all are empty */
    ZR_TRY(zr_take_slices(io, b->lv->encode->fetch_device, &all, 1, &b->values, err));
    for (uint32_t i = 0; i < b->n; i++) {
        struct zr_leaf_write *lw = &b->leaf[i];

        (void)leaf_bytes(io, lw, tight, &bytes, &step);
        if (step > 0 && !zr_mem_slice(&b->values, at, bytes, &lw->room))
            return zr_internal(err);
        at += step;
    }
out:
    if (st != ZARR_OK && err)
        err->item = UINT64_MAX;
    return st;
}

/* ---- encoding ---------------------------------------------------------------------- */

/* Encodes a leaf to a block of its own, unless its elements are stored as the caller has
 * them. */
static zarr_status encode_one_leaf(void *arg, uint64_t i, const struct zr_work *w,
                                   zarr_error *err)
{
    struct zr_leaf_write *lw = &((struct zr_unit_batch *)arg)->leaf[i];
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_leaf_room(w, lw->level, &lw->room, err));
    ZR_TRY(zr_leaf_encode(w, lw, err));
    lw->room = (zarr_memory){0};
    ZR_TRY(zr_leaf_keep(w, lw, err));
out:
    zr_worker_trim(w->worker);
    return st;
}

static zarr_status encode_one_shard(void *arg, uint64_t i, const struct zr_work *w,
                                    zarr_error *err)
{
    return zr_shards_write(w, &((struct zr_unit_batch *)arg)->shard[i], 1, 1, err);
}

/* In a parallel loop over the units. */
static zarr_status encode_each(struct zr_unit_batch *b, zarr_error *err)
{
    const struct zr_parallel_options opts = {.max_threads = zr_io_threads(b->w.io),
                                             .grain = 1,
                                             .item_ns = 20000 + b->lv->decoded_bytes};

    return zr_workers_run(&b->w, b->n, &opts,
                          b->shard ? encode_one_shard : encode_one_leaf, b, err);
}

/* Sets what the new values are made from. */
static zarr_status prepare_units(struct zr_unit_batch *b, zarr_error *err)
{
    const size_t ndim = (size_t)b->w.io->layout->grid->ndim;
    uint64_t *clip = NULL;

    if (b->shard)
        clip = zr_arena_alloc(b->arena, (b->n * ndim + 1) * sizeof *clip);
    if (b->shard && !clip)
        return zr_fail_memory(err, b->n * ndim * sizeof *clip);
    for (uint32_t i = 0; i < b->n; i++) {
        struct zr_unit *u = &b->unit[i];

        u->leaf = b->leaf ? &b->leaf[i] : NULL;
        u->shard = b->shard ? &b->shard[i] : NULL;
        u->clip = clip ? clip + i * ndim : NULL;
        zr_unit_prepare(b->w.io, u);
    }
    return ZARR_OK;
}

static zarr_status encode_leaves(struct zr_unit_batch *b, uint32_t threads,
                                 zarr_error *err)
{
    const struct zr_leaf_rooms rooms = {.take = take_leaf_rooms, .arg = b};
    const bool wait = zr_leaf_rooms_can_wait(b->w.io, b->lv);

    if (!wait)
        ZR_CHECK(take_leaf_rooms(b, false, err));
    return zr_leaves_encode(&b->w, b->leaf, b->n, threads, wait ? &rooms : NULL, err);
}

zarr_status zr_units_encode(struct zr_unit_batch *b, zarr_error *err)
{
    const uint32_t threads = zr_io_threads(b->w.io);
    zarr_error e = ZARR_ERROR_INIT;
    zarr_status st = prepare_units(b, err);

    if (st != ZARR_OK)
        return st;
    if (b->shard && (b->is_batched || b->n < threads))
        st = zr_shards_write(&b->w, b->shard, b->n, threads, &e);
    else if (b->leaf && b->is_batched)
        st = encode_leaves(b, threads, &e);
    else
        st = encode_each(b, &e);
    if (st == ZARR_OK || st == ZARR_ERR_CANCELLED)
        return zr_pass(err, st, &e);
    return zr_prefix_key(err, zr_pass(err, st, &e),
                         b->unit[e.item < b->n ? e.item : 0].key);
}
