/*
 * kernels/team_decode.h - the steps of a team. In each, the lanes find the next sequences
 * one after the other, then each reads one of them, and all copy at once.
 */
#ifndef K_TEAM_DECODE_H
#define K_TEAM_DECODE_H

#if K_TEAM

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

/* Executes the first `count` of the lanes' sequences, or as many as one step may have.
 * Returns their number. */
K_FUNCTION k_u32 k_execute(struct k_team *w, struct k_sequence *q, k_u32 count)
{
    const k_u32 size = w->lane < count ? q->literals + q->bytes : 0;
    k_u32 o = k_sum_before(w, size), status, bad, total;

    bad = K_BALLOT(o + size > K_STEP);
    count = bad && K_FIRST(bad) < count ? K_FIRST(bad) : count;
    o += w->o;
    status = w->lane < count ? k_judge(w, o, q) : K_OK;
    bad = K_BALLOT(status != K_OK);
    if (bad) {
        count = K_FIRST(bad) + 1;
        w->status = K_TAKE(0, w->lane, status, count - 1);
    }
    q->literals = w->lane < count ? q->literals : 0;
    q->bytes = w->lane < count ? q->bytes : 0;
    total = K_TAKE(0, w->lane, o + q->literals + q->bytes, count - 1);
    if (total > K_RING && total - K_RING > w->oldest)
        w->oldest = total - K_RING;
    k_batch_literals(w, q, o);
    K_MEET();
    k_batch_matches(w, q, o);
    w->o = total;
    k_flush(w, 0);
    K_MEET();
    return count;
}

/* A step: the next sequences, or one that is long. */
K_FUNCTION void k_step(struct k_team *w)
{
    struct k_sequence q;
    k_u32 at, count;

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
    count = k_execute(w, &q, count);
    w->i = K_TAKE(0, w->lane, q.end, count - 1);
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
