/*
 * unit/pipe/batch/test_device_writes.c - writes from a device that does all work late:
 * leaves of many shards are one batch of the codec, raw chunks come down in lists, units
 * that are written in part are blended with their old elements on the device, and nothing
 * decoded comes to the host unless a codec works there. Each call that fails ends the
 * write, and what is stored then is old or new. Few locks are held at a time.
 */
#include "unit/over_store.h"
#include "unit/pipe/device_test.h"

#include <unistd.h>
#include "sanitizers.h"

static int32_t base[N], got[N];

static void open_writes(struct pw *w, uint32_t threads, uint64_t wave)
{
    open_world(w, threads, wave);
    for (int i = 0; i < N; i++) {
        data[i] = i / 300 % 3 ? 1000 + i : -1; /* some chunks have only the fill value */
        base[i] = -5000 - i;
    }
}

/* An array with `base`, except two chunks that are missing. */
static zarr_array *write_base(const struct pw *w, const char *path, int kind)
{
    zarr_array *a = write_array(w, path, kind, base);

    for (uint64_t i = 0; i < 2; i++)
        assert_ok(zarr_array_block_erase(a, (uint64_t[2]){2 * i, 0}, NULL, &terr));
    return a;
}

/* ---- the same bytes as from the host ---------------------------------------------- */

static void test_over_old_values(void **state)
{
    static const char *const texts[] = {"...", "3:90, 5:37", "::7, 1::3", "55:56, :"};
    int n = 0;

    (void)state;
    for (uint32_t threads = 1; threads <= 4; threads += 3)
        for (uint64_t wave = 1024; wave <= (1 << 20); wave *= 1024)
            for (int j = 0; j < 2 * N_KINDS; j++) {
                const int k = j / 2;
                struct pw w;

                values_device = j % 2 ? ZARR_DEVICE_EXT : 0;
                open_writes(&w, threads, wave);
                for (size_t i = 0; i < ZR_COUNT(texts); i++) {
                    zarr_array *d, *h;
                    struct source s;

                    if (n++ % ZR_CASE_STEP != 0)
                        continue;
                    d = write_base(&w, "d", k);
                    h = write_base(&w, "h", k);
                    source_open(&w, &s, texts[i]);
                    assert_ok(zarr_array_write(d, s.sel, &s.t, NULL, &terr));
                    assert_ok(zarr_array_write(h, s.sel, &s.host, NULL, &terr));
                    same_arrays(&w, "d", "h", k);
                    source_close(&w, &s);
                    zarr_array_free(d);
                    zarr_array_free(h);
                    assert_ok(zarr_node_delete(w.store, "d", &terr));
                    assert_ok(zarr_node_delete(w.store, "h", &terr));
                }
                close_world(&w);
            }
    values_device = 0;
}

/* ---- counts ------------------------------------------------------------------------ */

/* Counts what one write does. */
static void count_write(struct counts *c, zarr_array *a, const struct source *s)
{
    zarr_io_options opts = ZARR_IO_OPTIONS_INIT;

    count_begin(c, &opts);
    assert_ok(zarr_array_write(a, s->sel, &s->t, &opts, &terr));
    count_end(c);
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

        open_writes(&w, 2, 1 << 20);
        for (int k = 0; k < N; k++)
            data[k] = 1000 + k;
        a = pw_array(w.store, "a", chains[i], shape, (uint64_t[2]){10, 40});
        source_open(&w, &s, "...");
        count_write(&c, a, &s);
        assert_int_equal(c.stats.waves, 1);
        assert_int_equal(c.stats.chunks_done, 1000);
        assert_int_equal(c.stats.elements, N);
        assert_int_equal(c.stats.copies_decoded_host, 0);
        assert_int_equal(atomic_load(&n_late.encode_calls), 1);
        assert_int_equal(atomic_load(&n_late.encode_jobs), 1000);
        assert_int_equal(c.late.lists, 3); /* gather, compare, down */
        assert_int_equal(c.late.equals, 1000);
        /* for lengths with the comparison, and for the copies */
        assert_int_equal(c.late.syncs, 2);
        assert_int_equal(c.moved.bytes_down, sizeof data);
        assert_int_equal(c.moved.bytes_up, 0);
        source_close(&w, &s);
        zarr_array_free(a);
        close_world(&w);
    }
}

/* Leaves are encoded before it is known that they are empty, but not once many were. What
 * fails only for them does not fail the write. */
