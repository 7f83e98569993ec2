/*
 * unit/codecs/test_kernels.c - checksums compared with published vectors; shuffle and
 * delta compared with their definitions; every variant that this CPU supports compared
 * with the plain one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "codecs/checksum/checksum.h"
#include "codecs/filters/delta.h"
#include "codecs/shuffle/shuffle.h"
#include "unit/impl/impl_test.h"

typedef uint32_t crc_route(uint32_t crc, const uint8_t *p, size_t n);

static uint32_t crc_door(uint32_t crc, const uint8_t *p, size_t n)
{
    return zr_crc32c(crc, p, n);
}

static size_t crc_routes(crc_route **routes)
{
    size_t n = 0;

    routes[n++] = zr_crc32c_table;
    routes[n++] = crc_door;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("sse4.2"))
        routes[n++] = zr_crc32c_sse42;
    if (__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul"))
        routes[n++] = zr_crc32c_pclmul;
#endif
    return n;
}

static void crc_vectors(void **state)
{
    /* RFC 3720, section B.4, and the usual check value. */
    static const uint8_t read_pdu[48] = {
        0x01, 0xc0, 0, 0, 0, 0, 0,    0, 0,    0, 0, 0,    0, 0, 0, 0,
        0x14, 0,    0, 0, 0, 0, 0x04, 0, 0,    0, 0, 0x14, 0, 0, 0, 0x18,
        0x28, 0,    0, 0, 0, 0, 0,    0, 0x02, 0, 0, 0,    0, 0, 0, 0};
    crc_route *routes[4];
    const size_t n_routes = crc_routes(routes);
    uint8_t block[32];

    ZR_UNUSED(state);
    for (size_t k = 0; k < n_routes; k++) {
        assert_int_equal(routes[k](0, (const uint8_t *)"123456789", 9), 0xE3069283);
        assert_int_equal(routes[k](0, block, 0), 0);
        memset(block, 0, sizeof block);
        assert_int_equal(routes[k](0, block, 32), 0x8A9136AA);
        memset(block, 0xFF, sizeof block);
        assert_int_equal(routes[k](0, block, 32), 0x62A8AB43);
        for (uint8_t i = 0; i < 32; i++)
            block[i] = i;
        assert_int_equal(routes[k](0, block, 32), 0x46DD794E);
        for (uint8_t i = 0; i < 32; i++)
            block[i] = (uint8_t)(31 - i);
        assert_int_equal(routes[k](0, block, 32), 0x113FDB5C);
        assert_int_equal(routes[k](0, read_pdu, 48), 0xD9963A56);
    }
}

static void crc_routes_agree(void **state)
{
    crc_route *routes[4];
    const size_t n_routes = crc_routes(routes);
    const size_t room = 60000;
    uint8_t *bytes = malloc(room);
    uint64_t seed = 3;

    ZR_UNUSED(state);
    impl_pattern(bytes, room, 2);
    for (int turn = 0; turn < 400; turn++) {
        const size_t n =
            turn < 100 ? (size_t)turn * 9 : (size_t)impl_random(&seed) % (room - 8);
        const size_t from = (size_t)turn % 8,
                     cut = n ? (size_t)impl_random(&seed) % n : 0;
        const uint32_t want = zr_crc32c_table(0, bytes + from, n);

        for (size_t k = 0; k < n_routes; k++) {
            assert_int_equal(routes[k](0, bytes + from, n), want);
            assert_int_equal(
                routes[k](routes[k](0, bytes + from, cut), bytes + from + cut, n - cut),
                want);
        }
    }
    free(bytes);
}

static void shuffles(void **state)
{
    static const size_t counts[] = {0, 1, 2, 15, 16, 17, 33, 100, 1000, 5001};

    ZR_UNUSED(state);
    for (size_t width = 1; width <= 40; width++)
        for (size_t k = 0; k < ZR_COUNT(counts); k++) {
            const size_t n = counts[k], bytes = n * width;
            uint8_t *in = malloc(bytes + 1), *out = malloc(bytes + 1),
                    *back = malloc(bytes + 1);

            impl_pattern(in, bytes, 2);
            zr_shuffle(out, in, n, width);
            for (size_t i = 0; i < n; i++)
                for (size_t b = 0; b < width; b++)
                    if (out[b * n + i] != in[i * width + b])
                        fail_msg("width %zu, %zu elements: byte %zu of %zu", width, n, b,
                                 i);
            zr_unshuffle(back, out, n, width);
            assert_memory_equal(back, in, bytes);
            free(in);
            free(out);
            free(back);
        }
}

/* ---- delta: the values that numcodecs gives ---- */

static void delta_types(struct zr_delta *t, const char *dtype, const char *astype)
{
    assert_true(zr_numpy_parse(dtype, &t->dtype));
    assert_true(zr_numpy_parse(astype, &t->astype));
}

static void check_delta(const char *dtype, const char *astype, const void *a,
                        const void *e, size_t n)
{
    struct zr_delta t;
    uint8_t got[256];

    delta_types(&t, dtype, astype);
    if (dtype[0] == '=') /* arrays in native byte order */
        t.dtype.big = t.astype.big = !ZR_HOST_IS_LITTLE;
    zr_delta_apply(&t, true, got, a, n);
    assert_memory_equal(got, e, n * zr_number_item_bytes(&t.astype));
    zr_delta_apply(&t, false, got, e, n);
    assert_memory_equal(got, a, n * zr_number_item_bytes(&t.dtype));
}

