/*
 * unit/array/test_tiles.c - the extents of all chunks, and those of all blocks, clipped
 * at the shape, cover each element of the array once; in every kind of grid.
 */
#include "array_test.h"

#define BYTES "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define SHARD(chunk, codecs)                                                             \
    "{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":" chunk           \
    ",\"codecs\":[" codecs "],\"index_codecs\":[" BYTES ",{\"name\":\"crc32c\"}]}}"
#define SWAP "{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}}"
#define FLAT "{\"name\":\"reshape\",\"configuration\":{\"shape\":[60]}}"

enum {
    ROWS = 13,
    COLS = 17
};

struct grid {
    const char *name, *chunk_grid, *codecs;
    uint64_t chunks[2], blocks[2]; /* counts */
    uint64_t chunk[2];             /* shape; 0: chunks differ */
};

static const struct grid grids[] = {
    {"regular", NULL, "[" BYTES "]", {3, 3}, {3, 3}, {6, 8}},
    {"shards", NULL, "[" SHARD("[2,4]", BYTES) "]", {7, 5}, {3, 3}, {2, 4}},
    {"nested shards",
     NULL,
     "[" SHARD("[6,4]", SHARD("[3,2]", BYTES)) "]",
     {5, 9},
     {3, 3},
     {3, 2}},
    {"transposed shards",
     NULL,
     "[" SWAP "," SHARD("[4,2]", BYTES) "]",
     {7, 5},
     {3, 3},
     {2, 4}},
    {"rectilinear",
     "{\"name\":\"rectilinear\",\"configuration\":{\"kind\":\"inline\","
     "\"chunk_shapes\":[[1,4,8],[10,5,5]]}}",
     "[" BYTES "]",
     {3, 3},
     {3, 3},
     {0, 0}},
    {"rectilinear shards",
     "{\"name\":\"rectilinear\",\"configuration\":{\"kind\":\"inline\","
     "\"chunk_shapes\":[[2,4,8],[10,5,5]]}}",
     "[" SHARD("[2,5]", BYTES) "]",
     {7, 4},
     {3, 3},
     {2, 5}},
    {"shards that are decoded whole",
     "{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[6,10]}}",
     "[" FLAT "," SHARD("[30]", BYTES) "]",
     {3, 2},
     {3, 2},
     {6, 10}},
};

typedef zarr_status extent_fn(const zarr_array *a, const uint64_t *at, uint64_t *origin,
                              uint64_t *shape, zarr_error *err);

static void check_tiles(const zarr_array *a, const uint64_t counts[2], extent_fn *extent)
{
    uint64_t at[2], from[2], shape[2];
    int covered[ROWS][COLS] = {{0}};

    for (at[0] = 0; at[0] < counts[0]; at[0]++)
        for (at[1] = 0; at[1] < counts[1]; at[1]++) {
            assert_ok(extent(a, at, from, shape, &terr));
            for (uint64_t y = from[0]; y < from[0] + shape[0] && y < ROWS; y++)
                for (uint64_t x = from[1]; x < from[1] + shape[1] && x < COLS; x++)
                    covered[y][x]++;
        }
    for (int i = 0; i < ROWS * COLS; i++)
        assert_int_equal(covered[i / COLS][i % COLS], 1);
    assert_status(extent(a, counts, NULL, NULL, &terr), ZARR_ERR_INVALID);
}

static void check_grid(struct world *w, const struct grid *g)
{
    const uint64_t shape[2] = {ROWS, COLS}, block[2] = {6, 8};
    const zarr_array_spec spec = {
        .struct_size = sizeof spec,
        .ndim = 2,
        .shape = shape,
        .chunk_shape = g->chunk_grid ? NULL : block,
        .chunk_grid = g->chunk_grid,
        .data_type = "int8",
        .codecs = g->codecs,
    };
    uint64_t counts[2];
    zarr_array *a = NULL;

    assert_ok(zarr_array_create(&a, w->store, g->name, &spec, NULL, &terr));
    zarr_array_chunk_counts(a, counts);
    assert_memory_equal(counts, g->chunks, sizeof counts);
    check_tiles(a, counts, zarr_array_chunk_extent);
    zarr_array_block_counts(a, counts);
    assert_memory_equal(counts, g->blocks, sizeof counts);
    check_tiles(a, counts, zarr_array_block_extent);
    if (g->chunk[0])
        assert_memory_equal(zarr_array_chunk_shape(a), g->chunk, sizeof g->chunk);
    else
        assert_null(zarr_array_chunk_shape(a));
    zarr_array_free(a);
}

static void test_tiles(void **state)
{
    struct world w;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    for (size_t i = 0; i < sizeof grids / sizeof *grids; i++)
        check_grid(&w, &grids[i]);
    world_close(&w);
}

/* The array of the manual's example: 100 elements, shards of 50, chunks of 10. */
static void test_counts(void **state)
{
    const uint64_t shape[1] = {100}, shard[1] = {50}, chunk[1] = {10};
    const zarr_array_spec spec = {.struct_size = sizeof spec,
                                  .ndim = 1,
                                  .shape = shape,
                                  .chunk_shape = chunk,
                                  .shard_shape = shard,
                                  .data_type = "int8"};
    uint64_t n = 0;
    zarr_array *a = NULL;
    struct world w;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    assert_ok(zarr_array_create(&a, w.store, "x", &spec, NULL, &terr));
    zarr_array_chunk_counts(a, &n);
    assert_int_equal(n * zarr_array_chunk_shape(a)[0], 100);
    zarr_array_block_counts(a, &n);
    assert_int_equal(n * zarr_array_block_shape(a)[0], 100);
    zarr_array_free(a);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tiles),
        cmocka_unit_test(test_counts),
    };

    return cmocka_run_group_tests_name("array tiles", tests, NULL, NULL);
}
