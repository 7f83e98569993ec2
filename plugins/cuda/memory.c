/*
 * cuda/memory.c - memory of a CUDA device. Boxes, fills and comparisons are kernels
 * (plugins/port). Host memory on the other side of a copy may be pinned, managed or
 * ordinary: the driver tells by the address. Thread class: shared.
 */
#include "cufile.h"
#include "device.h"

/* ---- blocks -------------------- */

zarr_status memory_alloc_by(block_alloc_fn fn, zarr_memory *out, zarr_error *err)
{
    struct cuda_device *d;
    CUdeviceptr p = 0;
    struct place was;
    zarr_status st = device_use(out->device_id, &d, &was, err);

    if (st != ZARR_OK)
        return st;
    st = fn(d, out->bytes, &p, err);
    device_leave(&was);
    out->handle = (void *)(uintptr_t)p;
    return st;
}

void memory_free_by(block_free_fn fn, zarr_memory *mem)
{
    struct cuda_device *d = device_usable(mem->device_id);
    struct place was;

    if (mem->handle && d && device_enter(d, &was, NULL) == ZARR_OK) {
        fn(d, (CUdeviceptr)(uintptr_t)mem->handle);
        device_leave(&was);
    }
    *mem = (zarr_memory){0};
}

static zarr_status memory_alloc(void *self, int32_t device_id, uint64_t bytes,
                                zarr_memory *out, zarr_error *err)
{
    (void)self;
    *out = (zarr_memory){
        .device_type = ZARR_DEVICE_CUDA, .device_id = device_id, .bytes = bytes};
    return memory_alloc_by(device_alloc, out, err);
}

static void memory_free(void *self, zarr_memory *mem)
{
    (void)self;
    memory_free_by(device_free, mem);
}

/* ---- streams -------------------- */

static zarr_status memory_stream_open(void *self, int32_t device_id, void **stream,
                                      zarr_error *err)
{
    struct cuda_device *d;
    struct cuda_lane *l = NULL;
    struct place was;
    zarr_status st = device_use(device_id, &d, &was, err);

    (void)self;
    if (st != ZARR_OK)
        return st;
    st = lane_open(d, &l, err);
    device_leave(&was);
    *stream = l;
    return st;
}

static void memory_stream_close(void *self, void *stream)
{
    (void)self;
    lane_keep(stream);
}

static zarr_status memory_sync(void *self, void *stream, zarr_error *err)
{
    struct cuda_lane *l = stream;
    struct place was;
    zarr_status st, waited;

    (void)self;
    if (!stream)
        return ZARR_OK;
    if (!is_lane(stream))
        return foreign_wait(stream, err);
    st = device_enter(l->device, &was, err);
    if (st != ZARR_OK && device_enter(l->device, &was, NULL) != ZARR_OK) {
        device_give_up(l->device);
        port_finish_comparisons(&l->port, st);
        return st;
    }
    waited = lane_wait(l, st == ZARR_OK ? err : NULL);
    device_leave(&was);
    return st == ZARR_OK ? waited : st;
}

static zarr_status memory_follow(void *self, void *stream, void *foreign, zarr_error *err)
{
    (void)self;
    return foreign_order(stream, foreign, err);
}

/* ---- pinned memory -------------------- */

static zarr_status memory_host_alloc(void *self, int32_t device_id, uint64_t bytes,
                                     zarr_memory *out, zarr_error *err)
{
    const zarr_status st = cuda_host_memory.alloc(self, device_id, bytes, out, err);

    /* Stores and codecs of the CPU use it as any host memory. */
    out->device_type = ZARR_DEVICE_CPU;
    return st;
}

static void memory_host_free(void *self, zarr_memory *mem)
{
    cuda_host_memory.free(self, mem);
}

/* ---- facts -------------------- */

/* An eighth of what is free now is left to the application and the driver. */
static zarr_status memory_limit(void *self, int32_t device_id, uint64_t *bytes,
                                zarr_error *err)
{
    struct cuda_device *d;
    size_t free_now = 0, total = 0;
    struct place was;
    zarr_status st = device_use(device_id, &d, &was, err);

    (void)self;
    if (st != ZARR_OK)
        return st;
    st = device_check(d, err, "free memory", cuda.cuMemGetInfo_v2(&free_now, &total));
    if (st == ZARR_OK)
        *bytes = free_now - free_now / 8;
    device_leave(&was);
    return st;
}

static zarr_status memory_device_count(void *self, uint32_t *n, zarr_error *err)
{
    const zarr_status st = driver_start(err);

    (void)self;
    if (st == ZARR_OK)
        *n = (uint32_t)driver_devices();
    return st;
}

static zarr_status memory_describe(void *self, int32_t device_id, zarr_device_facts *out,
                                   zarr_error *err)
{
    (void)self;
    return device_describe(device_id, out, err);
}

const zarr_memory_vtable cuda_memory = {
    .struct_size = sizeof cuda_memory,
    .flags = ZARR_MEMORY_STREAM_ORDERED,
    .name = "cuda",
    .device_type = ZARR_DEVICE_CUDA,
    .alignment = 256,
    .alloc = memory_alloc,
    .free = memory_free,
    .copy = port_copy_run,
    .copy_box = port_copy_box,
    .fill_box = port_fill_box,
    .sync = memory_sync,
    .copy_list = port_copy_list,
    .copy_boxes = port_copy_boxes,
    .fill_boxes = port_fill_boxes,
    .equal_list = port_equal_list,
    .stream_open = memory_stream_open,
    .stream_close = memory_stream_close,
    .order = memory_follow,
    .host_alloc = memory_host_alloc,
    .host_free = memory_host_free,
    .classify = memory_classify,
    .limit = memory_limit,
    .device_count = memory_device_count,
    .describe = memory_describe,
    .reaches_files = gds_reaches_files,
    .read_file = gds_read_file,
    .write_file = gds_write_file,
    .find = device_find,
};
