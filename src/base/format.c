/*
 * base/format.c - real numbers to the shortest text that reads back to the same bits, and
 * if there are several to the nearest (shortest.c). The layout is that of Python's
 * repr(), so that our metadata looks like zarr-python's. The locale has no influence.
 * Thread class: plain functions.
 */
#include "base/base.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
        const int exp10 = zr_shortest(c, q, narrow_below, even, &digits);

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
