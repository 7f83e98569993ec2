/*
 * unit/store/test_location.c - zarr_location_parse(): which store, node and selection a
 * text names, also with stores of plug-ins and with each allocation failing in turn.
 */
#include "store_test.h"

#include <sys/stat.h>
#include <unistd.h>

static void make_file(const char *path)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    fclose(f);
}

static void plug_caps(void *self, zarr_store_caps *out)
{
    (void)self;
    (void)out;
}

static void plug_run(void *self, zarr_store_op *op, zarr_error *err)
{
    (void)self;
    (void)err;
    op->status = ZARR_ERR_NOT_FOUND;
}

static zarr_status plug_open(void **self, zarr_context *ctx, const char *url,
                             const zarr_store_options *opts, const zarr_cancel *cancel,
                             zarr_error *err)
{
    (void)cancel;
    (void)self;
    (void)ctx;
    (void)url;
    (void)opts;
    (void)err;
    return ZARR_OK;
}

/* Folders: h.zarr with the groups h.zarr and a, the array a/b; a plain folder. */
static char old_folder[4096];

static int setup(void **state)
{
    static const zarr_store_vtable plug = {.struct_size = sizeof plug,
                                           .name = "plug",
                                           .open = plug_open,
                                           .caps = plug_caps,
                                           .run = plug_run};
    zarr_store_vtable zip = plug;
    struct world *w;

    world_setup(state);
    w = *state;
    assert_status(zr_store_register(w->registry, &plug, "test", NULL), ZARR_OK);
    zip.name = "zip"; /* which a context registers */
    assert_status(zr_store_register(w->registry, &zip, "test", NULL), ZARR_OK);
    assert_non_null(getcwd(old_folder, sizeof old_folder));
    assert_int_equal(chdir(w->dir), 0);
    assert_int_equal(mkdir("h.zarr", 0777), 0);
    assert_int_equal(mkdir("h.zarr/a", 0777), 0);
    assert_int_equal(mkdir("h.zarr/a/b", 0777), 0);
    assert_int_equal(mkdir("plain", 0777), 0);
    assert_int_equal(mkdir("plain/x", 0777), 0);
    make_file("h.zarr/zarr.json");
    make_file("h.zarr/a/zarr.json");
    make_file("h.zarr/a/b/.zarray");
    make_file("plain/x/.zgroup");
    make_file("odd[1]");
    make_file("plain/h.zarr.zip");
    make_file("plain/odd");
    assert_int_equal(mkdir("folder.zip", 0777), 0);
    assert_int_equal(mkdir("folder.zip/a", 0777), 0);
    make_file("folder.zip/a/zarr.json");
    return 0;
}

static int teardown(void **state)
{
    assert_int_equal(chdir(old_folder), 0);
    return world_teardown(state);
}