static void test_many_empty(void **state)
{
    const uint64_t chunk[2] = {2, 10};

    (void)state;
    for (int fails = 0; fails < 2; fails++) {
        zarr_array *a, *h;
        struct counts c;
        struct source s;
        struct pw w;

        open_writes(&w, 1, 1024);
        for (int i = 0; i < N; i++)
            data[i] = i / COLS / 2 % 2 ? -1 : 1000 + i;
        a = pw_array(w.store, "d", "[" BYTES "," LATE "]", shape, chunk);
        h = pw_array(w.store, "h", "[" BYTES "," LATE "]", shape, chunk);
        source_open(&w, &s, "...");
        refuses = fails ? -1 : 0;
        count_write(&c, a, &s);
        assert_int_equal(c.stats.chunks_done, 200);
        assert_int_equal(c.stats.chunks_missing, 100);
        assert_int_equal(c.stats.bytes_decoded, sizeof data / 2);
        assert_true(c.stats.waves > 10);
        assert_in_range(atomic_load(&n_late.encode_jobs), 104, 130);
        assert_ok(zarr_array_write(h, s.sel, &s.host, NULL, &terr));
        for (uint64_t i = 0; i < 200; i++)
            same_value(&w, (const char *[2]){"d", "h"}, i / 4, i % 4);
        refuses = 1000;
        assert_status(zarr_array_write(a, s.sel, &s.t, NULL, &terr), ZARR_ERR_CORRUPT);
        assert_non_null(strstr(terr.message, "d/c/0/0"));
        source_close(&w, &s);
        zarr_array_free(a);
        zarr_array_free(h);
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

        open_writes(&w, 2, 1 << 20);
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
        /* they come down to their places: the host copies the shards' indexes alone */
        assert_in_range(c.stats.bytes_host, 0, i == 2 ? 10 * 400 : 0);
        source_close(&w, &s);
        zarr_array_free(a);
        close_world(&w);
    }
}

/* Writes the same to a store with values on the device and to one on the host. */
static void write_reached(struct pw *w, zarr_store *reached, const char *const *how,
                          const uint64_t *chunk, struct counts *c)
{
    static int32_t want[N];
    zarr_io_options opts = ZARR_IO_OPTIONS_INIT;
    zarr_stats stats = ZARR_STATS_INIT;
    zarr_array *a[2];
    struct source s;
    zarr_tensor t;

    opts.tuning = TUNING(.pipeline = how[2]);
    source_open(w, &s, how[1]);
    for (int k = 0; k < 2; k++) {
        a[k] = pw_array(k ? reached : w->store, "a", how[0], shape, chunk);
        zarr_tensor_host(&t, NULL, base, sizeof base, 2, sizes);
        assert_ok(zarr_array_write(a[k], NULL, &t, NULL, &terr));
    }
    count_begin(c, &opts);
    assert_ok(zarr_array_write(a[1], s.sel, &s.t, &opts, &terr));
    count_end(c);
    opts.stats = &stats;
    assert_ok(zarr_array_write(a[0], s.sel, &s.host, &opts, &terr));
    assert_int_equal(c->stats.chunks_done, stats.chunks_done);
    assert_int_equal(c->stats.chunks_missing, stats.chunks_missing);
    for (int k = 0; k < 2; k++) {
        zarr_tensor_host(&t, NULL, k ? got : want, sizeof got, 2, sizes);
        assert_ok(zarr_array_read(a[k], NULL, &t, NULL, &terr));
        zarr_array_free(a[k]);
    }
    assert_memory_equal(got, want, sizeof got);
    assert_ok(zarr_node_delete(w->store, "a", &terr));
    assert_ok(zarr_node_delete(reached, "a", &terr));
    source_close(w, &s);
}

/* No raw chunk comes to the host if the store reaches the device, be it alone or in a
 * batch: only the answers of the comparison do. Values of shards are made on the host if
 * they have chunks already, codecs around them, or if `serial` writes them. */
