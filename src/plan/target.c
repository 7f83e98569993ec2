/*
 * plan/target.c - from a projection to strided boxes. A target pairs positions in a chunk
 * with positions in the result, one piece per dimension. Arithmetic pieces become one
 * box. For list pieces an odometer walks the outer lists, and each run of equal steps in
 * the innermost list becomes a box. Points become boxes by runs in the same way. This
 * file touches no element: it passes boxes to a function.
 * Thread class: plain functions.
 */
#include "plan/plan_int.h"

#include <string.h>

static bool pack_lists(struct zr_piece *to, struct zr_arena *arena)
{
    uint64_t *c = NULL, *r = NULL;

    if (!to->c_list)
        return true;
    c = zr_arena_alloc(arena, (size_t)to->n * sizeof *c);
    r = zr_arena_alloc(arena, (size_t)to->n * sizeof *r);
    if (!c || !r)
        return false;
    memcpy(c, to->c_list, (size_t)to->n * sizeof *c);
    memcpy(r, to->r_list, (size_t)to->n * sizeof *r);
    to->c_list = c;
    to->r_list = r;
    return true;
}

static bool pack_points(struct zr_target *out, const struct zr_projection *p,
                        struct zr_arena *arena)
{
    size_t n = (size_t)p->n_points, ndim = (size_t)p->ndim;
    uint64_t *c = zr_arena_alloc(arena, n * ndim * sizeof *c);
    uint64_t *r = zr_arena_alloc(arena, n * sizeof *r);

    if (!c || !r)
        return false;
    if (n * ndim != 0)
        memcpy(c, p->c_points, n * ndim * sizeof *c);
    if (n != 0)
        memcpy(r, p->r_points, n * sizeof *r);
    out->n_points = p->n_points;
    out->c_points = c;
    out->r_points = r;
    return true;
}

/* Packs one projection, without those after it. */
static bool pack_one(struct zr_target *out, const struct zr_projection *p,
                     struct zr_arena *arena)
{
    size_t ndim = (size_t)p->ndim, dims = p->kind == ZR_PROJ_DIMS ? ndim + 1 : 0;
    struct zr_piece *dim = NULL;
    uint64_t *chunk = NULL;

    *out = (struct zr_target){.kind = p->kind,
                              .ndim = p->ndim,
                              .arithmetic = p->arithmetic,
                              .n_items = p->n_items,
                              .part = p->part,
                              .many = p->next != NULL};
    dim = zr_arena_alloc(arena, dims * sizeof *dim + (ndim + 1) * sizeof *chunk);
    if (!dim)
        return false;
    chunk = (uint64_t *)(dim + dims);
    memcpy(chunk, p->chunk, ndim * sizeof *chunk);
    out->chunk = chunk;
    if (p->kind == ZR_PROJ_POINTS)
        return pack_points(out, p, arena);
    memcpy(dim, p->dim, ndim * sizeof *dim);
    for (size_t d = 0; d < ndim && !p->arithmetic; d++)
        if (!pack_lists(&dim[d], arena))
            return false;
    out->dim = dim;
    return true;
}

bool zr_target_pack(struct zr_target *out, const struct zr_projection *p,
                    struct zr_arena *arena)
{
    struct zr_target *last = out;

    if (!pack_one(out, p, arena))
        return false;
    for (p = p->next; p; p = p->next) {
        struct zr_target *t = zr_arena_alloc(arena, sizeof *t);

        if (!t || !pack_one(t, p, arena))
            return false;
        t->many = true;
        last->next = t;
        last = t;
    }
    return true;
}

/* Copies only the dimensions that there are: all that a projection has room for is
 * 6 KiB. */
static bool keep_one(struct zr_projection *to, const struct zr_projection *from,
                     struct zr_arena *arena)
{
    const size_t n = (size_t)from->ndim, head = offsetof(struct zr_projection, chunk),
                 tail = offsetof(struct zr_projection, n_points);
    struct zr_target packed;

