/*
 * kernels/blosc1.h - chunks of Blosc 1 become lists of streams for k_decode() and of
 * planes for k_unshuffle(). k_blosc_open() reads the headers. The host, or a scan, then
 * numbers the blocks and streams of all chunks, and k_blosc_list() describes them. All
 * offsets of a chunk are checked: a stream that cannot be decoded is listed as K_DAMAGED.
 *
 * Format: README_CHUNK_FORMAT.rst of c-blosc; the offsets of blocks count from the start
 * of the chunk. Inside are lz4, lz4hc, blosclz, snappy or zstd. The last is decoded by
 * k_zstd_open() and the kernels after it; other formats are K_UNSUPPORTED.
 */
#ifndef K_BLOSC1_H
#define K_BLOSC1_H

enum {
    K_BLOSC1_HEADER = 16,
    K_BLOSC_FORMAT = 2, /* the first byte */
    K_BLOSC_INSIDE = 1, /* the second: the version of the format inside */
    K_BLOSC_SHUFFLED = 0x01,
    K_BLOSC_STORED = 0x02,
    K_BLOSC_BITS = 0x04,
    K_BLOSC_RESERVED = 0x08,
    K_BLOSC_NO_SPLIT = 0x10,
    K_BLOSC_SPLIT_ITEMS = 128, /* blocks of fewer elements are one stream */
    K_BLOSC_MOST = 0x7FFFFFFF - 16,
    K_BLOSC_BLOCK_MOST = (0x7FFFFFFF - 4 * 255) / 3 /* c-blosc allocates three blocks */
};

/* A chunk: its bytes, the place of its output, and that of its blocks before unshuffling.
 * The two may be equal if the chunk is not shuffled. */
struct k_chunk {
    k_u64 src, src_bytes, dst, dst_bytes, scratch;
    k_u64 number; /* place of its status */
};

/* What a header says. A chunk without blocks to decode (empty, or damaged) has none; one
 * that is stored has one block, of one stream. */
struct k_frame {
    k_u64 n_blocks, n_streams;       /* of the chunk */
    k_u64 first_block, first_stream; /* set by k_blosc_number() or the host */
    k_u64 block_bytes;
    k_u32 n_splits; /* streams of a block, except of a shorter one at the end */
    k_u32 item_bytes, flags, how;
};

K_FUNCTION k_u64 k_le32(K_GLOBAL const k_u8 *p)
{
    return (k_u64)p[0] | (k_u64)p[1] << 8 | (k_u64)p[2] << 16 | (k_u64)p[3] << 24;
}

K_FUNCTION k_u32 k_blosc_how(k_u32 flags)
{
    const k_u32 inside = flags >> 5;

    if (flags & K_BLOSC_STORED)
        return K_STORED;
    return inside == 0   ? K_BLOSCLZ
           : inside == 1 ? K_LZ4
           : inside == 2 ? K_SNAPPY
           : inside == 3 ? K_ZLIB
           : inside == 4 ? K_ZSTD
                         : K_DAMAGED;
}

/* The blocks of a chunk that is not stored. */
K_FUNCTION k_u32 k_blosc_blocks(K_GLOBAL const struct k_chunk *c,
                                K_GLOBAL struct k_frame *f)
{
    const k_u64 block = f->block_bytes;
    const int rest = block > 0 && c->dst_bytes % block != 0;
    k_u64 n;

    if (block == 0 || block > c->dst_bytes || block > K_BLOSC_BLOCK_MOST)
        return K_BAD_HEADER;
    n = c->dst_bytes / block + (rest ? 1 : 0);
    if (n > (c->src_bytes - K_BLOSC1_HEADER) / 4)
        return K_BAD_INPUT;
    if (!(f->flags & K_BLOSC_NO_SPLIT) && f->item_bytes <= K_SPLITS &&
        block / f->item_bytes >= K_BLOSC_SPLIT_ITEMS)
        f->n_splits = f->item_bytes;
    if (n > (rest ? 1 : 0) && block % f->n_splits != 0)
        return K_BAD_HEADER;
    f->n_blocks = n;
    f->n_streams = (n - (rest ? 1 : 0)) * f->n_splits + (rest ? 1 : 0);
    return K_OK;
}

