/**
 * @file
 * How to make a pipeline: what carries out reads and writes, in which order and on which
 * threads. For extenders: stable for each plug-in ABI number. The library's own
 * pipelines, `waves` and `serial`, are registered by the same table.
 *
 * A read pulls *waves* from a *plan*. A wave is a batch of chunks, bounded in bytes. It
 * can ask to *open* shards first, which reads their indexes; resume() then gives the
 * indexes to the plan. The chunks of a wave are its *items*. A *segment* is a group of
 * neighbouring items in one stored object, which are fetched with one read.
 *
 * A write has *blocks*. A block is one object of the store: a shard, or a chunk of an
 * array without shards.
 *
 * The library's steps are functions of a table. read() does all the work of one segment.
 * A pipeline can do that work in parts instead, with fetch(), decode(), scatter() and
 * fill(), and replace some of these by its own functions. write() does all the work of
 * one block, its lock included. encode() and put() do it in parts, for chunks that are
 * covered completely.
 *
 *     while (!failed && steps->next(plan, wave, &kind, err) == ZARR_OK && kind) {
 *         steps->wave_counts(wave, &n_opens, &n_segments);
 *         for (i = 0; i < n_opens; i++)  // on any thread
 *             steps->open(worker, wave, i, err);
 *         if (n_opens)
 *             steps->resume(plan, wave, err);
 *         for (i = 0; i < n_segments; i++)  // on any thread
 *             steps->read(worker, wave, i, err);
 *     }
 *
 * Threads: only one thread at a time may use a plan (next() and resume()) or a worker.
 * Many workers may work on one wave, and several waves of one plan may be in progress.
 * Between a wave with opens and its resume() the plan must not be asked for the next
 * wave. A pipeline returns when all its workers are done: nothing of a request lives
 * longer.
 */
#ifndef ZARRC_PLUGIN_PIPELINE_H
#define ZARRC_PLUGIN_PIPELINE_H

#include <zarrc/base.h>
#include <zarrc/error.h>
#include <zarrc/memory.h>
#include <zarrc/plugin/codec.h>
#include <zarrc/types.h>

ZARR_BEGIN_DECLS

/** A read in progress, which gives waves. Thread class: solo. */
typedef struct zarr_pipeline_plan zarr_pipeline_plan;
/** A batch of chunks to read. It changes only in next() and resume(). */
typedef struct zarr_pipeline_wave zarr_pipeline_wave;
/** A write in progress, which gives blocks. Thread class: solo. */
typedef struct zarr_pipeline_blocks zarr_pipeline_blocks;
/** What one thread needs: buffers, codec contexts and counters. Thread class: solo. */
typedef struct zarr_pipeline_worker zarr_pipeline_worker;

/** What a request is. Pointers are borrowed until the request is done. */
typedef struct zarr_pipeline_request {
    uint32_t struct_size, write; /**< `write`: 1 for a write, 0 for a read */
    uint32_t threads;            /**< maximum threads, the caller's included */
    int32_t ndim;                /**< number of dimensions of the array */
    uint64_t wave_bytes;         /**< decoded bytes of a wave that the caller wants */
    const char *prefix;          /**< path of the array, "" for the root */
    const zarr_dtype *dtype;     /**< data type of the array */
    const uint64_t *shape;       /**< shape of the array in elements */
    /** memory of the caller's tensor, as in `zarr_memory` */
    int32_t device_type, device_id;
    uint32_t levels, reserved; /**< `levels` 1: chunks; 2: shards of chunks; and so on */
} zarr_pipeline_request;

/** What next() found. */
enum {
    ZARR_WAVE_END = 0, /**< everything was given out; the wave is empty */
    ZARR_WAVE_MORE = 1 /**< the wave has opens or segments */
};

/** `bytes` of an item or a segment: the whole object. */
#define ZARR_PIPELINE_WHOLE UINT64_MAX
/** `bytes` of an item or a segment: chunks that are known to be missing. */
#define ZARR_PIPELINE_MISSING (UINT64_MAX - 1)

