/*
 * unit/dtype/test_struct.c - struct types: each spelling and the refused ones, the
 * offsets of fields, the byte order in storage, and elements as text.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "dtype/dtype.h"

static struct zr_dtype_registry registry;

static int open_registry(void **state)
{
    (void)state;
    if (zr_dtype_registry_init(&registry, NULL, NULL))
        return -1;
    for (const zarr_dtype_vtable *const *v = zr_dtype_core; *v; v++)
        if (zr_dtype_register(&registry, *v, "core", NULL))
            return -1;
    return 0;
}

static int close_registry(void **state)
{
    (void)state;
    zr_dtype_registry_deinit(&registry);
    return 0;
}

static const zarr_dtype *find(const char *text)
{
    const zarr_dtype *t = NULL;
    zarr_error err = {0};

    if (zr_dtype_find(&registry, text, &t, NULL, &err) != ZARR_OK)
        fail_msg("%s: %s", text, err.message);
    return t;
}

#define V3(fields) "{\"name\":\"struct\",\"configuration\":{\"fields\":[" fields "]}}"
#define OLD(fields)                                                                      \
    "{\"name\":\"structured\",\"configuration\":{\"fields\":[" fields "]}}"
#define RAW(n)            "{\"name\":\"raw_bytes\",\"configuration\":{\"length_bytes\":" #n "}}"
#define FIELD(name, type) "{\"name\":\"" name "\",\"data_type\":" type "}"
#define AB                FIELD("a", "\"int32\"") "," FIELD("b", "\"float64\"")

static const struct {
    const char *text, *v3, *v2;
    uint64_t bytes, n_fields;
} spelled[] = {
    {V3(AB), V3(AB), "[[\"a\",\"<i4\"],[\"b\",\"<f8\"]]", 12, 2},
    {OLD("[\"a\",\"int32\"],[\"b\",\"float64\"]"), V3(AB),
     "[[\"a\",\"<i4\"],[\"b\",\"<f8\"]]", 12, 2},
    {OLD(AB), V3(AB), "[[\"a\",\"<i4\"],[\"b\",\"<f8\"]]", 12, 2},
    {V3("[\"a\",\"int32\"],[\"b\",\"float64\"]"), V3(AB),
     "[[\"a\",\"<i4\"],[\"b\",\"<f8\"]]", 12, 2},
    {"[[\"a\",\"|i1\"],[\"\",\"|V3\"],[\"b\",\"<i4\"]]",
     V3(FIELD("a", "\"int8\"") "," FIELD("f1", RAW(3)) "," FIELD("b", "\"int32\"")),
     "[[\"a\",\"|i1\"],[\"f1\",\"|V3\"],[\"b\",\"<i4\"]]", 8, 3},
    {"[[\"a\",\">i4\"],[\"b\",\"<f8\"]]", V3(AB), "[[\"a\",\"<i4\"],[\"b\",\"<f8\"]]", 12,
     2},
    {"[[\"s\",\"|S3\"],[\"x\",\"|V2\"],[\"t\",\"<M8[10us]\"],[\"u\",\">U2\"]]",
     V3(FIELD(
         "s",
         "{\"name\":\"null_terminated_bytes\",\"configuration\":{\"length_"
         "bytes\":3}}") "," FIELD("x",
                                  RAW(2)) "," FIELD("t",
                                                    "{\"name\":\"numpy.datetime64\","
                                                    "\"configuration\":{\"unit\":"
                                                    "\"us\",\"scale_"
                                                    "factor\":10}}") "," FIELD("u",
                                                                               "{\"nam"
                                                                               "e\":"
                                                                               "\"fixe"
                                                                               "d_"
                                                                               "length"
                                                                               "_utf32"
                                                                               "\","
                                                                               "\"conf"
                                                                               "igurat"
                                                                               "ion\":"
                                                                               "{\"len"
                                                                               "gth_"
                                                                               "bytes"
                                                                               "\":8}"
                                                                               "}")),
     "[[\"s\",\"|S3\"],[\"x\",\"|V2\"],[\"t\",\"<M8[10us]\"],[\"u\",\"<U2\"]]", 21, 4},
    {"[[\"p\",[[\"x\",\"<f4\"],[\"y\",\">f4\"]]],[\"v\",\"|u1\"]]",
     V3(FIELD("p", V3(FIELD("x", "\"float32\"") "," FIELD("y", "\"float32\""))) "," FIELD(
         "v", "\"uint8\"")),
     "[[\"p\",[[\"x\",\"<f4\"],[\"y\",\"<f4\"]]],[\"v\",\"|u1\"]]", 9, 2},
    {"[[\"g\",\"<i2\",[2,3]],[\"h\",\"|u1\",2],[\"i\",\"|u1\",[]]]", NULL,
     "[[\"g\",\"<i2\",[2,3]],[\"h\",\"|u1\",[2]],[\"i\",\"|u1\"]]", 15, 3},
    {"[[\"\\u00e4 \\\"q\\\"\",\"|u1\"]]", V3(FIELD("\xc3\xa4 \\\"q\\\"", "\"uint8\"")),
     "[[\"\xc3\xa4 \\\"q\\\"\",\"|u1\"]]", 1, 1},
};

static void spellings(void **state)
{
    (void)state;
    for (size_t i = 0; i < ZR_COUNT(spelled); i++) {
        const zarr_dtype *t = find(spelled[i].text);

        assert_int_equal(zarr_dtype_kind(t), ZARR_KIND_STRUCT);
        assert_int_equal(zarr_dtype_item_bytes(t), spelled[i].bytes);
        assert_int_equal(zarr_dtype_swap_bytes(t), 1);
        assert_int_equal(zarr_dtype_n_fields(t), spelled[i].n_fields);
        if (spelled[i].v3)
            assert_string_equal(zarr_dtype_name(t), spelled[i].v3);
        else
            assert_null(zarr_dtype_name(t));
        assert_string_equal(zarr_dtype_v2(t), spelled[i].v2);
        assert_ptr_equal(find(spelled[i].v3 ? spelled[i].v3 : spelled[i].v2), t);
        assert_ptr_equal(find(spelled[i].v2), t);
        assert_int_equal(zarr_dtype_dlpack(t, NULL, NULL, NULL), -1);
    }
    assert_int_equal(zarr_dtype_n_fields(find("int8")), 0);
    assert_int_equal(zarr_dtype_n_fields(NULL), 0);
}

static const struct {
    const char *text;
    zarr_status want;
    const char *says;
} refused[] = {
    {"struct", ZARR_ERR_INVALID, "needs a configuration"},
    {"{\"name\":\"struct\"}", ZARR_ERR_INVALID, "needs a configuration"},
    {"{\"name\":\"struct\",\"configuration\":{}}", ZARR_ERR_INVALID, "has no fields"},
    {"{\"name\":\"struct\",\"configuration\":{\"fields\":{}}}", ZARR_ERR_INVALID,
     "at least one"},
    {V3(""), ZARR_ERR_INVALID, "at least one"},
    {"{\"name\":\"struct\",\"configuration\":{\"fields\":[" AB "],\"x\":1}}",
     ZARR_ERR_INVALID, "member \"x\" besides fields"},
    {V3(AB "," FIELD("a", "\"int8\"")), ZARR_ERR_INVALID, "two fields are called \"a\""},
    {V3(FIELD("", "\"int8\"")), ZARR_ERR_INVALID, "an empty one"},
    {V3("{\"name\":7,\"data_type\":\"int8\"}"), ZARR_ERR_INVALID, "not number"},
    {V3("{\"name\":\"a\\u0000b\",\"data_type\":\"int8\"}"), ZARR_ERR_INVALID, "name"},
    {V3("{\"name\":\"a\"}"), ZARR_ERR_INVALID, "an object with name and data_type"},
    {V3("{\"name\":\"a\",\"data_type\":\"int8\",\"x\":1}"), ZARR_ERR_INVALID,
     "a field has the member \"x\" besides name and data_type"},
    {V3("7"), ZARR_ERR_INVALID, "an object with name and data_type"},
    {V3("[\"a\",\"int8\",[2]]"), ZARR_ERR_INVALID, "an object with name and data_type"},
    {V3("[\"a\"]"), ZARR_ERR_INVALID, "an object with name and data_type"},
    {V3(FIELD("a", "7")), ZARR_ERR_INVALID, "field \"a\" has no data type"},
    {V3(FIELD("a", "[[\"x\",\"|u1\"]]")), ZARR_ERR_INVALID, "has no data type"},
    {V3(FIELD("a", "\"<i4\"")), ZARR_ERR_UNSUPPORTED, "field \"a\": data type \"<i4\""},
    {V3(FIELD("a", "\"nothing\"")), ZARR_ERR_UNSUPPORTED,
     "field \"a\": data type \"nothing\" is not known"},
    {V3(FIELD("a", V3(FIELD("b", "\"nothing\"")))), ZARR_ERR_UNSUPPORTED,
     "field \"a\": struct: field \"b\""},
    {V3(FIELD("a", "\"r134217720\"") "," FIELD("b", "\"uint8\"") "," FIELD(
         "c", "\"r134217728\"")),
     ZARR_ERR_UNSUPPORTED, "more than 16777216 bytes"},
    {"[]", ZARR_ERR_INVALID, "at least one"},
    {"[7]", ZARR_ERR_INVALID, "a list of name, dtype and perhaps a shape"},
    {"[[\"a\"]]", ZARR_ERR_INVALID, "a list of name, dtype"},
    {"[[\"a\",\"<i4\",[1],1]]", ZARR_ERR_INVALID, "a list of name, dtype"},
    {"[[[\"title\",\"a\"],\"<i4\"]]", ZARR_ERR_INVALID, "name must be a string"},
    {"[{\"name\":\"a\",\"data_type\":\"int8\"}]", ZARR_ERR_INVALID, "a list of name"},
    {"[[\"a\",\"<i4\"],[\"a\",\"<i4\"]]", ZARR_ERR_INVALID, "two fields"},
    {"[[\"f1\",\"<i4\"],[\"\",\"|V4\"]]", ZARR_ERR_INVALID,
     "two fields are called \"f1\""},
    {"[[\"a\",\"|O\"]]", ZARR_ERR_UNSUPPORTED, "Python objects"},
    {"[[\"a\",\"<f16\"]]", ZARR_ERR_UNSUPPORTED, "long double"},
    {"[[\"a\",\"<i4\",[0]]]", ZARR_ERR_UNSUPPORTED, "shape has a zero"},
    {"[[\"a\",\"<i4\",[-1]]]", ZARR_ERR_INVALID, "list of positive integers"},
    {"[[\"a\",\"<i4\",\"2\"]]", ZARR_ERR_INVALID, "list of positive integers"},
    {"[[\"a\",\"<i4\",[4294967296,4294967296]]]", ZARR_ERR_INVALID, "too large"},
    {"[[\"a\",\"<i4\",[4611686018427387904]]]", ZARR_ERR_UNSUPPORTED, "16777216"},
    {"[[\"a\",\"<i4\",[4194305]]]", ZARR_ERR_UNSUPPORTED, "16777216"},
    {"[[\"a\",\"<i4\"]", ZARR_ERR_INVALID, "struct: byte"},
    {"<[[\"a\",\"<i4\"]]", ZARR_ERR_UNSUPPORTED, NULL},
};

static void refusals(void **state)
{
    (void)state;
    for (size_t i = 0; i < ZR_COUNT(refused); i++) {
        const zarr_dtype *t = NULL;
        zarr_error err = {0};
        zarr_status st = zr_dtype_find(&registry, refused[i].text, &t, NULL, &err);

        if (st != refused[i].want ||
            (refused[i].says && !strstr(err.message, refused[i].says)))
            fail_msg("%s: %d %s", refused[i].text, st, err.message);
        assert_null(t);
    }
}

/* As many levels as the parser allows, and one more; the same for fields. */
static zarr_status make_nested(int depth, bool v2, zarr_error *err)
{
    const zarr_dtype *t = NULL;
    struct zr_str text;
    zarr_status st;

    zr_str_init(&text, NULL);
    for (int i = 0; i < depth; i++)
        zr_str_puts(&text, v2 ? "[[\"a\","
                              : "{\"name\":\"struct\",\"configuration\":"
                                "{\"fields\":[[\"a\",");
    zr_str_puts(&text, v2 ? "\"<i4\"" : "\"int32\"");
    for (int i = 0; i < depth; i++)
        zr_str_puts(&text, v2 ? "]]" : "]]}}");
    st = zr_dtype_find(&registry, zr_str_text(&text), &t, NULL, err);
    zr_str_deinit(&text);
    return st;
}

