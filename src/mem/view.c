/*
 * mem/view.c - makes a checked view of the caller's tensor. Later code does not check a
 * view again: rank, shape, strides, byte order and the range in memory are right, and
 * elements of a destination do not share bytes (strides_overlap()). The library must
 * trust the caller for the pointer and data_bytes. A tensor that does not say how far its
 * memory reaches gets the range that its strides span. If that begins before its first
 * element (a reversed array), the handle moves there: offsets are never negative. Thread
 * class: plain functions.
 */
#include "mem/mem_int.h"

#include <string.h>

/* About 10 ms at worst. Views that need more do not occur in practice. */
#define OVERLAP_STEPS (1 << 20)

enum overlap {
    OVERLAP_NO,
    OVERLAP_YES,
    OVERLAP_UNKNOWN
};

struct overlap_dims {
    uint32_t n_dims;
    int64_t item;
    int64_t stride[ZARR_MAX_RANK]; /* ascending, positive */
    int64_t last[ZARR_MAX_RANK];   /* greatest index */
    int64_t below[ZARR_MAX_RANK];  /* reach of all smaller strides */
};

/* YES: an index repeats the same byte. UNKNOWN: still to be decided. */
static enum overlap overlap_sort(struct overlap_dims *o, int32_t ndim,
                                 const uint64_t *shape, const int64_t *stride)
{
    int64_t reach = 0;

    o->n_dims = 0;
    for (int32_t k = 0; k < ndim; k++) {
        const int64_t size = stride[k] < 0 ? -stride[k] : stride[k];
        uint32_t at;

        if (shape[k] == 0)
            return OVERLAP_NO;
        if (shape[k] == 1)
            continue;
        if (size == 0)
            return OVERLAP_YES;
        for (at = o->n_dims++; at > 0 && o->stride[at - 1] > size; at--) {
            o->stride[at] = o->stride[at - 1];
            o->last[at] = o->last[at - 1];
        }
        o->stride[at] = size;
        o->last[at] = (int64_t)(shape[k] - 1);
    }
    for (uint32_t k = 0; k < o->n_dims; k++) {
        o->below[k] = reach;
        reach += o->stride[k] * o->last[k]; /* fits: zr_extent() succeeded before */
    }
    return OVERLAP_UNKNOWN;
}

static bool overlap_is_nested(const struct overlap_dims *o)
{
    for (uint32_t k = 0; k < o->n_dims; k++)
        if (o->stride[k] < o->below[k] + o->item)
            return false;
    return true;
}

static int64_t overlap_div_floor(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && a < 0);
}

/* The index differences d of dimension k for which `sum` can still come near zero:
 * [*from, *to]. */
static void overlap_range(const struct overlap_dims *o, uint32_t k, int64_t sum,
                          int64_t *from, int64_t *to)
{
    const int64_t near = o->below[k] + o->item - 1, s = o->stride[k];

    *from = -overlap_div_floor(sum + near, s); /* ceil((-near - sum) / s) */
    *to = overlap_div_floor(near - sum, s);
    *from = ZR_MAX(*from, -o->last[k]);
    *to = ZR_MIN(*to, o->last[k]);
}

/* Walks the tree of differences depth first. By symmetry the first difference that is not
 * zero is positive. */
static enum overlap overlap_search(const struct overlap_dims *o)
{
    int64_t d[ZARR_MAX_RANK] = {0}, to[ZARR_MAX_RANK], sum[ZARR_MAX_RANK + 1];
    const uint32_t top = o->n_dims;
    uint32_t k =
        top; /* the differences of dimensions >= k are chosen; sum[k] is their sum */
    bool zero[ZARR_MAX_RANK + 1];