static const struct {
    const char *text, *url, *path, *selection;
    uint32_t is_local;
} rows[] = {
    {"h.zarr", "h.zarr", "", NULL, 1},
    {"h.zarr/", "h.zarr", "", NULL, 1},
    {"h.zarr/a/b", "h.zarr", "a/b", NULL, 1},
    {"./h.zarr//a/b/", "./h.zarr", "a/b", NULL, 1},
    {"file://h.zarr/a", "h.zarr", "a", NULL, 1},
    {"local://h.zarr/a", "h.zarr", "a", NULL, 1},
    {"h.zarr/a/b[0:3, 1]", "h.zarr", "a/b", "0:3, 1", 1},
    {"h.zarr/a/b[[1,2],:]", "h.zarr", "a/b", "[1,2],:", 1},
    {"h.zarr/a/b[]", "h.zarr", "a/b", "", 1},
    {"h.zarr/a/b]", "h.zarr", "a/b]", NULL, 1},
    {"h.zarr/a/new", "h.zarr", "a/new", NULL, 1},
    {"h.zarr/a:/b", "h.zarr/a", "b", NULL, 1},
    {"h.zarr:/a/b[5]", "h.zarr", "a/b", "5", 1},
    {"h.zarr:/", "h.zarr", "", NULL, 1},
    {"h.zarr://a", "h.zarr", "a", NULL, 1},
    {"h.zarr[1:/2]", "h.zarr", "", "1:/2", 1},
    {"plain/x", "plain/x", "", NULL, 1},
    {"plain/new.zarr/g/y", "plain/new.zarr", "g/y", NULL, 1},
    {"plain/new", "plain/new", "", NULL, 1},
    {"odd[1]", "odd[1]", "", NULL, 1},
    {"/", "/", "", NULL, 1},
    {"..", "..", "", NULL, 1},
    {"s3://bucket/x[1]", "s3://bucket/x", "", "1", 0},
    {"memory:", "memory:", "", NULL, 0},
    {"gds:h.zarr", "gds:h.zarr", "", NULL, 0},
    {"gds:/abs/x.zarr:/a/b[1]", "gds:/abs/x.zarr", "a/b", "1", 0},
    {"plug:rest/of/it", "plug:rest/of/it", "", NULL, 0},
    {"plug:/abs:/n/m[2]", "plug:/abs", "n/m", "2", 0},
    {"plug://host/x:/n", "plug://host/x", "n", NULL, 0},
    {"plain/h.zarr.zip", "plain/h.zarr.zip", "", NULL, 0},
    {"plain/h.zarr.zip/", "plain/h.zarr.zip", "", NULL, 0},
    {"plain/h.zarr.zip/a/b[1]", "plain/h.zarr.zip", "a/b", "1", 0},
    {"plain/h.zarr.zip:/a/b[1]", "plain/h.zarr.zip", "a/b", "1", 0},
    {"plain/h.zarr.zip/x.zip", "plain/h.zarr.zip", "x.zip", NULL, 0},
    {"file://plain/h.zarr.zip/a", "plain/h.zarr.zip", "a", NULL, 0},
    {"new.ozx/a", "new.ozx", "a", NULL, 0},
    {"new.ozx", "new.ozx", "", NULL, 0},
    {".zip", ".zip", "", NULL, 1},
    {"folder.zip/a", "folder.zip/a", "", NULL, 1},
    {"folder.zip", "folder.zip", "", NULL, 1},
    {"zip:plain/odd/a[1]", "zip:plain/odd", "a", "1", 0},
    {"zip:plain/odd:/a", "zip:plain/odd", "a", NULL, 0},
    {"zip:plain/h.zarr.zip", "zip:plain/h.zarr.zip", "", NULL, 0},
    {"zip://plain/odd/a", "zip://plain/odd", "a", NULL, 0},
    {"zip:none/a", "zip:none/a", "", NULL, 0},
    {"file:/abs/x.zarr/a", "/abs/x.zarr", "a", NULL, 1},
    {"file:/", "/", "", NULL, 1},
    {"file:h.zarr", "file:h.zarr", "", NULL, 0},
    {"https://h", "https://h", "", NULL, 0},
    {"https://h/", "https://h/", "", NULL, 0},
    {"https://h/run.zarr", "https://h/run.zarr", "", NULL, 0},
    {"https://h/run.zarr/", "https://h/run.zarr", "", NULL, 0},
    {"https://h/run.zarr/temp", "https://h/run.zarr", "temp", NULL, 0},
    {"https://h/p/run.zarr//a/b.zarr/", "https://h/p/run.zarr", "a/b.zarr", NULL, 0},
    {"https://h/x.zarr.zip/temp[0, 1]", "https://h/x.zarr.zip", "temp", "0, 1", 0},
    {"https://h/p/x.ozx/a?sig=1:2/3", "https://h/p/x.ozx?sig=1:2/3", "a", NULL, 0},
    {"https://h/run.zarr/a%20b?q", "https://h/run.zarr?q", "a b", NULL, 0},
    {"https://h/plain/run/", "https://h/plain/run", "", NULL, 0},
    {"https://h/.zarr/.zip/a", "https://h/.zarr/.zip/a", "", NULL, 0},
    {"https://h.zarr/a", "https://h.zarr/a", "", NULL, 0},
    {"https://h/a?x.zarr/b", "https://h/a?x.zarr/b", "", NULL, 0},
    {"https://h/run:/a%20/b", "https://h/run", "a%20/b", NULL, 0},
    {"https://h/run.zarr/g:/a[5]", "https://h/run.zarr/g", "a", "5", 0},
    {"https://h/run?sig=x:/a/", "https://h/run?sig=x", "a", NULL, 0},
    {"https://h/run:/a?sig=x", "https://h/run?sig=x", "a", NULL, 0},
    {"https://h/a?next=https://g/x", "https://h/a?next=https://g/x", "", NULL, 0},
    {"https://h:/a", "https://h", "a", NULL, 0},
    {"https://u:p@h:81/x.zarr/a", "https://u:p@h:81/x.zarr", "a", NULL, 0},
    {"https://[::1]", "https://[::1]", "", NULL, 0},
    {"https://[::1]:81/x.zarr/a[1]", "https://[::1]:81/x.zarr", "a", "1", 0},
    {"HTTPS://h/x.zarr/a", "HTTPS://h/x.zarr", "a", NULL, 0},
    {"s3://b/p/run.zarr/temp", "s3://b/p/run.zarr", "temp", NULL, 0},
    {"plug://x.zarr/y.zarr/t", "plug://x.zarr/y.zarr", "t", NULL, 0},
    {"zip:https://h/x.bin:/a", "zip:https://h/x.bin", "a", NULL, 0},
    {"zip:https://h/x.zip/a?q", "zip:https://h/x.zip?q", "a", NULL, 0},
};

