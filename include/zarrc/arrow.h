/**
 * @file
 * Elements of variable length as columns of Apache Arrow, through its C data interface:
 * no Arrow library is needed. The header works beside arrow/c/abi.h, nanoarrow and any
 * other copy of the interface, before or after them.
 *
 * Spec: https://arrow.apache.org/docs/format/CDataInterface.html
 */
#ifndef ZARRC_ARROW_H
#define ZARRC_ARROW_H

#include <zarrc/base.h>
#include <zarrc/error.h>
#include <zarrc/io.h>
#include <zarrc/types.h>

ZARR_BEGIN_DECLS

/* The declarations of the specification, which each project copies under this guard. */
#ifndef ARROW_C_DATA_INTERFACE
#    define ARROW_C_DATA_INTERFACE

#    define ARROW_FLAG_DICTIONARY_ORDERED 1
#    define ARROW_FLAG_NULLABLE           2
#    define ARROW_FLAG_MAP_KEYS_SORTED    4

struct ArrowSchema {
    const char *format;
    const char *name;
    const char *metadata;
    int64_t flags;
    int64_t n_children;
    struct ArrowSchema **children;
    struct ArrowSchema *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};

struct ArrowArray {
    int64_t length;
    int64_t null_count;
    int64_t offset;
    int64_t n_buffers;
    int64_t n_children;
    const void **buffers;
    struct ArrowArray **children;
    struct ArrowArray *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};
#endif

/** Flags of zarr_array_read_arrow(). */
enum {
    /** offsets have 64 bits (large_utf8, large_binary, large_list), also if 32 are enough
     */
    ZARR_ARROW_LARGE = 1
};

/**
 * @name Columns of Arrow
 * These data types have columns:
 * - `string`: utf8 or large_utf8;
 * - `variable_length_bytes`: binary or large_binary;
 * - `vlen-array` of int8 to int64, uint8 to uint64, or float16 to float64: list or
 *   large_list of these;
 * - `optional` of one of these: the same, with nulls.
 * @{
 */
/**
 * Reads the selected elements of an array of variable length into a column, in C order of
 * the selection. The bytes of each element are copied once, into the column. Offsets have
 * 32 bits if the column has at most 2 GiB, else 64.
 * @param array borrowed
 * @param selection made for the array's shape; NULL: all elements
 * @param flags ZARR_ARROW_*
 * @param schema receives the type; owned: call its `release`. NULL: not wanted
 * @param out receives the elements; owned: call its `release`
 * @param opts as for zarr_array_read_vlen()
 * @return as zarr_array_read_vlen()
 * @retval ZARR_ERR_INVALID elements have a fixed length
 * @retval ZARR_ERR_UNSUPPORTED Arrow has no such column, as for optional values that are
 * optional themselves
 * @retval ZARR_ERR_LIMIT the elements have more bytes than the heap or the context allows
 * @see zarr_array_read_vlen()
 */
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_array_read_arrow(zarr_array *array, const zarr_selection *selection, uint32_t flags,
                      struct ArrowSchema *schema, struct ArrowArray *out,
                      const zarr_io_options *opts, zarr_error *err);

/**
 * Writes a column to the selected elements of an array of variable length. Offsets of 32
 * and 64 bits are read. Text columns can be written to arrays of bytes, too.
 * @param array borrowed
 * @param selection made for the array's shape; NULL: all elements
 * @param schema,column borrowed; they are not released
 * @param opts as for zarr_array_write()
 * @return as zarr_array_write()
 * @retval ZARR_ERR_INVALID the column has another number of elements or another type, its
 * offsets fall, its length or an offset is impossible, it or its items were released, or
 * it has a null that is not allowed. The call cannot check the length of a buffer: it
 * must be as long as the offsets say
 * @retval ZARR_ERR_UNSUPPORTED the column has a dictionary, or Arrow has no column for
 * the array's elements
 * @see zarr_array_write_vlen()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_write_arrow(
    zarr_array *array, const zarr_selection *selection, const struct ArrowSchema *schema,
    const struct ArrowArray *column, const zarr_io_options *opts, zarr_error *err);
/** @} */

ZARR_END_DECLS

#endif
