/*
 * select/project.c - the projector: an odometer over one axis per dimension, the last one
 * fastest, or a walk over the runs of a bucket of points. It is made from a selection and
 * a grid, or from a projection and the grid inside of its chunk. Both fill the same
 * axes, so an inner projection can be projected again. A projector of several selections
 * has one projector for each, and merges them (merge.c). Its memory is a few hundred
 * bytes for each dimension plus the coordinates given. Stepping it allocates nothing and
 * cannot fail. Thread class: solo.
 */
#include "select/select_int.h"

enum state {
    FRESH,
    RUNNING,
    DONE
};

struct zr_projector {
    const zarr_allocator *alloc;
    int32_t ndim;
    enum zr_projection_kind kind;
    enum state state;
    bool empty;      /* nothing is selected */
    bool arithmetic; /* all axes are */
    bool inner, permuted;
    bool merged;            /* `merge` has the projectors; the axes are not used */
    uint32_t part;          /* of its projections */
    struct zr_merge *merge; /* owned; NULL: never merged */
    uint64_t run;           /* points: the next run */
    uint8_t order[ZARR_MAX_RANK];
    struct zr_bucket points;
    struct zr_sorter sorter;
    struct zr_axis axis[]; /* ndim */
};

static zarr_status projector_new(struct zr_projector **out, const zarr_allocator *alloc,
                                 int32_t ndim, zarr_error *err)
{
    size_t bytes = sizeof **out + (size_t)ndim * sizeof(struct zr_axis);
    struct zr_projector *p = zr_calloc(alloc, 1, bytes);

    if (!p)
        return zr_fail_memory(err, bytes);
    p->alloc = alloc;
    p->ndim = ndim;
    p->empty = true;
    p->state = DONE;
    p->sorter.alloc = alloc;
    *out = p;
    return ZARR_OK;
}

void zr_project_free(struct zr_projector *p)
{
    if (!p)
        return;
    for (int32_t d = 0; d < p->ndim && p->sorter.has_sorted; d++)
        zr_bucket_deinit(&p->axis[d].list, p->alloc);
    if (p->sorter.has_sorted) {
        zr_bucket_deinit(&p->points, p->alloc);
        zr_sorter_deinit(&p->sorter);
    }
    if (p->merge)
        zr_merge_free(p->merge);
    zr_free(p->alloc, p);
}

static zarr_status axis_load_list(struct zr_projector *p, struct zr_axis *x, uint64_t n,
                                  const uint64_t *list, const uint64_t *result,
                                  zarr_error *err)
{
    struct zr_coords in = {.n = n, .rank = 1, .at = list, .result = result};

    x->listed = true;
    x->n = n;
    p->arithmetic = false;
    return zr_bucket_fill(&x->list, &p->sorter, x, &in, err);
}

/* ---- from a selection ----------------------------------------------------- */

static zarr_status load_selected_dims(struct zr_projector *p, const zarr_selection *s,
                                      zarr_error *err)
{
    p->kind = ZR_PROJ_DIMS;
    for (int32_t d = 0; d < p->ndim; d++) {
        const struct zr_dim_sel *sel = &s->dim[d];
        struct zr_axis *x = &p->axis[d];
        x->result_dim = sel->result_dim;
        if (sel->list)
            ZR_CHECK(axis_load_list(p, x, sel->n, sel->list, NULL, err));
        else
            zr_axis_set_arith(x, sel->n, sel->start, sel->step, 0, 1);
    }
    return ZARR_OK;
}

static zarr_status load_selected_points(struct zr_projector *p, const zarr_selection *s,
                                        zarr_error *err)
{
    struct zr_coords in = {.n = s->n_points, .rank = p->ndim, .at = s->coords};

    p->kind = ZR_PROJ_POINTS;
    p->arithmetic = false;
    return zr_bucket_fill(&p->points, &p->sorter, p->axis, &in, err);
}

static void axis_begin(struct zr_axis *x, const struct zr_grid *grid, int32_t d)
{
    x->grid = grid;
    x->dim = d;
    x->edge = grid->regular ? grid->chunk_shape[d] : 0;
    x->extent = grid->shape[d];
}

