/*
 * codecs/optional/optional.h - the two arrays inside a chunk of `optional`.
 */
#ifndef ZR_OPTIONAL_FAMILY_H
#define ZR_OPTIONAL_FAMILY_H

#include "codecs/codecs_int.h"

/* Describes the inputs of the two nested chains for a chunk of n elements. `mask` has the
 * same shape. `data` has any number of values up to n. INVALID if the data type is not
 * optional. */
zarr_status zr_spec_optional_inner(const zarr_codec_spec *spec,
                                   const zarr_chunk_spec *decoded, zarr_chunk_spec *mask,
                                   zarr_chunk_spec *data, zarr_error *err);

#endif
