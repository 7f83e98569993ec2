/*
 * unit/store/test_local.c - behaviour of directories: opening, reserved names, FIFOs,
 * sockets and directories at keys, values that others replace.
 */
#include "local_test.h"

#include <sys/socket.h>
#include <sys/un.h>

/* The message says what the file is and what reads it, also if the path goes on below. */
static void files_of_other_formats(void **state)
{
    static const struct {
        const char *text, *name, *reader;
    } rows[] = {{"CDF\001", "a netCDF file", "xarray"},
                {"\x89HDF\r\n\x1a\n", "an HDF5 or netCDF-4 file", "h5py"},
                {"PK\003\004", "a zip file", "zip:PATH"},
                {"\n{ \"refs\": {}}", "a kerchunk file of references", "fsspec"},
                {"{", NULL, NULL},
                {"{\"a\": 1}", NULL, NULL},
                {"", NULL, NULL},
                {"CDF", NULL, NULL}};
    static const char *const below[] = {"f", "f/", "f/a/b"};
    struct world *w = fixture_world(state);
    zarr_store *s = NULL;
    char path[256], file[256];

    path_in(w, file, sizeof file, "f is ");
    for (size_t i = 0; i < ZR_COUNT(rows); i++) {
        write_file(w, "f", rows[i].text);
        for (size_t k = 0; k < ZR_COUNT(below); k++) {
            zarr_error err = {0};

            path_in(w, path, sizeof path, below[k]);
            assert_status(zr_store_open(&s, w->registry, &w->env, path, NULL, &err),
                          rows[i].name ? ZARR_ERR_UNSUPPORTED : ZARR_ERR_INVALID);
            assert_true(!rows[i].name ||
                        (strstr(err.message, file) && strstr(err.message, rows[i].name) &&
                         strstr(err.message, rows[i].reader)));
            assert_true(rows[i].name || strstr(err.message, "f is not a Zarr store"));
        }
    }
    path_in(w, path, sizeof path, "f");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0); /* nothing waits for its writer */
    assert_status(zr_store_open(&s, w->registry, &w->env, path, NULL, NULL),
                  ZARR_ERR_INVALID);
}

static void open_stores(void **state)
{
    struct world *w = fixture_world(state);
    zarr_store_options o = {.struct_size = sizeof o};
    zarr_store *s = NULL;
    zarr_error err = {0};
    char path[256];

    path_in(w, path, sizeof path, "x/y/z");
    assert_status(zr_store_open(&s, w->registry, &w->env, path, &o, &err),
                  ZARR_ERR_NOT_FOUND);
    o.flags = ZARR_STORE_CREATE;
    assert_status(zr_store_open(&s, w->registry, &w->env, path, &o, &err), ZARR_OK);
    assert_string_equal(zarr_store_url(s), path);
    assert_string_equal(zr_store_name(s), "local");
    assert_status(zarr_store_flush(s, NULL, &err), ZARR_OK);
    zarr_store_free(s);
    snprintf(path, sizeof path, "file://%s/x", w->dir);
    assert_status(zr_store_open(&s, w->registry, &w->env, path, NULL, &err), ZARR_OK);
    zarr_store_free(s);
    snprintf(path, sizeof path, "local://%s/x", w->dir);
    assert_status(zr_store_open(&s, w->registry, &w->env, path, NULL, &err), ZARR_OK);
    zarr_store_free(s);
    write_file(w, "f", "1");
    path_in(w, path, sizeof path, "f");
    assert_status(zr_store_open(&s, w->registry, &w->env, path, NULL, &err),
                  ZARR_ERR_INVALID);
    assert_int_equal(err.os_code, ENOTDIR);
    path_in(w, path, sizeof path, "f/g");
    assert_true(zr_store_open(&s, w->registry, &w->env, path, &o, &err) != ZARR_OK);
    o.durability = 9;
    assert_status(zr_store_open(&s, w->registry, &w->env, w->dir, &o, &err),
                  ZARR_ERR_INVALID);
    o.durability = 0;
    o.flags = 0x80;
    assert_status(zr_store_open(&s, w->registry, &w->env, w->dir, &o, &err),
                  ZARR_ERR_INVALID);
    o.flags = 0;
    o.kind = "none";
    assert_status(zr_store_open(&s, w->registry, &w->env, w->dir, &o, &err),
                  ZARR_ERR_UNSUPPORTED);
    o.kind = "local";
    assert_status(zr_store_open(&s, w->registry, &w->env, w->dir, &o, &err), ZARR_OK);
    zarr_store_free(s);
    assert_status(zr_store_open(&s, w->registry, &w->env, "s3://b/k", NULL, &err),
                  ZARR_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "s3"));
    assert_status(zr_store_open(&s, w->registry, &w->env, "file://", NULL, &err),
                  ZARR_ERR_INVALID);
    assert_status(zr_store_open(&s, w->registry, &w->env, "", NULL, &err),
                  ZARR_ERR_INVALID);
}

