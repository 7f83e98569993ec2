/*
 * unit/group/test_group.c - groups: creating, opening, attributes, listing, walking,
 * probing and deleting, in both formats and on every kind of store.
 */
#include "unit/array/array_test.h"

#include <stdbool.h>
#include <unistd.h>

static void test_create(void **state)
{
    struct world w;
    zarr_group *g = NULL;

    (void)state;
    for (enum world_sort sort = 0; sort < N_WORLDS; sort++)
        for (int32_t format = 2; format <= 3; format++) {
            world_open(&w, sort);
            assert_ok(
                group_create(&g, w.store, "/a/b/", format, "{\"k\": [1]}", 0, &terr));
            assert_string_equal(zarr_group_path(g), "a/b");
            assert_int_equal(zarr_group_zarr_format(g), format);
            assert_int_equal(zarr_group_is_consolidated(g), 0);
            assert_non_null(strstr(zarr_group_attributes(g), "\"k\""));
            assert_non_null(strstr(zarr_group_metadata(g), "zarr_format"));
            assert_true(zarr_group_store(g) == w.store);
            assert_non_null(get_text(&w, format == 3 ? "zarr.json" : ".zgroup"));
            assert_non_null(get_text(&w, format == 3 ? "a/zarr.json" : "a/.zgroup"));
            assert_true((get_text(&w, "a/b/.zattrs") != NULL) == (format == 2));
            zarr_group_free(g);
            assert_status(group_create(&g, w.store, "a/b", format, NULL, 0, &terr),
                          ZARR_ERR_EXISTS);
            assert_says("/a/b: ");
            assert_null(g);
            assert_ok(group_create(&g, w.store, "a/b", format, NULL,
                                   ZARR_GROUP_IF_MISSING, &terr));
            assert_non_null(strstr(zarr_group_attributes(g), "\"k\""));
            zarr_group_free(g);
            assert_ok(group_create(&g, w.store, "a", format, NULL, ZARR_GROUP_OVERWRITE,
                                   &terr));
            zarr_group_free(g);
            assert_int_equal(n_keys(&w, "a"), 1);
            assert_status(group_create(&g, w.store, "q", format, "[", 0, &terr),
                          ZARR_ERR_INVALID);
            assert_status(group_create(&g, w.store, "q", 7, NULL, 0, &terr),
                          ZARR_ERR_INVALID);
            world_close(&w);
        }
}

static zarr_status create_as(struct world *w, zarr_group **g, const zarr_group_spec *spec,
                             const zarr_group_open_options *opts)
{
    return zarr_group_create(g, w->store, "s", spec, opts, &terr);
}

static void test_spec(void **state)
{
    zarr_group_spec spec = ZARR_GROUP_SPEC_INIT;
    struct {
        zarr_group_spec spec;
        uint64_t more;
    } newer = {.spec.struct_size = sizeof newer};
    struct world w;
    zarr_group *g = NULL;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    assert_ok(create_as(&w, &g, NULL, NULL));
    assert_int_equal(zarr_group_zarr_format(g), 3);
    assert_string_equal(zarr_group_attributes(g), "{}");
    zarr_group_free(g);

    spec.flags = ZARR_GROUP_IF_MISSING;
    spec.zarr_format = 2; /* the group has another format */
    assert_status(create_as(&w, &g, &spec, NULL), ZARR_ERR_EXISTS);
    assert_says("/s: there is a group already, of format 3");
    assert_null(g);
    spec.flags = ZARR_GROUP_OVERWRITE;
    spec.attributes = "{\"a\": 1}";
    assert_ok(create_as(&w, &g, &spec, NULL));
    assert_int_equal(zarr_group_zarr_format(g), 2);
    zarr_group_free(g);
    spec.flags = ZARR_GROUP_IF_MISSING;
    spec.zarr_format = 0; /* any format */
    assert_ok(create_as(&w, &g, &spec, NULL));
    assert_int_equal(zarr_group_zarr_format(g), 2);
    zarr_group_free(g);

    spec.flags = 4;
    assert_status(create_as(&w, &g, &spec, NULL), ZARR_ERR_UNSUPPORTED);
    assert_says("unknown flags 0x4");
    newer.spec.flags = ZARR_GROUP_IF_MISSING; /* of a later release, nothing new is set */
    assert_ok(create_as(&w, &g, &newer.spec, NULL));
    zarr_group_free(g);
    newer.more = 1;
    assert_status(create_as(&w, &g, &newer.spec, NULL), ZARR_ERR_UNSUPPORTED);
    assert_null(g);
    world_close(&w);
}

