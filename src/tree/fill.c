/*
 * tree/fill.c - fill values of arrays: the JSON text of one, and whether two are the
 * same.
 * Thread class: plain functions.
 */
#include "array/array.h"
#include "tree/tree.h"

zarr_status zr_array_fill_text(struct zr_str *out, const zarr_array *array,
                               const zarr_dtype *type, zarr_error *err)
{
    const void *fill = zr_array_fill_element(array);
    size_t bytes = 0;
    char *text = NULL;
    zarr_status st = ZARR_OK;

    ZR_TRY(zarr_dtype_print(type, fill, NULL, 0, &bytes, err));
    text = zr_malloc(out->alloc, bytes + 1);
    if (!text)
        ZR_FAIL_MEMORY(err, bytes + 1);
    ZR_TRY(zarr_dtype_print(type, fill, text, bytes + 1, &bytes, err));
    zr_str_append(out, text, bytes);
    st = zr_str_status(out, err);
out:
    zr_free(out->alloc, text);
    return st;
}

zarr_status zr_same_fill(const zarr_array *a, const zarr_array *b, bool *same,
                         zarr_error *err)
{
    const zarr_allocator *alloc = zr_store_context(zarr_array_store(a))->alloc;
    struct zr_str ta, tb;
    zarr_status st = ZARR_OK;

    zr_str_init(&ta, alloc);
    zr_str_init(&tb, alloc);
    ZR_TRY(zr_array_fill_text(&ta, a, zarr_array_dtype(a), err));
    ZR_TRY(zr_array_fill_text(&tb, b, zarr_array_dtype(b), err));
    *same = zr_streq(zr_str_text(&ta), zr_str_text(&tb));
out:
    zr_str_deinit(&ta);
    zr_str_deinit(&tb);
    return st;
}
