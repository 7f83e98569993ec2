/**
 * @file
 * Selections: which elements of an array a call reads or writes.
 */
#ifndef ZARRC_SELECTION_H
#define ZARRC_SELECTION_H

#include <zarrc/base.h>
#include <zarrc/error.h>
#include <zarrc/types.h>

ZARR_BEGIN_DECLS

/** How a dimension is selected. */
enum {
    ZARR_DIM_ALL = 0, /**< the whole dimension */
    /** from `start` up to but not including `stop`, in steps of `step`, as a slice of
     * Python: values beyond the ends are clipped, and `step` may be negative */
    ZARR_DIM_SLICE = 1,
    /** the index `start`. The result does not have this dimension. A negative index
     * counts from the end */
    ZARR_DIM_INDEX = 2,
    /** the `n_list` indexes of `list`, in any order. A negative index counts from the
     * end. Indexes may repeat; a write then stores the last of the elements for that
     * index */
    ZARR_DIM_LIST = 3,
    /** the indexes whose byte in `mask` is not zero; `n_list` is the dimension's length
     */
    ZARR_DIM_MASK = 4
};

/** In place of `start`, `stop` or `step`: leaves it out, as x[::2] of Python does. */
#define ZARR_SLICE_DEFAULT INT64_MIN

/** What is selected of one dimension. `list` and `mask` are borrowed for the call. */
typedef struct zarr_dim_selection {
    uint32_t kind, reserved; /**< `kind`: one of ZARR_DIM_* */
    /** slice or index. `step` 0 means 1. `stop` 0 means the index 0; ZARR_SLICE_DEFAULT
     * means the end */
    int64_t start, stop, step;
    const int64_t *list; /**< indexes */
    const uint8_t *mask; /**< one byte for each index of the dimension */
    uint64_t n_list;     /**< how many entries `list` or `mask` has */
} zarr_dim_selection;

/**
 * Selects along each dimension independently. Slices and indexes work as in NumPy (basic
 * selection). Lists and masks work as `oindex` of zarr-python (orthogonal selection). The
 * result has the dimensions of the array except those with ZARR_DIM_INDEX.
 *
 * @param out receives the selection; owned: zarr_selection_free()
 * @param ndim number of dimensions of the array
 * @param shape shape of the array in elements, `ndim` entries, each below 2^63
 * @param n_dims how many entries `dims` has, at most `ndim`. The call selects all of each
 * further dimension
 * @param dims what to select along each dimension
 * @retval ZARR_ERR_INVALID the number of dimensions, an index or the length of a mask is
 * wrong; the message names the dimension
 * @see zarr_selection_parse(), zarr_selection_box()
 */
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_selection_dims(zarr_selection **out, int32_t ndim, const uint64_t *shape,
                    int32_t n_dims, const zarr_dim_selection *dims, zarr_error *err);

/**
 * Selects a box of neighbouring elements. The result has the shape `count`.
 * @param out receives the selection; owned: zarr_selection_free()
 * @param ndim,shape number of dimensions, and shape of the array in elements
 * @param start first index along each dimension, `ndim` entries
 * @param count how many elements along each dimension, `ndim` entries
 * @retval ZARR_ERR_INVALID the box reaches beyond the array; the message names the
 * dimension
 * @see zarr_selection_dims()
 */
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_selection_box(zarr_selection **out, int32_t ndim, const uint64_t *shape,
                   const uint64_t *start, const uint64_t *count, zarr_error *err);

/**
 * Selects single elements (points) by their coordinates, as `vindex` of zarr-python. If a
 * point repeats, a write stores the last of its elements.
 * @param out receives the selection; owned: zarr_selection_free()
 * @param ndim,shape number of dimensions, and shape of the array in elements
 * @param n_points how many points there are
 * @param coords coordinates of all points, one point after the other: `coords`[p * `ndim`
 * + d] is the index of point p along dimension d. A negative index counts from the end.
 * Borrowed for the call
 * @param result_ndim,result_shape number of dimensions and shape of the result, which
 * must have `n_points` elements; `result_ndim` 0: one dimension of length `n_points`
 * @retval ZARR_ERR_INVALID a coordinate is outside of the array, or the shape of the
 * result does not fit
 */
ZARR_API ZARR_MUST_CHECK zarr_status
/* NOLINT(function-size): two shapes and the points, a struct would say no more */
zarr_selection_points(zarr_selection **out, int32_t ndim, const uint64_t *shape,
                      uint64_t n_points, const int64_t *coords, int32_t result_ndim,
                      const uint64_t *result_shape, zarr_error *err);

/**
 * Selects the elements whose byte in a mask is not zero. The result has one dimension,
 * with the selected elements in C order.
 * @param out receives the selection; owned: zarr_selection_free()
 * @param ndim,shape number of dimensions, and shape of the array in elements
 * @param mask one byte for each element of the array, in C order; borrowed for the call
 * @retval ZARR_ERR_INVALID `mask` is NULL, or the array has too many elements
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_selection_mask(zarr_selection **out,
                                                         int32_t ndim,
                                                         const uint64_t *shape,
                                                         const uint8_t *mask,
                                                         zarr_error *err);

/**
 * Makes a selection from text. The text is a basic or orthogonal selection in the syntax
 * of Python, such as "0:10, ::2, -1, [3,5,7], ...". "", "()" and "..." select all
 * elements. The whole text may be in brackets, unless it has only numbers: "[3,5]" is a
 * list of two indexes of the first dimension. "3,5" and "[3,5,...]" select one index
 * along each of two dimensions.
 * @param out receives the selection; owned: zarr_selection_free()
 * @param ndim,shape number of dimensions, and shape of the array in elements
 * @param text the selection
 * @retval ZARR_ERR_INVALID the text is wrong, or does not fit the shape; the message
 * names the dimension and the part of the text
 * @see zarr_selection_dims(), zarr_selection_shape()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_selection_parse(zarr_selection **out,
                                                          int32_t ndim,
                                                          const uint64_t *shape,
                                                          const char *text,
                                                          zarr_error *err);

/**
 * Selects from the result of another selection. In terms of Python, x[outer][inner]
 * becomes one selection of the array x.
 * @param out receives the selection; owned: zarr_selection_free()
 * @param outer a selection of the array
 * @param inner a selection that was made for the shape of the result of `outer`
 * @retval ZARR_ERR_INVALID `inner` was made for another shape
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_selection_compose(zarr_selection **out,
                                                            const zarr_selection *outer,
                                                            const zarr_selection *inner,
                                                            zarr_error *err);

/**
 * @name The result of a selection
 * The result is the array of elements that a read of the selection returns and a write of
 * it takes. The tensor of such a call must have the shape of the result.
 * @{
 */
/** Returns the number of dimensions of the result. */
ZARR_API int32_t zarr_selection_ndim(const zarr_selection *selection);
/** Returns the shape of the result in elements, borrowed from the selection. */
ZARR_API const uint64_t *zarr_selection_shape(const zarr_selection *selection);
/** Returns how many elements the result has, at most UINT64_MAX. */
ZARR_API uint64_t zarr_selection_n_items(const zarr_selection *selection);
/** @} */

/**
 * Frees a selection. No request may use it any more.
 * @param selection may be NULL
 */
ZARR_API void zarr_selection_free(zarr_selection *selection);

ZARR_END_DECLS

#endif
