/*
 * unit/easy/test_box.c - boxes of elements: parts, shapes of all kinds, byte orders,
 * fields, appended rows, and arguments that are refused before any memory is touched.
 */
#include "easy_test.h"

static void test_parts(void **state)
{
    const uint64_t shape[2] = {4, 6}, start[2] = {1, 2}, count[2] = {2, 3};
    const uint64_t none[2] = {2, 0}, beyond[2] = {2, 5};
    int32_t all[4][6], part[2][3], rest[3][4];
    struct world w;
    zarr_array *a;

    (void)state;
    world_open(&w, WORLD_LOCAL);
    a = make_easy(&w, "a", ZARR_INT32, 2, shape);
    for (int i = 0; i < 24; i++)
        all[i / 6][i % 6] = i;
    assert_int_equal(zarr_array_n_items(a), 24);
    assert_ok(zarr_array_write_box(a, NULL, NULL, ZARR_INT32, all, sizeof all, &terr));
    assert_ok(zarr_array_read_box(a, start, count, ZARR_INT32, part, sizeof part, &terr));
    assert_int_equal(part[1][2], 16);
    assert_ok(zarr_array_read_box(a, start, NULL, ZARR_INT32, rest, sizeof rest, &terr));
    assert_int_equal(rest[2][3], 23); /* to the end */
    part[0][0] = -1;
    assert_ok(zarr_array_write_box(a, NULL, count, ZARR_INT32, part, sizeof part, &terr));
    assert_ok(zarr_array_read_box(a, NULL, NULL, NULL, all, sizeof all, &terr));
    assert_true(all[0][0] == -1 && all[0][3] == 3);
    assert_ok(zarr_array_read_box(a, start, none, ZARR_INT32, NULL, 0, &terr));
    assert_ok(zarr_array_write_box(a, start, none, ZARR_INT16, NULL, 0, &terr));
    assert_status(
        zarr_array_read_box(a, start, beyond, ZARR_INT32, all, sizeof all, &terr),
        ZARR_ERR_INVALID);
    assert_says("a:");
    assert_status(
        zarr_array_read_box(a, (uint64_t[]){0, UINT64_MAX}, NULL, NULL, all, 96, &terr),
        ZARR_ERR_INVALID);
    assert_status(
        zarr_array_read_box(a, (uint64_t[]){0, UINT64_MAX}, count, NULL, all, 96, &terr),
        ZARR_ERR_INVALID);
    zarr_array_free(a);
    world_close(&w);
}

static void test_refused(void **state)
{
    const uint64_t shape[1] = {10};
    float data[10] = {0};
    struct world w;
    zarr_array *a;

    (void)state;
    world_open(&w, WORLD_LOCAL);
    a = make_easy(&w, "a", ZARR_INT32, 1, shape);
    assert_status(
        zarr_array_read_box(a, NULL, NULL, ZARR_FLOAT32, data, sizeof data, &terr),
        ZARR_ERR_INVALID);
    assert_says("a: int32 is not converted to float32");
    assert_status(
        zarr_array_write_box(a, NULL, NULL, ZARR_FLOAT32, data, sizeof data, &terr),
        ZARR_ERR_INVALID);
    assert_says("a: float32 is not converted to int32");
    assert_status(zarr_array_read_box(a, NULL, NULL, ZARR_INT32, data, 39, &terr),
                  ZARR_ERR_INVALID);
    assert_says("a: 10 elements of int32 need 40 bytes, data_bytes is 39");
    assert_status(zarr_array_read_box(a, NULL, NULL, ZARR_FLOAT64, data, 40, &terr),
                  ZARR_ERR_INVALID);
    assert_says("need 80 bytes");
    assert_status(zarr_array_write_box(a, NULL, NULL, ZARR_INT32, data, 39, &terr),
                  ZARR_ERR_INVALID);
    assert_status(zarr_array_append_rows(a, 10, ZARR_INT16, data, 19, &terr),
                  ZARR_ERR_INVALID);
    assert_status(zarr_array_read_box(a, NULL, NULL, ZARR_INT32, NULL, 40, &terr),
                  ZARR_ERR_INVALID);
    assert_says("a: data is NULL");
    assert_status(zarr_array_read_box(a, NULL, NULL, "int33", data, 40, &terr),
                  ZARR_ERR_UNSUPPORTED);
    assert_status(zarr_array_read_box(NULL, NULL, NULL, ZARR_INT32, data, 40, &terr),
                  ZARR_ERR_INVALID);
    assert_status(zarr_array_write_box(NULL, NULL, NULL, ZARR_INT32, data, 40, NULL),
                  ZARR_ERR_INVALID);
    assert_status(zarr_array_append_rows(NULL, 1, ZARR_INT32, data, 40, NULL),
                  ZARR_ERR_INVALID);
    assert_status(zarr_array_check_ndim(NULL, 1, NULL), ZARR_ERR_INVALID);
    assert_status(zarr_array_check_ndim(a, 2, &terr), ZARR_ERR_INVALID);
    assert_says("a: the array has 1 dimensions, the program expects 2");
    assert_ok(zarr_array_check_ndim(a, 1, &terr));
    assert_int_equal(zarr_array_n_items(NULL), 0);
    zarr_array_free(a);
    world_close(&w);
}