    sum[top] = 0;
    zero[top] = true;
    for (int steps = 0; steps < OVERLAP_STEPS; steps++) {
        if (k == 0) {
            if (!zero[0])
                return OVERLAP_YES;
            d[0]++; /* all zero: the element itself */
        } else {
            k--;
            overlap_range(o, k, sum[k + 1], &d[k], &to[k]);
            if (zero[k + 1])
                d[k] = ZR_MAX(d[k], 0);
        }
        while (k < top && d[k] > to[k]) {
            k++;
            if (k < top)
                d[k]++;
        }
        if (k == top)
            return OVERLAP_NO;
        sum[k] = sum[k + 1] + d[k] * o->stride[k];
        zero[k] = zero[k + 1] && d[k] == 0;
    }
    return OVERLAP_UNKNOWN;
}

/* Whether two elements share a byte. Nearly all views are nested: sorted by stride, each
 * stride exceeds the reach of all smaller ones, so nothing overlaps. Others (interleaved
 * by hand) are decided exactly: two elements overlap if some difference of their indices,
 * not all zero, gives less than an element's length. The search begins with the longest
 * stride, where the shorter lengths leave few differences open. It stops after a fixed
 * effort. */
static enum overlap strides_overlap(int32_t ndim, const uint64_t *shape,
                                    const int64_t *stride, uint32_t item_bytes)
{
    struct overlap_dims o = {.item = item_bytes};
    const enum overlap quick = overlap_sort(&o, ndim, shape, stride);

    if (quick != OVERLAP_UNKNOWN)
        return quick;
    if (overlap_is_nested(&o))
        return OVERLAP_NO;
    return overlap_search(&o);
}

/* Larger than any memory, and small enough that sums of reaches fit. */
#define REACH_BYTES ((int64_t)1 << 60)

void zarr_tensor_host_sized(zarr_tensor *out, uint32_t out_bytes, const char *data_type,
                            void *data, uint64_t data_bytes, int32_t ndim,
                            const uint64_t *shape)
{
    const zarr_tensor t = {.device_type = ZARR_DEVICE_CPU,
                           .data_type = data_type,
                           .ndim = ndim,
                           .data = data,
                           .shape = shape,
                           .data_bytes = data_bytes};

    zr_struct_give(out, out_bytes, &t, sizeof t);
}

/* C-order strides; false if the total does not fit. Lengths of 0 and 1 get stride 0. */
static bool view_strides(int64_t *stride, int32_t ndim, const uint64_t *shape,
                         uint32_t item_bytes)
{
    int64_t line = item_bytes, n;

    for (int32_t k = ndim - 1; k >= 0; k--) {
        stride[k] = 0;
        if (shape[k] <= 1)
            continue;
        stride[k] = line;
        if (!zr_fits(shape[k], &n) || !zr_mul(line, n, &line))
            return false;
    }
    return true;
}

void zr_view_contiguous(struct zr_view *out, zarr_memory base, int32_t ndim,
                        const uint64_t *shape, uint32_t item_bytes, uint32_t swap_bytes)
{
    out->base = base;
    out->base.bytes += base.offset; /* of a view: counts from the handle */
    out->ndim = ndim;
    out->item_bytes = item_bytes;
    out->swap_bytes = swap_bytes > 1 ? swap_bytes : 0;
    for (int32_t k = 0; k < ndim; k++)
        out->shape[k] = shape[k];
    (void)view_strides(out->stride, ndim, shape, item_bytes);
}

bool zr_view_is_contiguous(const struct zr_view *v)
{
    int64_t line = v->item_bytes;

    for (int32_t k = 0; k < v->ndim; k++)
        if (v->shape[k] == 0)
            return true;
    for (int32_t k = v->ndim - 1; k >= 0; k--) {
        if (v->shape[k] == 1)
            continue;
        if (v->stride[k] != line)
            return false;
        line *= (int64_t)v->shape[k]; /* fits: the range was checked */
    }
    return true;
}

/* ---- checks ------------------------------------------------------------------- */

