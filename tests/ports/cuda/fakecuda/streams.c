/*
 * fakecuda/streams.c - streams whose work is late, events and copies. Everything
 * runs on the thread that waits, so a test is the same each time.
 */
#include "fakecuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct CUstream_st {
    struct CUstream_st *next;
    CUcontext context;
    struct work *first, **last;
    uint64_t queued, done; /* pieces of work */
    int capturing, destroyed;
    int spoiled; /* the graph */
};
struct CUevent_st {
    struct CUevent_st *next;
    CUcontext context;
    CUstream stream; /* NULL: never recorded */
    uint64_t target;
};

static CUstream streams, defaults[DEVICES_MAX]; /* never freed: events point to them */
static CUevent events;                          /* also those of a lost device */

/* ---- order -------------------- */

static CUstream stream_new(CUcontext c)
{
    CUstream s = calloc(1, sizeof *s);

    if (!s)
        fake_fault("no memory");
    s->context = c;
    s->last = &s->first;
    s->next = streams;
    streams = s;
    return s;
}

CUstream fake_stream(CUstream s)
{
    const uintptr_t number = (uintptr_t)s;

    if (number <= 2) { /* both default streams are one here */
        CUcontext c = fake_current();

        if (!c)
            return NULL;
        if (!defaults[c->number])
            defaults[c->number] = stream_new(c);
        return defaults[c->number];
    }
    for (CUstream k = streams; k; k = k->next)
        if (k == s && !k->destroyed)
            return s;
    return NULL;
}

CUcontext fake_stream_context(CUstream s)
{
    CUstream k = fake_stream(s);

    return k ? k->context : NULL;
}

static void run_until(CUstream s, uint64_t target)
{
    while (s->first && s->done < target) {
        struct work *w = s->first;

        s->first = w->next;
        if (!s->first)
            s->last = &s->first;
        s->done++;
        w->run(w);
        if (w->drop)
            w->drop(w);
        free(w);
    }
}

void fake_drain(CUstream s)
{
    if (s) {
        run_until(s, s->queued);
        return;
    }
    for (s = streams; s; s = s->next)
        run_until(s, s->queued);
}

/* True now and then. */
static int chance(void)
{
    static uint64_t x;

    if (x == 0)
        x = fake_setting("FAKECUDA_SEED", 1) * UINT64_C(0x9E3779B97F4A7C15);
    if (x == 0)
        return 0;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return x % 8 == 0;
}

void fake_queue(CUstream s, struct work *w)
{
    w->next = NULL;
    *s->last = w;
    s->last = &w->next;
    s->queued++;
    if (chance())
        run_until(s, s->queued);
}

/* ---- work of other libraries -------------------- */

struct guest {
    struct work work;
    void (*run)(void *arg);
    void *arg;
};

static void guest_run(struct work *w)
{
    struct guest *g = (struct guest *)w;

    g->run(g->arg);
}

void fakecuda_queue(CUstream s, void (*run)(void *arg), void *arg)
{
    struct guest *g = calloc(1, sizeof *g);

    fake_lock();
    if (!g || !fake_stream(s))
        fake_fault("a library uses no live stream");
    g->work.run = guest_run;
    g->run = run;
    g->arg = arg;
    fake_queue(fake_stream(s), &g->work);
    fake_unlock();
}

void *fakecuda_memory(CUdeviceptr p, size_t bytes, CUstream s)
{
    return fake_device(p, bytes, fake_stream(s));
}

void *fakecuda_memory_now(CUdeviceptr p, size_t bytes)
{
    void *at;

    fake_lock();
    at = fake_device(p, bytes, NULL);
    fake_unlock();
    return at;
}

/* ---- copies -------------------- */

struct copy {
    struct work work;
    CUdeviceptr dst, src;
    size_t bytes;
    CUstream stream;
    int value; /* of a fill; below 0: a copy */
};

static void *place_now(CUdeviceptr p, size_t bytes, CUstream s)
{
    void *d;

    if (!fake_is_device(p))
        return (void *)(uintptr_t)p; /* NOLINT(performance-no-int-to-ptr) */
    d = fake_device(p, bytes, s);
    if (!d)
        fake_fault("memory was freed while a stream had work that uses it");
    return d;
}

