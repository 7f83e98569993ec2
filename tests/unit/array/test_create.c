/*
 * unit/array/test_create.c - creating arrays in both formats: the documents written, the
 * meaning of defaults, what is refused and with which message, and nodes that exist.
 */
#include "array_test.h"

static void test_create_v3(void **state)
{
    static const char want[] =
        "{\n  \"shape\": [\n    6,\n    5\n  ],\n  \"data_type\": \"int32\"";
    struct world w;
    zarr_array *a = NULL, *b = NULL;
    int changed = 9;

    (void)state;
    for (enum world_sort sort = 0; sort < N_WORLDS; sort++) {
        world_open(&w, sort);
        a = make_array(&w, "/g//x/", 3, 6, 5);
        assert_string_equal(zarr_array_path(a), "g/x");
        assert_int_equal(zarr_array_zarr_format(a), 3);
        assert_int_equal(zarr_array_ndim(a), 2);
        assert_int_equal(zarr_array_shape(a)[1], 5);
        assert_int_equal(zarr_array_chunk_shape(a)[0], 2);
        assert_int_equal(zarr_array_block_shape(a)[0], 2);
        assert_string_equal(zarr_dtype_name(zarr_array_dtype(a)), "int32");
        assert_int_equal(*(const int32_t *)zarr_array_fill_value(a), -1);
        assert_string_equal(zarr_array_attributes(a), "{}");
        assert_memory_equal(get_text(&w, "g/x/zarr.json"), want, sizeof want - 1);
        assert_string_equal(zarr_array_metadata(a), get_text(&w, "g/x/zarr.json"));
        assert_non_null(get_text(&w, "zarr.json")); /* implicit parent groups */
        assert_non_null(get_text(&w, "g/zarr.json"));
        assert_non_null(strstr(zarr_array_codecs(a), "\"zstd\""));

        assert_ok(zarr_array_open(&b, w.store, "g/x", NULL, &terr));
        assert_ok(zarr_array_refresh(b, &changed, NULL, &terr));
        assert_int_equal(changed, 0);
        fill_array(a);
        assert_int_equal(count_wrong(b, 6, 5), 0);
        assert_true(zarr_array_store(b) == w.store &&
                    zarr_array_chunk_store(b) == w.store);
        zarr_array_free(zarr_array_ref(b));
        zarr_array_free(b);
        zarr_array_free(a);
        world_close(&w);
    }
}

static void test_create_v2(void **state)
{
    struct world w;
    zarr_array *a = NULL;
    const uint64_t shape[1] = {7};
    const char *const names[1] = {"time"};
    zarr_array_spec spec = {.struct_size = sizeof spec,
                            .zarr_format = 2,
                            .ndim = 1,
                            .shape = shape,
                            .data_type = ">f4",
                            .fill_value = "null",
                            .order = 'F',
                            .attributes = "{\"u\": \"m\"}",
                            .dimension_names = names};

    (void)state;
    world_open(&w, WORLD_LOCAL);
    assert_ok(zarr_array_create(&a, w.store, "a/b", &spec, NULL, &terr));
    assert_non_null(strstr(get_text(&w, "a/b/.zarray"), "\"dtype\": \">f4\""));
    assert_non_null(strstr(get_text(&w, "a/b/.zarray"), "\"id\": \"zstd\""));
    assert_non_null(
        strstr(get_text(&w, "a/b/.zarray"), "\"dimension_separator\": \".\""));
    assert_non_null(strstr(get_text(&w, "a/b/.zarray"), "\"order\": \"F\""));
    assert_non_null(strstr(get_text(&w, "a/b/.zattrs"), "_ARRAY_DIMENSIONS"));
    assert_non_null(strstr(get_text(&w, "a/.zgroup"), "2"));
    assert_null(get_text(&w, "a/zarr.json"));
    assert_null(zarr_array_fill_value(a));
    assert_string_equal(zarr_array_dimension_name(a, 0), "time");
    assert_null(zarr_array_dimension_name(a, 1));
    assert_int_equal(zarr_array_chunk_shape(a)[0], 7);
    assert_non_null(strstr(zarr_array_attributes(a), "\"u\""));
    zarr_array_free(a);
    world_close(&w);
}

