/*
 * check/diff_elements.c - compares the elements of two arrays, box by box in bounded
 * memory. Equal boxes cost one memcmp; only in other boxes are elements compared one by
 * one. Without a tolerance, elements are equal if their bits are equal or both are NaN.
 * With a tolerance, they are equal if |a - b| <= atol + rtol * |b|, as in NumPy's
 * isclose. Integers are subtracted exactly.
 * Thread class: plain functions.
 */
#include "check/check.h"
#include <zarrc/vlen.h>

#include <math.h>
#include <string.h>

struct comparing {
    struct zr_diff_pair *p;
    struct zr_box_walk boxes;
    /* where the outer selections begin in the indexes that are reported */
    uint64_t origin[ZARR_MAX_RANK];
    const zarr_selection *outer[2];
    const zarr_dtype *type;           /* data type of one value */
    uint64_t value_bytes, item_bytes; /* item_bytes: n_values values */
    uint64_t most;                    /* largest number of elements in a box */
    bool is_number;
    uint8_t *data[2];
    zarr_heap *heap[2]; /* for elements of variable length, else NULL */
};

/* ---- one value -------------------------------------------------------------------- */

static int64_t load_signed(const void *element, uint64_t bytes)
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

/* Loads the real and the imaginary part. */
static void load_number(const struct comparing *c, const void *element, double out[2])
{
    out[1] = 0;
    (void)zarr_dtype_number(c->type, element, out);
}

/* Returns |a - b|: NaN if exactly one is NaN, 0 if both are (unless their other parts
 * differ). */
static double distance(const struct comparing *c, const void *a, const void *b)
{
    double x[2], y[2];
    bool nx, ny;

    if (zarr_dtype_kind(c->type) == ZARR_KIND_INT) {
        const int64_t p = load_signed(a, c->value_bytes);
        const int64_t q = load_signed(b, c->value_bytes);

        return (double)(p > q ? (uint64_t)p - (uint64_t)q : (uint64_t)q - (uint64_t)p);
    }
    if (zarr_dtype_kind(c->type) == ZARR_KIND_UINT && c->value_bytes == 8) {
        uint64_t p, q;

        memcpy(&p, a, 8);
        memcpy(&q, b, 8);
        return (double)(p > q ? p - q : q - p);
    }
    load_number(c, a, x);
    load_number(c, b, y);
    nx = isnan(x[0]) || isnan(x[1]);
    ny = isnan(y[0]) || isnan(y[1]);
    if (nx && ny)
        return c->p->d->opts.flags & ZARR_DIFF_NAN_DIFFERS ? (double)NAN : 0;
    if (x[0] == y[0] && x[1] == y[1]) /* infinities are equal, too */
        return 0;
    return hypot(x[0] - y[0], x[1] - y[1]);
}

static double magnitude(const struct comparing *c, const void *element)
{
    double x[2];

    load_number(c, element, x);
    return hypot(x[0], x[1]);
}

/* *by: the distance; negative if there is none. */
static bool values_equal(const struct comparing *c, const void *a, const void *b,
                         double *by)
{
    const zarr_diff_options *o = &c->p->d->opts;
    const bool tolerant = (o->flags & ZARR_DIFF_TOLERANT) != 0;
    const bool same_bits = zarr_dtype_variable(c->type)
                               ? zarr_dtype_compare(c->type, a, b) == 0
                               : memcmp(a, b, (size_t)c->value_bytes) == 0;

    *by = -1;
    if (same_bits && !(o->flags & ZARR_DIFF_NAN_DIFFERS))
        return true;
    if (!c->is_number)
        return same_bits;
    *by = distance(c, a, b);
    if (same_bits)
        return !isnan(*by);
    if (*by == 0 && !tolerant) /* NaNs of different bits are equal, +0 and -0 are not */
        return isnan(magnitude(c, a));
    if (!tolerant)
        return false;
    return *by == 0 || (isfinite(*by) && *by <= o->atol + o->rtol * magnitude(c, b));
}

static void tell_value(struct comparing *c, const uint64_t *at, const void *a,
                       const void *b, double by)
{
    struct zr_diff_pair *p = c->p;
    const zarr_difference d = {.struct_size = sizeof d,
                               .what = ZARR_DIFFERENCE_ELEMENT,
                               .path = p->below,
                               .dim = -1,
                               .index = at,
                               .ndim = p->ndim,
                               .dtype = c->type,
                               .element_a = a,
                               .element_b = b,
                               .distance = by};

    if (p->n_told >= p->d->opts.max_elements || !p->d->opts.tell || p->d->stopped)
        return;
    p->n_told++;
    p->d->stopped = p->d->opts.tell(p->d->opts.tell_user, &d) != 0;
}

