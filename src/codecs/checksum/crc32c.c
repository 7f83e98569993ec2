/*
 * codecs/checksum/crc32c.c - CRC-32C, with the CPU's instruction if the CPU has it,
 * otherwise with a table, eight bytes at a time. As the standard says, the register is
 * inverted at the start and at the end. So zr_crc32c(zr_crc32c(0, a), b) is the CRC of a
 * and b together.
 * Thread class: plain functions.
 */
#include "codecs/checksum/checksum.h"

/* A CRC is linear: that of a byte is the XOR of the CRCs of its bits. CRC_256(0, ...) has
 * those of all bytes, from those of the bits 1, 2, 4 and so on. */
#define CRC_2(x, a)              x, (x) ^ (a)
#define CRC_4(x, a, b)           CRC_2(x, a), CRC_2((x) ^ (b), a)
#define CRC_8(x, a, b, c)        CRC_4(x, a, b), CRC_4((x) ^ (c), a, b)
#define CRC_16(x, a, b, c, d)    CRC_8(x, a, b, c), CRC_8((x) ^ (d), a, b, c)
#define CRC_32(x, a, b, c, d, e) CRC_16(x, a, b, c, d), CRC_16((x) ^ (e), a, b, c, d)
#define CRC_64(x, a, b, c, d, e, f)                                                      \
    CRC_32(x, a, b, c, d, e), CRC_32((x) ^ (f), a, b, c, d, e)
#define CRC_128(x, a, b, c, d, e, f, g)                                                  \
    CRC_64(x, a, b, c, d, e, f), CRC_64((x) ^ (g), a, b, c, d, e, f)
#define CRC_256(x, a, b, c, d, e, f, g, h)                                               \
    CRC_128(x, a, b, c, d, e, f, g), CRC_128((x) ^ (h), a, b, c, d, e, f, g)

/* Row 0 has the CRC-32C of one byte, by the reflected polynomial 0x82F63B78 (Castagnoli).
 * Row k has that of the byte and k zero bytes after it. Each number is
 * (n >> 1) ^ (n & 1 ? 0x82F63B78 : 0) of the one to its right, and the last one of a row
 * that of the first one of the row before it. */
static const uint32_t crc32c_row[8][256] = {
    {CRC_256(0, 0xf26b8303, 0xe13b70f7, 0xc79a971f, 0x8ad958cf, 0x105ec76f, 0x20bd8ede,
             0x417b1dbc, 0x82f63b78)},
    {CRC_256(0, 0x13a29877, 0x274530ee, 0x4e8a61dc, 0x9d14c3b8, 0x3fc5f181, 0x7f8be302,
             0xff17c604, 0xfbc3faf9)},
    {CRC_256(0, 0xa541927e, 0x4f6f520d, 0x9edea41a, 0x38513ec5, 0x70a27d8a, 0xe144fb14,
             0xc76580d9, 0x8b277743)},
    {CRC_256(0, 0xdd45aab8, 0xbf672381, 0x7b2231f3, 0xf64463e6, 0xe964b13d, 0xd725148b,
             0xaba65fe7, 0x52a0c93f)},
    {CRC_256(0, 0x38116fac, 0x7022df58, 0xe045beb0, 0xc5670b91, 0x8f2261d3, 0x1ba8b557,
             0x37516aae, 0x6ea2d55c)},
    {CRC_256(0, 0xef306b19, 0xdb8ca0c3, 0xb2f53777, 0x6006181f, 0xc00c303e, 0x85f4168d,
             0x0e045beb, 0x1c08b7d6)},
    {CRC_256(0, 0x68032cc8, 0xd0065990, 0xa5e0c5d1, 0x4e2dfd53, 0x9c5bfaa6, 0x3d5b83bd,
             0x7ab7077a, 0xf56e0ef4)},
    {CRC_256(0, 0x493c7d27, 0x9278fa4e, 0x211d826d, 0x423b04da, 0x847609b4, 0x0d006599,
             0x1a00cb32, 0x34019664)},
};

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
