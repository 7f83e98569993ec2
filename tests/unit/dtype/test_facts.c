/*
 * unit/dtype/test_facts.c - what the table of an application's type says: texts, facts,
 * entries, NumPy forms that types share, any configuration, more than two components.
 */
#include "dtype_test.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static struct {
    const char *v3, *name, *v2;
    uint8_t dlpack_bits;
    uint64_t item_bytes;
    uint32_t flags;
} told;

static zarr_status told_parse(zarr_dtype_info *info, const zarr_dtype_host *host,
                              const char *name, const char *json, zarr_error *err)
{
    ZR_UNUSED(host);
    ZR_UNUSED(name);
    ZR_UNUSED(json);
    ZR_UNUSED(err);
    info->kind = ZARR_KIND_INT;
    info->item_bytes = told.item_bytes;
    info->flags |= told.flags;
    info->dlpack_code = told.dlpack_bits ? ZARR_DLPACK_INT : 0;
    info->dlpack_bits = told.dlpack_bits;
    info->dlpack_lanes = told.dlpack_bits ? 1 : 0;
    return ZARR_OK;
}

static zarr_status told_parse_v2(zarr_dtype_info *info, const zarr_dtype_host *host,
                                 const char *v2, zarr_error *err)
{
    return told_parse(info, host, v2, NULL, err);
}

static zarr_status told_write(const zarr_dtype_info *info, uint32_t what, char *text,
                              size_t cap, size_t *text_bytes, zarr_error *err)
{
    const char *const say = what == ZARR_DTYPE_TEXT_V3     ? told.v3
                            : what == ZARR_DTYPE_TEXT_NAME ? told.name
                                                           : told.v2;

    ZR_UNUSED(info);
    ZR_UNUSED(err);
    *text_bytes = strlen(say);
    if (text)
        snprintf(text, cap, "%s", say);
    return ZARR_OK;
}

/* A name that look-ups would take for another type's is refused: of a single type when
 * it is registered, of a member of a family when it is created. */
