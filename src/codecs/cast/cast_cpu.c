/*
 * codecs/cast/cast_cpu.c - cast_value and scale_offset for chunks. Errors name the
 * element that has no value in the other type. Thread class: plain functions.
 */
#include "codecs/cast/cast_loop.h"

#include <string.h>

/* ---- cast_value ------------------------------------------------------------------ */

struct cast_self {
    const zarr_allocator *alloc;
    struct zr_cast_loop encode, decode;
};

static void cast_close(void *self_ptr)
{
    struct cast_self *self = self_ptr;

    if (!self)
        return;
    zr_cast_loop_close(&self->encode);
    zr_cast_loop_close(&self->decode);
    zr_free(self->alloc, self);
}

static zarr_status cast_bind(void **out, const zarr_codec_spec *spec,
                             const zarr_codec_binding *to, zarr_error *err)
{
    const zarr_allocator *alloc = zarr_codec_spec_allocator(spec);
    struct cast_self *self = zr_calloc(alloc, 1, sizeof *self);
    zarr_status st = ZARR_OK;

    if (!self)
        return zr_fail_memory(err, sizeof *self);
    self->alloc = self->encode.cast.alloc = self->decode.cast.alloc = alloc;
    ZR_TRY(zr_cast_loop_open(&self->encode, spec, to->decoded->dtype, true, alloc, err));
    ZR_TRY(zr_cast_loop_open(&self->decode, spec, to->decoded->dtype, false, alloc, err));
    *out = self;
    self = NULL; /* moved */
out:
    cast_close(self);
    return st;
}

static zarr_status cast_one(const struct cast_self *self, const struct zr_host_job *io,
                            bool encode, size_t *used, zarr_error *err)
{
    const struct zr_cast_loop *run = encode ? &self->encode : &self->decode;
    const size_t from = run->cast.from.bytes, to = run->cast.to.bytes;
    const zarr_status bad_status = encode ? ZARR_ERR_INVALID : ZARR_ERR_CORRUPT;
    const size_t n = io->src_bytes / from;
    enum zr_cast_result result;
    size_t bad = 0;

    if (io->src_bytes % from)
        return zr_fail(err, bad_status,
                       "cast_value: %zu bytes are not a whole number of elements of %zu",
                       io->src_bytes, from);
    if (n > io->dst_bytes / to)
        return zr_too_long(err, "cast_value", io->dst_bytes);
    result = zr_cast_all(run, io->dst, io->src, n, &bad);
    if (result != ZR_CAST_OK)
        return zr_fail(err, bad_status, "cast_value: element %zu of the chunk is %s", bad,
                       zr_cast_reason(result));
    *used = n * to;
    return ZARR_OK;
}

ZR_JOBS_BOTH_WAYS(cast)

const zarr_codec_impl_vtable zr_cpu_cast_value = {
    .struct_size = sizeof(zarr_codec_impl_vtable),
    .caps = ZARR_CODEC_CAN_DECODE | ZARR_CODEC_CAN_ENCODE | ZARR_CODEC_SAFE |
            ZARR_CODEC_DETERMINISTIC,
    .codec = "cast_value",
    .impl = "cpu.zarrc",
    .in_kinds = ZR_HOST_KINDS,
    .out_kinds = ZR_HOST_KINDS,
    .bind = cast_bind,
    .encode = cast_encode,
    .decode = cast_decode,
    .close = cast_close,
};

/* ---- scale_offset ------------------------------------------------------ */

struct scale_self {
    const zarr_allocator *alloc;
    struct zr_affine affine;
};

static zarr_status scale_bind(void **out, const zarr_codec_spec *spec,
                              const zarr_codec_binding *to, zarr_error *err)
{
    struct scale_self *self = zr_self_new(spec, sizeof *self, err);
    zarr_status st = ZARR_OK;

    if (!self)
        return ZARR_ERR_NO_MEMORY;
    ZR_TRY(zr_affine_open(&self->affine, spec, to->decoded->dtype, err));
    *out = self;
    self = NULL; /* moved */
out:
    zr_self_free(self);
    return st;
}

