/*
 * unit/codecs/test_composite.c - codecs that contain chains of codecs: the bytes given
 * in their descriptions, encoded and decoded, and chunks with wrong contents inside.
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

static zarr_status open_chain(struct impl_chain *c, const char *codecs, const char *dtype,
                              const uint64_t *dims)
{
    const struct impl_chain_args args = {
        .format = 3, .codecs = codecs, .dtype = dtype, .dims = dims};

    return impl_chain_open(c, &env, &args, &error);
}

/* Binds a chain for encoding and decoding. It must succeed. */
static void must_open(struct impl_chain *c, const char *codecs, const char *dtype,
                      const uint64_t *dims)
{
    if (open_chain(c, codecs, dtype, dims) != ZARR_OK || !c->decode || !c->encode) {
        fail_msg("%s", error.message);
        abort(); /* for the analyzer: fail_msg() does not return */
    }
}

static void must_be(const struct zr_program *p, const void *from, size_t n,
                    const void *want, size_t want_bytes)
{
    uint8_t *got = NULL;
    size_t bytes = 0;

    if (impl_run(p, &env, from, n, &got, &bytes, &error) != ZARR_OK)
        fail_msg("%s", error.message);
    assert_int_equal(bytes, want_bytes);
    assert_memory_equal(got, want, want_bytes);
    free(got);
    assert_int_equal(env.threads.decode.top + env.threads.encode.top, 0);
}

static void must_fail(const struct zr_program *p, const void *from, size_t n,
                      zarr_status want, const char *text)
{
    uint8_t *got = NULL;
    size_t bytes = 0;

    error.message[0] = '\0';
    assert_int_equal(impl_run(p, &env, from, n, &got, &bytes, &error), want);
    if (!strstr(error.message, text))
        fail_msg("\"%s\" is not in \"%s\"", text, error.message);
    assert_int_equal(env.threads.decode.top + env.threads.encode.top, 0);
}

static void check_refused(const char *codecs, const char *dtype, const uint64_t *dims,
                          const char *text)
{
    struct impl_chain c = {0};

    error.message[0] = '\0';
    if (open_chain(&c, codecs, dtype, dims) == ZARR_OK)
        fail_msg("%s was taken", codecs);
    if (!strstr(error.message, text))
        fail_msg("\"%s\" is not in \"%s\"", text, error.message);
    impl_chain_close(&c);
}

/* ---- optional ------------------------------------------------------------ */

#define OPTIONAL(mask, data)                                                             \
    "[{\"name\":\"optional\",\"configuration\":{\"mask_codecs\":[" mask                  \
    "],\"data_codecs\":[" data "]}}]"
#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define BIG    "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}"
#define NESTED                                                                           \
    "{\"name\":\"zarrs.optional\",\"configuration\":{\"mask_codecs\":[\"packbits\"],"    \
    "\"data_codecs\":[\"bytes\"]}}"

static const uint64_t two_by_two[] = {2, 2, 0};

/* The chunk [[0, null], [null, 5]] of zarrs' example. */
static void test_optional(void **state)
{
    const uint8_t items[] = {0, 1, 0, 0, 0, 0, 5, 1};
    const uint8_t stored[] = {1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0x09, 0, 5};
    const uint8_t none[8] = {0}, nothing[17] = {1}; /* no values, so no bytes for them */
    struct impl_chain c;

    ZR_UNUSED(state);
    assert_int_equal(open_chain(&c, OPTIONAL("\"packbits\"", "\"bytes\""),
                                "optional[uint8]", two_by_two),
                     ZARR_OK);
    must_be(c.encode, items, sizeof items, stored, sizeof stored);
    must_be(c.decode, stored, sizeof stored, items, sizeof items);
    must_be(c.encode, none, sizeof none, nothing, sizeof nothing);
    must_be(c.decode, nothing, sizeof nothing, none, sizeof none);
    /* the bytes at a missing value are not stored */
    must_be(c.encode, (uint8_t[]){0, 1, 9, 0, 8, 0, 5, 1}, 8, stored, sizeof stored);
    must_fail(c.encode, (uint8_t[]){0, 1, 9, 0, 8, 2, 5, 1}, 8, ZARR_ERR_INVALID,
              "element 2");
    impl_chain_close(&c);
}

