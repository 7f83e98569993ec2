/*
 * unit/codecs/test_filters.c - numcodecs' filters. Chunks are as numcodecs 0.17 writes
 * and reads them: as a filter of v2 (stored bytes to stored bytes) and as an
 * array->array codec of v3 (elements in the byte order of the machine). Also factors
 * that numcodecs refuses, single elements through array->array codecs, and programs
 * whose elements have unused bits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/impl/impl_test.h"

static struct impl_env env;
static zarr_error error;

static int open_env(void **state)
{
    ZR_UNUSED(state);
    return impl_env_open(&env, NULL, &error) == ZARR_OK ? 0 : -1;
}

static int close_env(void **state)
{
    ZR_UNUSED(state);
    impl_env_close(&env);
    return 0;
}

static size_t from_hex(uint8_t *out, const char *hex)
{
    const size_t n = strlen(hex) / 2;

    assert_true(n <= 32);
    for (size_t i = 0; i < n; i++) {
        unsigned v = 0;

        assert_int_equal(sscanf(hex + 2 * i, "%2x", &v), 1);
        out[i] = (uint8_t)v;
    }
    return n;
}

static void must_be(const struct zr_program *p, const uint8_t *from, size_t n,
                    const uint8_t *want, size_t want_bytes, const char *what)
{
    uint8_t *got = NULL;
    size_t bytes = 0;

    if (impl_run(p, &env, from, n, &got, &bytes, &error) != ZARR_OK)
        fail_msg("%s: %s", what, error.message);
    if (bytes != want_bytes || memcmp(got, want, bytes) != 0)
        for (size_t i = 0; i < bytes; i++)
            print_error("%02x%s", got[i], i + 1 < bytes ? "" : what);
    assert_int_equal(bytes, want_bytes);
    assert_memory_equal(got, want, bytes);
    free(got);
}

/* ---- samples ------------------------------------------------------------- */

/* Bytes in hex, in the byte order of dtype. back NULL: decoding gives the original
 * bytes. */
static const struct {
    const char *id, *config, *dtype, *plain, *stored, *back;
    bool v3; /* numcodecs also has it as an array->array codec */
} samples[] = {
    {"fixedscaleoffset",
     "\"offset\":100,\"scale\":10,\"dtype\":\"<i2\",\"astype\":\"<i4\"", "<i2",
     "640065006b005a00", "000000000a000000460000009cffffff", NULL, true},
    {"fixedscaleoffset",
     "\"offset\":100,\"scale\":10,\"dtype\":\"<i2\",\"astype\":\"|u1\"", "<i2",
     "640065006b005a00", "000a469c", "640065006b007300", true}, /* 156 / 10 */
    {"fixedscaleoffset", "\"offset\":-32768,\"scale\":3,\"dtype\":\"<i2\"", "<i2",
     "640065006b005a00", "2c812f8141810e81", "ba55bb55c155b055", true}, /* wraps */
    {"fixedscaleoffset",
     "\"offset\":100,\"scale\":0.25,\"dtype\":\"<i2\",\"astype\":\"<i2\"", "<i2",
     "640065006b005a00", "000000000200feff", "640064006c005c00", true},
    {"fixedscaleoffset",
     "\"offset\":0.5,\"scale\":10,\"dtype\":\"<i2\",\"astype\":\"<i4\"", "<i2",
     "640065006b005a00", "e3030000ed030000290400007f030000", NULL, true},
    {"fixedscaleoffset", "\"offset\":1,\"scale\":0.5,\"dtype\":\"<u8\"", "<u8",
     "03000000000000000500000000000000e803000000000000",
     "01000000000000000200000000000000f401000000000000",
     "03000000000000000500000000000000e903000000000000", true},
    {"fixedscaleoffset", "\"offset\":1,\"scale\":2,\"dtype\":\">i4\",\"astype\":\">i2\"",
     ">i4", "00000003fffffffc", "0004fff6", NULL, false},
    {"fixedscaleoffset",
     "\"offset\":1000,\"scale\":10,\"dtype\":\"<f4\",\"astype\":\"<i4\"", "<f4",
     "66067a4452507a44000040c0", "010000000d000000d2d8ffff", "66067a4433537a44000040c0",
     true},
    {"quantize", "\"digits\":1,\"dtype\":\"<f4\"", "<f4", "66067a4452507a44000040c0",
     "00087a4400507a44000040c0", "00087a4400507a44000040c0", true},
    {"quantize", "\"digits\":2,\"dtype\":\"<f8\",\"astype\":\"<f4\"", "<f8",
     "8d976e1283c0f33fe5d022dbf9ff23c0", "00009e3f000020c1",
     "0000000000c0f33f00000000000024c0", true},
    {"astype", "\"encode_dtype\":\"<i2\",\"decode_dtype\":\"<f4\"", "<f4",
     "9a99d93f000020c000401c47", "0100feff409c", "0000803f000000c00080c7c6", true},
    {"bitround", "\"keepbits\":3", "<f4", "cdcc8c3fcdcc2c409a9999be",
     "0000903f000030400000a0be", "0000903f000030400000a0be", false},
    {"bitround", "\"keepbits\":3", "<f2", "663c6641cdb4", "803c804100b5", "803c804100b5",
     false},
};

