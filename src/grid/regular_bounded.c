/*
 * grid/regular_bounded.c - "zarrs.regular_bounded" (an extension of the zarrs crate).
 * Like "regular", but the last chunk of a dimension is stored only as long as the part
 * inside the array. So its size changes with the array's length, and a resize that
 * changes it is refused (zr_grid_keeps). Thread class: frozen.
 */
#include "grid/config_int.h"
#include "grid/grid_int.h"

static const struct zr_grid *inner(const void *self)
{
    return self;
}

static zarr_status bounded_parse(void **self, int32_t ndim, const uint64_t *shape,
                                 const char *json, zarr_error *err)
{
    return zr_grid_regular.parse(self, ndim, shape, json, err);
}

static zarr_status bounded_canonical(const void *self, char *text, size_t cap,
                                     size_t *text_bytes, zarr_error *err)
{
    return zr_grid_regular.canonical(self, text, cap, text_bytes, err);
}

static uint64_t bounded_n_chunks(const void *self, int32_t dim)
{
    return zr_grid_n_chunks(inner(self), dim);
}

static uint64_t bounded_locate(const void *self, int32_t dim, uint64_t at)
{
    return zr_grid_locate(inner(self), dim, at);
}

static void bounded_extent(const void *self, int32_t dim, uint64_t chunk,
                           uint64_t *origin, uint64_t *size)
{
    const struct zr_grid *g = inner(self);

    zr_grid_extent(g, dim, chunk, origin, size);
    if (*origin < g->shape[dim])
        *size = ZR_MIN(*size, g->shape[dim] - *origin);
}

static uint64_t bounded_n_equal(const void *self, int32_t dim, uint64_t chunk)
{
    const struct zr_grid *g = inner(self);
    uint64_t whole = g->shape[dim] / g->chunk_shape[dim];

    return chunk < whole ? whole - chunk : 1;
}

static void bounded_free(void *self)
{
    zr_grid_regular.free(self);
}

const zarr_grid_vtable zr_grid_bounded = {
    .struct_size = sizeof(zarr_grid_vtable),
    .name = "zarrs.regular_bounded",
    .parse = bounded_parse,
    .canonical = bounded_canonical,
    .n_chunks = bounded_n_chunks,
    .locate = bounded_locate,
    .extent = bounded_extent,
    .free = bounded_free,
    .n_equal = bounded_n_equal,
};
