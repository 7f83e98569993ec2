/*
 * test_append.c - values that change in place at their end. Everything that a PUT keeps
 * stays kept: other names of the file, locks, conditions, versions.
 */
#include "local_test.h"
#include "unit/conditional_caps.h"
#include "unit/over_store.h"

static zarr_store_op append_op(const char *key, void *lock, uint64_t at, const char *text)
{
    return (zarr_store_op){.verb = ZARR_STORE_APPEND,
                           .flags = ZARR_STORE_OP_WANT_VERSION |
                                    (lock ? ZARR_STORE_OP_LOCKED : 0u),
                           .key = key,
                           .offset = at,
                           .mem = zr_mem_of_host((void *)(uintptr_t)text, strlen(text)),
                           .lock = lock};
}

static zarr_status append(zarr_store *s, const char *key, void *lock, uint64_t at,
                          const char *text)
{
    zarr_store_op op = append_op(key, lock, at, text);
    zarr_error err = {0};
    const zarr_status st = zr_store_run_one(s, &op, &err);

    assert_int_equal(op.status, st);
    if (st == ZARR_OK) {
        assert_int_equal(op.done_bytes, strlen(text));
        assert_int_equal(op.object_bytes, at + strlen(text));
    } else {
        assert_int_equal(err.code, st);
        assert_non_null(strstr(err.message, key));
    }
    return st;
}

static zarr_status append_if(zarr_store *s, const char *key, uint64_t at,
                             const char *text, zarr_store_version *version)
{
    zarr_store_op op = append_op(key, NULL, at, text);
    zarr_status st;

    op.flags |= ZARR_STORE_OP_IF_VERSION;
    op.version = *version;
    st = zr_store_run_one(s, &op, NULL);
    if (st == ZARR_OK)
        *version = op.version;
    return st;
}

static void *lock_key(zarr_store *s, const char *key)
{
    zarr_error err = {0};
    void *lock = NULL;

    assert_status(zr_store_lock(s, key, NULL, &lock, &err), ZARR_OK);
    return lock;
}

static void check_ends(zarr_store *s, const char *key, bool locked)
{
    void *lock = NULL;

    assert_status(append(s, key, NULL, 0, "x"), ZARR_ERR_NOT_FOUND);
    assert_status(put_text(s, key, "old"), ZARR_OK);
    lock = locked ? lock_key(s, key) : NULL;
    assert_status(append(s, key, lock, 3, "er"), ZARR_OK);
    assert_string_equal(get_text(s, key), "older");
    assert_status(append(s, key, lock, 2, "x"), ZARR_OK); /* cut */
    assert_string_equal(get_text(s, key), "olx");
    assert_status(append(s, key, lock, 4, "y"), ZARR_ERR_INVALID);
    assert_status(append(s, key, lock, UINT64_MAX, "y"), ZARR_ERR_INVALID);
    assert_string_equal(get_text(s, key), "olx");
    assert_status(append(s, key, lock, 1, ""), ZARR_OK);
    assert_string_equal(get_text(s, key), "o");
    assert_status(append(s, key, lock, 0, "anew"), ZARR_OK);
    zr_store_unlock(s, lock);
    assert_string_equal(get_text(s, key), "anew");
    assert_status(zarr_store_erase(s, key, NULL, NULL), ZARR_OK);
}

static void check_conditions(zarr_store *s, const char *key)
{
    zarr_store_version version = {{0}}, before;
    zarr_store_value v = ZARR_STORE_VALUE_INIT;

    assert_status(append_if(s, key, 0, "x", &version), ZARR_ERR_NOT_FOUND);
    assert_status(put_text(s, key, "old"), ZARR_OK);
    assert_status(append_if(s, key, 3, "x", &version), ZARR_ERR_CONFLICT);
    assert_status(append(s, key, NULL, 3, "er"), ZARR_OK);
    assert_status(append_if(s, key, 5, "x", &version), ZARR_ERR_CONFLICT);
    assert_status(zarr_store_stat(s, key, &v, NULL, NULL), ZARR_OK);
    version = before = v.version;
    assert_status(append_if(s, key, 5, "x", &version), ZARR_OK);
    assert_status(append_if(s, key, 6, "y", &version), ZARR_OK);
    assert_status(append_if(s, key, 6, "z", &before), ZARR_ERR_CONFLICT);
    assert_string_equal(get_text(s, key), "olderxy");
}

