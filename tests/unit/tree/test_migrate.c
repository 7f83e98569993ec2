/*
 * unit/tree/test_migrate.c - migrating the metadata of a hierarchy to the other format
 * and back: what is written, kept, refused and removed. A migration stopped at any step
 * leaves a hierarchy that reads as before, and the same call resumes it.
 */
#include <stdatomic.h>
#include <stdbool.h>

#include "unit/array/array_test.h"

/* ---- reported changes ---------------------------------------------------- */

struct told {
    char text[2048];
    int n, stop_at; /* stop_at: sets `cancel` after this many; 0: never */
    zarr_cancel *cancel;
};

static void tell(void *user, const zarr_migrate_item *item)
{
    static const char *const actions[] = {"",       "write",       "replace",
                                          "keep",   "consolidate", "remove",
                                          "refuse", "leave",       "warn"};
    struct told *t = user;
    const size_t at = strlen(t->text);

    assert_in_range(item->action, 1, 8);
    assert_true((item->key == NULL) == (item->action == ZARR_MIGRATED_REFUSED));
    assert_true((item->text != NULL) == (item->action == ZARR_MIGRATED_WRITTEN ||
                                         item->action == ZARR_MIGRATED_REPLACED ||
                                         item->action == ZARR_MIGRATED_REFUSED ||
                                         item->action == ZARR_MIGRATED_LEFT ||
                                         item->action == ZARR_MIGRATED_WARNED));
    snprintf(t->text + at, sizeof t->text - at, "%s %s|", actions[item->action],
             item->key ? item->key : item->text);
    if (++t->n == t->stop_at)
        zarr_cancel_set(t->cancel);
}

static zarr_status migrate(zarr_store *s, int32_t to, uint32_t flags, struct told *t)
{
    zarr_migrate_options o = ZARR_MIGRATE_OPTIONS_INIT;

    t->text[0] = '\0';
    t->n = 0;
    t->cancel = fresh_cancel();
    o.zarr_format = to;
    o.flags = flags;
    o.tell = tell;
    o.user = t;
    o.cancel = t->cancel;
    return zarr_node_migrate(s, "t", &o, &terr);
}

/* ---- trees ---------------------------------------------------------------------- */

static const uint64_t tree_shape[2] = {3, 5}, tree_chunk[2] = {2, 2};

static void make_one(struct world *w, const char *path, int32_t format, const char *type,
                     char order)
{
    const zarr_array_spec spec = {
        .struct_size = sizeof spec,
        .zarr_format = format,
        .ndim = 2,
        .shape = tree_shape,
        .chunk_shape = tree_chunk,
        .data_type = type,
        .fill_value = "-1",
        .order = order,
        .key_encoding = format == 3 ? "v2" : NULL,
        .separator = '.',
        .attributes = "{\"units\": \"m\"}",
    };
    zarr_array *a = NULL;

    assert_ok(zarr_array_create(&a, w->store, path, &spec, NULL, &terr));
    fill_array(a);
    zarr_array_free(a);
}

/* Creates group t with array t/a, group t/g without attributes, and array t/g/b, which
 * is big-endian and in column order. */
static void make_tree(struct world *w, int32_t format)
{
    zarr_group *g = NULL;

    assert_ok(group_create(&g, w->store, "t", format, "{\"k\": [1, 2]}", 0, &terr));
    zarr_group_free(g);
    assert_ok(group_create(&g, w->store, "t/g", format, NULL, 0, &terr));
    zarr_group_free(g);
    make_one(w, "t/a", format, "<i4", 'C');
    make_one(w, "t/g/b", format, ">i4", 'F');
}

/* Checks that all nodes exist with their attributes, and the arrays with their
 * elements. */
