/*
 * pipe/write/shard_session.c - one shard that several requests write, each a box of whole
 * inner chunks in C order. So a program writes a shard that is larger than its memory.
 * The session holds the lock of the shard's key until the shard is stored. Another writer
 * may have memory and wait for that lock. So the session waits for its memory before it
 * takes the lock, and keeps it (zr_budget_keep()): its requests wait for none. Thread
 * class: solo.
 */
#include "pipe/write/shard_int.h"

#include <string.h>

struct zr_shard_session {
    struct zr_engine *engine;
    zarr_store *store;
    struct zr_index_cache *indexes;
    const struct zr_level *lv;
    struct zr_str key;
    void *lock;
    uint64_t chunk[ZARR_MAX_RANK], origin[ZARR_MAX_RANK], clip[ZARR_MAX_RANK];
    uint64_t at[ZARR_MAX_RANK]; /* the next inner chunk, as the shard orders dimensions */
    uint64_t kept;              /* bytes of the context's memory */
    struct zr_shard_stream stream;
    zarr_store_version version; /* of the old object */
    struct zr_shard_write sw;
    struct zr_shard_writer s;
    bool at_end, failed, stored;
};

/* ---- boxes ---------------------------------------------------------------------- */

/* Number of inner chunks with elements of the array in a dimension of the shard. */
static uint64_t count_inners(const struct zr_shard_session *x, int32_t i)
{
    return zr_ceil_div_u64(x->clip[x->lv->order[i]], x->lv->inner_shape[i]);
}

/* Sets n to the inner chunks of the next box: a run in C order that is a box. */
static void choose_box(const struct zr_shard_session *x, uint64_t most, uint64_t *n)
{
    uint64_t each = 1;
    int32_t i = x->lv->ndim;

    for (int32_t d = 0; d < x->lv->ndim; d++)
        n[d] = 1;
    while (i-- > 0) {
        const uint64_t left = count_inners(x, i) - x->at[i];

        n[i] = ZR_MIN(left, ZR_MAX(most / each, UINT64_C(1)));
        each = zr_mul_cap(each, n[i]);
        if (x->at[i] != 0 || n[i] < left)
            break;
    }
}

static void session_advance(struct zr_shard_session *x, const uint64_t *n)
{
    for (int32_t i = x->lv->ndim - 1; i >= 0; i--) {
        x->at[i] += n[i];
        if (x->at[i] < count_inners(x, i))
            return;
        x->at[i] = 0;
    }
    x->at_end = true;
}

bool zr_shard_session_next(struct zr_shard_session *x, uint64_t bytes, uint64_t *start,
                           uint64_t *count)
{
    const struct zr_level *lv = x->lv;
    uint64_t n[ZARR_MAX_RANK] = {0}, inner = lv->reps.rep[0].n_bytes;

    if (x->at_end)
        return false;
    for (int32_t i = 0; i < lv->ndim; i++)
        inner /= lv->n_inner[i];
    choose_box(x, bytes / ZR_MAX(inner, UINT64_C(1)), n);
    for (int32_t i = 0; i < lv->ndim; i++) {
        const uint64_t d = lv->order[i], from = x->at[i] * lv->inner_shape[i];

        start[d] = x->origin[d] + from;
        count[d] = ZR_MIN(n[i] * lv->inner_shape[i], x->clip[d] - from);
    }
    session_advance(x, n);
    return true;
}

/* ---- the shard ------------------------------------------------------------------ */

static zarr_status session_level(struct zr_shard_session *x, const struct zr_io *io,
                                 zarr_error *err)
{
    const struct zr_grid *grid = io->layout->grid;
    uint64_t shape[ZARR_MAX_RANK];

    for (int32_t d = 0; d < grid->ndim; d++)
        zr_grid_extent(grid, d, x->chunk[d], &x->origin[d], &shape[d]);
    ZR_CHECK(zr_layout_outer(io->layout, shape, &x->lv, err));
    for (int32_t d = 0; d < grid->ndim; d++)
        x->clip[d] = ZR_MIN(shape[d], grid->shape[d] - x->origin[d]);
    return ZARR_OK;
}

/* Waits for memory, but not for ever: a thread may have two sessions open. */
static zarr_status session_reserve(struct zr_shard_session *x, const struct zr_io *io,
                                   uint64_t bytes, zarr_error *err)
{
    struct zr_budget *b = x->engine->budget;
    zarr_error e = {0};
    const zarr_status st = zr_budget_take(b, bytes, ZR_HOLD_WAIT_NS, io->cancel, &e);

    if (st != ZARR_OK && st != ZARR_ERR_LIMIT)
        return zr_pass(err, st, &e);
    zr_error_clear(&e);
    zr_budget_keep(b, bytes, st == ZARR_OK ? bytes : 0);
    x->kept = bytes;
    return ZARR_OK;
}

