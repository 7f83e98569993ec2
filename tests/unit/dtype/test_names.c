/* unit/dtype/test_names.c - types by each of their names, and their properties. */
#include "dtype_test.h"

#include <stdio.h>
#include <string.h>

#include "unit/json/fail_alloc.h"

static const struct zr_order little_order = {ZARR_ORDER_LITTLE, NULL};
static const struct zr_order big_order = {ZARR_ORDER_BIG, NULL};

static const struct {
    const char *find, *name, *v2;
    uint32_t kind;
    uint64_t bytes;
    uint32_t swap;
    int dlpack; /* code * 1000 + bits, or -1 */
} known[] = {
    {"bool", "bool", "|b1", ZARR_KIND_BOOL, 1, 1, 6008},
    {"int8", "int8", "|i1", ZARR_KIND_INT, 1, 1, 8},
    {"int16", "int16", "<i2", ZARR_KIND_INT, 2, 2, 16},
    {"int32", "int32", "<i4", ZARR_KIND_INT, 4, 4, 32},
    {"int64", "int64", "<i8", ZARR_KIND_INT, 8, 8, 64},
    {"uint8", "uint8", "|u1", ZARR_KIND_UINT, 1, 1, 1008},
    {"uint16", "uint16", "<u2", ZARR_KIND_UINT, 2, 2, 1016},
    {"uint32", "uint32", "<u4", ZARR_KIND_UINT, 4, 4, 1032},
    {"uint64", "uint64", "<u8", ZARR_KIND_UINT, 8, 8, 1064},
    {"float16", "float16", "<f2", ZARR_KIND_FLOAT, 2, 2, 2016},
    {"float32", "float32", "<f4", ZARR_KIND_FLOAT, 4, 4, 2032},
    {"float64", "float64", "<f8", ZARR_KIND_FLOAT, 8, 8, 2064},
    {"complex64", "complex64", "<c8", ZARR_KIND_COMPLEX, 8, 4, 5064},
    {"complex128", "complex128", "<c16", ZARR_KIND_COMPLEX, 16, 8, 5128},
    {"r24", "r24", "|V3", ZARR_KIND_RAW, 3, 1, -1},
    {"raw_bytes[3]", "raw_bytes[3]", "|V3", ZARR_KIND_RAW, 3, 1, -1},
    {"{\"name\":\"raw_bytes\",\"configuration\":{\"length_bytes\":3}}", "raw_bytes[3]",
     "|V3", ZARR_KIND_RAW, 3, 1, -1},
    {"null_terminated_bytes[5]", "null_terminated_bytes[5]", "|S5", ZARR_KIND_BYTES, 5, 1,
     -1},
    {"fixed_length_utf32[20]", "fixed_length_utf32[20]", "<U5", ZARR_KIND_UTF32, 20, 4,
     -1},
    {"numpy.datetime64[10us]", "numpy.datetime64[10us]", "<M8[10us]", ZARR_KIND_DATETIME,
     8, 8, -1},
    {"numpy.timedelta64[ns]", "numpy.timedelta64[ns]", "<m8[ns]", ZARR_KIND_TIMEDELTA, 8,
     8, -1},
    {"numpy.datetime64[generic]", "numpy.datetime64[generic]", "<M8", ZARR_KIND_DATETIME,
     8, 8, -1},
    {"<m8[5generic]", "numpy.timedelta64[5generic]", "<m8[5generic]", ZARR_KIND_TIMEDELTA,
     8, 8, -1},
    {"{\"name\":\"numpy.datetime64\",\"configuration\":{\"unit\":\"us\",\"scale_factor\":"
     "10}}",
     "numpy.datetime64[10us]", "<M8[10us]", ZARR_KIND_DATETIME, 8, 8, -1},
    {"complex_float32", "complex64", "<c8", ZARR_KIND_COMPLEX, 8, 4, 5064},
    {"complex_float64", "complex128", "<c16", ZARR_KIND_COMPLEX, 16, 8, 5128},
    {"bfloat16", "bfloat16", "bfloat16", ZARR_KIND_FLOAT, 2, 2, 4016},
    {"float8_e3m4", "float8_e3m4", "float8_e3m4", ZARR_KIND_FLOAT, 1, 1, 7008},
    {"float8_e4m3b11fnuz", "float8_e4m3b11fnuz", "float8_e4m3b11fnuz", ZARR_KIND_FLOAT, 1,
     1, 9008},
    {"float8_e4m3fn", "float8_e4m3fn", "float8_e4m3fn", ZARR_KIND_FLOAT, 1, 1, 10008},
    {"float8_e4m3fnuz", "float8_e4m3fnuz", "float8_e4m3fnuz", ZARR_KIND_FLOAT, 1, 1,
     11008},
    {"float8_e5m2", "float8_e5m2", "float8_e5m2", ZARR_KIND_FLOAT, 1, 1, 12008},
    {"float8_e5m2fnuz", "float8_e5m2fnuz", "float8_e5m2fnuz", ZARR_KIND_FLOAT, 1, 1,
     13008},
    {"float8_e8m0fnu", "float8_e8m0fnu", "float8_e8m0fnu", ZARR_KIND_FLOAT, 1, 1, 14008},
    {"{\"name\":\"int16\"}", "int16", "<i2", ZARR_KIND_INT, 2, 2, 16},
    {"{\"name\":\"int16\",\"configuration\":{},\"must_understand\":true}", "int16", "<i2",
     ZARR_KIND_INT, 2, 2, 16},
    {"\"int16\"", "int16", "<i2", ZARR_KIND_INT, 2, 2, 16},
    {"<i2", "int16", "<i2", ZARR_KIND_INT, 2, 2, 16},
    {">i2", "int16", "<i2", ZARR_KIND_INT, 2, 2, 16},
    {"i2", "int16", "<i2", ZARR_KIND_INT, 2, 2, 16},
    {"=f8", "float64", "<f8", ZARR_KIND_FLOAT, 8, 8, 2064},
    {"|b1", "bool", "|b1", ZARR_KIND_BOOL, 1, 1, 6008},
    {"<u1", "uint8", "|u1", ZARR_KIND_UINT, 1, 1, 1008},
    {"|S4", "null_terminated_bytes[4]", "|S4", ZARR_KIND_BYTES, 4, 1, -1},
    {">U8", "fixed_length_utf32[32]", "<U8", ZARR_KIND_UTF32, 32, 4, -1},
    {"|V16", "raw_bytes[16]", "|V16", ZARR_KIND_RAW, 16, 1, -1},
    {"<M8", "numpy.datetime64[generic]", "<M8", ZARR_KIND_DATETIME, 8, 8, -1},
    {"<M8[\xCE\xBCs]", "numpy.datetime64[us]", "<M8[us]", ZARR_KIND_DATETIME, 8, 8, -1},
    {">m8[25s]", "numpy.timedelta64[25s]", "<m8[25s]", ZARR_KIND_TIMEDELTA, 8, 8, -1},
};

