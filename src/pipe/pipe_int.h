/*
 * pipe/pipe_int.h - what the files of this room share: the worker context, the request,
 * and the steps of one chunk.
 */
#ifndef ZR_PIPE_INT_H
#define ZR_PIPE_INT_H

#include "pipe/pipe.h"

/* ---- worker contexts: codec contexts, scratch and counters of one thread --------- */

enum zr_scratch_slot {
    ZR_SCRATCH_FETCH, /* encoded bytes as fetched */
    ZR_SCRATCH_A,     /* A and B: outputs of stages, in turn */
    ZR_SCRATCH_B,
    ZR_SCRATCH_BLOCK,    /* the decoded chunk of a write */
    ZR_SCRATCH_INDEX,    /* a shard's index */
    ZR_SCRATCH_OLD,      /* the old object */
    ZR_SCRATCH_OLD_BODY, /* the old object after its outer codecs are decoded */
    ZR_SCRATCH_BODY,     /* an encoded object under construction */
    ZR_SCRATCH_CODEC,    /* scratch that an implementation requests */
    /* FALL_IN and FALL_OUT: input and output of a fallback on the host */
    ZR_SCRATCH_FALL_IN,
    ZR_SCRATCH_FALL_OUT,
    ZR_SCRATCH_BRING, /* encoded bytes, copied to the memory of the first stage */
    ZR_SCRATCH_SLOTS
};
struct zr_worker {
    struct zr_engine *engine;
    struct zr_thread_states states;
    zarr_mem scratch[ZR_SCRATCH_SLOTS];
    /* For unsized programs (vlen.c). Decoded elements point into decode_buffer. */
    struct zr_buffer decode_buffer[ZR_UNSIZED_BUFFERS], encode_buffer[ZR_UNSIZED_BUFFERS];
    /* counts large buffers, also those of runners, in the unsized budget */
    struct zr_grant grant;
    uint64_t granted; /* bytes taken from engine->unsized_budget */
    /* it has the whole unsized_budget, however much this chunk takes */
    bool alone;
    /* encoding: nothing is counted, because sizes follow from the caller's elements */
    bool encodes;
    bool starved; /* a buffer found no room in the budget */
    zarr_stats stats;
    struct zr_copy_counters copies;
    struct zr_str key;
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
/* Frees the buffers of unsized chunks, which are no longer needed. A worker calls it
 * before it waits for anything but the room for such buffers. */
void zr_worker_trim(struct zr_worker *worker);
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
    struct zr_later *later; /* writes: where to keep the unit's PUT; NULL: send it */
};
/* Provides at least `bytes` in the given memory kind, on the request's device of that
 * kind. Growing a block loses its contents. */
zarr_status zr_worker_scratch(const struct zr_work *w, enum zr_scratch_slot slot,
                              int32_t device_type, uint64_t bytes, zarr_mem *out,
                              zarr_error *err);
/* Calls fn for i = 0 .. n-1 as zr_parallel_run() does. Each thread takes a worker context
 * when it first needs one; the caller's thread uses w->worker if it is set. Counters are
 * merged into the request. opts->cancel must be the request's. */
typedef zarr_status (*zr_work_fn)(void *arg, uint64_t i, const struct zr_work *w,
                                  zarr_error *err);
zarr_status zr_workers_run(const struct zr_work *w, uint64_t n,
                           const struct zr_parallel_options *opts, zr_work_fn fn,
                           void *arg, zarr_error *err);

/* ---- requests ------------------------------------------------------------------ */

struct zarr_request {
    struct zr_io io; /* a copy */
    struct {
        zr_mutex mutex;
        zarr_stats stats;
        struct zr_copy_counters copies;
        uint64_t next_progress_ns;
        bool in_progress_call;
        /* only for submitted requests, see submitted.c */
        struct zr_then *then, *last_then; /* continuations to call */
        struct zr_fd_event fd;
        zr_thread settler; /* calls the continuations, once `done` is set */
        bool done, settled;
        bool freed; /* by a continuation */
    } locked;
    zarr_cancel cancel; /* its `outer` is the caller's */
    /* number of elements that the steps of a plug-in's pipeline have read or written */
    atomic_uint_fast64_t delivered;
    /* the store answered NOT_FOUND for a chunk or a shard */
    atomic_bool object_missing;
    bool last_try; /* a shard that was replaced meanwhile fails the read now */
    uint64_t fork_generation, begun_ns;
    struct zr_budget own; /* io.memory_bytes, while the request runs */
    bool has_own;
    /* only for submitted requests */
    bool submitted;
    const zarr_allocator *alloc;
    struct zr_task task;
    struct zr_event done;    /* status and error are final */
    struct zr_event settled; /* and every continuation has returned */
    zarr_status status;
    zarr_error error;
    zarr_status (*work)(void *owner, struct zarr_request *rq,
                        zarr_error *err); /* NULL: io */
    void (*release)(void *owner);
    void *owner;
};
/* Makes a request without an io. The caller deinits locked.mutex. */
void zr_request_init(struct zarr_request *rq, const zarr_cancel *cancel);
/* Takes bytes of the request's own budget, if it has one, then of the engine's, and gives
 * them back. Who holds bytes must not wait for more. */
