/*
 * kernels/zstd_streams.h - the compressed blocks of zstd become literals and sequences in
 * scratch memory. A group has a block: its lanes build the tables in the group's memory,
 * then one lane decodes each stream. No lane waits for another inside of a loop.
 *
 * Format: zstd_blocks.h. Streams of bits are read backwards.
 */
#ifndef K_ZSTD_STREAMS_H
#define K_ZSTD_STREAMS_H

enum {
    K_TREE_BITS = 11, /* of the longest code */
    K_WEIGHTS = K_TREE_BITS + 1,
    K_WEIGHT_LOG = 6,
    K_SYMBOLS = 64 /* room for those of a table */
};
/* A share of a table that is less than one cell: the symbol gets one cell of its own. */
#define K_FSE_LESS 0xFFFFU

/* ---- bits -------------------- */

/* The next bits are the highest ones of `bits`, of which `have` are loaded. `at`: bytes
 * that are not. `left`: bits of the stream that were not taken; below 0: too many were.
 */
struct k_bits {
    K_GLOBAL const k_u8 *s;
    k_u64 bits;
    k_u32 have, at;
    int left;
};

/* Loads bits, so that 32 or more are there. Zeros follow the end of the stream. */
K_FUNCTION void k_bits_load(struct k_bits *b)
{
    k_u32 x = 0;

    if (b->have > 32)
        return;
    if (b->at >= 4) {
        b->at -= 4;
        x = k_four(b->s + b->at);
    } else {
        for (k_u32 k = 0; k < b->at; k++)
            x |= (k_u32)b->s[k] << 8 * (4 - b->at + k);
        b->at = 0;
    }
    b->bits |= (k_u64)x << (32 - b->have);
    b->have += 32;
}

/* The next n bits, of those that are loaded. */
K_FUNCTION k_u32 k_bits_take(struct k_bits *b, k_u32 n)
{
    const k_u32 x = (k_u32)(b->bits >> 1 >> (63 - n));

    b->bits <<= n;
    b->have -= n;
    b->left -= (int)n;
    return x;
}

/* Begins a stream of n bytes, after the highest 1 of its last byte. */
K_FUNCTION void k_bits_open(struct k_bits *b, K_GLOBAL const k_u8 *s, k_u32 n)
{
    const k_u32 last = n ? s[n - 1] : 0U;

    b->s = s;
    b->bits = 0;
    b->have = 0;
    b->at = n;
    b->left = (int)(8 * n);
    k_bits_load(b);
    if (last)
        (void)k_bits_take(b, 8 - K_HIGHEST(last));
    else
        b->left = -1;
}

/* Bits of a stream of n bytes that is read forwards; at most ten. */
K_FUNCTION k_u32 k_bits_forward(K_GLOBAL const k_u8 *s, k_u32 n, k_u32 at, k_u32 bits)
{
    k_u32 x = 0;

    for (k_u32 k = 0; k < 3; k++)
        if (at / 8 + k < n)
            x |= (k_u32)s[at / 8 + k] << 8 * k;
    return x >> at % 8 & ((1U << bits) - 1);
}

/* ---- tables of FSE -------------------- */

/* Symbols and their shares of a table of 1 << log cells. */
struct k_shares {
    K_NEAR k_u16 *share;
    k_u32 n, log;
};

/* Reads a share at bit *at, of which `left` are to be had. */
K_FUNCTION k_u32 k_fse_share(K_GLOBAL const k_u8 *s, k_u32 n, k_u32 *at, k_u32 left)
{
    const k_u32 bits = K_HIGHEST(left + 1) + 1, low = (1U << (bits - 1)) - 1;
    const k_u32 spare = (1U << bits) - 2 - left;
    k_u32 x = k_bits_forward(s, n, *at, bits);

    if ((x & low) < spare) {
        *at += bits - 1;
        return x & low;
    }
    *at += bits;
    return x > low ? x - spare : x;
}

/* Reads a description: at most `symbols` symbols, and a logarithm up to `most`. Returns
 * its bytes; 0: damaged. */
K_FUNCTION k_u32 k_fse_read(K_GLOBAL const k_u8 *s, k_u32 n, k_u32 symbols, k_u32 most,
                            struct k_shares *t)
{
    k_u32 at = 4, left, zeros;

