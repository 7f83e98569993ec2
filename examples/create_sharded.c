/* Introduces: zarr_context_create(), zarr_store_open(), zarr_array_create(),
 * zarr_array_write()
 *
 * Makes a sharded, compressed array of 1000 x 1000 floats in a directory and fills it.
 * Usage: create_write DIRECTORY
 */
#include <stdio.h>
#include <stdlib.h>

#include <zarrc/zarrc.h>

int main(int argc, char **argv)
{
    const uint64_t shape[2] = {1000, 1000}, chunk[2] = {100, 100}, shard[2] = {500, 500};
    const uint64_t data_shape[2] = {1000, 1000};
    const char *const names[2] = {"y", "x"};
    const zarr_store_options store_opts = {.struct_size = sizeof store_opts,
                                           .flags = ZARR_STORE_CREATE};
    const zarr_array_spec spec = {
        .struct_size = sizeof spec,
        .ndim = 2,
        .shape = shape,
        .chunk_shape = chunk, /* the unit of reading */
        .shard_shape = shard, /* one file each */
        .data_type = "float32",
        .fill_value = "\"NaN\"",
        .dimension_names = names,
        .attributes = "{\"units\": \"K\"}",
    };
    zarr_context *ctx = NULL;
    zarr_store *store = NULL;
    zarr_array *array = NULL;
    zarr_tensor tensor;
    zarr_error err;
    float *data = malloc(sizeof *data * 1000 * 1000);
    int rc = 1;

    if (!data)
        return 1;
    for (int i = 0; i < 1000 * 1000; i++)
        data[i] = 273.15f + (float)(i % 1000) / 50;
    zarr_tensor_host(&tensor, "float32", data, sizeof *data * 1000 * 1000, 2, data_shape);

    if (zarr_context_create(&ctx, NULL, &err) != ZARR_OK ||
        zarr_store_open(&store, ctx, argc > 1 ? argv[1] : "example.zarr", &store_opts,
                        &err) ||
        zarr_array_create(&array, store, "weather/temperature", &spec, NULL, &err) ||
        zarr_array_write(array, NULL, &tensor, NULL, &err) || /* NULL selection: all */
        zarr_store_flush(store, &err)) /* survives power loss now */
        fprintf(stderr, "%s: %s\n", zarr_status_text(err.code), err.message);
    else
        rc = 0;
    zarr_array_free(array); /* NULL is fine everywhere */
    zarr_store_free(store);
    zarr_context_free(ctx);
    free(data);
    return rc;
}
