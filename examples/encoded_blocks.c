/* Introduces: zarr_array_block_locate(), zarr_array_block_read_encoded(),
 * zarr_array_block_write_encoded(), zarr_array_block_erase(), zarr_array_chunk_store(),
 * zarr_array_chunk_extent()
 *
 * Moves the block of one element to another array of the same codecs, without decoding
 * it, and tells where the last chunk lies. Usage: encoded_blocks DIRECTORY
 */
#include <stdio.h>

#include <zarrc/zarrc.h>

static const uint64_t shape[2] = {5, 6}, chunk[2] = {2, 3};

static zarr_status move_block(zarr_array *from, zarr_array *to, const uint64_t *element,
                              zarr_error *err)
{
    uint64_t block[2], bytes = 256;
    char encoded[256], key[64];
    zarr_store_value value = ZARR_STORE_VALUE_INIT;

    if (zarr_array_block_locate(from, element, block, err) ||
        zarr_array_block_key(from, block, key, sizeof key, NULL, err) ||
        zarr_store_stat(zarr_array_chunk_store(from), key, &value, NULL, err) ||
        zarr_array_block_read_encoded(from, block, encoded, &bytes, NULL, err) ||
        zarr_array_block_write_encoded(to, block, encoded, bytes, NULL, err) ||
        zarr_array_block_erase(from, block, NULL, err)) /* reads as the fill value then */
        return err->code;
    fprintf(stderr, "%s: %d bytes\n", key, (int)value.bytes);
    return ZARR_OK;
}

int main(int argc, char **argv)
{
    zarr_store_options create = ZARR_STORE_OPTIONS_INIT;
    zarr_array_spec spec = ZARR_ARRAY_SPEC_INIT;
    uint8_t data[5][6] = {{1}, {2}, {3}}, copy[5][6];
    uint64_t origin[2], extent[2];
    zarr_store *store = NULL;
    zarr_context *ctx = NULL;
    zarr_array *a = NULL, *b = NULL;
    zarr_error err = ZARR_ERROR_INIT;

    spec.ndim = 2, spec.shape = shape, spec.chunk_shape = chunk, spec.data_type = "uint8";
    spec.codecs = "[{\"name\": \"bytes\"}]", create.flags = ZARR_STORE_CREATE;
    if (zarr_context_create(&ctx, NULL, &err) ||
        zarr_store_open(&store, ctx, argc > 1 ? argv[1] : "x.zarr", &create, &err) ||
        zarr_array_create(&a, store, "a", &spec, NULL, &err) ||
        zarr_array_create(&b, store, "b", &spec, NULL, &err) ||
        zarr_array_write_box(a, NULL, NULL, ZARR_UINT8, data, sizeof data, &err) ||
        move_block(a, b, (uint64_t[]){2, 0}, &err) ||
        zarr_array_read_box(b, NULL, NULL, ZARR_UINT8, copy, sizeof copy, &err) ||
        zarr_array_chunk_extent(a, (uint64_t[]){2, 1}, origin, extent, &err))
        return fprintf(stderr, "%s\n", err.message), 1;
    fprintf(stderr, "%d x %d elements from %d, %d\n", (int)extent[0], (int)extent[1],
            (int)origin[0], (int)origin[1]);
    zarr_array_free(a), zarr_array_free(b), zarr_store_free(store),
        zarr_context_free(ctx);
    return copy[0][0] != 0 || copy[2][0] != 3; /* another block; the one that moved */
}
