/*
 * unit/meta/test_convert.c - converting array documents from one format to the other.
 */
#include "unit/meta/documents.h"

#include "unit/json/fail_alloc.h"

static const struct {
    int from;
    const char *patch, *attrs;
    zarr_status want;
    const char *says; /* with ZARR_OK: "key=json" of the converted document */
} conversions[] = {
    {2, "{\"dtype\":[[\"a\",\">i2\"],[\"b\",\">i4\"]],\"fill_value\":\"AAEAAAAC\"}", NULL,
     ZARR_OK, "fill_value={\"a\":1,\"b\":2}"},
    {2, "{\"dtype\":[[\"a\",\">i2\"],[\"b\",\">i4\"]],\"fill_value\":\"AAEAAAAC\"}", NULL,
     ZARR_OK, "codecs=[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}]"},
    {2, "{\"dtype\":[[\"a\",\">i2\"],[\"b\",\"<i4\"]],\"fill_value\":null}", NULL,
     ZARR_ERR_UNSUPPORTED, "differ in byte order"},
    {2, "{\"dtype\":[[\"a\",\"<i2\",[2]]],\"fill_value\":null}", NULL,
     ZARR_ERR_UNSUPPORTED, "no form in Zarr v3"},
    {3,
     "{\"data_type\":{\"name\":\"struct\",\"configuration\":{\"fields\":[{\"name\":\"a\","
     "\"data_"
     "type\":\"int16\"}]}},\"fill_value\":{\"a\":1},\"codecs\":[{\"name\":\"bytes\","
     "\"configuration\":{\"endian\":\"big\"}}]}",
     NULL, ZARR_OK, "dtype=[[\"a\",\">i2\"]]"},
    {3,
     "{\"data_type\":{\"name\":\"structured\",\"configuration\":{\"fields\":[[\"a\","
     "\"int16\"]]}},"
     "\"fill_value\":\"AQA=\",\"codecs\":[\"bytes\"]}",
     NULL, ZARR_OK, "dtype=[[\"a\",\"<i2\"]]"},
    {3, "{}", NULL, ZARR_OK, "dimension_separator=\"/\""},
    {3, "{\"data_type\":\"float32\",\"fill_value\":\"0x7fc00001\"}", NULL,
     ZARR_ERR_UNSUPPORTED,
     "fill_value: Zarr v2 cannot express \"0x7fc00001\", it would become \"NaN\""},
    {3, "{\"data_type\":\"float32\",\"fill_value\":\"0x7fc00000\"}", NULL, ZARR_OK,
     "fill_value=\"NaN\""},
    {3, "{\"data_type\":\"string\",\"fill_value\":\"ab\",\"codecs\":[\"vlen-utf8\"]}",
     NULL, ZARR_OK, "fill_value=\"ab\""},
    {2, "{\"dtype\":[[\"a\",\"<f4\"]],\"fill_value\":\"AQDAfw==\"}", NULL, ZARR_OK,
     "fill_value={\"a\":\"0x7fc00001\"}"},
    {3, "{\"dimension_names\":[\"y\",null]}", NULL, ZARR_ERR_UNSUPPORTED,
     "dimension_names[1] is null"},
    {3, "{\"dimension_names\":[null,null]}", NULL, ZARR_OK, "zarr_format=2"},
    {3,
     "{\"dimension_names\":[\"y\",\"x\"],\"attributes\":{\"_ARRAY_DIMENSIONS\":[\"x\","
     "\"y\"]}}",
     NULL, ZARR_ERR_UNSUPPORTED, "differs from dimension_names"},
    {3, "{\"chunk_key_encoding\":\"default\"}", NULL, ZARR_ERR_UNSUPPORTED,
     "chunk key encoding \"default\""},
    {3, "{\"chunk_key_encoding\":{\"name\":\"v2\"}}", NULL, ZARR_OK,
     "dimension_separator=\".\""},
    {3,
     "{\"codecs\":[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}}," BYTES_LE
     "]}",
     NULL, ZARR_OK, "order=\"F\""},
    {3,
     "{\"codecs\":[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}},{"
     "\"name\":"
     "\"transpose\",\"configuration\":{\"order\":[1,0]}}," BYTES_LE "]}",
     NULL, ZARR_OK, "order=\"C\""},
    {3, "{\"codecs\":[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}]}",
     NULL, ZARR_OK, "dtype=\">i4\""},
    {3, "{\"codecs\":[" BYTES_LE ",{\"name\":\"zstd\",\"configuration\":{\"level\":3}}]}",
     NULL, ZARR_OK, "compressor={\"id\":\"zstd\",\"level\":3}"},
    {3,
     "{\"codecs\":[" BYTES_LE
     ",{\"name\":\"gzip\",\"configuration\":{\"level\":3}},\"crc32c\"]}",
     NULL, ZARR_OK, "filters=[{\"id\":\"gzip\",\"level\":3}]"},
    {3,
     "{\"codecs\":[" BYTES_LE
     ",{\"name\":\"blosc\",\"configuration\":{\"cname\":\"lz4\",\"clevel\""
     ":5,\"shuffle\":\"bitshuffle\",\"typesize\":4,\"blocksize\":0}}]}",
     NULL, ZARR_OK,
     "compressor={\"id\":\"blosc\",\"cname\":\"lz4\",\"clevel\":5,\"shuffle\":2,"
     "\"blocksize\":0}"},
    {3,
     "{\"shape\":[3,4,5],\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_"
     "shape\":["
     "1,2,3]}},\"codecs\":[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0,2]}}"
     "," BYTES_LE "]}",
     NULL, ZARR_ERR_UNSUPPORTED, "transpose"},
    {3,
     "{\"codecs\":[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[5,"
     "5],"
     "\"codecs\":[" BYTES_LE "],\"index_codecs\":[" BYTES_LE ",\"crc32c\"]}}]}",
     NULL, ZARR_ERR_UNSUPPORTED, "sharding_indexed"},
    {2, "{}", NULL, ZARR_OK,
     "chunk_key_encoding={\"name\":\"v2\",\"configuration\":{\"separator\":\".\"}}"},
    {2, "{\"fill_value\":null}", NULL, ZARR_OK, "fill_value=0"},
    {2, "{\"dtype\":\"<M8[us]\",\"fill_value\":null}", NULL, ZARR_OK,
     "fill_value=\"NaT\""},
    {2, "{\"dtype\":\"|V2\",\"fill_value\":\"AQI=\"}", NULL, ZARR_OK,
     "fill_value=\"AQI=\""},
    {2, "{\"dtype\":\"|V2\",\"fill_value\":null}", NULL, ZARR_OK,
     "data_type={\"name\":\"raw_bytes\",\"configuration\":{\"length_bytes\":2}}"},
    {2, "{\"dtype\":\">i4\",\"filters\":[{\"id\":\"delta\",\"dtype\":\">i4\"}]}", NULL,
     ZARR_OK,
     "codecs=[{\"name\":\"numcodecs.delta\",\"configuration\":{\"dtype\":\"<i4\","
     "\"astype\":\"<i4\"}},{\"name\":\"bytes\",\"configuration\":{\"endian\":"
     "\"big\"}}]"},
    {2, "{\"dtype\":\">i4\",\"filters\":[{\"id\":\"delta\",\"dtype\":\"<i4\"}]}", NULL,
     ZARR_ERR_UNSUPPORTED, "delta"},
    {2, "{}", "{\"a\":1,\"_ARRAY_DIMENSIONS\":[\"y\",\"x\"]}", ZARR_OK,
     "attributes={\"a\":1}"},
    {2, "{}", "{\"a\":1,\"_ARRAY_DIMENSIONS\":[\"y\",\"x\"]}", ZARR_OK,
     "dimension_names=[\"y\",\"x\"]"},
    {2, "{}", "{\"_ARRAY_DIMENSIONS\":[\"y\"]}", ZARR_OK,
     "attributes={\"_ARRAY_DIMENSIONS\":[\"y\"]}"},
    {2,
     "{\"compressor\":{\"id\":\"blosc\",\"cname\":\"lz4\",\"clevel\":5,\"shuffle\":1,"
     "\"blocksize\":"
     "0}}",
     NULL, ZARR_OK,
     "codecs=[" BYTES_LE
     ",{\"name\":\"blosc\",\"configuration\":{\"typesize\":4,\"cname\":\"lz4\","
     "\"clevel\":5,\"shuffle\":\"shuffle\",\"blocksize\":0}}]"},
};

