/*
 * codecs/checksum/crc32c_x86.c - CRC-32C with SSE 4.2's instruction. A CPU can start one
 * each cycle, but each takes three cycles, so one stream runs at a third of the speed.
 * Therefore three streams run side by side. Carry-less multiplication joins them.
 *
 * Joining: let r be the register after the bytes A. After A and n more bytes B it is
 * r * x^(8n) mod P, xor the register after B alone. The instruction itself multiplies by
 * x^32 and reduces. The product of two reflected 32-bit values is one bit short. So the
 * constant for n bytes is x^(8n - 33) mod P, reflected. Derivation:
 *     r = 0x80000000; 8n - 33 times: r = r >> 1 ^ (r & 1 ? 0x82F63B78 : 0)
 */
#include "codecs/checksum/checksum.h"

#if defined(__x86_64__)

#    include <nmmintrin.h>
#    include <wmmintrin.h>

enum {
    CRC_LONG_BYTES = 4096,
    CRC_SHORT_BYTES = 256
};
#    define CRC_LONG_1  0x82f89c77 /* 4096 bytes */
#    define CRC_LONG_2  0x54a86326 /* 8192 */
#    define CRC_SHORT_1 0xb9e02b86 /* 256 */
#    define CRC_SHORT_2 0xdd7e3b0c /* 512 */

/* Processes one stream. The register is not inverted. */
__attribute__((target("sse4.2"))) static uint32_t crc_stream(uint32_t c, const uint8_t *p,
                                                             size_t n)
{
    uint64_t sum = c;

    for (; n >= 8; n -= 8, p += 8)
        sum = _mm_crc32_u64(sum, zr_load_le64(p));
    c = (uint32_t)sum;
    for (; n > 0; n--, p++)
        c = _mm_crc32_u8(c, *p);
    return c;
}

__attribute__((target("sse4.2"))) uint32_t zr_crc32c_sse42(uint32_t crc, const uint8_t *p,
                                                           size_t n)
{
    return ~crc_stream(~crc, p, n);
}

__attribute__((target("sse4.2,pclmul"))) static uint32_t crc_shift(uint32_t c,
                                                                   uint32_t by)
{
    const __m128i product =
        _mm_clmulepi64_si128(_mm_cvtsi32_si128((int)c), _mm_cvtsi32_si128((int)by), 0);

    return (uint32_t)_mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(product));
}

/* Processes three neighbouring streams of n bytes each. by1 and by2 are the constants for
 * n and 2n bytes. */
__attribute__((target("sse4.2,pclmul"))) static uint32_t
crc_triple(uint32_t c, const uint8_t *p, size_t n, uint32_t by1, uint32_t by2)
{
    uint64_t c0 = c, c1 = 0, c2 = 0;

    for (size_t i = 0; i < n; i += 8) {
        c0 = _mm_crc32_u64(c0, zr_load_le64(p + i));
        c1 = _mm_crc32_u64(c1, zr_load_le64(p + n + i));
        c2 = _mm_crc32_u64(c2, zr_load_le64(p + 2 * n + i));
    }
    return crc_shift((uint32_t)c0, by2) ^ crc_shift((uint32_t)c1, by1) ^ (uint32_t)c2;
}

uint32_t zr_crc32c_pclmul(uint32_t crc, const uint8_t *p, size_t n)
{
    const size_t large = (size_t)3 * CRC_LONG_BYTES, small = (size_t)3 * CRC_SHORT_BYTES;
    uint32_t c = ~crc;

    for (; n >= large; n -= large, p += large)
        c = crc_triple(c, p, CRC_LONG_BYTES, CRC_LONG_1, CRC_LONG_2);
    for (; n >= small; n -= small, p += small)
        c = crc_triple(c, p, CRC_SHORT_BYTES, CRC_SHORT_1, CRC_SHORT_2);
    return ~crc_stream(c, p, n);
}

#else
typedef int crc32c_x86_is_empty; /* an empty translation unit is not ISO C */
#endif
