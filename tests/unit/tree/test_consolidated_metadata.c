/*
 * unit/tree/test_consolidated_metadata.c - consolidated metadata: written as zarr-python
 * writes it, used when a group is opened, compared with the nodes' documents, and refused
 * if it is invalid.
 */
#include "consolidated_test.h"

static int tell_node(void *user, const zarr_node_item *n)
{
    struct told *t = user;
    const size_t at = strlen(t->text);

    snprintf(t->text + at, sizeof t->text - at, "%s:%u:%d ", n->path, n->kind, n->depth);
    return 0;
}

static void check_walk(zarr_group *g, const char *want)
{
    struct told t = {.text = ""};

    assert_ok(zarr_group_walk(g, tell_node, &t, NULL, &terr));
    assert_string_equal(t.text, want);
}

static void test_write_and_use(void **state)
{
    struct world w;
    zarr_group *g = NULL, *inner = NULL;
    zarr_array *a = NULL;
    zarr_group_open_options never = {.struct_size = sizeof never,
                                     .consolidated = ZARR_CONSOLIDATED_NEVER};
    zarr_array_open_options must = {.struct_size = sizeof must,
                                    .consolidated = ZARR_CONSOLIDATED_MUST};

    (void)state;
    for (enum world_sort sort = 0; sort < N_WORLDS; sort++)
        for (int format = 2; format <= 3; format++) {
            world_open(&w, sort);
            make_tree(&w, format);
            assert_ok(consolidate_at(w.store, "c", NULL, &terr));
            assert_ok(zarr_group_open(&g, w.store, "c", NULL, &terr));
            assert_int_equal(zarr_group_is_consolidated(g), 1);
            check_walk(g, "c/A:1:1 c/b:1:1 c/g:2:1 c/g/inner:2:2 c/g/inner/x:1:3 ");
            assert_ok(zarr_group_open_group(&inner, g, "g/inner", NULL, &terr));
            assert_int_equal(zarr_group_is_consolidated(inner), 1);
            assert_string_equal(zarr_group_attributes(inner), "{\n  \"i\": 1\n}");
            check_walk(inner, "c/g/inner/x:1:1 ");
            /* No request at all: the documents were deleted. */
            assert_ok(zarr_node_delete(w.store, "c/g/inner/x", &terr));
            assert_ok(zarr_group_open_array(&a, inner, "x", &must, &terr));
            assert_string_equal(zarr_array_path(a), "c/g/inner/x");
            assert_int_equal(zarr_array_shape(a)[1], 4);
            zarr_array_free(a);
            assert_status(zarr_group_open_array(&a, g, "nope", NULL, &terr),
                          ZARR_ERR_NOT_FOUND);
            assert_says("/c/nope: ");
            assert_status(zarr_group_open_array(&a, g, "g", NULL, &terr),
                          ZARR_ERR_NOT_FOUND);
            assert_status(zarr_group_open_array(&a, g, "../c", NULL, &terr),
                          ZARR_ERR_INVALID);
            /* An attribute of an inner group changes at once, and the consolidated copy
             * becomes outdated. */
            assert_ok(zarr_group_attribute_set(inner, "j", "2", NULL, &terr));
            assert_int_equal(zarr_group_is_consolidated(inner), 1);
            zarr_group_free(inner);
            assert_ok(zarr_group_attribute_set(g, "top", "2", NULL, &terr));
            assert_int_equal(zarr_group_is_consolidated(g), 1);
            zarr_group_free(g);
            assert_ok(zarr_group_open(&g, w.store, "c", &never, &terr));
            assert_int_equal(zarr_group_is_consolidated(g), 0);
            check_walk(g, "c/A:1:1 c/b:1:1 c/g:2:1 c/g/inner:2:2 ");
            assert_status(zarr_group_open_array(&a, g, "A", &must, &terr),
                          ZARR_ERR_NOT_FOUND);
            zarr_group_free(g);
            world_close(&w);
        }
}

/* v3 equals zarr-python 3's output member for member; v2 lacks its superfluous
 * members. */
