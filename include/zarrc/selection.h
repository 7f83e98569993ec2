/*
 * zarrc/selection.h - which elements of an array, without touching data. A
 * selection is made for one array shape and can be used for any number of
 * reads and writes of arrays of that shape. Its memory grows with rank and the
 * coordinates given, never with the number of elements or chunks. Dimensions
 * are shorter than 2^63 (INVALID).
 * Thread class: solo while it is built; frozen afterwards.
 *
 * Result shape: basic and orthogonal selections give one dimension per array
 * dimension that was not selected by ZARR_DIM_INDEX (which drops it); points
 * and full masks give 1 dimension (or the shape given for the points); block
 * selections give what the equal slices give.
 */
#ifndef ZARRC_SELECTION_H
#define ZARRC_SELECTION_H

#include <zarrc/base.h>
#include <zarrc/error.h>
#include <zarrc/memory.h>

ZARR_BEGIN_DECLS

typedef struct zarr_selection zarr_selection;

enum {
    ZARR_DIM_ALL = 0, /**< the whole dimension */
    /** start, stop, step as Python's slice, after clipping; step < 0 allowed */
    ZARR_DIM_SLICE = 1,
    /** one index (start), negative counts from the end; drops the dimension */
    ZARR_DIM_INDEX = 2,
    /** n_list indexes in any order, repeats allowed (not when writing: last one wins) */
    ZARR_DIM_LIST = 3,
    /** n_list bytes, one per element of the dimension, non-zero selects */
    ZARR_DIM_MASK = 4
};

/** For ZARR_DIM_SLICE, any of the three: "not given", as in Python's x[::2]. */
#define ZARR_SLICE_DEFAULT INT64_MIN

/** What is selected of one dimension. Arrays are borrowed for the call. */
typedef struct zarr_dim_selection {
    uint32_t kind, reserved; /**< ZARR_DIM_* */
    /** step 0: 1; stop 0 is 0, not "to the end": see ZARR_SLICE_DEFAULT */
    int64_t start, stop, step;
    const int64_t *list;
    const uint8_t *mask;
    uint64_t n_list;
} zarr_dim_selection;

/**
 * Basic and orthogonal selection: every dimension on its own (NumPy's x[a, b, :] with
 * slices and integers; zarr-python's oindex with lists and masks). n_dims may be less
 * than ndim: the rest is ALL.
 * @param shape array shape in elements, borrowed; @param out owned: zarr_selection_free()
 * @return INVALID: rank, step, index out of bounds, mask length, all with the dimension's
 * number
 */
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_selection_dims(zarr_selection **out, int32_t ndim, const uint64_t *shape,
                    int32_t n_dims, const zarr_dim_selection *dims, zarr_error *err);

/** All of an array. */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_selection_all(zarr_selection **out,
                                                        int32_t ndim,
                                                        const uint64_t *shape,
                                                        zarr_error *err);

/** The box [start, start + count) by steps of 1. */
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_selection_box(zarr_selection **out, int32_t ndim, const uint64_t *shape,
                   const uint64_t *start, const uint64_t *count, zarr_error *err);

/**
 * Coordinate (vectorised) selection: n_points coordinate tuples, point-major (coords[p *
 * ndim + d]); negative counts from the end. Result has shape result_shape (its product is
 * n_points), or [n_points] when result_ndim is 0. Repeats are allowed when reading; when
 * writing the last one wins.
 */
ZARR_API ZARR_MUST_CHECK zarr_status
/* NOLINT(function-size): two shapes and the points, a struct would say no more */
zarr_selection_points(zarr_selection **out, int32_t ndim, const uint64_t *shape,
                      uint64_t n_points, const int64_t *coords, int32_t result_ndim,
                      const uint64_t *result_shape, zarr_error *err);

/**
 * Mask of the array's own shape, C order, one byte an element; the result is 1-D in C
 * order of the selected elements.
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_selection_mask(zarr_selection **out,
                                                         int32_t ndim,
                                                         const uint64_t *shape,
                                                         const uint8_t *mask,
                                                         zarr_error *err);

/**
 * Block selection: like zarr_selection_dims() with ALL, SLICE (step 1) and INDEX, counted
 * in chunks of the given grid edges instead of elements (regular grids; an INDEX keeps
 * its dimension).
 * @param chunk_shape edges, borrowed; ndim entries
 */
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_selection_blocks(zarr_selection **out, int32_t ndim, const uint64_t *shape,
                      const uint64_t *chunk_shape, int32_t n_dims,
                      const zarr_dim_selection *dims, zarr_error *err);

/**
 * Parses "0:10,::2,-1,[3,5,7],..." as Python would write a basic or orthogonal selection,
 * with or without surrounding brackets; "" and "..." are all. Brackets that hold nothing
 * but numbers are a list: "[3,5]" selects two indexes of the first dimension, "3,5" and
 * "[3,5,...]" one element of two. The error names the dimension and the text.
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_selection_parse(zarr_selection **out,
                                                          int32_t ndim,
                                                          const uint64_t *shape,
                                                          const char *text,
                                                          zarr_error *err);

/**
 * A selection of the result of `outer`, as one of the array: compose(x[outer][inner]).
 * inner must be made for outer's result shape.
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_selection_compose(zarr_selection **out,
                                                            const zarr_selection *outer,
                                                            const zarr_selection *inner,
                                                            zarr_error *err);

/** Rank of the result. */
ZARR_API int32_t zarr_selection_ndim(const zarr_selection *selection);
/** Shape of the result, zarr_selection_ndim() entries; borrowed. */
ZARR_API const uint64_t *zarr_selection_shape(const zarr_selection *selection);
/** Elements in the result; UINT64_MAX when there are more than that. */
ZARR_API uint64_t zarr_selection_n_items(const zarr_selection *selection);

ZARR_API void zarr_selection_free(zarr_selection *selection);

ZARR_END_DECLS

#endif
