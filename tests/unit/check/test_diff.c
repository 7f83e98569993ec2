/*
 * unit/check/test_diff.c - zarr_node_diff(): nodes, properties, attributes and elements,
 * what stops it, progress, cancelling, and each allocation failing in turn.
 */
#include "unit/array/array_test.h"
#include "sanitizers.h"

#include <math.h>
#include <stdbool.h>

enum {
    MOST = 64
};

struct told {
    uint32_t what;
    int32_t dim, ndim, ndim_a, ndim_b;
    char path[64], name[64], a[128], b[128];
    bool has_a, has_b;
    uint64_t index[3], shape_a[2], shape_b[2];
    int32_t value_a, value_b;
    double distance;
};

struct ear {
    struct told item[MOST];
    int n, stop_at;
    zarr_diff_node node[8]; /* its pointers are no longer valid */
    char node_path[8][64];
    uint64_t first_at[2], largest_at[2];
    int n_nodes;
    int n_progress, cancel_at;
    zarr_progress last;
    zarr_cancel *cancel;
};

static int hear(void *user, const zarr_difference *f)
{
    struct ear *e = user;
    struct told *t = &e->item[e->n++];

    assert_true(e->n <= MOST);
    assert_int_equal(f->struct_size, sizeof *f);
    *t = (struct told){.what = f->what,
                       .dim = f->dim,
                       .ndim = f->ndim,
                       .ndim_a = f->ndim_a,
                       .ndim_b = f->ndim_b,
                       .has_a = f->a,
                       .has_b = f->b,
                       .distance = f->distance};
    snprintf(t->path, sizeof t->path, "%s", f->path);
    snprintf(t->name, sizeof t->name, "%s", f->name ? f->name : "");
    snprintf(t->a, sizeof t->a, "%s", f->a ? f->a : "");
    snprintf(t->b, sizeof t->b, "%s", f->b ? f->b : "");
    for (int32_t d = 0; d < f->ndim && d < 3; d++)
        t->index[d] = f->index[d];
    for (int32_t d = 0; d < f->ndim_a && d < 2; d++)
        t->shape_a[d] = f->shape_a[d];
    for (int32_t d = 0; d < f->ndim_b && d < 2; d++)
        t->shape_b[d] = f->shape_b[d];
    if (f->what == ZARR_DIFFERENCE_ELEMENT && zarr_dtype_item_bytes(f->dtype) == 4) {
        memcpy(&t->value_a, f->element_a, 4);
        memcpy(&t->value_b, f->element_b, 4);
    }
    return e->stop_at && e->n >= e->stop_at;
}

static int hear_node(void *user, const zarr_diff_node *n)
{
    struct ear *e = user;

    assert_true(e->n_nodes < 8);
    e->node[e->n_nodes] = *n;
    snprintf(e->node_path[e->n_nodes++], 64, "%s", n->path);
    assert_true((n->n_different > 0) == (n->first_at != NULL));
    assert_true((n->largest >= 0) == (n->largest_at != NULL));
    for (int32_t d = 0; d < n->ndim && d < 2; d++) {
        if (n->first_at)
            e->first_at[d] = n->first_at[d];
        if (n->largest_at)
            e->largest_at[d] = n->largest_at[d];
    }
    return 0;
}

static void see(void *user, const zarr_progress *now)
{
    struct ear *e = user;

    if (e->n_progress++) {
        assert_true(now->bytes_done >= e->last.bytes_done);
        assert_int_equal(now->bytes_total, e->last.bytes_total);
    }
    assert_true(!now->bytes_total || now->bytes_done <= now->bytes_total);
    e->last = *now;
    if (e->cancel_at && e->n_progress >= e->cancel_at)
        zarr_cancel_set(e->cancel);
}

static zarr_diff_options options(struct ear *e)
{
    zarr_diff_options o = ZARR_DIFF_OPTIONS_INIT;

    *e = (struct ear){.cancel = fresh_cancel()};
    o.tell = hear;
    o.tell_node = hear_node;
    o.progress = see;
    o.tell_user = o.progress_user = e;
    o.cancel = e->cancel;
    o.max_elements = 10;
    return o;
}

static const struct told *find(const struct ear *e, uint32_t what, const char *path)
{
    for (int i = 0; i < e->n; i++)
        if (e->item[i].what == what && strcmp(e->item[i].path, path) == 0)
            return &e->item[i];
    fail_msg("no difference %u of \"%s\"", what, path);
    return e->item;
}

