/*
 * codecs/zfp/zfp_field.h - what zfp makes of a data type and a configuration.
 */
#ifndef ZR_ZFP_FIELD_FAMILY_H
#define ZR_ZFP_FIELD_FAMILY_H

#include "codecs/codecs_int.h"

/* zfp: what it makes of a data type and a configuration. */
enum zr_zfp_scalar { /* zfp's own types */
    ZR_ZFP_INT32,
    ZR_ZFP_INT64,
    ZR_ZFP_FLOAT,
    ZR_ZFP_DOUBLE
};
enum zr_zfp_mode { /* numbered as zfp does */
    ZR_ZFP_EXPERT = 1,
    ZR_ZFP_RATE,
    ZR_ZFP_PRECISION,
    ZR_ZFP_ACCURACY,
    ZR_ZFP_REVERSIBLE
};
struct zr_zfp {
    enum zr_zfp_scalar scalar;
    enum zr_zfp_mode mode;
    uint32_t item_bytes;   /* of the data type */
    uint32_t bits;         /* narrower than 32: the integer is shifted up; else 0 */
    struct zr_number real; /* narrower than 32 bits: cast to float; else kind 0 */
    bool is_unsigned;
    bool header;      /* numcodecs' zfpy */
    uint32_t dims;    /* 1 to 4 */
    uint64_t size[4]; /* slowest first */
    /* zfpy behind a filter that flattens: the array's own dimensions, which a header may
     * name as well; 0: more than zfp has, or no such filter */
    uint32_t array_dims;
    uint64_t array_size[4];
    bool bits_of_floats; /* zfpy behind bitround: integers, but a header may say floats */
    uint64_t n_items, n_blocks;
    uint32_t minbits, maxbits, maxprec; /* the four of the expert mode; for other modes */
    int32_t minexp;                     /* bounds for a block of 4^dims */
    double number;                      /* rate, precision or tolerance */
};
/* `array` is the decoded side. INVALID, UNSUPPORTED. */
zarr_status zr_spec_zfp(const zarr_codec_spec *spec, const zarr_chunk_spec *array,
                        struct zr_zfp *out, zarr_error *err);
/* Blocks of 4^dims that cover so many items. */
uint64_t zr_zfp_blocks(const uint64_t *size, uint32_t dims);
/* Most bits that a block takes. */
uint64_t zr_zfp_block_bits(const struct zr_zfp *z);

#endif
