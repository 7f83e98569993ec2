/*
 * unit/store/test_overlap.c - whether two places are the same, or one inside the other:
 * compared as text inside one store, with the file system for folders, and by functions,
 * self and URL for applications' stores.
 */
#include "store_test.h"
#include "store/local/local_int.h"

#include <sys/stat.h>
#include <unistd.h>

static void check(zarr_store *s, const char *a, zarr_store *t, const char *b, bool want)
{
    zarr_error err;
    int yes = -1;

    for (int turned = 0; turned < 2; turned++) {
        const zarr_status st = turned ? zarr_store_overlap(t, b, s, a, &yes, &err)
                                      : zarr_store_overlap(s, a, t, b, &yes, &err);

        if (st != ZARR_OK)
            fail_msg("%s", err.message);
        if (yes != want)
            fail_msg("%s in %s and %s in %s: %d", a, zarr_store_url(s), b,
                     zarr_store_url(t), yes);
    }
}

static void by_text(void **state)
{
    struct world *w = *state;
    int yes = 0;

    for (enum sort sort = 0; sort < N_SORTS; sort++) {
        zarr_store *s = open_sort(w, sort), *t = open_sort(w, SORT_MEMORY);

        check(s, "a", s, "a", true);
        check(s, "a/b", s, "a", true);
        check(s, "", s, "a/b", true);
        check(s, "", s, "", true);
        check(s, "ab", s, "a", false);
        check(s, "a/b", s, "a/c", false);
        check(s, "a", t, "a", false);
        assert_status(zarr_store_overlap(s, "../a", s, "a", &yes, NULL),
                      ZARR_ERR_INVALID);
        assert_status(zarr_store_overlap(s, NULL, s, "a", &yes, NULL), ZARR_ERR_INVALID);
        zarr_store_free(s);
        zarr_store_free(t);
    }
}

static zarr_store *open_at(struct world *w, const char *name)
{
    zarr_store *s = NULL;
    zarr_error err;
    char path[128];

    path_in(w, path, sizeof path, name);
    if (zr_store_open(&s, w->registry, &w->env, path, NULL, &err) != ZARR_OK)
        fail_msg("%s", err.message);
    return s;
}

static void make_link(struct world *w, const char *to, const char *name)
{
    char path[128];

    path_in(w, path, sizeof path, name);
    assert_int_equal(symlink(to, path), 0);
}

static void of_folders(void **state)
{
    struct world *w = *state;
    zarr_store *top = open_local(w, NULL), *s, *link, *inner;
    const int n_open = count_open_fds();

    if (!((const struct zr_local *)top->self)->has_openat2) {
        zarr_store_free(top);
        print_message("skipped: no openat2() here, without which links are refused\n");
        skip();
    }
    assert_status(put_text(top, "g/a/zarr.json", "x"), ZARR_OK);
    assert_status(put_text(top, "g/b/c/zarr.json", "x"), ZARR_OK);
    make_link(w, "g", "h");
    make_link(w, "a", "g/l");
    make_link(w, "nowhere", "g/dangling");
    s = open_at(w, "g");
    link = open_at(w, "h");
    inner = open_at(w, "./g/../g/b/");
    assert_true(zr_store_same(s, link));
    assert_false(zr_store_same(s, inner));

    check(s, "a", link, "a", true);
    check(s, "a", s, "l", true);
    check(s, "l/new", link, "a", true);
    check(s, "l/new", link, "a/new/er", true);
    check(s, "l/new", link, "a/newer", false);
    check(s, "b/c", inner, "", true);
    check(s, "b/c", inner, "c", true);
    check(s, "b/c", inner, "c/new/deep", true);
    check(s, "b/cc", inner, "c", false);
    check(s, "", inner, "c", true);
    check(s, "a", inner, "c", false);
    check(top, "g", inner, "c", true);
    check(top, "g/a", inner, "", false);
    check(top, "new", link, "", false);
    check(s, "a/zarr.json/x", link, "a/zarr.json", true); /* a path through a file */
    check(s, "a/zarr.json/x", link, "a/other/x", false);
    check(s, "dangling/x", s, "a", false);
    check(s, "", s, "dangling", true);
    zarr_store_free(s);
    zarr_store_free(link);
    zarr_store_free(inner);
    assert_int_equal(count_open_fds(), n_open);
    zarr_store_free(top);
}

/* A folder that was deleted while open has no parent. */
static void of_deleted_folders(void **state)
{
    struct world *w = *state;
    zarr_store *top = open_local(w, NULL), *gone = NULL;
    char path[128];

    path_in(w, path, sizeof path, "gone");
    assert_int_equal(mkdir(path, 0777), 0);
    gone = open_at(w, "gone");
    assert_int_equal(rmdir(path), 0);
    check(top, "a", gone, "a", false);
    check(gone, "b", gone, "a", false);
    zarr_store_free(gone);
    zarr_store_free(top);
}

