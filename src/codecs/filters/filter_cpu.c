/*
 * codecs/filters/filter_cpu.c - numcodecs' filters that compute, for chunks. The v2
 * filters work on bytes, and the configuration gives the byte order of both sides. The v3
 * codecs "numcodecs.<id>" work between arrays. Their elements are in native order,
 * whatever the configuration says.
 * The arithmetic is NumPy's. If the array's type is a float, the filters compute in it
 * and first convert the configuration's numbers to it. Integers wrap. They become doubles
 * in a division, and in an operation with a number that is not spelled as an integer.
 * Thread class: plain functions.
 */
#include "codecs/filters/delta.h"

#include <math.h>
#include <string.h>

struct filter_self {
    const zarr_allocator *alloc;
    const char *name;
    struct zr_filter f;
};

static zarr_status filter_bind(void **out, const zarr_codec_spec *spec,
                               const zarr_codec_binding *to, zarr_error *err)
{
    const zarr_allocator *alloc = zarr_codec_spec_allocator(spec);
    struct filter_self *self = NULL;
    struct zr_filter f;

    ZR_CHECK(zr_filter_read(spec, to->decoded->dtype, &f, err));
    self = zr_malloc(alloc, sizeof *self);
    if (!self)
        return zr_fail_memory(err, sizeof *self);
    *self =
        (struct filter_self){.alloc = alloc, .name = zarr_codec_spec_name(spec), .f = f};
    *out = self;
    return ZARR_OK;
}

/* ---- arithmetic ------------------------------------------------------------------ */

/* Size in bytes of the float type in which NumPy computes. */
static unsigned filter_width(const struct zr_number *type)
{
    return type->kind == ZARR_KIND_FLOAT ? type->bytes : 8;
}

static void filter_to_width(unsigned width, double *v, size_t n)
{
    if (width == 8)
        return;
    if (width == 4)
        for (size_t i = 0; i < n; i++)
            v[i] = (double)(float)v[i];
    else
        for (size_t i = 0; i < n; i++)
            v[i] = zr_numpy_round(width, v[i]);
}

/* v / divide + add. Every result is rounded to a float of that width. */
static void filter_unscale(unsigned width, double divide, double add, double *v, size_t n)
{
    divide = zr_numpy_round(width, divide);
    add = zr_numpy_round(width, add);
    for (size_t i = 0; i < n; i++)
        v[i] = v[i] / divide;
    filter_to_width(width, v, n);
    for (size_t i = 0; i < n; i++)
        v[i] = v[i] + add;
    filter_to_width(width, v, n);
}

static void filter_scale(unsigned width, double subtract, double times, double *v,
                         size_t n)
{
    subtract = zr_numpy_round(width, subtract);
    times = zr_numpy_round(width, times);
    for (size_t i = 0; i < n; i++)
        v[i] = v[i] - subtract;
    filter_to_width(width, v, n);
    for (size_t i = 0; i < n; i++)
        v[i] = v[i] * times;
    filter_to_width(width, v, n);
}

static void filter_quantize(unsigned width, double quantum, double *v, size_t n)
{
    quantum = zr_numpy_round(width, quantum);
    for (size_t i = 0; i < n; i++)
        v[i] = quantum * v[i];
    filter_to_width(width, v, n);
    for (size_t i = 0; i < n; i++)
        v[i] = rint(v[i]) / quantum;
    filter_to_width(width, v, n);
}

/* INVALID if the integer does not fit the elements' type. NumPy refuses it then. */
static zarr_status filter_whole(const struct filter_self *self, const char *member,
                                const struct zr_filter_factor *factor, zarr_error *err)
{
    const struct zr_number *type = &self->f.dtype;

    if (zr_numpy_wrap(type, factor->u) == factor->u &&
        (factor->minus
             ? type->kind == ZARR_KIND_INT
             : type->kind == ZARR_KIND_UINT || factor->u <= (uint64_t)INT64_MAX))
        return ZARR_OK;
    return zr_fail(err, ZARR_ERR_INVALID,
                   "%s: %s does not fit the elements' type, so numcodecs cannot encode",
                   self->name, member);
}

/* Encodes integer elements. They stay integers until offset or scale is not an integer;
 * then they become doubles. */
