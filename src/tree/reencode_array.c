/*
 * tree/reencode_array.c - re-encodes the elements of one array. One box is read into a
 * buffer while the box before it is written from the other; requests run in parallel.
 * Each object of the destination is written once, whole and atomically, so an object that
 * exists is finished. A resumed call lists the objects, skips boxes whose objects all
 * exist, and writes the missing units of the others one by one. An object depends only on
 * its elements and codecs, so the bytes are the same however often the work was
 * interrupted.
 * Thread class: the caller's thread.
 */
#include "tree/reencode_int.h"

#include <stdlib.h>
#include <string.h>

enum {
    REENCODE_IN_FLIGHT = 8 /* single units written at once */
};

/* One request, with everything it points to. */
struct transfer {
    zarr_request *request;
    zarr_selection *selection;
    zarr_tensor tensor;
    zarr_io_options opts;
    zarr_stats stats;
    int64_t strides[ZARR_MAX_RANK];
    uint64_t bytes; /* bytes of a write; 0: a read */
};

struct reencode_box {
    uint64_t start[ZARR_MAX_RANK], count[ZARR_MAX_RANK];
};

struct reencode_slot {
    void *data;
    zarr_heap *heap; /* for elements of variable length, else NULL */
    struct reencode_box box;
    uint64_t bytes;
    struct transfer read, write;
};

struct reencode_work {
    struct zr_reencode *r;
    const struct zr_reencode_pair *pair;
    struct zr_reencode_shape s;
    uint64_t *finished; /* sorted numbers of the units that existed before */
    size_t n_finished, cap;
    bool sparse; /* only the boxes in `stored` are done */
    struct zr_coord_set stored;
    size_t next_stored;
    struct reencode_slot slots[2];
    struct transfer units[REENCODE_IN_FLIGHT];
    zarr_status listed; /* status of the listing's callback */
    zarr_error *list_err;
};

/* ---- transfers --------------------------------------------------------- */

static void transfer_end(struct transfer *t)
{
    zarr_request_free(t->request);
    zarr_selection_free(t->selection);
    t->request = NULL;
    t->selection = NULL;
}

/* Prepares a transfer: the selection and the tensor of `box`, which is inside the slot's
 * box. slot->data has the elements of that. */
static zarr_status transfer_begin(struct reencode_work *w, struct transfer *t,
                                  const struct reencode_box *box,
                                  const struct reencode_slot *slot, zarr_error *err)
{
    const struct zr_box_walk *b = &w->s.boxes;
    uint64_t stride = w->s.item_bytes, offset = 0;
    zarr_status st =
        zarr_selection_box(&t->selection, b->ndim, b->shape, box->start, box->count, err);

    if (st != ZARR_OK)
        return st;
    /* no overflow: all of the box is within buffer_bytes */
    for (int32_t d = b->ndim - 1; d >= 0; d--) {
        t->strides[d] = (int64_t)stride;
        offset += (box->start[d] - slot->box.start[d]) * stride;
        stride *= slot->box.count[d];
    }
    zarr_tensor_host(&t->tensor, NULL, slot->data, slot->bytes, b->ndim, box->count);
    t->tensor.strides = t->strides;
    t->tensor.byte_offset = offset;
    t->stats = (zarr_stats){.struct_size = sizeof t->stats};
    t->opts = (zarr_io_options){
        .struct_size = sizeof t->opts, .stats = &t->stats, .cancel = w->r->opts.cancel};
    return ZARR_OK;
}

static zarr_status start_read(struct reencode_work *w, struct reencode_slot *slot,
                              zarr_error *err)
{
    struct transfer *t = &slot->read;
    zarr_status st = ZARR_OK;

    ZR_TRY(transfer_begin(w, t, &slot->box, slot, err));
    t->bytes = 0;
    if (zarr_dtype_variable(zarr_array_dtype(w->pair->src))) {
        if (!slot->heap)
            ZR_TRY(zarr_heap_create(&slot->heap, w->r->ctx, 0, err));
        zarr_heap_clear(slot->heap);
    }
    t->opts.heap = slot->heap;
    if (w->r->opts.read) {
        transfer_end(t);
        t->tensor.dtype = zarr_array_dtype(w->pair->dst);
        st = w->r->opts.read(w->r->opts.read_user, w->pair->src, slot->box.start,
                             &t->tensor, &t->opts, err);
    } else {
        st = zarr_array_read_submit(&t->request, w->pair->src, t->selection, &t->tensor,
                                    &t->opts, err);
    }
out:
    return st;
}

