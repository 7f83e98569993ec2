/*
 * kernels/copy.h - bytes that move or are compared: strided boxes with byte order and
 * transposition, fills, runs, gathered elements, and the test for one repeated value.
 */
#ifndef K_COPY_H
#define K_COPY_H

#if K_WORDS
/* Swaps the bytes of every unit of `swap` bytes in a word. */
K_FUNCTION k_u64 k_swap_word(k_u64 x, k_u32 swap)
{
    if (swap >= 2)
        x = (x & 0x00FF00FF00FF00FFUL) << 8 | (x >> 8 & 0x00FF00FF00FF00FFUL);
    if (swap >= 4)
        x = (x & 0x0000FFFF0000FFFFUL) << 16 | (x >> 16 & 0x0000FFFF0000FFFFUL);
    if (swap >= 8)
        x = x << 32 | x >> 32;
    return x;
}

/* Copies an element by one access, if its size and its places permit it. */
K_FUNCTION int k_copy_word(K_GLOBAL k_u8 *d, K_GLOBAL const k_u8 *s, k_u32 bytes,
                           k_u32 swap)
{
    if (((k_u64)d | (k_u64)s) % bytes != 0)
        return 0;
    if (bytes == 8)
        *(K_GLOBAL k_u64 *)d = k_swap_word(*(K_GLOBAL const k_u64 *)s, swap);
    else if (bytes == 4)
        *(K_GLOBAL k_u32 *)d = (k_u32)k_swap_word(*(K_GLOBAL const k_u32 *)s, swap);
    else if (bytes == 2)
        *(K_GLOBAL k_u16 *)d = (k_u16)k_swap_word(*(K_GLOBAL const k_u16 *)s, swap);
    else
        return 0;
    return 1;
}
#endif

K_FUNCTION void k_copy_item(K_GLOBAL k_u8 *d, K_GLOBAL const k_u8 *s, k_u32 bytes,
                            k_u32 swap)
{
    const k_u32 unit = swap > 1 ? swap : 1;

#if K_WORDS
    if (k_copy_word(d, s, bytes, swap))
        return;
#endif
    for (k_u32 k = 0; k < bytes; k++)
        d[k] = s[k / unit * unit + (unit - 1 - k % unit)];
}

/* Divides *x by y, and returns the remainder. Devices divide 32 bits faster. */
K_FUNCTION k_u64 k_split(k_u64 *x, k_u64 y)
{
    k_u64 rest;

    if ((*x | y) >> 32 == 0) {
        const k_u32 a = (k_u32)*x, b = (k_u32)y, quotient = a / b;

        *x = quotient;
        return a - quotient * b;
    }
    rest = *x % y;
    *x /= y;
    return rest;
}

/* A unit of a box: the bytes from its buffers' starts to the first element of its row;
 * its first element in the row, or for rows of bytes the number of the unit. */
struct k_unit {
    k_i64 dst, src;
    k_u64 at;
};

K_FUNCTION struct k_unit k_unit_at(K_GLOBAL const struct k_box *b, k_u64 u)
{
    const k_u32 last = b->ndim - 1, turn = b->turn;
    struct k_unit unit;
    k_u64 k;

    unit.dst = (k_i64)b->dst_at;
    unit.src = (k_i64)b->src_at;
    if (turn < last) {
        k = k_split(&u, b->shape[turn]);
        unit.dst += (k_i64)k * b->dst[turn];
        unit.src += (k_i64)k * b->src[turn];
    }
    unit.at = k_split(&u, b->in_row);
    for (k_u32 d = last; d-- > 0;) {
        if (d == turn)
            continue;
        k = d > 0 ? k_split(&u, b->shape[d]) : u;
        unit.dst += (k_i64)k * b->dst[d];
        unit.src += (k_i64)k * b->src[d];
    }
    return unit;
}

/* The bytes of a row that a unit has: from *from to *end. If not all rows begin at
 * multiples of sixteen, units do, and rows have one more. */
