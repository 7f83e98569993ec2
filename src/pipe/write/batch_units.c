/*
 * pipe/write/batch_units.c - writes blocks together:
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
 * Old values that units need are read together (old_values.c). What cannot take part is
 * left to be written alone (units.c). Thread class: one thread per request; helpers take
 * worker contexts.
 */
#include "pipe/write/write_int.h"

#include <string.h>

/* One unit. */
struct object {
    const struct zr_projection *proj;
    const struct zr_level *lv;
    struct zr_old_value *old_value; /* NULL: it needs no old value */
    bool *done;
    zarr_memory out; /* its encoded bytes */
    bool empty;
    /* It is left to be written alone: another writer was faster, or its PUT failed in a
     * request with parts. */
    bool is_left;
    struct zr_chunk_counts counts;
};

/* Units that are written together: of one level, or of the levels of several shapes, each
 * after the other. */
struct objects {
    struct zr_work w;
    const struct zr_level *lv; /* of the first */
    bool is_batched;           /* as level_is_batched() */
    struct object *one;
    uint32_t n;
    struct zr_old_values old_values;
    struct zr_leaf_write *leaf;   /* one of these */
    struct zr_shard_write *shard; /* has room for all units */
    zarr_memory slab;             /* the encoded bytes of leaves */
    struct zr_need need;          /* bytes of the budgets */
    uint64_t kept;                /* of these, what is kept until the PUTs */
    bool locked;                  /* which units are being stored: those with a lock */
    struct zr_arena *arena;
};

/* ---- keys ----------------------------------------------------------------------- */

static zarr_status make_unit_key(const struct zr_work *w,
                                 const struct zr_projection *proj, const char **key,
                                 zarr_error *err)
{
    const struct zr_plan_args where = {.layout = w->io->layout, .prefix = w->io->prefix};

    zr_plan_key(&where, proj->chunk, &w->worker->key);
    *key = zr_str_text(&w->worker->key);
    return zr_str_status(&w->worker->key, err);
}

/* Fails with the error of unit i, whose key it gets. */
static zarr_status fail_unit(const struct objects *o, uint64_t i, zarr_status st,
                             const zarr_error *from, zarr_error *err)
{
    const char *key = NULL;

    if (st == ZARR_OK || st == ZARR_ERR_CANCELLED ||
        make_unit_key(&o->w, o->one[i < o->n ? i : 0].proj, &key, NULL))
        return zr_pass(err, st, from);
    return zr_prefix_key(err, zr_pass(err, st, from), key);
}

/* ---- storing -------------------------------------------------------------------- */

static bool object_has_turn(const struct objects *o, const struct object *u)
{
    return (u->old_value != NULL) == o->locked;
}

static void put_op(const struct objects *o, const struct object *u, const char *key,
                   zarr_store_op *op)
{
    *op = (zarr_store_op){.verb = u->empty ? ZARR_STORE_ERASE : ZARR_STORE_PUT,
                          .flags = ZARR_STORE_OP_CHUNK | o->w.io->unit_flags,
                          .key = key,
                          .status = ZARR_ERR_INTERNAL};
    if (!u->empty)
        op->mem = u->out;
    op->length = op->mem.bytes;
    if (u->old_value)
        zr_old_value_op(u->old_value, op);
}

/* Whether another writer changed or erased the old value meanwhile. */
static bool is_conflict(const struct object *u, zarr_status st)
{
    return (st == ZARR_ERR_CONFLICT || (st == ZARR_ERR_NOT_FOUND && !u->empty)) &&
           u->old_value && u->old_value->conditional;
}

static bool put_is_done(const struct object *u, zarr_status st)
{
    return st == ZARR_OK || (st == ZARR_ERR_NOT_FOUND && u->empty);
}