static zarr_status wide(int n, zarr_error *err)
{
    const zarr_dtype *t = NULL;
    struct zr_str text;
    zarr_status st;

    zr_str_init(&text, NULL);
    for (int i = 0; i < n; i++)
        zr_str_printf(&text, "%s[\"f%d\",\"|u1\"]", i ? "," : "[", i);
    zr_str_puts(&text, "]");
    st = zr_dtype_find(&registry, zr_str_text(&text), &t, NULL, err);
    zr_str_deinit(&text);
    return st;
}

static void limits(void **state)
{
    zarr_error err = {0};

    (void)state;
    assert_int_equal(make_nested(14, false, &err), ZARR_OK);
    assert_int_equal(make_nested(16, false, &err), ZARR_ERR_LIMIT);
    assert_int_equal(make_nested(1000, false, &err), ZARR_ERR_LIMIT);
    assert_int_equal(make_nested(30, true, &err), ZARR_OK);
    assert_int_equal(make_nested(31, true, &err), ZARR_ERR_LIMIT);
    assert_int_equal(make_nested(100000, true, &err), ZARR_ERR_LIMIT);
    assert_int_equal(wide(16384, &err), ZARR_OK);
    assert_int_equal(wide(16385, &err), ZARR_ERR_LIMIT);
    assert_non_null(strstr(err.message, "16385 fields, at most 16384"));
    assert_int_equal(wide(1000000, &err), ZARR_ERR_LIMIT);
}

