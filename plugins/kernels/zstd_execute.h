/*
 * kernels/zstd_execute.h - literals and sequences of the blocks of zstd become the output
 * of a chunk. A group walks through its blocks: a team (team.h), which executes up to
 * K_LANES sequences a step, or where a target has none, lanes that execute each sequence
 * together. The offsets that a block took from the one before it become numbers here.
 *
 * Format: zstd_blocks.h; XXH64 of xxHash 0.8.
 */
#ifndef K_ZSTD_EXECUTE_H
#define K_ZSTD_EXECUTE_H

/* The output of a frame. `repeats`: the last three offsets at the start of a block. */
struct k_output {
#if K_TEAM
    struct k_team w;
#else
    struct k_walk w;
#endif
    struct k_repeats repeats;
    k_u32 window;
};

/* ---- checksums -------------------- */

#define K_XXH1 0x9E3779B185EBCA87UL
#define K_XXH2 0xC2B2AE3D27D4EB4FUL
#define K_XXH3 0x165667B19E3779F9UL
#define K_XXH4 0x85EBCA77C2B2AE63UL
#define K_XXH5 0x27D4EB2F165667C5UL

K_FUNCTION k_u64 k_xxh_turn(k_u64 x, k_u32 bits)
{
    return x << bits | x >> (64 - bits);
}

K_FUNCTION k_u64 k_xxh_round(k_u64 sum, k_u64 x)
{
    return k_xxh_turn(sum + x * K_XXH2, 31) * K_XXH1;
}

K_FUNCTION k_u64 k_xxh_eight(K_GLOBAL const k_u8 *s)
{
    return k_four(s) | (k_u64)k_four(s + 4) << 32;
}

K_FUNCTION k_u64 k_xxh_join(k_u64 sum, k_u64 x)
{
    return (sum ^ k_xxh_round(0, x)) * K_XXH1 + K_XXH4;
}

/* The last bytes, fewer than 32. */
K_FUNCTION k_u64 k_xxh_end(k_u64 sum, K_GLOBAL const k_u8 *s, k_u32 n)
{
    for (; n >= 8; n -= 8, s += 8)
        sum = k_xxh_turn(sum ^ k_xxh_round(0, k_xxh_eight(s)), 27) * K_XXH1 + K_XXH4;
    if (n >= 4) {
        sum = k_xxh_turn(sum ^ k_four(s) * K_XXH1, 23) * K_XXH2 + K_XXH3;
        n -= 4;
        s += 4;
    }
    for (; n > 0; n--, s++)
        sum = k_xxh_turn(sum ^ *s * K_XXH5, 11) * K_XXH1;
    sum = (sum ^ sum >> 33) * K_XXH2;
    sum = (sum ^ sum >> 29) * K_XXH3;
    return sum ^ sum >> 32;
}

/* XXH64 with the seed 0. */
K_FUNCTION k_u64 k_xxh64(K_GLOBAL const k_u8 *s, k_u32 n)
{
    k_u64 a = K_XXH1 + K_XXH2, b = K_XXH2, c = 0, d = 0 - K_XXH1, sum = K_XXH5;
    k_u32 at = 0;

    for (; n - at >= 32; at += 32) {
        a = k_xxh_round(a, k_xxh_eight(s + at));
        b = k_xxh_round(b, k_xxh_eight(s + at + 8));
        c = k_xxh_round(c, k_xxh_eight(s + at + 16));
        d = k_xxh_round(d, k_xxh_eight(s + at + 24));
    }
    if (n >= 32) {
        sum = k_xxh_turn(a, 1) + k_xxh_turn(b, 7) + k_xxh_turn(c, 12) + k_xxh_turn(d, 18);
        sum = k_xxh_join(k_xxh_join(k_xxh_join(k_xxh_join(sum, a), b), c), d);
    }
    return k_xxh_end(sum + n, s + at, n - at);
}

/* ---- sequences -------------------- */

/* The number of bytes that an offset says; 0: none. */
K_FUNCTION k_u32 k_offset_number(const struct k_repeats *r, k_u32 x)
{
    const k_u32 place = x >> K_OFFSET_PLACE & 3, less = x & ((1U << K_OFFSET_PLACE) - 1);
    const k_u32 a = r->a, b = r->b, c = r->c; /* so that they stay registers */
    const k_u32 from = place == 0 ? a : place == 1 ? b : c;

    if (!(x & K_OFFSET_BEFORE))
        return x;
    return from > less ? from - less : 0;
}

