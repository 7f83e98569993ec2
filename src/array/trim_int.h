/*
 * array/trim_int.h - a trim under way, between trim.c (what happens to a chunk) and
 * trim_rows.c (which chunks).
 */
#ifndef ZR_ARRAY_TRIM_INT_H
#define ZR_ARRAY_TRIM_INT_H

#include "array/array_int.h"

struct zr_trim {
    const zarr_array *a;
    struct zr_array_state *old;
    const uint64_t *new_shape;
    struct zr_stored rows;
    uint64_t keep[ZARR_MAX_RANK]; /* chunks of each dimension wholly inside */
    struct {
        zr_mutex mutex;
        struct zr_str text; /* the document when it was looked at last */
        uint64_t shape[ZARR_MAX_RANK];
        bool known; /* text and shape are */
    } locked;
};
/* Cells of the old array that a chunk has in a dimension: [*low, *high). */
void zr_trim_range(const struct zr_array_state *s, int32_t d, uint64_t chunk,
                   uint64_t *low, uint64_t *high);
/* Fills t->keep and t->rows: chunks that may be stored and are not wholly inside, and
 * others. */
zarr_status zr_trim_find_rows(struct zr_trim *t, zarr_error *err);

#endif