/* ---- fields ---------------------------------------------------------------- */

#define DEEP                                                                             \
    "[[\"a\",\"<i4\"],[\"n\",[[\"x\",\"|u1\"],[\"m\",[[\"y\",\"<f8\",[3]]],[2]]],[4,5]]" \
    ",[\"d.e\",\"<i2\"],[\"d\",[[\"e\",\"|i1\"],[\"f\",\"|i1\"]]]]"

static const struct {
    const char *path;
    uint64_t offset;
    const char *v2;
    int32_t ndim;
    uint64_t shape[4], stride[4];
} paths[] = {
    {"a", 0, "<i4", 0, {0}, {0}},
    {"n", 4, NULL, 2, {4, 5}, {245, 49}},
    {"n.x", 4, "|u1", 2, {4, 5}, {245, 49}},
    {"n.m", 5, NULL, 3, {4, 5, 2}, {245, 49, 24}},
    {"n.m.y", 5, "<f8", 4, {4, 5, 2, 3}, {245, 49, 24, 8}},
    {"d.e", 984, "<i2", 0, {0}, {0}},
    {"d", 986, NULL, 0, {0}, {0}},
    {"d.f", 987, "|i1", 0, {0}, {0}},
};

static void fields(void **state)
{
    const zarr_dtype *t = find(DEEP);
    zarr_dtype_field f = ZARR_DTYPE_FIELD_INIT;
    zarr_error err = {0};

    (void)state;
    assert_int_equal(zarr_dtype_item_bytes(t), 988);
    for (size_t i = 0; i < ZR_COUNT(paths); i++) {
        assert_int_equal(zarr_dtype_field_find(t, paths[i].path, &f, &err), ZARR_OK);
        assert_int_equal(f.offset, paths[i].offset);
        assert_int_equal(f.ndim, paths[i].ndim);
        for (int32_t d = 0; d < f.ndim; d++) {
            assert_int_equal(f.shape[d], paths[i].shape[d]);
            assert_int_equal(f.stride[d], paths[i].stride[d]);
        }
        if (paths[i].v2)
            assert_string_equal(zarr_dtype_v2(f.dtype), paths[i].v2);
        else
            assert_int_equal(zarr_dtype_kind(f.dtype), ZARR_KIND_STRUCT);
    }
    assert_int_equal(zarr_dtype_field_at(t, 1, &f, &err), ZARR_OK);
    assert_string_equal(f.name, "n");
    assert_int_equal(f.offset, 4);
    assert_int_equal(zarr_dtype_field_at(t, 4, &f, &err), ZARR_ERR_INVALID);
    assert_int_equal(zarr_dtype_field_find(t, "n.z", &f, &err), ZARR_ERR_NOT_FOUND);
    assert_non_null(strstr(err.message, "no field \"z\"; the fields are x, m"));
    assert_int_equal(zarr_dtype_field_find(t, "", &f, &err), ZARR_ERR_NOT_FOUND);
    assert_int_equal(zarr_dtype_field_find(t, "a.b", &f, &err), ZARR_ERR_NOT_FOUND);
    assert_int_equal(zarr_dtype_field_find(t, ".a", &f, &err), ZARR_ERR_NOT_FOUND);
    assert_int_equal(zarr_dtype_field_find(t, "n.", &f, &err), ZARR_ERR_NOT_FOUND);
    assert_int_equal(zarr_dtype_field_find(t, NULL, &f, &err), ZARR_ERR_INVALID);
    assert_int_equal(zarr_dtype_field_find(find("int8"), "a", &f, &err),
                     ZARR_ERR_INVALID);
    f.struct_size = 4;
    assert_int_equal(zarr_dtype_field_find(t, "a", &f, &err), ZARR_ERR_ABI);
}

