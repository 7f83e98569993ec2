/*
 * pipe/read/open.c - opens shards: pins the object, fetches the index from its place,
 * decodes it by its own chain and has it checked. A shard with bytes->bytes codecs around
 * it is fetched and decoded whole and becomes a buffer, whose bytes the budget keeps as
 * long as the shard is open. Indexes are cached with the object's version; an index whose
 * version is unknown is not kept beyond its request. Thread class: on the worker context;
 * opened shards are counted and frozen.
 */
#include "pipe/read/read_int.h"

#include <string.h>

static void release_pin(struct zr_shard *s)
{
    struct zr_store_pin *pin = s->held;

    zr_store_pin_deinit(pin);
    zr_free(s->alloc, pin);
}

static void release_buffer(struct zr_shard *s)
{
    const struct zr_engine *engine = s->release_arg;

    zr_pool_give(engine->pool, &s->block);
}

/* The shards that zr_shard_open_object() gives live longer than their request. */
static void release_kept(struct zr_shard *s)
{
    const struct zr_engine *engine = s->release_arg;

    zr_budget_give_kept(engine->budget, s->kept_bytes);
    if (s->budget)
        zr_budget_give_kept(s->budget, s->kept_bytes);
    zr_held_shrink(&s->held_bytes, 0);
    release_buffer(s);
}

/* The budgets keep the bytes of a value in place of those that were taken for it. A block
 * of the pool may be a quarter larger; like other blocks it counts as what it is for. */
static void keep_value(struct zr_shard *s, struct zr_open *o, struct zarr_request *rq,
                       uint64_t taken)
{
    const struct zr_program *body = o->lv->bytes_decode;

    s->held_bytes = o->held;
    o->held = (struct zr_held){.bytes = 0};
    s->kept_bytes = !body || body->unsized ? s->block.bytes
                                           : ZR_MIN(s->block.bytes, zr_body_bytes(o->lv));
    zr_held_shrink(&s->held_bytes, s->kept_bytes);
    zr_request_keep(rq, s->kept_bytes, taken);
    s->budget = rq->has_own ? &rq->own : NULL;
    s->release = release_kept;
}

void zr_shard_drop_value(struct zr_shard *s)
{
    if (!s->block.handle)
        return;
    s->release(s);
    s->release = NULL;
    s->buffer = (zarr_memory){0};
}

void zr_shard_makes_room(struct zr_shard *s)
{
    for (; s; s = s->parent)
        zr_held_shrink(&s->held_bytes, 0);
}

static zarr_status shard_from_body(const struct zr_work *w, const struct zr_level *lv,
                                   const zarr_memory *encoded, struct zr_shard *s,
                                   zarr_error *err)
{
    ZR_CHECK(zr_body_decode(w, lv, encoded, &s->block, &s->buffer, err));
    s->release = release_buffer;
    s->release_arg = w->io->engine;
    s->base = 0;
    return zr_index_from_value(w, lv, &s->buffer, &s->index, err);
}

/* ---- objects ----------------------------------------------------------- */

static zarr_status missing_index(const struct zr_work *w, const struct zr_level *lv,
                                 struct zr_shard *s, zarr_error *err)
{
    struct zr_shard_pairs none = {.n = lv->n_inner_all};

    return zr_shard_index_make(&s->index, NULL, &none, w->io->engine->alloc, err);
}

/* Checks the GET of an index that was fetched ahead, as zr_get() does. Returns false if
 * it must be done again, which reports the error. */
static bool take_ahead(const struct zr_ahead *a, const struct zr_level *lv,
                       zarr_memory *dst)
{
    if (!a || a->op.status != ZARR_OK || a->op.done_bytes != lv->index_bytes)
        return false;
    *dst = a->op.mem;
    return true;
}

/* Makes the memory of an index, which a GET fills. */
static zarr_status index_begin(const struct zr_work *w, const struct zr_level *lv,
                               struct zr_index_value *value, struct zr_get *g,
                               zarr_error *err)
{
    const zarr_status st = zr_index_memory(w, lv, &value->own, &value->encoded, err);

    g->dst = value->encoded;
    return st;
}

/* Frees the memory of an index whose GET failed. */
static zarr_status index_end(const struct zr_work *w, struct zr_index_value *value,
                             zarr_status st)
{
    if (st != ZARR_OK) {
        zr_free(w->io->engine->alloc, value->own);
        value->own = NULL;
    }
    return st;
}

