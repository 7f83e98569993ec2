/*
 * pipe/pipe_int.h - what the files of this room share: the worker context, the
 * request, and the steps that one chunk goes through.
 */
#ifndef ZR_PIPE_INT_H
#define ZR_PIPE_INT_H

#include "pipe/pipe.h"

/* ---- worker contexts: codec contexts, scratch and counters of one thread --------- */

enum zr_scratch_slot {
    ZR_SCRATCH_FETCH, /* encoded bytes as fetched */
    ZR_SCRATCH_A,     /* stages in turn */
    ZR_SCRATCH_B,
    ZR_SCRATCH_BLOCK,    /* the decoded chunk of a write */
    ZR_SCRATCH_INDEX,    /* a shard's index */
    ZR_SCRATCH_OLD,      /* a former object */
    ZR_SCRATCH_OLD_BODY, /* the same behind its outer codecs */
    ZR_SCRATCH_BODY,     /* an encoded object under construction */
    ZR_SCRATCH_CODEC,    /* what an implementation asks for */
    ZR_SCRATCH_FALL_IN,  /* a chunk on its way through a fallback on the host */
    ZR_SCRATCH_FALL_OUT,
    ZR_SCRATCH_BRING, /* encoded bytes that lay in other memory than the first stage's */
    ZR_SCRATCH_SLOTS
};
struct zr_worker {
    struct zr_engine *engine;
    struct zr_thread_states states;
    zarr_mem scratch[ZR_SCRATCH_SLOTS];
    /* of programs without sizes (vlen.c); decoded elements point into the first */
    struct zr_buffer decode_buffer[ZR_UNSIZED_BUFFERS], encode_buffer[ZR_UNSIZED_BUFFERS];
    struct zr_grant grant; /* large ones among them, and the runners' */
    uint64_t granted;      /* bytes taken from engine->unsized_budget */
    bool alone;            /* all of it, whatever this chunk takes */
    bool encodes; /* nothing is counted: sizes follow from the caller's elements */
    bool starved; /* there was no room */
    zarr_stats stats;
    struct zr_copy_counters copies;
    struct zr_str key;
    struct zr_worker *next;
};
/* cancel: the request's, for codecs that take their time; borrowed until it is given. */
zarr_status zr_worker_take(struct zr_engine *e, const atomic_bool *cancel,
                           struct zr_worker **out, zarr_error *err);
void zr_worker_give(struct zr_worker *worker); /* counters must have been merged */
void zr_workers_free(struct zr_engine *e);     /* the idle ones */
/* An operation of the store that was done; and only what a GET or PUT moved, between
 * memories too. */
void zr_worker_count(struct zr_worker *worker, const zarr_store_op *op);
void zr_worker_count_bytes(struct zr_worker *worker, const zarr_store_op *op);
/* What decoded chunks of no known size lie in is needed no more. Before anybody waits for
 * anything but the room for such a chunk. */
void zr_worker_trim(struct zr_worker *worker);
/* After a decoder failed for want of it (worker->starved): waits until all of
 * engine->unsized_budget is this worker's. */
zarr_status zr_worker_alone(struct zr_worker *worker, const atomic_bool *cancel,
                            zarr_error *err);
/* What a step works with. */
struct zr_work {
    const struct zr_io *io;
    struct zarr_request *rq;
    struct zr_worker *worker;
    bool granted; /* the wave took what its segments need from the budget */
};
/* At least `bytes` in the given memory, on the request's device of that kind; contents
 * are lost when it grows. */
zarr_status zr_worker_scratch(const struct zr_work *w, enum zr_scratch_slot slot,
                              int32_t device_type, uint64_t bytes, zarr_mem *out,
                              zarr_error *err);
