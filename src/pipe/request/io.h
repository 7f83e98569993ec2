/*
 * pipe/request/io.h - what a request is: the engine, which requests share, the pipeline
 * that carries a request out, and its parameters. The part of request.h that rooms
 * outside of pipe see, too.
 * Thread class: the engine is shared.
 */
#ifndef ZR_PIPE_REQUEST_IO_H
#define ZR_PIPE_REQUEST_IO_H

#include "base/base.h"
#include "impl/impl.h"
#include "mem/mem.h"
#include "plan/plan.h"
#include "sched/sched.h"
#include "store/store.h"
#include <zarrc/array.h>
#include <zarrc/io.h>
#include <zarrc/plugin/pipeline.h>
#include <zarrc/request.h>

struct zr_worker; /* a worker context: codec contexts and scratch */

/* A pipeline: how the work of a request is scheduled. Registered by name like codecs. The
 * core's pipelines ignore `steps` and call the functions of the rooms in pipe. */
struct zr_pipeline {
    struct zr_registered entry;
    const char *name; /* borrowed from the table */
    zarr_pipeline_vtable vt;
    void *self;
    /* Not the core's: what its read, and its write if it has one, delivered is compared
     * with the request. */
    bool is_foreign, has_foreign_write;
};

/* Bytes of values of shards that requests hold, by rank (shard_memory.c). */
enum {
    ZR_HOLDER_RANKS = 4
};
struct zr_holders {
    struct zr_budget rank[ZR_HOLDER_RANKS];
};

/* Budgets of devices, made when they are first needed. */
struct zr_device_budgets {
    struct {
        zr_mutex mutex;
        struct zr_device_budget *first;
    } locked;
    struct zr_fork_hook fork;
};

struct zr_engine {
    const zarr_allocator *alloc;
    const zarr_limits *limits;
    const struct zr_log *log;
    const struct zr_memory_registry *memory;
    const struct zr_impl_registry *impls;
    struct zr_pool *pool;
    struct zr_budget *budget;
    uint64_t memory_limit; /* the budget's total if the user set it, else 0 */
    /* a second budget, as large as the first, for the buffers of unsized chunks */
    struct zr_budget unsized_budget;
    struct zr_holders holders;
    uint32_t max_threads;
    uint64_t wave_bytes;
    /* chunks that a device decodes or encodes may have waves of as many bytes, and large
     * requests of more; 0: no */
    uint64_t device_wave_bytes;
    struct {
        zr_mutex mutex;
        struct zr_worker *free; /* list of idle ones */
    } workers;
    struct zr_streams streams; /* idle ones of devices */
    struct zr_device_budgets devices;
    struct zr_fork_hook fork; /* keeps the list consistent in a forked child */
};
/* All pointers in *e are borrowed and must outlive the engine. */
void zr_engine_init(struct zr_engine *e);
void zr_engine_deinit(struct zr_engine *e);
void zr_engine_trim(
    struct zr_engine *e); /* Releases idle worker contexts, streams and pool blocks. */

struct zr_index_cache;   /* of pipe/chunk */
struct zr_shard_session; /* of pipe/write */

/* One of several selections that are read or written together. */
struct zr_part {
    const zarr_selection *selection; /* not NULL */
    struct zr_view view;
    /* Set when the request is done. `ordinal`: of the chunk that failed. */
    zarr_status status;
    uint64_t ordinal;
    zarr_error error;
    uint32_t number; /* the caller's number of the part */
    /* Where the caller wants them; error_to NULL: not wanted. */
    zarr_status *status_to;
    zarr_error *error_to;
};

