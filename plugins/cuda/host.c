/*
 * cuda/host.c - memory that both the host and CUDA's devices reach: pinned host memory
 * and managed memory. The library uses both as host memory. The driver copies between
 * them and a device as fast as it can, and needs no help. Thread class: shared.
 */
#include "device.h"

#include <string.h>

/* ---- pinned -------------------- */

static zarr_status pinned_alloc(struct cuda_device *d, uint64_t bytes, CUdeviceptr *out,
                                zarr_error *err)
{
    void *p = NULL;
    const CUresult rc =
        cuda.cuMemHostAlloc(&p, bytes > 0 ? (size_t)bytes : 1, CU_MEMHOSTALLOC_PORTABLE);

    *out = (CUdeviceptr)(uintptr_t)p;
    return device_check(d, err, "pinned memory", rc);
}

static void pinned_free(struct cuda_device *d, CUdeviceptr p)
{
    zarr_error err = ZARR_ERROR_INIT; /* not read, as in device_free() */

    (void)device_check(d, &err, "free", cuda.cuMemFreeHost((void *)(uintptr_t)p));
}

static zarr_status host_memory_alloc(void *self, int32_t device_id, uint64_t bytes,
                                     zarr_memory *out, zarr_error *err)
{
    (void)self;
    *out = (zarr_memory){
        .device_type = ZARR_DEVICE_CUDA_HOST, .device_id = device_id, .bytes = bytes};
    return memory_alloc_by(pinned_alloc, out, err);
}

static void host_memory_free(void *self, zarr_memory *mem)
{
    (void)self;
    memory_free_by(pinned_free, mem);
}

/* ---- managed -------------------- */

/* The host touches managed memory while kernels run, which not all devices permit. */
static zarr_status managed_check(struct cuda_device *d, zarr_error *err)
{
    int has = 0;
    const CUresult rc = cuda.cuDeviceGetAttribute(
        &has, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, d->id);

    if (rc == CUDA_SUCCESS && !has)
        return port_host->fail(
            err, ZARR_ERR_UNSUPPORTED,
            "cuda: the host and device %d cannot use managed memory at "
            "the same time",
            (int)d->number);
    return device_check(d, err, "managed memory", rc);
}

static zarr_status managed_alloc(struct cuda_device *d, uint64_t bytes, CUdeviceptr *out,
                                 zarr_error *err)
{
    const zarr_status st = managed_check(d, err);

    return st == ZARR_OK
               ? device_check(d, err, "managed memory",
                              cuda.cuMemAllocManaged(out, bytes > 0 ? (size_t)bytes : 1,
                                                     CU_MEM_ATTACH_GLOBAL))
               : st;
}

static void managed_free(struct cuda_device *d, CUdeviceptr p)
{
    zarr_error err = ZARR_ERROR_INIT; /* not read, as in device_free() */

    (void)device_check(d, &err, "free", cuda.cuMemFree_v2(p));
}

static zarr_status managed_memory_alloc(void *self, int32_t device_id, uint64_t bytes,
                                        zarr_memory *out, zarr_error *err)
{
    (void)self;
    *out = (zarr_memory){
        .device_type = ZARR_DEVICE_CUDA_MANAGED, .device_id = device_id, .bytes = bytes};
    return memory_alloc_by(managed_alloc, out, err);
}

static void managed_memory_free(void *self, zarr_memory *mem)
{
    (void)self;
    memory_free_by(managed_free, mem);
}

/* ---- both -------------------- */

/* Both sides are memory that the host reaches. */
static zarr_status host_copy(void *self, const zarr_memory *dst, const zarr_memory *src,
                             uint64_t bytes, void *stream, zarr_error *err)
{
    (void)self;
    (void)stream;
    (void)err;
    memcpy((char *)dst->handle + dst->offset, (char *)src->handle + src->offset,
           (size_t)bytes);
    return ZARR_OK;
}

/* There are no streams of the library here, only the application's. */
static zarr_status host_sync(void *self, void *stream, zarr_error *err)
{
    (void)self;
    return stream ? foreign_wait(stream, err) : ZARR_OK;
}

static zarr_status host_device_count(void *self, uint32_t *n, zarr_error *err)
{
    (void)self;
    (void)n; /* it is 1: as in DLPack, the memory has no device */
    return driver_start(err);
}

const zarr_memory_vtable cuda_host_memory = {
    .struct_size = sizeof cuda_host_memory,
    .flags = ZARR_MEMORY_HOST_READ | ZARR_MEMORY_HOST_WRITE,
    .name = "cuda_host",
    .device_type = ZARR_DEVICE_CUDA_HOST,
    .alignment = 256,
    .alloc = host_memory_alloc,
    .free = host_memory_free,
    .copy = host_copy,
    .sync = host_sync,
    .device_count = host_device_count,
    .find = device_find,
};

const zarr_memory_vtable cuda_managed_memory = {
    .struct_size = sizeof cuda_managed_memory,
    .flags = ZARR_MEMORY_HOST_READ | ZARR_MEMORY_HOST_WRITE,
    .name = "cuda_managed",
    .device_type = ZARR_DEVICE_CUDA_MANAGED,
    .alignment = 256,
    .alloc = managed_memory_alloc,
    .free = managed_memory_free,
    .copy = host_copy,
    .sync = host_sync,
    .device_count = host_device_count,
    .find = device_find,
};