/* The options are the handle's, and wrong ones leave nothing behind. */
static void test_create_options(void **state)
{
    zarr_group_open_options opts = ZARR_GROUP_OPEN_OPTIONS_INIT;
    struct world w;
    zarr_group *g = NULL;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    opts.consolidated = 9;
    assert_status(create_as(&w, &g, NULL, &opts), ZARR_ERR_INVALID);
    assert_int_equal(n_keys(&w, ""), 0);
    opts.consolidated = ZARR_CONSOLIDATED_NEVER;
    opts.zarr_format = 2; /* the spec has the format */
    assert_ok(create_as(&w, &g, NULL, &opts));
    assert_int_equal(zarr_group_zarr_format(g), 3);
    zarr_group_free(g);
    world_close(&w);
}

static void test_attributes(void **state)
{
    struct world w;
    zarr_group *g = NULL;
    zarr_array *a = NULL;
    char text[64];
    size_t n = 0;

    (void)state;
    for (enum world_sort sort = 0; sort < N_WORLDS; sort++)
        for (int32_t format = 2; format <= 3; format++) {
            world_open(&w, sort);
            assert_ok(group_create(&g, w.store, "g", format, NULL, 0, &terr));
            assert_ok(zarr_group_attribute_set(g, "a", "{\"x\": 1.50}", NULL, &terr));
            assert_ok(zarr_group_attribute_get(g, "a", text, sizeof text, &n, &terr));
            assert_string_equal(text, "{\"x\":1.50}"); /* numbers keep their spelling */
            assert_int_equal(n, strlen(text));
            assert_ok(zarr_group_attribute_get(g, "a", text, 4, &n, &terr));
            assert_string_equal(text, "{\"x");
            assert_int_equal(n, 10);
            assert_ok(zarr_group_attributes_merge(g, "{\"a\": 0, \"b\": null}", 0, NULL,
                                                  &terr));
            assert_ok(zarr_group_attribute_delete(g, "a", NULL, &terr));
            assert_status(zarr_group_attribute_delete(g, "a", NULL, &terr),
                          ZARR_ERR_NOT_FOUND);
            assert_status(zarr_group_attribute_get(g, "a", text, 4, &n, &terr),
                          ZARR_ERR_NOT_FOUND);
            assert_says("\"a\"");
            assert_ok(zarr_group_attribute_get(g, "b", text, sizeof text, NULL, &terr));
            assert_string_equal(text, "null");
            assert_ok(zarr_group_attributes_merge(g, "{\"c\": 18446744073709551615}", 1,
                                                  NULL, &terr));
            assert_string_equal(zarr_group_attributes(g),
                                "{\n  \"c\": 18446744073709551615\n}");
            assert_status(zarr_group_attribute_set(g, "a", "{", NULL, &terr),
                          ZARR_ERR_INVALID);
            assert_status(zarr_group_attributes_merge(g, "[]", 0, NULL, &terr),
                          ZARR_ERR_INVALID);
            assert_status(zarr_group_attribute_set(g, NULL, "1", NULL, &terr),
                          ZARR_ERR_INVALID);
            zarr_group_free(g);

            a = make_array(&w, "g/a", format, 4, 4);
            assert_ok(zarr_array_attribute_set(a, "n", "\"NaN\"", NULL, &terr));
            assert_ok(zarr_array_attributes_merge(a, "{\"m\": {}}", 0, NULL, &terr));
            assert_ok(zarr_array_attribute_get(a, "n", text, sizeof text, &n, &terr));
            assert_string_equal(text, "\"NaN\"");
            assert_ok(zarr_array_attribute_delete(a, "n", NULL, &terr));
            assert_status(zarr_array_attribute_get(a, "n", text, 1, &n, &terr),
                          ZARR_ERR_NOT_FOUND);
            assert_says("/g/a: ");
            zarr_array_free(a);
            world_close(&w);
        }
}

/* ---- listings ----------------------------------------------------------- */

struct told {
    char text[4096];
    const char *skip, *stop;
};

static int count(void *user, const zarr_node_item *n)
{
    (void)n;
    ++*(int *)user;
    return 0;
}

static int tell(void *user, const zarr_node_item *n)
{
    struct told *t = user;
    const size_t at = strlen(t->text);

    snprintf(t->text + at, sizeof t->text - at, "%s:%s:%u:%d:%d ", n->path, n->name,
             n->kind, n->zarr_format, n->depth);
    assert_non_null(n->metadata);
    if (t->skip && strcmp(n->path, t->skip) == 0)
        return ZARR_WALK_SKIP;
    return t->stop && strcmp(n->path, t->stop) == 0 ? ZARR_WALK_STOP : ZARR_WALK_GO_ON;
}

