/*
 * unit/select/bench_select.c - measures projections and prints the times. Not a test:
 * build the target bench_select and run it on a quiet machine.
 */
#include "select/select.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    N_POINTS = 1000000
};

static void show(const char *what, uint64_t started, uint64_t n)
{
    printf("%-44s %10.1f ns\n", what, (double)(zr_now_ns() - started) / (double)n);
}

static void check(zarr_status st)
{
    if (st != ZARR_OK)
        abort();
}

static void bench_steps(int32_t ndim, int64_t step)
{
    static struct zr_projection q;
    uint64_t shape[ZARR_MAX_RANK], edge[ZARR_MAX_RANK], started, n = 0;
    zarr_dim_selection dims[ZARR_MAX_RANK];
    zarr_selection *s = NULL;
    struct zr_projector *p = NULL;
    struct zr_grid grid;
    char what[80];

    for (int32_t d = 0; d < ndim; d++) {
        shape[d] = (uint64_t)1 << 40;
        edge[d] = 64;
        dims[d] = (zarr_dim_selection){.kind = ZARR_DIM_SLICE,
                                       .start = ZARR_SLICE_DEFAULT,
                                       .stop = ZARR_SLICE_DEFAULT,
                                       .step = step};
    }
    check(zarr_selection_dims(&s, ndim, shape, ndim, dims, NULL));
    check(zr_grid_init_regular(&grid, ndim, shape, edge, "chunk_shape", NULL));
    check(zr_project_open(&p, NULL, &grid, s, NULL));
    started = zr_now_ns();
    while (n < 2000000 && zr_project_next(p, &q))
        n++;
    (void)snprintf(what, sizeof what, "next, rank %d, step %d", (int)ndim, (int)step);
    show(what, started, n);
    zr_project_free(p);
    zarr_selection_free(s);
}

static void bench_inner(void)
{
    static struct zr_projection q, qi;
    const uint64_t shape[] = {1 << 20, 1 << 20, 1 << 20}, edge[] = {64, 64, 64};
    const uint64_t inner[] = {32, 32, 32};
    struct zr_projector *p = NULL, *in = NULL;
    zarr_selection *s = NULL;
    struct zr_grid grid;
    uint64_t started, n = 0;

    check(zarr_selection_dims(&s, 3, shape, 0, NULL, NULL));
    check(zr_grid_init_regular(&grid, 3, shape, edge, "chunk_shape", NULL));
    check(zr_project_open(&p, NULL, &grid, s, NULL));
    check(zr_project_next(p, &q) ? ZARR_OK : ZARR_ERR_INTERNAL);
    check(zr_project_open_inner(&in, NULL, &q, inner, NULL, NULL, NULL));
    started = zr_now_ns();
    while (n < 200000 && zr_project_next(p, &q)) {
        check(zr_project_reopen_inner(in, &q, NULL, NULL));
        while (zr_project_next(in, &qi))
            ;
        n++;
    }
    show("shard of 2 x 2 x 2 reopened and walked", started, n);
    zr_project_free(in);
    zr_project_free(p);
    zarr_selection_free(s);
}

static void bench_open(void)
{
    const uint64_t shape[] = {1 << 20, 1 << 20, 1 << 20}, edge[] = {64, 64, 64};
    const uint64_t start[] = {5, 6, 7}, count[] = {64, 1, 64};
    zarr_selection *s = NULL;
    struct zr_projector *p = NULL;
    struct zr_grid grid;
    uint64_t started = zr_now_ns();

    check(zr_grid_init_regular(&grid, 3, shape, edge, "chunk_shape", NULL));
    for (int i = 0; i < 100000; i++) {
        check(zarr_selection_box(&s, 3, shape, start, count, NULL));
        check(zr_project_open(&p, NULL, &grid, s, NULL));
        zr_project_free(p);
        zarr_selection_free(s);
    }
    show("box made, opened and freed, rank 3", started, 100000);
}

static void bench_points(void)
{
    const uint64_t shape[] = {100000, 100000}, edge[] = {1000, 1000};
    int64_t *coords = zr_calloc(NULL, (size_t)N_POINTS * 2, sizeof *coords);
    zarr_selection *s = NULL;
    struct zr_projector *p = NULL;
    struct zr_grid grid;
    uint64_t started;

    if (!coords)
        abort();
    for (size_t i = 0; i < (size_t)N_POINTS * 2; i++)
        coords[i] = (int64_t)(i * 2654435761 % 100000);
    check(zr_grid_init_regular(&grid, 2, shape, edge, "chunk_shape", NULL));
    started = zr_now_ns();
    check(zarr_selection_points(&s, 2, shape, N_POINTS, coords, 0, NULL, NULL));
    show("points checked, each", started, N_POINTS);
    started = zr_now_ns();
    check(zr_project_open(&p, NULL, &grid, s, NULL));
    show("points sorted into 10000 chunks, each", started, N_POINTS);
    zr_project_free(p);
    zarr_selection_free(s);
    zr_free(NULL, coords);
}

static void bench_key(void)
{
    const struct zr_key_encoding k = {.vt = &zr_key_default, .self = NULL};
    struct zr_key_encoding with = k;
    uint64_t chunk[] = {12, 3456, 78}, started;
    struct zr_str text;

    check(zr_key_default.parse(&with.self, "{}", NULL));
    zr_str_init(&text, NULL);
    started = zr_now_ns();
    for (int i = 0; i < 1000000; i++) {
        zr_str_clear(&text);
        chunk[2] = (uint64_t)i;
        zr_key_encoding_key(&with, 3, chunk, &text);
    }
    show("chunk key, rank 3", started, 1000000);
    zr_str_deinit(&text);
}

int main(void)
{
    bench_steps(1, 1);
    bench_steps(3, 1);
    bench_steps(3, 7);
    bench_steps(3, 100);
    bench_steps(3, -1);
    bench_steps(8, 1);
    bench_steps(64, 1);
    bench_inner();
    bench_open();
    bench_points();
    bench_key();
    return 0;
}
