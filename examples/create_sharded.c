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
    const char *const names[2] = {"y", "x"};
    zarr_store_options store_opts = ZARR_STORE_OPTIONS_INIT;
    zarr_array_spec spec = ZARR_ARRAY_SPEC_INIT;
    zarr_context *ctx = NULL;
    zarr_store *store = NULL;
    zarr_array *array = NULL;
    zarr_tensor tensor;
    zarr_error err = ZARR_ERROR_INIT;
    float *data = malloc(sizeof *data * 1000 * 1000);
    int rc = 1;

    spec.ndim = 2;
    spec.shape = shape;
    spec.chunk_shape = chunk; /* decoded on its own */
    spec.shard_shape = shard; /* one file each */
    spec.data_type = "float32";
    spec.fill_value = "\"NaN\"";
    spec.dimension_names = names;
    spec.attributes = "{\"units\": \"K\"}";
    store_opts.flags = ZARR_STORE_CREATE;
    if (!data)
        return 1;
    for (int i = 0; i < 1000 * 1000; i++)
        data[i] = 273.15f + (float)(i % 1000) / 50;
    zarr_tensor_host(&tensor, "float32", data, sizeof *data * 1000 * 1000, 2, shape);

    if (zarr_context_create(&ctx, NULL, &err) != ZARR_OK ||
        zarr_store_open(&store, ctx, argc > 1 ? argv[1] : "example.zarr", &store_opts,
                        &err) ||
        zarr_array_create(&array, store, "weather/temperature", &spec, NULL, &err) ||
        zarr_array_write(array, NULL, &tensor, NULL, &err) || /* NULL selection: all */
        zarr_store_flush(store, NULL, &err)) /* survives power loss now */
        fprintf(stderr, "%s: %s\n", zarr_status_text(err.code), err.message);
    else
        rc = 0;
    zarr_array_free(array); /* NULL is fine everywhere */
    zarr_store_free(store);
    zarr_context_free(ctx);
    free(data);
    return rc;
}
