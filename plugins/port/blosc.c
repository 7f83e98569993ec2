/*
 * port/blosc.c - the decoder of blosc. The host reads the headers of encoded chunks that
 * it has, by the twins of kernels/blosc1.h, and the bytes go to the device as they are.
 * One launch decodes the streams of all chunks, and one unshuffles their blocks. Streams
 * of zstd take the kernels of zstd (zstd.c), or they and those of zlib port_decoder.
 *
 * Format: kernels/blosc1.h.
 */
#include "port_int.h"

#include <stdlib.h>
#include <string.h>

enum {
    FEW_STREAMS = 64, /* more streams than these and one each 256 bytes are refused */
    STREAM_BYTES = 256,
    FEW_ZSTD = 16, /* likewise of zstd, which need more memory */
    ZSTD_BYTES = 4096,
    GAP = 512 /* bytes between two chunks that are copied rather than left out */
};

struct blosc_self {
    uint64_t decoded; /* bytes of a chunk */
    int foreign;      /* streams of port_decoder are decoded, too */
    int zstd;         /* streams of zstd are decoded, too */
    int on_device;    /* the encoded bytes are in its memory (blosc_device.c) */
};

/* A chunk of a batch, in the order of the buffers. */
struct chunk {
    const struct port_item *item;
    struct k_chunk at;
    struct k_frame frame; /* no blocks: nothing to decode */
    int direct;           /* decoded to its place, without planes */
    int copied;           /* stored, and copied to its place from the host */
};

struct work {
    struct port_call *call;
    struct chunk *chunk;
    uint64_t n;
    struct port_place scratch;
    uint64_t used, room; /* bytes of scratch memory */
    zarr_memory *copy_dst, *copy_src;
    uint64_t n_copies;
};

/* ---- headers -------------------- */

static int foreign(uint32_t how)
{
    return how == K_ZLIB || how == K_ZSTD;
}

static enum port_format to_port_format(uint32_t how)
{
    return how == K_ZSTD ? PORT_ZSTD : PORT_ZLIB;
}

static int knows_foreign(enum port_format f)
{
    return port_decoder && port_decoder->knows && port_decoder->knows(f);
}

static uint64_t most_zstd(uint64_t decoded)
{
    return FEW_ZSTD + decoded / ZSTD_BYTES;
}

int port_blosc_fits(const struct k_frame *f, uint64_t decoded, int zstd)
{
    if (f->how == K_ZSTD)
        return zstd && f->n_streams <= most_zstd(decoded);
    return f->n_streams <= FEW_STREAMS + decoded / STREAM_BYTES;
}

/* Reads the header of a chunk on the host: a status of K_. */
static uint32_t read_header(const struct blosc_self *self, const uint8_t *p,
                            const struct k_chunk *at, struct k_frame *f)
{
    const uint32_t st = k_blosc_header(p, at, f);

    if (f->n_blocks == 0 || (st != K_OK && st != K_UNSUPPORTED))
        return st;
    if (foreign(f->how) && self->foreign)
        return knows_foreign(to_port_format(f->how)) &&
                       f->n_streams <= FEW_STREAMS + at->dst_bytes / STREAM_BYTES
                   ? K_OK
                   : K_UNSUPPORTED;
    return port_blosc_fits(f, at->dst_bytes, self->zstd) ? st : K_UNSUPPORTED;
}

static int blosc_accepts(void *self_ptr, const zarr_codec_job *job)
{
    const struct blosc_self *self = self_ptr;
    const struct k_chunk at = {.src_bytes = job->src.bytes, .dst_bytes = self->decoded};
    struct k_frame f;
    uint32_t st;

    if (job->src.bytes > K_BLOSC1_HEADER + self->decoded)
        return 0;
    if (port_reaches(&job->src))
        return 1;
    st = read_header(self, port_host_bytes(&job->src), &at, &f);
    return st != K_UNSUPPORTED;
}

/* ---- encoded bytes go up -------------------- */

static int by_address(const void *a, const void *b)
{
    const struct chunk *const *x = a, *const *y = b;
    const uint8_t *p = port_host_bytes(&(*x)->item->job->src);
    const uint8_t *q = port_host_bytes(&(*y)->item->job->src);

    return (p > q) - (p < q);
}

static void add_copy(struct work *w, const zarr_memory *dst, const zarr_memory *src,
                     uint64_t bytes)
{
    w->copy_dst[w->n_copies] = *dst;
    w->copy_src[w->n_copies] = *src;
    w->copy_dst[w->n_copies].bytes = w->copy_src[w->n_copies].bytes = bytes;
    w->n_copies++;
    w->call->exec->up_bytes += bytes;
    w->call->exec->up_copies++;
}

