/*
 * check/summary.c - zarr_array_summary(): reads a region box by box, and adds the
 * elements of each box to cells. Boxes are whole chunks. Each place of the dimensions
 * that are kept has a cell; so has each index of the dimension with weights, which is
 * folded at the end.
 *
 * The elements of a box are divided along its longest axis into units, which do not
 * depend on the number of threads. If units share cells, each has slots of its own, which
 * are joined in order. Thread class: plain functions.
 */
#include "array/array.h"
#include "check/summary_int.h"

#include <string.h>

enum {
    BOX_BYTES = 32 << 20,
    UNIT_ITEMS = 1 << 16, /* elements of a unit at least, if there are as many */
    MOST_UNITS = 64,
    MOST_SLOTS = 512, /* of a unit */
    PLACE_BYTES = 80, /* of the result */
    BIN_BYTES = 24
};

/* ---- what is asked for -------------------------------------------------------- */

static zarr_status check_dims(const struct zr_summary_job *j, zarr_error *err)
{
    const zarr_summary_options *o = &j->opts;

    for (uint32_t i = 0; o->over && i < o->n_over; i++) {
        if (o->over[i] < 0 || o->over[i] >= j->ndim)
            return zr_fail(err, ZARR_ERR_INVALID,
                           "over[%" PRIu32 "] is %" PRId32 ", but the region has %" PRId32
                           " dimensions",
                           i, o->over[i], j->ndim);
        for (uint32_t k = 0; k < i; k++)
            if (o->over[k] == o->over[i])
                return zr_fail(err, ZARR_ERR_INVALID,
                               "over has dimension %" PRId32 " twice", o->over[i]);
    }
    return ZARR_OK;
}

static zarr_status check_weights(const struct zr_summary_job *j, zarr_error *err)
{
    const zarr_summary_options *o = &j->opts;
    const int32_t d = o->weights_dim;

    if (!o->weights)
        return ZARR_OK;
    if (d < 0 || d >= j->ndim || !zr_summary_is_over(j, d))
        return zr_fail(err, ZARR_ERR_INVALID,
                       "the dimension of the weights is %" PRId32
                       ", which is not one that the statistics go over",
                       d);
    if (o->n_weights != j->shape[d])
        return zr_fail(err, ZARR_ERR_INVALID,
                       "there are %" PRIu64 " weights for dimension %" PRId32
                       ", whose length is %" PRIu64,
                       o->n_weights, d, j->shape[d]);
    for (uint64_t i = 0; i < o->n_weights; i++)
        if (!(o->weights[i] >= 0 && isfinite(o->weights[i])))
            return zr_fail(err, ZARR_ERR_INVALID,
                           "weight %" PRIu64 " is %g, expected a number of at least 0", i,
                           o->weights[i]);
    return ZARR_OK;
}

static zarr_status check_spread(const struct zr_summary_job *j, zarr_error *err)
{
    const zarr_summary_options *o = &j->opts;

    if (!j->has_all && (o->n_bins > 0 || o->n_quantiles > 0))
        return zr_fail(err, ZARR_ERR_INVALID,
                       "a histogram and quantiles need statistics over all dimensions");
    if (j->type.is_time && (o->n_bins > 0 || o->n_quantiles > 0 || o->weights))
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "times have no histogram, quantiles or weights");
    if (o->n_quantiles > 0 && !o->quantiles)
        return zr_fail(err, ZARR_ERR_INVALID, "quantiles is NULL");
    for (uint32_t i = 0; i < o->n_quantiles; i++)
        if (!(o->quantiles[i] >= 0 && o->quantiles[i] <= 1))
            return zr_fail(err, ZARR_ERR_INVALID, "quantile %g is not between 0 and 1",
                           o->quantiles[i]);
    for (uint32_t i = 0; o->edges && i < o->n_bins; i++)
        if (!(o->edges[i] < o->edges[i + 1]))
            return zr_fail(err, ZARR_ERR_INVALID,
                           "edges of the histogram must rise: %g is followed by %g",
                           o->edges[i], o->edges[i + 1]);
    return ZARR_OK;
}