/* What is refused before the store is asked. */
static void check_refusals(zarr_store *s, const char *key)
{
    zarr_store_op op = append_op(key, NULL, 0, "x");

    op.flags |= ZARR_STORE_OP_IN_PARTS;
    assert_int_not_equal(zr_store_run_one(s, &op, NULL), ZARR_OK);
    op = append_op(key, NULL, 0, "x");
    op.mem.handle = NULL;
    assert_status(zr_store_run_one(s, &op, NULL), ZARR_ERR_INVALID);
    op = append_op(key, NULL, 0, "x");
    op.flags |= ZARR_STORE_OP_LOCKED;
    assert_status(zr_store_run_one(s, &op, NULL), ZARR_ERR_INVALID);
}

static void each_store(void **state)
{
    static const char *const keys[] = {"a/c/0", "a/zarr.json"};
    struct world *w = fixture_world(state);

    for (int sort = 0; sort < N_SORTS; sort++)
        for (size_t i = 0; i < ZR_COUNT(keys); i++) {
            zarr_store *s = open_sort(w, (enum sort)sort);
            const bool can = sort == SORT_LOCAL || sort == SORT_LOCAL_NO_LOCKS ||
                             (sort == SORT_COMPOSITE && i == 1);

            assert_int_equal(zr_store_can_key(s, keys[i], ZARR_STORE_CAP_APPEND), can);
            (void)!zarr_store_erase(s, keys[i], NULL,
                                    NULL); /* of another store in here */
            if (can) {
                check_ends(s, keys[i], true);
                check_ends(s, keys[i], false);
                check_refusals(s, keys[i]);
            } else {
                assert_status(put_text(s, keys[i], "old"), ZARR_OK);
                assert_status(append(s, keys[i], NULL, 3, "er"), ZARR_ERR_UNSUPPORTED);
                assert_string_equal(get_text(s, keys[i]), "old");
            }
            if (can && zr_store_can_key(s, keys[i], ZARR_STORE_CAP_PUT_IF_VERSION))
                check_conditions(s, keys[i]);
            zarr_store_free(s);
        }
}

static void read_only(void **state)
{
    struct world *w = fixture_world(state);
    zarr_store *s = open_with(w, ZARR_STORE_READ_ONLY, 0, 0, 0);

    write_file(w, "v", "old");
    assert_status(append(s, "v", NULL, 3, "er"), ZARR_ERR_INVALID);
    assert_string_equal(get_text(s, "v"), "old");
    zarr_store_free(s);
}

/* A value of the same length, many times within a tick of the kernel's clock. */
static void versions_differ(void **state)
{
    enum {
        N = 200
    };
    struct world *w = fixture_world(state);
    zarr_store *s = open_with(w, 0, 0, 0, 0);
    void *lock = NULL;
    static zarr_store_version version[N];
    zarr_store_value v = ZARR_STORE_VALUE_INIT;

    assert_status(put_text(s, "v", "old"), ZARR_OK);
    lock = lock_key(s, "v");
    for (int i = 0; i < N; i++) {
        zarr_store_op op = append_op("v", lock, i % 3 ? 3 : 0, i % 3 ? "er" : "older");

        assert_status(zr_store_run_one(s, &op, NULL), ZARR_OK);
        version[i] = op.version;
        for (int k = 0; k < i; k++)
            assert_memory_not_equal(&version[k], &version[i], sizeof *version);
    }
    zr_store_unlock(s, lock);
    assert_status(zarr_store_stat(s, "v", &v, NULL, NULL), ZARR_OK);
    assert_memory_equal(&v.version, &version[N - 1], sizeof v.version);
    zarr_store_free(s);
}

