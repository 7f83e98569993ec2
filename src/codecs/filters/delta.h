/*
 * codecs/filters/delta.h - differences between neighbours, apart from chunks and jobs.
 */
#ifndef ZR_DELTA_H
#define ZR_DELTA_H

#include "codecs/filters/filter.h"

struct zr_delta {
    struct zr_number dtype, astype; /* decoded and encoded elements */
};
/* n elements from src to dst, which do not overlap; neither needs to be aligned. */
void zr_delta_apply(const struct zr_delta *t, bool encode, uint8_t *dst,
                    const uint8_t *src, size_t n);

/* The same for time spans: counts of 64 bits, where one that is NaT makes NaT. */
void zr_delta_times(const struct zr_delta *t, bool encode, uint8_t *dst,
                    const uint8_t *src, size_t n);

#endif
