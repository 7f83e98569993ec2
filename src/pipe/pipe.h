/*
 * pipe/pipe.h - the door of carrying requests out: engine, pipelines, requests. The
 * engine is what requests share: budget, pools, worker contexts. A pipeline carries out a
 * read or a write. The core has two: `waves` (batched, several waves in flight) and
 * `serial` (one chunk at a time, no short cuts; tests compare `waves` with it). The room
 * gets stores, pools and budgets as arguments and never sees a context or an array
 * handle.
 * Thread class: engine and requests are shared; a worker context belongs to one thread at
 * a time.
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
#include <zarrc/io.h>
#include <zarrc/plugin/pipeline.h>
#include <zarrc/request.h>

struct zr_worker; /* a worker context: codec contexts and scratch */
struct zr_io;

/* A pipeline: how the work of a request is scheduled. Registered by name like codecs. The
 * core's pipelines ignore `steps` and call the functions of this room. */
struct zr_pipeline {
    struct zr_registered entry;
    const char *name; /* borrowed from the table */
    zarr_pipeline_vtable vt;
    void *self;
    bool is_waves, is_serial;
    /* The functions are a plug-in's: what they delivered is compared with the request. */
    bool checks_read, checks_write;
};
extern const zarr_pipeline_vtable zr_pipeline_waves, zr_pipeline_serial;
extern const zarr_pipeline_steps zr_pipeline_steps;

void zr_pipeline_registry_init(struct zr_registry *r, const zarr_allocator *alloc);
/* Copies the table; the registry closes it. If the name is taken, EXISTS says by whom. */
zarr_status zr_pipeline_register(struct zr_registry *r,
                                 const zarr_pipeline_vtable *vtable, void *self,
                                 const char *origin, zarr_error *err);
/* Returns NULL if there is none. */
const struct zr_pipeline *zr_pipeline_find(const struct zr_registry *r, const char *name);

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
zarr_status zr_engine_init(struct zr_engine *e, zarr_error *err);
void zr_engine_deinit(struct zr_engine *e);
void zr_engine_trim(
    struct zr_engine *e); /* Releases idle worker contexts, streams and pool blocks. */

/* Decoded shard indexes of one array, shared between requests, bounded in bytes. Its user
 * compares the version of the object to find out that an index is stale. */
struct zr_index_cache;
zarr_status zr_index_cache_create(struct zr_index_cache **out,
                                  const zarr_allocator *alloc, uint64_t max_bytes,
                                  zarr_error *err);
void zr_index_cache_free(struct zr_index_cache *c);
/* Returns a counted index, or NULL. cache may be NULL. */
struct zr_shard_index *zr_index_cache_get(struct zr_index_cache *c, const char *key);
void zr_index_cache_put(struct zr_index_cache *c, const char *key,
                        struct zr_shard_index *index);
/* key NULL: drops all. */
void zr_index_cache_drop(struct zr_index_cache *c, const char *key);

