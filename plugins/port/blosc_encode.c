/*
 * port/blosc_encode.c - the encoder of blosc with lz4 inside, for chunks in the device's
 * memory; and the table of blosc for such chunks. Blocks are shuffled to scratch memory,
 * streams are encoded to slots behind them, and what became of them is copied to the
 * chunks.
 *
 * Format: kernels/blosc1.h. Blocks are smaller than those of c-blosc, so that a device
 * has more streams to encode and decode at a time.
 */
#include <stdlib.h>
#include <string.h>

#include "port_int.h"

enum {
    SPLIT_BYTES = 65536, /* of a stream; LZ4 looks back no farther */
    BLOCK_LEAST = 128,   /* as c-blosc has it */
    LZ4_INSIDE = 1 << 5, /* in the header's flags */
    ITEM_MOST = 255
};

struct blosc_self {
    uint32_t item_bytes, flags;
    uint64_t block_bytes; /* 0: the encoder chooses */
};

/* A call: everything is listed once, in the order of the items. */
struct work {
    struct port_call *call;
    const struct blosc_self *self;
    struct port_place scratch;
    uint64_t slots; /* where they begin: as far behind the planes as these are long */
    struct port_block streams, sizes;
    uint64_t n_streams, used;
};

/* ---- blocks -------------------- */

static uint64_t block_bytes(const struct blosc_self *self, uint64_t bytes)
{
    const uint32_t item = self->item_bytes;
    uint64_t block = self->block_bytes;

    if (block == 0)
        block = item <= K_SPLITS ? (uint64_t)item * SPLIT_BYTES : SPLIT_BYTES;
    block = block < BLOCK_LEAST ? BLOCK_LEAST : block;
    block = block < bytes ? block : bytes;
    return block > item ? block / item * item : block;
}

static uint32_t splits(const struct blosc_self *self, uint64_t block)
{
    const uint32_t item = self->item_bytes;

    return item <= K_SPLITS && block / item >= K_BLOSC_SPLIT_ITEMS ? item : 1;
}

static struct k_pack_chunk describe(const struct work *w, const struct port_item *x)
{
    struct k_pack_chunk c = {.src = x->src.at,
                             .bytes = x->job->src.bytes,
                             .dst = x->dst.at,
                             .item_bytes = w->self->item_bytes,
                             .flags = w->self->flags,
                             .number = (k_u32)x->number};
    const uint64_t block = block_bytes(w->self, c.bytes);

    c.block_bytes = block;
    c.n_splits = splits(w->self, block);
    c.n_blocks = (c.bytes + block - 1) / block;
    c.n_streams = c.bytes / block * c.n_splits + (c.bytes % block ? 1 : 0);
    return c;
}

/* Lists the planes and the streams of a chunk whose planes begin at w->used. */
static void list_chunk(struct work *w, const struct k_pack_chunk *c,
                       struct k_planes *planes)
{
    struct k_stream *s = (struct k_stream *)w->streams.host + w->n_streams;
    const uint64_t to = w->scratch.at + w->used;

    for (uint64_t k = 0, at = 0; k < c->n_blocks; k++, at += c->block_bytes) {
        const uint64_t left = c->bytes - at;
        const uint64_t bytes = left < c->block_bytes ? left : c->block_bytes;
        const uint32_t n = bytes == c->block_bytes ? c->n_splits : 1;

        planes[k] = (struct k_planes){
            .src = c->src + at,
            .dst = to + at,
            .bytes = bytes,
            .item_bytes =
                c->flags & (K_BLOSC_SHUFFLED | K_BLOSC_BITS) ? c->item_bytes : 1,
            .bits = c->flags & K_BLOSC_BITS ? 1 : 0};
        for (uint32_t i = 0; i < n; i++, s++)
            *s = (struct k_stream){.src = to + at + i * (bytes / n),
                                   .src_bytes = bytes / n,
                                   .dst = w->slots + to + at + i * (bytes / n),
                                   .dst_bytes = bytes / n - 1,
                                   .how = K_LZ4,
                                   .number = (k_u32)w->n_streams++};
    }
    w->used += c->bytes;
}

/* ---- launches -------------------- */

/* Shuffles the chunks of a group. */
static zarr_status shuffle_group(struct work *w, const struct port_item *x, uint64_t n,
                                 struct k_pack_chunk *chunks, zarr_error *err)
{
    struct port_block list;
    struct port_planes planes = {.list = &list, .dst = w->scratch, .src = x[0].src};
    uint64_t at = 0;
    zarr_status st;

