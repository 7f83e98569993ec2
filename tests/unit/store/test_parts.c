/*
 * test_parts.c - values that are written in parts: readers see the old value or the whole
 * new one, whatever ends the writer.
 */
#include "store_test.h"
#include "unit/conditional_caps.h"
#include "unit/over_store.h"

#include <sys/wait.h>
#include <unistd.h>

static zarr_store_op part_op(const char *key, void *parts, uint64_t number, uint64_t at,
                             const char *text)
{
    return (zarr_store_op){.verb = ZARR_STORE_PUT_PART,
                           .key = key,
                           .offset = at,
                           .length = strlen(text),
                           .mem = zr_mem_of_host((void *)(uintptr_t)text, strlen(text)),
                           .parts = parts,
                           .part = number};
}

static zarr_status put_part(zarr_store *s, void *parts, const char *key, uint64_t number,
                            uint64_t at, const char *text)
{
    zarr_store_op op = part_op(key, parts, number, at, text);

    return zr_store_run_one(s, &op, NULL);
}

/* expected: NULL for no condition; receives the version, if the store has them. */
static zarr_status commit(zarr_store *s, void *lock, void *parts, const char *key,
                          uint64_t bytes, zarr_store_version *expected)
{
    zarr_store_op op = {.verb = ZARR_STORE_PUT,
                        .flags = ZARR_STORE_OP_CHUNK | ZARR_STORE_OP_IN_PARTS |
                                 (lock ? ZARR_STORE_OP_LOCKED : 0u) |
                                 (expected ? ZARR_STORE_OP_IF_VERSION : 0u),
                        .key = key,
                        .lock = lock,
                        .length = bytes,
                        .parts = parts};
    zarr_status st;

    if (expected)
        op.version = *expected;
    st = zr_store_run_one(s, &op, NULL);
    if (st == ZARR_OK)
        assert_int_equal(op.done_bytes, bytes);
    if (st == ZARR_OK && expected)
        *expected = op.version;
    return st;
}

static void *lock_key(zarr_store *s, const char *key)
{
    zarr_error err = {0};
    void *lock = NULL;

    assert_status(zr_store_lock(s, key, NULL, &lock, &err), ZARR_OK);
    return lock;
}

static void *begin(zarr_store *s, const char *key, void *lock)
{
    zarr_error err = {0};
    void *parts = NULL;

    if (zr_store_begin_parts(s, key, lock, NULL, &parts, &err) != ZARR_OK)
        fail_msg("%s", err.message);
    return parts;
}

static zarr_store_op get_parts_op(const char *key, void *parts, uint64_t at, void *to,
                                  uint64_t n)
{
    zarr_store_op op = get_op(key, at, n, to, n);

    op.flags = ZARR_STORE_OP_IN_PARTS;
    op.parts = parts;
    return op;
}

static void check_parts(zarr_store *s, const char *key, void *parts, uint64_t at,
                        const char *text)
{
    char to[16];
    zarr_store_op op = get_parts_op(key, parts, at, to, strlen(text));
    zarr_error err = {0};

    if (zr_store_run_one(s, &op, &err) != ZARR_OK)
        fail_msg("%s", err.message);
    assert_int_equal(op.done_bytes, strlen(text));
    assert_memory_equal(to, text, strlen(text));
}

static zarr_status copy_part(zarr_store *s, void *parts, const char *key, uint64_t number,
                             uint64_t at, zarr_store_source *from)
{
    zarr_store_op op = {.verb = ZARR_STORE_COPY,
                        .flags = ZARR_STORE_OP_IN_PARTS,
                        .key = key,
                        .offset = at,
                        .parts = parts,
                        .part = number,
                        .source = from};
    const zarr_status st = zr_store_run_one(s, &op, NULL);

    if (st == ZARR_OK)
        assert_int_equal(op.done_bytes, 6);
    return st;
}

