/*
 * pipe/write/shard_session.h - a shard that several requests write. The part of write.h
 * that rooms outside of pipe see, too.
 * Thread class: solo.
 */
#ifndef ZR_PIPE_SHARD_SESSION_H
#define ZR_PIPE_SHARD_SESSION_H

#include "base/base.h"

struct zr_io; /* of pipe/request */

/*
 * A shard that several requests write, one after the other, each the inner chunks after
 * those of the last. They go to the store in parts, and become the value of the key with
 * the last one (shard_session.c). Thread class: solo.
 */
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

#endif
