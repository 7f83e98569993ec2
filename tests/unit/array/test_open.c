/*
 * unit/array/test_open.c - opening and describing arrays in both formats: the document,
 * errors, structs of other sizes, old separators, chunks in another store.
 */
#include "array_test.h"

static void test_document(void **state)
{
    static const char text[] =
        "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[3],\"data_type\":"
        "\"float32\","
        "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[2]}},"
        "\"chunk_key_encoding\":\"default\",\"codecs\":[{\"name\":\"bytes\","
        "\"configuration\":{\"endian\":\"big\"}}],\"fill_value\":\"NaN\","
        "\"attributes\":{\"q\":[]},\"x_ext\":{\"must_understand\":false}}";
    zarr_array_spec spec = {.struct_size = sizeof spec, .document = text};
    struct world w;
    zarr_array *a = NULL;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    assert_ok(zarr_array_create(&a, w.store, "", &spec, NULL, &terr));
    assert_non_null(strstr(get_text(&w, "zarr.json"),
                           "\"x_ext\"")); /* kept, written in canonical form */
    assert_non_null(strstr(get_text(&w, "zarr.json"), "\"separator\": \"/\""));
    assert_ok(zarr_array_attributes_merge(a, "{\"r\": 1}", 0, NULL, &terr));
    assert_non_null(strstr(get_text(&w, "zarr.json"), "\"x_ext\""));
    assert_ok(zarr_node_delete(w.store, "", &terr));
    zarr_array_free(a);
    spec.document = "{\"zarr_format\":2,\"shape\":[3],\"chunks\":[2],\"dtype\":\"<f4\","
                    "\"compressor\":null,\"fill_value\":\"NaN\",\"order\":\"C\","
                    "\"filters\":null}";
    spec.attributes = "{\"q\": 1}";
    assert_ok(zarr_array_create(&a, w.store, "two", &spec, NULL, &terr));
    assert_non_null(strstr(get_text(&w, "two/.zattrs"), "\"q\": 1"));
    zarr_array_free(a);
    world_close(&w);
}

static void test_open_errors(void **state)
{
    struct world w;
    zarr_array *a = NULL;
    zarr_group *g = NULL;
    zarr_array_open_options opts = {.struct_size = sizeof opts};

    (void)state;
    world_open(&w, WORLD_LOCAL);
    zarr_array_free(make_array(&w, "g/a", 3, 4, 4));
    assert_status(zarr_array_open(&a, w.store, "g", NULL, &terr), ZARR_ERR_NOT_FOUND);
    assert_says("/g: there is a group, not an array");
    assert_status(zarr_array_open(&a, w.store, "g/b", NULL, &terr), ZARR_ERR_NOT_FOUND);
    assert_says("/g/b: ");
    assert_status(zarr_group_open(&g, w.store, "g/a", NULL, &terr), ZARR_ERR_NOT_FOUND);
    assert_says("array");
    opts.zarr_format = 2;
    assert_status(zarr_array_open(&a, w.store, "g/a", &opts, &terr), ZARR_ERR_NOT_FOUND);
    opts = (zarr_array_open_options){.struct_size = sizeof opts, .pipeline = "never"};
    assert_status(zarr_array_open(&a, w.store, "g/a", &opts, &terr),
                  ZARR_ERR_UNSUPPORTED);
    assert_says("never");
    opts = (zarr_array_open_options){.struct_size = sizeof opts, .missing_chunks = 9};
    assert_status(zarr_array_open(&a, w.store, "g/a", &opts, &terr), ZARR_ERR_INVALID);
    opts = (zarr_array_open_options){.struct_size = sizeof opts, .flags = 1};
    assert_status(zarr_array_open(&a, w.store, "g/a", &opts, &terr),
                  ZARR_ERR_UNSUPPORTED);
    assert_null(a);
    world_close(&w);
}

/* struct_size of callers older and newer than the library. */
static void test_struct_sizes(void **state)
{
    struct {
        zarr_array_open_options o;
        uint64_t more;
    } newer = {.o = {.struct_size = sizeof newer}};
    zarr_array_open_options older = {.struct_size = 16, .zarr_format = 3};
    struct world w;
    zarr_array *a = NULL;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    zarr_array_free(make_array(&w, "x", 3, 4, 4));
    older.pipeline = "behind the end that was told";
    assert_ok(zarr_array_open(&a, w.store, "x", &older, &terr));
    zarr_array_free(a);
    assert_ok(zarr_array_open(&a, w.store, "x", &newer.o, &terr));
    zarr_array_free(a);
    newer.more = 1;
    assert_status(zarr_array_open(&a, w.store, "x", &newer.o, &terr),
                  ZARR_ERR_UNSUPPORTED);
    older.struct_size = 0;
    assert_status(zarr_array_open(&a, w.store, "x", &older, &terr), ZARR_ERR_ABI);
    world_close(&w);
}

