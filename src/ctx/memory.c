/*
 * ctx/memory.c - zarr_memory_*: memory of any kind for applications, through the backends
 * that the context knows. This memory is not pooled and does not count in the byte
 * budget.
 * Thread class: shared.
 */
#include "ctx/ctx_int.h"

#include <string.h>

/* Before sealing another thread may be registering a backend. */
static zarr_status find_backend(zarr_context *ctx, int32_t device_type,
                                const struct zr_backend **out, zarr_error *err)
{
    const bool locked = zr_ctx_look_begin(ctx);
    const zarr_status st = zr_backend_find(&ctx->memory, device_type, out, err);

    zr_ctx_look_end(ctx, locked);
    return st;
}

/* ---- blocks of allocators ---------------------------------------------------------- */

/* A block that the backend of its kind did not allocate. */
struct zr_ctx_block {
    struct zr_ctx_block *next;
    const void *handle;
    const struct zr_backend *from;
};

static zarr_status block_note(zarr_context *ctx, const zarr_memory *mem,
                              const struct zr_backend *from, zarr_error *err)
{
    struct zr_ctx_block *b = zr_malloc(ctx->alloc, sizeof *b);

    if (!b)
        return zr_fail_memory(err, sizeof *b);
    *b = (struct zr_ctx_block){.handle = mem->handle, .from = from};
    zr_mutex_lock(&ctx->locked.mutex);
    b->next = ctx->locked.blocks;
    ctx->locked.blocks = b;
    zr_mutex_unlock(&ctx->locked.mutex);
    return ZARR_OK;
}

/* Returns who allocated a block, and forgets it; NULL: the backend of its kind. */
static const struct zr_backend *block_forget(zarr_context *ctx, const zarr_memory *mem)
{
    struct zr_ctx_block **at, *b;
    const struct zr_backend *from = NULL;

    zr_mutex_lock(&ctx->locked.mutex);
    for (at = &ctx->locked.blocks; *at; at = &(*at)->next)
        if ((*at)->handle == mem->handle &&
            (*at)->from->vt.device_type == mem->device_type)
            break;
    b = *at;
    if (b) {
        *at = b->next;
        from = b->from;
    }
    zr_mutex_unlock(&ctx->locked.mutex);
    zr_free(ctx->alloc, b);
    return from;
}

void zr_ctx_blocks_free(zarr_context *ctx)
{
    for (struct zr_ctx_block *b = ctx->locked.blocks, *next; b; b = next) {
        next = b->next;
        zr_free(ctx->alloc, b);
    }
}

/* `usual`: the backend of the kind, or NULL. */
static zarr_status alloc_from(zarr_context *ctx, const struct zr_backend *from,
                              const struct zr_backend *usual, int32_t device_id,
                              uint64_t bytes, zarr_memory *out, zarr_error *err)
{
    zarr_status st = from->vt.alloc(from->self, device_id, bytes, out, err);

    if (st != ZARR_OK || from == usual || !out->handle)
        return st;
    st = block_note(ctx, out, from, err);
    if (st != ZARR_OK) {
        from->vt.free(from->self, out);
        *out = (zarr_memory){0};
    }
    return st;
}

/* ---- door ---------------------------------------------------------------------- */

zarr_status zarr_memory_alloc(zarr_memory *out, zarr_context *ctx, int32_t device_type,
                              int32_t device_id, uint64_t bytes, zarr_error *err)
{
    const struct zr_backend *backend = NULL;

    ZR_NEED(ctx, err);
    *out = (zarr_memory){0};
    if (device_type == 0)
        device_type = ZARR_DEVICE_CPU;
    ZR_CHECK(find_backend(ctx, device_type, &backend, err));
    return alloc_from(ctx, zr_backend_allocator(&ctx->memory, backend), backend,
                      device_id, bytes, out, err);
}

zarr_status zarr_memory_alloc_from(zarr_memory *out, zarr_context *ctx,
                                   const char *backend, int32_t device_id, uint64_t bytes,
                                   zarr_error *err)
{
    ZR_NEED(ctx, err);
    const bool locked = zr_ctx_look_begin(ctx);
    const struct zr_backend *from =
        backend ? zr_backend_find_by_name(&ctx->memory, backend, strlen(backend)) : NULL;
    const struct zr_backend *usual = NULL;

    if (from)
        (void)zr_backend_find(&ctx->memory, from->vt.device_type, &usual, NULL);
    zr_ctx_look_end(ctx, locked);
    *out = (zarr_memory){0};
    if (!from)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED, "there is no memory backend \"%s\"",
                       backend ? backend : "");
    return alloc_from(ctx, from, usual, device_id, bytes, out, err);
}

