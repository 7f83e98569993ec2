/*
 * unit/tree/test_composite.c - a store made of two: documents in one, chunks in the
 * other. All calls on nodes work on it as on any store, and each part gets its own keys.
 */
#include "unit/array/array_test.h"

#include <stdbool.h>

struct parts {
    zarr_store *docs, *chunks;
};

static bool is_document(const char *key)
{
    const char *slash = strrchr(key, '/'), *name = slash ? slash + 1 : key;

    return strcmp(name, "zarr.json") == 0 || strncmp(name, ".z", 2) == 0;
}

struct count {
    int documents, others;
};

static int count_item(void *user, const zarr_store_item *item)
{
    struct count *c = user;

    if (is_document(item->key))
        c->documents++;
    else
        c->others++;
    return 0;
}

static struct count count_all(zarr_store *s, const char *prefix)
{
    struct count c = {0, 0};

    assert_ok(
        zarr_store_list(s, prefix, ZARR_LIST_RECURSIVE, count_item, &c, NULL, &terr));
    return c;
}

/* The documents are in memory, the chunks in a store of this sort. */
static void open_world(struct world *w, struct parts *p, enum world_sort sort)
{
    world_open(w, sort);
    p->chunks = w->store;
    assert_ok(zarr_store_open(&p->docs, w->ctx, "memory:", NULL, &terr));
    w->store = NULL;
    assert_ok(zarr_store_open_composite(&w->store, p->docs, p->chunks, NULL, &terr));
}

static void close_world(struct world *w, struct parts *p)
{
    zarr_store_free(p->docs);
    zarr_store_free(p->chunks);
    world_close(w);
}

static void make_tree(struct world *w)
{
    zarr_group *g = NULL;
    char path[16];

    assert_ok(group_create(&g, w->store, "g", 3, NULL, 0, &terr));
    zarr_group_free(g);
    for (int kind = 3; kind <= 4; kind++) {
        zarr_array *a;

        snprintf(path, sizeof path, "g/k%d", kind);
        a = make_array(w, path, kind, 6, 7);
        fill_array(a);
        assert_ok(zarr_array_attribute_set(a, "k", "1", NULL, &terr));
        zarr_array_free(a);
    }
}

static void check_tree(zarr_store *s, const char *top)
{
    zarr_verify_result found = ZARR_VERIFY_RESULT_INIT;
    uint64_t n = 0, bytes = 0, sum = 0;
    zarr_array *a = NULL;
    char path[16];

    for (int kind = 3; kind <= 4; kind++) {
        snprintf(path, sizeof path, "%s/k%d", top, kind);
        assert_ok(zarr_array_open(&a, s, path, NULL, &terr));
        assert_int_equal(count_wrong(a, 6, 7), 0);
        assert_ok(zarr_array_count_stored(a, &n, &bytes, NULL, &terr));
        assert_int_equal(n, kind == 3 ? 12 : 4);
        sum += bytes;
        assert_ok(zarr_array_count_stored(a, NULL, NULL, NULL, &terr));
        zarr_array_free(a);
    }
    assert_ok(zarr_node_verify(s, top, &found, NULL, &terr));
    assert_int_equal(found.n_errors, 0);
    assert_int_equal(found.n_arrays, 2);
    assert_int_equal(found.n_groups, 1);
    assert_int_equal(found.n_objects, 12 + 4);
    assert_int_equal(found.n_bytes, sum);
}

static void nodes(void **state)
{
    struct world w;
    struct parts p;

    (void)state;
    for (enum world_sort sort = 0; sort < N_WORLDS; sort++) {
        zarr_store *plain = NULL;
        struct count n;

        open_world(&w, &p, sort);
        make_tree(&w);
        check_tree(w.store, "g");
        assert_ok(consolidate_at(w.store, "g", NULL, &terr));
        n = count_all(p.docs, "");
        assert_int_equal(n.documents, 4); /* the root as well */
        assert_int_equal(n.others, 0);
        n = count_all(p.chunks, "");
        assert_int_equal(n.documents, 0);
        assert_int_equal(n.others, 12 + 4);
        n = count_all(w.store, "g");
        assert_int_equal(n.documents, 3);
        assert_int_equal(n.others, 12 + 4);
        /* within the store, out of it and into it */
        assert_ok(zarr_node_copy(w.store, "g", w.store, "h", NULL, &terr));
        check_tree(w.store, "h");
        assert_ok(zarr_store_open(&plain, w.ctx, "memory:", NULL, &terr));
        assert_ok(zarr_node_copy(w.store, "h", plain, "x", NULL, &terr));
        check_tree(plain, "x");
        assert_ok(zarr_node_copy(plain, "x", w.store, "i", NULL, &terr));
        check_tree(w.store, "i");
        zarr_store_free(plain);
        assert_ok(zarr_node_move(w.store, "i", w.store, "j", NULL, &terr));
        check_tree(w.store, "j");
        assert_int_equal(count_all(w.store, "i").documents, 0);
        assert_ok(zarr_node_delete(w.store, "g", &terr));
        assert_ok(zarr_node_delete(w.store, "h", &terr));
        assert_ok(zarr_node_delete(w.store, "j", &terr));
        n = count_all(w.store, "");
        assert_int_equal(n.documents, 1); /* the root */
        assert_int_equal(n.others, 0);
        close_world(&w, &p);
    }
}

