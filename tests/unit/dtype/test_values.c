/*
 * unit/dtype/test_values.c - operations on elements: comparison, conversion to numbers,
 * the unused bits of types below a byte and their packed form, and variable-length
 * values as text.
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

static zarr_error terr;

static void assert_says(const char *text)
{
    if (!strstr(terr.message, text))
        fail_msg("\"%s\" does not say \"%s\"", terr.message, text);
}

/* ---- order and numbers ------------------------------------------------------- */

/* Elements in ascending order. */
static const struct {
    const char *type, *json[10];
} orders[] = {
    {"bool", {"false", "true"}},
    {"int8", {"-128", "-1", "0", "1", "127"}},
    {"uint8", {"0", "1", "128", "255"}},
    {"int16", {"-32768", "-257", "-256", "-1", "0", "255", "256"}},
    {"uint32", {"0", "255", "256", "65536", "4294967295"}},
    {"int64", {"-9223372036854775808", "-1", "0", "4294967296", "9223372036854775807"}},
    {"uint64", {"0", "9223372036854775807", "9223372036854775808"}},
    {"int4", {"-8", "-1", "0", "7"}},
    {"float32",
     {"\"-Infinity\"", "-2.0", "-1e-45", "-0.0", "0.0", "1e-45", "1.5", "\"Infinity\"",
      "\"NaN\"", "\"0x7fc00001\""}},
    {"float16", {"-65504", "-0.0", "0.0", "6e-08", "65504", "\"NaN\""}},
    {"float64", {"-1e308", "-5e-324", "-0.0", "0.0", "1.0", "1.0000000000000002"}},
    {"bfloat16", {"-1.0", "1.0", "\"Infinity\"", "\"NaN\""}},
    {"complex64",
     {"[-1.0,5.0]", "[0.0,-1.0]", "[0.0,2.0]", "[1.0,-9.0]", "[\"NaN\",0.0]"}},
    {"<U3", {"\"\"", "\"a\"", "\"ab\"", "\"b\"", "\"\\u00e9\"", "\"\\ud83d\\ude00\""}},
    {"|S2", {"\"\"", "\"YQ==\"", "\"YWI=\"", "\"/w==\""}},
    {"<M8[s]", {"-9223372036854775807", "-1", "0", "1", "\"NaT\""}},
    {"<m8[s]", {"-1", "256", "\"NaT\""}},
    {"string", {"\"\"", "\"a\"", "\"a\\u0000\"", "\"ab\"", "\"b\"", "\"\\u00e9\""}},
    {"bytes", {"\"\"", "\"AA==\"", "\"AAA=\"", "\"/w==\""}},
    {"optional[int8]", {"[-1]", "[0]", "[3]", "null"}},
};

static int sign(int v)
{
    return (v > 0) - (v < 0);
}

static void compares(void **state)
{
    (void)state;
    for (size_t i = 0; i < ZR_COUNT(orders); i++) {
        const zarr_dtype *t = find_type(orders[i].type);
        _Alignas(16) uint8_t element[10][16];
        int n = 0;

        for (; n < 10 && orders[i].json[n]; n++)
            if (zarr_dtype_parse(t, orders[i].json[n], element[n], &terr) != ZARR_OK)
                fail_msg("%s: %s", orders[i].json[n], terr.message);
        for (int a = 0; a < n; a++)
            for (int b = 0; b < n; b++)
                if (sign(zarr_dtype_compare(t, element[a], element[b])) != sign(a - b))
                    fail_msg("%s: %s and %s", orders[i].type, orders[i].json[a],
                             orders[i].json[b]);
        for (int a = 0; a < n; a++)
            zarr_dtype_release(t, element[a]);
    }
}

