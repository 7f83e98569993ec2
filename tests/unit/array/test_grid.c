/*
 * unit/array/test_grid.c - an application's chunk grid whose chunks differ in shape and
 * which does not list runs: chunk i of a dimension has 1 + i % 3 elements. Every array
 * operation is tried on it.
 */
#include "array_test.h"

struct steps {
    int32_t ndim;
    uint64_t shape[ZARR_MAX_RANK];
};

static uint64_t steps_origin(uint64_t chunk)
{
    static const uint64_t in_turn[] = {0, 1, 3};

    return chunk / 3 * 6 + in_turn[chunk % 3];
}

static zarr_status steps_parse(void **self, int32_t ndim, const uint64_t *shape,
                               const char *json, zarr_error *err)
{
    struct steps *s = calloc(1, sizeof *s);

    (void)json;
    (void)err;
    if (!s)
        return ZARR_ERR_NO_MEMORY;
    s->ndim = ndim;
    if (ndim > 0)
        memcpy(s->shape, shape, (size_t)ndim * sizeof *shape);
    *self = s;
    return ZARR_OK;
}

static zarr_status steps_canonical(const void *self, char *text, size_t cap,
                                   size_t *text_bytes, zarr_error *err)
{
    (void)self;
    (void)err;
    if (cap > 2)
        memcpy(text, "{}", 3);
    *text_bytes = 2;
    return ZARR_OK;
}

static uint64_t steps_locate(const void *self, int32_t dim, uint64_t at)
{
    (void)self;
    (void)dim;
    return at / 6 * 3 + (at % 6 == 0 ? 0 : at % 6 < 3 ? 1 : 2);
}

static uint64_t steps_n_chunks(const void *self, int32_t dim)
{
    const struct steps *s = self;

    return s->shape[dim] == 0 ? 0 : steps_locate(self, dim, s->shape[dim] - 1) + 1;
}

static void steps_extent(const void *self, int32_t dim, uint64_t chunk, uint64_t *origin,
                         uint64_t *size)
{
    (void)self;
    (void)dim;
    *origin = steps_origin(chunk);
    *size = 1 + chunk % 3;
}

static const zarr_grid_vtable steps_grid = {
    .struct_size = sizeof(zarr_grid_vtable),
    .name = "test.steps",
    .parse = steps_parse,
    .canonical = steps_canonical,
    .n_chunks = steps_n_chunks,
    .locate = steps_locate,
    .extent = steps_extent,
    .free = free,
};

enum {
    ROWS = 11,
    COLS = 8
};

static zarr_array *make(struct world *w, const char *path, const uint64_t *inner)
{
    const uint64_t shape[2] = {ROWS, COLS};
    const zarr_array_spec spec = {.struct_size = sizeof spec,
                                  .ndim = 2,
                                  .shape = shape,
                                  .chunk_shape = inner,
                                  .chunk_grid = "{\"name\":\"test.steps\"}",
                                  .data_type = "int32",
                                  .fill_value = "-1"};
    zarr_array *a = NULL;

    assert_ok(zarr_array_create(&a, w->store, path, &spec, NULL, &terr));
    return a;
}

static void open_world(struct world *w, enum world_sort sort)
{
    world_begin(w, sort);
    assert_ok(world_context(w, &terr));
    assert_ok(zarr_context_register_grid(w->ctx, &steps_grid, "tests", &terr));
    assert_ok(world_store(w, sort, &terr));
}

static int count_objects(void *user, const zarr_block_info *chunk)
{
    uint64_t *bytes = user;

    bytes[0]++;
    bytes[1] += chunk->bytes;
    return 0;
}

static int no_fault(void *user, const zarr_verify_item *item)
{
    (void)user;
    fail_msg("%s: %s", item->key, item->message);
    return 0;
}

/* Overwrites rows 2 to 6 of columns 3 to 7 with the old value plus 2000000. */
static void change_part(zarr_array *a)
{
    const uint64_t shape[2] = {ROWS, COLS}, start[2] = {2, 3}, count[2] = {5, 5};
    const uint64_t box[2] = {5, 5};
    int32_t data[25];
    zarr_selection *s = NULL;
    zarr_tensor t;

    for (int32_t i = 0; i < 25; i++)
        data[i] = 2000000 + (2 + i / 5) * 1000 + 3 + i % 5;
    zarr_tensor_host(&t, NULL, data, sizeof data, 2, box);
    assert_ok(zarr_selection_box(&s, 2, shape, start, count, &terr));
    assert_ok(zarr_array_write(a, s, &t, NULL, &terr));
    zarr_selection_free(s);
}

static void check_all(zarr_array *a, const char *pipeline)
{
    const uint64_t shape[2] = {ROWS, COLS};
    const zarr_io_options opts = {.struct_size = sizeof opts,
                                  .tuning = TUNING(.pipeline = pipeline)};
    int32_t data[ROWS * COLS];
    zarr_tensor t;

    zarr_tensor_host(&t, NULL, data, sizeof data, 2, shape);
    assert_ok(zarr_array_read(a, NULL, &t, &opts, &terr));
    for (int32_t r = 0; r < ROWS; r++)
        for (int32_t c = 0; c < COLS; c++) {
            const int changed = r >= 2 && r < 7 && c >= 3;

            assert_int_equal(data[r * COLS + c], r * 1000 + c + (changed ? 2000000 : 0));
        }
}

