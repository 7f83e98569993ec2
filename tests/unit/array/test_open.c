/*
 * unit/array/test_open.c - creating, opening and describing arrays in both formats: the
 * documents written, the meaning of defaults, what is refused and with which message.
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
        assert_int_equal(zarr_array_write_shape(a)[0], 2);
        assert_string_equal(zarr_dtype_name(zarr_array_dtype(a)), "int32");
        assert_int_equal(*(const int32_t *)zarr_array_fill_value(a), -1);
        assert_string_equal(zarr_array_attributes(a), "{}");
        assert_memory_equal(get_text(&w, "g/x/zarr.json"), want, sizeof want - 1);
        assert_string_equal(zarr_array_metadata(a), get_text(&w, "g/x/zarr.json"));
        assert_non_null(get_text(&w, "zarr.json")); /* implicit parent groups */
        assert_non_null(get_text(&w, "g/zarr.json"));
        assert_non_null(strstr(zarr_array_codecs(a), "\"zstd\""));

        assert_ok(zarr_array_open(&b, w.store, "g/x", NULL, &terr));
        assert_ok(zarr_array_refresh(b, &changed, &terr));
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

static void check_codecs(struct world *w, zarr_array_spec *spec, const char *want)
{
    zarr_array *a = NULL;

    spec->flags |= ZARR_SPEC_OVERWRITE;
    assert_ok(zarr_array_create(&a, w->store, "c", spec, NULL, &terr));
    if (strcmp(zarr_array_codecs(a), want) != 0)
        fail_msg("%s\nwanted %s", zarr_array_codecs(a), want);
    zarr_array_free(a);
}

static void test_codecs(void **state)
{
#define BYTES "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define GZIP  "{\"name\":\"gzip\",\"configuration\":{\"level\":3}}"
#define TURN  "{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}}"
#define CRC   "{\"name\":\"crc32c\"}"
    struct world w;
    const uint64_t shape[2] = {8, 8}, chunk[2] = {2, 2}, shard[2] = {4, 4};
    zarr_array_spec spec = {.struct_size = sizeof spec,
                            .ndim = 2,
                            .shape = shape,
                            .chunk_shape = chunk,
                            .data_type = "<i2"};

    (void)state;
    world_open(&w, WORLD_MEMORY);
    spec.codecs = "[" GZIP "]"; /* codec `bytes` is added */
    check_codecs(&w, &spec, "[" BYTES "," GZIP "]");
    spec.codecs = "[]";
    check_codecs(&w, &spec, "[" BYTES "]");
    spec.codecs = "[" BYTES "]";
    spec.order = 'F';
    check_codecs(&w, &spec, "[" TURN "," BYTES "]");
    spec.order = 0;
    spec.codecs = "[" TURN "," GZIP "]";
    check_codecs(&w, &spec, "[" TURN "," BYTES "," GZIP "]");
    spec.data_type = ">i2";
    spec.codecs = "[]";
    check_codecs(&w, &spec,
                 "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}]");
    spec.data_type = "uint8"; /* no byte order */
    check_codecs(&w, &spec, "[{\"name\":\"bytes\"}]");
    spec.data_type = "int16";
    spec.shard_shape = shard;
    spec.codecs = "[" GZIP "]";
    spec.flags = ZARR_SPEC_INDEX_AT_START;
    check_codecs(
        &w, &spec,
        "[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[2,2],"
        "\"codecs\":[" BYTES "," GZIP "],\"index_codecs\":[" BYTES "," CRC "],"
        "\"index_location\":\"start\"}}]");
    world_close(&w);
}

