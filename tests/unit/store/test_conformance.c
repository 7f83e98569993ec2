/*
 * unit/store/test_conformance.c - the behaviour that every store must have, tested on
 * all kinds: local, memory, an application's store with an event loop, and a minimal
 * one, for which the library emulates the rest.
 */
#include "store_test.h"

#include <ctype.h>

static enum sort sort; /* set for each test by main */

struct fixture {
    struct world w;
    zarr_store *s;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    world_init(&f->w);
    f->s = open_sort(&f->w, sort);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    zarr_store_free(f->s);
    world_free(&f->w);
    free(f);
    return 0;
}

static zarr_store *fixture_store(void **state)
{
    return ((struct fixture *)*state)->s;
}

/* ---- values ---- */

static void values_come_back(void **state)
{
    uint64_t none = 0;
    zarr_store *s = fixture_store(state);
    zarr_error err = {0};

    assert_null(get_text(s, "a/b"));
    assert_status(put_text(s, "a/b", "hello"), ZARR_OK);
    assert_string_equal(get_text(s, "a/b"), "hello");
    assert_status(put_text(s, "a/b", "a longer value than before"), ZARR_OK);
    assert_string_equal(get_text(s, "a/b"), "a longer value than before");
    assert_status(put_text(s, "a/b", "x"), ZARR_OK); /* no old bytes behind it */
    assert_string_equal(get_text(s, "a/b"), "x");
    assert_status(put_text(s, "a/b", ""), ZARR_OK);
    assert_string_equal(get_text(s, "a/b"), "");
    assert_status(zarr_store_put(s, "null", NULL, 0, NULL, &err), ZARR_OK);
    assert_string_equal(get_text(s, "null"), "");
    assert_status(put_text(s, "top", "1"), ZARR_OK);
    assert_status(zarr_store_erase(s, "a/b", NULL, &err), ZARR_OK);
    assert_status(zarr_store_erase(s, "a/b", NULL, &err), ZARR_ERR_NOT_FOUND);
    assert_status(zarr_store_erase(s, "never/was", NULL, &err), ZARR_ERR_NOT_FOUND);
    assert_non_null(strstr(err.message, "never/was"));
    assert_null(get_text(s, "a/b"));
    assert_null(get_text(s, "a/b/c"));
    assert_string_equal(get_text(s, "top"), "1");
    /* A file exists where a directory is needed. */
    if (strcmp(zr_store_name(s), "local") == 0)
        assert_int_equal(zarr_store_get(s, "top/below", 0, NULL, &none, NULL, NULL),
                         ZARR_ERR_IO);
    else
        assert_null(get_text(s, "top/below"));
    assert_status(zarr_store_flush(s, NULL, &err), ZARR_OK);
}

static void large_values(void **state)
{
    const uint64_t n = (3 << 20) + 7;
    unsigned char *a = malloc(n), *b = calloc(1, n);
    uint64_t bytes = n;
    zarr_store *s = fixture_store(state);
    zarr_error err;

    for (uint64_t i = 0; i < n; i++)
        a[i] = (unsigned char)(i * 2654435761u >> 13);
    assert_status(zarr_store_put(s, "big", a, n, NULL, &err), ZARR_OK);
    assert_status(zarr_store_get(s, "big", 0, b, &bytes, NULL, &err), ZARR_OK);
    assert_true(bytes == n && memcmp(a, b, n) == 0);
    bytes = 1000;
    assert_status(zarr_store_get(s, "big", n - 500, b, &bytes, NULL, &err), ZARR_OK);
    assert_true(bytes == 500 && memcmp(a + n - 500, b, 500) == 0);
    free(a);
    free(b);
}

