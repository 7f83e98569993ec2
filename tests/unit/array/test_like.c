/* unit/array/test_like.c - arrays that are like another one: what a spec leaves open is
 * the other's, what it names is not, in both formats and between them. */
#include "unit/array/array_test.h"

#include <stdbool.h>

#define ZSTD   "{\"name\":\"zstd\",\"configuration\":{\"level\":0,\"checksum\":false}}"
#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"

static const char *squeeze(const char *text)
{
    static char out[4][4096];
    static size_t which;
    char *to = out[which++ % 4];
    size_t n = 0;

    assert_non_null(text);
    for (; *text && n + 1 < sizeof out[0]; text++)
        if (*text != ' ' && *text != '\n')
            to[n++] = *text;
    to[n] = '\0';
    return to;
}

static zarr_array *open_model(struct world *w, const zarr_array_spec *spec)
{
    zarr_array_spec s = *spec;
    zarr_array *a = NULL;

    s.struct_size = sizeof s;
    assert_ok(zarr_array_create(&a, w->store, "model", &s, NULL, &terr));
    return a;
}

static const uint64_t shape[2] = {20, 30}, chunk[2] = {5, 6}, shard[2] = {10, 12},
                      other[2] = {2, 3}, wide[2] = {20, 60}, longer[2] = {40, 30};
static const char *const names[2] = {"y", NULL};

static const zarr_array_spec v3_model = {.ndim = 2,
                                         .shape = shape,
                                         .chunk_shape = chunk,
                                         .shard_shape = shard,
                                         .data_type = ">i2",
                                         .fill_value = "7",
                                         .codecs = "[\"zstd\",\"crc32c\"]",
                                         .attributes = "{\"a\":[1]}",
                                         .dimension_names = names,
                                         .key_encoding = "v2",
                                         .separator = '/',
                                         .flags = ZARR_SPEC_INDEX_AT_START};
static const zarr_array_spec v2_model = {.zarr_format = 2,
                                         .ndim = 2,
                                         .shape = shape,
                                         .chunk_shape = chunk,
                                         .data_type = ">i2",
                                         .fill_value = "7",
                                         .order = 'F',
                                         .separator = '/',
                                         .codecs = "{\"filters\":[{\"id\":\"shuffle\","
                                                   "\"elementsize\":2}],\"compressor\":"
                                                   "{\"id\":\"zlib\",\"level\":4}}",
                                         .attributes = "{\"a\":[1]}"};

/* What is in the document of the new array, and what is not. */
static const struct {
    const char *label;
    const zarr_array_spec *model;
    zarr_array_spec changes;
    const char *has[4], *has_not[2];
} cases[] = {
    {"longer",
     &v3_model,
     {.ndim = 2, .shape = longer},
     {"\"shape\":[40,30]", "\"index_location\":\"start\"", "\"endian\":\"big\"",
      "\"dimension_names\":[\"y\",null]"},
     {NULL}},
    {"other chunks keep shards and codecs",
     &v3_model,
     {.ndim = 2, .chunk_shape = other},
     {"\"chunk_shape\":[10,12]", "\"chunk_shape\":[2,3]", "\"crc32c\"",
      "\"index_location\":\"start\""},
     {NULL}},
    {"other shards keep chunks",
     &v3_model,
     {.ndim = 2, .shard_shape = wide},
     {"\"chunk_shape\":[20,60]", "\"chunk_shape\":[5,6]", "\"start\"", "\"big\""},
     {NULL}},
    {"no shards",
     &v3_model,
     {.flags = ZARR_SPEC_NO_SHARDS},
     {"\"chunk_shape\":[5,6]", "\"big\"", "\"crc32c\"", "\"fill_value\":7"},
     {"sharding_indexed", "index_location"}},
    {"other codecs",
     &v3_model,
     {.codecs = "[\"gzip\"]"},
     {"\"gzip\"", "\"chunk_shape\":[10,12]", "\"separator\":\"/\"", "\"fill_value\":7"},
     {"\"zstd\"", NULL}},
    {"another type has its own fill value",
     &v3_model,
     {.data_type = "float32", .flags = ZARR_SPEC_NO_SHARDS},
     {"\"float32\"", "\"fill_value\":0.0"},
     {"\"fill_value\":7", NULL}},
    {"the same type keeps it",
     &v3_model,
     {.data_type = "int16"},
     {"\"fill_value\":7"},
     {NULL}},
    {"no attributes",
     &v3_model,
     {.attributes = "{}", .key_encoding = "default"},
     {"\"attributes\":{}", "\"name\":\"default\"", "\"separator\":\"/\""},
     {"\"a\":[1]", NULL}},
    {"order F replaces the order",
     &v3_model,
     {.order = 'F', .flags = ZARR_SPEC_NO_SHARDS},
     {"\"order\":[1,0]", "\"big\""},
     {NULL}},
    {"to v2",
     &v3_model,
     {.zarr_format = 2, .flags = ZARR_SPEC_NO_SHARDS, .codecs = NULL},
     {"\"dtype\":\">i2\"", "\"chunks\":[5,6]", "\"compressor\":{\"id\":\"crc32c\"",
      "\"filters\":[{\"id\":\"zstd\""},
     {NULL}},
    {"v2 as it is",
     &v2_model,
     {.ndim = 2, .shape = longer},
     {"\"shape\":[40,30]", "\"order\":\"F\"", "\"dtype\":\">i2\"",
      "\"compressor\":{\"id\":\"zlib\",\"level\":4}"},
     {NULL}},
    {"v2 in order C",
     &v2_model,
     {.order = 'C', .separator = '.'},
     {"\"order\":\"C\"", "\"dimension_separator\":\".\"", "\"id\":\"shuffle\""},
     {NULL}},
    {"v2 with other codecs keeps both orders",
     &v2_model,
     {.codecs = "{\"compressor\":{\"id\":\"gzip\",\"level\":1}}"},
     {"\"order\":\"F\"", "\"dtype\":\">i2\"", "\"filters\":null", "\"gzip\""},
     {NULL}},
    {"to v3",
     &v2_model,
     {.zarr_format = 3},
     {"\"order\":[1,0]", "\"endian\":\"big\"", "\"numcodecs.zlib\"", "\"a\":[1]"},
     {"dimension_separator", NULL}},
    {"to v3 in order C",
     &v2_model,
     {.zarr_format = 3, .order = 'C'},
     {"\"endian\":\"big\"", "\"numcodecs.shuffle\""},
     {"transpose", NULL}},
};

