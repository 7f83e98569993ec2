/*
 * pipe/chunk/chunk_int.h - what the files of this room share.
 */
#ifndef ZR_PIPE_CHUNK_INT_H
#define ZR_PIPE_CHUNK_INT_H

#include "pipe/chunk/chunk.h"

/* Does a GET without a copy if the store lends its bytes: *out is their place. g->dst
 * names the kind of memory and the number of bytes. Otherwise returns false. */
bool zr_lend_range(const struct zr_work *w, const struct zr_get *g, zarr_memory *out);
/* Encodes a chunk completely. dst has room for p->encoded_bound in p->fetch_device. */
zarr_status zr_chunk_encode(const struct zr_work *w, const struct zr_program *p,
                            const zarr_memory *src, const zarr_memory *dst,
                            zarr_memory *out, zarr_error *err);
/* Takes what a stage needs for one chunk from the worker's scratch memory. Leaves *out as
 * it is if the stage needs none. */
zarr_status zr_take_stage_scratch(const struct zr_work *w, const struct zr_stage *s,
                                  int32_t device, zarr_memory *out, zarr_error *err);
/* Copies encoded bytes to scratch if they are not in memory that s, the first stage of a
 * program, takes. Valid until the worker's next copy. */
zarr_status zr_bring_encoded(const struct zr_work *w, const struct zr_stage *s,
                             zarr_memory *encoded, zarr_error *err);
/* Copy the boxes of a target between a block of elements and the view. */
zarr_status zr_scatter_target(const struct zr_work *w, const struct zr_program *p,
                              const struct zr_target *t, const zarr_memory *block,
                              zarr_error *err);
zarr_status zr_gather_target(const struct zr_work *w, const struct zr_program *p,
                             const struct zr_target *t, const zarr_memory *block,
                             zarr_error *err);
/* lv: the level whose fill value is used. */
zarr_status zr_fill_target(const struct zr_work *w, const struct zr_level *lv,
                           const struct zr_target *t, zarr_error *err);
/* Fills a decoded block with the fill value in the byte order of the program. */
zarr_status zr_fill_block(const struct zr_work *w, const struct zr_level *lv,
                          const struct zr_program *p, const zarr_memory *block,
                          zarr_error *err);
/* The same for unsized programs. Decoded elements of variable length point into src or
 * the worker's decode_buffer; *out of encoding is in encode_buffer (or src). Both are
 * valid until the worker's next call. dst NULL: a buffer. */
zarr_status zr_worker_decode_unsized(const struct zr_work *w, const struct zr_program *p,
                                     const zarr_memory *src, const zarr_memory *dst,
                                     zarr_memory *out, zarr_error *err);
zarr_status zr_chunk_decode_unsized(const struct zr_work *w, const struct zr_program *p,
                                    const zarr_memory *src, const zarr_memory *last,
                                    zarr_memory *out, zarr_error *err);
zarr_status zr_chunk_encode_unsized(const struct zr_work *w, const struct zr_program *p,
                                    const zarr_memory *src, zarr_memory *out,
                                    zarr_error *err);
/* Copies elements of variable length to the view, and their bytes to the heap. */
zarr_status zr_vlen_scatter(const struct zr_work *w, const struct zr_program *p,
                            const struct zr_target *t, const zarr_memory *block,
                            zarr_error *err);
/* A fill value whose bytes are in the heap. */
struct zr_vlen_item {
    zarr_vlen item;
    uint8_t optional[16]; /* what optional types append to it, one byte per level */
};
zarr_status zr_vlen_fill(const struct zr_work *w, const struct zr_target *t,
                         struct zr_vlen_item *fill, zarr_error *err);
/* Chooses `split`, for at most `most` ranges. `each`: what one more range costs, in
 * bytes. Returns the cost; UINT64_MAX if it exceeds 64 bits. The target must be
 * arithmetic. */
uint64_t zr_ranges_choose(const struct zr_program *p, const struct zr_target *t,
                          uint64_t each, uint64_t most, struct zr_ranges *s);

/* ---- direct routes ---------------------------------------------------------------- */

/* A chunk that a direct route may read. */
struct zr_direct {
    const struct zr_segment *segment;
    const struct zr_item *item;
    /* its encoded bytes, or NULL if they have not been fetched */
    struct zr_coding *coding;
    /* its ranges (zr_raw_in_ranges()), or NULL if they have not been fetched */
    const zarr_memory *fetched;
    zarr_memory at; /* its place in the view, for a route that needs one */
    /* out, without coding: bytes of host memory that the route takes at most */
    uint64_t bytes;
    /* out, with coding: the elements are in the view; otherwise in coding->cur */
    bool placed;
};
struct zr_direct_route {
    bool encoded; /* it takes encoded bytes; otherwise it reads the store */
    bool (*applies)(const struct zr_work *w, struct zr_direct *d);
    /* Sets *done if it has read the chunk. Otherwise the general way goes on from
     * coding. Without coding, it also counts the chunk. */
    zarr_status (*read)(const struct zr_work *w, struct zr_direct *d, bool *done,
                        zarr_error *err);
};
/* Returns the first route that applies; NULL: none. The caller calls its read(), which
 * saves a frame on the stack. */
const struct zr_direct_route *zr_find_route(const struct zr_work *w, struct zr_direct *d);
extern const struct zr_direct_route zr_route_slabs; /* large uncompressed chunks */

#endif
