/*
 * node/env.c - what parsing and writing metadata needs of a context.
 * Thread class: plain function.
 */
#include "node/node.h"

struct zr_meta_env zr_meta_env_make(const zarr_context *ctx, bool stored)
{
    zarr_context *c =
        (zarr_context *)(uintptr_t)ctx; /* types are interned under a lock */

    return (struct zr_meta_env){
        .dtypes = &c->dtypes,
        .codecs = &ctx->codecs,
        .grids = &ctx->grids,
        .limits = &ctx->limits,
        .alloc = ctx->alloc,
        .stored = stored,
    };
}