/* Calls fn for i = 0 .. n-1 as zr_parallel_run() does, each with the worker context of
 * its thread, taken at first use; the caller's thread works with w->worker where that is
 * set. Counters are merged into the request. opts->cancel is the request's. */
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
    } locked;
    atomic_bool cancel;
    /* elements that the steps of a plug-in's pipeline have read or written */
    atomic_uint_fast64_t delivered;
    uint64_t fork_generation, begun_ns;
    /* submitted ones */
    struct zr_task task;
    struct zr_event done;
    zarr_status status;
    zarr_error error;
    void (*release)(void *owner);
    void *owner;
    bool submitted;
};
void zr_request_merge(
    struct zarr_request *rq,
    struct zr_worker *worker); /* adds and zeroes the worker's counters */
/* Calls the caller's progress function if it is due. It may read and write, even the same
 * chunk: only where this thread holds no lock and nothing of the budget. */
void zr_request_report(struct zarr_request *rq);
/* One more wave, or batch of units, was carried out. */
void zr_request_wave(struct zarr_request *rq);
/* chunks_total: leaf chunks that the request touches. */
void zr_request_total(struct zarr_request *rq, uint64_t chunks);
/* Before the same is done once more: counters of chunks start again, those of work
 * (bytes, GETs, copies) go on. */
void zr_request_again(struct zarr_request *rq);
uint32_t zr_io_threads(const struct zr_io *io); /* at least 1 */
uint64_t zr_io_wave_bytes(const struct zr_io *io);

static inline bool zr_io_is_host(const struct zr_io *io, int32_t device_type)
{
    return zr_device_is_host(io->engine->memory, device_type);
}
/* Which device of that kind a request's blocks are on: the tensor's. */
static inline int32_t zr_io_device_id(const struct zr_io *io, int32_t device_type)
{
    return zr_io_is_host(io, device_type) ? 0 : io->view.base.device_id;
}

/* ---- steps ------------------------------------------------------------------------ */

/* Outer chunks that `waves` writes at once, at most. */
uint64_t zr_units_most(const struct zr_io *io);
void zr_waves_cut(const struct zr_io *io, struct zr_plan_args *out);
void zr_serial_cut(const struct zr_io *io, struct zr_plan_args *out);
/* GET of a whole object of unknown length into a scratch slot. */
struct zr_fetch {
    const char *key;
    enum zr_scratch_slot slot;
    int32_t device_type;         /* of the scratch; 0: host */
    uint64_t expect, most;       /* likely upper bound; refused above */
    bool gaps;                   /* a longer one is no damage, but over a limit */
    zarr_store_version *version; /* out; NULL: not wanted */
};
zarr_status zr_fetch_object(const struct zr_work *w, const struct zr_fetch *f,
                            zarr_mem *out, zarr_error *err);
/* Most bytes an encoded object of this level may have. */
uint64_t zr_encoded_most(const struct zr_io *io, uint64_t encoded_bound, bool exact);
/* The same of a shard that is taken whole, which may have dead bytes between its chunks
 * where no codec stands behind it; and of what a program decodes. */
uint64_t zr_shard_most(const struct zr_io *io, const struct zr_level *lv);
uint64_t zr_program_most(const struct zr_io *io, const struct zr_program *p);
/* GET of bytes whose number is known. */
struct zr_get {
    const char *key;
    struct zr_store_pin *pin; /* the version to read; NULL: any */
    uint64_t offset;          /* or ZARR_STORE_SUFFIX */
    zarr_mem dst;             /* all of it is filled; less is CORRUPT */
    uint64_t object_bytes; /* the object must have, if the store tells; 0: any number */
    /* "chunk" or "shard", which was there a moment ago: a missing one is CONFLICT. NULL:
     * NOT_FOUND */
    const char *known;
    bool counted;       /* as a GET, by an earlier one of the same chunk */
    uint64_t *index_of; /* of a shard's index: out, the shard's length. Else NULL */
};
zarr_status zr_get(const struct zr_work *w, const struct zr_get *g, zarr_error *err);
/* What holds the object still that a shard is in. */
struct zr_store_pin *zr_shard_pin(const struct zr_shard *s);
/* A chunk on its way through the stages of a program, which is not unsized. */
struct zr_coding {
    const struct zr_program *p;
    zarr_mem cur;  /* the chunk as it is by now */
    uint32_t done; /* stages: decoding counts from the first, encoding from the last */
};
/* Runs stages until so many are done. The last of these puts its output at dst, or into
 * scratch where dst is NULL or has no handle. */
