/*
 * port/boxes.c - lists of boxes that are copied or filled, by one launch for each pair of
 * buffers, and runs of bytes, which the plug-in copies without a kernel.
 */
#include "port_int.h"

#include <stdlib.h>

#include "kernels/boxes.h"

/* A box and the buffers of its sides. */
struct box_item {
    const zarr_box *box;
    struct port_place dst, src;
};

static int by_box_buffers(const void *a, const void *b)
{
    const struct box_item *x = a, *y = b;
    const uintptr_t xd = (uintptr_t)x->dst.buffer, yd = (uintptr_t)y->dst.buffer;
    const uintptr_t xs = (uintptr_t)x->src.buffer, ys = (uintptr_t)y->src.buffer;

    return xd != yd ? (xd > yd) - (xd < yd) : (xs > ys) - (xs < ys);
}

static int same_box_buffers(const struct box_item *a, const struct box_item *b)
{
    return a->dst.buffer == b->dst.buffer && a->src.buffer == b->src.buffer;
}

static struct k_box describe_box(const struct box_item *x, int fill)
{
    const zarr_box *from = x->box;
    struct k_box b = {.n = 1,
                      .dst_at = x->dst.at,
                      .src_at = x->src.at,
                      .ndim = (k_u32)from->ndim,
                      .item_bytes = from->item_bytes,
                      .swap_bytes = fill ? 0 : from->swap_bytes};

    for (int d = 0; d < from->ndim; d++) {
        b.n *= from->shape[d];
        b.shape[d] = from->shape[d];
        b.dst[d] = from->dst.stride[d];
        b.src[d] = fill ? 0 : from->src.stride[d];
    }
    return b;
}

/* Boxes of one pair of buffers. `pattern` NULL: copies. */
static zarr_status launch_boxes(struct port_lane *l, const struct box_item *x, uint64_t n,
                                const struct port_block *pattern, zarr_error *err)
{
    struct port_block list;
    uint64_t each = 0;
    zarr_status st = port_stage(l, n * sizeof(struct k_box), &list, err);

    if (st != ZARR_OK)
        return st;
    for (uint64_t i = 0; i < n; i++) {
        struct k_box *b = (struct k_box *)list.host + i;
        uint64_t items;

        *b = describe_box(&x[i], pattern != NULL);
        kernels_box_ready(b, pattern != NULL);
        items = kernels_box_items(b);
        each = items > each ? items : each;
    }
    const struct port_argument a[] = {
        PORT_ARG_BUFFER(x[0].dst),
        pattern ? PORT_ARG_BLOCK(*pattern) : PORT_ARG_BUFFER(x[0].src),
        PORT_ARG_BLOCK(list), PORT_ARG_U64(n), PORT_ARG_U64(each)};

    return port_launch(l, pattern ? PORT_FILL_BOXES : PORT_COPY_BOXES, a, 5, n * each,
                       err);
}

static zarr_status stage_bytes(struct port_lane *l, const void *from, uint32_t bytes,
                               struct port_block *out, zarr_error *err)
{
    const zarr_status st = port_stage(l, bytes, out, err);

    for (uint32_t k = 0; st == ZARR_OK && k < bytes; k++)
        ((uint8_t *)out->host)[k] = ((const uint8_t *)from)[k];
    return st;
}

static zarr_status launch_all(struct port_lane *l, struct box_item *x, uint64_t n,
                              const void *pattern, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    int sorted = 1;

    for (uint64_t i = 1; i < n && sorted; i++)
        sorted = same_box_buffers(&x[i - 1], &x[i]);
    if (!sorted)
        qsort(x, (size_t)n, sizeof *x, by_box_buffers);
    for (uint64_t i = 0, k; i < n && st == ZARR_OK; i = k) {
        struct port_block bytes;

        for (k = i + 1; k < n && same_box_buffers(&x[i], &x[k]); k++)
            ;
        if (pattern)
            st = stage_bytes(l, pattern, x[0].box->item_bytes, &bytes, err);
        if (st == ZARR_OK)
            st = launch_boxes(l, &x[i], k - i, pattern ? &bytes : NULL, err);
    }
    return st;
}

/* Kernels reach the memory of one device. */
static int boxes_fit(const zarr_box *x, uint64_t n, int fill)
{
    for (uint64_t i = 0; i < n; i++)
        if (x[i].ndim > K_RANK || !port_reaches(&x[i].dst.mem) ||
            (!fill && (!port_reaches(&x[i].src.mem) ||
                       x[i].src.mem.device_id != x[i].dst.mem.device_id)))
            return 0;
    return 1;
}

static zarr_status do_boxes(const zarr_box *boxes, uint64_t n, const void *pattern,
                            void *stream, zarr_error *err)
{
    struct box_item *x;
    struct port_lane *l;
    zarr_status st;

    if (n == 0)
        return ZARR_OK;
    if (!boxes_fit(boxes, n, pattern != NULL))
        return port_host->fail(err, ZARR_ERR_UNSUPPORTED,
                               PORT_NAME ": a box that it cannot copy");
    x = malloc((size_t)n * sizeof *x);
    if (!x)
        return port_no_memory(err);
    for (uint64_t i = 0; i < n; i++) {
        x[i] = (struct box_item){.box = &boxes[i],
                                 .dst = port_memory_place(&boxes[i].dst.mem)};
        if (!pattern)
            x[i].src = port_memory_place(&boxes[i].src.mem);
    }
    st = port_begin(stream, boxes[0].dst.mem.device_id, &l, err);
    if (st == ZARR_OK)
        st = port_end(stream, l, launch_all(l, x, n, pattern, err), err);
    free(x);
    return st;
}

zarr_status port_copy_boxes(void *self, const zarr_box *boxes, uint64_t n, void *stream,
                            zarr_error *err)
{
    (void)self;
    return do_boxes(boxes, n, NULL, stream, err);
}

zarr_status port_fill_boxes(void *self, const zarr_box *boxes, uint64_t n,
                            const void *pattern, void *stream, zarr_error *err)
{
    (void)self;
    return do_boxes(boxes, n, pattern, stream, err);
}

zarr_status port_copy_box(void *self, const zarr_box *box, void *stream, zarr_error *err)
{
    (void)self;
    return do_boxes(box, 1, NULL, stream, err);
}

zarr_status port_fill_box(void *self, const zarr_box *box, const void *pattern,
                          void *stream, zarr_error *err)
{
    (void)self;
    return do_boxes(box, 1, pattern, stream, err);
}

/* ---- runs -------------------- */

zarr_status port_copy_list(void *self, const zarr_memory *dst, const zarr_memory *src,
                           uint64_t n, void *stream, zarr_error *err)
{
    struct port_lane *l;
    zarr_status st;

    (void)self;
    if (n == 0)
        return ZARR_OK;
    st = port_begin(stream, port_reaches(dst) ? dst->device_id : src->device_id, &l, err);
    if (st != ZARR_OK)
        return st;
    return port_end(stream, l, port_copy(l, dst, src, n, err), err);
}

zarr_status port_copy_run(void *self, const zarr_memory *dst, const zarr_memory *src,
                          uint64_t bytes, void *stream, zarr_error *err)
{
    zarr_memory to = *dst;

    to.bytes = bytes;
    return port_copy_list(self, &to, src, 1, stream, err);
}
