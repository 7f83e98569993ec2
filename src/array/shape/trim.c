/*
 * array/shape/trim.c - trims an array after a shrink: erases chunks wholly outside the
 * new shape, and resets to the fill value the parts of border chunks outside it, so that
 * growing again shows the fill value and not the old elements. Right before it touches
 * some chunks it looks at the stored shape again, and leaves alone what is inside once
 * more. Rows of chunk coordinates are processed in parallel, several at a time.
 * Thread class: plain functions.
 */
#include "array/io/io_int.h"
#include "array/shape/trim_int.h"

#include <string.h>

enum {
    TRIM_BATCH = 64, /* most rows for one look at the stored shape */
    TRIM_SHARES = 4  /* batches for each thread, so that no thread waits long */
};

/* ---- the array meanwhile ------------------------------------------------ */

/* A resize of irregular chunks rewrites their edges, even to equal ones. */
static bool same_cuts(const struct zr_array_meta *was, const struct zr_array_meta *now)
{
    if (was->ndim != now->ndim)
        return false;
    if (was->grid.regular && now->grid.regular)
        return was->ndim == 0 ||
               memcmp(now->grid.chunk_shape, was->grid.chunk_shape,
                      (size_t)was->ndim * sizeof *was->grid.chunk_shape) == 0;
    return zr_grid_keeps(&was->grid, &now->grid, NULL) == ZARR_OK;
}

/* Under the lock: reads the shape from a changed document. */
static zarr_status parse_now(struct zr_trim *t, const struct zr_doc *doc, zarr_error *err)
{
    const zarr_context *ctx = t->a->h.ctx;
    const struct zr_array_meta *was = &t->old->meta;
    struct zr_array_state *now = NULL;
    struct zr_array_source src;
    struct zr_parsed *parsed = NULL;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_parsed_read(&parsed, doc, ctx, err));
    src = zr_array_source_make(was->format, parsed, NULL, was);
    ZR_TRY(zr_array_state_new(&now, ctx, &src, err));
    if (!same_cuts(was, &now->meta))
        ZR_FAIL(err, ZARR_ERR_CONFLICT, "it is another array now");
    t->locked.known = false;
    memcpy(t->locked.shape, now->meta.shape, sizeof t->locked.shape);
    zr_str_clear(&t->locked.text);
    zr_str_append(&t->locked.text, doc->text, doc->bytes);
    ZR_TRY(zr_str_status(&t->locked.text, err));
    t->locked.known = true;
out:
    zr_array_state_free(now);
    zr_parsed_free(parsed);
    return st;
}

static zarr_status shape_now(struct zr_trim *t, uint64_t *shape, zarr_error *err)
{
    const zarr_array *a = t->a;
    const struct zr_doc_source src = {
        .store = a->h.store,
        .path = a->h.path,
        .name = zr_doc_name(ZARR_NODE_ARRAY, t->old->meta.format),
    };
    struct zr_doc doc;
    zarr_status st = ZARR_OK;

    zr_doc_init(&doc, a->h.ctx->alloc);
    st = zr_doc_get(&doc, &src, err);
    if (st == ZARR_ERR_NOT_FOUND)
        st = zr_fail(err, ZARR_ERR_CONFLICT, "the array was deleted meanwhile");
    if (st != ZARR_OK)
        goto out;
    zr_mutex_lock(&t->locked.mutex);
    if (!t->locked.known || t->locked.text.bytes != doc.bytes ||
        memcmp(zr_str_text(&t->locked.text), doc.text, doc.bytes) != 0)
        st = parse_now(t, &doc, err);
    memcpy(shape, t->locked.shape, sizeof t->locked.shape);
    zr_mutex_unlock(&t->locked.mutex);
out:
    zr_doc_deinit(&doc);
    return st;
}

/* ---- one chunk ---------------------------------------------------------- */

static zarr_status chunk_is_stored(const struct zr_trim *t, const uint64_t *chunk,
                                   bool *there, zarr_error *err)
{
    struct zr_str key;
    zarr_status st = ZARR_OK;

    zr_str_init(&key, t->a->h.ctx->alloc);
    ZR_TRY(zr_array_key(t->a, t->old, chunk, &key, err));
    st = zr_key_is_there(t->a->chunk_store, zr_str_text(&key), ZARR_STORE_OP_CHUNK, there,
                         t->job->cancel, err);
out:
    zr_str_deinit(&key);
    return st;
}

/* A box to fill. */
struct trim_box {
    struct zr_trim *t;
    const uint64_t *start, *count;
    bool moved; /* the shape has some of it now */
};

/* Called between the read of a chunk and its conditional write. Fails if the box is not
 * outside of the stored shape any more; the caller finds out why. */
