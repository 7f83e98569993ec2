/**
 * @file
 * Decode and encode the blocks of an array without a store. The caller fetches and stores
 * the encoded bytes itself. This is for services that get blocks from a message queue or
 * an HTTP server, and for bindings that fetch blocks themselves.
 * zarr_array_open_document() makes an array from the text of its metadata.
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
 * Encoded blocks of one array. A block is what is stored as one object: a shard, or a
 * chunk of an array without shards. The call borrows all members, and changes none.
 */
typedef struct zarr_block_batch {
    uint32_t struct_size, flags; /**< `flags` must be 0 */
    uint64_t n_blocks;           /**< number of blocks */
    /** grid coordinates of all blocks, one block after the other: for each block one
     * number per dimension. The blocks may have any order, and each must occur once. NULL
     * only for an array without dimensions */
    const uint64_t *blocks;
    /** `n_blocks` encoded blocks, in memory of any kind; `handle` NULL: the block is
     * missing */
    const zarr_memory *bytes;
    /** `n_blocks` results of fetching the blocks. ZARR_OK: `bytes` has the block.
     * ZARR_ERR_NOT_FOUND: the block is missing. With another status, the call fails if it
     * needs the block. NULL: all are ZARR_OK */
    const zarr_status *status;
} zarr_block_batch;

#define ZARR_BLOCK_BATCH_INIT ZARR_SIZE_FIRST(zarr_block_batch)

/**
 * Receives one encoded block, or learns that a block must not be stored. The library
 * calls it once for each block, from any thread, and from several threads at once.
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
 * zarr_array_read() without a store. Chunks are decoded in parallel. Their encoded bytes
 * are copied only if the decoder works in another memory. The batch may have more blocks
 * than the selection needs. Counters treat the batch as a store. With a million blocks,
 * the call takes about as long as a read from a memory store.
 *
 * Spec: Zarr v3 core, "Chunk encoding"; Zarr v2, "Chunks".
 *
 * @param array borrowed
 * @param selection made for the array's shape; NULL: all elements
 * @param dst where the elements go; its shape is the shape of the selection's result
 * @param in the encoded blocks
 * @param opts options; NULL: defaults. `missing_chunks` says what happens if a chunk is
 * missing
 * @return ZARR_OK, or the error of the first chunk that failed
 * @retval ZARR_ERR_INVALID the tensor or the selection does not fit the array; the batch
 * lacks a block that the selection needs, has a block twice, or has one outside of the
 * grid
 * @retval ZARR_ERR_CORRUPT a chunk or a shard index is damaged
 * @retval ZARR_ERR_LIMIT a block has more encoded bytes than `zarr_limits.encoded_bytes`
 * @retval ZARR_ERR_NOT_FOUND a chunk is missing, and ZARR_MISSING_ERROR is set
 * @retval ZARR_ERR_CANCELLED `cancel` was set; or, with ZARR_IO_AT_ONCE, the call would
 * take long
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
 * block. A block at the border may have elements outside the array's shape. If the
 * selection covers all elements of such a block inside the shape, those outside keep
 * their old value if `old` has it, or else become the fill value. The call does not use
 * other blocks of `old`, and takes no lock. The caller must make sure that a block does
 * not change after its old value is fetched and before its new value is stored.
 *
 * Spec: Zarr v3 core, "Chunk encoding"; Zarr v2, "Chunks".
 *
 * @param array borrowed
 * @param selection made for the array's shape; NULL: all elements
 * @param src the elements; its shape is the shape of the selection's result
 * @param old old values of blocks; NULL: there are none
 * @param sink receives the blocks
 * @param opts options; NULL: defaults. `empty_chunks` says whether the call erases chunks
 * that have only the fill value
 * @return ZARR_OK, the error of the first block that failed, or the status that the sink
 * returned
 * @retval ZARR_ERR_INVALID the tensor or the selection does not fit the array; `old`
 * lacks a block of which the selection covers only a part, has a block twice, or has one
 * outside of the grid
 * @retval ZARR_ERR_CORRUPT the old value of a block that is covered only in part is
 * damaged
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