    t->log = 5 + k_bits_forward(s, n, 0, 4);
    t->n = 0;
    if (n == 0 || t->log > most)
        return 0;
    left = 1U << t->log;
    while (left > 0 && t->n < symbols) {
        const k_u32 x = k_fse_share(s, n, &at, left);

        if (x == 1 + (1U << t->log)) /* a table of one symbol */
            return 0;
        t->share[t->n++] = (k_u16)(x ? x - 1 : K_FSE_LESS);
        left -= x ? x - 1 : 1;
        zeros = x == 1 ? 3 : 0;
        while (zeros == 3) {
            zeros = k_bits_forward(s, n, at, 2);
            at += 2;
            if (zeros > symbols - t->n)
                return 0;
            for (k_u32 k = 0; k < zeros; k++)
                t->share[t->n++] = 0;
        }
    }
    return left == 0 && at <= 8 * n ? (at + 7) / 8 : 0;
}

/* The shares of a predefined table: four bits each, and one more than the share. */
K_FUNCTION void k_fse_predefined(k_u32 table, struct k_shares *t)
{
    const k_u64 low = table == K_TABLE_LITERALS ? 0x2223333333333345UL
                      : table == K_TABLE_OFFSET ? 0x2222222333222222UL
                                                : 0x2222222333333452UL;
    const k_u64 middle = table == K_TABLE_LITERALS ? 0x2222234333333333UL
                         : table == K_TABLE_OFFSET ? 0x0000000022222222UL
                                                   : 0x2222222222222222UL;
    const k_u64 high = table == K_TABLE_MATCH ? 0x0022222222222222UL : 0;

    t->n = table == K_TABLE_LITERALS ? 36 : table == K_TABLE_OFFSET ? 29 : 53;
    t->log = table == K_TABLE_OFFSET ? 5 : 6;
    for (k_u32 k = 0; k < t->n; k++) {
        const k_u64 word = k < 16 ? low : k < 32 ? middle : k < 48 ? high : 0;
        const k_u32 x = (k_u32)(word >> 4 * (k % 16)) & 15;

        t->share[k] = (k_u16)(x ? x - 1 : K_FSE_LESS);
    }
}

/* Fills the cells: a symbol, bits of the next state (from bit 8 on), and the number that
 * is added to these (from bit 16 on). */
K_FUNCTION void k_fse_build(const struct k_shares *t, K_NEAR k_u32 *cell)
{
    const k_u32 size = 1U << t->log, step = size / 2 + size / 8 + 3;
    k_u32 top = size, at = 0;

    for (k_u32 k = 0; k < t->n; k++)
        if (t->share[k] == K_FSE_LESS)
            cell[--top] = k;
    for (k_u32 k = 0; k < t->n; k++) {
        const k_u32 n = t->share[k] == K_FSE_LESS ? 0 : t->share[k];

        for (k_u32 i = 0; i < n; i++) {
            cell[at] = k;
            do
                at = (at + step) % size;
            while (at >= top);
        }
        t->share[k] = (k_u16)(t->share[k] == K_FSE_LESS ? 1 : n);
    }
    for (k_u32 i = 0; i < size; i++) {
        const k_u32 k = cell[i], x = t->share[k]++, bits = t->log - K_HIGHEST(x);

        cell[i] = k | bits << 8 | ((x << bits) - size) << 16;
    }
}

/* The state after that of a cell. */
K_FUNCTION k_u32 k_fse_next(struct k_bits *b, k_u32 cell)
{
    return (cell >> 16) + k_bits_take(b, cell >> 8 & 255);
}

/* ---- the tree -------------------- */

/* The memory of a group. `cell`: a symbol, and the bits of its code (from bit 8 on). */
struct k_tree_room {
    k_u16 cell[1 << K_TREE_BITS];
    k_u16 first[256]; /* of the cells of a symbol */
    k_u8 weight[256];
    k_u32 table[1 << K_WEIGHT_LOG];
    k_u32 rank[K_WEIGHTS];
    k_u16 share[K_SYMBOLS];
    k_u32 n, bits, bytes; /* of weights, of the longest code, of the description */
};

