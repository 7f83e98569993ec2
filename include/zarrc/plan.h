/**
 * @file
 * Counters, which tell what a request did (zarr_stats), and explanations, which tell what
 * it would do (zarr_explanation, which zarr_array_explain() makes).
 */
#ifndef ZARRC_PLAN_H
#define ZARRC_PLAN_H

#include <zarrc/base.h>
#include <zarrc/error.h>

ZARR_BEGIN_DECLS

/**
 * Counts what one read or write did. Set `struct_size`, and pass the struct in
 * `zarr_io_options.stats` or to zarr_request_progress(). All sizes are bytes of payload.
 * A chunk that is decoded directly into the caller's memory counts no copy.
 */
typedef struct zarr_stats {
    uint32_t struct_size, flags;
    /** chunks that the request touches */
    uint64_t chunks_total;
    uint64_t chunks_done; /**< of these, chunks that are done */
    /** read: chunks that the store does not have, which gave the fill value; write:
     * chunks that were erased or not stored, because all their elements equal the fill
     * value */
    uint64_t chunks_missing;
    /** chunks decoded into the caller's memory, or encoded from it, without a buffer */
    uint64_t chunks_direct;
    uint64_t chunks_partial; /**< chunks that were decoded only in part */
    /** chunks that an implementation refused, or failed to decode or encode, so that
     * another one did it on the CPU */
    uint64_t chunks_fallback;
    uint64_t elements;      /**< elements read or written */
    uint64_t bytes_stored;  /**< encoded bytes read from or written to the store */
    uint64_t bytes_decoded; /**< bytes that left decoders or entered encoders */
    /** operations of the store; `store_ranges`: reads of a part of a value */
    uint64_t store_gets, store_puts, store_erases, store_ranges;
    /** shard indexes read from the store, and found in the array's cache */
    uint64_t index_reads, index_hits;
    /** copies of decoded elements from host memory to host memory */
    uint64_t copies_host;
    uint64_t bytes_host;                  /**< bytes of these copies */
    uint64_t copies_up, bytes_up;         /**< copies from host memory to other memory */
    uint64_t copies_down, bytes_down;     /**< copies from other memory to host memory */
    uint64_t copies_device, bytes_device; /**< copies inside or between other memories */
    /**
     * of all copies, those of decoded elements that went through host memory on their way
     * to or from another memory
     */
    uint64_t copies_decoded_host;
    uint64_t waves; /**< groups of chunks that were handled together */
    /** blocks that were read, changed and written, because the request covered
     * a part of them, or because they reach beyond the array's shape */
    uint64_t read_modify_writes;
    uint64_t wall_ns;    /**< duration of the request in nanoseconds */
    uint64_t bytes_heap; /**< bytes of elements of variable length, put into the caller's
                            heap */
    /** chunks that another implementation decoded, because the preferred one does not
     * check its input and was not trusted (ZARR_TRUST_*) */
    uint64_t chunks_distrusted;
} zarr_stats;

#define ZARR_STATS_INIT ZARR_SIZE_FIRST(zarr_stats)

/** What a request would do. */
enum {
    ZARR_EXPLAIN_READ = 0, /**< a read */
    ZARR_EXPLAIN_WRITE = 1 /**< a write */
};

/** What a zarr_explain_step is. */
enum {
    /** the store reads an object, or a part of one, or writes it */
    ZARR_STEP_STORE = 1,
    /** the index of a shard is read or written; steps of its codecs follow */
    ZARR_STEP_INDEX = 2,
    ZARR_STEP_CODEC = 3, /**< a codec decodes or encodes */
    ZARR_STEP_COPY = 4,  /**< bytes are copied from one kind of memory to another */
    /** byte order changes, while elements are copied to the tensor or from it */
    ZARR_STEP_SWAP = 5,
    ZARR_STEP_TRANSPOSE = 6, /**< dimensions change their order, in the same copy */
    /** elements are moved from the chunk to the tensor or back; `zarr_explanation.copy`
     * tells how */
    ZARR_STEP_TENSOR = 7
};
/** Flags of a zarr_explain_step. */
enum {
    ZARR_STEP_OF_INDEX = 1 /**< the step works on the index of a shard, not on a chunk */
};

/** One step between the stored bytes of a chunk and the tensor. */
typedef struct zarr_explain_step {
    uint32_t struct_size, kind; /**< `kind`: one of ZARR_STEP_* */
    /** `flags`: ZARR_STEP_OF_INDEX or 0; `level`: 0 for blocks, 1 for chunks of
     * shards, 2 for chunks of shards in shards, and so on */
    uint32_t flags, level;
    /** kinds of memory before and after the step, as in `zarr_memory`; 0: the store */
    int32_t from_device, to_device;
    const char *codec; /**< ZARR_STEP_CODEC: name of the codec; else NULL */
    /** ZARR_STEP_CODEC: names of implementations. The first is used. Each further one is
     * used for chunks that all before it refuse. Else NULL */
    const char *const *implementations;
    uint32_t n_implementations; /**< how many `implementations` there are */
    uint32_t swap_bytes;   /**< ZARR_STEP_SWAP: bytes of the units that are reversed */
    uint64_t index_chunks; /**< ZARR_STEP_INDEX: chunks that the index has room for */
    /** ZARR_STEP_TRANSPOSE: for each stored dimension, the number of the array's
     * dimension that it holds; `ndim` entries. Else NULL */
    const int32_t *order;
    /** ZARR_STEP_CODEC: name of the implementation that would decode in place of the
     * first one if it were trusted; NULL: there is none */
    const char *distrusted;
    /** ZARR_STEP_CODEC: the measurement by `zarrc calibrate` that decided between the CPU
     * and the device, as one line; NULL: nothing was measured */
    const char *measured;
} zarr_explain_step;