zarr_status zr_stages_run(const struct zr_work *w, struct zr_coding *c, uint32_t until,
                          const zarr_mem *dst, zarr_error *err);
/* What a decoded chunk needs besides: counts it, checks its length, and leaves elements
 * as memory has them. src: what was decoded. */
zarr_status zr_decode_end(const struct zr_work *w, const struct zr_program *p,
                          const zarr_mem *src, zarr_mem *out, zarr_error *err);
/* All of it. dst: where the elements shall go (its bytes must be the decoded size); NULL,
 * or without a handle: scratch. *out is where they are. */
zarr_status zr_chunk_decode(const struct zr_work *w, const struct zr_program *p,
                            const zarr_mem *src, const zarr_mem *dst, zarr_mem *out,
                            zarr_error *err);
/* The other way. dst has room for p->encoded_bound in p->fetch_device. */
zarr_status zr_chunk_encode(const struct zr_work *w, const struct zr_program *p,
                            const zarr_mem *src, const zarr_mem *dst, zarr_mem *out,
                            zarr_error *err);
/* A chunk wanted whole, by a last stage that knows strides, straight into the view:
 * *done. Else c goes on. */
zarr_status zr_decode_strided(const struct zr_work *w, struct zr_coding *c,
                              const struct zr_target *t, bool *done, zarr_error *err);
/* Encoded bytes to where stage s, a program's first, takes them: into scratch where they
 * lie elsewhere. Until the worker's next. */
zarr_status zr_bring_encoded(const struct zr_work *w, const struct zr_stage *s,
                             zarr_mem *encoded, zarr_error *err);
/* The next unit that a write touches; with all elements a field is still not all of
 * it. */
static inline bool zr_next_unit(const struct zr_io *io, struct zr_projector *p,
                                struct zr_projection *out)
{
    if (!zr_project_next(p, out))
        return false;
    out->whole = out->whole && !io->field.on;
    out->full = out->full && !io->field.on;
    return true;
}
/* Copies the boxes of a target between a block of elements and the view. */
zarr_status zr_scatter_target(const struct zr_work *w, const struct zr_program *p,
                              const struct zr_target *t, const zarr_mem *block,
                              zarr_error *err);
zarr_status zr_gather_target(const struct zr_work *w, const struct zr_program *p,
                             const struct zr_target *t, const zarr_mem *block,
                             zarr_error *err);
/* lv: whose fill. */
zarr_status zr_fill_target(const struct zr_work *w, const struct zr_level *lv,
                           const struct zr_target *t, zarr_error *err);
/* Fills a decoded block with the fill value as stored (byte order of the program). */
zarr_status zr_fill_block(const struct zr_work *w, const struct zr_level *lv,
                          const struct zr_program *p, const zarr_mem *block,
                          zarr_error *err);
/* Elements with bits that do not count, where they were decoded or read to: as memory has
 * them. Any whole number of elements. */
zarr_status zr_block_unpad(const struct zr_work *w, const struct zr_program *p,
                           const zarr_mem *block, zarr_error *err);
/* The same for programs without sizes: decoded elements of variable length point into src
 * or the worker's decode_buffer; *out of encoding is in encode_buffer (or src). Both
 * until the worker's next. */
zarr_status zr_worker_decode_unsized(const struct zr_work *w, const struct zr_program *p,
                                     const zarr_mem *src, const zarr_mem *dst,
                                     zarr_mem *out,
                                     zarr_error *err); /* dst NULL: a buffer */
zarr_status zr_chunk_decode_unsized(const struct zr_work *w, const struct zr_program *p,
                                    const zarr_mem *src, const zarr_mem *last,
                                    zarr_mem *out, zarr_error *err);
