/*
 * kernels/team.h - a team of K_LANES work items that decodes a stream of literals and
 * matches together. The next bytes of the input are in a window in shared memory, and the
 * newest bytes of the output in a ring there, from which whole pieces go to the output.
 * Literals and matches of a step go to the ring, those of a long sequence to the output.
 * Positions are bytes from the start of the input or the output.
 */
#ifndef K_TEAM_H
#define K_TEAM_H

#if K_TEAM

#    ifndef K_RING
#        define K_RING 4096
#    endif
enum {
    K_SEEN = 1024,           /* bytes of the input in shared memory: two pieces */
    K_PIECE = 512,           /* sixteen bytes a lane */
    K_SHORT = 32,            /* most bytes that a lane copies alone */
    K_JUMPS = K_PIECE + 320, /* a jump from the last of them */
    K_LONG = 1024,           /* a sequence of more bytes is copied without the ring */
    K_STEP = 2048,           /* most bytes of a step */
    K_DONE = K_STATUSES      /* a stream's end, which is no damage */
};
#    define K_NONE 0xFFFFFFFFU

struct k_room {
    k_quad ring[K_RING / 16], window[K_SEEN / 16];
    k_u16 jump[K_JUMPS];  /* for the positions of the next K_PIECE bytes of input: where
                             the sequence after the one there begins */
    k_u16 twice[K_JUMPS]; /* and the one after that */
};

/* A team of lanes: all fields but `lane` and `next` are the same in all of them. */
struct k_team {
    K_GLOBAL k_u8 *d;
    K_GLOBAL const k_u8 *s;
    struct k_room *room;
    k_u32 n, m, i, o, lane, status, how;
    k_u32 d_skew, s_skew; /* of the first bytes, to multiples of sixteen */
    k_u32 oldest;         /* output byte from which on the ring has it */
    k_u32 flushed;        /* and from which on the output lacks it */
    k_u32 pieces;         /* of the input, that the window has had */
    k_quad next;          /* this lane's part of the piece after these */
};

enum { /* how far a sequence could be read */
    K_WHOLE = 0,
    K_NO_LITERALS,
    K_NO_MATCH,
    K_LAST, /* it has no match, and no sequence follows */
    K_ONLY_LITERALS
};

#    define K_RING_BYTES(w)  ((k_u8 *)(w)->room->ring)
#    define K_IN_RING(w, at) (((at) + (w)->d_skew) % K_RING)
#    define K_FIRST(mask)    K_POPCOUNT(((mask) & (0U - (mask))) - 1U)

/* ---- the input -------------------- */

K_FUNCTION k_u32 k_word_at(const struct k_team *w, k_u32 at)
{
    k_u32 x = 0;

    for (k_u32 k = 0; k < 4; k++)
        if (at + k < w->n) /* a place before the input is a large number */
            x |= (k_u32)w->s[at + k] << 8 * k;
    return x;
}

/* This lane's part of a piece of the input; zeros outside of it. */
K_FUNCTION k_quad k_piece(const struct k_team *w, k_u32 piece)
{
    const k_u32 from = piece * K_PIECE + 16 * w->lane; /* with the skew */
    k_quad q;

    if (from >= w->s_skew && from + 16 <= w->n + w->s_skew)
        return *(K_GLOBAL const k_quad *)(w->s + (from - w->s_skew));
    q.x = k_word_at(w, from - w->s_skew);
    q.y = k_word_at(w, from - w->s_skew + 4);
    q.z = k_word_at(w, from - w->s_skew + 8);
    q.w = k_word_at(w, from - w->s_skew + 12);
    return q;
}

/* Moves the window so that it has at least a piece from w->i on. */
K_FUNCTION void k_refill(struct k_team *w)
{
    const k_u32 here = (w->i + w->s_skew) / K_PIECE;
    int jump = here > w->pieces;

    if (here + 1 < w->pieces)
        return;
    K_MEET();
    w->pieces = jump ? here : w->pieces;
    while (jump || here + 1 >= w->pieces) {
        if (!jump) {
            w->room->window[w->pieces % 2 * (K_PIECE / 16) + w->lane] = w->next;
            w->pieces++;
        }
        w->next = k_piece(w, w->pieces);
        jump = 0;
    }
    K_MEET();
}

/* The sum of a length and the bytes that go on with it, while they are 255. *at becomes
 * K_NONE where the input ends too early. */
K_FUNCTION k_u32 k_longer(const struct k_team *w, k_u32 *at, k_u32 sum)
{
    k_u32 b;

    do {
        if (*at >= w->n) {
            *at = K_NONE;
            return 0;
        }
        b = w->s[(*at)++];
        sum = sum + b < (k_u32)K_STREAM_MOST ? sum + b : (k_u32)K_STREAM_MOST;
    } while (b == 255);
    return sum;
}

/* ---- the output -------------------- */

