/*
 * array/create/chunk_guess.c - chooses a chunk shape if the caller gives none: about 1
 * MiB decoded, with edges that are powers of two or the whole dimension. The longest edge
 * is halved until the chunk is small enough, so chunks tend to cubes and serve slices in
 * any direction. Inside a given shard the edges must divide the shard's, so only even
 * edges are halved. Thread class: plain functions.
 */
#include "array/create/spec_int.h"

enum {
    GUESS_BYTES = 1 << 20
};

/* Returns the smallest power of two that is at least n; at most 2^62. */
static uint64_t power_above(uint64_t n)
{
    uint64_t p = 1;

    while (p < n && p < UINT64_C(1) << 62)
        p *= 2;
    return p;
}

static bool fits_guess(const uint64_t *edge, int32_t ndim, uint64_t item_bytes)
{
    uint64_t n = 0;

    return zr_product_u64(edge, (size_t)ndim, &n) &&
           zr_mul(n, ZR_MAX(item_bytes, 1), &n) && n <= GUESS_BYTES;
}

void zr_chunk_guess(uint64_t *chunk, int32_t ndim, const uint64_t *shape,
                    uint64_t item_bytes)
{
    for (int32_t d = 0; d < ndim; d++)
        chunk[d] = shape[d] ? shape[d] : 1;
    while (!fits_guess(chunk, ndim, item_bytes)) {
        int32_t longest = 0;

        for (int32_t d = 1; d < ndim; d++)
            if (chunk[d] > chunk[longest])
                longest = d;
        if (chunk[longest] == 1)
            return;
        chunk[longest] = power_above(chunk[longest]) / 2;
    }
}

void zr_chunk_guess_in_shard(uint64_t *chunk, int32_t ndim, const uint64_t *shard,
                             uint64_t item_bytes)
{
    for (int32_t d = 0; d < ndim; d++)
        chunk[d] = shard[d];
    while (!fits_guess(chunk, ndim, item_bytes)) {
        int32_t longest = -1;

        for (int32_t d = 0; d < ndim; d++)
            if (chunk[d] % 2 == 0 && chunk[d] > 1 &&
                (longest < 0 || chunk[d] > chunk[longest]))
                longest = d;
        if (longest < 0)
            return;
        chunk[longest] /= 2;
    }
}