static const struct {
    uint64_t offset, length, mem;
    const char *want;
    uint64_t object; /* expected object_bytes; UINT64_MAX: UINT64_MAX or 10 */
} ranges[] = {
    {0, ZARR_STORE_TO_END, 32, "0123456789", 10},
    {0, ZARR_STORE_TO_END, 10, "0123456789", UINT64_MAX},
    {0, ZARR_STORE_TO_END, 4, "0123", 10},
    {0, ZARR_STORE_TO_END, 0, "", 10},
    {3, ZARR_STORE_TO_END, 32, "3456789", 10},
    {3, ZARR_STORE_TO_END, 4, "3456", 10},
    {0, 4, 4, "0123", UINT64_MAX},
    {0, 4, 32, "0123", UINT64_MAX},
    {4, 4, 4, "4567", UINT64_MAX},
    {4, 4, 2, "45", 10},
    {8, 4, 4, "89", 10},
    {9, 1, 1, "9", UINT64_MAX},
    {10, 4, 4, "", 10},
    {11, 4, 4, "", 10},
    {UINT64_MAX - 1, 4, 4, "", 10},
    {UINT64_MAX - 1, ZARR_STORE_TO_END, 4, "", 10},
    {5, 0, 4, "", UINT64_MAX},
    {ZARR_STORE_SUFFIX, 3, 3, "789", UINT64_MAX},
    {ZARR_STORE_SUFFIX, 3, 32, "789", UINT64_MAX},
    {ZARR_STORE_SUFFIX, 4, 2, "67", 10},
    {ZARR_STORE_SUFFIX, 10, 32, "0123456789", UINT64_MAX},
    {ZARR_STORE_SUFFIX, 11, 32, "0123456789", 10},
    {ZARR_STORE_SUFFIX, ZARR_STORE_TO_END, 32, "0123456789", 10},
    {ZARR_STORE_SUFFIX, 0, 32, "", UINT64_MAX},
};

static void ranges_and_suffixes(void **state)
{
    zarr_store *s = fixture_store(state);
    zarr_error err = {0};
    char to[40];

    assert_status(put_text(s, "d/v", "0123456789"), ZARR_OK);
    for (size_t i = 0; i < ZR_COUNT(ranges); i++) {
        zarr_store_op op =
            get_op("d/v", ranges[i].offset, ranges[i].length, to, ranges[i].mem);

        memset(to, '#', sizeof to);
        if (zr_store_run_one(s, &op, &err) != ZARR_OK)
            fail_msg("range %zu: %s", i, err.message);
        if (op.done_bytes != strlen(ranges[i].want) ||
            memcmp(to, ranges[i].want, op.done_bytes) != 0)
            fail_msg("range %zu: %.*s", i, (int)op.done_bytes, to);
        for (size_t k = op.done_bytes; k < sizeof to; k++)
            assert_int_equal(to[k], '#');
        if (op.object_bytes != 10 &&
            (ranges[i].object != UINT64_MAX || op.object_bytes != UINT64_MAX) &&
            zr_store_can(s, ZARR_STORE_CAP_FAST_GET))
            fail_msg("range %zu: object_bytes %" PRIu64, i, op.object_bytes);
        op = get_op("d/none", ranges[i].offset, ranges[i].length, to, ranges[i].mem);
        assert_status(zr_store_run_one(s, &op, &err), ZARR_ERR_NOT_FOUND);
        assert_int_equal(op.status, ZARR_ERR_NOT_FOUND);
    }
}

static void empty_values(void **state)
{
    zarr_store *s = fixture_store(state);
    zarr_error err = {0};
    char to[4];

    assert_status(put_text(s, "e", ""), ZARR_OK);
    for (size_t i = 0; i < ZR_COUNT(ranges); i++) {
        zarr_store_op op = get_op("e", ranges[i].offset, ranges[i].length, to, 4);

        assert_status(zr_store_run_one(s, &op, &err), ZARR_OK);
        assert_int_equal(op.done_bytes, 0);
    }
}

static void stat_tells_sizes(void **state)
{
    zarr_store *s = fixture_store(state);
    zarr_store_op op = {.verb = ZARR_STORE_STAT, .key = "a/v"};
    zarr_error err = {0};

    assert_status(zr_store_run_one(s, &op, &err), ZARR_ERR_NOT_FOUND);
    assert_status(put_text(s, "a/v", "12345"), ZARR_OK);
    assert_status(zr_store_run_one(s, &op, &err), ZARR_OK);
    assert_int_equal(op.object_bytes, 5);
    assert_status(put_text(s, "a/v", ""), ZARR_OK);
    assert_status(zr_store_run_one(s, &op, &err), ZARR_OK);
    assert_int_equal(op.object_bytes, 0);
}

/* ---- keys ---- */

