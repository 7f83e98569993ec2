/*
 * pipe/write/batch_units.c - writes units together:
 *
 * - those without inner chunks whose program has an implementation that takes batches
 *   (batch/encode.c), and all whose elements come from a device, shards included
 *   (shard_write.c). Of a device, units of several shapes go together.
 * - those of a store that is not written on the encoding thread, and shards that are
 *   fewer than the threads. They are encoded in a parallel loop: over the units if there
 *   are as many as threads, or if they have no chunks inside, else over the chunks of
 *   all shards. Their bytes are kept until all are encoded, and their PUTs are one
 *   submit.
 *
 * This file collects the units of a batch and carries it out: old_values.c reads what
 * they need, encode_units.c makes their values, put_units.c stores them. What cannot take
 * part is left to be written alone (units.c). Thread class: one thread per request;
 * helpers take worker contexts.
 */
#include "pipe/write/write_int.h"

#include <string.h>

/* ---- one batch ------------------------------------------------------------------ */

static zarr_status make_keys(struct zr_unit_batch *b, zarr_error *err)
{
    for (uint32_t i = 0; i < b->n; i++) {
        struct zr_unit *u = &b->unit[i];

        ZR_CHECK(zr_unit_key(&b->w, u->proj, &u->key, err));
        u->key = zr_arena_strndup(b->arena, u->key, strlen(u->key));
        if (!u->key)
            return zr_fail_memory(err, 1);
    }
    return ZARR_OK;
}

/* Marks the units as done, except those that are left: takes their chunks back from the
 * counters. */
static void mark_done(struct zr_unit_batch *b)
{
    zarr_stats *stats = &b->w.rq->locked.stats;

    zr_request_lock(b->w.rq);
    for (uint32_t i = 0; i < b->n; i++) {
        const struct zr_unit *u = &b->unit[i];
        struct zr_chunk_counts n = {.chunks_done = 1};

        *u->done = !u->is_left;
        if (*u->done)
            continue;
        if (u->shard) {
            n = u->shard->counts;
        } else {
            n.chunks_missing = u->leaf->empty;
            n.chunks_direct = u->leaf->direct;
        }
        stats->chunks_done -= n.chunks_done;
        stats->chunks_missing -= n.chunks_missing;
        stats->chunks_direct -= n.chunks_direct;
        stats->elements -= zr_projection_items(u->proj);
    }
    zr_request_unlock(b->w.rq);
}

static void give_blocks(struct zr_unit_batch *b)
{
    struct zr_pool *pool = b->w.io->engine->pool;

    for (uint32_t i = 0; i < b->n; i++)
        zr_pool_give(pool, b->shard ? &b->shard[i].block : &b->leaf[i].kept);
    zr_pool_give(pool, &b->values);
}

/* Whether the units are left to be written alone, because their chunks are too large for
 * the device. They went there one by one, so this worker counted all of them. */
static bool are_left(const struct zr_unit_batch *b, const zarr_stats *before,
                     zarr_status st)
{
    const struct zr_layout *l = b->w.io->layout;

    if (!zr_is_too_large(&b->w, b->shard ? &l->level[l->n_levels - 1] : b->lv, true, st))
        return false;
    zr_forget_chunks(&b->w.worker->stats, before);
    return true;
}

static zarr_status write_units(struct zr_unit_batch *b, zarr_error *err)
{
    struct zr_engine *engine = b->w.io->engine;
    zarr_error e = ZARR_ERROR_INIT;
    zarr_stats before;
    bool left = false;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_worker_take(engine, &b->w.rq->cancel, &b->w.worker, err));
    before = b->w.worker->stats;
    st = zr_request_take(b->w.rq, b->need, &e);
    if (st == ZARR_OK) {
        st = make_keys(b, &e);
        if (st == ZARR_OK && b->n_partial > 0)
            st = zr_old_values_run(b, &e);
        if (st == ZARR_OK && b->n > 0)
            st = zr_units_encode(b, &e);
        left = are_left(b, &before, st);
        if (st == ZARR_OK && b->n > 0)
            st = zr_units_put(b, &e);
        give_blocks(b);
        zr_old_values_end(b);
        zr_worker_leave_device(b->w.worker, true);
        zr_request_give(b->w.rq, b->need);
    }
    zr_request_merge(b->w.rq, b->w.worker);
    zr_worker_give(b->w.worker);
    st = left ? ZARR_OK : zr_pass(err, st, &e);
    if (st == ZARR_OK && !left)
        mark_done(b);
    if (b->w.io->progress)
        zr_request_report(b->w.rq);