static zarr_status view_check_form(const zarr_tensor *t, int32_t ndim, zarr_error *err)
{
    if (t->flags & ZARR_TENSOR_PACKED)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "tensor: packed elements are for zarr_array_read() and "
                       "zarr_array_write() only");
    if (t->flags)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED, "tensor: unknown flags 0x%" PRIx32,
                       t->flags);
    if (t->byte_order > ZARR_ORDER_BIG)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "tensor: byte order %" PRIu32 " is not one of ZARR_ORDER_*",
                       t->byte_order);
    if (t->ndim != ndim || ndim < 0 || ndim > ZARR_MAX_RANK)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "tensor: ndim is %" PRId32 ", expected %" PRId32, t->ndim, ndim);
    if (ndim > 0 && !t->shape)
        return zr_fail(err, ZARR_ERR_INVALID, "tensor: shape is NULL");
    return ZARR_OK;
}

/* Strides of lengths 0 and 1 become 0: they are never used, so the caller may pass
 * anything. */
static zarr_status view_take_dims(struct zr_view *v, const zarr_tensor *t,
                                  const uint64_t *shape, bool *empty, zarr_error *err)
{
    *empty = false;
    for (int32_t k = 0; k < v->ndim; k++) {
        if (t->shape[k] != shape[k])
            return zr_fail(err, ZARR_ERR_INVALID,
                           "tensor: length %" PRIu64 " of dimension %" PRId32
                           " should be %" PRIu64,
                           t->shape[k], k, shape[k]);
        v->shape[k] = shape[k];
        v->stride[k] = t->strides && shape[k] > 1 ? t->strides[k] : 0;
        *empty = *empty || shape[k] == 0;
    }
    if (!t->strides && !view_strides(v->stride, v->ndim, shape, v->item_bytes) && !*empty)
        return zr_fail(err, ZARR_ERR_INVALID, "tensor is too large for any memory");
    return ZARR_OK;
}

static bool view_handle_is_pointer(int32_t device_type)
{
    enum {
        VULKAN = 7,
        METAL = 8
    }; /* DLPack's numbers of devices whose handles are objects */

    return device_type != ZARR_DEVICE_OPENCL && device_type != VULKAN &&
           device_type != METAL;
}

/* The caller does not give the range, so it is the range that the strides span. */
static zarr_status view_span(struct zr_view *v, int64_t low, int64_t high,
                             zarr_error *err)
{
    const uint64_t back = (uint64_t)-low; /* low <= 0 */
    uint64_t start = v->base.offset, place;

    if (back > v->base.offset) {
        const uintptr_t at = (uintptr_t)v->base.handle;

        if (!view_handle_is_pointer(v->base.device_type))
            return zr_fail(err, ZARR_ERR_INVALID,
                           "tensor: elements begin before the memory object");
        if (!zr_add(at, v->base.offset, &place) || place < back)
            return zr_fail(err, ZARR_ERR_INVALID,
                           "tensor: strides reach below address zero");
        v->base.handle = (uint8_t *)v->base.handle - (back - v->base.offset);
        start = back;
    }
    v->base.offset = start;
    v->base.bytes = start + (uint64_t)high;
    return ZARR_OK;
}

bool zr_extent(int32_t ndim, const uint64_t *shape, const int64_t *stride,
               uint32_t item_bytes, int64_t *low, int64_t *high)
{
    *low = *high = 0;
    for (int32_t k = 0; k < ndim; k++)
        if (shape[k] == 0)
            return true;
    *high = item_bytes;
    for (int32_t k = 0; k < ndim; k++) {
        int64_t last, reach, *side;

        if (shape[k] == 1)
            continue; /* such a stride is never used, and may be anything */
        if (!zr_fits(shape[k] - 1, &last) || !zr_mul(last, stride[k], &reach))
            return false;
        side = reach < 0 ? low : high;
        if (!zr_add(*side, reach, side))
            return false;
    }
    return *low >= -REACH_BYTES && *high <= REACH_BYTES;
}

