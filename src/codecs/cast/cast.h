/*
 * codecs/cast/cast.h - what cast_value, scale_offset and bitround do, number by number.
 */
#ifndef ZR_CAST_FAMILY_H
#define ZR_CAST_FAMILY_H

#include "codecs/codecs_int.h"

struct zr_cast_pair { /* of a scalar_map */
    uint64_t key, value;
    size_t order;
};
/* What cast_value does in one direction. */
struct zr_cast {
    struct zr_number from, to;
    uint32_t rounding, range;
    struct zr_cast_pair *map; /* n_map of them by key, owned */
    size_t n_map;
    const zarr_allocator *alloc;
};
/* array: the type on the decoded side. */
zarr_status zr_cast_open(struct zr_cast *c, const zarr_codec_spec *spec,
                         const zarr_dtype *array, bool encode,
                         const zarr_allocator *alloc, zarr_error *err);
void zr_cast_close(struct zr_cast *c);
const struct zr_cast_pair *zr_cast_mapped(const struct zr_cast *c, uint64_t bits);
enum zr_cast_result zr_cast_one(const struct zr_cast *c, uint64_t bits, uint64_t *out);
const char *zr_cast_reason(enum zr_cast_result result); /* "NaN, which ..." */

/* What scale_offset does. */
struct zr_affine {
    struct zr_number number;
    double offset, scale;               /* floats: exactly these */
    uint64_t whole_offset, whole_scale; /* integers: two's complement */
};
zarr_status zr_affine_open(struct zr_affine *a, const zarr_codec_spec *spec,
                           const zarr_dtype *dtype, zarr_error *err);
/* One element, by its bits or as an integer. False: the type has no such result. */
bool zr_affine_one(const struct zr_affine *a, bool encode, uint64_t bits, uint64_t *out);
bool zr_affine_signed(const struct zr_affine *a, bool encode, int64_t v, int64_t *out);
bool zr_affine_unsigned(const struct zr_affine *a, bool encode, uint64_t v,
                        uint64_t *out);

/* What bitround works on: units of so many bytes, `parts` of them an element. */
struct zr_round {
    uint8_t unit_bytes, parts, fraction_bits;
    bool real; /* floats; else integers, from the highest bit that is set */
};
bool zr_round_of(const zarr_dtype *dtype, struct zr_round *out);

#endif
