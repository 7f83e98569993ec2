/*
 * kernels/lz.h - decoders of streams of literals and matches: LZ4, snappy, and blosclz.
 * K_LANES neighbouring work items walk through a stream together: each reads all tokens,
 * and they share the bytes of a copy.
 *
 * Formats: LZ4 block format 1.5; snappy's format_description.txt; blosclz of
 * c-blosc 1.21.
 */
#ifndef K_LZ_H
#define K_LZ_H

enum {
    K_STREAM_MOST = 0x7FFFFFF0 /* bytes of a stream, except a stored one, on each side */
};

/* A decoder: it is at byte i of the n of its input, and at byte o of the m of its output.
 * It goes on while the status is K_OK. */
struct k_walk {
    K_GLOBAL k_u8 *d;
    K_GLOBAL const k_u8 *s;
    k_u64 n, m, i, o;
    k_u32 status, lane;
};

/* Literals, and the match after them. `end`: where the next sequence begins. */
struct k_sequence {
    k_u32 at, literals, back, bytes, end, stage;
};

/* The next byte of the input; 0, and the status, if there is none. */
K_FUNCTION k_u32 k_next(struct k_walk *w)
{
    if (w->i < w->n)
        return w->s[w->i++];
    w->status = K_BAD_INPUT;
    return 0;
}

/* The next `bytes` bytes as a number, the lowest first. */
K_FUNCTION k_u64 k_number(struct k_walk *w, k_u32 bytes)
{
    k_u64 v = 0;

    for (k_u32 k = 0; k < bytes; k++)
        v |= (k_u64)k_next(w) << 8 * k;
    return v;
}

K_FUNCTION void k_literals(struct k_walk *w, k_u64 bytes)
{
    if (w->status == K_OK && bytes > w->n - w->i)
        w->status = K_BAD_INPUT;
    if (w->status == K_OK && bytes > w->m - w->o)
        w->status = K_TOO_LONG;
    if (w->status != K_OK)
        return;
    k_copy_bytes(w->d + w->o, w->s + w->i, bytes, w->lane, K_LANES);
    w->i += bytes;
    w->o += bytes;
}

/* Repeats the output from `back` bytes before its end. All source bytes are those before
 * the match, so no lane waits for another inside of it. */
K_FUNCTION void k_match(struct k_walk *w, k_u64 back, k_u64 bytes)
{
    if (w->status == K_OK && (back == 0 || back > w->o))
        w->status = K_BAD_OFFSET;
    if (w->status == K_OK && bytes > w->m - w->o)
        w->status = K_TOO_LONG;
    if (w->status != K_OK)
        return;
    K_MEET();
    K_GLOBAL k_u8 *to = w->d + w->o;
    K_GLOBAL const k_u8 *from = to - back;

#if K_LANES == 1
    for (k_u64 k = 0; k < bytes; k++)
        to[k] = from[k];
#else
    if (back >= bytes)
        for (k_u64 k = w->lane; k < bytes; k += K_LANES)
            to[k] = from[k];
    else
        for (k_u64 k = w->lane; k < bytes; k += K_LANES)
            to[k] = from[k % back];
#endif
    w->o += bytes;
}

/* ---- LZ4 -------------------- */

/* The rules for the end of a block, which liblz4 checks, too. */
enum {
    K_LZ4_LAST = 5,  /* a match ends so many bytes before the output's end */
    K_LZ4_CLOSE = 12 /* and begins so many */
};

/* A length of four bits, and if these are all ones more bytes, while they are 255. */
K_FUNCTION k_u64 k_lz4_length(struct k_walk *w, k_u32 bits)
{
    k_u64 sum = bits;
    k_u32 b = bits == 15 ? 255 : 0;

    while (b == 255 && w->status == K_OK) {
        b = k_next(w);
        sum += b;
    }
    return sum;
}

/* One sequence: literals, then a match. Returns 0 after the last one or a failure. */
K_FUNCTION int k_lz4_sequence(struct k_walk *w)
{
    const k_u32 token = k_next(w);
    k_u64 back, bytes;

    k_literals(w, k_lz4_length(w, token >> 4));
    if (w->status != K_OK || w->i == w->n) /* the last sequence has only literals */
        return 0;
    if (w->m - w->o < K_LZ4_CLOSE || w->n - w->i < K_LZ4_LAST + 3) {
        w->status = K_BAD_INPUT;
        return 0;
    }
    back = k_number(w, 2);
    bytes = 4 + k_lz4_length(w, token & 15);
    k_match(w, back, bytes);
    if (w->status == K_OK && w->m - w->o < K_LZ4_LAST)
        w->status = K_BAD_INPUT;
    return w->status == K_OK;
}

K_FUNCTION void k_lz4(struct k_walk *w)
{
    while (k_lz4_sequence(w))
        ;
}

/* ---- snappy -------------------- */

/* The decoded length: seven bits in a byte, the lowest first. */
K_FUNCTION k_u64 k_snappy_length(struct k_walk *w)
{
    k_u64 v = 0;

    for (k_u32 shift = 0; shift < 35; shift += 7) {
        const k_u32 b = k_next(w);

        v |= (k_u64)(b & 0x7F) << shift;
        if (b < 0x80)
            return v;
    }
    w->status = K_BAD_LENGTH;
    return 0;
}

K_FUNCTION void k_snappy_item(struct k_walk *w)
{
    const k_u32 tag = k_next(w);
    const k_u32 high = tag >> 2;

    if ((tag & 3) == 0) {
        k_literals(w, high < 60 ? high + 1 : k_number(w, high - 59) + 1);
    } else if ((tag & 3) == 1) {
        const k_u64 back = (k_u64)(tag >> 5) << 8 | k_next(w);

        k_match(w, back, 4 + (high & 7));
    } else {
        const k_u64 back = k_number(w, (tag & 3) == 2 ? 2 : 4);

        k_match(w, back, high + 1);
    }
}

K_FUNCTION void k_snappy(struct k_walk *w)
{
    while (w->status == K_OK && w->i < w->n)
        k_snappy_item(w);
}

/* ---- blosclz -------------------- */

enum {
    K_BLOSCLZ_NEAR = 8191, /* the longest way back in the short form of a match */
    K_BLOSCLZ_LONG = 7     /* of a match: more bytes have the rest of its length */
};

K_FUNCTION void k_blosclz_match(struct k_walk *w, k_u32 control)
{
    const k_u64 high = (k_u64)(control & 31) << 8;
    k_u64 bytes = control >> 5, back;
    k_u32 b = bytes == K_BLOSCLZ_LONG ? 255 : 0;

    while (b == 255 && w->status == K_OK) {
        b = k_next(w);
        bytes += b;
    }
    b = k_next(w);
    back = high + b + 1;
    if (b == 255 && high == 31 << 8) { /* the long form: sixteen bits, high byte first */
        back = K_BLOSCLZ_NEAR + 1 + ((k_u64)k_next(w) << 8);
        back += k_next(w);
    }
    k_match(w, back, bytes + 2);
}

K_FUNCTION void k_blosclz(struct k_walk *w)
{
    k_u32 control = k_next(w) & 31; /* the first item has literals */

    while (w->status == K_OK) {
        if (control >= 32) {
            k_blosclz_match(w, control);
        } else {
            k_literals(w, control + 1);
            if (w->i == w->n)
                return;
        }
        control = k_next(w); /* the last item has literals, too */
    }
}

#endif
