/*
 * codecs/packbits/packbits_cpu.c - two codecs. `packbits` stores the configured bits of
 * all components one after the other, lowest bit first. Its loops fill and empty a word
 * byte by byte. numcodecs' packing of bools stores the highest bit first; it is a filter
 * on bytes in v2 and a codec between arrays in v3. A count of padding bits is CORRUPT if
 * it differs from the one that metadata gives. Decoders ignore the padding bits.
 */
#include "codecs/packbits/packbits.h"

#include <string.h>

struct pack_self {
    const zarr_allocator *alloc;
    struct zr_packbits p;
    size_t n_items; /* components */
    bool varies;    /* chunks have any number of elements, up to n_items components */
    bool bools;     /* numcodecs' packing of bools */
};

/* ---- components of native order ------------------------------------------------- */

static uint64_t pack_load(const uint8_t *at, uint32_t bytes)
{
    uint8_t one = 0;
    uint16_t two = 0;
    uint32_t four = 0;
    uint64_t eight = 0;

    switch (bytes) {
    case 1:
        memcpy(&one, at, 1);
        return one;
    case 2:
        memcpy(&two, at, 2);
        return two;
    case 4:
        memcpy(&four, at, 4);
        return four;
    default:
        memcpy(&eight, at, 8);
        return eight;
    }
}

static void pack_store(uint8_t *at, uint32_t bytes, uint64_t v)
{
    const uint8_t one = (uint8_t)v;
    const uint16_t two = (uint16_t)v;
    const uint32_t four = (uint32_t)v;

    switch (bytes) {
    case 1:
        memcpy(at, &one, 1);
        break;
    case 2:
        memcpy(at, &two, 2);
        break;
    case 4:
        memcpy(at, &four, 4);
        break;
    default:
        memcpy(at, &v, 8);
        break;
    }
}

static uint64_t pack_mask(uint32_t bits)
{
    return bits < 64 ? (UINT64_C(1) << bits) - 1 : UINT64_MAX;
}

/* ---- packbits --------------------------------------------------------------------- */

static zarr_status pack_bind(void **out, const zarr_codec_spec *spec,
                             const zarr_codec_binding *to, zarr_error *err)
{
    const zarr_allocator *alloc = zarr_codec_spec_allocator(spec);
    struct pack_self *self = NULL;
    zarr_status st = ZARR_OK;

    self = zr_calloc(alloc, 1, sizeof *self);
    if (!self)
        return zr_fail_memory(err, sizeof *self);
    self->alloc = alloc;
    self->p = (struct zr_packbits){.components = 1, .bits = 1, .bytes = 1, .kept = 1};
    self->bools =
        !to->decoded->dtype || !zr_streq(zarr_codec_spec_name(spec), "packbits");
    if (!self->bools)
        ZR_TRY(zr_spec_packbits(spec, to->decoded->dtype, &self->p, err));
    self->n_items = (size_t)(to->decoded->n_bytes / self->p.bytes);
    self->varies = to->decoded->dtype && !to->decoded->exact && !self->bools;
    *out = self; /* moved */
    self = NULL;
out:
    zr_self_free(self);
    return st;
}

struct pack_sizes {
    size_t packed, whole; /* bytes without and with the count of padding bits */
    uint8_t padding;
};

/* The encoded size of n components. n is at most n_items. */
static struct pack_sizes pack_measure(const struct pack_self *self, size_t n)
{
    const uint64_t bits = (uint64_t)n * self->p.kept; /* resolve() checks the product */
    const size_t packed = (size_t)(bits / 8 + (bits % 8 != 0));

    return (struct pack_sizes){.packed = packed,
                               .whole = packed +
                                        (self->p.padding_first || self->p.padding_last),
                               .padding = (uint8_t)((8 - bits % 8) % 8)};
}

static zarr_status pack_wrong_padding(zarr_error *err, unsigned says, unsigned is)
{
    return zr_fail(err, ZARR_ERR_CORRUPT,
                   "packbits: the chunk counts %u padding bits, it has %u", says, is);
}

