/*
 * codecs/zfp/zfp_promote.c - converts elements of types that zfp lacks to a type of zfp,
 * and back. Narrow integers are shifted up to 32 bits. Unsigned integers become signed.
 * Small floats become float. Thread class: plain functions.
 */
#include "codecs/zfp/zfp_promote.h"

#include <math.h>
#include <string.h>

bool zr_zfp_promotes(const struct zr_zfp *z)
{
    return z->bits || z->is_unsigned || z->real.kind;
}

static void promote_reals(const struct zr_zfp *z, const uint8_t *from, float *to)
{
    for (size_t i = 0; i < z->n_items; i++, from += z->item_bytes)
        to[i] = (float)zr_float_to_f64(z->real.real, zr_number_bits(&z->real, from));
}

/* A lossy stream may give values outside the type's range. They become the nearest value
 * of the range, as for integers. */
static void demote_reals(const struct zr_zfp *z, const float *from, uint8_t *to)
{
    const struct zr_float *f = z->real.real;

    for (size_t i = 0; i < z->n_items; i++, to += z->item_bytes) {
        uint64_t bits = 0;

        if (!zr_float_from_f64(f, (double)from[i], &bits)) {
            const bool minus = from[i] < 0;

            bits = isnan(from[i]) ? f->nan : minus && !f->sign ? 0 : f->largest;
            if (minus)
                bits |= f->sign;
        }
        zr_number_put(&z->real, to, bits);
    }
}

static int64_t load_whole(const struct zr_zfp *z, const uint8_t *from)
{
    int16_t two = 0;
    int32_t four = 0;
    int64_t v = 0;

    switch (z->item_bytes) {
    case 1:
        return z->is_unsigned ? from[0] : (int8_t)from[0];
    case 2:
        memcpy(&two, from, 2);
        return z->is_unsigned ? (uint16_t)two : two;
    case 4:
        memcpy(&four, from, 4);
        return z->is_unsigned ? (int64_t)(uint32_t)four : four;
    default:
        memcpy(&v, from, 8);
        return v;
    }
}

/* Converts integers of any width to the field's type. False if one does not fit. */
static bool promote_whole(const struct zr_zfp *z, const uint8_t *from, void *to)
{
    for (size_t i = 0; i < z->n_items; i++, from += z->item_bytes) {
        int64_t v = load_whole(z, from);

        if (z->bits) {
            v -= z->is_unsigned ? INT64_C(1) << (z->bits - 1) : 0;
            v *= INT64_C(1) << (31 - z->bits);
        }
        if (v < INT32_MIN || (v > INT32_MAX && z->scalar == ZR_ZFP_INT32) ||
            (z->is_unsigned && !z->bits && v < 0))
            return false;
        if (z->scalar == ZR_ZFP_INT64) {
            ((int64_t *)to)[i] = v;
            continue;
        }
        ((int32_t *)to)[i] = (int32_t)v;
    }
    return true;
}

static int64_t clamp(int64_t v, int64_t lo, int64_t hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

/* Values of a lossy stream outside the range become the nearest value of the range. */
static void demote_whole(const struct zr_zfp *z, const void *from, uint8_t *to)
{
    for (size_t i = 0; i < z->n_items; i++, to += z->item_bytes) {
        int64_t v = z->scalar == ZR_ZFP_INT64 ? ((const int64_t *)from)[i]
                                              : ((const int32_t *)from)[i];
        const uint32_t bits = z->bits;

        if (bits) {
            const int64_t half = INT64_C(1) << (bits - 1);
            const int64_t unit = INT64_C(1) << (31 - bits);

            v = v >= 0 ? v / unit : -((-v + unit - 1) / unit); /* rounds down */
            v = z->is_unsigned ? clamp(v + half, 0, 2 * half - 1)
                               : clamp(v, -half, half - 1);
        } else if (v < 0) {
            v = 0;
        }
        if (z->item_bytes == 1) {
            *to = (uint8_t)v;
        } else if (z->item_bytes == 2) {
            const uint16_t two = (uint16_t)v;

            memcpy(to, &two, 2);
        } else if (z->item_bytes == 4) {
            const uint32_t four = (uint32_t)v;

            memcpy(to, &four, 4);
        } else {
            memcpy(to, &v, 8);
        }
    }
}

bool zr_zfp_promote(const struct zr_zfp *z, const uint8_t *from, void *to)
{
    if (!z->real.kind)
        return promote_whole(z, from, to);
    promote_reals(z, from, to);
    return true;
}

void zr_zfp_demote(const struct zr_zfp *z, const void *from, uint8_t *to)
{
    if (z->real.kind)
        demote_reals(z, from, to);
    else
        demote_whole(z, from, to);
}
