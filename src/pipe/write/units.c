/*
 * pipe/write/units.c - one unit: a block, which is one object of the store. It has a key,
 * a lock and an old value if it needs them, and a new value. This file writes one alone;
 * batch_units.c writes several together. A unit that is covered completely needs no old
 * data. A unit that is covered in part, or that reaches beyond the array's shape (another
 * handle may have grown the array since), is read, changed and written under its lock.
 * Lock and unlock happen inside one call on one thread. That thread may get help but
 * never waits for another unit, so locks cannot wait for each other through the pool. If
 * every element inside this handle's shape is overwritten, a damaged old value is
 * ignored. A chunk that equals the fill value is erased, not stored.
 * Thread class: on the worker context.
 */
#include "pipe/write/write_int.h"

/* ---- key and value --------------------------------------------------------------- */

zarr_status zr_unit_key(const struct zr_work *w, const struct zr_projection *proj,
                        const char **out, zarr_error *err)
{
    const struct zr_plan_args where = {.layout = w->io->layout, .prefix = w->io->prefix};

    zr_plan_key(&where, proj->chunk, &w->worker->key);
    *out = zr_str_text(&w->worker->key);
    return zr_str_status(&w->worker->key, err);
}

void zr_unit_prepare(const struct zr_io *io, const struct zr_unit *u)
{
    const struct zr_grid *grid = io->layout->grid;
    /* it replaces a version, and the store cannot erase under that condition */
    const bool stays = u->conditional && !zr_store_version_is_none(&u->version) &&
                       !zr_store_can(io->store, ZARR_STORE_CAP_ERASE_IF_VERSION);

    if (u->leaf) {
        *u->leaf = (struct zr_leaf_write){
            .level = u->lv, .proj = u->proj, .old = u->old, .must_stay = stays};
        return;
    }
    for (int32_t d = 0; d < grid->ndim; d++)
        u->clip[d] = ZR_MIN(u->lv->shape[d], grid->shape[d] - u->proj->origin[d]);
    *u->shard = (struct zr_shard_write){.lv = u->lv,
                                        .missing = u->lv,
                                        .proj = u->proj,
                                        .clip = u->clip,
                                        .old = u->old,
                                        .must_stay = stays,
                                        .stream = u->stream};
}

