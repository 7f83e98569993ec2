/*
 * ports/opencl/decode.c - decoders of lz4 and shuffle for chunks that are on the device.
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

/* ---- lz4 -------------------- */

static int by_buffers(const void *a, const void *b)
{
    const zarr_codec_job *const *x = a, *const *y = b;

    if ((*x)->dst.handle != (*y)->dst.handle)
        return (uintptr_t)(*x)->dst.handle < (uintptr_t)(*y)->dst.handle ? -1 : 1;
    return ((uintptr_t)(*x)->src.handle > (uintptr_t)(*y)->src.handle) -
           ((uintptr_t)(*x)->src.handle < (uintptr_t)(*y)->src.handle);
}

static int same_buffers(const zarr_codec_job *a, const zarr_codec_job *b)
{
    return a->dst.handle == b->dst.handle && a->src.handle == b->src.handle;
}

/* A kernel knows one buffer on each side: one launch for each pair. */
static zarr_status lz4_launch(struct lane *l, zarr_codec_job *jobs,
                              zarr_codec_job **order, struct k_stream *streams,
                              struct decoding *w, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    for (uint64_t i = 0; i < w->n; i++)
        order[i] = &jobs[i];
    qsort(order, (size_t)w->n, sizeof(zarr_codec_job *), by_buffers);
    for (uint64_t i = 0; i < w->n; i++) {
        zarr_codec_job *j = order[i];

        w->job[i] = (uint64_t)(j - jobs);
        j->dst_used = j->dst.bytes;
        streams[i] = (struct k_stream){.src = j->src.offset,
                                       .src_bytes = j->src.bytes,
                                       .dst = j->dst.offset,
                                       .dst_bytes = j->dst.bytes,
                                       .how = K_LZ4_HEADED,
                                       .number = (k_u32)i};
    }
    for (uint64_t i = 0, k; i < w->n && st == ZARR_OK; i = k) {
        for (k = i + 1; k < w->n && same_buffers(order[i], order[k]); k++)
            ;
        st = decoding_launch(l, order[i]->dst.handle, order[i]->src.handle, &streams[i],
                             k - i, w, err);
    }
    return st == ZARR_OK ? decoding_read(l, w, err) : st;
}

static zarr_status lz4_queue(struct lane *l, zarr_codec_job *jobs, uint64_t n,
                             struct decoding **out, zarr_error *err)
{
    zarr_codec_job **order = malloc((size_t)n * sizeof(zarr_codec_job *));
    struct k_stream *streams = malloc((size_t)n * sizeof *streams);
    zarr_status st;

    *out = NULL;
    if (!order || !streams)
        st = host->fail(err, ZARR_ERR_NO_MEMORY, "opencl: no memory for a batch");
    else
        st = decoding_begin(out, l->device, n, err);
    if (*out)
        st = lz4_launch(l, jobs, order, streams, *out, err);
    free(order);
    free(streams);
    return st;
}

static zarr_status lz4_decode(void *self, zarr_codec_job *jobs, uint64_t n,
                              zarr_codec_exec *exec, zarr_error *err)
{
    struct decoding *w = NULL;
    struct lane *l = NULL;
    zarr_status st = call_begin(exec->stream, &l, err), end;

    (void)self;
    if (st != ZARR_OK)
        return fail_all(jobs, n, st);
    st = call_end(exec->stream, l, lz4_queue(l, jobs, n, &w, err), err);
    if (st == ZARR_OK && exec->stream) {
        exec->pending = w; /* moved */
        return ZARR_OK;
    }
    if (exec->stream)
        (void)clFinish(l->queue); /* what was queued still writes its statuses */
    end = decoding_end(w, jobs, "lz4", st == ZARR_OK ? err : NULL);
    return st == ZARR_OK ? end : fail_all(jobs, n, st);
}

static zarr_status lz4_settle(void *self, zarr_codec_job *jobs, uint64_t n,
                              zarr_codec_exec *exec, zarr_error *err)
{
    (void)self;
    (void)n;
    return decoding_end(exec->pending, jobs, "lz4", err);
}

const zarr_codec_impl_vtable opencl_lz4 = {
    .struct_size = sizeof opencl_lz4,
    .caps = ZARR_CODEC_CAN_DECODE | ZARR_CODEC_BATCH | ZARR_CODEC_ASYNC |
            ZARR_CODEC_SAFE | ZARR_CODEC_FOR_V2 | ZARR_CODEC_FOR_V3,
    .codec = "lz4",
    .impl = "opencl.lz4",
    .in_kinds = ZARR_MEMORY_BIT(ZARR_DEVICE_OPENCL),
    .out_kinds = ZARR_MEMORY_BIT(ZARR_DEVICE_OPENCL),
    .priority = 10,
    .decode = lz4_decode,
    .settle = lz4_settle};

