/*
 * tests/unit/mem/mem_test.h - helpers of the tests of mem: seeded random numbers, random
 * boxes, and a strided copy that is simple enough to be the reference.
 */
#ifndef MEM_TEST_H
#define MEM_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mem/mem.h"

/* xorshift64*; any seed but 0. */
struct rnd {
    uint64_t state;
};

static inline uint64_t rnd_next(struct rnd *r)
{
    r->state ^= r->state >> 12;
    r->state ^= r->state << 25;
    r->state ^= r->state >> 27;
    return r->state * UINT64_C(2685821657736338717);
}

/* A number from 0 to n - 1. */
static inline uint64_t rnd_below(struct rnd *r, uint64_t n)
{
    return (rnd_next(r) >> 11) % n;
}

static inline void rnd_bytes(struct rnd *r, uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)(rnd_next(r) >> 32);
}

/* ZR_TEST_SEED repeats a run. The default seed is fixed, so failures repeat. */
static inline uint64_t rnd_seed(uint64_t fixed)
{
    const char *text = getenv("ZR_TEST_SEED");
    const uint64_t seed = text ? strtoull(text, NULL, 0) : fixed;

    return seed ? seed : 1;
}

/* Strides of one side: nested in random order, with gaps and random directions. Returns
 * the number of bytes spanned; *first is the position of element 0. */
static inline uint64_t random_side(struct rnd *r, int32_t ndim, const uint64_t *shape,
                                   uint32_t item, bool zeros, int64_t *stride,
                                   uint64_t *first)
{
    int32_t order[ZARR_MAX_RANK];
    uint64_t line = item, span = item;
    const bool plain = rnd_below(r, 3) == 0, dense = rnd_below(r, 2) == 0;

    *first = 0;
    for (int32_t k = 0; k < ndim; k++)
        order[k] = ndim - 1 - k;
    for (int32_t k = ndim - 1; k > 0 && !plain; k--) {
        const int32_t other = (int32_t)rnd_below(r, (uint64_t)k + 1), was = order[k];
        order[k] = order[other];
        order[other] = was;
    }
    for (int32_t k = 0; k < ndim; k++) {
        const int32_t d = order[k];
        const uint64_t steps = shape[d] ? shape[d] - 1 : 0;

        if (!dense && rnd_below(r, 3) == 0)
            line += rnd_below(r, 2) ? item * rnd_below(r, 3) : rnd_below(r, 9);
        if (zeros && rnd_below(r, 6) == 0) {
            stride[d] = 0;
            continue;
        }
        stride[d] = (int64_t)line;
        span += steps * line;
        if (!plain && rnd_below(r, 4) == 0) {
            *first += steps * line;
            stride[d] = -stride[d];
        }
        line *= shape[d] ? shape[d] : 1;
        line = span > line ? span : line;
    }
    return span;
}

/* Copies element by element, byte by byte. src NULL: fills with pattern. */
static inline void reference_copy(const zarr_box *b, uint8_t *dst, const uint8_t *src,
                                  const uint8_t *pattern)
{
    uint64_t total = 1;
    const uint32_t unit = b->swap_bytes > 1 ? b->swap_bytes : 1;

    for (int32_t k = 0; k < b->ndim; k++)
        total *= b->shape[k];
    for (uint64_t i = 0; i < total; i++) {
        uint8_t *d = dst + b->dst.mem.offset;
        const uint8_t *s = src ? src + b->src.mem.offset : pattern;
        uint64_t rest = i;

        for (int32_t k = b->ndim - 1; k >= 0; k--) {
            const int64_t at = (int64_t)(rest % b->shape[k]);
            rest /= b->shape[k];
            d += at * b->dst.stride[k];
            if (src)
                s += at * b->src.stride[k];
        }
        for (uint32_t j = 0; j < b->item_bytes; j++)
            d[j] = s[src ? j / unit * unit + unit - 1 - j % unit : j];
    }
}

#endif
