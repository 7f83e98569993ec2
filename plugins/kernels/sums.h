/*
 * kernels/sums.h - checksums: crc32c, crc32, adler32, HDF5's fletcher32, and Bob Jenkins'
 * lookup3. `each` work items sum slices of the bytes, then one item joins the slices, and
 * compares or stores the sum. lookup3 has no slices: that one item does all of it.
 *
 * The CRCs are computed bit by bit, without tables: a warp that looks up a table in
 * many places waits for each.
 */
#ifndef K_SUMS_H
#define K_SUMS_H

enum {
    K_CRC32C = 0,
    K_CRC32 = 1,
    K_ADLER32 = 2,
    K_FLETCHER32 = 3,
    K_LOOKUP3 = 4,
    K_PREFIX = 64 /* most bytes of lookup3's prefix */
};
/* Bytes, and the place of their sum: four bytes, the lowest first. */
struct k_sum {
    k_u64 src, bytes, at;
    k_u32 kind, number;
    k_u32 store; /* writes the sum; 0: compares, and a difference is K_BAD_SUM */
    k_u32 start; /* of lookup3 */
    k_u32 prefix_bytes, unused;
    k_u8 prefix[K_PREFIX];
};

/* Bytes of one slice: a multiple of four, so that words of sixteen bits stay whole. */
K_FUNCTION k_u64 k_slice(k_u64 bytes, k_u64 each)
{
    return (bytes / each / 4 + 1) * 4;
}

/* ---- CRCs -------------------- */

K_FUNCTION k_u32 k_crc_polynomial(k_u32 kind)
{
    return kind == K_CRC32C ? 0x82F63B78U : 0xEDB88320U;
}

/* The remainder of x^32 times the bytes, from 0, without the final complement. */
K_FUNCTION k_u32 k_crc_bytes(K_GLOBAL const k_u8 *s, k_u64 n, k_u32 polynomial)
{
    k_u32 crc = 0;

    for (k_u64 i = 0; i < n; i++) {
        crc ^= s[i];
        for (int b = 0; b < 8; b++)
            crc = crc >> 1 ^ (polynomial & (0U - (crc & 1)));
    }
    return crc;
}

/* a * b modulo the polynomial; the highest bit of a number is that of x^0. */
K_FUNCTION k_u32 k_crc_times(k_u32 a, k_u32 b, k_u32 polynomial)
{
    k_u32 product = 0;

    for (int k = 0; k < 32; k++) {
        product ^= b & (0U - (a >> 31));
        a <<= 1;
        b = b >> 1 ^ (polynomial & (0U - (b & 1)));
    }
    return product;
}

/* x^(8 * bytes) */
K_FUNCTION k_u32 k_crc_shift(k_u64 bytes, k_u32 polynomial)
{
    k_u32 power = 0x80000000U, square = 0x00800000U; /* x^0, x^8 */

    for (; bytes > 0; bytes >>= 1) {
        if (bytes & 1)
            power = k_crc_times(power, square, polynomial);
        square = k_crc_times(square, square, polynomial);
    }
    return power;
}

K_FUNCTION k_u32 k_crc_join(K_GLOBAL const k_u64 *slices, k_u64 each, k_u64 bytes,
                            k_u32 polynomial)
{
    const k_u64 slice = k_slice(bytes, each);
    const k_u32 shift = k_crc_shift(slice, polynomial);
    k_u32 crc = 0xFFFFFFFFU;

    for (k_u64 i = 0, at = 0; i < each && at < bytes; i++, at += slice)
        crc = k_crc_times(
                  crc, bytes - at < slice ? k_crc_shift(bytes - at, polynomial) : shift,
                  polynomial) ^
              (k_u32)slices[i];
    return ~crc;
}

/* ---- sums of sums -------------------- */

/* A slice of adler32 or fletcher32: in bits 0 to 15 the sum of its units (bytes, or words
 * of sixteen bits with the high byte first), in bits 16 to 31 the sum of these sums, both
 * modulo `prime`, and in bit 32 whether a unit is not 0. */
K_FUNCTION k_u64 k_sum_slice(K_GLOBAL const k_u8 *s, k_u64 n, k_u32 unit, k_u32 prime)
{
    k_u32 any = 0, run = 0;
    k_u64 a = 0, b = 0;

    for (k_u64 i = 0; i < n; i += unit) {
        k_u32 v = s[i];

        if (unit == 2)
            v = v << 8 | (i + 1 < n ? s[i + 1] : 0U);
        any |= v;
        a += v;
        b += a;
        if (++run == 4096) {
            a %= prime;
            b %= prime;
            run = 0;
        }
    }
    return a % prime | b % prime << 16 | (k_u64)(any != 0) << 32;
}

K_FUNCTION k_u32 k_sum_join(K_GLOBAL const k_u64 *slices, k_u64 each, k_u64 bytes,
                            k_u32 unit, k_u32 prime)
{
    const k_u64 slice = k_slice(bytes, each);
    k_u64 a = unit == 1, b = 0, any = 0; /* adler32 begins with 1 */

    for (k_u64 i = 0, at = 0; i < each && at < bytes; i++, at += slice) {
        const k_u64 left = bytes - at < slice ? bytes - at : slice;
        const k_u64 units = (left + unit - 1) / unit;

        b = (b + (slices[i] >> 16 & 0xFFFF) + a * (units % prime)) % prime;
        a = (a + (slices[i] & 0xFFFF)) % prime;
        any |= slices[i] >> 32;
    }
    if (unit == 2 && any) { /* fletcher32: 65535 is not 0 */
        a = a ? a : prime;
        b = b ? b : prime;
    }
    return (k_u32)(b << 16 | a);
}

