/*
 * codecs/vlen/vlen.h - the two arrays inside a chunk of zarrs.vlen, and the lists of
 * vlen-array.
 */
#ifndef ZR_VLEN_FAMILY_H
#define ZR_VLEN_FAMILY_H

#include "codecs/codecs_int.h"

/* zarrs.vlen: describes the inputs of its two chains for a chunk of n elements. `index`
 * has n + 1 offsets. `data` has the bytes of all elements, at most as many as the limits
 * allow. */
zarr_status zr_spec_vlen_inner(const zarr_codec_spec *spec,
                               const zarr_chunk_spec *decoded, zarr_chunk_spec *index,
                               zarr_chunk_spec *data, zarr_error *err);

/* vlen-array: the data type of the lists' items, and their byte order in the store. */
struct zr_ragged {
    const zarr_dtype *item;
    struct zr_order stored;
};
zarr_status zr_spec_read_ragged(const zarr_codec_spec *spec, struct zr_ragged *out,
                                zarr_error *err);

#endif
