/*
 * codecs/snappy/snappy_cpu.c - snappy by libsnappy. A block begins with its decoded
 * length, which is checked against the metadata before anything is decoded. The library
 * checks every copy against the room.
 */
#include "codecs/codecs_int.h"

#include <snappy-c.h>

static zarr_status snappy_decode_one(void *self, const struct zr_host_job *io,
                                     size_t *used, zarr_codec_exec *exec, zarr_error *err)
{
    const char *src = (const char *)io->src;
    size_t says = 0;

    ZR_UNUSED(self, exec);
    if (snappy_uncompressed_length(src, io->src_bytes, &says) != SNAPPY_OK)
        return zr_fail(err, ZARR_ERR_CORRUPT, "snappy: %zu bytes are not a block",
                       io->src_bytes);
    if (says > io->dst_bytes) {
        (void)zr_fail(err, ZARR_ERR_CORRUPT,
                      "snappy: block says it has %zu bytes, expected %zu", says,
                      io->dst_bytes);
        return ZR_NO_ROOM;
    }
    *used = says;
    if (snappy_uncompress(src, io->src_bytes, (char *)io->dst, used) != SNAPPY_OK)
        return zr_fail(err, ZARR_ERR_CORRUPT, "snappy: damaged block");
    return ZARR_OK;
}

ZR_JOBS_EACH(snappy_decode, snappy_decode_one)

static zarr_status snappy_encode_one(void *self, const struct zr_host_job *io,
                                     size_t *used, zarr_codec_exec *exec, zarr_error *err)
{
    ZR_UNUSED(self, exec);
    if (io->src_bytes > UINT32_MAX)
        return zr_fail(err, ZARR_ERR_INVALID, "snappy: %zu bytes are too many",
                       io->src_bytes);
    *used = io->dst_bytes;
    if (snappy_compress((const char *)io->src, io->src_bytes, (char *)io->dst, used) !=
        SNAPPY_OK)
        return zr_no_room(err, "snappy");
    return ZARR_OK;
}

ZR_JOBS_EACH(snappy_encode, snappy_encode_one)

/* The length is a base-128 number of up to five bytes, lowest seven bits first. */
static uint64_t snappy_size_hint(void *self, const zarr_codec_job *job, int encode)
{
    uint64_t says = 0;
    uint8_t byte = 0x80;

    ZR_UNUSED(self);
    for (uint64_t i = 0; !encode && i < 5 && (byte & 0x80); i++) {
        if (!zr_job_peek(job, i, &byte, 1))
            return 0;
        says |= (uint64_t)(byte & 0x7f) << 7 * i;
    }
    return byte & 0x80 ? 0 : says;
}

const zarr_codec_impl_vtable zr_cpu_snappy = {
    .struct_size = sizeof(zarr_codec_impl_vtable),
    .caps = ZARR_CODEC_CAN_DECODE | ZARR_CODEC_CAN_ENCODE | ZARR_CODEC_SAFE |
            ZARR_CODEC_DETERMINISTIC,
    .codec = "snappy",
    .impl = "cpu.libsnappy",
    .in_kinds = ZR_HOST_KINDS,
    .out_kinds = ZR_HOST_KINDS,
    .encode = snappy_encode,
    .decode = snappy_decode,
    .size_hint = snappy_size_hint,
};
