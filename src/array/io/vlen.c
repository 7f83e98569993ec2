/*
 * array/io/vlen.c - elements of variable length as offsets and bytes. A read uses a heap
 * of this call and ends in one block: offsets, then bytes. A write makes elements from
 * the offsets and passes them on. Thread class: plain functions.
 */
#include "array/io/io_int.h"
#include "array/io/vlen_int.h"

#include <zarrc/vlen.h>

#define COLUMN_RANGES  UINT64_C(64)
#define COLUMN_LEAST   UINT64_C(32768) /* elements of a range */
#define COLUMN_ITEM_NS 2               /* for an element */

struct vlen_column_block { /* followed by offsets and bytes */
    zarr_context *ctx;     /* counted */
    uint64_t n;            /* 64 bits wide, so that what follows is aligned */
};

void zr_vlen_call_close(struct zr_vlen_call *c)
{
    zr_free(c->array->h.ctx->alloc, c->elements);
}

/* Reads shape and type from one state: another thread may refresh the handle, and the
 * array may have another rank then. */
static const zarr_dtype *call_shape(struct zr_vlen_call *c)
{
    struct zr_array_state *s = zr_array_state_get(c->array);
    const zarr_dtype *dtype = s->meta.dtype; /* lives as long as the context */
    const uint64_t *shape =
        c->selection ? zarr_selection_shape(c->selection) : s->meta.shape;

    c->ndim = c->selection ? zarr_selection_ndim(c->selection) : s->meta.ndim;
    memcpy(c->shape, shape, (size_t)c->ndim * sizeof *shape);
    c->fits = zr_product_u64(shape, (size_t)c->ndim, &c->n);
    zr_array_state_free(s);
    return dtype;
}

zarr_status zr_vlen_call_open(struct zr_vlen_call *c, zarr_array *array,
                              const zarr_selection *sel, zarr_error *err)
{
    const zarr_dtype *dtype = NULL;
    size_t bytes = 0;

    *c = (struct zr_vlen_call){.array = array, .selection = sel};
    dtype = call_shape(c);
    c->value = zarr_dtype_underlying(dtype);
    c->item_bytes = (size_t)zarr_dtype_item_bytes(dtype);
    if (!zarr_dtype_variable(dtype))
        return zr_fail(err, ZARR_ERR_INVALID, "the elements have a fixed length (%s)",
                       zarr_dtype_name(dtype) ? zarr_dtype_name(dtype) : "?");
    c->optional = c->value != NULL;
    if (!c->value)
        c->value = dtype;
    if (!c->fits || !zr_fits(c->n, &bytes) || !zr_mul(bytes, c->item_bytes, &bytes))
        return zr_fail(err, ZARR_ERR_LIMIT,
                       "the selection does not fit this machine's addresses");
    c->elements = zr_calloc(array->h.ctx->alloc, ZR_MAX((size_t)c->n, 1), c->item_bytes);
    if (!c->elements)
        return zr_fail_memory(err, bytes);
    c->tensor = (zarr_tensor){
        .struct_size = sizeof c->tensor,
        .device_type = ZARR_DEVICE_CPU,
        .ndim = c->ndim,
        .data = c->elements,
        .shape = c->shape,
        .data_bytes = bytes,
    };
    return ZARR_OK;
}

/* Offsets alone cannot express a value that is missing. */
static zarr_status check_present(const struct zr_vlen_call *c, zarr_error *err)
{
    if (!c->optional)
        return ZARR_OK;
    return zr_fail(err, ZARR_ERR_INVALID,
                   "the elements may be missing (%s), which offsets cannot express: use "
                   "a tensor or a column of Arrow",
                   zarr_dtype_name(zarr_array_dtype(c->array)));
}

/* ---- reading --------------------------------------------------------------- */

/* A column that is made of elements, in ranges that threads take. */
struct column_work {
    const zarr_vlen *item;
    uint64_t n, each;                                  /* elements; of a range */
    uint64_t sum[COLUMN_RANGES], first[COLUMN_RANGES]; /* bytes; the first of them */
    uint64_t *offsets;
    uint8_t *bytes;
};

