/*
 * kernels/lz4_encode.h - an encoder of LZ4 blocks. It looks at K_WINDOW positions at a
 * time, one a lane, and takes the first of them that has a match in the table of hashes,
 * which has the positions before the window. So the bytes are the same for any number of
 * lanes, which is 1 or K_WINDOW. A group of work items has one stream, because the table
 * is in its memory.
 *
 * Format: LZ4 block format 1.5.
 */
#ifndef K_LZ4_ENCODE_H
#define K_LZ4_ENCODE_H

enum {
    K_WINDOW = 32,
    K_OF_LANE = K_WINDOW / K_LANES, /* positions of a lane */
    K_HASH_BITS = 11,
    K_HASHES = 1 << K_HASH_BITS,
    K_BACK_MOST = 65535, /* of a match */
    K_ENCODE_MOST = 0x7E000000
};

/* Memory of a group: shared, or if that is one work item, its own. */
#if K_LANES > 1
#    define K_NEAR                  K_SHARED
#    define K_NEAR_ROOM(type, name) K_ROOM(type, name)
#else
#    define K_NEAR
#    define K_NEAR_ROOM(type, name) type name
#endif

/* The number of the lowest bit that is set. */
K_FUNCTION k_u32 k_lowest(k_u32 bits)
{
    return K_POPCOUNT((bits & (0U - bits)) - 1U);
}

/* An encoder: n bytes of input, of which `done` are written; `o` of the m bytes of output
 * are in use. `full`: the output is too long. `table` has for each hash a position after
 * the last of its bytes' places, or 0. */
struct k_writer {
    K_GLOBAL k_u8 *d;
    K_GLOBAL const k_u8 *s;
    k_u32 n, m, done, o;
    k_u32 full, lane;
    K_NEAR k_u32 *table;
    K_NEAR k_u32 *share;
};

/* Four bytes as a number. Words may be read that begin before the bytes or end after
 * them, but none without a byte of these. */
K_FUNCTION k_u32 k_four(K_GLOBAL const k_u8 *p)
{
#if K_WORDS
    const k_u32 off = (k_u32)((k_u64)p & 3);
    K_GLOBAL const k_u32 *a = (K_GLOBAL const k_u32 *)(p - off);

    return off ? a[0] >> 8 * off | a[1] << (32 - 8 * off) : a[0];
#else
    return (k_u32)p[0] | (k_u32)p[1] << 8 | (k_u32)p[2] << 16 | (k_u32)p[3] << 24;
#endif
}

K_FUNCTION k_u32 k_hash(k_u32 four)
{
    return four * 2654435761U >> (32 - K_HASH_BITS);
}

/* The last position at which a match may begin. */
K_FUNCTION k_u32 k_last_match(const struct k_writer *w)
{
    return w->n - K_LZ4_CLOSE;
}

/* The positions of a window that belong to a lane: their four bytes, and the latest
 * earlier position with the same bytes, plus 1, or 0. */
struct k_view {
    k_u32 four[K_OF_LANE], from[K_OF_LANE];
};

/* Looks at the window at `at`. Returns a bit for each position that has a match. */
K_FUNCTION k_u32 k_find(const struct k_writer *w, struct k_view *v, k_u32 at)
{
    k_u32 bits = 0;

    for (k_u32 j = 0; j < K_OF_LANE; j++) {
        const k_u32 k = w->lane + j * K_LANES, here = at + k;

        v->four[j] = v->from[j] = 0;
        if (here > k_last_match(w))
            continue;
        v->four[j] = k_four(w->s + here);
        const k_u32 from = w->table[k_hash(v->four[j])];

        if (from > 0 && here - (from - 1) <= K_BACK_MOST &&
            k_four(w->s + from - 1) == v->four[j]) {
            v->from[j] = from;
            bits |= 1U << k;
        }
    }
    return K_JOIN(w->share, w->lane, bits);
}

/* The number that belongs to position k of a window; each lane has those of its own. */
K_FUNCTION k_u32 k_pick(const struct k_writer *w, const k_u32 *own, k_u32 k)
{
    (void)w;
#if K_LANES > 1
    return K_TAKE(w->share, w->lane, own[0], k);
#else
    return own[k];
#endif
}

/* The table learns the positions of the window at `at` that are before `end`. The highest
 * position of a hash stays, because lanes may have the same one. */
