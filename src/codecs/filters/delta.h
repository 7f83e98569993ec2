/*
 * codecs/filters/delta.h - differences between neighbours. Knows no chunks and no jobs.
 */
#ifndef ZR_DELTA_H
#define ZR_DELTA_H

#include "codecs/filters/filter.h"

struct zr_delta {
    struct zr_number dtype, astype; /* decoded and encoded elements */
};
/* Encodes or decodes n elements from src to dst. The buffers must not overlap; they may
 * be unaligned. */
void zr_delta_apply(const struct zr_delta *t, bool encode, uint8_t *dst,
                    const uint8_t *src, size_t n);

/* Does the same for time spans, which are counts of 64 bits. A result is NaT if one of
 * its two operands is. */
void zr_delta_times(const struct zr_delta *t, bool encode, uint8_t *dst,
                    const uint8_t *src, size_t n);

#endif
