/*
 * impl/cpu_vlen.c - vlen-utf8, vlen-bytes, zarrs.vlen_v2: u32 count, then u32 length and
 * bytes for each element, little-endian. Decoding copies nothing: elements point into the
 * encoded bytes, which whoever runs the program keeps until he has moved them. Everything
 * a stream says is held against what is there: the count against the chunk, lengths
 * against the rest, text against UTF-8, and nothing may be left over.
 */
#include "impl/impl_int.h"

#include <string.h>

enum {
    VLEN_WORD = 4
};

struct vlen_self {
    const zarr_allocator *alloc;
    const char *codec;
    uint64_t n; /* elements of a chunk; varies: at most */
    bool varies, text;
};

static zarr_status vlen_bind(void **out, const zarr_codec_spec *spec,
                             const zarr_chunk_spec *decoded, zarr_error *err)
{
    const zarr_allocator *alloc = zarr_codec_spec_allocator(spec);
    struct vlen_self *self = zr_calloc(alloc, 1, sizeof *self);

    if (!self)
        return zr_fail_memory(err, sizeof *self);
    self->alloc = alloc;
    self->codec = zarr_codec_spec_name(spec);
    self->n = decoded->n_bytes / sizeof(zarr_vlen);
    self->varies = !decoded->exact;
    self->text = zarr_dtype_kind(decoded->dtype) == ZARR_KIND_STRING;
    *out = self;
    return ZARR_OK;
}

static void vlen_close(void *self)
{
    if (self)
        zr_free(((struct vlen_self *)self)->alloc, self);
}

static zarr_status vlen_damaged(const struct vlen_self *self, const char *what,
                                uint64_t i, zarr_error *err)
{
    return zr_fail(err, ZARR_ERR_CORRUPT, "%s: element %" PRIu64 " %s", self->codec, i,
                   what);
}

static zarr_status vlen_decode_one(void *self_ptr, const struct zr_span *io, size_t *used,
                                   zarr_codec_exec *exec, zarr_error *err)
{
    const struct vlen_self *self = self_ptr;
    const uint8_t *p = io->src, *end = io->src + io->src_bytes;
    uint64_t n = self->n;

    ZR_UNUSED(exec);
    if (io->src_bytes < VLEN_WORD)
        return zr_fail(err, ZARR_ERR_CORRUPT, "%s: %zu bytes, the count alone has 4",
                       self->codec, io->src_bytes);
    if (self->varies && zr_load_le32(p) < n)
        n = zr_load_le32(p);
    if (zr_load_le32(p) != n)
        return zr_fail(err, ZARR_ERR_CORRUPT,
                       "%s: %" PRIu32 " elements, the chunk has %" PRIu64, self->codec,
                       zr_load_le32(p), n);
    if (io->dst_bytes / sizeof(zarr_vlen) < n)
        return self->varies ? zr_too_long(err, self->codec, io->dst_bytes)
                            : zr_no_room(err, self->codec);
    p += VLEN_WORD;
    for (uint64_t i = 0; i < n; i++) {
        zarr_vlen item = {0};

        if (end - p < VLEN_WORD)
            return vlen_damaged(self, "is missing: the chunk is short", i, err);
        item.bytes = zr_load_le32(p);
        p += VLEN_WORD;
        if (item.bytes > (uint64_t)(end - p))
            return vlen_damaged(self, "ends behind the chunk", i, err);
        item.data = p;
        if (self->text && !zr_utf8_valid((const char *)p, (size_t)item.bytes))
            return vlen_damaged(self, "is no UTF-8", i, err);
        p += item.bytes;
        memcpy(io->dst + i * sizeof item, &item, sizeof item);
    }
    if (p != end)
        return zr_fail(err, ZARR_ERR_CORRUPT, "%s: %zu bytes behind the last element",
                       self->codec, (size_t)(end - p));
    *used = (size_t)n * sizeof(zarr_vlen);
    return ZARR_OK;
}

static zarr_status vlen_decode(void *self, zarr_codec_job *jobs, uint64_t n,
                               zarr_codec_exec *exec, zarr_error *err)
{
    return zr_jobs_each(vlen_decode_one, self, jobs, n, exec, err);
}

