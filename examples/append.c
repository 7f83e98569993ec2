/* Introduces: zarr_array_append_rows()
 *
 * Appends time steps to an array. The first call creates it, without any step.
 */
#include <stdio.h>

#include <zarrc/zarrc.h>

static zarr_status append_steps(const char *where, zarr_error *err)
{
    const double steps[2][3] = {{1, 2, 3}, {4, 5, 6}}; /* two steps of three values */
    const uint64_t empty[2] = {0, 3};
    zarr_array *a = NULL;
    zarr_status st = zarr_create_array(&a, NULL, where, "a", ZARR_FLOAT64, 2, empty, err);

    if (st == ZARR_OK)
        st = zarr_array_append_rows(a, 2, ZARR_FLOAT64, steps, sizeof steps, err);
    if (st == ZARR_OK)
        printf("%d steps\n", (int)zarr_array_shape(a)[0]);
    zarr_array_free(a);
    return st;
}

int main(void)
{
    zarr_error err = ZARR_ERROR_INIT;

    if (append_steps("run.zarr/series", &err) || append_steps("run.zarr/series", &err))
        return fprintf(stderr, "%s\n", err.message), 1;
    return 0;
}
