/*
 * base/format.c - real numbers to the shortest text that reads back to the same bits, and
 * if there are several to the nearest (find_shortest()). The layout is that of Python's
 * repr(), so that our metadata looks like zarr-python's. The locale has no influence.
 * Thread class: plain functions.
 */
#include "base/base.h"
#include "base/pow10_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    POW10_FIRST = -304, /* of pow10_row */
    POW10_STEP = sizeof pow5_row / sizeof *pow5_row
};

/* floor(e * log10(2)), floor(e * log10(2) + log10(3/4)), floor(e * log2(10)): by
 * multiplication, exact for |e| <= 1500. */
static int floor_log10_pow2(int e)
{
    return (int)(((int64_t)e * 1292913986) >> 32);
}

static int floor_log10_three_quarters_pow2(int e)
{
    return (int)(((int64_t)e * 1292913986 - 536607789) >> 32);
}

static int floor_log2_pow10(int e)
{
    return (int)(((int64_t)e * 1741647) >> 19);
}

__extension__ typedef unsigned __int128 uint128;

/* 10^e, shifted to 128 bits and rounded up. gen-pow10 checks that the product of two rows
 * has enough bits. */
static void find_power(int e, uint64_t power[2])
{
    const unsigned at = (unsigned)(e - POW10_FIRST);
    const uint64_t *row = pow10_row[at / POW10_STEP], five = pow5_row[at % POW10_STEP];
    const uint128 low = (uint128)row[2] * five;
    const uint128 middle = (uint128)row[1] * five + (uint64_t)(low >> 64);
    const uint128 high = (uint128)row[0] * five + (uint64_t)(middle >> 64);
    const uint64_t top = (uint64_t)(high >> 64);
    const unsigned shift = !(top >> 63);

    power[0] = top << shift | ((uint64_t)high >> 63 & shift);
    power[1] = ((uint64_t)high << shift | ((uint64_t)middle >> 63 & shift)) + 1;
}

/* c * power / 2^128, with the lowest bit set where something is cut off. */
static uint64_t scale_sticky(const uint64_t power[2], uint64_t c)
{
    const uint128 low = (uint128)power[1] * c;
    const uint128 high = (uint128)power[0] * c + (uint64_t)(low >> 64);

    return (uint64_t)(high >> 64) | ((uint64_t)high > 1);
}

/* Finds the shortest decimal inside the rounding interval, and if there are several the
 * nearest, with integers only: Giulietti's method (Schubfach). All decimals of one power
 * of ten that may matter are neighbours of the number scaled by it. So only two
 * candidates of that power and two of the next larger one must be checked. The scaled
 * number has 64 bits with a sticky bit. Its fraction is never nearer to zero than the
 * error of a power of ten with 128 bits, so comparisons are exact. c > 0. Returns the
 * power of ten by which to multiply the digits. */
static int find_shortest(uint64_t c, int q, bool narrow_below, bool even,
                         uint64_t *digits)
{
    const int k = narrow_below ? floor_log10_three_quarters_pow2(q) : floor_log10_pow2(q);
    const int shift = q + floor_log2_pow10(-k) + 1;
    uint64_t power[2], v, low, high, s, ten;
    bool below, above;

    find_power(-k, power);
    v = scale_sticky(power, (4 * c) << shift);
    low = scale_sticky(power, (4 * c - (narrow_below ? 1 : 2)) << shift);
    high = scale_sticky(power, (4 * c + 2) << shift);
    s = v / 4;
    ten = s / 10;
    low += !even; /* ties are rounded to even numbers, so only an even number's interval
                     includes its ends */
    high -= !even;
    if (s >= 10) {
        below = low <= 40 * ten;
        above = 40 * ten + 40 <= high;
        if (below != above) {
            *digits = ten + above;
            return k + 1;
        }
    }
    below = low <= 4 * s;
    above = 4 * s + 4 <= high;
    if (below == above)
        above = v > 4 * s + 2 || (v == 4 * s + 2 && (s & 1));
    *digits = s + above;
    return k;
}

/* the digits d1d2d3... mean d1.d2d3... * 10^exp10 */
struct format_decimal {
    char digits[20]; /* 2^64 has 20 */
    int n, exp10;
};

