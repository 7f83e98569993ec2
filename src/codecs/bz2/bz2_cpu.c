/*
 * codecs/bz2/bz2_cpu.c - bz2 by libbz2. A chunk may be several streams in a row, as
 * parallel compressors write them. Other bytes after the last stream are CORRUPT. The
 * library counts in 32 bits, so it gets source and destination in pieces.
 */
#include "codecs/codecs_int.h"

#include <bzlib.h>
#include <limits.h>

struct bz2_self {
    const zarr_allocator *alloc;
    int level;
};

static zarr_status bz2_bind(void **out, const zarr_codec_spec *spec,
                            const zarr_codec_binding *to, zarr_error *err)
{
    struct bz2_self *self = zr_self_new(spec, sizeof *self, err);
    int64_t level = 1;

    ZR_UNUSED(to);
    if (!self)
        return ZARR_ERR_NO_MEMORY;
    (void)zarr_codec_spec_i64(spec, "level", &level);
    self->level = (int)level;
    *out = self;
    return ZARR_OK;
}

/* The rest of source and destination. z gets them in pieces that fit 32 bits. */
struct bz2_sides {
    bz_stream z;
    size_t src_left, dst_left; /* after the pieces in z */
};

static void bz2_sides_open(struct bz2_sides *s, const struct zr_host_job *io)
{
    *s = (struct bz2_sides){.src_left = io->src_bytes, .dst_left = io->dst_bytes};
    s->z.next_in = (char *)(uintptr_t)io->src; /* libbz2 does not write to it */
    s->z.next_out = (char *)io->dst;
}

static void bz2_sides_fill(struct bz2_sides *s)
{
    size_t more = ZR_MIN(s->src_left, (size_t)(UINT_MAX - s->z.avail_in));

    s->z.avail_in += (unsigned)more;
    s->src_left -= more;
    more = ZR_MIN(s->dst_left, (size_t)(UINT_MAX - s->z.avail_out));
    s->z.avail_out += (unsigned)more;
    s->dst_left -= more;
}

/* ---- decoding --------------------------------------------------------------------- */

/* Called if the room is full before the end of the stream. True if the stream decodes to
 * more bytes, false if only its end is missing. */
static bool bz2_has_more(struct bz2_sides *s)
{
    char spare = 0;

    s->z.next_out = &spare;
    s->z.avail_out = 1;
    (void)BZ2_bzDecompress(&s->z);
    return s->z.avail_out == 0;
}

/* Decodes one stream to its end. */
static zarr_status bz2_one_stream(struct bz2_sides *s, size_t room, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    int rc = BZ2_bzDecompressInit(&s->z, 0, 0);

    if (rc != BZ_OK)
        return rc == BZ_MEM_ERROR ? zr_fail_memory(err, 0) : zr_internal(err);
    do {
        const unsigned in = (bz2_sides_fill(s), s->z.avail_in), out = s->z.avail_out;

        rc = BZ2_bzDecompress(&s->z);
        if (rc == BZ_OK && s->z.avail_in == in && s->z.avail_out == out)
            break; /* the stream needs bytes that are missing */
    } while (rc == BZ_OK);
    if (rc == BZ_MEM_ERROR)
        st = zr_fail_memory(err, 0);
    else if (rc == BZ_OK && !s->z.avail_out && bz2_has_more(s))
        st = zr_too_long(err, "bz2", room);
    else if (rc == BZ_OK)
        st = zr_fail(err, ZARR_ERR_CORRUPT, "bz2: truncated stream");
    else if (rc != BZ_STREAM_END)
        st = zr_fail(err, ZARR_ERR_CORRUPT, "bz2: %s",
                     rc == BZ_DATA_ERROR_MAGIC ? "no stream where one should start"
                                               : "damaged stream");
    (void)BZ2_bzDecompressEnd(&s->z);
    return st;
}

static zarr_status bz2_decode_one(void *self, const struct zr_host_job *io, size_t *used,
                                  zarr_codec_exec *exec, zarr_error *err)
{
    struct bz2_sides s;

    ZR_UNUSED(self, exec);
    bz2_sides_open(&s, io);
    do
        ZR_CHECK(bz2_one_stream(&s, io->dst_bytes, err));
    while (s.z.avail_in || s.src_left);
    *used = io->dst_bytes - s.dst_left - s.z.avail_out;
    return ZARR_OK;
}

ZR_JOBS_EACH(bz2_decode, bz2_decode_one)

/* ---- encoding --------------------------------------------------------------------- */

static zarr_status bz2_encode_one(void *self_ptr, const struct zr_host_job *io,
                                  size_t *used, zarr_codec_exec *exec, zarr_error *err)
{
    const struct bz2_self *self = self_ptr;
    struct bz2_sides s;
    zarr_status st = ZARR_OK;
    int rc = BZ_OK;

    ZR_UNUSED(exec);
    bz2_sides_open(&s, io);
    rc = BZ2_bzCompressInit(&s.z, self->level, 0, 0);
    if (rc != BZ_OK)
        return rc == BZ_MEM_ERROR ? zr_fail_memory(err, 0) : zr_internal(err);
    do {
        bz2_sides_fill(&s);
        if (!s.z.avail_out) {
            st = zr_no_room(err, "bz2");
            break;
        }
        rc = BZ2_bzCompress(&s.z, s.src_left ? BZ_RUN : BZ_FINISH);
    } while (rc == BZ_RUN_OK || rc == BZ_FINISH_OK);
    if (st == ZARR_OK && rc != BZ_STREAM_END)
        st = zr_internal(err);
    *used = io->dst_bytes - s.dst_left - s.z.avail_out;
    (void)BZ2_bzCompressEnd(&s.z);
    return st;
}

ZR_JOBS_EACH(bz2_encode, bz2_encode_one)

const zarr_codec_impl_vtable zr_cpu_bz2 = {
    .struct_size = sizeof(zarr_codec_impl_vtable),
    .caps = ZARR_CODEC_CAN_DECODE | ZARR_CODEC_CAN_ENCODE | ZARR_CODEC_SAFE |
            ZARR_CODEC_DETERMINISTIC,
    .codec = "bz2",
    .impl = "cpu.libbz2",
    .in_kinds = ZR_HOST_KINDS,
    .out_kinds = ZR_HOST_KINDS,
    .bind = bz2_bind,
    .encode = bz2_encode,
    .decode = bz2_decode,
    .close = zr_self_free,
};