/* Whether a chunk goes up with the run that ends at `end`, in the same block. */
static int joins(const struct work *w, const zarr_memory *run, uint64_t bytes,
                 const zarr_memory *next)
{
    const uint64_t end = run->offset + bytes;

    return next->handle == run->handle && next->offset >= end &&
           next->offset - end <= GAP && next->offset - end <= w->room - w->used &&
           next->bytes <= w->room - w->used - (next->offset - end);
}

/* Places for the encoded chunks in the scratch memory. Chunks that are neighbours on the
 * host, as those of one shard, go up in one copy. */
static zarr_status place_encoded(struct work *w, struct chunk **order, uint64_t n,
                                 zarr_error *err)
{
    for (uint64_t i = 0, k; i < n; i = k) {
        const zarr_memory *first = &order[i]->item->job->src;
        zarr_memory to = w->call->exec->scratch;
        uint64_t bytes = 0;

        to.offset += w->used;
        for (k = i; k < n; k++) {
            const zarr_memory *src = &order[k]->item->job->src;
            const uint64_t before = w->used;

            if (k > i && !joins(w, first, bytes, src))
                break;
            if (k == i && src->bytes > w->room - w->used)
                return port_host->fail(err, ZARR_ERR_UNSUPPORTED,
                                       PORT_NAME ".blosc: the chunks are too long");
            w->used += src->offset + src->bytes - (first->offset + bytes);
            bytes += w->used - before;
            order[k]->at.src = w->scratch.at + w->used - src->bytes;
        }
        add_copy(w, &to, first, bytes);
    }
    return ZARR_OK;
}

static zarr_status bring_up(struct work *w, zarr_error *err)
{
    struct chunk **order = malloc((size_t)w->n * sizeof(struct chunk *));
    uint64_t n = 0;
    zarr_status st = ZARR_OK;

    if (!order)
        return port_no_memory(err);
    for (uint64_t i = 0; i < w->n; i++)
        if (w->chunk[i].frame.n_blocks > 0 && !w->chunk[i].copied)
            order[n++] = &w->chunk[i];
    qsort(order, (size_t)n, sizeof *order, by_address);
    st = place_encoded(w, order, n, err);
    free(order);
    if (st == ZARR_OK && w->n_copies > 0)
        st = port_copy(w->call->lane, w->copy_dst, w->copy_src, w->n_copies, err);
    return st;
}

/* ---- headers become work -------------------- */

/* A stored chunk goes from the host to its place at once. */
static void copy_stored(struct work *w, struct chunk *c)
{
    zarr_memory from = c->item->job->src;

    from.offset += K_BLOSC1_HEADER;
    add_copy(w, &c->item->job->dst, &from, c->at.dst_bytes);
    c->copied = 1;
}

static void open_chunk(struct work *w, struct chunk *c)
{
    zarr_codec_job *job = c->item->job;
    uint32_t st;

    c->at = (struct k_chunk){
        .src_bytes = job->src.bytes, .dst = c->item->dst.at, .dst_bytes = job->dst.bytes};
    job->dst_used = job->dst.bytes;
    st = read_header(w->call->self, port_host_bytes(&job->src), &c->at, &c->frame);
    if (st != K_OK) {
        c->frame.n_blocks = c->frame.n_streams = 0;
        port_note_status(w->call, c->item->number, st);
        return;
    }
    if (c->frame.n_blocks > 0 && c->frame.how == K_STORED)
        copy_stored(w, c);
    c->direct = !(c->frame.flags & (K_BLOSC_SHUFFLED | K_BLOSC_BITS)) ||
                (c->frame.item_bytes == 1 && !(c->frame.flags & K_BLOSC_BITS));
}

/* Places for the blocks before they are unshuffled. */
static zarr_status place_blocks(struct work *w, zarr_error *err)
{
    for (uint64_t i = 0; i < w->n; i++) {
        struct chunk *c = &w->chunk[i];

        c->at.scratch = c->at.dst;
        if (c->direct || c->copied || c->frame.n_blocks == 0)
            continue;
        w->used = (w->used + 15) / 16 * 16;
        if (w->used > w->room || c->at.dst_bytes > w->room - w->used)
            return port_host->fail(err, ZARR_ERR_UNSUPPORTED,
                                   PORT_NAME ".blosc: the chunks are too long");
        c->at.scratch = w->scratch.at + w->used;
        w->used += c->at.dst_bytes;
    }
    return ZARR_OK;
}

/* ---- streams -------------------- */

