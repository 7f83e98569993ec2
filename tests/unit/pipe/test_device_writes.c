/*
 * unit/pipe/test_device_writes.c - writes from a device that does all work late: leaves
 * of many shards are one batch of the codec, raw chunks come down in lists, units that
 * are written in part are blended with their old elements on the device, and nothing
 * decoded comes to the host unless a codec works there. Each call that fails ends the
 * write, and what is stored then is old or new.
 */
#include "pipe_test.h"

#include "fakedev/fakedev.h"

enum {
    ROWS = 100,
    COLS = 40,
    N = ROWS * COLS
};
static const uint64_t shape[2] = {ROWS, COLS};
static const int64_t sizes[2] = {ROWS, COLS};
static int32_t data[N], base[N], got[N];

/* ---- a codec of the device ------------------------------------------------------- */

static void *device;
static atomic_int n_encoded, n_decoded, n_jobs;

static zarr_status late_copy(zarr_codec_job *jobs, uint64_t n, zarr_codec_exec *exec,
                             zarr_error *err)
{
    zarr_status st = ZARR_OK;

    for (uint64_t i = 0; i < n && st == ZARR_OK; i++) {
        jobs[i].dst.bytes = jobs[i].dst_used = jobs[i].src.bytes;
        st = zarr_fakedev_vtable_late()->copy(device, &jobs[i].dst, &jobs[i].src,
                                              jobs[i].src.bytes, exec->stream, err);
    }
    if (exec->stream)
        exec->pending = &device;
    return st;
}

static zarr_status late_encode(void *self, zarr_codec_job *jobs, uint64_t n,
                               zarr_codec_exec *exec, zarr_error *err)
{
    (void)self;
    atomic_fetch_add(&n_encoded, 1);
    atomic_fetch_add(&n_jobs, (int)n);
    return late_copy(jobs, n, exec, err);
}

static zarr_status late_decode(void *self, zarr_codec_job *jobs, uint64_t n,
                               zarr_codec_exec *exec, zarr_error *err)
{
    (void)self;
    atomic_fetch_add(&n_decoded, 1);
    return late_copy(jobs, n, exec, err);
}

