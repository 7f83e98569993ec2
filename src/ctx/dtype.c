/*
 * ctx/dtype.c - data type look-ups for applications. The registry does them. A context is
 * needed because it owns the types that are made meanwhile, and because it locks out
 * registration until it is sealed. Code that registers something asks the registry, never
 * this file.
 * Thread class: shared.
 */
#include "ctx/ctx_int.h"

zarr_status zarr_dtype_find(const zarr_dtype **out, zarr_context *ctx, const char *name,
                            zarr_error *err)
{
    zarr_status st;
    bool locked;

    *out = NULL;
    ZR_NEED(ctx, err);
    if (!name)
        return zr_fail(err, ZARR_ERR_INVALID, "no data type is named");
    locked = zr_ctx_look_begin(ctx);
    st = zr_dtype_find_any(&ctx->dtypes, name, out, NULL, err);
    zr_ctx_look_end(ctx, locked);
    return st;
}

zarr_status zarr_dtype_find_order(const zarr_dtype **out, zarr_context *ctx,
                                  const char *name, uint32_t *byte_order, zarr_error *err)
{
    *out = NULL;
    ZR_NEED(ctx, err);
    const bool locked = zr_ctx_look_begin(ctx);
    zarr_status st;

    *byte_order = ZR_ORDER_NATIVE;
    st = zr_dtype_find_order(&ctx->dtypes, name, out, byte_order, err);
    zr_ctx_look_end(ctx, locked);
    return st;
}

zarr_status zarr_dtype_from_dlpack(const zarr_dtype **out, zarr_context *ctx,
                                   uint8_t code, uint8_t bits, uint16_t lanes,
                                   zarr_error *err)
{
    *out = NULL;
    ZR_NEED(ctx, err);
    const bool locked = zr_ctx_look_begin(ctx);
    zarr_status st;

    st = zr_dtype_from_dlpack(&ctx->dtypes, code, bits, lanes, out, err);
    zr_ctx_look_end(ctx, locked);
    return st;
}
