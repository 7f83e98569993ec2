/*
 * pipe/batch/batch_int.h - what the files of this room share.
 */
#ifndef ZR_PIPE_BATCH_INT_H
#define ZR_PIPE_BATCH_INT_H

#include "pipe/batch/batch.h"

/* Gives a pool block back once no queued work uses it. *block becomes empty. */
zarr_status zr_flow_hold(struct zr_flow *f, zarr_memory *block, zarr_error *err);
/* Jobs of chunks of one program, as in struct zr_flow_call. They live as long as the
 * arena. */
struct zr_flow_jobs {
    zarr_codec_job *job;
    void *of;
    const uint32_t *owner;
    uint32_t n;
};
/* Runs a batch of a stage on the flow's worker, on the stream if the implementation can.
 * After a failure f->failed has the chunks whose job failed, perhaps of a call before,
 * and err->item its owner there; UINT64_MAX if there is none. Jobs that are declined are
 * no failure. */
zarr_status zr_flow_run(struct zr_flow *f, const struct zr_stage *s,
                        const struct zr_flow_jobs *jobs, zarr_error *err);
/* Boxes of many chunks, copied in few calls. The flow has its worker. */
struct zr_box_list {
    struct zr_flow *flow;
    zarr_box *box;
    zarr_memory block; /* a pool block that has the boxes */
    uint32_t n;
    bool to_chunk;       /* from the view to chunks */
    const void *pattern; /* what the boxes are filled with; NULL: copies */
};
zarr_status zr_box_list_open(struct zr_box_list *l, struct zr_flow *flow, bool to_chunk,
                             zarr_error *err);
/* Adds the boxes of a target between the view and a block of elements. */
zarr_status zr_box_list_target(struct zr_box_list *l, const struct zr_program *p,
                               const struct zr_target *t, const zarr_memory *block,
                               zarr_error *err);
/* Adds the boxes of a target to be filled with the fill value of a level. */
zarr_status zr_box_list_fill(struct zr_box_list *l, const struct zr_level *lv,
                             const struct zr_target *t, zarr_error *err);
/* Adds a whole block of elements, to be filled as zr_fill_block() does. */
zarr_status zr_box_list_block(struct zr_box_list *l, const struct zr_level *lv,
                              const struct zr_program *p, const zarr_memory *block,
                              zarr_error *err);
/* Queues what was added. Before the end the list does so itself where it must. */
zarr_status zr_box_list_send(struct zr_box_list *l, zarr_error *err);
void zr_box_list_close(struct zr_box_list *l);

/* ---- chunks of n programs (decode.c) ------------------------------------- */

/* Decodes chunks of n programs into blocks of elements. Of l, `p`, `item` and `n` are
 * set, and of each item `into`, `encoded` and `cur` (the same). On failure err->item is
 * the chunk that failed, counted from the first of l. */
zarr_status zr_batch_blocks(const struct zr_work *w, struct zr_batch *l, uint32_t n,
                            struct zr_arena *arena, zarr_error *err);
/* Whether the last stage of a program can put the elements where they belong; then
 * it->next is the place. */
bool zr_batch_is_direct(const struct zr_batch *l, struct zr_batch_item *it,
                        const struct zr_program *p);
/* Notes that work of these chunks was queued. */
static inline void zr_batch_note_queued(struct zr_batch *l)
{
    l->queued = l->flow->n_waits + 1;
}
/* Waits for the work of these chunks, if some is queued: those of another program may
 * have waited for it. */
zarr_status zr_batch_wait(struct zr_batch *l, zarr_error *err);
/* Whether the codec after stage i needs each chunk at a boundary. */
bool zr_batch_next_is_aligned(const struct zr_batch *l, uint32_t i);
/* Gives back a slab once no work uses it, and takes one with room for n slices of *step
 * bytes, which is rounded up. */
zarr_status zr_batch_slab(struct zr_batch *l, int32_t device, uint64_t *step, uint64_t n,
                          zarr_memory *slab, zarr_error *err);
/* The segment of an item becomes the item of the error, as callers expect, and the item
 * gets into its text. It is one of l, or of the flow's call that failed. */
