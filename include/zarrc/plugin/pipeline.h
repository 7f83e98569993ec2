/*
 * zarrc/plugin/pipeline.h - how to make a pipeline: who does what of a read or write, in
 * which order, on which threads. FOR EXTENDERS: stable per plug-in ABI number. The
 * library's own pipelines, `waves` and `serial`, are registered through this table.
 *
 * A read is a *plan*, pulled for *waves* (mini-batches). A wave may ask for shards to be
 * *opened* first: open each, then feed the wave back. Then it has *runs*, neighbours in
 * one stored object that are fetched at once, each of *items*, the chunks. The library's
 * steps are functions: run() does all of one run; fetch(), decode(), scatter() and fill()
 * do it in parts, so that a pipeline may put its own in the place of some. A write is a
 * row of *units*, one outer chunk (one object of the store) each: write() does all of
 * one, also a shard or a chunk that is written in part, with its lock; encode() and put()
 * do a wholly covered chunk in parts.
 *
 *     while (!failed && steps->next(plan, wave, &kind, err) == ZARR_OK && kind) {
 *         steps->wave_counts(wave, &n_opens, &n_segments);
 *         for (i = 0; i < n_opens; i++)  // on any thread
 *             steps->open(worker, wave, i, err);
 *         if (n_opens)
 *             steps->feed(plan, wave, err);
 *         for (i = 0; i < n_segments; i++)  // on any thread
 *             steps->read(worker, wave, i, err);
 *     }
 *
 * Threads: plan functions (next, feed) one at a time; a worker is one thread's at a time;
 * a wave may be worked on by many workers at once and several waves of a plan may be
 * under way, but the plan does not go on between a wave with opens and its feed().
 * A pipeline returns when all its workers have: nothing of a request lives longer.
 */
#ifndef ZARRC_PLUGIN_PIPELINE_H
#define ZARRC_PLUGIN_PIPELINE_H

#include <zarrc/base.h>
#include <zarrc/error.h>
#include <zarrc/memory.h>
#include <zarrc/plugin/codec.h>
#include <zarrc/request.h>

ZARR_BEGIN_DECLS

typedef struct zarr_pipeline_plan zarr_pipeline_plan;     /**< a read. Solo */
typedef struct zarr_pipeline_wave zarr_pipeline_wave;     /**< frozen between next()s */
typedef struct zarr_pipeline_units zarr_pipeline_units;   /**< a write. Solo */
typedef struct zarr_pipeline_worker zarr_pipeline_worker; /**< solo */

/** The request; borrowed until it is done. */
typedef struct zarr_pipeline_request {
    uint32_t struct_size, write; /**< write: 1 */
    uint32_t threads;            /**< at most, the caller's included */
    int32_t ndim;
    uint64_t wave_bytes; /**< decoded bytes of a mini-batch, as asked for */
    const char *prefix;  /**< the array's path, "" at the root */
    const zarr_dtype *dtype;
    const uint64_t *shape;          /**< of the array */
    int32_t device_type, device_id; /**< where the elements go or come from */
    uint32_t levels, reserved;      /**< 1: chunks; 2: shards of chunks, ... */
} zarr_pipeline_request;

enum {
    ZARR_WAVE_END = 0, /**< nothing is left; the wave is empty */
    ZARR_WAVE_MORE = 1
};

/** offset, bytes of items and runs that are a whole object; of chunks known missing. */
#define ZARR_PIPELINE_WHOLE   UINT64_MAX
#define ZARR_PIPELINE_MISSING (UINT64_MAX - 1)

typedef struct zarr_pipeline_segment {
    uint32_t struct_size, n_items;
    const char *key; /**< of the object; NULL: inside a decoded shard, in memory */
    /** range in it that covers the items, or WHOLE, MISSING (then items have no bytes) */
    uint64_t offset, bytes;
    int32_t device_type, reserved; /**< of the memory that fetch() gives */
} zarr_pipeline_segment;

/** One chunk. Its *block* is what decode() gives and scatter() takes: block_shape
 * elements in C order, each unit of swap_bytes > 1 bytes being in the other byte order.
 */
