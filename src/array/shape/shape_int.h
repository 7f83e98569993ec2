/*
 * array/shape/shape_int.h - changes of an array's shape, and what is stored outside of
 * it: a resize and an append write a record, publish the shape, and trim.
 */
#ifndef ZR_ARRAY_SHAPE_INT_H
#define ZR_ARRAY_SHAPE_INT_H

#include "array/array_int.h"

/* ---- publish.c ---- */

/* A change of an array's shape. */
struct zr_shape_change {
    zarr_array *array;
    struct zr_array_state *held; /* the handle's state when the change began */
    const struct zr_array_state *before;
    const uint64_t *shape;
    bool same_base; /* fail with CONFLICT if the stored shape differs from before's */
    /* out, counted: the stored array that was replaced, without a document of its own,
     * which it shares with the new array; may be NULL */
    struct zr_array_state **old;
    /* Called with the stored array before its document is changed. A failure leaves the
     * document as it is. May be NULL. */
    zarr_status (*judge)(void *arg, struct zr_array_state *now, zarr_error *err);
    void *judge_arg;
    const zarr_cancel *cancel; /* ends the wait for the document's lock */
};
/* Makes a state with that shape, which only the caller sees. */
zarr_status zr_shape_derive(struct zr_array_state **out,
                            const struct zr_shape_change *change, zarr_error *err);
/* Changes the stored document and the handle's state. *out: the state that the document
 * now describes, counted; out may be NULL. */
zarr_status zr_shape_publish(struct zr_array_state **out,
                             const struct zr_shape_change *change, zarr_error *err);

/* Waits for the right to change the array's shape, across handles and, if the store can
 * lock, across processes. Release it with zr_store_unlock(). */
zarr_status zr_shape_lock(const zarr_array *array, const zarr_cancel *cancel, void **lock,
                          zarr_error *err);

/* What to trim: the elements of `old` that are outside of `shape`. */
struct zr_trim_job {
    const zarr_array *a;
    struct zr_array_state *old;
    const uint64_t *shape;
    bool everything; /* list the store: also chunks outside of old's grid are erased */
    /* Rewrite a border chunk only if elements outside differ from the fill value. */
    bool look_first;
    bool keep_lossy; /* leave border chunks of lossy codecs alone */
    bool durable;    /* what was done is on the disk when the call returns */
    const zarr_cancel *cancel;
};
/* Erases chunks outside the shape, and resets the parts of chunks outside it. */
zarr_status zr_array_trim(const struct zr_trim_job *job, zarr_error *err);
/* Fails with UNSUPPORTED if the store cannot list and there are too many chunks to try
 * one by one. */
zarr_status zr_trim_check(const struct zr_trim_job *job, zarr_error *err);
/* The elements of s that a chunk has in dimension d: [*low, *high). */
void zr_trim_range(const struct zr_array_state *s, int32_t d, uint64_t chunk,
                   uint64_t *low, uint64_t *high);

/* ---- outside.c: elements that are stored outside of the array's shape ---- */

/* Makes a state of the array with this shape or, if `shape` is NULL, whose shape ends
 * where the last chunks end. */
zarr_status zr_outside_state(struct zr_array_state **out, const zarr_array *a,
                             const struct zr_array_state *s, const uint64_t *shape,
                             zarr_error *err);
/* Fails with EXISTS if there are chunks at the path, as what is left of an array. */
zarr_status zr_chunks_must_not_be(zarr_store *store, const char *path,
                                  const struct zr_array_meta *meta,
                                  const zarr_cancel *cancel, zarr_error *err);
/* Whether all elements of the chunk that `larger` has and `shape` cuts off are the fill
 * value. */
zarr_status zr_outside_is_fill(const zarr_array *a, struct zr_array_state *larger,
                               const uint64_t *chunk, const uint64_t *shape,
                               const zarr_cancel *cancel, bool *yes, zarr_error *err);
/* Whether the array's codecs may change values. */
zarr_status zr_array_lossy(const zarr_array *a, struct zr_array_state *s, bool *lossy,
                           zarr_error *err);

/* ---- leftover.c: the record of leftovers ---- */

struct zr_leftover {
    bool found; /* there is a record */
    bool known; /* it can be read, and has the array's rank */
    /* no element outside of this shape is left over */
    uint64_t extent[ZARR_MAX_RANK];
};
zarr_status zr_leftover_read(struct zr_leftover *out, const zarr_array *a, int32_t ndim,
                             const zarr_cancel *cancel, zarr_error *err);
/* Whether the record allows elements up to this shape. */
bool zr_leftover_covers(const struct zr_leftover *r, int32_t ndim, const uint64_t *shape);
/* Whether the record allows none outside of this shape. */
bool zr_leftover_is_within(const struct zr_leftover *r, int32_t ndim,
                           const uint64_t *shape);
/* Writes or widens the record, so that it covers the shape. *out: what it says now. */
zarr_status zr_leftover_note(struct zr_leftover *out, const zarr_array *a, int32_t ndim,
                             const uint64_t *shape, zarr_error *err);
/* Clears what the record allows outside of the shape of `now`, the stored array, and
 * removes the record. */
zarr_status zr_leftover_clear(const zarr_array *a, struct zr_array_state *now,
                              const struct zr_leftover *r, const zarr_cancel *cancel,
                              zarr_error *err);
/* Removes the record `done`, which is not needed any more. Failures are logged: the
 * record does no harm. */
void zr_leftover_drop(const zarr_array *a, const struct zr_leftover *done, int32_t ndim);

/* ---- resize.c ---- */

/* A resize: the new shape, and what the stored array needs before it gets that shape. */
struct zr_resizing {
    zarr_array *array;
    const uint64_t *shape;
    bool keep;         /* ZARR_RESIZE_KEEP_CHUNKS */
    bool consolidated; /* ZARR_RESIZE_CONSOLIDATED */
    bool unlisted;     /* entries of consolidated metadata were removed */
    bool noted;        /* the record is of this call */
    bool clear, note;  /* what is missing */
    const zarr_cancel *cancel;
    struct zr_leftover left; /* the record as it was last read */
    struct zr_array_state
        *now; /* counted: the stored array, while something is missing */
};
/* zr_shape_publish(), after leftovers were cleared that the shape would show, and after
 * the record was written that a smaller shape needs. Uses change->judge. */
zarr_status zr_resize_publish(struct zr_array_state **out, struct zr_resizing *p,
                              struct zr_shape_change *change, zarr_error *err);
/* Clears all that is stored outside of the shape of `now`, with a record or without. */
zarr_status zr_outside_clear(const zarr_array *a, struct zr_array_state *now,
                             const zarr_cancel *cancel, zarr_error *err);

#endif
