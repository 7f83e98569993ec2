/*
 * check/check.h - the door of the room that compares and verifies: what its files share.
 * It only reads, and no other room enters it. The public calls are in zarrc/check.h.
 */
#ifndef ZR_CHECK_H
#define ZR_CHECK_H

#include "tree/tree.h"
#include <zarrc/check.h>

/* ---- diff ------------------------------------------------------------------ */

/* One call of zarr_node_diff(). */
struct zr_diff {
    zarr_store *store[2];
    char *top[2];      /* normalised */
    zarr_context *ctx; /* of the first store: memory comes from it */
    zarr_diff_options opts;
    zarr_diff_result result;
    uint64_t done_bytes, total_bytes;
    bool data_only, stopped; /* stopped: by the caller */
};

/* A pair of nodes that is being compared. */
struct zr_diff_pair {
    struct zr_diff *d;
    const char *below;     /* path below both tops */
    struct zr_str path[2]; /* from the stores' roots */
    zarr_array *array[2];  /* NULL: groups */
    /* What is compared: whole elements, or the field of both; a subarray's dimensions are
     * behind those of the selection. */
    zarr_dtype_field field[2];
    uint64_t n_values; /* in one element */
    const zarr_selection *selection[2];
    zarr_diff_node node;
    int32_t ndim; /* of indexes that are told */
    uint64_t n_told;
    uint64_t first_at[ZARR_MAX_RANK], largest_at[ZARR_MAX_RANK];
};

/* Tells a difference other than an element. */
void zr_diff_tell(struct zr_diff_pair *p, zarr_difference *difference);
/* Whether the caller wants to know no more. */
bool zr_diff_enough(const struct zr_diff *d);
void zr_diff_progress(const struct zr_diff *d, const char *path);

/* ---- diff_facts.c ---- */

/* What two arrays are: data type, fill value, names, attributes, and how they are stored.
 */
zarr_status zr_diff_arrays(struct zr_diff_pair *p, zarr_error *err);
zarr_status zr_diff_attributes(struct zr_diff_pair *p, const char *a, const char *b,
                               zarr_error *err);

/* ---- diff_stored.c ---- */

/* The chunks that either array has stored, in *out, if the arrays can differ in no other
 * chunk and these are few; else *few is false. */
zarr_status zr_diff_stored(const struct zr_diff_pair *p, struct zr_coord_set *out,
                           bool *few, zarr_error *err);

/* ---- diff_elements.c ---- */

/* Elements of the selections, which are of one shape. */
zarr_status zr_diff_elements(struct zr_diff_pair *p, zarr_error *err);

#endif