static zarr_status start_write(struct reencode_work *w, struct transfer *t,
                               const struct reencode_box *box,
                               const struct reencode_slot *slot, zarr_error *err)
{
    const struct zr_box_walk *b = &w->s.boxes;
    zarr_status st = ZARR_OK;

    ZR_TRY(transfer_begin(w, t, box, slot, err));
    t->bytes = zr_product_cap(box->count, (size_t)b->ndim) * w->s.item_bytes;
    ZR_TRY(zarr_array_write_submit(&t->request, w->pair->dst, t->selection, &t->tensor,
                                   &t->opts, err));
out:
    return st;
}

struct looking {
    const struct reencode_work *w;
    const struct transfer *t;
};

static void look_at(void *arg, const zarr_stats *now, bool done)
{
    const struct looking *l = arg;

    if (!done && l->t->bytes && now->chunks_total)
        zr_reencode_progress(l->w->r, l->w->pair->path,
                             (uint64_t)((double)l->t->bytes * (double)now->chunks_done /
                                        (double)now->chunks_total));
}

static zarr_status wait_for(struct reencode_work *w, struct transfer *t, zarr_error *err)
{
    struct looking looking = {w, t};
    struct zr_reencode *r = w->r;
    const struct zr_waiting waiting = {.look = r->opts.progress ? look_at : NULL,
                                       .arg = &looking};
    zarr_request *request = t->request;
    zarr_status st = ZARR_OK;

    if (!request)
        return ZARR_OK;
    t->request = NULL;
    st = zr_request_end(request, &waiting, err); /* also frees the request */
    transfer_end(t);
    if (st == ZARR_OK)
        st = zr_cancel_check(r->opts.cancel, err);
    if (st == ZARR_OK && t->bytes) {
        r->done_bytes = zr_add_cap(r->done_bytes, t->bytes);
        r->result.objects_written += t->stats.store_puts;
        zr_reencode_progress(r, w->pair->path, 0);
    }
    return st;
}

/* ---- finished units ---------------------------------------------------- */

static uint64_t unit_number(const struct reencode_work *w, const uint64_t *unit)
{
    uint64_t n = 0;

    for (int32_t d = 0; d < w->s.boxes.ndim; d++)
        n = n * w->s.grid[d] + unit[d];
    return n;
}

static int add_finished(void *user, const zarr_block_info *chunk)
{
    struct reencode_work *w = user;

    w->listed = zr_grow(w->r->ctx->alloc, &w->finished, &w->cap, w->n_finished + 1,
                        sizeof *w->finished, w->list_err);
    if (w->listed == ZARR_OK)
        w->finished[w->n_finished++] = unit_number(w, chunk->coordinates);
    return w->listed != ZARR_OK;
}

static int compare_numbers(const void *a, const void *b)
{
    const uint64_t *p = a, *q = b;

    return (*p > *q) - (*p < *q);
}

static bool is_finished(const struct reencode_work *w, const uint64_t *unit)
{
    const uint64_t n = unit_number(w, unit);

    return w->n_finished &&
           bsearch(&n, w->finished, w->n_finished, sizeof n, compare_numbers);
}

static zarr_status list_finished(struct reencode_work *w, zarr_error *err)
{
    const zarr_io_options io = {.struct_size = sizeof io, .cancel = w->r->opts.cancel};
    zarr_status st = ZARR_OK;

    if (w->r->result.state != ZARR_REENCODE_RESUMED)
        return ZARR_OK;
    w->list_err = err;
    ZR_TRY(zarr_array_list_blocks(w->pair->dst, ZARR_BLOCKS_STORED, add_finished, w, &io,
                                  err));
    ZR_TRY(w->listed);
    if (w->n_finished)
        qsort(w->finished, w->n_finished, sizeof *w->finished, compare_numbers);
out:
    return st;
}

/* ---- units of a box ---------------------------------------------------- */

/* A unit in array coordinates, clipped to the array's shape. */
static void unit_box(const struct reencode_work *w, const uint64_t *unit,
                     struct reencode_box *out)
{
    for (int32_t d = 0; d < w->s.boxes.ndim; d++) {
        zr_grid_extent(w->pair->grid, d, unit[d], &out->start[d], &out->count[d]);
        out->count[d] = ZR_MIN(out->count[d], w->s.boxes.shape[d] - out->start[d]);
    }
}

/* These walk the units of a box. next_unit() returns false after the last. */
static void first_unit(const struct reencode_work *w, const struct reencode_box *box,
                       uint64_t *unit)
{
    for (int32_t d = 0; d < w->s.boxes.ndim; d++)
        unit[d] = zr_grid_locate(w->pair->grid, d, box->start[d]);
}