static void names(void **state)
{
    struct zr_dtype_registry r;

    (void)state;
    assert_int_equal(fill_registry(&r, NULL), ZARR_OK);
    for (size_t i = 0; i < ZR_COUNT(known); i++) {
        const zarr_dtype *t = NULL, *again = NULL;
        zarr_error err = {0};
        uint8_t code = 0, bits = 0;
        uint16_t lanes = 0;

        if (zr_dtype_find(&r, known[i].find, &t, NULL, &err) != ZARR_OK)
            fail_msg("%s: %s", known[i].find, err.message);
        assert_string_equal(zarr_dtype_name(t), known[i].name);
        assert_string_equal(zarr_dtype_v2(t), known[i].v2);
        assert_int_equal(zarr_dtype_kind(t), known[i].kind);
        assert_int_equal(zarr_dtype_item_bytes(t), known[i].bytes);
        assert_int_equal(zarr_dtype_item_bits(t), known[i].bytes * 8);
        assert_int_equal(zarr_dtype_swap_bytes(t), known[i].swap);
        if (zarr_dtype_dlpack(t, &code, &bits, &lanes) == 0) {
            assert_int_equal(known[i].dlpack, code * 1000 + bits);
            assert_int_equal(zr_dtype_from_dlpack(&r, code, bits, lanes, &again, NULL),
                             ZARR_OK);
            assert_ptr_equal(again, t);
        } else {
            assert_int_equal(known[i].dlpack, -1);
        }
        /* Each of its names leads back to the same object. */
        assert_int_equal(zr_dtype_find(&r, zarr_dtype_name(t), &again, NULL, NULL),
                         ZARR_OK);
        assert_ptr_equal(again, t);
        assert_int_equal(zr_dtype_find(&r, zarr_dtype_v2(t), &again, NULL, NULL),
                         ZARR_OK);
        assert_true(again == t || zr_streq(known[i].name, "r24"));
        assert_true(zarr_dtype_equal(t, again)); /* r24 and raw_bytes[3] are equal */
        assert_string_equal(zarr_dtype_numpy(t), zarr_dtype_v2(t));
        assert_int_equal(zr_dtype_from_numpy(&r, zarr_dtype_numpy(t), &again, NULL, NULL),
                         ZARR_OK);
        assert_true(zarr_dtype_equal(t, again));
        assert_string_equal(zarr_dtype_codec(t), "bytes");
    }
    zr_dtype_registry_deinit(&r);
}

/* Types without a NumPy or v2 name, and types that do not use all bits of their
 * bytes. */