static void hostile_keys_are_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "/",
        "/a",
        "a/",
        "a//b",
        ".",
        "..",
        "../x",
        "a/..",
        "a/./b",
        "a/../b",
        "./a",
        "..//",
        "a/..",
        "\xff",
        "a/\xc3",
        "\xed\xa0\x80",
        "a/\xc0\xaf",
        "//",
        "a/../../etc/passwd",
    };
    zarr_store *s = fixture_store(state);
    zarr_error err = {0};
    char to[4];
    void *lock = NULL;

    for (size_t i = 0; i < ZR_COUNT(bad); i++) {
        zarr_store_op op = get_op(bad[i], 0, 4, to, 4);

        assert_status(zr_store_run_one(s, &op, &err), ZARR_ERR_INVALID);
        assert_status(op.status, ZARR_ERR_INVALID);
        assert_status(put_text(s, bad[i], "x"), ZARR_ERR_INVALID);
        assert_status(zarr_store_erase(s, bad[i], NULL, &err), ZARR_ERR_INVALID);
        assert_status(zr_store_lock(s, bad[i], NULL, &lock, &err), ZARR_ERR_INVALID);
        if (bad[i][0] != '\0')
            assert_status(zr_store_erase_prefix(s, bad[i], NULL, &err), ZARR_ERR_INVALID);
    }
}

static void odd_keys_work(void **state)
{
    static const char *const good[] = {
        "...",
        "a..b",
        "..a",
        "a b",
        "a\\b",
        "%2e%2e",
        "\xc3\xa9t\xc3\xa9/\xe6\xb5\xb7",
        "~",
        "*",
        "a:b",
        "con",
        ".hidden/.zarray",
        "-rf",
        "'\"",
        "a\nb",
        "c/0/1.2",
        "__lock",
        "x.__lockx",
        ".zarrc",
        "x.partial",
        "x.0123456789abcdef.partial",
    };
    zarr_store *s = fixture_store(state);
    char deep[2048], wide[230];

    for (size_t i = 0; i < ZR_COUNT(good); i++) {
        assert_status(put_text(s, good[i], good[i]), ZARR_OK);
        assert_string_equal(get_text(s, good[i]), good[i]);
    }
    for (size_t i = 0; i < sizeof deep - 1; i++)
        deep[i] = i % 2 == 0 ? 'd' : '/';
    deep[sizeof deep - 1] = '\0';
    assert_status(put_text(s, deep, "deep"), ZARR_OK);
    assert_string_equal(get_text(s, deep), "deep");
    memset(wide, 'w', sizeof wide);
    wide[sizeof wide - 1] = '\0';
    assert_status(put_text(s, wide, "wide"), ZARR_OK);
    assert_string_equal(get_text(s, wide), "wide");
}

static void huge_keys_end_in_a_status(void **state)
{
    zarr_store *s = fixture_store(state);
    size_t n = ZR_KEY_MAX_BYTES + 1;
    char *key = calloc(1, n + 1);
    zarr_status st;

    memset(key, 'k', n);
    assert_status(put_text(s, key, "x"), ZARR_ERR_INVALID);
    key[n - 1] = '\0';
    st = put_text(s, key, "x");
    assert_true(st == ZARR_OK || st == ZARR_ERR_INVALID);
    for (size_t i = 1; i < n - 2; i += 2)
        key[i] = '/';
    st = put_text(s, key, "x");
    assert_true(st == ZARR_OK || st == ZARR_ERR_INVALID || st == ZARR_ERR_IO);
    free(key);
}

/* ---- listing ---- */

struct seen {
    char text[2048];
    int n, stop_after;
};

static int see(void *user, const zarr_store_item *item)
{
    struct seen *x = user;

    snprintf(x->text + strlen(x->text), sizeof x->text - strlen(x->text), "%s%s ",
             item->key, item->is_prefix ? "/" : "");
    return ++x->n == x->stop_after;
}

static int word_compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The rows are sorted first: their order is up to the store. */
static const char *listing(zarr_store *s, const char *prefix, uint32_t how)
{
    static char sorted[2048];
    struct seen x = {.stop_after = -1};
    char *word[64], *save = NULL;
    int n = 0;
    zarr_error err = {0};

    if (zarr_store_list(s, prefix, how, see, &x, NULL, &err) != ZARR_OK)
        fail_msg("%s", err.message);
    for (char *t = strtok_r(x.text, " ", &save); t; t = strtok_r(NULL, " ", &save))
        word[n++] = t;
    qsort(word, (size_t)n, sizeof *word, word_compare);
    sorted[0] = '\0';
    for (int i = 0; i < n; i++)
        snprintf(sorted + strlen(sorted), sizeof sorted - strlen(sorted), "%s%s",
                 i > 0 ? " " : "", word[i]);
    return sorted;
}

