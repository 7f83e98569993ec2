/*
 * codecs/deflate/raw_stream.c - deflate without a header, and the CRC-32 beside it, for
 * the members of zip archives. No codec of Zarr: chunks have gzip or zlib around it.
 * Thread class: plain functions.
 */
#include "codecs/codecs_int.h"

#include <libdeflate.h>

uint32_t zr_codecs_crc32(uint32_t before, const void *bytes, size_t n)
{
    return libdeflate_crc32(before, bytes, n);
}

zarr_status zr_codecs_inflate(uint8_t *dst, size_t dst_bytes, const uint8_t *src,
                              size_t src_bytes, zarr_error *err)
{
    struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
    enum libdeflate_result rc;
    size_t used = 0, got = 0;

    if (!d)
        return zr_fail_memory(err, 0);
    rc = libdeflate_deflate_decompress_ex(d, src, src_bytes, dst, dst_bytes, &used, &got);
    libdeflate_free_decompressor(d);
    if (rc == LIBDEFLATE_SUCCESS && got == dst_bytes && used == src_bytes)
        return ZARR_OK;
    return zr_fail(err, ZARR_ERR_CORRUPT, "deflate: the stream is damaged");
}
