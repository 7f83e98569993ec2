/*
 * tests/kernels/test_filters.c - checksums, casts, delta, fixedscaleoffset and packed
 * bits give what the CPU codecs give.
 */
#include "runner.h"

#include <libdeflate.h>
#include <stdio.h>

#include "codecs/checksum/checksum.h"
#include "codecs/filters/delta.h"
#include "unit/impl/impl_test.h"

enum {
    SUMS = 30,
    NUMBERS = 400
};

/* ---- checksums -------------------- */

static uint32_t sum_by_library(const struct k_sum *s, const uint8_t *p)
{
    const size_t n = (size_t)s->bytes;

    switch (s->kind) {
    case K_CRC32C:
        return zr_crc32c(0, p, n);
    case K_CRC32:
        return libdeflate_crc32(0, p, n);
    case K_ADLER32:
        return libdeflate_adler32(1, p, n);
    case K_FLETCHER32:
        return zr_fletcher32(p, n);
    default:
        return zr_jenkins_lookup3(s->start, s->prefix, s->prefix_bytes, p, n);
    }
}

static void sums_run(const struct target *t, struct k_sum *sums, struct argument bytes,
                     uint32_t *status, uint64_t each)
{
    uint64_t *slices = block(SUMS * each * sizeof *slices);
    const struct argument list = BUFFER(sums, SUMS * sizeof *sums),
                          parts = BUFFER(slices, SUMS * each * sizeof *slices);

    memset(slices, 0xFF, SUMS * each * sizeof *slices);
    memset(status, 0, SUMS * sizeof *status);
    LAUNCH(t, "k_sum_slices", SUMS * each, bytes, list, parts, NUMBER(SUMS),
           NUMBER(each));
    LAUNCH(t, "k_sum_end", SUMS, bytes, bytes, list, parts,
           BUFFER(status, SUMS * sizeof *status), NUMBER(SUMS), NUMBER(each));
    free(slices);
}

static void sum_draw(struct k_sum *s, uint64_t i, uint64_t *from, uint64_t *seed)
{
    memset(s, 0, sizeof *s);
    s->kind = (uint32_t)(i % 5);
    s->number = (uint32_t)i;
    s->store = 1;
    s->bytes = below(seed, below(seed, 4) ? 50 : 30000);
    s->start = (uint32_t)next_random(seed);
    s->prefix_bytes = (uint32_t)below(seed, K_PREFIX + 1);
    fill_random(s->prefix, sizeof s->prefix, seed);
    s->src = *from;
    s->at = *from + s->bytes;
    *from += s->bytes + 4;
}

static void sums_like_the_library(void **state)
{
    static const uint64_t eaches[] = {1, 7, 64, 1000};
    uint64_t seed = 71;

    for (int turn = 0; turn < draws(8); turn++) {
        struct k_sum sums[SUMS];
        uint32_t status[SUMS];
        uint64_t n = 0, each = eaches[turn % 4];
        uint8_t *p;

        for (uint64_t i = 0; i < SUMS; i++)
            sum_draw(&sums[i], i, &n, &seed);
        p = block((size_t)n);
        if (turn % 4 == 3)
            memset(p, 0, (size_t)n); /* of which fletcher32 is 0 */
        else if (turn % 4 == 2)
            memset(p, 0xFF, (size_t)n); /* of which it is 65535, not 0 */
        else
            fill_random(p, (size_t)n, &seed);
        sums_run(*state, sums, BUFFER(p, n), status, each);
        for (size_t i = 0; i < SUMS; i++) {
            if (zr_load_le32(p + sums[i].at) != sum_by_library(&sums[i], p + sums[i].src))
                fail_msg("kind %u of %zu bytes", sums[i].kind, (size_t)sums[i].bytes);
            sums[i].store = 0;
            p[sums[i].src + below(&seed, sums[i].bytes + 4)] ^= (uint8_t)(i & 1);
        }
        sums_run(*state, sums, BUFFER(p, n), status, each);
        for (size_t i = 0; i < SUMS; i++)
            assert_int_equal(status[i], i & 1 ? K_BAD_SUM : K_OK);
        free(p);
    }
}

