/*
 * ctx/ctx_int.h - what the files of this room share. Not for other rooms.
 */
#ifndef ZR_CTX_INT_H
#define ZR_CTX_INT_H

#include "ctx/ctx.h"

struct zr_ctx_row {
    uint32_t registry; /* ZARR_REGISTRY_* */
    uint32_t index;    /* index in its registry, if that matters; codecs: 0, or v2 only */
    const char *name;  /* the vtable's */
    const char *origin;
};

/* Makes the options: the caller's, then the environment, then defaults. */
zarr_status zr_ctx_options_read(zarr_context_options *out,
                                const zarr_context_options *opts, zarr_error *err);
zarr_status zr_ctx_limits_read(zarr_limits *out, const zarr_context_options *opts,
                               zarr_error *err);

/* Returns ZARR_PLUGIN_PATH, or NULL; also NULL in programs with another user's rights. */
const char *zr_ctx_plugin_path(void);

/* ---- plug-ins (plugin.c, host.c) ---- */

void zr_plugins_init(struct zr_plugins *p);
/* Unloads the plug-ins. Every registry is empty by then. */
void zr_plugins_deinit(struct zr_plugins *p, const zarr_allocator *alloc);
/* Loads all plug-ins of a list in the form of ZARR_PLUGIN_PATH. */
zarr_status zr_plugins_load_path(zarr_context *ctx, const char *list, zarr_error *err);
/* Gives the i-th plug-in; *info NULL: its load() failed. Returns false after the last. */
bool zr_plugins_get(zarr_context *ctx, size_t i, const zarr_plugin **info,
                    const char **path);
extern const zarr_host zr_host;

/*
 * Surround every look-up that a context answers. Until the registries are sealed, they
 * lock out registration (begin returns true, and end releases the lock). After sealing
 * there is no registration to lock out. Neither a data type's table nor the caller's
 * function may come here again in between.
 */
bool zr_ctx_look_begin(zarr_context *ctx);
void zr_ctx_look_end(zarr_context *ctx, bool locked);

/* Registers everything that this build has. */
zarr_status zr_ctx_register_core(zarr_context *ctx, zarr_error *err);
#define ZR_CTX_CORE "core"

#endif