static void test_both_formats(void **state)
{
    struct world w;
    zarr_array *a = NULL;
    zarr_array_open_options opts = {.struct_size = sizeof opts, .zarr_format = 2};

    (void)state;
    world_open(&w, WORLD_LOCAL);
    zarr_array_free(make_array(&w, "x", 3, 4, 4));
    put_text(&w, "x/.zarray",
             "{\"zarr_format\":2,\"shape\":[9],\"chunks\":[2],\"dtype\":\"<f4\","
             "\"compressor\":null,\"fill_value\":0,\"order\":\"C\",\"filters\":null}");
    assert_ok(zarr_array_open(&a, w.store, "x", NULL, &terr)); /* v3 takes precedence */
    assert_int_equal(zarr_array_ndim(a), 2);
    assert_non_null(strstr(w.log, "/x: has v2 and v3 metadata"));
    zarr_array_free(a);
    assert_ok(zarr_array_open(&a, w.store, "x", &opts, &terr));
    assert_int_equal(zarr_array_shape(a)[0], 9);
    zarr_array_free(a);
    world_close(&w);
}

/* Old writers used nested chunk keys without recording dimension_separator. */
static void test_silent_separator(void **state)
{
    static const char doc[] =
        "{\"zarr_format\":2,\"shape\":[4,4],\"chunks\":[2,2],\"dtype\":\"|u1\","
        "\"compressor\":null,\"fill_value\":0,\"order\":\"C\",\"filters\":null}";
    const uint64_t last[2] = {1, 1};
    struct world w;
    char key[32];
    size_t n = 0;
    zarr_array *a = NULL;

    (void)state;
    for (int nested = 0; nested < 2; nested++)
        for (int first = 0; first < 2; first++) {
            world_open(&w, WORLD_LOCAL);
            put_text(&w, "x/.zarray", doc);
            put_text(&w,
                     nested ? (first ? "x/0/0" : "x/1/1") : (first ? "x/0.0" : "x/1.1"),
                     "abcd");
            assert_ok(zarr_array_open(&a, w.store, "x", NULL, &terr));
            assert_ok(zarr_array_block_key(a, last, key, sizeof key, &n, &terr));
            assert_string_equal(key, nested ? "x/1/1" : "x/1.1");
            assert_int_equal(n, 5);
            /* It is still known. */
            assert_ok(zarr_array_attribute_set(a, "k", "1", NULL, &terr));
            assert_ok(zarr_array_block_key(a, last, key, sizeof key, &n, &terr));
            assert_string_equal(key, nested ? "x/1/1" : "x/1.1");
            zarr_array_free(a);
            world_close(&w);
        }
}

static void test_chunk_store(void **state)
{
    struct world w;
    zarr_store *chunks = NULL;
    zarr_array *a = NULL;
    const uint64_t shape[2] = {4, 4}, chunk[2] = {2, 2};
    const zarr_array_spec spec = {.struct_size = sizeof spec,
                                  .ndim = 2,
                                  .shape = shape,
                                  .chunk_shape = chunk,
                                  .data_type = "int32"};
    zarr_array_open_options opts = {.struct_size = sizeof opts};

    (void)state;
    world_open(&w, WORLD_LOCAL);
    assert_ok(zarr_store_open(&chunks, w.ctx, "memory:", NULL, &terr));
    opts.chunk_store = chunks;
    assert_ok(zarr_array_create(&a, w.store, "x", &spec, &opts, &terr));
    zarr_store_free(chunks); /* the handle keeps it alive */
    fill_array(a);
    assert_int_equal(n_keys(&w, "x"), 1);
    assert_int_equal(read_at(a, 3, 2), 3002);
    zarr_array_free(a);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_document),         cmocka_unit_test(test_open_errors),
        cmocka_unit_test(test_struct_sizes),     cmocka_unit_test(test_both_formats),
        cmocka_unit_test(test_silent_separator), cmocka_unit_test(test_chunk_store),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
