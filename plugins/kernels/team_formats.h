/*
 * kernels/team_formats.h - what a team knows of LZ4, snappy and blosclz: how a sequence
 * is read, and where the next one begins. Formats: lz.h.
 */
#ifndef K_TEAM_FORMATS_H
#define K_TEAM_FORMATS_H

#if K_TEAM

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

/* ---- all -------------------- */

K_FUNCTION void k_open(const struct k_team *w, k_u32 i, struct k_sequence *q)
{
    if (w->how == K_LZ4)
        k_lz4_open(w, i, q);
    else if (w->how == K_SNAPPY)
        k_snappy_open(w, i, q);
    else
        k_blosclz_open(w, i, q);
}

#endif
#endif
