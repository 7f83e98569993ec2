/*
 * pipe/before.c - what units need before they are written in part, for several units at
 * once: their locks, and their old values in one submit. A lock that another writer holds
 * is not waited for, because a holder of locks must not wait. Such a unit is left to be
 * written alone (units.c), and so is one whose old value could not be read or is longer
 * than expected. The locks are tried in the order of the units, which is the same for all
 * requests: a store of a plug-in may wait all the same.
 * Thread class: one thread per request.
 */
#include "pipe/pipe_int.h"

enum {
    LOCKS_MOST = 64 /* of a store that may have an open file for each */
};

uint32_t zr_befores_most(const struct zr_io *io)
{
    return zr_store_can(io->store, ZARR_STORE_CAP_LOCK) ? LOCKS_MOST : UINT32_MAX;
}

/* The program that decodes the old value; NULL for shards, whose bytes are on the
 * host. */
static const struct zr_program *before_program(const struct zr_before *b)
{
    return b->lv->is_shard ? NULL : b->lv->decode;
}

static uint64_t before_most(const struct zr_io *io, const struct zr_before *b)
{
    const struct zr_program *p = before_program(b);

    return p ? zr_program_most(io, p) : zr_shard_most(io, b->lv);
}

static int32_t before_device(const struct zr_before *b)
{
    const struct zr_program *p = before_program(b);

    return p ? p->fetch_device : ZARR_DEVICE_CPU;
}

static zarr_status before_key(const struct zr_io *io, struct zr_before *b,
                              struct zr_str *key, struct zr_arena *arena, zarr_error *err)
{
    const struct zr_plan_args where = {.layout = io->layout, .prefix = io->prefix};
    zarr_status st = ZARR_OK;

    zr_plan_key(&where, b->proj->chunk, key);
    ZR_TRY(zr_str_status(key, err));
    b->key = zr_arena_strndup(arena, zr_str_text(key), key->bytes);
    if (!b->key)
        st = zr_fail_memory(err, key->bytes);
out:
    return st;
}

/* Takes the locks that are free. */
static zarr_status take_locks(const struct zr_io *io, struct zarr_request *rq,
                              struct zr_befores *l, struct zr_arena *arena,
                              zarr_error *err)
{
    struct zr_str key;
    zarr_status st = ZARR_OK;

    zr_str_init(&key, io->engine->alloc);
    for (uint32_t i = 0; i < l->n; i++) {
        struct zr_before *b = &l->unit[i];

        ZR_TRY(before_key(io, b, &key, arena, err));
        if (zr_store_lock_try(io->store, b->key, &rq->cancel, &b->lock, NULL) != ZARR_OK)
            b->lock = NULL;
    }
out:
    zr_str_deinit(&key);
    return st;
}

static void before_op(const struct zr_io *io, struct zr_before *b, zarr_store_op *op)
{
    b->conditional = !zr_store_can(io->store, ZARR_STORE_CAP_LOCK) &&
                     zr_store_can(io->store, ZARR_STORE_CAP_CONDITIONAL);
    *op = (zarr_store_op){.verb = ZARR_STORE_GET,
                          .flags = ZARR_STORE_OP_CHUNK,
                          .key = b->key,
                          .length = ZARR_STORE_TO_END,
                          .mem = {.device_type = before_device(b)},
                          .object_bytes = UINT64_MAX,
                          .status = ZARR_ERR_INTERNAL};
    if (b->conditional)
        op->flags |= ZARR_STORE_OP_WANT_VERSION;
    (void)zr_store_lend(io->store, op);
    b->op = op;
}

/* Whether a list copies the old values from the host to a device. Codecs get the others
 * where they are, so those are aligned. */
static bool before_goes_up(const struct zr_io *io, const struct zr_before *b)
{
    return !zr_io_is_host(io, io->view.base.device_type) &&
           zr_io_is_host(io, before_device(b));
}

/* Makes the operations for the units that have their lock, and takes memory for them. */
static zarr_status before_ops(const struct zr_io *io, struct zr_befores *l,
                              zarr_store_op *op, uint32_t *n, zarr_error *err)
{
    uint64_t step = 0;
    zarr_status st = ZARR_OK;

    *n = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        struct zr_before *b = &l->unit[i];

        if (!b->lock || before_device(b) != before_device(&l->unit[0]))
            continue;
        before_op(io, b, &op[(*n)++]);
        if (b->op->status != ZARR_OK)
            step = ZR_MAX(step, ZR_MIN(b->lv->encoded_bound, before_most(io, b)));
    }
    if (step == 0)
        return ZARR_OK;
    ZR_TRY((before_goes_up(io, &l->unit[0]) ? zr_take_near_slices : zr_take_slices)(
        io, before_device(&l->unit[0]), &step, *n, &l->slab, err));
    for (uint32_t i = 0; i < *n; i++)
        if (op[i].status != ZARR_OK &&
            !zr_mem_slice(&l->slab, step * i, step, &op[i].mem))
            return zr_internal(err);
out:
    return st;
}

/* Takes what was read. */
static void before_keep(const struct zr_io *io, struct zr_before *b)
{
    const zarr_store_op *op = b->op;

    b->ready = op->status == ZARR_ERR_NOT_FOUND;
    if (op->status != ZARR_OK ||
        (op->object_bytes != UINT64_MAX && op->object_bytes > op->done_bytes) ||
        op->done_bytes > before_most(io, b))
        return;
    b->ready = true;
    b->old = op->mem;
    b->old.bytes = op->done_bytes;
    b->version = op->version;
}

zarr_status zr_befores_run(const struct zr_io *io, struct zarr_request *rq,
                           struct zr_befores *l, struct zr_arena *arena, zarr_error *err)
{
    zarr_store_op *op = zr_arena_alloc(arena, ((size_t)l->n + 1) * sizeof *op);
    uint32_t n = 0;
    zarr_status st = ZARR_OK;

    if (!op)
        return zr_fail_memory(err, l->n * sizeof *op);
    ZR_TRY(take_locks(io, rq, l, arena, err));
    ZR_TRY(zr_cancel_check(&rq->cancel, err));
    ZR_TRY(before_ops(io, l, op, &n, err));
    if (n == 0)
        goto out;
    ZR_TRY(zr_ops_run(io, rq, op, n, NULL, arena, err));
    for (uint32_t i = 0; i < l->n; i++) {
        struct zr_before *b = &l->unit[i];

        if (b->op)
            before_keep(io, b);
        if (b->ready)
            continue;
        zr_store_unlock(io->store, b->lock);
        b->lock = NULL;
    }
out:
    return st;
}

void zr_befores_end(const struct zr_io *io, struct zr_befores *l)
{
    for (uint32_t i = 0; i < l->n; i++) {
        zr_store_unlock(io->store, l->unit[i].lock);
        l->unit[i].lock = NULL;
        l->unit[i].ready = false;
    }
    zr_pool_give(io->engine->pool, &l->slab);
}

void zr_before_op(const struct zr_before *b, zarr_store_op *op)
{
    op->flags |= ZARR_STORE_OP_LOCKED;
    op->lock = b->lock;
    if (!b->conditional)
        return;
    op->flags |= ZARR_STORE_OP_IF_VERSION;
    op->version = b->version;
}
