/*
 * unit/easy/test_conversion.c - which pairs of numeric types are converted, and that
 * converted numbers are equal. The rule is computed anew here: types of at most 16 bits
 * by trying all of their values, larger ones by the numbers of <float.h>.
 */
#include "easy_test.h"

#include "dtype/dtype.h"

#include <float.h>

static const char *const types[] = {
    "int2",           "int4",
    "int8",           "int16",
    "int32",          "int64",
    "uint2",          "uint4",
    "uint8",          "uint16",
    "uint32",         "uint64",
    "float4_e2m1fn",  "float6_e2m3fn",
    "float6_e3m2fn",  "float8_e3m4",
    "float8_e4m3",    "float8_e4m3b11fnuz",
    "float8_e4m3fn",  "float8_e4m3fnuz",
    "float8_e5m2",    "float8_e5m2fnuz",
    "float8_e8m0fnu", "bfloat16",
    "float16",        "float32",
    "float64",
};
enum {
    N_TYPES = sizeof types / sizeof *types
};

static struct zr_number number_at(struct world *w, int i)
{
    const zarr_dtype *dtype = NULL;
    struct zr_number n = {0};

    assert_ok(zarr_dtype_find(&dtype, w->ctx, types[i], &terr));
    assert_true(zr_number_from_dtype(dtype, &n));
    return n;
}

static int same_scalar(struct zr_scalar a, struct zr_scalar b)
{
    if (a.kind != b.kind || a.kind == ZR_SCALAR_NAN)
        return a.kind == b.kind;
    for (; a.c && !(a.c & 1); a.c >>= 1)
        a.q++;
    for (; b.c && !(b.c & 1); b.c >>= 1)
        b.q++;
    return a.minus == b.minus && a.c == b.c &&
           (a.c == 0 || a.kind == ZR_SCALAR_INFINITY || a.q == b.q);
}

/* Casts all values of a small type. */
static int all_values_are_in(const struct zr_number *to, const struct zr_number *from)
{
    for (uint64_t bits = 0; bits < UINT64_C(1) << from->bits; bits++) {
        const struct zr_scalar v = zr_scalar_from_bits(from, bits);
        uint64_t out = 0;

        if (zr_scalar_cast(&v, to, ZR_ROUND_EVEN, ZR_RANGE_ERROR, &out) != ZR_CAST_OK ||
            !same_scalar(v, zr_scalar_from_bits(to, out)))
            return 0;
    }
    return 1;
}

/* Types of 32 and 64 bits fit only in these. */
static int large_is_in(const char *to, const char *from)
{
    static const struct {
        const char *from, *to[5];
    } row[] = {
        {"int32", {"int32", "int64", DBL_MANT_DIG >= 31 ? "float64" : NULL}},
        {"int64", {"int64", DBL_MANT_DIG >= 63 ? "float64" : NULL}},
        {"uint32", {"uint32", "uint64", "int64", DBL_MANT_DIG >= 32 ? "float64" : NULL}},
        {"uint64", {"uint64", DBL_MANT_DIG >= 64 ? "float64" : NULL}},
        {"float32", {"float32", DBL_MANT_DIG >= FLT_MANT_DIG ? "float64" : NULL}},
        {"float64", {"float64"}},
    };

    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        for (int k = 0; strcmp(row[i].from, from) == 0 && k < 5 && row[i].to[k]; k++)
            if (strcmp(row[i].to[k], to) == 0)
                return 1;
    return 0;
}

static void test_rule(void **state)
{
    struct world w;
    int n_in = 0;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    for (int i = 0; i < N_TYPES; i++)
        for (int k = 0; k < N_TYPES; k++) {
            const struct zr_number from = number_at(&w, i), to = number_at(&w, k);
            const int want = from.bits <= 16 ? all_values_are_in(&to, &from)
                                             : large_is_in(types[k], types[i]);

            if (zr_number_holds(&to, &from) != want)
                fail_msg("%s in %s: should be %d", types[i], types[k], want);
            n_in += want;
        }
    assert_in_range(n_in, 120, N_TYPES * N_TYPES - 120);
    world_close(&w);
}

/* Bytes of numbers of a type: all patterns, or random ones and the extremes. */
static size_t fill_numbers(const struct zr_number *n, uint8_t *bytes, size_t cap)
{
    size_t count = n->bits <= 8 ? (size_t)1 << n->bits : cap;
    uint64_t random = 1;

    for (size_t i = 0; i < count; i++) {
        uint64_t bits = i;

        random = random * 6364136223846793005u + 1442695040888963407u;
        if (n->bits > 8)
            bits = i < 4 ? (i % 2 ? UINT64_MAX : UINT64_MAX >> 1) << (i < 2 ? 0 : 5)
                         : random >> (i % 3 ? 0 : 20);
        zr_number_put(n, bytes + i * n->bytes, bits & UINT64_MAX >> (64 - n->bits));
    }
    return count;
}

static void compare(const struct zr_number *from, const uint8_t *a,
                    const struct zr_number *to, const uint8_t *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!same_scalar(
                zr_scalar_from_bits(from, zr_number_bits(from, a + i * from->bytes)),
                zr_scalar_from_bits(to, zr_number_bits(to, b + i * to->bytes))))
            fail_msg("element %zu of %zu differs", i, n);
}