zarr_status zr_request_take(struct zarr_request *rq, uint64_t bytes, zarr_error *err);
void zr_request_give(struct zarr_request *rq, uint64_t bytes);
/* The most bytes that all parts of a request may hold at once. */
uint64_t zr_io_budget(const struct zr_io *io);
/* Carries out rq->io on this thread. */
zarr_status zr_request_run(struct zarr_request *rq, zarr_error *err);
/* Copies the counters, up to out->struct_size. out may be NULL. */
void zr_request_stats(struct zarr_request *rq, zarr_stats *out);
/* Adds the worker's counters to the request's and sets them to zero. */
void zr_request_merge(struct zarr_request *rq, struct zr_worker *worker);
/* Calls the caller's progress function if it is due. That function may itself read and
 * write, even the same chunk, so this thread must hold no lock and nothing of the
 * budget. */
void zr_request_report(struct zarr_request *rq);
/* Counts one wave, or one batch of units, as done, and logs it as a trace: so many
 * segments or units, begun at begun_ns. */
void zr_request_wave(struct zarr_request *rq, uint32_t n, uint64_t begun_ns);
/* The time, if waves are logged, else 0. */
uint64_t zr_request_wave_begin(const struct zarr_request *rq);
/* Sets chunks_total: the leaf chunks that the request touches. */
void zr_request_total(struct zarr_request *rq, uint64_t chunks);
/* Prepares a repetition of the same request: counters of chunks start again, those of
 * work (bytes, GETs, copies) go on. */
void zr_request_again(struct zarr_request *rq);
uint32_t zr_io_threads(const struct zr_io *io); /* at least 1 */
uint64_t zr_io_wave_bytes(const struct zr_io *io);

static inline bool zr_io_is_host(const struct zr_io *io, int32_t device_type)
{
    return zr_device_is_host(io->engine->memory, device_type);
}
/* The number of the device that a request's blocks of this memory kind are on: that of
 * the tensor. */
static inline int32_t zr_io_device_id(const struct zr_io *io, int32_t device_type)
{
    return zr_io_is_host(io, device_type) ? 0 : io->view.base.device_id;
}

/* The caller's tensor that a target belongs to. */
static inline const struct zr_view *zr_target_view(const struct zr_io *io,
                                                   const struct zr_target *t)
{
    return io->parts ? &io->parts[t->part].view : &io->view;
}
/* Number of elements that the request reads or writes; UINT64_MAX: more. */
uint64_t zr_io_elements(const struct zr_io *io);
/* The request's selections, for a plan or a projector. all: room for one that takes
 * everything, which the caller frees. */
zarr_status zr_io_project(struct zr_projector **out, const struct zr_io *io,
                          zarr_selection **all, zarr_error *err);
/* ---- parts (parts.c) ------------------------------------------------------------ */

/* Forgets the failures of an earlier try. */
void zr_parts_begin(struct zarr_request *rq);
/* Whether a failure with this status is that of the parts which touch the chunk. If not,
 * the request fails. */
bool zr_parts_take(const struct zarr_request *rq, zarr_status st);
/* The status of the first part that failed, with its error; its number is err->item. */
zarr_status zr_parts_status(const struct zarr_request *rq, zarr_error *err);
/* Gives all parts that have not failed the status of the request, which failed. */
void zr_parts_fail_all(struct zarr_request *rq, zarr_status st, const zarr_error *err);
/* Gives the caller the status of each part. */
void zr_parts_tell(const struct zarr_request *rq);
/* As zr_segment_read(), zr_open_exec() and zr_unit_write(), but a failure of some parts
 * is noted there. */
zarr_status zr_parts_read(const struct zr_work *w, const struct zr_segment *segment,
                          const zarr_mem *fetched, zarr_error *err);
zarr_status zr_parts_open(const struct zr_work *w, struct zr_open *o, zarr_error *err);
zarr_status zr_parts_write(const struct zr_work *w, const struct zr_projection *proj,
                           uint32_t threads, zarr_error *err);

/* ---- steps ------------------------------------------------------------------------ */

