/*
 * port/zstd.c - the decoder of zstd, for chunks and for streams inside of blosc. What it
 * does not accept goes to the next implementation, which also says what is damaged.
 */
#include <stdlib.h>

#include "port_int.h"

enum {
    BLOCKS = 4, /* of a stream, and one more for each so many bytes */
    BLOCK_BYTES = 16384,
    ALIGNED = 16 /* bytes; where the list of blocks begins */
};

static uint64_t most_blocks(uint64_t decoded)
{
    return BLOCKS + decoded / BLOCK_BYTES;
}

/* Sequences and literals of a stream. */
static uint64_t parts_bytes(uint64_t decoded)
{
    return decoded / K_ZSTD_BYTES * sizeof(k_u64) + (decoded + 7) / 8 * 8;
}

uint64_t port_zstd_scratch(uint64_t n, uint64_t decoded)
{
    const uint64_t each = BLOCKS * sizeof(struct k_zstd_block) + 8;

    if (n > UINT32_MAX || decoded > (uint64_t)1 << 40)
        return UINT64_MAX;
    return n * each + decoded / BLOCK_BYTES * sizeof(struct k_zstd_block) +
           decoded / K_ZSTD_BYTES * sizeof(k_u64) + decoded + ALIGNED;
}

/* Where things are in scratch memory. */
struct layout {
    uint64_t blocks, parts, end;
    uint64_t n_blocks;
};

static zarr_status lay_out(struct layout *at, const struct port_zstd *z, zarr_error *err)
{
    const uint64_t start = port_memory_place(&z->scratch).at;
    uint64_t parts = 0;

    *at = (struct layout){.blocks = (start + ALIGNED - 1) / ALIGNED * ALIGNED};
    for (uint64_t i = 0; i < z->n; i++) {
        at->n_blocks += most_blocks(z->streams[i].dst_bytes);
        parts += parts_bytes(z->streams[i].dst_bytes);
    }
    at->parts = at->blocks + at->n_blocks * sizeof(struct k_zstd_block);
    at->end = at->parts + parts;
    if (at->n_blocks <= UINT32_MAX && at->end - start <= z->scratch.bytes)
        return ZARR_OK;
    return port_host->fail(err, ZARR_ERR_UNSUPPORTED,
                           PORT_NAME ".zstd: the chunks are too long");
}

static void describe(struct k_zstd_chunk *chunks, const struct port_zstd *z,
                     const struct layout *at)
{
    uint64_t parts = at->parts, block = 0;

    for (uint64_t i = 0; i < z->n; i++) {
        const struct k_stream *s = &z->streams[i];

        chunks[i] = (struct k_zstd_chunk){
            .src = s->src,
            .src_bytes = s->src_bytes,
            .dst = s->dst,
            .dst_bytes = s->dst_bytes,
            .literals = parts + s->dst_bytes / K_ZSTD_BYTES * sizeof(k_u64),
            .sequences = parts,
            .first_block = (k_u32)block,
            .most_blocks = (k_u32)most_blocks(s->dst_bytes),
            .number = s->number,
            .stream = (k_u32)s->src};
        parts += parts_bytes(s->dst_bytes);
        block += chunks[i].most_blocks;
    }
}

