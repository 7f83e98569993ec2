/**
 * @file
 * The shape of an array: resize and append.
 *
 * Leftovers are stored elements outside of the shape. While there may be leftovers, a
 * resize that shrinks and an append keep a record: the object `.zarrc-leftovers` of the
 * array. If the call is interrupted, the record stays. The next resize
 * that shrinks, or is without ZARR_RESIZE_KEEP_CHUNKS, first clears the leftovers.
 */
#ifndef ZARRC_SHAPE_H
#define ZARRC_SHAPE_H

#include <zarrc/base.h>
#include <zarrc/error.h>
#include <zarrc/io.h>
#include <zarrc/memory.h>
#include <zarrc/types.h>

ZARR_BEGIN_DECLS

/** Flags of zarr_array_resize(), in zarr_shape_options. */
enum {
    /** change no chunk: chunks outside of the new shape stay in the store, and their
     * elements become readable again when the array grows. So do leftovers of an
     * interrupted resize or append; but a resize that shrinks first clears these */
    ZARR_RESIZE_KEEP_CHUNKS = 1,
    /** first remove the array from the consolidated metadata of the groups above
     * (ZARR_CONSOLIDATED_REMOVE). Call zarr_group_consolidated_update() afterwards to add
     * the array again */
    ZARR_RESIZE_CONSOLIDATED = 2
};

/** Options of zarr_array_resize() and zarr_array_clear_leftovers(). */
typedef struct zarr_shape_options {
    uint32_t struct_size, flags; /**< `flags`: ZARR_RESIZE_*, or ZARR_LEFTOVERS_* */
    /** stops the call with ZARR_ERR_CANCELLED once it is set; borrowed; may be NULL */
    zarr_cancel *cancel;
} zarr_shape_options;

#define ZARR_SHAPE_OPTIONS_INIT ZARR_SIZE_FIRST(zarr_shape_options)

/**
 * Changes the shape of an array, but not its number of dimensions. If the array grows
 * beyond the last block of a rectilinear grid, the grid gets one more block.
 *
 * The call clears leftovers of an interrupted call (stored elements outside of the
 * shape), then writes the metadata. If a dimension shrinks, it then deletes chunks
 * outside of the new shape, and sets elements outside in border chunks to the fill value.
 * Elements that a larger shape adds read as the fill value. The handle has the new shape
 * when the call returns.
 *
 * Leftovers of other programs and of ZARR_RESIZE_KEEP_CHUNKS become readable when the
 * array grows. A resize to the current shape clears all leftovers, except in border
 * chunks whose codecs lose values.
 *
 * Resizes and appends of one array wait for each other: across handles, and across
 * processes if the store can lock.
 *
 * Spec: Zarr v3 core, "Resizing".
 *
 * @param array borrowed
 * @param shape the new lengths in elements, one for each dimension
 * @param opts options; NULL: defaults
 * @retval ZARR_ERR_INVALID the array cannot have this shape, or the store is read-only
 * @retval ZARR_ERR_UNSUPPORTED the chunk grid would move chunks that exist; or the store
 * cannot write; or it cannot list, and there are more than 1,048,576 chunks to look for
 * @retval ZARR_ERR_LIMIT the shape needs a chunk beyond `zarr_limits.chunk_bytes`
 * @retval ZARR_ERR_CONFLICT another writer changed the number of dimensions of the array,
 * or deleted it
 * @retval ZARR_ERR_CANCELLED `cancel` was set. The array has its old shape, or it has the
 * new shape and a record of leftovers; the message tells which
 * @retval ZARR_ERR_IO the store failed; the message tells if the array has its new shape
 * @see zarr_array_append(), zarr_array_clear_leftovers(), zarr_array_refresh(),
 * zarr_array_shape()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_resize(zarr_array *array,
                                                       const uint64_t *shape,
                                                       const zarr_shape_options *opts,
                                                       zarr_error *err);

/** Flags of zarr_array_clear_leftovers(), in zarr_shape_options. */
enum {
    ZARR_LEFTOVERS_LOOK = 1 /**< only look: do not clear, and wait for no other call */
};

