/*
 * pipe/read/inspect.h - looks at stored chunks, for lists of chunks and verify. The part
 * of read.h that rooms outside of pipe see, too. Thread class: any thread.
 */
#ifndef ZR_PIPE_INSPECT_H
#define ZR_PIPE_INSPECT_H

#include "base/base.h"
#include "plan/plan.h"

struct zr_io; /* of pipe/request */

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
