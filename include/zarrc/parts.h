/**
 * @file
 * Reads and writes of several selections of one array in one request: random crops of a
 * training step, or one read whose parts go to different places. The parts are planned
 * together. A chunk that several of them touch is fetched and decoded, or changed and
 * written, once.
 */
#ifndef ZARRC_PARTS_H
#define ZARRC_PARTS_H

#include <zarrc/base.h>
#include <zarrc/error.h>
#include <zarrc/io.h>
#include <zarrc/memory.h>
#include <zarrc/types.h>

ZARR_BEGIN_DECLS

/**
 * One selection of an array, its memory, and what became of it. Callers pass arrays of
 * these; the struct does not change in later versions. Members that are zero mean their
 * default.
 */
typedef struct zarr_io_part {
    /** made for the array's shape; NULL: all elements. Borrowed */
    const zarr_selection *selection;
    /** as for zarr_array_read() or zarr_array_write(), but not ZARR_TENSOR_PACKED.
     * Borrowed; its memory may be of another kind than that of other parts */
    const zarr_tensor *tensor;
    /** receives why the part failed, and is unchanged if it did not; may be NULL.
     * Borrowed */
    zarr_error *error;
    /** out: ZARR_OK, or the error of the part's first chunk that failed */
    zarr_status status;
    uint32_t reserved; /**< must be 0 */
} zarr_io_part;

/**
 * Reads several selections of an array, each into memory of its own. For each it does
 * what zarr_array_read() does. A chunk that several parts need is fetched and decoded
 * once.
 *
 * If a chunk fails, the parts that need it fail, and the others are read. The content of
 * a tensor is undefined if its part failed, or if it overlaps another tensor in memory.
 *
 * Tensors may be in several memories: in host memory and on devices. Each chunk is then
 * fetched and decoded once for each memory that needs it, where its tensors are. With a
 * field, or a pipeline of a plug-in, such chunks are decoded in host memory and copied
 * from there. A pipeline of a plug-in that ends a read at an error fails all parts.
 *
 * `stream` orders the tensors that are on a device, which must all be on the same one.
 *
 * In `opts`, `stats` counts a shared chunk once; while the request runs, `chunks_total`
 * counts it for each of its parts. `present` must be NULL. `field`, `heap` and the others
 * apply to all parts.
 *
 * Spec: Zarr v3 core, "Chunk encoding"; Zarr v2, "Chunks".
 *
 * @param array borrowed
 * @param parts what to read; `status` and `error` of each are set
 * @param n_parts number of parts; 0: nothing is read
 * @param opts options of the call; NULL: defaults
 * @return ZARR_OK if all parts are read; else the status of the first part that failed,
 * whose number is in `zarr_error.item`
 * @retval ZARR_ERR_INVALID a tensor or a selection does not fit the array. Nothing is
 * read, and all parts have this status
 * @retval ZARR_ERR_UNSUPPORTED a tensor is packed, or the options name a field and
 * tensors differ in byte order
 * @retval ZARR_ERR_CANCELLED `cancel` was set; parts that have not failed before have
 * this status, too
 * @see zarr_array_read_many_submit(), zarr_array_write_many(), zarr_array_read(),
 * zarr_selection_box()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_read_many(zarr_array *array,
                                                          zarr_io_part *parts,
                                                          size_t n_parts,
                                                          const zarr_io_options *opts,
                                                          zarr_error *err);

/**
 * Writes several selections of an array, each from memory of its own. For each it does
 * what zarr_array_write() does. Where parts overlap, the last of them counts. A block
 * that several parts touch is encoded and written once.
 *
 * If a chunk fails, the parts that touch it fail, and the others are written.
 *
 * Spec: Zarr v3 core, "Chunk encoding"; Zarr v2, "Chunks".
 *
 * @param array borrowed
 * @param parts what to write; `status` and `error` of each are set
 * @param n_parts number of parts; 0: nothing is written
 * @param opts options of the call; NULL: defaults
 * @return ZARR_OK if all parts are written; else the status of the first part that
 * failed, whose number is in `zarr_error.item`
 * @retval ZARR_ERR_INVALID a tensor or a selection does not fit the array, or the store
 * is read-only. If an argument is wrong, nothing is written, and all parts have this
 * status
 * @retval ZARR_ERR_UNSUPPORTED a tensor is packed, or the store cannot write
 * @retval ZARR_ERR_CONFLICT as for zarr_array_write()
 * @retval ZARR_ERR_NOT_FOUND the array was moved or deleted after it was opened
 * @retval ZARR_ERR_CANCELLED `cancel` was set; some chunks may be written
 * @see zarr_array_write_many_submit(), zarr_array_read_many(), zarr_array_write()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_write_many(zarr_array *array,
                                                           zarr_io_part *parts,
                                                           size_t n_parts,
                                                           const zarr_io_options *opts,
                                                           zarr_error *err);

/**
 * @name Several selections in the background
 * These calls start what zarr_array_read_many() and zarr_array_write_many() do, and
 * return at once. The array of parts with all that it points to, and what the options
 * point to, must stay valid until the request is done. The call copies `tuning` and
 * texts. The request keeps the array alive, and owns `cancel`, too.
 * @{
 */
/**
 * Starts a read of several selections.
 * @param out receives the request; owned: zarr_request_free()
 * @param array,parts,n_parts,opts as for zarr_array_read_many()
 * @retval ZARR_ERR_INVALID an argument is wrong; errors of chunks are reported by
 * zarr_request_wait()
 * @see zarr_request_wait()
 */
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_array_read_many_submit(zarr_request **out, zarr_array *array, zarr_io_part *parts,
                            size_t n_parts, const zarr_io_options *opts, zarr_error *err);
/**
 * Starts a write of several selections.
 * @param out receives the request; owned: zarr_request_free()
 * @param array,parts,n_parts,opts as for zarr_array_write_many()
 * @retval ZARR_ERR_INVALID an argument is wrong; errors of chunks are reported by
 * zarr_request_wait()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_write_many_submit(
    zarr_request **out, zarr_array *array, zarr_io_part *parts, size_t n_parts,
    const zarr_io_options *opts, zarr_error *err);
/** @} */

ZARR_END_DECLS

#endif