typedef struct zarr_pipeline_item {
    uint32_t struct_size;
    int32_t ndim;
    uint64_t offset, bytes; /**< in what fetch() gives; bytes WHOLE: all of it */
    const uint64_t *chunk;  /**< ndim coordinates in the grid of its level */
    uint64_t n_elements;    /**< of it that are wanted */
    const uint64_t *block_shape;
    uint64_t block_bytes;
    uint32_t swap_bytes;
    int32_t device_type; /**< of the memory that scatter() takes */
} zarr_pipeline_item;

typedef struct zarr_pipeline_unit {
    uint32_t struct_size;
    int32_t ndim;
    const uint64_t *chunk; /**< ndim coordinates in the grid */
    uint64_t n_elements;   /**< that are written */
    /** 1: all of the chunk, so that no old data are needed, and no shard: encode() and
     * put() may be used. A chunk that reaches beyond the array's shape is none: others
     * may have grown the array. */
    uint32_t simple, reserved;
} zarr_pipeline_unit;

enum {
    /** one item a run, one run a wave, and no short cuts: every chunk is decoded whole
     * and copied */
    ZARR_PIPELINE_PLAIN = 1
};

/** How waves are cut; zero: as the request and the store suggest. */
typedef struct zarr_pipeline_cut {
    uint32_t struct_size, flags;  /**< ZARR_PIPELINE_* */
    uint64_t wave_bytes;          /**< decoded */
    uint32_t wave_items, threads; /**< threads: cut runs so that so many have work */
    uint64_t segment_bytes,
        segment_gap; /**< largest range fetched at once, largest hole in it */
} zarr_pipeline_cut;

/**
 * The library's steps. All return the failing status with its text, item and key named.
 * Static; grows at the end only. What they count goes into zarr_stats by itself.
 */
