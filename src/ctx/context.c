/*
 * ctx/context.c - creates and frees a context. It is built once from options, environment
 * and the table of built-ins, and then shared by reference until its last store, array or
 * group is freed. Everything that other rooms need is made here and passed to them as
 * arguments, so they never see a context. Creation does no I/O, starts no thread and
 * reserves no memory in advance.
 * Thread class: shared.
 */
#include "ctx/ctx_int.h"

#include <string.h>

enum {
    CONTEXT_WAVE_BYTES = 64 << 20,
    CONTEXT_DEVICE_WAVE_BYTES = 256 << 20,
    CONTEXT_KEEP_MAX = 1 << 30, /* idle pool memory */
    CONTEXT_KEEP_PART = 4       /* of the byte budget */
};

/* of pinned memory: waves in flight, encoded, and their elements on the way */
#define CONTEXT_PINNED_MAX ((uint64_t)4 << 30)

static void context_destroy(zarr_context *ctx)
{
    const bool own = ctx->alloc != NULL;
    const zarr_allocator alloc = ctx->allocator_copy;

    if (ctx->engine.pool)
        zr_engine_deinit(&ctx->engine);
    zr_pool_free(ctx->pool);
    zr_store_registry_free(ctx->stores);
    zr_memory_registry_deinit(&ctx->memory);
    zr_registry_deinit(&ctx->pipelines);
    zr_grid_registry_deinit(&ctx->grids);
    zr_impl_registry_deinit(&ctx->impls);
    zr_ctx_costs_deinit(ctx);
    zr_codec_registry_deinit(&ctx->codecs);
    zr_dtype_registry_deinit(&ctx->dtypes);
    zr_plugins_deinit(&ctx->plugins,
                      ctx->alloc); /* nothing that belongs to plug-ins is left */
    zr_budget_deinit(&ctx->budget);
    zr_free(ctx->alloc, ctx->codec_preference);
    zr_free(ctx->alloc, ctx->allocators);
    zr_ctx_blocks_free(ctx);
    zr_free(ctx->alloc, ctx->locked.rows);
    zr_arena_deinit(&ctx->locked.texts);
    zr_fork_hook_remove(&ctx->locked.fork);
    zr_mutex_deinit(&ctx->locked.mutex);
    zr_free(own ? &alloc : NULL, ctx);
}

/* Sets everything that cannot fail; afterwards context_destroy() is safe. */
static void context_init_empty(zarr_context *ctx, uint64_t budget_bytes)
{
    const zarr_allocator *alloc = ctx->alloc;

    atomic_init(&ctx->refs, 1);
    atomic_init(&ctx->sealed, false);
    atomic_init(&ctx->trust_told, false);
    zr_mutex_init(&ctx->locked.mutex);
    ctx->locked.fork = (struct zr_fork_hook){
        .mutex = &ctx->locked.mutex,
        .rank = 500}; /* inside it the registries' locks are taken */
    zr_fork_hook_add(&ctx->locked.fork);
    zr_plugins_init(&ctx->plugins, alloc);
    zr_arena_init(&ctx->locked.texts, alloc);
    zr_budget_init(&ctx->budget, budget_bytes);
    zr_codec_registry_init(&ctx->codecs, &ctx->dtypes, alloc);
    zr_impl_registry_init(&ctx->impls, alloc);
    ctx->codecs.impls = &ctx->impls;
    zr_ctx_costs_init(ctx);
    zr_pipeline_registry_init(&ctx->pipelines, alloc);
}

static zarr_status context_init_registries(zarr_context *ctx, zarr_error *err)
{
    ZR_CHECK(zr_dtype_registry_init(&ctx->dtypes, ctx->alloc, err));
    ctx->dtypes.most_bytes = ctx->limits.dtype_bytes;
    ZR_CHECK(zr_grid_registry_init(&ctx->grids, ctx->alloc, err));
    ZR_CHECK(zr_memory_registry_init(&ctx->memory, ctx->alloc, err));
    ZR_CHECK(zr_store_registry_create(&ctx->stores, ctx->alloc, err));
    return zr_ctx_register_core(ctx, err);
}

static zarr_status context_init_engine(zarr_context *ctx, const zarr_context_options *o,
                                       zarr_error *err)
{
    const uint64_t keep = o->memory_bytes / CONTEXT_KEEP_PART;

    ZR_CHECK(zr_pool_create(&ctx->pool, &ctx->memory, ctx->alloc,
                            ZR_MIN(keep, (uint64_t)CONTEXT_KEEP_MAX), err));
    zr_pool_set_budgets(ctx->pool, o->device_bytes, o->pinned_bytes,
                        ZR_MIN(keep, CONTEXT_PINNED_MAX));
    ctx->engine.alloc = ctx->alloc;
    ctx->engine.limits = &ctx->limits;
    ctx->engine.log = &ctx->log;
    ctx->engine.memory = &ctx->memory;
    ctx->engine.impls = &ctx->impls;
    ctx->engine.pool = ctx->pool;
    ctx->engine.budget = &ctx->budget;
    ctx->engine.max_threads = o->max_threads;
    ctx->engine.wave_bytes = o->wave_bytes;
    if (o->wave_bytes == 0) {
        ctx->engine.wave_bytes = CONTEXT_WAVE_BYTES;
        ctx->engine.device_wave_bytes = CONTEXT_DEVICE_WAVE_BYTES;
    }
    zr_engine_init(&ctx->engine);
    if (o->max_threads > zr_cpu_count())
        zr_pool_want(o->max_threads);
    return ZARR_OK;
}