zarr_status zr_chunk_encode_unsized(const struct zr_work *w, const struct zr_program *p,
                                    const zarr_mem *src, zarr_mem *out, zarr_error *err);
/* Elements of variable length to the view, their bytes to the heap. */
zarr_status zr_vlen_scatter(const struct zr_work *w, const struct zr_program *p,
                            const struct zr_target *t, const zarr_mem *block,
                            zarr_error *err);
/* A fill value whose bytes are in the heap. */
struct zr_vlen_item {
    zarr_vlen item;
    uint8_t optional[16]; /* what optional types have behind it, a byte each */
};
zarr_status zr_vlen_fill(const struct zr_work *w, const struct zr_target *t,
                         struct zr_vlen_item *fill, zarr_error *err);
/* True when the target is the whole chunk and the view holds it in exactly the program's
 * layout; then *at is the place. */
bool zr_target_direct(const struct zr_io *io, const struct zr_program *p,
                      const struct zr_target *t, zarr_mem *at);
/* One segment of a data wave: fetch, decode, scatter. fetched: handle NULL, or the
 * segment's bytes got before. */
zarr_status zr_segment_read(const struct zr_work *w, const struct zr_segment *segment,
                            const zarr_mem *fetched, zarr_error *err);
/* The encoded bytes of a segment, in a scratch block or where they are; NOT_FOUND:
 * missing.
 */
zarr_status zr_segment_fetch(const struct zr_work *w, const struct zr_segment *segment,
                             zarr_mem *out, zarr_error *err);
/* The item is missing: the fill value, or NOT_FOUND where the caller wants that. */
zarr_status zr_item_fill(const struct zr_work *w, const struct zr_item *item,
                         zarr_error *err);
/* A whole wave in lock step, stage by stage, for programs with an implementation that
 * wants batches. fetched: by segment, handle NULL where a segment was not got in advance.
 */
bool zr_wants_lockstep(const struct zr_program *p); /* NULL: no */
zarr_status zr_lockstep_exec(const struct zr_io *io, struct zarr_request *rq,
                             struct zr_wave *wave, const zarr_mem *fetched,
                             zarr_error *err);
/* Runs got for a whole wave at once, not one by one by the workers (prefetch.c). */
struct zr_prefetch {
    zarr_store_op *op;
    zarr_store_op **ptr;
    zarr_mem *mem, *block; /* by segment: what was got, and the pool's block it lies in */
    uint32_t *segment;     /* op -> segment */
    uint32_t n;
    atomic_uint left;
    struct zr_event all;
};
bool zr_wants_batches(const struct zr_io *io, const struct zr_program *p);
/* What a wave that is got at once has in memory: encoded bytes of all its segments, and
 * blocks of elements: of a chunk a worker, or in lock step of all chunks, in and out. */
uint64_t zr_prefetch_budget(const struct zarr_request *rq, const struct zr_wave *w,
                            bool lockstep);
zarr_status zr_prefetch_run(const struct zr_io *io, struct zarr_request *rq,
                            struct zr_wave *w, struct zr_prefetch *p, zarr_error *err);
void zr_prefetch_end(const struct zr_io *io, const struct zr_wave *w,
                     struct zr_prefetch *p); /* also after a failure */
/* What a target needs of a chunk, as ranges (ranges.c): outer dimensions < split index by
 * index, the others as one span. */
struct zr_ranges {
    int32_t ndim, split;
    uint64_t lo[ZARR_MAX_RANK],
        n[ZARR_MAX_RANK]; /* n: extent for dims >= split, count for dims < split */
    int64_t step[ZARR_MAX_RANK];
    uint64_t stride[ZARR_MAX_RANK];
    uint64_t n_reads, read_bytes;
};
/* Chooses where to stop reading index by index and to read one span instead; `each`: what
 * one more range costs, in bytes. Returns the cost, UINT64_MAX: too much for 64 bits. The
 * target is arithmetic. */
uint64_t zr_ranges_choose(const struct zr_program *p, const struct zr_target *t,
                          uint64_t each, struct zr_ranges *s);
