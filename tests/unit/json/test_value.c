/*
 * unit/json/test_value.c - trees built in code: writing, comparing, copying, changing.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "json/json.h"
#include "unit/json/fail_alloc.h"

static struct zr_json *make_object(struct zr_json_doc *doc)
{
    struct zr_json *o = zr_json_new(doc, ZR_JSON_OBJECT);
    struct zr_json *a = zr_json_new(doc, ZR_JSON_ARRAY);

    zr_json_append(doc, a, zr_json_new_u64(doc, UINT64_MAX));
    zr_json_append(doc, a, zr_json_new_i64(doc, INT64_MIN));
    zr_json_append(doc, a, zr_json_new_number(doc, "-0.0"));
    zr_json_append(doc, a, zr_json_new_number(doc, "0.1"));
    zr_json_append(doc, a, zr_json_new_text(doc, "NaN"));
    zr_json_append(doc, a, zr_json_new_number(doc, "-Infinity"));
    zr_json_append(doc, a, zr_json_new_bool(doc, true));
    zr_json_append(doc, a, zr_json_new(doc, ZR_JSON_NULL));
    zr_json_set(doc, o, "list", a);
    zr_json_set(doc, o, "empty", zr_json_new(doc, ZR_JSON_OBJECT));
    zr_json_set(doc, o, "none", zr_json_new(doc, ZR_JSON_ARRAY));
    zr_json_set(doc, o, "t\"\\\b\f\n\r\t\x01\x7f\xC3\xA9",
                zr_json_new_string(doc, "a\0b", 3));
    return o;
}

static void assert_text(const struct zr_json *v, unsigned indent, const char *want)
{
    struct zr_str s;

    zr_str_init(&s, NULL);
    zr_json_write(v, indent, &s);
    assert_string_equal(zr_str_text(&s), want);
    zr_str_deinit(&s);
}

static void write_values(void **state)
{
    struct zr_json_doc doc, back;
    struct zr_json *v;

    (void)state;
    zr_json_doc_init(&doc, NULL);
    zr_json_doc_init(&back, NULL);
    v = make_object(&doc);
    assert_true(zr_json_is_ok(&doc));
    assert_text(v, 0,
                "{\"list\":[18446744073709551615,-9223372036854775808,-0.0,0.1,\"NaN\","
                "\"-Infinity\",true,null],\"empty\":{},\"none\":[],"
                "\"t\\\"\\\\\\b\\f\\n\\r\\t\\u0001\x7f\xC3\xA9\":\"a\\u0000b\"}");
    assert_int_equal(zr_json_parse(&back, "{\"a\":[1,{\"b\":\"c\"}],\"d\":{},\"e\":[[]]}",
                                   35, NULL, NULL),
                     ZARR_OK);
    assert_text(
        back.root, 2,
        "{\n  \"a\": [\n    1,\n    {\n      \"b\": \"c\"\n    }\n  ],\n  \"d\": {},\n"
        "  \"e\": [\n    []\n  ]\n}");
    assert_text(NULL, 0, "");
    zr_json_doc_deinit(&back);
    zr_json_doc_deinit(&doc);
}

static void complete_values(void **state)
{
    static const char text[] =
        "{\"a\":[NaN,{\"b\":-Infinity},[],1],\"c\":Infinity,\"d\":2}";
    struct zr_json_doc doc, want;
    struct zr_str s;

    (void)state;
    zr_json_doc_init(&doc, NULL);
    zr_json_doc_init(&want, NULL);
    zr_str_init(&s, NULL);
    assert_int_equal(zr_json_parse(&doc, text, sizeof text - 1, NULL, NULL), ZARR_OK);
    zr_json_write(doc.root, 0, &s);
    assert_int_equal(zr_json_parse(&want, zr_str_text(&s), s.bytes, NULL, NULL), ZARR_OK);
    assert_false(zr_json_equal(doc.root, want.root));
    /* The value does not include what follows it. */
    zr_json_quote_tokens(zr_json_get(doc.root, "a"));
    assert_true(zr_json_equal(zr_json_get(doc.root, "a"), zr_json_get(want.root, "a")));
    assert_false(zr_json_equal(doc.root, want.root));
    zr_json_quote_tokens(doc.root);
    assert_true(zr_json_equal(doc.root, want.root));
    zr_json_quote_tokens(NULL);
    zr_str_deinit(&s);
    zr_json_doc_deinit(&want);
    zr_json_doc_deinit(&doc);
}

