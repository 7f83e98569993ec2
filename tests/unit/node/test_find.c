/*
 * unit/node/test_find.c - look-up at a path and below it, and what creating and erasing
 * a node needs: which document takes precedence, what counts as broken, the order of
 * children, which parents are created, what may be overwritten.
 */
#include "node/node.h"

#include "node_test.h"

#define V3_GROUP "{\"zarr_format\":3,\"node_type\":\"group\"}"
#define V3_ARRAY "{\"zarr_format\":3,\"node_type\":\"array\"}"
#define V2       "{\"zarr_format\":2}"

static struct world w;

/* Returns the status. The caller checks kind and format. */
static zarr_status find(const struct zr_find *how, const char *path, uint32_t *kind,
                        int32_t *format)
{
    struct zr_find where = *how;
    struct zr_found found;
    zarr_status st;

    where.store = w.store;
    where.path = path;
    zr_found_init(&found, w.ctx->alloc);
    st = zr_node_find(&found, &where, &terr);
    *kind = found.kind;
    *format = found.format;
    zr_found_deinit(&found);
    return st;
}

static void check_found(const struct zr_find *how, const char *path, uint32_t want_kind,
                        int32_t want_format)
{
    uint32_t kind = 99;
    int32_t format = 99;

    assert_ok(find(how, path, &kind, &format));
    assert_int_equal(kind, want_kind);
    assert_int_equal(format, want_format);
}

static void test_found(void **state)
{
    const struct zr_find any = {0}, v2_first = {.first = 2}, v2 = {.format = 2},
                         v3 = {.format = 3};
    uint32_t kind = 99;
    int32_t format = 99;

    (void)state;
    for (enum world_sort sort = 0; sort < N_WORLDS; sort++) {
        world_open(&w, sort);
        terr.message[0] = '\0';
        assert_status(find(&any, "a", &kind, &format), ZARR_ERR_NOT_FOUND);
        assert_string_equal(terr.message, "");
        assert_int_equal(format, 0);
        put_text(&w, "a/.zgroup", V2);
        check_found(&any, "a", ZARR_NODE_GROUP, 2);
        put_text(&w, "a/.zarray", V2);
        check_found(&any, "a", ZARR_NODE_ARRAY, 2);
        put_text(&w, "a/zarr.json", V3_GROUP);
        check_found(&any, "a", ZARR_NODE_GROUP, 3);
        check_found(&v2_first, "a", ZARR_NODE_ARRAY, 2);
        check_found(&v2, "a", ZARR_NODE_ARRAY, 2);
        put_text(&w, "a/zarr.json", "{"); /* an older document is not used instead */
        assert_status(find(&any, "a", &kind, &format), ZARR_ERR_CORRUPT);
        assert_int_equal(kind, ZARR_NODE_NONE);
        assert_int_equal(format, 3);
        put_text(&w, "b/.zarray", V2);
        check_found(&any, "b", ZARR_NODE_ARRAY, 2);
        assert_status(find(&v3, "b", &kind, &format), ZARR_ERR_NOT_FOUND);
        put_text(&w, "b/.zarray", "{\"zarr_format\":3}");
        assert_status(find(&any, "b", &kind, &format), ZARR_ERR_CORRUPT);
        world_close(&w);
    }
}

/* A group's zarr.json may have the size of consolidated metadata, an array's may not. */
/* Folders of other formats, by their names; a v2 group with such a name is none. */
static void test_other_formats(void **state)
{
    static const struct {
        const char *keys[2], *want; /* NULL: not known */
    } rows[] = {
        {{"attributes.json", "0/1"}, "an N5 container"},
        {{"meta", "attrs"}, "a Zarr v1 array"},
        {{"meta", "notes"}, NULL},
        {{"snapshots/1", "refs/branch.main/ref.json"}, "an Icechunk repository"},
        {{"snapshots/1", "repo"}, "an Icechunk repository"},
        {{"snapshots/1", "chunks/1"}, NULL},
        {{"__schema/1", "__fragments/1"}, "a TileDB array"},
        {{".zmetadata", "temp/refs.0.parq"}, "a kerchunk folder"},
        {{"b/attributes.json", "c"}, NULL},
    };

    (void)state;
    for (enum world_sort sort = 0; sort < N_WORLDS; sort++)
        for (int deep = 0; deep < 2; deep++)
            for (size_t i = 0; i < ZR_COUNT(rows); i++) {
                const char *path = deep ? "a/x" : "", *text;
                char key[64];

                world_open(&w, sort);
                for (int k = 0; k < 2; k++) {
                    snprintf(key, sizeof key, "%s%s%s", path, deep ? "/" : "",
                             rows[i].keys[k]);
                    put_text(&w, key, "x");
                }
                text = zarr_node_other_format(w.store, path);
                if (!rows[i].want != !text ||
                    (text && strncmp(text, rows[i].want, strlen(rows[i].want)) != 0))
                    fail_msg("row %d: %s", (int)i, text ? text : "NULL");
                world_close(&w);
            }
}

