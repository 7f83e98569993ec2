/*
 * unit/store/test_local_sync.c - a system without fdatasync(), syncfs() or fsync(): a
 * stronger call takes the place of one that is missing. Without any, the log has one
 * warning and the value is written. Other errors fail the write.
 */
#include "local_test.h"

enum sync_call {
    CALL_FDATASYNC,
    CALL_FSYNC,
    CALL_SYNCFS,
    CALL_SYNC,
    N_SYNC_CALLS
};
static int sync_errno[N_SYNC_CALLS], n_syncs[N_SYNC_CALLS];

static int sync_as_told(enum sync_call call)
{
    n_syncs[call]++;
    errno = sync_errno[call];
    return errno == 0 ? 0 : -1;
}

int fdatasync(int fd)
{
    ZR_UNUSED(fd);
    return sync_as_told(CALL_FDATASYNC);
}

int fsync(int fd)
{
    ZR_UNUSED(fd);
    return sync_as_told(CALL_FSYNC);
}

int syncfs(int fd)
{
    ZR_UNUSED(fd);
    return sync_as_told(CALL_SYNCFS);
}

void sync(void)
{
    (void)sync_as_told(CALL_SYNC);
}

static void set_errors(int of_fdatasync, int of_fsync, int of_syncfs)
{
    sync_errno[CALL_FDATASYNC] = of_fdatasync;
    sync_errno[CALL_FSYNC] = of_fsync;
    sync_errno[CALL_SYNCFS] = of_syncfs;
    memset(n_syncs, 0, sizeof n_syncs);
}

static void count_warning(void *user, uint32_t level, const char *text)
{
    if (level == ZARR_LOG_WARN && strstr(text, "cannot sync"))
        ++*(int *)user;
}

static int n_warnings;

static zarr_store *open_warned(struct world *w, uint32_t durability, uint32_t locks)
{
    n_warnings = 0;
    w->env.log =
        (struct zr_log){.fn = count_warning, .user = &n_warnings, .level = ZARR_LOG_WARN};
    return open_with(w, 0, durability, locks, 0);
}

static const int missing[] = {EINVAL, ENOSYS};

static void without_fdatasync(void **state)
{
    struct world *w = fixture_world(state);

    for (size_t i = 0; i < 4; i++) {
        zarr_store *s = open_warned(w, ZARR_DURABILITY_EACH, 1 + (uint32_t)i % 2);

        set_errors(missing[i / 2], 0, 0);
        assert_status(put_text(s, "v", "1"), ZARR_OK);
        assert_int_equal(n_syncs[CALL_FSYNC], 2); /* the value and its directory */
        assert_int_equal(n_warnings, 0);
        set_errors(missing[i / 2], EIO, 0);
        assert_status(put_text(s, "v", "2"), ZARR_ERR_IO);
        set_errors(EIO, 0, 0);
        assert_status(put_text(s, "v", "2"), ZARR_ERR_IO);
        assert_int_equal(n_syncs[CALL_FSYNC], 0);
        assert_string_equal(get_text(s, "v"), "1");
        zarr_store_free(s);
    }
}

static void without_fsync(void **state)
{
    struct world *w = fixture_world(state);

    for (size_t i = 0; i < ZR_COUNT(missing); i++) {
        zarr_store *s = open_warned(w, ZARR_DURABILITY_EACH, 0);

        set_errors(EINVAL, missing[i], 0);
        assert_status(put_text(s, "v", "1"), ZARR_OK);
        assert_status(put_text(s, "v", "2"), ZARR_OK);
        assert_string_equal(get_text(s, "v"), "2");
        assert_int_equal(n_warnings, 1);
        zarr_store_free(s);
    }
}

/* After the first flush each value is synced by itself, before and after the rename. */
static void without_syncfs(void **state)
{
    struct world *w = fixture_world(state);
    zarr_error err = {0};

    for (size_t i = 0; i < ZR_COUNT(missing); i++) {
        zarr_store *s = open_warned(w, ZARR_DURABILITY_COMMIT, 0);

        set_errors(0, 0, missing[i]);
        assert_status(put_text(s, "v", "1"), ZARR_OK);
        assert_int_equal(n_syncs[CALL_FDATASYNC], 0);
        assert_status(zarr_store_flush(s, NULL, &err), ZARR_OK);
        assert_int_equal(n_syncs[CALL_SYNC], 1);
        assert_int_equal(n_syncs[CALL_FDATASYNC], 1); /* the root */
        assert_status(put_text(s, "v", "2"), ZARR_OK);
        assert_int_equal(n_syncs[CALL_FDATASYNC], 2);
        assert_int_equal(n_syncs[CALL_FSYNC], 1);
        assert_int_equal(n_warnings, 0);
        set_errors(EINVAL, ENOSYS, missing[i]);
        assert_status(zarr_store_flush(s, NULL, &err), ZARR_OK);
        assert_status(put_text(s, "v", "3"), ZARR_OK);
        assert_status(zarr_store_flush(s, NULL, &err), ZARR_OK);
        assert_int_equal(n_warnings, 1);
        set_errors(0, 0, EIO);
        assert_status(put_text(s, "v", "4"), ZARR_OK);
        assert_status(zarr_store_flush(s, NULL, &err), ZARR_ERR_IO);
        zarr_store_free(s);
    }
}

/* An append is synced as a PUT is, but no name changes. */
static void appends(void **state)
{
    static const struct {
        uint32_t durability;
        uint32_t kind;
        int n_before, n_flushes;
    } rows[] = {{ZARR_DURABILITY_NONE, ZARR_STORE_OP_CHUNK, 0, 0},
                {ZARR_DURABILITY_COMMIT, ZARR_STORE_OP_CHUNK, 0, 1},
                {ZARR_DURABILITY_COMMIT, ZARR_STORE_OP_DOCUMENT, 1, 1},
                {ZARR_DURABILITY_ORDERED, ZARR_STORE_OP_CHUNK, 1, 1},
                {ZARR_DURABILITY_EACH, ZARR_STORE_OP_CHUNK, 1, 0}};
    struct world *w = fixture_world(state);
    zarr_error err = {0};

    write_file(w, "v", "old");
    for (size_t i = 0; i < ZR_COUNT(rows); i++) {
        zarr_store *s = open_warned(w, rows[i].durability, 0);
        zarr_store_op op = {.verb = ZARR_STORE_APPEND,
                            .flags = rows[i].kind,
                            .key = "v",
                            .offset = 3,
                            .mem = zr_mem_of_host("er", 2)};

        set_errors(0, 0, 0);
        assert_status(zr_store_run_one(s, &op, &err), ZARR_OK);
        assert_int_equal(n_syncs[CALL_FDATASYNC], rows[i].n_before);
        assert_int_equal(n_syncs[CALL_FSYNC], 0);
        assert_status(zarr_store_flush(s, NULL, &err), ZARR_OK);
        assert_int_equal(n_syncs[CALL_SYNCFS], rows[i].n_flushes);
        set_errors(EIO, 0, EIO);
        assert_status(zr_store_run_one(s, &op, &err),
                      rows[i].n_before ? ZARR_ERR_IO : ZARR_OK);
        assert_status(zarr_store_flush(s, NULL, &err),
                      rows[i].n_flushes ? ZARR_ERR_IO : ZARR_OK);
        zarr_store_free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {T(without_fdatasync), T(without_fsync),
                                       T(without_syncfs), T(appends)};

    return cmocka_run_group_tests_name("local_sync", tests, NULL, NULL);
}
