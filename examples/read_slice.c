/* Introduces: zarr_array_check_ndim()
 *
 * Reads a part of an array with two dimensions: three rows of four columns.
 */
#include <stdio.h>

#include <zarrc/zarrc.h>

static zarr_status read_slice(const char *where, zarr_error *err)
{
    const uint64_t start[2] = {20, 26}, count[2] = {3, 4};
    float part[3][4];
    zarr_array *a = NULL;
    zarr_status st = zarr_open_array(&a, NULL, where, "r", err);

    if (st == ZARR_OK) /* `start` and `count` are for two dimensions */
        st = zarr_array_check_ndim(a, 2, err);
    if (st == ZARR_OK)
        st = zarr_array_read_box(a, start, count, ZARR_FLOAT32, part, sizeof part, err);
    if (st == ZARR_OK)
        printf("%g to %g\n", (double)part[0][0], (double)part[2][3]);
    zarr_array_free(a);
    return st;
}

int main(void)
{
    static float data[40][30];
    zarr_array *a = NULL;
    zarr_error err = ZARR_ERROR_INIT;

    for (int row = 0; row < 40; row++)
        for (int column = 0; column < 30; column++)
            data[row][column] = (float)(100 * row + column);
    if (zarr_create_array(&a, NULL, "run.zarr/temp", "w", ZARR_FLOAT32, 2,
                          (uint64_t[]){40, 30}, &err) ||
        zarr_array_write_box(a, NULL, NULL, ZARR_FLOAT32, data, sizeof data, &err) ||
        read_slice("run.zarr/temp", &err))
        return fprintf(stderr, "%s\n", err.message), 1;
    zarr_array_free(a);
    return 0;
}
