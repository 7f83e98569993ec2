/*
 * base/shortest.c - the shortest decimal inside the rounding interval of a binary number,
 * and if there are several the nearest. It uses integers only: Giulietti's method
 * (Schubfach). All decimals of one power of ten that may matter are neighbours of the
 * number scaled by it. So only two candidates of that power and two of the next larger
 * one must be checked. The scaled number has 64 bits with a sticky bit. Its fraction is
 * never nearer to zero than the error of a power of ten with 128 bits, so comparisons are
 * exact.
 * Thread class: plain functions.
 */
#include "base/base.h"
#include "base/pow10_int.h"

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

int zr_shortest(uint64_t c, int q, bool narrow_below, bool even, uint64_t *digits)
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