/* value: number of the value in the element. */
static void compare_value(struct comparing *c, const uint64_t *inside, uint64_t value,
                          const void *a, const void *b)
{
    struct zr_diff_pair *p = c->p;
    const zarr_dtype_field *f = &p->field[0];
    uint64_t at[ZARR_MAX_RANK];
    double by;

    if (values_equal(c, a, b, &by))
        return;
    for (int32_t d = 0; d < c->boxes.ndim; d++)
        at[d] = c->origin[d] + inside[d];
    for (int32_t d = f->ndim - 1; d >= 0; d--) {
        at[c->boxes.ndim + d] = value % f->shape[d];
        value /= f->shape[d];
    }
    if (p->node.n_different++ == 0)
        memcpy(p->first_at, at, (size_t)p->ndim * sizeof *at);
    if (by > p->node.largest) {
        p->node.largest = by;
        memcpy(p->largest_at, at, (size_t)p->ndim * sizeof *at);
    }
    tell_value(c, at, a, b, by);
}

/* ---- boxes ------------------------------------------------------------------------ */

static void compare_items(struct comparing *c)
{
    const struct zr_box_walk *b = &c->boxes;
    const uint8_t *x = c->data[0], *y = c->data[1];
    uint64_t at[ZARR_MAX_RANK];

    memcpy(at, b->start, sizeof at);
    for (uint64_t i = 0; i < b->n_items; i++) {
        for (uint64_t v = 0; v < c->p->n_values; v++) {
            compare_value(c, at, v, x, y);
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

static zarr_status fresh_heap(const struct comparing *c, zarr_heap **heap,
                              zarr_error *err)
{
    if (!zarr_dtype_variable(c->type))
        return ZARR_OK;
    if (!*heap)
        return zarr_heap_create(heap, c->p->d->ctx, 0, err);
    zarr_heap_clear(*heap);
    return ZARR_OK;
}

/* Makes the box a selection of the outer selection's result. */
static zarr_status box_selection(const struct comparing *c, int side,
                                 zarr_selection **out, zarr_error *err)
{
    const struct zr_box_walk *b = &c->boxes;
    zarr_selection *inner = NULL;
    zarr_status st =
        zarr_selection_box(&inner, b->ndim, b->shape, b->start, b->count, err);

    if (st == ZARR_OK && c->outer[side]) {
        st = zarr_selection_compose(out, c->outer[side], inner, err);
        zarr_selection_free(inner);
    } else {
        *out = inner;
    }
    return st;
}

static zarr_status compared_read(struct comparing *c, int side, zarr_error *err)
{
    const struct zr_diff *d = c->p->d;
    const struct zr_waiting waiting = {.cancel = d->opts.cancel};
    const zarr_dtype_field *f = &c->p->field[side];
    zarr_io_options io = ZARR_IO_OPTIONS_INIT;
    zarr_selection *selection = NULL;
    zarr_request *request = NULL;
    int64_t shape[ZARR_MAX_RANK];
    zarr_tensor tensor;
    int32_t ndim = 0;
    zarr_status st = ZARR_OK;

    for (; ndim < c->boxes.ndim; ndim++)
        shape[ndim] = (int64_t)c->boxes.count[ndim];
    for (int32_t i = 0; i < f->ndim; i++)
        shape[ndim++] = (int64_t)f->shape[i];
    zarr_tensor_host(&tensor, c->data[side], c->boxes.n_items * c->item_bytes, ndim,
                     shape);
    ZR_TRY(box_selection(c, side, &selection, err));
    ZR_TRY(fresh_heap(c, &c->heap[side], err));
    io.field = d->opts.field;
    io.heap = c->heap[side];
    ZR_TRY(zarr_array_read_submit(&request, c->p->array[side], selection, &tensor, &io,
                                  err));
    st = zr_request_end(request, &waiting, err);
out:
    zarr_selection_free(selection);
    return st;
}

static zarr_status compare_box(struct comparing *c, zarr_error *err)
{
    struct zr_diff *d = c->p->d;
    const uint64_t bytes = c->boxes.n_items * c->item_bytes;
    zarr_status st = ZARR_OK;

    for (int side = 0; side < 2; side++)
        ZR_TRY(compared_read(c, side, err));
    if (d->opts.flags & ZARR_DIFF_NAN_DIFFERS || zarr_dtype_variable(c->type) ||
        memcmp(c->data[0], c->data[1], (size_t)bytes) != 0)
        compare_items(c);
    c->p->node.n_elements += c->boxes.n_items * c->p->n_values;
    d->done_bytes = zr_add_cap(d->done_bytes, bytes);
    zr_diff_progress(d, zr_str_text(&c->p->path[0]));
out:
    return st;
}

static bool compared_enough(const struct comparing *c)
{
    const struct zr_diff *d = c->p->d;

    return d->stopped || (d->opts.flags & ZARR_DIFF_FIRST && c->p->node.n_different > 0);
}

static zarr_status compare_boxes(struct comparing *c, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    while (st == ZARR_OK && !compared_enough(c) && zr_box_walk_next(&c->boxes))
        st = zr_is_cancelled(c->p->d->opts.cancel)
                 ? zr_fail(err, ZARR_ERR_CANCELLED, "the comparison was cancelled")
                 : compare_box(c, err);
    return st;
}

static zarr_status make_room(struct comparing *c, uint64_t items, zarr_error *err)
{
    uint64_t bytes = 0;
    size_t n = 0;

    if (!zr_mul_u64(items, c->item_bytes, &bytes) || !zr_to_size(bytes, &n))
        return zr_fail_memory(err, UINT64_MAX);
    for (int side = 0; side < 2; side++) {
        c->data[side] = zr_malloc(c->p->d->ctx->alloc, n);
        if (!c->data[side])
            return zr_fail_memory(err, bytes);
    }
    return ZARR_OK;
}

/* ---- all elements, or the stored chunks -------------------------------- */

/* Makes the part of a chunk that is inside the array the outer selection. */
static zarr_status compare_chunk(struct comparing *c, const uint64_t *chunk,
                                 zarr_error *err)
{
    const zarr_array *a = c->p->array[0];
    const uint64_t *shape = zarr_array_shape(a);
    const int32_t ndim = zarr_array_ndim(a);
    zarr_selection *box[2] = {NULL, NULL};
    uint64_t count[ZARR_MAX_RANK];
    zarr_status st = ZARR_OK;

    ZR_TRY(zarr_array_chunk_extent(a, chunk, c->origin, count, err));
    for (int32_t d = 0; d < ndim; d++)
        count[d] = ZR_MIN(count[d], shape[d] - c->origin[d]);
    for (int side = 0; side < 2; side++) {
        ZR_TRY(zarr_selection_box(&box[side], ndim, shape, c->origin, count, err));
        c->outer[side] = box[side];
    }
    zr_box_walk_init(&c->boxes, ndim, count, NULL, c->most);
    ZR_TRY(compare_boxes(c, err));
out:
    zarr_selection_free(box[0]);
    zarr_selection_free(box[1]);
    return st;
}

/* A chunk that neither array has stored is equal; it counts as compared. */
static zarr_status compare_stored(struct comparing *c, const struct zr_coord_set *chunks,
                                  zarr_error *err)
{
    const zarr_array *a = c->p->array[0];
    const size_t ndim = (size_t)zarr_array_ndim(a);
    const uint64_t all = zr_product_cap(zarr_array_shape(a), ndim);
    struct zr_diff *d = c->p->d;
    const uint64_t before = d->done_bytes;
    uint64_t largest[ZARR_MAX_RANK];
    zarr_status st = ZARR_OK;

    zarr_array_chunk_largest(a, largest);
    ZR_TRY(make_room(c, ZR_MIN(zr_product_cap(largest, ndim), c->most), err));
    for (size_t i = 0; i < chunks->n && !compared_enough(c); i++)
        ZR_TRY(compare_chunk(c, zr_coord_set_item(chunks, i), err));
    if (compared_enough(c))
        goto out;
    c->p->node.n_elements = zr_mul_cap(all, c->p->n_values);
    d->done_bytes = zr_add_cap(before, zr_mul_cap(all, c->item_bytes));
    zr_diff_progress(d, zr_str_text(&c->p->path[0]));
out:
    return st;
}

static zarr_status compare_all(struct comparing *c, zarr_error *err)
{
    const zarr_array *a = c->p->array[0];
    const zarr_selection *s = c->p->selection[0];
    const int32_t ndim = s ? zarr_selection_ndim(s) : zarr_array_ndim(a);
    const bool aligned = ndim == zarr_array_ndim(a);
    zarr_status st = ZARR_OK;

    c->outer[0] = s;
    c->outer[1] = c->p->selection[1];
    zr_box_walk_init(&c->boxes, ndim, s ? zarr_selection_shape(s) : zarr_array_shape(a),
                     aligned ? zarr_array_write_shape(a) : NULL, c->most);
    ZR_TRY(make_room(c, zr_box_walk_max_items(&c->boxes), err));
    ZR_TRY(compare_boxes(c, err));
out:
    return st;
}

static void comparing_init(struct comparing *c)
{
    static const uint8_t zero[16];
    const struct zr_diff *d = c->p->d;
    double number[2];
    uint64_t bytes = d->opts.buffer_bytes;

    c->type = c->p->field[0].dtype;
    c->value_bytes = zarr_dtype_item_bytes(c->type);
    c->item_bytes = ZR_MAX(zr_mul_cap(c->p->n_values, c->value_bytes), 1);
    c->is_number =
        c->value_bytes <= sizeof zero && zarr_dtype_number(c->type, zero, number) > 0;
    if (bytes == 0)
        bytes = d->ctx->budget.total / 2;
    bytes = ZR_MIN(bytes / 2, (uint64_t)64 << 20);
    c->most = ZR_MAX(bytes / c->item_bytes, 1);
}

zarr_status zr_diff_elements(struct zr_diff_pair *p, zarr_error *err)
{
    struct comparing c = {.p = p};
    struct zr_coord_set chunks = {0};
    bool few = false;
    zarr_status st = ZARR_OK;

    comparing_init(&c);
    ZR_TRY(zr_diff_stored(p, &chunks, &few, err));
    st = few ? compare_stored(&c, &chunks, err) : compare_all(&c, err);
out:
    for (int side = 0; side < 2; side++) {
        zarr_heap_free(c.heap[side]);
        zr_free(p->d->ctx->alloc, c.data[side]);
    }
    zr_coord_set_deinit(&chunks);
    return st;
}
