/*
 * pipe/serial.c - the pipeline `serial`: one chunk at a time on the caller's thread, each
 * decoded whole and copied; no decoding into the tensor, no ranges of uncompressed
 * chunks, no joined requests, no threads. Tests compare `waves` with it.
 * Thread class: solo.
 */
#include "pipe/pipe_int.h"

static zarr_status serial_wave(const struct zr_work *w, struct zr_plan *plan,
                               struct zr_wave *wave, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_opens_hold(w->rq, wave->open, wave->n_opens, err));
    for (uint32_t i = 0; i < wave->n_opens; i++)
        ZR_TRY(zr_parts_open(w, &wave->open[i], err));
    ZR_TRY(zr_plan_resume(plan, wave, err));
    for (uint32_t i = 0; i < wave->n_segments; i++) {
        w->worker->stats.waves++;
        ZR_TRY(zr_parts_read(w, &wave->segment[i], NULL, err));
    }
    zr_request_merge(w->rq, w->worker);
    zr_request_report(w->rq);
out:
    zr_opens_let_go(wave->open, wave->n_opens);
    return st;
}

static zarr_status serial_read(void *self, zarr_request *rq,
                               const zarr_pipeline_steps *steps, zarr_error *err)
{
    const struct zr_io *io = &rq->io;
    struct zr_io plain = *io;
    struct zr_work w = {.io = &plain, .rq = rq};
    struct zr_plan_args args;
    struct zr_plan *plan = NULL;
    struct zr_wave wave;
    zarr_status st = ZARR_OK;

    ZR_UNUSED(self, steps);
    plain.no_direct = true;
    zr_wave_init(&wave, io->engine->alloc);
    zr_serial_cut(io, &args);
    ZR_TRY(zr_worker_take(io->engine, &w.rq->cancel, &w.worker, err));
    ZR_TRY(zr_plan_open(&plan, &args, io->engine->alloc, err));
    do {
        ZR_TRY(zr_plan_next(plan, &wave, err));
        ZR_TRY(serial_wave(&w, plan, &wave, err));
    } while (wave.kind != ZR_WAVE_END && !zr_is_cancelled(&rq->cancel));
out:
    zr_wave_deinit(&wave);
    zr_plan_free(plan);
    if (w.worker)
        zr_request_merge(rq, w.worker);
    zr_worker_give(w.worker);
    return st;
}

static zarr_status serial_write(void *self, zarr_request *rq,
                                const zarr_pipeline_steps *steps, zarr_error *err)
{
    const struct zr_io *io = &rq->io;
    struct zr_io plain = *io;
    struct zr_work w = {.io = &plain, .rq = rq};
    struct zr_projector *p = NULL;
    struct zr_projection proj;
    zarr_selection *all = NULL;
    zarr_status st = ZARR_OK;

    ZR_UNUSED(self, steps);
    plain.no_direct = true;
    ZR_TRY(zr_worker_take(io->engine, &w.rq->cancel, &w.worker, err));
    ZR_TRY(zr_io_project(&p, io, &all, err));
    for (bool is_first = true;
         !zr_is_cancelled(&rq->cancel) && zr_next_unit(io, p, &proj); is_first = false) {
        if (!is_first)
            ZR_TRY(zr_request_check(rq, err));
        ZR_TRY(zr_unit_write(&w, &proj, 1, err));
        w.worker->stats.waves++;
        zr_request_merge(rq, w.worker);
        zr_request_report(rq);
    }
out:
    zr_project_free(p);
    zarr_selection_free(all);
    if (w.worker)
        zr_request_merge(rq, w.worker);
    zr_worker_give(w.worker);
    return st;
}

const zarr_pipeline_vtable zr_pipeline_serial = {.struct_size = sizeof zr_pipeline_serial,
                                                 .flags = ZARR_PIPELINE_PLAIN,
                                                 .name = "serial",
                                                 .read = serial_read,
                                                 .write = serial_write};