static void copy_run(struct work *w)
{
    const struct copy *c = (struct copy *)w;
    void *dst = place_now(c->dst, c->bytes, c->stream);

    if (c->value >= 0)
        memset(dst, c->value, c->bytes);
    else
        memmove(dst, place_now(c->src, c->bytes, c->stream), c->bytes);
}

static CUresult copy_queue(CUdeviceptr dst, CUdeviceptr src, size_t bytes, int value,
                           CUstream of)
{
    CUstream s = fake_stream(of);
    struct copy *c;
    const int late = (fake_is_device(dst) || fake_is_pinned(dst, bytes)) &&
                     (value >= 0 || fake_is_device(src) || fake_is_pinned(src, bytes));

    if (!s)
        return CUDA_ERROR_INVALID_VALUE;
    if ((fake_is_device(dst) && !fake_device(dst, bytes, s)) ||
        (value < 0 && fake_is_device(src) && !fake_device(src, bytes, s)))
        return CUDA_ERROR_INVALID_VALUE;
    c = calloc(1, sizeof *c);
    if (!c)
        fake_fault("no memory");
    *c = (struct copy){.work = {.run = copy_run},
                       .dst = dst,
                       .src = src,
                       .bytes = bytes,
                       .stream = s,
                       .value = value};
    fake_queue(s, &c->work);
    if (!late) /* pageable memory: the driver waits */
        fake_drain(s);
    return CUDA_SUCCESS;
}

CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream s)
{
    FAKE_CALL("cuMemcpyAsync", s, copy_queue(dst, src, bytes, -1, s));
}

CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from,
                           size_t bytes, CUstream s)
{
    FAKE_CALL("cuMemcpyPeerAsync", s,
              to && from ? copy_queue(dst, src, bytes, -1, s) : CUDA_ERROR_INVALID_VALUE);
}

CUresult cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t n, CUstream s)
{
    FAKE_CALL("cuMemsetD8Async", s,
              fake_is_device(dst) ? copy_queue(dst, 0, n, value, s)
                                  : CUDA_ERROR_INVALID_VALUE);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t n, CUstream s)
{
    return cuMemcpyAsync(to, (CUdeviceptr)(uintptr_t)from, n, s);
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t n, CUstream s)
{
    return cuMemcpyAsync((CUdeviceptr)(uintptr_t)to, from, n, s);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s)
{
    return cuMemcpyAsync(to, from, n, s);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t n)
{
    const CUresult rc = cuMemcpyHtoDAsync_v2(to, from, n, NULL);

    return rc == CUDA_SUCCESS ? cuStreamSynchronize(NULL) : rc;
}

CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t n)
{
    const CUresult rc = cuMemcpyDtoHAsync_v2(to, from, n, NULL);

    return rc == CUDA_SUCCESS ? cuStreamSynchronize(NULL) : rc;
}

/* ---- streams -------------------- */

static CUresult stream_open(CUstream *out)
{
    *out = stream_new(fake_current());
    return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream *out, unsigned flags)
{
    (void)flags;
    FAKE_CALL("cuStreamCreate", NULL, stream_open(out));
}

static CUresult stream_close(CUstream s)
{
    if (!fake_stream(s))
        fake_fault("a stream is destroyed twice");
    fake_drain(s);
    s->destroyed = 1;
    return CUDA_SUCCESS;
}

CUresult cuStreamDestroy_v2(CUstream s)
{
    FAKE_CALL("cuStreamDestroy", s, stream_close(s));
}

static CUresult stream_wait(CUstream of)
{
    CUstream s = fake_stream(of);

    if (!s)
        return CUDA_ERROR_INVALID_VALUE;
    if (s->capturing || fake_unsafe())
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    fake_drain(s);
    fake_settled(s);
    return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream s)
{
    FAKE_CALL("cuStreamSynchronize", s, stream_wait(s));
}

CUresult cuStreamQuery(CUstream s)
{
    FAKE_CALL(
        "cuStreamQuery", s,
        fake_stream(s) && fake_stream(s)->first ? 600 /* not ready */ : CUDA_SUCCESS);
}

int fake_spoil_captures(void)
{
    int found = 0;

    for (CUstream s = streams; s; s = s->next) {
        s->spoiled |= s->capturing;
        found |= s->capturing;
    }
    return found;
}