/* The chunk [[null, [null]], [null, [5]]] of zarrs' second example. */
static void test_optional_nested(void **state)
{
    const uint8_t items[] = {0, 0, 0, 0, 0, 1, 0, 0, 0, 5, 1, 1};
    const uint8_t stored[] = {1, 0, 0, 0, 0, 0, 0, 0, 18, 0, 0, 0, 0, 0, 0, 0,    0x0A, 1,
                              0, 0, 0, 0, 0, 0, 0, 1, 0,  0, 0, 0, 0, 0, 0, 0x02, 5};
    uint8_t bad[sizeof stored];
    struct impl_chain c;

    ZR_UNUSED(state);
    assert_int_equal(open_chain(&c, OPTIONAL("\"packbits\"", NESTED),
                                "optional[zarrs.optional[uint8]]", two_by_two),
                     ZARR_OK);
    must_be(c.encode, items, sizeof items, stored, sizeof stored);
    must_be(c.decode, stored, sizeof stored, items, sizeof items);
    memcpy(bad, stored, sizeof bad);
    bad[33] = 0x03; /* both outer values exist, one inner value does */
    must_fail(c.decode, bad, sizeof bad, ZARR_ERR_CORRUPT, "the mask counts 2");
    memcpy(bad, stored, sizeof bad);
    bad[17] = 2; /* a mask of more elements than the outer mask has values */
    bad[25] = 0;
    must_fail(c.decode, bad, sizeof bad, ZARR_ERR_CORRUPT, "packbits");
    impl_chain_close(&c);
}

/* Numbers of several bytes, other codecs behind, and every possible number of values. */
static void test_optional_round(void **state)
{
    static const char *const chains[] = {
        OPTIONAL("\"packbits\"", BIG),
        OPTIONAL("\"bytes\",{\"name\":\"zstd\"}",
                 LITTLE ",{\"name\":\"gzip\"},\"crc32c\""),
        OPTIONAL(
            "{\"name\":\"transpose\",\"configuration\":{\"order\":[0]}},"
            "{\"name\":\"packbits\",\"configuration\":"
            "{\"padding_encoding\":\"first_byte\"}},{\"name\":\"zstd\"}",
            "{\"name\":\"numcodecs.delta\",\"configuration\":{\"dtype\":\"<u4\"}}," BIG),
    };
    const uint64_t dims[] = {129, 0};
    uint8_t items[129 * 5], *enc = NULL;
    uint64_t seed = 7;
    size_t n = 0;

    ZR_UNUSED(state);
    for (size_t k = 0; k < ZR_COUNT(chains); k++) {
        struct impl_chain c;

        must_open(&c, chains[k], "optional[uint32]", dims);
        for (uint32_t share = 0; share <= 16; share++) {
            memset(items, 0, sizeof items);
            for (size_t i = 0; i < 129; i++)
                if (impl_random(&seed) % 16 < share) {
                    const uint32_t v = (uint32_t)impl_random(&seed);

                    memcpy(items + 5 * i, &v, 4);
                    items[5 * i + 4] = 1;
                }
            assert_int_equal(
                impl_run(c.encode, &env, items, sizeof items, &enc, &n, &error), ZARR_OK);
            must_be(c.decode, enc, n, items, sizeof items);
            free(enc);
        }
        impl_chain_close(&c);
    }
}

