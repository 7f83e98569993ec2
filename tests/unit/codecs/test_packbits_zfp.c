/*
 * unit/codecs/test_packbits_zfp.c - packbits and zfp: the bits given in the registry's
 * texts, round trips of every shape and mode, bounds compared with the library's, damaged
 * bytes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#if defined(ZR_HAVE_ZFP)
#    include <zfp.h>
#endif

#include "unit/impl/impl_test.h"

static struct impl_env env;

static int open_env(void **state)
{
    ZR_UNUSED(state);
    return impl_env_open(&env, NULL, NULL) == ZARR_OK ? 0 : -1;
}

static int close_env(void **state)
{
    ZR_UNUSED(state);
    impl_env_close(&env);
    return 0;
}

static void open_codec(struct impl_chain *c, const char *codec, const char *dtype,
                       const uint64_t *dims)
{
    char text[512];
    const struct impl_chain_args args = {.format = strstr(codec, "\"id\"") ? 2 : 3,
                                         .codecs = text,
                                         .dtype = dtype,
                                         .dims = dims};
    zarr_error err = {0};

    (void)snprintf(text, sizeof text, "[%s]", codec);
    if (impl_chain_open(c, &env, &args, &err) != ZARR_OK)
        fail_msg("%s of %s: %s", codec, dtype, err.message);
}

/* Encodes, compares with `want` if it is given, decodes, and compares with `back`.
 * NOLINT(function-size): each call is a row of what goes in and comes out */
static void there_and_back(const char *codec, const char *dtype, uint64_t n,
                           const void *src, size_t src_bytes, const void *want,
                           size_t want_bytes, const void *back)
{
    const uint64_t dims[] = {n, 0};
    struct impl_chain c;
    uint8_t *enc = NULL, *dec = NULL;
    size_t enc_bytes = 0, dec_bytes = 0;
    zarr_error err = {0};

    open_codec(&c, codec, dtype, dims);
    if (impl_run(c.encode, &env, src, src_bytes, &enc, &enc_bytes, &err) != ZARR_OK)
        fail_msg("%s: %s", codec, err.message);
    assert_int_equal(enc_bytes, want_bytes);
    assert_memory_equal(enc, want, want_bytes);
    if (impl_run(c.decode, &env, enc, enc_bytes, &dec, &dec_bytes, &err) != ZARR_OK)
        fail_msg("%s: %s", codec, err.message);
    assert_int_equal(dec_bytes, src_bytes);
    assert_memory_equal(dec, back, dec_bytes);
    free(enc);
    free(dec);
    impl_chain_close(&c);
}

#define PACKBITS(members) "{\"name\":\"packbits\",\"configuration\":{" members "}}"

static void packbits_layout(void **state)
{
    static const uint8_t bools[] = {1, 0, 0, 1, 1, 0, 1, 0, 1};
    static const uint16_t u16[] = {0xFFFF, 0x0008, 0x1234},
                          u16_back[] = {0x0FF8, 8, 0x230};
    static const int16_t i16[] = {-1, 8, 0x0900}, i16_back[] = {-8, 8, -0x700};
    static const uint8_t int4[] = {0xFF, 7, 0xF8}, uint2[] = {3, 2, 1, 0, 3};
    static const float complex64[] = {1.0F, -2.0F};

    ZR_UNUSED(state);
    there_and_back(PACKBITS(""), "bool", 9, bools, 9, "\x59\x01", 2, bools);
    there_and_back(PACKBITS("\"padding_encoding\":\"first_byte\""), "bool", 9, bools, 9,
                   "\x07\x59\x01", 3, bools);
    there_and_back(PACKBITS("\"padding_encoding\":\"end_byte\""), "bool", 8, bools, 8,
                   "\x59\x00", 2, bools);
    /* bits 3 to 11: 1ff, 001, 046 */
    there_and_back(PACKBITS("\"first_bit\":3,\"last_bit\":11"), "uint16", 3, u16, 6,
                   "\xFF\x03\x18\x01", 4, u16_back);
    /* 1ff, 001, 120: the last one decodes as -0x700 */
    there_and_back(PACKBITS("\"start_bit\":3,\"end_bit\":11,\"padding_encoding\":"
                            "\"last_byte\""),
                   "int16", 3, i16, 6, "\xFF\x03\x80\x04\x05", 5, i16_back);
    there_and_back(PACKBITS(""), "int4", 3, int4, 3, "\x7F\x08", 2, int4);
    there_and_back(PACKBITS(""), "uint2", 5, uint2, 5, "\x1B\x03", 2, uint2);
    there_and_back(PACKBITS(""), "float6_e2m3fn", 4, uint2, 4, "\x83\x10\x00", 3, uint2);
    there_and_back(PACKBITS("\"first_bit\":23,\"last_bit\":31"), "complex64", 1,
                   complex64, 8, "\x7F\x00\x03", 3, complex64);
    there_and_back("{\"name\":\"numcodecs.packbits\"},\"bytes\"", "bool", 9, bools, 9,
                   "\x07\x9A\x80", 3, bools);
    there_and_back("{\"id\":\"bytes\"},{\"id\":\"packbits\"}", "bool", 9, bools, 9,
                   "\x07\x9A\x80", 3, bools);
    there_and_back("{\"id\":\"bytes\"},{\"id\":\"packbits\"}", "bool", 8, bools, 8,
                   "\x00\x9A", 2, bools);
}

