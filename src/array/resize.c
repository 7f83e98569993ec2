/*
 * array/resize.c - resize and append. A resize publishes the new shape first and then
 * clears what is outside it. An append first writes its data beyond the array's shape,
 * through a state that only it sees; then it publishes the shape, and readers see all of
 * the data or none. A lock on a key of its own keeps appends and resizes apart; a resize
 * by another program without that lock is noticed when the shape is published (CONFLICT).
 * If a store has no locks but versions, an append publishes first: that reserves the
 * place, and only the append that reserved it writes there.
 * Thread class: plain functions.
 */
#include "array/array_int.h"

#define APPEND_LOCK ".zarrc-append"

enum {
    APPEND_TRIES = 64
};

static bool is_smaller(const struct zr_array_state *old, const uint64_t *shape)
{
    for (int32_t d = 0; d < old->meta.ndim; d++)
        if (shape[d] < old->meta.shape[d])
            return true;
    return false;
}

static zarr_status lock_shape(const zarr_array *array, void **lock, zarr_error *err)
{
    struct zr_str key;
    zarr_status st = ZARR_OK;

    zr_str_init(&key, array->h.ctx->alloc);
    zr_path_key(&key, array->h.path, APPEND_LOCK);
    ZR_TRY(zr_str_status(&key, err));
    ZR_TRY(zr_store_lock(array->h.store, zr_str_text(&key), lock, err));
out:
    zr_str_deinit(&key);
    return st;
}

/* An append between publishing and clearing would lose what it writes, so both are under
 * the lock. */
static zarr_status resize_locked(zarr_array *array, const uint64_t *shape, uint32_t flags,
                                 zarr_error *err)
{
    struct zr_array_state *before = zr_array_state_get(array), *old = NULL;
    const struct zr_shape_change change = {
        .array = array, .held = before, .before = before, .shape = shape, .old = &old};
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_shape_publish(NULL, &change, err));
    if (flags & ZARR_RESIZE_KEEP_CHUNKS)
        goto out;
    if (!is_smaller(old, shape))
        goto out;
    st = zr_array_trim(array, old, shape, err);
    if (st != ZARR_OK)
        zr_prefix(err, st,
                  "the array has its new shape, but clearing what is outside failed");
out:
    zr_array_state_free(old);
    zr_array_state_free(before);
    return st;
}

zarr_status zarr_array_resize(zarr_array *array, const uint64_t *shape, uint32_t flags,
                              zarr_error *err)
{
    void *lock = NULL;
    zarr_status st = ZARR_OK;

    if (flags & ~(uint32_t)ZARR_RESIZE_KEEP_CHUNKS)
        st =
            zr_fail(err, ZARR_ERR_UNSUPPORTED, "resize: unknown flags 0x%" PRIx32, flags);
    else
        st = lock_shape(array, &lock, err);
    if (st == ZARR_OK)
        st = resize_locked(array, shape, flags, err);
    zr_store_unlock(array->h.store, lock);
    return st == ZARR_OK ? st : zr_path_prefix(err, st, array->h.path);
}

/* ---- append ------------------------------------------------------------- */

struct appending {
    zarr_array *array;
    struct zr_array_state *base, *larger; /* counted */
    uint64_t start[ZARR_MAX_RANK], count[ZARR_MAX_RANK], shape[ZARR_MAX_RANK];
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

/* Makes one attempt. *again: another append took the place, and nothing was written. */
static zarr_status append_once(struct appending *ap, int32_t axis, const zarr_tensor *src,
                               const zarr_io_options *opts, bool *again, zarr_error *err)
{
    struct zr_array_state *handles = zr_array_state_get(ap->array);
    const bool reserve = zr_doc_by_version(ap->array->h.store);
    zarr_selection *box = NULL;
    struct zr_shape_change change = {
        .array = ap->array, .held = handles, .shape = ap->shape, .same_base = true};
    zarr_status st = ZARR_OK;

    *again = false;
    ZR_TRY(zr_array_load(&ap->base, ap->array, handles->meta.format, err));
    ZR_TRY(zr_separator_inherit(ap->array, handles, ap->base, err));
    ZR_TRY(append_boxes(ap, axis, src, err));
    change.before = ap->base;
    if (reserve) {
        st = zr_shape_publish(&ap->larger, &change, err);
        *again = st == ZARR_ERR_CONFLICT;
        if (st != ZARR_OK)
            goto out;
    }
    if (ap->count[axis] > 0) {
        if (!reserve)
            ZR_TRY(zr_shape_derive(&ap->larger, &change, err));
        ZR_TRY(zarr_selection_box(&box, ap->base->meta.ndim, ap->shape, ap->start,
                                  ap->count, err));
        ZR_TRY(zr_array_write_state(ap->array, ap->larger, box, src, opts, err));
    }
    if (!reserve)
        ZR_TRY(zr_shape_publish(NULL, &change, err));
out:
    zarr_selection_free(box);
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
    void *lock = NULL;
    zarr_status st = lock_shape(array, &lock, err);

    if (st == ZARR_OK)
        st = append_locked(&ap, axis, src, opts, err);
    zr_store_unlock(array->h.store, lock);
    zr_array_state_free(ap.base);
    zr_array_state_free(ap.larger);
    return st == ZARR_OK ? st : zr_path_prefix(err, st, array->h.path);
}
