/*
 * kernels/filters.h - filters that compute: casts as NumPy's astype() makes them,
 * numcodecs' delta and fixedscaleoffset, and bits that are packed. A number may have any
 * byte order and any place.
 */
#ifndef K_FILTERS_H
#define K_FILTERS_H

enum {
    K_BOOL = 0,
    K_INT = 1,
    K_UINT = 2,
    K_FLOAT = 3
};
/* A type of numbers: integers of 1, 2, 4, 8 bytes, floats of 2, 4, 8. */
struct k_type {
    k_u32 kind, bytes, big, unused;
};
/* n elements that become n others. */
struct k_filter {
    k_u64 src, dst, n;
    struct k_type from, to;
    double scale, offset; /* of k_unscale() and k_scale() */
};
/* A number: u has integers, sign-extended, and d has floats. */
struct k_value {
    k_u64 u;
    double d;
};

/* ---- numbers and bits -------------------- */

union k_double {
    double d;
    k_u64 u;
};
union k_float {
    float f;
    k_u32 u;
};

K_FUNCTION k_u64 k_double_bits(double d)
{
    union k_double x;

    x.d = d;
    return x.u;
}

K_FUNCTION double k_double_from_bits(k_u64 u)
{
    union k_double x;

    x.u = u;
    return x.d;
}

K_FUNCTION int k_is_nan(k_u64 bits)
{
    return (bits & 0x7FFFFFFFFFFFFFFFUL) > 0x7FF0000000000000UL;
}

/* A NaN keeps the bits that fit, and stays one. `fraction`: bits of the smaller float. */
K_FUNCTION k_u64 k_nan_down(k_u64 bits, k_u32 bytes, k_u32 fraction)
{
    const k_u32 top = 8 * bytes - 1;
    const k_u64 exponent = (((k_u64)1 << (top - fraction)) - 1) << fraction;
    const k_u64 kept = (bits & 0x000FFFFFFFFFFFFFUL) >> (52 - fraction);

    return bits >> 63 << top | exponent | (kept ? kept : 1);
}

K_FUNCTION k_u64 k_nan_up(k_u64 bits, k_u32 bytes, k_u32 fraction)
{
    const k_u64 kept = bits & (((k_u64)1 << fraction) - 1);

    return bits >> (8 * bytes - 1) << 63 | 0x7FF0000000000000UL | kept << (52 - fraction);
}

/* A half to a double, exactly. */
K_FUNCTION double k_half_value(k_u32 h)
{
    const k_u64 sign = (k_u64)(h >> 15) << 63;
    const k_u32 exponent = h >> 10 & 31, fraction = h & 1023;

    if (exponent == 31 && fraction)
        return k_double_from_bits(k_nan_up(h, 2, 10));
    if (exponent == 31)
        return k_double_from_bits(sign | 0x7FF0000000000000UL);
    if (exponent == 0) { /* fraction * 2^-24 */
        const double v = (double)fraction * 5.9604644775390625e-8;

        return k_double_from_bits(k_double_bits(v) | sign);
    }
    return k_double_from_bits(sign | (k_u64)(exponent + 1008) << 52 |
                              (k_u64)fraction << 42);
}

/* The nearest half; ties go to the even one. */
K_FUNCTION k_u32 k_half_bits(double d)
{
    const k_u64 bits = k_double_bits(d);
    const k_u32 sign = (k_u32)(bits >> 63) << 15;
    const k_u64 exponent = bits >> 52 & 0x7FF;
    k_u64 fraction = bits & 0x000FFFFFFFFFFFFFUL, near, rest, middle;
    k_u32 drop = 42;

    if (k_is_nan(bits))
        return (k_u32)k_nan_down(bits, 2, 10);
    if (exponent >= 1023 + 16)
        return sign | 0x7C00;
    if (exponent < 1023 - 25)
        return sign;
    if (exponent < 1023 - 14) { /* below the least normal half */
        fraction |= 0x0010000000000000UL;
        drop += (k_u32)(1023 - 14 - exponent);
        near = fraction >> drop;
    } else {
        near = (exponent - 1008) << 10 | fraction >> 42;
    }
    rest = fraction & (((k_u64)1 << drop) - 1);
    middle = (k_u64)1 << (drop - 1);
    near += rest > middle || (rest == middle && (near & 1));
    return sign | (k_u32)near; /* a carry goes into the exponent, to infinity at last */
}