K_FUNCTION void k_unit_bytes(K_GLOBAL const struct k_box *b, K_GLOBAL const k_u8 *row,
                             k_u64 at, k_u64 *from, k_u64 *end)
{
    const k_u64 bytes = b->shape[b->ndim - 1] * b->item_bytes;
    const k_u64 skew = b->in_row > (bytes + 15) / 16 ? (k_u64)row & 15 : 0;

    *from = at > 0 ? 16 * at - skew : 0;
    *end = 16 * at + 16 - skew;
    *end = *end < bytes ? *end : bytes;
}

/* The word that begins at bit `up`, 0 to 24, of two. */
K_FUNCTION k_u32 k_funnel(k_u32 low, k_u32 high, k_u32 up)
{
    return (k_u32)(((k_u64)high << 32 | low) >> up);
}

#if K_WORDS
K_FUNCTION k_u32 k_swap_half(k_u32 x, k_u32 swap)
{
    if (swap >= 2)
        x = (x & 0x00FF00FFU) << 8 | (x >> 8 & 0x00FF00FFU);
    if (swap >= 4)
        x = x << 16 | x >> 16;
    return x;
}

K_FUNCTION k_quad k_swap_quad(k_quad q, k_u32 swap)
{
    k_u32 x;

    if (swap < 2)
        return q;
    q.x = k_swap_half(q.x, swap);
    q.y = k_swap_half(q.y, swap);
    q.z = k_swap_half(q.z, swap);
    q.w = k_swap_half(q.w, swap);
    if (swap >= 8) {
        x = q.x;
        q.x = q.y;
        q.y = x;
        x = q.z;
        q.z = q.w;
        q.w = x;
    }
    return q;
}

/* Sixteen bytes from a place of any alignment. No word is read that has none of them. */
K_FUNCTION k_quad k_load_quad(K_GLOBAL const k_u8 *s)
{
    const k_u32 skew = (k_u32)((k_u64)s & 3), up = 8 * skew;
    K_GLOBAL const k_u32 *p = (K_GLOBAL const k_u32 *)(s - skew);
    k_quad q;
    k_u32 over;

    if (((k_u64)s & 15) == 0)
        return *(K_GLOBAL const k_quad *)s;
    q.x = p[0];
    q.y = p[1];
    q.z = p[2];
    q.w = p[3];
    over = skew ? p[4] : 0;
    q.x = k_funnel(q.x, q.y, up);
    q.y = k_funnel(q.y, q.z, up);
    q.z = k_funnel(q.z, q.w, up);
    q.w = k_funnel(q.w, over, up);
    return q;
}

/* Two, four or one elements as a word: from *s on, which moves by the stride. */
K_FUNCTION k_u32 k_take_word(K_GLOBAL const k_u8 **s, k_i64 stride, k_u32 item_bytes)
{
    K_GLOBAL const k_u8 *p = *s;
    k_u32 x;

    if (item_bytes == 4) {
        *s = p + stride;
        return *(K_GLOBAL const k_u32 *)p;
    }
    if (item_bytes == 2) {
        x = *(K_GLOBAL const k_u16 *)p | (k_u32) * (K_GLOBAL const k_u16 *)(p + stride)
                                             << 16;
        *s = p + 2 * stride;
        return x;
    }
    x = p[0] | (k_u32)p[stride] << 8 | (k_u32)p[2 * stride] << 16 |
        (k_u32)p[3 * stride] << 24;
    *s = p + 4 * stride;
    return x;
}

