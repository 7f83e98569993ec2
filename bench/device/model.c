/* bench/device/model.c - see model.h. */
#include "model.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

struct model_rates model_rates = {.ratio = 2};
struct model_counters model_counters;

enum {
    UP,
    DOWN,
    COMPUTE,
    N_ENGINES
};
static struct {
    pthread_mutex_t mutex;
    double free_at[N_ENGINES];
} engines = {.mutex = PTHREAD_MUTEX_INITIALIZER};

struct stream {
    double due;
};

static const double launch_s = 5e-6; /* from one piece of work to the next */

double model_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void model_sleep(double due)
{
    const double left = due - model_now();
    struct timespec t;

    if (left <= 0)
        return;
    t.tv_sec = (time_t)left;
    t.tv_nsec = (long)(1e9 * (left - (double)t.tv_sec));
    nanosleep(&t, NULL);
}

/* The time of the CPU that a driver takes for a call. */
static void call_spends(void)
{
    const double end = model_now() + 1e-6 * model_rates.call_us;

    atomic_fetch_add(&model_counters.calls, 1);
    if (model_rates.call_us > 0)
        while (model_now() < end)
            ;
}

/* Queues work for an engine. Without a stream it is done on return. */
static void work(struct stream *s, int engine, double rate, uint64_t bytes)
{
    double begin = model_now(), end;

    if (rate <= 0)
        return;
    pthread_mutex_lock(&engines.mutex);
    if (s && s->due > begin)
        begin = s->due;
    if (engines.free_at[engine] > begin)
        begin = engines.free_at[engine];
    end = begin + launch_s + (double)bytes / (rate * 1e9);
    engines.free_at[engine] = end;
    if (s)
        s->due = end;
    pthread_mutex_unlock(&engines.mutex);
    if (!s)
        model_sleep(end);
}

/* ---- memory ------------------------------------------------------------------------ */

static zarr_status model_alloc(void *self, int32_t id, uint64_t bytes, zarr_memory *out,
                               zarr_error *err)
{
    const uint64_t room = bytes > 0 ? bytes : 1;
    uint64_t live, peak;
    void *p =
        mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    (void)self;
    if (p == MAP_FAILED) {
        if (err)
            err->code = ZARR_ERR_NO_MEMORY;
        return ZARR_ERR_NO_MEMORY;
    }
    *out = (zarr_memory){
        .device_type = ZARR_DEVICE_EXT, .device_id = id, .handle = p, .bytes = bytes};
    atomic_fetch_add(&model_counters.allocs, 1);
    live = atomic_fetch_add(&model_counters.live_bytes, bytes) + bytes;
    peak = atomic_load(&model_counters.peak_bytes);
    while (live > peak &&
           !atomic_compare_exchange_weak(&model_counters.peak_bytes, &peak, live))
        ;
    return ZARR_OK;
}

static void model_free(void *self, zarr_memory *m)
{
    (void)self;
    if (m->handle) {
        atomic_fetch_sub(&model_counters.live_bytes, m->bytes);
        munmap(m->handle, m->bytes > 0 ? m->bytes : 1);
    }
    *m = (zarr_memory){0};
}

static zarr_status host_new(void *self, int32_t id, uint64_t bytes, zarr_memory *out,
                            zarr_error *err)
{
    void *p = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096 + 4096);

    (void)self;
    if (!p) {
        if (err)
            err->code = ZARR_ERR_NO_MEMORY;
        return ZARR_ERR_NO_MEMORY;
    }
    *out = (zarr_memory){
        .device_type = ZARR_DEVICE_CPU, .device_id = id, .handle = p, .bytes = bytes};
    return ZARR_OK;
}

static void host_end(void *self, zarr_memory *m)
{
    (void)self;
    free(m->handle);
    *m = (zarr_memory){0};
}

/* A copy of one run or box, or of several. */
static void copy_work(void *stream, const zarr_memory *dst, const zarr_memory *src,
                      uint64_t bytes)
{
    if (src->device_type == ZARR_DEVICE_CPU)
        work(stream, UP, model_rates.copy, bytes);
    else if (dst->device_type == ZARR_DEVICE_CPU)
        work(stream, DOWN, model_rates.copy, bytes);
    else
        work(stream, COMPUTE, model_rates.inside, bytes);
}

