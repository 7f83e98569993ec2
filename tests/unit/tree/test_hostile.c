/*
 * unit/tree/test_hostile.c - opening nodes with hostile documents: each is refused with
 * the right status and a helpful message, and none crashes, hangs or exceeds the limits.
 * Known mistakes of real writers are accepted.
 */
#include "unit/array/array_test.h"

#include <sys/stat.h>

#define V3(shape, chunk, more)                                                           \
    "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":" shape                        \
    ",\"data_type\":\"int32\",\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{"  \
    "\"chunk_shape\":" chunk "}},\"chunk_key_encoding\":{\"name\":\"default\"},"         \
    "\"fill_value\":0,\"codecs\":[{\"name\":\"bytes\",\"configuration\":{\"endian\":"    \
    "\"little\"}}]" more "}"
#define V2(shape, chunks, more)                                                          \
    "{\"zarr_format\":2,\"shape\":" shape ",\"chunks\":" chunks                          \
    ",\"dtype\":\"<i4\",\"compressor\":null,\"fill_value\":0,\"order\":\"C\","           \
    "\"filters\":null" more "}"

static const struct {
    const char *key, *text;
    zarr_status want;
    const char *says;
} rows[] = {
    {"zarr.json", "", ZARR_ERR_CORRUPT, ""},
    {"zarr.json", "{", ZARR_ERR_CORRUPT, "byte"},
    {"zarr.json", "[]", ZARR_ERR_CORRUPT, "object"},
    {"zarr.json", "null", ZARR_ERR_CORRUPT, "object"},
    {"zarr.json", "{}", ZARR_ERR_CORRUPT, "zarr_format"},
    {"zarr.json", "{\"zarr_format\":4,\"node_type\":\"array\"}", ZARR_ERR_CORRUPT,
     "zarr_format is 4"},
    {"zarr.json", "{\"zarr_format\":3,\"node_type\":\"dog\"}", ZARR_ERR_CORRUPT,
     "node_type"},
    {"zarr.json", "{\"zarr_format\":3,\"zarr_format\":3}", ZARR_ERR_CORRUPT,
     "zarr_format"},
    {"zarr.json", V3("[-1]", "[1]", ""), ZARR_ERR_CORRUPT, "shape"},
    {"zarr.json", V3("[1e300]", "[1]", ""), ZARR_ERR_CORRUPT, "shape"},
    {"zarr.json", V3("[99999999999999999999999999]", "[1]", ""), ZARR_ERR_CORRUPT,
     "shape"},
    {"zarr.json", V3("[4]", "[0]", ""), ZARR_ERR_CORRUPT, "chunk"},
    {"zarr.json", V3("[4]", "[1,1]", ""), ZARR_ERR_CORRUPT, "chunk"},
    {"zarr.json", V3("\"4\"", "[1]", ""), ZARR_ERR_CORRUPT, "shape"},
    {"zarr.json", V3("[4]", "[2]", ",\"attributes\":[]"), ZARR_ERR_CORRUPT, "attributes"},
    {"zarr.json", V3("[4]", "[2]", ",\"what\":1"), ZARR_ERR_UNSUPPORTED, "what"},
    {"zarr.json", V3("[4]", "[2]", ",\"dimension_names\":[\"a\",\"b\"]"),
     ZARR_ERR_CORRUPT, "dimension_names"},
    {"zarr.json", V3("[4]", "[2]", ",\"storage_transformers\":[{\"name\":\"magic\"}]"),
     ZARR_ERR_UNSUPPORTED, "magic"},
    {"zarr.json", V3("[4]", "[4294967296,4294967296]", ""), ZARR_ERR_CORRUPT, ""},
    {".zarray", V2("[4]", "[0]", ""), ZARR_ERR_CORRUPT, "chunk"},
    {".zarray", V2("[4,4]", "[2]", ""), ZARR_ERR_CORRUPT, "chunk"},
    {".zarray", V2("[4]", "[2]", ",\"dimension_separator\":\"x\""), ZARR_ERR_CORRUPT,
     "dimension_separator"},
    {".zarray", "{\"zarr_format\":2}", ZARR_ERR_CORRUPT, ""},
    {".zarray", "{\"zarr_format\":3}", ZARR_ERR_CORRUPT, "zarr_format is 3"},
    {".zgroup", "{\"zarr_format\":2}", ZARR_ERR_NOT_FOUND,
     "there is a group, not an array"},
};

