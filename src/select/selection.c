/*
 * select/selection.c - selections with independent dimensions (basic, orthogonal, boxes
 * and blocks), and the queries that every selection answers. A dimension is start, step
 * and count, or a list of indexes. Lists and masks with a constant step become
 * arithmetic. Then everything later is cheaper, and a mask of ones is as good as a slice.
 * Selections are made without a context, so their memory comes from malloc. Thread class:
 * solo while made, then frozen.
 */
#include "select/select_int.h"

zarr_status zr_selection_new(zarr_selection **out, int32_t ndim, const uint64_t *shape,
                             zarr_error *err)
{
    zarr_selection *s = NULL;
    zarr_status st = zr_check_shape(ndim, shape, err);

    *out = NULL;
    if (st != ZARR_OK)
        return st;
    s = zr_malloc(NULL, sizeof *s);
    if (!s)
        return zr_fail_memory(err, sizeof *s);
    s->ndim = ndim; /* members of further dimensions are large, and are never read */
    s->result_ndim = 0;
    s->points = false;
    s->n_items = s->n_points = 0;
    s->coords = NULL;
    for (int32_t d = 0; d < ndim; d++) {
        s->shape[d] = shape[d];
        s->result_shape[d] = 0;
        s->dim[d] = (struct zr_dim_sel){0};
    }
    *out = s;
    return ZARR_OK;
}

void zarr_selection_free(zarr_selection *s)
{
    if (!s)
        return;
    for (int32_t d = 0; d < s->ndim; d++)
        zr_free(NULL, s->dim[d].list);
    zr_free(NULL, s->coords);
    zr_free(NULL, s);
}

void zr_selection_finish(zarr_selection *s)
{
    s->n_items = 1;
    s->result_ndim = 0;
    for (int32_t d = 0; d < s->ndim; d++) {
        struct zr_dim_sel *sel = &s->dim[d];
        if (sel->result_dim < 0)
            continue;
        sel->result_dim = s->result_ndim;
        s->result_shape[s->result_ndim++] = sel->n;
    }
    if (!zr_product_u64(s->result_shape, (size_t)s->result_ndim, &s->n_items))
        s->n_items = UINT64_MAX;
}

/* ---- one dimension -------------------------------------------------------- */

void zr_dim_sel_arith(struct zr_dim_sel *d, uint64_t n, uint64_t start, int64_t step)
{
    d->n = n;
    d->start = n > 0 ? start : 0;
    d->step = n > 1 ? step : 1;
    d->list = NULL;
}

zarr_status zr_dim_sel_alloc_list(uint64_t **list, uint64_t n, zarr_error *err)
{
    size_t items = 0;

    if (!zr_fits(n, &items) || items > SIZE_MAX / sizeof **list)
        return zr_fail_memory(err, UINT64_MAX);
    *list = zr_malloc(NULL, items * sizeof **list);
    return *list ? ZARR_OK : zr_fail_memory(err, items * sizeof **list);
}

void zr_dim_sel_list(struct zr_dim_sel *d, uint64_t n, uint64_t *list)
{
    uint64_t start = n > 0 ? list[0] : 0;
    uint64_t step = n > 1 ? list[1] - start : 1; /* modulo 2^64: two's complement */

    for (uint64_t i = 2; step != 0 && i < n; i++)
        if (list[i] - list[i - 1] != step)
            step = 0;
    if (step != 0) {
        zr_free(NULL, list);
        zr_dim_sel_arith(d, n, start, (int64_t)step);
        return;
    }
    d->n = n;
    d->start = 0;
    d->step = 1;
    d->list = list;
}

/* One end of a slice: a negative one counts from the end; then it is clipped to
 * lo..hi. */
static int64_t slice_end(int64_t v, int64_t len, int64_t lo, int64_t hi)
{
    if (v < 0)
        v += len;
    return v < lo ? lo : v > hi ? hi : v;
}