/* Weights in a stream of FSE with two states that take turns; 0: damaged. */
K_FUNCTION int k_tree_fse(K_NEAR struct k_tree_room *r, K_GLOBAL const k_u8 *s, k_u32 n)
{
    struct k_shares t;
    struct k_bits b;
    k_u32 used, one, other;

    t.share = r->share;
    used = k_fse_read(s, n, K_WEIGHTS, K_WEIGHT_LOG, &t);
    if (used == 0 || used >= n)
        return 0;
    k_fse_build(&t, r->table);
    k_bits_open(&b, s + used, n - used);
    one = k_bits_take(&b, t.log);
    other = k_bits_take(&b, t.log);
    if (b.left < 0)
        return 0;
    for (r->n = 0; r->n < 255;) {
        const k_u32 cell = r->table[one];

        r->weight[r->n++] = (k_u8)cell;
        k_bits_load(&b);
        one = other;
        other = k_fse_next(&b, cell);
        if (b.left < 0) {
            if (r->n == 255)
                return 0;
            r->weight[r->n++] = (k_u8)r->table[one];
            return 1;
        }
    }
    return 0;
}

/* Reads the weights of n bytes; returns the bytes of the description, 0: damaged. */
K_FUNCTION k_u32 k_tree_weights(K_NEAR struct k_tree_room *r, K_GLOBAL const k_u8 *s,
                                k_u32 n)
{
    const k_u32 head = n ? s[0] : 0U, bytes = head < 128 ? head : (head - 126) / 2;

    if (bytes == 0 || bytes >= n)
        return 0;
    if (head < 128)
        return k_tree_fse(r, s + 1, bytes) ? 1 + bytes : 0;
    r->n = head - 127;
    for (k_u32 k = 0; k < r->n; k++)
        r->weight[k] = s[1 + k / 2] >> (k % 2 ? 0 : 4) & 15;
    return 1 + bytes;
}

/* Adds the last weight, and gives each symbol its cells. Returns the bits of the longest
 * code; 0: damaged. */
K_FUNCTION k_u32 k_tree_order(K_NEAR struct k_tree_room *r)
{
    k_u32 sum = 0, bits, rest, at = 0;

    for (k_u32 k = 0; k < K_WEIGHTS; k++)
        r->rank[k] = 0;
    for (k_u32 k = 0; k < r->n; k++) {
        const k_u32 w = r->weight[k];

        if (w > K_TREE_BITS)
            return 0;
        r->rank[w]++;
        sum += 1U << w >> 1;
    }
    if (sum == 0 || sum >= 1U << K_TREE_BITS)
        return 0;
    bits = K_HIGHEST(sum) + 1;
    rest = (1U << bits) - sum;
    if ((rest & (rest - 1)) != 0)
        return 0;
    r->weight[r->n++] = (k_u8)(K_HIGHEST(rest) + 1);
    r->rank[K_HIGHEST(rest) + 1]++;
    if (r->rank[1] < 2)
        return 0;
    for (k_u32 w = 1; w < K_WEIGHTS; w++) {
        const k_u32 cells = r->rank[w] << (w - 1);

        r->rank[w] = at;
        at += cells;
    }
    for (k_u32 k = 0; k < r->n; k++) {
        const k_u32 w = r->weight[k];

        r->first[k] = (k_u16)r->rank[w];
        r->rank[w] += 1U << w >> 1;
    }
    return bits;
}

/* Fills this lane's part of the cells. */
K_FUNCTION void k_tree_fill(K_NEAR struct k_tree_room *r, k_u32 lane)
{
    for (k_u32 k = lane; k < r->n; k += K_LANES) {
        const k_u32 w = r->weight[k], n = 1U << w >> 1, at = r->first[k];

        for (k_u32 i = 0; i < n; i++)
            r->cell[at + i] = (k_u16)(k | (r->bits + 1 - w) << 8);
    }
}

/* ---- literals -------------------- */

/* Decodes n literals from a stream of `bytes` bytes; 0: damaged. */
K_FUNCTION int k_literal_stream(const K_NEAR struct k_tree_room *r,
                                K_GLOBAL const k_u8 *s, k_u32 bytes, K_GLOBAL k_u8 *to,
                                k_u32 n)
{
    const k_u32 down = 64 - r->bits;
    struct k_bits b;

    k_bits_open(&b, s, bytes);
    for (k_u32 k = 0; k < n && b.left >= 0; k++) {
        k_u32 cell;

        k_bits_load(&b);
        cell = r->cell[b.bits >> down];
        to[k] = (k_u8)cell;
        (void)k_bits_take(&b, cell >> 8);
    }
    return b.left == 0;
}

