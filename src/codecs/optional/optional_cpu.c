/*
 * codecs/optional/optional_cpu.c - `optional`: two lengths, the encoded mask, and the
 * encoded values of the elements that have one. Decoding writes the values to the start
 * of the destination and then moves them to their places, the last one first. So only the
 * mask needs memory. The lengths must add up to the whole chunk. The mask must have as
 * many elements as the chunk, and the number of values must be that of its set elements.
 * In nested types, the mask of the outer type gives the number of elements, and the
 * destination has room for that many.
 */
#include "codecs/optional/optional.h"

#include <string.h>

enum {
    OPT_HEAD = 16
};

struct opt_self {
    const zarr_allocator *alloc;
    const char *codec;
    zarr_codec_runner *mask, *data;
    size_t value_bytes;
    uint64_t n; /* elements of a chunk, or at most that many if `varies` */
    bool varies;
};

static void opt_close(void *self_ptr)
{
    struct opt_self *self = self_ptr;

    if (!self)
        return;
    zarr_codec_runner_close(self->mask);
    zarr_codec_runner_close(self->data);
    zr_free(self->alloc, self);
}

static zarr_status opt_bind(void **out, const zarr_codec_spec *spec,
                            const zarr_codec_binding *to, zarr_error *err)
{
    struct opt_self *self = zr_self_new(spec, sizeof *self, err);
    zarr_chunk_spec mask = {0}, data = {0};
    zarr_status st = ZARR_OK;

    if (!self)
        return ZARR_ERR_NO_MEMORY;
    self->codec = zarr_codec_spec_name(spec);
    ZR_TRY(zr_spec_optional_inner(spec, to->decoded, &mask, &data, err));
    self->value_bytes = (size_t)zarr_dtype_item_bytes(data.dtype);
    self->n = mask.n_bytes;
    self->varies = !to->decoded->exact;
    ZR_TRY(zarr_codec_runner_open(&self->mask, spec, "mask_codecs", &mask, err));
    ZR_TRY(zarr_codec_runner_open(&self->data, spec, "data_codecs", &data, err));
    *out = self; /* moved */
    self = NULL;
out:
    opt_close(self);
    return st;
}

/* The scratch memory, or `none` for 0 bytes, so that *out is never NULL. */
static zarr_status opt_room(const zarr_codec_exec *exec, size_t bytes, uint8_t *none,
                            uint8_t **out, zarr_error *err)
{
    if (exec->scratch.bytes < bytes)
        return zr_internal(err);
    *out = bytes ? (uint8_t *)exec->scratch.handle + exec->scratch.offset : none;
    return ZARR_OK;
}

/* Decoding needs one byte for each element. Encoding needs the packed values and the
 * mask, which together have the chunk's decoded size. */
static uint64_t opt_scratch(void *self, uint64_t n, uint64_t max_out)
{
    ZR_UNUSED(self, n);
    return max_out;
}

/* ---- decoding ------------------------------------------------------------------ */

struct opt_parts {
    const uint8_t *mask, *data;
    size_t mask_bytes, data_bytes;
};

static zarr_status opt_split(const struct opt_self *self, const struct zr_host_job *io,
                             struct opt_parts *p, zarr_error *err)
{
    uint64_t mask = 0, data = 0;
    size_t rest = 0;

    if (io->src_bytes < OPT_HEAD)
        return zr_fail(err, ZARR_ERR_CORRUPT, "%s: %zu bytes, the two lengths have 16",
                       self->codec, io->src_bytes);
    rest = io->src_bytes - OPT_HEAD;
    mask = zr_load_le64(io->src);
    data = zr_load_le64(io->src + 8);
    if (mask > rest || data != rest - mask)
        return zr_fail(err, ZARR_ERR_CORRUPT,
                       "%s: lengths of %" PRIu64 " and %" PRIu64
                       " bytes, the chunk has %zu after them",
                       self->codec, mask, data, rest);
    p->mask = io->src + OPT_HEAD;
    p->mask_bytes = (size_t)mask;
    p->data = p->mask + mask;
    p->data_bytes = (size_t)data;
    return ZARR_OK;
}

/* Decodes the mask. *n is the most elements that fit; it becomes their number. */
static zarr_status opt_decode_mask(const struct opt_self *self, const struct opt_parts *p,
                                   uint8_t *mask, size_t *n, zarr_codec_exec *exec,
                                   zarr_error *err)
{
    const zarr_memory src = zr_mem_of_host((void *)(uintptr_t)p->mask, p->mask_bytes);
    zarr_memory dst = zr_mem_of_host(mask, *n);
    zarr_status st = ZARR_OK;

    ZR_TRY(zarr_codec_runner_decode(self->mask, exec, &src, &dst, err));
    if (dst.bytes > *n || (dst.bytes != *n && !self->varies))
        st = zr_fail(err, ZARR_ERR_CORRUPT,
                     "%s: the mask has %" PRIu64 " elements, the chunk %zu", self->codec,
                     dst.bytes, *n);
    *n = (size_t)dst.bytes;
out:
    return st;
}

static zarr_status opt_decode_data(const struct opt_self *self, const struct opt_parts *p,
                                   uint8_t *to, size_t n, zarr_codec_exec *exec,
                                   zarr_error *err)
{
    const zarr_memory src = zr_mem_of_host((void *)(uintptr_t)p->data, p->data_bytes);
    zarr_memory dst = zr_mem_of_host(to, n * self->value_bytes);
    zarr_status st = ZARR_OK;

    if (n == 0 && p->data_bytes == 0)
        return ZARR_OK;
    st = zarr_codec_runner_decode(self->data, exec, &src, &dst, err);
    if (st != ZARR_OK && (exec->flags & ZARR_CODEC_JOB_NO_ROOM))
        st = zr_prefix(err, st, "%s: the mask counts %zu", self->codec, n);
    exec->flags &= ~(uint32_t)ZARR_CODEC_JOB_NO_ROOM; /* more room would not help */
    if (st == ZARR_OK && dst.bytes != n * self->value_bytes)
        st = zr_fail(err, ZARR_ERR_CORRUPT,
                     "%s: values of %" PRIu64 " bytes, the mask counts %zu of %zu",
                     self->codec, dst.bytes, n, self->value_bytes);
    return st;
}

