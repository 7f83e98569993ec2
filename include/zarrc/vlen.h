/**
 * @file
 * Elements of variable length: text and bytes, the data types `string` and
 * `variable_length_bytes`. There are two ways to read and write them.
 *
 * As tensors: zarr_array_read() and zarr_array_write() take a tensor of `zarr_vlen` in
 * host memory, with any strides and selections. The bytes of elements that were read are
 * in a heap of the caller's, `zarr_io_options.heap`.
 *
 * As a column, the layout of Apache Arrow: zarr_array_read_vlen() and
 * zarr_array_write_vlen() take the bytes of all elements one after the other, and offsets
 * into them. `zarrc/arrow.h` exchanges such columns by Arrow's C data interface, also
 * with nulls, for optional types.
 */
#ifndef ZARRC_VLEN_H
#define ZARRC_VLEN_H

#include <zarrc/base.h>
#include <zarrc/error.h>
#include <zarrc/io.h>
#include <zarrc/types.h>

ZARR_BEGIN_DECLS

/**
 * @name A heap for elements of variable length
 * A heap holds the bytes of elements that zarr_array_read() put into a tensor of
 * `zarr_vlen`, until it is cleared or freed. `zarr_io_options.heap` names it. Any number
 * of reads may share one heap, also at the same time.
 *
 * Thread class: shared, except for zarr_heap_clear() and zarr_heap_free(), which are
 * solo.
 * @{
 */
/**
 * Makes an empty heap.
 * @param out receives the heap; owned: zarr_heap_free()
 * @param ctx borrowed; the heap keeps it alive
 * @param max_bytes bytes that all elements together may have; 0:
 * `zarr_context_options.memory_bytes`. A read that needs more fails with ZARR_ERR_LIMIT
 * @retval ZARR_ERR_NO_MEMORY there is no memory for the heap itself
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_heap_create(zarr_heap **out, zarr_context *ctx,
                                                      uint64_t max_bytes,
                                                      zarr_error *err);
/** Frees the bytes of all elements in a heap. Elements that were read into it are no
 * longer valid. */
ZARR_API void zarr_heap_clear(zarr_heap *heap);
/** Frees the bytes of all elements and the heap, which may be NULL. */
ZARR_API void zarr_heap_free(zarr_heap *heap);
/** Returns how many bytes the elements in a heap have. */
ZARR_API uint64_t zarr_heap_bytes(const zarr_heap *heap);
/** @} */

/**
 * The bytes of several elements one after the other, in C order of a selection. Element i
 * has the bytes from `offsets`[i] up to but not including `offsets`[i + 1]. Elements have
 * no terminators.
 */
typedef struct zarr_vlen_column {
    uint32_t struct_size, flags; /**< `flags` must be 0 */
    uint64_t n;                  /**< number of elements */
    /** `n` + 1 offsets: the first is 0, and none is less than the one before */
    const uint64_t *offsets;
    const uint8_t *bytes; /**< `offsets`[`n`] bytes; may be NULL if there are none */
    void *owner; /**< memory of the library; NULL in a column that the caller made */
} zarr_vlen_column;

#define ZARR_VLEN_COLUMN_INIT ZARR_SIZE_FIRST(zarr_vlen_column)

/**
 * @name Read and write text and bytes as columns
 * @{
 */
/**
 * Reads the selected elements of an array of variable length into a column.
 * @param array borrowed
 * @param selection made for the array's shape; NULL: all elements
 * @param out receives the elements; initialise it with ZARR_VLEN_COLUMN_INIT. Owned:
 * zarr_vlen_column_free(). Empty after a failure
 * @param opts as for zarr_array_read(), but ZARR_IO_AT_ONCE is ignored. `heap` is not
 * needed; if it is set, its limit holds for the elements
 * @return as zarr_array_read()
 * @retval ZARR_ERR_INVALID elements have a fixed length, or they are optional: a column
 * has no place for values that are missing, so read those as a tensor
 * @retval ZARR_ERR_LIMIT the elements have more bytes than the heap or the context allows
 * @see zarr_array_read(), zarr_heap_create()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_read_vlen(zarr_array *array,
                                                          const zarr_selection *selection,
                                                          zarr_vlen_column *out,
                                                          const zarr_io_options *opts,
                                                          zarr_error *err);
/** Frees the memory of a column that zarr_array_read_vlen() filled, and makes it empty.
 * `column` may be NULL. */
ZARR_API void zarr_vlen_column_free(zarr_vlen_column *column);

/**
 * Writes a column to the selected elements of an array of variable length.
 * @param array borrowed
 * @param selection made for the array's shape; NULL: all elements
 * @param column borrowed; it has as many elements as the selection
 * @param opts as for zarr_array_write()
 * @return as zarr_array_write()
 * @retval ZARR_ERR_INVALID the column has another number of elements, or an offset that
 * is less than the one before; or elements have a fixed length or are optional
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_write_vlen(
    zarr_array *array, const zarr_selection *selection, const zarr_vlen_column *column,
    const zarr_io_options *opts, zarr_error *err);
/** @} */

ZARR_END_DECLS

#endif