static void test_scalar(void **state)
{
    const int8_t in = -7;
    double out = 0;
    struct world w;
    zarr_array *a;

    (void)state;
    world_open(&w, WORLD_LOCAL);
    a = make_easy(&w, "a", ZARR_INT16, 0, NULL);
    assert_int_equal(zarr_array_n_items(a), 1);
    assert_ok(zarr_array_write_box(a, NULL, NULL, ZARR_INT8, &in, sizeof in, &terr));
    assert_ok(zarr_array_read_box(a, NULL, NULL, ZARR_FLOAT64, &out, sizeof out, &terr));
    assert_true(out == -7);
    assert_status(zarr_array_append_rows(a, 1, ZARR_INT8, &in, 1, &terr),
                  ZARR_ERR_INVALID);
    zarr_array_free(a);
    world_close(&w);
}

/* A stored shape whose bytes do not fit in 64 bits. */
static void test_hostile_shape(void **state)
{
    const uint64_t shape[3] = {UINT64_C(1) << 40, UINT64_C(1) << 40, 16};
    const uint64_t one[3] = {1, 1, 1}, empty[3] = {UINT64_C(1) << 40, 0, 16};
    zarr_array_spec spec = {.struct_size = sizeof spec,
                            .ndim = 3,
                            .shape = shape,
                            .chunk_shape = one,
                            .data_type = ZARR_INT16};
    double data[4] = {1, 2, 3, 4};
    struct world w;
    zarr_array *a = NULL;

    (void)state;
    world_open(&w, WORLD_LOCAL);
    assert_ok(zarr_create_array_with(&a, w.ctx, place(&w, "a"), &spec, NULL, &terr));
    assert_true(zarr_array_n_items(a) == UINT64_MAX);
    assert_status(
        zarr_array_read_box(a, NULL, NULL, ZARR_FLOAT64, data, sizeof data, &terr),
        ZARR_ERR_INVALID);
    assert_status(zarr_array_read_box(a, NULL, NULL, NULL, data, UINT64_MAX, &terr),
                  ZARR_ERR_INVALID);
    assert_status(zarr_array_append_rows(a, 1, NULL, data, sizeof data, &terr),
                  ZARR_ERR_INVALID);
    assert_status(
        zarr_array_append_rows(a, UINT64_C(1) << 60, NULL, data, UINT64_MAX, &terr),
        ZARR_ERR_INVALID);
    assert_ok(zarr_array_read_box(a, NULL, empty, ZARR_FLOAT64, data, 0, &terr));
    assert_true(data[0] == 1 && data[3] == 4);
    assert_ok(zarr_array_read_box(a, one, one, ZARR_FLOAT64, data, 8, &terr));
    assert_true(data[0] == 0);
    zarr_array_free(a);
    world_close(&w);
}