static zarr_status filter_scale_whole(const struct filter_self *self, uint8_t *dst,
                                      const uint8_t *src, size_t n, zarr_error *err)
{
    const struct zr_filter *f = &self->f;
    const bool sign = f->dtype.kind == ZARR_KIND_INT;
    uint64_t w[ZR_BLOCK];
    double v[ZR_BLOCK];

    if (!f->offset.whole) {
        zr_block_real(&f->dtype, src, n, v);
        filter_scale(8, f->offset.f, f->scale.f, v, n);
        goto real;
    }
    ZR_CHECK(filter_whole(self, "offset", &f->offset, err));
    zr_block_whole(&f->dtype, src, n, w);
    for (size_t i = 0; i < n; i++)
        w[i] = zr_numpy_wrap(&f->dtype, w[i] - f->offset.u);
    if (f->scale.whole) {
        ZR_CHECK(filter_whole(self, "scale", &f->scale, err));
        for (size_t i = 0; i < n; i++)
            w[i] = zr_numpy_wrap(&f->dtype, w[i] * f->scale.u);
        zr_block_put_whole(&f->astype, dst, w, n, sign);
        return ZARR_OK;
    }
    for (size_t i = 0; i < n; i++)
        v[i] = (sign ? (double)(int64_t)w[i] : (double)w[i]) * f->scale.f;
real:
    for (size_t i = 0; i < n; i++)
        v[i] = rint(v[i]);
    zr_block_put_real(&f->astype, dst, v, n);
    return ZARR_OK;
}

/* Keeps all bits, including those of a NaN. */
static void filter_copy(const struct zr_number *from, const struct zr_number *to,
                        uint8_t *dst, const uint8_t *src, size_t n)
{
    if (from->big == to->big)
        memcpy(dst, src, n * zr_number_item_bytes(from));
    else
        zr_byteswap(dst, src, n * from->parts, from->bytes);
}

static void filter_cast(const struct zr_number *from, const struct zr_number *to,
                        uint8_t *dst, const uint8_t *src, size_t n)
{
    uint64_t w[ZR_BLOCK];
    double v[ZR_BLOCK];

    if (from->kind == to->kind && from->bytes == to->bytes) {
        filter_copy(from, to, dst, src, n);
    } else if (from->parts == 2 || to->parts == 2 ||
               (from->kind == ZARR_KIND_FLOAT && to->kind == ZARR_KIND_FLOAT &&
                ZR_MIN(from->bytes, to->bytes) == 2)) {
        for (size_t i = 0; i < n; i++)
            zr_numpy_cast(from, to, src + i * zr_number_item_bytes(from),
                          dst + i * zr_number_item_bytes(to));
    } else if (from->kind == ZARR_KIND_FLOAT) {
        zr_block_real(from, src, n, v);
        zr_block_put_real(to, dst, v, n);
    } else {
        zr_block_whole(from, src, n, w);
        zr_block_put_whole(to, dst, w, n, from->kind == ZARR_KIND_INT);
    }
}

static zarr_status filter_encode_block(const struct filter_self *self, uint8_t *dst,
                                       const uint8_t *src, size_t n, zarr_error *err)
{
    const struct zr_filter *f = &self->f;
    const unsigned width = filter_width(&f->dtype);
    double v[ZR_BLOCK];

    if (f->kind == ZR_FILTER_ASTYPE) {
        filter_cast(&f->dtype, &f->astype, dst, src, n);
        return ZARR_OK;
    }
    if (f->kind == ZR_FILTER_SCALE && f->dtype.kind != ZARR_KIND_FLOAT)
        return filter_scale_whole(self, dst, src, n, err);
    zr_block_real(&f->dtype, src, n, v);
    if (f->kind == ZR_FILTER_QUANTIZE) {
        filter_quantize(width, f->quantum, v, n);
    } else {
        filter_scale(width, f->offset.f, f->scale.f, v, n);
        for (size_t i = 0; i < n; i++)
            v[i] = rint(v[i]);
    }
    zr_block_put_real(&f->astype, dst, v, n);
    return ZARR_OK;
}