static void pack_bits(const struct zr_packbits *p, const uint8_t *from, size_t n,
                      uint8_t *to)
{
    const uint64_t mask = pack_mask(p->kept);
    uint64_t word = 0;
    uint32_t held = 0; /* < 8 */

    for (size_t i = 0; i < n; i++, from += p->bytes) {
        uint64_t v = pack_load(from, p->bytes);
        uint32_t left = p->kept;

        v = p->boolean ? v != 0 : v >> p->first & mask;
        while (left > 0) { /* 7 held bits and 32 new ones fit the word */
            const uint32_t take = ZR_MIN(left, 32U);

            word |= (v & pack_mask(take)) << held;
            held += take;
            v >>= take;
            left -= take;
            for (; held >= 8; held -= 8, word >>= 8)
                *to++ = (uint8_t)word;
        }
    }
    if (held)
        *to = (uint8_t)word;
}

static void unpack_bits(const struct zr_packbits *p, const uint8_t *from, uint8_t *to,
                        size_t n)
{
    const uint32_t last = p->first + p->kept - 1;
    const uint64_t sign = UINT64_C(1) << last, above = ~pack_mask(last + 1);
    uint64_t word = 0;
    uint32_t held = 0;

    for (size_t i = 0; i < n; i++, to += p->bytes) {
        uint64_t v = 0;
        uint32_t have = 0;

        while (have < p->kept) {
            const uint32_t take = ZR_MIN(p->kept - have, 32U);

            for (; held < take; held += 8)
                word |= (uint64_t)*from++ << held;
            v |= (word & pack_mask(take)) << have;
            word >>= take;
            held -= take;
            have += take;
        }
        v <<= p->first;
        if (p->is_signed && (v & sign))
            v |= above;
        pack_store(to, p->bytes, v);
    }
}

/* The number of components in a chunk of any length, in whole elements. It follows from
 * the count of padding bits. Without that count it is limited by the encoded bits and by
 * the room in io->dst. */
static size_t pack_count(const struct pack_self *self, const struct zr_host_job *io)
{
    const bool counted = self->p.padding_first || self->p.padding_last;
    const size_t whole = io->src_bytes - (counted && io->src_bytes);
    const uint64_t most = (uint64_t)ZR_MIN(whole, SIZE_MAX / 8) * 8 / self->p.kept;
    uint64_t n = ZR_MIN(most, io->dst_bytes / self->p.bytes), over = 0;

    if (counted && io->src_bytes) {
        over = io->src[self->p.padding_first ? 0 : whole];
        n = over < 8 && whole ? ((uint64_t)whole * 8 - over) / self->p.kept : 0;
    }
    n -= n % self->p.components;
    return (size_t)ZR_MIN(n, (uint64_t)self->n_items);
}

static zarr_status pack_decode_one(void *self_ptr, const struct zr_host_job *io,
                                   size_t *used, zarr_codec_exec *exec, zarr_error *err)
{
    const struct pack_self *self = self_ptr;
    const size_t n = self->varies ? pack_count(self, io) : self->n_items;
    const struct pack_sizes size = pack_measure(self, n);
    const uint8_t *from = io->src + self->p.padding_first;

    ZR_UNUSED(exec);
    if (self->varies && io->src_bytes > size.whole && n < self->n_items &&
        n == io->dst_bytes / self->p.bytes)
        return zr_too_long(err, "packbits", io->dst_bytes);
    if (io->src_bytes != size.whole)
        return zr_fail(err, ZARR_ERR_CORRUPT, "packbits: %zu bytes, expected %zu",
                       io->src_bytes, size.whole);
    if (self->p.padding_first && io->src[0] != size.padding)
        return pack_wrong_padding(err, io->src[0], size.padding);
    if (self->p.padding_last && io->src[size.packed] != size.padding)
        return pack_wrong_padding(err, io->src[size.packed], size.padding);
    if (io->dst_bytes / self->p.bytes < n)
        return self->varies ? zr_too_long(err, "packbits", io->dst_bytes)
                            : zr_no_room(err, "packbits");
    unpack_bits(&self->p, from, io->dst, n);
    *used = n * self->p.bytes;
    return ZARR_OK;
}

static zarr_status pack_encode_one(void *self_ptr, const struct zr_host_job *io,
                                   size_t *used, zarr_codec_exec *exec, zarr_error *err)
{
    const struct pack_self *self = self_ptr;
    const size_t n = io->src_bytes / self->p.bytes;
    struct pack_sizes size = {0};

    ZR_UNUSED(exec);
    if (self->varies ? n > self->n_items : n != self->n_items)
        return zr_internal(err);
    size = pack_measure(self, n);
    if (io->dst_bytes < size.whole)
        return self->varies ? zr_too_long(err, "packbits", io->dst_bytes)
                            : zr_no_room(err, "packbits");
    if (self->p.padding_first)
        io->dst[0] = size.padding;
    if (self->p.padding_last)
        io->dst[size.packed] = size.padding;
    pack_bits(&self->p, io->src, n, io->dst + self->p.padding_first);
    *used = size.whole;
    return ZARR_OK;
}

