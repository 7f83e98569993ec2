/*
 * codecs/zstd/zstd_cpu.c - zstd by libzstd. Decoding is one call. The metadata gives the
 * size of the destination, so it does not matter whether a frame states its content size.
 * The library handles several frames and skippable frames in the same call, and stops at
 * the end of the room. The magic number of each frame is checked first. Formats older
 * than zstd 1.0, which the library may also decode, are CORRUPT.
 * A context takes 12 us to create (measured). Each thread keeps one for each direction.
 * A large chunk whose rows have places of their own in the caller's tensor is decoded in
 * pieces, each of which is copied there while it is in the cache.
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
    uint8_t *piece; /* PIECE_BYTES */
};

/* Half of a small second-level cache. */
#define PIECE_BYTES ((size_t)128 << 10)
/* Smaller chunks stay in the cache without pieces. */
#define PIECES_LEAST ((uint64_t)2 << 20)
/* A stream costs more than a whole chunk if most bytes are stored as they are (10 % for
 * data that zstd halves); pieces save that only of chunks that shrink to this part. */
#define PIECES_RATIO 8
/* What a stream may keep of its past, which is memory beside the output. zstd writes
 * larger windows only at the levels "ultra". */
#define WINDOW_MOST ((uint64_t)8 << 20)
/* Shorter rows are faster with one copy of the whole chunk. */
#define ROW_LEAST 64
/* See keep_blocks_whole(). */
#define WHOLE_BLOCKS_BELOW 10

static zarr_status zstd_bind(void **out, const zarr_codec_spec *spec,
                             const zarr_codec_binding *to, zarr_error *err)
{
    struct zstd_self *self = zr_self_new(spec, sizeof *self, err);
    int64_t level = 0;

    ZR_UNUSED(to);
    if (!self)
        return ZARR_ERR_NO_MEMORY;
    (void)zarr_codec_spec_i64(spec, "level", &level);
    (void)zarr_codec_spec_bool(spec, "checksum", &self->checksum);
    self->level = (int)level;
    *out = self;
    return ZARR_OK;
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
    zr_free(NULL, t->piece);
    zr_free(NULL, t);
}

static zarr_status zstd_need_dctx(struct zstd_thread *t, zarr_error *err)
{
    if (!t->dctx)
        t->dctx = ZSTD_createDCtx();
    return t->dctx ? ZARR_OK : zr_fail_memory(err, 0);
}

/* The most bytes that a frame can decode to: its content size, but not more than one full
 * block for every four bytes (RFC 8878, 3.1.1.2). So a short frame cannot demand a large
 * destination. */
