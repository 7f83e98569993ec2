/*
 * ports/opencl/shuffle.c - the decoder of the codec shuffle, and unshuffling for blosc.
 */
#include "device.h"

#include <stdlib.h>

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
