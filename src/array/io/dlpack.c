/*
 * array/io/dlpack.c - tensors of DLPack to and from zarr_tensor. DLPack counts strides in
 * elements and has no byte order. Its structs are declared here, as DLPack 1.1 lays them
 * out, so that no foreign header is needed; test_dlpack.c compares them with dlpack.h.
 * What another program gives may be wrong: everything is checked before it is used.
 * Thread class: plain functions.
 */
#include "array/array_int.h"

#include <zarrc/dlpack.h>

#include <string.h>

enum {
    DLPACK_MAJOR = 1,
    DLPACK_MINOR = 1,
    DLPACK_PADDED = 4 /* flag: elements of less than a byte have one each */
};

struct dlpack_tensor { /* DLTensor */
    void *data;
    int32_t device_type, device_id;
    int32_t ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
};

struct DLManagedTensor {
    struct dlpack_tensor tensor;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensor *self);
};

struct DLManagedTensorVersioned {
    uint32_t major, minor;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags;
    struct dlpack_tensor tensor;
};

/* ---- checks that both directions need --------------------------------------------- */

static zarr_status dlpack_bad(const char *what, int32_t d, int64_t value, zarr_error *err)
{
    return zr_fail(err, ZARR_ERR_INVALID, "DLPack: %s[%" PRId32 "] is %" PRId64, what, d,
                   value);
}

/* Checks rank, shape and data. *n: the product of the lengths other than 0. A length of 0
 * does not excuse the others, so that products of some of them never overflow. */
static zarr_status dlpack_check(const void *data, int32_t ndim, const uint64_t *shape,
                                uint64_t byte_offset, uint64_t *n, zarr_error *err)
{
    bool empty = false;

    *n = 1;
    if (ndim < 0 || ndim > ZARR_MAX_RANK || (ndim > 0 && !shape))
        return zr_fail(err, ZARR_ERR_INVALID,
                       "DLPack: a tensor of %" PRId32 " dimensions%s; at most %d are "
                       "supported",
                       ndim, shape ? "" : " without a shape", ZARR_MAX_RANK);
    for (int32_t d = 0; d < ndim; d++) {
        empty = empty || shape[d] == 0;
        if (!zr_mul(*n, ZR_MAX(shape[d], 1), n) || *n > INT64_MAX)
            return dlpack_bad("shape", d, (int64_t)shape[d], err);
    }
    if (!data && !empty)
        return zr_fail(err, ZARR_ERR_INVALID, "DLPack: %" PRIu64 " elements, but no data",
                       *n);
    if (byte_offset > INT64_MAX)
        return zr_fail(err, ZARR_ERR_INVALID, "DLPack: byte_offset is %" PRIu64,
                       byte_offset);
    return ZARR_OK;
}

/* Whether strides, in elements, are those of C order without gaps. Those of lengths 1 do
 * not matter. */
static bool dlpack_is_compact(int32_t ndim, const int64_t *shape, const int64_t *strides)
{
    int64_t next = 1;

    for (int32_t d = ndim; d-- > 0;) {
        if (shape[d] == 0)
            return true;
        if (shape[d] != 1 && strides[d] != next)
            return false;
        next *= shape[d]; /* the product was checked */
    }
    return true;
}

/* ---- in --------------------------------------------------------------------------- */

/* Sets strides in bytes. A packed tensor without gaps has none; in others rows begin at a
 * byte. */
static zarr_status strides_in(zarr_dlpack_view *v, const struct dlpack_tensor *from,
                              uint64_t item_bits, zarr_error *err)
{
    const bool packed = (v->tensor.flags & ZARR_TENSOR_PACKED) != 0;
    const int32_t last = v->tensor.ndim - 1; /* lanes that became a dimension, if any */

    if (from->ndim == 0 || !from->strides ||
        dlpack_is_compact(from->ndim, from->shape, from->strides))
        return ZARR_OK;
    for (int32_t d = 0; d < from->ndim; d++) {
        int64_t bits = 0;

        if (packed && d == last) {
            if (from->strides[d] != 1 && from->shape[d] != 1)
                goto no_byte;
            v->strides[d] = 1;
            continue;
        }
        if (from->shape[d] == 1)
            continue;
        if (!zr_mul(from->strides[d], (int64_t)item_bits, &bits))
            return dlpack_bad("strides", d, from->strides[d], err);
        if (bits % 8 != 0)
            goto no_byte;
        v->strides[d] = bits / 8;
        if (!zr_mul(v->strides[d], from->shape[d], &bits))
            return dlpack_bad("strides", d, from->strides[d], err);
    }
    v->tensor.strides = v->strides;
    return ZARR_OK;
no_byte:
    return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                   "DLPack: packed elements whose rows do not begin at a byte");
}

