/*
 * unit/array/test_chunks.c - calls on stored chunks: keys, listings with and without the
 * inner chunks of shards, reading and writing encoded bytes, and verify, which must find
 * every kind of damage and report nothing that is intact.
 */
#include "array_test.h"

struct seen {
    int n, n_inner;
    uint64_t bytes;
    char faults[4096];
    int stop_at;
};

static int see_chunk(void *user, const zarr_block_info *c)
{
    struct seen *s = user;

    assert_int_equal(c->ndim, 2);
    s->n++;
    s->n_inner += (int)c->is_chunk;
    if (c->bytes != UINT64_MAX)
        s->bytes += c->bytes;
    if (c->is_chunk) {
        assert_true(c->coordinates[0] < 3 && c->coordinates[1] < 4);
        assert_true(c->bytes > 0 && c->offset != UINT64_MAX);
    }
    return s->n == s->stop_at;
}

static int see_fault(void *user, const zarr_verify_item *item)
{
    struct seen *s = user;
    const size_t at = strlen(s->faults);

    assert_true(item->status != ZARR_OK && *item->message);
    snprintf(s->faults + at, sizeof s->faults - at, "%s|", item->key);
    return 0;
}

static void test_list(void **state)
{
    struct world w;
    zarr_array *a = NULL;

    (void)state;
    for (enum world_sort sort = 0; sort < N_WORLDS; sort++)
        for (int kind = 2; kind <= 4; kind++) {
            struct seen s = {0};

            world_open(&w, sort);
            a = make_array(&w, "g/x", kind, 6, 7);
            assert_ok(zarr_array_list_blocks(a, ZARR_BLOCKS_STORED, see_chunk, &s, NULL,
                                             &terr));
            assert_int_equal(s.n, 0);
            assert_ok(zarr_array_list_blocks(a, ZARR_BLOCKS_MISSING, see_chunk, &s, NULL,
                                             &terr));
            assert_int_equal(s.n, kind == 4 ? 4 : 12);
            s = (struct seen){0};
            fill_array(a);
            assert_ok(zarr_array_list_blocks(a, ZARR_BLOCKS_MISSING, see_chunk, &s, NULL,
                                             &terr));
            assert_int_equal(s.n, 0);
            put_text(&w, "g/x/c/77/0", "outside the grid");
            put_text(&w, "g/x/README", "no chunk");
            assert_ok(zarr_array_list_blocks(a, ZARR_BLOCKS_STORED, see_chunk, &s, NULL,
                                             &terr));
            assert_int_equal(s.n, kind == 4 ? 4 : 12);
            assert_int_equal(s.n_inner, 0);
            s = (struct seen){0};
            assert_ok(zarr_array_list_blocks(a, ZARR_BLOCKS_CHUNKS, see_chunk, &s, NULL,
                                             &terr));
            assert_int_equal(s.n, 12);
            assert_int_equal(s.n_inner, kind == 4 ? 12 : 0);
            s = (struct seen){.stop_at = 2};
            assert_ok(zarr_array_list_blocks(a, ZARR_BLOCKS_CHUNKS, see_chunk, &s, NULL,
                                             &terr));
            assert_int_equal(s.n, 2);
            assert_status(zarr_array_list_blocks(a, 7, see_chunk, &s, NULL, &terr),
                          ZARR_ERR_INVALID);
            zarr_array_free(a);
            world_close(&w);
        }
}

/* The chunks of one block. */
static void test_lists_of_one_block(void **state)
{
    const uint64_t last[2] = {1, 1}, none[2] = {7, 0};

    (void)state;
    for (enum world_sort sort = 0; sort < N_WORLDS; sort++)
        for (int kind = 2; kind <= 4; kind++) {
            struct world w;
            zarr_array *a;
            struct seen s = {0};

            world_open(&w, sort);
            a = make_array(&w, "g/x", kind, 6, 7);
            assert_ok(zarr_array_block_list_chunks(a, last, see_chunk, &s, NULL, &terr));
            assert_int_equal(s.n, 0);
            fill_array(a);
            assert_ok(zarr_array_block_list_chunks(a, last, see_chunk, &s, NULL, &terr));
            assert_int_equal(s.n, kind == 4 ? 2 : 1); /* two more are padding */
            assert_int_equal(s.n_inner, kind == 4 ? 2 : 0);
            assert_true(s.bytes > 0);
            s = (struct seen){.stop_at = 1};
            assert_ok(zarr_array_block_list_chunks(a, last, see_chunk, &s, NULL, &terr));
            assert_int_equal(s.n, 1);
            assert_status(
                zarr_array_block_list_chunks(a, none, see_chunk, &s, NULL, &terr),
                ZARR_ERR_INVALID);
            assert_non_null(strstr(terr.message, "g/x"));
            zarr_array_free(a);
            world_close(&w);
        }
}

