/*
 * check/diff_boxes.c - reads and compares the elements of two arrays, box by box in
 * bounded memory. If a chunk cannot be read, its box is cut at chunks until only the
 * elements of that chunk are left out. If the index of a shard cannot be read, these are
 * the elements of the shard: its chunks are not tried one by one.
 * Thread class: plain functions.
 */
#include "check/diff_int.h"

#include <string.h>

/* ---- reading ---------------------------------------------------------------------- */

static zarr_status fresh_heap(const struct zr_comparing *c, zarr_heap **heap,
                              zarr_error *err)
{
    if (!zarr_dtype_variable(c->type))
        return ZARR_OK;
    if (!*heap)
        return zarr_heap_create(heap, c->p->d->ctx, 0, err);
    zarr_heap_clear(*heap);
    return ZARR_OK;
}

/* Makes the box a selection of the array. */
static zarr_status box_selection(const struct zr_comparing *c, int side,
                                 const struct zr_diff_box *b, zarr_selection **out,
                                 zarr_error *err)
{
    const zarr_selection *region = c->p->selection[side];
    zarr_selection *inner = NULL;
    zarr_status st =
        zarr_selection_box(&inner, c->ndim, c->shape, b->start, b->count, err);

    if (st == ZARR_OK && region) {
        st = zarr_selection_compose(out, region, inner, err);
        zarr_selection_free(inner);
    } else {
        *out = inner;
    }
    return st;
}

static zarr_status compared_read(struct zr_comparing *c, int side,
                                 const struct zr_diff_box *b, zarr_error *err)
{
    const struct zr_diff *d = c->p->d;
    const zarr_dtype_field *f = &c->p->field[side];
    zarr_io_options io = ZARR_IO_OPTIONS_INIT;
    zarr_selection *selection = NULL;
    uint64_t shape[ZARR_MAX_RANK];
    zarr_tensor tensor;
    int32_t ndim = 0;
    zarr_status st = ZARR_OK;

    for (; ndim < c->ndim; ndim++)
        shape[ndim] = b->count[ndim];
    for (int32_t i = 0; i < f->ndim; i++)
        shape[ndim++] = f->shape[i];
    zarr_tensor_host(&tensor, NULL, c->data[side], b->n_items * c->item_bytes, ndim,
                     shape);
    ZR_TRY(box_selection(c, side, b, &selection, err));
    ZR_TRY(fresh_heap(c, &c->heap[side], err));
    io.field = d->opts.field;
    io.heap = c->heap[side];
    io.cancel = d->opts.cancel;
    ZR_TRY(zarr_array_read(c->p->array[side], selection, &tensor, &io, err));
out:
    zarr_selection_free(selection);
    return st;
}

/* ---- boxes ------------------------------------------------------------------------ */

bool zr_diff_is_decided(const struct zr_comparing *c)
{
    const struct zr_diff *d = c->p->d;

    return d->stopped || (d->opts.flags & ZARR_DIFF_FIRST && c->p->node.n_different > 0);
}

static void box_unreadable(struct zr_comparing *c, const struct zr_diff_box *b,
                           uint64_t items, int side, zarr_status st,
                           const zarr_error *why)
{
    struct zr_diff_pair *p = c->p;
    uint64_t at[ZARR_MAX_RANK] = {0};
    zarr_difference f = {.dim = -1, .index = at, .ndim = p->ndim};

    memcpy(at, b->start, (size_t)c->ndim * sizeof *at);
    p->node.n_unread = zr_add_cap(p->node.n_unread, zr_mul_cap(items, p->n_values));
    if (c->n_faults++ < ZR_MAX(p->d->opts.max_elements, 1))
        zr_diff_tell_fault(p, &f, side, st, why);
    else
        zr_diff_note_fault(p->d, st, why);
}

/* Reads the box from both arrays. *side: the array that failed. */
static zarr_status read_both(struct zr_comparing *c, const struct zr_diff_box *b,
                             int *side, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    if (zr_is_cancelled(c->p->d->opts.cancel))
        return zr_fail(err, ZARR_ERR_CANCELLED, "the comparison was cancelled");
    for (int i = 0; i < 2 && st == ZARR_OK; i++) {
        *side = i;
        st = compared_read(c, i, b, err);
    }
    return st;
}

struct box_stack {
    struct zr_diff_box *item;
    size_t n, cap;
};

static zarr_status push_box(struct zr_comparing *c, struct box_stack *s,
                            const struct zr_diff_box *b, zarr_error *err)
{
    zarr_status st =
        zr_grow(c->p->d->ctx->alloc, &s->item, &s->cap, s->n + 1, sizeof *s->item, err);

    if (st == ZARR_OK)
        s->item[s->n++] = *b;
    return st;
}

/* Puts both parts of the box on the stack, the second one first. */
static zarr_status push_parts(struct zr_comparing *c, struct box_stack *s,
                              const struct zr_diff_box *b, int32_t dim, uint64_t at,
                              zarr_error *err)
{
    struct zr_diff_box first = *b, second = *b;
    zarr_status st;

    first.count[dim] = at - b->start[dim];
    first.n_items = zr_product_cap(first.count, (size_t)c->ndim);
    second.start[dim] = at;
    second.count[dim] = b->count[dim] - first.count[dim];
    second.n_items = b->n_items - first.n_items;
    st = push_box(c, s, &second, err);
    return st ? st : push_box(c, s, &first, err);
}