static void change_members(void **state)
{
    struct zr_json_doc doc;
    struct zr_json *o;

    (void)state;
    zr_json_doc_init(&doc, NULL);
    o = zr_json_new(&doc, ZR_JSON_OBJECT);
    for (int i = 0; i < 3; i++) {
        char key[2] = {(char)('a' + i), 0};

        zr_json_set(&doc, o, key, zr_json_new_i64(&doc, i));
    }
    zr_json_set(&doc, o, "b", zr_json_new_text(&doc, "x"));
    assert_text(o, 0, "{\"a\":0,\"b\":\"x\",\"c\":2}");
    zr_json_set(&doc, o, "c", zr_json_new_text(&doc, "y"));
    assert_true(zr_json_remove(o, "a"));
    assert_false(zr_json_remove(o, "a"));
    zr_json_set(&doc, o, "d", zr_json_new(&doc, ZR_JSON_NULL));
    assert_text(o, 0, "{\"b\":\"x\",\"c\":\"y\",\"d\":null}");
    assert_true(zr_json_remove(o, "d"));
    zr_json_add(&doc, o, "e", 1, zr_json_new_bool(&doc, false));
    assert_text(o, 0, "{\"b\":\"x\",\"c\":\"y\",\"e\":false}");
    assert_int_equal(zr_json_count(o), 3);
    assert_true(zr_json_is_text(zr_json_get(o, "b"), "x"));
    assert_false(zr_json_is_text(zr_json_get(o, "e"), "x"));
    zr_json_add(&doc, o, "f\0g", 3, zr_json_new_bool(&doc, true));
    assert_true(zr_json_has_key(zr_json_get(o, "e"), "e"));
    assert_false(zr_json_has_key(zr_json_get(o, "e"), "ee"));
    assert_false(zr_json_has_key(o->u.children.last, "f"));
    assert_false(zr_json_remove(NULL, "a"));
    zr_json_set(&doc, NULL, "a", o);
    zr_json_append(&doc, o, o); /* not an array: no effect */
    assert_null(zr_json_get(NULL, "a"));
    assert_int_equal(zr_json_count(NULL), 0);
    zr_json_doc_deinit(&doc);
}

static const struct {
    const char *a, *b;
    bool same;
} pairs[] = {
    {"1", "1.0", true},
    {"100", "1e2", true},
    {"1e2", "0.1E+3", true},
    {"0", "0.000e9", true},
    {"-0", "-0.0", true},
    {"-0.0", "0", false},
    {"0", "1", false},
    {"9007199254740993", "9007199254740992", false},
    {"9007199254740993", "9007199254740993.0", true},
    {"0.00012", "1.2e-4", true},
    {"12.5", "125e-1", true},
    {"12.5", "-12.5", false},
    {"12", "1200e-2", true},
    {"12", "120", false},
    {"0.1", "0.10000000000000001", false},
    {"1e99999999999999999999", "1e99999999999999999999", true},
    {"1e99999999999999999999", "1e999999999999999999999", false},
    {"NaN", "NaN", true},
    {"NaN", "\"NaN\"", false},
    {"Infinity", "-Infinity", false},
    {"1e5", "NaN", false},
    {"\"a\"", "\"\\u0061\"", true},
    {"\"a\"", "\"a\\u0000\"", false},
    {"[1,2]", "[1,2]", true},
    {"[1,2]", "[2,1]", false},
    {"[1,2]", "[1]", false},
    {"[]", "{}", false},
    {"{\"a\":1,\"b\":[2,{\"c\":3,\"d\":4}]}", "{\"b\":[2,{\"d\":4,\"c\":3}],\"a\":1}",
     true},
    {"{\"a\":1,\"b\":2,\"c\":3}", "{\"c\":3,\"b\":2,\"a\":1}", true},
    {"{\"a\":1,\"b\":2}", "{\"a\":1,\"c\":2}", false},
    {"{\"a\":1,\"b\":2}", "{\"a\":1,\"b\":3}", false},
    {"{\"a\":{}}", "{\"a\":null}", false},
    {"[[],[],{}]", "[[],[],{}]", true},
    {"true", "false", false},
    {"null", "null", true},
};