out:
    return st;
}

/* The same for a request with parts. If a unit fails, all are left to be written alone,
 * to find the parts that fail with it. */
static zarr_status write_parts(struct zr_unit_batch *b, zarr_error *err)
{
    struct zarr_request *rq = b->w.rq;
    zarr_error e = ZARR_ERROR_INIT;
    zarr_stats before;
    zarr_status st = ZARR_OK;

    zr_request_lock(rq);
    before = rq->locked.stats;
    zr_request_unlock(rq);
    st = write_units(b, &e);
    if (st == ZARR_OK || !zr_parts_take(rq, st))
        return zr_pass(err, st, &e);
    zr_request_lock(rq); /* no other thread of the request works */
    zr_forget_chunks(&rq->locked.stats, &before);
    zr_request_unlock(rq);
    return ZARR_OK;
}

/* ---- collecting ------------------------------------------------------------------ */

/* The level of a unit that is written here; NULL: units.c writes it, and reports errors.
 * So do shards of a device whose PUT may meet a conflict: only there are their chunks
 * counted apart. */
static const struct zr_level *own_level(const struct zr_io *io,
                                        const struct zr_projection *proj, uint32_t n)
{
    const struct zr_level *lv = NULL;

    if (zr_layout_outer(io->layout, proj->shape, &lv, NULL) != ZARR_OK)
        return NULL;
    if (zr_units_join(io, lv, n) &&
        (!lv->is_shard || proj->full || !zr_store_is_by_version(io->store) ||
         !zr_level_is_batched(io, lv)))
        return lv;
    zr_level_give(lv);
    return NULL;
}

/* The most bytes of memory that units take. */
static uint64_t most_bytes(const struct zr_unit_batch *b)
{
    return zr_io_budget(b->w.io) / (b->is_batched ? zr_write_flights(b->w.io) : 2);
}

/* Adds a unit that is encoded in a loop to those that are kept until the PUTs, with its
 * old value. Returns the bytes of all, and what the threads need to encode. */
static uint64_t add_to_loop(struct zr_unit_batch *b, const struct zr_level *lv,
                            const struct zr_projection *proj)
{
    const uint64_t each = zr_unit_budget(lv, b->w.io->inner_order == 0);
    const uint64_t n = ZR_MIN(b->n + (uint64_t)1, (uint64_t)zr_io_threads(b->w.io));

    b->kept = zr_add_cap(b->kept, zr_mul_cap(lv->encoded_bound, proj->full ? 1 : 2));
    if (lv->bytes_decode) /* the values before the codecs around them */
        b->kept = zr_add_cap(b->kept, zr_mul_cap(zr_body_bytes(lv), proj->full ? 1 : 2));
    return zr_add_cap(b->kept, zr_mul_cap(n, each));
}

/* Adds the bytes that a unit needs: elements and encoded bytes, both once more between
 * two stages, and the old value. A shard needs its elements a batch at a time, and in
 * another order of inner chunks its value twice. */
static bool add_unit(struct zr_unit_batch *b, const struct zr_level *lv,
                     const struct zr_projection *proj, uint64_t *sum)
{
    uint64_t one =
        zr_unit_budget(lv, proj->full && (!lv->is_shard || b->w.io->inner_order == 0));

    if (!b->is_batched) {
        *sum = add_to_loop(b, lv, proj);
        return true;
    }
    return (lv->is_shard || (zr_add(one, lv->decoded_bytes, &one) &&
                             zr_add(one, lv->encoded_bound, &one))) &&
           zr_add(*sum, one, sum);
}

/* Which units are collected, and what is known of all. */
struct collecting {
    const struct zr_level *const *lv;
    const struct zr_projection *proj;
    uint32_t n;
    bool *tried, *done;
    uint32_t locks; /* how many may still take the lock of their old value */
};

/* Collects the units of one level, as many as the budgets have room for beside those that
 * are there; at least one of all that are batched. Returns false if there is no room for
 * more. */
