/*
 * array/shape/append.c - appends to an array. The data are written first, beyond the
 * array's shape, and made durable, through a state that only the append sees; then the
 * shape is published, and readers see all of the data or none, also after a loss of
 * power. A record says so in between (leftover.c). A resize by another program without
 * the lock is noticed when the shape is published (CONFLICT). If a store has no locks but
 * versions, an append publishes first: that reserves the place, and only the append that
 * reserved it writes there. Thread class: plain functions.
 */
#include "array/io/io_int.h"
#include "array/shape/shape_int.h"
#include "array/stored/stored_int.h"

struct appending {
    zarr_array *array;
    int32_t axis;
    const zarr_tensor *src;
    uint64_t *first;      /* out; may be NULL */
    zarr_io_options opts; /* read; its cancel is the request's, if there is one */
    zarr_request *rq;     /* NULL: a blocking call */
    /* for a submitted append: the caller's cancel object, counted; and copies of what
     * opts points to */
    zarr_cancel *owned_cancel;
    zarr_tuning tuning;
    struct zr_arena texts;
    struct zr_array_state *base, *larger; /* counted */
    struct zr_leftover left;              /* the record that covers the new shape */
    uint64_t start[ZARR_MAX_RANK], count[ZARR_MAX_RANK], shape[ZARR_MAX_RANK];
    uint64_t n;             /* what is added to the length */
    struct zr_stream after; /* ordered after the application's stream */
};

static zarr_status append_boxes(struct appending *ap, zarr_error *err)
{
    const struct zr_array_meta *m = &ap->base->meta;
    const zarr_tensor *src = ap->src;
    const int32_t axis = ap->axis;

    if (!src || src->ndim != m->ndim || (m->ndim > 0 && !src->shape))
        return zr_fail(err, ZARR_ERR_INVALID,
                       "appended elements must have the array's rank, %" PRId32, m->ndim);
    if (axis < 0 || axis >= m->ndim)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "axis %" PRId32 " is not one of the array's %" PRId32, axis,
                       m->ndim);
    for (int32_t d = 0; d < m->ndim; d++) {
        if (d != axis && src->shape[d] != m->shape[d])
            return zr_fail(err, ZARR_ERR_INVALID,
                           "dimension %" PRId32 " of what is appended has length %" PRIu64
                           ", the array's %" PRIu64,
                           d, src->shape[d], m->shape[d]);
        ap->start[d] = d == axis ? m->shape[d] : 0;
        ap->count[d] = src->shape[d];
        if (ap->count[d] > INT64_MAX ||
            !zr_add(ap->start[d], ap->count[d], &ap->shape[d]))
            return zr_fail(err, ZARR_ERR_INVALID, "dimension %" PRId32 " would overflow",
                           d);
    }
    return ZARR_OK;
}

/* Writes the elements through the larger state. unit_flags: of the chunks. */
static zarr_status append_write(struct appending *ap, uint32_t unit_flags,
                                zarr_error *err)
{
    struct zr_io_call c = {.array = ap->array, .state = ap->larger};
    zarr_selection *box = NULL;
    zarr_status st = ZARR_OK;

    ZR_TRY(zarr_selection_box(&box, ap->base->meta.ndim, ap->shape, ap->start, ap->count,
                              err));
    ZR_TRY(zr_io_prepare(&c, box, ap->src, &ap->opts, true, err));
    if (!zr_store_is_by_version(ap->array->h.store))
        c.io.check = NULL; /* the append reads the document before and after */
    c.io.unit_flags = unit_flags;
    ZR_TRY(zr_io_run_in(ap->rq, &c.io, c.opts.stats, err));
out:
    zr_io_call_deinit(&c);
    zarr_selection_free(box);
    return st;
}

/* Tells d the keys of the chunks that are written. */
static zarr_status add_chunks(struct zr_durable *d, const struct appending *ap,
                              zarr_error *err)
{
    const struct zr_grid *grid = &ap->larger->meta.grid;
    uint64_t first[ZARR_MAX_RANK], end[ZARR_MAX_RANK], at[ZARR_MAX_RANK];
    struct zr_str key;
    zarr_status st = ZARR_OK;

    zr_str_init(&key, ap->array->h.ctx->alloc);
    for (int32_t i = 0; i < grid->ndim; i++) {
        if (ap->count[i] == 0)
            goto out;
        at[i] = first[i] = zr_grid_locate(grid, i, ap->start[i]);
        end[i] = 1 + zr_grid_locate(grid, i, ap->start[i] + ap->count[i] - 1);
    }
    do
        ZR_TRY(zr_array_key(ap->array, ap->larger, at, &key, err));
    while (zr_durable_add(d, zr_str_text(&key)) &&
           zr_grid_step(at, first, end, grid->ndim));
out:
    zr_str_deinit(&key);
    return st;
}

/* A document reaches the disk at once. So the chunks that a new one shows must be there
 * before it. */