    for (uint64_t i = 0; i < n; i++)
        planes.n += chunks[i].n_blocks;
    st = port_stage(w->call->lane, planes.n * sizeof(struct k_planes), &list, err);
    if (st != ZARR_OK)
        return st;
    for (uint64_t i = 0; i < n; i++) {
        chunks[i].first_stream = w->n_streams;
        list_chunk(w, &chunks[i], (struct k_planes *)list.host + at);
        at += chunks[i].n_blocks;
        planes.most =
            chunks[i].block_bytes > planes.most ? chunks[i].block_bytes : planes.most;
    }
    return port_launch_planes(w->call->lane, PORT_SHUFFLE, &planes, err);
}

/* Writes the chunks of a group, whose streams are encoded. */
static zarr_status pack_group(struct work *w, const struct port_item *x, uint64_t n,
                              struct k_pack_chunk *chunks, zarr_error *err)
{
    struct port_lane *l = w->call->lane;
    struct port_block list, runs = {0}, whole = {0};
    uint64_t n_runs = 0, most = 0;
    zarr_status st = port_stage(l, n * sizeof *chunks, &list, err);

    for (uint64_t i = 0; i < n; i++) {
        chunks[i].first_run = n_runs;
        n_runs += chunks[i].n_streams;
        most = chunks[i].bytes > most ? chunks[i].bytes : most;
    }
    if (st == ZARR_OK)
        st = port_stage_empty(l, n_runs * sizeof(struct k_run), &runs, err);
    if (st == ZARR_OK)
        st = port_stage_empty(l, n * sizeof(struct k_run), &whole, err);
    if (st != ZARR_OK)
        return st;
    memcpy(list.host, chunks, (size_t)n * sizeof *chunks);
    const struct port_argument a[] = {PORT_ARG_BUFFER(x[0].dst),
                                      PORT_ARG_BLOCK(list),
                                      PORT_ARG_BLOCK(w->streams),
                                      PORT_ARG_BLOCK(w->sizes),
                                      PORT_ARG_BLOCK(runs),
                                      PORT_ARG_BLOCK(whole),
                                      PORT_ARG_BLOCK(w->call->pending->sizes),
                                      PORT_ARG_U64(n)};

    st = port_launch(l, PORT_BLOSC_PACK, a, 8, n, err);
    if (st == ZARR_OK)
        st = port_launch_runs(l, x[0].dst, w->scratch, &runs, n_runs, SPLIT_BYTES, err);
    return st == ZARR_OK ? port_launch_runs(l, x[0].dst, x[0].src, &whole, n, most, err)
                         : st;
}

/* ---- a batch -------------------- */

typedef zarr_status (*group_fn)(struct work *w, const struct port_item *x, uint64_t n,
                                struct k_pack_chunk *chunks, zarr_error *err);

static zarr_status each_group(struct work *w, const struct port_item *x,
                              struct k_pack_chunk *chunks, group_fn fn, zarr_error *err)
{
    const uint64_t n = w->call->n;
    zarr_status st = ZARR_OK;

    for (uint64_t i = 0, k; i < n && st == ZARR_OK; i = k) {
        for (k = i + 1; k < n && port_same_buffers(&x[i], &x[k]); k++)
            ;
        st = fn(w, &x[i], k - i, &chunks[i], err);
    }
    return st;
}

static zarr_status encode_all(struct work *w, const struct port_item *x,
                              struct k_pack_chunk *chunks, zarr_error *err)
{
    struct port_lane *l = w->call->lane;
    uint64_t n = 0;
    zarr_status st;

    for (uint64_t i = 0; i < w->call->n; i++)
        n += chunks[i].n_streams;
    st = port_stage(l, n * sizeof(struct k_stream), &w->streams, err);
    if (st == ZARR_OK)
        st = port_stage_empty(l, n * sizeof(k_u32), &w->sizes, err);
    if (st == ZARR_OK)
        st = each_group(w, x, chunks, shuffle_group, err);
    if (st == ZARR_OK)
        st =
            port_launch_encode(l, w->scratch, w->scratch, &w->streams, n, &w->sizes, err);
    return st == ZARR_OK ? each_group(w, x, chunks, pack_group, err) : st;
}

/* Describes the chunks, and checks that they fit. */
static zarr_status describe_all(struct work *w, const struct port_item *x,
                                struct k_pack_chunk *chunks, zarr_error *err)
{
    const uint64_t room = w->call->exec->scratch.bytes / 2;
    uint64_t sum = 0;