static void listings(void **state)
{
    static const char *const keys[] = {"zarr.json", "a/zarr.json",  "a/c/0/0",
                                       "a/c/0/1",   "ab/zarr.json", "a-b"};
    zarr_store *s = fixture_store(state);
    struct seen x = {.stop_after = 2};
    zarr_error err = {0};

    for (size_t i = 0; i < ZR_COUNT(keys); i++)
        assert_status(put_text(s, keys[i], "x"), ZARR_OK);
    if (!zr_store_can(s, ZARR_STORE_CAP_LIST)) {
        assert_status(zarr_store_list(s, "", 0, see, &x, NULL, &err),
                      ZARR_ERR_UNSUPPORTED);
        assert_status(zarr_store_erase_prefix(s, "a", NULL, &err), ZARR_ERR_UNSUPPORTED);
        return;
    }
    assert_string_equal(listing(s, "", ZARR_LIST_RECURSIVE),
                        "a-b a/c/0/0 a/c/0/1 a/zarr.json ab/zarr.json zarr.json");
    assert_string_equal(listing(s, "a", ZARR_LIST_RECURSIVE),
                        "a/c/0/0 a/c/0/1 a/zarr.json");
    assert_string_equal(listing(s, "a", ZARR_LIST_DIRECTORY), "a/c/ a/zarr.json");
    assert_string_equal(listing(s, "", ZARR_LIST_DIRECTORY), "a-b a/ ab/ zarr.json");
    assert_string_equal(listing(s, "a/c/0", ZARR_LIST_DIRECTORY), "a/c/0/0 a/c/0/1");
    assert_string_equal(listing(s, "none", ZARR_LIST_RECURSIVE), "");
    assert_string_equal(listing(s, "zarr.json", ZARR_LIST_RECURSIVE), "");
    assert_string_equal(listing(s, "", ZARR_LIST_DEBRIS), "");
    assert_status(zarr_store_list(s, "", 0, see, &x, NULL, &err), ZARR_OK);
    assert_int_equal(x.n, 2);
    assert_status(zarr_store_list(s, "../x", 0, see, &x, NULL, &err), ZARR_ERR_INVALID);
    assert_status(zarr_store_list(s, "", 9, see, &x, NULL, &err), ZARR_ERR_INVALID);
    assert_status(zarr_store_erase_prefix(s, "a", NULL, &err), ZARR_OK);
    assert_string_equal(listing(s, "", ZARR_LIST_RECURSIVE),
                        "a-b ab/zarr.json zarr.json");
    assert_string_equal(listing(s, "", ZARR_LIST_DIRECTORY), "a-b ab/ zarr.json");
    assert_status(zarr_store_erase_prefix(s, "a", NULL, &err), ZARR_OK);
    assert_status(zarr_store_erase_prefix(s, "", NULL, &err), ZARR_OK);
    assert_string_equal(listing(s, "", ZARR_LIST_DIRECTORY), "");
    assert_status(put_text(s, "a/again", "x"), ZARR_OK);
    assert_string_equal(get_text(s, "a/again"), "x");
}

static void listing_limit(void **state)
{
    struct fixture *f = *state;
    struct seen x = {.stop_after = -1};
    zarr_error err = {0};
    zarr_store *s;

    if (!zr_store_can(f->s, ZARR_STORE_CAP_LIST))
        return;
    f->w.env.limits.listing_keys = 5;
    s = open_sort(&f->w, sort);
    for (int i = 0; i < 5; i++) {
        char key[8];

        snprintf(key, sizeof key, "k%c", (char)(48 + i));
        assert_status(put_text(s, key, ""), ZARR_OK);
    }
    assert_status(zarr_store_list(s, "", 0, see, &x, NULL, &err), ZARR_OK);
    assert_status(put_text(s, "k5", ""), ZARR_OK);
    assert_status(zarr_store_list(s, "", 0, see, &x, NULL, &err), ZARR_ERR_LIMIT);
    assert_non_null(strstr(err.message, "listing_keys"));
    zarr_store_free(s);
}

