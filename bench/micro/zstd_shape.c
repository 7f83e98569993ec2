/*
 * bench/micro/zstd_shape.c - what a decoder of zstd on a device finds in frames. A
 * program, not a test:
 *
 *   zstd_shape <file> <item bytes> <chunk bytes> [level...]
 *
 * Cuts the file into chunks, encodes each at levels 1, 3 and 9 or those that are named,
 * and decodes it by the twins of the kernels. With item bytes above 1 the chunks are
 * shuffled first. Prints a row of docs/internals/kernels.md for each level.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "kernels/kernels.h"
#include "kernels/twins.h"

enum {
    BLOCKS_MOST = 4096,
    FEW = 32, /* sequences that a team executes in a step */
    MANY = 256
};

struct shape {
    double chunks, decoded, encoded, blocks, plain, treeless, repeats, tables;
    double streams, literals, sequences, few, few_rounds, many, many_rounds, declined;
};
struct chunk {
    uint8_t *plain, *encoded, *out;
    struct k_zstd_block *blocks; /* the scratch memory begins with them */
    size_t n, n_encoded;
    uint32_t status;
};
struct copy {
    uint32_t to, need, done; /* first byte, and where its source ends */
};

static void *room(size_t bytes)
{
    void *p = calloc(1, bytes + 8);

    if (!p)
        exit(1);
    return p;
}

static uint8_t *read_file(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    uint8_t *bytes;
    long end;

    if (!f || fseek(f, 0, SEEK_END) != 0 || (end = ftell(f)) < 0) {
        (void)fprintf(stderr, "zstd_shape: %s cannot be read\n", path);
        exit(1);
    }
    rewind(f);
    bytes = room((size_t)end);
    *n = fread(bytes, 1, (size_t)end, f);
    (void)fclose(f);
    return bytes;
}

static void shuffle(uint8_t *to, const uint8_t *from, size_t n, size_t item)
{
    const size_t items = n / item;

    for (size_t k = 0; k < items; k++)
        for (size_t b = 0; b < item; b++)
            to[b * items + k] = from[k * item + b];
    memcpy(to + items * item, from + items * item, n - items * item);
}

/* ---- decoding by the twins -------------------- */

static void decode(struct chunk *c)
{
    const size_t blocks = BLOCKS_MOST * sizeof *c->blocks;
    struct k_zstd_chunk d = {.src_bytes = c->n_encoded,
                             .dst_bytes = c->n,
                             .literals = blocks + c->n / K_ZSTD_BYTES * 8,
                             .sequences = blocks,
                             .most_blocks = BLOCKS_MOST};
    const struct kernels_argument chunk = {.bytes = &d}, src = {.bytes = c->encoded},
                                  scratch = {.bytes = c->blocks},
                                  status = {.bytes = &c->status}, out = {.bytes = c->out},
                                  none = {.number = 0}, one = {.number = 1},
                                  n = {.number = BLOCKS_MOST};

    c->status = K_OK;
    (void)kernels_twin(
        "k_zstd_open", 1,
        (const struct kernels_argument[]){scratch, src, chunk, status, none, one});
    (void)kernels_twin(
        "k_zstd_literals", BLOCKS_MOST,
        (const struct kernels_argument[]){scratch, src, chunk, status, none, n});
    (void)kernels_twin(
        "k_zstd_sequences", BLOCKS_MOST,
        (const struct kernels_argument[]){scratch, src, chunk, status, none, n});
    (void)kernels_twin(
        "k_zstd_execute", 1,
        (const struct kernels_argument[]){out, src, scratch, chunk, status, none, one});
    if (c->status == K_OK && memcmp(c->out, c->plain, c->n) != 0) {
        (void)fputs("zstd_shape: a chunk decodes to other bytes\n", stderr);
        exit(1);
    }
}

/* ---- counting -------------------- */

/* Rounds until all copies are done: in each, those whose source ends before the first
 * byte that is not there. */
static uint32_t count_rounds(struct copy *all, size_t n)
{
    uint32_t rounds = 0;

    for (size_t first = 0; first < n; rounds++) {
        const uint32_t there = all[first].to;

        for (size_t k = first; k < n; k++)
            all[k].done |= all[k].need <= there;
        all[first].done = 1;
        while (first < n && all[first].done)
            first++;
    }
    return rounds;
}

static void add_rounds(const struct chunk *c, const struct k_zstd_block *b, uint32_t at,
                       uint32_t width, double *groups, double *rounds)
{
    const uint64_t *list = (const uint64_t *)(c->blocks + BLOCKS_MOST) + b->sequences;
    struct copy all[MANY];

    for (uint32_t k = 0; k < b->n_sequences; k += width) {
        const uint32_t n = b->n_sequences - k < width ? b->n_sequences - k : width;

        for (uint32_t i = 0; i < n; i++) {
            const uint32_t mask = (1U << K_SEQUENCE_BITS) - 1;
            const uint32_t literals = (uint32_t)list[k + i] & mask;
            const uint32_t bytes =
                ((uint32_t)(list[k + i] >> K_SEQUENCE_BITS) & mask) + K_MATCH_LEAST;
            const uint32_t x = (uint32_t)(list[k + i] >> 2 * K_SEQUENCE_BITS);
            /* offsets of the block before are taken as far ones */
            const uint32_t back = x & K_OFFSET_BEFORE ? at + literals : x;

            at += literals;
            all[i] = (struct copy){at, back < bytes ? at : at - back + bytes, 0};
            at += bytes;
        }
        *groups += 1;
        *rounds += count_rounds(all, n);
    }
}

