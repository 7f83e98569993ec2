/* Introduces: zarr_create_array(), zarr_array_write_box()
 *
 * Creates an array of 100 x 200 floats and writes it. Usage: create_write DIRECTORY
 */
#include <stdio.h>

#include <zarrc/zarrc.h>

static zarr_status create_and_write(const char *where, zarr_error *err)
{
    static float data[100][200];
    const uint64_t shape[2] = {100, 200};
    zarr_array *a = NULL;
    zarr_status st = zarr_create_array(&a, NULL, where, "w", ZARR_FLOAT32, 2, shape, err);

    for (int i = 0; i < 100 * 200; i++)
        data[i / 200][i % 200] = 273.15f + (float)i;
    if (st == ZARR_OK)
        st = zarr_array_write_box(a, NULL, NULL, ZARR_FLOAT32, data, sizeof data, err);
    if (st == ZARR_OK) /* survives a loss of power from here on */
        st = zarr_store_flush(zarr_array_store(a), NULL, err);
    zarr_array_free(a);
    return st;
}

int main(void)
{
    zarr_error err = ZARR_ERROR_INIT;

    if (create_and_write("run.zarr/temp", &err) != ZARR_OK)
        return fprintf(stderr, "%s\n", err.message), 1;
    return 0;
}