static void finish_box(struct zr_comparing *c, const struct zr_diff_box *b, int side,
                       zarr_status st, const zarr_error *why)
{
    const uint64_t items = c->done ? zr_diff_count_uncovered(c->done, b) : b->n_items;
    struct zr_diff *d = c->p->d;
    zarr_diff_node *n = &c->p->node;

    if (st != ZARR_OK)
        box_unreadable(c, b, items, side, st, why);
    else
        n->n_elements = zr_add_cap(n->n_elements, zr_mul_cap(items, c->p->n_values));
    c->n_seen = zr_add_cap(c->n_seen, items);
    d->done_bytes = zr_add_cap(d->done_bytes, zr_mul_cap(items, c->item_bytes));
    zr_diff_progress(d, zr_str_text(&c->p->path[0]));
}

zarr_status zr_diff_box(struct zr_comparing *c, const struct zr_diff_box *b,
                        zarr_error *err)
{
    struct box_stack s = {0};
    zarr_status st = ZARR_OK;

    ZR_TRY(push_box(c, &s, b, err));
    while (s.n > 0 && !zr_diff_is_decided(c)) {
        const struct zr_diff_box now = s.item[--s.n];
        zarr_error why = {0};
        uint64_t at;
        int32_t dim;
        int side = 0;

        st = read_both(c, &now, &side, &why);
        if (st == ZARR_OK)
            zr_diff_compare(c, &now);
        else if (!zr_diff_is_fault(st))
            ZR_TRY(zr_pass(err, st, &why));
        else if (zr_diff_cut(&c->side[side], &now, &why, &dim, &at)) {
            ZR_TRY(push_parts(c, &s, &now, dim, at, err));
            continue;
        }
        finish_box(c, &now, side, st, &why);
        st = ZARR_OK;
    }
out:
    zr_free(c->p->d->ctx->alloc, s.item);
    return st;
}

/* ---- all of the elements ---- */

static zarr_status make_room(struct zr_comparing *c, uint64_t items, zarr_error *err)
{
    uint64_t bytes = 0;
    size_t n = 0;

    if (!zr_mul(items, c->item_bytes, &bytes) || !zr_fits(bytes, &n))
        return zr_fail_memory(err, UINT64_MAX);
    for (int side = 0; side < 2; side++) {
        c->data[side] = zr_malloc(c->p->d->ctx->alloc, n);
        if (!c->data[side])
            return zr_fail_memory(err, bytes);
    }
    return ZARR_OK;
}

static zarr_status compare_all(struct zr_comparing *c, struct zr_box_walk *boxes,
                               zarr_error *err)
{
    struct zr_diff_box b = {.n_items = 0};
    zarr_status st = ZARR_OK;

    while (st == ZARR_OK && !zr_diff_is_decided(c) && zr_box_walk_next(boxes)) {
        memcpy(b.start, boxes->start, sizeof b.start);
        memcpy(b.count, boxes->count, sizeof b.count);
        b.n_items = boxes->n_items;
        st = zr_diff_box(c, &b, err);
    }
    return st;
}

static void comparing_init(struct zr_comparing *c)
{
    const struct zr_diff *d = c->p->d;
    const zarr_selection *s = c->p->selection[0];
    uint64_t bytes = d->opts.buffer_bytes;

    c->ndim = s ? zarr_selection_ndim(s) : zarr_array_ndim(c->p->array[0]);
    memcpy(c->shape, s ? zarr_selection_shape(s) : zarr_array_shape(c->p->array[0]),
           (size_t)c->ndim * sizeof *c->shape);
    c->type = c->p->field[0].dtype;
    c->value_bytes = zarr_dtype_item_bytes(c->type);
    c->item_bytes = ZR_MAX(zr_mul_cap(c->p->n_values, c->value_bytes), 1);
    c->is_number = zarr_dtype_number(c->type, NULL, NULL, 0) > 0;
    if (bytes == 0)
        bytes = d->ctx->budget.total / 2;
    bytes = ZR_MIN(bytes / 2, (uint64_t)64 << 20);
    c->most = ZR_MAX(bytes / c->item_bytes, 1);
    for (int side = 0; side < 2; side++)
        zr_diff_side_init(&c->side[side], c, side);
}

zarr_status zr_diff_elements(struct zr_diff_pair *p, zarr_error *err)
{
    struct zr_comparing c = {.p = p};
    const uint64_t *unit;
    struct zr_box_walk boxes;
    bool few = false;
    zarr_status st = ZARR_OK;

    comparing_init(&c);
    unit = c.ndim == zarr_array_ndim(p->array[0]) ? zarr_array_block_shape(p->array[0])
                                                  : NULL;
    zr_box_walk_init(&boxes, c.ndim, c.shape, unit, c.most);
    ZR_TRY(make_room(&c, ZR_MIN(zr_product_cap(c.shape, (size_t)c.ndim), c.most), err));
    ZR_TRY(zr_diff_find_stored(&c, &few, err));
    ZR_TRY(few ? zr_diff_sparse(&c, err) : compare_all(&c, &boxes, err));
    for (int side = 0; side < 2; side++) {
        p->side = side;
        ZR_TRY(zarr_array_recheck(p->array[side], p->d->opts.cancel, err));
    }
out:
    for (int side = 0; side < 2; side++) {
        zarr_heap_free(c.heap[side]);
        zr_free(p->d->ctx->alloc, c.data[side]);
        zr_coord_set_deinit(&c.side[side].stored);
    }
    return st;
}
