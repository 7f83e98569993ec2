/*
 * dtype/float.c - the binary floating-point formats (struct zr_float, one row each), and
 * conversion between their bits, doubles and decimal text. A format has a sign, an
 * exponent field, a fraction, and a rule for infinity and NaN. Every number of a format
 * of up to 16 bits is also a double, so double is their common form. The two larger
 * formats are C's own.
 * Conversion rounds once, to nearest, ties to even. A decimal may be so near the middle
 * of two numbers of a small format that its double is that middle. The decimal is then
 * compared with the middle digit by digit.
 * Thread class: plain functions.
 */
#include "dtype_int.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IEEE(text, code, size, width, fraction, offset, top, quiet)                      \
    {                                                                                    \
        .name = text, .dlpack = ZARR_DLPACK_##code, .bytes = size, .bits = width,        \
        .fraction_bits = fraction, .bias = offset, .sign = UINT64_C(1) << (width - 1),   \
        .infinity = top, .nan = quiet, .largest = (top)-1                                \
    }
/* A format without infinity. NaN, if it has one, is the pattern just above the largest
 * number, and its negative. */
#define FINITE(text, code, width, fraction, offset, most, quiet)                         \
    {                                                                                    \
        .name = text, .dlpack = ZARR_DLPACK_##code, .bytes = 1, .bits = width,           \
        .fraction_bits = fraction, .bias = offset, .sign = 1U << (width - 1),            \
        .nan = quiet, .largest = most                                                    \
    }

const struct zr_float zr_floats[] = {
    IEEE("float16", FLOAT, 2, 16, 10, 15, 0x7c00, 0x7e00),
    IEEE("float32", FLOAT, 4, 32, 23, 127, 0x7f800000, 0x7fc00000),
    IEEE("float64", FLOAT, 8, 64, 52, 1023, UINT64_C(0x7ff0000000000000),
         UINT64_C(0x7ff8000000000000)),
    IEEE("bfloat16", BFLOAT, 2, 16, 7, 127, 0x7f80, 0x7fc0),
    IEEE("float8_e3m4", FLOAT8_E3M4, 1, 8, 4, 3, 0x70, 0x78),
    IEEE("float8_e4m3", FLOAT8_E4M3, 1, 8, 3, 7, 0x78, 0x7c),
    IEEE("float8_e5m2", FLOAT8_E5M2, 1, 8, 2, 15, 0x7c, 0x7e),
    {.name = "float8_e4m3fn",
     .bytes = 1,
     .bits = 8,
     .fraction_bits = 3,
     .bias = 7,
     .dlpack = ZARR_DLPACK_FLOAT8_E4M3FN,
     .unregistered = true,
     .sign = 0x80,
     .nan = 0x7f,
     .largest = 0x7e},
    FINITE("float8_e4m3b11fnuz", FLOAT8_E4M3B11FNUZ, 8, 3, 11, 0x7f, 0x80),
    FINITE("float8_e4m3fnuz", FLOAT8_E4M3FNUZ, 8, 3, 8, 0x7f, 0x80),
    FINITE("float8_e5m2fnuz", FLOAT8_E5M2FNUZ, 8, 2, 16, 0x7f, 0x80),
    {.name = "float8_e8m0fnu",
     .dlpack = ZARR_DLPACK_FLOAT8_E8M0FNU,
     .bytes = 1,
     .bits = 8,
     .bias = 127,
     .nan = 0xff,
     .largest = 0xfe},
    FINITE("float6_e2m3fn", FLOAT6_E2M3FN, 6, 3, 1, 0x1f, 0),
    FINITE("float6_e3m2fn", FLOAT6_E3M2FN, 6, 2, 3, 0x1f, 0),
    {.name = "float4_e2m1fn",
     .bytes = 1,
     .bits = 4,
     .fraction_bits = 1,
     .bias = 1,
     .dlpack = ZARR_DLPACK_FLOAT4_E2M1FN,
     .v2_base64 = true,
     .sign = 8,
     .largest = 7},
    {.name = NULL},
};

const struct zr_float *zr_float_find(const char *name, size_t n)
{
    for (const struct zr_float *f = zr_floats; f->name; f++)
        if (strlen(f->name) == n && memcmp(f->name, name, n) == 0)
            return f;
    return NULL;
}

uint64_t zr_float_load(const struct zr_float *f, const void *p)
{
    uint64_t mask = UINT64_MAX >> (64 - f->bits);

    return zr_load_low(p, f->bytes) & mask;
}

