/*
 * pipe/write/write_int.h - what the files of this room share.
 */
#ifndef ZR_PIPE_WRITE_INT_H
#define ZR_PIPE_WRITE_INT_H

#include "pipe/write/write.h"

/* ---- units ---------------------------------------------------------------------- */

struct zr_shard_write;
struct zr_shard_stream;
/* A unit (block) while it is written, alone (units.c) or in a batch (batch_units.c). */
struct zr_unit {
    const struct zr_projection *proj;
    const struct zr_level *lv;
    const char *key;
    /* if it is written in part, or in parts */
    void *lock;       /* NULL: none, or it is given back */
    bool conditional; /* the new value must replace `version`: there are no locks */
    zarr_store_version version;
    zarr_memory old; /* its old stored bytes; handle NULL: none */
    /* the new value: one of these */
    struct zr_leaf_write *leaf;
    struct zr_shard_write *shard;
    uint64_t *clip;                 /* for shard->clip: room for an extent */
    struct zr_shard_stream *stream; /* the value is stored in parts; NULL: at once */
    /* in a batch */
    bool *done;
    /* It is left to be written alone: another writer was faster, or its PUT failed in a
     * request with parts. */
    bool is_left;
};
/* The key of a unit. Valid until the worker makes another one. */
zarr_status zr_unit_key(const struct zr_work *w, const struct zr_projection *proj,
                        const char **out, zarr_error *err);
/* Sets *u->leaf or *u->shard: what the new value is made from. */
void zr_unit_prepare(const struct zr_io *io, const struct zr_unit *u);
/* Whether the new value is the fill value, which is not stored. */
bool zr_unit_is_empty(const struct zr_unit *u);
/* The operation that stores the new value. */
void zr_unit_op(const struct zr_io *io, const struct zr_unit *u, zarr_store_op *op);
/* Stores the new value and counts that, or gives it to io->sink. An object that is to be
 * removed may be missing. */
zarr_status zr_unit_store(const struct zr_work *w, const struct zr_unit *u,
                          zarr_error *err);
/* Gives back the lock, if there is one. */
void zr_unit_unlock(const struct zr_io *io, struct zr_unit *u);

/* ---- batches of units ------------------------------------------------------------ */

/* Units that are written together: of one level, or of the levels of several shapes, each
 * after the other. */
struct zr_unit_batch {
    struct zr_work w;
    const struct zr_level *lv; /* of the first */
    bool is_batched;           /* as zr_level_is_batched() */
    struct zr_unit *unit;
    uint32_t n, n_partial; /* of these, how many need their old value */
    /* the units by their place in the grid; NULL: not in this batch */
    struct zr_unit **by_block;
    uint32_t n_blocks;
    /* one of these, by unit */
    struct zr_leaf_write *leaf;
    struct zr_shard_write *shard;
    zarr_memory old_values, values; /* blocks: old values, and encoded bytes of leaves */
    struct zr_need need;            /* bytes of the budgets */
    uint64_t kept;                  /* of these, what is kept until the PUTs */
    struct zr_arena *arena;
};
/* Operations of a batch that the store gets together. */
struct zr_unit_ops {
    zarr_store_op *op;
    struct zr_unit **unit; /* by operation */
    uint32_t n;
};
/* Takes room for operations of all units. */
zarr_status zr_unit_ops_room(struct zr_unit_ops *x, const struct zr_unit_batch *b,
                             zarr_error *err);
/* The most units that are locked at once. */
uint32_t zr_old_values_most(const struct zr_io *io);
/* Locks the units that are written in part and whose lock is free, and reads their old
 * values in one submit. Units that cannot have theirs leave the batch. */
zarr_status zr_old_values_run(struct zr_unit_batch *b, zarr_error *err);
/* Gives back all locks and old values, also after a failure. A second call does
 * nothing. */
