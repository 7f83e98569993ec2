/*
 * node/io.c - reads and writes that an interrupt cancels, and the iteration over an array
 * that is larger than memory, as boxes in C order. For a stream a box must be contiguous,
 * so only one dimension is split and the dimensions after it are complete. For a copy a
 * box consists of whole chunks, so that no chunk is decoded twice or written in part.
 */
#include "node/node.h"

#include <string.h>

static zarr_io_options with_cancel(const zarr_io_options *opts)
{
    zarr_io_options o = ZARR_IO_OPTIONS_INIT;

    if (opts)
        o = *opts;
    o.cancel = cli_cancel;
    return o;
}

zarr_status cli_read(zarr_array *array, const zarr_selection *selection,
                     const zarr_tensor *dst, const zarr_io_options *opts, zarr_error *err)
{
    const zarr_io_options o = with_cancel(opts);

    return zarr_array_read(array, selection, dst, &o, err);
}

zarr_status cli_write(zarr_array *array, const zarr_selection *selection,
                      const zarr_tensor *src, const zarr_io_options *opts,
                      zarr_error *err)
{
    const zarr_io_options o = with_cancel(opts);

    return zarr_array_write(array, selection, src, &o, err);
}

zarr_status cli_heap(const struct cli *cli, const zarr_dtype *type, zarr_heap **heap,
                     zarr_error *err)
{
    if (!zarr_dtype_variable(type))
        return ZARR_OK;
    if (!*heap)
        return zarr_heap_create(heap, cli->ctx, 0, err);
    zarr_heap_clear(*heap);
    return ZARR_OK;
}

uint64_t cli_buffer_bytes(const struct cli *cli)
{
    return cli->memory_bytes ? cli->memory_bytes / 2 : 256u << 20;
}

/* ---- boxes ---- */

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* n rounded down to a multiple of unit, if n is at least one unit. */
static uint64_t align_down(uint64_t n, uint64_t unit)
{
    return unit > 1 && n > unit ? n - n % unit : n;
}

/* unit: of which boxes consist; align: to which a split dimension is aligned. Both may be
 * NULL. */
static void plan_steps(struct cli_boxes *b, const uint64_t *unit, const uint64_t *align,
                       uint64_t max_items)
{
    uint64_t n = 1;

    for (int32_t d = 0; d < b->ndim; d++)
        b->step[d] = least(unit && unit[d] ? unit[d] : 1, b->shape[d]);
    n = cli_product(b->ndim, b->step);
    for (int32_t d = 0; d < b->ndim && n > max_items; d++) { /* one unit does not fit */
        uint64_t rest = n / b->step[d] ? n / b->step[d] : 1;

        if (n == UINT64_MAX)
            rest = UINT64_MAX;
        b->step[d] = max_items / rest ? max_items / rest : 1;
        n = cli_product(b->ndim, b->step);
    }
    for (int32_t d = b->ndim - 1; d >= 0; d--) { /* as many units as fit */
        uint64_t times = n ? max_items / n : 1;
        uint64_t wanted = cli_mul(b->step[d], times ? times : 1);

        if (wanted >= b->shape[d])
            b->step[d] = b->shape[d];
        else
            b->step[d] = align ? align_down(wanted, align[d]) : wanted;
        n = cli_product(b->ndim, b->step);
        if (b->step[d] < b->shape[d])
            break; /* a split dimension ends the box */
    }
}

void cli_boxes_init(struct cli_boxes *boxes, int32_t ndim, const uint64_t *shape,
                    const uint64_t *unit, uint64_t max_items, bool contiguous)
{
    *boxes = (struct cli_boxes){.ndim = ndim};
    memcpy(boxes->shape, shape, (size_t)ndim * sizeof *shape);
    if (cli_product(ndim, shape) == 0) {
        boxes->done = true;
        return;
    }
    if (max_items == 0)
        max_items = 1;
    plan_steps(boxes, contiguous ? NULL : unit, contiguous ? unit : NULL, max_items);
}

uint64_t cli_boxes_max_items(const struct cli_boxes *boxes)
{
    return boxes->done && !boxes->begun ? 0 : cli_product(boxes->ndim, boxes->step);
}

bool cli_boxes_next(struct cli_boxes *b)
{
    int32_t d = b->ndim - 1;

    if (b->done)
        return false;
    if (b->begun)
        for (; d >= 0; d--) {
            b->start[d] += b->count[d];
            if (b->start[d] < b->shape[d])
                break;
            b->start[d] = 0;
        }
    if (b->begun && d < 0) {
        b->done = true;
        return false;
    }
    b->begun = true;
    for (d = 0; d < b->ndim; d++)
        b->count[d] = least(b->step[d], b->shape[d] - b->start[d]);
    b->n_items = cli_product(b->ndim, b->count);
    return true;
}

zarr_status cli_boxes_select(const struct cli_boxes *boxes, const zarr_selection *outer,
                             zarr_selection **out, zarr_error *err)
{
    zarr_selection *inner = NULL;
    zarr_status st = zarr_selection_box(&inner, boxes->ndim, boxes->shape, boxes->start,
                                        boxes->count, err);

    if (st || !outer) {
        *out = inner;
        return st;
    }
    st = zarr_selection_compose(out, outer, inner, err);
    zarr_selection_free(inner);
    return st;
}

void cli_boxes_tensor(const struct cli_boxes *boxes, void *data, uint64_t data_bytes,
                      uint64_t shape_out[ZARR_MAX_RANK], zarr_tensor *out)
{
    for (int32_t d = 0; d < boxes->ndim; d++)
        shape_out[d] = boxes->count[d];
    zarr_tensor_host(out, NULL, data, data_bytes, boxes->ndim, shape_out);
}