/* Copies sixteen bytes of elements to a place of that alignment. */
K_FUNCTION void k_copy_apart(K_GLOBAL k_u8 *d, K_GLOBAL const k_u8 **s, k_i64 stride,
                             k_u32 item_bytes, k_u32 swap)
{
    k_quad q;

    if (item_bytes == 8) {
        const k_u64 a = *(K_GLOBAL const k_u64 *)*s,
                    b = *(K_GLOBAL const k_u64 *)(*s + stride);

        q.x = (k_u32)a;
        q.y = (k_u32)(a >> 32);
        q.z = (k_u32)b;
        q.w = (k_u32)(b >> 32);
        *s += 2 * stride;
    } else {
        q.x = k_take_word(s, stride, item_bytes);
        q.y = k_take_word(s, stride, item_bytes);
        q.z = k_take_word(s, stride, item_bytes);
        q.w = k_take_word(s, stride, item_bytes);
    }
    *(K_GLOBAL k_quad *)d = k_swap_quad(q, swap);
}
#endif

#if K_WORDS
/* Bytes `from` to `end` of the sixteen from s on; no word is read that has none of them.
 */
K_FUNCTION k_quad k_load_range(K_GLOBAL const k_u8 *s, k_u32 from, k_u32 end)
{
    const k_u32 skew = (k_u32)((k_u64)s & 3), up = 8 * skew;
    K_GLOBAL const k_u32 *p = (K_GLOBAL const k_u32 *)(s - skew);
    k_u32 x[5];
    k_quad q;

    from += skew;
    end += skew;
    for (k_u32 k = 0; k < 5; k++)
        x[k] = 4 * k + 4 > from && 4 * k < end ? p[k] : 0;
    q.x = k_funnel(x[0], x[1], up);
    q.y = k_funnel(x[1], x[2], up);
    q.z = k_funnel(x[2], x[3], up);
    q.w = k_funnel(x[3], x[4], up);
    return q;
}

K_FUNCTION void k_store_word(K_GLOBAL k_u8 *d, k_u32 word, k_u32 at, k_u32 from,
                             k_u32 end)
{
    if (at >= from && at + 4 <= end) {
        *(K_GLOBAL k_u32 *)(d + at) = word;
        return;
    }
    for (k_u32 k = at; k < at + 4; k++)
        if (k >= from && k < end)
            d[k] = (k_u8)(word >> 8 * (k - at));
}

/* Stores bytes `from` to `end` of sixteen; d is a multiple of sixteen. */
K_FUNCTION void k_store_range(K_GLOBAL k_u8 *d, k_quad q, k_u32 from, k_u32 end)
{
    if (from == 0 && end == 16) {
        *(K_GLOBAL k_quad *)d = q;
        return;
    }
    k_store_word(d, q.x, 0, from, end);
    k_store_word(d, q.y, 4, from, end);
    k_store_word(d, q.z, 8, from, end);
    k_store_word(d, q.w, 12, from, end);
}
#endif

/* Copies bytes `from` to `end` of a row, sixteen at most. */
K_FUNCTION void k_copy_part(K_GLOBAL k_u8 *d, K_GLOBAL const k_u8 *s, k_u64 from,
                            k_u64 end, k_u32 swap)
{
    const k_u32 unit = swap > 1 ? swap : 1;

#if K_WORDS
    const k_u32 low = (k_u32)((k_u64)(d + from) & 15), high = low + (k_u32)(end - from);

    if (high <= 16 && unit <= 8 && (from + 16 - low) % unit == 0) {
        s += from;
        k_store_range(d + from - low,
                      k_swap_quad(high - low == 16 ? k_load_quad(s)
                                                   : k_load_range(s - low, low, high),
                                  swap),
                      low, high);
        return;
    }
#endif
    for (k_u64 k = from; k < end; k++)
        d[k] = s[k - k % unit + (unit - 1 - k % unit)];
}

