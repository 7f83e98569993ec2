/*
 * array/io/packed_tensor.c - reads into and writes from tensors with several elements per
 * byte (ZARR_TENSOR_PACKED). If the chunks are packed alike and the request is a box of
 * whole bytes, the request is one of bytes (packed_state.c). Otherwise the elements pass
 * through a block with one byte each, because the pipe handles only whole bytes and two
 * chunks may share one; and the packed bytes through a block in host memory. Thread
 * class: plain functions.
 */
#include "array/io/io_int.h"

#include <string.h>

void zr_packed_free(struct zr_packed *p)
{
    const zarr_allocator *alloc = p->call->array->h.ctx->alloc;

    zarr_selection_free(p->box);
    zr_free(alloc, p->rows);
    zr_free(alloc, p->elements);
    zr_free(alloc, p);
}

/* *n: number of elements. Checks that their packed bytes fit after data + byte_offset. */
static zarr_status packed_check(const zarr_tensor *t, const zarr_dtype *dtype, size_t *n,
                                zarr_error *err)
{
    const uint32_t width = zr_dtype_padded_bits(dtype);
    uint64_t bits = 1;

    if (zr_flags_check(t->flags, ZARR_TENSOR_PACKED, "tensor", err) != ZARR_OK)
        return ZARR_ERR_UNSUPPORTED;
    if (width < 2 || zarr_dtype_components(dtype) != 1)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "tensor: elements of %s cannot be packed: only those of 2, 4 or 6 "
                       "bits can",
                       zarr_dtype_name(dtype) ? zarr_dtype_name(dtype)
                                              : zarr_dtype_v2(dtype));
    if (t->ndim < 0 || t->ndim > ZARR_MAX_RANK || (t->ndim > 0 && !t->shape))
        return zr_fail(err, ZARR_ERR_INVALID, "tensor: no shape, or too many dimensions");
    if (t->strides && t->ndim > 0 && t->strides[t->ndim - 1] != 1)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "tensor: the last of the strides is %" PRId64
                       ", but packed elements are neighbours: it must be 1",
                       t->strides[t->ndim - 1]);
    for (int32_t i = 0; i < t->ndim; i++)
        if (!zr_mul(bits, t->shape[i], &bits))
            return zr_fail(err, ZARR_ERR_LIMIT, "tensor: too many elements");
    if (!zr_fits(bits, n) || !zr_mul(bits, width, &bits))
        return zr_fail(err, ZARR_ERR_LIMIT, "tensor: too many elements");
    if (!t->strides && t->data_bytes &&
        (t->byte_offset > t->data_bytes ||
         zr_ceil_div_u64(bits, 8) > t->data_bytes - t->byte_offset))
        return zr_fail(err, ZARR_ERR_INVALID,
                       "tensor: %" PRIu64 " bytes after byte_offset are too few for %zu "
                       "elements of %" PRIu32 " bits",
                       t->byte_offset > t->data_bytes ? 0
                                                      : t->data_bytes - t->byte_offset,
                       *n, width);
    return ZARR_OK;
}

/* ---- a request of bytes ------------------------------------------------------------ */

/* Makes the box of items that a box of elements is. False: it does not begin and end at
 * an item, or it is no box. */
static zarr_status items_box(bool *fits, zarr_selection **out, const zarr_selection *sel,
                             const struct zr_array_state *bytes,
                             const struct zr_array_state *s, uint32_t per_item,
                             zarr_error *err)
{
    const int32_t last = s->meta.ndim - 1;
    uint64_t start[ZARR_MAX_RANK], count[ZARR_MAX_RANK];

    *fits = sel ? zarr_selection_ndim(sel) == s->meta.ndim &&
                      zr_selection_fits(sel, s->meta.ndim, s->meta.shape) &&
                      zr_selection_is_box(sel, start, count) &&
                      start[last] % per_item == 0 && count[last] % per_item == 0
                : s->meta.shape[last] % per_item == 0;
    if (!*fits || !sel)
        return ZARR_OK;
    start[last] /= per_item;
    count[last] /= per_item;
    return zarr_selection_box(out, s->meta.ndim, bytes->meta.shape, start, count, err);
}

/* Sets p->bytes if the request can be one of bytes. A shard that is written in parts has
 * chunks of elements. */
static zarr_status packed_as_bytes(struct zr_packed *p, const zarr_selection *sel,
                                   const zarr_tensor *t, zarr_error *err)
{
    struct zr_array_state *s = p->call->state, *bytes = NULL;
    const int32_t last = t->ndim - 1;
    uint32_t per_item = 0, item_bytes = 0;
    bool fits = false;
    zarr_status st = ZARR_OK;

    if (t->ndim != s->meta.ndim || t->ndim == 0 || p->call->opts.field ||
        p->call->session || (t->dtype && !zarr_dtype_equal(t->dtype, s->meta.dtype)) ||
        !zr_packed_item(s->meta.dtype, &per_item, &item_bytes) ||
        t->shape[last] % per_item != 0)
        return ZARR_OK;
    ZR_TRY(zr_array_packed_state(&bytes, p->call->array, s, err));
    if (bytes)
        ZR_TRY(items_box(&fits, &p->box, sel, bytes, s, per_item, err));
    if (!fits)
        goto out;
    p->bytes = bytes;
    p->per_item = per_item;
    p->tensor = *t;
    p->tensor.flags = 0;
    p->tensor.dtype = NULL;
    p->tensor.byte_order = ZR_ORDER_NATIVE;
    memcpy(p->shape, t->shape, (size_t)t->ndim * sizeof *p->shape);
    p->shape[last] /= per_item;
    p->tensor.shape = p->shape;
    if (t->strides) {
        memcpy(p->strides, t->strides, (size_t)t->ndim * sizeof *p->strides);
        p->strides[last] = item_bytes;
        p->tensor.strides = p->strides;
    }
out:
    return st;
}

