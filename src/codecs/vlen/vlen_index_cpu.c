/*
 * codecs/vlen/vlen_index_cpu.c - `zarrs.vlen`. A chunk has an index and the bytes of all
 * elements one after the other. Each goes through its own chain. The index has the
 * offsets of the elements as in Arrow, one more than there are elements. The length of
 * the encoded index is at the start or at the end of the chunk. Decoded elements point to
 * the bytes that the data chain decoded. These are in the thread's memory or in the
 * encoded chunk and stay valid until the next chunk is decoded. The last offset must
 * equal the number of bytes, and no offset may be less than the one before it.
 */
#include "codecs/vlen/vlen.h"

#include <string.h>

enum {
    VIDX_HEAD = 8
};

struct vidx_self {
    const zarr_allocator *alloc;
    zarr_codec_runner *index, *data;
    uint64_t n;    /* elements of a chunk, or at most that many if `varies` */
    uint64_t most; /* bytes of all elements that the limits allow */
    bool varies, wide, at_end, text;
    bool lossy; /* the index's chain is lossy: encoding decodes its result to check it */
};

static void vidx_close(void *self_ptr)
{
    struct vidx_self *self = self_ptr;

    if (!self)
        return;
    zarr_codec_runner_close(self->index);
    zarr_codec_runner_close(self->data);
    zr_free(self->alloc, self);
}

static zarr_status vidx_bind(void **out, const zarr_codec_spec *spec,
                             const zarr_codec_binding *to, zarr_error *err)
{
    const zarr_allocator *alloc = zarr_codec_spec_allocator(spec);
    const char *location = zarr_codec_spec_text(spec, "index_location");
    struct vidx_self *self = zr_calloc(alloc, 1, sizeof *self);
    zarr_chunk_spec index = {0}, data = {0};
    zarr_status st = ZARR_OK;

    if (!self)
        return zr_fail_memory(err, sizeof *self);
    self->alloc = alloc;
    self->n = to->decoded->n_bytes / sizeof(zarr_vlen);
    self->varies = !to->decoded->exact;
    self->at_end = location && zr_streq(location, "end");
    self->text = zarr_dtype_kind(to->decoded->dtype) == ZARR_KIND_STRING;
    ZR_TRY(zr_spec_vlen_inner(spec, to->decoded, &index, &data, err));
    self->most = data.n_bytes;
    self->wide = zarr_dtype_item_bytes(index.dtype) == 8;
    ZR_TRY(zarr_codec_runner_open(&self->index, spec, "index_codecs", &index, err));
    self->lossy = zr_runner_is_lossy(self->index);
    ZR_TRY(zarr_codec_runner_open(&self->data, spec, "data_codecs", &data, err));
    *out = self; /* moved */
    self = NULL;
out:
    vidx_close(self);
    return st;
}

static uint64_t vidx_offset(const struct vidx_self *self, const uint8_t *index, size_t i)
{
    uint32_t narrow = 0;
    uint64_t wide = 0;

    if (self->wide) {
        memcpy(&wide, index + 8 * i, sizeof wide);
        return wide;
    }
    memcpy(&narrow, index + 4 * i, sizeof narrow);
    return narrow;
}

/* ---- decoding ------------------------------------------------------------------ */

static zarr_status vidx_split(const struct vidx_self *self, const struct zr_host_job *io,
                              zarr_memory *index, zarr_memory *data, zarr_error *err)
{
    uint8_t *p = (uint8_t *)(uintptr_t)io->src;
    uint64_t n = 0, rest = 0;

    if (io->src_bytes < VIDX_HEAD)
        return zr_fail(err, ZARR_ERR_CORRUPT,
                       "zarrs.vlen: %zu bytes, the index's length alone has 8",
                       io->src_bytes);
    rest = io->src_bytes - VIDX_HEAD;
    n = zr_load_le64(self->at_end ? p + rest : p);
    if (n > rest)
        return zr_fail(err, ZARR_ERR_CORRUPT,
                       "zarrs.vlen: an index of %" PRIu64 " bytes, the chunk has %" PRIu64
                       " besides its length",
                       n, rest);
    *index = zr_mem_of_host(self->at_end ? p + (rest - n) : p + VIDX_HEAD, n);
    *data = zr_mem_of_host(self->at_end ? p : p + VIDX_HEAD + n, rest - n);
    return ZARR_OK;
}

static zarr_status vidx_items(const struct vidx_self *self, const uint8_t *index,
                              size_t n, const zarr_memory *data, uint8_t *to,
                              zarr_error *err)
{
    const uint8_t *bytes =
        data->bytes ? (const uint8_t *)data->handle + data->offset : NULL;
    uint64_t at = vidx_offset(self, index, 0);

    for (size_t i = 0; i < n; i++) {
        const uint64_t end = vidx_offset(self, index, i + 1);
        const zarr_vlen item = {.data = bytes ? bytes + at : NULL, .bytes = end - at};

        if (end < at || end > data->bytes)
            return zr_fail(err, ZARR_ERR_CORRUPT,
                           "zarrs.vlen: element %zu goes from byte %" PRIu64
                           " to %" PRIu64 " of %" PRIu64,
                           i, at, end, data->bytes);
        if (self->text && item.bytes &&
            !zr_utf8_is_valid((const char *)item.data, (size_t)item.bytes))
            return zr_fail(err, ZARR_ERR_CORRUPT, "zarrs.vlen: element %zu is not UTF-8",
                           i);
        memcpy(to + i * sizeof item, &item, sizeof item);
        at = end;
    }
    return ZARR_OK;
}