/* A new value of the bytes of an old one and of more, read before its commit. */
static void draft(zarr_store *s, const char *key, const char *source, bool locked)
{
    void *lock = locked ? lock_key(s, key) : NULL, *parts = begin(s, key, lock);
    zarr_store_source from = {.key = source};
    char to[16];
    zarr_store_op op = get_parts_op("a/c/9", parts, 0, to, 1);

    assert_status(put_text(s, source, "abcdef"), ZARR_OK);
    assert_status(copy_part(s, parts, key, 2, 3, &from), ZARR_OK);
    assert_status(put_part(s, parts, key, 1, 0, "xyz"), ZARR_OK);
    check_parts(s, key, parts, 0, "xyzabcdef");
    check_parts(s, key, parts, 2, "za");
    check_parts(s, key, parts, 8, "f");
    check_parts(s, key, parts, 4, "");
    assert_status(zr_store_run_one(s, &op, NULL), ZARR_ERR_INVALID); /* another key */
    op = get_parts_op(key, parts, 8, to, 2);
    assert_status(zr_store_run_one(s, &op, NULL), ZARR_ERR_INVALID);
    op = get_parts_op(key, parts, ZARR_STORE_SUFFIX, to, 2);
    assert_status(zr_store_run_one(s, &op, NULL), ZARR_ERR_INVALID);
    op = get_parts_op(key, parts, 0, to, 2);
    op.flags |= ZARR_STORE_OP_IF_VERSION;
    assert_status(zr_store_run_one(s, &op, NULL), ZARR_ERR_INVALID);
    op = get_parts_op(key, NULL, 0, to, 2);
    assert_status(zr_store_run_one(s, &op, NULL), ZARR_ERR_INVALID);
    assert_status(copy_part(s, parts, key, 0, 9, &from), ZARR_ERR_INVALID);
    assert_status(copy_part(s, parts, "a/c/9", 3, 9, &from), ZARR_ERR_INVALID);
    assert_status(copy_part(s, parts, key, 3, UINT64_MAX - 2, &from), ZARR_ERR_INVALID);
    from.key = "a/c/none";
    assert_status(copy_part(s, parts, key, 3, 9, &from), ZARR_ERR_NOT_FOUND);
    from.key = source;
    from.version.bytes[0] = 1;
    if (zr_store_can_key(s, source, ZARR_STORE_CAP_VERSIONS))
        assert_status(copy_part(s, parts, key, 3, 9, &from), ZARR_ERR_CONFLICT);
    assert_null(get_text(s, key));
    assert_status(commit(s, lock, parts, key, 9, NULL), ZARR_OK);
    zr_store_end_parts(s, key, parts);
    zr_store_unlock(s, lock);
    assert_string_equal(get_text(s, key), "xyzabcdef");
    assert_string_equal(get_text(s, source), "abcdef");
    assert_status(zarr_store_erase(s, key, NULL, NULL), ZARR_OK);
}

static void write_in_parts(zarr_store *s, const char *key, bool locked)
{
    void *lock = NULL, *parts = NULL;

    assert_status(put_text(s, key, "old"), ZARR_OK);
    lock = locked ? lock_key(s, key) : NULL;
    parts = begin(s, key, lock);
    assert_status(put_part(s, parts, key, 2, 3, "dxx"), ZARR_OK);
    assert_status(put_part(s, parts, key, 1, 0, "abc"), ZARR_OK);
    assert_status(put_part(s, parts, key, 2, 3, "def"), ZARR_OK); /* a second time */
    assert_string_equal(get_text(s, key), "old");
    assert_status(put_part(s, parts, "a/c/1", 1, 0, "abc"), ZARR_ERR_INVALID);
    assert_status(put_part(s, parts, key, 0, 0, "abc"), ZARR_ERR_INVALID);
    assert_status(commit(s, lock, parts, key, 6, NULL), ZARR_OK);
    assert_string_equal(get_text(s, key), "abcdef");
    zr_store_end_parts(s, key, parts);
    zr_store_unlock(s, lock);
    assert_string_equal(get_text(s, key), "abcdef");
}

static int count_debris(void *user, const zarr_store_item *item)
{
    ZR_UNUSED(item);
    ++*(int *)user;
    return 0;
}

static void discard_parts(zarr_store *s, const char *key, bool locked)
{
    void *lock = locked ? lock_key(s, key) : NULL;
    void *parts = begin(s, key, lock);
    int n = 0;

    assert_status(put_part(s, parts, key, 1, 0, "half"), ZARR_OK);
    zr_store_end_parts(s, key, parts);
    zr_store_unlock(s, lock);
    assert_null(get_text(s, key));
    assert_status(zarr_store_list(s, "", ZARR_LIST_DEBRIS, count_debris, &n, NULL, NULL),
                  ZARR_OK);
    assert_int_equal(n, 0);
}

