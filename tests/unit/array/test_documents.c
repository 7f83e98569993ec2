/*
 * unit/array/test_documents.c - arrays without a store, known by their text; shapes that
 * the grid bounds; second handles with other options.
 */
#include "caller_chunks_test.h"

/* ---- arrays without a store ---------------------------------------------- */

static void test_documents(void **state)
{
    static const char *const wrong[] = {"", "[]", "{", "{\"zarr_format\":4}",
                                        "{\"zarr_format\":3,\"node_type\":\"array\"}"};
    const uint64_t shape[] = {20, 20};
    zarr_array *a = NULL;
    int16_t v[N];
    zarr_tensor t = host_tensor(v, whole);

    (void)state;
    open_one(0);
    assert_string_equal(zarr_array_path(one_free), "x/y");
    assert_string_equal(zarr_array_metadata(one_free), zarr_array_metadata(one));
    assert_status(zarr_array_read(one_free, NULL, &t, NULL, &terr), ZARR_ERR_UNSUPPORTED);
    assert_says("without a store");
    assert_status(zarr_array_write(one_free, NULL, &t, NULL, &terr),
                  ZARR_ERR_UNSUPPORTED);
    assert_says("without a store");
    assert_int_not_equal(zarr_array_resize(one_free, shape, NULL, &terr), ZARR_OK);
    assert_int_not_equal(zarr_array_refresh(one_free, NULL, NULL, &terr), ZARR_OK);
    assert_int_not_equal(zarr_array_attribute_set(one_free, "a", "1", NULL, &terr),
                         ZARR_OK);
    assert_int_not_equal(
        zarr_array_list_blocks(one_free, ZARR_BLOCKS_STORED, NULL, NULL, NULL, &terr),
        ZARR_OK);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_status(
            zarr_array_open_document(&a, w.ctx, wrong[i], NULL, NULL, NULL, NULL, &terr),
            ZARR_ERR_CORRUPT);
        assert_null(a);
    }
    assert_status(
        zarr_array_open_document(&a, w.ctx, NULL, NULL, NULL, NULL, NULL, &terr),
        ZARR_ERR_INVALID);
    assert_status(zarr_array_open_document(&a, w.ctx,
                                           "{\"zarr_format\":3,\"node_type\":\"group\"}",
                                           NULL, NULL, NULL, NULL, &terr),
                  ZARR_ERR_NOT_FOUND);
    assert_status(
        zarr_array_open_document(&a, w.ctx, documents[0], "{}", NULL, NULL, NULL, &terr),
        ZARR_ERR_INVALID);
    assert_ok(zarr_array_open_document(&a, w.ctx, documents[8], "{\"units\":\"K\"}", NULL,
                                       NULL, NULL, &terr));
    assert_string_equal(zarr_array_attributes(a), "{\n  \"units\": \"K\"\n}");
    zarr_array_free(a);
    /* with a store, as an array that was opened */
    assert_ok(zarr_array_open_document(&a, w.ctx, zarr_array_metadata(one), NULL,
                                       "/x//y/", w.store, NULL, &terr));
    assert_ok(zarr_array_read(a, NULL, &t, NULL, &terr));
    assert_int_equal(v[5], (int16_t)(5 * 331 + 3));
    zarr_array_free(a);
    close_one();
}

/* A document that the store has: the array is missed once it is gone. */
static void test_stored_document(void **state)
{
    const zarr_array_open_options o = {.struct_size = sizeof o,
                                       .flags = ZARR_OPEN_STORED};
    zarr_array *a = NULL, *b = NULL;
    int16_t v[N];
    zarr_tensor t = host_tensor(v, whole);

    (void)state;
    for (int document = 0; document < 10; document++) {
        const char *path;

        open_one(document);
        path = zarr_array_path(one);
        assert_status(zarr_array_open_document(&a, w.ctx, zarr_array_metadata(one), NULL,
                                               path, NULL, &o, &terr),
                      ZARR_ERR_INVALID);
        assert_says("ZARR_OPEN_STORED");
        assert_ok(zarr_array_open_document(&a, w.ctx, zarr_array_metadata(one), NULL,
                                           path, w.store, &o, &terr));
        assert_ok(zarr_array_open_document(&b, w.ctx, zarr_array_metadata(one), NULL,
                                           path, w.store, NULL, &terr));
        assert_ok(zarr_array_recheck(a, NULL, &terr));
        assert_ok(zarr_array_read(a, NULL, &t, NULL, &terr));
        assert_int_equal(v[5], (int16_t)(5 * 331 + 3));
        assert_ok(zarr_node_delete(w.store, path, &terr));
        assert_status(zarr_array_recheck(a, NULL, &terr), ZARR_ERR_NOT_FOUND);
        assert_status(zarr_array_read(a, NULL, &t, NULL, &terr), ZARR_ERR_NOT_FOUND);
        assert_ok(zarr_array_recheck(b, NULL, &terr));
        assert_ok(zarr_array_read(b, NULL, &t, NULL, &terr));
        zarr_array_free(a);
        zarr_array_free(b);
        close_one();
    }
}