static void check_tree(zarr_store *s)
{
    static const char *const arrays[] = {"t/a", "t/g/b"};
    zarr_array *a = NULL;
    zarr_group *g = NULL;
    char text[64];

    for (size_t i = 0; i < 2; i++) {
        assert_ok(zarr_array_open(&a, s, arrays[i], NULL, &terr));
        assert_int_equal(count_wrong(a, 3, 5), 0);
        assert_ok(zarr_array_attribute_get(a, "units", text, sizeof text, NULL, &terr));
        assert_string_equal(text, "\"m\"");
        zarr_array_free(a);
    }
    assert_ok(zarr_group_open(&g, s, "t", NULL, &terr));
    assert_ok(zarr_group_attribute_get(g, "k", text, sizeof text, NULL, &terr));
    assert_string_equal(text, "[1,2]");
    assert_ok(zarr_group_open_array(&a, g, "g/b", NULL, &terr));
    zarr_array_free(a);
    zarr_group_free(g);
    assert_ok(zarr_group_open(&g, s, "t/g", NULL, &terr));
    zarr_group_free(g);
}

static int collect_key(void *user, const zarr_store_item *item)
{
    char *text = user;
    const size_t at = strlen(text);

    if (!item->is_prefix)
        snprintf(text + at, 8192 - at, "%s ", item->key);
    return 0;
}

/* The keys of all objects, in sorted order, and the metadata. */
static void picture(struct world *w, char *text)
{
    static const char *const documents[] = {
        "t/zarr.json", "t/a/zarr.json", "t/g/zarr.json", "t/g/b/zarr.json",
        "t/.zgroup",   "t/.zattrs",     "t/a/.zarray",   "t/a/.zattrs",
        "t/g/.zgroup", "t/g/b/.zarray", "t/g/b/.zattrs", "t/.zmetadata",
    };

    text[0] = '\0';
    assert_ok(zarr_store_list(w->store, "t", ZARR_LIST_RECURSIVE, collect_key, text, NULL,
                              &terr));
    for (size_t i = 0; i < sizeof documents / sizeof *documents; i++) {
        const char *found = get_text(w, documents[i]);
        const size_t at = strlen(text);

        snprintf(text + at, 32768 - at, "\n%s", found ? found : "");
    }
}

/* ---- there and back ------------------------------------------------------------- */

static void test_v2_to_v3(void **state)
{
    struct told t = {.stop_at = 0}, dry;
    zarr_array *a = NULL;
    zarr_group *g = NULL;
    struct world w;

    (void)state;
    for (enum world_sort sort = 0; sort < N_WORLDS; sort++) {
        world_open(&w, sort);
        make_tree(&w, 2);
        assert_int_equal(n_keys(&w, "t"), 12 + 7);
        assert_ok(migrate(w.store, 0, ZARR_MIGRATE_DRY_RUN, &dry));
        assert_int_equal(n_keys(&w, "t"), 12 + 7);
        assert_ok(migrate(w.store, 0, 0, &t)); /* children before parents */
        assert_string_equal(t.text, "write t/g/b/zarr.json|write t/g/zarr.json|"
                                    "write t/a/zarr.json|write t/zarr.json|");
        assert_string_equal(dry.text, t.text);
        assert_int_equal(n_keys(&w, "t"), 12 + 7 + 4);
        check_tree(w.store); /* v3 takes precedence */
        assert_ok(zarr_array_open(&a, w.store, "t/g/b", NULL, &terr));
        assert_int_equal(zarr_array_zarr_format(a), 3);
        zarr_array_free(a);

        assert_ok(migrate(w.store, 3, ZARR_MIGRATE_REMOVE, &t));
        assert_string_equal(t.text,
                            "keep t/g/b/zarr.json|keep t/g/zarr.json|keep t/a/zarr.json|"
                            "keep t/zarr.json|remove t/.zgroup|remove t/.zattrs|"
                            "remove t/a/.zarray|remove t/a/.zattrs|remove t/g/.zgroup|"
                            "remove t/g/b/.zarray|remove t/g/b/.zattrs|");
        assert_int_equal(n_keys(&w, "t"), 12 + 4);
        check_tree(w.store);
        assert_ok(zarr_group_open(&g, w.store, "t", NULL, &terr));
        assert_int_equal(zarr_group_zarr_format(g), 3);
        zarr_group_free(g);
        /* Nothing is left to do. */
        assert_ok(migrate(w.store, 3, ZARR_MIGRATE_REMOVE, &t));
        assert_string_equal(t.text, "");
        world_close(&w);
    }
}

