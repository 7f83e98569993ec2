/*
 * port/lz4.c - the codec lz4: a length, then one block. A device would encode that block
 * slowly: so pieces of it are encoded by themselves, and joined. The codec snappy is
 * decoded like lz4.
 */
#include <string.h>

#include "port_int.h"

#ifndef PORT_PIECE_BYTES /* tests: several pieces of short chunks */
#    define PORT_PIECE_BYTES 65536
#endif
enum {
    PIECE_BYTES = PORT_PIECE_BYTES
};

/* A group of chunks: what the launches have in common. */
struct work {
    struct port_call *call;
    struct port_place scratch;
    struct port_block blocks, pieces, literals, bodies;
    uint64_t n_pieces, used, room;
};

static uint64_t pieces_in(uint64_t bytes)
{
    return bytes / PIECE_BYTES + (bytes % PIECE_BYTES != 0);
}

/* Room for what a piece of so many bytes becomes. */
static uint64_t slot_bytes(uint64_t bytes)
{
    return bytes + bytes / 255 + 16;
}

static uint64_t lz4_scratch(void *self, uint64_t n, uint64_t max_out)
{
    uint64_t bytes = 0;

    if (!self) /* decoding */
        return 0;
    if (max_out > K_ENCODE_MOST ||
        __builtin_mul_overflow(n, pieces_in(max_out) * slot_bytes(PIECE_BYTES), &bytes))
        return UINT64_MAX;
    return bytes;
}

/* ---- lists -------------------- */

static void list_pieces(struct work *w, const struct port_item *x)
{
    const uint64_t bytes = x->job->src.bytes;

    for (uint64_t at = 0; at < bytes; at += PIECE_BYTES) {
        const uint64_t left = bytes - at, n = left < PIECE_BYTES ? left : PIECE_BYTES;

        ((struct k_piece *)w->pieces.host)[w->n_pieces++] =
            (struct k_piece){.src = x->src.at,
                             .dst = w->scratch.at + w->used,
                             .first = (k_u32)at,
                             .end = (k_u32)(at + n)};
        w->used += slot_bytes(n);
    }
}

static void list_blocks(struct work *w, const struct port_item *x, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        ((struct k_joined *)w->blocks.host)[i] =
            (struct k_joined){.src = x[i].src.at,
                              .bytes = x[i].job->src.bytes,
                              .dst = x[i].dst.at,
                              .dst_bytes = x[i].job->dst.bytes,
                              .first_piece = w->n_pieces,
                              .n_pieces = pieces_in(x[i].job->src.bytes),
                              .headed = 1,
                              .number = (k_u32)x[i].number};
        list_pieces(w, &x[i]);
    }
}

/* Stages the lists for n chunks of n_pieces pieces. */
static zarr_status stage_lists(struct work *w, uint64_t n, uint64_t n_pieces,
                               zarr_error *err)
{
    struct port_lane *l = w->call->lane;
    const uint64_t run = sizeof(struct k_run);
    zarr_status st = port_stage(l, n * sizeof(struct k_joined), &w->blocks, err);

    if (st == ZARR_OK)
        st = port_stage_empty(l, (n_pieces + n) * run, &w->literals, err);
    if (st == ZARR_OK)
        st = port_stage_empty(l, (n_pieces + 1) * run, &w->bodies, err);
    return st == ZARR_OK ? port_stage_empty(l, (n_pieces + 1) * sizeof(struct k_piece),
                                            &w->pieces, err)
                         : st;
}

/* Counts the pieces of a group, and checks that they fit. */
static zarr_status count_pieces(const struct work *w, const struct port_item *x,
                                uint64_t n, uint64_t *n_pieces, zarr_error *err)
{
    uint64_t left = w->room / slot_bytes(PIECE_BYTES);

    *n_pieces = 0;
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t bytes = x[i].job->src.bytes;

        if (bytes > K_ENCODE_MOST || pieces_in(bytes) > left)
            return port_host->fail(err, ZARR_ERR_UNSUPPORTED,
                                   PORT_NAME ".lz4: a chunk that it cannot encode");
        left -= pieces_in(bytes);
        *n_pieces += pieces_in(bytes);
    }
    return ZARR_OK;
}

/* ---- launches -------------------- */

static zarr_status launch_join(const struct work *w, const struct port_item *x,
                               uint64_t n, zarr_error *err)
{
    struct port_lane *l = w->call->lane;
    const struct port_argument a[] = {PORT_ARG_BUFFER(x[0].dst),
                                      PORT_ARG_BUFFER(w->scratch),
                                      PORT_ARG_BLOCK(w->blocks),
                                      PORT_ARG_BLOCK(w->pieces),
                                      PORT_ARG_BLOCK(w->literals),
                                      PORT_ARG_BLOCK(w->bodies),
                                      PORT_ARG_BLOCK(w->call->pending->sizes),
                                      PORT_ARG_U64(n)};
    zarr_status st = port_launch(l, PORT_JOIN_BLOCKS, a, 8, n, err);

    if (st == ZARR_OK)
        st = port_launch_runs(l, x[0].dst, x[0].src, &w->literals, w->n_pieces + n,
                              PIECE_BYTES, err);
    return st == ZARR_OK && w->n_pieces > 0
               ? port_launch_runs(l, x[0].dst, w->scratch, &w->bodies, w->n_pieces,
                                  PIECE_BYTES, err)
               : st;
}