static void test_encoded(void **state)
{
    const uint64_t at[2] = {1, 2}, to[2] = {0, 0}, out[2] = {3, 0};
    struct world w;
    zarr_array *a = NULL;
    uint8_t data[4096];
    uint64_t n = sizeof data;
    char key[32];
    size_t len = 0;

    (void)state;
    for (int kind = 2; kind <= 4; kind++) {
        world_open(&w, WORLD_LOCAL);
        a = make_array(&w, "x", kind, 6, 12);
        fill_array(a);
        assert_ok(zarr_array_block_key(a, at, key, sizeof key, &len, &terr));
        assert_string_equal(key, kind == 2 ? "x/1.2" : "x/c/1/2");
        n = sizeof data;
        assert_ok(zarr_array_block_read_encoded(a, at, data, &n, NULL, &terr));
        assert_true(n > 0 && n < sizeof data);
        assert_int_equal(read_at(a, 0, 0), 0);
        assert_ok(zarr_array_block_write_encoded(a, to, data, n, NULL, &terr));
        assert_int_equal(read_at(a, 0, 0),
                         kind == 4 ? 4008
                                   : 2004); /* does not come from the cached index */
        len = (size_t)n;
        n = 3;
        assert_status(zarr_array_block_read_encoded(a, at, data, &n, NULL, &terr),
                      ZARR_ERR_LIMIT);
        assert_int_equal(n, len);
        assert_ok(zarr_array_block_erase(a, at, NULL, &terr));
        assert_status(zarr_array_block_erase(a, at, NULL, &terr), ZARR_ERR_NOT_FOUND);
        n = sizeof data;
        assert_status(zarr_array_block_read_encoded(a, at, data, &n, NULL, &terr),
                      ZARR_ERR_NOT_FOUND);
        assert_int_equal(read_at(a, kind == 4 ? 4 : 2, kind == 4 ? 8 : 4), -1);
        assert_status(zarr_array_block_key(a, out, key, sizeof key, &len, &terr),
                      ZARR_ERR_INVALID);
        assert_says("dimension 0");
        zarr_array_free(a);
        world_close(&w);
    }
}

static void test_verify(void **state)
{
    const uint64_t bad[2] = {0, 0}, short_one[2] = {1, 1};
    struct world w;
    zarr_array *a = NULL;
    uint8_t data[4096];

    (void)state;
    for (enum world_sort sort = 0; sort < N_WORLDS; sort++)
        for (int kind = 2; kind <= 4; kind++) {
            struct seen s = {0};
            uint64_t n = sizeof data;

            world_open(&w, sort);
            a = make_array(&w, "x", kind, 6, 7);
            fill_array(a);
            assert_ok(zarr_array_verify(a, see_fault, &s, NULL, &terr));
            assert_string_equal(s.faults, "");
            assert_ok(zarr_array_block_read_encoded(a, bad, data, &n, NULL, &terr));
            data[5] ^= 0xFF; /* inside the first zstd frame, also of a shard's first inner
                                chunk */
            data[n - 1] ^= kind == 4 ? 0 : 0xFF;
            assert_ok(zarr_array_block_write_encoded(a, bad, data, n, NULL, &terr));
            assert_ok(zarr_array_block_write_encoded(a, short_one, data, 3, NULL, &terr));
            assert_ok(zarr_array_verify(a, see_fault, &s, NULL, &terr));
            assert_non_null(strstr(s.faults, kind == 2 ? "x/0.0|" : "x/c/0/0|"));
            assert_non_null(strstr(s.faults, kind == 2 ? "x/1.1|" : "x/c/1/1|"));
            zarr_array_free(a);
            world_close(&w);
        }
}

