/*
 * check/diff_int.h - what the files that compare elements share. Positions are those of
 * what is compared: of the array, or of the region of it.
 */
#ifndef ZR_CHECK_DIFF_INT_H
#define ZR_CHECK_DIFF_INT_H

#include "check/check.h"
#include <zarrc/vlen.h>

struct zr_diff_box {
    uint64_t start[ZARR_MAX_RANK], count[ZARR_MAX_RANK];
    uint64_t n_items;
};

/* The chunks of one array. */
struct zr_diff_side {
    const zarr_array *array;
    const struct zr_grid *grid; /* of the array's blocks */
    int32_t ndim;               /* rank of what is compared */
    /* Whether what is compared is a box of the array. Else its chunks have no place. */
    bool placed;
    int32_t dim[ZARR_MAX_RANK];     /* dimension of the box -> dimension of the array */
    uint64_t base[ZARR_MAX_RANK];   /* where the box begins in the array */
    uint64_t extent[ZARR_MAX_RANK]; /* how long it is; both: dimensions of the array */
    uint64_t inner[ZARR_MAX_RANK];  /* shape of the chunks in a shard */
    bool has_inner;
    /* If a shard fails and the error names no chunk, no chunk of it can be read. */
    bool has_one_index;
    /* Chunks that are stored; in units of `inner` if `is_inner` is true. */
    struct zr_coord_set stored;
    bool is_inner;
};

/* The comparison of the elements of a pair. */
struct zr_comparing {
    struct zr_diff_pair *p;
    struct zr_diff_side side[2];
    /* Elements in the stored chunks of this side are left out, because they are compared
     * with these chunks; NULL: none are. */
    const struct zr_diff_side *done;
    int32_t ndim;
    uint64_t shape[ZARR_MAX_RANK];
    const zarr_dtype *type;           /* data type of one value */
    uint64_t value_bytes, item_bytes; /* item_bytes: n_values values */
    uint64_t most;                    /* largest number of elements in a box */
    uint64_t n_seen;                  /* elements that were compared or cannot be read */
    uint64_t n_faults;                /* boxes that were reported as unreadable */
    bool is_number;
    uint8_t *data[2];
    zarr_heap *heap[2]; /* for elements of variable length, else NULL */
};

/* ---- diff_elements.c ---- */

/* Compares two boxes that are in memory. */
void zr_diff_compare(struct zr_comparing *c, const struct zr_diff_box *b);

/* ---- diff_boxes.c ---- */

/* Reads and compares a box of at most `most` elements. A chunk that cannot be read is
 * reported, and the other elements are compared. */
zarr_status zr_diff_box(struct zr_comparing *c, const struct zr_diff_box *b,
                        zarr_error *err);
/* Whether this array needs no more comparison. */
bool zr_diff_is_decided(const struct zr_comparing *c);

/* ---- diff_stored.c ---- */

/* Whether a stored chunk of the side covers the element. *skip (may be NULL) becomes the
 * number of elements from this one to the end of its chunk, in the last dimension. */
bool zr_diff_covers(const struct zr_diff_side *s, const uint64_t *at, uint64_t *skip);
/* Number of elements of the box that no stored chunk of the side covers. */
uint64_t zr_diff_count_uncovered(const struct zr_diff_side *s,
                                 const struct zr_diff_box *b);
/* Finds where a chunk begins inside the box, near the middle. `why`: the failure of the
 * box. False: the box is in one chunk, or in one shard that cannot be read at all. */
bool zr_diff_cut(const struct zr_diff_side *s, const struct zr_diff_box *b,
                 const zarr_error *why, int32_t *dim, uint64_t *at);
void zr_diff_side_init(struct zr_diff_side *s, const struct zr_comparing *c, int side);
/* Finds the stored chunks of both sides. *few is true if they have so few elements that
 * these alone should be compared. */
zarr_status zr_diff_find_stored(struct zr_comparing *c, bool *few, zarr_error *err);
/* Compares the stored chunks, and then an element that neither array has stored, which
 * tells whether the fill values differ. */
zarr_status zr_diff_sparse(struct zr_comparing *c, zarr_error *err);

#endif
