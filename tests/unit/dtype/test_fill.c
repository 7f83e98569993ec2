/*
 * unit/dtype/test_fill.c - elements from JSON and back: writing is strict, reading
 * tolerant.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "unit/dtype/dtype_test.h"

/* The bytes of the element in hex, most significant byte of each unit first. */
static void format_hex(const zarr_dtype *t, const uint8_t *element, char *hex)
{
    const zarr_dtype *value =
        t; /* the innermost value of nested optionals, followed by their masks */
    uint64_t n = zarr_dtype_item_bytes(t), ordered;
    uint32_t unit;

    while (zarr_dtype_underlying(value))
        value = zarr_dtype_underlying(value);
    unit = zarr_dtype_swap_bytes(value);
    ordered = ZR_HOST_IS_LITTLE ? zarr_dtype_item_bytes(value) : 0;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t at = i < ordered ? i / unit * unit + (unit - 1 - i % unit) : i;

        snprintf(hex + 2 * i, 3, "%02x", element[at]);
    }
}

/* write NULL: parsing must fail. bits: hex; "" is not compared. */
static const struct {
    const char *type, *json;
    int format;
    const char *bits, *write;
} fills[] = {
    {"bool", "true", 3, "01", "true"},
    {"bool", "false", 2, "00", "false"},
    {"bool", "1", 2, "01", "true"},
    {"bool", "0", 3, "00", "false"},
    {"bool", "2", 2, "", NULL},
    {"bool", "\"true\"", 2, "", NULL},
    {"int8", "-128", 3, "80", "-128"},
    {"int8", "127", 3, "7f", "127"},
    {"int8", "128", 3, "", NULL},
    {"int8", "-129", 3, "", NULL},
    {"int8", "255", 3, "", NULL},
    {"uint8", "255", 3, "ff", "255"},
    {"uint8", "256", 3, "", NULL},
    {"uint8", "-1", 3, "", NULL},
    {"uint8", "-0", 3, "00", "0"},
    {"uint8", "0.0", 2, "00", "0"},
    {"uint8", "-0.0", 2, "00", "0"},
    {"uint8", "5.0", 3, "05", "5"},
    {"uint8", "1e2", 3, "64", "100"},
    {"uint8", "5.5", 3, "", NULL},
    {"uint8", "\"7\"", 2, "07", "7"},
    {"uint8", "\"seven\"", 2, "", NULL},
    {"uint8", "\"\"", 2, "", NULL},
    {"uint8", "NaN", 2, "", NULL},
    {"uint8", "\"NaN\"", 2, "", NULL},
    {"uint8", "true", 2, "", NULL},
    {"uint8", "[1]", 2, "", NULL},
    {"uint8", "null", 2, "", NULL},
    {"int16", "-32768", 2, "8000", "-32768"},
    {"int16", "32768", 2, "", NULL},
    {"uint16", "65535", 2, "ffff", "65535"},
    {"int32", "-2147483648", 2, "80000000", "-2147483648"},
    {"int32", "2147483648", 2, "", NULL},
    {"uint32", "4294967295", 2, "ffffffff", "4294967295"},
    {"uint32", "4294967296", 2, "", NULL},
    {"int64", "-9223372036854775808", 3, "8000000000000000", "-9223372036854775808"},
    {"int64", "9223372036854775807", 3, "7fffffffffffffff", "9223372036854775807"},
    {"int64", "9223372036854775808", 3, "", NULL},
    {"int64", "-9223372036854775809", 3, "", NULL},
    {"int64", "9007199254740993", 3, "0020000000000001", "9007199254740993"},
    {"int64", "1e18", 3, "", NULL}, /* a float beyond 2^53 is not rounded to an integer */
    {"uint64", "18446744073709551615", 3, "ffffffffffffffff", "18446744073709551615"},
    {"uint64", "18446744073709551616", 3, "", NULL},
    {"uint64", "100000000000000000000000000", 3, "", NULL},
    {"uint64", "-1", 3, "", NULL},

    {"float32", "0.0", 3, "00000000", "0.0"},
    {"float32", "0", 3, "00000000", "0.0"},
    {"float32", "-0.0", 3, "80000000", "-0.0"},
    {"float32", "-0", 3, "80000000", "-0.0"},
    {"float32", "0.1", 3, "3dcccccd", "0.1"},
    {"float32", "0.10000000149011612", 3, "3dcccccd", "0.1"},
    {"float32", "16777217", 3, "4b800000", "16777216.0"},
    {"float32", "9.969209968386869e36", 2, "7cf00000", "9.96921e+36"},
    {"float32", "3.4028235e38", 3, "7f7fffff", "3.4028235e+38"},
    {"float32", "1e39", 3, "", NULL},
    {"float32", "1e-60", 3, "00000000", "0.0"},
    {"float32", "\"NaN\"", 3, "7fc00000", "\"NaN\""},
    {"float32", "NaN", 2, "7fc00000", "\"NaN\""},
    {"float32", "Infinity", 2, "7f800000", "\"Infinity\""},
    {"float32", "-Infinity", 2, "ff800000", "\"-Infinity\""},
    {"float32", "\"Infinity\"", 3, "7f800000", "\"Infinity\""},
    {"float32", "\"+Infinity\"", 3, "7f800000", "\"Infinity\""},
    {"float32", "\"-Infinity\"", 3, "ff800000", "\"-Infinity\""},
    {"float32", "\"0x7fc00000\"", 3, "7fc00000", "\"NaN\""},
    {"float32", "\"0x7fc00001\"", 3, "7fc00001", "\"0x7fc00001\""},
    {"float32", "\"0xFFC00000\"", 3, "ffc00000", "\"0xffc00000\""},
    {"float32", "\"0x7f800001\"", 3, "7f800001", "\"0x7f800001\""}, /* signalling */
    {"float32", "\"0x7fc00001\"", 2, "7fc00001", "\"NaN\""},
    {"float32", "\"0x3f800000\"", 3, "3f800000", "1.0"},
    {"float32", "\"0x7fc0000\"", 3, "", NULL},
    {"float32", "\"0x7fc000000\"", 3, "", NULL},
    {"float32", "\"0x7fc0000g\"", 3, "", NULL},
    {"float32", "\"1.5\"", 2, "3fc00000", "1.5"},
    {"float32", "\"nan\"", 2, "", NULL},
    {"float32", "\"\"", 2, "", NULL},
    {"float32", "[1]", 3, "", NULL},
    {"float32", "true", 3, "", NULL},
    {"float64", "0.1", 3, "3fb999999999999a", "0.1"},
    {"float64", "1e400", 3, "", NULL},
    {"float64", "5e-324", 3, "0000000000000001", "5e-324"},
    {"float64", "1.7976931348623157e308", 3, "7fefffffffffffff",
     "1.7976931348623157e+308"},
    {"float64", "\"0x7ff8000000000000\"", 3, "7ff8000000000000", "\"NaN\""},
    {"float64", "\"0x7ff8000000000001\"", 3, "7ff8000000000001",
     "\"0x7ff8000000000001\""},
    {"float64", "\"0xfff0000000000000\"", 3, "fff0000000000000", "\"-Infinity\""},
    {"float16", "1", 3, "3c00", "1.0"},
    {"float16", "0.1", 3, "2e66", "0.1"},
    {"float16", "0.0999755859375", 3, "2e66", "0.1"},
    {"float16", "65504", 3, "7bff", "65500.0"},
    {"float16", "65519.99", 3, "7bff", "65500.0"},
    {"float16", "65520", 3, "", NULL},
    {"float16", "5.960464477539063e-08", 3, "0001", "6e-08"},
    {"float16", "2.9802322387695312e-08", 3, "0000", "0.0"}, /* a tie: to even */
    {"float16", "2.99e-08", 3, "0001", "6e-08"},
    {"float16", "-6.1e-05", 3, "83ff", "-6.1e-05"},
    {"float16", "2049", 3, "6800", "2048.0"},
    {"float16", "2051", 3, "6802", "2052.0"},
    {"float16", "\"NaN\"", 3, "7e00", "\"NaN\""},
    {"float16", "\"0x7e01\"", 3, "7e01", "\"0x7e01\""},
    {"float16", "\"0xfc00\"", 3, "fc00", "\"-Infinity\""},
    {"complex64", "[1.5,-0.0]", 3, "3fc0000080000000", "[1.5,-0.0]"},
    {"complex64", "[\"NaN\",\"-Infinity\"]", 3, "7fc00000ff800000",
     "[\"NaN\",\"-Infinity\"]"},
    {"complex64", "[NaN,1]", 2, "7fc000003f800000", "[\"NaN\",1.0]"},
    {"complex64", "[\"0x7fc00001\",0]", 3, "7fc0000100000000", "[\"0x7fc00001\",0.0]"},
    {"complex64", "2.0", 2, "4000000000000000", "[2.0,0.0]"},
    {"complex64", "[1]", 3, "", NULL},
    {"complex64", "[1,2,3]", 3, "", NULL},
    {"complex64", "[1,[2]]", 3, "", NULL},
    {"complex128", "[0.1,2]", 3, "3fb999999999999a4000000000000000", "[0.1,2.0]"},

    {"optional[uint8]", "null", 3, "0000", "null"},
    {"optional[uint8]", "[42]", 3, "2a01", "[42]"},
    {"zarrs.optional[uint8]", "[42]", 3, "2a01", "[42]"},
    {"optional[optional[uint8]]", "null", 3, "000000", "null"},
    {"optional[optional[uint8]]", "[null]", 3, "000001", "[null]"},
    {"optional[optional[uint8]]", "[[42]]", 3, "2a0101", "[[42]]"},
    {"optional[float32]", "[\"NaN\"]", 3, "7fc0000001", "[\"NaN\"]"},
    {"optional[complex64]", "[[1.5,-0.0]]", 3, "3fc000008000000001", "[[1.5,-0.0]]"},
    {"optional[uint8]", "42", 3, "", NULL},
    {"optional[uint8]", "[]", 3, "", NULL},
    {"optional[uint8]", "[1,2]", 3, "", NULL},
    {"optional[uint8]", "[256]", 3, "", NULL},
    {"optional[uint8]", "[null]", 3, "", NULL},
    {"optional[uint8]", "[[1]]", 3, "", NULL},

    {"r24", "[0,1,255]", 3, "0001ff", "[0,1,255]"},
    {"r24", "\"AAH/\"", 3, "0001ff", "[0,1,255]"},
    {"r24", "\"AAH/\"", 2, "0001ff", "\"AAH/\""},
    {"r24", "[0,1,255]", 2, "0001ff", "\"AAH/\""},
    {"r24", "[0,1]", 3, "", NULL},
    {"r24", "[0,1,256]", 3, "", NULL},
    {"r24", "[0,1,-1]", 3, "", NULL},
    {"r24", "\"AAE=\"", 3, "", NULL},
    {"r24", "\"AAH/AA==\"", 3, "", NULL},
    {"r24", "0", 3, "", NULL},
    {"r24", "0", 2, "000000", "\"AAAA\""},
    {"r24", "\"\"", 2, "000000", "\"AAAA\""},
    {"r24", "\"\"", 3, "", NULL},
    {"r24", "\"***\"", 2, "", NULL},
    {"|S4", "\"YWI=\"", 2, "61620000", "\"YWIAAA==\""},
    {"|S4", "\"YWIAAA==\"", 2, "61620000", "\"YWIAAA==\""},
    {"|S4", "\"YWI=\"", 3, "61620000", "\"YWIAAA==\""},
    {"|S4", "\"\"", 2, "00000000", "\"AAAAAA==\""},
    {"|S4", "\"\"", 3, "00000000", "\"AAAAAA==\""},
    {"|S4", "0", 2, "00000000", "\"AAAAAA==\""},
    {"|S4", "\"x y\"", 2, "78207900", "\"eCB5AA==\""},
    {"|S4", "\"x y\"", 3, "", NULL},
    {"|S4", "\"too long\"", 2, "", NULL},
    {"|S1", "\"\\u0000\"", 2, "00", "\"AA==\""},
    {"|S1", "\"0\"", 2, "30", "\"MA==\""},
    {"|S1", "\"AA==\"", 2, "00", "\"AA==\""},
    {"|S1", "1", 2, "", NULL},
    {"<U3", "\"abc\"", 2, "000000610000006200000063", "\"abc\""},
    {"<U3", "\"\"", 3, "000000000000000000000000", "\"\""},
    {"<U3", "0", 2, "000000000000000000000000", "\"\""},
    {"<U3", "0", 3, "", NULL},
    {"<U3", "\"abcd\"", 3, "", NULL},
    {"<U3", "\"\\u00e9\\ud83d\\ude00\\u20ac\"", 3, "000000e90001f600000020ac",
     "\"\xC3\xA9\xF0\x9F\x98\x80\xE2\x82\xAC\""},
    {"<U3", "\"a\\u0000b\"", 3, "000000610000000000000062", "\"a\\u0000b\""},
    {"<U3", "\"\\n\\\"\\u001f\"", 3, "0000000a000000220000001f", "\"\\n\\\"\\u001f\""},
    {"<U3", "[]", 3, "", NULL},
    {"<M8[ns]", "\"NaT\"", 3, "8000000000000000", "\"NaT\""},
    {"<M8[ns]", "-9223372036854775808", 2, "8000000000000000", "\"NaT\""},
    {"<M8[ns]", "0", 2, "0000000000000000", "0"},
    {"<M8[ns]", "-1", 2, "ffffffffffffffff", "-1"},
    {"<M8[ns]", "9223372036854775808", 2, "", NULL},
    {"<M8[ns]", "\"2020-01-01\"", 2, "", NULL},
    {"<m8", "1234567890123", 3, "0000011f71fb04cb", "1234567890123"},
    {"<m8", "true", 3, "", NULL},
};

