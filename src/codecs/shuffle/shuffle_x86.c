/*
 * codecs/shuffle/shuffle_x86.c - the byte shuffle of elements of 2, 4, 8 and 16 bytes
 * with SSE2, which every x86-64 has. Sixteen elements fill `width` registers. The
 * position of a byte in them is a number of 4 + log2(width) bits. Interleaving the first
 * half of the registers with the second rotates those bits left by one. Four rotations
 * shuffle, log2(width) rotations unshuffle.
 */
#include "codecs/shuffle/shuffle.h"

#if defined(__x86_64__)

#    include <emmintrin.h>

/* gcc unrolls these small loops only on request. clang always does. */
#    if defined(__clang__)
#        define SHUFFLE_UNROLL
#    else
#        define SHUFFLE_UNROLL _Pragma("GCC unroll 16")
#    endif

__attribute__((always_inline)) static inline void shuffle_rotate(__m128i *v, size_t width)
{
    __m128i w[16];

    SHUFFLE_UNROLL
    for (size_t i = 0; i < width / 2; i++) {
        w[2 * i] = _mm_unpacklo_epi8(v[i], v[i + width / 2]);
        w[2 * i + 1] = _mm_unpackhi_epi8(v[i], v[i + width / 2]);
    }
    SHUFFLE_UNROLL
    for (size_t i = 0; i < width; i++)
        v[i] = w[i];
}

__attribute__((always_inline)) static inline size_t
shuffle_width(uint8_t *out, const uint8_t *in, size_t n, size_t width)
{
    size_t done = 0;

    for (; done + 16 <= n; done += 16) {
        __m128i v[16];

        SHUFFLE_UNROLL
        for (size_t i = 0; i < width; i++)
            v[i] = _mm_loadu_si128(
                (const __m128i *)(const void *)(in + done * width + 16 * i));
        shuffle_rotate(v, width);
        shuffle_rotate(v, width);
        shuffle_rotate(v, width);
        shuffle_rotate(v, width);
        SHUFFLE_UNROLL
        for (size_t b = 0; b < width; b++)
            _mm_storeu_si128((__m128i *)(void *)(out + b * n + done), v[b]);
    }
    return done;
}

__attribute__((always_inline)) static inline size_t
unshuffle_width(uint8_t *out, const uint8_t *in, size_t n, size_t width)
{
    size_t done = 0;

    for (; done + 16 <= n; done += 16) {
        __m128i v[16];

        SHUFFLE_UNROLL
        for (size_t b = 0; b < width; b++)
            v[b] = _mm_loadu_si128((const __m128i *)(const void *)(in + b * n + done));
        SHUFFLE_UNROLL
        for (size_t step = 1; step < width; step *= 2)
            shuffle_rotate(v, width);
        SHUFFLE_UNROLL
        for (size_t i = 0; i < width; i++)
            _mm_storeu_si128((__m128i *)(void *)(out + done * width + 16 * i), v[i]);
    }
    return done;
}

size_t zr_shuffle_sse2(uint8_t *out, const uint8_t *in, size_t n, size_t width)
{
    switch (width) {
    case 2:
        return shuffle_width(out, in, n, 2);
    case 4:
        return shuffle_width(out, in, n, 4);
    case 8:
        return shuffle_width(out, in, n, 8);
    case 16:
        return shuffle_width(out, in, n, 16);
    default:
        return 0;
    }
}

size_t zr_unshuffle_sse2(uint8_t *out, const uint8_t *in, size_t n, size_t width)
{
    switch (width) {
    case 2:
        return unshuffle_width(out, in, n, 2);
    case 4:
        return unshuffle_width(out, in, n, 4);
    case 8:
        return unshuffle_width(out, in, n, 8);
    case 16:
        return unshuffle_width(out, in, n, 16);
    default:
        return 0;
    }
}

#else
typedef int shuffle_x86_is_empty; /* an empty translation unit is not ISO C */
#endif