static void check_case(struct world *w, size_t i)
{
    const char *document = NULL;
    zarr_array_spec spec = cases[i].changes;
    zarr_array *model = open_model(w, cases[i].model), *a = NULL;

    spec.struct_size = sizeof spec;
    spec.like = model;
    if (zarr_array_create(&a, w->store, "new", &spec, NULL, &terr) != ZARR_OK)
        fail_msg("%s: %s", cases[i].label, terr.message);
    zarr_array_free(model);
    document =
        get_text(w, zarr_array_zarr_format(a) == 3 ? "new/zarr.json" : "new/.zarray");
    document = squeeze(document);
    for (int k = 0; k < 4 && cases[i].has[k]; k++)
        if (!strstr(document, cases[i].has[k]))
            fail_msg("%s: no %s in %s", cases[i].label, cases[i].has[k], document);
    for (int k = 0; k < 2 && cases[i].has_not[k]; k++)
        if (strstr(document, cases[i].has_not[k]))
            fail_msg("%s: %s in %s", cases[i].label, cases[i].has_not[k], document);
    zarr_array_free(a);
}

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct world w;

        world_open(&w, WORLD_MEMORY);
        check_case(&w, i);
        world_close(&w);
    }
}

/* With nothing changed the document is the model's, whatever that has. */
static const struct {
    const char *key, *document;
} wholes[] = {
    {"zarr.json",
     "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[8],\"data_type\":\"int8\","
     "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[8]}},"
     "\"chunk_key_encoding\":{\"name\":\"default\",\"configuration\":{\"separator\":\"."
     "\"}"
     "},\"fill_value\":-1,\"codecs\":[{\"name\":\"sharding_indexed\",\"configuration\":{"
     "\"chunk_shape\":[4],\"codecs\":[{\"name\":\"sharding_indexed\",\"configuration\":{"
     "\"chunk_shape\":[2],\"codecs\":[{\"name\":\"bytes\"}],\"index_codecs\":[" LITTLE
     "],\"index_location\":\"start\"}}],\"index_codecs\":[" LITTLE
     ",{\"name\":\"crc32c\"}],\"index_location\":\"end\"}}," ZSTD "],\"attributes\":{}}"},
    {"zarr.json",
     "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[8],\"data_type\":\"int8\","
     "\"chunk_grid\":{\"name\":\"rectilinear\",\"configuration\":{\"kind\":\"inline\","
     "\"chunk_shapes\":[[3,5]]}},\"chunk_key_encoding\":{\"name\":\"default\","
     "\"configuration\":{\"separator\":\"/\"}},\"fill_value\":0,\"codecs\":[{\"name\":"
     "\"bytes\"}],\"attributes\":{}}"},
    {"zarr.json",
     "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[],\"data_type\":\"float32\","
     "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[]}},"
     "\"chunk_key_encoding\":{\"name\":\"default\",\"configuration\":{\"separator\":\"/"
     "\"}"
     "},\"fill_value\":\"0x7fc00001\",\"codecs\":[" LITTLE "],\"attributes\":{}}"},
    {".zarray",
     "{\"shape\":[3],\"chunks\":[2],\"dtype\":[[\"a\",\"<i2\"],[\"b\",\">f8\"]],"
     "\"fill_value\":null,\"order\":\"C\",\"filters\":null,\"dimension_separator\":\".\","
     "\"compressor\":null,\"zarr_format\":2}"},
    {".zarray",
     "{\"shape\":[3],\"chunks\":[2],\"dtype\":\"|O\",\"fill_value\":\"x\",\"order\":"
     "\"C\","
     "\"filters\":[{\"id\":\"vlen-utf8\"}],\"dimension_separator\":\"/\",\"compressor\":{"
     "\"id\":\"zlib\",\"level\":1},\"zarr_format\":2}"},
};

