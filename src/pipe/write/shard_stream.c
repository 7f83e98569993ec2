/*
 * pipe/write/shard_stream.c - which shards are written in parts, how much memory that
 * takes, and what goes to the store and comes from it meanwhile. A shard is written so if
 * its value would exceed the budget of the request.
 * Thread class: plain functions; those with struct zr_work on the worker context.
 */
#include "pipe/write/shard_int.h"

enum {
    STREAM_WINDOW_MOST = 8 << 20,
    STREAM_WINDOW_LEAST = 2 << 10,
    STREAM_WINDOW_PART = 8, /* of the budget */
    STREAM_AT_ONCE = 4,     /* parts that are on their way to a store that is far away */
    STREAM_BATCH_MOST = 64
};

bool zr_shard_can_stream(const struct zr_work *w, const struct zr_level *lv)
{
    const struct zr_io *io = w->io;

    return lv->is_shard && !lv->bytes_encode && !lv->bytes_decode && !io->sink &&
           !io->parts && io->inner_order == 0 &&
           zr_io_is_host(io, io->view.base.device_type) &&
           zr_store_can(io->store, ZARR_STORE_CAP_PARTS) &&
           /* an index in front is a short part, and the last one that is known */
           (lv->shard->index_at_end || zr_store_caps(io->store)->part_min_bytes == 0);
}

uint64_t zr_io_part_bytes(const struct zr_io *io)
{
    const struct zr_work w = {.io = io};
    const struct zr_level *lv = &io->layout->level[0];

    return zr_shard_can_stream(&w, lv) ? lv->decoded_bytes / lv->n_inner_all : 0;
}

static uint32_t stream_at_once(const zarr_store *store)
{
    return zr_store_can(store, ZARR_STORE_CAP_FAST_GET) ? 1 : STREAM_AT_ONCE;
}

uint64_t zr_shard_stream_init(struct zr_shard_stream *out, const struct zr_io *io,
                              const struct zr_level *lv, bool full)
{
    const struct zr_level *in = &io->layout->level[1];
    const uint64_t budget = zr_io_budget(io), each = zr_unit_budget(in, full);
    /* the new index and the old one, as numbers and encoded */
    const uint64_t index =
        zr_mul_cap(zr_add_cap(lv->index_bytes, zr_mul_cap(16, lv->n_inner_all)), 2);
    const uint64_t least =
        ZR_MAX(ZR_MAX(in->encoded_bound, lv->index_bytes), (uint64_t)STREAM_WINDOW_LEAST);
    const uint64_t part = zr_store_part_min_bytes(io->store, "c/0", lv->encoded_bound);
    const uint64_t most =
        zr_mul_cap(stream_at_once(io->store), ZR_MAX(part, (uint64_t)STREAM_WINDOW_MOST));
    uint64_t rest = zr_add_cap(index, each);

    rest = budget > rest ? budget - rest : 0;
    *out = (struct zr_shard_stream){
        .least = part, .window = ZR_MIN(rest, ZR_MIN(budget / STREAM_WINDOW_PART, most))};
    out->window = ZR_MAX(out->window, least);
    if (part > 1) /* the chunk that fills the window goes to the next part */
        out->window = ZR_MAX(out->window, zr_add_cap(part, least));
    rest = zr_add_cap(out->window, index);
    rest = budget > rest ? budget - rest : 0;
    out->batch = (uint32_t)ZR_MIN(ZR_MAX(rest / ZR_MAX(each, UINT64_C(1)), UINT64_C(1)),
                                  (uint64_t)STREAM_BATCH_MOST);
    return zr_add_cap(zr_add_cap(out->window, index), zr_mul_cap(each, out->batch));
}

uint64_t zr_shard_stream_least(const struct zr_io *io, const struct zr_level *lv,
                               bool full)
{
    struct zr_shard_stream s;
    struct zr_io tight = *io;

    tight.memory_bytes = 1;
    return zr_shard_stream_init(&s, &tight, lv, full);
}

zarr_status zr_shard_stream_look(const struct zr_work *w, struct zr_shard_stream *stream,
                                 zarr_store_version *version, zarr_error *err)
{
    zarr_store_op op = {.verb = ZARR_STORE_STAT,
                        .flags = ZARR_STORE_OP_CHUNK |
                                 (version ? ZARR_STORE_OP_WANT_VERSION : 0u),
                        .key = stream->key};
    zarr_error why = {0};
    zarr_status st = zr_store_op_run(w, &op, &why);

    stream->old_bytes = 0;
    stream->version = version;
    if (version)
        *version = (zarr_store_version){{0}};
    if (st == ZARR_ERR_NOT_FOUND)
        return ZARR_OK;
    if (st != ZARR_OK)
        return zr_pass(err, st, &why);
    stream->old_bytes = op.object_bytes;
    if (!version)
        return ZARR_OK;
    *version = op.version;
    return zr_store_check_version(w->io->store, stream->key, version, err);
}

