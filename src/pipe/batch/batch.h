/*
 * pipe/batch/batch.h - the door of batches: many chunks that go through each stage
 * together, on a device or by an implementation that takes batches. They are a wave of a
 * read (decode.c), or leaves to write (encode.c). Chunks of other shapes have other
 * programs; all have one flow, which is the work of a wave on a device.
 * Thread class: one wave or batch; helpers take worker contexts.
 */
#ifndef ZR_PIPE_BATCH_H
#define ZR_PIPE_BATCH_H

#include "pipe/chunk/chunk.h"

/* ---- work on a device (flow.c) ------------------------------------------------ */

/* A call of a codec whose work is on the stream. */
struct zr_flow_call {
    struct zr_flow_call *next;
    const struct zr_stage *stage;
    struct zr_stage_call call;
    void *of;              /* the chunks of one program, */
    const uint32_t *owner; /* and which of them each job belongs to */
};
struct zr_flow_held {
    struct zr_flow_held *next;
    zarr_memory block;
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
    struct zr_flow_held *held;
    struct zr_flow_call *first, **last;
    uint64_t n_waits;
    uint64_t n_pending; /* calls of codecs that left work on the stream, ever */
    void *failed; /* the `of` of what failed, once the call or its caller says; or NULL */
    /* Set after zr_flow_begin(), or NULL: called for each job that its implementation did
     * not take (zr_stage_declines()), or that failed after another one was declined. The
     * caller then does the chunk `owner` of `of` again, alone. s: the stage that declined
     * it; NULL: its input may have been what another stage declined */
    void (*declined)(void *of, uint32_t owner, const struct zr_stage *s);
    bool any_declined; /* out: it was called */
};
zarr_status zr_flow_begin(struct zr_flow *f, const struct zr_work *w, int32_t device,
                          struct zr_arena *arena, zarr_error *err);
/* Waits for what is left, and gives back everything. */
void zr_flow_end(struct zr_flow *f);
zarr_status zr_flow_worker(struct zr_flow *f, zarr_error *err);
/* Waits for the stream, and asks each codec how its call went. After a failure as
 * above. */
zarr_status zr_flow_wait(struct zr_flow *f, zarr_error *err);

/* ---- decoding (decode.c, lists.c) --------------------------------------- */

struct zr_batch_item {
    /* where it comes from and goes to; NULL: its elements go to `into` */
    const struct zr_segment *segment;
    const struct zr_item *item;
    zarr_memory into;    /* handle NULL: to the tensor */
    zarr_memory encoded; /* as it was fetched */
    zarr_memory cur, next;
    bool direct;   /* `next` is the caller's memory, or `into` */
    uint64_t skip; /* as in struct zr_coding */
    /* an implementation declined it: it takes no part any more, and is read alone at the
     * end, from `encoded` */
    bool again;
};

struct zr_batch_kept {
    struct zr_batch_kept *next;
    zarr_memory block;
};

/* The chunks of one program. */
struct zr_batch {
    const struct zr_io *io;
    struct zarr_request *rq;
    struct zr_wave *wave; /* NULL: there are only items */
    struct zr_arena *arena;
    const struct zr_level *level; /* of the wave's segments; NULL as `wave` */
    const struct zr_program *p;
    struct zr_batch_item *item;
    uint32_t n;
    struct zr_flow *flow;
    /* flow->n_waits + 1 when these last queued work, or a call of a codec that left some;
     * 0: never */
    uint64_t queued, called;
    const struct zr_stage *stage; /* of the current loop */
    zarr_memory slab[2];          /* pool blocks for the outputs of stages, in turn */
    struct zr_batch_kept *kept;   /* of these, with chunks that no stage has read yet */
    zarr_memory aligned;          /* for inputs that a decoder wants elsewhere */
    struct zr_program end; /* `p`, as if its elements were in the tensor's memory */
    bool *fills; /* missing items are still to be filled in a list; NULL: they are not */
};

/* Takes all items through all stages, and their elements to their places. */
zarr_status zr_batch_run(struct zr_batch *l, uint32_t n, zarr_error *err);
/* A parallel loop over anything of a wave. */
zarr_status zr_batch_parallel(const struct zr_io *io, struct zarr_request *rq, uint64_t n,
                              zr_work_fn fn, void *arg, zarr_error *err);
/* For zr_flow.declined; of: the struct zr_batch. */
void zr_batch_note_declined(void *of, uint32_t owner, const struct zr_stage *s);
/* Gives the blocks back, once no queued work uses them. */
void zr_batch_end(struct zr_batch *l);
/* Fills the elements of missing items on the device, if *l->fills, which it sets to
 * false. */
zarr_status zr_batch_fill(struct zr_batch *l, zarr_error *err);

/* ---- encoding (encode.c, gather.c) --------------------------------------- */

/* Takes n slices of one pool block, which the caller gives back as *slab. *step: bytes of
 * each; on return the aligned distance between them. Host memory for a tensor on a device
 * is pinned if the budget has room. */
zarr_status zr_take_slices(const struct zr_io *io, int32_t device, uint64_t *step,
                           uint64_t n, zarr_memory *slab, zarr_error *err);
/* The same with slices that are near each other: for chunks that a list copies next, to
 * places without an alignment. The bytes between slices are copied, too. */
enum {
    ZR_NEAR_ALIGNMENT = 16 /* of vectors; decoders write faster */
};
zarr_status zr_take_near_slices(const struct zr_io *io, int32_t device, uint64_t *step,
                                uint64_t n, zarr_memory *slab, zarr_error *err);
/*
 * How leaves get their room only before their last stage. Unless `take` sets a room, it
 * is set before. in_place: `out.bytes` of each leaf that is not empty is the length that
 * it will have, and the last stage copies them to host memory; so rooms can be where the
 * bytes belong. Else each has room for encoded_bound bytes.
 */
struct zr_leaf_rooms {
    zarr_status (*take)(void *arg, bool in_place, zarr_error *err);
    void *arg;
};
/* Whether leaves of a level can get their room so late. */
bool zr_leaf_rooms_can_wait(const struct zr_io *io, const struct zr_level *lv);
/* Whether a leaf needs room: else its elements are stored as the caller has them. */
bool zr_leaf_needs_room(const struct zr_io *io, const struct zr_leaf_write *lw);
/* Whether leaves of a level are elements as a device has them, so that their length is
 * known before they come to the value of a shard, which is in host memory. */
bool zr_leaf_length_is_known(const struct zr_io *io, const struct zr_level *lv);
/* Whether leaves of two levels can be encoded together: their programs have the same
 * stages. */
bool zr_leaves_join(const struct zr_level *a, const struct zr_level *b);
/* Encodes n leaves together, stage by stage, for programs with an implementation that
 * takes batches and for elements that come from a device. Those of one level follow each
 * other, and levels can join. rooms NULL: all have room. On failure err->item is the leaf
 * that failed. */
zarr_status zr_leaves_encode(const struct zr_work *w, struct zr_leaf_write *lw,
                             uint32_t n, uint32_t threads,
                             const struct zr_leaf_rooms *rooms, zarr_error *err);
#endif
