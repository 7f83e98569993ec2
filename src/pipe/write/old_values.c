/*
 * pipe/write/old_values.c - several units that are written together: the locks and old
 * values of those that are written in part, and the PUTs of all. The old values are one
 * submit, and so are the PUTs.
 *
 * A lock that another writer holds is not waited for, because a holder of locks must not
 * wait. Such a unit is left to be written alone (units.c), and so is one whose old value
 * could not be read or is longer than expected. The locks are tried in the order of the
 * units, which is the same for all requests: a store of a plug-in may wait all the same.
 *
 * A PUT without a lock may wait for another writer, who may wait for one of our locks. So
 * each lock is given back as soon as its own PUT is done, and PUTs with a lock begin
 * first: they wait for no one. A lock of the store itself is not given back while the
 * store reports the end of an operation, which it may do inside of its own locks; there
 * the PUTs without a lock are a second submit.
 *
 * Thread class: one thread per request; zr_old_value_unlock(): any thread.
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

/* The program that decodes the old value; NULL for shards, whose bytes are on the
 * host. */
static const struct zr_program *old_value_program(const struct zr_old_value *b)
{
    return b->lv->is_shard ? NULL : b->lv->decode;
}

static uint64_t old_value_most(const struct zr_io *io, const struct zr_old_value *b)
{
    const struct zr_program *p = old_value_program(b);

    return p ? zr_program_most(io, p) : zr_shard_most(io, b->lv);
}

static int32_t old_value_device(const struct zr_old_value *b)
{
    const struct zr_program *p = old_value_program(b);

    return p ? p->fetch_device : ZARR_DEVICE_CPU;
}

static zarr_status old_value_key(const struct zr_io *io, struct zr_old_value *b,
                                 struct zr_str *key, struct zr_arena *arena,
                                 zarr_error *err)
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
                              struct zr_old_values *l, struct zr_arena *arena,
                              zarr_error *err)
{
    struct zr_str key;
    zarr_status st = ZARR_OK;

    zr_str_init(&key, io->engine->alloc);
    for (uint32_t i = 0; i < l->n; i++) {
        struct zr_old_value *b = &l->unit[i];

        ZR_TRY(old_value_key(io, b, &key, arena, err));
        if (zr_store_lock_try(io->store, b->key, &rq->cancel, &b->lock, NULL) != ZARR_OK)
            b->lock = NULL;
    }
out:
    zr_str_deinit(&key);
    return st;
}

static void old_value_op(const struct zr_io *io, struct zr_old_value *b,
                         zarr_store_op *op)
{
    b->conditional = !zr_store_can(io->store, ZARR_STORE_CAP_LOCK) &&
                     zr_store_can(io->store, ZARR_STORE_CAP_CONDITIONAL);
    *op = (zarr_store_op){.verb = ZARR_STORE_GET,
                          .flags = ZARR_STORE_OP_CHUNK,
                          .key = b->key,
                          .length = ZARR_STORE_TO_END,
                          .mem = {.device_type = old_value_device(b)},
                          .object_bytes = UINT64_MAX,
                          .status = ZARR_ERR_INTERNAL};
    if (b->conditional)
        op->flags |= ZARR_STORE_OP_WANT_VERSION;
    (void)zr_store_lend(io->store, op);
    b->op = op;
}

/* Whether a list copies the old values from the host to a device. Codecs get the others
 * where they are, so those are aligned. */
static bool old_value_goes_up(const struct zr_io *io, const struct zr_old_value *b)
{
    return !zr_io_is_host(io, io->view.base.device_type) &&
           zr_io_is_host(io, old_value_device(b));
}

/* Bytes of memory for an old value, and of the distance to the next one. False: they are
 * too many. */
static bool old_value_room(const struct zr_io *io, const struct zr_old_value *b,
                           uint64_t *bytes, uint64_t *step)
{
    const uint64_t align =
        old_value_goes_up(io, b) ? (uint64_t)ZR_NEAR_ALIGNMENT : ZR_CHUNK_ALIGNMENT;

    *bytes = ZR_MIN(b->lv->encoded_bound, old_value_most(io, b));
    if (!zr_add(*bytes, align - 1, step))
        return false;
    *step = *step / align * align;
    return true;
}

