/*
 * unit/array/test_shape.c - resize and append: the elements visible afterwards, the
 * objects left in the store, what is refused, and that elements cut off do not come
 * back.
 */
#include "array_test.h"

static const int kinds[] = {2, 3, 4};

static void test_resize(void **state)
{
    const uint64_t small[2] = {5, 3}, large[2] = {9, 11}, first[2] = {6, 7};
    struct world w;
    zarr_array *a = NULL, *b = NULL;
    int changed = 0;

    (void)state;
    for (enum world_sort sort = 0; sort < N_WORLDS; sort++)
        for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
            world_open(&w, sort);
            a = make_array(&w, "x", kinds[k], 6, 7);
            assert_ok(zarr_array_open(&b, w.store, "x", NULL, &terr));
            assert_ok(zarr_array_attribute_set(b, "keep", "2.50", NULL, &terr));
            fill_array(a);
            assert_ok(zarr_array_resize(a, small, NULL, &terr));
            assert_int_equal(zarr_array_shape(a)[1], 3);
            assert_int_equal(zarr_array_shape(b)[1], 7); /* until it is refreshed */
            assert_ok(zarr_array_refresh(b, &changed, NULL, &terr));
            assert_int_equal(changed, 1);
            assert_int_equal(count_wrong(b, 5, 3), 0);
            assert_ok(zarr_array_resize(a, large, NULL, &terr));
            /* No old element came back. */
            assert_int_equal(count_wrong(a, 5, 3), 0);
            /* b has an outdated shape, which is allowed. */
            assert_ok(zarr_array_resize(b, first, NULL, &terr));
            assert_int_equal(count_wrong(b, 5, 3), 0);
            assert_non_null(strstr(zarr_array_attributes(b), "2.50"));
            zarr_array_free(a);
            zarr_array_free(b);
            world_close(&w);
        }
}

static void test_resize_leaves(void **state)
{
    const uint64_t none[2] = {0, 4}, back[2] = {4, 4}, rank[2] = {2, 2};
    struct world w;
    zarr_array *a = NULL;

    (void)state;
    world_open(&w, WORLD_LOCAL);
    a = make_array(&w, "x", 3, 4, 4);
    fill_array(a);
    assert_int_equal(n_keys(&w, "x"), 1 + 4);
    assert_ok(zarr_array_resize(
        a, rank,
        &(const zarr_shape_options){.struct_size = sizeof(zarr_shape_options),
                                    .flags = ZARR_RESIZE_KEEP_CHUNKS},
        &terr));
    assert_int_equal(n_keys(&w, "x"), 1 + 4);
    assert_ok(zarr_array_resize(a, back, NULL, &terr));
    assert_int_equal(count_wrong(a, 4, 4), 0); /* the chunk was kept */
    assert_ok(zarr_array_resize(a, none, NULL, &terr));
    assert_int_equal(n_keys(&w, "x"), 1);
    assert_ok(zarr_array_resize(a, back, NULL, &terr));
    assert_int_equal(count_wrong(a, 0, 0), 0);
    assert_status(
        zarr_array_resize(a, back,
                          &(const zarr_shape_options){
                              .struct_size = sizeof(zarr_shape_options), .flags = 8},
                          &terr),
        ZARR_ERR_UNSUPPORTED);
    zarr_array_free(a);
    world_close(&w);
}

/* With too many chunks to try one by one, the listing of the store finds the existing
 * ones. */
static void test_resize_sparse(void **state)
{
    const uint64_t huge[2] = {UINT64_C(1) << 40, 6}, small[2] = {3, 3};
    struct world w;
    zarr_array *a = NULL;

    (void)state;
    for (enum world_sort sort = 0; sort < N_WORLDS; sort++) {
        world_open(&w, sort);
        a = make_array(&w, "x", 3, 8, 6);
        fill_array(a);
        assert_ok(zarr_array_resize(a, huge, NULL, &terr));
        assert_int_equal(read_at(a, huge[0] - 1, 5), -1);
        assert_int_equal(read_at(a, 7, 5), 7005);
        assert_ok(zarr_array_resize(a, small, NULL, &terr));
        assert_int_equal(n_keys(&w, "x"), 1 + 4);
        assert_ok(zarr_array_resize(a, huge, NULL, &terr));
        assert_int_equal(read_at(a, 3, 0), -1);
        assert_int_equal(read_at(a, 2, 3), -1);
        assert_int_equal(read_at(a, 2, 2), 2002);
        zarr_array_free(a);
        world_close(&w);
    }
}