/* ---- applications' stores ---- */

static void null_caps(void *self, zarr_store_caps *out)
{
    (void)self;
    out->flags = 0;
}

static void null_run(void *self, zarr_store_op *op, zarr_error *err)
{
    (void)self;
    (void)err;
    op->status = ZARR_ERR_NOT_FOUND;
}

static void other_run(void *self, zarr_store_op *op, zarr_error *err)
{
    null_run(self, op, err);
}

static zarr_status null_open(void **self, zarr_context *ctx, const char *url,
                             const zarr_store_options *opts, const zarr_cancel *cancel,
                             zarr_error *err)
{
    (void)cancel;
    (void)ctx;
    (void)url;
    (void)opts;
    (void)err;
    *self = malloc(1);
    return *self ? ZARR_OK : ZARR_ERR_NO_MEMORY;
}

static void of_others(void **state)
{
    static char one, two;
    struct world *w = *state;
    zarr_store_vtable vt = {
        .struct_size = sizeof vt, .name = "far", .caps = null_caps, .run = null_run};
    void *const self[] = {&one, &one, &two, NULL, NULL};
    static const char *const url[] = {"far://a", "far://a", "far://b"};
    zarr_store *s[5], *t[3], *u = NULL;

    for (size_t i = 0; i < ZR_COUNT(self); i++)
        assert_status(zr_store_open_custom(&s[i], &w->env, &vt, self[i], NULL, NULL),
                      ZARR_OK);
    check(s[0], "a", s[1], "a/b", true);
    check(s[0], "a", s[2], "a", false);
    check(s[0], "a", s[3], "a", false);
    /* Without a self of their own: by the functions. */
    check(s[3], "a", s[4], "a", true);
    check(s[3], "b", s[4], "a", false);
    vt.run = other_run;
    assert_status(zr_store_open_custom(&u, &w->env, &vt, &one, NULL, NULL), ZARR_OK);
    check(s[0], "a", u, "a", false);

    vt.open = null_open;
    vt.close = free;
    assert_status(zr_store_register(w->registry, &vt, "test", NULL), ZARR_OK);
    for (size_t i = 0; i < ZR_COUNT(url); i++)
        assert_status(zr_store_open(&t[i], w->registry, &w->env, url[i], NULL, NULL),
                      ZARR_OK);
    check(t[0], "a", t[1], "a", true);
    check(t[0], "a", t[2], "a", false);
    assert_false(zr_store_same(t[0], t[1])); /* likely, but not certain */
    for (size_t i = 0; i < ZR_COUNT(url); i++)
        zarr_store_free(t[i]);
    for (size_t i = 0; i < ZR_COUNT(self); i++)
        zarr_store_free(s[i]);
    zarr_store_free(u);
}

/* ---- places ---- */

/* A store that says where it is. */
struct placed {
    const char *scheme, *endpoint, *bucket, *prefix;
    uint64_t requests;
};

static void placed_place(void *self, zarr_store_place_fn fn, void *user)
{
    const struct placed *p = self;
    const zarr_store_place place = {sizeof place, 0,         p->scheme,
                                    p->endpoint,  p->bucket, p->prefix};

    if (p->scheme)
        fn(user, &place);
}

static void placed_count(void *self, zarr_store_counters *out)
{
    const struct placed *p = self;

    out->requests = p->requests;
    out->bytes_received = 1;
}

static zarr_store *open_placed(struct world *w, struct placed *p, zarr_store_vtable *vt)
{
    zarr_store *s = NULL;

    *vt = (zarr_store_vtable){.struct_size = sizeof *vt,
                              .name = "placed",
                              .caps = null_caps,
                              .run = null_run,
                              .place = placed_place,
                              .count = placed_count};
    assert_status(zr_store_open_custom(&s, &w->env, vt, p, NULL, NULL), ZARR_OK);
    return s;
}