static void test_v3_to_v2(void **state)
{
    struct told t = {.stop_at = 0};
    zarr_array *a = NULL;
    struct world w;

    (void)state;
    for (enum world_sort sort = 0; sort < N_WORLDS; sort++) {
        world_open(&w, sort);
        make_tree(&w, 3);
        assert_int_equal(n_keys(&w, "t"), 12 + 4);
        assert_ok(migrate(w.store, 2, ZARR_MIGRATE_REMOVE, &t));
        assert_string_equal(t.text,
                            "write t/g/b/.zattrs|write t/g/b/.zarray|write t/g/.zgroup|"
                            "write t/a/.zattrs|write t/a/.zarray|write t/.zattrs|"
                            "write t/.zgroup|remove t/zarr.json|remove t/a/zarr.json|"
                            "remove t/g/zarr.json|remove t/g/b/zarr.json|");
        assert_int_equal(n_keys(&w, "t"), 12 + 7);
        assert_non_null(strstr(get_text(&w, "t/g/b/.zarray"), "\"dtype\": \">i4\""));
        assert_non_null(strstr(get_text(&w, "t/g/b/.zarray"), "\"order\": \"F\""));
        assert_non_null(strstr(get_text(&w, "t/a/.zarray"), "\"order\": \"C\""));
        assert_non_null(strstr(get_text(&w, "t/a/.zattrs"), "\"units\": \"m\""));
        check_tree(w.store);
        assert_ok(zarr_array_open(&a, w.store, "t/a", NULL, &terr));
        assert_int_equal(zarr_array_zarr_format(a), 2);
        zarr_array_free(a);
        world_close(&w);
    }
}

static int no_difference(void *user, const char *path, const char *what)
{
    (void)user;
    fail_msg("%s %s", path, what);
    return 0;
}

/* Consolidated metadata is converted, too: a group that had some has it in the new
 * format. */
static void test_consolidated(void **state)
{
    struct told t = {.stop_at = 0};
    zarr_group *g = NULL;
    struct world w;

    (void)state;
    for (int32_t from = 2; from <= 3; from++) {
        world_open(&w, WORLD_MEMORY);
        make_tree(&w, from);
        assert_ok(consolidate_at(w.store, "t", NULL, &terr));
        assert_ok(migrate(w.store, 5 - from, ZARR_MIGRATE_REMOVE, &t));
        assert_non_null(strstr(t.text, from == 2 ? "|consolidate t/zarr.json|"
                                                 : "|consolidate t/.zmetadata|"));
        assert_true((get_text(&w, "t/.zmetadata") != NULL) == (from == 3));
        assert_true((get_text(&w, "t/zarr.json") != NULL) == (from == 2));
        assert_ok(zarr_group_open(&g, w.store, "t", NULL, &terr));
        assert_int_equal(zarr_group_is_consolidated(g), 1);
        assert_int_equal(zarr_group_zarr_format(g), 5 - from);
        zarr_group_free(g);
        assert_ok(check_consolidated_at(w.store, "t", no_difference, NULL, NULL, &terr));
        check_tree(w.store);
        world_close(&w);
    }
}

/* ---- refusals ------------------------------------------------------------------- */