/* K_UNSUPPORTED, with the blocks: other code can decode the streams. */
K_FUNCTION k_u32 k_blosc_inside(K_GLOBAL const struct k_chunk *c,
                                K_GLOBAL struct k_frame *f)
{
    const k_u32 st = f->how == K_DAMAGED ? K_UNSUPPORTED : k_blosc_blocks(c, f);

    return st == K_OK && f->how == K_ZLIB ? K_UNSUPPORTED : st;
}

K_FUNCTION k_u32 k_blosc_header(K_GLOBAL const k_u8 *p, K_GLOBAL const struct k_chunk *c,
                                K_GLOBAL struct k_frame *f)
{
    f->n_blocks = f->n_streams = f->block_bytes = 0;
    f->first_block = f->first_stream = 0;
    f->n_splits = f->item_bytes = 1;
    f->flags = f->how = 0;
    if (c->src_bytes < K_BLOSC1_HEADER)
        return K_BAD_INPUT;
    f->flags = p[2];
    f->item_bytes = p[3];
    f->how = k_blosc_how(f->flags);
    f->block_bytes = k_le32(p + 8);
    if (p[0] > K_BLOSC_FORMAT || (f->flags & (K_BLOSC_SHUFFLED | K_BLOSC_BITS)) ==
                                     (K_BLOSC_SHUFFLED | K_BLOSC_BITS))
        return K_UNSUPPORTED; /* a chunk of Blosc 2 */
    if (p[0] != K_BLOSC_FORMAT || f->item_bytes == 0)
        return K_BAD_HEADER;
    if (k_le32(p + 4) != c->dst_bytes || c->dst_bytes > K_BLOSC_MOST ||
        k_le32(p + 12) != c->src_bytes)
        return K_BAD_LENGTH;
    if (f->how == K_STORED) {
        f->block_bytes = c->dst_bytes;
        f->n_blocks = f->n_streams = c->dst_bytes > 0;
        return c->src_bytes - K_BLOSC1_HEADER == c->dst_bytes ? K_OK : K_BAD_LENGTH;
    }
    if (c->dst_bytes == 0)
        return K_OK;
    if (p[1] != K_BLOSC_INSIDE || (f->flags & K_BLOSC_RESERVED))
        return K_BAD_HEADER;
    return k_blosc_inside(c, f);
}

/* One work item for a chunk. */
K_KERNEL k_blosc_open(K_GLOBAL const k_u8 *src, K_GLOBAL const struct k_chunk *chunks,
                      K_GLOBAL struct k_frame *frames, K_GLOBAL k_u32 *status,
                      k_u64 n_chunks)
{
    const k_u64 at = K_PLACE;

    if (at >= n_chunks)
        return;
    const k_u32 st = k_blosc_header(src + chunks[at].src, &chunks[at], &frames[at]);

    if (st == K_OK)
        return;
    frames[at].n_blocks = frames[at].n_streams = 0;
    status[chunks[at].number] = st;
}

/* One work item for all chunks: numbers their blocks and streams one after the other.
 * totals[0] and totals[1] become the sums. */
K_KERNEL k_blosc_number(K_GLOBAL struct k_frame *frames, K_GLOBAL k_u64 *totals,
                        k_u64 n_chunks)
{
    k_u64 blocks = 0, streams = 0;

    if (K_PLACE != 0)
        return;
    for (k_u64 i = 0; i < n_chunks; i++) {
        frames[i].first_block = blocks;
        frames[i].first_stream = streams;
        blocks += frames[i].n_blocks;
        streams += frames[i].n_streams;
    }
    totals[0] = blocks;
    totals[1] = streams;
}