/* Decodes this lane's streams of n bytes; 0: damaged. */
K_FUNCTION int k_literal_streams(const K_NEAR struct k_tree_room *r,
                                 K_GLOBAL const k_u8 *s, k_u32 n,
                                 const struct k_zstd_sections *p, K_GLOBAL k_u8 *to,
                                 k_u32 lane)
{
    const k_u32 each = p->streams == 1 ? p->n_literals : (p->n_literals + 3) / 4;
    const k_u32 head = p->streams == 1 ? 0 : 6;
    k_u32 at = head;

    if (head > n)
        return 0;
    for (k_u32 k = 0; k < p->streams; k++) {
        const k_u32 last = k + 1 == p->streams;
        const k_u32 bytes =
            last ? n - at : s[(k_u64)2 * k] + ((k_u32)s[(k_u64)2 * k + 1] << 8);
        const k_u32 count = last ? p->n_literals - k * each : each;

        if (bytes > n - at)
            return 0;
        if (k % K_LANES == lane &&
            !k_literal_stream(r, s + at, bytes, to + (k_u64)each * k, count))
            return 0;
        at += bytes;
    }
    return 1;
}

/* Literals that have no code. */
K_FUNCTION void k_literals_plain(K_GLOBAL const k_u8 *s, const struct k_zstd_sections *p,
                                 K_GLOBAL k_u8 *to, k_u32 lane)
{
    if (p->type == K_LITERALS_RAW)
        k_copy_bytes(to, s + p->literals, p->n_literals, lane, K_LANES);
    else
        for (k_u32 k = lane; k < p->n_literals; k += K_LANES)
            to[k] = s[p->literals];
}

/* Builds the tree of block b; r->bytes becomes 0 if it is damaged. */
K_FUNCTION void k_tree_build(K_NEAR struct k_tree_room *r, K_GLOBAL const k_u8 *src,
                             K_GLOBAL const struct k_zstd_block *b)
{
    struct k_zstd_sections p;

    r->bytes = 0;
    if (k_zstd_read_sections(src + b->src, b->bytes, &p))
        r->bytes = k_tree_weights(r, src + b->src + p.literals, p.literal_bytes);
    r->bits = r->bytes ? k_tree_order(r) : 0;
    r->bytes = r->bits ? r->bytes : 0;
}

/* The literals of block b, whose tree is that of block `from`. All lanes call it, and
 * meet under no condition, for PoCL. Returns 0: damaged. */
K_FUNCTION int k_literals_decode(K_NEAR struct k_tree_room *r, K_GLOBAL const k_u8 *src,
                                 K_GLOBAL const struct k_zstd_block *b,
                                 K_GLOBAL const struct k_zstd_block *from,
                                 K_GLOBAL k_u8 *to, k_u32 lane)
{
    K_GLOBAL const k_u8 *s = src + b->src;
    struct k_zstd_sections p;
    /* k_zstd_open() has read them */
    const int known =
        b->kind == K_BLOCK_COMPRESSED && k_zstd_read_sections(s, b->bytes, &p);
    const int coded = known && p.type >= K_LITERALS_TREE;

    if (coded && lane == 0)
        k_tree_build(r, src, from);
    K_MEET();
    if (coded && r->bytes)
        k_tree_fill(r, lane);
    K_MEET();
    if (known && !coded)
        k_literals_plain(s, &p, to, lane);
    if (!coded)
        return 1;
    const k_u32 tree = p.type == K_LITERALS_TREE ? r->bytes : 0;

    return r->bytes && k_literal_streams(r, s + p.literals + tree, p.literal_bytes - tree,
                                         &p, to, lane);
}

/* A group for each place in the list: the literals of its blocks. A damaged block becomes
 * K_BLOCK_NONE, as it does in k_zstd_sequences(). */
K_KERNEL k_zstd_literals(K_GLOBAL k_u8 *scratch, K_GLOBAL const k_u8 *src,
                         K_GLOBAL const struct k_zstd_chunk *chunks,
                         K_GLOBAL k_u32 *status, k_u64 blocks, k_u64 n_blocks)
{
    K_NEAR_ROOM(struct k_tree_room, room);
    const k_u64 at = K_STREAM;

    if (at >= n_blocks)
        return;
    K_GLOBAL const struct k_zstd_chunk *c = k_zstd_group(scratch, blocks, chunks, at);
    const k_u32 n = k_zstd_at(scratch, blocks, c, 0)->n_blocks;

    for (k_u32 k = (k_u32)at - c->first_block; k < n; k += c->most_blocks) {
        K_GLOBAL struct k_zstd_block *b = k_zstd_at(scratch, blocks, c, k);

        if (!k_literals_decode(&room, src, b, k_zstd_at(scratch, blocks, c, b->tree),
                               scratch + c->literals + b->literals, K_LANE)) {
            status[c->number] = K_BAD_INPUT;
            b->kind = K_BLOCK_NONE;
        }
        K_MEET();
    }
}