static void test_raw_reached(void **state)
{
    static const char *const how[][3] = {
        {"[" BYTES "]", "...", NULL},
        {"[" BIG "]", "...", NULL},
        {"[" BYTES "]", "3:90, 5:37", NULL},
        {"[" BYTES "]", "20:30", NULL},
        {"[" BYTES "]", "...", "serial"},
        {"[" BIG "]", "3:90, 5:37", "serial"},
        {"[" TURN "," BYTES "]", "...", NULL},
        {"[" SHARD("[2,4]", BYTES, "end") "]", "...", NULL},
        {"[" SHARD("[1,4]", BIG, "start") "]", "...", NULL},
        {"[" SHARD("[2,4]", BYTES, "end") "]", "...", "serial"},
        {"[" SHARD("[2,4]", BYTES, "end") "," CRC "]", "...", NULL},
    };
    enum {
        ON_HOST = 9 /* rows from this one on */
    };
    static const uint64_t chunks[][2] = {{10, 40}, {2, 20}};

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(how); i++)
        for (size_t k = 0; k < ZR_COUNT(chunks); k++) {
            const bool is_shard = strstr(how[i][0], "shard") != NULL;
            const bool on_host = i >= ON_HOST;
            zarr_store_options on_device = ZARR_STORE_OPTIONS_INIT;
            zarr_store *reached = NULL;
            struct counts c;
            struct pw w;

            open_writes(&w, 2, i % 2 ? 1024 : 1 << 20);
            on_device.device_type = ZARR_DEVICE_EXT;
            assert_ok(zarr_store_open(&reached, w.ctx, "memory:", &on_device, &terr));
            write_reached(&w, reached, how[i], chunks[k], &c);
            assert_int_equal(c.stats.bytes_down, on_host ? sizeof data : 0);
            assert_int_equal(c.moved.bytes_down, c.stats.bytes_down);
            assert_int_equal(c.stats.copies_decoded_host,
                             on_host ? c.stats.chunks_done : 0);
            if (!on_host) { /* of a shard only the index goes up */
                assert_in_range(c.moved.bytes_up, is_shard ? 1 : 0,
                                is_shard ? c.stats.chunks_done * 16 + 400 : 0);
                assert_int_equal(c.late.equals, c.stats.chunks_done);
            }
            zarr_store_free(reached);
            close_world(&w);
        }
}

/* Raw inner chunks have places in their shard before it is known which are empty: the
 * first, the last, some in between, or all of a shard. The shard is made on the host or,
 * for a store that reaches the device, there, unless it has an old value: in one batch,
 * some are here and some there, in both orders. */