static void test_elements(void **state)
{
    const uint64_t ones[2] = {1, 1};
    struct world w;

    (void)state;
    for (enum world_sort sort = 0; sort < N_WORLDS; sort++)
        for (int sharded = 0; sharded < 2; sharded++) {
            uint64_t counts[2], origin[2], shape[2], found[2] = {0, 0};
            const uint64_t last[2] = {5, 4};
            zarr_array *a = NULL;

            open_world(&w, sort);
            a = make(&w, "x", sharded ? ones : NULL);
            assert_null(zarr_array_block_shape(a));
            assert_true((zarr_array_chunk_shape(a) != NULL) == (sharded != 0));
            zarr_array_block_counts(a, counts);
            assert_int_equal(counts[0], 6); /* edges 1 2 3 1 2 3 */
            assert_int_equal(counts[1], 5); /* edges 1 2 3 1 2 */
            assert_ok(zarr_array_block_extent(a, last, origin, shape, &terr));
            assert_int_equal(origin[0], 9);
            assert_int_equal(shape[0], 3); /* one element beyond the array */
            assert_int_equal(origin[1], 7);
            assert_int_equal(shape[1], 2);
            fill_array(a);
            change_part(a);
            check_all(a, NULL);
            check_all(a, "serial");
            if (sort != WORLD_PLAIN) {
                assert_ok(
                    zarr_array_list_blocks(a, 0, count_objects, found, NULL, &terr));
                assert_int_equal(found[0], 30);
                assert_ok(zarr_array_verify(a, no_fault, NULL, NULL, &terr));
            }
            zarr_array_free(a);
            world_close(&w);
        }
}

/* Units by their elements, the largest of them, and selections of whole units. */
static void test_units(void **state)
{
    const uint64_t at[2] = {5, 6}, outside[2] = {ROWS, 0}, where[2] = {2, 3};
    const int64_t list[] = {0, 2};
    zarr_dim_selection dims[2] = {{.kind = ZARR_DIM_SLICE, .start = 1, .stop = 3},
                                  {.kind = ZARR_DIM_INDEX, .start = -1}};
    uint64_t chunk[2] = {9, 9}, largest[2], shape[2], block_shape[2] = {7, 7};
    zarr_selection *sel = NULL;
    zarr_array *a = NULL;
    struct world w;

    (void)state;
    open_world(&w, WORLD_MEMORY);
    a = make(&w, "x", NULL);
    assert_ok(zarr_array_block_locate(a, at, chunk, &terr));
    assert_memory_equal(chunk, where, sizeof chunk);
    assert_status(zarr_array_block_locate(a, outside, chunk, &terr), ZARR_ERR_INVALID);
    zarr_array_block_largest(a, largest);
    assert_int_equal(largest[0], 3);
    assert_int_equal(largest[1], 3);
    zarr_array_copy_shapes(a, shape, NULL, block_shape);
    assert_int_equal(shape[0], ROWS);
    assert_int_equal(block_shape[0], 0); /* they differ */
    assert_non_null(strstr(zarr_array_chunk_grid(a), "\"test.steps\""));
    assert_ok(zarr_array_select_blocks(&sel, a, 2, dims, &terr));
    assert_int_equal(zarr_selection_ndim(sel), 2);
    assert_int_equal(zarr_selection_shape(sel)[0], 2 + 3);
    assert_int_equal(zarr_selection_shape(sel)[1], 1); /* the part inside the array */
    zarr_selection_free(sel);
    dims[1] = (zarr_dim_selection){.kind = ZARR_DIM_LIST, .list = list, .n_list = 2};
    assert_status(zarr_array_select_blocks(&sel, a, 2, dims, &terr), ZARR_ERR_INVALID);
    assert_null(sel);
    zarr_array_free(a);
    world_close(&w);
}

static void test_resize(void **state)
{
    const uint64_t small[2] = {4, COLS}, large[2] = {30, 9};
    struct world w;
    zarr_array *a = NULL;

    (void)state;
    open_world(&w, WORLD_MEMORY);
    a = make(&w, "x", NULL);
    fill_array(a);
    assert_ok(zarr_array_resize(a, small, NULL, &terr));
    assert_int_equal(count_wrong(a, 4, COLS), 0);
    assert_ok(zarr_array_resize(a, large, NULL, &terr));
    assert_int_equal(count_wrong(a, 4, COLS), 0);
    zarr_array_free(a);
    world_close(&w);
}

/* Edges 1, 2 and 3 are not multiples of 2. */
static void test_inner_chunks_that_do_not_fit(void **state)
{
    const uint64_t shape[2] = {ROWS, COLS}, twos[2] = {2, 2};
    const zarr_array_spec spec = {.struct_size = sizeof spec,
                                  .ndim = 2,
                                  .shape = shape,
                                  .chunk_shape = twos,
                                  .chunk_grid = "{\"name\":\"test.steps\"}",
                                  .data_type = "int32"};
    struct world w;
    zarr_array *a = NULL;

    (void)state;
    open_world(&w, WORLD_MEMORY);
    assert_status(zarr_array_create(&a, w.store, "x", &spec, NULL, &terr),
                  ZARR_ERR_INVALID);
    assert_null(a);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_elements),
        cmocka_unit_test(test_units),
        cmocka_unit_test(test_resize),
        cmocka_unit_test(test_inner_chunks_that_do_not_fit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