static zarr_status filter_decode_block(const struct filter_self *self, uint8_t *dst,
                                       const uint8_t *src, size_t n, zarr_error *err)
{
    const struct zr_filter *f = &self->f;
    double v[ZR_BLOCK];

    ZR_UNUSED(err);
    if (f->kind != ZR_FILTER_SCALE) {
        filter_cast(&f->astype, &f->dtype, dst, src, n);
        return ZARR_OK;
    }
    zr_block_real(&f->astype, src, n, v);
    filter_unscale(filter_width(&f->astype), f->scale.f, f->offset.f, v, n);
    zr_block_put_real(&f->dtype, dst, v, n);
    return ZARR_OK;
}

/* ---- chunks ---------------------------------------------------------------------- */

static zarr_status filter_apply(const struct filter_self *self,
                                const struct zr_host_job *io, bool encode, size_t n,
                                zarr_error *err)
{
    const struct zr_filter *f = &self->f;
    const size_t from = zr_number_item_bytes(encode ? &f->dtype : &f->astype);
    const size_t to = zr_number_item_bytes(encode ? &f->astype : &f->dtype);
    const struct zr_delta delta = {f->dtype, f->astype};
    zarr_status st = ZARR_OK;

    if (f->kind == ZR_FILTER_DELTA) {
        (f->unit.kind ? zr_delta_times : zr_delta_apply)(&delta, encode, io->dst, io->src,
                                                         n);
        return ZARR_OK;
    }
    for (size_t at = 0; at < n && st == ZARR_OK; at += ZR_BLOCK)
        st = (encode ? filter_encode_block
                     : filter_decode_block)(self, io->dst + at * to, io->src + at * from,
                                            ZR_MIN(n - at, (size_t)ZR_BLOCK), err);
    return st;
}

static zarr_status filter_one(const struct filter_self *self,
                              const struct zr_host_job *io, bool encode, size_t *used,
                              zarr_error *err)
{
    const size_t from = zr_number_item_bytes(encode ? &self->f.dtype : &self->f.astype);
    const size_t to = zr_number_item_bytes(encode ? &self->f.astype : &self->f.dtype);
    const size_t n = io->src_bytes / from;

    if (self->f.nothing && !encode) {
        if (io->src_bytes > io->dst_bytes)
            return zr_too_long(err, self->name, io->dst_bytes);
        memcpy(io->dst, io->src, io->src_bytes);
        *used = io->src_bytes;
        return ZARR_OK;
    }
    if (self->f.only_decodes)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "%s: its type cannot be encoded, only decoded", self->name);
    if (io->src_bytes % from)
        return zr_fail(err, encode ? ZARR_ERR_INVALID : ZARR_ERR_CORRUPT,
                       "%s: %zu bytes are not a whole number of elements of %zu",
                       self->name, io->src_bytes, from);
    if (n > io->dst_bytes / to)
        return zr_too_long(err, self->name, io->dst_bytes);
    *used = n * to;
    return filter_apply(self, io, encode, n, err);
}

ZR_JOBS_BOTH_WAYS(filter)

#define FILTER_VTABLE(table, id)                                                         \
    const zarr_codec_impl_vtable table = {                                               \
        .struct_size = sizeof(zarr_codec_impl_vtable),                                   \
        .caps = ZARR_CODEC_CAN_DECODE | ZARR_CODEC_CAN_ENCODE | ZARR_CODEC_SAFE |        \
                ZARR_CODEC_DETERMINISTIC,                                                \
        .codec = id,                                                                     \
        .impl = "cpu.zarrc",                                                             \
        .in_kinds = ZR_HOST_KINDS,                                                       \
        .out_kinds = ZR_HOST_KINDS,                                                      \
        .bind = filter_bind,                                                             \
        .encode = filter_encode,                                                         \
        .decode = filter_decode,                                                         \
        .close = zr_self_free,                                                           \
    }
FILTER_VTABLE(zr_cpu_delta, "delta");
FILTER_VTABLE(zr_cpu_delta_array, "numcodecs.delta");
FILTER_VTABLE(zr_cpu_fixedscaleoffset, "fixedscaleoffset");
FILTER_VTABLE(zr_cpu_fixedscaleoffset_array, "numcodecs.fixedscaleoffset");
FILTER_VTABLE(zr_cpu_quantize, "quantize");
FILTER_VTABLE(zr_cpu_quantize_array, "numcodecs.quantize");
FILTER_VTABLE(zr_cpu_astype, "astype");
FILTER_VTABLE(zr_cpu_astype_array, "numcodecs.astype");