/* `bytes` without a byte order, as names and objects, inside shards and other codecs. */
static void test_bytes_alone(void **state)
{
#define BIG     "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}"
#define PLAIN   "{\"name\":\"bytes\"}"
#define CAST(t) "{\"name\":\"cast_value\",\"configuration\":{\"data_type\":\"" t "\"}}"
#define SHARDS(inner, index)                                                             \
    "{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[2],"             \
    "\"codecs\":[" inner "],\"index_codecs\":[" index "],\"index_location\":\"end\"}}"
    static const struct {
        const char *data_type, *codecs, *want;
    } rows[] = {
        {"int16", "[\"bytes\"]", "[" BYTES "]"},
        {"int16", "[" PLAIN "]", "[" BYTES "]"},
        {"int16", "[{\"name\":\"bytes\",\"configuration\":{}},\"crc32c\"]",
         "[" BYTES "," CRC "]"},
        {"int16", "[\"endian\"]", "[" BYTES "]"},
        {">i2", "[\"bytes\"]", "[" BIG "]"},
        {">i2", "[" BYTES "]", "[" BYTES "]"},
        {"int8", "[\"bytes\"]", "[" PLAIN "]"},
        {">i2", "[" SHARDS("\"bytes\"", "\"bytes\",\"crc32c\"") "]",
         "[" SHARDS(BIG, BYTES "," CRC) "]"},
        {"int8", "[" CAST("int16") ",\"bytes\"]", "[" CAST("int16") "," BYTES "]"},
        {"int16", "[" CAST("int8") ",\"bytes\"]", "[" CAST("int8") "," PLAIN "]"},
    };
    const uint64_t shape[1] = {8}, chunk[1] = {4}, inner[1] = {2};
    zarr_array_spec spec = {
        .struct_size = sizeof spec, .ndim = 1, .shape = shape, .chunk_shape = chunk};
    zarr_array *a = NULL;
    struct world w;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        spec.data_type = rows[i].data_type;
        spec.codecs = rows[i].codecs;
        check_codecs(&w, &spec, rows[i].want);
    }
    spec.chunk_shape = inner;
    spec.shard_shape = chunk;
    spec.codecs = spec.index_codecs = "[\"bytes\"]";
    check_codecs(&w, &spec, "[" SHARDS(BYTES, BYTES) "]");
    spec = (zarr_array_spec){.struct_size = sizeof spec};
    /* metadata that exists has no default */
    spec.document =
        "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[2],\"data_type\":"
        "\"int16\",\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{"
        "\"chunk_shape\":[2]}},\"chunk_key_encoding\":\"default\","
        "\"fill_value\":0,\"codecs\":[\"bytes\"]}";
    assert_true(zarr_array_create(&a, w.store, "d", &spec, NULL, &terr) != ZARR_OK);
    assert_says("endian is required");
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

static void test_refused_specs(void **state)
{
    const uint64_t shape[1] = {4}, none[1] = {0}, odd[1] = {3}, two[1] = {2};
    const struct {
        zarr_array_spec spec;
        const char *path;
        zarr_status want;
        const char *says;
    } rows[] = {
        {{.ndim = 1, .shape = shape}, "x", ZARR_ERR_INVALID, "data_type"},
        {{.ndim = 1, .data_type = "int8"}, "x", ZARR_ERR_INVALID, "shape"},
        {{.ndim = 65, .shape = shape, .data_type = "int8"},
         "x",
         ZARR_ERR_INVALID,
         "ndim"},
        {{.ndim = 1, .shape = shape, .data_type = "nope"},
         "x",
         ZARR_ERR_UNSUPPORTED,
         "nope"},
        {{.ndim = 1, .shape = shape, .data_type = "int8", .zarr_format = 4},
         "x",
         ZARR_ERR_INVALID,
         "zarr_format"},
        {{.ndim = 1, .shape = shape, .data_type = "int8", .chunk_shape = none},
         "x",
         ZARR_ERR_INVALID,
         "chunk"},
        {{.ndim = 1,
          .shape = shape,
          .data_type = "int8",
          .chunk_shape = two,
          .shard_shape = odd},
         "x",
         ZARR_ERR_INVALID,
         ""},
        {{.ndim = 1,
          .shape = shape,
          .data_type = "int8",
          .zarr_format = 2,
          .shard_shape = two},
         "x",
         ZARR_ERR_INVALID,
         "shards"},
        {{.ndim = 1, .shape = shape, .data_type = "int8", .fill_value = "\"x\""},
         "x",
         ZARR_ERR_INVALID,
         "fill_value"},
        {{.ndim = 1, .shape = shape, .data_type = "int8", .fill_value = "{"},
         "x",
         ZARR_ERR_INVALID,
         "fill_value"},
        {{.ndim = 1,
          .shape = shape,
          .data_type = "int8",
          .codecs = "[{\"name\":\"what\"}]"},
         "x",
         ZARR_ERR_UNSUPPORTED,
         "what"},
        {{.ndim = 1, .shape = shape, .data_type = "int8", .codecs = "{}"},
         "x",
         ZARR_ERR_INVALID,
         "codecs"},
        {{.ndim = 1, .shape = shape, .data_type = "int8", .attributes = "[]"},
         "x",
         ZARR_ERR_INVALID,
         "attributes"},
        {{.ndim = 1, .shape = shape, .data_type = "int8", .flags = 128},
         "x",
         ZARR_ERR_UNSUPPORTED,
         "flags"},
        {{.ndim = 1, .shape = shape, .data_type = "int8"},
         "a/../x",
         ZARR_ERR_INVALID,
         ".."},
        {{.ndim = 1, .shape = shape, .data_type = "int8"},
         "a/__x",
         ZARR_ERR_INVALID,
         "__x"},
        {{.ndim = 1, .shape = shape, .data_type = "int8"},
         "zarr.json",
         ZARR_ERR_INVALID,
         "zarr.json"},
        {{.document = "{\"zarr_format\": 3}"}, "x", ZARR_ERR_INVALID, ""},
        {{.document = "{\"zarr_format\": 3}", .data_type = "int8"},
         "x",
         ZARR_ERR_INVALID,
         "document"},
    };
    struct world w;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        zarr_array_spec spec = rows[i].spec;
        zarr_array *a = NULL;

        spec.struct_size = sizeof spec;
        print_message("row %zu\n", i);
        assert_status(zarr_array_create(&a, w.store, rows[i].path, &spec, NULL, &terr),
                      rows[i].want);
        assert_says(rows[i].says);
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
    assert_ok(zarr_array_attribute_set(a, "k", "1", &terr));
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
    assert_ok(zarr_array_attributes_merge(a, "{\"r\": 1}", 0, &terr));
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
            assert_ok(zarr_array_chunk_key(a, last, key, sizeof key, &n, &terr));
            assert_string_equal(key, nested ? "x/1/1" : "x/1.1");
            assert_int_equal(n, 5);
            /* It is still known. */
            assert_ok(zarr_array_attribute_set(a, "k", "1", &terr));
            assert_ok(zarr_array_chunk_key(a, last, key, sizeof key, &n, &terr));
            assert_string_equal(key, nested ? "x/1/1" : "x/1.1");
            zarr_array_free(a);
            world_close(&w);
        }
}

