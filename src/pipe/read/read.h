/*
 * pipe/read/read.h - the door of reading: opens shards, fetches ahead, and decodes a wave
 * by pipe/batch. It decodes nothing itself.
 * Thread class: one wave; helpers take worker contexts.
 */
#ifndef ZR_PIPE_READ_H
#define ZR_PIPE_READ_H

#include "pipe/batch/batch.h"
#include "pipe/read/inspect.h"

/* Segments fetched for a whole wave at once, not one by one by the workers
 * (prefetch.c). */
struct zr_prefetch {
    zarr_store_op *op;
    zarr_memory *mem;   /* by segment: the bytes fetched */
    zarr_memory *block; /* by operation: the pool block that they are in, or that begins
                         * with them */
    uint64_t *room;     /* by operation: the bytes of memory that it needs */
    /* by operation: the first segment, and how many neighbours of one object it covers.
     * 0: a range of what the chunk of the segment needs (zr_raw_in_ranges()); all of them
     * follow each other, and the first one's room is that of all */
    uint32_t *first, *count;
    struct zr_store_pin *pin; /* of chunks that are read in several ranges */
    uint32_t n, n_pins;       /* operations; pins */
    uint64_t gaps; /* bytes between the segments of an operation, fetched for nothing */
};
/* Fetches the indexes of a wave's shards at once, for stores that are not read on the
 * decoding thread (index_prefetch.c). What could not be fetched is left to
 * zr_open_exec(). The second function also comes after a failure of the first. */
zarr_status zr_opens_ahead(const struct zr_io *io, struct zarr_request *rq,
                           struct zr_wave *w, zarr_error *err);
void zr_opens_ahead_end(const struct zr_io *io, struct zr_wave *w);
/* Makes the operations of a wave that is fetched at once. */
zarr_status zr_prefetch_begin(const struct zr_io *io, struct zr_wave *w,
                              struct zr_prefetch *p, zarr_error *err);
/* What the chunks of a wave, or n of them at once, have on the device at most. */
uint64_t zr_wave_on_device(const struct zr_io *io, const struct zr_wave *w, uint64_t n);
/* Bytes of host memory that a read of one chunk of this level takes. */
uint64_t zr_chunk_on_host(const struct zr_io *io, const struct zr_level *lv);
/* Bytes of memory for it: the encoded bytes of all its segments, and blocks of elements:
 * one chunk per worker or, decoded together, input and output of all chunks. */
struct zr_need zr_prefetch_need(const struct zarr_request *rq, const struct zr_wave *w,
                                const struct zr_prefetch *p, bool batched);
zarr_status zr_prefetch_run(const struct zr_io *io, struct zarr_request *rq,
                            struct zr_wave *w, struct zr_prefetch *p, zarr_error *err);
/* Gives back the memory, if p->block is set. */
void zr_prefetch_end(const struct zr_io *io, struct zr_prefetch *p);
/* Opens one shard of an OPEN wave and sets o->shard. */
zarr_status zr_open_exec(const struct zr_work *w, struct zr_open *o, zarr_error *err);
/* As zr_segment_read() and zr_open_exec(), but a failure of some parts
 * is noted there. */
zarr_status zr_parts_read(const struct zr_work *w, const struct zr_segment *segment,
                          const zarr_memory *fetched, zarr_error *err);
zarr_status zr_parts_open(const struct zr_work *w, struct zr_open *o, zarr_error *err);
/* Decodes the chunks of a whole wave together: for programs with an implementation that
 * takes batches, and for elements that go to a device. fetched: by segment; handle NULL
 * if a segment was not fetched in advance. */
zarr_status zr_read_batch(const struct zr_io *io, struct zarr_request *rq,
                          struct zr_wave *wave, const zarr_memory *fetched,
                          zarr_error *err);

#endif
