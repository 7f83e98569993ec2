/*
 * dtype/block.c - loads runs of numbers into two common forms, doubles and sign-extended
 * 64-bit integers, and stores them, in plain loops that compilers vectorise. An operation
 * on n types then needs n loads and n stores instead of n^2 loops. A double holds every
 * value of every float type. An operation on floats or halves that is done in double and
 * rounded once gives the right result (53 bits are more than twice 24 and 2). Elements
 * may be unaligned and in any byte order. Thread class: plain functions.
 */
#include "dtype/dtype_int.h"

#include <string.h>

/* Gives the elements in native order: src itself, or a swapped copy in `room`. */
static const uint8_t *block_native(const struct zr_number *number, const uint8_t *src,
                                   size_t n, uint8_t *room)
{
    if (!zr_number_is_swapped(number))
        return src;
    zr_byteswap(room, src, n, number->bytes);
    return room;
}

static void block_turn(const struct zr_number *number, uint8_t *dst, size_t n)
{
    if (zr_number_is_swapped(number))
        zr_byteswap(dst, dst, n, number->bytes);
}

/* Gives the width of integers, negative if they are signed. */
static int block_form(const struct zr_number *number)
{
    return number->kind == ZARR_KIND_INT ? -(int)number->bytes : (int)number->bytes;
}

/* The exponent moves from the bias of a half to that of a float by a multiplication,
 * which is right for subnormal numbers, too. */
static inline double half_to_double(uint16_t x)
{
    const bool is_special = (x & 0x7c00) == 0x7c00; /* infinity, NaN */
    const uint32_t bits = (uint32_t)(x & 0x8000) << 16 | (uint32_t)(x & 0x7fff) << 13 |
                          (is_special ? UINT32_C(0x7f800000) : 0);
    float f;

    memcpy(&f, &bits, sizeof f);
    return (double)f * (is_special ? 1 : 0x1p112);
}

#define BLOCK_EACH(type, to)                                                             \
    for (size_t i = 0; i < n; i++) {                                                     \
        type v;                                                                          \
        memcpy(&v, src + i * sizeof v, sizeof v);                                        \
        out[i] = to;                                                                     \
    }                                                                                    \
    break

void zr_block_whole(const struct zr_number *number, const uint8_t *src, size_t n,
                    uint64_t *out)
{
    uint8_t room[8 * ZR_BLOCK];

    src = block_native(number, src, n, room);
    switch (block_form(number)) {
    case -1:
        BLOCK_EACH(int8_t, (uint64_t)(int64_t)v);
    case -2:
        BLOCK_EACH(int16_t, (uint64_t)(int64_t)v);
    case -4:
        BLOCK_EACH(int32_t, (uint64_t)(int64_t)v);
    case -8:
        BLOCK_EACH(int64_t, (uint64_t)v);
    case 1:
        BLOCK_EACH(uint8_t,
                   number->kind == ZARR_KIND_BOOL ? (uint64_t)(v != 0) : (uint64_t)v);
    case 2:
        BLOCK_EACH(uint16_t, (uint64_t)v);
    case 4:
        BLOCK_EACH(uint32_t, (uint64_t)v);
    default:
        BLOCK_EACH(uint64_t, v);
    }
}

void zr_block_real(const struct zr_number *number, const uint8_t *src, size_t n,
                   double *out)
{
    uint8_t room[8 * ZR_BLOCK];

    src = block_native(number, src, n, room);
    if (number->kind == ZARR_KIND_FLOAT) {
        switch (number->bytes) {
        case 8:
            BLOCK_EACH(double, v);
        case 4:
            BLOCK_EACH(float, (double)v);
        default:
            BLOCK_EACH(uint16_t, half_to_double(v));
        }
        return;
    }
    switch (block_form(number)) {
    case -1:
        BLOCK_EACH(int8_t, (double)v);
    case -2:
        BLOCK_EACH(int16_t, (double)v);
    case -4:
        BLOCK_EACH(int32_t, (double)v);
    case -8:
        BLOCK_EACH(int64_t, (double)v);
    case 1:
        BLOCK_EACH(uint8_t,
                   number->kind == ZARR_KIND_BOOL ? (double)(v != 0) : (double)v);
    case 2:
        BLOCK_EACH(uint16_t, (double)v);
    case 4:
        BLOCK_EACH(uint32_t, (double)v);
    default:
        BLOCK_EACH(uint64_t, (double)v);
    }
}

