/*
 * mem/x86_avx2.c - rows, byte swaps and comparisons with 32-byte registers, for CPUs that
 * have AVX2. Compiled by target attribute, so that the rest of the library runs on any
 * x86-64; kernel.c chooses at run time.
 * Thread class: plain functions; stores past the caches are ordered by a fence.
 */
#include "mem/kernel_int.h"

#ifdef ZR_MEM_X86
#    include <immintrin.h>

#    define AVX2 __attribute__((target("avx2")))

AVX2 static inline __m256i avx2_load(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

AVX2 static inline void avx2_store(uint8_t *p, __m256i v)
{
    _mm256_storeu_si256((__m256i *)(void *)p, v);
}

/* ---- copies ----------------------------------------------------------------- */

enum {
    AHEAD = 8 /* rows whose lines are fetched before they are written */
};

/* n >= 64. The last 64 bytes may be written twice. */
AVX2 static inline void avx2_row(uint8_t *d, const uint8_t *s, size_t n)
{
    const __m256i y = avx2_load(s + n - 64), z = avx2_load(s + n - 32);
    size_t i = 0;

    for (; i + 64 < n; i += 64) {
        const __m256i a = avx2_load(s + i), b = avx2_load(s + i + 32);

        avx2_store(d + i, a);
        avx2_store(d + i + 32, b);
    }
    avx2_store(d + n - 64, y);
    avx2_store(d + n - 32, z);
}

/* Not memcpy for long rows: that may choose `rep movsb`, which on some CPUs (Zen 3) is
 * four times slower when the two sides are aligned differently. */
AVX2 void zr_avx2_rows(const struct zr_plane *p)
{
    const size_t run = p->run;

    for (uint64_t i = 0; i < p->n1; i++) {
        uint8_t *d = p->dst + (int64_t)i * p->ds1;
        const uint8_t *s = p->src + (int64_t)i * p->ss1;

        for (uint64_t j = 0; j < p->n0; j++, d += p->ds0, s += p->ss0)
            avx2_row(d, s, run);
    }
}

/* Rows of 16 bytes and more; the lines of those that come next are fetched. */
AVX2 void zr_avx2_rows_ahead(const struct zr_plane *p)
{
    const size_t run = p->run;

    for (uint64_t i = 0; i < p->n1; i++) {
        uint8_t *d = p->dst + (int64_t)i * p->ds1;
        const uint8_t *s = p->src + (int64_t)i * p->ss1;

        for (uint64_t j = 0; j < p->n0; j++, d += p->ds0, s += p->ss0) {
            const uintptr_t next = (uintptr_t)d + AHEAD * (uint64_t)p->ds0;

            for (size_t k = 0; k < run; k += 64)
                _mm_prefetch((const char *)(next + k), _MM_HINT_T0);
            _mm_prefetch((const char *)(next + run - 1), _MM_HINT_T0);
            if (run >= 64)
                avx2_row(d, s, run);
            else
                zr_copy_short(d, s, run);
        }
    }
}

AVX2 void zr_avx2_line(uint8_t *dst, const uint8_t *src, size_t bytes)
{
    if (bytes > 64)
        avx2_row(dst, src, bytes);
    else
        zr_copy_short(dst, src, bytes);
}

AVX2 static inline void avx2_row_nt(uint8_t *d, const uint8_t *s, size_t n)
{
    const size_t head = (64 - (uintptr_t)d % 64) % 64;
    size_t i = head;

    if (n < head + 64) { /* no whole line inside */
        if (n <= 64)
            zr_copy_short(d, s, n);
        else
            avx2_row(d, s, n);
        return;
    }
    if (head)
        zr_copy_short(d, s, head);
    for (; i + 64 <= n; i += 64) {
        const __m256i a = avx2_load(s + i), b = avx2_load(s + i + 32);

        _mm256_stream_si256((__m256i *)(void *)(d + i), a);
        _mm256_stream_si256((__m256i *)(void *)(d + i + 32), b);
    }
    if (i < n)
        zr_copy_short(d + i, s + i, n - i);
}

AVX2 void zr_avx2_line_nt(uint8_t *dst, const uint8_t *src, size_t bytes)
{
    avx2_row_nt(dst, src, bytes);
}

/* The lines at the ends of a row that it shares with its neighbours, a few rows ahead. */
AVX2 static inline void avx2_ends_ahead(const uint8_t *d, int64_t step, size_t n)
{
    const uintptr_t from = (uintptr_t)d + AHEAD * (uint64_t)step, to = from + n;

    if (from % 64)
        _mm_prefetch((const char *)from, _MM_HINT_T0);
    if (to % 64)
        _mm_prefetch((const char *)to, _MM_HINT_T0);
}

AVX2 void zr_avx2_rows_nt(const struct zr_plane *p)
{
    const size_t run = p->run;

    for (uint64_t i = 0; i < p->n1; i++) {
        uint8_t *d = p->dst + (int64_t)i * p->ds1;
        const uint8_t *s = p->src + (int64_t)i * p->ss1;

        for (uint64_t j = 0; j < p->n0; j++, d += p->ds0, s += p->ss0) {
            avx2_ends_ahead(d, p->ds0, run);
            avx2_row_nt(d, s, run);
        }
    }
}

/* ---- byte swaps ------------------------------------------------------------- */

/* For each of 16 bytes, the place it comes from, by unit. */
_Alignas(16) static const uint8_t avx2_swap_order[4][16] = {
    {1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14},
    {3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12},
    {7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8},
    {15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0},
};

AVX2 static inline void avx2_swap_one(uint8_t *d, const uint8_t *s, int log_unit)
{
    if (log_unit == 1)
        zr_put_u16(d, __builtin_bswap16(zr_get_u16(s)));
    else if (log_unit == 2)
        zr_put_u32(d, __builtin_bswap32(zr_get_u32(s)));
    else if (log_unit == 3)
        zr_put_u64(d, __builtin_bswap64(zr_get_u64(s)));
    else
        zr_put_u128(d, zr_swap_u128(zr_get_u128(s)));
}

/* nt: past the caches, unless the borders of the lines are inside units. */
AVX2 static inline void avx2_swap(uint8_t *d, const uint8_t *s, size_t n, int log_unit,
                                  bool nt)
{
    const size_t unit = (size_t)1 << log_unit;
    const __m128i half =
        _mm_load_si128((const __m128i *)(const void *)avx2_swap_order[log_unit - 1]);
    const __m256i order = _mm256_broadcastsi128_si256(half);
    size_t i = 0;

    if (nt && (uintptr_t)d % unit == 0) {
        for (; i < n && (uintptr_t)(d + i) % 64; i += unit)
            avx2_swap_one(d + i, s + i, log_unit);
        for (; i + 64 <= n; i += 64) {
            const __m256i a = avx2_load(s + i), b = avx2_load(s + i + 32);

            _mm256_stream_si256((__m256i *)(void *)(d + i),
                                _mm256_shuffle_epi8(a, order));
            _mm256_stream_si256((__m256i *)(void *)(d + i + 32),
                                _mm256_shuffle_epi8(b, order));
        }
    }
    for (; i + 64 <= n; i += 64) {
        const __m256i a = avx2_load(s + i), b = avx2_load(s + i + 32);

        avx2_store(d + i, _mm256_shuffle_epi8(a, order));
        avx2_store(d + i + 32, _mm256_shuffle_epi8(b, order));
    }
    for (; i + 16 <= n; i += 16) {
        const __m128i a = _mm_loadu_si128((const __m128i *)(const void *)(s + i));

        _mm_storeu_si128((__m128i *)(void *)(d + i), _mm_shuffle_epi8(a, half));
    }
    for (; i < n; i += unit)
        avx2_swap_one(d + i, s + i, log_unit);
}

#    define AVX2_SWAP_ROWS(name, log_unit, nt)                                           \
        AVX2 void name(const struct zr_plane *p)                                         \
        {                                                                                \
            for (uint64_t i = 0; i < p->n1; i++)                                         \
                for (uint64_t j = 0; j < p->n0; j++)                                     \
                    avx2_swap(p->dst + (int64_t)i * p->ds1 + (int64_t)j * p->ds0,        \
                              p->src + (int64_t)i * p->ss1 + (int64_t)j * p->ss0,        \
                              p->run, log_unit, nt);                                     \
        }
#    define AVX2_SWAP(unit, log_unit)                                                    \
        AVX2 void zr_avx2_swap_line##unit(uint8_t *dst, const uint8_t *src,              \
                                          size_t bytes)                                  \
        {                                                                                \
            avx2_swap(dst, src, bytes, log_unit, false);                                 \
        }                                                                                \
        AVX2_SWAP_ROWS(zr_avx2_swap_rows##unit, log_unit, false)                         \
        AVX2_SWAP_ROWS(zr_avx2_swap_rows_nt##unit, log_unit, true)
AVX2_SWAP(2, 1)
AVX2_SWAP(4, 2)
AVX2_SWAP(8, 3)
AVX2_SWAP(16, 4)

/* ---- equality ----------------------------------------------------------------- */

AVX2 bool zr_avx2_equal(const uint8_t *data, size_t bytes, const uint8_t *pattern64)
{
    const __m256i want = avx2_load(pattern64);
    size_t i = 0;

    for (; i + 128 <= bytes; i += 128) {
        const __m256i a = _mm256_xor_si256(avx2_load(data + i), want);
        const __m256i b = _mm256_xor_si256(avx2_load(data + i + 32), want);
        const __m256i c = _mm256_xor_si256(avx2_load(data + i + 64), want);
        const __m256i d = _mm256_xor_si256(avx2_load(data + i + 96), want);
        const __m256i any = _mm256_or_si256(_mm256_or_si256(a, b), _mm256_or_si256(c, d));

        if (!_mm256_testz_si256(any, any))
            return false;
    }
    for (; i + 32 <= bytes; i += 32) {
        const __m256i a = _mm256_xor_si256(avx2_load(data + i), want);

        if (!_mm256_testz_si256(a, a))
            return false;
    }
    return memcmp(data + i, pattern64, bytes - i) == 0;
}
#endif
