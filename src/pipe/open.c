/*
 * pipe/open.c - shards and their indexes: hold the object still, fetch the
 * index from its place, decode it with its own chain, have it checked. A shard
 * behind bytes->bytes codecs is fetched and decoded whole and becomes a
 * buffer. Indexes are remembered by the object's version; one whose version
 * cannot be told is not remembered beyond its request.
 * Thread class: on the worker context; what is opened is counted and frozen.
 */
#include "pipe/pipe_int.h"

#include <string.h>

static void release_pin(struct zr_shard *s)
{
    struct zr_store_pin *pin = s->held;

    zr_store_pin_deinit(pin);
    zr_free(s->alloc, pin);
}

static void release_buffer(struct zr_shard *s)
{
    zr_pool_give(s->release_arg, &s->block);
}

/* ---- decoding an index ----------------------------------------------------------------
 */

/* An index is a small array of uint64 in host memory: the same steps, over a view of the
 * pairs. */
struct index_work {
    struct zr_io io;
    struct zr_layout layout;
    struct zr_piece pieces[ZARR_MAX_RANK];
    struct zr_target whole;
    struct zr_work work;
};

static void index_work_init(struct index_work *x, const struct zr_work *w,
                            const struct zr_level *lv, uint64_t *pairs)
{
    const struct zr_level *ix = lv->index;

    x->io = *w->io;
    x->io.no_direct = true;
    x->io.part.on = false;
    x->layout = (struct zr_layout){.item_bytes = 8, .swap_unit = 8};
    x->io.layout = &x->layout;
    x->work = (struct zr_work){.io = &x->io, .rq = w->rq, .worker = w->worker};
    zr_view_contiguous(&x->io.view, zr_mem_of_host(pairs, lv->n_inner_all * 16), ix->ndim,
                       ix->shape, 8, 0);
    zr_target_whole(&x->whole, x->pieces, ix->ndim, ix->shape);
}

static zarr_status decode_pairs(const struct zr_work *w, const struct zr_level *lv,
                                const zarr_mem *encoded, uint64_t **out, zarr_error *err)
{
    const struct zr_level *ix = lv->index;
    struct index_work x;
    uint64_t bytes = lv->n_inner_all * 16;
    zarr_mem block = {0};
    uint64_t *pairs = zr_malloc(w->io->engine->alloc, (size_t)bytes);
    zarr_status st = ZARR_OK;

    if (pairs == NULL)
        return zr_fail_memory(err, bytes);
    index_work_init(&x, w, lv, pairs);
    ZR_TRY(zr_decode_stages(&x.work, ix->decode, encoded, NULL, &block, err));
    ZR_TRY(zr_scatter_target(&x.work, ix->decode, &x.whole, &block, err));
    *out = pairs;
    pairs = NULL;
out:
    zr_free(w->io->engine->alloc, pairs);
    return st;
}

zarr_status zr_index_encode(const struct zr_work *w, const struct zr_level *lv,
                            uint64_t *pairs, const zarr_mem *dst, zarr_error *err)
{
    const struct zr_program *p = lv->index->encode;
    struct index_work x;
    zarr_mem block = {0};
    uint64_t used = 0;
    zarr_status st = ZARR_OK;

    index_work_init(&x, w, lv, pairs);
    ZR_TRY(zr_worker_scratch(w->worker, ZR_SCRATCH_INDEX, ZARR_DEVICE_CPU, 0,
                             p->decoded_bytes, &block, err));
    ZR_TRY(zr_gather_target(&x.work, p, &x.whole, &block, err));
    ZR_TRY(zr_encode_stages(&x.work, p, &block, dst, &used, err));
    if (used != lv->index_bytes)
        ZR_TRY(zr_internal(err));
out:
    return st;
}

/* encoded: the index's bytes; value_bytes: length of the shard's value, UINT64_MAX
 * unknown. */
