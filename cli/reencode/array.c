/*
 * reencode/array.c - the elements of one array, from the old encoding to the
 * new one. Box after box is read into one of two buffers while the former is
 * written; the library does both in parallel. Each object of the destination
 * is written once, whole and atomically, so an object that is there is
 * finished: a run that goes on lists them, skips the boxes that have all of
 * theirs, and writes the missing units of the others one by one. An object
 * depends on its elements and codecs only, so the bytes are the same however
 * often the work was interrupted.
 * Thread class: the program's one thread.
 */
#include "reencode/reencode.h"

#include <stdlib.h>
#include <string.h>

enum {
    IN_FLIGHT = 8
}; /* single units under way */
static const uint64_t poll_ns = 50000000;

/* One request with what it points to. */
struct transfer {
    zarr_request *request;
    zarr_selection *selection;
    zarr_tensor tensor;
    zarr_io_options opts;
    zarr_stats stats;
    int64_t shape[ZARR_MAX_RANK], strides[ZARR_MAX_RANK];
};

struct box {
    uint64_t start[ZARR_MAX_RANK], count[ZARR_MAX_RANK];
};

struct slot {
    void *data;
    zarr_heap *heap; /* of elements of variable length, else NULL */
    struct box box;
    uint64_t bytes;
    struct transfer read, write;
};

struct work {
    struct reencode *r;
    const struct reencode_pair *pair;
    struct reencode_shape s;
    uint64_t *finished; /* sorted numbers of units that were there before */
    size_t n_finished, cap;
    bool sparse; /* only the boxes in `stored` */
    struct cli_chunks stored;
    size_t next_stored;
    struct slot slots[2];
    struct transfer units[IN_FLIGHT];
};

/* ---- the pair ------------------------------------------------------------------- */

int cli_reencode_open(struct reencode *r, size_t item, struct reencode_pair *out)
{
    const char *below = r->tree.items[item].path;
    char *src_path = cli_path_join(r->src.path, below);
    char *dst_path = cli_path_join(r->dst.path, below);
    zarr_array_open_options opts = {.struct_size = sizeof opts};
    zarr_error err = {0};
    zarr_status st;

    out->shown = cli_shown_below(&r->src, below);
    opts.chunk_store = r->dst.store;
    st = zarr_array_open(&out->src, r->src.store, src_path, NULL, &err);
    if (!st)
        st = zarr_array_open(&out->dst, r->target, dst_path, &opts, &err);
    free(src_path);
    free(dst_path);
    return st ? cli_fail(r->cli, st, &err, "cannot open %s", out->shown) : CLI_OK;
}

void cli_reencode_close(struct reencode_pair *pair)
{
    zarr_array_free(pair->src);
    zarr_array_free(pair->dst);
    free(pair->shown);
    *pair = (struct reencode_pair){0};
}

/* ---- transfers ------------------------------------------------------------------ */

static void transfer_end(struct transfer *t)
{
    zarr_request_free(t->request);
    zarr_selection_free(t->selection);
    t->request = NULL;
    t->selection = NULL;
}

/* A box as selection and tensor; whole: the box that data holds. */
static zarr_status transfer_begin(struct work *w, struct transfer *t,
                                  const struct box *box, const struct slot *slot,
                                  zarr_error *err)
{
    const struct cli_boxes *b = &w->s.boxes;
    uint64_t stride = w->s.item_bytes, offset = 0;
    zarr_status st =
        zarr_selection_box(&t->selection, b->ndim, b->shape, box->start, box->count, err);

    if (st)
        return st;
    for (int32_t d = b->ndim - 1; d >= 0; d--) {
        t->shape[d] = (int64_t)box->count[d];
        t->strides[d] = (int64_t)stride;
        offset += (box->start[d] - slot->box.start[d]) * stride;
        stride *= slot->box.count[d];
    }
    zarr_tensor_host(&t->tensor, slot->data, slot->bytes, b->ndim, t->shape);
    t->tensor.strides = t->strides;
    t->tensor.byte_offset = offset;
    t->stats = (zarr_stats){.struct_size = sizeof t->stats};
    t->opts = (zarr_io_options){.struct_size = sizeof t->opts, .stats = &t->stats};
    return ZARR_OK;
}

static zarr_status start_read(struct work *w, struct slot *slot, zarr_error *err)
{
    struct transfer *t = &slot->read;
    zarr_status st = transfer_begin(w, t, &slot->box, slot, err);

    if (!st)
        st = cli_heap(w->r->cli, zarr_array_dtype(w->pair->src), &slot->heap, err);
    t->opts.heap = slot->heap;
    return st ? st
              : zarr_array_read_submit(&t->request, w->pair->src, t->selection,
                                       &t->tensor, &t->opts, err);
}

