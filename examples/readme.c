/* Introduces: the sample of README.md */
#include <stdio.h>
#include <zarrc/zarrc.h>

int main(void)
{
    const uint64_t shape[2] = {2, 3}, start[2] = {0, 2}, count[2] = {2, 1};
    float all[6] = {1, 2, 3, 4, 5, 6}, last[2];
    zarr_array *a = NULL;
    zarr_error err = ZARR_ERROR_INIT;
    if (zarr_create_array(&a, NULL, "c.zarr/temp", "w", ZARR_FLOAT32, 2, shape, &err) ||
        zarr_array_write_box(a, NULL, NULL, ZARR_FLOAT32, all, sizeof all, &err) ||
        zarr_array_read_box(a, start, count, ZARR_FLOAT32, last, sizeof last, &err))
        return fprintf(stderr, "%s\n", err.message), 1;
    printf("%g %g\n", last[0], last[1]); /* 3 6: the last column */
    zarr_array_free(a);
}
