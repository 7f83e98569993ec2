/*
 * test_copy.c - COPY of one key to another: of the same store and of others, with
 * conditions on both, by the store itself and emulated.
 */
#include "store_test.h"
#include "unit/conditional_caps.h"
#include "unit/over_store.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    LONG_BYTES = (3 << 20) + 5 /* more than the local store copies at once by itself */
};

/* What copy_file_range() does for the local store. The function replaces that of the C
 * library. */
static struct {
    int calls, fails_at, os_code; /* the call with this number, from 1 on; 0: none */
    size_t most;                  /* bytes of a call; 0: no limit */
    ssize_t got;                  /* what the kernel's call returned last */
} kernel;

/* The names of its parameters are reserved.
 * NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name) */
ssize_t copy_file_range(int in, off64_t *in_at, int out, off64_t *out_at, size_t n,
                        unsigned flags)
{
    if (++kernel.calls == kernel.fails_at) {
        errno = kernel.os_code;
        return kernel.os_code ? -1 : 0;
    }
    if (kernel.most && n > kernel.most)
        n = kernel.most;
    kernel.got = syscall(SYS_copy_file_range, in, in_at, out, out_at, n, flags);
    return kernel.got;
}

static zarr_status copy_op(zarr_store *to, const char *key, zarr_store *from,
                           const char *source, const zarr_store_version *expected,
                           const zarr_store_version *source_version)
{
    zarr_store_source src = {.store = from, .key = source};
    zarr_store_op op = {.verb = ZARR_STORE_COPY,
                        .flags = expected ? ZARR_STORE_OP_IF_VERSION : 0u,
                        .key = key,
                        .source = &src};
    zarr_error err = {0};
    zarr_status st;

    if (expected)
        op.version = *expected;
    if (source_version)
        src.version = *source_version;
    st = zr_store_run_one(to, &op, &err);
    assert_int_equal(op.status, st);
    if (st != ZARR_OK)
        assert_int_equal(err.code, st);
    return st;
}

static zarr_status copy_key(zarr_store *s, const char *from, const char *to)
{
    return copy_op(s, to, NULL, from, NULL, NULL);
}

static bool stat_version(zarr_store *s, const char *key, zarr_store_version *out)
{
    zarr_store_value v = ZARR_STORE_VALUE_INIT;

    assert_status(zarr_store_stat(s, key, &v, NULL, NULL), ZARR_OK);
    *out = v.version;
    return v.has_version;
}

static void check_conditions(zarr_store *s)
{
    const zarr_store_version none = {{0}};
    zarr_store_version first, other;
    const bool has_versions = stat_version(s, "a/c/0", &first);

    (void)!zarr_store_erase(s, "a/c/2", NULL, NULL); /* of another store of this folder */
    assert_status(copy_op(s, "a/c/1", s, "a/c/0", &none, NULL), ZARR_ERR_CONFLICT);
    assert_status(copy_op(s, "a/c/2", s, "a/c/0", &none, NULL), ZARR_OK);
    assert_string_equal(get_text(s, "a/c/2"), "value");
    if (!has_versions)
        return;
    assert_status(put_text(s, "a/c/0", "newer"), ZARR_OK);
    assert_status(copy_op(s, "a/c/1", s, "a/c/0", NULL, &first), ZARR_ERR_CONFLICT);
    assert_string_equal(get_text(s, "a/c/1"), "value");
    (void)stat_version(s, "a/c/0", &first);
    assert_status(copy_op(s, "a/c/1", s, "a/c/0", NULL, &first), ZARR_OK);
    assert_string_equal(get_text(s, "a/c/1"), "newer");
    if (!zr_store_can(s, ZARR_STORE_CAP_PUT_IF_VERSION))
        return;
    (void)stat_version(s, "a/c/1", &other);
    assert_status(copy_op(s, "a/c/2", s, "a/c/1", &other, NULL), ZARR_ERR_CONFLICT);
    (void)stat_version(s, "a/c/2", &other);
    assert_status(copy_op(s, "a/c/2", s, "a/c/1", &other, NULL), ZARR_OK);
    assert_string_equal(get_text(s, "a/c/2"), "newer");
}

