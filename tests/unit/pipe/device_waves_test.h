/*
 * unit/pipe/device_waves_test.h - for tests of reads to a device that does all work late:
 * a codec of the device, a context with it, arrays of many chains, and tensors there.
 */
#ifndef DEVICE_WAVES_TEST_H
#define DEVICE_WAVES_TEST_H

#include "pipe_test.h"

#include "fakedev/fakedev.h"

enum {
    ROWS = 100,
    COLS = 40,
    N = ROWS * COLS
};
static const uint64_t shape[2] = {ROWS, COLS};
static int32_t data[N];

/* ---- a codec of the device: queued copies, looked at after the wait ------------- */

static void *device;
static atomic_int n_calls, n_jobs, n_ended, n_at_once;

/* A chunk that begins with this element is damaged. */
static int32_t damage = -1;

static inline zarr_status look(zarr_codec_job *jobs, uint64_t n, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    for (uint64_t i = 0; i < n; i++) {
        int32_t first = 0;

        (void)zarr_fakedev_peek(jobs[i].dst.handle, jobs[i].dst.offset, &first,
                                sizeof first);
        if (damage < 0 || first != damage)
            continue;
        jobs[i].status = ZARR_ERR_CORRUPT;
        if (st == ZARR_OK)
            st = zr_fail(err, ZARR_ERR_CORRUPT, "test.late: damage %d", (int)first);
    }
    return st;
}

static inline zarr_status late_decode(void *self, zarr_codec_job *jobs, uint64_t n,
                                      zarr_codec_exec *exec, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    (void)self;
    atomic_fetch_add(&n_calls, 1);
    atomic_fetch_add(&n_jobs, (int)n);
    if (!exec->stream)
        atomic_fetch_add(&n_at_once, 1);
    for (uint64_t i = 0; i < n && st == ZARR_OK; i++) {
        jobs[i].dst.bytes = jobs[i].dst_used = jobs[i].src.bytes;
        st = zarr_fakedev_vtable_late()->copy_list(device, &jobs[i].dst, &jobs[i].src, 1,
                                                   exec->stream, err);
    }
    if (exec->stream) /* else all is done on return */
        exec->pending = malloc(1);
    else if (st == ZARR_OK)
        st = look(jobs, n, err);
    return st;
}

static inline zarr_status late_settle(void *self, zarr_codec_job *jobs, uint64_t n,
                                      zarr_codec_exec *exec, zarr_error *err)
{
    (void)self;
    atomic_fetch_add(&n_ended, 1);
    free(exec->pending);
    return look(jobs, n, err);
}

static inline zarr_status same(void *self, zarr_codec_job *jobs, uint64_t n,
                               zarr_codec_exec *exec, zarr_error *err)
{
    (void)self;
    (void)exec;
    (void)err;
    for (uint64_t i = 0; i < n; i++) {
        memcpy((char *)jobs[i].dst.handle + jobs[i].dst.offset,
               (char *)jobs[i].src.handle + jobs[i].src.offset, jobs[i].src.bytes);
        jobs[i].dst_used = jobs[i].src.bytes;
    }
    return ZARR_OK;
}

#define CPU ZARR_MEMORY_BIT(ZARR_DEVICE_CPU)
#define EXT ZARR_MEMORY_BIT(ZARR_DEVICE_EXT)

static uint64_t pinned_bytes; /* of the next context; 0: the default */

