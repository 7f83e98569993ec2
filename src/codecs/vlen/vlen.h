/*
 * codecs/vlen/vlen.h - the arrays inside a chunk of zarrs.vlen, and the lists of
 * vlen-array.
 */
#ifndef ZR_VLEN_FAMILY_H
#define ZR_VLEN_FAMILY_H

#include "codecs/codecs_int.h"

/* zarrs.vlen: the arrays that its two chains get, for a chunk of n elements: the index of
 * n + 1 offsets, and the bytes, of any number that limits allow. */
zarr_status zr_spec_vlen_inner(const zarr_codec_spec *spec,
                               const zarr_chunk_spec *decoded, zarr_chunk_spec *index,
                               zarr_chunk_spec *data, zarr_error *err);

/* vlen-array: what the lists hold, and in which byte order. */
struct zr_ragged {
    const zarr_dtype *item;
    struct zr_order stored;
};
zarr_status zr_spec_ragged(const zarr_codec_spec *spec, struct zr_ragged *out,
                           zarr_error *err);

#endif