static void copy_in_each_store(void **state)
{
    struct world *w = *state;

    for (int sort = 0; sort < N_SORTS; sort++) {
        zarr_store *s = open_sort(w, (enum sort)sort);

        assert_status(put_text(s, "a/c/0", "value"), ZARR_OK);
        assert_status(copy_key(s, "a/c/0", "a/c/1"), ZARR_OK);
        assert_status(copy_key(s, "a/c/1", "a/zarr.json"), ZARR_OK);
        assert_status(copy_key(s, "a/zarr.json", "a/zarr.json"), ZARR_OK);
        assert_string_equal(get_text(s, "a/zarr.json"), "value");
        assert_status(copy_key(s, "a/c/9", "a/c/1"), ZARR_ERR_NOT_FOUND);
        assert_string_equal(get_text(s, "a/c/1"), "value");
        assert_status(copy_key(s, "a/../b", "a/c/1"), ZARR_ERR_INVALID);
        assert_status(copy_key(s, NULL, "a/c/1"), ZARR_ERR_INVALID);
        if (zr_store_can(s, ZARR_STORE_CAP_PUT_NEW))
            check_conditions(s);
        assert_status(put_text(s, "a/c/0", "another"), ZARR_OK); /* shares nothing */
        assert_string_equal(get_text(s, "a/zarr.json"), "value");
        zarr_store_free(s);
    }
}

static void copy_between_stores(void **state)
{
    struct world *w = *state;

    for (int i = 0; i < N_SORTS * N_SORTS; i++) {
        zarr_store *from = open_sort(w, (enum sort)(i / N_SORTS));
        zarr_store *to = open_sort(w, (enum sort)(i % N_SORTS));
        zarr_store_version version;

        assert_status(put_text(to, "c/0", "other"), ZARR_OK);
        assert_status(put_text(from, "c/0", "value"), ZARR_OK);
        assert_status(copy_op(to, "a/c/1", from, "c/0", NULL, NULL), ZARR_OK);
        assert_string_equal(get_text(to, "a/c/1"), "value");
        if (stat_version(from, "c/0", &version)) {
            assert_status(copy_op(to, "a/c/1", from, "c/0", NULL, &version), ZARR_OK);
            version.bytes[3] ^= 1;
            assert_status(copy_op(to, "a/c/1", from, "c/0", NULL, &version),
                          ZARR_ERR_CONFLICT);
        }
        zarr_store_free(from);
        zarr_store_free(to);
    }
}

static void copy_under_a_lock(void **state)
{
    struct world *w = *state;

    for (int sort = 0; sort < N_SORTS; sort++) {
        zarr_store *s = open_sort(w, (enum sort)sort);
        zarr_store_source src = {.key = "c/0"};
        zarr_store_op op = {.verb = ZARR_STORE_COPY,
                            .flags = ZARR_STORE_OP_LOCKED,
                            .key = "c/1",
                            .source = &src};
        zarr_error err = {0};

        assert_status(put_text(s, "c/0", "value"), ZARR_OK);
        assert_status(zr_store_lock(s, "c/1", NULL, &op.lock, &err), ZARR_OK);
        assert_status(zr_store_run_one(s, &op, &err), ZARR_OK);
        zr_store_unlock(s, op.lock);
        assert_string_equal(get_text(s, "c/1"), "value");
        zarr_store_free(s);
    }
}

static char *make_long_text(void)
{
    char *text = malloc(LONG_BYTES);

    assert_non_null(text);
    for (int i = 0; i < LONG_BYTES; i++)
        text[i] = (char)(i * 7 + i / 251);
    return text;
}

static void check_long_text(zarr_store *s, const char *key, const char *text)
{
    char *got = malloc(LONG_BYTES);
    zarr_store_op op = get_op(key, 0, ZARR_STORE_TO_END, got, LONG_BYTES);

    assert_status(zr_store_run_one(s, &op, NULL), ZARR_OK);
    assert_int_equal(op.object_bytes, LONG_BYTES);
    assert_memory_equal(got, text, LONG_BYTES);
    free(got);
}

static void copy_long_values(void **state)
{
    struct world *w = *state;
    char *text = make_long_text();

    for (int sort = SORT_LOCAL; sort <= SORT_MEMORY; sort++) {
        zarr_store *s = open_sort(w, (enum sort)sort);

        assert_status(zarr_store_put(s, "c/0", text, LONG_BYTES, NULL, NULL), ZARR_OK);
        assert_status(put_text(s, "c/1", "old"), ZARR_OK);
        assert_status(copy_key(s, "c/0", "c/1"), ZARR_OK);
        check_long_text(s, "c/1", text);
        zarr_store_free(s);
    }
    free(text);
}

