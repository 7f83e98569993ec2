/* unit/select/selection_model.c - see selection_model.h. */
#include "unit/select/selection_model.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAX_POINTS = 60
};

uint64_t product(const uint64_t *v, int32_t n)
{
    uint64_t r = 1;

    for (int32_t i = 0; i < n; i++)
        r *= v[i];
    return r;
}

uint64_t flatten(const uint64_t *at, const uint64_t *shape, int32_t ndim)
{
    uint64_t flat = 0;

    for (int32_t d = 0; d < ndim; d++)
        flat = flat * shape[d] + at[d];
    return flat;
}

/* Next coordinate in C order; false after the last. */
bool turn(uint64_t *at, const uint64_t *shape, int32_t ndim)
{
    for (int32_t d = ndim; d-- > 0;) {
        if (++at[d] < shape[d])
            return true;
        at[d] = 0;
    }
    return false;
}

void *must_alloc(uint64_t n, size_t size)
{
    void *p = calloc(n + 1, size);

    assert_non_null(p);
    return p;
}

void both_free(struct both *b)
{
    zarr_selection_free(b->sel);
    free(b->map);
    *b = (struct both){0};
}

static void assert_same_shape(const struct both *b)
{
    assert_int_equal(zarr_selection_ndim(b->sel), b->ndim);
    for (int32_t d = 0; d < b->ndim; d++)
        assert_int_equal(zarr_selection_shape(b->sel)[d], b->shape[d]);
    assert_int_equal(zarr_selection_n_items(b->sel), b->n);
}

/* ---- random selections by dimension --------------------------------------- */

/* One dimension: the library's description, and the indexes that it means. */
struct dim_case {
    zarr_dim_selection sel;
    int64_t list[MAX_ITEMS + 1];
    uint8_t mask[MAX_ITEMS + 1];
    uint64_t n;
    uint64_t index[MAX_ITEMS + 1];
    bool dropped;
};

static int64_t python_end(int64_t v, int64_t len, int64_t lo, int64_t hi)
{
    if (v < 0)
        v += len;
    return v < lo ? lo : v > hi ? hi : v;
}

/* The indexes range(*slice(start, stop, step).indices(len)), one by one. */
static void python_slice(struct dim_case *c, int64_t len)
{
    int64_t step =
        c->sel.step == ZARR_SLICE_DEFAULT || c->sel.step == 0 ? 1 : c->sel.step;
    int64_t lo = step < 0 ? -1 : 0, hi = step < 0 ? len - 1 : len;
    int64_t start = step < 0 ? hi : lo, stop = step < 0 ? lo : hi;

    if (c->sel.start != ZARR_SLICE_DEFAULT)
        start = python_end(c->sel.start, len, lo, hi);
    if (c->sel.stop != ZARR_SLICE_DEFAULT)
        stop = python_end(c->sel.stop, len, lo, hi);
    c->n = 0;
    for (int64_t i = start; step > 0 ? i < stop : i > stop; i += step)
        c->index[c->n++] = (uint64_t)i;
}

static int64_t random_end(struct rng *r, int64_t len)
{
    if (rng_chance(r, 25))
        return ZARR_SLICE_DEFAULT;
    if (rng_chance(r, 3))
        return rng_chance(r, 50) ? INT64_MAX : INT64_MIN + 1;
    return (int64_t)rng_below(r, (uint64_t)(2 * len + 5)) - len - 2;
}

static void random_slice(struct rng *r, struct dim_case *c, int64_t len)
{
    c->sel.kind = ZARR_DIM_SLICE;
    c->sel.start = random_end(r, len);
    c->sel.stop = random_end(r, len);
    c->sel.step = rng_chance(r, 40) ? 1 : (int64_t)rng_below(r, 9) - 4;
    if (rng_chance(r, 10))
        c->sel.step = ZARR_SLICE_DEFAULT;
    python_slice(c, len);
}

static void random_list(struct rng *r, struct dim_case *c, int64_t len)
{
    bool ordered = rng_chance(r, 30);

    c->sel.kind = ZARR_DIM_LIST;
    c->n = len ? rng_below(r, 20) : 0;
    if (rng_chance(r, 20)) /* a shuffle: whole chunks in another order */
        c->n = (uint64_t)len;
    for (uint64_t i = 0; i < c->n; i++)
        c->list[i] = (int64_t)(c->n == (uint64_t)len ? i : rng_below(r, (uint64_t)len));
    for (uint64_t i = c->n; !ordered && i > 1; i--) {
        uint64_t j = rng_below(r, i);
        int64_t swap = c->list[i - 1];
        c->list[i - 1] = c->list[j];
        c->list[j] = swap;
    }
    for (uint64_t i = 0; i < c->n; i++) {
        c->index[i] = (uint64_t)c->list[i];
        if (rng_chance(r, 30))
            c->list[i] -= len;
    }
    c->sel.list = c->list;
    c->sel.n_list = c->n;
}

