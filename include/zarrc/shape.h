/**
 * @file
 * The shape of an array: resize and append.
 *
 * While chunks and shape disagree, a resize that shrinks and an append keep a record
 * under the key `.zarrc-leftovers` next to the array's metadata: the JSON object
 * `{"zarrc_leftovers": 1, "extent": [...]}`, where `extent` is the shape outside of which
 * nothing can be left over. Other programs ignore the key. If the call is interrupted, by
 * kill -9 or by a store that fails, the record stays. The next resize without
 * ZARR_RESIZE_KEEP_CHUNKS finds it and first clears what the interrupted call left.
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
     * elements can be read again when the array grows. What an interrupted resize or
     * append left can be read, too, if no dimension shrinks; otherwise it is cleared
     * first */
    ZARR_RESIZE_KEEP_CHUNKS = 1,
    /** before chunks are deleted, remove the array from the consolidated metadata of the
     * groups above (ZARR_CONSOLIDATED_REMOVE). Otherwise readers of the old shape there
     * read fill values in place of the deleted chunks. Call
     * zarr_group_consolidated_update() afterwards to add the array again */
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
 * Changes the shape of an array. Its rank stays. A grid that lists the edges of its
 * blocks gets one more block where the array grows beyond the last one; the block reaches
 * beyond the array if that is a shard and its chunks would not fit it otherwise.
 *
 * The metadata is written first. If a
 * dimension shrinks, chunks outside of the new shape are then deleted, and the part
 * outside of chunks at the border becomes the fill value. Elements that a larger shape
 * adds read as the fill value. The handle has the new shape when the call returns;
 * selections that were made for the old shape no longer fit.
 *
 * What an interrupted call left, see above, is cleared first, so that it does not come
 * back. A resize to a larger shape looks only for the record: elements that other
 * programs left outside of the shape, and those that ZARR_RESIZE_KEEP_CHUNKS left, can be
 * read again. A resize to the shape that the array has lists the chunks and clears
 * everything outside. In that case, chunks at the border of the shape stay as they are if
 * their codecs lose values, because writing them again would change elements inside. If
 * such a chunk has other elements outside than the fill value, the log gets a warning.
 *
 * Resizes and appends of one array wait for each other, across handles, and across
 * processes if the store can lock. A program that resizes without this lock while chunks
 * are being deleted can lose its own writes to such a chunk.
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
 * @retval ZARR_ERR_CONFLICT another writer changed the rank of the array, or deleted it
 * @retval ZARR_ERR_CANCELLED `cancel` was set. The array has its old shape, or the new
 * one and a record of what is left to clear; the message tells
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
    ZARR_LEFTOVERS_LOOK = 1 /**< only look: clear nothing, wait for no other call */
};

/**
 * Clears what an interrupted resize or append left outside of the shape. It does so if
 * zarr_array_resize() or zarr_array_append() left their record, and waits for resizes and
 * appends as these wait for each other. Elements that other programs or
 * ZARR_RESIZE_KEEP_CHUNKS left without a record stay; zarr_array_resize() to the same
 * shape clears them, too.
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
 * Makes an array longer along one dimension and writes elements there. The elements are
 * written first and made durable, as by zarr_store_flush(), and the metadata is written
 * last, so that readers see all of them or none, also after a loss of power. A local
 * store syncs only the chunks of the append if they are few, and does not wait for what
 * other programs write to the same disk. Appends of one array wait for each other, across
 * handles, and across processes if the store can lock. The call starts from the shape
 * that the array has in the store, and the handle has the new shape when the call
 * returns.
 *
 * In a store that has versions of its values but no locks, the metadata is written first,
 * which reserves the place. No append is lost then, but readers can see fill values until
 * the elements are written, and an append that fails leaves the fill values. In a store
 * that has neither, only appends through one store handle wait for each other.
 *
 * An append that writes its elements first and is interrupted or cancelled leaves them
 * outside of the shape, with the record.
 *
 * @param array borrowed
 * @param axis the dimension that grows, counted from 0
 * @param src the elements; it has the rank of the array and, along the other dimensions,
 * its lengths. Its length along `axis` may be 0
 * @param first becomes the index along `axis` at which the elements are: the array's
 * length there before the append. Unchanged after a failure; may be NULL
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
 * Starts what zarr_array_append() does in the background, and returns at once. The tensor
 * with its memory, `first`, and what the options point to stay the caller's and must be
 * valid until the request is done. The call copies `tuning` and texts. The request keeps
 * the array alive. Appends of one array that are submitted one after another may be
 * carried out in another order.
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
