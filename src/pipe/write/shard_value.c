/*
 * pipe/write/shard_value.c - keeps the new value of one shard while it is made: inner
 * chunks in C order of their coordinates, so that equal content gives equal bytes, and
 * the index after or before them; inner_order.c puts them into another order if the
 * caller wants it. Touched chunks are appended as they are encoded; untouched ones keep
 * their encoded bytes. Thread class: on the worker context.
 */
#include "pipe/write/shard_int.h"

#include <string.h>

/* ---- appending --------------------------------------------------------- */

bool zr_shard_is_made_there(const struct zr_io *io, const struct zr_level *lv)
{
    const struct zr_level *in = &io->layout->level[1];

    return io->layout->n_levels == 2 && !lv->bytes_encode &&
           zr_leaf_length_is_known(io, in) &&
           !zr_io_is_host(io, in->decode->fetch_device) && io->inner_order == 0 &&
           !io->sink && !io->no_direct;
}

/* A block for the value. Bytes that come from a device are copied there. A value that is
 * made on the device is made on the host if memory is short there. */
static zarr_status take_block(const struct zr_shard_writer *s, uint64_t bytes,
                              zarr_memory *block, zarr_error *err)
{
    const struct zr_io *io = s->w->io;
    const zarr_memory *tensor = &io->view.base;

    if (!s->w->on_host && !s->sw->stream && !s->sw->old.handle &&
        zr_shard_is_made_there(io, s->lv) &&
        zr_pool_take(io->engine->pool, tensor->device_type, tensor->device_id, bytes,
                     block, NULL) == ZARR_OK)
        return ZARR_OK;
    if (s->in->is_shard || zr_io_is_host(io, tensor->device_type) ||
        !(zr_leaf_rooms_can_wait(io, s->in) || zr_leaf_length_is_known(io, s->in)))
        return zr_pool_take(io->engine->pool, ZARR_DEVICE_CPU, 0, bytes, block, err);
    return zr_pool_take_staging(io->engine->pool, tensor->device_type, tensor->device_id,
                                bytes, block, err);
}

static zarr_status out_room(struct zr_shard_writer *s, uint64_t more, zarr_error *err)
{
    struct zr_pool *pool = s->w->io->engine->pool;
    uint64_t need = 0, want = 0, used = s->pos - s->base;
    zarr_memory bigger = {0};
    zarr_status st = ZARR_OK;

    if (!zr_add(s->pos, more, &need))
        return zr_fail(err, ZARR_ERR_LIMIT, "the shard grows beyond 64 bits");
    if (used + more <= s->sw->block.bytes)
        return ZARR_OK;
    want = ZR_MAX(need, s->sw->block.bytes + s->sw->block.bytes / 2);
    if (s->sw->stream) {
        if (used >= s->sw->stream->least) {
            ZR_TRY(zr_stream_out(s, false, err));
            used = s->pos - s->base;
        }
        want = used + more;
    }
    if (want <= s->sw->block.bytes)
        goto out;
    ZR_TRY(take_block(s, want, &bigger, err));
    if (used > 0)
        st = zr_mem_copy_bytes(s->w->io->engine->memory, &bigger, &s->sw->block, used,
                               &s->w->worker->copies, err);
    zr_pool_give(pool, &s->sw->block);
    s->sw->block = bigger;
out:
    return st;
}

/* Makes room for the next inner chunk. */
static zarr_status reserve_bytes(struct zr_shard_writer *s, uint64_t id, uint64_t bytes,
                                 zarr_error *err)
{
    zarr_status st = out_room(s, bytes, err);

    if (st != ZARR_OK)
        return st;
    s->pairs[2 * id] = s->pos;
    s->pairs[2 * id + 1] = bytes;
    s->pos += bytes;
    s->any = true;
    return ZARR_OK;
}

static zarr_status append_bytes(struct zr_shard_writer *s, uint64_t id,
                                const zarr_memory *bytes, zarr_error *err)
{
    zarr_memory dst;

    ZR_CHECK(reserve_bytes(s, id, bytes->bytes, err));
    if (!zr_mem_slice(&s->sw->block, s->pairs[2 * id] - s->base, bytes->bytes, &dst))
        return zr_internal(err);
    return zr_mem_copy_bytes(s->w->io->engine->memory, &dst, bytes, bytes->bytes,
                             &s->w->worker->copies, err);
}

