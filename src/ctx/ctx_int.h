/*
 * ctx/ctx_int.h - what the files of this room share. Not for other rooms.
 */
#ifndef ZR_CTX_INT_H
#define ZR_CTX_INT_H

#include "ctx/ctx.h"

struct zr_ctx_row {
    uint32_t registry; /* ZARR_REGISTRY_* */
    uint32_t index;    /* in its registry, where that counts */
    const char *name;  /* the vtable's */
    const char *origin;
};

/* The caller's options with environment and defaults filled in. */
zarr_status zr_ctx_options_read(zarr_context_options *out,
                                const zarr_context_options *opts, zarr_error *err);
zarr_status zr_ctx_limits_read(zarr_limits *out, const zarr_limits *limits,
                               zarr_error *err);

/* Registers everything that is in this build. */
zarr_status zr_ctx_register_core(zarr_context *ctx, zarr_error *err);
zarr_status zr_ctx_register_pipeline(zarr_context *ctx,
                                     const struct zr_pipeline *pipeline, zarr_error *err);
#define ZR_CTX_CORE "core"

#endif
