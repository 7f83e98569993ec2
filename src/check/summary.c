/*
 * check/summary.c - zarr_array_summary(): reads a region box by box into two buffers,
 * one of which is filled while the elements of the other are added to cells. Boxes are
 * whole chunks. Each place of the dimensions that are kept has a cell; so has each index
 * of the dimension with weights, which is folded at the end.
 *
 * The work on a box is divided into units, in a way that does not depend on the number of
 * threads. If the box has many cells, a unit has some of them, and adds all their
 * elements in order. Otherwise units have parts of the elements, and slots of their own,
 * which are joined in order.
 * Thread class: plain functions.
 */
#include "array/array.h"
#include "check/summary_int.h"

#include <math.h>
#include <string.h>

enum {
    BOX_BYTES = 16 << 20,
    PIECE_ITEMS = 1 << 16, /* elements of a unit at least, if there are as many */
    BLOCK_CELLS = 512,     /* neighbouring cells of a unit at most */
    MOST_SLOTS = 64,
    MOST_SLOT_CELLS = 4096,
    PLACE_BYTES = 80, /* of the result */
    BIN_BYTES = 24,
    MANY_CELLS = 2048 /* units of so many cells need no slots */
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
    zarr_dtype_field field = ZARR_DTYPE_FIELD_INIT;
    zarr_status st = ZARR_OK;

    j->dtype = zarr_array_dtype(j->array);
    if (j->io.field) {
        ZR_TRY(zarr_dtype_field_find(j->dtype, j->io.field, &field, err));
        if (field.ndim > 0)
            ZR_FAIL(err, ZARR_ERR_UNSUPPORTED,
                    "the field %s is a subarray, which has no summary", j->io.field);
        j->dtype = field.dtype;
    }
    ZR_TRY(zr_summary_type_init(&j->type, j->dtype, j->opts.missing, err));
out:
    return st;
}

static zarr_status make_scratch(struct zr_summary_job *j, zarr_error *err)
{
    const struct zr_parallel_options o = {.max_threads = j->io.max_threads};

    if (j->io.max_threads == 0)
        j->io.max_threads = j->ctx->engine.max_threads;
    j->n_scratch = zr_parallel_workers(UINT64_MAX, &o);
    j->scratch = zr_calloc(j->ctx->alloc, j->n_scratch, sizeof *j->scratch);
    return j->scratch ? ZARR_OK : zr_fail_memory(err, j->n_scratch * sizeof *j->scratch);
}

static zarr_status read_summary_options(struct zr_summary_job *j,
                                        const zarr_summary_options *opts, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_struct_read(&j->opts, sizeof j->opts, sizeof j->opts, opts, ZR_TAIL_REFUSE,
                          "zarr_summary_options", err));
    if (j->opts.flags)
        ZR_FAIL(err, ZARR_ERR_INVALID, "zarr_summary_options.flags must be 0");
    ZR_TRY(zr_struct_read(&j->io, sizeof j->io, offsetof(zarr_io_options, tuning),
                          j->opts.io, ZR_TAIL_REFUSE, "zarr_io_options", err));
    j->io.heap = NULL;
    j->io.present = NULL;
    j->io.progress = NULL;
    j->io.stream = NULL;
out:
    return st;
}