static void test_sharded(void **state)
{
    const uint64_t shape[2] = {100, 70}, chunk[2] = {10, 10}, shard[2] = {50, 20};
    zarr_array_spec spec = {.struct_size = sizeof spec,
                            .ndim = 2,
                            .shape = shape,
                            .chunk_shape = chunk,
                            .shard_shape = shard,
                            .data_type = ZARR_UINT16};
    static uint8_t in[100][70];
    static float out[100][70];
    struct world w;
    zarr_array *a = NULL;

    (void)state;
    world_open(&w, WORLD_LOCAL);
    assert_ok(zarr_create_array_with(&a, w.ctx, place(&w, "a"), &spec, NULL, &terr));
    for (int i = 0; i < 7000; i++)
        in[i / 70][i % 70] = (uint8_t)(i * 7);
    assert_ok(zarr_array_write_box(a, NULL, NULL, ZARR_UINT8, in, sizeof in, &terr));
    assert_ok(zarr_array_read_box(a, NULL, NULL, ZARR_FLOAT32, out, sizeof out, &terr));
    for (int i = 0; i < 7000; i++)
        assert_true((&out[0][0])[i] == (&in[0][0])[i]);
    zarr_array_free(a);
    world_close(&w);
}

/* Stored and in memory, in both orders, with and without a conversion. */
static void test_byte_order(void **state)
{
    static const char *const stored[] = {"<i2", ">i2"};
    const uint64_t shape[1] = {2};
    const uint8_t in[4] = {0x01, 0x02, 0xff, 0xfe}; /* 258 and -2, big-endian */
    uint8_t out[8];
    struct world w;

    (void)state;
    world_open(&w, WORLD_LOCAL);
    for (int i = 0; i < 2; i++) {
        char name[2] = {(char)('a' + i)};
        zarr_array *a = make_easy(&w, name, stored[i], 1, shape);

        assert_ok(zarr_array_write_box(a, NULL, NULL, ">i2", in, sizeof in, &terr));
        assert_ok(zarr_array_read_box(a, NULL, NULL, "<i2", out, 4, &terr));
        assert_memory_equal(out, ((uint8_t[]){2, 1, 0xfe, 0xff}), 4);
        assert_ok(zarr_array_read_box(a, NULL, NULL, ">i4", out, 8, &terr));
        assert_memory_equal(out, ((uint8_t[]){0, 0, 1, 2, 0xff, 0xff, 0xff, 0xfe}), 8);
        assert_ok(zarr_array_read_box(a, NULL, NULL, "<f4", out, 8, &terr));
        assert_memory_equal(out, ((uint8_t[]){0, 0, 0x81, 0x43, 0, 0, 0, 0xc0}), 8);
        zarr_array_free(a);
        a = make_easy(&w, i ? "wide1" : "wide0", i ? ">i4" : "<i4", 1, shape);
        assert_ok(zarr_array_write_box(a, NULL, NULL, ">i2", in, sizeof in, &terr));
        assert_ok(zarr_array_read_box(a, NULL, NULL, ">i4", out, 8, &terr));
        assert_memory_equal(out, ((uint8_t[]){0, 0, 1, 2, 0xff, 0xff, 0xff, 0xfe}), 8);
        zarr_array_free(a);
    }
    world_close(&w);
}

static void test_half(void **state)
{
    const uint16_t in[4] = {0x3c00, 0xc000, 0x0001, 0x7c00}; /* 1, -2, 2^-24, inf */
    const uint64_t shape[1] = {4};
    float out[4] = {0};
    struct world w;
    zarr_array *a;

    (void)state;
    world_open(&w, WORLD_LOCAL);
    a = make_easy(&w, "a", ZARR_FLOAT16, 1, shape);
    assert_ok(zarr_array_write_box(a, NULL, NULL, ZARR_FLOAT16, in, sizeof in, &terr));
    assert_ok(zarr_array_read_box(a, NULL, NULL, ZARR_FLOAT32, out, sizeof out, &terr));
    assert_true(out[0] == 1 && out[1] == -2 && out[2] == 1.0f / 16777216 &&
                out[3] > 1e38f);
    assert_status(zarr_array_write_box(a, NULL, NULL, ZARR_FLOAT32, out, 16, &terr),
                  ZARR_ERR_INVALID);
    zarr_array_free(a);
    world_close(&w);
}