static uint64_t box_bytes(const zarr_box *b)
{
    uint64_t bytes = b->item_bytes;

    for (int32_t d = 0; d < b->ndim; d++)
        bytes *= b->shape[d];
    return bytes;
}

static zarr_status copy_list(void *self, const zarr_memory *dst, const zarr_memory *src,
                             uint64_t n, void *stream, zarr_error *err)
{
    uint64_t bytes = 0;

    (void)self;
    (void)err;
    for (uint64_t i = 0; i < n; i++)
        bytes += dst[i].bytes;
    atomic_fetch_add(&model_counters.runs, n);
    call_spends();
    if (n > 0)
        copy_work(stream, &dst[0], &src[0], bytes);
    return ZARR_OK;
}

static zarr_status copy_one(void *self, const zarr_memory *dst, const zarr_memory *src,
                            uint64_t bytes, void *stream, zarr_error *err)
{
    zarr_memory to = *dst;

    to.bytes = bytes;
    return copy_list(self, &to, src, 1, stream, err);
}

static zarr_status copy_boxes(void *self, const zarr_box *boxes, uint64_t n, void *stream,
                              zarr_error *err)
{
    uint64_t bytes = 0;

    (void)self;
    (void)err;
    for (uint64_t i = 0; i < n; i++)
        bytes += box_bytes(&boxes[i]);
    call_spends();
    if (n > 0)
        copy_work(stream, &boxes[0].dst.mem, &boxes[0].src.mem, bytes);
    return ZARR_OK;
}

static zarr_status copy_box(void *self, const zarr_box *box, void *stream,
                            zarr_error *err)
{
    return copy_boxes(self, box, 1, stream, err);
}

static zarr_status fill_boxes(void *self, const zarr_box *boxes, uint64_t n,
                              const void *pattern, void *stream, zarr_error *err)
{
    uint64_t bytes = 0;

    (void)self;
    (void)pattern;
    (void)err;
    for (uint64_t i = 0; i < n; i++)
        bytes += box_bytes(&boxes[i]);
    call_spends();
    work(stream, COMPUTE, model_rates.inside, bytes);
    return ZARR_OK;
}

static zarr_status fill_box(void *self, const zarr_box *box, const void *pattern,
                            void *stream, zarr_error *err)
{
    return fill_boxes(self, box, 1, pattern, stream, err);
}

/* No run is equal to anything, so that every chunk is stored. */
/* NOLINTNEXTLINE(readability-function-size): the signature is the table's */
static zarr_status equal_list(void *self, const zarr_memory *src, uint64_t n,
                              const void *pattern, uint32_t item_bytes, uint8_t *equal,
                              void *stream, zarr_error *err)
{
    uint64_t bytes = 0;

    (void)self;
    (void)pattern;
    (void)item_bytes;
    (void)err;
    for (uint64_t i = 0; i < n; i++) {
        bytes += src[i].bytes;
        equal[i] = 0;
    }
    call_spends();
    work(stream, COMPUTE, model_rates.inside, bytes);
    return ZARR_OK;
}

/* ---- streams ----------------------------------------------------------------------- */

static zarr_status stream_open(void *self, int32_t id, void **stream, zarr_error *err)
{
    (void)self;
    (void)id;
    *stream = calloc(1, sizeof(struct stream));
    if (*stream)
        return ZARR_OK;
    if (err)
        err->code = ZARR_ERR_NO_MEMORY;
    return ZARR_ERR_NO_MEMORY;
}

static void stream_close(void *self, void *stream)
{
    (void)self;
    free(stream);
}

static zarr_status stream_wait(void *self, void *stream, zarr_error *err)
{
    const struct stream *s = stream;

    (void)self;
    (void)err;
    atomic_fetch_add(&model_counters.waits, 1);
    call_spends();
    if (s)
        model_sleep(s->due);
    return ZARR_OK;
}

