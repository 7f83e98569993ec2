/*
 * pipe/write/units.c - writes one unit: a block, which is one object of the store. A
 * unit that is covered completely needs no old data. A unit that is covered in part, or
 * that reaches beyond the array's shape (another handle may have grown the array since),
 * is read, changed and written under its lock. Lock and unlock happen inside one call on
 * one thread. That thread may get help but never waits for another unit, so locks cannot
 * wait for each other through the pool. Several units are written together by
 * batch_units.c. If every element inside this handle's shape is
 * overwritten, a damaged old value is ignored. A chunk that equals the fill value is
 * erased, not stored. The value is stored or handed to the caller. Thread class: on the
 * worker context.
 */
#include "pipe/write/write_int.h"

enum {
    CONFLICT_TRIES = 16
};

/* The new value, by what the unit is. */
union unit_value {
    struct zr_leaf_write chunk;
    struct {
        struct zr_shard_write shard;
        uint64_t clip[ZARR_MAX_RANK];
    };
};
struct unit {
    const struct zr_work *w;
    const struct zr_projection *proj;
    const struct zr_level *lv;   /* the level of this chunk */
    const struct zr_level *leaf; /* and of the innermost ones */
    const char *key;
    void *lock;
    bool conditional;
    zarr_store_version version;
    struct zr_need need; /* bytes of the budgets */
    zarr_memory old;     /* old stored bytes, in scratch */
    bool streams;        /* the value is written in parts */
    struct zr_shard_stream stream;
    union unit_value *made;
};

/* ---- storing -------------------------------------------------------------------- */

/* Hands the unit to the caller of zarr_array_encode(). */
static zarr_status sink_unit(const struct zr_work *w, const uint64_t *chunk,
                             zarr_store_op *op, zarr_error *err)
{
    const bool put = op->verb == ZARR_STORE_PUT;

    op->status = w->io->sink(w->io->sink_arg, chunk, put ? &op->mem : NULL, err);
    op->done_bytes = op->status == ZARR_OK ? op->mem.bytes : 0;
    zr_worker_count(w->worker, op);
    return op->status;
}

zarr_status zr_put_unit(const struct zr_work *w, const uint64_t *chunk, zarr_store_op *op,
                        zarr_error *err)
{
    zarr_status st = ZARR_OK;

    if (w->io->sink)
        return sink_unit(w, chunk, op, err);
    zr_ask_put(w->rq, op);
    st = zr_store_op_run(w, op, err);
    if (st == ZARR_OK)
        st = zr_note_put(w->rq, op, err);
    return op->verb == ZARR_STORE_ERASE && st == ZARR_ERR_NOT_FOUND ? ZARR_OK : st;
}

static zarr_status unit_store(struct unit *u, const zarr_memory *value, zarr_error *err)
{
    zarr_store_op op = {.verb = value ? ZARR_STORE_PUT : ZARR_STORE_ERASE,
                        .flags = ZARR_STORE_OP_CHUNK | u->w->io->unit_flags,
                        .key = u->key};

    if (value)
        op.mem = *value;
    op.length = op.mem.bytes;
    if (value && u->streams) {
        op.mem = (zarr_memory){0};
        op.flags |= ZR_STORE_OP_IN_PARTS;
    }
    if (u->lock) {
        op.flags |= ZARR_STORE_OP_LOCKED;
        op.lock = u->lock;
    }
    if (u->conditional) {
        op.flags |= ZARR_STORE_OP_IF_VERSION;
        op.version = u->version;
    }
    return zr_put_unit(u->w, u->proj->chunk, &op, err);
}

/* ---- reading and making ---------------------------------------------------------- */

/* Whether a write that covers all elements of the array in this unit goes on although its
 * old value has this fault. The old values that a caller of zarr_array_encode() gives
 * need not have such a unit. */
static bool old_may_be_bad(const struct zr_io *io, zarr_status st)
{
    return st == ZARR_ERR_CORRUPT || (io->sink && st == ZARR_ERR_INVALID);
}

