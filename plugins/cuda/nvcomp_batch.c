/*
 * cuda/nvcomp_batch.c - a batch of streams: lists of addresses and lengths go up in one
 * copy, results come down in one. The statuses are always asked for, because without them
 * nvCOMP does not look at bounds. Inputs that do not begin where nvCOMP wants them are
 * moved to the scratch memory first. If that is too short for all streams at once, they
 * go in parts that use it one after the other. Thread class: one thread uses a lane.
 */
#include "nvcomp.h"

#include <string.h>

enum {
    SCRATCH_ALIGN = 256
};

static uint64_t round_up(uint64_t bytes)
{
    return (bytes + SCRATCH_ALIGN - 1) / SCRATCH_ALIGN * SCRATCH_ALIGN;
}

uint64_t nvcomp_scratch(enum nvcomp_format f, int encode, uint64_t n, uint64_t most,
                        uint64_t most_in)
{
    const struct nvcomp_way *w = nvcomp_find(f, encode);
    uint64_t temp, moved = 0;

    if (!w)
        return 0;
    temp = nvcomp_temp(f, encode, n, most, NULL);
    if (w->align.input > 1 && n <= (UINT64_C(1) << 44) / (most_in + SCRATCH_ALIGN))
        moved = n * round_up(most_in);
    return round_up(temp) + moved + SCRATCH_ALIGN;
}

/* ---- lists -------------------- */

/* The lists of a batch, each of `n` entries, on both sides. */
struct lists {
    struct port_block block;
    uint64_t *in, *in_bytes, *room, *out; /* on the host */
    CUdeviceptr at;
    uint64_t n;
};

static zarr_status lists_open(struct cuda_lane *l, uint64_t n, struct lists *out,
                              zarr_error *err)
{
    zarr_status st;

    *out = (struct lists){.n = n};
    st = port_stage(&l->port, n * 4 * sizeof(uint64_t), &out->block, err);
    if (st != ZARR_OK)
        return st;
    out->in = out->block.host;
    out->in_bytes = out->in + n;
    out->room = out->in_bytes + n;
    out->out = out->room + n;
    out->at = out->block.device.at;
    return ZARR_OK;
}

/* List k of the device, from entry i on. */
static void *list_at(const struct lists *x, uint64_t k, uint64_t i)
{
    return (void *)(uintptr_t)(x->at + (k * x->n + i) * sizeof(uint64_t));
}

/* Fills the lists. `*scratch_end` is where memory for moved inputs ends; it goes down. */
static zarr_status lists_fill(struct cuda_lane *l, const struct nvcomp_batch *b,
                              const struct nvcomp_way *w, struct lists *x,
                              CUdeviceptr *scratch_end, zarr_error *err)
{
    for (uint64_t i = 0; i < b->n; i++) {
        const struct nvcomp_stream *s = &b->stream[i];

        x->in[i] = s->src;
        x->in_bytes[i] = s->src_bytes;
        x->room[i] = s->room;
        x->out[i] = s->dst;
        if (s->dst % w->align.output)
            return port_host->fail(err, ZARR_ERR_UNSUPPORTED,
                                   "nvCOMP: an output begins at no multiple of %d bytes",
                                   (int)w->align.output);
        if (s->src % w->align.input) {
            const uint64_t need = round_up(s->src_bytes);
            CUresult rc;

            if (*scratch_end - b->scratch < need)
                return port_host->fail(err, ZARR_ERR_UNSUPPORTED,
                                       "nvCOMP: no room to move its inputs");
            *scratch_end -= need;
            x->in[i] = *scratch_end;
            rc =
                cuda.cuMemcpyAsync(*scratch_end, s->src, (size_t)s->src_bytes, l->stream);
            if (rc != CUDA_SUCCESS)
                return device_check(l->device, err, "moving an input", rc);
        }
    }
    return ZARR_OK;
}

/* ---- calls -------------------- */

/* A part of a batch, and the scratch memory of its call. */
struct part {
    uint64_t first, n;
    CUdeviceptr temp;
    uint64_t temp_bytes;
};

