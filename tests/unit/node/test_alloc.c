/*
 * unit/node/test_alloc.c - every operation with its k-th allocation failing,
 * once and from there on, for k = 1, 2, ... until it succeeds: the status says
 * "no memory", nothing leaks, and what is in the store can still be opened.
 */
#include "node_test.h"

typedef zarr_status (*scenario)(struct world *w, zarr_error *err);

static zarr_status open_array(struct world *w, zarr_error *err)
{
    zarr_array *a = NULL;
    zarr_status st = zarr_array_open(&a, w->store, "g/x", NULL, err);

    if (st == ZARR_OK &&
        (!zarr_array_metadata(a) || !zarr_array_attributes(a) || !zarr_array_codecs(a)))
        st = ZARR_ERR_NO_MEMORY; /* texts are made when asked for */
    zarr_array_free(a);
    return st;
}

static zarr_status open_old_array(struct world *w, zarr_error *err)
{
    zarr_array *a = NULL;
    zarr_status st = zarr_array_open(&a, w->store, "v2/x", NULL, err);

    zarr_array_free(a);
    return st;
}

static zarr_status create_of(struct world *w, int32_t format, zarr_error *err)
{
    const uint64_t shape[2] = {9, 9}, chunk[2] = {2, 2}, shard[2] = {4, 4};
    const char *const names[2] = {"y", NULL};
    const zarr_array_spec spec = {.struct_size = sizeof spec,
                                  .zarr_format = format,
                                  .ndim = 2,
                                  .shape = shape,
                                  .chunk_shape = chunk,
                                  .shard_shape = format == 3 ? shard : NULL,
                                  .data_type = "float64",
                                  .dimension_names = format == 3 ? names : NULL,
                                  .attributes = "{\"a\": [1, 2]}"};
    zarr_array *a = NULL;
    zarr_status st = zarr_array_create(&a, w->store, "new/deep/er", &spec, NULL, err);

    zarr_array_free(a);
    return st;
}

static zarr_status create_v3(struct world *w, zarr_error *err)
{
    return create_of(w, 3, err);
}

static zarr_status create_v2(struct world *w, zarr_error *err)
{
    return create_of(w, 2, err);
}

static zarr_status create_group(struct world *w, zarr_error *err)
{
    zarr_group *g = NULL;
    zarr_status st = zarr_group_create(&g, w->store, "ng/deep", 3, "{\"k\": 1}", 0, err);

    zarr_group_free(g);
    return st;
}

static zarr_status set_attribute(struct world *w, zarr_error *err)
{
    zarr_array *a = NULL;
    zarr_status st = zarr_array_open(&a, w->store, "g/x", NULL, err);

    if (st == ZARR_OK)
        st = zarr_array_attribute_set(a, "name", "{\"v\": [1, 2, 3]}", err);
    zarr_array_free(a);
    return st;
}

static zarr_status set_group_attribute(struct world *w, zarr_error *err)
{
    zarr_group *g = NULL;
    zarr_status st = zarr_group_open(&g, w->store, "v2", NULL, err);

    if (st == ZARR_OK)
        st = zarr_group_attributes_merge(g, "{\"v\": [1, 2, 3]}", 0, err);
    zarr_group_free(g);
    return st;
}

static int ignore_node(void *user, const zarr_node_item *n)
{
    (void)user;
    (void)n;
    return 0;
}

static zarr_status walk(struct world *w, zarr_error *err)
{
    zarr_group *g = NULL;
    zarr_status st = zarr_group_open(&g, w->store, "", NULL, err);

    if (st == ZARR_OK)
        st = zarr_group_walk(g, ignore_node, NULL, err);
    zarr_group_free(g);
    return st;
}

static zarr_status consolidate(struct world *w, zarr_error *err)
{
    zarr_group *g = NULL, *inner = NULL;
    zarr_array *a = NULL;
    zarr_status st = zarr_group_consolidate(w->store, "", NULL, err);

    if (st == ZARR_OK)
        st = zarr_group_open(&g, w->store, "", NULL, err);
    if (st == ZARR_OK)
        st = zarr_group_open_group(&inner, g, "g", NULL, err);
    if (st == ZARR_OK)
        st = zarr_group_open_array(&a, inner, "x", NULL, err);
    if (st == ZARR_OK)
        st = zarr_group_walk(g, ignore_node, NULL, err);
    zarr_array_free(a);
    zarr_group_free(inner);
    zarr_group_free(g);
    return st;
}

static zarr_status shrink(struct world *w, zarr_error *err)
{
    const uint64_t shape[2] = {3, 3};
    zarr_array *a = NULL;
    zarr_status st = zarr_array_open(&a, w->store, "g/x", NULL, err);

    if (st == ZARR_OK)
        st = zarr_array_resize(a, shape, 0, err);
    zarr_array_free(a);
    return st;
}

static zarr_status append(struct world *w, zarr_error *err)
{
    const int64_t shape[2] = {1, 6};
    int32_t row[6] = {0};
    zarr_tensor t;
    zarr_array *a = NULL;
    zarr_status st = zarr_array_open(&a, w->store, "g/x", NULL, err);

    zarr_tensor_host(&t, row, sizeof row, 2, shape);
    if (st == ZARR_OK)
        st = zarr_array_append(a, 0, &t, NULL, err);
    zarr_array_free(a);
    return st;
}

