/*
 * unit/easy/test_attributes.c - attributes as C types: what comes back, what is refused,
 * and that nothing leaks.
 */
#include "easy_test.h"

#include <math.h>

static void test_numbers(void **state)
{
    static const double doubles[] = {0.1, -0.0, 5, 1e300, 5e-324, -2.5};
    static const int64_t wholes[] = {INT64_MIN, -1, 0, INT64_MAX};
    double d[6] = {0};
    int64_t i[4] = {0};
    uint64_t n = 0;
    struct world w;
    zarr_array *a;

    (void)state;
    world_open(&w, WORLD_LOCAL);
    a = make_easy(&w, "a", ZARR_INT8, 0, NULL);
    assert_ok(zarr_array_attribute_set_doubles(a, "d", doubles, 6, &terr));
    assert_ok(zarr_array_attribute_get_doubles(a, "d", d, 6, &n, &terr));
    assert_int_equal(n, 6);
    assert_memory_equal(d, doubles, sizeof d);
    assert_ok(zarr_array_attribute_set_int64s(a, "i", wholes, 4, &terr));
    assert_ok(zarr_array_attribute_get_int64s(a, "i", i, 4, NULL, &terr));
    assert_memory_equal(i, wholes, sizeof i);
    assert_ok(zarr_array_attribute_set_double(a, "one", 5, &terr));
    assert_non_null(
        strstr(zarr_array_attributes(a), "5.0")); /* stays a float in Python */
    assert_ok(zarr_array_attribute_get_double(a, "one", d, &terr));
    assert_true(d[0] == 5);
    assert_ok(zarr_array_attribute_get_int64(a, "one", i, &terr)); /* 5.0 is whole */
    assert_int_equal(i[0], 5);
    assert_ok(zarr_array_attribute_set_int64(a, "two", -7, &terr));
    assert_ok(zarr_array_attribute_get_double(a, "two", d, &terr));
    assert_true(d[0] == -7);
    assert_ok(zarr_array_attribute_set_doubles(a, "none", NULL, 0, &terr));
    assert_ok(zarr_array_attribute_get_int64s(a, "none", NULL, 0, &n, &terr));
    assert_int_equal(n, 0);
    zarr_array_free(a);
    world_close(&w);
}

static void test_no_number_of_json(void **state)
{
    const double in[3] = {NAN, INFINITY, -INFINITY};
    double out[3] = {0};
    int64_t i = 0;
    struct world w;
    zarr_array *a;

    (void)state;
    world_open(&w, WORLD_LOCAL);
    a = make_easy(&w, "a", ZARR_INT8, 0, NULL);
    assert_ok(zarr_array_attribute_set_doubles(a, "x", in, 3, &terr));
    assert_ok(zarr_array_attribute_get_doubles(a, "x", out, 3, NULL, &terr));
    assert_true(isnan(out[0]) && out[1] == in[1] && out[2] == in[2]);
    assert_ok(zarr_array_attribute_set_double(a, "y", (double)NAN, &terr));
    assert_ok(zarr_array_attribute_get_double(a, "y", out, &terr));
    assert_true(isnan(out[0]));
    assert_status(zarr_array_attribute_get_int64(a, "y", &i, &terr), ZARR_ERR_INVALID);
    zarr_array_free(a);
    world_close(&w);
}

/* JSON that other programs write, and whether it is exact as a double and as an int64. */
static void test_exact(void **state)
{
    static const struct {
        const char *json;
        int is_double, is_int64;
    } row[] = {
        {"3", 1, 1},
        {"3.0", 1, 1},
        {"3.5", 1, 0},
        {"1e3", 1, 1},
        {"-0.0", 1, 1},
        {"9007199254740992", 1, 1},
        {"9007199254740993", 0, 1},
        {"9223372036854775807", 0, 1},
        {"-9223372036854775808", 1, 1},
        {"9223372036854775808", 1, 0},
        {"18446744073709551615", 0, 0},
        {"18446744073709549568", 1, 0},
        {"9007199254740993.0", 1, 1}, /* a decimal fraction means the nearest double */
        {"9007199254740994.0", 1, 0},
        {"1e400", 0, 0},
        {"[3]", 1, 1},
        {"[3,4]", 0, 0},
        {"[]", 0, 0},
        {"[[3]]", 0, 0},
        {"true", 0, 0},
        {"null", 0, 0},
        {"\"3\"", 0, 0},
        {"{}", 0, 0},
    };
    double d = 0;
    int64_t i = 0;
    struct world w;
    zarr_array *a;

    (void)state;
    world_open(&w, WORLD_LOCAL);
    a = make_easy(&w, "a", ZARR_INT8, 0, NULL);
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        assert_ok(zarr_array_attribute_set(a, "x", row[k].json, NULL, &terr));
        if ((zarr_array_attribute_get_double(a, "x", &d, &terr) == ZARR_OK) !=
                row[k].is_double ||
            (zarr_array_attribute_get_int64(a, "x", &i, &terr) == ZARR_OK) !=
                row[k].is_int64)
            fail_msg("%s: %s", row[k].json, terr.message);
    }
    assert_status(zarr_array_attribute_get_double(a, "x", &d, &terr), ZARR_ERR_INVALID);
    assert_says("a: attribute \"x\": {} is not exact as a double");
    zarr_array_free(a);
    world_close(&w);
}

