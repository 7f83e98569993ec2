/*
 * codecs/cast/round_cpu.c - bitround: rounds to a number of bits, half to even, with an
 * addition and a mask. Floats keep bits of their fraction as in numcodecs, but unlike
 * there a NaN stays a NaN. Integers keep bits from the highest set bit on as in zarrs,
 * and do not overflow. Decoding changes nothing. Placement leaves it out; runners get a
 * copy. Thread class: plain functions.
 */
#include "codecs/cast/cast.h"

#include <string.h>

struct round_self {
    const zarr_allocator *alloc;
    struct zr_round what;
    uint32_t keep;
    bool swap; /* elements in memory are not in this machine's byte order */
};

static zarr_status round_bind(void **out, const zarr_codec_spec *spec,
                              const zarr_codec_binding *to, zarr_error *err)
{
    const zarr_allocator *alloc = zarr_codec_spec_allocator(spec);
    const uint32_t unit = to->decoded->item_bytes_hint;
    struct zr_round what = {.parts = 1, .real = true};
    struct round_self *self = NULL;
    int64_t keep = 0;

    (void)zarr_codec_spec_i64(spec, "keepbits", &keep);
    if (to->decoded->dtype) {
        if (zr_round_is_numcodecs(spec)) {
            const zarr_status st =
                zr_round_numcodecs(spec, to->decoded->dtype, ZARR_ERR_UNSUPPORTED, err);
            if (st != ZARR_OK)
                return st;
        }
        if (!zr_round_from_dtype(to->decoded->dtype, &what))
            return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                           "bitround: elements of type %s cannot be encoded",
                           zr_dtype_label(to->decoded->dtype));
    } else { /* v2 */
        if (unit != 2 && unit != 4 && unit != 8)
            return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                           "bitround: elements of %" PRIu32 " bytes cannot be encoded",
                           unit);
        what.unit_bytes = (uint8_t)unit;
        what.fraction_bits = unit == 2 ? 10 : unit == 4 ? 23 : 52;
    }
    self = zr_malloc(alloc, sizeof *self);
    if (!self)
        return zr_fail_memory(err, sizeof *self);
    *self = (struct round_self){.alloc = alloc,
                                .what = what,
                                .keep = (uint32_t)keep,
                                .swap = !to->decoded->dtype && !ZR_HOST_IS_LITTLE};
    *out = self;
    return ZARR_OK;
}

/* `drop` is the number of fraction bits to drop, at least 1. `infinity` has the bits of
 * infinity without the sign. */
#define ROUND_LOOPS(type, width)                                                         \
    static void round_float_##width(uint8_t *dst, const uint8_t *src, size_t n,          \
                                    unsigned drop, unsigned fraction_bits)               \
    {                                                                                    \
        const type half = (type)((((type)1) << (drop - 1)) - 1);                         \
        const type mask = (type)((type) ~(type)0 << drop);                               \
        const type most = (type) ~(type)0 >> 1;                                          \
        const type infinity = (type)(most >> fraction_bits << fraction_bits);            \
        for (size_t i = 0; i < n; i++) {                                                 \
            type v, r;                                                                   \
            memcpy(&v, src + i * sizeof v, sizeof v);                                    \
            r = (type)((type)(v + half + (type)(v >> drop & 1)) & mask);                 \
            r = (v & most) > infinity && (r & most) <= infinity ? v : r;                 \
            memcpy(dst + i * sizeof r, &r, sizeof r);                                    \
        }                                                                                \
    }                                                                                    \
    static void round_whole_##width(uint8_t *dst, const uint8_t *src, size_t n,          \
                                    unsigned keep)                                       \
    {                                                                                    \
        for (size_t i = 0; i < n; i++) {                                                 \
            unsigned length = 0;                                                         \
            type v;                                                                      \
            memcpy(&v, src + i * sizeof v, sizeof v);                                    \
            for (unsigned step = width / 2; step; step /= 2)                             \
                length += (type)(v >> length) >> step ? step : 0;                        \
            length += v != 0;                                                            \
            if (length > keep) {                                                         \
                const unsigned drop = length - keep;                                     \
                const type half = (type)((((type)1) << (drop - 1)) - 1);                 \
                const type odd = (type)(drop < width ? v >> drop & 1 : 0);               \
                const type mask = (type)(drop < width ? (type) ~(type)0 << drop : 0);    \
                const type add = (type)(half + odd);                                     \
                const type sum = (type)(v + add);                                        \
                v = (type)((sum < v ? (type) ~(type)0 : sum) & mask);                    \
            }                                                                            \
            memcpy(dst + i * sizeof v, &v, sizeof v);                                    \
        }                                                                                \
    }
