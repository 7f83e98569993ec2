/* Introduces: zarr_array_read_many(), zarr_io_part
 *
 * Reads crops of an image in one request: chunks that crops share are fetched and decoded
 * once. Usage: crops DIRECTORY
 */
#include <stdio.h>

#include <zarrc/zarrc.h>

enum {
    IMAGE = 256,
    CROPS = 16,
    SIDE = 32
};
static uint8_t image[IMAGE][IMAGE], crop[CROPS][SIDE][SIDE];

int main(int argc, char **argv)
{
    zarr_store_options create = ZARR_STORE_OPTIONS_INIT;
    const uint64_t shape[2] = {IMAGE, IMAGE}, chunk[2] = {64, 64}, side[2] = {SIDE, SIDE};
    zarr_array_spec spec = ZARR_ARRAY_SPEC_INIT;
    zarr_stats stats = ZARR_STATS_INIT;
    zarr_io_options opts = ZARR_IO_OPTIONS_INIT;
    zarr_io_part part[CROPS];
    zarr_selection *box[CROPS] = {0};
    zarr_tensor whole, tensor[CROPS];
    zarr_context *ctx = NULL;
    zarr_store *store = NULL;
    zarr_array *array = NULL;
    zarr_error err = ZARR_ERROR_INIT;

    opts.stats = &stats;
    spec.ndim = 2, spec.shape = shape, spec.chunk_shape = chunk, spec.data_type = "uint8";
    create.flags = ZARR_STORE_CREATE;
    image[37][101] = 1;
    zarr_tensor_host(&whole, "uint8", image, sizeof image, 2, shape);
    for (int i = 0; i < CROPS && !err.code; i++) {
        const uint64_t at[2] = {(unsigned)i * 37 % 224, (unsigned)i * 101 % 224};

        zarr_tensor_host(&tensor[i], "uint8", crop[i], sizeof crop[i], 2, side);
        if (zarr_selection_box(&box[i], 2, shape, at, side, &err) == ZARR_OK)
            part[i] = (zarr_io_part){.selection = box[i], .tensor = &tensor[i]};
    }
    if (err.code || zarr_context_create(&ctx, NULL, &err) ||
        zarr_store_open(&store, ctx, argc > 1 ? argv[1] : "x.zarr", &create, &err) ||
        zarr_array_create(&array, store, "a", &spec, NULL, &err) ||
        zarr_array_write(array, NULL, &whole, NULL, &err) ||
        zarr_array_read_many(array, part, CROPS, &opts, &err)) /* part[i].status: each */
        fprintf(stderr, "%s: %s\n", zarr_status_text(err.code), err.message);
    printf("%d crops of %d chunks\n", CROPS, (int)stats.chunks_done);
    for (int i = 0; i < CROPS; i++)
        zarr_selection_free(box[i]);
    zarr_array_free(array);
    zarr_store_free(store);
    zarr_context_free(ctx);
    return err.code != ZARR_OK || crop[1][0][0] != 1;
}