/* Creates top/x (v3), top/s (shards) and top/g/y (v2). */
static void make_tree(struct world *w, const char *top)
{
    static const struct {
        const char *path;
        int kind;
    } arrays[] = {{"x", 3}, {"s", 4}, {"g/y", 3}};
    zarr_group *group = NULL;
    char path[64];

    assert_ok(group_create(&group, w->store, top, 3, "{\"v\": 1}", 0, &terr));
    zarr_group_free(group);
    for (size_t i = 0; i < 3; i++) {
        zarr_array *a;

        snprintf(path, sizeof path, "%s/%s", top, arrays[i].path);
        a = make_array(w, path, arrays[i].kind, 5, 6);
        fill_array(a);
        zarr_array_free(a);
    }
}

static void set_at(struct world *w, const char *path, uint64_t row, uint64_t col,
                   int32_t value)
{
    const uint64_t start[2] = {row, col}, count[2] = {1, 1};
    const uint64_t shape[2] = {1, 1};
    zarr_selection *s = NULL;
    zarr_array *a = NULL;
    zarr_tensor t;

    assert_ok(zarr_array_open(&a, w->store, path, NULL, &terr));
    assert_ok(zarr_selection_box(&s, 2, zarr_array_shape(a), start, count, &terr));
    zarr_tensor_host(&t, NULL, &value, sizeof value, 2, shape);
    assert_ok(zarr_array_write(a, s, &t, NULL, &terr));
    zarr_selection_free(s);
    zarr_array_free(a);
}

static void test_equal(void **state)
{
    (void)state;
    for (int sort = 0; sort < N_WORLDS; sort++) {
        zarr_diff_result r = ZARR_DIFF_RESULT_INIT;
        struct world w;
        struct ear e;
        zarr_diff_options o = options(&e);

        world_open(&w, (enum world_sort)sort);
        make_tree(&w, "a");
        make_tree(&w, "b");
        assert_ok(zarr_node_diff(w.store, "a", w.store, "/b/", &r, &o, &terr));
        assert_int_equal(e.n, 0);
        assert_int_equal(r.n_nodes, 5);
        assert_int_equal(r.n_different, 0);
        assert_int_equal(r.n_elements, 90);
        assert_true(r.largest < 0);
        assert_int_equal(e.n_nodes, 5);
        assert_int_equal(e.last.bytes_done, 90 * 4);
        assert_int_equal(e.last.bytes_total, 90 * 4);
        assert_ok(zarr_node_diff(w.store, "a", w.store, "b", NULL, NULL, &terr));
        world_close(&w);
    }
}

static void test_elements(void **state)
{
    struct ear e;
    zarr_diff_options o = options(&e);
    zarr_diff_result r = ZARR_DIFF_RESULT_INIT;
    const struct told *t;
    struct world w;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    make_tree(&w, "a");
    make_tree(&w, "b");
    set_at(&w, "b/x", 1, 2, 1005);
    set_at(&w, "b/x", 4, 5, 0);
    assert_ok(zarr_node_diff(w.store, "a", w.store, "b", &r, &o, &terr));
    assert_int_equal(e.n, 2);
    t = find(&e, ZARR_DIFFERENCE_ELEMENT, "x");
    assert_int_equal(t->ndim, 2);
    assert_int_equal(t->index[0], 1);
    assert_int_equal(t->index[1], 2);
    assert_int_equal(t->value_a, 1002);
    assert_int_equal(t->value_b, 1005);
    assert_true(t->distance == 3);
    assert_int_equal(r.n_different, 1);
    assert_int_equal(r.n_elements_different, 2);
    assert_true(r.largest == 4005);
    assert_int_equal(e.first_at[0], 1);
    assert_int_equal(e.first_at[1], 2);
    assert_int_equal(e.largest_at[0], 4);
    assert_int_equal(e.largest_at[1], 5);
    /* a tolerance; a few of the elements reported; the first one only */
    o = options(&e);
    o.flags = ZARR_DIFF_TOLERANT;
    o.atol = 3;
    assert_ok(zarr_node_diff(w.store, "a/x", w.store, "b/x", &r, &o, &terr));
    assert_int_equal(r.n_elements_different, 1);
    o = options(&e);
    o.max_elements = 1;
    assert_ok(zarr_node_diff(w.store, "a/x", w.store, "b/x", &r, &o, &terr));
    assert_int_equal(e.n, 1);
    assert_int_equal(r.n_elements_different, 2);
    o = options(&e);
    e.stop_at = 1;
    assert_ok(zarr_node_diff(w.store, "a", w.store, "b", &r, &o, &terr));
    assert_int_equal(e.n, 1);
    o = options(&e);
    o.flags = ZARR_DIFF_FIRST;
    o.buffer_bytes = 2 * 4 * 6; /* one row on each side */
    assert_ok(zarr_node_diff(w.store, "a/x", w.store, "b/x", &r, &o, &terr));
    assert_int_equal(r.n_elements_different, 1);
    assert_true(r.n_elements < 30);
    world_close(&w);
}