static zarr_status append_durably(struct appending *ap, zarr_error *err)
{
    struct zr_durable durable;
    zarr_status st = ZARR_OK;

    zr_durable_init(&durable, ap->array->chunk_store);
    ZR_TRY(add_chunks(&durable, ap, err));
    ZR_TRY(append_write(ap, zr_durable_flags(&durable), err));
    ZR_TRY(zr_durable_end(&durable, err));
out:
    zr_durable_deinit(&durable);
    return st;
}

/* Whether the array has lost elements of the append. */
static bool has_shrunk(const uint64_t *shape, const struct appending *ap)
{
    for (int32_t d = 0; d < ap->base->meta.ndim; d++)
        if (shape[d] < ap->shape[d])
            return true;
    return false;
}

/* A shrink may have published its shape after this append did, and have trimmed before
 * this append wrote. The check at the end of the write has seen the stored shape. */
static zarr_status clear_overtaken(struct appending *ap, zarr_error *err)
{
    zarr_array *a = ap->array;
    const int32_t ndim = ap->base->meta.ndim;
    struct zr_array_state *now = NULL;
    struct zr_leftover written;
    bool shrunk = false;
    zarr_status st = ZARR_OK;

    zr_mutex_lock(&a->h.mutex);
    shrunk = !zr_store_version_is_none(&ap->larger->seen) &&
             has_shrunk(ap->larger->seen_shape, ap);
    zr_mutex_unlock(&a->h.mutex);
    if (!shrunk)
        return ZARR_OK;
    ZR_TRY(zr_leftover_note(&written, a, ndim, ap->shape, err));
    ZR_TRY(zr_array_load(&now, a, ap->base->meta.format, ap->opts.cancel, err));
    ZR_TRY(zr_separator_inherit(a, ap->base, now, err));
    ZR_TRY(zr_array_same_chunks(ap->base, now, err));
    ZR_TRY(zr_leftover_clear(a, now, &written, ap->opts.cancel, err));
out:
    zr_array_state_free(now);
    return st;
}

/* Publishes the shape, then writes. The larger shape must show nothing that an
 * interrupted change left, because this append may be interrupted, too. */
static zarr_status append_reserved(struct appending *ap, struct zr_shape_change *change,
                                   bool *again, zarr_error *err)
{
    struct zr_resizing r = {
        .array = ap->array, .shape = ap->shape, .cancel = ap->opts.cancel};
    zarr_status st = zr_resize_publish(&ap->larger, &r, change, err);

    *again = st == ZARR_ERR_CONFLICT;
    if (st == ZARR_OK && ap->n > 0)
        st = append_write(ap, 0, err);
    if (st == ZARR_OK && ap->n > 0)
        st = clear_overtaken(ap, err);
    return st;
}

/* An append of one field leaves the other fields alone, so the larger shape would show
 * what an interrupted change left of them. */
static zarr_status clear_other_fields(const struct appending *ap, zarr_error *err)
{
    struct zr_leftover left;

    if (!ap->opts.field)
        return ZARR_OK;
    ZR_CHECK(
        zr_leftover_read(&left, ap->array, ap->base->meta.ndim, ap->opts.cancel, err));
    if (left.found)
        return zr_leftover_clear(ap->array, ap->base, &left, ap->opts.cancel, err);
    return ZARR_OK;
}

/* Writes, then publishes the shape, with a record in between. An append of whole elements
 * overwrites all that the larger shape shows, so an older record may stay. */
static zarr_status append_recorded(struct appending *ap, struct zr_shape_change *change,
                                   zarr_error *err)
{
    const int32_t ndim = ap->base->meta.ndim;

    if (ap->n > 0) {
        ZR_CHECK(zr_shape_derive(&ap->larger, change, err));
        ZR_CHECK(clear_other_fields(ap, err));
        ZR_CHECK(zr_leftover_note(&ap->left, ap->array, ndim, ap->shape, err));
        ZR_CHECK(append_durably(ap, err));
    }
    ZR_CHECK(zr_shape_publish(NULL, change, err));
    if (ap->left.found && zr_leftover_is_within(&ap->left, ndim, ap->shape))
        zr_leftover_drop(ap->array, &ap->left, ndim);
    return ZARR_OK;
}

/* Makes one attempt. *again: another append took the place, and nothing was written. */
static zarr_status append_once(struct appending *ap, bool *again, zarr_error *err)
{
    struct zr_array_state *handles = zr_array_state_get(ap->array);
    struct zr_shape_change change = {.array = ap->array,
                                     .held = handles,
                                     .shape = ap->shape,
                                     .same_base = true,
                                     .cancel = ap->opts.cancel};
    zarr_status st = ZARR_OK;

    *again = false;
    ZR_TRY(
        zr_array_load(&ap->base, ap->array, handles->meta.format, ap->opts.cancel, err));
    ZR_TRY(zr_separator_inherit(ap->array, handles, ap->base, err));
    ZR_TRY(zr_array_same_chunks(handles, ap->base, err)); /* the caller's array */
    ZR_TRY(append_boxes(ap, err));
    change.before = ap->base;
    ap->n = ap->count[ap->axis];
    if (zr_store_is_by_version(ap->array->h.store))
        st = append_reserved(ap, &change, again, err);
    else
        st = append_recorded(ap, &change, err);
out:
    zr_array_state_free(handles);
    return st;
}

