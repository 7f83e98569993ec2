/*
 * unit/dtype/test_registration.c - types of applications: which tables a registry
 * accepts, which names are already in use, and a family of types.
 */
#include "dtype_test.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static zarr_status byte_parse(zarr_dtype_info *info, const zarr_dtype_host *host,
                              const char *name, const char *json, zarr_error *err)
{
    ZR_UNUSED(host);
    ZR_UNUSED(name);
    ZR_UNUSED(json);
    ZR_UNUSED(err);
    info->kind = ZARR_KIND_INT;
    info->item_bytes = 1;
    return ZARR_OK;
}

/* 16 bits, with DLPack's code for int16. */
static zarr_status dlpack_parse(zarr_dtype_info *info, const zarr_dtype_host *host,
                                const char *name, const char *json, zarr_error *err)
{
    info->dlpack_code = ZARR_DLPACK_INT;
    info->dlpack_bits = 16;
    info->dlpack_lanes = 1;
    return byte_parse(info, host, name, json, err);
}

static void register_types(void **state)
{
    static const struct {
        const char *name, *alias, *v2, *numpy;
        const char *taken; /* text in the message; NULL: registering succeeds */
    } claims[] = {
        {"int8", NULL, NULL, NULL, "name \"int8\" is taken by core's \"int8\""},
        {"x", "int16", NULL, NULL, "name \"int16\" is taken by core's \"int16\""},
        {"r24", NULL, NULL, NULL, "name \"r24\" is taken by core's \"r\""},
        {"numpy.datetime64[s]", NULL, NULL, NULL, "taken by core's \"numpy.datetime64\""},
        {"x", NULL, "i1", NULL, "v2 type \"i1\" is taken by core's \"int8\""},
        {"x", NULL, "S7", NULL, "taken by core's \"null_terminated_bytes\""},
        {"x", NULL, "bfloat16", NULL, "v2 type \"bfloat16\" is taken by core's"},
        {"x", NULL, NULL, "f8", "NumPy type \"f8\" is taken by core's \"float64\""},
        {"x", NULL, NULL, "int4", "NumPy type \"int4\" is taken by core's \"int4\""},
        {"x", NULL, "e", NULL, "v2 type \"e\" is taken by NumPy"},
        {"a", "bb", "V1", "V1", NULL},
        {"c", NULL, "V1", "V1", NULL}, /* a name that all types of one size share */
        {"bb", NULL, NULL, NULL, "name \"bb\" is taken by me's \"a\""},
    };
    const char *aliases[] = {NULL, NULL};
    struct zr_dtype_registry r;
    zarr_dtype_vtable v = *zr_dtype_core[3];
    const zarr_dtype *t = NULL;
    zarr_error err = {0};
    struct zr_dtype_row last = {0};
    size_t n = 0;

    (void)state;
    assert_int_equal(fill_registry(&r, NULL), ZARR_OK);
    v.parse = byte_parse;
    v.aliases = aliases;
    for (size_t i = 0; i < ZR_COUNT(claims); i++) {
        v.name = claims[i].name;
        aliases[0] = claims[i].alias;
        v.v2 = claims[i].v2;
        v.numpy = claims[i].numpy;
        assert_int_equal(zr_dtype_register(&r, &v, i == 12 ? "you" : "me", &err),
                         claims[i].taken ? ZARR_ERR_EXISTS : ZARR_OK);
        if (claims[i].taken && (!strstr(err.message, claims[i].taken) ||
                                !strstr(err.message, i == 12 ? "of you:" : "of me:")))
            fail_msg("%s", err.message);
    }
    aliases[0] = v.v2 = v.numpy = NULL;
    v.name = "other8";
    v.parse = dlpack_parse;
    assert_int_equal(zr_dtype_register(&r, &v, "me", &err), ZARR_ERR_EXISTS);
    assert_non_null(strstr(err.message, "DLPack type \"0,16,1\" is taken by core's"));
    v.parse = byte_parse;
    v.fill_print = NULL;
    assert_int_equal(zr_dtype_register(&r, &v, "me", NULL), ZARR_ERR_INVALID);
    v.fill_print = zr_dtype_core[3]->fill_print;
    assert_int_equal(zr_dtype_find(&r, "other8", &t, NULL, NULL), ZARR_ERR_UNSUPPORTED);
    assert_int_equal(zr_dtype_register(&r, &v, "me", NULL), ZARR_OK);
    v.name = "changed"; /* the registry has its own copy of the table */
    assert_int_equal(zr_dtype_find(&r, "other8", &t, NULL, NULL), ZARR_OK);
    assert_string_equal(zarr_dtype_name(t), "other8");
    assert_null(zarr_dtype_v2(t));
    assert_int_equal(zr_dtype_find(&r, "|V1", &t, NULL, NULL), ZARR_OK);
    assert_string_equal(zarr_dtype_name(t),
                        "raw_bytes[1]"); /* not a type that shares the name */
    for (size_t i = 0; i < r.types.n; i++) {
        struct zr_dtype_row row;

        assert_true(zr_dtype_row(&r, i, &row));
        assert_string_equal(row.item.origin, zr_dtype_core[n] ? "core" : "me");
        n += zr_dtype_core[n] != NULL;
        last = row;
    }
    assert_null(zr_dtype_core[n]);
    assert_string_equal(last.name, "other8");
    assert_string_equal(last.detail, "1 byte");
    assert_false(zr_dtype_row(&r, r.types.n, &last));
    zr_dtype_registry_deinit(&r);
    zr_dtype_registry_deinit(NULL);
}