void zr_shard_stream_end(struct zr_shard_stream *stream, zarr_store *store)
{
    zr_store_end_parts(store, stream->key, stream->parts);
    stream->parts = NULL;
    stream->last_part = 1;
}

/* Makes parts of the bytes in memory from `at` on. Returns how many. Of a store with a
 * least length, all parts but the last one have it: some services want equal parts. */
static uint32_t stream_ops(struct zr_shard_writer *s, uint64_t at, bool is_all,
                           zarr_store_op *op)
{
    struct zr_shard_stream *stream = s->sw->stream;
    const uint64_t bytes = s->pos - s->base;
    const uint64_t at_once = stream_at_once(s->w->io->store);
    const bool is_late_index = s->base == 0 && stream->last_part > 1;
    const bool is_equal = stream->least > 1 && bytes >= stream->least && !is_late_index;
    uint64_t each = is_equal ? stream->least : bytes, n = 1;

    if (bytes == 0 || (stream->least > 1 && !is_equal && !is_all))
        return 0;
    if (is_equal)
        n = ZR_MIN(at_once, bytes / each);
    else if (stream->least <= 1 && !is_late_index)
        n = ZR_MIN(at_once, bytes);
    if (!is_equal)
        each = bytes / n;
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t rest = bytes - i * each;

        op[i] = (zarr_store_op){.verb = ZARR_STORE_PUT_PART,
                                .flags = ZARR_STORE_OP_CHUNK,
                                .key = stream->key,
                                .offset = s->base + i * each,
                                .length = is_equal || i + 1 < n ? each : rest,
                                .cancel = &s->w->rq->cancel,
                                .parts = stream->parts};
        /* what begins the value is the first part, also an index that comes late */
        op[i].part = op[i].offset == 0 ? 1 : ++stream->last_part;
        (void)zr_mem_slice(&s->sw->block, at + i * each, op[i].length, &op[i].mem);
    }
    return (uint32_t)n;
}

static zarr_status put_stream_ops(const struct zr_shard_writer *s, zarr_store_op *op,
                                  uint32_t n, zarr_error *err)
{
    for (uint32_t i = 0; i < n; i++)
        if (op[i].mem.bytes != op[i].length)
            return zr_internal(err);
    ZR_CHECK(zr_store_run(s->w->io->store, op, n, err));
    for (uint32_t i = 0; i < n; i++)
        if (op[i].status != ZARR_OK) /* zr_store_run() passes over NOT_FOUND */
            return zr_fail(err, op[i].status, "%s: a part of the new value has gone",
                           s->sw->stream->key);
    return ZARR_OK;
}

zarr_status zr_stream_out(struct zr_shard_writer *s, bool is_all, zarr_error *err)
{
    struct zr_shard_stream *stream = s->sw->stream;
    zarr_store_op op[STREAM_AT_ONCE];
    zarr_memory rest, begin;
    uint64_t at = 0;
    uint32_t n;

    if (s->pos == s->base)
        return ZARR_OK;
    if (!stream->parts)
        ZR_CHECK(zr_store_begin_parts(s->w->io->store, stream->key, stream->lock,
                                      &s->w->rq->cancel, &stream->parts, err));
    while ((n = stream_ops(s, at, is_all, op)) > 0) {
        const uint64_t end = op[n - 1].offset + op[n - 1].length;

        at += end - s->base;
        s->base = end;
        ZR_CHECK(put_stream_ops(s, op, n, err));
    }
    if (s->pos == s->base)
        return ZARR_OK;
    /* what is left is shorter than a part, so than what is before it */
    if (!zr_mem_slice(&s->sw->block, at, s->pos - s->base, &rest) ||
        !zr_mem_slice(&s->sw->block, 0, rest.bytes, &begin))
        return zr_internal(err);
    if (at > 0)
        return zr_mem_copy_bytes(s->w->io->engine->memory, &begin, &rest, rest.bytes,
                                 &s->w->worker->copies, err);
    return ZARR_OK;
}

zarr_status zr_stream_old_index(struct zr_shard_writer *s, zarr_error *err)
{
    const struct zr_shard_stream *stream = s->sw->stream;
    struct zr_get g = {.key = stream->key,
                       .known = "shard",
                       .version = stream->version,
                       .is_index = true};
    struct zr_index_value value = {.shard_bytes = stream->old_bytes};
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_shard_index_at(s->lv->shard, stream->old_bytes, s->lv->index_bytes,
                             &g.offset, err));
    ZR_TRY(zr_index_memory(s->w, s->lv, &value.own, &value.encoded, err));
    g.dst = value.encoded;
    st = zr_get(s->w, &g, err);
    if (st != ZARR_OK)
        zr_free(s->w->io->engine->alloc, value.own);
    else
        st = zr_index_parse(s->w, s->lv, &value, &s->old, err);
out:
    return st;
}
