/*
 * ctx/ctx.h - the door of the context: it owns allocator, limits, log, byte
 * budget, pools, engine and registries, and holds the only table of
 * built-ins (ctx/builtin.c). Nothing below this room sees a context.
 * Thread class: shared. Registries are sealed by the first store that opens.
 */
#ifndef ZR_CTX_H
#define ZR_CTX_H

#include "base/base.h"
#include "codec/codec.h"
#include "dtype/dtype.h"
#include "grid/grid.h"
#include "impl/impl.h"
#include "mem/mem.h"
#include "pipe/pipe.h"
#include "sched/sched.h"
#include "store/store.h"
#include <zarrc/context.h>
#include <zarrc/plugin/plugin.h>

struct zarr_context {
    atomic_uint refs;
    zarr_allocator allocator_copy;
    const zarr_allocator *alloc; /* NULL: malloc */
    zarr_limits limits;
    struct zr_log log;
    atomic_bool sealed;
    zr_mutex register_mutex;
    struct zr_dtype_registry dtypes;
    struct zr_codec_registry codecs;
    struct zr_impl_registry impls;
    struct zr_grid_registry grids;
    struct zr_memory_registry memory;
    struct zr_store_registry stores;
    struct zr_pipeline_registry pipelines;
    struct zr_budget *budget;
    struct zr_pool *pool;
    struct zr_engine engine;
    const struct zr_pipeline *pipeline; /* default */
    char *codec_preference;
    const zarr_dtype *uint64; /* for shard indexes */
};

#endif