static void test_refused(void **state)
{
    struct told t = {.stop_at = 0};
    char before[32768], after[32768];
    struct world w;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    make_tree(&w, 3);
    zarr_array_free(make_array(&w, "t/g/keys", 3, 4, 4));
    zarr_array_free(make_array(&w, "t/shards", 4, 4, 4));
    put_text(&w, "t/sick/zarr.json", "{\"zarr_format\": 3");
    picture(&w, before);
    assert_status(migrate(w.store, 2, ZARR_MIGRATE_REMOVE, &t), ZARR_ERR_UNSUPPORTED);
    assert_says("/t/shards: ");
    assert_int_equal(t.n, 3); /* all of them, not only the first one */
    assert_non_null(strstr(t.text, "refuse /t/shards: "));
    assert_non_null(strstr(t.text, "refuse /t/sick"));
    assert_non_null(strstr(t.text, "refuse /t/g/keys: Zarr v2 cannot express chunk key "
                                   "encoding \"default\""));
    picture(&w, after);
    assert_string_equal(before, after);
    world_close(&w);
}

/* ---- missing values ------------------------------------------------------------- */

static void make_variable(struct world *w, const char *path, int32_t format,
                          const char *type, const char *fill)
{
    const char *const names[2] = {"y", "x"};
    const zarr_array_spec spec = {
        .struct_size = sizeof spec,
        .zarr_format = format,
        .ndim = 2,
        .shape = tree_shape,
        .chunk_shape = tree_chunk,
        .data_type = type,
        .fill_value = fill,
        .dimension_names = names,
        .key_encoding = format == 3 ? "v2" : NULL,
        .separator = '.',
    };
    zarr_array *a = NULL;

    assert_ok(zarr_array_create(&a, w->store, path, &spec, NULL, &terr));
    zarr_array_free(a);
}

/* Whether the attribute has this value; NULL: there is none. */
static void assert_missing(struct world *w, const char *path, const char *text)
{
    const char *attributes;
    zarr_array *a = NULL;

    assert_ok(zarr_array_open(&a, w->store, path, NULL, &terr));
    attributes = zarr_array_attributes(a);
    assert_true((strstr(attributes, "_FillValue") == NULL) == (text == NULL));
    assert_true(!text || strstr(attributes, text));
    zarr_array_free(a);
}

static void test_missing_values(void **state)
{
    struct told t = {.stop_at = 0};
    struct world w;

    (void)state;
    for (uint32_t keep = 0; keep <= ZARR_MIGRATE_KEEP_FILL;
         keep += ZARR_MIGRATE_KEEP_FILL) {
        world_open(&w, WORLD_MEMORY);
        make_variable(&w, "t", 2, "<f4", "1.0");
        assert_ok(migrate(w.store, 3, ZARR_MIGRATE_REMOVE | keep, &t));
        assert_missing(&w, "t", keep ? NULL : "\"AAAAAAAA8D8=\"");
        assert_null(strstr(t.text, "warn"));
        world_close(&w);
        world_open(&w, WORLD_MEMORY);
        make_variable(&w, "t", 2, "<M8[s]", "1");
        assert_ok(migrate(w.store, 3, keep, &t));
        assert_true((strstr(t.text, "warn t/zarr.json|") == NULL) == (keep != 0));
        world_close(&w);
        world_open(&w, WORLD_MEMORY);
        make_variable(&w, "t", 3, "int32", "1"); /* all its chunks are missing */
        assert_status(migrate(w.store, 2, keep, &t),
                      keep ? ZARR_OK : ZARR_ERR_UNSUPPORTED);
        if (!keep)
            assert_says("so 1 must become null, which changes the elements of missing");
        world_close(&w);
    }
}