static const struct {
    const char *type, *json;
    uint32_t n;
    double want[2];
} numbers[] = {
    {"bool", "true", 1, {1, 0}},
    {"bool", "false", 1, {0, 0}},
    {"int8", "-128", 1, {-128, 0}},
    {"uint8", "200", 1, {200, 0}},
    {"int16", "-2", 1, {-2, 0}},
    {"int64", "-9223372036854775808", 1, {-9223372036854775808.0, 0}},
    {"int64", "-9007199254740993", 1, {-9007199254740992.0, 0}}, /* a tie, to even */
    {"uint64", "18446744073709551615", 1, {18446744073709551616.0, 0}},
    {"uint32", "4294967295", 1, {4294967295.0, 0}},
    {"int2", "-2", 1, {-2, 0}},
    {"float16", "0.5", 1, {0.5, 0}},
    {"float32", "\"-Infinity\"", 1, {-INFINITY, 0}},
    {"float64", "5e-324", 1, {5e-324, 0}},
    {"bfloat16", "-3.0", 1, {-3, 0}},
    {"complex64", "[1.5,-2.0]", 2, {1.5, -2}},
    {"complex128", "[0.1,2.0]", 2, {0.1, 2}},
    {"<M8[ns]", "-7", 1, {-7, 0}},
    {"<m8[D]", "7", 1, {7, 0}},
    {"|S2", "\"YWI=\"", 0, {0, 0}},
    {"r16", "[1,2]", 0, {0, 0}},
    {"<U1", "\"1\"", 0, {0, 0}},
};

static void as_numbers(void **state)
{
    _Alignas(16) uint8_t element[16];
    double out[2];

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(numbers); i++) {
        const zarr_dtype *t = find_type(numbers[i].type);

        out[0] = out[1] = 0;
        assert_int_equal(zarr_dtype_parse(t, numbers[i].json, element, &terr), ZARR_OK);
        if (zarr_dtype_number(t, element, out, 2) != numbers[i].n ||
            out[0] != numbers[i].want[0] || out[1] != numbers[i].want[1])
            fail_msg("%s of %s: %g %g", numbers[i].json, numbers[i].type, out[0], out[1]);
    }
    assert_int_equal(zarr_dtype_parse(find_type("<M8[s]"), "\"NaT\"", element, &terr),
                     ZARR_OK);
    assert_int_equal(zarr_dtype_number(find_type("<M8[s]"), element, out, 2), 1);
    assert_true(isnan(out[0]));
    assert_int_equal(zarr_dtype_parse(find_type("float32"), "\"NaN\"", element, &terr),
                     ZARR_OK);
    assert_int_equal(zarr_dtype_number(find_type("float32"), element, out, 2), 1);
    assert_true(isnan(out[0]));
}

/* ---- less than a byte ----------------------------------------------------------- */

static void unused_bits(void **state)
{
    const zarr_dtype *s4 = find_type("int4"), *u2 = find_type("uint2"),
                     *b = find_type("bool");
    /* Bits above the lowest 4 are ignored. */
    uint8_t stored[6] = {0x08, 0xf8, 0x47, 0xff, 0x00, 0x9f};
    static const uint8_t read[6] = {0xf8, 0xf8, 0x07, 0xff, 0x00, 0xff};
    uint8_t either[4] = {0x0f, 0xff, 0x07, 0xf8}, wrong[2] = {0x01, 0x17};
    static const uint8_t mended[4] = {0xff, 0xff, 0x07, 0xf8};
    uint8_t truth[4] = {0, 1, 2, 0x80}, low[2] = {3, 4};

    (void)state;
    assert_int_equal(zr_dtype_padded_bits(s4), 4);
    assert_int_equal(zr_dtype_padded_bits(b), 1);
    assert_int_equal(zr_dtype_padded_bits(find_type("int8")), 0);
    assert_int_equal(zr_dtype_padded_bits(find_type("complex64")), 0);
    assert_false(zr_dtype_is_padded_well(s4, stored, 6));
    zr_dtype_unpad(s4, stored, 6);
    assert_memory_equal(stored, read, 6);
    assert_true(zr_dtype_is_padded_well(s4, stored, 6));

    assert_false(zr_dtype_is_padded_well(s4, either, 4));
    assert_int_equal(zr_dtype_pad(s4, either, 4, &terr), ZARR_OK);
    assert_memory_equal(either, mended, 4);
    assert_int_equal(zr_dtype_pad(s4, wrong, 2, &terr), ZARR_ERR_INVALID);
    assert_says("an element is not a valid int4: it has bits set above its 4 ");

    assert_true(zr_dtype_is_padded_well(u2, low, 1));
    assert_false(zr_dtype_is_padded_well(u2, low, 2));
    assert_int_equal(zr_dtype_pad(u2, low, 2, &terr), ZARR_ERR_INVALID);
    assert_says("not a valid uint2: it has bits set above its 2 ");
    /* Any nonzero byte is true. */
    assert_int_equal(zr_dtype_pad(b, truth, 4, &terr), ZARR_OK);
    assert_memory_equal(truth, "\0\1\1\1", 4);
}

