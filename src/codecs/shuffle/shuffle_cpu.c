/*
 * codecs/shuffle/shuffle_cpu.c - numcodecs' shuffle filter for chunks. It permutes bytes
 * and keeps their number, so decoding can detect only a wrong length.
 */
#include "codecs/shuffle/shuffle.h"

#include <string.h>

struct shuffle_self {
    const zarr_allocator *alloc;
    size_t width;
};

static zarr_status shuffle_bind(void **out, const zarr_codec_spec *spec,
                                const zarr_codec_binding *to, zarr_error *err)
{
    struct shuffle_self *self = zr_self_new(spec, sizeof *self, err);
    int64_t width = 1;

    ZR_UNUSED(to);
    if (!self)
        return ZARR_ERR_NO_MEMORY;
    (void)zarr_codec_spec_i64(spec, "elementsize", &width);
    self->width = width < 1 ? 1 : (size_t)width;
    *out = self;
    return ZARR_OK;
}

static zarr_status shuffle_check(const struct shuffle_self *self,
                                 const struct zr_host_job *io, zarr_status status,
                                 zarr_error *err)
{
    if (io->src_bytes > io->dst_bytes)
        return zr_too_long(err, "shuffle", io->dst_bytes);
    if (io->src_bytes % self->width)
        return zr_fail(err, status,
                       "shuffle: %zu bytes are not a whole number of elements of %zu",
                       io->src_bytes, self->width);
    return ZARR_OK;
}

static zarr_status shuffle_decode_one(void *self_ptr, const struct zr_host_job *io,
                                      size_t *used, zarr_codec_exec *exec,
                                      zarr_error *err)
{
    const struct shuffle_self *self = self_ptr;

    ZR_UNUSED(exec);
    ZR_CHECK(shuffle_check(self, io, ZARR_ERR_CORRUPT, err));
    zr_unshuffle(io->dst, io->src, io->src_bytes / self->width, self->width);
    *used = io->src_bytes;
    return ZARR_OK;
}

ZR_JOBS_EACH(shuffle_decode, shuffle_decode_one)

static zarr_status shuffle_encode_one(void *self_ptr, const struct zr_host_job *io,
                                      size_t *used, zarr_codec_exec *exec,
                                      zarr_error *err)
{
    const struct shuffle_self *self = self_ptr;

    ZR_UNUSED(exec);
    ZR_CHECK(shuffle_check(self, io, ZARR_ERR_INVALID, err));
    zr_shuffle(io->dst, io->src, io->src_bytes / self->width, self->width);
    *used = io->src_bytes;
    return ZARR_OK;
}

ZR_JOBS_EACH(shuffle_encode, shuffle_encode_one)

const zarr_codec_impl_vtable zr_cpu_shuffle = {
    .struct_size = sizeof(zarr_codec_impl_vtable),
    .caps = ZARR_CODEC_CAN_DECODE | ZARR_CODEC_CAN_ENCODE | ZARR_CODEC_SAFE |
            ZARR_CODEC_DETERMINISTIC,
    .codec = "shuffle",
    .impl = "cpu.zarrc",
    .in_kinds = ZR_HOST_KINDS,
    .out_kinds = ZR_HOST_KINDS,
    .bind = shuffle_bind,
    .encode = shuffle_encode,
    .decode = shuffle_decode,
    .close = zr_self_free,
};
