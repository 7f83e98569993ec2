/*
 * ctx/register.c - all registrations of a context, of built-ins and of applications. Each
 * call checks that the context is not sealed, lets the owning room check and copy the
 * table, and adds a row for zarr_context_list(). It reserves the memory of the row first,
 * so a registration happens completely or not at all. Sealing ends registration and
 * reports entries that nothing can use. After it the registries are read without a lock;
 * before it look-ups hold the register lock.
 * Thread class: shared; the context's register lock is held throughout.
 */
#include "ctx/ctx_int.h"

#include <string.h>

/* Takes the lock, also when it fails. Index and name of the row are set later. */
static zarr_status register_begin(zarr_context *ctx, uint32_t registry,
                                  const void *vtable, const char *origin, zarr_error *err)
{
    const char *copy = ZR_CTX_CORE;

    zr_mutex_lock(&ctx->locked.mutex);
    if (!vtable || !origin || !*origin)
        return zr_fail(err, ZARR_ERR_INVALID, "registering needs a table and an origin");
    if (!zr_is_plain_line(origin))
        return zr_fail(err, ZARR_ERR_INVALID, "origin \"%.64s\": it is printable ASCII",
                       origin);
    if (atomic_load(&ctx->sealed))
        return zr_fail(
            err, ZARR_ERR_INVALID,
            "the context is sealed: register before the first store is opened");
    if (!ctx->locked.core) {
        if (zr_streq(origin, ZR_CTX_CORE))
            return zr_fail(err, ZARR_ERR_INVALID, "origin \"%s\" is the library's own",
                           ZR_CTX_CORE);
        copy = zr_arena_strndup(&ctx->locked.texts, origin, strlen(origin));
        if (!copy)
            return zr_fail_memory(err, strlen(origin));
    }
    ZR_CHECK(zr_grow(ctx->alloc, &ctx->locked.rows, &ctx->locked.cap_rows,
                     ctx->locked.n_rows + 1, sizeof *ctx->locked.rows, err));
    ctx->locked.rows[ctx->locked.n_rows] =
        (struct zr_ctx_row){.registry = registry, .origin = copy};
    return ZARR_OK;
}

static struct zr_ctx_row *register_row(zarr_context *ctx)
{
    return &ctx->locked.rows[ctx->locked.n_rows];
}

/* Ends a registration; the error of a failed one names the origin. */
static zarr_status register_end(zarr_context *ctx, zarr_status st, const char *name,
                                const char *origin, zarr_error *err)
{
    if (st == ZARR_OK) {
        register_row(ctx)->name = name;
        ctx->locked.n_rows++;
    } else if (origin && !ctx->locked.core) {
        (void)zr_prefix(err, st, "%s", origin);
    }
    zr_mutex_unlock(&ctx->locked.mutex);
    return st;
}

zarr_status zarr_context_register_dtype(zarr_context *ctx,
                                        const zarr_dtype_vtable *vtable,
                                        const char *origin, zarr_error *err)
{
    ZR_NEED(ctx, err);
    zarr_status st = register_begin(ctx, ZARR_REGISTRY_DTYPE, vtable, origin, err);

    if (st == ZARR_OK)
        st = zr_dtype_register(&ctx->dtypes, vtable, register_row(ctx)->origin, err);
    return register_end(ctx, st, NULL, origin,
                        err); /* data types list themselves; some have no v3 name */
}

/* If v2 has another codec by that name, the library does not guess which of the two an
 * implementation is for: the values would be wrong. */
static zarr_status formats_unsaid(const zarr_codec_impl_vtable *vt, zarr_error *err)
{
    if (vt->caps & (ZARR_CODEC_FOR_V2 | ZARR_CODEC_FOR_V3))
        return ZARR_OK;
    return zr_fail(err, ZARR_ERR_INVALID,
                   "codec implementation \"%s\": Zarr v2 has a codec \"%s\" of its own: "
                   "ZARR_CODEC_FOR_V2 or ZARR_CODEC_FOR_V3 must say which one it does",
                   vt->impl, vt->codec);
}

