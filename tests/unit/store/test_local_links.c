/*
 * unit/store/test_local_links.c - symbolic links in directories, with and without
 * openat2().
 */
#include "local_test.h"

static void links(void **state)
{
    struct world *w = fixture_world(state);
    zarr_store *within, *deny, *follow;
    zarr_error err = {0};
    char absolute[256];

    needs_openat2(w);
    make_dir(w, "in");
    make_dir(w, "deep");
    write_file(w, "in/v", "inside");
    make_link(w, "in/v", "value");
    make_link(w, "in", "dir");
    make_link(w, "../in", "deep/up");
    make_link(w, "/etc/passwd", "out");
    make_link(w, "/etc", "etc");
    make_link(w, "../../../etc/passwd", "climb");
    make_link(w, "nowhere", "dangling");
    make_link(w, "loop", "loop");
    make_link(w, "/proc/self/root", "magic");
    path_in(w, absolute, sizeof absolute, "in/v");
    make_link(w, absolute, "absolute");
    within = open_with(w, 0, ZARR_DURABILITY_NONE, 0, 0);
    deny = open_with(w, 0, ZARR_DURABILITY_NONE, 0, ZARR_SYMLINKS_DENY);
    follow = open_with(w, 0, ZARR_DURABILITY_NONE, 0, ZARR_SYMLINKS_FOLLOW);
    assert_string_equal(get_text(within, "value"), "inside");
    assert_string_equal(get_text(within, "dir/v"), "inside");
    assert_string_equal(get_text(within, "deep/up/v"), "inside");
    assert_status(get_status(within, "out", &err), ZARR_ERR_IO);
    assert_int_equal(err.os_code, EXDEV);
    assert_status(get_status(within, "etc/passwd", &err), ZARR_ERR_IO);
    assert_status(get_status(within, "climb", &err), ZARR_ERR_IO);
    assert_status(get_status(within, "magic/etc/passwd", &err), ZARR_ERR_IO);
    assert_status(get_status(within, "loop", &err), ZARR_ERR_IO);
    assert_status(get_status(within, "etc/none", &err), ZARR_ERR_IO);
    assert_status(get_status(within, "dir/none", &err), ZARR_ERR_NOT_FOUND);
    assert_status(get_status(within, "dir/v/none", &err), ZARR_ERR_IO);
    assert_status(put_text(within, "etc/zarrc-test", "x"), ZARR_ERR_IO);
    assert_status(put_text(within, "climb", "mine"),
                  ZARR_OK); /* replaces the link itself */
    assert_string_equal(get_text(within, "climb"), "mine");

    assert_status(get_status(deny, "value", &err), ZARR_ERR_IO);
    assert_status(get_status(deny, "dir/v", &err), ZARR_ERR_IO);
    assert_status(put_text(deny, "dir/w", "x"), ZARR_ERR_IO);
    assert_string_equal(get_text(deny, "in/v"), "inside");

    assert_status(get_status(follow, "out", &err), ZARR_OK);
    assert_string_equal(get_text(follow, "absolute"), "inside");
    assert_status(get_status(follow, "etc/no-such-file", &err), ZARR_ERR_NOT_FOUND);

    /* A dangling link is not a missing key: the disk with its target may be
     * unmounted. */
    assert_status(get_status(within, "dangling", &err), ZARR_ERR_IO);
    assert_status(get_status(within, "dangling/v", &err), ZARR_ERR_IO);
    assert_status(get_status(follow, "dangling", &err), ZARR_ERR_IO);
    assert_status(put_text(within, "dangling/v", "x"), ZARR_ERR_IO);
    assert_status(get_status(within, "none", &err), ZARR_ERR_NOT_FOUND);
    assert_status(put_text(within, "dir/w", "through"), ZARR_OK);
    assert_string_equal(get_text(deny, "in/w"), "through");

    /* Erasing never follows a link. */
    assert_status(zarr_store_erase_prefix(within, "deep", NULL, &err), ZARR_OK);
    assert_false(exists(w, "deep"));
    assert_string_equal(get_text(within, "in/v"), "inside");
    zarr_store_free(within);
    zarr_store_free(deny);
    zarr_store_free(follow);
}

/* What is behind a link that leads nowhere, such as to a disk that is not mounted, is not
 * known: it is neither erased nor empty. */
