/*
 * kernels/decode.h - the kernel that decodes streams of all formats: each by a team of
 * lanes (team_decode.h), or where a target has none, by lanes that walk together (lz.h).
 */
#ifndef K_DECODE_H
#define K_DECODE_H

/* Streams of literals and matches. Those of more than 2 GiB are left to other code. */
K_FUNCTION void k_decode_matches(struct k_walk *w, k_u32 how)
{
#if K_TEAM
    K_ROOM(struct k_room, room);
#endif

    if (w->n > K_STREAM_MOST || w->m > K_STREAM_MOST)
        w->status = K_UNSUPPORTED;
    else if (how == K_SNAPPY && k_snappy_length(w) != w->m && w->status == K_OK)
        w->status = K_BAD_LENGTH;
    else if (how == K_LZ4 && w->m == 0 && (w->n != 1 || w->s[0] != 0))
        w->status = K_BAD_INPUT;
    if (w->status != K_OK)
        return;
#if K_TEAM
    k_team_decode(w, &room, how);
#else
    if (how == K_LZ4)
        k_lz4(w);
    else if (how == K_SNAPPY)
        k_snappy(w);
    else
        k_blosclz(w);
#endif
}

K_FUNCTION void k_decode_stream(struct k_walk *w, k_u32 how)
{
    if (how == K_LZ4_HEADED) { /* the decoded length, then a block */
        if (k_number(w, 4) != w->m || w->status != K_OK) {
            w->status = K_BAD_LENGTH;
            return;
        }
        w->s += 4;
        w->n -= 4;
        w->i = 0;
        how = K_LZ4;
    }
    if (how == K_STORED && w->n != w->m)
        w->status = K_BAD_LENGTH;
    else if (how == K_STORED)
        k_literals(w, w->m);
    else if (how == K_LZ4 || how == K_SNAPPY || how == K_BLOSCLZ)
        k_decode_matches(w, how);
    else
        w->status = how == K_DAMAGED ? (k_u32)w->n : K_UNSUPPORTED;
    if (w->status == K_OK && w->o != w->m)
        w->status = K_TOO_SHORT;
}

/* K_LANES work items for a stream; of teams, each is a group. */
K_KERNEL k_decode(K_GLOBAL k_u8 *dst, K_GLOBAL const k_u8 *src,
                  K_GLOBAL const struct k_stream *streams, K_GLOBAL k_u32 *status,
                  k_u64 n_streams)
{
    const k_u64 at = K_STREAM;
    struct k_walk w;

    if (at >= n_streams)
        return;
    K_GLOBAL const struct k_stream *p = &streams[at];

    w.d = dst + p->dst;
    w.s = src + p->src;
    w.n = p->src_bytes;
    w.m = p->dst_bytes;
    w.i = w.o = 0;
    w.status = K_OK;
    w.lane = K_LANE;
#if K_TEAM
    if (K_GROUP != K_LANES) /* teams would share their memory */
        w.status = K_UNSUPPORTED;
#endif
    if (w.status == K_OK)
        k_decode_stream(&w, p->how);
    if (w.status != K_OK)
        status[p->number] = w.status;
}

#endif