/* Runs before the room checks the table; the room reports other faults. */
static zarr_status check_impl_formats(const zarr_context *ctx,
                                      const zarr_codec_impl_vtable *vt, zarr_error *err)
{
    const bool whole = vt->struct_size >= offsetof(zarr_codec_impl_vtable, size_hint);

    if (!whole || !vt->codec || !vt->impl ||
        !zr_codec_spec_has(&ctx->codecs, vt->codec, true))
        return ZARR_OK;
    return formats_unsaid(vt, err);
}

/* An implementation may be registered before its specification. One of another origin
 * that is already there cannot mean the new specification. */
static zarr_status check_spec_formats(const zarr_context *ctx,
                                      const zarr_codec_spec_vtable *vt,
                                      const char *origin, zarr_error *err)
{
    const bool whole = vt->struct_size >= offsetof(zarr_codec_spec_vtable, chains);
    zarr_status st = ZARR_OK;

    if (!whole || !vt->name || !(vt->flags & ZARR_CODEC_SPEC_V2))
        return ZARR_OK;
    for (size_t i = 0; i < zr_impl_count(&ctx->impls) && st == ZARR_OK; i++) {
        const struct zr_impl *impl = zr_impl_at(&ctx->impls, i);

        if (zr_streq(impl->vt.codec, vt->name) && zr_streq(impl->entry.origin, origin))
            st = formats_unsaid(&impl->vt, err);
    }
    return st;
}

zarr_status zarr_context_register_codec_spec(zarr_context *ctx,
                                             const zarr_codec_spec_vtable *vtable,
                                             const char *origin, zarr_error *err)
{
    ZR_NEED(ctx, err);
    zarr_status st = register_begin(ctx, ZARR_REGISTRY_CODEC, vtable, origin, err);

    if (st == ZARR_OK)
        st = check_spec_formats(ctx, vtable, origin, err);
    if (st == ZARR_OK)
        st = zr_codec_spec_register(&ctx->codecs, vtable, register_row(ctx)->origin, err);
    if (st == ZARR_OK)
        register_row(ctx)->index = vtable->flags & ZARR_CODEC_SPEC_V2;
    return register_end(ctx, st, st == ZARR_OK ? vtable->name : NULL, origin, err);
}

zarr_status zarr_context_register_codec_impl(zarr_context *ctx,
                                             const zarr_codec_impl_vtable *vtable,
                                             const char *origin, zarr_error *err)
{
    ZR_NEED(ctx, err);
    zarr_status st = register_begin(ctx, ZARR_REGISTRY_CODEC_IMPL, vtable, origin, err);

    if (st == ZARR_OK)
        st = check_impl_formats(ctx, vtable, err);
    if (st == ZARR_OK) {
        register_row(ctx)->index = (uint32_t)zr_impl_count(&ctx->impls);
        st = zr_impl_register(&ctx->impls, vtable, register_row(ctx)->origin, err);
    }
    return register_end(ctx, st, st == ZARR_OK ? vtable->impl : NULL, origin, err);
}

zarr_status zarr_context_register_grid(zarr_context *ctx, const zarr_grid_vtable *vtable,
                                       const char *origin, zarr_error *err)
{
    ZR_NEED(ctx, err);
    zarr_status st = register_begin(ctx, ZARR_REGISTRY_GRID, vtable, origin, err);

    if (st == ZARR_OK)
        st = zr_grid_register(&ctx->grids, vtable, register_row(ctx)->origin, err);
    return register_end(ctx, st, st == ZARR_OK ? vtable->name : NULL, origin, err);
}

zarr_status zarr_context_register_key_encoding(zarr_context *ctx,
                                               const zarr_key_encoding_vtable *vtable,
                                               const char *origin, zarr_error *err)
{
    ZR_NEED(ctx, err);
    zarr_status st = register_begin(ctx, ZARR_REGISTRY_KEY_ENCODING, vtable, origin, err);

    if (st == ZARR_OK)
        st =
            zr_key_encoding_register(&ctx->grids, vtable, register_row(ctx)->origin, err);
    return register_end(ctx, st, st == ZARR_OK ? vtable->name : NULL, origin, err);
}