/* ---- sequences -------------------- */

/* A sequence of a block: literals, bytes of the match less three (from bit 17 on), and
 * the offset (from bit 34 on): bytes, or K_OFFSET_BEFORE, with the number of one of the
 * three offsets before the block (from bit 27 on) and what is taken from it. */
enum {
    K_SEQUENCE_BITS = 17,
    K_MATCH_LEAST = 3,
    K_OFFSET_BEFORE = 1 << 29,
    K_OFFSET_PLACE = 27
};

/* The memory of a group: cells of the three tables, the first number of each symbol with
 * the bits that are added to it (from bit 20 on), shares, also of tables that are
 * skipped, and for each table its logarithm, or K_ZSTD_NO_BLOCK if it is damaged. */
struct k_sequence_room {
    k_u32 cell[512 + 256 + 512];
    k_u32 value[K_TABLES * K_SYMBOLS];
    k_u16 share[(K_TABLES + 1) * K_SYMBOLS];
    k_u32 log[K_TABLES], stream;
};

K_FUNCTION k_u32 k_table_symbols(k_u32 table)
{
    return table == K_TABLE_LITERALS ? 36 : table == K_TABLE_OFFSET ? 32 : 53;
}

/* Where the cells of a table begin. */
K_FUNCTION k_u32 k_table_cells(k_u32 table)
{
    return table == K_TABLE_LITERALS ? 0 : table == K_TABLE_OFFSET ? 512 : 768;
}

/* Bits that follow a code. */
K_FUNCTION k_u32 k_code_bits(k_u32 table, k_u32 code)
{
    if (table == K_TABLE_OFFSET)
        return code;
    if (table == K_TABLE_LITERALS)
        return code < 16   ? 0
               : code < 25 ? (k_u32)(0x433221111UL >> 4 * (code - 16)) & 15
                           : code - 19;
    return code < 32   ? 0
           : code < 43 ? (k_u32)(0x54433221111UL >> 4 * (code - 32)) & 15
                       : code - 36;
}

K_FUNCTION void k_table_values(K_NEAR k_u32 *value, k_u32 table)
{
    k_u32 first = table == K_TABLE_MATCH ? K_MATCH_LEAST : 0;

    for (k_u32 k = 0; k < k_table_symbols(table); k++) {
        const k_u32 bits = k_code_bits(table, k);

        value[k] = first | bits << 20;
        first += 1U << bits;
    }
}

/* Finds table `table` of a block, and reads its shares; K_TABLES: only finds the end of
 * all. A table that is one symbol has the logarithm 0, and the symbol in `n`. Returns the
 * place behind the table in the block; 0: damaged. */
K_FUNCTION k_u32 k_table_find(K_GLOBAL const k_u8 *s, k_u32 n, k_u32 table,
                              struct k_shares *t)
{
    struct k_zstd_sections p;
    k_u32 at;

    if (!k_zstd_read_sections(s, n, &p))
        return 0;
    at = p.tables;
    for (k_u32 k = 0; k < K_TABLES && k <= table; k++) {
        const k_u32 mode = k_zstd_mode(p.modes, k);

        if (mode == K_TABLE_FSE) {
            const k_u32 bytes = k_fse_read(s + at, n - at, k_table_symbols(k),
                                           k == K_TABLE_OFFSET ? 8 : 9, t);

            if (bytes == 0)
                return 0;
            at += bytes;
        } else if (mode == K_TABLE_RLE) {
            t->n = at < n ? s[at] : k_table_symbols(k);
            t->log = 0;
            if (t->n >= k_table_symbols(k))
                return 0;
            at++;
        } else if (mode == K_TABLE_PREDEFINED && k == table) {
            k_fse_predefined(k, t);
        }
    }
    return at;
}