static void test_optional_hostile(void **state)
{
    uint8_t stored[] = {1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0x09, 0, 5, 0};
    const size_t n = sizeof stored - 1;
    struct impl_chain c;

    ZR_UNUSED(state);
    assert_int_equal(open_chain(&c, OPTIONAL("\"packbits\"", "\"bytes\""),
                                "optional[uint8]", two_by_two),
                     ZARR_OK);
    for (size_t k = 0; k < n; k++)
        must_fail(c.decode, stored, k, ZARR_ERR_CORRUPT, "optional: ");
    must_fail(c.decode, stored, n + 1, ZARR_ERR_CORRUPT, "lengths of 1 and 2 bytes");
    stored[16] = 0x0B; /* claims three values, contains two */
    must_fail(c.decode, stored, n, ZARR_ERR_CORRUPT, "the mask counts 3");
    stored[16] = 0x08;
    must_fail(c.decode, stored, n, ZARR_ERR_CORRUPT, "2 bytes");
    stored[16] = 0x00;
    must_fail(c.decode, stored, n, ZARR_ERR_CORRUPT, "2 bytes");
    stored[0] = 2; /* the mask is too long */
    stored[8] = 1;
    must_fail(c.decode, stored, n, ZARR_ERR_CORRUPT, "packbits: 2 encoded bytes");
    memset(stored, 0xFF, 16); /* their sum overflows */
    must_fail(c.decode, stored, n, ZARR_ERR_CORRUPT, "lengths of 18446744073709551615");
    memset(stored, 0xFF, 8);
    memset(stored + 8, 0, 8);
    stored[8] = 4;
    must_fail(c.decode, stored, n, ZARR_ERR_CORRUPT, "lengths of");
    impl_chain_close(&c);
}

static void test_optional_refused(void **state)
{
    ZR_UNUSED(state);
    check_refused("[\"bytes\"]", "optional[uint8]", two_by_two, "use codec \"optional\"");
    check_refused(OPTIONAL("\"packbits\"", "\"bytes\""), "uint8", two_by_two,
                  "codec optional does not take data type uint8, only optional types");
    check_refused(OPTIONAL("\"packbits\"", "\"bytes\""), "optional[uint16]", two_by_two,
                  "endian is required");
    check_refused(OPTIONAL("\"packbits\"", "\"bytes\""), "optional[optional[uint8]]",
                  two_by_two, "use codec");
    check_refused(OPTIONAL("\"packbits\"", ""), "optional[uint8]", two_by_two,
                  "data_codecs");
    check_refused(OPTIONAL("\"zstd\"", "\"bytes\""), "optional[uint8]", two_by_two,
                  "mask_codecs");
    check_refused("[\"optional\"]", "optional[uint8]", two_by_two,
                  "mask_codecs are missing");
    check_refused(
        "[{\"name\":\"optional\",\"configuration\":{\"mask_codecs\":[\"bytes\"],"
        "\"data_codecs\":[\"bytes\"],\"x\":1}}]",
        "optional[uint8]", two_by_two, "unknown member \"x\"");
    check_refused(OPTIONAL("\"packbits\"", "\"bytes\""), "optional[string]", two_by_two,
                  "only types of fixed size");
    check_refused(OPTIONAL("\"packbits\"", "\"vlen-bytes\""), "optional[string]",
                  two_by_two, "only variable_length_bytes");
}

static void test_optional_lengths(void **state)
{
    static const char *const need_it[][2] =
    { {"{\"name\":\"numcodecs.packbits\"},\"bytes\"", "optional[bool]"},
      {"{\"name\":\"n5_default\",\"configuration\":{\"codecs\":[{\"name\":\"transpose\","
       "\"configuration\":{\"order\":[0]}}," BIG "]}}",
       "optional[uint16]"},
#if defined(ZR_HAVE_ZFP)
      {"{\"name\":\"zfp\",\"configuration\":{\"mode\":\"reversible\"}}",
       "optional[float32]"},
#endif
    };
    char codecs[512];

    ZR_UNUSED(state);
    for (size_t i = 0; i < ZR_COUNT(need_it); i++) {
        (void)snprintf(codecs, sizeof codecs, OPTIONAL("\"packbits\"", "%s"),
                       need_it[i][0]);
        check_refused(codecs, need_it[i][1], two_by_two,
                      "whose length is known only from the chunk");
    }
}

/* ---- conditional ------------------------------------------------------------------ */

#define CONDITIONAL(inside, bits)                                                        \
    "{\"name\":\"conditional\",\"configuration\":{\"codecs\":[" inside                   \
    "],\"header_bits\":" bits "}}"