static void count_block(const struct chunk *c, const struct k_zstd_block *b, uint32_t at,
                        struct shape *s)
{
    struct k_zstd_sections p;

    s->blocks += 1;
    if (b->kind != K_BLOCK_COMPRESSED ||
        !k_zstd_read_sections(c->encoded + b->src, b->bytes, &p)) {
        s->plain += 1;
        return;
    }
    s->treeless += p.type == K_LITERALS_TREELESS;
    if (p.type >= K_LITERALS_TREE) {
        s->streams += p.streams;
        s->literals += p.n_literals;
    }
    for (uint32_t k = 0; p.n_sequences > 0 && k < K_TABLES; k++) {
        s->tables += 1;
        s->repeats += k_zstd_mode(p.modes, k) == K_TABLE_REPEAT;
    }
    s->sequences += p.n_sequences;
    add_rounds(c, b, at, FEW, &s->few, &s->few_rounds);
    add_rounds(c, b, at, MANY, &s->many, &s->many_rounds);
}

static void count_chunk(struct chunk *c, int level, struct shape *s)
{
    uint32_t at = 0;

    c->n_encoded =
        ZSTD_compress(c->encoded, ZSTD_compressBound(c->n), c->plain, c->n, level);
    if (ZSTD_isError(c->n_encoded))
        exit(1);
    decode(c);
    s->chunks += 1;
    s->decoded += (double)c->n;
    s->encoded += (double)c->n_encoded;
    if (c->status != K_OK) {
        s->declined += 1;
        return;
    }
    for (uint32_t k = 0; k < BLOCKS_MOST && c->blocks[k].kind != K_BLOCK_NONE; k++) {
        count_block(c, &c->blocks[k], at, s);
        at += c->blocks[k].size;
    }
}

static double ratio(double a, double b)
{
    return b > 0 ? a / b : 0;
}

static void count_level(const uint8_t *bytes, size_t n, size_t item, size_t each,
                        int level)
{
    struct chunk c = {.plain = room(each),
                      .encoded = room(ZSTD_compressBound(each)),
                      .out = room(each),
                      .blocks = room(BLOCKS_MOST * sizeof *c.blocks + 3 * each)};
    struct shape s = {0};

    for (size_t at = 0; at < n; at += c.n) {
        c.n = n - at < each ? n - at : each;
        shuffle(c.plain, bytes + at, c.n, item);
        count_chunk(&c, level, &s);
    }
    printf(
        "| %d | %.2f | %.1f | %.0f %% | %.0f %% | %.0f %% | %.0f | %.0f | %.0f | %.1f | "
        "%.1f | %.0f |\n",
        level, ratio(s.decoded, s.encoded), ratio(s.blocks, s.chunks),
        100 * ratio(s.plain, s.blocks), 100 * ratio(s.treeless, s.blocks),
        100 * ratio(s.repeats, s.tables), ratio(s.literals, s.streams),
        ratio(s.sequences, s.blocks - s.plain), ratio(s.decoded, s.sequences),
        ratio(s.few_rounds, s.few), ratio(s.many_rounds, s.many), s.declined);
    free(c.plain);
    free(c.encoded);
    free(c.out);
    free(c.blocks);
}

int main(int argc, char **argv)
{
    static const int levels[] = {1, 3, 9};
    const size_t item = argc > 3 ? strtoul(argv[2], NULL, 10) : 0,
                 each = argc > 3 ? strtoul(argv[3], NULL, 10) : 0;
    uint8_t *bytes;
    size_t n;

    if (item == 0 || each == 0 || each > K_ZSTD_MOST) {
        (void)fputs("zstd_shape <file> <item bytes> <chunk bytes> [level...]\n", stderr);
        return 2;
    }
    bytes = read_file(argv[1], &n);
    puts("| level | ratio | blocks a chunk | raw, RLE | treeless | repeated tables | "
         "literals a stream | sequences a block | bytes a sequence | rounds of 32 | of "
         "256 "
         "| declined |\n|---|---|---|---|---|---|---|---|---|---|---|---|");
    for (int i = 4; i < argc; i++)
        count_level(bytes, n, item, each, atoi(argv[i]));
    for (size_t i = 0; argc == 4 && i < sizeof levels / sizeof *levels; i++)
        count_level(bytes, n, item, each, levels[i]);
    free(bytes);
    return 0;
}