/* Existing documents of the new format that differ. */
static void test_exists(void **state)
{
    struct told t = {.stop_at = 0};
    struct world w;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    make_tree(&w, 3);
    put_text(&w, "t/a/.zattrs", "{\"units\": \"s\"}");
    put_text(&w, "t/.zattrs", "{\"k\": [1, 2.0]}"); /* a number spelled differently */
    assert_status(migrate(w.store, 2, 0, &t), ZARR_ERR_EXISTS);
    assert_says(
        "/t/a: there is a .zattrs already, and it says something else than the v3 "
        "metadata");
    assert_null(get_text(&w, "t/.zgroup"));
    assert_ok(migrate(w.store, 2, ZARR_MIGRATE_OVERWRITE, &t));
    assert_non_null(strstr(t.text, "|replace t/a/.zattrs|write t/a/.zarray|"));
    assert_non_null(strstr(get_text(&w, "t/a/.zattrs"), "\"m\""));
    /* The same again reports nothing. */
    assert_ok(migrate(w.store, 2, 0, &t));
    assert_null(strstr(t.text, "write"));
    assert_null(strstr(t.text, "replace"));

    /* In v2 only the name of the document distinguishes a group from an array. */
    put_text(&w, "t/g/.zarray", "{}");
    assert_status(migrate(w.store, 2, 0, &t), ZARR_ERR_EXISTS);
    assert_says("/t/g is a group, but there is a .zarray as well");
    world_close(&w);
}

/* A .zattrs next to a node that was already v3 is removed if it equals the attributes of
 * the node, and is left otherwise. */
static void test_left(void **state)
{
    struct told t = {.stop_at = 0};
    struct world w;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    make_tree(&w, 3);
    put_text(&w, "t/a/.zattrs", "{\"units\": \"m\"}");
    put_text(&w, "t/g/b/.zattrs", "{\"units\": \"s\"}");
    put_text(&w, "t/.zmetadata", "{}");
    assert_ok(migrate(w.store, 3, ZARR_MIGRATE_REMOVE, &t));
    assert_string_equal(t.text,
                        "leave t/.zmetadata|remove t/a/.zattrs|leave t/g/b/.zattrs|");
    assert_null(get_text(&w, "t/a/.zattrs"));
    assert_non_null(get_text(&w, "t/g/b/.zattrs"));
    assert_non_null(get_text(&w, "t/.zmetadata"));
    check_tree(w.store);
    world_close(&w);
}

static void test_options(void **state)
{
    zarr_store_options ro = {.struct_size = sizeof ro, .flags = ZARR_STORE_READ_ONLY};
    struct told t = {.stop_at = 0};
    zarr_store *s = NULL;
    struct world w;

    (void)state;
    world_open(&w, WORLD_LOCAL);
    make_tree(&w, 2);
    assert_status(migrate(w.store, 4, 0, &t), ZARR_ERR_INVALID);
    assert_says("zarr_format 4 is neither 2 nor 3");
    assert_status(migrate(w.store, 3, 32, &t), ZARR_ERR_UNSUPPORTED);
    assert_says("unknown flags 0x20");
    assert_status(zarr_node_migrate(w.store, "nowhere", NULL, &terr), ZARR_ERR_NOT_FOUND);
    assert_says("/nowhere: there is no array or group");
    assert_status(zarr_node_migrate(w.store, "t/../t", NULL, &terr), ZARR_ERR_INVALID);
    assert_ok(zarr_store_open(&s, w.ctx, w.dir, &ro, &terr));
    assert_status(migrate(s, 3, 0, &t), ZARR_ERR_INVALID);
    assert_says("the store is read-only");
    assert_ok(migrate(s, 3, ZARR_MIGRATE_DRY_RUN, &t));
    assert_int_equal(t.n, 4);
    zarr_store_free(s);
    assert_int_equal(n_keys(&w, "t"), 12 + 7);
    world_close(&w);
}

/* ---- stopped migrations -------------------------------------------------- */

/* A store on which only the first `left` changes succeed. */
struct frail {
    zarr_store *below;
    atomic_int left; /* below 0: no limit */
};

/* True if one more change may succeed. Several threads may call it. */
static bool frail_may_change(struct frail *f)
{
    int left = atomic_load(&f->left);

    while (left > 0 && !atomic_compare_exchange_weak(&f->left, &left, left - 1)) {
    }
    return left != 0;
}

static void frail_caps(void *self, zarr_store_caps *out)
{
    (void)self;
    *out = (zarr_store_caps){.struct_size = sizeof *out,
                             .flags = ZARR_STORE_CAP_LIST | ZARR_STORE_CAP_WRITE |
                                      ZARR_STORE_CAP_ATOMIC_PUT};
}