static zarr_status check_is_outside(void *arg, zarr_error *err)
{
    struct trim_box *box = arg;
    uint64_t shape[ZARR_MAX_RANK];
    bool outside = false;

    if (shape_now(box->t, shape, NULL) == ZARR_OK)
        for (int32_t d = 0; d < box->t->rows.ndim; d++)
            outside = outside || box->start[d] >= shape[d];
    box->moved = !outside;
    return outside ? ZARR_OK
                   : zr_fail(err, ZARR_ERR_CANCELLED, "the array changed meanwhile");
}

/* Writes the fill value to a box of the old array. */
static zarr_status fill_box(struct trim_box *b, zarr_error *err)
{
    const struct zr_trim *t = b->t;
    const struct zr_array_meta *m = &t->old->meta;
    const int64_t stride[ZARR_MAX_RANK] = {0};
    const zarr_tensor tensor = {
        .struct_size = sizeof tensor,
        .device_type = ZARR_DEVICE_CPU,
        .ndim = m->ndim,
        .data = m->fill,
        .shape = b->count,
        .strides = stride,
        .data_bytes = zarr_dtype_item_bytes(m->dtype),
    };
    struct zr_view_want want = {
        .ndim = m->ndim, .shape = b->count, .role = ZR_VIEW_SOURCE};
    zarr_selection *box = NULL;
    struct zr_io io;
    zarr_status st = ZARR_OK;

    ZR_TRY(zarr_selection_box(&box, m->ndim, m->shape, b->start, b->count, err));
    ZR_TRY(zr_array_io(&io, t->a, t->old, ZARR_DEVICE_CPU, NULL, err));
    want.item_bytes = io.layout->item_bytes;
    want.swap_unit = io.layout->swap_unit;
    ZR_TRY(zr_view_from_tensor(&io.view, &t->a->h.ctx->memory, &tensor, &want, err));
    io.selection = box;
    io.write = true;
    io.unit_flags = t->unit_flags;
    io.missing_error = false;
    io.max_threads = 1;
    io.cancel = t->job->cancel;
    if (t->by_version) {
        io.guard = check_is_outside;
        io.guard_arg = b;
    }
    ZR_TRY(zr_io_run(&io, NULL, err));
out:
    zarr_selection_free(box);
    return st;
}

enum trim_what {
    TRIM_NOTHING,
    TRIM_PART,
    TRIM_ALL
};

static enum trim_what what_is_outside(const struct zr_trim *t, const uint64_t *chunk,
                                      const uint64_t *shape)
{
    enum trim_what what = TRIM_NOTHING;

    for (int32_t d = 0; d < t->rows.ndim; d++) {
        uint64_t low = 0, high = 0;

        zr_trim_range(t->old, d, chunk[d], &low, &high);
        if (low >= shape[d])
            return TRIM_ALL;
        if (high > shape[d])
            what = TRIM_PART;
    }
    return what;
}

/* The part of a chunk outside is one box per dimension that cuts it; the boxes may
 * overlap. *moved: the shape has some of it now. */
static zarr_status reset_chunk(struct zr_trim *t, const uint64_t *chunk,
                               const uint64_t *new_shape, bool *moved, zarr_error *err)
{
    const bool keep = t->keep_border && what_is_outside(t, chunk, new_shape) == TRIM_PART;
    const int32_t ndim = t->old->meta.ndim;
    uint64_t low[ZARR_MAX_RANK], high[ZARR_MAX_RANK], count[ZARR_MAX_RANK] = {0};
    struct trim_box box = {.t = t, .start = low, .count = count};
    bool there = false, clean = false;
    zarr_status st = ZARR_OK;

    ZR_TRY(chunk_is_stored(t, chunk, &there, err));
    if (there && t->job->look_first)
        ZR_TRY(zr_outside_is_fill(t->a, t->old, chunk, new_shape, t->job->cancel, &clean,
                                  err));
    if (there && !clean && keep)
        atomic_fetch_add(&t->n_kept, 1);
    if (!there || clean || keep)
        goto out;
    for (int32_t d = 0; d < ndim; d++) {
        zr_trim_range(t->old, d, chunk[d], &low[d], &high[d]);
        count[d] = high[d] - low[d];
    }
    for (int32_t d = 0; d < ndim; d++) {
        const uint64_t from = low[d], n = count[d], cut = ZR_MAX(from, new_shape[d]);

        if (cut >= high[d])
            continue;
        low[d] = cut;
        count[d] = high[d] - cut;
        ZR_TRY(fill_box(&box, err));
        low[d] = from;
        count[d] = n;
    }
out:
    *moved = box.moved;
    return st;
}

