/*
 * array/io/stream_order.c - the application's stream (zarr_io_options.stream). At entry a
 * stream of the library is ordered after what is on the application's stream. The request
 * waits for it before it touches a tensor, whether it copies by lists, by single calls or
 * through the CPU. So the application may change or close its stream as soon as a call
 * that submits has returned. Thread class: plain functions.
 */
#include "array/io/io_int.h"

zarr_status zr_io_no_stream(const zarr_io_options *o, zarr_error *err)
{
    if (!o->stream)
        return ZARR_OK;
    return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                   "io options: a stream is given, but this call uses no memory of a "
                   "device");
}

zarr_status zr_io_order(struct zr_stream *out, zarr_context *ctx, int32_t device_type,
                        int32_t device_id, void *foreign, zarr_error *err)
{
    if (!foreign)
        return ZARR_OK;
    if (device_type == ZARR_DEVICE_CPU)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "io options: a stream is given, but the tensor is in host memory");
    ZR_CHECK(zr_stream_take(out, &ctx->engine.streams, &ctx->memory, device_type,
                            device_id, err));
    ZR_CHECK(zr_stream_order(out, foreign, err));
    out->queued = out->handle != NULL; /* else it has waited */
    return ZARR_OK;
}
