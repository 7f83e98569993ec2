/*
 * pipe/read_int.h - reading: segments and items, batches of GETs, shards to open, and
 * short cuts.
 */
#ifndef ZR_PIPE_READ_INT_H
#define ZR_PIPE_READ_INT_H

#include "pipe/chunk_int.h"

/* ---- attempt.c ---- */
/* Whether the caller that submits a read should try it (ZARR_IO_AT_ONCE). */
bool zr_attempt_is_worth(const struct zr_io *io);
/* Whether an attempt takes a request with so many chunks. It is asked before the first
 * wave, because to plan more may take milliseconds. */
bool zr_attempt_takes(uint64_t chunks);
/* Whether the decoded bytes and the shard indexes of a wave are small enough for an
 * attempt. */
bool zr_attempt_fits(const struct zr_wave *w);

void zr_waves_cut(const struct zr_io *io, struct zr_plan_args *out);
void zr_serial_cut(const struct zr_io *io, struct zr_plan_args *out);
/* Reads one segment of a data wave: fetches, decodes, scatters. fetched: the bytes of the
 * segment if they were fetched before; else handle NULL. */
zarr_status zr_segment_read(const struct zr_work *w, const struct zr_segment *segment,
                            const zarr_memory *fetched, zarr_error *err);
/* Fetches the encoded bytes of a segment into a scratch block, or points to them.
 * NOT_FOUND: missing. */
zarr_status zr_segment_fetch(const struct zr_work *w, const struct zr_segment *segment,
                             zarr_memory *out, zarr_error *err);
/* The same for a range of a shard, for which the segment needs no items. */
zarr_status zr_segment_range(const struct zr_work *w, const struct zr_segment *segment,
                             zarr_memory *out, zarr_error *err);
/* Counts a missing item, whose elements become the fill value; or fails with NOT_FOUND if
 * the caller asked for that. */
zarr_status zr_item_count_missing(const struct zr_work *w, const struct zr_item *item,
                                  zarr_error *err);
/* The same, and writes the fill value. */
zarr_status zr_item_fill(const struct zr_work *w, const struct zr_item *item,
                         zarr_error *err);
/* Segments fetched for a whole wave at once, not one by one by the workers
 * (prefetch.c). */
struct zr_prefetch {
    zarr_store_op *op;
    zarr_memory *mem;   /* by segment: the bytes fetched */
    zarr_memory *block; /* by operation: the pool block that they are in, or that begins
                         * with them */
    /* by operation: the first segment, and how many neighbours of one object it covers */
    uint32_t *first, *count;
    uint32_t n;    /* operations */
    uint64_t gaps; /* bytes between the segments of an operation, fetched for nothing */
};
/* What zr_ops_run() notes and does when an operation ends. */
struct zr_ops_watch {
    /* by operation: its lock is given back at once; an entry NULL: it has none. NULL: no
     * lock is given back */
    struct zr_old_value *const *holder;
    /* out: the operation that failed, the first in order, and its error; UINT32_MAX: none
     */
    uint32_t failed;
    zarr_error error;
};
/* Runs n operations, several at once, and waits for all. Those whose status is OK already
 * are only counted. watch NULL: the caller looks at each status. NOT_FOUND is no failure,
 * nor is the CONFLICT of a write IF_VERSION. */
zarr_status zr_ops_run(const struct zr_io *io, struct zarr_request *rq, zarr_store_op *op,
                       uint32_t n, struct zr_ops_watch *watch, struct zr_arena *arena,
                       zarr_error *err);
/* The most waves of a read that are in flight. */
uint32_t zr_read_flights(const struct zr_io *io);
bool zr_wants_batches(const struct zr_io *io, const struct zr_program *p);
/* Fetches the indexes of a wave's shards at once, for stores that are not read on the
 * decoding thread (index_prefetch.c). What could not be fetched is left to
 * zr_open_exec(). */
zarr_status zr_opens_ahead(const struct zr_io *io, struct zarr_request *rq,
                           struct zr_wave *w, zarr_error *err);
void zr_opens_ahead_end(const struct zr_io *io, struct zr_wave *w);
/* An index that was fetched ahead. */
struct zr_ahead {
    struct zr_store_pin *pin; /* owned until zr_open_exec() takes it; nested: NULL */
    zarr_store_op op;         /* done; its memory has the encoded index */
    zarr_memory block;        /* a pool block that contains it */
};
/* Makes the operations of a wave that is fetched at once. */
zarr_status zr_prefetch_begin(const struct zr_io *io, struct zr_wave *w,
                              struct zr_prefetch *p, zarr_error *err);
/* What the chunks of a wave, or n of them at once, have on the device at most. */
uint64_t zr_wave_on_device(const struct zr_io *io, const struct zr_wave *w, uint64_t n);
/* Bytes of host memory that a read of one chunk of this level takes. */
uint64_t zr_chunk_on_host(const struct zr_io *io, const struct zr_level *lv);
/* Bytes of memory for it: the encoded bytes of all its segments, and blocks of elements:
 * one chunk per worker or, in lock step, input and output of all chunks. */
struct zr_need zr_prefetch_need(const struct zarr_request *rq, const struct zr_wave *w,
                                const struct zr_prefetch *p, bool lockstep);
zarr_status zr_prefetch_run(const struct zr_io *io, struct zarr_request *rq,
                            struct zr_wave *w, struct zr_prefetch *p, zarr_error *err);