static void test_regions(void **state)
{
    const uint64_t shape[2] = {5, 6}, at[2][2] = {{0, 1}, {1, 1}}, count[2] = {1, 3};
    zarr_selection *s[2] = {NULL, NULL}, *other = NULL;
    struct ear e;
    zarr_diff_options o = options(&e);
    zarr_diff_result r = ZARR_DIFF_RESULT_INIT;
    struct world w;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    make_tree(&w, "a");
    for (int i = 0; i < 2; i++)
        assert_ok(zarr_selection_box(&s[i], 2, shape, at[i], count, &terr));
    o.selection_a = s[0];
    o.selection_b = s[1];
    assert_ok(zarr_node_diff(w.store, "a/x", w.store, "a/x", &r, &o, &terr));
    assert_int_equal(r.n_elements, 3);
    assert_int_equal(r.n_elements_different, 3);
    assert_int_equal(e.item[0].index[0], 0); /* inside the regions */
    assert_true(r.largest == 1000);
    o = options(&e);
    o.selection_a = s[0];
    assert_ok(zarr_node_diff(w.store, "a/x", w.store, "a/x", &r, &o, &terr));
    assert_int_equal(find(&e, ZARR_DIFFERENCE_SHAPE, "")->shape_b[0], 5);
    assert_ok(
        zarr_selection_box(&other, 2, count, (const uint64_t[]){0, 0}, count, &terr));
    o.selection_b = other;
    assert_status(zarr_node_diff(w.store, "a/x", w.store, "a/x", &r, &o, &terr),
                  ZARR_ERR_INVALID);
    assert_says("another shape");
    zarr_selection_free(other);
    zarr_selection_free(s[0]);
    zarr_selection_free(s[1]);
    world_close(&w);
}

static void make_typed_array(struct world *w, const char *path, const char *type,
                             uint64_t chunk, const char *attributes, const char *name)
{
    const uint64_t shape[1] = {4}, chunks[1] = {chunk};
    const char *names[1] = {name};
    zarr_array_spec spec = ZARR_ARRAY_SPEC_INIT;
    zarr_array *a = NULL;

    spec.ndim = 1;
    spec.shape = shape;
    spec.chunk_shape = chunks;
    spec.data_type = type;
    spec.attributes = attributes;
    spec.dimension_names = name ? names : NULL;
    spec.fill_value = name ? "7" : NULL;
    assert_ok(zarr_array_create(&a, w->store, path, &spec, NULL, &terr));
    zarr_array_free(a);
}

