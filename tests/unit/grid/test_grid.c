/*
 * unit/grid/test_grid.c - the registry, grids from metadata, and chunk keys in both
 * directions.
 */
#include "unit/grid/grid_test.h"

#include <string.h>

static struct zr_grid_registry registry;

static int make_registry(void **state)
{
    (void)state;
    registry_make(&registry);
    return 0;
}

static int drop_registry(void **state)
{
    (void)state;
    zr_grid_registry_deinit(&registry);
    return 0;
}

/* ---- registry ------------------------------------------------------------- */

static void test_names_are_taken_once(void **state)
{
    zarr_grid_vtable mine = rect_grid;
    zarr_key_encoding_vtable key = zr_key_v2;
    zarr_error err = {0};

    (void)state;
    mine.name = "regular";
    assert_int_equal(zr_grid_register(&registry, &mine, "core", &err), ZARR_ERR_EXISTS);
    assert_string_equal(err.message,
                        "chunk grid \"regular\" is registered already, by core");
    assert_int_equal(zr_key_encoding_register(&registry, &key, "core", NULL),
                     ZARR_ERR_EXISTS);
    key.name = "";
    assert_int_equal(zr_key_encoding_register(&registry, &key, "core", NULL),
                     ZARR_ERR_INVALID);
    mine.name = NULL;
    assert_int_equal(zr_grid_register(&registry, &mine, "core", NULL), ZARR_ERR_INVALID);
}

static void test_vtables_must_be_complete(void **state)
{
    zarr_grid_vtable mine = rect_grid;
    zarr_key_encoding_vtable key = zr_key_v2;

    (void)state;
    mine.name = key.name = "test.other";
    mine.locate = NULL;
    assert_int_equal(zr_grid_register(&registry, &mine, "core", NULL), ZARR_ERR_INVALID);
    key.chunk = NULL;
    assert_int_equal(zr_key_encoding_register(&registry, &key, "core", NULL),
                     ZARR_ERR_INVALID);
    mine.struct_size = 0;
    assert_int_equal(zr_grid_register(&registry, &mine, "core", NULL), ZARR_ERR_ABI);
    key.struct_size = 16;
    assert_int_equal(zr_key_encoding_register(&registry, &key, "core", NULL),
                     ZARR_ERR_ABI);
}

/* ---- grids ---------------------------------------------------------------- */

static void test_regular_from_metadata(void **state)
{
    const uint64_t shape[] = {10, 0, 7}, chunk[] = {3, 0, 0};
    uint64_t origin, size, stored[3];
    struct zr_grid g;
    struct zr_str text;

    (void)state;
    assert_int_equal(grid_make(&g, &registry, 3, shape, "regular",
                               "{\"chunk_shape\": [4, 5, 9]}", NULL),
                     ZARR_OK);
    assert_true(g.regular);
    assert_string_equal(zr_grid_name(&g), "regular");
    assert_int_equal(zr_grid_n_chunks(&g, 0), 3);
    assert_int_equal(zr_grid_n_chunks(&g, 1), 0);
    assert_int_equal(zr_grid_n_chunks(&g, 2), 1);
    assert_int_equal(zr_grid_n_chunks_all(&g), 0);
    assert_int_equal(zr_grid_locate(&g, 0, 9), 2);
    zr_grid_extent(&g, 0, 2, &origin, &size);
    assert_int_equal(origin, 8);
    assert_int_equal(size, 4);
    zr_grid_chunk_shape(&g, chunk, stored);
    assert_int_equal(stored[2], 9);
    zr_str_init(&text, NULL);
    assert_int_equal(zr_grid_canonical(&g, &text, NULL), ZARR_OK);
    assert_string_equal(zr_str_text(&text), "{\"chunk_shape\":[4,5,9]}");
    zr_str_deinit(&text);
    zr_grid_deinit(&g);
}

static void test_rank_0_has_one_chunk(void **state)
{
    struct zr_grid g;

    (void)state;
    assert_int_equal(
        grid_make(&g, &registry, 0, NULL, "regular", "{\"chunk_shape\":[]}", NULL),
        ZARR_OK);
    assert_int_equal(zr_grid_n_chunks_all(&g), 1);
    zr_grid_deinit(&g);
}

