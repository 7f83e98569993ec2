/*
 * ctx/http.c - registers the stores of http, https and s3. The rooms http and s3 read
 * them. AWS has variables that all its programs read when they open something, so they
 * are read here, and not when the context is created. Thread class: shared.
 */
#include "ctx/ctx_int.h"

#include <stdlib.h>

#include "http/http.h"
#include "s3/s3.h"

static zarr_status http_open(void **self, zarr_context *ctx, const char *url,
                             const zarr_store_options *opts, const zarr_cancel *cancel,
                             zarr_error *err)
{
    const struct zr_store_env env = zr_ctx_store_env(ctx);

    ZR_UNUSED(cancel); /* no request is sent */
    return zr_http_open(self, &env, url, opts->config, err);
}

zarr_status zr_ctx_register_http(zarr_context *ctx, zarr_error *err)
{
    zarr_store_vtable vt = zr_http_vtable;
    zarr_status st = ZARR_OK;

    vt.open = http_open;
    ZR_TRY(zarr_context_register_store(ctx, &vt, ZR_CTX_CORE, err));
    vt.name = "https";
    st = zarr_context_register_store(ctx, &vt, ZR_CTX_CORE, err);
out:
    return st;
}

/* Credentials and paths of files: not with another user's rights. */
static const char *s3_variable(const char *name)
{
    return secure_getenv(name);
}

static zarr_status s3_open(void **self, zarr_context *ctx, const char *url,
                           const zarr_store_options *opts, const zarr_cancel *cancel,
                           zarr_error *err)
{
    const struct zr_store_env env = zr_ctx_store_env(ctx);

    ZR_UNUSED(cancel); /* no request is sent */
    return zr_s3_open(self, &env, url, opts->config, s3_variable, err);
}

zarr_status zr_ctx_register_s3(zarr_context *ctx, zarr_error *err)
{
    zarr_store_vtable vt = zr_s3_vtable;

    vt.open = s3_open;
    return zarr_context_register_store(ctx, &vt, ZR_CTX_CORE, err);
}