/* Writes the ring's bytes to the output: whole pieces, or `all`. */
K_FUNCTION void k_flush(struct k_team *w, int all)
{
    const k_u32 from = w->flushed + w->d_skew, end = w->o + w->d_skew;
    k_u32 a = (from + 15) / 16 * 16, e = end / 16 * 16;
    K_GLOBAL k_u8 *d = w->d;

    if (!all) {
        if (end < a + K_PIECE)
            return;
        e = a + (end - a) / K_PIECE * K_PIECE;
    }
    if (a > end)
        a = end;
    if (e < a)
        e = a;
    if (from + w->lane < a)
        d[from + w->lane - w->d_skew] = K_RING_BYTES(w)[(from + w->lane) % K_RING];
    for (k_u32 v = a + 16 * w->lane; v < e; v += K_PIECE)
        *(K_GLOBAL k_quad *)(d + (v - w->d_skew)) = w->room->ring[v % K_RING / 16];
    if (all && e + w->lane < end)
        d[e + w->lane - w->d_skew] = K_RING_BYTES(w)[(e + w->lane) % K_RING];
    w->flushed = (all ? end : e) - w->d_skew;
}

/* Puts the last bytes of the output into the ring again. */
K_FUNCTION void k_reload(struct k_team *w)
{
    const k_u32 n = w->o < K_LONG + 16 ? w->o : K_LONG + 16;

    w->flushed = w->o;
    w->oldest = w->o - n;
    K_MEET();
    for (k_u32 k = w->oldest + w->lane; k < w->o; k += K_LANES)
        K_RING_BYTES(w)[K_IN_RING(w, k)] = w->d[k];
    K_MEET();
}

/* Sixteen bytes from a place of any alignment, of which n count: no word is read that has
 * none of these. */
K_FUNCTION k_quad k_load_some(K_GLOBAL const k_u8 *s, k_u32 n)
{
    k_u32 x[5] = {0, 0, 0, 0, 0};
    k_quad q;

#    if K_WORDS
    const k_u32 skew = (k_u32)((k_u64)s & 3), up = 8 * skew, end = skew + n;
    K_GLOBAL const k_u32 *p = (K_GLOBAL const k_u32 *)(s - skew);

    x[0] = p[0];
    x[1] = end > 4 ? p[1] : 0;
    x[2] = end > 8 ? p[2] : 0;
    x[3] = end > 12 ? p[3] : 0;
    x[4] = end > 16 ? p[4] : 0;
#    else
    const k_u32 up = 0;

    for (k_u32 k = 0; k < 16 && k < n; k++)
        x[k / 4] |= (k_u32)s[k] << 8 * (k % 4);
#    endif
    q.x = k_funnel(x[0], x[1], up);
    q.y = k_funnel(x[1], x[2], up);
    q.z = k_funnel(x[2], x[3], up);
    q.w = k_funnel(x[3], x[4], up);
    return q;
}

/* Sixteen bytes of the ring. */
K_FUNCTION k_quad k_ring_quad(const struct k_team *w, k_u32 at)
{
    const k_u32 *ring = (const k_u32 *)w->room->ring;
    const k_u32 from = K_IN_RING(w, at), k = from / 4, up = from % 4 * 8;
    const k_u32 a = ring[k], b = ring[(k + 1) % (K_RING / 4)],
                c = ring[(k + 2) % (K_RING / 4)], d = ring[(k + 3) % (K_RING / 4)],
                e = ring[(k + 4) % (K_RING / 4)];
    k_quad q;

    q.x = k_funnel(a, b, up);
    q.y = k_funnel(b, c, up);
    q.z = k_funnel(c, d, up);
    q.w = k_funnel(d, e, up);
    return q;
}

K_FUNCTION void k_put_word(k_u8 *ring, k_u32 at, k_u32 word, k_u32 n)
{
    ring[at % K_RING] = (k_u8)word;
    if (n > 1)
        ring[(at + 1) % K_RING] = (k_u8)(word >> 8);
    if (n > 2)
        ring[(at + 2) % K_RING] = (k_u8)(word >> 16);
    if (n > 3)
        ring[(at + 3) % K_RING] = (k_u8)(word >> 24);
}

/* Puts the first n of sixteen bytes into the ring. */
K_FUNCTION void k_ring_put(struct k_team *w, k_u32 to, k_quad q, k_u32 n)
{
    k_u8 *ring = K_RING_BYTES(w);
    const k_u32 at = to + w->d_skew;

    k_put_word(ring, at, q.x, n);
    if (n > 4)
        k_put_word(ring, at + 4, q.y, n - 4);
    if (n > 8)
        k_put_word(ring, at + 8, q.z, n - 8);
    if (n > 12)
        k_put_word(ring, at + 12, q.w, n - 12);
}

/* ---- a long sequence -------------------- */

/* A match inside of the output. One that overlaps itself begins with a copy of at least
 * a piece, and then is one from that many bytes before. */