static const struct {
    const char *name, *v2, *numpy;
    uint32_t kind, bytes, bits, components, component_bits;
    int dlpack, experimental;
} small[] = {
    {"bool", "|b1", "|b1", ZARR_KIND_BOOL, 1, 8, 1, 1, 6008, 0},
    {"int2", "int2", "int2", ZARR_KIND_INT, 1, 2, 1, 2, 2, 0},
    {"int4", "int4", "int4", ZARR_KIND_INT, 1, 4, 1, 4, 4, 0},
    {"uint2", NULL, "uint2", ZARR_KIND_UINT, 1, 2, 1, 2, 1002, 0},
    {"uint4", NULL, "uint4", ZARR_KIND_UINT, 1, 4, 1, 4, 1004, 0},
    {"float8_e4m3", NULL, "float8_e4m3", ZARR_KIND_FLOAT, 1, 8, 1, 8, 8008, 0},
    {"float8_e4m3fn", "float8_e4m3fn", "float8_e4m3fn", ZARR_KIND_FLOAT, 1, 8, 1, 8,
     10008, 1},
    {"float6_e2m3fn", NULL, "float6_e2m3fn", ZARR_KIND_FLOAT, 1, 6, 1, 6, 15006, 0},
    {"float6_e3m2fn", NULL, "float6_e3m2fn", ZARR_KIND_FLOAT, 1, 6, 1, 6, 16006, 0},
    {"float4_e2m1fn", "float4_e2m1fn", "float4_e2m1fn", ZARR_KIND_FLOAT, 1, 4, 1, 4,
     17004, 0},
    {"complex64", "<c8", "<c8", ZARR_KIND_COMPLEX, 8, 64, 2, 32, 5064, 0},
    {"complex_float16", NULL, "complex32", ZARR_KIND_COMPLEX, 4, 32, 2, 16, 5032, 0},
    {"complex_bfloat16", NULL, "bcomplex32", ZARR_KIND_COMPLEX, 4, 32, 2, 16, -1, 0},
    {"complex_float8_e3m4", NULL, NULL, ZARR_KIND_COMPLEX, 2, 16, 2, 8, -1, 0},
    {"complex_float8_e4m3", NULL, NULL, ZARR_KIND_COMPLEX, 2, 16, 2, 8, -1, 0},
    {"complex_float8_e4m3b11fnuz", NULL, NULL, ZARR_KIND_COMPLEX, 2, 16, 2, 8, -1, 0},
    {"complex_float8_e4m3fnuz", NULL, NULL, ZARR_KIND_COMPLEX, 2, 16, 2, 8, -1, 0},
    {"complex_float8_e5m2", NULL, NULL, ZARR_KIND_COMPLEX, 2, 16, 2, 8, -1, 0},
    {"complex_float8_e5m2fnuz", NULL, NULL, ZARR_KIND_COMPLEX, 2, 16, 2, 8, -1, 0},
    {"complex_float8_e8m0fnu", NULL, NULL, ZARR_KIND_COMPLEX, 2, 16, 2, 8, -1, 0},
    {"complex_float6_e2m3fn", NULL, NULL, ZARR_KIND_COMPLEX, 2, 12, 2, 6, -1, 0},
    {"complex_float6_e3m2fn", NULL, NULL, ZARR_KIND_COMPLEX, 2, 12, 2, 6, -1, 0},
    {"complex_float4_e2m1fn", NULL, NULL, ZARR_KIND_COMPLEX, 2, 8, 2, 4, -1, 0},
    {"r24", "|V3", "|V3", ZARR_KIND_RAW, 3, 24, 1, 24, -1, 0},
    {"raw_bytes[3]", "|V3", "|V3", ZARR_KIND_RAW, 3, 24, 1, 24, -1, 1},
    {"null_terminated_bytes[3]", "|S3", "|S3", ZARR_KIND_BYTES, 3, 24, 1, 24, -1, 1},
};

static void assert_text(const char *have, const char *want)
{
    if (want)
        assert_string_equal(have, want);
    else
        assert_null(have);
}

static void small_types(void **state)
{
    struct zr_dtype_registry r;

    (void)state;
    assert_int_equal(fill_registry(&r, NULL), ZARR_OK);
    for (size_t i = 0; i < ZR_COUNT(small); i++) {
        const uint32_t padded = small[i].component_bits < 8 ? small[i].component_bits : 0;
        const zarr_dtype *t = NULL, *again = NULL;
        uint8_t code = 0, bits = 0;
        uint16_t lanes = 0;

        assert_int_equal(zr_dtype_find(&r, small[i].name, &t, NULL, NULL), ZARR_OK);
        assert_text(zarr_dtype_v2(t), small[i].v2);
        assert_text(zarr_dtype_numpy(t), small[i].numpy);
        assert_int_equal(zarr_dtype_kind(t), small[i].kind);
        assert_int_equal(zarr_dtype_item_bytes(t), small[i].bytes);
        assert_int_equal(zarr_dtype_item_bits(t), small[i].bits);
        assert_int_equal(zarr_dtype_components(t), small[i].components);
        assert_int_equal(zarr_dtype_component_bits(t), small[i].component_bits);
        assert_int_equal(zr_dtype_padded_bits(t), padded);
        assert_int_equal(zarr_dtype_experimental(t), small[i].experimental);
        if (zarr_dtype_dlpack(t, &code, &bits, &lanes) == 0)
            assert_int_equal(small[i].dlpack, code * 1000 + bits);
        else
            assert_int_equal(small[i].dlpack, -1);
        if (small[i].dlpack >= 0) {
            assert_int_equal(zr_dtype_from_dlpack(&r, code, bits, lanes, &again, NULL),
                             ZARR_OK);
            assert_ptr_equal(again, t);
        }
        if (!small[i].numpy)
            continue;
        assert_int_equal(zr_dtype_from_numpy(&r, small[i].numpy, &again, NULL, NULL),
                         ZARR_OK);
        assert_true(zarr_dtype_equal(again, t));
    }
    zr_dtype_registry_deinit(&r);
}