static zarr_status put_one(void *arg, uint64_t i, const struct zr_work *w,
                           zarr_error *err)
{
    struct objects *o = arg;
    struct object *u = &o->one[i];
    zarr_error e = ZARR_ERROR_INIT;
    const char *key = NULL;
    zarr_store_op op;
    zarr_status st = ZARR_OK;

    if (!object_has_turn(o, u))
        return ZARR_OK;
    ZR_TRY(make_unit_key(w, u->proj, &key, err));
    put_op(o, u, key, &op);
    st = zr_put_unit(w, u->proj->chunk, &op, &e);
    if (o->shard)
        zr_index_cache_drop(w->io->indexes, key);
    u->is_left = is_conflict(u, st);
    if (u->is_left)
        return ZARR_OK;
    st = zr_prefix_key(err, zr_pass(err, st, &e), key);
out:
    return st;
}

/* For stores that are written on the encoding thread, and sinks. */
static zarr_status put_each(struct objects *o, zarr_error *err)
{
    const struct zr_parallel_options opts = {.max_threads = zr_io_threads(o->w.io),
                                             .grain = 1,
                                             .item_ns = 20000 + o->lv->encoded_bound};

    return zr_workers_run(&o->w, o->n, &opts, put_one, o, err);
}

static zarr_status put_at_once(struct objects *o, zarr_error *err)
{
    const bool leaves_failed = o->w.io->parts && !o->is_batched;
    struct zr_puts puts;
    const char *key = NULL;
    uint32_t k = 0;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_puts_room(&puts, o->n, o->arena, err));
    for (int locked = 1; locked >= 0; locked--)
        for (uint32_t i = 0; i < o->n; i++) {
            struct object *u = &o->one[i];

            if ((u->old_value != NULL) != locked)
                continue;
            ZR_TRY(make_unit_key(&o->w, u->proj, &key, err));
            key = zr_arena_strndup(o->arena, key, strlen(key));
            if (!key)
                return zr_fail_memory(err, 1);
            put_op(o, u, key, zr_puts_add(&puts, u->old_value));
        }
    st = zr_puts_run(o->w.io, o->w.rq, &puts, &o->old_values, o->arena, err);
    for (int locked = 1; locked >= 0; locked--)
        for (uint32_t i = 0; i < o->n; i++) {
            struct object *u = &o->one[i];

            if ((u->old_value != NULL) != locked)
                continue;
            u->is_left = is_conflict(u, puts.op[k].status) ||
                         (leaves_failed && !put_is_done(u, puts.op[k].status));
            if (o->shard)
                zr_index_cache_drop(o->w.io->indexes, puts.op[k].key);
            k++;
        }
    ZR_TRY(st);
    if (puts.failed != UINT32_MAX && !leaves_failed)
        st = zr_prefix_key(err, zr_pass(err, puts.error.code, &puts.error),
                           puts.op[puts.failed].key);
out:
    return st;
}

/* Stores the units that have a lock, gives the locks back, and only then stores the
 * others: their PUTs may wait for another writer, which may wait for one of the locks. */
static zarr_status put_in_turns(struct objects *o, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    o->locked = true;
    if (o->old_values.n > 0)
        st = put_each(o, err);
    zr_old_values_end(o->w.io, &o->old_values);
    o->locked = false;
    if (st == ZARR_OK)
        st = put_each(o, err);
    return st;
}

static zarr_status put_all(struct objects *o, zarr_error *err)
{
    const bool each =
        o->w.io->sink ||
        (o->is_batched && zr_store_can(o->w.io->store, ZARR_STORE_CAP_FAST_GET));

    return each ? put_in_turns(o, err) : put_at_once(o, err);
}

/* ---- encoding ------------------------------------------------------------------- */

/* Bytes between the beginnings of two leaves. */
static uint64_t leaf_step(uint64_t bytes)
{
    return (bytes + ZR_CHUNK_ALIGNMENT - 1) / ZR_CHUNK_ALIGNMENT * ZR_CHUNK_ALIGNMENT;
}

static zarr_memory object_old_value(const struct object *u)
{
    return u->old_value ? u->old_value->old : (zarr_memory){0};
}