zarr_status zr_project_open(struct zr_projector **out, const zarr_allocator *alloc,
                            const struct zr_grid *grid, const zarr_selection *selection,
                            zarr_error *err)
{
    struct zr_projector *p = NULL;
    zarr_status st = ZARR_OK;

    *out = NULL;
    if (!zr_selection_fits(selection, grid->ndim, grid->shape))
        ZR_FAIL(err, ZARR_ERR_INVALID, "selection was made for an array of other shape");
    ZR_TRY(projector_new(&p, alloc, grid->ndim, err));
    for (int32_t d = 0; d < p->ndim; d++)
        axis_begin(&p->axis[d], grid, d);
    p->empty = selection->n_items == 0;
    p->arithmetic = true;
    if (!p->empty)
        ZR_TRY(selection->points ? load_selected_points(p, selection, err)
                                 : load_selected_dims(p, selection, err));
    if (p->sorter.has_sorted)
        zr_sorter_deinit(&p->sorter);
    zr_project_rewind(p);
    *out = p; /* moved */
    p = NULL;
out:
    zr_project_free(p);
    return st;
}

zarr_status zr_project_open_many(struct zr_projector **out, const zarr_allocator *alloc,
                                 const struct zr_grid *grid,
                                 const zarr_selection *const *selections, uint32_t n,
                                 zarr_error *err)
{
    struct zr_projector *p = NULL;
    zarr_status st = ZARR_OK;

    *out = NULL;
    if (n == 1)
        return zr_project_open(out, alloc, grid, selections[0], err);
    ZR_TRY(projector_new(&p, alloc, grid->ndim, err));
    ZR_TRY(zr_merge_new(&p->merge, n, alloc, err));
    for (uint32_t i = 0; i < n; i++) {
        struct zr_projector **slot = zr_merge_slot(p->merge, i);

        ZR_TRY(zr_project_open(slot, alloc, grid, selections[i], err));
        (*slot)->part = i;
    }
    p->merged = true;
    zr_merge_start(p->merge, n);
    *out = p; /* moved */
    p = NULL;
out:
    zr_project_free(p);
    return st;
}

/* ---- from a projection ---------------------------------------------------- */

static zarr_status load_outer_dims(struct zr_projector *p,
                                   const struct zr_projection *outer, zarr_error *err)
{
    p->kind = ZR_PROJ_DIMS;
    for (int32_t d = 0; d < p->ndim; d++) {
        const struct zr_piece *from = &outer->dim[p->order[d]];
        struct zr_axis *x = &p->axis[d];
        x->result_dim = from->result_dim;
        if (from->c_list)
            ZR_CHECK(axis_load_list(p, x, from->n, from->c_list, from->r_list, err));
        else
            zr_axis_set_arith(x, from->n, from->c0, from->c_step, from->r0, from->r_step);
    }
    return ZARR_OK;
}

static zarr_status load_outer_points(struct zr_projector *p,
                                     const struct zr_projection *outer, zarr_error *err)
{
    struct zr_coords in = {.n = outer->n_points,
                           .rank = p->ndim,
                           .at = outer->c_points,
                           .result = outer->r_points,
                           .order = p->permuted ? p->order : NULL};

    p->kind = ZR_PROJ_POINTS;
    p->arithmetic = false;
    return zr_bucket_fill(&p->points, &p->sorter, p->axis, &in, err);
}

/* Opens a projector for each selection that touches `outer`. */
static zarr_status reopen_merged(struct zr_projector *p,
                                 const struct zr_projection *outer, const uint64_t *clip,
                                 zarr_error *err)
{
    uint64_t edge[ZARR_MAX_RANK] = {0};
    uint32_t n = 0;

    for (const struct zr_projection *q = outer; q; q = q->next)
        n++;
    for (int32_t d = 0; d < p->ndim; d++)
        edge[d] = p->axis[d].edge;
    if (!p->merge || zr_merge_room(p->merge) < n) {
        zr_merge_free(p->merge);
        p->merge = NULL;
        ZR_CHECK(zr_merge_new(&p->merge, n, p->alloc, err));
    }
    n = 0;
    for (const struct zr_projection *q = outer; q; q = q->next) {
        struct zr_projector **slot = zr_merge_slot(p->merge, n++);
        struct zr_projection one = *q;

        one.next = NULL;
        ZR_CHECK(*slot ? zr_project_reopen_inner(*slot, &one, clip, err)
                       : zr_project_open_inner(slot, p->alloc, &one, edge,
                                               p->permuted ? p->order : NULL, clip, err));
    }
    p->merged = true;
    zr_merge_start(p->merge, n);
    return ZARR_OK;
}

