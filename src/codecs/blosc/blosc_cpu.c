/*
 * codecs/blosc/blosc_cpu.c - blosc by c-blosc 1.21, through the functions that take no
 * global lock. Before the library gets a chunk, its container is checked: the header must
 * agree with the metadata, and the table of blocks and the streams of each block must lie
 * inside the chunk. Stored chunks are copied without the library.
 *
 * The container begins with bytes for version, version of the inner format, flags and
 * typesize, then little-endian nbytes, blocksize and cbytes of 32 bits each. A stored
 * chunk has its bytes after this header. Any other chunk has the offsets of its blocks
 * from the chunk's start, then the blocks. A block is 1 or typesize streams, each after
 * its length. A stream is stored if it is as long as its decoded bytes. The last block
 * may be short; it is then one stream. Blosc 2 marks its longer header with both shuffle
 * bits. Such chunks are UNSUPPORTED.
 */
#include "codecs/codecs_int.h"

#include <blosc.h>
#include <string.h>

enum {
    BLOSC_HEADER_BYTES = 16,
    BLOSC_FLAG_STORED = 0x2,
    BLOSC_FLAG_EXTENDED = 0x1 | 0x4,
    BLOSC_FLAG_NO_SPLIT = 0x10,
    BLOSC_SPLITS_MAX = 16,      /* blocks with a larger typesize are one stream */
    BLOSC_SPLIT_ITEMS_MIN = 128 /* so are blocks of fewer elements */
};
/* The largest block size that is always permitted. Larger blocks must not be longer than
 * the chunk, because the library allocates three blocks at once. */
#define BLOSC_BLOCK_ALWAYS UINT32_C(65536)
/* The largest block size that the library chooses when it encodes. */
#define BLOSC_BLOCK_CHOSEN ((size_t)1 << 20)
/* What zlib or zstd inside the library allocates to decode a block. */
#define BLOSC_CODEC_BYTES ((size_t)160 << 10)

struct blosc_self {
    const zarr_allocator *alloc;
    const char *cname; /* borrowed from the specification */
    int clevel, shuffle;
    size_t typesize, blocksize;
};

/* Where malloc() has no scratch memory for it, the library crashes, or it prints to
 * stdout and fails as it does for a damaged chunk. So asks malloc() for as much first. */
static zarr_status blosc_check_memory(size_t blocksize, zarr_error *err)
{
    const size_t bytes =
        3 * (blocksize + BLOSC_MAX_TYPESIZE * sizeof(int32_t)) + BLOSC_CODEC_BYTES;
    void *volatile scratch = zr_malloc(NULL, bytes); /* volatile: it is not left out */

    if (!scratch)
        return zr_fail_memory(err, bytes);
    zr_free(NULL, scratch);
    return ZARR_OK;
}

/* ---- the container ---------------------------------------------------------------- */

struct blosc_header {
    uint32_t version, flags, typesize, nbytes, blocksize, cbytes;
    size_t n_blocks;
    size_t n_splits; /* streams of a full block */
};

static zarr_status blosc_fail(zarr_error *err, const char *what)
{
    return zr_fail(err, ZARR_ERR_CORRUPT, "blosc: %s", what);
}

static zarr_status blosc_check_kind(const struct blosc_header *h, zarr_error *err)
{
    if ((h->flags & BLOSC_FLAG_EXTENDED) == BLOSC_FLAG_EXTENDED ||
        h->version > BLOSC_VERSION_FORMAT)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "blosc: version %" PRIu32 ", flags 0x%02" PRIx32
                       ": a chunk of Blosc 2, not Blosc 1",
                       h->version, h->flags);
    if (h->version != BLOSC_VERSION_FORMAT || h->typesize == 0)
        return blosc_fail(err, "damaged header");
    return ZARR_OK;
}

static zarr_status blosc_read_header(struct blosc_header *h, const struct zr_host_job *io,
                                     zarr_error *err)
{
    zarr_status st = ZARR_OK;

    if (io->src_bytes < BLOSC_HEADER_BYTES)
        return zr_fail(err, ZARR_ERR_CORRUPT, "blosc: %zu bytes, a header alone has 16",
                       io->src_bytes);
    *h = (struct blosc_header){.version = io->src[0],
                               .flags = io->src[2],
                               .typesize = io->src[3],
                               .nbytes = zr_load_le32(io->src + 4),
                               .blocksize = zr_load_le32(io->src + 8),
                               .cbytes = zr_load_le32(io->src + 12)};
    ZR_TRY(blosc_check_kind(h, err));
    if (h->nbytes > io->dst_bytes || h->nbytes > BLOSC_MAX_BUFFERSIZE)
        st = zr_fail(err, ZARR_ERR_CORRUPT,
                     "blosc: chunk says it has %" PRIu32 " bytes, expected %zu",
                     h->nbytes, io->dst_bytes);
    else if (h->cbytes != io->src_bytes)
        st = zr_fail(err, ZARR_ERR_CORRUPT,
                     "blosc: chunk says it is stored in %" PRIu32 " bytes, there are %zu",
                     h->cbytes, io->src_bytes);
    if (st != ZARR_OK && h->nbytes > io->dst_bytes && h->nbytes <= BLOSC_MAX_BUFFERSIZE &&
        h->cbytes == io->src_bytes)
        st = ZR_NO_ROOM;
out:
    return st;
}