static void test_steps(void **state)
{
    static const uint64_t begin[3] = {1, 5, 0}, end[3] = {3, 6, 2};
    static const uint64_t want[4][3] = {{1, 5, 0}, {1, 5, 1}, {2, 5, 0}, {2, 5, 1}};
    uint64_t at[3] = {1, 5, 0};

    (void)state;
    for (int i = 0; i < 4; i++) {
        assert_memory_equal(at, want[i], sizeof at);
        assert_int_equal(zr_grid_step(at, begin, end, 3), i < 3);
    }
    assert_memory_equal(at, begin, sizeof at);
    assert_false(zr_grid_step(at, begin, end, 0)); /* rank 0 has one chunk */
}

static void test_any_grid_through_its_vtable(void **state)
{
    const uint64_t shape[] = {5, 4};
    uint64_t origin, size;
    struct zr_grid g;
    struct zr_str text;

    (void)state;
    assert_int_equal(grid_make(&g, &registry, 2, shape, "test.rect",
                               "{\"edges\":[[2,4,8],[1,3]]}", NULL),
                     ZARR_OK);
    assert_false(g.regular);
    assert_string_equal(zr_grid_name(&g), "test.rect");
    assert_int_equal(zr_grid_n_chunks_all(&g), 4);
    assert_int_equal(zr_grid_locate(&g, 0, 4), 1);
    zr_grid_extent(&g, 0, 1, &origin, &size);
    assert_int_equal(origin, 2);
    assert_int_equal(size, 4);
    zr_str_init(&text, NULL);
    assert_int_equal(zr_grid_canonical(&g, &text, NULL), ZARR_OK);
    assert_string_equal(zr_str_text(&text), "{\"edges\":\"test\"}");
    zr_str_deinit(&text);
    zr_grid_deinit(&g);
    assert_int_equal(
        grid_make(&g, &registry, 2, shape, "test.rect", "{\"edges\":[[2],[4]]}", NULL),
        ZARR_ERR_INVALID);
    zr_grid_deinit(&g); /* allowed after a failure */
    assert_int_equal(grid_make(&g, &registry, 0, NULL, "test.rect", NULL, NULL), ZARR_OK);
    zr_grid_deinit(&g);
}

/* Most callers bypass the vtable of the regular grid. It must work all the same. */
static void test_regular_vtable(void **state)
{
    const uint64_t shape[] = {10};
    uint64_t origin, size;
    void *self = NULL;
    size_t bytes = 0;
    char text[8];

    (void)state;
    assert_int_equal(
        zr_grid_regular.parse(&self, 1, shape, "{\"chunk_shape\":[0]}", NULL),
        ZARR_ERR_INVALID);
    assert_int_equal(zr_grid_regular.parse(&self, 1, shape, "{", NULL), ZARR_ERR_CORRUPT);
    assert_int_equal(
        zr_grid_regular.parse(&self, 1, shape, "{\"chunk_shape\":[4]}", NULL), ZARR_OK);
    assert_int_equal(zr_grid_regular.n_chunks(self, 0), 3);
    assert_int_equal(zr_grid_regular.locate(self, 0, 8), 2);
    zr_grid_regular.extent(self, 0, 2, &origin, &size);
    assert_int_equal(origin, 8);
    assert_int_equal(size, 4);
    assert_int_equal(zr_grid_regular.canonical(self, text, sizeof text, &bytes, NULL),
                     ZARR_OK);
    assert_string_equal(text, "{\"chunk");
    assert_int_equal(bytes, strlen("{\"chunk_shape\":[4]}"));
    assert_int_equal(zr_grid_regular.canonical(self, NULL, 0, &bytes, NULL), ZARR_OK);
    zr_grid_regular.free(self);
}

struct bad_grid {
    int32_t ndim;
    const char *name, *config;
    zarr_status status;
    const char *message;
};

