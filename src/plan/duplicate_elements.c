/*
 * plan/duplicate_elements.c - which element counts where several go to one place of a
 * chunk: the last one. Lists of a device are done in any order, so what they write over
 * is left out, or goes in an earlier list. Thread class: pure.
 */
#include "plan/plan_int.h"

#include <stdlib.h>
#include <string.h>

/* ---- places that one selection repeats ------------------------------------------ */

/* A place, and the number of the element that goes there. */
struct placed {
    uint64_t at, number;
};

static int by_place(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;

    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

static bool is_rising(const struct placed *p, uint64_t n)
{
    for (uint64_t i = 1; i < n; i++)
        if (p[i].at <= p[i - 1].at)
            return false;
    return true;
}

/* Moves the last element of each place to the front, in the order that they had. Returns
 * their number. */
static uint64_t keep_last(struct placed *p, bool *last, uint64_t n)
{
    uint64_t left = 0;

    if (n == 0 || is_rising(p, n))
        return n;
    qsort(p, n, sizeof *p, by_place);
    for (uint64_t i = 0; i < n; i++)
        last[p[i].number] = i + 1 == n || p[i].at != p[i + 1].at;
    for (uint64_t i = 0; i < n; i++)
        if (last[i])
            p[left++].number = i;
    return left;
}

static bool alloc_placed(struct placed **p, bool **last, uint64_t n,
                         struct zr_arena *arena)
{
    *p = zr_arena_alloc(arena, (size_t)(n + 1) * sizeof **p);
    *last = zr_arena_alloc(arena, (size_t)(n + 1) * sizeof **last);
    return *p && *last;
}

static bool last_of_list(struct zr_piece *piece, struct zr_arena *arena)
{
    const size_t bytes = (size_t)(piece->n + 1) * sizeof(uint64_t);
    struct placed *p = NULL;
    bool *last = NULL;
    uint64_t *c = NULL, *r = NULL, left = 0;

    if (!alloc_placed(&p, &last, piece->n, arena))
        return false;
    for (uint64_t i = 0; i < piece->n; i++)
        p[i] = (struct placed){piece->c_list[i], i};
    left = keep_last(p, last, piece->n);
    if (left == piece->n)
        return true;
    c = zr_arena_alloc(arena, bytes);
    r = zr_arena_alloc(arena, bytes);
    if (!c || !r)
        return false;
    for (uint64_t i = 0; i < left; i++) {
        c[i] = piece->c_list[p[i].number];
        r[i] = piece->r_list[p[i].number];
    }
    piece->n = left;
    piece->c_list = c;
    piece->r_list = r;
    return true;
}

static bool last_of_piece(struct zr_piece *piece, struct zr_arena *arena)
{
    if (piece->n < 2)
        return true;
    if (piece->c_list)
        return last_of_list(piece, arena);
    if (piece->c_step == 0) {
        piece->r0 += (piece->n - 1) * (uint64_t)piece->r_step;
        piece->n = 1;
    }
    return true;
}

static bool last_of_dims(struct zr_target *t, struct zr_arena *arena)
{
    const size_t ndim = (size_t)t->ndim;
    struct zr_piece *dim = zr_arena_alloc(arena, (ndim + 1) * sizeof *dim);
    uint64_t n = 1;

    if (!dim)
        return false;
    memcpy(dim, t->dim, ndim * sizeof *dim);
    for (size_t d = 0; d < ndim; d++) {
        if (!last_of_piece(&dim[d], arena))
            return false;
        n *= dim[d].n; /* at most t->n_items */
    }
    t->dim = dim;
    t->n_items = n;
    return true;
}

/* Where a point is, counted in elements; `edge` is larger than any coordinate. */
static uint64_t point_place(const struct zr_target *t, uint64_t i, const uint64_t *edge)
{
    const uint64_t *c = t->c_points + i * (uint64_t)t->ndim;
    uint64_t at = 0;

    for (int32_t d = 0; d < t->ndim; d++)
        at = at * edge[d] + c[d]; /* inside of the chunk, whose elements have numbers */
    return at;
}

static bool last_of_points(struct zr_target *t, struct zr_arena *arena)
{
    const size_t ndim = (size_t)t->ndim, n = (size_t)t->n_points;
    uint64_t edge[ZARR_MAX_RANK] = {0}, *c = NULL, *r = NULL, left = 0;
    struct placed *p = NULL;
    bool *last = NULL;

    if (!alloc_placed(&p, &last, n, arena))
        return false;
    for (size_t i = 0; i < n * ndim; i++)
        edge[i % ndim] = ZR_MAX(edge[i % ndim], t->c_points[i] + 1);
    for (size_t i = 0; i < n; i++)
        p[i] = (struct placed){point_place(t, i, edge), i};
    left = keep_last(p, last, n);
    if (left == n)
        return true;
    c = zr_arena_alloc(arena, (left * ndim + 1) * sizeof *c);
    r = zr_arena_alloc(arena, (left + 1) * sizeof *r);
    if (!c || !r)
        return false;
    for (uint64_t i = 0; i < left; i++) {
        memcpy(c + i * ndim, t->c_points + p[i].number * ndim, ndim * sizeof *c);
        r[i] = t->r_points[p[i].number];
    }
    t->n_points = t->n_items = left;
    t->c_points = c;
    t->r_points = r;
    return true;
}

bool zr_target_last(struct zr_target *t, struct zr_arena *arena)
{
    if (t->kind == ZR_PROJ_POINTS)
        return last_of_points(t, arena);
    for (int32_t d = 0; d < t->ndim; d++)
        if (t->dim[d].c_list || (t->dim[d].c_step == 0 && t->dim[d].n > 1))
            return last_of_dims(t, arena);
    return true;
}

/* ---- several selections --------------------------------------------------------- */

enum {
    RANK_BLOCK = 256 /* a projection is compared with at most so many before it */
};

/* The lowest and the highest coordinate of a projection in each dimension. */
static void find_bounds(const struct zr_projection *p, uint64_t *low, uint64_t *high)
{
    for (int32_t d = 0; d < p->ndim; d++) {
        const struct zr_piece *piece = &p->dim[d];
        uint64_t end;

        if (p->kind == ZR_PROJ_POINTS) { /* these have no pieces */
            low[d] = 0;
            high[d] = UINT64_MAX;
            continue;
        }
        end = piece->c0 + (piece->n > 0 ? piece->n - 1 : 0) * (uint64_t)piece->c_step;
        low[d] = ZR_MIN(piece->c0, end);
        high[d] = ZR_MAX(piece->c0, end);
        if (!piece->c_list || piece->n == 0)
            continue;
        low[d] = high[d] = piece->c_list[0];
        for (uint64_t i = 1; i < piece->n; i++) {
            low[d] = ZR_MIN(low[d], piece->c_list[i]);
            high[d] = ZR_MAX(high[d], piece->c_list[i]);
        }
    }
}

static bool bounds_meet(const uint64_t *a, const uint64_t *b, int32_t ndim)
{
    for (int32_t d = 0; d < ndim; d++)
        if (a[d] > b[ndim + d] || b[d] > a[ndim + d])
            return false;
    return true;
}

bool zr_projection_ranks(const struct zr_projection *p, uint32_t **ranks, uint32_t *n,
                         struct zr_arena *arena)
{
    const size_t width = 2 * (size_t)p->ndim;
    uint64_t *bounds = NULL;
    uint32_t *rank = NULL, count = 0, first = 0, i = 0;

    *ranks = NULL;
    *n = 1;
    if (!p->next)
        return true;
    for (const struct zr_projection *q = p; q; q = q->next)
        count++;
    bounds = zr_arena_alloc(arena, (count * width + 1) * sizeof *bounds);
    *ranks = rank = zr_arena_alloc(arena, count * sizeof *rank);
    if (!bounds || !rank)
        return false;
    for (const struct zr_projection *q = p; q; q = q->next, i++) {
        const uint32_t block = i / RANK_BLOCK * RANK_BLOCK;
        uint64_t *own = bounds + i * width;

        if (i > 0 && i == block)
            first = *n; /* above all ranks so far */
        find_bounds(q, own, own + q->ndim);
        rank[i] = first;
        for (uint32_t k = block; k < i; k++)
            if (rank[k] >= rank[i] && bounds_meet(bounds + k * width, own, q->ndim))
                rank[i] = rank[k] + 1;
        *n = ZR_MAX(*n, rank[i] + 1);
    }
    return true;
}
