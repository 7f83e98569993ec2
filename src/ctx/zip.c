/*
 * ctx/zip.c - opens zip archives: by a URL, as any registered store, or under a key of an
 * open store. The room zip reads them.
 * Thread class: shared.
 */
#include "ctx/ctx_int.h"

#include "zip/zip.h"

#include <errno.h>

/* shown: the name of the archive for messages. */
static zarr_status zip_open_key(void **self, zarr_store *store, const char *key,
                                const char *shown, const zarr_store_options *opts,
                                zarr_error *err)
{
    const struct zr_store_env env = zr_ctx_store_env(zr_store_context(store));
    const zarr_status st = zr_zip_open(self, &env, store, key, opts->cancel, err);

    if (st != ZARR_ERR_NOT_FOUND)
        return st;
    if (opts->flags & ZARR_STORE_CREATE)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "%s does not exist, and zarrc writes no zip archives: write a "
                       "folder, and pack it",
                       shown);
    return zr_fail_os(err, st, ENOENT, "%s", shown);
}

/* The archive is the root of its store, so a link to it is followed as one to a folder.
 */
static zarr_status zip_open_url(void **self, zarr_context *ctx, const char *url,
                                const zarr_store_options *opts, const zarr_cancel *cancel,
                                zarr_error *err)
{
    const zarr_store_options inner = {.struct_size = sizeof inner,
                                      .flags = ZARR_STORE_READ_ONLY,
                                      .symlinks = ZARR_SYMLINKS_FOLLOW,
                                      .config = opts->config,
                                      .cancel = cancel};
    zarr_store *store = NULL;
    char *place = NULL, *key = NULL, *shown = NULL;
    zarr_status st = ZARR_OK;

    if (zr_starts_with(url, ZR_STORE_ZIP ":"))
        url += zr_starts_with(url, ZR_STORE_ZIP "://") ? 6 : 4;
    ZR_TRY(zr_archive_split(ctx->alloc, url, &place, &key, err));
    if (*key == '\0')
        ZR_FAIL(err, ZARR_ERR_INVALID, "the URL names no archive");
    ZR_TRY(zarr_store_open(&store, ctx, place, &inner, err));
    ZR_TRY(zr_store_show_url(&shown, ctx->alloc, url, err));
    st = zip_open_key(self, store, key, shown ? shown : url, opts, err);
out:
    zarr_store_free(store);
    zr_free(ctx->alloc, shown);
    zr_free_secret(ctx->alloc, place);
    zr_free(ctx->alloc, key);
    return st;
}

zarr_status zr_ctx_register_zip(zarr_context *ctx, zarr_error *err)
{
    zarr_store_vtable vt = zr_zip_vtable;

    vt.open = zip_open_url;
    return zarr_context_register_store(ctx, &vt, ZR_CTX_CORE, err);
}

zarr_status zarr_store_open_zip(zarr_store **out, zarr_store *store, const char *key,
                                const zarr_store_options *opts, zarr_error *err)
{
    zarr_store_options o;
    struct zr_store_env env;
    struct zr_str url;
    void *self = NULL;
    zarr_status st = ZARR_OK;

    *out = NULL;
    ZR_NEED(store, err);
    ZR_NEED(key, err);
    env = zr_ctx_store_env(zr_store_context(store));
    zr_str_init(&url, env.alloc);
    ZR_TRY(zr_struct_read(&o, sizeof o, 2 * sizeof(uint32_t), opts, ZR_TAIL_REFUSE,
                          "zarr_store_options", err));
    zr_str_printf(&url, ZR_STORE_ZIP ":%s/%s", zarr_store_url(store), key);
    ZR_TRY(zr_str_status(&url, err));
    ZR_TRY(zip_open_key(&self, store, key, zr_str_text(&url), &o, err));
    st = zr_store_open_custom_url(out, &env, &zr_zip_vtable, self, zr_str_text(&url),
                                  opts, err);
out:
    zr_str_deinit(&url);
    return st;
}