void zr_float_store(const struct zr_float *f, void *p, uint64_t bits)
{
    zr_store_low(p, bits, f->bytes);
}

bool zr_float_is_nan(const struct zr_float *f, uint64_t bits)
{
    if (f->infinity)
        return (bits & ~f->sign) > f->infinity;
    if (!f->nan)
        return false;
    return bits == f->nan || (f->sign && f->nan != f->sign && bits == (f->nan | f->sign));
}

/* ---- to a double ----------------------------------------------------------- */

/* Splits the bits of a number into c * 2^*q and returns c. */
static uint64_t float_parts(const struct zr_float *f, uint64_t bits, int *q)
{
    const uint64_t magnitude = bits & ~f->sign;
    const uint64_t exponent = magnitude >> f->fraction_bits;
    const uint64_t hidden = UINT64_C(1) << f->fraction_bits;
    const uint64_t fraction = magnitude & (hidden - 1);

    if (!f->sign) { /* exponent only: the field 0 is an ordinary value */
        *q = (int)magnitude - f->bias;
        return 1;
    }
    *q = (exponent ? (int)exponent : 1) - f->bias - f->fraction_bits;
    return exponent ? fraction | hidden : fraction;
}

double zr_float_to_f64(const struct zr_float *f, uint64_t bits)
{
    const bool minus = (bits & f->sign) != 0;
    float single;
    uint32_t bits32 = (uint32_t)bits;
    double v;
    int q = 0;

    if (f->bytes == 8) {
        memcpy(&v, &bits, sizeof v);
        return v;
    }
    if (f->bytes == 4) {
        memcpy(&single, &bits32, sizeof single);
        return (double)single;
    }
    if (zr_float_is_nan(f, bits))
        return (double)NAN;
    if (f->infinity && (bits & ~f->sign) == f->infinity)
        return minus ? -(double)INFINITY : (double)INFINITY;
    v = (double)float_parts(f, bits, &q);
    v = ldexp(v, q);
    return minus ? -v : v;
}

/* ---- from a double ---------------------------------------------------------- */

/* Rounds v (> 0 and finite) and gives the bits of the magnitude, more than f->largest if
 * it is too large. *tie: v is the middle of two numbers of the format. *up: v was rounded
 * up. */
static uint64_t round_magnitude(const struct zr_float *f, double v, bool *tie, bool *up)
{
    int e = 0, shift;
    const uint64_t c = (uint64_t)ldexp(frexp(v, &e), 53); /* v = c * 2^(e-53) */
    const int exponent = e - 1 + f->bias; /* the exponent field of a normal number */
    uint64_t kept, lost, half;

    *tie = *up = false;
    if (!f->sign && exponent < 0) { /* below 2^-bias only what rounds up fits */
        *tie = exponent == -1 && c == UINT64_C(3) << 51;
        *up = exponent == -1 && c >= UINT64_C(3) << 51;
        return *up ? 0 : UINT64_MAX;
    }
    shift = 52 - f->fraction_bits;
    if (f->sign && exponent < 1)
        shift += 1 - exponent;
    if (shift > 54)
        return 0;
    kept = c >> shift;
    lost = c & ((UINT64_C(1) << shift) - 1);
    half = UINT64_C(1) << (shift - 1);
    *tie = lost == half;
    *up = lost > half || (*tie && (kept & 1));
    kept += *up;
    if (!f->sign)
        return (uint64_t)exponent + kept - 1;
    /* The hidden bit adds one to the exponent field, and a carry adds another. Both
     * belong there. */
    return exponent > 0 ? kept + ((uint64_t)(exponent - 1) << f->fraction_bits) : kept;
}

static bool add_sign(const struct zr_float *f, uint64_t magnitude, bool minus,
                     uint64_t *bits)
{
    const bool no_minus_zero = f->nan == f->sign;

    *bits = magnitude;
    if (minus && (magnitude || !no_minus_zero))
        *bits |= f->sign;
    return magnitude <= f->largest;
}

bool zr_float_from_f64(const struct zr_float *f, double v, uint64_t *bits)
{
    const bool minus = signbit(v) != 0;
    float single = (float)v;
    bool tie, up;

    *bits = f->nan;
    if (isnan(v))
        return f->nan != 0;
    if (isinf(v) || (!f->sign && (minus || v == 0))) {
        *bits = minus ? f->infinity | f->sign : f->infinity;
        return f->infinity != 0 && isinf(v);
    }
    if (f->bytes == 8) {
        memcpy(bits, &v, sizeof v);
        return true;
    }
    if (f->bytes == 4) {
        *bits = zr_load_low(&single, 4);
        return !isinf(single);
    }
    return add_sign(f, v == 0 ? 0 : round_magnitude(f, fabs(v), &tie, &up), minus, bits);
}