/* Finds the data type. Lanes that no type has become a dimension. */
static zarr_status dtype_in(zarr_dlpack_view *v, zarr_context *ctx,
                            const struct dlpack_tensor *from, zarr_error *err)
{
    zarr_tensor *t = &v->tensor;

    if (from->lanes > 1 && zarr_dtype_from_dlpack(&t->dtype, ctx, from->code, from->bits,
                                                  from->lanes, NULL) == ZARR_OK)
        return ZARR_OK;
    ZR_CHECK(zarr_dtype_from_dlpack(&t->dtype, ctx, from->code, from->bits, 1, err));
    if (from->lanes == 1)
        return ZARR_OK;
    if (from->lanes == 0 || t->ndim == ZARR_MAX_RANK)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "DLPack: %u lanes in a tensor of %" PRId32 " dimensions",
                       from->lanes, t->ndim);
    v->shape[t->ndim] = from->lanes;
    v->strides[t->ndim] =
        t->flags & ZARR_TENSOR_PACKED ? 1 : (int64_t)zarr_dtype_item_bytes(t->dtype);
    t->ndim++;
    return ZARR_OK;
}

static zarr_status tensor_in(zarr_dlpack_view *out, zarr_context *ctx,
                             const struct dlpack_tensor *from, uint64_t flags,
                             zarr_error *err)
{
    zarr_dlpack_view v = {.struct_size = sizeof v};
    uint64_t n = 0, bits = (uint64_t)from->bits * from->lanes;

    if (from->device_type <= 0) /* 0 would be the context's default memory */
        return zr_fail(err, ZARR_ERR_INVALID, "DLPack: no device has type %" PRId32,
                       from->device_type);
    /* a negative length is larger than any that is accepted */
    ZR_CHECK(dlpack_check(from->data, from->ndim, (const uint64_t *)from->shape,
                          from->byte_offset, &n, err));
    v.flags = (uint32_t)(flags & (ZARR_DLPACK_READ_ONLY | ZARR_DLPACK_COPIED));
    v.tensor = (zarr_tensor){.struct_size = sizeof v.tensor,
                             .device_type = from->device_type,
                             .device_id = from->device_id,
                             .ndim = from->ndim,
                             .data = from->data,
                             .byte_offset = from->byte_offset};
    if (from->bits < 8 && !(flags & DLPACK_PADDED))
        v.tensor.flags = ZARR_TENSOR_PACKED;
    else if (from->bits < 8)
        bits = UINT64_C(8) * from->lanes;
    if (from->ndim > 0)
        memcpy(v.shape, from->shape, (size_t)from->ndim * sizeof *v.shape);
    ZR_CHECK(dtype_in(&v, ctx, from, err));
    if (!zr_mul(n, bits, &n) || n > INT64_MAX)
        return zr_fail(err, ZARR_ERR_INVALID, "DLPack: the tensor is too large");
    ZR_CHECK(strides_in(&v, from, bits, err));
    *out = v;
    out->tensor.shape = out->shape;
    out->tensor.strides = v.tensor.strides ? out->strides : NULL;
    return ZARR_OK;
}

static zarr_status check_view(const zarr_dlpack_view *out, const zarr_context *ctx,
                              const void *from, zarr_error *err)
{
    if (!out || !ctx || !from)
        return zr_fail(err, ZARR_ERR_INVALID, "DLPack: no %s is given",
                       !out   ? "view"
                       : !ctx ? "context"
                              : "tensor");
    if (out->struct_size < sizeof *out)
        return zr_fail(err, ZARR_ERR_ABI,
                       "zarr_dlpack_view: initialise it with ZARR_DLPACK_VIEW_INIT");
    return ZARR_OK;
}

