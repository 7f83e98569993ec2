/*
 * array/append.c - appends to an array. The data are written first, beyond the array's
 * shape, through a state that only the append sees; then the shape is published, and
 * readers see all of the data or none. A record says so in between (leftover.c). A resize
 * by another program without the lock is noticed when the shape is published (CONFLICT).
 * If a store has no locks but versions, an append publishes first: that reserves the
 * place, and only the append that reserved it writes there.
 * Thread class: plain functions.
 */
#include "array/array_int.h"

enum {
    APPEND_TRIES = 64
};

struct appending {
    zarr_array *array;
    struct zr_array_state *base, *larger; /* counted */
    struct zr_leftover left;              /* the record that covers the new shape */
    uint64_t start[ZARR_MAX_RANK], count[ZARR_MAX_RANK], shape[ZARR_MAX_RANK];
    uint64_t n; /* what is added to the length */
};

static zarr_status append_boxes(struct appending *ap, int32_t axis,
                                const zarr_tensor *src, zarr_error *err)
{
    const struct zr_array_meta *m = &ap->base->meta;

    if (!src || src->ndim != m->ndim || (m->ndim > 0 && !src->shape))
        return zr_fail(err, ZARR_ERR_INVALID,
                       "appended elements must have the array's rank, %" PRId32, m->ndim);
    if (axis < 0 || axis >= m->ndim)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "axis %" PRId32 " is not one of the array's %" PRId32, axis,
                       m->ndim);
    for (int32_t d = 0; d < m->ndim; d++) {
        if (src->shape[d] < 0 || (d != axis && (uint64_t)src->shape[d] != m->shape[d]))
            return zr_fail(err, ZARR_ERR_INVALID,
                           "dimension %" PRId32 " of what is appended has length %" PRId64
                           ", the array's %" PRIu64,
                           d, src->shape[d], m->shape[d]);
        ap->start[d] = d == axis ? m->shape[d] : 0;
        ap->count[d] = (uint64_t)src->shape[d];
        if (!zr_add_u64(ap->start[d], ap->count[d], &ap->shape[d]))
            return zr_fail(err, ZARR_ERR_INVALID, "dimension %" PRId32 " would overflow",
                           d);
    }
    return ZARR_OK;
}

/* Writes the elements through the larger state. */
static zarr_status append_write(struct appending *ap, const zarr_tensor *src,
                                const zarr_io_options *opts, zarr_error *err)
{
    zarr_selection *box = NULL;
    zarr_status st = ZARR_OK;

    ZR_TRY(zarr_selection_box(&box, ap->base->meta.ndim, ap->shape, ap->start, ap->count,
                              err));
    ZR_TRY(zr_array_write_state(ap->array, ap->larger, box, src, opts, err));
out:
    zarr_selection_free(box);
    return st;
}

/* Publishes the shape, then writes. The larger shape must show nothing that an
 * interrupted change left, because this append may be interrupted, too. */
static zarr_status append_reserved(struct appending *ap, struct zr_shape_change *change,
                                   const zarr_tensor *src, const zarr_io_options *opts,
                                   bool *again, zarr_error *err)
{
    struct zr_resizing r = {
        .array = ap->array, .shape = ap->shape, .cancel = opts->cancel};
    zarr_status st = zr_resize_publish(&ap->larger, &r, change, err);

    *again = st == ZARR_ERR_CONFLICT;
    if (st == ZARR_OK && ap->n > 0)
        st = append_write(ap, src, opts, err);
    return st;
}

/* Writes, then publishes the shape, with a record in between. The append overwrites all
 * that the larger shape shows, so an older record may stay. */
static zarr_status append_recorded(struct appending *ap, struct zr_shape_change *change,
                                   const zarr_tensor *src, const zarr_io_options *opts,
                                   zarr_error *err)
{
    const int32_t ndim = ap->base->meta.ndim;
    zarr_status st = ZARR_OK;

    if (ap->n > 0) {
        ZR_TRY(zr_shape_derive(&ap->larger, change, err));
        ZR_TRY(zr_leftover_note(&ap->left, ap->array, ndim, ap->shape, err));
        ZR_TRY(append_write(ap, src, opts, err));
    }
    ZR_TRY(zr_shape_publish(NULL, change, err));
    if (ap->left.found && zr_leftover_within(&ap->left, ndim, ap->shape))
        zr_leftover_drop(ap->array);
out:
    return st;
}

/* Makes one attempt. *again: another append took the place, and nothing was written. */
static zarr_status append_once(struct appending *ap, int32_t axis, const zarr_tensor *src,
                               const zarr_io_options *opts, bool *again, zarr_error *err)
{
    struct zr_array_state *handles = zr_array_state_get(ap->array);
    struct zr_shape_change change = {.array = ap->array,
                                     .held = handles,
                                     .shape = ap->shape,
                                     .same_base = true,
                                     .cancel = opts->cancel};
    zarr_status st = ZARR_OK;

    *again = false;
    ZR_TRY(zr_array_load(&ap->base, ap->array, handles->meta.format, err));
    ZR_TRY(zr_separator_inherit(ap->array, handles, ap->base, err));
    ZR_TRY(append_boxes(ap, axis, src, err));
    change.before = ap->base;
    ap->n = ap->count[axis];
    if (zr_doc_by_version(ap->array->h.store))
        st = append_reserved(ap, &change, src, opts, again, err);
    else
        st = append_recorded(ap, &change, src, opts, err);
out:
    zr_array_state_free(handles);
    return st;
}

static zarr_status append_locked(struct appending *ap, int32_t axis,
                                 const zarr_tensor *src, const zarr_io_options *opts,
                                 zarr_error *err)
{
    bool again = true;
    zarr_status st = ZARR_OK;

    for (int i = 0; i < APPEND_TRIES && again; i++) {
        zr_array_state_free(ap->base);
        zr_array_state_free(ap->larger);
        ap->base = ap->larger = NULL;
        st = append_once(ap, axis, src, opts, &again, err);
    }
    return st;
}

zarr_status zarr_array_append(zarr_array *array, int32_t axis, const zarr_tensor *src,
                              const zarr_io_options *opts, zarr_error *err)
{
    struct appending ap = {.array = array};
    zarr_io_options o;
    void *lock = NULL;
    zarr_status st = zr_io_options_read(&o, opts, err);

    if (st == ZARR_OK)
        st = zr_shape_lock(array, o.cancel, &lock, err);
    if (st == ZARR_OK)
        st = append_locked(&ap, axis, src, &o, err);
    zr_store_unlock(array->h.store, lock);
    zr_array_state_free(ap.base);
    zr_array_state_free(ap.larger);
    return st == ZARR_OK ? st : zr_path_prefix(err, st, array->h.path);
}
