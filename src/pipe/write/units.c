/*
 * pipe/write/units.c - writes one unit: a block, which is one object of the store. A
 * unit that is covered completely needs no old data. A unit that is covered in part, or
 * that reaches beyond the array's shape (another handle may have grown the array since),
 * is read, changed and written under its lock. Lock and unlock happen inside one call on
 * one thread. That thread may get help but never waits for another unit, so locks cannot
 * wait for each other through the pool. If several units are written together,
 * old_values.c has locked and read them. If every element inside this handle's shape is
 * overwritten, a damaged old value is ignored. A chunk that equals the fill value is
 * erased, not stored.
 * Thread class: on the worker context.
 */
#include "pipe/write/write_int.h"

enum {
    CONFLICT_TRIES = 16
};

struct unit {
    const struct zr_work *w;
    const struct zr_projection *proj;
    const struct zr_level *lv; /* the level of this chunk */
    const char *key;
    void *lock;
    bool conditional;
    zarr_store_version version;
    zarr_memory old; /* old stored bytes, in scratch */
    bool streams;    /* the value is written in parts */
    struct zr_shard_stream stream;
    uint32_t threads;
    struct zr_later *later;               /* keeps the PUT; NULL: it is sent */
    const struct zr_old_value *old_value; /* has the lock; NULL: the unit takes it */
};

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
    if (u->old_value) {
        zr_old_value_op(u->old_value, &op);
        return zr_put_unit(u->w, u->proj->chunk, &op, u->later, err);
    }
    if (u->lock) {
        op.flags |= ZARR_STORE_OP_LOCKED;
        op.lock = u->lock;
    }
    if (u->conditional) {
        op.flags |= ZARR_STORE_OP_IF_VERSION;
        op.version = u->version;
    }
    return zr_put_unit(u->w, u->proj->chunk, &op, u->later, err);
}

/* Whether a write that covers all elements of the array in this unit goes on although its
 * old value has this fault. The old values that a caller of zarr_array_encode() gives
 * need not have such a unit. */
static bool old_may_be_bad(const struct zr_io *io, zarr_status st)
{
    return st == ZARR_ERR_CORRUPT || (io->sink && st == ZARR_ERR_INVALID);
}

