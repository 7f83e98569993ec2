/*
 * zarrc/plan.h - what a request did, counted. What it will do:
 * zarr_array_explain() in zarrc/array.h.
 */
#ifndef ZARRC_PLAN_H
#define ZARRC_PLAN_H

#include <zarrc/base.h>

ZARR_BEGIN_DECLS

/**
 * Counters of one request. Bytes are bytes of payload. "decoded copies" are copies of
 * decoded elements beyond the decoder's own output: a chunk decoded straight into the
 * destination counts none.
 */
typedef struct zarr_stats {
    uint32_t struct_size, flags;
    uint64_t chunks_total; /**< chunks (inner ones of shards) the request touches */
    uint64_t chunks_done;
    /** read: filled with the fill value; write: erased or left out as all-fill */
    uint64_t chunks_missing;
    /** decoded into, or encoded from, the caller's memory without scratch */
    uint64_t chunks_direct;
    uint64_t chunks_partial;  /**< decoded in part only */
    uint64_t chunks_fallback; /**< an implementation refused the chunk, the CPU did it */
    uint64_t elements;        /**< elements moved */
    uint64_t bytes_stored;    /**< encoded bytes read or written */
    uint64_t bytes_decoded;   /**< bytes out of decoders, or into encoders */
    /** requests; ranges: GETs of a part */
    uint64_t store_gets, store_puts, store_erases, store_ranges;
    /** shard indexes fetched / found in the array's cache */
    uint64_t index_reads, index_hits;
    /** copies host -> host of decoded elements (gather, scatter, blend) */
    uint64_t copies_host;
    uint64_t bytes_host;
    uint64_t copies_up, bytes_up;         /**< host -> other memory, any payload */
    uint64_t copies_down, bytes_down;     /**< other memory -> host */
    uint64_t copies_device, bytes_device; /**< inside or between other memories */
    /**
     * of all these: copies of decoded elements that touched host memory on their way to
     * or from another memory
     */
    uint64_t copies_decoded_host;
    uint64_t waves; /**< mini-batches */
    /** chunks or shards that were read, changed and written: partial ones, and those
     * beyond the shape that had a value */
    uint64_t read_modify_writes;
    uint64_t wall_ns;
    uint64_t
        bytes_heap; /**< of elements of variable length, put into the caller's heap */
} zarr_stats;

#define ZARR_STATS_INIT ZARR_SIZE_FIRST(zarr_stats)

ZARR_END_DECLS

#endif
