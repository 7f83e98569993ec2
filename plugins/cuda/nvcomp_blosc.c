/*
 * cuda/nvcomp_blosc.c - streams of zstd and zlib inside of chunks of Blosc, for
 * plugins/port. A stream that nvCOMP cannot do makes its chunk one for the CPU. Nothing
 * looks at these streams before: Blosc writes each as one frame.
 * Thread class: a call uses one lane.
 */
#include "nvcomp.h"

#include <stdlib.h>

enum {
    ZLIB_AROUND = 6, /* bytes around a stream of deflate */
    ZLIB_BEFORE = 2,
    USUAL_STREAM = 64 * 1024
};

static enum nvcomp_format to_nvcomp_format(enum port_format f)
{
    return f == PORT_ZSTD ? NVCOMP_ZSTD : NVCOMP_DEFLATE;
}

static int inner_knows(enum port_format f)
{
    return nvcomp_start(NULL) == ZARR_OK && nvcomp_find(to_nvcomp_format(f), 0) != NULL;
}

/* For streams of a usual length. If there are more of them, they go in parts. */
static uint64_t inner_scratch(enum port_format f, uint64_t n, uint64_t max_out)
{
    const uint64_t most = max_out < USUAL_STREAM ? max_out : USUAL_STREAM;
    const uint64_t each = most ? (max_out + most - 1) / most : 1;
    uint64_t bytes = 0;

    for (int32_t i = 0; i < driver_devices() && bytes == 0; i++) {
        struct cuda_device *d = device_usable(i);
        struct place was;

        if (!d || n > UINT64_MAX / each || device_enter(d, &was, NULL) != ZARR_OK)
            continue;
        bytes = nvcomp_scratch(to_nvcomp_format(f), 0, n * each, most, most);
        device_leave(&was);
    }
    return bytes;
}

struct inner_pending {
    struct nvcomp_results results;
    uint64_t n;
    struct inner_stream {
        uint64_t bytes;
        uint32_t number;
    } stream[];
};

static void inner_free(struct inner_pending *p)
{
    nvcomp_results_close(&p->results);
    free(p);
}

/* Fills the list for nvCOMP. UNSUPPORTED: a stream is shorter than its form. */
static zarr_status inner_streams(enum port_format f, const struct k_stream *from,
                                 struct inner_pending *p, struct nvcomp_batch *b,
                                 struct nvcomp_stream *to, zarr_error *err)
{
    for (uint64_t i = 0; i < p->n; i++) {
        to[i] = (struct nvcomp_stream){.src = from[i].src,
                                       .dst = from[i].dst,
                                       .src_bytes = from[i].src_bytes,
                                       .room = from[i].dst_bytes};
        if (f == PORT_ZLIB) {
            if (to[i].src_bytes <= ZLIB_AROUND)
                return port_host->fail(err, ZARR_ERR_UNSUPPORTED,
                                       "nvCOMP: a stream of zlib is too short");
            to[i].src += ZLIB_BEFORE;
            to[i].src_bytes -= ZLIB_AROUND;
        }
        b->most = to[i].room > b->most ? to[i].room : b->most;
        p->stream[i] = (struct inner_stream){to[i].room, from[i].number};
    }
    return ZARR_OK;
}

/* NOLINTNEXTLINE(readability-function-size): an entry of struct port_decoder */
static zarr_status inner_decode(struct port_lane *l, enum port_format f,
                                struct port_place dst, struct port_place src,
                                const struct k_stream *streams, uint64_t n,
                                const zarr_memory *scratch, void **pending,
                                zarr_error *err)
{
    struct nvcomp_batch b = {.format = to_nvcomp_format(f),
                             .n = n,
                             .scratch = device_address(scratch),
                             .scratch_bytes = scratch->bytes};
    struct inner_pending *p = NULL;
    struct nvcomp_stream *list = calloc((size_t)n, sizeof *list);
    zarr_status st = ZARR_ERR_NO_MEMORY;

    (void)dst; /* all memory of a device is one range of addresses */
    (void)src;
    if (n <= SIZE_MAX / 2 / sizeof *p->stream)
        p = calloc(1, sizeof *p + (size_t)n * sizeof *p->stream);
    if (!p || !list) {
        free(p);
        free(list);
        return port_host->fail(err, st, "nvCOMP: no memory for a batch");
    }
    p->n = n;
    st = inner_streams(f, streams, p, &b, list, err);
    b.stream = list;
    if (st == ZARR_OK)
        st = nvcomp_queue((struct cuda_lane *)l, &b, &p->results, err);
    free(list);
    if (st != ZARR_OK) {
        inner_free(p);
        return st;
    }
    *pending = p; /* moved */
    return ZARR_OK;
}

static void inner_settle(void *pending, uint32_t *status)
{
    struct inner_pending *p = pending;

    for (uint64_t i = 0; i < p->n; i++)
        if (nvcomp_status(&p->results, i) != 0 ||
            nvcomp_length(&p->results, i) != p->stream[i].bytes)
            status[p->stream[i].number] = K_UNSUPPORTED;
    inner_free(p);
}

static const struct port_decoder nvcomp_decoder = {.knows = inner_knows,
                                                   .scratch = inner_scratch,
                                                   .decode = inner_decode,
                                                   .settle = inner_settle};
const struct port_decoder *port_decoder = &nvcomp_decoder;
