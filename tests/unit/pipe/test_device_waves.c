/*
 * unit/pipe/test_device_waves.c - reads of a device that does all work late: chunks go up
 * and elements to their places in lists, codecs of the device leave their work on a
 * stream, and a wave waits once. Each call that fails ends the read, and damage names its
 * chunk.
 */
#include "pipe_test.h"

#include "fakedev/fakedev.h"
#include <zarrc/parts.h>

enum {
    ROWS = 100,
    COLS = 40,
    N = ROWS * COLS
};
static const uint64_t shape[2] = {ROWS, COLS};
static int32_t data[N], got[N];

/* ---- a codec of the device: queued copies, looked at after the wait ------------- */

static void *device;
static atomic_int n_calls, n_jobs, n_ended, n_at_once;

/* A chunk that begins with this element is damaged. */
static int32_t damage = -1;

static zarr_status look(zarr_codec_job *jobs, uint64_t n, zarr_error *err)
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

static zarr_status late_decode(void *self, zarr_codec_job *jobs, uint64_t n,
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

static zarr_status late_settle(void *self, zarr_codec_job *jobs, uint64_t n,
                               zarr_codec_exec *exec, zarr_error *err)
{
    (void)self;
    atomic_fetch_add(&n_ended, 1);
    free(exec->pending);
    return look(jobs, n, err);
}

static zarr_status same(void *self, zarr_codec_job *jobs, uint64_t n,
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

static void open_world(struct pw *w, uint32_t threads, uint64_t wave)
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

static void close_world(struct pw *w)
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

static zarr_mem tensor_new(const struct pw *w, zarr_tensor *t, const int64_t *sizes)
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

/* Reads a selection to the device, and the same to the host. */
static void compare(const struct pw *w, zarr_array *a, const char *text)
{
    static int32_t want[N];
    zarr_selection *sel = NULL;
    int64_t sizes[2];
    zarr_tensor t, host;
    uint64_t bytes;
    zarr_mem mem;

    assert_ok(zarr_selection_parse(&sel, 2, shape, text, &terr));
    for (int d = 0; d < 2; d++)
        sizes[d] = (int64_t)zarr_selection_shape(sel)[d];
    bytes = zarr_selection_n_items(sel) * sizeof data[0];
    mem = tensor_new(w, &t, sizes);
    assert_ok(zarr_array_read(a, sel, &t, NULL, &terr));
    assert_int_equal(zarr_fakedev_peek(mem.handle, 0, got, bytes), 0);
    zarr_tensor_host(&host, want, sizeof want, 2, sizes);
    assert_ok(zarr_array_read(a, sel, &host, NULL, &terr));
    assert_memory_equal(got, want, bytes);
    zarr_selection_free(sel);
    zarr_mem_free(w->ctx, &mem);
}

static zarr_array *filled_array(const struct pw *w, const char *path, int kind)
{
    const int64_t sizes[2] = {ROWS, COLS};
    zarr_array *a =
        pw_array(w->store, path, kinds[kind].codecs, shape, kinds[kind].chunk);
    zarr_tensor t;

    zarr_tensor_host(&t, data, sizeof data, 2, sizes);
    assert_ok(zarr_array_write(a, NULL, &t, NULL, &terr));
    return a;
}

static void test_read(void **state)
{
    (void)state;
    for (uint32_t threads = 1; threads <= 4; threads += 3)
        for (uint64_t wave = 1024; wave <= (1 << 20); wave *= 1024) {
            struct pw w;

            open_world(&w, threads, wave);
            for (int k = 0; k < N_KINDS; k++) {
                char path[16];
                zarr_array *a;

                snprintf(path, sizeof path, "a%d", k);
                a = filled_array(&w, path, k);
                compare(&w, a, "...");
                compare(&w, a, "3:90, 5:37");
                compare(&w, a, "::7, 1::3");
                assert_ok(zarr_array_chunk_erase(a, (uint64_t[2]){1, 0}, &terr));
                compare(&w, a, "...");
                zarr_array_free(a);
            }
            close_world(&w);
        }
}

/* ---- writing -------------------------------------------------------------------- */

/* A chunk of two arrays is stored alike, or missing in both. */
static void same_value(const struct pw *w, int n, uint64_t r, uint64_t c)
{
    static unsigned char value[2][2 * sizeof data];
    uint64_t bytes[2] = {sizeof value[0], sizeof value[0]};
    zarr_status st[2];
    char key[64];

    for (int i = 0; i < 2; i++) {
        snprintf(key, sizeof key, "%c%d/c/%d/%d", "wh"[i], n, (int)r, (int)c);
        st[i] = zarr_store_get(w->store, key, 0, value[i], &bytes[i], NULL, &terr);
        assert_true(st[i] == ZARR_OK || st[i] == ZARR_ERR_NOT_FOUND);
    }
    assert_int_equal(st[0], st[1]);
    if (st[0] != ZARR_OK)
        return;
    assert_int_equal(bytes[0], bytes[1]);
    assert_memory_equal(value[0], value[1], bytes[0]);
}

/* Writes the data, or a part of it, from the device. Some chunks have only the fill
 * value. */
static void write_and_compare(const struct pw *w, int kind, const char *text)
{
    static int32_t want[N], part[N];
    static int n;
    zarr_array *a;
    zarr_selection *sel = NULL;
    char path[16];
    int64_t sizes[2];
    zarr_tensor t, host;
    zarr_mem mem;

    assert_ok(zarr_selection_parse(&sel, 2, shape, text, &terr));
    for (int d = 0; d < 2; d++)
        sizes[d] = (int64_t)zarr_selection_shape(sel)[d];
    snprintf(path, sizeof path, "w%d", ++n);
    a = pw_array(w->store, path, kinds[kind].codecs, shape, kinds[kind].chunk);
    for (int i = 0; i < N; i++)
        part[i] = i / 300 % 3 ? data[i] : 0;
    mem = tensor_new(w, &t, sizes);
    assert_int_equal(zarr_fakedev_poke(mem.handle, 0, part, sizeof part), 0);
    assert_ok(zarr_array_write(a, sel, &t, NULL, &terr));
    zarr_tensor_host(&host, want, sizeof want, 2, sizes);
    assert_ok(zarr_array_read(a, sel, &host, NULL, &terr));
    assert_memory_equal(want, part, zarr_selection_n_items(sel) * sizeof data[0]);
    zarr_array_free(a);
    /* the same from the host gives the same stored bytes */
    path[0] = 'h';
    a = pw_array(w->store, path, kinds[kind].codecs, shape, kinds[kind].chunk);
    zarr_tensor_host(&host, part, sizeof part, 2, sizes);
    assert_ok(zarr_array_write(a, sel, &host, NULL, &terr));
    for (uint64_t r = 0; r * kinds[kind].chunk[0] < ROWS; r++)
        for (uint64_t c = 0; c * kinds[kind].chunk[1] < COLS; c++)
            same_value(w, n, r, c);
    zarr_array_free(a);
    zarr_selection_free(sel);
    zarr_mem_free(w->ctx, &mem);
}

static void test_write(void **state)
{
    (void)state;
    for (uint32_t threads = 1; threads <= 4; threads += 3)
        for (uint64_t wave = 1024; wave <= (1 << 20); wave *= 1024) {
            struct pw w;

            open_world(&w, threads, wave);
            for (int k = 0; k < N_KINDS; k++) {
                write_and_compare(&w, k, "...");
                write_and_compare(&w, k, "3:90, 5:37");
                write_and_compare(&w, k, "::7, 1::3");
            }
            close_world(&w);
        }
}

/* ---- the number of calls ------------------------------------------------------- */

/* 1,000 inner chunks of 10 shards: a list up, the codec, a list of boxes, one wait. */
static void test_calls(void **state)
{
    const uint64_t chunk[2] = {10, 40};
    const int64_t sizes[2] = {ROWS, COLS};
    zarr_stats stats = ZARR_STATS_INIT;
    zarr_io_options opts = ZARR_IO_OPTIONS_INIT;
    zarr_fakedev_late_counters before, after;
    zarr_fakedev_counters moved, moved_after;
    struct pw w;
    zarr_array *a;
    zarr_tensor t;
    zarr_mem mem;

    (void)state;
    open_world(&w, 2, 1 << 20);
    a = pw_array(w.store, "a", "[" SHARD("[2,2]", BYTES "," LATE, "end") "]", shape,
                 chunk);
    zarr_tensor_host(&t, data, sizeof data, 2, sizes);
    assert_ok(zarr_array_write(a, NULL, &t, NULL, &terr));
    mem = tensor_new(&w, &t, sizes);
    atomic_store(&n_calls, 0);
    atomic_store(&n_jobs, 0);
    atomic_store(&n_ended, 0);
    atomic_store(&n_at_once, 0);
    zarr_fakedev_late_count(device, &before);
    zarr_fakedev_count(device, &moved);
    opts.stats = &stats;
    assert_ok(zarr_array_read(a, NULL, &t, &opts, &terr));
    zarr_fakedev_late_count(device, &after);
    zarr_fakedev_count(device, &moved_after);
    assert_int_equal(zarr_fakedev_peek(mem.handle, 0, got, sizeof got), 0);
    assert_memory_equal(got, data, sizeof data);
    assert_int_equal(atomic_load(&n_jobs), 1000);
    assert_int_equal(atomic_load(&n_calls), stats.waves);
    assert_int_equal(atomic_load(&n_ended), stats.waves);
    assert_int_equal(atomic_load(&n_at_once), 0);
    assert_in_range(stats.waves, 1, 3);
    /* the codec of this test has a list for each chunk */
    assert_int_equal(after.lists - before.lists - 1000, 2 * stats.waves);
    assert_int_equal(after.syncs - before.syncs, stats.waves);
    /* what was fetched at once went up at once */
    assert_in_range(moved_after.copies_up - moved.copies_up, 1, 10);
    assert_int_equal(moved_after.bytes_up - moved.bytes_up, sizeof data);
    assert_int_equal(moved_after.bytes_down, moved.bytes_down);
    zarr_mem_free(w.ctx, &mem);
    zarr_array_free(a);
    close_world(&w);
}

/* Streams are kept for later waves and requests, also after failures, and
 * zarr_context_trim() closes them. */
static void test_streams(void **state)
{
    const int64_t sizes[2] = {ROWS, COLS};

    (void)state;
    for (uint32_t threads = 1; threads <= 4; threads += 3) {
        zarr_stats stats = ZARR_STATS_INIT;
        zarr_io_options o = {.struct_size = sizeof o, .stats = &stats};
        zarr_fakedev_late_counters c;
        void *foreign = NULL;
        struct pw w;
        zarr_array *a;
        zarr_tensor t;
        zarr_mem mem;

        open_world(&w, threads, 1024);
        assert_ok(zarr_fakedev_vtable_late()->stream_open(device, 0, &foreign, &terr));
        a = filled_array(&w, "a", 5);
        mem = tensor_new(&w, &t, sizes);
        for (int i = 0; i < 10; i++) {
            o.stream = i % 2 ? foreign : NULL;
            assert_ok(zarr_array_read(a, NULL, &t, &o, &terr));
            assert_true(stats.waves > 3);
            damage = i == 7 ? data[0] : -1;
            assert_status(zarr_array_write(a, NULL, &t, NULL, &terr), ZARR_OK);
            assert_status(zarr_array_read(a, NULL, &t, NULL, &terr),
                          damage < 0 ? ZARR_OK : ZARR_ERR_CORRUPT);
            damage = -1;
        }
        zarr_fakedev_vtable_late()->stream_close(device, foreign);
        zarr_fakedev_late_count(device, &c);
        c.streams_opened--;
        /* three waves in flight at most, and the one that the request waited for */
        assert_in_range(c.streams_opened, 1, threads == 1 ? 2 : 4);
        assert_int_equal(c.streams, c.streams_opened);
        zarr_context_trim(w.ctx);
        zarr_fakedev_late_count(device, &c);
        assert_int_equal(c.streams, 0);
        zarr_mem_free(w.ctx, &mem);
        zarr_array_free(a);
        close_world(&w);
    }
}

/* Each wave of any chain makes at most six calls besides those of its codecs, and waits
 * once; if a codec of the CPU is between two of the device, once more for each. */
static void test_bounds(void **state)
{
    (void)state;
    for (int k = 0; k < N_KINDS; k++)
        for (int parts = 0; parts < 2; parts++) {
            const int64_t sizes[2] = {ROWS, COLS};
            const bool between = strstr(kinds[k].codecs, LATE "," GZIP "," LATE);
            zarr_io_options opts = ZARR_IO_OPTIONS_INIT;
            zarr_stats stats = ZARR_STATS_INIT;
            zarr_fakedev_late_counters before, after;
            zarr_io_part part = {0};
            struct pw w;
            zarr_array *a;
            zarr_tensor t;
            zarr_mem mem;

            open_world(&w, 2, 1 << 20);
            a = filled_array(&w, "a", k);
            assert_ok(zarr_array_chunk_erase(a, (uint64_t[2]){1, 0}, &terr));
            mem = tensor_new(&w, &t, sizes);
            part.tensor = &t;
            assert_ok(zarr_array_read(a, NULL, &t, NULL, &terr)); /* warms the pool */
            opts.stats = &stats;
            atomic_store(&n_jobs, 0);
            zarr_fakedev_late_count(device, &before);
            assert_ok(parts ? zarr_array_read_many(a, &part, 1, &opts, &terr)
                            : zarr_array_read(a, NULL, &t, &opts, &terr));
            zarr_fakedev_late_count(device, &after);
            assert_in_range(stats.waves, 1, 3);
            /* the codec of this test has a list for each chunk */
            assert_in_range(after.calls - before.calls - (uint64_t)atomic_load(&n_jobs),
                            3, 6 * stats.waves);
            if (!between)
                assert_int_equal(after.syncs - before.syncs, stats.waves);
            zarr_mem_free(w.ctx, &mem);
            zarr_array_free(a);
            close_world(&w);
        }
}

/* Raw chunks go up in one list, missing chunks are filled in one, from pinned memory;
 * with a small budget for it, from ordinary memory. */
static void test_raw_and_missing(void **state)
{
    static const uint64_t budgets[] = {0, 64};
    static const char *const chains[] = {"[" BYTES "]", "[" BYTES "," GZIP "]"};
    const uint64_t chunk[2] = {1, 20}; /* 200 of them */
    const int64_t sizes[2] = {ROWS, COLS};

    (void)state;
    for (size_t i = 0; i < 2 * ZR_COUNT(budgets); i++) {
        zarr_stats stats = ZARR_STATS_INIT;
        zarr_io_options opts = ZARR_IO_OPTIONS_INIT;
        zarr_fakedev_late_counters before, after;
        zarr_fakedev_counters moved, moved_after;
        struct pw w;
        zarr_array *a;
        zarr_tensor t;
        zarr_mem mem;

        pinned_bytes = budgets[i / 2];
        open_world(&w, 2, 1 << 20);
        pinned_bytes = 0;
        a = pw_array(w.store, "a", chains[i % 2], shape, chunk);
        zarr_tensor_host(&t, data, sizeof data, 2, sizes);
        assert_ok(zarr_array_write(a, NULL, &t, NULL, &terr));
        for (uint64_t r = 0; r < ROWS; r += 3)
            assert_ok(zarr_array_chunk_erase(a, (uint64_t[2]){r, 1}, &terr));
        mem = tensor_new(&w, &t, sizes);
        zarr_fakedev_late_count(device, &before);
        zarr_fakedev_count(device, &moved);
        opts.stats = &stats;
        assert_ok(zarr_array_read(a, NULL, &t, &opts, &terr));
        zarr_fakedev_late_count(device, &after);
        zarr_fakedev_count(device, &moved_after);
        assert_int_equal(zarr_fakedev_peek(mem.handle, 0, got, sizeof got), 0);
        for (int k = 0; k < N; k++)
            assert_int_equal(got[k], k % COLS >= 20 && k / COLS % 3 == 0 ? -1 : data[k]);
        assert_int_equal(stats.chunks_missing, 34);
        assert_in_range(stats.waves, 1, 3);
        /* one list of copies, one of fills, one wait; no single copies */
        assert_in_range(after.lists - before.lists, 2, 2 * stats.waves);
        /* 34 fills; what the CPU decoded is in runs between the missing chunks */
        if (i % 2 == 0)
            assert_int_equal(after.list_items - before.list_items, 200);
        else
            assert_in_range(after.list_items - before.list_items, 34 + 34,
                            34 + 34 + stats.waves);
        assert_in_range(after.syncs - before.syncs, 1, stats.waves);
        assert_int_equal(moved_after.bytes_up - moved.bytes_up,
                         sizeof data[0] * 20 * (200 - 34));
        assert_int_equal(moved_after.bytes_down, moved.bytes_down);
        if (budgets[i / 2])
            assert_int_equal(after.pinned_allocs, before.pinned_allocs);
        else
            assert_in_range(after.pinned_allocs - before.pinned_allocs, 1,
                            2 * stats.waves);
        zarr_mem_free(w.ctx, &mem);
        zarr_array_free(a);
        close_world(&w);
    }
}

/* ---- the budget of the device ---------------------------------------------------- */

/* The tensor is there before the library asks for the limit, and does not count. */
static zarr_mem budget_open(struct pw *w, zarr_tensor *t, const int64_t *sizes,
                            uint64_t bytes)
{
    const zarr_mem mem = tensor_new(w, t, sizes);
    zarr_fakedev_counters c;
    uint64_t told = 0;

    zarr_fakedev_count(device, &c);
    zarr_fakedev_budget(device, bytes, 0);
    assert_ok(zr_pool_budget(w->ctx->pool, ZARR_DEVICE_EXT, 0, false, &told, &terr));
    assert_int_equal(told, bytes);
    zarr_fakedev_budget(device, c.live_bytes + bytes, 0);
    return mem;
}

/* Waves are cut so that all of them together fit what the device says it has, however
 * large waves may be otherwise. */
static void test_device_budget(void **state)
{
    const int64_t sizes[2] = {ROWS, COLS};

    (void)state;
    for (int kind = 0; kind < N_KINDS; kind++)
        for (uint32_t threads = 1; threads <= 4; threads += 3) {
            zarr_stats stats = ZARR_STATS_INIT;
            zarr_io_options o = {.struct_size = sizeof o, .stats = &stats};
            struct pw w;
            zarr_array *a;
            zarr_tensor t;
            zarr_mem mem;

            open_world(&w, threads, 1 << 20);
            a = filled_array(&w, "a", kind);
            mem = budget_open(&w, &t, sizes, 40 << 10);
            assert_ok(zarr_array_read(a, NULL, &t, &o, &terr));
            assert_int_equal(zarr_fakedev_peek(mem.handle, 0, got, sizeof got), 0);
            assert_memory_equal(got, data, sizeof got);
            assert_true(stats.waves > 1);
            zarr_mem_free(w.ctx, &mem);
            zarr_array_free(a);
            close_world(&w);
        }
}

/* ---- parts ----------------------------------------------------------------------- */

enum {
    CROPS = 64,
    CROP_ROWS = 16,
    CROP_COLS = 12,
    CROP = CROP_ROWS * CROP_COLS
};

struct crops {
    zarr_io_part part[CROPS];
    zarr_tensor t[CROPS];
    uint64_t at[CROPS][2];
    zarr_mem mem;
};

/* Random places, one behind the other in one block of the device. */
static void crops_make(const struct pw *w, struct crops *c)
{
    static const int64_t sizes[2] = {CROP_ROWS, CROP_COLS};
    static const uint64_t count[2] = {CROP_ROWS, CROP_COLS};
    unsigned seed = 7;

    memset(c, 0, sizeof *c);
    assert_ok(zarr_mem_alloc(w->ctx, ZARR_DEVICE_EXT, 0, sizeof data[0] * CROPS * CROP,
                             &c->mem, &terr));
    for (int i = 0; i < CROPS; i++) {
        zarr_selection *sel = NULL;

        c->at[i][0] = (uint64_t)rand_r(&seed) % (ROWS - CROP_ROWS + 1);
        c->at[i][1] = (uint64_t)rand_r(&seed) % (COLS - CROP_COLS + 1);
        assert_ok(zarr_selection_box(&sel, 2, shape, c->at[i], count, &terr));
        c->t[i] = (zarr_tensor)ZARR_TENSOR_INIT;
        c->t[i].device_type = ZARR_DEVICE_EXT;
        c->t[i].ndim = 2;
        c->t[i].data = c->mem.handle;
        c->t[i].byte_offset = (uint64_t)i * CROP * sizeof data[0];
        c->t[i].data_bytes = c->mem.bytes;
        c->t[i].shape = sizes;
        c->part[i].selection = sel;
        c->part[i].tensor = &c->t[i];
    }
}

static void crops_free(const struct pw *w, struct crops *c)
{
    for (int i = 0; i < CROPS; i++)
        zarr_selection_free((zarr_selection *)(uintptr_t)c->part[i].selection);
    zarr_mem_free(w->ctx, &c->mem);
}

/* Whether a crop has elements of the chunk of 5 x 4 at this place. */
static bool crop_touches(const struct crops *c, int i, uint64_t row, uint64_t col)
{
    return c->at[i][0] < row + 5 && row < c->at[i][0] + CROP_ROWS &&
           c->at[i][1] < col + 4 && col < c->at[i][1] + CROP_COLS;
}

static void crop_is_right(const struct crops *c, int i)
{
    static int32_t crop[CROP];

    assert_int_equal(
        zarr_fakedev_peek(c->mem.handle, c->t[i].byte_offset, crop, sizeof crop), 0);
    for (int k = 0; k < CROP; k++) {
        const uint64_t row = c->at[i][0] + (uint64_t)(k / CROP_COLS);
        const uint64_t col = c->at[i][1] + (uint64_t)(k % CROP_COLS);
        const bool missing = row / 20 == 2 && col / 20 == 0;

        assert_int_equal(crop[k], missing ? -1 : data[row * COLS + col]);
    }
}

/* 64 random crops are one request, whose waves make few calls; a chunk that is damaged
 * fails only the crops that touch it. */
static void test_crops(void **state)
{
    static const char *const chains[] = {
        "[" SHARD("[5,4]", BYTES "," LATE, "end") "]",
        "[" SHARD("[5,4]", BIG, "end") "]",
        "[" SHARD("[5,4]", BYTES "," GZIP, "end") "]",
    };
    const int64_t sizes[2] = {ROWS, COLS};

    (void)state;
    for (size_t k = 0; k < ZR_COUNT(chains); k++) {
        zarr_stats stats = ZARR_STATS_INIT;
        zarr_io_options opts = ZARR_IO_OPTIONS_INIT;
        zarr_fakedev_late_counters before, after;
        zarr_fakedev_counters moved, moved_after;
        struct crops c;
        struct pw w;
        zarr_array *a;
        zarr_tensor t;

        open_world(&w, 2, 1 << 20);
        a = pw_array(w.store, "a", chains[k], shape, (uint64_t[2]){20, 20});
        zarr_tensor_host(&t, data, sizeof data, 2, sizes);
        assert_ok(zarr_array_write(a, NULL, &t, NULL, &terr));
        assert_ok(zarr_array_chunk_erase(a, (uint64_t[2]){2, 0}, &terr));
        crops_make(&w, &c);
        opts.stats = &stats;
        atomic_store(&n_jobs, 0);
        zarr_fakedev_late_count(device, &before);
        zarr_fakedev_count(device, &moved);
        assert_ok(zarr_array_read_many(a, c.part, CROPS, &opts, &terr));
        zarr_fakedev_late_count(device, &after);
        zarr_fakedev_count(device, &moved_after);
        for (int i = 0; i < CROPS; i++) {
            assert_int_equal(c.part[i].status, ZARR_OK);
            crop_is_right(&c, i);
        }
        /* up, boxes (1,024 in a call at most) and fills; the codec of this test has a
         * list for each chunk */
        assert_in_range(after.lists - before.lists - (uint64_t)atomic_load(&n_jobs), 2,
                        6 * stats.waves);
        assert_in_range(after.syncs - before.syncs, 1, stats.waves);
        /* each stored byte once, or each decoded byte if the CPU decodes */
        assert_in_range(moved_after.bytes_up - moved.bytes_up, 1, sizeof data);
        assert_int_equal(moved_after.bytes_down, moved.bytes_down);
        if (k == 0) {
            damage = data[45 * COLS + 28];
            assert_status(zarr_array_read_many(a, c.part, CROPS, NULL, &terr),
                          ZARR_ERR_CORRUPT);
            for (int i = 0; i < CROPS; i++) {
                assert_int_equal(c.part[i].status, crop_touches(&c, i, 45, 28)
                                                       ? ZARR_ERR_CORRUPT
                                                       : ZARR_OK);
                if (c.part[i].status == ZARR_OK)
                    crop_is_right(&c, i);
            }
            damage = -1;
        }
        crops_free(&w, &c);
        zarr_array_free(a);
        close_world(&w);
    }
}

/* ---- failures ------------------------------------------------------------------ */

/* The k-th call of the device fails, for each k. */
static void test_failing_calls(void **state)
{
    static const int tried[] = {0, 2, 5, 8, 9, 10};
    const int64_t sizes[2] = {ROWS, COLS};

    (void)state;
    for (size_t i = 0; i < 2 * ZR_COUNT(tried); i++) {
        const bool write = i >= ZR_COUNT(tried);
        bool passed = false;
        struct pw w;
        zarr_array *a;
        zarr_tensor t;
        zarr_mem mem;

        open_world(&w, 2, 1 << 20);
        a = filled_array(&w, "a", tried[i % ZR_COUNT(tried)]);
        mem = tensor_new(&w, &t, sizes);
        assert_int_equal(zarr_fakedev_poke(mem.handle, 0, data, sizeof data), 0);
        for (uint64_t k = 1; !passed; k++) {
            zarr_status st;

            assert_true(k < 2000);
            zarr_context_trim(w.ctx); /* so that blocks are allocated each time */
            zarr_fakedev_fail(device, ZARR_FAKEDEV_ALL, k, ZARR_ERR_DEVICE);
            st = write ? zarr_array_write(a, NULL, &t, NULL, &terr)
                       : zarr_array_read(a, NULL, &t, NULL, &terr);
            zarr_fakedev_fail(device, 0, 0, ZARR_OK);
            if (st == ZARR_OK) {
                assert_int_equal(zarr_fakedev_peek(mem.handle, 0, got, sizeof got), 0);
                assert_memory_equal(got, data, sizeof data);
                /* an allocation is tried again after a trim */
                passed = k > 100;
            } else {
                assert_int_equal(st, ZARR_ERR_DEVICE);
            }
        }
        zarr_mem_free(w.ctx, &mem);
        zarr_array_free(a);
        close_world(&w);
    }
}

/* One chunk of a batch is damaged. */
static void test_damage(void **state)
{
    const int64_t sizes[2] = {ROWS, COLS};
    uint64_t inner[ZARR_MAX_RANK];
    char key[32];
    struct pw w;
    zarr_array *a;
    zarr_tensor t;
    zarr_mem mem;

    (void)state;
    open_world(&w, 2, 1 << 20);
    a = pw_array(w.store, "a", "[" SHARD("[5,4]", BYTES "," LATE, "end") "]", shape,
                 (uint64_t[2]){20, 20});
    zarr_tensor_host(&t, data, sizeof data, 2, sizes);
    assert_ok(zarr_array_write(a, NULL, &t, NULL, &terr));
    mem = tensor_new(&w, &t, sizes);
    damage = data[45 * COLS + 28];
    assert_status(zarr_array_read(a, NULL, &t, NULL, &terr), ZARR_ERR_CORRUPT);
    assert_true(zarr_error_text(&terr, ZARR_ERROR_KEY, key, sizeof key) > 0);
    assert_string_equal(key, "a/c/2/1");
    assert_int_equal(zarr_error_inner_chunk(&terr, inner), 2);
    assert_int_equal(inner[0], 1);
    assert_int_equal(inner[1], 2);
    assert_non_null(strstr(terr.message, "test.late: damage"));
    damage = -1;
    assert_ok(zarr_array_read(a, NULL, &t, NULL, &terr));
    zarr_mem_free(w.ctx, &mem);
    zarr_array_free(a);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),          cmocka_unit_test(test_write),
        cmocka_unit_test(test_calls),         cmocka_unit_test(test_failing_calls),
        cmocka_unit_test(test_damage),        cmocka_unit_test(test_raw_and_missing),
        cmocka_unit_test(test_device_budget), cmocka_unit_test(test_streams),
        cmocka_unit_test(test_crops),         cmocka_unit_test(test_bounds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
