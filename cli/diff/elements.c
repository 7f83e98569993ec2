/*
 * diff/elements.c - elements of two arrays, box by box in bounded memory. Equal
 * boxes cost one memcmp; only in others elements are looked at one by one.
 * Without a tolerance elements are equal when their bits are, or when both are
 * NaN; with one when |a - b| <= atol + rtol * |b|, as NumPy's isclose says it.
 * Integers are subtracted exactly.
 */
#include "diff/diff.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct comparing {
    struct diff_pair *p;
    struct cli_boxes boxes;
    uint64_t origin[ZARR_MAX_RANK]; /* of the outer selections, to tell positions */
    uint64_t most;                  /* elements in a box */
    bool enough;
    const zarr_selection *outer[2];
    const zarr_dtype *type; /* of a value: an element, or one of its field's */
    uint64_t value_bytes, n_values, item_bytes; /* item_bytes: n_values of them */
    bool is_number;
    char *data[2];
    zarr_heap *heap[2]; /* of elements of variable length, else NULL */
};

static int64_t read_signed(const void *element, uint64_t bytes)
{
    int8_t a;
    int16_t b;
    int32_t c;
    int64_t d;

    switch (bytes) {
    case 1:
        memcpy(&a, element, 1);
        return a;
    case 2:
        memcpy(&b, element, 2);
        return b;
    case 4:
        memcpy(&c, element, 4);
        return c;
    default:
        memcpy(&d, element, 8);
        return d;
    }
}

/* |a - b|; NaN where exactly one is NaN, 0 where both are (unless those differ). */
static double distance(const struct comparing *c, const void *a, const void *b)
{
    double x[2], y[2];
    bool nx, ny;

    if (zarr_dtype_kind(c->type) == ZARR_KIND_INT) {
        const int64_t p = read_signed(a, c->value_bytes);
        const int64_t q = read_signed(b, c->value_bytes);

        return (double)(p > q ? (uint64_t)p - (uint64_t)q : (uint64_t)q - (uint64_t)p);
    }
    if (zarr_dtype_kind(c->type) == ZARR_KIND_UINT && c->value_bytes == 8) {
        uint64_t p, q;

        memcpy(&p, a, 8);
        memcpy(&q, b, 8);
        return (double)(p > q ? p - q : q - p);
    }
    cli_number(c->type, a, x);
    cli_number(c->type, b, y);
    nx = isnan(x[0]) || isnan(x[1]);
    ny = isnan(y[0]) || isnan(y[1]);
    if (nx && ny)
        return c->p->d->nan_differs ? (double)NAN : 0;
    if (x[0] == y[0] && x[1] == y[1]) /* infinities, too */
        return 0;
    return hypot(x[0] - y[0], x[1] - y[1]);
}

static double magnitude(const struct comparing *c, const void *element)
{
    double x[2];

    cli_number(c->type, element, x);
    return hypot(x[0], x[1]);
}

/* *by: the distance, negative where there is none. */
static bool elements_equal(const struct comparing *c, const void *a, const void *b,
                           double *by)
{
    const struct diff *d = c->p->d;
    const bool same_bits = zarr_dtype_variable(c->type)
                               ? zarr_dtype_compare(c->type, a, b) == 0
                               : memcmp(a, b, (size_t)c->value_bytes) == 0;

    *by = -1;
    if (same_bits && !d->nan_differs)
        return true;
    if (!c->is_number)
        return same_bits;
    *by = distance(c, a, b);
    if (same_bits)
        return !isnan(*by);
    if (*by == 0 && !d->tolerant) /* NaN of two kinds are equal, zeros of two signs not */
        return isnan(magnitude(c, a));
    if (!d->tolerant)
        return false;
    return *by == 0 || (isfinite(*by) && *by <= d->atol + d->rtol * magnitude(c, b));
}

