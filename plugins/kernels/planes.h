/*
 * kernels/planes.h - shuffle and bit shuffle, as numcodecs and blosc do them, and back.
 * `each` work items share one part. Elements of 2, 4 and 8 bytes move many at a time,
 * where they lie at multiples of sixteen; neighbouring items have neighbouring bytes of
 * each plane.
 */
#ifndef K_PLANES_H
#define K_PLANES_H

/* Transposes eight bytes of eight bits: bit i of byte b becomes bit b of byte i. */
K_FUNCTION k_u64 k_transpose(k_u64 x)
{
    k_u64 t = (x ^ x >> 7) & 0x00AA00AA00AA00AAUL;

    x ^= t ^ t << 7;
    t = (x ^ x >> 14) & 0x0000CCCC0000CCCCUL;
    x ^= t ^ t << 14;
    t = (x ^ x >> 28) & 0x00000000F0F0F0F0UL;
    return x ^ t ^ t << 28;
}

#if K_WORDS
K_FUNCTION k_quad k_quad_make(k_u32 x, k_u32 y, k_u32 z, k_u32 w)
{
    k_quad q;

    q.x = x;
    q.y = y;
    q.z = z;
    q.w = w;
    return q;
}

/* Transposes four words of four bytes. */
K_FUNCTION k_quad k_turn(k_u32 x, k_u32 y, k_u32 z, k_u32 w)
{
    const k_u32 a = (x & 0x00FF00FFU) | (y & 0x00FF00FFU) << 8,
                b = (x >> 8 & 0x00FF00FFU) | (y & 0xFF00FF00U),
                c = (z & 0x00FF00FFU) | (w & 0x00FF00FFU) << 8,
                e = (z >> 8 & 0x00FF00FFU) | (w & 0xFF00FF00U);

    return k_quad_make((a & 0xFFFF) | c << 16, (b & 0xFFFF) | e << 16,
                       a >> 16 | (c & 0xFFFF0000U), b >> 16 | (e & 0xFFFF0000U));
}

/* Bytes of the low halves of two words in turns; and the even bytes of two words. */
K_FUNCTION k_u32 k_zip(k_u32 a, k_u32 b)
{
    a = (a & 0xFF) | (a & 0xFF00) << 8;
    b = (b & 0xFF) | (b & 0xFF00) << 8;
    return a | b << 8;
}

K_FUNCTION k_u32 k_even(k_u32 a, k_u32 b)
{
    a = (a & 0xFF) | (a >> 8 & 0xFF00);
    b = (b & 0xFF) | (b >> 8 & 0xFF00);
    return a | b << 16;
}

/* Stores sixteen bytes at a place of any alignment. */
K_FUNCTION void k_store_quad(K_GLOBAL k_u8 *d, k_quad q)
{
    K_GLOBAL k_u32 *p = (K_GLOBAL k_u32 *)d;

    if (((k_u64)d & 15) == 0) {
        *(K_GLOBAL k_quad *)d = q;
    } else if (((k_u64)d & 3) == 0) {
        p[0] = q.x;
        p[1] = q.y;
        p[2] = q.z;
        p[3] = q.w;
    } else {
        for (k_u32 k = 0; k < 4; k++) {
            d[k] = (k_u8)(q.x >> 8 * k);
            d[4 + k] = (k_u8)(q.y >> 8 * k);
            d[8 + k] = (k_u8)(q.z >> 8 * k);
            d[12 + k] = (k_u8)(q.w >> 8 * k);
        }
    }
}

/* ---- sixteen elements, from and to planes of n bytes -------------------- */

K_FUNCTION void k_join2(K_GLOBAL k_quad *d, K_GLOBAL const k_u8 *s, k_u64 n)
{
    const k_quad a = k_load_quad(s), b = k_load_quad(s + n);

    d[0] = k_quad_make(k_zip(a.x, b.x), k_zip(a.x >> 16, b.x >> 16), k_zip(a.y, b.y),
                       k_zip(a.y >> 16, b.y >> 16));
    d[1] = k_quad_make(k_zip(a.z, b.z), k_zip(a.z >> 16, b.z >> 16), k_zip(a.w, b.w),
                       k_zip(a.w >> 16, b.w >> 16));
}