/* Room for each leaf. tight: for as many bytes as it will have. */
static zarr_status leaf_slab(struct objects *o, bool tight, zarr_error *err)
{
    uint64_t at = 0, most = 0;
    zarr_status st = ZARR_OK;

    for (uint32_t i = 0; i < o->n; i++) {
        const struct zr_leaf_write *lw = &o->leaf[i];
        const uint64_t bytes = tight ? lw->out.bytes : o->one[i].lv->encoded_bound;

        if (tight && lw->empty)
            continue;
        if (bytes > UINT64_MAX - ZR_CHUNK_ALIGNMENT || !zr_add(at, leaf_step(bytes), &at))
            ZR_FAIL(err, ZARR_ERR_LIMIT, "a batch too large for memory");
    }
    most = at;
    ZR_TRY(zr_take_slices(o->w.io, o->lv->encode->fetch_device, &most, 1, &o->slab, err));
    at = 0;
    for (uint32_t i = 0; i < o->n; i++) {
        struct zr_leaf_write *lw = &o->leaf[i];
        const uint64_t bytes = tight ? lw->out.bytes : o->one[i].lv->encoded_bound;

        if (tight && lw->empty)
            continue;
        if (!zr_mem_slice(&o->slab, at, bytes, &lw->room))
            return zr_internal(err);
        at += leaf_step(bytes);
    }
out:
    if (st != ZARR_OK && err)
        err->item = UINT64_MAX;
    return st;
}

static zarr_status late_slab(void *arg, bool in_place, zarr_error *err)
{
    return leaf_slab(arg, in_place, err);
}

/* Encodes a leaf to a block of its own, unless its elements are stored as the caller has
 * them. */
static zarr_status encode_one_leaf(void *arg, uint64_t i, const struct zr_work *w,
                                   zarr_error *err)
{
    struct zr_leaf_write *lw = &((struct objects *)arg)->leaf[i];
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
    return zr_shards_write(w, &((struct objects *)arg)->shard[i], 1, 1, err);
}

/* In a parallel loop over the units. */
static zarr_status encode_each(struct objects *o, zarr_error *err)
{
    const struct zr_parallel_options opts = {.max_threads = zr_io_threads(o->w.io),
                                             .grain = 1,
                                             .item_ns = 20000 + o->lv->decoded_bytes};

    return zr_workers_run(&o->w, o->n, &opts,
                          o->shard ? encode_one_shard : encode_one_leaf, o, err);
}

static zarr_status encode_leaves(struct objects *o, zarr_error *err)
{
    const struct zr_leaf_rooms rooms = {.take = late_slab, .arg = o};
    const bool wait = zr_leaf_rooms_can_wait(o->w.io, o->lv);
    zarr_error e = ZARR_ERROR_INIT;
    zarr_status st = ZARR_OK;

    for (uint32_t i = 0; i < o->n; i++)
        o->leaf[i] = (struct zr_leaf_write){.level = o->one[i].lv,
                                            .proj = o->one[i].proj,
                                            .old = object_old_value(&o->one[i])};
    if (o->is_batched && !wait)
        ZR_TRY(leaf_slab(o, false, err));
    st = o->is_batched ? zr_leaves_encode(&o->w, o->leaf, o->n, zr_io_threads(o->w.io),
                                          wait ? &rooms : NULL, &e)
                       : encode_each(o, &e);
    if (st != ZARR_OK)
        return fail_unit(o, e.item, st, &e, err);
    for (uint32_t i = 0; i < o->n; i++) {
        o->one[i].out = o->leaf[i].out;
        o->one[i].empty = o->leaf[i].empty;
        o->one[i].counts =
            (struct zr_chunk_counts){.chunks_done = 1,
                                     .chunks_missing = o->leaf[i].empty,
                                     .chunks_direct = o->leaf[i].direct,
                                     .elements = zr_projection_items(o->leaf[i].proj)};
    }
out:
    return st;
}

