/*
 * ports/opencl/kernels.h - kernels in one source for OpenCL C 1.2 and host C: each is a
 * function of the number of a work item. They use no C library, and no pointer is in a
 * struct. Chunks are hostile: each read and write is checked, and damage is a status.
 *
 * Formats: LZ4 block format 1.5; shuffle as numcodecs and blosc do it.
 */
#ifndef PORT_KERNELS_H
#define PORT_KERNELS_H

#if defined(__OPENCL_C_VERSION__)
#    define K_KERNEL __kernel void
#    define K_GLOBAL __global
#    define K_ITEM   get_global_id(0)
#    define K_FUNCTION
typedef uchar k_u8;
typedef uint k_u32;
typedef ulong k_u64;
typedef long k_i64;
#else
#    include <stdint.h>
#    define K_KERNEL static inline void
#    define K_GLOBAL
#    define K_ITEM     k_item
#    define K_FUNCTION static inline
typedef uint8_t k_u8;
typedef uint32_t k_u32;
typedef uint64_t k_u64;
typedef int64_t k_i64;
static uint64_t k_item; /* set before a kernel is called on the host */
#endif

enum {
    K_RANK = 8
};

/* A strided box of n elements. */
struct k_box {
    k_u64 n, dst_at, src_at; /* bytes to the first elements */
    k_u64 shape[K_RANK];
    k_i64 dst[K_RANK], src[K_RANK]; /* strides in bytes */
    k_u32 ndim, item_bytes, swap_bytes, unused;
};

/* How the bytes of a stream are decoded. */
enum {
    K_STORED = 0, /* they are the output */
    K_LZ4 = 1,    /* a block of LZ4 */
    K_LZ4_HEADED =
        2 /* a block after its decoded length, four bytes, as numcodecs has it */
};
/* A stream and the place of its output. */
struct k_stream {
    k_u64 src, src_bytes, dst, dst_bytes;
    k_u32 how, number; /* `number`: place of its status */
};

/* Planes of bytes, and the place of the elements. */
struct k_planes {
    k_u64 src, dst, bytes;
    k_u32 item_bytes, unused; /* 0 and 1: the bytes are copied */
};

/* What a decoder says of a stream. */
enum {
    K_OK = 0,
    K_BAD_INPUT = 1,
    K_BAD_OFFSET = 2,
    K_TOO_LONG = 3,
    K_TOO_SHORT = 4,
    K_BAD_LENGTH = 5
};

/* ---- boxes -------------------- */

K_FUNCTION k_i64 k_place(K_GLOBAL const struct k_box *b, k_u64 i, int of_dst)
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
    const k_u64 at = K_ITEM;

    if (at >= n_boxes * most || at % most >= boxes[at / most].n)
        return;
    K_GLOBAL const struct k_box *b = &boxes[at / most];
    const k_i64 to = k_place(b, at % most, 1), from = k_place(b, at % most, 0);
    const k_u32 unit = b->swap_bytes > 1 ? b->swap_bytes : 1;

    for (k_u32 k = 0; k < b->item_bytes; k++)
        dst[to + k] = src[from + (k / unit * unit + (unit - 1 - k % unit))];
}

K_KERNEL k_fill_boxes(K_GLOBAL k_u8 *dst, K_GLOBAL const k_u8 *pattern,
                      K_GLOBAL const struct k_box *boxes, k_u64 n_boxes, k_u64 most)
{
    const k_u64 at = K_ITEM;

    if (at >= n_boxes * most || at % most >= boxes[at / most].n)
        return;
    const k_i64 to = k_place(&boxes[at / most], at % most, 1);

    for (k_u32 k = 0; k < boxes[at / most].item_bytes; k++)
        dst[to + k] = pattern[k];
}

/* differs[i] becomes 1 if run i has another byte than the repeated pattern has there. */
K_KERNEL k_differ(K_GLOBAL const k_u8 *src, K_GLOBAL const k_u8 *pattern,
                  K_GLOBAL const struct k_planes *runs, K_GLOBAL k_u32 *differs,
                  k_u64 n_runs, k_u64 most)
{
    const k_u64 at = K_ITEM;

    if (at >= n_runs * most || at % most >= runs[at / most].bytes)
        return;
    K_GLOBAL const struct k_planes *r = &runs[at / most];

    if (src[r->src + at % most] != pattern[at % most % r->item_bytes])
        differs[at / most] = 1;
}

/* ---- decoders -------------------- */

/* Where a decoder of LZ4 is: i of the input, o of the output. */
struct k_walk {
    k_u64 i, o;
    k_u32 status;
};