/* value: which of the element's. */
static void count_value(struct comparing *c, const uint64_t *inside, uint64_t value,
                        const char *a, const char *b)
{
    struct diff_elements *e = &c->p->elements;
    const struct cli_field *f = &c->p->field[0];
    uint64_t at[ZARR_MAX_RANK];
    double by;

    if (elements_equal(c, a, b, &by))
        return;
    for (int32_t d = 0; d < c->boxes.ndim; d++)
        at[d] = c->origin[d] + inside[d];
    for (int32_t d = f->ndim - 1; d >= 0; d--) {
        at[c->boxes.ndim + d] = value % f->shape[d];
        value /= f->shape[d];
    }
    cli_diff_element(c->p, at, a, b);
    if (by > e->largest) {
        e->largest = by;
        memcpy(e->largest_at, at, (size_t)c->p->ndim * sizeof *at);
    }
}

static void compare_items(struct comparing *c)
{
    uint64_t at[ZARR_MAX_RANK];
    const struct cli_boxes *b = &c->boxes;
    const char *x = c->data[0], *y = c->data[1];

    memcpy(at, b->start, sizeof at);
    for (uint64_t i = 0; i < b->n_items; i++) {
        for (uint64_t v = 0; v < c->n_values; v++) {
            count_value(c, at, v, x, y);
            x += c->value_bytes;
            y += c->value_bytes;
        }
        for (int32_t d = b->ndim - 1; d >= 0; d--) {
            if (++at[d] < b->start[d] + b->count[d])
                break;
            at[d] = b->start[d];
        }
    }
}

static zarr_status read_box(struct comparing *c, int side, zarr_error *err)
{
    zarr_io_options opts = c->p->field[side].options;
    zarr_selection *selection = NULL;
    int64_t shape[ZARR_MAX_RANK];
    zarr_tensor tensor;
    zarr_status st = cli_boxes_select(&c->boxes, c->outer[side], &selection, err);

    cli_boxes_tensor(&c->boxes, c->data[side], c->boxes.n_items * c->item_bytes, shape,
                     &tensor);
    cli_field_tensor(&c->p->field[side], shape, &tensor);
    if (!st)
        st = cli_heap(c->p->d->cli, c->type, &c->heap[side], err);
    opts.heap = c->heap[side];
    if (!st)
        st = cli_read(side ? c->p->b : c->p->a, selection, &tensor, &opts, err);
    zarr_selection_free(selection);
    return st;
}

static int compare_box(struct comparing *c)
{
    struct diff *d = c->p->d;
    const uint64_t bytes = c->boxes.n_items * c->item_bytes;
    zarr_error err = {0};

    for (int side = 0; side < 2; side++) {
        const zarr_status st = read_box(c, side, &err);

        if (st)
            return cli_fail(d->cli, st, &err, "cannot read %s",
                            side ? c->p->shown_b : c->p->shown_a);
    }
    if (d->nan_differs || zarr_dtype_variable(c->type) ||
        memcmp(c->data[0], c->data[1], (size_t)bytes) != 0)
        compare_items(c);
    c->p->elements.n_compared += c->boxes.n_items * c->n_values;
    d->done_bytes += bytes;
    cli_progress_update(&d->progress, d->done_bytes, 0);
    return d->cli->out_failed ? CLI_IO : CLI_OK;
}

/* Boxes of two regions; the limit is in elements. */
static int compare_boxes(struct comparing *c)
{
    int rc = CLI_OK;

    while (!rc && !c->enough && cli_boxes_next(&c->boxes)) {
        rc = compare_box(c);
        c->enough = c->p->d->cli->quiet && !c->p->d->cli->json &&
                    c->p->elements.n_different; /* nobody asks how many */
    }
    return rc;
}

static void comparing_room(struct comparing *c, uint64_t items)
{
    c->data[0] = cli_alloc((size_t)(items * c->item_bytes));
    c->data[1] = cli_alloc((size_t)(items * c->item_bytes));
}

