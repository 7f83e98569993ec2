/*
 * ctx/store.c - opens stores. Opening seals the context's registries. It does so before
 * the store looks anything up, so they are sealed also if it then fails. A store gets the
 * parts of the context that it needs here (allocator, log, limits, memory kinds), and
 * does not see the context.
 * Thread class: shared.
 */
#include "ctx/ctx_int.h"

#include <string.h>

static void store_ref_context(zarr_context *ctx)
{
    zarr_context_ref(ctx);
}

struct zr_store_env zr_ctx_store_env(zarr_context *ctx)
{
    return (struct zr_store_env){
        .alloc = ctx->alloc,
        .log = ctx->log,
        .limits = ctx->limits,
        .memory = &ctx->memory,
        .locks = ctx->locks,
        .symlinks = ctx->symlinks,
        .ctx = ctx,
        .ctx_ref = store_ref_context,
        .ctx_unref = zarr_context_free,
    };
}

zarr_status zarr_store_open(zarr_store **out, zarr_context *ctx, const char *url,
                            const zarr_store_options *opts, zarr_error *err)
{
    *out = NULL;
    ZR_NEED(ctx, err);
    const struct zr_store_env env = zr_ctx_store_env(ctx);

    zr_ctx_seal(ctx);
    return zr_store_open(out, ctx->stores, &env, url, opts, err);
}

zarr_status zarr_store_open_custom(zarr_store **out, zarr_context *ctx,
                                   const zarr_store_vtable *vtable, void *self,
                                   const zarr_store_options *opts, zarr_error *err)
{
    *out = NULL;
    ZR_NEED(ctx, err);
    const struct zr_store_env env = zr_ctx_store_env(ctx);

    zr_ctx_seal(ctx);
    return zr_store_open_custom(out, &env, vtable, self, opts, err);
}

zarr_status zr_ctx_open_lent(zarr_store **out, zarr_context *ctx,
                             const struct zr_lent *lent, zarr_error *err)
{
    const struct zr_store_env env = zr_ctx_store_env(ctx);

    zr_ctx_seal(ctx);
    return zr_store_open_lent(out, &env, lent, err);
}

zarr_status zarr_location_parse(zarr_location **out, zarr_context *ctx, const char *text,
                                zarr_error *err)
{
    *out = NULL;
    ZR_NEED(ctx, err);
    const struct zr_store_env env = zr_ctx_store_env(ctx);

    zr_ctx_seal(ctx);
    return zr_location_parse(out, ctx->stores, &env, text, err);
}

zarr_status zr_ctx_open_above(zarr_store **out, char **path, zarr_store *store,
                              zarr_error *err)
{
    zarr_context *ctx = zr_store_context(store);
    zarr_store_options opts = zr_store_options(store);
    zarr_location *at = NULL;
    zarr_status st = ZARR_OK;

    *out = NULL;
    *path = NULL;
    if (!zr_streq(zr_store_name(store), "local"))
        goto out;
    ZR_TRY(zarr_location_parse(&at, ctx, zarr_store_url(store), err));
    if (!at->is_local || at->selection || !*at->path)
        goto out;
    *path = zr_strdup(ctx->alloc, at->path);
    if (!*path)
        ZR_FAIL_MEMORY(err, strlen(at->path) + 1);
    opts.flags &= ~(uint32_t)ZARR_STORE_CREATE;
    st = zarr_store_open(out, ctx, at->url, &opts, err);
out:
    zarr_location_free(at);
    return st;
}