/* The rest of a length whose four bits were all ones. */
K_FUNCTION k_u64 k_long(K_GLOBAL const k_u8 *s, k_u64 n, struct k_walk *w)
{
    k_u64 sum = 15;

    while (w->i < n) {
        const k_u32 b = s[w->i++];

        sum += b;
        if (b != 255)
            return sum;
    }
    w->status = K_BAD_INPUT;
    return 0;
}

/* One sequence: literals, then a match. Returns 0 after the last one or a failure. */
K_FUNCTION int k_sequence(K_GLOBAL k_u8 *d, k_u64 m, K_GLOBAL const k_u8 *s, k_u64 n,
                          struct k_walk *w)
{
    k_u32 token;
    k_u64 bytes, back;

    if (w->i >= n) {
        w->status = K_BAD_INPUT;
        return 0;
    }
    token = s[w->i++];
    bytes = token >> 4 == 15 ? k_long(s, n, w) : token >> 4;
    if (w->status == K_OK && bytes > n - w->i)
        w->status = K_BAD_INPUT;
    if (w->status == K_OK && bytes > m - w->o)
        w->status = K_TOO_LONG;
    if (w->status != K_OK)
        return 0;
    for (; bytes > 0; bytes--)
        d[w->o++] = s[w->i++];
    if (w->i == n) /* the last sequence has only literals */
        return 0;
    if (n - w->i < 2) {
        w->status = K_BAD_INPUT;
        return 0;
    }
    back = s[w->i] | (k_u64)s[w->i + 1] << 8;
    w->i += 2;
    bytes = 4 + ((token & 15) == 15 ? k_long(s, n, w) : token & 15);
    if (w->status == K_OK && (back == 0 || back > w->o))
        w->status = K_BAD_OFFSET;
    if (w->status == K_OK && bytes > m - w->o)
        w->status = K_TOO_LONG;
    if (w->status != K_OK)
        return 0;
    for (; bytes > 0; bytes--, w->o++)
        d[w->o] = d[w->o - back];
    return 1;
}

K_FUNCTION k_u32 k_lz4(K_GLOBAL k_u8 *d, k_u64 m, K_GLOBAL const k_u8 *s, k_u64 n)
{
    struct k_walk w;

    w.i = w.o = 0;
    w.status = K_OK;
    while (k_sequence(d, m, s, n, &w))
        ;
    if (w.status != K_OK)
        return w.status;
    return w.o == m ? K_OK : K_TOO_SHORT;
}

/* One stream for each work item. */
K_KERNEL k_decode(K_GLOBAL k_u8 *dst, K_GLOBAL const k_u8 *src,
                  K_GLOBAL const struct k_stream *streams, K_GLOBAL k_u32 *status,
                  k_u64 n_streams)
{
    const k_u64 at = K_ITEM;

    if (at >= n_streams)
        return;
    K_GLOBAL const struct k_stream *p = &streams[at];
    K_GLOBAL const k_u8 *s = src + p->src;
    K_GLOBAL k_u8 *d = dst + p->dst;
    k_u32 st;

    if (p->how == K_STORED) {
        st = p->src_bytes == p->dst_bytes ? K_OK : K_BAD_LENGTH;
        for (k_u64 k = 0; k < p->dst_bytes && st == K_OK; k++)
            d[k] = s[k];
    } else if (p->how == K_LZ4) {
        st = k_lz4(d, p->dst_bytes, s, p->src_bytes);
    } else if (p->src_bytes < 4 || (s[0] | (k_u64)s[1] << 8 | (k_u64)s[2] << 16 |
                                    (k_u64)s[3] << 24) != p->dst_bytes) {
        st = K_BAD_LENGTH;
    } else {
        st = k_lz4(d, p->dst_bytes, s + 4, p->src_bytes - 4);
    }
    status[p->number] = st;
}

/* `each` work items for a part. Bytes after the last whole element stay in place. */
K_KERNEL k_unshuffle(K_GLOBAL k_u8 *dst, K_GLOBAL const k_u8 *src,
                     K_GLOBAL const struct k_planes *parts, k_u64 n_parts, k_u64 each)
{
    const k_u64 at = K_ITEM;

    if (at >= n_parts * each)
        return;
    K_GLOBAL const struct k_planes *p = &parts[at / each];
    const k_u64 item = p->item_bytes > 1 ? p->item_bytes : 1, n = p->bytes / item;

    for (k_u64 k = at % each; k < p->bytes; k += each)
        dst[p->dst + k] = src[p->src + (k < n * item ? k % item * n + k / item : k)];
}

#endif
