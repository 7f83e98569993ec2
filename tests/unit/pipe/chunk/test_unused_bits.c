/*
 * unit/pipe/chunk/test_unused_bits.c - elements with unused bits use the short cuts as
 * well: from the store to the caller's memory, in ranges, in slabs, and through a decoder
 * that decodes parts. On each of them unused bits are cleared.
 */
#include "unit/pipe/pipe_test.h"

enum {
    ROWS = 512,
    COLS = 512,
    CHUNK = 128
};

static uint8_t model[ROWS][COLS], bytes[ROWS][COLS], got[ROWS][COLS];

static zarr_array *small_array(zarr_store *store, const char *path, const char *type,
                               const char *codecs, uint64_t rows)
{
    const uint64_t shape[2] = {ROWS, COLS}, chunk[2] = {rows, COLS};
    const zarr_array_spec spec = {.struct_size = sizeof spec,
                                  .ndim = 2,
                                  .shape = shape,
                                  .chunk_shape = chunk,
                                  .data_type = type,
                                  .codecs = codecs};
    zarr_array *a = NULL;

    assert_ok(zarr_array_create(&a, store, path, &spec, NULL, &terr));
    return a;
}

static zarr_stats transfer(zarr_array *a, uint64_t first, uint64_t rows, int64_t step,
                           uint8_t *data, bool write, const char *pipeline)
{
    const uint64_t shape[2] = {rows, COLS};
    const int64_t stride[2] = {COLS * step, step};
    const uint64_t at[2] = {first, 0}, n[2] = {rows, COLS};
    zarr_tensor t = pw_tensor(data, shape, rows * COLS * (uint64_t)step);
    zarr_stats stats = ZARR_STATS_INIT;
    zarr_io_options opts = {.struct_size = sizeof opts,
                            .stats = &stats,
                            .tuning = TUNING(.pipeline = pipeline)};
    zarr_selection *sel = NULL;

    if (step != 1)
        t.strides = stride;
    assert_ok(zarr_selection_box(&sel, 2, zarr_array_shape(a), at, n, &terr));
    assert_ok(write ? zarr_array_write(a, sel, &t, &opts, &terr)
                    : zarr_array_read(a, sel, &t, &opts, &terr));
    zarr_selection_free(sel);
    return stats;
}

static void fill_bytes(void)
{
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < COLS; k++) {
            bytes[i][k] = (uint8_t)((i * 7 + k) % 3 == 0 ? 0 : (i * 31 + k) % 255 + 1);
            model[i][k] = bytes[i][k] != 0;
        }
}

/* Puts bytes as another writer might store them, without the library. */
static void put_chunks(const struct pw *w, const char *path, int rows)
{
    char key[64];

    for (int i = 0; i < ROWS / rows; i++) {
        snprintf(key, sizeof key, "%s/c/%d/0", path, i);
        assert_ok(zarr_store_put(w->store, key, bytes[i * rows], (uint64_t)rows * COLS,
                                 NULL, &terr));
    }
}

static void check_ways(zarr_array *a, bool raw, uint64_t n_direct)
{
    static uint8_t wide[ROWS][COLS][2];
    zarr_stats s;

    memset(got, 9, sizeof got);
    s = transfer(a, 0, ROWS, 1, got[0], false, NULL);
    assert_memory_equal(got, model, sizeof got);
    if (n_direct > 0) { /* from the store, or its decoder, into the caller's memory */
        assert_int_equal(s.chunks_direct, n_direct);
        assert_int_equal(s.copies_host, 0);
    }
    s = transfer(a, 0, ROWS, 1, got[0], false, "serial");
    assert_memory_equal(got, model, sizeof got);
    memset(got, 9, sizeof got);
    s = transfer(a, 3, 2, 1, got[0], false, NULL);
    assert_memory_equal(got, model[3], 2 * COLS);
    if (raw) {
        assert_int_equal(s.chunks_partial, 1);
        assert_int_equal(s.bytes_stored, 2 * COLS); /* only the bytes asked for */
    }
    memset(wide, 9, sizeof wide);
    (void)transfer(a, 0, ROWS, 2, wide[0][0], false, NULL);
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < COLS; k++)
            assert_int_equal(wide[i][k][0], model[i][k]);
}

static void test_raw_bool(void **state)
{
    struct pw w;
    zarr_array *a;
    zarr_stats s;
    uint64_t n = CHUNK * COLS;

    (void)state;
    fill_bytes();
    pw_open(&w, 2, UINT64_C(64) << 20, 0);
    a = small_array(w.store, "raw", "bool", "[" BYTES "]", CHUNK);
    s = transfer(a, 0, ROWS, 1, model[0], true, NULL);
    assert_int_equal(s.chunks_direct, 4); /* the caller's memory is stored directly */
    assert_int_equal(s.copies_host, 0);
    check_ways(a, true, 4);
    put_chunks(&w, "raw", CHUNK); /* bytes other than 0 and 1 */
    check_ways(a, true, 4);
    /* The caller's invalid bytes are stored as 1. The caller's memory is not changed. */
    s = transfer(a, 0, ROWS, 1, bytes[0], true, NULL);
    assert_int_equal(s.chunks_direct, 0);
    memcpy(got, bytes, sizeof got);
    fill_bytes();
    assert_memory_equal(got, bytes, sizeof got);
    check_ways(a, true, 4);
    assert_ok(zarr_store_get(w.store, "raw/c/1/0", 0, got, &n, NULL, &terr));
    assert_int_equal(n, CHUNK * COLS);
    assert_memory_equal(got, model[CHUNK], CHUNK * COLS);
    zarr_array_free(a);
    pw_close(&w);
}