/* Decodes the index into room for the known number of elements, or, if it varies, for as
 * many as io->dst can take. The bound is needed because some codecs cannot tell from the
 * encoded bytes how many elements an array of any length has. */
static zarr_status vidx_decode_index(const struct vidx_self *self,
                                     const struct zr_host_job *io,
                                     const zarr_memory *index, zarr_memory *offsets,
                                     zarr_codec_exec *exec, zarr_error *err)
{
    const uint64_t n =
        self->varies ? ZR_MIN(self->n, io->dst_bytes / sizeof(zarr_vlen)) : self->n;
    const zarr_status st = zr_runner_decode_most(
        self->index, exec, index, (n + 1) * (self->wide ? 8 : 4), offsets, err);

    if (st != ZARR_OK && n < self->n && (exec->flags & ZARR_CODEC_JOB_NO_ROOM))
        return zr_too_long(err, "zarrs.vlen", io->dst_bytes);
    return st;
}

static zarr_status vidx_decode_one(void *self_ptr, const struct zr_host_job *io,
                                   size_t *used, zarr_codec_exec *exec, zarr_error *err)
{
    const struct vidx_self *self = self_ptr;
    const size_t word = self->wide ? 8 : 4;
    zarr_memory index = {0}, data = {0}, offsets = {0}, bytes = {0};
    const uint8_t *table = NULL;
    uint64_t last = 0;
    size_t n = 0;
    zarr_status st = ZARR_OK;

    ZR_TRY(vidx_split(self, io, &index, &data, err));
    ZR_TRY(vidx_decode_index(self, io, &index, &offsets, exec, err));
    if (offsets.bytes < word || offsets.bytes % word ||
        offsets.bytes / word - 1 > self->n ||
        (!self->varies && offsets.bytes / word - 1 != self->n))
        ZR_FAIL(err, ZARR_ERR_CORRUPT,
                "zarrs.vlen: an index of %" PRIu64 " bytes for %" PRIu64 " elements",
                offsets.bytes, self->n);
    n = (size_t)(offsets.bytes / word - 1);
    if (io->dst_bytes / sizeof(zarr_vlen) < n)
        return zr_too_long(err, "zarrs.vlen", io->dst_bytes);
    table = (const uint8_t *)offsets.handle + offsets.offset;
    last = vidx_offset(self, table, n);
    if (last || data.bytes)
        st = zr_runner_decode_most(self->data, exec, &data, last, &bytes, err);
    if (st == ZARR_ERR_CORRUPT && last > self->most)
        st = zr_fail_limit(err, "variable_chunk_bytes", self->most,
                           "zarrs.vlen: elements of %" PRIu64 " bytes", last);
    ZR_TRY(st);
    if (bytes.bytes != last)
        ZR_FAIL(err, ZARR_ERR_CORRUPT,
                "zarrs.vlen: %" PRIu64 " bytes, the index says %" PRIu64, bytes.bytes,
                last);
    if (vidx_offset(self, table, 0) > last)
        ZR_FAIL(err, ZARR_ERR_CORRUPT, "zarrs.vlen: the first offset is %" PRIu64,
                vidx_offset(self, table, 0));
    ZR_TRY(vidx_items(self, table, n, &bytes, io->dst, err));
    *used = n * sizeof(zarr_vlen);
out:
    exec->flags &= ~(uint32_t)ZARR_CODEC_JOB_NO_ROOM;
    return st;
}

ZR_JOBS_EACH(vidx_decode, vidx_decode_one)

/* ---- encoding ------------------------------------------------------------------ */

