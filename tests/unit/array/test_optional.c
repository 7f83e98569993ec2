/*
 * unit/array/test_optional.c - optional elements through the public functions: numbers,
 * and text of any length, whose bytes lie in a heap after a read. Covers parts of
 * chunks, shards, both pipelines, fill values, and chunks that contain only the fill
 * value.
 */
#include <stdbool.h>

#include <zarrc/vlen.h>

#include "array_test.h"

enum {
    N = 40
};

static struct world w;

static int open_world(void **state)
{
    (void)state;
    world_open(&w, WORLD_MEMORY);
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    world_close(&w);
    return 0;
}

#pragma pack(push, 1)
struct text { /* optional[string] */
    zarr_vlen item;
    uint8_t there;
};
struct texts { /* optional[optional[string]] */
    zarr_vlen item;
    uint8_t inner, outer;
};
#pragma pack(pop)

static zarr_array *make_optional_array(const char *path, const char *type,
                                       const char *fill, const char *codecs,
                                       uint64_t shard)
{
    const uint64_t shape[] = {N}, chunk[] = {4}, shards[] = {shard};
    zarr_array_spec spec = {.struct_size = sizeof spec,
                            .ndim = 1,
                            .data_type = type,
                            .shape = shape,
                            .chunk_shape = chunk,
                            .shard_shape = shard ? shards : NULL,
                            .fill_value = fill,
                            .codecs = codecs};
    zarr_array *a = NULL;

    assert_ok(zarr_array_create(&a, w.store, path, &spec, NULL, &terr));
    return a;
}

static zarr_tensor host_tensor(void *data, size_t bytes, const uint64_t *shape)
{
    return (zarr_tensor){.struct_size = sizeof(zarr_tensor),
                         .device_type = ZARR_DEVICE_CPU,
                         .ndim = 1,
                         .data = data,
                         .shape = shape,
                         .data_bytes = bytes};
}