/* In fields of structs, also of structs in subarrays. Other fields are unchanged. */
static void unused_bits_of_fields(void **state)
{
    static const char text[] = "{\"name\":\"struct\",\"configuration\":{\"fields\":["
                               "{\"name\":\"x\",\"data_type\":\"uint8\"},{\"name\":\"n\","
                               "\"data_type\":\"int4\"},"
                               "{\"name\":\"in\",\"data_type\":{\"name\":\"struct\","
                               "\"configuration\":{\"fields\":["
                               "{\"name\":\"f\",\"data_type\":\"bool\"},{\"name\":\"u\","
                               "\"data_type\":\"uint4\"}]}}}"
                               "]}}";
    const zarr_dtype *t = find_type(text), *rows = NULL;
    uint8_t two[8] = {0xff, 0x0e, 7, 1, 0x80, 0xfe, 0, 15};
    static const uint8_t mended[8] = {0xff, 0xfe, 1, 1, 0x80, 0xfe, 0, 15};
    uint8_t many[5] = {9, 2, 0, 0, 0x40};

    (void)state;
    assert_true(zr_dtype_is_padded(t));
    assert_false(zr_dtype_is_padded(find_type("[[\"a\",\"|u1\"]]")));
    assert_int_equal(zr_dtype_pad(t, two, 2, &terr), ZARR_OK);
    assert_memory_equal(two, mended, 8);
    assert_false(zr_dtype_is_padded_well(t, two, 2)); /* fields are ignored */
    two[7] = 0x1f;
    assert_int_equal(zr_dtype_pad(t, two, 2, &terr), ZARR_ERR_INVALID);
    assert_says("an element is not a valid uint4: it has bits set above its 4 ");
    two[7] = 15;
    two[1] = 0x2e;
    assert_int_equal(zr_dtype_pad(t, two, 2, &terr), ZARR_ERR_INVALID);
    assert_says("an element is not a valid int4: ");

    rows = find_type("[[\"a\",\"|u1\"],[\"b\",[[\"c\",\"|b1\"],[\"d\",\"|b1\"]],[2]]]");
    zr_dtype_unpad(rows, many, 1);
    assert_memory_equal(many, "\x09\1\0\0\1", 5);
}

static void pack_elements(void **state)
{
    static const int8_t fours[5] = {-8, 7, 0, -1, 3};
    static const uint8_t fours_packed[3] = {0x78, 0xf0, 0x03};
    static const uint8_t twos[5] = {3, 0, 1, 2, 1}, twos_packed[2] = {0x93, 0x01};
    static const uint8_t truths[9] = {1, 0, 0, 1, 0, 0, 0, 1, 1};
    static const uint8_t truths_packed[2] = {0x89, 0x01};
    uint8_t got[16];

    (void)state;
    memset(got, 0xee, sizeof got);
    zr_packed_put(find_type("int4"), got, fours, 5);
    assert_memory_equal(got, fours_packed, 3);
    assert_int_equal(got[3], 0xee);
    zr_packed_get(find_type("int4"), got, fours_packed, 5);
    assert_memory_equal(got, fours, 5);
    zr_packed_put(find_type("uint2"), got, twos, 5);
    assert_memory_equal(got, twos_packed, 2);
    zr_packed_get(find_type("uint2"), got, twos_packed, 5);
    assert_memory_equal(got, twos, 5);
    memset(got, 0xee, sizeof got);
    zr_packed_put(find_type("bool"), got, truths, 9);
    assert_memory_equal(got, truths_packed, 2);
    assert_int_equal(got[2], 0xee);
    zr_packed_get(find_type("bool"), got, truths_packed, 9);
    assert_memory_equal(got, truths, 9);
    /* Eight elements end at a byte border: the bytes behind are unchanged. */
    memset(got, 0xee, sizeof got);
    zr_packed_put(find_type("bool"), got, truths, 8);
    assert_int_equal(got[0], 0x89);
    assert_int_equal(got[1], 0xee);
}

