/*
 * dtype/half.c - IEEE binary16 to and from double, in integer arithmetic, and
 * its shortest text: the first decimal of 1 to 5 digits that rounds back (5
 * always do), laid out as a double is, which has no shorter spelling for so few
 * digits. Thread class: plain functions.
 */
#include "dtype_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

double zr_half_to_f64(uint16_t h)
{
    int exponent = h >> 10 & 31;
    double fraction = (double)(h & 1023);
    double v;

    if (exponent == 0)
        v = ldexp(fraction, -24);
    else if (exponent == 31)
        v = fraction != 0 ? (double)NAN : (double)INFINITY;
    else
        v = ldexp(fraction + 1024.0, exponent - 25);
    return h & 0x8000 ? -v : v;
}

uint16_t zr_half_from_f64(double v)
{
    uint64_t bits, kept, lost;
    uint16_t sign;
    int exponent, shift;

    memcpy(&bits, &v, sizeof bits);
    sign = (uint16_t)(bits >> 48 & 0x8000);
    exponent = (int)(bits >> 52 & 2047) - 1023;
    if (isnan(v))
        return (uint16_t)(sign | 0x7e00);
    if (exponent > 15)
        return (uint16_t)(sign | 0x7c00);
    if (exponent < -25) /* below half of the least subnormal */
        return sign;
    bits = (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
    shift = exponent < -14 ? 42 - 14 - exponent : 42;
    kept = bits >> shift;
    lost = bits & ((UINT64_C(1) << shift) - 1);
    kept += lost > UINT64_C(1) << (shift - 1) ||
            (lost == UINT64_C(1) << (shift - 1) && kept & 1);
    /* The hidden bit adds one to the exponent field, a carry another: both are wanted. */
    if (exponent >= -14)
        kept += (uint64_t)(exponent + 14) << 10;
    return (uint16_t)(sign | kept);
}

/* v > 0 to so many significant digits: a double near that decimal, the nearest where it
 * matters. */
static double few_digits(double v, int digits)
{
    int power = digits - 1 - (int)floor(log10(v));
    double ten = 1;

    for (int i = 0; i < abs(power); i++) /* at most 10^12: exact */
        ten *= 10;
    return power >= 0 ? nearbyint(v * ten) / ten : nearbyint(v / ten) * ten;
}

size_t zr_half_format(char *text, size_t cap, uint16_t h)
{
    double v = zr_half_to_f64(h & 0x7fff), w = v;

    for (int digits = 1; v > 0 && digits <= 5; digits++) {
        w = few_digits(v, digits);
        if (zr_half_from_f64(w) == (h & 0x7fff))
            break;
        w = v;
    }
    return zr_format_f64(text, cap, h & 0x8000 ? -w : w);
}