static void tables(void **state)
{
    (void)state;
    for (size_t i = 0; i < ZR_COUNT(fills); i++) {
        const zarr_dtype *t = find_type(fills[i].type);
        struct zr_json_doc doc;
        struct zr_json *written = NULL;
        struct zr_str text;
        uint8_t element[64], again[64];
        zarr_error err = {0};
        zarr_status st;
        char hex[160] = "";

        zr_json_doc_init(&doc, NULL);
        zr_str_init(&text, NULL);
        assert_int_equal(
            zr_json_parse(&doc, fills[i].json, strlen(fills[i].json), NULL, NULL),
            ZARR_OK);
        st = zr_dtype_fill_parse(t, doc.root, fills[i].format, element, &err);
        if ((st == ZARR_OK) != (fills[i].write != NULL) ||
            (st != ZARR_OK && st != ZARR_ERR_INVALID))
            fail_msg("%s of %s: %d %s", fills[i].json, fills[i].type, st, err.message);
        if (st == ZARR_OK) {
            format_hex(t, element, hex);
            if (strcmp(hex, fills[i].bits) != 0)
                fail_msg("%s of %s: %s, not %s", fills[i].json, fills[i].type, hex,
                         fills[i].bits);
            assert_int_equal(
                zr_dtype_fill_write(t, element, fills[i].format, &doc, &written, &err),
                ZARR_OK);
            zr_json_write(written, 0, &text);
            if (strcmp(zr_str_text(&text), fills[i].write) != 0)
                fail_msg("%s of %s: written %s", fills[i].json, fills[i].type,
                         zr_str_text(&text));
            /* The text we write parses to the same bytes. v2 cannot express NaN
             * payloads. */
            assert_int_equal(
                zr_dtype_fill_parse(t, written, fills[i].format, again, &err), ZARR_OK);
            if (!(fills[i].format == 2 && strstr(fills[i].json, "0x")))
                assert_memory_equal(element, again, zarr_dtype_item_bytes(t));
        }
        zr_str_deinit(&text);
        zr_json_doc_deinit(&doc);
    }
}

