/*
 * kernels/zstd_blocks.h - frames of zstd become lists of blocks. k_zstd_open() reads the
 * headers of frames and blocks, and names for each block the one that describes its
 * Huffman tree and its tables. k_zstd_literals() and k_zstd_sequences() (zstd_streams.h)
 * then decode blocks to scratch memory, and k_zstd_execute() (zstd_execute.h) makes the
 * output.
 *
 * Format: RFC 8878 and doc/zstd_compression_format.md of zstd 1.5.7, strictly. What only
 * libzstd accepts is damage here. Dictionaries, windows of more than 2 GiB, and chunks of
 * more than K_ZSTD_MOST bytes or of too many sequences are K_UNSUPPORTED.
 */
#ifndef K_ZSTD_BLOCKS_H
#define K_ZSTD_BLOCKS_H

#define K_ZSTD_MAGIC    0xFD2FB528U
#define K_ZSTD_SKIPPED  0x184D2A50U /* its last four bits have any value */
#define K_ZSTD_NO_BLOCK 0xFFFFFFFFU
enum {
    K_ZSTD_MOST = 1 << 28,       /* bytes of a chunk, on each side */
    K_ZSTD_BLOCK_MOST = 1 << 17, /* bytes of a block, on each side */
    K_ZSTD_BYTES = 4             /* decoded bytes for each sequence that fits */
};

/* A chunk: its bytes, the place of its output, and of scratch memory: dst_bytes bytes for
 * literals, and for sequences a number of 64 bits, which is aligned, for each
 * K_ZSTD_BYTES bytes of dst_bytes. Blocks that have no place in the list are at the end
 * of the sequences, from there backwards. */
struct k_zstd_chunk {
    k_u64 src, src_bytes, dst, dst_bytes, literals, sequences;
    k_u32 first_block, most_blocks; /* its places in the list of blocks, one or more */
    k_u32 number;                   /* place of its status */
    k_u32 stream;                   /* of k_zstd_take() */
    k_u32 idle, unused;             /* `idle`: there is nothing to decode */
};

enum { /* kinds of blocks: one more than the format's number */
    K_BLOCK_NONE = 0,
    K_BLOCK_RAW = 1,
    K_BLOCK_RLE = 2,
    K_BLOCK_COMPRESSED = 3
};
enum { /* flags of blocks */
    K_FRAME_FIRST = 1,
    K_FRAME_LAST = 2,
    K_FRAME_SIZED = 4, /* the frame has its content's length */
    K_FRAME_SUMMED = 8 /* a checksum is behind its last block */
};
/* A block, which has content or ends its frame. `tree` and the tables name the blocks of
 * the chunk that describe them. */
struct k_zstd_block {
    k_u64 src;
    k_u32 bytes, kind, flags, chunk;
    k_u32 literals, n_literals;   /* first of the chunk's literals, and how many */
    k_u32 sequences, n_sequences; /* likewise */
    k_u32 tree, table_literals, table_offset, table_match;
    k_u32 size;            /* decoded; with sequences, k_zstd_sequences() sets it */
    k_u32 most;            /* decoded bytes of a block of this frame */
    k_u32 window, content; /* of the frame */
    k_u32 repeat0, repeat1, repeat2; /* offsets after it (zstd_streams.h) */
    k_u32 n_blocks;                  /* of the chunk, in its first block only */
};

/* Block k of a chunk. The list of all chunks begins `blocks` bytes from the start of
 * scratch memory. */
K_FUNCTION K_GLOBAL struct k_zstd_block *k_zstd_at(K_GLOBAL k_u8 *scratch, k_u64 blocks,
                                                   K_GLOBAL const struct k_zstd_chunk *c,
                                                   k_u32 k)
{
    const k_u64 size = sizeof(struct k_zstd_block);
    const k_u64 end = c->sequences + c->dst_bytes / K_ZSTD_BYTES * sizeof(k_u64);

    return (
        K_GLOBAL struct k_zstd_block *)(scratch +
                                        (k < c->most_blocks
                                             ? blocks + size * (c->first_block + k)
                                             : end - size * (k - c->most_blocks + 1)));
}

