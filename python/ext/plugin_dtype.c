/* plugin_dtype.c - the table of a data type that is written in Python: elements of a
 * fixed size, with fill values that Python reads and writes. Everything else of a type is
 * known when it is registered, because the library asks for it under a lock. */
#include "plugin.h"

#include <stdlib.h>
#include <string.h>

static zarr_status unknown(zarr_error *err, const char *name)
{
    return zx_plug_fail(err, ZARR_ERR_INTERNAL, name, "no such data type is registered");
}

static zarr_status parse(zarr_dtype_info *info, const zarr_dtype_host *host,
                         const char *name, const char *json, zarr_error *err)
{
    const struct zx_plug *p = zx_plug_find(ZARR_REGISTRY_DTYPE, name);

    (void)host;
    (void)json;
    if (!p)
        return unknown(err, name);
    info->kind = ZARR_KIND_OTHER;
    info->item_bytes = p->item_bytes;
    info->swap_bytes = p->swap_bytes;
    info->flags = ZARR_DTYPE_EXPERIMENTAL;
    return ZARR_OK;
}

static zarr_status fill_parse(const zarr_dtype_info *info, int format, const char *json,
                              void *element, zarr_error *err)
{
    const struct zx_plug *p = zx_plug_find(ZARR_REGISTRY_DTYPE, info->name);
    struct zx_ask q = {.what = ZX_ASK_FILL_PARSE, .json = json, .format = format};
    zarr_status status;

    if (!p)
        return unknown(err, info->name);
    q.number = p->number;
    status = zx_ask(&q, err);
    if (status == ZARR_OK && q.out_bytes != info->item_bytes)
        status = zx_plug_fail(err, ZARR_ERR_INVALID, p->name,
                              "the fill value does not have the size of an element");
    if (status == ZARR_OK)
        memcpy(element, q.out, (size_t)q.out_bytes);
    free(q.out);
    return status;
}

static zarr_status fill_print(const zarr_dtype_info *info, int format,
                              const void *element, char *text, size_t cap,
                              size_t *text_bytes, zarr_error *err)
{
    const struct zx_plug *p = zx_plug_find(ZARR_REGISTRY_DTYPE, info->name);
    struct zx_ask q = {.what = ZX_ASK_FILL_PRINT,
                       .format = format,
                       .element = element,
                       .item_bytes = info->item_bytes};
    zarr_status status;

    if (!p)
        return unknown(err, info->name);
    q.number = p->number;
    status = zx_ask(&q, err);
    zx_ask_text(&q, text, cap, text_bytes);
    return status;
}

zarr_status zx_dtype_register(zarr_context *ctx, const struct zx_plug *p, zarr_error *err)
{
    const zarr_dtype_vtable vt = {.struct_size = sizeof vt,
                                  .flags = ZARR_DTYPE_ANY_CONFIGURATION,
                                  .name = p->name,
                                  .parse = parse,
                                  .fill_parse = fill_parse,
                                  .fill_print = fill_print};

    return zarr_context_register_dtype(ctx, &vt, "zarrc.plugins", err);
}