/* Every float16: printing and parsing gives the same bits, and no shorter text does. */
static void all_halves(void **state)
{
    const zarr_dtype *t = find_type("float16");

    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        uint16_t in = (uint16_t)h, out = 0;
        char text[48];
        size_t n = 0;

        assert_int_equal(zarr_dtype_print(t, &in, text, sizeof text, &n, NULL), ZARR_OK);
        assert_int_equal(n, strlen(text));
        assert_int_equal(zarr_dtype_parse(t, text, &out, NULL), ZARR_OK);
        if (out != in)
            fail_msg("0x%04x: %s gives 0x%04x", in, text, out);
    }
}

static void random_floats(void **state)
{
    const zarr_dtype *single = find_type("float32"), *full = find_type("float64");
    uint64_t seed = 88172645463325252u;

    (void)state;
    for (int i = 0; i < 20000; i++) {
        uint64_t out = 0;
        uint32_t in4, out4 = 0;
        char text[48];
        size_t n;

        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        in4 = (uint32_t)seed;
        assert_int_equal(zarr_dtype_print(full, &seed, text, sizeof text, &n, NULL),
                         ZARR_OK);
        assert_int_equal(zarr_dtype_parse(full, text, &out, NULL), ZARR_OK);
        assert_memory_equal(&out, &seed, 8);
        assert_int_equal(zarr_dtype_print(single, &in4, text, sizeof text, &n, NULL),
                         ZARR_OK);
        assert_int_equal(zarr_dtype_parse(single, text, &out4, NULL), ZARR_OK);
        assert_memory_equal(&out4, &in4, 4);
    }
}