void zr_prefetch_end(const struct zr_io *io, const struct zr_wave *w,
                     struct zr_prefetch *p); /* also after a failure */
/* The bytes of a chunk that a target needs, as ranges (ranges.c): dimensions below
 * `split` are walked index by index, and the others are read as one range. n is a count
 * for dimensions below `split`, an extent for the others. */
struct zr_ranges {
    int32_t ndim, split;
    uint64_t lo[ZARR_MAX_RANK], n[ZARR_MAX_RANK];
    int64_t step[ZARR_MAX_RANK];
    uint64_t stride[ZARR_MAX_RANK];
    uint64_t n_reads, read_bytes;
};
/* Chooses `split`, for at most `most` ranges. `each`: what one more range costs, in
 * bytes. Returns the cost; UINT64_MAX if it exceeds 64 bits. The target must be
 * arithmetic. */
uint64_t zr_ranges_choose(const struct zr_program *p, const struct zr_target *t,
                          uint64_t each, uint64_t most, struct zr_ranges *s);
/* Returns the offset of the range at[], then advances at[] to the next. Begin with
 * zeros. */
uint64_t zr_ranges_next(const struct zr_ranges *s, uint64_t *at);
/* Whether ranges of an uncompressed chunk cost less than the chunk; *out: which. */
bool zr_raw_in_ranges(const struct zr_io *io, const struct zr_segment *segment,
                      struct zr_ranges *out);
/* Decodes only what an item needs, into its places in a scratch block, *out. Does so, and
 * sets *done, if the program is a single codec that can decode in part and the saving is
 * large enough. */
zarr_status zr_chunk_decode_partial(const struct zr_work *w, const struct zr_program *p,
                                    const struct zr_item *item,
                                    const zarr_memory *encoded, zarr_memory *out,
                                    bool *done, zarr_error *err);
/* A large uncompressed chunk, read in slabs of rows (slabs.c). After open, n is 0 if the
 * chunk cannot be read so. */
struct zr_slabs {
    struct zr_store_pin pin;
    const struct zr_segment *segment;
    int32_t dim; /* stored dimension that is cut into slabs */
    uint64_t n, rows, row_bytes;
    bool direct; /* from the store into the view, without scratch */
    zarr_memory at;
};
bool zr_slabs_fit(const struct zr_io *io, const struct zr_segment *segment);
zarr_status zr_slabs_open(struct zr_slabs *s, const struct zr_io *io,
                          const struct zr_segment *segment, zarr_error *err);
zarr_status zr_slabs_one(const struct zr_work *w, struct zr_slabs *s, uint64_t i,
                         zarr_error *err);
void zr_slabs_close(struct zr_slabs *s); /* also after a failed open */
/* Short cuts for a segment on this thread: in slabs; stored elements directly into the
 * view; only the ranges needed. *done stays false if a short cut does not apply. */
zarr_status zr_slabs_read(const struct zr_work *w, const struct zr_segment *segment,
                          bool *done, zarr_error *err);
zarr_status zr_raw_direct(const struct zr_work *w, const struct zr_segment *segment,
                          bool *done, zarr_error *err);
zarr_status zr_raw_ranges(const struct zr_work *w, const struct zr_segment *segment,
                          bool *done, zarr_error *err);
/* Counts an item whose elements are in the view. */
void zr_item_count(const struct zr_work *w, const struct zr_item *item, bool direct);
/* Finishes an item: copies its elements from block to the view (direct: they are there
 * already) and counts it. */
zarr_status zr_item_finish(const struct zr_work *w, const struct zr_segment *segment,
                           const struct zr_item *item, const zarr_memory *block,
                           bool direct, zarr_error *err);
/* Decodes an item that was fetched, puts its elements in their place and counts it. skip:
 * as in struct zr_coding. */
zarr_status zr_item_decode(const struct zr_work *w, const struct zr_segment *segment,
                           const struct zr_item *item, const zarr_memory *encoded,
                           uint64_t skip, zarr_error *err);
/* Prefixes an error with the address of an item. */
zarr_status zr_item_prefix(const struct zr_segment *segment, const struct zr_item *item,
                           zarr_status st, zarr_error *err);
/* Opens one shard of an OPEN wave and sets o->shard. */
zarr_status zr_open_exec(const struct zr_work *w, struct zr_open *o, zarr_error *err);
/* An encoded index. own: the memory of zr_index_memory() that `encoded` is in, or NULL.
 */
struct zr_index_value {
    zarr_memory encoded;
    uint64_t *own;
    uint64_t shard_bytes; /* length of the shard's value; UINT64_MAX: unknown */
};
/* Gives memory for an encoded index, from the allocator. The index can be decoded there,
 * so that it is in memory only once. */
zarr_status zr_index_memory(const struct zr_work *w, const struct zr_level *lv,
                            uint64_t **own, zarr_memory *out, zarr_error *err);
/* Decodes and checks an encoded index. Takes over value->own, also if it fails. */
zarr_status zr_index_parse(const struct zr_work *w, const struct zr_level *lv,
                           const struct zr_index_value *value,
                           struct zr_shard_index **out, zarr_error *err);
/* Parses the index of a shard value held in host memory. */
zarr_status zr_index_from_value(const struct zr_work *w, const struct zr_level *lv,
                                const zarr_memory *value, struct zr_shard_index **out,
                                zarr_error *err);

#endif
