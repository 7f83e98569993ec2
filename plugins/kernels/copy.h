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

/* Bytes from the start of a buffer to element i, in C order of the shape. */
K_FUNCTION k_i64 k_at(K_GLOBAL const struct k_box *b, k_u64 i, int of_dst)
{
    k_i64 at = (k_i64)(of_dst ? b->dst_at : b->src_at);

    for (k_u32 d = b->ndim; d-- > 0;) {
        at += (k_i64)(i % b->shape[d]) * (of_dst ? b->dst[d] : b->src[d]);
        i /= b->shape[d];
    }
    return at;
}

/* `most` work items for each box: those after its last element do nothing. */
K_KERNEL k_copy_boxes(K_GLOBAL k_u8 *dst, K_GLOBAL const k_u8 *src,
                      K_GLOBAL const struct k_box *boxes, k_u64 n_boxes, k_u64 most)
{
    const k_u64 at = K_PLACE;

    if (at >= n_boxes * most || at % most >= boxes[at / most].n)
        return;
    K_GLOBAL const struct k_box *b = &boxes[at / most];

    k_copy_item(dst + k_at(b, at % most, 1), src + k_at(b, at % most, 0), b->item_bytes,
                b->swap_bytes);
}

/* The same, with one element `pattern` for all. */
K_KERNEL k_fill_boxes(K_GLOBAL k_u8 *dst, K_GLOBAL const k_u8 *pattern,
                      K_GLOBAL const struct k_box *boxes, k_u64 n_boxes, k_u64 most)
{
    const k_u64 at = K_PLACE;

    if (at >= n_boxes * most || at % most >= boxes[at / most].n)
        return;
    K_GLOBAL const struct k_box *b = &boxes[at / most];

    k_copy_item(dst + k_at(b, at % most, 1), pattern, b->item_bytes, 0);
}

/* Copies runs: `each` work items for one. */
K_KERNEL k_copy_runs(K_GLOBAL k_u8 *dst, K_GLOBAL const k_u8 *src,
                     K_GLOBAL const struct k_run *runs, k_u64 n_runs, k_u64 each)
{
    const k_u64 at = K_PLACE;

    if (at >= n_runs * each)
        return;
    K_GLOBAL const struct k_run *r = &runs[at / each];

    for (k_u64 k = at % each; k < r->bytes; k += each)
        dst[r->dst + k] = src[r->src + k];
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

/* differs[i] becomes 1 if run i has another byte than the repeated pattern has there.
 * `each` work items for a run; the host clears `differs` before. */
K_KERNEL k_differ(K_GLOBAL const k_u8 *src, K_GLOBAL const k_u8 *pattern,
                  K_GLOBAL const struct k_run *runs, K_GLOBAL k_u32 *differs,
                  k_u64 n_runs, k_u64 each, k_u32 item_bytes)
{
    const k_u64 at = K_PLACE;

    if (at >= n_runs * each)
        return;
    K_GLOBAL const struct k_run *r = &runs[at / each];

    for (k_u64 k = at % each; k < r->bytes; k += each)
        if (src[r->src + k] != pattern[k % item_bytes]) {
            differs[at / each] = 1;
            return;
        }
}

#endif