static zarr_status start_write(struct work *w, struct transfer *t, const struct box *box,
                               const struct slot *slot, zarr_error *err)
{
    zarr_status st = transfer_begin(w, t, box, slot, err);

    return st ? st
              : zarr_array_write_submit(&t->request, w->pair->dst, t->selection,
                                        &t->tensor, &t->opts, err);
}

/* Shows how far it is while it waits; an interrupt cancels. bytes: what it moves, 0 for
 * reads. */
static zarr_status wait_for(struct work *w, struct transfer *t, uint64_t bytes,
                            zarr_error *err)
{
    struct reencode *r = w->r;
    zarr_status st = ZARR_OK;
    int done = 0;

    if (!t->request)
        return ZARR_OK;
    while (!st && !done) {
        zarr_stats so_far = {.struct_size = sizeof so_far};

        if (cli_cancel)
            zarr_request_cancel(t->request);
        st = zarr_request_wait(t->request, poll_ns, &done, err);
        if (done || !bytes)
            continue;
        zarr_request_progress(t->request, &so_far);
        if (so_far.chunks_total)
            cli_progress_update(
                &r->progress,
                r->done_bytes + (uint64_t)((double)bytes * (double)so_far.chunks_done /
                                           (double)so_far.chunks_total),
                0);
    }
    transfer_end(t);
    if (!st && cli_cancel)
        st = ZARR_ERR_CANCELLED;
    if (!st && bytes) {
        r->done_bytes = cli_add(r->done_bytes, bytes);
        r->n_written += t->stats.store_puts;
        cli_progress_update(&r->progress, r->done_bytes, 0);
    }
    return st;
}

/* ---- what is finished ----------------------------------------------------------- */

static uint64_t unit_number(const struct work *w, const uint64_t *unit)
{
    uint64_t n = 0;

    for (int32_t d = 0; d < w->s.boxes.ndim; d++)
        n = n * w->s.grid[d] + unit[d];
    return n;
}

static int add_finished(void *user, const zarr_chunk_info *chunk)
{
    struct work *w = user;

    if (w->n_finished == w->cap) {
        w->cap = w->cap ? 2 * w->cap : 256;
        w->finished = cli_realloc(w->finished, w->cap * sizeof *w->finished);
    }
    w->finished[w->n_finished++] = unit_number(w, chunk->chunk);
    return cli_cancel;
}

static int compare_numbers(const void *a, const void *b)
{
    const uint64_t *p = a, *q = b;

    return (*p > *q) - (*p < *q);
}

static bool is_finished(const struct work *w, const uint64_t *unit)
{
    const uint64_t n = unit_number(w, unit);

    return w->n_finished &&
           bsearch(&n, w->finished, w->n_finished, sizeof n, compare_numbers) != NULL;
}

static int list_finished(struct work *w)
{
    zarr_error err = {0};
    zarr_status st;

    if (w->r->state != REENCODE_GO_ON)
        return CLI_OK;
    st = zarr_array_chunk_list(w->pair->dst, ZARR_CHUNKS_OBJECTS, add_finished, w, &err);
    if (st || cli_cancel)
        return cli_fail(w->r->cli, st, &err, "cannot list what is done of %s",
                        w->pair->shown);
    if (w->n_finished)
        qsort(w->finished, w->n_finished, sizeof *w->finished, compare_numbers);
    return CLI_OK;
}

/* ---- units of a box ------------------------------------------------------------- */

/* A unit in array coordinates, cut off at the array's end. */
static void unit_box(const struct work *w, const uint64_t *unit, struct box *out)
{
    /* The unit is one of the grid's: this cannot fail. */
    (void)!zarr_array_chunk_extent(w->pair->dst, unit, out->start, out->count, NULL);
    for (int32_t d = 0; d < w->s.boxes.ndim; d++) {
        const uint64_t rest = w->s.boxes.shape[d] - out->start[d];

        out->count[d] = rest < out->count[d] ? rest : out->count[d];
    }
}

/* Walks the units of a box: the first one, then the next; false behind the last. */
static bool first_unit(const struct work *w, const struct box *box, uint64_t *unit)
{
    return zarr_array_chunk_locate(w->pair->dst, box->start, unit, NULL) == ZARR_OK;
}

static bool next_unit(const struct work *w, const struct box *box, uint64_t *unit)
{
    uint64_t first[ZARR_MAX_RANK];

    if (!first_unit(w, box, first))
        return false;
    for (int32_t d = w->s.boxes.ndim - 1; d >= 0; d--) {
        struct box one;

        if (++unit[d] < w->s.grid[d]) {
            unit_box(w, unit, &one);
            if (one.start[d] < box->start[d] + box->count[d])
                return true;
        }
        unit[d] = first[d];
    }
    return false;
}