static zarr_status late_settle(void *self, zarr_codec_job *jobs, uint64_t n,
                               zarr_codec_exec *exec, zarr_error *err)
{
    (void)self;
    (void)jobs;
    (void)n;
    (void)exec;
    (void)err;
    return ZARR_OK;
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

static void register_codec(const struct pw *w)
{
    const zarr_codec_spec_vtable spec = {.struct_size = sizeof spec,
                                         .name = "test.late",
                                         .kind = ZARR_CODEC_BYTES_BYTES,
                                         .resolve = pw_resolve_same};
    zarr_codec_impl_vtable impl = {.struct_size = sizeof impl,
                                   .caps = ZARR_CODEC_CAN_DECODE | ZARR_CODEC_CAN_ENCODE,
                                   .codec = "test.late",
                                   .impl = "cpu.same",
                                   .in_kinds = ZARR_MEMORY_BIT(ZARR_DEVICE_CPU),
                                   .out_kinds = ZARR_MEMORY_BIT(ZARR_DEVICE_CPU),
                                   .encode = same,
                                   .decode = same};

    assert_ok(zarr_context_register_codec_spec(w->ctx, &spec, "test", &terr));
    assert_ok(zarr_context_register_codec_impl(w->ctx, &impl, "test", &terr));
    impl.caps |= ZARR_CODEC_BATCH | ZARR_CODEC_ASYNC;
    impl.impl = "fake.late";
    impl.in_kinds = impl.out_kinds = ZARR_MEMORY_BIT(ZARR_DEVICE_EXT);
    impl.priority = 10;
    impl.encode = late_encode;
    impl.decode = late_decode;
    impl.settle = late_settle;
    assert_ok(zarr_context_register_codec_impl(w->ctx, &impl, "test", &terr));
}

static void open_world(struct pw *w, uint32_t threads, uint64_t wave)
{
    pw_context(w, threads, UINT64_C(64) << 20, wave);
    device = zarr_fakedev_create();
    assert_ok(zarr_context_register_memory(w->ctx, zarr_fakedev_vtable_late(), device,
                                           "test", &terr));
    register_codec(w);
    assert_ok(zarr_store_open(&w->store, w->ctx, "memory:", NULL, &terr));
    for (int i = 0; i < N; i++) {
        data[i] = i / 300 % 3 ? 1000 + i : -1; /* some chunks have only the fill value */
        base[i] = -5000 - i;
    }
}

static void close_world(struct pw *w)
{
    zarr_fakedev_counters c;

    zarr_fakedev_count(device, &c);
    assert_int_equal(c.faults, 0);
    pw_close(w);
}

/* ---- arrays ----------------------------------------------------------------------- */

#define LATE "{\"name\":\"test.late\"}"
static const struct {
    const char *codecs;
    uint64_t chunk[2];
    bool on_device; /* the codecs next to the elements work there */
} kinds[] = {
    {"[" BYTES "]", {10, 40}, false},
    {"[" BIG "]", {7, 9}, false},
    {"[" TURN "," BYTES "]", {9, 11}, false},
    {"[" BYTES "," GZIP "]", {10, 10}, false},
    {"[" BYTES "," LATE "]", {7, 9}, true},
    {"[" TURN "," BIG "," LATE "]", {8, 8}, true},
    {"[" BYTES "," LATE "," GZIP "]", {10, 10}, true},
    {"[" SHARD("[5,4]", BYTES, "end") "]", {20, 20}, false},
    {"[" SHARD("[5,4]", BIG "," LATE, "end") "]", {20, 20}, true},
    {"[" SHARD("[2,4]", BYTES "," LATE "," CRC, "start") "," CRC "]", {20, 20}, true},
    {"[" SHARD("[10,20]", SHARD("[5,4]", BYTES "," LATE, "end"), "end") "]",
     {20, 20},
     true},
};
enum {
    N_KINDS = sizeof kinds / sizeof kinds[0]
};

struct source {
    zarr_selection *sel;
    zarr_tensor t, host;
    zarr_mem mem;
    int64_t sizes[2];
};

/* The first elements of `data` for a selection, on the device and on the host. */
static void source_open(const struct pw *w, struct source *s, const char *text)
{
    memset(s, 0, sizeof *s);
    assert_ok(zarr_selection_parse(&s->sel, 2, shape, text, &terr));
    for (int d = 0; d < 2; d++)
        s->sizes[d] = (int64_t)zarr_selection_shape(s->sel)[d];
    assert_ok(zarr_mem_alloc(w->ctx, ZARR_DEVICE_EXT, 0, sizeof data, &s->mem, &terr));
    assert_int_equal(zarr_fakedev_poke(s->mem.handle, 0, data, sizeof data), 0);
    s->t = (zarr_tensor)ZARR_TENSOR_INIT;
    s->t.device_type = ZARR_DEVICE_EXT;
    s->t.ndim = 2;
    s->t.data = s->mem.handle;
    s->t.data_bytes = s->mem.bytes;
    s->t.shape = s->sizes;
    zarr_tensor_host(&s->host, data, sizeof data, 2, s->sizes);
}

static void source_close(const struct pw *w, struct source *s)
{
    zarr_selection_free(s->sel);
    zarr_mem_free(w->ctx, &s->mem);
}

/* An array with `base`, except two chunks that are missing. */
static zarr_array *based(const struct pw *w, const char *path, int kind)
{
    zarr_array *a =
        pw_array(w->store, path, kinds[kind].codecs, shape, kinds[kind].chunk);
    zarr_tensor t;

    zarr_tensor_host(&t, base, sizeof base, 2, sizes);
    assert_ok(zarr_array_write(a, NULL, &t, NULL, &terr));
    for (uint64_t i = 0; i < 2; i++)
        assert_ok(zarr_array_chunk_erase(a, (uint64_t[2]){2 * i, 0}, &terr));
    return a;
}

/* A chunk of two arrays is stored alike, or missing in both. */
static void same_value(const struct pw *w, uint64_t r, uint64_t c)
{
    static unsigned char value[2][2 * sizeof data];
    uint64_t bytes[2] = {sizeof value[0], sizeof value[0]};
    zarr_status st[2];
    char key[64];

    for (int i = 0; i < 2; i++) {
        snprintf(key, sizeof key, "%c/c/%d/%d", "dh"[i], (int)r, (int)c);
        st[i] = zarr_store_get(w->store, key, 0, value[i], &bytes[i], NULL, &terr);
        assert_true(st[i] == ZARR_OK || st[i] == ZARR_ERR_NOT_FOUND);
    }
    assert_int_equal(st[0], st[1]);
    if (st[0] != ZARR_OK)
        return;
    assert_int_equal(bytes[0], bytes[1]);
    assert_memory_equal(value[0], value[1], bytes[0]);
}

static void same_arrays(const struct pw *w, int kind)
{
    for (uint64_t r = 0; r * kinds[kind].chunk[0] < ROWS; r++)
        for (uint64_t c = 0; c * kinds[kind].chunk[1] < COLS; c++)
            same_value(w, r, c);
}

/* ---- the same bytes as from the host ---------------------------------------------- */

static void test_over_old_values(void **state)
{
    static const char *const texts[] = {"...", "3:90, 5:37", "::7, 1::3", "55:56, :"};

    (void)state;
    for (uint32_t threads = 1; threads <= 4; threads += 3)
        for (uint64_t wave = 1024; wave <= (1 << 20); wave *= 1024)
            for (int k = 0; k < N_KINDS; k++) {
                struct pw w;

                open_world(&w, threads, wave);
                for (size_t i = 0; i < ZR_COUNT(texts); i++) {
                    zarr_array *d = based(&w, "d", k), *h = based(&w, "h", k);
                    struct source s;

                    source_open(&w, &s, texts[i]);
                    assert_ok(zarr_array_write(d, s.sel, &s.t, NULL, &terr));
                    assert_ok(zarr_array_write(h, s.sel, &s.host, NULL, &terr));
                    same_arrays(&w, k);
                    source_close(&w, &s);
                    zarr_array_free(d);
                    zarr_array_free(h);
                    assert_ok(zarr_node_delete(w.store, "d", &terr));
                    assert_ok(zarr_node_delete(w.store, "h", &terr));
                }
                close_world(&w);
            }
}

/* Leaves are gathered and encoded by as many as the device says it has room for. The
 * tensor is there before, and does not count. */
static void test_device_budget(void **state)
{
    static const char *const texts[] = {"...", "3:90, 5:37"};

    (void)state;
    for (int k = 0; k < N_KINDS; k++)
        for (size_t i = 0; i < ZR_COUNT(texts); i++) {
            const uint64_t room = 20 << 10;
            zarr_fakedev_counters c;
            zarr_array *d, *h;
            struct source s;
            uint64_t told = 0;
            struct pw w;

            open_world(&w, 2, 1 << 20);
            d = based(&w, "d", k);
            h = based(&w, "h", k);
            source_open(&w, &s, texts[i]);
            zarr_fakedev_count(device, &c);
            zarr_fakedev_budget(device, room, 0);
            assert_ok(
                zr_pool_budget(w.ctx->pool, ZARR_DEVICE_EXT, 0, false, &told, &terr));
            assert_int_equal(told, room);
            zarr_fakedev_budget(device, c.live_bytes + room, 0);
            assert_ok(zarr_array_write(d, s.sel, &s.t, NULL, &terr));
            assert_ok(zarr_array_write(h, s.sel, &s.host, NULL, &terr));
            same_arrays(&w, k);
            source_close(&w, &s);
            zarr_array_free(d);
            zarr_array_free(h);
            close_world(&w);
        }
}

/* ---- counts ------------------------------------------------------------------------ */

struct counts {
    zarr_stats stats;
    zarr_fakedev_counters moved;
    zarr_fakedev_late_counters late;
};

/* Counts what one write does. */
static void count_write(struct counts *c, zarr_array *a, const struct source *s)
{
    zarr_io_options opts = ZARR_IO_OPTIONS_INIT;
    zarr_fakedev_counters moved;
    zarr_fakedev_late_counters late;

    c->stats = (zarr_stats)ZARR_STATS_INIT;
    opts.stats = &c->stats;
    atomic_store(&n_encoded, 0);
    atomic_store(&n_decoded, 0);
    atomic_store(&n_jobs, 0);
    zarr_fakedev_late_count(device, &late);
    zarr_fakedev_count(device, &moved);
    assert_ok(zarr_array_write(a, s->sel, &s->t, &opts, &terr));
    zarr_fakedev_late_count(device, &c->late);
    zarr_fakedev_count(device, &c->moved);
    c->late.lists -= late.lists;
    c->late.list_items -= late.list_items;
    c->late.syncs -= late.syncs;
    c->late.equals -= late.equals;
    c->moved.bytes_up -= moved.bytes_up;
    c->moved.bytes_down -= moved.bytes_down;
    c->moved.copies_down -= moved.copies_down;
}

/* 1,000 leaves of 10 shards are one batch; only what is encoded comes down. */
static void test_many_shards(void **state)
{
    static const char *const chains[] = {
        "[" SHARD("[2,2]", BYTES "," LATE, "end") "]",
        "[" SHARD("[10,20]", SHARD("[2,2]", BYTES "," LATE, "end"), "end") "]",
    };

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(chains); i++) {
        struct counts c;
        struct source s;
        struct pw w;
        zarr_array *a;

        open_world(&w, 2, 1 << 20);
        for (int k = 0; k < N; k++)
            data[k] = 1000 + k;
        a = pw_array(w.store, "a", chains[i], shape, (uint64_t[2]){10, 40});
        source_open(&w, &s, "...");
        count_write(&c, a, &s);
        assert_int_equal(c.stats.waves, 1);
        assert_int_equal(c.stats.chunks_done, 1000);
        assert_int_equal(c.stats.elements, N);
        assert_int_equal(c.stats.copies_decoded_host, 0);
        assert_int_equal(atomic_load(&n_encoded), 1);
        assert_int_equal(atomic_load(&n_jobs), 1000);
        assert_int_equal(c.late.lists, 3); /* gather, compare, down */
        assert_int_equal(c.late.equals, 1000);
        assert_in_range(c.late.syncs, 1, 3);
        assert_int_equal(c.moved.bytes_down, sizeof data);
        assert_int_equal(c.moved.bytes_up, 0);
        source_close(&w, &s);
        zarr_array_free(a);
        close_world(&w);
    }
}