/* ---- numbers -------------------- */

static const struct {
    uint32_t kind, zarr_kind, bytes;
} types[] = {{K_BOOL, ZARR_KIND_BOOL, 1},   {K_INT, ZARR_KIND_INT, 1},
             {K_INT, ZARR_KIND_INT, 2},     {K_INT, ZARR_KIND_INT, 4},
             {K_INT, ZARR_KIND_INT, 8},     {K_UINT, ZARR_KIND_UINT, 1},
             {K_UINT, ZARR_KIND_UINT, 2},   {K_UINT, ZARR_KIND_UINT, 4},
             {K_UINT, ZARR_KIND_UINT, 8},   {K_FLOAT, ZARR_KIND_FLOAT, 2},
             {K_FLOAT, ZARR_KIND_FLOAT, 4}, {K_FLOAT, ZARR_KIND_FLOAT, 8}};

static struct zr_number make_number(size_t i, int big)
{
    struct zr_number n = zr_number_make(types[i].zarr_kind, types[i].bytes);

    n.big = big && types[i].bytes > 1;
    return n;
}

static struct k_type make_type(size_t i, int big)
{
    return (struct k_type){types[i].kind, types[i].bytes, big ? 1 : 0, 0};
}

/* Numbers of all magnitudes, of any bits, and those next to the limits of other types. */
static void numbers_draw(uint8_t *p, size_t i, int big, uint64_t *seed)
{
    const struct zr_number number = make_number(i, big);

    for (size_t k = 0; k < NUMBERS; k++, p += types[i].bytes) {
        const uint64_t bits = next_random(seed);
        const int shift = (int)below(seed, 64);
        const double limit = (double)(UINT64_C(1) << shift);
        struct zr_numpy_value v = {.u = bits >> shift,
                                   .d = limit + (double)below(seed, 5) / 2 - 1};

        v.d = bits & 1 ? v.d : -v.d;
        if (k % 4 == 0)
            v.d = (double)(int64_t)(bits >> 50) / 64 - 100;
        if (k % 4 == 1)
            zr_number_put(&number, p, types[i].kind == K_BOOL ? bits & 1 : bits);
        else
            zr_numpy_store(&number, p, v);
        if (types[i].kind == K_BOOL)
            *p &= 1;
    }
}

static void casts_like_numpy(void **state)
{
    uint64_t seed = 73;

    for (size_t i = 0; i < COUNT(types); i++)
        for (size_t k = 0; k < COUNT(types); k++) {
            const int big = (int)below(&seed, 2), out_big = (int)below(&seed, 2);
            const struct zr_number from = make_number(i, big),
                                   to = make_number(k, out_big);
            struct k_filter f = {
                .n = NUMBERS, .from = make_type(i, big), .to = make_type(k, out_big)};
            uint8_t in[NUMBERS * 8], out[sizeof in] = {0}, want[sizeof in] = {0};

            numbers_draw(in, i, big, &seed);
            for (size_t e = 0; e < NUMBERS; e++)
                zr_numpy_cast(&from, &to, in + e * types[i].bytes,
                              want + e * types[k].bytes);
            LAUNCH(*state, "k_cast", 50, BUFFER(out, sizeof out), BUFFER(in, sizeof in),
                   BUFFER(&f, sizeof f), NUMBER(1), NUMBER(50));
            for (size_t e = 0; e < NUMBERS; e++)
                if (memcmp(out + e * types[k].bytes, want + e * types[k].bytes,
                           types[k].bytes) != 0)
                    fail_msg("from %u/%u to %u/%u: element %zu", types[i].kind,
                             types[i].bytes, types[k].kind, types[k].bytes, e);
        }
}

/* ---- delta -------------------- */

