/*
 * codecs/zstd/zstd_cpu.c - zstd by libzstd. Decoding is one call. The metadata gives the
 * size of the destination, so it does not matter whether a frame states its content size.
 * The library handles several frames and skippable frames in the same call, and stops at
 * the end of the room. The magic number of each frame is checked first. Formats older
 * than zstd 1.0, which the library may also decode, are CORRUPT.
 * A context takes 12 us to create (measured). Each thread keeps one for each direction.
 */
#include "codecs/codecs_int.h"

#include <string.h>
#include <zstd.h>
#include <zstd_errors.h>

/* Sixteen magic numbers mark skippable frames (RFC 8878, 3.1.2). */
#define FRAME_SKIPPABLE      UINT32_C(0x184D2A50)
#define FRAME_SKIPPABLE_MASK UINT32_C(0xFFFFFFF0)

struct zstd_self {
    const zarr_allocator *alloc;
    int level, checksum;
};
struct zstd_thread {
    ZSTD_DCtx *dctx;
    ZSTD_CCtx *cctx;
};

static zarr_status zstd_bind(void **out, const zarr_codec_spec *spec,
                             const zarr_codec_binding *to, zarr_error *err)
{
    const zarr_allocator *alloc = zarr_codec_spec_allocator(spec);
    struct zstd_self *self = zr_calloc(alloc, 1, sizeof *self);
    int64_t level = 0;

    ZR_UNUSED(to);
    if (!self)
        return zr_fail_memory(err, sizeof *self);
    (void)zarr_codec_spec_i64(spec, "level", &level);
    (void)zarr_codec_spec_bool(spec, "checksum", &self->checksum);
    self->alloc = alloc;
    self->level = (int)level;
    *out = self;
    return ZARR_OK;
}

static void zstd_close(void *self)
{
    if (self)
        zr_free(((struct zstd_self *)self)->alloc, self);
}

static zarr_status zstd_thread_open(void *self, void **state, zarr_error *err)
{
    ZR_UNUSED(self);
    *state = zr_calloc(NULL, 1, sizeof(struct zstd_thread));
    return *state ? ZARR_OK : zr_fail_memory(err, sizeof(struct zstd_thread));
}

static void zstd_thread_close(void *state)
{
    struct zstd_thread *t = state;

    if (!t)
        return;
    ZSTD_freeDCtx(t->dctx);
    ZSTD_freeCCtx(t->cctx);
    zr_free(NULL, t);
}

/* The most bytes that a frame can decode to: its content size, but not more than one full
 * block for every four bytes (RFC 8878, 3.1.1.2). So a short frame cannot demand a large
 * destination. */
static uint64_t zstd_frame_most(const uint8_t *p, size_t frame)
{
    const unsigned long long says = ZSTD_getFrameContentSize(p, frame);
    uint64_t most = 0;

    if (!zr_mul_u64(frame / 4 + 1, ZSTD_BLOCKSIZE_MAX, &most))
        most = UINT64_MAX;
    return says == ZSTD_CONTENTSIZE_UNKNOWN || says == ZSTD_CONTENTSIZE_ERROR
               ? most
               : ZR_MIN((uint64_t)says, most);
}

/* CORRUPT unless the chunk is a sequence of frames. Follows the block headers, which
 * reads three bytes per 128 KiB of output. *most is the most bytes that the frames decode
 * to. */
static zarr_status zstd_check_frames(const uint8_t *p, size_t n, uint64_t *most,
                                     zarr_error *err)
{
    *most = 0;
    while (n > 0) {
        const uint32_t magic = n >= 4 ? zr_load_le32(p) : 0;
        size_t frame = 0;

        if (magic != ZSTD_MAGICNUMBER &&
            (magic & FRAME_SKIPPABLE_MASK) != FRAME_SKIPPABLE)
            return zr_fail(err, ZARR_ERR_CORRUPT,
                           "zstd: no frame where one should start");
        frame = ZSTD_findFrameCompressedSize(p, n);
        if (ZSTD_isError(frame) || frame == 0 || frame > n)
            return zr_fail(err, ZARR_ERR_CORRUPT, "zstd: truncated or damaged frame");
        if (!zr_add_u64(*most, zstd_frame_most(p, frame), most))
            *most = UINT64_MAX;
        p += frame;
        n -= frame;
    }
    return ZARR_OK;
}

