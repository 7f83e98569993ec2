/*
 * codecs/checksum/crc32c.c - CRC-32C, with the CPU's instruction if the CPU has it,
 * otherwise with a table, eight bytes at a time. As the standard says, the register is
 * inverted at the start and at the end. So zr_crc32c(zr_crc32c(0, a), b) is the CRC of a
 * and b together.
 * Thread class: plain functions.
 */
#include "codecs/checksum/crc32c_table.h"
#include "codecs/checksum/checksum.h"

uint32_t zr_crc32c_table(uint32_t crc, const uint8_t *p, size_t n)
{
    uint32_t c = ~crc;

    for (; n >= 8; n -= 8, p += 8) {
        const uint32_t lo = zr_load_le32(p) ^ c, hi = zr_load_le32(p + 4);

        c = crc32c_row[7][lo & 255] ^ crc32c_row[6][lo >> 8 & 255] ^
            crc32c_row[5][lo >> 16 & 255] ^ crc32c_row[4][lo >> 24] ^
            crc32c_row[3][hi & 255] ^ crc32c_row[2][hi >> 8 & 255] ^
            crc32c_row[1][hi >> 16 & 255] ^ crc32c_row[0][hi >> 24];
    }
    for (; n > 0; n--, p++)
        c = c >> 8 ^ crc32c_row[0][(c ^ *p) & 255];
    return ~c;
}

uint32_t zr_crc32c(uint32_t crc, const void *bytes, size_t n)
{
#if defined(__x86_64__)
    const uint32_t cpu = zr_cpu_features;

    if ((cpu & ZR_CPU_SSE42) && (cpu & ZR_CPU_PCLMUL))
        return zr_crc32c_pclmul(crc, bytes, n);
    if (cpu & ZR_CPU_SSE42)
        return zr_crc32c_sse42(crc, bytes, n);
#endif
    return zr_crc32c_table(crc, bytes, n);
}
