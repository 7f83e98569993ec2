/*
 * pipe/shard_write.c - makes the new value of one shard: inner chunks in C order of their
 * coordinates, so that equal content gives equal bytes, and the index after or before
 * them; inner_order.c puts them into another order if the caller wants it. Touched chunks
 * are encoded into slots, several at a time, and then appended; untouched ones keep their
 * encoded bytes. Nested shards recurse, at most limits.shard_depth deep. Thread class: on
 * the worker context; helpers take contexts of their own.
 */
#include "pipe/pipe_int.h"

#include <string.h>

enum {
    BATCH = 64,
    BATCH_BYTES = 32 * 1024 * 1024
};

struct shard_writer {
    const struct zr_work *w;
    struct zr_shard_write *sw;
    const struct zr_level *lv, *in; /* level of the shard, level of the inner chunks */
    zarr_mem value;                 /* the old value, its outer codecs decoded */
    struct zr_shard_index *old;     /* NULL: no old value */
    uint64_t *pairs;                /* the new index, in host byte order */
    uint64_t pos, next; /* end of the bytes appended; first inner chunk not handled yet */
    uint64_t keep_most; /* bytes of untouched chunks that may still be kept */
    bool any;
    bool filled; /* everything written so far equals the array's fill value */
    /* one batch */
    struct zr_projection *proj;
    struct inner_result {
        /* block: pool block that contains out and must be given back */
        zarr_mem out, block;
        bool empty, filled;
    } * result;
    struct zr_leaf_write *leaf; /* set if chunks are encoded together, else NULL */
    uint32_t n, batch;
    zarr_mem slots;
    uint64_t slot_bytes;
    struct zr_arena lists;
};

/* ---- appending --------------------------------------------------------- */

static zarr_status out_room(struct shard_writer *s, uint64_t more, zarr_error *err)
{
    struct zr_pool *pool = s->w->io->engine->pool;
    uint64_t need = 0, want = 0;
    zarr_mem bigger = {0};
    zarr_status st = ZARR_OK;

    if (!zr_add_u64(s->pos, more, &need))
        return zr_fail(err, ZARR_ERR_LIMIT, "the shard grows beyond 64 bits");
    if (need <= s->sw->block.bytes)
        return ZARR_OK;
    want = ZR_MAX(need, s->sw->block.bytes + s->sw->block.bytes / 2);
    ZR_TRY(zr_pool_take(pool, ZARR_DEVICE_CPU, 0, want, &bigger, err));
    if (s->pos > 0)
        st = zr_mem_copy_bytes(s->w->io->engine->memory, &bigger, &s->sw->block, s->pos,
                               &s->w->worker->copies, err);
    zr_pool_give(pool, &s->sw->block);
    s->sw->block = bigger;
out:
    return st;
}

static zarr_status append(struct shard_writer *s, uint64_t id, const zarr_mem *bytes,
                          zarr_error *err)
{
    zarr_mem dst;
    zarr_status st = ZARR_OK;

    ZR_TRY(out_room(s, bytes->bytes, err));
    if (!zr_mem_slice(&s->sw->block, s->pos, bytes->bytes, &dst))
        return zr_internal(err);
    ZR_TRY(zr_mem_copy_bytes(s->w->io->engine->memory, &dst, bytes, bytes->bytes,
                             &s->w->worker->copies, err));
    s->pairs[2 * id] = s->pos;
    s->pairs[2 * id + 1] = bytes->bytes;
    s->pos += bytes->bytes;
    s->any = true;
out:
    return st;
}

static zarr_status old_value(const struct shard_writer *s, uint64_t id, zarr_mem *out,
                             zarr_error *err)
{
    *out = (zarr_mem){0};
    if (!s->old || s->old->entry[2 * id] == ZR_INDEX_MISSING)
        return ZARR_OK;
    if (!zr_mem_slice(&s->value, s->old->entry[2 * id], s->old->entry[2 * id + 1], out))
        return zr_internal(err);
    return ZARR_OK;
}

/* Appends the old encoded bytes of the untouched inner chunks before `end`. */
static zarr_status keep_until(struct shard_writer *s, uint64_t end, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    for (; s->next < end; s->next++) {
        zarr_mem bytes;

        ZR_TRY(old_value(s, s->next, &bytes, err));
        if (!bytes.handle)
            continue;
        /* Entries of a hostile index may share bytes; a small shard must not become a
         * huge one. */
        if (bytes.bytes > s->keep_most)
            ZR_TRY(
                zr_fail(err, ZARR_ERR_CORRUPT,
                        "the shard's index names more bytes than its chunks can have"));
        s->keep_most -= bytes.bytes;
        ZR_TRY(append(s, s->next, &bytes, err));
    }
out:
    return st;
}

