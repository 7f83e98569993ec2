/*
 * unit/over_store.h - a store of an application on top of another one, for tests. It
 * answers one operation at a time or many that it was given together. It fails, is slow,
 * finds other versions, loses values and answers, and ignores conditions. All of this is
 * off until a test sets it.
 */
#ifndef ZR_OVER_STORE_H
#define ZR_OVER_STORE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>
#include <time.h>

#include "store/store.h"

struct over {
    zarr_store *below;
    uint32_t caps;
    atomic_int n_submitted, n_gets, n_conflicts, n_lists;
    atomic_int most_at_once, most_listed; /* operations of a submit; rows of a listing */
    int fail_get;          /* status that GETs of chunks return; 0: no failure */
    atomic_int conflicts;  /* this many conditional PUTs find another version */
    int gone_at;           /* this GET of a chunk returns NOT_FOUND; 0: none */
    atomic_int replace_at; /* this GET of a chunk finds another version; 0: none */
    /* what replaces it; NULL: the same bytes are written again */
    void (*replace)(struct over *o);
    bool lose_puts; /* those of chunks return NOT_FOUND */
    int slow_ms;
    /* by verb: this many operations are done, and then fail with IO */
    atomic_int lost_answers[ZARR_STORE_APPEND + 1];
    bool no_copy;                       /* a COPY returns UNSUPPORTED */
    uint64_t part_min_bytes, parts_max; /* capabilities; the former is checked */
    bool wants_equal_parts;             /* none has more than part_min_bytes */
    atomic_int most_parts;              /* of one submit */
    _Atomic(uint64_t) short_part;       /* number of a part that has fewer; 0: none */
    atomic_int n_uploads, n_open_uploads;
    uint32_t ignores; /* bit 1 << verb: the conditions of this verb are not looked at */
    /* by verb: operations, and those with a condition */
    atomic_int n_ops[ZARR_STORE_APPEND + 1], n_conditional[ZARR_STORE_APPEND + 1];
};

static inline void over_caps(void *self, zarr_store_caps *out)
{
    const struct over *o = self;

    *out = (zarr_store_caps){.struct_size = sizeof *out,
                             .flags = o->caps,
                             .part_min_bytes = o->part_min_bytes,
                             .parts_max = o->parts_max};
}

/* Operations of one submit may run in several threads. */
static inline bool over_takes_one(atomic_int *n)
{
    int left = atomic_load(n);

    while (left > 0 && !atomic_compare_exchange_weak(n, &left, left - 1))
        ;
    return left > 0;
}

/* Writes the same bytes again, which gives a new version. */
static inline void over_replace(struct over *o, const char *key)
{
    static char value[65536];
    uint64_t n = sizeof value;

    assert_int_equal(zarr_store_get(o->below, key, 0, value, &n, NULL, NULL), ZARR_OK);
    assert_int_equal(zarr_store_put(o->below, key, value, n, NULL, NULL), ZARR_OK);
}

static inline void over_do(struct over *o, zarr_store_op *op, zarr_error *err)
{
    const struct timespec ms = {0, o->slow_ms * 1000000L};
    const bool chunk = strstr(op->key, "c/") != NULL;
    const uint32_t flags = op->flags;
    zarr_store_source *const source = op->source;
    zarr_store_source from;

    atomic_fetch_add(&o->n_ops[op->verb], 1);
    if (flags & ZARR_STORE_OP_IF_VERSION)
        atomic_fetch_add(&o->n_conditional[op->verb], 1);
    if (op->verb == ZARR_STORE_GET && chunk) {
        if (atomic_fetch_add(&o->n_gets, 1) + 1 == o->replace_at) {
            if (o->replace)
                o->replace(o);
            else
                over_replace(o, op->key);
        }
        if (o->slow_ms)
            nanosleep(&ms, NULL);
        if (o->gone_at && atomic_load(&o->n_gets) == o->gone_at) {
            op->status = ZARR_ERR_NOT_FOUND;
            return;
        }
        if (o->fail_get) {
            op->status = zr_fail(err, (zarr_status)o->fail_get, "made to fail");
            return;
        }
    }
    if (op->verb == ZARR_STORE_PUT && chunk && o->lose_puts) {
        op->status = zr_fail(err, ZARR_ERR_NOT_FOUND, "there is no such bucket");
        return;
    }
    if (op->verb == ZARR_STORE_PUT && (op->flags & ZARR_STORE_OP_IF_VERSION) &&
        over_takes_one(&o->conflicts)) {
        atomic_fetch_add(&o->n_conflicts, 1);
        op->status = zr_fail(err, ZARR_ERR_CONFLICT, "another writer was faster");
        return;
    }
    if (op->verb == ZARR_STORE_COPY && o->no_copy) {
        op->status = zr_fail(err, ZARR_ERR_UNSUPPORTED, "from another place");
        return;
    }
    if (op->verb == ZARR_STORE_COPY) {
        assert_true(o->caps &
                    (op->flags & ZARR_STORE_OP_IN_PARTS ? ZARR_STORE_CAP_COPY_PARTS
                                                        : ZARR_STORE_CAP_COPY));
        from = *source;
        from.store = ((struct over *)source->self)->below;
        op->source = &from;
    }
    if (op->verb == ZARR_STORE_PUT_PART && op->mem.bytes < o->part_min_bytes) {
        assert_int_equal(o->short_part, 0);
        o->short_part = op->part;
    }
    assert_true(op->verb != ZARR_STORE_PUT_PART || !o->wants_equal_parts ||
                op->mem.bytes <= o->part_min_bytes);
    assert_true(op->verb != ZARR_STORE_PUT_PART || !o->short_part ||
                op->part <= o->short_part);
    if ((o->caps & ZARR_STORE_CAP_VERSIONS) && op->verb != ZARR_STORE_ERASE &&
        op->verb != ZARR_STORE_PUT_PART && !(op->flags & ZARR_STORE_OP_IN_PARTS))
        op->flags |= ZARR_STORE_OP_WANT_VERSION;
    if (o->ignores >> op->verb & 1)
        op->flags &= ~(uint32_t)ZARR_STORE_OP_IF_VERSION;
    (void)zr_store_run_one(o->below, op, err);
    op->flags = flags;
    op->source = source;
    if (op->status == ZARR_OK && over_takes_one(&o->lost_answers[op->verb]))
        op->status = zr_fail(err, ZARR_ERR_IO, "the connection was reset");
}