static void frail_run(void *self, zarr_store_op *op, zarr_error *err)
{
    struct frail *f = self;
    char *p = op->mem.handle ? (char *)op->mem.handle + op->mem.offset : NULL;
    const bool changes = op->verb == ZARR_STORE_PUT || op->verb == ZARR_STORE_ERASE;

    op->done_bytes = 0;
    op->object_bytes = UINT64_MAX;
    if (changes && !frail_may_change(f)) {
        op->status = ZARR_ERR_IO;
        return;
    }
    if (op->verb == ZARR_STORE_PUT) {
        op->status = zarr_store_put(f->below, op->key, p, op->mem.bytes, NULL, err);
    } else if (op->verb == ZARR_STORE_ERASE) {
        op->status = zarr_store_erase(f->below, op->key, NULL, err);
    } else {
        zarr_store_run(f->below, op, err);
    }
}

static zarr_status frail_list(void *self, const char *prefix, uint32_t how,
                              zarr_store_list_fn fn, void *user,
                              const zarr_cancel *cancel, zarr_error *err)
{
    (void)cancel;
    return zarr_store_list(((struct frail *)self)->below, prefix, how, fn, user, NULL,
                           err);
}

static const zarr_store_vtable frail_vtable = {
    .struct_size = sizeof frail_vtable,
    .name = "frail",
    .caps = frail_caps,
    .run = frail_run,
    .list = frail_list,
};

/* Stops after each number of steps: by failures of the store (`fails`), or with the
 * caller's flag. */
static void check_stopped(int32_t from, int consolidated, int fails)
{
    char want[32768], got[32768];
    struct told t = {.stop_at = 0};
    struct frail f = {NULL, -1};
    zarr_store *s = NULL;
    zarr_status st = ZARR_OK;
    struct world w;
    int steps = 0;

    /* -1: runs to the end, to learn the expected result. */
    for (int k = -1; k < 64; k++) {
        world_open(&w, WORLD_MEMORY);
        make_tree(&w, from);
        if (consolidated)
            assert_ok(consolidate_at(w.store, "t", NULL, &terr));
        f.below = w.store;
        atomic_store(&f.left, fails ? k : -1);
        t.stop_at = fails ? 0 : k + 1;
        assert_ok(zarr_store_open_custom(&s, w.ctx, &frail_vtable, &f, NULL, &terr));
        st = migrate(s, 5 - from, ZARR_MIGRATE_REMOVE, &t);
        if (st != ZARR_OK) {
            assert_int_equal(st, fails ? ZARR_ERR_IO : ZARR_ERR_CANCELLED);
            steps++;
            check_tree(w.store);
            atomic_store(&f.left, -1);
            t.stop_at = 0;
            assert_ok(migrate(s, 5 - from, ZARR_MIGRATE_REMOVE, &t));
        }
        check_tree(w.store);
        picture(&w, k < 0 ? want : got);
        if (k >= 0)
            assert_string_equal(got, want);
        zarr_store_free(s);
        world_close(&w);
        if (k >= 0 && st == ZARR_OK)
            break;
    }
    assert_in_range(steps, 10, 20); /* it was stopped at every step */
}

static void test_stopped(void **state)
{
    (void)state;
    for (int32_t from = 2; from <= 3; from++)
        for (int consolidated = 0; consolidated < 2; consolidated++)
            for (int fails = 0; fails < 2; fails++)
                check_stopped(from, consolidated, fails);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_v2_to_v3),       cmocka_unit_test(test_v3_to_v2),
        cmocka_unit_test(test_consolidated),   cmocka_unit_test(test_refused),
        cmocka_unit_test(test_exists),         cmocka_unit_test(test_left),
        cmocka_unit_test(test_options),        cmocka_unit_test(test_stopped),
        cmocka_unit_test(test_missing_values),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