static zarr_status view_check_extent(struct zr_view *v, const zarr_tensor *t,
                                     zarr_error *err)
{
    int64_t low, high;
    uint64_t end;

    if (!zr_extent(v->ndim, v->shape, v->stride, v->item_bytes, &low, &high))
        return zr_fail(err, ZARR_ERR_INVALID, "tensor: strides reach too far");
    if (!zr_add(t->byte_offset, (uint64_t)high, &end) || end > INT64_MAX)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "tensor: byte_offset %" PRIu64 " is out of range", t->byte_offset);
    if (t->data_bytes == 0) {
        zarr_status st = view_span(v, low, high, err);
        if (st != ZARR_OK)
            return st;
    } else if (end > t->data_bytes || (uint64_t)-low > t->byte_offset) {
        return zr_fail(err, ZARR_ERR_INVALID,
                       "tensor: elements span bytes %" PRId64 " to %" PRIu64
                       ", the memory has %" PRIu64,
                       (int64_t)t->byte_offset + low, end, t->data_bytes);
    }
    if (view_handle_is_pointer(v->base.device_type) &&
        v->base.bytes > UINTPTR_MAX - (uintptr_t)v->base.handle)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "tensor: memory reaches beyond all addresses");
    return ZARR_OK;
}

static zarr_status view_check_overlap(const struct zr_view *v, zarr_error *err)
{
    switch (strides_overlap(v->ndim, v->shape, v->stride, v->item_bytes)) {
    case OVERLAP_NO:
        return ZARR_OK;
    case OVERLAP_YES:
        return zr_fail(err, ZARR_ERR_INVALID,
                       "tensor: elements of the destination overlap");
    case OVERLAP_UNKNOWN:
        break;
    }
    return zr_fail(
        err, ZARR_ERR_INVALID,
        "tensor: strides of the destination are too irregular to rule out overlap");
}

zarr_status zr_view_from_tensor(struct zr_view *out, const struct zr_memory_registry *r,
                                const zarr_tensor *tensor,
                                const struct zr_view_want *want, zarr_error *err)
{
    const uint32_t foreign = ZR_HOST_IS_LITTLE ? ZARR_ORDER_BIG : ZARR_ORDER_LITTLE;
    const struct zr_backend *be;
    zarr_tensor t;
    bool empty;

    if (!tensor)
        return zr_fail(err, ZARR_ERR_INVALID, "tensor is NULL");
    if (want->item_bytes == 0 ||
        (want->swap_unit > 1 && want->item_bytes % want->swap_unit))
        return zr_internal(err);
    ZR_CHECK(zr_struct_read(&t, sizeof t, offsetof(zarr_tensor, byte_order), tensor,
                            ZR_TAIL_REFUSE, "zarr_tensor", err));
    ZR_CHECK(view_check_form(&t, want->ndim, err));
    ZR_CHECK(zr_backend_find(r, t.device_type, &be, err));
    out->base = (zarr_memory){.device_type = t.device_type,
                              .device_id = t.device_id,
                              .handle = t.data,
                              .offset = t.byte_offset,
                              .bytes = t.data_bytes};
    out->ndim = want->ndim;
    out->item_bytes = want->item_bytes;
    out->swap_bytes =
        t.byte_order == foreign && want->swap_unit > 1 ? want->swap_unit : 0;
    ZR_CHECK(view_take_dims(out, &t, want->shape, &empty, err));
    if (empty) /* no byte will be touched, so data may be NULL */
        return ZARR_OK;
    if (!t.data)
        return zr_fail(err, ZARR_ERR_INVALID, "tensor: data is NULL");
    ZR_CHECK(view_check_extent(out, &t, err));
    if (want->role == ZR_VIEW_DESTINATION)
        ZR_CHECK(view_check_overlap(out, err));
    return ZARR_OK;
}