static zarr_status index_parse(const struct zr_work *w, const struct zr_level *lv,
                               const zarr_mem *encoded, uint64_t value_bytes,
                               struct zr_shard_index **out, zarr_error *err)
{
    struct zr_shard_pairs in = {.n = lv->n_inner_all, .shard_bytes = value_bytes};
    uint64_t *pairs = NULL;
    zarr_status st = ZARR_OK;

    ZR_TRY(decode_pairs(w, lv, encoded, &pairs, err));
    in.pairs = pairs;
    if (!lv->shard->index_at_end || value_bytes != UINT64_MAX) {
        in.index_bytes = lv->index_bytes;
        in.index_offset = lv->shard->index_at_end ? value_bytes - lv->index_bytes : 0;
    }
    ZR_TRY(zr_shard_index_parse(out, &in, w->io->engine->alloc, err));
out:
    zr_free(w->io->engine->alloc, pairs);
    return zr_prefix(err, st, "shard index");
}

zarr_status zr_index_from_value(const struct zr_work *w, const struct zr_level *lv,
                                const zarr_mem *value, struct zr_shard_index **out,
                                zarr_error *err)
{
    zarr_mem encoded;
    uint64_t at = 0;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_shard_index_at(lv->shard, value->bytes, lv->index_bytes, &at, err));
    if (!zr_mem_slice(value, at, lv->index_bytes, &encoded))
        return zr_internal(err);
    st = index_parse(w, lv, &encoded, value->bytes, out, err);
out:
    return st;
}

/* ---- values that are buffers
 * ------------------------------------------------------------- */

/* Of a length that only the decoder knows; then to a block that stays. */
static zarr_status body_decode_loose(const struct zr_work *w, const struct zr_program *p,
                                     const zarr_mem *encoded, zarr_mem *block,
                                     zarr_mem *out, zarr_error *err)
{
    zarr_mem got = {0};
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_decode_grown(w, p, encoded, NULL, &got, err));
    ZR_TRY(zr_pool_take(w->io->engine->pool, ZARR_DEVICE_CPU, 0,
                        ZR_MAX(got.bytes, UINT64_C(64)), block, err));
    *out = *block;
    out->bytes = got.bytes;
    if (got.bytes != 0)
        ZR_TRY(zr_mem_copy_run(w->io->engine->memory, out, &got, got.bytes,
                               &w->worker->copies, err));
out:
    zr_worker_settle(w->worker);
    if (st != ZARR_OK)
        zr_pool_give(w->io->engine->pool, block);
    return st;
}

zarr_status zr_body_decode(const struct zr_work *w, const struct zr_level *lv,
                           const zarr_mem *encoded, zarr_mem *block, zarr_mem *out,
                           zarr_error *err)
{
    const struct zr_program *p = lv->bytes_decode;
    zarr_mem cur = *encoded, next = {0};
    zarr_status st = ZARR_OK;

    *block = *out = (zarr_mem){0};
    if (p->loose)
        return body_decode_loose(w, p, encoded, block, out, err);
    for (uint32_t i = 0; i < p->n; i++) {
        const struct zr_stage *s = &p->stage[i];
        uint64_t used = 0, room = s->kind == ZR_STAGE_COPY ? cur.bytes : s->out_bytes;

        if (i + 1 == p->n) {
            ZR_TRY(zr_pool_take(w->io->engine->pool, s->out_device, 0, room, block, err));
            next = *block;
        } else {
            ZR_TRY(zr_worker_scratch(w->worker, i % 2 == 0 ? ZR_SCRATCH_A : ZR_SCRATCH_B,
                                     s->out_device, 0, room, &next, err));
        }
        next.bytes = room;
        ZR_TRY(zr_stage_step(w, s, &cur, &next, &used, false, err));
        cur = next;
        cur.bytes = used;
    }
    *out = cur;
out:
    if (st != ZARR_OK)
        zr_pool_give(w->io->engine->pool, block);
    return st;
}