    for (uint64_t i = 0; i < w->call->n; i++) {
        const zarr_codec_job *job = x[i].job;

        if (job->src.bytes == 0 || job->src.bytes > K_BLOSC_MOST ||
            job->dst.bytes < job->src.bytes + K_BLOSC1_HEADER ||
            job->src.bytes > room - sum)
            return port_host->fail(err, ZARR_ERR_UNSUPPORTED,
                                   PORT_NAME ".blosc: a chunk that it cannot encode");
        sum += job->src.bytes;
        chunks[i] = describe(w, &x[i]);
    }
    w->slots = sum;
    return ZARR_OK;
}

static zarr_status blosc_queue(struct port_call *c, zarr_error *err)
{
    struct k_pack_chunk *chunks = calloc((size_t)c->n, sizeof *chunks);
    struct port_item *items = NULL;
    struct work w = {.call = c, .self = c->self};
    zarr_status st;

    if (!chunks)
        return port_no_memory(err);
    w.scratch = port_memory_place(&c->exec->scratch);
    st = port_items(c, &items, err);
    if (st == ZARR_OK)
        st = describe_all(&w, items, chunks, err);
    if (st == ZARR_OK)
        st = encode_all(&w, items, chunks, err);
    free(items);
    free(chunks);
    return st;
}

static zarr_status blosc_encode(void *self, zarr_codec_job *jobs, uint64_t n,
                                zarr_codec_exec *exec, zarr_error *err)
{
    static const struct port_codec codec = {
        .name = "blosc", .results = PORT_SIZES, .queue = blosc_queue};

    return port_run(&codec, self, jobs, n, exec, err);
}

/* ---- the table -------------------- */

static uint32_t shuffle_flags(const char *word)
{
    return strcmp(word, "shuffle") == 0      ? K_BLOSC_SHUFFLED
           : strcmp(word, "bitshuffle") == 0 ? K_BLOSC_BITS
                                             : 0;
}

static zarr_status blosc_bind(void **self, const zarr_codec_spec *spec,
                              const zarr_codec_binding *to, zarr_error *err)
{
    const char *cname = port_host->spec_text(spec, "cname");
    const char *shuffle = port_host->spec_text(spec, "shuffle");
    int64_t clevel = 5, item = to->decoded->item_bytes_hint, block = 0;
    struct blosc_self *s;

    (void)port_host->spec_i64(spec, "clevel", &clevel);
    (void)port_host->spec_i64(spec, "typesize", &item);
    (void)port_host->spec_i64(spec, "blocksize", &block);
    if (to->encode && (!cname || !shuffle || strcmp(cname, "lz4") != 0 || clevel == 0))
        return port_host->fail(err, ZARR_ERR_UNSUPPORTED,
                               PORT_NAME ".blosc: encodes lz4 only");
    if (!to->encode && cname &&
        (strcmp(cname, "zstd") == 0 || strcmp(cname, "zlib") == 0))
        return port_host->fail(err, ZARR_ERR_UNSUPPORTED,
                               PORT_NAME ".blosc_device: no decoder of what is inside");
    s = malloc(sizeof *s);
    if (!s)
        return port_no_memory(err);
    *s = (struct blosc_self){.item_bytes =
                                 item < 1 || item > ITEM_MOST ? 1 : (uint32_t)item,
                             .flags = LZ4_INSIDE | shuffle_flags(shuffle ? shuffle : ""),
                             .block_bytes = block > 0 ? (uint64_t)block : 0};
    *self = s;
    return ZARR_OK;
}

/* Planes, and slots behind them. */
static uint64_t blosc_scratch(void *self, uint64_t n, uint64_t max_out)
{
    uint64_t bytes;

    (void)self;
    return max_out > K_BLOSC_MOST || __builtin_mul_overflow(n, 2 * max_out, &bytes)
               ? UINT64_MAX
               : bytes;
}

const zarr_codec_impl_vtable port_blosc_device = {.struct_size = sizeof port_blosc_device,
                                                  .caps = PORT_BOTH_WAYS,
                                                  .codec = "blosc",
                                                  .impl = PORT_NAME ".blosc_device",
                                                  .in_kinds = PORT_KINDS,
                                                  .out_kinds = PORT_KINDS,
                                                  .priority = 10,
                                                  .bind = blosc_bind,
                                                  .scratch = blosc_scratch,
                                                  .encode = blosc_encode,
                                                  .decode = port_blosc_decode,
                                                  .settle = port_settle,
                                                  .close = free};
