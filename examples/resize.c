/* Introduces: zarr_array_resize(), zarr_array_refresh()
 *
 * Makes an array shorter. A second handle learns of it when it is refreshed.
 */
#include <stdio.h>

#include <zarrc/zarrc.h>

static void show(const char *what, const zarr_array *array)
{
    printf("%s: %d x %d\n", what, (int)zarr_array_shape(array)[0],
           (int)zarr_array_shape(array)[1]);
}

int main(void)
{
    zarr_array *array = NULL, *other = NULL;
    zarr_error err = ZARR_ERROR_INIT;

    if (zarr_create_array(&array, NULL, "run.zarr/series", "w", ZARR_FLOAT64, 2,
                          (uint64_t[]){7, 2}, &err) ||
        zarr_open_array(&other, NULL, "run.zarr/series", "r", &err) ||
        zarr_array_resize(array, (uint64_t[]){5, 2}, NULL, &err)) /* deletes two rows */
        return fprintf(stderr, "%s\n", err.message), 1;
    show("cut", array);
    show("another handle", other); /* as it was opened */
    if (zarr_array_refresh(other, NULL, NULL, &err))
        return fprintf(stderr, "%s\n", err.message), 1;
    show("refreshed", other);
    zarr_array_free(array);
    zarr_array_free(other);
    return 0;
}
