/**
 * @file
 * Elements: calls that read and write an array, blocking or in the background; their
 * options; and what a call would do. zarrc/parts.h reads and writes several selections in
 * one call. zarrc/chunks.h handles chunks that the caller has.
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

/** A block at the border may reach beyond the array's shape. If a write covers all
 * elements of such a block inside the shape, this says what happens to those outside. 0:
 * the write reads the old value and keeps them, because another handle may have made the
 * array larger. */
enum {
    /** they become the fill value. This saves the read and the lock. Use it only if the
     * array does not grow during the write */
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
 * writes. The defaults suit nearly all programs. Members that are zero or NULL have their
 * defaults.
 */
typedef struct zarr_tuning {
    uint32_t struct_size, flags; /**< `flags` must be 0 */
    /** a call handles its chunks in waves. Maximum decoded bytes of one wave; 0: the
     * context's */
    uint64_t wave_bytes;
    /** maximum bytes that this call takes from the context's `memory_bytes`, so that
     * other calls have room. A call fails with ZARR_ERR_LIMIT, before it reads or writes
     * anything, if one chunk needs more. So does a write if one shard needs more, unless
     * the store has ZARR_STORE_CAP_PARTS. The message names the bytes that are needed.
     * For each chunk its elements and its stored bytes count. A write that needs the old
     * value of a block counts its stored bytes, too. Uncompressed chunks that are no
     * parts of shards need less in a local or memory store. There a read to host memory
     * counts the bytes from the first to the last that it needs, and nothing if they go
     * straight to the tensor. If the metadata does not bound the size of a chunk, its
     * buffers count in the context's budget only. Indexes of shards that are read do not
     * count, and a pipeline of a plug-in may reserve more. 0: no limit of its own */
    uint64_t memory_bytes;
    /** reads of shards: chunks of one shard are fetched together if the gap between them
     * has at most this many bytes; 1: in practice, only adjacent chunks. 0: 16 KiB for a
     * store with ZARR_STORE_CAP_FAST_GET, else 1 MiB; a store with
     * ZARR_STORE_CAP_COALESCES decides itself */
    uint64_t coalesce_gap;
    /** reads of shards: maximum bytes that are fetched together; 1: each chunk alone. 0:
     * 1 MiB for a store with ZARR_STORE_CAP_FAST_GET, else 16 MiB */
    uint64_t coalesce_bytes;
    const char *pipeline; /**< name of a registered pipeline; NULL: the array's */
    /** as in `zarr_context_options`; the array handle caches what it prepares for each
     * text, so use only a few texts. NULL: the array's */
    const char *codec_preference;
    /** writes of shards: one of ZARR_INNER_ORDER_*. A shard that is written or changed
     * has all its chunks in this order. The index tells where each chunk is, so readers
     * need not know the order. 0: C order of their coordinates, the last one fastest */
    uint32_t inner_order;
    uint32_t reserved; /**< must be 0 */
} zarr_tuning;

#define ZARR_TUNING_INIT ZARR_SIZE_FIRST(zarr_tuning)

/**
 * Options of calls that read or write elements or chunks. Other calls, such as
 * zarr_array_list_blocks(), take them, too, and say which members they use. The members
 * are in three groups: what the call means, what it reports, and how it runs.
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
     * maximum number of threads for one wave, including the caller's; 0: the context's. A
     * call with several waves works on some of them at once, each with up to this many
     * threads. 1: one wave at a time, and one thread decodes or encodes it
     */
    uint32_t max_threads;
    uint32_t reserved; /**< must be 0 */
    /** stops the call with ZARR_ERR_CANCELLED once it is set; may be NULL. Borrowed by a
     * blocking call; a submitted request is an owner of it until it is freed */
    zarr_cancel *cancel;
    /**
     * a stream of the device that the tensor is on, in the form of the device's own
     * interface (such as a CUstream), or NULL. The library accesses the tensor only after
     * the work that is on the stream at entry. It uses the stream only until the call
     * returns, also in calls that submit. When the call returns or its request is done,
     * all work is complete: the application need not wait for a stream.
     * ZARR_ERR_UNSUPPORTED: the tensor is in host memory (ZARR_DEVICE_CPU), or the
     * tensors of parts are on several devices, or the call has no tensor
     */
    void *stream;
    const zarr_tuning *tuning; /**< borrowed; NULL: defaults */
} zarr_io_options;