/* The second of two commits with conditions loses, and may try another condition. */
static void conditions(zarr_store *s, const char *key)
{
    const bool versions = zr_store_can_key(s, key, ZARR_STORE_CAP_PUT_IF_VERSION);
    zarr_store_version version = {{0}}, first, none = {{0}};
    void *parts = begin(s, key, NULL);

    assert_status(put_part(s, parts, key, 1, 0, "one"), ZARR_OK);
    assert_status(commit(s, NULL, parts, key, 3, &version), ZARR_OK);
    first = version;
    version = none; /* as the first time: its answer was lost */
    assert_status(commit(s, NULL, parts, key, 3, &version), ZARR_OK);
    assert_memory_equal(&version, &first, sizeof first);
    zr_store_end_parts(s, key, parts);
    parts = begin(s, key, NULL);
    assert_status(put_part(s, parts, key, 1, 0, "two"), ZARR_OK);
    version = none;
    assert_status(commit(s, NULL, parts, key, 3, &version), ZARR_ERR_CONFLICT);
    assert_string_equal(get_text(s, key), "one");
    if (versions)
        assert_status(commit(s, NULL, parts, key, 3, &first), ZARR_OK);
    zr_store_end_parts(s, key, parts);
    assert_string_equal(get_text(s, key), versions ? "two" : "one");
    assert_status(zarr_store_erase(s, key, NULL, NULL), ZARR_OK);
}

static void each_store(void **state)
{
    struct world *w = *state;

    for (int sort = 0; sort < N_SORTS; sort++) {
        zarr_store *s = open_sort(w, (enum sort)sort);
        zarr_error err = {0};
        void *parts = NULL;
        zarr_store_source from = {.key = "c/1"};
        char to[1];
        zarr_store_op op = get_parts_op("c/0", s, 0, to, 1);

        if (!zr_store_can(s, ZARR_STORE_CAP_PARTS)) {
            assert_status(zr_store_begin_parts(s, "c/0", NULL, NULL, &parts, &err),
                          ZARR_ERR_UNSUPPORTED);
            assert_status(put_part(s, s, "c/0", 1, 0, "x"), ZARR_ERR_UNSUPPORTED);
            assert_status(commit(s, NULL, s, "c/0", 1, NULL), ZARR_ERR_UNSUPPORTED);
            assert_status(copy_part(s, s, "c/0", 1, 0, &from), ZARR_ERR_UNSUPPORTED);
            assert_status(zr_store_run_one(s, &op, NULL), ZARR_ERR_UNSUPPORTED);
            zarr_store_free(s);
            continue;
        }
        write_in_parts(s, "a/c/0", true);
        write_in_parts(s, "a/c/0", false);
        write_in_parts(s, "a/zarr.json", false);
        discard_parts(s, "a/c/2", true);
        discard_parts(s, "a/c/2", false);
        conditions(s, "a/c/3");
        assert_true(zr_store_can(s, ZARR_STORE_CAP_READ_PARTS));
        draft(s, "a/c/4", "a/c/5", true);
        draft(s, "a/c/4", "a/c/5", false);
        draft(s, "b/zarr.json", "a/c/5", false);
        zarr_store_free(s);
    }
}

