/**
 * @file
 * Chunks whose encoded bytes the caller has: decode and encode arrays without a store.
 * For services that get chunks from a message queue or an HTTP server, and for bindings
 * that fetch chunks themselves. zarr_array_open_document() makes an array from the text
 * of its metadata.
 */
#ifndef ZARRC_CHUNKS_H
#define ZARRC_CHUNKS_H

#include <zarrc/array.h>
#include <zarrc/base.h>
#include <zarrc/error.h>
#include <zarrc/io.h>
#include <zarrc/memory.h>
#include <zarrc/selection.h>

ZARR_BEGIN_DECLS

/**
 * Encoded chunks of one array. A chunk is here the unit of writing: in a sharded array a
 * whole shard. Everything is borrowed for the call, and nothing is changed.
 */
typedef struct zarr_chunk_batch {
    uint32_t struct_size, flags; /**< `flags` must be 0 */
    uint64_t n_chunks;           /**< how many chunks there are */
    /** grid coordinates of all chunks, one chunk after the other: `n_chunks` times the
     * rank. In any order, each chunk once. NULL only for an array without dimensions */
    const uint64_t *chunks;
    /** `n_chunks` encoded chunks, in memory of any kind; `handle` NULL: the chunk is
     * missing */
    const zarr_mem *bytes;
    /** `n_chunks` results of fetching them. ZARR_OK: `bytes` has the chunk.
     * ZARR_ERR_NOT_FOUND: the chunk is missing. Another status fails the call if it needs
     * the chunk. NULL: all are ZARR_OK */
    const zarr_status *status;
} zarr_chunk_batch;

#define ZARR_CHUNK_BATCH_INIT ZARR_SIZE_FIRST(zarr_chunk_batch)

/**
 * Receives one encoded chunk, or learns that a chunk must not be stored. The library
 * calls it from any thread, several at once, once for each chunk.
 * @param user as in zarr_chunk_sink
 * @param chunk grid coordinates, one for each dimension
 * @param bytes the encoded chunk, borrowed for the call; NULL: erase the chunk, because
 * all its elements are the fill value
 * @return ZARR_OK; another status ends zarr_array_encode() with it
 */
typedef zarr_status (*zarr_chunk_sink_fn)(void *user, const uint64_t *chunk,
                                          const zarr_mem *bytes, zarr_error *err);

/** Where zarr_array_encode() puts chunks. */
typedef struct zarr_chunk_sink {
    uint32_t struct_size, flags; /**< `flags` must be 0 */
    zarr_chunk_sink_fn fn;       /**< required */
    void *user;                  /**< passed to `fn` */
    /** memory that `fn` gets chunks in, as in `zarr_mem`; 0: host memory */
    int32_t device_type, device_id;
} zarr_chunk_sink;

#define ZARR_CHUNK_SINK_INIT ZARR_SIZE_FIRST(zarr_chunk_sink)

/**
 * Decodes chunks that the caller has into memory of the caller. This is what
 * zarr_array_read() does, without a store. Chunks are decoded in parallel. Their encoded
 * bytes are not copied, unless the decoder works in another memory. The batch may have
 * more chunks than the selection needs. Counters treat the batch as a store. No store is
 * asked. A million chunks in one call cost about what a read of a memory store costs.
 *
 * Spec: Zarr v3 core, "Chunk encoding"; Zarr v2, "Chunks".
 *
 * @param array borrowed
 * @param selection made for the array's shape; NULL: all elements
 * @param dst where the elements go; its shape is the shape of the selection's result
 * @param in the encoded chunks
 * @param opts options; NULL: defaults. `missing_chunks` says what a missing chunk means
 * @return ZARR_OK, or the error of the first chunk that failed
 * @retval ZARR_ERR_INVALID the tensor or the selection does not fit the array; the batch
 * lacks a chunk that the selection needs, has a chunk twice, or has one outside of the
 * grid
 * @retval ZARR_ERR_CORRUPT a chunk or a shard index is damaged
 * @retval ZARR_ERR_LIMIT a chunk has more encoded bytes than `zarr_limits.encoded_bytes`
 * @retval ZARR_ERR_NOT_FOUND a chunk is missing, and ZARR_MISSING_ERROR is set
 * @retval ZARR_ERR_CANCELLED `cancel` was set; with ZARR_IO_AT_ONCE: it would take long
 * @see zarr_array_encode(), zarr_array_open_document(), zarr_array_chunk_extent()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_decode(
    zarr_array *array, const zarr_selection *selection, const zarr_tensor *dst,
    const zarr_chunk_batch *in, const zarr_io_options *opts, zarr_error *err);

/**
 * Encodes elements to chunks that a function of the caller receives. This is what
 * zarr_array_write() does, without a store.
 *
 * A chunk that the selection covers in part is changed: its old value must be in `old`. A
 * chunk that reaches beyond the array's shape and is covered inside of it keeps its
 * elements outside if `old` has it; otherwise these become the fill value. Other chunks
 * of `old` are not used. No store is asked, and no lock is taken: the caller makes sure
 * that a chunk does not change between fetching its old value and storing the new one.
 *
 * Spec: Zarr v3 core, "Chunk encoding"; Zarr v2, "Chunks".
 *
 * @param array borrowed
 * @param selection made for the array's shape; NULL: all elements
 * @param src the elements; its shape is the shape of the selection's result
 * @param old old values of chunks; NULL: there are none
 * @param sink receives the chunks
 * @param opts options; NULL: defaults. `empty_chunks` says whether chunks of fill values
 * are erased
 * @return ZARR_OK, the error of the first chunk that failed, or the status that the sink
 * returned
 * @retval ZARR_ERR_INVALID the tensor or the selection does not fit the array; `old`
 * lacks a chunk that is covered in part, has a chunk twice, or has one outside of the
 * grid
 * @retval ZARR_ERR_CORRUPT an old chunk that must be changed in part is damaged
 * @retval ZARR_ERR_UNSUPPORTED a codec cannot encode
 * @retval ZARR_ERR_CANCELLED `cancel` was set; the sink has got some chunks
 * @see zarr_array_decode(), zarr_array_write_shape(), zarr_array_chunk_key()
 */
ZARR_API ZARR_MUST_CHECK zarr_status
/* NOLINT(function-size): a write's arguments, and both sides of the chunks */
zarr_array_encode(zarr_array *array, const zarr_selection *selection,
                  const zarr_tensor *src, const zarr_chunk_batch *old,
                  const zarr_chunk_sink *sink, const zarr_io_options *opts,
                  zarr_error *err);

ZARR_END_DECLS

#endif