/* The v3 base document. Its chunk key encoding exists in v2, too, unless the patch
 * replaces it. */
static void patched_v3(struct zr_json_doc *doc, const char *patch)
{
    patch_document(doc, base_v3, patch);
    if (!strstr(patch, "chunk_key_encoding")) {
        struct zr_json *keys = zr_json_new(doc, ZR_JSON_OBJECT);
        struct zr_json *config = zr_json_new(doc, ZR_JSON_OBJECT);

        zr_json_set(doc, config, "separator", zr_json_new_text(doc, "/"));
        zr_json_set(doc, keys, "name", zr_json_new_text(doc, "v2"));
        zr_json_set(doc, keys, "configuration", config);
        zr_json_set(doc, doc->root, "chunk_key_encoding", keys);
    }
}

static void convert_documents(void **state)
{
    (void)state;
    for (size_t i = 0; i < ZR_COUNT(conversions); i++) {
        int from = conversions[i].from;
        struct zr_json_doc doc, attrs;
        struct zr_array_meta m, other;
        zarr_error err = {0};
        zarr_status st;

        if (from == 3)
            patched_v3(&doc, conversions[i].patch);
        else
            patch_document(&doc, base_v2, conversions[i].patch);
        patch_document(&attrs, conversions[i].attrs ? conversions[i].attrs : "{}", "{}");
        assert_int_equal(
            zr_array_meta_parse(&m, &world.env, from, doc.root, attrs.root, &err),
            ZARR_OK);
        st = zr_array_meta_convert(&other, &world.env, &m, 5 - from, &err);
        if (st != conversions[i].want)
            fail_msg("%s: %d %s", conversions[i].patch, st, err.message);
        if (st == ZARR_OK)
            check_written(
                &other, &(struct refusal){conversions[i].patch, st, conversions[i].says});
        else
            assert_non_null(strstr(err.message, conversions[i].says));
        zr_array_meta_deinit(&other);
        zr_array_meta_deinit(&m);
        zr_json_doc_deinit(&attrs);
        zr_json_doc_deinit(&doc);
    }
}