static zarr_status job_init(struct zr_summary_job *j, const zarr_summary_options *opts,
                            zarr_error *err)
{
    const zarr_array *a = j->array;
    const zarr_selection *r = j->region;
    zarr_status st = ZARR_OK;

    ZR_TRY(read_summary_options(j, opts, err));
    if (r && !zr_selection_fits(r, zarr_array_ndim(a), zarr_array_shape(a)))
        ZR_FAIL(err, ZARR_ERR_INVALID, "the selection was made for another shape");
    j->ndim = r ? zarr_selection_ndim(r) : zarr_array_ndim(a);
    memcpy(j->shape, r ? zarr_selection_shape(r) : zarr_array_shape(a),
           (size_t)j->ndim * sizeof *j->shape);
    ZR_TRY(find_type(j, err));
    ZR_TRY(check_dims(j, err));
    ZR_TRY(check_weights(j, err));
    ZR_TRY(make_cells(j, err));
    ZR_TRY(check_spread(j, err));
    ZR_TRY(make_scratch(j, err));
    j->spread.is_collecting =
        j->opts.n_quantiles > 0 || (j->opts.n_bins > 0 && !j->opts.edges);
    if (j->opts.edges && j->opts.n_bins > 0 && !zr_summary_is_counted(&j->type)) {
        j->spread.edges.edges = j->opts.edges;
        j->spread.edges.n = j->opts.n_bins;
        j->spread.edges.count =
            zr_calloc(j->ctx->alloc, j->opts.n_bins, sizeof *j->spread.edges.count);
        if (!j->spread.edges.count)
            ZR_FAIL_MEMORY(err, j->opts.n_bins * sizeof *j->spread.edges.count);
    }
    if (j->spread.is_collecting || j->opts.n_bins > 0)
        ZR_TRY(zr_summary_spread_init(&j->spread, &j->type, j->n_items,
                                      j->ctx->budget.total / 4, j->ctx->alloc, err));
out:
    return st;
}

static void job_deinit(struct zr_summary_job *j)
{
    const zarr_allocator *alloc = j->ctx->alloc;

    if (j->spread.type)
        zr_summary_spread_deinit(&j->spread);
    zr_free(alloc, j->spread.edges.count);
    zr_free(alloc, j->scratch);
    zr_free(alloc, j->cells);
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
    uint64_t local;    /* the same in a slot */
};

/* How a box is divided. The innermost axis is either a row, whose elements go to one
 * cell, or neighbouring cells; then `steps` is the axis along which they get elements. */
struct division {
    struct zr_summary_job *j;
    const uint8_t *data;
    struct zr_summary_cell *cells, *slots; /* cells: that of the first element */
    struct axis kept[ZARR_MAX_RANK], over[ZARR_MAX_RANK]; /* but inner and steps */
    int32_t n_kept, n_over;
    struct axis inner, steps;
    uint64_t piece;             /* of the row, or of the steps */
    uint64_t n_blocks;          /* of neighbouring cells; 1 in a row */
    uint64_t n_units, n_pieces; /* groups of cells; pieces of the elements of one */
    uint64_t n_cells, n_slots;
};

static void add_axis(struct axis *axes, int32_t *n, const struct axis *axis)
{
    struct axis *last = axes + *n - 1;

    if (*n > 0 && last->cells == axis->cells * axis->n &&
        (last->cells > 0) == (axis->cells > 0)) {
        last->n *= axis->n; /* the elements follow each other */
        last->bytes = axis->bytes;
        last->cells = axis->cells;
        return;
    }
    axes[(*n)++] = *axis;
}

/* The axes of a box that are longer than 1, outermost first, joined where possible. */
static int32_t list_axes(const struct zr_summary_job *j, const struct boxes *b,
                         struct axis *axes)
{
    uint64_t bytes[ZARR_MAX_RANK], step = j->type.item_bytes;
    int32_t n = 0;

    for (int32_t d = b->walk.ndim - 1; d >= 0; d--) {
        bytes[d] = step;
        step *= b->walk.count[d];
    }
    for (int32_t d = 0; d < b->walk.ndim; d++)
        if (b->walk.count[d] > 1)
            add_axis(axes, &n,
                     &(struct axis){b->walk.count[d], bytes[d], b->cell_stride[d], 0});
    return n;
}