/* ---- versions, locks, pins ---- */

static zarr_status put_if(zarr_store *s, const char *key, const char *text,
                          zarr_store_version *version)
{
    zarr_store_op op = {
        .verb = ZARR_STORE_PUT, .flags = ZARR_STORE_OP_IF_VERSION, .key = key};
    zarr_status st;

    op.mem = zr_mem_of_host((void *)(uintptr_t)text, strlen(text));
    op.version = *version;
    st = zr_store_run_one(s, &op, NULL);
    if (st == ZARR_OK)
        *version = op.version;
    return st;
}

static zarr_status erase_if(zarr_store *s, const char *key,
                            const zarr_store_version *version)
{
    zarr_store_op op = {.verb = ZARR_STORE_ERASE,
                        .flags = ZARR_STORE_OP_IF_VERSION,
                        .key = key,
                        .version = *version};

    return zr_store_run_one(s, &op, NULL);
}

static void conditions(void **state)
{
    zarr_store *s = fixture_store(state);
    zarr_store_version none = {{0}}, v = {{0}}, old;
    zarr_store_op op = {.verb = ZARR_STORE_STAT, .key = "v"};
    zarr_error err = {0};

    if (!zr_store_can(s, ZARR_STORE_CAP_PUT_IF_VERSION)) {
        assert_status(put_if(s, "v", "1", &v), zr_store_can(s, ZARR_STORE_CAP_PUT_NEW)
                                                   ? ZARR_OK
                                                   : ZARR_ERR_UNSUPPORTED);
        v.bytes[0] = 1;
        assert_status(put_if(s, "v", "1", &v), ZARR_ERR_UNSUPPORTED);
        return;
    }
    assert_status(put_if(s, "v", "1", &v), ZARR_OK); /* does not exist yet */
    assert_status(put_if(s, "v", "2", &none), ZARR_ERR_CONFLICT);
    old = v;
    assert_status(put_if(s, "v", "2", &v), ZARR_OK);
    assert_status(put_if(s, "v", "3", &old), ZARR_ERR_CONFLICT);
    assert_string_equal(get_text(s, "v"), "2");
    assert_status(zr_store_run_one(s, &op, &err), ZARR_OK);
    assert_true(zr_store_version_equal(&op.version, &v));
    for (int i = 0; i < 300; i++) { /* all differ, however fast the writes are */
        old = v;
        assert_status(put_if(s, "v", i % 2 ? "a" : "b", &v), ZARR_OK);
        assert_false(zr_store_version_equal(&old, &v));
        assert_status(put_if(s, "v", "x", &old), ZARR_ERR_CONFLICT);
    }
    assert_status(erase_if(s, "v", &old), ZARR_ERR_CONFLICT);
    assert_status(erase_if(s, "v", &none), ZARR_ERR_CONFLICT);
    assert_status(erase_if(s, "v", &v), ZARR_OK);
    assert_status(erase_if(s, "v", &v), ZARR_ERR_NOT_FOUND);
    assert_status(erase_if(s, "v", &none), ZARR_ERR_NOT_FOUND);
    assert_status(erase_if(s, "no/folder", &v), ZARR_ERR_NOT_FOUND);
    assert_status(put_if(s, "v", "3", &v), ZARR_ERR_CONFLICT);
    assert_status(put_if(s, "v", "3", &none), ZARR_OK);
}

