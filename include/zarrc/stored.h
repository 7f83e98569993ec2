/**
 * @file
 * The stored objects of an array: lists of its chunks, counts, and chunks as they are
 * encoded.
 */
#ifndef ZARRC_STORED_H
#define ZARRC_STORED_H

#include <zarrc/array.h>
#include <zarrc/base.h>
#include <zarrc/error.h>
#include <zarrc/io.h>

ZARR_BEGIN_DECLS

/** A stored chunk. Its pointers are borrowed for the call. */
typedef struct zarr_chunk_info {
    uint32_t struct_size;
    int32_t ndim; /**< number of dimensions */
    /** grid coordinates: in units of zarr_array_write_shape(), or of
     * zarr_array_chunk_shape() for an inner chunk */
    const uint64_t *chunk;
    const char *key;        /**< key of the object in the chunk store */
    uint64_t offset, bytes; /**< place in the object; `bytes` UINT64_MAX: not known */
    uint32_t inner;         /**< 1: an inner chunk of a shard; 0: a whole object */
    uint32_t reserved;
} zarr_chunk_info;

/** Receives one stored chunk. A non-zero return ends the listing. */
typedef int (*zarr_chunk_list_fn)(void *user, const zarr_chunk_info *chunk);

/** Which chunks are listed. */
enum {
    ZARR_CHUNKS_OBJECTS = 0, /**< objects of the store: chunks, or whole shards */
    /** inner chunks of shards; the call reads the index of each shard */
    ZARR_CHUNKS_INNER = 1,
    /** missing chunks, or missing whole shards, in C order; `bytes` is 0. The call first
     * lists the stored ones of the store */
    ZARR_CHUNKS_MISSING = 2
};

/**
 * Lists the chunks that the store has, or the missing ones.
 *
 * @param array borrowed
 * @param what one of ZARR_CHUNKS_*
 * @param fn called for each chunk
 * @param user passed to `fn`
 * @param opts `cancel` is used; NULL: defaults
 * @return ZARR_OK, also when `fn` ended the listing
 * @retval ZARR_ERR_CANCELLED `cancel` was set
 * @retval ZARR_ERR_INVALID `what` is wrong
 * @retval ZARR_ERR_UNSUPPORTED the store cannot list
 * @retval ZARR_ERR_NOT_FOUND the array was moved or deleted after it was opened
 * @retval ZARR_ERR_CONFLICT another array has taken its place
 * @retval ZARR_ERR_CORRUPT the index of a shard is damaged
 * @retval ZARR_ERR_IO the store failed, or a directory of chunks cannot be read
 * @see zarr_array_chunk_counts(), zarr_array_chunk_key(), zarr_store_list()
 */
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_array_chunk_list(zarr_array *array, uint32_t what, zarr_chunk_list_fn fn, void *user,
                      const zarr_io_options *opts, zarr_error *err);

/**
 * Counts the objects that the store has for an array, and their bytes. Objects are chunks
 * or whole shards.
 *
 * @param array borrowed
 * @param n_objects becomes the number of objects; may be NULL
 * @param n_bytes becomes the sum of their bytes. A store whose listing has no lengths is
 * asked for each object. May be NULL
 * @param opts `cancel` is used; NULL: defaults
 * @retval ZARR_ERR_UNSUPPORTED the store cannot list
 * @retval ZARR_ERR_LIMIT there are more objects than `zarr_limits.listing_keys`
 * @retval ZARR_ERR_NOT_FOUND the array was moved or deleted after it was opened
 * @retval ZARR_ERR_CONFLICT another array has taken its place
 * @retval ZARR_ERR_CANCELLED `cancel` was set
 * @retval ZARR_ERR_IO the store failed, or a directory of chunks cannot be read
 * @see zarr_array_chunk_list()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_stored(zarr_array *array,
                                                       uint64_t *n_objects,
                                                       uint64_t *n_bytes,
                                                       const zarr_io_options *opts,
                                                       zarr_error *err);

/**
 * @name Stored chunks as they are
 * These calls move the encoded bytes of one unit of writing, a chunk or a whole shard,
 * without decoding them. `chunk` has the grid coordinates of the unit, one for each
 * dimension. Calls that change a unit look at the array's document as zarr_array_write()
 * does.
 *
 * @retval ZARR_ERR_INVALID the coordinates are outside of the grid; or a call that
 * changes the unit has a store that is read-only
 * @{
 */
/**
 * Reads the encoded bytes of one unit.
 * @param array borrowed
 * @param chunk grid coordinates
 * @param data receives the bytes
 * @param bytes how many bytes `data` has room for; becomes how many there are
 * @retval ZARR_ERR_NOT_FOUND the store does not have the unit
 * @retval ZARR_ERR_LIMIT `data` is too small; `*bytes` is the length that is needed
 * @retval ZARR_ERR_IO the store failed
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_chunk_read_encoded(zarr_array *array,
                                                                   const uint64_t *chunk,
                                                                   void *data,
                                                                   uint64_t *bytes,
                                                                   zarr_error *err);
/**
 * Stores the encoded bytes of one unit. They are not checked.
 * @param array borrowed
 * @param chunk grid coordinates
 * @param data,bytes the bytes, and how many they are
 * @retval ZARR_ERR_NOT_FOUND the array was moved or deleted after it was opened
 * @retval ZARR_ERR_CONFLICT another array has taken its place
 * @retval ZARR_ERR_IO the store failed
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_chunk_write_encoded(zarr_array *array,
                                                                    const uint64_t *chunk,
                                                                    const void *data,
                                                                    uint64_t bytes,
                                                                    zarr_error *err);
/**
 * Removes one unit from the store. Its elements then read as the fill value.
 * @param array borrowed
 * @param chunk grid coordinates
 * @retval ZARR_ERR_NOT_FOUND the store does not have the unit, or the array was moved or
 * deleted after it was opened
 * @retval ZARR_ERR_CONFLICT another array has taken its place
 * @retval ZARR_ERR_IO the store failed
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_chunk_erase(zarr_array *array,
                                                            const uint64_t *chunk,
                                                            zarr_error *err);
/**
 * Copies the key of one unit in the chunk store into a buffer of the caller's, as
 * snprintf() does.
 * @param array borrowed
 * @param chunk grid coordinates
 * @param text,cap buffer of `cap` bytes; `text` may be NULL if `cap` is 0
 * @param text_bytes becomes the length of the key without its terminator, which may
 * exceed `cap`; may be NULL
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_chunk_key(const zarr_array *array,
                                                          const uint64_t *chunk,
                                                          char *text, size_t cap,
                                                          size_t *text_bytes,
                                                          zarr_error *err);
/**
 * Gives the grid coordinates of the unit that a key belongs to, such as the key in a
 * zarr_error.
 * @param array borrowed
 * @param key a key of the chunk store
 * @param chunk receives one coordinate for each dimension
 * @retval ZARR_ERR_INVALID the key is not that of a unit of this array; its document has
 * no place in the grid
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_chunk_of_key(const zarr_array *array,
                                                             const char *key,
                                                             uint64_t *chunk,
                                                             zarr_error *err);
/** @} */

ZARR_END_DECLS

#endif
