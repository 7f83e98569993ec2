/*
 * unit/json/test_parse.c - valid and invalid JSON texts, and the positions in messages.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "json/json.h"

#define TEXT(s) s, sizeof(s) - 1

static zarr_status parse(struct zr_json_doc *doc, const char *text, size_t bytes,
                         zarr_error *err)
{
    /* An exact copy, so that a sanitizer detects a read past the end. */
    char *copy = malloc(bytes ? bytes : 1);
    zarr_status st;

    memcpy(copy, text, bytes);
    zr_json_doc_init(doc, NULL);
    st = zr_json_parse(doc, copy, bytes, NULL, err);
    memset(copy, 'x', bytes); /* the tree must not point into the text */
    free(copy);
    return st;
}

/* y: must parse; n: must fail. The number is the byte position in the message; -1:
 * any. */
static const struct {
    char want;
    const char *text;
    size_t bytes;
    int at;
} suite[] = {
    {'y', TEXT("null"), -1},
    {'y', TEXT("true"), -1},
    {'y', TEXT(" false\n"), -1},
    {'y', TEXT("\xEF\xBB\xBF{}"), -1},
    {'y', TEXT("\"\""), -1},
    {'y', TEXT("\"asd\""), -1},
    {'y', TEXT("[[]   ]"), -1},
    {'y', TEXT("[\"\"]"), -1},
    {'y', TEXT("[]"), -1},
    {'y', TEXT("[\"a\"]"), -1},
    {'y', TEXT("[false]"), -1},
    {'y', TEXT("[null, 1, \"1\", {}]"), -1},
    {'y', TEXT("[1\n]"), -1},
    {'y', TEXT(" [1]"), -1},
    {'y', TEXT("[1,null,null,null,2]"), -1},
    {'y', TEXT("[2] "), -1},
    {'y', TEXT("[123e65]"), -1},
    {'y', TEXT("[0e+1]"), -1},
    {'y', TEXT("[0e1]"), -1},
    {'y', TEXT("[ 4]"), -1},
    {'y', TEXT("[-0.000000000000000000000000000000000000000000000000000000000000001]"),
     -1},
    {'y', TEXT("[20e1]"), -1},
    {'y', TEXT("[-0]"), -1},
    {'y', TEXT("[-123]"), -1},
    {'y', TEXT("[-1]"), -1},
    {'y', TEXT("[1E22]"), -1},
    {'y', TEXT("[1E-2]"), -1},
    {'y', TEXT("[1E+2]"), -1},
    {'y', TEXT("[123.456e78]"), -1},
    {'y', TEXT("[123.456789]"), -1},
    {'y', TEXT("[1e400]"),
     -1}, /* the text of the number is kept: the caller converts it */
    {'y', TEXT("[-123123e100000]"), -1},
    {'y', TEXT("[100000000000000000000]"), -1},
    {'y', TEXT("{\"asd\":\"sdf\", \"dfg\":\"fgh\"}"), -1},
    {'y', TEXT("{\"\":0}"), -1},
    {'y', TEXT("{\"foo\\u0000bar\": 42}"), -1},
    {'y', TEXT("{\n\"a\": \"b\"\n}"), -1},
    {'y', TEXT("{\"a\":[]}"), -1},
    {'y', TEXT("[\"\\u0060\\u012a\\u12AB\"]"), -1},
    {'y', TEXT("[\"\\uD801\\udc37\"]"), -1},
    {'y', TEXT("[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"]"), -1},
    {'y', TEXT("[\"\\\\u0000\"]"), -1},
    {'y', TEXT("[\"a/*b*/c/*d//e\"]"), -1},
    {'y', TEXT("[\"\\\\a\"]"), -1},
    {'y', TEXT("[\"\\uDBFF\\uDFFF\"]"), -1},
    {'y', TEXT("[\"\xF4\x8F\xBF\xBF\"]"), -1},
    {'y', TEXT("[\"\xEF\xBF\xBF\"]"), -1},
    {'y', TEXT("[\"\\u0000\"]"), -1},
    {'y', TEXT("[\"\\uFFFE\"]"), -1},
    {'y', TEXT("[\"\xCF\x80\"]"), -1},
    {'y', TEXT("[\"\xF0\x9B\xBF\xBF\"]"), -1},
    {'y', TEXT("[\"\x7F\"]"), -1},
    {'y', TEXT("[\"\xE2\x80\xA8\"]"), -1},
    {'y', TEXT("[\"\xED\x9F\xBF\xEE\x80\x80\"]"),
     -1}, /* the neighbours of the surrogates */
    {'y', TEXT("\t[\r\n]\t"), -1},
    /* accepted although it is not JSON */
    {'y', TEXT("[NaN]"), -1},
    {'y', TEXT("[Infinity,-Infinity]"), -1},
    {'y', TEXT("-Infinity"), -1},

    {'n', TEXT(""), 0},
    {'n', TEXT(" "), 1},
    {'n', TEXT("\xEF\xBB\xBF"), 3},
    {'n', TEXT("\xEF\xBB{}"), 0},
    {'n', TEXT("\xFF\xFE[\0]\0"), 0},
    {'n', TEXT("[1 true]"), 3},
    {'n', TEXT("[a\xE5]"), 1},
    {'n', TEXT("[\"\": 1]"), 3},
    {'n', TEXT("[\"\"],"), 4},
    {'n', TEXT("[,1]"), 1},
    {'n', TEXT("[1,,2]"), 3},
    {'n', TEXT("[\"x\"]]"), 5},
    {'n', TEXT("[\"\",]"), 4},
    {'n', TEXT("[\"x\""), 4},
    {'n', TEXT("[x"), 1},
    {'n', TEXT("[3[4]]"), 2},
    {'n', TEXT("[1:2]"), 2},
    {'n', TEXT("[,]"), 1},
    {'n', TEXT("[-]"), 2},
    {'n', TEXT("[   , \"\"]"), 4},
    {'n', TEXT("[\"a\",\n4\n,1,"), 11},
    {'n', TEXT("[1,]"), 3},
    {'n', TEXT("[\"\va\"\\f]"), 2},
    {'n', TEXT("[*]"), 1},
    {'n', TEXT("[1,\n1\n,1"), 8},
    {'n', TEXT("[{}"), 3},
    {'n', TEXT("[fals]"), 1},
    {'n', TEXT("[nul]"), 1},
    {'n', TEXT("[tru]"), 1},
    {'n', TEXT("123\0"), 3},
    {'n', TEXT("[++1234]"), 1},
    {'n', TEXT("[+1]"), 1},
    {'n', TEXT("[+Inf]"), 1},
    {'n', TEXT("[+Infinity]"), 1},
    {'n', TEXT("[-01]"), 1},
    {'n', TEXT("[-1.0.]"), 5},
    {'n', TEXT("[-2.]"), 4},
    {'n', TEXT("[-NaN]"), 2},
    {'n', TEXT("[nan]"), 1},
    {'n', TEXT("[inf]"), 1},
    {'n', TEXT("[Inf]"), 1},
    {'n', TEXT("[.-1]"), 1},
    {'n', TEXT("[.2e-3]"), 1},
    {'n', TEXT("[0.1.2]"), 4},
    {'n', TEXT("[0.3e+]"), 6},
    {'n', TEXT("[0.3e]"), 5},
    {'n', TEXT("[0.e1]"), 3},
    {'n', TEXT("[0E+]"), 4},
    {'n', TEXT("[0E]"), 3},
    {'n', TEXT("[0e+-1]"), 4},
    {'n', TEXT("[1.0e+]"), 6},
    {'n', TEXT("[1 000.0]"), 3},
    {'n', TEXT("[1eE2]"), 3},
    {'n', TEXT("[2.e3]"), 3},
    {'n', TEXT("[9.e+]"), 3},
    {'n', TEXT("[1+2]"), 2},
    {'n', TEXT("[0x1]"), 2},
    {'n', TEXT("[0x42]"), 2},
    {'n', TEXT("[0xFF]"), 2},
    {'n', TEXT("[- 1]"), 2},
    {'n', TEXT("[-012]"), 1},
    {'n', TEXT("[012]"), 1},
    {'n', TEXT("[1.8011670033376514H-308]"), -1},
    {'n', TEXT("[\xEF\xBC\x91]"), 1},
    {'n', TEXT("{\"x\", null}"), 4},
    {'n', TEXT("{\"x\"::\"b\"}"), 5},
    {'n', TEXT("{\"a\":\"a\" 123}"), 9},
    {'n', TEXT("{key: 'value'}"), 1},
    {'n', TEXT("{\"a\" b}"), 5},
    {'n', TEXT("{:\"b\"}"), 1},
    {'n', TEXT("{\"a\""), 4},
    {'n', TEXT("{\"a\":"), 5},
    {'n', TEXT("{\"a\" \"b\"}"), 5},
    {'n', TEXT("{1:1}"), 1},
    {'n', TEXT("{null:null}"), 1},
    {'n', TEXT("{\"id\":0,,,,,}"), 8},
    {'n', TEXT("{'a':0}"), 1},
    {'n', TEXT("{\"id\":0,}"), 8},
    {'n', TEXT("{\"a\":\"b\"}/**/"), 9},
    {'n', TEXT("{\"a\":\"b\"}//"), 9},
    {'n', TEXT("{\"a\":\"b\",,\"c\":\"d\"}"), 9},
    {'n', TEXT("{a: \"b\"}"), 1},
    {'n', TEXT("{\"a\":\"a"), 7},
    {'n', TEXT("{ \"foo\" : \"bar\", \"a\" }"), 21},
    {'n', TEXT("{\"a\":\"b\"}#"), 9},
    {'n', TEXT("{]"), 1},
    {'n', TEXT("[}"), 1},
    {'n', TEXT("{}}"), 2},
    {'n', TEXT("{"), 1},
    {'n', TEXT("["), 1},
    {'n', TEXT("]"), 0},
    {'n', TEXT("2@"), 1},
    {'n', TEXT("{[\"x\"]"), 1},
    {'n', TEXT("[\"\\uD800\\\"]"), 2},
    {'n', TEXT("[\"\\uD800\\u\"]"), 2},
    {'n', TEXT("[\"\\uD800\\u1\"]"), 2},
    {'n', TEXT("[\"\\uD800\\u1x\"]"), 2},
    {'n', TEXT("[\xC3\xA9]"), 1},
    {'n', TEXT("[\"\\x00\"]"), 3},
    {'n', TEXT("[\"\\\\\\\"]"), 7},
    {'n', TEXT("[\"\\\t\"]"), 3},
    {'n', TEXT("[\"\\\xF0\x9F\x8C\x80\"]"), 3},
    {'n', TEXT("[\"\\\"]"), 5},
    {'n', TEXT("[\"\\u00A\"]"), 2},
    {'n', TEXT("[\"\\a\"]"), 3},
    {'n', TEXT("[\"\\uqqqq\"]"), 2},
    {'n', TEXT("[\"\\\xE5\"]"), 3},
    {'n', TEXT("[\\u0020\"asd\"]"), 1},
    {'n', TEXT("[\\n]"), 1},
    {'n', TEXT("\""), 1},
    {'n', TEXT("['single quote']"), 1},
    {'n', TEXT("abc"), 0},
    {'n', TEXT("[\"\\"), 3},
    {'n', TEXT("[\"a\0a\"]"), 3},
    {'n', TEXT("[\"new\nline\"]"), 5},
    {'n', TEXT("[\"\t\"]"), 2},
    {'n', TEXT("\"\\UA66D\""), 2},
    {'n', TEXT("\"\"x"), 2},
    {'n', TEXT("<.>"), 0},
    {'n', TEXT("[True]"), 1},
    {'n', TEXT("1]"), 1},
    {'n', TEXT("{\"x\": true,"), 11},
    {'n', TEXT("[\v]"), 1},
    {'n', TEXT("[\xE2\x81\xA0]"), 1},
    {'n', TEXT("[\f]"), 1},
    {'n', TEXT("nullx"), 4},
    {'n', TEXT("[NaNs]"), 4},
    {'n', TEXT("-Infinit"), 1},
    /* surrogates and bytes that are not UTF-8 (JSONTestSuite leaves these open; we
     * refuse) */
    {'n', TEXT("[\"\\uDADA\"]"), 2},
    {'n', TEXT("[\"\\uD888\\u1234\"]"), 2},
    {'n', TEXT("[\"\\uDd1e\\uD834\"]"), 2},
    {'n', TEXT("[\"\\uDFAA\"]"), 2},
    {'n', TEXT("[\"\\uD800\\uD800\\n\"]"), 2},
    {'n', TEXT("[\"\xE6\x97\xA5\xD1\x88\xFA\"]"), 7},
    {'n', TEXT("[\"\xF4\xBF\xBF\xBF\"]"), 2},
    {'n', TEXT("[\"\xED\xA0\x80\"]"), 2},
    {'n', TEXT("[\"\x81\"]"), 2},
    {'n', TEXT("[\"\xC0\xAF\"]"), 2},
    {'n', TEXT("[\"\xC1\xBF\"]"), 2},
    {'n', TEXT("[\"\xE0\x80\xAF\"]"), 2},
    {'n', TEXT("[\"\xF0\x80\x80\xAF\"]"), 2},
    {'n', TEXT("[\"\xFC\x83\xBF\xBF\xBF\xBF\"]"), 2},
    {'n', TEXT("[\"\xE0\xFF\"]"), 2},
    {'n', TEXT("[\"\xE2\x82\"]"), 2},
    {'n', TEXT("[\"\xFF\"]"), 2},
    {'n', TEXT("\"\xF0\x9F"), 1},
    /* duplicate members make a document ambiguous */
    {'n', TEXT("{\"a\":1,\"a\":1}"), 7},
    {'n', TEXT("{\"a\":1,\"\\u0061\":2}"), 7},
    {'n', TEXT("{\"a\":{\"b\":1,\"c\":2,\"b\":3}}"), 18},
    {'y', TEXT("{\"a\":1,\"b\":{\"a\":1}}"), -1},
};

static void the_suite(void **state)
{
    (void)state;
    for (size_t i = 0; i < ZR_COUNT(suite); i++) {
        struct zr_json_doc doc;
        zarr_error err = {0};
        zarr_status st = parse(&doc, suite[i].text, suite[i].bytes, &err);

        if (suite[i].want == 'y' ? st != ZARR_OK : st != ZARR_ERR_CORRUPT)
            fail_msg("case %zu %s: status %d, %s", i, suite[i].text, st, err.message);
        if (st != ZARR_OK) {
            unsigned long at = strtoul(err.message + strlen("byte "), NULL, 10);

            assert_null(doc.root);
            assert_memory_equal(err.message, "byte ", 5);
            if (suite[i].at >= 0 && at != (unsigned long)suite[i].at)
                fail_msg("case %zu %s: %s, not %d", i, suite[i].text, err.message,
                         suite[i].at);
        }
        zr_json_doc_deinit(&doc);
    }
}

/* Every proper prefix of a valid document is refused as incomplete, with no read past
 * the end. */
static void prefixes(void **state)
{
    static const char text[] =
        "{\"k\\u00e9\":[1.5e3,-2,\"\\uD83D\\uDE00\xC3\xA9\",true,null,{}]}";

    (void)state;
    for (size_t n = 0; n < sizeof text - 1; n++) {
        struct zr_json_doc doc;

        assert_int_equal(parse(&doc, text, n, NULL), ZARR_ERR_CORRUPT);
        zr_json_doc_deinit(&doc);
    }
}

static void values(void **state)
{
    static const char text[] =
        " {\"n\":18446744073709551615,\"m\":-9223372036854775808,\"f\":-0.5e1,\"s\":"
        "\"a\\u0000b\","
        "\"e\":\"\",\"u\":\"\\uD83D\\uDE00\",\"t\":[NaN,-Infinity,1,1.0]}";
    struct zr_json_doc doc;
    uint64_t u = 0;
    int64_t i = 0;
    double f = 0;
    const struct zr_json *t;

    (void)state;
    assert_int_equal(parse(&doc, text, sizeof text - 1, NULL), ZARR_OK);
    assert_true(doc.nan_tokens);
    assert_int_equal(zr_json_count(doc.root), 7);
    assert_true(zr_json_u64(zr_json_get(doc.root, "n"), &u));
    assert_true(u == UINT64_MAX);
    assert_false(zr_json_i64(zr_json_get(doc.root, "n"), &i));
    assert_true(zr_json_i64(zr_json_get(doc.root, "m"), &i));
    assert_true(i == INT64_MIN);
    assert_true(zr_json_f64(zr_json_get(doc.root, "f"), &f));
    assert_true(f == -5.0);
    assert_null(zr_json_string(zr_json_get(doc.root, "s")));
    assert_int_equal(zr_json_get(doc.root, "s")->u.text.bytes, 3);
    assert_memory_equal(zr_json_get(doc.root, "s")->u.text.ptr, "a\0b", 4);
    assert_string_equal(zr_json_string(zr_json_get(doc.root, "e")), "");
    assert_string_equal(zr_json_string(zr_json_get(doc.root, "u")), "\xF0\x9F\x98\x80");
    t = zr_json_get(doc.root, "t");
    assert_string_equal(zr_json_at(t, 0)->u.text.ptr, "NaN");
    assert_true(zr_json_f64(zr_json_at(t, 0), &f) && f != f);
    assert_true(zr_json_f64(zr_json_at(t, 1), &f) && f < 0 && f * 2 == f);
    assert_string_equal(zr_json_at(t, 2)->u.text.ptr, "1");
    assert_false(zr_json_u64(zr_json_at(t, 3), &u));
    assert_null(zr_json_at(t, 4));
    zr_json_doc_deinit(&doc);
}

static char *nest_arrays(size_t depth)
{
    char *text = malloc(2 * depth);

    memset(text, '[', depth);
    memset(text + depth, ']', depth);
    return text;
}

static void depth_limit(void **state)
{
    static const struct {
        uint32_t limit;
        size_t depth;
        zarr_status want;
    } cases[] = {{0, 1000, ZARR_OK},
                 {0, 1001, ZARR_ERR_LIMIT},
                 {3, 3, ZARR_OK},
                 {3, 4, ZARR_ERR_LIMIT},
                 {0, 100000, ZARR_ERR_LIMIT},
                 {UINT32_MAX, 100000, ZARR_OK}};

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(cases); i++) {
        zarr_limits limits = {.json_depth = cases[i].limit};
        struct zr_json_doc doc, copy;
        zarr_error err = {0};
        char *text = nest_arrays(cases[i].depth);
        struct zr_str out;

        zr_json_doc_init(&doc, NULL);
        zr_json_doc_init(&copy, NULL);
        zr_str_init(&out, NULL);
        assert_int_equal(zr_json_parse(&doc, text, 2 * cases[i].depth, &limits, &err),
                         cases[i].want);
        if (cases[i].want != ZARR_OK) {
            assert_non_null(strstr(err.message, "json_depth"));
        } else { /* the tree can be walked */
            struct zr_json *c = zr_json_copy(&copy, doc.root);

            assert_true(zr_json_equal(doc.root, c));
            zr_json_write(c, 0, &out);
            assert_int_equal(out.bytes, 2 * cases[i].depth);
            assert_memory_equal(zr_str_text(&out), text, out.bytes);
        }
        free(text);
        zr_str_deinit(&out);
        zr_json_doc_deinit(&copy);
        zr_json_doc_deinit(&doc);
    }
}