static void random_mask(struct rng *r, struct dim_case *c, int64_t len)
{
    unsigned percent = (unsigned)rng_below(r, 3) * 50;

    c->sel.kind = ZARR_DIM_MASK;
    c->sel.mask = c->mask;
    c->sel.n_list = (uint64_t)len;
    for (int64_t i = 0; i < len; i++) {
        c->mask[i] = (uint8_t)(rng_chance(r, percent) ? 1 + rng_below(r, 255) : 0);
        if (c->mask[i])
            c->index[c->n++] = (uint64_t)i;
    }
}

static void random_dim(struct rng *r, struct dim_case *c, uint64_t len)
{
    uint64_t kind = rng_below(r, 6);

    *c = (struct dim_case){0};
    if (kind == 2 && len > 0) {
        c->sel.kind = ZARR_DIM_INDEX;
        c->n = 1;
        c->index[0] = rng_below(r, len);
        c->sel.start = (int64_t)c->index[0] - (rng_chance(r, 30) ? (int64_t)len : 0);
        c->dropped = true;
    } else if (kind == 3) {
        random_list(r, c, (int64_t)len);
    } else if (kind == 4) {
        random_mask(r, c, (int64_t)len);
    } else if (kind == 0) {
        for (; c->n < len; c->n++)
            c->index[c->n] = c->n;
    } else {
        random_slice(r, c, (int64_t)len);
    }
}

/* The map of independent dimensions: all combinations, in C order. */
static void map_dims(struct both *b, int32_t ndim, const uint64_t *shape,
                     const struct dim_case *c)
{
    uint64_t n[ZARR_MAX_RANK], at[ZARR_MAX_RANK] = {0}, from[ZARR_MAX_RANK];

    b->ndim = 0;
    for (int32_t d = 0; d < ndim; d++) {
        n[d] = c[d].n;
        if (!c[d].dropped)
            b->shape[b->ndim++] = c[d].n;
    }
    b->n = product(n, ndim);
    b->map = must_alloc(b->n, sizeof *b->map);
    for (uint64_t i = 0; i < b->n; i++) {
        for (int32_t d = 0; d < ndim; d++)
            from[d] = c[d].index[at[d]];
        b->map[i] = flatten(from, shape, ndim);
        turn(at, n, ndim);
    }
}

/* False if the result would be too large to check in reasonable time. */
static bool random_dims(struct rng *r, struct both *b, int32_t ndim,
                        const uint64_t *shape)
{
    struct dim_case *c = must_alloc((uint64_t)ndim, sizeof *c);
    zarr_dim_selection dims[ZARR_MAX_RANK];
    uint64_t n = 1;
    int32_t given = ndim;

    for (int32_t d = 0; d < ndim; d++) {
        random_dim(r, &c[d], shape[d]);
        dims[d] = c[d].sel;
        n = n * c[d].n;
        if (n > MAX_ITEMS) {
            free(c);
            return false;
        }
    }
    while (given > 0 && dims[given - 1].kind == ZARR_DIM_ALL && rng_chance(r, 50))
        given--;
    assert_int_equal(zarr_selection_dims(&b->sel, ndim, shape, given, dims, NULL),
                     ZARR_OK);
    map_dims(b, ndim, shape, c);
    free(c);
    return true;
}

/* ---- other random selections ---------------------------------------------- */

static void random_points(struct rng *r, struct both *b, int32_t ndim,
                          const uint64_t *shape)
{
    bool any = product(shape, ndim) > 0;
    uint64_t n = any ? rng_below(r, MAX_POINTS) : 0;
    bool all = any && product(shape, ndim) <= 200 && rng_chance(r, 30);
    uint64_t result[2], at[ZARR_MAX_RANK] = {0};
    int32_t result_ndim = 0;
    int64_t *coords;

    if (all)
        n = product(shape, ndim);
    coords = must_alloc(n * (uint64_t)ndim, sizeof *coords);
    b->n = n;
    b->map = must_alloc(n, sizeof *b->map);
    for (uint64_t p = 0; p < n; p++) {
        for (int32_t d = 0; d < ndim && !all; d++)
            at[d] = rng_below(r, shape[d]);
        b->map[p] = flatten(at, shape, ndim);
        for (int32_t d = 0; d < ndim; d++)
            coords[p * (uint64_t)ndim + (uint64_t)d] =
                (int64_t)at[d] - (rng_chance(r, 20) ? (int64_t)shape[d] : 0);
        if (all)
            turn(at, shape, ndim);
    }
    b->ndim = 1;
    b->shape[0] = n;
    if (rng_chance(r, 30) && n % 2 == 0) {
        b->ndim = result_ndim = 2;
        b->shape[0] = result[0] = 2;
        b->shape[1] = result[1] = n / 2;
    }
    assert_int_equal(
        zarr_selection_points(&b->sel, ndim, shape, n, coords, result_ndim, result, NULL),
        ZARR_OK);
    free(coords);
}