/* The largest number of outer chunks that `waves` writes at once. */
uint64_t zr_units_most(const struct zr_io *io);
void zr_waves_cut(const struct zr_io *io, struct zr_plan_args *out);
void zr_serial_cut(const struct zr_io *io, struct zr_plan_args *out);
/* A GET of a whole object of unknown length into a scratch slot. */
struct zr_fetch {
    const char *key;
    enum zr_scratch_slot slot;
    int32_t device_type; /* memory kind of the scratch; 0: host */
    /* likely upper bound; a longer object than `most` is refused */
    uint64_t expect, most;
    /* refuse a longer object with LIMIT instead of CORRUPT */
    bool gaps;
    zarr_store_version *version; /* out; NULL: not wanted */
};
zarr_status zr_fetch_object(const struct zr_work *w, const struct zr_fetch *f,
                            zarr_mem *out, zarr_error *err);
/* Returns the most bytes that an encoded object of this level may have. */
uint64_t zr_encoded_most(const struct zr_io *io, uint64_t encoded_bound, bool exact);
/* The same for a shard that is fetched whole, which may have dead bytes between its
 * chunks if no codec follows it; and for the output of a program. */
uint64_t zr_shard_most(const struct zr_io *io, const struct zr_level *lv);
uint64_t zr_program_most(const struct zr_io *io, const struct zr_program *p);
/* A GET of a known number of bytes. */
struct zr_get {
    const char *key;
    struct zr_store_pin *pin; /* the version to read; NULL: any */
    uint64_t offset;          /* or ZARR_STORE_SUFFIX */
    zarr_mem dst;             /* is filled completely; fewer bytes are CORRUPT */
    /* length that the object must have if the store reports it; 0: any */
    uint64_t object_bytes;
    /* "chunk" or "shard" if the object was there a moment ago: NOT_FOUND becomes
     * CONFLICT. NULL: NOT_FOUND stays */
    const char *known;
    bool counted;  /* an earlier GET of the same chunk was counted already */
    bool is_index; /* the range is the index of a shard */
    /* out, for the GET of a shard's index: the shard's length; else NULL */
    uint64_t *index_of;
};
zarr_status zr_get(const struct zr_work *w, const struct zr_get *g, zarr_error *err);
/* Does a GET without a copy if the store lends its bytes: *out is their place. g->dst
 * names the kind of memory and the number of bytes. Otherwise returns false. */
bool zr_lend_range(const struct zr_work *w, const struct zr_get *g, zarr_mem *out);
/* Returns the pin of the object that contains a shard. */
struct zr_store_pin *zr_shard_pin(const struct zr_shard *s);
enum {
    ZR_CODING_SKIPS = 64
};
/* A chunk on its way through the stages of a program that is not unsized. */
struct zr_coding {
    const struct zr_program *p;
    zarr_mem cur; /* the chunk after the stages done */
    /* number of stages; decoding counts from the first, encoding from the last */
    uint32_t done;
    /* bit k: stage number k, counted as `done`, has a fallback and does not take this
     * chunk */
    uint64_t skip;
};
/* Runs stages until `until` are done. The last of these puts its output at dst, or into
 * scratch if dst is NULL or has no handle. */
zarr_status zr_stages_run(const struct zr_work *w, struct zr_coding *c, uint32_t until,
                          const zarr_mem *dst, zarr_error *err);
/* Whether a chunk in host memory is better not copied by stage number `copy`: the codec
 * after it is on a device, and refuses the chunk. */
bool zr_stays_on_host(const struct zr_io *io, const struct zr_program *p, uint32_t copy,
                      const zarr_mem *encoded);
/* Ends the decoding of a chunk: counts it, checks its length, and gives padded elements
 * the form that memory has. src: the output of the last stage. */
zarr_status zr_decode_end(const struct zr_work *w, const struct zr_program *p,
                          const zarr_mem *src, zarr_mem *out, zarr_error *err);
/* Decodes a chunk completely. dst: place for the elements (its bytes must be the decoded
 * size); NULL or without a handle: scratch. *out: where they are. */
zarr_status zr_chunk_decode(const struct zr_work *w, const struct zr_program *p,
                            const zarr_mem *src, const zarr_mem *dst, zarr_mem *out,
                            zarr_error *err);
/* Encodes a chunk completely. dst has room for p->encoded_bound in p->fetch_device. */
zarr_status zr_chunk_encode(const struct zr_work *w, const struct zr_program *p,
                            const zarr_mem *src, const zarr_mem *dst, zarr_mem *out,
                            zarr_error *err);
/* For a whole chunk, if the last stage can write with strides: decodes directly into the
 * view and sets *done. Otherwise c goes on as usual. */
zarr_status zr_decode_strided(const struct zr_work *w, struct zr_coding *c,
                              const struct zr_target *t, bool *done, zarr_error *err);
/* Copies encoded bytes to scratch if they are not in memory that s, the first stage of a
 * program, takes. Valid until the worker's next copy. */