K_FUNCTION void k_match_far(struct k_team *w, k_u32 back, k_u32 bytes)
{
    K_GLOBAL k_u8 *to = w->d + w->o;
    k_u32 done = 0, step = bytes;

    K_MEET();
    if (back < bytes && back < K_PIECE) {
        done = (K_PIECE + back - 1) / back * back;
        done = done < bytes ? done : bytes;
        for (k_u32 k = w->lane; k < done; k += K_LANES)
            to[k] = (to - back)[k % back];
        back = (K_PIECE + back - 1) / back * back;
        K_MEET();
    }
    if (back < bytes)
        step = back;
    for (; done < bytes; done += step) {
        k_copy_bytes(to + done, to + done - back,
                     bytes - done < step ? bytes - done : step, w->lane, K_LANES);
        K_MEET();
    }
}

/* One sequence without the ring. */
K_FUNCTION void k_sequence_alone(struct k_team *w, const struct k_sequence *q)
{
    K_MEET();
    k_flush(w, 1);
    k_copy_bytes(w->d + w->o, w->s + q->at, q->literals, w->lane, K_LANES);
    w->o += q->literals;
    if (q->bytes)
        k_match_far(w, q->back, q->bytes);
    w->o += q->bytes;
    K_MEET();
    k_reload(w);
}

/* ---- a step -------------------- */

/* Literals of up to K_SHORT bytes by each lane, longer ones by all. */
K_FUNCTION void k_batch_literals(struct k_team *w, const struct k_sequence *q, k_u32 o)
{
    k_u32 large = K_BALLOT(q->literals > K_SHORT);

    for (k_u32 k = 0; q->literals <= K_SHORT && k < q->literals; k += 16)
        k_ring_put(w, o + k, k_load_some(w->s + q->at + k, q->literals - k),
                   q->literals - k);
    while (large) {
        const k_u32 of = K_FIRST(large), at = K_TAKE(0, w->lane, q->at, of),
                    n = K_TAKE(0, w->lane, q->literals, of),
                    to = K_TAKE(0, w->lane, o, of);

        for (k_u32 k = w->lane; k < n; k += K_LANES)
            K_RING_BYTES(w)[K_IN_RING(w, to + k)] = w->s[at + k];
        large &= large - 1;
    }
}

/* A match into the ring by all lanes. */
K_FUNCTION void k_match_together(struct k_team *w, k_u32 to, k_u32 back, k_u32 bytes)
{
    k_u8 *ring = K_RING_BYTES(w);
    const k_u32 from = to - back;

    if (from < w->oldest) {
        for (k_u32 k = w->lane; k < bytes; k += K_LANES)
            ring[K_IN_RING(w, to + k)] = w->d[from + k];
    } else if (back >= bytes) {
        for (k_u32 k = w->lane; k < bytes; k += K_LANES)
            ring[K_IN_RING(w, to + k)] = ring[K_IN_RING(w, from + k)];
    } else {
        for (k_u32 k = w->lane; k < bytes; k += K_LANES)
            ring[K_IN_RING(w, to + k)] = ring[K_IN_RING(w, from + k % back)];
    }
}

/* A match into the ring by one lane. */
K_FUNCTION void k_match_alone(struct k_team *w, k_u32 to, k_u32 back, k_u32 bytes)
{
    k_u8 *ring = K_RING_BYTES(w);
    const k_u32 from = to - back;

    if (back >= 16 || back >= bytes) {
        for (k_u32 k = 0; k < bytes; k += 16) {
            k_quad q;

            if (from < w->oldest)
                q = k_load_some(w->d + from + k, bytes - k);
            else
                q = k_ring_quad(w, from + k);
            k_ring_put(w, to + k, q, bytes - k);
        }
    } else {
        for (k_u32 k = 0, r = 0; k < bytes; k++) {
            ring[K_IN_RING(w, to + k)] = ring[K_IN_RING(w, from + r)];
            r = r + 1 < back ? r + 1 : 0;
        }
    }
}

/* The matches of a step: those whose bytes are there at once, until none is left. The
 * bytes before the first match that is not done are there. */
K_FUNCTION void k_batch_matches(struct k_team *w, const struct k_sequence *q, k_u32 o)
{
    const k_u32 to = o + q->literals, from = to - q->back;
    const k_u32 need = q->back < q->bytes ? to : from + q->bytes;
    const k_u32 large = K_BALLOT(q->bytes > K_SHORT);
    k_u32 todo = K_BALLOT(q->bytes > 0);

    while (todo) {
        const k_u32 of = K_FIRST(todo), mark = K_TAKE(0, w->lane, to, of);
        const k_u32 ready =
            K_BALLOT((todo >> w->lane & 1) && need <= mark && q->bytes <= K_SHORT);

        if ((ready & (ready - 1)) == 0 || large >> of & 1) {
            k_match_together(w, mark, K_TAKE(0, w->lane, q->back, of),
                             K_TAKE(0, w->lane, q->bytes, of));
            todo &= todo - 1;
        } else {
            if (ready >> w->lane & 1)
                k_match_alone(w, to, q->back, q->bytes);
            todo &= ~ready;
        }
        K_MEET();
    }
}

#endif
#endif
