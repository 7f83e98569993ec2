/*
 * fuzz/fuzz_dec.h - the body of the decoder targets: fuzz_dec_<codec>.c names the
 * v2 codecs that FUZZ_CODECS lists and includes this. The first input byte picks
 * a codec of the list and a decoded size, the rest is an encoded chunk. Decoding
 * gives an error or the exact size; what decodes must survive a round trip, unless
 * FUZZ_LOSSY is 1.
 */
#include "fuzz.h"
#include "unit/impl/impl_test.h"

#ifndef FUZZ_LOSSY
#    define FUZZ_LOSSY 0
#endif

#ifndef FUZZ_FORMAT
#    define FUZZ_FORMAT 2
#endif
#ifdef FUZZ_DTYPES /* of the codec at that place, or one for all: they take arrays */
#    define FUZZ_CHAIN "[%s]"
#else
#    define FUZZ_DTYPES "uint8"
#    define FUZZ_CHAIN  "[{\"id\":\"bytes\"},%s]"
#endif

static const char *const fuzz_codecs[] = {FUZZ_CODECS};
static const char *const fuzz_dtypes[] = {FUZZ_DTYPES};
static const uint64_t fuzz_sizes[] = {8, 64, 1000, 4096, 70000};

static struct impl_env fuzz_env;
static struct impl_chain fuzz_chain[ZR_COUNT(fuzz_codecs)][ZR_COUNT(fuzz_sizes)];

static void fuzz_check(bool ok)
{
    if (!ok)
        __builtin_trap();
}

static void fuzz_open(void)
{
    fuzz_check(impl_env_open(&fuzz_env, NULL, NULL) == ZARR_OK);
    for (size_t k = 0; k < ZR_COUNT(fuzz_codecs); k++)
        for (size_t i = 0; i < ZR_COUNT(fuzz_sizes); i++) {
            const uint64_t dims[] = {fuzz_sizes[i], 0};
            char text[512];
            const struct impl_chain_args args = {
                .format = FUZZ_FORMAT,
                .codecs = text,
                .dtype = fuzz_dtypes[k % ZR_COUNT(fuzz_dtypes)],
                .dims = dims};

            (void)snprintf(text, sizeof text, FUZZ_CHAIN, fuzz_codecs[k]);
            fuzz_check(impl_chain_open(&fuzz_chain[k][i], &fuzz_env, &args, NULL) ==
                       ZARR_OK);
        }
}

static void fuzz_round_trip(const struct impl_chain *c, const uint8_t *dec, size_t n)
{
    uint8_t *enc = NULL, *again = NULL;
    size_t enc_bytes = 0, again_bytes = 0;

    fuzz_check(impl_run(c->encode, &fuzz_env, dec, n, &enc, &enc_bytes, NULL) == ZARR_OK);
    fuzz_check(impl_run(c->decode, &fuzz_env, enc, enc_bytes, &again, &again_bytes,
                        NULL) == ZARR_OK);
    fuzz_check(again_bytes == n && memcmp(again, dec, n) == 0);
    free(enc);
    free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct impl_chain *c = NULL;
    uint8_t *dec = NULL;
    size_t n = 0;
    zarr_status st = ZARR_OK;
    zarr_error err = {0};

    if (!fuzz_chain[0][0].chain)
        fuzz_open();
    if (size < 1)
        return 0;
    c = &fuzz_chain[data[0] / ZR_COUNT(fuzz_sizes) % ZR_COUNT(fuzz_codecs)]
                   [data[0] % ZR_COUNT(fuzz_sizes)];
    st = impl_run(c->decode, &fuzz_env, data + 1, size - 1, &dec, &n, &err);
    if (st == ZARR_OK) {
        fuzz_check(n == c->decode->decoded_bytes);
        if (!FUZZ_LOSSY)
            fuzz_round_trip(c, dec, n);
    } else {
        fuzz_check(st == ZARR_ERR_CORRUPT || st == ZARR_ERR_UNSUPPORTED ||
                   st == ZARR_ERR_LIMIT); /* of a decoder's memory */
        fuzz_check(err.message[0] != '\0');
    }
    free(dec);
    return 0;
}