zarr_status zr_bring_encoded(const struct zr_work *w, const struct zr_stage *s,
                             zarr_mem *encoded, zarr_error *err);
/* The next unit that a write touches. A write of a field never covers a whole unit, even
 * with all its elements. If elements outside of the shape become the fill value, a whole
 * unit is a full one. */
static inline bool zr_next_unit(const struct zr_io *io, struct zr_projector *p,
                                struct zr_projection *out)
{
    if (!zr_project_next(p, out))
        return false;
    out->whole = out->whole && !io->field.on;
    out->full = (out->full || io->reset_outside) && out->whole;
    return true;
}
/* Copy the boxes of a target between a block of elements and the view. */
zarr_status zr_scatter_target(const struct zr_work *w, const struct zr_program *p,
                              const struct zr_target *t, const zarr_mem *block,
                              zarr_error *err);
zarr_status zr_gather_target(const struct zr_work *w, const struct zr_program *p,
                             const struct zr_target *t, const zarr_mem *block,
                             zarr_error *err);
/* lv: the level whose fill value is used. */
zarr_status zr_fill_target(const struct zr_work *w, const struct zr_level *lv,
                           const struct zr_target *t, zarr_error *err);
/* Fills a decoded block with the fill value in the byte order of the program. */
zarr_status zr_fill_block(const struct zr_work *w, const struct zr_level *lv,
                          const struct zr_program *p, const zarr_mem *block,
                          zarr_error *err);
/* Gives padded elements of a block, just decoded or read, the form that memory has. The
 * block has any whole number of elements. */
zarr_status zr_block_unpad(const struct zr_work *w, const struct zr_program *p,
                           const zarr_mem *block, zarr_error *err);
/* The same for unsized programs. Decoded elements of variable length point into src or
 * the worker's decode_buffer; *out of encoding is in encode_buffer (or src). Both are
 * valid until the worker's next call. dst NULL: a buffer. */
zarr_status zr_worker_decode_unsized(const struct zr_work *w, const struct zr_program *p,
                                     const zarr_mem *src, const zarr_mem *dst,
                                     zarr_mem *out, zarr_error *err);
zarr_status zr_chunk_decode_unsized(const struct zr_work *w, const struct zr_program *p,
                                    const zarr_mem *src, const zarr_mem *last,
                                    zarr_mem *out, zarr_error *err);
zarr_status zr_chunk_encode_unsized(const struct zr_work *w, const struct zr_program *p,
                                    const zarr_mem *src, zarr_mem *out, zarr_error *err);
/* Copies elements of variable length to the view, and their bytes to the heap. */
zarr_status zr_vlen_scatter(const struct zr_work *w, const struct zr_program *p,
                            const struct zr_target *t, const zarr_mem *block,
                            zarr_error *err);
/* A fill value whose bytes are in the heap. */
struct zr_vlen_item {
    zarr_vlen item;
    uint8_t optional[16]; /* what optional types append to it, one byte per level */
};
zarr_status zr_vlen_fill(const struct zr_work *w, const struct zr_target *t,
                         struct zr_vlen_item *fill, zarr_error *err);
/* Returns true if the target is the whole chunk and the view holds it in exactly the
 * program's layout; then *at is the place. */
bool zr_target_direct(const struct zr_io *io, const struct zr_program *p,
                      const struct zr_target *t, zarr_mem *at);
/* Reads one segment of a data wave: fetches, decodes, scatters. fetched: the bytes of the
 * segment if they were fetched before; else handle NULL. */
zarr_status zr_segment_read(const struct zr_work *w, const struct zr_segment *segment,
                            const zarr_mem *fetched, zarr_error *err);
/* Fetches the encoded bytes of a segment into a scratch block, or points to them.
 * NOT_FOUND: missing. */
zarr_status zr_segment_fetch(const struct zr_work *w, const struct zr_segment *segment,
                             zarr_mem *out, zarr_error *err);
/* Counts a missing item, whose elements become the fill value; or fails with NOT_FOUND if
 * the caller asked for that. */
zarr_status zr_item_missing(const struct zr_work *w, const struct zr_item *item,
                            zarr_error *err);
/* The same, and writes the fill value. */
zarr_status zr_item_fill(const struct zr_work *w, const struct zr_item *item,
                         zarr_error *err);
/* ---- work on a device (flow.c) ------------------------------------------------ */

/* A call of a codec whose work is on the stream. `owner`: what each job belongs to. */
struct zr_flow_call {
    struct zr_flow_call *next;
    const struct zr_stage *stage;
    struct zr_stage_call call;
    const uint32_t *owner;
};
enum {
    ZR_FLOW_HELD = 64
};
/*
 * The work of one wave on a device: a stream, the blocks that queued work uses, and the
 * codecs' calls whose results are not known yet. With `device` 0 there is no device, and
 * all work is done at once. One thread uses it.
 */
