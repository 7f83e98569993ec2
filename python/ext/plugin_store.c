/* plugin_store.c - the table of a kind of stores that is written in Python. Its scheme is
 * in the library's registry, so that URLs of it work wherever the library opens one.
 * Python makes the store; its operations go the way of all stores of Python (foreign.c).
 */
#include "plugin.h"

#include <string.h>

static zarr_status scheme_open(void **self, zarr_context *ctx, const char *url,
                               const zarr_store_options *opts, const zarr_cancel *cancel,
                               zarr_error *err)
{
    const char *colon = strchr(url, ':');
    char scheme[ZX_NAME_BYTES] = "";
    struct zx_foreign_spec spec = {0};
    struct zx_ask q = {.what = ZX_ASK_OPEN,
                       .json = url,
                       .more = opts ? opts->config : NULL,
                       .format = opts ? (int32_t)opts->flags : 0,
                       .store = &spec};
    const struct zx_plug *p;
    zarr_status status;

    (void)cancel;
    (void)ctx;
    if (colon && (size_t)(colon - url) < sizeof scheme)
        memcpy(scheme, url, (size_t)(colon - url));
    p = zx_plug_find(ZARR_REGISTRY_STORE, scheme, NULL);
    if (!p)
        return zx_plug_fail(err, ZARR_ERR_INTERNAL, scheme,
                            "no such store is registered");
    q.number = p->number;
    status = zx_ask(&q, err);
    if (status)
        return status;
    *self = zx_foreign_new(&spec, err);
    zx_box_unref(spec.box);
    return *self ? ZARR_OK : ZARR_ERR_NO_MEMORY;
}

zarr_status zx_scheme_register(zarr_context *ctx, const struct zx_plug *p,
                               zarr_error *err)
{
    const struct zx_foreign_spec all = {.can_flush = 1};
    zarr_store_vtable vt;

    zx_foreign_table(&vt, &all);
    vt.name = p->name;
    vt.open = scheme_open;
    return zarr_context_register_store(ctx, &vt, "zarrc.plugins", err);
}