static zarr_status unit_old(struct unit *u, zarr_error *err)
{
    const struct zr_level *lv = u->lv;
    const struct zr_program *p = lv->decode; /* NULL for shards */
    struct zr_fetch f = {.key = u->key,
                         .slot = ZR_SCRATCH_OLD,
                         .device_type = p && !u->w->on_host ? p->fetch_device : 0,
                         .expect = lv->encoded_bound,
                         .most = p ? zr_program_most(u->w->io, p)
                                   : zr_shard_most(u->w->io, lv),
                         .gaps = p ? p->gaps : lv->bytes_decode == NULL};
    zarr_error e = {0};
    zarr_status st = ZARR_OK;

    if (u->streams) {
        ZR_TRY(zr_object_bytes(u->w, u->key, &u->stream.old_bytes, err));
        u->w->worker->stats.read_modify_writes +=
            !u->proj->whole || u->stream.old_bytes != 0;
        return ZARR_OK;
    }
    if (u->conditional)
        f.version = &u->version;
    u->version = (zarr_store_version){{0}};
    st = zr_fetch_object(u->w, &f, &u->old, &e);
    u->w->worker->stats.read_modify_writes += !u->proj->whole || st == ZARR_OK;
    if (st == ZARR_ERR_NOT_FOUND || (u->proj->whole && old_may_be_bad(u->w->io, st))) {
        u->old = (zarr_memory){0};
        return ZARR_OK;
    }
    if (st != ZARR_OK && err)
        *err = e;
out:
    return st;
}

/* Sets what the new value is made from. */
static zarr_status unit_prepare(struct unit *u, zarr_error *err)
{
    const struct zr_grid *grid = u->w->io->layout->grid;
    const struct zr_level *lv = u->lv;
    union unit_value *v = u->made;

    if (!lv->is_shard) {
        v->chunk = (struct zr_leaf_write){.level = lv, .proj = u->proj, .old = u->old};
        return zr_leaf_room(u->w, lv, &v->chunk.room, err);
    }
    for (int32_t d = 0; d < grid->ndim; d++)
        v->clip[d] = ZR_MIN(lv->shape[d], grid->shape[d] - u->proj->origin[d]);
    v->shard = (struct zr_shard_write){
        .lv = lv, .missing = lv, .proj = u->proj, .clip = v->clip, .old = u->old};
    if (u->streams) {
        u->stream.key = u->key;
        u->stream.lock = u->lock;
        v->shard.stream = &u->stream;
    }
    return ZARR_OK;
}

/* Takes the lock and reads the old value, unless the unit needs none. */
static zarr_status unit_begin(struct unit *u, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    u->old = (zarr_memory){0};
    u->stream.old_bytes = 0;
    u->made->shard.block = (zarr_memory){0};
    if (!u->proj->full || u->streams) {
        ZR_TRY(zr_store_lock(u->w->io->store, u->key, &u->w->rq->cancel, &u->lock, err));
        ZR_TRY(zr_request_check_locked(u->w->rq, err));
    }
    if (!u->proj->full)
        ZR_TRY(unit_old(u, err));
    ZR_TRY(unit_prepare(u, err));
out:
    return st;
}

/* Stores the new value, which was made with status st, and gives the lock back. */
static zarr_status unit_end(struct unit *u, zarr_status st, zarr_error *err)
{
    const struct zr_io *io = u->w->io;
    union unit_value *v = u->made;

    if (st == ZARR_OK && u->lv->is_shard)
        st = unit_store(u, v->shard.empty ? NULL : &v->shard.out, err);
    else if (st == ZARR_OK)
        st = unit_store(u, v->chunk.empty ? NULL : &v->chunk.out, err);
    if (u->lv->is_shard) {
        zr_pool_give(io->engine->pool, &v->shard.block);
        zr_index_cache_drop(io->indexes, u->key);
    }
    zr_store_unlock(io->store, u->lock);
    u->lock = NULL;
    return st;
}

uint64_t zr_unit_budget(const struct zr_level *lv, bool full)
{
    uint64_t sum = 0;

    if (!zr_add(lv->decoded_bytes, lv->encoded_bound, &sum) ||
        (!full && !zr_add(sum, lv->encoded_bound, &sum)))
        return UINT64_MAX;
    if (lv->bytes_decode) /* the values, new and old, before the codecs around them */
        sum = zr_add_cap(sum, zr_mul_cap(zr_body_bytes(lv), full ? 1 : 2));
    return sum;
}

