/*
 * mem/overlap.c - whether two elements of a strided view share a byte. Nearly all views
 * are nested: sorted by stride, each stride exceeds the reach of all smaller ones, so
 * nothing overlaps. Others (interleaved by hand) are decided exactly:
 * two elements overlap if some difference of their indices, not all zero, gives less than
 * an element's length. The search begins with the longest stride, where the shorter
 * lengths leave few differences open. It stops after a fixed effort.
 * Thread class: plain functions.
 */
#include "mem/mem_int.h"

/* About 10 ms at worst. Views that need more do not occur in practice. */
#define OVERLAP_STEPS (1 << 20)

struct overlap_dims {
    uint32_t n_dims;
    int64_t item;
    int64_t stride[ZARR_MAX_RANK]; /* ascending, positive */
    int64_t last[ZARR_MAX_RANK];   /* greatest index */
    int64_t below[ZARR_MAX_RANK];  /* reach of all smaller strides */
};

/* YES: an index repeats the same byte. UNKNOWN: still to be decided. */
static enum zr_overlap overlap_sort(struct overlap_dims *o, int32_t ndim,
                                    const uint64_t *shape, const int64_t *stride)
{
    int64_t reach = 0;

    o->n_dims = 0;
    for (int32_t k = 0; k < ndim; k++) {
        const int64_t size = stride[k] < 0 ? -stride[k] : stride[k];
        uint32_t at;

        if (shape[k] == 0)
            return ZR_OVERLAP_NO;
        if (shape[k] == 1)
            continue;
        if (size == 0)
            return ZR_OVERLAP_YES;
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
    return ZR_OVERLAP_UNKNOWN;
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
static enum zr_overlap overlap_search(const struct overlap_dims *o)
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
                return ZR_OVERLAP_YES;
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
            return ZR_OVERLAP_NO;
        sum[k] = sum[k + 1] + d[k] * o->stride[k];
        zero[k] = zero[k + 1] && d[k] == 0;
    }
    return ZR_OVERLAP_UNKNOWN;
}

enum zr_overlap zr_strides_overlap(int32_t ndim, const uint64_t *shape,
                                   const int64_t *stride, uint32_t item_bytes)
{
    struct overlap_dims o = {.item = item_bytes};
    const enum zr_overlap quick = overlap_sort(&o, ndim, shape, stride);

    if (quick != ZR_OVERLAP_UNKNOWN)
        return quick;
    if (overlap_is_nested(&o))
        return ZR_OVERLAP_NO;
    return overlap_search(&o);
}