/* Without one of its parts, first or last, there is no value. */
static void gaps(void **state)
{
    struct world *w = *state;
    char to[3];

    for (int sort = 0; sort < N_SORTS; sort++) {
        zarr_store *s = open_sort(w, (enum sort)sort);
        void *parts = NULL;
        zarr_store_op op;

        if (!zr_store_can(s, ZARR_STORE_CAP_PARTS)) {
            zarr_store_free(s);
            continue;
        }
        parts = begin(s, "c/0", NULL);
        assert_status(put_part(s, parts, "c/0", 3, 6, "ghi"), ZARR_OK);
        assert_status(put_part(s, parts, "c/0", 1, 0, "abc"), ZARR_OK);
        assert_status(commit(s, NULL, parts, "c/0", 9, NULL), ZARR_ERR_INVALID);
        op = get_parts_op("c/0", parts, 3, to, 3);
        assert_status(zr_store_run_one(s, &op, NULL), ZARR_ERR_INVALID);
        assert_status(put_part(s, parts, "c/0", 2, 3, "de"), ZARR_OK);
        assert_status(commit(s, NULL, parts, "c/0", 9, NULL), ZARR_ERR_INVALID);
        assert_status(put_part(s, parts, "c/0", 2, 3, "def"), ZARR_OK);
        assert_status(commit(s, NULL, parts, "c/0", 10, NULL), ZARR_ERR_INVALID);
        assert_status(commit(s, NULL, parts, "c/0", 8, NULL), ZARR_ERR_INVALID);
        assert_null(get_text(s, "c/0"));
        assert_status(commit(s, NULL, parts, "c/0", 9, NULL), ZARR_OK);
        assert_string_equal(get_text(s, "c/0"), "abcdefghi");
        zr_store_end_parts(s, "c/0", parts);
        assert_status(zarr_store_erase(s, "c/0", NULL, NULL), ZARR_OK);
        parts = begin(s, "c/1", NULL); /* no part at all */
        assert_status(commit(s, NULL, parts, "c/1", 1, NULL), ZARR_ERR_INVALID);
        assert_status(commit(s, NULL, parts, "c/1", 0, NULL), ZARR_ERR_INVALID);
        assert_status(put_part(s, parts, "c/1", 2, 0, "a"), ZARR_OK);
        assert_status(commit(s, NULL, parts, "c/1", 1, NULL), ZARR_ERR_INVALID);
        assert_status(put_part(s, parts, "c/1", 3, INT64_MAX, "a"), ZARR_ERR_INVALID);
        zr_store_end_parts(s, "c/1", parts);
        parts = begin(s, "c/2", NULL); /* a part was longer before, over the next one */
        assert_status(put_part(s, parts, "c/2", 1, 0, "abc"), ZARR_OK);
        assert_status(put_part(s, parts, "c/2", 2, 3, "def"), ZARR_OK);
        assert_status(put_part(s, parts, "c/2", 1, 0, "xxxxx"), ZARR_OK);
        assert_status(put_part(s, parts, "c/2", 1, 0, "abc"), ZARR_OK);
        assert_status(commit(s, NULL, parts, "c/2", 6, NULL), ZARR_ERR_INVALID);
        zr_store_end_parts(s, "c/2", parts);
        zarr_store_free(s);
    }
}

/* A folder has the name of the key, so the rename fails until it is gone. */
static void commit_again(void **state)
{
    static const enum sort sorts[] = {SORT_LOCAL, SORT_LOCAL_NO_LOCKS};
    struct world *w = *state;
    char path[256], folder[256];

    path_in(w, path, sizeof path, "c/0/f");
    path_in(w, folder, sizeof folder, "c/0");
    for (size_t i = 0; i < ZR_COUNT(sorts); i++) {
        zarr_store *s = open_sort(w, sorts[i]);
        void *parts = begin(s, "c/0", NULL);
        zarr_store_version version = {{0}};
        int n = 0;

        assert_status(put_part(s, parts, "c/0", 1, 0, "abc"), ZARR_OK);
        assert_status(put_text(s, "c/0/f", "in the way"), ZARR_OK);
        assert_int_not_equal(commit(s, NULL, parts, "c/0", 3, NULL), ZARR_OK);
        assert_status(put_part(s, parts, "c/0", 1, 0, "xyz"), ZARR_OK);
        assert_int_not_equal(commit(s, NULL, parts, "c/0", 3, &version), ZARR_OK);
        assert_int_equal(unlink(path) + rmdir(folder), 0);
        version = (zarr_store_version){{0}};
        assert_status(commit(s, NULL, parts, "c/0", 3, &version), ZARR_OK);
        assert_string_equal(get_text(s, "c/0"), "xyz");
        zr_store_end_parts(s, "c/0", parts);
        assert_status(zarr_store_erase(s, "c/0", NULL, NULL), ZARR_OK);
        assert_status(put_text(s, "c/0/f", "in the way"), ZARR_OK);
        parts = begin(s, "c/0", NULL); /* or gives up */
        assert_int_not_equal(commit(s, NULL, parts, "c/0", 0, NULL), ZARR_OK);
        zr_store_end_parts(s, "c/0", parts);
        assert_status(
            zarr_store_list(s, "", ZARR_LIST_DEBRIS, count_debris, &n, NULL, NULL),
            ZARR_OK);
        assert_int_equal(n, 0);
        assert_int_equal(unlink(path) + rmdir(folder), 0);
        zarr_store_free(s);
    }
}

