/*
 * ports/opencl/memory.c - memory of an OpenCL device: handles are cl_mem objects, which
 * have no address. Boxes with a side on the host are left to the library.
 */
#include "device.h"

#include <stdlib.h>
#include <string.h>

/* ---- blocks and runs -------------------- */

static zarr_status memory_alloc(void *self, int32_t device_id, uint64_t bytes,
                                zarr_mem *out, zarr_error *err)
{
    cl_int rc;

    (void)self;
    if (device_id != 0)
        return host->fail(err, ZARR_ERR_INVALID, "opencl: there is only device 0");
    *out = (zarr_mem){.device_type = ZARR_DEVICE_OPENCL, .bytes = bytes};
    out->handle = clCreateBuffer(device_cl(device_get()), CL_MEM_READ_WRITE,
                                 bytes > 0 ? (size_t)bytes : 1, NULL, &rc);
    return rc == CL_SUCCESS ? ZARR_OK : cl_failed(err, "allocation", rc);
}

static void memory_free(void *self, zarr_mem *mem)
{
    (void)self;
    if (mem->handle)
        clReleaseMemObject(mem->handle);
    *mem = (zarr_mem){0};
}

static cl_int copy_run(struct lane *l, const zarr_mem *dst, const zarr_mem *src,
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

zarr_status copy_runs(struct lane *l, const zarr_mem *dst, const zarr_mem *src,
                      uint64_t n, zarr_error *err)
{
    cl_int rc = CL_SUCCESS;

    for (uint64_t i = 0; i < n && rc == CL_SUCCESS; i++)
        if (dst[i].bytes > 0)
            rc = copy_run(l, &dst[i], &src[i], (size_t)dst[i].bytes);
    return rc == CL_SUCCESS ? ZARR_OK : cl_failed(err, "copy", rc);
}

zarr_status call_begin(void *stream, struct lane **l, zarr_error *err)
{
    *l = stream;
    return stream ? ZARR_OK : lane_begin(device_get(), l, err);
}

zarr_status call_end(const void *stream, struct lane *l, zarr_status st, zarr_error *err)
{
    return stream ? st : lane_end(l, st, err);
}

static zarr_status memory_copy_list(void *self, const zarr_mem *dst, const zarr_mem *src,
                                    uint64_t n, void *stream, zarr_error *err)
{
    struct lane *l;
    zarr_status st = call_begin(stream, &l, err);

    (void)self;
    if (st != ZARR_OK)
        return st;
    return call_end(stream, l, copy_runs(l, dst, src, n, err), err);
}

static zarr_status memory_copy(void *self, const zarr_mem *dst, const zarr_mem *src,
                               uint64_t bytes, void *stream, zarr_error *err)
{
    zarr_mem to = *dst;

    to.bytes = bytes;
    return memory_copy_list(self, &to, src, 1, stream, err);
}

/* ---- boxes -------------------- */

static struct k_box box_of(const zarr_box *x, int fill)
{
    struct k_box b = {.n = 1,
                      .dst_at = x->dst.mem.offset,
                      .src_at = fill ? 0 : x->src.mem.offset,
                      .ndim = (k_u32)x->ndim,
                      .item_bytes = x->item_bytes,
                      .swap_bytes = fill ? 0 : x->swap_bytes};

    for (int d = 0; d < x->ndim; d++) {
        b.n *= x->shape[d];
        b.shape[d] = x->shape[d];
        b.dst[d] = x->dst.stride[d];
        b.src[d] = fill ? 0 : x->src.stride[d];
    }
    return b;
}

/* Boxes of one pair of buffers in one launch. `src` NULL: a fill by `pattern`. */
static zarr_status launch_boxes(struct lane *l, const struct k_box *boxes, uint64_t n,
                                cl_mem dst, cl_mem src, cl_mem pattern, zarr_error *err)
{
    const cl_mem from = src ? src : pattern;
    cl_ulong count_of = n, most = 0;
    cl_mem list;
    zarr_status st = device_buffer(l->device, boxes, n * sizeof *boxes, &list, err);

    if (st != ZARR_OK)
        return st;
    for (uint64_t i = 0; i < n; i++)
        most = boxes[i].n > most ? boxes[i].n : most;
    const struct argument arguments[] = {ARGUMENT(dst), ARGUMENT(from), ARGUMENT(list),
                                         ARGUMENT(count_of), ARGUMENT(most)};

    st = lane_launch(l, src ? KERNEL_COPY_BOXES : KERNEL_FILL_BOXES, arguments, 5,
                     count_of * most, err);
    clReleaseMemObject(list);
    return st;
}

/* All boxes, one launch for each pair of buffers. */
static zarr_status launch_groups(struct lane *l, const zarr_box *x, uint64_t n,
                                 struct k_box *group, uint8_t *done, cl_mem pattern,
                                 zarr_error *err)
{
    zarr_status st = ZARR_OK;

    for (uint64_t i = 0; i < n && st == ZARR_OK; i++) {
        cl_mem dst = x[i].dst.mem.handle, src = pattern ? NULL : x[i].src.mem.handle;
        uint64_t m = 0;

        for (uint64_t k = i; k < n; k++) {
            if (done[k] || x[k].dst.mem.handle != dst ||
                (src && x[k].src.mem.handle != src))
                continue;
            done[k] = 1;
            group[m++] = box_of(&x[k], pattern != NULL);
        }
        if (m > 0)
            st = launch_boxes(l, group, m, dst, src, pattern, err);
    }
    return st;
}

static int boxes_fit(const zarr_box *x, uint64_t n, int fill)
{
    for (uint64_t i = 0; i < n; i++)
        if (x[i].ndim > K_RANK || !on_device(&x[i].dst.mem) ||
            (!fill && !on_device(&x[i].src.mem)))
            return 0;
    return 1;
}

static zarr_status do_boxes(const zarr_box *x, uint64_t n, const void *pattern,
                            void *stream, zarr_error *err)
{
    struct k_box *group = malloc((size_t)n * sizeof *group);
    uint8_t *done = calloc((size_t)n, 1);
    struct lane *l = NULL;
    cl_mem bytes = NULL;
    zarr_status st = ZARR_OK;

    if (!boxes_fit(x, n, pattern != NULL))
        st = host->fail(err, ZARR_ERR_UNSUPPORTED, "opencl: a box that it cannot copy");
    else if (!group || !done)
        st = host->fail(err, ZARR_ERR_NO_MEMORY, "opencl: no memory for boxes");
    if (st == ZARR_OK && pattern)
        st = device_buffer(device_get(), pattern, x[0].item_bytes, &bytes, err);
    if (st == ZARR_OK)
        st = call_begin(stream, &l, err);
    if (l && group && done)
        st = call_end(stream, l, launch_groups(l, x, n, group, done, bytes, err), err);
    if (bytes)
        clReleaseMemObject(bytes);
    free(group);
    free(done);
    return st;
}

static zarr_status memory_copy_boxes(void *self, const zarr_box *boxes, uint64_t n,
                                     void *stream, zarr_error *err)
{
    (void)self;
    return do_boxes(boxes, n, NULL, stream, err);
}

static zarr_status memory_fill_boxes(void *self, const zarr_box *boxes, uint64_t n,
                                     const void *pattern, void *stream, zarr_error *err)
{
    (void)self;
    return do_boxes(boxes, n, pattern, stream, err);
}

static zarr_status memory_copy_box(void *self, const zarr_box *box, void *stream,
                                   zarr_error *err)
{
    (void)self;
    return do_boxes(box, 1, NULL, stream, err);
}

static zarr_status memory_fill_box(void *self, const zarr_box *box, const void *pattern,
                                   void *stream, zarr_error *err)
{
    (void)self;
    return do_boxes(box, 1, pattern, stream, err);
}

/* ---- comparisons -------------------- */

/* What a comparison needs until its stream was waited for. */
struct comparison {
    cl_mem runs, pattern, differs;
    k_u32 *host; /* of differs */
};

static void comparison_free(struct comparison *w)
{
    if (w->runs)
        clReleaseMemObject(w->runs);
    if (w->pattern)
        clReleaseMemObject(w->pattern);
    if (w->differs)
        clReleaseMemObject(w->differs);
    free(w->host);
}

/* The runs of one buffer from number `first` on. */
static zarr_status compare_runs(struct lane *l, struct comparison *w, const zarr_mem *src,
                                uint64_t n, const void *pattern, uint32_t item_bytes,
                                zarr_error *err)
{
    struct k_run *runs = calloc((size_t)n, sizeof *runs);
    cl_mem from = src[0].handle;
    cl_ulong count_of = n, each = 256;
    cl_uint item = item_bytes;
    zarr_status st;

    w->host = calloc((size_t)n, sizeof *w->host);
    if (!runs || !w->host) {
        free(runs);
        return host->fail(err, ZARR_ERR_NO_MEMORY, "opencl: no memory for a list");
    }
    for (uint64_t i = 0; i < n; i++) {
        runs[i] = (struct k_run){.src = src[i].offset, .bytes = src[i].bytes};
    }
    st = device_buffer(l->device, runs, n * sizeof *runs, &w->runs, err);
    free(runs);
    if (st == ZARR_OK)
        st = device_buffer(l->device, pattern, item_bytes, &w->pattern, err);
    if (st == ZARR_OK)
        st = device_buffer(l->device, w->host, n * sizeof *w->host, &w->differs, err);
    if (st != ZARR_OK)
        return st;
    const struct argument arguments[] = {
        ARGUMENT(from),     ARGUMENT(w->pattern), ARGUMENT(w->runs), ARGUMENT(w->differs),
        ARGUMENT(count_of), ARGUMENT(each),       ARGUMENT(item)};

    return lane_launch(l, KERNEL_DIFFER, arguments, 7, count_of * each, err);
}

static zarr_status compare_buffer(struct lane *l, const zarr_mem *src, uint64_t n,
                                  const void *pattern, uint32_t item_bytes,
                                  uint8_t *equal, zarr_error *err)
{
    struct comparison w = {0};
    zarr_status st = compare_runs(l, &w, src, n, pattern, item_bytes, err);
    cl_int rc = CL_SUCCESS;

    if (st == ZARR_OK) /* waits: the answer is bytes, not the kernel's numbers */
        rc = clEnqueueReadBuffer(l->queue, w.differs, CL_TRUE, 0,
                                 (size_t)n * sizeof *w.host, w.host, 0, NULL, NULL);
    count(&opencl_counts.copies);
    for (uint64_t i = 0; i < n && st == ZARR_OK && rc == CL_SUCCESS; i++)
        equal[i] = w.host[i] == 0;
    comparison_free(&w);
    return st == ZARR_OK && rc != CL_SUCCESS ? cl_failed(err, "comparison", rc) : st;
}

static zarr_status memory_equal_list(void *self, const zarr_mem *src, uint64_t n,
                                     const void *pattern, uint32_t item_bytes,
                                     uint8_t *equal, void *stream, zarr_error *err)
{
    struct lane *l;
    zarr_status st = call_begin(stream, &l, err);

    (void)self;
    if (st != ZARR_OK)
        return st;
    for (uint64_t i = 0, k; i < n && st == ZARR_OK; i = k) {
        for (k = i + 1; k < n && src[k].handle == src[i].handle; k++)
            ;
        st = compare_buffer(l, &src[i], k - i, pattern, item_bytes, &equal[i], err);
    }
    return call_end(stream, l, st, err);
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
    return rc == CL_SUCCESS ? ZARR_OK : cl_failed(err, "wait", rc);
}

static zarr_status memory_describe(void *self, int32_t device_id, zarr_device_facts *out,
                                   zarr_error *err)
{
    (void)self;
    if (device_id != 0)
        return host->fail(err, ZARR_ERR_INVALID, "opencl: there is only device 0");
    return device_describe(device_get(), out, err);
}

const zarr_memory_vtable opencl_memory = {
    .struct_size = sizeof opencl_memory,
    .name = "opencl",
    .device_type = ZARR_DEVICE_OPENCL,
    .alignment = 128,
    .alloc = memory_alloc,
    .free = memory_free,
    .copy = memory_copy,
    .copy_box = memory_copy_box,
    .fill_box = memory_fill_box,
    .sync = memory_sync,
    .copy_list = memory_copy_list,
    .copy_boxes = memory_copy_boxes,
    .fill_boxes = memory_fill_boxes,
    .equal_list = memory_equal_list,
    .stream_open = memory_stream_open,
    .stream_close = memory_stream_close,
    .describe = memory_describe,
};
