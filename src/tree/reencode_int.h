/*
 * tree/reencode_int.h - what the files of zarr_node_reencode() share: reencode.c (the
 * call), reencode_plan.c (what the destination shall be, and what is there),
 * reencode_array.c (the elements of one array), reencode_box.c and reencode_sparse.c (in
 * which boxes), reencode_compare.c (whether they arrived).
 */
#ifndef ZR_REENCODE_INT_H
#define ZR_REENCODE_INT_H

#include "grid/grid.h"
#include "tree/tree.h"
#include <zarrc/reencode.h>
#include <zarrc/vlen.h>

#define ZR_JOB_NAME ".zarrc-job"

struct zr_reencode {
    zarr_store *src, *dst;
    char *src_path, *dst_path; /* normalised */
    zarr_context *ctx;         /* of src: memory comes from it */
    zarr_reencode_options opts;
    zarr_array_spec changes; /* opts.changes, read; without: empty */
    zarr_reencode_result result;
    struct zr_nodes nodes; /* of src */
    zarr_store *target;    /* in memory: the documents that the destination shall have */
    struct zr_str job;     /* text of the job object */
    uint64_t done_bytes;   /* decoded */
    bool comparing;
};

/* Source and destination of one array; the latter has its chunks in the destination's
 * store, its document in `target`. */
struct zr_reencode_pair {
    zarr_array *src, *dst;
    const struct zr_grid *grid; /* dst's units of writing */
    const char *path;           /* src's */
};
/* Boxes that fit both sides: whole units of writing, of whole source chunks where that
 * fits; n_buffers is 1 where two would be over the limit. */
struct zr_reencode_shape {
    struct zr_box_walk boxes;
    /* the largest unit, and how many there are in a dimension */
    uint64_t unit[ZARR_MAX_RANK], grid[ZARR_MAX_RANK];
    uint64_t item_bytes, buffer_bytes, unit_bytes;
    int n_buffers; /* 0: no elements */
};

/* ---- reencode.c ---- */

void zr_reencode_progress(const struct zr_reencode *r, const char *path,
                          uint64_t under_way);

/* ---- reencode_plan.c ---- */

/* Fills target and job. */
zarr_status zr_reencode_plan(struct zr_reencode *r, zarr_error *err);
/* Looks at what is at the destination: sets the state, or says why it cannot be. */
zarr_status zr_reencode_begin(struct zr_reencode *r, zarr_error *err);
/* Puts the documents where they belong, the top's own last, and ends the job. */
zarr_status zr_reencode_finish(struct zr_reencode *r, zarr_error *err);

/* ---- reencode_box.c ---- */

zarr_status zr_reencode_shape(struct zr_reencode *r, const struct zr_reencode_pair *pair,
                              struct zr_reencode_shape *s, zarr_error *err);

/* ---- reencode_sparse.c ---- */

/* Numbers of the boxes, along each dimension, in which the source (both: or the
 * destination) has anything stored, where the others are equal and many; *few false: do
 * all. */
zarr_status zr_reencode_sparse(const struct zr_reencode *r,
                               const struct zr_reencode_pair *pair,
                               const struct zr_box_walk *b, bool both,
                               struct zr_coord_set *out, bool *few, zarr_error *err);

/* ---- reencode_array.c, reencode_compare.c ---- */

/* Writes the objects that are not there yet. */
zarr_status zr_reencode_array(struct zr_reencode *r, const struct zr_reencode_pair *pair,
                              zarr_error *err);
/* Reads both and compares every bit; CORRUPT, and result.differs. */
zarr_status zr_reencode_compare(struct zr_reencode *r,
                                const struct zr_reencode_pair *pair, zarr_error *err);

#endif
