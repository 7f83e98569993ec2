/*
 * ctx/ctx.h - the door of the context. It owns allocator, limits, log, byte budget,
 * buffer pool, engine and registries, and has the only table of built-ins (ctx/builtin.c)
 * and the loader of plug-ins (ctx/plugin.c). No lower room sees a context; upper rooms
 * take what they need from its members.
 * Thread class: shared. After zarr_context_create() everything is frozen except `locked`,
 * the registries, the plug-ins and objects with their own locks. The first store that
 * opens seals the registries. Before that only registration and public look-ups use them,
 * under `locked.mutex`. node and the rooms above need an open store, so they need no
 * lock.
 */
#ifndef ZR_CTX_H
#define ZR_CTX_H

#include "base/base.h"
#include "chain/chain.h"
#include "dtype/dtype.h"
#include "grid/grid.h"
#include "impl/impl.h"
#include "json/json.h"
#include "mem/mem.h"
#include "pipe/pipe.h"
#include "sched/sched.h"
#include "store/store.h"
#include <zarrc/context.h>
#include <zarrc/plugin/plugin.h>

struct zr_ctx_row; /* one registration, for zarr_context_list() */

struct zr_plugin;
struct zr_ctx_block;

struct zr_plugins { /* in the order they were loaded */
    /* Only one plug-in is loaded at a time. Never taken while `locked` is held. Not held
     * across a fork, because a plug-in's load() may take long, or fork. */
    zr_mutex mutex;
    /* The list changes only with both locks held, so this lock is enough for reading: no
     * reader waits for a load(), and a forked child can read. */
    zr_mutex list_mutex;
    struct zr_fork_hook fork;
    struct zr_plugin **item;
    size_t n, cap;
    _Atomic(const char *) loading;  /* the plug-in whose load() is running: the origin */
    struct {                        /* plugin_options.c; under `mutex` */
        struct zr_json_doc doc;     /* {"plug-in": {"option": value}}; or no root */
        const struct zr_json *mine; /* of the plug-in that is being loaded; or NULL */
        bool *asked;                /* one for each member of `mine` */
        const char *wrong;          /* option that has another type than load() asked */
    } options;
};

struct zarr_context {
    atomic_uint refs;
    zarr_allocator allocator_copy;
    const zarr_allocator *alloc; /* NULL: malloc */
    zarr_limits limits;          /* only encoded_bytes may be 0 */
    struct zr_log log;
    atomic_bool sealed;
    struct {
        zr_mutex mutex; /* for registration and look-ups, until sealed */
        struct zr_ctx_row *rows;
        size_t n_rows, cap_rows;
        struct zr_arena texts;       /* origins */
        bool core;                   /* the built-ins are being registered */
        struct zr_ctx_block *blocks; /* of allocators (memory.c) */
        struct zr_fork_hook fork;
    } locked;
    struct zr_dtype_registry dtypes;
    struct zr_codec_registry codecs;
    struct zr_impl_registry impls;
    struct zr_grid_registry grids;
    struct zr_memory_registry memory;
    struct zr_store_registry *stores;
    struct zr_registry pipelines; /* struct zr_pipeline */
    struct zr_plugins plugins;
    struct zr_budget budget;
    struct zr_pool *pool;
    struct zr_engine engine;
    const struct zr_pipeline *pipeline; /* default */
    int32_t device_type, device_id;     /* default memory; the type is never 0 */
    char *codec_preference;             /* NULL: only priorities decide */
    char *allocators;                   /* names; or NULL */
    uint32_t trust;                     /* ZARR_TRUST_*, never 0 */
    uint32_t locks, symlinks;           /* defaults of local stores; 0: the library's */
    atomic_bool trust_told;             /* the log has the warning about it */
    const zarr_dtype *uint64;           /* for shard indexes */
    char *costs_path;                   /* of the file of measured costs; or NULL */
    _Atomic(struct zr_ctx_costs *)
        costs; /* measured ones (costs.c); NULL: not read yet */
};

struct zarr_heap {
    struct zr_heap heap;
    zarr_context *ctx; /* counted */
};

/* Finds a pipeline by name; NULL or "": the context's. UNSUPPORTED names it. */
zarr_status zr_ctx_pipeline(const zarr_context *ctx, const char *name,
                            const struct zr_pipeline **out, zarr_error *err);
/* Checks the codec preference (may be NULL) of an array or a call. */
zarr_status zr_ctx_preference(const zarr_context *ctx, const char *text, zarr_error *err);
/* Returns the kind as which memory is used. Memory that the CPU reads and writes, such as
 * pinned pages, is host memory, so stores read into it and codecs of the CPU decode into
 * it. Memory that a device's codec takes as well stays what it is. */
int32_t zr_ctx_memory(const zarr_context *ctx, int32_t device_type);
/* Makes a store of lent values (zr_store_open_lent()), and seals the registries. */
zarr_status zr_ctx_open_lent(zarr_store **out, zarr_context *ctx,
                             const struct zr_lent *lent, zarr_error *err);
/* Opens the root of the hierarchy that a local store is a part of, as
 * zarr_location_parse() finds it, with the same options. *path becomes the path of the
 * store in it; owned: zr_free(). *out is NULL if the store is not below another root. */
zarr_status zr_ctx_open_above(zarr_store **out, char **path, zarr_store *store,
                              zarr_error *err);
/* Ends registration: afterwards the registries are read without a lock. */
void zr_ctx_seal(zarr_context *ctx);

#endif
