/*
 * bench/micro/array_read.c - how long the C library takes to read an array: what
 * bench/python compares the Python package with. A program, not a test:
 *
 *   array_read <path> <edge> <rounds> <fresh> [cpu]
 *
 * Reads the box of `edge` elements along each dimension that begins at 0, or all elements
 * if `edge` is 0. `fresh` 1: into new memory each time. Prints the median in seconds;
 * with "cpu" in seconds of CPU, of all threads.
 */
#include <zarrc/zarrc.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static zarr_error err;
static clockid_t which = CLOCK_MONOTONIC;

static void must(zarr_status status)
{
    if (status == ZARR_OK)
        return;
    fprintf(stderr, "array_read: %s\n", err.message);
    exit(1);
}

static double now(void)
{
    struct timespec t;

    clock_gettime(which, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void *memory(size_t bytes)
{
    void *p = malloc(bytes);

    if (!p)
        exit(1);
    memset(p, 0, bytes);
    return p;
}

/* One read; `edge` 0: everything. */
static double read_once(zarr_array *a, uint64_t edge, void **buffer, size_t bytes,
                        int is_fresh)
{
    const int32_t ndim = zarr_array_ndim(a);
    const uint64_t *all = zarr_array_shape(a);
    uint64_t origin[ZARR_MAX_RANK] = {0}, count[ZARR_MAX_RANK];
    uint64_t shape[ZARR_MAX_RANK];
    zarr_selection *sel = NULL;
    zarr_tensor to;
    double began = now();

    for (int32_t d = 0; d < ndim; d++) {
        count[d] = edge ? edge : all[d];
        shape[d] = count[d];
    }
    if (is_fresh) {
        free(*buffer);
        *buffer = malloc(bytes);
    }
    if (edge)
        must(zarr_selection_box(&sel, ndim, all, origin, count, &err));
    zarr_tensor_host(&to, NULL, *buffer, bytes, ndim, shape);
    must(zarr_array_read(a, sel, &to, NULL, &err));
    zarr_selection_free(sel);
    return now() - began;
}

int main(int argc, char **argv)
{
    const uint64_t edge = argc >= 5 ? strtoull(argv[2], NULL, 10) : 0;
    const size_t rounds = argc >= 5 ? strtoul(argv[3], NULL, 10) : 0;
    zarr_context *ctx;
    zarr_store *store;
    zarr_array *a;
    size_t bytes;
    double *seconds;
    void *buffer;

    if (rounds == 0) {
        fputs("usage: array_read <path> <edge> <rounds> <fresh> [cpu]\n", stderr);
        return 2;
    }
    if (argc > 5)
        which = CLOCK_PROCESS_CPUTIME_ID;
    must(zarr_context_create(&ctx, NULL, &err));
    must(zarr_store_open(&store, ctx, argv[1], NULL, &err));
    must(zarr_array_open(&a, store, "", NULL, &err));
    bytes = zarr_dtype_item_bytes(zarr_array_dtype(a));
    for (int32_t d = 0; d < zarr_array_ndim(a); d++)
        bytes *= edge ? edge : zarr_array_shape(a)[d];
    buffer = memory(bytes);
    seconds = memory(rounds * sizeof *seconds);
    for (size_t i = 0; i < rounds; i++)
        seconds[i] = read_once(a, edge, &buffer, bytes, argv[4][0] == '1');
    qsort(seconds, rounds, sizeof *seconds, compare_doubles);
    printf("%.9f\n", seconds[rounds / 2]);
    free(seconds);
    free(buffer);
    zarr_array_free(a);
    zarr_store_free(store);
    zarr_context_free(ctx);
    return 0;
}