/* Raw chunks, and raw inner chunks, come down in one list a wave and are compared
 * there. */
static void test_raw(void **state)
{
    static const struct {
        const char *codecs;
        uint64_t chunk[2];
    } raw[] = {
        {"[" BYTES "]", {1, 20}},
        {"[" BIG "]", {1, 20}},
        {"[" SHARD("[1,20]", BYTES, "end") "]", {10, 40}},
    };

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(raw); i++) {
        struct counts c;
        struct source s;
        struct pw w;
        zarr_array *a;

        open_world(&w, 2, 1 << 20);
        a = pw_array(w.store, "a", raw[i].codecs, shape, raw[i].chunk);
        source_open(&w, &s, "...");
        count_write(&c, a, &s);
        assert_int_equal(c.stats.waves, 1);
        assert_int_equal(c.stats.chunks_done, 200);
        assert_int_equal(c.stats.copies_decoded_host, 200); /* they are stored so */
        assert_int_equal(c.late.lists, 1);
        assert_int_equal(c.late.list_items, 200);
        assert_int_equal(c.late.syncs, 1);
        assert_int_equal(c.moved.bytes_down, sizeof data);
        assert_int_equal(c.moved.bytes_up, 0);
        source_close(&w, &s);
        zarr_array_free(a);
        close_world(&w);
    }
}