zarr_status zr_shard_session_open(struct zr_shard_session **out, const struct zr_io *io,
                                  const uint64_t *chunk, zarr_error *err)
{
    const struct zr_plan_args where = {.layout = io->layout, .prefix = io->prefix};
    const struct zr_work w = {.io = io};
    const zarr_allocator *alloc = io->engine->alloc;
    struct zr_shard_session *x = zr_calloc(alloc, 1, sizeof *x);
    uint64_t need = 0;
    zarr_status st = ZARR_OK;

    *out = NULL;
    if (!x)
        return zr_fail_memory(err, sizeof *x);
    x->engine = io->engine;
    x->store = io->store;
    x->indexes = io->indexes;
    zr_str_init(&x->key, alloc);
    memcpy(x->chunk, chunk, (size_t)io->layout->grid->ndim * sizeof *chunk);
    ZR_TRY(session_level(x, io, err));
    zr_plan_key(&where, chunk, &x->key);
    ZR_TRY(zr_str_status(&x->key, err));
    if (!zr_shard_can_stream(&w, x->lv))
        ZR_FAIL(err, ZARR_ERR_UNSUPPORTED, "%s: this shard cannot be written in parts",
                zr_str_text(&x->key));
    need = zr_shard_stream_init(&x->stream, io, x->lv, false);
    ZR_TRY(zr_memory_fits(io, need, "shard", err));
    ZR_TRY(session_reserve(x, io, need, err));
    ZR_TRY(zr_store_lock(x->store, zr_str_text(&x->key), io->cancel, &x->lock, err));
    x->stream.key = zr_str_text(&x->key);
    x->stream.lock = x->lock;
    *out = x;
    x = NULL;
out:
    zr_shard_session_free(x);
    return st;
}

/* Whether the array has all elements of the shard, which the session writes. */
static bool is_replaced(const struct zr_shard_session *x)
{
    return memcmp(x->clip, x->lv->shape, (size_t)x->lv->ndim * sizeof *x->clip) == 0;
}

static zarr_status session_begin(struct zr_shard_session *x, const struct zr_work *w,
                                 zarr_error *err)
{
    zarr_error why = {0};
    zarr_status st = ZARR_OK;

    x->sw.lv = x->sw.missing = x->lv;
    x->sw.clip = x->clip;
    x->sw.stream = &x->stream;
    if (is_replaced(x)) /* no element of an old value stays */
        return zr_shard_begin(&x->s, w, &x->sw, err);
    ZR_TRY(zr_shard_stream_look(
        w, &x->stream, zr_store_is_by_version(x->store) ? &x->version : NULL, err));
    st = zr_shard_begin(&x->s, w, &x->sw, &why);
    if (st == ZARR_ERR_CORRUPT && x->stream.old_bytes != 0) { /* as zr_shards_write() */
        zr_shard_close(&x->s);
        zr_pool_give(x->engine->pool, &x->sw.block);
        x->stream.old_bytes = 0;
        return zr_shard_begin(&x->s, w, &x->sw, err);
    }
    zr_pass(err, st, &why);
out:
    return st;
}

static zarr_status session_store(struct zr_shard_session *x, const struct zr_work *w,
                                 zarr_error *err)
{
    struct zr_unit u = {.proj = x->sw.proj,
                        .key = x->stream.key,
                        .lock = x->lock,
                        .conditional = x->stream.version != NULL,
                        .version = x->version,
                        .shard = &x->sw,
                        .stream = &x->stream};
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_shard_end(&x->s, err));
    ZR_TRY(zr_unit_store(w, &u, err));
    x->stored = true;
    zr_shard_stream_end(&x->stream, x->store);
    zr_unit_unlock(w->io, &u); /* the request may have to remove its object */
    x->lock = NULL;
out:
    zr_index_cache_drop(x->indexes, x->stream.key);
    return st;
}

zarr_status zr_shard_session_write(const struct zr_work *w,
                                   const struct zr_projection *proj, uint32_t threads,
                                   zarr_error *err)
{
    struct zr_shard_session *x = w->io->session;
    zarr_status st = ZARR_OK;

    if (x->failed || x->stored ||
        memcmp(proj->chunk, x->chunk, (size_t)x->lv->ndim * sizeof *x->chunk) != 0)
        return zr_fail(err, ZARR_ERR_INVALID, "%s: not the next box of this shard",
                       x->stream.key);
    x->failed = true;
    x->sw.proj = proj;
    if (!x->s.engine)
        st = session_begin(x, w, err);
    x->s.w = w;
    if (st == ZARR_OK)
        st = zr_shard_inners(&x->s, threads, err);
    if (st == ZARR_OK && x->at_end)
        st = session_store(x, w, err);
    x->failed = st != ZARR_OK;
    x->s.w = NULL;
    zr_worker_trim(w->worker);
    return zr_prefix_key(err, st, x->stream.key);
}

zarr_status zr_shard_session_check(const struct zr_io *io, zarr_error *err)
{
    const struct zr_work w = {.io = io};

    if (!io->session || zr_shard_can_stream(&w, io->session->lv))
        return ZARR_OK;
    return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                   "%s: a shard is written in parts from host memory, not from memory of "
                   "device type %" PRId32,
                   io->session->stream.key, io->view.base.device_type);
}

bool zr_shard_session_is_stored(const struct zr_shard_session *x)
{
    return x->stored;
}

void zr_shard_session_free(struct zr_shard_session *x)
{
    if (!x)
        return;
    zr_shard_close(&x->s);
    zr_pool_give(x->engine->pool, &x->sw.block);
    zr_shard_stream_end(&x->stream, x->store);
    zr_store_unlock(x->store, x->lock);
    zr_budget_give_kept(x->engine->budget, x->kept);
    if (x->lv)
        zr_level_give(x->lv);
    zr_str_deinit(&x->key);
    zr_free(x->engine->alloc, x);
}