static void read_only(void **state)
{
    struct world *w = fixture_world(state);
    zarr_store *s = open_with(w, ZARR_STORE_READ_ONLY, 0, 0, 0);
    zarr_error err = {0};
    void *lock = NULL;

    write_file(w, "v", "1");
    assert_string_equal(get_text(s, "v"), "1");
    assert_status(put_text(s, "v", "2"), ZARR_ERR_INVALID);
    assert_status(zarr_store_erase(s, "v", NULL, &err), ZARR_ERR_INVALID);
    assert_status(zarr_store_erase_prefix(s, "", NULL, &err), ZARR_ERR_INVALID);
    assert_status(zarr_store_clean(s, "", 0, NULL, NULL, &err), ZARR_ERR_INVALID);
    assert_status(zr_store_lock(s, "v", NULL, &lock, &err), ZARR_ERR_INVALID);
    assert_false(zr_store_can(s, ZARR_STORE_CAP_WRITE));
    assert_true(zr_store_is_read_only(s));
    assert_status(zarr_store_flush(s, NULL, &err), ZARR_OK);
    zarr_store_free(s);
}

static void not_a_value(void **state)
{
    struct world *w = fixture_world(state);
    zarr_store *s = open_with(w, 0, ZARR_DURABILITY_NONE, 0, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    zarr_error err = {0};
    char path[256];
    int fd;

    make_dir(w, "dir");
    write_file(w, "dir/v", "1");
    path_in(w, path, sizeof path, "fifo");
    assert_int_equal(mkfifo(path, 0666), 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s/socket", w->dir);
    fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_status(get_status(s, "dir", &err), ZARR_ERR_IO);
    assert_int_equal(err.os_code, EISDIR);
    assert_status(put_text(s, "dir", "x"), ZARR_ERR_IO);
    assert_status(zarr_store_erase(s, "dir", NULL, &err), ZARR_ERR_IO);
    make_dir(w, "empty");
    assert_status(get_status(s, "empty", &err), ZARR_ERR_IO);
    assert_status(put_text(s, "empty", "x"), ZARR_OK);
    assert_string_equal(get_text(s, "empty"), "x");
    make_dir(w, "empty2");
    assert_status(zarr_store_erase(s, "empty2", NULL, &err), ZARR_OK);
    assert_false(exists(w, "empty2"));
    assert_status(get_status(s, "fifo", &err), ZARR_ERR_IO);
    assert_non_null(strstr(err.message, "FIFO"));
    assert_status(get_status(s, "socket", &err), ZARR_ERR_IO);
    assert_status(get_status(s, "dir/v/below", &err), ZARR_ERR_IO);
    assert_status(put_text(s, "dir/v/below", "x"), ZARR_ERR_IO);
    assert_string_equal(get_text(s, "dir/v"), "1");
    assert_false(exists(w, "dir.__lock")); /* a failed call leaves nothing behind */
    if (geteuid() == 0) {
        path_in(w, path, sizeof path, "zero");
        if (mknod(path, S_IFCHR | 0666, (1 << 8) | 5) == 0) {
            zarr_status st = get_status(s, "zero", &err);

            assert_status(st, ZARR_ERR_IO);
        }
    }
    close(fd);
    zarr_store_free(s);
}

static void reserved_names(void **state)
{
    static const char *const names[] = {
        "v.__lock",
        "a.__lock/v",
        ".zarrc-tmp-1-2",
        "a/.zarrc-tmp-/v",
        "v.0123456789abcdef0123456789abcdef.partial",
    };
    struct world *w = fixture_world(state);
    zarr_store *s = open_with(w, 0, ZARR_DURABILITY_NONE, 0, 0);

    for (size_t i = 0; i < ZR_COUNT(names); i++)
        assert_status(put_text(s, names[i], "x"), ZARR_ERR_INVALID);
    zarr_store_free(s);
}

/* The next request sees a replaced file. A pin keeps the old one. */
static void replaced_by_others(void **state)
{
    struct world *w = fixture_world(state);
    zarr_store *s = open_with(w, 0, ZARR_DURABILITY_NONE, 0, 0);
    zarr_store_op op;
    struct zr_store_pin pin;
    zarr_error err = {0};
    char from[256], to[256], bytes[8];

    write_file(w, "v", "old");
    write_file(w, "new", "newer");
    assert_status(zr_store_pin_init(&pin, s, "v", &err), ZARR_OK);
    path_in(w, from, sizeof from, "new");
    path_in(w, to, sizeof to, "v");
    assert_int_equal(rename(from, to), 0);
    assert_string_equal(get_text(s, "v"), "newer");
    op = get_op("v", 0, ZARR_STORE_TO_END, bytes, sizeof bytes);
    op.flags = ZR_STORE_OP_PINNED;
    op.lock = &pin;
    assert_status(zr_store_run_one(s, &op, &err), ZARR_OK);
    assert_true(op.done_bytes == 3 && memcmp(bytes, "old", 3) == 0);
    zr_store_pin_deinit(&pin);
    assert_status(zr_store_pin_init(&pin, s, "v", &err), ZARR_OK);
    /* Shortened in place, as some writers do: reported, not padded. */
    write_file(w, "v", "n");
    op = get_op("v", 0, 5, bytes, sizeof bytes);
    op.flags = ZR_STORE_OP_PINNED;
    op.lock = &pin;
    assert_status(zr_store_run_one(s, &op, &err), ZARR_ERR_CONFLICT);
    zr_store_pin_deinit(&pin);
    zarr_store_free(s);
}

/* A folder moves while the holder of a lock works. What the holder reads by its key is
 * not what its write would replace. */
static void lock_in_a_moved_folder(void **state)
{
    static const uint32_t verbs[] = {ZARR_STORE_PUT, ZARR_STORE_ERASE};
    struct world *w = fixture_world(state);
    zarr_store *s = open_with(w, 0, ZARR_DURABILITY_NONE, 0, 0);
    zarr_error err = {0};

    assert_status(put_text(s, "a/c/v", "old"), ZARR_OK);
    for (size_t i = 0; i < ZR_COUNT(verbs); i++) {
        zarr_store_op op = {
            .verb = verbs[i], .flags = ZARR_STORE_OP_LOCKED, .key = "a/c/v"};

        op.mem = zr_mem_of_host("new", 3);
        assert_status(zr_store_lock(s, "a/c/v", NULL, &op.lock, &err), ZARR_OK);
        assert_status(zr_store_rename(s, "a", "b", NULL, &err), ZARR_OK);
        assert_null(get_text(s, "a/c/v"));
        assert_status(zr_store_run_one(s, &op, &err), ZARR_ERR_CONFLICT);
        assert_non_null(strstr(err.message, "a/c/v"));
        assert_non_null(strstr(err.message, "moved"));
        /* another array may be there now */
        assert_status(put_text(s, "a/c/w", "1"), ZARR_OK);
        assert_status(zr_store_run_one(s, &op, &err), ZARR_ERR_CONFLICT);
        zr_store_unlock(s, op.lock);
        assert_string_equal(get_text(s, "b/c/v"), "old");
        assert_null(get_text(s, "a/c/v"));
        assert_string_equal(rows(s, "", ZARR_LIST_DEBRIS), "");
        assert_status(zarr_store_erase_prefix(s, "a", NULL, &err), ZARR_OK);
        assert_status(zr_store_rename(s, "b", "a", NULL, &err), ZARR_OK);
    }
    zarr_store_free(s);
}

/* Another process removes the lock file of a living writer, and another writer makes its
 * own. What that one has written so far is not given to the key, and its file stays. */
static void lock_file_of_another(void **state)
{
    struct world *w = fixture_world(state);
    zarr_store *s = open_with(w, 0, ZARR_DURABILITY_NONE, 0, 0);
    zarr_store_op op = {
        .verb = ZARR_STORE_PUT, .flags = ZARR_STORE_OP_LOCKED, .key = "a/v"};
    zarr_error err = {0};
    char lock[256];

    path_in(w, lock, sizeof lock, "a/v.__lock");
    op.mem = zr_mem_of_host("new", 3);
    assert_status(put_text(s, "a/v", "old"), ZARR_OK);
    assert_status(zr_store_lock(s, "a/v", NULL, &op.lock, &err), ZARR_OK);
    assert_int_equal(unlink(lock), 0);
    write_file(w, "a/v.__lock", "half of");
    assert_status(zr_store_run_one(s, &op, &err), ZARR_ERR_CONFLICT);
    assert_non_null(strstr(err.message, "removed"));
    zr_store_unlock(s, op.lock);
    assert_string_equal(get_text(s, "a/v"), "old");
    assert_true(exists(w, "a/v.__lock"));
    zarr_store_free(s);
}

/* A writer that was killed between link() and unlink(), where the file system has no
 * rename that replaces nothing, leaves a lock file that is the value. */
static void lock_file_that_is_the_value(void **state)
{
    struct world *w = fixture_world(state);
    zarr_store *s = open_with(w, 0, ZARR_DURABILITY_NONE, 0, 0);
    char value[256], lock[256], kept[256];
    zarr_error err = {0};

    path_in(w, value, sizeof value, "v");
    path_in(w, lock, sizeof lock, "v.__lock");
    path_in(w, kept, sizeof kept, "kept");
    assert_status(put_text(s, "v", "old"), ZARR_OK);
    assert_int_equal(link(value, kept), 0); /* as a reader that has the value open */
    assert_int_equal(link(value, lock), 0);
    assert_status(put_text(s, "v", "newer"), ZARR_OK);
    assert_string_equal(get_text(s, "v"), "newer");
    assert_string_equal(get_text(s, "kept"), "old");
    assert_string_equal(rows(s, "", ZARR_LIST_DEBRIS), "");
    assert_int_equal(link(value, lock), 0);
    assert_status(zarr_store_erase(s, "v", NULL, &err), ZARR_OK);
    assert_null(get_text(s, "v"));
    assert_string_equal(rows(s, "", ZARR_LIST_DEBRIS), "");
    zarr_store_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(open_stores),
        T(files_of_other_formats),
        T(read_only),
        T(not_a_value),
        T(reserved_names),
        T(replaced_by_others),
        T(lock_in_a_moved_folder),
        T(lock_file_of_another),
        T(lock_file_that_is_the_value),
    };

    return cmocka_run_group_tests_name("local", tests, NULL, NULL);
}