static void divide_axes(struct division *v, struct axis *axes, int32_t n)
{
    const struct axis one = {.n = 1};
    bool has_steps = false;

    v->inner = n > 0 ? axes[--n] : one;
    v->steps = one;
    for (int32_t i = n - 1; i >= 0; i--)
        if (v->inner.cells > 0 && axes[i].cells == 0 && !has_steps) {
            v->steps = axes[i];
            has_steps = true;
            axes[i].n = 0;
        }
    for (int32_t i = 0; i < n; i++)
        if (axes[i].n > 0 && axes[i].cells > 0)
            v->kept[v->n_kept++] = axes[i];
        else if (axes[i].n > 0)
            v->over[v->n_over++] = axes[i];
}

static void choose_slots(struct division *v)
{
    const bool is_row = v->inner.cells == 0;
    const uint64_t length = is_row ? v->inner.n : v->steps.n;
    const uint64_t width = is_row ? 1 : ZR_MIN(v->inner.n, BLOCK_CELLS);
    uint64_t local = is_row ? 1 : v->inner.n;

    v->piece = ZR_MAX(PIECE_ITEMS / width, 1);
    v->n_pieces = zr_ceil_div_u64(length, v->piece);
    for (int32_t i = 0; i < v->n_over; i++)
        v->n_pieces *= v->over[i].n;
    v->n_blocks = is_row ? 1 : zr_ceil_div_u64(v->inner.n, BLOCK_CELLS);
    v->n_units = v->n_blocks;
    for (int32_t i = v->n_kept - 1; i >= 0; i--) {
        v->kept[i].local = local;
        local *= v->kept[i].n;
        v->n_units *= v->kept[i].n;
    }
    v->n_cells = local;
    v->n_slots = v->n_cells >= MANY_CELLS
                     ? 1
                     : ZR_MIN(ZR_MIN(v->n_pieces, MOST_SLOTS), MOST_SLOT_CELLS / local);
    v->n_slots = ZR_MAX(v->n_slots, 1);
}

/* Adds where the element with this number, in C order of the axes, is. */
static void locate(const struct axis *axes, int32_t n, uint64_t number, uint64_t *bytes,
                   uint64_t *cells, uint64_t *local)
{
    for (int32_t i = n - 1; i >= 0; i--) {
        const uint64_t at = number % axes[i].n;

        *bytes += at * axes[i].bytes;
        *cells += at * axes[i].cells;
        *local += at * axes[i].local;
        number /= axes[i].n;
    }
}

static void add_piece(const struct division *v, struct zr_summary_scratch *s,
                      struct zr_summary_cell *cells, const uint8_t *src, uint64_t block,
                      uint64_t piece)
{
    const struct zr_summary_type *t = &v->j->type;
    const bool is_row = v->inner.cells == 0;
    const uint64_t first = block * BLOCK_CELLS, at = piece * v->piece;
    const uint64_t length = is_row ? v->inner.n : v->steps.n;
    const struct zr_summary_columns c = {
        .src = src + first * t->item_bytes + at * v->steps.bytes,
        .n_cells = (size_t)ZR_MIN(v->inner.n - first, BLOCK_CELLS),
        .n_steps = (size_t)ZR_MIN(length - at, v->piece),
        .cell_stride = (size_t)(v->n_slots > 1 ? 1 : v->inner.cells),
        .step_bytes = (size_t)v->steps.bytes};

    if (is_row)
        zr_summary_add_row(t, s, cells, src + at * t->item_bytes,
                           (size_t)ZR_MIN(length - at, v->piece));
    else
        zr_summary_add_columns(t, s, cells + first * c.cell_stride, &c);
}

