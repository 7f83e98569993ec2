/*
 * cuda/lane.c - lanes: a stream, with the descriptions of its work. Descriptions are
 * written to pinned memory and go up in one copy before the next launch. Their blocks are
 * used again after the next wait, so a call allocates nothing and waits for nothing.
 * Thread class: one thread at a time uses a lane; the lists of lanes are shared.
 */
#include "device.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum {
    BLOCK_ALIGN = 16,
    GROUP_ITEMS = 256, /* of a launch, if a group does not work on one stream */
    LANES = 32,        /* a warp, which is the group of a stream */
    ARGUMENTS_MAX = 12,
    AWAKE_NS = 50000
};

pthread_mutex_t lanes_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct cuda_lane *lanes; /* all that are alive, by `after` */

/* ---- opening and closing -------------------- */

int is_lane(const void *stream)
{
    const struct cuda_lane *l;

    lock_take(&lanes_mutex);
    for (l = lanes; l && l != stream; l = l->after)
        ;
    lock_give(&lanes_mutex);
    return l != NULL;
}

static void lane_list(struct cuda_lane *l)
{
    lock_take(&lanes_mutex);
    l->after = lanes;
    lanes = l;
    lock_give(&lanes_mutex);
}

static void lane_unlist(const struct cuda_lane *l)
{
    struct cuda_lane **at;

    lock_take(&lanes_mutex);
    for (at = &lanes; *at && *at != l; at = &(*at)->after)
        ;
    if (*at)
        *at = l->after;
    lock_give(&lanes_mutex);
}

void lane_free(struct cuda_lane *l)
{
    lane_unlist(l);
    if (l->event && !atomic_load(&l->device->lost))
        (void)cuda.cuEventDestroy_v2(l->event);
    if (l->done && !atomic_load(&l->device->lost))
        (void)cuda.cuEventDestroy_v2(l->done);
    if (l->stream && !atomic_load(&l->device->lost))
        (void)cuda.cuStreamDestroy_v2(l->stream);
    for (struct pair *p = l->pairs, *next; p; p = next) {
        next = p->next;
        pair_free(p);
    }
    free(l);
}

static zarr_status lane_new(struct cuda_device *d, struct cuda_lane **out,
                            zarr_error *err)
{
    struct cuda_lane *l = calloc(1, sizeof *l);
    zarr_status st;
    CUresult rc;

    if (!l)
        return port_host->fail(err, ZARR_ERR_NO_MEMORY, "cuda: no memory for a stream");
    l->port.device_id = d->number;
    l->device = d;
    lane_list(l);
    rc = cuda.cuStreamCreate(&l->stream, CU_STREAM_NON_BLOCKING);
    if (rc == CUDA_SUCCESS)
        rc = cuda.cuEventCreate(&l->event, CU_EVENT_DISABLE_TIMING);
    if (rc == CUDA_SUCCESS)
        rc = cuda.cuEventCreate(&l->done,
                                CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC);
    if (rc == CUDA_SUCCESS) {
        *out = l;
        return ZARR_OK;
    }
    st = device_fail(d, err, "stream", rc);
    lane_free(l);
    return st;
}

zarr_status lane_open(struct cuda_device *d, struct cuda_lane **out, zarr_error *err)
{
    struct cuda_lane *l;

    lock_take(&lanes_mutex);
    l = d->idle;
    if (l)
        d->idle = l->next;
    lock_give(&lanes_mutex);
    *out = l;
    return l ? ZARR_OK : lane_new(d, out, err);
}

void lane_keep(struct cuda_lane *l)
{
    struct cuda_device *d = l->device;

    lock_take(&lanes_mutex);
    l->next = d->idle;
    d->idle = l;
    lock_give(&lanes_mutex);
}

/* ---- calls -------------------- */

zarr_status port_begin(void *stream, int32_t device_id, struct port_lane **out,
                       zarr_error *err)
{
    struct cuda_lane *l = stream;
    struct cuda_device *d = l ? l->device : NULL;
    struct place was;
    zarr_status st = d ? ZARR_OK : device_open(device_id, &d, err);

    if (st == ZARR_OK)
        st = device_enter(d, &was, err);
    if (st != ZARR_OK)
        return st;
    if (!l) {
        st = lane_open(d, &l, err);
        if (st != ZARR_OK) {
            device_leave(&was);
            return st;
        }
    }
    l->was = was;
    *out = &l->port;
    return ZARR_OK;
}