static void test_form(void **state)
{
    static const char v2_begin[] =
        "{\"metadata\":{\".zgroup\":{\"zarr_format\":2},\"A/.zarray\":{";
    static const char v3_middle[] =
        "  \"consolidated_metadata\": {\n    \"kind\": \"inline\",\n"
        "    \"must_understand\": false,\n    \"metadata\": {\n      \"A\": {";
    struct world w;
    const char *text = NULL;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    make_tree(&w, 2);
    assert_ok(consolidate_at(
        w.store, "c",
        &(const zarr_consolidate_options){.struct_size = sizeof(zarr_consolidate_options),
                                          .key = "other.json"},
        &terr));
    text = get_text(&w, "c/other.json");
    assert_non_null(text);
    if (strncmp(text, v2_begin, sizeof v2_begin - 1) != 0)
        fail_msg("%s", text);
    assert_non_null(strstr(text, "\"zarr_consolidated_format\":1}"));
    assert_non_null(strstr(text, "\"g/inner/.zattrs\":{\"i\":1}"));
    world_close(&w);

    world_open(&w, WORLD_MEMORY);
    make_tree(&w, 3);
    assert_ok(consolidate_at(w.store, "c", NULL, &terr));
    text = get_text(&w, "c/zarr.json");
    if (!strstr(text, v3_middle))
        fail_msg("%s", text);
    assert_true(strstr(text, "\"A\": {") < strstr(text, "\"b\": {"));
    assert_true(strstr(text, "\"g\": {") < strstr(text, "\"g/inner\": {"));
    assert_status(
        consolidate_at(w.store, "c",
                       &(const zarr_consolidate_options){
                           .struct_size = sizeof(zarr_consolidate_options), .key = "key"},
                       &terr),
        ZARR_ERR_INVALID);
    assert_status(consolidate_at(w.store, "c/A", NULL, &terr), ZARR_ERR_NOT_FOUND);
    put_text(&w, "c/sick/zarr.json", "{");
    assert_status(consolidate_at(w.store, "c", NULL, &terr), ZARR_ERR_CORRUPT);
    assert_says("/c/sick: ");
    world_close(&w);
}

/* A key name chosen by the caller never replaces anything but consolidated metadata. */
static void test_keys(void **state)
{
    static const char *const never[] = {".zgroup", ".zarray", ".zattrs",   "zarr.json",
                                        "A/0.0",   "A/",      "A/.zarray", ""};
    static const char *const other[] = {"{\"zarr_format\": 2}", "", "{", "[]", "bytes"};
    struct world w;

    (void)state;
    world_open(&w, WORLD_LOCAL);
    make_tree(&w, 2);
    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++) {
        assert_status(consolidate_at(w.store, "c",
                                     &(const zarr_consolidate_options){
                                         .struct_size = sizeof(zarr_consolidate_options),
                                         .key = never[i]},
                                     &terr),
                      ZARR_ERR_INVALID);
        assert_says("/c: ");
    }
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++) {
        put_text(&w, "c/mine", other[i]);
        assert_status(consolidate_at(w.store, "c",
                                     &(const zarr_consolidate_options){
                                         .struct_size = sizeof(zarr_consolidate_options),
                                         .key = "mine"},
                                     &terr),
                      ZARR_ERR_EXISTS);
        assert_string_equal(get_text(&w, "c/mine"), other[i]);
        /* The object under its own name may be broken. */
        put_text(&w, "c/.zmetadata", other[i]);
        assert_ok(consolidate_at(
            w.store, "c",
            &(const zarr_consolidate_options){
                .struct_size = sizeof(zarr_consolidate_options), .key = ".zmetadata"},
            &terr));
        assert_non_null(strstr(get_text(&w, "c/.zmetadata"), "A/.zarray"));
    }
    for (int twice = 0; twice < 2; twice++)
        assert_ok(consolidate_at(
            w.store, "c",
            &(const zarr_consolidate_options){
                .struct_size = sizeof(zarr_consolidate_options), .key = "fresh.json"},
            &terr));
    world_close(&w);
}

