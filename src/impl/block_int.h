/*
 * impl/block_int.h - runs of numbers between memory and doubles or 64-bit integers.
 */
#ifndef ZR_BLOCK_INT_H
#define ZR_BLOCK_INT_H

#include "impl/impl_int.h"

/* Elements that one call takes at most: the blocks live on the stack. */
#define ZR_BLOCK 512

/* bool and integers, extended by their sign. */
void zr_block_whole(const struct zr_numpy_type *type, const uint8_t *src, size_t n,
                    uint64_t *out);
/* Any type; integers of 64 bits are rounded. */
void zr_block_real(const struct zr_numpy_type *type, const uint8_t *src, size_t n,
                   double *out);
/* What NumPy's astype() makes of them. sign: of in's integers. */
void zr_block_put_whole(const struct zr_numpy_type *type, uint8_t *dst,
                        const uint64_t *in, size_t n, bool sign);
void zr_block_put_real(const struct zr_numpy_type *type, uint8_t *dst, const double *in,
                       size_t n);

#endif
