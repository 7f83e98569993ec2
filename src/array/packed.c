/*
 * array/packed.c - reads into and writes from tensors with several elements per byte
 * (ZARR_TENSOR_PACKED). The pipe handles only whole bytes, and two chunks may share one,
 * so the elements pass through a block with one byte each.
 * Thread class: plain functions.
 */
#include "array/array_int.h"

bool zr_tensor_is_packed(const zarr_tensor *tensor)
{
    return tensor &&
           tensor->struct_size >= offsetof(zarr_tensor, flags) + sizeof tensor->flags &&
           (tensor->flags & ZARR_TENSOR_PACKED);
}

/* *n: number of elements. Checks that their packed bytes fit after data + byte_offset. */
static zarr_status packed_check(const zarr_tensor *t, const zarr_dtype *dtype, size_t *n,
                                zarr_error *err)
{
    const uint32_t width = zr_dtype_padded_bits(dtype);
    uint64_t bits = 1;

    if (t->flags & ~(uint32_t)ZARR_TENSOR_PACKED)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED, "tensor: unknown flags 0x%" PRIx32,
                       t->flags & ~(uint32_t)ZARR_TENSOR_PACKED);
    if (width < 2 || zarr_dtype_components(dtype) != 1)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "tensor: elements of %s cannot be packed: only those of 2, 4 or 6 "
                       "bits can",
                       zarr_dtype_name(dtype) ? zarr_dtype_name(dtype)
                                              : zarr_dtype_v2(dtype));
    if (t->device_type != ZARR_DEVICE_CPU || t->strides)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "tensor: packed elements must be in host memory, in C order and "
                       "without strides");
    if (!t->data || t->ndim < 0 || (t->ndim > 0 && !t->shape))
        return zr_fail(err, ZARR_ERR_INVALID, "tensor: no data or no shape");
    for (int32_t i = 0; i < t->ndim; i++)
        if (t->shape[i] < 0 || !zr_mul_u64(bits, (uint64_t)t->shape[i], &bits))
            return zr_fail(err, ZARR_ERR_INVALID,
                           "tensor: shape[%" PRId32 "] is %" PRId64, i, t->shape[i]);
    if (!zr_to_size(bits, n) || !zr_mul_u64(bits, width, &bits))
        return zr_fail(err, ZARR_ERR_LIMIT, "tensor: too many elements");
    if (t->data_bytes && (t->byte_offset > t->data_bytes ||
                          zr_ceil_div_u64(bits, 8) > t->data_bytes - t->byte_offset))
        return zr_fail(err, ZARR_ERR_INVALID,
                       "tensor: %" PRIu64 " bytes after byte_offset are too few for %zu "
                       "elements of %" PRIu32 " bits",
                       t->byte_offset > t->data_bytes ? 0
                                                      : t->data_bytes - t->byte_offset,
                       *n, width);
    return ZARR_OK;
}

zarr_status zr_packed_io(zarr_array *array, const zarr_dtype *dtype,
                         const zarr_tensor *tensor, bool write, zr_packed_fn run,
                         void *arg, zarr_error *err)
{
    const zarr_allocator *alloc = array->h.ctx->alloc;
    zarr_status st = ZARR_OK;
    zarr_tensor t, whole;
    uint8_t *elements = NULL, *packed;
    size_t n = 0;

    ZR_TRY(zr_struct_read(&t, sizeof t, sizeof t, tensor, ZR_TAIL_REFUSE, "zarr_tensor",
                          err));
    if (t.device_type == 0)
        t.device_type = ZARR_DEVICE_CPU;
    st = packed_check(&t, dtype, &n, err);
    if (st != ZARR_OK) {
        zr_path_prefix(err, st, array->h.path);
        goto out;
    }
    elements = zr_malloc(alloc, n);
    if (!elements) {
        st = zr_fail_memory(err, n);
        goto out;
    }
    packed = (uint8_t *)t.data + t.byte_offset;
    whole = t;
    whole.data = elements;
    whole.data_bytes = n;
    whole.byte_offset = 0;
    whole.flags = 0;
    if (write)
        zr_packed_get(dtype, elements, packed, n);
    ZR_TRY(run(arg, &whole, err));
    if (!write)
        zr_packed_put(dtype, packed, elements, n);
out:
    zr_free(alloc, elements);
    return st;
}
