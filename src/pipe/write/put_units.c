/*
 * pipe/write/put_units.c - stores the new values of a batch of units (batch_units.c), in
 * one submit, or in a parallel loop if the store is written on the encoding thread.
 *
 * A PUT without a lock may wait for another writer, who may wait for one of our locks. So
 * each lock is given back as soon as its own PUT is done, and PUTs with a lock begin
 * first: they wait for no one. A lock of the store itself is not given back while the
 * store reports the end of an operation, which it may do inside of its own locks; there
 * the PUTs without a lock are a second submit.
 *
 * Thread class: one thread per request; the end of an operation: any thread.
 */
#include "pipe/write/write_int.h"

/* Whether another writer changed or erased the old value meanwhile. */
static bool is_conflict(const struct zr_unit *u, zarr_status st)
{
    return u->conditional && (st == ZARR_ERR_CONFLICT ||
                              (st == ZARR_ERR_NOT_FOUND && !zr_unit_is_empty(u)));
}

/* ---- one after the other ---------------------------------------------------------- */

/* Units of a batch of which those with a lock, or the others, are stored. */
struct put_turn {
    struct zr_unit_batch *b;
    bool full;
};

static zarr_status put_one(void *arg, uint64_t i, const struct zr_work *w,
                           zarr_error *err)
{
    const struct put_turn *turn = arg;
    struct zr_unit *u = &turn->b->unit[i];
    zarr_error e = ZARR_ERROR_INIT;
    zarr_status st = ZARR_OK;

    if (u->proj->full != turn->full)
        return ZARR_OK;
    st = zr_unit_store(w, u, &e);
    if (u->shard)
        zr_index_cache_drop(w->io->indexes, u->key);
    u->is_left = is_conflict(u, st);
    return u->is_left ? ZARR_OK : zr_prefix_key(err, zr_pass(err, st, &e), u->key);
}

static zarr_status put_each(struct zr_unit_batch *b, bool full, zarr_error *err)
{
    const struct zr_parallel_options opts = {.max_threads = zr_io_threads(b->w.io),
                                             .grain = 1,
                                             .item_ns = 20000 + b->lv->encoded_bound};
    struct put_turn turn = {.b = b, .full = full};

    return zr_workers_run(&b->w, b->n, &opts, put_one, &turn, err);
}

/* Stores the units that have a lock, gives the locks back, and only then stores the
 * others. */
static zarr_status put_in_turns(struct zr_unit_batch *b, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    if (b->n_partial > 0)
        st = put_each(b, false, err);
    zr_old_values_end(b);
    if (st == ZARR_OK)
        st = put_each(b, true, err);
    return st;
}

/* ---- at once -------------------------------------------------------------------- */

/* PUTs and ERASEs of a batch, those of units with a lock first. */
struct unit_puts {
    struct zr_unit_batch *b;
    struct zr_unit_ops x;
    uint32_t n_locked;
    uint32_t failed; /* out: the operation, the first in order; UINT32_MAX: none */
    zarr_error error;
};

static void add_puts(struct unit_puts *p, bool full)
{
    for (uint32_t i = 0; i < p->b->n; i++) {
        struct zr_unit *u = &p->b->unit[i];

        if (u->proj->full != full)
            continue;
        p->x.unit[p->x.n] = u;
        zr_unit_op(p->b->w.io, u, &p->x.op[p->x.n++]);
        p->n_locked += !full;
    }
}

/* Who has the locks of operations that run. */
struct lock_holders {
    const struct zr_io *io;
    struct zr_unit *const *unit; /* by operation */
};

/* Gives the lock of an operation back as soon as it ends. In a forked child the locks are
 * the parent's, who may just have given them back. */
static void unlock_holder(void *arg, uint32_t i, bool is_lost)
{
    const struct lock_holders *h = arg;

    if (is_lost)
        h->unit[i]->lock = NULL;
    zr_unit_unlock(h->io, h->unit[i]);
}

/* Runs the operations from `first` up to `end`. unlock: gives locks back meanwhile. */
static zarr_status run_puts(struct unit_puts *p, uint32_t first, uint32_t end,
                            bool unlock, zarr_error *err)
{
    struct zr_unit_batch *b = p->b;
    zarr_store_op *op = p->x.op;
    struct lock_holders h = {.io = b->w.io, .unit = p->x.unit + first};
    struct zr_ops_watch watch = {
        .ended = unlock ? unlock_holder : NULL, .arg = &h, .failed = UINT32_MAX};
    zarr_status st = ZARR_OK;

    if (first == end)
        return ZARR_OK;
    for (uint32_t i = first; i < end; i++)
        zr_ask_put(b->w.rq, &op[i]);
    st = zr_ops_run(b->w.io, b->w.rq, op + first, end - first, &watch, b->arena, err);
    for (uint32_t i = first; st == ZARR_OK && i < end; i++)
        st = zr_note_put(b->w.rq, &op[i], err);
    if (watch.failed != UINT32_MAX && p->failed == UINT32_MAX) {
        p->failed = first + watch.failed;
        p->error = watch.error;
    }
    return st;
}

/* Runs all operations. Afterwards no unit has a lock. */
static zarr_status run_all_puts(struct unit_puts *p, zarr_error *err)
{
    const bool apart = zr_store_can(p->b->w.io->store, ZARR_STORE_CAP_LOCK);
    zarr_status st = run_puts(p, 0, apart ? p->n_locked : p->x.n, !apart, err);

    for (uint32_t i = 0; i < p->b->n; i++)
        zr_unit_unlock(p->b->w.io, &p->b->unit[i]);
    if (st == ZARR_OK && apart && (p->b->w.io->parts || p->failed == UINT32_MAX))
        st = run_puts(p, p->n_locked, p->x.n, false, err);
    return st;
}

static zarr_status put_at_once(struct zr_unit_batch *b, zarr_error *err)
{
    const bool leaves_failed = b->w.io->parts && !b->is_batched;
    struct unit_puts p = {.b = b, .failed = UINT32_MAX};
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_unit_ops_room(&p.x, b, err));
    add_puts(&p, false);
    add_puts(&p, true);
    st = run_all_puts(&p, err);
    for (uint32_t k = 0; k < p.x.n; k++) {
        struct zr_unit *u = p.x.unit[k];
        const zarr_status put = p.x.op[k].status;
        const bool done =
            put == ZARR_OK || (put == ZARR_ERR_NOT_FOUND && zr_unit_is_empty(u));

        u->is_left = is_conflict(u, put) || (leaves_failed && !done);
        if (u->shard)
            zr_index_cache_drop(b->w.io->indexes, u->key);
    }
    ZR_TRY(st);
    if (p.failed != UINT32_MAX && !leaves_failed)
        st = zr_prefix_key(err, zr_pass(err, p.error.code, &p.error),
                           p.x.unit[p.failed]->key);
out:
    return st;
}

/* For stores that are written on the encoding thread, and sinks, one by one. */
zarr_status zr_units_put(struct zr_unit_batch *b, zarr_error *err)
{
    const bool each =
        b->w.io->sink ||
        (b->is_batched && zr_store_can(b->w.io->store, ZARR_STORE_CAP_FAST_GET));

    return each ? put_in_turns(b, err) : put_at_once(b, err);
}