/* ---- elements -------------------- */

K_FUNCTION k_u64 k_load_bits(K_GLOBAL const k_u8 *p, const struct k_type *t)
{
    k_u64 v = 0;

    for (k_u32 k = 0; k < t->bytes; k++)
        v |= (k_u64)p[t->big ? t->bytes - 1 - k : k] << 8 * k;
    return v;
}

K_FUNCTION void k_store_bits(K_GLOBAL k_u8 *p, const struct k_type *t, k_u64 v)
{
    for (k_u32 k = 0; k < t->bytes; k++)
        p[t->big ? t->bytes - 1 - k : k] = (k_u8)(v >> 8 * k);
}

/* An integer cut to its type, and extended again. */
K_FUNCTION k_u64 k_wrap(k_u64 u, const struct k_type *t)
{
    const k_u32 spare = (8 - t->bytes) % 8 * 8;

    if (t->kind == K_BOOL)
        return u != 0;
    return t->kind == K_INT ? (k_u64)((k_i64)(u << spare) >> spare) : u << spare >> spare;
}

K_FUNCTION struct k_value k_load(K_GLOBAL const k_u8 *p, const struct k_type *t)
{
    const k_u64 bits = k_load_bits(p, t);
    struct k_value v;

    v.u = bits;
    v.d = 0;
    if (t->kind != K_FLOAT) {
        v.u = k_wrap(bits, t);
    } else if (t->bytes == 8) {
        v.d = k_double_from_bits(bits);
    } else if (t->bytes == 4 && (bits & 0x7FFFFFFF) > 0x7F800000) {
        v.d = k_double_from_bits(k_nan_up(bits, 4, 23));
    } else if (t->bytes == 4) {
        union k_float x;

        x.u = (k_u32)bits;
        v.d = (double)x.f;
    } else {
        v.d = k_half_value((k_u32)bits);
    }
    return v;
}

K_FUNCTION void k_store(K_GLOBAL k_u8 *p, const struct k_type *t, struct k_value v)
{
    const k_u64 bits = k_double_bits(v.d);

    if (t->kind != K_FLOAT) {
        k_store_bits(p, t, v.u);
    } else if (t->bytes == 8) {
        k_store_bits(p, t, bits);
    } else if (t->bytes == 2) {
        k_store_bits(p, t, k_half_bits(v.d));
    } else if (k_is_nan(bits)) {
        k_store_bits(p, t, k_nan_down(bits, 4, 23));
    } else {
        union k_float x;

        x.f = (float)v.d;
        k_store_bits(p, t, x.u);
    }
}

/* A double rounded to a float of `bytes`. */
K_FUNCTION double k_round(double d, k_u32 bytes)
{
    union k_float x;

    if (bytes == 2)
        return k_half_value(k_half_bits(d));
    if (bytes == 8 || k_is_nan(k_double_bits(d)))
        return d;
    x.f = (float)d;
    return (double)x.f;
}

/* A double as an integer of the type. What does not fit gives what x86 gives, and so
 * NumPy there: the least integer of 32 or 64 bits, cut to the type. */
K_FUNCTION k_u64 k_whole(double d, const struct k_type *t)
{
    const double two63 = 9223372036854775808.0;

    if (t->kind == K_BOOL)
        return d != 0;
    if (t->bytes < 4 || (t->bytes == 4 && t->kind == K_INT))
        return d > -2147483649.0 && d < 2147483648.0 ? (k_u64)(k_i64)d
                                                     : 0xFFFFFFFF80000000UL;
    if (t->kind == K_UINT && t->bytes == 8 && d >= two63)
        return d < 2 * two63 ? (k_u64)(d - two63) + 0x8000000000000000UL : 0;
    return d >= -two63 && d < two63 ? (k_u64)(k_i64)d : 0x8000000000000000UL;
}

