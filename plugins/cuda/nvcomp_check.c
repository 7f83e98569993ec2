/*
 * cuda/nvcomp_check.c - whether the headers of a stream say that nvCOMP can decode it to
 * the length that the metadata tells. What has other forms, such as several frames or a
 * dictionary, is for the CPU. No more than the headers is looked at: a stream that passes
 * may be damaged. Thread class: plain functions.
 */
#include "nvcomp.h"

static uint64_t little(const uint8_t *p, uint32_t bytes)
{
    uint64_t v = 0;

    for (uint32_t i = bytes; i-- > 0;)
        v = v << 8 | p[i];
    return v;
}

enum {
    ZSTD_MAGIC_BYTES = 4,
    ZSTD_WINDOW_LOG_MOST = 27 /* as libzstd takes without being asked */
};

/* Bytes of the header of a zstd frame with a content size, which it stores; 0: none. */
static uint64_t zstd_header(const uint8_t *p, uint64_t n, uint64_t *content, int *sum)
{
    static const uint8_t size_bytes[] = {0, 2, 4, 8};
    uint32_t width, single;
    uint64_t at = ZSTD_MAGIC_BYTES + 1;

    if (n < at || little(p, ZSTD_MAGIC_BYTES) != 0xFD2FB528)
        return 0;
    single = p[4] >> 5 & 1;
    width = size_bytes[p[4] >> 6];
    if (width == 0 && single)
        width = 1;
    *sum = p[4] >> 2 & 1;
    if ((p[4] & 0x0B) || width == 0) /* reserved, a dictionary, or no size */
        return 0;
    if (!single && (n <= at || (p[at] >> 3) + 10 > ZSTD_WINDOW_LOG_MOST))
        return 0;
    at += !single;
    if (n < at + width)
        return 0;
    *content = little(p + at, width) + (width == 2 ? 256 : 0);
    return at + width;
}

int nvcomp_zstd_fits(const uint8_t *p, uint64_t n, uint64_t want)
{
    uint64_t content = 0, at;
    int sum = 0, last = 0;

    at = zstd_header(p, n, &content, &sum);
    if (at == 0 || content != want)
        return 0;
    while (!last) {
        uint64_t head, bytes;

        if (n - at < 3)
            return 0;
        head = little(p + at, 3);
        last = head & 1;
        bytes = (head >> 1 & 3) == 1 ? 1 : head >> 3;
        if ((head >> 1 & 3) == 3 || n - at - 3 < bytes)
            return 0;
        at += 3 + bytes;
    }
    return n - at == (sum ? 4 : 0); /* nothing follows the only frame */
}

int nvcomp_zlib_fits(const uint8_t *p, uint64_t n)
{
    return n > 6 && (p[0] & 15) == 8 && p[0] >> 4 <= 7 && (p[0] << 8 | p[1]) % 31 == 0 &&
           !(p[1] & 0x20);
}

/* A second member would have its length at the end. Names and comments are rare. */
int nvcomp_gzip_fits(const uint8_t *p, uint64_t n, uint64_t want)
{
    return n > 18 && p[0] == 0x1f && p[1] == 0x8b && p[2] == 8 && p[3] == 0 &&
           little(p + n - 4, 4) == (want & UINT32_MAX);
}

int nvcomp_snappy_fits(const uint8_t *p, uint64_t n, uint64_t want)
{
    uint64_t length = 0;

    for (uint32_t i = 0; i < n && i < 5; i++) {
        length |= (uint64_t)(p[i] & 127) << (7 * i);
        if (p[i] < 128)
            return length == want;
    }
    return 0;
}

int nvcomp_lz4_fits(const uint8_t *p, uint64_t n, uint64_t want)
{
    return n > 4 && little(p, 4) == want;
}