static void test_raw_gaps(void **state)
{
    static const char *const codecs[] = {"[" SHARD("[5,4]", BYTES, "end") "]",
                                         "[" SHARD("[5,4]", BIG, "start") "," CRC "]"};
    static const char *const texts[] = {"...", "0:90, 1:39"};
    static const char *const olds[] = {"25:75", "0:50"};
    static const uint64_t chunk[2] = {20, 20};
    static const uint64_t half[2] = {ROWS / 2, COLS};

    (void)state;
    for (size_t i = 0; i < 16 * ZR_COUNT(codecs); i++) {
        zarr_tensor t;
        struct source s;
        struct pw w;
        zarr_array *a[2];

        values_device = i / 8 % 2 ? ZARR_DEVICE_EXT : 0;
        open_writes(&w, 2, i % 2 ? 1 << 20 : 1024);
        for (int k = 0; k < N; k++) {
            const int r = k / COLS, c = k % COLS;

            if (r < 20 || c < 4 || (r >= 75 && c >= 36) || (r + c) / 9 % 2)
                data[k] = -1;
        }
        source_open(&w, &s, texts[i / 2 % 2]);
        for (int k = 0; k < 2; k++) {
            a[k] = pw_array(w.store, k ? "h" : "d", codecs[i / 4 % ZR_COUNT(codecs)],
                            shape, chunk);
            zarr_tensor_host(&t, NULL, base, sizeof base / 2, 2,
                             half); /* old values of some */
            if (i / 2 % 2) {
                zarr_selection *sel = NULL;

                assert_ok(zarr_selection_parse(&sel, 2, shape, olds[i / 16], &terr));
                assert_ok(zarr_array_write(a[k], sel, &t, NULL, &terr));
                zarr_selection_free(sel);
            }
            assert_ok(zarr_array_write(a[k], s.sel, k ? &s.host : &s.t, NULL, &terr));
        }
        for (uint64_t k = 0; k < 10; k++)
            same_value(&w, (const char *const[2]){"d", "h"}, k / 2, k % 2);
        source_close(&w, &s);
        zarr_array_free(a[0]);
        zarr_array_free(a[1]);
        close_world(&w);
    }
    values_device = 0;
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

        open_writes(&w, 2, 1 << 20);
        a = write_base(&w, "d", k);
        source_open(&w, &s, "::2, 1::3");
        count_write(&c, a, &s);
        assert_int_equal(c.stats.waves, 1);
        assert_true(c.stats.read_modify_writes > 0);
        if (kinds[k].on_device) {
            assert_int_equal(c.stats.copies_decoded_host, 0);
            /* a store with locks of its own gives 64 at a time */
            assert_in_range(atomic_load(&n_late.encode_calls), 1, 2);
            assert_in_range(atomic_load(&n_late.calls), 1,
                            atomic_load(&n_late.encode_calls));
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
    int n = 0;

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(entries); i++)
        for (int k = 0; k < N_KINDS; k++) {
            zarr_array *d, *h;
            struct source s;
            struct pw w;
            zarr_tensor t;

            if (n++ % ZR_CASE_STEP != 0)
                continue;
            open_writes(&w, 2, 1 << 20);
            d = write_base(&w, "d", k);
            h = write_base(&w, "h", k);
            source_open(&w, &s, "3:90, 5:37");
            assert_ok(zarr_array_write(h, s.sel, &s.host, NULL, &terr));
            zarr_fakedev_decline(device, entries[i]);
            assert_ok(zarr_array_write(d, s.sel, &s.t, NULL, &terr));
            same_arrays(&w, "d", "h", k);
            assert_ok(zarr_array_read(d, s.sel, &s.t, NULL, &terr));
            assert_int_equal(zarr_fakedev_peek(s.mem.handle, 0, got, sizeof got), 0);
            assert_memory_equal(got, data, (size_t)(s.lengths[0] * s.lengths[1]) * 4);
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
 * new one. The last turn writes whole shards, which are made on the device. */
static void failing_calls(zarr_status status)
{
    for (int i = 0; i <= N_KINDS + N_RAW; i++) {
        const bool shards = i == N_KINDS + N_RAW;
        const int kind = shards ? RAW_SHARDS : i < N_KINDS ? i : i - N_KINDS;
        bool passed = false;
        struct source s;
        struct pw w;
        zarr_array *a;
        zarr_tensor t;

        values_device = i < N_KINDS ? 0 : ZARR_DEVICE_EXT;
        open_writes(&w, 2, 1 << 20);
        a = write_base(&w, "d", kind);
        source_open(&w, &s, shards ? "..." : "::2, 1::3");
        for (uint64_t k = 1; !passed; k += ZR_FAIL_STEP(k)) {
            zarr_status st;

            assert_true(k < 4000);
            zarr_context_trim(w.ctx); /* so that blocks are allocated each time */
            zarr_fakedev_fail(device, ZARR_FAKEDEV_ALL, k, status);
            st = zarr_array_write(a, s.sel, &s.t, NULL, &terr);
            zarr_fakedev_fail(device, 0, 0, ZARR_OK);
            /* an allocation is tried again after a trim */
            passed = st == ZARR_OK && k > 150;
            if (st != ZARR_OK)
                assert_int_equal(st, status);
        }
        zarr_tensor_host(&t, NULL, got, sizeof got, 2, sizes);
        assert_ok(zarr_array_read(a, NULL, &t, NULL, &terr));
        for (int k = 0, from = 0; k < N; k++)
            if (shards || (k / COLS % 2 == 0 && k % COLS % 3 == 1))
                assert_int_equal(got[k], data[from++]);
            else
                assert_true(got[k] == base[k] || got[k] == -1);
        source_close(&w, &s);
        zarr_array_free(a);
        close_world(&w);
    }
    values_device = 0;
}

static void test_failing_calls(void **state)
{
    (void)state;
    failing_calls(ZARR_ERR_DEVICE);
}

static void test_short_of_memory(void **state)
{
    (void)state;
    failing_calls(ZARR_ERR_NO_MEMORY);
}

/* ---- damage ------------------------------------------------------------------------ */

/* Each entry of a shard's index names all of the shard. The error is that shard's, even
 * if the inner chunks of another one are encoded with its own. */
static void test_endless_index(void **state)
{
    static const char codecs[] =
        "[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[1,1],"
        "\"codecs\":[" BYTES "," LATE "],\"index_codecs\":[" BYTES
        "],\"index_location\":\"end\"}}]";
    static unsigned char value[1600 + 6400];
    uint64_t index[800];
    struct source s;
    struct pw w;
    zarr_tensor t;
    zarr_array *a;

    (void)state;
    open_writes(&w, 2, 1 << 20);
    a = pw_array(w.store, "a", codecs, shape, (uint64_t[2]){20, 20});
    zarr_tensor_host(&t, NULL, base, sizeof base, 2, sizes);
    assert_ok(zarr_array_write(a, NULL, &t, NULL, &terr));
    for (size_t i = 0; i < 400; i++) {
        index[2 * i] = 0;
        index[2 * i + 1] = 1600;
    }
    memcpy(value + 1600, index, sizeof index);
    assert_ok(zarr_store_put(w.store, "a/c/0/1", value, sizeof value, NULL, &terr));
    source_open(&w, &s, "0:20, 0:24");
    assert_status(zarr_array_write(a, s.sel, &s.t, NULL, &terr), ZARR_ERR_CORRUPT);
    assert_non_null(strstr(terr.message, "a/c/0/1"));
    source_close(&w, &s);
    zarr_array_free(a);
    close_world(&w);
}

/* ---- locks ------------------------------------------------------------------------- */

static atomic_int locks_held, locks_most;

static zarr_status counted_lock(void *self, const char *key, const zarr_cancel *cancel,
                                void **lock, zarr_error *err)
{
    const struct over *o = self;
    const zarr_status st = zr_store_lock(o->below, key, cancel, lock, err);
    int most = atomic_load(&locks_most);
    const int held = st == ZARR_OK ? atomic_fetch_add(&locks_held, 1) + 1 : 0;

    while (held > most && !atomic_compare_exchange_weak(&locks_most, &most, held))
        ;
    return st;
}

static void counted_unlock(void *self, void *lock)
{
    const struct over *o = self;

    atomic_fetch_sub(&locks_held, 1);
    zr_store_unlock(o->below, lock);
}

/* A call has a batch meanwhile. */
static zarr_status slow_batch(zarr_codec_job *jobs, uint64_t n, bool decode, bool settles,
                              zarr_status st, zarr_error *err)
{
    (void)jobs;
    (void)n;
    (void)decode;
    (void)settles;
    (void)err;
    usleep(3000); /* the others take their locks */
    return st;
}

/* A store may have a file open for each lock. All batches together have few. */
static void test_locks(void **state)
{
    static const uint64_t chunk[2] = {1, 4};
    zarr_store_vtable vt = over_runs;
    struct over o = {.caps = ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_WRITE |
                             ZARR_STORE_CAP_LIST | ZARR_STORE_CAP_LOCK |
                             ZARR_STORE_CAP_WRITES_WAIT};
    zarr_store *store = NULL;
    zarr_array *a;
    zarr_tensor t;
    struct source s;
    struct pw w;

    (void)state;
    vt.lock = counted_lock;
    vt.unlock = counted_unlock;
    open_writes(&w, 16, 1024);
    o.below = w.store;
    w.store = NULL;
    assert_ok(zarr_store_open_custom(&store, w.ctx, &vt, &o, NULL, &terr));
    a = pw_array(store, "a", "[" BYTES "," LATE "]", shape, chunk);
    zarr_tensor_host(&t, NULL, data, sizeof data, 2, sizes);
    assert_ok(zarr_array_write(a, NULL, &t, NULL, &terr));
    source_open(&w, &s, ":, ::2"); /* a part of all 1,000 chunks */
    answer = slow_batch;
    assert_ok(zarr_array_write(a, s.sel, &s.t, NULL, &terr));
    answer = NULL;
    assert_in_range(atomic_load(&locks_most), 2, 192);
    assert_int_equal(atomic_load(&locks_held), 0);
    source_close(&w, &s);
    zarr_array_free(a);
    zarr_store_free(store);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_endless_index),    cmocka_unit_test(test_over_old_values),
        cmocka_unit_test(test_many_shards),      cmocka_unit_test(test_raw),
        cmocka_unit_test(test_raw_reached),      cmocka_unit_test(test_raw_gaps),
        cmocka_unit_test(test_many_empty),       cmocka_unit_test(test_blended),
        cmocka_unit_test(test_failing_calls),    cmocka_unit_test(test_short_of_memory),
        cmocka_unit_test(test_declined_entries), cmocka_unit_test(test_locks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
