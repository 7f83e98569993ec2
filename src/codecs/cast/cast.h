/*
 * codecs/cast/cast.h - the arithmetic of cast_value, scale_offset and bitround for single
 * numbers.
 */
#ifndef ZR_CAST_FAMILY_H
#define ZR_CAST_FAMILY_H

#include "codecs/codecs_int.h"

struct zr_cast_pair { /* one entry of a scalar_map */
    uint64_t key, value;
    size_t order;
};
/* cast_value in one direction. */
struct zr_cast {
    struct zr_number from, to;
    uint32_t rounding, range;
    struct zr_cast_pair *map; /* n_map entries sorted by key, owned */
    size_t n_map;
    const zarr_allocator *alloc;
};
/* `array` is the data type on the decoded side. */
zarr_status zr_cast_open(struct zr_cast *c, const zarr_codec_spec *spec,
                         const zarr_dtype *array, bool encode,
                         const zarr_allocator *alloc, zarr_error *err);
void zr_cast_close(struct zr_cast *c);
const struct zr_cast_pair *zr_cast_find_pair(const struct zr_cast *c, uint64_t bits);
enum zr_cast_result zr_cast_one(const struct zr_cast *c, uint64_t bits, uint64_t *out);
const char *zr_cast_reason(enum zr_cast_result result); /* "NaN, which ..." */

struct zr_affine {
    struct zr_number number;
    double offset, scale;               /* for floats, exact */
    uint64_t whole_offset, whole_scale; /* for integers, in two's complement */
};
zarr_status zr_affine_open(struct zr_affine *a, const zarr_codec_spec *spec,
                           const zarr_dtype *dtype, zarr_error *err);
/* Encode or decode one element, given by its bits or as an integer. Return false if the
 * type cannot represent the result. */
bool zr_affine_one(const struct zr_affine *a, bool encode, uint64_t bits, uint64_t *out);
bool zr_affine_apply_signed(const struct zr_affine *a, bool encode, int64_t v,
                            int64_t *out);
bool zr_affine_apply_unsigned(const struct zr_affine *a, bool encode, uint64_t v,
                              uint64_t *out);

/* The units that bitround works on. An element has `parts` units of unit_bytes each. */
struct zr_round {
    uint8_t unit_bytes, parts, fraction_bits;
    /* Floats, which keep bits of their fraction. Integers keep bits from the highest set
     * bit on. */
    bool real;
};
bool zr_round_from_dtype(const zarr_dtype *dtype, struct zr_round *out);
/* Whether the metadata name numcodecs' codec: the filter of v2, or numcodecs.bitround. */
bool zr_round_is_numcodecs(const zarr_codec_spec *spec);
/* Fails with the code unless numcodecs encodes these elements: floats that have the bits.
 */
zarr_status zr_round_numcodecs(const zarr_codec_spec *spec, const zarr_dtype *dtype,
                               zarr_status code, zarr_error *err);

#endif
