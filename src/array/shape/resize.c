/*
 * array/shape/resize.c - resizes an array: publishes the new shape first and then clears
 * what is outside it. A record says so in between (leftover.c), and what an interrupted
 * change left is cleared before a larger shape would show it. A lock on a key of its own
 * keeps appends and resizes apart. Thread class: plain functions.
 */
#include "array/shape/shape_int.h"

#define APPEND_LOCK ".zarrc-append"

zarr_status zr_shape_lock(const zarr_array *array, const zarr_cancel *cancel, void **lock,
                          zarr_error *err)
{
    struct zr_str key;
    zarr_status st = ZARR_OK;

    zr_str_init(&key, array->h.ctx->alloc);
    ZR_TRY(zr_array_may_change(array, err));
    ZR_TRY(zr_path_key(&key, array->h.path, APPEND_LOCK, err));
    ZR_TRY(zr_store_lock(array->h.store, zr_str_text(&key), cancel, lock, err));
out:
    zr_str_deinit(&key);
    return st;
}

static bool is_smaller(const struct zr_array_state *old, const uint64_t *shape)
{
    for (int32_t d = 0; d < old->meta.ndim; d++)
        if (shape[d] < old->meta.shape[d])
            return true;
    return false;
}

static bool is_larger(const struct zr_array_state *old, const uint64_t *shape)
{
    for (int32_t d = 0; d < old->meta.ndim; d++)
        if (shape[d] > old->meta.shape[d])
            return true;
    return false;
}

/* Whether a chunk lies on both sides of the border of `shape`, in the dimensions where
 * `was` is longer; NULL: in all. Else only whole chunks are outside. */
static bool cuts_chunks(const struct zr_grid *g, const uint64_t *shape,
                        const uint64_t *was)
{
    bool cuts = false;

    for (int32_t d = 0; d < g->ndim; d++) {
        uint64_t start = 0, length = 0;

        if (shape[d] == 0)
            return false;
        if (was && shape[d] >= was[d])
            continue;
        zr_grid_extent(g, d, zr_grid_locate(g, d, shape[d] - 1), &start, &length);
        cuts = cuts || length > shape[d] - start;
    }
    return cuts;
}

/* ---- what must be done before a shape is published ------------------------ */

/* Clearing and noting change other keys, so the document's lock is given back before
 * them. */
static zarr_status needs_work(struct zr_resizing *p, struct zr_array_state *now,
                              zarr_error *err)
{
    zr_array_state_free(p->now);
    p->now = zr_array_state_ref(now);
    return zr_fail(err, ZARR_ERR_CONFLICT, "the array changes all the time");
}

/* Is called with the stored array before its document is changed. */
static zarr_status judge_resize(void *arg, struct zr_array_state *now, zarr_error *err)
{
    struct zr_resizing *p = arg;
    const int32_t ndim = now->meta.ndim;
    const bool smaller = is_smaller(now, p->shape);
    const struct zr_trim_job job = {.a = p->array, .old = now, .shape = p->shape};
    bool pending = false;

    ZR_CHECK(zr_leftover_read(&p->left, p->array, ndim, p->cancel, err));
    /* no lock keeps out a shrink that has written its record but not yet its shape */
    pending = zr_store_is_by_version(p->array->h.store) &&
              zr_leftover_is_within(&p->left, ndim, now->meta.shape);
    p->clear = p->left.found && !pending && !p->noted && (!p->keep || smaller);
    p->note = !p->clear && !p->keep && smaller &&
              !(p->noted && zr_leftover_covers(&p->left, ndim, now->meta.shape));
    if (p->note)
        ZR_CHECK(zr_trim_check(&job, err));
    if ((p->clear && cuts_chunks(&now->meta.grid, now->meta.shape, NULL)) ||
        (p->note && cuts_chunks(&now->meta.grid, p->shape, now->meta.shape)))
        ZR_CHECK(zr_array_memory_check(p->array, ZARR_DEVICE_CPU, NULL, true, NULL, err));
    if (p->clear || p->note)
        return needs_work(p, now, err);
    return ZARR_OK;
}

/* Does what is missing. */
static zarr_status do_work(struct zr_resizing *p, zarr_error *err)
{
    const struct zr_array_meta *m = &p->now->meta;
    zarr_status st = ZARR_OK;

    if (p->clear)
        return zr_leftover_clear(p->array, p->now, &p->left, p->cancel, err);
    if (p->consolidated)
        ZR_TRY(
            zr_consolidated_remove(p->array->h.store, p->array->h.path, p->cancel, err));
    p->unlisted = p->consolidated;
    st = zr_leftover_note(&p->left, p->array, m->ndim, m->shape, err);
    p->noted = st == ZARR_OK;
out:
    return st;
}

zarr_status zr_resize_publish(struct zr_array_state **out, struct zr_resizing *p,
                              struct zr_shape_change *change, zarr_error *err)
{
    struct zr_backoff wait;
    zarr_status st = ZARR_OK;

    change->judge = judge_resize;
    change->judge_arg = p;
    zr_backoff_init(&wait, p->array->h.store, p->array->h.path, p->cancel);
    for (int i = 0;; i++) {
        p->clear = p->note = false;
        st = zr_shape_publish(out, change, err);
        if (st != ZARR_ERR_CONFLICT || (!p->clear && !p->note))
            break;
        if (i > 0) /* another call made it necessary again */
            ZR_TRY(zr_backoff_wait(&wait, st, err));
        ZR_TRY(do_work(p, err));
    }
out:
    zr_array_state_free(p->now);
    p->now = NULL;
    return st;
}

/* ---- resize ------------------------------------------------------------- */