ROUND_LOOPS(uint8_t, 8)
ROUND_LOOPS(uint16_t, 16)
ROUND_LOOPS(uint32_t, 32)
ROUND_LOOPS(uint64_t, 64)

static void round_apply(const struct round_self *self, uint8_t *dst, const uint8_t *src,
                        size_t n)
{
    const unsigned fraction = self->what.fraction_bits, bytes = self->what.unit_bytes;

    if (!self->what.real) {
        (bytes == 1   ? round_whole_8
         : bytes == 2 ? round_whole_16
         : bytes == 4 ? round_whole_32
                      : round_whole_64)(dst, src, n, self->keep);
        return;
    }
    if (self->keep >= fraction) {
        if (dst != src)
            memcpy(dst, src, n * bytes);
        return;
    }
    (bytes == 1   ? round_float_8
     : bytes == 2 ? round_float_16
     : bytes == 4 ? round_float_32
                  : round_float_64)(dst, src, n, fraction - self->keep, fraction);
}

static zarr_status round_encode_one(void *self, const struct zr_host_job *io,
                                    size_t *used, zarr_codec_exec *exec, zarr_error *err)
{
    const struct round_self *s = self;

    ZR_UNUSED(exec);
    if (io->src_bytes % s->what.unit_bytes)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "bitround: %zu bytes are not a whole number of elements of %d",
                       io->src_bytes, s->what.unit_bytes);
    if (io->dst_bytes < io->src_bytes)
        return zr_no_room(err, "bitround");
    if (s->swap)
        zr_byteswap(io->dst, io->src, io->src_bytes / s->what.unit_bytes,
                    s->what.unit_bytes);
    round_apply(s, io->dst, s->swap ? io->dst : io->src,
                io->src_bytes / s->what.unit_bytes);
    if (s->swap)
        zr_byteswap(io->dst, io->dst, io->src_bytes / s->what.unit_bytes,
                    s->what.unit_bytes);
    *used = io->src_bytes;
    return ZARR_OK;
}

ZR_JOBS_EACH(round_encode, round_encode_one)

static zarr_status round_decode_one(void *self, const struct zr_host_job *io,
                                    size_t *used, zarr_codec_exec *exec, zarr_error *err)
{
    ZR_UNUSED(self, exec);
    if (io->dst_bytes < io->src_bytes)
        return zr_too_long(err, "bitround", io->dst_bytes);
    memcpy(io->dst, io->src, io->src_bytes);
    *used = io->src_bytes;
    return ZARR_OK;
}

ZR_JOBS_EACH(round_decode, round_decode_one)

const zarr_codec_impl_vtable zr_cpu_bitround = {
    .struct_size = sizeof(zarr_codec_impl_vtable),
    .caps = ZARR_CODEC_CAN_DECODE | ZARR_CODEC_CAN_ENCODE | ZARR_CODEC_SAFE |
            ZARR_CODEC_DETERMINISTIC | ZARR_CODEC_FOR_V2 | ZARR_CODEC_FOR_V3,
    .codec = "bitround",
    .impl = "cpu.zarrc",
    .in_kinds = ZR_HOST_KINDS,
    .out_kinds = ZR_HOST_KINDS,
    .bind = round_bind,
    .encode = round_encode,
    .decode = round_decode,
    .close = zr_self_free,
};
