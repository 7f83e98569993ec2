/*
 * port/blosc_device.c - decodes chunks of blosc that are in the device's memory. Kernels
 * read the headers. The host waits once for what these say, to make the lists of streams
 * and planes; the rest stays on the stream.
 */
#include <stdlib.h>
#include <string.h>

#include "port_int.h"

/* The chunks of a group, and what the headers say. */
struct work {
    struct port_call *call;
    const struct port_item *item;
    uint64_t n;
    struct k_chunk *chunk;
    struct k_frame *frame;
    uint64_t n_blocks, n_streams, most; /* most: bytes of the largest block */
    uint64_t n_zstd, used;              /* streams of frames of zstd; bytes of planes */
    int zstd;                           /* these are decoded, too */
};

static zarr_status stage_copy(struct port_lane *l, const void *from, uint64_t bytes,
                              struct port_block *out, zarr_error *err)
{
    const zarr_status st = port_stage(l, bytes, out, err);

    if (st == ZARR_OK)
        memcpy(out->host, from, (size_t)bytes);
    return st;
}

/* Places for the blocks before they are unshuffled. */
static zarr_status place_chunks(struct work *w, zarr_error *err)
{
    const struct port_place scratch = port_memory_place(&w->call->exec->scratch);
    const uint64_t room = w->call->exec->scratch.bytes;
    uint64_t used = 0;

    for (uint64_t i = 0; i < w->n; i++) {
        zarr_codec_job *job = w->item[i].job;

        if (job->dst.bytes > room - used)
            return port_host->fail(err, ZARR_ERR_UNSUPPORTED,
                                   PORT_NAME ".blosc: the chunks are too long");
        w->chunk[i] = (struct k_chunk){.src = w->item[i].src.at,
                                       .src_bytes = job->src.bytes,
                                       .dst = w->item[i].dst.at,
                                       .dst_bytes = job->dst.bytes,
                                       .scratch = scratch.at + used,
                                       .number = w->item[i].number};
        job->dst_used = job->dst.bytes;
        used += job->dst.bytes;
    }
    w->used = used;
    return ZARR_OK;
}

/* Reads the headers, and waits for them. */
static zarr_status read_headers(const struct work *w, zarr_error *err)
{
    struct port_lane *l = w->call->lane;
    struct port_block chunks, frames;
    zarr_status st = stage_copy(l, w->chunk, w->n * sizeof *w->chunk, &chunks, err);

    if (st == ZARR_OK)
        st = port_result_open(l, w->n * sizeof *w->frame, &frames, err);
    if (st != ZARR_OK)
        return st;
    const struct port_argument a[] = {
        PORT_ARG_BUFFER(w->item[0].src), PORT_ARG_BLOCK(chunks), PORT_ARG_BLOCK(frames),
        PORT_ARG_BLOCK(w->call->pending->status), PORT_ARG_U64(w->n)};

    st = port_launch(l, PORT_BLOSC_OPEN, a, 5, w->n, err);
    if (st == ZARR_OK)
        st = port_result_fetch(l, &frames, err);
    if (st == ZARR_OK)
        st = port_wait(l, err);
    else
        (void)port_wait(l, NULL);
    if (st == ZARR_OK)
        memcpy(w->frame, frames.host, (size_t)w->n * sizeof *w->frame);
    port_result_close(&frames);
    return st;
}

/* Numbers the blocks and streams of all chunks. */
static void number(struct work *w)
{
    for (uint64_t i = 0; i < w->n; i++) {
        struct k_frame *f = &w->frame[i];

        if (f->n_blocks > 0 && !port_blosc_fits(f, w->chunk[i].dst_bytes, w->zstd)) {
            port_note_status(w->call, w->item[i].number, K_UNSUPPORTED);
            f->n_blocks = f->n_streams = 0;
        }
        f->first_block = w->n_blocks;
        f->first_stream = w->n_streams;
        w->n_blocks += f->n_blocks;
        w->n_streams += f->n_streams;
        w->n_zstd += f->how == K_ZSTD ? f->n_streams : 0;
        w->most = f->n_blocks > 0 && f->block_bytes > w->most ? f->block_bytes : w->most;
    }
}

/* Describes the streams of frames of zstd, of which the host has no bytes. */
static void describe_zstd(const struct work *w, struct k_stream *s)
{
    for (uint64_t i = 0; i < w->n; i++) {
        const struct k_frame *f = &w->frame[i];
        const struct k_chunk *c = &w->chunk[i];

        for (uint64_t k = 0; f->how == K_ZSTD && k < f->n_streams; k++) {
            const uint64_t block = k / f->n_splits, done = block * f->block_bytes;
            const uint64_t left = c->dst_bytes - done;
            const uint64_t each =
                left < f->block_bytes ? left : f->block_bytes / f->n_splits;

            *s++ = (struct k_stream){.src = f->first_stream + k,
                                     .dst = c->scratch + done + k % f->n_splits * each,
                                     .dst_bytes = each,
                                     .how = K_ZSTD,
                                     .number = (k_u32)c->number};
        }
    }
}