struct zr_flow {
    struct zr_work w; /* w.worker: for codecs and counters; taken when first needed */
    bool own_worker;
    int32_t device;
    struct zr_stream stream;
    struct zr_arena *arena;
    bool encode;
    zarr_mem held[ZR_FLOW_HELD];
    uint32_t n_held;
    struct zr_flow_call *first, **last;
    /* Set after zr_flow_begin(), or NULL: called for each job that its implementation did
     * not take (zr_stage_declines()), or that failed after another one was declined. The
     * caller then does the chunk of `owner` again, alone. s: the stage that declined it;
     * NULL: its input may have been what another stage declined */
    void (*declined)(void *arg, uint32_t owner, const struct zr_stage *s);
    void *declined_arg;
    bool again; /* out: it was called */
};
zarr_status zr_flow_begin(struct zr_flow *f, const struct zr_work *w, int32_t device,
                          struct zr_arena *arena, zarr_error *err);
/* Waits for what is left, and gives back everything. */
void zr_flow_end(struct zr_flow *f);
zarr_status zr_flow_worker(struct zr_flow *f, zarr_error *err);
/* Gives a pool block back once no queued work uses it. *block becomes empty. */
zarr_status zr_flow_hold(struct zr_flow *f, zarr_mem *block, zarr_error *err);
/* Runs a batch of a stage on the flow's worker, on the stream if the implementation can.
 * The jobs and owners live as long as the arena. After a failure err->item is the owner
 * of the job that failed, UINT64_MAX if there is none. Jobs that are declined are no
 * failure. */
zarr_status zr_flow_run(struct zr_flow *f, const struct zr_stage *s, zarr_codec_job *jobs,
                        const uint32_t *owner, uint32_t n, zarr_error *err);
/* Waits for the stream, and asks each codec how its call went. err->item as above. */
zarr_status zr_flow_wait(struct zr_flow *f, zarr_error *err);

/* Boxes of many chunks, copied in few calls. The flow has its worker. */
struct zr_box_list {
    struct zr_flow *flow;
    zarr_box *box;
    uint32_t n;
    bool to_chunk;       /* from the view to chunks */
    const void *pattern; /* what the boxes are filled with; NULL: copies */
};
zarr_status zr_box_list_open(struct zr_box_list *l, struct zr_flow *flow, bool to_chunk,
                             zarr_error *err);
/* Adds the boxes of a target between the view and a block of elements. */
zarr_status zr_box_list_target(struct zr_box_list *l, const struct zr_program *p,
                               const struct zr_target *t, const zarr_mem *block,
                               zarr_error *err);
/* Adds the boxes of a target to be filled with the fill value of a level. */
zarr_status zr_box_list_fill(struct zr_box_list *l, const struct zr_level *lv,
                             const struct zr_target *t, zarr_error *err);
/* Queues what was added. Before the end the list does so itself where it must. */
zarr_status zr_box_list_send(struct zr_box_list *l, zarr_error *err);
void zr_box_list_close(struct zr_box_list *l);

/* Carries out a whole wave in lock step: for programs with an implementation that takes
 * batches, and for elements that go to a device. fetched: by segment; handle NULL if a
 * segment was not fetched in advance. */
bool zr_goes_lockstep(const struct zr_io *io, const struct zr_program *p);
zarr_status zr_lockstep_exec(const struct zr_io *io, struct zarr_request *rq,
                             struct zr_wave *wave, const zarr_mem *fetched,
                             zarr_error *err);
/* Segments fetched for a whole wave at once, not one by one by the workers
 * (prefetch.c). */
struct zr_prefetch {
    zarr_store_op *op;
    zarr_mem *mem;   /* by segment: the bytes fetched */
    zarr_mem *block; /* by operation: the pool block that they are in, or that begins with
                      * them */
    bool shared;     /* a block has the bytes of several operations */
    /* by operation: the first segment, and how many neighbours of one object it covers */
    uint32_t *first, *count;
    uint32_t n; /* operations */
};
/* The operation that failed, the first in order, and its error. */
struct zr_ops_failure {
    uint32_t op; /* UINT32_MAX: none */
    zarr_error error;
};
/* Runs n operations, several at once, and waits for all. Those whose status is OK already
 * are only counted. failure NULL: the caller looks at each status. NOT_FOUND is no
 * failure. */
zarr_status zr_ops_run(const struct zr_io *io, struct zarr_request *rq, zarr_store_op *op,
                       uint32_t n, struct zr_ops_failure *failure, struct zr_arena *arena,
                       zarr_error *err);