/* Gives each kept place a cell, and each index of the dimension with weights. */
static zarr_status make_cells(struct zr_summary_job *j, zarr_error *err)
{
    const uint64_t total = j->ctx->budget.total;
    uint64_t bytes = 0;
    size_t n = 0;

    j->n_cells = 1;
    j->n_items = zr_product_cap(j->shape, (size_t)j->ndim);
    j->has_all = true;
    for (int32_t d = j->ndim - 1; d >= 0; d--) {
        j->has_all = j->has_all && zr_summary_is_over(j, d);
        if (zr_summary_is_over(j, d) && !(j->opts.weights && j->opts.weights_dim == d))
            continue;
        j->cell_stride[d] = j->n_cells;
        j->n_cells = zr_mul_cap(j->n_cells, j->shape[d]);
    }
    bytes = zr_add_cap(zr_mul_cap(j->n_cells, sizeof *j->cells + PLACE_BYTES),
                       (uint64_t)j->opts.n_bins * BIN_BYTES);
    if (bytes > total)
        return zr_fail_limit(err, "memory_bytes", total,
                             "%" PRIu64 " places and %" PRIu32
                             " bins of the result need %" PRIu64 " bytes",
                             j->n_cells, j->opts.n_bins, bytes);
    if (!zr_fits(j->n_cells, &n))
        return zr_fail_memory(err, bytes);
    j->cells = zr_calloc(j->ctx->alloc, ZR_MAX(n, 1), sizeof *j->cells);
    return j->cells ? ZARR_OK : zr_fail_memory(err, bytes);
}

static zarr_status find_type(struct zr_summary_job *j, zarr_error *err)
{
    const zarr_dtype *dtype = zarr_array_dtype(j->array);
    zarr_dtype_field field = ZARR_DTYPE_FIELD_INIT;

    if (j->io.field) {
        ZR_CHECK(zarr_dtype_field_find(dtype, j->io.field, &field, err));
        if (field.ndim > 0)
            return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                           "the field %s is a subarray, which has no summary",
                           j->io.field);
        dtype = field.dtype;
    }
    ZR_CHECK(zr_summary_type_init(&j->type, dtype, &j->opts, err));
    if (j->opts.convert)
        ZR_CHECK(zarr_dtype_find(&j->type.dtype, j->ctx, "float64", err));
    return ZARR_OK;
}

static zarr_status read_summary_options(struct zr_summary_job *j,
                                        const zarr_summary_options *opts, zarr_error *err)
{
    ZR_CHECK(zr_struct_read(&j->opts, sizeof j->opts, sizeof j->opts, opts,
                            ZR_TAIL_REFUSE, "zarr_summary_options", err));
    if (j->opts.flags)
        return zr_fail(err, ZARR_ERR_INVALID, "zarr_summary_options.flags must be 0");
    ZR_CHECK(zr_struct_read(&j->io, sizeof j->io, offsetof(zarr_io_options, tuning),
                            j->opts.io, ZR_TAIL_REFUSE, "zarr_io_options", err));
    j->io.heap = NULL;
    j->io.present = NULL;
    j->io.progress = NULL;
    j->io.stream = NULL;
    if (j->io.max_threads == 0)
        j->io.max_threads = j->ctx->engine.max_threads;
    return ZARR_OK;
}

static zarr_status init_spread(struct zr_summary_job *j, zarr_error *err)
{
    struct zr_summary_spread *p = &j->spread;

    if (j->opts.n_quantiles + (uint64_t)j->opts.n_bins == 0)
        return ZARR_OK;
    p->type = &j->type;
    p->alloc = j->ctx->alloc;
    p->n_bins = j->opts.n_bins;
    p->edges = p->n_bins > 0 ? j->opts.edges : NULL;
    p->is_collecting = j->opts.n_quantiles > 0 || !p->edges;
    return zr_summary_spread_init(p, j->n_items, j->ctx->budget.total / 4, err);
}

static zarr_status job_init(struct zr_summary_job *j, const zarr_summary_options *opts,
                            zarr_error *err)
{
    const zarr_array *a = j->array;
    const zarr_selection *r = j->region;

    ZR_CHECK(read_summary_options(j, opts, err));
    if (r && !zr_selection_fits(r, zarr_array_ndim(a), zarr_array_shape(a)))
        return zr_fail(err, ZARR_ERR_INVALID, "the selection was made for another shape");
    j->ndim = r ? zarr_selection_ndim(r) : zarr_array_ndim(a);
    memcpy(j->shape, r ? zarr_selection_shape(r) : zarr_array_shape(a),
           (size_t)j->ndim * sizeof *j->shape);
    ZR_CHECK(find_type(j, err));
    ZR_CHECK(check_dims(j, err));
    ZR_CHECK(check_weights(j, err));
    ZR_CHECK(make_cells(j, err));
    ZR_CHECK(check_spread(j, err));
    return init_spread(j, err);
}