/* The sections of a compressed block. Places count from its start. */
struct k_zstd_sections {
    k_u32 type, streams, n_literals; /* `type` of literals */
    k_u32 literals, literal_bytes;   /* encoded, with the tree */
    k_u32 n_sequences, modes, tables;
};
enum {
    K_LITERALS_RAW = 0,
    K_LITERALS_RLE = 1,
    K_LITERALS_TREE = 2,
    K_LITERALS_TREELESS = 3
};
enum {
    K_TABLE_PREDEFINED = 0,
    K_TABLE_RLE = 1,
    K_TABLE_FSE = 2,
    K_TABLE_REPEAT = 3
};
enum { /* the tables of a block in their order */
    K_TABLE_LITERALS = 0,
    K_TABLE_OFFSET = 1,
    K_TABLE_MATCH = 2,
    K_TABLES = 3
};

K_FUNCTION k_u32 k_zstd_mode(k_u32 modes, k_u32 table)
{
    return modes >> (6 - 2 * table) & 3;
}

/* Bytes of the header of literals with a code, and bits of each of its two lengths. */
K_FUNCTION k_u32 k_zstd_coded_head(k_u32 format)
{
    return format < 2 ? 3 : format + 2;
}
K_FUNCTION k_u32 k_zstd_coded_bits(k_u32 format)
{
    return format < 2 ? 10 : format == 2 ? 14 : 18;
}

/* The lengths in the header of the literals, as a number without its type. */
K_FUNCTION void k_zstd_lengths(struct k_zstd_sections *p, k_u32 format, k_u64 x)
{
    const k_u32 bits = k_zstd_coded_bits(format), mask = (1U << bits) - 1;

    if (p->type >= K_LITERALS_TREE) {
        p->streams = format > 0 ? 4 : 1;
        p->n_literals = (k_u32)(x >> 4) & mask;
        p->literal_bytes = (k_u32)(x >> (4 + bits)) & mask;
    } else {
        p->streams = 1;
        p->n_literals = (k_u32)(x >> (format & 1 ? 4 : 3));
        p->literal_bytes = p->type == K_LITERALS_RLE ? 1 : p->n_literals;
    }
}

/* The header of the literals; 0: damaged. */
K_FUNCTION int k_zstd_literals_header(K_GLOBAL const k_u8 *s, k_u32 n,
                                      struct k_zstd_sections *p)
{
    const k_u32 first = n ? s[0] : 0U, format = first >> 2 & 3;
    const int coded = (first & 3) >= K_LITERALS_TREE;
    const k_u32 plain = format == 1 ? 2 : format == 3 ? 3 : 1;
    k_u64 x = 0;

    p->type = first & 3;
    p->literals = coded ? k_zstd_coded_head(format) : plain;
    if (p->literals > n)
        return 0;
    for (k_u32 k = 0; k < p->literals; k++)
        x |= (k_u64)s[k] << 8 * k;
    k_zstd_lengths(p, format, x);
    if (p->literal_bytes > n - p->literals || p->n_literals > K_ZSTD_BLOCK_MOST)
        return 0;
    if (!coded)
        return 1;
    return p->streams == 1 ? p->n_literals > 0 && p->literal_bytes > 0
                           : p->n_literals >= 6 && p->literal_bytes >= 10;
}

/* Reads the headers of both sections of n bytes; 0: damaged. */
K_FUNCTION int k_zstd_read_sections(K_GLOBAL const k_u8 *s, k_u32 n,
                                    struct k_zstd_sections *p)
{
    k_u32 at, first;