static void test_documents(void **state)
{
    struct world w;
    zarr_array *a = NULL;
    char key[64];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        world_open(&w, i % 2 ? WORLD_MEMORY : WORLD_LOCAL);
        snprintf(key, sizeof key, "n/%s", rows[i].key);
        put_text(&w, key, rows[i].text);
        print_message("row %zu\n", i);
        assert_status(zarr_array_open(&a, w.store, "n", NULL, &terr), rows[i].want);
        assert_null(a);
        assert_says("/n: ");
        assert_says(rows[i].says);
        world_close(&w);
    }
}

/* A broken v3 document is not skipped in favour of an older v2 document. */
static void test_broken_front(void **state)
{
    struct world w;
    zarr_array *a = NULL;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    put_text(&w, "zarr.json", "{\"zarr_format\":3");
    put_text(&w, ".zarray", V2("[4]", "[2]", ""));
    assert_status(zarr_array_open(&a, w.store, "", NULL, &terr), ZARR_ERR_CORRUPT);
    assert_says("zarr.json");
    world_close(&w);
}

static void test_attributes_document(void **state)
{
    struct world w;
    zarr_array *a = NULL;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    put_text(&w, ".zarray", V2("[4]", "[2]", ""));
    put_text(&w, ".zattrs", "[1]");
    assert_status(zarr_array_open(&a, w.store, "", NULL, &terr), ZARR_ERR_CORRUPT);
    assert_says(".zattrs");
    /* Old writers wrote this. */
    put_text(&w, ".zattrs", "{\"n\": NaN, \"i\": -Infinity}");
    assert_ok(zarr_array_open(&a, w.store, "", NULL, &terr));
    assert_ok(zarr_array_attribute_set(a, "k", "1", NULL, &terr));
    assert_non_null(strstr(get_text(&w, ".zattrs"), "\"NaN\"")); /* we write text */
    zarr_array_free(a);
    world_close(&w);
}

static void test_limits(void **state)
{
    const zarr_limits limits = {.struct_size = sizeof limits,
                                .metadata_bytes = 2000,
                                .json_depth = 8,
                                .rank = 2,
                                .node_name_bytes = 8,
                                .listing_keys = 5};
    const zarr_context_options opts = {.struct_size = sizeof opts, .limits = &limits};
    zarr_context *ctx = NULL;
    zarr_store *store = NULL;
    zarr_array *a = NULL;
    zarr_group *g = NULL;
    char text[4000];

    (void)state;
    assert_ok(zarr_context_create(&ctx, &opts, &terr));
    assert_ok(zarr_store_open(&store, ctx, "memory:", NULL, &terr));
    memset(text, ' ', sizeof text);
    memcpy(text, V3("[4]", "[2]", ""), strlen(V3("[4]", "[2]", "")));
    assert_ok(zarr_store_put(store, "long/zarr.json", text, 2001, NULL, &terr));
    assert_status(zarr_array_open(&a, store, "long", NULL, &terr), ZARR_ERR_LIMIT);
    assert_says("metadata_bytes");
    assert_ok(zarr_store_put(store, "long/zarr.json", text, 2000, NULL, &terr));
    assert_ok(zarr_array_open(&a, store, "long", NULL, &terr));
    text[1999] = '\0';
    memset(text, 'x', 1999);
    text[0] = text[1998] = '"';
    assert_status(zarr_array_attribute_set(a, "k", text, NULL, &terr), ZARR_ERR_LIMIT);
    zarr_array_free(a);
    snprintf(text, sizeof text, "%s",
             V3("[4]", "[2]", ",\"attributes\":{\"d\":[[[[[[[[[]]]]]]]]]}"));
    assert_ok(zarr_store_put(store, "deep/zarr.json", text, strlen(text), NULL, &terr));
    assert_status(zarr_array_open(&a, store, "deep", NULL, &terr), ZARR_ERR_LIMIT);
    assert_says("json_depth");
    snprintf(text, sizeof text, "%s", V3("[4,4,4]", "[2,2,2]", ""));
    assert_ok(zarr_store_put(store, "rank/zarr.json", text, strlen(text), NULL, &terr));
    assert_status(zarr_array_open(&a, store, "rank", NULL, &terr), ZARR_ERR_LIMIT);
    assert_says("rank");
    assert_status(zarr_array_open(&a, store, "a/verylongname", NULL, &terr),
                  ZARR_ERR_LIMIT);
    assert_says("node_name_bytes");
    assert_ok(zarr_store_put(store, "zarr.json",
                             "{\"zarr_format\":3,\"node_type\":\"group\"}", 37, NULL,
                             &terr));
    for (int i = 0; i < 4; i++) {
        snprintf(text, sizeof text, "c%d/x", i);
        assert_ok(zarr_store_put(store, text, "", 0, NULL, &terr));
    }
    assert_ok(zarr_group_open(&g, store, "", NULL, &terr));
    assert_status(zarr_group_list(g, NULL, NULL, NULL, &terr), ZARR_ERR_LIMIT);
    assert_says("listing_keys");
    zarr_group_free(g);
    zarr_store_free(store);
    zarr_context_free(ctx);
}

