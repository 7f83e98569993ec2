/*
 * pipe/write/shard_int.h - what the files share that make the new value of a shard:
 * shard_value.c keeps one, shard_write.c encodes its inner chunks.
 */
#ifndef ZR_SHARD_INT_H
#define ZR_SHARD_INT_H

#include "pipe/write/write_int.h"

/* The new value of one shard while it is made. */
struct zr_shard_writer {
    const struct zr_work *w;
    struct zr_engine *engine; /* NULL: not begun */
    struct zr_shard_write *sw;
    const struct zr_level *lv, *in; /* level of the shard, level of the inner chunks */
    zarr_memory value, body;        /* the old value, its outer codecs decoded */
    struct zr_shard_index *old;     /* NULL: no old value */
    const struct zr_level *missing; /* missing inner chunks have the fill value of this */
    uint64_t *pairs;                /* the new index, in host byte order */
    uint64_t pos, next; /* end of the bytes appended; first inner chunk not handled yet */
    uint64_t base;      /* streamed: where the bytes in memory begin; else 0 */
    uint64_t keep_most; /* bytes of untouched chunks that may still be kept */
    uint64_t gap;       /* where bytes begin that were reserved and not used */
    bool any;
    bool filled;         /* everything written so far equals the array's fill value */
    uint32_t first, end; /* its inner chunks in the batch of shard_write.c */
};
/* Whether new values of shards of the outer level `lv` are made on the device: their
 * chunks are raw, and the store reaches it. */
bool zr_shard_is_made_there(const struct zr_io *io, const struct zr_level *lv);
/* Begins with the old value, if there is one. */
zarr_status zr_shard_begin(struct zr_shard_writer *s, const struct zr_work *w,
                           struct zr_shard_write *sw, zarr_error *err);
/* The old encoded bytes of an inner chunk; handle NULL: none, or none is needed. If the
 * shard is streamed, they are in the scratch ZR_SCRATCH_OLD of the worker of w. */
zarr_status zr_shard_old_inner(const struct zr_shard_writer *s, const struct zr_work *w,
                               const struct zr_projection *proj, zarr_memory *out,
                               zarr_error *err);
/* Appends an inner chunk that changed, in C order, after the untouched ones before it.
 * bytes NULL: it is empty. filled: it equals the array's fill value. */
zarr_status zr_shard_append(struct zr_shard_writer *s, const struct zr_projection *proj,
                            const zarr_memory *bytes, bool filled, zarr_error *err);
/* As zr_shard_append(), but the caller copies the bytes of a leaf that is not empty to
 * the room that zr_shard_find_reserved() gives it, once it has reserved all of a batch.
 */
zarr_status zr_shard_reserve(struct zr_shard_writer *s, const struct zr_leaf_write *lw,
                             zarr_error *err);
bool zr_shard_find_reserved(const struct zr_shard_writer *s, struct zr_leaf_write *lw);
/* For leaves that were reserved before it was known whether they are empty or filled:
 * notes what is known of one. */
void zr_shard_note_answer(struct zr_shard_writer *s, const struct zr_leaf_write *lw);
/* Encodes and appends the inner chunks of sw->proj (shard_write.c). */
zarr_status zr_shard_inners(struct zr_shard_writer *s, uint32_t threads, zarr_error *err);
/* Appends what is left and the index, and runs the codecs around the shard. Sets what
 * struct zr_shard_write returns. */
zarr_status zr_shard_end(struct zr_shard_writer *s, zarr_error *err);
/* Also after a failure. sw->block is left to the caller. */
void zr_shard_close(struct zr_shard_writer *s);
/* Inner chunks of several shards that are encoded at once. */
struct zr_shard_group {
    const struct zr_work *w;
    const struct zr_level *in; /* level of the inner chunks */
    struct zr_shard_write *sw; /* by shard, as `writer` */
    struct zr_shard_writer *writer, one;
    uint32_t n_shards, threads;
    struct zr_projector *projector; /* of shard number `next`; NULL: not open */
    uint32_t next;
    uint32_t *owner; /* by inner chunk: the shard */
    struct zr_projection *proj;
    struct zr_leaf_write *leaf; /* one of these */
    struct zr_shard_write *sub;
    uint32_t n, most;
    bool together;       /* leaves are encoded stage by stage */
    bool wait;           /* leaves get their rooms late, in their shards if possible */
    bool known;          /* leaves have their rooms in their shards from the beginning */
    bool reserved;       /* those of this batch have them in their shards */
    zarr_memory slots;   /* rooms outside of shards */
    uint64_t slot_bytes; /* distance between two */
    struct zr_arena lists;
    uint64_t failed;   /* the shard */
    uint32_t reserves; /* the shard that was given rooms last */
};
/* Takes the rooms of the inner chunks that are not in their shards. */
zarr_status zr_group_slots(struct zr_shard_group *g, zarr_error *err);
/* Encodes the leaves of a batch stage by stage (shard_leaves.c). Sets g->reserved. */
zarr_status zr_group_encode_leaves(struct zr_shard_group *g, zarr_error *err);
/* Hands the bytes in memory to the store: all, or whole parts. zr_stream_old_index()
 * reads the index of the old value. Both are in shard_stream.c. */
zarr_status zr_stream_out(struct zr_shard_writer *s, bool is_all, zarr_error *err);
zarr_status zr_stream_old_index(struct zr_shard_writer *s, zarr_error *err);

#endif