static void own_texts(void **state)
{
    static const struct {
        const char *v3, *name, *v2;
        uint8_t dlpack_bits;
        uint64_t item_bytes;
        zarr_status want;
        const char *says;
    } rows[] = {
        {"\"acme\"", "acme", "", 0, 4, ZARR_OK, NULL},
        {"{\"name\":\"acme\"}", "acme", "V4", 0, 4, ZARR_OK,
         NULL}, /* V4 is shared by all types of this size */
        {"\"acme\"", "float32", "", 0, 4, ZARR_ERR_EXISTS,
         "of me: the name \"float32\" is taken by core's \"float32\""},
        {"\"acme\"", "r32", "", 0, 4, ZARR_ERR_EXISTS, "taken by core's \"r\""},
        {"\"float32\"", "acme", "", 0, 4, ZARR_ERR_EXISTS, "taken by core's \"float32\""},
        {"{\"name\":\"numpy.datetime64\",\"configuration\":{}}", "acme", "", 0, 4,
         ZARR_ERR_EXISTS, "taken by core's \"numpy.datetime64\""},
        {"\"acme\"", "acme", "f4", 0, 4, ZARR_ERR_EXISTS,
         "the v2 type \"f4\" is taken by core's \"float32\""},
        {"\"acme\"", "acme", "S4", 0, 4, ZARR_ERR_EXISTS, "taken by core's"},
        {"\"acme\"", "acme", "O", 0, 4, ZARR_ERR_INTERNAL, "writes the v2 type \"O\""},
        {"\"acme\"", "foreign[1]", "", 0, 4, ZARR_ERR_EXISTS,
         "of me: the name \"foreign[1]\" is taken by you's \"foreign\""},
        {"\"acme\"", "nobody", "", 0, 4, ZARR_ERR_INTERNAL,
         "of me: its table writes the name \"nobody\", which it did not register"},
        {"\"nobody\"", "acme", "", 0, 4, ZARR_ERR_INTERNAL, "which it did not register"},
        {"acme", "acme", "", 0, 4, ZARR_ERR_INTERNAL, "which does not name a type"},
        {"\"acme\"", "acme", "", 32, 4, ZARR_ERR_EXISTS,
         "DLPack type \"0,32,1\" is taken by core's \"int32\""},
        {"\"acme\"", "acme", "", 0, 0, ZARR_ERR_INTERNAL, "gives wrong facts"},
    };

    (void)state;
    for (int family = 0; family < 2; family++)
        for (size_t i = 0; i < ZR_COUNT(rows); i++) {
            const zarr_dtype *t = NULL;
            struct zr_dtype_registry r;
            zarr_dtype_vtable v = *zr_dtype_core[3];
            zarr_error err = {0};
            zarr_status st;

            assert_int_equal(fill_registry(&r, NULL), ZARR_OK);
            v.flags = ZARR_DTYPE_FAMILY;
            v.name = "foreign";
            v.v2 = v.numpy = NULL;
            v.aliases = NULL;
            v.parse = told_parse;
            v.parse_v2 = told_parse_v2;
            v.write = told_write;
            assert_int_equal(zr_dtype_register(&r, &v, "you", &err), ZARR_OK);
            v.flags = family ? ZARR_DTYPE_FAMILY : 0;
            v.name = "acme";
            told.v3 = rows[i].v3;
            told.name =
                family && zr_streq(rows[i].name, "acme") ? "acme[1]" : rows[i].name;
            told.v2 = rows[i].v2;
            told.dlpack_bits = rows[i].dlpack_bits;
            told.item_bytes = rows[i].item_bytes;
            st = zr_dtype_register(&r, &v, "me", &err);
            if (family) {
                assert_int_equal(st, ZARR_OK);
                st = zr_dtype_find(&r, "acme[1]", &t, NULL, &err);
            }
            if (st != rows[i].want ||
                (rows[i].says && !strstr(err.message, rows[i].says)))
                fail_msg("row %d, family %d: %d %s", (int)i, family, st, err.message);
            if (st == ZARR_OK && family) {
                assert_int_equal(zr_dtype_find(&r, "r32", &t, NULL, &err), ZARR_OK);
                assert_int_equal(zarr_dtype_kind(t), ZARR_KIND_RAW);
            }
            zr_dtype_registry_deinit(&r);
        }
}

/* A variable-length element has at least the size of a zarr_vlen. */
static void variable_facts(void **state)
{
    struct zr_dtype_registry r;
    zarr_dtype_vtable v = *zr_dtype_core[3];
    zarr_error err = {0};

    (void)state;
    assert_int_equal(fill_registry(&r, NULL), ZARR_OK);
    v.name = "acme";
    v.v2 = v.numpy = NULL;
    v.aliases = NULL;
    v.parse = told_parse;
    told.flags = ZARR_DTYPE_VARIABLE;
    told.dlpack_bits = 0;
    told.item_bytes = 4;
    assert_int_equal(zr_dtype_register(&r, &v, "me", &err), ZARR_ERR_INTERNAL);
    told.item_bytes = sizeof(zarr_vlen);
    assert_int_equal(zr_dtype_register(&r, &v, "me", &err), ZARR_OK);
    told.flags = 0;
    v.name = "object";
    v.v2 = "O";
    assert_int_equal(zr_dtype_register(&r, &v, "me", &err), ZARR_ERR_EXISTS);
    assert_non_null(strstr(err.message, "which filters tell apart"));
    zr_dtype_registry_deinit(&r);
}

static zarr_dtype_info facts;

static zarr_status facts_parse(zarr_dtype_info *info, const zarr_dtype_host *host,
                               const char *name, const char *json, zarr_error *err)
{
    ZR_UNUSED(host);
    ZR_UNUSED(name);
    ZR_UNUSED(json);
    ZR_UNUSED(err);
    info->kind = facts.kind;
    info->item_bytes = facts.item_bytes;
    info->item_bits = facts.item_bits;
    info->swap_bytes = facts.swap_bytes;
    info->flags = facts.flags;
    info->dlpack_bits = facts.dlpack_bits;
    info->components = facts.components;
    info->component_bits = facts.component_bits;
    return ZARR_OK;
}