static void other_limits(void **state)
{
    zarr_limits limits = {.json_tokens = 4, .string_bytes = 5};
    static const struct {
        const char *text, *knob;
    } cases[] = {{"[1,2,3]", NULL},
                 {"[1,2,3,4]", "json_tokens"},
                 {"\"12345\"", NULL},
                 {"\"123456\"", "string_bytes"},
                 {"{\"12345\":1}", NULL},
                 {"{\"123456\":1}", "string_bytes"},
                 {"\"\\u00e9\\u00e9x\"", NULL},
                 {"12345", NULL},
                 {"123456", "string_bytes"}};

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(cases); i++) {
        struct zr_json_doc doc;
        zarr_error err = {0};

        zr_json_doc_init(&doc, NULL);
        assert_int_equal(
            zr_json_parse(&doc, cases[i].text, strlen(cases[i].text), &limits, &err),
            cases[i].knob ? ZARR_ERR_LIMIT : ZARR_OK);
        if (cases[i].knob)
            assert_non_null(strstr(err.message, cases[i].knob));
        zr_json_doc_deinit(&doc);
    }
}

/* 4 MB of numbers, and 100 000 members with a duplicate at the end: both take linear
 * time. */
static void big_ones(void **state)
{
    struct zr_json_doc doc;
    struct zr_str s;
    zarr_error err = {0};

    (void)state;
    zr_str_init(&s, NULL);
    zr_str_putc(&s, '[');
    for (int i = 0; i < 2000000; i++)
        zr_str_puts(&s, i ? ",1" : "1");
    zr_str_putc(&s, ']');
    assert_int_equal(parse(&doc, s.ptr, s.bytes, NULL), ZARR_OK);
    assert_int_equal(zr_json_count(doc.root), 2000000);
    zr_json_doc_deinit(&doc);

    zr_str_clear(&s);
    zr_str_putc(&s, '{');
    for (int i = 0; i < 100000; i++)
        zr_str_printf(&s, "\"key%d\":%d,", i, i);
    zr_str_puts(&s, "\"k\":1}");
    assert_int_equal(parse(&doc, s.ptr, s.bytes, NULL), ZARR_OK);
    zr_json_doc_deinit(&doc);
    s.bytes -= 6;
    zr_str_puts(&s, "\"key77777\":1}");
    assert_int_equal(parse(&doc, s.ptr, s.bytes, &err), ZARR_ERR_CORRUPT);
    assert_non_null(strstr(err.message, "\"key77777\" occurs twice"));
    zr_json_doc_deinit(&doc);
    zr_str_deinit(&s);
}

