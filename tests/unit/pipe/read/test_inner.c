/*
 * unit/pipe/read/test_inner.c - nested shards: behind codecs, inside shards of the same
 * kind, and with variable-length elements; also malformed objects, and waves of inner
 * chunks.
 */
#include "unit/pipe/pipe_test.h"

#include <zarrc/vlen.h>

/* Indexes have no checksum, so a test can change them. */
#define BARE(chunk, codecs)                                                              \
    "{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":" chunk           \
    ",\"codecs\":[" codecs "],\"index_codecs\":[" BYTES "]}}"

enum {
    SIDE = 8,
    INDEX = 2 * 16 /* size of the index of a shard with two chunks */
};
static const uint64_t zero[2] = {0, 0}, whole[2] = {SIDE, SIDE};
static int32_t data[SIDE * SIDE], got[SIDE * SIDE];

static zarr_array *make_filled(struct pw *w, const char *codecs)
{
    zarr_array *a = pw_array(w->store, "a", codecs, whole, whole);

    for (int i = 0; i < SIDE * SIDE; i++)
        data[i] = i * i;
    assert_ok(pw_box(a, zero, whole, data, NULL, true));
    memset(got, 0, sizeof got);
    assert_ok(pw_box(a, zero, whole, got, NULL, false));
    assert_memory_equal(got, data, sizeof data);
    return a;
}

static void must_fail(zarr_array *a, const char *says)
{
    assert_status(pw_box(a, zero, whole, got, NULL, false), ZARR_ERR_CORRUPT);
    if (!strstr(terr.message, says))
        fail_msg("\"%s\" does not say \"%s\"", terr.message, says);
}

static uint64_t read_object(struct pw *w, uint8_t *object, uint64_t cap)
{
    uint64_t n = cap;

    assert_ok(zarr_store_get(w->store, "a/c/0/0", 0, object, &n, NULL, &terr));
    assert_true(n >= INDEX && n < cap);
    return n;
}

static void put(struct pw *w, const void *object, uint64_t n)
{
    assert_ok(zarr_store_put(w->store, "a/c/0/0", object, n, NULL, &terr));
}

/* Sets entry 0 of the index at the end of an object of n bytes. */
static void set_entry(uint8_t *object, uint64_t n, uint64_t offset, uint64_t bytes)
{
    memcpy(object + n - INDEX, &offset, sizeof offset);
    memcpy(object + n - INDEX + 8, &bytes, sizeof bytes);
}

/* Objects that are too short for a shard, with and without codecs around it. */
static void test_too_short(void **state)
{
    static const uint64_t one_by_two[2] = {1, 2};
    uint8_t small[64];
    uint64_t n = sizeof small;
    struct pw w;
    zarr_array *a, *two;

    (void)state;
    pw_open(&w, 2, (uint64_t)64 << 20, 0);
    a = make_filled(&w, "[" BARE("[4,8]", BYTES) "]");
    put(&w, "12345", 5);
    must_fail(a, "a shard of 5 bytes cannot hold its index of 32");
    put(&w, "", 0);
    must_fail(a, "a shard of 0 bytes cannot hold its index of 32");
    zarr_array_free(a);
    pw_close(&w);

    pw_open(&w, 2, (uint64_t)64 << 20, 0);
    a = make_filled(&w, "[" BARE("[4,8]", BYTES) "," CRC "]");
    two = pw_array(w.store, "two", "[" BYTES "," CRC "]", one_by_two, one_by_two);
    assert_ok(pw_box(two, zero, one_by_two, data + 1, NULL, true));
    assert_ok(zarr_store_get(w.store, "two/c/0/0", 0, small, &n, NULL, &terr));
    assert_int_equal(n, 12);
    put(&w, small, n); /* a valid checksum of eight bytes */
    must_fail(a, "a shard of 8 bytes cannot hold its index of 32");
    put(&w, small, 3);
    must_fail(a, "crc32c");
    zarr_array_free(two);
    zarr_array_free(a);
    pw_close(&w);
}