static zarr_status column_sum(void *arg, uint64_t i, uint32_t worker, zarr_error *err)
{
    struct column_work *w = arg;
    const uint64_t end = ZR_MIN(w->n, (i + 1) * w->each);
    uint64_t sum = 0;

    ZR_UNUSED(worker);
    for (uint64_t k = i * w->each; k < end; k++)
        if (!zr_add(sum, w->item[k].bytes, &sum))
            return zr_internal(err);
    w->sum[i] = sum;
    return ZARR_OK;
}

/* The elements of a chunk are neighbours in the heap, so most are copied in long runs. */
static zarr_status column_fill(void *arg, uint64_t i, uint32_t worker, zarr_error *err)
{
    const struct column_work *w = arg;
    const uint64_t end = ZR_MIN(w->n, (i + 1) * w->each);
    const uint8_t *run = NULL;
    uint64_t at = w->first[i], run_at = at;

    ZR_UNUSED(worker, err);
    for (uint64_t k = i * w->each; k < end; k++) {
        const zarr_vlen *item = &w->item[k];

        w->offsets[k] = at;
        if (!item->bytes)
            continue;
        if (at == run_at || item->data != run + (at - run_at)) {
            if (at > run_at)
                memcpy(w->bytes + run_at, run, (size_t)(at - run_at));
            run = item->data;
            run_at = at;
        }
        at += item->bytes;
    }
    if (at > run_at)
        memcpy(w->bytes + run_at, run, (size_t)(at - run_at));
    return ZARR_OK;
}

/* Makes the block of a column with room for w->n elements of `sum` bytes. */
static zarr_status column_block(struct vlen_column_block **out, struct column_work *w,
                                zarr_context *ctx, uint64_t sum, zarr_error *err)
{
    struct vlen_column_block *block = NULL;
    uint64_t all = 0;
    size_t size = 0;

    if (!zr_add(w->n, 1, &all) || !zr_mul(all, sizeof *w->offsets, &all) ||
        !zr_add(all, sum, &all) || !zr_add(all, sizeof *block, &all) ||
        !zr_fits(all, &size))
        return zr_fail(err, ZARR_ERR_LIMIT,
                       "the elements do not fit this machine's addresses");
    block = zr_malloc(ctx->alloc, size);
    if (!block)
        return zr_fail_memory(err, size);
    zr_pages_advise(block, size);
    block->ctx = zarr_context_ref(ctx);
    block->n = w->n;
    w->offsets = (uint64_t *)(block + 1);
    w->bytes = (uint8_t *)(w->offsets + w->n + 1);
    *out = block;
    return ZARR_OK;
}

static zarr_status column_make(zarr_vlen_column *out, const struct zr_vlen_call *c,
                               zarr_error *err)
{
    const uint64_t n_ranges = ZR_MAX(ZR_MIN(c->n / COLUMN_LEAST, COLUMN_RANGES), 1);
    struct column_work w = {.item = (const void *)c->elements,
                            .n = c->n,
                            .each = zr_ceil_div_u64(c->n, n_ranges)};
    const struct zr_parallel_options opts = {
        .max_threads = c->max_threads, .grain = 1, .item_ns = w.each * COLUMN_ITEM_NS};
    struct vlen_column_block *block = NULL;
    uint64_t sum = 0;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_parallel_run(n_ranges, &opts, column_sum, &w, err));
    for (uint64_t i = 0; i < n_ranges; i++) {
        w.first[i] = sum;
        if (!zr_add(sum, w.sum[i], &sum))
            return zr_internal(err);
    }
    ZR_TRY(column_block(&block, &w, c->array->h.ctx, sum, err));
    w.offsets[c->n] = sum;
    out->n = c->n;
    out->offsets = w.offsets;
    out->bytes = w.bytes;
    out->owner = block;
    st = zr_parallel_run(n_ranges, &opts, column_fill, &w, err);
    if (st != ZARR_OK)
        zarr_vlen_column_free(out);
out:
    return st;
}