/* How many units of the box are there; *total: of all. */
static uint64_t count_finished(const struct work *w, const struct box *box,
                               uint64_t *total)
{
    uint64_t unit[ZARR_MAX_RANK], n = 0;

    *total = 0;
    for (bool more = first_unit(w, box, unit); more; more = next_unit(w, box, unit)) {
        n += is_finished(w, unit);
        ++*total;
    }
    return n;
}

/* The missing units of a box, several at a time. */
static zarr_status write_missing(struct work *w, struct slot *slot, zarr_error *err)
{
    uint64_t unit[ZARR_MAX_RANK], bytes[IN_FLIGHT] = {0};
    zarr_status st = ZARR_OK;
    size_t n = 0;

    for (bool more = first_unit(w, &slot->box, unit); more && !st;
         more = next_unit(w, &slot->box, unit)) {
        struct transfer *t = &w->units[n % IN_FLIGHT];
        struct box one;

        unit_box(w, unit, &one);
        if (is_finished(w, unit)) {
            const uint64_t there =
                cli_product(w->s.boxes.ndim, one.count) * w->s.item_bytes;

            w->r->done_bytes += there;
            w->r->skipped_bytes += there;
            continue;
        }
        st = wait_for(w, t, bytes[n % IN_FLIGHT], err);
        bytes[n % IN_FLIGHT] = cli_product(w->s.boxes.ndim, one.count) * w->s.item_bytes;
        if (!st)
            st = start_write(w, t, &one, slot, err);
        n++;
    }
    for (size_t i = 0; i < IN_FLIGHT && !st; i++)
        st = wait_for(w, &w->units[i], bytes[i], err);
    return st;
}

/* ---- the array ------------------------------------------------------------------ */

/* None of them count in the rate. */
static void tell_skipped(struct work *w)
{
    w->r->progress.skipped_bytes = cli_add(w->r->skipped_bytes, w->r->empty_bytes);
}

/* What no box of a sparse array covers is done. */
static void skip_empty(struct work *w)
{
    const struct cli_boxes *b = &w->s.boxes;
    uint64_t bytes = cli_mul(cli_product(b->ndim, b->shape), w->s.item_bytes);

    for (size_t i = 0; i < w->stored.n; i++) {
        cli_boxes_at(&w->s.boxes, w->stored.at + i * (size_t)b->ndim);
        bytes -= b->n_items * w->s.item_bytes;
    }
    w->r->done_bytes = cli_add(w->r->done_bytes, bytes);
    w->r->empty_bytes = cli_add(w->r->empty_bytes, bytes);
    tell_skipped(w);
}

static void look_for_stored(struct work *w, bool both)
{
    w->sparse = cli_reencode_sparse(w->pair, &w->s.boxes, both, &w->stored);
    if (w->sparse)
        skip_empty(w);
}

static bool any_box(struct work *w)
{
    if (!w->sparse)
        return cli_boxes_next(&w->s.boxes);
    if (w->next_stored == w->stored.n)
        return false;
    cli_boxes_at(&w->s.boxes, w->stored.at + w->next_stored++ * (size_t)w->stored.ndim);
    return true;
}

/* The next box with something to do. */
static bool next_box(struct work *w, struct slot *slot)
{
    struct cli_boxes *b = &w->s.boxes;

    while (any_box(w)) {
        uint64_t total;

        memcpy(slot->box.start, b->start, sizeof b->start);
        memcpy(slot->box.count, b->count, sizeof b->count);
        slot->bytes = b->n_items * w->s.item_bytes;
        if (!w->n_finished || count_finished(w, &slot->box, &total) < total)
            return true;
        w->r->done_bytes += slot->bytes;
        w->r->skipped_bytes += slot->bytes;
    }
    return false;
}

static zarr_status write_box(struct work *w, struct slot *slot, zarr_error *err)
{
    uint64_t total;

    if (w->n_finished && count_finished(w, &slot->box, &total) > 0)
        return write_missing(w, slot, err);
    return start_write(w, &slot->write, &slot->box, slot, err);
}

static zarr_status copy_boxes(struct work *w, zarr_error *err)
{
    struct slot *now = &w->slots[0], *other = &w->slots[w->s.n_buffers - 1];
    bool more = next_box(w, now);
    zarr_status st = more ? start_read(w, now, err) : ZARR_OK;

    while (more && !st) {
        struct slot *swap = now;

        st = wait_for(w, &now->read, 0, err);
        if (!st)
            st = wait_for(w, &other->write, other->bytes, err);
        if (!st)
            st = write_box(w, now, err);
        if (!st && now == other)
            st = wait_for(w, &now->write, now->bytes, err);
        tell_skipped(w);
        if (st)
            break;
        more = next_box(w, other);
        if (more)
            st = start_read(w, other, err);
        now = other;
        other = swap;
    }
    for (int i = 0; i < w->s.n_buffers && !st; i++)
        st = wait_for(w, &w->slots[i].write, w->slots[i].bytes, err);
    tell_skipped(w);
    return st;
}