bool zr_unit_is_empty(const struct zr_unit *u)
{
    return u->leaf ? u->leaf->empty : u->shard->empty;
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

/* ---- storing -------------------------------------------------------------------- */

void zr_unit_op(const struct zr_io *io, const struct zr_unit *u, zarr_store_op *op)
{
    const bool empty = zr_unit_is_empty(u);

    *op = (zarr_store_op){.verb = empty ? ZARR_STORE_ERASE : ZARR_STORE_PUT,
                          .flags = ZARR_STORE_OP_CHUNK | io->unit_flags,
                          .key = u->key,
                          .lock = u->lock,
                          .status = ZARR_ERR_INTERNAL};
    if (!empty)
        op->mem = u->leaf ? u->leaf->out : u->shard->out;
    op->length = op->mem.bytes;
    if (!empty && u->stream) {
        op->mem = (zarr_memory){0};
        op->flags |= ZARR_STORE_OP_IN_PARTS;
        op->parts = u->stream->parts;
    }
    if (u->lock)
        op->flags |= ZARR_STORE_OP_LOCKED;
    if (u->conditional) {
        op->flags |= ZARR_STORE_OP_IF_VERSION;
        op->version = u->version;
    }
}

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

zarr_status zr_unit_store(const struct zr_work *w, const struct zr_unit *u,
                          zarr_error *err)
{
    zarr_store_op op;
    zarr_status st = ZARR_OK;

    zr_unit_op(w->io, u, &op);
    if (w->io->sink)
        return sink_unit(w, u->proj->chunk, &op, err);
    zr_ask_put(w->rq, &op);
    st = zr_store_op_run(w, &op, err);
    if (st == ZARR_OK)
        st = zr_note_put(w->rq, &op, err);
    return op.verb == ZARR_STORE_ERASE && st == ZARR_ERR_NOT_FOUND ? ZARR_OK : st;
}

zarr_status zr_unit_put(const struct zr_work *w, const struct zr_projection *proj,
                        const zarr_memory *bytes, zarr_error *err)
{
    struct zr_leaf_write value = {.empty = !bytes};
    struct zr_unit u = {.proj = proj, .leaf = &value};
    zarr_status st = ZARR_OK;

    if (bytes)
        value.out = *bytes;
    ZR_TRY(zr_unit_key(w, proj, &u.key, err));
    st = zr_unit_store(w, &u, err);
    if (w->rq->device)
        zr_worker_leave_device(w->worker, true);
    st = zr_prefix_key(err, st, u.key);
out:
    return st;
}

void zr_unit_unlock(const struct zr_io *io, struct zr_unit *u)
{
    zr_store_unlock(io->store, u->lock);
    u->lock = NULL;
}

/* ---- one unit alone -------------------------------------------------------------- */

/* The new value, by what the unit is. */
union unit_value {
    struct zr_leaf_write leaf;
    struct {
        struct zr_shard_write shard;
        uint64_t clip[ZARR_MAX_RANK];
    };
};
struct lone_unit {
    struct zr_unit u;
    const struct zr_work *w;
    const struct zr_level *leaf; /* the level of the innermost chunks */
    struct zr_need need;         /* bytes of the budgets */
    struct zr_shard_stream stream;
};

/* Whether a write that covers all elements of the array in this unit goes on although its
 * old value has this fault. The old values that a caller of zarr_array_encode() gives
 * need not have such a unit. */
static bool old_may_be_bad(const struct zr_io *io, zarr_status st)
{
    return st == ZARR_ERR_CORRUPT || (io->sink && st == ZARR_ERR_INVALID);
}

/* Reads the old value; of one that is stored in parts, its length. */
static zarr_status unit_old(struct lone_unit *x, zarr_error *err)
{
    struct zr_unit *u = &x->u;
    const struct zr_work *w = x->w;
    const struct zr_level *lv = u->lv;
    const struct zr_program *p = lv->decode; /* NULL for shards */
    struct zr_fetch f = {.key = u->key,
                         .slot = ZR_SCRATCH_OLD,
                         .device_type = p && !w->on_host ? p->fetch_device : 0,
                         .expect = lv->encoded_bound,
                         .most = p ? zr_program_most(w->io, p) : zr_shard_most(w->io, lv),
                         .gaps = p ? p->gaps : lv->bytes_decode == NULL,
                         .version = u->conditional ? &u->version : NULL};
    zarr_error e = {0};
    zarr_status st = ZARR_OK;

    if (u->stream) {
        ZR_TRY(zr_shard_stream_look(w, &x->stream, u->conditional ? &u->version : NULL,
                                    err));
        w->worker->stats.read_modify_writes +=
            !u->proj->whole || x->stream.old_bytes != 0;
        goto out;
    }
    u->version = (zarr_store_version){{0}};
    st = zr_fetch_object(w, &f, &u->old, &e);
    w->worker->stats.read_modify_writes += !u->proj->whole || st == ZARR_OK;
    if (st == ZARR_OK && u->conditional)
        ZR_TRY(zr_store_check_version(w->io->store, u->key, &u->version, err));
    if (st == ZARR_ERR_NOT_FOUND || (u->proj->whole && old_may_be_bad(w->io, st))) {
        u->old = (zarr_memory){0};
        return ZARR_OK;
    }
    if (st != ZARR_OK && err)
        *err = e;
out:
    return st;
}

/* Takes the lock and reads the old value, unless the unit needs none. */
static zarr_status unit_begin(struct lone_unit *x, zarr_error *err)
{
    struct zr_unit *u = &x->u;
    const struct zr_work *w = x->w;

    u->old = (zarr_memory){0};
    x->stream.old_bytes = 0;
    if (!u->leaf)
        u->shard->block = (zarr_memory){0};
    if (!u->proj->full || u->stream) {
        ZR_CHECK(zr_store_lock(w->io->store, u->key, &w->rq->cancel, &u->lock, err));
        ZR_CHECK(zr_request_check_locked(w->rq, err));
    }
    x->stream.key = u->key;
    x->stream.lock = u->lock;
    if (!u->proj->full)
        ZR_CHECK(unit_old(x, err));
    if (w->io->guard)
        ZR_CHECK(w->io->guard(w->io->guard_arg, err));
    zr_unit_prepare(w->io, u);
    if (u->leaf)
        ZR_CHECK(zr_leaf_room(w, u->lv, &u->leaf->room, err));
    return ZARR_OK;
}

/* Stores the new value, which was made with status st, and gives the lock back. */
static zarr_status unit_end(struct lone_unit *x, zarr_status st, zarr_error *err)
{
    const struct zr_io *io = x->w->io;

    if (st == ZARR_OK)
        st = zr_unit_store(x->w, &x->u, err);
    if (!x->u.leaf) {
        zr_pool_give(io->engine->pool, &x->u.shard->block);
        zr_index_cache_drop(io->indexes, x->u.key);
    }
    if (x->u.stream)
        zr_shard_stream_end(&x->stream, io->store);
    zr_unit_unlock(io, &x->u);
    return st;
}

/* Finds the unit's key and level, and how it is read and stored. */
static zarr_status unit_open(struct lone_unit *x, union unit_value *value,
                             zarr_error *err)
{
    const struct zr_io *io = x->w->io;
    const struct zr_layout *l = io->layout;
    struct zr_unit *u = &x->u;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_unit_key(x->w, u->proj, &u->key, err));
    st = zr_layout_outer(l, u->proj->shape, &u->lv, err);
    if (st != ZARR_OK)
        return zr_prefix_key(err, st, u->key);
    x->leaf = u->lv->is_shard ? &l->level[l->n_levels - 1] : u->lv;
    u->leaf = u->lv->is_shard ? NULL : &value->leaf;
    u->shard = u->lv->is_shard ? &value->shard : NULL;
    u->clip = value->clip;
    u->conditional = !u->proj->full && zr_store_is_by_version(io->store);
    /* another order of inner chunks needs room for them once more */
    x->need.host = zr_unit_budget(u->lv, u->proj->full && io->inner_order == 0);
    if (!zr_io_is_host(io, io->view.base.device_type))
        x->need.device = zr_unit_on_device(io, u->lv);
    if (x->need.host > zr_io_budget(io) && zr_shard_can_stream(x->w, u->lv)) {
        u->stream = &x->stream;
        x->need.host = zr_shard_stream_init(&x->stream, io, u->lv, u->proj->full);
    }
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
    struct zr_work own;
    union unit_value value;
    struct lone_unit x = {.w = w, .u = {.proj = proj}};
    struct zr_backoff wait;
    zarr_status st = ZARR_OK;

    if (w->io->session)
        return zr_shard_session_write(w, proj, threads, err);
    if (w->io->parts) /* err may have the failure of another unit */
        zr_error_clear(err);
    ZR_TRY(unit_open(&x, &value, err));
    ZR_TRY(zr_request_take(w->rq, x.need, err));
    if (x.u.conditional)
        zr_backoff_init(&wait, w->io->store, x.u.key, &w->rq->cancel);
    for (bool again = true; again;) {
        const zarr_stats before = w->worker->stats;

        st = unit_begin(&x, err);
        if (st == ZARR_OK)
            st = x.u.shard ? zr_shards_write(x.w, &value.shard, 1, threads, err)
                           : zr_leaf_encode(x.w, &value.leaf, err);
        st = unit_end(&x, st, err);
        if (st == ZARR_OK)
            break;
        if (zr_is_too_large(x.w, x.leaf, true, st)) {
            own = *w;
            zr_work_on_host(&own, x.leaf, true);
            x.w = &own;
            zr_worker_leave_device(w->worker, true);
        } else if (st == ZARR_ERR_CONFLICT && x.u.conditional) {
            st = zr_backoff_wait(&wait, st, err);
            again = st == ZARR_OK;
        } else {
            break;
        }
        zr_forget_chunks(&w->worker->stats, &before);
    }
    zr_worker_trim(w->worker);
    if (x.need.device)
        zr_worker_leave_device(w->worker, true);
    zr_request_give(w->rq, x.need);
    if (st != ZARR_OK)
        st = zr_prefix_key(err, zr_too_large_tell(x.w, x.leaf, true, st, err), x.u.key);
out:
    zr_level_give(x.u.lv);
    return st != ZARR_OK && zr_parts_take(w->rq, st) ? unit_fail(w, proj, st, err) : st;
}