static bool collect_level(struct zr_unit_batch *b, struct collecting *c,
                          const struct zr_level *lv)
{
    const uint64_t room = zr_device_room(b->w.io, zr_write_flights(b->w.io));
    const uint64_t before = b->need.device;
    uint32_t n = 0;

    for (uint32_t k = 0; k < c->n; k++) {
        struct zr_need need = {.host = b->need.host};

        if (c->lv[k] != lv || c->tried[k])
            continue;
        if (!c->proj[k].full && c->locks == 0)
            return false;
        c->locks -= !c->proj[k].full;
        need.device =
            b->shard ? zr_shards_on_device(b->w.io, lv, n + 1)
                     : zr_add_cap(before, zr_device_need(b->w.io, lv, true, true, n + 1));
        if (!add_unit(b, lv, &c->proj[k], &need.host))
            need.host = UINT64_MAX;
        if ((b->n > 0 || !b->is_batched) &&
            (need.host > most_bytes(b) || (!b->shard && need.device > room)))
            return false; /* belongs to the next round */
        b->need = need;
        b->n_partial += !c->proj[k].full;
        c->tried[k] = true;
        n++;
        b->by_block[k] = &b->unit[b->n];
        b->unit[b->n++] =
            (struct zr_unit){.proj = &c->proj[k], .lv = lv, .done = &c->done[k]};
    }
    return true;
}

/* Collects units of the first one's level, and of a device all that can be encoded with
 * them. The leaves of shards take their turns on a device. */
static void collect_units(struct zr_unit_batch *b, struct collecting *c)
{
    const bool joins =
        !b->shard && !zr_io_is_host(b->w.io, b->w.io->view.base.device_type);

    if (!collect_level(b, c, b->lv) || !joins)
        return;
    for (uint32_t k = 0; k < c->n; k++)
        if (c->lv[k] && !c->tried[k] && !c->lv[k]->is_shard &&
            zr_leaves_join(b->lv, c->lv[k]) && !collect_level(b, c, c->lv[k]))
            return;
}

static zarr_status batch_room(struct zr_unit_batch *b, uint32_t n, zarr_error *err)
{
    b->unit = zr_arena_alloc(b->arena, n * sizeof *b->unit);
    b->by_block = zr_arena_alloc(b->arena, n * sizeof(struct zr_unit *));
    b->n_blocks = n;
    if (b->lv->is_shard)
        b->shard = zr_arena_alloc(b->arena, n * sizeof *b->shard);
    else
        b->leaf = zr_arena_alloc(b->arena, n * sizeof *b->leaf);
    if (!b->unit || !b->by_block || (!b->shard && !b->leaf))
        return zr_fail_memory(err, n * sizeof *b->unit);
    memset(b->by_block, 0, n * sizeof(struct zr_unit *));
    if (b->shard)
        memset(b->shard, 0, n * sizeof *b->shard);
    else
        memset(b->leaf, 0, n * sizeof *b->leaf);
    return ZARR_OK;
}

zarr_status zr_write_batch(const struct zr_io *io, struct zarr_request *rq,
                           const struct zr_projection *proj, uint32_t n, bool *done,
                           zarr_error *err)
{
    const zarr_allocator *alloc = io->engine->alloc;
    const struct zr_level **lv = NULL;
    struct collecting c = {.proj = proj, .n = n, .done = done};
    struct zr_arena arena;
    bool *tried = NULL;
    zarr_status st = ZARR_OK;

    zr_arena_init(&arena, alloc);
    lv = zr_calloc(alloc, n, sizeof(struct zr_level *));
    tried = zr_calloc(alloc, n, sizeof *tried);
    if (!lv || !tried)
        ZR_FAIL_MEMORY(err, n * sizeof *tried);
    for (uint32_t i = 0; i < n; i++)
        lv[i] = own_level(io, &proj[i], n);
    c.lv = lv;
    c.tried = tried;
    for (uint32_t i = 0; i < n; i++) {
        struct zr_unit_batch b = {
            .w = {.io = io, .rq = rq}, .lv = lv[i], .arena = &arena};

        if (!lv[i] || tried[i])
            continue;
        zr_arena_reset(&arena);
        ZR_TRY(batch_room(&b, n, err));
        c.locks = zr_old_values_most(io);
        b.is_batched = zr_level_is_batched(io, lv[i]);
        collect_units(&b, &c);
        if (b.n < 2 && !b.is_batched)
            break; /* too large: each is written alone */
        ZR_TRY(io->parts ? write_parts(&b, err) : write_units(&b, err));
    }
out:
    for (uint32_t i = 0; lv && i < n; i++)
        zr_level_give(lv[i]);
    zr_free(alloc, lv);
    zr_free(alloc, tried);
    zr_arena_deinit(&arena);
    return st;
}
