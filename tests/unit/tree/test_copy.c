/*
 * unit/tree/test_copy.c - copying and moving nodes within a store and between stores:
 * what is copied, what is refused, what an interrupted copy leaves, and how it is
 * resumed.
 */
#include "unit/array/array_test.h"
#include "unit/conditional_caps.h"
#include "unit/over_store.h"

#include <unistd.h>

struct progress {
    uint64_t objects, bytes;
    zarr_cancel *cancel;
    uint64_t cancel_at;
};

static void on_progress(void *user, uint64_t objects, uint64_t bytes)
{
    struct progress *p = user;

    assert_true(objects > p->objects);
    p->objects = objects;
    p->bytes = bytes;
    if (p->cancel && objects >= p->cancel_at)
        zarr_cancel_set(p->cancel);
}

static void make_source(struct world *w)
{
    zarr_array *a = NULL;
    zarr_group *g = NULL;

    for (int kind = 2; kind <= 4; kind++) {
        char path[24];

        snprintf(path, sizeof path, "src/k%d", kind);
        a = make_array(w, path, kind, 6, 7);
        fill_array(a);
        assert_ok(zarr_array_attribute_set(a, "k", "1", NULL, &terr));
        zarr_array_free(a);
    }
    assert_ok(group_create(&g, w->store, "src/empty", 3, NULL, 0, &terr));
    zarr_group_free(g);
}

static void check_copy(struct world *w, zarr_store *store, const char *top)
{
    zarr_store *own = w->store;
    zarr_array *a = NULL;
    char path[32];

    w->store = store;
    for (int kind = 2; kind <= 4; kind++) {
        snprintf(path, sizeof path, "%s/k%d", top, kind);
        assert_ok(zarr_array_open(&a, store, path, NULL, &terr));
        assert_int_equal(count_wrong(a, 6, 7), 0);
        zarr_array_free(a);
    }
    w->store = own;
}

static void test_copy(void **state)
{
    struct world w;
    zarr_store *other = NULL;
    struct progress p = {0};
    zarr_copy_options opts = {
        .struct_size = sizeof opts, .progress = on_progress, .progress_user = &p};

    (void)state;
    for (enum world_sort sort = 0; sort < N_WORLDS; sort++) {
        world_open(&w, sort);
        make_source(&w);
        assert_ok(zarr_node_copy(w.store, "src", w.store, "dst/deep", NULL, &terr));
        check_copy(&w, w.store, "dst/deep");
        assert_non_null(get_text(&w, "dst/.zgroup"));
        assert_int_equal(n_keys(&w, "src"), n_keys(&w, "dst/deep"));

        assert_ok(zarr_store_open(&other, w.ctx, "memory:", NULL, &terr));
        p = (struct progress){0};
        assert_ok(zarr_node_copy(w.store, "src", other, "", &opts, &terr));
        assert_int_equal(p.objects, n_keys(&w, "src"));
        check_copy(&w, other, "");
        assert_status(zarr_node_copy(w.store, "src", other, "", NULL, &terr),
                      ZARR_ERR_EXISTS);
        assert_ok(zarr_node_copy(other, "", w.store, "back", NULL, &terr));
        check_copy(&w, w.store, "back");
        zarr_store_free(other);

        assert_status(zarr_node_copy(w.store, "src", w.store, "src/below", NULL, &terr),
                      ZARR_ERR_INVALID);
        assert_status(zarr_node_copy(w.store, "src/k3", w.store, "src", NULL, &terr),
                      ZARR_ERR_INVALID);
        assert_status(zarr_node_copy(w.store, "nope", w.store, "x", NULL, &terr),
                      ZARR_ERR_NOT_FOUND);
        assert_says("/nope: ");
        assert_status(zarr_node_copy(w.store, "src", w.store, "src/k3/x", NULL, &terr),
                      ZARR_ERR_INVALID);
        assert_status(zarr_node_copy(w.store, "back", w.store, "src/k3/x", NULL, &terr),
                      ZARR_ERR_INVALID);
        world_close(&w);
    }
}