/* ---- elements with a byte each ---------------------------------------------- */

/* Makes the view of the caller's bytes: all of them, or rows that begin at a byte. */
static zarr_status rows_view(struct zr_packed *p, const zarr_tensor *t, size_t n,
                             bool write, zarr_error *err)
{
    const uint32_t width = zr_dtype_padded_bits(p->call->state->meta.dtype);
    const bool rows = t->strides && t->ndim > 0;
    struct zr_view_want want = {.ndim = rows ? t->ndim : 1,
                                .item_bytes = 1,
                                .swap_unit = 1,
                                .role = write ? ZR_VIEW_SOURCE : ZR_VIEW_DESTINATION};
    uint64_t shape[ZARR_MAX_RANK], bits = 0;
    zarr_tensor bytes = *t;

    p->row_elements = rows ? (size_t)t->shape[t->ndim - 1] : n;
    p->n_rows = p->row_elements ? n / p->row_elements : 0;
    if (!zr_mul(p->row_elements, width, &bits))
        return zr_fail(err, ZARR_ERR_LIMIT, "tensor: too many elements");
    p->row_bytes = (size_t)zr_ceil_div_u64(bits, 8);
    for (int32_t d = 0; d < want.ndim; d++)
        shape[d] = d < want.ndim - 1 ? t->shape[d] : p->row_bytes;
    want.shape = shape;
    bytes.ndim = want.ndim;
    bytes.shape = shape;
    bytes.strides = rows ? t->strides : NULL;
    bytes.dtype = NULL;
    bytes.flags = 0;
    bytes.byte_order = ZR_ORDER_NATIVE;
    return zr_view_from_tensor(&p->view, &p->call->array->h.ctx->memory, &bytes, &want,
                               err);
}

/* Copies the packed bytes between the caller's memory and p->rows. */
static zarr_status copy_rows(struct zr_packed *p, bool write, zarr_error *err)
{
    const size_t bytes = p->n_rows * p->row_bytes;
    const zarr_memory run = zr_mem_of_host(p->rows, bytes);
    zarr_box box = {.struct_size = sizeof box, .ndim = p->view.ndim, .item_bytes = 1};
    zarr_box_side *own = write ? &box.dst : &box.src;
    zarr_box_side *other = write ? &box.src : &box.dst;
    int64_t stride = 1;

    if (bytes == 0)
        return ZARR_OK;
    memcpy(box.shape, p->view.shape, sizeof box.shape);
    zr_box_side_init(own, &run, 0);
    for (int32_t d = box.ndim; d-- > 0;) {
        own->stride[d] = stride;
        stride *= (int64_t)box.shape[d];
    }
    other->mem = p->view.base;
    memcpy(other->stride, p->view.stride, sizeof other->stride);
    return zr_box_copy(&p->call->array->h.ctx->memory, &box, NULL, NULL, err);
}

zarr_status zr_packed_finish(void *packed, zarr_error *err)
{
    struct zr_packed *p = packed;

    for (size_t i = 0; i < p->n_rows; i++)
        zr_packed_put(p->call->state->meta.dtype, p->rows + i * p->row_bytes,
                      p->elements + i * p->row_elements, p->row_elements);
    return copy_rows(p, false, err);
}

static zarr_status packed_as_elements(struct zr_packed *p, const zarr_tensor *t, size_t n,
                                      bool write, zarr_error *err)
{
    const zarr_allocator *alloc = p->call->array->h.ctx->alloc;
    zarr_status st = ZARR_OK;

    ZR_TRY(rows_view(p, t, n, write, err));
    p->elements = zr_malloc(alloc, ZR_MAX(n, 1));
    p->rows = zr_malloc(alloc, ZR_MAX(p->n_rows * p->row_bytes, 1));
    if (!p->elements || !p->rows)
        ZR_FAIL_MEMORY(err, n);
    if (write) {
        ZR_TRY(copy_rows(p, true, err));
        for (size_t i = 0; i < p->n_rows; i++)
            zr_packed_get(p->call->state->meta.dtype, p->elements + i * p->row_elements,
                          p->rows + i * p->row_bytes, p->row_elements);
    }
    memcpy(p->shape, t->shape, (size_t)t->ndim * sizeof *p->shape);
    p->tensor = (zarr_tensor){.struct_size = sizeof p->tensor,
                              .device_type = ZARR_DEVICE_CPU,
                              .ndim = t->ndim,
                              .data = p->elements,
                              .dtype = t->dtype,
                              .shape = p->shape,
                              .data_bytes = n};
out:
    return st;
}

zarr_status zr_packed_begin(struct zr_io_call *c, const zarr_selection *sel,
                            const zarr_tensor *tensor, bool write, zarr_error *err)
{
    const zarr_allocator *alloc = c->array->h.ctx->alloc;
    struct zr_packed *p = zr_calloc(alloc, 1, sizeof *p);
    zarr_status st = ZARR_OK;
    zarr_tensor t;
    size_t n = 0;

    if (!p)
        return zr_fail_memory(err, sizeof *p);
    p->call = c;
    c->packed = p; /* the call frees it */
    ZR_TRY(zr_io_tensor(&t, tensor, c->array, err));
    ZR_TRY(packed_check(&t, c->state->meta.dtype, &n, err));
    ZR_TRY(packed_as_bytes(p, sel, &t, err));
    if (!p->bytes)
        st = packed_as_elements(p, &t, n, write, err);
out:
    return st;
}