/* Item i: unit i % n_units, slot i / n_units. */
static zarr_status run_unit(void *arg, uint64_t i, uint32_t worker, zarr_error *err)
{
    const struct division *v = arg;
    const uint64_t slot = i / v->n_units, unit = i % v->n_units;
    const uint64_t block = unit % v->n_blocks, low = slot * v->n_pieces / v->n_slots;
    const uint64_t high = (slot + 1) * v->n_pieces / v->n_slots;
    const uint64_t length = v->inner.cells == 0 ? v->inner.n : v->steps.n;
    const uint64_t per_row = zr_ceil_div_u64(length, v->piece);
    uint64_t bytes = 0, global = 0, local = 0;
    struct zr_summary_cell *cells;

    ZR_UNUSED(err);
    locate(v->kept, v->n_kept, unit / v->n_blocks, &bytes, &global, &local);
    cells = v->n_slots > 1 ? v->slots + slot * v->n_cells + local : v->cells + global;
    for (uint64_t p = low; p < high; p++) {
        uint64_t from = bytes, none = 0;

        locate(v->over, v->n_over, p / per_row, &from, &none, &none);
        add_piece(v, &v->j->scratch[worker], cells, v->data + from, block, p % per_row);
    }
    return ZARR_OK;
}

static void join_slots(const struct division *v)
{
    const uint64_t width = v->inner.cells == 0 ? 1 : v->inner.n;

    for (uint64_t c = 0; c < v->n_cells; c += width) {
        uint64_t bytes = 0, global = 0, local = 0;

        locate(v->kept, v->n_kept, c / width, &bytes, &global, &local);
        for (uint64_t slot = 0; slot < v->n_slots; slot++)
            for (uint64_t i = 0; i < width; i++)
                zr_summary_join(&v->j->type, v->cells + global + i * v->inner.cells,
                                v->slots + slot * v->n_cells + local + i);
    }
}

static zarr_status add_box(struct zr_summary_job *j, const struct boxes *b,
                           const uint8_t *data, zarr_error *err)
{
    const struct zr_parallel_options o = {.max_threads = j->io.max_threads,
                                          .item_ns = PIECE_ITEMS};
    struct division v = {.j = j, .data = data, .cells = j->cells};
    struct axis axes[ZARR_MAX_RANK];
    zarr_status st = ZARR_OK;

    for (int32_t d = 0; d < b->walk.ndim; d++)
        v.cells += b->walk.start[d] * b->cell_stride[d];
    divide_axes(&v, axes, list_axes(j, b, axes));
    choose_slots(&v);
    if (v.n_slots > 1) {
        v.slots =
            zr_calloc(j->ctx->alloc, (size_t)(v.n_slots * v.n_cells), sizeof *v.slots);
        if (!v.slots)
            return zr_fail_memory(err, v.n_slots * v.n_cells * sizeof *v.slots);
    }
    ZR_TRY(zr_parallel_run(v.n_units * v.n_slots, &o, run_unit, &v, err));
    if (v.n_slots > 1)
        join_slots(&v);
    if (j->spread.type)
        ZR_TRY(zr_summary_spread_add(&j->spread, j->scratch, data,
                                     (size_t)b->walk.n_items, err));
out:
    zr_free(j->ctx->alloc, v.slots);
    return st;
}

/* ---- reading ------------------------------------------------------------------ */

/* A buffer and the read that fills it. */
struct buffer {
    uint8_t *data;
    zarr_memory memory; /* of the context's pool: `data` */
    zarr_request *request;
    zarr_selection *selection;
    struct boxes box; /* its current box is the one that is read */
    zarr_tensor tensor;
    zarr_stats stats;
};

static zarr_status select_box(const struct zr_summary_job *j, struct buffer *f,
                              zarr_error *err)
{
    const struct zr_box_walk *w = &f->box.walk;
    uint64_t start[ZARR_MAX_RANK];
    zarr_selection *inner = NULL;
    zarr_status st = ZARR_OK;

    for (int32_t d = 0; d < w->ndim; d++)
        start[d] = w->base[d] + w->start[d];
    if (f->box.is_array)
        return zarr_selection_box(&f->selection, w->ndim, zarr_array_shape(j->array),
                                  start, w->count, err);
    ZR_TRY(zarr_selection_box(&inner, w->ndim, j->shape, start, w->count, err));
    ZR_TRY(zarr_selection_compose(&f->selection, j->region, inner, err));
out:
    zarr_selection_free(inner);
    return st;
}