static zarr_status zstd_decode_one(void *self, const struct zr_host_job *io, size_t *used,
                                   zarr_codec_exec *exec, zarr_error *err)
{
    struct zstd_thread *t = exec->thread_state;
    zarr_status st = ZARR_OK;
    uint64_t most = 0;
    size_t got = 0;

    ZR_UNUSED(self);
    ZR_TRY(zstd_check_frames(io->src, io->src_bytes, &most, err));
    if (!t->dctx)
        t->dctx = ZSTD_createDCtx();
    if (!t->dctx)
        return zr_fail_memory(err, 0);
    got = ZSTD_decompressDCtx(t->dctx, io->dst, io->dst_bytes, io->src, io->src_bytes);
    if (!ZSTD_isError(got))
        *used = got;
    else if (ZSTD_getErrorCode(got) == ZSTD_error_memory_allocation)
        st = zr_fail_memory(err, 0);
    else if (ZSTD_getErrorCode(got) == ZSTD_error_dstSize_tooSmall &&
             io->dst_bytes < most) /* otherwise the frame is damaged */
        st = zr_too_long(err, "zstd", io->dst_bytes);
    else
        st = zr_fail(err, ZARR_ERR_CORRUPT, "zstd: %s", ZSTD_getErrorName(got));
out:
    return st;
}

static zarr_status zstd_decode(void *self, zarr_codec_job *jobs, uint64_t n,
                               zarr_codec_exec *exec, zarr_error *err)
{
    return zr_jobs_each(zstd_decode_one, self, jobs, n, exec, err);
}

static zarr_status zstd_encode_one(void *self_ptr, const struct zr_host_job *io,
                                   size_t *used, zarr_codec_exec *exec, zarr_error *err)
{
    const struct zstd_self *self = self_ptr;
    struct zstd_thread *t = exec->thread_state;
    size_t got = 0;

    if (!t->cctx)
        t->cctx = ZSTD_createCCtx();
    if (!t->cctx)
        return zr_fail_memory(err, 0);
    (void)ZSTD_CCtx_reset(t->cctx, ZSTD_reset_session_and_parameters);
    (void)ZSTD_CCtx_setParameter(t->cctx, ZSTD_c_compressionLevel, self->level);
    (void)ZSTD_CCtx_setParameter(t->cctx, ZSTD_c_checksumFlag, self->checksum);
    got = ZSTD_compress2(t->cctx, io->dst, io->dst_bytes, io->src, io->src_bytes);
    if (!ZSTD_isError(got)) {
        *used = got;
        return ZARR_OK;
    }
    if (ZSTD_getErrorCode(got) == ZSTD_error_memory_allocation)
        return zr_fail_memory(err, 0);
    return zr_no_room(err, "zstd");
}

static zarr_status zstd_encode(void *self, zarr_codec_job *jobs, uint64_t n,
                               zarr_codec_exec *exec, zarr_error *err)
{
    return zr_jobs_each(zstd_encode_one, self, jobs, n, exec, err);
}

/* The content size of the first frame. The destination grows if there are more frames. */
static uint64_t zstd_size_hint(void *self, const zarr_codec_job *job, int encode)
{
    uint8_t head[18]; /* the longest header */
    const size_t n = (size_t)ZR_MIN(job->src.bytes, (uint64_t)sizeof head);
    unsigned long long says = ZSTD_CONTENTSIZE_UNKNOWN;

    ZR_UNUSED(self);
    if (!encode && zr_job_peek(job, 0, head, n))
        says = ZSTD_getFrameContentSize(head, n);
    return says == ZSTD_CONTENTSIZE_UNKNOWN || says == ZSTD_CONTENTSIZE_ERROR ? 0 : says;
}

const zarr_codec_impl_vtable zr_cpu_zstd = {
    .struct_size = sizeof(zarr_codec_impl_vtable),
    .caps = ZARR_CODEC_CAN_DECODE | ZARR_CODEC_CAN_ENCODE | ZARR_CODEC_SAFE |
            ZARR_CODEC_DETERMINISTIC,
    .codec = "zstd",
    .impl = "cpu.libzstd",
    .in_kinds = ZR_HOST_KINDS,
    .out_kinds = ZR_HOST_KINDS,
    .bind = zstd_bind,
    .thread_open = zstd_thread_open,
    .thread_close = zstd_thread_close,
    .encode = zstd_encode,
    .decode = zstd_decode,
    .close = zstd_close,
    .size_hint = zstd_size_hint,
};