/* Copies n elements whose strides differ. */
K_FUNCTION void k_copy_items(K_GLOBAL k_u8 *d, K_GLOBAL const k_u8 *s,
                             K_GLOBAL const struct k_box *b, k_u64 n)
{
    const k_i64 dst = b->dst[b->ndim - 1], src = b->src[b->ndim - 1];
    const k_u32 item = b->item_bytes, swap = b->swap_bytes;

#if K_WORDS
    if (n * item == 32 && n > 1 && dst == (k_i64)item && item <= 8 &&
        ((k_u64)d & 15) == 0 && (((k_u64)s | (k_u64)src) & (item - 1)) == 0) {
        k_copy_apart(d, &s, src, item, swap);
        k_copy_apart(d + 16, &s, src, item, swap);
        return;
    }
#endif
    for (k_u64 k = 0; k < n; k++)
        k_copy_item(d + (k_i64)k * dst, s + (k_i64)k * src, item, swap);
}

/* `each` work items share a box. */
K_KERNEL k_copy_boxes(K_GLOBAL k_u8 *dst, K_GLOBAL const k_u8 *src,
                      K_GLOBAL const struct k_box *boxes, k_u64 n_boxes, k_u64 each)
{
    k_u64 at = K_PLACE, end;
    const k_u64 first = k_split(&at, each);

    if (at >= n_boxes)
        return;
    K_GLOBAL const struct k_box *b = &boxes[at];

    for (k_u64 u = first; u < b->units; u += each) {
        struct k_unit unit = k_unit_at(b, u);

        if (b->piece == 0) {
            k_unit_bytes(b, dst + unit.dst, unit.at, &unit.at, &end);
            if (unit.at < end)
                k_copy_part(dst + unit.dst, src + unit.src, unit.at, end, b->swap_bytes);
        } else {
            const k_u32 last = b->ndim - 1;
            const k_u64 k = unit.at * b->piece, left = b->shape[last] - k;

            k_copy_items(dst + (unit.dst + (k_i64)k * b->dst[last]),
                         src + (unit.src + (k_i64)k * b->src[last]), b,
                         left < b->piece ? left : b->piece);
        }
    }
}

#if K_WORDS
/* The pattern repeated to sixteen bytes; its length divides them. */
K_FUNCTION k_quad k_pattern_quad(K_GLOBAL const k_u8 *pattern, k_u32 item_bytes)
{
    k_u32 x[4];
    k_quad q;

    for (k_u32 i = 0; i < 4; i++) {
        x[i] = 0;
        for (k_u32 j = 0; j < 4; j++)
            x[i] |= (k_u32)pattern[(4 * i + j) & (item_bytes - 1)] << 8 * j;
    }
    q.x = x[0];
    q.y = x[1];
    q.z = x[2];
    q.w = x[3];
    return q;
}
#endif

/* Fills bytes `from` to `end` of a row, sixteen at most. */
K_FUNCTION void k_fill_part(K_GLOBAL k_u8 *d, K_GLOBAL const k_u8 *pattern, k_u64 from,
                            k_u64 end, k_u32 item_bytes)
{
    k_u32 k = (k_u32)(from % item_bytes);

#if K_WORDS
    const k_u32 low = (k_u32)((k_u64)(d + from) & 15), high = low + (k_u32)(end - from);

    if (high <= 16 && 16 % item_bytes == 0 && (from + 16 - low) % item_bytes == 0) {
        k_store_range(d + from - low, k_pattern_quad(pattern, item_bytes), low, high);
        return;
    }
#endif
    for (k_u64 i = from; i < end; i++) {
        d[i] = pattern[k];
        k = k + 1 < item_bytes ? k + 1 : 0;
    }
}

/* The same, with one element `pattern` for all. */
K_KERNEL k_fill_boxes(K_GLOBAL k_u8 *dst, K_GLOBAL const k_u8 *pattern,
                      K_GLOBAL const struct k_box *boxes, k_u64 n_boxes, k_u64 each)
{
    k_u64 at = K_PLACE, end;
    const k_u64 first = k_split(&at, each);

    if (at >= n_boxes)
        return;
    K_GLOBAL const struct k_box *b = &boxes[at];

    for (k_u64 u = first; u < b->units; u += each) {
        struct k_unit unit = k_unit_at(b, u);

        if (b->piece == 0) {
            k_unit_bytes(b, dst + unit.dst, unit.at, &unit.at, &end);
            if (unit.at < end)
                k_fill_part(dst + unit.dst, pattern, unit.at, end, b->item_bytes);
        } else {
            const k_u32 last = b->ndim - 1;

            for (k_u64 k = unit.at * b->piece;
                 k < b->shape[last] && k < (unit.at + 1) * b->piece; k++)
                k_copy_item(dst + (unit.dst + (k_i64)k * b->dst[last]), pattern,
                            b->item_bytes, 0);
        }
    }
}