/* Starts to read the current box of `boxes`. */
static zarr_status start_box_read(struct zr_summary_job *j, const struct boxes *boxes,
                                  struct buffer *f, zarr_error *err)
{
    zarr_io_options io = j->io;
    zarr_status st = ZARR_OK;

    f->box = *boxes;
    f->stats = (zarr_stats)ZARR_STATS_INIT;
    io.stats = &f->stats;
    if (!f->data) {
        ZR_TRY(zr_pool_take(j->ctx->pool, ZARR_DEVICE_CPU, 0,
                            ZR_MIN(boxes->most, j->n_items) * j->type.item_bytes,
                            &f->memory, err));
        f->data = (uint8_t *)f->memory.handle + f->memory.offset;
    }
    zarr_tensor_host(&f->tensor, NULL, f->data, f->box.walk.n_items * j->type.item_bytes,
                     f->box.walk.ndim, f->box.walk.count);
    ZR_TRY(select_box(j, f, err));
    ZR_TRY(zarr_array_read_submit(&f->request, j->array, f->selection, &f->tensor, &io,
                                  err));
out:
    return st;
}

static void add_stats(zarr_stats *sum, const zarr_stats *more)
{
    uint64_t *to = &sum->chunks_total;
    const uint64_t *from = &more->chunks_total;
    const size_t n = (sizeof *sum - offsetof(zarr_stats, chunks_total)) / sizeof *to;

    for (size_t i = 0; i < n; i++)
        to[i] += from[i];
}

/* Waits for the read, also after a failure of something else. */
static zarr_status end_read(struct zr_summary_job *j, struct buffer *f, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    if (f->request)
        st = zarr_request_wait(f->request, ZARR_WAIT_FOREVER, NULL, err);
    zarr_request_free(f->request);
    zarr_selection_free(f->selection);
    f->request = NULL;
    f->selection = NULL;
    add_stats(&j->stats, &f->stats);
    f->stats = (zarr_stats)ZARR_STATS_INIT;
    return st;
}

static void tell_summary_progress(struct zr_summary_job *j, uint64_t n_items)
{
    const zarr_progress now = {.struct_size = sizeof now,
                               .path = zarr_array_path(j->array),
                               .bytes_done = zr_mul_cap(n_items, j->type.item_bytes) +
                                             j->bytes_done,
                               .bytes_total = zr_mul_cap(j->n_items, j->type.item_bytes)};

    j->bytes_done = now.bytes_done;
    if (j->opts.progress)
        j->opts.progress(j->opts.progress_user, &now);
}

static zarr_status summarise_boxes(struct zr_summary_job *j, zarr_error *err)
{
    struct buffer buffer[2] = {{.data = NULL}, {.data = NULL}};
    struct boxes boxes;
    bool more;
    int now = 0;
    zarr_status st = ZARR_OK;

    boxes_init(&boxes, j);
    more = zr_box_walk_next(&boxes.walk);
    if (more)
        ZR_TRY(start_box_read(j, &boxes, &buffer[now], err));
    while (more) {
        ZR_TRY(end_read(j, &buffer[now], err));
        ZR_TRY(zr_cancel_check(j->io.cancel, err));
        more = zr_box_walk_next(&boxes.walk);
        if (more)
            ZR_TRY(start_box_read(j, &boxes, &buffer[!now], err));
        ZR_TRY(add_box(j, &buffer[now].box, buffer[now].data, err));
        tell_summary_progress(j, buffer[now].box.walk.n_items);
        now = !now;
    }
    ZR_TRY(zarr_array_recheck(j->array, j->io.cancel, err));
out:
    for (int i = 0; i < 2; i++) {
        zarr_request_cancel(buffer[i].request);
        (void)end_read(j, &buffer[i], NULL);
        if (buffer[i].data)
            zr_pool_give(j->ctx->pool, &buffer[i].memory);
    }
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
    job_deinit(&j);
    return st;
}