K_FUNCTION void k_learn(const struct k_writer *w, const struct k_view *v, k_u32 at,
                        k_u32 end)
{
    K_MEET();
    for (k_u32 j = 0; j < K_OF_LANE; j++) {
        const k_u32 here = at + w->lane + j * K_LANES;

        if (here < end && here <= k_last_match(w))
            K_ATOMIC_MAX(&w->table[k_hash(v->four[j])], here + 1);
    }
    K_MEET();
}

/* What differs in four bytes; `left` of them count, and the next one differs. */
K_FUNCTION k_u32 k_unlike(K_GLOBAL const k_u8 *a, K_GLOBAL const k_u8 *b, k_u32 left)
{
    k_u32 x = 0xFFFFFFFFU;

    if (left >= 4)
        return k_four(a) ^ k_four(b);
    for (k_u32 k = left; k-- > 0;)
        x = x << 8 | (k_u32)(a[k] ^ b[k]);
    return x;
}

/* How many bytes are equal from both places on; the last bytes of the input are in no
 * match. */
K_FUNCTION k_u32 k_equal(const struct k_writer *w, k_u32 at, k_u32 from)
{
    const k_u32 most = w->n - K_LZ4_LAST - at;
    k_u32 same = 0, bits, unlike[K_OF_LANE];

    for (;; same += 4 * K_WINDOW) {
        bits = 0;
        for (k_u32 j = 0; j < K_OF_LANE; j++) {
            const k_u32 k = w->lane + j * K_LANES, i = same + 4 * k;

            unlike[j] = k_unlike(w->s + at + i, w->s + from + i, i < most ? most - i : 0);
            bits |= (k_u32)(unlike[j] != 0) << k;
        }
        bits = K_JOIN(w->share, w->lane, bits);
        if (bits)
            break;
    }
    return same + 4 * k_lowest(bits) + k_lowest(k_pick(w, unlike, k_lowest(bits))) / 8;
}

/* ---- output -------------------- */

/* Bytes after the token that a length needs. */
K_FUNCTION k_u32 k_length_bytes(k_u32 length)
{
    return length < 15 ? 0 : (length - 15) / 255 + 1;
}

K_FUNCTION void k_put_length(struct k_writer *w, k_u32 length)
{
    const k_u32 bytes = k_length_bytes(length);

    for (k_u32 k = w->lane; k < bytes; k += K_LANES)
        w->d[w->o + k] = (k_u8)(k + 1 < bytes ? 255 : (length - 15) % 255);
    w->o += bytes;
}

/* The literals up to `at`, then a match; `bytes` 0: the last sequence, without one. */
K_FUNCTION void k_put(struct k_writer *w, k_u32 at, k_u32 back, k_u32 bytes)
{
    const k_u32 literals = at - w->done, more = bytes ? bytes - 4 : 0;
    const k_u32 token = (literals < 15 ? literals : 15) << 4 | (more < 15 ? more : 15);

    if (1 + k_length_bytes(literals) + (k_u64)literals +
            (bytes ? 2 + k_length_bytes(more) : 0) >
        w->m - w->o) {
        w->full = 1;
        return;
    }
    if (w->lane == 0)
        w->d[w->o] = (k_u8)token;
    w->o++;
    k_put_length(w, literals);
    for (k_u32 k = w->lane; k < literals; k += K_LANES)
        w->d[w->o + k] = w->s[w->done + k];
    w->o += literals;
    if (!bytes)
        return;
    if (w->lane == 0) {
        w->d[w->o] = (k_u8)back;
        w->d[w->o + 1] = (k_u8)(back >> 8);
    }
    w->o += 2;
    k_put_length(w, more);
    w->done = at + bytes;
}

/* The table learns the positions before `end` that a match at `end` may reach. */
K_FUNCTION void k_learn_before(const struct k_writer *w, k_u32 end)
{
    const k_u32 first = end > K_BACK_MOST ? end - K_BACK_MOST : 0;

    for (k_u32 at = first + w->lane; at < end && at + 4 <= w->n; at += K_LANES)
        K_ATOMIC_MAX(&w->table[k_hash(k_four(w->s + at))], at + 1);
}

/* All sequences from w->done on, except the last one, which has no match. */
K_FUNCTION void k_lz4_write(struct k_writer *w)
{
    k_u32 at = w->done;

    for (k_u32 k = w->lane; k < K_HASHES; k += K_LANES)
        w->table[k] = 0;
    K_MEET();
    k_learn_before(w, at);
    K_MEET();
    while (!w->full && w->n >= K_LZ4_CLOSE && at <= k_last_match(w)) {
        struct k_view v;
        const k_u32 found = k_find(w, &v, at);
        k_u32 next = at + K_WINDOW;

        if (found) {
            const k_u32 k = k_lowest(found), from = k_pick(w, v.from, k) - 1;
            const k_u32 bytes = 4 + k_equal(w, at + k + 4, from + 4);

            next = at + k + bytes;
            k_put(w, at + k, at + k - from, bytes);
        }
        k_learn(w, &v, at, next);
        at = next;
    }
}