/* ---- numcodecs' packing of bools -------------------------------------------------- */

static zarr_status bools_decode_one(void *self_ptr, const struct zr_host_job *io,
                                    size_t *used, zarr_codec_exec *exec, zarr_error *err)
{
    const struct pack_self *self = self_ptr;
    const struct pack_sizes size = pack_measure(self, self->n_items);

    ZR_UNUSED(exec);
    if (io->src_bytes != size.packed + 1)
        return zr_fail(err, ZARR_ERR_CORRUPT, "packbits: %zu bytes, expected %zu",
                       io->src_bytes, size.packed + 1);
    if (io->src[0] != size.padding)
        return pack_wrong_padding(err, io->src[0], size.padding);
    if (io->dst_bytes < self->n_items)
        return zr_no_room(err, "packbits");
    for (size_t i = 0; i < self->n_items; i++)
        io->dst[i] = io->src[1 + i / 8] >> (7 - i % 8) & 1;
    *used = self->n_items;
    return ZARR_OK;
}

static zarr_status bools_encode_one(void *self_ptr, const struct zr_host_job *io,
                                    size_t *used, zarr_codec_exec *exec, zarr_error *err)
{
    const struct pack_self *self = self_ptr;
    const struct pack_sizes size = pack_measure(self, self->n_items);

    ZR_UNUSED(exec);
    if (io->src_bytes != self->n_items)
        return zr_internal(err);
    if (io->dst_bytes < size.packed + 1)
        return zr_no_room(err, "packbits");
    io->dst[0] = size.padding;
    for (size_t k = 0; k < size.packed; k++) {
        const size_t n = ZR_MIN(self->n_items - 8 * k, (size_t)8);
        unsigned byte = 0;

        for (size_t i = 0; i < n; i++)
            byte |= (io->src[8 * k + i] ? 0x80U : 0) >> i;
        io->dst[1 + k] = (uint8_t)byte;
    }
    *used = size.packed + 1;
    return ZARR_OK;
}

/* ---- both codecs ------------------------------------------------------------------ */

static zarr_status pack_decode(void *self, zarr_codec_job *jobs, uint64_t n,
                               zarr_codec_exec *exec, zarr_error *err)
{
    const struct pack_self *s = self;

    return zr_jobs_each(s->bools ? bools_decode_one : pack_decode_one, self, jobs, n,
                        exec, err);
}

static zarr_status pack_encode(void *self, zarr_codec_job *jobs, uint64_t n,
                               zarr_codec_exec *exec, zarr_error *err)
{
    const struct pack_self *s = self;

    return zr_jobs_each(s->bools ? bools_encode_one : pack_encode_one, self, jobs, n,
                        exec, err);
}

/* The largest size that the encoded bits can decode to. In a smaller buffer, the decoder
 * of a chunk of any length could not tell missing room from padding bits. */
static uint64_t pack_size_hint(void *self_ptr, const zarr_codec_job *job, int encode)
{
    const struct pack_self *self = self_ptr;
    const uint64_t items = ZR_MIN(job->src.bytes, UINT64_MAX / 8) * 8 / self->p.kept;

    return encode || !self->varies
               ? 0
               : ZR_MIN(items, (uint64_t)self->n_items) * self->p.bytes;
}

#define PACK_VTABLE(name, more)                                                          \
    {                                                                                    \
        .struct_size = sizeof(zarr_codec_impl_vtable),                                   \
        .caps = ZARR_CODEC_CAN_DECODE | ZARR_CODEC_CAN_ENCODE | ZARR_CODEC_SAFE |        \
                ZARR_CODEC_DETERMINISTIC | (more),                                       \
        .codec = name, .impl = "cpu.zarrc", .in_kinds = ZR_HOST_KINDS,                   \
        .out_kinds = ZR_HOST_KINDS, .bind = pack_bind, .encode = pack_encode,            \
        .decode = pack_decode, .close = zr_self_free, .size_hint = pack_size_hint,       \
    }
const zarr_codec_impl_vtable zr_cpu_packbits =
    PACK_VTABLE("packbits", ZARR_CODEC_FOR_V2 | ZARR_CODEC_FOR_V3);
const zarr_codec_impl_vtable zr_cpu_packbits_array = PACK_VTABLE("numcodecs.packbits", 0);