/* CORRUPT unless all streams of the block lie in the chunk. A stream may be longer than
 * its decoded bytes; snappy's can be. */
static zarr_status blosc_check_block(const struct zr_host_job *io, uint32_t start,
                                     size_t n_streams, zarr_error *err)
{
    size_t at = start;

    for (size_t i = 0; i < n_streams; i++) {
        size_t n = 0;

        if (at > io->src_bytes || io->src_bytes - at < 4)
            return blosc_fail(err, "a block begins outside the chunk");
        n = zr_load_le32(io->src + at);
        at += 4;
        if (n == 0 || n > io->src_bytes - at)
            return blosc_fail(err, "a block ends outside the chunk");
        at += n;
    }
    return ZARR_OK;
}

static zarr_status blosc_check_blocks(struct blosc_header *h,
                                      const struct zr_host_job *io, zarr_error *err)
{
    size_t table = 0;

    if (h->blocksize == 0 || h->blocksize > BLOSC_MAX_BLOCKSIZE ||
        h->blocksize > ZR_MAX(h->nbytes, BLOSC_BLOCK_ALWAYS))
        return blosc_fail(err, "damaged block size");
    h->n_blocks = h->nbytes / h->blocksize + (h->nbytes % h->blocksize != 0);
    h->n_splits = 1;
    if (!(h->flags & BLOSC_FLAG_NO_SPLIT) && h->typesize <= BLOSC_SPLITS_MAX &&
        h->blocksize / h->typesize >= BLOSC_SPLIT_ITEMS_MIN)
        h->n_splits = h->typesize;
    if (h->n_blocks > (io->src_bytes - BLOSC_HEADER_BYTES) / 4)
        return blosc_fail(err, "the table of blocks is longer than the chunk");
    table = BLOSC_HEADER_BYTES + 4 * h->n_blocks;
    for (size_t i = 0; i < h->n_blocks; i++) {
        const uint32_t start = zr_load_le32(io->src + BLOSC_HEADER_BYTES + 4 * i);
        const bool last = i + 1 == h->n_blocks && h->nbytes % h->blocksize;

        if (start < table)
            return blosc_fail(err, "a block begins in the header");
        ZR_CHECK(blosc_check_block(io, start, last ? 1 : h->n_splits, err));
    }
    return ZARR_OK;
}

/* Without its inner library c-blosc fails as for a damaged block. */
static zarr_status blosc_check_format(const struct blosc_header *h, zarr_error *err)
{
    static const char *const formats[] = {"blosclz", "lz4", "snappy", "zlib", "zstd"};
    const uint32_t format = h->flags >> 5;

    if (format >= ZR_COUNT(formats))
        return zr_fail(err, ZARR_ERR_CORRUPT,
                       "blosc: damaged header: no inner format has the number %" PRIu32,
                       format);
    if (blosc_compname_to_compcode(formats[format]) < 0)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "blosc: the chunk is compressed with \"%s\", which this build's "
                       "c-blosc lacks",
                       formats[format]);
    return ZARR_OK;
}

/* ---- decoding -------------------------------------------------------------------- */

/* Reads the header and checks the rest of the container. */
static zarr_status blosc_open(struct blosc_header *h, const struct zr_host_job *io,
                              zarr_error *err)
{
    zarr_status st = ZARR_OK;
    size_t nbytes = 0;

    ZR_TRY(blosc_read_header(h, io, err));
    if (h->flags & BLOSC_FLAG_STORED) {
        if (io->src_bytes - BLOSC_HEADER_BYTES != h->nbytes)
            st = zr_fail(err, ZARR_ERR_CORRUPT,
                         "blosc: stored chunk of %" PRIu32 " bytes has %zu", h->nbytes,
                         io->src_bytes - BLOSC_HEADER_BYTES);
        goto out;
    }
    if (h->nbytes == 0)
        goto out;
    ZR_TRY(blosc_check_format(h, err));
    ZR_TRY(blosc_check_blocks(h, io, err));
    if (blosc_cbuffer_validate(io->src, io->src_bytes, &nbytes) != 0 ||
        nbytes != h->nbytes)
        st = blosc_fail(err, "damaged header");
out:
    return st;
}