static zarr_status fetch_index(const struct zr_work *w, const struct zr_level *lv,
                               struct zr_shard *s, const struct zr_ahead *ahead,
                               zarr_error *err)
{
    struct zr_store_pin *pin = s->held;
    struct zr_index_value value = {.shard_bytes = UINT64_MAX};
    struct zr_get g = {.key = s->key,
                       .pin = pin,
                       .offset = lv->shard->index_at_end ? ZARR_STORE_SUFFIX : 0,
                       .is_index = true,
                       .shard_bytes = &value.shard_bytes};
    /* If only a GET tells the version, it cannot be compared before the next GET, so an
     * index with it is not worth caching. */
    const bool pinned = !ahead && !zr_store_version_is_none(&pin->version);
    zarr_status st = ZARR_OK;

    if (take_ahead(ahead, lv, &value.encoded)) {
        value.shard_bytes = ahead->op.object_bytes;
    } else if (ahead && ahead->op.status == ZARR_ERR_NOT_FOUND) {
        return missing_index(w, lv, s, err);
    } else {
        ZR_TRY(index_begin(w, lv, &value, &g, err));
        st = index_end(w, &value, zr_get(w, &g, err));
        if (st == ZARR_ERR_NOT_FOUND) /* only the store can say that it is missing */
            return missing_index(w, lv, s, err);
        ZR_TRY(st);
    }
    w->worker->stats.index_reads++;
    if (pin->object_bytes != UINT64_MAX)
        value.shard_bytes = pin->object_bytes;
    ZR_TRY(zr_index_parse(w, lv, &value, &s->index, err));
    if (pinned) {
        memcpy(s->index->version, pin->version.bytes, sizeof s->index->version);
        zr_index_cache_put(w->io->indexes, s->key, s->index);
    }
out:
    return st;
}

_Static_assert(sizeof((struct zr_shard_index *)0)->version == sizeof(zarr_store_version),
               "an index keeps the whole version of its object");

static bool find_cached_index(const struct zr_work *w, uint64_t n, struct zr_shard *s)
{
    const struct zr_store_pin *pin = s->held;
    struct zr_shard_index *x = NULL;

    if (zr_store_version_is_none(&pin->version))
        return false;
    x = zr_index_cache_get(w->io->indexes, s->key);
    if (x && x->n == n &&
        memcmp(x->version, pin->version.bytes, sizeof x->version) == 0) {
        w->worker->stats.index_hits++;
        s->index = x;
        return true;
    }
    zr_shard_index_free(x);
    return false;
}

/* Pins the object of a shard, unless that was done ahead. NOT_FOUND: it is missing. */
static zarr_status pin_shard(const struct zr_work *w, struct zr_shard *s,
                             struct zr_ahead *ahead, zarr_error *err)
{
    struct zr_store_pin *pin = ahead ? ahead->pin : NULL;
    zarr_status st = ZARR_OK;

    if (!pin) {
        pin = zr_calloc(s->alloc, 1, sizeof *pin);
        if (!pin)
            return zr_fail_memory(err, sizeof *pin);
        st = zr_store_pin_init(pin, w->io->store, s->key, err);
    } else {
        ahead->pin = NULL; /* moved */
        pin->key = s->key;
    }
    if (st != ZARR_OK) {
        zr_free(s->alloc, pin);
        return st;
    }
    s->held = pin;
    s->release = release_pin;
    return ZARR_OK;
}

static zarr_status open_object(const struct zr_work *w, const struct zr_level *lv,
                               struct zr_shard *s, struct zr_ahead *ahead,
                               zarr_error *err)
{
    zarr_status st = ZARR_OK;

    if (lv->bytes_decode) {
        struct zr_fetch f = {.key = s->key,
                             .slot = ZR_SCRATCH_FETCH,
                             .expect = lv->encoded_bound,
                             .most = zr_shard_most(w->io, lv)};
        zarr_memory encoded;

        st = zr_fetch_object(w, &f, &encoded, err);
        if (st == ZARR_ERR_NOT_FOUND)
            return missing_index(w, lv, s, err);
        ZR_TRY(st);
        ZR_TRY(shard_from_body(w, lv, &encoded, s, err));
        goto out;
    }
    st = pin_shard(w, s, ahead, err);
    if (st == ZARR_ERR_NOT_FOUND)
        return missing_index(w, lv, s, err);
    ZR_TRY(st);
    if (!find_cached_index(w, lv->n_inner_all, s))
        ZR_TRY(fetch_index(w, lv, s, ahead, err));
out:
    return st;
}