static void sample(size_t i, int format)
{
    const uint32_t unit = (uint32_t)(samples[i].dtype[2] - '0');
    const bool swap = format == 3 && !ZR_HOST_IS_LITTLE;
    uint8_t plain[32], stored[32], back[32];
    const size_t n = from_hex(plain, samples[i].plain);
    const size_t n_stored = from_hex(stored, samples[i].stored);
    const uint64_t dims[] = {n / unit, 0};
    char text[256];
    const struct impl_chain_args args = {
        .format = format, .codecs = text, .dtype = samples[i].dtype, .dims = dims};
    struct impl_chain c;

    if (format == 3)
        (void)snprintf(text, sizeof text,
                       "[{\"name\":\"numcodecs.%s\",\"configuration\":{%s}},"
                       "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}]",
                       samples[i].id, samples[i].config);
    else
        (void)snprintf(text, sizeof text,
                       "[{\"id\":\"bytes\",\"endian\":\"%s\"},{\"id\":\"%s\",%s}]",
                       samples[i].dtype[0] == '>' ? "big" : "little", samples[i].id,
                       samples[i].config);
    if (impl_chain_open(&c, &env, &args, &error) != ZARR_OK || !c.decode || !c.encode) {
        fail_msg("%s: %s", text, error.message);
        abort(); /* for the analyzer: fail_msg() does not return */
    }
    from_hex(back, samples[i].back ? samples[i].back : samples[i].plain);
    if (swap) {
        zr_byteswap(plain, plain, n / unit, unit);
        zr_byteswap(back, back, n / unit, unit);
    }
    must_be(c.encode, plain, n, stored, n_stored, text);
    if (c.decode->n) /* otherwise a copy: the stored bytes are the elements */
        must_be(c.decode, stored, n_stored, back, n, text);
    impl_chain_close(&c);
}

static void as_numcodecs(void **state)
{
    ZR_UNUSED(state);
    for (size_t i = 0; i < ZR_COUNT(samples); i++) {
        sample(i, 2);
        if (samples[i].v3)
            sample(i, 3);
    }
}

/* Python integers that NumPy cannot convert to the type of the elements. */
static void factors_that_do_not_fit(void **state)
{
    static const struct {
        const char *config, *dtype, *says;
    } wrong[] = {
        {"\"offset\":40000,\"scale\":1,\"dtype\":\"<i2\"", "<i2", "offset does not fit"},
        {"\"offset\":0,\"scale\":-1,\"dtype\":\"|u1\"", "|u1", "scale does not fit"},
        {"\"offset\":0,\"scale\":300,\"dtype\":\"|u1\"", "|u1", "scale does not fit"},
        {"\"offset\":-1,\"scale\":1,\"dtype\":\"<u8\"", "<u8", "offset does not fit"},
    };
    static const uint64_t dims[] = {1, 0};
    const uint8_t zeros[8] = {0};

    ZR_UNUSED(state);
    for (size_t i = 0; i < ZR_COUNT(wrong); i++) {
        char text[256];
        const struct impl_chain_args args = {
            .format = 2, .codecs = text, .dtype = wrong[i].dtype, .dims = dims};
        struct impl_chain c;
        uint8_t *got = NULL;
        size_t n = 0;

        (void)snprintf(text, sizeof text,
                       "[{\"id\":\"bytes\",\"endian\":\"little\"},"
                       "{\"id\":\"fixedscaleoffset\",%s}]",
                       wrong[i].config);
        if (impl_chain_open(&c, &env, &args, &error) != ZARR_OK || !c.decode) {
            fail_msg("%s: %s", text, error.message);
            abort();
        }
        assert_int_equal(
            impl_run(c.encode, &env, zeros, c.decode->decoded_bytes, &got, &n, &error),
            ZARR_ERR_INVALID);
        if (!strstr(error.message, wrong[i].says))
            fail_msg("%s: \"%s\"", wrong[i].config, error.message);
        free(got);
        impl_chain_close(&c);
    }
}