static zarr_status vlen_encode_one(void *self_ptr, const struct zr_span *io, size_t *used,
                                   zarr_codec_exec *exec, zarr_error *err)
{
    const struct vlen_self *self = self_ptr;
    const uint64_t n = io->src_bytes / sizeof(zarr_vlen);
    uint8_t *p = io->dst, *end = io->dst + io->dst_bytes;

    ZR_UNUSED(exec);
    if (self->varies ? n > self->n : n != self->n)
        return zr_internal(err);
    if (end - p < VLEN_WORD)
        return zr_too_long(err, self->codec, io->dst_bytes);
    zr_store_le32(p, (uint32_t)n);
    p += VLEN_WORD;
    for (uint64_t i = 0; i < n; i++) {
        zarr_vlen item;

        memcpy(&item, io->src + i * sizeof item, sizeof item);
        if (item.bytes > UINT32_MAX || (item.bytes && !item.data))
            return zr_fail(err, ZARR_ERR_INVALID,
                           "%s: element %" PRIu64 " of %" PRIu64 " bytes%s", self->codec,
                           i, item.bytes,
                           item.data ? ", at most 2^32 - 1 can be said" : " at NULL");
        if (self->text && item.bytes && !zr_utf8_valid(item.data, (size_t)item.bytes))
            return zr_fail(err, ZARR_ERR_INVALID, "%s: element %" PRIu64 " is no UTF-8",
                           self->codec, i);
        if ((uint64_t)(end - p) < VLEN_WORD ||
            (uint64_t)(end - p) - VLEN_WORD < item.bytes)
            return zr_too_long(err, self->codec, io->dst_bytes);
        zr_store_le32(p, (uint32_t)item.bytes);
        if (item.bytes)
            memcpy(p + VLEN_WORD, item.data, (size_t)item.bytes);
        p += VLEN_WORD + item.bytes;
    }
    *used = (size_t)(p - io->dst);
    return ZARR_OK;
}

static zarr_status vlen_encode(void *self, zarr_codec_job *jobs, uint64_t n,
                               zarr_codec_exec *exec, zarr_error *err)
{
    return zr_jobs_each(vlen_encode_one, self, jobs, n, exec, err);
}

/* The exact size, before anything is written. */
static uint64_t vlen_size_hint(void *self, const zarr_codec_job *job, int encode)
{
    uint64_t sum = VLEN_WORD;

    ZR_UNUSED(self);
    for (uint64_t at = 0; encode && at + sizeof(zarr_vlen) <= job->src.bytes;
         at += sizeof(zarr_vlen)) {
        zarr_vlen item;

        if (!zr_job_peek(job, at, &item, sizeof item) ||
            !zr_add_u64(sum, VLEN_WORD, &sum) || !zr_add_u64(sum, item.bytes, &sum))
            return UINT64_MAX;
    }
    return encode ? sum : 0;
}

#define VLEN_VTABLE(name)                                                                \
    {                                                                                    \
        .struct_size = sizeof(zarr_codec_impl_vtable),                                   \
        .caps = ZARR_CODEC_CAN_DECODE | ZARR_CODEC_CAN_ENCODE | ZARR_CODEC_SAFE |        \
                ZARR_CODEC_DETERMINISTIC,                                                \
        .codec = name, .impl = "cpu.zarrc", .in_kinds = ZR_HOST_KINDS,                   \
        .out_kinds = ZR_HOST_KINDS, .bind = vlen_bind, .encode = vlen_encode,            \
        .decode = vlen_decode, .close = vlen_close, .size_hint = vlen_size_hint,         \
    }
const zarr_codec_impl_vtable zr_cpu_vlen_utf8 = VLEN_VTABLE("vlen-utf8");
const zarr_codec_impl_vtable zr_cpu_vlen_bytes = VLEN_VTABLE("vlen-bytes");
const zarr_codec_impl_vtable zr_cpu_vlen_v2 = VLEN_VTABLE("zarrs.vlen_v2");
