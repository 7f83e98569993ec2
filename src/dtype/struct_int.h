/*
 * dtype/struct_int.h - shared by the files of the struct type: its parsed fields, and
 * the walk over fields that have a byte order. Not for other rooms or other types.
 */
#ifndef ZR_DTYPE_STRUCT_INT_H
#define ZR_DTYPE_STRUCT_INT_H

#include "dtype_int.h"

/* Larger than any real data needs. Each level of nesting costs a level of recursion. */
enum {
    ZR_STRUCT_FIELDS_MAX = 16384, /* nested fields included */
    ZR_STRUCT_DEPTH_MAX = 32
};

struct zr_field {
    char *name;   /* without quotes; contains no NUL */
    char *quoted; /* the same as JSON text */
    const zarr_dtype *dtype;
    uint64_t offset, n_items; /* n_items: elements of the subarray, 1 without one */
    uint64_t *shape;          /* ndim of them */
    int32_t ndim;
};
struct zr_struct {
    const zarr_allocator *alloc;
    struct zr_field *field;
    size_t n;
    struct zr_map by_name; /* -> struct zr_field, borrowed */
    uint64_t bytes;
    uint32_t n_fields; /* nested fields included; fields in a subarray count once */
    uint32_t n_orders; /* those of them that have a byte order */
    uint32_t depth;
    bool subarrays; /* here or in a nested struct: no v3 form */
};
/* Gives the struct of a type. NULL: the type is not a struct. */
const struct zr_struct *zr_struct_from_dtype(const zarr_dtype *dtype);

/* ---- order.c ---- */
/* As zr_dtype_swap(). */
void zr_struct_swap(const struct zr_struct *s, const struct zr_order *order, void *data,
                    uint64_t n);

/* ---- struct_text.c: the table's functions that write and read text ---- */
zarr_status zr_struct_write(const zarr_dtype_info *info, uint32_t what, char *text,
                            size_t cap, size_t *text_bytes, zarr_error *err);
zarr_status zr_struct_fill_parse(const zarr_dtype_info *info, int format,
                                 const char *json, void *element, zarr_error *err);
zarr_status zr_struct_fill_print(const zarr_dtype_info *info, int format,
                                 const void *element, char *text, size_t cap,
                                 size_t *text_bytes, zarr_error *err);
void zr_struct_fill_default(const zarr_dtype_info *info, void *element);

#endif