/* As an append to an archive with zip_update=copy. */
static zarr_status copy_in_parts(zarr_store *s, const char *from, const char *to)
{
    zarr_store_source src = {.key = from};
    zarr_store_op op = {.verb = ZARR_STORE_COPY,
                        .flags = ZARR_STORE_OP_IN_PARTS,
                        .key = to,
                        .part = 1,
                        .source = &src};
    zarr_status st;

    assert_status(zr_store_begin_parts(s, to, NULL, NULL, &op.parts, NULL), ZARR_OK);
    assert_status(zr_store_run_one(s, &op, NULL), ZARR_OK);
    assert_int_equal(op.done_bytes, LONG_BYTES);
    op = (zarr_store_op){.verb = ZARR_STORE_PUT,
                         .flags = ZARR_STORE_OP_CHUNK | ZARR_STORE_OP_IN_PARTS,
                         .key = to,
                         .length = LONG_BYTES,
                         .parts = op.parts};
    st = zr_store_run_one(s, &op, NULL);
    zr_store_end_parts(s, to, op.parts);
    return st;
}

/* Where the kernel does not copy between two files, or not all of it, the store does. */
static void copy_without_the_kernel(void **state)
{
    static const struct {
        int fails_at, os_code; /* of copy_file_range() */
        size_t most;
        int calls;
    } rows[] = {
        {0, 0, 0, 1},       {1, EXDEV, 0, 1},       {1, EOPNOTSUPP, 0, 1},
        {1, ENOSYS, 0, 1},  {1, EINVAL, 0, 1},      {1, EPERM, 0, 1},
        {1, EINTR, 0, 2},   {1, 0, 0, 1}, /* 0 bytes, as of files that have no length */
        {0, 0, 1 << 20, 4}, {3, EXDEV, 1 << 20, 3}, {2, 0, 4097, 2}};
    struct world *w = *state;
    zarr_store *s = open_sort(w, SORT_LOCAL);
    char *text = make_long_text();

    assert_status(zarr_store_put(s, "c/0", text, LONG_BYTES, NULL, NULL), ZARR_OK);
    assert_status(copy_key(s, "c/0", "c/1"), ZARR_OK);
    if (kernel.got != LONG_BYTES) {
        print_message("skipped: copy_file_range() does not copy all in %s\n", w->dir);
        free(text);
        zarr_store_free(s);
        skip();
        return;
    }
    for (size_t i = 0; i < 2 * ZR_COUNT(rows); i++) {
        kernel.fails_at = rows[i / 2].fails_at;
        kernel.os_code = rows[i / 2].os_code;
        kernel.most = rows[i / 2].most;
        kernel.calls = 0;
        assert_status(put_text(s, "c/1", "old"), ZARR_OK);
        assert_status((i % 2 ? copy_in_parts : copy_key)(s, "c/0", "c/1"), ZARR_OK);
        check_long_text(s, "c/1", text);
        if (kernel.calls != rows[i / 2].calls)
            fail_msg("row %zu: %d calls", i, kernel.calls);
    }
    memset(&kernel, 0, sizeof kernel);
    free(text);
    zarr_store_free(s);
}

