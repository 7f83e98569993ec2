/*
 * codecs/cast/cast_loop.h - casts of whole runs of elements, apart from chunks and jobs.
 */
#ifndef ZR_CAST_LOOP_H
#define ZR_CAST_LOOP_H

#include "codecs/cast/cast.h"

struct zr_cast_loop { /* a cast, and what its loops need */
    struct zr_cast cast;
    bool quick;    /* the block loops can load its source and store its target */
    double *table; /* values of a source type of one byte; NULL: none */
};
zarr_status zr_cast_loop_open(struct zr_cast_loop *r, const zarr_codec_spec *spec,
                              const zarr_dtype *array, bool encode,
                              const zarr_allocator *alloc, zarr_error *err);
void zr_cast_loop_close(struct zr_cast_loop *r);
/* n elements from src to dst, which do not overlap. *bad: the first that has no value. */
enum zr_cast_result zr_cast_all(const struct zr_cast_loop *r, uint8_t *dst,
                                const uint8_t *src, size_t n, size_t *bad);

#endif
