/*
 * unit/tree/test_consolidated_update.c - consolidated metadata of the groups above a node
 * that changes: its entries are brought up to date, or removed before the node goes.
 */
#include "consolidated_test.h"

/* ---- entries brought up to date ---------------------------------------------- */

static void must_be_current(struct world *w)
{
    struct told t = {.text = ""};

    assert_ok(check_consolidated_at(w->store, "c", tell_difference, &t, NULL, &terr));
    assert_string_equal(t.text, "");
}

static uint64_t update(struct world *w, const char *path, uint32_t flags)
{
    uint64_t n = 0;

    assert_ok(zarr_group_consolidated_update(
        w->store, path, &n,
        &(const zarr_consolidate_options){.struct_size = sizeof(zarr_consolidate_options),
                                          .flags = flags},
        &terr));
    return n;
}

static void change_nodes(struct world *w, int format)
{
    zarr_array *a = NULL;
    zarr_group *g = NULL;

    assert_ok(zarr_array_open(&a, w->store, "c/A", NULL, &terr));
    assert_ok(zarr_array_attribute_set(a, "now", "[1, NaN]", NULL, &terr));
    zarr_array_free(a);
    assert_int_equal(update(w, "c/A", 0), 1);
    must_be_current(w);
    assert_ok(zarr_node_delete(w->store, "c/b", &terr));
    assert_int_equal(update(w, "/c/b/", 0), 1);
    must_be_current(w);
    zarr_array_free(make_array(w, "c/new/groups/y", format, 4, 4));
    assert_int_equal(update(w, "c/new/groups/y", 0), 1);
    must_be_current(w);
    assert_ok(zarr_node_copy(w->store, "c/g", w->store, "c/h", NULL, &terr));
    assert_int_equal(update(w, "c/h", ZARR_CONSOLIDATED_BELOW), 1);
    must_be_current(w);
    assert_ok(zarr_node_delete(w->store, "c/g", &terr));
    assert_int_equal(update(w, "c/g", ZARR_CONSOLIDATED_BELOW), 1);
    must_be_current(w);
    /* Only the group is updated: its nodes keep their entries. */
    assert_ok(zarr_group_open(&g, w->store, "c/h", NULL, &terr));
    assert_ok(zarr_group_attribute_set(g, "here", "true", NULL, &terr));
    zarr_group_free(g);
    assert_int_equal(update(w, "c/h", 0), 1);
    must_be_current(w);
    /* The group that has the entries: v2 has one of the group itself. */
    assert_ok(zarr_group_open(&g, w->store, "c", NULL, &terr));
    assert_ok(zarr_group_attribute_set(g, "own", "5", NULL, &terr));
    zarr_group_free(g);
    assert_int_equal(update(w, "c", 0), format == 2);
    must_be_current(w);
    if (format == 2)
        assert_non_null(strstr(get_text(w, "c/.zmetadata"), "\".zattrs\":{\"own\":5}"));
}

static void test_update(void **state)
{
    struct world w;

    (void)state;
    for (enum world_sort sort = 0; sort < N_WORLDS; sort++)
        for (int format = 2; format <= 3; format++) {
            world_open(&w, sort);
            make_tree(&w, format);
            assert_int_equal(update(&w, "c/A", 0), 0); /* it is not consolidated */
            assert_ok(consolidate_at(w.store, "c", NULL, &terr));
            change_nodes(&w, format);
            world_close(&w);
        }
}