static void test_texts(void **state)
{
    static const char *const in[3] = {"Basel", "", "Z\xc3\xbcrich \"1\"\n"};
    char text[6] = "?????";
    size_t bytes = 0;
    zarr_texts *out = NULL;
    struct world w;
    zarr_array *a;

    (void)state;
    world_open(&w, WORLD_LOCAL);
    a = make_easy(&w, "a", ZARR_INT8, 0, NULL);
    assert_ok(zarr_array_attribute_set_texts(a, "x", in, 3, &terr));
    assert_ok(zarr_array_attribute_get_texts(&out, a, "x", &terr));
    assert_int_equal(out->n, 3);
    for (int i = 0; i < 3; i++)
        assert_string_equal(out->text[i], in[i]);
    assert_ok(
        zarr_array_attribute_set_text(a, "x", "other", &terr)); /* `out` is a copy */
    zarr_array_free(a);
    assert_string_equal(out->text[0], "Basel");
    zarr_texts_free(out);
    zarr_texts_free(NULL);
    assert_ok(zarr_open_array(&a, w.ctx, place(&w, "a"), "r+", &terr));
    assert_ok(zarr_array_attribute_get_texts(&out, a, "x", &terr));
    assert_int_equal(out->n, 1);
    assert_string_equal(out->text[0], "other");
    zarr_texts_free(out);
    assert_ok(zarr_array_attribute_get_text(a, "x", text, sizeof text, &bytes, &terr));
    assert_string_equal(text, "other");
    assert_int_equal(bytes, 5);
    assert_ok(zarr_array_attribute_set_text(a, "x", "longer", &terr));
    assert_status(zarr_array_attribute_get_text(a, "x", text, sizeof text, &bytes, &terr),
                  ZARR_ERR_LIMIT);
    assert_says("a: attribute \"x\" has 6 bytes and a NUL, there is room for 6");
    assert_int_equal(bytes, 6);
    assert_string_equal(text, "other"); /* as it was */
    assert_ok(zarr_array_attribute_get_text(a, "x", NULL, 0, &bytes, &terr));
    zarr_array_free(a);
    world_close(&w);
}

static void test_refused(void **state)
{
    static const char *const bad[2] = {"a", NULL};
    int64_t i[2] = {-1, -1};
    uint64_t n = 0;
    char text[8];
    zarr_texts *out = NULL;
    struct world w;
    zarr_array *a;

    (void)state;
    world_open(&w, WORLD_LOCAL);
    a = make_easy(&w, "a", ZARR_INT8, 0, NULL);
    assert_status(zarr_array_attribute_get_int64(a, "x", i, &terr), ZARR_ERR_NOT_FOUND);
    assert_says("\"x\"");
    assert_status(zarr_array_attribute_get_int64(a, NULL, i, &terr), ZARR_ERR_INVALID);
    assert_status(zarr_array_attribute_get_int64(NULL, "x", i, &terr), ZARR_ERR_INVALID);
    assert_status(zarr_array_attribute_set_text(a, "x", NULL, &terr), ZARR_ERR_INVALID);
    assert_status(zarr_array_attribute_set_texts(a, "x", bad, 2, &terr),
                  ZARR_ERR_INVALID);
    assert_status(zarr_array_attribute_set_int64s(a, "x", NULL, 2, &terr),
                  ZARR_ERR_INVALID);
    assert_status(zarr_array_attribute_set_text(a, "x", "\xff", &terr), ZARR_ERR_INVALID);
    assert_status(zarr_group_attribute_set_text(NULL, "x", "y", &terr), ZARR_ERR_INVALID);
    assert_status(zarr_group_attribute_get_texts(&out, NULL, "x", NULL),
                  ZARR_ERR_INVALID);
    assert_ok(zarr_array_attribute_set(a, "x", "[1,2,3]", NULL, &terr));
    assert_status(zarr_array_attribute_get_int64s(a, "x", i, 2, &n, &terr),
                  ZARR_ERR_LIMIT);
    assert_says("has 3 numbers, there is room for 2");
    assert_int_equal(n, 3);
    assert_int_equal(i[0], -1); /* as it was */
    assert_status(zarr_array_attribute_get_text(a, "x", text, sizeof text, NULL, &terr),
                  ZARR_ERR_INVALID);
    assert_ok(zarr_array_attribute_set(a, "x", "[\"a\\u0000b\"]", NULL, &terr));
    assert_status(zarr_array_attribute_get_texts(&out, a, "x", &terr), ZARR_ERR_INVALID);
    assert_null(out);
    assert_status(zarr_array_attribute_get_text(a, "x", text, sizeof text, NULL, &terr),
                  ZARR_ERR_INVALID);
    zarr_array_free(a);
    assert_ok(zarr_open_array(&a, w.ctx, place(&w, "a"), "r", &terr));
    assert_status(zarr_array_attribute_set_int64(a, "x", 1, &terr), ZARR_ERR_INVALID);
    zarr_array_free(a);
    world_close(&w);
}