/* Units that are written in part: encoded old values go up, encoded new ones come down,
 * and no element visits the host. */
static void test_blended(void **state)
{
    (void)state;
    for (int k = 0; k < N_KINDS; k++) {
        struct counts c;
        struct source s;
        struct pw w;
        zarr_array *a;

        open_world(&w, 2, 1 << 20);
        a = based(&w, "d", k);
        source_open(&w, &s, "::2, 1::3");
        count_write(&c, a, &s);
        assert_int_equal(c.stats.waves, 1);
        assert_true(c.stats.read_modify_writes > 0);
        if (kinds[k].on_device) {
            assert_int_equal(c.stats.copies_decoded_host, 0);
            /* a store with locks of its own gives 64 at a time */
            assert_in_range(atomic_load(&n_encoded), 1, 2);
            assert_in_range(atomic_load(&n_decoded), 1, atomic_load(&n_encoded));
            assert_in_range(c.moved.bytes_up, 1, 2 * sizeof base);
        }
        source_close(&w, &s);
        zarr_array_free(a);
        close_world(&w);
    }
}

/* ---- entries that a device leaves out ---------------------------------------- */

/* Each optional entry of the table answers UNSUPPORTED: the library does without. */
static void test_declined_entries(void **state)
{
    static const uint32_t entries[] = {ZARR_FAKEDEV_BOX,
                                       ZARR_FAKEDEV_FILL,
                                       ZARR_FAKEDEV_LIST,
                                       ZARR_FAKEDEV_BOXES,
                                       ZARR_FAKEDEV_FILLS,
                                       ZARR_FAKEDEV_EQUAL,
                                       ZARR_FAKEDEV_BOX | ZARR_FAKEDEV_FILL |
                                           ZARR_FAKEDEV_LIST | ZARR_FAKEDEV_BOXES |
                                           ZARR_FAKEDEV_FILLS | ZARR_FAKEDEV_EQUAL};

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(entries); i++)
        for (int k = 0; k < N_KINDS; k++) {
            zarr_array *d, *h;
            struct source s;
            struct pw w;
            zarr_tensor t;

            open_world(&w, 2, 1 << 20);
            d = based(&w, "d", k);
            h = based(&w, "h", k);
            source_open(&w, &s, "3:90, 5:37");
            assert_ok(zarr_array_write(h, s.sel, &s.host, NULL, &terr));
            zarr_fakedev_decline(device, entries[i]);
            assert_ok(zarr_array_write(d, s.sel, &s.t, NULL, &terr));
            same_arrays(&w, k);
            assert_ok(zarr_array_read(d, s.sel, &s.t, NULL, &terr));
            assert_int_equal(zarr_fakedev_peek(s.mem.handle, 0, got, sizeof got), 0);
            assert_memory_equal(got, data, (size_t)(s.sizes[0] * s.sizes[1]) * 4);
            t = s.t;
            t.shape = sizes; /* with missing chunks */
            assert_ok(zarr_array_read(d, NULL, &t, NULL, &terr));
            zarr_fakedev_decline(device, 0);
            source_close(&w, &s);
            zarr_array_free(d);
            zarr_array_free(h);
            close_world(&w);
        }
}

