/*
 * unit/select/test_huge.c - arrays and grids far larger than memory: coordinates near
 * 2^63, 2^40 chunks and more, rank 64. Every pair of every projection is checked (the
 * wide arithmetic below is the oracle), and so is the order of chunks. No call may walk
 * the grid: time in proportion to it would never end.
 */
#include "select/select.h"
#include "unit/grid/grid_test.h"

#include <stdio.h>
#include <string.h>

__extension__ typedef __int128 wide;

enum {
    MAX_N = 40
}; /* items of a dimension, or points */

static uint64_t running;

static int tell_seed(void **state)
{
    (void)state;
    if (running)
        printf("failed: ZR_SEED=%" PRIu64 " ZR_CASES=1\n", running);
    return 0;
}

/* A number of random magnitude from 1 to 2^63 - 1. */
static uint64_t random_length(struct rng *r)
{
    uint64_t v = rng_next(r) >> (1 + rng_below(r, 62));

    return v ? v : 1;
}

struct huge {
    struct rng rng;
    int32_t ndim;
    uint64_t shape[ZARR_MAX_RANK], edge[ZARR_MAX_RANK];
    struct zr_grid grid;
    zarr_selection *sel;
    /* dims: first, step and number of selected elements; points: coords */
    uint64_t n[ZARR_MAX_RANK];
    int64_t start[ZARR_MAX_RANK], step[ZARR_MAX_RANK];
    int64_t coords[MAX_N * ZARR_MAX_RANK];
};

static void random_array(struct huge *x)
{
    x->ndim =
        rng_chance(&x->rng, 5) ? ZARR_MAX_RANK : (int32_t)(1 + rng_below(&x->rng, 4));
    for (int32_t d = 0; d < x->ndim; d++) {
        x->shape[d] = random_length(&x->rng);
        x->edge[d] = rng_chance(&x->rng, 10) ? 1 : random_length(&x->rng);
    }
    assert_int_equal(
        zr_grid_init_regular(&x->grid, x->ndim, x->shape, x->edge, "chunk_shape", NULL),
        ZARR_OK);
}

/* A few items of one dimension, spread over it or close together. */
static void random_slice(struct huge *x, int32_t d, uint64_t most, zarr_dim_selection *to)
{
    int64_t len = (int64_t)x->shape[d];
    uint64_t n = 1 + rng_below(&x->rng, most);
    uint64_t widest;

    n = ZR_MIN(n, x->shape[d]);
    widest = n > 1 ? (x->shape[d] - 1) / (n - 1) : 1;
    x->n[d] = n;
    x->step[d] = (int64_t)(1 + rng_below(&x->rng, rng_chance(&x->rng, 50) ? widest : 1));
    x->start[d] = len - 1 - (int64_t)(n - 1) * x->step[d];
    if (rng_chance(&x->rng, 60))
        x->start[d] = (int64_t)rng_below(&x->rng, (uint64_t)x->start[d] + 1);
    if (rng_chance(&x->rng, 40)) {
        x->start[d] += (int64_t)(n - 1) * x->step[d];
        x->step[d] = -x->step[d];
    }
    *to = (zarr_dim_selection){
        .kind = ZARR_DIM_SLICE, .start = x->start[d], .step = x->step[d]};
    if (x->step[d] > 0) /* one step behind the last, if a number can hold it */
        to->stop = x->start[d] + (int64_t)(n - 1) * x->step[d] + 1;
    else
        to->stop = x->start[d] + (int64_t)(n - 1) * x->step[d] - 1;
    if (to->stop == -1)
        to->stop = ZARR_SLICE_DEFAULT;
}

static void select_slices(struct huge *x)
{
    zarr_dim_selection dims[ZARR_MAX_RANK];
    uint64_t most = MAX_N;

    for (int32_t d = 0; d < x->ndim; d++) {
        random_slice(x, d, most, &dims[d]);
        most = ZR_MAX(most / x->n[d], 1);
    }
    assert_int_equal(zarr_selection_dims(&x->sel, x->ndim, x->shape, x->ndim, dims, NULL),
                     ZARR_OK);
    for (int32_t d = 0; d < x->ndim; d++)
        assert_int_equal(zarr_selection_shape(x->sel)[d], x->n[d]);
}

static void check_slice_piece(const struct huge *x, const struct zr_projection *q,
                              int32_t d)
{
    const struct zr_piece *piece = &q->dim[d];

    assert_null(piece->c_list);
    assert_true(q->origin[d] == q->chunk[d] * x->edge[d]);
    for (uint64_t i = 0; i < piece->n; i++) {
        uint64_t c = piece->c0 + i * (uint64_t)piece->c_step;
        uint64_t r = piece->r0 + i * (uint64_t)piece->r_step;
        assert_true(r < x->n[d] && c < q->valid[d]);
        assert_true((wide)x->start[d] + (wide)r * x->step[d] == (wide)q->origin[d] + c);
    }
}