/* Nested shards: the outer index says where the inner shard is. */
static void test_nested(void **state)
{
    static uint8_t object[1 << 20];
    static const char *const around[] = {
        "[" BARE("[4,8]", BARE("[2,8]", BYTES)) "]",
        "[" BARE("[4,8]", BARE("[2,8]", BYTES) "," CRC) "]",
        "[" BARE("[4,8]", BARE("[2,8]", BYTES)) "," CRC "]",
        "[" BARE("[4,8]", BARE("[2,8]", BYTES) "," CRC) "," CRC "]"};
    struct pw w;
    zarr_array *a;
    uint64_t n;

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        pw_open(&w, 2, (uint64_t)64 << 20, 0);
        a = make_filled(&w, around[i]);
        n = read_object(&w, object, sizeof object);
        object[n / 3] ^= 0x40; /* in the first inner shard */
        put(&w, object, n);
        if (i > 0)
            must_fail(a, "crc32c");
        object[n / 3] ^= 0x40;
        if (i == 0) {
            uint64_t inner_bytes = 0;

            memcpy(&inner_bytes, object + n - INDEX + 8, sizeof inner_bytes);
            set_entry(object, n, 0, 3);
            put(&w, object, n);
            must_fail(a, "a nested shard of 3 bytes cannot hold its index of 32");
            /* Larger than any encoder's output: without an index at its end it is
             * refused; with one it is valid, because unreferenced bytes are allowed. */
            memmove(object + sizeof object - INDEX, object + n - INDEX, INDEX);
            set_entry(object, sizeof object, 0, sizeof object - INDEX);
            put(&w, object, sizeof object);
            must_fail(a, "a/c/0/0 chunk [0,0]: chunk has 0 bytes");
            memcpy(object + sizeof object - 2 * INDEX, object + inner_bytes - INDEX,
                   INDEX);
            put(&w, object, sizeof object);
            memset(got, 0, sizeof got);
            assert_ok(pw_box(a, zero, whole, got, NULL, false));
            assert_memory_equal(got, data, sizeof data);
            set_entry(object, sizeof object, 0, sizeof object);
            put(&w, object, sizeof object);
            must_fail(a, "a/c/0/0");
        }
        zarr_array_free(a);
        pw_close(&w);
    }
}

/* Strings: only the decoder can tell the size of the shard. */
static void test_any_length(void **state)
{
    static const uint64_t shape[1] = {6};
    static const uint64_t n[1] = {6};
    const zarr_array_spec spec = {
        .struct_size = sizeof spec,
        .ndim = 1,
        .shape = shape,
        .chunk_shape = shape,
        .data_type = "string",
        .codecs = "[" BARE("[2]", "{\"name\":\"vlen-utf8\"}") "," GZIP "]"};
    zarr_vlen items[6] = {{"one", 3}, {"", 0}, {"", 0}, {"", 0}, {"five", 4}, {"6", 1}};
    zarr_vlen back[6];
    zarr_tensor t = {.struct_size = sizeof t,
                     .device_type = ZARR_DEVICE_CPU,
                     .ndim = 1,
                     .data = items,
                     .shape = n,
                     .data_bytes = sizeof items};
    zarr_io_options opts = {.struct_size = sizeof opts};
    struct pw w;
    zarr_array *a = NULL;

    (void)state;
    pw_open(&w, 2, (uint64_t)64 << 20, 0);
    assert_ok(zarr_array_create(&a, w.store, "s", &spec, NULL, &terr));
    assert_ok(zarr_array_write(a, NULL, &t, NULL, &terr));
    t.data = back;
    assert_ok(zarr_heap_create(&opts.heap, w.ctx, 0, &terr));
    assert_ok(zarr_array_read(a, NULL, &t, &opts, &terr));
    for (int i = 0; i < 6; i++) {
        assert_int_equal(back[i].bytes, items[i].bytes);
        if (items[i].bytes)
            assert_memory_equal(back[i].data, items[i].data, items[i].bytes);
    }
    assert_ok(zarr_store_put(w.store, "s/c/0", "no gzip", 7, NULL, &terr));
    assert_status(zarr_array_read(a, NULL, &t, &opts, &terr), ZARR_ERR_CORRUPT);
    assert_non_null(strstr(terr.message, "gzip"));
    zarr_heap_free(opts.heap);
    zarr_array_free(a);
    pw_close(&w);
}