/** Neighbouring items in one stored object. */
typedef struct zarr_pipeline_segment {
    uint32_t struct_size, n_items; /**< `n_items`: how many items it has */
    /** key of the object; NULL: the bytes are in a decoded shard, in memory */
    const char *key;
    /** range of the object that covers the items; `bytes` can be ZARR_PIPELINE_WHOLE or
     * ZARR_PIPELINE_MISSING, and its items then have no bytes */
    uint64_t offset, bytes;
    int32_t device_type, reserved; /**< kind of the memory that fetch() gives */
} zarr_pipeline_segment;

/**
 * One chunk of a segment. decode() gives its elements, and scatter() takes them: all
 * elements of the chunk, in C order. If `swap_bytes` is more than 1, every unit of that
 * many bytes is in the other byte order than the machine's.
 */
typedef struct zarr_pipeline_item {
    uint32_t struct_size;
    int32_t ndim; /**< number of dimensions */
    /** where its encoded bytes are in what fetch() gives; `bytes` ZARR_PIPELINE_WHOLE:
     * all of it */
    uint64_t offset, bytes;
    const uint64_t *chunk;       /**< coordinates in the grid of its level, `ndim` */
    uint64_t n_elements;         /**< elements of it that the request wants */
    const uint64_t *chunk_shape; /**< its shape in elements, `ndim` lengths */
    uint64_t chunk_bytes;        /**< length of its elements */
    uint32_t swap_bytes;         /**< unit of byte order; 0 or 1: native */
    int32_t device_type;         /**< kind of the memory that scatter() takes */
} zarr_pipeline_item;

/** One block of a write. */
typedef struct zarr_pipeline_block {
    uint32_t struct_size;
    int32_t ndim;          /**< number of dimensions */
    const uint64_t *block; /**< coordinates in the array's grid of blocks, `ndim` */
    uint64_t n_elements;   /**< elements that are written */
    /**
     * 1: the request covers the whole block, so that no old data is needed, and the block
     * is not a shard: encode() and put() may be used. A block that reaches beyond the
     * array's shape is not simple, because another writer may have made the array larger
     */
    uint32_t simple, reserved;
} zarr_pipeline_block;

/** Flags of a zarr_pipeline_cut, of worker_open() and of a zarr_pipeline_vtable. */
enum {
    /** each wave has one segment, and each segment one item; every chunk is decoded to a
     * buffer and copied, without short cuts. Of a zarr_pipeline_vtable: the pipeline
     * always does so, one chunk or block after the other, and zarr_array_explain() says
     * so */
    ZARR_PIPELINE_PLAIN = 1,
    /** of a zarr_pipeline_vtable: read() waits for nothing outside of the steps. The
     * library may call it for a small read on the thread that submits the request
     * (ZARR_IO_AT_ONCE). A step that would have to wait returns ZARR_ERR_CANCELLED then;
     * return that, and read() is called again on another thread */
    ZARR_PIPELINE_AT_ONCE = 2
};

/** How large waves and segments are. A member that is 0 has a value that the library
 * chooses for the request and the store. */
typedef struct zarr_pipeline_cut {
    uint32_t struct_size, flags; /**< `flags`: ZARR_PIPELINE_PLAIN */
    uint64_t wave_bytes;         /**< decoded bytes of a wave */
    uint32_t wave_items;         /**< items of a wave */
    uint32_t threads;            /**< make segments for this many threads */
    uint64_t segment_bytes;      /**< longest range that one read fetches */
    uint64_t segment_gap;        /**< longest gap between two items of a segment */
} zarr_pipeline_cut;

/**
 * The library's steps. The table is static and grows at its end only. A step that fails
 * returns a status with a text that names the item and the key. Steps count their work in
 * zarr_stats themselves. Indexes count from 0.
 */