static zarr_status blosc_decode_one(void *self, const struct zr_host_job *io,
                                    size_t *used, zarr_codec_exec *exec, zarr_error *err)
{
    struct blosc_header h = {0};
    int got = 0;

    ZR_UNUSED(self, exec);
    ZR_CHECK(blosc_open(&h, io, err));
    *used = h.nbytes;
    if (h.flags & BLOSC_FLAG_STORED) {
        memcpy(io->dst, io->src + BLOSC_HEADER_BYTES, h.nbytes);
        return ZARR_OK;
    }
    if (h.nbytes == 0)
        return ZARR_OK;
    ZR_CHECK(blosc_check_memory(h.blocksize, err));
    got = blosc_decompress_ctx(io->src, io->dst, h.nbytes, 1);
    if (got < 0 || (uint32_t)got != h.nbytes)
        return blosc_fail(err, "damaged block");
    return ZARR_OK;
}

ZR_JOBS_EACH(blosc_decode, blosc_decode_one)

/* ---- decoding in part ------------------------------------------------------------- */

struct blosc_partial {
    void *self;
    const zarr_codec_range *ranges;
    uint64_t n;
};
struct blosc_blocks { /* the blocks first to end - 1 */
    size_t first, end;
};

/* The next neighbouring blocks that the ranges from *at on need. Advances *at. */
static struct blosc_blocks blosc_next_blocks(const struct blosc_header *h,
                                             const struct blosc_partial *part,
                                             uint64_t *at)
{
    struct blosc_blocks run = {0};

    for (; *at < part->n; (*at)++) {
        const zarr_codec_range *r = &part->ranges[*at];
        const size_t first = (size_t)(r->offset / h->blocksize);
        const size_t end = (size_t)((r->offset + r->bytes - 1) / h->blocksize) + 1;

        if (run.end && first > run.end)
            break;
        if (!run.end)
            run.first = first;
        run.end = ZR_MAX(run.end, end);
    }
    return run;
}

static size_t blosc_count_blocks(const struct blosc_header *h,
                                 const struct blosc_partial *part)
{
    size_t n = 0;

    for (uint64_t at = 0; at < part->n;) {
        const struct blosc_blocks run = blosc_next_blocks(h, part, &at);

        n += run.end - run.first;
    }
    return n;
}

/* Whether decoding in part is possible and saves more than a quarter of the blocks. The
 * library decodes whole items, so block and chunk must have a whole number of them. It
 * trusts the table of blocks, which has been checked before. */
static bool blosc_partial_pays(const struct blosc_header *h,
                               const struct blosc_partial *part)
{
    return h->blocksize % h->typesize == 0 && h->nbytes % h->typesize == 0 &&
           blosc_count_blocks(h, part) < h->n_blocks - h->n_blocks / 4;
}

static zarr_status blosc_some_blocks(const struct blosc_header *h,
                                     const struct blosc_partial *part,
                                     const struct zr_host_job *io, size_t *used,
                                     zarr_error *err)
{
    for (uint64_t at = 0; at < part->n;) {
        const struct blosc_blocks run = blosc_next_blocks(h, part, &at);
        const size_t from = run.first * h->blocksize;
        const size_t n = ZR_MIN(run.end * h->blocksize, (size_t)h->nbytes) - from;
        const int got = blosc_getitem(io->src, (int)(from / h->typesize),
                                      (int)(n / h->typesize), io->dst + from);

        if (got < 0 || (size_t)got != n)
            return blosc_fail(err, "damaged block");
        *used += n;
    }
    return ZARR_OK;
}

static zarr_status blosc_partial_one(void *part_ptr, const struct zr_host_job *io,
                                     size_t *used, zarr_codec_exec *exec, zarr_error *err)
{
    const struct blosc_partial *part = part_ptr;
    zarr_status st = ZARR_OK;
    struct blosc_header h = {0};

    for (uint64_t i = 0; i < part->n; i++)
        if (!part->ranges[i].bytes || part->ranges[i].bytes > io->dst_bytes ||
            part->ranges[i].offset > io->dst_bytes - part->ranges[i].bytes)
            return zr_internal(err);
    ZR_TRY(blosc_open(&h, io, err));
    if (h.nbytes != io->dst_bytes) {
        st = zr_fail(err, ZARR_ERR_CORRUPT, "blosc: %" PRIu32 " bytes, expected %zu",
                     h.nbytes, io->dst_bytes);
    } else if (h.flags & BLOSC_FLAG_STORED) {
        for (uint64_t i = 0; i < part->n; i++) {
            const size_t at = (size_t)part->ranges[i].offset;
            const size_t n = (size_t)part->ranges[i].bytes;

            memcpy(io->dst + at, io->src + BLOSC_HEADER_BYTES + at, n);
            *used += n;
        }
    } else if (blosc_partial_pays(&h, part)) {
        ZR_TRY(blosc_check_memory(h.blocksize, err));
        st = blosc_some_blocks(&h, part, io, used, err);
    } else {
        st = blosc_decode_one(part->self, io, used, exec, err);
    }
out:
    return st;
}

