/* unit/array/test_spelling.c - how the document of a new v2 array spells its codecs:
 * complete, and nested chains in v2's words whatever words they were given in. */
#include "unit/array/array_test.h"

/* ---- a codec around others, with a member that v2 calls by another name ---- */

static zarr_status wrap_put(const char *member, const zarr_codec_spec *spec, char *text,
                            size_t cap, size_t *text_bytes, zarr_error *err)
{
    const char *codecs = zarr_codec_spec_chain_json(spec, "codecs");
    int64_t depth = 1;
    int n;

    (void)err;
    if (zarr_codec_spec_i64(spec, "depth", &depth) != 0)
        (void)zarr_codec_spec_i64(spec, "levels", &depth);
    n = snprintf(text, cap, "{\"%s\":%d,\"codecs\":%s}", member, (int)depth,
                 codecs ? codecs : "[]");
    *text_bytes = (size_t)n;
    return ZARR_OK;
}

static zarr_status wrap_canonical(const zarr_codec_spec *raw, int format, char *text,
                                  size_t cap, size_t *text_bytes, zarr_error *err)
{
    (void)format;
    return wrap_put("depth", raw, text, cap, text_bytes, err);
}

static zarr_status wrap_spell(const zarr_codec_spec *spec, zarr_codec_spelling *how,
                              char *text, size_t cap, size_t *text_bytes, zarr_error *err)
{
    return wrap_put(how->format == 2 ? "levels" : "depth", spec, text, cap, text_bytes,
                    err);
}

static const char *const wrap_chains[] = {"codecs", NULL};
static const zarr_codec_spec_vtable wrap = {.struct_size = sizeof wrap,
                                            .name = "test.wrap",
                                            .kind = ZARR_CODEC_BYTES_BYTES,
                                            .canonical = wrap_canonical,
                                            .chains = wrap_chains,
                                            .spell = wrap_spell};

static const struct {
    const char *dtype, *codecs, *want;
} spellings[] = {
    /* nested chains: v3's words, shorthand, v2's words */
    {"<i4",
     "{\"compressor\":{\"id\":\"test.wrap\",\"codecs\":[{\"name\":\"numcodecs.zlib\","
     "\"configuration\":{\"level\":3}},\"crc32\"]}}",
     "\"compressor\":{\"id\":\"test.wrap\",\"levels\":1,\"codecs\":[{\"id\":\"zlib\","
     "\"level\":3},{\"id\":\"crc32\"}]}"},
    {"<i4",
     "{\"filters\":[{\"id\":\"test.wrap\",\"levels\":4,\"codecs\":[{\"id\":\"zlib\","
     "\"level\":2}]}]}",
     "\"filters\":[{\"id\":\"test.wrap\",\"levels\":4,\"codecs\":[{\"id\":\"zlib\","
     "\"level\":2}]}]"},
    {"<i4",
     "{\"filters\":[{\"id\":\"test.wrap\",\"codecs\":[{\"name\":\"test.wrap\","
     "\"configuration\":{\"depth\":2,\"codecs\":[{\"name\":\"gzip\"}]}}]}]}",
     "\"filters\":[{\"id\":\"test.wrap\",\"levels\":1,\"codecs\":[{\"id\":\"test.wrap\","
     "\"levels\":2,\"codecs\":[{\"id\":\"gzip\",\"level\":5}]}]}]"},
    /* codecs of numcodecs: complete */
    {"<i4", "{\"compressor\":{\"id\":\"zlib\"}}",
     "\"compressor\":{\"id\":\"zlib\",\"level\":1}"},
    {"<i4", "{\"compressor\":{\"id\":\"blosc\",\"shuffle\":\"bitshuffle\"}}",
     "\"compressor\":{\"id\":\"blosc\",\"cname\":\"lz4\",\"clevel\":5,\"shuffle\":2,"
     "\"blocksize\":0}"},
    {">i4", "{\"filters\":[{\"id\":\"delta\",\"dtype\":\">i4\"}]}",
     "\"filters\":[{\"id\":\"delta\",\"dtype\":\">i4\",\"astype\":\">i4\"}]"},
    {"|O", "{\"filters\":[{\"id\":\"vlen-utf8\"}],\"compressor\":{\"id\":\"zlib\"}}",
     "\"filters\":[{\"id\":\"vlen-utf8\"}]"},
    {"<f4", "{}", "\"compressor\":null"},
};

/* A document without the white space between its words. */
static const char *squeeze(const char *text)
{
    static char out[4096];
    size_t n = 0;

    assert_non_null(text);
    for (; *text && n + 1 < sizeof out; text++)
        if (*text != ' ' && *text != '\n')
            out[n++] = *text;
    out[n] = '\0';
    return out;
}

static void check_spelling(struct world *w, size_t i)
{
    const uint64_t shape[1] = {7};
    zarr_array_spec spec = {.struct_size = sizeof spec,
                            .zarr_format = 2,
                            .ndim = 1,
                            .shape = shape,
                            .data_type = spellings[i].dtype,
                            .codecs = spellings[i].codecs,
                            .flags = ZARR_SPEC_OVERWRITE};
    zarr_array *a = NULL, *b = NULL;
    char first[4096];

    if (strcmp(spec.data_type, "|O") == 0)
        spec.data_type = "string";
    assert_ok(zarr_array_create(&a, w->store, "a", &spec, NULL, &terr));
    zarr_array_free(a);
    (void)snprintf(first, sizeof first, "%s", squeeze(get_text(w, "a/.zarray")));
    if (!strstr(first, spellings[i].want))
        fail_msg("%s\nwanted %s", first, spellings[i].want);
    /* Its own document makes the same again, and the wish is the array that is there. */
    spec.flags = ZARR_SPEC_IF_MISSING;
    assert_ok(zarr_array_create(&a, w->store, "a", &spec, NULL, &terr));
    spec =
        (zarr_array_spec){.struct_size = sizeof spec, .document = zarr_array_metadata(a)};
    assert_ok(zarr_array_create(&b, w->store, "b", &spec, NULL, &terr));
    zarr_array_free(b);
    zarr_array_free(a);
    assert_string_equal(squeeze(get_text(w, "b/.zarray")), first);
}

static void test_spelling(void **state)
{
    struct world w;

    (void)state;
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        world_begin(&w, WORLD_MEMORY);
        assert_ok(world_context(&w, &terr));
        assert_ok(zarr_context_register_codec_spec(w.ctx, &wrap, "test", &terr));
        assert_ok(world_store(&w, WORLD_MEMORY, &terr));
        check_spelling(&w, i);
        world_close(&w);
    }
}

/* What others wrote stays as they spelled it when a part of the document changes. */
static void test_stored_spelling(void **state)
{
    const uint64_t shape[1] = {9};
    struct world w;
    zarr_array *a = NULL;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    put_text(&w, "a/.zarray",
             "{\"zarr_format\":2,\"shape\":[4],\"chunks\":[2],\"dtype\":\"<i4\","
             "\"fill_value\":0,\"order\":\"C\",\"filters\":null,"
             "\"compressor\":{\"level\":2,\"id\":\"zlib\",\"note\":1}}");
    assert_ok(zarr_array_open(&a, w.store, "a", NULL, &terr));
    assert_ok(zarr_array_resize(a, shape, NULL, &terr));
    zarr_array_free(a);
    assert_non_null(strstr(squeeze(get_text(&w, "a/.zarray")),
                           "\"compressor\":{\"level\":2,\"id\":\"zlib\",\"note\":1}"));
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spelling),
        cmocka_unit_test(test_stored_spelling),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
