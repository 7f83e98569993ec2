/*
 * unit/array/test_foreign.c - arrays that use an application's own codecs and chunk key
 * encoding (foreign.c), written and read end to end. Codecs of each kind are used alone,
 * inside shards and in front of them. test_foreign_types.c tests data types.
 */
#include "foreign.h"

#include <stdbool.h>

enum {
    ROWS = 7,
    COLS = 10,
    CELLS = ROWS * COLS
};
static const uint64_t all_shape[2] = {ROWS, COLS};
static const uint64_t shape[2] = {ROWS, COLS}, start[2] = {1, 2}, count[2] = {5, 6};

#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define BIG    "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}"
#define SHARD(codecs)                                                                    \
    "{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[2,2],"           \
    "\"codecs\":[" codecs "],\"index_codecs\":[" LITTLE "]}}"

/* First bytes of the stored chunk that contains element (0, 0). "": not checked here. */
static const struct {
    const char *codecs, *starts;
    int first; /* index of the element that comes first in chunk (0, 0) */
} chains[] = {
    {"[\"test.neg\"," LITTLE "]", "~<", 0},
    {"[\"test.mirror\"," BIG "]", ">", 15},
    {"[\"test.pack\"]", "~=", 0},
    {"[\"test.neg\",\"test.pack\"]", "=", 0},
    {"[\"test.mirror\",\"test.neg\",\"test.pack\",\"test.turn\"]", "", 0},
    {"[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}},\"test.mirror\","
     "\"test.pack\"]",
     "~=", 15},
    {"[" SHARD("\"test.neg\"," LITTLE) "]", "~<", 0},
    {"[" SHARD("\"test.pack\"") "]", "~=", 0},
    {"[" SHARD("\"test.mirror\",\"test.pack\",\"test.turn\"") "]", "", 0},
    {"[\"test.neg\"," SHARD("\"test.pack\"") "]", "=", 0},
    {"[\"test.neg\"," SHARD("\"test.neg\"," BIG) "]", ">", 0},
    {"[\"test.mirror\"," SHARD(LITTLE) "]", "<", 15},
    {"[\"test.mirror\"," SHARD("\"test.neg\",\"test.pack\"") ",\"test.turn\"]", "", 0},
};

static zarr_array *make(struct world *w, const char *path, const char *codecs)
{
    char doc[1500];
    zarr_array_spec spec = ZARR_ARRAY_SPEC_INIT;
    zarr_array *a = NULL;

    snprintf(doc, sizeof doc,
             "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[7,10],"
             "\"data_type\":\"int16\",\"chunk_grid\":{\"name\":\"regular\","
             "\"configuration\":{\"chunk_shape\":[4,4]}},\"chunk_key_encoding\":"
             "{\"name\":\"test.keys\"},\"fill_value\":3,\"codecs\":%s}",
             codecs);
    spec.document = doc;
    assert_ok(zarr_array_create(&a, w->store, path, &spec, NULL, &terr));
    return a;
}

/* The two bytes in the order given by the text: "~" inverts them, then "<", ">" or "="
 * (byte order of the machine). */
static void check_stored(struct world *w, const char *path, size_t i, int16_t element)
{
    const char *how = chains[i].starts;
    const uint16_t one = 1;
    uint16_t v = (uint16_t)element;
    uint8_t want[2], got[2];
    uint64_t n = 2;
    char key[32];
    bool little;

    if (!*how)
        return;
    if (*how == '~') {
        v = (uint16_t)~v;
        how++;
    }
    little = *how == '=' ? *(const uint8_t *)&one == 1 : *how == '<';
    want[little ? 0 : 1] = (uint8_t)(v & 0xff);
    want[little ? 1 : 0] = (uint8_t)(v >> 8);
    snprintf(key, sizeof key, "%s/k_0_0", path);
    assert_ok(zarr_store_get(w->store, key, 0, got, &n, NULL, &terr));
    if (memcmp(got, want, 2) != 0)
        fail_msg("%s: begins with %02x %02x", chains[i].codecs, got[0], got[1]);
}

static void check_elements(zarr_array *a, const int16_t *want, const char *pipeline,
                           const char *what)
{
    const zarr_io_options opts = {.struct_size = sizeof opts,
                                  .tuning = TUNING(.pipeline = pipeline)};
    int16_t got[CELLS], part[30];
    const uint64_t box[2] = {5, 6};
    zarr_selection *sel = NULL;
    zarr_tensor t;

    memset(got, 0x11, sizeof got);
    zarr_tensor_host(&t, NULL, got, sizeof got, 2, all_shape);
    assert_ok(zarr_array_read(a, NULL, &t, &opts, &terr));
    if (memcmp(got, want, sizeof got) != 0)
        fail_msg("%s: other elements", what);
    zarr_tensor_host(&t, NULL, part, sizeof part, 2, box);
    assert_ok(zarr_selection_box(&sel, 2, shape, start, count, &terr));
    assert_ok(zarr_array_read(a, sel, &t, &opts, &terr));
    zarr_selection_free(sel);
    for (int i = 0; i < 30; i++)
        assert_int_equal(part[i], want[(1 + i / 6) * COLS + 2 + i % 6]);
}

