/* Introduces: zarr_store_open_zip()
 *
 * An array in a zip archive that is in memory. Archives in files need only
 * zarr_store_open() with their path.
 */
#include <stdio.h>

#include <zarrc/zarrc.h>

/* .zarray and one chunk, as Python's zipfile stores them */
static const char archive[] =
    "PK\003\004\024\000\000\000\000\000\000\000!\000\032':\223\203\000\000\000\203\000"
    "\000\000\007\000\000\000.zarray{\"zarr_format\": 2, \"shape\": [6], \"chunks\": [6],"
    " \"dtype\": \"|u1\", \"compressor\": null, \"filters\": null, \"fill_value\": 0, \"o"
    "rder\": \"C\"}PK\003\004\024\000\000\000\000\000\000\000!\000\252\324o\207\006\000"
    "\000\000\006\000\000\000\001\000\000\0000zarrc\012PK\001\002\024\003\024\000\000\000"
    "\000\000\000\000!\000\032':\223\203\000\000\000\203\000\000\000\007\000\000\000\000"
    "\000\000\000\000\000\000\000\200\001\000\000\000\000.zarrayPK\001\002\024\003\024"
    "\000\000\000\000\000\000\000!\000\252\324o\207\006\000\000\000\006\000\000\000\001"
    "\000\000\000\000\000\000\000\000\000\000\000\200\001\250\000\000\0000PK\005\006\000"
    "\000\000\000\002\000\002\000d\000\000\000\315\000\000\000\000\000";

int main(void)
{
    const uint64_t shape[1] = {6};
    char text[6];
    zarr_context *ctx = NULL;
    zarr_store *memory = NULL, *store = NULL;
    zarr_array *array = NULL;
    zarr_tensor tensor;
    zarr_error err = ZARR_ERROR_INIT;

    zarr_tensor_host(&tensor, "uint8", text, sizeof text, 1, shape);
    if (zarr_context_create(&ctx, NULL, &err) ||
        zarr_store_open(&memory, ctx, "memory:", NULL, &err) ||
        zarr_store_put(memory, "x.zip", archive, sizeof archive - 1, NULL, &err) ||
        zarr_store_open_zip(&store, memory, "x.zip", NULL, &err) ||
        zarr_array_open(&array, store, "", NULL, &err) ||
        zarr_array_read(array, NULL, &tensor, NULL, &err))
        fprintf(stderr, "%s: %s\n", zarr_status_text(err.code), err.message);
    else
        printf("%.6s", text);
    zarr_array_free(array), zarr_store_free(store);
    zarr_store_free(memory), zarr_context_free(ctx);
    return err.code != ZARR_OK;
}