/* ---- storage order ------------------------------------------------------------- */

static const struct {
    const char *text;
    uint32_t order;
    const char *leaves;
    zarr_status want;
} orders[] = {
    {"[[\"a\",\"<i4\"],[\"b\",\"|u1\"]]", ZARR_ORDER_LITTLE, "<", ZARR_OK},
    {"[[\"a\",\">i4\"],[\"b\",\">u1\"]]", ZARR_ORDER_BIG, ">", ZARR_OK},
    {"[[\"a\",\"|S4\"],[\"b\",\"<u1\"]]", ZR_ORDER_NATIVE, "", ZARR_OK},
    {"[[\"a\",\">i4\"],[\"b\",\"|u1\"],[\"c\",\"<f2\",[3]]]", ZR_ORDER_MIXED, "><",
     ZARR_OK},
    {"[[\"n\",[[\"x\",\"<f8\"],[\"y\",\">f8\"]],[2]],[\"u\",\">U1\"]]", ZR_ORDER_MIXED,
     "<>>", ZARR_OK},
    {"[[\"a\",\"bfloat16\"],[\"b\",\"<i2\"]]", ZARR_ORDER_LITTLE, "<<", ZARR_OK},
    {"[[\"a\",\"bfloat16\",[2]],[\"f\",\"float8_e5m2\"],[\"b\",\">f4\"]]", ZR_ORDER_MIXED,
     "<>", ZARR_OK},
    {"[[\"a\",\"i4\"]]", 0, NULL, ZARR_ERR_INVALID},
    {"[[\"n\",[[\"a\",\"|f8\"]]]]", 0, NULL, ZARR_ERR_INVALID},
};