static void numpy_names(void **state)
{
    static const struct {
        const char *numpy, *name;
        uint32_t order;
    } known_to_numpy[] = {
        {"<f4", "float32", ZARR_ORDER_LITTLE},
        {">f4", "float32", ZARR_ORDER_BIG},
        {"f4", "float32", ZR_ORDER_NATIVE},
        {"float32", "float32", ZR_ORDER_NATIVE},
        {"bool", "bool", ZR_ORDER_NATIVE},
        {"complex64", "complex64", ZR_ORDER_NATIVE},
        {"|V7", "raw_bytes[7]", ZR_ORDER_NATIVE},
        {">U2", "fixed_length_utf32[8]", ZARR_ORDER_BIG},
        {"<M8[25s]", "numpy.datetime64[25s]", ZARR_ORDER_LITTLE},
        {"datetime64[ns]", "numpy.datetime64[ns]", ZR_ORDER_NATIVE},
        {"timedelta64", "numpy.timedelta64[generic]", ZR_ORDER_NATIVE},
        {"bfloat16", "bfloat16", ZR_ORDER_NATIVE},
        {"T", "string", ZR_ORDER_NATIVE},
        {"|T16", "string", ZR_ORDER_NATIVE},
        {"StringDType()", "string", ZR_ORDER_NATIVE},
        {"O", "string", ZR_ORDER_NATIVE},
        {"|O", "string", ZR_ORDER_NATIVE},
        {"object", "string", ZR_ORDER_NATIVE},
    };
    static const char *const unknown[] = {
        "r24",          "float7", "complex_float8_e4m3", "<q4", "datetime64[parsec]",
        "raw_bytes[3]", "g"};
    struct zr_dtype_registry r;
    const zarr_dtype *t = NULL;

    (void)state;
    assert_int_equal(fill_registry(&r, NULL), ZARR_OK);
    for (size_t i = 0; i < ZR_COUNT(known_to_numpy); i++) {
        uint32_t order = 99;

        assert_int_equal(
            zr_dtype_from_numpy(&r, known_to_numpy[i].numpy, &t, &order, NULL), ZARR_OK);
        assert_string_equal(zarr_dtype_name(t), known_to_numpy[i].name);
        assert_int_equal(order, known_to_numpy[i].order);
    }
    for (size_t i = 0; i < ZR_COUNT(unknown); i++) {
        zarr_error err = {0};

        assert_int_not_equal(zr_dtype_from_numpy(&r, unknown[i], &t, NULL, &err),
                             ZARR_OK);
        assert_non_null(strstr(err.message, unknown[i]));
    }
    assert_int_equal(zr_dtype_from_numpy(&r, "", &t, NULL, NULL), ZARR_ERR_INVALID);
    assert_int_equal(zr_dtype_from_numpy(&r, NULL, &t, NULL, NULL), ZARR_ERR_INVALID);
    zr_dtype_registry_deinit(&r);
}

/* NumPy's spellings of numbers and times, in a user's text and in metadata. */
static void spellings(void **state)
{
    static const struct {
        const char *text, *name; /* NULL: refused */
        uint32_t order;
    } rows[] = {
        {"?", "bool", ZR_ORDER_NATIVE},
        {"bool_", "bool", ZR_ORDER_NATIVE},
        {"b", "int8", ZR_ORDER_NATIVE},
        {"B", "uint8", ZR_ORDER_NATIVE},
        {"h", "int16", ZR_ORDER_NATIVE},
        {">i", "int32", ZARR_ORDER_BIG},
        {"q", "int64", ZR_ORDER_NATIVE},
        {"int", "int64", ZR_ORDER_NATIVE},
        {"uint", "uint64", ZR_ORDER_NATIVE},
        {"<e", "float16", ZARR_ORDER_LITTLE},
        {"half", "float16", ZR_ORDER_NATIVE},
        {"single", "float32", ZR_ORDER_NATIVE},
        {"float", "float64", ZR_ORDER_NATIVE},
        {"float_", "float64", ZR_ORDER_NATIVE},
        {">d", "float64", ZARR_ORDER_BIG},
        {"F", "complex64", ZR_ORDER_NATIVE},
        {"complex", "complex128", ZR_ORDER_NATIVE},
        {">datetime64[us]", "numpy.datetime64[us]", ZARR_ORDER_BIG},
        {"l", NULL, 0},
        {"long", NULL, 0},
        {"uintp", NULL, 0},
    };

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(rows); i++) {
        const zarr_dtype *t = NULL, *again = NULL;
        uint32_t order = 99;
        zarr_error err = {0};

        assert_int_equal(zr_dtype_find(&registry, rows[i].text, &t, NULL, NULL),
                         ZARR_ERR_UNSUPPORTED);
        if (!rows[i].name) {
            assert_int_equal(zr_dtype_find_any(&registry, rows[i].text, &t, NULL, &err),
                             ZARR_ERR_UNSUPPORTED);
            assert_non_null(strstr(err.message, "its size differs between machines"));
            continue;
        }
        if (zr_dtype_find_any(&registry, rows[i].text, &t, &order, &err) != ZARR_OK)
            fail_msg("%s: %s", rows[i].text, err.message);
        assert_string_equal(zarr_dtype_name(t), rows[i].name);
        assert_int_equal(order, rows[i].order);
        assert_int_equal(zr_dtype_from_numpy(&registry, rows[i].text, &again, NULL, NULL),
                         ZARR_OK);
        assert_ptr_equal(again, t);
    }
}