/* The lock serves any number of appends, until a PUT uses it up. */
static void one_lock(void **state)
{
    struct world *w = fixture_world(state);
    zarr_store *s = open_with(w, 0, 0, ZARR_LOCKS_OS, 0);
    zarr_store_op put = {.verb = ZARR_STORE_PUT,
                         .flags = ZARR_STORE_OP_LOCKED,
                         .key = "v",
                         .mem = zr_mem_of_host("new", 3)};
    char path[256];
    void *other = NULL;

    assert_status(put_text(s, "v", ""), ZARR_OK);
    put.lock = lock_key(s, "v");
    other = lock_key(s, "w");
    for (uint64_t i = 0; i < 50; i++)
        assert_status(append(s, "v", put.lock, i, "x"), ZARR_OK);
    assert_int_equal(strlen(get_text(s, "v")), 50);
    assert_status(append(s, "v", other, 50, "x"), ZARR_ERR_INVALID);
    assert_status(zr_store_run_one(s, &put, NULL), ZARR_OK);
    assert_status(append(s, "v", put.lock, 3, "er"), ZARR_ERR_INVALID);
    zr_store_unlock(s, put.lock);
    zr_store_unlock(s, other);
    assert_string_equal(get_text(s, "v"), "new");
    put.lock = lock_key(s, "v");
    assert_status(append(s, "v", put.lock, 3, "er"), ZARR_OK);
    path_in(w, path, sizeof path, "v.__lock"); /* by no right */
    assert_int_equal(unlink(path), 0);
    assert_status(append(s, "v", put.lock, 5, "!"), ZARR_ERR_CONFLICT);
    zr_store_unlock(s, put.lock);
    assert_string_equal(get_text(s, "v"), "newer");
    assert_string_equal(rows(s, "", ZARR_LIST_DEBRIS), "");
    zarr_store_free(s);
}

/* Between two appends other programs give the key another file, or none. */
static void another_file(void **state)
{
    struct world *w = fixture_world(state);
    zarr_store *s = open_with(w, 0, 0, 0, 0);
    char path[256], to[256];
    void *lock = NULL;

    write_file(w, "v", "old");
    write_file(w, "new", "new");
    path_in(w, path, sizeof path, "new");
    path_in(w, to, sizeof to, "v");
    lock = lock_key(s, "v");
    assert_status(append(s, "v", lock, 3, "er"), ZARR_OK);
    assert_int_equal(rename(path, to), 0);
    assert_status(append(s, "v", lock, 3, "er"), ZARR_OK);
    assert_string_equal(get_text(s, "v"), "newer");
    assert_int_equal(rename(to, path), 0);
    assert_status(append(s, "v", lock, 5, "!"), ZARR_ERR_NOT_FOUND);
    assert_string_equal(get_text(s, "new"), "newer");
    assert_int_equal(mkdir(to, 0777), 0);
    assert_status(append(s, "v", lock, 0, "x"), ZARR_ERR_IO);
    assert_int_equal(rmdir(to), 0);
    assert_int_equal(mkfifo(to, 0666), 0);
    assert_status(append(s, "v", lock, 0, "x"), ZARR_ERR_IO);
    zr_store_unlock(s, lock);
    zarr_store_free(s);
}

static nlink_t count_names(const struct world *w, const char *name)
{
    char path[256];
    struct stat st;

    path_in(w, path, sizeof path, name);
    assert_int_equal(lstat(path, &st), 0);
    assert_true(S_ISREG(st.st_mode));
    return st.st_nlink;
}

/* As a PUT does, an append leaves the other names of a file alone. */
static void shared_files(void **state)
{
    static const uint32_t locks[] = {ZARR_LOCKS_OS, ZARR_LOCKS_NONE};
    struct world *w = fixture_world(state);
    char path[256], other[256];

    path_in(w, path, sizeof path, "v");
    path_in(w, other, sizeof other, "other");
    for (size_t i = 0; i < 2 * ZR_COUNT(locks); i++) {
        zarr_store *s = open_with(w, 0, 0, locks[i / 2], 0);
        zarr_store_version version;
        zarr_store_value v = ZARR_STORE_VALUE_INIT;

        (void)unlink(path);
        (void)unlink(other);
        write_file(w, "other", "old");
        assert_int_equal(i % 2 ? symlink("other", path) : link(other, path), 0);
        assert_status(append(s, "v", NULL, 4, "x"), ZARR_ERR_INVALID);
        assert_status(zarr_store_stat(s, "v", &v, NULL, NULL), ZARR_OK);
        version = v.version;
        if (zr_store_can(s, ZARR_STORE_CAP_PUT_IF_VERSION)) {
            zarr_store_version none = {{0}};

            assert_status(append_if(s, "v", 2, "x", &none), ZARR_ERR_CONFLICT);
            assert_status(append_if(s, "v", 2, "x", &version), ZARR_OK);
        } else {
            assert_status(append(s, "v", NULL, 2, "x"), ZARR_OK);
        }
        assert_string_equal(get_text(s, "v"), "olx");
        assert_string_equal(get_text(s, "other"), "old");
        assert_int_equal(count_names(w, "v"), 1);
        assert_int_equal(count_names(w, "other"), 1);
        assert_status(append(s, "v", NULL, 3, "!"), ZARR_OK);
        assert_string_equal(get_text(s, "v"), "olx!");
        assert_string_equal(rows(s, "", ZARR_LIST_DEBRIS), "");
        zarr_store_free(s);
    }
}

