/*
 * dtype/fill.c - converts elements between JSON and bytes, for metadata (fill values) and
 * for people (text import and export). Tables read and write JSON text. A number's text
 * is passed to them as it is, without a copy. Thread class: frozen.
 */
#include "dtype_int.h"

#include <string.h>

zarr_status zarr_dtype_print(const zarr_dtype *dtype, const void *element, char *text,
                             size_t cap, size_t *text_bytes, zarr_error *err)
{
    size_t n = 0;

    if (!dtype || !element || (!text && cap > 0))
        return zr_fail(err, ZARR_ERR_INVALID, "zarr_dtype_print: an argument is NULL");
    return dtype->entry->vt.fill_print(&dtype->info, 3, element, text, cap,
                                       text_bytes ? text_bytes : &n, err);
}

zarr_status zarr_dtype_parse(const zarr_dtype *dtype, const char *json, void *element,
                             zarr_error *err)
{
    if (!dtype || !element || !json)
        return zr_fail(err, ZARR_ERR_INVALID, "zarr_dtype_parse: an argument is NULL");
    return dtype->entry->vt.fill_parse(&dtype->info, 3, json, element, err);
}

zarr_status zr_dtype_fill_parse(const zarr_dtype *dtype, const struct zr_json *v,
                                int format, void *element, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct zr_str text;

    zr_str_init(&text, dtype->alloc);
    if (!v || (v->type == ZR_JSON_NULL && dtype->info.kind != ZARR_KIND_OPTIONAL))
        ZR_FAIL(err, ZARR_ERR_INVALID, "%s is not a valid %s", v ? "null" : "nothing",
                dtype->info.name);
    if (v->type == ZR_JSON_NUMBER) {
        st = dtype->entry->vt.fill_parse(&dtype->info, format, v->u.text.ptr, element,
                                         err);
        goto out;
    }
    zr_json_write(v, 0, &text);
    ZR_TRY(zr_str_status(&text, err));
    st = dtype->entry->vt.fill_parse(&dtype->info, format, zr_str_text(&text), element,
                                     err);
out:
    zr_str_deinit(&text);
    return st;
}

bool zr_dtype_zero_is_bits(const zarr_dtype *dtype, const struct zr_json *v)
{
    const struct zr_float *f = zr_dtype_float(dtype);
    double value = 1;

    return f && !f->sign && dtype->info.kind == ZARR_KIND_FLOAT &&
           zr_json_f64(v, &value) && value == 0;
}

/* Parses a text that a table wrote. */
static zarr_status text_value(struct zr_json_doc *doc, const char *text, size_t n,
                              struct zr_json **out, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct zr_json_doc parsed;
    const zarr_limits limits = {.string_bytes = 4 * ZR_ITEM_BYTES_MAX,
                                .json_tokens = 2 * ZR_ITEM_BYTES_MAX};

    zr_json_doc_init(&parsed, doc->arena.alloc);
    ZR_TRY(zr_json_parse(&parsed, text, n, &limits, err));
    *out = zr_json_copy(doc, parsed.root);
    if (!*out)
        st = zr_fail_memory(err, n);
out:
    zr_json_doc_deinit(&parsed);
    return st;
}

zarr_status zr_dtype_fill_write(const zarr_dtype *dtype, const void *element, int format,
                                struct zr_json_doc *doc, struct zr_json **out,
                                zarr_error *err)
{
    zarr_status st = ZARR_OK;
    char small[256], *large = NULL;
    size_t n = 0;

    ZR_TRY(dtype->entry->vt.fill_print(&dtype->info, format, element, small, sizeof small,
                                       &n, err));
    if (n >= sizeof small) {
        large = zr_malloc(dtype->alloc, n + 1);
        if (!large)
            ZR_FAIL_MEMORY(err, n + 1);
        ZR_TRY(dtype->entry->vt.fill_print(&dtype->info, format, element, large, n + 1,
                                           &n, err));
    }
    st = text_value(doc, large ? large : small, n, out, err);
out:
    zr_free(dtype->alloc, large);
    return st;
}

void zr_dtype_fill_default(const zarr_dtype *dtype, void *element)
{
    if (dtype->entry->vt.fill_default)
        dtype->entry->vt.fill_default(&dtype->info, element);
    else
        memset(element, 0, (size_t)dtype->info.item_bytes);
}
