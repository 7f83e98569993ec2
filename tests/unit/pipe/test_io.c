/*
 * unit/pipe/test_io.c - reads and writes compared with a model: `waves` and `serial`
 * give the same elements and the same stored bytes for every chain and number of
 * threads, counters show the short cuts, a second read makes no allocation a chunk, and
 * a small budget is respected.
 */
#include "unit/pipe/pipe_test.h"

enum {
    ROWS = 37,
    COLS = 29
};

static const struct chain {
    const char *codecs;
    uint64_t chunk[2];
} chains[] = {
    {"[" BYTES "]", {8, 10}},
    {"[" BIG "," GZIP "," CRC "]", {8, 10}},
    {"[" TURN "," BYTES "]", {8, 10}},
    {"[" SHARD("[4,5]", BYTES, "end") "]", {8, 10}},
    {"[" SHARD("[4,5]", BYTES "," GZIP, "start") "]", {16, 10}},
    {"[" SHARD("[4,5]", BIG "," GZIP, "end") "," GZIP "," CRC "]", {8, 20}},
    {"[" TURN "," SHARD("[5,4]", TURN "," BYTES, "end") "]", {8, 10}},
    {"[" SHARD("[8,10]", SHARD("[4,5]", BYTES, "start"), "end") "]", {16, 20}},
    {"[" SHARD("[8,10]", SHARD("[4,5]", BYTES, "end") "," GZIP, "start") "]", {16, 20}},
    {"[" SHARD("[8,10]", TURN "," SHARD("[5,2]", BYTES "," GZIP, "end"), "end") "," CRC
                                                                                "]",
     {16, 20}},
};

struct same_arg {
    zarr_store *other;
    zarr_store *own;
    int n;
};

static int same_key(void *user, const zarr_store_item *item)
{
    struct same_arg *s = user;
    static char x[65536], y[65536];
    uint64_t n = sizeof x, m = sizeof y;

    if (item->is_prefix)
        return 0;
    assert_ok(zarr_store_get(s->own, item->key, 0, x, &n, NULL, &terr));
    assert_ok(zarr_store_get(s->other, item->key, 0, y, &m, NULL, &terr));
    assert_int_equal(n, m);
    assert_memory_equal(x, y, n);
    s->n++;
    return 0;
}

static void stores_equal(zarr_store *a, zarr_store *b)
{
    struct same_arg x = {b, a, 0}, y = {a, b, 0};

    assert_ok(zarr_store_list(a, "", ZARR_LIST_RECURSIVE, same_key, &x, NULL, &terr));
    assert_ok(zarr_store_list(b, "", ZARR_LIST_RECURSIVE, same_key, &y, NULL, &terr));
    assert_int_equal(x.n, y.n);
}

static void check_box(zarr_array *a, int32_t model[ROWS][COLS], const uint64_t *at,
                      const uint64_t *n, const zarr_io_options *opts)
{
    static int32_t got[ROWS * COLS];

    memset(got, 0x55, sizeof got);
    assert_ok(pw_box(a, at, n, got, opts, false));
    for (uint64_t i = 0; i < n[0]; i++)
        assert_memory_equal(&got[i * n[1]], &model[at[0] + i][at[1]],
                            n[1] * sizeof(int32_t));
}

static void random_box(unsigned *seed, uint64_t *at, uint64_t *n)
{
    at[0] = (uint64_t)rand_r(seed) % ROWS;
    at[1] = (uint64_t)rand_r(seed) % COLS;
    n[0] = 1 + (uint64_t)rand_r(seed) % (ROWS - at[0]);
    n[1] = 1 + (uint64_t)rand_r(seed) % (COLS - at[1]);
}

static void run_chain(const struct chain *c, uint32_t threads, unsigned seed)
{
    static int32_t model[ROWS][COLS], data[ROWS * COLS];
    const uint64_t shape[2] = {ROWS, COLS}, zero[2] = {0, 0};
    struct pw w, s;
    zarr_array *a = NULL, *b = NULL;
    zarr_io_options waves = {.struct_size = sizeof waves,
                             .tuning = TUNING(.wave_bytes = 512)},
                    serial = {.struct_size = sizeof serial,
                              .tuning = TUNING(.pipeline = "serial")};

    pw_open(&w, threads, UINT64_C(64) << 20, 0);
    pw_open(&s, 1, UINT64_C(64) << 20, 0);
    a = pw_array(w.store, "a", c->codecs, shape, c->chunk);
    b = pw_array(s.store, "a", c->codecs, shape, c->chunk);
    memset(model, 0xff, sizeof model);
    for (int round = 0; round < 12; round++) {
        uint64_t at[2], n[2];
        bool fill = rand_r(&seed) % 4 == 0;

        random_box(&seed, at, n);
        for (uint64_t i = 0; i < n[0] * n[1]; i++) {
            data[i] = fill ? -1 : rand_r(&seed);
            model[at[0] + i / n[1]][at[1] + i % n[1]] = data[i];
        }
        assert_ok(pw_box(a, at, n, data, &waves, true));
        assert_ok(pw_box(b, at, n, data, &serial, true));
        stores_equal(w.store, s.store);
        random_box(&seed, at, n);
        check_box(a, model, at, n, &waves);
        check_box(b, model, at, n, &serial);
        check_box(a, model, zero, shape, &serial);
        check_box(b, model, zero, shape, &waves);
    }
    zarr_array_free(a);
    zarr_array_free(b);
    pw_close(&w);
    pw_close(&s);
}