static void test_group(void **state)
{
    const double d[2] = {1.5, 2};
    const int64_t i[2] = {3, 4};
    const char *const t[2] = {"a", "b"};
    double d2[2] = {0};
    int64_t i2[2] = {0};
    char text[4];
    uint64_t n = 0;
    size_t bytes = 0;
    zarr_texts *t2 = NULL;
    zarr_group *g = NULL;
    struct world w;

    (void)state;
    world_open(&w, WORLD_LOCAL);
    assert_ok(zarr_create_group(&g, w.ctx, place(&w, "g"), "w-", &terr));
    assert_ok(zarr_group_attribute_set_double(g, "d", 1.5, &terr));
    assert_ok(zarr_group_attribute_set_int64(g, "i", 3, &terr));
    assert_ok(zarr_group_attribute_set_text(g, "t", "a", &terr));
    assert_ok(zarr_group_attribute_set_doubles(g, "ds", d, 2, &terr));
    assert_ok(zarr_group_attribute_set_int64s(g, "is", i, 2, &terr));
    assert_ok(zarr_group_attribute_set_texts(g, "ts", t, 2, &terr));
    zarr_group_free(g);
    assert_ok(zarr_open_group(&g, w.ctx, place(&w, "g"), "r", &terr));
    assert_ok(zarr_group_attribute_get_double(g, "d", d2, &terr));
    assert_ok(zarr_group_attribute_get_int64(g, "i", i2, &terr));
    assert_ok(zarr_group_attribute_get_text(g, "t", text, sizeof text, &bytes, &terr));
    assert_true(d2[0] == 1.5 && i2[0] == 3 && bytes == 1);
    assert_string_equal(text, "a");
    assert_ok(zarr_group_attribute_get_doubles(g, "ds", d2, 2, &n, &terr));
    assert_memory_equal(d2, d, sizeof d);
    assert_ok(zarr_group_attribute_get_int64s(g, "is", i2, 2, &n, &terr));
    assert_memory_equal(i2, i, sizeof i);
    assert_ok(zarr_group_attribute_get_texts(&t2, g, "ts", &terr));
    assert_string_equal(t2->text[1], "b");
    zarr_texts_free(t2);
    zarr_group_free(g);
    world_close(&w);
}

/* Each allocation fails once: no leak, and NO_MEMORY or a success. */
static void test_no_memory(void **state)
{
    static const char *const t[2] = {"a", "b"};
    zarr_texts *out = NULL;
    zarr_status st = ZARR_ERR_NO_MEMORY;
    struct world w;
    zarr_array *a;

    (void)state;
    world_open(&w, WORLD_LOCAL);
    a = make_easy(&w, "a", ZARR_INT8, 0, NULL);
    for (int k = 1; st != ZARR_OK; k++) {
        atomic_store(&w.fail_at, k);
        st = zarr_array_attribute_set_texts(a, "x", t, 2, &terr);
        if (st == ZARR_OK)
            st = zarr_array_attribute_get_texts(&out, a, "x", &terr);
        atomic_store(&w.fail_at, 0);
        if (st != ZARR_OK)
            assert_int_equal(st, ZARR_ERR_NO_MEMORY);
    }
    zarr_texts_free(out);
    zarr_array_free(a);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),   cmocka_unit_test(test_no_number_of_json),
        cmocka_unit_test(test_exact),     cmocka_unit_test(test_texts),
        cmocka_unit_test(test_refused),   cmocka_unit_test(test_group),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests_name("easy_attributes", tests, NULL, NULL);
}