static void delta_once(const struct target *t, size_t i, uint64_t n, uint64_t *seed)
{
    const int big = (int)below(seed, 2);
    const struct zr_delta delta = {make_number(i, big), make_number(i, big)};
    const size_t bytes = (size_t)n * types[i].bytes;
    const uint64_t each = 1 + below(seed, 40);
    struct k_filter f = {.n = n, .from = make_type(i, big), .to = make_type(i, big)};
    uint8_t in[NUMBERS * 8], out[sizeof in], want[sizeof in], back[sizeof in];
    uint64_t sums[40];

    numbers_draw(in, i, big, seed);
    memset(sums, 0xFF, sizeof sums);
    zr_delta_apply(&delta, true, want, in, (size_t)n);
    LAUNCH(t, "k_delta", each, BUFFER(out, bytes), BUFFER(in, bytes),
           BUFFER(&f, sizeof f), NUMBER(1), NUMBER(each));
    if (types[i].kind != K_FLOAT)
        assert_memory_equal(out, want, bytes);
    zr_delta_apply(&delta, false, back, want, (size_t)n);
    LAUNCH(t, "k_delta_sums", each, BUFFER(want, bytes), BUFFER(&f, sizeof f),
           BUFFER(sums, sizeof sums), NUMBER(1), NUMBER(each));
    LAUNCH(t, "k_undelta", each, BUFFER(out, bytes), BUFFER(want, bytes),
           BUFFER(&f, sizeof f), BUFFER(sums, sizeof sums), NUMBER(1), NUMBER(each));
    if (types[i].kind != K_FLOAT)
        assert_memory_equal(out, back, bytes);
}

/* Floats without NaN: which NaN a sum of two has is the processor's choice. */
static void delta_floats(const struct target *t, size_t i)
{
    const struct zr_number number = make_number(i, 0);
    const struct zr_delta delta = {number, number};
    const size_t bytes = (size_t)NUMBERS * types[i].bytes;
    struct k_filter f = {.n = NUMBERS, .from = make_type(i, 0), .to = make_type(i, 0)};
    uint8_t in[NUMBERS * 8], out[sizeof in], want[sizeof in], back[sizeof in];
    uint64_t sums[9] = {0};

    for (size_t k = 0; k < NUMBERS; k++) {
        struct zr_numpy_value v = {.d = (double)(k * k % 1009) / 7 - 50};

        zr_numpy_store(&number, in + k * types[i].bytes, v);
    }
    zr_delta_apply(&delta, true, want, in, NUMBERS);
    LAUNCH(t, "k_delta", 9, BUFFER(out, bytes), BUFFER(in, bytes), BUFFER(&f, sizeof f),
           NUMBER(1), NUMBER(9));
    assert_memory_equal(out, want, bytes);
    zr_delta_apply(&delta, false, back, want, NUMBERS);
    LAUNCH(t, "k_delta_sums", 9, BUFFER(want, bytes), BUFFER(&f, sizeof f),
           BUFFER(sums, sizeof sums), NUMBER(1), NUMBER(9));
    LAUNCH(t, "k_undelta", 9, BUFFER(out, bytes), BUFFER(want, bytes),
           BUFFER(&f, sizeof f), BUFFER(sums, sizeof sums), NUMBER(1), NUMBER(9));
    assert_memory_equal(out, back, bytes);
}

static void delta_like_the_codec(void **state)
{
    uint64_t seed = 79;

    for (size_t i = 1; i < COUNT(types); i++) {
        if (types[i].kind == K_FLOAT)
            delta_floats(*state, i);
        else
            for (int turn = 0; turn < 4; turn++)
                delta_once(*state, i, turn ? below(&seed, NUMBERS) : NUMBERS, &seed);
    }
}

/* ---- codecs -------------------- */

static struct impl_env env;

