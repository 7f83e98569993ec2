/* Introduces: zarr_create_array()
 *
 * Opens an array, or creates it if it does not exist: a number that each run increases.
 */
#include <stdio.h>

#include <zarrc/zarrc.h>

static zarr_status count_run(const char *where, zarr_error *err)
{
    int64_t n = 0;
    zarr_array *a = NULL;
    zarr_status st = zarr_create_array(&a, NULL, where, "a", ZARR_INT64, 0, NULL, err);

    if (st == ZARR_OK)
        st = zarr_array_read_box(a, NULL, NULL, ZARR_INT64, &n, sizeof n, err);
    printf("run %d\n", (int)++n);
    if (st == ZARR_OK)
        st = zarr_array_write_box(a, NULL, NULL, ZARR_INT64, &n, sizeof n, err);
    zarr_array_free(a);
    return st;
}

int main(void)
{
    zarr_error err = ZARR_ERROR_INIT;

    if (count_run("run.zarr/runs", &err) || count_run("run.zarr/runs", &err))
        return fprintf(stderr, "%s\n", err.message), 1;
    return 0;
}
