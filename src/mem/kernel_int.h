/*
 * mem/kernel_int.h - the inner loops of strided copies, and the choice between portable
 * ones and those for this CPU. A kernel copies a plane: n1 x n0 elements of `run` bytes.
 * strided_copy.c decides which kernel fits.
 */
#ifndef ZR_MEM_KERNEL_INT_H
#define ZR_MEM_KERNEL_INT_H

#include "base/base.h"

#include <string.h>

struct zr_plane {
    uint8_t *dst;
    const uint8_t *src;
    uint64_t n1, n0; /* n0 is the inner loop */
    int64_t ds1, ss1, ds0, ss0;
    size_t run;
    uint32_t unit;
};
typedef void (*zr_plane_fn)(const struct zr_plane *p);

/* One line of bytes; bytes is a multiple of unit for the swapping ones. */
typedef void (*zr_line_fn)(uint8_t *dst, const uint8_t *src, size_t bytes);

/* The functions that depend on the CPU. Index of swap: log2 of the unit. */
struct zr_kernels {
    zr_plane_fn rows;       /* run >= 64 */
    zr_plane_fn rows_ahead; /* run >= 16; fetches the lines of dst a few rows ahead */
    zr_plane_fn
        rows_nt; /* the same, past the caches: for runs that contain whole lines */
    zr_plane_fn swap_rows[5]; /* run is a multiple of the unit */
    zr_plane_fn swap_rows_nt[5];
    zr_line_fn line;    /* any length */
    zr_line_fn line_nt; /* the same past the caches */
    zr_line_fn swap_line[5];
    void (*fence)(void); /* completes all stores past the caches */
    bool (*equal)(const uint8_t *data, size_t bytes, const uint8_t *pattern64);
};
#if defined(__x86_64__) && defined(__GNUC__)
#    define ZR_MEM_X86 1
void zr_sse2_fence(void);
void zr_sse2_line_nt(uint8_t *dst, const uint8_t *src, size_t bytes);
void zr_sse2_rows_nt(const struct zr_plane *p);
void zr_avx2_rows(const struct zr_plane *p);
void zr_avx2_rows_ahead(const struct zr_plane *p);
void zr_avx2_rows_nt(const struct zr_plane *p);
void zr_avx2_line(uint8_t *dst, const uint8_t *src, size_t bytes);
void zr_avx2_line_nt(uint8_t *dst, const uint8_t *src, size_t bytes);
#    define ZR_AVX2_SWAP(unit)                                                           \
        void zr_avx2_swap_rows##unit(const struct zr_plane *p);                          \
        void zr_avx2_swap_rows_nt##unit(const struct zr_plane *p);                       \
        void zr_avx2_swap_line##unit(uint8_t *dst, const uint8_t *src, size_t bytes);
ZR_AVX2_SWAP(2)
ZR_AVX2_SWAP(4)
ZR_AVX2_SWAP(8)
ZR_AVX2_SWAP(16)
bool zr_avx2_equal(const uint8_t *data, size_t bytes, const uint8_t *pattern64);
#endif
const struct zr_kernels *zr_kernels(void);

/* Returns the kernel for runs of any length and any strides. nt: past the caches if
 * possible. */
zr_plane_fn zr_plane_items(size_t run, uint32_t unit, bool nt);
/* dst contiguous along n0, src along n1: exchanges the two. run is 1, 2, 4, 8 or 16 bytes
 * and both lengths at least zr_transpose_min(run). */
void zr_plane_transpose(const struct zr_plane *p);
uint64_t zr_transpose_min(size_t run);

/* Log2 of 1, 2, 4, 8, 16; 5 for any other number. */
uint32_t zr_log2_small(size_t v);

/* ---- words of unaligned memory ---------------------------------------- */

struct zr_u128 {
    uint64_t a, b;
};
#define ZR_WORD(type, name)                                                              \
    static inline type zr_get_##name(const uint8_t *p)                                   \
    {                                                                                    \
        type v;                                                                          \
        memcpy(&v, p, sizeof v);                                                         \
        return v;                                                                        \
    }                                                                                    \
    static inline void zr_put_##name(uint8_t *p, type v)                                 \
    {                                                                                    \
        memcpy(p, &v, sizeof v);                                                         \
    }
ZR_WORD(uint8_t, u8)
ZR_WORD(uint16_t, u16)
ZR_WORD(uint32_t, u32)
ZR_WORD(uint64_t, u64)
ZR_WORD(struct zr_u128, u128)

static inline struct zr_u128 zr_swap_u128(struct zr_u128 v)
{
    return (struct zr_u128){__builtin_bswap64(v.b), __builtin_bswap64(v.a)};
}

/* Copies 1 to 64 bytes with overlapping words. */
static inline void zr_copy_short(uint8_t *d, const uint8_t *s, size_t n)
{
    if (n >= 16) {
        const struct zr_u128 first = zr_get_u128(s), last = zr_get_u128(s + n - 16);
        if (n > 32) {
            const struct zr_u128 x = zr_get_u128(s + 16), y = zr_get_u128(s + n - 32);
            zr_put_u128(d + 16, x);
            zr_put_u128(d + n - 32, y);
        }
        zr_put_u128(d, first);
        zr_put_u128(d + n - 16, last);
    } else if (n >= 8) {
        const uint64_t first = zr_get_u64(s), last = zr_get_u64(s + n - 8);
        zr_put_u64(d, first);
        zr_put_u64(d + n - 8, last);
    } else if (n >= 4) {
        const uint32_t first = zr_get_u32(s), last = zr_get_u32(s + n - 4);
        zr_put_u32(d, first);
        zr_put_u32(d + n - 4, last);
    } else if (n) {
        const uint8_t first = s[0], middle = s[n / 2], last = s[n - 1];
        d[0] = first;
        d[n / 2] = middle;
        d[n - 1] = last;
    }
}

#endif