zarr_status zarr_tensor_from_dlpack(zarr_dlpack_view *out, zarr_context *ctx,
                                    const struct DLManagedTensorVersioned *from,
                                    zarr_error *err)
{
    zarr_status st = check_view(out, ctx, from, err);

    if (st == ZARR_OK && from->major != DLPACK_MAJOR)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "DLPack: version %" PRIu32 ".%" PRIu32
                       ", only %d is supported: its layout is not known",
                       from->major, from->minor, DLPACK_MAJOR);
    return st ? st : tensor_in(out, ctx, &from->tensor, from->flags, err);
}

zarr_status zarr_tensor_from_dlpack_unversioned(zarr_dlpack_view *out, zarr_context *ctx,
                                                const struct DLManagedTensor *from,
                                                zarr_error *err)
{
    zarr_status st = check_view(out, ctx, from, err);

    return st ? st : tensor_in(out, ctx, &from->tensor, 0, err);
}

/* ---- out -------------------------------------------------------------------------- */

struct dlpack_block {
    union {
        struct DLManagedTensor plain;
        struct DLManagedTensorVersioned versioned;
    } u;
    zarr_context *ctx; /* counted */
    zarr_dlpack_release release;
    void *user;
    int64_t shape[ZARR_MAX_RANK], strides[ZARR_MAX_RANK];
};

static void block_free(struct dlpack_block *b)
{
    zarr_context *ctx = b->ctx;

    if (b->release)
        b->release(b->user);
    zr_free(ctx->alloc, b);
    zarr_context_free(ctx);
}

static void delete_plain(struct DLManagedTensor *self)
{
    if (self)
        block_free(self->manager_ctx);
}

static void delete_versioned(struct DLManagedTensorVersioned *self)
{
    if (self)
        block_free(self->manager_ctx);
}

static void compact_strides(int64_t *strides, int32_t ndim, const uint64_t *shape)
{
    int64_t next = 1;

    for (int32_t d = ndim; d-- > 0;) {
        strides[d] = next;
        next *= (int64_t)ZR_MAX(shape[d], 1);
    }
}

/* Sets strides in elements of so many bits. */
static zarr_status strides_out(struct dlpack_block *b, const zarr_tensor *t,
                               uint64_t bits, zarr_error *err)
{
    const bool packed = (t->flags & ZARR_TENSOR_PACKED) != 0;

    compact_strides(b->strides, t->ndim, t->shape);
    for (int32_t d = 0; d < t->ndim && t->strides; d++) {
        int64_t stride = 0;

        if (packed && d == t->ndim - 1)
            continue;
        if (!zr_mul(t->strides[d], 8, &stride))
            return dlpack_bad("strides", d, t->strides[d], err);
        if (t->shape[d] > 1 && stride % (int64_t)bits != 0)
            return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                           "DLPack: strides[%" PRId32 "] is %" PRId64
                           " bytes, no multiple of an element",
                           d, t->strides[d]);
        if (t->shape[d] > 1)
            b->strides[d] = stride / (int64_t)bits;
    }
    return ZARR_OK;
}

static zarr_status check_out(const zarr_tensor *t, const struct dlpack_tensor *out,
                             zarr_error *err)
{
    const uint32_t host = ZR_HOST_IS_LITTLE ? ZARR_ORDER_LITTLE : ZARR_ORDER_BIG;
    uint64_t n = 0;

    if (t->byte_order != ZR_ORDER_NATIVE && t->byte_order != host &&
        zarr_dtype_swap_bytes(t->dtype) > 1)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "DLPack: it has no byte order, and these elements do not have "
                       "the machine's");
    if ((t->flags & ~(uint32_t)ZARR_TENSOR_PACKED) ||
        ((t->flags & ZARR_TENSOR_PACKED) && out->bits >= 8))
        return zr_fail(err, ZARR_ERR_INVALID,
                       "DLPack: the tensor has flags 0x%" PRIx32
                       ", which do not fit its data type",
                       t->flags);
    return dlpack_check(t->data, t->ndim, t->shape, t->byte_offset, &n, err);
}

static zarr_status no_argument(const void *out, zarr_error *err)
{
    return zr_fail(err, ZARR_ERR_INVALID, "DLPack: no %s is given",
                   out ? "context" : "place for the result");
}