#define ZARR_IO_OPTIONS_INIT ZARR_SIZE_FIRST(zarr_io_options)

/** Flags of zarr_io_options. */
enum {
    ZARR_IO_NO_HUGE_PAGES = 1, /**< do not ask for huge pages for the caller's memory */
    /** zarr_array_read_submit(): if the read is small, the call itself carries it out,
     * and the request is done when the call returns. This saves an event loop two
     * switches between threads. A small read has at most 8 chunks, 32 KiB of decoded
     * chunks and 64 KiB of shard indexes. They are in host memory or in the page cache of
     * a local file system, and their elements have a fixed size. The call never waits for
     * a disk or a network, unless a tmpfs is swapped out, or a file system seems local
     * but is remote. zarr_request_then() then calls its function at once, on the thread
     * of the caller: if this function submits the next read, calls nest. The flag has no
     * effect in other calls, for other stores, for codecs of the application or of
     * plug-ins, or with `stats` or `progress`.
     *
     * zarr_array_read(), zarr_array_decode(): return ZARR_ERR_CANCELLED if the read is
     * not small, uses code that is not the library's own, has `progress`, or would wait
     * for memory, a disk or a network. The caller may repeat the call on another thread,
     * without the flag */
    ZARR_IO_AT_ONCE = 2
};