/* Collects the offsets, in the index's type, and after them the bytes of all elements. */
static zarr_status vidx_gather(const struct vidx_self *self, const struct zr_host_job *io,
                               zarr_codec_exec *exec, zarr_memory *index,
                               zarr_memory *data, zarr_error *err)
{
    const size_t n = io->src_bytes / sizeof(zarr_vlen), word = self->wide ? 8 : 4;
    const uint64_t most = self->wide ? UINT64_MAX : UINT32_MAX;
    uint64_t sum = 0, all = 0, at = 0;
    uint8_t *room = NULL;

    for (size_t i = 0; i < n; i++) {
        zarr_vlen item;

        memcpy(&item, io->src + i * sizeof item, sizeof item);
        if ((item.bytes && !item.data) || !zr_add(sum, item.bytes, &sum) || sum > most)
            return zr_fail(err, ZARR_ERR_INVALID,
                           "zarrs.vlen: element %zu of %" PRIu64 " bytes%s", i,
                           item.bytes,
                           item.data || !item.bytes
                               ? ": the chunk has more than its index can address"
                               : " at NULL");
        if (self->text && item.bytes && !zr_utf8_is_valid(item.data, (size_t)item.bytes))
            return zr_fail(err, ZARR_ERR_INVALID, "zarrs.vlen: element %zu is not UTF-8",
                           i);
    }
    if (!zr_add(sum, ((uint64_t)n + 1) * word, &all))
        return zr_fail(err, ZARR_ERR_LIMIT,
                       "zarrs.vlen: elements of more than 2^64 bytes");
    ZR_CHECK(zr_exec_room(exec, true, all, &room, err));
    *index = zr_mem_of_host(room, ((uint64_t)n + 1) * word);
    *data = zr_mem_of_host(room + index->bytes, sum);
    memset(room, 0, word);
    for (size_t i = 0; i < n; i++) {
        zarr_vlen item;
        uint32_t narrow = 0;

        memcpy(&item, io->src + i * sizeof item, sizeof item);
        if (item.bytes)
            memcpy(room + index->bytes + at, item.data, (size_t)item.bytes);
        at += item.bytes;
        narrow = (uint32_t)at;
        memcpy(room + (i + 1) * word, self->wide ? (void *)&at : (void *)&narrow, word);
    }
    return ZARR_OK;
}

/* INVALID if the chain is lossy and these offsets do not decode to the same values. */
static zarr_status vidx_encode_index(const struct vidx_self *self,
                                     const zarr_memory *index,
                                     const struct zr_host_job *io, size_t *at,
                                     zarr_codec_exec *exec, zarr_error *err)
{
    const size_t start = *at;
    zarr_memory encoded = {0};
    bool same = true;

    ZR_CHECK(zr_runner_encode_at(self->index, exec, index, io, at, err));
    if (!self->lossy)
        return ZARR_OK;
    encoded = zr_mem_of_host(io->dst + start, *at - start);
    ZR_CHECK(zr_runner_comes_back(self->index, exec, &encoded, index, &same, err));
    if (!same)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "zarrs.vlen: index_codecs do not keep the offsets of this chunk");
    return ZARR_OK;
}

static zarr_status vidx_encode_one(void *self_ptr, const struct zr_host_job *io,
                                   size_t *used, zarr_codec_exec *exec, zarr_error *err)
{
    const struct vidx_self *self = self_ptr;
    const uint64_t n = io->src_bytes / sizeof(zarr_vlen);
    size_t at = self->at_end ? 0 : VIDX_HEAD, start = 0;
    zarr_memory index = {0}, data = {0};

    if (io->src_bytes % sizeof(zarr_vlen) || (self->varies ? n > self->n : n != self->n))
        return zr_internal(err);
    if (io->dst_bytes < VIDX_HEAD)
        return zr_too_long(err, "zarrs.vlen", io->dst_bytes);
    ZR_CHECK(vidx_gather(self, io, exec, &index, &data, err));
    if (self->at_end && data.bytes)
        ZR_CHECK(zr_runner_encode_at(self->data, exec, &data, io, &at, err));
    start = at;
    ZR_CHECK(vidx_encode_index(self, &index, io, &at, exec, err));
    if (!self->at_end) {
        zr_store_le64(io->dst, at - start);
        if (data.bytes)
            ZR_CHECK(zr_runner_encode_at(self->data, exec, &data, io, &at, err));
    } else {
        if (io->dst_bytes - at < VIDX_HEAD)
            return zr_too_long(err, "zarrs.vlen", io->dst_bytes);
        zr_store_le64(io->dst + at, at - start);
        at += VIDX_HEAD;
    }
    *used = at;
    return ZARR_OK;
}

ZR_JOBS_EACH(vidx_encode, vidx_encode_one)

/* Encoding: the size before the nested codecs, and some more room. */
static uint64_t vidx_size_hint(void *self, const zarr_codec_job *job, int encode)
{
    uint64_t sum = 4096;

    ZR_UNUSED(self);
    for (uint64_t at = 0; encode && at + sizeof(zarr_vlen) <= job->src.bytes;
         at += sizeof(zarr_vlen)) {
        zarr_vlen item;

        if (!zr_job_peek(job, at, &item, sizeof item) || !zr_add(sum, 8, &sum) ||
            !zr_add(sum, item.bytes, &sum))
            return UINT64_MAX;
    }
    return encode ? sum : 0;
}

const zarr_codec_impl_vtable zr_cpu_zarrs_vlen = {
    .struct_size = sizeof(zarr_codec_impl_vtable),
    .caps = ZARR_CODEC_CAN_DECODE | ZARR_CODEC_CAN_ENCODE | ZARR_CODEC_SAFE |
            ZARR_CODEC_DETERMINISTIC,
    .codec = "zarrs.vlen",
    .impl = "cpu.zarrc",
    .in_kinds = ZR_HOST_KINDS,
    .out_kinds = ZR_HOST_KINDS,
    .bind = vidx_bind,
    .encode = vidx_encode,
    .decode = vidx_decode,
    .close = vidx_close,
    .size_hint = vidx_size_hint,
};
