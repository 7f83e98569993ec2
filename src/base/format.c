/*
 * base/format.c - real numbers to the shortest text that reads back to the same
 * bits, and of the shortest ones the nearest. Laid out as Python's repr() does,
 * so that metadata we write reads like metadata zarr-python writes.
 * Most numbers in metadata are integers or have few decimals: for those the
 * digits come from one exact multiplication, checked by the exact division back.
 * The rest is found by trying: every decimal of 15 digits (float: 6) survives
 * the way through a normal binary number, so if those many round trip, the text
 * without its trailing zeros is shortest; else one more digit, and one more.
 * Two cases need care. Subnormals have less precision: start at one digit. Below
 * a power of two the numbers lie twice as dense as above it, so that the nearest
 * decimal may miss where its upper neighbour hits.
 * snprintf() and strtod() see no decimal point of any locale: we read digits
 * over it and give strtod() none. Thread class: plain functions.
 */
#include "base/base.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* digits d1d2d3... mean d1.d2d3... times ten to exp10 */
struct format_decimal {
    char digits[24];
    int n, exp10;
};

static void format_from_u64(struct format_decimal *d, uint64_t u, int scale)
{
    char text[20]; /* 2^64 has 20 */
    size_t at = sizeof text;

    do {
        text[--at] = (char)('0' + u % 10);
        u /= 10;
    } while (u);
    d->n = (int)(sizeof text - at);
    memcpy(d->digits, text + at, sizeof text - at);
    d->exp10 = d->n - 1 - scale;
}

static const double format_tens[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5,
                                     1e6, 1e7, 1e8, 1e9, 1e10};

/* v > 0 with few decimals: true when found. */
static bool format_few_decimals_f64(struct format_decimal *d, double v)
{
    if (v < 1e15 && v == (double)(uint64_t)v) {
        format_from_u64(d, (uint64_t)v, 0);
        return true;
    }
    if (FLT_EVAL_METHOD != 0 || v < 1e-3)
        return false;
    for (int k = 1; k < (int)ZR_COUNT(format_tens); k++) {
        const double scaled = v * format_tens[k];

        if (scaled >= 1e15)
            return false; /* 15 digits: unique, hence shortest */
        if (scaled == (double)(uint64_t)scaled && scaled / format_tens[k] == v) {
            format_from_u64(d, (uint64_t)scaled, k);
            return true;
        }
    }
    return false;
}

static bool format_few_decimals_f32(struct format_decimal *d, float v)
{
    if (v < 1e6F && v == (float)(uint32_t)v) {
        format_from_u64(d, (uint64_t)v, 0);
        return true;
    }
    if (FLT_EVAL_METHOD != 0 || v < 1e-3F)
        return false;
    for (int k = 1; k < (int)ZR_COUNT(format_tens); k++) {
        const float ten = (float)format_tens[k], scaled = v * ten;

        if (scaled >= 1e6F)
            return false;
        if (scaled == (float)(uint32_t)scaled && scaled / ten == v) {
            format_from_u64(d, (uint64_t)scaled, k);
            return true;
        }
    }
    return false;
}

static void format_round(struct format_decimal *d, double v, int precision)
{
    char text[40];
    const char *s = text;

    snprintf(text, sizeof text, "%.*e", precision - 1, v);
    d->n = 0;
    for (; *s && *s != 'e'; s++) /* over the decimal point, whatever it is */
        if (*s >= '0' && *s <= '9' && d->n < 20)
            d->digits[d->n++] = *s;
    d->exp10 = *s ? (int)strtol(s + 1, NULL, 10) : 0;
}

/* One unit more in the last place. */
static void format_step_up(struct format_decimal *d)
{
    int i = d->n - 1;

    for (; i >= 0 && d->digits[i] == '9'; i--)
        d->digits[i] = '0';
    if (i >= 0) {
        d->digits[i]++;
        return;
    }
    d->digits[0] = '1';
    d->exp10++;
}

static bool format_reads_back(const struct format_decimal *d, double v, bool single)
{
    char text[48];

    snprintf(text, sizeof text, "%.*se%d", d->n, d->digits, d->exp10 - (d->n - 1));
    return single ? (double)strtof(text, NULL) == v : strtod(text, NULL) == v;
}

static void format_search(struct format_decimal *d, double v, bool single)
{
    const int most = single ? FLT_DECIMAL_DIG : DBL_DECIMAL_DIG;
    const bool normal = v >= (single ? (double)FLT_MIN : DBL_MIN);
    int exponent;
    const bool power_of_two = frexp(v, &exponent) == 0.5;

    for (int p = !normal ? 1 : single ? FLT_DIG : DBL_DIG; p <= most; p++) {
        format_round(d, v, p);
        if (format_reads_back(d, v, single))
            break;
        if (power_of_two && p < most) {
            format_step_up(d);
            if (format_reads_back(d, v, single))
                break;
        }
    }
}

static char *format_zeros(char *to, int n)
{
    for (int i = 0; i < n; i++)
        *to++ = '0';
    return to;
}

/* digits[from..to) of the decimal, zeros where it has none. */
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

/* Python's repr(): plain from 1e-4 to below 1e16, else with an exponent of two digits or
 * more. */
static char *format_layout(char *to, struct format_decimal *d)
{
    while (d->n > 1 && d->digits[d->n - 1] == '0')
        d->n--;
    if (d->exp10 < -4 || d->exp10 >= 16) {
        *to++ = d->digits[0];
        if (d->n > 1) {
            *to++ = '.';
            to = format_digits(to, d, 1, d->n);
        }
        return to + snprintf(to, 8, "e%c%02d", d->exp10 < 0 ? '-' : '+', abs(d->exp10));
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

static size_t format_real(char *out, size_t cap, double v, bool single)
{
    struct format_decimal d = {.digits = "0", .n = 1};
    char text[48], *to = text;
    size_t n;

    if (signbit(v) && !isnan(v))
        *to++ = '-';
    v = fabs(v);
    if (!isfinite(v)) { /* not asked for; still no garbage */
        to += snprintf(to, 16, "%s", isnan(v) ? "NaN" : "Infinity");
    } else {
        if (v > 0 && !(single ? format_few_decimals_f32(&d, (float)v)
                              : format_few_decimals_f64(&d, v)))
            format_search(&d, v, single);
        to = format_layout(to, &d);
    }
    n = (size_t)(to - text);
    if (n >= cap)
        n = cap ? cap - 1 : 0;
    if (cap) {
        memcpy(out, text, n);
        out[n] = '\0';
    }
    return n;
}

size_t zr_format_f64(char *out, size_t cap, double v)
{
    return format_real(out, cap, v, false);
}

size_t zr_format_f32(char *out, size_t cap, float v)
{
    return format_real(out, cap, (double)v, true);
}