static void test_other_tensors(void **state)
{
    const uint64_t shape[2] = {5, 4};
    const int64_t wrong[2] = {4, 5}, right[2] = {4, 4};
    struct world w;
    zarr_array *a = NULL;
    zarr_selection *sel = NULL;
    const zarr_dtype *f = NULL;
    zarr_stats stats = {.struct_size = sizeof stats};
    zarr_io_options opts = {.struct_size = sizeof opts, .stats = &stats};
    int32_t data[20] = {0};
    zarr_tensor t;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    a = make_array(&w, "x", 3, 4, 4);
    zarr_tensor_host(&t, data, sizeof data, 2, wrong);
    assert_status(zarr_array_read(a, NULL, &t, NULL, &terr), ZARR_ERR_INVALID);
    assert_says("/x: ");
    zarr_tensor_host(&t, data, sizeof data, 2, right);
    assert_ok(zarr_dtype_find(w.ctx, "float32", &f, &terr));
    t.dtype = f;
    assert_status(zarr_array_read(a, NULL, &t, NULL, &terr), ZARR_ERR_INVALID);
    assert_says("float32");
    t.dtype = zarr_array_dtype(a);
    assert_ok(zarr_selection_all(&sel, 2, shape, &terr));
    assert_status(zarr_array_read(a, sel, &t, NULL, &terr), ZARR_ERR_INVALID);
    assert_says("selection");
    zarr_selection_free(sel);
    assert_ok(zarr_array_read(a, NULL, &t, &opts, &terr));
    assert_int_equal(stats.chunks_missing, 4);
    assert_int_equal(data[15], -1);
    opts.missing_chunks = ZARR_MISSING_ERROR;
    assert_status(zarr_array_read(a, NULL, &t, &opts, &terr), ZARR_ERR_NOT_FOUND);
    assert_says("x/c/0/0");
    stats.struct_size = 0;
    assert_status(zarr_array_read(a, NULL, &t, &opts, &terr), ZARR_ERR_ABI);
    stats.struct_size = sizeof stats;
    opts.missing_chunks = 0;
    opts.stream = &w; /* host memory has no streams */
    assert_status(zarr_array_read(a, NULL, &t, &opts, &terr), ZARR_ERR_UNSUPPORTED);
    assert_says("a stream is given");
    assert_status(zarr_array_write(a, NULL, &t, &opts, &terr), ZARR_ERR_UNSUPPORTED);
    opts.stream = NULL;
    assert_ok(zarr_array_read(a, NULL, &t, &opts, &terr));
    zarr_array_free(a);
    world_close(&w);
}