static void random_full_mask(struct rng *r, struct both *b, int32_t ndim,
                             const uint64_t *shape)
{
    uint64_t n = product(shape, ndim);
    unsigned percent = (unsigned)rng_below(r, 5) * 25;
    uint8_t *mask = must_alloc(n, 1);

    b->map = must_alloc(n, sizeof *b->map);
    for (uint64_t i = 0; i < n; i++) {
        mask[i] = rng_chance(r, percent);
        if (mask[i])
            b->map[b->n++] = i;
    }
    b->ndim = 1;
    b->shape[0] = b->n;
    assert_int_equal(zarr_selection_mask(&b->sel, ndim, shape, mask, NULL), ZARR_OK);
    free(mask);
}

static void random_box(struct rng *r, struct both *b, int32_t ndim, const uint64_t *shape)
{
    struct dim_case *c = must_alloc((uint64_t)ndim, sizeof *c);
    uint64_t start[ZARR_MAX_RANK], count[ZARR_MAX_RANK];

    for (int32_t d = 0; d < ndim; d++) {
        start[d] = rng_below(r, shape[d] + 1);
        c[d].n = count[d] = rng_below(r, shape[d] - start[d] + 1);
        for (uint64_t i = 0; i < count[d]; i++)
            c[d].index[i] = start[d] + i;
    }
    assert_int_equal(zarr_selection_box(&b->sel, ndim, shape, start, count, NULL),
                     ZARR_OK);
    map_dims(b, ndim, shape, c);
    free(c);
}

static void random_blocks(struct rng *r, struct both *b, int32_t ndim,
                          const uint64_t *shape)
{
    struct dim_case *c = must_alloc((uint64_t)ndim, sizeof *c);
    zarr_dim_selection dims[ZARR_MAX_RANK];
    uint64_t edge[ZARR_MAX_RANK];

    for (int32_t d = 0; d < ndim; d++) {
        struct dim_case blocks = {0};
        edge[d] = 1 + rng_below(r, 5);
        do {
            random_dim(r, &blocks, (shape[d] + edge[d] - 1) / edge[d]);
        } while (blocks.sel.kind == ZARR_DIM_LIST || blocks.sel.kind == ZARR_DIM_MASK ||
                 (blocks.sel.kind == ZARR_DIM_SLICE && blocks.sel.step != 1));
        dims[d] = blocks.sel;
        for (uint64_t i = 0; i < blocks.n; i++)
            for (uint64_t e = blocks.index[i] * edge[d];
                 e < (blocks.index[i] + 1) * edge[d] && e < shape[d]; e++)
                c[d].index[c[d].n++] = e;
    }
    assert_int_equal(grid_blocks(&b->sel, ndim, shape, edge, ndim, dims, NULL), ZARR_OK);
    map_dims(b, ndim, shape, c);
    free(c);
}

static void random_simple(struct rng *r, struct both *b, int32_t ndim,
                          const uint64_t *shape)
{
    uint64_t kind = rng_below(r, 20);

    *b = (struct both){0};
    if (kind < 4)
        random_points(r, b, ndim, shape);
    else if (kind < 6)
        random_full_mask(r, b, ndim, shape);
    else if (kind < 7)
        random_box(r, b, ndim, shape);
    else if (kind < 9)
        random_blocks(r, b, ndim, shape);
    else if (!random_dims(r, b, ndim, shape))
        random_points(r, b, ndim, shape);
    assert_same_shape(b);
}

void random_selection(struct rng *r, struct both *b, int32_t ndim, const uint64_t *shape)
{
    random_simple(r, b, ndim, shape);
    for (int depth = 0; depth < 2 && rng_chance(r, 25); depth++) {
        struct both inner, outer = *b;
        random_simple(r, &inner, outer.ndim, outer.shape);
        *b = inner;
        assert_int_equal(zarr_selection_compose(&b->sel, outer.sel, inner.sel, NULL),
                         ZARR_OK);
        for (uint64_t i = 0; i < b->n; i++)
            b->map[i] = outer.map[inner.map[i]];
        zarr_selection_free(inner.sel);
        both_free(&outer);
        assert_same_shape(b);
    }
}
