/*
 * check/check.h - the door of the room that verifies and compares: what its files share.
 * The room only reads, and no other room enters it. The public calls are in
 * zarrc/check.h.
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
    zarr_context *ctx; /* of the first store: its allocator is used */
    zarr_diff_options opts;
    zarr_diff_result result;
    uint64_t done_bytes, total_bytes;
    bool data_only, stopped; /* stopped: the caller ended the call */
    /* the first fault of a node or a chunk, after which the comparison went on */
    zarr_status fault;
    zarr_error why;
};

/* A pair of nodes that is compared. */
struct zr_diff_pair {
    struct zr_diff *d;
    const char *below;     /* path below both tops */
    struct zr_str path[2]; /* paths from the stores' roots */
    zarr_array *array[2];  /* NULL: the nodes are groups */
    int side;              /* the one that was opened last */
    /* What is compared: whole elements, or one field of both. The dimensions of a field's
     * subarray come after those of the selection. */
    zarr_dtype_field field[2];
    uint64_t n_values; /* number of values in one element */
    const zarr_selection *selection[2];
    bool missing_told; /* missing values were compared, so _FillValue is not */
    zarr_diff_node node;
    int32_t ndim; /* rank of the indexes that are reported */
    uint64_t n_told;
    uint64_t first_at[ZARR_MAX_RANK], largest_at[ZARR_MAX_RANK];
};

/* Reports a difference that is not one of elements. */
void zr_diff_tell(struct zr_diff_pair *p, zarr_difference *difference);
/* Whether stored bytes cause this status, so that the rest can still be compared. */
bool zr_diff_is_fault(zarr_status st);
/* Notes that a part cannot be compared. */
void zr_diff_note_fault(struct zr_diff *d, zarr_status st, const zarr_error *why);
/* The same, and reports it. */
void zr_diff_tell_fault(struct zr_diff_pair *p, zarr_difference *difference, int side,
                        zarr_status st, const zarr_error *why);
void zr_diff_progress(const struct zr_diff *d, const char *path);

/* ---- diff_memory.c ---- */

/* Which of two sorted lists has the next path: 0: both; < 0: only the first. */
int zr_diff_next(const struct zr_nodes *a, size_t i, const struct zr_nodes *b, size_t k);
/* LIMIT if the context's limit of memory has no room for a chunk of an array of both. */
zarr_status zr_diff_check_memory(struct zr_diff *d, const struct zr_nodes *a,
                                 const struct zr_nodes *b, zarr_error *err);

/* ---- diff_facts.c ---- */

/* Compares all of two arrays but the elements: data type, fill value, names, attributes,
 * and how they are stored. */
zarr_status zr_diff_arrays(struct zr_diff_pair *p, zarr_error *err);
zarr_status zr_diff_attributes(struct zr_diff_pair *p, const char *a, const char *b,
                               zarr_error *err);

/* ---- diff_elements.c ---- */

/* Compares the elements of the selections, which have the same shape. */
zarr_status zr_diff_elements(struct zr_diff_pair *p, zarr_error *err);

#endif
