/*
 * dtype/dtype.c - the public getters of a type, and its form in v3 metadata. Plain
 * look-ups in a frozen object. Thread class: frozen.
 */
#include "dtype_int.h"

#include <string.h>

const char *zarr_dtype_name(const zarr_dtype *dtype)
{
    return dtype ? dtype->name : NULL;
}

const char *zarr_dtype_v2(const zarr_dtype *dtype)
{
    return dtype ? dtype->v2 : NULL;
}

const char *zarr_dtype_v3(const zarr_dtype *dtype)
{
    return dtype ? dtype->v3_json : NULL;
}

uint32_t zarr_dtype_kind(const zarr_dtype *dtype)
{
    return dtype ? dtype->info.kind : 0;
}

uint64_t zarr_dtype_item_bytes(const zarr_dtype *dtype)
{
    return dtype ? dtype->info.item_bytes : 0;
}

uint64_t zarr_dtype_item_bits(const zarr_dtype *dtype)
{
    return dtype ? dtype->info.item_bits : 0;
}

uint32_t zarr_dtype_swap_bytes(const zarr_dtype *dtype)
{
    return dtype ? dtype->info.swap_bytes : 0;
}

int zarr_dtype_experimental(const zarr_dtype *dtype)
{
    return dtype && (dtype->info.flags & ZARR_DTYPE_EXPERIMENTAL) ? 1 : 0;
}

int zarr_dtype_dlpack(const zarr_dtype *dtype, uint8_t *code, uint8_t *bits,
                      uint16_t *lanes)
{
    if (!dtype || dtype->info.dlpack_bits == 0)
        return -1;
    if (code)
        *code = dtype->info.dlpack_code;
    if (bits)
        *bits = dtype->info.dlpack_bits;
    if (lanes)
        *lanes = dtype->info.dlpack_lanes;
    return 0;
}

uint32_t zarr_dtype_components(const zarr_dtype *dtype)
{
    return dtype ? dtype->info.components : 0;
}

uint64_t zarr_dtype_component_bits(const zarr_dtype *dtype)
{
    return dtype ? dtype->info.component_bits : 0;
}

const char *zarr_dtype_v3_name(const zarr_dtype *dtype)
{
    return dtype ? dtype->v3_name : NULL;
}

const char *zarr_dtype_v3_configuration(const zarr_dtype *dtype)
{
    return dtype ? dtype->v3_config : NULL;
}

const char *zarr_dtype_numpy(const zarr_dtype *dtype)
{
    return dtype ? dtype->numpy : NULL;
}

const char *zarr_dtype_codec(const zarr_dtype *dtype)
{
    if (!dtype)
        return NULL;
    return dtype->entry->vt.codec ? dtype->entry->vt.codec : "bytes";
}

int zarr_dtype_compare(const zarr_dtype *dtype, const void *a, const void *b)
{
    if (!dtype)
        return 0;
    if (dtype->entry->vt.compare)
        return dtype->entry->vt.compare(&dtype->info, a, b);
    return memcmp(a, b, (size_t)dtype->info.item_bytes);
}

uint32_t zarr_dtype_number(const zarr_dtype *dtype, const void *element, double *out,
                           uint32_t cap)
{
    if (!dtype)
        return 0;
    const uint32_t n = dtype->info.components;
    double all[ZARR_COMPONENTS_MAX];

    if (!dtype->entry->vt.number)
        return 0;
    if (!out)
        cap = 0;
    if (cap >= n) {
        dtype->entry->vt.number(&dtype->info, element, out);
    } else if (cap > 0) {
        dtype->entry->vt.number(&dtype->info, element, all);
        memcpy(out, all, cap * sizeof *out);
    }
    return n;
}

/* r24 and raw_bytes[3] are two spellings of one type. */
static bool same_raw(const zarr_dtype *a, const zarr_dtype *b)
{
    return a->info.kind == ZARR_KIND_RAW && b->info.kind == ZARR_KIND_RAW &&
           a->info.item_bytes == b->info.item_bytes &&
           a->entry->vt.fill_print == zr_dtype_raw.fill_print &&
           b->entry->vt.fill_print == zr_dtype_raw.fill_print;
}

/* Types that differ only in a configuration that says nothing about elements. */
static bool same_but_notes(const zarr_dtype *a, const zarr_dtype *b)
{
    const zarr_dtype_vtable *x = &a->entry->vt, *y = &b->entry->vt;

    return (x->flags & y->flags & ZARR_DTYPE_ANY_CONFIGURATION) &&
           zr_streq(x->name, y->name);
}

int zarr_dtype_equal(const zarr_dtype *a, const zarr_dtype *b)
{
    if (!a || !b)
        return 0;
    /* `optional` and `zarrs.optional` are also one type. */
    while (a != b && zarr_dtype_underlying(a) && zarr_dtype_underlying(b)) {
        a = zarr_dtype_underlying(a);
        b = zarr_dtype_underlying(b);
    }
    /* Within a context types are interned. Types of two contexts are compared by name. */
    if (a == b)
        return 1;
    return a && b &&
           (strcmp(a->info.name, b->info.name) == 0 || same_raw(a, b) ||
            same_but_notes(a, b));
}

struct zr_json *zr_dtype_write_v3(const zarr_dtype *dtype, struct zr_json_doc *doc)
{
    struct zr_json *out = NULL;
    struct zr_json_doc text;

    if (!dtype->v3_json)
        return NULL;
    zr_json_doc_init(&text, doc->arena.alloc);
    if (zr_json_parse(&text, dtype->v3_json, strlen(dtype->v3_json), NULL, NULL) ==
        ZARR_OK)
        out = zr_json_copy(doc, text.root);
    else
        doc->failed = true;
    zr_json_doc_deinit(&text);
    return out;
}