/* Clears what is outside of the published shape. A record that allows more than the old
 * shape is of another call, on a store without locks. */
static zarr_status clear_old(const struct zr_resizing *p, struct zr_array_state *old,
                             zarr_error *err)
{
    const struct zr_trim_job job = {.a = p->array,
                                    .old = old,
                                    .shape = p->shape,
                                    .durable = true,
                                    .cancel = p->cancel};
    zarr_status st = ZARR_OK;

    if (is_smaller(old, p->shape)) {
        ZR_TRY(zr_array_trim(&job, err));
        if (zr_leftover_is_within(&p->left, old->meta.ndim, old->meta.shape))
            zr_leftover_drop(p->array, &p->left, old->meta.ndim);
    } else if (!is_larger(old, p->shape)) {
        ZR_TRY(zr_outside_clear(p->array, old, p->cancel, err));
    } else if (p->left.found && !zr_leftover_covers(&p->left, old->meta.ndim, p->shape)) {
        /* a pending shrink writes its record again, for the larger shape */
        zr_leftover_drop(p->array, &p->left, old->meta.ndim);
    }
out:
    zr_prefix(err, st,
              "the array has its new shape, but clearing what is outside failed");
    return st;
}

/* An append between publishing and clearing would lose what it writes, so both are under
 * the lock. */
static zarr_status resize_locked(struct zr_resizing *p, zarr_error *err)
{
    struct zr_array_state *before = zr_array_state_get(p->array), *old = NULL;
    struct zr_shape_change change = {.array = p->array,
                                     .held = before,
                                     .before = before,
                                     .shape = p->shape,
                                     .old = &old,
                                     .cancel = p->cancel};
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_resize_publish(NULL, p, &change, err));
    if (!p->keep)
        ZR_TRY(clear_old(p, old, err));
    else if (p->left.found && zr_leftover_is_within(&p->left, old->meta.ndim, p->shape))
        zr_leftover_drop(p->array, &p->left, old->meta.ndim);
out:
    zr_array_state_free(old);
    zr_array_state_free(before);
    return st;
}

static zarr_status shape_options_read(zarr_shape_options *o,
                                      const zarr_shape_options *opts, uint32_t flags,
                                      zarr_error *err)
{
    zarr_status st = zr_struct_read(o, sizeof *o, 2 * sizeof(uint32_t), opts,
                                    ZR_TAIL_REFUSE, "zarr_shape_options", err);

    return st == ZARR_OK ? zr_flags_check(o->flags, flags, "shape options", err) : st;
}

zarr_status zarr_array_resize(zarr_array *array, const uint64_t *shape,
                              const zarr_shape_options *opts, zarr_error *err)
{
    ZR_NEED(array, err);
    struct zr_resizing p = {.array = array, .shape = shape};
    zarr_shape_options o;
    void *lock = NULL;
    zarr_status st = shape_options_read(
        &o, opts, ZARR_RESIZE_KEEP_CHUNKS | ZARR_RESIZE_CONSOLIDATED, err);

    if (st == ZARR_OK)
        st = zr_shape_lock(array, o.cancel, &lock, err);
    if (st == ZARR_OK) {
        p.keep = (o.flags & ZARR_RESIZE_KEEP_CHUNKS) != 0;
        p.consolidated = (o.flags & ZARR_RESIZE_CONSOLIDATED) != 0;
        p.cancel = o.cancel;
        st = resize_locked(&p, err);
        /* under the lock: the next resize may take these entries out */
        if (st != ZARR_OK && p.unlisted)
            (void)zr_consolidated_restore(array->h.store, array->h.path, NULL);
    }
    zr_store_unlock(array->h.store, lock);
    return st == ZARR_OK ? st : zr_path_prefix(err, st, array->h.path);
}

/* ---- leftovers ---------------------------------------------------------- */

static zarr_status clear_leftovers(zarr_array *array, const zarr_shape_options *o,
                                   bool *found, zarr_error *err)
{
    const bool look = (o->flags & ZARR_LEFTOVERS_LOOK) != 0;
    struct zr_array_state *now = NULL, *held = zr_array_state_get(array);
    struct zr_leftover left;
    void *lock = NULL;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_cancel_check(o->cancel, err));
    /* no lock, so that nothing to do is no error in a store that cannot be written */
    ZR_TRY(zr_leftover_read(&left, array, held->meta.ndim, o->cancel, err));
    *found = left.found;
    if (!left.found || look)
        goto out;
    ZR_TRY(zr_shape_lock(array, o->cancel, &lock, err));
    ZR_TRY(zr_leftover_read(&left, array, held->meta.ndim, o->cancel, err));
    *found = left.found;
    if (!left.found) /* another call cleared it */
        goto out;
    ZR_TRY(zr_array_load(&now, array, held->meta.format, o->cancel, err));
    ZR_TRY(zr_separator_inherit(array, held, now, err));
    left.known = left.known && now->meta.ndim == held->meta.ndim;
    ZR_TRY(zr_leftover_clear(array, now, &left, o->cancel, err));
out:
    zr_store_unlock(array->h.store, lock);
    zr_array_state_free(now);
    zr_array_state_free(held);
    return st;
}

zarr_status zarr_array_clear_leftovers(zarr_array *array, int *found,
                                       const zarr_shape_options *opts, zarr_error *err)
{
    zarr_shape_options o;
    bool there = false;
    zarr_status st = shape_options_read(&o, opts, ZARR_LEFTOVERS_LOOK, err);

    ZR_NEED(array, err);
    if (st == ZARR_OK)
        st = clear_leftovers(array, &o, &there, err);
    if (found)
        *found = there;
    return st == ZARR_OK ? st : zr_path_prefix(err, st, array->h.path);
}