/* Nested shards behind transposes: inner chunks are reported in the dimensions of the
 * array. */
#define NAMED(name, config) "{\"name\":\"" name "\",\"configuration\":{" config "}}"
#define TURN                NAMED("transpose", "\"order\":[1,0]")
#define BYTES               NAMED("bytes", "\"endian\":\"little\"")
#define SHARD(shape, codecs)                                                             \
    NAMED("sharding_indexed", "\"chunk_shape\":" shape ",\"codecs\":[" codecs            \
                              "],\"index_codecs\":[" BYTES "]")
static const char nested[] =
    "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[10,9],\"data_type\":\"int32\","
    "\"chunk_grid\":" NAMED(
        "regular",
        "\"chunk_shape\":[8,12]") ","
                                  "\"chunk_key_encoding\":\"default\",\"fill_value\":-1,"
                                  "\"codecs\":[" TURN
                                  "," SHARD("[6,4]", TURN "," SHARD("[2,3]", BYTES)) "]}";

static int mark_inner(void *user, const zarr_block_info *c)
{
    int(*seen)[3] = user;

    assert_true(c->is_chunk && c->coordinates[0] < 5 && c->coordinates[1] < 3);
    seen[c->coordinates[0]][c->coordinates[1]]++;
    return 0;
}

static void test_nested(void **state)
{
    zarr_array_spec spec = {.struct_size = sizeof spec, .document = nested};
    struct world w;
    zarr_array *a = NULL;
    struct seen faults = {0};
    int seen[5][3] = {{0}};

    (void)state;
    world_open(&w, WORLD_LOCAL);
    assert_ok(zarr_array_create(&a, w.store, "x", &spec, NULL, &terr));
    assert_int_equal(zarr_array_block_shape(a)[0], 8);
    assert_int_equal(zarr_array_block_shape(a)[1], 12);
    assert_int_equal(zarr_array_chunk_shape(a)[0], 2);
    assert_int_equal(zarr_array_chunk_shape(a)[1], 3);
    fill_array(a);
    assert_int_equal(count_wrong(a, 10, 9), 0);
    assert_ok(
        zarr_array_list_blocks(a, ZARR_BLOCKS_CHUNKS, mark_inner, seen, NULL, &terr));
    for (int i = 0; i < 15; i++)
        assert_int_equal(seen[i / 3][i % 3], 1);
    assert_ok(zarr_array_verify(a, see_fault, &faults, NULL, &terr));
    assert_string_equal(faults.faults, "");
    zarr_array_free(a);
    world_close(&w);
}

/* Data that is NULL although it has a length is the caller's fault. */
static void test_null_data(void **state)
{
    const uint64_t chunk[2] = {0, 0};
    uint64_t bytes = 5;
    struct world w;
    zarr_array *a = NULL;

    (void)state;
    for (enum world_sort sort = 0; sort < N_WORLDS; sort++) {
        world_open(&w, sort);
        a = make_array(&w, "x", 3, 4, 4);
        fill_array(a);
        assert_status(zarr_array_block_write_encoded(a, chunk, NULL, 5, NULL, &terr),
                      ZARR_ERR_INVALID);
        assert_says("NULL");
        assert_status(zarr_array_block_read_encoded(a, chunk, NULL, &bytes, NULL, &terr),
                      ZARR_ERR_INVALID);
        assert_status(zarr_store_put(w.store, "k", NULL, 1, NULL, &terr),
                      ZARR_ERR_INVALID);
        assert_status(
            zarr_store_get(w.store, "x/zarr.json", 0, NULL, &bytes, NULL, &terr),
            ZARR_ERR_INVALID);
        assert_ok(zarr_store_put(w.store, "empty", NULL, 0, NULL, &terr));
        assert_int_equal(count_wrong(a, 4, 4), 0);
        zarr_array_free(a);
        world_close(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_encoded),
        cmocka_unit_test(test_lists_of_one_block),
        cmocka_unit_test(test_verify),
        cmocka_unit_test(test_nested),
        cmocka_unit_test(test_null_data),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
