/* Introduces: zarr_array_read_submit(), zarr_request_wait(), zarr_request_progress()
 *
 * Reads an array in the background, and shows how far the read is.
 */
#include <stdio.h>

#include <zarrc/zarrc.h>

#define N (4 << 20)

static int32_t data[N];

static zarr_status read_in_background(const char *where, zarr_error *err)
{
    const uint64_t shape[1] = {N};
    zarr_array *a = NULL;
    zarr_request *request = NULL;
    zarr_stats so_far = ZARR_STATS_INIT;
    zarr_tensor to;
    int done = 0;
    zarr_status st = zarr_open_array(&a, NULL, where, "r", err);

    zarr_tensor_host(&to, ZARR_INT32, data, sizeof data, 1, shape);
    if (st == ZARR_OK)
        st = zarr_array_read_submit(&request, a, NULL, &to, NULL, err);
    while (st == ZARR_OK && !done) {
        st = zarr_request_wait(request, 1000000, &done, err); /* a millisecond at most */
        zarr_request_progress(request, &so_far);
        fprintf(stderr, "%d chunks\n", (int)so_far.chunks_done);
    }
    zarr_request_free(request); /* cancels it if it still runs: `data` is free now */
    zarr_array_free(a);
    return st;
}

int main(void)
{
    const uint64_t shape[1] = {N};
    zarr_array *a = NULL;
    zarr_error err = ZARR_ERROR_INIT;

    for (int i = 0; i < N; i++)
        data[i] = i;
    if (zarr_create_array(&a, NULL, "run.zarr/a", "w", ZARR_INT32, 1, shape, &err) ||
        zarr_array_write_box(a, NULL, NULL, ZARR_INT32, data, sizeof data, &err))
        return fprintf(stderr, "%s\n", err.message), 1;
    zarr_array_free(a);
    data[N - 1] = 0;
    if (read_in_background("run.zarr/a", &err) != ZARR_OK)
        return fprintf(stderr, "%s\n", err.message), 1;
    return data[N - 1] != N - 1;
}