/* The default chunk is about 1 MiB; its edges are powers of two or the whole
 * dimension. */
static void test_chunk_guess(void **state)
{
    static const struct {
        int32_t ndim;
        uint64_t shape[3], shard[3], want[3];
    } rows[] = {
        {1, {100}, {0}, {100}},
        {1, {10000000}, {0}, {131072}},
        {2, {1000, 1000}, {0}, {256, 512}},
        {3, {3, 4000, 4000}, {0}, {3, 128, 256}},
        {2, {0, 5}, {0}, {1, 5}},
        {2, {100000, 100000}, {3000, 3000}, {375, 375 /* odd edge: cannot be halved */}},
    };
    struct world w;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        zarr_array_spec spec = {.struct_size = sizeof spec,
                                .flags = ZARR_SPEC_OVERWRITE,
                                .ndim = rows[i].ndim,
                                .shape = rows[i].shape,
                                .shard_shape = rows[i].shard[0] ? rows[i].shard : NULL,
                                .data_type = "float64"};
        zarr_array *a = NULL;
        uint64_t bytes = 8;

        assert_ok(zarr_array_create(&a, w.store, "x", &spec, NULL, &terr));
        for (int32_t d = 0; d < rows[i].ndim; d++)
            bytes *= zarr_array_chunk_shape(a)[d];
        if (i < 5)
            for (int32_t d = 0; d < rows[i].ndim; d++)
                assert_int_equal(zarr_array_chunk_shape(a)[d], rows[i].want[d]);
        else
            assert_true(bytes <= UINT64_C(9) << 17);
        assert_true(bytes <= 1 << 21);
        zarr_array_free(a);
    }
    world_close(&w);
}

static const uint64_t four[1] = {4}, none[1] = {0}, odd[1] = {3}, two[1] = {2};
static const struct {
    zarr_array_spec spec;
    const char *path;
    zarr_status want;
    const char *says;
} refused[] = {
    {{.ndim = 1, .shape = four}, "x", ZARR_ERR_INVALID, "data_type"},
    {{.ndim = 1, .data_type = "int8"}, "x", ZARR_ERR_INVALID, "shape"},
    {{.ndim = 65, .shape = four, .data_type = "int8"}, "x", ZARR_ERR_INVALID, "ndim"},
    {{.ndim = 1, .shape = four, .data_type = "nope"}, "x", ZARR_ERR_UNSUPPORTED, "nope"},
    {{.ndim = 1, .shape = four, .data_type = "int8", .zarr_format = 4},
     "x",
     ZARR_ERR_INVALID,
     "zarr_format"},
    {{.ndim = 1, .shape = four, .data_type = "int8", .chunk_shape = none},
     "x",
     ZARR_ERR_INVALID,
     "chunk"},
    {{.ndim = 1,
      .shape = four,
      .data_type = "int8",
      .chunk_shape = two,
      .shard_shape = odd},
     "x",
     ZARR_ERR_INVALID,
     ""},
    {{.ndim = 1,
      .shape = four,
      .data_type = "int8",
      .zarr_format = 2,
      .shard_shape = two},
     "x",
     ZARR_ERR_INVALID,
     "shards"},
    {{.ndim = 1, .shape = four, .data_type = "int8", .fill_value = "\"x\""},
     "x",
     ZARR_ERR_INVALID,
     "fill_value"},
    {{.ndim = 1, .shape = four, .data_type = "int8", .fill_value = "{"},
     "x",
     ZARR_ERR_INVALID,
     "fill_value"},
    {{.ndim = 1, .shape = four, .data_type = "int8", .codecs = "[{\"name\":\"what\"}]"},
     "x",
     ZARR_ERR_UNSUPPORTED,
     "what"},
    {{.ndim = 1, .shape = four, .data_type = "int8", .codecs = "{}"},
     "x",
     ZARR_ERR_INVALID,
     "codecs"},
    {{.ndim = 1, .shape = four, .data_type = "int8", .attributes = "[]"},
     "x",
     ZARR_ERR_INVALID,
     "attributes"},
    {{.ndim = 1, .shape = four, .data_type = "int8", .flags = 1 << 20},
     "x",
     ZARR_ERR_UNSUPPORTED,
     "flags"},
    {{.ndim = 1, .shape = four, .data_type = "int8"}, "a/../x", ZARR_ERR_INVALID, ".."},
    {{.ndim = 1, .shape = four, .data_type = "int8"}, "a/__x", ZARR_ERR_INVALID, "__x"},
    {{.ndim = 1, .shape = four, .data_type = "int8"},
     "zarr.json",
     ZARR_ERR_INVALID,
     "zarr.json"},
    {{.document = "{\"zarr_format\": 3}"}, "x", ZARR_ERR_INVALID, ""},
    {{.document = "{\"zarr_format\": 3}", .data_type = "int8"},
     "x",
     ZARR_ERR_INVALID,
     "document"},
    {{.document = "{\"zarr_format\": 3}", .order = 'F'},
     "x",
     ZARR_ERR_INVALID,
     "document"},
    {{.document = "{\"zarr_format\": 3}", .separator = '/'},
     "x",
     ZARR_ERR_INVALID,
     "document"},
};

