/*
 * pipe/write/old_values.c - the locks and old values of units that are written together,
 * of those that are written in part. The old values are one submit.
 *
 * A lock that another writer holds is not waited for, because a holder of locks must not
 * wait. Such a unit leaves the batch, to be written alone (units.c), and so does one
 * whose old value could not be read or is longer than expected. put_units.c gives the
 * locks back.
 *
 * A store of a plug-in that ignores the cancel object of lock() waits all the same. All
 * requests therefore try their locks in C order of the blocks in the grid, so that no two
 * of them wait for each other. The units themselves are in order of their shapes.
 *
 * Thread class: one thread per request.
 */
#include "pipe/write/write_int.h"

enum {
    LOCKS_MOST = 64, /* of a store that may have an open file for each */
    LOCKS_ALL = 192  /* of a request, which may have several batches in work */
};

uint32_t zr_old_values_most(const struct zr_io *io)
{
    if (!zr_store_can(io->store, ZARR_STORE_CAP_LOCK))
        return UINT32_MAX;
    return ZR_MIN((uint32_t)LOCKS_MOST, LOCKS_ALL / zr_write_flights(io));
}

zarr_status zr_unit_ops_room(struct zr_unit_ops *x, const struct zr_unit_batch *b,
                             zarr_error *err)
{
    *x = (struct zr_unit_ops){
        .op = zr_arena_alloc(b->arena, b->n * sizeof *x->op),
        .unit = zr_arena_alloc(b->arena, b->n * sizeof(struct zr_unit *))};
    return x->op && x->unit ? ZARR_OK : zr_fail_memory(err, b->n * sizeof *x->op);
}

/* The program that decodes the old value; NULL for shards, whose bytes are on the
 * host. */
static const struct zr_program *old_value_program(const struct zr_unit *u)
{
    return u->lv->is_shard ? NULL : u->lv->decode;
}

static uint64_t old_value_most(const struct zr_io *io, const struct zr_unit *u)
{
    const struct zr_program *p = old_value_program(u);

    return p ? zr_program_most(io, p) : zr_shard_most(io, u->lv);
}

static int32_t old_value_device(const struct zr_unit *u)
{
    const struct zr_program *p = old_value_program(u);

    return p ? p->fetch_device : ZARR_DEVICE_CPU;
}

/* ---- memory ---------------------------------------------------------------------- */

/* Whether a list copies the old values from the host to a device. Codecs get the others
 * where they are, so those are aligned. */
static bool old_value_goes_up(const struct zr_io *io, const struct zr_unit *u)
{
    return !zr_io_is_host(io, io->view.base.device_type) &&
           zr_io_is_host(io, old_value_device(u));
}

/* Bytes of memory for an old value, and of the distance to the next one. False: they are
 * too many. */
static bool old_value_room(const struct zr_io *io, const struct zr_unit *u,
                           uint64_t *bytes, uint64_t *step)
{
    const uint64_t align =
        old_value_goes_up(io, u) ? (uint64_t)ZR_NEAR_ALIGNMENT : ZR_CHUNK_ALIGNMENT;

    *bytes = ZR_MIN(u->lv->encoded_bound, old_value_most(io, u));
    if (!zr_add(*bytes, align - 1, step))
        return false;
    *step = *step / align * align;
    return true;
}

/* One block for the old values that the store does not lend, each with its own length:
 * the units may differ in shape. */
static zarr_status old_value_memory(struct zr_unit_batch *b, const struct zr_unit_ops *x,
                                    zarr_error *err)
{
    const struct zr_io *io = b->w.io;
    uint64_t all = 0, at = 0, bytes = 0, step = 0;

    for (uint32_t i = 0; i < x->n; i++)
        if (x->op[i].status != ZARR_OK &&
            (!old_value_room(io, x->unit[i], &bytes, &step) || !zr_add(all, step, &all)))
            return zr_fail(err, ZARR_ERR_LIMIT, "a batch too large for memory");
    if (all == 0)
        return ZARR_OK;
    ZR_CHECK((old_value_goes_up(io, *x->unit) ? zr_take_near_slices : zr_take_slices)(
        io, old_value_device(*x->unit), &all, 1, &b->old_values, err));
    for (uint32_t i = 0; i < x->n; i++) {
        if (x->op[i].status == ZARR_OK)
            continue;
        (void)old_value_room(io, x->unit[i], &bytes, &step);
        if (!zr_mem_slice(&b->old_values, at, bytes, &x->op[i].mem))
            return zr_internal(err);
        at += step;
    }
    return ZARR_OK;
}

