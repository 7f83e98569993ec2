/*
 * unit/node/test_documents.c - paths, and documents as bytes: reading with a limit, and
 * updates: which may create a document, what a failed edit leaves behind, and when an
 * edit is repeated.
 */
#include "node/node.h"

#include "node_test.h"
#include "unit/conditional_caps.h"
#include "unit/over_store.h"

static struct world w;

/* ---- paths --------------------------------------------------------------- */

static void check_normal(const char *path, const char *want)
{
    char *out = NULL;

    assert_ok(zr_path_normal(&out, w.ctx->alloc, path, &w.ctx->limits, &terr));
    assert_string_equal(out, want);
    zr_free(w.ctx->alloc, out);
}

static void test_normal_paths(void **state)
{
    static const char *const refused[] = {".", "a/..", "../a", "a/./b", "a\\..\\b"};
    char *out = NULL;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    check_normal(NULL, "");
    check_normal("", "");
    check_normal("///", "");
    check_normal("a", "a");
    check_normal("/a//b/", "a/b");
    check_normal("\\a\\b", "a/b");
    for (size_t i = 0; i < ZR_COUNT(refused); i++) {
        assert_status(
            zr_path_normal(&out, w.ctx->alloc, refused[i], &w.ctx->limits, &terr),
            ZARR_ERR_INVALID);
        assert_null(out);
    }
    world_close(&w);
}

static void test_parts_of_paths(void **state)
{
    struct zr_str key;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    assert_string_equal(zr_path_name("a/b/c"), "c");
    assert_string_equal(zr_path_name("a"), "a");
    assert_int_equal(zr_path_parent_bytes("a/b/c"), 3);
    assert_int_equal(zr_path_parent_bytes("a"), 0);
    assert_int_equal(zr_path_depth(""), 0);
    assert_int_equal(zr_path_depth("a"), 1);
    assert_int_equal(zr_path_depth("a/b/c"), 3);
    zr_str_init(&key, w.ctx->alloc);
    (void)zr_path_key(&key, "a/b", "zarr.json", NULL);
    assert_string_equal(zr_str_text(&key), "a/b/zarr.json");
    (void)zr_path_key(&key, "", "zarr.json", NULL);
    assert_string_equal(zr_str_text(&key), "zarr.json");
    (void)zr_path_key(&key, "a", "", NULL);
    assert_string_equal(zr_str_text(&key), "a");
    zr_str_deinit(&key);
    assert_ok(zr_path_check_new("a/b", 3, &w.ctx->limits, &terr));
    assert_ok(zr_path_check_new("__a", 2, &w.ctx->limits, &terr));
    assert_status(zr_path_check_new("a/__b", 3, &w.ctx->limits, &terr), ZARR_ERR_INVALID);
    assert_status(zr_path_check_new("a/.zarray", 2, &w.ctx->limits, &terr),
                  ZARR_ERR_INVALID);
    world_close(&w);
}

/* A node comes directly before its descendants, whatever bytes its siblings' names
 * have. */
static void test_order_of_paths(void **state)
{
    static const char *const in_order[] = {"",    "a",  "a/b", "a/b/c",
                                           "a/c", "a!", "a-b", "b"};

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(in_order); i++)
        for (size_t j = 0; j < ZR_COUNT(in_order); j++) {
            const int order = zr_path_compare(in_order[i], in_order[j]);

            assert_int_equal((order > 0) - (order < 0), (i > j) - (i < j));
        }
}

/* ---- reading --------------------------------------------------------------- */

