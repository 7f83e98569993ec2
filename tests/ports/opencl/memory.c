/*
 * ports/opencl/memory.c - memory of an OpenCL device: handles are cl_mem objects, which
 * have no address.
 */
#include "device.h"

/* ---- blocks and runs -------------------- */

static zarr_status memory_alloc(void *self, int32_t device_id, uint64_t bytes,
                                zarr_memory *out, zarr_error *err)
{
    cl_int rc;

    (void)self;
    if (device_id != 0)
        return port_host->fail(err, ZARR_ERR_INVALID, "opencl: there is only device 0");
    *out = (zarr_memory){.device_type = ZARR_DEVICE_OPENCL, .bytes = bytes};
    out->handle = clCreateBuffer(device_cl(device_get()), CL_MEM_READ_WRITE,
                                 bytes > 0 ? (size_t)bytes : 1, NULL, &rc);
    return rc == CL_SUCCESS ? ZARR_OK : cl_failed(err, "allocation", rc);
}

static void memory_free(void *self, zarr_memory *mem)
{
    (void)self;
    if (mem->handle)
        clReleaseMemObject(mem->handle);
    *mem = (zarr_memory){0};
}

static int on_device(const zarr_memory *m)
{
    return m->device_type == ZARR_DEVICE_OPENCL;
}

static void *host_pointer(const zarr_memory *m)
{
    return (char *)m->handle + m->offset;
}

static cl_int copy_run(struct lane *l, const zarr_memory *dst, const zarr_memory *src,
                       size_t bytes)
{
    count(&opencl_counts.copies);
    if (on_device(dst) && on_device(src))
        return clEnqueueCopyBuffer(l->queue, src->handle, dst->handle, src->offset,
                                   dst->offset, bytes, 0, NULL, NULL);
    if (on_device(dst))
        return clEnqueueWriteBuffer(l->queue, dst->handle, CL_FALSE, dst->offset, bytes,
                                    host_pointer(src), 0, NULL, NULL);
    return clEnqueueReadBuffer(l->queue, src->handle, CL_FALSE, src->offset, bytes,
                               host_pointer(dst), 0, NULL, NULL);
}

zarr_status port_copy(struct port_lane *l, const zarr_memory *dst, const zarr_memory *src,
                      uint64_t n, zarr_error *err)
{
    cl_int rc = CL_SUCCESS;

    for (uint64_t i = 0; i < n && rc == CL_SUCCESS; i++)
        if (dst[i].bytes > 0)
            rc = copy_run((struct lane *)l, &dst[i], &src[i], (size_t)dst[i].bytes);
    return rc == CL_SUCCESS ? ZARR_OK : cl_failed(err, "copy", rc);
}

/* ---- streams -------------------- */

static zarr_status memory_stream_open(void *self, int32_t device_id, void **stream,
                                      zarr_error *err)
{
    struct lane *l;
    zarr_status st = lane_begin(device_get(), &l, err);

    (void)self;
    (void)device_id;
    *stream = l;
    return st;
}

static void memory_stream_close(void *self, void *stream)
{
    (void)self;
    (void)lane_end(stream, ZARR_OK, NULL);
}

static zarr_status memory_sync(void *self, void *stream, zarr_error *err)
{
    struct lane *l = stream;
    cl_int rc;

    (void)self;
    if (!l)
        return ZARR_OK;
    count(&opencl_counts.waits);
    rc = clFinish(l->queue);
    port_finish_comparisons(&l->port, rc == CL_SUCCESS ? ZARR_OK : ZARR_ERR_DEVICE);
    return rc == CL_SUCCESS ? ZARR_OK : cl_failed(err, "wait", rc);
}

static zarr_status memory_describe(void *self, int32_t device_id, zarr_device_facts *out,
                                   zarr_error *err)
{
    (void)self;
    if (device_id != 0)
        return port_host->fail(err, ZARR_ERR_INVALID, "opencl: there is only device 0");
    return device_describe(device_get(), out, err);
}

const zarr_memory_vtable opencl_memory = {
    .struct_size = sizeof opencl_memory,
    .name = "opencl",
    .device_type = ZARR_DEVICE_OPENCL,
    .alignment = 128,
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
    .describe = memory_describe,
};
