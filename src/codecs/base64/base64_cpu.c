/*
 * codecs/base64/base64_cpu.c - numcodecs' base64: the standard alphabet with padding and
 * without line breaks. Each length determines the other. Any other character
 * in the text is CORRUPT.
 */
#include "codecs/codecs_int.h"

#include <string.h>

static const char base64_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static zarr_status base64_decode_one(void *self, const struct zr_host_job *io,
                                     size_t *used, zarr_codec_exec *exec, zarr_error *err)
{
    const char *text = (const char *)io->src;
    size_t padding = 0;

    ZR_UNUSED(self, exec);
    if (io->src_bytes % 4)
        return zr_fail(err, ZARR_ERR_CORRUPT,
                       "base64: %zu characters, which is not a multiple of 4",
                       io->src_bytes);
    while (padding < 2 && padding < io->src_bytes &&
           text[io->src_bytes - 1 - padding] == '=')
        padding++;
    if (io->src_bytes / 4 * 3 - padding > io->dst_bytes)
        return zr_too_long(err, "base64", io->dst_bytes);
    if (!zr_base64_decode(text, io->src_bytes, io->dst, io->dst_bytes, used))
        return zr_fail(err, ZARR_ERR_CORRUPT, "base64: a character outside the alphabet");
    return ZARR_OK;
}

ZR_JOBS_EACH(base64_decode, base64_decode_one)

static zarr_status base64_encode_one(void *self, const struct zr_host_job *io,
                                     size_t *used, zarr_codec_exec *exec, zarr_error *err)
{
    uint8_t *to = io->dst;

    ZR_UNUSED(self, exec);
    if (io->dst_bytes / 4 < io->src_bytes / 3 + (io->src_bytes % 3 != 0))
        return zr_no_room(err, "base64");
    for (size_t i = 0; i < io->src_bytes; i += 3, to += 4) {
        const size_t have = ZR_MIN(io->src_bytes - i, (size_t)3);
        uint8_t three[3] = {0};

        memcpy(three, io->src + i, have);
        to[0] = (uint8_t)base64_digits[three[0] >> 2];
        to[1] = (uint8_t)base64_digits[(three[0] & 3) << 4 | three[1] >> 4];
        to[2] = (uint8_t)(have > 1 ? base64_digits[(three[1] & 15) << 2 | three[2] >> 6]
                                   : '=');
        to[3] = (uint8_t)(have > 2 ? base64_digits[three[2] & 63] : '=');
    }
    *used = (size_t)(to - io->dst);
    return ZARR_OK;
}

ZR_JOBS_EACH(base64_encode, base64_encode_one)

const zarr_codec_impl_vtable zr_cpu_base64 = {
    .struct_size = sizeof(zarr_codec_impl_vtable),
    .caps = ZARR_CODEC_CAN_DECODE | ZARR_CODEC_CAN_ENCODE | ZARR_CODEC_SAFE |
            ZARR_CODEC_DETERMINISTIC,
    .codec = "base64",
    .impl = "cpu.zarrc",
    .in_kinds = ZR_HOST_KINDS,
    .out_kinds = ZR_HOST_KINDS,
    .encode = base64_encode,
    .decode = base64_decode,
};