static void wrong_facts(void **state)
{
    static const struct {
        zarr_dtype_info info;
        const char *says; /* NULL: nothing is wrong */
    } rows[] = {
        {{.kind = 3, .item_bytes = 4}, NULL},
        {{.kind = 4, .item_bytes = 256, .swap_bytes = 4, .components = 64}, NULL},
        {{.kind = 0, .item_bytes = 4}, "kind is 0"},
        {{.kind = 3, .item_bytes = 0}, "item_bytes is 0"},
        {{.kind = 3, .item_bytes = 4, .swap_bytes = 3}, "swap_bytes is 3"},
        {{.kind = 3, .item_bytes = 4, .flags = ZARR_DTYPE_VARIABLE}, "item_bytes is 4"},
        {{.kind = 3, .item_bytes = 65, .components = 65}, "components is 65, more than"},
        {{.kind = 3, .item_bytes = 4, .components = 3},
         "components is 3, which does not divide item_bytes"},
        {{.kind = 3, .item_bytes = 4, .item_bits = 33}, "item_bits is 33"},
        {{.kind = 3, .item_bytes = 4, .component_bits = 33}, "component_bits is 33"},
        {{.kind = 3, .item_bytes = 4, .dlpack_bits = 32}, "dlpack_lanes is 0"},
    };
    struct zr_dtype_registry r;
    zarr_dtype_vtable v = *zr_dtype_core[3];
    char name[16];

    (void)state;
    assert_int_equal(fill_registry(&r, NULL), ZARR_OK);
    v.v2 = v.numpy = NULL;
    v.parse = facts_parse;
    v.name = name;
    for (size_t i = 0; i < ZR_COUNT(rows); i++) {
        zarr_error err = {0};
        zarr_status st;

        facts = rows[i].info;
        snprintf(name, sizeof name, "acme%d", (int)i);
        st = zr_dtype_register(&r, &v, "me", &err);
        if (st != (rows[i].says ? ZARR_ERR_INTERNAL : ZARR_OK) ||
            (rows[i].says && !strstr(err.message, rows[i].says)))
            fail_msg("row %d: %d %s", (int)i, st, err.message);
    }
    zr_dtype_registry_deinit(&r);
}

static void wrong_entries(void **state)
{
    const zarr_dtype_vtable good = {.struct_size = sizeof good,
                                    .flags = ZARR_DTYPE_FAMILY,
                                    .name = "acme",
                                    .v2 = "q",
                                    .numpy = "q",
                                    .parse = told_parse,
                                    .parse_v2 = told_parse_v2,
                                    .write = told_write,
                                    .fill_parse = zr_dtype_core[3]->fill_parse,
                                    .fill_print = zr_dtype_core[3]->fill_print};
    static const char *const says[] = {"name and v2 are NULL", "parse is NULL",
                                       "fill_parse is NULL",   "fill_print is NULL",
                                       "write is NULL",        "parse_v2 is NULL",
                                       "numpy is \"k\", but",  "ANY_CONFIGURATION"};
    struct zr_dtype_registry r;

    (void)state;
    assert_int_equal(fill_registry(&r, NULL), ZARR_OK);
    for (size_t i = 0; i < ZR_COUNT(says); i++) {
        zarr_dtype_vtable v = good;
        zarr_error err = {0};

        if (i == 0)
            v.name = v.v2 = NULL;
        v.parse = i == 1 ? NULL : v.parse;
        v.fill_parse = i == 2 ? NULL : v.fill_parse;
        v.fill_print = i == 3 ? NULL : v.fill_print;
        v.write = i == 4 ? NULL : v.write;
        v.parse_v2 = i == 5 ? NULL : v.parse_v2;
        v.numpy = i == 6 ? "k" : v.numpy;
        v.flags |= i == 7 ? ZARR_DTYPE_ANY_CONFIGURATION : 0U;
        assert_int_equal(zr_dtype_register(&r, &v, "me", &err), ZARR_ERR_INVALID);
        if (!strstr(err.message, says[i]))
            fail_msg("%s: %s", says[i], err.message);
    }
    assert_int_equal(zr_dtype_register(&r, &good, "me", NULL), ZARR_OK);
    zr_dtype_registry_deinit(&r);
}

