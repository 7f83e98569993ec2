/*
 * base/arith.h - a part of the door: small macros, checked arithmetic, and bytes in a
 * stated order.
 */
#ifndef ZR_BASE_ARITH_H
#define ZR_BASE_ARITH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ZR_COUNT(a)  (sizeof(a) / sizeof((a)[0]))
#define ZR_MIN(a, b) ((a) < (b) ? (a) : (b))
#define ZR_MAX(a, b) ((a) > (b) ? (a) : (b))
/* For one to four parameters. */
#define ZR_UNUSED(...)                 ZR_UNUSED_(__VA_ARGS__, 4, 3, 2, 1, )(__VA_ARGS__)
#define ZR_UNUSED_(a, b, c, d, n, ...) ZR_UNUSED_##n
#define ZR_UNUSED_1(a)                 ((void)(a))
#define ZR_UNUSED_2(a, b)              (ZR_UNUSED_1(a), ZR_UNUSED_1(b))
#define ZR_UNUSED_3(a, b, c)           (ZR_UNUSED_2(a, b), ZR_UNUSED_1(c))
#define ZR_UNUSED_4(a, b, c, d)        (ZR_UNUSED_3(a, b, c), ZR_UNUSED_1(d))

#define ZR_HOST_IS_LITTLE (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)

/* ---- checked arithmetic: true when the result fits ------------------- */

/* All sizes that come from metadata go through these: a product that wraps would give a
 * small buffer a large index. */

/* Integers of any types: *r gets the result, and says which type that is. */
#define zr_add(a, b, r) (!__builtin_add_overflow(a, b, r))
#define zr_mul(a, b, r) (!__builtin_mul_overflow(a, b, r))
#define zr_fits(a, r)   (!__builtin_add_overflow(a, 0, r))
/* The same, but UINT64_MAX if the result does not fit: for totals of progress. */
static inline uint64_t zr_add_cap(uint64_t a, uint64_t b)
{
    uint64_t r;

    return zr_add(a, b, &r) ? r : UINT64_MAX;
}
static inline uint64_t zr_mul_cap(uint64_t a, uint64_t b)
{
    uint64_t r;

    return zr_mul(a, b, &r) ? r : UINT64_MAX;
}
/* Product of n factors; 1 for n = 0; a zero factor gives 0 even if the rest would
 * overflow: an empty array may have enormous other lengths. */
static inline bool zr_product_u64(const uint64_t *v, size_t n, uint64_t *r)
{
    uint64_t product = 1;
    bool fits = true;

    for (size_t i = 0; i < n; i++) {
        if (v[i] == 0) {
            *r = 0;
            return true;
        }
        fits = fits && zr_mul(product, v[i], &product);
    }
    if (fits)
        *r = product;
    return fits;
}
static inline uint64_t zr_product_cap(const uint64_t *v, size_t n)
{
    uint64_t r;

    return zr_product_u64(v, n, &r) ? r : UINT64_MAX;
}
static inline uint64_t zr_ceil_div_u64(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

/* ---- bytes in a stated order ------------------------------------------ */

static inline uint32_t zr_load_le32(const void *p)
{
    const uint8_t *b = (const uint8_t *)p;
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 |
           (uint32_t)b[3] << 24;
}
static inline uint64_t zr_load_le64(const void *p)
{
    return (uint64_t)zr_load_le32(p) | (uint64_t)zr_load_le32((const uint8_t *)p + 4)
                                           << 32;
}
static inline void zr_store_le32(void *p, uint32_t v)
{
    uint8_t *b = (uint8_t *)p;
    b[0] = (uint8_t)v;
    b[1] = (uint8_t)(v >> 8);
    b[2] = (uint8_t)(v >> 16);
    b[3] = (uint8_t)(v >> 24);
}
static inline void zr_store_le64(void *p, uint64_t v)
{
    zr_store_le32(p, (uint32_t)v);
    zr_store_le32((uint8_t *)p + 4, (uint32_t)(v >> 32));
}
/* Reverses every unit of unit_bytes (1, 2, 4, 8, 16) in place or from src to dst (same or
 * disjoint; need not be aligned). */
void zr_byteswap(void *dst, const void *src, size_t n_units, uint32_t unit_bytes);

#endif
