/*
 * zarrc/plugin/plugin.h - registering one's own data types, codecs, grids,
 * stores and memories with a context, before its first store is opened. FOR
 * EXTENDERS: stable per plug-in ABI number. The library's own are registered
 * through the same tables.
 *
 * `origin` names who registers (shown by zarr_context_list()); core names cannot be taken
 * over: EXISTS. Tables are copied; the functions and texts they point to must outlive the
 * context.
 */
#ifndef ZARRC_PLUGIN_PLUGIN_H
#define ZARRC_PLUGIN_PLUGIN_H

#include <zarrc/context.h>
#include <zarrc/plugin/codec.h>
#include <zarrc/plugin/dtype.h>
#include <zarrc/plugin/grid.h>
#include <zarrc/plugin/memory.h>
#include <zarrc/plugin/store.h>

ZARR_BEGIN_DECLS

ZARR_API ZARR_MUST_CHECK zarr_status
zarr_context_register_dtype(zarr_context *ctx, const zarr_dtype_vtable *vtable,
                            const char *origin, zarr_error *err);
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_context_register_codec_spec(zarr_context *ctx, const zarr_codec_spec_vtable *vtable,
                                 const char *origin, zarr_error *err);
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_context_register_codec_impl(zarr_context *ctx, const zarr_codec_impl_vtable *vtable,
                                 const char *origin, zarr_error *err);
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_context_register_grid(zarr_context *ctx, const zarr_grid_vtable *vtable,
                           const char *origin, zarr_error *err);
ZARR_API ZARR_MUST_CHECK zarr_status zarr_context_register_key_encoding(
    zarr_context *ctx, const zarr_key_encoding_vtable *vtable, const char *origin,
    zarr_error *err);
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_context_register_store(zarr_context *ctx, const zarr_store_vtable *vtable,
                            const char *origin, zarr_error *err);
/** `self` is handed to every function and to vtable->close with the context. */
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_context_register_memory(zarr_context *ctx, const zarr_memory_vtable *vtable,
                             void *self, const char *origin, zarr_error *err);

ZARR_END_DECLS

#endif
