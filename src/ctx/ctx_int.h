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

/* Makes the options: the caller's, then the environment, then defaults. *memory_limit:
 * memory_bytes if it is not a default, else 0. */
zarr_status zr_ctx_options_read(zarr_context_options *out, uint64_t *memory_limit,
                                const zarr_context_options *opts, zarr_error *err);
zarr_status zr_ctx_limits_read(zarr_limits *out, const zarr_context_options *opts,
                               zarr_error *err);

/* Reads the defaults of local stores from the environment. */
zarr_status zr_ctx_store_defaults(zarr_context *ctx, zarr_error *err);

/* Chooses the default memory, after all plug-ins are loaded: one may know the device. */
zarr_status zr_ctx_default_memory(zarr_context *ctx, const zarr_context_options *o,
                                  zarr_error *err);

/* Returns ZARRC_PLUGINS, or NULL; also NULL in programs with another user's rights.
 */
const char *zr_ctx_plugin_path(void);

/* ---- plug-ins (plugin.c, host.c) ---- */

void zr_plugins_init(struct zr_plugins *p, const zarr_allocator *alloc);
/* Unloads the plug-ins. Every registry is empty by then. */
void zr_plugins_deinit(struct zr_plugins *p, const zarr_allocator *alloc);
/* Loads all plug-ins of a list in the form of ZARRC_PLUGINS. */
zarr_status zr_plugins_load_path(zarr_context *ctx, const char *list, zarr_error *err);
/* Gives the i-th plug-in; *info NULL: its load() failed. Returns false after the last. */
const char *zr_plugin_name(const struct zr_plugin *p);
bool zr_plugins_get(zarr_context *ctx, size_t i, const zarr_plugin **info,
                    const char **path);
extern const zarr_host zr_host;

/* Forgets who allocated blocks that were never freed. */
void zr_ctx_blocks_free(zarr_context *ctx);

/* ---- options of plug-ins (plugin_options.c) ---- */

/* Reads {"plug-in": {"option": value}}; text NULL: none. */
zarr_status zr_plugin_options_read(zarr_context *ctx, const char *text, zarr_error *err);
void zr_plugin_options_deinit(struct zr_plugins *p, const zarr_allocator *alloc);
/* Surround load(). The end refuses options that load() has not asked for, or not by
 * their type. */
zarr_status zr_plugin_options_begin(zarr_context *ctx, const char *plugin,
                                    zarr_error *err);
zarr_status zr_plugin_options_end(zarr_context *ctx, const char *plugin, zarr_error *err);
/* Logs options of plug-ins that were never loaded. */
void zr_plugin_options_warn(zarr_context *ctx);
/* For the host's table: 1 if the option is given. */
int zr_plugin_option_i64(zarr_context *ctx, const char *name, int64_t *out);
int zr_plugin_option_f64(zarr_context *ctx, const char *name, double *out);
int zr_plugin_option_bool(zarr_context *ctx, const char *name, int *out);
const char *zr_plugin_option_text(zarr_context *ctx, const char *name);

/*
 * Surround every look-up that a context answers. Until the registries are sealed, they
 * lock out registration (begin returns true, and end releases the lock). After sealing
 * there is no registration to lock out. Neither a data type's table nor the caller's
 * function may come here again in between.
 */
bool zr_ctx_look_begin(zarr_context *ctx);
void zr_ctx_look_end(zarr_context *ctx, bool locked);

/* The file of the user's cache that `zarrc calibrate` writes; NULL: there is no such
 * folder. */
zarr_status zr_ctx_costs_path(char **out, const zarr_allocator *alloc, zarr_error *err);
/* What was measured on this machine (costs.c). init: nothing is read yet. */
void zr_ctx_costs_init(zarr_context *ctx);
void zr_ctx_costs_deinit(zarr_context *ctx);

/* Registers everything that this build has. */
zarr_status zr_ctx_register_core(zarr_context *ctx, zarr_error *err);
/* Registers the store of zip archives. */
zarr_status zr_ctx_register_zip(zarr_context *ctx, zarr_error *err);
/* What a store gets of a context. */
struct zr_store_env zr_ctx_store_env(zarr_context *ctx);
#define ZR_CTX_CORE "core"

#endif