static int see_chunk(void *user, const zarr_block_info *chunk)
{
    (void)chunk;
    ++*(int *)user;
    return 0;
}

static int no_fault(void *user, const zarr_verify_item *item)
{
    (void)user;
    fail_msg("%s: %s", item->key, item->message);
    return 0;
}

/* Reads a missing chunk, all elements, a part, and all again from a new handle. */
static void one_chain(struct world *w, size_t i, const char *pipeline, const char *path)
{
    const zarr_io_options opts = {.struct_size = sizeof opts,
                                  .tuning = TUNING(.pipeline = pipeline)};
    const uint64_t box[2] = {5, 6};
    zarr_array *a = make(w, path, chains[i].codecs);
    int16_t data[CELLS], part[30];
    zarr_selection *sel = NULL;
    zarr_tensor t;
    int n = 0;

    for (int k = 0; k < CELLS; k++)
        data[k] = 3;
    check_elements(a, data, pipeline, chains[i].codecs);
    for (int k = 0; k < CELLS; k++)
        data[k] =
            k % COLS >= 8
                ? 3
                : (int16_t)(257 * k - 5000); /* 2 chunks contain only the fill value */
    zarr_tensor_host(&t, NULL, data, sizeof data, 2, all_shape);
    assert_ok(zarr_array_write(a, NULL, &t, &opts, &terr));
    check_elements(a, data, pipeline, chains[i].codecs);
    check_stored(w, path, i, data[chains[i].first / 4 * COLS + chains[i].first % 4]);
    /* zarr.json, and the chunks that contain other values. */
    assert_int_equal(n_keys(w, path), 5);
    for (int k = 0; k < 30; k++)
        part[k] = data[(1 + k / 6) * COLS + 2 + k % 6] = (int16_t)(-7 * k);
    zarr_tensor_host(&t, NULL, part, sizeof part, 2, box);
    assert_ok(zarr_selection_box(&sel, 2, shape, start, count, &terr));
    assert_ok(zarr_array_write(a, sel, &t, &opts, &terr));
    zarr_selection_free(sel);
    check_elements(a, data, pipeline, chains[i].codecs);
    zarr_array_free(a);
    assert_ok(zarr_array_open(&a, w->store, path, NULL, &terr));
    check_elements(a, data, NULL, chains[i].codecs);
    assert_ok(zarr_array_list_blocks(a, 0, see_chunk, &n, NULL, &terr));
    assert_true(n >= 4);
    assert_ok(zarr_array_verify(a, no_fault, NULL, NULL, &terr));
    zarr_array_free(a);
}

static void test_codecs_and_keys(void **state)
{
    static const char *const pipelines[] = {"waves", "serial"};
    struct world w;

    (void)state;
    for (enum world_sort sort = 0; sort < WORLD_PLAIN; sort++) {
        foreign_world(&w, sort);
        assert_ok(world_store(&w, sort, &terr));
        for (size_t i = 0; i < sizeof chains / sizeof *chains; i++)
            for (int p = 0; p < 2; p++) {
                char path[16];

                snprintf(path, sizeof path, "a%d-%d", (int)i, p);
                one_chain(&w, i, pipelines[p], path);
            }
        world_close(&w);
    }
}

/* Keys are parsed, too: a shrinking resize finds the chunks outside and deletes them. */
static void test_keys_shrink(void **state)
{
    const uint64_t small[2] = {3, 5};
    struct world w;
    zarr_array *a;

    (void)state;
    foreign_world(&w, WORLD_MEMORY);
    assert_ok(world_store(&w, WORLD_MEMORY, &terr));
    a = make(&w, "x", "[\"test.pack\"]");
    put_text(&w, "x/k_2_1", "0123456789abcdef0123456789abcdef");
    put_text(&w, "x/k_1_0", "0123456789abcdef0123456789abcdef");
    put_text(&w, "x/k_01_0", "no chunk's");
    assert_ok(zarr_array_resize(a, small, NULL, &terr));
    assert_null(get_text(&w, "x/k_2_1"));
    assert_non_null(get_text(&w, "x/k_1_0"));
    assert_non_null(get_text(&w, "x/k_01_0"));
    zarr_array_free(a);
    world_close(&w);
}

/* A small part of a large chunk: the decoder is asked for that part only. It is
 * asked for the whole chunk if the part is most of it, or if the pipeline takes no
 * short cuts. */
