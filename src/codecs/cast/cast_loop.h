/*
 * codecs/cast/cast_loop.h - casts of many elements. Knows no chunks and no jobs.
 */
#ifndef ZR_CAST_LOOP_H
#define ZR_CAST_LOOP_H

#include "codecs/cast/cast.h"

struct zr_cast_loop { /* a cast and the state of its loops */
    struct zr_cast cast;
    bool quick; /* the block loops can load the source type and store the target type */
    double *table; /* the values of a float source of one byte, else NULL */
};
zarr_status zr_cast_loop_open(struct zr_cast_loop *r, const zarr_codec_spec *spec,
                              const zarr_dtype *array, bool encode,
                              const zarr_allocator *alloc, zarr_error *err);
void zr_cast_loop_close(struct zr_cast_loop *r);
/* Casts n elements from src to dst, which must not overlap. On failure *bad is the index
 * of the first element that the target type cannot represent. */
enum zr_cast_result zr_cast_all(const struct zr_cast_loop *r, uint8_t *dst,
                                const uint8_t *src, size_t n, size_t *bad);

#endif