static zarr_status shard_from_body(const struct zr_work *w, const struct zr_level *lv,
                                   const zarr_mem *encoded, struct zr_shard *s,
                                   zarr_error *err)
{
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_body_decode(w, lv, encoded, &s->block, &s->buffer, err));
    s->release = release_buffer;
    s->release_arg = w->io->engine->pool;
    s->base = 0;
    ZR_TRY(zr_index_from_value(w, lv, &s->buffer, &s->index, err));
out:
    return st;
}

/* ---- objects
 * ---------------------------------------------------------------------------- */

static zarr_status missing_index(const struct zr_work *w, const struct zr_level *lv,
                                 struct zr_shard *s, zarr_error *err)
{
    struct zr_shard_pairs none = {.n = lv->n_inner_all};

    return zr_shard_index_parse(&s->index, &none, w->io->engine->alloc, err);
}

static bool version_known(const zarr_store_version *v)
{
    const zarr_store_version none = {{0, 0, 0, 0}};

    return memcmp(v, &none, sizeof(none)) != 0;
}

static zarr_status fetch_index(const struct zr_work *w, const struct zr_level *lv,
                               struct zr_shard *s, zarr_error *err)
{
    struct zr_store_pin *pin = s->held;
    zarr_store_op op = {.verb = ZARR_STORE_GET,
                        .flags = ZR_STORE_OP_PINNED,
                        .key = s->key,
                        .length = lv->index_bytes,
                        .lock = pin,
                        .object_bytes = UINT64_MAX};
    uint64_t value_bytes = 0;
    /* One that only the GET tells cannot be compared before the next GET: no use in
     * remembering an index by it. */
    const bool pinned = version_known(&pin->version);
    zarr_status st = ZARR_OK;

    if (lv->shard->index_at_end)
        op.offset = ZARR_STORE_SUFFIX;
    ZR_TRY(zr_worker_scratch(w->worker, ZR_SCRATCH_INDEX, ZARR_DEVICE_CPU, 0,
                             lv->index_bytes, &op.mem, err));
    st = zr_store_op_run(w, &op, err);
    if (st == ZARR_ERR_NOT_FOUND) /* the store's word, and nobody else's */
        return missing_index(w, lv, s, err);
    ZR_TRY(st);
    w->worker->stats.index_reads++;
    if (op.done_bytes != lv->index_bytes)
        ZR_TRY(zr_fail(err, ZARR_ERR_CORRUPT,
                       "a shard of %" PRIu64 " bytes cannot hold its index of %" PRIu64,
                       op.done_bytes, lv->index_bytes));
    value_bytes = pin->object_bytes != UINT64_MAX ? pin->object_bytes : op.object_bytes;
    ZR_TRY(index_parse(w, lv, &op.mem, value_bytes, &s->index, err));
    if (pinned) {
        memcpy(s->index->version, &pin->version, sizeof(s->index->version));
        zr_index_cache_put(w->io->indexes, s->key, s->index);
    }
out:
    return st;
}

static bool cached_index(const struct zr_work *w, uint64_t n, struct zr_shard *s)
{
    const struct zr_store_pin *pin = s->held;
    struct zr_shard_index *x = NULL;

    if (!version_known(&pin->version))
        return false;
    x = zr_index_cache_get(w->io->indexes, s->key);
    if (x != NULL && x->n == n &&
        memcmp(x->version, &pin->version, sizeof(x->version)) == 0) {
        w->worker->stats.index_hits++;
        s->index = x;
        return true;
    }
    zr_shard_index_free(x);
    return false;
}

static zarr_status open_object(const struct zr_work *w, const struct zr_level *lv,
                               struct zr_shard *s, zarr_error *err)
{
    struct zr_store_pin *pin = NULL;
    zarr_status st = ZARR_OK;