/* ---- inner chunks ------------------------------------------------------ */

static uint64_t inner_id(const struct zr_level *lv, const uint64_t *chunk)
{
    uint64_t at = 0;

    for (int32_t d = 0; d < lv->ndim; d++)
        at = at * lv->n_inner[d] + chunk[d];
    return at;
}

/* The level whose fill value a missing inner chunk has. */
static const struct zr_level *missing_level(const struct shard_writer *s)
{
    return s->old ? s->in : s->sw->missing;
}

static zarr_status encode_nested(const struct zr_work *w, struct shard_writer *s,
                                 uint32_t i, const zarr_mem *old, zarr_error *err)
{
    struct inner_result *r = &s->result[i];
    struct zr_shard_write sub = {.level = s->sw->level + 1,
                                 .lv = s->in,
                                 .missing = missing_level(s),
                                 .proj = &s->proj[i],
                                 .old = *old,
                                 .threads = 1};
    const zarr_status st = zr_shard_write(w, &sub, err);

    *r = (struct inner_result){
        .out = sub.out, .block = sub.block, .empty = sub.empty, .filled = sub.filled};
    return st;
}

static zarr_status inner_leaf(struct shard_writer *s, uint32_t i,
                              struct zr_leaf_write *lw, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    *lw = (struct zr_leaf_write){
        .level = s->in, .proj = &s->proj[i], .missing = missing_level(s)};
    s->result[i] = (struct inner_result){0};
    if (!s->proj[i].full)
        ZR_TRY(old_value(s, inner_id(s->lv, s->proj[i].chunk), &lw->old, err));
    if (!s->in->is_shard && !s->in->unsized &&
        !zr_mem_slice(&s->slots, i * s->slot_bytes, s->slot_bytes, &lw->room))
        return zr_internal(err);
out:
    return st;
}

static zarr_status encode_inner(void *arg, uint64_t at, const struct zr_work *w,
                                zarr_error *err)
{
    struct shard_writer *s = arg;
    const uint32_t i = (uint32_t)at;
    struct zr_leaf_write lw;
    zarr_status st = ZARR_OK;

    ZR_TRY(inner_leaf(s, i, &lw, err));
    if (s->in->is_shard)
        return encode_nested(w, s, i, &lw.old, err);
    ZR_TRY(zr_leaf_encode(w, &lw, err));
    s->result[i].out = lw.out;
    s->result[i].empty = lw.empty;
    s->result[i].filled = lw.filled;
    /* out is in the worker's buffer: copy it to a block */
    if (s->in->unsized && !lw.empty) {
        zarr_mem *block = &s->result[i].block;

        ZR_TRY(zr_pool_take(w->io->engine->pool, ZARR_DEVICE_CPU, 0,
                            ZR_MAX(lw.out.bytes, UINT64_C(64)), block, err));
        s->result[i].out = *block;
        s->result[i].out.bytes = lw.out.bytes;
        ZR_TRY(zr_mem_copy_bytes(w->io->engine->memory, &s->result[i].out, &lw.out,
                                 lw.out.bytes, &w->worker->copies, err));
        goto out;
    }
    /* Elements stored unchanged may be in the worker's block, which the next chunk
     * overwrites. */
    if (!lw.empty && lw.out.handle == w->worker->scratch[ZR_SCRATCH_BLOCK].handle) {
        zarr_mem room = lw.room;

        room.bytes = lw.out.bytes;
        ZR_TRY(zr_mem_copy_bytes(w->io->engine->memory, &room, &lw.out, lw.out.bytes,
                                 &w->worker->copies, err));
        s->result[i].out = room;
    }
out:
    zr_worker_trim(w->worker);
    return st;
}

static zarr_status encode_together(struct shard_writer *s, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    for (uint32_t i = 0; i < s->n; i++)
        ZR_TRY(inner_leaf(s, i, &s->leaf[i], err));
    ZR_TRY(zr_leaves_encode(s->w, s->leaf, s->n, s->sw->threads, err));
    for (uint32_t i = 0; i < s->n; i++)
        s->result[i] = (struct inner_result){.out = s->leaf[i].out,
                                             .empty = s->leaf[i].empty,
                                             .filled = s->leaf[i].filled};
out:
    return st;
}

static zarr_status append_batch(struct shard_writer *s, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    for (uint32_t i = 0; i < s->n; i++) {
        uint64_t id = inner_id(s->lv, s->proj[i].chunk);

        ZR_TRY(keep_until(s, id, err));
        if (!s->result[i].empty)
            ZR_TRY(append(s, id, &s->result[i].out, err));
        s->filled = s->filled && s->result[i].filled;
        s->next = id + 1;
    }
out:
    return st;
}

