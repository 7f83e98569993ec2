/**
 * @file
 * Elements: calls that read and write an array, blocking or in the background, and their
 * options. zarrc/parts.h reads and writes several selections in one call. zarrc/chunks.h
 * decodes and encodes blocks without a store.
 */
#ifndef ZARRC_IO_H
#define ZARRC_IO_H

#include <zarrc/array.h>
#include <zarrc/base.h>
#include <zarrc/error.h>
#include <zarrc/memory.h>
#include <zarrc/plan.h>
#include <zarrc/types.h>

ZARR_BEGIN_DECLS

/** What becomes of the elements of a border block that are outside of the array's shape,
 * when a write covers all the others. 0: the write reads the block and keeps them. */
enum {
    /** they become the fill value, without a read and a lock. Use this only if the array
     * does not grow during the write */
    ZARR_OUTSIDE_RESET = 1
};
/** The order in which a write puts chunks into a shard. 0: C order of their coordinates,
 * the last one fastest. */
enum {
    ZARR_INNER_ORDER_MORTON = 1,      /**< along the Z-order curve */
    ZARR_INNER_ORDER_COLUMN_MAJOR = 2 /**< the first coordinate fastest */
};

/**
 * Performance options of a call, which do not change the elements that it reads or
 * writes. The defaults suit nearly all programs.
 */
typedef struct zarr_tuning {
    uint32_t struct_size, flags; /**< `flags` must be 0 */
    /** a call handles its chunks in waves: maximum decoded bytes of one wave; 0: the
     * context's */
    uint64_t wave_bytes;
    /** maximum bytes that this call takes from the context's `memory_bytes`; 0: no limit
     * of its own. If one chunk needs more, the call fails with ZARR_ERR_LIMIT before it
     * reads or writes anything. So does a write if one shard needs more, unless the store
     * has ZARR_STORE_CAP_PARTS. The message names the bytes that are needed.
     *
     * The limit counts the decoded and the stored bytes of each chunk, and the old stored
     * bytes of a block that a write changes. It does not count chunks whose size the
     * metadata does not bound. In reads, it does not count the indexes of shards either.
     * A pipeline of a plug-in may reserve more */
    uint64_t memory_bytes;
    /** reads of shards: chunks of one shard are fetched together if the gap between them
     * has at most this many bytes. 0: 16 KiB for a store with ZARR_STORE_CAP_FAST_GET,
     * else 1 MiB; a store with ZARR_STORE_CAP_COALESCES decides itself */
    uint64_t coalesce_gap;
    /** reads of shards: maximum bytes that are fetched together; 1: each chunk alone. 0:
     * 1 MiB for a store with ZARR_STORE_CAP_FAST_GET, else 16 MiB */
    uint64_t coalesce_bytes;
    const char *pipeline; /**< name of a registered pipeline; NULL: the array's */
    /** as in `zarr_context_options`; NULL: the array's. Use only a few texts: the array
     * handle caches data for each */
    const char *codec_preference;
    /** writes of shards: the order of the chunks, one of ZARR_INNER_ORDER_*. 0: C order
     */
    uint32_t inner_order;
    uint32_t reserved; /**< must be 0 */
} zarr_tuning;

#define ZARR_TUNING_INIT ZARR_SIZE_FIRST(zarr_tuning)

/**
 * Options of calls that read or write elements or chunks. Other calls that take them say
 * which members they use.
 */