/* Whether a file of this folder can share the blocks of another one. */
static bool can_share(const char *one, const char *other)
{
    const int from = open(one, O_RDONLY | O_CLOEXEC);
    const int to = open(other, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    const bool can = ioctl(to, FICLONE, from) == 0;

    assert_true(from >= 0 && to >= 0);
    if (!can)
        print_message("skipped: FICLONE fails in this folder: %s\n", strerror(errno));
    assert_int_equal(close(from) + close(to) + unlink(other), 0);
    return can;
}

static bool is_shared(const char *path)
{
    struct fiemap *map = calloc(1, sizeof *map + 64 * sizeof map->fm_extents[0]);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool all = true;

    assert_true(map && fd >= 0);
    map->fm_length = LONG_BYTES;
    map->fm_flags = FIEMAP_FLAG_SYNC;
    map->fm_extent_count = 64;
    assert_int_equal(ioctl(fd, FS_IOC_FIEMAP, map), 0);
    assert_true(map->fm_mapped_extents > 0);
    for (uint32_t i = 0; i < map->fm_mapped_extents; i++)
        all = all && (map->fm_extents[i].fe_flags & FIEMAP_EXTENT_SHARED);
    assert_int_equal(close(fd), 0);
    free(map);
    return all;
}

/* Where the file system can, a copy takes no room of its own. */
static void copies_share_blocks(void **state)
{
    struct world *w = *state;
    zarr_store *s = open_sort(w, SORT_LOCAL);
    char *text = make_long_text(), from[128], to[128];
    bool can;

    assert_status(zarr_store_put(s, "c/0", text, LONG_BYTES, NULL, NULL), ZARR_OK);
    free(text);
    path_in(w, from, sizeof from, "c/0");
    path_in(w, to, sizeof to, "c/1");
    can = can_share(from, to);
    for (int i = 0; can && i < 2; i++) {
        assert_status((i ? copy_in_parts : copy_key)(s, "c/0", "c/1"), ZARR_OK);
        assert_true(is_shared(to));
    }
    zarr_store_free(s);
    if (!can)
        skip();
}

/* A store that can copy gets one operation; another one, or one that refuses, gets the
 * bytes. A lost answer is an error, and the copy is there. */
static void count_operations(void **state)
{
    static const struct {
        uint32_t caps;
        bool refuses;
        int copies, gets;
    } rows[] = {{ZARR_STORE_CAP_COPY, false, 1, 0},
                {ZARR_STORE_CAP_COPY, true, 1, 1},
                {0, false, 0, 1}};
    struct world *w = *state;

    for (size_t i = 0; i < 2 * ZR_COUNT(rows); i++) {
        const zarr_store_vtable *vt = i % 2 ? &over_submits : &over_runs;
        struct over o = {.caps =
                             rows[i / 2].caps | CAPS_CONDITIONAL | ZARR_STORE_CAP_WRITE,
                         .no_copy = rows[i / 2].refuses,
                         .below = open_sort(w, SORT_MEMORY)};
        zarr_store *s = NULL;
        zarr_error err = {0};

        assert_status(zr_store_open_custom(&s, &w->env, vt, &o, NULL, &err), ZARR_OK);
        assert_status(put_text(s, "c/0", "value"), ZARR_OK);
        atomic_store(&o.n_ops[ZARR_STORE_GET], 0);
        assert_status(copy_key(s, "c/0", "c/1"), ZARR_OK);
        assert_int_equal(o.n_ops[ZARR_STORE_COPY], rows[i / 2].copies);
        assert_int_equal(o.n_ops[ZARR_STORE_GET], rows[i / 2].gets);
        assert_string_equal(get_text(s, "c/1"), "value");
        o.lost_answers[rows[i / 2].gets ? ZARR_STORE_PUT : ZARR_STORE_COPY] = 1;
        assert_status(copy_key(s, "c/0", "c/2"), ZARR_ERR_IO);
        assert_string_equal(get_text(s, "c/2"), "value");
        assert_status(copy_key(s, "c/0", "c/2"), ZARR_OK);
        zarr_store_free(s);
    }
}

/* A store without versions would copy whatever the source is. */
static void versions_of_the_source(void **state)
{
    const zarr_store_version some = {{1, 7}};
    struct world *w = *state;
    struct over o = {.caps = ZARR_STORE_CAP_COPY | ZARR_STORE_CAP_WRITE,
                     .below = open_sort(w, SORT_MEMORY)};
    zarr_store *s = NULL;
    zarr_error err = {0};

    assert_status(zr_store_open_custom(&s, &w->env, &over_runs, &o, NULL, &err), ZARR_OK);
    assert_status(put_text(s, "c/0", "value"), ZARR_OK);
    assert_status(copy_op(s, "c/1", NULL, "c/0", NULL, &some), ZARR_ERR_UNSUPPORTED);
    assert_int_equal(o.n_ops[ZARR_STORE_COPY], 0);
    zarr_store_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(copy_in_each_store, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(copy_between_stores, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(copy_under_a_lock, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(copy_long_values, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(copy_without_the_kernel, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(copies_share_blocks, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(count_operations, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(versions_of_the_source, world_setup,
                                        world_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