static zarr_status index_names_more(zarr_error *err)
{
    return zr_fail(err, ZARR_ERR_CORRUPT,
                   "the shard's index names more bytes than its chunks can have");
}

/* Reads one old inner chunk of a shard that is streamed. */
static zarr_status stream_old(const struct zr_shard_writer *s, const struct zr_work *w,
                              const uint64_t entry[2], zarr_memory *out, zarr_error *err)
{
    struct zr_get g = {.key = s->sw->stream->key,
                       .offset = entry[0],
                       .known = "shard",
                       .version = s->sw->stream->version};

    if (entry[1] > zr_encoded_most(w->io, s->in->encoded_most, false, false))
        return index_names_more(err);
    ZR_CHECK(zr_worker_scratch(w, ZR_SCRATCH_OLD, ZARR_DEVICE_CPU,
                               ZR_MAX(entry[1], UINT64_C(64)), &g.dst, err));
    g.dst.bytes = entry[1];
    ZR_CHECK(zr_get(w, &g, err));
    *out = g.dst;
    return ZARR_OK;
}

/* Names an inner chunk by its coordinates in the shard. */
static zarr_status prefix_inner(const struct zr_level *lv, uint64_t id, zarr_status st,
                                zarr_error *err)
{
    uint64_t at[ZARR_MAX_RANK];
    char text[160];

    for (int32_t d = lv->ndim - 1; d >= 0; d--) {
        at[lv->to_array[d]] = id % lv->n_inner[d];
        id /= lv->n_inner[d];
    }
    zr_coord_text(text, sizeof text, at, lv->ndim);
    return zr_prefix(err, st, "chunk [%s] of the shard", text);
}

/* Whether an inner chunk of an outermost shard has no element of the array. */
static bool is_outside(const struct zr_shard_writer *s, uint64_t id)
{
    const struct zr_level *lv = s->lv;

    for (int32_t d = lv->ndim - 1; s->sw->clip && d >= 0; d--) {
        if (id % lv->n_inner[d] * lv->inner_shape[d] >= s->sw->clip[lv->order[d]])
            return true;
        id /= lv->n_inner[d];
    }
    return false;
}

/* Fails if the index has a bad entry for the chunk: what is not replaced is not lost. A
 * bad entry outside of the array, which no write can replace, is dropped. */
static zarr_status old_value(const struct zr_shard_writer *s, const struct zr_work *w,
                             uint64_t id, zarr_memory *out, zarr_error *err)
{
    zarr_status st;

    *out = (zarr_memory){0};
    if (!s->old || ZR_PAIR_IS_MISSING(s->old->entry + 2 * id))
        return ZARR_OK;
    st = zr_shard_index_check(s->old, id, err);
    if (st != ZARR_OK && is_outside(s, id)) {
        zr_error_clear(err);
        return ZARR_OK;
    }
    if (st != ZARR_OK)
        return prefix_inner(s->lv, id, st, err);
    if (s->sw->stream)
        return stream_old(s, w, &s->old->entry[2 * id], out, err);
    if (!zr_mem_slice(&s->value, s->old->entry[2 * id], s->old->entry[2 * id + 1], out))
        return zr_internal(err);
    return ZARR_OK;
}

/* Appends the old encoded bytes of the untouched inner chunks before `end`. */
static zarr_status keep_until(struct zr_shard_writer *s, uint64_t end, zarr_error *err)
{
    for (; s->next < end; s->next++) {
        zarr_memory bytes;

        ZR_CHECK(old_value(s, s->w, s->next, &bytes, err));
        if (!bytes.handle)
            continue;
        /* Entries of a hostile index may share bytes; a small shard must not become a
         * huge one. */
        if (bytes.bytes > s->keep_most)
            ZR_CHECK(index_names_more(err));
        s->keep_most -= bytes.bytes;
        ZR_CHECK(append_bytes(s, s->next, &bytes, err));
    }
    return ZARR_OK;
}

/* ---- inner chunks ------------------------------------------------------ */

/* The number of an inner chunk in C order. */
static uint64_t inner_id(const struct zr_level *lv, const uint64_t *chunk)
{
    uint64_t at = 0;

    for (int32_t d = 0; d < lv->ndim; d++)
        at = at * lv->n_inner[d] + chunk[d];
    return at;
}

zarr_status zr_shard_old_inner(const struct zr_shard_writer *s, const struct zr_work *w,
                               const struct zr_projection *proj, zarr_memory *out,
                               zarr_error *err)
{
    *out = (zarr_memory){0};
    return proj->full ? ZARR_OK : old_value(s, w, inner_id(s->lv, proj->chunk), out, err);
}