/* Offset of the range at[], which goes on to the next; begin with zeros. */
uint64_t zr_ranges_next(const struct zr_ranges *s, uint64_t *at);
/* Decodes what an item needs into its places in a block of scratch, *out, if the program
 * is one codec that can decode in part and it pays: *done. */
zarr_status zr_chunk_decode_partial(const struct zr_work *w, const struct zr_program *p,
                                    const struct zr_item *item, const zarr_mem *encoded,
                                    zarr_mem *out, bool *done, zarr_error *err);
/* A large uncompressed chunk in slabs of rows (slabs.c). n 0 after open: not this way. */
struct zr_slabs {
    struct zr_store_pin pin;
    const struct zr_segment *segment;
    int32_t dim; /* stored dimension that is cut */
    uint64_t n, rows, row_bytes;
    bool direct; /* from the store into place */
    zarr_mem at;
};
bool zr_slabs_fit(const struct zr_io *io, const struct zr_segment *segment);
zarr_status zr_slabs_open(struct zr_slabs *s, const struct zr_io *io,
                          const struct zr_segment *segment, zarr_error *err);
zarr_status zr_slabs_one(const struct zr_work *w, struct zr_slabs *s, uint64_t i,
                         zarr_error *err);
void zr_slabs_close(struct zr_slabs *s); /* also after a failed open */
/* Short cuts of a segment on this thread; *done stays false where one does not fit: in
 * slabs; stored elements straight into the view; the wanted ranges only. */
zarr_status zr_slabs_read(const struct zr_work *w, const struct zr_segment *segment,
                          bool *done, zarr_error *err);
zarr_status zr_raw_direct(const struct zr_work *w, const struct zr_segment *segment,
                          bool *done, zarr_error *err);
zarr_status zr_raw_ranges(const struct zr_work *w, const struct zr_segment *segment,
                          bool *done, zarr_error *err);
/* Counts an item that is in its place. */
void zr_item_count(const struct zr_work *w, const struct zr_item *item, bool direct);
/* The end of an item: its elements are in block (direct: already in place). */
zarr_status zr_item_finish(const struct zr_work *w, const struct zr_segment *segment,
                           const struct zr_item *item, const zarr_mem *block, bool direct,
                           zarr_error *err);
/* Prefixes an error with the address of an item. */
zarr_status zr_item_prefix(const struct zr_segment *segment, const struct zr_item *item,
                           zarr_status st, zarr_error *err);
/* Opens one shard of an OPEN wave: fills o->shard. */
zarr_status zr_open_exec(const struct zr_work *w, struct zr_open *o, zarr_error *err);
/* Decodes and checks an encoded index. value_bytes: length of the shard's value,
 * UINT64_MAX: unknown. */
zarr_status zr_index_parse(const struct zr_work *w, const struct zr_level *lv,
                           const zarr_mem *encoded, uint64_t value_bytes,
                           struct zr_shard_index **out, zarr_error *err);
/* Parses the index of a shard value held in host memory. */
zarr_status zr_index_from_value(const struct zr_work *w, const struct zr_level *lv,
                                const zarr_mem *value, struct zr_shard_index **out,
                                zarr_error *err);
/* Store verb helper: counts it and runs it. */
zarr_status zr_store_op_run(const struct zr_work *w, zarr_store_op *op, zarr_error *err);

/* All units of a request, several at once (waves_write.c). */
zarr_status zr_waves_write(void *self, zarr_request *rq, const zarr_pipeline_steps *steps,
                           zarr_error *err);
/* Writes one unit (outer chunk): threads may be 1. */
zarr_status zr_unit_write(const struct zr_work *w, const struct zr_projection *proj,
                          uint32_t threads, zarr_error *err);
