/*
 * kernels/lanes.h - streams of literals and matches, decoded by K_LANES work items
 * together, many sequences a step: the lanes find the next sequences one after the other,
 * then each reads one of them, and all copy at once.
 *
 * The newest bytes of the output are in a ring of shared memory, from which whole pieces
 * go to the output. Positions are bytes from the start of the input or the output.
 */
#ifndef K_LANES_H
#define K_LANES_H

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
                             the  sequence after the one there begins */
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

/* Literals, and the match after them. `end`: where the next sequence begins. */
struct k_sequence {
    k_u32 at, literals, back, bytes, end, stage;
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

K_FUNCTION k_u32 k_word_of(const struct k_team *w, k_u32 at)
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
    q.x = k_word_of(w, from - w->s_skew);
    q.y = k_word_of(w, from - w->s_skew + 4);
    q.z = k_word_of(w, from - w->s_skew + 8);
    q.w = k_word_of(w, from - w->s_skew + 12);
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

/* ---- copies of all lanes -------------------- */

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

/* ---- sequences -------------------- */

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

/* The sum of x of the lanes before this one. */
K_FUNCTION k_u32 k_sum_before(const struct k_team *w, k_u32 x)
{
    k_u32 sum = x;

    for (k_u32 by = 1; by < K_LANES; by *= 2) {
        const k_u32 other = K_TAKE(0, w->lane, sum, (w->lane - by) % K_LANES);

        if (w->lane >= by)
            sum += other;
    }
    return sum - x;
}

/* ---- LZ4 -------------------- */

/* Reads the sequence at byte i. Fields are written once, so that they stay registers. */
K_FUNCTION void k_lz4_open(const struct k_team *w, k_u32 i, struct k_sequence *q)
{
    const k_u32 token = w->s[i++];
    k_u32 literals = token >> 4, bytes = token & 15, back = 0, stage = K_NO_LITERALS,
          at = 0;

    if (literals == 15)
        literals = k_longer(w, &i, 15);
    if (i != K_NONE && literals <= w->n - i) {
        at = i;
        i += literals;
        stage = i == w->n ? K_LAST : K_NO_MATCH;
    } else {
        literals = 0;
        i = w->n;
    }
    if (w->n - i >= K_LZ4_LAST + 3) {
        back = w->s[i] | (k_u32)w->s[i + 1] << 8;
        i += 2;
        if (bytes == 15)
            bytes = k_longer(w, &i, 15);
        stage = i == K_NONE ? K_NO_MATCH : K_WHOLE;
    }
    q->at = at;
    q->literals = literals;
    q->back = back;
    q->bytes = stage == K_WHOLE ? bytes + 4 : 0;
    q->end = stage == K_WHOLE ? i : w->n;
    q->stage = stage;
}

/* Where the sequence after the one at v begins, by the window, with the input's skew; v
 * if that takes more than a byte after each length. `known`: the end of the window.
 * Without branches, so that many of them overlap. */
K_FUNCTION k_u32 k_lz4_jump(const k_u8 *window, k_u32 v, k_u32 known)
{
    const k_u32 token = window[v % K_SEEN], x = window[(v + 1) % K_SEEN];
    const k_u32 more = token >= 0xF0, longer = (token & 15) == 15;
    const k_u32 next = v + 3 + (token >> 4) + (x + 1) * more;
    const k_u32 y = window[next % K_SEEN], first = x == 255, last = y == 255;
    const k_u32 outside = v + 1 >= known, beyond = next >= known;
    const k_u32 slow = (more & (first | outside)) | (longer & (last | beyond));

    return slow ? v : next + longer;
}

/* ---- snappy: a sequence is an item -------------------- */

K_FUNCTION k_u32 k_byte_at(const struct k_team *w, k_u32 i)
{
    return i < w->n ? w->s[i] : 0;
}

/* Bytes behind the tag of an item that are no literals. */
K_FUNCTION k_u32 k_snappy_extra(k_u32 tag)
{
    const k_u32 kind = tag & 3;

    if (kind == 0)
        return tag >> 2 < 60 ? 0 : (tag >> 2) - 59;
    return kind == 3 ? 4 : kind;
}

K_FUNCTION void k_snappy_open(const struct k_team *w, k_u32 i, struct k_sequence *q)
{
    const k_u32 tag = w->s[i], high = tag >> 2, extra = k_snappy_extra(tag);
    const int whole = extra < w->n - i;
    k_u32 x = 0, literals = 0, stage = K_WHOLE;

    for (k_u32 k = 0; k < extra; k++)
        x |= k_byte_at(w, i + 1 + k) << 8 * k;
    i += 1 + extra;
    if ((tag & 3) == 0) {
        literals = high < 60 ? high : x; /* and one more */
        stage = whole && literals < w->n - i ? K_ONLY_LITERALS : K_NO_LITERALS;
        literals = stage == K_ONLY_LITERALS ? literals + 1 : 0;
    } else if (!whole) {
        stage = K_NO_MATCH;
    }
    q->at = i;
    q->literals = literals;
    q->back = (tag & 3) == 1 ? (tag >> 5) << 8 | x : x;
    q->bytes = stage != K_WHOLE ? 0 : (tag & 3) == 1 ? 4 + (high & 7) : high + 1;
    q->end = stage == K_WHOLE || stage == K_ONLY_LITERALS ? i + literals : w->n;
    q->stage = stage;
}

K_FUNCTION k_u32 k_snappy_jump(const k_u8 *window, k_u32 v)
{
    const k_u32 tag = window[v % K_SEEN], extra = k_snappy_extra(tag);

    if ((tag & 3) != 0)
        return v + 1 + extra;
    return extra ? v : v + 2 + (tag >> 2);
}

/* ---- blosclz: a sequence is an item -------------------- */

K_FUNCTION void k_blosclz_open(const struct k_team *w, k_u32 i, struct k_sequence *q)
{
    const k_u32 control = i == 0 ? w->s[0] & 31U : w->s[i];
    const k_u32 high = (control & 31) << 8;
    k_u32 bytes = control >> 5, literals = 0, back = 0, b, stage = K_NO_MATCH, at = ++i;

    if (bytes == 0) {
        literals = control < w->n - i ? control + 1 : 0;
        i += literals;
        stage = literals == 0 ? K_NO_LITERALS : i == w->n ? K_LAST : K_ONLY_LITERALS;
    } else {
        if (bytes == K_BLOSCLZ_LONG)
            bytes = k_longer(w, &i, bytes);
        if (i < w->n) {
            b = w->s[i++];
            back = high + b + 1;
            stage = K_WHOLE;
            if (b == 255 && high == 31 << 8) {
                stage = w->n - i >= 2 ? K_WHOLE : K_NO_MATCH;
                back = K_BLOSCLZ_NEAR + 1 + (k_byte_at(w, i) << 8) + k_byte_at(w, i + 1);
                i += 2;
            }
        }
    }
    q->at = at;
    q->literals = literals;
    q->back = back;
    q->bytes = stage == K_WHOLE ? bytes + 2 : 0;
    q->end = stage == K_WHOLE || stage == K_ONLY_LITERALS ? i : w->n;
    q->stage = stage;
}

K_FUNCTION k_u32 k_blosclz_jump(const k_u8 *window, k_u32 v, k_u32 mask, k_u32 known)
{
    const k_u32 control = window[v % K_SEEN] & mask;
    const k_u32 x = window[(v + 1) % K_SEEN], y = window[(v + 2) % K_SEEN];
    const k_u32 longer = control >> 5 == K_BLOSCLZ_LONG, outside = v + 2 >= known;
    const k_u32 end = longer ? y : x, first = x == 255, last = end == 255;
    const k_u32 far = last & ((control & 31) == 31);
    const k_u32 slow = outside | (longer & first);
    const k_u32 next = slow ? v : v + 2 + longer + 2 * far;

    return control < 32 ? v + 2 + control : next;
}

/* ---- steps -------------------- */

K_FUNCTION void k_open(const struct k_team *w, k_u32 i, struct k_sequence *q)
{
    if (w->how == K_LZ4)
        k_lz4_open(w, i, q);
    else if (w->how == K_SNAPPY)
        k_snappy_open(w, i, q);
    else
        k_blosclz_open(w, i, q);
}

/* What is wrong with a sequence that begins at byte o of the output; bytes that do not
 * belong there are taken from it. */
K_FUNCTION k_u32 k_judge(const struct k_team *w, k_u32 o, struct k_sequence *q)
{
    const k_u32 room = w->m - o, left = room - q->literals;
    const int no_literals = q->stage == K_NO_LITERALS || q->literals > room;
    const k_u32 close = w->how == K_LZ4 ? K_LZ4_CLOSE : 0;
    k_u32 status = K_OK;

    if (no_literals)
        status = q->stage == K_NO_LITERALS ? K_BAD_INPUT : K_TOO_LONG;
    else if (q->stage == K_LAST)
        status = K_DONE;
    else if (q->stage == K_ONLY_LITERALS)
        status = K_OK;
    else if (left < close || q->stage == K_NO_MATCH)
        status = K_BAD_INPUT;
    else if (q->back == 0 || q->back > o + q->literals)
        status = K_BAD_OFFSET;
    else if (q->bytes > left)
        status = K_TOO_LONG;
    q->literals = no_literals ? 0 : q->literals;
    q->bytes = status == K_OK ? q->bytes : 0;
    return status == K_OK && w->how == K_LZ4 && left - q->bytes < K_LZ4_LAST ? K_BAD_INPUT
                                                                             : status;
}

/* Fills the tables for the positions from v on. A position from which none can be told
 * jumps to itself. All loads come before the stores, so that they overlap. */
K_FUNCTION void k_fill_jumps(struct k_team *w, k_u32 v)
{
    enum {
        EACH = K_PIECE / K_LANES
    };
    const k_u8 *window = (const k_u8 *)w->room->window;
    const k_u32 known = w->pieces * K_PIECE, all = w->n + w->s_skew;
    const k_u32 end = known < all ? known : all;
    k_u16 *jump = w->room->jump + w->lane, *twice = w->room->twice + w->lane;
    k_u32 to[EACH];

    v += w->lane;
    if (w->how == K_LZ4) {
        K_UNROLL for (k_u32 k = 0; k < EACH; k++) to[k] =
            k_lz4_jump(window, v + K_LANES * k, known);
    } else if (w->how == K_SNAPPY) {
        K_UNROLL for (k_u32 k = 0; k < EACH; k++) to[k] =
            k_snappy_jump(window, v + K_LANES * k);
    } else {
        K_UNROLL for (k_u32 k = 0; k < EACH; k++) to[k] = k_blosclz_jump(
            window, v + K_LANES * k, v + K_LANES * k == w->s_skew ? 31 : 255, known);
    }
    K_UNROLL for (k_u32 k = 0; k < EACH; k++)
    {
        to[k] = v + K_LANES * k < end ? to[k] - v + w->lane : K_LANES * k + w->lane;
        jump[(k_u64)K_LANES * k] = (k_u16)to[k];
    }
    K_MEET();
    K_UNROLL for (k_u32 k = 0; k < EACH; k++) to[k] = w->room->jump[to[k]];
    K_UNROLL for (k_u32 k = 0; k < EACH; k++) twice[(k_u64)K_LANES * k] = (k_u16)to[k];
    K_MEET();
}

/* Finds up to K_LANES sequences from w->i on, of which *at becomes this lane's. Returns
 * their number; 0: the first one is long. */
K_FUNCTION k_u32 k_scan(struct k_team *w, k_u32 *at)
{
    k_u32 v = w->i + w->s_skew, place = 0, mine = 0, lead = 0, again;
    struct k_sequence q;

    do {
        k_fill_jumps(w, v);
        again = !lead && w->room->jump[0] == 0;
        if (again) { /* a sequence that only k_open() understands */
            k_open(w, w->i, &q);
            if (q.literals > K_LONG || q.bytes > K_LONG ||
                q.literals + q.bytes > K_LONG) {
                *at = w->i;
                return 0;
            }
            lead = 1;
            v = q.end + w->s_skew;
            K_MEET();
        }
    } while (again);
    K_UNROLL for (k_u32 k = 0; k < K_LANES / 2; k++)
    {
        mine = (w->lane - lead) / 2 == k ? place : mine;
        place = w->room->twice[place];
    }
    if ((w->lane - lead) % 2 == 1)
        mine = w->room->jump[mine];
    const int first = lead && w->lane == 0;

    *at = first ? w->i : v + mine - w->s_skew;
    return K_POPCOUNT(K_BALLOT(first || w->room->jump[mine] != mine));
}

/* A step: the next sequences, or one that is long. */
K_FUNCTION void k_step(struct k_team *w)
{
    struct k_sequence q;
    k_u32 at, count, o, size, status, bad, total;

    k_refill(w);
    count = k_scan(w, &at);
    at = w->lane < count ? at : w->i; /* a lane without a sequence drops it */
    k_open(w, at, &q);
    if (count == 0) {
        w->status = k_judge(w, w->o, &q);
        w->i = q.end;
        k_sequence_alone(w, &q);
        return;
    }
    size = w->lane < count ? q.literals + q.bytes : 0;
    o = k_sum_before(w, size);
    bad = K_BALLOT(o + size > K_STEP);
    count = bad && K_FIRST(bad) < count ? K_FIRST(bad) : count;
    o += w->o;
    status = w->lane < count ? k_judge(w, o, &q) : K_OK;
    bad = K_BALLOT(status != K_OK);
    if (bad) {
        count = K_FIRST(bad) + 1;
        w->status = K_TAKE(0, w->lane, status, count - 1);
    }
    q.literals = w->lane < count ? q.literals : 0;
    q.bytes = w->lane < count ? q.bytes : 0;
    total = K_TAKE(0, w->lane, o + q.literals + q.bytes, count - 1);
    w->i = K_TAKE(0, w->lane, q.end, count - 1);
    if (total > K_RING && total - K_RING > w->oldest)
        w->oldest = total - K_RING;
    k_batch_literals(w, &q, o);
    K_MEET();
    k_batch_matches(w, &q, o);
    w->o = total;
    k_flush(w, 0);
    K_MEET();
}

/* Decodes from byte i of the input on. */
K_FUNCTION void k_team_decode(struct k_walk *w, struct k_room *room, k_u32 how)
{
    struct k_team t;

    t.d = w->d;
    t.s = w->s;
    t.room = room;
    t.n = (k_u32)w->n;
    t.m = (k_u32)w->m;
    t.i = (k_u32)w->i;
    t.o = t.oldest = t.flushed = t.pieces = 0;
    t.lane = w->lane;
    t.status = K_OK;
    t.how = how;
    t.d_skew = (k_u32)((k_u64)t.d & 15);
    t.s_skew = (k_u32)((k_u64)t.s & 15);
    t.next = k_piece(&t, 0);
    for (k_u32 k = K_PIECE + t.lane; k < K_JUMPS; k += K_LANES)
        room->jump[k] = room->twice[k] = (k_u16)k;
    while (t.status == K_OK) {
        if (t.i < t.n)
            k_step(&t);
        else
            t.status = how == K_SNAPPY ? K_DONE : K_BAD_INPUT;
    }
    K_MEET();
    k_flush(&t, 1);
    w->status = t.status == K_DONE ? K_OK : t.status;
    w->o = t.o;
}

#endif
#endif