typedef struct zarr_io_options {
    uint32_t struct_size, flags; /**< `flags`: ZARR_IO_* */

    uint32_t missing_chunks; /**< one of ZARR_MISSING_*; 0: the array's */
    uint32_t empty_chunks;   /**< one of ZARR_EMPTY_CHUNKS_*; 0: the array's */
    /** writes: one of ZARR_OUTSIDE_*: what elements outside of the shape become */
    uint32_t outside;
    uint32_t trust; /**< reads: one of ZARR_TRUST_* of zarrc/context.h; 0: the array's */
    /**
     * one field of structured elements, as zarr_dtype_field_find() takes it, such as "a"
     * or "a.b". The tensor then has the data type of the field, and the dimensions of a
     * subarray after those of the selection. A write leaves the other fields alone. NULL:
     * whole elements
     */
    const char *field;

    /** borrowed; filled at the end, also if a chunk fails; may be NULL */
    zarr_stats *stats;
    /** reads of elements of variable length: receives their bytes; required for those */
    struct zarr_heap *heap;
    /** reads: receives a byte for each block that the selection touches, in C order of
     * their coordinates: 1 if the store has the block, 0 if it is missing. Borrowed;
     * undefined after a failure; NULL: not wanted */
    uint8_t *present;
    uint64_t n_present; /**< bytes of `present`, at least the number of these blocks */
    /**
     * called repeatedly during the call, by one thread at a time, which may be a thread
     * of the library; may be NULL. It may read and write arrays. It must not append to an
     * array to which the call appends, or wait for its own request
     */
    void (*progress)(void *user, const zarr_stats *so_far);
    void *progress_user; /**< passed to `progress` */

    /**
     * maximum number of threads for one wave, including the caller's; 0: the context's.
     * Several waves may run at once, each with up to this many threads. 1: one wave at a
     * time, and one thread decodes or encodes it
     */
    uint32_t max_threads;
    uint32_t reserved; /**< must be 0 */
    /** stops the call with ZARR_ERR_CANCELLED once it is set; may be NULL. A blocking
     * call borrows it. A submitted request keeps it alive until the request is freed */
    zarr_cancel *cancel;
    /**
     * a stream of the tensor's device, such as a CUstream; may be NULL. The library
     * accesses the tensor only after the work that is on the stream at entry. It does not
     * use the stream after the call has returned. When the call returns or its request is
     * done, all work is complete. ZARR_ERR_UNSUPPORTED: the tensor is in host memory, the
     * tensors of parts are on several devices, or the call has no tensor
     */
    void *stream;
    const zarr_tuning *tuning; /**< borrowed; NULL: defaults */
} zarr_io_options;

#define ZARR_IO_OPTIONS_INIT ZARR_SIZE_FIRST(zarr_io_options)

/** Flags of zarr_io_options. */
enum {
    ZARR_IO_NO_HUGE_PAGES = 1, /**< do not ask for huge pages for the caller's memory */
    /** do a small read at once, on the thread of the caller. A small read has at most 8
     * chunks, 64 KiB of decoded chunks and 64 KiB of shard indexes. Their stored bytes
     * are in host memory or in the page cache of a local file system. The elements have a
     * fixed size, all codecs are those of the library, and `progress` is NULL.
     *
     * zarr_array_read_submit(): if the read is small and `stats` is NULL, the request is
     * done when the call returns. Otherwise the flag has no effect. For a request that is
     * done, zarr_request_then() calls its function at once. A function that starts the
     * next read in this way recurses.
     *
     * zarr_array_read(), zarr_array_decode(): return ZARR_ERR_CANCELLED if the read is
     * not small, or would wait. The caller may repeat the call on another thread, without
     * the flag. Other calls ignore the flag */
    ZARR_IO_AT_ONCE = 2
};

