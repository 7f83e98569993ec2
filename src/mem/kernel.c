/*
 * mem/kernel.c - the portable inner loops of strided copies and of the comparison with a
 * pattern, and the choice of better ones by what the CPU offers. Loads and stores are
 * memcpy of a fixed size, which compilers turn into one instruction, so elements need no
 * alignment. Wide loops for x86 are in x86_sse2.c and x86_avx2.c.
 * Thread class: plain functions.
 */
#include "mem/kernel_int.h"
#include "mem/mem.h"

/* A plane of elements, each copied by one statement on d and s. */
#define PLANE(name, copy)                                                                \
    static void name(const struct zr_plane *p)                                           \
    {                                                                                    \
        const int64_t ds = p->ds0, ss = p->ss0;                                          \
        const size_t run = p->run;                                                       \
        ZR_UNUSED(run);                                                                  \
        for (uint64_t i = 0; i < p->n1; i++) {                                           \
            uint8_t *d = p->dst + (int64_t)i * p->ds1;                                   \
            const uint8_t *s = p->src + (int64_t)i * p->ss1;                             \
            for (uint64_t j = 0; j < p->n0; j++, d += ds, s += ss)                       \
                copy;                                                                    \
        }                                                                                \
    }

PLANE(plane_u8, zr_put_u8(d, zr_get_u8(s)))
PLANE(plane_u16, zr_put_u16(d, zr_get_u16(s)))
PLANE(plane_u32, zr_put_u32(d, zr_get_u32(s)))
PLANE(plane_u64, zr_put_u64(d, zr_get_u64(s)))
PLANE(plane_u128, zr_put_u128(d, zr_get_u128(s)))
PLANE(plane_swap_u16, zr_put_u16(d, __builtin_bswap16(zr_get_u16(s))))
PLANE(plane_swap_u32, zr_put_u32(d, __builtin_bswap32(zr_get_u32(s))))
PLANE(plane_swap_u64, zr_put_u64(d, __builtin_bswap64(zr_get_u64(s))))
PLANE(plane_swap_u128, zr_put_u128(d, zr_swap_u128(zr_get_u128(s))))

/* ---- runs: several elements that lie side by side on both sides -------- */

/* Short fixed lengths that are frequent (pixels, points), then any length. */
PLANE(plane_bytes3, memcpy(d, s, 3))
PLANE(plane_bytes6, memcpy(d, s, 6))
PLANE(plane_bytes12, memcpy(d, s, 12))
PLANE(plane_bytes24, memcpy(d, s, 24))
PLANE(plane_bytes32, memcpy(d, s, 32))
PLANE(plane_bytes64, memcpy(d, s, 64))
PLANE(plane_short, zr_copy_short(d, s, run))
PLANE(plane_rows, memcpy(d, s, run))

static void line_copy(uint8_t *dst, const uint8_t *src, size_t bytes)
{
    memcpy(dst, src, bytes);
}

static uint64_t swap_pairs(uint64_t v)
{
    const uint64_t low = UINT64_C(0x00ff00ff00ff00ff);

    return (v & low) << 8 | (v >> 8 & low);
}

static void line_swap2(uint8_t *dst, const uint8_t *src, size_t bytes)
{
    size_t i = 0;

    for (; i + 8 <= bytes; i += 8)
        zr_put_u64(dst + i, swap_pairs(zr_get_u64(src + i)));
    for (; i < bytes; i += 2)
        zr_put_u16(dst + i, __builtin_bswap16(zr_get_u16(src + i)));
}

static void line_swap4(uint8_t *dst, const uint8_t *src, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 4)
        zr_put_u32(dst + i, __builtin_bswap32(zr_get_u32(src + i)));
}

static void line_swap8(uint8_t *dst, const uint8_t *src, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 8)
        zr_put_u64(dst + i, __builtin_bswap64(zr_get_u64(src + i)));
}

static void line_swap16(uint8_t *dst, const uint8_t *src, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 16)
        zr_put_u128(dst + i, zr_swap_u128(zr_get_u128(src + i)));
}

PLANE(plane_swap_rows2, line_swap2(d, s, run))
PLANE(plane_swap_rows4, line_swap4(d, s, run))
PLANE(plane_swap_rows8, line_swap8(d, s, run))
PLANE(plane_swap_rows16, line_swap16(d, s, run))

/* Units of any other length. */
static void plane_swap_odd(const struct zr_plane *p)
{
    for (uint64_t i = 0; i < p->n1; i++) {
        for (uint64_t j = 0; j < p->n0; j++) {
            uint8_t *d = p->dst + (int64_t)i * p->ds1 + (int64_t)j * p->ds0;
            const uint8_t *s = p->src + (int64_t)i * p->ss1 + (int64_t)j * p->ss0;

            for (size_t at = 0; at < p->run; at += p->unit)
                for (size_t k = 0; k < p->unit; k++)
                    d[at + k] = s[at + p->unit - 1 - k];
        }
    }
}

/* ---- equality ----------------------------------------------------------- */