bool zr_wants_batches(const struct zr_io *io, const struct zr_program *p);
/* Fetches the indexes of a wave's shards at once, for stores that are not read on the
 * decoding thread (ahead.c). What could not be fetched is left to zr_open_exec(). */
zarr_status zr_opens_ahead(const struct zr_io *io, struct zarr_request *rq,
                           struct zr_wave *w, zarr_error *err);
void zr_opens_ahead_end(const struct zr_io *io, struct zr_wave *w);
/* An index that was fetched ahead. */
struct zr_ahead {
    struct zr_store_pin *pin; /* owned until zr_open_exec() takes it; nested: NULL */
    zarr_store_op op;         /* done; its memory has the encoded index */
    zarr_mem block;           /* a pool block that contains it */
};
/* Bytes of memory for a wave that is fetched at once: the encoded bytes of all its
 * segments, and blocks of elements: one chunk per worker or, in lock step, input and
 * output of all chunks. */
uint64_t zr_prefetch_budget(const struct zarr_request *rq, const struct zr_wave *w,
                            bool lockstep);
zarr_status zr_prefetch_run(const struct zr_io *io, struct zarr_request *rq,
                            struct zr_wave *w, struct zr_prefetch *p, zarr_error *err);
void zr_prefetch_end(const struct zr_io *io, const struct zr_wave *w,
                     struct zr_prefetch *p); /* also after a failure */
/* The bytes of a chunk that a target needs, as ranges (ranges.c): dimensions below
 * `split` are walked index by index, and the others are read as one range. n is a count
 * for dimensions below `split`, an extent for the others. */
struct zr_ranges {
    int32_t ndim, split;
    uint64_t lo[ZARR_MAX_RANK], n[ZARR_MAX_RANK];
    int64_t step[ZARR_MAX_RANK];
    uint64_t stride[ZARR_MAX_RANK];
    uint64_t n_reads, read_bytes;
};
/* Chooses `split`. `each`: what one more range costs, in bytes. Returns the cost;
 * UINT64_MAX if it exceeds 64 bits. The target must be arithmetic. */
uint64_t zr_ranges_choose(const struct zr_program *p, const struct zr_target *t,
                          uint64_t each, struct zr_ranges *s);
/* Returns the offset of the range at[], then advances at[] to the next. Begin with
 * zeros. */
uint64_t zr_ranges_next(const struct zr_ranges *s, uint64_t *at);
/* Whether ranges of an uncompressed chunk cost less than the chunk; *out: which. */
bool zr_raw_in_ranges(const struct zr_io *io, const struct zr_segment *segment,
                      struct zr_ranges *out);
/* Decodes only what an item needs, into its places in a scratch block, *out. Does so, and
 * sets *done, if the program is a single codec that can decode in part and the saving is
 * large enough. */
zarr_status zr_chunk_decode_partial(const struct zr_work *w, const struct zr_program *p,
                                    const struct zr_item *item, const zarr_mem *encoded,
                                    zarr_mem *out, bool *done, zarr_error *err);
/* A large uncompressed chunk, read in slabs of rows (slabs.c). After open, n is 0 if the
 * chunk cannot be read so. */
struct zr_slabs {
    struct zr_store_pin pin;
    const struct zr_segment *segment;
    int32_t dim; /* stored dimension that is cut into slabs */
    uint64_t n, rows, row_bytes;
    bool direct; /* from the store into the view, without scratch */
    zarr_mem at;
};
bool zr_slabs_fit(const struct zr_io *io, const struct zr_segment *segment);
zarr_status zr_slabs_open(struct zr_slabs *s, const struct zr_io *io,
                          const struct zr_segment *segment, zarr_error *err);
zarr_status zr_slabs_one(const struct zr_work *w, struct zr_slabs *s, uint64_t i,
                         zarr_error *err);
void zr_slabs_close(struct zr_slabs *s); /* also after a failed open */
/* Short cuts for a segment on this thread: in slabs; stored elements directly into the
 * view; only the ranges needed. *done stays false if a short cut does not apply. */
zarr_status zr_slabs_read(const struct zr_work *w, const struct zr_segment *segment,
                          bool *done, zarr_error *err);
zarr_status zr_raw_direct(const struct zr_work *w, const struct zr_segment *segment,
                          bool *done, zarr_error *err);
zarr_status zr_raw_ranges(const struct zr_work *w, const struct zr_segment *segment,
                          bool *done, zarr_error *err);
/* Counts an item whose elements are in the view. */
void zr_item_count(const struct zr_work *w, const struct zr_item *item, bool direct);
/* Finishes an item: copies its elements from block to the view (direct: they are there
 * already) and counts it. */