/* ---- nested shards ----------------------------------------------------- */

static zarr_status open_nested(const struct zr_work *w, const struct zr_level *lv,
                               struct zr_shard *s, const struct zr_open *o,
                               zarr_error *err)
{
    const uint64_t bytes = o->bytes;
    struct zr_get g = {
        .key = s->key, .pin = zr_shard_pin(s), .offset = s->base, .known = "shard"};
    struct zr_index_value index = {.shard_bytes = bytes};
    zarr_memory value = {0};
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_shard_index_check(o->parent->index, o->entry, err));
    if (lv->bytes_decode && bytes > zr_shard_most(w->io, lv)) /* decoded whole */
        ZR_FAIL(err, zr_excess(w->io),
                "a nested shard has %" PRIu64 " bytes (limit encoded_bytes)", bytes);
    if (s->parent->buffer.handle) {
        if (!zr_mem_slice(&s->parent->buffer, s->base, bytes, &value))
            ZR_TRY(zr_internal(err));
        if (lv->bytes_decode) {
            st = shard_from_body(w, lv, &value, s, err);
            goto out;
        }
        s->buffer = s->parent->buffer;
        st = zr_index_from_value(w, lv, &value, &s->index, err);
        goto out;
    }
    if (lv->bytes_decode) {
        ZR_TRY(
            zr_worker_scratch(w, ZR_SCRATCH_FETCH, ZARR_DEVICE_CPU, bytes, &g.dst, err));
        ZR_TRY(zr_get(w, &g, err));
        st = shard_from_body(w, lv, &g.dst, s, err);
        goto out;
    }
    if (bytes < lv->index_bytes)
        ZR_FAIL(err, ZARR_ERR_CORRUPT,
                "a nested shard of %" PRIu64 " bytes cannot hold its index of %" PRIu64,
                bytes, lv->index_bytes);
    g.offset += lv->shard->index_at_end ? bytes - lv->index_bytes : 0;
    g.is_index = true;
    if (!take_ahead(o->ahead, lv, &index.encoded)) {
        ZR_TRY(index_begin(w, lv, &index, &g, err));
        ZR_TRY(index_end(w, &index, zr_get(w, &g, err)));
    }
    w->worker->stats.index_reads++;
    ZR_TRY(zr_index_parse(w, lv, &index, &s->index, err));
out:
    return st;
}

/* ---- door -------------------------------------------------------------- */

/* What a shard that is decoded whole needs: its encoded bytes, unless they are in a
 * buffer already, its value, and if there are several codecs, what is between them. */
static struct zr_need open_need(const struct zr_open *o)
{
    const struct zr_level *lv = o->lv;
    struct zr_need need = {
        .host = zr_mul_cap(zr_body_bytes(lv), lv->bytes_decode->n > 1 ? 2 : 1)};

    if (!o->parent)
        need.host = zr_add_cap(need.host, lv->encoded_bound);
    else if (!o->parent->buffer.handle)
        need.host = zr_add_cap(need.host, ZR_MIN(o->bytes, lv->encoded_bound));
    return need;
}

zarr_status zr_open_exec(const struct zr_work *w, struct zr_open *o, zarr_error *err)
{
    const struct zr_level *lv = o->lv;
    struct zr_shard *s = zr_shard_new(w->io->engine->alloc, o->key, lv->ndim, o->origin);
    struct zr_need need = {0, 0};
    bool taken = false;
    zarr_status st = ZARR_OK;

    if (!s)
        return zr_fail_memory(err, sizeof *s);
    if (lv->bytes_decode && !w->granted) {
        need = open_need(o);
        ZR_TRY(zr_request_take(w->rq, need, err));
        taken = true;
    }
    if (!o->parent) {
        ZR_TRY(open_object(w, lv, s, o->ahead, err));
    } else {
        s->parent = zr_shard_ref(o->parent);
        s->base = o->offset;
        ZR_TRY(open_nested(w, lv, s, o, err));
    }
    if (s->block.handle) {
        keep_value(s, o, w->rq, need.host);
        taken = false;
    }
    o->shard = s;
    s = NULL;
out:
    zr_shard_free(s);
    if (taken)
        zr_request_give(w->rq, need);
    return zr_prefix_key(err, st, o->key);
}