static bool next_unit(const struct reencode_work *w, const struct reencode_box *box,
                      uint64_t *unit)
{
    uint64_t first[ZARR_MAX_RANK], start, size;

    first_unit(w, box, first);
    for (int32_t d = w->s.boxes.ndim - 1; d >= 0; d--) {
        if (++unit[d] < w->s.grid[d]) {
            zr_grid_extent(w->pair->grid, d, unit[d], &start, &size);
            if (start < box->start[d] + box->count[d])
                return true;
        }
        unit[d] = first[d];
    }
    return false;
}

/* Returns how many units of the box exist. *total: number of all its units. */
static uint64_t count_finished(const struct reencode_work *w,
                               const struct reencode_box *box, uint64_t *total)
{
    uint64_t unit[ZARR_MAX_RANK], n = 0;

    *total = 0;
    first_unit(w, box, unit);
    do {
        n += is_finished(w, unit);
        ++*total;
    } while (next_unit(w, box, unit));
    return n;
}

static void skip_bytes(struct reencode_work *w, uint64_t bytes)
{
    w->r->done_bytes = zr_add_cap(w->r->done_bytes, bytes);
    w->r->result.bytes_skipped = zr_add_cap(w->r->result.bytes_skipped, bytes);
}

/* Writes the missing units of a box, several at a time. */
static zarr_status write_missing(struct reencode_work *w, struct reencode_slot *slot,
                                 zarr_error *err)
{
    const size_t ndim = (size_t)w->s.boxes.ndim;
    uint64_t unit[ZARR_MAX_RANK];
    zarr_status st = ZARR_OK;
    size_t n = 0;

    first_unit(w, &slot->box, unit);
    do {
        struct transfer *t = &w->units[n % REENCODE_IN_FLIGHT];
        struct reencode_box one;

        unit_box(w, unit, &one);
        if (is_finished(w, unit)) {
            skip_bytes(w, zr_product_cap(one.count, ndim) * w->s.item_bytes);
            continue;
        }
        ZR_TRY(wait_for(w, t, err));
        ZR_TRY(start_write(w, t, &one, slot, err));
        n++;
    } while (next_unit(w, &slot->box, unit));
    for (size_t i = 0; i < REENCODE_IN_FLIGHT; i++)
        ZR_TRY(wait_for(w, &w->units[i], err));
out:
    return st;
}

/* ---- the array --------------------------------------------------------- */

/* Counts what no box of a sparse array covers as done. */
static void skip_empty(struct reencode_work *w)
{
    struct zr_reencode *r = w->r;
    struct zr_box_walk *b = &w->s.boxes;
    uint64_t bytes =
        zr_mul_cap(zr_product_cap(b->shape, (size_t)b->ndim), w->s.item_bytes);

    for (size_t i = 0; i < w->stored.n; i++) {
        zr_box_walk_at(b, zr_coord_set_item(&w->stored, i));
        bytes -= b->n_items * w->s.item_bytes;
    }
    r->done_bytes = zr_add_cap(r->done_bytes, bytes);
    r->result.bytes_empty = zr_add_cap(r->result.bytes_empty, bytes);
}

static bool has_box(struct reencode_work *w)
{
    if (!w->sparse)
        return zr_box_walk_next(&w->s.boxes);
    if (w->next_stored == w->stored.n)
        return false;
    zr_box_walk_at(&w->s.boxes, zr_coord_set_item(&w->stored, w->next_stored++));
    return true;
}

/* Finds the next box with missing units. */
static bool next_box(struct reencode_work *w, struct reencode_slot *slot)
{
    const struct zr_box_walk *b = &w->s.boxes;

    while (has_box(w)) {
        uint64_t total;

        memcpy(slot->box.start, b->start, sizeof b->start);
        memcpy(slot->box.count, b->count, sizeof b->count);
        slot->bytes = b->n_items * w->s.item_bytes;
        if (!w->n_finished || count_finished(w, &slot->box, &total) < total)
            return true;
        skip_bytes(w, slot->bytes);
    }
    return false;
}

static zarr_status write_box(struct reencode_work *w, struct reencode_slot *slot,
                             zarr_error *err)
{
    uint64_t total;

    if (w->n_finished && count_finished(w, &slot->box, &total) > 0)
        return write_missing(w, slot, err);
    return start_write(w, &slot->write, &slot->box, slot, err);
}