static void test_grid_errors(void **state)
{
    static const struct bad_grid bad[] = {
        {2, "spiral", "{}", ZARR_ERR_UNSUPPORTED, "chunk grid \"spiral\" is not known"},
        {2, "regular", NULL, ZARR_ERR_INVALID,
         "chunk_shape is a nothing, must be an array"},
        {2, "regular", "[]", ZARR_ERR_INVALID,
         "chunk grid \"regular\": configuration is a array, must be an object"},
        {2, "regular", "{}", ZARR_ERR_INVALID,
         "chunk_shape is a nothing, must be an array"},
        {2, "regular", "{\"chunk_shape\":4}", ZARR_ERR_INVALID,
         "chunk_shape is a number, must be an array"},
        {2, "regular", "{\"chunk_shape\":[4]}", ZARR_ERR_INVALID,
         "chunk_shape has 1 numbers, the array 2 dimensions"},
        {2, "regular", "{\"chunk_shape\":[4,5,6]}", ZARR_ERR_INVALID,
         "chunk_shape has 3 numbers, the array 2 dimensions"},
        {2, "regular", "{\"chunk_shape\":[4,0]}", ZARR_ERR_INVALID,
         "chunk_shape[1] is 0, must be 1 to 2^63 - 1"},
        {2, "regular", "{\"chunk_shape\":[4,-5]}", ZARR_ERR_INVALID,
         "chunk_shape[1] is not a whole number >= 1"},
        {2, "regular", "{\"chunk_shape\":[4.5,5]}", ZARR_ERR_INVALID,
         "chunk_shape[0] is not a whole number >= 1"},
        {2, "regular", "{\"chunk_shape\":[\"4\",5]}", ZARR_ERR_INVALID,
         "chunk_shape[0] is not a whole number >= 1"},
        {2, "regular", "{\"chunk_shape\":[4,9223372036854775808]}", ZARR_ERR_INVALID,
         "chunk_shape[1] is 9223372036854775808, must be 1 to 2^63 - 1"},
        {2, "regular", "{\"chunk_shape\":[4,5],\"order\":\"F\"}", ZARR_ERR_UNSUPPORTED,
         "chunk grid \"regular\": unknown member \"order\""},
        {65, "regular", "{}", ZARR_ERR_INVALID, "rank 65, must be 0 to 64"},
        {-1, "regular", "{}", ZARR_ERR_INVALID, "rank -1, must be 0 to 64"},
    };
    const uint64_t shape[65] = {10, 10};

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(bad); i++) {
        struct zr_grid g;
        zarr_error err = {0};
        assert_int_equal(grid_make(&g, &registry, bad[i].ndim, shape, bad[i].name,
                                   bad[i].config, &err),
                         bad[i].status);
        assert_string_equal(err.message, bad[i].message);
        zr_grid_deinit(&g);
    }
}

static void test_edges_of_v2(void **state)
{
    const uint64_t empty[] = {0, 4}, full[] = {1, 4}, chunks[] = {0, 2};
    const uint64_t large[] = {(uint64_t)1 << 63, 4};
    struct zr_grid g;
    zarr_error err = {0};

    (void)state;
    assert_int_equal(zr_grid_init_regular(&g, 2, empty, chunks, "chunk_shape", NULL),
                     ZARR_OK);
    assert_int_equal(g.chunk_shape[0], 1);
    assert_int_equal(zr_grid_init_regular(&g, 2, full, chunks, "chunks", &err),
                     ZARR_ERR_INVALID);
    assert_string_equal(err.message, "chunks[0] is 0, must be 1 to 2^63 - 1");
    assert_int_equal(zr_grid_init_regular(&g, 2, large, full, "chunk_shape", &err),
                     ZARR_ERR_INVALID);
    assert_string_equal(err.message,
                        "dimension 0: length 9223372036854775808, must be below 2^63");
}

/* ---- keys ----------------------------------------------------------------- */

static zarr_status key_make(struct zr_key_encoding *k, const char *name,
                            const char *config, zarr_error *err)
{
    struct zr_json_doc doc;
    zarr_limits limits;
    zarr_status st = ZARR_OK;

    *k = (struct zr_key_encoding){0};
    zr_limits_default(&limits);
    zr_json_doc_init(&doc, NULL);
    if (config)
        ZR_TRY(zr_json_parse(&doc, config, strlen(config), &limits, err));
    ZR_TRY(zr_key_encoding_parse(k, &registry, name, config ? doc.root : NULL, err));
out:
    zr_json_doc_deinit(&doc);
    return st;
}

struct key_case {
    const char *name, *config, *canonical;
    const char *rank_0, *rank_1, *rank_3;
};

