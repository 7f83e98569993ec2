/*
 * unit/pipe/gate_store.h - a store with a gate in front of its chunks, and an array in
 * it: while the gate is closed, no operation on a chunk goes on.
 */
#ifndef ZR_GATE_STORE_H
#define ZR_GATE_STORE_H

#include "pipe_test.h"

#include <pthread.h>
#include <zarrc/plugin/store.h>

enum {
    N = 24,
    CHUNK = 4
};

static const uint64_t shape[2] = {N, N}, chunk[2] = {CHUNK, CHUNK}, zero[2];
static int32_t data[N * N], got[N * N];

/* ---- a gate: GETs of chunks wait until it opens ------------------------------------ */

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bool closed;
    zarr_store *below;
} gate = {.mutex = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};

static void gate_set(bool closed)
{
    pthread_mutex_lock(&gate.mutex);
    gate.closed = closed;
    pthread_cond_broadcast(&gate.cond);
    pthread_mutex_unlock(&gate.mutex);
}

/* Teardown of all tests that close the gate: one that fails leaves its requests there,
 * and they would keep the threads from the next test. */
static int gate_open(void **state)
{
    (void)state;
    gate_set(false);
    return 0;
}

static void gate_caps(void *self, zarr_store_caps *out)
{
    (void)self;
    out->flags = ZARR_STORE_CAP_LIST | ZARR_STORE_CAP_WRITE | ZARR_STORE_CAP_ATOMIC_PUT;
}

static void gate_run(void *self, zarr_store_op *op, zarr_error *err)
{
    char *p = op->mem.handle ? (char *)op->mem.handle + op->mem.offset : NULL;

    (void)self;
    pthread_mutex_lock(&gate.mutex);
    while (gate.closed && strstr(op->key, "/c/"))
        pthread_cond_wait(&gate.cond, &gate.mutex);
    pthread_mutex_unlock(&gate.mutex);
    op->done_bytes = 0;
    op->object_bytes = UINT64_MAX;
    if (op->verb == ZARR_STORE_PUT) {
        op->status = zarr_store_put(gate.below, op->key, p, op->mem.bytes, NULL, err);
    } else if (op->verb == ZARR_STORE_ERASE) {
        op->status = zarr_store_erase(gate.below, op->key, NULL, err);
    } else {
        zarr_store_run(gate.below, op, err);
    }
}

static zarr_status gate_list(void *self, const char *prefix, uint32_t how,
                             zarr_store_list_fn fn, void *user, const zarr_cancel *cancel,
                             zarr_error *err)
{
    (void)cancel;
    (void)self;
    return zarr_store_list(gate.below, prefix, how, fn, user, NULL, err);
}

static const zarr_store_vtable gate_vtable = {
    .struct_size = sizeof gate_vtable,
    .name = "gate",
    .caps = gate_caps,
    .run = gate_run,
    .list = gate_list,
};

/* Not on the stack: requests of a test that fails go on. */
struct scene {
    struct pw w;
    zarr_store *store;
    zarr_array *a;
    zarr_tensor t;
    uint64_t dims[2];
};

static struct scene *scene_open(void)
{
    struct scene *s = calloc(1, sizeof *s);

    assert_non_null(s);
    pw_open(&s->w, 2, UINT64_C(64) << 20, 0);
    gate.below = s->w.store;
    gate.closed = false;
    assert_ok(
        zarr_store_open_custom(&s->store, s->w.ctx, &gate_vtable, NULL, NULL, &terr));
    s->a = pw_array(s->store, "a", NULL, shape, chunk);
    for (int i = 0; i < N * N; i++)
        data[i] = i + 1;
    assert_ok(pw_box(s->a, zero, shape, data, NULL, true));
    memset(got, 0, sizeof got);
    s->dims[0] = s->dims[1] = N;
    s->t = pw_tensor(got, s->dims, sizeof got);
    return s;
}

static void scene_close(struct scene *s)
{
    zarr_array_free(s->a);
    zarr_store_free(s->store);
    pw_close(&s->w);
    free(s);
}

#endif