static void test_check(void **state)
{
    struct world w;
    struct told t = {.text = ""};
    zarr_array *a = NULL;

    (void)state;
    for (int format = 2; format <= 3; format++) {
        world_open(&w, WORLD_LOCAL);
        make_tree(&w, format);
        assert_status(
            check_consolidated_at(w.store, "c", tell_difference, &t, NULL, &terr),
            ZARR_ERR_NOT_FOUND);
        assert_ok(consolidate_at(w.store, "c", NULL, &terr));
        t.text[0] = '\0';
        assert_ok(check_consolidated_at(w.store, "c", tell_difference, &t, NULL, &terr));
        assert_string_equal(t.text, "");
        assert_ok(zarr_array_open(&a, w.store, "c/A", NULL, &terr));
        assert_ok(zarr_array_attribute_set(a, "new", "1", NULL, &terr));
        zarr_array_free(a);
        assert_ok(zarr_node_delete(w.store, "c/b", &terr));
        zarr_array_free(make_array(&w, "c/z", format, 4, 4));
        assert_ok(check_consolidated_at(w.store, "c", tell_difference, &t, NULL, &terr));
        assert_string_equal(
            t.text, format == 2 ? "c/A has other attributes in the consolidated metadata|"
                                  "c/b is in the consolidated metadata only|"
                                  "c/z is missing in the consolidated metadata|"
                                : "c/A has another document in the consolidated metadata|"
                                  "c/b is in the consolidated metadata only|"
                                  "c/z is missing in the consolidated metadata|");
        t.stop = 1;
        t.text[0] = '\0';
        assert_ok(check_consolidated_at(w.store, "c", tell_difference, &t, NULL, &terr));
        assert_null(strstr(t.text, "c/b"));
        t = (struct told){.text = ""};
        world_close(&w);
    }
}

static void test_hostile(void **state)
{
    static const char *const maps[] = {
        "{\"../x\":{\"zarr_format\":3,\"node_type\":\"group\"}}",
        "{\"/x\":{\"zarr_format\":3,\"node_type\":\"group\"}}",
        "{\"a//b\":{\"zarr_format\":3,\"node_type\":\"group\"}}",
        "{\"\":{\"zarr_format\":3,\"node_type\":\"group\"}}",
        "{\"a\":7}",
        "{\"a\":{\"zarr_format\":2}}",
        "[]",
        "{\"a\\u0000b\":{\"zarr_format\":3,\"node_type\":\"group\"}}",
    };
    zarr_group_open_options must = {.struct_size = sizeof must,
                                    .consolidated = ZARR_CONSOLIDATED_MUST};
    struct world w;
    zarr_group *g = NULL;
    char text[1024];

    (void)state;
    world_open(&w, WORLD_MEMORY);
    for (size_t i = 0; i < sizeof maps / sizeof maps[0]; i++) {
        snprintf(text, sizeof text,
                 "{\"zarr_format\":3,\"node_type\":\"group\",\"consolidated_metadata\":"
                 "{\"kind\":\"inline\",\"must_understand\":false,\"metadata\":%s}}",
                 maps[i]);
        put_text(&w, "g/zarr.json", text);
        assert_status(zarr_group_open(&g, w.store, "g", &must, &terr), ZARR_ERR_CORRUPT);
        assert_says("/g: ");
        w.log[0] = '\0';
        assert_ok(zarr_group_open(&g, w.store, "g", NULL,
                                  &terr)); /* "auto" opens without it and logs why */
        assert_int_equal(zarr_group_is_consolidated(g), 0);
        assert_non_null(strstr(w.log, "not used"));
        zarr_group_free(g);
    }
    put_text(
        &w, "g/zarr.json",
        "{\"zarr_format\":3,\"node_type\":\"group\",\"consolidated_metadata\":null}");
    assert_ok(zarr_group_open(&g, w.store, "g", NULL, &terr));
    zarr_group_free(g);
    assert_status(zarr_group_open(&g, w.store, "g", &must, &terr), ZARR_ERR_NOT_FOUND);
    world_close(&w);
}

