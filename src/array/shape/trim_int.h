/*
 * array/shape/trim_int.h - a trim under way: trim_rows.c finds the chunks, trim.c trims
 * them.
 */
#ifndef ZR_ARRAY_TRIM_INT_H
#define ZR_ARRAY_TRIM_INT_H

#include "array/shape/shape_int.h"
#include "array/stored/stored_int.h"

struct zr_trim {
    const struct zr_trim_job *job;
    const zarr_array *a;        /* the job's */
    struct zr_array_state *old; /* the job's */
    const uint64_t *new_shape;  /* the job's */
    bool keep_border;           /* leave border chunks alone */
    bool by_version;            /* no lock keeps out an append */
    bool erases;                /* false: chunks that go become fill values instead */
    atomic_uint_fast64_t
        n_kept; /* those of them with other elements than the fill value */
    struct zr_stored rows;
    bool listed;         /* the rows are of stored chunks alone */
    size_t batch;        /* rows for one look at the stored shape */
    uint32_t unit_flags; /* of operations that change chunks */
    /* per dimension: number of chunks wholly inside the new shape */
    uint64_t keep[ZARR_MAX_RANK];
    struct {
        zr_mutex mutex;
        struct zr_str text; /* the document as it was last read */
        uint64_t shape[ZARR_MAX_RANK];
        bool known; /* text and shape are set */
    } locked;
};
/* Sets t->keep and t->rows. The rows include all stored chunks that are not wholly
 * inside; they may include others. */
zarr_status zr_trim_find_rows(struct zr_trim *t, zarr_error *err);

#endif
