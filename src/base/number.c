/*
 * base/number.c - text to numbers, independent of the locale. The grammar of
 * real numbers is JSON's plus a leading sign; NaN and infinities have spellings
 * of their own in metadata and are not handled here. A number too large for its
 * type reads as infinity, one too small as zero, as IEEE 754 rounds them.
 * A scanned number is digits times a power of ten. Up to 2^53 and 10^22 one
 * multiplication or division of two exact doubles rounds once and is correct
 * (Clinger); everything else goes to strtod() as "<digits>e<exponent>", a text
 * without decimal point, so that no locale can misread it. No double needs more
 * than 768 digits to be rounded; further ones only say "and a bit more".
 * Thread class: plain functions.
 */
#include "base/base.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NUMBER_MAX_DIGITS = 780
};

struct number {
    char digits[NUMBER_MAX_DIGITS + 32]; /* leaves room for the exponent */
    size_t n;                            /* without leading zeros; 0: zero */
    int64_t exp10;
    bool negative;
};

static bool number_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool zr_parse_u64(const char *s, size_t n, uint64_t *out)
{
    uint64_t v = 0;

    if (n == 0)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!number_is_digit(s[i]) || !zr_mul(v, 10, &v) ||
            !zr_add(v, (uint64_t)(s[i] - '0'), &v))
            return false;
    *out = v;
    return true;
}

bool zr_parse_bytes(const char *s, size_t n, uint64_t *out)
{
    static const char units[] = "KMGT";
    const char *unit = n ? memchr(units, s[n - 1], sizeof units - 1) : NULL;
    const unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;

    return zr_parse_u64(s, unit ? n - 1 : n, out) &&
           zr_mul(*out, UINT64_C(1) << shift, out);
}

bool zr_parse_i64(const char *s, size_t n, int64_t *out)
{
    const bool negative = n > 0 && s[0] == '-';
    const size_t sign = n > 0 && (s[0] == '-' || s[0] == '+');
    uint64_t v;

    if (!zr_parse_u64(s + sign, n - sign, &v) || v > (uint64_t)INT64_MAX + negative)
        return false;
    *out = negative ? (int64_t)(0 - v) : (int64_t)v;
    return true;
}

static void number_add_digit(struct number *d, char c, int64_t scale)
{
    d->exp10 -= scale;
    if (c == '0' && d->n == 0)
        return;
    if (d->n < NUMBER_MAX_DIGITS) {
        d->digits[d->n++] = c;
        return;
    }
    d->exp10++;
    if (c != '0')
        d->digits[NUMBER_MAX_DIGITS - 1] = '1'; /* not zero: breaks a tie upwards */
}

/* The number of digits at s, at most n. */
static size_t number_digits(struct number *d, const char *s, size_t n, int64_t scale)
{
    size_t i = 0;

    for (; i < n && number_is_digit(s[i]); i++)
        number_add_digit(d, s[i], scale);
    return i;
}

static bool number_exponent(struct number *d, const char *s, size_t n)
{
    const int64_t enough = INT64_C(1) << 60; /* too large for any text to compensate */
    const bool negative = n > 0 && s[0] == '-';
    size_t i = n > 0 && (s[0] == '-' || s[0] == '+');
    int64_t e = 0;

    if (i == n)
        return false;
    for (; i < n; i++) {
        if (!number_is_digit(s[i]))
            return false;
        e = e < enough / 16 ? e * 10 + (s[i] - '0') : e;
    }
    d->exp10 += negative ? -e : e;
    return true;
}

static bool number_scan(struct number *d, const char *s, size_t n)
{
    size_t i = n > 0 && (s[0] == '-' || s[0] == '+'), count;

    d->negative = n > 0 && s[0] == '-';
    d->n = 0;
    d->exp10 = 0;
    count = number_digits(d, s + i, n - i, 0);
    if (count == 0 || (count > 1 && s[i] == '0'))
        return false;
    i += count;
    if (i < n && s[i] == '.') {
        count = number_digits(d, s + i + 1, n - i - 1, 1);
        if (count == 0)
            return false;
        i += 1 + count;
    }
    if (i < n && (s[i] == 'e' || s[i] == 'E'))
        return number_exponent(d, s + i + 1, n - i - 1);
    return i == n;
}

static const char *number_text(struct number *d)
{
    const int64_t far = 9999; /* far beyond any type even with 780 digits */
    const int64_t e = ZR_MAX(-far, ZR_MIN(far, d->exp10));

    snprintf(d->digits + d->n, sizeof d->digits - d->n, "e%" PRId64, e);
    return d->digits;
}

/* The digits as an integer, if that and the power of ten are exact in the type. */
static bool number_is_small(const struct number *d, uint64_t limit, int64_t max_exp10,
                            uint64_t *v)
{
    return FLT_EVAL_METHOD == 0 && d->n <= 19 && d->exp10 <= max_exp10 &&
           d->exp10 >= -max_exp10 && zr_parse_u64(d->digits, d->n, v) && *v <= limit;
}

bool zr_parse_f64(const char *s, size_t n, double *out)
{
    static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                  1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                  1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    struct number d;
    uint64_t u;
    double v = 0;

    if (!number_scan(&d, s, n))
        return false;
    if (number_is_small(&d, UINT64_C(1) << 53, 22, &u))
        v = d.exp10 < 0 ? (double)u / tens[-d.exp10] : (double)u * tens[d.exp10];
    else if (d.n > 0)
        v = strtod(number_text(&d), NULL);
    *out = d.negative ? -v : v;
    return true;
}

bool zr_parse_f32(const char *s, size_t n, float *out)
{
    static const float tens[] = {1e0F, 1e1F, 1e2F, 1e3F, 1e4F, 1e5F,
                                 1e6F, 1e7F, 1e8F, 1e9F, 1e10F};
    struct number d;
    uint64_t u;
    float v = 0;

    if (!number_scan(&d, s, n))
        return false;
    if (number_is_small(&d, UINT64_C(1) << 24, 10, &u))
        v = d.exp10 < 0 ? (float)u / tens[-d.exp10] : (float)u * tens[d.exp10];
    else if (d.n > 0)
        v = strtof(number_text(&d), NULL);
    *out = d.negative ? -v : v;
    return true;
}