static zarr_status tensor_out(struct dlpack_block **out, struct dlpack_tensor *tensor,
                              zarr_context *ctx, const zarr_tensor *given, bool *padded,
                              zarr_error *err)
{
    struct dlpack_block *b = NULL;
    zarr_status st = ZARR_OK;
    uint64_t bits = 0;
    zarr_tensor t;

    ZR_TRY(zr_struct_read(&t, sizeof t, offsetof(zarr_tensor, byte_order), given,
                          ZR_TAIL_REFUSE, "zarr_tensor", err));
    if (!given || !t.dtype)
        ZR_FAIL(err, ZARR_ERR_INVALID, "DLPack: no tensor or no data type");
    *tensor = (struct dlpack_tensor){.data = t.data,
                                     .device_type =
                                         t.device_type ? t.device_type : ZARR_DEVICE_CPU,
                                     .device_id = t.device_id,
                                     .ndim = t.ndim,
                                     .byte_offset = t.byte_offset};
    if (zarr_dtype_dlpack(t.dtype, &tensor->code, &tensor->bits, &tensor->lanes) != 0)
        ZR_FAIL(err, ZARR_ERR_UNSUPPORTED, "DLPack: it has no data type %.64s",
                zr_dtype_label(t.dtype));
    ZR_TRY(check_out(&t, tensor, err));
    *padded = tensor->bits < 8 && !(t.flags & ZARR_TENSOR_PACKED);
    bits =
        t.flags & ZARR_TENSOR_PACKED ? tensor->bits : zarr_dtype_item_bytes(t.dtype) * 8;
    b = zr_calloc(ctx->alloc, 1, sizeof *b);
    if (!b)
        ZR_FAIL_MEMORY(err, sizeof *b);
    ZR_TRY(strides_out(b, &t, bits, err));
    if (t.ndim > 0)
        memcpy(b->shape, t.shape, (size_t)t.ndim * sizeof *b->shape);
    tensor->shape = b->shape;
    tensor->strides = b->strides;
    *out = b;
    b = NULL;
out:
    zr_free(ctx->alloc, b);
    return st;
}

/* From here on nothing fails, and the deleter frees the block. */
static void block_own(struct dlpack_block *b, zarr_context *ctx,
                      zarr_dlpack_release release, void *user)
{
    b->ctx = zarr_context_ref(ctx);
    b->release = release;
    b->user = user;
}

zarr_status zarr_tensor_to_dlpack(struct DLManagedTensorVersioned **out,
                                  zarr_context *ctx, const zarr_tensor *tensor,
                                  uint32_t flags, zarr_dlpack_release release, void *user,
                                  zarr_error *err)
{
    struct dlpack_block *b = NULL;
    struct dlpack_tensor t;
    bool padded = false;

    if (out)
        *out = NULL;
    if (!out || !ctx)
        return no_argument(out, err);
    ZR_CHECK(
        zr_flags_check(flags, ZARR_DLPACK_READ_ONLY | ZARR_DLPACK_COPIED, "DLPack", err));
    ZR_CHECK(tensor_out(&b, &t, ctx, tensor, &padded, err));
    b->u.versioned = (struct DLManagedTensorVersioned){
        .major = DLPACK_MAJOR,
        .minor = DLPACK_MINOR,
        .manager_ctx = b,
        .deleter = delete_versioned,
        .flags = flags | (padded ? (uint64_t)DLPACK_PADDED : 0),
        .tensor = t};
    block_own(b, ctx, release, user);
    *out = &b->u.versioned;
    return ZARR_OK;
}

zarr_status zarr_tensor_to_dlpack_unversioned(struct DLManagedTensor **out,
                                              zarr_context *ctx,
                                              const zarr_tensor *tensor,
                                              zarr_dlpack_release release, void *user,
                                              zarr_error *err)
{
    struct dlpack_block *b = NULL;
    struct dlpack_tensor t;
    bool padded = false;

    if (out)
        *out = NULL;
    if (!out || !ctx)
        return no_argument(out, err);
    ZR_CHECK(tensor_out(&b, &t, ctx, tensor, &padded, err));
    if (padded) {
        zr_free(ctx->alloc, b);
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "DLPack: a tensor without a version cannot say that elements of "
                       "%u bits have a byte each",
                       t.bits);
    }
    b->u.plain =
        (struct DLManagedTensor){.tensor = t, .manager_ctx = b, .deleter = delete_plain};
    block_own(b, ctx, release, user);
    *out = &b->u.plain;
    return ZARR_OK;
}