static void v2_orders(void **state)
{
    (void)state;
    for (size_t i = 0; i < ZR_COUNT(orders); i++) {
        const zarr_dtype *t = NULL;
        uint32_t order = 99;
        struct zr_json_doc doc;
        struct zr_str leaves;
        struct zr_json *again;

        zr_json_doc_init(&doc, NULL);
        zr_str_init(&leaves, NULL);
        assert_int_equal(
            zr_json_parse(&doc, orders[i].text, strlen(orders[i].text), NULL, NULL),
            ZARR_OK);
        assert_int_equal(zr_dtype_from_v2(&registry, doc.root, &t, &order, NULL),
                         orders[i].want);
        if (orders[i].want == ZARR_OK) {
            assert_int_equal(order, orders[i].order);
            assert_int_equal(zr_dtype_v2_order(t, doc.root, &order, &leaves, NULL),
                             ZARR_OK);
            assert_string_equal(zr_str_text(&leaves), orders[i].leaves);
            assert_true(zr_dtype_leaves_fit(t, zr_str_text(&leaves)));
            assert_int_equal(zr_dtype_has_order(t), leaves.bytes > 0);
            again = zr_dtype_write_v2(t, &(struct zr_order){order, zr_str_text(&leaves)},
                                      &doc);
            assert_non_null(again);
            if (i != 1 && i != 2) /* ">u1" is written "|u1" */
                assert_true(zr_json_equal(again, doc.root));
        }
        zr_str_deinit(&leaves);
        zr_json_doc_deinit(&doc);
    }
}

/* The name has no place for a byte order, so big-endian is not written. */
static void v2_plain_field(void **state)
{
    const struct zr_order big = {ZARR_ORDER_BIG, NULL}, mixed = {ZR_ORDER_MIXED, "><"};
    const zarr_dtype *t = find("[[\"a\",\"bfloat16\"],[\"b\",\"<i2\"]]");
    struct zr_json_doc doc;

    (void)state;
    zr_json_doc_init(&doc, NULL);
    assert_string_equal(zarr_dtype_v2(t), "[[\"a\",\"bfloat16\"],[\"b\",\"<i2\"]]");
    assert_null(zr_dtype_write_v2(t, &big, &doc));
    assert_null(zr_dtype_write_v2(t, &mixed, &doc));
    assert_true(zr_json_is_ok(&doc));
    zr_json_doc_deinit(&doc);
}

