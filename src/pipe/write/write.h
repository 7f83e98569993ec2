/*
 * pipe/write/write.h - the door of writing: one block, its old value, its PUT; the new
 * value of a shard; several blocks together.
 * Thread class: on the worker context.
 */
#ifndef ZR_PIPE_WRITE_H
#define ZR_PIPE_WRITE_H

#include "pipe/batch/batch.h"
#include "pipe/write/shard_session.h"

struct zr_shard_stream;
/* Runs and counts the PUT or ERASE of one unit, or gives the unit to io->sink. An ERASE
 * of a missing key succeeds. */
zarr_status zr_put_unit(const struct zr_work *w, const uint64_t *chunk, zarr_store_op *op,
                        zarr_error *err);

/* What a unit needs before it is written in part: its lock, and its old value
 * (old_values.c). */
struct zr_old_value {
    const struct zr_projection *proj; /* set by the caller, as lv */
    const struct zr_level *lv;
    /* out: whether it has both. If not, the unit is to be written alone */
    bool ready;
    bool conditional; /* the new value must replace `version` */
    zarr_store_version version;
    zarr_memory old; /* handle NULL: there is none */
    /* for old_values.c */
    const char *key;
    void *lock; /* NULL: none, or it is given back */
    zarr_store_op *op;
};
struct zr_old_values {
    struct zr_old_value *unit;
    uint32_t n;
    zarr_memory slab; /* has the old values */
};
/* The most units that are locked at once. */
uint32_t zr_old_values_most(const struct zr_io *io);
/* Locks the units whose lock is free, and reads their old values in one submit. */
zarr_status zr_old_values_run(const struct zr_io *io, struct zarr_request *rq,
                              struct zr_old_values *l, struct zr_arena *arena,
                              zarr_error *err);
/* Gives back all locks and old values, also after a failure. A second call does nothing.
 */
void zr_old_values_end(const struct zr_io *io, struct zr_old_values *l);

/* Bytes for one unit: its elements, its new value, and its old value if that is
 * needed. */
uint64_t zr_unit_budget(const struct zr_level *lv, bool full);
/* Writes one unit (block). threads may be 1. In a request with parts a failure is noted
 * there, and OK returned; err is not NULL. */
zarr_status zr_unit_write(const struct zr_work *w, const struct zr_projection *proj,
                          uint32_t threads, zarr_error *err);
/* Whether the old values and the PUTs of all units go together: the store is not written
 * on the encoding thread, and the units are of one size that metadata bounds. */
bool zr_puts_together(const struct zr_io *io);
/* Writes together those of n units whose program takes batches, whose elements come from
 * a device, or whose PUTs go together; also shards that are fewer than the threads. Sets
 * done[i] for each that needs nothing more. */
zarr_status zr_write_batch(const struct zr_io *io, struct zarr_request *rq,
                           const struct zr_projection *proj, uint32_t n, bool *done,
                           zarr_error *err);
/* What a stream takes at least. */
uint64_t zr_shard_stream_least(const struct zr_io *io, const struct zr_level *lv,
                               bool full);
/* Whether a shard can be written so: a host encodes its inner chunks, no codec is around
 * it, its inner chunks stay in C order, and the store takes parts. */
bool zr_shard_can_stream(const struct zr_work *w, const struct zr_level *lv);
/* UNSUPPORTED if the elements are where io->session cannot take them. */
zarr_status zr_shard_session_check(const struct zr_io *io, zarr_error *err);
#endif