static void test_read(void **state)
{
    static char long_text[3 * 4096 + 1];
    struct zr_doc d;

    (void)state;
    memset(long_text, ' ', sizeof long_text - 1);
    long_text[0] = '{';
    long_text[1] = '}';
    for (enum world_sort sort = 0; sort < N_WORLDS; sort++) {
        struct zr_doc_source src = {.path = "a", .name = "zarr.json"};
        struct zr_json_doc json;

        world_open(&w, sort);
        src.store = w.store;
        zr_doc_init(&d, w.ctx->alloc);
        terr.message[0] = '\0';
        assert_status(zr_doc_get(&d, &src, &terr), ZARR_ERR_NOT_FOUND);
        assert_string_equal(terr.message, "");
        put_text(&w, "a/zarr.json", "[1]");
        assert_ok(zr_doc_get(&d, &src, &terr));
        assert_string_equal(d.text, "[1]");
        zr_json_doc_init(&json, w.ctx->alloc);
        assert_status(zr_doc_parse(&json, &d, &w.ctx->limits, &terr), ZARR_ERR_CORRUPT);
        zr_json_doc_deinit(&json);
        put_text(&w, "a/zarr.json", long_text);
        assert_ok(zr_doc_get(&d, &src, &terr));
        assert_int_equal(d.bytes, sizeof long_text - 1);
        assert_string_equal(d.text, long_text);
        zr_doc_deinit(&d);
        w.ctx->limits.metadata_bytes = 5000;
        assert_status(zr_doc_get(&d, &src, &terr), ZARR_ERR_LIMIT);
        assert_says("metadata_bytes");
        src.large = true;
        assert_ok(zr_doc_get(&d, &src, &terr));
        zr_doc_deinit(&d);
        w.ctx->limits.consolidated_bytes = 5000;
        assert_status(zr_doc_get(&d, &src, &terr), ZARR_ERR_LIMIT);
        assert_says("consolidated_bytes");
        zr_doc_deinit(&d);
        world_close(&w);
    }
}

/* ---- changing --------------------------------------------------------------- */

struct editing {
    const char *text; /* NULL: no change */
    zarr_status st;
    int n, n_commits;
    bool saw_old;
};

static zarr_status edit(void *arg, const struct zr_doc *old, struct zr_str *text,
                        zarr_error *err)
{
    struct editing *e = arg;

    e->n++;
    e->saw_old = old != NULL;
    if (e->text)
        zr_str_puts(text, e->text);
    return e->st == ZARR_OK ? e->st : zr_fail(err, e->st, "not so");
}

static zarr_status commit(void *arg, zarr_error *err)
{
    struct editing *e = arg;

    (void)err;
    e->n_commits++;
    return ZARR_OK;
}

static zarr_status update(struct editing *e, bool may_be_new, bool must_be_new)
{
    const struct zr_doc_source src = {.store = w.store, .path = "", .name = "zarr.json"};
    const struct zr_doc_edit how = {.fn = edit,
                                    .arg = e,
                                    .may_be_new = may_be_new,
                                    .must_be_new = must_be_new,
                                    .commit = commit};

    e->n = e->n_commits = 0;
    return zr_doc_update(&src, &how, &terr);
}

static void test_update(void **state)
{
    (void)state;
    for (enum world_sort sort = 0; sort < N_WORLDS; sort++) {
        struct editing e = {.text = "{}"};

        world_open(&w, sort);
        assert_status(update(&e, false, false), ZARR_ERR_NOT_FOUND);
        assert_int_equal(e.n, 0);
        assert_null(get_text(&w, "zarr.json"));
        assert_ok(update(&e, true, true));
        assert_false(e.saw_old);
        assert_int_equal(e.n_commits, 1);
        assert_string_equal(get_text(&w, "zarr.json"), "{}");
        assert_status(update(&e, true, true), ZARR_ERR_EXISTS);
        assert_int_equal(e.n, 0);
        e.text = "[]";
        assert_ok(update(&e, false, false));
        assert_true(e.saw_old);
        assert_string_equal(get_text(&w, "zarr.json"), "[]");
        e.text = NULL; /* no change */
        assert_ok(update(&e, false, false));
        assert_int_equal(e.n_commits, 0);
        assert_string_equal(get_text(&w, "zarr.json"), "[]");
        e.text = "x";
        e.st = ZARR_ERR_INVALID;
        assert_status(update(&e, false, false), ZARR_ERR_INVALID);
        assert_int_equal(e.n, 1);
        assert_string_equal(get_text(&w, "zarr.json"), "[]");
        e.st = ZARR_ERR_CONFLICT; /* of the edit itself, which would say so again */
        assert_status(update(&e, false, false), ZARR_ERR_CONFLICT);
        assert_int_equal(e.n, 1);
        assert_string_equal(get_text(&w, "zarr.json"), "[]");
        world_close(&w);
    }
}