static void test_waves_equal_serial(void **state)
{
    (void)state;
    for (size_t i = 0; i < ZR_COUNT(chains); i++) {
        run_chain(&chains[i], 1, (unsigned)i);
        run_chain(&chains[i], 4, (unsigned)i + 100);
    }
}

/* Selections by lists, steps and points, read with both pipelines. */
static void test_selections(void **state)
{
    static const char *const texts[] = {"::3,1", "5:30:4,::-2", "[1,1,7,36],[28,0,3]",
                                        "[30,2,9],4:20:5"};
    static int32_t data[ROWS * COLS], x[ROWS * COLS], y[ROWS * COLS];
    const uint64_t shape[2] = {ROWS, COLS}, zero[2] = {0, 0};
    const zarr_io_options serial = {.struct_size = sizeof serial,
                                    .tuning = TUNING(.pipeline = "serial")};

    (void)state;
    for (int i = 0; i < ROWS * COLS; i++)
        data[i] = i;
    for (size_t i = 0; i < ZR_COUNT(chains); i++) {
        struct pw w;
        zarr_array *a;

        pw_open(&w, 3, UINT64_C(64) << 20, 600);
        a = pw_array(w.store, "a", chains[i].codecs, shape, chains[i].chunk);
        assert_ok(pw_box(a, zero, shape, data, NULL, true));
        for (size_t k = 0; k < ZR_COUNT(texts); k++) {
            zarr_selection *sel = NULL;
            uint64_t dims[2];
            zarr_tensor t;
            uint64_t bytes;

            assert_ok(zarr_selection_parse(&sel, 2, shape, texts[k], &terr));
            bytes = zarr_selection_n_items(sel) * sizeof(int32_t);
            for (int32_t d = 0; d < zarr_selection_ndim(sel); d++)
                dims[d] = (uint64_t)zarr_selection_shape(sel)[d];
            memset(x, 0, sizeof x);
            memset(y, 1, sizeof y);
            t = pw_tensor(x, dims, bytes);
            t.ndim = zarr_selection_ndim(sel);
            assert_ok(zarr_array_read(a, sel, &t, NULL, &terr));
            t.data = y;
            assert_ok(zarr_array_read(a, sel, &t, &serial, &terr));
            assert_memory_equal(x, y, bytes);
            if (k == 2) {
                assert_int_equal(x[0], 1 * COLS + 28);
                assert_int_equal(x[11], 36 * COLS + 3);
            }
            zarr_selection_free(sel);
        }
        zarr_array_free(a);
        pw_close(&w);
    }
}

/* ---- counters ------------------------------------------------------------- */

static zarr_stats read_stats(zarr_array *a, const uint64_t *at, const uint64_t *n,
                             int32_t *data)
{
    zarr_stats stats = ZARR_STATS_INIT;
    zarr_io_options opts = {.struct_size = sizeof opts, .stats = &stats};

    assert_ok(pw_box(a, at, n, data, &opts, false));
    return stats;
}

/* Each operation of the store is counted, and the time that the call took. */
static void test_counts_of_operations(void **state)
{
    static int32_t data[16 * 16];
    const uint64_t shape[2] = {16, 16}, chunk[2] = {8, 8}, zero[2] = {0, 0};
    zarr_stats s = ZARR_STATS_INIT;
    zarr_io_options opts = {.struct_size = sizeof opts, .stats = &s};
    struct pw w;
    zarr_array *a;

    (void)state;
    pw_open(&w, 1, UINT64_C(64) << 20, 0);
    a = pw_array(w.store, "a", "[" BYTES "," GZIP "]", shape, chunk);
    for (int i = 0; i < 16 * 16; i++)
        data[i] = i % 16 < 8 ? -1 : i; /* the left chunks are the fill value */
    assert_ok(pw_box(a, zero, shape, data, &opts, true));
    assert_int_equal(s.store_puts, 2);
    assert_int_equal(s.store_erases, 2);
    assert_int_equal(s.chunks_missing, 2);
    assert_true(s.wall_ns > 0);
    s.wall_ns = 0;
    assert_ok(pw_box(a, zero, shape, data, &opts, false));
    assert_int_equal(s.store_gets, 4);
    assert_int_equal(s.store_puts + s.store_erases + s.store_ranges, 0);
    assert_int_equal(s.chunks_missing, 2);
    assert_true(s.wall_ns > 0);
    zarr_array_free(a);
    pw_close(&w);
}