zarr_status zr_shard_append(struct zr_shard_writer *s, const struct zr_projection *proj,
                            const zarr_memory *bytes, bool filled, zarr_error *err)
{
    const uint64_t id = inner_id(s->lv, proj->chunk);

    ZR_CHECK(keep_until(s, id, err));
    if (bytes)
        ZR_CHECK(append_bytes(s, id, bytes, err));
    s->filled = s->filled && filled;
    s->next = id + 1;
    return ZARR_OK;
}

zarr_status zr_shard_reserve(struct zr_shard_writer *s, const struct zr_leaf_write *lw,
                             zarr_error *err)
{
    const uint64_t id = inner_id(s->lv, lw->proj->chunk);

    ZR_CHECK(keep_until(s, id, err));
    if (!lw->empty)
        ZR_CHECK(reserve_bytes(s, id, lw->out.bytes, err));
    s->filled = s->filled && lw->filled;
    s->next = id + 1;
    return ZARR_OK;
}

bool zr_shard_find_reserved(const struct zr_shard_writer *s, struct zr_leaf_write *lw)
{
    const uint64_t id = inner_id(s->lv, lw->proj->chunk);

    return zr_mem_slice(&s->sw->block, s->pairs[2 * id] - s->base, s->pairs[2 * id + 1],
                        &lw->room);
}

void zr_shard_note_answer(struct zr_shard_writer *s, const struct zr_leaf_write *lw)
{
    const uint64_t id = inner_id(s->lv, lw->proj->chunk);

    s->filled = s->filled && lw->filled;
    if (!lw->empty)
        return;
    s->gap = ZR_MIN(s->gap, s->pairs[2 * id]);
    s->pairs[2 * id] = s->pairs[2 * id + 1] = ZR_INDEX_MISSING;
}

/* ---- the value --------------------------------------------------------- */

static zarr_status value_room(struct zr_shard_writer *s, zarr_error *err)
{
    const zarr_allocator *alloc = s->w->io->engine->alloc;
    uint64_t pairs = s->lv->n_inner_all * 2 * sizeof(uint64_t);
    uint64_t bound = s->lv->reps.rep[s->lv->chain->a2b + 1].n_bytes;
    const struct zr_shard_stream *stream = s->sw->stream;

    if (s->lv->unsized) /* unsized: the limit of a chunk, not a sum of bounds */
        bound = ZR_MIN(bound, s->w->io->engine->limits->chunk_bytes);
    if (!zr_add(zr_encoded_most(s->w->io, bound, false, false),
                stream ? stream->old_bytes : s->value.bytes, &s->keep_most))
        s->keep_most = UINT64_MAX;
    s->pairs = zr_malloc(alloc, (size_t)pairs);
    if (!s->pairs)
        return zr_fail_memory(err, pairs);
    memset(s->pairs, 0xff, (size_t)pairs);
    return take_block(s,
                      stream ? stream->window
                             : ZR_MAX(s->lv->unsized ? s->lv->encoded_bound : bound,
                                      s->value.bytes + s->lv->index_bytes),
                      &s->sw->block, err);
}

zarr_status zr_shard_begin(struct zr_shard_writer *s, const struct zr_work *w,
                           struct zr_shard_write *sw, zarr_error *err)
{
    *s = (struct zr_shard_writer){.w = w,
                                  .engine = w->io->engine,
                                  .sw = sw,
                                  .lv = sw->lv,
                                  .in = &w->io->layout->level[sw->level + 1],
                                  .value = sw->old,
                                  .gap = UINT64_MAX,
                                  .filled = true};
    sw->block = sw->out = (zarr_memory){0};
    sw->counts = (struct zr_chunk_counts){0};
    if (sw->old.handle && s->lv->bytes_decode)
        ZR_CHECK(zr_body_decode(w, s->lv, &sw->old, &s->body, &s->value, err));
    ZR_CHECK(value_room(s, err));
    if (!s->lv->shard->index_at_end)
        s->pos = s->lv->index_bytes;
    s->base = sw->stream ? s->pos : 0;
    if (sw->stream) /* those of a first try */
        zr_shard_stream_end(sw->stream, w->io->store);
    if (sw->stream && sw->stream->old_bytes)
        ZR_CHECK(zr_stream_old_index(s, err));
    if (s->value.handle)
        ZR_CHECK(zr_index_from_value(w, s->lv, &s->value, &s->old, err));
    s->missing = s->old ? s->in : sw->missing;
    return ZARR_OK;
}

