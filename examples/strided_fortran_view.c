/* Introduces: zarr_tensor with strides and byte order
 *
 * Writes a part of a column-major matrix, as Fortran lays it out, without copying it
 * first, and reads it back big-endian. Strides are in bytes. Usage: strided_fortran_view
 * DIRECTORY
 */
#include <stdio.h>

#include <zarrc/zarrc.h>

int main(int argc, char **argv)
{
    static double matrix[6][8]; /* Fortran: real(8) :: matrix(8, 6) */
    const uint64_t shape[2] = {3, 5};
    const uint64_t part_shape[2] = {3, 5};
    /* matrix(2:6:2, 1:5): row i is i * 2 + 1 in a column, columns are 8 apart */
    const int64_t strides[2] = {2 * sizeof(double), 8 * sizeof(double)};
    zarr_store_options create = ZARR_STORE_OPTIONS_INIT;
    zarr_array_spec spec = ZARR_ARRAY_SPEC_INIT; /* chunks are stored column-major, too */
    unsigned char swapped[3][5][8];
    zarr_context *ctx = NULL;
    zarr_store *store = NULL;
    zarr_array *array = NULL;
    zarr_tensor part = ZARR_TENSOR_INIT;
    zarr_tensor big;
    zarr_error err = ZARR_ERROR_INIT;

    part.device_type = ZARR_DEVICE_CPU;
    part.ndim = 2;
    part.data = matrix;
    part.shape = part_shape;
    part.strides = strides;
    part.byte_offset = sizeof(double);
    part.data_bytes = sizeof matrix;
    spec.ndim = 2;
    spec.shape = shape;
    spec.data_type = "float64";
    spec.order = 'F';
    create.flags = ZARR_STORE_CREATE;
    for (int col = 0; col < 6; col++)
        for (int row = 0; row < 8; row++)
            matrix[col][row] = row + 10 * col;
    zarr_tensor_host(&big, "float64", swapped, sizeof swapped, 2, part_shape);
    big.byte_order = ZARR_ORDER_BIG;
    if (zarr_context_create(&ctx, NULL, &err) ||
        zarr_store_open(&store, ctx, argc > 1 ? argv[1] : "example.zarr", &create,
                        &err) ||
        zarr_array_create(&array, store, "a", &spec, NULL, &err) ||
        zarr_array_write(array, NULL, &part, NULL, &err) ||
        zarr_array_read(array, NULL, &big, NULL, &err))
        fprintf(stderr, "%s: %s\n", zarr_status_text(err.code), err.message);
    zarr_array_free(array);
    zarr_store_free(store);
    zarr_context_free(ctx);
    /* [2][4] is matrix(6, 5), 45: 0x4046 8000 0000 0000 */
    return err.code != ZARR_OK || swapped[2][4][0] != 0x40 || swapped[2][4][1] != 0x46 ||
           swapped[2][4][2] != 0x80;
}