/* Streams that one launch decodes, and those of each format that others decode. */
struct streams {
    struct k_stream *list; /* on the host */
    uint64_t n;
};

static int in_launch(const struct work *w, const struct chunk *c, struct port_place dst)
{
    const struct port_place to = c->direct ? c->item->dst : w->scratch;

    return c->frame.n_blocks > 0 && !c->copied && to.buffer == dst.buffer;
}

/* Lists the streams of all chunks that are decoded to a buffer. */
static void list_streams(const struct work *w, struct port_place dst, struct streams *s)
{
    for (uint64_t i = 0; i < w->n; i++) {
        const struct chunk *c = &w->chunk[i];
        const uint8_t *p = port_host_bytes(&c->item->job->src);

        if (!in_launch(w, c, dst))
            continue;
        for (uint64_t k = 0; k < c->frame.n_blocks; k++)
            k_blosc_block(p, &c->at, &c->frame, k, (k_u32)c->item->number,
                          s->list + s->n);
        s->n += c->frame.n_streams;
    }
}

/* Moves the streams of one kind to the front; returns how many there are. */
static uint64_t sort_out(struct k_stream *list, uint64_t n,
                         int (*is)(const struct k_stream *))
{
    uint64_t m = 0;

    for (uint64_t i = 0; i < n; i++)
        if (is(&list[i])) {
            const struct k_stream s = list[i];

            list[i] = list[m];
            list[m++] = s;
        }
    return m;
}

static int is_own(const struct k_stream *s)
{
    return !foreign(s->how);
}

static int is_zstd(const struct k_stream *s)
{
    return s->how == K_ZSTD;
}

zarr_memory port_memory_rest(const zarr_memory *m, uint64_t used)
{
    zarr_memory rest = *m;

    used = (used + 255) / 256 * 256;
    rest.offset += used;
    rest.bytes = rest.bytes > used ? rest.bytes - used : 0;
    return rest;
}

static zarr_status decode_foreign(const struct work *w, enum port_format f,
                                  struct port_place dst, const struct k_stream *list,
                                  uint64_t n, zarr_error *err)
{
    struct port_call *c = w->call;
    const struct blosc_self *self = c->self;
    const struct port_zstd z = {.dst = dst,
                                .src = w->scratch,
                                .streams = list,
                                .n = n,
                                .scratch = port_memory_rest(&c->exec->scratch, w->used)};

    if (n == 0)
        return ZARR_OK;
    if (!self->zstd && c->pending->inner[f])
        return port_host->fail(err, ZARR_ERR_UNSUPPORTED,
                               PORT_NAME ".blosc: the output has several buffers");
    if (self->zstd)
        return port_zstd_decode(c, &z, err);
    return port_decoder->decode(c->lane, f, dst, w->scratch, list, n, &z.scratch,
                                &c->pending->inner[f], err);
}

static zarr_status decode_listed(const struct work *w, struct port_place dst,
                                 struct streams *s, zarr_error *err)
{
    const uint64_t own = sort_out(s->list, s->n, is_own);
    const uint64_t zstd = sort_out(s->list + own, s->n - own, is_zstd);
    struct port_block block;
    zarr_status st = ZARR_OK;

    if (own > 0)
        st = port_stage(w->call->lane, own * sizeof *s->list, &block, err);
    if (st == ZARR_OK && own > 0) {
        memcpy(block.host, s->list, (size_t)own * sizeof *s->list);
        st = port_launch_decode(w->call->lane, dst, w->scratch, &block, own,
                                &w->call->pending->status, err);
    }
    if (st == ZARR_OK)
        st = decode_foreign(w, PORT_ZSTD, dst, s->list + own, zstd, err);
    if (st == ZARR_OK)
        st = decode_foreign(w, PORT_ZLIB, dst, s->list + own + zstd, s->n - own - zstd,
                            err);
    return st;
}

/* Decodes all streams whose output is in a buffer. */
static zarr_status decode_to(const struct work *w, struct port_place dst, zarr_error *err)
{
    struct streams s = {0};
    uint64_t n = 0;
    zarr_status st;

    for (uint64_t i = 0; i < w->n; i++)
        if (in_launch(w, &w->chunk[i], dst))
            n += w->chunk[i].frame.n_streams;
    if (n == 0)
        return ZARR_OK;
    s.list = malloc((size_t)n * sizeof *s.list);
    if (!s.list)
        return port_no_memory(err);
    list_streams(w, dst, &s);
    st = decode_listed(w, dst, &s, err);
    free(s.list);
    return st;
}