/* What a lost attempt did to chunks did not happen. */
void zr_forget_chunks(zarr_stats *now, const zarr_stats *before);
/* Encodes one leaf chunk. */
struct zr_leaf_write {
    const struct zr_level *level;
    const struct zr_projection *proj;
    const struct zr_level *missing; /* whose fill it has where there is no old; NULL: its
                                       own level's */
    zarr_mem old;  /* its former encoded bytes; handle NULL: none. What cannot be decoded
                      is as none where proj->whole. */
    zarr_mem room; /* zr_leaf_room()'s, or host where that is what encoding yields */
    /* for its elements, and for a copy of them on the host; handle NULL: scratch */
    zarr_mem block, host;
    /* out: in room, or the caller's own memory when that can be stored as it is */
    zarr_mem out;
    bool empty;  /* out: equal to its level's fill, and such chunks are not stored */
    bool filled; /* out: the same, of the array's fill value */
};
zarr_status zr_leaf_encode(const struct zr_work *w, struct zr_leaf_write *lw,
                           zarr_error *err);
/* Its first half: the elements as they are stored, where the CPU cannot read them a copy
 * for it in *host, and lw->empty. */
zarr_status zr_leaf_prepare(const struct zr_work *w, struct zr_leaf_write *lw,
                            zarr_mem *elements, zarr_mem *host, zarr_error *err);
/* n parts of a pool block, which *slab is given back for; *step bytes each, which becomes
 * the distance between them: aligned. */
zarr_status zr_take_slices(const struct zr_io *io, int32_t device, uint64_t *step,
                           uint64_t n, zarr_mem *slab, zarr_error *err);
/* The same of n leaves of one level together, stage by stage, for programs with an
 * implementation that wants batches; all have room. err->item is the one that failed. */
zarr_status zr_leaves_encode(const struct zr_work *w, struct zr_leaf_write *lw,
                             uint32_t n, uint32_t threads, zarr_error *err);
/* Writes those of n units that such a program encodes and that need no former value:
 * done[i]. */
zarr_status zr_units_lockstep(const struct zr_io *io, struct zarr_request *rq,
                              const struct zr_projection *proj, uint32_t n, bool *done,
                              zarr_error *err);
/* Scratch for what encoding a chunk yields that is an object of its own, in the memory
 * that its program ends in; nothing where buffers grow. */
zarr_status zr_leaf_room(const struct zr_work *w, const struct zr_level *lv,
                         zarr_mem *out, zarr_error *err);
/* A new value of one shard, with the codecs around it. */
struct zr_shard_write {
    uint32_t level;
    const struct zr_level *lv;      /* of this very shard */
    const struct zr_level *missing; /* whose fill it has where there is no old */
    const struct zr_projection *proj;
    const uint64_t *clip; /* extent of valid elements; NULL: all */
    /* former stored bytes; handle NULL: none. Ignored if they are damaged and proj->whole
     */
    zarr_mem old;
    uint32_t threads;
    /* out: the bytes to store, in a pool block that the caller gives back */
    zarr_mem out, block;
    bool empty;  /* out: need not be stored */
    bool filled; /* out: has nothing but the array's fill value */
};
zarr_status zr_shard_write(const struct zr_work *w, struct zr_shard_write *sw,
                           zarr_error *err);
/* Runs the codecs around a shard backward (encode) into a pool block, or forward
 * (decode). *block is the caller's to give back, the result its first bytes. */
zarr_status zr_body_encode(const struct zr_work *w, const struct zr_level *lv,
                           const zarr_mem *value, zarr_mem *block, zarr_mem *out,
                           zarr_error *err);
zarr_status zr_body_decode(const struct zr_work *w, const struct zr_level *lv,
                           const zarr_mem *encoded, zarr_mem *block, zarr_mem *out,
                           zarr_error *err);
/* Writes n_inner_all pairs through the index chain; dst has level->index_bytes. */
zarr_status zr_index_encode(const struct zr_work *w, const struct zr_level *lv,
                            uint64_t *pairs, const zarr_mem *dst, zarr_error *err);

/* ---- steps for pipelines of plug-ins (steps.c, steps_write.c) ------------------ */

struct zarr_pipeline_worker {
    struct zr_work w;
    struct zr_io
        *plain; /* a copy without short cuts, owned; NULL: w.io is the request's */
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