#define SHUFFLE "{\"name\":\"numcodecs.shuffle\",\"configuration\":{\"elementsize\":4}}"
#define FOUR    SHUFFLE "," SHUFFLE "," SHUFFLE "," SHUFFLE

/* The number of buffers of a chunk does not grow with the number of codecs. */
static void test_conditional_many(void **state)
{
    static uint8_t data[1 << 16];
    const uint64_t dims[] = {sizeof data, 0};
    const char *codecs =
        "[\"bytes\"," CONDITIONAL(FOUR "," FOUR "," FOUR "," FOUR ",\"crc32c\",{\"name\":"
                                       "\"gzip\",\"configuration\":{\"level\":1}}",
                                  "24") "]";
    struct impl_chain c = {0};
    uint8_t *stored = NULL;
    size_t n = 0, held = 0;

    ZR_UNUSED(state);
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i / 300);
    must_open(&c, codecs, "uint8", dims);
    assert_int_equal(impl_run(c.encode, &env, data, sizeof data, &stored, &n, &error),
                     ZARR_OK);
    assert_true(n < sizeof data / 2);
    assert_int_equal(stored[0], 0xFF);
    assert_int_equal(stored[1], 0xFF);
    assert_int_equal(stored[2], 2); /* the checksum made it longer */
    must_be(c.decode, stored, n, data, sizeof data);
    for (size_t i = 0; i < env.threads.decode.n; i++)
        held += env.threads.decode.buffer[i].bytes;
    for (size_t i = 0; i < env.threads.encode.n; i++)
        held += env.threads.encode.buffer[i].bytes;
    assert_true(held < 14 * sizeof data);
    free(stored);
    impl_chain_close(&c);
}

/* A codec that cannot take so many bytes is skipped. */
static void test_conditional_odd(void **state)
{
    static const uint8_t data[3] = {1, 2, 3}, want[4] = {0, 1, 2, 3};
    const uint64_t dims[] = {3, 0};
    struct impl_chain c = {0};

    ZR_UNUSED(state);
    must_open(&c, "[\"bytes\"," CONDITIONAL(SHUFFLE, "8") "]", "uint8", dims);
    must_be(c.encode, data, sizeof data, want, sizeof want);
    must_be(c.decode, want, sizeof want, data, sizeof data);
    impl_chain_close(&c);
}

static void test_nesting(void **state)
{
    const uint64_t dims[] = {3, 0};
    char codecs[2048];

    ZR_UNUSED(state);
    for (int depth = 7; depth < 10; depth++) {
        struct impl_chain c = {0};
        size_t n = (size_t)snprintf(codecs, sizeof codecs, "[\"bytes\",");

        for (int i = 0; i < depth; i++)
            n += (size_t)snprintf(codecs + n, sizeof codecs - n,
                                  "{\"name\":\"conditional\",\"configuration\":{"
                                  "\"header_bits\":8,\"codecs\":[");
        n += (size_t)snprintf(codecs + n, sizeof codecs - n, SHUFFLE);
        for (int i = 0; i < depth; i++)
            n += (size_t)snprintf(codecs + n, sizeof codecs - n, "]}}");
        (void)snprintf(codecs + n, sizeof codecs - n, "]");
        if (depth > 8) {
            check_refused(codecs, "uint8", dims, "more than 8 deep");
        } else {
            must_open(&c, codecs, "uint8", dims);
            impl_chain_close(&c);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_optional, open_env, close_env),
        cmocka_unit_test_setup_teardown(test_optional_nested, open_env, close_env),
        cmocka_unit_test_setup_teardown(test_optional_round, open_env, close_env),
        cmocka_unit_test_setup_teardown(test_optional_hostile, open_env, close_env),
        cmocka_unit_test_setup_teardown(test_optional_refused, open_env, close_env),
        cmocka_unit_test_setup_teardown(test_optional_lengths, open_env, close_env),
        cmocka_unit_test_setup_teardown(test_conditional_many, open_env, close_env),
        cmocka_unit_test_setup_teardown(test_conditional_odd, open_env, close_env),
        cmocka_unit_test_setup_teardown(test_nesting, open_env, close_env),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
