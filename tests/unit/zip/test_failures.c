/*
 * unit/zip/test_failures.c - writes of archives that fail: one allocation after the
 * other, and each call of the store below. The file of a spooled archive, where the file
 * system has files without a name and where it has none.
 */
#include "zip_test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "zip/zip_int.h"

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

/* ---- the file of a spooled archive ---- */

int __real_open(const char *path, int flags, ...);
int __real_open64(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);

static bool has_no_unnamed_files;
static int n_unnamed, n_named; /* files that were asked for */

/* The linker puts these before open(). mkostemp() makes its call inside of libc. */
static int open_or_refuse(const char *path, int flags, unsigned mode)
{
    n_unnamed += (flags & O_TMPFILE) == O_TMPFILE;
    n_named += (flags & O_CREAT) != 0;
    if ((flags & O_TMPFILE) != O_TMPFILE || !has_no_unnamed_files)
        return __real_open(path, flags, mode);
    errno = EOPNOTSUPP;
    return -1;
}

int __wrap_open(const char *path, int flags, ...)
{
    return open_or_refuse(path, flags, 0600); /* the only mode here */
}

int __wrap_open64(const char *path, int flags, ...)
{
    return open_or_refuse(path, flags, 0600);
}

static int count_files(void)
{
    DIR *d = opendir(folder);
    int n = 0;

    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n - 2;
}

static void write_and_read(const struct zr_zip_spool *spool)
{
    char text[] = "archive", to[sizeof text];
    const zarr_memory mem = {
        .device_type = ZARR_DEVICE_CPU, .handle = text, .bytes = sizeof text};
    zarr_error err = {0};

    assert_status(zr_zip_spool_write(spool, &mem, 70000, &err), ZARR_OK);
    assert_status(zr_zip_spool_read(spool, 70000, sizeof to, to, &err), ZARR_OK);
    assert_string_equal(to, text);
    assert_status(zr_zip_spool_read(spool, 70001, sizeof to, to, &err), ZARR_ERR_IO);
    assert_non_null(strstr(err.message, "too short"));
}

static void test_spool(void **state)
{
    struct zr_zip_spool spool = {.is_open = false};
    zarr_error err = {0};
    struct stat st;

    (void)state;
    for (int i = 0; i < 2; i++) {
        has_no_unnamed_files = i == 1;
        n_unnamed = n_named = 0;
        assert_status(zr_zip_spool_open(&spool, folder, &err), ZARR_OK);
        assert_int_equal(n_unnamed, 1);
        assert_int_equal(n_named, 0);       /* the other way is mkostemp() */
        assert_int_equal(count_files(), 0); /* it has no name, or none any more */
        assert_int_equal(fstat(spool.fd, &st), 0);
        assert_int_equal(st.st_nlink, 0);
        assert_int_equal(st.st_mode & 0777, 0600);
        assert_true(fcntl(spool.fd, F_GETFD) & FD_CLOEXEC);
        write_and_read(&spool);
        zr_zip_spool_close(&spool);
        assert_int_equal(fcntl(spool.fd, F_GETFD), -1);
        assert_status(zr_zip_spool_open(&spool, "/nonexistent", &err), ZARR_ERR_IO);
        assert_non_null(strstr(err.message, "cannot make it"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_spool, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_failing_allocations, folder_setup,
                                        folder_teardown),
        cmocka_unit_test_setup_teardown(test_failing_store, folder_setup,
                                        folder_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