static void test_refused_specs(void **state)
{
    struct world w;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        zarr_array_spec spec = refused[i].spec;
        zarr_array *a = NULL;

        spec.struct_size = sizeof spec;
        print_message("row %zu\n", i);
        assert_status(zarr_array_create(&a, w.store, refused[i].path, &spec, NULL, &terr),
                      refused[i].want);
        assert_says(refused[i].says);
        assert_null(a);
    }
    assert_int_equal(n_keys(&w, ""), 0); /* the failed calls wrote nothing */
    world_close(&w);
}

static void test_existing(void **state)
{
    struct world w;
    zarr_array *a = NULL;
    zarr_group *g = NULL;
    const uint64_t shape[2] = {6, 5}, chunk[2] = {2, 2};
    zarr_array_spec spec = {.struct_size = sizeof spec,
                            .ndim = 2,
                            .shape = shape,
                            .chunk_shape = chunk,
                            .data_type = "int32",
                            .fill_value = "-1"};

    (void)state;
    world_open(&w, WORLD_LOCAL);
    a = make_array(&w, "x", 3, 6, 5);
    fill_array(a);
    assert_ok(zarr_array_attribute_set(a, "k", "1", NULL, &terr));
    zarr_array_free(a);
    assert_status(zarr_array_create(&a, w.store, "x", &spec, NULL, &terr),
                  ZARR_ERR_EXISTS);
    assert_says("/x: ");
    assert_says("array");
    spec.flags = ZARR_SPEC_IF_MISSING; /* same except for attributes */
    assert_ok(zarr_array_create(&a, w.store, "x", &spec, NULL, &terr));
    assert_int_equal(count_wrong(a, 6, 5), 0);
    zarr_array_free(a);
    spec.fill_value = "0";
    assert_status(zarr_array_create(&a, w.store, "x", &spec, NULL, &terr),
                  ZARR_ERR_EXISTS);
    assert_null(a);
    spec.fill_value = "-1";
    spec.flags = ZARR_SPEC_OVERWRITE; /* old chunks must not become visible again */
    assert_ok(zarr_array_create(&a, w.store, "x", &spec, NULL, &terr));
    assert_int_equal(count_wrong(a, 0, 0), 0);
    zarr_array_free(a);

    assert_status(group_create(&g, w.store, "x", 3, NULL, ZARR_GROUP_IF_MISSING, &terr),
                  ZARR_ERR_EXISTS);
    assert_says("/x: there is an array already");
    spec.flags = ZARR_SPEC_IF_MISSING;
    assert_status(zarr_array_create(&a, w.store, "", &spec, NULL, &terr),
                  ZARR_ERR_EXISTS);
    assert_says("group already");
    spec.flags = 0; /* an array has no child nodes */
    assert_status(zarr_array_create(&a, w.store, "x/y", &spec, NULL, &terr),
                  ZARR_ERR_INVALID);
    assert_says("/x is an array");
    spec.flags = ZARR_SPEC_NO_PARENTS;
    assert_ok(zarr_array_create(&a, w.store, "p/q", &spec, NULL, &terr));
    zarr_array_free(a);
    assert_null(get_text(&w, "p/zarr.json"));
    /* A v3 array below a v2 group must not hide the group. */
    assert_ok(group_create(&g, w.store, "v2", 2, NULL, 0, &terr));
    zarr_group_free(g);
    spec.flags = 0;
    assert_ok(zarr_array_create(&a, w.store, "v2/x", &spec, NULL, &terr));
    zarr_array_free(a);
    assert_null(get_text(&w, "v2/zarr.json"));
    world_close(&w);
}