static zarr_status append_locked(struct appending *ap, zarr_error *err)
{
    struct zr_backoff wait;
    bool again = true;
    zarr_status st = ZARR_OK;

    zr_backoff_init(&wait, ap->array->h.store, ap->array->h.path, ap->opts.cancel);
    while (again && st == ZARR_OK) {
        zr_array_state_free(ap->base);
        zr_array_state_free(ap->larger);
        ap->base = ap->larger = NULL;
        st = append_once(ap, &again, err);
        if (again)
            st = zr_backoff_wait(&wait, st, err);
    }
    if (st == ZARR_OK && ap->first)
        *ap->first = ap->start[ap->axis];
    return st;
}

/* Orders the append after the application's stream; its write need not wait again. */
static zarr_status append_order(struct appending *ap, zarr_error *err)
{
    void *const foreign = ap->opts.stream;
    zarr_tensor t;

    ap->opts.stream = NULL;
    if (!foreign)
        return ZARR_OK;
    ZR_CHECK(zr_io_tensor(&t, ap->src, ap->array, err));
    return zr_io_order(&ap->after, ap->array->h.ctx, t.device_type, t.device_id, foreign,
                       err);
}

/* Refuses a limit of memory that the write cannot keep, before the array changes. */
static zarr_status append_memory(const struct appending *ap, zarr_error *err)
{
    zarr_tensor t;
    zarr_status st = zr_io_tensor(&t, ap->src, ap->array, err);

    return st ? st
              : zr_array_memory_check(ap->array, t.device_type, &ap->opts, true, NULL,
                                      err);
}

static zarr_status append_run(struct appending *ap, zarr_error *err)
{
    zarr_array *array = ap->array;
    void *lock = NULL;
    zarr_status st = append_memory(ap, err);

    if (st == ZARR_OK)
        st = zr_stream_sync(&ap->after, err);
    zr_stream_give(&array->h.ctx->engine.streams, &ap->after);
    if (st == ZARR_OK)
        st = zr_shape_lock(array, ap->opts.cancel, &lock, err);
    if (st == ZARR_OK)
        st = append_locked(ap, err);
    zr_store_unlock(array->h.store, lock);
    zr_array_state_free(ap->base);
    zr_array_state_free(ap->larger);
    return st == ZARR_OK ? st : zr_path_prefix(err, st, array->h.path);
}

zarr_status zarr_array_append(zarr_array *array, int32_t axis, const zarr_tensor *src,
                              uint64_t *first, const zarr_io_options *opts,
                              zarr_error *err)
{
    ZR_NEED(array, err);
    struct appending ap = {.array = array, .axis = axis, .src = src, .first = first};
    zarr_status st = zr_io_options_read(&ap.opts, opts, err);

    if (st == ZARR_OK)
        st = append_order(&ap, err);
    if (st == ZARR_OK)
        return append_run(&ap, err);
    zr_stream_give(&array->h.ctx->engine.streams, &ap.after);
    return zr_path_prefix(err, st, array->h.path);
}

/* ---- submitted ---------------------------------------------------------- */

static zarr_status submitted_append(void *owner, zarr_request *rq, zarr_error *err)
{
    struct appending *ap = owner;

    ap->rq = rq;
    ap->opts.cancel = zr_request_cancel(rq);
    return append_run(ap, err);
}

static void release_append(void *owner)
{
    struct appending *ap = owner;
    zarr_array *array = ap->array;

    zr_stream_give(&array->h.ctx->engine.streams, &ap->after);
    zarr_cancel_free(ap->owned_cancel);
    zr_arena_deinit(&ap->texts);
    zr_free(array->h.ctx->alloc, ap);
    zarr_array_free(array);
}

zarr_status zarr_array_append_submit(zarr_request **out, zarr_array *array, int32_t axis,
                                     const zarr_tensor *src, uint64_t *first,
                                     const zarr_io_options *opts, zarr_error *err)
{
    *out = NULL;
    ZR_NEED(array, err);
    const zarr_allocator *alloc = array->h.ctx->alloc;
    struct appending *ap = zr_calloc(alloc, 1, sizeof *ap);
    const struct zr_request_work work = {submitted_append, release_append, ap};
    zarr_status st = ZARR_OK;

    if (!ap)
        return zr_fail_memory(err, sizeof *ap);
    ap->array = zarr_array_ref(array);
    ap->axis = axis;
    ap->src = src;
    ap->first = first;
    zr_arena_init(&ap->texts, alloc);
    ZR_TRY(zr_io_options_read(&ap->opts, opts, err));
    ZR_TRY(zr_io_options_keep(&ap->opts, &ap->tuning, &ap->texts, err));
    ZR_TRY(append_order(ap, err));
    if (ap->opts.cancel)
        ap->owned_cancel = zr_cancel_ref(ap->opts.cancel);
    ZR_TRY(zr_request_create(out, alloc, ap->owned_cancel, &work, err));
    ap = NULL; /* moved */
out:
    if (ap)
        release_append(ap);
    return st == ZARR_OK ? st : zr_path_prefix(err, st, array->h.path);
}
