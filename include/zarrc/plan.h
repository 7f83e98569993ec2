/**
 * @file
 * Counters: what a request did. zarr_array_explain() tells what it would do.
 */
#ifndef ZARRC_PLAN_H
#define ZARRC_PLAN_H

#include <zarrc/base.h>

ZARR_BEGIN_DECLS

/**
 * Counts what one read or write did. Set `struct_size`, and pass the struct in
 * `zarr_io_options.stats` or to zarr_request_progress(). All sizes are bytes of payload.
 * A chunk that is decoded directly into the caller's memory counts no copy.
 */
typedef struct zarr_stats {
    uint32_t struct_size, flags;
    /** chunks that the request touches; in shards the inner chunks */
    uint64_t chunks_total;
    uint64_t chunks_done; /**< of these, chunks that are done */
    /** read: chunks that the store does not have, which gave the fill value; write:
     * chunks that were erased or not stored, because all their elements equal the fill
     * value */
    uint64_t chunks_missing;
    /** chunks decoded into the caller's memory, or encoded from it, without a buffer */
    uint64_t chunks_direct;
    uint64_t chunks_partial; /**< chunks that were decoded only in part */
    /** chunks that an implementation did not accept, or could not do, so that another one
     * did them on the CPU */
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
    uint64_t waves; /**< batches of chunks that were handled together */
    /** chunks or shards that were read, changed and written, because the request covered
     * a part of them, or because they reach beyond the array's shape */
    uint64_t read_modify_writes;
    uint64_t wall_ns;    /**< duration of the request in nanoseconds */
    uint64_t bytes_heap; /**< bytes of elements of variable length, put into the caller's
                            heap */
} zarr_stats;

#define ZARR_STATS_INIT ZARR_SIZE_FIRST(zarr_stats)

ZARR_END_DECLS

#endif
