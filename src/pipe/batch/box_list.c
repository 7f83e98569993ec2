/*
 * pipe/batch/box_list.c - the boxes of many chunks, collected and copied in few calls on
 * the stream of a flow. A list is large, so its memory comes from the pool and is used
 * again. Thread class: one thread.
 */
#include "pipe/batch/batch_int.h"

enum {
    LIST_BOXES = 1024
};

zarr_status zr_box_list_open(struct zr_box_list *l, struct zr_flow *flow, bool to_chunk,
                             zarr_error *err)
{
    const struct zr_engine *engine = flow->w.io->engine;
    const uint64_t bytes = LIST_BOXES * sizeof *l->box;
    void *box = NULL;

    *l = (struct zr_box_list){.flow = flow, .to_chunk = to_chunk};
    ZR_CHECK(zr_pool_take(engine->pool, ZARR_DEVICE_CPU, 0, bytes, &l->block, err));
    ZR_CHECK(zr_mem_host_ptr(engine->memory, &l->block, bytes, &box, err));
    l->box = box;
    return ZARR_OK;
}

zarr_status zr_box_list_send(struct zr_box_list *l, zarr_error *err)
{
    struct zr_flow *f = l->flow;
    const uint32_t n = l->n;

    l->n = 0;
    if (l->pattern)
        return zr_box_fill_list(f->w.io->engine->memory, l->box, n, l->pattern,
                                &f->stream, &f->w.worker->copies, err);
    return zr_box_copy_list(f->w.io->engine->memory, l->box, n, &f->stream,
                            &f->w.worker->copies, err);
}

static zarr_status box_list_add(void *arg, const zarr_box *box, zarr_error *err)
{
    struct zr_box_list *l = arg;

    l->flow->w.worker->stats.copies_decoded_host +=
        !l->pattern && zr_io_is_host(l->flow->w.io, box->dst.mem.device_type) !=
                           zr_io_is_host(l->flow->w.io, box->src.mem.device_type);
    l->box[l->n++] = *box;
    return l->n == LIST_BOXES ? zr_box_list_send(l, err) : ZARR_OK;
}

zarr_status zr_box_list_target(struct zr_box_list *l, const struct zr_program *p,
                               const struct zr_target *t, const zarr_memory *block,
                               zarr_error *err)
{
    const struct zr_io *io = l->flow->w.io;
    const struct zr_field_view *field = io->field.on ? &io->field : NULL;
    struct zr_boxes b = {.item_bytes = field ? field->item_bytes : io->layout->item_bytes,
                         .swap_unit = field ? field->swap_unit : io->layout->swap_unit,
                         .field = field,
                         .program = p,
                         .chunk_mem = *block,
                         .to_chunk = l->to_chunk};
    zarr_status st = ZARR_OK;

    for (; t && st == ZARR_OK; t = t->next) {
        b.view = zr_target_view(io, t);
        st = zr_target_boxes(&b, t, box_list_add, l, err);
    }
    return st;
}

static zarr_status fill_with(struct zr_box_list *l, const void *pattern, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    if (l->pattern != pattern)
        st = zr_box_list_send(l, err);
    l->pattern = pattern;
    return st;
}

zarr_status zr_box_list_block(struct zr_box_list *l, const struct zr_level *lv,
                              const struct zr_program *p, const zarr_memory *block,
                              zarr_error *err)
{
    zarr_box box;

    ZR_CHECK(fill_with(l, p->swap_bytes > 1 ? lv->fill_swapped : lv->fill, err));
    zr_fill_box(&box, l->flow->w.io->layout, p, block);
    return box_list_add(l, &box, err);
}

zarr_status zr_box_list_fill(struct zr_box_list *l, const struct zr_level *lv,
                             const struct zr_target *t, zarr_error *err)
{
    const struct zr_io *io = l->flow->w.io;
    struct zr_boxes b = {.item_bytes = io->layout->item_bytes,
                         .swap_unit = io->layout->swap_unit};

    for (; t; t = t->next) {
        const struct zr_view *view = zr_target_view(io, t);
        const void *pattern = view->swap_bytes > 1 ? lv->fill_swapped : lv->fill;

        ZR_CHECK(fill_with(l, pattern, err));
        b.view = view;
        ZR_CHECK(zr_target_boxes(&b, t, box_list_add, l, err));
    }
    return ZARR_OK;
}

void zr_box_list_close(struct zr_box_list *l)
{
    if (l->flow)
        zr_pool_give(l->flow->w.io->engine->pool, &l->block);
}