    p->n_sequences = p->modes = p->tables = 0;
    if (!k_zstd_literals_header(s, n, p))
        return 0;
    at = p->literals + p->literal_bytes;
    if (at >= n)
        return 0;
    first = s[at++];
    if (first == 0)
        return at == n;
    if (n - at < (first < 128 ? 1U : first < 255 ? 2U : 3U))
        return 0;
    p->n_sequences = first;
    if (first >= 128 && first < 255)
        p->n_sequences = ((first - 128) << 8) + s[at++];
    if (first == 255) {
        p->n_sequences = s[at] + ((k_u32)s[at + 1] << 8) + 0x7F00;
        at += 2;
    }
    p->modes = s[at++];
    p->tables = at;
    return p->n_sequences > 0 && (p->modes & 3) == 0;
}

/* ---- the walk over a chunk -------------------- */

/* `w` has the encoded bytes, and as `o` the decoded ones that headers tell of. The other
 * fields are those of the next block. */
struct k_zstd_walk {
    struct k_walk w;
    K_GLOBAL k_u8 *scratch;
    k_u64 blocks;
    K_GLOBAL const struct k_zstd_chunk *chunk;
    k_u32 n_blocks, literals, sequences;
    k_u32 flags, most, window, content;
    k_u32 tree, table_literals, table_offset, table_match;
};

K_FUNCTION void k_zstd_bad(struct k_zstd_walk *z, k_u32 status)
{
    if (z->w.status == K_OK)
        z->w.status = status;
}

/* Decoded bytes that a header tells of. */
K_FUNCTION void k_zstd_count(struct k_zstd_walk *z, k_u32 bytes)
{
    if (bytes > z->w.m - z->w.o)
        k_zstd_bad(z, K_TOO_LONG);
    else
        z->w.o += bytes;
}

K_FUNCTION k_u32 k_zstd_window(struct k_zstd_walk *z)
{
    const k_u32 x = (k_u32)k_number(&z->w, 1), log = 10 + (x >> 3);
    const k_u64 base = (k_u64)1 << log, window = base + base / 8 * (x & 7);

    if (log > 31)
        k_zstd_bad(z, K_UNSUPPORTED);
    return (k_u32)(window < K_ZSTD_MOST ? window : K_ZSTD_MOST);
}

/* The header of a frame, after its magic number. */
K_FUNCTION void k_zstd_frame(struct k_zstd_walk *z)
{
    const k_u32 x = (k_u32)k_number(&z->w, 1), single = x >> 5 & 1, sized = x >> 6;
    const k_u32 id_bytes = (x & 3) == 3 ? 4 : x & 3;
    k_u64 content;

    z->window = single ? 0 : k_zstd_window(z);
    if (k_number(&z->w, id_bytes) != 0)
        k_zstd_bad(z, K_UNSUPPORTED); /* a dictionary */
    content = k_number(&z->w, sized ? 1U << sized : single) + (sized == 1 ? 256 : 0);
    if (x & 8)
        k_zstd_bad(z, K_BAD_HEADER);
    if (content > z->w.m)
        k_zstd_bad(z, K_TOO_LONG);
    z->content = (k_u32)content;
    z->window = single ? z->content : z->window;
    z->most = z->window < K_ZSTD_BLOCK_MOST ? z->window : K_ZSTD_BLOCK_MOST;
    z->flags = K_FRAME_FIRST | (single || sized ? K_FRAME_SIZED : 0U) |
               (x & 4 ? K_FRAME_SUMMED : 0U);
    z->tree = z->table_literals = z->table_offset = z->table_match = K_ZSTD_NO_BLOCK;
}

/* The block that has the table of a mode: this one, or the one that had it before. */
K_FUNCTION k_u32 k_zstd_source(struct k_zstd_walk *z, k_u32 mode, k_u32 before)
{
    if (mode != K_TABLE_REPEAT)
        return z->n_blocks;
    if (before == K_ZSTD_NO_BLOCK)
        k_zstd_bad(z, K_BAD_INPUT);
    return before;
}

