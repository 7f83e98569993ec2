/*
 * codecs/packbits/packbits.h - how packbits stores the elements of a data type.
 */
#ifndef ZR_PACKBITS_FAMILY_H
#define ZR_PACKBITS_FAMILY_H

#include "codecs/codecs_int.h"

struct zr_packbits {
    /* Of an element: its components. Of each component: bytes in memory, significant
     * bits. */
    uint32_t components, bytes, bits;
    uint32_t first, kept; /* the stored bits: the lowest one, and their number */
    bool is_signed, boolean;
    bool padding_first, padding_last; /* where a byte counts the padding bits */
};
/* INVALID if the type lacks the configured bits. UNSUPPORTED if it is not a number, or
 * has components of more than 64 bits. */
zarr_status zr_spec_packbits(const zarr_codec_spec *spec, const zarr_dtype *dtype,
                             struct zr_packbits *out, zarr_error *err);

#endif