static void dimensions_to_v2(void **state)
{
    struct zr_array_meta m, other;
    struct zr_json_doc doc;

    (void)state;
    patched_v3(&doc, "{\"dimension_names\":[\"y\",\"x\"],\"attributes\":{\"a\":1}}");
    assert_int_equal(zr_array_meta_parse(&m, &world.env, 3, doc.root, NULL, NULL),
                     ZARR_OK);
    assert_int_equal(zr_array_meta_convert(&other, &world.env, &m, 2, NULL), ZARR_OK);
    assert_int_equal(zr_json_count(other.attributes), 2);
    assert_true(zr_json_is_text(
        zr_json_at(zr_json_get(other.attributes, "_ARRAY_DIMENSIONS"), 1), "x"));
    zr_array_meta_deinit(&other);
    assert_int_equal(zr_array_meta_convert(&other, &world.env, &m, 3, NULL), ZARR_OK);
    assert_string_equal(other.dimension_names[0], "y");
    zr_array_meta_deinit(&other);
    zr_array_meta_deinit(&m);
    zr_json_doc_deinit(&doc);
    patch_document(&doc, base_v2, "{}");
    assert_int_equal(zr_array_meta_parse(&m, &world.env, 2, doc.root, NULL, NULL),
                     ZARR_OK);
    assert_int_equal(zr_array_meta_convert(&other, &world.env, &m, 2, NULL), ZARR_OK);
    zr_array_meta_deinit(&m); /* the copy does not depend on the original */
    zr_json_doc_deinit(&doc);
    check_written(&other, &(struct refusal){"v2", ZARR_OK, "chunks=[10,20]"});
    zr_array_meta_deinit(&other);
}

static zarr_status scenario(const zarr_allocator *alloc)
{
    zarr_status st = ZARR_OK;
    struct meta_world w;
    struct zr_array_meta m = {0}, other = {0};
    struct zr_json_doc doc, out;
    struct zr_json *root = NULL;
    static const char patch[] = "{\"dimension_names\":[\"y\",\"x\"],\"codecs\":[{"
                                "\"name\":\"transpose\",\"configuration\":{"
                                "\"order\":[1,0]}}," BYTES_LE ",\"zstd\"]}";

    patched_v3(&doc, patch);
    zr_json_doc_init(&out, alloc);
    ZR_TRY(meta_world_open(&w, alloc));
    ZR_TRY(zr_array_meta_parse(&m, &w.env, 3, doc.root, NULL, NULL));
    ZR_TRY(zr_array_meta_complete(&m, NULL));
    ZR_TRY(zr_array_meta_write(&m, &out, &root, NULL));
    ZR_TRY(zr_array_meta_convert(&other, &w.env, &m, 2, NULL));
    zr_array_meta_deinit(&m);
    ZR_TRY(zr_array_meta_convert(&m, &w.env, &other, 3, NULL));
out:
    zr_array_meta_deinit(&other);
    zr_array_meta_deinit(&m);
    meta_world_close(&w);
    zr_json_doc_deinit(&out);
    zr_json_doc_deinit(&doc);
    return st;
}

static void no_memory(void **state)
{
    (void)state;
    fail_alloc_every(scenario, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convert_documents),
        cmocka_unit_test(dimensions_to_v2),
        cmocka_unit_test(no_memory),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