/* Encodes streams as K_LZ4 or K_LZ4_HEADED: K_LANES work items in a group of their own
 * for each. sizes[number] becomes the length of the output, or 0 if that exceeds
 * dst_bytes. */
K_KERNEL k_encode(K_GLOBAL k_u8 *dst, K_GLOBAL const k_u8 *src,
                  K_GLOBAL const struct k_stream *streams, K_GLOBAL k_u32 *sizes,
                  k_u64 n_streams)
{
    K_NEAR_ROOM(k_u32, table[K_HASHES]);
    K_NEAR_ROOM(k_u32, share[K_LANES]);
    const k_u64 at = K_STREAM;
    struct k_writer w;

    if (at >= n_streams)
        return;
    K_GLOBAL const struct k_stream *p = &streams[at];
    const k_u32 head = p->how == K_LZ4_HEADED ? 4 : 0;

    w.d = dst + p->dst + head;
    w.s = src + p->src;
    w.n = (k_u32)p->src_bytes;
    w.m = (k_u32)(p->dst_bytes < 0xFFFFFFFFU ? p->dst_bytes : 0xFFFFFFFFU);
    w.done = w.o = 0;
    w.lane = K_LANE;
    w.table = table;
    w.share = share;
    w.full = w.m < head || p->src_bytes > K_ENCODE_MOST;
    w.m -= w.full ? w.m : head;
    if (!w.full)
        k_lz4_write(&w);
    if (!w.full)
        k_put(&w, w.n, 0, 0);
    if (w.lane == 0 && head && !w.full)
        for (k_u32 k = 0; k < 4; k++)
            dst[p->dst + k] = (k_u8)(p->src_bytes >> 8 * k);
    if (w.lane == 0)
        sizes[p->number] = w.full ? 0 : w.o + head;
}

/* ---- pieces -------------------- */

/* A piece of an input: the bytes from `first` to `end`. Its sequences go to a slot that
 * has room for k_encode()'s output, and match bytes before it, too. */
struct k_piece {
    k_u64 src, dst; /* of the whole input; of the slot */
    k_u32 first, end;
    k_u32 bytes, rest; /* written by k_encode_pieces(): bytes in the slot, and literals
                          after the last match, which are not there */
};
/* A block of LZ4 that is made of pieces: `dst` has room for dst_bytes. */
struct k_joined {
    k_u64 src, bytes, dst, dst_bytes;
    k_u64 first_piece, n_pieces;
    k_u32 headed, number; /* after four bytes with the decoded length; of its length */
};

/* K_LANES work items in a group of their own for each piece. */
K_KERNEL k_encode_pieces(K_GLOBAL k_u8 *dst, K_GLOBAL const k_u8 *src,
                         K_GLOBAL struct k_piece *pieces, k_u64 n_pieces)
{
    K_NEAR_ROOM(k_u32, table[K_HASHES]);
    K_NEAR_ROOM(k_u32, share[K_LANES]);
    const k_u64 at = K_STREAM;
    struct k_writer w;

    if (at >= n_pieces)
        return;
    K_GLOBAL struct k_piece *p = &pieces[at];

    w.d = dst + p->dst;
    w.s = src + p->src;
    w.n = p->end;
    w.m = 0xFFFFFFFFU;
    w.done = p->first;
    w.o = w.full = 0;
    w.lane = K_LANE;
    w.table = table;
    w.share = share;
    k_lz4_write(&w);
    if (w.lane != 0)
        return;
    p->bytes = w.o;
    p->rest = p->end - w.done;
}

/* Where a block that is joined is at, and how many literals wait for the next match. No
 * pointer says whether to write: a base may be NULL where offsets are addresses, and a
 * compiler may take the sum for NULL, too. */
struct k_joint {
    K_GLOBAL k_u8 *d;
    k_u64 o;
    k_u64 waiting;
    int writes; /* else only `o` is wanted */
};

/* The token and the length of `literals`. */
K_FUNCTION void k_join_head(struct k_joint *j, k_u64 literals, k_u32 low)
{
    const k_u32 n = (k_u32)literals, bytes = k_length_bytes(n);

    if (j->writes) {
        j->d[j->o] = (k_u8)((n < 15 ? n : 15) << 4 | low);
        for (k_u32 k = 0; k < bytes; k++)
            j->d[j->o + 1 + k] = (k_u8)(k + 1 < bytes ? 255 : (n - 15) % 255);
    }
    j->o += 1 + bytes;
}