/* Inner chunks of a fast store come in waves of as few as the threads need: one wave is
 * planned while another one is read. */
static void test_waves(void **state)
{
    enum {
        INNER = 32 * 32 /* chunks of one element */
    };
    static const uint64_t shape[2] = {32, 32};
    int32_t from[INNER], to[INNER] = {0};
    zarr_stats stats = ZARR_STATS_INIT;
    const zarr_io_options opts = {.struct_size = sizeof opts, .stats = &stats};
    struct pw w;
    zarr_array *a;

    (void)state;
    for (int i = 0; i < INNER; i++)
        from[i] = i + 1;
    pw_open(&w, 2, UINT64_C(64) << 20, 0);
    a = pw_array(w.store, "a", "[" BARE("[1,1]", BYTES) "]", shape, shape);
    assert_ok(pw_box(a, zero, shape, from, NULL, true));
    assert_ok(pw_box(a, zero, shape, to, &opts, false));
    assert_memory_equal(to, from, sizeof to);
    assert_int_equal(stats.chunks_done, INNER);
    assert_true(stats.waves >= 4);
    zarr_array_free(a);
    pw_close(&w);
}

/* Chunks that are stored in another order, as zarr-python's Morton order, come in larger
 * waves, so that neighbours in the shard are still read together. */
static void test_other_order(void **state)
{
    enum {
        EDGE = 64 /* chunks of one element */
    };
    static const uint64_t shape[2] = {EDGE, EDGE};
    static int32_t from[EDGE * EDGE], to[EDGE * EDGE];
    static const uint32_t orders[] = {0, ZARR_INNER_ORDER_MORTON,
                                      ZARR_INNER_ORDER_COLUMN_MAJOR};
    struct pw w;

    (void)state;
    for (int i = 0; i < EDGE * EDGE; i++)
        from[i] = i + 1;
    pw_open(&w, 2, UINT64_C(64) << 20, 0);
    for (size_t i = 0; i < ZR_COUNT(orders); i++) {
        zarr_stats stats = ZARR_STATS_INIT;
        zarr_io_options o = {.struct_size = sizeof o,
                             .tuning = TUNING(.inner_order = orders[i])};
        char path[8];
        zarr_array *a;

        snprintf(path, sizeof path, "o%zu", i);
        a = pw_array(w.store, path, "[" BARE("[1,1]", BYTES) "]", shape, shape);
        assert_ok(pw_box(a, zero, shape, from, &o, true));
        o = (zarr_io_options){.struct_size = sizeof o,
                              .stats = &stats,
                              .tuning = TUNING(.coalesce_gap = 1)};
        memset(to, 0, sizeof to);
        assert_ok(pw_box(a, zero, shape, to, &o, false));
        assert_memory_equal(to, from, sizeof to);
        /* no hole is read, but the index is */
        assert_int_equal(stats.bytes_stored, sizeof to + EDGE * EDGE * 16);
        assert_in_range(stats.store_ranges, 1, 130);
        assert_in_range(stats.waves, 1, orders[i] == 0 ? 20 : 3);
        zarr_array_free(a);
    }
    pw_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waves),      cmocka_unit_test(test_other_order),
        cmocka_unit_test(test_too_short),  cmocka_unit_test(test_nested),
        cmocka_unit_test(test_any_length),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