static void refuses_escapes(void **state)
{
    static const char *const bad[] = {"https://h/x.zarr/%", "https://h/x.zarr/%4g",
                                      "https://h/x.zarr/a%00b", "https://h/x.zarr/%ff"};
    struct world *w = *state;
    zarr_location *at = NULL;

    for (size_t i = 0; i < ZR_COUNT(bad); i++) {
        assert_status(zr_location_parse(&at, w->registry, &w->env, bad[i], NULL),
                      ZARR_ERR_INVALID);
        assert_null(at);
    }
}

static void splits_archives(void **state)
{
    static const struct {
        const char *url, *store, *key;
    } splits[] = {
        {"a/x.zip", "a", "x.zip"},
        {"/x.zip", "/", "x.zip"},
        {"x.zip", ".", "x.zip"},
        {"file:/a/x.zip", "file:/a", "x.zip"},
        {"https://h/x.zip", "https://h", "x.zip"},
        {"https://h/a/x%20y.zip?s=a/b", "https://h/a?s=a/b", "x y.zip"},
        {"https://h", "https://h", ""},
        {"https://h?s", "https://h?s", ""},
    };
    struct world *w = *state;
    char *store, *key;

    for (size_t i = 0; i < ZR_COUNT(splits); i++) {
        assert_status(zr_archive_split(w->env.alloc, splits[i].url, &store, &key, NULL),
                      ZARR_OK);
        assert_string_equal(store, splits[i].store);
        assert_string_equal(key, splits[i].key);
        zr_free(w->env.alloc, store);
        zr_free(w->env.alloc, key);
    }
    assert_status(zr_archive_split(w->env.alloc, "https://h/%zz", &store, &key, NULL),
                  ZARR_ERR_INVALID);
}

static void shows_no_secret(void **state)
{
    static const struct {
        const char *text, *shown;
    } shows[] = {
        {"h.zarr/a?b=c", "h.zarr"},
        {"plain/new?b=c", "plain/new?b=c"},
        {"zip:plain/odd?b=c:/a", "zip:plain/odd?b=c"},
        {"https://u:SECRET@h/x.zarr/a?t=SECRET", "https://h/x.zarr?t=***"},
        {"zip:https://SECRET@h/x.bin?t=SECRET:/a", "zip:https://h/x.bin?t=***"},
        {"plug:rest?t=SECRET", "plug:rest?t=***"},
    };
    struct world *w = *state;
    zarr_location *at = NULL;

    for (size_t i = 0; i < ZR_COUNT(shows); i++) {
        assert_status(zr_location_parse(&at, w->registry, &w->env, shows[i].text, NULL),
                      ZARR_OK);
        assert_string_equal(at->shown, shows[i].shown);
        assert_null(strstr(at->path, "SECRET"));
        zarr_location_free(at);
    }
}

static void parses(void **state)
{
    struct world *w = *state;
    zarr_location *at = NULL;
    zarr_error err = {0};

    for (size_t i = 0; i < ZR_COUNT(rows); i++) {
        assert_status(zr_location_parse(&at, w->registry, &w->env, rows[i].text, &err),
                      ZARR_OK);
        if (strcmp(at->url, rows[i].url) != 0 || strcmp(at->path, rows[i].path) != 0 ||
            !zr_streq(at->selection, rows[i].selection) ||
            at->is_local != rows[i].is_local)
            fail_msg("%s: url %s, path %s, selection %s, local %u", rows[i].text, at->url,
                     at->path, at->selection ? at->selection : "none",
                     (unsigned)at->is_local);
        zarr_location_free(at);
    }
    assert_status(zr_location_parse(&at, w->registry, &w->env, "", &err),
                  ZARR_ERR_INVALID);
    assert_status(zr_location_parse(&at, w->registry, &w->env, NULL, &err),
                  ZARR_ERR_INVALID);
    zarr_location_free(NULL);
}

/* A folder with the name of a scheme comes first. */
static void folder_before_scheme(void **state)
{
    struct world *w = *state;
    zarr_location *at = NULL;
    zarr_error err = {0};

    assert_int_equal(mkdir("plug", 0777), 0);
    assert_status(zr_location_parse(&at, w->registry, &w->env, "plug:/a", &err), ZARR_OK);
    assert_string_equal(at->url, "plug");
    assert_string_equal(at->path, "a");
    assert_int_equal(at->is_local, 1);
    zarr_location_free(at);
    assert_status(zr_location_parse(&at, w->registry, &w->env, "plug://a", &err),
                  ZARR_OK);
    assert_string_equal(at->url, "plug://a");
    zarr_location_free(at);
}

