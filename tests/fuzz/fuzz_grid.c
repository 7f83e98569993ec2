/*
 * fuzz/fuzz_grid.c - any chunk grid with any selection over it. The input has three
 * lines: the array's shape, its chunk_grid (both JSON), a selection as text. What opens
 * has chunks that cover it, without gap or overlap; what was written through a selection
 * is read by the same one, by both pipelines.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zarrc/zarrc.h>

#include "fuzz.h"

enum {
    FUZZ_MOST_ITEMS = 300,
    FUZZ_MOST_CHUNKS = 300
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
    zarr_limits_untrusted(&limits);
    limits.chunk_bytes = 1 << 12;
    co.limits = &limits;
    co.max_threads = 1;
    fuzz_check(zarr_context_create(&fuzz_ctx, &co, NULL) == ZARR_OK);
    return 0;
}

/* Units of writing along one dimension, the others at 0. */
static void fuzz_extents(const zarr_array *a, int32_t d, uint64_t count)
{
    uint64_t chunk[ZARR_MAX_RANK] = {0}, origin[ZARR_MAX_RANK], size[ZARR_MAX_RANK];
    uint64_t end = 0;
    zarr_error err = {0};

    for (; chunk[d] < count && chunk[d] < FUZZ_MOST_CHUNKS; chunk[d]++) {
        fuzz_check(zarr_array_block_extent(a, chunk, origin, size, &err) == ZARR_OK);
        fuzz_check(origin[d] == end && size[d] > 0);
        end += size[d];
    }
    if (chunk[d] == count)
        fuzz_check(end >= zarr_array_shape(a)[d]);
    chunk[d] = count;
    fuzz_check(zarr_array_block_extent(a, chunk, origin, size, &err) != ZARR_OK);
}

static void fuzz_values(zarr_array *a, const zarr_selection *sel)
{
    static const char *const pipelines[] = {"waves", "serial"};
    const uint64_t n = zarr_selection_n_items(sel);
    const uint64_t *shape = zarr_selection_shape(sel);
    const int32_t ndim = zarr_selection_ndim(sel);
    uint64_t wanted[ZARR_MAX_RANK];
    uint8_t in[FUZZ_MOST_ITEMS], out[2][FUZZ_MOST_ITEMS];
    zarr_io_options io = ZARR_IO_OPTIONS_INIT;
    zarr_tuning tuning = ZARR_TUNING_INIT;
    zarr_error err = {0};
    zarr_tensor t;
    zarr_status st;

    if (n > FUZZ_MOST_ITEMS)
        return;
    for (int32_t d = 0; d < ndim; d++)
        wanted[d] = (uint64_t)shape[d];
    for (uint64_t i = 0; i < n; i++)
        in[i] = (uint8_t)(i % 200 + 1);
    zarr_tensor_host(&t, NULL, in, n, ndim, wanted);
    st = zarr_array_write(a, sel, &t, &io, &err);
    fuzz_check(st == ZARR_OK || (err.message[0] && st == ZARR_ERR_LIMIT));
    if (st != ZARR_OK)
        return;
    for (int k = 0; k < 2; k++) {
        tuning.pipeline = pipelines[k];
        io.tuning = &tuning;
        zarr_tensor_host(&t, NULL, out[k], n, ndim, wanted);
        fuzz_check(zarr_array_read(a, sel, &t, &io, &err) == ZARR_OK);
    }
    fuzz_check(!memcmp(out[0], out[1], n));
    if (!n || !memcmp(in, out[0], n))
        return;
    /* elements that were named twice hold the last of their values: again, all is still
     */
    zarr_tensor_host(&t, NULL, out[0], n, ndim, wanted);
    fuzz_check(zarr_array_write(a, sel, &t, &io, &err) == ZARR_OK);
    zarr_tensor_host(&t, NULL, in, n, ndim, wanted);
    fuzz_check(zarr_array_read(a, sel, &t, &io, &err) == ZARR_OK);
    fuzz_check(!memcmp(in, out[0], n));
}

static void fuzz_array(zarr_array *a, const char *text)
{
    uint64_t counts[ZARR_MAX_RANK];
    zarr_selection *sel = NULL;
    zarr_error err = {0};

    zarr_array_block_counts(a, counts);
    for (int32_t d = 0; d < zarr_array_ndim(a); d++) {
        bool any = true;

        for (int32_t e = 0; e < zarr_array_ndim(a); e++)
            any = any && (e == d || counts[e] > 0);
        if (any)
            fuzz_extents(a, d, counts[d]);
    }
    if (zarr_selection_parse(&sel, zarr_array_ndim(a), zarr_array_shape(a), text, &err) ==
        ZARR_OK)
        fuzz_values(a, sel);
    zarr_selection_free(sel);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    zarr_array_spec spec = ZARR_ARRAY_SPEC_INIT;
    char text[2048], document[4096];
    zarr_store *store = NULL;
    zarr_array *a = NULL;
    zarr_error err = {0};
    zarr_status st;
    char *grid, *selection;

    if (size >= sizeof text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    grid = strchr(text, '\n');
    selection = grid ? strchr(grid + 1, '\n') : NULL;
    if (!selection)
        return 0;
    *grid++ = *selection++ = '\0';
    (void)snprintf(document, sizeof document,
                   "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":%s,"
                   "\"data_type\":\"uint8\",\"chunk_grid\":%s,\"fill_value\":0,"
                   "\"chunk_key_encoding\":{\"name\":\"default\"},\"codecs\":[{"
                   "\"name\":\"bytes\"}],\"attributes\":{}}",
                   text, grid);
    spec.document = document;
    fuzz_check(zarr_store_open(&store, fuzz_ctx, "memory:", NULL, NULL) == ZARR_OK);
    st = zarr_array_create(&a, store, "", &spec, NULL, &err);
    if (st == ZARR_OK)
        fuzz_array(a, selection);
    else
        fuzz_check(err.message[0] && st != ZARR_ERR_INTERNAL);
    zarr_array_free(a);
    zarr_store_free(store);
    return 0;
}