enum {
    AS_NAME = 0,
    AS_ALIAS = 1,
    AS_V2 = 2,
    AS_NUMPY = 3
};

/* Registers a type that claims the text as this kind of name. */
static void claim(struct zr_dtype_registry *r, const char *text, int as, zarr_status want)
{
    const char *aliases[] = {as == AS_ALIAS ? text : NULL, NULL};
    zarr_dtype_vtable v = *zr_dtype_core[3];
    zarr_error err = {0};

    v.parse = byte_parse;
    v.aliases = aliases;
    v.name = as == AS_NAME ? text : "mine";
    v.v2 = as == AS_V2 ? text : NULL;
    v.numpy = as == AS_NUMPY ? text : NULL;
    if (zr_dtype_register(r, &v, "me", &err) != want)
        fail_msg("\"%s\" as %d: %s", text, as, err.message);
}

/* True for text that is not a NumPy name and that NumPy look-ups do not know. */
static bool not_numpy(const char *text)
{
    return strstr(text, "raw_bytes") || zr_streq(text, "r24") || strstr(text, "numpy.") ||
           strstr(text, "complex_");
}

/* Every name of a core type, claimed as every kind of name. */
static void core_spellings(void **state)
{
    static const char *const spellings[] = {
        "float32",  "f4",        "<f4",           ">f4",          "=f4",
        "bool",     "b1",        "|b1",           "int64",        "i8",
        "M8[ns]",   "<M8[ns]",   "m8[10s]",       "M8",           "<M8",
        "c8",       "S3",        "|S3",           "U5",           "<U5",
        "|V3",      "r24",       "raw_bytes",     "raw_bytes[3]", "complex_float32",
        "bfloat16", "<bfloat16", "float8_e4m3fn", "int4",         "numpy.datetime64[us]"};
    static const char *const numpy_only[] = {"datetime64[us]", "timedelta64[ns]",
                                             "datetime64", "complex64", "uint8"};
    struct zr_dtype_registry r;

    (void)state;
    assert_int_equal(fill_registry(&r, NULL), ZARR_OK);
    for (size_t i = 0; i < ZR_COUNT(spellings); i++)
        for (int as = AS_NAME; as <= AS_NUMPY; as++)
            if (as != AS_NUMPY || !not_numpy(spellings[i]))
                claim(&r, spellings[i], as, ZARR_ERR_EXISTS);
    for (size_t i = 0; i < ZR_COUNT(numpy_only); i++)
        claim(&r, numpy_only[i], AS_NUMPY, ZARR_ERR_EXISTS);
    zr_dtype_registry_deinit(&r);
}

/* NumPy's spellings of numbers, claimed as every kind of name. */
static void numpy_spellings(void **state)
{
    static const char *const spellings[] = {"?",    "b",     "e",     "f",   "d",
                                            "half", "int",   "bool_", "q",   "float_",
                                            "long", "ulong", "intp",  "uint"};
    struct zr_dtype_registry r;

    (void)state;
    assert_int_equal(fill_registry(&r, NULL), ZARR_OK);
    for (size_t i = 0; i < ZR_COUNT(spellings); i++)
        for (int as = AS_NAME; as <= AS_NUMPY; as++)
            claim(&r, spellings[i], as, ZARR_ERR_EXISTS);
    zr_dtype_registry_deinit(&r);
}

/* Invalid names, claimed as every kind of name. */
static void no_spellings(void **state)
{
    static const char *const bad[] = {"",   "a\"b", "a\\b", "a b",  "a\nb",
                                      "{x", "<new", "|x",   "\x7F", "caf\xC3\xA9"};
    struct zr_dtype_registry r;

    (void)state;
    assert_int_equal(fill_registry(&r, NULL), ZARR_OK);
    for (size_t i = 0; i < ZR_COUNT(bad); i++)
        for (int as = AS_NAME; as <= AS_NUMPY; as++)
            claim(&r, bad[i], as, ZARR_ERR_INVALID);
    zr_dtype_registry_deinit(&r);
}