/* What holds for any text that is not empty. */
static void check_any(struct world *w, const char *text)
{
    zarr_location *at = NULL;
    zarr_error err = {0};
    const zarr_status st = zr_location_parse(&at, w->registry, &w->env, text, &err);

    if (st == ZARR_ERR_INVALID && strstr(text, "://") && strpbrk(text, "%\x80\xff"))
        return; /* a malformed escape */
    assert_status(st, ZARR_OK);
    assert_non_null(at->shown);
    assert_int_equal(at->struct_size, sizeof *at);
    assert_true(at->is_local <= 1);
    assert_non_null(at->url);
    assert_non_null(at->path);
    assert_int_not_equal(at->path[0], '/');
    if (strlen(at->url) + strlen(at->path) + (at->selection ? strlen(at->selection) : 0) >
        strlen(text) + 1)
        fail_msg("more text than \"%.100s\" has", text);
    if (at->selection && (!strchr(text, '[') || !strchr(text, ']')))
        fail_msg("a selection in \"%.100s\"", text);
    zarr_location_free(at);
}

/* All texts of a few bytes out of those that mean something, and random longer ones. */
static void any_text(void **state)
{
    static const char bytes[] = "[]:/.a\xff";
    static const char *const parts[] = {
        "[",     "]",       ":/",    "://",     "/",       "..",  ".", "h.zarr",
        "plug:", "file://", "s3://", "memory:", ".zarr",   "a",   ":", "odd[1]",
        "\n",    " ",       "%2F",   "\\",      "plain/x", "-1:", ",", "\x80"};
    const size_t k = sizeof bytes - 1;
    struct world *w = *state;
    uint32_t seed = 1;
    char text[128];

    for (size_t n = 1; n <= 4; n++) {
        size_t all = 1;

        for (size_t i = 0; i < n; i++)
            all *= k;
        for (size_t i = 0; i < all; i++) {
            for (size_t d = 0, v = i; d < n; d++, v /= k)
                text[d] = bytes[v % k];
            text[n] = '\0';
            check_any(w, text);
        }
    }
    for (int round = 0; round < 20000; round++) {
        size_t n = 0;

        for (int i = 0; i < 8; i++) {
            const char *part;

            seed = seed * 1664525 + 1013904223;
            part = parts[(seed >> 16) % ZR_COUNT(parts)];
            memcpy(text + n, part, strlen(part) + 1);
            n += strlen(part);
        }
        check_any(w, text);
    }
}

/* A text of a megabyte costs no more than a few passes over it. */
static void long_text(void **state)
{
    static const char *const units[] = {"a/",     "://", "A://", ":/", "[", "]",    "[]",
                                        ".zarr/", "../", "a:/",  "x",  "/", "plug:"};
    const size_t most = 1 << 20;
    struct world *w = *state;
    char *text = malloc(most + 16);

    assert_non_null(text);
    for (size_t i = 0; i < ZR_COUNT(units); i++)
        for (int kind = 0; kind < 3; kind++) {
            size_t n = (size_t)snprintf(text, most, "%s", kind == 1 ? "h.zarr" : "");

            memset(text + n, 'a', kind == 2 ? most / 2 : 0);
            n += kind == 2 ? most / 2 : 0;
            while (n < most) {
                memcpy(text + n, units[i], strlen(units[i]));
                n += strlen(units[i]);
            }
            text[n] = '\0';
            check_any(w, text);
        }
    free(text);
}

static void run_without_memory(struct world *w, const char *text)
{
    zarr_location *at = NULL;
    zarr_error err = {0};
    zarr_status st = ZARR_ERR_NO_MEMORY;

    for (int k = 1; st != ZARR_OK; k++) {
        assert_true(k < 50);
        atomic_store(&w->fail_at, k);
        st = zr_location_parse(&at, w->registry, &w->env, text, &err);
        atomic_store(&w->fail_at, 0);
        if (st != ZARR_OK) {
            assert_status(st, ZARR_ERR_NO_MEMORY);
            assert_null(at);
        }
    }
    zarr_location_free(at);
}

static void without_memory(void **state)
{
    run_without_memory(*state, "h.zarr/a/b[1]");
    run_without_memory(*state, "https://u:p@h/x.zarr/a%20b?t=s");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(parses, setup, teardown),
        cmocka_unit_test_setup_teardown(refuses_escapes, setup, teardown),
        cmocka_unit_test_setup_teardown(splits_archives, setup, teardown),
        cmocka_unit_test_setup_teardown(shows_no_secret, setup, teardown),
        cmocka_unit_test_setup_teardown(folder_before_scheme, setup, teardown),
        cmocka_unit_test_setup_teardown(any_text, setup, teardown),
        cmocka_unit_test_setup_teardown(long_text, setup, teardown),
        cmocka_unit_test_setup_teardown(without_memory, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