static void test_properties(void **state)
{
    struct ear e;
    zarr_diff_options o = options(&e);
    zarr_diff_result r = ZARR_DIFF_RESULT_INIT;
    const struct told *t;
    struct world w;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    make_typed_array(&w, "a", "int32", 2,
                     "{\"u\": \"m\", \"same\": [1, {\"x\": 2}], \"gone\": 1}", NULL);
    make_typed_array(&w, "b", "int32", 4,
                     "{\"u\": \"km\", \"same\": [1, {\"x\": 2}], \"new\": []}", "x");
    make_typed_array(&w, "c", "float64", 2, NULL, NULL);
    o.flags = ZARR_DIFF_STORAGE;
    assert_ok(zarr_node_diff(w.store, "a", w.store, "b", &r, &o, &terr));
    t = find(&e, ZARR_DIFFERENCE_FILL_VALUE, "");
    assert_string_equal(t->a, "0");
    assert_string_equal(t->b, "7");
    t = find(&e, ZARR_DIFFERENCE_DIMENSION_NAME, "");
    assert_int_equal(t->dim, 0);
    assert_false(t->has_a);
    assert_string_equal(t->b, "x");
    assert_int_equal(find(&e, ZARR_DIFFERENCE_CHUNKS, "")->shape_b[0], 4);
    /* fill, name, u, gone, new, chunks, shards; elements. */
    assert_int_equal(e.n, 7 + 4);
    for (int i = 0; i < e.n; i++) {
        t = &e.item[i];
        if (t->what == ZARR_DIFFERENCE_ATTRIBUTE) {
            assert_string_not_equal(t->name, "same");
            assert_true(t->has_a == (strcmp(t->name, "new") != 0));
            assert_true(t->has_b == (strcmp(t->name, "gone") != 0));
            if (strcmp(t->name, "u") == 0)
                assert_string_equal(t->b, "\"km\"");
        }
    }
    o = options(&e);
    o.flags = ZARR_DIFF_DATA;
    assert_ok(zarr_node_diff(w.store, "a", w.store, "c", &r, &o, &terr));
    assert_int_equal(e.n, 1);
    t = find(&e, ZARR_DIFFERENCE_DATA_TYPE, "");
    assert_string_equal(t->a, "int32");
    assert_string_equal(t->b, "float64");
    assert_int_equal(r.n_elements, 0);
    world_close(&w);
}

static void test_nodes(void **state)
{
    struct ear e;
    zarr_diff_options o = options(&e);
    zarr_diff_result r = ZARR_DIFF_RESULT_INIT;
    zarr_group *g = NULL;
    struct world w;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    make_tree(&w, "a");
    make_tree(&w, "b");
    assert_ok(zarr_node_delete(w.store, "b/s", &terr));
    assert_ok(zarr_node_delete(w.store, "a/g/y", &terr));
    assert_ok(group_create(&g, w.store, "a/kind", 3, NULL, 0, &terr));
    zarr_group_free(g);
    zarr_array_free(make_array(&w, "b/kind", 3, 2, 2));
    assert_ok(zarr_group_open(&g, w.store, "b", NULL, &terr));
    assert_ok(zarr_group_attribute_set(g, "v", "2", NULL, &terr));
    zarr_group_free(g);
    assert_ok(zarr_node_diff(w.store, "a", w.store, "b", &r, &o, &terr));
    assert_int_equal(e.n, 4);
    find(&e, ZARR_DIFFERENCE_ONLY_A, "s");
    find(&e, ZARR_DIFFERENCE_ONLY_B, "g/y");
    assert_string_equal(find(&e, ZARR_DIFFERENCE_KIND, "kind")->a, "group");
    assert_string_equal(find(&e, ZARR_DIFFERENCE_KIND, "kind")->b, "array");
    assert_string_equal(find(&e, ZARR_DIFFERENCE_ATTRIBUTE, "")->b, "2");
    assert_int_equal(r.n_different, 4);
    assert_int_equal(r.n_nodes, 6);
    world_close(&w);
}

static void test_failures(void **state)
{
    struct ear e;
    zarr_diff_options o = options(&e);
    zarr_diff_result r = ZARR_DIFF_RESULT_INIT;
    struct world w;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    make_tree(&w, "a");
    make_tree(&w, "b");
    assert_status(zarr_node_diff(w.store, "a", w.store, "none", &r, &o, &terr),
                  ZARR_ERR_NOT_FOUND);
    assert_says("/none");
    o = options(&e);
    put_text(&w, "b/x/c/1/1", "");
    assert_status(zarr_node_diff(w.store, "a", w.store, "b", &r, &o, &terr),
                  ZARR_ERR_CORRUPT);
    assert_says("c/1/1");
    find(&e, ZARR_DIFFERENCE_UNREADABLE, "x");
    assert_true(r.n_unread > 0 && r.n_elements > r.n_unread);
    assert_int_equal(r.n_different, 0);
    o = options(&e);
    put_text(&w, "b/s/zarr.json", "{\"zarr_format\": 3, \"node_type\": \"array\"}");
    assert_status(zarr_node_diff(w.store, "a/s", w.store, "b/s", &r, &o, &terr),
                  ZARR_ERR_CORRUPT);
    o = options(&e);
    o.field = "pos";
    assert_status(zarr_node_diff(w.store, "a/x", w.store, "a/x", &r, &o, &terr),
                  ZARR_ERR_INVALID);
    o.field = NULL;
    o.atol = NAN;
    assert_status(zarr_node_diff(w.store, "a", w.store, "b", &r, &o, &terr),
                  ZARR_ERR_INVALID);
    o.atol = 0;
    o.flags = 1024;
    assert_status(zarr_node_diff(w.store, "a", w.store, "b", &r, &o, &terr),
                  ZARR_ERR_UNSUPPORTED);
    world_close(&w);
}