/* ---- single elements ----------------------------------------------------- */

/* The codecs convert the fill value like any element: 5 -> (5 - 1) * 3. */
static void element_back(void **state)
{
    static const uint64_t dims[] = {4, 2, 0};
    struct zr_chain *chain = NULL, front;
    struct zr_chain_reps reps;
    zarr_chunk_spec chunk;
    int32_t fill = 5, got = -1;

    ZR_UNUSED(state);
    for (int with_fill = 0; with_fill < 2; with_fill++) {
        assert_int_equal(
            codec_env_parse(&chain, &env.codec, 3,
                            "[{\"name\":\"scale_offset\",\"configuration\":{\"offset\":1,"
                            "\"scale\":3}},{\"name\":\"cast_value\",\"configuration\":{"
                            "\"data_type\":\"int16\"}},{\"name\":\"bytes\","
                            "\"configuration\":{\"endian\":\"little\"}}]",
                            NULL, &error),
            ZARR_OK);
        assert_int_equal(codec_env_chunk(&chunk, &env.codec, "int32", dims, &error),
                         ZARR_OK);
        chunk.fill = with_fill ? &fill : NULL;
        if (zr_chain_resolve(&reps, chain, &chunk, NULL, NULL, &error) != ZARR_OK)
            fail_msg("%s", error.message);
        if (with_fill) {
            int16_t stored = 0;

            memcpy(&stored, reps.rep[2].fill, sizeof stored);
            assert_int_equal(stored, 12);
        }
        if (!chain)
            abort(); /* for the analyzer */
        front = *chain;
        front.n = front.a2b = 2;
        if (zr_element_decode(&env.impls, &front, &reps, 0, &got, NULL, &error) !=
            ZARR_OK)
            fail_msg("%s", error.message);
        assert_int_equal(got, with_fill ? 5 : 1); /* 0 / 3 + 1 */
        zr_chain_reps_deinit(&reps);
        zr_chain_free(chain);
    }
}

/* ---- unused bits --------------------------------------------------------- */

static void padded_programs(void **state)
{
    static const uint64_t dims[] = {4, 0};
    const struct impl_chain_args small = {
        .format = 3, .codecs = "[\"bytes\"]", .dtype = "int4", .dims = dims};
    const struct impl_chain_args whole = {
        .format = 3, .codecs = "[\"bytes\"]", .dtype = "int8", .dims = dims};
    uint8_t v[4] = {0x08, 0x17, 0xff, 0}, odd[1] = {0x17};
    static const uint8_t read[4] = {0xf8, 0x07, 0xff, 0};
    struct impl_chain c;

    ZR_UNUSED(state);
    assert_int_equal(impl_chain_open(&c, &env, &small, &error), ZARR_OK);
    assert_false(zr_program_is_padded_well(c.encode, v, 4));
    assert_int_equal(zr_program_pad(c.encode, odd, 1, &error), ZARR_ERR_INVALID);
    assert_non_null(strstr(error.message, "an element is not a valid int4"));
    zr_program_unpad(c.decode, v, 4);
    assert_memory_equal(v, read, 4);
    assert_true(zr_program_is_padded_well(c.encode, v, 4));
    assert_int_equal(zr_program_pad(c.encode, v, 4, &error), ZARR_OK);
    assert_memory_equal(v, read, 4);
    impl_chain_close(&c);

    assert_int_equal(impl_chain_open(&c, &env, &whole, &error), ZARR_OK);
    v[0] = 0x17;
    assert_true(zr_program_is_padded_well(c.encode, v, 4));
    assert_int_equal(zr_program_pad(c.encode, v, 4, &error), ZARR_OK);
    zr_program_unpad(c.decode, v, 4);
    assert_int_equal(v[0], 0x17);
    impl_chain_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_numcodecs),
        cmocka_unit_test(factors_that_do_not_fit),
        cmocka_unit_test(element_back),
        cmocka_unit_test(padded_programs),
    };

    return cmocka_run_group_tests(tests, open_env, close_env);
}
