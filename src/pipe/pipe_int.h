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
/* Whether an attempt takes a request with so many chunks. It is asked before the first
 * wave, because to plan more may take milliseconds. */
bool zr_attempt_takes(uint64_t chunks);
/* Whether the decoded bytes and the shard indexes of a wave are small enough for an
 * attempt. */
bool zr_attempt_fits(const struct zr_wave *w);
/* Carries out rq->io on this thread. */
zarr_status zr_request_run(struct zarr_request *rq, zarr_error *err);
/* The blocks of one batch that `waves` writes, at most. */
uint64_t zr_units_most(const struct zr_io *io);
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
