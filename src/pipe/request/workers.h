/*
 * pipe/request/workers.h - worker contexts: codec contexts, scratch memory and counters
 * of one thread, for the time of a parallel loop. Thread class: a worker context belongs
 * to one thread at a time.
 */
#ifndef ZR_PIPE_REQUEST_WORKERS_H
#define ZR_PIPE_REQUEST_WORKERS_H

#include "pipe/request/io.h"

enum zr_scratch_slot {
    ZR_SCRATCH_FETCH, /* encoded bytes as fetched */
    ZR_SCRATCH_A,     /* A and B: outputs of stages, in turn */
    ZR_SCRATCH_B,
    ZR_SCRATCH_BLOCK, /* the decoded chunk of a write */
    ZR_SCRATCH_INDEX, /* a shard's index */
    ZR_SCRATCH_OLD,   /* the old object */
    ZR_SCRATCH_BODY,  /* an encoded object under construction */
    ZR_SCRATCH_CODEC, /* scratch that an implementation requests */
    /* FALL_IN and FALL_OUT: input and output of a fallback on the host */
    ZR_SCRATCH_FALL_IN,
    ZR_SCRATCH_FALL_OUT,
    ZR_SCRATCH_BRING, /* encoded bytes, copied to the memory of the first stage */
    ZR_SCRATCH_SLOTS
};
/* What a worker and a request count: both structs, as one array that a loop adds up. */
enum {
    ZR_COUNTERS =
        (sizeof(zarr_stats) + sizeof(struct zr_copy_counters)) / sizeof(uint64_t)
};
_Static_assert(offsetof(zarr_stats, chunks_total) == sizeof(uint64_t),
               "all members but the first two, which stay 0, are 64-bit counters");
/* How the last chunk lay in the tensor: others lie the same way, and only their places
 * differ (boxes.c). */
enum {
    ZR_ALIKE_DIMS = 6
};
struct zr_alike {
    enum {
        ZR_ALIKE_NONE,
        ZR_ALIKE_ONE,  /* one chunk lay so */
        ZR_ALIKE_FORM, /* several did: `form` copies the next one */
        ZR_ALIKE_ODD   /* several did, but have no form */
    } state;
    bool to_chunk;
    int32_t ndim, device_type; /* of the chunk's block */
    const struct zr_view *view;
    struct zr_piece dim[ZR_ALIKE_DIMS];
    /* of the program, which may be freed: chunks of many shapes have many */
    uint32_t swap_bytes;
    int32_t order[ZR_ALIKE_DIMS];
    uint64_t stored_shape[ZR_ALIKE_DIMS];
    /* in the chunk's block and in the view, of dimensions of the chunk */
    int64_t chunk_stride[ZR_ALIKE_DIMS], view_stride[ZR_ALIKE_DIMS];
    struct zr_box_form form;
};
struct zr_worker {
    struct zr_engine *engine;
    struct zr_thread_states states;
    zarr_memory scratch[ZR_SCRATCH_SLOTS];
    /* For unsized programs (vlen.c). Decoded elements point into decode_buffer. */
    struct zr_buffer decode_buffer[ZR_UNSIZED_BUFFERS], encode_buffer[ZR_UNSIZED_BUFFERS];
    /* counts large buffers, also those of runners, in the unsized budget */
    struct zr_grant grant;
    uint64_t granted; /* bytes taken from engine->unsized_budget */
    /* it has the whole unsized_budget, however much this chunk takes */
    bool alone;
    bool has_large; /* a buffer is or was larger than ZR_BUFFER_KEEPS */
    /* encoding: nothing is counted, because sizes follow from the caller's elements */
    bool encodes;
    bool starved; /* a buffer found no room in the budget */
    union {
        struct {
            zarr_stats stats;
            struct zr_copy_counters copies;
        };
        uint64_t counter[ZR_COUNTERS];
    };
    struct zr_str key;
    struct zr_alike alike; /* valid for the request that has this context */
    struct zr_worker *next;
};
/* cancel is the request's, which slow codecs poll. It is borrowed until
 * zr_worker_give(). */
zarr_status zr_worker_take(struct zr_engine *e, const zarr_cancel *cancel,
                           struct zr_worker **out, zarr_error *err);
/* the caller has merged the counters before */
void zr_worker_give(struct zr_worker *worker);
void zr_workers_free(struct zr_engine *e); /* frees the idle ones */
/* Counts a finished store operation. The second function counts only the bytes that a GET
 * or PUT moved, those between memories included. */
void zr_worker_count(struct zr_worker *worker, const zarr_store_op *op);
void zr_worker_count_bytes(struct zr_worker *worker, const zarr_store_op *op);
/* Counts what an implementation copied itself in a call, and clears it there. */
void zr_worker_count_call(struct zr_worker *worker, struct zr_stage_call *call);
/* Frees the buffers of unsized chunks. A worker calls it before it waits for anything
 * except room for such buffers. */
void zr_worker_trim(struct zr_worker *worker);
/* Gives scratch blocks on devices back to the pool, for other requests. fetched: also the
 * one with fetched bytes. */
void zr_worker_leave_device(struct zr_worker *worker, bool fetched);
/* To be called after a decoder failed because the budget had no room (worker->starved).
 * Waits until this worker has all of engine->unsized_budget. */
zarr_status zr_worker_alone(struct zr_worker *worker, const zarr_cancel *cancel,
                            zarr_error *err);
/* The context of a step. */
struct zr_work {
    const struct zr_io *io;
    struct zarr_request *rq;
    struct zr_worker *worker;
    bool granted; /* the wave or batch already took from the budget what its parts need */
    bool own_block; /* a decoded chunk is not left inside of the encoded one */
    bool on_host;   /* chunks too large for the tensor's device are in host memory */
    bool own_bytes; /* the caller may change what is fetched: a store lends none of it */
};
/* Provides at least `bytes` in the given memory kind, on the request's device of that
 * kind. Growing a block loses its contents. */
zarr_status zr_worker_scratch(const struct zr_work *w, enum zr_scratch_slot slot,
                              int32_t device_type, uint64_t bytes, zarr_memory *out,
                              zarr_error *err);
/* Calls fn for i = 0 .. n-1 as zr_parallel_run() does. Each thread takes a worker context
 * when it first needs one; the caller's thread uses w->worker if it is set. Counters are
 * added to those of w->worker, or of the request if it is not set. opts->cancel must be
 * the request's. */
typedef zarr_status (*zr_work_fn)(void *arg, uint64_t i, const struct zr_work *w,
                                  zarr_error *err);
zarr_status zr_workers_run(const struct zr_work *w, uint64_t n,
                           const struct zr_parallel_options *opts, zr_work_fn fn,
                           void *arg, zarr_error *err);

#endif