static void of_places(void **state)
{
    static struct placed p[] = {
        {"s3", "host", "b", "x", 1},  {"s3", "host", "b", "/x/", 2},
        {"s3", "host", "b", NULL, 4}, {"s3", "host", "b", "x/y", 0},
        {"s3", "other", "b", "x", 0}, {"s3", "host", "c", "x", 0},
        {NULL, NULL, NULL, NULL, 0},  {"s3", "host", "b", "xy", 0},
    };
    struct world *w = *state;
    zarr_store *s[ZR_COUNT(p)], *composite = NULL, *memory = open_sort(w, SORT_MEMORY);
    zarr_store_counters c = ZARR_STORE_COUNTERS_INIT;
    zarr_store_vtable vt;

    for (size_t i = 0; i < ZR_COUNT(p); i++)
        s[i] = open_placed(w, &p[i], &vt);
    assert_true(zr_store_same(s[0], s[1]));
    assert_false(zr_store_same(s[0], s[2]));
    check(s[0], "a", s[1], "a/b", true);
    check(s[0], "a", s[1], "b", false);
    check(s[0], "a", s[2], "x/a/b", true);
    check(s[0], "", s[2], "", true);
    check(s[2], "xy", s[0], "", false);
    check(s[0], "y/a", s[3], "", true);
    check(s[0], "z", s[3], "", false);
    for (size_t i = 4; i < ZR_COUNT(p); i++)
        check(s[0], "", s[i], "", false);
    check(s[6], "", s[6], "", true);

    assert_status(zarr_store_open_composite(&composite, memory, s[0], NULL, NULL),
                  ZARR_OK);
    check(composite, "a", s[2], "x/a", true);
    check(composite, "a", memory, "a", true);
    check(composite, "a", s[4], "a", false);
    zarr_store_read_counters(composite, &c);
    assert_int_equal(c.requests, 1);
    assert_int_equal(c.bytes_received, 1);
    c.struct_size = offsetof(zarr_store_counters, retries);
    c.retries = 7;
    zarr_store_read_counters(s[2], &c);
    assert_int_equal(c.requests, 4);
    assert_int_equal(c.retries, 7);
    c.struct_size = sizeof c;
    zarr_store_read_counters(memory, &c);
    assert_int_equal(c.requests, 0);
    assert_int_equal(c.bytes_received, 0);
    zarr_store_free(composite);
    zarr_store_free(memory);
    for (size_t i = 0; i < ZR_COUNT(p); i++)
        zarr_store_free(s[i]);
}

/* URLs of a store that does not say where it is: credentials do not divide places. */
static void of_urls(void **state)
{
    static const struct {
        const char *one, *a, *two, *b;
        bool overlap;
    } rows[] = {
        {"far://h/x", "a", "far://h/x/", "a", true},
        {"far://h/x", "a", "FAR://h/./x", "a", true},
        {"far://h/x", "a", "far://h/", "x/a/b", true},
        {"far://h/x%20y", "a", "far://h/", "x y/a", true},
        {"far://u:p@h/x?t=1", "a", "far://h/x?t=2", "a", true},
        {"far://h/x", "a", "far://g/x", "a", false},
        {"far://h/x", "a", "far://h:81/x", "a", false},
        {"far://h/x", "a", "far://h/xy", "a", false},
        {"far:x", "a", "far:x", "a", true},
        {"far:x", "a", "far:x/a", "", false},
        {"far:x", "a", "far:y", "a", false},
    };
    struct world *w = *state;
    const zarr_store_vtable vt = {.struct_size = sizeof vt,
                                  .name = "far",
                                  .caps = null_caps,
                                  .run = null_run,
                                  .open = null_open,
                                  .close = free};

    assert_status(zr_store_register(w->registry, &vt, "test", NULL), ZARR_OK);
    for (size_t i = 0; i < ZR_COUNT(rows); i++) {
        zarr_store *s = NULL, *t = NULL;

        assert_status(zr_store_open(&s, w->registry, &w->env, rows[i].one, NULL, NULL),
                      ZARR_OK);
        assert_status(zr_store_open(&t, w->registry, &w->env, rows[i].two, NULL, NULL),
                      ZARR_OK);
        check(s, rows[i].a, t, rows[i].b, rows[i].overlap);
        assert_false(zr_store_same(s, t));
        zarr_store_free(s);
        zarr_store_free(t);
    }
}

static void place_text_is(const zarr_store *s, const char *prefix, const char *want)
{
    struct zr_str text;

    zr_str_init(&text, NULL);
    zr_store_place(&text, s, prefix);
    assert_string_equal(zr_str_text(&text), want);
    zr_str_deinit(&text);
}

static void names_places(void **state)
{
    static struct placed p = {"s3", "host", "b", "x/", 0};
    struct world *w = *state;
    zarr_store_vtable vt;
    zarr_store *s = open_placed(w, &p, &vt);

    place_text_is(s, "a", "s3://host/b/x/a");
    place_text_is(s, "", "s3://host/b/x");
    p = (struct placed){"file", "", "", "/x/y.zip", 0};
    place_text_is(s, "a", "file:///x/y.zip/a");
    p.scheme = NULL;
    place_text_is(s, "a", "placed:/a");
    zarr_store_free(s);
}

#define T(f)                                                                             \
    {                                                                                    \
#        f, f, world_setup, world_teardown, NULL                                         \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(by_text),   T(of_folders), T(of_deleted_folders), T(of_others),
        T(of_places), T(of_urls),    T(names_places),
    };

    return cmocka_run_group_tests_name("overlap", tests, NULL, NULL);
}
