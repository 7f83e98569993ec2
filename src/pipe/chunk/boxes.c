/*
 * pipe/chunk/boxes.c - copies and fills the boxes of a target between a chunk's block of
 * elements and the caller's tensor, and tells whether a chunk is in the tensor exactly as
 * a program leaves it. Most chunks of a request lie in the tensor as the chunk before
 * them, only elsewhere. What a copy needs is found out once for all of these: for chunks
 * of some kilobytes that takes longer than the copy.
 * Thread class: on the worker context.
 */
#include "pipe/chunk/chunk_int.h"

struct box_arg {
    const struct zr_work *w;
    const void *pattern; /* the fill value */
    bool crossing;       /* between host and other memory */
};

static zarr_status copy_one(void *arg, const zarr_box *box, zarr_error *err)
{
    const struct box_arg *a = arg;

    if (a->crossing)
        a->w->worker->stats.copies_decoded_host++;
    return zr_box_copy(a->w->io->engine->memory, box, NULL, &a->w->worker->copies, err);
}

static zarr_status fill_one(void *arg, const zarr_box *box, zarr_error *err)
{
    const struct box_arg *a = arg;

    return zr_box_fill(a->w->io->engine->memory, box, a->pattern, NULL,
                       &a->w->worker->copies, err);
}

/* ---- chunks that lie alike -------------------------------------------------------- */

/* Copies a box, and keeps its form for the next ones. */
static zarr_status copy_first(void *arg, const zarr_box *box, zarr_error *err)
{
    const struct box_arg *a = arg;
    struct zr_alike *alike = &a->w->worker->alike;

    alike->state = zr_box_form_make(&alike->form, a->w->io->engine->memory, box)
                       ? ZR_ALIKE_FORM
                       : ZR_ALIKE_ODD;
    return copy_one(arg, box, err);
}

/* Whether a target lies in its view as the one that was noted. */
static bool is_alike(const struct zr_alike *a, const struct zr_boxes *b,
                     const struct zr_target *t)
{
    const struct zr_program *p = b->program;

    if (a->state == ZR_ALIKE_NONE || a->view != b->view || a->to_chunk != b->to_chunk ||
        a->device_type != b->chunk_mem.device_type || a->ndim != t->ndim ||
        a->swap_bytes != p->swap_bytes)
        return false;
    for (int32_t d = 0; d < t->ndim; d++) {
        const struct zr_piece *x = &a->dim[d], *y = &t->dim[d];

        if (x->n != y->n || x->c_step != y->c_step || x->r_step != y->r_step ||
            x->result_dim != y->result_dim || a->order[d] != p->order[d] ||
            a->stored_shape[d] != p->stored_shape[d])
            return false;
    }
    return true;
}

static void alike_note(struct zr_alike *a, const struct zr_boxes *b,
                       const struct zr_target *t)
{
    const struct zr_program *p = b->program;
    int64_t stride = (int64_t)b->item_bytes;

    a->state = ZR_ALIKE_ONE;
    a->to_chunk = b->to_chunk;
    a->ndim = t->ndim;
    a->device_type = b->chunk_mem.device_type;
    a->swap_bytes = p->swap_bytes;
    a->view = b->view;
    for (int32_t d = 0; d < t->ndim; d++) {
        a->dim[d] = t->dim[d];
        a->view_stride[d] =
            t->dim[d].result_dim < 0 ? 0 : b->view->stride[t->dim[d].result_dim];
    }
    for (int32_t s = t->ndim - 1; s >= 0; s--) {
        a->order[s] = p->order[s];
        a->stored_shape[s] = p->stored_shape[s];
        a->chunk_stride[p->order[s]] = stride;
        stride *= (int64_t)p->stored_shape[s];
    }
}

