/*
 * ctx/dtype.c - looking a data type up for applications. The registry does it;
 * a context is needed because it owns the types that are made on the way.
 * Thread class: shared.
 */
#include "ctx/ctx.h"

zarr_status zarr_dtype_find(zarr_context *ctx, const char *name, const zarr_dtype **out,
                            zarr_error *err)
{
    *out = NULL;
    if (!name)
        return zr_fail(err, ZARR_ERR_INVALID, "no data type is named");
    return zr_dtype_find(&ctx->dtypes, name, out, NULL, err);
}

zarr_status zarr_dtype_from_dlpack(zarr_context *ctx, uint8_t code, uint8_t bits,
                                   uint16_t lanes, const zarr_dtype **out,
                                   zarr_error *err)
{
    *out = NULL;
    return zr_dtype_from_dlpack(&ctx->dtypes, code, bits, lanes, out, err);
}

zarr_status zarr_dtype_from_numpy(zarr_context *ctx, const char *numpy,
                                  const zarr_dtype **out, zarr_error *err)
{
    *out = NULL;
    return zr_dtype_from_numpy(&ctx->dtypes, numpy, out, NULL, err);
}