static void shared_forms(void **state)
{
    static const struct {
        const char *name, *numpy;
        uint64_t item_bytes;
        const char *want;
    } rows[] = {
        {"v1", "V", 3, "|V3"}, {"v2", "V", 3, "|V3"}, {"v3", "V", 5, "|V5"},
        {"b1", "B", 1, "B"},   {"b2", "B", 1, "B"},   {"b3", "B", 4, "4B"},
        {"o1", "O", 2, "O"},   {"o2", "O", 2, "O"},   {"v4", "V4", 4, "|V4"},
    };
    char names[ZR_COUNT(rows)][16]; /* the registry borrows them */
    struct zr_dtype_registry r;
    zarr_dtype_vtable v = *zr_dtype_core[3];
    const zarr_dtype *t = NULL;

    (void)state;
    assert_int_equal(fill_registry(&r, NULL), ZARR_OK);
    v.v2 = NULL;
    v.parse = facts_parse;
    for (size_t i = 0; i < ZR_COUNT(rows); i++) {
        char *const name = names[i];

        snprintf(name, sizeof names[i], "acme.%s", rows[i].name);
        facts =
            (zarr_dtype_info){.kind = ZARR_KIND_RAW, .item_bytes = rows[i].item_bytes};
        v.name = name;
        v.numpy = rows[i].numpy;
        assert_int_equal(zr_dtype_register(&r, &v, "me", NULL), ZARR_OK);
        assert_int_equal(zr_dtype_find(&r, name, &t, NULL, NULL), ZARR_OK);
        assert_string_equal(zarr_dtype_numpy(t), rows[i].want);
    }
    /* A family shares a form also if v2 does not have it. */
    v.flags = ZARR_DTYPE_FAMILY;
    v.name = "packed";
    v.numpy = "V";
    v.parse = told_parse;
    v.write = told_write;
    told.v3 = told.name = "packed[x]";
    told.v3 = "\"packed[x]\"";
    told.v2 = "";
    told.item_bytes = 6;
    told.flags = 0;
    told.dlpack_bits = 0;
    assert_int_equal(zr_dtype_register(&r, &v, "me", NULL), ZARR_OK);
    assert_int_equal(zr_dtype_find(&r, "packed[x]", &t, NULL, NULL), ZARR_OK);
    assert_string_equal(zarr_dtype_numpy(t), "|V6");
    /* Look-ups take none of the forms as a type that shares it. */
    assert_int_equal(zr_dtype_from_numpy(&r, "V3", &t, NULL, NULL), ZARR_OK);
    assert_string_equal(zarr_dtype_name(t), "raw_bytes[3]");
    assert_int_equal(zr_dtype_from_numpy(&r, "4B", &t, NULL, NULL), ZARR_OK);
    assert_string_equal(zarr_dtype_name(t), "raw_bytes[4]");
    assert_int_equal(zr_dtype_from_numpy(&r, "B", &t, NULL, NULL), ZARR_OK);
    assert_string_equal(zarr_dtype_name(t), "uint8");
    assert_int_equal(zr_dtype_from_numpy(&r, "O", &t, NULL, NULL), ZARR_OK);
    assert_string_equal(zarr_dtype_name(t), "string");
    assert_int_not_equal(zr_dtype_from_numpy(&r, "V", &t, NULL, NULL), ZARR_OK);
    assert_int_not_equal(zr_dtype_from_numpy(&r, "0B", &t, NULL, NULL), ZARR_OK);
    zr_dtype_registry_deinit(&r);
}

