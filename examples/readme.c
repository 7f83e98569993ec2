/* Introduces: the sample of README.md */
#include <stdio.h>
#include <zarrc/zarrc.h>

int main(void)
{
    float data[2][3] = {{1, 2, 3}, {4, 5, 6}}, last[2];
    const uint64_t shape[2] = {2, 3};
    const int64_t all[2] = {2, 3}, rows[1] = {2};
    zarr_store_options opts = ZARR_STORE_OPTIONS_INIT;
    zarr_array_spec spec = ZARR_ARRAY_SPEC_INIT;
    zarr_error err = ZARR_ERROR_INIT;
    zarr_context *ctx = NULL;
    zarr_store *store = NULL;
    zarr_array *array = NULL;
    zarr_selection *column = NULL;
    zarr_tensor from, to;

    opts.flags = ZARR_STORE_CREATE;
    spec.flags = ZARR_SPEC_OVERWRITE;
    spec.data_type = "float32";
    spec.ndim = 2;
    spec.shape = shape;
    zarr_tensor_host(&from, "float32", data, sizeof data, 2, all);
    zarr_tensor_host(&to, "float32", last, sizeof last, 1, rows);
    if (zarr_context_create(&ctx, NULL, &err) ||
        zarr_store_open(&store, ctx, "sample.zarr", &opts, &err) ||
        zarr_array_create(&array, store, "temp", &spec, NULL, &err) ||
        zarr_array_write(array, NULL, &from, NULL, &err) ||
        zarr_selection_parse(&column, 2, shape, ":, -1", &err) ||
        zarr_array_read(array, column, &to, NULL, &err))
        return fprintf(stderr, "%s\n", err.message), 1;
    printf("%g %g\n", last[0], last[1]); /* 3 6 */
    zarr_selection_free(column);
    zarr_array_free(array);
    zarr_store_free(store);
    zarr_context_free(ctx);
    return 0;
}