zarr_status zr_item_finish(const struct zr_work *w, const struct zr_segment *segment,
                           const struct zr_item *item, const zarr_mem *block, bool direct,
                           zarr_error *err);
/* Decodes an item that was fetched, puts its elements in their place and counts it. skip:
 * as in struct zr_coding. */
zarr_status zr_item_decode(const struct zr_work *w, const struct zr_segment *segment,
                           const struct zr_item *item, const zarr_mem *encoded,
                           uint64_t skip, zarr_error *err);
/* Prefixes an error with the address of an item. */
zarr_status zr_item_prefix(const struct zr_segment *segment, const struct zr_item *item,
                           zarr_status st, zarr_error *err);
/* Opens one shard of an OPEN wave and sets o->shard. */
zarr_status zr_open_exec(const struct zr_work *w, struct zr_open *o, zarr_error *err);
/* Decodes and checks an encoded index. value_bytes: length of the shard's value;
 * UINT64_MAX: unknown. */
zarr_status zr_index_parse(const struct zr_work *w, const struct zr_level *lv,
                           const zarr_mem *encoded, uint64_t value_bytes,
                           struct zr_shard_index **out, zarr_error *err);
/* Parses the index of a shard value held in host memory. */
zarr_status zr_index_from_value(const struct zr_work *w, const struct zr_level *lv,
                                const zarr_mem *value, struct zr_shard_index **out,
                                zarr_error *err);
/* Runs one store operation and counts it. */
zarr_status zr_store_op_run(const struct zr_work *w, zarr_store_op *op, zarr_error *err);
/* Runs and counts the PUT or ERASE of one unit, or gives the unit to io->sink. An ERASE
 * of a missing key succeeds. */
zarr_status zr_put_unit(const struct zr_work *w, const uint64_t *chunk, zarr_store_op *op,
                        zarr_error *err);

/* The PUT or ERASE of a unit, to be sent with others (later.c). */
struct zr_later {
    char *key; /* owned; NULL: there is no operation */
    zarr_store_op op;
    zarr_mem block; /* a pool block that has the bytes */
};
/* Whether the unit needs nothing more, after zr_later_run(). */
static inline bool zr_later_done(const struct zr_later *l)
{
    return !l->key || l->op.status == ZARR_OK ||
           (l->op.verb == ZARR_STORE_ERASE && l->op.status == ZARR_ERR_NOT_FOUND);
}
zarr_status zr_put_later(const struct zr_work *w, const zarr_store_op *op,
                         zarr_error *err);
zarr_status zr_later_run(const struct zr_io *io, struct zarr_request *rq,
                         struct zr_later *l, uint32_t n, struct zr_arena *arena,
                         zarr_error *err);
void zr_later_end(const struct zr_io *io, struct zr_later *l, uint32_t n);
/* Bytes for one unit: its elements, its new value, and its old value if that is
 * needed. */
uint64_t zr_unit_budget(const struct zr_level *lv, bool full);
/* Writes all units of a request, several at once (waves_write.c). */
zarr_status zr_waves_write(void *self, zarr_request *rq, const zarr_pipeline_steps *steps,
                           zarr_error *err);
/* Writes one unit (outer chunk). threads may be 1. */
zarr_status zr_unit_write(const struct zr_work *w, const struct zr_projection *proj,
                          uint32_t threads, zarr_error *err);
/* Takes back what an attempt that met a conflict added to the counters of chunks. */
void zr_forget_chunks(zarr_stats *now, const zarr_stats *before);
/* One leaf chunk to encode. */
struct zr_leaf_write {
    const struct zr_level *level;
    const struct zr_projection *proj;
    /* the level whose fill value it has if there is no old value; NULL: its own */
    const struct zr_level *missing;
    /* Its old encoded bytes; handle NULL: none. If proj->whole, an old value that cannot
     * be decoded is ignored. */
    zarr_mem old;
    zarr_mem room; /* from zr_leaf_room(), or host memory if encoding ends there */
    /* for its elements, and for a copy of them on the host; handle NULL: scratch */
    zarr_mem block, host;
    /* out: in room, or the caller's own memory if it can be stored unchanged */
    zarr_mem out;
    /* out: it equals the fill value of its level, and such chunks are not stored */
    bool empty;
    bool filled; /* out: it equals the array's fill value */
};
zarr_status zr_leaf_encode(const struct zr_work *w, struct zr_leaf_write *lw,
                           zarr_error *err);
/* The first half of encoding: makes the elements as they are stored, copies them to *host
 * if the CPU cannot read them, and sets lw->empty. */
zarr_status zr_leaf_prepare(const struct zr_work *w, struct zr_leaf_write *lw,
                            zarr_mem *elements, zarr_mem *host, zarr_error *err);