/* Copies n bytes: by items first, first + step, ... of a group of `step` items. */
K_FUNCTION void k_copy_bytes(K_GLOBAL k_u8 *d, K_GLOBAL const k_u8 *s, k_u64 n,
                             k_u64 first, k_u64 step)
{
    k_u64 head = 0, tail = 0;

#if K_WORDS
    head = (16 - ((k_u64)d & 15)) & 15;
    head = head < n ? head : n;
    tail = head + (n - head) / 16 * 16;
    for (k_u64 k = head + 16 * first; k < tail; k += 16 * step)
        *(K_GLOBAL k_quad *)(d + k) = k_load_quad(s + k);
#endif
    for (k_u64 k = first; k < head; k += step)
        d[k] = s[k];
    for (k_u64 k = tail + first; k < n; k += step)
        d[k] = s[k];
}

/* Copies runs: `each` work items for one. */
K_KERNEL k_copy_runs(K_GLOBAL k_u8 *dst, K_GLOBAL const k_u8 *src,
                     K_GLOBAL const struct k_run *runs, k_u64 n_runs, k_u64 each)
{
    k_u64 at = K_PLACE;
    const k_u64 first = k_split(&at, each);

    if (at < n_runs)
        k_copy_bytes(dst + runs[at].dst, src + runs[at].src, runs[at].bytes, first, each);
}

/* Element i of dst becomes the one `places[i]` bytes from the start of src. */
K_KERNEL k_gather(K_GLOBAL k_u8 *dst, K_GLOBAL const k_u8 *src,
                  K_GLOBAL const k_u64 *places, k_u64 n, k_u32 item_bytes,
                  k_u32 swap_bytes)
{
    const k_u64 at = K_PLACE;

    if (at < n)
        k_copy_item(dst + at * item_bytes, src + places[at], item_bytes, swap_bytes);
}

#if K_WORDS
/* Whether sixteen bytes are others than the pattern. */
K_FUNCTION int k_quad_differs(k_quad a, k_quad b)
{
    return ((a.x ^ b.x) | (a.y ^ b.y) | (a.z ^ b.z) | (a.w ^ b.w)) != 0;
}
#endif

/* differs[i] becomes 1 if run i has another byte than the repeated pattern has there.
 * `each` work items for a run; the host clears `differs` before. */
K_KERNEL k_differ(K_GLOBAL const k_u8 *src, K_GLOBAL const k_u8 *pattern,
                  K_GLOBAL const struct k_run *runs, K_GLOBAL k_u32 *differs,
                  k_u64 n_runs, k_u64 each, k_u32 item_bytes)
{
    k_u64 at = K_PLACE, done = 0;
    const k_u64 first = k_split(&at, each);

    if (at >= n_runs)
        return;
    K_GLOBAL const struct k_run *r = &runs[at];
    K_GLOBAL const k_u8 *s = src + r->src;

#if K_WORDS
    if (16 % item_bytes == 0) {
        const k_quad want = k_pattern_quad(pattern, item_bytes);

        done = r->bytes / 16 * 16;
        for (k_u64 k = 16 * first; k < done; k += 16 * each)
            if (k_quad_differs(k_load_quad(s + k), want)) {
                differs[at] = 1;
                return;
            }
    }
#endif
    for (k_u64 k = done + first; k < r->bytes; k += each)
        if (s[k] != pattern[k % item_bytes]) {
            differs[at] = 1;
            return;
        }
}

#endif
