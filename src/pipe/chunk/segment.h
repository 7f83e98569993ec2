/*
 * pipe/chunk/segment.h - reads neighbouring chunks of one object, and the short cuts that
 * skip a copy or a part of the bytes.
 * Thread class: on the worker context.
 */
#ifndef ZR_PIPE_SEGMENT_H
#define ZR_PIPE_SEGMENT_H

#include "pipe/request/request.h"

/* Reads one segment of a data wave: fetches, decodes, scatters. fetched: the bytes of the
 * segment if they were fetched before, or the span of the ranges that its chunk is read
 * in (zr_raw_in_ranges()); NULL: they were not. */
zarr_status zr_segment_read(const struct zr_work *w, const struct zr_segment *segment,
                            const zarr_memory *fetched, zarr_error *err);
/* Bytes of the budgets that a read of a segment takes at most: none for a chunk that goes
 * straight into the view, and little for one that is read in part or in slabs. */
struct zr_need zr_segment_need(const struct zr_io *io, const struct zr_segment *segment);
/* Fetches the encoded bytes of a segment into a scratch block, or points to them.
 * NOT_FOUND: missing. */
zarr_status zr_segment_fetch(const struct zr_work *w, const struct zr_segment *segment,
                             zarr_memory *out, zarr_error *err);
/* The same for a range of a shard, for which the segment needs no items. */
zarr_status zr_segment_range(const struct zr_work *w, const struct zr_segment *segment,
                             zarr_memory *out, zarr_error *err);
/* Counts a missing item, whose elements become the fill value; or fails with NOT_FOUND if
 * the caller asked for that. CORRUPT: its entry in the shard's index is bad. */
zarr_status zr_item_count_missing(const struct zr_work *w,
                                  const struct zr_segment *segment,
                                  const struct zr_item *item, zarr_error *err);
/* The same, and writes the fill value. */
zarr_status zr_item_fill(const struct zr_work *w, const struct zr_segment *segment,
                         const struct zr_item *item, zarr_error *err);
/* The bytes of a chunk that a target needs, as ranges (ranges.c): dimensions below
 * `split` are walked index by index, and the others are read as one range. n is a count
 * for dimensions below `split`, an extent for the others. */
struct zr_ranges {
    int32_t ndim, split;
    uint64_t lo[ZARR_MAX_RANK], n[ZARR_MAX_RANK];
    int64_t step[ZARR_MAX_RANK];
    uint64_t stride[ZARR_MAX_RANK];
    uint64_t n_reads, read_bytes;
    uint64_t first, span; /* where the first begins; bytes from there to the last's end */
};
/* Returns the offset of the range at[], then advances at[] to the next. Begin with
 * zeros. */
uint64_t zr_ranges_next(const struct zr_ranges *s, uint64_t *at);
/* Whether ranges of an uncompressed chunk cost less than the chunk; *out: which. */
bool zr_raw_in_ranges(const struct zr_io *io, const struct zr_segment *segment,
                      struct zr_ranges *out);
/* Whether the stored bytes of a segment are its only chunk as the view has it; *at: its
 * place there. */
bool zr_raw_is_direct(const struct zr_io *io, const struct zr_segment *segment,
                      zarr_memory *at);
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
#endif