static void nothing_is_known_behind_dangling_links(void **state)
{
    struct world *w = fixture_world(state);
    zarr_error err = {0};

    needs_openat2(w);
    make_dir(w, "in");
    make_link(w, "in", "dir");
    make_link(w, "nowhere", "dangling");
    for (uint32_t k = 0; k < 4; k++) {
        zarr_store *s =
            open_with(w, 0, ZARR_DURABILITY_NONE, k % 2 ? ZARR_LOCKS_NONE : ZARR_LOCKS_OS,
                      k / 2 ? ZARR_SYMLINKS_FOLLOW : ZARR_SYMLINKS_WITHIN);

        assert_status(zarr_store_erase(s, "dangling/v", NULL, &err), ZARR_ERR_IO);
        assert_int_equal(err.os_code, ENOENT);
        assert_non_null(strstr(err.message, "leads nowhere"));
        assert_status(zarr_store_erase(s, "dangling/deep/v", NULL, &err), ZARR_ERR_IO);
        assert_status(zarr_store_erase(s, "dir/v", NULL, &err), ZARR_ERR_NOT_FOUND);
        assert_status(zarr_store_erase(s, "dir/none/v", NULL, &err), ZARR_ERR_NOT_FOUND);
        assert_status(zarr_store_erase(s, "none/v", NULL, &err), ZARR_ERR_NOT_FOUND);
        for (uint32_t how = 0; how <= ZARR_LIST_FOLDERS; how++) {
            assert_status(
                zarr_store_list(s, "dangling", how, append_row, NULL, NULL, &err),
                ZARR_ERR_IO);
            assert_non_null(strstr(err.message, "leads nowhere"));
            assert_status(
                zarr_store_list(s, "dangling/x", how, append_row, NULL, NULL, &err),
                ZARR_ERR_IO);
            assert_status(
                zarr_store_list(s, "dir/none", how, append_row, NULL, NULL, &err),
                ZARR_OK);
        }
        assert_status(zr_store_rename(s, "dangling/x", "y", NULL, &err), ZARR_ERR_IO);
        zarr_store_free(s);
    }
}

/* A kernel without openat2(): paths are opened component by component, and "within"
 * refuses every link. */
static void links_without_openat2(void **state)
{
    struct world *w = fixture_world(state);
    zarr_store *s = open_with(w, 0, ZARR_DURABILITY_NONE, 0, 0), *follow;
    zarr_error err = {0};

    ((struct zr_local *)s->self)->has_openat2 = false;
    assert_status(put_text(s, "a/b/v", "1"), ZARR_OK);
    assert_string_equal(get_text(s, "a/b/v"), "1");
    make_link(w, "a", "dir");
    make_link(w, "a/b/v", "value");
    make_link(w, "nowhere", "dangling");
    assert_status(get_status(s, "dir/b/v", &err), ZARR_ERR_IO);
    assert_status(get_status(s, "value", &err), ZARR_ERR_IO);
    assert_status(get_status(s, "dangling", &err), ZARR_ERR_IO);
    assert_status(put_text(s, "dir/b/w", "1"), ZARR_ERR_IO);
    assert_status(get_status(s, "a/none/v", &err), ZARR_ERR_NOT_FOUND);
    assert_status(get_status(s, "a/b/v/below", &err), ZARR_ERR_IO);
    assert_status(get_status(s, "a/b", &err), ZARR_ERR_IO);
    assert_status(zarr_store_erase_prefix(s, "a", NULL, &err), ZARR_OK);
    assert_false(exists(w, "a"));
    zarr_store_free(s);
    write_file(w, "real", "2");
    make_link(w, "real", "link");
    follow = open_with(w, 0, ZARR_DURABILITY_NONE, 0, ZARR_SYMLINKS_FOLLOW);
    ((struct zr_local *)follow->self)->has_openat2 = false;
    assert_string_equal(get_text(follow, "link"), "2");
    assert_status(get_status(follow, "dangling", &err), ZARR_ERR_IO);
    assert_status(get_status(follow, "none", &err), ZARR_ERR_NOT_FOUND);
    zarr_store_free(follow);
}

/* The message of a refusal has the link, its target and the option. */
static void refusal_names_link(void **state)
{
    static const struct {
        const char *key, *link;
    } cases[] = {{"out/v", "out"}, {"d/file", "d/file"}};
    struct world *w = fixture_world(state);
    zarr_error err = {0};
    char setting[16];
    char want[256];

    needs_openat2(w);
    make_dir(w, "d");
    make_link(w, "/usr/none", "out");
    make_link(w, "/usr/none", "d/file");
    for (uint32_t links = ZARR_SYMLINKS_WITHIN; links <= ZARR_SYMLINKS_DENY; links++) {
        for (uint32_t locks = 1; locks <= ZARR_LOCKS_NONE; locks++) {
            zarr_store *s = open_with(w, 0, ZARR_DURABILITY_NONE, locks, links);

            for (size_t i = 0; i < ZR_COUNT(cases); i++) {
                const char *key = cases[i].key;

                snprintf(want, sizeof want,
                         "%s: the symbolic link %s to \"/usr/none\" %s (option symlinks)",
                         key, cases[i].link,
                         links == ZARR_SYMLINKS_WITHIN ? "leads out of the store"
                                                       : "is not followed");
                assert_status(get_status(s, key, &err), ZARR_ERR_IO);
                assert_non_null(strstr(err.message, want));
                assert_int_equal(
                    zarr_error_text(&err, ZARR_ERROR_SETTING, setting, sizeof setting),
                    8);
                assert_string_equal(setting, "symlinks");
                assert_int_equal(err.os_code,
                                 links == ZARR_SYMLINKS_WITHIN ? EXDEV : ELOOP);
                if (i > 0) /* a link in the place of a value is replaced */
                    continue;
                assert_status(zarr_store_put(s, key, "1", 1, NULL, &err), ZARR_ERR_IO);
                assert_non_null(strstr(err.message, want));
                assert_status(zarr_store_erase(s, key, NULL, &err), ZARR_ERR_IO);
                assert_non_null(strstr(err.message, want));
            }
            zarr_store_free(s);
        }
    }
}

