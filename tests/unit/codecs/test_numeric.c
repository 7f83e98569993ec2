/*
 * unit/codecs/test_numeric.c - chunks through the codecs that compute: samples of
 * bitround, the loops of cast_value compared with the exact cast of single numbers,
 * scale_offset at the limits of integers, and the element that an error names.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "codecs/cast/cast_loop.h"
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

#define ONE(name, text)                                                                  \
    "[{\"name\":\"" name "\",\"configuration\":{" text                                   \
    "}},{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}]"

static void open_chain(struct impl_chain *c, const char *codecs, const char *dtype,
                       uint64_t n)
{
    const uint64_t dims[] = {n, 0};
    const struct impl_chain_args args = {
        .format = 3, .codecs = codecs, .dtype = dtype, .dims = dims};
    zarr_error err = {0};

    if (impl_chain_open(c, &env, &args, &err) != ZARR_OK)
        fail_msg("%s: %s", codecs, err.message);
}

/* Converts elements in memory to those that ONE() stores. */
static void store_little(const char *dtype, void *stored, const void *elements,
                         size_t bytes)
{
    const zarr_dtype *t = NULL;
    uint32_t unit;

    assert_int_equal(zr_dtype_find(&env.codec.dtypes, dtype, &t, NULL, NULL), ZARR_OK);
    unit = zarr_dtype_swap_bytes(t);
    if (ZR_HOST_IS_LITTLE || unit < 2)
        memcpy(stored, elements, bytes);
    else
        zr_byteswap(stored, elements, bytes / unit, unit);
}

static void check_encoded(const char *codecs, const char *dtype, const void *in,
                          const void *out, size_t n, size_t bytes)
{
    struct impl_chain c;
    uint8_t *enc = NULL, stored[64];
    size_t enc_bytes = 0;
    zarr_error err = {0};

    open_chain(&c, codecs, dtype, n);
    store_little(dtype, stored, out, n * bytes);
    if (impl_run(c.encode, &env, in, n * bytes, &enc, &enc_bytes, &err) != ZARR_OK)
        fail_msg("%s: %s", codecs, err.message);
    assert_int_equal(enc_bytes, n * bytes);
    assert_memory_equal(enc, stored, enc_bytes);
    free(enc);
    enc = NULL;
    if (c.decode->raw) /* decoding changes nothing */
        assert_memory_equal(stored, out, n * bytes);
    else if (impl_run(c.decode, &env, stored, n * bytes, &enc, &enc_bytes, &err))
        fail_msg("%s: %s", codecs, err.message);
    else
        assert_memory_equal(enc, out, n * bytes);
    assert_true(c.decode->raw || !ZR_HOST_IS_LITTLE);
    free(enc);
    impl_chain_close(&c);
}

static void bitround(void **state)
{
    ZR_UNUSED(state);
    check_encoded(ONE("bitround", "\"keepbits\":3"), "uint8",
                  (uint8_t[]){123, 208, 209, 255, 0, 7, 8, 9},
                  (uint8_t[]){128, 192, 224, 224, 0, 7, 8, 8}, 8, 1);
    check_encoded(ONE("bitround", "\"keepbits\":3"), "int64",
                  (int64_t[]){123, 208, 209, INT64_MIN, 0},
                  (int64_t[]){128, 192, 224, INT64_MIN, 0}, 5, 8);
    check_encoded(ONE("bitround", "\"keepbits\":3"), "numpy.datetime64[s]",
                  (int64_t[]){123, INT64_MIN}, (int64_t[]){128, INT64_MIN}, 2, 8);
    check_encoded(ONE("bitround", "\"keepbits\":0"), "uint16",
                  (uint16_t[]){0, 1, 3, 4, 65535}, (uint16_t[]){0, 0, 4, 0, 0}, 4, 2);
    check_encoded(
        ONE("bitround", "\"keepbits\":1"), "float32",
        (uint32_t[]){0x3fa00000, 0x3fe00000, 0x7fffffff, 0x7f800000, 0x7f800001},
        (uint32_t[]){0x3f800000, 0x40000000, 0x7fffffff, 0x7f800000, 0x7f800001}, 5, 4);
    check_encoded(ONE("bitround", "\"keepbits\":23"), "float32", (uint32_t[]){0x3fa00001},
                  (uint32_t[]){0x3fa00001}, 1, 4);
    check_encoded(ONE("bitround", "\"keepbits\":1"), "complex64",
                  (uint32_t[]){0x3fa00000, 0x3fe00000},
                  (uint32_t[]){0x3f800000, 0x40000000}, 1, 8);
}