static void check_key(const struct zr_key_encoding *k, int32_t ndim, const char *want)
{
    const uint64_t chunk[] = {0, 10, UINT64_MAX};
    uint64_t back[3] = {1, 1, 1};
    char shortened[4];
    struct zr_str text;

    zr_str_init(&text, NULL);
    zr_str_puts(&text, "p/");
    zr_key_encoding_key(k, ndim, chunk, &text);
    assert_string_equal(zr_str_text(&text) + 2, want);
    assert_true(zr_key_encoding_chunk(k, ndim, want, back));
    for (int32_t d = 0; d < ndim; d++)
        assert_true(back[d] == chunk[d]);
    assert_false(zr_key_encoding_chunk(k, ndim + 1, want, back));
    assert_int_equal(k->vt->key(k->self, ndim, chunk, shortened, 2), strlen(want));
    assert_true(strlen(shortened) <= 1 && shortened[0] == want[0]);
    assert_int_equal(k->vt->key(k->self, ndim, chunk, NULL, 0), strlen(want));
    zr_str_deinit(&text);
}

static void test_keys_and_back(void **state)
{
    static const struct key_case cases[] = {
        {"default", NULL, "{\"separator\":\"/\"}", "c", "c/0",
         "c/0/10/18446744073709551615"},
        {"default", "{\"separator\":\".\"}", "{\"separator\":\".\"}", "c", "c.0",
         "c.0.10.18446744073709551615"},
        {"v2", "{}", "{\"separator\":\".\"}", "0", "0", "0.10.18446744073709551615"},
        {"v2", "{\"separator\":\"/\"}", "{\"separator\":\"/\"}", "0", "0",
         "0/10/18446744073709551615"},
        {"zarrs.default_suffix", "{\"suffix\":\".tif\"}",
         "{\"separator\":\"/\",\"suffix\":\".tif\"}", "c.tif", "c/0.tif",
         "c/0/10/18446744073709551615.tif"},
        {"zarrs.default_suffix", "{\"suffix\":\"0\",\"separator\":\".\"}",
         "{\"separator\":\".\",\"suffix\":\"0\"}", "c0", "c.00",
         "c.0.10.184467440737095516150"},
        {"suffix", "{\"suffix\":\".tiff\",\"base-encoding\":{\"name\":\"default\"}}",
         "{\"suffix\":\".tiff\",\"base_encoding\":{\"name\":\"default\","
         "\"configuration\":{"
         "\"separator\":\"/\"}}}",
         "c.tiff", "c/0.tiff", "c/0/10/18446744073709551615.tiff"},
        {"suffix", "{\"suffix\":\".\\\"z\",\"base_encoding\":\"v2\"}",
         "{\"suffix\":\".\\\"z\",\"base_encoding\":{\"name\":\"v2\",\"configuration\":{"
         "\"separator\":\".\"}}}",
         "0.\"z", "0.\"z", "0.10.18446744073709551615.\"z"},
        {"suffix", "{\"suffix\":\"\",\"base_encoding\":\"default\"}",
         "{\"suffix\":\"\",\"base_encoding\":{\"name\":\"default\",\"configuration\":{"
         "\"separator\":\"/\"}}}",
         "c", "c/0", "c/0/10/18446744073709551615"},
    };

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(cases); i++) {
        struct zr_key_encoding k;
        struct zr_str text;
        assert_int_equal(key_make(&k, cases[i].name, cases[i].config, NULL), ZARR_OK);
        if (cases[i].rank_0[0] ==
            'c') /* v2 has one key for rank 0 and for chunk 0 of rank 1 */
            check_key(&k, 0, cases[i].rank_0);
        check_key(&k, 1, cases[i].rank_1);
        check_key(&k, 3, cases[i].rank_3);
        zr_str_init(&text, NULL);
        assert_int_equal(zr_key_encoding_canonical(&k, &text, NULL), ZARR_OK);
        assert_string_equal(zr_str_text(&text), cases[i].canonical);
        zr_str_clear(&text);
        zr_key_encoding_key(&k, 0, NULL, &text);
        assert_string_equal(zr_str_text(&text), cases[i].rank_0);
        assert_true(zr_key_encoding_chunk(&k, 0, cases[i].rank_0, NULL));
        zr_str_deinit(&text);
        zr_key_encoding_deinit(&k);
    }
}