static void test_append(void **state)
{
    struct world w;
    zarr_array *a = NULL, *b = NULL;
    int32_t rows[3 * 5];
    uint64_t shape[2] = {0, 5}, bad[2] = {3, 4};
    uint64_t n = 3;
    zarr_tensor t;

    (void)state;
    for (enum world_sort sort = 0; sort < N_WORLDS; sort++)
        for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
            world_open(&w, sort);
            a = make_array(&w, "x", kinds[k], 3, 5);
            fill_array(a);
            assert_ok(zarr_array_open(&b, w.store, "x", NULL, &terr));
            n = 3;
            for (int turn = 0; turn < 5; turn++) { /* by both handles in turn */
                shape[0] = (uint64_t)turn % 4;
                for (uint64_t i = 0; i < shape[0] * 5; i++)
                    rows[i] = (int32_t)((n + i / 5) * 1000 + i % 5);
                zarr_tensor_host(&t, NULL, rows, sizeof rows, 2, shape);
                assert_ok(zarr_array_append(turn % 2 ? a : b, 0, &t, NULL, NULL, &terr));
                n += (uint64_t)shape[0];
                assert_int_equal(zarr_array_shape(turn % 2 ? a : b)[0], n);
            }
            assert_ok(zarr_array_refresh(a, NULL, NULL, &terr));
            assert_int_equal(count_wrong(a, n, 5), 0);
            zarr_tensor_host(&t, NULL, rows, sizeof rows, 2, bad);
            assert_status(zarr_array_append(a, 0, &t, NULL, NULL, &terr),
                          ZARR_ERR_INVALID);
            assert_says("/x: dimension 1");
            assert_status(zarr_array_append(a, 2, &t, NULL, NULL, &terr),
                          ZARR_ERR_INVALID);
            zarr_array_free(a);
            zarr_array_free(b);
            world_close(&w);
        }
}

static void test_append_second_axis(void **state)
{
    struct world w;
    zarr_array *a = NULL;
    const uint64_t shape[2] = {3, 2};
    int32_t cols[6];
    zarr_tensor t;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    a = make_array(&w, "x", 4, 3, 3);
    fill_array(a);
    for (int i = 0; i < 6; i++)
        cols[i] = i / 2 * 1000 + 3 + i % 2;
    zarr_tensor_host(&t, NULL, cols, sizeof cols, 2, shape);
    assert_ok(zarr_array_append(a, 1, &t, NULL, NULL, &terr));
    assert_int_equal(zarr_array_shape(a)[1], 5);
    assert_int_equal(count_wrong(a, 3, 5), 0);
    zarr_array_free(a);
    world_close(&w);
}

/* Memory returned by getters stays valid when the handle changes. */
static void test_lent(void **state)
{
    struct world w;
    zarr_array *a = NULL;
    const uint64_t small[2] = {2, 3}, *shape = NULL, *chunk = NULL;
    const char *attributes = NULL, *document = NULL;
    const int32_t *fill = NULL;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    a = make_array(&w, "x", 4, 6, 7);
    shape = zarr_array_shape(a);
    chunk = zarr_array_chunk_shape(a);
    fill = zarr_array_fill_value(a);
    attributes = zarr_array_attributes(a);
    document = zarr_array_metadata(a);
    assert_ptr_equal(attributes, zarr_array_attributes(a));
    assert_ok(zarr_array_resize(a, small, NULL, &terr));
    assert_ok(zarr_array_attribute_set(a, "k", "1", NULL, &terr));
    assert_int_equal(shape[1], 7);
    assert_int_equal(chunk[1], 2);
    assert_int_equal(*fill, -1);
    assert_string_equal(attributes, "{}");
    assert_non_null(strstr(document, "\"shape\""));
    assert_int_equal(zarr_array_shape(a)[1], 3);
    assert_string_equal(zarr_array_attributes(a), "{\n  \"k\": 1\n}");
    zarr_array_free(a);
    world_close(&w);
}

