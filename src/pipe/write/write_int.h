/*
 * pipe/write/write_int.h - what the files of this room share.
 */
#ifndef ZR_PIPE_WRITE_INT_H
#define ZR_PIPE_WRITE_INT_H

#include "pipe/write/write.h"

/* Gives back the lock of a unit, if it still has it. */
void zr_old_value_unlock(const struct zr_io *io, struct zr_old_value *v);
/* Makes a PUT or ERASE that of the holder of the lock. */
void zr_old_value_op(const struct zr_old_value *b, zarr_store_op *op);
/* New values of units that are stored together: PUTs and ERASEs. Those of units with a
 * lock come first. */
struct zr_puts {
    zarr_store_op *op;
    struct zr_old_value **holder; /* by operation: who has its lock; NULL: no one */
    uint32_t n, n_locked;
    /* out: the operation that failed, the first in order; UINT32_MAX: none */
    uint32_t failed;
    zarr_error error;
};
/* Takes room for n operations. */
zarr_status zr_puts_room(struct zr_puts *p, uint32_t n, struct zr_arena *arena,
                         zarr_error *err);
/* The next operation, and who has its lock. */
zarr_store_op *zr_puts_add(struct zr_puts *p, struct zr_old_value *holder);
/* Runs all operations. Afterwards no unit of `values` has a lock. */
zarr_status zr_puts_run(const struct zr_io *io, struct zarr_request *rq,
                        struct zr_puts *p, struct zr_old_values *values,
                        struct zr_arena *arena, zarr_error *err);
/* Writes the value of a shard to the store while it is made, in parts under the lock of
 * its key (zr_store_put_part()), so that memory has a few inner chunks of it. */
struct zr_shard_stream {
    const char *key;
    void *lock;
    uint64_t window;    /* bytes of the value in memory, unless one chunk has more */
    uint64_t old_bytes; /* of the old object, whose chunks are read one by one; 0: none */
    uint32_t batch;     /* inner chunks that are encoded at once, at most */
};
/* Prepares a stream, and returns the bytes of memory that it takes: within the request's
 * budget, unless a batch of one inner chunk exceeds that. */
uint64_t zr_shard_stream_init(struct zr_shard_stream *out, const struct zr_io *io,
                              const struct zr_level *lv, bool full);
/* Length of the object of a key; 0 if no object exists. */
zarr_status zr_object_bytes(const struct zr_work *w, const char *key, uint64_t *out,
                            zarr_error *err);
/* Writes a box of the shard of io->session. */
zarr_status zr_shard_session_write(const struct zr_work *w,
                                   const struct zr_projection *proj, uint32_t threads,
                                   zarr_error *err);
/* What a unit added to the request's counters. */
struct zr_chunk_counts {
    uint64_t chunks_done, chunks_missing, chunks_direct, elements;
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