static zarr_status encode_shards(struct objects *o, zarr_error *err)
{
    const struct zr_grid *grid = o->w.io->layout->grid;
    const uint32_t threads = zr_io_threads(o->w.io);
    zarr_error e = ZARR_ERROR_INIT;
    zarr_status st = ZARR_OK;

    for (uint32_t i = 0; i < o->n; i++) {
        const struct zr_projection *proj = o->one[i].proj;
        uint64_t *clip = zr_arena_alloc(o->arena, ZARR_MAX_RANK * sizeof *clip);

        if (!clip)
            return zr_fail_memory(err, ZARR_MAX_RANK * sizeof *clip);
        for (int32_t d = 0; d < grid->ndim; d++)
            clip[d] = ZR_MIN(o->lv->shape[d], grid->shape[d] - proj->origin[d]);
        o->shard[i] = (struct zr_shard_write){.lv = o->lv,
                                              .missing = o->lv,
                                              .proj = proj,
                                              .clip = clip,
                                              .old = object_old_value(&o->one[i])};
    }
    st = o->is_batched || o->n < threads
             ? zr_shards_write(&o->w, o->shard, o->n, threads, &e)
             : encode_each(o, &e);
    if (st != ZARR_OK)
        return fail_unit(o, e.item, st, &e, err);
    for (uint32_t i = 0; i < o->n; i++) {
        o->one[i].out = o->shard[i].out;
        o->one[i].empty = o->shard[i].empty;
        o->one[i].counts = o->shard[i].counts;
    }
    return ZARR_OK;
}

/* ---- units ---------------------------------------------------------------------- */

/* Reads the old values that are needed. Units that cannot have theirs now leave the
 * group. */
static zarr_status objects_old_values(struct objects *o, zarr_error *err)
{
    struct zr_old_value *value = zr_arena_alloc(o->arena, (o->n + 1) * sizeof *value);
    struct zr_worker *worker = o->w.worker;
    uint32_t left = 0;
    zarr_status st = ZARR_OK;

    if (!value)
        return zr_fail_memory(err, o->n * sizeof *value);
    o->old_values.unit = value;
    for (uint32_t i = 0; i < o->n; i++) {
        struct object *u = &o->one[i];

        if (u->proj->full)
            continue;
        u->old_value = &value[o->old_values.n];
        value[o->old_values.n++] = (struct zr_old_value){.proj = u->proj, .lv = u->lv};
    }
    if (o->old_values.n == 0)
        return ZARR_OK;
    ZR_TRY(zr_old_values_run(o->w.io, o->w.rq, &o->old_values, o->arena, err));
    for (uint32_t i = 0; i < o->n; i++) {
        const struct object u = o->one[i];

        if (u.old_value && !u.old_value->ready)
            continue;
        worker->stats.read_modify_writes +=
            u.old_value && (!u.proj->whole || u.old_value->old.handle);
        o->one[left++] = u;
    }
    o->n = left;
out:
    return st;
}

/* Marks the units as done, except those that are left: takes their chunks back from the
 * counters. */
static void objects_mark_done(struct objects *o)
{
    zarr_stats *stats = &o->w.rq->locked.stats;

    zr_request_lock(o->w.rq);
    for (uint32_t i = 0; i < o->n; i++) {
        const struct object *u = &o->one[i];

        *u->done = !u->is_left;
        if (*u->done)
            continue;
        stats->chunks_done -= u->counts.chunks_done;
        stats->chunks_missing -= u->counts.chunks_missing;
        stats->chunks_direct -= u->counts.chunks_direct;
        stats->elements -= u->counts.elements;
    }
    zr_request_unlock(o->w.rq);
}

static void give_blocks(struct objects *o)
{
    struct zr_pool *pool = o->w.io->engine->pool;

    for (uint32_t i = 0; i < o->n; i++)
        zr_pool_give(pool, o->shard ? &o->shard[i].block : &o->leaf[i].kept);
    zr_pool_give(pool, &o->slab);
}

/* Whether the units are left to be written alone, because their chunks are too large for
 * the device. They went there one by one, so this worker counted all of them. */
static bool are_left(const struct objects *o, const zarr_stats *before, zarr_status st)
{
    const struct zr_layout *l = o->w.io->layout;

    if (!zr_is_too_large(&o->w, o->shard ? &l->level[l->n_levels - 1] : o->lv, true, st))
        return false;
    zr_forget_chunks(&o->w.worker->stats, before);
    return true;
}