    if (lv->bytes_decode != NULL) {
        struct zr_fetch f = {.key = s->key,
                             .slot = ZR_SCRATCH_FETCH,
                             .expect = lv->encoded_bound,
                             .most = zr_shard_most(w->io, lv)};
        zarr_mem encoded;

        st = zr_fetch_object(w, &f, &encoded, err);
        if (st == ZARR_ERR_NOT_FOUND)
            return missing_index(w, lv, s, err);
        ZR_TRY(st);
        ZR_TRY(shard_from_body(w, lv, &encoded, s, err));
        goto out;
    }
    pin = zr_calloc(s->alloc, 1, sizeof(*pin));
    if (pin == NULL)
        ZR_TRY(zr_fail_memory(err, sizeof(*pin)));
    st = zr_store_pin_init(pin, w->io->store, s->key, err);
    if (st != ZARR_OK) {
        zr_free(s->alloc, pin);
        if (st == ZARR_ERR_NOT_FOUND)
            st = missing_index(w, lv, s, err);
        goto out;
    }
    s->held = pin;
    s->release = release_pin;
    if (!cached_index(w, lv->n_inner_all, s))
        ZR_TRY(fetch_index(w, lv, s, err));
out:
    return st;
}

/* ---- nested shards
 * ------------------------------------------------------------------------- */

static zarr_status fetch_nested(const struct zr_work *w, struct zr_shard *s,
                                uint64_t offset, const zarr_mem *dst, zarr_error *err)
{
    return zr_fetch_range(w, s->key, s->parent, offset, dst, err);
}

static zarr_status open_nested(const struct zr_work *w, const struct zr_level *lv,
                               struct zr_shard *s, uint64_t bytes, zarr_error *err)
{
    zarr_mem value = {0};
    uint64_t at = 0;
    zarr_status st = ZARR_OK;

    if (lv->bytes_decode != NULL && bytes > zr_shard_most(w->io, lv)) /* taken whole */
        ZR_TRY(
            zr_fail(err, ZARR_ERR_CORRUPT, "an inner shard of %" PRIu64 " bytes", bytes));
    if (s->parent->buffer.handle != NULL) {
        if (!zr_mem_slice(&s->parent->buffer, s->base, bytes, &value))
            ZR_TRY(zr_internal(err));
        if (lv->bytes_decode != NULL) {
            st = shard_from_body(w, lv, &value, s, err);
            goto out;
        }
        s->buffer = s->parent->buffer;
        st = zr_index_from_value(w, lv, &value, &s->index, err);
        goto out;
    }
    if (lv->bytes_decode != NULL) {
        ZR_TRY(zr_worker_scratch(w->worker, ZR_SCRATCH_FETCH, ZARR_DEVICE_CPU, 0, bytes,
                                 &value, err));
        ZR_TRY(fetch_nested(w, s, s->base, &value, err));
        st = shard_from_body(w, lv, &value, s, err);
        goto out;
    }
    if (bytes < lv->index_bytes)
        ZR_TRY(zr_fail(err, ZARR_ERR_CORRUPT,
                       "an inner shard of %" PRIu64
                       " bytes cannot hold its index of %" PRIu64,
                       bytes, lv->index_bytes));
    at = s->base + (lv->shard->index_at_end ? bytes - lv->index_bytes : 0);
    ZR_TRY(zr_worker_scratch(w->worker, ZR_SCRATCH_INDEX, ZARR_DEVICE_CPU, 0,
                             lv->index_bytes, &value, err));
    ZR_TRY(fetch_nested(w, s, at, &value, err));
    w->worker->stats.index_reads++;
    ZR_TRY(index_parse(w, lv, &value, bytes, &s->index, err));
out:
    return st;
}

zarr_status zr_open_exec(const struct zr_work *w, struct zr_open *o, zarr_error *err)
{
    const struct zr_level *lv = o->lv;
    struct zr_shard *s = zr_shard_new(w->io->engine->alloc, o->key);
    zarr_status st = ZARR_OK;

    if (s == NULL)
        return zr_fail_memory(err, sizeof(*s));
    if (o->parent == NULL) {
        ZR_TRY(open_object(w, lv, s, err));
    } else {
        s->parent = zr_shard_ref(o->parent);
        s->base = o->offset;
        ZR_TRY(open_nested(w, lv, s, o->bytes, err));
    }
    o->shard = s;
    s = NULL;
out:
    zr_shard_free(s);
    return zr_prefix(err, st, "%s", o->key);
}
