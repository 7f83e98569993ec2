/*
 * check/diff_elements.c - compares the elements of two boxes in memory. Equal boxes cost
 * one memcmp; only in other boxes are elements compared one by one. Without a tolerance,
 * elements are equal if their bits are equal or both are NaN. With a tolerance, they are
 * equal if |a - b| <= atol + rtol * |b|, as in NumPy's isclose. Integers are subtracted
 * exactly. Thread class: plain functions.
 */
#include "check/diff_int.h"

#include <math.h>
#include <string.h>

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

/* The length of the vector x; NaN if one of its numbers is NaN. hypot() has a new version
 * since glibc 2.35, hypotl() has not: wheels run on older systems. */
static double length(const double *x, uint32_t n)
{
    double sum = fabs(x[0]);

    for (uint32_t i = 0; i < n; i++)
        if (isnan(x[i]))
            return x[i];
    for (uint32_t i = 1; i < n; i++)
        sum = (double)hypotl(sum, x[i]);
    return sum;
}

/* Returns |a - b|: NaN if exactly one has a NaN, 0 if both have. */
static double distance_of_numbers(const struct zr_comparing *c, const void *a,
                                  const void *b)
{
    double x[ZARR_COMPONENTS_MAX], y[ZARR_COMPONENTS_MAX];
    const uint32_t n = zarr_dtype_number(c->type, a, x, ZARR_COMPONENTS_MAX);
    bool nx = false, ny = false, same = true;

    (void)zarr_dtype_number(c->type, b, y, ZARR_COMPONENTS_MAX);
    for (uint32_t i = 0; i < n; i++) {
        nx |= isnan(x[i]);
        ny |= isnan(y[i]);
        same &= x[i] == y[i];
    }
    if (nx && ny)
        return c->p->d->opts.flags & ZARR_DIFF_NAN_DIFFERS ? (double)NAN : 0;
    if (same) /* infinities are equal, too */
        return 0;
    for (uint32_t i = 0; i < n; i++)
        x[i] -= y[i];
    return length(x, n);
}

/* Integers of up to 64 bits are subtracted exactly. */
static double distance(const struct zr_comparing *c, const void *a, const void *b)
{
    const bool one = zarr_dtype_components(c->type) == 1 && c->value_bytes <= 8;

    if (zarr_dtype_kind(c->type) == ZARR_KIND_INT && one) {
        const int64_t p = load_signed(a, c->value_bytes);
        const int64_t q = load_signed(b, c->value_bytes);

        return (double)(p > q ? (uint64_t)p - (uint64_t)q : (uint64_t)q - (uint64_t)p);
    }
    if (zarr_dtype_kind(c->type) == ZARR_KIND_UINT && one && c->value_bytes == 8) {
        uint64_t p, q;

        memcpy(&p, a, 8);
        memcpy(&q, b, 8);
        return (double)(p > q ? p - q : q - p);
    }
    return distance_of_numbers(c, a, b);
}

static double magnitude(const struct zr_comparing *c, const void *element)
{
    double x[ZARR_COMPONENTS_MAX];

    return length(x, zarr_dtype_number(c->type, element, x, ZARR_COMPONENTS_MAX));
}

/* *by: the distance; negative if there is none. */
static bool values_equal(const struct zr_comparing *c, const void *a, const void *b,
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

static void tell_value(struct zr_comparing *c, const uint64_t *at, const void *a,
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
static void compare_value(struct zr_comparing *c, const uint64_t *inside, uint64_t value,
                          const void *a, const void *b)
{
    struct zr_diff_pair *p = c->p;
    const zarr_dtype_field *f = &p->field[0];
    uint64_t at[ZARR_MAX_RANK];
    double by;

    if (values_equal(c, a, b, &by) || (c->done && zr_diff_covers(c->done, inside, NULL)))
        return;
    memcpy(at, inside, (size_t)c->ndim * sizeof *at);
    for (int32_t d = f->ndim - 1; d >= 0; d--) {
        at[c->ndim + d] = value % f->shape[d];
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

/* ---- one box ---------------------------------------------------------------------- */

static void compare_items(struct zr_comparing *c, const struct zr_diff_box *b)
{
    const uint8_t *x = c->data[0], *y = c->data[1];
    uint64_t at[ZARR_MAX_RANK];

    memcpy(at, b->start, sizeof at);
    for (uint64_t i = 0; i < b->n_items; i++) {
        for (uint64_t v = 0; v < c->p->n_values; v++) {
            compare_value(c, at, v, x, y);
            x += c->value_bytes;
            y += c->value_bytes;
        }
        for (int32_t d = c->ndim - 1; d >= 0; d--) {
            if (++at[d] < b->start[d] + b->count[d])
                break;
            at[d] = b->start[d];
        }
    }
}

void zr_diff_compare(struct zr_comparing *c, const struct zr_diff_box *b)
{
    const uint64_t bytes = b->n_items * c->item_bytes;

    if (c->p->d->opts.flags & ZARR_DIFF_NAN_DIFFERS || zarr_dtype_variable(c->type) ||
        memcmp(c->data[0], c->data[1], (size_t)bytes) != 0)
        compare_items(c, b);
}
