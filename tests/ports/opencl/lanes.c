/*
 * ports/opencl/lanes.c - what plugins/port asks of a device, for OpenCL: descriptions and
 * results are buffers of their own, and a place is a buffer and bytes from its start.
 */
#include "device.h"

#include <stdlib.h>

const struct port_decoder *port_decoder; /* none: the kernels decode zstd */

static struct lane *as_lane(struct port_lane *l)
{
    return (struct lane *)l;
}

zarr_status port_begin(void *stream, int32_t device_id, struct port_lane **out,
                       zarr_error *err)
{
    struct lane *l = stream;
    zarr_status st = ZARR_OK;

    (void)device_id;
    if (!stream)
        st = lane_begin(device_get(), &l, err);
    *out = l ? &l->port : NULL;
    return st;
}

zarr_status port_end(void *stream, struct port_lane *l, zarr_status st, zarr_error *err)
{
    if (!stream)
        return lane_end(as_lane(l), st, err);
    lane_drop_staged(as_lane(l));
    return st;
}

zarr_status port_wait(struct port_lane *l, zarr_error *err)
{
    const cl_int rc = clFinish(as_lane(l)->queue);

    count(&opencl_counts.waits);
    return rc == CL_SUCCESS ? ZARR_OK : cl_failed(err, "wait", rc);
}

int port_reaches(const zarr_memory *m)
{
    return m->device_type == ZARR_DEVICE_OPENCL;
}

struct port_place port_memory_place(const zarr_memory *m)
{
    return (struct port_place){.buffer = m->handle, .at = m->offset};
}

uint32_t port_lanes(void)
{
    return 1;
}

/* ---- descriptions -------------------- */

/* Buffers may be released while work uses them. */
void lane_drop_staged(struct lane *l)
{
    while (l->staged) {
        struct staged *s = l->staged;

        l->staged = s->next;
        if (s->block.device.buffer)
            clReleaseMemObject(s->block.device.buffer);
        free(s->block.host);
        free(s);
    }
}

zarr_status port_stage(struct port_lane *l, uint64_t bytes, struct port_block *out,
                       zarr_error *err)
{
    struct lane *lane = as_lane(l);
    struct staged *s = calloc(1, sizeof *s);

    *out = (struct port_block){.host = malloc((size_t)bytes), .bytes = bytes, .own = s};
    if (!s || !out->host) {
        free(s);
        free(out->host);
        return port_host->fail(err, ZARR_ERR_NO_MEMORY, "opencl: no memory for a list");
    }
    s->block = *out;
    s->next = lane->staged;
    lane->staged = s;
    return ZARR_OK;
}

/* The buffer of a block: that of a result, or one that it gets now. */
static cl_int block_buffer(const struct lane *l, const struct port_argument *a,
                           cl_mem *out)
{
    struct staged *s = l->staged;
    cl_int rc = CL_SUCCESS;

    *out = a->block->device.buffer;
    while (s && s != a->block->own)
        s = s->next;
    if (!s)
        return CL_SUCCESS;
    if (!s->block.device.buffer)
        s->block.device.buffer =
            clCreateBuffer(device_cl(l->device), CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                           (size_t)s->block.bytes, s->block.host, &rc);
    *out = s->block.device.buffer;
    return rc;
}

/* ---- results -------------------- */

zarr_status port_result_open(struct port_lane *l, uint64_t bytes, struct port_block *out,
                             zarr_error *err)
{
    cl_int rc;

    *out = (struct port_block){.host = calloc(1, (size_t)bytes), .bytes = bytes};
    if (!out->host)
        return port_host->fail(err, ZARR_ERR_NO_MEMORY, "opencl: no memory for a list");
    out->device.buffer = clCreateBuffer(device_cl(as_lane(l)->device),
                                        CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                        (size_t)bytes, out->host, &rc);
    if (rc == CL_SUCCESS)
        return ZARR_OK;
    free(out->host);
    *out = (struct port_block){0};
    return cl_failed(err, "buffer", rc);
}

zarr_status port_result_fetch(struct port_lane *l, struct port_block *b, zarr_error *err)
{
    const cl_int rc = clEnqueueReadBuffer(as_lane(l)->queue, b->device.buffer, CL_FALSE,
                                          0, (size_t)b->bytes, b->host, 0, NULL, NULL);

    count(&opencl_counts.copies);
    return rc == CL_SUCCESS ? ZARR_OK : cl_failed(err, "results", rc);
}

void port_result_close(struct port_block *b)
{
    clReleaseMemObject(b->device.buffer);
    free(b->host);
    *b = (struct port_block){0};
}

/* ---- launches -------------------- */

static cl_int set_argument(const struct lane *l, cl_kernel k, cl_uint i,
                           const struct port_argument *a)
{
    const cl_uint small = (cl_uint)a->number;
    cl_mem buffer = a->buffer;
    cl_int rc = CL_SUCCESS;

    if (a->kind == PORT_U64)
        return clSetKernelArg(k, i, sizeof a->number, &a->number);
    if (a->kind == PORT_U32)
        return clSetKernelArg(k, i, sizeof small, &small);
    if (a->kind == PORT_BLOCK)
        rc = block_buffer(l, a, &buffer);
    if (a->kind == PORT_AT && a->number != 0)
        return CL_INVALID_ARG_VALUE; /* scratch memory is a buffer of its own */
    return rc == CL_SUCCESS ? clSetKernelArg(k, i, sizeof buffer, &buffer) : rc;
}

zarr_status port_launch(struct port_lane *l, enum port_kernel k,
                        const struct port_argument *a, uint32_t n_arguments,
                        uint64_t work_items, zarr_error *err)
{
    const struct lane *lane = as_lane(l);
    const size_t local = 64, global = (size_t)((work_items + 63) / 64 * 64);
    cl_int rc = CL_SUCCESS;

    if (work_items == 0)
        return ZARR_OK;
    for (cl_uint i = 0; i < n_arguments && rc == CL_SUCCESS; i++)
        rc = set_argument(lane, lane->kernel[k], i, &a[i]);
    if (rc == CL_SUCCESS)
        rc = clEnqueueNDRangeKernel(lane->queue, lane->kernel[k], 1, NULL, &global,
                                    &local, 0, NULL, NULL);
    count(&opencl_counts.launches);
    return rc == CL_SUCCESS ? ZARR_OK : cl_failed(err, port_kernel_facts[k].name, rc);
}