static zarr_status context_init_plugins(zarr_context *ctx, const zarr_context_options *o,
                                        zarr_error *err)
{
    const char *path = zr_ctx_plugin_path();

    ZR_CHECK(zr_plugin_options_read(ctx, o->plugin_options, err));
    for (const char *const *file = o->plugins; file && *file; file++)
        ZR_CHECK(zarr_context_load(ctx, *file, err));
    if (path)
        ZR_CHECK(zr_plugins_load_path(ctx, path, err));
    return ZARR_OK;
}

static zarr_status context_init(zarr_context *ctx, const zarr_context_options *o,
                                zarr_error *err)
{
    ZR_CHECK(context_init_registries(ctx, err));
    ZR_CHECK(zr_dtype_find(&ctx->dtypes, "uint64", &ctx->uint64, NULL, err));
    ctx->trust = o->trust;
    ZR_CHECK(zr_ctx_store_defaults(ctx, err));
    ZR_CHECK(zr_ctx_costs_path(&ctx->costs_path, ctx->alloc, err));
    if (o->codec_preference) {
        ctx->codec_preference = zr_strdup(ctx->alloc, o->codec_preference);
        if (!ctx->codec_preference)
            return zr_fail_memory(err, strlen(o->codec_preference));
    }
    if (o->allocators) {
        ctx->allocators = zr_strdup(ctx->alloc, o->allocators);
        if (!ctx->allocators)
            return zr_fail_memory(err, strlen(o->allocators));
        zr_memory_choose(&ctx->memory, ctx->allocators);
    }
    ZR_CHECK(context_init_engine(ctx, o, err));
    ctx->pipeline = zr_pipeline_find(&ctx->pipelines, zr_pipeline_waves.name);
    ZR_CHECK(context_init_plugins(ctx, o, err));
    ZR_CHECK(zr_preference_check(ctx->codec_preference, &ctx->codecs, &ctx->impls,
                                 &ctx->log, err));
    ZR_CHECK(zr_ctx_default_memory(ctx, o, err));
    return zr_ctx_pipeline(ctx, o->pipeline, &ctx->pipeline, err);
}

zarr_status zarr_context_create(zarr_context **out, const zarr_context_options *opts,
                                zarr_error *err)
{
    zarr_status st = ZARR_OK;
    zarr_context *ctx = NULL;
    zarr_context_options o;
    zarr_limits limits;
    uint64_t memory_limit = 0;

    *out = NULL;
    ZR_TRY(zr_ctx_options_read(&o, &memory_limit, opts, err));
    ZR_TRY(zr_ctx_limits_read(&limits, &o, err));
    ctx = zr_calloc(o.allocator, 1, sizeof *ctx);
    if (!ctx)
        ZR_FAIL_MEMORY(err, sizeof *ctx);
    if (o.allocator) {
        ctx->allocator_copy = *o.allocator;
        ctx->alloc = &ctx->allocator_copy;
    }
    ctx->limits = limits;
    ctx->log = (struct zr_log){.fn = o.log, .user = o.log_user, .level = o.log_level};
    context_init_empty(ctx, o.memory_bytes);
    ctx->engine.memory_limit = memory_limit;
    ZR_TRY(context_init(ctx, &o, err));
    *out = ctx; /* moved */
    ctx = NULL;
out:
    if (ctx)
        context_destroy(ctx);
    return st;
}

zarr_context *zarr_context_ref(zarr_context *ctx)
{
    if (!ctx)
        return NULL;
    atomic_fetch_add_explicit(&ctx->refs, 1, memory_order_relaxed);
    return ctx;
}

void zarr_context_free(zarr_context *ctx)
{
    if (ctx && atomic_fetch_sub_explicit(&ctx->refs, 1, memory_order_acq_rel) == 1)
        context_destroy(ctx);
}

void zarr_context_limits_sized(const zarr_context *ctx, zarr_limits *out,
                               uint32_t out_bytes)
{
    zr_struct_give(out, out_bytes, &ctx->limits, sizeof ctx->limits);
}

void zarr_context_trim(zarr_context *ctx)
{
    if (!ctx)
        return;
    zr_engine_trim(&ctx->engine);
}

int32_t zr_ctx_memory(const zarr_context *ctx, int32_t device_type)
{
    if (device_type == 0 || device_type == ZARR_DEVICE_CPU)
        return ZARR_DEVICE_CPU;
    return zr_device_is_host(&ctx->memory, device_type) &&
                   !zr_impl_has_device(&ctx->impls, device_type)
               ? ZARR_DEVICE_CPU
               : device_type;
}

zarr_status zr_ctx_preference(const zarr_context *ctx, const char *text, zarr_error *err)
{
    return zr_preference_check(text, &ctx->codecs, &ctx->impls, NULL, err);
}

zarr_status zr_ctx_pipeline(const zarr_context *ctx, const char *name,
                            const struct zr_pipeline **out, zarr_error *err)
{
    const struct zr_pipeline *p = ctx->pipeline;

    if (name && *name)
        p = zr_pipeline_find(&ctx->pipelines, name);
    if (!p)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED, "there is no pipeline \"%s\"", name);
    *out = p;
    return ZARR_OK;
}