/* A failed registration takes no name from the owner of an alias. */
static void numpy_aliases(void **state)
{
    static const char *const mine[] = {"mytype", "float32", NULL};
    static const char *const taken[] = {"other", "StringDType", NULL};
    struct zr_dtype_registry r;
    zarr_dtype_vtable v = *zr_dtype_core[3];
    const zarr_dtype *t = NULL;
    zarr_error err = {0};

    (void)state;
    assert_int_equal(fill_registry(&r, NULL), ZARR_OK);
    facts = (zarr_dtype_info){.kind = ZARR_KIND_RAW, .item_bytes = 2};
    v.v2 = v.numpy = NULL;
    v.parse = facts_parse;
    v.name = "acme";
    v.numpy_aliases = taken;
    assert_int_equal(zr_dtype_register(&r, &v, "me", &err), ZARR_ERR_EXISTS);
    assert_non_null(strstr(err.message, "\"StringDType\" is taken by core's \"string\""));
    assert_int_not_equal(zr_dtype_from_numpy(&r, "other", &t, NULL, NULL), ZARR_OK);
    assert_int_equal(zr_dtype_from_numpy(&r, "StringDType", &t, NULL, NULL), ZARR_OK);
    v.numpy_aliases = mine;
    assert_int_equal(zr_dtype_register(&r, &v, "me", &err), ZARR_ERR_EXISTS);
    v.numpy_aliases = (const char *const[]){"mytype", NULL};
    assert_int_equal(zr_dtype_register(&r, &v, "me", &err), ZARR_OK);
    assert_int_equal(zr_dtype_from_numpy(&r, "mytype", &t, NULL, NULL), ZARR_OK);
    assert_string_equal(zarr_dtype_name(t), "acme");
    zr_dtype_registry_deinit(&r);
}

static zarr_status noted_parse(zarr_dtype_info *info, const zarr_dtype_host *host,
                               const char *name, const char *json, zarr_error *err)
{
    zarr_status st = facts_parse(info, host, name, json, err);

    if (json && strstr(json, "\"wrong\""))
        info->item_bytes *= 2;
    return st;
}

