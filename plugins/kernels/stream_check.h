/*
 * kernels/stream_check.h - whether the headers of a stream say that a decoder which does
 * not check its input, such as nvCOMP's, can decode it to the length that metadata gives.
 * Streams of other forms, such as several frames of zstd or a dictionary, are
 * K_UNSUPPORTED. Only headers are read: a stream that passes may be damaged. The host
 * does the same with bytes that it has.
 */
#ifndef K_STREAM_CHECK_H
#define K_STREAM_CHECK_H

enum {
    K_CHECK_WINDOW = 27, /* log2 of the largest window, as libzstd takes without a wish */
    K_CHECK_BLOCKS = 64, /* more blocks of zstd than these and one for so many bytes */
    K_CHECK_BLOCK_BYTES = 256 /* are refused: a work item would walk for long */
};

/* A number whose lowest byte comes first. */
K_FUNCTION k_u64 k_check_number(K_GLOBAL const k_u8 *p, k_u32 bytes)
{
    k_u64 v = 0;

    while (bytes-- > 0)
        v = v << 8 | p[bytes];
    return v;
}

/* Bytes of the header of a frame of zstd that has its content size and no dictionary; 0:
 * it has another form. */
K_FUNCTION k_u64 k_check_zstd_head(K_GLOBAL const k_u8 *p, k_u64 n, k_u64 *content,
                                   k_u32 *sum)
{
    const k_u32 flags = n > 4 ? p[4] : 0, single = flags >> 5 & 1;
    const k_u32 width = 1U << (flags >> 6); /* 1 without `single`: no size */
    const k_u64 at = 6 - single;

    if (n < at + width || k_check_number(p, 4) != 0xFD2FB528U || (flags & 0x0B) ||
        (width == 1 && !single))
        return 0;
    if (!single && (p[5] >> 3) + 10 > K_CHECK_WINDOW)
        return 0;
    *sum = flags >> 2 & 1;
    *content = k_check_number(p + at, width) + (width == 2 ? 256 : 0);
    return at + width;
}

/* One frame and nothing after it; each header of a block is seen. */
K_FUNCTION int k_check_zstd(K_GLOBAL const k_u8 *p, k_u64 n, k_u64 want)
{
    k_u64 content = 0, at, blocks = K_CHECK_BLOCKS + want / K_CHECK_BLOCK_BYTES;
    k_u32 sum = 0, last = 0;

    at = k_check_zstd_head(p, n, &content, &sum);
    if (at == 0 || content != want)
        return 0;
    while (!last) {
        k_u32 head, kind;
        k_u64 bytes;

        if (n - at < 3 || blocks-- == 0)
            return 0;
        head = (k_u32)k_check_number(p + at, 3);
        last = head & 1;
        kind = head >> 1 & 3;
        bytes = kind == 1 ? 1 : head >> 3;
        if (kind == 3 || n - at - 3 < bytes)
            return 0;
        at += 3 + bytes;
    }
    return n - at == (sum ? 4 : 0);
}

K_FUNCTION int k_check_zlib(K_GLOBAL const k_u8 *p, k_u64 n)
{
    return n > 6 && (p[0] & 15) == 8 && p[0] >> 4 <= 7 && (p[0] << 8 | p[1]) % 31 == 0 &&
           !(p[1] & 0x20);
}

/* A second member would have its length at the end. Names and comments are rare. */
K_FUNCTION int k_check_gzip(K_GLOBAL const k_u8 *p, k_u64 n, k_u64 want)
{
    return n > 18 && p[0] == 0x1F && p[1] == 0x8B && p[2] == 8 && p[3] == 0 &&
           k_check_number(p + n - 4, 4) == (want & 0xFFFFFFFFU);
}

K_FUNCTION int k_check_snappy(K_GLOBAL const k_u8 *p, k_u64 n, k_u64 want)
{
    k_u64 length = 0;

    for (k_u32 i = 0; i < n && i < 5; i++) {
        length |= (k_u64)(p[i] & 127) << (7 * i);
        if (p[i] < 128)
            return length == want;
    }
    return 0;
}

/* Whether a stream fits. `how` as in struct k_stream; those without a header do. */
K_FUNCTION int k_stream_fits(K_GLOBAL const k_u8 *p, k_u64 n, k_u64 want, k_u32 how)
{
    if (how == K_ZSTD)
        return k_check_zstd(p, n, want);
    if (how == K_ZLIB)
        return k_check_zlib(p, n);
    if (how == K_GZIP)
        return k_check_gzip(p, n, want);
    if (how == K_SNAPPY)
        return k_check_snappy(p, n, want);
    return how != K_LZ4_HEADED || (n > 4 && k_check_number(p, 4) == want);
}

/* A work item for each stream. `dst_bytes` is what metadata gives; `dst` is not used. */
K_KERNEL k_check_streams(K_GLOBAL const k_u8 *src,
                         K_GLOBAL const struct k_stream *streams, K_GLOBAL k_u32 *status,
                         k_u64 n_streams)
{
    const k_u64 at = K_PLACE;

    if (at >= n_streams)
        return;
    K_GLOBAL const struct k_stream *s = &streams[at];

    if (!k_stream_fits(src + s->src, s->src_bytes, s->dst_bytes, s->how))
        status[s->number] = K_UNSUPPORTED;
}

#endif
