/*
 * ports/opencl/zstd.c - a decoder of streams of zstd inside of blosc, as plugins/port
 * asks for it: here by libzstd, on bytes that it fetches from the device. It waits in
 * decode(), which a real one does not do.
 */
#include "device.h"

#include <stdlib.h>
#include <zstd.h>

/* What settle() reports. */
struct failures {
    uint64_t n;
    uint32_t number[];
};

static int zstd_knows(enum port_format f)
{
    return f == PORT_ZSTD;
}

static uint64_t zstd_scratch(enum port_format f, uint64_t n, uint64_t max_out)
{
    (void)f;
    (void)n;
    (void)max_out;
    return 1000; /* to see that it gets them */
}

static int zstd_one(cl_command_queue queue, cl_mem dst, cl_mem src,
                    const struct k_stream *s)
{
    uint8_t *in = malloc((size_t)s->src_bytes), *out = malloc((size_t)s->dst_bytes);
    size_t got = 0;
    int good = in && out &&
               clEnqueueReadBuffer(queue, src, CL_TRUE, s->src, (size_t)s->src_bytes, in,
                                   0, NULL, NULL) == CL_SUCCESS;

    if (good)
        got = ZSTD_decompress(out, (size_t)s->dst_bytes, in, (size_t)s->src_bytes);
    good = good && got == s->dst_bytes &&
           clEnqueueWriteBuffer(queue, dst, CL_TRUE, s->dst, got, out, 0, NULL, NULL) ==
               CL_SUCCESS;
    free(in);
    free(out);
    return good;
}

/* NOLINT(function-size): an entry of the table of a port */
static zarr_status zstd_decode(struct port_lane *l, enum port_format f,
                               struct port_place dst, struct port_place src,
                               const struct k_stream *streams, uint64_t n,
                               const zarr_memory *scratch, void **pending,
                               zarr_error *err)
{
    cl_command_queue queue = ((struct lane *)l)->queue;
    struct failures *all = malloc(sizeof *all + (size_t)n * sizeof all->number[0]);

    if (!all || f != PORT_ZSTD || scratch->bytes < 1000) {
        free(all);
        return port_host->fail(err, ZARR_ERR_UNSUPPORTED, "opencl: no memory for zstd");
    }
    all->n = 0;
    for (uint64_t i = 0; i < n; i++)
        if (!zstd_one(queue, dst.buffer, src.buffer, &streams[i]))
            all->number[all->n++] = streams[i].number;
    *pending = all;
    return ZARR_OK;
}

static void zstd_settle(void *pending, uint32_t *status)
{
    struct failures *all = pending;

    for (uint64_t i = 0; i < all->n; i++)
        status[all->number[i]] = K_BAD_INPUT;
    free(all);
}

static const struct port_decoder decoder = {.knows = zstd_knows,
                                            .scratch = zstd_scratch,
                                            .decode = zstd_decode,
                                            .settle = zstd_settle};
const struct port_decoder *port_decoder = &decoder;