/* ---- many chunks --------------------------------------------------------- */

/* The chunks of a batch of rows that are erased, with their operations. */
struct trim_batch {
    struct zr_trim *t;
    size_t n;
    const uint64_t *chunk[TRIM_BATCH];
    zarr_store_op op[TRIM_BATCH];
    struct zr_str text; /* the keys, each followed by 0 */
};

/* Adds the chunks of these rows that are wholly outside of the new shape. */
static zarr_status add_outside(struct trim_batch *b, size_t begin, size_t end,
                               zarr_error *err)
{
    const struct zr_trim *t = b->t;
    const char *key;

    b->n = 0;
    zr_str_clear(&b->text);
    for (size_t row = begin; row < end; row++) {
        const uint64_t *chunk = zr_stored_chunk(&t->rows, row);

        if (what_is_outside(t, chunk, t->new_shape) != TRIM_ALL)
            continue;
        zr_array_key_append(t->a, t->old, chunk, &b->text);
        zr_str_append(&b->text, "", 1);
        b->chunk[b->n++] = chunk;
    }
    ZR_CHECK(zr_str_status(&b->text, err));
    key = zr_str_text(&b->text);
    for (size_t i = 0; i < b->n; i++, key += strlen(key) + 1)
        b->op[i] =
            (zarr_store_op){.verb = ZARR_STORE_STAT,
                            .flags = ZARR_STORE_OP_CHUNK | ZARR_STORE_OP_WANT_VERSION,
                            .key = key,
                            .cancel = t->job->cancel};
    return ZARR_OK;
}

/* Keeps of the batch what is outside of this shape, too, and was found to exist. */
static void keep_outside(struct trim_batch *b, const uint64_t *shape)
{
    size_t left = 0;

    for (size_t i = 0; i < b->n; i++) {
        if (what_is_outside(b->t, b->chunk[i], shape) != TRIM_ALL ||
            b->op[i].status == ZARR_ERR_NOT_FOUND)
            continue;
        b->op[left] = b->op[i];
        b->op[left].verb = ZARR_STORE_ERASE;
        b->op[left].flags = ZARR_STORE_OP_CHUNK;
        if (b->t->by_version)
            b->op[left].flags |= ZARR_STORE_OP_IF_VERSION;
        b->chunk[left++] = b->chunk[i];
    }
    b->n = left;
}

static zarr_status run_batch(struct trim_batch *b, bool *overtaken, zarr_error *err)
{
    zarr_error e = {0};
    zarr_status st = zr_store_run(b->t->a->chunk_store, b->op, b->n, &e);

    *overtaken = st == ZARR_ERR_CONFLICT && b->t->by_version;
    zr_prefix(&e, st, "%s", zarr_store_url(b->t->a->chunk_store));
    return zr_pass(err, st, &e);
}

/* Erases the chunks of these rows that are wholly outside of the new shape and of the
 * stored one. If only versions keep writers apart, the versions are read before the
 * shape: an append that publishes a larger shape afterwards writes other versions. shape:
 * out, the stored one, if there are such chunks. */
static zarr_status erase_rows(struct trim_batch *b, size_t begin, size_t end,
                              uint64_t *shape, struct zr_backoff *wait, zarr_error *err)
{
    struct zr_trim *t = b->t;
    bool overtaken = true;
    zarr_status st = ZARR_OK;

    while (overtaken) {
        overtaken = false;
        ZR_TRY(add_outside(b, begin, end, err));
        if (b->n == 0)
            break;
        if (t->by_version)
            ZR_TRY(run_batch(b, &overtaken, err));
        ZR_TRY(shape_now(t, shape, err));
        keep_outside(b, shape);
        st = run_batch(b, &overtaken, err);
        for (size_t i = 0; i < b->n; i++)
            zr_index_cache_drop(t->a->indexes, b->op[i].key);
        if (overtaken)
            st = zr_backoff_wait(wait, st, err);
        ZR_TRY(st);
    }
out:
    return st;
}

/* Resets a chunk as the stored shape says. */
static zarr_status reset_row(struct zr_trim *t, const uint64_t *chunk,
                             struct zr_backoff *wait, zarr_error *err)
{
    uint64_t shape[ZARR_MAX_RANK];
    bool moved = true;
    zarr_status st = ZARR_OK;

    while (moved) {
        moved = false;
        ZR_TRY(shape_now(t, shape, err));
        if (what_is_outside(t, chunk, shape) == TRIM_NOTHING)
            break;
        st = reset_chunk(t, chunk, shape, &moved, err);
        if (moved)
            st = zr_backoff_wait(wait, st, err);
        ZR_TRY(st);
    }
out:
    return st;
}

