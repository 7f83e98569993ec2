/*
 * ctx/memory.c - zarr_mem_*: memory of any kind for applications, through the backends
 * that the context knows. This memory is not pooled and does not count in the byte
 * budget.
 * Thread class: shared.
 */
#include "ctx/ctx_int.h"

/* Before sealing another thread may be registering a backend. */
static zarr_status find_backend(zarr_context *ctx, int32_t device_type,
                                const struct zr_backend **out, zarr_error *err)
{
    const bool locked = zr_ctx_look_begin(ctx);
    const zarr_status st = zr_backend_find(&ctx->memory, device_type, out, err);

    zr_ctx_look_end(ctx, locked);
    return st;
}

zarr_status zarr_mem_alloc(zarr_context *ctx, int32_t device_type, int32_t device_id,
                           uint64_t bytes, zarr_mem *out, zarr_error *err)
{
    const struct zr_backend *backend = NULL;
    zarr_status st = ZARR_OK;

    *out = (zarr_mem){0};
    if (device_type == 0)
        device_type = ZARR_DEVICE_CPU;
    ZR_TRY(find_backend(ctx, device_type, &backend, err));
    ZR_TRY(backend->vt.alloc(backend->self, device_id, bytes, out, err));
out:
    return st;
}

void zarr_mem_free(zarr_context *ctx, zarr_mem *mem)
{
    const struct zr_backend *backend = NULL;

    if (!mem || !mem->handle)
        return;
    if (find_backend(ctx, mem->device_type, &backend, NULL) == ZARR_OK &&
        backend->vt.free)
        backend->vt.free(backend->self, mem);
    *mem = (zarr_mem){0};
}

zarr_status zarr_mem_copy(zarr_context *ctx, const zarr_mem *dst, const zarr_mem *src,
                          uint64_t bytes, zarr_error *err)
{
    struct zr_copy_counters counters = {0};
    const struct zr_backend *backend = NULL;
    zarr_status st = ZARR_OK;

    ZR_TRY(find_backend(ctx, dst->device_type, &backend, err));
    ZR_TRY(find_backend(ctx, src->device_type, &backend, err));
    if (bytes > dst->bytes || bytes > src->bytes)
        ZR_TRY(zr_fail(err, ZARR_ERR_INVALID,
                       "%" PRIu64 " bytes do not fit: from %" PRIu64 " to %" PRIu64
                       " bytes",
                       bytes, src->bytes, dst->bytes));
    ZR_TRY(zr_mem_copy_bytes(&ctx->memory, dst, src, bytes, &counters, err));
out:
    return st;
}

void zarr_mem_classify(zarr_context *ctx, const void *pointer, int32_t *device_type,
                       int32_t *device_id)
{
    const bool locked = zr_ctx_look_begin(ctx);

    zr_mem_classify(&ctx->memory, pointer, device_type, device_id);
    zr_ctx_look_end(ctx, locked);
}