/* The byte order of another program's memory, by v2, NumPy and v3 names. */
static void orders_of_names(void **state)
{
    static const struct {
        const char *find, *name;
        zarr_status want;
        uint32_t order;
    } rows[] = {
        {">i2", "int16", ZARR_OK, ZARR_ORDER_BIG},
        {"<i2", "int16", ZARR_OK, ZARR_ORDER_LITTLE},
        {"i2", "int16", ZARR_OK, ZR_ORDER_NATIVE},
        {"=i2", "int16", ZARR_OK, ZR_ORDER_NATIVE},
        {"int16", "int16", ZARR_OK, ZR_ORDER_NATIVE},
        {">i1", "int8", ZARR_OK, ZR_ORDER_NATIVE},
        {">U2", "fixed_length_utf32[8]", ZARR_OK, ZARR_ORDER_BIG},
        {">M8[us]", "numpy.datetime64[us]", ZARR_OK, ZARR_ORDER_BIG},
        {"datetime64[us]", "numpy.datetime64[us]", ZARR_OK, ZR_ORDER_NATIVE},
        {"|T16", "string", ZARR_OK, ZR_ORDER_NATIVE},
        {"|O", "string", ZARR_OK, ZR_ORDER_NATIVE},
        {"{\"name\":\"int16\"}", "int16", ZARR_OK, ZR_ORDER_NATIVE},
        {"[[\"a\",\">i2\"],[\"b\",\"|u1\"]]", NULL, ZARR_OK, ZARR_ORDER_BIG},
        {"[[\"a\",\"<i2\"]]", NULL, ZARR_OK, ZARR_ORDER_LITTLE},
        {"[[\"b\",\"|u1\"]]", NULL, ZARR_OK, ZR_ORDER_NATIVE},
        {"[[\"a\",\">i2\"],[\"b\",\"<i2\"]]", NULL, ZARR_ERR_UNSUPPORTED, 0},
        {"<i3", NULL, ZARR_ERR_UNSUPPORTED, 0},
        {"", NULL, ZARR_ERR_INVALID, 0},
        {"[", NULL, ZARR_ERR_INVALID, 0},
    };

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(rows); i++) {
        const zarr_dtype *t = NULL;
        uint32_t order = 99;
        zarr_error err = {0};
        zarr_status st = zr_dtype_find_order(&registry, rows[i].find, &t, &order, &err);

        if (st != rows[i].want || (st == ZARR_OK && order != rows[i].order))
            fail_msg("%s: %d, order %u: %s", rows[i].find, st, order, err.message);
        if (rows[i].name)
            assert_string_equal(zarr_dtype_name(t), rows[i].name);
        if (st != ZARR_OK)
            assert_null(t);
    }
    assert_int_equal(zr_dtype_find_order(&registry, NULL, &(const zarr_dtype *){NULL},
                                         &(uint32_t){0}, NULL),
                     ZARR_ERR_INVALID);
}

/* Name and configuration in v3 metadata, apart. */
static void name_and_configuration(void **state)
{
    static const struct {
        const char *find, *name, *config;
    } rows[] = {
        {"int16", "int16", NULL},
        {"r24", "r24", NULL},
        {"numpy.datetime64[10us]", "numpy.datetime64",
         "{\"unit\":\"us\",\"scale_factor\":10}"},
        {"|S7", "null_terminated_bytes", "{\"length_bytes\":7}"},
        {"string", "string", NULL},
        {"[[\"a\",\"|u1\"]]", "struct",
         "{\"fields\":[{\"name\":\"a\",\"data_type\":\"uint8\"}]}"},
        {"vlen-array[int32]", NULL, NULL},
    };

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(rows); i++) {
        const zarr_dtype *t = find_type(rows[i].find);

        assert_text(zarr_dtype_v3_name(t), rows[i].name);
        assert_text(zarr_dtype_v3_configuration(t), rows[i].config);
    }
    assert_null(zarr_dtype_v3_name(NULL));
    assert_null(zarr_dtype_v3_configuration(NULL));
    assert_text(zarr_dtype_numpy(find_type("string")), "T");
    assert_text(zarr_dtype_numpy(find_type("bytes")), "O");
    assert_text(zarr_dtype_numpy(find_type("vlen-array[int32]")), "O");
}

