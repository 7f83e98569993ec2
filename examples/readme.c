/* Introduces: the sample of README.md */
#include <stdio.h>
#include <zarrc/zarrc.h>

int main(void)
{
    float data[2][3] = {{1, 2, 3}, {4, 5, 6}}, last[2];
    zarr_store_options opts = {.struct_size = sizeof opts, .flags = ZARR_STORE_CREATE};
    zarr_array_spec spec = {.struct_size = sizeof spec,
                            .flags = ZARR_SPEC_OVERWRITE,
                            .data_type = "float32",
                            .ndim = 2,
                            .shape = (uint64_t[]){2, 3}};
    zarr_context *ctx = NULL;
    zarr_store *store = NULL;
    zarr_array *array = NULL;
    zarr_selection *column = NULL;
    zarr_tensor from, to;
    zarr_error err = {0};

    zarr_tensor_host(&from, data, sizeof data, 2, (int64_t[]){2, 3});
    zarr_tensor_host(&to, last, sizeof last, 1, (int64_t[]){2});
    if (zarr_context_create(&ctx, NULL, &err) ||
        zarr_store_open(&store, ctx, "sample.zarr", &opts, &err) ||
        zarr_array_create(&array, store, "temp", &spec, NULL, &err) ||
        zarr_array_write(array, NULL, &from, NULL, &err) ||
        zarr_selection_parse(&column, 2, spec.shape, ":, -1", &err) ||
        zarr_array_read(array, column, &to, NULL, &err))
        return fprintf(stderr, "%s\n", err.message), 1;
    printf("%g %g\n", last[0], last[1]); /* 3 6 */
    zarr_selection_free(column);
    zarr_array_free(array);
    zarr_store_free(store);
    zarr_context_free(ctx);
    return 0;
}
