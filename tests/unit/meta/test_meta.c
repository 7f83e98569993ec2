/*
 * unit/meta/test_meta.c - documents that are read, and documents that are refused with
 * the reason, in both formats.
 */
#include "unit/meta/documents.h"

static const char base_objects[] =
    "{\"zarr_format\":2,\"shape\":[30,20],\"chunks\":[10,20],\"dtype\":\"|O\",\"order\":"
    "\"C\",\"filters\":null,\"compressor\":null,\"dimension_separator\":\".\"}";

static void run_table(const char *base, int format, const struct refusal *table, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct zr_array_meta m;
        struct zr_json_doc doc;
        zarr_error err = {0};
        zarr_status st;

        patch_document(&doc, base, table[i].patch);
        st = zr_array_meta_parse(&m, &world.env, format, doc.root, NULL, &err);
        if (st != table[i].want || (st != ZARR_OK && err.code != st))
            fail_msg("%s: %d %s", table[i].patch, st, err.message);
        if (st == ZARR_OK)
            check_written(&m, &table[i]);
        else if (!strstr(err.message, table[i].says))
            fail_msg("%s: %s", table[i].patch, err.message);
        zr_array_meta_deinit(&m);
        zr_json_doc_deinit(&doc);
    }
}

static const struct refusal v3_table[] = {
    {"{}", ZARR_OK, "attributes={}"},
    {"{\"attributes\":null}", ZARR_OK, "attributes={}"},
    {"{\"attributes\":{\"a\":1e2}}", ZARR_OK, "attributes={\"a\":1e2}"},
    {"{\"storage_transformers\":null}", ZARR_OK, "storage_transformers=[]"},
    {"{\"storage_transformers\":[]}", ZARR_OK, "storage_transformers=[]"},
    {"{\"dimension_names\":null}", ZARR_OK, NULL},
    {"{\"dimension_names\":[\"a\",null]}", ZARR_OK, "dimension_names=[\"a\",null]"},
    {"{\"dimension_names\":[\"a\",\"a\"]}", ZARR_OK, "dimension_names=[\"a\",\"a\"]"},
    {"{\"consolidated_metadata\":null}", ZARR_OK, NULL},
    {"{\"data_type\":{\"name\":\"int32\"}}", ZARR_OK, "data_type=\"int32\""},
    {"{\"fill_value\":7.0}", ZARR_OK, "fill_value=7"},
    {"{\"fill_value\":\"7\"}", ZARR_OK, "fill_value=7"},
    {"{\"data_type\":\"float32\",\"fill_value\":\"0x7fc00001\"}", ZARR_OK,
     "fill_value=\"0x7fc00001\""},
    {"{\"data_type\":\"float32\",\"fill_value\":NaN}", ZARR_OK, "fill_value=\"NaN\""},
    {"{\"data_type\":\"float32\",\"fill_value\":-0.0}", ZARR_OK, "fill_value=-0.0"},
    {"{\"data_type\":\"uint64\",\"fill_value\":18446744073709551615}", ZARR_OK,
     "fill_value=18446744073709551615"},
    {"{\"codecs\":[{\"name\":\"endian\",\"configuration\":{\"endian\":\"big\"}}]}",
     ZARR_OK, "codecs=[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}]"},
    {"{\"data_type\":\"int8\",\"codecs\":[\"bytes\"]}", ZARR_OK,
     "codecs=[{\"name\":\"bytes\"}]"},
    {"{\"codecs\":[" BYTES_LE ",\"crc32c\",\"zstd\"]}", ZARR_OK, NULL},
    {"{\"chunk_key_encoding\":\"default\"}", ZARR_OK,
     "chunk_key_encoding={\"name\":\"default\",\"configuration\":{\"separator\":\"/\"}}"},
    {"{\"chunk_key_encoding\":{\"name\":\"v2\"}}", ZARR_OK,
     "chunk_key_encoding={\"name\":\"v2\",\"configuration\":{\"separator\":\".\"}}"},
    {"{\"later\":{\"must_understand\":false,\"x\":1}}", ZARR_OK,
     "later={\"must_understand\":false,\"x\":1}"},
    {"{\"shape\":[1099511627776,1099511627776]}", ZARR_OK, NULL},
    {"{\"shape\":[0,20]}", ZARR_OK, "shape=[0,20]"},
    {"{\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":["
     "4294967296,3]}}}",
     ZARR_OK, NULL}, /* metadata of a 48 GiB chunk can be read */

    {"{\"zarr_format\":2}", ZARR_ERR_CORRUPT, "zarr_format must be 3, not 2"},
    {"{\"zarr_format\":\"3\"}", ZARR_ERR_CORRUPT, "zarr_format"},
    {"{\"-zarr_format\":0}", ZARR_ERR_CORRUPT, "zarr_format must be 3, not nothing"},
    {"{\"node_type\":\"group\"}", ZARR_ERR_CORRUPT,
     "node_type must be \"array\", not \"group\""},
    {"{\"-node_type\":0}", ZARR_ERR_CORRUPT, "node_type"},
    {"{\"-shape\":0}", ZARR_ERR_CORRUPT, "shape must be a list"},
    {"{\"shape\":[1e26,20]}", ZARR_ERR_CORRUPT, "shape must be a list of whole numbers"},
    {"{\"shape\":[-1,20]}", ZARR_ERR_CORRUPT, "not -1"},
    {"{\"shape\":[30.0,20]}", ZARR_ERR_CORRUPT, "not 30.0"},
    {"{\"shape\":[9223372036854775808,20]}", ZARR_ERR_CORRUPT, "2^63-1"},
    {"{\"shape\":[30]}", ZARR_ERR_CORRUPT, "chunk_grid"},
    {"{\"shape\":30}", ZARR_ERR_CORRUPT, "shape must be a list"},
    {"{\"-data_type\":0}", ZARR_ERR_CORRUPT, "data_type"},
    {"{\"data_type\":\"int33\"}", ZARR_ERR_UNSUPPORTED, "\"int33\" is not known"},
    {"{\"data_type\":\"<i4\"}", ZARR_ERR_UNSUPPORTED, "<i4"},
    {"{\"-chunk_grid\":0}", ZARR_ERR_CORRUPT, "chunk_grid must be"},
    {"{\"chunk_grid\":\"regular\"}", ZARR_ERR_CORRUPT, "chunk_grid"},
    {"{\"chunk_grid\":{\"name\":\"hexagonal\"}}", ZARR_ERR_UNSUPPORTED, "hexagonal"},
    {"{\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[10,0]}}}",
     ZARR_ERR_CORRUPT, "chunk_grid"},
    {"{\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[10,-1]}}"
     "}",
     ZARR_ERR_CORRUPT, "chunk_grid"},
    {"{\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[10]}}}",
     ZARR_ERR_CORRUPT, "chunk_grid"},
    {"{\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":["
     "4294967296,"
     "4294967296]}}}",
     ZARR_ERR_LIMIT, "64 bits"},
    {"{\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[10,20]},"
     "\"must_understand\":false}}",
     ZARR_ERR_CORRUPT, "must_understand"},
    {"{\"chunk_grid\":{\"name\":\"regular\",\"extra\":1}}", ZARR_ERR_CORRUPT,
     "\"extra\""},
    {"{\"-chunk_key_encoding\":0}", ZARR_ERR_CORRUPT, "chunk_key_encoding"},
    {"{\"chunk_key_encoding\":\"fanout\"}", ZARR_ERR_UNSUPPORTED, "fanout"},
    {"{\"chunk_key_encoding\":{\"name\":\"default\",\"configuration\":{\"separator\":\"-"
     "\"}}}",
     ZARR_ERR_CORRUPT, "separator"},
    {"{\"-fill_value\":0}", ZARR_ERR_CORRUPT, "fill_value is missing"},
    {"{\"fill_value\":\"x\"}", ZARR_ERR_CORRUPT, "\"x\" is not a valid int32"},
    {"{\"fill_value\":null}", ZARR_OK, "fill_value=0"},
    {"{\"data_type\":\"bool\",\"fill_value\":null}", ZARR_OK, "fill_value=false"},
    {"{\"fill_value\":[0]}", ZARR_ERR_CORRUPT, "fill_value"},
    {"{\"fill_value\":2147483648}", ZARR_ERR_CORRUPT, "out of range"},
    {"{\"-codecs\":0}", ZARR_ERR_CORRUPT, "codecs"},
    {"{\"codecs\":{}}", ZARR_ERR_CORRUPT, "codecs"},
    {"{\"codecs\":[]}", ZARR_ERR_CORRUPT, "endian"},
    {"{\"codecs\":[\"bytes\"]}", ZARR_ERR_CORRUPT, "endian"},
    {"{\"codecs\":[" BYTES_LE ",\"wavpack\"]}", ZARR_ERR_UNSUPPORTED, "wavpack"},
    {"{\"codecs\":[" BYTES_LE ",{\"name\":\"wavpack\",\"must_understand\":false}]}",
     ZARR_ERR_UNSUPPORTED, "wavpack"},
    {"{\"codecs\":[{\"name\":\"transpose\",\"configuration\":{\"order\":[0]}}," BYTES_LE
     "]}",
     ZARR_ERR_CORRUPT, "order"},
    {"{\"codecs\":[{\"name\":\"transpose\",\"configuration\":{\"order\":[0,0]}}," BYTES_LE
     "]}",
     ZARR_ERR_CORRUPT, "permutation"},
    {"{\"dimension_names\":[\"a\"]}", ZARR_ERR_CORRUPT, "dimension_names"},
    {"{\"dimension_names\":[\"a\",1]}", ZARR_ERR_CORRUPT, "dimension_names"},
    {"{\"dimension_names\":\"ab\"}", ZARR_ERR_CORRUPT, "dimension_names"},
    {"{\"dimension_names\":[\"a\\u0000\",\"b\"]}", ZARR_ERR_CORRUPT, "dimension_names"},
    {"{\"attributes\":[]}", ZARR_ERR_CORRUPT, "attributes must be an object"},
    {"{\"storage_transformers\":[{\"name\":\"chunk-manifest-json\"}]}",
     ZARR_ERR_UNSUPPORTED, "chunk-manifest-json"},
    {"{\"storage_transformers\":[{\"name\":\"x\",\"must_understand\":false}]}",
     ZARR_ERR_UNSUPPORTED, "\"x\""},
    {"{\"storage_transformers\":[{\"name\":\"\"}]}", ZARR_ERR_CORRUPT,
     "storage_transformers"},
    {"{\"storage_transformers\":[{\"label\":1}]}", ZARR_ERR_CORRUPT, "a name"},
    {"{\"storage_transformers\":[\"x\"]}", ZARR_ERR_UNSUPPORTED, "\"x\""},
    {"{\"storage_transformers\":7}", ZARR_ERR_CORRUPT, "storage_transformers"},
    {"{\"later\":{\"x\":1}}", ZARR_ERR_UNSUPPORTED, "\"later\""},
    {"{\"later\":{\"must_understand\":true}}", ZARR_ERR_UNSUPPORTED, "\"later\""},
    {"{\"later\":false}", ZARR_ERR_UNSUPPORTED, "\"later\""},
};

static const struct refusal v2_table[] = {
    {"{}", ZARR_OK, "filters=null"},
    {"{\"filters\":[]}", ZARR_OK, "filters=null"},
    {"{\"-filters\":0,\"-compressor\":0,\"-dimension_separator\":0}", ZARR_OK,
     "compressor=null"},
    {"{\"-fill_value\":0}", ZARR_OK, "fill_value=null"},
    {"{\"fill_value\":null}", ZARR_OK, "fill_value=null"},
    {"{\"fill_value\":0.0}", ZARR_OK, "fill_value=0"},
    {"{\"fill_value\":\"0\"}", ZARR_OK, "fill_value=0"},
    {"{\"dtype\":\"<f4\",\"fill_value\":NaN}", ZARR_OK, "fill_value=\"NaN\""},
    {"{\"dtype\":\">f4\",\"fill_value\":-Infinity}", ZARR_OK, "fill_value=\"-Infinity\""},
    {"{\"dtype\":\"|S1\",\"fill_value\":0}", ZARR_OK, "fill_value=\"AA==\""},
    {"{\"dtype\":\"<U4\",\"fill_value\":0}", ZARR_OK, "fill_value=\"\""},
    {"{\"dtype\":\"<u1\",\"fill_value\":1}", ZARR_OK, "dtype=\"|u1\""},
    {"{\"dtype\":\">i1\",\"fill_value\":1}", ZARR_OK, "dtype=\"|i1\""},
    {"{\"dtype\":\">U4\",\"fill_value\":\"ab\"}", ZARR_OK, "dtype=\">U4\""},
    {"{\"order\":\"F\"}", ZARR_OK, "order=\"F\""},
    {"{\"-order\":0}", ZARR_OK, "order=\"C\""},
    {"{\"order\":null}", ZARR_ERR_CORRUPT, "order must be \"C\" or \"F\", not null"},
    {"{\"dimension_separator\":\"/\"}", ZARR_OK, "dimension_separator=\"/\""},
    {"{\"dimension_separator\":null}", ZARR_OK, "dimension_separator=\".\""},
    {"{\"compressor\":{\"id\":\"zstd\",\"level\":1,\"odd\":true}}", ZARR_OK,
     "compressor={\"id\":\"zstd\",\"level\":1,\"odd\":true}"},
    {"{\"_nczarr_array\":{\"dimrefs\":[\"/a\"]}}", ZARR_OK,
     "_nczarr_array={\"dimrefs\":[\"/a\"]}"},
    {"{\"chunks\":[100,100]}", ZARR_OK, "chunks=[100,100]"},

    {"{\"zarr_format\":3}", ZARR_ERR_CORRUPT, "zarr_format must be 2, not 3"},
    {"{\"-shape\":0}", ZARR_ERR_CORRUPT, "shape"},
    {"{\"chunks\":[10]}", ZARR_ERR_CORRUPT,
     "chunks has 1 entries, the array has 2 dimensions"},
    {"{\"chunks\":[10,-2]}", ZARR_ERR_CORRUPT, "chunks"},
    {"{\"chunks\":[10,0]}", ZARR_ERR_CORRUPT, "chunks"},
    {"{\"chunks\":null}", ZARR_ERR_CORRUPT, "chunks"},
    {"{\"-dtype\":0}", ZARR_ERR_CORRUPT, "dtype"},
    {"{\"dtype\":\"i4\"}", ZARR_ERR_CORRUPT, "byte order"},
    {"{\"dtype\":\"|O\"}", ZARR_ERR_UNSUPPORTED, "objects"},
    {"{\"dtype\":\"<f16\"}", ZARR_ERR_UNSUPPORTED, "long double"},
    {"{\"dtype\":[[\"a\",\"i4\"]]}", ZARR_ERR_CORRUPT, "byte order"},
    {"{\"dtype\":[]}", ZARR_ERR_CORRUPT, "at least one field"},
    {"{\"dtype\":[[\"a\",\">i2\"],[\"b\",\"<i2\",[2]]],\"fill_value\":\"AAECAAMA\"}",
     ZARR_OK, "dtype=[[\"a\",\">i2\"],[\"b\",\"<i2\",[2]]]"},
    {"{\"dtype\":[[\"a\",\">i2\"],[\"b\",\"<i2\",[2]]],\"fill_value\":\"AAECAAMA\"}",
     ZARR_OK, "fill_value=\"AAECAAMA\""},
    {"{\"dtype\":[[\"a\",\">i2\"],[\"b\",\"<i2\"]],\"fill_value\":{\"a\":1,\"b\":2}}",
     ZARR_OK, "fill_value=\"AAECAA==\""},
    {"{\"dtype\":[[\"a\",\">i2\"]],\"fill_value\":0}", ZARR_OK, "fill_value=\"AAA=\""},
    {"{\"dtype\":[[\"a\",\">i2\"]],\"fill_value\":\"AAAA\"}", ZARR_ERR_CORRUPT,
     "base64 of its 2"},
    {"{\"fill_value\":\"x\"}", ZARR_ERR_CORRUPT, "fill_value"},
    {"{\"fill_value\":[1,2]}", ZARR_ERR_CORRUPT, "fill_value"},
    {"{\"order\":\"A\"}", ZARR_ERR_CORRUPT, "order must be"},
    {"{\"dimension_separator\":\"-\"}", ZARR_ERR_CORRUPT, "dimension_separator"},
    {"{\"filters\":{}}", ZARR_ERR_CORRUPT, "filters"},
    {"{\"filters\":[7]}", ZARR_ERR_CORRUPT, "filters"},
    {"{\"filters\":[{\"id\":\"pickle\"}]}", ZARR_ERR_UNSUPPORTED, "pickle"},
    {"{\"compressor\":\"zstd\"}", ZARR_ERR_CORRUPT, "compressor"},
    {"{\"compressor\":{\"id\":\"imagecodecs_x\"}}", ZARR_ERR_UNSUPPORTED,
     "imagecodecs_x"},
    {"{\"compressor\":{\"id\":\"bytes\"}}", ZARR_ERR_UNSUPPORTED,
     "compressor: codec \"bytes\" is unknown in Zarr v2"},
    {"{\"filters\":[{\"id\":\"transpose\",\"order\":[1,0]}]}", ZARR_ERR_UNSUPPORTED,
     "filters[0]: codec \"transpose\" is unknown in Zarr v2"},
};

/* "|O": the object codec tells what the elements are. */
static const struct refusal object_table[] = {
    {"{\"fill_value\":\"x\",\"filters\":[{\"id\":\"vlen-utf8\"}]}", ZARR_OK,
     "fill_value=\"x\""},
    {"{\"fill_value\":0,\"filters\":[{\"id\":\"vlen-utf8\"}]}", ZARR_OK,
     "fill_value=\"\""},
    {"{\"fill_value\":\"AAH/\",\"filters\":[{\"id\":\"vlen-bytes\"}]}", ZARR_OK,
     "fill_value=\"AAH/\""},
    {"{\"fill_value\":\"\",\"filters\":[{\"id\":\"json2\"},{\"id\":\"zlib\"}]}", ZARR_OK,
     "dtype=\"|O\""},
    {"{\"fill_value\":\"\",\"compressor\":{\"id\":\"msgpack2\"}}", ZARR_OK,
     "compressor={\"id\":\"msgpack2\"}"},
    {"{\"fill_value\":\"\",\"object_codec\":{\"id\":\"vlen-utf8\"},"
     "\"compressor\":{\"id\":\"zlib\"}}",
     ZARR_OK, "compressor={\"id\":\"zlib\"}"},
    {"{\"fill_value\":null,\"filters\":[{\"id\":\"vlen-array\",\"dtype\":\"<i4\"}]}",
     ZARR_OK, "filters=[{\"id\":\"vlen-array\",\"dtype\":\"<i4\"}]"},
    {"{\"fill_value\":0,\"filters\":[{\"id\":\"vlen-array\",\"dtype\":\"<M8[s]\"}]}",
     ZARR_OK, "fill_value=0"},
    {"{\"fill_value\":[1,-2],\"filters\":[{\"id\":\"vlen-array\",\"dtype\":\">i2\"}]}",
     ZARR_OK, "fill_value=[1,-2]"},
    {"{\"fill_value\":[1,2.5],\"filters\":[{\"id\":\"vlen-array\",\"dtype\":\">i2\"}]}",
     ZARR_ERR_CORRUPT, "fill_value"},
    {"{\"fill_value\":0,\"filters\":[{\"id\":\"vlen-array\"}]}", ZARR_ERR_CORRUPT,
     "vlen-array: dtype must be a NumPy type"},
    {"{\"fill_value\":0,\"filters\":[{\"id\":\"vlen-array\",\"dtype\":\"wild\"}]}",
     ZARR_ERR_UNSUPPORTED, "wild"},
    {"{\"fill_value\":0,\"filters\":[{\"id\":\"vlen-array\",\"dtype\":\"string\"}]}",
     ZARR_ERR_UNSUPPORTED, "items must have a fixed length"},
    {"{\"fill_value\":\"\",\"order\":\"F\",\"filters\":[{\"id\":\"json2\"}]}",
     ZARR_ERR_UNSUPPORTED, "order \"F\" with the filter \"json2\""},
    {"{\"fill_value\":\"\",\"order\":\"F\",\"filters\":[{\"id\":\"vlen-utf8\"}]}",
     ZARR_OK, "order=\"F\""},
    {"{\"fill_value\":0,\"filters\":[{\"id\":\"wild\"}]}", ZARR_ERR_UNSUPPORTED,
     "with the filter \"wild\" in front is not known"},
    {"{\"fill_value\":0,\"filters\":[{\"id\":\"pickle\"}]}", ZARR_ERR_UNSUPPORTED,
     "pickle"},
    {"{\"fill_value\":0,\"filters\":[{\"id\":\"zlib\"},{\"id\":\"vlen-utf8\"}]}",
     ZARR_ERR_UNSUPPORTED, "with the filter \"zlib\" in front"},
};

static void tables(void **state)
{
    (void)state;
    run_table(base_v3, 3, v3_table, ZR_COUNT(v3_table));
    run_table(base_v2, 2, v2_table, ZR_COUNT(v2_table));
    run_table(base_objects, 2, object_table, ZR_COUNT(object_table));
}

/* The same errors are INVALID if the caller asked for the document to be made. */
static void wishes(void **state)
{
    struct zr_meta_env env = world.env;
    struct zr_json_doc doc;
    struct zr_array_meta m;
    zarr_error err = {0};

    (void)state;
    env.stored = false;
    patch_document(&doc, base_v3, "{\"shape\":[-1,20]}");
    assert_int_equal(zr_array_meta_parse(&m, &env, 3, doc.root, NULL, &err),
                     ZARR_ERR_INVALID);
    assert_int_equal(err.code, ZARR_ERR_INVALID);
    assert_int_equal(zr_array_meta_parse(&m, &env, 4, doc.root, NULL, &err),
                     ZARR_ERR_INVALID);
    assert_int_equal(zr_array_meta_parse(&m, &env, 3, NULL, NULL, &err),
                     ZARR_ERR_INVALID);
    zr_json_doc_deinit(&doc);
    zr_array_meta_deinit(NULL);
}

static void limits(void **state)
{
    static const struct {
        const char *patch, *knob;
    } cases[] = {
        {"{\"shape\":[1,2,3]}", "rank"},
        {"{\"dimension_names\":[\"abcd\",\"abcde\"]}", "dimension_name_bytes"},
        {"{\"codecs\":[" BYTES_LE ",\"crc32c\",\"crc32c\",\"crc32c\"]}", "codecs"},
    };
    const zarr_limits low = {.rank = 2, .dimension_name_bytes = 4, .codecs = 3};
    struct zr_meta_env env = world.env;

    (void)state;
    env.limits = &low;
    for (size_t i = 0; i < ZR_COUNT(cases); i++) {
        struct zr_json_doc doc;
        struct zr_array_meta m;
        zarr_error err = {0};

        patch_document(&doc, base_v3, cases[i].patch);
        assert_int_equal(zr_array_meta_parse(&m, &env, 3, doc.root, NULL, &err),
                         ZARR_ERR_LIMIT);
        assert_non_null(strstr(err.message, cases[i].knob));
        zr_json_doc_deinit(&doc);
    }
}

static void v2_facts(void **state)
{
    struct zr_json_doc doc, attrs;
    struct zr_array_meta m;
    struct zr_json *codecs = NULL;
    struct zr_str text;
    static const char names[] = "{\"_ARRAY_DIMENSIONS\":[\"y\",\"x\"],\"b\":NaN}";

    (void)state;
    zr_str_init(&text, NULL);
    patch_document(
        &doc, base_v2,
        "{\"dtype\":\">i4\",\"order\":\"F\",\"-dimension_separator\":0,\"filters\":[{"
        "\"id\":"
        "\"shuffle\",\"elementsize\":4}],\"compressor\":{\"id\":\"zlib\",\"level\":1}}");
    zr_json_doc_init(&attrs, NULL);
    assert_int_equal(zr_json_parse(&attrs, names, sizeof names - 1, NULL, NULL), ZARR_OK);
    assert_int_equal(zr_array_meta_parse(&m, &world.env, 2, doc.root, attrs.root, NULL),
                     ZARR_OK);
    assert_int_equal(m.byte_order, ZARR_ORDER_BIG);
    assert_int_equal(m.order, 'F');
    assert_false(m.separator_given);
    assert_string_equal(m.dimension_names[1], "x");
    assert_int_equal(*(int32_t *)(void *)m.fill, 7);
    assert_int_equal(zr_array_meta_codecs(&m, &doc, &codecs, NULL), ZARR_OK);
    zr_json_write(codecs, 0, &text);
    assert_string_equal(
        zr_str_text(&text),
        "[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}},{\"name\":"
        "\"bytes\","
        "\"configuration\":{\"endian\":\"big\"}},{\"name\":\"numcodecs.shuffle\","
        "\"configuration\":{\"elementsize\":4}},{\"name\":\"numcodecs.zlib\","
        "\"configuration\":{"
        "\"level\":1}}]");
    zr_array_meta_deinit(&m);
    assert_int_equal(zr_array_meta_parse(&m, &world.env, 2, doc.root,
                                         doc.root->u.children.first, NULL),
                     ZARR_ERR_CORRUPT); /* .zattrs is not an object */
    zr_str_deinit(&text);
    zr_json_doc_deinit(&attrs);
    zr_json_doc_deinit(&doc);
}

static const struct {
    int format;
    const char *text;
    zarr_status want;
    const char *says; /* with ZARR_OK: the document that is written */
} groups[] = {
    {3, "{\"zarr_format\":3,\"node_type\":\"group\"}", ZARR_OK,
     "{\"attributes\":{},\"zarr_format\":3,\"node_type\":\"group\"}"},
    {3, "{\"zarr_format\":3,\"node_type\":\"group\",\"consolidated_metadata\":null}",
     ZARR_OK, "{\"attributes\":{},\"zarr_format\":3,\"node_type\":\"group\"}"},
    {3,
     "{\"zarr_format\":3,\"node_type\":\"group\",\"attributes\":{\"a\":1},\"consolidated_"
     "metadata\""
     ":{\"metadata\":{}},\"x\":{\"must_understand\":false}}",
     ZARR_OK,
     "{\"attributes\":{\"a\":1},\"zarr_format\":3,\"consolidated_metadata\":{\"kind\":"
     "\"inline\","
     "\"must_understand\":false,\"metadata\":{}},\"node_type\":\"group\",\"x\":{\"must_"
     "understand\":false}}"},
    {3, "{\"zarr_format\":3,\"node_type\":\"array\"}", ZARR_ERR_CORRUPT, "node_type"},
    {3, "{\"zarr_format\":3,\"node_type\":\"group\",\"x\":1}", ZARR_ERR_UNSUPPORTED,
     "\"x\""},
    {3, "{\"zarr_format\":3,\"node_type\":\"group\",\"attributes\":1}", ZARR_ERR_CORRUPT,
     "attributes"},
    {3, "{\"zarr_format\":3,\"node_type\":\"group\",\"consolidated_metadata\":1}",
     ZARR_ERR_CORRUPT, "consolidated_metadata"},
    {3,
     "{\"zarr_format\":3,\"node_type\":\"group\",\"consolidated_metadata\":{\"kind\":"
     "\"remote\","
     "\"metadata\":{}}}",
     ZARR_ERR_UNSUPPORTED, "\"remote\""},
    {3, "[]", ZARR_ERR_CORRUPT, "object"},
    {2, "{\"zarr_format\":2}", ZARR_OK, "{\"zarr_format\":2}"},
    {2, "{\"zarr_format\":2,\"consolidated_metadata\":{},\"_nczarr_group\":{}}", ZARR_OK,
     "{\"zarr_format\":2,\"_nczarr_group\":{}}"},
    {2, "{\"zarr_format\":3}", ZARR_ERR_CORRUPT, "zarr_format"},
    {2, "{}", ZARR_ERR_CORRUPT, "zarr_format"},
};

static void group_documents(void **state)
{
    (void)state;
    for (size_t i = 0; i < ZR_COUNT(groups); i++) {
        struct zr_group_meta m;
        struct zr_json_doc doc;
        struct zr_json *root = NULL;
        struct zr_str text;
        zarr_error err = {0};
        zarr_status st;

        zr_str_init(&text, NULL);
        zr_json_doc_init(&doc, NULL);
        assert_int_equal(
            zr_json_parse(&doc, groups[i].text, strlen(groups[i].text), NULL, NULL),
            ZARR_OK);
        st = zr_group_meta_parse(&m, &world.env, groups[i].format, doc.root, NULL, &err);
        if (st != groups[i].want)
            fail_msg("%s: %d %s", groups[i].text, st, err.message);
        if (st == ZARR_OK) {
            assert_int_equal(zr_group_meta_write(&m, &doc, &root, NULL), ZARR_OK);
            zr_json_write(root, 0, &text);
            assert_string_equal(zr_str_text(&text), groups[i].says);
        } else {
            assert_non_null(strstr(err.message, groups[i].says));
        }
        zr_str_deinit(&text);
        zr_json_doc_deinit(&doc);
    }
}

static void write_consolidated(void **state)
{
    struct zr_json_doc doc, g, a;
    struct zr_str text;
    const struct zr_json *map = NULL;

    (void)state;
    zr_str_init(&text, NULL);
    zr_json_doc_init(&doc, NULL);
    patch_document(&g, "{\"zarr_format\":3,\"node_type\":\"group\"}", "{}");
    patch_document(&a, "{\"zarr_format\":3,\"node_type\":\"array\"}", "{}");
    zr_json_write(
        zr_consolidated_write_v3(
            &doc, (struct zr_meta_node[]){{"g", g.root, NULL}, {"g/a", a.root, NULL}}, 2),
        0, &text);
    assert_string_equal(
        zr_str_text(&text),
        "{\"kind\":\"inline\",\"must_understand\":false,\"metadata\":{\"g\":{\"zarr_"
        "format\":3,"
        "\"node_type\":\"group\",\"consolidated_metadata\":{\"kind\":\"inline\",\"must_"
        "understand\":false,\"metadata\":{}}},\"g/"
        "a\":{\"zarr_format\":3,\"node_type\":\"array\"}"
        "}}");
    zr_json_doc_deinit(&g);
    zr_json_doc_deinit(&a);
    patch_document(&g, "{\"zarr_format\":2}", "{}");
    patch_document(&a, "{\"zarr_format\":2,\"shape\":[]}", "{}");
    zr_str_clear(&text);
    doc.root = zr_consolidated_write_v2(
        &doc, (struct zr_meta_node[]){{"", g.root, g.root}, {"a", a.root, NULL}}, 2);
    zr_json_write(doc.root, 0, &text);
    assert_string_equal(
        zr_str_text(&text),
        "{\"metadata\":{\".zgroup\":{\"zarr_format\":2},\".zattrs\":{\"zarr_"
        "format\":2},\"a/.zarray\":{\"zarr_format\":2,\"shape\":[]}},\"zarr_"
        "consolidated_format\":1}");
    assert_int_equal(zr_consolidated_map(&map, 2, doc.root, NULL), ZARR_OK);
    assert_int_equal(zr_json_count(map), 3);
    assert_int_equal(zr_consolidated_map(&map, 2, g.root, NULL), ZARR_ERR_UNSUPPORTED);
    assert_null(map);
    zr_str_deinit(&text);
    zr_json_doc_deinit(&g);
    zr_json_doc_deinit(&a);
    zr_json_doc_deinit(&doc);
}

static const struct {
    const char *path;
    size_t bytes;
    zarr_status want,
        want_new; /* as a name in a foreign file; as that of a new v3 node */
} paths[] = {
    {"", 0, ZARR_ERR_INVALID, ZARR_ERR_INVALID},
    {"a", 1, ZARR_OK, ZARR_OK},
    {"a/b", 3, ZARR_ERR_INVALID, ZARR_ERR_INVALID},
    {"/a", 2, ZARR_ERR_INVALID, ZARR_ERR_INVALID},
    {"a/", 2, ZARR_ERR_INVALID, ZARR_ERR_INVALID},
    {"a//b", 4, ZARR_ERR_INVALID, ZARR_ERR_INVALID},
    {".", 1, ZARR_ERR_INVALID, ZARR_ERR_INVALID},
    {"..", 2, ZARR_ERR_INVALID, ZARR_ERR_INVALID},
    {"a/../b", 6, ZARR_ERR_INVALID, ZARR_ERR_INVALID},
    {"...", 3, ZARR_OK, ZARR_ERR_INVALID},
    {"..a", 3, ZARR_OK, ZARR_OK},
    {".hidden", 7, ZARR_OK, ZARR_OK},
    {"__x", 3, ZARR_OK, ZARR_ERR_INVALID},
    {"_x", 2, ZARR_OK, ZARR_OK},
    {"zarr.json", 9, ZARR_OK, ZARR_ERR_INVALID},
    {".zarray", 7, ZARR_OK, ZARR_ERR_INVALID},
    {".zarrc-job", 10, ZARR_OK, ZARR_ERR_INVALID},
    {".zarrc-leftovers", 16, ZARR_OK, ZARR_ERR_INVALID},
    {"a b \xC3\xA9", 6, ZARR_OK, ZARR_OK},
    {"a\\b", 3, ZARR_ERR_INVALID, ZARR_ERR_INVALID},
    {"a\0b", 3, ZARR_ERR_INVALID, ZARR_ERR_INVALID},
    {"a\xFF", 2, ZARR_ERR_INVALID, ZARR_ERR_INVALID},
};

static void names(void **state)
{
    const zarr_limits limits = {.node_name_bytes = 3};
    zarr_error err = {0};

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(paths); i++) {
        if (zr_node_name_check(paths[i].path, paths[i].bytes, NULL, &err) !=
                paths[i].want ||
            zr_node_name_check_new(paths[i].path, paths[i].bytes, 3, NULL, &err) !=
                paths[i].want_new)
            fail_msg("name %zu \"%s\": %s", i, paths[i].path, err.message);
    }
    assert_int_equal(zr_node_name_check_new("__x", 3, 2, NULL, NULL), ZARR_OK);
    assert_int_equal(zr_node_name_check("abcd", 4, &limits, &err), ZARR_ERR_LIMIT);
    assert_non_null(strstr(err.message, "node_name_bytes"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables),          cmocka_unit_test(wishes),
        cmocka_unit_test(v2_facts),        cmocka_unit_test(limits),
        cmocka_unit_test(group_documents), cmocka_unit_test(write_consolidated),
        cmocka_unit_test(names),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