/* Builds a table of a block. Returns its logarithm, K_ZSTD_NO_BLOCK: damaged. */
K_FUNCTION k_u32 k_table_build(K_NEAR struct k_sequence_room *r, K_GLOBAL const k_u8 *src,
                               K_GLOBAL const struct k_zstd_block *b, k_u32 table)
{
    K_NEAR k_u32 *cell = r->cell + k_table_cells(table);
    struct k_shares t;

    t.share = r->share + (k_u64)K_SYMBOLS * table;
    t.log = t.n = 0;
    if (k_table_find(src + b->src, b->bytes, table, &t) == 0)
        return K_ZSTD_NO_BLOCK;
    if (t.log)
        k_fse_build(&t, cell);
    else
        cell[0] = t.n;
    return t.log;
}

/* This lane's part of the tables of block b, and in r->stream the place of its stream, 0:
 * damaged. Each lane does one of the four. */
K_FUNCTION void k_tables_build(K_NEAR struct k_sequence_room *r, K_GLOBAL k_u8 *scratch,
                               K_GLOBAL const k_u8 *src,
                               K_GLOBAL const struct k_zstd_chunk *c, k_u64 blocks,
                               K_GLOBAL const struct k_zstd_block *b, k_u32 lane)
{
    for (k_u32 k = lane; k <= K_TABLES; k += K_LANES) {
        const k_u32 from = k == K_TABLE_LITERALS ? b->table_literals
                           : k == K_TABLE_OFFSET ? b->table_offset
                                                 : b->table_match;
        struct k_shares t;

        t.share = r->share + (k_u64)K_SYMBOLS * k;
        if (k == K_TABLES) {
            r->stream = k_table_find(src + b->src, b->bytes, K_TABLES, &t);
        } else {
            r->log[k] = k_table_build(r, src, k_zstd_at(scratch, blocks, c, from), k);
            k_table_values(r->value + (k_u64)K_SYMBOLS * k, k);
        }
    }
}

/* The three offsets that were used last. */
struct k_repeats {
    k_u32 a, b, c;
};

/* The offset of a value, and the three after it; 0: none. */
K_FUNCTION k_u32 k_offset_next(struct k_repeats *r, k_u32 value, k_u32 literals)
{
    const k_u32 place = value - 1 + (literals == 0); /* of those that are repeated */
    const int fresh = value > 3;
    k_u32 x = value - 3;

    if (!fresh && place == 3)
        x = r->a & K_OFFSET_BEFORE ? r->a + 1 : r->a - 1;
    else if (!fresh)
        x = place == 0 ? r->a : place == 1 ? r->b : r->c;
    if (fresh || place >= 2)
        r->c = r->b;
    if (fresh || place >= 1)
        r->b = r->a;
    r->a = x;
    return x;
}

/* A lane that decodes the sequences of a block: n of them, so far `size` bytes of output
 * with `literals` literals. */
struct k_sequences {
    struct k_bits b;
    struct k_repeats repeats;
    k_u32 state_literals, state_offset, state_match;
    k_u32 size, literals, status;
};

/* The number of a symbol with the bits behind it. */
K_FUNCTION k_u32 k_symbol_value(struct k_bits *b, k_u32 value)
{
    return (value & 0xFFFFF) + k_bits_take(b, value >> 20);
}

/* Decodes a sequence; `more`: another one follows. */
K_FUNCTION k_u64 k_sequence_next(const K_NEAR struct k_sequence_room *r,
                                 struct k_sequences *q, int more)
{
    const k_u32 l = r->cell[q->state_literals], o = r->cell[512 + q->state_offset],
                m = r->cell[768 + q->state_match];
    k_u32 value, bytes, literals, offset;

    k_bits_load(&q->b);
    value = (1U << (o & 255)) + k_bits_take(&q->b, o & 255);
    k_bits_load(&q->b);
    bytes = k_symbol_value(&q->b, r->value[K_TABLE_MATCH * K_SYMBOLS + (m & 255)]);
    literals = k_symbol_value(&q->b, r->value[K_TABLE_LITERALS * K_SYMBOLS + (l & 255)]);
    k_bits_load(&q->b);
    if (more) {
        q->state_literals = k_fse_next(&q->b, l);
        q->state_match = k_fse_next(&q->b, m);
        q->state_offset = k_fse_next(&q->b, o);
    }
    offset = k_offset_next(&q->repeats, value, literals);
    q->literals += literals;
    q->size += literals + bytes;
    if (q->b.left < 0)
        q->status = K_BAD_INPUT;
    else if (offset == 0 || value > K_ZSTD_MOST + 3)
        q->status = K_BAD_OFFSET;
    return literals | (k_u64)(bytes - K_MATCH_LEAST) << K_SEQUENCE_BITS |
           (k_u64)offset << 2 * K_SEQUENCE_BITS;
}