static void test_wholes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof wholes / sizeof *wholes; i++) {
        zarr_array_spec spec = ZARR_ARRAY_SPEC_INIT;
        zarr_array *model = NULL, *a = NULL;
        struct world w;
        char key[64];

        world_open(&w, WORLD_MEMORY);
        (void)snprintf(key, sizeof key, "m/%s", wholes[i].key);
        put_text(&w, key, wholes[i].document);
        assert_ok(zarr_array_open(&model, w.store, "m", NULL, &terr));
        spec.like = model;
        if (zarr_array_create(&a, w.store, "n", &spec, NULL, &terr) != ZARR_OK)
            fail_msg("document %zu: %s", i, terr.message);
        assert_string_equal(squeeze(zarr_array_metadata(a)),
                            squeeze(zarr_array_metadata(model)));
        zarr_array_free(a);
        zarr_array_free(model);
        world_close(&w);
    }
}

static void test_refused(void **state)
{
    static const struct {
        zarr_array_spec changes;
        zarr_status want;
        const char *says;
    } bad[] = {
        {{.ndim = 1, .shape = shape}, ZARR_ERR_INVALID, "has 2 dimensions"},
        {{.shape = shape}, ZARR_ERR_INVALID, "ndim is 0"},
        {{.zarr_format = 2}, ZARR_ERR_UNSUPPORTED, "v2 arrays have no shards"},
        {{.document = "{}"}, ZARR_ERR_INVALID, "document"},
        {{.ndim = 2, .shard_shape = shard, .flags = ZARR_SPEC_NO_SHARDS},
         ZARR_ERR_INVALID,
         "NO_SHARDS"},
        {{.codecs = "[\"none\"]"}, ZARR_ERR_UNSUPPORTED, "none"},
        {{.data_type = "what"}, ZARR_ERR_UNSUPPORTED, "what"},
    };
    struct world w;
    zarr_array *model, *a = NULL;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    model = open_model(&w, &v3_model);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        zarr_array_spec spec = bad[i].changes;

        spec.struct_size = sizeof spec;
        spec.like = model;
        assert_status(zarr_array_create(&a, w.store, "n", &spec, NULL, &terr),
                      bad[i].want);
        assert_says(bad[i].says);
    }
    assert_int_equal(n_keys(&w, "n"), 0);
    zarr_array_free(model);
    world_close(&w);
}

/* Every allocation fails in turn; nothing leaks, nothing is left. */
static void test_no_memory(void **state)
{
    bool reached = true;

    (void)state;
    for (int at = 1; reached; at++) {
        zarr_array_spec spec = {
            .struct_size = sizeof spec, .zarr_format = 2, .flags = ZARR_SPEC_NO_SHARDS};
        zarr_array *a = NULL;
        zarr_status st;
        struct world w;

        world_open(&w, WORLD_MEMORY);
        spec.like = open_model(&w, &v3_model);
        atomic_store(&w.fail_at, at);
        st = zarr_array_create(&a, w.store, "n", &spec, NULL, &terr);
        reached = atomic_load(&w.fail_at) <= 0;
        atomic_store(&w.fail_at, 0);
        if (st != ZARR_OK && st != ZARR_ERR_NO_MEMORY)
            fail_msg("allocation %d: %s", at, terr.message);
        zarr_array_free(a);
        zarr_array_free(spec.like);
        world_close(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_wholes),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