/* ---- variable length ---- */

/* hex NULL: parsing fails, and `write` has the message; else the bytes, and the text
 * written for them. */
static const struct {
    const char *type, *json;
    int format;
    const char *hex, *write;
} any_length[] = {
    {"string", "\"h\\u00e9\\ud83d\\ude00\"", 3, "68c3a9f09f9880", "\"hé😀\""},
    {"string", "\"\\\"\\\\\\n\\u0000\\u007f\"", 3, "225c0a007f",
     "\"\\\"\\\\\\n\\u0000\x7f\""},
    {"string", "\"\"", 3, "", "\"\""},
    {"string", "0", 2, "", "\"\""},
    {"string", "0", 3, NULL, "0 is not a valid string: text is expected"},
    {"string", "1", 2, NULL, "1 is not a valid string: text is expected"},
    {"string", "[]", 3, NULL, "text is expected"},
    {"bytes", "\"AAH/\"", 3, "0001ff", "\"AAH/\""},
    {"bytes", "\"AAH/AA==\"", 2, "0001ff00", "\"AAH/AA==\""},
    {"bytes", "\"\"", 3, "", "\"\""},
    {"bytes", "[0,1,255]", 3, "0001ff", "\"AAH/\""},
    {"bytes", "[]", 3, "", "\"\""},
    {"bytes", "0", 2, "", "\"\""},
    {"bytes", "[1,256]", 3, NULL, "numbers from 0 to 255 are expected"},
    {"bytes", "[1,\"a\"]", 3, NULL, "numbers from 0 to 255 are expected"},
    {"bytes", "\"AAH\"", 3, NULL, "base64 text is expected"},
    {"bytes", "\"*\"", 3, NULL, "base64 text is expected"},
    {"bytes", "\"****\"", 3, NULL, "base64 text is expected"},
    {"bytes", "0", 3, NULL, "base64 text or a list of numbers is expected"},
    {"bytes", "{}", 2, NULL, "base64 text or a list of numbers is expected"},
    {"vlen-array[uint8]", "[0,1,255]", 2, "0001ff", "[0,1,255]"},
    {"vlen-array[uint8]", "[]", 2, "", "0"},
    {"vlen-array[uint8]", "[]", 3, "", "[]"},
    {"vlen-array[uint8]", "0", 2, "", "0"},
    {"vlen-array[uint8]", "\"\"", 2, "", "0"},
    {"vlen-array[|S2]", "[\"YWI=\",\"\"]", 2, "61620000", "[\"YWI=\",\"AAA=\"]"},
    {"vlen-array[uint8]", "0", 3, NULL, "a list is expected"},
    {"vlen-array[uint8]", "5", 2, NULL, "a list is expected"},
    {"vlen-array[uint8]", "{}", 2, NULL, "a list is expected"},
    {"vlen-array[uint8]", "[1,256]", 2, NULL, "256 is not a valid uint8"},
    {"vlen-array[uint8]", "[1,null]", 2, NULL, "null is not a valid uint8"},
    {"vlen-array[uint8]", "[[1]]", 2, NULL, "is not a valid uint8"},
};