static void resize_array(void **state)
{
    const uint64_t small[2] = {3, 3};
    struct world w;
    struct parts p;
    zarr_array *a;

    (void)state;
    for (enum world_sort sort = 0; sort < N_WORLDS; sort++) {
        open_world(&w, &p, sort);
        a = make_array(&w, "a", 2, 6, 7);
        fill_array(a);
        assert_ptr_equal(zarr_array_store(a), w.store);
        assert_ptr_equal(zarr_array_chunk_store(a), p.chunks);
        assert_ok(zarr_array_resize(a, small, 0, &terr));
        assert_int_equal(count_wrong(a, 3, 3), 0);
        assert_int_equal(count_all(p.chunks, "a").others, 4);
        zarr_array_free(a);
        a = make_array(&w, "b", 3, 2, 2);
        zarr_array_free(a);
        close_world(&w, &p);
    }
}

/* A group has no chunks, so it moves in one step; an array is copied. */
static void rename_nodes(void **state)
{
    struct world w;
    struct parts p;
    zarr_group *g = NULL;

    (void)state;
    open_world(&w, &p, WORLD_MEMORY);
    assert_ok(group_create(&g, w.store, "g/sub", 3, NULL, 0, &terr));
    zarr_group_free(g);
    assert_ok(zarr_node_move(w.store, "g", w.store, "h", NULL, &terr));
    assert_non_null(get_text(&w, "h/sub/zarr.json"));
    assert_null(get_text(&w, "g/zarr.json"));
    close_world(&w, &p);
}

static int count_prefix(void *user, const zarr_store_item *item)
{
    *(int *)user += item->is_prefix ? 100 : 1;
    return 0;
}

static int stop_at_once(void *user, const zarr_store_item *item)
{
    (void)item;
    ++*(int *)user;
    return 1;
}

static void listing(void **state)
{
    struct world w;
    struct parts p;
    int n = 0;

    (void)state;
    open_world(&w, &p, WORLD_LOCAL);
    put_text(&w, "a/zarr.json", "{}");
    put_text(&w, "a/c/0", "x");
    put_text(&w, "zarr.json", "{}");
    put_text(&w, "note", "x");
    assert_ok(
        zarr_store_list(w.store, "", ZARR_LIST_DIRECTORY, count_prefix, &n, NULL, &terr));
    assert_int_equal(n, 102); /* one prefix "a" and two keys */
    n = 0;
    assert_ok(
        zarr_store_list(w.store, "", ZARR_LIST_RECURSIVE, stop_at_once, &n, NULL, &terr));
    assert_int_equal(n, 1);
    /* The same key in the other store is not seen. */
    assert_ok(zarr_store_put(p.chunks, "b/zarr.json", "{}", 2, NULL, &terr));
    assert_ok(zarr_store_put(p.docs, "b/c/0", "x", 1, NULL, &terr));
    assert_null(get_text(&w, "b/zarr.json"));
    assert_null(get_text(&w, "b/c/0"));
    n = count_all(w.store, "b").documents + count_all(w.store, "b").others;
    assert_int_equal(n, 0);
    assert_string_equal(get_text(&w, "note"), "x");
    close_world(&w, &p);
}

static void refuse_nodes(void **state)
{
    zarr_store_options o = ZARR_STORE_OPTIONS_INIT;
    zarr_context *ctx = NULL;
    zarr_store *s = NULL, *far = NULL;
    zarr_array *a;
    struct world w;
    struct parts p;
    int overlap = 0;
    const uint64_t shape[2] = {6, 7};
    int32_t elements[42] = {0};
    zarr_tensor t = ZARR_TENSOR_INIT;

    (void)state;
    open_world(&w, &p, WORLD_MEMORY);
    make_tree(&w);
    assert_int_equal(zarr_store_open_composite(&s, p.docs, NULL, NULL, &terr),
                     ZARR_ERR_INVALID);
    assert_int_equal(zarr_store_open_composite(&s, p.docs, p.docs, NULL, &terr),
                     ZARR_ERR_INVALID);
    assert_int_equal(zarr_store_open_composite(&s, w.store, p.docs, NULL, &terr),
                     ZARR_ERR_INVALID);
    o.durability = ZARR_DURABILITY_EACH;
    assert_int_equal(zarr_store_open_composite(&s, p.docs, p.chunks, &o, &terr),
                     ZARR_ERR_INVALID);
    assert_ok(zarr_context_create(&ctx, NULL, &terr));
    assert_ok(zarr_store_open(&far, ctx, "memory:", NULL, &terr));
    assert_int_equal(zarr_store_open_composite(&s, p.docs, far, NULL, &terr),
                     ZARR_ERR_INVALID);
    zarr_store_free(far);
    zarr_context_free(ctx);
    /* An array of a read-only store does not write, although the parts could. */
    o.durability = 0;
    o.flags = ZARR_STORE_READ_ONLY;
    assert_ok(zarr_store_open_composite(&s, p.docs, p.chunks, &o, &terr));
    check_tree(s, "g");
    assert_ok(zarr_array_open(&a, s, "g/k3", NULL, &terr));
    t.ndim = 2;
    t.shape = shape;
    t.data = elements;
    assert_int_equal(zarr_array_write(a, NULL, &t, NULL, &terr), ZARR_ERR_INVALID);
    zarr_array_free(a);
    /* A part and the whole have keys in common. */
    assert_ok(zarr_store_overlap(s, "g", p.chunks, "g/k3", &overlap, &terr));
    assert_int_equal(overlap, 1);
    assert_ok(zarr_store_overlap(p.docs, "", s, "g", &overlap, &terr));
    assert_int_equal(overlap, 1);
    assert_ok(zarr_store_overlap(s, "g", w.store, "h", &overlap, &terr));
    assert_int_equal(overlap, 0);
    zarr_store_free(s);
    close_world(&w, &p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes),        cmocka_unit_test(resize_array),
        cmocka_unit_test(rename_nodes), cmocka_unit_test(listing),
        cmocka_unit_test(refuse_nodes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