static void deltas(void **state)
{
    ZR_UNUSED(state);
    check_delta("|u1", "|u1", (uint8_t[]){5, 3, 255, 0}, (uint8_t[]){5, 254, 252, 1}, 4);
    check_delta("<i2", "<i2", (uint8_t[]){1, 0, 0xFF, 0xFF, 0, 0x80},
                (uint8_t[]){1, 0, 0xFE, 0xFF, 1, 0x80}, 3);
    check_delta(">i2", ">i2", (uint8_t[]){0, 1, 0xFF, 0xFF},
                (uint8_t[]){0, 1, 0xFF, 0xFE}, 2);
    check_delta(">i2", "<i2", (uint8_t[]){0, 1, 0xFF, 0xFF},
                (uint8_t[]){1, 0, 0xFE, 0xFF}, 2);
    check_delta("=i4", "=i1", (int32_t[]){100, 101, 99, 90}, (int8_t[]){100, 1, -2, -9},
                4);
    check_delta("=u4", "=i2", (uint32_t[]){7, 6, 5, 1000}, (int16_t[]){7, -1, -1, 995},
                4);
    check_delta("=i8", "=f8", (int64_t[]){-3, 4, 4}, (double[]){-3, 7, 0}, 3);
    check_delta("=f8", "=f4", (double[]){0.5, 1.5, -2}, (float[]){0.5f, 1, -3.5f}, 3);
    check_delta("=f4", "=f4", (float[]){0.5f, 1.5f, -2}, (float[]){0.5f, 1, -3.5f}, 3);
    check_delta("=f8", "=i2", (double[]){10, 300, 299}, (int16_t[]){10, 290, -1}, 3);
    check_delta("=f2", "=f2", (uint16_t[]){0x3c00, 0x4000, 0xc000},
                (uint16_t[]){0x3c00, 0x3c00, 0xc400}, 3);
}

static void delta_names(void **state)
{
    static const char *const bad[] = {NULL,   "",       "<",   "<f1", "<i3",
                                      "<i16", "|b2",    "<c4", "i",   "<M8[s]",
                                      "<<i4", "float8", "|S4"};
    struct zr_number t;

    ZR_UNUSED(state);
    for (size_t i = 0; i < ZR_COUNT(bad); i++)
        assert_false(zr_numpy_parse(bad[i], &t));
    assert_true(zr_numpy_parse(">u8", &t));
    assert_true(t.kind == ZARR_KIND_UINT && t.bytes == 8 && t.big);
    assert_true(zr_numpy_parse(">u1", &t));
    assert_false(t.big);
    assert_true(zr_numpy_parse("float64", &t));
    assert_true(t.kind == ZARR_KIND_FLOAT && t.bytes == 8 && !t.big);
}

/* Any pair of types, any bytes and any alignment, without undefined behaviour. */
static void delta_anything(void **state)
{
    static const char *const names[] = {"|i1", "|u1", "<i2", ">u2", "<i4", ">u4",
                                        "<i8", ">u8", "<f4", ">f4", "<f8", ">f8"};
    uint8_t in[1001], out[1001];

    ZR_UNUSED(state);
    impl_pattern(in, sizeof in, 2);
    for (size_t a = 0; a < ZR_COUNT(names); a++)
        for (size_t b = 0; b < ZR_COUNT(names); b++) {
            struct zr_delta t;

            delta_types(&t, names[a], names[b]);
            zr_delta_apply(&t, true, out + 1, in + 1, 125);
            zr_delta_apply(&t, false, out + 1, in + 1, 125);
        }
}

/* lookup3 with its author's examples, fletcher32 with values from numcodecs. */
static void sums_of_hdf5(void **state)
{
    static const char text[] = "Four score and seven years ago";
    uint8_t block[3000] = {0};

    ZR_UNUSED(state);
    assert_int_equal(zr_jenkins_lookup3(0, NULL, 0, block, 0), 0xDEADBEEF);
    assert_int_equal(zr_jenkins_lookup3(0xDEADBEEF, NULL, 0, block, 0), 0xBD5B7DDE);
    assert_int_equal(zr_jenkins_lookup3(0, NULL, 0, (const uint8_t *)text, 30),
                     0x17770551);
    assert_int_equal(zr_jenkins_lookup3(1, NULL, 0, (const uint8_t *)text, 30),
                     0xCD628161);
    impl_pattern(block, sizeof block, 2);
    for (size_t n = 1; n < 100; n++)
        for (size_t k = 0; k <= ZR_MIN(n, (size_t)ZR_JENKINS_PREFIX_MAX); k++)
            assert_int_equal(zr_jenkins_lookup3(7, block, k, block + k, n - k),
                             zr_jenkins_lookup3(7, NULL, 0, block, n));
    assert_int_equal(zr_fletcher32(block, 0), 0);
    assert_int_equal(zr_fletcher32((const uint8_t *)"abcde", 5), 0x4FF029C7);
    memset(block, 0xFF, sizeof block);
    assert_int_equal(zr_fletcher32(block, 2), 0xFFFFFFFF);
    assert_int_equal(zr_fletcher32(block, sizeof block), 0xFFFFFFFF);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crc_vectors),      cmocka_unit_test(sums_of_hdf5),
        cmocka_unit_test(crc_routes_agree), cmocka_unit_test(shuffles),
        cmocka_unit_test(deltas),           cmocka_unit_test(delta_names),
        cmocka_unit_test(delta_anything),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
