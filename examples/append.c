/* Introduces: zarr_array_append(), zarr_array_resize(), zarr_array_refresh()
 *
 * A time series that grows: appends rows to an array, reads it through a second handle,
 * and shortens it. Usage: append DIRECTORY
 */
#include <stdio.h>

#include <zarrc/zarrc.h>

static zarr_status append_rows(zarr_array *array, int first, int n, zarr_error *err)
{
    double rows[4][2];
    zarr_tensor tensor;

    for (int i = 0; i < n; i++) {
        rows[i][0] = first + i;
        rows[i][1] = (first + i) * 0.5;
    }
    zarr_tensor_host(&tensor, "float64", rows, sizeof rows, 2, (int64_t[]){n, 2});
    return zarr_array_append(array, 0, &tensor, NULL, NULL, err); /* along dimension 0 */
}

static void show(const char *what, const zarr_array *array)
{
    printf("%s: %d x %d\n", what, (int)zarr_array_shape(array)[0],
           (int)zarr_array_shape(array)[1]);
}

int main(int argc, char **argv)
{
    const zarr_store_options create = {.struct_size = sizeof create,
                                       .flags = ZARR_STORE_CREATE};
    const zarr_array_spec spec = {.struct_size = sizeof spec,
                                  .data_type = "float64",
                                  .ndim = 2,
                                  .shape = (uint64_t[]){0, 2}, /* no rows yet */
                                  .chunk_shape = (uint64_t[]){1000, 2}};
    zarr_context *ctx = NULL;
    zarr_store *store = NULL;
    zarr_array *array = NULL, *other = NULL;
    zarr_error err = {0};

    if (zarr_context_create(&ctx, NULL, &err) ||
        zarr_store_open(&store, ctx, argc > 1 ? argv[1] : "example.zarr", &create,
                        &err) ||
        zarr_array_create(&array, store, "series", &spec, NULL, &err) ||
        zarr_array_open(&other, store, "series", NULL, &err) ||
        append_rows(array, 0, 4, &err) || append_rows(array, 4, 3, &err))
        return fprintf(stderr, "%s\n", err.message), 1;
    show("appended", array);
    show("another handle", other); /* as it was opened */
    if (zarr_array_refresh(other, NULL, &err) ||
        zarr_array_resize(array, (uint64_t[]){5, 2}, NULL, &err)) /* deletes two rows */
        return fprintf(stderr, "%s\n", err.message), 1;
    show("refreshed", other);
    show("cut", array);
    zarr_array_free(array), zarr_array_free(other);
    zarr_store_free(store), zarr_context_free(ctx);
    return 0;
}