typedef struct zarr_pipeline_steps {
    uint32_t struct_size, reserved;
    /** Fills `*out` with what a request is. */
    void (*request)(zarr_request *request, zarr_pipeline_request *out);
    /** Returns codec number `i` of a level, NULL after the last one. Level 0 is the block
     * of the array. Borrowed until the request is done. */
    const zarr_codec_spec *(*codec)(zarr_request *request, uint32_t level, uint64_t i);
    /** Returns 1 if the request was cancelled: begin nothing new and return ZARR_OK. */
    int (*cancelled)(zarr_request *request);
    /** Makes a worker; owned: worker_close(). `flags`: 0 or ZARR_PIPELINE_PLAIN. */
    zarr_status (*worker_open)(zarr_pipeline_worker **out, zarr_request *request,
                               uint32_t flags, zarr_error *err);
    /** Frees a worker, which may be NULL, and adds up its counters. */
    void (*worker_close)(zarr_pipeline_worker *worker);
    /**
     * Waits until the context's budget has `bytes` bytes for the request, and takes them.
     * fetch(), decode() and encode() need them for their buffers; read() and write() take
     * them themselves. If the tensor is on a device that has a budget, this also takes
     * there what these steps need for so many chunks, one for each thread at most.
     * scatter() and put() give them back. A thread that holds bytes must not call
     * reserve(), read() or write(), nor wait for a thread that calls them: that thread
     * may wait for these bytes.
     */
    zarr_status (*reserve)(zarr_request *request, uint64_t bytes, zarr_error *err);
    /** Gives bytes of the budget back. */
    void (*release)(zarr_request *request, uint64_t bytes);
    /**
     * Calls `fn` for each `i` below `n` on threads of the library and on this one, on as
     * many as the request may have. Each call gets a worker. Returns the failure with the
     * lowest `i`. Of a cancelled request no further calls begin.
     */
    zarr_status (*parallel)(zarr_request *request, uint64_t n,
                            zarr_status (*fn)(void *arg, uint64_t i,
                                              zarr_pipeline_worker *worker,
                                              zarr_error *err),
                            void *arg, zarr_error *err);

    /* reads */
    /** Makes the plan of a read; owned: plan_close(). `cut` NULL: the library chooses. */
    zarr_status (*plan_open)(zarr_pipeline_plan **out, zarr_request *request,
                             const zarr_pipeline_cut *cut, zarr_error *err);
    /** Frees a plan, which may be NULL. */
    void (*plan_close)(zarr_pipeline_plan *plan);
    /** Makes an empty wave; owned: wave_close(). */
    zarr_status (*wave_open)(zarr_pipeline_wave **out, zarr_pipeline_plan *plan,
                             zarr_error *err);
    /** Frees a wave, which may be NULL. Free it before its plan. */
    void (*wave_close)(zarr_pipeline_wave *wave);
    /** Fills a wave with the next batch; what it had before is lost. `*kind` becomes one
     * of ZARR_WAVE_*. */
    zarr_status (*next)(zarr_pipeline_plan *plan, zarr_pipeline_wave *wave,
                        uint32_t *kind, zarr_error *err);
    /** Tells how many shards a wave must open, and how many segments it has. */
    void (*wave_counts)(const zarr_pipeline_wave *wave, uint32_t *n_opens,
                        uint32_t *n_segments);
    /** Opens shard `i` of a wave: reads and checks its index. */
    zarr_status (*open)(zarr_pipeline_worker *worker, zarr_pipeline_wave *wave,
                        uint32_t i, zarr_error *err);
    /** Gives the indexes of all opened shards of a wave to the plan. */
    zarr_status (*resume)(zarr_pipeline_plan *plan, zarr_pipeline_wave *wave,
                          zarr_error *err);
    /** Reads segment `i`: fetches, decodes and scatters its items, with all short cuts.
     */
    zarr_status (*read)(zarr_pipeline_worker *worker, zarr_pipeline_wave *wave,
                        uint32_t i, zarr_error *err);
    /** Fills `*out` with what segment `i` is. */
    void (*segment_get)(const zarr_pipeline_wave *wave, uint32_t i,
                        zarr_pipeline_segment *out);
    /** Fills `*out` with what item `item` of segment `i` is. */
    void (*item_get)(const zarr_pipeline_wave *wave, uint32_t i, uint32_t item,
                     zarr_pipeline_item *out);
    /**
     * Gives the encoded bytes of segment `i`, valid until this worker does a step of
     * another segment. The pipeline may overwrite them, except when the key of the
     * segment is NULL. NOT_FOUND: the store does not have the object, so fill() its
     * items.
     */
    zarr_status (*fetch)(zarr_pipeline_worker *worker, const zarr_pipeline_wave *wave,
                         uint32_t i, zarr_memory *out, zarr_error *err);
    /** Decodes an item from what fetch() gave. The elements are valid until this
     * worker's next step. */
    zarr_status (*decode)(zarr_pipeline_worker *worker, const zarr_pipeline_wave *wave,
                          uint32_t i, uint32_t item, const zarr_memory *fetched,
                          zarr_memory *elements, zarr_error *err);
    /** Copies the wanted elements of a chunk to the caller's tensor, with which the item
     * is done. */
    zarr_status (*scatter)(zarr_pipeline_worker *worker, const zarr_pipeline_wave *wave,
                           uint32_t i, uint32_t item, const zarr_memory *elements,
                           zarr_error *err);
    /** Writes the fill value to the elements of a missing item, or returns NOT_FOUND if
     * the caller wants that (ZARR_MISSING_ERROR). */
    zarr_status (*fill)(zarr_pipeline_worker *worker, const zarr_pipeline_wave *wave,
                        uint32_t i, uint32_t item, zarr_error *err);

    /* writes */
    /** Makes the list of blocks of a write; owned: blocks_close(). */
    zarr_status (*blocks_open)(zarr_pipeline_blocks **out, zarr_request *request,
                               zarr_error *err);
    /** Frees the list of blocks, which may be NULL. */
    void (*blocks_close)(zarr_pipeline_blocks *blocks);
    /** Replaces the blocks of the list by the next ones: `most` (up to 1024) at most, in
     * C order. `*n` becomes their number; 0: all were given out. */
    zarr_status (*blocks_next)(zarr_pipeline_blocks *blocks, uint32_t most, uint32_t *n,
                               zarr_error *err);
    /** Fills `*out` with what block `i` of the list is. */
    void (*block_get)(const zarr_pipeline_blocks *blocks, uint32_t i,
                      zarr_pipeline_block *out);
    /** Encodes and stores block `i`, and reads old data if it is needed. `threads`: how
     * many threads may encode the chunks of a shard; 1: only this one. */
    zarr_status (*write)(zarr_pipeline_worker *worker, const zarr_pipeline_blocks *blocks,
                         uint32_t i, uint32_t threads, zarr_error *err);
    /** Encodes a simple block. The bytes are valid until this worker's next step.
     * `*empty` becomes 1 if the block has only fill values and is not stored: call put()
     * with NULL.
     */
    zarr_status (*encode)(zarr_pipeline_worker *worker,
                          const zarr_pipeline_blocks *blocks, uint32_t i,
                          zarr_memory *out, int *empty, zarr_error *err);
    /** Stores the bytes of a simple block, which are in any memory that the store takes;
     * NULL: erases it. */
    zarr_status (*put)(zarr_pipeline_worker *worker, const zarr_pipeline_blocks *blocks,
                       uint32_t i, const zarr_memory *bytes, zarr_error *err);
} zarr_pipeline_steps;