static void test_partial(void **state)
{
    enum {
        EDGE = 512
    };
    static int16_t data[EDGE * EDGE], got[EDGE * EDGE];
    static const uint64_t edges[2] = {EDGE, EDGE}, from[2] = {17, 40}, n[2] = {3, 5};
    static const char *const codecs[] = {
        "[" LITTLE ",\"test.turn\"]",
        "[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[256,256],"
        "\"codecs\":[" LITTLE ",\"test.turn\"],\"index_codecs\":[" LITTLE "]}}]"};
    const uint64_t all[2] = {EDGE, EDGE}, box[2] = {3, 5};
    struct world w;

    (void)state;
    foreign_world(&w, WORLD_MEMORY);
    assert_ok(world_store(&w, WORLD_MEMORY, &terr));
    for (int k = 0; k < EDGE * EDGE; k++)
        data[k] = (int16_t)(k * 31);
    for (int i = 0; i < 2; i++) {
        zarr_stats stats = ZARR_STATS_INIT;
        zarr_io_options opts = {.struct_size = sizeof opts, .stats = &stats};
        const zarr_array_spec spec = {.struct_size = sizeof spec,
                                      .ndim = 2,
                                      .shape = edges,
                                      .chunk_shape = edges,
                                      .data_type = "int16",
                                      .codecs = codecs[i]};
        zarr_selection *sel = NULL;
        zarr_array *a = NULL;
        zarr_tensor t;

        assert_ok(zarr_array_create(&a, w.store, i ? "b" : "a", &spec, NULL, &terr));
        zarr_tensor_host(&t, NULL, data, sizeof data, 2, all);
        assert_ok(zarr_array_write(a, NULL, &t, NULL, &terr));
        assert_ok(zarr_selection_box(&sel, 2, edges, from, n, &terr));
        for (int serial = 0; serial < 2; serial++) {
            opts.tuning = TUNING(.pipeline = serial ? "serial" : "waves");
            n_partial = n_whole = 0;
            memset(got, 0, sizeof got);
            zarr_tensor_host(&t, NULL, got, sizeof(int16_t) * 15, 2, box);
            assert_ok(zarr_array_read(a, sel, &t, &opts, &terr));
            for (int k = 0; k < 15; k++)
                assert_int_equal(got[k], data[(17 + k / 5) * EDGE + 40 + k % 5]);
            assert_int_equal(n_partial, !serial);
            assert_int_equal(n_whole, serial);
            assert_int_equal(stats.chunks_partial, !serial);
        }
        opts.tuning = NULL;
        n_partial = 0;
        zarr_tensor_host(&t, NULL, got, sizeof got, 2, all);
        assert_ok(zarr_array_read(a, NULL, &t, &opts, &terr));
        assert_memory_equal(got, data, sizeof data);
        assert_int_equal(n_partial, 0);
        zarr_selection_free(sel);
        zarr_array_free(a);
    }
    world_close(&w);
}

struct rows {
    int codecs, impls, keys;
};

static int see_row(void *user, const zarr_registry_item *item)
{
    struct rows *r = user;

    if (strcmp(item->origin, "tests") != 0)
        return 0;
    r->codecs += item->registry == ZARR_REGISTRY_CODEC;
    r->impls += item->registry == ZARR_REGISTRY_CODEC_IMPL;
    r->keys += item->registry == ZARR_REGISTRY_KEY_ENCODING &&
               strcmp(item->name, "test.keys") == 0;
    return 0;
}

static void test_listed(void **state)
{
    struct rows rows = {0, 0, 0};
    struct world w;

    (void)state;
    foreign_world(&w, WORLD_MEMORY);
    assert_ok(zarr_context_list(w.ctx, 0, see_row, &rows, &terr));
    assert_int_equal(rows.codecs, 4);
    assert_int_equal(rows.impls, 4);
    assert_int_equal(rows.keys, 1);
    world_close(&w);
}

/* The codec given by name alone, without a configuration. */
static void test_keys_by_name(void **state)
{
    zarr_array_spec spec = ZARR_ARRAY_SPEC_INIT;
    const uint64_t length[1] = {4};
    zarr_array *a = NULL;
    struct world w;

    (void)state;
    foreign_world(&w, WORLD_MEMORY);
    assert_ok(world_store(&w, WORLD_MEMORY, &terr));
    spec.ndim = 1;
    spec.shape = length;
    spec.data_type = "uint8";
    spec.key_encoding = "test.keys";
    assert_ok(zarr_array_create(&a, w.store, "a", &spec, NULL, &terr));
    assert_non_null(strstr(zarr_array_metadata(a), "\"test.keys\""));
    assert_null(strstr(zarr_array_metadata(a), "separator"));
    zarr_array_free(a);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_codecs_and_keys), cmocka_unit_test(test_keys_shrink),
        cmocka_unit_test(test_keys_by_name),    cmocka_unit_test(test_partial),
        cmocka_unit_test(test_listed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