/**
 * Reads the selected elements of an array into memory of the caller. The tensor may have
 * any byte order, any kind of memory, and any strides with which its elements do not
 * overlap. After a failure the content of the tensor is undefined.
 *
 * A missing chunk reads as the fill value. A read that finds one checks that the stored
 * array still has all selected elements. There is no such check in a store with
 * ZARR_STORE_CAP_IMMUTABLE, for a handle of zarr_array_open_document() without
 * ZARR_OPEN_STORED, or for an array that only consolidated metadata describes. If another
 * writer has cut off a part of a border chunk, that chunk is not missing, so there is no
 * check (see zarr_array_recheck()).
 *
 * In a store with ZARR_STORE_CAP_ATOMIC_PUT, all elements of a chunk are from one of its
 * stored values, whatever other writers do. There is one exception: stores of an
 * application without ZARR_STORE_CAP_VERSIONS. If another writer replaces a shard there
 * during the read, elements may be wrong.
 *
 * Spec: Zarr v3 core, "Chunk encoding"; Zarr v2, "Chunks".
 *
 * @param array borrowed
 * @param selection made for the array's shape; NULL: all elements
 * @param dst where the elements go; its shape is the shape of the selection's result
 * @param opts options; NULL: defaults
 * @return ZARR_OK, or the error of the first chunk in C order that failed; the number of
 * threads does not change which one. The message names the key and the reason
 * @retval ZARR_ERR_INVALID the tensor or the selection does not fit the array
 * @retval ZARR_ERR_CORRUPT a chunk or a shard index is damaged
 * @retval ZARR_ERR_NOT_FOUND a chunk is missing, and ZARR_MISSING_ERROR is set; or the
 * array was moved or deleted after it was opened
 * @retval ZARR_ERR_CONFLICT another array, with other chunks, data type, codecs or fill
 * value, replaced this one; or another writer removed selected elements; or other writers
 * replaced a shard each time it was read
 * @retval ZARR_ERR_LIMIT a chunk is larger than `zarr_limits.chunk_bytes`, or its encoded
 * bytes are more than `zarr_limits.encoded_bytes`, or it needs more than
 * `opts->tuning->memory_bytes`
 * @retval ZARR_ERR_CANCELLED `cancel` was set; or the flag ZARR_IO_AT_ONCE was set, and
 * the read is not small or would wait
 * @retval ZARR_ERR_IO the store failed
 * @see zarr_array_read_submit(), zarr_array_read_vlen(), zarr_array_write(),
 * zarr_tensor_host(), zarr_selection_parse()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_read(zarr_array *array,
                                                     const zarr_selection *selection,
                                                     const zarr_tensor *dst,
                                                     const zarr_io_options *opts,
                                                     zarr_error *err);

/**
 * Writes elements from memory of the caller to the selected elements of an array. A
 * dimension of the tensor with stride 0 repeats its element.
 *
 * Several threads and processes may write to one array. A write of a part of a block
 * reads, changes and writes the block under a lock. A write of a whole block needs no
 * read, unless the block reaches beyond the shape (but see ZARR_OUTSIDE_RESET).
 * zarr_array_block_shape() tells the shape of blocks. When the call returns, later reads
 * through the same store find the data. zarr_store_flush() makes it durable, and shows it
 * to other readers of a store with ZARR_STORE_CAP_ATOMIC_FLUSH. After a failure in a
 * store with ZARR_STORE_CAP_ATOMIC_PUT, each object still holds its old or new value.
 *
 * A write fails if the array was moved, deleted or replaced after it was opened. The
 * write checks this before each wave of chunks and after the last one. If a check finds
 * no array, or another one, the write removes the objects that it created since its
 * previous check. It does not remove:
 * - an object that replaced an older value, or that another writer has replaced;
 * - an object in a store of a plug-in, or in a local store with ZARR_LOCKS_NONE.
 *
 * If the store cannot do the last check, the call returns the error of the store. Then
 * the elements are stored, but the array may have been replaced.
 *
 * Between a replacement of the array and the next check, readers of the new array may see
 * chunks of this write. If the process is killed or the call is cancelled then, these
 * chunks stay. Chunks that the write erased stay erased. A write does not notice a
 * replacement by an array with equal metadata. Some arrays are not checked, as
 * zarr_array_read() says.
 *
 * Spec: Zarr v3 core, "Chunk encoding"; Zarr v2, "Chunks".
 *
 * @param array borrowed
 * @param selection made for the array's shape; NULL: all elements
 * @param src the elements; its shape is the shape of the selection's result
 * @param opts options; NULL: defaults
 * @return ZARR_OK, or the error of the first chunk in C order that failed; the number of
 * threads does not change which one. The message names the key and the reason
 * @retval ZARR_ERR_INVALID the tensor or the selection does not fit the array, or the
 * store is read-only
 * @retval ZARR_ERR_CORRUPT a chunk that must be changed in part is damaged
 * @retval ZARR_ERR_LIMIT an old value that the write needs is larger than a limit; or a
 * block needs more than `opts->tuning->memory_bytes`
 * @retval ZARR_ERR_CONFLICT other writers changed a chunk each time it was written; or
 * another array, with other chunks, data type, codecs or fill value, replaced this one.
 * Then the message says how many objects of this call remain in the new array
 * @retval ZARR_ERR_NOT_FOUND the array was moved or deleted after it was opened
 * @retval ZARR_ERR_UNSUPPORTED the store cannot write, or a codec cannot encode
 * @retval ZARR_ERR_CANCELLED `cancel` was set; some chunks may be written
 * @retval ZARR_ERR_IO the store failed
 * @see zarr_array_append(), zarr_array_write_submit(), zarr_array_write_vlen(),
 * zarr_store_flush(), zarr_tensor_host()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_write(zarr_array *array,
                                                      const zarr_selection *selection,
                                                      const zarr_tensor *src,
                                                      const zarr_io_options *opts,
                                                      zarr_error *err);

/**
 * @name Read and write in the background
 * These calls start a read or a write, and return without waiting for it. The selection,
 * the tensor with its memory, and what the options point to must stay valid until the
 * request is done. Exceptions: the call copies `tuning` and texts, and the request is an
 * owner of the array and of `cancel`.
 * @{
 */
/**
 * Starts a read.
 * @param out receives the request; owned: zarr_request_free()
 * @param array,selection,dst,opts as for zarr_array_read()
 * @retval ZARR_ERR_INVALID an argument is wrong; errors of chunks are reported by
 * zarr_request_wait()
 * @see zarr_request_wait()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_read_submit(
    zarr_request **out, zarr_array *array, const zarr_selection *selection,
    const zarr_tensor *dst, const zarr_io_options *opts, zarr_error *err);
/**
 * Starts a write.
 * @param out receives the request; owned: zarr_request_free()
 * @param array,selection,src,opts as for zarr_array_write()
 * @retval ZARR_ERR_INVALID an argument is wrong; errors of chunks are reported by
 * zarr_request_wait()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_write_submit(
    zarr_request **out, zarr_array *array, const zarr_selection *selection,
    const zarr_tensor *src, const zarr_io_options *opts, zarr_error *err);
/** @} */