static void test_keys_that_are_none(void **state)
{
    static const char *const strange[] = {
        "",
        "c",
        "c/",
        "c/1",
        "c/1/",
        "c/1/2/",
        "c/1/2/3",
        "c/01/2",
        "c/1/00",
        "c/1/-2",
        "c/+1/2",
        "c/1/2 ",
        " c/1/2",
        "c//2",
        "c.1.2",
        "c/1.2",
        "c1/2",
        "C/1/2",
        "d/1/2",
        "c/1/0x2",
        "c/1/2a",
        "1/2/",
        "1/02",
        "1",
        "/1/2",
        "1/2.3",
        "1.2",
        "zarr.json",
        "c/1/18446744073709551616",
        "c/1/99999999999999999999999999",
        "1/18446744073709551616",
    };
    struct zr_key_encoding now, old;
    uint64_t chunk[2];

    (void)state;
    assert_int_equal(key_make(&now, "default", NULL, NULL), ZARR_OK);
    assert_int_equal(key_make(&old, "v2", "{\"separator\":\"/\"}", NULL), ZARR_OK);
    for (size_t i = 0; i < ZR_COUNT(strange); i++) {
        assert_false(zr_key_encoding_chunk(&now, 2, strange[i], chunk));
        assert_false(zr_key_encoding_chunk(&old, 2, strange[i], chunk));
    }
    assert_false(zr_key_encoding_chunk(&now, 0, "c/0", chunk));
    assert_false(zr_key_encoding_chunk(&old, 0, "00", chunk));
    assert_false(zr_key_encoding_chunk(&old, 0, "1", chunk));
    assert_true(zr_key_encoding_chunk(&now, 2, "c/1/0", chunk));
    assert_true(zr_key_encoding_chunk(&old, 2, "0/2", chunk));
    zr_key_encoding_deinit(&now);
    zr_key_encoding_deinit(&old);
}

static void test_longest_key(void **state)
{
    uint64_t chunk[ZARR_MAX_RANK], back[ZARR_MAX_RANK];
    struct zr_key_encoding k;
    struct zr_str text;

    (void)state;
    memset(chunk, 0xff, sizeof chunk);
    assert_int_equal(key_make(&k, "default", NULL, NULL), ZARR_OK);
    zr_str_init(&text, NULL);
    zr_key_encoding_key(&k, ZARR_MAX_RANK, chunk, &text);
    assert_int_equal(text.bytes, 1 + ZARR_MAX_RANK * 21);
    assert_true(zr_key_encoding_chunk(&k, ZARR_MAX_RANK, zr_str_text(&text), back));
    assert_memory_equal(chunk, back, sizeof chunk);
    zr_str_deinit(&text);
    zr_key_encoding_deinit(&k);
}

static void test_key_errors(void **state)
{
    static const char *const wrong[] = {"{\"separator\":\"-\"}", "{\"separator\":\"\"}",
                                        "{\"separator\":1}", "[]",
                                        "{\"separator\":\"/.\"}"};
    struct zr_key_encoding k;
    zarr_error err = {0};

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(wrong); i++) {
        assert_int_equal(key_make(&k, "default", wrong[i], NULL), ZARR_ERR_INVALID);
        assert_int_equal(key_make(&k, "v2", wrong[i], NULL), ZARR_ERR_INVALID);
        zr_key_encoding_deinit(&k);
    }
    assert_int_equal(key_make(&k, "fans", NULL, &err), ZARR_ERR_UNSUPPORTED);
    assert_string_equal(err.message, "chunk key encoding \"fans\" is not known");
    assert_int_equal(key_make(&k, "fanout", NULL, &err), ZARR_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "\"fanout\" is refused: a draft"));
    assert_int_equal(key_make(&k, "default", "{\"suffix\":\"x\"}", &err),
                     ZARR_ERR_UNSUPPORTED);
    assert_string_equal(err.message,
                        "chunk key encoding \"default\": unknown member \"suffix\"");
}