/* A sequence from scratch memory. Offsets that leave the window become 0. */
K_FUNCTION void k_sequence_read(const struct k_output *t, k_u64 x, struct k_sequence *q)
{
    const k_u32 mask = (1U << K_SEQUENCE_BITS) - 1;

    q->literals = (k_u32)x & mask;
    q->bytes = ((k_u32)(x >> K_SEQUENCE_BITS) & mask) + K_MATCH_LEAST;
    q->back = k_offset_number(&t->repeats, (k_u32)(x >> 2 * K_SEQUENCE_BITS));
    q->back = q->back <= t->window ? q->back : 0;
}

/* Begins a frame of m bytes at most. */
K_FUNCTION void k_output_begin(struct k_output *t, K_GLOBAL k_u8 *d, k_u32 m)
{
    t->w.d = d;
    t->w.m = m;
    t->w.o = 0;
#if K_TEAM
    t->w.oldest = t->w.flushed = 0;
    t->w.d_skew = (k_u32)((k_u64)d & 15);
#endif
    t->repeats.a = 1;
    t->repeats.b = 4;
    t->repeats.c = 8;
    t->window = 0;
}

#if K_TEAM
/* Brings all bytes to the output. */
K_FUNCTION void k_output_end(struct k_output *t)
{
    K_MEET();
    k_flush(&t->w, 1);
    K_MEET();
}

/* Literals at `from`, then a match, of which each may have no bytes. */
K_FUNCTION void k_output_put(struct k_output *t, K_GLOBAL const k_u8 *from,
                             struct k_sequence *q)
{
    q->at = 0;
    q->stage = q->bytes ? K_WHOLE : K_ONLY_LITERALS;
    t->w.s = from;
    t->w.status = k_judge(&t->w, t->w.o, q);
    k_sequence_alone(&t->w, q);
}

/* The sequences of a block, with its literals at `from`. */
K_FUNCTION void k_output_sequences(struct k_output *t, K_GLOBAL const k_u8 *from,
                                   K_GLOBAL const k_u64 *list, k_u32 n)
{
    const k_u32 lane = t->w.lane;
    struct k_sequence q;
    k_u32 used = 0, count;

    for (k_u32 k = 0; k < n && t->w.status == K_OK; k += count) {
        const k_u32 left = n - k;

        count = left < K_LANES ? left : K_LANES;
        k_sequence_read(t, list[k + (lane < count ? lane : 0)], &q);
        if (K_TAKE(0, lane, q.literals + q.bytes, 0) > K_LONG) {
            k_sequence_read(t, list[k], &q);
            k_output_put(t, from + used, &q);
            used += q.literals;
            count = 1;
            continue;
        }
        q.literals = lane < count ? q.literals : 0;
        q.at = used + k_sum_before(&t->w, q.literals);
        q.stage = K_WHOLE;
        t->w.s = from;
        count = k_execute(&t->w, &q, count);
        used = K_TAKE(0, lane, q.at + q.literals, count - 1);
    }
}
#else
K_FUNCTION void k_output_end(struct k_output *t)
{
    (void)t;
    K_MEET();
}

K_FUNCTION void k_output_put(struct k_output *t, K_GLOBAL const k_u8 *from,
                             struct k_sequence *q)
{
    t->w.s = from;
    t->w.i = 0;
    t->w.n = q->literals;
    k_literals(&t->w, q->literals);
    if (q->bytes)
        k_match(&t->w, q->back, q->bytes);
}

K_FUNCTION void k_output_sequences(struct k_output *t, K_GLOBAL const k_u8 *from,
                                   K_GLOBAL const k_u64 *list, k_u32 n)
{
    struct k_sequence q;

    for (k_u32 k = 0; k < n && t->w.status == K_OK; k++) {
        k_sequence_read(t, list[k], &q);
        k_output_put(t, from, &q);
        from += q.literals;
    }
}
#endif

/* ---- blocks -------------------- */