static void test_overwrite(void **state)
{
    struct world w;
    zarr_copy_options opts = {.struct_size = sizeof opts, .flags = ZARR_COPY_OVERWRITE};

    (void)state;
    world_open(&w, WORLD_LOCAL);
    make_source(&w);
    for (uint32_t extra = 0; extra <= ZARR_COPY_SKIP_EQUAL;
         extra += ZARR_COPY_SKIP_EQUAL) {
        opts.flags = ZARR_COPY_OVERWRITE | extra;
        assert_ok(zarr_node_copy(w.store, "src", w.store, "dst", &opts, &terr));
        put_text(&w, "dst/k3/c/9/9", "surplus");
        put_text(&w, "dst/k3/c/0/0", "changed");
        assert_ok(zarr_node_copy(w.store, "src", w.store, "dst", &opts, &terr));
        check_copy(&w, w.store, "dst");
        assert_null(get_text(&w, "dst/k3/c/9/9"));
    }
    opts.flags = ZARR_COPY_SKIP_EQUAL;
    assert_ok(
        zarr_node_copy(w.store, "src", w.store, "dst", &opts, &terr)); /* copied before */
    put_text(&w, "dst/k3/c/0/0", "changed");
    assert_status(zarr_node_copy(w.store, "src", w.store, "dst", &opts, &terr),
                  ZARR_ERR_EXISTS);
    assert_says("dst/k3/c/0/0");
    opts.flags = 64;
    assert_status(zarr_node_copy(w.store, "src", w.store, "dst", &opts, &terr),
                  ZARR_ERR_UNSUPPORTED);
    world_close(&w);
}

/* The node's own document is written last, so an interrupted copy is not a node. */
static void test_cancel_and_resume(void **state)
{
    struct world w;
    zarr_cancel *cancel = fresh_cancel();
    struct progress p = {.cancel = cancel, .cancel_at = 5};
    zarr_copy_options opts = {.struct_size = sizeof opts,
                              .max_threads = 1,
                              .progress = on_progress,
                              .progress_user = &p,
                              .cancel = cancel};
    zarr_array *a = NULL;

    (void)state;
    world_open(&w, WORLD_LOCAL);
    make_source(&w);
    assert_status(zarr_node_copy(w.store, "src", w.store, "dst", &opts, &terr),
                  ZARR_ERR_CANCELLED);
    assert_status(zarr_array_open(&a, w.store, "dst/k3", NULL, &terr),
                  ZARR_ERR_NOT_FOUND);
    assert_true(n_keys(&w, "dst") >= 5);
    opts = (zarr_copy_options){.struct_size = sizeof opts, .flags = ZARR_COPY_SKIP_EQUAL};
    assert_ok(zarr_node_copy(w.store, "src", w.store, "dst", &opts, &terr));
    check_copy(&w, w.store, "dst");
    world_close(&w);
}

static void test_move(void **state)
{
    struct world w;

    (void)state;
    for (enum world_sort sort = 0; sort < N_WORLDS; sort++) {
        world_open(&w, sort);
        make_source(&w);
        assert_ok(zarr_node_move(w.store, "src", w.store, "to/here", NULL, &terr));
        assert_int_equal(n_keys(&w, "src"), 0);
        check_copy(&w, w.store, "to/here");
        assert_status(zarr_node_move(w.store, "src", w.store, "x", NULL, &terr),
                      ZARR_ERR_NOT_FOUND);
        assert_status(zarr_node_move(w.store, "to/here", w.store, "to/here", NULL, &terr),
                      ZARR_ERR_INVALID);
        check_copy(&w, w.store, "to/here");
        world_close(&w);
    }
}

/* A move of the root of this store is refused, and the source stays. */
static void refuse_root(struct world *w, zarr_store *src, zarr_store *dst)
{
    uint32_t kind = 0;
    int32_t format = 0;

    assert_status(zarr_node_move(src, "", dst, "all", NULL, &terr), ZARR_ERR_INVALID);
    assert_non_null(strstr(terr.message, "is a symbolic link to the store"));
    check_copy(w, src, "src");
    assert_ok(zarr_node_probe(dst, "all", &kind, &format, NULL, &terr));
    assert_int_equal(kind, 0);
}

/* A store that is opened by a link may be the only copy of what others read by its own
 * name. */