/* The last chunk whose first block is `block` or an earlier one. */
K_FUNCTION k_u64 k_blosc_chunk(K_GLOBAL const struct k_frame *frames, k_u64 n,
                               k_u64 block)
{
    k_u64 low = 0, high = n;

    while (high - low > 1) {
        const k_u64 mid = low + (high - low) / 2;

        if (frames[mid].first_block <= block)
            low = mid;
        else
            high = mid;
    }
    return low;
}

/* Lists the streams of block k. `p` has the chunk's bytes. */
K_FUNCTION void k_blosc_block(K_GLOBAL const k_u8 *p, K_GLOBAL const struct k_chunk *c,
                              K_GLOBAL const struct k_frame *f, k_u64 k, k_u32 number,
                              K_GLOBAL struct k_stream *streams)
{
    const k_u64 done = k * f->block_bytes;
    const int rest = c->dst_bytes - done < f->block_bytes;
    const k_u64 bytes = rest ? c->dst_bytes - done : f->block_bytes;
    const k_u32 n = rest ? 1 : f->n_splits;
    const k_u64 table = K_BLOSC1_HEADER + 4 * f->n_blocks;
    k_u64 at = f->how == K_STORED ? 0 : k_le32(p + K_BLOSC1_HEADER + 4 * k);
    int good = f->how == K_STORED || at >= table;

    for (k_u32 i = 0; i < n; i++) {
        K_GLOBAL struct k_stream *s = &streams[k * f->n_splits + i];
        k_u64 encoded = 0;

        if (f->how == K_STORED) {
            at = K_BLOSC1_HEADER - 4;
            encoded = c->dst_bytes;
        } else if (good && at + 4 <= c->src_bytes) {
            encoded = k_le32(p + at);
        }
        good = good && encoded > 0 && at + 4 <= c->src_bytes &&
               encoded <= c->src_bytes - at - 4;
        s->src = c->src + (good ? at + 4 : 0);
        s->src_bytes = good ? encoded : K_BAD_INPUT;
        s->dst = c->scratch + done + i * (bytes / n);
        s->dst_bytes = bytes / n;
        s->how = !good ? K_DAMAGED : encoded == bytes / n ? K_STORED : f->how;
        s->number = number;
        at += good ? 4 + encoded : 0;
    }
}

/* Describes the planes of block k. */
K_FUNCTION void k_blosc_planes(K_GLOBAL const struct k_chunk *c,
                               K_GLOBAL const struct k_frame *f, k_u64 k,
                               K_GLOBAL struct k_planes *p)
{
    const k_u64 done = k * f->block_bytes, left = c->dst_bytes - done;
    const int shuffled =
        f->how != K_STORED && (f->flags & (K_BLOSC_SHUFFLED | K_BLOSC_BITS));

    p->src = c->scratch + done;
    p->dst = c->dst + done;
    p->bytes = left < f->block_bytes ? left : f->block_bytes;
    p->bits = f->how != K_STORED && (f->flags & K_BLOSC_BITS) ? 1 : 0;
    p->item_bytes = shuffled ? f->item_bytes : 1;
}

/* One work item for a block of all chunks. Streams share the status of their chunk. */
K_KERNEL k_blosc_list(K_GLOBAL const k_u8 *src, K_GLOBAL const struct k_chunk *chunks,
                      K_GLOBAL const struct k_frame *frames,
                      K_GLOBAL struct k_stream *streams, K_GLOBAL struct k_planes *planes,
                      k_u64 n_chunks, k_u64 n_blocks)
{
    const k_u64 at = K_PLACE;

    if (at >= n_blocks)
        return;
    const k_u64 i = k_blosc_chunk(frames, n_chunks, at);
    K_GLOBAL const struct k_chunk *c = &chunks[i];
    K_GLOBAL const struct k_frame *f = &frames[i];
    const k_u64 k = at - f->first_block;

    k_blosc_block(src + c->src, c, f, k, (k_u32)c->number, streams + f->first_stream);
    k_blosc_planes(c, f, k, &planes[at]);
}

#endif