/* Clips start:stop:step to len items, as Python's slice.indices() does. */
static void set_slice(struct zr_dim_sel *d, uint64_t len, int64_t start, int64_t stop,
                      int64_t step)
{
    int64_t n_all = (int64_t)len, lo, hi;
    uint64_t span = 0, stride;

    if (step == 0 || step == ZARR_SLICE_DEFAULT)
        step = 1;
    lo = step > 0 ? 0 : -1;
    hi = step > 0 ? n_all : n_all - 1;
    if (start == ZARR_SLICE_DEFAULT)
        start = step > 0 ? lo : hi;
    else
        start = slice_end(start, n_all, lo, hi);
    if (stop == ZARR_SLICE_DEFAULT)
        stop = step > 0 ? hi : lo;
    else
        stop = slice_end(stop, n_all, lo, hi);
    if (step > 0 && stop > start)
        span = (uint64_t)(stop - start);
    else if (step < 0 && start > stop)
        span = (uint64_t)(start - stop);
    stride = step > 0 ? (uint64_t)step : (uint64_t)-step;
    zr_dim_sel_arith(d, zr_ceil_div_u64(span, stride), (uint64_t)start, step);
}

bool zr_fix_index(int64_t index, uint64_t len, uint64_t *out)
{
    *out = (uint64_t)index + (index < 0 ? len : 0);
    return *out < len;
}

static zarr_status index_bounds(int32_t dim, int64_t index, uint64_t len, zarr_error *err)
{
    return zr_fail(err, ZARR_ERR_INVALID,
                   "dimension %d: index %" PRId64 " is out of bounds for length %" PRIu64,
                   (int)dim, index, len);
}

static zarr_status select_list(struct zr_dim_sel *d, int32_t dim, uint64_t len,
                               const zarr_dim_selection *in, zarr_error *err)
{
    uint64_t *list = NULL;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_dim_sel_alloc_list(&list, in->n_list, err));
    for (uint64_t i = 0; i < in->n_list; i++) {
        if (!zr_fix_index(in->list[i], len, &list[i])) {
            st = index_bounds(dim, in->list[i], len, err);
            goto out;
        }
    }
    zr_dim_sel_list(d, in->n_list, list); /* moved */
    list = NULL;
out:
    zr_free(NULL, list);
    return st;
}

static zarr_status select_mask(struct zr_dim_sel *d, int32_t dim, uint64_t len,
                               const zarr_dim_selection *in, zarr_error *err)
{
    uint64_t *list = NULL;
    uint64_t n = 0;

    if (in->n_list != len)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "dimension %d: mask has %" PRIu64 " bytes for length %" PRIu64,
                       (int)dim, in->n_list, len);
    for (uint64_t i = 0; i < len; i++)
        n += in->mask[i] != 0;
    ZR_CHECK(zr_dim_sel_alloc_list(&list, n, err));
    n = 0;
    for (uint64_t i = 0; i < len; i++)
        if (in->mask[i])
            list[n++] = i;
    zr_dim_sel_list(d, n, list); /* moved */
    return ZARR_OK;
}

/* Makes the checks that all kinds share. */
static zarr_status check_dim(int32_t dim, const zarr_dim_selection *in, zarr_error *err)
{
    const void *items = in->kind == ZARR_DIM_MASK ? (const void *)in->mask : in->list;
    bool wants_items = in->kind == ZARR_DIM_LIST || in->kind == ZARR_DIM_MASK;

    if (in->kind > ZARR_DIM_MASK || in->reserved != 0)
        return zr_fail(err, ZARR_ERR_INVALID, "dimension %d: no such kind of selection",
                       (int)dim);
    if (wants_items && in->n_list > 0 && !items)
        return zr_fail(err, ZARR_ERR_INVALID, "dimension %d: no indexes were given",
                       (int)dim);
    return ZARR_OK;
}