K_FUNCTION struct k_value k_convert(struct k_value v, const struct k_type *from,
                                    const struct k_type *to)
{
    const k_u64 bits = k_double_bits(v.d);

    if (from->kind != K_FLOAT && to->kind == K_FLOAT) {
        v.d = from->kind == K_INT ? (double)(k_i64)v.u : (double)v.u;
        if (to->bytes < 8) { /* once, from the integer; to a half by way of a float */
            union k_float x;

            x.f = from->kind == K_INT ? (float)(k_i64)v.u : (float)v.u;
            v.d = (double)x.f;
        }
    } else if (from->kind == K_FLOAT && to->kind != K_FLOAT) {
        v.u = k_wrap(k_whole(v.d, to), to);
    } else if (from->kind == K_FLOAT && from->bytes != to->bytes) {
        if (k_is_nan(bits) && from->bytes != 2 && to->bytes != 2)
            v.d = k_double_from_bits(bits | 0x0008000000000000UL);
        else if (!k_is_nan(bits))
            v.d = k_round(v.d, to->bytes);
    } else {
        v.u = k_wrap(v.u, to);
    }
    return v;
}

/* ---- casts, and fixedscaleoffset -------------------- */

/* `each` work items for a filter. */
K_KERNEL k_cast(K_GLOBAL k_u8 *dst, K_GLOBAL const k_u8 *src,
                K_GLOBAL const struct k_filter *filters, k_u64 n_filters, k_u64 each)
{
    const k_u64 at = K_PLACE;

    if (at >= n_filters * each)
        return;
    K_GLOBAL const struct k_filter *f = &filters[at / each];
    const struct k_type from = f->from, to = f->to;

    for (k_u64 i = at % each; i < f->n; i += each) {
        const struct k_value v = k_load(src + f->src + i * from.bytes, &from);

        k_store(dst + f->dst + i * to.bytes, &to, k_convert(v, &from, &to));
    }
}

/* fixedscaleoffset: v / scale + offset in floats as wide as those of the encoded type, in
 * doubles for integers; then the cast. */
K_KERNEL k_unscale(K_GLOBAL k_u8 *dst, K_GLOBAL const k_u8 *src,
                   K_GLOBAL const struct k_filter *filters, k_u64 n_filters, k_u64 each)
{
    const k_u64 at = K_PLACE;

    if (at >= n_filters * each)
        return;
    K_GLOBAL const struct k_filter *f = &filters[at / each];
    const struct k_type from = f->from, to = f->to;
    const k_u32 width = from.kind == K_FLOAT ? from.bytes : 8;
    const double scale = k_round(f->scale, width), offset = k_round(f->offset, width);
    struct k_type real;

    real.kind = K_FLOAT;
    real.bytes = width;
    real.big = real.unused = 0;
    for (k_u64 i = at % each; i < f->n; i += each) {
        struct k_value v = k_load(src + f->src + i * from.bytes, &from);

        v = k_convert(v, &from, &real);
        v.d = k_round(k_round(v.d / scale, width) + offset, width);
        k_store(dst + f->dst + i * to.bytes, &to, k_convert(v, &real, &to));
    }
}

/* The other direction, of elements that are floats: (v - offset) * scale, rounded to a
 * whole number, ties to even. Integers are encoded elsewhere: they may wrap. */