const zarr_memory_vtable *model_memory(void)
{
    static const zarr_memory_vtable table = {.struct_size = sizeof table,
                                             .flags = ZARR_MEMORY_STREAM_ORDERED,
                                             .name = "model",
                                             .device_type = ZARR_DEVICE_EXT,
                                             .alignment = 256,
                                             .alloc = model_alloc,
                                             .free = model_free,
                                             .copy = copy_one,
                                             .copy_box = copy_box,
                                             .fill_box = fill_box,
                                             .sync = stream_wait,
                                             .copy_list = copy_list,
                                             .copy_boxes = copy_boxes,
                                             .fill_boxes = fill_boxes,
                                             .equal_list = equal_list,
                                             .stream_open = stream_open,
                                             .stream_close = stream_close,
                                             .host_alloc = host_new,
                                             .host_free = host_end};

    return &table;
}

/* ---- a codec ----------------------------------------------------------------------- */

static void batch(const zarr_codec_job *jobs, uint64_t n, uint64_t bytes,
                  zarr_codec_exec *exec)
{
    atomic_fetch_add(&model_counters.batches, 1);
    atomic_fetch_add(&model_counters.chunks, n);
    call_spends();
    work(exec->stream, COMPUTE, model_rates.codec, bytes);
    if (exec->stream)
        exec->pending = (void *)(uintptr_t)jobs;
}

static zarr_status decode(void *self, zarr_codec_job *jobs, uint64_t n,
                          zarr_codec_exec *exec, zarr_error *err)
{
    uint64_t bytes = 0;

    (void)self;
    (void)err;
    for (uint64_t i = 0; i < n; i++) {
        jobs[i].dst_used = jobs[i].dst.bytes;
        jobs[i].status = ZARR_OK;
        bytes += jobs[i].dst.bytes;
    }
    batch(jobs, n, bytes, exec);
    return ZARR_OK;
}

static zarr_status encode(void *self, zarr_codec_job *jobs, uint64_t n,
                          zarr_codec_exec *exec, zarr_error *err)
{
    uint64_t bytes = 0;

    (void)self;
    (void)err;
    for (uint64_t i = 0; i < n; i++) {
        jobs[i].dst_used = (uint64_t)((double)jobs[i].src.bytes / model_rates.ratio);
        jobs[i].status = ZARR_OK;
        bytes += jobs[i].src.bytes;
    }
    batch(jobs, n, bytes, exec);
    return ZARR_OK;
}

static zarr_status settle(void *self, zarr_codec_job *jobs, uint64_t n,
                          zarr_codec_exec *exec, zarr_error *err)
{
    (void)self;
    (void)jobs;
    (void)n;
    (void)exec;
    (void)err;
    return ZARR_OK;
}

static zarr_status model_bind(void **self, const zarr_codec_spec *spec,
                              const zarr_codec_binding *to, zarr_error *err)
{
    (void)spec;
    *self = NULL;
    if (model_rates.most <= 0 || (double)to->decoded->n_bytes <= model_rates.most)
        return ZARR_OK;
    if (err)
        err->code = ZARR_ERR_UNSUPPORTED;
    return ZARR_ERR_UNSUPPORTED;
}

const zarr_codec_impl_vtable *model_codec(const char *codec)
{
    static zarr_codec_impl_vtable table = {
        .struct_size = sizeof table,
        .caps = ZARR_CODEC_CAN_DECODE | ZARR_CODEC_CAN_ENCODE | ZARR_CODEC_BATCH |
                ZARR_CODEC_ASYNC | ZARR_CODEC_FOR_V2 | ZARR_CODEC_FOR_V3,
        .impl = "model.codec",
        .in_kinds = ZARR_MEMORY_BIT(ZARR_DEVICE_EXT),
        .out_kinds = ZARR_MEMORY_BIT(ZARR_DEVICE_EXT),
        .priority = 10,
        .bind = model_bind,
        .encode = encode,
        .decode = decode,
        .settle = settle};

    table.codec = codec;
    if (!(model_rates.unsafe > 0))
        table.caps |= ZARR_CODEC_SAFE;
    return &table;
}
