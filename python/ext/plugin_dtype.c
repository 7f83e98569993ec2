/* plugin_dtype.c - the table of a data type that is written in Python: elements of a
 * fixed size, text or bytes of any length, with fill values that Python reads and writes.
 * Everything else of a type is known when it is registered, because the library asks for
 * it under a lock. */
#include "plugin.h"

#include <stdlib.h>
#include <string.h>

static zarr_status parse(zarr_dtype_info *info, const zarr_dtype_host *host,
                         const char *name, const char *json, zarr_error *err)
{
    const struct zx_plug *p = zx_plug_find(ZARR_REGISTRY_DTYPE, name, NULL);

    (void)host;
    (void)json;
    if (!p)
        return zx_plug_fail(err, ZARR_ERR_INTERNAL, name,
                            "no such data type is registered");
    info->self = (void *)(uintptr_t)p; /* it lives as long as the process */
    info->kind = p->kind;
    info->item_bytes = p->item_bytes;
    info->item_bits = p->item_bits;
    info->swap_bytes = p->swap_bytes;
    info->flags = ZARR_DTYPE_EXPERIMENTAL;
    if (p->item_bytes == 0) {
        info->item_bytes = sizeof(zarr_vlen);
        info->flags |= ZARR_DTYPE_VARIABLE;
    }
    return ZARR_OK;
}

/* Makes an element of any length from the bytes of an answer. */
static zarr_status copy_item(const zarr_dtype_info *info, const struct zx_ask *q,
                             zarr_vlen *item, zarr_error *err)
{
    const zarr_allocator *a = info->allocator;
    void *data = NULL;

    if (q->out_bytes) {
        data = a->alloc(a->user, (size_t)q->out_bytes);
        if (!data)
            return zx_plug_fail(err, ZARR_ERR_NO_MEMORY, info->name,
                                "no memory for the fill value");
        memcpy(data, q->out, (size_t)q->out_bytes);
    }
    *item = (zarr_vlen){.data = data, .bytes = q->out_bytes};
    return ZARR_OK;
}

static zarr_status fill_parse(const zarr_dtype_info *info, int format, const char *json,
                              void *element, zarr_error *err)
{
    const struct zx_plug *p = info->self;
    struct zx_ask q = {
        .what = ZX_ASK_FILL_PARSE, .number = p->number, .json = json, .format = format};
    zarr_status status = zx_ask(&q, err);
    zarr_vlen item;

    if (status == ZARR_OK && (info->flags & ZARR_DTYPE_VARIABLE)) {
        status = copy_item(info, &q, &item, err);
        if (status == ZARR_OK)
            memcpy(element, &item, sizeof item);
    } else if (status == ZARR_OK && q.out_bytes != info->item_bytes) {
        status = zx_plug_fail(err, ZARR_ERR_INVALID, p->name,
                              "the fill value does not have the size of an element");
    } else if (status == ZARR_OK) {
        memcpy(element, q.out, (size_t)q.out_bytes);
    }
    free(q.out);
    return status;
}

static zarr_status fill_print(const zarr_dtype_info *info, int format,
                              const void *element, char *text, size_t cap,
                              size_t *text_bytes, zarr_error *err)
{
    const struct zx_plug *p = info->self;
    zarr_vlen item = {.data = element, .bytes = info->item_bytes};
    struct zx_ask q = {.what = ZX_ASK_FILL_PRINT, .number = p->number, .format = format};
    zarr_status status;

    if (info->flags & ZARR_DTYPE_VARIABLE)
        memcpy(&item, element, sizeof item);
    q.element = item.data;
    q.item_bytes = item.bytes;
    status = zx_ask(&q, err);
    zx_ask_text(&q, text, cap, text_bytes);
    return status;
}

static const char *default_codec(const struct zx_plug *p)
{
    if (p->item_bytes)
        return NULL;
    return p->kind == ZARR_KIND_STRING ? "vlen-utf8" : "vlen-bytes";
}

zarr_status zx_dtype_register(zarr_context *ctx, const struct zx_plug *p, zarr_error *err)
{
    const zarr_dtype_vtable vt = {.struct_size = sizeof vt,
                                  .flags = ZARR_DTYPE_ANY_CONFIGURATION |
                                           (p->other ? ZARR_DTYPE_V2_PLAIN : 0u),
                                  .name = p->name,
                                  .v2 = p->other,
                                  .codec = default_codec(p),
                                  .parse = parse,
                                  .fill_parse = fill_parse,
                                  .fill_print = fill_print};

    return zarr_context_register_dtype(ctx, &vt, "zarrc.plugins", err);
}