/* What the codec makes of a chunk of n elements. Returns its bytes, malloc'd. */
/* NOLINT(function-size): a chain, its direction, and what goes in and comes out */
static uint8_t *by_codec(const char *codecs, int format, const char *dtype, uint64_t n,
                         bool encode, const uint8_t *src, size_t src_bytes, size_t *bytes)
{
    const uint64_t dims[] = {n, 0};
    const struct impl_chain_args args = {
        .format = format, .codecs = codecs, .dtype = dtype, .dims = dims};
    struct impl_chain c;
    zarr_error err = ZARR_ERROR_INIT;
    uint8_t *out = NULL;

    if (impl_chain_open(&c, &env, &args, &err) != ZARR_OK)
        fail_msg("%s: %s", codecs, err.message);
    if (impl_run(encode ? c.encode : c.decode, &env, src, src_bytes, &out, bytes, &err) !=
        ZARR_OK)
        fail_msg("%s: %s", codecs, err.message);
    impl_chain_close(&c);
    return out;
}

static void scales_like_the_codec(void **state)
{
    static const struct {
        const char *dtype, *astype;
        size_t from, to; /* in `types` */
        int from_big, to_big;
        double scale, offset;
    } cases[] = {
        {"<f4", "<i2", 10, 2, 0, 0, 10, 5},  {"<f8", "|u1", 11, 5, 0, 0, 3, -7},
        {">f8", ">i4", 11, 3, 1, 1, 0.1, 1}, {"<f4", "<f4", 10, 10, 0, 0, 7, 0.3},
        {"<f8", "<f4", 11, 10, 0, 0, 3, 2},  {"<f2", "<i2", 9, 2, 0, 0, 3, 0.1},
        {"<f4", "<f2", 10, 9, 0, 0, 3, 0.1}};
    uint64_t seed = 83;

    for (size_t k = 0; k < COUNT(cases); k++) {
        const size_t from = cases[k].from, to = cases[k].to;
        struct k_filter f = {.n = NUMBERS,
                             .from = make_type(from, cases[k].from_big),
                             .to = make_type(to, cases[k].to_big),
                             .scale = cases[k].scale,
                             .offset = cases[k].offset};
        const struct zr_number number = make_number(from, cases[k].from_big);
        uint8_t in[NUMBERS * 8], out[sizeof in], *want, *back;
        size_t bytes = 0, back_bytes = 0;
        char codecs[256];

        for (size_t e = 0; e < NUMBERS; e++) {
            struct zr_numpy_value v = {.d = (double)below(&seed, 10000) / 997};

            zr_numpy_store(&number, in + e * types[from].bytes, v);
        }
        (void)snprintf(
            codecs, sizeof codecs,
            "[{\"id\":\"bytes\",\"endian\":\"%s\"},{\"id\":\"fixedscaleoffset\","
            "\"dtype\":\"%s\",\"astype\":\"%s\",\"scale\":%g,\"offset\":%g}]",
            cases[k].from_big ? "big" : "little", cases[k].dtype, cases[k].astype,
            f.scale, f.offset);
        want = by_codec(codecs, 2, cases[k].dtype, NUMBERS, true, in,
                        (size_t)NUMBERS * types[from].bytes, &bytes);
        LAUNCH(*state, "k_scale", 60, BUFFER(out, sizeof out), BUFFER(in, sizeof in),
               BUFFER(&f, sizeof f), NUMBER(1), NUMBER(60));
        assert_memory_equal(out, want, bytes);
        back =
            by_codec(codecs, 2, cases[k].dtype, NUMBERS, false, want, bytes, &back_bytes);
        f.from = make_type(to, cases[k].to_big);
        f.to = make_type(from, cases[k].from_big);
        LAUNCH(*state, "k_unscale", 60, BUFFER(out, sizeof out), BUFFER(want, bytes),
               BUFFER(&f, sizeof f), NUMBER(1), NUMBER(60));
        assert_memory_equal(out, back, back_bytes);
        free(want);
        free(back);
    }
}