static uint32_t noise(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

/* Writes random overlapping parts and compares with a plain copy of the array. */
static void check_texts(const char *path, const char *codecs, uint64_t shard,
                        const char *pipeline)
{
    static char letters[5000];
    zarr_array *a =
        make_optional_array(path, "optional[string]", "[\"fill\"]", codecs, shard);
    const uint64_t whole[] = {N};
    const uint64_t shape[] = {N};
    struct text want[N], got[N], part[N];
    zarr_io_options opts = {.struct_size = sizeof opts,
                            .tuning = TUNING(.pipeline = pipeline)};
    zarr_tensor t = host_tensor(got, sizeof got, whole);
    uint32_t seed = 5;

    memset(letters, 'x', sizeof letters);
    assert_ok(zarr_heap_create(&opts.heap, w.ctx, 0, &terr));
    for (int i = 0; i < N; i++)
        want[i] = (struct text){{"fill", 4}, 1};
    for (int turn = 0; turn < 60; turn++) {
        const uint64_t at[] = {noise(&seed) % N};
        const uint64_t n[] = {1 + noise(&seed) % (N - at[0])};
        const uint64_t rows[] = {(uint64_t)n[0]};
        zarr_selection *sel = NULL;
        zarr_tensor some = host_tensor(part, sizeof *part * (size_t)n[0], rows);

        for (uint64_t i = 0; i < n[0]; i++) {
            const uint32_t kind = turn == 50 ? 1 : noise(&seed) % 4;
            const uint32_t bytes = kind == 2 ? noise(&seed) % 4000 : noise(&seed) % 9;

            part[i] = (struct text){{letters, bytes}, 1};
            if (kind == 0)
                part[i] = (struct text){{NULL, 0}, 0};
            if (kind == 1)
                part[i] = (struct text){{"fill", 4}, 1};
            want[at[0] + i] = part[i];
        }
        assert_ok(zarr_selection_box(&sel, 1, shape, at, n, &terr));
        assert_ok(zarr_array_write(a, sel, &some, &opts, &terr));
        zarr_selection_free(sel);
        zarr_heap_clear(opts.heap);
        memset(got, 0xEE, sizeof got);
        assert_ok(zarr_array_read(a, NULL, &t, &opts, &terr));
        for (int i = 0; i < N; i++) {
            assert_int_equal(got[i].there, want[i].there);
            assert_int_equal(got[i].item.bytes, want[i].item.bytes);
            if (!got[i].there)
                assert_null(got[i].item.data);
            if (want[i].item.bytes)
                assert_memory_equal(got[i].item.data, want[i].item.data,
                                    (size_t)want[i].item.bytes);
        }
    }
    zarr_heap_free(opts.heap);
    zarr_array_free(a);
}

#define DATA(codecs)                                                                     \
    "[{\"name\":\"optional\",\"configuration\":{\"mask_codecs\":[\"packbits\","          \
    "{\"name\":\"gzip\",\"configuration\":{\"level\":1}}],\"data_codecs\":[" codecs      \
    "]}}]"
#define INDEXED                                                                          \
    "{\"name\":\"zarrs.vlen\",\"configuration\":{\"index_data_type\":\"uint32\","        \
    "\"index_codecs\":[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}},"     \
    "\"zstd\"],\"data_codecs\":[\"bytes\",\"zstd\"]}},\"zstd\""

/* Does not move elements, but is a stage. */
#define TURNED "{\"name\":\"transpose\",\"configuration\":{\"order\":[0]}},"

static void test_text(void **state)
{
    (void)state;
    check_texts("a", NULL, 0, "waves");
    check_texts("b", NULL, 8, "serial");
    check_texts("c", DATA("\"vlen-utf8\",\"zstd\""), 0, "serial");
    check_texts("d", DATA("\"vlen-utf8\",\"zstd\",\"crc32c\""), 20, "waves");
    check_texts("e", DATA(INDEXED), 0, "waves");
    check_texts("f", DATA(INDEXED), 20, "serial");
    check_texts("g", DATA(TURNED "\"vlen-utf8\""), 0, "waves");
    check_texts("h", DATA(TURNED TURNED TURNED "\"vlen-utf8\",\"zstd\""), 20, "serial");
}

static void test_nested_text(void **state)
{
    zarr_array *a =
        make_optional_array("n", "optional[optional[string]]", "[null]", NULL, 0);
    const uint64_t whole[] = {N};
    struct texts items[N], got[N];
    zarr_io_options opts = {.struct_size = sizeof opts};
    zarr_tensor t = host_tensor(items, sizeof items, whole);
    zarr_vlen_column column = ZARR_VLEN_COLUMN_INIT;

    (void)state;
    assert_ok(zarr_heap_create(&opts.heap, w.ctx, 0, &terr));
    t.data = got;
    assert_ok(zarr_array_read(a, NULL, &t, &opts, &terr));
    for (int i = 0; i < N; i++)
        assert_true(got[i].outer == 1 && got[i].inner == 0 && !got[i].item.bytes);
    for (int i = 0; i < N; i++) {
        items[i] = (struct texts){{"abcdefghi", (uint64_t)(i % 9)}, 1, 1};
        if (i % 3 == 1)
            items[i] = (struct texts){{NULL, 0}, 0, 1};
        if (i % 3 == 2)
            items[i] = (struct texts){{NULL, 0}, 0, 0};
    }
    t.data = items;
    assert_ok(zarr_array_write(a, NULL, &t, &opts, &terr));
    t.data = got;
    assert_ok(zarr_array_read(a, NULL, &t, &opts, &terr));
    for (int i = 0; i < N; i++) {
        assert_int_equal(got[i].outer, items[i].outer);
        assert_int_equal(got[i].inner, items[i].inner);
        assert_int_equal(got[i].item.bytes, items[i].item.bytes);
        assert_memory_equal(got[i].item.bytes ? got[i].item.data : "", "abcdefghi",
                            (size_t)got[i].item.bytes);
    }
    assert_status(zarr_array_read_vlen(a, NULL, &column, NULL, &terr), ZARR_ERR_INVALID);
    assert_says("may be missing");
    zarr_heap_free(opts.heap);
    zarr_array_free(a);
}

static void test_numbers(void **state)
{
    zarr_array *a = make_optional_array("i", "optional[int32]", "null", NULL, 8);
    const uint64_t whole[] = {N};
    uint8_t items[N][5] = {{0}}, got[N][5];
    zarr_tensor t = host_tensor(items, sizeof items, whole);
    const zarr_dtype *type = zarr_array_dtype(a);

    (void)state;
    assert_int_equal(zarr_dtype_kind(type), ZARR_KIND_OPTIONAL);
    assert_int_equal(zarr_dtype_kind(zarr_dtype_underlying(type)), ZARR_KIND_INT);
    assert_null(zarr_dtype_underlying(zarr_dtype_underlying(type)));
    assert_int_equal(zarr_dtype_item_bytes(type), 5);
    assert_ok(zarr_array_write(a, NULL, &t, NULL, &terr));
    /* All missing, because the fill value is missing. */
    assert_int_equal(n_keys(&w, "i/c"), 0);
    for (int i = 0; i < N; i += 3) {
        const int32_t v = -i;

        memcpy(items[i], &v, 4);
        items[i][4] = 1;
    }
    assert_ok(zarr_array_write(a, NULL, &t, NULL, &terr));
    t.data = got;
    assert_ok(zarr_array_read(a, NULL, &t, NULL, &terr));
    assert_memory_equal(got, items, sizeof items);
    zarr_array_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_text, open_world, close_world),
        cmocka_unit_test_setup_teardown(test_nested_text, open_world, close_world),
        cmocka_unit_test_setup_teardown(test_numbers, open_world, close_world),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