/* Sets lw->empty and lw->filled, from elements in host memory, and counts an empty leaf.
 */
zarr_status zr_leaf_compare(const struct zr_work *w, struct zr_leaf_write *lw,
                            const zarr_mem *elements, zarr_error *err);
/* Takes n slices of one pool block, which the caller gives back as *slab. *step: bytes of
 * each; on return the aligned distance between them. Host memory for a tensor on a device
 * is pinned if the budget has room. */
zarr_status zr_take_slices(const struct zr_io *io, int32_t device, uint64_t *step,
                           uint64_t n, zarr_mem *slab, zarr_error *err);
/* Encodes n leaves of one level together, stage by stage, for programs with an
 * implementation that takes batches and for elements that come from a device. All must
 * have room. On failure err->item is the leaf that failed. */
zarr_status zr_leaves_encode(const struct zr_work *w, struct zr_leaf_write *lw,
                             uint32_t n, uint32_t threads, zarr_error *err);
/* Writes together those of n units whose program takes batches and that need no old
 * value. Sets done[i] for each. */
zarr_status zr_units_lockstep(const struct zr_io *io, struct zarr_request *rq,
                              const struct zr_projection *proj, uint32_t n, bool *done,
                              zarr_error *err);
/* Takes scratch for the encoded chunk that becomes an object, in the memory that its
 * program ends in. Takes nothing if buffers grow. */
zarr_status zr_leaf_room(const struct zr_work *w, const struct zr_level *lv,
                         zarr_mem *out, zarr_error *err);
/* The new value of one shard, with the codecs around it. */
struct zr_shard_write {
    uint32_t level;
    const struct zr_level *lv; /* the level of this shard */
    /* the level whose fill value it has if there is no old value */
    const struct zr_level *missing;
    const struct zr_projection *proj;
    const uint64_t *clip; /* extent of valid elements; NULL: all */
    /* Its old stored bytes; handle NULL: none. If proj->whole, they are ignored if they
     * are damaged. */
    zarr_mem old;
    uint32_t threads;
    /* out: the bytes to store, and the pool block that contains them, which the caller
     * gives back */
    zarr_mem out, block;
    bool empty;  /* out: it need not be stored */
    bool filled; /* out: all its elements equal the array's fill value */
};
zarr_status zr_shard_write(const struct zr_work *w, struct zr_shard_write *sw,
                           zarr_error *err);
/* Puts the inner chunks of a shard into another order (inner_order.c). The value is the
 * first *used bytes of *block; pairs: the index, in host byte order. *block is replaced.
 */
zarr_status zr_shard_reorder(const struct zr_work *w, const struct zr_level *lv,
                             uint64_t *pairs, zarr_mem *block, uint64_t used,
                             zarr_error *err);
/* Run the codecs around a shard backward (encode) into a pool block, or forward (decode).
 * The caller gives *block back; the result is its first bytes. */
zarr_status zr_body_encode(const struct zr_work *w, const struct zr_level *lv,
                           const zarr_mem *value, zarr_mem *block, zarr_mem *out,
                           zarr_error *err);
zarr_status zr_body_decode(const struct zr_work *w, const struct zr_level *lv,
                           const zarr_mem *encoded, zarr_mem *block, zarr_mem *out,
                           zarr_error *err);
/* Encodes n_inner_all pairs by the index chain. dst has level->index_bytes. */
zarr_status zr_index_encode(const struct zr_work *w, const struct zr_level *lv,
                            uint64_t *pairs, const zarr_mem *dst, zarr_error *err);

/* ---- steps for pipelines of plug-ins (steps.c, steps_write.c) ------------------ */

struct zarr_pipeline_worker {
    struct zr_work w;
    struct zr_io
        *plain; /* an owned copy without short cuts; NULL: w.io is the request's */
};
zarr_status zr_step_units_open(zarr_request *rq, zarr_pipeline_units **out,
                               zarr_error *err);
void zr_step_units_close(zarr_pipeline_units *units);
zarr_status zr_step_units_next(zarr_pipeline_units *units, uint32_t most, uint32_t *n,
                               zarr_error *err);
void zr_step_unit_get(const zarr_pipeline_units *units, uint32_t i,
                      zarr_pipeline_unit *out);
zarr_status zr_step_write(zarr_pipeline_worker *worker, const zarr_pipeline_units *units,
                          uint32_t i, uint32_t threads, zarr_error *err);
zarr_status zr_step_encode(zarr_pipeline_worker *worker, const zarr_pipeline_units *units,
                           uint32_t i, zarr_mem *out, int *empty, zarr_error *err);
zarr_status zr_step_put(zarr_pipeline_worker *worker, const zarr_pipeline_units *units,
                        uint32_t i, const zarr_mem *bytes, zarr_error *err);

#endif