static void compare_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < ZR_COUNT(pairs); i++) {
        struct zr_json_doc a, b;

        zr_json_doc_init(&a, NULL);
        zr_json_doc_init(&b, NULL);
        assert_int_equal(zr_json_parse(&a, pairs[i].a, strlen(pairs[i].a), NULL, NULL),
                         ZARR_OK);
        assert_int_equal(zr_json_parse(&b, pairs[i].b, strlen(pairs[i].b), NULL, NULL),
                         ZARR_OK);
        if (zr_json_equal(a.root, b.root) != pairs[i].same ||
            zr_json_equal(b.root, a.root) != pairs[i].same)
            fail_msg("%s and %s", pairs[i].a, pairs[i].b);
        assert_true(zr_json_equal(a.root, a.root));
        assert_false(zr_json_equal(a.root, NULL));
        zr_json_doc_deinit(&a);
        zr_json_doc_deinit(&b);
    }
    assert_true(zr_json_equal(NULL, NULL));
}

static const char *read_excerpt(struct zr_json_doc *doc, const char *json)
{
    static char text[64];

    assert_int_equal(zr_json_parse(doc, json, strlen(json), NULL, NULL), ZARR_OK);
    return zr_json_excerpt(doc->root, text, sizeof text);
}

static void excerpts(void **state)
{
    struct zr_json_doc doc;
    char text[12], wide[80];

    (void)state;
    zr_json_doc_init(&doc, NULL);
    assert_string_equal(zr_json_excerpt(NULL, text, sizeof text), "nothing");
    assert_string_equal(zr_json_excerpt(zr_json_new_text(&doc, "abc"), text, sizeof text),
                        "\"abc\"");
    assert_string_equal(
        zr_json_excerpt(zr_json_new_text(&doc, "abcdefghijkl"), text, sizeof text),
        "\"abcdef...\"");
    assert_string_equal(
        zr_json_excerpt(zr_json_new_text(&doc, "abcde\xC3\xA9ghijkl"), text, sizeof text),
        "\"abcde...\"");
    assert_string_equal(zr_json_excerpt(zr_json_new_u64(&doc, 7), text, sizeof text),
                        "7");
    assert_string_equal(zr_json_excerpt(make_object(&doc), text, sizeof text),
                        "{\"list\"...");
    assert_string_equal(read_excerpt(&doc, "[[1,{\"a\":[]}],{},null]"),
                        "[[1,{\"a\":[]}],{},null]");
    assert_string_equal(read_excerpt(&doc, "[\"a\\u0000b\",{\"\\n\":1}]"),
                        "[\"a\\u0000b\",{\"\\u000a\":1}]");
    assert_string_equal(read_excerpt(&doc, "[[[[[[[[[1]]]]]]]],2]"),
                        "[[[[[[[[...]]]]]]],2]");
    for (size_t cap = 8; cap < sizeof wide; cap++) {
        memset(wide, '#', sizeof wide);
        zr_json_excerpt(make_object(&doc), wide, cap);
        assert_true(strlen(wide) < cap);
        assert_int_equal(wide[cap], '#');
    }
    zr_json_doc_deinit(&doc);
}

/* Parses, copies, changes and writes with the k-th allocation failing: no crash, no
 * leak, the right status. */
static zarr_status scenario(const zarr_allocator *alloc)
{
    zarr_status st = ZARR_OK;
    struct zr_json_doc doc, copy;
    struct zr_json *c;
    struct zr_str s;
    char text[4096] = "{\"x\":[";
    size_t n = strlen(text);

    for (int i = 0; i < 40; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "{\"v\":%d},", i);
    n += (size_t)snprintf(text + n, sizeof text - n, "0]");
    for (int i = 0; i < 40; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, ",\"k%d\":\"v\"", i);
    n += (size_t)snprintf(text + n, sizeof text - n, "}");
    zr_json_doc_init(&doc, alloc);
    zr_json_doc_init(&copy, alloc);
    zr_str_init(&s, alloc);
    ZR_TRY(zr_json_parse(&doc, text, n, NULL, NULL));
    c = zr_json_copy(&copy, doc.root);
    zr_json_set(&copy, c, "made", make_object(&copy));
    zr_json_write(c, 2, &s);
    if (!zr_json_is_ok(&copy) || s.failed)
        st = ZARR_ERR_NO_MEMORY;
out:
    zr_str_deinit(&s);
    zr_json_doc_deinit(&copy);
    zr_json_doc_deinit(&doc);
    return st;
}