static const struct {
    const char *find;
    zarr_status want;
    const char *says;
} unknown[] = {
    {"", ZARR_ERR_INVALID, "needed"},
    {"int7", ZARR_ERR_UNSUPPORTED, "\"int7\" is not known"},
    {"Int16", ZARR_ERR_UNSUPPORTED, "Int16"},
    {"<f16", ZARR_ERR_UNSUPPORTED, "long double"},
    {"f16", ZARR_ERR_UNSUPPORTED, "long double"},
    {">c32", ZARR_ERR_UNSUPPORTED, "long double"},
    {"|O", ZARR_ERR_UNSUPPORTED, "Python objects"},
    {"<x4", ZARR_ERR_UNSUPPORTED, "<x4"},
    {"<i3", ZARR_ERR_UNSUPPORTED, "<i3"},
    {"r", ZARR_ERR_UNSUPPORTED, "not known"},
    {"r7", ZARR_ERR_INVALID, "multiple of 8"},
    {"r08", ZARR_ERR_INVALID, "multiple of 8"},
    {"r0", ZARR_ERR_INVALID, NULL},
    {"r99999999999999999999999", ZARR_ERR_INVALID, "r99"},
    {"r8000000000", ZARR_ERR_UNSUPPORTED, "elements of 1000000000 bytes"},
    {"|S0", ZARR_ERR_UNSUPPORTED, "zero bytes"},
    {"<U0", ZARR_ERR_UNSUPPORTED, "zero bytes"},
    {"|S", ZARR_ERR_UNSUPPORTED, NULL},
    {"|S4x", ZARR_ERR_INVALID, "number of bytes"},
    {"<U99999999999999999999", ZARR_ERR_INVALID, NULL},
    {"<U18446744073709551615", ZARR_ERR_INVALID, NULL},
    {"<M8[10]", ZARR_ERR_INVALID, "unit"},
    {"<M8[0us]", ZARR_ERR_INVALID, "unit"},
    {"<M8[us/10]", ZARR_ERR_INVALID, "unit"},
    {"<M8[2147483648us]", ZARR_ERR_INVALID, "unit"},
    {"<M8[us", ZARR_ERR_INVALID, "unit"},
    {"<M4[us]", ZARR_ERR_INVALID, "unit"},
    {"<M8[0generic]", ZARR_ERR_INVALID, "unit"},
    {"numpy.datetime64", ZARR_ERR_INVALID, "unit must be one of"},
    {"fixed_length_utf32", ZARR_ERR_INVALID, "length_bytes"},
    {"fixed_length_utf32[3]", ZARR_ERR_INVALID, "multiple of 4"},
    {"fixed_length_utf32[x]", ZARR_ERR_INVALID, "brackets"},
    {"int8[1]", ZARR_ERR_UNSUPPORTED, "int8[1]"},
    {"null_terminated_bytes5", ZARR_ERR_UNSUPPORTED, NULL},
    {"[", ZARR_ERR_INVALID, NULL},
    {"]", ZARR_ERR_UNSUPPORTED, NULL},
    {"<", ZARR_ERR_UNSUPPORTED, NULL},
    {"{\"name\":\"int8\"", ZARR_ERR_INVALID, "byte 14"},
    {"{\"name\":7}", ZARR_ERR_INVALID, "name"},
    {"{\"name\":\"int8\",\"configuration\":[]}", ZARR_ERR_INVALID, NULL},
    {"{\"name\":\"int8\",\"configuration\":{\"a\":1}}", ZARR_ERR_INVALID,
     "no configuration"},
    {"{\"name\":\"int8\",\"other\":1}", ZARR_ERR_INVALID, "unknown member \"other\""},
    {"{\"name\":\"int8\",\"must_understand\":false}", ZARR_ERR_INVALID,
     "must_understand"},
    {"{\"name\":\"r8\",\"configuration\":{\"a\":1}}", ZARR_ERR_INVALID,
     "no configuration"},
    {"{\"name\":\"fixed_length_utf32\",\"configuration\":{\"length_bytes\":8,\"x\":1}}",
     ZARR_ERR_INVALID, "\"x\" besides length_bytes"},
    {"{\"name\":\"fixed_length_utf32\",\"configuration\":{\"length_bytes\":-8}}",
     ZARR_ERR_INVALID, "length_bytes must be a whole number"},
    {"{\"name\":\"numpy.datetime64\",\"configuration\":{\"unit\":\"xs\"}}",
     ZARR_ERR_INVALID, "not \"xs\""},
    {"{\"name\":\"numpy.datetime64\",\"configuration\":{\"unit\":\"s\",\"scale_factor\":"
     "0}}",
     ZARR_ERR_INVALID, "scale_factor"},
    {"{\"name\":\"numpy.datetime64\",\"configuration\":{\"unit\":\"s\",\"x\":1}}",
     ZARR_ERR_INVALID, "\"x\" besides unit and scale_factor"},
};