static void release_batch(struct shard_writer *s)
{
    for (uint32_t i = 0; i < s->n; i++)
        zr_pool_give(s->w->io->engine->pool, &s->result[i].block);
    memset(s->result, 0, s->batch * sizeof *s->result);
    s->n = 0;
    zr_arena_reset(&s->lists);
}

static zarr_status write_inners(struct shard_writer *s, zarr_error *err)
{
    const struct zr_parallel_options opts = {.max_threads = s->sw->threads,
                                             .grain = 1,
                                             .item_ns = 2000 + s->in->decoded_bytes};
    struct zr_projector *p = NULL;
    struct zr_projection proj;
    bool more = true;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_project_open_inner(
        &p, s->w->io->engine->alloc, s->sw->proj, s->lv->inner_shape,
        s->lv->permuted ? s->lv->order : NULL, s->sw->clip, err));
    while (more) {
        while (s->n < s->batch && (more = zr_next_unit(s->w->io, p, &proj))) {
            s->proj[s->n] = proj;
            if (!zr_projection_keep(&s->proj[s->n], &proj, &s->lists))
                ZR_TRY(zr_fail_memory(err, sizeof proj));
            s->n++;
        }
        if (s->leaf && s->n > 0)
            ZR_TRY(encode_together(s, err));
        else
            ZR_TRY(zr_workers_run(s->w, s->n, &opts, encode_inner, s, err));
        ZR_TRY(append_batch(s, err));
        release_batch(s);
    }
    ZR_TRY(keep_until(s, s->lv->n_inner_all, err));
out:
    release_batch(s);
    zr_project_free(p);
    return st;
}

/* ---- the shard --------------------------------------------------------- */

/* Number of inner chunks encoded before they are appended: at least one per thread, and
 * beyond that no more than fit a few MiB of slots. */
static uint32_t batch_most(const struct shard_writer *s)
{
    uint64_t most = BATCH_BYTES / ZR_MAX(s->in->encoded_bound, UINT64_C(1));

    most = ZR_MAX(most, 2 * (uint64_t)ZR_MAX(s->sw->threads, 1u));
    return (uint32_t)ZR_MIN(ZR_MIN(most, (uint64_t)BATCH), s->lv->n_inner_all);
}

static zarr_status writer_init(struct shard_writer *s, zarr_error *err)
{
    const zarr_allocator *alloc = s->w->io->engine->alloc;
    uint64_t pairs = s->lv->n_inner_all * 2 * sizeof(uint64_t);
    uint64_t bound = s->lv->reps.rep[s->lv->chain->a2b + 1].n_bytes;
    zarr_status st = ZARR_OK;

    zr_arena_init(&s->lists, alloc);
    s->batch = batch_most(s);
    if (s->lv->unsized) /* unsized: the limit of a chunk, not a sum of bounds */
        bound = ZR_MIN(bound, s->w->io->engine->limits->chunk_bytes);
    if (!zr_add_u64(zr_encoded_most(s->w->io, bound, false), s->value.bytes,
                    &s->keep_most))
        s->keep_most = UINT64_MAX;
    s->pairs = zr_malloc(alloc, (size_t)pairs);
    s->proj = zr_malloc(alloc, s->batch * sizeof *s->proj);
    s->result = zr_calloc(alloc, s->batch, sizeof *s->result);
    if (!s->pairs || !s->proj || !s->result)
        ZR_TRY(zr_fail_memory(err, pairs));
    /* `serial`, which tests compare others with, encodes one chunk after another. So do
     * chunks with elements of several parts. */
    if (!s->w->io->no_direct && !s->w->io->parts && !s->in->is_shard &&
        zr_goes_lockstep(s->w->io, s->in->encode)) {
        s->leaf = zr_calloc(alloc, s->batch, sizeof *s->leaf);
        if (!s->leaf)
            ZR_TRY(zr_fail_memory(err, s->batch * sizeof *s->leaf));
    }
    memset(s->pairs, 0xff, (size_t)pairs);
    if (!s->in->is_shard && !s->in->unsized) {
        uint64_t bytes = 0;

        s->slot_bytes = s->in->encoded_bound;
        if (!zr_mul_u64(s->slot_bytes, s->batch, &bytes))
            ZR_TRY(zr_fail(err, ZARR_ERR_LIMIT, "the inner chunks are too large"));
        ZR_TRY(zr_pool_take(s->w->io->engine->pool, ZARR_DEVICE_CPU, 0, bytes, &s->slots,
                            err));
    }
    ZR_TRY(zr_pool_take(s->w->io->engine->pool, ZARR_DEVICE_CPU, 0,
                        ZR_MAX(s->lv->unsized ? s->lv->encoded_bound : bound,
                               s->value.bytes + s->lv->index_bytes),
                        &s->sw->block, err));
    if (!s->lv->shard->index_at_end)
        s->pos = s->lv->index_bytes;
    if (s->value.handle)
        ZR_TRY(zr_index_from_value(s->w, s->lv, &s->value, &s->old, err));
out:
    return st;
}