static uint64_t zstd_frame_most(const uint8_t *p, size_t frame)
{
    const unsigned long long says = ZSTD_getFrameContentSize(p, frame);
    uint64_t most = 0;

    if (!zr_mul(frame / 4 + 1, ZSTD_BLOCKSIZE_MAX, &most))
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
        if (!zr_add(*most, zstd_frame_most(p, frame), most))
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
    ZR_TRY(zstd_need_dctx(t, err));
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

ZR_JOBS_EACH(zstd_decode, zstd_decode_one)

zarr_status zr_codecs_unzstd(uint8_t *dst, size_t dst_bytes, const uint8_t *src,
                             size_t src_bytes, zarr_error *err)
{
    uint64_t most = 0;
    const zarr_status st = zstd_check_frames(src, src_bytes, &most, err);
    size_t got = 0;

    if (st != ZARR_OK)
        return st;
    got = ZSTD_decompress(dst, dst_bytes, src, src_bytes);
    if (ZSTD_isError(got) && ZSTD_getErrorCode(got) == ZSTD_error_memory_allocation)
        return zr_fail_memory(err, 0);
    if (ZSTD_isError(got))
        return zr_fail(err, ZARR_ERR_CORRUPT, "zstd: %s", ZSTD_getErrorName(got));
    return got == dst_bytes ? ZARR_OK
                            : zr_fail(err, ZARR_ERR_CORRUPT,
                                      "zstd: the frames end after %zu bytes", got);
}

/* ---- in pieces -------------------------------------------------------------------- */

/*
 * A piece has the elements of the dimensions from `split` + 1 on, for up to `step`
 * indexes of the dimension `split`, at one index of each dimension before it.
 */
struct zstd_pieces {
    const zarr_codec_strided *to;
    int32_t split;
    uint64_t step;
    uint64_t at[ZARR_MAX_RANK]; /* the first element of the next piece */
    zarr_box box;               /* from the piece to the tensor */
    size_t line;                /* bytes of one index of `split` */
    uint64_t total;
};

/* How many of the bytes before a place the data of a frame may refer to (RFC 8878,
 * 3.1.1.1). UINT64_MAX: the header does not tell. */
static uint64_t zstd_frame_window(const uint8_t *p, size_t frame)
{
    const unsigned long long says = ZSTD_getFrameContentSize(p, frame);
    uint64_t base = 0;

    if (frame < 6)
        return UINT64_MAX;
    if (p[4] & 0x20) /* one segment: the content itself */
        return says == ZSTD_CONTENTSIZE_ERROR ? UINT64_MAX : says;
    base = UINT64_C(1) << (10 + (p[5] >> 3));
    return base + base / 8 * (p[5] & 7);
}

/* Whether all frames of a chunk that was checked are decoded with small windows. */
static bool zstd_windows_fit(const uint8_t *p, size_t n, uint64_t fit)
{
    while (n > 0) {
        const size_t frame = ZSTD_findFrameCompressedSize(p, n);

        if (ZSTD_isError(frame) || frame == 0 || frame > n)
            return false;
        if (zr_load_le32(p) == ZSTD_MAGICNUMBER && zstd_frame_window(p, frame) > fit)
            return false;
        p += frame;
        n -= frame;
    }
    return true;
}

/* Chooses the pieces. Returns false if they would be too short or their rows have gaps.
 */
static bool zstd_pieces_init(struct zstd_pieces *p, const zarr_codec_strided *to)
{
    uint64_t bytes = to->item_bytes, extent = to->item_bytes, row = to->item_bytes;
    int32_t last = to->ndim - 1;

    *p = (struct zstd_pieces){.to = to, .split = -1};
    if (last < 0 || to->stride[last] != (int64_t)to->item_bytes)
        return false;
    for (int32_t d = last; d >= 0; d--) {
        const int64_t stride = to->stride[d];

        if (stride > 0 && (uint64_t)stride == row)
            row *= to->shape[d];
        if (p->split < 0 && to->shape[d] > PIECE_BYTES / bytes) {
            p->split = d;
            p->line = (size_t)bytes;
        }
        bytes *= to->shape[d]; /* the size of the chunk, which was checked */
        extent += (to->shape[d] - 1) * (uint64_t)(stride < 0 ? -stride : stride);
    }
    if (p->split < 0 || p->line > PIECE_BYTES || row < ROW_LEAST)
        return false;
    p->step = PIECE_BYTES / p->line;
    p->total = bytes;
    p->box = (zarr_box){.struct_size = sizeof p->box,
                        .ndim = to->ndim,
                        .item_bytes = (uint32_t)to->item_bytes};
    p->box.dst.mem = to->first;
    p->box.dst.mem.bytes = extent; /* tells whether it fits a cache */
    for (int32_t d = last; d >= 0; d--) {
        p->box.shape[d] = d > p->split ? to->shape[d] : 1;
        p->box.dst.stride[d] = to->stride[d];
        p->box.src.stride[d] = (int64_t)(d == last ? to->item_bytes
                                                   : (uint64_t)p->box.src.stride[d + 1] *
                                                         p->box.shape[d + 1]);
    }
    return true;
}

static size_t zstd_piece_bytes(const struct zstd_pieces *p)
{
    const uint64_t left = p->to->shape[p->split] - p->at[p->split];

    return (size_t)ZR_MIN(p->step, left) * p->line;
}

/* Copies a piece to its place and goes on to the next. */
static void zstd_piece_put(struct zstd_pieces *p, uint8_t *piece, size_t bytes)
{
    uint64_t n = bytes / p->line;
    int32_t d = p->split;

    p->box.shape[d] = n;
    p->box.src.mem = zr_mem_of_host(piece, bytes);
    zr_host_box_copy(&p->box);
    for (; d >= 0; d--, n = 1) {
        p->at[d] += n;
        p->box.dst.mem.offset += n * (uint64_t)p->to->stride[d];
        if (p->at[d] < p->to->shape[d] || d == 0)
            return;
        p->box.dst.mem.offset -= p->at[d] * (uint64_t)p->to->stride[d];
        p->at[d] = 0;
    }
}

static zarr_status zstd_fail_stream(size_t got, zarr_error *err)
{
    if (ZSTD_getErrorCode(got) == ZSTD_error_memory_allocation)
        return zr_fail_memory(err, 0);
    return zr_fail(err, ZARR_ERR_CORRUPT, "zstd: %s", ZSTD_getErrorName(got));
}

/* Fills out, or stops at the end of the input. */
static zarr_status zstd_stream(ZSTD_DCtx *dctx, ZSTD_outBuffer *out, ZSTD_inBuffer *in,
                               zarr_error *err)
{
    while (out->pos < out->size) {
        const size_t before = out->pos, from = in->pos;
        const size_t got = ZSTD_decompressStream(dctx, out, in);

        if (ZSTD_isError(got))
            return zstd_fail_stream(got, err);
        if (out->pos == before && in->pos == from)
            break;
    }
    return ZARR_OK;
}

static zarr_status zstd_strided_one(void *pieces, const struct zr_host_job *io,
                                    size_t *used, zarr_codec_exec *exec, zarr_error *err)
{
    struct zstd_pieces *p = pieces;
    struct zstd_thread *t = exec->thread_state;
    ZSTD_inBuffer in = {.src = io->src, .size = io->src_bytes};
    zarr_status st = ZARR_OK;
    uint64_t done = 0, most = 0;

    ZR_TRY(zstd_check_frames(io->src, io->src_bytes, &most, err));
    if (io->src_bytes > p->total / PIECES_RATIO ||
        !zstd_windows_fit(io->src, io->src_bytes, ZR_MIN(p->total / 2, WINDOW_MOST)))
        return zr_fail(err, ZARR_ERR_UNSUPPORTED, "zstd: no gain by pieces");
    ZR_TRY(zstd_need_dctx(t, err));
    if (!t->piece)
        t->piece = zr_malloc(NULL, PIECE_BYTES);
    if (!t->piece)
        return zr_fail_memory(err, PIECE_BYTES);
    (void)ZSTD_DCtx_reset(t->dctx, ZSTD_reset_session_only);
    while (done < p->total) {
        const size_t room = zstd_piece_bytes(p);
        ZSTD_outBuffer out = {.dst = t->piece, .size = room};

        ZR_TRY(zstd_stream(t->dctx, &out, &in, err));
        done += out.pos;
        if (out.pos < room)
            break;
        zstd_piece_put(p, t->piece, room);
    }
    /* The end of the frame and its checksum; frames without data. */
    if (done == p->total) {
        ZSTD_outBuffer out = {.dst = t->piece, .size = 1};

        ZR_TRY(zstd_stream(t->dctx, &out, &in, err));
        if (out.pos > 0)
            st = zr_fail(err, ZARR_ERR_CORRUPT, "zstd: more than %" PRIu64 " bytes",
                         p->total);
    }
    *used = (size_t)done;
out:
    return st;
}

static zarr_status zstd_decode_strided(void *self, zarr_codec_job *job,
                                       const zarr_codec_strided *to,
                                       zarr_codec_exec *exec, zarr_error *err)
{
    zarr_codec_job in = {.src = job->src, .dst = to->first};
    struct zstd_pieces p;
    zarr_status st;

    ZR_UNUSED(self);
    if (!zstd_pieces_init(&p, to))
        return zr_fail(err, ZARR_ERR_UNSUPPORTED, "zstd: short rows");
    st = zr_jobs_each(zstd_strided_one, &p, &in, 1, exec, err);
    job->dst_used = in.dst_used;
    return st;
}

/* zstd 1.5.7 looks for places where the statistics of its input change, and begins a
 * block there. Elements of one chunk are of one kind: the search takes up to 40 % of the
 * time, and where it finds many places, the blocks save a percent of the bytes and take
 * twice as long to decode. High levels are asked for the fewest bytes, so there it stays.
 * The parameter is ZSTD_c_blockSplitterLevel; zstd does not promise its number for other
 * versions. */
static void keep_blocks_whole(ZSTD_CCtx *cctx, int level)
{
    const ZSTD_cParameter splitter_level = (ZSTD_cParameter)1017;

    if (ZSTD_versionNumber() == 10507 && level < WHOLE_BLOCKS_BELOW)
        (void)ZSTD_CCtx_setParameter(cctx, splitter_level, 1 /* none */);
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
    keep_blocks_whole(t->cctx, self->level);
    got = ZSTD_compress2(t->cctx, io->dst, io->dst_bytes, io->src, io->src_bytes);
    if (!ZSTD_isError(got)) {
        *used = got;
        return ZARR_OK;
    }
    if (ZSTD_getErrorCode(got) == ZSTD_error_memory_allocation)
        return zr_fail_memory(err, 0);
    return zr_no_room(err, "zstd");
}

ZR_JOBS_EACH(zstd_encode, zstd_encode_one)

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
    .close = zr_self_free,
    .size_hint = zstd_size_hint,
    .strided = zstd_decode_strided,
    .strided_least = PIECES_LEAST,
};