zarr_status zarr_context_register_store(zarr_context *ctx,
                                        const zarr_store_vtable *vtable,
                                        const char *origin, zarr_error *err)
{
    ZR_NEED(ctx, err);
    zarr_status st = register_begin(ctx, ZARR_REGISTRY_STORE, vtable, origin, err);

    if (st == ZARR_OK)
        st = zr_store_register(ctx->stores, vtable, register_row(ctx)->origin, err);
    return register_end(ctx, st, st == ZARR_OK ? vtable->name : NULL, origin, err);
}

zarr_status zarr_context_register_memory(zarr_context *ctx,
                                         const zarr_memory_vtable *vtable, void *self,
                                         const char *origin, zarr_error *err)
{
    ZR_NEED(ctx, err);
    zarr_status st = register_begin(ctx, ZARR_REGISTRY_MEMORY, vtable, origin, err);

    if (st == ZARR_OK) {
        register_row(ctx)->index = (uint32_t)vtable->device_type;
        st = zr_memory_register(&ctx->memory, vtable, self, register_row(ctx)->origin,
                                err);
    }
    return register_end(ctx, st, st == ZARR_OK ? vtable->name : NULL, origin, err);
}

zarr_status zarr_context_register_pipeline(zarr_context *ctx,
                                           const zarr_pipeline_vtable *vtable, void *self,
                                           const char *origin, zarr_error *err)
{
    ZR_NEED(ctx, err);
    zarr_status st = register_begin(ctx, ZARR_REGISTRY_PIPELINE, vtable, origin, err);

    if (st == ZARR_OK)
        st = zr_pipeline_register(&ctx->pipelines, vtable, self,
                                  register_row(ctx)->origin, err);
    return register_end(ctx, st, st == ZARR_OK ? vtable->name : NULL, origin, err);
}

bool zr_ctx_look_begin(zarr_context *ctx)
{
    if (atomic_load_explicit(&ctx->sealed, memory_order_acquire))
        return false;
    zr_mutex_lock(&ctx->locked.mutex);
    return true;
}

void zr_ctx_look_end(zarr_context *ctx, bool locked)
{
    if (locked)
        zr_mutex_unlock(&ctx->locked.mutex);
}

/* An implementation may be registered before its codec, so only the sealing knows
 * this. */
static void seal_warn(const zarr_context *ctx)
{
    for (size_t i = 0; i < zr_impl_count(&ctx->impls); i++) {
        const struct zr_impl *impl = zr_impl_at(&ctx->impls, i);
        const char *codec = impl->vt.codec;

        if (!zr_impl_is_lost(impl, &ctx->codecs))
            continue;
        zr_log(
            &ctx->log, ZARR_LOG_WARN,
            "%s: codec implementation \"%s\" cannot be used: there is no codec \"%s\"%s",
            impl->entry.origin, impl->vt.impl, codec,
            zr_codec_spec_has(&ctx->codecs, codec, true)
                ? " but one of Zarr v2 (ZARR_CODEC_FOR_V2)"
            : zr_codec_spec_has(&ctx->codecs, codec, false) ? " that only Zarr v2 has"
                                                            : "");
    }
}

static void warn_allocator(void *user, const char *name, size_t bytes)
{
    zarr_context *ctx = user;

    zr_log(&ctx->log, ZARR_LOG_WARN, "allocators: there is no memory backend \"%.*s\"",
           (int)ZR_MIN(bytes, (size_t)200), name);
}

void zr_ctx_seal(zarr_context *ctx)
{
    bool before;

    if (atomic_load_explicit(&ctx->sealed, memory_order_acquire))
        return;
    zr_mutex_lock(&ctx->locked.mutex);
    before = atomic_exchange_explicit(&ctx->sealed, true, memory_order_acq_rel);
    zr_mutex_unlock(&ctx->locked.mutex);
    if (!before) {
        seal_warn(ctx);
        zr_plugin_options_warn(ctx);
        zr_memory_each_missing(&ctx->memory, warn_allocator, ctx);
    }
}
