/*
 * pipe/lockstep_int.h - what lockstep.c and lockstep_lists.c share: one wave of reads
 * whose chunks go through each stage together.
 */
#ifndef ZR_LOCKSTEP_INT_H
#define ZR_LOCKSTEP_INT_H

#include "pipe/pipe_int.h"

struct zr_lock_item {
    const struct zr_segment *segment;
    const struct zr_item *item;
    zarr_mem cur, next;
    bool direct; /* `next` is the caller's memory */
};

struct zr_lockstep {
    const struct zr_io *io;
    struct zarr_request *rq;
    struct zr_wave *wave;
    const struct zr_program *p;
    const zarr_mem *fetched;
    struct zr_lock_item *item;
    uint32_t n;
    struct zr_flow flow;
    const struct zr_level *
        *level; /* of the segments in work: each level has its own program */
    uint32_t n_levels;
    const struct zr_stage *stage; /* of the current loop */
    zarr_mem slab[2];             /* pool blocks for the outputs of stages, in turn */
    struct zr_program end; /* `p`, as if its elements were in the tensor's memory */
};

/* Gives back a slab once no work uses it, and takes one with room for n slices of *step
 * bytes, which is rounded up. */
zarr_status zr_lock_slab(struct zr_lockstep *l, int32_t device, uint64_t *step,
                         uint64_t n, zarr_mem *slab, zarr_error *err);
/* The segment of an item becomes the item of the error, as callers expect, and the item
 * gets into its text. */
zarr_status zr_lock_name(const struct zr_lockstep *l, zarr_status st, zarr_error *err);

/* ---- lists (lockstep_lists.c), only with a device -------------------------------- */

/* Copies what all items have to memory of a device, or from there: to the caller's
 * memory where a chunk fits it (if `last`), else to slices of the slab. `aligned`: each
 * chunk begins at its own boundary. */
zarr_status zr_lock_copy(struct zr_lockstep *l, int32_t device, zarr_mem *slab, bool last,
                         bool aligned, zarr_error *err);
/* Puts the elements of all items into the caller's memory. */
zarr_status zr_lock_scatter(struct zr_lockstep *l, zarr_error *err);

#endif