/**
 * Explains what a read or write would do. It tells how many chunks the call would touch,
 * which implementations of codecs it would use, and which copies it would make. No
 * element is read or written.
 *
 * @param out receives the explanation; owned: zarr_explanation_free()
 * @param array borrowed; the explanation does not need it any more
 * @param what ZARR_EXPLAIN_READ or ZARR_EXPLAIN_WRITE
 * @param selection as for zarr_array_read(); NULL: all elements
 * @param tensor as for zarr_array_read(); only its kind of memory and its strides matter.
 * NULL: the default memory, in C order
 * @param opts options; NULL: defaults
 * @retval ZARR_ERR_INVALID an argument is wrong
 * @retval ZARR_ERR_UNSUPPORTED no memory backend has the tensor's kind of memory
 * @see zarr_explanation_text(), zarr_stats
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_explain(zarr_explanation **out,
                                                        zarr_array *array, uint32_t what,
                                                        const zarr_selection *selection,
                                                        const zarr_tensor *tensor,
                                                        const zarr_io_options *opts,
                                                        zarr_error *err);

/**
 * @name One shard in parts
 * A program can write a shard one box at a time. A box is a range along each dimension:
 *
 *     zarr_shard_writer_open(&w, array, shard, NULL, &err);
 *     while (zarr_shard_writer_next(w, buffer_bytes, start, count)) {
 *         ... fill `tensor` with the elements of this box ...
 *         zarr_shard_writer_write(w, &tensor, &err);
 *     }
 *     zarr_shard_writer_free(w);
 *
 * Readers see the old shard until the last box is written. Memory holds a few chunks,
 * whatever the size of the shard. The writer holds the lock of the shard's key until
 * zarr_shard_writer_free().
 * @{
 */
/**
 * Begins to write a shard.
 * @param out receives the writer; owned: zarr_shard_writer_free()
 * @param array borrowed
 * @param shard coordinates of the shard in the grid of blocks
 * @param opts options of each write; what they point to is borrowed until the writer is
 * freed. NULL: defaults
 * @retval ZARR_ERR_INVALID the grid has no such shard
 * @retval ZARR_ERR_UNSUPPORTED the array has no shards, or has codecs around them; or the
 * store has no ZARR_STORE_CAP_PARTS; or `opts->tuning->inner_order` is not 0, or
 * `opts->tuning->pipeline` is that of a plug-in
 * @retval ZARR_ERR_LIMIT one chunk needs more than `opts->tuning->memory_bytes`
 * @retval ZARR_ERR_IO waiting for the lock took longer than the store permits
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_shard_writer_open(zarr_shard_writer **out,
                                                            zarr_array *array,
                                                            const uint64_t *shard,
                                                            const zarr_io_options *opts,
                                                            zarr_error *err);
/**
 * Returns the next box of the shard, in coordinates of the array. The box consists of
 * whole chunks, cut at the shape of the array.
 * @param w borrowed
 * @param max_bytes maximum bytes of the elements of the box, unless one chunk has more
 * @param start receives the first element, one number for each dimension
 * @param count receives the lengths, likewise
 * @return 1; 0 after the last box, or if the previous box was not written
 */
ZARR_API int zarr_shard_writer_next(zarr_shard_writer *w, uint64_t max_bytes,
                                    uint64_t *start, uint64_t *count);
/**
 * Writes the box that zarr_shard_writer_next() returned. Writing the last box stores the
 * shard atomically. After a failure the writer can only be freed.
 * @param w borrowed
 * @param src tensor of the box, as for zarr_array_write()
 * @retval ZARR_ERR_INVALID there is no box to write, or the tensor does not fit it
 * @retval ZARR_ERR_UNSUPPORTED the tensor is not in host memory
 * @retval ZARR_ERR_CONFLICT the array was replaced, or the file of the lock was removed
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_shard_writer_write(zarr_shard_writer *w,
                                                             const zarr_tensor *src,
                                                             zarr_error *err);
/**
 * Frees a writer. If the last box was not written, the old shard stays.
 * @param w may be NULL
 */
ZARR_API void zarr_shard_writer_free(zarr_shard_writer *w);
/** @} */

ZARR_END_DECLS

#endif