/* Re-encodes a shard that is larger than the buffers, some chunks at a time. */
static zarr_status stream_unit(struct reencode_work *w, struct reencode_slot *slot,
                               zarr_error *err)
{
    struct zr_reencode *r = w->r;
    zarr_stats stats = ZARR_STATS_INIT;
    const zarr_io_options io = {
        .struct_size = sizeof io, .stats = &stats, .cancel = r->opts.cancel};
    uint64_t unit[ZARR_MAX_RANK];
    zarr_shard_writer *out = NULL;
    zarr_status st = ZARR_OK;

    first_unit(w, &slot->box, unit);
    ZR_TRY(zarr_shard_writer_open(&out, w->pair->dst, unit, &io, err));
    while (zarr_shard_writer_next(out, w->s.buffer_bytes, slot->box.start,
                                  slot->box.count)) {
        slot->bytes =
            zr_product_cap(slot->box.count, (size_t)w->s.boxes.ndim) * w->s.item_bytes;
        ZR_TRY(start_read(w, slot, err));
        ZR_TRY(wait_for(w, &slot->read, err));
        ZR_TRY(zarr_shard_writer_write(out, &slot->read.tensor, err));
        r->done_bytes = zr_add_cap(r->done_bytes, slot->bytes);
        r->result.objects_written += stats.store_puts;
        zr_reencode_progress(r, w->pair->path, 0);
    }
out:
    zarr_shard_writer_free(out);
    return st;
}

static zarr_status stream_units(struct reencode_work *w, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    while (next_box(w, &w->slots[0]))
        ZR_TRY(stream_unit(w, &w->slots[0], err));
out:
    return st;
}

static zarr_status copy_boxes(struct reencode_work *w, zarr_error *err)
{
    struct reencode_slot *now = &w->slots[0], *other = &w->slots[w->s.n_buffers - 1];
    bool more = next_box(w, now);
    zarr_status st = ZARR_OK;

    if (more)
        ZR_TRY(start_read(w, now, err));
    while (more) {
        struct reencode_slot *swap = now;

        ZR_TRY(wait_for(w, &now->read, err));
        ZR_TRY(wait_for(w, &other->write, err));
        ZR_TRY(write_box(w, now, err));
        if (now == other)
            ZR_TRY(wait_for(w, &now->write, err));
        more = next_box(w, other);
        if (more)
            ZR_TRY(start_read(w, other, err));
        now = other;
        other = swap;
    }
    for (int i = 0; i < w->s.n_buffers; i++)
        ZR_TRY(wait_for(w, &w->slots[i].write, err));
out:
    return st;
}

static zarr_status work_begin(struct reencode_work *w, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    ZR_TRY(list_finished(w, err));
    ZR_TRY(zr_reencode_sparse(w->r, w->pair, &w->s.boxes, false, &w->stored, &w->sparse,
                              err));
    if (w->sparse)
        skip_empty(w);
    for (int i = 0; i < w->s.n_buffers; i++)
        ZR_TRY(zr_reencode_buffer(w->r, &w->s, &w->slots[i].data, err));
out:
    return st;
}

/* Cancels the requests that are still running after a failure. */
static void work_end(struct reencode_work *w)
{
    const zarr_allocator *alloc = w->r->ctx->alloc;

    for (size_t i = 0; i < REENCODE_IN_FLIGHT; i++)
        transfer_end(&w->units[i]);
    for (size_t i = 0; i < 2; i++) {
        transfer_end(&w->slots[i].read);
        transfer_end(&w->slots[i].write);
    }
    for (size_t i = 0; i < 2; i++) {
        zarr_heap_free(w->slots[i].heap);
        zr_free(alloc, w->slots[i].data);
    }
    zr_coord_set_deinit(&w->stored);
    zr_free(alloc, w->finished);
}

zarr_status zr_reencode_array(struct zr_reencode *r, const struct zr_reencode_pair *pair,
                              zarr_error *err)
{
    struct reencode_work *w = zr_calloc(r->ctx->alloc, 1, sizeof *w);
    zarr_status st = ZARR_OK;

    if (!w)
        return zr_fail_memory(err, sizeof *w);
    w->r = r;
    w->pair = pair;
    ZR_TRY(zr_reencode_shape(r, pair, &w->s, err));
    if (!w->s.boxes.done) {
        ZR_TRY(work_begin(w, err));
        ZR_TRY((w->s.in_parts ? stream_units : copy_boxes)(w, err));
        ZR_TRY(zarr_array_recheck(pair->src, r->opts.cancel,
                                  err)); /* also what the listing skipped */
    }
out:
    work_end(w);
    zr_free(r->ctx->alloc, w);
    return st;
}
