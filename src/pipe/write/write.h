/*
 * pipe/write/write.h - the door of writing: one block, its old value, its PUT; the new
 * value of a shard; several blocks together.
 * Thread class: on the worker context.
 */
#ifndef ZR_PIPE_WRITE_H
#define ZR_PIPE_WRITE_H

#include "pipe/batch/batch.h"
#include "pipe/write/shard_session.h"

/* Bytes for one unit: its elements, its new value, and its old value if that is
 * needed. */
uint64_t zr_unit_budget(const struct zr_level *lv, bool full);
/* Writes one unit (block). threads may be 1. In a request with parts a failure is noted
 * there, and OK returned; err is not NULL. */
zarr_status zr_unit_write(const struct zr_work *w, const struct zr_projection *proj,
                          uint32_t threads, zarr_error *err);
/* Stores the encoded bytes of a unit that needs no old value; NULL: removes its object.
 */
zarr_status zr_unit_put(const struct zr_work *w, const struct zr_projection *proj,
                        const zarr_memory *bytes, zarr_error *err);
/* Writes together those of n units that zr_units_join(). Sets done[i] for each that needs
 * nothing more. */
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