static void test_bool_behind_codecs(void **state)
{
    static const char *const codecs[] = {
        "[" BYTES "," GZIP "]", "[" BYTES "," CRC "]",
        "[" BYTES
        ",{\"name\":\"blosc\",\"configuration\":{\"cname\":\"lz4\",\"clevel\":1,"
        "\"shuffle\":\"noshuffle\",\"typesize\":1,\"blocksize\":4096}}]",
        "[" SHARD("[32,512]", BYTES, "end") "]",
        "[" SHARD("[32,512]", BYTES "," GZIP, "start") "]"};
    struct pw w;

    (void)state;
    fill_bytes();
    pw_open(&w, 2, UINT64_C(64) << 20, 0);
    for (size_t i = 0; i < sizeof codecs / sizeof *codecs; i++) {
        char path[8];
        zarr_array *a;

        snprintf(path, sizeof path, "c%zu", i);
        a = small_array(w.store, path, "bool", codecs[i], CHUNK);
        (void)transfer(a, 0, ROWS, 1, bytes[0], true, NULL);
        check_ways(a, false, i < 3 ? 4 : 0);
        zarr_array_free(a);
    }
    pw_close(&w);
}

/* Codecs around a shard: several threads decode from the one buffer of its value. */
static void test_shared_buffer(void **state)
{
    struct pw w;
    zarr_array *a;

    (void)state;
    fill_bytes();
    pw_open(&w, 4, UINT64_C(64) << 20, 0);
    a = small_array(w.store, "s", "bool",
                    "[" SHARD("[32,512]", BYTES, "end") "," GZIP "]", CHUNK);
    (void)transfer(a, 0, ROWS, 1, bytes[0], true, NULL);
    memset(got, 9, sizeof got);
    (void)transfer(a, 0, ROWS, 1, got[0], false, NULL);
    assert_memory_equal(got, model, sizeof got);
    zarr_array_free(a);
    pw_close(&w);
}

/* Chunks so large that they are processed in slabs, directly to the caller's memory or
 * not: memory that is not aligned only where the CPU copies fast to any address. */
static void test_slabs(void **state)
{
    enum {
        SIDE = 1536
    };
    const uint64_t shape[2] = {SIDE, SIDE};
    const uint64_t side[2] = {SIDE, SIDE};
    const zarr_array_spec spec = {.struct_size = sizeof spec,
                                  .ndim = 2,
                                  .shape = shape,
                                  .chunk_shape = shape,
                                  .data_type = "bool",
                                  .codecs = "[" BYTES "]"};
    const size_t n = (size_t)SIDE * SIDE;
    uint8_t *data = malloc(n), *room = aligned_alloc(64, n + 64);
    struct pw w;
    zarr_array *a = NULL;

    (void)state;
    for (size_t i = 0; i < n; i++)
        data[i] = (uint8_t)(i % 251 % 3);
    pw_open(&w, 2, UINT64_C(64) << 20, 0);
    assert_ok(zarr_array_create(&a, w.store, "a", &spec, NULL, &terr));
    assert_ok(zarr_store_put(w.store, "a/c/0/0", data, n, NULL, &terr));
    for (size_t off = 0; off < 64; off += 16) {
        const zarr_tensor t = pw_tensor(room + off, side, n);
        zarr_stats stats = ZARR_STATS_INIT;
        const zarr_io_options opts = {.struct_size = sizeof opts, .stats = &stats};
        const bool is_direct = off == 0 || zr_cpu_features & ZR_CPU_FSRM;

        memset(room, 9, n + 64);
        assert_ok(zarr_array_read(a, NULL, &t, &opts, &terr));
        assert_int_equal(stats.chunks_direct, is_direct);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(room[off + i], data[i] != 0);
    }
    zarr_array_free(a);
    pw_close(&w);
    free(room);
    free(data);
}

static void test_int4(void **state)
{
    const uint64_t shape[2] = {ROWS, COLS};
    zarr_tensor t = pw_tensor(bytes, shape, sizeof bytes);
    struct pw w;
    zarr_array *a;

    (void)state;
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < COLS; k++) {
            bytes[i][k] = (uint8_t)((i + k) % 16); /* without sign extension */
            model[i][k] = (uint8_t)((bytes[i][k] ^ 8) - 8);
        }
    pw_open(&w, 2, UINT64_C(64) << 20, 0);
    a = small_array(w.store, "i4", "int4", "[" BYTES "]", CHUNK);
    (void)transfer(a, 0, ROWS, 1, bytes[0], true, NULL);
    check_ways(a, true, 4);
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < COLS; k++)
            bytes[i][k] = (uint8_t)(bytes[i][k] | (i + k) % 16 << 4);
    put_chunks(&w, "i4", CHUNK);
    check_ways(a, true, 4);
    memcpy(bytes, model, sizeof bytes);
    bytes[300][5] = 0x1F; /* not an int4 in either form */
    assert_status(zarr_array_write(a, NULL, &t, NULL, &terr), ZARR_ERR_INVALID);
    assert_non_null(strstr(terr.message, "c/2/0"));
    zarr_array_free(a);
    pw_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_raw_bool),      cmocka_unit_test(test_bool_behind_codecs),
        cmocka_unit_test(test_shared_buffer), cmocka_unit_test(test_slabs),
        cmocka_unit_test(test_int4),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