#define SCALE_REAL(type)                                                                 \
    static void scale_##type(const struct zr_affine *a, bool encode, uint8_t *dst,       \
                             const uint8_t *src, size_t n)                               \
    {                                                                                    \
        const type offset = (type)a->offset, scale = (type)a->scale;                     \
        if (encode)                                                                      \
            for (size_t i = 0; i < n; i++) {                                             \
                type v;                                                                  \
                memcpy(&v, src + i * sizeof v, sizeof v);                                \
                v = (v - offset) * scale;                                                \
                memcpy(dst + i * sizeof v, &v, sizeof v);                                \
            }                                                                            \
        else                                                                             \
            for (size_t i = 0; i < n; i++) {                                             \
                type v;                                                                  \
                memcpy(&v, src + i * sizeof v, sizeof v);                                \
                v = v / scale + offset;                                                  \
                memcpy(dst + i * sizeof v, &v, sizeof v);                                \
            }                                                                            \
    }
SCALE_REAL(float)
SCALE_REAL(double)

/* Returns n, or the index of the first element without an exact result. */
static size_t scale_whole(const struct zr_affine *a, bool encode, uint8_t *dst,
                          const uint8_t *src, size_t n)
{
    const struct zr_number *type = &a->number;
    const bool sign = type->kind == ZARR_KIND_INT;
    uint64_t v[ZR_BLOCK];
    int64_t whole = 0;

    for (size_t at = 0; at < n; at += ZR_BLOCK) {
        const size_t m = ZR_MIN(n - at, (size_t)ZR_BLOCK);

        zr_block_whole(type, src + at * type->bytes, m, v);
        for (size_t i = 0; i < m; i++) {
            if (sign ? !zr_affine_apply_signed(a, encode, (int64_t)v[i], &whole)
                     : !zr_affine_apply_unsigned(a, encode, v[i], &v[i]))
                return at + i;
            if (sign)
                v[i] = (uint64_t)whole;
        }
        zr_block_put_whole(type, dst + at * type->bytes, v, m, sign);
    }
    return n;
}

static size_t scale_any(const struct zr_affine *a, bool encode, uint8_t *dst,
                        const uint8_t *src, size_t n)
{
    const size_t bytes = a->number.bytes;

    for (size_t i = 0; i < n; i++) {
        uint64_t bits = 0;

        if (!zr_affine_one(a, encode, zr_number_bits(&a->number, src + i * bytes), &bits))
            return i;
        zr_number_put(&a->number, dst + i * bytes, bits);
    }
    return n;
}

static zarr_status scale_one(const struct scale_self *self, const struct zr_host_job *io,
                             bool encode, size_t *used, zarr_error *err)
{
    const struct zr_affine *a = &self->affine;
    const zarr_status bad_status = encode ? ZARR_ERR_INVALID : ZARR_ERR_CORRUPT;
    const size_t bytes = a->number.bytes, n = io->src_bytes / bytes;
    size_t done = n;

    if (io->src_bytes % bytes)
        return zr_fail(
            err, bad_status,
            "scale_offset: %zu bytes are not a whole number of elements of %zu",
            io->src_bytes, bytes);
    if (io->src_bytes > io->dst_bytes)
        return zr_too_long(err, "scale_offset", io->dst_bytes);
    if (a->number.kind == ZARR_KIND_FLOAT && bytes == 4)
        scale_float(a, encode, io->dst, io->src, n);
    else if (a->number.kind == ZARR_KIND_FLOAT && bytes == 8)
        scale_double(a, encode, io->dst, io->src, n);
    else
        done = (a->number.kind != ZARR_KIND_FLOAT && a->number.bits >= 8
                    ? scale_whole
                    : scale_any)(a, encode, io->dst, io->src, n);
    if (done < n)
        return zr_fail(err, bad_status,
                       "scale_offset: element %zu of the chunk has no exact result in "
                       "its own type",
                       done);
    *used = io->src_bytes;
    return ZARR_OK;
}

ZR_JOBS_BOTH_WAYS(scale)

const zarr_codec_impl_vtable zr_cpu_scale_offset = {
    .struct_size = sizeof(zarr_codec_impl_vtable),
    .caps = ZARR_CODEC_CAN_DECODE | ZARR_CODEC_CAN_ENCODE | ZARR_CODEC_SAFE |
            ZARR_CODEC_DETERMINISTIC,
    .codec = "scale_offset",
    .impl = "cpu.zarrc",
    .in_kinds = ZR_HOST_KINDS,
    .out_kinds = ZR_HOST_KINDS,
    .bind = scale_bind,
    .encode = scale_encode,
    .decode = scale_decode,
    .close = zr_self_free,
};
