/*
 * codecs/shuffle/shuffle.h - the byte shuffle, apart from chunks and jobs.
 */
#ifndef ZR_SHUFFLE_FAMILY_H
#define ZR_SHUFFLE_FAMILY_H

#include "codecs/codecs_int.h"

/* out[b * n + i] = in[i * width + b] and back, n elements of width bytes. */
void zr_shuffle(uint8_t *out, const uint8_t *in, size_t n, size_t width);
void zr_unshuffle(uint8_t *out, const uint8_t *in, size_t n, size_t width);

#if defined(__x86_64__)
/* How many elements of 2, 4, 8 or 16 bytes were done; the rest is the caller's. */
size_t zr_shuffle_sse2(uint8_t *out, const uint8_t *in, size_t n, size_t width);
size_t zr_unshuffle_sse2(uint8_t *out, const uint8_t *in, size_t n, size_t width);
#endif

#endif