static void test_move_by_link(void **state)
{
    struct world w;
    zarr_store *linked = NULL, *both = NULL, *memory = NULL, *own = NULL;
    static const char *const ends[] = {"", "/", "//", "/.", "/.//./"};
    char link[80], name[88];

    (void)state;
    world_open(&w, WORLD_LOCAL);
    make_source(&w);
    assert_ok(zarr_store_open(&memory, w.ctx, "memory:", NULL, &terr));
    snprintf(link, sizeof link, "%s-link", w.dir);
    assert_int_equal(symlink(w.dir, link), 0);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        snprintf(name, sizeof name, "%s%s", link, ends[i]);
        assert_ok(zarr_store_open(&linked, w.ctx, name, NULL, &terr));
        refuse_root(&w, linked, memory);
        assert_ok(zarr_store_open_composite(&both, memory, linked, NULL, &terr));
        assert_ok(zarr_node_copy(linked, "src", memory, "src", NULL, &terr));
        refuse_root(&w, both, w.store);
        assert_ok(zarr_node_delete(memory, "src", &terr));
        zarr_store_free(both);
        zarr_store_free(linked);
    }
    assert_ok(zarr_store_open(&linked, w.ctx, link, NULL, &terr));
    assert_ok(zarr_node_move(linked, "src", memory, "part", NULL, &terr));
    assert_int_equal(n_keys(&w, "src"), 0);
    assert_ok(zarr_node_move(memory, "part", linked, "src", NULL, &terr));
    assert_ok(zarr_store_open(&own, w.ctx, w.dir, NULL, &terr));
    assert_ok(zarr_node_move(own, "", memory, "all", NULL, &terr));
    check_copy(&w, memory, "all/src");
    assert_int_equal(n_keys(&w, ""), 0);
    unlink(link);
    zarr_store_free(own);
    zarr_store_free(linked);
    zarr_store_free(memory);
    world_close(&w);
}

/* Inside a store that can rename, no object is copied. If the target has other objects,
 * they are kept, and the node is copied. */
static void test_move_is_rename(void **state)
{
    struct world w;

    (void)state;
    for (enum world_sort sort = 0; sort < N_WORLDS; sort++) {
        struct progress p = {0};
        zarr_copy_options opts = {
            .struct_size = sizeof opts, .progress = on_progress, .progress_user = &p};
        zarr_group *g = NULL;

        world_open(&w, sort);
        make_source(&w);
        put_text(&w, "other", "stays");
        put_text(&w, "srcery", "is not below src");
        assert_ok(zarr_node_move(w.store, "src", w.store, "to/here", &opts, &terr));
        assert_int_equal(p.objects > 0, sort == WORLD_PLAIN);
        check_copy(&w, w.store, "to/here");
        assert_int_equal(n_keys(&w, "src"), 0);
        assert_string_equal(get_text(&w, "srcery"), "is not below src");
        assert_ok(zarr_group_open(&g, w.store, "to", NULL, &terr)); /* a parent */
        zarr_group_free(g);

        put_text(&w, "back/stray", "1");
        p = (struct progress){0};
        assert_ok(zarr_node_move(w.store, "to/here", w.store, "back", &opts, &terr));
        assert_true(p.objects > 0);
        assert_int_equal(n_keys(&w, "to/here"), 0);
        assert_string_equal(get_text(&w, "back/stray"), "1");
        assert_ok(zarr_store_erase(w.store, "back/stray", NULL, &terr));
        check_copy(&w, w.store, "back");

        p = (struct progress){0};
        assert_ok(zarr_node_copy(w.store, "back", w.store, "old", NULL, &terr));
        assert_status(zarr_node_move(w.store, "back", w.store, "old", &opts, &terr),
                      ZARR_ERR_EXISTS);
        opts.flags = ZARR_COPY_OVERWRITE;
        assert_ok(zarr_node_move(w.store, "back", w.store, "old", &opts, &terr));
        assert_int_equal(p.objects > 0, sort == WORLD_PLAIN);
        check_copy(&w, w.store, "old");
        assert_int_equal(n_keys(&w, "back"), 0);
        world_close(&w);
    }
}