/* OVERWRITE deletes nothing if the new node is refused: its parent is an array, or cannot
 * be read. */
static void test_overwrite_refused(void **state)
{
    static const char *const parents[] = {
        "{", "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[],\"data_type\":"
             "\"int8\",\"fill_value\":0,\"chunk_grid\":{\"name\":\"regular\","
             "\"configuration\":{\"chunk_shape\":[]}},\"chunk_key_encoding\":{\"name\":"
             "\"default\"},\"codecs\":[{\"name\":\"bytes\"}]}"};
    const uint64_t shape[] = {4};
    zarr_array_spec spec = {
        .struct_size = sizeof spec, .ndim = 1, .shape = shape, .data_type = "int8"};
    struct world w;
    zarr_array *a = NULL;
    zarr_group *g = NULL;
    uint64_t n = 0;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    assert_ok(zarr_array_create(&a, w.store, "a/sub", &spec, NULL, &terr));
    zarr_array_free(a);
    put_text(&w, "a/sub/c/0", "1234");
    n = (uint64_t)n_keys(&w, "a/sub");
    spec.flags = ZARR_SPEC_OVERWRITE;
    for (size_t i = 0; i < sizeof parents / sizeof *parents; i++) {
        put_text(&w, "a/zarr.json", parents[i]);
        assert_true(zarr_array_create(&a, w.store, "a/sub", &spec, NULL, &terr) !=
                    ZARR_OK);
        assert_true(group_create(&g, w.store, "a/sub", 3, NULL, ZARR_GROUP_OVERWRITE,
                                 &terr) != ZARR_OK);
        assert_int_equal(n_keys(&w, "a/sub"), n);
    }
    world_close(&w);
}

/* OVERWRITE replaces nodes and their leftovers, never other files. */
static void test_overwrite_spares_files(void **state)
{
    static const char *const left[] = {"c/0/0", "c.7", "0.12", "3/1", "c", ".zattrs"};
    static const char *const foreign[] = {"main.c",    "c/x",  "1a",
                                          "c/0/0.bak", "0..1", "child/zarr.json",
                                          "c./1",      "1.",   "README"};
    const uint64_t shape[] = {4};
    zarr_array_spec spec = {.struct_size = sizeof spec,
                            .flags = ZARR_SPEC_OVERWRITE,
                            .ndim = 1,
                            .shape = shape,
                            .data_type = "int8"};

    (void)state;
    for (int sort = 0; sort < 2; sort++) {
        struct world w;
        zarr_array *a = NULL;
        zarr_group *g = NULL;
        char key[64];

        world_open(&w, sort ? WORLD_LOCAL : WORLD_MEMORY);
        for (size_t i = 0; i < sizeof left / sizeof left[0]; i++) {
            snprintf(key, sizeof key, "left%zu/%s", i, left[i]);
            put_text(&w, key, "{}");
            key[strcspn(key, "/")] = '\0';
            assert_ok(zarr_array_create(&a, w.store, key, &spec, NULL, &terr));
            zarr_array_free(a);
            assert_int_equal(n_keys(&w, key), 1);
        }
        for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
            snprintf(key, sizeof key, "f%zu/%s", i, foreign[i]);
            put_text(&w, key, "{}");
            key[strcspn(key, "/")] = '\0';
            assert_status(zarr_array_create(&a, w.store, key, &spec, NULL, &terr),
                          ZARR_ERR_EXISTS);
            assert_says(foreign[i]);
            assert_status(
                group_create(&g, w.store, key, 3, NULL, ZARR_GROUP_OVERWRITE, &terr),
                ZARR_ERR_EXISTS);
            assert_int_equal(n_keys(&w, key), 1);
            /* A broken node counts as a node. */
            put_text(&w, strcat(key, "/zarr.json"), "{");
            *strrchr(key, '/') = '\0';
            assert_ok(zarr_array_create(&a, w.store, key, &spec, NULL, &terr));
            zarr_array_free(a);
            assert_int_equal(n_keys(&w, key), 1);
        }
        world_close(&w);
    }
}

