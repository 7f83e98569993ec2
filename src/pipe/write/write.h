/*
 * pipe/write/write.h - the door of writing: one block, its old value, its PUT; the new
 * value of a shard; several blocks together.
 * Thread class: on the worker context.
 */
#ifndef ZR_PIPE_WRITE_H
#define ZR_PIPE_WRITE_H

#include "pipe/batch/batch.h"
#include "pipe/write/shard_session.h"

/* The next unit that a write touches. A write of a field never covers a whole unit, even
 * with all its elements. If elements outside of the shape become the fill value, a whole
 * unit is a full one. */
static inline bool zr_next_unit(const struct zr_io *io, struct zr_projector *p,
                                struct zr_projection *out)
{
    if (!zr_project_next(p, out))
        return false;
    out->whole = out->whole && !io->field.on;
    out->full = (out->full || io->reset_outside) && out->whole;
    return true;
}
struct zr_later;
struct zr_shard_stream;
/* Runs and counts the PUT or ERASE of one unit, or gives the unit to io->sink. An ERASE
 * of a missing key succeeds. later: keeps it instead, to be sent with others; NULL: it is
 * sent. */
zarr_status zr_put_unit(const struct zr_work *w, const uint64_t *chunk, zarr_store_op *op,
                        struct zr_later *later, zarr_error *err);

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

/* The PUT or ERASE of a unit, to be sent with others (deferred_put.c). */
struct zr_later {
    char *key; /* owned; NULL: there is no operation */
    zarr_store_op op;
    /* has the unit's lock and old value; NULL: it needs none. Set before the unit is
     * written */
    struct zr_old_value *old_value;
    zarr_memory block; /* a pool block that has the bytes; a shard brings its own */
    /* what the unit added to these counters */
    uint64_t chunks_done, chunks_missing, chunks_direct, elements;
};
/* Whether the unit needs nothing more, after zr_later_run(). If not, its old value is not
 * the one that it was made from, or it is one of several parts. */
static inline bool zr_later_is_done(const struct zr_later *l)
{
    return !l->key || l->op.status == ZARR_OK ||
           (l->op.verb == ZARR_STORE_ERASE && l->op.status == ZARR_ERR_NOT_FOUND);
}
/* Stores what n units have. */
zarr_status zr_later_run(const struct zr_io *io, struct zarr_request *rq,
                         struct zr_later *l, uint32_t n, struct zr_old_values *values,
                         struct zr_arena *arena, zarr_error *err);
void zr_later_end(const struct zr_io *io, struct zr_later *l, uint32_t n);
/* Called before and after the unit is encoded: notes what that adds to the counters of
 * chunks. */
void zr_later_count(struct zr_later *l, const zarr_stats *stats, bool encoded);
/* Takes it back from the request: the unit will be written once more. */
void zr_later_forget(struct zarr_request *rq, const struct zr_later *l);
/* Bytes for one unit: its elements, its new value, and its old value if that is
 * needed. */
uint64_t zr_unit_budget(const struct zr_level *lv, bool full);
/* Writes one unit (block). threads may be 1. later: has its lock and old value, if it
 * needs one, and keeps its PUT; NULL: the unit does all that itself. In a request with
 * parts a failure is noted there, and OK returned; err is not NULL. */
zarr_status zr_unit_write(const struct zr_work *w, const struct zr_projection *proj,
                          uint32_t threads, struct zr_later *later, zarr_error *err);
/* Writes together those of n units whose program takes batches, or whose elements come
 * from a device. Sets done[i] for each that needs nothing more. */
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
