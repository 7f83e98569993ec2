/*
 * codecs/lz4/lz4_cpu.c - numcodecs' lz4 by liblz4. A chunk is the decoded length as four
 * little-endian bytes, then one raw LZ4 block. This is not the LZ4 frame format and not
 * N5's. The length is checked against the metadata before anything is decoded.
 */
#include "codecs/codecs_int.h"

#include <limits.h>
#include <lz4.h>

enum {
    LZ4_PREFIX_BYTES = 4
};

struct lz4_self {
    const zarr_allocator *alloc;
    int acceleration;
};

static zarr_status lz4_bind(void **out, const zarr_codec_spec *spec,
                            const zarr_codec_binding *to, zarr_error *err)
{
    struct lz4_self *self = zr_self_new(spec, sizeof *self, err);
    int64_t acceleration = 1;

    ZR_UNUSED(to);
    if (!self)
        return ZARR_ERR_NO_MEMORY;
    (void)zarr_codec_spec_i64(spec, "acceleration", &acceleration);
    self->acceleration = (int)acceleration;
    *out = self;
    return ZARR_OK;
}

static zarr_status lz4_thread_open(void *self, void **state, zarr_error *err)
{
    const size_t bytes = (size_t)LZ4_sizeofState();

    ZR_UNUSED(self);
    *state = zr_malloc(NULL, bytes);
    return *state ? ZARR_OK : zr_fail_memory(err, bytes);
}

static void lz4_thread_close(void *state)
{
    zr_free(NULL, state);
}

static zarr_status lz4_decode_one(void *self, const struct zr_host_job *io, size_t *used,
                                  zarr_codec_exec *exec, zarr_error *err)
{
    const size_t block = io->src_bytes - LZ4_PREFIX_BYTES;
    uint32_t says = 0;
    int got = 0;

    ZR_UNUSED(self, exec);
    if (io->src_bytes < LZ4_PREFIX_BYTES || block > INT_MAX)
        return zr_fail(err, ZARR_ERR_CORRUPT, "lz4: %zu bytes are not a block",
                       io->src_bytes);
    says = zr_load_le32(io->src);
    if (says > io->dst_bytes || says > LZ4_MAX_INPUT_SIZE) {
        (void)zr_fail(err, ZARR_ERR_CORRUPT,
                      "lz4: block says it has %" PRIu32 " bytes, expected %zu", says,
                      io->dst_bytes);
        return says > LZ4_MAX_INPUT_SIZE ? ZARR_ERR_CORRUPT : ZR_NO_ROOM;
    }
    got = LZ4_decompress_safe((const char *)io->src + LZ4_PREFIX_BYTES, (char *)io->dst,
                              (int)block, (int)says);
    if (got < 0 || (uint32_t)got != says)
        return zr_fail(err, ZARR_ERR_CORRUPT, "lz4: damaged block");
    *used = says;
    return ZARR_OK;
}

ZR_JOBS_EACH(lz4_decode, lz4_decode_one)

static zarr_status lz4_encode_one(void *self_ptr, const struct zr_host_job *io,
                                  size_t *used, zarr_codec_exec *exec, zarr_error *err)
{
    const struct lz4_self *self = self_ptr;
    int got = 0;

    if (io->src_bytes > LZ4_MAX_INPUT_SIZE)
        return zr_fail(err, ZARR_ERR_INVALID, "lz4: %zu bytes are too many",
                       io->src_bytes);
    if (io->dst_bytes < LZ4_PREFIX_BYTES)
        return zr_no_room(err, "lz4");
    got = LZ4_compress_fast_extState(
        exec->thread_state, (const char *)io->src, (char *)io->dst + LZ4_PREFIX_BYTES,
        (int)io->src_bytes,
        (int)ZR_MIN(io->dst_bytes - LZ4_PREFIX_BYTES, (size_t)INT_MAX),
        self->acceleration);
    if (got <= 0)
        return zr_no_room(err, "lz4");
    zr_store_le32(io->dst, (uint32_t)io->src_bytes);
    *used = (size_t)got + LZ4_PREFIX_BYTES;
    return ZARR_OK;
}

ZR_JOBS_EACH(lz4_encode, lz4_encode_one)

static uint64_t lz4_size_hint(void *self, const zarr_codec_job *job, int encode)
{
    uint8_t head[LZ4_PREFIX_BYTES];

    ZR_UNUSED(self);
    return !encode && zr_job_peek(job, 0, head, sizeof head) ? zr_load_le32(head) : 0;
}

const zarr_codec_impl_vtable zr_cpu_lz4 = {
    .struct_size = sizeof(zarr_codec_impl_vtable),
    .caps = ZARR_CODEC_CAN_DECODE | ZARR_CODEC_CAN_ENCODE | ZARR_CODEC_SAFE |
            ZARR_CODEC_DETERMINISTIC,
    .codec = "lz4",
    .impl = "cpu.liblz4",
    .in_kinds = ZR_HOST_KINDS,
    .out_kinds = ZR_HOST_KINDS,
    .bind = lz4_bind,
    .thread_open = lz4_thread_open,
    .thread_close = lz4_thread_close,
    .encode = lz4_encode,
    .decode = lz4_decode,
    .close = zr_self_free,
    .size_hint = lz4_size_hint,
};
