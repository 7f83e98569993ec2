/*
 * check/diff_memory.c - refuses a comparison if the context's limit of memory has no room
 * for a chunk of an array. The metadata tells what a chunk needs, so the refusal comes
 * before anything is compared, and names what suffices for all arrays.
 * Thread class: plain function.
 */
#include "array/array.h"
#include "check/check.h"

#include <string.h>

/* Whether the elements of two arrays are compared: not if their shapes or data types
 * differ, and not if there are none. */
static bool are_compared(const struct zr_diff *d, zarr_array *const array[2])
{
    const size_t ndim = (size_t)zarr_array_ndim(array[0]);

    if (zr_product_cap(zarr_array_shape(array[0]), ndim) == 0 ||
        (!d->opts.field &&
         !zarr_dtype_equal(zarr_array_dtype(array[0]), zarr_array_dtype(array[1]))))
        return false;
    return d->opts.selection_a || d->opts.selection_b ||
           (zarr_array_ndim(array[0]) == zarr_array_ndim(array[1]) &&
            (ndim == 0 || memcmp(zarr_array_shape(array[0]), zarr_array_shape(array[1]),
                                 ndim * sizeof(uint64_t)) == 0));
}

/* Checks an array that is open. *need: the most bytes of any array until then. */
static zarr_status check_array(zarr_array *array, uint64_t *need, zarr_status *worst,
                               zarr_error *err)
{
    const uint64_t before = *need;
    zarr_error why = {0};
    const zarr_status st =
        zr_array_memory_check(array, ZARR_DEVICE_CPU, NULL, false, need, &why);

    if (st != ZARR_ERR_LIMIT)
        return zr_pass(err, st, &why);
    if (*need > before)
        *worst = zr_pass(err, zr_path_prefix(&why, st, zarr_array_path(array)), &why);
    return ZARR_OK;
}

/* Checks a pair. The comparison itself reports an array that cannot be opened. */
static zarr_status check_pair(struct zr_diff *d, const char *const below[2],
                              uint64_t *need, zarr_status *worst, zarr_error *err)
{
    const zarr_array_open_options opts = {.struct_size = sizeof opts,
                                          .cancel = d->opts.cancel};
    zarr_array *array[2] = {NULL, NULL};
    zarr_status st = ZARR_OK;
    struct zr_str path;

    zr_str_init(&path, d->ctx->alloc);
    for (int side = 0; side < 2; side++) {
        zr_str_clear(&path);
        ZR_TRY(zr_path_key(&path, d->top[side], below[side], err));
        if (zarr_array_open(&array[side], d->store[side], zr_str_text(&path), &opts,
                            NULL) != ZARR_OK)
            goto out;
    }
    for (int side = 0; side < 2 && are_compared(d, array); side++)
        ZR_TRY(check_array(array[side], need, worst, err));
out:
    zarr_array_free(array[0]);
    zarr_array_free(array[1]);
    zr_str_deinit(&path);
    return st;
}

int zr_diff_next(const struct zr_nodes *a, size_t i, const struct zr_nodes *b, size_t k)
{
    if (i == a->n || k == b->n)
        return i == a->n ? 1 : -1;
    return zr_path_compare(a->item[i].path, b->item[k].path);
}

zarr_status zr_diff_check_memory(struct zr_diff *d, const struct zr_nodes *a,
                                 const struct zr_nodes *b, zarr_error *err)
{
    zarr_status st = ZARR_OK, worst = ZARR_OK;
    uint64_t need = 0;
    size_t i = 0, k = 0;

    if (d->ctx->engine.memory_limit == 0)
        return ZARR_OK;
    while (i < a->n && k < b->n) {
        const int order = zr_diff_next(a, i, b, k);
        const char *const below[2] = {a->item[i].path, b->item[k].path};

        if (order == 0 && a->item[i].kind == ZARR_NODE_ARRAY &&
            b->item[k].kind == ZARR_NODE_ARRAY)
            ZR_TRY(check_pair(d, below, &need, &worst, err));
        ZR_TRY(zr_cancel_check(d->opts.cancel, err));
        i += order <= 0;
        k += order >= 0;
    }
    st = worst;
out:
    return st;
}