static void test_field(void **state)
{
    const uint64_t shape[1] = {2};
    const zarr_io_options opts = {.struct_size = sizeof opts, .field = "v"};
    const zarr_io_options wrong = {.struct_size = sizeof wrong, .field = "w"};
    const zarr_array_spec spec = {.struct_size = sizeof spec,
                                  .zarr_format = 2,
                                  .ndim = 1,
                                  .shape = shape,
                                  .data_type = "[[\"t\",\"<f8\"],[\"v\",\"<i2\",[3]]]"};
    const int16_t in[6] = {1, 2, 3, -4, -5, -6};
    float out[6] = {0};
    struct world w;
    zarr_array *a;

    (void)state;
    world_open(&w, WORLD_LOCAL);
    assert_ok(zarr_create_array_with(&a, w.ctx, place(&w, "a"), &spec, NULL, &terr));
    assert_ok(zarr_array_write_box_with(a, NULL, NULL, ZARR_INT16, in, sizeof in, &opts,
                                        &terr));
    assert_ok(zarr_array_read_box_with(a, NULL, NULL, ZARR_FLOAT32, out, sizeof out,
                                       &opts, &terr));
    for (int i = 0; i < 6; i++)
        assert_true(out[i] == in[i]);
    assert_status(
        zarr_array_read_box_with(a, NULL, NULL, NULL, out, sizeof in - 1, &opts, &terr),
        ZARR_ERR_INVALID);
    assert_says("6 elements of int16 need 12 bytes, data_bytes is 11");
    assert_status(
        zarr_array_read_box_with(a, NULL, NULL, NULL, out, sizeof out, &wrong, &terr),
        ZARR_ERR_NOT_FOUND);
    zarr_array_free(a);
    world_close(&w);
}

static void test_append(void **state)
{
    const uint64_t shape[2] = {0, 3};
    const int16_t rows[2][3] = {{1, 2, 3}, {4, 5, 6}};
    double all[4][3];
    uint64_t first = 99;
    struct world w;
    zarr_array *a;

    (void)state;
    world_open(&w, WORLD_LOCAL);
    a = make_easy(&w, "a", ZARR_FLOAT64, 2, shape);
    assert_ok(zarr_array_append_rows(a, 2, ZARR_INT16, rows, sizeof rows, &terr));
    assert_ok(zarr_array_append_rows_with(a, 1, ZARR_INT16, rows, sizeof rows, &first,
                                          NULL, &terr));
    assert_int_equal(first, 2);
    assert_ok(zarr_array_append_rows(a, 0, ZARR_INT16, NULL, 0, &terr));
    assert_int_equal(zarr_array_shape(a)[0], 3);
    assert_ok(zarr_array_read_box(a, NULL, NULL, NULL, all, sizeof all, &terr));
    assert_true(all[1][2] == 6 && all[2][0] == 1);
    zarr_array_free(a);
    world_close(&w);
}

/* Each allocation of a conversion fails once: no leak. */
static void test_no_memory(void **state)
{
    const uint64_t shape[1] = {5};
    const int8_t in[5] = {1, 2, 3, 4, 5};
    double out[5];
    zarr_status st = ZARR_ERR_NO_MEMORY;
    struct world w;
    zarr_array *a;

    (void)state;
    world_open(&w, WORLD_LOCAL);
    a = make_easy(&w, "a", ZARR_INT16, 1, shape);
    for (int k = 1; st != ZARR_OK; k++) {
        atomic_store(&w.fail_at, k);
        st = zarr_array_write_box(a, NULL, shape, ZARR_INT8, in, sizeof in, &terr);
        if (st == ZARR_OK)
            st =
                zarr_array_read_box(a, NULL, shape, ZARR_FLOAT64, out, sizeof out, &terr);
        atomic_store(&w.fail_at, 0);
        if (st != ZARR_OK)
            assert_int_equal(st, ZARR_ERR_NO_MEMORY);
    }
    assert_true(out[4] == 5);
    zarr_array_free(a);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),   cmocka_unit_test(test_refused),
        cmocka_unit_test(test_scalar),  cmocka_unit_test(test_hostile_shape),
        cmocka_unit_test(test_sharded), cmocka_unit_test(test_byte_order),
        cmocka_unit_test(test_half),    cmocka_unit_test(test_field),
        cmocka_unit_test(test_append),  cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests_name("easy_box", tests, NULL, NULL);
}
