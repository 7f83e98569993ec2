/*
 * unit/store/test_local_list.c - listing and deletion of directories: temporary files,
 * rings of links, links that multiply, deep directories.
 */
#include "local_test.h"

#define PARTIAL "zarr.0123456789abcdef0123456789abcdef.partial"

static void listing_and_cleaning(void **state)
{
    struct world *w = fixture_world(state);
    zarr_store *s = NULL;
    zarr_error err = {0};
    char temp[64], path[256];
    uint64_t n = 99;
    void *lock = NULL;
    zarr_cancel *cancel = NULL;

    needs_openat2(w);
    s = open_with(w, 0, ZARR_DURABILITY_NONE, 0, 0);
    make_dir(w, "b");
    make_dir(w, "b/c");
    make_dir(w, "empty");
    write_file(w, "zarr.json", "");
    write_file(w, "b/c/10", "");
    write_file(w, "b/c/9", "");
    write_file(w, "b/zarr.json", "");
    write_file(w, "b/\xff", "");
    make_link(w, "../empty", "b/aside");
    make_link(w, "/etc", "b/etc");
    path_in(w, path, sizeof path, "b/fifo");
    assert_int_equal(mkfifo(path, 0666), 0);
    assert_string_equal(rows(s, "", 0),
                        "b/c/10 b/c/9 b/etc b/fifo b/zarr.json zarr.json ");
    assert_string_equal(rows(s, "b", ZARR_LIST_DIRECTORY),
                        "b/aside/ b/c/ b/etc b/fifo b/zarr.json ");
    assert_string_equal(rows(s, "", ZARR_LIST_FOLDERS),
                        "b/ b/aside/ b/c/ b/c/10 b/c/9 b/etc b/fifo b/zarr.json empty/ "
                        "zarr.json ");
    assert_string_equal(rows(s, "b/c", ZARR_LIST_DIRECTORY), "b/c/10 b/c/9 ");
    assert_string_equal(rows(s, "", ZARR_LIST_DEBRIS), "");

    snprintf(temp, sizeof temp, "b/.zarrc-tmp-%d-0", getpid());
    write_file(w, temp, "alive");
    write_file(w, "b/.zarrc-tmp-999999999-0", "dead");
    write_file(w, "b/c/9.__lock", "left behind");
    write_file(w, "b/" PARTIAL, "");
    assert_status(zr_store_lock(s, "b/c/10", NULL, &lock, &err), ZARR_OK);
    assert_string_equal(rows(s, "", 0),
                        "b/c/10 b/c/9 b/etc b/fifo b/zarr.json zarr.json ");
    assert_status(zarr_cancel_create(&cancel, &err), ZARR_OK);
    zarr_cancel_set(cancel);
    assert_status(zarr_store_clean(s, "", 0, &n, cancel, &err), ZARR_ERR_CANCELLED);
    zarr_cancel_free(cancel);
    assert_true(exists(w, "b/c/9.__lock"));
    assert_status(zarr_store_clean(s, "", 3600, &n, NULL, &err), ZARR_OK);
    assert_int_equal(n, 0); /* all are too young */
    assert_status(zarr_store_clean(s, "b", 0, &n, NULL, &err), ZARR_OK);
    assert_int_equal(n, 3);
    assert_true(exists(w, temp) && exists(w, "b/c/10.__lock"));
    assert_false(exists(w, "b/c/9.__lock"));
    zr_store_unlock(s, lock);
    assert_false(exists(w, "b/c/10.__lock"));
    assert_true(strstr(rows(s, "", ZARR_LIST_DEBRIS), temp) != NULL);
    assert_status(zarr_store_erase_prefix(s, "b/c", NULL, &err), ZARR_OK);
    assert_false(exists(w, "b/c"));
    zarr_store_free(s);
}

static void assert_ring(zarr_store *s, const char *prefix, uint32_t how, const char *link)
{
    char text[ROWS_BYTES] = "", want[128];
    zarr_error err = {0};

    assert_status(zarr_store_list(s, prefix, how, append_row, text, NULL, &err),
                  ZARR_ERR_IO);
    assert_int_equal(err.os_code, ELOOP);
    snprintf(want, sizeof want, "%s: this symbolic link leads to a directory above it",
             link);
    if (!strstr(err.message, want))
        fail_msg("%s", err.message);
}

/* Following a link to a directory above it would never end. */
static void rings_of_links(void **state)
{
    struct world *w = fixture_world(state);
    zarr_error err = {0};
    zarr_store *s;
    uint64_t n = 0;

    needs_openat2(w);
    s = open_with(w, 0, ZARR_DURABILITY_NONE, 0, 0);
    make_dir(w, "b");
    make_dir(w, "b/c");
    make_dir(w, "x");
    write_file(w, "b/c/9", "");
    make_link(w, "../..", "b/c/root");
    assert_ring(s, "", 0, "b/c/root");
    assert_ring(s, "b", 0, "b/c/root"); /* above the prefix as well */
    assert_ring(s, "b/c", ZARR_LIST_DIRECTORY, "b/c/root");
    assert_string_equal(rows(s, "b", ZARR_LIST_DIRECTORY), "b/c/ ");
    /* What removes does not follow links. */
    assert_string_equal(rows(s, "", ZARR_LIST_UNLINKED), "b/c/9 b/c/root ");
    assert_string_equal(rows(s, "", ZARR_LIST_DEBRIS), "");
    assert_status(zarr_store_clean(s, "", 0, &n, NULL, &err), ZARR_OK);
    assert_status(zarr_store_erase_prefix(s, "b/c", NULL, &err), ZARR_OK);
    assert_true(exists(w, "x") && !exists(w, "b/c"));
    make_link(w, ".", "b/self");
    assert_ring(s, "", 0, "b/self");
    assert_ring(s, "b", ZARR_LIST_DIRECTORY, "b/self");
    assert_status(zarr_store_erase_prefix(s, "b/self", NULL, &err), ZARR_OK);
    /* x/a -> real/a, real/a/up -> real: real/a is again below x/a/up, by its own name. */
    make_dir(w, "real");
    make_dir(w, "real/a");
    make_link(w, "../real/a", "x/a");
    make_link(w, "../../real", "real/a/up");
    assert_ring(s, "x", 0, "x/a/up");
    zarr_store_free(s);
}