static zarr_status write_objects(struct objects *o, zarr_error *err)
{
    struct zr_engine *engine = o->w.io->engine;
    const struct zr_need need = o->need;
    zarr_error e = ZARR_ERROR_INIT;
    zarr_stats before;
    bool left = false;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_worker_take(engine, &o->w.rq->cancel, &o->w.worker, err));
    before = o->w.worker->stats;
    st = zr_request_take(o->w.rq, need, &e);
    if (st == ZARR_OK) {
        st = objects_old_values(o, &e);
        if (st == ZARR_OK && o->n > 0)
            st = o->shard ? encode_shards(o, &e) : encode_leaves(o, &e);
        left = are_left(o, &before, st);
        if (st == ZARR_OK && o->n > 0)
            st = put_all(o, &e);
        give_blocks(o);
        zr_old_values_end(o->w.io, &o->old_values);
        zr_worker_leave_device(o->w.worker, true);
        zr_request_give(o->w.rq, need);
    }
    zr_request_merge(o->w.rq, o->w.worker);
    zr_worker_give(o->w.worker);
    st = left ? ZARR_OK : zr_pass(err, st, &e);
    if (st == ZARR_OK && !left)
        objects_mark_done(o);
    if (o->w.io->progress)
        zr_request_report(o->w.rq);
out:
    return st;
}

/* The same for a request with parts. If a unit fails, all are left to be written alone,
 * to find the parts that fail with it. */
static zarr_status write_parts(struct objects *o, zarr_error *err)
{
    struct zarr_request *rq = o->w.rq;
    zarr_error e = ZARR_ERROR_INIT;
    zarr_stats before;
    zarr_status st = ZARR_OK;

    zr_request_lock(rq);
    before = rq->locked.stats;
    zr_request_unlock(rq);
    st = write_objects(o, &e);
    if (st == ZARR_OK || !zr_parts_take(rq, st))
        return zr_pass(err, st, &e);
    zr_request_lock(rq); /* no other thread of the request works */
    zr_forget_chunks(&rq->locked.stats, &before);
    zr_request_unlock(rq);
    return ZARR_OK;
}

/* ---- groups --------------------------------------------------------------------- */

static bool level_is_batched(const struct zr_io *io, const struct zr_level *lv)
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

/* Whether n units of this level are written here. */
static bool level_joins(const struct zr_io *io, const struct zr_level *lv, uint32_t n)
{
    if (level_is_batched(io, lv))
        return true;
    return n > 1 && (lv->is_shard && n < zr_io_threads(io) ? can_put_together(io)
                                                           : zr_puts_together(io));
}

/* The level of a unit that is written here; NULL: units.c writes it, and reports errors.
 * So do shards of a device whose PUT may meet a conflict: only there are their chunks
 * counted apart. */
static const struct zr_level *own_level(const struct zr_io *io,
                                        const struct zr_projection *proj, uint32_t n)
{
    const bool conditional = !zr_store_can(io->store, ZARR_STORE_CAP_LOCK) &&
                             zr_store_can(io->store, ZARR_STORE_CAP_CONDITIONAL);
    const struct zr_level *lv = NULL;

    if (zr_layout_outer(io->layout, proj->shape, &lv, NULL) != ZARR_OK)
        return NULL;
    if (level_joins(io, lv, n) &&
        (proj->full || !lv->is_shard || !conditional || !level_is_batched(io, lv)))
        return lv;
    zr_level_give(lv);
    return NULL;
}

/* The most bytes of memory that units take. */
static uint64_t most_bytes(const struct objects *o)
{
    return zr_io_budget(o->w.io) / (o->is_batched ? zr_write_flights(o->w.io) : 2);
}

/* Adds a unit that is encoded in a loop to those that are kept until the PUTs, with its
 * old value. Returns the bytes of all, and what the threads need to encode. */
static uint64_t add_to_loop(struct objects *o, const struct zr_level *lv,
                            const struct zr_projection *proj)
{
    const uint64_t each = zr_unit_budget(lv, o->w.io->inner_order == 0);
    const uint64_t n = ZR_MIN(o->n + (uint64_t)1, (uint64_t)zr_io_threads(o->w.io));

    o->kept = zr_add_cap(o->kept, zr_mul_cap(lv->encoded_bound, proj->full ? 1 : 2));
    if (lv->bytes_decode) /* the values before the codecs around them */
        o->kept = zr_add_cap(o->kept, zr_mul_cap(zr_body_bytes(lv), proj->full ? 1 : 2));
    return zr_add_cap(o->kept, zr_mul_cap(n, each));
}

