/*
 * fuzz/fuzz_objects.h - the body of the targets for elements of variable length:
 * fuzz_dec_<codec>.c lists codecs with their data types and includes this. The first
 * input byte picks a codec and a shape; the rest is an encoded chunk. What decodes comes
 * back the same.
 */
#ifndef FUZZ_FORMAT /* v2's object codecs, which refuse what is no text */
#    define FUZZ_FORMAT  2
#    define FUZZ_REFUSES true
#    define FUZZ_DIMS                                                                    \
        {1, 0}, {3, 0}, {2, 3, 0}, {300, 0},                                             \
        {                                                                                \
            2, 1, 2, 0                                                                   \
        }
#endif
#include "fuzz.h"
#include "unit/impl/impl_test.h"

static const uint64_t fuzz_dims[][4] = {FUZZ_DIMS};

enum {
    FUZZ_SHAPES = ZR_COUNT(fuzz_dims)
};

static const char *const fuzz_codecs[] = {FUZZ_CODECS};
static const char *const fuzz_dtypes[] = {FUZZ_DTYPES}; /* of the codec at that place */

static struct impl_env fuzz_env;
static struct impl_chain fuzz_chain[ZR_COUNT(fuzz_codecs)][FUZZ_SHAPES];
static struct zr_buffer fuzz_buffer[2][ZR_UNSIZED_BUFFERS];

static void fuzz_check(bool ok)
{
    if (!ok)
        __builtin_trap();
}

static void fuzz_open(void)
{
    fuzz_check(impl_env_open(&fuzz_env, NULL, NULL) == ZARR_OK);
    for (size_t k = 0; k < ZR_COUNT(fuzz_codecs); k++)
        for (size_t i = 0; i < FUZZ_SHAPES; i++) {
            char text[512];
            const struct impl_chain_args args = {.format = FUZZ_FORMAT,
                                                 .codecs = text,
                                                 .dtype = fuzz_dtypes[k],
                                                 .dims = fuzz_dims[i]};

            (void)snprintf(text, sizeof text, "[%s]", fuzz_codecs[k]);
            fuzz_check(impl_chain_open(&fuzz_chain[k][i], &fuzz_env, &args, NULL) ==
                       ZARR_OK);
        }
}

static zarr_status fuzz_grow(const struct zr_program *p, int turn, const zarr_memory *src,
                             const zarr_memory *dst, zarr_memory *out, zarr_error *err)
{
    struct zr_unsized g = {.ts = &fuzz_env.threads, .buffer = fuzz_buffer[turn]};

    return p->encode ? zr_unsized_encode(p, &g, src, dst, out, err)
                     : zr_unsized_decode(p, &g, src, dst, out, err);
}

/* What was reserved for a chunk of no known size, its input explains: zstd's blocks make
 * 128 KiB of four bytes, and room grows fourfold. */
static void fuzz_check_room(size_t size)
{
    for (size_t i = 0; i < ZR_COUNT(fuzz_buffer[0]); i++)
        fuzz_check(fuzz_buffer[0][i].bytes <= ZR_BUFFER_KEEPS ||
                   fuzz_buffer[0][i].bytes <= (size + 4) << 18);
    for (size_t i = 0; i < ZR_COUNT(fuzz_buffer[0]); i++)
        zr_buffer_trim(&fuzz_buffer[0][i], &fuzz_env.threads);
}

/* Decoding again reuses what the thread keeps, so the first result is kept by value. */
static void fuzz_round_trip(const struct impl_chain *c, const zarr_vlen *items, size_t n)
{
    const zarr_memory in = zr_mem_of_host((void *)(uintptr_t)items, n * sizeof *items);
    zarr_vlen *again = malloc(n * sizeof *again), *kept = malloc(n * sizeof *kept);
    const zarr_memory room = zr_mem_of_host(again, n * sizeof *again);
    zarr_memory enc = {0}, out = {0};

    fuzz_check(again && kept);
    for (size_t i = 0; i < n; i++) {
        void *copy = malloc((size_t)items[i].bytes + 1);

        fuzz_check(copy != NULL);
        if (items[i].bytes)
            memcpy(copy, items[i].data, (size_t)items[i].bytes);
        kept[i] = (zarr_vlen){copy, items[i].bytes};
    }
    fuzz_check(fuzz_grow(c->encode, 1, &in, NULL, &enc, NULL) == ZARR_OK);
    fuzz_check(fuzz_grow(c->decode, 1, &enc, &room, &out, NULL) == ZARR_OK);
    for (size_t i = 0; i < n; i++) {
        fuzz_check(again[i].bytes == kept[i].bytes);
        fuzz_check(!kept[i].bytes ||
                   memcmp(again[i].data, kept[i].data, (size_t)kept[i].bytes) == 0);
        free((void *)(uintptr_t)kept[i].data);
    }
    free(kept);
    free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct impl_chain *c = NULL;
    zarr_vlen *items = NULL;
    uint8_t *copy = NULL;
    zarr_memory src, room, out = {0};
    zarr_error err = {0};
    zarr_status st = ZARR_OK;
    size_t n = 0;

    if (!fuzz_chain[0][0].chain)
        fuzz_open();
    if (size < 1)
        return 0;
    c = &fuzz_chain[data[0] / FUZZ_SHAPES % ZR_COUNT(fuzz_codecs)][data[0] % FUZZ_SHAPES];
    n = (size_t)c->decode->decoded_bytes / sizeof *items;
    items = malloc(n * sizeof *items);
    copy = malloc(size);
    fuzz_check(items && copy);
    memcpy(copy, data + 1, size - 1);
    src = zr_mem_of_host(copy, size - 1);
    room = zr_mem_of_host(items, n * sizeof *items);
    st = fuzz_grow(c->decode, 0, &src, &room, &out, &err);
    if (st == ZARR_OK) {
        fuzz_check(out.bytes == n * sizeof *items);
        fuzz_round_trip(c, items, n);
    } else {
        fuzz_check(st == ZARR_ERR_CORRUPT || st == ZARR_ERR_LIMIT ||
                   (FUZZ_REFUSES && st == ZARR_ERR_UNSUPPORTED));
        fuzz_check(err.message[0] != '\0');
    }
    fuzz_check_room(size);
    free(copy);
    free(items);
    return 0;
}