    memcpy(to, from, head);
    memcpy(to->chunk, from->chunk, n * sizeof *to->chunk);
    memcpy(to->origin, from->origin, n * sizeof *to->origin);
    memcpy(to->shape, from->shape, n * sizeof *to->shape);
    memcpy(to->valid, from->valid, n * sizeof *to->valid);
    memcpy(to->dim, from->dim, n * sizeof *to->dim);
    memcpy((char *)to + tail, (const char *)from + tail, sizeof *to - tail);
    if (from->kind == ZR_PROJ_DIMS && from->arithmetic)
        return true;
    if (!pack_one(&packed, from, arena))
        return false;
    to->c_points = packed.c_points;
    to->r_points = packed.r_points;
    if (from->kind == ZR_PROJ_DIMS)
        memcpy(to->dim, packed.dim, n * sizeof *to->dim);
    return true;
}

bool zr_projection_keep(struct zr_projection *to, const struct zr_projection *from,
                        struct zr_arena *arena)
{
    if (!keep_one(to, from, arena))
        return false;
    for (from = from->next; from; from = from->next) {
        struct zr_projection *next = zr_arena_alloc(arena, sizeof *next);

        if (!next || !keep_one(next, from, arena))
            return false;
        to->next = next;
        to = next;
    }
    return true;
}

/* A walk over one target. */
struct walk {
    const struct zr_boxes *b;
    zr_box_fn fn;
    void *arg;
    zarr_error *err;
    int64_t chunk_stride[ZARR_MAX_RANK]; /* per level dimension; 0 without a chunk side */
    int64_t view_at, chunk_at;           /* offsets of the next box */
    zarr_box box;
};

static int64_t view_stride(const struct walk *w, int32_t result_dim)
{
    return result_dim < 0 ? 0 : w->b->view->stride[result_dim];
}

static void add_dim(struct walk *w, uint64_t n, int64_t chunk_stride, int64_t stride)
{
    zarr_box *box = &w->box;
    zarr_box_side *chunk = w->b->to_chunk ? &box->dst : &box->src;
    zarr_box_side *view = w->b->to_chunk ? &box->src : &box->dst;

    box->shape[box->ndim] = n;
    chunk->stride[box->ndim] = chunk_stride;
    view->stride[box->ndim] = stride;
    box->ndim++;
}

/* Number of the view's dimensions that belong to the selection, without the field's. */
static int32_t result_ndim(const struct walk *w)
{
    return w->b->view->ndim - (w->b->field ? w->b->field->ndim : 0);
}

static zarr_status emit(struct walk *w)
{
    zarr_box_side *chunk = w->b->to_chunk ? &w->box.dst : &w->box.src;
    zarr_box_side *view = w->b->to_chunk ? &w->box.src : &w->box.dst;
    const struct zr_field_view *field = w->b->field;
    int32_t ndim = w->box.ndim;
    zarr_status st = ZARR_OK;

    for (int32_t d = 0; field && d < field->ndim; d++)
        add_dim(w, field->shape[d], field->stride[d],
                w->b->view->stride[result_ndim(w) + d]);
    zr_box_side_init(chunk, &w->b->chunk_mem,
                     w->chunk_at + (field ? (int64_t)field->offset : 0));
    view->mem = w->b->view->base;
    view->mem.offset += (uint64_t)w->view_at;
    st = w->fn(w->arg, &w->box, w->err);
    w->box.ndim = ndim;
    return st;
}

static zarr_status walk_arithmetic(struct walk *w, const struct zr_target *t)
{
    for (int32_t d = 0; d < t->ndim; d++) {
        const struct zr_piece *p = &t->dim[d];
        int64_t vs = view_stride(w, p->result_dim);

        w->chunk_at += (int64_t)p->c0 * w->chunk_stride[d];
        w->view_at += (int64_t)p->r0 * vs;
        add_dim(w, p->n, p->c_step * w->chunk_stride[d], p->r_step * vs);
    }
    return emit(w);
}