static int count_rows(void *user, const zarr_store_item *item)
{
    (void)item;
    ++*(int *)user;
    return 0;
}

/* Removes nested directories named "a", and a file "v" in one of them. Each step moves
 * the next one up, so that no path is long. */
static void remove_deep(const struct world *w)
{
    int root = open(w->dir, O_RDONLY), top;

    for (;;) {
        top = openat(root, "a", O_RDONLY | O_DIRECTORY);
        if (top < 0)
            break;
        (void)unlinkat(top, "v", 0);
        (void)renameat(top, "a", root, "b");
        close(top);
        assert_int_equal(unlinkat(root, "a", AT_REMOVEDIR), 0);
        (void)renameat(root, "b", root, "a");
    }
    close(root);
}

/* Nothing is left out of a listing or a deletion because it is deep: it is listed, or the
 * limit is an error. */
static void deep_directories(void **state)
{
    static char key[PATH_MAX + 8];
    struct world *w = fixture_world(state);
    zarr_store *s = open_with(w, 0, ZARR_DURABILITY_NONE, 0, 0);
    zarr_error err = {0};
    int n = 0, dir, next;

    for (size_t i = 0; i < 2046; i++)
        memcpy(key + 2 * i, "a/", 2);
    strcpy(key + 2 * 2046, "v");
    assert_status(put_text(s, key, "1"), ZARR_OK);
    assert_status(zarr_store_list(s, "", 0, count_rows, &n, NULL, &err), ZARR_OK);
    assert_int_equal(n, 1);
    /* Deeper than a path can name. */
    dir = open(w->dir, O_RDONLY);
    for (int i = 0; i < 2060; i++) {
        (void)mkdirat(dir, "a", 0777);
        next = openat(dir, "a", O_RDONLY);
        assert_true(next >= 0);
        close(dir);
        dir = next;
    }
    close(dir);
    assert_status(zarr_store_list(s, "", 0, count_rows, &n, NULL, &err), ZARR_ERR_LIMIT);
    assert_non_null(strstr(err.message, "at most 4095 bytes"));
    assert_status(zarr_store_erase_prefix(s, "a", NULL, &err), ZARR_ERR_LIMIT);
    assert_non_null(strstr(err.message, "at most 4095 bytes"));
    remove_deep(w);
    zarr_store_free(s);
}

/* 8 directories with 8 links each to the next one: 8^8 paths, but no ring. */
static void links_that_multiply(void **state)
{
    struct world *w = fixture_world(state);
    char to[32], name[32], text[ROWS_BYTES] = "";
    zarr_error err = {0};
    zarr_store *s;

    needs_openat2(w);
    for (int i = 0; i < 9; i++) {
        snprintf(name, sizeof name, "g%d", i);
        make_dir(w, name);
        snprintf(to, sizeof to, "../g%d", i + 1);
        for (int k = 0; k < 8 && i < 8; k++) {
            snprintf(name, sizeof name, "g%d/l%d", i, k);
            make_link(w, to, name);
        }
    }
    write_file(w, "g8/v", "");
    assert_int_equal(w->env.limits.linked_directories, 65536);
    w->env.limits.linked_directories = 4096; /* as good, and quicker */
    s = open_with(w, 0, ZARR_DURABILITY_NONE, 0, 0);
    assert_status(zarr_store_list(s, "g1", 0, append_row, text, NULL, &err),
                  ZARR_ERR_LIMIT);
    assert_non_null(strstr(err.message, "more than 4096 directories behind symbolic"));
    assert_non_null(strstr(err.message, "limit linked_directories"));
    text[0] = '\0';
    assert_status(zarr_store_list(s, "g6", 0, append_row, text, NULL, &err), ZARR_OK);
    zarr_store_free(s);
    w->env.limits.linked_directories = 8 + 64;
    s = open_with(w, 0, ZARR_DURABILITY_NONE, 0, 0);
    assert_status(zarr_store_list(s, "g6", 0, append_row, text, NULL, &err), ZARR_OK);
    zarr_store_free(s);
    w->env.limits.linked_directories--;
    s = open_with(w, 0, ZARR_DURABILITY_NONE, 0, 0);
    assert_status(zarr_store_list(s, "g6", 0, append_row, text, NULL, &err),
                  ZARR_ERR_LIMIT);
    zarr_store_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(listing_and_cleaning),
        T(rings_of_links),
        T(deep_directories),
        T(links_that_multiply),
    };

    return cmocka_run_group_tests_name("local", tests, NULL, NULL);
}
