/*
 * kernels/planes.h - shuffle and bit shuffle, as numcodecs and blosc do them, and back.
 * `each` work items share one part.
 */
#ifndef K_PLANES_H
#define K_PLANES_H

/* Where byte k of the elements is in the planes. */
K_FUNCTION k_u64 k_in_planes(K_GLOBAL const struct k_planes *p, k_u64 k)
{
    const k_u64 item = p->item_bytes > 1 ? p->item_bytes : 1, n = p->bytes / item;

    return k < n * item ? k % item * n + k / item : k;
}

/* Whether the planes are of bits, and eight elements make a byte of each. */
K_FUNCTION int k_has_bits(K_GLOBAL const struct k_planes *p)
{
    const k_u64 item = p->item_bytes > 1 ? p->item_bytes : 1;

    return p->bits && p->bytes / item % 8 == 0;
}

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

/* Moves eight bytes of bits: byte b of the planes of byte `of`, for elements 8 * k to
 * 8 * k + 7. */
K_FUNCTION void k_bits(K_GLOBAL k_u8 *d, K_GLOBAL const k_u8 *s, k_u64 from,
                       k_u64 from_step, k_u64 to, k_u64 to_step)
{
    k_u64 x = 0;

    for (k_u32 b = 0; b < 8; b++)
        x |= (k_u64)s[from + b * from_step] << 8 * b;
    x = k_transpose(x);
    for (k_u32 b = 0; b < 8; b++)
        d[to + b * to_step] = (k_u8)(x >> 8 * b);
}

/* Both ways: the planes are the source if `back`. */
K_FUNCTION void k_move_bits(K_GLOBAL k_u8 *d, K_GLOBAL const k_u8 *s,
                            K_GLOBAL const struct k_planes *p, int back, k_u64 first,
                            k_u64 each)
{
    const k_u64 item = p->item_bytes > 1 ? p->item_bytes : 1, n = p->bytes / item;

    for (k_u64 k = first; k < n / 8 * item; k += each) {
        const k_u64 group = k / item, of = k % item;
        const k_u64 in = group * 8 * item + of, out = of * n + group;

        if (back)
            k_bits(d, s, out, n / 8, in, item);
        else
            k_bits(d, s, in, item, out, n / 8);
    }
    for (k_u64 k = n * item + first; k < p->bytes; k += each)
        d[k] = s[k];
}

/* Moves one part; as k_move_bits(). */
K_FUNCTION void k_move_part(K_GLOBAL k_u8 *dst, K_GLOBAL const k_u8 *src,
                            K_GLOBAL const struct k_planes *p, int back, k_u64 first,
                            k_u64 each)
{
    K_GLOBAL const k_u8 *s = src + p->src;
    K_GLOBAL k_u8 *d = dst + p->dst;

    if (k_has_bits(p)) {
        k_move_bits(d, s, p, back, first, each);
        return;
    }
    for (k_u64 k = first; k < p->bytes; k += each) {
        const k_u64 in = p->bits ? k : k_in_planes(p, k);

        if (back)
            d[k] = s[in];
        else
            d[in] = s[k];
    }
}

K_KERNEL k_unshuffle(K_GLOBAL k_u8 *dst, K_GLOBAL const k_u8 *src,
                     K_GLOBAL const struct k_planes *parts, k_u64 n_parts, k_u64 each)
{
    const k_u64 at = K_PLACE;

    if (at < n_parts * each)
        k_move_part(dst, src, &parts[at / each], 1, at % each, each);
}

K_KERNEL k_shuffle(K_GLOBAL k_u8 *dst, K_GLOBAL const k_u8 *src,
                   K_GLOBAL const struct k_planes *parts, k_u64 n_parts, k_u64 each)
{
    const k_u64 at = K_PLACE;

    if (at < n_parts * each)
        k_move_part(dst, src, &parts[at / each], 0, at % each, each);
}

#endif