/**
 * Clears the leftovers of an interrupted resize or append, which left a record. The call
 * waits for running resizes and appends of the array. Leftovers without a record, such as
 * those of other programs or of ZARR_RESIZE_KEEP_CHUNKS, stay. zarr_array_resize() to the
 * current shape clears them.
 *
 * @param array borrowed
 * @param found becomes 1 if there was a record, else 0; may be NULL. With
 * ZARR_LEFTOVERS_LOOK it is also 1 while a resize or append is under way
 * @param opts options; NULL: defaults
 * @retval ZARR_ERR_NOT_FOUND the array was deleted
 * @retval ZARR_ERR_UNSUPPORTED an unknown flag; or the store cannot list, and there are
 * more than 1,048,576 chunks to look for
 * @retval ZARR_ERR_CANCELLED `cancel` was set; the record stays
 * @retval ZARR_ERR_IO the store failed; the record stays
 * @see zarr_array_resize(), zarr_node_verify(), zarr_store_clean()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_clear_leftovers(
    zarr_array *array, int *found, const zarr_shape_options *opts, zarr_error *err);

/**
 * Makes an array longer along one dimension and writes elements there. The call first
 * writes the elements and makes them durable, as zarr_store_flush() does. It writes the
 * metadata last. So readers see all new elements or none, even after a loss of power.
 *
 * Appends of one array wait for each other: across handles, and across processes if the
 * store can lock. The call starts from the shape that the array has in the store. The
 * handle has the new shape when the call returns.
 *
 * In a store that has versions but no locks, the call writes the metadata first. Readers
 * can see fill values until the elements are written, and an append that fails leaves the
 * fill values. In a store that has neither, only appends through one store handle wait
 * for each other.
 *
 * An append that is interrupted or cancelled may leave elements outside of the shape
 * (zarr_array_clear_leftovers()).
 *
 * @param array borrowed
 * @param axis the dimension that grows, counted from 0
 * @param src the elements. It has as many dimensions as the array, and the array's
 * lengths along all dimensions except `axis`. Its length along `axis` may be 0
 * @param first becomes the index along `axis` of the first new element: the length of the
 * array there before the append. Unchanged after a failure; may be NULL
 * @param opts options; NULL: defaults
 * @retval ZARR_ERR_INVALID `axis` or the shape of `src` does not fit, or the store is
 * read-only
 * @retval ZARR_ERR_CONFLICT a program that does not use the lock resized the array
 * meanwhile; nothing was appended
 * @retval ZARR_ERR_CANCELLED `cancel` was set; nothing was appended, except fill values
 * where the metadata is written first
 * @retval ZARR_ERR_IO the store failed
 * @see zarr_array_append_submit(), zarr_array_resize(), zarr_array_write()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_append(zarr_array *array, int32_t axis,
                                                       const zarr_tensor *src,
                                                       uint64_t *first,
                                                       const zarr_io_options *opts,
                                                       zarr_error *err);

/**
 * Starts an append in the background, and returns at once. The tensor with its memory,
 * `first`, and what the options point to must stay valid until the request is done. The
 * call copies `tuning` and texts. The request keeps the array alive, and owns `cancel`,
 * too. Submitted appends of
 * one array may be carried out in another order.
 *
 * @param out receives the request; owned: zarr_request_free()
 * @param array,axis,src,first,opts as for zarr_array_append(); `first` is set before the
 * request is done
 * @retval ZARR_ERR_INVALID an option is wrong; other errors are reported by
 * zarr_request_wait()
 * @see zarr_array_append(), zarr_request_wait(), zarr_request_then()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_append_submit(
    zarr_request **out, zarr_array *array, int32_t axis, const zarr_tensor *src,
    uint64_t *first, const zarr_io_options *opts, zarr_error *err);

ZARR_END_DECLS

#endif