static void test_cancel(void **state)
{
    struct ear e;
    zarr_diff_options o = options(&e);
    zarr_diff_result r = ZARR_DIFF_RESULT_INIT;
    struct world w;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    make_tree(&w, "a");
    make_tree(&w, "b");
    zarr_cancel_set(e.cancel);
    assert_status(zarr_node_diff(w.store, "a", w.store, "b", &r, &o, &terr),
                  ZARR_ERR_CANCELLED);
    o = options(&e);
    o.buffer_bytes = 2 * 4 * 6;
    e.cancel_at = 3;
    assert_status(zarr_node_diff(w.store, "a", w.store, "b", &r, &o, &terr),
                  ZARR_ERR_CANCELLED);
    assert_true(e.last.bytes_done > 0 && e.last.bytes_done < e.last.bytes_total);
    world_close(&w);
}

/* An array of 2^40 chunks, two of them stored. */
static void test_sparse(void **state)
{
    const uint64_t huge = UINT64_C(1) << 21;
    struct ear e;
    zarr_diff_options o = options(&e);
    zarr_diff_result r = ZARR_DIFF_RESULT_INIT;
    struct world w;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    zarr_array_free(make_array(&w, "a", 3, huge, huge));
    zarr_array_free(make_array(&w, "b", 3, huge, huge));
    set_at(&w, "a", huge - 1, 5, 8);
    set_at(&w, "b", 7, huge - 3, 9);
    assert_ok(zarr_node_diff(w.store, "a", w.store, "b", &r, &o, &terr));
    assert_int_equal(r.n_elements, huge * huge);
    assert_int_equal(r.n_elements_different, 2);
    assert_int_equal(e.item[0].index[0], 7);
    assert_int_equal(e.item[0].index[1], huge - 3);
    assert_int_equal(e.item[1].index[0], huge - 1);
    assert_int_equal(e.last.bytes_done, 4 * huge * huge);
    world_close(&w);
}

/* The k-th allocation fails, once and then with all later ones. */
static void fail_allocations(const char *a, const char *b, bool forever,
                             uint64_t different)
{
    bool reached = true;
    int64_t k = 1;

    for (; reached; k += ZR_FAIL_STEP(k)) {
        zarr_diff_result r = ZARR_DIFF_RESULT_INIT;
        struct world w;
        struct ear e;
        zarr_diff_options o = options(&e);
        zarr_status st;

        o.flags = ZARR_DIFF_STORAGE;
        world_open(&w, WORLD_MEMORY);
        make_tree(&w, "a");
        make_typed_array(&w, "b", "int32", 4, "{\"u\": \"km\"}", "x");
        make_typed_array(&w, "c", "int32", 2, "{\"u\": \"m\"}", NULL);
        zarr_context_trim(w.ctx);
        w.forever = forever;
        atomic_store(&w.fail_at, k);
        st = zarr_node_diff(w.store, a, w.store, b, &r, &o, &terr);
        reached = atomic_load(&w.fail_at) == forever;
        atomic_store(&w.fail_at, 0);
        if (st != ZARR_OK)
            assert_int_equal(st, ZARR_ERR_NO_MEMORY);
        else
            assert_int_equal(r.n_different, different);
        world_close(&w);
    }
    assert_true(k > 10);
}

static void test_no_memory(void **state)
{
    (void)state;
    for (int forever = 0; forever < 2; forever++) {
        fail_allocations("a", "a", forever, 0);
        fail_allocations("b", "c", forever, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal),     cmocka_unit_test(test_elements),
        cmocka_unit_test(test_regions),   cmocka_unit_test(test_properties),
        cmocka_unit_test(test_nodes),     cmocka_unit_test(test_failures),
        cmocka_unit_test(test_cancel),    cmocka_unit_test(test_sparse),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests_name("diff", tests, NULL, NULL);
}
