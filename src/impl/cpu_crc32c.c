/*
 * impl/cpu_crc32c.c - the checksum codec: four little endian bytes of CRC-32C
 * behind the bytes they cover, or before them where numcodecs was told so.
 * Always checked: the copy it comes with costs more than the sum.
 */
#include "impl/impl_int.h"

#include <string.h>

enum {
    CRC_BYTES = 4
};

struct crc_self {
    const zarr_allocator *alloc;
    bool at_start;
};

static zarr_status crc_bind(void **out, const zarr_codec_spec *spec,
                            const zarr_chunk_spec *decoded, zarr_error *err)
{
    const zarr_allocator *alloc = zarr_codec_spec_allocator(spec);
    struct crc_self *self = zr_calloc(alloc, 1, sizeof *self);
    const char *location = zarr_codec_spec_text(spec, "location");

    ZR_UNUSED(decoded);
    if (!self)
        return zr_fail_memory(err, sizeof *self);
    self->alloc = alloc;
    self->at_start = location && zr_streq(location, "start");
    *out = self;
    return ZARR_OK;
}

static void crc_close(void *self)
{
    if (self)
        zr_free(((struct crc_self *)self)->alloc, self);
}

static zarr_status crc_decode_one(void *self_ptr, const struct zr_span *io, size_t *used,
                                  zarr_codec_exec *exec, zarr_error *err)
{
    const struct crc_self *self = self_ptr;
    const size_t n = io->src_bytes - CRC_BYTES;
    const uint8_t *payload = io->src;
    uint32_t stored = 0, computed = 0;

    ZR_UNUSED(exec);
    if (io->src_bytes < CRC_BYTES)
        return zr_fail(err, ZARR_ERR_CORRUPT,
                       "crc32c: %zu bytes, the checksum alone has 4", io->src_bytes);
    if (n > io->dst_bytes)
        return zr_too_long(err, "crc32c", io->dst_bytes);
    stored = zr_load_le32(self->at_start ? io->src : io->src + n);
    if (self->at_start)
        payload += CRC_BYTES;
    computed = zr_crc32c(0, payload, n);
    if (stored != computed)
        return zr_fail(err, ZARR_ERR_CORRUPT,
                       "crc32c: checksum mismatch: stored %08" PRIx32
                       ", computed %08" PRIx32,
                       stored, computed);
    memcpy(io->dst, payload, n);
    *used = n;
    return ZARR_OK;
}

static zarr_status crc_decode(void *self, zarr_codec_job *jobs, uint64_t n,
                              zarr_codec_exec *exec, zarr_error *err)
{
    return zr_jobs_each(crc_decode_one, self, jobs, n, exec, err);
}

static zarr_status crc_encode_one(void *self_ptr, const struct zr_span *io, size_t *used,
                                  zarr_codec_exec *exec, zarr_error *err)
{
    const struct crc_self *self = self_ptr;
    const size_t n = io->src_bytes;

    ZR_UNUSED(exec);
    if (io->dst_bytes < CRC_BYTES || io->dst_bytes - CRC_BYTES < n)
        return zr_no_room(err, "crc32c");
    memcpy(self->at_start ? io->dst + CRC_BYTES : io->dst, io->src, n);
    zr_store_le32(self->at_start ? io->dst : io->dst + n, zr_crc32c(0, io->src, n));
    *used = n + CRC_BYTES;
    return ZARR_OK;
}

static zarr_status crc_encode(void *self, zarr_codec_job *jobs, uint64_t n,
                              zarr_codec_exec *exec, zarr_error *err)
{
    return zr_jobs_each(crc_encode_one, self, jobs, n, exec, err);
}

const zarr_codec_impl_vtable zr_cpu_crc32c = {
    .struct_size = sizeof(zarr_codec_impl_vtable),
    .caps = ZARR_CODEC_CAN_DECODE | ZARR_CODEC_CAN_ENCODE | ZARR_CODEC_SAFE |
            ZARR_CODEC_DETERMINISTIC,
    .codec = "crc32c",
    .impl = "cpu.zarrc",
    .in_kinds = ZR_HOST_KINDS,
    .out_kinds = ZR_HOST_KINDS,
    .bind = crc_bind,
    .encode = crc_encode,
    .decode = crc_decode,
    .close = crc_close,
};