static int ignore_chunk(void *user, const zarr_chunk_info *c)
{
    (void)user;
    (void)c;
    return 0;
}

static int ignore_fault(void *user, const zarr_verify_item *item)
{
    (void)user;
    (void)item;
    return 0;
}

static zarr_status inspect(struct world *w, zarr_error *err)
{
    char text[512];
    size_t n = 0;
    zarr_array *a = NULL;
    zarr_status st = zarr_array_open(&a, w->store, "g/x", NULL, err);

    if (st == ZARR_OK)
        st = zarr_array_chunk_list(a, ZARR_CHUNKS_INNER, ignore_chunk, NULL, err);
    if (st == ZARR_OK)
        st = zarr_array_verify(a, ignore_fault, NULL, NULL, err);
    if (st == ZARR_OK)
        st = zarr_array_explain(a, 0, NULL, NULL, NULL, text, sizeof text, &n, err);
    zarr_array_free(a);
    return st;
}

static zarr_status copy_tree(struct world *w, zarr_error *err)
{
    return zarr_node_copy(w->store, "g", w->store, "other/g", NULL, err);
}

static zarr_status submit_read(struct world *w, zarr_error *err)
{
    const int64_t shape[2] = {6, 6};
    int32_t data[36];
    zarr_tensor t;
    zarr_request *rq = NULL;
    zarr_array *a = NULL;
    zarr_status st = zarr_array_open(&a, w->store, "g/x", NULL, err);

    zarr_tensor_host(&t, data, sizeof data, 2, shape);
    if (st == ZARR_OK)
        st = zarr_array_read_submit(&rq, a, NULL, &t, NULL, err);
    if (st == ZARR_OK)
        st = zarr_request_wait(rq, ZARR_WAIT_FOREVER, NULL, err);
    zarr_request_free(rq);
    zarr_array_free(a);
    return st;
}

/* ---- the loop ----------------------------------------------------------- */

static void prepare(struct world *w)
{
    zarr_array *a = NULL;

    world_open(w, WORLD_MEMORY);
    a = make_array(w, "g/x", 4, 6, 6);
    fill_array(a);
    assert_ok(zarr_array_attribute_set(a, "was", "1", &terr));
    zarr_array_free(a);
    zarr_array_free(make_array(w, "v2/x", 2, 6, 6));
}

/* What was there before the failing call is still whole. */
static void check_world(struct world *w)
{
    zarr_array *a = NULL;
    char text[8];

    assert_ok(zarr_array_open(&a, w->store, "g/x", NULL, &terr));
    assert_ok(zarr_array_attribute_get(a, "was", text, sizeof text, NULL, &terr));
    assert_int_equal(read_at(a, 2, 2), 2002);
    zarr_array_free(a);
}

static void loop(scenario run)
{
    for (int forever = 0; forever < 2; forever++)
        for (int k = 1;; k++) {
            struct world w;
            zarr_status st;
            int reached;

            prepare(&w);
            terr = (zarr_error){0};
            w.forever = forever;
            atomic_store(&w.fail_at, k);
            st = run(&w, &terr);
            reached =
                forever ? atomic_load(&w.fail_at) <= 1 : atomic_load(&w.fail_at) <= 0;
            atomic_store(&w.fail_at, 0);
            if (st != ZARR_OK && st != ZARR_ERR_NO_MEMORY)
                fail_msg("k %d, forever %d: %s: %s", k, forever, zarr_status_text(st),
                         terr.message);
            if (st != ZARR_OK && !reached)
                fail_msg("k %d: fails without a failing allocation: %s", k, terr.message);
            check_world(&w);
            world_close(&w);
            if (!reached) {
                assert_true(k > 5);
                break;
            }
        }
}

#define LOOP(name)                                                                       \
    static void test_##name(void **state)                                                \
    {                                                                                    \
        (void)state;                                                                     \
        loop(name);                                                                      \
    }
LOOP(open_array)
LOOP(open_old_array)
LOOP(create_v3)
LOOP(create_v2)
LOOP(create_group)
LOOP(set_attribute)
LOOP(set_group_attribute)
LOOP(walk)
LOOP(consolidate)
LOOP(shrink)
LOOP(append)
LOOP(inspect)
LOOP(copy_tree)
LOOP(submit_read)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open_array),
        cmocka_unit_test(test_open_old_array),
        cmocka_unit_test(test_create_v3),
        cmocka_unit_test(test_create_v2),
        cmocka_unit_test(test_create_group),
        cmocka_unit_test(test_set_attribute),
        cmocka_unit_test(test_set_group_attribute),
        cmocka_unit_test(test_walk),
        cmocka_unit_test(test_consolidate),
        cmocka_unit_test(test_shrink),
        cmocka_unit_test(test_append),
        cmocka_unit_test(test_inspect),
        cmocka_unit_test(test_copy_tree),
        cmocka_unit_test(test_submit_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