/* numcodecs rounds floats only. Such an array of integers can be read, because decoding
 * changes nothing; a write would round them as if they were floats. */
static void test_filter_that_only_decodes(void **state)
{
    static const char document[] = "{\"zarr_format\":2,\"shape\":[4],\"chunks\":[4],"
                                   "\"dtype\":\"<i4\",\"fill_value\":0,"
                                   "\"order\":\"C\",\"compressor\":null,\"filters\":[{"
                                   "\"id\":\"bitround\",\"keepbits\":3}"
                                   "]}";
    static const uint8_t chunk[16] = {100, 0, 0, 0, 101, 0, 0, 0, 102, 0, 0, 0, 103};
    int32_t v[4] = {0};
    const uint64_t dims[1] = {4};
    const zarr_tensor t = {.struct_size = sizeof t,
                           .device_type = ZARR_DEVICE_CPU,
                           .ndim = 1,
                           .data = v,
                           .shape = dims,
                           .data_bytes = sizeof v};
    zarr_array *a = NULL;

    (void)state;
    open_one(0);
    assert_ok(zarr_store_put(w.store, "round/.zarray", document, strlen(document), NULL,
                             &terr));
    assert_ok(zarr_store_put(w.store, "round/0", chunk, sizeof chunk, NULL, &terr));
    assert_ok(zarr_array_open(&a, w.store, "round", NULL, &terr));
    assert_ok(zarr_array_read(a, NULL, &t, NULL, &terr));
    for (int i = 0; i < 4; i++)
        assert_int_equal(v[i], 100 + i);
    assert_status(zarr_array_write(a, NULL, &t, NULL, &terr), ZARR_ERR_UNSUPPORTED);
    assert_says("not write them");
    zarr_array_free(a);
    close_one();
}

/* ---- shapes of the grid -------------------------------------------------- */

/* Another handle grows the array; the old document still reads and changes all of it. */
static void test_grid_shape(void **state)
{
    const zarr_array_open_options o = {.struct_size = sizeof o,
                                       .flags = ZARR_OPEN_GRID_SHAPE};
    const uint64_t grown[] = {30, 7}, at[] = {25, 5}, n[] = {2, 2};
    int16_t v[] = {1, 2, 3, 4}, got[4];
    zarr_array *a = NULL, *b = NULL;
    zarr_selection *sel = NULL;
    zarr_tensor t = host_tensor(v, (const uint64_t[]){2, 2});
    zarr_tensor u = host_tensor(got, (const uint64_t[]){2, 2});

    (void)state;
    for (int document = 0; document < 10; document++) {
        const bool bounded = document == 7; /* rectilinear */

        open_one(document);
        assert_ok(zarr_array_open_document(&a, w.ctx, zarr_array_metadata(one), NULL,
                                           "x/y", w.store, &o, &terr));
        assert_true(zarr_array_shape(a)[0] >= 9);
        assert_int_equal(zarr_array_shape(a)[0] > (UINT64_C(1) << 60), !bounded);
        assert_ok(zarr_array_with(&b, one, &o, &terr));
        assert_int_equal(zarr_array_shape(b)[0], zarr_array_shape(a)[0]);
        if (!bounded) {
            assert_ok(zarr_array_resize(one, grown, NULL, &terr));
            assert_ok(zarr_selection_box(&sel, 2, zarr_array_shape(a), at, n, &terr));
            assert_ok(zarr_array_write(a, sel, &t, NULL, &terr));
            assert_ok(zarr_array_read(b, sel, &u, NULL, &terr));
            assert_memory_equal(v, got, sizeof v);
            zarr_selection_free(sel);
            assert_ok(zarr_selection_box(&sel, 2, grown, at, n, &terr));
            assert_ok(zarr_array_read(one, sel, &u, NULL, &terr));
            assert_memory_equal(v, got, sizeof v);
            zarr_selection_free(sel);
        }
        assert_status(zarr_array_resize(a, grown, NULL, &terr), ZARR_ERR_INVALID);
        assert_status(zarr_array_refresh(a, NULL, NULL, &terr), ZARR_ERR_INVALID);
        assert_status(zarr_array_append(a, 0, &t, NULL, NULL, &terr), ZARR_ERR_INVALID);
        assert_status(zarr_array_attribute_set(b, "a", "1", NULL, &terr),
                      ZARR_ERR_INVALID);
        assert_says("ZARR_OPEN_GRID_SHAPE");
        zarr_array_free(a);
        zarr_array_free(b);
        close_one();
    }
    world_open(&w, WORLD_MEMORY);
    one = stored_array(documents[0]);
    assert_status(zarr_array_open(&a, w.store, "x/y", &o, &terr), ZARR_ERR_UNSUPPORTED);
    zarr_array_free(one);
    world_close(&w);
}