static zarr_status select_dim(struct zr_dim_sel *d, int32_t dim, uint64_t len,
                              const zarr_dim_selection *in, zarr_error *err)
{
    uint64_t at = 0;
    zarr_status st = check_dim(dim, in, err);

    if (st != ZARR_OK)
        return st;
    switch (in->kind) {
    case ZARR_DIM_SLICE:
        set_slice(d, len, in->start, in->stop, in->step);
        return ZARR_OK;
    case ZARR_DIM_INDEX:
        if (!zr_fix_index(in->start, len, &at))
            return index_bounds(dim, in->start, len, err);
        zr_dim_sel_arith(d, 1, at, 1);
        d->result_dim = -1;
        return ZARR_OK;
    case ZARR_DIM_LIST:
        return select_list(d, dim, len, in, err);
    case ZARR_DIM_MASK:
        return select_mask(d, dim, len, in, err);
    default:
        zr_dim_sel_arith(d, len, 0, 1);
        return ZARR_OK;
    }
}

/* ---- constructors --------------------------------------------------------- */

static zarr_status check_n_dims(int32_t ndim, int32_t n_dims,
                                const zarr_dim_selection *dims, zarr_error *err)
{
    if (n_dims < 0 || n_dims > ndim)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "selection of %d dimensions, the array has %d", (int)n_dims,
                       (int)ndim);
    if (n_dims > 0 && !dims)
        return zr_fail(err, ZARR_ERR_INVALID, "no dimensions were given");
    return ZARR_OK;
}

zarr_status zarr_selection_dims(zarr_selection **out, int32_t ndim, const uint64_t *shape,
                                int32_t n_dims, const zarr_dim_selection *dims,
                                zarr_error *err)
{
    const zarr_dim_selection all = {.kind = ZARR_DIM_ALL};
    zarr_selection *s = NULL;
    zarr_status st = ZARR_OK;

    *out = NULL;
    ZR_TRY(zr_selection_new(&s, ndim, shape, err));
    ZR_TRY(check_n_dims(ndim, n_dims, dims, err));
    for (int32_t d = 0; d < ndim; d++)
        ZR_TRY(select_dim(&s->dim[d], d, shape[d], d < n_dims ? &dims[d] : &all, err));
    zr_selection_finish(s);
    *out = s; /* moved */
    s = NULL;
out:
    zarr_selection_free(s);
    return st;
}

zarr_status zarr_selection_box(zarr_selection **out, int32_t ndim, const uint64_t *shape,
                               const uint64_t *start, const uint64_t *count,
                               zarr_error *err)
{
    zarr_selection *s = NULL;
    zarr_status st = ZARR_OK;

    *out = NULL;
    ZR_TRY(zr_selection_new(&s, ndim, shape, err));
    if (ndim > 0 && (!start || !count))
        ZR_FAIL(err, ZARR_ERR_INVALID, "a box needs start and count");
    for (int32_t d = 0; d < ndim; d++) {
        if (start[d] > shape[d] || count[d] > shape[d] - start[d])
            ZR_FAIL(err, ZARR_ERR_INVALID,
                    "dimension %d: box of %" PRIu64 " from %" PRIu64
                    " is out of bounds for length %" PRIu64,
                    (int)d, count[d], start[d], shape[d]);
        zr_dim_sel_arith(&s->dim[d], count[d], start[d], 1);
    }
    zr_selection_finish(s);
    *out = s; /* moved */
    s = NULL;
out:
    zarr_selection_free(s);
    return st;
}

/* Blocks [first, first + n) of one dimension. */
static zarr_status select_blocks(struct zr_dim_sel *blocks, int32_t dim,
                                 uint64_t n_blocks, const zarr_dim_selection *in,
                                 zarr_error *err)
{
    bool unit = in->step == 0 || in->step == 1 || in->step == ZARR_SLICE_DEFAULT;

    if (in->kind == ZARR_DIM_LIST || in->kind == ZARR_DIM_MASK ||
        (in->kind == ZARR_DIM_SLICE && !unit))
        return zr_fail(err, ZARR_ERR_INVALID,
                       "dimension %d: blocks are selected by index or by slice of step 1",
                       (int)dim);
    return select_dim(blocks, dim, n_blocks, in, err);
}