static void check_slices(struct huge *x)
{
    struct zr_projector *p = NULL;
    struct zr_projection q;
    uint64_t n = 0, items = 0;

    assert_int_equal(zr_project_open(&p, NULL, &x->grid, x->sel, NULL), ZARR_OK);
    while (zr_project_next(p, &q)) {
        for (int32_t d = 0; d < x->ndim; d++)
            check_slice_piece(x, &q, d);
        items += q.n_items;
        n++;
    }
    assert_int_equal(items, zarr_selection_n_items(x->sel));
    assert_int_equal(n, zr_project_count(p));
    zr_project_free(p);
}

static void select_points(struct huge *x)
{
    uint64_t n = 1 + rng_below(&x->rng, MAX_N);

    x->n[0] = n;
    for (uint64_t i = 0; i < n; i++)
        for (int32_t d = 0; d < x->ndim; d++)
            x->coords[i * (uint64_t)x->ndim + (uint64_t)d] = (int64_t)rng_below(
                &x->rng, rng_chance(&x->rng, 50) ? ZR_MIN(3, x->shape[d]) : x->shape[d]);
    assert_int_equal(
        zarr_selection_points(&x->sel, x->ndim, x->shape, n, x->coords, 0, NULL, NULL),
        ZARR_OK);
}

static void check_tuple(const struct huge *x, const struct zr_projection *q,
                        const uint64_t *c, uint64_t r)
{
    for (int32_t d = 0; d < x->ndim; d++) {
        assert_true(c[d] < q->valid[d]);
        assert_true(q->origin[d] + c[d] ==
                    (uint64_t)x->coords[r * (uint64_t)x->ndim + (uint64_t)d]);
    }
}

static void check_points(struct huge *x)
{
    struct zr_projector *p = NULL;
    struct zr_projection q;
    uint64_t last[ZARR_MAX_RANK];
    bool seen[MAX_N] = {false};
    uint64_t n = 0, items = 0;

    assert_int_equal(zr_project_open(&p, NULL, &x->grid, x->sel, NULL), ZARR_OK);
    while (zr_project_next(p, &q)) {
        int32_t d = 0;
        for (; n > 0 && d < x->ndim && q.chunk[d] == last[d]; d++)
            ;
        assert_true(n == 0 || (d < x->ndim && q.chunk[d] > last[d]));
        memcpy(last, q.chunk, sizeof last);
        for (uint64_t i = 0; q.kind == ZR_PROJ_POINTS && i < q.n_points; i++) {
            assert_false(seen[q.r_points[i]]);
            seen[q.r_points[i]] = true;
            check_tuple(x, &q, q.c_points + i * (uint64_t)x->ndim, q.r_points[i]);
        }
        items += q.n_items;
        n++;
    }
    assert_int_equal(items, x->n[0]);
    assert_int_equal(n, zr_project_count(p));
    zr_project_free(p);
}

static void test_random_arrays(void **state)
{
    static struct huge x;
    uint64_t seed = test_number("ZR_SEED", 4711);
    uint64_t n = test_number("ZR_CASES", 20000);

    (void)state;
    for (uint64_t i = 0; i < n; i++) {
        running = seed + i;
        x = (struct huge){.rng.state = running};
        random_array(&x);
        if (rng_chance(&x.rng, 70)) {
            select_slices(&x);
            check_slices(&x);
        } else {
            select_points(&x);
            check_points(&x);
        }
        zarr_selection_free(x.sel);
    }
    running = 0;
    printf("%" PRIu64 " cases from seed %" PRIu64 "\n", n, seed);
}

static void test_slice_of_three_in_a_grid_of_2_to_the_40(void **state)
{
    const uint64_t shape[] = {(uint64_t)1 << 40}, edge[] = {1};
    const zarr_dim_selection dim = {
        .kind = ZARR_DIM_SLICE, .start = -3, .stop = ZARR_SLICE_DEFAULT};
    struct zr_projector *p = NULL;
    struct zr_projection q;
    zarr_selection *sel = NULL;
    struct zr_grid grid;

    (void)state;
    assert_int_equal(zr_grid_init_regular(&grid, 1, shape, edge, "chunk_shape", NULL),
                     ZARR_OK);
    assert_int_equal(zarr_selection_dims(&sel, 1, shape, 1, &dim, NULL), ZARR_OK);
    assert_int_equal(zr_project_open(&p, NULL, &grid, sel, NULL), ZARR_OK);
    assert_int_equal(zr_project_count(p), 3);
    for (uint64_t i = 0; i < 3; i++) {
        assert_true(zr_project_next(p, &q));
        assert_int_equal(q.chunk[0], shape[0] - 3 + i);
        assert_true(q.whole);
        assert_int_equal(q.dim[0].r0, i);
    }
    assert_false(zr_project_next(p, &q));
    zr_project_free(p);
    zarr_selection_free(sel);
}