/* ---- failures ---------------------------------------------------------------------- */

/* The k-th call of the device fails, for each k. Each chunk then has its old value or the
 * new one. */
static void test_failing_calls(void **state)
{
    static const int tried[] = {0, 5, 10};

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(tried); i++) {
        bool passed = false;
        struct source s;
        struct pw w;
        zarr_array *a;
        zarr_tensor t;

        open_world(&w, 2, 1 << 20);
        a = based(&w, "d", tried[i]);
        source_open(&w, &s, "::2, 1::3");
        for (uint64_t k = 1; !passed; k++) {
            zarr_status st;

            assert_true(k < 4000);
            zarr_context_trim(w.ctx); /* so that blocks are allocated each time */
            zarr_fakedev_fail(device, ZARR_FAKEDEV_ALL, k, ZARR_ERR_DEVICE);
            st = zarr_array_write(a, s.sel, &s.t, NULL, &terr);
            zarr_fakedev_fail(device, 0, 0, ZARR_OK);
            /* an allocation is tried again after a trim */
            passed = st == ZARR_OK && k > 150;
            if (st != ZARR_OK)
                assert_int_equal(st, ZARR_ERR_DEVICE);
        }
        zarr_tensor_host(&t, got, sizeof got, 2, sizes);
        assert_ok(zarr_array_read(a, NULL, &t, NULL, &terr));
        for (int k = 0, from = 0; k < N; k++)
            if (k / COLS % 2 == 0 && k % COLS % 3 == 1)
                assert_int_equal(got[k], data[from++]);
            else
                assert_true(got[k] == base[k] || got[k] == -1);
        source_close(&w, &s);
        zarr_array_free(a);
        close_world(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_over_old_values),  cmocka_unit_test(test_device_budget),
        cmocka_unit_test(test_many_shards),      cmocka_unit_test(test_raw),
        cmocka_unit_test(test_blended),          cmocka_unit_test(test_failing_calls),
        cmocka_unit_test(test_declined_entries),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
