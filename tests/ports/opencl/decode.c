/*
 * ports/opencl/decode.c - what the decoders share: streams that a kernel decodes, and
 * their statuses.
 */
#include "device.h"

#include <stdlib.h>

zarr_status fail_all(zarr_codec_job *jobs, uint64_t n, zarr_status st)
{
    for (uint64_t i = 0; i < n; i++)
        jobs[i].status = st;
    return st;
}

/* ---- streams and their statuses -------------------- */

static void decoding_free(struct decoding *w)
{
    if (w->statuses)
        clReleaseMemObject(w->statuses);
    free(w->status);
    free(w->job);
    free(w);
}

zarr_status decoding_begin(struct decoding **out, struct device *d, uint64_t n,
                           zarr_error *err)
{
    struct decoding *w = calloc(1, sizeof *w);
    zarr_status st;

    *out = NULL;
    if (!w)
        return host->fail(err, ZARR_ERR_NO_MEMORY, "opencl: no memory for a batch");
    w->n = n;
    w->status = calloc((size_t)n + 1, sizeof *w->status);
    w->job = calloc((size_t)n + 1, sizeof *w->job);
    if (!w->status || !w->job)
        st = host->fail(err, ZARR_ERR_NO_MEMORY, "opencl: no memory for a batch");
    else
        st = device_buffer(d, w->status, (n + 1) * sizeof *w->status, &w->statuses, err);
    if (st == ZARR_OK)
        *out = w;
    else
        decoding_free(w);
    return st;
}

zarr_status decoding_launch(struct lane *l, cl_mem dst, cl_mem src,
                            const struct k_stream *streams, uint64_t n,
                            const struct decoding *w, zarr_error *err)
{
    cl_ulong count_of = n;
    cl_mem list;
    zarr_status st = device_buffer(l->device, streams, n * sizeof *streams, &list, err);

    if (st != ZARR_OK)
        return st;
    const struct argument arguments[] = {ARGUMENT(dst), ARGUMENT(src), ARGUMENT(list),
                                         ARGUMENT(w->statuses), ARGUMENT(count_of)};

    st = lane_launch(l, KERNEL_DECODE, arguments, 5, count_of, err);
    clReleaseMemObject(list);
    return st;
}

zarr_status decoding_read(struct lane *l, struct decoding *w, zarr_error *err)
{
    const cl_int rc =
        clEnqueueReadBuffer(l->queue, w->statuses, CL_FALSE, 0,
                            (size_t)w->n * sizeof *w->status, w->status, 0, NULL, NULL);

    count(&opencl_counts.copies);
    return rc == CL_SUCCESS ? ZARR_OK : cl_failed(err, "statuses", rc);
}

zarr_status decoding_end(struct decoding *w, zarr_codec_job *jobs, const char *codec,
                         zarr_error *err)
{
    static const char *const reasons[] = {
        [K_BAD_INPUT] = "the input ends too early",
        [K_BAD_OFFSET] = "a match begins before the output",
        [K_TOO_LONG] = "the output is too long",
        [K_TOO_SHORT] = "the output is too short",
        [K_BAD_LENGTH] = "the length in the header is wrong",
        [K_BAD_HEADER] = "the header is damaged",
        [K_BAD_SUM] = "the checksum differs",
        [K_BAD_PADDING] = "the count of padding bits is wrong",
        [K_UNSUPPORTED] = "the device does not know the format"};
    zarr_status st = ZARR_OK;

    for (uint64_t i = 0; w && i < w->n; i++) {
        const k_u32 why = w->status[i];

        if (why == K_OK)
            continue;
        jobs[w->job[i]].status = ZARR_ERR_CORRUPT;
        if (st == ZARR_OK) {
            st = host->fail(err, ZARR_ERR_CORRUPT, "%s: %s", codec,
                            why < K_STATUSES ? reasons[why] : "unknown damage");
            if (err)
                err->item = w->job[i];
        }
    }
    if (w)
        decoding_free(w);
    return st;
}

/* ---- jobs by their buffers -------------------- */

int by_buffers(const void *a, const void *b)
{
    const zarr_codec_job *const *x = a, *const *y = b;

    if ((*x)->dst.handle != (*y)->dst.handle)
        return (uintptr_t)(*x)->dst.handle < (uintptr_t)(*y)->dst.handle ? -1 : 1;
    return ((uintptr_t)(*x)->src.handle > (uintptr_t)(*y)->src.handle) -
           ((uintptr_t)(*x)->src.handle < (uintptr_t)(*y)->src.handle);
}

int same_buffers(const zarr_codec_job *a, const zarr_codec_job *b)
{
    return a->dst.handle == b->dst.handle && a->src.handle == b->src.handle;
}
