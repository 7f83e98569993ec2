/*
 * unit/array/test_create_codecs.c - the codecs of new arrays: what is added to those that
 * the spec has, and those of a spec without any.
 */
#include "array_test.h"

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

/* Without codecs in the spec an array gets those that the memory of its tensors is fast
 * at. IF_MISSING takes either. */
static void test_codecs_for_devices(void **state)
{
    static const struct {
        int32_t device_type, zarr_format;
        const char *data_type, *codec;
    } cases[] = {
        {ZARR_DEVICE_CUDA, 3, "int32", "\"lz4\""},
        {ZARR_DEVICE_CUDA, 2, "float32", "\"lz4\""},
        {ZARR_DEVICE_CUDA_HOST, 3, "int32", "\"lz4\""},
        {ZARR_DEVICE_CUDA_MANAGED, 3, "int32", "\"lz4\""},
        {ZARR_DEVICE_CPU, 3, "int32", "\"zstd\""},
        {0, 2, "int32", "\"zstd\""},
        {ZARR_DEVICE_CUDA, 3, "string", "\"zstd\""},
    };
    const uint64_t shape[1] = {6};
    struct world w;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        zarr_array_open_options o = ZARR_ARRAY_OPEN_OPTIONS_INIT;
        zarr_array_spec spec = {.struct_size = sizeof spec,
                                .flags = ZARR_SPEC_IF_MISSING,
                                .ndim = 1,
                                .shape = shape,
                                .chunk_shape = shape,
                                .zarr_format = cases[i].zarr_format,
                                .data_type = cases[i].data_type};
        zarr_array *a = NULL;

        world_open(&w, WORLD_MEMORY);
        o.device_type = cases[i].device_type;
        assert_ok(zarr_array_create(&a, w.store, "x", &spec, &o, &terr));
        assert_non_null(strstr(zarr_array_codecs(a), cases[i].codec));
        zarr_array_free(a);
        for (int other = 1; other <= 2; other++) {
            o.device_type = other == 1 ? ZARR_DEVICE_CPU : ZARR_DEVICE_CUDA;
            assert_ok(zarr_array_create(&a, w.store, "x", &spec, &o, &terr));
            assert_non_null(strstr(zarr_array_codecs(a), cases[i].codec));
            zarr_array_free(a);
        }
        spec.codecs = cases[i].zarr_format == 2 ? "{}" : "[\"bytes\"]";
        if (strcmp(cases[i].data_type, "string") != 0)
            assert_status(zarr_array_create(&a, w.store, "x", &spec, &o, &terr),
                          ZARR_ERR_EXISTS);
        world_close(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_codecs),
        cmocka_unit_test(test_bytes_alone),
        cmocka_unit_test(test_codecs_for_devices),
    };

    return cmocka_run_group_tests_name("array_create_codecs", tests, NULL, NULL);
}
