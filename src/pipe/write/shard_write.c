/*
 * pipe/write/shard_write.c - encodes the inner chunks of one shard that change, several
 * at a time, and has shard_value.c append them. Nested shards recurse, at most
 * limits.shard_depth deep. Shards whose elements come from a device are written together
 * (batch_shards.c).
 * Thread class: on the worker context; helpers take contexts of their own.
 */
#include "pipe/write/shard_int.h"

#include <string.h>

enum {
    BATCH = 64
};

/* Inner chunks that are encoded at once. */
struct inner_batch {
    struct zr_shard_writer *s;
    struct zr_projection *proj;
    struct zr_inner_result *result;
    zarr_memory *block;         /* pool blocks that results are in, to be given back */
    struct zr_leaf_write *leaf; /* set if chunks are encoded together, else NULL */
    uint32_t n, most;
    zarr_memory slots;
    uint64_t slot_bytes;
    struct zr_arena lists;
};

/* ---- encoding ---------------------------------------------------------- */

static zarr_status encode_nested(const struct zr_work *w, struct inner_batch *b,
                                 uint32_t i, zarr_error *err)
{
    struct zr_shard_write sub;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_shard_begin_nested(b->s, w, &b->proj[i], &sub, err));
    st = zr_shard_write(w, &sub, err);
    b->result[i] = (struct zr_inner_result){
        .out = sub.out, .empty = sub.empty, .filled = sub.filled};
    b->block[i] = sub.block;
out:
    return st;
}

static zarr_status batch_leaf(const struct zr_work *w, const struct inner_batch *b,
                              uint32_t i, struct zr_leaf_write *lw, zarr_error *err)
{
    zarr_memory room = {0};

    if (b->slots.handle &&
        !zr_mem_slice(&b->slots, i * b->slot_bytes, b->slot_bytes, &room))
        return zr_internal(err);
    return zr_shard_leaf(b->s, w, &b->proj[i], &room, lw, err);
}

/* The bytes of an unsized chunk are in the worker's buffer: copies them to a block. */
static zarr_status keep_unsized(const struct zr_work *w, struct inner_batch *b,
                                uint32_t i, const zarr_memory *bytes, zarr_error *err)
{
    zarr_memory *block = &b->block[i];
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_pool_take(w->io->engine->pool, ZARR_DEVICE_CPU, 0,
                        ZR_MAX(bytes->bytes, UINT64_C(64)), block, err));
    b->result[i].out = *block;
    b->result[i].out.bytes = bytes->bytes;
    ZR_TRY(zr_mem_copy_bytes(w->io->engine->memory, &b->result[i].out, bytes,
                             bytes->bytes, &w->worker->copies, err));
out:
    return st;
}

static zarr_status encode_inner(void *arg, uint64_t at, const struct zr_work *w,
                                zarr_error *err)
{
    struct inner_batch *b = arg;
    const uint32_t i = (uint32_t)at;
    struct zr_leaf_write lw;
    zarr_status st = ZARR_OK;

    if (b->s->in->is_shard)
        return encode_nested(w, b, i, err);
    ZR_TRY(batch_leaf(w, b, i, &lw, err));
    ZR_TRY(zr_leaf_encode(w, &lw, err));
    b->result[i] =
        (struct zr_inner_result){.out = lw.out, .empty = lw.empty, .filled = lw.filled};
    if (lw.empty)
        goto out;
    if (b->s->in->unsized) {
        ZR_TRY(keep_unsized(w, b, i, &lw.out, err));
        goto out;
    }
    /* Elements stored unchanged may be in the worker's block, which the next chunk
     * overwrites. */
    if (lw.out.handle == w->worker->scratch[ZR_SCRATCH_BLOCK].handle) {
        lw.room.bytes = lw.out.bytes;
        ZR_TRY(zr_mem_copy_bytes(w->io->engine->memory, &lw.room, &lw.out, lw.out.bytes,
                                 &w->worker->copies, err));
        b->result[i].out = lw.room;
    }
out:
    zr_worker_trim(w->worker);
    return st;
}

static zarr_status encode_together(struct inner_batch *b, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    for (uint32_t i = 0; i < b->n; i++)
        ZR_TRY(batch_leaf(b->s->w, b, i, &b->leaf[i], err));
    ZR_TRY(zr_leaves_encode(b->s->w, b->leaf, b->n, b->s->sw->threads, NULL, err));
    for (uint32_t i = 0; i < b->n; i++)
        b->result[i] = (struct zr_inner_result){.out = b->leaf[i].out,
                                                .empty = b->leaf[i].empty,
                                                .filled = b->leaf[i].filled};
out:
    return st;
}

/* ---- batches ------------------------------------------------------------ */

static void batch_release(struct inner_batch *b)
{
    for (uint32_t i = 0; i < b->n; i++)
        zr_pool_give(b->s->w->io->engine->pool, &b->block[i]);
    b->n = 0;
    zr_arena_reset(&b->lists);
}