static void test_submit(void **state)
{
    const int64_t shape[2] = {4, 4};
    struct world w;
    zarr_array *a = NULL;
    zarr_request *rq = NULL;
    zarr_stats stats = {.struct_size = sizeof stats};
    zarr_io_options opts = {.struct_size = sizeof opts, .stats = &stats};
    int32_t data[16], back[16] = {0};
    zarr_tensor t;
    int done = 0;

    (void)state;
    world_open(&w, WORLD_LOCAL);
    a = make_array(&w, "x", 4, 4, 4);
    for (int i = 0; i < 16; i++)
        data[i] = i * i;
    zarr_tensor_host(&t, data, sizeof data, 2, shape);
    assert_ok(zarr_array_write_submit(&rq, a, NULL, &t, &opts, &terr));
    assert_ok(zarr_request_wait(rq, ZARR_WAIT_FOREVER, &done, &terr));
    assert_int_equal(done, 1);
    assert_int_equal(stats.elements, 16);
    zarr_request_free(rq);
    zarr_tensor_host(&t, back, sizeof back, 2, shape);
    assert_ok(zarr_array_read_submit(&rq, a, NULL, &t, NULL, &terr));
    zarr_array_free(a); /* the request keeps it alive */
    assert_ok(zarr_request_wait(rq, ZARR_WAIT_FOREVER, NULL, &terr));
    zarr_request_free(rq);
    assert_memory_equal(data, back, sizeof data);
    world_close(&w);
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

static void test_explain(void **state)
{
    struct world w;
    zarr_array *a = NULL;
    zarr_explanation *e = NULL;
    char text[4096];
    size_t n = 0;

    (void)state;
    world_open(&w, WORLD_LOCAL);
    a = make_array(&w, "x", 4, 8, 8);
    for (uint32_t what = ZARR_EXPLAIN_READ; what <= ZARR_EXPLAIN_WRITE; what++)
        for (uint32_t form = ZARR_EXPLAIN_TEXT; form <= ZARR_EXPLAIN_JSON; form++) {
            explain_text(a, what, NULL, form, text, sizeof text);
            assert_non_null(strstr(text, "zstd"));
            assert_true((text[0] == '{') == (form == ZARR_EXPLAIN_JSON));
        }
    assert_status(zarr_array_explain(&e, a, 2, NULL, NULL, NULL, &terr),
                  ZARR_ERR_INVALID);
    assert_null(e);
    assert_ok(zarr_array_explain(&e, a, ZARR_EXPLAIN_READ, NULL, NULL, NULL, &terr));
    zarr_array_free(a); /* the explanation does without it */
    assert_int_equal(e->struct_size, sizeof *e);
    assert_int_equal(e->ndim, 2);
    assert_int_equal(e->flags, ZARR_EXPLAIN_SHARDS);
    assert_int_equal(e->device_type, ZARR_DEVICE_CPU);
    assert_int_equal(e->elements, 64);
    assert_int_equal(e->objects, 4);
    assert_int_equal(e->objects_partial, 0);
    assert_int_equal(e->object_shape[1], 4);
    assert_int_equal(e->chunks, 16);
    assert_int_equal(e->chunk_shape[1], 2);
    assert_int_equal(e->chunk_bytes, 16);
    assert_int_equal(e->indexes_cached, 0);
    assert_int_equal(e->indexes_to_fetch, 4);
    assert_string_equal(e->path, "x");
    assert_string_equal(e->store, "local");
    assert_ok(zarr_explanation_text(e, ZARR_EXPLAIN_TEXT, NULL, 0, &n, &terr));
    assert_true(n > 10);
    assert_ok(zarr_explanation_text(e, ZARR_EXPLAIN_TEXT, text, 8, NULL, &terr));
    assert_string_equal(text, "read \"x");
    assert_status(zarr_explanation_text(e, 2, text, 1, &n, &terr), ZARR_ERR_INVALID);
    zarr_explanation_free(e);
    zarr_explanation_free(NULL);
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
        cmocka_unit_test(test_codecs),
        cmocka_unit_test(test_bytes_alone),
        cmocka_unit_test(test_chunk_guess),
        cmocka_unit_test(test_refused_specs),
        cmocka_unit_test(test_existing),
        cmocka_unit_test(test_document),
        cmocka_unit_test(test_open_errors),
        cmocka_unit_test(test_struct_sizes),
        cmocka_unit_test(test_both_formats),
        cmocka_unit_test(test_silent_separator),
        cmocka_unit_test(test_other_tensors),
        cmocka_unit_test(test_submit),
        cmocka_unit_test(test_chunk_store),
        cmocka_unit_test(test_overwrite_spares_files),
        cmocka_unit_test(test_explain),
        cmocka_unit_test(test_grown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