static void values_of_any_length(void **state)
{
    (void)state;
    for (size_t i = 0; i < ZR_COUNT(any_length); i++) {
        const zarr_dtype *t = find_type(any_length[i].type);
        struct zr_json *written = NULL;
        struct zr_json_doc doc;
        struct zr_str text;
        char hex[64] = "";
        zarr_vlen v = {"left", 4};
        zarr_status st;

        zr_json_doc_init(&doc, NULL);
        zr_str_init(&text, NULL);
        assert_int_equal(zr_json_parse(&doc, any_length[i].json,
                                       strlen(any_length[i].json), NULL, &terr),
                         ZARR_OK);
        st = zr_dtype_fill_parse(t, doc.root, any_length[i].format, &v, &terr);
        if (!any_length[i].hex) {
            assert_int_equal(st, ZARR_ERR_INVALID);
            assert_says(any_length[i].write);
            assert_true(!v.data && !v.bytes); /* there is nothing to release */
        } else {
            if (st != ZARR_OK)
                fail_msg("%s: %s", any_length[i].json, terr.message);
            for (uint64_t k = 0; k < v.bytes; k++)
                snprintf(hex + 2 * k, 3, "%02x", ((const uint8_t *)v.data)[k]);
            assert_string_equal(hex, any_length[i].hex);
            assert_int_equal(
                zr_dtype_fill_write(t, &v, any_length[i].format, &doc, &written, &terr),
                ZARR_OK);
            zr_json_write(written, 0, &text);
            assert_string_equal(zr_str_text(&text), any_length[i].write);
        }
        zarr_dtype_release(t, &v);
        assert_true(!v.data && !v.bytes);
        zr_str_deinit(&text);
        zr_json_doc_deinit(&doc);
    }
}

/* Lists of items with a byte order are in the order of the machine. */
static void lists(void **state)
{
    const zarr_dtype *t = find_type("vlen-array[int32]");
    const int32_t want[3] = {-1, 65536, 7};
    char text[32];
    size_t n = 0;
    zarr_vlen v;

    (void)state;
    assert_string_equal(zarr_dtype_name(t), "vlen-array[int32]");
    assert_string_equal(zarr_dtype_v2(t), "|O");
    assert_ptr_equal(zarr_dtype_item(t), find_type("int32"));
    assert_null(zarr_dtype_item(find_type("string")));
    assert_null(zarr_dtype_item(NULL));
    assert_int_equal(zarr_dtype_parse(t, "[-1,65536,7]", &v, &terr), ZARR_OK);
    assert_int_equal(v.bytes, 12);
    assert_memory_equal(v.data, want, 12);
    assert_int_equal(zarr_dtype_print(t, &v, text, sizeof text, &n, &terr), ZARR_OK);
    assert_string_equal(text, "[-1,65536,7]");
    for (size_t cap = 0; cap < 12; cap++) { /* cut, and never beyond the end */
        memset(text, 'x', sizeof text);
        assert_int_equal(zarr_dtype_print(t, &v, cap ? text : NULL, cap, &n, &terr),
                         ZARR_OK);
        assert_int_equal(n, 12);
        assert_int_equal(text[cap], 'x');
        if (cap)
            assert_memory_equal(text, "[-1,65536,7]", cap - 1);
    }
    v.bytes = 11;
    assert_int_equal(zarr_dtype_print(t, &v, text, sizeof text, &n, &terr),
                     ZARR_ERR_INVALID);
    assert_says("vlen-array[int32]: an element of 11 bytes");
    v.bytes = 12;
    zarr_dtype_release(t, &v);
    v = (zarr_vlen){NULL, 4};
    assert_int_equal(zarr_dtype_print(t, &v, text, sizeof text, &n, &terr),
                     ZARR_ERR_INVALID);
    assert_says("4 bytes at address NULL");
}

static const struct {
    const char *name;
    zarr_status st;
    const char *says;
} no_lists[] = {
    {"vlen-array", ZARR_ERR_INVALID, "in brackets, \"vlen-array[int32]\""},
    {"vlen-array[]", ZARR_ERR_INVALID, "in brackets"},
    {"vlen-array[vlen-array[int8]]", ZARR_ERR_UNSUPPORTED, "lists of lists or structs"},
    {"vlen-array[[[\"a\",\"<i4\"]]]", ZARR_ERR_UNSUPPORTED, "lists of lists or structs"},
    {"vlen-array[string]", ZARR_ERR_UNSUPPORTED, "items must have a fixed length"},
    {"vlen-array[nothing]", ZARR_ERR_UNSUPPORTED, "nothing"},
    {"{\"name\":\"vlen-array\",\"configuration\":{\"dtype\":\"<i4\"}}", ZARR_ERR_INVALID,
     "in brackets"},
};

