/*
 * ctx/builtin.c - the only table of built-ins. Every room has a list of its own things.
 * They are registered here with the calls that applications use, under the origin "core",
 * before an application can register anything. So nothing can replace a core name.
 * Thread class: solo, while the context is created; stores open in plain functions.
 */
#include "ctx/ctx_int.h"

#include "codecs/codecs.h"
#include "http/http.h"
#include "s3/s3.h"

#include <stdlib.h>

static zarr_status http_open(void **self, zarr_context *ctx, const char *url,
                             const zarr_store_options *opts, const zarr_cancel *cancel,
                             zarr_error *err)
{
    const struct zr_store_env env = zr_ctx_store_env(ctx);

    ZR_UNUSED(cancel); /* no request is sent */
    return zr_http_open(self, &env, url, opts->config, err);
}

static zarr_status register_http(zarr_context *ctx, zarr_error *err)
{
    zarr_store_vtable vt = zr_http_vtable;

    vt.open = http_open;
    ZR_CHECK(zarr_context_register_store(ctx, &vt, ZR_CTX_CORE, err));
    vt.name = "https";
    return zarr_context_register_store(ctx, &vt, ZR_CTX_CORE, err);
}

/* AWS has variables that all its programs read when they open something, so they are read
 * here, and not when the context is created. They are credentials and paths of files:
 * they do not count in a process with another user's rights. */
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

static zarr_status register_s3(zarr_context *ctx, zarr_error *err)
{
    zarr_store_vtable vt = zr_s3_vtable;

    vt.open = s3_open;
    return zarr_context_register_store(ctx, &vt, ZR_CTX_CORE, err);
}

static zarr_status register_core_grids(zarr_context *ctx, zarr_error *err)
{
    static const zarr_grid_vtable *const grids[] = {
        &zr_grid_regular, &zr_grid_rectilinear, &zr_grid_bounded};
    static const zarr_key_encoding_vtable *const encodings[] = {
        &zr_key_default, &zr_key_v2, &zr_key_default_suffix, &zr_key_suffix};

    for (size_t i = 0; i < ZR_COUNT(grids); i++)
        ZR_CHECK(zarr_context_register_grid(ctx, grids[i], ZR_CTX_CORE, err));
    for (size_t i = 0; i < ZR_COUNT(encodings); i++)
        ZR_CHECK(zarr_context_register_key_encoding(ctx, encodings[i], ZR_CTX_CORE, err));
    return ZARR_OK;
}

static zarr_status register_codecs(zarr_context *ctx,
                                   const zarr_codec_spec_vtable *const *specs,
                                   const zarr_codec_impl_vtable *const *impls,
                                   zarr_error *err)
{
    for (; *specs; specs++)
        ZR_CHECK(zarr_context_register_codec_spec(ctx, *specs, ZR_CTX_CORE, err));
    for (; *impls; impls++)
        ZR_CHECK(zarr_context_register_codec_impl(ctx, *impls, ZR_CTX_CORE, err));
    return ZARR_OK;
}

static zarr_status register_core_codecs(zarr_context *ctx, zarr_error *err)
{
    ctx->impls.absent = zr_codecs_absent;
    ZR_CHECK(register_codecs(ctx, zr_chain_specs, zr_impl_core, err));
    return register_codecs(ctx, zr_codecs_specs, zr_codecs_impls, err);
}

static zarr_status register_core_pipelines(zarr_context *ctx, zarr_error *err)
{
    static const zarr_pipeline_vtable *const pipelines[] = {&zr_pipeline_waves,
                                                            &zr_pipeline_serial};

    for (size_t i = 0; i < ZR_COUNT(pipelines); i++)
        ZR_CHECK(
            zarr_context_register_pipeline(ctx, pipelines[i], NULL, ZR_CTX_CORE, err));
    return ZARR_OK;
}

zarr_status zr_ctx_register_core(zarr_context *ctx, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    ctx->locked.core = true;
    for (size_t i = 0; zr_dtype_core[i]; i++)
        ZR_TRY(zarr_context_register_dtype(ctx, zr_dtype_core[i], ZR_CTX_CORE, err));
    ZR_TRY(register_core_grids(ctx, err));
    ZR_TRY(register_core_codecs(ctx, err));
    ZR_TRY(zr_store_registry_add_core(
        ctx->stores,
        err)); /* local and memory; the memory registry already has host memory */
    ZR_TRY(zr_ctx_register_zip(ctx, err));
    ZR_TRY(register_http(ctx, err));
    ZR_TRY(register_s3(ctx, err));
    ZR_TRY(register_core_pipelines(ctx, err));
out:
    ctx->locked.core = false;
    return st;
}