/* bytes is a multiple of the pattern's length. */
static bool equal_words(const uint8_t *data, size_t bytes, const uint8_t *pattern64)
{
    size_t i = 0;

    for (; i + 64 <= bytes; i += 64) {
        uint64_t differ = 0;

        for (size_t k = 0; k < 64; k += 8)
            differ |= zr_get_u64(data + i + k) ^ zr_get_u64(pattern64 + k);
        if (differ)
            return false;
    }
    return memcmp(data + i, pattern64, bytes - i) == 0;
}

bool zr_all_equal(const void *data, uint64_t n, const void *pattern, uint32_t item_bytes)
{
    const uint8_t *bytes = data;
    uint8_t pattern64[64];

    if (n == 0 || item_bytes == 0)
        return true;
    if (zr_log2_small(item_bytes) <= 4) {
        for (size_t at = 0; at < sizeof pattern64; at += item_bytes)
            memcpy(pattern64 + at, pattern, item_bytes);
        return zr_kernels()->equal(bytes, (size_t)n * item_bytes, pattern64);
    }
    /* Checks that each element equals the first, and the first the pattern. */
    return memcmp(bytes, pattern, item_bytes) == 0 &&
           memcmp(bytes, bytes + item_bytes, (size_t)(n - 1) * item_bytes) == 0;
}

/* ---- choice ---------------------------------------------------------------- */

#define SWAP_PLANES                                                                      \
    {                                                                                    \
        plane_rows, plane_swap_rows2, plane_swap_rows4, plane_swap_rows8,                \
            plane_swap_rows16                                                            \
    }
#define PORTABLE                                                                         \
    .rows = plane_rows, .rows_ahead = plane_rows, .swap_rows = SWAP_PLANES,              \
    .swap_rows_nt = SWAP_PLANES, .line = line_copy,                                      \
    .swap_line = {line_copy, line_swap2, line_swap4, line_swap8, line_swap16},           \
    .equal = equal_words

#ifdef ZR_MEM_X86

static const struct zr_kernels kernels_sse2 = {
    PORTABLE,
    .rows_nt = zr_sse2_rows_nt,
    .line_nt = zr_sse2_line_nt,
    .fence = zr_sse2_fence,
};

static const struct zr_kernels kernels_avx2 = {
    .rows = zr_avx2_rows,
    .rows_ahead = zr_avx2_rows_ahead,
    .rows_nt = zr_avx2_rows_nt,
    .swap_rows = {plane_rows, zr_avx2_swap_rows2, zr_avx2_swap_rows4, zr_avx2_swap_rows8,
                  zr_avx2_swap_rows16},
    .swap_rows_nt = {plane_rows, zr_avx2_swap_rows_nt2, zr_avx2_swap_rows_nt4,
                     zr_avx2_swap_rows_nt8, zr_avx2_swap_rows_nt16},
    .line = zr_avx2_line,
    .line_nt = zr_avx2_line_nt,
    .swap_line = {line_copy, zr_avx2_swap_line2, zr_avx2_swap_line4, zr_avx2_swap_line8,
                  zr_avx2_swap_line16},
    .fence = zr_sse2_fence,
    .equal = zr_avx2_equal,
};

const struct zr_kernels *zr_kernels(void)
{
    return zr_cpu_features & ZR_CPU_AVX2 ? &kernels_avx2 : &kernels_sse2;
}

#else

static void fence_none(void)
{
}

static const struct zr_kernels kernels_portable = {
    PORTABLE,
    .rows_nt = plane_rows,
    .line_nt = line_copy,
    .fence = fence_none,
};

const struct zr_kernels *zr_kernels(void)
{
    return &kernels_portable;
}

#endif

uint32_t zr_log2_small(size_t v)
{
    return v == 1 ? 0 : v == 2 ? 1 : v == 4 ? 2 : v == 8 ? 3 : v == 16 ? 4 : 5;
}

static zr_plane_fn plane_plain(size_t run, bool nt)
{
    static const zr_plane_fn words[] = {plane_u8, plane_u16, plane_u32, plane_u64,
                                        plane_u128};
    const uint32_t log = zr_log2_small(run);

    if (log < ZR_COUNT(words))
        return words[log];
    switch (run) {
    case 3:
        return plane_bytes3;
    case 6:
        return plane_bytes6;
    case 12:
        return plane_bytes12;
    case 24:
        return plane_bytes24;
    case 32:
        return plane_bytes32;
    case 64:
        return plane_bytes64;
    default:
        if (run < 64)
            return plane_short;
        return nt ? zr_kernels()->rows_nt : zr_kernels()->rows;
    }
}

zr_plane_fn zr_plane_items(size_t run, uint32_t unit, bool nt)
{
    static const zr_plane_fn words[] = {plane_u8, plane_swap_u16, plane_swap_u32,
                                        plane_swap_u64, plane_swap_u128};
    const uint32_t log = zr_log2_small(unit);

    if (unit < 2)
        return plane_plain(run, nt);
    if (log >= ZR_COUNT(words))
        return plane_swap_odd;
    if (run == unit)
        return words[log];
    return nt ? zr_kernels()->swap_rows_nt[log] : zr_kernels()->swap_rows[log];
}