/* ---- reading ---------------------------------------------------------------------- */

/* Takes the locks that are free. */
static void take_locks(const struct zr_unit_batch *b)
{
    for (uint32_t i = 0; i < b->n_blocks; i++) {
        struct zr_unit *u = b->by_block[i];

        if (u && !u->proj->full &&
            zr_store_lock_try(b->w.io->store, u->key, &b->w.rq->cancel, &u->lock, NULL) !=
                ZARR_OK)
            u->lock = NULL;
    }
}

/* Makes the operations for the units that have their lock. */
static void old_value_ops(const struct zr_unit_batch *b, struct zr_unit_ops *x)
{
    for (uint32_t i = 0; i < b->n; i++) {
        struct zr_unit *u = &b->unit[i];
        zarr_store_op *op = &x->op[x->n];

        if (x->n > 0 && old_value_device(u) != old_value_device(*x->unit))
            zr_unit_unlock(b->w.io, u);
        if (!u->lock)
            continue;
        u->conditional = !u->proj->full && zr_store_is_by_version(b->w.io->store);
        *op = (zarr_store_op){.verb = ZARR_STORE_GET,
                              .flags = ZARR_STORE_OP_CHUNK,
                              .key = u->key,
                              .length = ZARR_STORE_TO_END,
                              .mem = {.device_type = old_value_device(u)},
                              .object_bytes = UINT64_MAX,
                              .status = ZARR_ERR_INTERNAL};
        if (u->conditional)
            op->flags |= ZARR_STORE_OP_WANT_VERSION;
        (void)zr_store_lend(b->w.io->store, op);
        x->unit[x->n++] = u;
    }
}

/* Takes what was read. Returns false if the unit is to be written alone. */
static bool old_value_keep(const struct zr_io *io, struct zr_unit *u,
                           const zarr_store_op *op)
{
    if (op->status == ZARR_ERR_NOT_FOUND)
        return true;
    if (op->status != ZARR_OK ||
        (op->object_bytes != UINT64_MAX && op->object_bytes > op->done_bytes) ||
        op->done_bytes > old_value_most(io, u) ||
        (u->conditional && zr_store_version_is_none(&op->version)))
        return false;
    u->old = op->mem;
    u->old.bytes = op->done_bytes;
    u->version = op->version;
    return true;
}

/* Units without a lock that they need leave the batch. */
static void drop_unready(struct zr_unit_batch *b)
{
    uint32_t left = 0;

    for (uint32_t i = 0; i < b->n; i++) {
        const struct zr_unit u = b->unit[i];

        if (!u.proj->full && !u.lock)
            continue;
        b->w.worker->stats.read_modify_writes +=
            !u.proj->full && (!u.proj->whole || u.old.handle);
        b->unit[left++] = u;
    }
    b->n = left;
}

zarr_status zr_old_values_run(struct zr_unit_batch *b, zarr_error *err)
{
    const struct zr_io *io = b->w.io;
    struct zr_unit_ops x;

    ZR_CHECK(zr_unit_ops_room(&x, b, err));
    take_locks(b);
    ZR_CHECK(zr_request_check_locked(b->w.rq, err));
    ZR_CHECK(zr_cancel_check(&b->w.rq->cancel, err));
    old_value_ops(b, &x);
    ZR_CHECK(old_value_memory(b, &x, err));
    if (x.n > 0)
        ZR_CHECK(zr_ops_run(io, b->w.rq, x.op, x.n, NULL, b->arena, err));
    for (uint32_t i = 0; i < x.n; i++)
        if (!old_value_keep(io, x.unit[i], &x.op[i]))
            zr_unit_unlock(io, x.unit[i]);
    drop_unready(b);
    return ZARR_OK;
}

void zr_old_values_end(struct zr_unit_batch *b)
{
    for (uint32_t i = 0; i < b->n; i++)
        zr_unit_unlock(b->w.io, &b->unit[i]);
    zr_pool_give(b->w.io->engine->pool, &b->old_values);
}