static void refused_lists(void **state)
{
    const zarr_dtype *t = NULL;

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(no_lists); i++) {
        const zarr_status st =
            zr_dtype_find(&registry, no_lists[i].name, &t, NULL, &terr);

        if (st != no_lists[i].st)
            fail_msg("%s: %d %s", no_lists[i].name, st, terr.message);
        assert_says(no_lists[i].says);
    }
}

/* Values that cannot be printed: a mistake of the application, or damage in a store. */
static void unprintable(void **state)
{
    const zarr_vlen bad = {"a\xff", 2}, none = {NULL, 3}, huge = {"", SIZE_MAX / 8 + 1};
    char text[16];
    size_t n = 0;

    (void)state;
    assert_int_equal(
        zarr_dtype_print(find_type("string"), &bad, text, sizeof text, &n, &terr),
        ZARR_ERR_CORRUPT);
    assert_says("string: an element is not valid UTF-8");
    assert_int_equal(
        zarr_dtype_print(find_type("string"), &none, text, sizeof text, &n, &terr),
        ZARR_ERR_INVALID);
    assert_says("string: an element of 3 bytes at address NULL");
    assert_int_equal(
        zarr_dtype_print(find_type("bytes"), &none, text, sizeof text, &n, &terr),
        ZARR_ERR_INVALID);
    assert_int_equal(
        zarr_dtype_print(find_type("bytes"), &huge, text, sizeof text, &n, &terr),
        ZARR_ERR_LIMIT);
    assert_int_equal(
        zarr_dtype_print(find_type("string"), &huge, text, sizeof text, &n, &terr),
        ZARR_ERR_CORRUPT);
}

/* TensorStore writes v2 fill values of types that NumPy lacks as the byte in base64. */
static void base64_floats(void **state)
{
    const zarr_dtype *t = find_type("float4_e2m1fn");
    struct zr_json *written = NULL;
    struct zr_json_doc doc;
    uint8_t v = 0;

    (void)state;
    zr_json_doc_init(&doc, NULL);
    assert_int_equal(zr_json_parse(&doc, "[\"Bg==\",\"EA==\",\"BgA=\"]", 22, NULL, &terr),
                     ZARR_OK);
    assert_int_equal(zr_dtype_fill_parse(t, zr_json_at(doc.root, 0), 2, &v, &terr),
                     ZARR_OK);
    assert_int_equal(v, 6); /* 4.0 */
    assert_int_equal(zr_dtype_fill_write(t, &v, 2, &doc, &written, &terr), ZARR_OK);
    assert_true(zr_json_is_text(written, "Bg=="));
    assert_int_equal(zr_dtype_fill_write(t, &v, 3, &doc, &written, &terr), ZARR_OK);
    assert_string_equal(written->u.text.ptr, "4.0");
    assert_int_equal(zr_dtype_fill_parse(t, zr_json_at(doc.root, 0), 3, &v, &terr),
                     ZARR_ERR_INVALID);
    assert_says("are expected");
    assert_int_equal(zr_dtype_fill_parse(t, zr_json_at(doc.root, 1), 2, &v, &terr),
                     ZARR_ERR_INVALID);
    assert_says("out of range"); /* has more than four bits */
    assert_int_equal(zr_dtype_fill_parse(t, zr_json_at(doc.root, 2), 2, &v, &terr),
                     ZARR_ERR_INVALID);
    zr_json_doc_deinit(&doc);
}

/* ---- how numbers are stored -------------------------------------------------- */