static void packbits_damage(void **state)
{
    static const struct {
        const char *codec, *enc;
        size_t bytes;
        const char *says;
    } cases[] = {
        {PACKBITS(""), "\1", 1, "packbits: 1 encoded bytes, expected 2"},
        {PACKBITS(""), "\1\2\3", 3, "packbits: 3 encoded bytes, expected 2"},
        {PACKBITS("\"padding_encoding\":\"first_byte\""), "\6\1\2", 3,
         "counts 6 padding bits, it has 7"},
        {PACKBITS("\"padding_encoding\":\"last_byte\""), "\1\1\0", 3,
         "counts 0 padding bits, it has 7"},
        {"{\"name\":\"numcodecs.packbits\"},\"bytes\"", "\0\1\2", 3,
         "counts 0 padding bits, it has 7"},
        {"{\"id\":\"bytes\"},{\"id\":\"packbits\"}", "\0\1\2", 3,
         "counts 0 padding bits, it has 7"},
        {"{\"id\":\"bytes\"},{\"id\":\"packbits\"}", "\7\1", 2,
         "packbits: 2 encoded bytes, expected 3"},
        {"{\"id\":\"bytes\"},{\"id\":\"packbits\"}", "", 0,
         "packbits: 0 encoded bytes, expected 3"},
    };
    const uint64_t dims[] = {9, 0};

    ZR_UNUSED(state);
    for (size_t i = 0; i < ZR_COUNT(cases); i++) {
        struct impl_chain c;
        uint8_t *dec = NULL;
        size_t n = 0;
        zarr_error err = {0};

        open_codec(&c, cases[i].codec, "bool", dims);
        assert_int_equal(
            impl_run(c.decode, &env, cases[i].enc, cases[i].bytes, &dec, &n, &err),
            ZARR_ERR_CORRUPT);
        if (!strstr(err.message, cases[i].says))
            fail_msg("%s: \"%s\"", cases[i].codec, err.message);
        impl_chain_close(&c);
    }
}

/* ---- zfp -------------------------------------------------------------------------- */

#if defined(ZR_HAVE_ZFP)
static const char *const zfp_codecs[] = {
    "{\"name\":\"zfp\",\"configuration\":{\"mode\":\"reversible\"}}",
    "{\"name\":\"zfp\",\"configuration\":{\"mode\":\"fixed_rate\",\"rate\":7.5}}",
    "{\"name\":\"zfp\",\"configuration\":{\"mode\":\"fixed_rate\",\"rate\":0.25}}",
    "{\"name\":\"zfp\",\"configuration\":{\"mode\":\"fixed_precision\",\"precision\":64}"
    "}",
    "{\"name\":\"zfp\",\"configuration\":{\"mode\":\"fixed_accuracy\",\"tolerance\":0}}",
    "{\"name\":\"zfp\",\"configuration\":{\"mode\":\"expert\",\"minbits\":700,"
    "\"maxbits\":"
    "9000,\"maxprec\":64,\"minexp\":-1100}}",
    "{\"name\":\"numcodecs.zfpy\",\"configuration\":{\"mode\":4}}",
    "{\"name\":\"numcodecs.zfpy\",\"configuration\":{\"mode\":2,\"rate\":12}}",
    "{\"name\":\"numcodecs.zfpy\",\"configuration\":{\"mode\":3,\"precision\":20}}",
};
static const char *const zfp_dtypes[] = {"int32", "int64",   "float32",  "float64",
                                         "uint8", "int16",   "uint64",   "int4",
                                         "uint2", "float16", "bfloat16", "float8_e4m3"};