/* A shape whose product overflows, and a chunk of 24 GiB: open and small reads succeed,
 * or return LIMIT. */
static void test_sizes(void **state)
{
    static const char huge[] =
        V3("[9223372036854775807,9223372036854775807]", "[2,2]", "");
    static const char fat[] = V3("[100000,100000]", "[80000,80000]", "");
    const uint64_t start[2] = {UINT64_C(1) << 62, 5}, one[2] = {1, 1};
    const uint64_t shape[2] = {1, 1};
    struct world w;
    zarr_array *a = NULL;
    zarr_selection *sel = NULL;
    int32_t v = 9;
    zarr_tensor t;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    put_text(&w, "huge/zarr.json", huge);
    assert_ok(zarr_array_open(&a, w.store, "huge", NULL, &terr));
    assert_ok(zarr_selection_box(&sel, 2, zarr_array_shape(a), start, one, &terr));
    zarr_tensor_host(&t, NULL, &v, sizeof v, 2, shape);
    assert_ok(zarr_array_read(a, sel, &t, NULL, &terr));
    assert_int_equal(v, 0);
    zarr_selection_free(sel);
    zarr_array_free(a);
    put_text(&w, "fat/zarr.json", fat);
    assert_ok(zarr_array_open(&a, w.store, "fat", NULL, &terr));
    assert_status(zarr_array_read(a, NULL, &t, NULL, &terr), ZARR_ERR_LIMIT);
    assert_says("chunk_bytes");
    zarr_array_free(a);
    world_close(&w);
}

static int note_node(void *user, const zarr_node_item *node)
{
    char *seen = user;

    strcat(seen, node->kind == ZARR_NODE_NONE ? "!" : "");
    strcat(seen, node->name);
    strcat(seen, " ");
    return 0;
}

/* A folder or a FIFO with the name zarr.json: reported as a broken node, and the walk
 * goes on. */
static void test_no_files(void **state)
{
    struct world w;
    zarr_group *g = NULL;
    char path[256], seen[256] = "";

    (void)state;
    world_open(&w, WORLD_LOCAL);
    put_text(&w, "zarr.json", "{\"zarr_format\":3,\"node_type\":\"group\"}");
    put_text(&w, "b/zarr.json/x", "1");
    put_text(&w, "c/other", "1");
    put_text(&w, "d/.zarray/x", "1");
    zarr_array_free(make_array(&w, "a", 3, 4, 4));
    zarr_array_free(make_array(&w, "e", 2, 4, 4));
    snprintf(path, sizeof path, "%s/c/zarr.json", w.dir);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_ok(zarr_group_open(&g, w.store, "", NULL, &terr));
    assert_ok(zarr_group_walk(g, note_node, seen, NULL, &terr));
    assert_string_equal(seen, "a !b !c !d e ");
    seen[0] = '\0';
    assert_ok(zarr_group_list(g, note_node, seen, NULL, &terr));
    assert_string_equal(seen, "a !b !c !d e ");
    assert_non_null(strstr(w.log, "FIFO"));
    zarr_group_free(g);
    assert_int_equal(remove(path), 0);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_documents),
        cmocka_unit_test(test_broken_front),
        cmocka_unit_test(test_attributes_document),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_no_files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