K_KERNEL k_scale(K_GLOBAL k_u8 *dst, K_GLOBAL const k_u8 *src,
                 K_GLOBAL const struct k_filter *filters, k_u64 n_filters, k_u64 each)
{
    const k_u64 at = K_PLACE;

    if (at >= n_filters * each)
        return;
    K_GLOBAL const struct k_filter *f = &filters[at / each];
    const struct k_type from = f->from, to = f->to;
    const k_u32 width = from.bytes;
    const double scale = k_round(f->scale, width), offset = k_round(f->offset, width);

    for (k_u64 i = at % each; i < f->n; i += each) {
        struct k_value v = k_load(src + f->src + i * from.bytes, &from);

        v.d = K_RINT(k_round(k_round(v.d - offset, width) * scale, width));
        k_store(dst + f->dst + i * to.bytes, &to, k_convert(v, &from, &to));
    }
}

/* ---- delta, of one type on both sides -------------------- */

/* Differences: `each` work items for a filter. */
K_KERNEL k_delta(K_GLOBAL k_u8 *dst, K_GLOBAL const k_u8 *src,
                 K_GLOBAL const struct k_filter *filters, k_u64 n_filters, k_u64 each)
{
    const k_u64 at = K_PLACE;

    if (at >= n_filters * each)
        return;
    K_GLOBAL const struct k_filter *f = &filters[at / each];
    const struct k_type from = f->from, to = f->to;

    for (k_u64 i = at % each; i < f->n; i += each) {
        K_GLOBAL const k_u8 *p = src + f->src + i * from.bytes;
        struct k_value v = k_load(p, &from);

        if (i > 0) {
            const struct k_value last = k_load(p - from.bytes, &from);

            v.u -= last.u;
            v.d = k_round(v.d - last.d, from.bytes);
        }
        k_store(dst + f->dst + i * to.bytes, &to, v);
    }
}

/* Elements of one slice, of `each`. Sums of floats depend on their order: one slice. */
K_FUNCTION k_u64 k_delta_slice(K_GLOBAL const struct k_filter *f, k_u64 each)
{
    return f->from.kind == K_FLOAT ? f->n : f->n / each + 1;
}

/* Decoding, first step: sums[i] becomes the sum of slice i. `each` work items for a
 * filter. */
K_KERNEL k_delta_sums(K_GLOBAL const k_u8 *src, K_GLOBAL const struct k_filter *filters,
                      K_GLOBAL k_u64 *sums, k_u64 n_filters, k_u64 each)
{
    const k_u64 at = K_PLACE;
    k_u64 sum = 0;

    if (at >= n_filters * each)
        return;
    K_GLOBAL const struct k_filter *f = &filters[at / each];
    const struct k_type from = f->from;
    const k_u64 slice = k_delta_slice(f, each), first = at % each * slice;

    for (k_u64 i = first; i < f->n && i - first < slice && from.kind != K_FLOAT; i++)
        sum += k_load_bits(src + f->src + i * from.bytes, &from);
    sums[at] = sum;
}

/* Second step: each slice begins with the sum of those before it. */
K_KERNEL k_undelta(K_GLOBAL k_u8 *dst, K_GLOBAL const k_u8 *src,
                   K_GLOBAL const struct k_filter *filters, K_GLOBAL const k_u64 *sums,
                   k_u64 n_filters, k_u64 each)
{
    const k_u64 at = K_PLACE;
    struct k_value sum;

    if (at >= n_filters * each)
        return;
    K_GLOBAL const struct k_filter *f = &filters[at / each];
    const struct k_type from = f->from, to = f->to;
    const k_u64 slice = k_delta_slice(f, each), first = at % each * slice;

    sum.u = 0;
    sum.d = 0;
    for (k_u64 i = at - at % each; i < at; i++)
        sum.u += sums[i];
    for (k_u64 i = first; i < f->n && i - first < slice; i++) {
        const struct k_value v = k_load(src + f->src + i * from.bytes, &from);

        sum.u += v.u;
        sum.d = i > 0 ? k_round(sum.d + v.d, from.bytes) : v.d;
        k_store(dst + f->dst + i * to.bytes, &to, sum);
    }
}

/* ---- packed bits -------------------- */