/* Members that other writers leave out of .zmetadata or add to it. */
static void test_v2_leniency(void **state)
{
    struct world w;
    zarr_group *g = NULL;
    zarr_array *a = NULL;
    zarr_group_open_options opts = {.struct_size = sizeof opts,
                                    .zarr_format = 2,
                                    .consolidated = ZARR_CONSOLIDATED_MUST,
                                    .consolidated_key = "meta"};

    (void)state;
    world_open(&w, WORLD_MEMORY);
    put_text(&w, ".zgroup", "{\"zarr_format\":2}");
    put_text(
        &w, "meta",
        "{\"zarr_consolidated_format\":1,\"metadata\":{\".zgroup\":{\"zarr_format\":2},"
        "\"x/.zarray\":{\"zarr_format\":2,\"shape\":[4],\"chunks\":[2],\"dtype\":\"<f4\","
        "\"compressor\":null,\"fill_value\":NaN,\"order\":\"C\",\"filters\":null},"
        "\"lost/.zattrs\":{},\"x/0\":\"inline "
        "data\",\"s/.zgroup\":{\"zarr_format\":2}}}");
    assert_ok(zarr_group_open(&g, w.store, "", &opts, &terr));
    check_walk(g, "s:2:1 x:1:1 ");
    assert_ok(zarr_group_open_array(&a, g, "x", NULL, &terr));
    assert_string_equal(zarr_array_attributes(a), "{}");
    zarr_array_free(a);
    zarr_group_free(g);
    world_close(&w);
}

/* A group decides by its handle: which format, which key, and that it is still there. */
static void test_handles(void **state)
{
    zarr_group_open_options opts = ZARR_GROUP_OPEN_OPTIONS_INIT;
    struct world w;
    struct told t = {.text = ""};
    zarr_group *g = NULL, *inner = NULL;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    make_tree(&w, 2);
    opts.zarr_format = 2;
    opts.consolidated_key = "mine";
    put_text(&w, "c/zarr.json", "{\"zarr_format\": 3, \"node_type\": \"group\"}");
    assert_ok(zarr_group_open(&g, w.store, "c", &opts, &terr));
    assert_int_equal(zarr_group_is_consolidated(g), 0);
    assert_status(zarr_group_consolidated_check(g, tell_difference, &t, NULL, &terr),
                  ZARR_ERR_NOT_FOUND);
    assert_ok(zarr_group_consolidate(g, NULL, &terr));
    assert_int_equal(zarr_group_is_consolidated(g), 0);
    assert_null(get_text(&w, "c/.zmetadata"));
    assert_non_null(strstr(get_text(&w, "c/mine"), "A/.zarray"));
    assert_null(strstr(get_text(&w, "c/zarr.json"), "A"));
    assert_ok(zarr_group_consolidated_check(g, tell_difference, &t, NULL, &terr));
    assert_string_equal(t.text, "");
    zarr_group_free(g);

    /* a group that was opened from consolidated metadata tells what the store has */
    assert_ok(zarr_group_open(&g, w.store, "c", &opts, &terr));
    assert_int_equal(zarr_group_is_consolidated(g), 1);
    assert_ok(zarr_group_open_group(&inner, g, "g", NULL, &terr));
    zarr_array_free(make_array(&w, "c/g/late", 2, 4, 4));
    assert_ok(zarr_group_consolidated_check(g, tell_difference, &t, NULL, &terr));
    assert_string_equal(t.text, "c/g/late is missing in the consolidated metadata|");
    assert_ok(zarr_group_consolidate(inner, NULL, &terr));
    assert_non_null(strstr(get_text(&w, "c/g/.zmetadata"), "late/.zarray"));
    assert_ok(zarr_node_delete(w.store, "c/g", &terr));
    assert_status(zarr_group_consolidate(inner, NULL, &terr), ZARR_ERR_NOT_FOUND);
    assert_says("/c/g: there is no group");
    assert_status(zarr_group_consolidated_check(inner, tell_difference, &t, NULL, &terr),
                  ZARR_ERR_NOT_FOUND);
    zarr_group_free(inner);
    zarr_group_free(g);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_write_and_use), cmocka_unit_test(test_form),
        cmocka_unit_test(test_keys),          cmocka_unit_test(test_check),
        cmocka_unit_test(test_hostile),       cmocka_unit_test(test_v2_leniency),
        cmocka_unit_test(test_handles),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