/* What a killed writer left is longer than the next value. */
static void after_a_kill(void **state)
{
    struct world *w = *state;
    zarr_store *s = open_local(w, NULL);
    void *lock = NULL, *parts = NULL;
    int status = 0;
    pid_t child;

    assert_status(put_text(s, "c/0", "old"), ZARR_OK);
    child = fork();
    if (child == 0) {
        if (zr_store_lock(s, "c/0", NULL, &lock, NULL) != ZARR_OK ||
            zr_store_begin_parts(s, "c/0", lock, NULL, &parts, NULL) != ZARR_OK ||
            put_part(s, parts, "c/0", 1, 0, "much longer than what follows") != ZARR_OK)
            _exit(1);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_string_equal(get_text(s, "c/0"), "old");
    lock = lock_key(s, "c/0");
    parts = begin(s, "c/0", lock);
    assert_status(put_part(s, parts, "c/0", 1, 0, "new"), ZARR_OK);
    assert_status(commit(s, lock, parts, "c/0", 3, NULL), ZARR_OK);
    zr_store_end_parts(s, "c/0", parts);
    zr_store_unlock(s, lock);
    assert_string_equal(get_text(s, "c/0"), "new");
    zarr_store_free(s);
}

/* Another process removed the lock file, by no right: nothing replaces the value. */
static void lock_file_removed(void **state)
{
    struct world *w = *state;
    zarr_store *s = open_local(w, NULL);
    char path[256];
    void *lock = NULL, *parts = NULL;

    assert_status(put_text(s, "c/0", "old"), ZARR_OK);
    lock = lock_key(s, "c/0");
    parts = begin(s, "c/0", lock);
    assert_status(put_part(s, parts, "c/0", 1, 0, "new"), ZARR_OK);
    path_in(w, path, sizeof path, "c/0.__lock");
    assert_int_equal(unlink(path), 0);
    assert_status(commit(s, lock, parts, "c/0", 3, NULL), ZARR_ERR_CONFLICT);
    assert_status(commit(s, lock, parts, "c/0", 3, NULL), ZARR_ERR_INVALID); /* used up */
    assert_status(put_part(s, parts, "c/0", 2, 3, "er"), ZARR_ERR_INVALID);
    zr_store_end_parts(s, "c/0", parts);
    zr_store_unlock(s, lock);
    assert_string_equal(get_text(s, "c/0"), "old");
    zarr_store_free(s);
}

/* The lock file became the value: nothing else may be written to it. */
static void spent_locks(void **state)
{
    struct world *w = *state;
    zarr_store *s = open_local(w, NULL);
    void *lock = lock_key(s, "c/0"), *other = lock_key(s, "c/1");
    void *parts = begin(s, "c/0", lock);

    assert_status(put_part(s, parts, "c/0", 1, 0, "abc"), ZARR_OK);
    assert_status(commit(s, other, parts, "c/0", 3, NULL), ZARR_ERR_INVALID);
    assert_status(commit(s, lock, parts, "c/0", 3, NULL), ZARR_OK);
    assert_status(put_part(s, parts, "c/0", 1, 0, "xyz"), ZARR_ERR_INVALID);
    assert_string_equal(get_text(s, "c/0"), "abc");
    zr_store_end_parts(s, "c/0", parts);
    zr_store_unlock(s, lock);
    zr_store_unlock(s, other);
    zarr_store_free(s);
}

/* ---- a store of an application ---- */

static zarr_store *open_over(struct world *w, struct over *o, const zarr_store_vtable *vt,
                             uint32_t caps)
{
    zarr_error err = {0};
    zarr_store *s = NULL;

    *o = (struct over){.caps = CAPS_CONDITIONAL | ZARR_STORE_CAP_WRITE |
                               ZARR_STORE_CAP_LIST | ZARR_STORE_CAP_PARTS | caps,
                       .below = open_sort(w, SORT_MEMORY)};
    if (zr_store_open_custom(&s, &w->env, vt, o, NULL, &err) != ZARR_OK)
        fail_msg("%s", err.message);
    return s;
}

/* All parts at once, which the store does from the last to the first. */
static void submitted_parts(void **state)
{
    static const char *const text[] = {"ab", "cd", "ef", "g"};
    struct world *w = *state;
    struct over o;
    zarr_store *s = open_over(w, &o, &over_submits, 0);
    void *parts = begin(s, "c/0", NULL);
    zarr_store_op ops[ZR_COUNT(text)];
    zarr_error err = {0};

    for (size_t i = 0; i < ZR_COUNT(text); i++)
        ops[i] = part_op("c/0", parts, i + 1, 2 * i, text[i]);
    assert_status(zr_store_run(s, ops, ZR_COUNT(text), &err), ZARR_OK);
    assert_int_equal(o.most_at_once, ZR_COUNT(text));
    assert_status(commit(s, NULL, parts, "c/0", 7, NULL), ZARR_OK);
    assert_string_equal(get_text(s, "c/0"), "abcdefg");
    zr_store_end_parts(s, "c/0", parts);
    assert_int_equal(o.n_open_uploads, 0);
    zarr_store_free(s);
}

/* Stores that copy nothing, copy values but no parts, cannot copy this value, and can. */
static void emulated_parts(void **state)
{
    static const uint32_t caps[] = {0, ZARR_STORE_CAP_COPY, ZARR_STORE_CAP_COPY_PARTS,
                                    ZARR_STORE_CAP_COPY_PARTS};
    struct world *w = *state;
    struct over o;
    zarr_store *s = open_over(w, &o, &over_runs, 0);
    char to[1];
    zarr_store_op op = get_parts_op("c/0", s, 0, to, 1);

    assert_status(zr_store_run_one(s, &op, NULL), ZARR_ERR_UNSUPPORTED);
    zarr_store_free(s);
    for (size_t i = 0; i < 2 * ZR_COUNT(caps); i++) {
        s = open_over(w, &o, i % 2 ? &over_submits : &over_runs,
                      caps[i / 2] | ZARR_STORE_CAP_READ_PARTS);
        o.no_copy = i / 2 == 2;
        draft(s, "a/c/4", "a/c/5", true);
        draft(s, "a/c/4", "a/c/5", false);
        assert_int_equal(o.n_ops[ZARR_STORE_COPY] > 0, i / 2 > 1);
        assert_int_equal(o.n_open_uploads, 0);
        zarr_store_free(s);
    }
}

/* The writer does not know whether it was done, and asks again. */
static void lost_answers(void **state)
{
    struct world *w = *state;
    struct over o;
    zarr_store *s = open_over(w, &o, &over_runs, 0);
    void *parts = begin(s, "c/0", NULL);
    zarr_store_version version = {{0}};

    o.lost_answers[ZARR_STORE_PUT_PART] = 1;
    assert_status(put_part(s, parts, "c/0", 1, 0, "abc"), ZARR_ERR_IO);
    assert_status(put_part(s, parts, "c/0", 1, 0, "abc"), ZARR_OK);
    o.lost_answers[ZARR_STORE_PUT] = 1;
    assert_status(commit(s, NULL, parts, "c/0", 3, &version), ZARR_ERR_IO);
    assert_string_equal(get_text(s, "c/0"), "abc");
    assert_status(commit(s, NULL, parts, "c/0", 3, &version), ZARR_OK);
    assert_false(zr_store_version_is_none(&version));
    assert_string_equal(get_text(s, "c/0"), "abc");
    zr_store_end_parts(s, "c/0", parts);
    zarr_store_free(s);
}

/* A store over another one may report the capabilities of that. */
static void older_table(void **state)
{
    struct world *w = *state;
    zarr_store_vtable vt = over_runs;
    struct over o = {.caps = ZARR_STORE_CAP_PARTS, .below = open_sort(w, SORT_MEMORY)};
    zarr_error err = {0};
    zarr_store *s = NULL;

    vt.struct_size = offsetof(zarr_store_vtable, begin_parts);
    assert_status(zr_store_open_custom(&s, &w->env, &vt, &o, NULL, &err), ZARR_OK);
    assert_false(zr_store_can(s, ZARR_STORE_CAP_PARTS));
    zarr_store_free(s);
}

static void part_sizes(void **state)
{
    static const struct {
        uint64_t min_bytes, most, total, least;
    } rows[] = {
        {0, 0, 1000, 1}, {0, 10, 1000, 100}, {0, 10, 1001, 101}, {101, 10, 1000, 101}};
    struct world *w = *state;

    for (size_t i = 0; i < ZR_COUNT(rows); i++) {
        struct over o = {.caps = ZARR_STORE_CAP_WRITE | ZARR_STORE_CAP_PARTS,
                         .below = open_sort(w, SORT_MEMORY),
                         .part_min_bytes = rows[i].min_bytes,
                         .parts_max = rows[i].most};
        zarr_store *s = NULL;
        zarr_error err = {0};

        assert_status(zr_store_open_custom(&s, &w->env, &over_runs, &o, NULL, &err),
                      ZARR_OK);
        assert_int_equal(zr_store_part_min_bytes(s, "c/0", rows[i].total), rows[i].least);
        zarr_store_free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_store, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(gaps, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(commit_again, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(after_a_kill, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(lock_file_removed, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(spent_locks, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(submitted_parts, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(emulated_parts, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(lost_answers, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(older_table, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(part_sizes, world_setup, world_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