/* ---- boxes -------------------------------------------------------------------- */

/* Boxes of the array if the region is one; else boxes of the region's result. */
struct boxes {
    struct zr_box_walk walk;
    bool is_array;
    uint64_t cell_stride[ZARR_MAX_RANK];
    uint64_t most; /* elements of a box at most */
};

/* Pairs the dimensions of the array with those of the region. What a selection drops has
 * one element, so it may change places with another dimension of one element. */
static void place_dims(struct boxes *b, const struct zr_summary_job *j,
                       const uint64_t *count)
{
    int32_t d = 0;

    for (int32_t r = 0; r < j->ndim; r++) {
        while (count[d] != j->shape[r] && zarr_array_ndim(j->array) - d > j->ndim - r)
            d++;
        b->cell_stride[d++] = j->cell_stride[r];
    }
}

/* Chooses blocks as the unit if one fits into a box, else chunks. */
static void init_array_walk(struct boxes *b, const struct zr_summary_job *j,
                            const uint64_t *base, const uint64_t *count)
{
    const zarr_array *a = j->array;
    const int32_t ndim = zarr_array_ndim(a);
    const uint64_t *block = zarr_array_block_shape(a), *chunk = zarr_array_chunk_shape(a);
    uint64_t unit[ZARR_MAX_RANK], n = 1;

    zarr_array_block_largest(a, unit);
    for (int32_t d = 0; d < ndim; d++)
        n = zr_mul_cap(n, ZR_MIN(unit[d], count[d]));
    if (block && n > b->most && chunk)
        memcpy(unit, chunk, (size_t)ndim * sizeof *unit);
    n = 1;
    for (int32_t d = 0; d < ndim; d++)
        n = zr_mul_cap(n, ZR_MIN(unit[d], count[d]));
    b->most = ZR_MAX(b->most, ZR_MIN(n, j->ctx->budget.total / 4 / j->type.item_bytes));
    zr_box_walk_init(&b->walk, ndim, count, unit, b->most);
    memcpy(b->walk.base, base, sizeof b->walk.base);
    if (block)
        memcpy(b->walk.unit, unit, (size_t)ndim * sizeof *unit);
    else
        b->walk.grid = zr_array_grid(a);
}

static void boxes_init(struct boxes *b, const struct zr_summary_job *j)
{
    uint64_t base[ZARR_MAX_RANK] = {0}, count[ZARR_MAX_RANK];

    *b = (struct boxes){.most = ZR_MIN(BOX_BYTES, j->ctx->budget.total / 8)};
    b->most = ZR_MAX(b->most / j->type.item_bytes, 1);
    memcpy(count, zarr_array_shape(j->array),
           (size_t)zarr_array_ndim(j->array) * sizeof *count);
    b->is_array = !j->region || zr_selection_is_box(j->region, base, count);
    if (b->is_array) {
        place_dims(b, j, count);
        init_array_walk(b, j, base, count);
    } else {
        memcpy(b->cell_stride, j->cell_stride, sizeof b->cell_stride);
        zr_box_walk_init(&b->walk, j->ndim, j->shape, NULL, b->most);
    }
}

/* ---- the elements of one box -------------------------------------------------- */

struct axis {
    uint64_t n, bytes; /* elements, and bytes from one to the next */
    uint64_t cells;    /* cells from one to the next; 0: none */
};

struct division {
    const struct zr_summary_type *type;
    const uint8_t *data;
    struct zr_summary_cell *cells, *slots; /* cells: that of the first element */
    struct axis axis[ZARR_MAX_RANK];       /* outermost first */
    int32_t n_axes, longest;
    /* the neighbouring elements, and the axis along which they get more; -1: none */
    int32_t inner, steps;
    uint64_t n_units, n_slots; /* n_slots: of each unit */
};

/* Lists the axes that are longer than 1. Elements that follow each other share one. */
static void list_axes(struct division *v, const struct zr_box_walk *w,
                      const uint64_t *cell_stride)
{
    uint64_t bytes = v->type->item_bytes;
    struct axis *first = v->axis + ZARR_MAX_RANK;

    for (int32_t d = w->ndim - 1; d >= 0; bytes *= w->count[d--])
        if (w->count[d] == 1)
            continue;
        else if (v->n_axes > 0 && cell_stride[d] == first->cells * first->n &&
                 (cell_stride[d] > 0) == (first->cells > 0))
            first->n *= w->count[d];
        else {
            *--first = (struct axis){w->count[d], bytes, cell_stride[d]};
            v->n_axes++;
        }
    if (v->n_axes == 0)
        v->axis[v->n_axes++] = (struct axis){1, bytes, 0};
    else
        memmove(v->axis, first, (size_t)v->n_axes * sizeof *first);
}

