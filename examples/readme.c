/* Introduces: the sample of README.md */
#include <stdio.h>
#include <zarrc/zarrc.h>

int main(void)
{
    static float data[64][128], part[2][128];
    const uint64_t shape[] = {64, 128}, chunks[] = {32, 32};
    zarr_store_options opts = {.struct_size = sizeof opts, .flags = ZARR_STORE_CREATE};
    zarr_array_spec spec = {.struct_size = sizeof spec,
                            .ndim = 2,
                            .shape = shape,
                            .chunk_shape = chunks,
                            .data_type = "float32",
                            .flags = ZARR_SPEC_OVERWRITE};
    zarr_context *ctx = NULL;
    zarr_store *store = NULL;
    zarr_array *array = NULL;
    zarr_selection *rows = NULL;
    zarr_tensor from, to;
    zarr_error err = {0};

    data[7][5] = 3.5f;
    zarr_tensor_host(&from, data, sizeof data, 2, (const int64_t[]){64, 128});
    zarr_tensor_host(&to, part, sizeof part, 2, (const int64_t[]){2, 128});
    if (zarr_context_create(&ctx, NULL, &err) ||
        zarr_store_open(&store, ctx, "sample.zarr", &opts, &err) ||
        zarr_array_create(&array, store, "temp", &spec, NULL, &err) ||
        zarr_array_write(array, NULL, &from, NULL, &err) ||
        zarr_selection_parse(&rows, 2, shape, "6:8", &err) ||
        zarr_array_read(array, rows, &to, NULL, &err))
        fprintf(stderr, "%s\n", err.message);
    printf("%g\n", part[1][5]);
    zarr_selection_free(rows);
    zarr_array_free(array);
    zarr_store_free(store);
    zarr_context_free(ctx);
    return part[1][5] != 3.5f;
}