static CUresult capture(CUstream of, int begin)
{
    CUstream s = fake_stream(of);

    if (!s || s->capturing == begin)
        return CUDA_ERROR_INVALID_VALUE;
    s->capturing = begin;
    if (begin)
        s->spoiled = 0;
    return s->spoiled ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture_v2(CUstream s, int mode)
{
    (void)mode;
    FAKE_CALL("cuStreamBeginCapture", s, capture(s, 1));
}

CUresult cuStreamEndCapture(CUstream s, void **graph)
{
    *graph = NULL;
    FAKE_CALL("cuStreamEndCapture", s, capture(s, 0));
}

static CUresult is_capturing(CUstream of, CUstreamCaptureStatus *status)
{
    CUstream s = fake_stream(of);

    if (!s)
        return CUDA_ERROR_INVALID_VALUE;
    *status = s->capturing;
    return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream s, CUstreamCaptureStatus *status)
{
    FAKE_CALL("cuStreamIsCapturing", s, is_capturing(s, status));
}

static CUresult stream_context(CUstream s, CUcontext *out)
{
    *out = fake_stream_context(s);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuStreamGetCtx(CUstream s, CUcontext *out)
{
    FAKE_CALL("cuStreamGetCtx", s, stream_context(s, out));
}

/* ---- events -------------------- */

struct wait {
    struct work work;
    CUstream stream;
    uint64_t target;
};

static void wait_run(struct work *w)
{
    const struct wait *e = (struct wait *)w;

    run_until(e->stream, e->target);
}

static CUresult event_open(CUevent *out)
{
    *out = calloc(1, sizeof **out);
    if (!*out)
        fake_fault("no memory");
    (*out)->context = fake_current();
    (*out)->next = events;
    events = *out;
    return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent *out, unsigned flags)
{
    (void)flags;
    FAKE_CALL("cuEventCreate", NULL, event_open(out));
}

static CUresult event_record(CUevent e, CUstream of)
{
    CUstream s = fake_stream(of);

    if (!s || s->context != e->context)
        return 400; /* an invalid handle */
    if (s->capturing)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    e->stream = s;
    e->target = s->queued;
    return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent e, CUstream s)
{
    FAKE_CALL("cuEventRecord", s, event_record(e, s));
}

static CUresult event_wait(CUstream of, CUevent e)
{
    CUstream s = fake_stream(of);
    struct wait *w;

    if (!s)
        return CUDA_ERROR_INVALID_VALUE;
    if (!e->stream)
        return CUDA_SUCCESS;
    w = calloc(1, sizeof *w);
    if (!w)
        fake_fault("no memory");
    *w = (struct wait){
        .work = {.run = wait_run}, .stream = e->stream, .target = e->target};
    fake_queue(s, &w->work);
    return CUDA_SUCCESS;
}

CUresult cuStreamWaitEvent(CUstream s, CUevent e, unsigned flags)
{
    (void)flags;
    FAKE_CALL("cuStreamWaitEvent", s, event_wait(s, e));
}

/* Work goes on by itself now and then. */
CUresult cuEventQuery(CUevent e)
{
    CUresult rc = CUDA_ERROR_NOT_READY;

    fake_lock();
    if (!e->stream || e->stream->done >= e->target)
        rc = fake_call("cuEventQuery", NULL);
    else if (chance())
        run_until(e->stream, e->stream->done + 1);
    fake_unlock();
    return rc;
}

static CUresult event_finish(CUevent e)
{
    if (e->stream)
        run_until(e->stream, e->target);
    return CUDA_SUCCESS;
}

CUresult cuEventSynchronize(CUevent e)
{
    FAKE_CALL("cuEventSynchronize", e->stream, event_finish(e));
}

static CUresult event_close(CUevent e)
{
    CUevent *at = &events;

    while (*at && *at != e)
        at = &(*at)->next;
    if (!*at)
        fake_fault("an event is destroyed twice");
    *at = e->next;
    free(e);
    return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent e)
{
    FAKE_CALL("cuEventDestroy", NULL, event_close(e));
}

/* No time goes by here. */
CUresult cuEventElapsedTime(float *ms, CUevent from, CUevent to)
{
    *ms = 1;
    return from && to ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