static zarr_status edit_what_goes(void *arg, const struct zr_doc *old,
                                  struct zr_str *text, zarr_error *err)
{
    bool *erase = arg;

    assert_non_null(old);
    *erase = true;
    zr_str_puts(text, "nothing");
    return zarr_store_erase(w.store, "g/zarr.json", NULL, err);
}

/* Two calls erase a document under the same version: the second has nothing to do. */
static void test_two_erase(void **state)
{
    bool erase = false;
    const struct zr_doc_edit how = {
        .fn = edit_what_goes, .arg = &erase, .may_be_new = true, .erase = &erase};
    struct zr_doc_source src = {.path = "g", .name = "zarr.json"};
    struct over o = {.caps = CAPS_CONDITIONAL | ZARR_STORE_CAP_WRITE};

    (void)state;
    world_open(&w, WORLD_MEMORY);
    o.below = w.store;
    w.store = NULL;
    assert_ok(zarr_store_open_custom(&w.store, w.ctx, &over_runs, &o, NULL, &terr));
    src.store = w.store;
    put_text(&w, "g/zarr.json", "old");
    assert_ok(zr_doc_update(&src, &how, &terr));
    assert_null(get_text(&w, "g/zarr.json"));
    world_close(&w);
}

static zarr_status edit_and_move(void *arg, const struct zr_doc *old, struct zr_str *text,
                                 zarr_error *err)
{
    (void)arg;
    (void)old;
    zr_str_puts(text, "new");
    return zr_store_rename(w.store, "g", "h", NULL, err);
}

/* The change must neither make the old document again nor reach the new place. */
static void test_update_of_a_folder_that_moves(void **state)
{
    const enum world_sort sorts[] = {WORLD_MEMORY, WORLD_LOCAL};

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(sorts); i++) {
        const struct zr_doc_edit how = {.fn = edit_and_move};
        struct zr_doc_source src = {.path = "g", .name = "zarr.json"};

        world_open(&w, sorts[i]);
        src.store = w.store;
        put_text(&w, "g/zarr.json", "old");
        assert_status(zr_doc_update(&src, &how, &terr), ZARR_ERR_NOT_FOUND);
        assert_string_equal(get_text(&w, "h/zarr.json"), "old");
        assert_int_equal(n_keys(&w, "g"), 0);
        world_close(&w);
    }
}

static void test_write(void **state)
{
    bool there = true;

    (void)state;
    for (enum world_sort sort = 0; sort < N_WORLDS; sort++) {
        struct zr_str text;

        world_open(&w, sort);
        zr_str_init(&text, w.ctx->alloc);
        zr_str_puts(&text, "{}");
        assert_ok(zr_doc_is_there(w.store, "a", ".zattrs", &there, NULL, &terr));
        assert_false(there);
        assert_ok(zr_doc_write(w.store, "a", ".zattrs", &text, false, NULL, &terr));
        assert_ok(zr_doc_is_there(w.store, "a", ".zattrs", &there, NULL, &terr));
        assert_true(there);
        zr_str_puts(&text, " ");
        assert_status(zr_doc_write(w.store, "a", ".zattrs", &text, false, NULL, &terr),
                      ZARR_ERR_EXISTS);
        assert_string_equal(get_text(&w, "a/.zattrs"), "{}");
        assert_ok(zr_doc_write(w.store, "a", ".zattrs", &text, true, NULL, &terr));
        assert_string_equal(get_text(&w, "a/.zattrs"), "{} ");
        w.ctx->limits.metadata_bytes = 2;
        assert_status(zr_doc_write(w.store, "a", "x", &text, false, NULL, &terr),
                      ZARR_ERR_LIMIT);
        assert_null(get_text(&w, "a/x"));
        zr_str_deinit(&text);
        world_close(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_normal_paths),
        cmocka_unit_test(test_parts_of_paths),
        cmocka_unit_test(test_order_of_paths),
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_update),
        cmocka_unit_test(test_write),
        cmocka_unit_test(test_update_of_a_folder_that_moves),
        cmocka_unit_test(test_two_erase),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
