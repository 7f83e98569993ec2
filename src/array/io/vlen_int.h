/*
 * array/io/vlen_int.h - elements of variable length on their way to or from a column:
 * vlen.c has offsets and bytes, arrow.c the same as a column of Arrow.
 */
#ifndef ZR_ARRAY_VLEN_INT_H
#define ZR_ARRAY_VLEN_INT_H

#include "array/array_int.h"

#include <string.h>

struct zr_vlen_call {
    zarr_array *array;
    const zarr_selection *selection;
    const zarr_dtype *value; /* of an optional type its values, else the type itself */
    bool optional; /* a byte after each zarr_vlen says whether there is a value */
    uint64_t shape[ZARR_MAX_RANK];
    int32_t ndim;
    bool fits; /* n fits 64 bits */
    uint64_t n;
    size_t item_bytes;
    uint8_t *elements; /* n elements, owned */
    zarr_tensor tensor;
    struct zarr_heap *heap; /* reads: the bytes of elements */
    uint32_t max_threads;   /* reads: that make the column */
};
/* Makes room for the selected elements. The shape may change after this; reading and
 * writing check it again. INVALID if elements have a fixed length. */
zarr_status zr_vlen_call_open(struct zr_vlen_call *c, zarr_array *array,
                              const zarr_selection *sel, zarr_error *err);
/* Reads the elements into c->heap, which the caller clears. */
zarr_status zr_vlen_call_read(struct zr_vlen_call *c, const zarr_io_options *opts,
                              zarr_error *err);
void zr_vlen_call_close(struct zr_vlen_call *c);

/* Gives element i. Returns false if its value is missing. */
static inline bool zr_vlen_call_get(const struct zr_vlen_call *c, uint64_t i,
                                    zarr_vlen *out)
{
    const uint8_t *p = c->elements + (size_t)i * c->item_bytes;

    memcpy(out, p, sizeof *out);
    return !c->optional || p[sizeof *out] != 0;
}

#endif
