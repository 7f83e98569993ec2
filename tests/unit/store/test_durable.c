/*
 * unit/store/test_durable.c - a few keys of a local store that reach the disk without a
 * flush of it: how often what is synced, what cannot be synced so, and errors.
 */
#include "local_test.h"

#include <sys/statfs.h>

static int n_values, n_folders, n_whole, folder_error;
static bool is_fuse;

/* NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): the C library's own
 * names for them are reserved. */

/* The store syncs values by fdatasync(), folders by fsync(). No disk is waited for. */
int fdatasync(int fd)
{
    (void)fd;
    n_values++;
    return 0;
}

int fsync(int fd)
{
    (void)fd;
    n_folders++;
    errno = folder_error;
    return folder_error ? -1 : 0;
}

int syncfs(int fd)
{
    (void)fd;
    n_whole++;
    return 0;
}

int fstatfs(int fd, struct statfs *out)
{
    (void)fd;
    memset(out, 0, sizeof *out);
    out->f_type = is_fuse ? 0x65735546 : 0xEF53; /* FUSE, ext4 */
    return 0;
}

/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */

static zarr_status put_durably(zarr_store *s, int n, const char *pattern, zarr_error *err)
{
    struct zr_durable d;
    char key[64];
    zarr_store_op op = {
        .verb = ZARR_STORE_PUT, .key = key, .mem = zr_mem_of_host("12", 2)};
    zarr_status st = ZARR_OK;
    bool more = true;

    n_values = n_folders = n_whole = 0;
    zr_durable_init(&d, s);
    for (int i = 0; i < n && more; i++) {
        snprintf(key, sizeof key, pattern, i / 2, i);
        more = zr_durable_add(&d, key);
    }
    for (int i = 0; i < n; i++) {
        snprintf(key, sizeof key, pattern, i / 2, i);
        op.flags = zr_durable_flags(&d);
        assert_status(zr_store_run_one(s, &op, err), ZARR_OK);
    }
    st = zr_durable_end(&d, err);
    zr_durable_deinit(&d);
    return st;
}

static void few_keys(void **state)
{
    struct world *w = fixture_world(state);
    zarr_store *s = open_with(w, 0, ZARR_DURABILITY_COMMIT, 0, 0);
    zarr_error err = {0};

    assert_status(put_durably(s, 4, "a/c/%d/%d", &err), ZARR_OK);
    assert_int_equal(n_values, 4);
    assert_int_equal(n_folders, 5); /* root, a, a/c, a/c/0, a/c/1 */
    assert_int_equal(n_whole, 0);
    assert_status(put_durably(s, 30, "a/c.%d.%d", &err), ZARR_OK);
    assert_int_equal(n_values, 30);
    assert_int_equal(n_folders, 2);
    assert_int_equal(n_whole, 0);
    assert_status(put_durably(s, 31, "a/c.%d.%d", &err), ZARR_OK);
    assert_int_equal(n_values + n_folders, 0);
    assert_int_equal(n_whole, 1);
    assert_status(put_durably(s, 0, "%d%d", &err), ZARR_OK);
    assert_int_equal(n_whole, 0);
    zarr_store_free(s);
}

/* Folders that the store made above its root have their names on the disk, too. */
static void new_root(void **state)
{
    struct world *w = fixture_world(state);
    zarr_store_options o = ZARR_STORE_OPTIONS_INIT;
    char path[PATH_MAX];
    zarr_store *s = NULL;
    zarr_error err = {0};

    o.flags = ZARR_STORE_CREATE;
    path_in(w, path, sizeof path, "deep/root");
    assert_status(zr_store_open(&s, w->registry, &w->env, path, &o, &err), ZARR_OK);
    assert_status(put_durably(s, 1, "v%d%d", &err), ZARR_OK);
    assert_int_equal(n_folders, 3);
    assert_status(put_durably(s, 1, "v%d%d", &err), ZARR_OK);
    assert_int_equal(n_folders, 1);
    zarr_store_free(s);
}

static void others_flush(void **state)
{
    struct world *w = fixture_world(state);
    zarr_error err = {0};

    for (uint32_t d = ZARR_DURABILITY_NONE; d <= ZARR_DURABILITY_EACH; d++) {
        zarr_store *s = open_with(w, 0, d, 0, 0);
        const bool flushes = d == ZARR_DURABILITY_COMMIT || d == ZARR_DURABILITY_ORDERED;

        assert_status(put_durably(s, 1, "a/v%d%d", &err), ZARR_OK);
        assert_int_equal(n_whole, 0);
        assert_int_equal(n_values, d == ZARR_DURABILITY_NONE ? 0 : 1);
        assert_int_equal(n_folders, d == ZARR_DURABILITY_NONE ? 0 : flushes ? 2 : 1);
        zarr_store_free(s);
    }
}

static void folders_that_fail(void **state)
{
    static const int unable[] = {EINVAL, EBADF, ENOSYS, EOPNOTSUPP, EPERM, EACCES, EROFS};
    struct world *w = fixture_world(state);
    zarr_store *s = open_with(w, 0, ZARR_DURABILITY_COMMIT, 0, 0);
    zarr_error err = {0};

    for (size_t i = 0; i < ZR_COUNT(unable); i++) { /* this file system cannot */
        folder_error = unable[i];
        assert_status(put_durably(s, 2, "a/%d/%d", &err), ZARR_OK);
        assert_int_equal(n_whole, 1);
    }
    folder_error = EIO;
    assert_status(put_durably(s, 2, "a/%d/%d", &err), ZARR_ERR_IO);
    assert_int_equal(err.os_code, EIO);
    assert_int_equal(err.operation, ZARR_OPERATION_FLUSH);
    folder_error = 0; /* the kernel tells it once */
    assert_status(put_durably(s, 2, "a/%d/%d", &err), ZARR_ERR_IO);
    assert_status(zarr_store_flush(s, NULL, &err), ZARR_ERR_IO);
    assert_non_null(strstr(err.message, "an earlier flush failed"));
    zarr_store_free(s);
}

/* On a file system of another machine, or of a process, folders are not synced one by
 * one. Here the test says that it is one. */
static void remote(void **state)
{
    struct world *w = fixture_world(state);
    zarr_store *s = open_with(w, 0, ZARR_DURABILITY_COMMIT, 0, 0);
    zarr_error err = {0};

    is_fuse = true;
    assert_status(put_durably(s, 2, "a/%d/%d", &err), ZARR_OK);
    is_fuse = false;
    assert_int_equal(n_values, 2);
    assert_int_equal(n_folders, 0);
    assert_int_equal(n_whole, 1);
    zarr_store_free(s);
}

/* The flag is not for stores over stores. */
static void flag_is_ours(void **state)
{
    struct world *w = fixture_world(state);
    zarr_store *s = open_with(w, 0, 0, 0, 0);
    zarr_store_op op = {.verb = ZARR_STORE_PUT,
                        .flags = ZR_STORE_OP_SYNCED,
                        .key = "v",
                        .mem = zr_mem_of_host("1", 1)};
    zarr_error err = {0};

    assert_status(zarr_store_run(s, &op, &err), ZARR_ERR_INVALID);
    zarr_store_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(few_keys), T(new_root),          T(others_flush),
        T(remote),   T(folders_that_fail), T(flag_is_ours),
    };

    return cmocka_run_group_tests_name("durable", tests, NULL, NULL);
}