static zarr_status unit_old(struct unit *u, const struct zr_level *lv, zarr_error *err)
{
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

    if (u->proj->full)
        return ZARR_OK;
    if (u->streams) {
        ZR_TRY(zr_object_bytes(u->w, u->key, &u->stream.old_bytes, err));
        u->w->worker->stats.read_modify_writes +=
            !u->proj->whole || u->stream.old_bytes != 0;
        return ZARR_OK;
    }
    if (u->old_value) {
        u->old = u->old_value->old;
        u->w->worker->stats.read_modify_writes += !u->proj->whole || u->old.handle;
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

static zarr_status unit_leaf(struct unit *u, zarr_error *err)
{
    const struct zr_level *lv = u->lv;
    struct zr_leaf_write lw = {.level = lv, .proj = u->proj};
    zarr_status st = ZARR_OK;

    ZR_TRY(unit_old(u, lv, err));
    lw.old = u->old;
    ZR_TRY(zr_leaf_room(u->w, lv, &lw.room, err));
    ZR_TRY(zr_leaf_encode(u->w, &lw, err));
    ZR_TRY(unit_store(u, lw.empty ? NULL : &lw.out, err));
out:
    return st;
}

static zarr_status unit_shard(struct unit *u, zarr_error *err)
{
    const struct zr_level *lv = u->lv;
    const struct zr_grid *grid = u->w->io->layout->grid;
    uint64_t clip[ZARR_MAX_RANK];
    struct zr_shard_write sw = {
        .lv = lv, .missing = lv, .proj = u->proj, .clip = clip, .threads = u->threads};
    zarr_status st = ZARR_OK;

    for (int32_t d = 0; d < grid->ndim; d++)
        clip[d] = ZR_MIN(lv->shape[d], grid->shape[d] - u->proj->origin[d]);
    ZR_TRY(unit_old(u, lv, err));
    sw.old = u->old;
    if (u->streams) {
        u->stream.key = u->key;
        u->stream.lock = u->lock;
        sw.stream = &u->stream;
        sw.threads = ZR_MIN(u->threads, u->stream.batch);
    }
    ZR_TRY(zr_shard_write(u->w, &sw, err));
    ZR_TRY(unit_store(u, sw.empty ? NULL : &sw.out, err));
out:
    zr_pool_give(u->w->io->engine->pool, &sw.block);
    zr_index_cache_drop(u->w->io->indexes, u->key);
    return st;
}

static zarr_status unit_attempt(struct unit *u, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    u->old = (zarr_memory){0};
    u->stream.old_bytes = 0;
    if ((!u->proj->full || u->streams) && !u->old_value) {
        ZR_TRY(zr_store_lock(u->w->io->store, u->key, &u->w->rq->cancel, &u->lock, err));
        ZR_TRY(zr_request_check_locked(u->w->rq, err));
    }
    st = u->lv->is_shard ? unit_shard(u, err) : unit_leaf(u, err);
out:
    zr_store_unlock(u->w->io->store, u->lock);
    u->lock = NULL;
    return st;
}

uint64_t zr_unit_budget(const struct zr_level *lv, bool full)
{
    uint64_t sum = 0;

    if (!zr_add_u64(lv->decoded_bytes, lv->encoded_bound, &sum) ||
        (!full && !zr_add_u64(sum, lv->encoded_bound, &sum)))
        return UINT64_MAX;
    if (lv->bytes_decode) /* the values, new and old, before the codecs around them */
        sum = zr_add_cap(sum, zr_mul_cap(zr_body_bytes(lv), full ? 1 : 2));
    return sum;
}

zarr_status zr_unit_write(const struct zr_work *w, const struct zr_projection *proj,
                          uint32_t threads, struct zr_later *later, zarr_error *err)
{
    const struct zr_plan_args where = {.layout = w->io->layout, .prefix = w->io->prefix};
    const struct zr_layout *l = w->io->layout;
    const struct zr_level *leaf = NULL;
    struct zr_work own = *w;
    struct unit u = {.w = w,
                     .proj = proj,
                     .threads = threads,
                     .later = later,
                     .old_value = later ? later->old_value : NULL};
    struct zr_need need = {0, 0};
    zarr_status st = ZARR_OK;

    if (w->io->session)
        return zr_shard_session_write(w, proj, threads, err);
    zr_plan_key(&where, proj->chunk, &w->worker->key);
    ZR_TRY(zr_str_status(&w->worker->key, err));
    u.key = zr_str_text(&w->worker->key);
    st = zr_layout_outer(w->io->layout, proj->shape, &u.lv, err);
    if (st != ZARR_OK)
        return zr_prefix_key(err, st, u.key);
    leaf = u.lv->is_shard ? &l->level[l->n_levels - 1] : u.lv;
    if (!w->granted) {
        /* another order of inner chunks needs room for them once more */
        need.host = zr_unit_budget(u.lv, proj->full && w->io->inner_order == 0);
        need.device = zr_unit_on_device(w->io, u.lv);
        u.streams = need.host > zr_io_budget(w->io) && zr_shard_can_stream(w, u.lv);
        if (u.streams)
            need.host = zr_shard_stream_init(&u.stream, w->io, u.lv, proj->full);
    }
    u.conditional = !proj->full && !zr_store_can(w->io->store, ZARR_STORE_CAP_LOCK) &&
                    zr_store_can(w->io->store, ZARR_STORE_CAP_CONDITIONAL);
    ZR_TRY(zr_request_take(w->rq, need, err));
    for (int tries = 0; tries < CONFLICT_TRIES; tries++) {
        const zarr_stats before = w->worker->stats;

        st = unit_attempt(&u, err);
        if (zr_is_too_large(u.w, leaf, true, st)) {
            zr_work_on_host(&own, leaf, true);
            u.w = &own;
            zr_worker_leave_device(w->worker, true);
        } else if (st != ZARR_ERR_CONFLICT || !u.conditional) {
            break;
        }
        zr_forget_chunks(&w->worker->stats, &before);
    }
    st = zr_too_large_tell(u.w, leaf, true, st, err);
    zr_worker_trim(w->worker);
    if (need.device)
        zr_worker_leave_device(w->worker, true);
    zr_request_give(w->rq, need);
    st = zr_prefix_key(err, st, u.key);
out:
    zr_level_give(u.lv);
    return st;
}
