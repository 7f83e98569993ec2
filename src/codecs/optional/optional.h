/*
 * codecs/optional/optional.h - the two arrays inside a chunk of `optional`.
 */
#ifndef ZR_OPTIONAL_FAMILY_H
#define ZR_OPTIONAL_FAMILY_H

#include "codecs/codecs_int.h"

/* optional: the arrays that its two chains get, for a chunk of n elements: the mask, of
 * the same shape, and the values, of any number up to n. INVALID: no optional type. */
zarr_status zr_spec_optional_inner(const zarr_codec_spec *spec,
                                   const zarr_chunk_spec *decoded, zarr_chunk_spec *mask,
                                   zarr_chunk_spec *data, zarr_error *err);

#endif
