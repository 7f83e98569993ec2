/*
 * kernels/team_copies.h - literals and matches into the output of a team: those of a step
 * into the ring, and a long sequence without it.
 */
#ifndef K_TEAM_COPIES_H
#define K_TEAM_COPIES_H

#if K_TEAM

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