static void no_names(void **state)
{
    struct zr_dtype_registry r;

    (void)state;
    assert_int_equal(fill_registry(&r, NULL), ZARR_OK);
    for (size_t i = 0; i < ZR_COUNT(unknown); i++) {
        const zarr_dtype *t = NULL;
        zarr_error err = {0};
        zarr_status st = zr_dtype_find(&r, unknown[i].find, &t, NULL, &err);

        if (st != unknown[i].want ||
            (unknown[i].says && !strstr(err.message, unknown[i].says)))
            fail_msg("%s: %d %s", unknown[i].find, st, err.message);
        assert_null(t);
    }
    assert_int_equal(
        zr_dtype_from_dlpack(&r, 2, 128, 1, &(const zarr_dtype *){NULL}, NULL),
        ZARR_ERR_UNSUPPORTED);
    zr_dtype_registry_deinit(&r);
}

static const struct {
    const char *json;
    zarr_status want;
    uint32_t order;
    const char *little, *big; /* written back */
} v2_texts[] = {
    {"\"<i4\"", ZARR_OK, ZARR_ORDER_LITTLE, "<i4", ">i4"},
    {"\">i4\"", ZARR_OK, ZARR_ORDER_BIG, "<i4", ">i4"},
    {"\"|i1\"", ZARR_OK, ZR_ORDER_NATIVE, "|i1", "|i1"},
    {"\">i1\"", ZARR_OK, ZR_ORDER_NATIVE, "|i1", "|i1"},
    {"\"<S3\"", ZARR_OK, ZR_ORDER_NATIVE, "|S3", "|S3"},
    {"\">U3\"", ZARR_OK, ZARR_ORDER_BIG, "<U3", ">U3"},
    {"\"<M8[ns]\"", ZARR_OK, ZARR_ORDER_LITTLE, "<M8[ns]", ">M8[ns]"},
    {"\"|i4\"", ZARR_ERR_INVALID, 0, NULL, NULL},
    {"\"i4\"", ZARR_ERR_INVALID, 0, NULL, NULL},
    {"\"\"", ZARR_ERR_INVALID, 0, NULL, NULL},
    {"4", ZARR_ERR_INVALID, 0, NULL, NULL},
    {"\"int32\"", ZARR_ERR_UNSUPPORTED, 0, NULL, NULL},
    {"{\"a\":\"<i4\"}", ZARR_ERR_INVALID, 0, NULL, NULL},
    /* structs are lists: the text of one is no type */
    {"\"[[\\\"a\\\",\\\">i4\\\"]]\"", ZARR_ERR_INVALID, 0, NULL, NULL},
    {"[[\"a\",\"[[\\\"b\\\",\\\">i4\\\"]]\"]]", ZARR_ERR_INVALID, 0, NULL, NULL},
    {"[[\"a\",\"{\\\"name\\\":\\\"int32\\\"}\"]]", ZARR_ERR_INVALID, 0, NULL, NULL},
};

static void v2_metadata(void **state)
{
    struct zr_dtype_registry r;

    (void)state;
    assert_int_equal(fill_registry(&r, NULL), ZARR_OK);
    for (size_t i = 0; i < ZR_COUNT(v2_texts); i++) {
        struct zr_json_doc doc;
        const zarr_dtype *t = NULL;
        uint32_t order = 99;

        zr_json_doc_init(&doc, NULL);
        assert_int_equal(
            zr_json_parse(&doc, v2_texts[i].json, strlen(v2_texts[i].json), NULL, NULL),
            ZARR_OK);
        assert_int_equal(zr_dtype_from_v2(&r, doc.root, &t, &order, NULL),
                         v2_texts[i].want);
        if (v2_texts[i].want == ZARR_OK) {
            assert_int_equal(order, v2_texts[i].order);
            assert_true(zr_json_is_text(zr_dtype_write_v2(t, &little_order, &doc),
                                        v2_texts[i].little));
            assert_true(
                zr_json_is_text(zr_dtype_write_v2(t, &big_order, &doc), v2_texts[i].big));
        }
        zr_json_doc_deinit(&doc);
    }
    zr_dtype_registry_deinit(&r);
}