/* Finds the unit's key and level, and how it is read and stored. */
static zarr_status unit_open(struct unit *u, const struct zr_work *w, zarr_error *err)
{
    const struct zr_layout *l = w->io->layout;
    const struct zr_plan_args where = {.layout = l, .prefix = w->io->prefix};
    const struct zr_projection *proj = u->proj;
    zarr_status st = ZARR_OK;

    zr_plan_key(&where, proj->chunk, &w->worker->key);
    ZR_TRY(zr_str_status(&w->worker->key, err));
    u->key = zr_str_text(&w->worker->key);
    st = zr_layout_outer(l, proj->shape, &u->lv, err);
    if (st != ZARR_OK)
        return zr_prefix_key(err, st, u->key);
    u->leaf = u->lv->is_shard ? &l->level[l->n_levels - 1] : u->lv;
    /* another order of inner chunks needs room for them once more */
    u->need.host = zr_unit_budget(u->lv, proj->full && w->io->inner_order == 0);
    if (!zr_io_is_host(w->io, w->io->view.base.device_type))
        u->need.device = zr_unit_on_device(w->io, u->lv);
    u->streams = u->need.host > zr_io_budget(w->io) && zr_shard_can_stream(w, u->lv);
    if (u->streams)
        u->need.host = zr_shard_stream_init(&u->stream, w->io, u->lv, proj->full);
    u->conditional = !proj->full && !zr_store_can(w->io->store, ZARR_STORE_CAP_LOCK) &&
                     zr_store_can(w->io->store, ZARR_STORE_CAP_CONDITIONAL);
out:
    return st;
}

/* In a request with parts, a unit that fails is the failure of the parts that touch it,
 * and the request goes on. */
static zarr_status unit_fail(const struct zr_work *w, const struct zr_projection *proj,
                             zarr_status st, const zarr_error *e)
{
    const struct zr_grid *grid = w->io->layout->grid;
    uint64_t ordinal = 0;

    for (int32_t d = 0; d < grid->ndim; d++)
        if (!zr_mul(ordinal, zr_grid_n_chunks(grid, d), &ordinal) ||
            !zr_add(ordinal, proj->chunk[d], &ordinal))
            ordinal = UINT64_MAX - 1;
    zr_parts_fail(w->rq, proj, st, e, ordinal);
    return ZARR_OK;
}

zarr_status zr_unit_write(const struct zr_work *w, const struct zr_projection *proj,
                          uint32_t threads, zarr_error *err)
{
    struct zr_work own = *w;
    union unit_value made;
    struct unit u = {.w = w, .proj = proj, .made = &made};
    zarr_status st = ZARR_OK;

    if (w->io->session)
        return zr_shard_session_write(w, proj, threads, err);
    if (w->io->parts) /* err may have the failure of another unit */
        zr_error_clear(err);
    ZR_TRY(unit_open(&u, w, err));
    ZR_TRY(zr_request_take(w->rq, u.need, err));
    for (int tries = 0; tries < CONFLICT_TRIES; tries++) {
        const zarr_stats before = w->worker->stats;

        st = unit_begin(&u, err);
        if (st == ZARR_OK)
            st = u.lv->is_shard ? zr_shards_write(u.w, &made.shard, 1, threads, err)
                                : zr_leaf_encode(u.w, &made.chunk, err);
        st = unit_end(&u, st, err);
        if (st == ZARR_OK)
            break;
        if (zr_is_too_large(u.w, u.leaf, true, st)) {
            zr_work_on_host(&own, u.leaf, true);
            u.w = &own;
            zr_worker_leave_device(w->worker, true);
        } else if (st != ZARR_ERR_CONFLICT || !u.conditional) {
            break;
        }
        zr_forget_chunks(&w->worker->stats, &before);
    }
    zr_worker_trim(w->worker);
    if (u.need.device)
        zr_worker_leave_device(w->worker, true);
    zr_request_give(w->rq, u.need);
    if (st != ZARR_OK)
        st = zr_prefix_key(err, zr_too_large_tell(u.w, u.leaf, true, st, err), u.key);
out:
    zr_level_give(u.lv);
    return st != ZARR_OK && zr_parts_take(w->rq, st) ? unit_fail(w, proj, st, err) : st;
}