/* A compressed block. What its sequences leave of its literals ends it. */
K_FUNCTION void k_output_compressed(struct k_output *t, K_GLOBAL const k_u8 *literals,
                                    K_GLOBAL const k_u64 *list,
                                    K_GLOBAL const struct k_zstd_block *b)
{
    const k_u32 start = (k_u32)t->w.o;
    struct k_repeats next;
    struct k_sequence q;

    if (b->size > t->w.m - t->w.o) {
        t->w.status = K_TOO_LONG;
        return;
    }
    k_output_sequences(t, literals, list, b->n_sequences);
    q.literals = start + b->size - (k_u32)t->w.o;
    q.bytes = q.back = 0;
    if (t->w.status == K_OK && q.literals > 0)
        k_output_put(t, literals + b->n_literals - q.literals, &q);
    if (b->n_sequences == 0)
        return;
    next.a = k_offset_number(&t->repeats, b->repeat0);
    next.b = k_offset_number(&t->repeats, b->repeat1);
    next.c = k_offset_number(&t->repeats, b->repeat2);
    t->repeats = next;
}

/* Checks a frame after its last block. */
K_FUNCTION void k_output_check(struct k_output *t, K_GLOBAL const k_u8 *src,
                               K_GLOBAL const struct k_zstd_block *b)
{
    K_GLOBAL const k_u8 *sum = src + b->src + b->bytes;

    k_output_end(t);
    if (b->flags & K_FRAME_SIZED && t->w.o != b->content)
        t->w.status = K_BAD_LENGTH;
    else if (b->flags & K_FRAME_SUMMED &&
             (k_u32)k_xxh64(t->w.d, (k_u32)t->w.o) != k_four(sum))
        t->w.status = K_BAD_SUM;
}

/* A block at the end of the output. */
K_FUNCTION void k_output_block(struct k_output *t, K_GLOBAL const k_u8 *src,
                               K_GLOBAL const k_u8 *scratch,
                               K_GLOBAL const struct k_zstd_chunk *c,
                               K_GLOBAL const struct k_zstd_block *b)
{
    struct k_sequence q;

    if (b->flags & K_FRAME_FIRST)
        k_output_begin(t, t->w.d + t->w.o, (k_u32)(t->w.m - t->w.o));
    t->window = b->window;
    q.literals = b->kind == K_BLOCK_RAW ? b->size : 1;
    q.bytes = b->kind == K_BLOCK_RAW ? 0 : b->size - 1;
    q.back = 1;
    if (b->kind == K_BLOCK_COMPRESSED)
        k_output_compressed(
            t, scratch + c->literals + b->literals,
            (K_GLOBAL const k_u64 *)(scratch + c->sequences) + b->sequences, b);
    else if (b->size > 0)
        k_output_put(t, src + b->src, &q);
    if (t->w.status == K_OK && b->flags & K_FRAME_LAST)
        k_output_check(t, src, b);
}

/* Whether the kernels before found no damage in a chunk. The status does not say it to
 * all lanes alike: streams of one chunk of blosc share it, and other groups may write it
 * now. */
K_FUNCTION int k_zstd_is_good(K_GLOBAL k_u8 *scratch, k_u64 blocks,
                              K_GLOBAL const struct k_zstd_chunk *c, k_u32 n)
{
    for (k_u32 k = 0; k < n; k++)
        if (k_zstd_at(scratch, blocks, c, k)->kind == K_BLOCK_NONE)
            return 0;
    return n > 0;
}

/* A group for each chunk. Those in which a kernel before found damage are left out. */
K_KERNEL k_zstd_execute(K_GLOBAL k_u8 *dst, K_GLOBAL const k_u8 *src,
                        K_GLOBAL k_u8 *scratch,
                        K_GLOBAL const struct k_zstd_chunk *chunks,
                        K_GLOBAL k_u32 *status, k_u64 blocks, k_u64 n_chunks)
{
    const k_u64 at = K_STREAM;
    struct k_output t;

    if (at >= n_chunks)
        return;
#if K_TEAM
    K_ROOM(struct k_room, room);
    t.w.room = &room;
    t.w.how = K_ZSTD;
#endif
    K_GLOBAL const struct k_zstd_chunk *c = &chunks[at];
    const k_u32 n = k_zstd_at(scratch, blocks, c, 0)->n_blocks;

    t.w.lane = K_LANE;
    t.w.status = K_OK;
    if (!k_zstd_is_good(scratch, blocks, c, n))
        return;
    k_output_begin(&t, dst + c->dst, (k_u32)c->dst_bytes);
    for (k_u32 k = 0; k < n && t.w.status == K_OK; k++)
        k_output_block(&t, src, scratch, c, k_zstd_at(scratch, blocks, c, k));
    k_output_end(&t);
    if (t.w.status == K_OK && t.w.o != t.w.m)
        t.w.status = K_TOO_SHORT;
    if (t.w.status != K_OK)
        status[c->number] = t.w.status;
}

#endif
