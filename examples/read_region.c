/* Introduces: zarr_array_open(), zarr_selection_parse(), zarr_array_read(), zarr_stats
 *
 * Reads every second row of a region of an array. Usage: read_region DIRECTORY
 */
#include <stdio.h>

#include <zarrc/zarrc.h>

static zarr_status make_one(zarr_store *store, zarr_error *err)
{
    static int16_t data[40][30];
    const uint64_t shape[2] = {40, 30};
    zarr_array_spec spec = ZARR_ARRAY_SPEC_INIT;
    zarr_array *array = NULL;
    zarr_tensor tensor;
    zarr_status st;

    spec.ndim = 2, spec.shape = shape, spec.data_type = "int16";
    for (int i = 0; i < 40 * 30; i++)
        data[i / 30][i % 30] = (int16_t)(100 * (i / 30) + i % 30);
    zarr_tensor_host(&tensor, "int16", data, sizeof data, 2, shape);
    st = zarr_array_create(&array, store, "a", &spec, NULL, err);
    if (st == ZARR_OK)
        st = zarr_array_write(array, NULL, &tensor, NULL, err);
    zarr_array_free(array);
    return st;
}

int main(int argc, char **argv)
{
    zarr_store_options create = ZARR_STORE_OPTIONS_INIT;
    const uint64_t part_shape[2] = {5, 4};
    int16_t part[5][4];
    zarr_stats stats = ZARR_STATS_INIT;
    zarr_io_options opts = ZARR_IO_OPTIONS_INIT;
    zarr_context *ctx = NULL;
    zarr_store *store = NULL;
    zarr_array *array = NULL;
    zarr_selection *sel = NULL;
    zarr_tensor tensor;
    zarr_error err = ZARR_ERROR_INIT;

    opts.stats = &stats, create.flags = ZARR_STORE_CREATE;
    zarr_tensor_host(&tensor, "int16", part, sizeof part, 2, part_shape);
    if (zarr_context_create(&ctx, NULL, &err) ||
        zarr_store_open(&store, ctx, argc > 1 ? argv[1] : "example.zarr", &create,
                        &err) ||
        make_one(store, &err) || zarr_array_open(&array, store, "a", NULL, &err) ||
        zarr_selection_parse(&sel, 2, zarr_array_shape(array), "20:30:2, -4:", &err) ||
        zarr_array_read(array, sel, &tensor, &opts, &err))
        fprintf(stderr, "%s: %s\n", zarr_status_text(err.code), err.message);
    else
        printf("%d, %d chunk(s)\n", part[0][0], (int)stats.chunks_done);
    zarr_selection_free(sel);
    zarr_array_free(array);
    zarr_store_free(store);
    zarr_context_free(ctx);
    return err.code != ZARR_OK || part[0][0] != 2026 || part[4][3] != 2829;
}