zarr_status zr_project_reopen_inner(struct zr_projector *p,
                                    const struct zr_projection *outer,
                                    const uint64_t *clip, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    p->empty = true;
    p->merged = false;
    p->part = outer->part;
    if (!p->inner || outer->ndim != p->ndim)
        ZR_FAIL(err, ZARR_ERR_INVALID, "chunks of rank %d cannot cut a shard of rank %d",
                (int)p->ndim, (int)outer->ndim);
    if (outer->next)
        return reopen_merged(p, outer, clip, err);
    for (int32_t d = 0; d < p->ndim; d++) {
        struct zr_axis *x = &p->axis[d];
        uint64_t shape = outer->shape[p->order[d]];
        uint64_t valid = clip ? clip[p->order[d]] : outer->valid[p->order[d]];
        x->extent = ZR_MIN(shape, valid);
    }
    p->arithmetic = true;
    if (outer->n_items > 0) {
        ZR_TRY(outer->kind == ZR_PROJ_POINTS ? load_outer_points(p, outer, err)
                                             : load_outer_dims(p, outer, err));
        p->empty = false;
    }
out:
    zr_project_rewind(p);
    return st;
}

static zarr_status set_order(struct zr_projector *p, const uint8_t *order,
                             zarr_error *err)
{
    uint64_t seen = 0;

    for (int32_t d = 0; d < p->ndim; d++) {
        uint8_t from = order ? order[d] : (uint8_t)d;
        if (from >= p->ndim || seen >> from & 1)
            return zr_fail(err, ZARR_ERR_INVALID,
                           "order is not a permutation of %d dimensions", (int)p->ndim);
        seen |= (uint64_t)1 << from;
        p->order[d] = from;
        p->permuted |= from != d;
    }
    return ZARR_OK;
}

zarr_status zr_project_open_inner(struct zr_projector **out, const zarr_allocator *alloc,
                                  const struct zr_projection *outer,
                                  const uint64_t *inner_shape, const uint8_t *order,
                                  const uint64_t *clip, zarr_error *err)
{
    struct zr_projector *p = NULL;
    zarr_status st = ZARR_OK;

    *out = NULL;
    ZR_TRY(projector_new(&p, alloc, outer->ndim, err));
    p->inner = true;
    ZR_TRY(set_order(p, order, err));
    for (int32_t d = 0; d < p->ndim; d++) {
        if (inner_shape[d] == 0 || inner_shape[d] > INT64_MAX)
            ZR_FAIL(err, ZARR_ERR_INVALID, "dimension %d: chunk edge is %" PRIu64, (int)d,
                    inner_shape[d]);
        p->axis[d].edge = inner_shape[d];
    }
    ZR_TRY(zr_project_reopen_inner(p, outer, clip, err));
    *out = p; /* moved */
    p = NULL;
out:
    zr_project_free(p);
    return st;
}

/* ---- walking -------------------------------------------------------------- */

uint64_t zr_project_count(const struct zr_projector *p)
{
    uint64_t n = 1;

    if (p->merged)
        return zr_merge_count(p->merge);
    if (p->empty)
        return 0;
    if (p->kind == ZR_PROJ_POINTS)
        return p->points.n_runs;
    for (int32_t d = 0; d < p->ndim; d++)
        n = zr_mul_cap(n, zr_axis_count(&p->axis[d]));
    return n;
}

