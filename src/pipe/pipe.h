/*
 * pipe/pipe.h - the door of doing requests: engine, pipelines, requests. The
 * engine is what requests share: budget, pools, worker contexts. A pipeline
 * carries a read or write out; two ship, `waves` (batched, several
 * waves in flight) and `serial` (one chunk at a time, no shortcuts:
 * the oracle of the tests). It gets stores, pools and budgets as arguments
 * and never sees a context or an array handle.
 * Thread class: engine shared; a request shared; a worker context is one thread's at a
 * time.
 */
#ifndef ZR_PIPE_H
#define ZR_PIPE_H

#include "base/base.h"
#include "impl/impl.h"
#include "mem/mem.h"
#include "plan/plan.h"
#include "sched/sched.h"
#include "store/store.h"
#include <zarrc/array.h>
#include <zarrc/plugin/pipeline.h>
#include <zarrc/request.h>

struct zr_worker; /* a worker context: codec contexts and scratch */
struct zr_io;

/* A pipeline: how the work of a request is scheduled. Registered by name like codecs;
 * the core's ignore `steps` and use what is inside. */
struct zr_pipeline {
    struct zr_registered entry;
    const char *name; /* the table's */
    zarr_pipeline_vtable vt;
    void *self;
};
extern const zarr_pipeline_vtable zr_pipeline_waves, zr_pipeline_serial;
extern const zarr_pipeline_steps zr_pipeline_steps;

void zr_pipeline_registry_init(struct zr_registry *r, const zarr_allocator *alloc);
/* The table is copied; the registry closes it. EXISTS names the owner of a name that is
 * taken. */
zarr_status zr_pipeline_register(struct zr_registry *r,
                                 const zarr_pipeline_vtable *vtable, void *self,
                                 const char *origin, zarr_error *err);
const struct zr_pipeline *zr_pipeline_find(const struct zr_registry *r,
                                           const char *name); /* or NULL */

struct zr_engine {
    const zarr_allocator *alloc;
    const zarr_limits *limits;
    const struct zr_log *log;
    const struct zr_memory_registry *memory;
    const struct zr_impl_registry *impls;
    struct zr_pool *pool;
    struct zr_budget *budget;
    /* as many bytes again for the buffers of chunks whose size only decoding tells */
    struct zr_budget unsized_budget;
    uint32_t n_threads;
    uint64_t wave_bytes;
    struct {
        zr_mutex mutex;
        struct zr_worker *free; /* list */
    } workers;
    struct zr_fork_hook fork; /* keeps the list whole in a forked child */
};
/* All pointers are borrowed and outlive the engine. */
zarr_status zr_engine_init(struct zr_engine *e, zarr_error *err);
void zr_engine_deinit(struct zr_engine *e);
void zr_engine_trim(
    struct zr_engine *e); /* gives idle worker contexts and pool blocks back */

/* Decoded shard indexes of one array, bounded, shared between requests. A stale one is
 * noticed by the object's version. */
struct zr_index_cache;
zarr_status zr_index_cache_create(struct zr_index_cache **out,
                                  const zarr_allocator *alloc, uint64_t max_bytes,
                                  zarr_error *err);
void zr_index_cache_free(struct zr_index_cache *c);
struct zr_shard_index *
zr_index_cache_get(struct zr_index_cache *c,
                   const char *key); /* counted, or NULL; NULL cache is fine */
void zr_index_cache_put(struct zr_index_cache *c, const char *key,
                        struct zr_shard_index *index);
void zr_index_cache_drop(struct zr_index_cache *c, const char *key); /* NULL: all */

/* One read or write; everything borrowed until it is done. */
struct zr_io {
    struct zr_engine *engine;
    const struct zr_pipeline *pipeline;
    const struct zr_layout *layout;
    zarr_store *store;               /* of chunks */
    const char *prefix;              /* array path, "" at the root */
    struct zr_index_cache *indexes;  /* NULL: none */
    const zarr_selection *selection; /* NULL: all */
    struct zr_view view;
    struct zr_field_view field; /* what of the elements; off: all */
    struct zr_heap *heap;       /* for elements of variable length that are read */
    bool write;
    bool skip_empty;    /* don't store chunks equal to the fill value */
    bool missing_error; /* a missing chunk is NOT_FOUND */
    bool no_direct, no_huge_pages;
    uint32_t max_threads; /* 0: the engine's */
    uint64_t wave_bytes;  /* 0: the engine's */
    void (*progress)(void *user, const zarr_stats *so_far);
    void *progress_user;
};

/* Runs to the end on this thread (and helpers). stats may be NULL. */
zarr_status zr_io_run(const struct zr_io *io, zarr_stats *stats, zarr_error *err);
/* How its pipeline cuts a read; that of a plug-in is taken to cut as `waves` does. */
void zr_io_cut(const struct zr_io *io, struct zr_plan_args *out);
/* Outer chunks that it has in hand at once when it writes. */
uint64_t zr_io_units(const struct zr_io *io);
/* Starts it and returns; io is copied. release(owner) is called once, by
 * zarr_request_free(), when nothing of io is in use any more; not when this fails. */
zarr_status zr_io_submit(zarr_request **out, const struct zr_io *io,
                         void (*release)(void *owner), void *owner, zarr_error *err);

/* Fetches and checks the shard index of a whole object (nested ones are opened from it);
 * lv is of this very object. Used by chunk lists and verify. */
zarr_status zr_shard_open_object(const struct zr_io *io, const struct zr_level *lv,
                                 const char *key, struct zr_shard **out, zarr_error *err);
/* The same for an inner shard at `entry` of parent, at the given level. */
zarr_status zr_shard_open_inner(const struct zr_io *io, struct zr_shard *parent,
                                uint64_t entry, uint32_t level, struct zr_shard **out,
                                zarr_error *err);
/* Decodes one stored leaf chunk into scratch and forgets it: verify. */
zarr_status zr_chunk_check(const struct zr_io *io, const struct zr_level *lv,
                           const char *key, struct zr_shard *shard, uint64_t entry,
                           zarr_error *err);

#endif
