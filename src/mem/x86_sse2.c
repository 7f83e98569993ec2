/*
 * mem/x86_sse2.c - stores past the caches, which every x86-64 can do. A line that is
 * written whole goes to memory without being read first. A line that is written in part
 * is slower than with an ordinary store, so heads and tails up to the next line border
 * are ordinary stores.
 * Thread class: plain functions; only fence() orders such stores.
 */
#include "mem/kernel_int.h"

#ifdef ZR_MEM_X86
#    include <emmintrin.h>

void zr_sse2_fence(void)
{
    _mm_sfence();
}

void zr_sse2_line_nt(uint8_t *dst, const uint8_t *src, size_t bytes)
{
    const size_t head = (64 - (uintptr_t)dst % 64) % 64;
    size_t i = head;

    if (bytes < head + 64) {
        memcpy(dst, src, bytes);
        return;
    }
    zr_copy_short(dst, src, head);
    for (; i + 64 <= bytes; i += 64) {
        const __m128i *s = (const __m128i *)(const void *)(src + i);
        __m128i *d = (__m128i *)(void *)(dst + i);
        const __m128i a = _mm_loadu_si128(s), b = _mm_loadu_si128(s + 1);
        const __m128i c = _mm_loadu_si128(s + 2), e = _mm_loadu_si128(s + 3);

        _mm_stream_si128(d, a);
        _mm_stream_si128(d + 1, b);
        _mm_stream_si128(d + 2, c);
        _mm_stream_si128(d + 3, e);
    }
    zr_copy_short(dst + i, src + i, bytes - i);
}

void zr_sse2_rows_nt(const struct zr_plane *p)
{
    for (uint64_t i = 0; i < p->n1; i++)
        for (uint64_t j = 0; j < p->n0; j++)
            zr_sse2_line_nt(p->dst + (int64_t)i * p->ds1 + (int64_t)j * p->ds0,
                            p->src + (int64_t)i * p->ss1 + (int64_t)j * p->ss0, p->run);
}

#endif
