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
/* One inner chunk, encoded. */
struct zr_inner_result {
    zarr_memory out;
    bool empty, filled;
};

/* Begins with the old value, if there is one. */
zarr_status zr_shard_begin(struct zr_shard_writer *s, const struct zr_work *w,
                           struct zr_shard_write *sw, zarr_error *err);
/* The old encoded bytes of an inner chunk; handle NULL: none, or none is needed. If the
 * shard is streamed, they are in the scratch ZR_SCRATCH_OLD of the worker of w. */
zarr_status zr_shard_old_inner(const struct zr_shard_writer *s, const struct zr_work *w,
                               const struct zr_projection *proj, zarr_memory *out,
                               zarr_error *err);
/* Appends an inner chunk that changed, in C order, after the untouched ones before it. */
zarr_status zr_shard_append(struct zr_shard_writer *s, const struct zr_projection *proj,
                            const struct zr_inner_result *r, zarr_error *err);
/* As zr_shard_append(), but the caller copies the bytes of a chunk that is not empty to
 * where zr_shard_find_reserved() says, once it has reserved all of a batch. */
zarr_status zr_shard_reserve(struct zr_shard_writer *s, const struct zr_projection *proj,
                             const struct zr_inner_result *r, zarr_error *err);
bool zr_shard_find_reserved(const struct zr_shard_writer *s,
                            const struct zr_projection *proj, zarr_memory *out);
/* For chunks that were reserved before it was known whether they are empty or filled:
 * notes what r says of one, then closes the gaps that empty ones of a batch left. */
void zr_shard_note_answer(struct zr_shard_writer *s, const struct zr_projection *proj,
                          const struct zr_inner_result *r);
zarr_status zr_shard_close_gaps(struct zr_shard_writer *s, zarr_error *err);
/* Encodes and appends the inner chunks of sw->proj (shard_write.c). */
zarr_status zr_shard_inners(struct zr_shard_writer *s, uint32_t threads, zarr_error *err);
/* Appends what is left and the index, and runs the codecs around the shard. Sets what
 * struct zr_shard_write returns. */
zarr_status zr_shard_end(struct zr_shard_writer *s, zarr_error *err);
/* Also after a failure. sw->block is left to the caller. */
void zr_shard_close(struct zr_shard_writer *s);
/* Number of inner chunks encoded before they are appended: at least two per thread, and
 * beyond that no more than fit a few MiB, `most` at most. */
uint32_t zr_inner_batch(const struct zr_level *in, uint32_t threads, uint32_t most);

#endif
