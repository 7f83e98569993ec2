/**
 * @file
 * The stored blocks of an array: lists of blocks and chunks, numbers of objects, and the
 * encoded bytes of blocks. zarrc/array.h defines blocks.
 */
#ifndef ZARRC_BLOCKS_H
#define ZARRC_BLOCKS_H

#include <zarrc/base.h>
#include <zarrc/error.h>
#include <zarrc/io.h>
#include <zarrc/types.h>

ZARR_BEGIN_DECLS

/** A block, or a chunk of a shard. Its pointers are borrowed for the call. */
typedef struct zarr_block_info {
    uint32_t struct_size;
    int32_t ndim; /**< number of dimensions */
    /** coordinates in the grid of blocks, or of chunks if `is_chunk` is 1 */
    const uint64_t *coordinates;
    const char *key;        /**< key of the object in the chunk store */
    uint64_t offset, bytes; /**< range in the object; `bytes` UINT64_MAX: not known */
    uint32_t is_chunk;      /**< 1: a chunk of a shard; 0: a block */
    uint32_t reserved;
} zarr_block_info;

/** Receives one block or chunk. A non-zero return ends the listing. */
typedef int (*zarr_block_list_fn)(void *user, const zarr_block_info *block);

/** What zarr_array_list_blocks() lists. */
enum {
    ZARR_BLOCKS_STORED = 0, /**< the blocks that the store has */
    /** the chunks of stored shards; the call reads the index of each shard. In an array
     * without shards: the stored blocks */
    ZARR_BLOCKS_CHUNKS = 1,
    /** missing blocks, in C order; `bytes` is 0. The call first reads the listing of the
     * store, without calling `fn` */
    ZARR_BLOCKS_MISSING = 2,
    /** added to one of these: if the store cannot list, the call asks it for each block
     * of the grid */
    ZARR_BLOCKS_ASK = 0x100
};

/**
 * @name Lists of blocks and chunks
 * @{
 */
/**
 * Lists the blocks or chunks that the store has, or the missing blocks.
 *
 * @param array borrowed
 * @param what one of ZARR_BLOCKS_*, also with ZARR_BLOCKS_ASK
 * @param fn called for each block or chunk
 * @param user passed to `fn`
 * @param opts `cancel` is used; NULL: defaults
 * @return ZARR_OK, also when `fn` ended the listing
 * @retval ZARR_ERR_CANCELLED `cancel` was set
 * @retval ZARR_ERR_INVALID `what` is wrong
 * @retval ZARR_ERR_UNSUPPORTED the store cannot list
 * @retval ZARR_ERR_LIMIT there are more objects than `zarr_limits.listing_keys`, or
 * blocks to ask for
 * @retval ZARR_ERR_NOT_FOUND the array was moved or deleted after it was opened
 * @retval ZARR_ERR_CONFLICT another array has taken its place
 * @retval ZARR_ERR_CORRUPT the index of a shard is damaged
 * @retval ZARR_ERR_IO the store failed, or a directory of blocks cannot be read
 * @see zarr_array_block_list_chunks(), zarr_array_block_counts(), zarr_store_list()
 */
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_array_list_blocks(zarr_array *array, uint32_t what, zarr_block_list_fn fn,
                       void *user, const zarr_io_options *opts, zarr_error *err);
/**
 * Lists the stored chunks of one block. In an array without shards, this is the block
 * itself. A missing block has no stored chunks. The call reads the index of the
 * shard; it does not need a store that can list.
 *
 * @param array borrowed
 * @param block grid coordinates of the block; NULL only for an array without dimensions
 * @param fn called for each chunk
 * @param user passed to `fn`
 * @param opts `cancel` is used; NULL: defaults
 * @return ZARR_OK, also when `fn` ended the listing
 * @retval ZARR_ERR_CANCELLED `cancel` was set
 * @retval ZARR_ERR_INVALID the coordinates are outside of the grid
 * @retval ZARR_ERR_CORRUPT the index of the shard is damaged
 * @retval ZARR_ERR_IO the store failed
 * @see zarr_array_list_blocks()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_block_list_chunks(
    zarr_array *array, const uint64_t *block, zarr_block_list_fn fn, void *user,
    const zarr_io_options *opts, zarr_error *err);
/** @} */