/* ---- cast_value ---------------------------------------------------------- */

static void cast_block(const char *config, const char *dtype, bool encode)
{
    enum {
        N = 1100
    };
    struct zr_chain *chain = NULL;
    struct zr_cast_loop run;
    const zarr_dtype *type = NULL;
    static uint8_t src[8 * N], dst[8 * N];
    uint64_t seed = 1234567;
    char text[256];
    size_t bad = 0;

    (void)snprintf(text, sizeof text,
                   "[{\"name\":\"cast_value\",\"configuration\":{%s}},\"bytes\"]",
                   config);
    assert_int_equal(codec_env_parse(&chain, &env.codec, 3, text, NULL, NULL), ZARR_OK);
    assert_int_equal(zr_dtype_find(&env.codec.dtypes, dtype, &type, NULL, NULL), ZARR_OK);
    assert_int_equal(zr_cast_loop_open(&run, &chain->codec[0], type, encode, NULL, NULL),
                     ZARR_OK);
    for (size_t i = 0; i < N; i++) { /* mostly near zero, so that whole blocks succeed */
        const struct zr_number small = {
            .kind = ZARR_KIND_INT, .bytes = 1, .bits = 8, .parts = 1};
        const struct zr_scalar v =
            zr_scalar_from_bits(&small, impl_random(&seed) >> 40 & 63);
        uint64_t bits = i > 600 && i % 97 == 0 ? impl_random(&seed) : 0;

        if (!bits)
            (void)zr_scalar_cast(&v, &run.cast.from, ZR_ROUND_EVEN, ZR_RANGE_CLAMP,
                                 &bits);
        zr_number_put(&run.cast.from, src + i * run.cast.from.bytes,
                      bits & UINT64_MAX >> (64 - run.cast.from.bits));
    }
    for (size_t at = 0; at < N; at = bad + 1) {
        const size_t n = N - at;
        const enum zr_cast_result result =
            zr_cast_all(&run, dst, src + at * run.cast.from.bytes, n, &bad);
        const size_t done = result == ZR_CAST_OK ? n : bad;

        for (size_t i = 0; i < n && i <= done; i++) {
            uint64_t bits = 0;
            const enum zr_cast_result one = zr_cast_one(
                &run.cast,
                zr_number_bits(&run.cast.from, src + (at + i) * run.cast.from.bytes),
                &bits);

            assert_int_equal(one, i < done ? ZR_CAST_OK : result);
            if (i < done &&
                zr_number_bits(&run.cast.to, dst + i * run.cast.to.bytes) != bits)
                fail_msg("%s of %s, element %zu: %#llx, not %#llx", config, dtype, at + i,
                         (unsigned long long)zr_number_bits(&run.cast.to,
                                                            dst + i * run.cast.to.bytes),
                         (unsigned long long)bits);
        }
        if (result == ZR_CAST_OK)
            break;
        bad += at;
    }
    zr_cast_loop_close(&run);
    zr_chain_free(chain);
}

/* Loops and the cast of single numbers agree for every pair of types, rounding and
 * range. */
static void casts_agree(void **state)
{
    static const char *const types[] = {
        "int4",          "int8",          "int16",    "int32",  "int64",
        "uint8",         "uint16",        "uint32",   "uint64", "float16",
        "float32",       "float64",       "bfloat16", "uint2",  "float8_e4m3fn",
        "float4_e2m1fn", "float8_e8m0fnu"};
    static const char *const how[] = {
        "",
        ",\"out_of_range\":\"clamp\",\"rounding\":\"towards-zero\"",
        ",\"out_of_range\":\"clamp\",\"rounding\":\"towards-positive\"",
        ",\"out_of_range\":\"clamp\",\"rounding\":\"towards-negative\"",
        ",\"out_of_range\":\"clamp\",\"rounding\":\"nearest-away\"",
        ",\"out_of_range\":\"wrap\""};

    ZR_UNUSED(state);
    for (size_t a = 0; a < ZR_COUNT(types); a++)
        for (size_t b = 0; b < ZR_COUNT(types); b++)
            for (size_t h = 0; h < ZR_COUNT(how); h++) {
                char config[128];

                if (h == 5 && strstr(types[b], "float"))
                    continue;
                (void)snprintf(config, sizeof config, "\"data_type\":\"%s\"%s", types[b],
                               how[h]);
                cast_block(config, types[a], true);
                cast_block(config, types[a], false);
            }
}

