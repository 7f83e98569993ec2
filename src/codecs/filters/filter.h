/*
 * codecs/filters/filter.h - what a filter of numcodecs that computes says.
 */
#ifndef ZR_FILTER_FAMILY_H
#define ZR_FILTER_FAMILY_H

#include "codecs/codecs_int.h"

enum zr_filter_kind {
    ZR_FILTER_DELTA,
    ZR_FILTER_SCALE, /* fixedscaleoffset */
    ZR_FILTER_QUANTIZE,
    ZR_FILTER_ASTYPE
};
struct zr_filter_factor { /* a number of the configuration, as Python reads it */
    double f;
    uint64_t u; /* whole: two's complement */
    bool whole, minus;
};
/* What a filter of numcodecs that computes says: in v2 over bytes, in v3 between arrays.
 */
struct zr_filter {
    enum zr_filter_kind kind;
    struct zr_number dtype, astype; /* decoded and encoded elements */
    struct zr_filter_factor offset, scale;
    double quantum;                    /* quantize: 1 / its step */
    struct zr_numpy_unit unit, asunit; /* of times, whose types are int64's */
};
/* `array`: the type on the decoded side where that is an array, whose elements have this
 * machine's byte order; NULL for bytes. */
zarr_status zr_filter_read(const zarr_codec_spec *spec, const zarr_dtype *array,
                           struct zr_filter *out, zarr_error *err);

#endif