/**
 * A pipeline. `name` and `read` are required.
 *
 * read() and write() carry out a request on the calling thread and on threads that they
 * use, and return when it is done. The library may call them again for one request after
 * ZARR_ERR_CONFLICT, when stored data changed during a read. The request fails with
 * ZARR_ERR_INTERNAL if a call returns ZARR_OK, but fewer elements than the request has
 * passed through read(), scatter() and fill(), or through write() and put(). The library
 * does not check that they were the right ones.
 *
 * `self` is what zarr_context_register_pipeline() got. Thread class of self: shared.
 */
typedef struct zarr_pipeline_vtable {
    uint32_t struct_size;
    uint32_t flags;   /**< ZARR_PIPELINE_PLAIN and ZARR_PIPELINE_AT_ONCE, or 0 */
    const char *name; /**< such as "waves" */
    /** Carries out a read. */
    zarr_status (*read)(void *self, zarr_request *request,
                        const zarr_pipeline_steps *steps, zarr_error *err);
    /** Carries out a write. NULL: as the pipeline `waves` does. */
    zarr_status (*write)(void *self, zarr_request *request,
                         const zarr_pipeline_steps *steps, zarr_error *err);
    /** Frees self with the context; cannot fail. NULL: nothing to free. */
    void (*close)(void *self);
} zarr_pipeline_vtable;

ZARR_END_DECLS

#endif