static zarr_status decode_all(const struct work *w, zarr_error *err)
{
    zarr_status st = decode_to(w, w->scratch, err);

    for (uint64_t i = 0; i < w->n && st == ZARR_OK; i++) {
        const struct port_place dst = w->chunk[i].item->dst;

        if (dst.buffer != w->scratch.buffer &&
            (i == 0 || dst.buffer != w->chunk[i - 1].item->dst.buffer))
            st = decode_to(w, dst, err);
    }
    return st;
}

/* ---- planes -------------------- */

static int has_planes(const struct chunk *c)
{
    return c->frame.n_blocks > 0 && !c->copied && !c->direct;
}

/* Unshuffles the blocks of `n` chunks that have one output buffer. */
static zarr_status unshuffle(const struct work *w, const struct chunk *c, uint64_t n,
                             zarr_error *err)
{
    struct port_block list;
    uint64_t total = 0, most = 0, at = 0;
    zarr_status st;

    for (uint64_t i = 0; i < n; i++)
        total += has_planes(&c[i]) ? c[i].frame.n_blocks : 0;
    if (total == 0)
        return ZARR_OK;
    st = port_stage(w->call->lane, total * sizeof(struct k_planes), &list, err);
    if (st != ZARR_OK)
        return st;
    for (uint64_t i = 0; i < n; i++)
        for (uint64_t k = 0; has_planes(&c[i]) && k < c[i].frame.n_blocks; k++) {
            struct k_planes *p = (struct k_planes *)list.host + at++;

            k_blosc_planes(&c[i].at, &c[i].frame, k, p);
            most = p->bytes > most ? p->bytes : most;
        }
    const struct port_planes planes = {.list = &list,
                                       .n = total,
                                       .most = most,
                                       .dst = c[0].item->dst,
                                       .src = w->scratch};

    return port_launch_planes(w->call->lane, PORT_UNSHUFFLE, &planes, err);
}

static zarr_status unshuffle_all(const struct work *w, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    for (uint64_t i = 0, k; i < w->n && st == ZARR_OK; i = k) {
        for (k = i + 1;
             k < w->n && w->chunk[k].item->dst.buffer == w->chunk[i].item->dst.buffer;
             k++)
            ;
        st = unshuffle(w, &w->chunk[i], k - i, err);
    }
    return st;
}

/* ---- a batch -------------------- */

static zarr_status work_queue(struct work *w, zarr_error *err)
{
    zarr_status st;

    for (uint64_t i = 0; i < w->n; i++)
        open_chunk(w, &w->chunk[i]);
    st = bring_up(w, err);
    if (st == ZARR_OK)
        st = place_blocks(w, err);
    if (st == ZARR_OK)
        st = decode_all(w, err);
    return st == ZARR_OK ? unshuffle_all(w, err) : st;
}

static zarr_status blosc_host(struct port_call *c, struct port_item *items,
                              zarr_error *err)
{
    struct work w = {.call = c,
                     .n = c->n,
                     .room = c->exec->scratch.bytes,
                     .chunk = calloc((size_t)c->n, sizeof *w.chunk),
                     .copy_dst = malloc((size_t)c->n * sizeof *w.copy_dst),
                     .copy_src = malloc((size_t)c->n * sizeof *w.copy_src)};
    zarr_status st;

    w.scratch = port_memory_place(&c->exec->scratch);
    if (w.chunk && w.copy_dst && w.copy_src) {
        for (uint64_t i = 0; i < c->n; i++)
            w.chunk[i].item = &items[i];
        st = work_queue(&w, err);
    } else {
        st = port_no_memory(err);
    }
    free(w.chunk);
    free(w.copy_dst);
    free(w.copy_src);
    return st;
}

static zarr_status blosc_queue(struct port_call *c, zarr_error *err)
{
    const struct blosc_self *self = c->self;
    struct port_item *items = NULL;
    zarr_status st = port_items(c, &items, err);

    c->pending->declines = self->zstd;

    if (st == ZARR_OK)
        st = blosc_host(c, items, err);
    free(items);
    return st;
}

static zarr_status blosc_decode(void *self, zarr_codec_job *jobs, uint64_t n,
                                zarr_codec_exec *exec, zarr_error *err)
{
    static const struct port_codec codec = {
        .name = "blosc", .results = PORT_STATUSES, .queue = blosc_queue};

    if (((const struct blosc_self *)self)->on_device)
        return port_blosc_zstd_decode(self, jobs, n, exec, err);
    return port_run(&codec, self, jobs, n, exec, err);
}

/* ---- the tables -------------------- */

static zarr_status bind_any(void **out, const zarr_codec_binding *to,
                            struct blosc_self self, zarr_error *err)
{
    struct blosc_self *s = malloc(sizeof *s);