/* Trims the i-th batch of rows. */
static zarr_status trim_rows(void *arg, uint64_t i, uint32_t worker, zarr_error *err)
{
    struct zr_trim *t = arg;
    const size_t begin = (size_t)i * t->batch, end = ZR_MIN(t->rows.n, begin + t->batch);
    uint64_t shape[ZARR_MAX_RANK] = {0};
    struct trim_batch b = {.t = t};
    struct zr_backoff wait;
    zarr_status st = ZARR_OK;

    ZR_UNUSED(worker);
    zr_str_init(&b.text, t->a->h.ctx->alloc);
    zr_backoff_init(&wait, t->a->chunk_store, t->a->h.path, t->job->cancel);
    if (t->erases)
        ZR_TRY(erase_rows(&b, begin, end, shape, &wait, err));
    for (size_t row = begin; row < end; row++) {
        const uint64_t *chunk = zr_stored_chunk(&t->rows, row);
        enum trim_what what = what_is_outside(t, chunk, t->new_shape);

        if (what == TRIM_ALL && t->erases) /* else it was erased */
            what =
                what_is_outside(t, chunk, shape) == TRIM_PART ? TRIM_PART : TRIM_NOTHING;
        if (what != TRIM_NOTHING)
            ZR_TRY(reset_row(t, chunk, &wait, err));
    }
out:
    zr_str_deinit(&b.text);
    return st;
}

static void tell_kept(struct zr_trim *t)
{
    const uint64_t n = atomic_load(&t->n_kept);

    if (n > 0)
        zr_log(&t->a->h.ctx->log, ZARR_LOG_WARN,
               "/%s: %" PRIu64 " chunks at the border of the shape have elements outside "
               "of it, which stay: the codecs lose values, and elements inside would "
               "change too",
               t->a->h.path, n);
}

/* Tells d the keys of the chunks that are changed. A chunk that the store did not list
 * may have been erased by a call that did not flush: d then gets none, and flushes. */
static zarr_status add_rows(struct zr_durable *d, const struct zr_trim *t,
                            zarr_error *err)
{
    bool more = !t->listed;
    struct zr_str key;
    zarr_status st = ZARR_OK;

    zr_str_init(&key, t->a->h.ctx->alloc);
    for (size_t row = 0; row < t->rows.n && more; row++) {
        const uint64_t *chunk = zr_stored_chunk(&t->rows, row);

        if (what_is_outside(t, chunk, t->new_shape) == TRIM_NOTHING)
            continue;
        ZR_TRY(zr_array_key(t->a, t->old, chunk, &key, err));
        more = zr_durable_add(d, zr_str_text(&key));
    }
    d->alone = d->alone && !t->listed;
out:
    zr_str_deinit(&key);
    return st;
}

zarr_status zr_array_trim(const struct zr_trim_job *job, zarr_error *err)
{
    const zarr_array *a = job->a;
    const struct zr_parallel_options opts = {.max_threads = a->h.ctx->engine.max_threads,
                                             .cancel = job->cancel};
    struct zr_trim t = {.job = job, .a = a, .old = job->old, .new_shape = job->shape};
    struct zr_durable durable;
    zarr_status st = ZARR_OK;

    t.by_version = zr_store_is_by_version(a->h.store);
    t.erases =
        !t.by_version || zr_store_can(a->chunk_store, ZARR_STORE_CAP_ERASE_IF_VERSION);
    zr_durable_init(&durable, a->chunk_store);
    zr_mutex_init(&t.locked.mutex);
    zr_str_init(&t.locked.text, a->h.ctx->alloc);
    if (job->keep_lossy)
        ZR_TRY(zr_array_lossy(a, job->old, &t.keep_border, err));
    ZR_TRY(zr_trim_find_rows(&t, err));
    if (job->durable) {
        ZR_TRY(add_rows(&durable, &t, err));
        t.unit_flags = zr_durable_flags(&durable);
    }
    t.batch = t.rows.n / ((size_t)zr_parallel_workers(t.rows.n, &opts) * TRIM_SHARES);
    t.batch = ZR_MAX(ZR_MIN(t.batch, (size_t)TRIM_BATCH), (size_t)1);
    ZR_TRY(
        zr_parallel_run(zr_ceil_div_u64(t.rows.n, t.batch), &opts, trim_rows, &t, err));
    if (job->durable)
        ZR_TRY(zr_durable_end(&durable, err));
    tell_kept(&t);
out:
    zr_durable_deinit(&durable);
    zr_stored_deinit(&t.rows);
    zr_str_deinit(&t.locked.text);
    zr_mutex_deinit(&t.locked.mutex);
    return st;
}
