/* Introduces: zarr_selection_dims(), zarr_selection_points(), zarr_selection_mask()
 *
 * Reads elements of an array that lists and slices, points, and a mask select.
 */
#include <stdio.h>

#include <zarrc/zarrc.h>

static zarr_status show(zarr_array *array, const zarr_selection *sel, zarr_error *err)
{
    const int32_t ndim = zarr_selection_ndim(sel);
    uint64_t shape[2] = {0};
    int32_t data[12];
    zarr_tensor tensor;
    zarr_status st;

    for (int32_t d = 0; d < ndim; d++)
        shape[d] = zarr_selection_shape(sel)[d];
    zarr_tensor_host(&tensor, "int32", data, sizeof data, ndim, shape);
    st = zarr_array_read(array, sel, &tensor, NULL, err);
    for (uint64_t i = 0; st == ZARR_OK && i < zarr_selection_n_items(sel); i++)
        printf("%02d ", (int)data[i]);
    printf("in %d dimension(s)\n", (int)ndim);
    return st;
}

int main(void)
{
    int32_t data[3][4] = {{0, 1, 2, 3}, {10, 11, 12, 13}, {20, 21, 22, 23}};
    const uint64_t shape[2] = {3, 4};
    zarr_array_spec spec = ZARR_ARRAY_SPEC_INIT;
    const int64_t rows[2] = {2, 0}, points[3][2] = {{0, 0}, {1, 1}, {-1, -1}};
    const zarr_dim_selection dims[2] = {
        /* x.oindex[[2, 0], 1:] in Python */
        {ZARR_DIM_LIST, .list = rows, .n_list = 2},
        {ZARR_DIM_SLICE, .start = 1, .stop = ZARR_SLICE_DEFAULT, .step = 1}};
    const uint8_t mask[12] = {0, 0, 0, 1, 0, 0, 0, 1, 1};
    zarr_context *ctx = NULL;
    zarr_store *store = NULL;
    zarr_array *array = NULL;
    zarr_selection *sel[3] = {NULL};
    zarr_tensor tensor;
    zarr_error err = ZARR_ERROR_INIT;

    spec.data_type = "int32", spec.ndim = 2, spec.shape = shape;
    zarr_tensor_host(&tensor, "int32", data, sizeof data, 2, (uint64_t[]){3, 4});
    if (zarr_context_create(&ctx, NULL, &err) ||
        zarr_store_open(&store, ctx, "memory:", NULL, &err) ||
        zarr_array_create(&array, store, "a", &spec, NULL, &err) ||
        zarr_array_write(array, NULL, &tensor, NULL, &err) ||
        zarr_selection_dims(&sel[0], 2, shape, 2, dims, &err) ||
        zarr_selection_points(&sel[1], 2, shape, 3, &points[0][0], 0, NULL, &err) ||
        zarr_selection_mask(&sel[2], 2, shape, mask, &err) || show(array, sel[0], &err) ||
        show(array, sel[1], &err) || show(array, sel[2], &err))
        return fprintf(stderr, "%s\n", err.message), 1;
    for (int i = 0; i < 3; i++)
        zarr_selection_free(sel[i]);
    zarr_array_free(array), zarr_store_free(store), zarr_context_free(ctx);
    return 0;
}