    if (!s)
        return port_no_memory(err);
    *s = self;
    s->decoded = to->decoded->n_bytes;
    s->on_device = to->encoded_type != ZARR_DEVICE_CPU;
    *out = s;
    return ZARR_OK;
}

/* The format inside that metadata names; PORT_N_FORMATS: one that the kernels decode. */
static enum port_format named_format(const zarr_codec_spec *spec)
{
    const char *name = port_host->spec_text(spec, "cname");

    return name && strcmp(name, "zstd") == 0   ? PORT_ZSTD
           : name && strcmp(name, "zlib") == 0 ? PORT_ZLIB
                                               : PORT_N_FORMATS;
}

static zarr_status blosc_bind(void **self, const zarr_codec_spec *spec,
                              const zarr_codec_binding *to, zarr_error *err)
{
    if (named_format(spec) == PORT_N_FORMATS)
        return bind_any(self, to, (struct blosc_self){0}, err);
    return port_host->fail(err, ZARR_ERR_UNSUPPORTED,
                           PORT_NAME ".blosc: no decoder of what is inside");
}

static zarr_status zstd_bind(void **self, const zarr_codec_spec *spec,
                             const zarr_codec_binding *to, zarr_error *err)
{
    if (named_format(spec) == PORT_ZSTD)
        return bind_any(self, to, (struct blosc_self){.zstd = 1}, err);
    return port_host->fail(err, ZARR_ERR_UNSUPPORTED,
                           PORT_NAME ".blosc_zstd: something else is inside");
}

static zarr_status foreign_bind(void **self, const zarr_codec_spec *spec,
                                const zarr_codec_binding *to, zarr_error *err)
{
    const enum port_format f = named_format(spec);

    if (f != PORT_N_FORMATS && knows_foreign(f))
        return bind_any(self, to, (struct blosc_self){.foreign = 1}, err);
    return port_host->fail(err, ZARR_ERR_UNSUPPORTED,
                           PORT_NAME ".blosc_foreign: no decoder of what is inside");
}

/* Encoded chunks, blocks before they are unshuffled, and what port_decoder or the kernels
 * of zstd need. */
static uint64_t blosc_scratch(void *self_ptr, uint64_t n, uint64_t max_out)
{
    const struct blosc_self *self = self_ptr;
    const uint64_t each = self->on_device ? max_out : 2 * max_out + K_BLOSC1_HEADER + 16;
    uint64_t bytes, most = 0;

    if (max_out > K_BLOSC_MOST || __builtin_mul_overflow(n, each, &bytes))
        return UINT64_MAX;
    for (int f = 0; self->foreign && port_decoder->scratch && f < PORT_N_FORMATS; f++) {
        const uint64_t one = port_decoder->scratch((enum port_format)f, n, max_out);

        most = one > most ? one : most;
    }
    if (self->zstd)
        most = port_zstd_scratch(n * most_zstd(max_out), n * max_out);
    if (most > 0 && (__builtin_add_overflow(bytes, most, &bytes) ||
                     __builtin_add_overflow(bytes, 256, &bytes)))
        return UINT64_MAX;
    return bytes;
}

#define BLOSC(table, name, more, bound, from, rank)                                      \
    const zarr_codec_impl_vtable table = {                                               \
        .struct_size = sizeof table,                                                     \
        .caps = ZARR_CODEC_CAN_DECODE | ZARR_CODEC_BATCH | ZARR_CODEC_ASYNC | (more) |   \
                ZARR_CODEC_FOR_V2 | ZARR_CODEC_FOR_V3,                                   \
        .codec = "blosc",                                                                \
        .impl = PORT_NAME name,                                                          \
        .in_kinds = ZARR_MEMORY_BIT(ZARR_DEVICE_CPU) | (from),                           \
        .out_kinds = PORT_KINDS,                                                         \
        .priority = (rank),                                                              \
        .bind = (bound),                                                                 \
        .accepts = blosc_accepts,                                                        \
        .scratch = blosc_scratch,                                                        \
        .decode = blosc_decode,                                                          \
        .settle = port_settle,                                                           \
        .close = free}
BLOSC(port_blosc, ".blosc", ZARR_CODEC_SAFE, blosc_bind, 0, 10);
BLOSC(port_blosc_zstd, ".blosc_zstd", ZARR_CODEC_SAFE | ZARR_CODEC_IF_FASTER, zstd_bind,
      PORT_KINDS, 9);
/* The decoders of port_decoder need not check their input. */
BLOSC(port_blosc_foreign, ".blosc_foreign", 0, foreign_bind, 0, 10);