/* Components of `bytes` bytes, little-endian, of which `kept` bits from bit `first` on
 * are stored, the lowest first. `high_first`: numcodecs' packing of bools, one bit each,
 * the highest first. `counted`: the packed side has the number of padding bits in the
 * byte `count_at`; if it has another, that is K_BAD_PADDING. */
struct k_pack {
    k_u64 src, dst, n; /* components */
    k_u64 count_at;
    k_u32 bytes, first, kept; /* none of them 0, except `first` */
    k_u32 is_signed, boolean, high_first, counted;
    k_u32 number; /* place of the status */
};

K_FUNCTION k_u32 k_padding(K_GLOBAL const struct k_pack *p)
{
    return (k_u32)(8 - p->n * p->kept % 8) % 8;
}

/* Bit i of a packed stream. */
K_FUNCTION k_u64 k_packed_bit(K_GLOBAL const k_u8 *s, k_u64 i, k_u32 high_first)
{
    return (k_u64)(s[i / 8] >> (high_first ? 7 - i % 8 : i % 8)) & 1;
}

K_KERNEL k_unpack_bits(K_GLOBAL k_u8 *dst, K_GLOBAL const k_u8 *src,
                       K_GLOBAL const struct k_pack *packs, K_GLOBAL k_u32 *status,
                       k_u64 n_packs, k_u64 each)
{
    const k_u64 at = K_PLACE;

    if (at >= n_packs * each)
        return;
    K_GLOBAL const struct k_pack *p = &packs[at / each];

    if (at % each == 0 && p->counted && src[p->count_at] != k_padding(p))
        status[p->number] = K_BAD_PADDING;
    for (k_u64 i = at % each; i < p->n; i += each) {
        K_GLOBAL k_u8 *to = dst + p->dst + i * p->bytes;
        k_u64 v = 0;

        for (k_u32 b = 0; b < p->kept; b++)
            v |= k_packed_bit(src + p->src, i * p->kept + b, p->high_first) << b;
        if (p->is_signed && p->kept > 0 && v >> (p->kept - 1) && p->first + p->kept < 64)
            v |= ~(k_u64)0 << p->kept;
        v <<= p->first;
        for (k_u32 k = 0; k < p->bytes; k++)
            to[k] = (k_u8)(v >> 8 * k);
    }
}

/* Bit i of the stream to pack. */
K_FUNCTION k_u32 k_bit_to_pack(K_GLOBAL const k_u8 *s, K_GLOBAL const struct k_pack *p,
                               k_u64 i)
{
    K_GLOBAL const k_u8 *from = s + i / p->kept * p->bytes;
    const k_u64 bit = p->first + i % p->kept;
    k_u32 any = 0;

    if (!p->boolean)
        return (k_u32)from[bit / 8] >> bit % 8 & 1;
    for (k_u32 k = 0; k < p->bytes; k++)
        any |= from[k];
    return any != 0;
}

/* A work item makes whole bytes. The bits after the last component are 0. */
K_KERNEL k_pack_bits(K_GLOBAL k_u8 *dst, K_GLOBAL const k_u8 *src,
                     K_GLOBAL const struct k_pack *packs, k_u64 n_packs, k_u64 each)
{
    const k_u64 at = K_PLACE;

    if (at >= n_packs * each)
        return;
    K_GLOBAL const struct k_pack *p = &packs[at / each];
    const k_u64 bits = p->n * p->kept;

    if (at % each == 0 && p->counted)
        dst[p->count_at] = (k_u8)k_padding(p);
    for (k_u64 k = at % each; k < (bits + 7) / 8; k += each) {
        k_u32 byte = 0;

        for (k_u32 b = 0; b < 8 && 8 * k + b < bits; b++)
            byte |= k_bit_to_pack(src + p->src, p, 8 * k + b)
                    << (p->high_first ? 7 - b : b);
        dst[p->dst + k] = (k_u8)byte;
    }
}

#endif
