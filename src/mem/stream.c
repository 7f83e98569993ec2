/*
 * mem/stream.c - streams of work on a device. A stream remembers whether work was queued
 * since the last wait, so that a needless wait costs no call. Streams that are given back
 * wait, idle, for the next wave. A forked child forgets those of its parent, whose driver
 * it does not have.
 * Thread class: one thread at a time uses a stream; the idle ones are shared.
 */
#include "mem/mem_int.h"

zarr_status zr_stream_open(struct zr_stream *out, const struct zr_memory_registry *r,
                           int32_t device_type, int32_t device_id, zarr_error *err)
{
    const struct zr_backend *be = NULL;

    *out = (struct zr_stream){0};
    ZR_CHECK(zr_backend_find(r, device_type, &be, err));
    ZR_CHECK(zr_backend_stream_open(be, device_id, &out->handle, err));
    out->be = be;
    out->device_id = device_id;
    out->fork_generation = zr_fork_generation();
    return ZARR_OK;
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
    zarr_status st;

    if (!s || !s->queued)
        return ZARR_OK;
    s->queued = false;
    st = zr_backend_sync(s->be, s->handle, err);
    s->failed |= st != ZARR_OK;
    return st;
}

zarr_status zr_stream_order(struct zr_stream *s, void *foreign, zarr_error *err)
{
    zarr_status st;

    if (!s->be || !foreign)
        return ZARR_OK;
    st = zr_backend_order(s->be, s->handle, foreign, err);
    s->failed |= st != ZARR_OK; /* the stream may wait for the foreign one */
    return st;
}

void zr_stream_close(struct zr_stream *s)
{
    if (!s || !s->be)
        return;
    (void)zr_stream_sync(s, NULL);
    zr_backend_stream_close(s->be, s->handle);
    *s = (struct zr_stream){0};
}

/* ---- idle streams ----------------------------------------------------------- */

void zr_streams_init(struct zr_streams *p)
{
    *p = (struct zr_streams){0};
    zr_mutex_init(&p->locked.mutex);
    p->fork = (struct zr_fork_hook){.mutex = &p->locked.mutex};
    zr_fork_hook_add(&p->fork);
}

void zr_streams_deinit(struct zr_streams *p)
{
    zr_streams_trim(p);
    zr_fork_hook_remove(&p->fork);
    zr_mutex_deinit(&p->locked.mutex);
}

static bool stream_is_of_parent(const struct zr_stream *s)
{
    return s->be && zr_has_forked(s->fork_generation);
}

void zr_streams_trim(struct zr_streams *p)
{
    bool more = true;

    while (more) {
        struct zr_stream s = {0};

        zr_mutex_lock(&p->locked.mutex);
        more = p->locked.n > 0;
        if (more)
            s = p->locked.idle[--p->locked.n];
        zr_mutex_unlock(&p->locked.mutex);
        if (!stream_is_of_parent(&s))
            zr_stream_close(&s); /* the backend is called without the lock */
    }
}

zarr_status zr_stream_take(struct zr_stream *out, struct zr_streams *from,
                           const struct zr_memory_registry *r, int32_t device_type,
                           int32_t device_id, zarr_error *err)
{
    *out = (struct zr_stream){0};
    zr_mutex_lock(&from->locked.mutex);
    for (uint32_t i = from->locked.n; i-- > 0 && !out->be;) {
        const struct zr_stream *s = &from->locked.idle[i];

        const bool fits = s->be->vt.device_type == device_type &&
                          s->device_id == device_id && !stream_is_of_parent(s);

        if (!fits && !stream_is_of_parent(s))
            continue;
        if (fits)
            *out = *s;
        from->locked.idle[i] = from->locked.idle[--from->locked.n];
    }
    zr_mutex_unlock(&from->locked.mutex);
    return out->be ? ZARR_OK : zr_stream_open(out, r, device_type, device_id, err);
}

void zr_stream_give(struct zr_streams *to, struct zr_stream *s)
{
    bool kept = false;

    if (stream_is_of_parent(s)) {
        *s = (struct zr_stream){0};
        return;
    }
    if (!s->be || !s->handle || zr_stream_sync(s, NULL) != ZARR_OK || s->failed) {
        zr_stream_close(s);
        return;
    }
    zr_mutex_lock(&to->locked.mutex);
    kept = to->locked.n < ZR_STREAMS_IDLE;
    if (kept)
        to->locked.idle[to->locked.n++] = *s;
    zr_mutex_unlock(&to->locked.mutex);
    if (kept)
        *s = (struct zr_stream){0};
    zr_stream_close(s);
}