/* Groups at several levels have entries of one node. What is not known stays. */
static void test_update_levels(void **state)
{
    struct world w;
    zarr_array *a = NULL;

    (void)state;
    world_open(&w, WORLD_LOCAL);
    make_tree(&w, 2);
    assert_ok(consolidate_at(w.store, "c/g", NULL, &terr));
    assert_ok(consolidate_at(w.store, "c", NULL, &terr));
    assert_ok(zarr_array_open(&a, w.store, "c/g/inner/x", NULL, &terr));
    assert_ok(zarr_array_attribute_set(a, "k", "1", NULL, &terr));
    zarr_array_free(a);
    assert_int_equal(update(&w, "c/g/inner/x", 0), 2);
    must_be_current(&w);
    assert_non_null(
        strstr(get_text(&w, "c/g/.zmetadata"), "\"inner/x/.zattrs\":{\"k\":1}"));
    put_text(&w, "c/.zmetadata",
             "{\"mine\":1,\"zarr_consolidated_format\":1,\"metadata\":{\"Ab/.zarray\":7,"
             "\"A/.zarray\":{},\"A/0.0\":\"inline\"}}");
    assert_int_equal(update(&w, "c/A", 0), 1);
    assert_non_null(strstr(get_text(&w, "c/.zmetadata"), "\"mine\":1"));
    assert_non_null(
        strstr(get_text(&w, "c/.zmetadata"), "{\"Ab/.zarray\":7,\"A/.zarray\":{\""));
    assert_non_null(strstr(get_text(&w, "c/.zmetadata"), "\"A/0.0\":\"inline\""));
    put_text(&w, "c/.zmetadata", "{");
    assert_status(zarr_group_consolidated_update(w.store, "c/A", NULL, NULL, &terr),
                  ZARR_ERR_CORRUPT);
    assert_says("/c/.zmetadata: ");
    assert_status(zarr_group_consolidated_update(
                      w.store, "c/A", NULL,
                      &(const zarr_consolidate_options){
                          .struct_size = sizeof(zarr_consolidate_options), .flags = 8},
                      &terr),
                  ZARR_ERR_UNSUPPORTED);
    world_close(&w);
}

/* ---- entries that go before their node -------------------------------------- */

/* Whether "c" lists the node, by its own document or that of v2. */
static int is_listed(struct world *w, int format, const char *path)
{
    char key[64];

    snprintf(key, sizeof key, format == 3 ? "\"%s\"" : "\"%s/.z", path);
    return strstr(get_text(w, format == 3 ? "c/zarr.json" : "c/.zmetadata"), key) != NULL;
}

struct watching {
    struct world *w;
    int format, n;
    const char *path;
};

static void look_while_deleting(void *user, uint64_t n)
{
    struct watching *l = user;

    (void)n;
    l->n++;
    assert_false(is_listed(l->w, l->format, l->path));
}

static void consolidate_group(struct world *w, const char *path)
{
    zarr_group *g = NULL;

    assert_ok(zarr_group_open(&g, w->store, path, NULL, &terr));
    assert_ok(zarr_group_consolidate(g, NULL, &terr));
    zarr_group_free(g);
}

static void check_removal(struct world *w, int format)
{
    struct watching watching = {w, format, 0, "g"};
    zarr_delete_options opts = ZARR_DELETE_OPTIONS_INIT;
    zarr_copy_options copy = ZARR_COPY_OPTIONS_INIT;
    zarr_array *a = NULL;

    assert_int_equal(update(w, "c/b", ZARR_CONSOLIDATED_REMOVE), 1);
    assert_false(is_listed(w, format, "b"));
    assert_true(is_listed(w, format, "A"));
    assert_int_equal(update(w, "c/b", 0), 1);
    assert_true(is_listed(w, format, "b"));

    copy.flags = ZARR_COPY_CONSOLIDATED;
    assert_ok(zarr_node_move(w->store, "c/b", w->store, "c/moved", &copy, &terr));
    assert_false(is_listed(w, format, "b"));
    a = make_array(w, "c/b", format, 4, 4);
    zarr_array_free(a);
    assert_int_equal(update(w, "c/b", 0), 1);
    copy.flags |= ZARR_COPY_OVERWRITE;
    assert_ok(zarr_node_copy(w->store, "c/A", w->store, "c/b", &copy, &terr));
    assert_false(is_listed(w, format, "b"));

    opts.flags = ZARR_DELETE_CONSOLIDATED;
    opts.progress = look_while_deleting;
    opts.progress_user = &watching;
    assert_true(is_listed(w, format, "g/inner/x"));
    assert_ok(zarr_node_delete_watched(w->store, "c/g", &opts, &terr));
    assert_true(watching.n > 0);
    assert_false(is_listed(w, format, "g/inner/x"));
    opts.flags = 2;
    assert_status(zarr_node_delete_watched(w->store, "c/A", &opts, &terr),
                  ZARR_ERR_UNSUPPORTED);
}