static zarr_status batch_init(struct inner_batch *b, struct zr_shard_writer *s,
                              zarr_error *err)
{
    const struct zr_io *io = s->w->io;
    const zarr_allocator *alloc = io->engine->alloc;
    const struct zr_level *in = s->in;
    uint64_t bytes = 0;
    zarr_status st = ZARR_OK;

    *b = (struct inner_batch){.s = s};
    zr_arena_init(&b->lists, alloc);
    b->most = (uint32_t)ZR_MIN((uint64_t)zr_inner_batch(in, s->sw->threads, BATCH),
                               s->lv->n_inner_all);
    if (s->sw->stream)
        b->most = ZR_MIN(b->most, s->sw->stream->batch);
    b->proj = zr_malloc(alloc, b->most * sizeof *b->proj);
    b->result = zr_calloc(alloc, b->most, sizeof *b->result);
    b->block = zr_calloc(alloc, b->most, sizeof *b->block);
    if (!b->proj || !b->result || !b->block)
        ZR_FAIL_MEMORY(err, b->most * sizeof *b->proj);
    /* `serial`, which tests compare others with, encodes one chunk after another. So do
     * chunks with elements of several parts. */
    if (!io->no_direct && !io->parts && !in->is_shard && !s->w->on_host &&
        !s->sw->stream && zr_is_batched(io, in->encode)) {
        b->most = ZR_MIN(b->most, zr_device_most(io, in, true, true, s->sw->threads));
        b->leaf = zr_calloc(alloc, b->most, sizeof *b->leaf);
        if (!b->leaf)
            ZR_FAIL_MEMORY(err, b->most * sizeof *b->leaf);
    }
    if (in->is_shard || in->unsized)
        return ZARR_OK;
    b->slot_bytes = in->encoded_bound;
    if (!zr_mul_u64(b->slot_bytes, b->most, &bytes))
        ZR_FAIL(err, ZARR_ERR_LIMIT, "the chunks are too large");
    ZR_TRY(zr_pool_take(io->engine->pool, ZARR_DEVICE_CPU, 0, bytes, &b->slots, err));
out:
    return st;
}

static void batch_deinit(struct inner_batch *b)
{
    const struct zr_engine *engine = b->s->w->io->engine;

    if (b->block)
        batch_release(b);
    zr_pool_give(engine->pool, &b->slots);
    zr_free(engine->alloc, b->proj);
    zr_free(engine->alloc, b->result);
    zr_free(engine->alloc, b->block);
    zr_free(engine->alloc, b->leaf);
    zr_arena_deinit(&b->lists);
}

/* ---- the shard --------------------------------------------------------- */

/* Collects the next inner chunks. */
static zarr_status fill_batch(struct inner_batch *b, struct zr_projector *p,
                              zarr_error *err)
{
    struct zr_projection proj;

    while (b->n < b->most && zr_next_unit(b->s->w->io, p, &proj)) {
        if (!zr_projection_keep(&b->proj[b->n], &proj, &b->lists))
            return zr_fail_memory(err, sizeof proj);
        b->n++;
    }
    return ZARR_OK;
}

zarr_status zr_shard_inners(struct zr_shard_writer *s, zarr_error *err)
{
    const struct zr_parallel_options opts = {.max_threads = s->sw->threads,
                                             .grain = 1,
                                             .item_ns = 2000 + s->in->decoded_bytes};
    struct zr_projector *p = NULL;
    struct inner_batch b;
    bool more = true;
    zarr_status st = ZARR_OK;

    ZR_TRY(batch_init(&b, s, err));
    ZR_TRY(zr_shard_project(s, &p, err));
    for (; more; batch_release(&b)) {
        ZR_TRY(fill_batch(&b, p, err));
        more = b.n == b.most;
        if (b.leaf && b.n > 0)
            ZR_TRY(encode_together(&b, err));
        else
            ZR_TRY(zr_workers_run(s->w, b.n, &opts, encode_inner, &b, err));
        for (uint32_t i = 0; i < b.n; i++)
            ZR_TRY(zr_shard_append(s, &b.proj[i], &b.result[i], err));
    }
out:
    zr_project_free(p);
    batch_deinit(&b);
    return st;
}

/* Whether the shard can be made without its old value, which is damaged: gives back what
 * was made of it. */
static bool drop_old(const struct zr_work *w, struct zr_shard_write *sw,
                     const zarr_stats *before)
{
    if (!sw->proj->whole || !(sw->old.handle || (sw->stream && sw->stream->old_bytes)))
        return false;
    zr_pool_give(w->io->engine->pool, &sw->block);
    zr_forget_chunks(&w->worker->stats, before);
    sw->old = (zarr_memory){0};
    if (sw->stream)
        sw->stream->old_bytes = 0;
    return true;
}

zarr_status zr_shard_write(const struct zr_work *w, struct zr_shard_write *sw,
                           zarr_error *err)
{
    const zarr_stats before = w->worker->stats;
    struct zr_shard_writer s;
    zarr_error e;
    zarr_status st = ZARR_OK;

    do {
        e = (zarr_error){0};
        st = zr_shard_begin(&s, w, sw, &e);
        if (st == ZARR_OK)
            st = zr_shard_inners(&s, &e);
        if (st == ZARR_OK)
            st = zr_shard_end(&s, &e);
        zr_shard_close(&s);
    } while (st == ZARR_ERR_CORRUPT && drop_old(w, sw, &before));
    return zr_pass(err, st, &e);
}