/* Gives the elements [*start, *start + *n) of blocks. A block begins inside the array;
 * the last one may end beyond it. */
static void block_range(const struct zr_grid *g, int32_t dim,
                        const struct zr_dim_sel *blocks, uint64_t *start, uint64_t *n)
{
    uint64_t last = 0, size = 0;

    *start = *n = 0;
    if (blocks->n == 0)
        return;
    zr_grid_extent(g, dim, blocks->start, start, &size);
    zr_grid_extent(g, dim, blocks->start + blocks->n - 1, &last, &size);
    size = ZR_MIN(size, g->shape[dim] - last);
    *n = last - *start + size;
}

zarr_status zr_select_blocks(zarr_selection **out, const struct zr_grid *g,
                             int32_t n_dims, const zarr_dim_selection *dims,
                             zarr_error *err)
{
    const zarr_dim_selection all = {.kind = ZARR_DIM_ALL};
    zarr_selection *s = NULL;
    zarr_status st = ZARR_OK;

    *out = NULL;
    ZR_TRY(zr_selection_new(&s, g->ndim, g->shape, err));
    ZR_TRY(check_n_dims(g->ndim, n_dims, dims, err));
    for (int32_t d = 0; d < g->ndim; d++) {
        struct zr_dim_sel b = {0};
        uint64_t start = 0, n = 0;

        ZR_TRY(select_blocks(&b, d, zr_grid_n_chunks(g, d), d < n_dims ? &dims[d] : &all,
                             err));
        block_range(g, d, &b, &start, &n);
        zr_dim_sel_arith(&s->dim[d], n, start, 1);
    }
    zr_selection_finish(s);
    *out = s; /* moved */
    s = NULL;
out:
    zarr_selection_free(s);
    return st;
}

/* ---- questions ------------------------------------------------------------ */

int32_t zarr_selection_ndim(const zarr_selection *s)
{
    return s ? s->result_ndim : 0;
}

const uint64_t *zarr_selection_shape(const zarr_selection *s)
{
    return s ? s->result_shape : NULL;
}

uint64_t zarr_selection_n_items(const zarr_selection *s)
{
    return s ? s->n_items : 0;
}

bool zr_selection_fits(const zarr_selection *s, int32_t ndim, const uint64_t *shape)
{
    return s->ndim == ndim && memcmp(s->shape, shape, (size_t)ndim * sizeof *shape) == 0;
}

static bool dim_is_within(const struct zr_dim_sel *d, uint64_t length)
{
    if (d->n == 0)
        return true;
    if (!d->list)
        return zr_dim_sel_at(d, d->step > 0 ? d->n - 1 : 0) < length;
    for (uint64_t i = 0; i < d->n; i++)
        if (d->list[i] >= length)
            return false;
    return true;
}

bool zr_selection_is_within(const zarr_selection *s, const uint64_t *shape)
{
    if (s->n_items == 0)
        return true;
    for (uint64_t i = 0; s->points && i < s->n_points * (uint64_t)s->ndim; i++)
        if (s->coords[i] >= shape[i % (uint64_t)s->ndim])
            return false;
    for (int32_t d = 0; !s->points && d < s->ndim; d++)
        if (!dim_is_within(&s->dim[d], shape[d]))
            return false;
    return true;
}

bool zr_selection_is_box(const zarr_selection *s, uint64_t *start, uint64_t *count)
{
    if (s->points)
        return false;
    for (int32_t d = 0; d < s->ndim; d++) {
        const struct zr_dim_sel *sel = &s->dim[d];
        if (sel->list || sel->step != 1)
            return false;
        start[d] = sel->start;
        count[d] = sel->n;
    }
    return true;
}
