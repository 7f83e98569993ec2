/*
 * unit/store/test_local_mode.c - the mode and the owners of files: a value that replaces
 * another keeps them, also while it is written, and a new value follows the umask.
 */
#include "local_test.h"

#include <dirent.h>
#include <sys/syscall.h>

/* The store sets the time of a value after it wrote it, before it renames it. */
static mode_t mode_while_written;

int futimens(int fd, const struct timespec times[2])
{
    struct stat st;

    mode_while_written = fstat(fd, &st) == 0 ? st.st_mode & 0777 : 0;
    return (int)syscall(SYS_utimensat, fd, NULL, times, 0);
}

static struct stat stat_in(const struct world *w, const char *name)
{
    char path[256];
    struct stat st = {0};

    path_in(w, path, sizeof path, name);
    assert_int_equal(lstat(path, &st), 0);
    return st;
}

static void assert_mode(const struct world *w, const char *name, mode_t want)
{
    const struct stat st = stat_in(w, name);

    if ((st.st_mode & 07777) != want)
        fail_msg("%s has the mode %o, expected %o", name, st.st_mode & 07777, want);
}

static void modes(void **state)
{
    static const char *const keys[] = {"a/c/0", "a/zarr.json", ".zattrs", ".zmetadata"};
    static const mode_t wanted[] = {0640, 0600, 0444, 0200, 0000, 0777, 0664};
    struct world *w = fixture_world(state);
    const mode_t before = umask(002);
    char path[256];

    for (uint32_t locks = ZARR_LOCKS_OS; locks <= ZARR_LOCKS_NONE; locks++) {
        zarr_store *s = open_with(w, 0, ZARR_DURABILITY_NONE, locks, 0);

        for (size_t i = 0; i < ZR_COUNT(keys) * ZR_COUNT(wanted); i++) {
            const char *key = keys[i % ZR_COUNT(keys)];
            const mode_t want = wanted[i / ZR_COUNT(keys)];

            assert_status(put_text(s, key, "1"), ZARR_OK);
            assert_mode(w, key, 0664);
            path_in(w, path, sizeof path, key);
            assert_int_equal(chmod(path, want), 0);
            assert_status(put_text(s, key, "2"), ZARR_OK);
            assert_mode(w, key, want);
            assert_int_equal(mode_while_written & 077, want & 077);
            assert_status(zarr_store_erase(s, key, NULL, NULL), ZARR_OK);
        }
        zarr_store_free(s);
    }
    umask(before);
}

/* Whether users other than the owner can read no file of the folder. */
static void assert_all_are_private(const struct world *w)
{
    char path[256];
    DIR *dir;
    struct dirent *e;

    path_in(w, path, sizeof path, "");
    dir = opendir(path);
    assert_non_null(dir);
    while ((e = readdir(dir)))
        if (S_ISREG(stat_in(w, e->d_name).st_mode) && stat_in(w, e->d_name).st_mode & 077)
            fail_msg("%s can be read", e->d_name);
    closedir(dir);
}

/* Parts of a value are as private as the one that they will replace. */
static void parts(void **state)
{
    struct world *w = fixture_world(state);
    char path[256];

    for (uint32_t locks = ZARR_LOCKS_OS; locks <= ZARR_LOCKS_NONE; locks++) {
        zarr_store *s = open_with(w, 0, ZARR_DURABILITY_NONE, locks, 0);
        zarr_store_op op = {.verb = ZARR_STORE_PUT_PART,
                            .key = "v",
                            .part = 1,
                            .mem = zr_mem_of_host((void *)(uintptr_t) "new", 3)};

        assert_status(put_text(s, "v", "old"), ZARR_OK);
        path_in(w, path, sizeof path, "v");
        assert_int_equal(chmod(path, 0600), 0);
        assert_status(zarr_store_begin_parts(&op.parts, s, "v", NULL, NULL, NULL),
                      ZARR_OK);
        assert_status(zarr_store_run(s, &op, NULL), ZARR_OK);
        assert_all_are_private(w);
        op.verb = ZARR_STORE_PUT;
        op.flags = ZARR_STORE_OP_IN_PARTS;
        op.length = 3;
        op.mem = (zarr_memory){0};
        assert_status(zarr_store_run(s, &op, NULL), ZARR_OK);
        zarr_store_end_parts(s, "v", op.parts);
        assert_mode(w, "v", 0600);
        assert_string_equal(get_text(s, "v"), "new");
        assert_status(zarr_store_erase(s, "v", NULL, NULL), ZARR_OK);
        zarr_store_free(s);
    }
}

/* Root gives a value back to whom it belonged. */
static void owners(void **state)
{
    struct world *w = fixture_world(state);
    char path[256];

    if (geteuid() != 0) {
        print_message("skipped: only root may give a file away\n");
        skip();
    }
    for (uint32_t locks = ZARR_LOCKS_OS; locks <= ZARR_LOCKS_NONE; locks++) {
        zarr_store *s = open_with(w, 0, ZARR_DURABILITY_NONE, locks, 0);
        struct stat st;

        assert_status(put_text(s, "a/v", "1"), ZARR_OK);
        path_in(w, path, sizeof path, "a/v");
        assert_int_equal(chown(path, 4711, 4712), 0);
        assert_status(put_text(s, "a/v", "2"), ZARR_OK);
        st = stat_in(w, "a/v");
        assert_int_equal(st.st_uid, 4711);
        assert_int_equal(st.st_gid, 4712);
        assert_string_equal(get_text(s, "a/v"), "2");
        assert_status(zarr_store_erase(s, "a/v", NULL, NULL), ZARR_OK);
        zarr_store_free(s);
    }
}

/* A symlink has no mode of its own: the value that replaces it is a new file. */
static void link_at_key(void **state)
{
    struct world *w = fixture_world(state);
    const mode_t before = umask(027);
    zarr_store *s = open_with(w, 0, ZARR_DURABILITY_NONE, 0, 0);

    write_file(w, "target", "1");
    make_link(w, "target", "v");
    assert_status(put_text(s, "v", "2"), ZARR_OK);
    assert_mode(w, "v", 0640);
    assert_true(S_ISREG(stat_in(w, "v").st_mode));
    zarr_store_free(s);
    umask(before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {T(modes), T(parts), T(owners), T(link_at_key)};

    return cmocka_run_group_tests_name("local_mode", tests, NULL, NULL);
}
