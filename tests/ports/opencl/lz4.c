/*
 * ports/opencl/lz4.c - the decoder of the codec lz4: a length, then one block, in the
 * device's memory.
 */
#include "device.h"

#include <stdlib.h>

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