K_FUNCTION void k_set_run(K_GLOBAL struct k_run *r, k_u64 src, k_u64 dst, k_u64 bytes)
{
    r->src = src;
    r->dst = dst;
    r->bytes = bytes;
}

/* Appends a piece: the literals before its first match, from the input, and the rest of
 * its slot. */
K_FUNCTION void k_join_piece(struct k_joint *j, K_GLOBAL const k_u8 *slots,
                             K_GLOBAL const struct k_piece *p, k_u64 dst,
                             K_GLOBAL struct k_run *literals, K_GLOBAL struct k_run *body)
{
    K_GLOBAL const k_u8 *s = slots + p->dst;
    const k_u32 token = p->bytes ? s[0] : 0;
    k_u64 own = token >> 4;
    k_u32 i = 1, b = own == 15 ? 255 : 0;

    if (j->writes) {
        literals->bytes = 0;
        body->bytes = 0;
    }
    if (p->bytes == 0) {
        j->waiting += p->rest;
        return;
    }
    for (; b == 255; own += b)
        b = s[i++];
    k_join_head(j, j->waiting + own, token & 15);
    if (j->writes) {
        k_set_run(literals, p->src + p->first - j->waiting, dst + j->o, j->waiting + own);
        k_set_run(body, p->dst + i + own, dst + j->o + j->waiting + own,
                  p->bytes - i - own);
    }
    j->o += j->waiting + p->bytes - i;
    j->waiting = p->rest;
}

/* A whole block, which with its runs is written only if `writes`. Returns its length. */
K_FUNCTION k_u64 k_join_pieces(int writes, K_GLOBAL k_u8 *d, K_GLOBAL const k_u8 *slots,
                               K_GLOBAL const struct k_joined *b,
                               K_GLOBAL const struct k_piece *p,
                               K_GLOBAL struct k_run *literals,
                               K_GLOBAL struct k_run *bodies)
{
    struct k_joint j;

    j.writes = writes;
    j.d = d;
    j.o = b->headed ? 4 : 0;
    j.waiting = 0;
    for (k_u64 i = 0; i < b->n_pieces; i++)
        k_join_piece(&j, slots, &p[i], b->dst, &literals[i], &bodies[i]);
    k_join_head(&j, j.waiting, 0);
    if (writes)
        k_set_run(&literals[b->n_pieces], b->src + b->bytes - j.waiting, b->dst + j.o,
                  j.waiting);
    return j.o + j.waiting;
}

/* One work item for a block. Block i has n_pieces + 1 runs from the inputs, from number
 * first_piece + i on, and n_pieces runs from the slots, from number first_piece on.
 * sizes[number] becomes its length, or 0 if that exceeds dst_bytes. */
/* NOLINTNEXTLINE(readability-function-size): a kernel gets no struct of pointers */
K_KERNEL k_join_blocks(K_GLOBAL k_u8 *dst, K_GLOBAL const k_u8 *slots,
                       K_GLOBAL const struct k_joined *blocks,
                       K_GLOBAL const struct k_piece *pieces,
                       K_GLOBAL struct k_run *literals, K_GLOBAL struct k_run *bodies,
                       K_GLOBAL k_u32 *sizes, k_u64 n_blocks)
{
    const k_u64 at = K_PLACE;

    if (at >= n_blocks)
        return;
    K_GLOBAL const struct k_joined *b = &blocks[at];
    K_GLOBAL const struct k_piece *p = pieces + b->first_piece;
    K_GLOBAL struct k_run *l = literals + b->first_piece + at;
    K_GLOBAL struct k_run *r = bodies + b->first_piece;
    const k_u64 size = k_join_pieces(0, dst + b->dst, slots, b, p, l, r);
    const int fits = size <= b->dst_bytes && size <= 0xFFFFFFFFU;

    sizes[b->number] = fits ? (k_u32)size : 0;
    if (fits)
        (void)k_join_pieces(1, dst + b->dst, slots, b, p, l, r);
    for (k_u32 k = 0; fits && b->headed && k < 4; k++)
        dst[b->dst + k] = (k_u8)(b->bytes >> 8 * k);
    for (k_u64 i = 0; !fits && i <= b->n_pieces; i++) {
        l[i].bytes = 0;
        if (i < b->n_pieces)
            r[i].bytes = 0;
    }
}

#endif
