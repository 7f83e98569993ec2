/*
 * base/bytes.c - reverses bytes, unit by unit. On x86 with AVX2 one shuffle of 32 bytes a
 * step works for all unit sizes, each with its own pattern. Elsewhere there are plain
 * loops, which compilers translate to what the CPU has. Source and destination are the
 * same or do not overlap; they need not be aligned.
 * Thread class: plain function.
 */
#include "base/base.h"

#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#    include <immintrin.h>
#    define BYTES_HAVE_AVX2 1
#endif

static void bytes_swap2(uint8_t *dst, const uint8_t *src, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint16_t v;

        memcpy(&v, src + 2 * i, 2);
        v = (uint16_t)(v << 8 | v >> 8);
        memcpy(dst + 2 * i, &v, 2);
    }
}

static void bytes_swap4(uint8_t *dst, const uint8_t *src, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t v;

        memcpy(&v, src + 4 * i, 4);
        v = __builtin_bswap32(v);
        memcpy(dst + 4 * i, &v, 4);
    }
}

static void bytes_swap8(uint8_t *dst, const uint8_t *src, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t v;

        memcpy(&v, src + 8 * i, 8);
        v = __builtin_bswap64(v);
        memcpy(dst + 8 * i, &v, 8);
    }
}

static void bytes_swap16(uint8_t *dst, const uint8_t *src, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t lo, hi;

        memcpy(&lo, src + 16 * i, 8);
        memcpy(&hi, src + 16 * i + 8, 8);
        lo = __builtin_bswap64(lo);
        hi = __builtin_bswap64(hi);
        memcpy(dst + 16 * i, &hi, 8);
        memcpy(dst + 16 * i + 8, &lo, 8);
    }
}

#ifdef BYTES_HAVE_AVX2
/* Does whole steps of 32 bytes. Returns how many bytes that were. */
__attribute__((target("avx2"))) static size_t
bytes_swap_avx2(uint8_t *dst, const uint8_t *src, size_t n_bytes, uint32_t unit_bytes)
{
    uint8_t order[32];
    size_t at = 0;
    __m256i pattern;

    for (uint32_t i = 0; i < 32;
         i++) /* byte i comes from the mirrored place in its unit */
        order[i] = (uint8_t)((i % 16) ^ (unit_bytes - 1));
    pattern = _mm256_loadu_si256((const __m256i *)(const void *)order);
    for (; n_bytes - at >= 32; at += 32) {
        const __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)(src + at));

        _mm256_storeu_si256((__m256i *)(void *)(dst + at),
                            _mm256_shuffle_epi8(v, pattern));
    }
    return at;
}
#endif

void zr_byteswap(void *dst, const void *src, size_t n_units, uint32_t unit_bytes)
{
    uint8_t *to = (uint8_t *)dst;
    const uint8_t *from = (const uint8_t *)src;

#ifdef BYTES_HAVE_AVX2
    if (unit_bytes > 1 && n_units >= 32 / unit_bytes && (zr_cpu_features & ZR_CPU_AVX2)) {
        const size_t done = bytes_swap_avx2(to, from, n_units * unit_bytes, unit_bytes);

        to += done;
        from += done;
        n_units -= done / unit_bytes;
    }
#endif
    if (unit_bytes == 2)
        bytes_swap2(to, from, n_units);
    else if (unit_bytes == 4)
        bytes_swap4(to, from, n_units);
    else if (unit_bytes == 8)
        bytes_swap8(to, from, n_units);
    else if (unit_bytes == 16)
        bytes_swap16(to, from, n_units);
    else if (to != from && n_units)
        memcpy(to, from, n_units * unit_bytes);
}