enum {
    MANY = 1500 /* more than two blocks of the kernel, and no multiple of one */
};

/* Reads array `a`, which has the n numbers of `in`, as type k; writes them to array b of
 * this type. */
static void convert_pair(const struct zr_number *from, const uint8_t *in, size_t n,
                         zarr_array *a, zarr_array *b, const char *const names[2],
                         const struct zr_number *to)
{
    static uint8_t out[8 * MANY + 8];
    const uint64_t count[1] = {n};
    const int may = zr_number_holds(to, from);
    zarr_status st;

    memset(out, 0xee, sizeof out);
    st = zarr_array_read_box(a, NULL, NULL, names[1], out, n * to->bytes, &terr);
    assert_int_equal(st, may ? ZARR_OK : ZARR_ERR_INVALID);
    if (may) {
        compare(from, in, to, out, n);
        assert_int_equal(out[n * to->bytes], 0xee); /* nothing behind the memory */
    } else {
        assert_says(names[0]);
        assert_says(names[1]);
    }
    st = zarr_array_write_box(b, NULL, count, names[0], in, n * from->bytes, &terr);
    assert_int_equal(st, may ? ZARR_OK : ZARR_ERR_INVALID);
    if (!may)
        return;
    assert_ok(zarr_array_read_box(b, NULL, count, NULL, out, sizeof out, &terr));
    compare(from, in, to, out, n);
}

static void test_pairs(void **state)
{
    static uint8_t in[8 * MANY];
    const uint64_t many[1] = {MANY};
    zarr_array *a, *b[N_TYPES];
    struct world w;

    (void)state;
    world_open(&w, WORLD_LOCAL);
    for (int k = 0; k < N_TYPES; k++)
        b[k] = make_easy(&w, types[k], types[k], 1, many);
    for (int i = 0; i < N_TYPES; i++) {
        const struct zr_number from = number_at(&w, i);
        const uint64_t n = fill_numbers(&from, in, MANY);

        a = make_easy(&w, "a", types[i], 1, &n);
        assert_ok(zarr_array_write_box(a, NULL, NULL, NULL, in, n * from.bytes, &terr));
        for (int k = 0; k < N_TYPES; k++) {
            const char *const names[2] = {types[i], types[k]};
            const struct zr_number to = number_at(&w, k);

            convert_pair(&from, in, n, a, b[k], names, &to);
        }
        zarr_array_free(a);
    }
    for (int k = 0; k < N_TYPES; k++)
        zarr_array_free(b[k]);
    world_close(&w);
}

static void test_complex(void **state)
{
    const float in[4] = {1.5f, -2, 0, 1e30f};
    const uint64_t shape[1] = {2};
    double out[4] = {0};
    struct world w;
    zarr_array *a;

    (void)state;
    world_open(&w, WORLD_LOCAL);
    a = make_easy(&w, "a", ZARR_COMPLEX64, 1, shape);
    assert_ok(zarr_array_write_box(a, NULL, NULL, ZARR_COMPLEX64, in, sizeof in, &terr));
    assert_ok(
        zarr_array_read_box(a, NULL, NULL, ZARR_COMPLEX128, out, sizeof out, &terr));
    for (int i = 0; i < 4; i++)
        assert_true(out[i] == (double)in[i]);
    assert_status(zarr_array_read_box(a, NULL, NULL, ZARR_FLOAT64, out, 16, &terr),
                  ZARR_ERR_INVALID);
    assert_says("complex64 cannot be converted to float64");
    assert_status(zarr_array_write_box(a, NULL, NULL, ZARR_FLOAT32, in, sizeof in, &terr),
                  ZARR_ERR_INVALID);
    zarr_array_free(a);
    world_close(&w);
}

/* Other types are read as they are, and are not converted. */
static void test_no_numbers(void **state)
{
    static const char *const others[] = {"bool", "r16", "numpy.datetime64[s]", "|S4"};
    const uint64_t shape[1] = {3};
    uint8_t data[24] = {1, 0, 1}, out[24] = {0};
    struct world w;

    (void)state;
    world_open(&w, WORLD_LOCAL);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        char name[4] = {(char)('a' + i)};
        zarr_array *a = make_easy(&w, name, others[i], 1, shape);

        assert_ok(
            zarr_array_write_box(a, NULL, NULL, others[i], data, sizeof data, &terr));
        assert_ok(zarr_array_read_box(a, NULL, NULL, others[i], out, sizeof out, &terr));
        assert_memory_equal(out, data, 3);
        assert_status(
            zarr_array_read_box(a, NULL, NULL, ZARR_FLOAT64, out, sizeof out, &terr),
            ZARR_ERR_INVALID);
        assert_says("cannot be converted to float64");
        zarr_array_free(a);
    }
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rule),
        cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_complex),
        cmocka_unit_test(test_no_numbers),
    };

    return cmocka_run_group_tests_name("easy_conversion", tests, NULL, NULL);
}