static void small_buffers(void **state)
{
    const zarr_dtype *t = find_type("<U3");
    const uint32_t element[3] = {'a', 0xe9, 'c'};
    const uint32_t bad[3] = {'a', 0xd800, 0}, worse[3] = {0x110000, 0, 0};
    char text[8] = "xxxxxxx";
    size_t n = 0;

    (void)state;
    assert_int_equal(zarr_dtype_print(t, element, NULL, 0, &n, NULL), ZARR_OK);
    assert_int_equal(n, 6);
    assert_int_equal(zarr_dtype_print(t, element, text, 3, &n, NULL), ZARR_OK);
    assert_int_equal(n, 6);
    assert_string_equal(text, "\"a");
    assert_int_equal(text[3], 'x');
    assert_int_equal(zarr_dtype_print(t, bad, text, sizeof text, &n, NULL),
                     ZARR_ERR_CORRUPT);
    assert_int_equal(zarr_dtype_print(t, worse, text, sizeof text, &n, NULL),
                     ZARR_ERR_CORRUPT);
    assert_int_equal(zarr_dtype_parse(find_type("int8"), " 7 \t", text, NULL), ZARR_OK);
    assert_int_equal(text[0], 7);
    assert_int_equal(zarr_dtype_parse(find_type("int8"), "7 8", text, NULL),
                     ZARR_ERR_INVALID);
    assert_int_equal(zarr_dtype_parse(find_type("int8"), "", text, NULL),
                     ZARR_ERR_INVALID);
    assert_int_equal(zarr_dtype_parse(find_type("int8"), "-", text, NULL),
                     ZARR_ERR_INVALID);
}

static void defaults(void **state)
{
    int64_t v = 5;
    char text[4] = "xxx";

    (void)state;
    zr_dtype_fill_default(find_type("<M8[s]"), &v);
    assert_true(v == INT64_MIN);
    zr_dtype_fill_default(find_type("int64"), &v);
    assert_true(v == 0);
    zr_dtype_fill_default(find_type("|S3"), text);
    assert_memory_equal(text, "\0\0\0", 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables),        cmocka_unit_test(all_halves),
        cmocka_unit_test(random_floats), cmocka_unit_test(small_buffers),
        cmocka_unit_test(defaults),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
