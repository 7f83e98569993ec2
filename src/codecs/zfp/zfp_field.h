/*
 * codecs/zfp/zfp_field.h - the field of zfp that a data type and a configuration
 * give.
 */
#ifndef ZR_ZFP_FIELD_FAMILY_H
#define ZR_ZFP_FIELD_FAMILY_H

#include "codecs/codecs_int.h"

enum zr_zfp_scalar { /* the types of zfp */
    ZR_ZFP_INT32,
    ZR_ZFP_INT64,
    ZR_ZFP_FLOAT,
    ZR_ZFP_DOUBLE
};
enum zr_zfp_mode { /* with zfp's numbers */
    ZR_ZFP_EXPERT = 1,
    ZR_ZFP_RATE,
    ZR_ZFP_PRECISION,
    ZR_ZFP_ACCURACY,
    ZR_ZFP_REVERSIBLE
};
struct zr_zfp {
    enum zr_zfp_scalar scalar;
    enum zr_zfp_mode mode;
    uint32_t item_bytes; /* of the data type */
    uint32_t bits; /* of an integer narrower than 32 bits, which is shifted up; else 0 */
    struct zr_number real; /* a float narrower than 32 bits, which is cast; else kind 0 */
    bool is_unsigned;
    bool header;      /* numcodecs' zfpy: the stream has a header */
    uint32_t dims;    /* 1 to 4 */
    uint64_t size[4]; /* slowest dimension first */
    /* zfpy after a filter that flattens: the array's own dimensions, which a header may
     * name instead. array_dims is 0 without such a filter, or if zfp lacks this number of
     * dimensions. */
    uint32_t array_dims;
    uint64_t array_size[4];
    bool bits_of_floats; /* zfpy after bitround: integers, but a header may say floats */
    uint64_t n_items, n_blocks;
    /* The parameters of the expert mode. In other modes, bounds of a block of 4^dims. */
    uint32_t minbits, maxbits, maxprec;
    int32_t minexp;
    double number; /* rate, precision or tolerance */
};
/* `array` is the decoded side. INVALID for a wrong configuration, UNSUPPORTED for a data
 * type or a number of dimensions that zfp lacks. */
zarr_status zr_spec_zfp(const zarr_codec_spec *spec, const zarr_chunk_spec *array,
                        struct zr_zfp *out, zarr_error *err);
/* The number of blocks of 4^dims items that cover a field of this size. */
uint64_t zr_zfp_blocks(const uint64_t *size, uint32_t dims);

#endif