static void test_all_of_an_endless_array(void **state)
{
    const uint64_t shape[] = {(uint64_t)1 << 62, (uint64_t)1 << 62, INT64_MAX};
    const uint64_t edge[] = {2, 3, 5};
    struct zr_projector *p = NULL;
    struct zr_projection q;
    zarr_selection *sel = NULL;
    struct zr_grid grid;
    uint64_t n = 0;

    (void)state;
    assert_int_equal(zr_grid_init_regular(&grid, 3, shape, edge, "chunk_shape", NULL),
                     ZARR_OK);
    assert_true(zr_grid_n_chunks_all(&grid) == UINT64_MAX);
    assert_int_equal(zarr_selection_dims(&sel, 3, shape, 0, NULL, NULL), ZARR_OK);
    assert_true(zarr_selection_n_items(sel) == UINT64_MAX);
    assert_int_equal(zr_project_open(&p, NULL, &grid, sel, NULL), ZARR_OK);
    assert_true(zr_project_count(p) == UINT64_MAX);
    assert_true(zr_project_count_box(&n, &grid, sel) && n == UINT64_MAX);
    for (uint64_t i = 0; i < 100000; i++) {
        assert_true(zr_project_next(p, &q));
        assert_int_equal(q.chunk[2], i);
        assert_true(q.whole && q.n_items == 30 && q.dim[2].r0 == i * 5);
    }
    zr_project_free(p);
    zarr_selection_free(sel);
}

/* Chunks larger than the array and as large as possible, and the largest coordinate. */
static void test_edges_of_the_number_range(void **state)
{
    const uint64_t shape[] = {INT64_MAX, INT64_MAX, 3};
    const uint64_t edge[] = {INT64_MAX, INT64_MAX - 1, INT64_MAX};
    const uint64_t inner[] = {(uint64_t)1 << 60, INT64_MAX - 1, 1};
    const zarr_dim_selection dims[] = {{.kind = ZARR_DIM_INDEX, .start = -1},
                                       {.kind = ZARR_DIM_SLICE,
                                        .start = -1,
                                        .stop = ZARR_SLICE_DEFAULT,
                                        .step = INT64_MIN + 1},
                                       {.kind = ZARR_DIM_ALL}};
    struct zr_projector *p = NULL, *in = NULL;
    struct zr_projection q, qi;
    zarr_selection *sel = NULL;
    struct zr_grid grid;

    (void)state;
    assert_int_equal(zr_grid_init_regular(&grid, 3, shape, edge, "chunk_shape", NULL),
                     ZARR_OK);
    assert_int_equal(zarr_selection_dims(&sel, 3, shape, 3, dims, NULL), ZARR_OK);
    assert_int_equal(zarr_selection_n_items(sel), 3);
    assert_int_equal(zr_project_open(&p, NULL, &grid, sel, NULL), ZARR_OK);
    assert_true(zr_project_next(p, &q));
    assert_int_equal(q.chunk[1], 1);
    assert_int_equal(q.dim[1].c0, 0);
    assert_int_equal(q.valid[1], 1);
    assert_true(q.dim[0].c0 == (uint64_t)INT64_MAX - 1 && q.dim[2].n == 3);
    assert_int_equal(zr_project_open_inner(&in, NULL, &q, inner, NULL, NULL, NULL),
                     ZARR_OK);
    assert_int_equal(zr_project_count(in), 3);
    assert_true(zr_project_next(in, &qi));
    assert_int_equal(qi.chunk[0], 7);
    assert_true(qi.dim[0].c0 == ((uint64_t)1 << 60) - 2 &&
                qi.valid[0] == qi.dim[0].c0 + 1);
    assert_false(qi.whole);
    assert_false(zr_project_next(p, &q));
    zr_project_free(in);
    zr_project_free(p);
    zarr_selection_free(sel);
}

/* 2^60 chunks on an irregular grid are too many to list. Walking counts the steps. */
static void test_count_on_an_irregular_grid(void **state)
{
    const uint64_t shape[] = {14};
    const zarr_dim_selection dim = {.kind = ZARR_DIM_SLICE,
                                    .start = 1,
                                    .stop = ZARR_SLICE_DEFAULT,
                                    .step = 4}; /* 1 5 9 13 */
    struct zr_grid_registry registry;
    struct zr_projector *p = NULL;
    zarr_selection *sel = NULL;
    struct zr_grid grid;

    (void)state;
    registry_make(&registry);
    assert_int_equal(grid_make(&grid, &registry, 1, shape, "test.rect",
                               "{\"edges\":[[1,5,1,1,1,5,9]]}", NULL),
                     ZARR_OK);
    assert_int_equal(zr_grid_n_chunks(&grid, 0), 6);
    assert_int_equal(zarr_selection_dims(&sel, 1, shape, 1, &dim, NULL), ZARR_OK);
    assert_int_equal(zr_project_open(&p, NULL, &grid, sel, NULL), ZARR_OK);
    assert_int_equal(zr_project_count(p), 2);
    zr_project_free(p);
    zarr_selection_free(sel);
    zr_grid_deinit(&grid);
    zr_grid_registry_deinit(&registry);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_random_arrays, tell_seed),
        cmocka_unit_test(test_slice_of_three_in_a_grid_of_2_to_the_40),
        cmocka_unit_test(test_all_of_an_endless_array),
        cmocka_unit_test(test_edges_of_the_number_range),
        cmocka_unit_test(test_count_on_an_irregular_grid),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