typedef struct zarr_pipeline_steps {
    uint32_t struct_size, reserved;
    void (*request)(zarr_request *request, zarr_pipeline_request *out);
    /** The i-th codec of a level (0: the chunk or shard of the array), NULL behind the
     * last. Borrowed. */
    const zarr_codec_spec *(*codec)(zarr_request *request, uint32_t level, uint64_t i);
    int (*cancelled)(zarr_request *request); /**< 1: begin nothing new, return ZARR_OK */
    /** Buffers, codec contexts and counters of one thread. flags: ZARR_PIPELINE_PLAIN. */
    zarr_status (*worker_open)(zarr_request *request, uint32_t flags,
                               zarr_pipeline_worker **out, zarr_error *err);
    void (*worker_close)(zarr_pipeline_worker *worker); /**< NULL is fine */
    /** Waits for so many bytes of the context's budget, for what fetch(), decode() and
     * encode() hold; run() and write() ask by themselves. Never ask for more, nor run()
     * or write(), while holding some. */
    zarr_status (*reserve)(zarr_request *request, uint64_t bytes, zarr_error *err);
    void (*release)(zarr_request *request, uint64_t bytes);
    /** fn for each i < n on the library's threads, the caller's included, as many as the
     * request may have; each item gets a worker. The failure with the lowest i is
     * returned; a cancelled request begins no more items. */
    zarr_status (*parallel)(zarr_request *request, uint64_t n,
                            zarr_status (*fn)(void *arg, uint64_t i,
                                              zarr_pipeline_worker *worker,
                                              zarr_error *err),
                            void *arg, zarr_error *err);

    /* reads */
    zarr_status (*plan_open)(zarr_request *request, const zarr_pipeline_cut *cut,
                             zarr_pipeline_plan **out, zarr_error *err);
    void (*plan_close)(zarr_pipeline_plan *plan); /**< NULL is fine */
    zarr_status (*wave_open)(zarr_pipeline_plan *plan, zarr_pipeline_wave **out,
                             zarr_error *err);
    void (*wave_close)(zarr_pipeline_wave *wave); /**< before the plan; NULL is fine */
    /** The next wave; what the wave held before is forgotten. *kind: ZARR_WAVE_*. */
    zarr_status (*next)(zarr_pipeline_plan *plan, zarr_pipeline_wave *wave,
                        uint32_t *kind, zarr_error *err);
    void (*wave_counts)(const zarr_pipeline_wave *wave, uint32_t *n_opens,
                        uint32_t *n_segments);
    zarr_status (*open)(zarr_pipeline_worker *worker, zarr_pipeline_wave *wave,
                        uint32_t i, zarr_error *err);
    zarr_status (*feed)(zarr_pipeline_plan *plan, zarr_pipeline_wave *wave,
                        zarr_error *err);
    /** Fetch, decode and scatter run i, with all short cuts. */
    zarr_status (*read)(zarr_pipeline_worker *worker, zarr_pipeline_wave *wave,
                        uint32_t i, zarr_error *err);
    void (*segment_get)(const zarr_pipeline_wave *wave, uint32_t i,
                        zarr_pipeline_segment *out);
    void (*item_get)(const zarr_pipeline_wave *wave, uint32_t i, uint32_t item,
                     zarr_pipeline_item *out);
    /** The encoded bytes of run i, valid until this worker's next step of another run;
     * they may be overwritten, but not where the run's key is NULL. NOT_FOUND: the store
     * says that there is no such chunk: fill() its items. */
    zarr_status (*fetch)(zarr_pipeline_worker *worker, const zarr_pipeline_wave *wave,
                         uint32_t i, zarr_mem *out, zarr_error *err);
    /** The item's block, from what fetch() gave; valid until this worker's next step. */
    zarr_status (*decode)(zarr_pipeline_worker *worker, const zarr_pipeline_wave *wave,
                          uint32_t i, uint32_t item, const zarr_mem *fetched,
                          zarr_mem *block, zarr_error *err);
    /** Copies what is wanted of a block to its place: the item is done. */
    zarr_status (*scatter)(zarr_pipeline_worker *worker, const zarr_pipeline_wave *wave,
                           uint32_t i, uint32_t item, const zarr_mem *block,
                           zarr_error *err);
    /** The item is missing: the fill value, or NOT_FOUND where the caller wants that. */
    zarr_status (*fill)(zarr_pipeline_worker *worker, const zarr_pipeline_wave *wave,
                        uint32_t i, uint32_t item, zarr_error *err);

    /* writes */
    zarr_status (*units_open)(zarr_request *request, zarr_pipeline_units **out,
                              zarr_error *err);
    void (*units_close)(zarr_pipeline_units *units); /**< NULL is fine */
    /** Forgets the units it gave and gathers up to `most` more (at most 1024), in C order
     * of chunks; *n 0: nothing is left. */
    zarr_status (*units_next)(zarr_pipeline_units *units, uint32_t most, uint32_t *n,
                              zarr_error *err);
    void (*unit_get)(const zarr_pipeline_units *units, uint32_t i,
                     zarr_pipeline_unit *out);
    /** Encode and store unit i, reading old data where needed; threads: help inside a
     * shard, 1: none. */
    zarr_status (*write)(zarr_pipeline_worker *worker, const zarr_pipeline_units *units,
                         uint32_t i, uint32_t threads, zarr_error *err);
    /** The encoded bytes of a simple unit, valid until this worker's next step; *empty 1:
     * only fill values, which are not stored: put() NULL. */
    zarr_status (*encode)(zarr_pipeline_worker *worker, const zarr_pipeline_units *units,
                          uint32_t i, zarr_mem *out, int *empty, zarr_error *err);
    /** Stores the bytes of a simple unit, in any memory the store takes; NULL: erases. */
    zarr_status (*put)(zarr_pipeline_worker *worker, const zarr_pipeline_units *units,
                       uint32_t i, const zarr_mem *bytes, zarr_error *err);
} zarr_pipeline_steps;

/**
 * A pipeline; name and read are required. read and write run a request to its end on the
 * calling thread, with what help they get. They may be called again for one request after
 * a CONFLICT, when stored data changed under a read. Where one returns ZARR_OK and fewer
 * elements than the request has went through run(), scatter() and fill() or write() and
 * put(), the request fails with INTERNAL; that those which did were the right ones is not
 * looked after. Thread class of self: shared.
 */
typedef struct zarr_pipeline_vtable {
    uint32_t struct_size, flags; /**< flags: 0 */
    const char *name;
    zarr_status (*read)(void *self, zarr_request *request,
                        const zarr_pipeline_steps *steps, zarr_error *err);
    /** NULL: as `waves` */
    zarr_status (*write)(void *self, zarr_request *request,
                         const zarr_pipeline_steps *steps, zarr_error *err);
    /** With the context; cannot fail. NULL: nothing to do. */
    void (*close)(void *self);
} zarr_pipeline_vtable;

ZARR_END_DECLS

#endif