static void test_found_limits(void **state)
{
    const struct zr_find any = {0}, array = {.array = true};
    uint32_t kind = 99;
    int32_t format = 99;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    put_text(&w, "a/zarr.json", V3_ARRAY);
    put_text(&w, "b/.zgroup", V2);
    w.ctx->limits.metadata_bytes = 10;
    check_found(&any, "a", ZARR_NODE_ARRAY, 3);
    assert_status(find(&array, "a", &kind, &format), ZARR_ERR_LIMIT);
    assert_says("metadata_bytes");
    assert_status(find(&any, "b", &kind, &format), ZARR_ERR_LIMIT);
    assert_says("metadata_bytes");
    world_close(&w);
}

static void test_names_of_documents(void **state)
{
    (void)state;
    assert_string_equal(zr_doc_name(ZARR_NODE_ARRAY, 3), "zarr.json");
    assert_string_equal(zr_doc_name(ZARR_NODE_GROUP, 3), "zarr.json");
    assert_string_equal(zr_doc_name(ZARR_NODE_ARRAY, 2), ".zarray");
    assert_string_equal(zr_doc_name(ZARR_NODE_GROUP, 2), ".zgroup");
    assert_ok(zr_format_check(0, &terr));
    assert_ok(zr_format_check(2, &terr));
    assert_ok(zr_format_check(3, &terr));
    assert_status(zr_format_check(1, &terr), ZARR_ERR_INVALID);
    assert_status(zr_format_check(4, &terr), ZARR_ERR_INVALID);
}

/* ---- below a group ----------------------------------------------------------- */

/* More children than fit one batch. Names without a document are not nodes. */
static void test_children(void **state)
{
    enum {
        N = 70
    };
    char key[64], name[16];

    (void)state;
    for (enum world_sort sort = 0; sort < N_WORLDS; sort++) {
        const struct zr_child *child = NULL;
        struct zr_children children = {0};
        struct zr_seen seen = {0};

        world_open(&w, sort);
        for (int i = 0; i < N; i++) {
            snprintf(key, sizeof key, "g/%02d/%s", i, i % 2 ? ".zarray" : "zarr.json");
            put_text(&w, key, i % 2 ? V2 : V3_GROUP);
        }
        put_text(&w, "g/17/.zarray", "broken");
        put_text(&w, "g/empty/x", "no document");
        assert_ok(zr_children_open(&children, w.store, "g", 3, &seen, &terr));
        assert_int_equal(seen.n, N + 1);
        for (int i = 0; i < N; i++) {
            assert_ok(zr_children_next(&children, &child, &terr));
            assert_non_null(child);
            snprintf(name, sizeof name, "%02d", i);
            assert_string_equal(child->name, name);
            assert_int_equal(child->st, i == 17 ? ZARR_ERR_CORRUPT : ZARR_OK);
            assert_int_equal(child->found.kind, i == 17 ? ZARR_NODE_NONE
                                                : i % 2 ? ZARR_NODE_ARRAY
                                                        : ZARR_NODE_GROUP);
        }
        assert_ok(zr_children_next(&children, &child, &terr));
        assert_null(child);
        zr_children_close(&children);
        /* For both groups that the walk visits. */
        w.ctx->limits.listing_keys = UINT64_C(2) * N;
        assert_status(zr_children_open(&children, w.store, "g", 3, &seen, &terr),
                      ZARR_ERR_LIMIT);
        assert_says("listing_keys");
        zr_children_close(&children);
        world_close(&w);
    }
}