void zr_shard_close(struct zr_shard_writer *s)
{
    if (!s->engine)
        return;
    zr_pool_give(s->engine->pool, &s->body);
    zr_shard_index_free(s->old);
    zr_free(s->engine->alloc, s->pairs);
    s->old = NULL;
    s->pairs = NULL;
}

/* The host encodes the index. */
static zarr_status write_index(struct zr_shard_writer *s, zarr_error *err)
{
    const struct zr_engine *engine = s->w->io->engine;
    const bool at_end = s->lv->shard->index_at_end;
    uint64_t *own = NULL;
    zarr_memory dst, host;
    zarr_status st = ZARR_OK;

    if (at_end)
        ZR_TRY(out_room(s, s->lv->index_bytes, err));
    if (!zr_mem_slice(&s->sw->block, at_end ? s->pos - s->base : 0, s->lv->index_bytes,
                      &dst))
        return zr_internal(err);
    host = dst;
    if (!zr_device_is_host(engine->memory, dst.device_type))
        ZR_TRY(zr_index_memory(s->w, s->lv, &own, &host, err));
    ZR_TRY(zr_index_encode(s->w, s->lv, s->pairs, &host, err));
    if (own)
        ZR_TRY(zr_mem_copy_bytes(engine->memory, &dst, &host, host.bytes,
                                 &s->w->worker->copies, err));
    s->sw->out = s->sw->block;
    s->sw->out.bytes = s->pos + (at_end ? s->lv->index_bytes : 0);
out:
    zr_free(engine->alloc, own);
    return st;
}

/* The index of a streamed shard. In front of the chunks it is the last part. */
static zarr_status stream_index(struct zr_shard_writer *s, zarr_error *err)
{
    if (s->lv->shard->index_at_end) {
        ZR_CHECK(write_index(s, err));
        s->pos = s->sw->out.bytes;
        ZR_CHECK(zr_stream_out(s, true, err));
        return ZARR_OK;
    }
    ZR_CHECK(zr_stream_out(s, true, err));
    ZR_CHECK(out_room(s, s->lv->index_bytes, err));
    ZR_CHECK(write_index(s, err));
    s->base = 0;
    s->pos = s->lv->index_bytes;
    return zr_stream_out(s, true, err);
}

/* Whether this shard need not be stored. Either all its inner chunks are missing and it
 * would read the same if it were missing itself, or it is an outermost, new shard whose
 * elements all equal the array's fill value. */
static bool shard_is_empty(const struct zr_shard_writer *s)
{
    const size_t n = s->w->io->layout->item_bytes;

    return (!s->any &&
            (s->lv->fill == s->in->fill || memcmp(s->lv->fill, s->in->fill, n) == 0)) ||
           (s->sw->level == 0 && !s->old && s->filled);
}

/* Runs the codecs around the shard. */
static zarr_status wrap_value(struct zr_shard_writer *s, zarr_error *err)
{
    struct zr_pool *pool = s->w->io->engine->pool;
    struct zr_shard_write *sw = s->sw;
    zarr_memory wrapped = {0};

    zr_pool_give(pool, &s->body);
    ZR_CHECK(zr_body_encode(s->w, s->lv, &sw->out, &s->body, &wrapped, err));
    zr_pool_give(pool, &sw->block);
    sw->block = s->body;
    sw->out = wrapped;
    s->body = (zarr_memory){0};
    return ZARR_OK;
}

zarr_status zr_shard_end(struct zr_shard_writer *s, zarr_error *err)
{
    struct zr_shard_write *sw = s->sw;

    ZR_CHECK(keep_until(s, s->lv->n_inner_all, err));
    sw->empty = !sw->must_stay && shard_is_empty(s);
    sw->filled = s->filled && !s->old;
    if (!sw->empty && s->w->io->inner_order != 0)
        ZR_CHECK(zr_shard_reorder(s->w, s->lv, s->pairs, &sw->block, s->pos, err));
    if (!sw->empty)
        ZR_CHECK((sw->stream ? stream_index : write_index)(s, err));
    if (!sw->empty && s->lv->bytes_encode)
        ZR_CHECK(wrap_value(s, err));
    return ZARR_OK;
}
