/*
 * codecs/shuffle/shuffle.h - the byte shuffle. Knows no chunks and no jobs.
 */
#ifndef ZR_SHUFFLE_FAMILY_H
#define ZR_SHUFFLE_FAMILY_H

#include "codecs/codecs_int.h"

/* zr_shuffle() sets out[b * n + i] = in[i * width + b] for n elements of `width` bytes.
 * zr_unshuffle() reverses it. */
void zr_shuffle(uint8_t *out, const uint8_t *in, size_t n, size_t width);
void zr_unshuffle(uint8_t *out, const uint8_t *in, size_t n, size_t width);

#if defined(__x86_64__)
/* Do the same for elements of 2, 4, 8 or 16 bytes. Return the number of elements done,
 * from the first on. The caller does the rest. */
size_t zr_shuffle_sse2(uint8_t *out, const uint8_t *in, size_t n, size_t width);
size_t zr_unshuffle_sse2(uint8_t *out, const uint8_t *in, size_t n, size_t width);
#endif

#endif