/* Adds the bytes that a unit needs: elements and encoded bytes, both once more between
 * two stages, and the old value. A shard needs its elements a batch at a time, and in
 * another order of inner chunks its value twice. */
static bool objects_add(struct objects *o, const struct zr_level *lv,
                        const struct zr_projection *proj, uint64_t *sum)
{
    uint64_t one =
        zr_unit_budget(lv, proj->full && (!lv->is_shard || o->w.io->inner_order == 0));

    if (!o->is_batched) {
        *sum = add_to_loop(o, lv, proj);
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
static bool collect_level(struct objects *o, struct collecting *c,
                          const struct zr_level *lv)
{
    const uint64_t room = zr_device_room(o->w.io, zr_write_flights(o->w.io));
    const uint64_t before = o->need.device;
    uint32_t n = 0;

    for (uint32_t k = 0; k < c->n; k++) {
        struct zr_need need = {.host = o->need.host};

        if (c->lv[k] != lv || c->tried[k])
            continue;
        if (!c->proj[k].full && c->locks == 0)
            return false;
        c->locks -= !c->proj[k].full;
        need.device =
            o->shard ? zr_shards_on_device(o->w.io, lv, n + 1)
                     : zr_add_cap(before, zr_device_need(o->w.io, lv, true, true, n + 1));
        if (!objects_add(o, lv, &c->proj[k], &need.host))
            need.host = UINT64_MAX;
        if ((o->n > 0 || !o->is_batched) &&
            (need.host > most_bytes(o) || (!o->shard && need.device > room)))
            return false; /* belongs to the next round */
        o->need = need;
        c->tried[k] = true;
        n++;
        o->one[o->n++] =
            (struct object){.proj = &c->proj[k], .lv = lv, .done = &c->done[k]};
    }
    return true;
}

/* Collects units of the first one's level, and of a device all that can be encoded with
 * them. The leaves of shards take their turns on a device. */
static void objects_collect(struct objects *o, struct collecting *c)
{
    const bool joins =
        !o->shard && !zr_io_is_host(o->w.io, o->w.io->view.base.device_type);

    if (!collect_level(o, c, o->lv) || !joins)
        return;
    for (uint32_t k = 0; k < c->n; k++)
        if (c->lv[k] && !c->tried[k] && !c->lv[k]->is_shard &&
            zr_leaves_join(o->lv, c->lv[k]) && !collect_level(o, c, c->lv[k]))
            return;
}

static zarr_status objects_room(struct objects *o, uint32_t n, zarr_error *err)
{
    o->one = zr_arena_alloc(o->arena, n * sizeof *o->one);
    if (o->lv->is_shard)
        o->shard = zr_arena_alloc(o->arena, n * sizeof *o->shard);
    else
        o->leaf = zr_arena_alloc(o->arena, n * sizeof *o->leaf);
    if (!o->one || (!o->shard && !o->leaf))
        return zr_fail_memory(err, n * sizeof *o->one);
    if (o->shard)
        memset(o->shard, 0, n * sizeof *o->shard);
    else
        memset(o->leaf, 0, n * sizeof *o->leaf);
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

    if (io->session || !level_joins(io, &io->layout->level[0], n))
        return ZARR_OK;
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
        struct objects o = {.w = {.io = io, .rq = rq}, .lv = lv[i], .arena = &arena};

        if (!lv[i] || tried[i])
            continue;
        zr_arena_reset(&arena);
        ZR_TRY(objects_room(&o, n, err));
        c.locks = zr_old_values_most(io);
        o.is_batched = level_is_batched(io, lv[i]);
        objects_collect(&o, &c);
        if (o.n < 2 && !o.is_batched)
            break; /* too large: each is written alone */
        ZR_TRY(io->parts ? write_parts(&o, err) : write_objects(&o, err));
    }
out:
    for (uint32_t i = 0; lv && i < n; i++)
        zr_level_give(lv[i]);
    zr_free(alloc, lv);
    zr_free(alloc, tried);
    zr_arena_deinit(&arena);
    return st;
}