/**
 * Counts the objects that the store has for an array, and their bytes. Each object is a
 * block. If the store cannot list, the call asks it for each block of the grid.
 *
 * @param array borrowed
 * @param n_objects becomes the number of objects; may be NULL
 * @param n_bytes becomes the sum of their bytes. If the listing of the store has no
 * lengths, the call asks the store for the length of each object. May be NULL
 * @param opts `cancel` is used; NULL: defaults
 * @retval ZARR_ERR_LIMIT there are more objects than `zarr_limits.listing_keys`, or
 * blocks to ask for
 * @retval ZARR_ERR_NOT_FOUND the array was moved or deleted after it was opened
 * @retval ZARR_ERR_CONFLICT another array has taken its place
 * @retval ZARR_ERR_CANCELLED `cancel` was set
 * @retval ZARR_ERR_IO the store failed, or a directory of blocks cannot be read
 * @see zarr_array_list_blocks()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_count_stored(zarr_array *array,
                                                             uint64_t *n_objects,
                                                             uint64_t *n_bytes,
                                                             const zarr_io_options *opts,
                                                             zarr_error *err);

/**
 * @name Encoded blocks
 * These calls move the encoded bytes of one block without decoding them. `block` has its
 * grid coordinates, one for each dimension. Calls that change a block check the array's
 * document as zarr_array_write() does.
 *
 * @retval ZARR_ERR_INVALID the coordinates are outside of the grid; or the call would
 * change a block of a read-only store
 * @{
 */
/**
 * Reads the encoded bytes of one block.
 * @param array borrowed
 * @param block grid coordinates
 * @param data receives the bytes
 * @param bytes the size of `data` in bytes; becomes the number of bytes that were read
 * @param cancel stops the call with ZARR_ERR_CANCELLED once it is set; may be NULL
 * @retval ZARR_ERR_NOT_FOUND the store does not have the block
 * @retval ZARR_ERR_LIMIT `data` is too small; `*bytes` is the length that is needed
 * @retval ZARR_ERR_IO the store failed
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_block_read_encoded(
    zarr_array *array, const uint64_t *block, void *data, uint64_t *bytes,
    const zarr_cancel *cancel, zarr_error *err);
/**
 * Stores the encoded bytes of one block. They are not checked.
 * @param array borrowed
 * @param block grid coordinates
 * @param data,bytes the bytes, and how many they are
 * @param cancel stops the call with ZARR_ERR_CANCELLED once it is set; may be NULL
 * @retval ZARR_ERR_NOT_FOUND the array was moved or deleted after it was opened
 * @retval ZARR_ERR_CONFLICT another array has taken its place
 * @retval ZARR_ERR_IO the store failed
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_block_write_encoded(
    zarr_array *array, const uint64_t *block, const void *data, uint64_t bytes,
    const zarr_cancel *cancel, zarr_error *err);
/**
 * Removes one block from the store. Its elements then read as the fill value.
 * @param array borrowed
 * @param block grid coordinates
 * @param cancel stops the call with ZARR_ERR_CANCELLED once it is set; may be NULL
 * @retval ZARR_ERR_NOT_FOUND the store does not have the block, or the array was moved or
 * deleted after it was opened
 * @retval ZARR_ERR_CONFLICT another array has taken its place
 * @retval ZARR_ERR_IO the store failed
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_block_erase(zarr_array *array,
                                                            const uint64_t *block,
                                                            const zarr_cancel *cancel,
                                                            zarr_error *err);
/**
 * Copies the key of one block in the chunk store into a buffer of the caller's, as
 * snprintf() does.
 * @param array borrowed
 * @param block grid coordinates
 * @param text,cap buffer of `cap` bytes; `text` may be NULL if `cap` is 0
 * @param text_bytes becomes the length of the key without its terminator, which may
 * exceed `cap`; may be NULL
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_block_key(const zarr_array *array,
                                                          const uint64_t *block,
                                                          char *text, size_t cap,
                                                          size_t *text_bytes,
                                                          zarr_error *err);
/**
 * Gives the grid coordinates of the block that a key belongs to, such as the key in a
 * zarr_error.
 * @param array borrowed
 * @param key a key of the chunk store
 * @param block receives one coordinate for each dimension
 * @retval ZARR_ERR_INVALID no block of the array has this key
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_block_of_key(const zarr_array *array,
                                                             const char *key,
                                                             uint64_t *block,
                                                             zarr_error *err);
/** @} */

ZARR_END_DECLS

#endif