static void cast_errors(void **state)
{
    struct impl_chain c;
    double v[1000];
    uint8_t *enc = NULL;
    size_t n = 0;
    zarr_error err = {0};

    ZR_UNUSED(state);
    for (size_t i = 0; i < 1000; i++)
        v[i] = (double)(i % 100);
    open_chain(&c, ONE("cast_value", "\"data_type\":\"int8\""), "float64", 1000);
    assert_int_equal(impl_run(c.encode, &env, v, sizeof v, &enc, &n, &err), ZARR_OK);
    free(enc);
    v[700] = 200;
    assert_int_equal(impl_run(c.encode, &env, v, sizeof v, &enc, &n, &err),
                     ZARR_ERR_INVALID);
    assert_non_null(strstr(err.message, "element 700 of the chunk is out of"));
    impl_chain_close(&c);
}

/* ---- scale_offset -------------------------------------------------------- */

static void scale_ends(void **state)
{
    static const struct {
        const char *config;
        int64_t in;
        bool ok;
        int64_t out;
    } cases[] = {
        {"\"scale\":2", INT64_MAX / 2, true, INT64_MAX - 1},
        {"\"scale\":2", INT64_MAX / 2 + 1, false, 0},
        {"\"offset\":-1", INT64_MAX, false, 0},
        {"\"offset\":1", INT64_MIN, false, 0},
        {"\"scale\":-1", INT64_MIN, false, 0},
        {"\"scale\":-1", INT64_MAX, true, -INT64_MAX},
        {"\"offset\":9223372036854775807,\"scale\":-3", INT64_MAX - 7, true, 21},
    };

    ZR_UNUSED(state);
    for (size_t i = 0; i < ZR_COUNT(cases); i++) {
        struct impl_chain c;
        uint8_t *enc = NULL, *dec = NULL, stored[8];
        size_t n = 0;
        char text[256];

        (void)snprintf(text, sizeof text, ONE("scale_offset", "%s"), cases[i].config);
        open_chain(&c, text, "int64", 1);
        assert_int_equal(impl_run(c.encode, &env, &cases[i].in, 8, &enc, &n, NULL),
                         cases[i].ok ? ZARR_OK : ZARR_ERR_INVALID);
        if (enc) {
            store_little("int64", stored, &cases[i].out, 8);
            assert_memory_equal(enc, stored, 8);
            assert_int_equal(impl_run(c.decode, &env, enc, 8, &dec, &n, NULL), ZARR_OK);
            assert_memory_equal(dec, &cases[i].in, 8);
        }
        free(enc);
        free(dec);
        impl_chain_close(&c);
    }
}

/* Transposes in front of a reshape become part of the copy; those behind it are
 * stages. */
static void shapes(void **state)
{
    struct impl_chain c;
    const uint64_t dims[] = {2, 3, 4, 0};
    struct impl_chain_args args = {
        .format = 3,
        .dtype = "int16",
        .dims = dims,
        .codecs = "[{\"name\":\"transpose\",\"configuration\":{\"order\":[2,0,1]}},"
                  "{\"name\":\"reshape\",\"configuration\":{\"shape\":[-1]}},"
                  "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}]"};

    ZR_UNUSED(state);
    assert_int_equal(impl_chain_open(&c, &env, &args, NULL), ZARR_OK);
    assert_true(c.decode->raw && c.encode->raw);
    assert_int_equal(c.decode->order[0], 2);
    assert_int_equal(c.decode->swap_bytes, ZR_HOST_IS_LITTLE ? 2 : 0);
    impl_chain_close(&c);
    args.codecs = "[{\"name\":\"reshape\",\"configuration\":{\"shape\":[[0,1],[2]]}},"
                  "{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}},"
                  "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}]";
    assert_int_equal(impl_chain_open(&c, &env, &args, NULL), ZARR_OK);
    assert_int_equal(c.decode->n, ZR_HOST_IS_LITTLE ? 1 : 2);
    impl_chain_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bitround),    cmocka_unit_test(casts_agree),
        cmocka_unit_test(cast_errors), cmocka_unit_test(scale_ends),
        cmocka_unit_test(shapes),
    };

    return cmocka_run_group_tests(tests, open_env, close_env);
}