/* One number by the name of its data type and by NumPy's; NULL: it has no such name. */
static const struct {
    const char *dtype, *numpy;
    uint8_t kind, bytes, bits, parts;
} descriptions[] = {
    {"int8", "|i1", ZARR_KIND_INT, 1, 8, 1},
    {"uint16", "=u2", ZARR_KIND_UINT, 2, 16, 1},
    {"int64", "=i8", ZARR_KIND_INT, 8, 64, 1},
    {"float16", "=f2", ZARR_KIND_FLOAT, 2, 16, 1},
    {"float32", "=f4", ZARR_KIND_FLOAT, 4, 32, 1},
    {"float64", "=f8", ZARR_KIND_FLOAT, 8, 64, 1},
    {"complex64", "=c8", ZARR_KIND_COMPLEX, 4, 32, 2},
    {"complex128", "=c16", ZARR_KIND_COMPLEX, 8, 64, 2},
    {"int4", NULL, ZARR_KIND_INT, 1, 4, 1},
    {"bfloat16", NULL, ZARR_KIND_FLOAT, 2, 16, 1},
    {"float8_e4m3", NULL, ZARR_KIND_FLOAT, 1, 8, 1},
    {NULL, "|b1", ZARR_KIND_BOOL, 1, 8, 1},
};

static void one_description(void **state)
{
    (void)state;
    for (size_t i = 0; i < ZR_COUNT(descriptions); i++) {
        struct zr_number a = {0}, b = {0};

        if (descriptions[i].numpy)
            assert_true(zr_numpy_parse(descriptions[i].numpy, &b));
        a = b;
        if (descriptions[i].dtype)
            assert_true(zr_number_from_dtype(find_type(descriptions[i].dtype), &a));
        assert_int_equal(a.kind, descriptions[i].kind);
        assert_int_equal(a.bytes, descriptions[i].bytes);
        assert_int_equal(a.bits, descriptions[i].bits);
        assert_int_equal(a.parts, descriptions[i].parts);
        assert_int_equal(zr_numpy_has(&a), descriptions[i].numpy != NULL);
        assert_false(zr_number_is_swapped(&a) && descriptions[i].dtype);
        if (!descriptions[i].numpy)
            continue;
        assert_int_equal(zr_numpy_letter(&b), descriptions[i].numpy[1]);
        assert_true(a.kind == b.kind && a.bytes == b.bytes && a.bits == b.bits &&
                    a.parts == b.parts && a.real == b.real);
        a = zr_number_part(&b);
        assert_int_equal(a.parts, 1);
        assert_int_equal(a.bytes, b.bytes);
    }
}

static void numbers_in_both_orders(void **state)
{
    const uint8_t stored[9] = {0, 1, 2, 3, 4, 5, 6, 7, 0x88};
    uint64_t whole[2];
    double real[2];

    (void)state;
    for (int big = 0; big < 2; big++) {
        const char *names[] = {big ? ">u4" : "<u4", big ? ">i8" : "<i8",
                               big ? ">f4" : "<f4"};
        const uint64_t bits[] = {big ? 0x01020304 : 0x04030201,
                                 big ? UINT64_C(0x0102030405060788)
                                     : UINT64_C(0x8807060504030201),
                                 big ? 0x01020304 : 0x04030201};

        for (size_t i = 0; i < ZR_COUNT(names); i++) {
            uint8_t back[9] = {0};
            struct zr_number n;

            assert_true(zr_numpy_parse(names[i], &n));
            assert_int_equal(zr_number_bits(&n, stored + 1), bits[i]);
            zr_number_put(&n, back + 1, bits[i]);
            assert_memory_equal(back + 1, stored + 1, n.bytes);
            zr_block_real(&n, stored + 1, 1, real);
            zr_block_put_real(&n, back + 1, real, 1);
            if (n.real) {
                assert_true(real[0] == zr_numpy_load(&n, stored + 1).d);
                assert_memory_equal(back + 1, stored + 1, n.bytes);
                continue;
            }
            zr_block_whole(&n, stored + 1, 1, whole);
            assert_int_equal(whole[0], bits[i]);
            zr_block_put_whole(&n, back + 1, whole, 1, true);
            assert_memory_equal(back + 1, stored + 1, n.bytes);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compares),        cmocka_unit_test(as_numbers),
        cmocka_unit_test(unused_bits),     cmocka_unit_test(unused_bits_of_fields),
        cmocka_unit_test(pack_elements),   cmocka_unit_test(values_of_any_length),
        cmocka_unit_test(lists),           cmocka_unit_test(refused_lists),
        cmocka_unit_test(unprintable),     cmocka_unit_test(base64_floats),
        cmocka_unit_test(one_description), cmocka_unit_test(numbers_in_both_orders),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
