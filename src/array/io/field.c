/*
 * array/io/field.c - reads and writes one field of an array of structs: the path becomes
 * an offset, a data type and the dimensions of a subarray, which the copy between chunk
 * and tensor uses. Chunks are decoded and encoded as always. Thread class: plain
 * functions.
 */
#include "array/io/io_int.h"

#include <string.h>

zarr_status zr_io_field(struct zr_io *io, const struct zr_array_state *s,
                        const char *path, const zarr_dtype **dtype, zarr_error *err)
{
    struct zr_field_view *p = &io->field;
    zarr_dtype_field f = ZARR_DTYPE_FIELD_INIT;

    ZR_CHECK(zarr_dtype_field_find(s->meta.dtype, path, &f, err));
    if (f.ndim > ZARR_MAX_RANK - s->meta.ndim)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "field \"%.64s\": its subarray and the array have more than %d "
                       "dimensions together",
                       path, ZARR_MAX_RANK);
    p->on = true;
    p->offset = f.offset;
    p->item_bytes = (uint32_t)zarr_dtype_item_bytes(f.dtype);
    p->swap_unit = zarr_dtype_swap_bytes(f.dtype);
    p->ndim = f.ndim;
    p->n_values = 1;
    for (int32_t d = 0; d < f.ndim; d++) {
        p->shape[d] = f.shape[d];
        p->stride[d] = f.stride[d];
        p->n_values *= f.shape[d]; /* within an element */
    }
    *dtype = f.dtype;
    return ZARR_OK;
}

/* Offset in the element of value i of the field, in C order of its subarray. */
static uint64_t value_offset(const struct zr_field_view *p, uint64_t i)
{
    uint64_t at = p->offset;

    for (int32_t d = p->ndim - 1; d >= 0; d--) {
        at += i % p->shape[d] * (uint64_t)p->stride[d];
        i /= p->shape[d];
    }
    return at;
}

zarr_status zr_io_field_fill(uint8_t **out, struct zr_io *io, zarr_error *err)
{
    struct zr_field_view *p = &io->field;
    const zarr_allocator *alloc = io->engine->alloc;
    const uint64_t bytes = p->n_values * p->item_bytes;

    *out = zr_malloc(alloc, (size_t)bytes);
    if (!*out)
        return zr_fail_memory(err, bytes);
    for (uint64_t i = 0; i < p->n_values; i++)
        memcpy(*out + i * p->item_bytes, io->layout->fill + value_offset(p, i),
               p->item_bytes);
    if (io->view.swap_bytes > 1)
        zr_byteswap(*out, *out, (size_t)(bytes / p->swap_unit), p->swap_unit);
    p->fill = *out;
    p->all_alike = zr_all_equal(*out, p->n_values, *out, p->item_bytes);
    return ZARR_OK;
}
