/*
 * unit/pipe/many_test.h - several selections in one request, for tests: parts with random
 * selections, parts that are boxes, and arrays to read them from.
 */
#ifndef ZR_MANY_TEST_H
#define ZR_MANY_TEST_H

#include "pipe_test.h"

enum {
    ROWS = 61,
    COLS = 47,
    N = ROWS * COLS,
    MOST = 12 /* parts */
};
static const uint64_t shape[2] = {ROWS, COLS}, zero[2];
static int32_t data[N];

static const struct kind {
    const char *codecs;
    uint64_t chunk[2];
} kinds[] = {
    {"[" BYTES "]", {8, 10}},
    {"[" BYTES "," GZIP "]", {16, 16}},
    {"[" BIG "," GZIP "," CRC "]", {9, 47}},
    {"[" TURN "," BYTES "]", {8, 10}},
    {"[" SHARD("[4,5]", BYTES, "end") "]", {16, 20}},
    {"[" SHARD("[4,5]", BIG "," GZIP, "start") "," GZIP "]", {16, 10}},
    {"[" TURN "," SHARD("[5,4]", TURN "," BYTES, "end") "]", {8, 10}},
    {"[" SHARD("[8,10]", TURN "," SHARD("[5,2]", BYTES "," GZIP, "end"), "end") "]",
     {16, 20}},
};
#define N_KINDS (sizeof kinds / sizeof kinds[0])

/* ---- parts ------------------------------------------------------------------- */

struct part {
    zarr_selection *sel;
    zarr_tensor t;
    uint64_t shape[2];
    int64_t stride[2];
    int32_t *block; /* room for the strides */
    int32_t *first;
    zarr_error err;
};
static struct part part[MOST];
static zarr_io_part ask[MOST];

static inline zarr_selection *random_selection(unsigned *seed)
{
    static const char *const texts[] = {
        "::3,1",           "5:50:7,::-2", "[1,1,7,60],[28,0,3]",
        "[30,2,9],4:20:5", "...",         "40:40,:"};
    zarr_selection *sel = NULL;
    const unsigned what = (unsigned)rand_r(seed) % 10;

    if (what < 2) {
        assert_ok(zarr_selection_parse(
            &sel, 2, shape, texts[(size_t)rand_r(seed) % ZR_COUNT(texts)], &terr));
    } else if (what == 2) {
        int64_t at[20];
        const uint64_t n = 10;

        for (int i = 0; i < 20; i++)
            at[i] = rand_r(seed) % (i % 2 ? COLS : ROWS);
        assert_ok(zarr_selection_points(&sel, 2, shape, 10, at, 1, &n, &terr));
    } else {
        uint64_t at[2], n[2];

        for (int d = 0; d < 2; d++) {
            n[d] = 1 + (uint64_t)rand_r(seed) % 30;
            at[d] = (uint64_t)rand_r(seed) % (shape[d] - n[d] + 1);
        }
        assert_ok(zarr_selection_box(&sel, 2, shape, at, n, &terr));
    }
    return sel;
}

/* A tensor for a selection: in C or Fortran order, or backward. */
static inline void part_tensor(struct part *p, unsigned *seed, bool fill)
{
    const int32_t ndim = zarr_selection_ndim(p->sel);
    const uint64_t n = zarr_selection_n_items(p->sel);
    const int form = rand_r(seed) % 3;
    int64_t step = (int64_t)sizeof *p->block;

    p->block = calloc(n + 1, sizeof *p->block);
    p->first = p->block;
    for (uint64_t i = 0; i < n && fill; i++)
        p->block[i] = rand_r(seed);
    for (int32_t k = 0; k < ndim; k++) {
        const int32_t d = form == 1 ? k : ndim - 1 - k;

        p->shape[d] = zarr_selection_shape(p->sel)[d];
        p->stride[d] = form == 2 ? -step : step;
        step *= (int64_t)p->shape[d];
    }
    if (form == 2 && n > 0)
        p->first += n - 1;
    p->t = (zarr_tensor)ZARR_TENSOR_INIT;
    p->t.device_type = ZARR_DEVICE_CPU;
    p->t.ndim = ndim;
    p->t.data = p->first;
    p->t.shape = p->shape;
    p->t.strides = p->stride;
}

static inline void make_parts(int n, unsigned *seed, bool fill)
{
    for (int i = 0; i < n; i++) {
        part[i].sel = random_selection(seed);
        part_tensor(&part[i], seed, fill);
        part[i].err = (zarr_error)ZARR_ERROR_INIT;
        ask[i] = (zarr_io_part){.selection = part[i].sel,
                                .tensor = &part[i].t,
                                .error = &part[i].err,
                                .status = ZARR_ERR_INTERNAL};
    }
}

static inline void free_parts(int n)
{
    for (int i = 0; i < n; i++) {
        zarr_selection_free(part[i].sel);
        free(part[i].block);
    }
}

/* The elements of a part are those that a read of its own gives. */
static inline void check_part(zarr_array *a, struct part *p)
{
    const uint64_t n = zarr_selection_n_items(p->sel);
    int32_t *one = calloc(n + 1, sizeof *one);
    zarr_tensor t = p->t;

    t.data = one + (p->first - p->block);
    assert_ok(zarr_array_read(a, p->sel, &t, NULL, &terr));
    assert_memory_equal(one, p->block, n * sizeof *one);
    free(one);
}

static inline zarr_array *make_filled(struct pw *w, const char *path, size_t kind)
{
    zarr_array *a =
        pw_array(w->store, path, kinds[kind].codecs, shape, kinds[kind].chunk);
    const uint64_t at[2] = {3, 2}, n[2] = {ROWS - 8, COLS - 2};

    for (int i = 0; i < N; i++)
        data[i] = i * 11 + 1;
    assert_ok(pw_box(a, at, n, data, NULL, true)); /* some chunks are missing */
    return a;
}

/* ---- boxes -------------------------------------------------------------------- */

static int32_t crop[MOST][N];

/* Part i is the box at `at` of n[0] x n[1] elements. */
static inline void box_part(int i, uint64_t row, uint64_t col, uint64_t rows,
                            uint64_t cols)
{
    const uint64_t at[2] = {row, col}, n[2] = {rows, cols};
    struct part *p = &part[i];

    assert_ok(zarr_selection_box(&p->sel, 2, shape, at, n, &terr));
    p->block = NULL;
    p->shape[0] = rows;
    p->shape[1] = cols;
    zarr_tensor_host(&p->t, NULL, crop[i], sizeof crop[i], 2, p->shape);
    p->err = (zarr_error)ZARR_ERROR_INIT;
    ask[i] = (zarr_io_part){.selection = p->sel,
                            .tensor = &p->t,
                            .error = &p->err,
                            .status = ZARR_ERR_INTERNAL};
}

static inline void check_box(int i, uint64_t row, uint64_t col, uint64_t rows,
                             uint64_t cols)
{
    for (uint64_t r = 0; r < rows; r++)
        for (uint64_t c = 0; c < cols; c++)
            assert_int_equal(crop[i][r * cols + c], data[(row + r) * COLS + col + c]);
}

static inline zarr_array *full(struct pw *w, const char *path, size_t kind)
{
    zarr_array *a =
        pw_array(w->store, path, kinds[kind].codecs, shape, kinds[kind].chunk);

    for (int i = 0; i < N; i++)
        data[i] = i * 11 + 1;
    assert_ok(pw_box(a, zero, shape, data, NULL, true));
    return a;
}

#endif
