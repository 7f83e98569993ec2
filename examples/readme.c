/* Introduces: the sample of README.md */
#include <stdio.h>
#include <zarrc/zarrc.h>

int main(void)
{
    const float data[2][3] = {{1, 2, 3}, {4, 5, 6}};
    const uint64_t shape[2] = {2, 3}, start[2] = {0, 2}, count[2] = {2, 1};
    double last[2];
    zarr_array *array = NULL;
    zarr_error err;

    if (zarr_create_array(&array, NULL, "sample.zarr/temp", "w", ZARR_FLOAT32, 2, shape,
                          &err) ||
        zarr_array_write_box(array, NULL, NULL, ZARR_FLOAT32, data, sizeof data, &err) ||
        zarr_array_read_box(array, start, count, ZARR_FLOAT64, last, sizeof last, &err))
        return fprintf(stderr, "%s\n", err.message), 1;
    printf("%g %g\n", last[0], last[1]); /* 3 6: the last column, as doubles */
    zarr_array_free(array);
    return 0;
}
