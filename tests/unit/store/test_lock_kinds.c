/*
 * unit/store/test_lock_kinds.c - file systems that lack one kind of lock, or both. Where
 * open file description locks do not exist, flock() takes their place. After an error
 * that may pass no process takes another kind: the write fails.
 */
#include "local_test.h"

#include <sys/file.h>
#include <sys/syscall.h>

static int ofd_errno, flock_errno, n_flocks;

int fcntl64(int fd, int what, ...)
{
    va_list ap;
    void *arg;

    va_start(ap, what);
    arg = va_arg(ap, void *);
    va_end(ap);
    if (what == F_OFD_SETLK && ofd_errno != 0) {
        errno = ofd_errno;
        return -1;
    }
    return (int)syscall(SYS_fcntl, fd, what, arg);
}

int flock(int fd, int what)
{
    n_flocks += (what & LOCK_EX) != 0;
    if (flock_errno != 0) {
        errno = flock_errno;
        return -1;
    }
    return (int)syscall(SYS_flock, fd, what);
}

static void set_errors(int of_ofd, int of_flock)
{
    ofd_errno = of_ofd;
    flock_errno = of_flock;
    n_flocks = 0;
}

static void flock_instead(void **state)
{
    static const int missing[] = {EINVAL, ENOSYS, EOPNOTSUPP};
    zarr_store_options o = {
        .struct_size = sizeof o, .durability = ZARR_DURABILITY_NONE, .lock_wait_ms = 20};
    struct world *w = fixture_world(state);
    zarr_store *s = open_local(w, &o), *other = open_local(w, &o);
    zarr_error err = {0};

    for (size_t i = 0; i < ZR_COUNT(missing); i++) {
        void *lock = NULL;

        set_errors(missing[i], 0);
        assert_status(zr_store_lock(s, "v", NULL, &lock, &err), ZARR_OK);
        assert_int_equal(n_flocks, 1);
        assert_status(zarr_store_put(other, "v", "1", 1, NULL, &err), ZARR_ERR_IO);
        assert_int_equal(err.os_code, ETIMEDOUT);
        zr_store_unlock(s, lock);
        assert_status(put_text(other, "v", "2"), ZARR_OK);
        assert_string_equal(get_text(s, "v"), "2");
    }
    set_errors(0, 0);
    assert_status(put_text(s, "v", "3"), ZARR_OK);
    assert_int_equal(n_flocks, 0);
    zarr_store_free(other);
    zarr_store_free(s);
}

static void assert_no_locks(zarr_store *s, const char *reason)
{
    zarr_error err = {0};
    char setting[16];

    assert_status(zarr_store_put(s, "a/v", "2", 1, NULL, &err), ZARR_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "gives no locks (option locks)"));
    assert_int_equal(zarr_error_text(&err, ZARR_ERROR_SETTING, setting, sizeof setting),
                     5);
    assert_string_equal(setting, "locks");
    assert_non_null(strstr(err.message, reason));
    assert_string_equal(get_text(s, "a/v"), "1");
}

static void no_locks(void **state)
{
    struct world *w = fixture_world(state);
    zarr_store *s = open_with(w, 0, ZARR_DURABILITY_NONE, 0, 0);

    set_errors(0, 0);
    assert_status(put_text(s, "a/v", "1"), ZARR_OK);
    set_errors(ENOLCK, 0);
    assert_no_locks(s, "No locks available");
    set_errors(ZR_ENOTSUPP, 0);
    assert_no_locks(s, "Operation not supported (ENOTSUPP)");
    assert_int_equal(n_flocks, 0);
    assert_true(exists(w, "a/v.__lock")); /* another process may have its lock */
    set_errors(EINVAL, ENOLCK);
    assert_no_locks(s, "No locks available");
    set_errors(EINVAL, EINVAL);
    assert_no_locks(s, "Operation not supported");
    assert_false(exists(w, "a/v.__lock"));
    zarr_store_free(s);
}

/* Without locks the lock files that others left are debris. */
static void without_locking(void **state)
{
    struct world *w = fixture_world(state);
    zarr_store *s = open_with(w, 0, ZARR_DURABILITY_NONE, ZARR_LOCKS_NONE, 0);
    uint64_t n_removed = 0;
    zarr_error err = {0};

    set_errors(ENOLCK, ENOLCK);
    assert_status(put_text(s, "a/v", "1"), ZARR_OK);
    write_file(w, "a/v.__lock", "half");
    assert_status(zarr_store_clean(s, "", 0, &n_removed, NULL, &err), ZARR_OK);
    assert_int_equal(n_removed, 1);
    write_file(w, "a/v.__lock", "half");
    assert_status(zarr_store_erase_prefix(s, "a", NULL, &err), ZARR_OK);
    assert_false(exists(w, "a"));
    zarr_store_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {T(flock_instead), T(no_locks), T(without_locking)};

    return cmocka_run_group_tests_name("lock_kinds", tests, NULL, NULL);
}
