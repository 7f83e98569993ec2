/*
 * codecs/packbits/packbits.h - what packbits makes of a data type.
 */
#ifndef ZR_PACKBITS_FAMILY_H
#define ZR_PACKBITS_FAMILY_H

#include "codecs/codecs_int.h"

/* packbits for elements of a data type. */
struct zr_packbits {
    uint32_t components, bytes, bits; /* of an element; in memory and significant, each */
    uint32_t first, kept;             /* which bits are stored */
    bool is_signed, boolean;
    bool padding_first, padding_last; /* a byte counts the padding bits */
};
/* INVALID, UNSUPPORTED: the type has no such bits, or is no number. */
zarr_status zr_spec_packbits(const zarr_codec_spec *spec, const zarr_dtype *dtype,
                             struct zr_packbits *out, zarr_error *err);

#endif