/* Decodes the streams of zstd in the list of all. */
static zarr_status decode_zstd(const struct work *w, const struct port_block *list,
                               zarr_error *err)
{
    struct port_zstd z = {.src = w->item[0].src,
                          .n = w->n_zstd,
                          .list = list,
                          .scratch = port_memory_rest(&w->call->exec->scratch, w->used)};
    struct k_stream *s;
    zarr_status st;

    if (z.n == 0)
        return ZARR_OK;
    s = malloc((size_t)z.n * sizeof *s);
    if (!s)
        return port_no_memory(err);
    describe_zstd(w, s);
    z.dst = port_memory_place(&z.scratch);
    z.streams = s;
    st = port_zstd_decode(w->call, &z, err);
    free(s);
    return st;
}

static zarr_status decode_listed(const struct work *w, zarr_error *err)
{
    struct port_lane *l = w->call->lane;
    const struct port_place scratch = port_memory_place(&w->call->exec->scratch);
    const struct port_place dst = w->item[0].dst, src = w->item[0].src;
    struct port_block chunks, frames = {0}, streams = {0}, planes = {0};
    zarr_status st = stage_copy(l, w->chunk, w->n * sizeof *w->chunk, &chunks, err);

    if (st == ZARR_OK)
        st = stage_copy(l, w->frame, w->n * sizeof *w->frame, &frames, err);
    if (st == ZARR_OK)
        st = port_stage_empty(l, w->n_streams * sizeof(struct k_stream), &streams, err);
    if (st == ZARR_OK)
        st = port_stage_empty(l, w->n_blocks * sizeof(struct k_planes), &planes, err);
    if (st != ZARR_OK)
        return st;
    const struct port_argument a[] = {PORT_ARG_BUFFER(src),     PORT_ARG_BLOCK(chunks),
                                      PORT_ARG_BLOCK(frames),   PORT_ARG_BLOCK(streams),
                                      PORT_ARG_BLOCK(planes),   PORT_ARG_U64(w->n),
                                      PORT_ARG_U64(w->n_blocks)};
    const struct port_planes all = {
        .list = &planes, .n = w->n_blocks, .most = w->most, .dst = dst, .src = scratch};

    st = port_launch(l, PORT_BLOSC_LIST, a, 7, w->n_blocks, err);
    if (st == ZARR_OK)
        st = decode_zstd(w, &streams, err);
    if (st == ZARR_OK)
        st = port_launch_decode(l, scratch, src, &streams, w->n_streams,
                                &w->call->pending->status, err);
    return st == ZARR_OK ? port_launch_planes(l, PORT_UNSHUFFLE, &all, err) : st;
}

static zarr_status decode_chunks(struct work *w, zarr_error *err)
{
    zarr_status st = place_chunks(w, err);

    if (st == ZARR_OK)
        st = read_headers(w, err);
    if (st != ZARR_OK)
        return st;
    number(w);
    return w->n_blocks > 0 ? decode_listed(w, err) : ZARR_OK;
}

static zarr_status decode_some(struct port_call *c, const struct port_item *x, uint64_t n,
                               int zstd, zarr_error *err)
{
    struct work w = {.call = c,
                     .item = x,
                     .n = n,
                     .zstd = zstd,
                     .chunk = calloc((size_t)n, sizeof *w.chunk),
                     .frame = calloc((size_t)n, sizeof *w.frame)};
    const zarr_status st =
        w.chunk && w.frame ? decode_chunks(&w, err) : port_no_memory(err);

    c->pending->declines = zstd;
    free(w.chunk);
    free(w.frame);
    return st;
}

static zarr_status decode_group(struct port_call *c, const struct port_item *x,
                                uint64_t n, zarr_error *err)
{
    return decode_some(c, x, n, 0, err);
}

static zarr_status decode_zstd_group(struct port_call *c, const struct port_item *x,
                                     uint64_t n, zarr_error *err)
{
    return decode_some(c, x, n, 1, err);
}

zarr_status port_blosc_decode(void *self, zarr_codec_job *jobs, uint64_t n,
                              zarr_codec_exec *exec, zarr_error *err)
{
    static const struct port_codec codec = {
        .name = "blosc", .results = PORT_STATUSES, .group = decode_group};

    return port_run(&codec, self, jobs, n, exec, err);
}

zarr_status port_blosc_zstd_decode(void *self, zarr_codec_job *jobs, uint64_t n,
                                   zarr_codec_exec *exec, zarr_error *err)
{
    static const struct port_codec codec = {
        .name = "blosc", .results = PORT_STATUSES, .group = decode_zstd_group};

    return port_run(&codec, self, jobs, n, exec, err);
}
