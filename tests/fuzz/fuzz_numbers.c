/*
 * fuzz/fuzz_numbers.c - any configuration of v3's codecs that compute (cast_value,
 * scale_offset, bitround, numcodecs' filters), over any bytes. The input has three parts:
 * a line with the data type and one with the codecs in front of `bytes` (both JSON), then
 * a chunk. What is decoded can be encoded or is refused plainly; once more through both,
 * it stays what it is.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zarrc/zarrc.h>

#include "fuzz.h"

enum {
    FUZZ_ITEMS = 8,
    FUZZ_MOST_BYTES = 32 * FUZZ_ITEMS
};

static zarr_context *fuzz_ctx;

static void fuzz_check(int ok)
{
    if (!ok)
        __builtin_trap();
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    zarr_context_options co = ZARR_CONTEXT_OPTIONS_INIT;
    zarr_limits limits = ZARR_LIMITS_INIT;

    (void)argc;
    (void)argv;
    co.max_threads = 1;
    limits.chunk_bytes = 1 << 12; /* large raw elements have long fill values */
    limits.json_tokens = 1 << 12;
    co.limits = &limits;
    fuzz_check(zarr_context_create(&fuzz_ctx, &co, NULL) == ZARR_OK);
    return 0;
}

static bool fuzz_refused(zarr_status st, const zarr_error *err)
{
    fuzz_check(st == ZARR_OK || (err->message[0] &&
                                 (st == ZARR_ERR_CORRUPT || st == ZARR_ERR_UNSUPPORTED ||
                                  st == ZARR_ERR_INVALID || st == ZARR_ERR_LIMIT)));
    return st != ZARR_OK;
}

static void fuzz_chunk(zarr_array *a, zarr_store *store, const uint8_t *chunk,
                       size_t size)
{
    const uint64_t item = zarr_dtype_item_bytes(zarr_array_dtype(a));
    const uint64_t shape[1] = {FUZZ_ITEMS};
    uint8_t once[FUZZ_MOST_BYTES], twice[FUZZ_MOST_BYTES];
    const uint64_t n = item * FUZZ_ITEMS;
    zarr_error err = {0};
    zarr_tensor t;

    if (n > FUZZ_MOST_BYTES || zarr_dtype_variable(zarr_array_dtype(a)))
        return;
    fuzz_check(zarr_store_put(store, "c/0", chunk, size, NULL, NULL) == ZARR_OK);
    zarr_tensor_host(&t, NULL, once, n, 1, shape);
    if (fuzz_refused(zarr_array_read(a, NULL, &t, NULL, &err), &err) ||
        fuzz_refused(zarr_array_write(a, NULL, &t, NULL, &err), &err))
        return;
    /* What was lost is lost; what is there now must be readable. */
    zarr_tensor_host(&t, NULL, twice, n, 1, shape);
    (void)fuzz_refused(zarr_array_read(a, NULL, &t, NULL, &err), &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    zarr_array_spec spec = ZARR_ARRAY_SPEC_INIT;
    const uint64_t shape[1] = {FUZZ_ITEMS};
    char text[2048], codecs[2048];
    zarr_store *store = NULL;
    zarr_array *a = NULL;
    zarr_error err = {0};
    char *list, *chunk;

    if (size >= sizeof text - 100)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    list = memchr(text, '\n', size);
    chunk = list ? memchr(list + 1, '\n', size - (size_t)(list + 1 - text)) : NULL;
    if (!chunk)
        return 0;
    *list++ = *chunk++ = '\0';
    (void)snprintf(codecs, sizeof codecs,
                   "[%s,{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}]",
                   list);
    spec.ndim = 1;
    spec.shape = spec.chunk_shape = shape;
    spec.data_type = text;
    spec.codecs = codecs;
    fuzz_check(zarr_store_open(&store, fuzz_ctx, "memory:", NULL, NULL) == ZARR_OK);
    if (!fuzz_refused(zarr_array_create(&a, store, "", &spec, NULL, &err), &err))
        fuzz_chunk(a, store, (const uint8_t *)chunk, size - (size_t)(chunk - text));
    zarr_array_free(a);
    zarr_store_free(store);
    return 0;
}
