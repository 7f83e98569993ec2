/*
 * zarrc/vlen.h - elements of variable length: text and bytes (data types `string` and
 * `variable_length_bytes`). Two ways to them.
 *
 * As tensors: zarr_array_read() and zarr_array_write() with a tensor of zarr_vlen in
 * host memory, any strides and selections. What is read lies in a heap of the caller's
 * (zarr_io_options.heap); what is written stays the caller's.
 *
 * As offsets and bytes, the way Arrow has them: all elements of a selection one behind
 * the other, and n + 1 offsets.
 */
#ifndef ZARRC_VLEN_H
#define ZARRC_VLEN_H

#include <zarrc/array.h>
#include <zarrc/base.h>
#include <zarrc/context.h>
#include <zarrc/dtype.h>
#include <zarrc/error.h>
#include <zarrc/selection.h>

ZARR_BEGIN_DECLS

/**
 * Holds the bytes of elements that were read, until it is cleared or freed: one block a
 * chunk. Any number of reads may share one. Thread class: shared; zarr_heap_clear() and
 * zarr_heap_free() solo.
 */
typedef struct zarr_heap zarr_heap;

/**
 * @param max_bytes what all its blocks may have together, beyond which reads fail with
 * LIMIT; 0: the context's memory_bytes
 * @param out owned; keeps ctx alive
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_heap_create(zarr_heap **out, zarr_context *ctx,
                                                      uint64_t max_bytes,
                                                      zarr_error *err);
/** Frees all blocks: elements that were read into it point nowhere then. */
ZARR_API void zarr_heap_clear(zarr_heap *heap);
/** The same, and the heap itself. NULL is fine. */
ZARR_API void zarr_heap_free(zarr_heap *heap);
/** Bytes of elements in it. */
ZARR_API uint64_t zarr_heap_bytes(const zarr_heap *heap);

/**
 * Elements one behind the other, in C order of a selection: element i has the bytes from
 * offsets[i] to offsets[i + 1]. offsets[0] is 0. Nothing is terminated.
 */
typedef struct zarr_vlen_column {
    uint32_t struct_size, flags;
    uint64_t n;
    const uint64_t *offsets; /**< n + 1 */
    const uint8_t *bytes;    /**< offsets[n] of them; may be NULL when there are none */
    void *owner;             /**< the library's, when it made the column; else NULL */
} zarr_vlen_column;

#define ZARR_VLEN_COLUMN_INIT ZARR_SIZE_FIRST(zarr_vlen_column)

/**
 * Reads the selected elements (NULL: all) of an array of variable length.
 * @param out initialise with ZARR_VLEN_COLUMN_INIT; owned: zarr_vlen_column_free(). Left
 * empty by a failure.
 * @param opts as for zarr_array_read(); its heap bounds the bytes and is not needed
 * @return INVALID where the array's elements have a fixed length, and where they are
 * optional ones: this form has no place for a mask, so read those as a tensor, whose
 * items have one; else as zarr_array_read()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_read_vlen(zarr_array *array,
                                                          const zarr_selection *selection,
                                                          zarr_vlen_column *out,
                                                          const zarr_io_options *opts,
                                                          zarr_error *err);
/** Frees what zarr_array_read_vlen() made, and leaves it empty. NULL is fine. */
ZARR_API void zarr_vlen_column_free(zarr_vlen_column *column);

/**
 * Writes elements in C order of the selection (NULL: all).
 * @param column borrowed; n must be the selection's number of elements, offsets must not
 * fall
 * @return as zarr_array_read_vlen(): INVALID for optional elements, too
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_write_vlen(
    zarr_array *array, const zarr_selection *selection, const zarr_vlen_column *column,
    const zarr_io_options *opts, zarr_error *err);

ZARR_END_DECLS

#endif
