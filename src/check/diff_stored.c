/*
 * check/diff_stored.c - finds the chunks in which two arrays can differ. If whole arrays
 * with one grid and one fill value are compared, a chunk that neither has stored is
 * equal. So huge arrays with few chunks are compared by these chunks alone.
 * Thread class: plain functions.
 */
#include "check/check.h"

#include <string.h>

enum {
    DIFF_FEW_CHUNKS = 4096, /* grids of fewer chunks are not worth a listing */
    DIFF_SPARSE_PART = 4    /* if more than 1/4 of the grid is stored, boxes are faster */
};

static bool same_text(const char *a, const char *b)
{
    return a && b && zr_streq(a, b);
}

static uint64_t grid_chunks(const zarr_array *array)
{
    uint64_t counts[ZARR_MAX_RANK];

    zarr_array_chunk_counts(array, counts);
    return zr_product_cap(counts, (size_t)zarr_array_ndim(array));
}

struct stored_chunks {
    struct zr_coord_set *out;
    const int *cancel;
    zarr_status st;
    zarr_error *err;
};

static int add_stored_chunk(void *user, const zarr_chunk_info *chunk)
{
    struct stored_chunks *s = user;

    s->st = zr_coord_set_add(s->out, chunk->chunk, s->err);
    return s->st != ZARR_OK || zr_is_cancelled(s->cancel);
}

/* *few false: the store cannot list them. */
static zarr_status add_stored_chunks(struct zr_coord_set *out, zarr_array *array,
                                     const int *cancel, bool *few, zarr_error *err)
{
    struct stored_chunks s = {.out = out, .cancel = cancel, .err = err};
    zarr_error why = {0};
    const zarr_status st =
        zarr_array_chunk_list(array, ZARR_CHUNKS_OBJECTS, add_stored_chunk, &s, &why);

    if (st == ZARR_ERR_NO_MEMORY)
        return zr_pass(err, st, &why);
    if (s.st == ZARR_OK && zr_is_cancelled(cancel))
        return zr_fail(err, ZARR_ERR_CANCELLED, "the comparison was cancelled");
    *few = st == ZARR_OK;
    return s.st;
}

zarr_status zr_diff_stored(const struct zr_diff_pair *p, struct zr_coord_set *out,
                           bool *few, zarr_error *err)
{
    const zarr_diff_options *o = &p->d->opts;
    const zarr_array *a = p->array[0], *b = p->array[1];
    const uint64_t total = grid_chunks(a);
    bool same_fill = false;
    zarr_status st = ZARR_OK;

    *few = false;
    zr_coord_set_init(out, zarr_array_ndim(a), p->d->ctx->alloc);
    if (o->flags & ZARR_DIFF_NAN_DIFFERS || p->selection[0] || p->selection[1] ||
        total <= DIFF_FEW_CHUNKS ||
        !zarr_dtype_equal(zarr_array_dtype(a), zarr_array_dtype(b)) ||
        !same_text(zarr_array_chunk_grid(a), zarr_array_chunk_grid(b)))
        return ZARR_OK;
    ZR_TRY(zr_same_fill(a, b, &same_fill, err));
    if (!same_fill)
        goto out;
    ZR_TRY(add_stored_chunks(out, p->array[0], o->cancel, few, err));
    if (*few)
        ZR_TRY(add_stored_chunks(out, p->array[1], o->cancel, few, err));
    zr_coord_set_sort(out);
    *few = *few && out->n <= total / DIFF_SPARSE_PART;
out:
    return st;
}
