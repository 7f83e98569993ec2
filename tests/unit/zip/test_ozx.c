/*
 * unit/zip/test_ozx.c - the rules of RFC-9 (single-file OME-Zarr), one archive for each
 * that breaks one.
 */
#include "zip_test.h"

#define OME "{\"ome\": {\"version\": \"0.5\"}}"
#define OME_FIRST                                                                        \
    "{\"ome\": {\"version\": \"0.5\", \"zipFile\": {\"centralDirectory\": "              \
    "{\"jsonFirst\": true}}}}"
#define GROUP "{\"zarr_format\": 3, \"node_type\": \"group\"}"

struct row {
    const char *key;      /* of the archive */
    const char *names[4]; /* of the members; NULL at their end */
    const char *comment;  /* and a NUL */
    bool no_zip64, deflated, has_prefix;
    const char *want; /* findings, in order, each with its line feed */
};

static void check_row(struct world *w, const struct row *row, const char *want)
{
    struct maker k = {0};
    struct notes f = {""};
    zarr_store *s = NULL;
    void *self = NULL;
    zarr_error err = {0};

    if (row->has_prefix)
        make_bytes(&k, "#!", 2);
    k.base = k.n;
    for (size_t i = 0; i < ZR_COUNT(row->names) && row->names[i]; i++) {
        const struct made_member m = {.name = row->names[i],
                                      .data = GROUP,
                                      .bytes = strlen(GROUP),
                                      .method = row->deflated ? 8 : 0};

        make_member(&k, &m);
    }
    make_end(&k, 0, row->comment, row->comment ? strlen(row->comment) + 1 : 0,
             !row->no_zip64);
    if (zarr_store_put(w->memory_store, row->key, k.bytes, k.n, NULL, &err) != ZARR_OK ||
        zr_zip_open(&self, &w->env, w->store, row->key,
                    &(struct zr_zip_options){.flags = ZARR_STORE_READ_ONLY},
                    &err) != ZARR_OK ||
        zr_store_open_custom_url(&s, &w->env, &zr_zip_vtable, self, "zip:", NULL, &err) !=
            ZARR_OK ||
        zr_store_check(s, add_note, &f, NULL, &err) != ZARR_OK)
        fail_msg("%s", err.message);
    assert_string_equal(f.text, want);
    zarr_store_free(s);
    make_free(&k);
}

static void test_rules(void **state)
{
    static const struct row rows[] = {
        {"x.ozx", {"zarr.json", "a/zarr.json", "a/c"}, OME_FIRST, .want = ""},
        {"x.ozx", {"zarr.json", "a/zarr.json", "a/c"}, OME, .want = ""},
        {"x.ozx",
         {"zarr.json", "c"},
         "another",
         .want = "note: its comment does not tell the version of OME-Zarr\n"},
        {"x.ozx",
         {"zarr.json", "c"},
         NULL,
         .no_zip64 = true,
         .want = "note: it does not use zip64\n"
                 "note: its comment does not tell the version of OME-Zarr\n"},
        {"x.ozx",
         {"zarr.json", "c"},
         OME,
         .deflated = true,
         .want = "fault: its comment has an OME-Zarr version, which needs zip64, stored "
                 "members, and each zarr.json first\n"
                 "note: 2 members are compressed by the archive; codecs of arrays should "
                 "do that\n"},
        {"x.ozx",
         {"c", "zarr.json"},
         OME_FIRST,
         .want = "fault: its comment has an OME-Zarr version, which needs zip64, stored "
                 "members, and each zarr.json first\n"
                 "fault: its comment says jsonFirst, but other members are before\n"
                 "note: zarr.json of the root is not the first member\n"},
        {"x.ozx",
         {"zarr.json", "a/zarr.json", "a/b/zarr.json", "c/zarr.json"},
         NULL,
         .want = "note: the other zarr.json do not follow that of the root, level by "
                 "level\n"
                 "note: its comment does not tell the version of OME-Zarr\n"},
        {"x.ozx",
         {"zarr.json"},
         OME,
         .has_prefix = true,
         .want = "note: 2 bytes are before the archive\n"},
        {"x.ozx",
         {"f/zarr.json", "f/a/zarr.json"},
         NULL,
         .want = "fault: zarr.json is not at the root of the archive, but in f/\n"
                 "note: zarr.json of the root is not the first member\n"
                 "note: its comment does not tell the version of OME-Zarr\n"},
        {"x.ozx",
         {".zgroup"},
         NULL,
         .want = "fault: there is no zarr.json at the root of the archive\n"
                 "note: zarr.json of the root is not the first member\n"
                 "note: its comment does not tell the version of OME-Zarr\n"},
        {"x.ozx",
         {"zarr.json", "a/b/zarr.json", "in.ozx"},
         OME,
         .want = "fault: no group holds the node of a/b/zarr.json, so the archive has "
                 "more than one hierarchy\n"
                 "fault: there is an archive in it, in.ozx\n"},
        /* other archives */
        {"x.zip", {"c"}, "another", .no_zip64 = true, .want = ""},
        {"x.zip", {"zarr.json"}, OME, .want = "note: its name does not end in .ozx\n"},
        {"x.zip",
         {"f/zarr.json"},
         OME,
         .want = "note: zarr.json is not at the root of the archive, but in f/\n"
                 "note: its comment has an OME-Zarr version, which needs zip64, stored "
                 "members, and each zarr.json first\n"
                 "note: zarr.json of the root is not the first member\n"
                 "note: its name does not end in .ozx\n"},
    };
    struct world *w = *state;

    for (size_t i = 0; i < ZR_COUNT(rows); i++)
        check_row(w, &rows[i], rows[i].want);
}

static void test_inside_of_a_hierarchy(void **state)
{
    static const struct row row = {"a/x.ozx", {"zarr.json"}, OME, .want = ""};
    struct world *w = *state;

    check_row(w, &row, "");
    assert_int_equal(
        zarr_store_put(w->memory_store, "a/zarr.json", GROUP, strlen(GROUP), NULL, NULL),
        ZARR_OK);
    check_row(w, &row, "fault: its folder is a node of another hierarchy\n");
}

static void test_no_memory(void **state)
{
    struct world *w = *state;
    struct maker k = {0};
    struct notes f = {""};
    zarr_store *s = NULL;
    zarr_status st = ZARR_ERR_NO_MEMORY;

    make_text(&k, "zarr.json", GROUP);
    make_text(&k, "a/b/zarr.json", GROUP);
    make_end(&k, 0, OME_FIRST, sizeof OME_FIRST, true);
    s = need_archive(w, &k);
    for (int64_t n = 1; st != ZARR_OK; n++) {
        const int64_t blocks = w->n_blocks;

        atomic_store(&w->fail_at, n);
        f.text[0] = '\0';
        st = zr_store_check(s, add_note, &f, NULL, NULL);
        atomic_store(&w->fail_at, 0);
        assert_true(st == ZARR_OK || st == ZARR_ERR_NO_MEMORY);
        assert_int_equal(w->n_blocks, blocks);
        assert_true(n < 100);
    }
    assert_non_null(strstr(f.text, "note: its name"));
    zarr_store_free(s);
    make_free(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_rules, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_inside_of_a_hierarchy, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(test_no_memory, world_setup, world_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