static void test_entries_go_first(void **state)
{
    (void)state;
    for (int format = 2; format <= 3; format++) {
        struct world w;

        world_open(&w, WORLD_MEMORY);
        make_tree(&w, format);
        consolidate_group(&w, "c");
        check_removal(&w, format);
        world_close(&w);
    }
}

static void see_entry(void *user, uint64_t objects, uint64_t bytes)
{
    (void)objects;
    (void)bytes;
    assert_non_null(strstr(get_text(user, "c/zarr.json"), "\"A\": {"));
}

/* A move that has to copy keeps the entries of its source until it deletes that. */
static void test_entries_stay_while_a_move_copies(void **state)
{
    zarr_copy_options opts = {.struct_size = sizeof opts};
    struct world w;
    char path[128];
    FILE *f = NULL;

    (void)state;
    world_open(&w, WORLD_LOCAL);
    make_tree(&w, 3);
    consolidate_group(&w, "c");
    put_text(&w, "c/moved/x", "");
    snprintf(path, sizeof path, "%s/c/moved/1.__lock", w.dir); /* refuses the rename */
    f = fopen(path, "w");
    assert_non_null(f);
    fclose(f);
    assert_ok(zarr_store_erase(w.store, "c/moved/x", NULL, &terr));
    opts.flags = ZARR_COPY_CONSOLIDATED;
    opts.progress = see_entry;
    opts.progress_user = &w;
    assert_ok(zarr_node_move(w.store, "c/A", w.store, "c/moved", &opts, &terr));
    assert_null(strstr(get_text(&w, "c/zarr.json"), "\"A\": {"));
    world_close(&w);
}

/* A node whose entries cannot be removed stays. */
static void test_entries_that_cannot_go(void **state)
{
    zarr_delete_options opts = ZARR_DELETE_OPTIONS_INIT;
    struct world w;
    zarr_array *a = NULL;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    make_tree(&w, 2);
    put_text(&w, "c/.zmetadata", "{");
    opts.flags = ZARR_DELETE_CONSOLIDATED;
    assert_status(zarr_node_delete_watched(w.store, "c/A", &opts, &terr),
                  ZARR_ERR_CORRUPT);
    assert_says("/c/A: consolidated metadata would list a node that is gone: "
                "/c/.zmetadata: ");
    assert_ok(zarr_array_open(&a, w.store, "c/A", NULL, &terr));
    zarr_array_free(a);
    assert_ok(zarr_node_delete(w.store, "c/A", &terr));
    world_close(&w);
}

/* An update above the root of a store opens another store. The texts of the options that
 * the first one was opened with are gone then. */
static void test_above_the_store(void **state)
{
    zarr_store_options opts = ZARR_STORE_OPTIONS_INIT;
    char kind[64] = "local", url[80];
    zarr_store *s = NULL;
    uint64_t n = 0;
    struct world w;

    (void)state;
    world_open(&w, WORLD_LOCAL);
    make_tree(&w, 3);
    assert_ok(consolidate_at(w.store, "", NULL, &terr));
    snprintf(url, sizeof url, "%s/c/g", w.dir);
    opts.kind = kind;
    assert_ok(zarr_store_open(&s, w.ctx, url, &opts, &terr));
    memset(kind, '?', sizeof kind - 1);
    assert_ok(zarr_group_consolidated_update(s, "inner", &n, NULL, &terr));
    assert_int_equal(n, 1);
    zarr_store_free(s);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_update),
        cmocka_unit_test(test_update_levels),
        cmocka_unit_test(test_entries_go_first),
        cmocka_unit_test(test_entries_that_cannot_go),
        cmocka_unit_test(test_entries_stay_while_a_move_copies),
        cmocka_unit_test(test_above_the_store),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
