/* Introduces: zarr_array_read_submit(), zarr_request_wait(), zarr_request_progress()
 *
 * Starts a read and shows its progress while it runs. Usage: async_read DIRECTORY
 */
#include <stdio.h>
#include <stdlib.h>

#include <zarrc/zarrc.h>

#define N (4 << 20)

int main(int argc, char **argv)
{
    const uint64_t shape[1] = {N}, chunk[1] = {N / 64};
    const int64_t data_shape[1] = {N};
    const zarr_store_options create = {.struct_size = sizeof create,
                                       .flags = ZARR_STORE_CREATE};
    const zarr_array_spec spec = {.struct_size = sizeof spec,
                                  .ndim = 1,
                                  .shape = shape,
                                  .chunk_shape = chunk,
                                  .data_type = "int32"};
    zarr_context *ctx = NULL;
    zarr_store *store = NULL;
    zarr_array *array = NULL;
    zarr_request *request = NULL;
    zarr_stats stats = {.struct_size = sizeof stats};
    zarr_tensor tensor;
    zarr_error err = {0};
    int32_t *data = malloc(N * sizeof *data);
    int done = 0;

    if (!data)
        return 1;
    for (int i = 0; i < N; i++)
        data[i] = i;
    zarr_tensor_host(&tensor, "int32", data, N * sizeof *data, 1, data_shape);
    if (zarr_context_create(&ctx, NULL, &err) ||
        zarr_store_open(&store, ctx, argc > 1 ? argv[1] : "example.zarr", &create,
                        &err) ||
        zarr_array_create(&array, store, "a", &spec, NULL, &err) ||
        zarr_array_write(array, NULL, &tensor, NULL, &err) ||
        zarr_array_read_submit(&request, array, NULL, &tensor, NULL, &err))
        done = 1;
    while (!done && zarr_request_wait(request, 1000000, &done, &err) == ZARR_OK) {
        zarr_request_progress(request, &stats);
        fprintf(stderr, "%llu of %llu chunks\n", (unsigned long long)stats.chunks_done,
                (unsigned long long)stats.chunks_total);
    }
    if (err.code != ZARR_OK)
        fprintf(stderr, "%s\n", err.message);
    /* Cancels and waits if it still runs: `data` is free afterwards. */
    zarr_request_free(request);
    zarr_array_free(array);
    zarr_store_free(store);
    zarr_context_free(ctx);
    done = err.code != ZARR_OK || data[N - 1] != N - 1;
    free(data);
    return done;
}