static zarr_status blosc_partial(void *self, zarr_codec_job *job,
                                 const zarr_codec_range *ranges, uint64_t n,
                                 zarr_codec_exec *exec, zarr_error *err)
{
    struct blosc_partial part = {.self = self, .ranges = ranges, .n = n};

    return zr_jobs_each(blosc_partial_one, &part, job, 1, exec, err);
}

/* ---- encoding -------------------------------------------------------------------- */

static int blosc_shuffle_number(const char *word, size_t typesize)
{
    if (zr_streq(word, "auto"))
        return typesize == 1 ? BLOSC_BITSHUFFLE : BLOSC_SHUFFLE;
    return zr_streq(word, "shuffle")      ? BLOSC_SHUFFLE
           : zr_streq(word, "bitshuffle") ? BLOSC_BITSHUFFLE
                                          : BLOSC_NOSHUFFLE;
}

static zarr_status blosc_bind(void **out, const zarr_codec_spec *spec,
                              const zarr_codec_binding *to, zarr_error *err)
{
    struct blosc_self *self = zr_self_new(spec, sizeof *self, err);
    int64_t clevel = 5, typesize = to->decoded->item_bytes_hint, blocksize = 0;

    if (!self)
        return ZARR_ERR_NO_MEMORY;
    (void)zarr_codec_spec_i64(spec, "clevel", &clevel);
    (void)zarr_codec_spec_i64(spec, "typesize", &typesize);
    (void)zarr_codec_spec_i64(spec, "blocksize", &blocksize);
    self->cname = zarr_codec_spec_text(spec, "cname");
    self->clevel = (int)clevel;
    self->typesize = typesize < 1 || typesize > BLOSC_MAX_TYPESIZE ? 1 : (size_t)typesize;
    self->blocksize = (size_t)blocksize;
    self->shuffle =
        blosc_shuffle_number(zarr_codec_spec_text(spec, "shuffle"), (size_t)typesize);
    *out = self;
    return ZARR_OK;
}

static zarr_status blosc_encode_one(void *self_ptr, const struct zr_host_job *io,
                                    size_t *used, zarr_codec_exec *exec, zarr_error *err)
{
    const struct blosc_self *self = self_ptr;
    /* With more room the library may write a compressed chunk that is longer than a
     * stored one. */
    const size_t room = ZR_MIN(io->dst_bytes, io->src_bytes + BLOSC_MAX_OVERHEAD);
    const size_t blocksize =
        ZR_MIN(io->src_bytes, ZR_MAX(self->blocksize, BLOSC_BLOCK_CHOSEN));
    zarr_status st;
    int got = 0;

    ZR_UNUSED(exec);
    if (io->src_bytes > BLOSC_MAX_BUFFERSIZE)
        return zr_fail(err, ZARR_ERR_INVALID, "blosc: %zu bytes are too many",
                       io->src_bytes);
    if (blosc_compname_to_compcode(self->cname) < 0)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED, "blosc: this build has no \"%s\"",
                       self->cname);
    st = blosc_check_memory(blocksize, err);
    if (st != ZARR_OK)
        return st;
    got = blosc_compress_ctx(self->clevel, self->shuffle, self->typesize, io->src_bytes,
                             io->src, io->dst, room, self->cname, self->blocksize, 1);
    if (got <= 0)
        return zr_no_room(err, "blosc");
    *used = (size_t)got;
    return ZARR_OK;
}

ZR_JOBS_EACH(blosc_encode, blosc_encode_one)

static uint64_t blosc_size_hint(void *self, const zarr_codec_job *job, int encode)
{
    uint8_t head[8];

    ZR_UNUSED(self);
    return !encode && zr_job_peek(job, 0, head, sizeof head) ? zr_load_le32(head + 4) : 0;
}

const zarr_codec_impl_vtable zr_cpu_blosc = {
    .struct_size = sizeof(zarr_codec_impl_vtable),
    .caps = ZARR_CODEC_CAN_DECODE | ZARR_CODEC_CAN_ENCODE | ZARR_CODEC_SAFE |
            ZARR_CODEC_DETERMINISTIC,
    .codec = "blosc",
    .impl = "cpu.libblosc",
    .in_kinds = ZR_HOST_KINDS,
    .out_kinds = ZR_HOST_KINDS,
    .bind = blosc_bind,
    .encode = blosc_encode,
    .decode = blosc_decode,
    .close = zr_self_free,
    .size_hint = blosc_size_hint,
    .partial = blosc_partial,
};
