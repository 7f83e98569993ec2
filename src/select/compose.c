/*
 * select/compose.c - makes a selection of a selection's result one selection of the
 * array, so that lazy views cost arithmetic and no data. Slices of slices stay slices. A
 * list in either one gives a list, and points in either one give points, as many as the
 * result has. Thread class: solo.
 */
#include "select/select_int.h"

#include <string.h>

static zarr_status compose_dim(struct zr_dim_sel *to, const struct zr_dim_sel *outer,
                               const struct zr_dim_sel *inner, zarr_error *err)
{
    uint64_t *list = NULL;

    to->result_dim = inner->result_dim;
    if (!outer->list && !inner->list) {
        int64_t step = 1;
        /* With two or more items the product is a distance inside the array. */
        if (inner->n > 1 && !zr_mul(outer->step, inner->step, &step))
            return zr_internal(err);
        zr_dim_sel_arith(to, inner->n, zr_dim_sel_at(outer, inner->start), step);
        return ZARR_OK;
    }
    if (inner->n < 2) { /* an outer list, with an inner index or nothing */
        uint64_t at = inner->n > 0 ? zr_dim_sel_at(outer, zr_dim_sel_at(inner, 0)) : 0;
        zr_dim_sel_arith(to, inner->n, at, 1);
        return ZARR_OK;
    }
    ZR_CHECK(zr_dim_sel_alloc_list(&list, inner->n, err));
    for (uint64_t i = 0; i < inner->n; i++)
        list[i] = zr_dim_sel_at(outer, zr_dim_sel_at(inner, i));
    zr_dim_sel_list(to, inner->n, list); /* moved */
    return ZARR_OK;
}

static zarr_status dims_of_dims(zarr_selection *s, const zarr_selection *outer,
                                const zarr_selection *inner, zarr_error *err)
{
    for (int32_t d = 0; d < s->ndim; d++) {
        const struct zr_dim_sel *o = &outer->dim[d];
        if (o->result_dim < 0)
            s->dim[d] = *o; /* one index: owns no list */
        else
            ZR_CHECK(compose_dim(&s->dim[d], o, &inner->dim[o->result_dim], err));
    }
    zr_selection_finish(s);
    return ZARR_OK;
}

static void copy_result_shape(zarr_selection *s, const zarr_selection *inner)
{
    s->result_ndim = inner->result_ndim;
    memcpy(s->result_shape, inner->result_shape, sizeof s->result_shape);
}

/* Computes the array coordinates of each point in the result of independent
 * dimensions. */
static zarr_status points_of_dims(zarr_selection *s, const zarr_selection *outer,
                                  const zarr_selection *inner, zarr_error *err)
{
    uint64_t *to;
    const uint64_t *from = inner->coords;

    copy_result_shape(s, inner);
    ZR_CHECK(zr_selection_new_coords(s, inner->n_points, err));
    to = s->coords;
    for (uint64_t p = 0; p < inner->n_points; p++, from += inner->ndim) {
        for (int32_t d = 0; d < s->ndim; d++) {
            const struct zr_dim_sel *o = &outer->dim[d];
            *to++ = zr_dim_sel_at(o, o->result_dim < 0 ? 0 : from[o->result_dim]);
        }
    }
    return ZARR_OK;
}

/* Copies the tuple of outer point number `flat`. Returns the place after it. */
static uint64_t *put_point(uint64_t *to, const zarr_selection *outer, uint64_t flat)
{
    memcpy(to, outer->coords + flat * (uint64_t)outer->ndim,
           (size_t)outer->ndim * sizeof *to);
    return to + outer->ndim;
}

static zarr_status points_of_points(zarr_selection *s, const zarr_selection *outer,
                                    const zarr_selection *inner, zarr_error *err)
{
    uint64_t *to;
    const uint64_t *from = inner->coords;

    copy_result_shape(s, inner);
    ZR_CHECK(zr_selection_new_coords(s, inner->n_points, err));
    to = s->coords;
    for (uint64_t p = 0; p < inner->n_points; p++) {
        uint64_t flat = 0;
        for (int32_t d = 0; d < inner->ndim; d++)
            flat = flat * inner->shape[d] + *from++;
        to = put_point(to, outer, flat);
    }
    return ZARR_OK;
}

/* Walks the inner selection in C order and picks the outer points it names. */
static zarr_status dims_of_points(zarr_selection *s, const zarr_selection *outer,
                                  const zarr_selection *inner, zarr_error *err)
{
    uint64_t at[ZARR_MAX_RANK] = {0};
    uint64_t *to;

    copy_result_shape(s, inner);
    ZR_CHECK(zr_selection_new_coords(s, inner->n_items, err));
    to = s->coords;
    for (uint64_t p = 0; p < inner->n_items; p++) {
        uint64_t flat = 0;
        int32_t d;
        for (d = 0; d < inner->ndim; d++)
            flat = flat * inner->shape[d] + zr_dim_sel_at(&inner->dim[d], at[d]);
        to = put_point(to, outer, flat);
        while (d-- > 0 && ++at[d] == inner->dim[d].n)
            at[d] = 0;
    }
    return ZARR_OK;
}

zarr_status zarr_selection_compose(zarr_selection **out, const zarr_selection *outer,
                                   const zarr_selection *inner, zarr_error *err)
{
    zarr_selection *s = NULL;
    zarr_status st = ZARR_OK;

    *out = NULL;
    ZR_NEED(outer, err);
    ZR_NEED(inner, err);
    if (!zr_selection_fits(inner, outer->result_ndim, outer->result_shape))
        ZR_FAIL(err, ZARR_ERR_INVALID,
                "inner selection was made for another shape than the outer one's result");
    ZR_TRY(zr_selection_new(&s, outer->ndim, outer->shape, err));
    if (outer->points)
        ZR_TRY(inner->points ? points_of_points(s, outer, inner, err)
                             : dims_of_points(s, outer, inner, err));
    else
        ZR_TRY(inner->points ? points_of_dims(s, outer, inner, err)
                             : dims_of_dims(s, outer, inner, err));
    *out = s; /* moved */
    s = NULL;
out:
    zarr_selection_free(s);
    return st;
}