/* Stored bytes are numbered, so every unit that was swapped shows. The letters give the
 * result on a little-endian machine; on a big-endian one each order is the opposite. */
static void check_swap(const char *text, uint32_t order, const char *leaves,
                       const char *want)
{
    const zarr_dtype *t = find(text);
    const size_t bytes = (size_t)zarr_dtype_item_bytes(t), n = 5000;
    struct zr_order o = {order, leaves};
    uint8_t *data = zr_malloc(NULL, n * bytes);
    char turned[8] = "";

    assert_non_null(data);
    if (!ZR_HOST_IS_LITTLE) {
        for (size_t i = 0; leaves && leaves[i]; i++)
            turned[i] = leaves[i] == '<' ? '>' : '<';
        o.leaves = leaves ? turned : NULL;
        if (order == ZARR_ORDER_BIG)
            o.order = ZARR_ORDER_LITTLE;
        else if (order == ZARR_ORDER_LITTLE || (order == ZR_ORDER_NATIVE && *text == '['))
            o.order = ZARR_ORDER_BIG; /* structs without a byte order are little-endian */
    }
    for (size_t i = 0; i < n * bytes; i++)
        data[i] = (uint8_t)('a' + i % bytes);
    assert_int_equal(zr_dtype_is_swapped(t, &o), strspn(want, "-") == 0);
    zr_dtype_swap(t, &o, data, n);
    for (size_t i = 0; want[0] != '-' && i < n * bytes; i++)
        if (data[i] != (uint8_t)want[i % bytes])
            fail_msg("%s: byte %zu is %c, not %c", text, i, data[i], want[i % bytes]);
    zr_free(NULL, data);
}

static void swaps(void **state)
{
    (void)state;
    check_swap("[[\"a\",\"<i4\"],[\"b\",\"|u1\"],[\"c\",\"<i2\"]]", ZARR_ORDER_BIG, NULL,
               "dcbaegf");
    check_swap("[[\"a\",\"<i4\"],[\"b\",\"|u1\"],[\"c\",\"<i2\"]]", ZARR_ORDER_LITTLE,
               NULL, "-");
    check_swap("[[\"a\",\"<i4\"],[\"b\",\"|u1\"],[\"c\",\"<i2\"]]", ZR_ORDER_MIXED, "<>",
               "abcdegf");
    check_swap("[[\"a\",\"<f4\"],[\"b\",\"<f4\"]]", ZARR_ORDER_BIG, NULL, "dcbahgfe");
    check_swap("[[\"a\",\"<f4\"]]", ZARR_ORDER_BIG, NULL, "dcba");
    check_swap("[[\"a\",\"<c8\"],[\"u\",\"<U1\",[2]]]", ZR_ORDER_MIXED, "><",
               "dcbahgfeijklmnop");
    check_swap("[[\"a\",\"<c8\"],[\"u\",\"<U1\",[2]]]", ZR_ORDER_MIXED, "<>",
               "abcdefghlkjiponm");
    check_swap("[[\"n\",[[\"x\",\"<i2\"],[\"y\",\"<i4\"]],[2]],[\"z\",\"<i2\"]]",
               ZR_ORDER_MIXED, "><>", "bacdefhgijklnm");
    check_swap("[[\"n\",[[\"x\",\"<i2\"],[\"y\",\"<i4\"]]],[\"z\",\"<i2\"]]",
               ZR_ORDER_MIXED, "<><", "abfedcgh");
    check_swap("[[\"n\",[[\"x\",\"<i2\"],[\"y\",\"|u1\"]],[3]]]", ZARR_ORDER_BIG, NULL,
               "bacedfhgi");
    check_swap("[[\"a\",\"|S3\"]]", ZARR_ORDER_BIG, NULL, "-");
    check_swap("[[\"a\",\"<i2\"]]", ZR_ORDER_NATIVE, NULL, "-");
    check_swap("<i4", ZARR_ORDER_BIG, NULL, "dcba");
    check_swap("<i4", ZR_ORDER_NATIVE, NULL, "-");
}

/* ---- elements as text ------------------------------------------------------------- */

#define ALL                                                                              \
    "[[\"i\",\"<i2\"],[\"f\",\"<f4\",[2,2]],[\"s\",\"|S2\"],[\"n\",[[\"t\",\"<m8[s]\"]"  \
    "]]]"