static void zfp_items(uint8_t *p, const char *dtype, size_t n_bytes, uint64_t *seed)
{
    const bool small = dtype[0] == 'b' || zr_starts_with(dtype, "float1") ||
                       zr_starts_with(dtype, "float8");

    for (size_t i = 0; i < n_bytes; i++)
        p[i] = (uint8_t)(impl_random(seed) >> 20);
    for (size_t i = 0; small && i < n_bytes; i++)
        p[i] &= 0xB7; /* no infinity, no NaN */
    for (size_t i = 0; zr_streq(dtype, "int4") && i < n_bytes; i++)
        p[i] = (uint8_t)(p[i] & 8 ? p[i] | 0xF0 : p[i] & 0x0F);
    for (size_t i = 0; zr_streq(dtype, "uint2") && i < n_bytes; i++)
        p[i] &= 3;
    for (size_t i = 0; zr_streq(dtype, "float32") && i < n_bytes / 4; i++)
        ((float *)(void *)p)[i] = (float)(int64_t)(impl_random(seed) >> 40) / 128.0F;
    for (size_t i = 0; zr_streq(dtype, "float64") && i < n_bytes / 8; i++)
        ((double *)(void *)p)[i] = (double)(int64_t)(impl_random(seed) >> 20) / 128.0;
    for (size_t i = 0; zr_streq(dtype, "uint64") && i < n_bytes / 8; i++)
        p[8 * i + (ZR_HOST_IS_LITTLE ? 7 : 0)] &= 0x7F;
}

static void zfp_one(const char *codec, const char *dtype, const uint64_t *dims,
                    uint64_t *seed)
{
    struct impl_chain c;
    uint8_t *src = NULL, *enc = NULL, *dec = NULL, *again = NULL;
    size_t bytes = 0, n = 0, back = 0;
    zarr_error err = {0};

    open_codec(&c, codec, dtype, dims);
    bytes = (size_t)c.decode->decoded_bytes;
    src = malloc(bytes);
    zfp_items(src, dtype, bytes, seed);
    if (impl_run(c.encode, &env, src, bytes, &enc, &n, &err) != ZARR_OK ||
        impl_run(c.decode, &env, enc, n, &dec, &back, &err) != ZARR_OK)
        fail_msg("%s of %s: %s", codec, dtype, err.message);
    assert_true(n <= c.encode->encoded_bound);
    assert_int_equal(n % 8, 0);
    if (strstr(codec, "reversible"))
        assert_memory_equal(dec, src, bytes);
    for (size_t cut = 1; cut < n; cut += 1 + n / 9) {
        /* the zeros behind it can happen to be a valid end */
        if (impl_run(c.decode, &env, enc, cut, &again, &back, &err) != ZARR_OK)
            assert_true(err.code == ZARR_ERR_CORRUPT);
        free(again);
    }
    for (int turn = 0; turn < 30; turn++) {
        enc[impl_random(seed) % n] ^= (uint8_t)(1U << (impl_random(seed) & 7));
        if (impl_run(c.decode, &env, enc, n, &again, &back, &err) != ZARR_OK)
            assert_true(err.code == ZARR_ERR_CORRUPT);
        free(again);
    }
    free(src);
    free(enc);
    free(dec);
    impl_chain_close(&c);
}

static void zfp_round_trips(void **state)
{
    static const uint64_t shapes[][5] = {
        {1},       {5},       {64},         {3, 7},       {16, 16},    {1, 1, 1},
        {4, 5, 6}, {9, 2, 3}, {1, 2, 1, 9}, {4, 4, 4, 4}, {3, 5, 2, 6}};
    uint64_t seed = 77;

    ZR_UNUSED(state);
    for (size_t k = 0; k < ZR_COUNT(zfp_codecs); k++)
        for (size_t t = 0; t < (strstr(zfp_codecs[k], "zfpy") ? 4 : ZR_COUNT(zfp_dtypes));
             t++)
            for (size_t i = 0; i < ZR_COUNT(shapes); i++)
                zfp_one(zfp_codecs[k], zfp_dtypes[t], shapes[i], &seed);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packbits_layout),
        cmocka_unit_test(packbits_damage),
#if defined(ZR_HAVE_ZFP)
        cmocka_unit_test(zfp_round_trips),
#endif
    };

    return cmocka_run_group_tests(tests, open_env, close_env);
}