/* Length of the run of equal steps in a list piece that begins at i. *c_step and *r_step
 * are in elements. */
static uint64_t list_run(const struct zr_piece *p, uint64_t i, int64_t *c_step,
                         int64_t *r_step)
{
    uint64_t n = 1;

    *c_step = *r_step = 0;
    if (i + 1 >= p->n)
        return 1;
    *c_step = (int64_t)(p->c_list[i + 1] - p->c_list[i]);
    *r_step = (int64_t)(p->r_list[i + 1] - p->r_list[i]);
    while (i + n < p->n &&
           (int64_t)(p->c_list[i + n] - p->c_list[i + n - 1]) == *c_step &&
           (int64_t)(p->r_list[i + n] - p->r_list[i + n - 1]) == *r_step)
        n++;
    return n;
}

/* Emits the runs of the innermost list dimension; the odometer holds all others fixed. */
static zarr_status walk_inner_list(struct walk *w, const struct zr_target *t, int32_t dim,
                                   int64_t chunk_at, int64_t view_at)
{
    const struct zr_piece *p = &t->dim[dim];
    int32_t base_dims = w->box.ndim;
    int64_t cs = w->chunk_stride[dim], vs = view_stride(w, p->result_dim);
    zarr_status st = ZARR_OK;

    if (!p->c_list || !p->r_list)
        return zr_internal(w->err);
    for (uint64_t i = 0; i < p->n && st == ZARR_OK;) {
        int64_t c_step = 0, r_step = 0;
        uint64_t n = list_run(p, i, &c_step, &r_step);

        w->box.ndim = base_dims;
        add_dim(w, n, c_step * cs, r_step * vs);
        w->chunk_at = chunk_at + (int64_t)p->c_list[i] * cs;
        w->view_at = view_at + (int64_t)p->r_list[i] * vs;
        st = emit(w);
        i += n;
    }
    w->box.ndim = base_dims;
    return st;
}

static zarr_status walk_lists(struct walk *w, const struct zr_target *t)
{
    int32_t list[ZARR_MAX_RANK] = {0}, n_lists = 0;
    uint64_t at[ZARR_MAX_RANK] = {0};
    int64_t chunk0 = 0, view0 = 0;
    zarr_status st = ZARR_OK;

    for (int32_t d = 0; d < t->ndim; d++) {
        const struct zr_piece *p = &t->dim[d];
        int64_t vs = view_stride(w, p->result_dim);

        if (p->n == 0)
            return ZARR_OK;
        if (p->c_list) {
            list[n_lists++] = d;
            continue;
        }
        chunk0 += (int64_t)p->c0 * w->chunk_stride[d];
        view0 += (int64_t)p->r0 * vs;
        add_dim(w, p->n, p->c_step * w->chunk_stride[d], p->r_step * vs);
    }
    if (n_lists == 0) { /* neither arithmetic nor lists: a bug of the projector */
        return zr_internal(w->err);
    }
    for (;;) {
        int64_t c = chunk0, v = view0;
        int32_t k = n_lists - 2;

        for (int32_t j = 0; j < n_lists - 1; j++) {
            const struct zr_piece *p = &t->dim[list[j]];

            c += (int64_t)p->c_list[at[j]] * w->chunk_stride[list[j]];
            v += (int64_t)p->r_list[at[j]] * view_stride(w, p->result_dim);
        }
        st = walk_inner_list(w, t, list[n_lists - 1], c, v);
        while (k >= 0 && ++at[k] == t->dim[list[k]].n)
            at[k--] = 0;
        if (k < 0 || st != ZARR_OK)
            return st;
    }
}

static int64_t point_chunk_offset(const struct walk *w, const struct zr_target *t,
                                  uint64_t i)
{
    int64_t at = 0;

    for (int32_t d = 0; d < t->ndim; d++)
        at += (int64_t)t->c_points[i * (uint64_t)t->ndim + (uint64_t)d] *
              w->chunk_stride[d];
    return at;
}