K_FUNCTION void k_join4(K_GLOBAL k_quad *d, K_GLOBAL const k_u8 *s, k_u64 n)
{
    const k_quad a = k_load_quad(s), b = k_load_quad(s + n), c = k_load_quad(s + 2 * n),
                 e = k_load_quad(s + 3 * n);

    d[0] = k_turn(a.x, b.x, c.x, e.x);
    d[1] = k_turn(a.y, b.y, c.y, e.y);
    d[2] = k_turn(a.z, b.z, c.z, e.z);
    d[3] = k_turn(a.w, b.w, c.w, e.w);
}

/* Low and high halves of four elements of eight bytes. */
K_FUNCTION void k_put8(K_GLOBAL k_quad *d, k_quad low, k_quad high)
{
    d[0] = k_quad_make(low.x, high.x, low.y, high.y);
    d[1] = k_quad_make(low.z, high.z, low.w, high.w);
}

K_FUNCTION void k_join8(K_GLOBAL k_quad *d, K_GLOBAL const k_u8 *s, k_u64 n)
{
    const k_quad a = k_load_quad(s), b = k_load_quad(s + n), c = k_load_quad(s + 2 * n),
                 e = k_load_quad(s + 3 * n), f = k_load_quad(s + 4 * n),
                 g = k_load_quad(s + 5 * n), h = k_load_quad(s + 6 * n),
                 i = k_load_quad(s + 7 * n);

    k_put8(d, k_turn(a.x, b.x, c.x, e.x), k_turn(f.x, g.x, h.x, i.x));
    k_put8(d + 2, k_turn(a.y, b.y, c.y, e.y), k_turn(f.y, g.y, h.y, i.y));
    k_put8(d + 4, k_turn(a.z, b.z, c.z, e.z), k_turn(f.z, g.z, h.z, i.z));
    k_put8(d + 6, k_turn(a.w, b.w, c.w, e.w), k_turn(f.w, g.w, h.w, i.w));
}

K_FUNCTION void k_part2(K_GLOBAL k_u8 *d, K_GLOBAL const k_quad *s, k_u64 n)
{
    const k_quad a = s[0], b = s[1];

    k_store_quad(d, k_quad_make(k_even(a.x, a.y), k_even(a.z, a.w), k_even(b.x, b.y),
                                k_even(b.z, b.w)));
    k_store_quad(d + n,
                 k_quad_make(k_even(a.x >> 8, a.y >> 8), k_even(a.z >> 8, a.w >> 8),
                             k_even(b.x >> 8, b.y >> 8), k_even(b.z >> 8, b.w >> 8)));
}

/* Four planes of four quads of bytes. */
K_FUNCTION void k_spread4(K_GLOBAL k_u8 *d, k_u64 n, k_quad a, k_quad b, k_quad c,
                          k_quad e)
{
    k_store_quad(d, k_quad_make(a.x, b.x, c.x, e.x));
    k_store_quad(d + n, k_quad_make(a.y, b.y, c.y, e.y));
    k_store_quad(d + 2 * n, k_quad_make(a.z, b.z, c.z, e.z));
    k_store_quad(d + 3 * n, k_quad_make(a.w, b.w, c.w, e.w));
}

K_FUNCTION void k_part4(K_GLOBAL k_u8 *d, K_GLOBAL const k_quad *s, k_u64 n)
{
    const k_quad a = s[0], b = s[1], c = s[2], e = s[3];

    k_spread4(d, n, k_turn(a.x, a.y, a.z, a.w), k_turn(b.x, b.y, b.z, b.w),
              k_turn(c.x, c.y, c.z, c.w), k_turn(e.x, e.y, e.z, e.w));
}

