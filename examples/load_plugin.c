/* Introduces: zarr_context_load(), zarr_grid_vtable, zarr_key_encoding_vtable
 *
 * Writes 400 days with the chunk grid and the chunk keys of plugins/grid_months.c, and
 * reads the days on both sides of a boundary. Usage: load_plugin GRID_MONTHS DIRECTORY
 */
#include <stdio.h>

#include <zarrc/plugin/plugin.h>
#include <zarrc/zarrc.h>

static zarr_status show_day(zarr_array *array, int32_t day, zarr_error *err)
{
    const uint64_t at[1] = {(uint64_t)day}, one[1] = {1};
    uint64_t block[1];
    int32_t value = -1;
    char key[64];

    if (zarr_array_read_box(array, at, one, ZARR_INT32, &value, sizeof value, err) ||
        zarr_array_block_locate(array, at, block, err) ||
        zarr_array_block_key(array, block, key, sizeof key, NULL, err))
        return err->code;
    printf("day %d is in %s\n", (int)value, key);
    return ZARR_OK;
}

static zarr_status use(zarr_array *array, zarr_error *err)
{
    int32_t days[400];
    zarr_status st;

    for (int32_t i = 0; i < 400; i++)
        days[i] = i;
    st = zarr_array_write_box(array, NULL, NULL, ZARR_INT32, days, sizeof days, err);
    if (st == ZARR_OK && !(st = show_day(array, 58, err))) /* the last of February */
        st = show_day(array, 59, err);
    return st;
}

int main(int argc, char **argv)
{
    zarr_store_options create = ZARR_STORE_OPTIONS_INIT;
    zarr_array_spec spec = ZARR_ARRAY_SPEC_INIT;
    zarr_context *ctx = NULL;
    zarr_store *store = NULL;
    zarr_array *array = NULL;
    zarr_error err = ZARR_ERROR_INIT;

    create.flags = ZARR_STORE_CREATE;
    spec.ndim = 1, spec.shape = (uint64_t[]){400}, spec.data_type = "int32";
    spec.chunk_grid = "{\"name\": \"example.months\"}";
    spec.key_encoding = "example.padded", spec.codecs = "[]";
    if (argc != 3 || zarr_context_create(&ctx, NULL, &err) ||
        zarr_context_load(ctx, argv[1], &err) || /* before the first store */
        zarr_store_open(&store, ctx, argv[2], &create, &err) ||
        zarr_array_create(&array, store, "days", &spec, NULL, &err) || use(array, &err))
        return fprintf(stderr, "%s\n", err.message), 1;
    zarr_array_free(array), zarr_store_free(store), zarr_context_free(ctx);
    return 0;
}