static void locks(void **state)
{
    zarr_store *s = fixture_store(state);
    zarr_store_op op = {
        .verb = ZARR_STORE_PUT, .flags = ZARR_STORE_OP_LOCKED, .key = "k/v"};
    void *lock = NULL, *other = NULL;
    zarr_error err = {0};

    op.mem = zr_mem_of_host("one", 3);
    assert_status(zr_store_run_one(s, &op, &err), ZARR_ERR_INVALID); /* no lock */
    assert_status(zr_store_lock(s, "k/v", NULL, &lock, &err), ZARR_OK);
    assert_status(zr_store_lock(s, "k/w", NULL, &other, &err), ZARR_OK);
    assert_null(get_text(s, "k/v"));
    op.lock = other;
    assert_status(zr_store_run_one(s, &op, &err), ZARR_ERR_INVALID);
    op.lock = lock;
    assert_status(zr_store_run_one(s, &op, &err), ZARR_OK);
    assert_string_equal(get_text(s, "k/v"), "one");
    zr_store_unlock(s, lock);
    zr_store_unlock(s, other);
    zr_store_unlock(s, NULL);
    assert_null(get_text(s, "k/w"));
    assert_status(zr_store_lock(s, "k/v", NULL, &lock, &err), ZARR_OK);
    op = (zarr_store_op){.verb = ZARR_STORE_ERASE,
                         .flags = ZARR_STORE_OP_LOCKED,
                         .key = "k/v",
                         .lock = lock};
    assert_status(zr_store_run_one(s, &op, &err), ZARR_OK);
    assert_status(zr_store_run_one(s, &op, &err), ZARR_ERR_NOT_FOUND);
    zr_store_unlock(s, lock);
    assert_null(get_text(s, "k/v"));
    if (zr_store_can(s, ZARR_STORE_CAP_LIST))
        assert_string_equal(listing(s, "", ZARR_LIST_DEBRIS), "");
}

static void pins(void **state)
{
    zarr_store *s = fixture_store(state);
    struct zr_store_pin pin;
    zarr_error err = {0};
    char to[8];
    zarr_store_op op = get_op("p", 0, ZARR_STORE_TO_END, to, sizeof to), first;
    zarr_status st = zr_store_pin_init(&pin, s, "p", &err);

    assert_true(st == ZARR_ERR_NOT_FOUND || st == ZARR_OK);
    zr_store_pin_deinit(&pin);
    assert_status(put_text(s, "p", "first"), ZARR_OK);
    assert_status(zr_store_pin_init(&pin, s, "p", &err), ZARR_OK);
    op.flags = ZR_STORE_OP_PINNED;
    op.lock = &pin;
    first = op;
    assert_status(zr_store_run_one(s, &op, &err), ZARR_OK);
    assert_true(op.done_bytes == 5 && memcmp(to, "first", 5) == 0);
    assert_status(put_text(s, "p", "second"), ZARR_OK);
    op = first;
    op.offset = ZARR_STORE_SUFFIX;
    op.length = 2;
    st = zr_store_run_one(s, &op, &err);
    if (zr_store_can(s, ZARR_STORE_CAP_FAST_GET)) { /* local, memory */
        assert_status(st, ZARR_OK);
        assert_true(op.done_bytes == 2 && memcmp(to, "st", 2) == 0);
        assert_true(pin.object_bytes == 5);
    } else if (zr_store_can(s, ZARR_STORE_CAP_VERSIONS)) {
        assert_status(st, ZARR_ERR_CONFLICT);
    } else {
        assert_status(st, ZARR_OK); /* cannot know */
    }
    assert_int_equal(op.flags, ZR_STORE_OP_PINNED);
    zr_store_pin_deinit(&pin);
    assert_string_equal(get_text(s, "p"), "second");
}

/* ---- many ---- */

enum {
    MANY = 200
};

struct many {
    atomic_int n_done, n_failed, n_missing;
    zr_mutex mutex;
    zr_cond cond;
};

static void many_done(void *arg, zarr_store_op *op, const zarr_error *err)
{
    struct many *m = arg;

    if (op->status == ZARR_ERR_NOT_FOUND)
        atomic_fetch_add(&m->n_missing, 1);
    else if (op->status != ZARR_OK)
        atomic_fetch_add(&m->n_failed, 1);
    if (op->status != ZARR_OK && (!err || err->code != op->status))
        abort();
    zr_mutex_lock(&m->mutex);
    if (atomic_fetch_add(&m->n_done, 1) + 1 == MANY)
        zr_cond_signal(&m->cond);
    zr_mutex_unlock(&m->mutex);
}