/* ---- from text -------------------------------------------------------------- */

struct float_digits {
    const char *s, *end; /* the remaining digits */
    int64_t exp10;       /* the power of ten above the first digit that is not zero */
};

/* Starts at the first digit that is not zero. The text is a number that zr_parse_f64()
 * takes. */
static struct float_digits float_digits_open(const char *s, size_t n)
{
    struct float_digits d = {.s = s, .end = s + n};
    int64_t before = 0, exponent = 0;
    const char *e = s, *first = NULL;

    while (e < d.end && (*e | 0x20) != 'e')
        e++;
    if (e < d.end && !zr_parse_i64(e + 1, (size_t)(d.end - e - 1), &exponent))
        exponent = 0; /* beyond an int64: the number is zero or infinite */
    d.end = e;
    for (const char *p = s; p < d.end && *p != '.'; p++)
        before += *p >= '0' && *p <= '9';
    for (const char *p = s; p < d.end && !first; p++) {
        if (*p >= '1' && *p <= '9')
            first = p;
        else
            before -= *p == '0';
    }
    d.s = first ? first : d.end;
    d.exp10 = before + exponent;
    return d;
}

static int float_digits_next(struct float_digits *d)
{
    while (d->s < d->end && (*d->s < '0' || *d->s > '9'))
        d->s++;
    return d->s < d->end ? *d->s++ - '0' : -1;
}

/* Compares the text's magnitude with v > 0 exactly: -1, 0 or 1. v is a double with at
 * most 120 digits. */
static int compare_decimal(const char *s, size_t n, double v)
{
    char exact[160];
    struct float_digits a = float_digits_open(s, n), b;
    const int bytes = snprintf(exact, sizeof exact, "%.140e", v);
    int x = 0, y = 0;

    for (char *p = exact; *p; p++)
        if (*p == ',') /* the decimal point of some locales */
            *p = '.';
    b = float_digits_open(exact, (size_t)bytes);
    if (a.exp10 != b.exp10)
        return a.exp10 < b.exp10 ? -1 : 1;
    while (x >= 0 || y >= 0) {
        x = float_digits_next(&a);
        y = float_digits_next(&b);
        if (ZR_MAX(x, 0) != ZR_MAX(y, 0))
            return x < y ? -1 : 1;
    }
    return 0;
}

bool zr_float_from_text(const struct zr_float *f, const char *s, size_t n, uint64_t *bits,
                        bool *fits)
{
    bool tie = false, up = false, minus;
    float single = 0;
    uint64_t magnitude = 0;
    double v = 0;
    int side;

    if (f->bytes == 4) {
        if (!zr_parse_f32(s, n, &single))
            return false;
        *bits = zr_load_low(&single, 4);
        *fits = !isinf(single);
        return true;
    }
    if (!zr_parse_f64(s, n, &v))
        return false;
    minus = signbit(v) != 0;
    *fits = !isinf(v) && (f->sign || (v > 0 && !minus));
    if (f->bytes == 8)
        memcpy(bits, &v, sizeof v);
    if (f->bytes == 8 || !*fits)
        return true;
    if (v != 0)
        magnitude = round_magnitude(f, fabs(v), &tie, &up);
    if (tie) {
        side = compare_decimal(s, n, fabs(v));
        if (side < 0 && up)
            magnitude--;
        if (side > 0 && !up)
            magnitude++;
    }
    *fits = add_sign(f, magnitude, minus, bits);
    return true;
}

/* ---- to text ---------------------------------------------------------------- */

size_t zr_float_format(const struct zr_float *f, uint64_t bits, char *text, size_t cap)
{
    const bool minus = (bits & f->sign) != 0;
    uint64_t c;
    int q = 0;

    if (f->bytes == 1) /* the exact 448.0, not 450.0, which also reads back */
        return zr_format_f64(text, cap, zr_float_to_f64(f, bits));
    c = float_parts(f, bits, &q);
    return zr_format_binary(
        text, cap, minus, c, q,
        (c & (c - 1)) == 0 && (bits & ~f->sign) >> f->fraction_bits > 1, (bits & 1) == 0);
}