/* Blanks are read in words of eight bytes. A byte that ends blanks or a string is found
 * at each place, and nothing behind it counts. */
static void ends_at_each_place(void **state)
{
    static const char ends[] = "\"\\\x01\x1F\x80\xFF";
    char text[64];

    (void)state;
    for (size_t n = 0; n < 24; n++) {
        for (const char *end = ends; *end; end++) {
            const zarr_status want = *end == '"' ? ZARR_OK : ZARR_ERR_CORRUPT;
            struct zr_json_doc doc;

            text[0] = '"';
            memset(text + 1, (int)(n % 2 ? '~' : '!'), n);
            text[n + 1] = *end;
            memset(text + n + 2, ' ', n);
            assert_int_equal(parse(&doc, text, 2 * n + 2, NULL), want);
            if (want == ZARR_OK)
                assert_int_equal(doc.root->u.text.bytes, n);
            zr_json_doc_deinit(&doc);
            memset(text, ' ', n);
            memcpy(text + n, "\n7\v", 3);
            text[n + 2] = (char)(*end == '"' ? '\t' : '\v'); /* \v is no blank */
            assert_int_equal(parse(&doc, text, n + 3, NULL), want);
            zr_json_doc_deinit(&doc);
        }
    }
}

/* A zr_json_doc can be parsed into again. */
static void again(void **state)
{
    struct zr_json_doc doc;

    (void)state;
    zr_json_doc_init(&doc, NULL);
    assert_int_equal(zr_json_parse(&doc, "[NaN", 4, NULL, NULL), ZARR_ERR_CORRUPT);
    assert_null(doc.root);
    assert_int_equal(zr_json_parse(&doc, "[1]", 3, NULL, NULL), ZARR_OK);
    assert_false(doc.nan_tokens);
    assert_int_equal(zr_json_count(doc.root), 1);
    zr_json_doc_deinit(&doc);
    zr_json_doc_deinit(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_suite),    cmocka_unit_test(prefixes),
        cmocka_unit_test(values),       cmocka_unit_test(depth_limit),
        cmocka_unit_test(other_limits), cmocka_unit_test(big_ones),
        cmocka_unit_test(again),        cmocka_unit_test(ends_at_each_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