/* ---- lookup3 -------------------- */

struct k_lookup {
    k_u32 a, b, c;
};

K_FUNCTION k_u32 k_rotate(k_u32 x, k_u32 bits)
{
    return x << bits | x >> (32 - bits);
}

/* x -= z; x ^= rotated z; z += y, for each word in turn */
K_FUNCTION void k_lookup_mix(struct k_lookup *s)
{
    s->a = (s->a - s->c) ^ k_rotate(s->c, 4);
    s->c += s->b;
    s->b = (s->b - s->a) ^ k_rotate(s->a, 6);
    s->a += s->c;
    s->c = (s->c - s->b) ^ k_rotate(s->b, 8);
    s->b += s->a;
    s->a = (s->a - s->c) ^ k_rotate(s->c, 16);
    s->c += s->b;
    s->b = (s->b - s->a) ^ k_rotate(s->a, 19);
    s->a += s->c;
    s->c = (s->c - s->b) ^ k_rotate(s->b, 4);
    s->b += s->a;
}

K_FUNCTION void k_lookup_last(struct k_lookup *s)
{
    s->c = (s->c ^ s->b) - k_rotate(s->b, 14);
    s->a = (s->a ^ s->c) - k_rotate(s->c, 11);
    s->b = (s->b ^ s->a) - k_rotate(s->a, 25);
    s->c = (s->c ^ s->b) - k_rotate(s->b, 16);
    s->a = (s->a ^ s->c) - k_rotate(s->c, 4);
    s->b = (s->b ^ s->a) - k_rotate(s->a, 14);
    s->c = (s->c ^ s->b) - k_rotate(s->b, 24);
}

/* Four bytes from place i of the prefix and then the bytes; 0 after the end. */
K_FUNCTION k_u32 k_lookup_word(K_GLOBAL const k_u8 *s, K_GLOBAL const struct k_sum *p,
                               k_u64 i)
{
    k_u32 word = 0;

    for (k_u32 k = 0; k < 4; k++, i++) {
        if (i < p->prefix_bytes)
            word |= (k_u32)p->prefix[i] << 8 * k;
        else if (i - p->prefix_bytes < p->bytes)
            word |= (k_u32)s[i - p->prefix_bytes] << 8 * k;
    }
    return word;
}

K_FUNCTION k_u32 k_lookup3(K_GLOBAL const k_u8 *s, K_GLOBAL const struct k_sum *p)
{
    const k_u64 n = p->prefix_bytes + p->bytes;
    struct k_lookup w;

    w.a = w.b = w.c = 0xDEADBEEFU + (k_u32)n + p->start;
    for (k_u64 i = 0; i < n; i += 12) {
        w.a += k_lookup_word(s, p, i);
        w.b += k_lookup_word(s, p, i + 4);
        w.c += k_lookup_word(s, p, i + 8);
        if (n - i > 12)
            k_lookup_mix(&w);
        else
            k_lookup_last(&w);
    }
    return w.c;
}

/* ---- kernels -------------------- */

K_KERNEL k_sum_slices(K_GLOBAL const k_u8 *src, K_GLOBAL const struct k_sum *sums,
                      K_GLOBAL k_u64 *slices, k_u64 n_sums, k_u64 each)
{
    const k_u64 at = K_PLACE;

    if (at >= n_sums * each)
        return;
    K_GLOBAL const struct k_sum *p = &sums[at / each];
    const k_u64 slice = k_slice(p->bytes, each), from = at % each * slice;
    k_u64 n = 0;

    if (from < p->bytes)
        n = p->bytes - from < slice ? p->bytes - from : slice;
    K_GLOBAL const k_u8 *s = src + p->src + (n ? from : 0);

    if (p->kind == K_ADLER32)
        slices[at] = k_sum_slice(s, n, 1, 65521);
    else if (p->kind == K_FLETCHER32)
        slices[at] = k_sum_slice(s, n, 2, 65535);
    else if (p->kind != K_LOOKUP3)
        slices[at] = k_crc_bytes(s, n, k_crc_polynomial(p->kind));
}

/* One work item for a sum. The sums are in `dst`, which may be the buffer of the bytes.
 */
K_KERNEL k_sum_end(K_GLOBAL k_u8 *dst, K_GLOBAL const k_u8 *src,
                   K_GLOBAL const struct k_sum *sums, K_GLOBAL const k_u64 *slices,
                   K_GLOBAL k_u32 *status, k_u64 n_sums, k_u64 each)
{
    const k_u64 at = K_PLACE;
    k_u32 sum, differs = 0;

    if (at >= n_sums)
        return;
    K_GLOBAL const struct k_sum *p = &sums[at];
    K_GLOBAL const k_u64 *own = slices + at * each;

    if (p->kind == K_ADLER32)
        sum = k_sum_join(own, each, p->bytes, 1, 65521);
    else if (p->kind == K_FLETCHER32)
        sum = k_sum_join(own, each, p->bytes, 2, 65535);
    else if (p->kind == K_LOOKUP3)
        sum = k_lookup3(src + p->src, p);
    else
        sum = k_crc_join(own, each, p->bytes, k_crc_polynomial(p->kind));
    for (k_u32 k = 0; k < 4; k++) {
        const k_u8 byte = (k_u8)(sum >> 8 * k);

        if (p->store)
            dst[p->at + k] = byte;
        else
            differs |= dst[p->at + k] != byte;
    }
    if (differs)
        status[p->number] = K_BAD_SUM;
}

#endif