/* A list of equal edges ends, although its chunks are those of a regular grid. */
static void test_grid_shape_of_equal_edges(void **state)
{
    const zarr_array_open_options o = {.struct_size = sizeof o,
                                       .flags = ZARR_OPEN_GRID_SHAPE};
    const uint64_t ends[] = {9, 7};
    zarr_array *a = NULL;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    assert_ok(zarr_array_open_document(
        &a, w.ctx,
        V3("{\"name\":\"rectilinear\",\"configuration\":{\"kind\":\"inline\","
           "\"chunk_shapes\":[[3,3,3],[7]]}}",
           "1", LITTLE),
        NULL, NULL, NULL, &o, &terr));
    assert_memory_equal(zarr_array_shape(a), ends, sizeof ends);
    zarr_array_free(a);
    world_close(&w);
}

/* ---- second handles ------------------------------------------------------ */

static void test_with(void **state)
{
    zarr_array_open_options o = {.struct_size = sizeof o,
                                 .missing_chunks = ZARR_MISSING_ERROR,
                                 .pipeline = "serial"};
    zarr_store *other = NULL;
    zarr_array *a = NULL, *b = NULL;
    int16_t v[N];
    zarr_tensor t = host_tensor(v, whole);

    (void)state;
    for (int document = 0; document < 10; document++) {
        open_one(document);
        assert_ok(zarr_store_open(&other, w.ctx, "memory:", NULL, &terr));
        o.chunk_store = other;
        assert_ok(zarr_array_with(&a, one, &o, &terr));
        assert_string_equal(zarr_array_metadata(a), zarr_array_metadata(one));
        assert_status(zarr_array_read(a, NULL, &t, NULL, &terr), ZARR_ERR_NOT_FOUND);
        assert_ok(zarr_array_with(&b, a, NULL, &terr)); /* the same options */
        assert_status(zarr_array_read(b, NULL, &t, NULL, &terr), ZARR_ERR_NOT_FOUND);
        assert_ptr_equal(zarr_array_chunk_store(b), other);
        assert_ok(zarr_array_read(one, NULL, &t, NULL, &terr));
        assert_ok(zarr_array_write(b, NULL, &t, NULL, &terr));
        assert_ok(zarr_array_read(a, NULL, &t, NULL, &terr));
        o.zarr_format = document < 8 ? 2 : 3;
        zarr_array_free(b);
        assert_status(zarr_array_with(&b, one, &o, &terr), ZARR_ERR_INVALID);
        o.zarr_format = 0;
        zarr_array_free(a);
        zarr_store_free(other);
        close_one();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_documents),
        cmocka_unit_test(test_stored_document),
        cmocka_unit_test(test_filter_that_only_decodes),
        cmocka_unit_test(test_grid_shape),
        cmocka_unit_test(test_grid_shape_of_equal_edges),
        cmocka_unit_test(test_with),
    };

    return cmocka_run_group_tests_name("arrays without a store", tests, NULL, NULL);
}