static void test_read_only(void **state)
{
    const uint64_t small[2] = {2, 2};
    const zarr_store_options opts = {.struct_size = sizeof opts,
                                     .flags = ZARR_STORE_READ_ONLY};
    const uint64_t one[2] = {1, 4};
    struct world w;
    zarr_store *store = NULL;
    zarr_array *a = NULL, *b = NULL;
    zarr_group *g = NULL;
    int32_t row[4] = {0};
    zarr_tensor t;

    (void)state;
    world_open(&w, WORLD_LOCAL);
    a = make_array(&w, "x", 3, 4, 4);
    fill_array(a);
    zarr_array_free(a);
    assert_ok(zarr_store_open(&store, w.ctx, w.dir, &opts, &terr));
    assert_ok(zarr_array_open(&a, store, "x", NULL, &terr));
    assert_int_equal(count_wrong(a, 4, 4), 0);
    zarr_tensor_host(&t, NULL, row, sizeof row, 2, one);
    assert_status(zarr_array_resize(a, small, NULL, &terr), ZARR_ERR_INVALID);
    assert_status(zarr_array_append(a, 0, &t, NULL, NULL, &terr), ZARR_ERR_INVALID);
    assert_status(zarr_array_attribute_set(a, "k", "1", NULL, &terr), ZARR_ERR_INVALID);
    assert_status(group_create(&g, store, "g", 3, NULL, 0, &terr), ZARR_ERR_INVALID);
    assert_status(zarr_node_delete(store, "x", &terr), ZARR_ERR_INVALID);
    assert_status(zarr_node_copy(store, "x", store, "y", NULL, &terr), ZARR_ERR_INVALID);
    assert_status(zarr_node_move(store, "x", w.store, "y", NULL, &terr),
                  ZARR_ERR_INVALID);
    assert_status(consolidate_at(store, "", NULL, &terr), ZARR_ERR_INVALID);
    assert_null(b);
    assert_int_equal(count_wrong(a, 4, 4), 0);
    zarr_array_free(a);
    zarr_store_free(store);
    world_close(&w);
}

/* Another node replaces an open array. */
static void test_replaced(void **state)
{
    const uint64_t shape[2] = {2, 2}, line[1] = {8};
    const zarr_array_spec spec = {.struct_size = sizeof spec,
                                  .flags = ZARR_SPEC_OVERWRITE,
                                  .ndim = 1,
                                  .shape = line,
                                  .data_type = "int8"};
    const uint64_t n = 1;
    char data[1] = {0};
    zarr_tensor t;
    struct world w;
    zarr_array *a = NULL, *b = NULL;
    zarr_group *g = NULL;

    (void)state;
    world_open(&w, WORLD_LOCAL);
    a = make_array(&w, "x", 3, 4, 4);
    assert_ok(zarr_array_create(&b, w.store, "x", &spec, NULL, &terr));
    zarr_array_free(b);
    assert_status(zarr_array_resize(a, shape, NULL, &terr), ZARR_ERR_CONFLICT);
    assert_says("rank");
    zarr_tensor_host(&t, NULL, data, sizeof data, 1, &n);
    assert_status(zarr_array_append(a, 0, &t, NULL, NULL, &terr), ZARR_ERR_CONFLICT);
    assert_says("rank");
    assert_ok(group_create(&g, w.store, "x", 3, NULL, ZARR_GROUP_OVERWRITE, &terr));
    zarr_group_free(g);
    assert_int_not_equal(zarr_array_resize(a, shape, NULL, &terr), ZARR_OK);
    assert_status(zarr_array_attribute_set(a, "k", "1", NULL, &terr), ZARR_ERR_CONFLICT);
    assert_ok(zarr_node_delete(w.store, "x", &terr));
    assert_status(zarr_array_resize(a, shape, NULL, &terr), ZARR_ERR_NOT_FOUND);
    assert_status(zarr_array_refresh(a, NULL, NULL, &terr), ZARR_ERR_NOT_FOUND);
    assert_int_equal(zarr_array_shape(a)[0], 4); /* the handle is unchanged */
    zarr_array_free(a);
    world_close(&w);
}

/* That nothing stays in the handle is a test of the Python package (test_leaks.py). */
static void test_copied(void **state)
{
    uint64_t shape[2], chunk[2], write[2];
    struct world w;
    zarr_array *a = NULL;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    a = make_array(&w, "x", 4, 6, 7);
    for (uint64_t n = 0; n < 8; n++) {
        const uint64_t want[2] = {6 + n % 4, 7};

        assert_ok(zarr_array_resize(a, want, NULL, &terr));
        zarr_array_copy_shapes(a, shape, chunk, write);
        assert_memory_equal(shape, want, sizeof want);
        assert_int_equal(chunk[0] + 10 * chunk[1], 22);
        assert_int_equal(write[0] + 10 * write[1], 44);
        zarr_array_copy_shapes(a, NULL, NULL, NULL);
    }
    zarr_array_free(a);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resize),
        cmocka_unit_test(test_resize_leaves),
        cmocka_unit_test(test_resize_sparse),
        cmocka_unit_test(test_append),
        cmocka_unit_test(test_append_second_axis),
        cmocka_unit_test(test_replaced),
        cmocka_unit_test(test_lent),
        cmocka_unit_test(test_copied),
        cmocka_unit_test(test_read_only),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