static inline void over_run(void *self, zarr_store_op *op, zarr_error *err)
{
    over_do(self, op, err);
}

static inline void
over_submit(void *self, zarr_store_op **ops, uint64_t n,
            void (*done)(void *arg, zarr_store_op *op, const zarr_error *err), void *arg)
{
    struct over *o = self;
    zarr_error err;

    atomic_fetch_add(&o->n_submitted, (int)n);
    if ((int)n > atomic_load(&o->most_at_once))
        atomic_store(&o->most_at_once, (int)n);
    if (ops[0]->verb == ZARR_STORE_PUT_PART && (int)n > atomic_load(&o->most_parts))
        atomic_store(&o->most_parts, (int)n);
    for (uint64_t i = n; i-- > 0;) { /* in another order */
        zarr_store_op *op = ops[i];

        err.code = ZARR_OK;
        over_do(o, op, &err);
        done(arg, op, op->status != ZARR_OK ? &err : NULL);
    }
}

/* Counts the rows of one listing. */
struct over_listing {
    struct over *o;
    zarr_store_list_fn fn;
    void *user;
    int n;
};

static inline int over_row(void *user, const zarr_store_item *item)
{
    struct over_listing *l = user;

    if (++l->n > atomic_load(&l->o->most_listed))
        atomic_store(&l->o->most_listed, l->n);
    return l->fn(l->user, item);
}

static inline zarr_status over_list(void *self, const char *prefix, uint32_t how,
                                    zarr_store_list_fn fn, void *user,
                                    const zarr_cancel *cancel, zarr_error *err)
{
    struct over_listing l = {self, fn, user, 0};

    atomic_fetch_add(&l.o->n_lists, 1);
    return zr_store_list(l.o->below, prefix, how, over_row, &l, cancel, err);
}

static inline zarr_status over_begin_parts(void *self, const char *key, void *lock,
                                           const zarr_cancel *cancel, void **parts,
                                           zarr_error *err)
{
    struct over *o = self;
    const zarr_status st = zr_store_begin_parts(o->below, key, lock, cancel, parts, err);

    if (st == ZARR_OK) {
        atomic_fetch_add(&o->n_uploads, 1);
        atomic_fetch_add(&o->n_open_uploads, 1);
    }
    o->short_part = 0;
    return st;
}

static inline void over_end_parts(void *self, const char *key, void *parts)
{
    struct over *o = self;

    atomic_fetch_sub(&o->n_open_uploads, 1);
    zr_store_end_parts(o->below, key, parts);
}

static inline void over_close(void *self)
{
    zarr_store_free(((struct over *)self)->below);
}

static const zarr_store_vtable over_runs = {.struct_size = sizeof over_runs,
                                            .name = "over",
                                            .caps = over_caps,
                                            .run = over_run,
                                            .list = over_list,
                                            .close = over_close,
                                            .begin_parts = over_begin_parts,
                                            .end_parts = over_end_parts};
static const zarr_store_vtable over_submits = {.struct_size = sizeof over_submits,
                                               .name = "over",
                                               .caps = over_caps,
                                               .submit = over_submit,
                                               .list = over_list,
                                               .close = over_close,
                                               .begin_parts = over_begin_parts,
                                               .end_parts = over_end_parts};

#endif