static void v3_metadata(void **state)
{
    static const char *const texts[] = {
        "\"int16\"",
        "\"r24\"",
        "\"bfloat16\"",
        "\"complex_float6_e3m2fn\"",
        "{\"name\":\"raw_bytes\",\"configuration\":{\"length_bytes\":3}}",
        "{\"name\":\"numpy.datetime64\",\"configuration\":{\"unit\":\"us\",\"scale_"
        "factor\":10}}",
        "{\"name\":\"numpy.timedelta64\",\"configuration\":{\"unit\":\"generic\",\"scale_"
        "factor\":"
        "1}}",
        "{\"name\":\"fixed_length_utf32\",\"configuration\":{\"length_bytes\":8}}",
        "{\"name\":\"null_terminated_bytes\",\"configuration\":{\"length_bytes\":7}}"};
    struct zr_dtype_registry r;

    (void)state;
    assert_int_equal(fill_registry(&r, NULL), ZARR_OK);
    for (size_t i = 0; i < ZR_COUNT(texts); i++) {
        struct zr_json_doc doc;
        struct zr_str text;
        const zarr_dtype *t = NULL;

        zr_json_doc_init(&doc, NULL);
        zr_str_init(&text, NULL);
        assert_int_equal(zr_dtype_find(&r, texts[i], &t, NULL, NULL), ZARR_OK);
        zr_json_write(zr_dtype_write_v3(t, &doc), 0, &text);
        assert_string_equal(zr_str_text(&text), texts[i]);
        assert_string_equal(zarr_dtype_v3(t), texts[i]);
        zr_str_deinit(&text);
        zr_json_doc_deinit(&doc);
    }
    zr_dtype_registry_deinit(&r);
}

static void byte_order_beside(void **state)
{
    struct zr_dtype_registry r;
    const zarr_dtype *t = NULL;
    uint32_t order = 99;

    (void)state;
    assert_int_equal(fill_registry(&r, NULL), ZARR_OK);
    assert_int_equal(zr_dtype_find(&r, ">f8", &t, &order, NULL), ZARR_OK);
    assert_int_equal(order, ZARR_ORDER_BIG);
    assert_int_equal(zr_dtype_find(&r, ">u1", &t, &order, NULL), ZARR_OK);
    assert_int_equal(order, ZR_ORDER_NATIVE);
    zr_dtype_registry_deinit(&r);
}

static void no_type(void **state)
{
    (void)state;
    assert_null(zarr_dtype_name(NULL));
    assert_null(zarr_dtype_v2(NULL));
    assert_null(zarr_dtype_v3(NULL));
    assert_int_equal(zarr_dtype_kind(NULL), 0);
    assert_int_equal(zarr_dtype_dlpack(NULL, NULL, NULL, NULL), -1);
    assert_false(zarr_dtype_experimental(NULL));
    assert_int_equal(zarr_dtype_print(NULL, "", NULL, 0, NULL, NULL), ZARR_ERR_INVALID);
    assert_int_equal(zarr_dtype_parse(NULL, "1", NULL, NULL), ZARR_ERR_INVALID);
}

/* The k-th allocation fails: the status is right and nothing leaks. */
static zarr_status scenario(const zarr_allocator *alloc)
{
    zarr_status st = ZARR_OK;
    struct zr_dtype_registry r;
    struct zr_json_doc doc;
    struct zr_json *fill = NULL;
    const zarr_dtype *t = NULL;
    uint8_t element[2000];

    zr_json_doc_init(&doc, alloc);
    ZR_TRY(fill_registry(&r, alloc));
    ZR_TRY(zr_dtype_find(
        &r, "{\"name\":\"numpy.datetime64\",\"configuration\":{\"unit\":\"s\"}}", &t,
        NULL, NULL));
    ZR_TRY(zr_dtype_find(&r, "<U500", &t, NULL, NULL));
    ZR_TRY(zarr_dtype_parse(t, "\"abc\\u00e9\"", element, NULL));
    for (size_t i = 0; i < 500; i++)
        memcpy(element + 4 * i, element, 4);
    ZR_TRY(zr_dtype_fill_write(t, element, 3, &doc, &fill, NULL));
    ZR_TRY(zr_dtype_fill_parse(t, fill, 3, element, NULL));
    if (!zr_dtype_write_v3(t, &doc) || !zr_dtype_write_v2(t, &big_order, &doc))
        st = ZARR_ERR_NO_MEMORY;
out:
    zr_dtype_registry_deinit(&r);
    zr_json_doc_deinit(&doc);
    return st;
}

static void no_memory(void **state)
{
    (void)state;
    fail_alloc_every(scenario, 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),
        cmocka_unit_test(small_types),
        cmocka_unit_test(numpy_names),
        cmocka_unit_test_setup_teardown(spellings, set_up, tear_down),
        cmocka_unit_test_setup_teardown(orders_of_names, set_up, tear_down),
        cmocka_unit_test_setup_teardown(name_and_configuration, set_up, tear_down),
        cmocka_unit_test(no_names),
        cmocka_unit_test(v2_metadata),
        cmocka_unit_test(v3_metadata),
        cmocka_unit_test(no_type),
        cmocka_unit_test(no_memory),
        cmocka_unit_test(byte_order_beside),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