/* What a copy finds equal is counted apart, and from zero in each call. */
/* netCDF-C's root has a mark that says what the shuffle of the arrays means. */
static void test_mark_changes(void **state)
{
    static const char text[] =
        "{\"zarr_format\": 2, \"shape\": [4], \"chunks\": [4], \"dtype\": \"<i4\", "
        "\"fill_value\": 0, \"compressor\": null, \"order\": \"C\", "
        "\"filters\": [{\"id\": \"shuffle\", \"elementsize\": 0}]}";
    struct world w;

    (void)state;
    for (enum world_sort sort = 0; sort < N_WORLDS; sort++) {
        world_open(&w, sort);
        put_text(&w, "nc/.zgroup", "{\"zarr_format\": 2}");
        put_text(&w, "nc/.zattrs", "{\"_NCProperties\": \"version=2\"}");
        put_text(&w, "nc/v/.zarray", text);
        put_text(&w, "nc/v/0", "0123456789abcdef");
        put_text(&w, "py/v/.zarray", text);
        for (int move = 0; move < 2; move++) {
            assert_int_equal((move ? zarr_node_move : zarr_node_copy)(
                                 w.store, "nc/v", w.store, "out", NULL, &terr),
                             ZARR_ERR_UNSUPPORTED);
            assert_non_null(strstr(terr.message, "/nc/v: shuffle"));
            assert_int_equal((move ? zarr_node_move : zarr_node_copy)(
                                 w.store, "py/v", w.store, "nc/u", NULL, &terr),
                             ZARR_ERR_UNSUPPORTED);
            assert_non_null(strstr(terr.message, "/py/v: shuffle"));
            assert_int_equal(n_keys(&w, "out"), 0);
            assert_int_equal(n_keys(&w, "nc"), 4);
        }
        assert_ok(zarr_node_move(w.store, "nc/v", w.store, "nc/w", NULL, &terr));
        assert_ok(zarr_node_copy(w.store, "nc", w.store, "whole", NULL, &terr));
        assert_ok(zarr_node_move(w.store, "nc", w.store, "moved", NULL, &terr));
        assert_int_equal(n_keys(&w, "whole"), 4);
        assert_int_equal(n_keys(&w, "moved"), 4);
        world_close(&w);
    }
}

static void test_skipped(void **state)
{
    struct world w;
    struct progress p = {0};
    uint64_t objects = 7, bytes = 7;
    zarr_copy_options opts = {.struct_size = sizeof opts,
                              .progress = on_progress,
                              .progress_user = &p,
                              .objects_skipped = &objects,
                              .bytes_skipped = &bytes};

    (void)state;
    world_open(&w, WORLD_PLAIN);
    make_source(&w);
    assert_ok(zarr_node_copy(w.store, "src", w.store, "to", &opts, &terr));
    assert_int_equal(objects, 0);
    assert_int_equal(bytes, 0);
    opts.flags = ZARR_COPY_SKIP_EQUAL;
    for (int i = 0; i < 2; i++) {
        p = (struct progress){0};
        assert_ok(zarr_node_copy(w.store, "src", w.store, "to", &opts, &terr));
        assert_true(objects > 0);
        assert_int_equal(objects, p.objects);
        assert_true(bytes > 0);
    }
    world_close(&w);
}

/* Chunks do not pass through the process if the store copies them. */
static void test_copy_by_store(void **state)
{
    int gets[6];

    (void)state;
    for (int i = 0; i < 6; i++) {
        const bool moves = i % 2, copies = i / 2 != 1, refuses = i / 2 == 2;
        struct progress p = {0};
        const zarr_copy_options opts = {
            .struct_size = sizeof opts, .progress = on_progress, .progress_user = &p};
        struct over o = {.caps = CAPS_CONDITIONAL | ZARR_STORE_CAP_LIST |
                                 ZARR_STORE_CAP_WRITE |
                                 (copies ? ZARR_STORE_CAP_COPY : 0u),
                         .no_copy = refuses};
        zarr_store *s = NULL;
        struct world w;

        world_open(&w, WORLD_MEMORY);
        make_source(&w);
        o.below = zarr_store_ref(w.store);
        assert_ok(zarr_store_open_custom(&s, w.ctx, &over_runs, &o, NULL, &terr));
        if (moves)
            assert_ok(zarr_node_move(s, "src", s, "dst", &opts, &terr));
        else
            assert_ok(zarr_node_copy(s, "src", s, "dst", &opts, &terr));
        assert_true(p.objects > 10 && p.bytes > sizeof(int32_t) * 3 * 6 * 7);
        assert_true(copies ? o.n_ops[ZARR_STORE_COPY] > 6 : !o.n_ops[ZARR_STORE_COPY]);
        gets[i] = o.n_ops[ZARR_STORE_GET];
        check_copy(&w, w.store, "dst");
        if (!moves)
            check_copy(&w, w.store, "src");
        zarr_store_free(s);
        world_close(&w);
    }
    for (int i = 0; i < 2; i++) {
        assert_true(gets[i] + 6 < gets[2 + i]);
        assert_true(gets[4 + i] >= gets[2 + i]);
    }
}