/* A compressed block, whose content begins at byte i. */
K_FUNCTION void k_zstd_compressed(struct k_zstd_walk *z, K_GLOBAL struct k_zstd_block *b)
{
    struct k_zstd_sections p;

    if (!k_zstd_read_sections(z->w.s + z->w.i, b->bytes, &p) || p.n_literals > z->most) {
        k_zstd_bad(z, K_BAD_INPUT);
        return;
    }
    if (p.type == K_LITERALS_TREE)
        z->tree = z->n_blocks;
    else if (p.type == K_LITERALS_TREELESS && z->tree == K_ZSTD_NO_BLOCK)
        k_zstd_bad(z, K_BAD_INPUT);
    if (p.n_sequences > 0) {
        z->table_literals =
            k_zstd_source(z, k_zstd_mode(p.modes, K_TABLE_LITERALS), z->table_literals);
        z->table_offset =
            k_zstd_source(z, k_zstd_mode(p.modes, K_TABLE_OFFSET), z->table_offset);
        z->table_match =
            k_zstd_source(z, k_zstd_mode(p.modes, K_TABLE_MATCH), z->table_match);
    }
    b->n_literals = b->size = p.n_literals;
    b->n_sequences = p.n_sequences;
    b->tree = p.type < K_LITERALS_TREE ? z->n_blocks : z->tree;
    b->table_literals = z->table_literals;
    b->table_offset = z->table_offset;
    b->table_match = z->table_match;
    k_zstd_count(z, p.n_literals);
}

/* Whether the sequences of the blocks so far, and `more`, leave room for another block
 * where the list has none. */
K_FUNCTION int k_zstd_has_room(const struct k_zstd_walk *z, k_u32 more)
{
    const k_u32 listed = z->chunk->most_blocks;
    const k_u64 others = z->n_blocks < listed ? 0 : z->n_blocks - listed + 1;

    return z->sequences + more + others * (sizeof(struct k_zstd_block) / sizeof(k_u64)) <=
           z->w.m / K_ZSTD_BYTES;
}

/* A block, from its header on. Returns whether it is the last one of its frame. */
K_FUNCTION int k_zstd_block_next(struct k_zstd_walk *z)
{
    const k_u32 x = (k_u32)k_number(&z->w, 3), kind = 1 + (x >> 1 & 3), n = x >> 3;
    K_GLOBAL struct k_zstd_block *b =
        k_zstd_at(z->scratch, z->blocks, z->chunk, z->n_blocks);

    if (kind > K_BLOCK_COMPRESSED || n > z->most)
        k_zstd_bad(z, K_BAD_INPUT);
    else if ((kind == K_BLOCK_RLE ? 1 : n) > z->w.n - z->w.i)
        k_zstd_bad(z, K_BAD_INPUT);
    else if (!k_zstd_has_room(z, 0))
        k_zstd_bad(z, K_UNSUPPORTED);
    if (z->w.status != K_OK)
        return 1;
    b->src = z->chunk->src + z->w.i;
    b->bytes = kind == K_BLOCK_RLE ? 1 : n;
    b->kind = kind;
    b->flags = z->flags | (x & 1 ? K_FRAME_LAST : 0U);
    b->literals = z->literals;
    b->sequences = z->sequences;
    b->n_literals = b->n_sequences = 0;
    b->tree = z->n_blocks;
    b->size = n;
    b->most = z->most;
    b->window = z->window;
    b->content = z->content;
    if (kind == K_BLOCK_COMPRESSED)
        k_zstd_compressed(z, b);
    else
        k_zstd_count(z, n);
    if (!k_zstd_has_room(z, b->n_sequences))
        k_zstd_bad(z, K_UNSUPPORTED);
    z->literals += b->n_literals;
    z->sequences += b->n_sequences;
    z->w.i += b->bytes;
    if (!(x & 1) && b->size + b->n_sequences == 0)
        return 0; /* it has no content: the next one takes its place */
    z->flags &= ~(k_u32)K_FRAME_FIRST;
    z->n_blocks++;
    return x & 1;
}

