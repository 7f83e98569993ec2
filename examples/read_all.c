/* Introduces: zarr_open_array(), zarr_array_n_items(), zarr_array_read_box()
 *
 * Reads all elements of an array, whatever its shape is. They are stored as int16, and
 * the library converts them to doubles, because every int16 is exact as a double.
 */
#include <stdio.h>
#include <stdlib.h>

#include <zarrc/zarrc.h>

static zarr_status read_all(const char *where, zarr_error *err)
{
    zarr_array *a = NULL;
    zarr_status st = zarr_open_array(&a, NULL, where, "r", err);
    const uint64_t n = zarr_array_n_items(a);
    double *data = calloc(n, sizeof *data), sum = 0;

    if (st == ZARR_OK) /* refuses NULL: there may be too many elements for the memory */
        st =
            zarr_array_read_box(a, NULL, NULL, ZARR_FLOAT64, data, n * sizeof *data, err);
    for (uint64_t i = 0; st == ZARR_OK && i < n; i++)
        sum += data[i];
    printf("the sum is %g\n", sum);
    free(data);
    zarr_array_free(a);
    return st;
}

int main(void)
{
    const int16_t data[2][3] = {{1, 2, 3}, {4, 5, 6}};
    zarr_array *a = NULL;
    zarr_error err = ZARR_ERROR_INIT;

    if (zarr_create_array(&a, NULL, "run.zarr/temp", "w", ZARR_INT16, 2,
                          (uint64_t[]){2, 3}, &err) ||
        zarr_array_write_box(a, NULL, NULL, ZARR_INT16, data, sizeof data, &err) ||
        read_all("run.zarr/temp", &err))
        return fprintf(stderr, "%s\n", err.message), 1;
    zarr_array_free(a);
    return 0;
}