/**
 * Reads the selected elements of an array into memory of the caller. The tensor may have
 * any strides, any byte order and any kind of memory. Chunks are fetched and decoded in
 * parallel. After a failure the content of the tensor is undefined.
 *
 * A chunk reads as the fill value only if it is missing and the stored array still has
 * all selected elements. To check this, a read that found a missing chunk reads the
 * metadata document once, after its last chunk. There is no such check in a store with
 * ZARR_STORE_CAP_IMMUTABLE, or for an array that only consolidated metadata describes. If
 * another writer shrinks the array and cuts off a part of a border chunk, this chunk is
 * not missing: only zarr_array_recheck() notices the change.
 *
 * In a store that replaces values atomically (ZARR_STORE_CAP_ATOMIC_PUT), all elements of
 * a chunk are from one of its stored values, whatever other writers do. There is one
 * exception: shards in a store of an application without ZARR_STORE_CAP_VERSIONS. If
 * such a shard is replaced during the read, the read detects a new length, provided that
 * the store reports the length in each operation. It does not detect a new value of the
 * same length: elements may be wrong, or the read fails with ZARR_ERR_CORRUPT if a codec
 * detects the damage.
 *
 * Spec: Zarr v3 core, "Chunk encoding"; Zarr v2, "Chunks".
 *
 * @param array borrowed
 * @param selection made for the array's shape; NULL: all elements
 * @param dst where the elements go; its shape is the shape of the selection's result
 * @param opts options; NULL: defaults
 * @return ZARR_OK, or the error of the first chunk that failed, whatever the number of
 * threads; the message names the key and the reason
 * @retval ZARR_ERR_INVALID the tensor or the selection does not fit the array
 * @retval ZARR_ERR_CORRUPT a chunk or a shard index is damaged
 * @retval ZARR_ERR_NOT_FOUND a chunk is missing, and ZARR_MISSING_ERROR is set; or the
 * array was moved or deleted after it was opened
 * @retval ZARR_ERR_CONFLICT another array, with other chunks, data type, codecs or fill
 * value, has taken the place of this one; or another writer removed selected elements; or
 * other writers replaced a shard each time it was read
 * @retval ZARR_ERR_LIMIT a chunk is larger than `zarr_limits.chunk_bytes`, or its encoded
 * bytes are more than `zarr_limits.encoded_bytes`, or it needs more than
 * `opts->tuning->memory_bytes`
 * @retval ZARR_ERR_CANCELLED `cancel` was set; or the flag ZARR_IO_AT_ONCE was set, and
 * the read is not small
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
 * A partial write of a block is a read, a change and a write under a lock. So is a write
 * of a block that reaches beyond the shape (but see ZARR_OUTSIDE_RESET). Several threads
 * and processes may therefore write to one array. Whole blocks need no read;
 * zarr_array_block_shape() tells their shape. The data is in the store when the call
 * returns, and zarr_store_flush() makes it durable. After a failure each object still
 * holds its old or its new value.
 *
 * A write fails if the array was moved, deleted or replaced after it was opened. It
 * checks the array's document before each wave of chunks and after the last one. In a
 * local store it also checks the document under the lock of each block that it changes in
 * part. If a check finds no array, or another one, the write stops. Then it removes the
 * objects that it created since the last successful check, and counts those that remain.
 * It does not remove:
 * - an object that replaced an older value, or that another writer has replaced since;
 * - an object in a store of a plug-in, or in a local store with ZARR_LOCKS_NONE, where it
 *   cannot be sure that it created the object.
 *
 * A check can also fail for another reason, such as a store that does not answer. If the
 * first check fails like this, the write stops; if a later one does, it goes on. If the
 * last check fails like this, the call returns its error: the elements are stored, but
 * the array may have been replaced.
 *
 * From the replacement of an array until the write's next check, readers of the new array
 * may see chunks of this write. If the process is killed or the call is cancelled in this
 * time, these chunks stay. Chunks that the write erased in this time stay erased. A write
 * does not notice that the array is moved or deleted after its last check, or replaced by
 * an array with equal metadata. As for zarr_array_read(), there is no check in a store
 * with ZARR_STORE_CAP_IMMUTABLE, or for an array that only consolidated metadata
 * describes.
 *
 * Spec: Zarr v3 core, "Chunk encoding"; Zarr v2, "Chunks".
 *
 * @param array borrowed
 * @param selection made for the array's shape; NULL: all elements
 * @param src the elements; its shape is the shape of the selection's result
 * @param opts options; NULL: defaults
 * @return ZARR_OK, or the error of the first chunk that failed, whatever the number of
 * threads; the message names the key and the reason
 * @retval ZARR_ERR_INVALID the tensor or the selection does not fit the array, or the
 * store is read-only
 * @retval ZARR_ERR_CORRUPT a chunk that must be changed in part is damaged
 * @retval ZARR_ERR_LIMIT the old value of a chunk that is changed in part, or that
 * reaches beyond the array's shape, is larger than a limit; or a block needs more than
 * `opts->tuning->memory_bytes`
 * @retval ZARR_ERR_CONFLICT other writers changed a chunk each time it was written; or
 * another array, with other chunks, data type, codecs or fill value, has taken the place
 * of this one. Then the message says how many objects of this call remain in the new
 * array
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
 * element is read, written, decoded or copied. zarr_stats counts what a call did.
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
 * A program can write a shard one box at a time. A box is a range along each dimension.
 * The program writes the shard like this:
 *
 *     zarr_shard_writer_open(&w, array, shard, NULL, &err);
 *     while (zarr_shard_writer_next(w, buffer_bytes, start, count)) {
 *         ... fill `tensor` with the elements of this box ...
 *         zarr_shard_writer_write(w, &tensor, &err);
 *     }
 *     zarr_shard_writer_free(w);
 *
 * Each write encodes the chunks of its box and writes them to the store. Readers
 * see the old shard until the last box is written. Memory holds a few chunks,
 * whatever the size of the shard. The writer holds the lock of the shard's key from
 * zarr_shard_writer_open() to zarr_shard_writer_free().
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
 * store has no ZARR_STORE_CAP_PARTS, or
 * `opts->tuning->inner_order` is not 0, or `opts->tuning->pipeline` is
 * that of a plug-in
 * @retval ZARR_ERR_LIMIT a batch of one chunk needs more than
 * `opts->tuning->memory_bytes`
 * @retval ZARR_ERR_IO waiting for the lock took longer than the store permits
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_shard_writer_open(zarr_shard_writer **out,
                                                            zarr_array *array,
                                                            const uint64_t *shard,
                                                            const zarr_io_options *opts,
                                                            zarr_error *err);
/**
 * Returns the next box of the shard, in coordinates of the array. The box consists of
 * chunks, and ends at the edge of the array.
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
 * @retval ZARR_ERR_CONFLICT the array was replaced, or another process took the lock
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_shard_writer_write(zarr_shard_writer *w,
                                                             const zarr_tensor *src,
                                                             zarr_error *err);
/**
 * Frees a writer. If the shard is not stored, its parts are discarded, and the old shard
 * stays.
 * @param w may be NULL
 */
ZARR_API void zarr_shard_writer_free(zarr_shard_writer *w);
/** @} */

ZARR_END_DECLS

#endif