static void writer_deinit(struct shard_writer *s)
{
    const zarr_allocator *alloc = s->w->io->engine->alloc;

    zr_pool_give(s->w->io->engine->pool, &s->slots);
    zr_shard_index_free(s->old);
    zr_free(alloc, s->pairs);
    zr_free(alloc, s->proj);
    zr_free(alloc, s->result);
    zr_free(alloc, s->leaf);
    zr_arena_deinit(&s->lists);
}

static zarr_status write_index(struct shard_writer *s, zarr_error *err)
{
    zarr_mem dst;
    bool at_end = s->lv->shard->index_at_end;
    zarr_status st = ZARR_OK;

    if (at_end)
        ZR_TRY(out_room(s, s->lv->index_bytes, err));
    if (!zr_mem_slice(&s->sw->block, at_end ? s->pos : 0, s->lv->index_bytes, &dst))
        return zr_internal(err);
    ZR_TRY(zr_index_encode(s->w, s->lv, s->pairs, &dst, err));
    s->sw->out = s->sw->block;
    s->sw->out.bytes = s->pos + (at_end ? s->lv->index_bytes : 0);
out:
    return st;
}

/* Whether this shard need not be stored. Either all its inner chunks are missing and it
 * would read the same if it were missing itself, or it is an outermost, new shard whose
 * elements all equal the array's fill value. */
static bool shard_is_empty(const struct shard_writer *s)
{
    const size_t n = s->w->io->layout->item_bytes;

    return (!s->any &&
            (s->lv->fill == s->in->fill || memcmp(s->lv->fill, s->in->fill, n) == 0)) ||
           (s->sw->level == 0 && !s->old && s->filled);
}

/* Makes the value in sw->block; it is the first sw->out.bytes. */
static zarr_status shard_value(struct shard_writer *s, zarr_error *err)
{
    struct zr_shard_write *sw = s->sw;
    zarr_status st = ZARR_OK;

    ZR_TRY(writer_init(s, err));
    ZR_TRY(write_inners(s, err));
    sw->empty = shard_is_empty(s);
    sw->filled = s->filled && !s->old;
    if (!sw->empty && s->w->io->inner_order > ZARR_INNER_ORDER_C)
        ZR_TRY(zr_shard_reorder(s->w, s->lv, s->pairs, &sw->block, s->pos, err));
    if (!sw->empty)
        ZR_TRY(write_index(s, err));
out:
    if (s->result)
        release_batch(s);
    writer_deinit(s);
    return st;
}

/* Makes the value and runs the codecs around it: the bytes to store. */
static zarr_status shard_attempt(const struct zr_work *w, struct zr_shard_write *sw,
                                 zarr_error *err)
{
    const struct zr_level *lv = sw->lv;
    struct zr_pool *pool = w->io->engine->pool;
    struct shard_writer s = {.w = w,
                             .sw = sw,
                             .lv = lv,
                             .in = &w->io->layout->level[sw->level + 1],
                             .value = sw->old,
                             .filled = true};
    zarr_mem body = {0}, wrapped = {0};
    zarr_status st = ZARR_OK;

    sw->block = sw->out = (zarr_mem){0};
    if (sw->old.handle && lv->bytes_decode)
        ZR_TRY(zr_body_decode(w, lv, &sw->old, &body, &s.value, err));
    ZR_TRY(shard_value(&s, err));
    if (!sw->empty && lv->bytes_encode) {
        zr_pool_give(pool, &body);
        ZR_TRY(zr_body_encode(w, lv, &sw->out, &body, &wrapped, err));
        zr_pool_give(pool, &sw->block);
        sw->block = body;
        sw->out = wrapped;
        body = (zarr_mem){0};
    }
out:
    zr_pool_give(pool, &body);
    return st;
}

zarr_status zr_shard_write(const struct zr_work *w, struct zr_shard_write *sw,
                           zarr_error *err)
{
    const zarr_stats before = w->worker->stats;
    zarr_error e = {0};
    zarr_status st = shard_attempt(w, sw, &e);

    if (st == ZARR_ERR_CORRUPT && sw->proj->whole && sw->old.handle) {
        zr_pool_give(w->io->engine->pool, &sw->block);
        zr_forget_chunks(&w->worker->stats, &before);
        sw->old = (zarr_mem){0};
        return shard_attempt(w, sw, err);
    }
    if (st != ZARR_OK && err)
        *err = e;
    return st;
}