/* One block for the old values that the store does not lend, each with its own length:
 * the units may differ in shape. */
static zarr_status old_value_memory(const struct zr_io *io, struct zr_old_values *l,
                                    zarr_error *err)
{
    const int32_t device = old_value_device(&l->unit[0]);
    uint64_t all = 0, at = 0, bytes = 0, step = 0;
    zarr_status st = ZARR_OK;

    for (uint32_t i = 0; i < l->n; i++)
        if (l->unit[i].op && l->unit[i].op->status != ZARR_OK &&
            (!old_value_room(io, &l->unit[i], &bytes, &step) || !zr_add(all, step, &all)))
            return zr_fail(err, ZARR_ERR_LIMIT, "a batch too large for memory");
    if (all == 0)
        return ZARR_OK;
    ZR_TRY((old_value_goes_up(io, &l->unit[0]) ? zr_take_near_slices : zr_take_slices)(
        io, device, &all, 1, &l->slab, err));
    for (uint32_t i = 0; i < l->n; i++) {
        struct zr_old_value *b = &l->unit[i];

        if (!b->op || b->op->status == ZARR_OK)
            continue;
        (void)old_value_room(io, b, &bytes, &step);
        if (!zr_mem_slice(&l->slab, at, bytes, &b->op->mem))
            return zr_internal(err);
        at += step;
    }
out:
    return st;
}

/* Makes the operations for the units that have their lock, and takes memory for them. */
static zarr_status old_value_ops(const struct zr_io *io, struct zr_old_values *l,
                                 zarr_store_op *op, uint32_t *n, zarr_error *err)
{
    *n = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        struct zr_old_value *b = &l->unit[i];

        if (!b->lock || old_value_device(b) != old_value_device(&l->unit[0]))
            continue;
        old_value_op(io, b, &op[(*n)++]);
    }
    return old_value_memory(io, l, err);
}

/* Takes what was read. */
static void old_value_keep(const struct zr_io *io, struct zr_old_value *b)
{
    const zarr_store_op *op = b->op;

    b->ready = op->status == ZARR_ERR_NOT_FOUND;
    if (op->status != ZARR_OK ||
        (op->object_bytes != UINT64_MAX && op->object_bytes > op->done_bytes) ||
        op->done_bytes > old_value_most(io, b))
        return;
    b->ready = true;
    b->old = op->mem;
    b->old.bytes = op->done_bytes;
    b->version = op->version;
}

zarr_status zr_old_values_run(const struct zr_io *io, struct zarr_request *rq,
                              struct zr_old_values *l, struct zr_arena *arena,
                              zarr_error *err)
{
    zarr_store_op *op = zr_arena_alloc(arena, ((size_t)l->n + 1) * sizeof *op);
    uint32_t n = 0;
    zarr_status st = ZARR_OK;

    if (!op)
        return zr_fail_memory(err, l->n * sizeof *op);
    ZR_TRY(take_locks(io, rq, l, arena, err));
    ZR_TRY(zr_request_check_locked(rq, err));
    ZR_TRY(zr_cancel_check(&rq->cancel, err));
    ZR_TRY(old_value_ops(io, l, op, &n, err));
    if (n == 0)
        goto out;
    ZR_TRY(zr_ops_run(io, rq, op, n, NULL, arena, err));
    for (uint32_t i = 0; i < l->n; i++) {
        struct zr_old_value *b = &l->unit[i];

        if (b->op)
            old_value_keep(io, b);
        if (b->ready)
            continue;
        zr_old_value_unlock(io, b);
    }
out:
    return st;
}

void zr_old_value_unlock(const struct zr_io *io, struct zr_old_value *v)
{
    if (!v)
        return;
    zr_store_unlock(io->store, v->lock);
    v->lock = NULL;
}