/* One read or write. Everything is borrowed until it is done. */
struct zr_io {
    struct zr_engine *engine;
    const struct zr_pipeline *pipeline;
    const struct zr_layout *layout;
    zarr_store *store;               /* store that has the chunks */
    const char *prefix;              /* the array's path, "" at the root */
    struct zr_index_cache *indexes;  /* NULL: none */
    const zarr_selection *selection; /* NULL: all */
    struct zr_view view;
    /* Several selections instead, each with a view; `view` then only says which memory
     * chunks are decoded to. NULL: one. A failure of a chunk becomes that of the parts
     * which touch it, and the others go on. */
    struct zr_part *parts;
    const zarr_selection *const *selections; /* of the parts */
    uint32_t n_parts;
    /* Reads of parts in several memories: an io for each memory, with the parts that are
     * there, which follow each other in `parts`. The request carries out one after the
     * other. NULL: the io itself. */
    const struct zr_io *groups;
    uint32_t n_groups;
    /* the part of the elements that is read or written; off: whole elements */
    struct zr_field_view field;
    struct zr_heap *heap; /* reads: for elements of variable length */
    bool write;
    bool skip_empty;     /* don't store chunks equal to the fill value */
    bool missing_error;  /* a missing chunk is NOT_FOUND */
    uint32_t unit_flags; /* writes: of zr_durable_flags(), for each unit's operation */
    /* writes: elements outside of the shape become the fill value if all inside are
     * written */
    bool reset_outside;
    uint32_t inner_order; /* writes: ZARR_INNER_ORDER_* */
    /* reads: receives for each unit, in order, whether it exists; NULL: not wanted */
    uint8_t *present;
    uint64_t n_present;
    bool no_direct, no_huge_pages;
    bool at_once; /* submitted reads: the caller tries it first; decodes: only it does
                     (ZARR_IO_AT_ONCE) */
    uint32_t max_threads; /* 0: the engine's */
    uint64_t wave_bytes;  /* 0: the engine's */
    /* what an element of the layout counts in statistics; 0: 1 */
    uint32_t elements_each;
    void (*progress)(void *user, const zarr_stats *so_far);
    void *progress_user;
    /* Checks that the stored array is still there, and that it has all elements of a
     * read. A write calls it before each wave, under the lock of each unit that it
     * changes in part, and at its end; a read after it met a missing chunk. NOT_FOUND and
     * CONFLICT say that the array is gone or another one, any other failure that this
     * could not be found out. found_none: all chunks of a read are missing. NULL: no
     * check. */
    zarr_status (*check)(void *arg, bool found_none, zarr_error *err);
    void *check_arg;
    /* Writes: called after the old value of each block was read, also of blocks that are
     * overwritten. A failure ends the write, else the block is stored under its lock, or
     * if it still has the version that was read. NULL: not called. */
    zarr_status (*guard)(void *arg, zarr_error *err);
    void *guard_arg;
    /* Work that comes before anything that touches a tensor: the request waits for it.
     * NULL: none. Borrowed; the request alone uses it. */
    struct zr_stream *after;
    /* Writes: receives the encoded units instead of the store. bytes NULL: the unit is
     * not stored. NULL: the store gets them. */
    zarr_status (*sink)(void *arg, const uint64_t *chunk, const zarr_memory *bytes,
                        zarr_error *err);
    void *sink_arg;
    const zarr_cancel *cancel; /* the caller's; NULL: none */
    /* Called after a successful pipeline, before the request is done. Its failure is the
     * request's. NULL: nothing to do. */
    zarr_status (*finish)(void *arg, zarr_error *err);
    void *finish_arg;
    /* for inner chunks fetched together; 0: as the store needs it */
    uint64_t coalesce_gap, coalesce_bytes;
    /* of the budget at most, or the limit of all requests; 0: there is no limit */
    uint64_t memory_bytes;
    /* Writes: the one shard that the request writes a part of; NULL: whole requests */
    struct zr_shard_session *session;
};

/* Sets how the request's pipeline cuts a read. For a plug-in's pipeline, assumes that it
 * cuts as `waves` does. */
void zr_io_cut(const struct zr_io *io, struct zr_plan_args *out);

#endif