/* Moves the packed values to their places. It begins with the last one, because no value
 * moves towards the start. */
static void opt_spread(const struct opt_self *self, const uint8_t *mask, size_t n,
                       size_t n_values, uint8_t *to)
{
    const size_t bytes = self->value_bytes, step = bytes + 1;
    size_t left = n_values;

    for (size_t i = n; i-- > 0;) {
        uint8_t *at = to + i * step;

        if (mask[i])
            memmove(at, to + --left * bytes, bytes);
        else
            memset(at, 0, bytes);
        at[bytes] = mask[i];
    }
}

static zarr_status opt_decode_one(void *self_ptr, const struct zr_host_job *io,
                                  size_t *used, zarr_codec_exec *exec, zarr_error *err)
{
    const struct opt_self *self = self_ptr;
    struct opt_parts p = {0};
    uint8_t *mask = NULL, none = 0;
    size_t n = (size_t)ZR_MIN(self->n, io->dst_bytes / (self->value_bytes + 1)), sum = 0;

    ZR_CHECK(opt_split(self, io, &p, err));
    if (n < self->n && !self->varies)
        return zr_internal(err);
    ZR_CHECK(opt_room(exec, n, &none, &mask, err));
    ZR_CHECK(opt_decode_mask(self, &p, mask, &n, exec, err));
    for (size_t i = 0; i < n; i++) {
        mask[i] = mask[i] != 0;
        sum += mask[i];
    }
    ZR_CHECK(opt_decode_data(self, &p, io->dst, sum, exec, err));
    if (n)
        opt_spread(self, mask, n, sum, io->dst);
    *used = n * (self->value_bytes + 1);
    return ZARR_OK;
}

ZR_JOBS_EACH(opt_decode, opt_decode_one)

/* ---- encoding ------------------------------------------------------------------ */

static zarr_status opt_pack(const struct opt_self *self, const uint8_t *from, size_t n,
                            uint8_t *values, uint8_t *mask, size_t *sum, zarr_error *err)
{
    const size_t bytes = self->value_bytes;

    *sum = 0;
    for (size_t i = 0; i < n; i++, from += bytes + 1) {
        mask[i] = from[bytes];
        if (mask[i] > 1)
            return zr_fail(err, ZARR_ERR_INVALID,
                           "%s: element %zu: the byte after the value is %u, must be 0 "
                           "or 1",
                           self->codec, i, mask[i]);
        if (mask[i])
            memcpy(values + (*sum)++ * bytes, from, bytes);
    }
    return ZARR_OK;
}

static zarr_status opt_encode_part(const zarr_codec_runner *runner, uint8_t *from,
                                   size_t bytes, const struct zr_host_job *io, size_t *at,
                                   zarr_codec_exec *exec, zarr_error *err)
{
    const zarr_memory src = zr_mem_of_host(from, bytes);

    return zr_runner_encode_at(runner, exec, &src, io, at, err);
}

static zarr_status opt_encode_one(void *self_ptr, const struct zr_host_job *io,
                                  size_t *used, zarr_codec_exec *exec, zarr_error *err)
{
    const struct opt_self *self = self_ptr;
    const size_t step = self->value_bytes + 1, n = io->src_bytes / step;
    uint8_t *room = NULL, *mask = NULL, none = 0;
    size_t sum = 0, at = OPT_HEAD, mask_bytes = 0;

    if (io->src_bytes % step || (self->varies ? n > self->n : n != self->n))
        return zr_internal(err);
    if (io->dst_bytes < OPT_HEAD)
        return zr_too_long(err, self->codec, io->dst_bytes);
    ZR_CHECK(opt_room(exec, io->src_bytes, &none, &room, err));
    mask = room + n * self->value_bytes;
    ZR_CHECK(opt_pack(self, io->src, n, room, mask, &sum, err));
    ZR_CHECK(opt_encode_part(self->mask, mask, n, io, &at, exec, err));
    mask_bytes = at - OPT_HEAD;
    if (sum)
        ZR_CHECK(opt_encode_part(self->data, room, sum * self->value_bytes, io, &at, exec,
                                 err));
    zr_store_le64(io->dst, mask_bytes);
    zr_store_le64(io->dst + 8, at - OPT_HEAD - mask_bytes);
    *used = at;
    return ZARR_OK;
}

ZR_JOBS_EACH(opt_encode, opt_encode_one)

#define OPT_VTABLE(name)                                                                 \
    {                                                                                    \
        .struct_size = sizeof(zarr_codec_impl_vtable),                                   \
        .caps = ZARR_CODEC_CAN_DECODE | ZARR_CODEC_CAN_ENCODE | ZARR_CODEC_SAFE |        \
                ZARR_CODEC_DETERMINISTIC,                                                \
        .codec = name, .impl = "cpu.zarrc", .in_kinds = ZR_HOST_KINDS,                   \
        .out_kinds = ZR_HOST_KINDS, .bind = opt_bind, .scratch = opt_scratch,            \
        .encode = opt_encode, .decode = opt_decode, .close = opt_close,                  \
    }
const zarr_codec_impl_vtable zr_cpu_optional = OPT_VTABLE("optional");
const zarr_codec_impl_vtable zr_cpu_zarrs_optional = OPT_VTABLE("zarrs.optional");
