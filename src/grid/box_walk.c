/*
 * grid/box_walk.c - cuts a shape into boxes of bounded size that follow each other in C
 * order, for walks over arrays that are larger than memory. If one unit (chunk or shard)
 * fits, boxes are made of whole units, so that no chunk is decoded twice.
 * Thread class: solo.
 */
#include "grid/grid.h"

#include <string.h>

/* Dimension by dimension: a unit that is too large is cut, and a small one is repeated.
 */
static void choose_steps(struct zr_box_walk *b, const uint64_t *unit, uint64_t max_items)
{
    const size_t ndim = (size_t)b->ndim;
    uint64_t n;

    for (size_t d = 0; d < ndim; d++)
        b->step[d] = ZR_MIN(unit && unit[d] ? unit[d] : 1, b->shape[d]);
    n = zr_product_cap(b->step, ndim);
    for (size_t d = 0; d < ndim && n > max_items; d++) {
        const uint64_t rest = n == UINT64_MAX ? n : ZR_MAX(n / b->step[d], 1);

        b->step[d] = ZR_MAX(max_items / rest, 1);
        n = zr_product_cap(b->step, ndim);
    }
    for (size_t d = ndim; d-- > 0;) {
        const uint64_t times = ZR_MAX(max_items / ZR_MAX(n, 1), 1);

        b->step[d] = ZR_MIN(zr_mul_cap(b->step[d], times), b->shape[d]);
        if (b->step[d] < b->shape[d])
            break; /* boxes of cut rows are not joined along outer dimensions */
        n = zr_product_cap(b->step, ndim);
    }
}

void zr_box_walk_init(struct zr_box_walk *b, int32_t ndim, const uint64_t *shape,
                      const uint64_t *unit, uint64_t max_items)
{
    *b = (struct zr_box_walk){.ndim = ndim};
    memcpy(b->shape, shape, (size_t)ndim * sizeof *shape);
    b->done = zr_product_cap(shape, (size_t)ndim) == 0;
    if (!b->done)
        choose_steps(b, unit, ZR_MAX(max_items, 1));
}

/* The length of a step. It ends where the chunk begins that the step would divide, unless
 * that chunk begins with the box. */
static uint64_t box_length(const struct zr_box_walk *b, int32_t d)
{
    const uint64_t n = ZR_MIN(b->step[d], b->shape[d] - b->start[d]);
    const uint64_t end = b->start[d] + n, last = b->base[d] + end;
    uint64_t origin = last, size;

    if (end >= b->shape[d])
        return n;
    if (b->grid)
        zr_grid_extent(b->grid, d, zr_grid_locate(b->grid, d, last), &origin, &size);
    else if (b->unit[d] > 0)
        origin = last - last % b->unit[d];
    return origin > b->base[d] + b->start[d] ? origin - b->base[d] - b->start[d] : n;
}

bool zr_box_walk_next(struct zr_box_walk *b)
{
    int32_t d = b->ndim - 1;

    if (b->done)
        return false;
    for (; b->begun && d >= 0; d--) {
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
        b->count[d] = box_length(b, d);
    b->n_items = zr_product_cap(b->count, (size_t)b->ndim);
    return true;
}

void zr_box_walk_at(struct zr_box_walk *b, const uint64_t *number)
{
    b->begun = true;
    for (int32_t d = 0; d < b->ndim; d++) {
        b->start[d] = number[d] * b->step[d];
        b->count[d] = ZR_MIN(b->step[d], b->shape[d] - b->start[d]);
    }
    b->n_items = zr_product_cap(b->count, (size_t)b->ndim);
}
