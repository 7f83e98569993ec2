/*
 * mem/transpose.c - planes whose sides have different fastest dimensions: dst is
 * contiguous along n0, src along n1. A tile of one cache line by one cache line is
 * transposed in a small buffer, in blocks of 8 x 8 (or what fits 16-byte registers), and
 * written as whole lines. So every line of both sides is touched once, whatever the
 * strides are. Rows that are a power of two apart share few places of a cache, and a loop
 * that came back to them would find them evicted. If a length is no multiple of a block,
 * the last block overlaps its neighbour. Bytes are swapped on the way out. Every x86-64
 * has SSE2; elsewhere blocks are plain C.
 * Thread class: plain functions.
 */
#include "mem/kernel_int.h"

#if defined(__SSE2__)
#    include <emmintrin.h>
#endif

/* A row of the tile is two lines, which the CPU fetches as a pair. */
#define LINE_BYTES ((int64_t)128)
/* The most rows of a tile: as many lines of dst as a small TLB has pages. */
#define TILE_ROWS 64

/* Transposes one block: row i of dst (LINE_BYTES apart) gets column i of src. */
typedef void (*block_fn)(uint8_t *dst, const uint8_t *src, int64_t ss);

#if defined(__SSE2__)

static __m128i block_load(const uint8_t *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

static void block_store(uint8_t *p, __m128i v)
{
    _mm_storeu_si128((__m128i *)(void *)p, v);
}

static __m128i block_load_half(const uint8_t *p)
{
    return _mm_loadl_epi64((const __m128i *)(const void *)p);
}

/* Writes two rows of 8 bytes. */
static void block_store_pair(uint8_t *p, __m128i v)
{
    _mm_storel_epi64((__m128i *)(void *)p, v);
    _mm_storel_epi64((__m128i *)(void *)(p + LINE_BYTES), _mm_unpackhi_epi64(v, v));
}

static void block_u8(uint8_t *dst, const uint8_t *src, int64_t ss)
{
    __m128i a[4], b[4];

    for (int64_t k = 0; k < 4; k++)
        a[k] = _mm_unpacklo_epi8(block_load_half(src + 2 * k * ss),
                                 block_load_half(src + (2 * k + 1) * ss));
    b[0] = _mm_unpacklo_epi16(a[0], a[1]);
    b[1] = _mm_unpackhi_epi16(a[0], a[1]);
    b[2] = _mm_unpacklo_epi16(a[2], a[3]);
    b[3] = _mm_unpackhi_epi16(a[2], a[3]);
    block_store_pair(dst, _mm_unpacklo_epi32(b[0], b[2]));
    block_store_pair(dst + 2 * LINE_BYTES, _mm_unpackhi_epi32(b[0], b[2]));
    block_store_pair(dst + 4 * LINE_BYTES, _mm_unpacklo_epi32(b[1], b[3]));
    block_store_pair(dst + 6 * LINE_BYTES, _mm_unpackhi_epi32(b[1], b[3]));
}

static void block_u16(uint8_t *dst, const uint8_t *src, int64_t ss)
{
    __m128i a[8], b[8];

    for (int64_t k = 0; k < 4; k++) {
        const __m128i x = block_load(src + 2 * k * ss),
                      y = block_load(src + (2 * k + 1) * ss);
        a[k] = _mm_unpacklo_epi16(x, y);
        a[k + 4] = _mm_unpackhi_epi16(x, y);
    }
    for (int64_t k = 0; k < 8; k += 4) {
        b[k] = _mm_unpacklo_epi32(a[k], a[k + 1]);
        b[k + 1] = _mm_unpackhi_epi32(a[k], a[k + 1]);
        b[k + 2] = _mm_unpacklo_epi32(a[k + 2], a[k + 3]);
        b[k + 3] = _mm_unpackhi_epi32(a[k + 2], a[k + 3]);
    }
    for (int64_t k = 0; k < 8; k += 4) {
        uint8_t *d = dst + k * LINE_BYTES;
        block_store(d, _mm_unpacklo_epi64(b[k], b[k + 2]));
        block_store(d + LINE_BYTES, _mm_unpackhi_epi64(b[k], b[k + 2]));
        block_store(d + 2 * LINE_BYTES, _mm_unpacklo_epi64(b[k + 1], b[k + 3]));
        block_store(d + 3 * LINE_BYTES, _mm_unpackhi_epi64(b[k + 1], b[k + 3]));
    }
}

static void block_u32(uint8_t *dst, const uint8_t *src, int64_t ss)
{
    const __m128i r0 = block_load(src), r1 = block_load(src + ss);
    const __m128i r2 = block_load(src + 2 * ss), r3 = block_load(src + 3 * ss);
    const __m128i a = _mm_unpacklo_epi32(r0, r1), b = _mm_unpackhi_epi32(r0, r1);
    const __m128i c = _mm_unpacklo_epi32(r2, r3), d = _mm_unpackhi_epi32(r2, r3);

    block_store(dst, _mm_unpacklo_epi64(a, c));
    block_store(dst + LINE_BYTES, _mm_unpackhi_epi64(a, c));
    block_store(dst + 2 * LINE_BYTES, _mm_unpacklo_epi64(b, d));
    block_store(dst + 3 * LINE_BYTES, _mm_unpackhi_epi64(b, d));
}

static void block_u64(uint8_t *dst, const uint8_t *src, int64_t ss)
{
    const __m128i a = block_load(src), b = block_load(src + ss);

    block_store(dst, _mm_unpacklo_epi64(a, b));
    block_store(dst + LINE_BYTES, _mm_unpackhi_epi64(a, b));
}

#else

#    define BLOCK(name, bytes, n)                                                        \
        static void block_##name(uint8_t *dst, const uint8_t *src, int64_t ss)           \
        {                                                                                \
            for (int64_t i = 0; i < (n); i++)                                            \
                for (int64_t j = 0; j < (n); j++)                                        \
                    zr_put_##name(dst + i * LINE_BYTES + j * (bytes),                    \
                                  zr_get_##name(src + j * ss + i * (bytes)));            \
        }
BLOCK(u8, 1, 8)
BLOCK(u16, 2, 8)
BLOCK(u32, 4, 4)
BLOCK(u64, 8, 2)

#endif

static void block_u128(uint8_t *dst, const uint8_t *src, int64_t ss)
{
    ZR_UNUSED(ss);
    zr_put_u128(dst, zr_get_u128(src));
}

/* By log2 of the element's bytes: elements along a block's side, and the function that
 * transposes it. */
static const struct {
    uint64_t side;
    block_fn fn;
} turn_blocks[] = {
    {8, block_u8}, {8, block_u16}, {4, block_u32}, {2, block_u64}, {1, block_u128}};

uint64_t zr_transpose_min(size_t run)
{
    const uint32_t log = zr_log2_small(run);

    return log < ZR_COUNT(turn_blocks) ? turn_blocks[log].side : 0;
}

/* ---- tiles ------------------------------------------------------------------ */

/* The length of the tile at `at` of n. The rest is never shorter than a block. */
static uint64_t tile_length(uint64_t at, uint64_t n, uint64_t tile, uint64_t side)
{
    const uint64_t left = n - at;

    if (left <= tile)
        return left;
    return left - tile < side ? tile - side : tile;
}

/* Transposes ni x nj elements of src into rows of the buffer. */
static void tile_turn(uint8_t *buf, const struct zr_plane *p, const uint8_t *src,
                      uint64_t ni, uint64_t nj)
{
    const uint32_t log = zr_log2_small(p->run);
    const uint64_t side = turn_blocks[log].side;
    const block_fn fn = turn_blocks[log].fn;

    for (uint64_t j0 = 0; j0 < nj; j0 += side) {
        const uint64_t j = ZR_MIN(j0, nj - side);
        const uint8_t *row = src + (int64_t)j * p->ss0;

        for (uint64_t i0 = 0; i0 < ni; i0 += side) {
            const uint64_t i = ZR_MIN(i0, ni - side);
            fn(buf + (int64_t)i * LINE_BYTES + j * p->run, row + i * p->run, p->ss0);
        }
    }
}

/* Up to LINE_BYTES. */
static void tile_row(uint8_t *dst, const uint8_t *row, size_t bytes)
{
    const size_t first = ZR_MIN(bytes, 64);

    zr_copy_short(dst, row, first);
    if (bytes > first)
        zr_copy_short(dst + first, row + first, bytes - first);
}

void zr_plane_transpose(const struct zr_plane *p)
{
    _Alignas(64) uint8_t buf[TILE_ROWS * LINE_BYTES];
    const uint64_t side = turn_blocks[zr_log2_small(p->run)].side,
                   tile = (uint64_t)LINE_BYTES / p->run;
    const uint64_t rows = ZR_MIN(tile, TILE_ROWS);
    const zr_line_fn swap =
        p->unit ? zr_kernels()->swap_line[zr_log2_small(p->unit)] : NULL;
    uint64_t ni, nj;

    for (uint64_t i = 0; i < p->n1; i += ni) {
        ni = tile_length(i, p->n1, rows, side);
        for (uint64_t j = 0; j < p->n0; j += nj) {
            const uint8_t *src = p->src + (int64_t)j * p->ss0 + (int64_t)(i * p->run);
            uint8_t *dst = p->dst + (int64_t)i * p->ds1 + (int64_t)(j * p->run);

            nj = tile_length(j, p->n0, tile, side);
            tile_turn(buf, p, src, ni, nj);
            for (uint64_t k = 0; k < ni; k++, dst += p->ds1) {
                if (swap)
                    swap(dst, buf + (int64_t)k * LINE_BYTES, nj * p->run);
                else
                    tile_row(dst, buf + (int64_t)k * LINE_BYTES, nj * p->run);
            }
        }
    }
}