bool zr_project_count_box(uint64_t *n, const struct zr_grid *grid,
                          const zarr_selection *selection)
{
    uint64_t all;

    if (selection->points || !zr_selection_fits(selection, grid->ndim, grid->shape))
        return false;
    all = selection->n_items > 0;
    for (int32_t d = 0; d < grid->ndim && all > 0; d++) {
        const struct zr_dim_sel *sel = &selection->dim[d];
        struct zr_axis x = {0};

        if (sel->list)
            return false;
        axis_begin(&x, grid, d);
        zr_axis_set_arith(&x, sel->n, sel->start, sel->step, 0, 1);
        all = zr_mul_cap(all, zr_axis_count(&x));
    }
    *n = all;
    return true;
}

bool zr_project_is_of_points(const struct zr_projector *p)
{
    return !p->merged && !p->empty && p->kind == ZR_PROJ_POINTS;
}

void zr_project_rewind(struct zr_projector *p)
{
    p->state = p->empty ? DONE : FRESH;
    p->run = 0;
    if (p->merged)
        zr_merge_rewind(p->merge);
    if (p->empty || p->kind == ZR_PROJ_POINTS)
        return;
    for (int32_t d = 0; d < p->ndim; d++)
        zr_axis_first(&p->axis[d]);
}

static void fill_dims(const struct zr_projector *p, struct zr_projection *out)
{
    uint64_t n_items = 1;

    out->kind = ZR_PROJ_DIMS;
    out->whole = true;
    for (int32_t d = 0; d < p->ndim; d++) {
        const struct zr_axis *x = &p->axis[d];
        out->chunk[d] = x->chunk;
        out->origin[d] = x->origin;
        out->shape[d] = x->size;
        out->valid[d] = x->valid;
        out->dim[d] = x->piece;
        n_items = zr_mul_cap(n_items, x->piece.n);
        out->whole = out->whole && x->whole;
    }
    out->n_items = n_items;
    out->n_points = 0;
    out->c_points = NULL;
    out->r_points = NULL;
}

static void fill_points(const struct zr_projector *p, struct zr_projection *out)
{
    const struct zr_bucket *b = &p->points;
    uint64_t rank = (uint64_t)p->ndim, k = p->run, start = b->start.ptr[k];

    out->kind = ZR_PROJ_POINTS;
    for (int32_t d = 0; d < p->ndim; d++) {
        const struct zr_axis *x = &p->axis[d];
        uint64_t chunk = b->chunk.ptr[k * rank + (uint64_t)d];
        out->chunk[d] = chunk;
        if (x->edge) {
            out->origin[d] = chunk * x->edge;
            out->shape[d] = x->edge;
        } else {
            zr_grid_extent(x->grid, x->dim, chunk, &out->origin[d], &out->shape[d]);
        }
        out->valid[d] = zr_axis_valid(x, out->origin[d], out->shape[d]);
    }
    out->n_points = b->start.ptr[k + 1] - start;
    out->c_points = b->c.ptr + start * rank;
    out->r_points = b->r.ptr + start;
    out->n_items = out->n_points;
    out->whole = b->whole.ptr[k] != 0;
}

/* Moves to the next run, or the odometer by one; false at the end. */
static bool advance(struct zr_projector *p)
{
    if (p->kind == ZR_PROJ_POINTS)
        return ++p->run < p->points.n_runs;
    for (int32_t d = p->ndim - 1; d >= 0; d--) {
        if (zr_axis_next(&p->axis[d]))
            return true;
        zr_axis_first(&p->axis[d]);
    }
    return false;
}

bool zr_project_next(struct zr_projector *p, struct zr_projection *out)
{
    if (p->merged)
        return zr_merge_next(p->merge, out);
    if (p->state == RUNNING && !advance(p))
        p->state = DONE;
    if (p->state == DONE)
        return false;
    p->state = RUNNING;
    out->ndim = p->ndim;
    out->arithmetic = p->arithmetic;
    out->part = p->part;
    out->next = NULL;
    if (p->kind == ZR_PROJ_POINTS)
        fill_points(p, out);
    else
        fill_dims(p, out);
    out->full = out->whole;
    for (int32_t d = 0; d < out->ndim; d++)
        out->full = out->full && out->valid[d] == out->shape[d];
    return true;
}
