/*
 * pipe/pipe_int.h - what the files of the pipelines share.
 */
#ifndef ZR_PIPE_INT_H
#define ZR_PIPE_INT_H

#include "pipe/chunk/chunk.h"
#include "pipe/pipe.h"
#include "pipe/read/read.h"
#include "pipe/request/request.h"
#include "pipe/write/write.h"

/* Whether the caller that submits a read should try it (ZARR_IO_AT_ONCE). */
bool zr_attempt_is_worth(const struct zr_io *io);
/* Sets chunks_total of a read. An attempt fails here if there are too many chunks. */
zarr_status zr_count_chunks(struct zarr_request *rq, const struct zr_plan *plan,
                            zarr_error *err);
/* Fails if the decoded bytes or the shard indexes of a wave are too large for an attempt.
 */
zarr_status zr_attempt_check(const struct zr_wave *w, zarr_error *err);
/* Carries out rq->io on this thread. */
zarr_status zr_request_run(struct zarr_request *rq, zarr_error *err);
/* Writes all units of a request, several at once (waves_write.c). */
zarr_status zr_waves_write(void *self, zarr_request *rq, const zarr_pipeline_steps *steps,
                           zarr_error *err);

/* ---- steps for pipelines of plug-ins (steps.c, steps_write.c) ------------------ */

struct zarr_pipeline_worker {
    struct zr_work w;
    struct zr_io
        *plain; /* an owned copy without short cuts; NULL: w.io is the request's */
};
zarr_status zr_step_blocks_open(zarr_pipeline_blocks **out, zarr_request *rq,
                                zarr_error *err);
void zr_step_blocks_close(zarr_pipeline_blocks *units);
zarr_status zr_step_blocks_next(zarr_pipeline_blocks *units, uint32_t most, uint32_t *n,
                                zarr_error *err);
void zr_step_block_get(const zarr_pipeline_blocks *units, uint32_t i,
                       zarr_pipeline_block *out);
zarr_status zr_step_write(zarr_pipeline_worker *worker, const zarr_pipeline_blocks *units,
                          uint32_t i, uint32_t threads, zarr_error *err);
zarr_status zr_step_encode(zarr_pipeline_worker *worker,
                           const zarr_pipeline_blocks *units, uint32_t i,
                           zarr_memory *out, int *empty, zarr_error *err);
zarr_status zr_step_put(zarr_pipeline_worker *worker, const zarr_pipeline_blocks *units,
                        uint32_t i, const zarr_memory *bytes, zarr_error *err);

#endif
