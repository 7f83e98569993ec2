/*
 * pipe/pipe.h - the door of carrying requests out, for rooms outside of this folder:
 * engine, pipelines, requests. A pipeline carries out a read or a write. The core has
 * two: `waves` (batched, several waves in flight) and `serial` (one chunk at a time, no
 * short cuts; tests compare `waves` with it). The rooms of this folder get stores, pools
 * and budgets as arguments and never see a context or an array handle.
 * Thread class: engine and requests are shared.
 */
#ifndef ZR_PIPE_H
#define ZR_PIPE_H

#include "pipe/chunk/index_cache.h"
#include "pipe/read/inspect.h"
#include "pipe/request/io.h"
#include "pipe/write/shard_session.h"

extern const zarr_pipeline_vtable zr_pipeline_waves, zr_pipeline_serial;
extern const zarr_pipeline_steps zr_pipeline_steps;

void zr_pipeline_registry_init(struct zr_registry *r, const zarr_allocator *alloc);
/* Copies the table; the registry closes it. If the name is taken, EXISTS says by whom. */
zarr_status zr_pipeline_register(struct zr_registry *r,
                                 const zarr_pipeline_vtable *vtable, void *self,
                                 const char *origin, zarr_error *err);
/* Returns NULL if there is none. */
const struct zr_pipeline *zr_pipeline_find(const struct zr_registry *r, const char *name);

/* LIMIT if io->memory_bytes has no room for one chunk, or one shard that is not streamed.
 * For the caller of a request, before it does any I/O. *need: bytes that the request
 * needs at least; out: the same, or more for the chunk. It may be NULL. */
zarr_status zr_memory_check(const struct zr_io *io, uint64_t *need, zarr_error *err);
/* The same for a request with a limit whose selection is known: a write that covers its
 * units needs no old value. */
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

#endif
