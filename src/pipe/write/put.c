/*
 * pipe/write/put.c - stores the value of one unit, hands it to the caller, or keeps it to
 * be stored with others.
 * Thread class: on the worker context.
 */
#include "pipe/write/write_int.h"

/* Hands the unit to the caller of zarr_array_encode(). */
static zarr_status sink_unit(const struct zr_work *w, const uint64_t *chunk,
                             zarr_store_op *op, zarr_error *err)
{
    const bool put = op->verb == ZARR_STORE_PUT;

    op->status = w->io->sink(w->io->sink_arg, chunk, put ? &op->mem : NULL, err);
    op->done_bytes = op->status == ZARR_OK ? op->mem.bytes : 0;
    zr_worker_count(w->worker, op);
    return op->status;
}

zarr_status zr_put_unit(const struct zr_work *w, const uint64_t *chunk, zarr_store_op *op,
                        struct zr_later *later, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    if (w->io->sink)
        return sink_unit(w, chunk, op, err);
    if (later)
        return zr_put_later(w, op, later, err);
    zr_ask_put(w->rq, op);
    st = zr_store_op_run(w, op, err);
    if (st == ZARR_OK)
        st = zr_note_put(w->rq, op, err);
    return op->verb == ZARR_STORE_ERASE && st == ZARR_ERR_NOT_FOUND ? ZARR_OK : st;
}