/* Objects that the source lacks are erased many at a time. */
static void test_surplus_in_batches(void **state)
{
    const zarr_copy_options opts = {.struct_size = sizeof opts,
                                    .flags = ZARR_COPY_SKIP_EQUAL | ZARR_COPY_OVERWRITE};
    struct over o = {.caps =
                         CAPS_CONDITIONAL | ZARR_STORE_CAP_LIST | ZARR_STORE_CAP_WRITE};
    zarr_store *s = NULL;
    struct world w;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    make_source(&w);
    o.below = zarr_store_ref(w.store);
    assert_ok(zarr_store_open_custom(&s, w.ctx, &over_submits, &o, NULL, &terr));
    assert_ok(zarr_node_copy(s, "src", s, "dst", NULL, &terr));
    for (int i = 0; i < 200; i++) {
        char key[64];

        snprintf(key, sizeof key, "dst/a/c/90/%d", i);
        assert_ok(zarr_store_put(w.store, key, "x", 1, NULL, &terr));
    }
    o.n_ops[ZARR_STORE_ERASE] = o.most_at_once = 0;
    assert_ok(zarr_node_copy(s, "src", s, "dst", &opts, &terr));
    assert_in_range(o.n_ops[ZARR_STORE_ERASE], 200, 210); /* and records of the copy */
    assert_int_equal(o.most_at_once, 64);
    check_copy(&w, w.store, "dst");
    assert_int_equal(
        zarr_store_get(w.store, "dst/a/c/90/7", 0, NULL, &(uint64_t){0}, NULL, NULL),
        ZARR_ERR_NOT_FOUND);
    zarr_store_free(s);
    world_close(&w);
}

/* A value that is too large for memory is copied by parts, several at once. */
static void test_parts_at_once(void **state)
{
    const char key[] = "c/9/9";
    const uint64_t bytes = UINT64_C(70) << 20; /* the context has 256 MiB */
    unsigned char *value = malloc(bytes), *copy = malloc(bytes);
    uint64_t n = bytes;
    struct over o = {.caps = CAPS_CONDITIONAL | ZARR_STORE_CAP_LIST |
                             ZARR_STORE_CAP_WRITE | ZARR_STORE_CAP_PARTS};
    zarr_store *s = NULL;
    struct world w;

    (void)state;
    assert_true(value && copy);
    for (uint64_t i = 0; i < bytes; i++)
        value[i] = (unsigned char)(i >> 20 ^ i);
    world_open(&w, WORLD_MEMORY);
    make_source(&w);
    assert_ok(zarr_store_put(w.store, "src/k3/c/9/9", value, bytes, NULL, &terr));
    assert_ok(zarr_store_open(&o.below, w.ctx, "memory:", NULL, &terr));
    assert_ok(zarr_store_open_custom(&s, w.ctx, &over_submits, &o, NULL, &terr));
    assert_ok(zarr_node_copy(w.store, "src/k3", s, "", NULL, &terr));
    assert_int_equal(o.n_ops[ZARR_STORE_PUT_PART], 9);
    assert_int_equal(o.most_at_once, 4);
    assert_ok(zarr_store_get(s, key, 0, copy, &n, NULL, &terr));
    assert_true(n == bytes && memcmp(value, copy, bytes) == 0);
    zarr_store_free(s);
    world_close(&w);
    free(value);
    free(copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copy),
        cmocka_unit_test(test_overwrite),
        cmocka_unit_test(test_cancel_and_resume),
        cmocka_unit_test(test_skipped),
        cmocka_unit_test(test_move),
        cmocka_unit_test(test_move_by_link),
        cmocka_unit_test(test_move_is_rename),
        cmocka_unit_test(test_mark_changes),
        cmocka_unit_test(test_copy_by_store),
        cmocka_unit_test(test_surplus_in_batches),
        cmocka_unit_test(test_parts_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
