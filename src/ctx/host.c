/*
 * ctx/host.c - the table that plug-ins get: the public functions, and a few that only
 * plug-ins need. The origin of a registration is the plug-in that is being loaded.
 * Thread class: frozen.
 */
#include "ctx/ctx_int.h"

#include <stdarg.h>
#include <stdio.h>
#include <zarrc/version.h>

static void host_log(zarr_context *ctx, uint32_t level, const char *fmt, ...)
    ZARR_PRINTF(3, 4);

static void host_log(zarr_context *ctx, uint32_t level, const char *fmt, ...)
{
    char line[ZARR_ERROR_MESSAGE_BYTES];
    va_list ap;

    if (!ctx->log.fn || level > ctx->log.level)
        return;
    va_start(ap, fmt);
    (void)vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    zr_log(&ctx->log, level, "%s", line);
}

static void *context_alloc(zarr_context *ctx, size_t bytes)
{
    return zr_malloc(ctx->alloc, bytes);
}

static void context_free(zarr_context *ctx, void *block)
{
    zr_free(ctx->alloc, block);
}

/* Returns the origin, or NULL and fills the error. */
static const char *host_origin(zarr_context *ctx, zarr_error *err)
{
    const char *origin = atomic_load(&ctx->plugins.loading);

    if (!origin)
        (void)zr_fail(err, ZARR_ERR_INVALID,
                      "a plug-in registers while it is loaded, not later");
    return origin;
}

#define HOST_REGISTER(noun)                                                              \
    static zarr_status host_register_##noun(                                             \
        zarr_context *ctx, const zarr_##noun##_vtable *vtable, zarr_error *err)          \
    {                                                                                    \
        const char *origin = host_origin(ctx, err);                                      \
                                                                                         \
        return origin ? zarr_context_register_##noun(ctx, vtable, origin, err)           \
                      : ZARR_ERR_INVALID;                                                \
    }

#define HOST_REGISTER_SELF(noun)                                                         \
    static zarr_status host_register_##noun(zarr_context *ctx,                           \
                                            const zarr_##noun##_vtable *vtable,          \
                                            void *self, zarr_error *err)                 \
    {                                                                                    \
        const char *origin = host_origin(ctx, err);                                      \
                                                                                         \
        return origin ? zarr_context_register_##noun(ctx, vtable, self, origin, err)     \
                      : ZARR_ERR_INVALID;                                                \
    }

HOST_REGISTER(dtype)
HOST_REGISTER(codec_spec)
HOST_REGISTER(codec_impl)
HOST_REGISTER(grid)
HOST_REGISTER(key_encoding)
HOST_REGISTER(store)
HOST_REGISTER_SELF(memory)
HOST_REGISTER_SELF(pipeline)

const zarr_host zr_host = {
    .struct_size = sizeof(zarr_host),
    .abi = ZARR_PLUGIN_ABI,
    .version = ZARR_VERSION_STRING,
    .fail = zr_fail,
    .fail_os = zr_fail_os,
    .log = host_log,
    .alloc = context_alloc,
    .free = context_free,
    .register_dtype = host_register_dtype,
    .register_codec_spec = host_register_codec_spec,
    .register_codec_impl = host_register_codec_impl,
    .register_grid = host_register_grid,
    .register_key_encoding = host_register_key_encoding,
    .register_store = host_register_store,
    .register_memory = host_register_memory,
    .register_pipeline = host_register_pipeline,
    .spec_name = zarr_codec_spec_name,
    .spec_json = zarr_codec_spec_json,
    .spec_i64 = zarr_codec_spec_i64,
    .spec_f64 = zarr_codec_spec_f64,
    .spec_bool = zarr_codec_spec_bool,
    .spec_text = zarr_codec_spec_text,
    .spec_i64s = zarr_codec_spec_i64s,
    .spec_member = zarr_codec_spec_member,
    .spec_allocator = zarr_codec_spec_allocator,
    .spec_dtype = zarr_codec_spec_dtype,
    .dtype_name = zarr_dtype_name,
    .dtype_kind = zarr_dtype_kind,
    .dtype_item_bytes = zarr_dtype_item_bytes,
    .dtype_item_bits = zarr_dtype_item_bits,
    .store_open = zarr_store_open,
    .store_flush = zarr_store_flush,
    .store_free = zarr_store_free,
    .store_list = zarr_store_list,
    .parallel = zr_parallel_for,
    .spec_chain_json = zarr_codec_spec_chain_json,
    .spec_chain_codecs = zarr_codec_spec_chain_codecs,
    .spec_chain_resolve = zarr_codec_spec_chain_resolve,
    .runner_open = zarr_codec_runner_open,
    .runner_decode = zarr_codec_runner_decode,
    .runner_encode = zarr_codec_runner_encode,
    .runner_close = zarr_codec_runner_close,
    .store_run = zarr_store_run,
    .store_lock = zarr_store_lock,
    .store_unlock = zarr_store_unlock,
    .store_capabilities = zarr_store_capabilities,
    .store_erase_prefix = zarr_store_erase_prefix,
    .option_i64 = zr_plugin_option_i64,
    .option_f64 = zr_plugin_option_f64,
    .option_bool = zr_plugin_option_bool,
    .option_text = zr_plugin_option_text,
    .store_submit = zarr_store_submit,
    .store_cancel = zarr_store_cancel,
    .store_tell_place = zarr_store_tell_place,
    .store_read_counters = zarr_store_read_counters,
    .next_open = zarr_codec_next_open,
    .next_name = zarr_codec_next_name,
    .next_scratch = zarr_codec_next_scratch,
    .next_run = zarr_codec_next_run,
    .next_close = zarr_codec_next_close,
};