void zarr_memory_free(zarr_context *ctx, zarr_memory *mem)
{
    const struct zr_backend *backend = NULL;

    if (!mem || !mem->handle)
        return;
    backend = mem->device_type == ZARR_DEVICE_CPU ? NULL : block_forget(ctx, mem);
    if (backend || find_backend(ctx, mem->device_type, &backend, NULL) == ZARR_OK)
        backend->vt.free(backend->self, mem);
    *mem = (zarr_memory){0};
}

zarr_status zarr_memory_copy(zarr_context *ctx, const zarr_memory *dst,
                             const zarr_memory *src, uint64_t bytes, zarr_error *err)
{
    struct zr_copy_counters counters = {0};
    const struct zr_backend *backend = NULL;

    ZR_NEED(ctx, err);
    ZR_CHECK(find_backend(ctx, dst->device_type, &backend, err));
    ZR_CHECK(find_backend(ctx, src->device_type, &backend, err));
    if (bytes > dst->bytes || bytes > src->bytes)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "%" PRIu64 " bytes do not fit: from %" PRIu64 " to %" PRIu64
                       " bytes",
                       bytes, src->bytes, dst->bytes);
    if (bytes > 0 && (!src->handle || !dst->handle))
        return zr_fail(err, ZARR_ERR_INVALID, "a range of %" PRIu64 " bytes is NULL",
                       bytes);
    return zr_mem_copy_bytes(&ctx->memory, dst, src, bytes, &counters, err);
}

static bool is_letter(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* The backend of a name, or of a kind of memory. */
static const struct zr_backend *find_backend_by_name(zarr_context *ctx, const char *name,
                                                     size_t bytes)
{
    const bool locked = zr_ctx_look_begin(ctx);
    const struct zr_backend *be = zr_backend_find_by_name(&ctx->memory, name, bytes);
    int32_t kind = be ? be->vt.device_type : 0;

    /* who allocates the memory need not know the devices */
    if (kind != 0 || zr_kind_parse(name, bytes, &kind))
        (void)zr_backend_find(&ctx->memory, kind, &be, NULL);
    zr_ctx_look_end(ctx, locked);
    return be;
}

static zarr_status find_device(const struct zr_backend *be, const char *text,
                               int32_t *device_id, zarr_error *err)
{
    const zarr_status st = be->vt.find(be->self, text, device_id, err);

    if (st == ZARR_OK && *device_id < 0)
        return zr_fail(err, ZARR_ERR_DEVICE,
                       "memory backend \"%s\": device \"%s\" has the number %" PRId32,
                       be->vt.name, text, *device_id);
    return st;
}

zarr_status zarr_memory_parse(zarr_context *ctx, const char *text, int32_t *device_type,
                              int32_t *device_id, zarr_error *err)
{
    const char *which = text ? strchr(text, ':') : NULL;
    const size_t n = which ? (size_t)(which++ - text) : strlen(text ? text : "");
    const bool named = which && is_letter(*which);
    const struct zr_backend *be = NULL;

    *device_type = *device_id = 0;
    if (text && zr_device_parse(text, device_type, device_id))
        return ZARR_OK;
    if (text && ctx)
        be = find_backend_by_name(ctx, text, n);
    if (be)
        *device_type = be->vt.device_type;
    if (be && (!which || zr_device_number(which, device_id)))
        return ZARR_OK;
    if (be && named && be->vt.find)
        return find_device(be, which, device_id, err);
    if (!be && named && zr_kind_parse(text, n, device_type)) {
        zr_backend_fail_missing(*device_type, err);
        return ZARR_ERR_UNSUPPORTED;
    }
    *device_type = 0;
    return zr_fail(err, ZARR_ERR_INVALID,
                   "\"%s\" is not a kind of memory, such as host, cuda:0 or 2:0",
                   text ? text : "");
}

void zarr_memory_classify(zarr_context *ctx, const void *pointer, int32_t *device_type,
                          int32_t *device_id)
{
    if (!ctx)
        return;
    const bool locked = zr_ctx_look_begin(ctx);

    zr_mem_classify(&ctx->memory, pointer, device_type, device_id);
    zr_ctx_look_end(ctx, locked);
}