K_FUNCTION void k_part8(K_GLOBAL k_u8 *d, K_GLOBAL const k_quad *s, k_u64 n)
{
    const k_quad a = s[0], b = s[1], c = s[2], e = s[3], f = s[4], g = s[5], h = s[6],
                 i = s[7];

    k_spread4(d, n, k_turn(a.x, a.z, b.x, b.z), k_turn(c.x, c.z, e.x, e.z),
              k_turn(f.x, f.z, g.x, g.z), k_turn(h.x, h.z, i.x, i.z));
    k_spread4(d + 4 * n, n, k_turn(a.y, a.w, b.y, b.w), k_turn(c.y, c.w, e.y, e.w),
              k_turn(f.y, f.w, g.y, g.w), k_turn(h.y, h.w, i.y, i.w));
}

/* Moves elements sixteen at a time; both ways, as k_move_bytes(). Returns how many. */
K_FUNCTION k_u64 k_move_wide(K_GLOBAL k_u8 *d, K_GLOBAL const k_u8 *s, k_u64 n,
                             k_u32 item, int back, k_u64 first, k_u64 each)
{
    const k_u64 elements = back ? (k_u64)d : (k_u64)s;

    if ((item != 2 && item != 4 && item != 8) || (elements & 15) != 0)
        return 0;
    for (k_u64 k = 16 * first; k + 16 <= n; k += 16 * each) {
        K_GLOBAL k_quad *to = (K_GLOBAL k_quad *)(d + k * item);
        K_GLOBAL const k_quad *from = (K_GLOBAL const k_quad *)(s + k * item);

        if (item == 2 && back)
            k_join2(to, s + k, n);
        else if (item == 4 && back)
            k_join4(to, s + k, n);
        else if (back)
            k_join8(to, s + k, n);
        else if (item == 2)
            k_part2(d + k, from, n);
        else if (item == 4)
            k_part4(d + k, from, n);
        else
            k_part8(d + k, from, n);
    }
    return n / 16 * 16;
}
#endif

/* Moves n elements of `item` bytes, between them and planes of n bytes: the planes are
 * the source if `back`. */
K_FUNCTION void k_move_bytes(K_GLOBAL k_u8 *d, K_GLOBAL const k_u8 *s, k_u64 n,
                             k_u32 item, int back, k_u64 first, k_u64 each)
{
    k_u64 k = first;

#if K_WORDS
    k += k_move_wide(d, s, n, item, back, first, each);
#endif
    for (; k < n; k += each)
        for (k_u32 j = 0; j < item; j++) {
            if (back)
                d[k * item + j] = s[j * n + k];
            else
                d[j * n + k] = s[k * item + j];
        }
}

/* ---- bits -------------------- */

/* Eight bits of eight elements, the first of which is at s: byte b of the result has bit
 * b of each. `step`: from a plane of bits to the next. */
K_FUNCTION k_u64 k_load_bits8(K_GLOBAL const k_u8 *s, k_u64 step)
{
    k_u64 x = 0;

    K_UNROLL for (k_u32 b = 0; b < 8; b++) x |= (k_u64)s[b * step] << 8 * b;
    return x;
}

K_FUNCTION void k_store_bits8(K_GLOBAL k_u8 *d, k_u64 step, k_u64 x)
{
    K_UNROLL for (k_u32 b = 0; b < 8; b++) d[b * step] = (k_u8)(x >> 8 * b);
}