static void test_keys(void **state)
{
    static const char *const want[] = {".zgroup", "a/.zarray", "a/0/0", "a/1", "a.b/x"};
    struct zr_names names;

    (void)state;
    for (enum world_sort sort = 0; sort < N_WORLDS; sort++) {
        world_open(&w, sort);
        for (size_t i = ZR_COUNT(want); i-- > 0;) {
            char key[32];

            snprintf(key, sizeof key, "g/%s", want[i]);
            put_text(&w, key, "x");
        }
        put_text(&w, "ga/x", "not below g");
        zr_names_init(&names, w.ctx->alloc);
        assert_ok(zr_names_keys(&names, w.store, "g", &terr));
        assert_int_equal(names.n, ZR_COUNT(want));
        for (size_t i = 0; i < names.n; i++)
            assert_string_equal(names.item[i], want[i]);
        zr_names_deinit(&names);
        world_close(&w);
    }
}

/* ---- creating and erasing ------------------------------------------------ */

static void test_parents(void **state)
{
    (void)state;
    for (enum world_sort sort = 0; sort < N_WORLDS; sort++) {
        world_open(&w, sort);
        put_text(&w, "a/.zgroup", V2);
        assert_ok(zr_parents_create(w.store, "a/b/c/d", 3, NULL, &terr));
        /* The parents of a group are not changed. */
        assert_null(get_text(&w, "zarr.json"));
        assert_null(get_text(&w, "a/zarr.json")); /* it would hide the v2 group */
        assert_non_null(get_text(&w, "a/b/zarr.json"));
        assert_non_null(get_text(&w, "a/b/c/zarr.json"));
        assert_null(get_text(&w, "a/b/c/d/zarr.json"));
        put_text(&w, "a/b/zarr.json", V3_ARRAY);
        assert_status(zr_parents_create(w.store, "a/b/x", 3, NULL, &terr),
                      ZARR_ERR_INVALID);
        assert_says("/a/b is an array");
        world_close(&w);
    }
}

static void test_may_go(void **state)
{
    bool is_node = true;

    (void)state;
    for (enum world_sort sort = 0; sort < N_WORLDS; sort++) {
        world_open(&w, sort);
        assert_ok(zr_node_may_go(w.store, "a", &is_node, NULL, &terr));
        assert_false(is_node);
        assert_ok(zr_node_must_be_new(w.store, "a", NULL, &terr));
        put_text(&w, "a/c/0/1", "a chunk"); /* the rest of an array */
        put_text(&w, "a/.zattrs", "{}");
        assert_ok(zr_node_may_go(w.store, "a", &is_node, NULL, &terr));
        assert_false(is_node);
        put_text(&w, "a/thesis.txt", "not of Zarr");
        assert_status(zr_node_may_go(w.store, "a", &is_node, NULL, &terr),
                      ZARR_ERR_EXISTS);
        assert_says("thesis.txt");
        put_text(&w, "a/zarr.json", "broken");
        assert_ok(zr_node_may_go(w.store, "a", &is_node, NULL, &terr));
        assert_true(is_node);
        assert_status(zr_node_must_be_new(w.store, "a", NULL, &terr), ZARR_ERR_EXISTS);
        assert_says("broken");
        put_text(&w, "ab/x", "beside it");
        assert_ok(zr_node_erase_watched(w.store, "a", &(const struct zr_erase_watch){0},
                                        &terr));
        assert_int_equal(n_keys(&w, "a"), 0);
        assert_non_null(get_text(&w, "ab/x"));
        assert_ok(zr_node_erase_watched(w.store, "a", &(const struct zr_erase_watch){0},
                                        &terr));
        world_close(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_found),        cmocka_unit_test(test_other_formats),
        cmocka_unit_test(test_found_limits), cmocka_unit_test(test_names_of_documents),
        cmocka_unit_test(test_children),     cmocka_unit_test(test_keys),
        cmocka_unit_test(test_parents),      cmocka_unit_test(test_may_go),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