/* A link that reads do not follow. */
static void refused_link(void **state)
{
    struct world *w = fixture_world(state);
    zarr_store *s = open_with(w, 0, 0, 0, 0);
    char path[256];

    path_in(w, path, sizeof path, "v");
    assert_int_equal(symlink("/etc/hostname", path), 0);
    assert_status(append(s, "v", NULL, 0, "x"), ZARR_ERR_IO);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("nowhere", path), 0);
    assert_status(append(s, "v", NULL, 0, "x"), ZARR_ERR_IO);
    zarr_store_free(s);
}

/* A reader that has the file open keeps what is before the end. */
static void pinned_reader(void **state)
{
    struct world *w = fixture_world(state);
    zarr_store *s = open_with(w, 0, 0, 0, 0);
    struct zr_store_pin pin;
    zarr_error err = {0};
    char to[8];
    zarr_store_op op = get_op("v", 0, 3, to, sizeof to);

    assert_status(put_text(s, "v", "older"), ZARR_OK);
    assert_status(zr_store_pin_init(&pin, s, "v", &err), ZARR_OK);
    op.flags = ZR_STORE_OP_PINNED;
    op.lock = &pin;
    assert_status(append(s, "v", NULL, 5, " and older"), ZARR_OK);
    assert_status(zr_store_run_one(s, &op, &err), ZARR_OK);
    assert_memory_equal(to, "old", 3);
    assert_status(append(s, "v", NULL, 3, ""), ZARR_OK);
    assert_status(zr_store_run_one(s, &op, &err), ZARR_OK);
    op.length = 5;
    assert_status(zr_store_run_one(s, &op, &err), ZARR_ERR_CONFLICT);
    zr_store_pin_deinit(&pin);
    zarr_store_free(s);
}

/* An append without the lock waits for the holder, as a PUT does. */
static void waits_for_the_holder(void **state)
{
    struct world *w = fixture_world(state);
    const zarr_store_options o = {.struct_size = sizeof o, .lock_wait_ms = 30};
    zarr_store *s = open_local(w, &o);
    void *lock = NULL;

    assert_status(put_text(s, "v", "old"), ZARR_OK);
    lock = lock_key(s, "v");
    assert_status(append(s, "v", lock, 3, "er"), ZARR_OK);
    assert_status(append(s, "v", NULL, 5, "x"), ZARR_ERR_IO);
    assert_status(put_text(s, "v", "new"), ZARR_ERR_IO);
    zr_store_unlock(s, lock);
    assert_string_equal(get_text(s, "v"), "older");
    zarr_store_free(s);
}

/* A store without locks of its own: those of the handle. */
static void over_another_store(void **state)
{
    struct world *w = fixture_world(state);
    struct over o = {.caps = CAPS_CONDITIONAL | ZARR_STORE_CAP_WRITE |
                             ZARR_STORE_CAP_LIST | ZARR_STORE_CAP_APPEND,
                     .below = open_with(w, 0, 0, 0, 0)};
    zarr_error err = {0};
    zarr_store *s = NULL;

    assert_status(zr_store_open_custom(&s, &w->env, &over_runs, &o, NULL, &err), ZARR_OK);
    check_ends(s, "a/c/0", true);
    check_ends(s, "a/c/0", false);
    check_conditions(s, "a/c/1");
    assert_true(o.n_ops[ZARR_STORE_APPEND] > 10);
    zarr_store_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_store, setup, teardown),
        cmocka_unit_test_setup_teardown(read_only, setup, teardown),
        cmocka_unit_test_setup_teardown(versions_differ, setup, teardown),
        cmocka_unit_test_setup_teardown(one_lock, setup, teardown),
        cmocka_unit_test_setup_teardown(another_file, setup, teardown),
        cmocka_unit_test_setup_teardown(shared_files, setup, teardown),
        cmocka_unit_test_setup_teardown(refused_link, setup, teardown),
        cmocka_unit_test_setup_teardown(pinned_reader, setup, teardown),
        cmocka_unit_test_setup_teardown(waits_for_the_holder, setup, teardown),
        cmocka_unit_test_setup_teardown(over_another_store, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
