/**
 * @file
 * Decode and encode the blocks of an array without a store. The caller fetches and stores
 * the encoded bytes itself. zarr_array_open_document() makes an array from the text of
 * its metadata.
 */
#ifndef ZARRC_CHUNKS_H
#define ZARRC_CHUNKS_H

#include <zarrc/array.h>
#include <zarrc/base.h>
#include <zarrc/error.h>
#include <zarrc/io.h>
#include <zarrc/memory.h>
#include <zarrc/types.h>

ZARR_BEGIN_DECLS

/**
 * Encoded blocks of one array. A block is a shard, or a chunk of an array without shards.
 * The call borrows all members.
 */
typedef struct zarr_block_batch {
    uint32_t struct_size, flags; /**< `flags` must be 0 */
    uint64_t n_blocks;           /**< number of blocks */
    /** grid coordinates of the blocks, one after the other: for each block one number per
     * dimension. Any order; no block twice. NULL only for an array without dimensions */
    const uint64_t *blocks;
    /** `n_blocks` encoded blocks, in memory of any kind; `handle` NULL: the block is
     * missing */
    const zarr_memory *bytes;
    /** `n_blocks` results of fetching the blocks. ZARR_ERR_NOT_FOUND: the block is
     * missing. With another error, the call fails if it needs the block. NULL: all are
     * ZARR_OK */
    const zarr_status *status;
} zarr_block_batch;

#define ZARR_BLOCK_BATCH_INIT ZARR_SIZE_FIRST(zarr_block_batch)

/**
 * Receives one encoded block. The library calls it once for each block, from several
 * threads at once.
 * @param user as in zarr_block_sink
 * @param block grid coordinates, one for each dimension
 * @param bytes the encoded block, borrowed for the call; NULL: erase the block, because
 * all its elements are the fill value
 * @return ZARR_OK; another status ends zarr_array_encode(), which returns that status
 */
typedef zarr_status (*zarr_block_sink_fn)(void *user, const uint64_t *block,
                                          const zarr_memory *bytes, zarr_error *err);

/** The function that receives the blocks of zarr_array_encode(). */
typedef struct zarr_block_sink {
    uint32_t struct_size, flags; /**< `flags` must be 0 */
    zarr_block_sink_fn fn;       /**< required */
    void *user;                  /**< passed to `fn` */
    /** memory in which `fn` gets blocks, as in `zarr_memory`; 0: host memory */
    int32_t device_type, device_id;
} zarr_block_sink;

#define ZARR_BLOCK_SINK_INIT ZARR_SIZE_FIRST(zarr_block_sink)

/**
 * Decodes encoded blocks of the caller into memory of the caller. This is
 * zarr_array_read() without a store. The batch may have more blocks than the selection
 * needs. In `opts->stats`, the batch counts as the store.
 *
 * Spec: Zarr v3 core, "Chunk encoding"; Zarr v2, "Chunks".
 *
 * @param array borrowed
 * @param selection made for the array's shape; NULL: all elements
 * @param dst where the elements go; its shape is the shape of the selection's result
 * @param in the encoded blocks
 * @param opts options; NULL: defaults
 * @return ZARR_OK, or the error of the first chunk that failed
 * @retval ZARR_ERR_INVALID the tensor or the selection does not fit the array; the batch
 * lacks a block that is needed, has a block twice, or has one outside of the grid
 * @retval ZARR_ERR_CORRUPT a chunk or a shard index is damaged
 * @retval ZARR_ERR_LIMIT a block has more encoded bytes than `zarr_limits.encoded_bytes`
 * @retval ZARR_ERR_NOT_FOUND a chunk is missing, and ZARR_MISSING_ERROR is set
 * @retval ZARR_ERR_CANCELLED `cancel` was set; or the flag ZARR_IO_AT_ONCE was set, and
 * the read is not small or would wait
 * @see zarr_array_encode(), zarr_array_open_document(), zarr_array_block_extent()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_decode(
    zarr_array *array, const zarr_selection *selection, const zarr_tensor *dst,
    const zarr_block_batch *in, const zarr_io_options *opts, zarr_error *err);

/**
 * Encodes elements to blocks, and passes each block to a function of the caller. This is
 * zarr_array_write() without a store.
 *
 * If the selection covers only a part of a block, `old` must have the old value of the
 * block. If it covers a border block as far as the array's shape, `old` need not have
 * the block. If `old` lacks the block, the elements outside of the shape become
 * the fill value. The call takes no lock: the caller must make sure that nothing else
 * changes a block between fetching its old value and storing the new one.
 *
 * Spec: Zarr v3 core, "Chunk encoding"; Zarr v2, "Chunks".
 *
 * @param array borrowed
 * @param selection made for the array's shape; NULL: all elements
 * @param src the elements; its shape is the shape of the selection's result
 * @param old old values of blocks; NULL: there are none
 * @param sink receives the blocks
 * @param opts options; NULL: defaults
 * @return ZARR_OK, the error of the first block that failed, or the status that the sink
 * returned
 * @retval ZARR_ERR_INVALID the tensor or the selection does not fit the array; `old`
 * lacks a block that is needed, has a block twice, or has one outside of the grid
 * @retval ZARR_ERR_CORRUPT an old value that is needed is damaged
 * @retval ZARR_ERR_UNSUPPORTED a codec cannot encode
 * @retval ZARR_ERR_CANCELLED `cancel` was set; the sink may have received some blocks
 * @see zarr_array_decode(), zarr_array_block_shape(), zarr_array_block_key()
 */
ZARR_API ZARR_MUST_CHECK zarr_status
/* NOLINT(function-size): a write's arguments, and both sides of the blocks */
zarr_array_encode(zarr_array *array, const zarr_selection *selection,
                  const zarr_tensor *src, const zarr_block_batch *old,
                  const zarr_block_sink *sink, const zarr_io_options *opts,
                  zarr_error *err);

ZARR_END_DECLS

#endif