#undef BLOCK_EACH
#define BLOCK_PUT(type, from)                                                            \
    for (size_t i = 0; i < n; i++) {                                                     \
        const type v = (type)(from);                                                     \
        memcpy(dst + i * sizeof v, &v, sizeof v);                                        \
    }                                                                                    \
    break

void zr_block_put_whole(const struct zr_number *number, uint8_t *dst, const uint64_t *in,
                        size_t n, bool sign)
{
    const struct zr_number from =
        zr_number_make(sign ? ZARR_KIND_INT : ZARR_KIND_UINT, 8);

    if (number->kind == ZARR_KIND_FLOAT && number->bytes == 8) {
        if (sign)
            for (size_t i = 0; i < n; i++) {
                const double v = (double)(int64_t)in[i];
                memcpy(dst + i * sizeof v, &v, sizeof v);
            }
        else
            for (size_t i = 0; i < n; i++) {
                const double v = (double)in[i];
                memcpy(dst + i * sizeof v, &v, sizeof v);
            }
        block_turn(number, dst, n);
        return;
    }
    if (number->kind == ZARR_KIND_FLOAT) {
        for (size_t i = 0; i < n; i++) {
            const struct zr_numpy_value v = {.u = in[i]};

            zr_numpy_store(number, dst + i * number->bytes,
                           zr_numpy_convert(&from, number, v));
        }
        return;
    }
    switch (number->kind == ZARR_KIND_BOOL ? 0 : number->bytes) {
    case 0:
        BLOCK_PUT(uint8_t, in[i] != 0);
    case 1:
        BLOCK_PUT(uint8_t, in[i]);
    case 2:
        BLOCK_PUT(uint16_t, in[i]);
    case 4:
        BLOCK_PUT(uint32_t, in[i]);
    default:
        BLOCK_PUT(uint64_t, in[i]);
    }
    block_turn(number, dst, n);
}

/* Whether all values fit integers of 32 bits, of which the processor converts several at
 * once. */
static bool block_is_small(const double *in, size_t n)
{
    int bad = 0;

    for (size_t i = 0; i < n; i++)
        bad |= !(in[i] > -2147483648.0 && in[i] < 2147483648.0);
    return !bad;
}

void zr_block_put_real(const struct zr_number *number, uint8_t *dst, const double *in,
                       size_t n)
{
    const struct zr_number real = zr_number_make(ZARR_KIND_FLOAT, 8);

    if (number->kind == ZARR_KIND_FLOAT && number->bytes > 2) {
        switch (number->bytes) {
        case 8:
            BLOCK_PUT(double, in[i]);
        default:
            BLOCK_PUT(float, in[i]);
        }
        block_turn(number, dst, n);
        return;
    }
    if (zr_number_is_whole(number) && block_is_small(in, n)) {
        switch (number->bytes) {
        case 1:
            BLOCK_PUT(uint8_t, (int32_t)in[i]);
        case 2:
            BLOCK_PUT(uint16_t, (int32_t)in[i]);
        case 4:
            BLOCK_PUT(uint32_t, (int32_t)in[i]);
        default:
            BLOCK_PUT(uint64_t, (int64_t)(int32_t)in[i]);
        }
        block_turn(number, dst, n);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const struct zr_numpy_value v = {.d = in[i]};

        zr_numpy_store(number, dst + i * number->bytes,
                       zr_numpy_convert(&real, number, v));
    }
}