static void test_shortcuts(void **state)
{
    const uint64_t shape[2] = {512, 512}, rows[2] = {128, 512}, zero[2] = {0, 0},
                   part[2] = {2, 512};
    int32_t *data = calloc(512 * 512, sizeof *data);
    struct pw w;
    zarr_array *a;
    zarr_stats s;

    (void)state;
    pw_open(&w, 2, UINT64_C(64) << 20, 0);
    for (int i = 0; i < 512 * 512; i++)
        data[i] = i;
    a = pw_array(w.store, "raw", "[" BYTES "]", shape, rows);
    assert_ok(pw_box(a, zero, shape, data, NULL, true));
    s = read_stats(a, zero, shape, data);
    assert_int_equal(s.chunks_direct, 4);
    assert_int_equal(s.chunks_done, 4);
    assert_int_equal(s.copies_host, 0);
    assert_int_equal(s.elements, 512 * 512);
    s = read_stats(a, zero, part, data);
    assert_int_equal(s.chunks_partial, 1);
    assert_int_equal(s.bytes_stored, 2 * 512 * 4);
    zarr_array_free(a);

    a = pw_array(w.store, "gz", "[" BYTES "," GZIP "]", shape, rows);
    assert_ok(pw_box(a, zero, shape, data, NULL, true));
    s = read_stats(a, zero, shape, data);
    assert_int_equal(s.chunks_direct, 4);
    assert_int_equal(s.copies_host, 0);
    zarr_array_free(a);

    a = pw_array(w.store, "sh", "[" SHARD("[32,512]", BYTES "," GZIP, "end") "]", shape,
                 rows);
    s = read_stats(a, zero, shape, data);
    assert_int_equal(s.chunks_missing, 16);
    assert_int_equal(s.chunks_done, 16);
    for (int i = 0; i < 512 * 512; i++)
        data[i] = i;
    assert_ok(pw_box(a, zero, shape, data, NULL, true));
    s = read_stats(a, zero, shape, data);
    assert_int_equal(s.index_reads, 4);
    assert_int_equal(s.chunks_done, 16);
    s = read_stats(a, zero, shape, data);
    assert_int_equal(s.index_hits, 4);
    assert_int_equal(s.index_reads, 0);
    zarr_array_free(a);
    pw_close(&w);
    free(data);
}

/* Another handle rewrites a shard: the reader detects that its cached index is
 * outdated. */
static void test_stale_index(void **state)
{
    const uint64_t shape[2] = {8, 10}, zero[2] = {0, 0};
    static int32_t data[80], got[80];
    struct pw w;
    zarr_array *a, *b = NULL;

    (void)state;
    pw_open(&w, 2, UINT64_C(64) << 20, 0);
    a = pw_array(w.store, "a", "[" SHARD("[4,5]", BYTES "," GZIP, "end") "]", shape,
                 shape);
    assert_ok(zarr_array_open(&b, w.store, "a", NULL, &terr));
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < 80; i++)
            data[i] = i % (round + 1) * 7 + round;
        assert_ok(pw_box(b, zero, shape, data, NULL, true));
        assert_ok(pw_box(a, zero, shape, got, NULL, false));
        assert_memory_equal(data, got, sizeof data);
    }
    zarr_array_free(a);
    zarr_array_free(b);
    pw_close(&w);
}

/* ---- allocations and budget ------------------------------------------------ */

static void test_steady_state(void **state)
{
    static const struct chain steady[] = {
        {"[" BYTES "]", {16, 64}},
        {"[" BYTES "," GZIP "]", {16, 64}},
        {"[" SHARD("[16,16]", BYTES "," GZIP, "end") "]", {256, 256}},
    };
    const uint64_t shape[2] = {256, 256}, zero[2] = {0, 0};
    int32_t *data = calloc(256 * 256, sizeof *data);

    (void)state;
    for (int i = 0; i < 256 * 256; i++)
        data[i] = i;
    for (size_t i = 0; i < ZR_COUNT(steady); i++) {
        struct pw w;
        zarr_array *a;
        int_fast64_t calls;

        pw_open(&w, 1, UINT64_C(64) << 20, 0);
        a = pw_array(w.store, "a", steady[i].codecs, shape, steady[i].chunk);
        assert_ok(pw_box(a, zero, shape, data, NULL, true));
        for (int k = 0; k < 2; k++)
            assert_ok(pw_box(a, zero, shape, data, NULL, false));
        calls = atomic_load(&w.n_calls);
        assert_ok(pw_box(a, zero, shape, data, NULL, false));
        /* 64 to 256 chunks */
        assert_in_range(atomic_load(&w.n_calls) - calls, 0, 40);
        zarr_array_free(a);
        pw_close(&w);
    }
    free(data);
}

