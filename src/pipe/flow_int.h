/*
 * pipe/flow_int.h - the work of a wave on a device: its stream, lists of boxes, and waves
 * that go through their stages in lock step.
 */
#ifndef ZR_PIPE_FLOW_INT_H
#define ZR_PIPE_FLOW_INT_H

#include "pipe/work_int.h"

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
/* Waits for the stream, and asks each codec how its call went. After a failure as
 * above. */
zarr_status zr_flow_wait(struct zr_flow *f, zarr_error *err);

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

/* Carries out a whole wave in lock step: for programs with an implementation that takes
 * batches, and for elements that go to a device. fetched: by segment; handle NULL if a
 * segment was not fetched in advance. */
bool zr_goes_lockstep(const struct zr_io *io, const struct zr_program *p);
zarr_status zr_lockstep_exec(const struct zr_io *io, struct zarr_request *rq,
                             struct zr_wave *wave, const zarr_memory *fetched,
                             zarr_error *err);

#endif