static inline void open_world(struct pw *w, uint32_t threads, uint64_t wave)
{
    zarr_context_options opts = {.n_threads = threads,
                                 .memory_bytes = UINT64_C(64) << 20,
                                 .wave_bytes = wave,
                                 .pinned_bytes = pinned_bytes};
    const zarr_codec_spec_vtable spec = {.struct_size = sizeof spec,
                                         .name = "test.late",
                                         .kind = ZARR_CODEC_BYTES_BYTES,
                                         .resolve = pw_resolve_same};
    const zarr_codec_impl_vtable host = {.struct_size = sizeof host,
                                         .caps = ZARR_CODEC_CAN_DECODE |
                                                 ZARR_CODEC_CAN_ENCODE,
                                         .codec = "test.late",
                                         .impl = "cpu.same",
                                         .in_kinds = CPU,
                                         .out_kinds = CPU,
                                         .encode = same,
                                         .decode = same};
    const zarr_codec_impl_vtable late = {.struct_size = sizeof late,
                                         .caps = ZARR_CODEC_CAN_DECODE |
                                                 ZARR_CODEC_BATCH | ZARR_CODEC_ASYNC,
                                         .codec = "test.late",
                                         .impl = "fake.late",
                                         .in_kinds = EXT,
                                         .out_kinds = EXT,
                                         .priority = 10,
                                         .decode = late_decode,
                                         .settle = late_settle};
    zarr_codec_impl_vtable bad = late;

    pw_context_options(w, &opts);
    device = zarr_fakedev_create();
    assert_ok(zarr_context_register_memory(w->ctx, zarr_fakedev_vtable_late(), device,
                                           "test", &terr));
    assert_ok(zarr_context_register_codec_spec(w->ctx, &spec, "test", &terr));
    assert_ok(zarr_context_register_codec_impl(w->ctx, &host, "test", &terr));
    assert_ok(zarr_context_register_codec_impl(w->ctx, &late, "test", &terr));
    bad.impl = "fake.bad";
    bad.settle = NULL;
    assert_status(zarr_context_register_codec_impl(w->ctx, &bad, "test", &terr),
                  ZARR_ERR_INVALID);
    bad = late;
    bad.impl = "fake.bad";
    bad.alignment = 48;
    assert_status(zarr_context_register_codec_impl(w->ctx, &bad, "test", &terr),
                  ZARR_ERR_INVALID);
    assert_ok(zarr_store_open(&w->store, w->ctx, "memory:", NULL, &terr));
    damage = -1;
    for (int i = 0; i < N; i++)
        data[i] = 1000 + i;
}

static inline void close_world(struct pw *w)
{
    zarr_fakedev_counters c;

    zarr_fakedev_count(device, &c);
    assert_int_equal(c.faults, 0);
    pw_close(w);
}

/* ---- reading ---------------------------------------------------------------------- */

#define LATE "{\"name\":\"test.late\"}"
static const struct {
    const char *codecs;
    uint64_t chunk[2];
} kinds[] = {
    {"[" BYTES "]", {10, 40}},
    {"[" BIG "]", {7, 9}},
    {"[" BYTES "," GZIP "]", {10, 10}},
    {"[" TURN "," BIG "," GZIP "]", {9, 11}},
    {"[" BYTES "," LATE "]", {10, 40}}, /* each chunk is in the tensor as it is */
    {"[" BYTES "," LATE "]", {7, 9}},
    {"[" TURN "," BIG "," LATE "]", {8, 8}},
    {"[" BYTES "," LATE "," CRC "]", {10, 10}},
    {"[" BYTES "," LATE "," GZIP "," LATE "]", {10, 10}},
    {"[" SHARD("[5,4]", BYTES, "end") "]", {20, 20}},
    {"[" SHARD("[5,4]", BIG "," LATE, "end") "]", {20, 20}},
    {"[" SHARD("[2,4]", BYTES "," LATE "," CRC, "start") "," CRC "]", {20, 20}},
    {"[" SHARD("[10,20]", SHARD("[5,4]", BYTES "," LATE, "end"), "end") "]", {20, 20}},
};
enum {
    N_KINDS = sizeof kinds / sizeof kinds[0]
};

static inline zarr_mem tensor_new(const struct pw *w, zarr_tensor *t,
                                  const int64_t *sizes)
{
    zarr_mem mem;

    assert_ok(zarr_mem_alloc(w->ctx, ZARR_DEVICE_EXT, 0, sizeof data, &mem, &terr));
    *t = (zarr_tensor)ZARR_TENSOR_INIT;
    t->device_type = ZARR_DEVICE_EXT;
    t->ndim = 2;
    t->data = mem.handle;
    t->data_bytes = mem.bytes;
    t->shape = sizes;
    return mem;
}

static inline zarr_array *filled_array(const struct pw *w, const char *path, int kind)
{
    const int64_t sizes[2] = {ROWS, COLS};
    zarr_array *a =
        pw_array(w->store, path, kinds[kind].codecs, shape, kinds[kind].chunk);
    zarr_tensor t;

    zarr_tensor_host(&t, data, sizeof data, 2, sizes);
    assert_ok(zarr_array_write(a, NULL, &t, NULL, &terr));
    return a;
}

#endif