static void test_budget(void **state)
{
    static const char *const codecs[] = {"[" BYTES "," GZIP "]",
                                         "[" SHARD("[64,64]", BYTES "," GZIP, "end") "]"};
    const uint64_t shape[2] = {4096, 4096}, chunk[2] = {128, 128}, zero[2] = {0, 0};
    int32_t *data = calloc(4096 * 4096, sizeof *data);

    (void)state;
    for (int i = 0; i < 4096 * 4096; i++)
        data[i] = i >> 4;
    for (size_t i = 0; i < ZR_COUNT(codecs); i++) {
        struct zr_budget_stats b;
        struct pw w;
        zarr_array *a;

        pw_open(&w, 4, UINT64_C(1) << 20, 0);
        a = pw_array(w.store, "a", codecs[i], shape, chunk);
        assert_ok(pw_box(a, zero, shape, data, NULL, true));
        assert_ok(pw_box(a, zero, shape, data, NULL, false));
        zr_budget_stats_get(&w.ctx->budget, &b);
        assert_true(b.peak > 0 && b.peak <= UINT64_C(1) << 20);
        assert_int_equal(b.now, 0);
        for (int k = 0; k < 4096 * 4096; k += 4099)
            assert_int_equal(data[k], k >> 4);
        zarr_array_free(a);
        pw_close(&w);
    }
    free(data);
}

/* ---- edges ------------------------------------------------------------------ */

static void test_empty_arrays(void **state)
{
    const uint64_t shape[2] = {0, 10}, chunk[2] = {4, 5}, zero[2] = {0, 0};
    int32_t one = 7;
    struct pw w;
    zarr_array *a;
    zarr_array_spec scalar = {
        .struct_size = sizeof scalar, .data_type = "int32", .shape = shape};
    zarr_tensor t = pw_tensor(&one, NULL, sizeof one);

    (void)state;
    pw_open(&w, 2, UINT64_C(64) << 20, 0);
    a = pw_array(w.store, "a", "[" SHARD("[2,5]", BYTES, "end") "]", shape, chunk);
    assert_ok(pw_box(a, zero, shape, &one, NULL, true));
    assert_ok(pw_box(a, zero, shape, &one, NULL, false));
    zarr_array_free(a);
    assert_ok(zarr_array_create(&a, w.store, "s", &scalar, NULL, &terr));
    t.ndim = 0;
    assert_ok(zarr_array_write(a, NULL, &t, NULL, &terr));
    one = 0;
    assert_ok(zarr_array_read(a, NULL, &t, NULL, &terr));
    assert_int_equal(one, 7);
    zarr_array_free(a);
    pw_close(&w);
}

/* Index entries that all refer to the same bytes do not make a small shard huge. */
static void test_greedy_index(void **state)
{
    const uint64_t shape[2] = {64, 64}, zero[2] = {0, 0}, part[2] = {1, 1};
    enum {
        N = 64 * 64
    };
    const char *codecs = "[{\"name\":\"sharding_indexed\",\"configuration\":{"
                         "\"chunk_shape\":[1,1],\"codecs\":[" BYTES "," GZIP
                         "],\"index_codecs\":[" BYTES "]}}]";
    size_t body = 60000, bytes = body + N * 16;
    char *value = calloc(1, bytes);
    uint64_t pair[2] = {0, body};
    int32_t one = 1;
    struct pw w;
    zarr_array *a;

    (void)state;
    pw_open(&w, 2, UINT64_C(64) << 20, 0);
    a = pw_array(w.store, "a", codecs, shape, shape);
    for (size_t i = 0; i < N; i++)
        memcpy(value + body + i * 16, pair, 16);
    assert_ok(zarr_store_put(w.store, "a/c/0/0", value, bytes, NULL, &terr));
    assert_status(pw_box(a, zero, part, &one, NULL, true), ZARR_ERR_CORRUPT);
    zarr_array_free(a);
    pw_close(&w);
    free(value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waves_equal_serial),
        cmocka_unit_test(test_selections),
        cmocka_unit_test(test_shortcuts),
        cmocka_unit_test(test_counts_of_operations),
        cmocka_unit_test(test_stale_index),
        cmocka_unit_test(test_steady_state),
        cmocka_unit_test(test_budget),
        cmocka_unit_test(test_empty_arrays),
        cmocka_unit_test(test_greedy_index),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