/* All frames. */
K_FUNCTION void k_zstd_frames(struct k_zstd_walk *z)
{
    while (z->w.status == K_OK && z->w.i < z->w.n) {
        const k_u32 magic = (k_u32)k_number(&z->w, 4);
        k_u64 skip;

        if (magic == K_ZSTD_MAGIC) {
            k_zstd_frame(z);
            while (z->w.status == K_OK && !k_zstd_block_next(z))
                ;
            if (z->flags & K_FRAME_SUMMED)
                (void)k_number(&z->w, 4);
        } else if (magic - K_ZSTD_SKIPPED < 16) {
            skip = k_number(&z->w, 4);
            if (skip > z->w.n - z->w.i)
                k_zstd_bad(z, K_BAD_INPUT);
            else
                z->w.i += skip;
        } else {
            k_zstd_bad(z, K_BAD_HEADER);
        }
    }
}

/* One work item for a chunk: it gets the bytes of its place in a list of streams, which
 * k_decode() then leaves out. If that one is not of zstd, the chunk is idle. */
K_KERNEL k_zstd_take(K_GLOBAL struct k_stream *streams,
                     K_GLOBAL struct k_zstd_chunk *chunks, k_u64 n_chunks)
{
    const k_u64 at = K_PLACE;

    if (at >= n_chunks)
        return;
    K_GLOBAL struct k_zstd_chunk *c = &chunks[at];
    K_GLOBAL struct k_stream *s = &streams[c->stream];

    c->idle = s->how != K_ZSTD;
    if (c->idle)
        return;
    c->src = s->src;
    c->src_bytes = s->src_bytes;
    s->how = K_STORED;
    s->src_bytes = s->dst_bytes = 0;
}

/* One work item for a chunk. The places in the list that it does not need become
 * K_BLOCK_NONE; all of them if it is damaged. */
K_KERNEL k_zstd_open(K_GLOBAL k_u8 *scratch, K_GLOBAL const k_u8 *src,
                     K_GLOBAL const struct k_zstd_chunk *chunks, K_GLOBAL k_u32 *status,
                     k_u64 blocks, k_u64 n_chunks)
{
    const k_u64 at = K_PLACE;
    struct k_zstd_walk z;

    if (at >= n_chunks)
        return;
    K_GLOBAL const struct k_zstd_chunk *c = &chunks[at];

    z.w.s = src + c->src;
    z.w.n = c->src_bytes;
    z.w.m = c->dst_bytes;
    z.w.i = z.w.o = 0;
    z.w.status =
        c->dst_bytes > K_ZSTD_MOST || c->src_bytes > K_ZSTD_MOST ? K_UNSUPPORTED : K_OK;
    z.scratch = scratch;
    z.blocks = blocks;
    z.chunk = c;
    z.n_blocks = z.literals = z.sequences = z.flags = 0;
    if (!c->idle)
        k_zstd_frames(&z);
    if (z.n_blocks == 0 && !c->idle)
        k_zstd_bad(&z, K_BAD_HEADER);
    if (z.w.status != K_OK) {
        status[c->number] = z.w.status;
        z.n_blocks = 0;
    }
    for (k_u32 k = 0; k < c->most_blocks; k++) {
        K_GLOBAL struct k_zstd_block *b = k_zstd_at(scratch, blocks, c, k);

        b->chunk = (k_u32)at;
        b->kind = k < z.n_blocks ? b->kind : K_BLOCK_NONE;
    }
    k_zstd_at(scratch, blocks, c, 0)->n_blocks = z.n_blocks;
}

/* The chunk of the group with a place in the list. The group does the block there, and
 * each one that is as many blocks after it as the chunk has places. */
K_FUNCTION K_GLOBAL const struct k_zstd_chunk *
k_zstd_group(K_GLOBAL k_u8 *scratch, k_u64 blocks,
             K_GLOBAL const struct k_zstd_chunk *chunks, k_u64 at)
{
    return &chunks[((K_GLOBAL const struct k_zstd_block *)(scratch + blocks))[at].chunk];
}

#endif