zarr_status port_end(void *stream, struct port_lane *lane, zarr_status st,
                     zarr_error *err)
{
    struct cuda_lane *l = (struct cuda_lane *)lane;
    const struct place was = l->was;
    zarr_status waited = ZARR_OK;

    if (!stream) {
        waited = lane_wait(l, st == ZARR_OK ? err : NULL);
        lane_keep(l);
    }
    device_leave(&was);
    return st == ZARR_OK ? waited : st;
}

/* The blocks of descriptions may be written again. The largest stays with the lane. */
static void lane_empty(struct cuda_lane *l)
{
    struct pair *keep = l->pairs;

    while (keep && keep->next) {
        struct pair *next = keep->next;
        struct pair *small = next->bytes > keep->bytes ? keep : next;

        if (small == next)
            keep->next = next->next;
        else
            keep = next;
        pair_give(small);
    }
    l->pairs = keep;
    if (keep)
        keep->used = keep->sent = 0;
}

static uint64_t now_ns(void)
{
    struct timespec t = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

/* Waits awake for a moment, then asleep: the driver's own wait for a stream keeps a core
 * busy that could decode. */
static CUresult lane_sleep(const struct cuda_lane *l)
{
    const uint64_t end = now_ns() + AWAKE_NS;
    CUresult rc = cuda.cuEventRecord(l->done, l->stream);

    if (rc != CUDA_SUCCESS)
        return rc;
    do
        rc = cuda.cuEventQuery(l->done);
    while (rc == CUDA_ERROR_NOT_READY && now_ns() < end);
    if (rc == CUDA_ERROR_NOT_READY)
        rc = cuda.cuEventSynchronize(l->done);
    return rc;
}

zarr_status lane_wait(struct cuda_lane *l, zarr_error *err)
{
    struct cuda_device *d = l->device;
    const zarr_status st = atomic_load(&d->lost)
                               ? device_is_lost(d, err)
                               : device_end_wait(d, l->stream, lane_sleep(l), err);

    if (!atomic_load(&d->lost))
        lane_empty(l);
    port_finish_comparisons(&l->port, st);
    return st;
}

zarr_status port_wait(struct port_lane *l, zarr_error *err)
{
    return lane_wait((struct cuda_lane *)l, err);
}

/* ---- descriptions and results -------------------- */

zarr_status port_stage(struct port_lane *lane, uint64_t bytes, struct port_block *out,
                       zarr_error *err)
{
    struct cuda_lane *l = (struct cuda_lane *)lane;
    struct pair *p = l->pairs;
    zarr_status st;

    *out = (struct port_block){0};
    if (!p || p->bytes - p->used < bytes) {
        st = pair_take(l->device, bytes, &p, err);
        if (st != ZARR_OK)
            return st;
        p->next = l->pairs;
        l->pairs = p;
    }
    out->host = p->host + p->used;
    out->bytes = bytes;
    out->device.at = p->at + p->used;
    p->used += (bytes + BLOCK_ALIGN - 1) / BLOCK_ALIGN * BLOCK_ALIGN;
    if (p->used > p->bytes)
        p->used = p->bytes;
    return ZARR_OK;
}

/* Queues the copy of what was staged since the last launch. */
zarr_status lane_send(struct cuda_lane *l, zarr_error *err)
{
    CUresult rc = CUDA_SUCCESS;

    for (struct pair *p = l->pairs; p && rc == CUDA_SUCCESS; p = p->next) {
        if (p->sent < p->used)
            rc = cuda.cuMemcpyAsync(p->at + p->sent,
                                    (CUdeviceptr)(uintptr_t)p->host + p->sent,
                                    (size_t)(p->used - p->sent), l->stream);
        p->sent = p->used;
    }
    return device_check(l->device, err, "copy of a list", rc);
}

zarr_status port_result_open(struct port_lane *lane, uint64_t bytes,
                             struct port_block *out, zarr_error *err)
{
    struct cuda_lane *l = (struct cuda_lane *)lane;
    struct pair *p = NULL;
    zarr_status st = pair_take(l->device, bytes, &p, err);

    *out = (struct port_block){0};
    if (st != ZARR_OK)
        return st;
    st = device_check(l->device, err, "results",
                      cuda.cuMemsetD8Async(p->at, 0, (size_t)bytes, l->stream));
    if (st != ZARR_OK) {
        pair_give(p);
        return st;
    }
    out->host = p->host;
    out->device.at = p->at;
    out->bytes = bytes;
    out->own = p;
    return ZARR_OK;
}

zarr_status port_result_fetch(struct port_lane *lane, struct port_block *b,
                              zarr_error *err)
{
    struct cuda_lane *l = (struct cuda_lane *)lane;

    return device_check(l->device, err, "results",
                        cuda.cuMemcpyAsync((CUdeviceptr)(uintptr_t)b->host, b->device.at,
                                           (size_t)b->bytes, l->stream));
}

void port_result_close(struct port_block *b)
{
    pair_give(b->own);
}

/* ---- work -------------------- */

int port_reaches(const zarr_memory *m)
{
    return m->device_type == ZARR_DEVICE_CUDA;
}

struct port_place port_memory_place(const zarr_memory *m)
{
    return (struct port_place){.at = device_address(m)};
}

uint32_t port_lanes(void)
{
    return LANES;
}

zarr_status port_launch(struct port_lane *lane, enum port_kernel k,
                        const struct port_argument *a, uint32_t n_arguments,
                        uint64_t work_items, zarr_error *err)
{
    struct cuda_lane *l = (struct cuda_lane *)lane;
    const uint32_t group = port_kernel_facts[k].per_stream ? LANES : GROUP_ITEMS;
    const uint64_t groups = (work_items + group - 1) / group;
    uint64_t wide[ARGUMENTS_MAX];
    uint32_t narrow[ARGUMENTS_MAX];
    void *values[ARGUMENTS_MAX];
    zarr_status st = device_kernels(l->device, err);

    if (st != ZARR_OK || work_items == 0)
        return st;
    if (groups > INT32_MAX || n_arguments > ARGUMENTS_MAX)
        return port_host->fail(err, ZARR_ERR_UNSUPPORTED, "cuda: too much for %s",
                               port_kernel_facts[k].name);
    for (uint32_t i = 0; i < n_arguments; i++) {
        wide[i] = a[i].number;
        narrow[i] = (uint32_t)a[i].number;
        if (a[i].kind == PORT_BUFFER)
            wide[i] = (uint64_t)(uintptr_t)a[i].buffer;
        else if (a[i].kind == PORT_BLOCK)
            wide[i] = a[i].block->device.at;
        values[i] = a[i].kind == PORT_U32 ? (void *)&narrow[i] : (void *)&wide[i];
    }
    st = lane_send(l, err);
    if (st != ZARR_OK)
        return st;
    return device_check(l->device, err, port_kernel_facts[k].name,
                        cuda.cuLaunchKernel(l->device->kernel[k], (unsigned)groups, 1, 1,
                                            group, 1, 1, 0, l->stream, values, NULL));
}

/* Length of the run that begins with run i: neighbours in the same two blocks are one. */
static size_t run_bytes(const zarr_memory *dst, const zarr_memory *src, uint64_t n,
                        uint64_t *i)
{
    uint64_t bytes = dst[*i].bytes, k = *i;

    while (k + 1 < n && dst[k + 1].handle == dst[k].handle &&
           src[k + 1].handle == src[k].handle &&
           dst[k + 1].offset == dst[k].offset + dst[k].bytes &&
           src[k + 1].offset == src[k].offset + dst[k].bytes)
        bytes += dst[++k].bytes;
    *i = k;
    return (size_t)bytes;
}

zarr_status lane_copy(struct cuda_lane *l, const zarr_memory *dst, const zarr_memory *src,
                      uint64_t n, zarr_error *err)
{
    struct cuda_device *to = NULL, *from = NULL;
    zarr_status st = ZARR_OK;
    CUresult rc = CUDA_SUCCESS;

    if (n > 0 && port_reaches(dst) && port_reaches(src) &&
        dst->device_id != src->device_id) {
        st = device_open(dst->device_id, &to, err);
        if (st == ZARR_OK)
            st = device_open(src->device_id, &from, err);
        if (st != ZARR_OK)
            return st;
    }
    for (uint64_t i = 0; i < n && rc == CUDA_SUCCESS; i++) {
        const CUdeviceptr d = device_address(&dst[i]), s = device_address(&src[i]);
        const size_t bytes = run_bytes(dst, src, n, &i);

        if (bytes > 0)
            rc = to ? cuda.cuMemcpyPeerAsync(d, to->context, s, from->context, bytes,
                                             l->stream)
                    : cuda.cuMemcpyAsync(d, s, bytes, l->stream);
    }
    return device_check(l->device, err, "copy", rc);
}

zarr_status port_copy(struct port_lane *l, const zarr_memory *dst, const zarr_memory *src,
                      uint64_t n, zarr_error *err)
{
    return lane_copy((struct cuda_lane *)l, dst, src, n, err);
}
