/*
 * impl/structure.c - `bytes` and `transpose` as stages, for the rare chain with an
 * array->array codec that computes: the copy that ends a read cannot apply the codecs
 * after it. `bytes` is also a stage for types with unused bits (bool, int4), which
 * readers never see. Plain loops, because nothing here is a hot path.
 */
#include "impl/impl_int.h"

#include <string.h>

enum {
    SWAP_BLOCK = 32 * 1024 /* bytes that are copied, and then swapped in the cache */
};

struct array_self {
    const zarr_allocator *alloc;
    int32_t ndim;
    const zarr_dtype *dtype;
    struct zr_order stored; /* borrowed from the specification */
    size_t item_bytes, n_items;
    bool padded;                  /* elements have unused bits */
    bool varies;                  /* any number of items, up to n_items */
    size_t shape[ZARR_MAX_RANK];  /* of the encoded side */
    size_t stride[ZARR_MAX_RANK]; /* bytes of a step in the decoded side, by dimension */
};

static zarr_status array_new(struct array_self **out, const zarr_codec_spec *spec,
                             const zarr_chunk_spec *decoded, zarr_error *err)
{
    const uint64_t item_bytes =
        decoded->dtype ? zarr_dtype_item_bytes(decoded->dtype) : 0;
    struct array_self *self = NULL;

    if (!item_bytes)
        return zr_internal(err);
    self = zr_self_new(spec, sizeof *self, err);
    if (!self)
        return ZARR_ERR_NO_MEMORY;
    self->ndim = decoded->ndim;
    self->item_bytes = (size_t)item_bytes;
    self->n_items = (size_t)(decoded->n_bytes / item_bytes);
    self->varies = !decoded->exact;
    *out = self;
    return ZARR_OK;
}

/* Both sides have the same size, known from the metadata. */
static zarr_status array_check(const struct array_self *self,
                               const struct zr_host_job *io, const char *codec,
                               zarr_error *err)
{
    const size_t most = self->n_items * self->item_bytes;
    const size_t bytes = self->varies ? ZR_MIN(io->src_bytes, most) : most;

    if (self->varies && io->src_bytes % self->item_bytes)
        return zr_fail(err, ZARR_ERR_CORRUPT,
                       "%s: %zu bytes are not a whole number of elements of %zu", codec,
                       io->src_bytes, self->item_bytes);
    if (io->src_bytes != bytes)
        return zr_fail(err, ZARR_ERR_CORRUPT, "%s: %zu bytes, expected %zu", codec,
                       io->src_bytes, bytes);
    if (io->dst_bytes < bytes)
        return self->varies ? zr_too_long(err, codec, io->dst_bytes)
                            : zr_no_room(err, codec);
    return ZARR_OK;
}

/* ---- bytes ----------------------------------------------------------------------- */

static zarr_status swap_bind(void **out, const zarr_codec_spec *spec,
                             const zarr_codec_binding *to, zarr_error *err)
{
    struct array_self *self = NULL;

    ZR_CHECK(array_new(&self, spec, to->decoded, err));
    self->dtype = to->decoded->dtype;
    self->stored = spec->structure.stored;
    self->padded = zr_dtype_is_padded(to->decoded->dtype);
    *out = self;
    return ZARR_OK;
}

/* Encoding refuses elements with invalid unused bits; decoding sets these bits. */
static zarr_status swap_one(const struct array_self *self, const struct zr_host_job *io,
                            bool encode, size_t *used, zarr_error *err)
{
    const size_t block = ZR_MAX(SWAP_BLOCK / self->item_bytes, (size_t)1);
    size_t n_items = 0;

    ZR_CHECK(array_check(self, io, "bytes", err));
    n_items = io->src_bytes / self->item_bytes;
    for (size_t i = 0; i < n_items; i += block) {
        const size_t n = ZR_MIN(block, n_items - i), at = i * self->item_bytes;

        memcpy(io->dst + at, io->src + at, n * self->item_bytes);
        if (self->padded && encode)
            ZR_CHECK(zr_dtype_pad(self->dtype, io->dst + at, n, err));
        else if (self->padded)
            zr_dtype_unpad(self->dtype, io->dst + at, n);
        zr_dtype_swap(self->dtype, &self->stored, io->dst + at, n);
    }
    *used = io->src_bytes;
    return ZARR_OK;
}

ZR_JOBS_BOTH_WAYS(swap)

const zarr_codec_impl_vtable zr_cpu_bytes = {
    .struct_size = sizeof(zarr_codec_impl_vtable),
    .caps = ZARR_CODEC_CAN_DECODE | ZARR_CODEC_CAN_ENCODE | ZARR_CODEC_SAFE |
            ZARR_CODEC_DETERMINISTIC,
    .codec = "bytes",
    .impl = "cpu.zarrc",
    .in_kinds = ZR_HOST_KINDS,
    .out_kinds = ZR_HOST_KINDS,
    .bind = swap_bind,
    .encode = swap_encode,
    .decode = swap_decode,
    .close = zr_self_free,
};

/* ---- transpose ------------------------------------------------------------------- */

static zarr_status permute_bind(void **out, const zarr_codec_spec *spec,
                                const zarr_codec_binding *to, zarr_error *err)
{
    struct array_self *self = NULL;
    size_t stride[ZARR_MAX_RANK], step = 0;
    uint8_t order[ZARR_MAX_RANK] = {0};

    ZR_CHECK(zr_spec_order(spec, to->decoded->ndim, order, err));
    ZR_CHECK(array_new(&self, spec, to->decoded, err));
    step = self->item_bytes;
    for (int32_t i = self->ndim; i-- > 0;) {
        stride[i] = step;
        step *= (size_t)to->decoded->shape[i];
    }
    for (int32_t i = 0; i < self->ndim; i++) {
        self->shape[i] = (size_t)to->decoded->shape[order[i]];
        self->stride[i] = stride[order[i]];
    }
    *out = self;
    return ZARR_OK;
}

static zarr_status permute_one(const struct array_self *self,
                               const struct zr_host_job *io, bool encode, size_t *used,
                               zarr_error *err)
{
    size_t index[ZARR_MAX_RANK] = {0}, at = 0;

    ZR_CHECK(array_check(self, io, "transpose", err));
    if (self->varies) { /* one dimension: nothing moves */
        memcpy(io->dst, io->src, io->src_bytes);
        *used = io->src_bytes;
        return ZARR_OK;
    }
    for (size_t i = 0; i < self->n_items; i++) {
        uint8_t *dst = io->dst + (encode ? i * self->item_bytes : at);

        memcpy(dst, io->src + (encode ? at : i * self->item_bytes), self->item_bytes);
        for (int32_t d = self->ndim; d-- > 0;) {
            at += self->stride[d];
            if (++index[d] < self->shape[d])
                break;
            at -= self->stride[d] * self->shape[d];
            index[d] = 0;
        }
    }
    *used = io->src_bytes;
    return ZARR_OK;
}

ZR_JOBS_BOTH_WAYS(permute)

const zarr_codec_impl_vtable zr_cpu_transpose = {
    .struct_size = sizeof(zarr_codec_impl_vtable),
    .caps = ZARR_CODEC_CAN_DECODE | ZARR_CODEC_CAN_ENCODE | ZARR_CODEC_SAFE |
            ZARR_CODEC_DETERMINISTIC,
    .codec = "transpose",
    .impl = "cpu.zarrc",
    .in_kinds = ZR_HOST_KINDS,
    .out_kinds = ZR_HOST_KINDS,
    .bind = permute_bind,
    .encode = permute_encode,
    .decode = permute_decode,
    .close = zr_self_free,
};
