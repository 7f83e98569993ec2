/*
 * unit/merging_store.h - a store with ZARR_STORE_CAP_COALESCES on top of another one, for
 * tests. It merges the operations of a submit() as a network store does, counts requests
 * and bytes, and gets each answer in small pieces, on a thread of its own. Its latency is
 * a number, not a pause: a submit() that comes while nothing is in flight is a round.
 */
#ifndef ZR_MERGING_STORE_H
#define ZR_MERGING_STORE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>
#include <pthread.h>

#include "coalesce/coalesce.h"

struct merging {
    zarr_store *below;
    const struct zr_memory_registry *memory;
    uint32_t caps;
    struct zr_estimate estimate;
    /* counted; most_ops: of a submit() */
    atomic_int n_requests, n_ops, most_ops, rounds, in_flight;
    atomic_uint_fast64_t got_bytes;
    atomic_int fail_at; /* this request fails with IO; 0: none */
};

static inline void merging_reset(struct merging *s)
{
    s->n_requests = s->n_ops = s->most_ops = s->rounds = s->fail_at = 0;
    s->got_bytes = 0;
}

static inline void merging_caps(void *self, zarr_store_caps *out)
{
    out->flags = ((const struct merging *)self)->caps | ZARR_STORE_CAP_COALESCES |
                 ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_SUFFIX;
}

struct merging_batch {
    struct merging *s;
    struct zr_joint_reads *reads;
    void (*done)(void *arg, zarr_store_op *op, const zarr_error *err);
    void *arg;
};

static inline void merging_answer(const struct merging_batch *b, struct zr_joint_read *r)
{
    uint8_t *bytes = malloc((size_t)r->bytes + 1);
    zarr_error err = {0};
    zarr_store_op op = {.verb = ZARR_STORE_GET,
                        .flags = r->flags,
                        .key = r->key,
                        .offset = r->offset,
                        .length = r->bytes,
                        .mem = {ZARR_DEVICE_CPU, 0, bytes, 0, r->bytes},
                        .version = r->version,
                        .cancel = r->cancel};
    struct zr_joint_answer a = {.object_bytes = UINT64_MAX, .version = &op.version};
    uint64_t at = r->offset, n;

    assert_non_null(bytes);
    if (atomic_fetch_add(&b->s->n_requests, 1) + 1 == b->s->fail_at)
        a.status = zr_fail(&err, ZARR_ERR_IO, "%s: the connection was reset", r->key);
    else
        a.status = zarr_store_run(b->s->below, &op, &err);
    if (a.status == ZARR_OK && r->offset == ZARR_STORE_SUFFIX)
        at = op.object_bytes - op.done_bytes;
    if (a.status == ZARR_OK)
        a.status = zr_joint_read_begin(r, at, op.object_bytes, &err);
    for (uint64_t i = 0; a.status == ZARR_OK && i < op.done_bytes; i += n) {
        n = op.done_bytes - i < 1000 ? op.done_bytes - i : 1000;
        (void)zr_joint_read_take(r, bytes + i, (size_t)n);
    }
    atomic_fetch_add(&b->s->got_bytes, op.done_bytes);
    a.err = a.status == ZARR_OK ? NULL : &err;
    zr_joint_read_end(r, &a, b->done, b->arg);
    free(bytes);
}

static inline void *merging_thread(void *arg)
{
    struct merging_batch *b = arg;
    struct merging *s = b->s;
    const size_t n = b->reads->n_requests;

    for (size_t i = 0; i + 1 < n; i++)
        merging_answer(b, &b->reads->request[i]);
    atomic_fetch_sub(&s->in_flight, 1); /* done() may free the store */
    merging_answer(b, &b->reads->request[n - 1]);
    free(b);
    return NULL;
}

static inline void merging_submit(void *self, zarr_store_op **ops, uint64_t n,
                                  void (*done)(void *arg, zarr_store_op *op,
                                               const zarr_error *err),
                                  void *arg)
{
    struct merging *s = self;
    struct merging_batch *b = calloc(1, sizeof *b);
    zarr_store_op **gets = calloc(n, sizeof(zarr_store_op *));
    struct zr_joint_rules rules;
    uint64_t n_gets = 0;
    pthread_t thread;

    assert_true(b && gets);
    atomic_fetch_add(&s->n_ops, (int)n);
    if ((int)n > s->most_ops)
        s->most_ops = (int)n;
    if (atomic_fetch_add(&s->in_flight, 1) == 0)
        atomic_fetch_add(&s->rounds, 1);
    for (uint64_t i = 0; i < n; i++) {
        zarr_error err = {0};

        if (ops[i]->verb == ZARR_STORE_GET) {
            gets[n_gets++] = ops[i];
            continue;
        }
        (void)zarr_store_run(s->below, ops[i], &err);
        done(arg, ops[i], ops[i]->status == ZARR_OK ? NULL : &err);
    }
    *b = (struct merging_batch){s, NULL, done, arg};
    if (n_gets == 0) {
        atomic_fetch_sub(&s->in_flight, 1);
        free(b);
    } else {
        zr_estimate_rules(&s->estimate, &rules);
        assert_int_equal(zr_joint_reads_make(&b->reads, NULL, s->memory, gets,
                                             (size_t)n_gets, &rules, NULL),
                         ZARR_OK);
        assert_int_equal(pthread_create(&thread, NULL, merging_thread, b), 0);
        pthread_detach(thread);
    }
    free(gets);
}

static const zarr_store_vtable merging_vtable = {.struct_size = sizeof merging_vtable,
                                                 .name = "merging",
                                                 .caps = merging_caps,
                                                 .submit = merging_submit};

#endif