/* One of several selections that are read or written together. */
struct zr_part {
    const zarr_selection *selection; /* not NULL */
    struct zr_view view;
    /* Set when the request is done. `ordinal`: of the chunk that failed. */
    zarr_status status;
    uint64_t ordinal;
    zarr_error error;
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

/*
 * A shard that several requests write, one after the other, each the inner chunks after
 * those of the last. They go to the store in parts, and become the value of the key with
 * the last one (shard_session.c). Thread class: solo.
 */
struct zr_shard_session;
/* Waits for memory, at most 10 s while no other request gives any back, and then for the
 * lock of the shard's key. UNSUPPORTED if this shard cannot be written so. `chunk` is its
 * place in the grid; `layout` and what `io` borrows outlive the session. */
zarr_status zr_shard_session_open(struct zr_shard_session **out, const struct zr_io *io,
                                  const uint64_t *chunk, zarr_error *err);
/* The next box, in coordinates of the array, of at most `bytes` bytes of elements, but at
 * least one inner chunk. Returns false after the last. The next request must write this
 * box and nothing else. */
bool zr_shard_session_next(struct zr_shard_session *x, uint64_t bytes, uint64_t *start,
                           uint64_t *count);
/* Bytes of the elements of one inner chunk of the largest shard; 0: shards are not
 * written in parts. */
uint64_t zr_io_part_bytes(const struct zr_io *io);
/* Whether the shard is stored. */
bool zr_shard_session_is_stored(const struct zr_shard_session *x);
/* Discards a shard that is not stored. */
void zr_shard_session_free(struct zr_shard_session *x);

/* LIMIT if io->memory_bytes has no room for one chunk, or one shard that is not streamed.
 * For the caller of a request, before it does any I/O. *need: bytes that the request
 * needs at least; out: the same, or more for the chunk. It may be NULL. */
zarr_status zr_memory_check(const struct zr_io *io, uint64_t *need, zarr_error *err);
/* The same for a request whose selection is known: a write that covers its units needs no
 * old value. */
zarr_status zr_request_memory_check(const struct zr_io *io, zarr_error *err);
/* Carries the request out on this thread (and helpers) and returns when it is done. stats
 * may be NULL. */
zarr_status zr_io_run(const struct zr_io *io, zarr_stats *stats, zarr_error *err);
/* The same for a read that takes little time and waits for nothing (ZARR_IO_AT_ONCE).
 * Returns CANCELLED, with no side effects and no statistics, if the read would block. */
zarr_status zr_io_try(const struct zr_io *io, zarr_stats *stats, zarr_error *err);
/* The same for a part of a submitted request, which gets the counters; its own cancel
 * object counts, not io's. rq NULL: zr_io_run(). */
zarr_status zr_io_run_in(zarr_request *rq, const struct zr_io *io, zarr_stats *stats,
                         zarr_error *err);
/* Sets how the request's pipeline cuts a read. For a plug-in's pipeline, assumes that it
 * cuts as `waves` does. */
void zr_io_cut(const struct zr_io *io, struct zr_plan_args *out);
/* Number of blocks that the pipeline works on at once when it writes. */
uint64_t zr_io_units(const struct zr_io *io);
/* Starts a request and returns. io is copied. zr_request_free() calls release(owner)
 * once, when nothing of io is in use. If this call fails, release is not
 * called. */
zarr_status zr_io_submit(zarr_request **out, const struct zr_io *io,
                         void (*release)(void *owner), void *owner, zarr_error *err);
/* A call that is more than one read or write. */
struct zr_request_work {
    zarr_status (*fn)(void *owner, zarr_request *rq, zarr_error *err);
    void (*release)(void *owner); /* as in zr_io_submit() */
    void *owner;
};
/* Starts it as a request, and returns. cancel: the caller's, may be NULL. */
zarr_status zr_request_create(zarr_request **out, const zarr_allocator *alloc,
                              const zarr_cancel *cancel,
                              const struct zr_request_work *work, zarr_error *err);
/* The request's own cancel object, which the caller's object and zarr_request_cancel()
 * set. */
zarr_cancel *zr_request_cancel(zarr_request *rq);

/* Fetches and checks the shard index of an object. lv is the level of this object;
 * zr_shard_open_inner() opens nested shards from it. Used by chunk lists and verify. */
zarr_status zr_shard_open_object(const struct zr_io *io, const struct zr_level *lv,
                                 const char *key, struct zr_shard **out, zarr_error *err);
/* Does the same for the inner shard at `entry` of parent, at the given level. */
zarr_status zr_shard_open_inner(const struct zr_io *io, struct zr_shard *parent,
                                uint64_t entry, uint32_t level, struct zr_shard **out,
                                zarr_error *err);
/* Gives back what the value of a shard has of memory and budgets. The index stays; no
 * chunk or inner shard is read from there any more. */
void zr_shard_drop_value(struct zr_shard *s);
/* No longer makes others wait because of the value of this shard, and of those around it.
 * For a caller whose function may itself read. */
void zr_shard_makes_room(struct zr_shard *s);
/* Decodes a chunk that is an object into scratch and drops the result; used by verify. */
zarr_status zr_chunk_check(const struct zr_io *io, const struct zr_level *lv,
                           const char *key, zarr_error *err);
/* Of one object, from call to call; begins with zeros. */
struct zr_check {
    uint64_t most; /* chunks of the next call: few after a failure, then twice as many */
    uint64_t n_sound; /* out */
};
/* Does the same for stored inner chunks of a shard of the last level, in order from
 * `entry` on. Fetches neighbours in the object as one range. Returns OK after at least
 * one chunk; otherwise chunk number check->n_sound of them failed. */
zarr_status zr_chunks_check(const struct zr_io *io, struct zr_shard *shard,
                            uint64_t entry, struct zr_check *check, zarr_error *err);
/* Whether each of n elements, native and in host memory, is the array's fill value bit
 * for bit. */
bool zr_is_fill(const struct zr_layout *layout, const void *elements, uint64_t n);

#endif