static zarr_status encode_group(struct port_call *c, const struct port_item *x,
                                uint64_t n, zarr_error *err)
{
    struct work w = {.call = c,
                     .scratch = port_memory_place(&c->exec->scratch),
                     .room = c->exec->scratch.bytes};
    uint64_t n_pieces;
    zarr_status st = count_pieces(&w, x, n, &n_pieces, err);

    if (st == ZARR_OK)
        st = stage_lists(&w, n, n_pieces, err);
    if (st != ZARR_OK)
        return st;
    list_blocks(&w, x, n);
    const struct port_argument a[] = {PORT_ARG_BUFFER(w.scratch),
                                      PORT_ARG_BUFFER(x[0].src), PORT_ARG_BLOCK(w.pieces),
                                      PORT_ARG_U64(n_pieces)};

    st = port_launch(c->lane, PORT_ENCODE_PIECES, a, 4, n_pieces * port_lanes(), err);
    return st == ZARR_OK ? launch_join(&w, x, n, err) : st;
}

/* ---- decoding, and the tables -------------------- */

static zarr_status lz4_list(struct port_call *c, const struct port_item *x, uint64_t n,
                            struct port_block *list, zarr_error *err)
{
    const uint32_t how = strcmp(c->pending->codec, "lz4") == 0 ? K_LZ4_HEADED : K_SNAPPY;
    const zarr_status st = port_stage(c->lane, n * sizeof(struct k_stream), list, err);

    for (uint64_t i = 0; i < n && st == ZARR_OK; i++)
        ((struct k_stream *)list->host)[i] =
            (struct k_stream){.src = x[i].src.at,
                              .src_bytes = x[i].job->src.bytes,
                              .dst = x[i].dst.at,
                              .dst_bytes = x[i].job->dst.bytes,
                              .how = how,
                              .number = (k_u32)x[i].number};
    return st;
}

static zarr_status lz4_group(struct port_call *c, const struct port_item *x, uint64_t n,
                             zarr_error *err)
{
    struct port_block list;
    const zarr_status st = lz4_list(c, x, n, &list, err);

    if (st != ZARR_OK)
        return st;
    for (uint64_t i = 0; i < n; i++)
        x[i].job->dst_used = x[i].job->dst.bytes;
    return port_launch_decode(c->lane, x[0].dst, x[0].src, &list, n, &c->pending->status,
                              err);
}

static zarr_status lz4_encode(void *self, zarr_codec_job *jobs, uint64_t n,
                              zarr_codec_exec *exec, zarr_error *err)
{
    static const struct port_codec codec = {
        .name = "lz4", .results = PORT_SIZES, .group = encode_group};

    return port_run(&codec, self, jobs, n, exec, err);
}

static zarr_status lz4_bind(void **self, const zarr_codec_spec *spec,
                            const zarr_codec_binding *to, zarr_error *err)
{
    static char encodes;

    (void)spec;
    (void)err;
    *self = to->encode ? &encodes : NULL;
    return ZARR_OK;
}

static zarr_status lz4_decode(void *self, zarr_codec_job *jobs, uint64_t n,
                              zarr_codec_exec *exec, zarr_error *err)
{
    static const struct port_codec codec = {
        .name = "lz4", .results = PORT_STATUSES, .group = lz4_group};

    return port_run(&codec, self, jobs, n, exec, err);
}

const zarr_codec_impl_vtable port_lz4 = {.struct_size = sizeof port_lz4,
                                         .caps = PORT_BOTH_WAYS,
                                         .codec = "lz4",
                                         .impl = PORT_NAME ".lz4",
                                         .in_kinds = PORT_KINDS,
                                         .out_kinds = PORT_KINDS,
                                         .priority = 10,
                                         .bind = lz4_bind,
                                         .scratch = lz4_scratch,
                                         .encode = lz4_encode,
                                         .decode = lz4_decode,
                                         .settle = port_settle};

static zarr_status snappy_decode(void *self, zarr_codec_job *jobs, uint64_t n,
                                 zarr_codec_exec *exec, zarr_error *err)
{
    static const struct port_codec codec = {
        .name = "snappy", .results = PORT_STATUSES, .group = lz4_group};

    return port_run(&codec, self, jobs, n, exec, err);
}

const zarr_codec_impl_vtable port_snappy = {
    .struct_size = sizeof port_snappy,
    .caps = ZARR_CODEC_CAN_DECODE | ZARR_CODEC_BATCH | ZARR_CODEC_ASYNC |
            ZARR_CODEC_SAFE | ZARR_CODEC_FOR_V2 | ZARR_CODEC_FOR_V3,
    .codec = "snappy",
    .impl = PORT_NAME ".snappy",
    .in_kinds = PORT_KINDS,
    .out_kinds = PORT_KINDS,
    .priority = 10,
    .decode = snappy_decode,
    .settle = port_settle};
