/*
 * unit/zip/test_failures.c - writes of archives that fail: one allocation after the
 * other, and each call of the store below.
 */
#include "zip_test.h"

/* ---- failures ---- */

/* Writes with one failing allocation. Afterwards the archive has the old or the new
 * value, and can be written. */
static bool write_failing(struct world *w, zarr_store *below, bool copies, int64_t at)
{
    zarr_store *s = need_as(w, below, ZARR_STORE_CREATE, copies);
    char to[8];
    size_t n = 0;
    bool failed;
    zarr_error err = {0};

    w->fail_at = at;
    failed = zarr_store_put(s, "a", "new", 3, NULL, &err) != ZARR_OK;
    failed = zarr_store_flush(s, NULL, &err) != ZARR_OK || failed;
    zarr_store_free(s);
    failed = failed || w->fail_at <= 0;
    w->fail_at = 0;
    s = need_as(w, below, ZARR_STORE_CREATE, copies);
    assert_status(read_whole(s, "a", to, sizeof to, &n, &err), ZARR_OK);
    assert_int_equal(n, 3);
    assert_true(memcmp(to, "old", 3) == 0 || memcmp(to, "new", 3) == 0);
    put_text(s, "a", "old");
    need_flush(s);
    zarr_store_free(s);
    return failed;
}

static void test_failing_allocations(void **state)
{
    struct world *w = *state;

    for (int place = 0; place < N_PLACES; place++) {
        const bool copies = place == IN_FOLDER_BY_COPY;
        zarr_store *below = begin_place(w, (enum place)place);
        zarr_store *s = need_as(w, below, ZARR_STORE_CREATE, copies);
        int64_t at = 1;

        put_text(s, "a", "old");
        zarr_store_free(s);
        while (write_failing(w, below, copies, at))
            at++;
        assert_true(at > 3);
        zarr_store_free(below);
    }
}

/* ---- failures of the store below ---- */

static bool has_value(zarr_store *s, const char *key, char value)
{
    char to[8192];
    size_t n = 0;
    zarr_error err = {0};
    const zarr_status st = read_whole(s, key, to, sizeof to, &n, &err);

    if (st == ZARR_ERR_NOT_FOUND)
        return value == 0;
    if (st != ZARR_OK)
        fail_msg("%s: %s", key, err.message);
    return n > 0 && to[0] == value && memchr(to, value ^ 1, n) == NULL;
}

/* Changes three keys. Returns whether all of it succeeded. */
static bool change(zarr_store *s, char value)
{
    static char bytes[70000];
    bool good = true;
    zarr_status st;

    memset(bytes, value, sizeof bytes);
    good = zarr_store_put(s, "small", bytes, 100, NULL, NULL) == ZARR_OK && good;
    good = zarr_store_put(s, "large", bytes, sizeof bytes, NULL, NULL) == ZARR_OK && good;
    st = zarr_store_erase(s, value == 'o' ? "new" : "old", NULL, NULL);
    good = (st == ZARR_OK || st == ZARR_ERR_NOT_FOUND) && good;
    good = zarr_store_put(s, value == 'o' ? "old" : "new", bytes, 1, NULL, NULL) ==
               ZARR_OK &&
           good;
    return zarr_store_flush(s, NULL, NULL) == ZARR_OK && good;
}

/* With one failure, and a second flush that tries again. */
static bool change_failing(struct world *w, struct failing *f, bool copies, int at)
{
    zarr_store *over = open_failing(w, f), *s = NULL;
    zarr_error err = {0};
    bool good, is_over;

    s = need_as(w, over, ZARR_STORE_CREATE, copies);
    f->at = at;
    good = change(s, 'n');
    is_over = f->at > 0;
    f->at = 0;
    assert_true(good || !is_over);
    if (zarr_store_flush(s, NULL, &err) == ZARR_OK &&
        good) { /* nothing is lost in silence */
        assert_true(has_value(s, "small", 'n') && has_value(s, "large", 'n'));
        assert_true(has_value(s, "old", 0) && has_value(s, "new", 'n'));
    }
    zarr_store_free(s);
    zarr_store_free(over);
    s = need_as(w, f->below, 0, copies);
    assert_true(has_value(s, "small", 'o') || has_value(s, "small", 'n'));
    assert_true(has_value(s, "large", 'o') || has_value(s, "large", 'n'));
    assert_true(change(s, 'o'));
    zarr_store_free(s);
    s = need_as(w, f->below, ZARR_STORE_READ_ONLY, copies);
    assert_true(has_value(s, "small", 'o') && has_value(s, "large", 'o'));
    assert_true(has_value(s, "old", 'o') && has_value(s, "new", 0));
    zarr_store_free(s);
    return !is_over;
}

static void test_failing_store(void **state)
{
    struct world *w = *state;

    for (int place = 0; place < 2 * N_PLACES; place++) {
        const bool copies = place / 2 == IN_FOLDER_BY_COPY;
        struct failing f = {.below = begin_place(w, (enum place)(place / 2)),
                            .answers_late = place % 2};
        zarr_store *s = need_as(w, f.below, ZARR_STORE_CREATE, copies);
        int at = 1;

        assert_true(change(s, 'o'));
        zarr_store_free(s);
        while (change_failing(w, &f, copies, at))
            at++;
        assert_true(at > 8);
        zarr_store_free(f.below);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_failing_allocations, folder_setup,
                                        folder_teardown),
        cmocka_unit_test_setup_teardown(test_failing_store, folder_setup,
                                        folder_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