static zarr_status no_parse_v2(zarr_dtype_info *info, const zarr_dtype_host *host,
                               const char *v2, zarr_error *err)
{
    return byte_parse(info, host, v2, NULL, err);
}

static zarr_status no_text(const zarr_dtype_info *info, uint32_t what, char *text,
                           size_t cap, size_t *text_bytes, zarr_error *err)
{
    ZR_UNUSED(info);
    ZR_UNUSED(what);
    ZR_UNUSED(text);
    ZR_UNUSED(cap);
    ZR_UNUSED(err);
    *text_bytes = 0;
    return ZARR_OK;
}

/* The first to register a name keeps it: a family, or a type that could be its
 * member. */
static void registering_families(void **state)
{
    enum {
        ONE = 0,
        FAMILY = ZARR_DTYPE_FAMILY,
        DIGITS = ZARR_DTYPE_FAMILY | ZARR_DTYPE_NUMBERED
    };
    static const struct {
        const char *name, *alias, *v2, *numpy;
        uint32_t flags;
        const char *taken; /* text in the message; NULL: registering succeeds */
    } claims[] = {
        {"foo24", NULL, NULL, NULL, ONE, NULL},
        {"foo", NULL, NULL, NULL, DIGITS, "member \"foo24\" is taken by me's \"foo24\""},
        {"foo", NULL, NULL, NULL, FAMILY, NULL}, /* foo[24] is another name */
        {"bar[3]", NULL, NULL, NULL, ONE, NULL},
        {"bar", NULL, NULL, NULL, FAMILY, "member \"bar[3]\" is taken by me's"},
        {"bar", NULL, NULL, NULL, DIGITS, NULL},
        {"a", "baz[x]", NULL, NULL, ONE, NULL},
        {"bb", "baz", NULL, NULL, FAMILY, "member \"baz[x]\" is taken by me's \"a\""},
        {"third", "baz", NULL, NULL, DIGITS, "member \"baz[x]\" is taken by me's \"a\""},
        {"quart", NULL, "q4", NULL, ONE, NULL},
        {"dd", NULL, "q", NULL, FAMILY, "member \"q4\" is taken by me's \"quart\""},
        {"ee", NULL, NULL, "w4", ONE, NULL},
        {"ff", NULL, "w", NULL, FAMILY, "member \"w4\" is taken by me's \"ee\""},
        {"g", NULL, "x", NULL, FAMILY, NULL},
        {"hh", NULL, "x4", NULL, ONE, "v2 type \"x4\" is taken by me's \"g\""},
        {"complex_float", NULL, NULL, NULL, DIGITS, "is taken by core's \"complex64\""},
        {"ii", NULL, "i", NULL, FAMILY, "member \"i1\" is taken by core's \"int8\""},
        {"int", NULL, NULL, NULL, DIGITS, "name \"int\" is taken by NumPy"},
        {"ll", NULL, "l", "l", FAMILY, NULL}, /* "l4", but not "l" */
        {"nn", NULL, "l5", NULL, ONE, "v2 type \"l5\" is taken by me's \"ll\""},
        {"pre1", NULL, NULL, NULL, DIGITS, NULL},
        {"pre", NULL, NULL, NULL, DIGITS, "member \"pre1\" is taken by me's \"pre1\""},
    };
    /* Each table has its own list. */
    const char *aliases[ZR_COUNT(claims)][2] = {{NULL}};
    struct zr_dtype_registry r;
    zarr_dtype_vtable v = *zr_dtype_core[3];

    (void)state;
    assert_int_equal(fill_registry(&r, NULL), ZARR_OK);
    v.parse = byte_parse;
    for (size_t i = 0; i < ZR_COUNT(claims); i++) {
        zarr_error err = {0};
        zarr_status st;

        v.flags = claims[i].flags;
        v.parse_v2 = v.flags ? no_parse_v2 : NULL;
        v.write = v.flags ? no_text : NULL;
        v.name = claims[i].name;
        aliases[i][0] = claims[i].alias;
        v.aliases = aliases[i];
        v.v2 = claims[i].v2;
        v.numpy = claims[i].numpy;
        st = zr_dtype_register(&r, &v, "me", &err);
        if (st != (claims[i].taken ? ZARR_ERR_EXISTS : ZARR_OK) ||
            (claims[i].taken && !strstr(err.message, claims[i].taken)))
            fail_msg("%s: %d %s", claims[i].name, st, err.message);
    }
    zr_dtype_registry_deinit(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(register_types), cmocka_unit_test(registering_families),
        cmocka_unit_test(core_spellings), cmocka_unit_test(numpy_spellings),
        cmocka_unit_test(no_spellings),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