/* The part of a chunk that is in the array; it becomes the outer selections. */
static int compare_chunk(struct comparing *c, const uint64_t *chunk)
{
    const zarr_array *sides[2] = {c->p->a, c->p->b};
    const uint64_t *shape = zarr_array_shape(sides[0]);
    const int32_t ndim = zarr_array_ndim(sides[0]);
    zarr_selection *boxes[2] = {NULL, NULL};
    uint64_t count[ZARR_MAX_RANK];
    zarr_error err = {0};
    zarr_status st = zarr_array_chunk_extent(sides[0], chunk, c->origin, count, &err);
    int rc = CLI_OK;

    for (int32_t d = 0; d < ndim && !st; d++)
        if (count[d] > shape[d] - c->origin[d])
            count[d] = shape[d] - c->origin[d];
    for (int side = 0; side < 2 && !st; side++) {
        st = zarr_selection_box(&boxes[side], ndim, shape, c->origin, count, &err);
        c->outer[side] = boxes[side];
    }
    if (st) {
        rc = cli_fail(c->p->d->cli, st, &err, "cannot read %s", c->p->shown_a);
    } else {
        cli_boxes_init(&c->boxes, ndim, count, NULL, c->most, false);
        rc = compare_boxes(c);
    }
    zarr_selection_free(boxes[0]);
    zarr_selection_free(boxes[1]);
    return rc;
}

/* What neither has stored is equal: it counts as compared. */
static int compare_stored(struct comparing *c, const struct cli_chunks *chunks)
{
    const int32_t ndim = zarr_array_ndim(c->p->a);
    const uint64_t all = cli_product(ndim, zarr_array_shape(c->p->a));
    struct diff *d = c->p->d;
    uint64_t largest[ZARR_MAX_RANK], items, begun = d->done_bytes;
    int rc = CLI_OK;

    zarr_array_chunk_largest(c->p->a, largest);
    items = cli_product(ndim, largest);
    comparing_room(c, items < c->most ? items : c->most);
    for (size_t i = 0; i < chunks->n && !rc && !c->enough; i++)
        rc = compare_chunk(c, chunks->at + i * (size_t)ndim);
    if (!rc && !c->enough) {
        c->p->elements.n_compared = cli_mul(all, c->n_values);
        d->done_bytes = begun + cli_mul(all, c->item_bytes);
        cli_progress_update(&d->progress, d->done_bytes, 0);
    }
    return rc;
}

static int compare_all(struct comparing *c)
{
    const zarr_selection *sa = c->outer[0];
    const int32_t ndim = zarr_selection_ndim(sa);
    const bool whole = ndim == zarr_array_ndim(c->p->a);

    cli_boxes_init(&c->boxes, ndim, zarr_selection_shape(sa),
                   whole ? zarr_array_write_shape(c->p->a) : NULL, c->most, !whole);
    comparing_room(c, cli_boxes_max_items(&c->boxes));
    return compare_boxes(c);
}

int cli_diff_elements(struct diff_pair *p, const zarr_selection *sa,
                      const zarr_selection *sb)
{
    struct comparing c = {.p = p, .outer = {sa, sb}};
    struct cli_chunks chunks;
    int rc;

    c.type = p->field[0].type;
    c.value_bytes = zarr_dtype_item_bytes(c.type);
    c.n_values = p->field[0].n_values;
    c.item_bytes = c.n_values * c.value_bytes;
    p->ndim = zarr_selection_ndim(sa) + p->field[0].ndim;
    c.is_number = cli_is_number(c.type);
    c.most = cli_buffer_bytes(p->d->cli) / 2 / c.item_bytes;
    if (c.most > (64u << 20) / c.item_bytes)
        c.most = (64u << 20) / c.item_bytes;
    if (c.most == 0)
        c.most = 1;
    if (cli_diff_stored(p, &chunks)) {
        rc = compare_stored(&c, &chunks);
        cli_chunks_free(&chunks);
    } else {
        rc = compare_all(&c);
    }
    for (int side = 0; side < 2; side++) {
        zarr_heap_free(c.heap[side]);
        free(c.data[side]);
    }
    return rc;
}