static void check_list(zarr_group *g, int deep, struct told *t, const char *want)
{
    t->text[0] = '\0';
    assert_ok(deep ? zarr_group_walk(g, tell, t, NULL, &terr)
                   : zarr_group_list(g, tell, t, NULL, &terr));
    assert_string_equal(t->text, want);
}

static void test_list_and_walk(void **state)
{
    struct world w;
    zarr_group *g = NULL;
    zarr_array *a = NULL;
    struct told t = {{0}, NULL, NULL};

    (void)state;
    for (enum world_sort sort = 0; sort < N_WORLDS; sort++) {
        world_open(&w, sort);
        assert_ok(group_create(&g, w.store, "g/b", 3, NULL, 0, &terr));
        zarr_group_free(g);
        assert_ok(group_create(&g, w.store, "g/a-x", 3, NULL, 0, &terr));
        zarr_group_free(g);
        assert_ok(group_create(&g, w.store, "g/a/deep/er", 3, NULL, 0, &terr));
        zarr_group_free(g);
        zarr_array_free(make_array(&w, "g/a/arr", 3, 4, 4));
        zarr_array_free(make_array(&w, "g/two", 2, 4, 4));
        a = make_array(&w, "g/full", 3, 4, 4);
        fill_array(a); /* its chunks are not children */
        zarr_array_free(a);
        put_text(&w, "g/nothing/here.txt", "x");
        put_text(&w, "g/sick/zarr.json", "{\"zarr_format\": 3, \"node_type\"");

        assert_ok(zarr_group_open(&g, w.store, "g", NULL, &terr));
        check_list(g, 0, &t,
                   "g/a:a:2:3:1 g/a-x:a-x:2:3:1 g/b:b:2:3:1 g/full:full:1:3:1 "
                   "g/sick:sick:0:3:1 g/two:two:1:2:1 ");
        check_list(
            g, 1, &t,
            "g/a:a:2:3:1 g/a/arr:arr:1:3:2 g/a/deep:deep:2:3:2 g/a/deep/er:er:2:3:3 "
            "g/a-x:a-x:2:3:1 g/b:b:2:3:1 g/full:full:1:3:1 g/sick:sick:0:3:1 "
            "g/two:two:1:2:1 ");
        t.skip = "g/a/deep";
        t.stop = "g/b";
        check_list(g, 1, &t,
                   "g/a:a:2:3:1 g/a/arr:arr:1:3:2 g/a/deep:deep:2:3:2 g/a-x:a-x:2:3:1 "
                   "g/b:b:2:3:1 ");
        t.skip = t.stop = NULL;
        assert_non_null(strstr(w.log, "/g/sick: "));
        zarr_group_free(g);
        world_close(&w);
    }
}

/* More children than one batch of requests holds, and groups nested too deep for
 * recursion. */
static void test_wide_and_deep(void **state)
{
    struct world w;
    zarr_group *g = NULL;
    char path[1024] = "";
    int n = 0;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    for (int i = 0; i < 300; i++) {
        snprintf(path, sizeof path, "wide/%03d", i);
        assert_ok(group_create(&g, w.store, path, 3, NULL, 0, &terr));
        zarr_group_free(g);
    }
    path[0] = '\0';
    for (int i = 0; i < 400; i++)
        strcat(path, i ? "/d" : "d");
    assert_ok(group_create(&g, w.store, path, 2, NULL, 0, &terr));
    zarr_group_free(g);
    assert_ok(zarr_group_open(&g, w.store, "", NULL, &terr));
    assert_ok(zarr_group_walk(g, count, &n, NULL, &terr));
    assert_int_equal(n, 1 + 300 + 400);
    zarr_group_free(g);
    world_close(&w);
}

static int count_listed(void *user, const zarr_store_item *item)
{
    (void)item;
    ++*(int *)user;
    return 0;
}

static int count_difference(void *user, const char *path, const char *what)
{
    (void)path;
    (void)what;
    ++*(int *)user;
    return 0;
}

