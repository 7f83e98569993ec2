/*
 * fuzz/fuzz_shard.c - metadata and the bytes of a shard together, through the public API
 * over a memory store: open, read all and one element, list, verify, change one element,
 * read again. The input is the text of zarr.json, a zero byte, and the object. Whatever
 * it is, a failure has a text, and what was written is read.
 */
#include <stdlib.h>
#include <string.h>

#include <zarrc/zarrc.h>

#include "fuzz.h"

enum {
    FUZZ_MAX_BYTES = 1 << 20
};

static zarr_context *fuzz_ctx;

static void fuzz_check(int ok)
{
    if (!ok)
        __builtin_trap();
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    zarr_limits limits = ZARR_LIMITS_INIT;
    zarr_context_options opts = ZARR_CONTEXT_OPTIONS_INIT;

    (void)argc;
    (void)argv;
    limits.chunk_bytes = FUZZ_MAX_BYTES;
    limits.chunks_per_shard = 4096;
    opts.limits = &limits;
    opts.max_threads = 1;
    fuzz_check(zarr_context_create(&fuzz_ctx, &opts, NULL) == ZARR_OK);
    return 0;
}

static int fuzz_ignore_chunk(void *user, const zarr_block_info *chunk)
{
    (void)chunk;
    return ++*(int *)user > 1000;
}

static int fuzz_ignore_fault(void *user, const zarr_verify_item *item)
{
    (void)user;
    fuzz_check(item->message[0] != '\0');
    return 0;
}

/* 0: the array is too large to be read here. */
static uint64_t fuzz_bytes(const zarr_array *a)
{
    uint64_t bytes = zarr_dtype_item_bytes(zarr_array_dtype(a)), chunks = 1;

    for (int32_t d = 0; d < zarr_array_ndim(a); d++) {
        const uint64_t n = zarr_array_shape(a)[d];
        const uint64_t *edge = zarr_array_chunk_shape(a);

        if (n == 0 || n > FUZZ_MAX_BYTES || bytes * n > FUZZ_MAX_BYTES)
            return 0;
        bytes *= n;
        chunks *= edge ? n / edge[d] + 1 : n;
    }
    return chunks > 4096 ? 0 : bytes;
}

static zarr_status fuzz_io(zarr_array *a, int write, char *data, uint64_t bytes, int one)
{
    const int32_t ndim = zarr_array_ndim(a);
    uint64_t start[ZARR_MAX_RANK] = {0}, count[ZARR_MAX_RANK];
    uint64_t shape[ZARR_MAX_RANK];
    zarr_selection *sel = NULL;
    zarr_error err = {0};
    zarr_tensor t;
    zarr_status st;

    for (int32_t d = 0; d < ndim; d++) {
        count[d] = one ? 1 : zarr_array_shape(a)[d];
        shape[d] = count[d];
    }
    zarr_tensor_host(&t, NULL, data, bytes, ndim, shape);
    fuzz_check(zarr_selection_box(&sel, ndim, zarr_array_shape(a), start, count, NULL) ==
               ZARR_OK);
    st = write ? zarr_array_write(a, sel, &t, NULL, &err)
               : zarr_array_read(a, sel, &t, NULL, &err);
    fuzz_check((st == ZARR_OK) == (err.message[0] == '\0') && st != ZARR_ERR_INTERNAL);
    zarr_selection_free(sel);
    return st;
}

/* A codec that computes may round an element: fuzz_numbers checks what comes back. */
static int fuzz_rounds(const zarr_array *a)
{
    static const char *const names[] = {"scale_offset", "cast_value", "bitround",
                                        "quantize",     "astype",     "fixedscaleoffset",
                                        "delta",        "packbits",   "zfp"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strstr(zarr_array_codecs(a), names[i]))
            return 1;
    return 0;
}

static void fuzz_array(zarr_array *a)
{
    const uint64_t item = zarr_dtype_item_bytes(zarr_array_dtype(a));
    const uint64_t bytes = fuzz_bytes(a);
    char *all = malloc(bytes ? bytes : 1), *one = calloc(2, item ? item : 1);
    zarr_error err = {0};
    int n = 0;

    if (bytes) {
        const zarr_status whole = fuzz_io(a, 0, all, bytes, 0);

        if (fuzz_io(a, 0, one, item, 1) == ZARR_OK && whole == ZARR_OK)
            fuzz_check(memcmp(all, one, item) == 0);
        if (zarr_array_list_blocks(a, ZARR_BLOCKS_CHUNKS, fuzz_ignore_chunk, &n, NULL,
                                   &err))
            fuzz_check(err.message[0] != '\0');
        if (zarr_array_verify(a, fuzz_ignore_fault, NULL, NULL, &err))
            fuzz_check(err.message[0] != '\0');
        memset(one, 1, item);
        if (fuzz_io(a, 1, one, item, 1) == ZARR_OK) {
            fuzz_check(fuzz_io(a, 0, one + item, item, 1) == ZARR_OK);
            fuzz_check(fuzz_rounds(a) || memcmp(one, one + item, item) == 0);
        }
    }
    free(one);
    free(all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = memchr(data, 0, size);
    uint64_t origin[ZARR_MAX_RANK] = {0};
    zarr_store *store = NULL;
    zarr_array *a = NULL;

    if (!end)
        return 0;
    fuzz_check(zarr_store_open(&store, fuzz_ctx, "memory:", NULL, NULL) == ZARR_OK);
    fuzz_check(zarr_store_put(store, "zarr.json", data, (uint64_t)(end - data), NULL,
                              NULL) == ZARR_OK);
    if (zarr_array_open(&a, store, "", NULL, NULL) == ZARR_OK) {
        if (zarr_array_block_write_encoded(a, origin, end + 1,
                                           (uint64_t)(data + size - end - 1), NULL,
                                           NULL) == ZARR_OK)
            fuzz_array(a);
    }
    zarr_array_free(a);
    zarr_store_free(store);
    return 0;
}