static const struct {
    const char *in, *out; /* out NULL: must fail */
    const char *says;
    int format;
} texts[] = {
    {"{\"i\":1,\"f\":[[1,2.5],[\"NaN\",-0.0]],\"s\":\"YWI=\",\"n\":{\"t\":\"NaT\"}}",
     "{\"i\":1,\"f\":[[1.0,2.5],[\"NaN\",-0.0]],\"s\":\"YWI=\",\"n\":{\"t\":\"NaT\"}}",
     NULL, 3},
    {" {\"n\":{\"t\":-7},\"s\":\"\",\"f\":[[0,0],[0,0]],\"i\":-32768}",
     "{\"i\":-32768,\"f\":[[0.0,0.0],[0.0,0.0]],\"s\":\"AAA=\",\"n\":{\"t\":-7}}", NULL,
     3},
    {"\"AQAAAIA/AAAAQAAAQEAAAIBAYWIFAAAAAAAAAA==\"",
     "{\"i\":1,\"f\":[[1.0,2.0],[3.0,4.0]],\"s\":\"YWI=\",\"n\":{\"t\":5}}", NULL, 3},
    {"0", "{\"i\":0,\"f\":[[0.0,0.0],[0.0,0.0]],\"s\":\"AAA=\",\"n\":{\"t\":0}}", NULL,
     2},
    {"0", NULL, "an object with every field", 3},
    {"[1,[[1,2],[3,4]],\"YWI=\",{\"t\":0}]", NULL, "an object with every field", 3},
    {"\"AQAA\"", NULL, "base64 of its 28 bytes", 3},
    {"{\"i\":1,\"s\":\"YWI=\",\"n\":{\"t\":0}}", NULL, "field \"f\" is missing", 3},
    {"{\"i\":1,\"f\":[[1,2],[3,4]],\"s\":\"YWI=\",\"n\":{}}", NULL,
     "field \"n\": field \"t\" is missing", 3},
    {"{\"i\":1,\"f\":[[1,2],[3,4]],\"s\":\"YWI=\",\"n\":{\"t\":0},\"x\":1}", NULL,
     "no field \"x\"", 3},
    {"{\"i\":65536,\"f\":[[1,2],[3,4]],\"s\":\"YWI=\",\"n\":{\"t\":0}}", NULL,
     "field \"i\"", 3},
    {"{\"i\":1,\"f\":[1,2,3,4],\"s\":\"YWI=\",\"n\":{\"t\":0}}", NULL, "nested lists", 3},
    {"{\"i\":1,\"f\":[[1,2],[3]],\"s\":\"YWI=\",\"n\":{\"t\":0}}", NULL, "nested lists",
     3},
    {"{\"i\":1,\"f\":[[1,2],3],\"s\":\"YWI=\",\"n\":{\"t\":0}}", NULL, "nested lists", 3},
    {"{\"i\":1,\"f\":[[1,2],[3,[4]]],\"s\":\"YWI=\",\"n\":{\"t\":0}}", NULL,
     "field \"f\"", 3},
    {"{\"i\":null,\"f\":[[1,2],[3,4]],\"s\":\"YWI=\",\"n\":{\"t\":0}}", NULL,
     "field \"i\": null", 3},
};

static void elements(void **state)
{
    const zarr_dtype *t = find(ALL);
    uint8_t element[28];
    char text[256], small[40];
    size_t n = 0, m = 0;

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(texts); i++) {
        struct zr_json_doc doc;
        zarr_error err = {0};
        zarr_status st;

        zr_json_doc_init(&doc, NULL);
        assert_int_equal(
            zr_json_parse(&doc, texts[i].in, strlen(texts[i].in), NULL, NULL), ZARR_OK);
        memset(element, 0xee, sizeof element);
        st = zr_dtype_fill_parse(t, doc.root, texts[i].format, element, &err);
        zr_json_doc_deinit(&doc);
        if (!texts[i].out) {
            if (st != ZARR_ERR_INVALID || !strstr(err.message, texts[i].says))
                fail_msg("%s: %d %s", texts[i].in, st, err.message);
            continue;
        }
        if (st != ZARR_OK)
            fail_msg("%s: %s", texts[i].in, err.message);
        assert_int_equal(zarr_dtype_print(t, element, text, sizeof text, &n, &err),
                         ZARR_OK);
        assert_string_equal(text, texts[i].out);
        assert_int_equal(n, strlen(text));
        assert_int_equal(zarr_dtype_print(t, element, small, sizeof small, &m, &err),
                         ZARR_OK);
        assert_int_equal(m, n);
        assert_int_equal(strlen(small), sizeof small - 1);
        assert_int_equal(strncmp(small, text, sizeof small - 1), 0);
        assert_int_equal(zarr_dtype_parse(t, text, element, &err), ZARR_OK);
    }
    zr_dtype_fill_default(t, element);
    assert_int_equal(zarr_dtype_print(t, element, text, sizeof text, &n, NULL), ZARR_OK);
    assert_string_equal(text, "{\"i\":0,\"f\":[[0.0,0.0],[0.0,0.0]],\"s\":\"AAA=\","
                              "\"n\":{\"t\":\"NaT\"}}");
}