static void bits_once(const struct target *t, const struct k_pack *p, const char *codecs,
                      const char *dtype, uint64_t *seed)
{
    const size_t plain = (size_t)p->n * p->bytes;
    struct k_pack own = *p;
    uint8_t *in = block(plain), *out = block(plain), *want, *back;
    size_t bytes = 0, back_bytes = 0;
    uint32_t status = K_OK;

    fill_random(in, plain, seed);
    for (size_t i = 0; i < plain && p->boolean; i++)
        in[i] &= 1;
    want = by_codec(codecs, p->high_first ? 2 : 3, dtype, p->n, true, in, plain, &bytes);
    own.dst = own.counted =
        p->high_first ? 1 : 0; /* of padding bits, in the first byte */
    back = block(bytes);
    memset(back, 0xFF, bytes);
    LAUNCH(t, "k_pack_bits", 40, BUFFER(back, bytes), BUFFER(in, plain),
           BUFFER(&own, sizeof own), NUMBER(1), NUMBER(40));
    assert_memory_equal(back, want, bytes);
    free(back);
    own.src = own.dst;
    own.dst = 0;
    back = by_codec(codecs, p->high_first ? 2 : 3, dtype, p->n, false, want, bytes,
                    &back_bytes);
    assert_int_equal(back_bytes, plain);
    LAUNCH(t, "k_unpack_bits", 40, BUFFER(out, plain), BUFFER(want, bytes),
           BUFFER(&own, sizeof own), BUFFER(&status, sizeof status), NUMBER(1),
           NUMBER(40));
    assert_int_equal(status, K_OK);
    assert_memory_equal(out, back, plain);
    want[0] ^= 8;
    LAUNCH(t, "k_unpack_bits", 40, BUFFER(out, plain), BUFFER(want, bytes),
           BUFFER(&own, sizeof own), BUFFER(&status, sizeof status), NUMBER(1),
           NUMBER(40));
    assert_int_equal(status, own.counted ? K_BAD_PADDING : K_OK);
    free(in);
    free(out);
    free(want);
    free(back);
}

static void bits_like_the_codec(void **state)
{
    static const struct {
        const char *dtype;
        uint32_t bytes, is_signed, boolean;
    } kinds[] = {{"uint8", 1, 0, 0}, {"int8", 1, 1, 0},   {"uint16", 2, 0, 0},
                 {"int16", 2, 1, 0}, {"uint32", 4, 0, 0}, {"int32", 4, 1, 0},
                 {"int64", 8, 1, 0}, {"bool", 1, 0, 1}};
    uint64_t seed = 89;
    const uint16_t one = 1;

    if (*(const uint8_t *)&one ==
        0) /* the kernels are for devices, which are little-endian */
        return;
    for (size_t k = 0; k < COUNT(kinds); k++)
        for (int turn = 0; turn < 4; turn++) {
            const uint32_t bits = kinds[k].boolean ? 1 : 8 * kinds[k].bytes;
            const uint32_t first = (uint32_t)below(&seed, bits);
            const struct k_pack p = {.n = below(&seed, 200) + 1,
                                     .bytes = kinds[k].bytes,
                                     .first = first,
                                     .kept = 1 + (uint32_t)below(&seed, bits - first),
                                     .is_signed = kinds[k].is_signed,
                                     .boolean = kinds[k].boolean};
            char codecs[200];

            (void)snprintf(codecs, sizeof codecs,
                           "[{\"name\":\"packbits\",\"configuration\":{\"first_bit\":%u,"
                           "\"last_bit\":%u}}]",
                           first, first + p.kept - 1);
            bits_once(*state, &p, codecs, kinds[k].dtype, &seed);
        }
    for (uint64_t n = 1; n < 40; n += 3) {
        const struct k_pack p = {
            .n = n, .bytes = 1, .kept = 1, .boolean = 1, .high_first = 1};

        bits_once(*state, &p, "[{\"id\":\"bytes\"},{\"id\":\"packbits\"}]", "|b1", &seed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_like_the_library), cmocka_unit_test(casts_like_numpy),
        cmocka_unit_test(delta_like_the_codec),  cmocka_unit_test(scales_like_the_codec),
        cmocka_unit_test(bits_like_the_codec),
    };
    int failed;

    if (impl_env_open(&env, NULL, NULL) != ZARR_OK)
        return 1;
    failed = run_on_targets("filters", tests, COUNT(tests));
    impl_env_close(&env);
    return failed;
}