/* Decodes the sequences of block b to `to`. */
K_FUNCTION void k_sequences_decode(const K_NEAR struct k_sequence_room *r,
                                   K_GLOBAL const k_u8 *src,
                                   K_GLOBAL struct k_zstd_block *b, K_GLOBAL k_u64 *to,
                                   struct k_sequences *q)
{
    k_bits_open(&q->b, src + b->src + r->stream, b->bytes - r->stream);
    q->state_literals = k_bits_take(&q->b, r->log[K_TABLE_LITERALS]);
    k_bits_load(&q->b);
    q->state_offset = k_bits_take(&q->b, r->log[K_TABLE_OFFSET]);
    q->state_match = k_bits_take(&q->b, r->log[K_TABLE_MATCH]);
    q->repeats.a = K_OFFSET_BEFORE;
    q->repeats.b = K_OFFSET_BEFORE | 1U << K_OFFSET_PLACE;
    q->repeats.c = K_OFFSET_BEFORE | 2U << K_OFFSET_PLACE;
    q->size = q->literals = 0;
    for (k_u32 k = 0; k < b->n_sequences && q->status == K_OK; k++) {
        to[k] = k_sequence_next(r, q, k + 1 < b->n_sequences);
        if (q->literals > b->n_literals)
            q->status = K_BAD_INPUT;
        else if (q->size + (b->n_literals - q->literals) > b->most)
            q->status = K_TOO_LONG;
    }
    if (q->status == K_OK && q->b.left != 0)
        q->status = K_BAD_INPUT;
    b->size = q->size + (b->n_literals - q->literals);
    b->repeat0 = q->repeats.a;
    b->repeat1 = q->repeats.b;
    b->repeat2 = q->repeats.c;
}

/* Whether the tables of a block are good, and its stream begins inside of it. */
K_FUNCTION int k_tables_fit(const K_NEAR struct k_sequence_room *r, k_u32 bytes)
{
    return r->stream > 0 && r->stream < bytes &&
           r->log[K_TABLE_LITERALS] != K_ZSTD_NO_BLOCK &&
           r->log[K_TABLE_OFFSET] != K_ZSTD_NO_BLOCK &&
           r->log[K_TABLE_MATCH] != K_ZSTD_NO_BLOCK;
}

/* A group for each place in the list: the sequences of its blocks. */
K_KERNEL k_zstd_sequences(K_GLOBAL k_u8 *scratch, K_GLOBAL const k_u8 *src,
                          K_GLOBAL const struct k_zstd_chunk *chunks,
                          K_GLOBAL k_u32 *status, k_u64 blocks, k_u64 n_blocks)
{
    K_NEAR_ROOM(struct k_sequence_room, room);
    const k_u64 at = K_STREAM;
    struct k_sequences q;

    if (at >= n_blocks)
        return;
    K_GLOBAL const struct k_zstd_chunk *c = k_zstd_group(scratch, blocks, chunks, at);
    K_GLOBAL k_u64 *to = (K_GLOBAL k_u64 *)(scratch + c->sequences);
    const k_u32 n = k_zstd_at(scratch, blocks, c, 0)->n_blocks;

    for (k_u32 k = (k_u32)at - c->first_block; k < n; k += c->most_blocks) {
        K_GLOBAL struct k_zstd_block *b = k_zstd_at(scratch, blocks, c, k);

        if (b->n_sequences > 0)
            k_tables_build(&room, scratch, src, c, blocks, b, K_LANE);
        K_MEET();
        if (b->n_sequences > 0 && K_LANE == 0) {
            q.status = k_tables_fit(&room, b->bytes) ? K_OK : K_BAD_INPUT;
            if (q.status == K_OK)
                k_sequences_decode(&room, src, b, to + b->sequences, &q);
            if (q.status != K_OK) {
                status[c->number] = q.status;
                b->kind = K_BLOCK_NONE;
            }
        }
        K_MEET();
    }
}

#endif