/* ---- shuffle -------------------- */

zarr_status unshuffle_launch(struct lane *l, cl_mem dst, cl_mem src,
                             const struct k_planes *parts, uint64_t n, zarr_error *err)
{
    cl_ulong count_of = n, each = 256;
    cl_mem list;
    zarr_status st = device_buffer(l->device, parts, n * sizeof *parts, &list, err);

    if (st != ZARR_OK)
        return st;
    const struct argument arguments[] = {ARGUMENT(dst), ARGUMENT(src), ARGUMENT(list),
                                         ARGUMENT(count_of), ARGUMENT(each)};

    st = lane_launch(l, KERNEL_UNSHUFFLE, arguments, 5, count_of * each, err);
    clReleaseMemObject(list);
    return st;
}

static zarr_status shuffle_bind(void **self, const zarr_codec_spec *spec,
                                const zarr_codec_binding *to, zarr_error *err)
{
    int64_t *item_bytes = malloc(sizeof *item_bytes);

    (void)to;
    if (!item_bytes)
        return host->fail(err, ZARR_ERR_NO_MEMORY, "opencl: no memory for a codec");
    *item_bytes = 4; /* the default of numcodecs */
    (void)host->spec_i64(spec, "elementsize", item_bytes);
    *self = item_bytes;
    return ZARR_OK;
}

static zarr_status shuffle_queue(struct lane *l, k_u32 item_bytes, zarr_codec_job *jobs,
                                 uint64_t n, struct k_planes *parts, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    for (uint64_t i = 0, k; i < n && st == ZARR_OK; i = k) {
        for (k = i; k < n && same_buffers(&jobs[i], &jobs[k]); k++) {
            parts[k] = (struct k_planes){.src = jobs[k].src.offset,
                                         .dst = jobs[k].dst.offset,
                                         .bytes = jobs[k].src.bytes,
                                         .item_bytes = item_bytes};
            jobs[k].dst_used = jobs[k].src.bytes;
        }
        st = unshuffle_launch(l, jobs[i].dst.handle, jobs[i].src.handle, &parts[i], k - i,
                              err);
    }
    return st;
}

static char shuffle_works; /* what is pending of a call: nothing to free */

static zarr_status shuffle_decode(void *self, zarr_codec_job *jobs, uint64_t n,
                                  zarr_codec_exec *exec, zarr_error *err)
{
    const int64_t *item_bytes = self;
    struct k_planes *parts = malloc((size_t)n * sizeof *parts);
    struct lane *l = NULL;
    zarr_status st;

    if (!parts)
        st = host->fail(err, ZARR_ERR_NO_MEMORY, "opencl: no memory for a batch");
    else
        st = call_begin(exec->stream, &l, err);
    for (uint64_t i = 0; i < n && st == ZARR_OK; i++)
        if (jobs[i].src.bytes > jobs[i].dst.bytes)
            st = host->fail(err, ZARR_ERR_CORRUPT, "shuffle: the chunk is too long");
    if (l) {
        if (st == ZARR_OK)
            st = shuffle_queue(l, (k_u32)*item_bytes, jobs, n, parts, err);
        st = call_end(exec->stream, l, st, err);
    }
    free(parts);
    if (st != ZARR_OK)
        return fail_all(jobs, n, st);
    if (exec->stream)
        exec->pending = &shuffle_works;
    return ZARR_OK;
}

/* Unshuffling finds no damage. */
static zarr_status shuffle_settle(void *self, zarr_codec_job *jobs, uint64_t n,
                                  zarr_codec_exec *exec, zarr_error *err)
{
    (void)self;
    (void)jobs;
    (void)n;
    (void)exec;
    (void)err;
    return ZARR_OK;
}

const zarr_codec_impl_vtable opencl_shuffle = {
    .struct_size = sizeof opencl_shuffle,
    .caps = ZARR_CODEC_CAN_DECODE | ZARR_CODEC_BATCH | ZARR_CODEC_ASYNC |
            ZARR_CODEC_SAFE | ZARR_CODEC_FOR_V2 | ZARR_CODEC_FOR_V3,
    .codec = "shuffle",
    .impl = "opencl.shuffle",
    .in_kinds = ZARR_MEMORY_BIT(ZARR_DEVICE_OPENCL),
    .out_kinds = ZARR_MEMORY_BIT(ZARR_DEVICE_OPENCL),
    .priority = 10,
    .bind = shuffle_bind,
    .decode = shuffle_decode,
    .settle = shuffle_settle,
    .close = free};
