/*
 * mem/stream.c - streams of work on a device. A stream remembers whether work was queued
 * since the last wait, so that a needless wait costs no call.
 * Thread class: one thread at a time uses a stream.
 */
#include "mem/mem_int.h"

zarr_status zr_stream_open(struct zr_stream *out, const struct zr_memory_registry *r,
                           int32_t device_type, int32_t device_id, zarr_error *err)
{
    const struct zr_backend *be = NULL;
    zarr_status st = ZARR_OK;

    *out = (struct zr_stream){0};
    ZR_TRY(zr_backend_find(r, device_type, &be, err));
    ZR_TRY(zr_backend_stream_open(be, device_id, &out->handle, err));
    out->be = be;
out:
    return st;
}

zarr_status zr_stream_handle(struct zr_stream *s, const struct zr_backend *be,
                             void **handle, zarr_error *err)
{
    *handle = NULL;
    if (!s || !s->be)
        return ZARR_OK;
    if (s->be != be || !s->handle)
        return zr_stream_sync(s, err);
    *handle = s->handle;
    s->queued = true; /* also if the call fails half-way */
    return ZARR_OK;
}

zarr_status zr_stream_sync(struct zr_stream *s, zarr_error *err)
{
    if (!s || !s->queued)
        return ZARR_OK;
    s->queued = false;
    return zr_backend_sync(s->be, s->handle, err);
}

zarr_status zr_stream_order(struct zr_stream *s, void *foreign, zarr_error *err)
{
    if (!s->be || !foreign)
        return ZARR_OK;
    return zr_backend_order(s->be, s->handle, foreign, err);
}

void zr_stream_close(struct zr_stream *s)
{
    if (!s || !s->be)
        return;
    (void)zr_stream_sync(s, NULL);
    zr_backend_stream_close(s->be, s->handle);
    *s = (struct zr_stream){0};
}