#if K_WORDS
/* Eight elements of 2, 4 or 8 bytes, of which x[j] has bytes j. */
K_FUNCTION void k_join_eight(K_GLOBAL k_quad *d, const k_u64 *x, k_u32 item)
{
    if (item == 2) {
        const k_u32 a = (k_u32)x[0], b = (k_u32)x[1], c = (k_u32)(x[0] >> 32),
                    e = (k_u32)(x[1] >> 32);

        d[0] = k_quad_make(k_zip(a, b), k_zip(a >> 16, b >> 16), k_zip(c, e),
                           k_zip(c >> 16, e >> 16));
        return;
    }
    K_UNROLL for (k_u32 part = 0; part < 2; part++)
    {
        const k_u32 up = 32 * part;
        const k_quad low = k_turn((k_u32)(x[0] >> up), (k_u32)(x[1] >> up),
                                  (k_u32)(x[2] >> up), (k_u32)(x[3] >> up));

        if (item == 4)
            d[part] = low;
        else
            k_put8(d + 2 * part, low,
                   k_turn((k_u32)(x[4] >> up), (k_u32)(x[5] >> up), (k_u32)(x[6] >> up),
                          (k_u32)(x[7] >> up)));
    }
}
#endif

/* The planes of bits of byte j of an element are 8 * j to 8 * j + 7, each of n / 8 bytes.
 * n is a multiple of eight. */
K_FUNCTION void k_move_bits(K_GLOBAL k_u8 *d, K_GLOBAL const k_u8 *s, k_u64 n, k_u32 item,
                            int back, k_u64 first, k_u64 each)
{
    const k_u64 step = n / 8;

    for (k_u64 k = first; k < step; k += each) {
#if K_WORDS
        if (back && (item == 2 || item == 4 || item == 8) && ((k_u64)d & 15) == 0) {
            k_u64 x[8] = {0, 0, 0, 0, 0, 0, 0, 0};

            K_UNROLL for (k_u32 j = 0; j < 8; j++) if (j < item) x[j] =
                k_transpose(k_load_bits8(s + j * n + k, step));
            k_join_eight((K_GLOBAL k_quad *)(d + 8 * k * item), x, item);
            continue;
        }
#endif
        for (k_u32 j = 0; j < item; j++) {
            const k_u64 elements = 8 * k * item + j, planes = j * n + k;

            if (back)
                k_store_bits8(d + elements, item,
                              k_transpose(k_load_bits8(s + planes, step)));
            else
                k_store_bits8(d + planes, step,
                              k_transpose(k_load_bits8(s + elements, item)));
        }
    }
}

/* ---- the kernels -------------------- */

/* Moves one part; the planes are the source if `back`. Bits need a multiple of eight
 * elements: other parts are copied. */
K_FUNCTION void k_move_part(K_GLOBAL k_u8 *d, K_GLOBAL const k_u8 *s,
                            K_GLOBAL const struct k_planes *p, int back, k_u64 first,
                            k_u64 each)
{
    const k_u32 item = p->item_bytes > 1 ? p->item_bytes : 1;
    k_u64 n = p->bytes, rest;

    rest = k_split(&n, item);
    if (p->bits && n % 8 == 0) {
        k_move_bits(d, s, n, item, back, first, each);
    } else if (p->bits || item == 1) {
        k_copy_bytes(d, s, p->bytes, first, each);
        return;
    } else {
        k_move_bytes(d, s, n, item, back, first, each);
    }
    for (k_u64 k = p->bytes - rest + first; k < p->bytes; k += each)
        d[k] = s[k];
}

K_KERNEL k_unshuffle(K_GLOBAL k_u8 *dst, K_GLOBAL const k_u8 *src,
                     K_GLOBAL const struct k_planes *parts, k_u64 n_parts, k_u64 each)
{
    k_u64 at = K_PLACE;
    const k_u64 first = k_split(&at, each);

    if (at < n_parts)
        k_move_part(dst + parts[at].dst, src + parts[at].src, &parts[at], 1, first, each);
}

K_KERNEL k_shuffle(K_GLOBAL k_u8 *dst, K_GLOBAL const k_u8 *src,
                   K_GLOBAL const struct k_planes *parts, k_u64 n_parts, k_u64 each)
{
    k_u64 at = K_PLACE;
    const k_u64 first = k_split(&at, each);

    if (at < n_parts)
        k_move_part(dst + parts[at].dst, src + parts[at].src, &parts[at], 0, first, each);
}

#endif
