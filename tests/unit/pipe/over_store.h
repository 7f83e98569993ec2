/*
 * unit/pipe/over_store.h - a test of the pipeline on a store of unit/over_store.h, which
 * is on top of a memory store.
 */
#ifndef ZR_PIPE_OVER_STORE_H
#define ZR_PIPE_OVER_STORE_H

#include "unit/over_store.h"
#include "unit/pipe/pipe_test.h"

/* Opens one more handle, which waits for other writers so long; 0: without limit. */
static inline void over_again(struct pw *w, struct over *o, const zarr_store_vtable *vt,
                              uint32_t lock_wait_ms)
{
    const zarr_store_options opts = {.struct_size = sizeof opts,
                                     .lock_wait_ms = lock_wait_ms};

    zarr_store_free(w->store);
    w->store = NULL;
    assert_ok(zarr_store_open_custom(&w->store, w->ctx, vt, o, &opts, &terr));
}

static inline void over_open(struct pw *w, struct over *o, const zarr_store_vtable *vt,
                             uint32_t caps)
{
    memset(o, 0, sizeof *o);
    o->caps =
        caps | ZARR_STORE_CAP_LIST | ZARR_STORE_CAP_WRITE | ZARR_STORE_CAP_ATOMIC_PUT;
    o->below = w->store;
    w->store = NULL;
    over_again(w, o, vt, 0);
}

enum {
    N = 64
};
static const uint64_t shape[2] = {N, N}, chunk[2] = {16, 16}, zero[2] = {0, 0};
static int32_t data[N * N], got[N * N];

static inline void make_data(int seed)
{
    for (int i = 0; i < N * N; i++)
        data[i] = i * 3 + seed;
}

#endif