zarr_status zr_vlen_call_read(struct zr_vlen_call *c, const zarr_io_options *opts,
                              zarr_error *err)
{
    zarr_io_options o;

    ZR_CHECK(zr_io_options_read(&o, opts, err));
    ZR_CHECK(zr_io_no_stream(&o, err));
    if (o.heap)
        c->heap->heap.most = o.heap->heap.most;
    o.heap = c->heap;
    o.flags &= ~(uint32_t)ZARR_IO_AT_ONCE; /* elements of these types are never read so */
    c->max_threads = o.max_threads ? o.max_threads : c->array->h.ctx->engine.max_threads;
    return zarr_array_read(c->array, c->selection, &c->tensor, &o, err);
}

zarr_status zarr_array_read_vlen(zarr_array *array, const zarr_selection *selection,
                                 zarr_vlen_column *out, const zarr_io_options *opts,
                                 zarr_error *err)
{
    ZR_NEED(array, err);
    struct zr_vlen_call c = {.array = array};
    struct zarr_heap own = {.ctx = array->h.ctx};
    zarr_status st = ZARR_OK;

    if (!out || out->struct_size < sizeof *out)
        return zr_fail(err, out ? ZARR_ERR_ABI : ZARR_ERR_INVALID,
                       "zarr_vlen_column: initialise it with ZARR_VLEN_COLUMN_INIT");
    *out = (zarr_vlen_column){.struct_size = out->struct_size};
    zr_heap_init(&own.heap, array->h.ctx->budget.total, array->h.ctx->alloc);
    ZR_TRY(zr_vlen_call_open(&c, array, selection, err));
    ZR_TRY(check_present(&c, err));
    c.heap = &own;
    ZR_TRY(zr_vlen_call_read(&c, opts, err));
    ZR_TRY(column_make(out, &c, err));
out:
    zr_heap_clear(&own.heap);
    zr_vlen_call_close(&c);
    return st;
}

void zarr_vlen_column_free(zarr_vlen_column *column)
{
    struct vlen_column_block *block = column ? column->owner : NULL;

    if (block) {
        zarr_context *ctx = block->ctx;

        zr_free(ctx->alloc, block);
        zarr_context_free(ctx);
    }
    if (column)
        *column = (zarr_vlen_column){.struct_size = column->struct_size};
}

/* ---- writing --------------------------------------------------------------- */

zarr_status zarr_array_write_vlen(zarr_array *array, const zarr_selection *selection,
                                  const zarr_vlen_column *column,
                                  const zarr_io_options *opts, zarr_error *err)
{
    ZR_NEED(array, err);
    struct zr_vlen_call c = {.array = array};
    zarr_vlen_column in;
    zarr_vlen *item = NULL;
    zarr_status st = ZARR_OK;

    if (!column)
        return zr_fail(err, ZARR_ERR_INVALID, "no column is given");
    ZR_TRY(zr_struct_read(&in, sizeof in, offsetof(zarr_vlen_column, owner), column,
                          ZR_TAIL_REFUSE, "zarr_vlen_column", err));
    ZR_TRY(zr_vlen_call_open(&c, array, selection, err));
    ZR_TRY(check_present(&c, err));
    item = (void *)c.elements;
    if (in.n != c.n || !in.offsets)
        ZR_FAIL(err, ZARR_ERR_INVALID,
                "the column has %" PRIu64 " elements%s, the selection %" PRIu64, in.n,
                in.offsets ? "" : " and no offsets", c.n);
    for (uint64_t i = 0; i < c.n; i++) {
        if (in.offsets[i + 1] < in.offsets[i] ||
            (in.offsets[i + 1] > in.offsets[i] && !in.bytes))
            ZR_TRY(
                zr_fail(err, ZARR_ERR_INVALID,
                        "element %" PRIu64 " goes from byte %" PRIu64 " to %" PRIu64 "%s",
                        i, in.offsets[i], in.offsets[i + 1], in.bytes ? "" : " of none"));
        item[i].bytes = in.offsets[i + 1] - in.offsets[i];
        if (item[i].bytes)
            item[i].data = in.bytes + in.offsets[i];
    }
    ZR_TRY(zarr_array_write(array, selection, &c.tensor, opts, err));
out:
    zr_vlen_call_close(&c);
    return st;
}