/* IF_MISSING opens an array that has grown since it was created, and names what differs
 * in others. */
static void test_grown(void **state)
{
    static const char edges[] =
        "{\"name\":\"rectilinear\",\"configuration\":{\"kind\":\"inline\","
        "\"chunk_shapes\":[[1,2,3],[2,[1,3]]]}}";
    const uint64_t shape[2] = {6, 5}, chunk[2] = {2, 2}, other[2] = {3, 2},
                   shard[2] = {4, 4}, larger[2] = {9, 5}, mixed[2] = {9, 4};
    struct world w;
    zarr_array *a = NULL;

    (void)state;
    for (int kind = 0; kind < 4; kind++) { /* v2, v3, shards, edges */
        zarr_array_spec spec = {.struct_size = sizeof spec,
                                .zarr_format = kind == 0 ? 2 : 3,
                                .ndim = 2,
                                .shape = shape,
                                .chunk_shape = kind == 3 ? NULL : chunk,
                                .chunk_grid = kind == 3 ? edges : NULL,
                                .shard_shape = kind == 2 ? shard : NULL,
                                .data_type = "int32",
                                .fill_value = "-1"};

        world_open(&w, WORLD_MEMORY);
        assert_ok(zarr_array_create(&a, w.store, "x", &spec, NULL, &terr));
        assert_ok(zarr_array_resize(a, larger, NULL, &terr));
        zarr_array_free(a);
        spec.flags = ZARR_SPEC_IF_MISSING;
        assert_ok(zarr_array_create(&a, w.store, "x", &spec, NULL, &terr));
        assert_int_equal(zarr_array_shape(a)[0], 9);
        spec.data_type = "int16";
        zarr_array_free(a);
        assert_status(zarr_array_create(&a, w.store, "x", &spec, NULL, &terr),
                      ZARR_ERR_EXISTS);
        assert_says(kind == 0 ? "dtype differs" : "data_type differs");
        spec.data_type = "int32";
        if (kind == 1) {
            spec.chunk_shape = other;
            assert_status(zarr_array_create(&a, w.store, "x", &spec, NULL, &terr),
                          ZARR_ERR_EXISTS);
            assert_says("chunk_grid differs");
            spec.chunk_shape = chunk;
            spec.ndim = 1;
            assert_status(zarr_array_create(&a, w.store, "x", &spec, NULL, &terr),
                          ZARR_ERR_EXISTS);
            assert_says("/x: there is an array already, whose shape is [9, 5], but the "
                        "shape asked for is [6]");
            spec.ndim = 2;
        }
        assert_ok(zarr_array_open(&a, w.store, "x", NULL, &terr));
        assert_ok(zarr_array_resize(a, mixed, NULL, &terr)); /* longer, and shorter */
        zarr_array_free(a);
        assert_status(zarr_array_create(&a, w.store, "x", &spec, NULL, &terr),
                      ZARR_ERR_EXISTS);
        assert_says("whose shape is [9, 4], but the shape asked for is [6, 5]");
        assert_null(a);
        world_close(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_create_v3),
        cmocka_unit_test(test_create_v2),
        cmocka_unit_test(test_chunk_guess),
        cmocka_unit_test(test_refused_specs),
        cmocka_unit_test(test_existing),
        cmocka_unit_test(test_overwrite_refused),
        cmocka_unit_test(test_overwrite_spares_files),
        cmocka_unit_test(test_grown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