static void divide(struct division *v, uint64_t n_items)
{
    const struct axis *axis = v->axis;

    v->n_slots = 1;
    for (int32_t i = 0; i < v->n_axes; i++)
        v->n_slots = zr_add_cap(v->n_slots, (axis[i].n - 1) * axis[i].cells);
    v->inner = v->n_axes - 1;
    v->steps = v->longest = -1;
    for (int32_t i = 0; i < v->n_axes; i++) {
        if (axis[v->inner].cells > 0 && axis[i].cells == 0)
            v->steps = i;
        if ((axis[i].cells > 0 || v->n_slots <= MOST_SLOTS) &&
            (v->longest < 0 || axis[i].n > axis[v->longest].n))
            v->longest = i;
    }
    v->n_units = ZR_MIN(zr_ceil_div_u64(n_items, UNIT_ITEMS), MOST_UNITS);
    v->n_units = ZR_MIN(v->n_units, axis[v->longest].n);
    if (axis[v->longest].cells > 0 || v->n_units == 1)
        v->n_slots = 0;
}

/* Adds the elements of a part of the longest axis. */
static zarr_status sum_unit(void *arg, uint64_t unit, uint32_t worker, zarr_error *err)
{
    const struct division *v = arg;
    const uint64_t n = v->axis[v->longest].n, low = unit * n / v->n_units;
    struct axis axis[ZARR_MAX_RANK];
    struct zr_summary_cell *cells = v->slots ? v->slots + unit * v->n_slots : v->cells;
    struct zr_summary_block b = {.n_steps = 1};
    const uint8_t *src = v->data + low * v->axis[v->longest].bytes;
    uint64_t n_rows = 1;

    ZR_UNUSED(worker);
    ZR_UNUSED(err);
    memcpy(axis, v->axis, sizeof axis);
    axis[v->longest].n = (unit + 1) * n / v->n_units - low;
    cells += low * axis[v->longest].cells;
    b.n = (size_t)axis[v->inner].n;
    b.cell_stride = (size_t)axis[v->inner].cells;
    if (v->steps >= 0) {
        b.n_steps = (size_t)axis[v->steps].n;
        b.step_bytes = (size_t)axis[v->steps].bytes;
    }
    for (int32_t i = 0; i < v->inner; i++)
        n_rows *= i == v->steps ? 1 : axis[i].n;
    for (uint64_t row = 0; row < n_rows; row++) {
        uint64_t rest = row, cell = 0;

        b.src = src;
        for (int32_t i = v->inner - 1; i >= 0; i--)
            if (i != v->steps) {
                b.src += rest % axis[i].n * axis[i].bytes;
                cell += rest % axis[i].n * axis[i].cells;
                rest /= axis[i].n;
            }
        zr_summary_add(v->type, cells + cell, &b);
    }
    return ZARR_OK;
}

static zarr_status add_box(struct zr_summary_job *j, const struct boxes *b,
                           const uint8_t *data, zarr_error *err)
{
    const struct zr_parallel_options o = {.max_threads = j->io.max_threads,
                                          .item_ns = UNIT_ITEMS};
    struct division v = {.type = &j->type, .data = data, .cells = j->cells};
    zarr_status st = ZARR_OK;

    for (int32_t d = 0; d < b->walk.ndim; d++)
        v.cells += b->walk.start[d] * b->cell_stride[d];
    list_axes(&v, &b->walk, b->cell_stride);
    divide(&v, b->walk.n_items);
    if (v.n_slots > 0) {
        v.slots =
            zr_calloc(j->ctx->alloc, (size_t)(v.n_units * v.n_slots), sizeof *v.slots);
        if (!v.slots)
            return zr_fail_memory(err, v.n_units * v.n_slots * sizeof *v.slots);
    }
    ZR_TRY(zr_parallel_run(v.n_units, &o, sum_unit, &v, err));
    for (uint64_t i = 0; i < v.n_units * v.n_slots; i++)
        zr_summary_join(&j->type, v.cells + i % v.n_slots, v.slots + i);
    if (j->spread.type)
        ZR_TRY(zr_summary_spread_add(&j->spread, data, b->walk.n_items, err));
out:
    zr_free(j->ctx->alloc, v.slots);
    return st;
}