/** How elements of a whole chunk are moved to the tensor or back. */
enum {
    ZARR_EXPLAIN_COPY_NONE = 0, /**< not at all: this build cannot write the array */
    /** a strided copy of each chunk between two kinds of memory */
    ZARR_EXPLAIN_COPY_BETWEEN = 1,
    /** a strided copy of each chunk, which may swap and transpose */
    ZARR_EXPLAIN_COPY_STRIDED = 2,
    /** none where the last decoder knows the tensor's strides; else a strided copy */
    ZARR_EXPLAIN_COPY_DECODER = 3,
    /** none where a chunk is contiguous in the tensor; else a strided copy */
    ZARR_EXPLAIN_COPY_DIRECT = 4
};

/** Flags of a zarr_explanation. */
enum {
    ZARR_EXPLAIN_SHARDS = 1,  /**< blocks are shards, whose chunks are read alone */
    ZARR_EXPLAIN_SMALLER = 2, /**< some blocks are smaller than `block_shape` */
    ZARR_EXPLAIN_LARGER = 4,  /**< some blocks are larger than `block_shape` */
    /** each chunk is copied to host memory once, to compare it with the fill value */
    ZARR_EXPLAIN_COMPARED = 8
};

/**
 * What a read or write would do, from zarr_array_explain(). Counts that are not known, or
 * that do not fit in 64 bits, are UINT64_MAX. All that it points to lives as long as it
 * does.
 */
typedef struct zarr_explanation {
    uint32_t struct_size, flags; /**< `flags`: ZARR_EXPLAIN_SHARDS and its siblings */
    uint32_t operation;          /**< ZARR_EXPLAIN_READ or ZARR_EXPLAIN_WRITE */
    uint32_t copy;               /**< one of ZARR_EXPLAIN_COPY_* */
    int32_t device_type;         /**< kind of memory of the tensor */
    int32_t ndim;                /**< number of dimensions of the array */
    uint32_t threads;            /**< at most for one wave, the caller's included */
    uint32_t n_steps;            /**< how many `steps` there are; 0: not possible */
    /** the steps for one chunk, in order: a read begins at the store and ends at the
     * tensor, a write begins at the tensor and ends at the store */
    const zarr_explain_step *const *steps;
    const char *path;     /**< path of the array */
    const char *store;    /**< kind of the store of the chunks, such as "local" */
    const char *pipeline; /**< name of the pipeline */
    /** the codec before sharding_indexed that makes it necessary to decode shards whole;
     * NULL: there is none */
    const char *whole_shard_codec;
    const uint64_t *block_shape; /**< of blocks: shards, or chunks without shards */
    const uint64_t *chunk_shape; /**< of chunks */
    uint64_t elements;           /**< elements that are selected */
    uint64_t blocks;             /**< blocks that the request touches */
    /** of these, blocks that a read needs in part, or that a write reads and changes if
     * they are stored; not known for more than about a million blocks */
    uint64_t blocks_partial;
    uint64_t chunks;      /**< chunks that the request touches */
    uint64_t chunk_bytes; /**< decoded bytes of a chunk of `chunk_shape` */
    /** indexes of shards that the handle has, and those that it does not have */
    uint64_t indexes_cached, indexes_to_fetch;
    uint64_t waves;      /**< groups of chunks that are handled together */
    uint64_t wave_bytes; /**< decoded bytes of a wave at most */
    uint32_t trust;      /**< one of ZARR_TRUST_* of zarrc/context.h, never 0 */
    uint32_t reserved;
} zarr_explanation;

/** Forms of the text of an explanation. */
enum {
    ZARR_EXPLAIN_TEXT = 0, /**< lines for people */
    /** a JSON object with the members of the struct; counts that are UINT64_MAX are null
     */
    ZARR_EXPLAIN_JSON = 1
};

/**
 * Writes an explanation as text into a buffer of the caller's, as snprintf() does.
 * @param explanation borrowed
 * @param form one of ZARR_EXPLAIN_TEXT and ZARR_EXPLAIN_JSON
 * @param text,cap buffer of `cap` bytes; `text` may be NULL if `cap` is 0
 * @param text_bytes becomes the length of the text without its terminator, which may
 * exceed `cap`; may be NULL
 * @retval ZARR_ERR_INVALID `form` is wrong
 * @see zarr_array_explain()
 */
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_explanation_text(const zarr_explanation *explanation, uint32_t form, char *text,
                      size_t cap, size_t *text_bytes, zarr_error *err);

/**
 * Frees an explanation and all that it points to.
 * @param explanation may be NULL
 */
ZARR_API void zarr_explanation_free(zarr_explanation *explanation);

ZARR_END_DECLS

#endif