static zarr_status call_part(struct cuda_lane *l, const struct nvcomp_batch *b,
                             const struct lists *x, const struct port_block *results,
                             const struct part *p, zarr_error *err)
{
    const struct nvcomp_way *w = nvcomp_find(b->format, b->encode);
    const struct nvcomp_options how = {{0}};
    size_t *lengths =
        (size_t *)(uintptr_t)(results->device.at + p->first * sizeof(uint64_t));
    int *status = (int *)(uintptr_t)(results->device.at + b->n * sizeof(uint64_t) +
                                     p->first * sizeof(int));
    void *temp = (void *)(uintptr_t)p->temp;
    const int rc =
        b->encode ? w->encode(list_at(x, 0, p->first), list_at(x, 1, p->first),
                              (size_t)b->most, (size_t)p->n, temp, (size_t)p->temp_bytes,
                              list_at(x, 3, p->first), lengths, how, status, l->stream)
                  : w->decode(list_at(x, 0, p->first), list_at(x, 1, p->first),
                              list_at(x, 2, p->first), lengths, (size_t)p->n, temp,
                              (size_t)p->temp_bytes, list_at(x, 3, p->first), how, status,
                              l->stream);

    if (rc == 0)
        return ZARR_OK;
    return port_host->fail(
        err, rc == NVCOMP_CUDA_ERROR ? ZARR_ERR_DEVICE : ZARR_ERR_UNSUPPORTED,
        "nvCOMP: result %d", rc);
}

/* The most streams whose memory fits, as a halving of all; 0: not even one's. */
static uint64_t part_streams(const struct cuda_lane *l, const struct nvcomp_batch *b,
                             uint64_t bytes, uint64_t *need)
{
    uint64_t n = b->n;

    for (;; n = (n + 1) / 2) {
        *need = nvcomp_temp(b->format, b->encode, n, b->most, l->stream);
        if (*need > 0 && *need <= bytes)
            return n;
        if (n == 1)
            return 0;
    }
}

static zarr_status call_parts(struct cuda_lane *l, const struct nvcomp_batch *b,
                              const struct lists *x, const struct port_block *results,
                              CUdeviceptr scratch_end, zarr_error *err)
{
    struct part p = {.temp = round_up(b->scratch)};
    uint64_t step, need = 0;
    zarr_status st = ZARR_OK;

    step = part_streams(l, b, scratch_end > p.temp ? scratch_end - p.temp : 0, &need);
    if (step == 0)
        return port_host->fail(err, ZARR_ERR_UNSUPPORTED,
                               "nvCOMP: it needs %llu bytes of memory for a stream",
                               (unsigned long long)need);
    p.temp_bytes = need;
    for (; p.first < b->n && st == ZARR_OK; p.first += step) {
        p.n = b->n - p.first < step ? b->n - p.first : step;
        st = call_part(l, b, x, results, &p, err);
    }
    return st;
}

zarr_status nvcomp_queue(struct cuda_lane *l, const struct nvcomp_batch *b,
                         struct nvcomp_results *out, zarr_error *err)
{
    const struct nvcomp_way *w = nvcomp_find(b->format, b->encode);
    CUdeviceptr scratch_end = b->scratch + b->scratch_bytes;
    struct lists x;
    zarr_status st;

    *out = (struct nvcomp_results){.n = b->n};
    if (!w)
        return port_host->fail(err, ZARR_ERR_UNSUPPORTED, "nvCOMP: it lacks the format");
    st = lists_open(l, b->n, &x, err);
    if (st == ZARR_OK)
        st = lists_fill(l, b, w, &x, &scratch_end, err);
    scratch_end -= scratch_end % SCRATCH_ALIGN;
    if (st == ZARR_OK)
        st = lane_send(l, err);
    if (st == ZARR_OK)
        st = port_result_open(&l->port, b->n * (sizeof(uint64_t) + sizeof(int)),
                              &out->block, err);
    if (st != ZARR_OK)
        return st;
    st = call_parts(l, b, &x, &out->block, scratch_end, err);
    if (st == ZARR_OK)
        st = port_result_fetch(&l->port, &out->block, err);
    if (st == ZARR_OK)
        return ZARR_OK;
    (void)port_wait(&l->port, NULL); /* parts that were queued still write there */
    nvcomp_results_close(out);
    return st;
}

/* ---- results -------------------- */

uint64_t nvcomp_length(const struct nvcomp_results *r, uint64_t i)
{
    return ((const uint64_t *)r->block.host)[i];
}

int nvcomp_status(const struct nvcomp_results *r, uint64_t i)
{
    int status;

    memcpy(&status,
           (const char *)r->block.host + r->n * sizeof(uint64_t) + i * sizeof status,
           sizeof status);
    return status;
}

void nvcomp_results_close(struct nvcomp_results *r)
{
    if (r->block.bytes > 0)
        port_result_close(&r->block);
    r->block.bytes = 0;
}