static void test_suffix_errors(void **state)
{
    static const struct {
        const char *name, *config;
        zarr_status st;
        const char *text;
    } bad[] = {
        {"zarrs.default_suffix", NULL, ZARR_ERR_INVALID,
         "chunk key encoding \"zarrs.default_suffix\": suffix is nothing, must be a "
         "string"},
        {"zarrs.default_suffix", "{\"suffix\":\"a\\u0000b\"}", ZARR_ERR_INVALID,
         "must be a string"},
        {"zarrs.default_suffix", "{\"suffix\":\".a\",\"separator\":\"-\"}",
         ZARR_ERR_INVALID, "separator must be"},
        {"zarrs.default_suffix", "{\"suffix\":\".a\",\"prefix\":\"-\"}",
         ZARR_ERR_UNSUPPORTED, "unknown member \"prefix\""},
        {"suffix", "{\"suffix\":\".a\"}", ZARR_ERR_INVALID, "base_encoding is nothing"},
        {"suffix", "{\"base_encoding\":\"v2\"}", ZARR_ERR_INVALID, "suffix is nothing"},
        {"suffix", "{\"suffix\":\".a\",\"base_encoding\":\"suffix\"}",
         ZARR_ERR_UNSUPPORTED, "base_encoding \"suffix\", only"},
        {"suffix", "{\"suffix\":\"\",\"base_encoding\":\"v2\",\"base-encoding\":\"v2\"}",
         ZARR_ERR_INVALID, "base_encoding is given twice"},
        {"suffix", "{\"suffix\":\"\",\"base_encoding\":{\"name\":\"v2\",\"x\":1}}",
         ZARR_ERR_UNSUPPORTED, "base_encoding: unknown member \"x\""},
    };
    uint64_t chunk[2];
    struct zr_key_encoding k;

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(bad); i++) {
        zarr_error err = {0};

        assert_int_equal(key_make(&k, bad[i].name, bad[i].config, &err), bad[i].st);
        if (!strstr(err.message, bad[i].text))
            fail_msg("%s", err.message);
    }
    assert_int_equal(key_make(&k, "zarrs.default_suffix", "{\"suffix\":\".tif\"}", NULL),
                     ZARR_OK);
    assert_false(zr_key_encoding_chunk(&k, 2, "c/0/1", chunk));
    assert_false(zr_key_encoding_chunk(&k, 2, ".tif", chunk));
    assert_false(zr_key_encoding_chunk(&k, 2, "tif", chunk));
    assert_false(zr_key_encoding_chunk(&k, 2, "c/0/1.tif.tif", chunk));
    assert_true(zr_key_encoding_chunk(&k, 2, "c/0/1.tif", chunk));
    zr_key_encoding_deinit(&k);
}

/* ---- an application's key encoding ----------------------------------------- */

static size_t long_key(const void *self, int32_t ndim, const uint64_t *chunk, char *text,
                       size_t cap)
{
    (void)self;
    (void)ndim;
    (void)chunk;
    if (cap > 5000)
        memset(text, 'k', 5000);
    return 5000;
}

static void test_long_key_of_a_plugin(void **state)
{
    zarr_key_encoding_vtable vt = zr_key_default;
    struct zr_key_encoding k;
    struct zr_str text;

    (void)state;
    vt.name = "test.long";
    vt.key = long_key;
    assert_int_equal(zr_key_encoding_register(&registry, &vt, "core", NULL), ZARR_OK);
    assert_int_equal(key_make(&k, "test.long", NULL, NULL), ZARR_OK);
    zr_str_init(&text, NULL);
    zr_key_encoding_key(&k, 0, NULL, &text);
    assert_int_equal(text.bytes, 5000);
    assert_int_equal(zr_str_text(&text)[4999], 'k');
    zr_str_deinit(&text);
    zr_key_encoding_deinit(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_are_taken_once),
        cmocka_unit_test(test_vtables_must_be_complete),
        cmocka_unit_test(test_regular_from_metadata),
        cmocka_unit_test(test_rank_0_has_one_chunk),
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_any_grid_through_its_vtable),
        cmocka_unit_test(test_regular_vtable),
        cmocka_unit_test(test_grid_errors),
        cmocka_unit_test(test_edges_of_v2),
        cmocka_unit_test(test_keys_and_back),
        cmocka_unit_test(test_keys_that_are_none),
        cmocka_unit_test(test_longest_key),
        cmocka_unit_test(test_key_errors),
        cmocka_unit_test(test_suffix_errors),
        cmocka_unit_test(test_long_key_of_a_plugin),
    };

    return cmocka_run_group_tests(tests, make_registry, drop_registry);
}