zarr_status port_zstd_decode(struct port_call *c, const struct port_zstd *z,
                             zarr_error *err)
{
    const struct port_place own = port_memory_place(&z->scratch);
    struct port_block chunks;
    struct layout at;
    zarr_status st = lay_out(&at, z, err);

    if (st == ZARR_OK)
        st = port_stage(c->lane, z->n * sizeof(struct k_zstd_chunk), &chunks, err);
    if (st != ZARR_OK)
        return st;
    describe(chunks.host, z, &at);
    struct port_argument a[] = {PORT_ARG_BUFFER(z->dst),
                                PORT_ARG_BUFFER(z->src),
                                PORT_ARG_BUFFER(own),
                                PORT_ARG_BLOCK(chunks),
                                PORT_ARG_BLOCK(c->pending->status),
                                PORT_ARG_U64(at.blocks),
                                PORT_ARG_U64(z->n)};
    const struct port_argument b[] = {a[2], a[1], a[3], a[4], a[5], a[6]};
    const struct port_argument each[] = {a[2], a[1], a[3],
                                         a[4], a[5], PORT_ARG_U64(at.n_blocks)};

    if (z->list) {
        const struct port_argument take[] = {PORT_ARG_BLOCK(*z->list), a[3], a[6]};

        st = port_launch(c->lane, PORT_ZSTD_TAKE, take, 3, z->n, err);
    }
    if (st == ZARR_OK)
        st = port_launch(c->lane, PORT_ZSTD_OPEN, b, 6, z->n, err);
    if (st == ZARR_OK)
        st = port_launch(c->lane, PORT_ZSTD_LITERALS, each, 6, at.n_blocks * port_lanes(),
                         err);
    if (st == ZARR_OK)
        st = port_launch(c->lane, PORT_ZSTD_SEQUENCES, each, 6,
                         at.n_blocks * port_lanes(), err);
    if (st == ZARR_OK)
        st = port_launch(c->lane, PORT_ZSTD_EXECUTE, a, 7, z->n * port_lanes(), err);
    return st;
}

/* ---- the codec zstd -------------------- */

static zarr_status zstd_group(struct port_call *c, const struct port_item *x, uint64_t n,
                              zarr_error *err)
{
    struct k_stream *streams = calloc((size_t)n, sizeof *streams);
    const struct port_zstd z = {.dst = x[0].dst,
                                .src = x[0].src,
                                .streams = streams,
                                .n = n,
                                .scratch = c->exec->scratch};
    zarr_status st;

    if (!streams)
        return port_no_memory(err);
    c->pending->declines = 1;
    for (uint64_t i = 0; i < n; i++) {
        streams[i] = (struct k_stream){.src = x[i].src.at,
                                       .src_bytes = x[i].job->src.bytes,
                                       .dst = x[i].dst.at,
                                       .dst_bytes = x[i].job->dst.bytes,
                                       .how = K_ZSTD,
                                       .number = (k_u32)x[i].number};
        x[i].job->dst_used = x[i].job->dst.bytes;
    }
    st = port_zstd_decode(c, &z, err);
    free(streams);
    return st;
}

static zarr_status zstd_decode(void *self, zarr_codec_job *jobs, uint64_t n,
                               zarr_codec_exec *exec, zarr_error *err)
{
    static const struct port_codec codec = {
        .name = "zstd", .results = PORT_STATUSES, .group = zstd_group};

    return port_run(&codec, self, jobs, n, exec, err);
}

static zarr_status zstd_bind(void **self, const zarr_codec_spec *spec,
                             const zarr_codec_binding *to, zarr_error *err)
{
    (void)self;
    (void)spec;
    if (to->decoded->exact && to->decoded->n_bytes <= K_ZSTD_MOST)
        return ZARR_OK;
    return port_host->fail(err, ZARR_ERR_UNSUPPORTED,
                           PORT_NAME ".zstd: only chunks of a fixed length up to %d",
                           K_ZSTD_MOST);
}

static uint64_t zstd_scratch(void *self, uint64_t n, uint64_t max_out)
{
    uint64_t decoded;

    (void)self;
    if (__builtin_mul_overflow(n, max_out, &decoded))
        return UINT64_MAX;
    return port_zstd_scratch(n, decoded);
}

const zarr_codec_impl_vtable port_zstd = {
    .struct_size = sizeof port_zstd,
    .caps = ZARR_CODEC_CAN_DECODE | ZARR_CODEC_BATCH | ZARR_CODEC_ASYNC |
            ZARR_CODEC_SAFE | ZARR_CODEC_IF_FASTER | ZARR_CODEC_FOR_V2 |
            ZARR_CODEC_FOR_V3,
    .codec = "zstd",
    .impl = PORT_NAME ".zstd",
    .in_kinds = PORT_KINDS,
    .out_kinds = PORT_KINDS,
    .priority = 4, /* nvCOMP's, which needs trust, has 5 */
    .bind = zstd_bind,
    .scratch = zstd_scratch,
    .decode = zstd_decode,
    .settle = port_settle};
