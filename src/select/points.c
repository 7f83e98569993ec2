/*
 * select/points.c - selections by coordinate tuples, and by a mask of the array's shape,
 * which is another form of a list of tuples. In one dimension a tuple is an index, so
 * both become an orthogonal list, which projects faster and may even be arithmetic.
 * Thread class: solo while made, then frozen.
 */
#include "select/select_int.h"

#include <string.h>

zarr_status zr_selection_new_coords(zarr_selection *s, uint64_t n, zarr_error *err)
{
    uint64_t all = 0;

    if (!zr_mul(n, (uint64_t)s->ndim, &all))
        return zr_fail_memory(err, UINT64_MAX);
    s->points = true;
    s->n_points = n;
    s->n_items = n;
    return zr_dim_sel_alloc_list(&s->coords, all, err);
}

/* The result shape of points: as given, or one dimension. */
static zarr_status set_result_shape(zarr_selection *s, uint64_t n, int32_t ndim,
                                    const uint64_t *shape, zarr_error *err)
{
    uint64_t all = 0;
    zarr_status st = zr_check_shape(ndim, shape, err);

    if (st != ZARR_OK)
        return st;
    s->result_ndim = ndim ? ndim : 1;
    s->result_shape[0] = n;
    for (int32_t d = 0; d < ndim; d++)
        s->result_shape[d] = shape[d];
    if (!zr_product_u64(s->result_shape, (size_t)s->result_ndim, &all) || all != n)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "result shape has not the %" PRIu64 " elements of the points", n);
    return ZARR_OK;
}

static zarr_status set_coords(zarr_selection *s, uint64_t n, const int64_t *coords,
                              zarr_error *err)
{
    uint64_t i = 0;

    for (uint64_t p = 0; p < n; p++) {
        for (int32_t d = 0; d < s->ndim; d++, i++) {
            if (!zr_fix_index(coords[i], s->shape[d], &s->coords[i]))
                return zr_fail(err, ZARR_ERR_INVALID,
                               "point %" PRIu64 ": dimension %d: index %" PRId64
                               " is out of bounds for length %" PRIu64,
                               p, (int)d, coords[i], s->shape[d]);
        }
    }
    return ZARR_OK;
}

/* NOLINT(function-size): public; two shapes and the points, a struct would say no more */
zarr_status zarr_selection_points(zarr_selection **out, int32_t ndim,
                                  const uint64_t *shape, uint64_t n_points,
                                  const int64_t *coords, int32_t result_ndim,
                                  const uint64_t *result_shape, zarr_error *err)
{
    zarr_selection *s = NULL;
    zarr_status st = ZARR_OK;

    *out = NULL;
    ZR_TRY(zr_selection_new(&s, ndim, shape, err));
    if (n_points > 0 && ndim > 0 && !coords)
        ZR_FAIL(err, ZARR_ERR_INVALID, "no coordinates were given");
    ZR_TRY(set_result_shape(s, n_points, result_ndim, result_shape, err));
    if (ndim == 1 && s->result_ndim == 1) {
        zarr_dim_selection list = {
            .kind = ZARR_DIM_LIST, .list = coords, .n_list = n_points};
        st = zarr_selection_dims(out, 1, shape, 1, &list, err);
        goto out;
    }
    ZR_TRY(zr_selection_new_coords(s, n_points, err));
    ZR_TRY(set_coords(s, n_points, coords, err));
    *out = s; /* moved */
    s = NULL;
out:
    zarr_selection_free(s);
    return st;
}

/* ---- masks ---------------------------------------------------------------- */

/* Writes the tuples of all set bytes in C order. */
static void mask_coords(zarr_selection *s, const uint8_t *mask, uint64_t n)
{
    uint64_t at[ZARR_MAX_RANK] = {0};
    uint64_t *to = s->coords;

    for (uint64_t i = 0; i < n; i++) {
        int32_t d = s->ndim;
        if (mask[i]) {
            memcpy(to, at, (size_t)s->ndim * sizeof *to);
            to += s->ndim;
        }
        while (d-- > 0 && ++at[d] == s->shape[d])
            at[d] = 0;
    }
}

zarr_status zarr_selection_mask(zarr_selection **out, int32_t ndim, const uint64_t *shape,
                                const uint8_t *mask, zarr_error *err)
{
    zarr_selection *s = NULL;
    uint64_t n = 0, n_points = 0;
    zarr_status st = ZARR_OK;

    *out = NULL;
    ZR_TRY(zr_selection_new(&s, ndim, shape, err));
    if (!zr_product_u64(shape, (size_t)ndim, &n) || (n > 0 && !mask))
        ZR_FAIL(err, ZARR_ERR_INVALID, "the mask is missing, or cannot be");
    if (ndim == 1) {
        zarr_dim_selection dim = {.kind = ZARR_DIM_MASK, .mask = mask, .n_list = n};
        st = zarr_selection_dims(out, 1, shape, 1, &dim, err);
        goto out;
    }
    for (uint64_t i = 0; i < n; i++)
        n_points += mask[i] != 0;
    ZR_TRY(set_result_shape(s, n_points, 0, NULL, err));
    ZR_TRY(zr_selection_new_coords(s, n_points, err));
    mask_coords(s, mask, n);
    *out = s; /* moved */
    s = NULL;
out:
    zarr_selection_free(s);
    return st;
}
