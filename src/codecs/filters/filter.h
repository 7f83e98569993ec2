/*
 * codecs/filters/filter.h - the configuration of numcodecs' filters that compute.
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
    uint64_t u; /* if whole: the number in two's complement */
    bool whole, minus;
};
/* One filter. In v2 it works on bytes, in v3 between arrays. */
struct zr_filter {
    enum zr_filter_kind kind;
    struct zr_number dtype, astype; /* decoded and encoded elements */
    struct zr_filter_factor offset, scale;
    double quantum;                    /* quantize: 1 / its step */
    struct zr_numpy_unit unit, asunit; /* of times; their dtype and astype are int64 */
    /* in a store: decoding changes nothing, so the types need not fit the array.
     * only_decodes: the filter cannot encode them, and they count as bytes */
    bool nothing, only_decodes;
};
/* Reads the configuration. `array` is the data type of the decoded array, whose elements
 * have this machine's byte order. It is NULL if the filter works on bytes. */
zarr_status zr_filter_read(const zarr_codec_spec *spec, const zarr_dtype *array,
                           struct zr_filter *out, zarr_error *err);

#endif