static void many_at_once(void **state)
{
    zarr_store *s = fixture_store(state);
    static zarr_store_op ops[MANY], *ptrs[MANY];
    static char keys[MANY][16], values[MANY][12];
    struct many m = {.n_done = 0};
    zarr_error err = {0};

    for (int i = 0; i < MANY; i++) {
        snprintf(keys[i], sizeof keys[i], "m/%d", i);
        snprintf(values[i], sizeof values[i], "%d", i);
        ops[i] = (zarr_store_op){.verb = ZARR_STORE_PUT, .key = keys[i]};
        ops[i].mem = zr_mem_of_host(values[i], strlen(values[i]));
    }
    assert_status(zr_store_run(s, ops, MANY, &err), ZARR_OK);
    zr_mutex_init(&m.mutex);
    zr_cond_init(&m.cond);
    for (int i = 0; i < MANY; i++) {
        memset(values[i], 0, sizeof values[i]);
        ops[i] = get_op(i % 10 == 3   ? "m/none"
                        : i % 10 == 5 ? "m//bad"
                                      : keys[i],
                        i % 10 == 7 ? ZARR_STORE_SUFFIX : 0,
                        i % 10 == 7 ? 1 : ZARR_STORE_TO_END, values[i], sizeof values[i]);
        ptrs[i] = &ops[i];
    }
    zr_store_submit(s, ptrs, MANY, many_done, &m);
    zr_mutex_lock(&m.mutex);
    while (m.n_done < MANY)
        zr_cond_wait(&m.cond, &m.mutex);
    zr_mutex_unlock(&m.mutex);
    assert_int_equal(m.n_missing, MANY / 10);
    assert_int_equal(m.n_failed, MANY / 10);
    for (int i = 0; i < MANY; i++) {
        if (i % 10 == 7)
            assert_int_equal(values[i][0], '7');
        else if (i % 10 != 3 && i % 10 != 5)
            assert_int_equal(atoi(values[i]), i);
    }
    for (int i = 0; i < MANY; i++)
        ops[i] = get_op(i == 77 || i == 150 ? "m/.."
                        : i % 2             ? "none"
                                            : keys[i],
                        0, ZARR_STORE_TO_END, values[i], sizeof values[i]);
    assert_status(zr_store_run(s, ops, MANY, &err), ZARR_ERR_INVALID);
    assert_int_equal(err.item, 77);
    assert_status(ops[1].status, ZARR_ERR_NOT_FOUND);
    assert_status(ops[2].status, ZARR_OK);
    zr_cond_deinit(&m.cond);
    zr_mutex_deinit(&m.mutex);
}

static void nonsense_is_refused(void **state)
{
    zarr_store *s = fixture_store(state);
    zarr_store_op op = {.verb = 99, .key = "k"};
    zarr_error err = {0};

    assert_status(zr_store_run_one(s, &op, &err), ZARR_ERR_INVALID);
    op = (zarr_store_op){
        .verb = ZARR_STORE_GET, .flags = ZARR_STORE_OP_LOCKED, .key = "k"};
    assert_status(zr_store_run_one(s, &op, &err), ZARR_ERR_INVALID);
    op = (zarr_store_op){.verb = ZARR_STORE_GET, .key = NULL};
    assert_status(zr_store_run_one(s, &op, &err), ZARR_ERR_INVALID);
    op = get_op("k", 0, 4, NULL, 4);
    op.mem.device_type = 31;
    assert_status(put_text(s, "k", "1234"), ZARR_OK);
    assert_true(zr_store_run_one(s, &op, &err) != ZARR_OK);
    assert_status(zr_store_run(s, &op, 0, &err), ZARR_OK);
    assert_int_equal(zarr_store_ref(s) == s, 1);
    zarr_store_free(s);
    zarr_store_free(NULL);
    assert_non_null(zarr_store_url(s));
}

#define T(f)                                                                             \
    {                                                                                    \
#        f, f, setup, teardown, NULL                                                     \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(values_come_back),
        T(large_values),
        T(ranges_and_suffixes),
        T(empty_values),
        T(stat_tells_sizes),
        T(odd_keys_work),
        T(hostile_keys_are_refused),
        T(huge_keys_end_in_a_status),
        T(listings),
        T(listing_limit),
        T(conditions),
        T(locks),
        T(pins),
        T(many_at_once),
        T(nonsense_is_refused),
    };
    int failed = 0;

    for (sort = 0; sort < N_SORTS; sort++) {
        int fds = count_open_fds();

        failed += cmocka_run_group_tests_name(sort_name(sort), tests, NULL, NULL);
        if (count_open_fds() != fds)
            failed++;
    }
    return failed;
}
