/*
 * fuzz/fuzz_dec_vlen.c - elements of variable length. The first input byte picks text or
 * bytes, a number of elements, whether zstd is behind, and an index; the rest is an
 * encoded chunk. What decodes lies inside the encoded bytes and comes back the same.
 */
#include "fuzz.h"
#include "unit/impl/impl_test.h"

enum {
    FUZZ_CHAINS = 6,
    FUZZ_COUNTS = 4
};

#define FUZZ_INDEXED(index, data, more)                                                  \
    "[{\"name\":\"zarrs.vlen\",\"configuration\":{\"index_data_type\":\"uint32\","       \
    "\"index_codecs\":[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}"    \
    "}" index "],\"data_codecs\":[\"bytes\"" data "]" more "}}]"

static struct impl_env fuzz_env;
static struct impl_chain fuzz_chain[FUZZ_CHAINS][FUZZ_COUNTS];
static struct zr_buffer fuzz_buffer[2][3];

static void fuzz_check(bool ok)
{
    if (!ok)
        __builtin_trap();
}

static void fuzz_open(void)
{
    static const uint64_t counts[FUZZ_COUNTS] = {1, 2, 7, 300};

    fuzz_check(impl_env_open(&fuzz_env, NULL, NULL) == ZARR_OK);
    for (size_t k = 0; k < FUZZ_CHAINS; k++)
        for (size_t i = 0; i < FUZZ_COUNTS; i++) {
            const uint64_t dims[] = {counts[i], 0};
            const struct impl_chain_args args = {
                .format = 3,
                .codecs = k == 0   ? "[\"vlen-utf8\"]"
                          : k == 1 ? "[\"vlen-bytes\"]"
                          : k == 2 ? "[\"vlen-utf8\",{\"name\":\"zstd\"}]"
                          : k == 3 ? "[\"vlen-bytes\",{\"name\":\"zstd\"}]"
                          : k == 4 ? FUZZ_INDEXED("", "", "")
                                   : FUZZ_INDEXED(",\"crc32c\"", ",\"zstd\"",
                                                  ",\"index_location\":\"end\""),
                .dtype = k % 2 ? "bytes" : "string",
                .dims = dims};

            fuzz_check(impl_chain_open(&fuzz_chain[k][i], &fuzz_env, &args, NULL) ==
                       ZARR_OK);
        }
}

static zarr_status fuzz_grow(const struct zr_program *p, int turn, const zarr_mem *src,
                             const zarr_mem *dst, zarr_mem *out, zarr_error *err)
{
    struct zr_growth g = {.ts = &fuzz_env.threads, .buffer = fuzz_buffer[turn]};

    return p->encode ? zr_grow_encode(p, &g, src, dst, out, err)
                     : zr_grow_decode(p, &g, src, dst, out, err);
}

static void fuzz_round_trip(const struct impl_chain *c, const zarr_vlen *items, size_t n)
{
    const zarr_mem in = zr_mem_of_host((void *)(uintptr_t)items, n * sizeof *items);
    zarr_vlen *again = malloc(n * sizeof *again);
    const zarr_mem room = zr_mem_of_host(again, n * sizeof *again);
    zarr_mem enc = {0}, out = {0};

    fuzz_check(again != NULL);
    fuzz_check(fuzz_grow(c->encode, 1, &in, NULL, &enc, NULL) == ZARR_OK);
    fuzz_check(fuzz_grow(c->decode, 1, &enc, &room, &out, NULL) == ZARR_OK);
    for (size_t i = 0; i < n; i++)
        fuzz_check(again[i].bytes == items[i].bytes &&
                   memcmp(again[i].data, items[i].data, (size_t)items[i].bytes) == 0);
    free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct impl_chain *c = NULL;
    zarr_vlen *items = NULL;
    uint8_t *copy = NULL;
    zarr_mem src, room, out = {0};
    zarr_error err = {0};
    zarr_status st = ZARR_OK;
    size_t n = 0;

    if (!fuzz_chain[0][0].chain)
        fuzz_open();
    if (size < 1)
        return 0;
    c = &fuzz_chain[data[0] / FUZZ_COUNTS % FUZZ_CHAINS][data[0] % FUZZ_COUNTS];
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
        fuzz_check(st == ZARR_ERR_CORRUPT || st == ZARR_ERR_LIMIT);
        fuzz_check(err.message[0] != '\0');
    }
    free(copy);
    free(items);
    return 0;
}