/* Copies the box of such a target; false: that is left to the general way. */
static bool alike_copy(const struct zr_alike *a, const struct zr_boxes *b,
                       const struct zr_target *t, struct zr_copy_counters *c)
{
    zarr_memory view = b->view->base, chunk = b->chunk_mem;

    chunk.bytes += chunk.offset;
    for (int32_t d = 0; d < t->ndim; d++) {
        chunk.offset += t->dim[d].c0 * (uint64_t)a->chunk_stride[d];
        view.offset += t->dim[d].r0 * (uint64_t)a->view_stride[d];
    }
    return b->to_chunk ? zr_box_form_copy(&a->form, &chunk, &view, c)
                       : zr_box_form_copy(&a->form, &view, &chunk, c);
}

/* Chooses what copies the target's box. NULL: it is copied. */
static zr_box_fn move_alike(const struct zr_work *w, const struct zr_boxes *b,
                            const struct zr_target *t)
{
    struct zr_alike *a = &w->worker->alike;

    if (b->field || t->kind != ZR_PROJ_DIMS || !t->arithmetic ||
        t->ndim > ZR_ALIKE_DIMS || t->n_items == 0)
        return copy_one;
    if (!is_alike(a, b, t)) {
        alike_note(a, b, t);
        return copy_one;
    }
    if (a->state == ZR_ALIKE_ONE)
        return copy_first;
    if (a->state == ZR_ALIKE_FORM && alike_copy(a, b, t, &w->worker->copies))
        return NULL;
    a->state = ZR_ALIKE_ODD;
    return copy_one;
}

static zarr_status move_boxes(const struct zr_work *w, const struct zr_program *p,
                              const struct zr_target *t, const zarr_memory *block,
                              bool to_chunk, zarr_error *err)
{
    const struct zr_view *view = zr_target_view(w->io, t);
    const struct zr_layout *l = w->io->layout;
    const struct zr_field_view *field = w->io->field.on ? &w->io->field : NULL;
    struct zr_boxes b = {.item_bytes = field ? field->item_bytes : l->item_bytes,
                         .swap_unit = field ? field->swap_unit : l->swap_unit,
                         .field = field,
                         .program = p,
                         .view = view,
                         .chunk_mem = *block,
                         .to_chunk = to_chunk};
    struct box_arg arg = {.w = w};
    const zr_box_fn copy = move_alike(w, &b, t);

    if (!copy)
        return ZARR_OK;
    arg.crossing = zr_io_is_host(w->io, block->device_type) !=
                   zr_io_is_host(w->io, view->base.device_type);
    return zr_target_boxes(&b, t, copy, &arg, err);
}

/* ---- targets ---------------------------------------------------------------------- */

zarr_status zr_scatter_target(const struct zr_work *w, const struct zr_program *p,
                              const struct zr_target *t, const zarr_memory *block,
                              zarr_error *err)
{
    zarr_status st = ZARR_OK;

    for (; t && st == ZARR_OK; t = t->next)
        st = w->io->layout->variable ? zr_vlen_scatter(w, p, t, block, err)
                                     : move_boxes(w, p, t, block, false, err);
    return st;
}

zarr_status zr_gather_target(const struct zr_work *w, const struct zr_program *p,
                             const struct zr_target *t, const zarr_memory *block,
                             zarr_error *err)
{
    zarr_status st = ZARR_OK;

    for (; t && st == ZARR_OK; t = t->next)
        st = move_boxes(w, p, t, block, true, err);
    return st;
}

static const void *pattern_for(const struct zr_level *lv, uint32_t swap_bytes)
{
    return swap_bytes > 1 ? lv->fill_swapped : lv->fill;
}

/* Fills the values of a subarray one by one, because they differ. */
static zarr_status fill_each(const struct zr_work *w, const struct zr_target *t,
                             zarr_error *err)
{
    const struct zr_field_view *field = &w->io->field;
    const struct zr_view *view = zr_target_view(w->io, t);
    struct zr_view v = *view;
    struct zr_boxes b = {
        .item_bytes = field->item_bytes, .swap_unit = field->swap_unit, .view = &v};
    struct box_arg arg = {.w = w};
    zarr_status st = ZARR_OK;

    v.ndim -= field->ndim;
    for (uint64_t i = 0; i < field->n_values && st == ZARR_OK; i++) {
        uint64_t rest = i;
        int64_t at = 0;

        for (int32_t d = field->ndim - 1; d >= 0; d--) {
            at += (int64_t)(rest % field->shape[d]) * v.stride[v.ndim + d];
            rest /= field->shape[d];
        }
        v.base.offset = view->base.offset + (uint64_t)at;
        arg.pattern = field->fill + i * field->item_bytes;
        st = zr_target_boxes(&b, t, fill_one, &arg, err);
    }
    return st;
}