/* Each of 30 groups has two links to the next one: 2^30 paths, but no cycle. */
static void links_fan_out(bool linked)
{
    const char *const says = linked
                                 ? "1000 directories behind symbolic links in one walk "
                                   "(limit linked_directories is"
                                 : "1000 names in one walk (limit listing_keys is";
    const zarr_limits limits = {.struct_size = sizeof limits,
                                .listing_keys = linked ? 0 : 1000,
                                .linked_directories = linked ? 1000 : 0};
    const zarr_context_options o = {.struct_size = sizeof o, .limits = &limits};
    const zarr_store_options follow = {.struct_size = sizeof follow,
                                       .symlinks = ZARR_SYMLINKS_FOLLOW};
    zarr_context *ctx = NULL;
    zarr_store *store = NULL;
    zarr_group *g = NULL;
    char path[128], to[32];
    struct world w;
    int n = 0;

    world_open(&w, WORLD_LOCAL);
    for (int i = 0; i <= 30; i++) {
        snprintf(path, sizeof path, "real/%d", i);
        assert_ok(group_create(&g, w.store, path, 3, NULL, 0, &terr));
        zarr_group_free(g);
        snprintf(to, sizeof to, "../%d", i + 1);
        for (int k = 0; k < 2 && i < 30; k++) {
            snprintf(path, sizeof path, "%s/real/%d/%c", w.dir, i, 'a' + k);
            assert_int_equal(symlink(to, path), 0);
        }
    }
    assert_ok(zarr_context_create(&ctx, &o, &terr));
    assert_ok(zarr_store_open(&store, ctx, w.dir, &follow, &terr));

    assert_ok(zarr_group_open(&g, store, "real/22", NULL, &terr));
    assert_ok(zarr_group_walk(g, count, &n, NULL, &terr));
    /* A link counts as a group each time it is visited. */
    assert_int_equal(n, (1 << 9) - 2);
    zarr_group_free(g);
    assert_ok(consolidate_at(store, "real/22", NULL, &terr));
    assert_ok(check_consolidated_at(store, "real/22", count_difference, &n, NULL, &terr));
    assert_int_equal(n, (1 << 9) - 2);

    assert_ok(zarr_group_open(&g, store, "real/0", NULL, &terr));
    n = 0;
    assert_status(zarr_group_walk(g, count, &n, NULL, &terr), ZARR_ERR_LIMIT);
    assert_says(says);
    assert_in_range(n, 30, 1000);
    zarr_group_free(g);
    assert_status(consolidate_at(store, "real/0", NULL, &terr), ZARR_ERR_LIMIT);
    assert_says("in one walk");
    assert_status(zarr_node_migrate(store, "real/0", NULL, &terr), ZARR_ERR_LIMIT);
    assert_says("in one walk");
    assert_status(zarr_store_list(store, "real/0", ZARR_LIST_RECURSIVE, count_listed, &n,
                                  NULL, &terr),
                  ZARR_ERR_LIMIT);
    assert_says(linked ? "limit linked_directories" : "limit listing_keys");
    zarr_store_free(store);
    zarr_context_free(ctx);
    world_close(&w);
}

static void test_links_fan_out(void **state)
{
    (void)state;
    links_fan_out(false);
    links_fan_out(true);
}

static void test_probe_and_delete(void **state)
{
    struct world w;
    zarr_array *a = NULL;
    uint32_t kind = 9;
    int32_t format = 9;

    (void)state;
    for (enum world_sort sort = 0; sort < N_WORLDS; sort++) {
        world_open(&w, sort);
        assert_ok(zarr_node_probe(w.store, "g", &kind, &format, NULL, &terr));
        assert_int_equal(kind, ZARR_NODE_NONE);
        assert_int_equal(format, 0);
        zarr_array_free(make_array(&w, "g/two", 2, 4, 4));
        a = make_array(&w, "g/keep", 3, 4, 4);
        fill_array(a);
        zarr_array_free(a);
        assert_ok(zarr_node_probe(w.store, "/g", &kind, &format, NULL, &terr));
        assert_int_equal(kind, ZARR_NODE_GROUP);
        assert_int_equal(format, 2);
        assert_ok(zarr_node_probe(w.store, "g/keep", &kind, &format, NULL, &terr));
        assert_int_equal(kind, ZARR_NODE_ARRAY);
        assert_int_equal(format, 3);
        put_text(&w, "sick/zarr.json", "{}");
        assert_status(zarr_node_probe(w.store, "sick", &kind, &format, NULL, &terr),
                      ZARR_ERR_CORRUPT);
        assert_int_equal(kind, ZARR_NODE_NONE);
        assert_int_equal(format, 3);
        assert_ok(zarr_node_delete(w.store, "sick", &terr)); /* it can be deleted */
        assert_status(zarr_node_delete(w.store, "sick", &terr), ZARR_ERR_NOT_FOUND);
        assert_status(zarr_node_delete(w.store, "g/keep/c", &terr), ZARR_ERR_NOT_FOUND);
        assert_ok(zarr_node_delete(w.store, "g", &terr));
        assert_int_equal(n_keys(&w, "g"), 0);
        assert_status(zarr_node_delete(w.store, "a/../b", &terr), ZARR_ERR_INVALID);
        world_close(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_create),         cmocka_unit_test(test_spec),
        cmocka_unit_test(test_create_options), cmocka_unit_test(test_attributes),
        cmocka_unit_test(test_list_and_walk),  cmocka_unit_test(test_wide_and_deep),
        cmocka_unit_test(test_links_fan_out),  cmocka_unit_test(test_probe_and_delete),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