static void any_configuration(void **state)
{
    static const char noted[] = "{\"name\":\"acme\",\"configuration\":{\"author\":\"A\","
                                "\"version\":[1,2],\"deep\":{\"x\":null}}}";
    struct zr_dtype_registry r, other;
    zarr_dtype_vtable v = *zr_dtype_core[3];
    const zarr_dtype *plain = NULL, *a = NULL, *again = NULL, *b = NULL, *far = NULL;
    zarr_error err = {0};

    (void)state;
    assert_int_equal(fill_registry(&r, NULL), ZARR_OK);
    assert_int_equal(fill_registry(&other, NULL), ZARR_OK);
    facts = (zarr_dtype_info){.kind = ZARR_KIND_RAW, .item_bytes = 2};
    v.flags = ZARR_DTYPE_ANY_CONFIGURATION;
    v.name = "acme";
    v.v2 = "acme2";
    v.numpy = "V";
    v.parse = noted_parse;
    assert_int_equal(zr_dtype_register(&r, &v, "me", NULL), ZARR_OK);
    assert_int_equal(zr_dtype_register(&other, &v, "me", NULL), ZARR_OK);
    assert_int_equal(zr_dtype_find(&r, "acme", &plain, NULL, NULL), ZARR_OK);
    assert_int_equal(zr_dtype_find(&r, noted, &a, NULL, &err), ZARR_OK);
    assert_int_equal(zr_dtype_find(&r, noted, &again, NULL, NULL), ZARR_OK);
    assert_ptr_equal(a, again);
    assert_ptr_not_equal(a, plain);
    assert_string_equal(zarr_dtype_v3(a), noted);
    assert_string_equal(zarr_dtype_v3_name(a), "acme");
    assert_non_null(strstr(zarr_dtype_v3_configuration(a), "\"version\":[1,2]"));
    assert_null(zarr_dtype_v3_configuration(plain));
    assert_string_equal(zarr_dtype_v2(a), zarr_dtype_v2(plain));
    assert_string_equal(zarr_dtype_numpy(a), "|V2");
    assert_int_equal(zr_dtype_find(&r, zarr_dtype_name(a), &again, NULL, NULL), ZARR_OK);
    assert_ptr_equal(a, again);
    /* Only notes differ: elements are the same. */
    assert_int_equal(
        zr_dtype_find(&r, "{\"name\":\"acme\",\"configuration\":{\"author\":\"B\"}}", &b,
                      NULL, NULL),
        ZARR_OK);
    assert_true(zarr_dtype_equal(a, b) && zarr_dtype_equal(plain, a));
    assert_int_equal(zr_dtype_find(&other, noted, &far, NULL, NULL), ZARR_OK);
    assert_true(zarr_dtype_equal(far, b));
    assert_int_equal(zr_dtype_find(&r, "uint16", &far, NULL, NULL), ZARR_OK);
    assert_false(zarr_dtype_equal(a, far));
    /* Other members beside the configuration stay refused, and changed facts are. */
    assert_int_equal(
        zr_dtype_find(&r, "{\"name\":\"acme\",\"author\":\"B\"}", &b, NULL, NULL),
        ZARR_ERR_INVALID);
    assert_int_equal(zr_dtype_find(&r,
                                   "{\"name\":\"acme\",\"configuration\":{\"wrong\":1}}",
                                   &b, NULL, &err),
                     ZARR_ERR_INTERNAL);
    assert_non_null(strstr(err.message, "item_bytes is 4"));
    zr_dtype_registry_deinit(&other);
    zr_dtype_registry_deinit(&r);
}

static void three_numbers(const zarr_dtype_info *info, const void *element, double *out)
{
    ZR_UNUSED(info);
    for (size_t i = 0; i < 3; i++) {
        int16_t v;

        memcpy(&v, (const char *)element + 2 * i, 2);
        out[i] = v / 256.0;
    }
}

static void components(void **state)
{
    const int16_t element[3] = {256, -128, 64};
    double out[4] = {9, 9, 9, 9};
    struct zr_dtype_registry r;
    zarr_dtype_vtable v = *zr_dtype_core[3];
    const zarr_dtype *t = NULL;

    (void)state;
    assert_int_equal(fill_registry(&r, NULL), ZARR_OK);
    facts = (zarr_dtype_info){
        .kind = ZARR_KIND_OTHER, .item_bytes = 6, .swap_bytes = 2, .components = 3};
    v.name = "vector";
    v.v2 = v.numpy = NULL;
    v.parse = facts_parse;
    v.number = three_numbers;
    assert_int_equal(zr_dtype_register(&r, &v, "me", NULL), ZARR_OK);
    assert_int_equal(zr_dtype_find(&r, "vector", &t, NULL, NULL), ZARR_OK);
    assert_int_equal(zarr_dtype_components(t), 3);
    assert_int_equal(zarr_dtype_component_bits(t), 16);
    assert_int_equal(zarr_dtype_number(t, NULL, NULL, 0), 3);
    assert_int_equal(zarr_dtype_number(t, element, out, 2), 3);
    assert_true(out[0] == 1 && out[1] == -0.5 && out[2] == 9);
    assert_int_equal(zarr_dtype_number(t, element, out, 4), 3);
    assert_true(out[2] == 0.25 && out[3] == 9);
    zr_dtype_registry_deinit(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_texts),     cmocka_unit_test(wrong_facts),
        cmocka_unit_test(wrong_entries), cmocka_unit_test(shared_forms),
        cmocka_unit_test(numpy_aliases), cmocka_unit_test(any_configuration),
        cmocka_unit_test(components),    cmocka_unit_test(variable_facts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