zarr_status zr_batch_name(struct zr_batch *l, zarr_status st, zarr_error *err);

/* Whether the implementation of stage k does not take an item. */
static inline bool zr_batch_skips(const struct zr_batch_item *it, uint32_t k)
{
    return k < ZR_CODING_SKIPS && (it->skip >> k & 1) != 0;
}
static inline void zr_batch_skip(struct zr_batch_item *it, uint32_t k)
{
    if (k < ZR_CODING_SKIPS)
        it->skip |= UINT64_C(1) << k;
}

/* ---- lists (lists.c), only with a device -------------------------------- */

/* Of the n programs whose stage i is a copy, copies what all items have to other memory,
 * or at ZR_BATCH_END elements to the device: to the caller's memory where a chunk fits it
 * and no stage follows, else to slices of the slab. Chunks that the next codec refuses
 * stay where they are. */
#define ZR_BATCH_END (UINT32_MAX - 1)
zarr_status zr_batch_copy(struct zr_batch *l, uint32_t n, uint32_t i, zarr_error *err);
/* Puts the elements of all items of n programs into the caller's memory. */
zarr_status zr_batch_scatter(struct zr_batch *l, uint32_t n, zarr_error *err);

/* ---- writing -------------------------------------------------------------------- */

struct zr_batch_leaf {
    struct zr_leaf_write *lw;
    zarr_memory elements; /* what encoding begins with */
    zarr_memory cur, next;
    uint64_t skip; /* as in struct zr_coding */
    bool again;    /* an implementation declined it: it is encoded alone at the end */
};

/* The leaves of one program. */
struct zr_batch_leaves {
    const struct zr_work *w;
    const struct zr_program *p;
    struct zr_leaf_write *lw;
    uint32_t n, threads;
    struct zr_batch_leaf *leaf; /* first all leaves, then those that are not empty */
    uint32_t n_left;
    struct zr_flow *flow;
    struct zr_arena *arena;
    const struct zr_stage *stage; /* of the current loop */
    zarr_memory block, host, slab[2];
    /* the call of the current stage whose lengths are not known yet */
    struct zr_flow_jobs batch;
    /* by leaf, what the comparison with the fill value says, once the flow has waited;
     * NULL: it said so already, or there was none */
    const uint8_t *equal, *filled;
    bool guesses; /* encoding begins before the answers are here */
};

/* Calls fn for n leaves in parallel. */
zarr_status zr_leaves_each(struct zr_batch_leaves *l, uint64_t n, zr_work_fn fn,
                           zarr_error *err);
bool zr_stage_takes_batches(const struct zr_stage *s);
/* Begins stage k of the program, counted as encoding goes, or does it. The second
 * function comes after a wait: only then the lengths of a batch are known. */
zarr_status zr_leaf_stage_begin(struct zr_batch_leaves *l, uint32_t k, zarr_error *err);
void zr_leaf_stage_end(struct zr_batch_leaves *l);
/* For zr_flow.declined; of: the struct zr_batch_leaves. */
void zr_leaf_note_declined(void *of, uint32_t owner, const struct zr_stage *s);
/* Encodes the leaves that were declined, each alone. */
zarr_status zr_leaves_again(struct zr_batch_leaves *l, zarr_error *err);
/* Whether zr_leaves_gather() does these leaves, whose elements are on a device. */
bool zr_leaves_are_gathered(const struct zr_batch_leaves *l);
/* Makes the elements of the leaves of n programs, in `cur`, and queues the comparison
 * with the fill value, or the copies for it. If that fails, err->item is one of the
 * leaves that begin with l->lw. */
zarr_status zr_leaves_gather(struct zr_batch_leaves *l, uint32_t n, zarr_error *err);
/* After a wait: compares what came to the host. */
zarr_status zr_leaves_compare(struct zr_batch_leaves *l, zarr_error *err);
/* Notes the answers, after a wait. */
void zr_leaves_note_answers(struct zr_batch_leaves *l);
/* Queues the copies of the current stage, from `cur` to `next`. */
zarr_status zr_leaves_copy(struct zr_batch_leaves *l, zarr_error *err);

#endif