enum {
    DEEP = 20000
};

/* Lists in each other, with a bare NaN in the innermost one: no walk recurses, and none
 * has a bound of its own. */
static void deepest(void **state)
{
    const zarr_limits limits = {.json_depth = DEEP}, less = {.json_depth = DEEP - 1};
    static char text[2 * DEEP + 3];
    struct zr_json_doc doc, copy;
    struct zr_str out;

    (void)state;
    memset(text, '[', DEEP);
    memcpy(text + DEEP, "NaN", 3);
    memset(text + DEEP + 3, ']', DEEP);
    zr_str_init(&out, NULL);
    zr_json_doc_init(&doc, NULL);
    zr_json_doc_init(&copy, NULL);
    assert_int_equal(zr_json_parse(&doc, text, sizeof text, &less, NULL), ZARR_ERR_LIMIT);
    assert_int_equal(zr_json_parse(&doc, text, sizeof text, &limits, NULL), ZARR_OK);
    copy.root = zr_json_copy(&copy, doc.root);
    assert_true(zr_json_is_ok(&copy));
    assert_true(zr_json_equal(copy.root, doc.root));
    zr_json_keep_tokens(copy.root);
    assert_true(zr_json_equal(copy.root, doc.root)); /* the tree is as it was */
    zr_json_write(copy.root, 0, &out);
    assert_int_equal(out.bytes, sizeof text);
    assert_memory_equal(zr_str_text(&out), text, sizeof text);
    zr_str_deinit(&out);
    zr_json_doc_deinit(&copy);
    zr_json_doc_deinit(&doc);
}

static void no_memory(void **state)
{
    (void)state;
    fail_alloc_every(scenario, 4);
}

/* ---- cost ------------------------------------------------------------------ */

enum {
    MANY = 100000
};

/* An object whose member i has the value i; `step` shuffles them. */
static void make_many(struct zr_json_doc *doc, uint64_t step)
{
    zr_json_doc_init(doc, NULL);
    doc->root = zr_json_new(doc, ZR_JSON_OBJECT);
    for (uint64_t k = 0; k < MANY; k++) {
        const uint64_t i = k * step % MANY;
        char key[24];
        const int bytes = snprintf(key, sizeof key, "%llu", (unsigned long long)i);

        zr_json_add(doc, doc->root, key, (size_t)bytes, zr_json_new_u64(doc, i));
    }
    assert_true(zr_json_is_ok(doc));
}

/* A search that begins anew for each member would take minutes here. */
static void equal_in_any_order(void **state)
{
    static const uint64_t steps[] = {MANY - 1, 7919, 49999};
    struct zr_json_doc a, b;

    (void)state;
    make_many(&a, 1);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        make_many(&b, steps[i]);
        assert_true(zr_json_equal(a.root, b.root));
        assert_true(zr_json_equal(b.root, a.root));
        zr_json_remove(b.root, "77");
        zr_json_set(&b, b.root, "x", zr_json_new_u64(&b, 77));
        assert_false(zr_json_equal(a.root, b.root));
        assert_false(zr_json_equal(b.root, a.root));
        zr_json_doc_deinit(&b);
    }
    zr_json_doc_deinit(&a);
}

static void lookup_steps(void **state)
{
    struct zr_json_lookup in = {.object = NULL};
    struct zr_json_doc doc;

    (void)state;
    make_many(&doc, 1);
    in.object = doc.root;
    for (uint64_t i = MANY; i-- > 0;) {
        char key[24];
        const int bytes = snprintf(key, sizeof key, "%llu", (unsigned long long)i);
        const struct zr_json *v = zr_json_lookup_get(&in, key, (size_t)bytes);
        uint64_t value = 0;

        assert_true(zr_json_u64(v, &value) && value == i);
        assert_true(in.steps <= (size_t)10 * MANY);
    }
    assert_null(zr_json_lookup_get(&in, "-1", 2));
    zr_json_lookup_end(&in);
    zr_json_doc_deinit(&doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(write_values),   cmocka_unit_test(complete_values),
        cmocka_unit_test(change_members), cmocka_unit_test(compare_values),
        cmocka_unit_test(excerpts),       cmocka_unit_test(deepest),
        cmocka_unit_test(no_memory),      cmocka_unit_test(equal_in_any_order),
        cmocka_unit_test(lookup_steps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
