/*
 * grid/coord_set.c - a set of coordinates, of chunks or of boxes, in C order.
 * Thread class: solo.
 */
#include "grid/grid.h"

#include <stdlib.h>
#include <string.h>

/* A row is the rank and then the coordinates, because qsort() passes nothing else. */
static int compare_rows(const void *a, const void *b)
{
    const uint64_t *p = a, *q = b;

    for (uint64_t d = 1; d <= p[0]; d++)
        if (p[d] != q[d])
            return p[d] < q[d] ? -1 : 1;
    return 0;
}

void zr_coord_set_init(struct zr_coord_set *s, int32_t ndim, const zarr_allocator *alloc)
{
    *s = (struct zr_coord_set){.ndim = ndim, .alloc = alloc};
}

void zr_coord_set_deinit(struct zr_coord_set *s)
{
    zr_free(s->alloc, s->row);
    *s = (struct zr_coord_set){0};
}

void zr_coord_set_sort(struct zr_coord_set *s)
{
    const size_t width = (size_t)s->ndim + 1;
    size_t n = 0;

    if (s->n > 1)
        qsort(s->row, s->n, width * sizeof *s->row, compare_rows);
    for (size_t i = 0; i < s->n; i++) {
        const uint64_t *row = s->row + i * width;

        if (n == 0 || compare_rows(s->row + (n - 1) * width, row) != 0)
            memmove(s->row + n++ * width, row, width * sizeof *row);
    }
    s->n = n;
}

zarr_status zr_coord_set_add(struct zr_coord_set *s, const uint64_t *at, zarr_error *err)
{
    const size_t ndim = (size_t)s->ndim, width = ndim + 1;
    const size_t bytes = ndim * sizeof *at;

    /* The boxes of neighbouring chunks are often the same. */
    if (s->n && memcmp(s->row + (s->n - 1) * width + 1, at, bytes) == 0)
        return ZARR_OK;
    if (s->n == s->cap) {
        zr_coord_set_sort(s); /* after this there may be few */
        if (s->n >= s->cap / 2)
            ZR_CHECK(zr_grow(s->alloc, &s->row, &s->cap, s->n + 1, width * sizeof *s->row,
                             err));
    }
    s->row[s->n * width] = ndim;
    memcpy(s->row + s->n++ * width + 1, at, bytes);
    return ZARR_OK;
}
