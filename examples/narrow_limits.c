/* Introduces: zarr_limits_untrusted(), zarr_context_limits()
 *
 * Reads an array of unknown origin: a context with narrow limits refuses chunks that
 * would take more memory than the program gives them. Usage: narrow_limits DIRECTORY
 */
#include <stdio.h>

#include <zarrc/zarrc.h>

static zarr_status read_with(const char *url, const zarr_limits *limits, zarr_error *err)
{
    zarr_context_options options = ZARR_CONTEXT_OPTIONS_INIT;
    zarr_limits got = ZARR_LIMITS_INIT;
    zarr_context *ctx = NULL;
    zarr_store *store = NULL;
    zarr_array *array = NULL;
    uint8_t first;
    zarr_status st;

    options.limits = limits; /* NULL: the defaults */
    st = zarr_context_create(&ctx, &options, err);
    if (st == ZARR_OK)
        st = zarr_store_open(&store, ctx, url, NULL, err);
    if (st == ZARR_OK)
        st = zarr_array_open(&array, store, "a", NULL, err);
    if (st == ZARR_OK)
        st = zarr_array_read_box(array, (uint64_t[]){0}, (uint64_t[]){1}, ZARR_UINT8,
                                 &first, 1, err);
    zarr_context_limits(ctx, &got);
    fprintf(stderr, "chunks of %d MiB at most: %s\n", (int)(got.chunk_bytes >> 20),
            zarr_status_text(st));
    zarr_array_free(array), zarr_store_free(store), zarr_context_free(ctx);
    return st;
}

int main(int argc, char **argv)
{
    const char *url = argc > 1 ? argv[1] : "example.zarr";
    zarr_store_options create = ZARR_STORE_OPTIONS_INIT;
    zarr_array_spec spec = ZARR_ARRAY_SPEC_INIT;
    zarr_limits limits;
    zarr_context *ctx = NULL;
    zarr_store *store = NULL;
    zarr_array *array = NULL;
    zarr_error err = ZARR_ERROR_INIT;

    spec.data_type = "uint8", spec.ndim = 1, spec.shape = (uint64_t[]){32 << 20};
    spec.chunk_shape = spec.shape, create.flags = ZARR_STORE_CREATE;
    if (zarr_context_create(&ctx, NULL, &err) ||
        zarr_store_open(&store, ctx, url, &create, &err) ||
        zarr_array_create(&array, store, "a", &spec, NULL, &err))
        return fprintf(stderr, "%s\n", err.message), 1;
    zarr_array_free(array), zarr_store_free(store), zarr_context_free(ctx);
    zarr_limits_untrusted(&limits), limits.chunk_bytes = 16 << 20;
    if (read_with(url, &limits, &err) != ZARR_ERR_LIMIT)
        return 1;
    fprintf(stderr, "%s\n", err.message); /* names the limit */
    limits.chunk_bytes = 64 << 20;
    return read_with(url, &limits, &err) != ZARR_OK;
}