/* ---- reading ------------------------------------------------------------------ */

static zarr_status select_box(const struct zr_summary_job *j, const struct boxes *b,
                              zarr_selection **out, zarr_error *err)
{
    const struct zr_box_walk *w = &b->walk;
    uint64_t start[ZARR_MAX_RANK];
    zarr_selection *inner = NULL;
    zarr_status st = ZARR_OK;

    for (int32_t d = 0; d < w->ndim; d++)
        start[d] = w->base[d] + w->start[d];
    if (b->is_array)
        return zarr_selection_box(out, w->ndim, zarr_array_shape(j->array), start,
                                  w->count, err);
    ZR_TRY(zarr_selection_box(&inner, w->ndim, j->shape, start, w->count, err));
    ZR_TRY(zarr_selection_compose(out, j->region, inner, err));
out:
    zarr_selection_free(inner);
    return st;
}

static zarr_status read_box(struct zr_summary_job *j, const struct boxes *b, void *data,
                            zarr_error *err)
{
    const struct zr_box_walk *w = &b->walk;
    zarr_selection *selection = NULL;
    zarr_stats stats = ZARR_STATS_INIT;
    zarr_io_options io = j->io;
    zarr_tensor tensor;
    zarr_status st = ZARR_OK;

    io.stats = &stats;
    zarr_tensor_host(&tensor, NULL, data, w->n_items * j->type.item_bytes, w->ndim,
                     w->count);
    ZR_TRY(select_box(j, b, &selection, err));
    st = zarr_array_read(j->array, selection, &tensor, &io, err);
    for (size_t i = 0; i < (sizeof stats - offsetof(zarr_stats, chunks_total)) /
                               sizeof stats.chunks_total;
         i++)
        (&j->stats.chunks_total)[i] += (&stats.chunks_total)[i];
out:
    zarr_selection_free(selection);
    return st;
}

static zarr_status summarise_boxes(struct zr_summary_job *j, zarr_error *err)
{
    zarr_progress now = {.struct_size = sizeof now,
                         .path = zarr_array_path(j->array),
                         .bytes_total = zr_mul_cap(j->n_items, j->type.item_bytes)};
    zarr_memory memory = {0};
    struct boxes boxes;
    zarr_status st = ZARR_OK;

    boxes_init(&boxes, j);
    ZR_TRY(zr_pool_take(
        j->ctx->pool, ZARR_DEVICE_CPU, 0,
        zr_mul_cap(ZR_MAX(ZR_MIN(boxes.most, j->n_items), 1), j->type.item_bytes),
        &memory, err));
    while (zr_box_walk_next(&boxes.walk)) {
        uint8_t *data = (uint8_t *)memory.handle + memory.offset;

        ZR_TRY(zr_cancel_check(j->io.cancel, err));
        ZR_TRY(read_box(j, &boxes, data, err));
        ZR_TRY(add_box(j, &boxes, data, err));
        now.bytes_done += boxes.walk.n_items * j->type.item_bytes;
        if (j->opts.progress)
            j->opts.progress(j->opts.progress_user, &now);
    }
    ZR_TRY(zarr_array_recheck(j->array, j->io.cancel, err));
out:
    if (memory.handle)
        zr_pool_give(j->ctx->pool, &memory);
    return st;
}

/* ---- the call ----------------------------------------------------------------- */

zarr_status zarr_array_summary(zarr_summary **out, zarr_array *array,
                               const zarr_selection *selection,
                               const zarr_summary_options *opts, zarr_error *err)
{
    struct zr_summary_job j = {
        .array = array, .region = selection, .stats = ZARR_STATS_INIT};
    zarr_status st = ZARR_OK;

    ZR_NEED(out, err);
    *out = NULL;
    ZR_NEED(array, err);
    j.ctx = zarr_array_context(array);
    ZR_TRY(job_init(&j, opts, err));
    ZR_TRY(summarise_boxes(&j, err));
    ZR_TRY(zr_summary_make_results(out, &j, err));
out:
    if (j.io.stats)
        zr_struct_give(j.io.stats, j.io.stats->struct_size, &j.stats, sizeof j.stats);
    zr_summary_spread_deinit(&j.spread);
    zr_free(j.ctx->alloc, j.cells);
    return st;
}
