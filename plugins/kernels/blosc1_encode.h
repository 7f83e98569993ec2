/*
 * kernels/blosc1_encode.h - chunks of Blosc 1 with LZ4 inside. k_shuffle() has moved the
 * blocks to planes, and k_encode() has encoded each stream to a slot as long as the
 * stream. k_blosc_pack() writes the headers, and lists the runs with which k_copy_runs()
 * brings the streams to their places.
 *
 * Format: see kernels/blosc1.h.
 */
#ifndef K_BLOSC1_ENCODE_H
#define K_BLOSC1_ENCODE_H

/* A chunk to write: `src` are the decoded bytes, before k_shuffle(). The room is 16 bytes
 * more than these. */
struct k_pack_chunk {
    k_u64 src, bytes, dst, block_bytes;
    k_u64 first_stream, n_streams, n_blocks; /* in the list of k_encode() */
    k_u64 first_run;                         /* n_streams of them */
    k_u32 item_bytes, flags;                 /* flags: of the header */
    k_u32 n_splits;                          /* streams of a block, except of a rest */
    k_u32 number;                            /* of the chunk's length */
};

K_FUNCTION void k_put_le32(K_GLOBAL k_u8 *p, k_u64 v)
{
    for (k_u32 k = 0; k < 4; k++)
        p[k] = (k_u8)(v >> 8 * k);
}

/* The length of a stream in the chunk: that of its bytes if they did not get shorter. */
K_FUNCTION k_u64 k_packed_bytes(K_GLOBAL const struct k_stream *s, k_u32 size)
{
    return size > 0 && size < s->src_bytes ? size : s->src_bytes;
}

K_FUNCTION void k_pack_header(K_GLOBAL k_u8 *p, K_GLOBAL const struct k_pack_chunk *c,
                              k_u32 flags, k_u64 length)
{
    p[0] = K_BLOSC_FORMAT;
    p[1] = K_BLOSC_INSIDE;
    p[2] = (k_u8)flags;
    p[3] = (k_u8)c->item_bytes;
    k_put_le32(p + 4, c->bytes);
    k_put_le32(p + 8, c->block_bytes);
    k_put_le32(p + 12, length);
}

/* The table of blocks, the lengths of the streams, and the runs of their bytes. */
K_FUNCTION void k_pack_streams(K_GLOBAL k_u8 *dst, K_GLOBAL const struct k_pack_chunk *c,
                               K_GLOBAL const struct k_stream *streams,
                               K_GLOBAL const k_u32 *sizes, K_GLOBAL struct k_run *runs)
{
    K_GLOBAL k_u8 *p = dst + c->dst;
    k_u64 at = K_BLOSC1_HEADER + 4 * c->n_blocks;

    for (k_u64 i = 0; i < c->n_streams; i++) {
        K_GLOBAL const struct k_stream *s = &streams[i];
        const k_u32 size = sizes[s->number];
        const k_u64 bytes = k_packed_bytes(s, size);

        if (i % c->n_splits == 0)
            k_put_le32(p + K_BLOSC1_HEADER + 4 * (i / c->n_splits), at);
        k_put_le32(p + at, bytes);
        runs[i].src = bytes < s->src_bytes ? s->dst : s->src;
        runs[i].dst = c->dst + at + 4;
        runs[i].bytes = bytes;
        at += 4 + bytes;
    }
}

/* One work item for a chunk. `runs` are from the memory of the streams, whole[i] is from
 * that of the decoded bytes: it has the chunk's bytes if it is stored, which it is if it
 * would be longer than the header and its bytes. */
/* NOLINTNEXTLINE(readability-function-size): a kernel gets no struct of pointers */
K_KERNEL k_blosc_pack(K_GLOBAL k_u8 *dst, K_GLOBAL const struct k_pack_chunk *chunks,
                      K_GLOBAL const struct k_stream *streams,
                      K_GLOBAL const k_u32 *sizes, K_GLOBAL struct k_run *runs,
                      K_GLOBAL struct k_run *whole, K_GLOBAL k_u32 *lengths,
                      k_u64 n_chunks)
{
    const k_u64 at = K_PLACE;

    if (at >= n_chunks)
        return;
    K_GLOBAL const struct k_pack_chunk *c = &chunks[at];
    K_GLOBAL const struct k_stream *s = streams + c->first_stream;
    K_GLOBAL struct k_run *r = runs + c->first_run;
    k_u64 length = K_BLOSC1_HEADER + 4 * (c->n_blocks + c->n_streams);

    for (k_u64 i = 0; i < c->n_streams; i++)
        length += k_packed_bytes(&s[i], sizes[s[i].number]);
    const int stored = length > K_BLOSC1_HEADER + c->bytes;

    if (stored)
        length = K_BLOSC1_HEADER + c->bytes;
    k_pack_header(dst + c->dst, c, stored ? c->flags | K_BLOSC_STORED : c->flags, length);
    if (!stored)
        k_pack_streams(dst, c, s, sizes, r);
    for (k_u64 i = 0; stored && i < c->n_streams; i++)
        r[i].bytes = 0;
    whole[at].src = c->src;
    whole[at].dst = c->dst + K_BLOSC1_HEADER;
    whole[at].bytes = stored ? c->bytes : 0;
    lengths[c->number] = (k_u32)length;
}

#endif