static void work_end(struct work *w)
{
    for (size_t i = 0; i < IN_FLIGHT; i++)
        transfer_end(&w->units[i]);
    for (size_t i = 0; i < 2; i++) {
        transfer_end(&w->slots[i].read);
        transfer_end(&w->slots[i].write);
        zarr_heap_free(w->slots[i].heap);
        free(w->slots[i].data);
    }
    cli_chunks_free(&w->stored);
    free(w->finished);
}

int cli_reencode_array(struct reencode *r, const struct reencode_pair *pair)
{
    struct work w = {.r = r, .pair = pair};
    zarr_error err = {0};
    zarr_status st = ZARR_OK;
    int rc = cli_reencode_shape(r, pair, &w.s);

    if (!rc && !w.s.boxes.done) {
        rc = list_finished(&w);
        if (!rc)
            look_for_stored(&w, false);
    }
    for (int i = 0; i < w.s.n_buffers && !rc; i++)
        w.slots[i].data = cli_alloc((size_t)w.s.buffer_bytes);
    if (!rc && !w.s.boxes.done)
        st = copy_boxes(&w, &err);
    work_end(&w);
    return st ? cli_fail(r->cli, st, &err, "cannot re-encode %s", pair->shown) : rc;
}

/* ---- --verify ------------------------------------------------------------------- */

static bool same_elements(const struct work *w, const char *a, const char *b, uint64_t n)
{
    const zarr_dtype *type = zarr_array_dtype(w->pair->dst);

    if (!zarr_dtype_variable(type))
        return memcmp(a, b, (size_t)(n * w->s.item_bytes)) == 0;
    for (uint64_t i = 0; i < n; i++, a += w->s.item_bytes, b += w->s.item_bytes)
        if (zarr_dtype_compare(type, a, b) != 0)
            return false;
    return true;
}

static int compare_box(struct work *w, void *a, void *b)
{
    struct cli_boxes *boxes = &w->s.boxes;
    const uint64_t bytes = boxes->n_items * w->s.item_bytes;
    int64_t shape[ZARR_MAX_RANK];
    zarr_selection *selection = NULL;
    zarr_tensor tensor;
    zarr_io_options opts = {.struct_size = sizeof opts};
    zarr_error err = {0};
    zarr_status st = cli_boxes_select(boxes, NULL, &selection, &err);
    int rc = CLI_OK;

    for (int side = 0; side < 2 && !st; side++) {
        zarr_array *array = side ? w->pair->dst : w->pair->src;

        cli_boxes_tensor(boxes, side ? b : a, bytes, shape, &tensor);
        st = cli_heap(w->r->cli, zarr_array_dtype(array), &w->slots[side].heap, &err);
        opts.heap = w->slots[side].heap;
        if (!st)
            st = cli_read(array, selection, &tensor, &opts, &err);
    }
    if (st) {
        rc = cli_fail(w->r->cli, st, &err, "cannot compare %s", w->pair->shown);
    } else if (!same_elements(w, a, b, boxes->n_items)) {
        char *at = cli_shape_text(boxes->ndim, boxes->start);

        rc = cli_error(w->r->cli, CLI_DIFFERENT,
                       "The destination is not finished and no node yet. A codec that "
                       "loses precision cannot be verified.",
                       "%s: elements of the destination differ in the box that begins "
                       "at %s",
                       w->pair->shown, at);
        free(at);
    }
    zarr_selection_free(selection);
    return rc;
}

int cli_reencode_compare(struct reencode *r, const struct reencode_pair *pair)
{
    struct work w = {.r = r, .pair = pair};
    int rc = cli_reencode_shape(r, pair, &w.s);
    void *a, *b;

    if (rc || w.s.boxes.done)
        return rc;
    a = cli_alloc((size_t)w.s.buffer_bytes);
    b = cli_alloc((size_t)w.s.buffer_bytes);
    look_for_stored(&w, true);
    while (!rc && any_box(&w)) {
        rc = compare_box(&w, a, b);
        r->done_bytes = cli_add(r->done_bytes, w.s.boxes.n_items * w.s.item_bytes);
        cli_progress_update(&r->progress, r->done_bytes, 0);
    }
    work_end(&w);
    free(a);
    free(b);
    return rc;
}