void zr_old_values_end(struct zr_unit_batch *b);
/* Makes the new values (encode_units.c). */
zarr_status zr_units_encode(struct zr_unit_batch *b, zarr_error *err);
/* Stores them (put_units.c). Sets is_left of units that met another writer. */
zarr_status zr_units_put(struct zr_unit_batch *b, zarr_error *err);

/* ---- shards ---------------------------------------------------------------------- */

/* Writes the value of a shard to the store while it is made, in parts
 * (zr_store_begin_parts()), so that memory has a few inner chunks of it. */
struct zr_shard_stream {
    const char *key;
    void *lock, *parts; /* parts: NULL before the first one */
    uint64_t last_part; /* the highest number so far, at least 1 */
    uint64_t least;     /* bytes of a part that is not the last one */
    uint64_t window;    /* bytes of the value in memory, unless one chunk has more */
    uint64_t old_bytes; /* of the old object, whose chunks are read one by one; 0: none */
    /* of the old object; NULL: locks keep other writers out */
    const zarr_store_version *version;
    uint32_t batch; /* inner chunks that are encoded at once, at most */
};
/* Prepares a stream, and returns the bytes of memory that it takes: within the request's
 * budget, unless a batch of one inner chunk exceeds that. */
uint64_t zr_shard_stream_init(struct zr_shard_stream *out, const struct zr_io *io,
                              const struct zr_level *lv, bool full);
/* Ends the parts, which are discarded unless they are stored. */
void zr_shard_stream_end(struct zr_shard_stream *stream, zarr_store *store);
/* Looks at the old object of a stream: sets stream->old_bytes, and the version, unless it
 * is NULL. */
zarr_status zr_shard_stream_look(const struct zr_work *w, struct zr_shard_stream *stream,
                                 zarr_store_version *version, zarr_error *err);
/* Writes a box of the shard of io->session. */
zarr_status zr_shard_session_write(const struct zr_work *w,
                                   const struct zr_projection *proj, uint32_t threads,
                                   zarr_error *err);
/* What the chunks of a unit added to the request's counters. */
struct zr_chunk_counts {
    uint64_t chunks_done, chunks_missing, chunks_direct;
};
/* The new value of one shard, with the codecs around it. */
struct zr_shard_write {
    uint32_t level;
    const struct zr_level *lv; /* the level of this shard */
    /* the level whose fill value it has if there is no old value */
    const struct zr_level *missing;
    const struct zr_projection *proj;
    const uint64_t *clip; /* extent of valid elements; NULL: all */
    /* Its old stored bytes; handle NULL: none. If proj->whole, they are ignored if they
     * are damaged. */
    zarr_memory old;
    bool must_stay;                 /* it is stored also if it is empty */
    struct zr_shard_stream *stream; /* NULL: the value stays in memory */
    /* out: the bytes to store (streamed: only their number is set), and the pool block
     * that contains them, which the caller gives back */
    zarr_memory out, block;
    bool empty;  /* out: it need not be stored */
    bool filled; /* out: all its elements equal the array's fill value */
    struct zr_chunk_counts counts; /* out: unless its elements come from a device */
};
/* Makes the values of n shards of one level, whose inner chunks are encoded together
 * (shard_write.c). One that is streamed is alone. On failure err->item is the shard that
 * failed. */
zarr_status zr_shards_write(const struct zr_work *w, struct zr_shard_write *sw,
                            uint32_t n, uint32_t threads, zarr_error *err);
/* Bytes that n such shards, of the outer level `lv`, have on the device at most. */
uint64_t zr_shards_on_device(const struct zr_io *io, const struct zr_level *lv,
                             uint32_t n);
/* Puts the inner chunks of a shard into another order (inner_order.c). The value is the
 * first *used bytes of *block; pairs: the index, in host byte order. *block is replaced.
 */
zarr_status zr_shard_reorder(const struct zr_work *w, const struct zr_level *lv,
                             uint64_t *pairs, zarr_memory *block, uint64_t used,
                             zarr_error *err);

#endif