/* Links of a store may lead anywhere below the topmost node of the chain above it. */
static void links_in_the_hierarchy(void **state)
{
    struct world *w = fixture_world(state);
    zarr_store_options o = {.struct_size = sizeof o};
    char root[256], moved[256], spelled[280];
    zarr_error err = {0};
    zarr_store *s = NULL, *other = NULL;

    needs_openat2(w);
    make_dir(w, "x");
    make_dir(w, "x/a");
    make_dir(w, "annex");
    write_file(w, "zarr.json", "{}");
    write_file(w, "x/.zgroup", "{}");
    write_file(w, "x/a/zarr.json", "{}");
    write_file(w, "annex/v", "value");
    make_link(w, "../../annex/v", "x/a/v");
    make_link(w, "../../annex", "x/a/all");
    make_link(w, "../../annex/none", "x/a/none");
    make_link(w, "../../../none", "x/a/out");
    path_in(w, root, sizeof root, "x/a");
    path_in(w, moved, sizeof moved, "x/b");
    assert_status(zr_store_open(&s, w->registry, &w->env, root, &o, &err), ZARR_OK);
    assert_string_equal(get_text(s, "v"), "value");
    assert_string_equal(get_text(s, "all/v"), "value");
    assert_status(get_status(s, "none", &err), ZARR_ERR_IO);
    assert_non_null(strstr(err.message, "leads nowhere"));
    assert_status(get_status(s, "all/none", &err), ZARR_ERR_NOT_FOUND);
    assert_status(get_status(s, "out", &err), ZARR_ERR_IO);
    assert_non_null(
        strstr(err.message, "out to \"../../../none\" leads out of the store"));
    assert_status(put_text(s, "all/w", "new"), ZARR_OK);
    assert_true(exists(w, "annex/w"));
    snprintf(spelled, sizeof spelled, "%s/../a/.", root); /* the same directory */
    assert_status(zr_store_open(&other, w->registry, &w->env, spelled, &o, &err),
                  ZARR_OK);
    assert_string_equal(get_text(other, "v"), "value");
    zarr_store_free(other);
    assert_int_equal(rename(root, moved), 0); /* links are refused, never missing */
    assert_status(get_status(s, "v", &err), ZARR_ERR_IO);
    zarr_store_free(s);
    path_in(w, root, sizeof root, "x/.zgroup"); /* the hierarchy begins below a gap */
    assert_int_equal(unlink(root), 0);
    assert_status(zr_store_open(&s, w->registry, &w->env, moved, &o, &err), ZARR_OK);
    assert_status(get_status(s, "v", &err), ZARR_ERR_IO);
    zarr_store_free(s);
}

/* The environment's choice counts where the options make none. */
static void defaults_of_env(void **state)
{
    struct world *w = fixture_world(state);
    zarr_store *s;

    write_file(w, "target", "1");
    make_link(w, "target", "v");
    w->env.symlinks = ZARR_SYMLINKS_DENY;
    w->env.locks = ZARR_LOCKS_NONE;
    s = open_with(w, 0, 0, 0, 0);
    assert_status(get_status(s, "v", NULL), ZARR_ERR_IO);
    assert_false(zr_store_can(s, ZARR_STORE_CAP_LOCK));
    zarr_store_free(s);
    s = open_with(w, 0, 0, ZARR_LOCKS_OS, ZARR_SYMLINKS_FOLLOW);
    assert_string_equal(get_text(s, "v"), "1");
    assert_true(zr_store_can(s, ZARR_STORE_CAP_LOCK));
    zarr_store_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(refusal_names_link),
        T(links_in_the_hierarchy),
        T(defaults_of_env),
        T(links),
        T(nothing_is_known_behind_dangling_links),
        T(links_without_openat2),
    };

    return cmocka_run_group_tests_name("local", tests, NULL, NULL);
}