static void give_locks(const struct zr_io *io, struct zr_old_values *l)
{
    for (uint32_t i = 0; i < l->n; i++)
        zr_old_value_unlock(io, &l->unit[i]);
}

void zr_old_values_end(const struct zr_io *io, struct zr_old_values *l)
{
    give_locks(io, l);
    for (uint32_t i = 0; i < l->n; i++)
        l->unit[i].ready = false;
    zr_pool_give(io->engine->pool, &l->slab);
}

void zr_old_value_op(const struct zr_old_value *b, zarr_store_op *op)
{
    op->flags |= ZARR_STORE_OP_LOCKED;
    op->lock = b->lock;
    if (!b->conditional)
        return;
    op->flags |= ZARR_STORE_OP_IF_VERSION;
    op->version = b->version;
}

/* ---- new values ----------------------------------------------------------------- */

zarr_status zr_puts_room(struct zr_puts *p, uint32_t n, struct zr_arena *arena,
                         zarr_error *err)
{
    *p = (struct zr_puts){.failed = UINT32_MAX};
    p->op = zr_arena_alloc(arena, ((size_t)n + 1) * sizeof *p->op);
    p->holder = zr_arena_alloc(arena, ((size_t)n + 1) * sizeof(struct zr_old_value *));
    return p->op && p->holder ? ZARR_OK : zr_fail_memory(err, n * sizeof *p->op);
}

zarr_store_op *zr_puts_add(struct zr_puts *p, struct zr_old_value *holder)
{
    p->holder[p->n] = holder;
    p->n_locked += holder != NULL;
    return &p->op[p->n++];
}

/* Who has the locks of operations that run. */
struct lock_holders {
    const struct zr_io *io;
    struct zr_old_value *const *holder; /* by operation */
};

/* Gives the lock of an operation back as soon as it ends. In a forked child the locks are
 * the parent's, who may just have given them back. */
static void unlock_holder(void *arg, uint32_t i, bool is_lost)
{
    const struct lock_holders *h = arg;

    if (is_lost && h->holder[i])
        h->holder[i]->lock = NULL;
    zr_old_value_unlock(h->io, h->holder[i]);
}

/* Runs the operations from `first` up to `end`. */
static zarr_status run_puts(const struct zr_io *io, struct zarr_request *rq,
                            struct zr_puts *p, uint32_t first, uint32_t end,
                            struct zr_arena *arena, zarr_error *err)
{
    struct lock_holders h = {.io = io, .holder = p->holder ? p->holder + first : NULL};
    struct zr_ops_watch watch = {
        .ended = p->holder ? unlock_holder : NULL, .arg = &h, .failed = UINT32_MAX};
    zarr_status st = ZARR_OK;

    if (first == end)
        return ZARR_OK;
    for (uint32_t i = first; i < end; i++)
        zr_ask_put(rq, &p->op[i]);
    st = zr_ops_run(io, rq, p->op + first, end - first, &watch, arena, err);
    for (uint32_t i = first; st == ZARR_OK && i < end; i++)
        st = zr_note_put(rq, &p->op[i], err);
    if (watch.failed != UINT32_MAX && p->failed == UINT32_MAX) {
        p->failed = first + watch.failed;
        p->error = watch.error;
    }
    return st;
}

zarr_status zr_puts_run(const struct zr_io *io, struct zarr_request *rq,
                        struct zr_puts *p, struct zr_old_values *values,
                        struct zr_arena *arena, zarr_error *err)
{
    const bool apart = zr_store_can(io->store, ZARR_STORE_CAP_LOCK);
    zarr_status st = ZARR_OK;

    if (apart)
        p->holder = NULL;
    st = run_puts(io, rq, p, 0, apart ? p->n_locked : p->n, arena, err);
    give_locks(io, values);
    if (st == ZARR_OK && apart && (io->parts || p->failed == UINT32_MAX))
        st = run_puts(io, rq, p, p->n_locked, p->n, arena, err);
    return st;
}