static zarr_status fill_field(const struct zr_work *w, const struct zr_target *t,
                              zarr_error *err)
{
    const struct zr_field_view *field = &w->io->field;
    struct zr_boxes b = {.item_bytes = field->item_bytes,
                         .swap_unit = field->swap_unit,
                         .field = field,
                         .view = zr_target_view(w->io, t)};
    struct box_arg arg = {.w = w, .pattern = field->fill};

    return field->all_alike ? zr_target_boxes(&b, t, fill_one, &arg, err)
                            : fill_each(w, t, err);
}

static zarr_status fill_part(const struct zr_work *w, const struct zr_level *lv,
                             const struct zr_target *t, zarr_error *err)
{
    const struct zr_layout *l = w->io->layout;
    struct zr_boxes b = {.item_bytes = l->item_bytes,
                         .swap_unit = l->swap_unit,
                         .view = zr_target_view(w->io, t)};
    struct box_arg arg = {.w = w};
    struct zr_vlen_item item;

    if (w->io->field.on)
        return fill_field(w, t, err);
    arg.pattern = pattern_for(lv, b.view->swap_bytes);
    if (l->variable) {
        ZR_CHECK(zr_vlen_fill(w, t, &item, err));
        arg.pattern = &item;
    }
    return zr_target_boxes(&b, t, fill_one, &arg, err);
}

zarr_status zr_fill_target(const struct zr_work *w, const struct zr_level *lv,
                           const struct zr_target *t, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    for (; t && st == ZARR_OK; t = t->next)
        st = fill_part(w, lv, t, err);
    return st;
}

void zr_fill_box(zarr_box *box, const struct zr_layout *l, const struct zr_program *p,
                 const zarr_memory *block)
{
    *box = (zarr_box){.struct_size = sizeof *box, .ndim = 1, .item_bytes = l->item_bytes};
    box->shape[0] = p->decoded_bytes / l->item_bytes;
    zr_box_side_init(&box->dst, block, 0);
    box->dst.stride[0] = (int64_t)l->item_bytes;
}

zarr_status zr_fill_block(const struct zr_work *w, const struct zr_level *lv,
                          const struct zr_program *p, const zarr_memory *block,
                          zarr_error *err)
{
    zarr_box box;

    zr_fill_box(&box, w->io->layout, p, block);
    return zr_box_fill(w->io->engine->memory, &box, pattern_for(lv, p->swap_bytes), NULL,
                       &w->worker->copies, err);
}

bool zr_target_is_direct(const struct zr_io *io, const struct zr_program *p,
                         const struct zr_target *t, zarr_memory *at)
{
    const struct zr_view *v = zr_target_view(io, t);
    int64_t stride = (int64_t)io->layout->item_bytes, offset = 0;

    if (io->no_direct || t->many || io->field.on || t->kind != ZR_PROJ_DIMS ||
        !t->arithmetic || v->base.device_type != p->decoded_device ||
        (p->swap_bytes > 1) != (v->swap_bytes > 1))
        return false;
    for (int32_t s = p->ndim - 1; s >= 0; s--) {
        const struct zr_piece *piece = &t->dim[p->order[s]];
        int64_t vs = piece->result_dim < 0 ? 0 : v->stride[piece->result_dim];

        if (piece->n != p->stored_shape[s] || piece->c0 != 0)
            return false;
        if (piece->n > 1 && (piece->c_step != 1 || piece->r_step * vs != stride))
            return false;
        offset += (int64_t)piece->r0 * vs;
        stride *= (int64_t)piece->n;
    }
    *at = v->base;
    at->offset += (uint64_t)offset;
    at->bytes = p->decoded_bytes;
    return true;
}
