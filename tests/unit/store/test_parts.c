/*
 * test_parts.c - values that are written in parts: readers see the old value or the whole
 * new one, whatever ends the writer.
 */
#include "unit/store/store_test.h"

#include <sys/wait.h>
#include <unistd.h>

static zarr_status put_part(zarr_store *s, void *lock, const char *key, uint64_t at,
                            const char *text, zarr_error *err)
{
    const zarr_memory part = zr_mem_of_host((void *)(uintptr_t)text, strlen(text));

    return zr_store_put_part(s, lock, key, at, &part, err);
}

static zarr_status commit(zarr_store *s, void *lock, const char *key, uint64_t bytes)
{
    zarr_store_op op = {.verb = ZARR_STORE_PUT,
                        .flags = ZARR_STORE_OP_CHUNK | ZARR_STORE_OP_LOCKED |
                                 ZR_STORE_OP_IN_PARTS,
                        .key = key,
                        .lock = lock,
                        .length = bytes};
    zarr_error err = {0};
    const zarr_status st = zr_store_run_one(s, &op, &err);

    if (st == ZARR_OK)
        assert_int_equal(op.done_bytes, bytes);
    return st;
}

static void *lock_key(zarr_store *s, const char *key)
{
    zarr_error err = {0};
    void *lock = NULL;

    assert_status(zr_store_lock(s, key, NULL, &lock, &err), ZARR_OK);
    return lock;
}

static void in_any_order(void **state)
{
    struct world *w = *state;
    zarr_store *s = open_local(w, NULL);
    zarr_error err = {0};
    void *lock = NULL;

    assert_true(zr_store_has_parts(s));
    assert_status(put_text(s, "a/c/0", "old"), ZARR_OK);
    lock = lock_key(s, "a/c/0");
    assert_status(put_part(s, lock, "a/c/0", 3, "def", &err), ZARR_OK);
    assert_string_equal(get_text(s, "a/c/0"), "old");
    assert_status(put_part(s, lock, "a/c/0", 0, "abc", &err), ZARR_OK);
    assert_string_equal(get_text(s, "a/c/0"), "old");
    assert_status(commit(s, lock, "a/c/0", 6), ZARR_OK);
    assert_string_equal(get_text(s, "a/c/0"), "abcdef");
    assert_status(put_part(s, lock, "a/c/0", 0, "xyz", &err), ZARR_ERR_INVALID);
    assert_string_equal(get_text(s, "a/c/0"), "abcdef");
    zr_store_unlock(s, lock);
    zarr_store_free(s);
}

static void discard_parts(void **state)
{
    struct world *w = *state;
    zarr_store *s = open_local(w, NULL);
    zarr_error err = {0};
    char path[256];
    void *lock = lock_key(s, "c/0");

    assert_status(put_part(s, lock, "c/0", 0, "half", &err), ZARR_OK);
    path_in(w, path, sizeof path, "c/0.__lock");
    assert_int_equal(access(path, F_OK), 0);
    zr_store_unlock(s, lock);
    assert_int_not_equal(access(path, F_OK), 0);
    assert_null(get_text(s, "c/0"));
    zarr_store_free(s);
}

/* What a killed writer left is longer than the next value. */
static void after_a_kill(void **state)
{
    struct world *w = *state;
    zarr_store *s = open_local(w, NULL);
    zarr_error err = {0};
    void *lock = NULL;
    int status = 0;
    pid_t child;

    assert_status(put_text(s, "c/0", "old"), ZARR_OK);
    child = fork();
    if (child == 0) {
        lock = NULL;
        if (zr_store_lock(s, "c/0", NULL, &lock, NULL) != ZARR_OK ||
            put_part(s, lock, "c/0", 0, "much longer than what follows", NULL) != ZARR_OK)
            _exit(1);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_string_equal(get_text(s, "c/0"), "old");
    lock = lock_key(s, "c/0");
    assert_status(put_part(s, lock, "c/0", 0, "new", &err), ZARR_OK);
    assert_status(commit(s, lock, "c/0", 3), ZARR_OK);
    zr_store_unlock(s, lock);
    assert_string_equal(get_text(s, "c/0"), "new");
    zarr_store_free(s);
}

/* Another process removed the lock file, by no right: nothing replaces the value. */
static void lock_file_removed(void **state)
{
    struct world *w = *state;
    zarr_store *s = open_local(w, NULL);
    zarr_error err = {0};
    char path[256];
    void *lock = NULL;

    assert_status(put_text(s, "c/0", "old"), ZARR_OK);
    lock = lock_key(s, "c/0");
    assert_status(put_part(s, lock, "c/0", 0, "new", &err), ZARR_OK);
    path_in(w, path, sizeof path, "c/0.__lock");
    assert_int_equal(unlink(path), 0);
    assert_status(put_part(s, lock, "c/0", 3, "er", &err), ZARR_ERR_CONFLICT);
    assert_status(commit(s, lock, "c/0", 3), ZARR_ERR_INVALID); /* it is used up */
    zr_store_unlock(s, lock);
    assert_string_equal(get_text(s, "c/0"), "old");
    zarr_store_free(s);
}

static void which_stores(void **state)
{
    struct world *w = *state;

    for (int sort = 0; sort < N_SORTS; sort++) {
        zarr_store *s = open_sort(w, (enum sort)sort);
        zarr_error err = {0};
        void *lock = NULL;

        assert_int_equal(zr_store_has_parts(s), sort == SORT_LOCAL);
        if (sort != SORT_LOCAL && zr_store_can(s, ZARR_STORE_CAP_WRITE)) {
            lock = lock_key(s, "c/0");
            assert_status(put_part(s, lock, "c/0", 0, "x", &err), ZARR_ERR_UNSUPPORTED);
            assert_status(commit(s, lock, "c/0", 1), ZARR_ERR_INVALID);
            zr_store_unlock(s, lock);
        }
        zarr_store_free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(in_any_order, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(discard_parts, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(after_a_kill, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(lock_file_removed, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(which_stores, world_setup, world_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