/* Sets u * 10^exp10, without the zeros at the end of u. */
static void format_decimal_set(struct format_decimal *d, uint64_t u, int exp10)
{
    char text[20];
    size_t at = sizeof text;

    do {
        text[--at] = (char)('0' + u % 10);
        u /= 10;
    } while (u);
    d->n = (int)(sizeof text - at);
    memcpy(d->digits, text + at, sizeof text - at);
    d->exp10 = d->n - 1 + exp10;
    while (d->n > 1 && d->digits[d->n - 1] == '0')
        d->n--;
}

static char *format_zeros(char *to, int n)
{
    for (int i = 0; i < n; i++)
        *to++ = '0';
    return to;
}

/* Appends digits[from..to) of the decimal, with zeros beyond its digits. */
static char *format_digits(char *out, const struct format_decimal *d, int from, int to)
{
    const int have = ZR_MIN(to, d->n);

    if (from < have) {
        memcpy(out, d->digits + from, (size_t)(have - from));
        out += have - from;
        from = have;
    }
    return format_zeros(out, to - from);
}

static char *format_exponent(char *to, int exponent)
{
    const int e = abs(exponent);

    *to++ = 'e';
    *to++ = exponent < 0 ? '-' : '+';
    if (e >= 100)
        *to++ = (char)('0' + e / 100);
    *to++ = (char)('0' + e / 10 % 10);
    *to++ = (char)('0' + e % 10);
    return to;
}

/* Python's repr(): plain from 1e-4 to below 1e16, else with an exponent of two digits or
 * more. */
static char *format_layout(char *to, const struct format_decimal *d)
{
    if (d->exp10 < -4 || d->exp10 >= 16) {
        *to++ = d->digits[0];
        if (d->n > 1) {
            *to++ = '.';
            to = format_digits(to, d, 1, d->n);
        }
        return format_exponent(to, d->exp10);
    }
    if (d->exp10 < 0) {
        *to++ = '0';
        *to++ = '.';
        to = format_zeros(to, -d->exp10 - 1);
        return format_digits(to, d, 0, d->n);
    }
    to = format_digits(to, d, 0, d->exp10 + 1);
    *to++ = '.';
    return format_digits(to, d, d->exp10 + 1, ZR_MAX(d->n, d->exp10 + 2));
}

static size_t format_out(char *out, size_t cap, const char *text, size_t n)
{
    if (n >= cap)
        n = cap ? cap - 1 : 0;
    if (cap) {
        memcpy(out, text, n);
        out[n] = '\0';
    }
    return n;
}

size_t zr_format_binary(char *out, size_t cap, bool minus, uint64_t c, int q,
                        bool narrow_below, bool even)
{
    struct format_decimal d = {.digits = "0", .n = 1};
    char text[48], *to = text;
    uint64_t digits = 0;

    if (minus)
        *to++ = '-';
    if (c) {
        const int exp10 = find_shortest(c, q, narrow_below, even, &digits);

        format_decimal_set(&d, digits, exp10);
    }
    to = format_layout(to, &d);
    return format_out(out, cap, text, (size_t)(to - text));
}

/* No caller does this; the output is still not garbage. */
static size_t format_special(char *out, size_t cap, bool nan, bool minus)
{
    const char *text = nan ? "NaN" : minus ? "-Infinity" : "Infinity";

    return format_out(out, cap, text, strlen(text));
}

size_t zr_format_f64(char *out, size_t cap, double v)
{
    const uint64_t hidden = UINT64_C(1) << 52;
    uint64_t bits, fraction;
    int exponent;

    memcpy(&bits, &v, sizeof bits);
    if (!isfinite(v))
        return format_special(out, cap, isnan(v), v < 0);
    fraction = bits & (hidden - 1);
    exponent = (int)(bits >> 52 & 0x7ff);
    return zr_format_binary(out, cap, bits >> 63, exponent ? fraction | hidden : fraction,
                            (exponent ? exponent : 1) - 1075,
                            fraction == 0 && exponent > 1, (fraction & 1) == 0);
}