static int64_t point_view_offset(const struct walk *w, uint64_t flat)
{
    const struct zr_view *v = w->b->view;
    int64_t at = 0;

    for (int32_t d = result_ndim(w) - 1; d >= 0; d--) {
        at += (int64_t)(flat % v->shape[d]) * v->stride[d];
        flat /= v->shape[d];
    }
    return at;
}

static zarr_status walk_points(struct walk *w, const struct zr_target *t)
{
    zarr_status st = ZARR_OK;

    for (uint64_t i = 0; i < t->n_points && st == ZARR_OK;) {
        int64_t c0 = point_chunk_offset(w, t, i),
                v0 = point_view_offset(w, t->r_points[i]);
        int64_t c_step = 0, v_step = 0, c = c0, v = v0;
        uint64_t n = 1;

        while (i + n < t->n_points) {
            int64_t c2 = point_chunk_offset(w, t, i + n);
            int64_t v2 = point_view_offset(w, t->r_points[i + n]);

            if (n == 1) {
                c_step = c2 - c;
                v_step = v2 - v;
            } else if (c2 - c != c_step || v2 - v != v_step) {
                break;
            }
            c = c2;
            v = v2;
            n++;
        }
        w->box.ndim = 0;
        add_dim(w, n, c_step, v_step);
        w->chunk_at = c0;
        w->view_at = v0;
        st = emit(w);
        i += n;
    }
    return st;
}

zarr_status zr_target_boxes(const struct zr_boxes *b, const struct zr_target *t,
                            zr_box_fn fn, void *arg, zarr_error *err)
{
    const struct zr_program *p = b->program;
    const bool view_swapped = b->view->swap_bytes > 1;
    int64_t stride = (int64_t)(p && b->field ? p->item_bytes : b->item_bytes);
    struct walk w;

    memset(w.chunk_stride, 0, sizeof w.chunk_stride);
    w.b = b;
    w.fn = fn;
    w.arg = arg;
    w.err = err;
    w.view_at = w.chunk_at = 0;
    if (t->n_items == 0)
        return ZARR_OK;
    w.box.struct_size = sizeof w.box;
    w.box.ndim = 0;
    w.box.item_bytes = b->item_bytes;
    w.box.swap_bytes = p && (p->swap_bytes > 1) != view_swapped ? b->swap_unit : 0;
    for (int32_t s = p ? t->ndim - 1 : -1; s >= 0; s--) {
        w.chunk_stride[p->order[s]] = stride;
        stride *= (int64_t)p->stored_shape[s];
    }
    if (t->kind == ZR_PROJ_POINTS)
        return walk_points(&w, t);
    return t->arithmetic ? walk_arithmetic(&w, t) : walk_lists(&w, t);
}

void zr_target_borrow(struct zr_target *out, const struct zr_projection *p)
{
    *out = (struct zr_target){.kind = p->kind,
                              .ndim = p->ndim,
                              .arithmetic = p->arithmetic,
                              .n_items = p->n_items,
                              .chunk = p->chunk,
                              .dim = p->dim,
                              .n_points = p->n_points,
                              .c_points = p->c_points,
                              .r_points = p->r_points,
                              .part = p->part,
                              .many = p->next != NULL};
}

void zr_target_whole(struct zr_target *out, struct zr_piece *pieces, int32_t ndim,
                     const uint64_t *shape)
{
    uint64_t n = 1;

    for (int32_t d = 0; d < ndim; d++) {
        pieces[d] =
            (struct zr_piece){.n = shape[d], .c_step = 1, .r_step = 1, .result_dim = d};
        n *= shape[d]; /* no overflow: checked when the layout was made */
    }
    *out = (struct zr_target){.kind = ZR_PROJ_DIMS,
                              .ndim = ndim,
                              .arithmetic = true,
                              .n_items = n,
                              .dim = pieces};
}
