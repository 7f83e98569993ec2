/*
 * tree/reencode_int.h - what the files of zarr_node_reencode() share: reencode.c (the
 * call), reencode_plan.c (plans the destination, and checks what is there),
 * reencode_missing.c (keeps missing values if the format changes),
 * reencode_array.c (re-encodes the elements of one array), reencode_box.c and
 * reencode_sparse.c (choose the boxes), reencode_compare.c (compares the result).
 */
#ifndef ZR_REENCODE_INT_H
#define ZR_REENCODE_INT_H

#include "grid/grid.h"
#include "tree/tree.h"
#include <zarrc/reencode.h>
#include <zarrc/vlen.h>

struct zr_reencode {
    zarr_store *src, *dst;
    char *src_path, *dst_path; /* normalised */
    zarr_context *ctx;         /* of src: its allocator is used */
    zarr_reencode_options opts;
    zarr_array_spec changes; /* opts.changes as read; empty if there are none */
    zarr_reencode_result result;
    struct zr_nodes nodes; /* nodes of src */
    /* a store in memory with the documents planned for the destination */
    zarr_store *target;
    struct zr_claim claim; /* of the destination */
    struct zr_str job;     /* text of the job object */
    uint64_t done_bytes;   /* decoded bytes finished */
    bool comparing;
    bool ome_told; /* a group above has the warning about OME-Zarr */
};

/* Source and destination of one array. The destination has its chunks in the
 * destination's store and its document in `target`. */
struct zr_reencode_pair {
    zarr_array *src, *dst;
    const struct zr_grid *grid; /* of the blocks of dst */
    const char *path;           /* path of src */
};
/* Boxes that fit both sides: whole blocks of dst and, if memory allows, whole source
 * chunks. n_buffers is 1 if two buffers would exceed the limit. */
struct zr_reencode_shape {
    struct zr_box_walk boxes;
    /* shape of the largest unit, and number of units per dimension */
    uint64_t unit[ZARR_MAX_RANK], grid[ZARR_MAX_RANK];
    uint64_t item_bytes, buffer_bytes, unit_bytes;
    int n_buffers; /* 0: no elements */
    /* A unit exceeds the buffers: each box is one unit, which is a shard and is written
     * in parts. When results are compared, boxes are chunks of it instead. */
    bool in_parts;
};

/* ---- reencode.c ---- */

void zr_reencode_progress(const struct zr_reencode *r, const char *path,
                          uint64_t under_way);

/* ---- reencode_plan.c ---- */

/* Sets target and job. */
zarr_status zr_reencode_plan(struct zr_reencode *r, zarr_error *err);
/* Looks at the destination. Sets the result's state, or fails if the call cannot go on
 * there. */
zarr_status zr_reencode_begin(struct zr_reencode *r, zarr_error *err);
/* Puts the documents at their places, that of the top node last, and removes the job
 * object. */
zarr_status zr_reencode_finish(struct zr_reencode *r, zarr_error *err);

/* ---- reencode_missing.c ---- */

/* Changes the planned documents of the array `made`, at path, so that the missing value
 * of its source stays. */
zarr_status zr_reencode_keep_missing(struct zr_reencode *r, const zarr_array *source,
                                     const zarr_array *made, const char *path,
                                     zarr_error *err);

/* Tells the caller if readers of OME-Zarr will not find the metadata of this group. */
zarr_status zr_reencode_ome(struct zr_reencode *r, const char *attributes,
                            const char *path, int32_t format, zarr_error *err);

/* ---- reencode_box.c ---- */

zarr_status zr_reencode_shape(struct zr_reencode *r, const struct zr_reencode_pair *pair,
                              struct zr_reencode_shape *s, zarr_error *err);
/* Makes a buffer for a box. */
zarr_status zr_reencode_buffer(const struct zr_reencode *r,
                               const struct zr_reencode_shape *s, void **out,
                               zarr_error *err);

/* ---- reencode_sparse.c ---- */

/* Collects the boxes, by their number in each dimension, in which the source has stored
 * chunks (`both`: or the destination). *few false: such boxes are too many, or the others
 * may differ, so all must be done. */
zarr_status zr_reencode_sparse(const struct zr_reencode *r,
                               const struct zr_reencode_pair *pair,
                               const struct zr_box_walk *b, bool both,
                               struct zr_coord_set *out, bool *few, zarr_error *err);

/* ---- reencode_array.c, reencode_compare.c ---- */

/* Writes the objects that do not exist yet. */
zarr_status zr_reencode_array(struct zr_reencode *r, const struct zr_reencode_pair *pair,
                              zarr_error *err);
/* Reads source and destination and compares every bit. If they differ: CORRUPT, and
 * result.differs is set. */
zarr_status zr_reencode_compare(struct zr_reencode *r,
                                const struct zr_reencode_pair *pair, zarr_error *err);

#endif