static void v2_fills(void **state)
{
    const zarr_dtype *t = find("[[\"a\",\"<i2\"],[\"b\",\"<i4\"]]");
    const struct zr_order mixed = {ZR_ORDER_MIXED, "><"};
    const uint8_t stored[] = {1, 2, 3, 4, 5, 6};
    struct zr_json_doc doc;
    struct zr_json *out = NULL;
    uint8_t element[6];
    int16_t a;
    int32_t b;

    (void)state;
    zr_json_doc_init(&doc, NULL);
    assert_int_equal(zr_json_parse(&doc, "\"AQIDBAUG\"", 10, NULL, NULL), ZARR_OK);
    assert_int_equal(zr_dtype_fill_parse_v2(t, doc.root, &mixed, element, NULL), ZARR_OK);
    memcpy(&a, element, 2);
    memcpy(&b, element + 2, 4);
    assert_int_equal(a, 0x0102);
    assert_int_equal(b, 0x06050403);
    assert_int_equal(zr_dtype_fill_write_v2(t, element, &mixed, &doc, &out, NULL),
                     ZARR_OK);
    assert_true(zr_json_is_text(out, "AQIDBAUG"));
    zr_dtype_swap(t, &mixed, element, 1);
    assert_memory_equal(element, stored, 6);
    zr_json_doc_deinit(&doc);
}

/* The memory limit for types of a registry: an existing type costs nothing, a new one is
 * refused, and existing ones stay. */
static void limit_type_memory(void **state)
{
    struct zr_dtype_registry r;
    const zarr_dtype *first = NULL, *again = NULL, *t = NULL;
    zarr_error err = {0};
    zarr_status st = ZARR_OK;
    char text[64];
    int n = 0;

    (void)state;
    assert_int_equal(zr_dtype_registry_init(&r, NULL, NULL), ZARR_OK);
    for (const zarr_dtype_vtable *const *v = zr_dtype_core; *v; v++)
        assert_int_equal(zr_dtype_register(&r, *v, "core", NULL), ZARR_OK);
    r.most_bytes = 8192;
    for (; st == ZARR_OK && n < 1000; n++) {
        snprintf(text, sizeof text, "[[\"field%d\",\"<i4\"]]", n);
        st = zr_dtype_find(&r, text, &t, NULL, &err);
        first = n ? first : t;
    }
    assert_int_equal(st, ZARR_ERR_LIMIT);
    assert_non_null(strstr(err.message, "(limit dtype_bytes is"));
    assert_non_null(strstr(err.message, "8192 bytes"));
    assert_in_range(n, 6, 30); /* a few hundred bytes each */
    assert_true(r.locked.bytes <= 8192);
    assert_int_equal(zr_dtype_find(&r, "[[\"field0\",\"<i4\"]]", &again, NULL, &err),
                     ZARR_OK);
    assert_ptr_equal(again, first);
    assert_int_equal(zr_dtype_find(&r, "float64", &t, NULL, &err), ZARR_OK);
    zr_dtype_registry_deinit(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spellings),      cmocka_unit_test(refusals),
        cmocka_unit_test(limits),         cmocka_unit_test(fields),
        cmocka_unit_test(v2_plain_field), cmocka_unit_test(v2_orders),
        cmocka_unit_test(swaps),          cmocka_unit_test(elements),
        cmocka_unit_test(v2_fills),       cmocka_unit_test(limit_type_memory),
    };

    return cmocka_run_group_tests(tests, open_registry, close_registry);
}
