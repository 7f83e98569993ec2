/*
 * tests/kernels/test_encode.c - what the encoders write, liblz4 and c-blosc decode to
 * what was encoded. Outputs stay within their room, also if that is too small, and all
 * targets give the same bytes.
 */
#include "runner.h"

#include <blosc.h>
#include <lz4.h>

enum {
    STREAMS = 24,
    BYTES_MOST = 70000
};

/* Random bytes, numbers with runs and copies, one byte, or a slow walk in planes. */
static void fill_input(uint8_t *p, size_t n, uint64_t *seed)
{
    const uint64_t kind = below(seed, 5);
    uint32_t x = 1000;

    if (kind == 0) {
        fill_random(p, n, seed);
    } else if (kind == 1) {
        memset(p, 7, n);
    } else if (kind == 2) {
        for (size_t i = 0; i < n; i++) {
            x += (uint32_t)below(seed, 9) - 4;
            p[i] = (uint8_t)(i < n / 2 ? x : x >> 8);
        }
    } else {
        fill_numbers(p, n, 1 + below(seed, 8), seed);
    }
}

static size_t draw_length(uint64_t *seed)
{
    const uint64_t kind = below(seed, 4);

    return below(seed, kind == 0 ? 30 : kind == 1 ? 600 : kind == 2 ? 9000 : BYTES_MOST);
}

static size_t encoded_bound(size_t n)
{
    return n + n / 255 + 16;
}

/* ---- LZ4 -------------------- */

struct batch {
    struct k_stream streams[STREAMS];
    uint32_t sizes[STREAMS];
    uint8_t *src, *dst;
    size_t n, m;
};

static void batch_make(struct batch *b, uint64_t *seed)
{
    *b = (struct batch){0};
    for (uint32_t i = 0; i < STREAMS; i++) {
        const size_t n = draw_length(seed), head = i % 2 ? 4 : 0;

        b->streams[i] = (struct k_stream){.src = b->n,
                                          .src_bytes = n,
                                          .dst = b->m,
                                          .dst_bytes = head + encoded_bound(n),
                                          .how = head ? K_LZ4_HEADED : K_LZ4,
                                          .number = STREAMS - 1 - i};
        b->n += n;
        b->m += b->streams[i].dst_bytes;
    }
    b->src = block(b->n);
    b->dst = block(b->m);
    memset(b->dst, 0xEE, b->m);
    for (int i = 0; i < STREAMS; i++)
        fill_input(b->src + b->streams[i].src, b->streams[i].src_bytes, seed);
}

static void batch_run(const struct target *t, struct batch *b)
{
    LAUNCH_STREAMS(t, "k_encode", STREAMS, BUFFER(b->dst, b->m), BUFFER(b->src, b->n),
                   BUFFER(b->streams, sizeof b->streams),
                   BUFFER(b->sizes, sizeof b->sizes), NUMBER(STREAMS));
}

static void check_stream(const struct batch *b, uint32_t i)
{
    const struct k_stream *s = &b->streams[i];
    const size_t head = s->how == K_LZ4_HEADED ? 4 : 0, n = b->sizes[s->number];
    uint8_t *got = block(s->src_bytes), *exact = block(n - head);

    assert_in_range(n, head + 1, s->dst_bytes);
    memcpy(exact, b->dst + s->dst + head, n - head);
    assert_int_equal(LZ4_decompress_safe((const char *)exact, (char *)got,
                                         (int)(n - head), (int)s->src_bytes),
                     s->src_bytes);
    assert_memory_equal(got, b->src + s->src, s->src_bytes);
    for (size_t k = 0; k < head; k++)
        assert_int_equal(b->dst[s->dst + k], (uint8_t)(s->src_bytes >> 8 * k));
    for (size_t k = n; k < s->dst_bytes; k++)
        assert_int_equal(b->dst[s->dst + k], 0xEE);
    free(got);
    free(exact);
}

static void same_as_twin(const struct batch *b)
{
    const struct target twin = {.name = "host", .lanes = K_LANES};
    struct batch own = *b;

    own.dst = block(b->m);
    memset(own.dst, 0xEE, own.m);
    memset(own.sizes, 0, sizeof own.sizes);
    batch_run(&twin, &own);
    assert_memory_equal(own.sizes, b->sizes, sizeof own.sizes);
    assert_memory_equal(own.dst, b->dst, own.m);
    free(own.dst);
}

static void lz4_round_trip(void **state)
{
    uint64_t seed = 77;

    for (int turn = 0; turn < draws(20); turn++) {
        struct batch b;

        batch_make(&b, &seed);
        batch_run(*state, &b);
        for (uint32_t i = 0; i < STREAMS; i++)
            check_stream(&b, i);
        same_as_twin(&b);
        free(b.src);
        free(b.dst);
    }
}

/* Room for less than the output: nothing behind it is written, and the size is 0. */
static void lz4_little_room(void **state)
{
    uint64_t seed = 78;

    for (int turn = 0; turn < draws(6); turn++) {
        struct batch b, full;

        batch_make(&full, &seed);
        batch_run(*state, &full);
        b = full;
        b.dst = block(b.m);
        for (uint32_t i = 0; i < STREAMS; i++) {
            const uint32_t n = full.sizes[STREAMS - 1 - i];

            b.streams[i].dst_bytes = i % 3 == 0 ? n : below(&seed, n);
        }
        memset(b.dst, 0xEE, b.m);
        memset(b.sizes, 0, sizeof b.sizes);
        batch_run(*state, &b);
        for (uint32_t i = 0; i < STREAMS; i++) {
            const struct k_stream *s = &b.streams[i];
            const uint32_t n = full.sizes[s->number];

            assert_int_equal(b.sizes[s->number], s->dst_bytes < n ? 0 : n);
            for (size_t k = s->dst_bytes; k < full.streams[i].dst_bytes; k++)
                assert_int_equal(b.dst[s->dst + k], 0xEE);
        }
        free(b.src);
        free(b.dst);
        free(full.dst);
    }
}

/* Lengths around the rules for the end of a block, and matches around the longest way
 * back. */
static void lz4_edges(void **state)
{
    uint64_t seed = 79;

    for (size_t i = 0; i < 200; i++) {
        const size_t n = i < 60 ? i : 65535 + i % 7 + (i < 100 ? 4 : 40);
        struct k_stream s = {.src_bytes = n, .dst_bytes = encoded_bound(n), .how = K_LZ4};
        uint8_t *src = block(n), *dst = block(encoded_bound(n)), *got = block(n);
        uint32_t size = 0;

        if (i < 60) {
            memset(src, 3, n);
        } else {
            fill_random(src, n, &seed);
            for (size_t k = 0; k < 40; k++)
                src[n - 1 - k] = src[39 - k];
        }
        LAUNCH_STREAMS(*state, "k_encode", 1, BUFFER(dst, encoded_bound(n)),
                       BUFFER(src, n), BUFFER(&s, sizeof s), BUFFER(&size, sizeof size),
                       NUMBER(1));
        assert_true(size > 0);
        assert_int_equal(
            LZ4_decompress_safe((const char *)dst, (char *)got, (int)size, (int)n), n);
        assert_memory_equal(got, src, n);
        free(src);
        free(dst);
        free(got);
        i += i >= 60 ? 9 : 0;
    }
}

/* The output is at most so much longer than that of liblz4. */
static void lz4_ratio(void **state)
{
    uint64_t seed = 80, ours = 0, theirs = 0;

    for (int turn = 0; turn < draws(10); turn++) {
        struct batch b;

        batch_make(&b, &seed);
        batch_run(*state, &b);
        for (int i = 0; i < STREAMS; i++) {
            const struct k_stream *s = &b.streams[i];
            uint8_t *to = block(encoded_bound(s->src_bytes));

            ours += b.sizes[s->number] - (s->how == K_LZ4_HEADED ? 4 : 0);
            theirs += (uint64_t)LZ4_compress_fast((const char *)b.src + s->src,
                                                  (char *)to, (int)s->src_bytes,
                                                  (int)encoded_bound(s->src_bytes), 1);
            free(to);
        }
        free(b.src);
        free(b.dst);
    }
    assert_in_range(ours, theirs / 2, theirs + theirs / 8);
    print_message("%.3f of liblz4's length\n", (double)ours / (double)theirs);
}

/* ---- LZ4 in pieces -------------------- */

enum {
    PIECES_MOST = 40
};
/* Inputs that are cut into pieces, encoded and joined. */
struct joined {
    struct k_joined blocks[4];
    struct k_piece pieces[4 * PIECES_MOST];
    struct k_run literals[4 * PIECES_MOST + 4], bodies[4 * PIECES_MOST];
    uint32_t sizes[4];
    uint64_t n, n_pieces, n_slots, n_out;
};

static void cut(struct joined *j, const uint64_t *lengths, uint64_t n, uint64_t piece)
{
    uint64_t src = 0;

    *j = (struct joined){.n = n};
    for (uint64_t i = 0; i < n; i++) {
        struct k_joined *b = &j->blocks[i];

        *b = (struct k_joined){.src = src,
                               .bytes = lengths[i],
                               .dst = j->n_out,
                               .dst_bytes = encoded_bound(lengths[i]) + 4,
                               .first_piece = j->n_pieces,
                               .headed = i % 2,
                               .number = (uint32_t)i};
        for (uint64_t at = 0; at < lengths[i]; at += piece, b->n_pieces++) {
            const uint64_t end = lengths[i] - at < piece ? lengths[i] : at + piece;

            j->pieces[j->n_pieces++] = (struct k_piece){.src = src,
                                                        .dst = j->n_slots,
                                                        .first = (uint32_t)at,
                                                        .end = (uint32_t)end};
            j->n_slots += encoded_bound(end - at);
        }
        src += lengths[i];
        j->n_out += b->dst_bytes;
    }
}

static void join(const struct target *t, struct joined *j, const uint8_t *src, uint64_t n,
                 uint8_t *out)
{
    uint8_t *slots = block(j->n_slots);

    LAUNCH_STREAMS(t, "k_encode_pieces", j->n_pieces, BUFFER(slots, j->n_slots),
                   BUFFER(src, n), BUFFER(j->pieces, sizeof j->pieces),
                   NUMBER(j->n_pieces));
    LAUNCH(t, "k_join_blocks", j->n, BUFFER(out, j->n_out), BUFFER(slots, j->n_slots),
           BUFFER(j->blocks, sizeof j->blocks), BUFFER(j->pieces, sizeof j->pieces),
           BUFFER(j->literals, sizeof j->literals), BUFFER(j->bodies, sizeof j->bodies),
           BUFFER(j->sizes, sizeof j->sizes), NUMBER(j->n));
    LAUNCH(t, "k_copy_runs", (j->n_pieces + j->n) * 33, BUFFER(out, j->n_out),
           BUFFER(src, n), BUFFER(j->literals, sizeof j->literals),
           NUMBER(j->n_pieces + j->n), NUMBER(33));
    LAUNCH(t, "k_copy_runs", j->n_pieces * 33, BUFFER(out, j->n_out),
           BUFFER(slots, j->n_slots), BUFFER(j->bodies, sizeof j->bodies),
           NUMBER(j->n_pieces), NUMBER(33));
    free(slots);
}

static void check_joined(const struct joined *j, const uint8_t *src, const uint8_t *out)
{
    for (uint64_t i = 0; i < j->n; i++) {
        const struct k_joined *b = &j->blocks[i];
        const uint64_t head = b->headed ? 4 : 0, n = j->sizes[i] - head;
        uint8_t *exact = block(n), *got = block(b->bytes);

        assert_in_range(j->sizes[i], head + 1, b->dst_bytes);
        memcpy(exact, out + b->dst + head, n);
        assert_int_equal(
            LZ4_decompress_safe((const char *)exact, (char *)got, (int)n, (int)b->bytes),
            b->bytes);
        assert_memory_equal(got, src + b->src, b->bytes);
        for (uint64_t k = 0; k < head; k++)
            assert_int_equal(out[b->dst + k], (uint8_t)(b->bytes >> 8 * k));
        free(exact);
        free(got);
    }
}

static void lz4_pieces(void **state)
{
    const struct target twin = {.name = "host", .lanes = K_LANES};
    uint64_t seed = 82;

    for (int turn = 0; turn < 1 + draws(15); turn++) { /* first: short blocks */
        uint64_t lengths[4], n = 0;
        struct joined j, own;
        uint8_t *src, *out, *same;

        for (int i = 0; i < 4; i++)
            n += lengths[i] = turn == 0 ? (uint64_t)i : draw_length(&seed);
        cut(&j, lengths, 4, turn % 3 == 1 ? 2000 : 7777 + 60000 * (uint64_t)(turn % 2));
        src = block(n);
        out = block(j.n_out);
        same = block(j.n_out);
        memset(out, 0xEE, j.n_out);
        memset(same, 0xEE, j.n_out);
        for (int i = 0; i < 4; i++)
            fill_input(src + j.blocks[i].src, lengths[i], &seed);
        own = j;
        join(*state, &j, src, n, out);
        check_joined(&j, src, out);
        join(&twin, &own, src, n, same);
        assert_memory_equal(out, same, j.n_out);
        for (int i = 0; i < 4; i++) /* one byte too few */
            own.blocks[i].dst_bytes = own.sizes[i] - 1;
        memset(same, 0xEE, j.n_out);
        join(*state, &own, src, n, same);
        for (uint64_t k = 0; k < j.n_out; k++)
            assert_int_equal(same[k], 0xEE);
        assert_int_equal(own.sizes[0] | own.sizes[1] | own.sizes[2] | own.sizes[3], 0);
        free(src);
        free(out);
        free(same);
    }
}

/* ---- blosc -------------------- */

struct chunk_case {
    uint64_t bytes, block;
    uint32_t item, flags; /* of the header */
    int random;
};

/* What the host does: planes and streams of a chunk that is alone. Planes are at the
 * start of the scratch memory, slots behind them. */
static uint64_t list_chunk(const struct chunk_case *x, struct k_planes *planes,
                           struct k_stream *streams, struct k_pack_chunk *c)
{
    const int split = x->item <= K_SPLITS && x->block / x->item >= K_BLOSC_SPLIT_ITEMS;
    uint64_t n = 0, k = 0;

    for (uint64_t at = 0; at < x->bytes; at += x->block, k++) {
        const uint64_t bytes = x->bytes - at < x->block ? x->bytes - at : x->block;
        const uint64_t splits = split && bytes == x->block ? x->item : 1;

        planes[k] = (struct k_planes){
            .src = at,
            .dst = at,
            .bytes = bytes,
            .item_bytes = x->flags & (K_BLOSC_SHUFFLED | K_BLOSC_BITS) ? x->item : 1,
            .bits = x->flags & K_BLOSC_BITS ? 1 : 0};
        for (uint64_t i = 0; i < splits; i++, n++)
            streams[n] = (struct k_stream){.src = at + i * (bytes / splits),
                                           .src_bytes = bytes / splits,
                                           .dst = x->bytes + at + i * (bytes / splits),
                                           .dst_bytes = bytes / splits - 1,
                                           .how = K_LZ4,
                                           .number = (uint32_t)n};
    }
    *c = (struct k_pack_chunk){.bytes = x->bytes,
                               .block_bytes = x->block,
                               .n_streams = n,
                               .n_blocks = k,
                               .item_bytes = x->item,
                               .flags = x->flags | 1U << 5,
                               .n_splits = split ? x->item : 1};
    return k;
}

static void encode_chunk(const struct target *t, const struct chunk_case *x,
                         const uint8_t *src, uint8_t *out, uint32_t *length)
{
    struct k_planes planes[64];
    struct k_stream streams[512];
    struct k_run runs[512] = {{0}}, whole = {0};
    uint32_t sizes[512] = {0};
    struct k_pack_chunk c;
    const uint64_t n = list_chunk(x, planes, streams, &c), room = 2 * x->bytes;
    uint8_t *scratch = block(room);

    LAUNCH(t, "k_shuffle", n * 33, BUFFER(scratch, room), BUFFER(src, x->bytes),
           BUFFER(planes, sizeof planes), NUMBER(n), NUMBER(33));
    LAUNCH_STREAMS(t, "k_encode", c.n_streams, BUFFER(scratch, room),
                   BUFFER(scratch, room), BUFFER(streams, sizeof streams),
                   BUFFER(sizes, sizeof sizes), NUMBER(c.n_streams));
    LAUNCH(t, "k_blosc_pack", 1, BUFFER(out, x->bytes + 16), BUFFER(&c, sizeof c),
           BUFFER(streams, sizeof streams), BUFFER(sizes, sizeof sizes),
           BUFFER(runs, sizeof runs), BUFFER(&whole, sizeof whole), BUFFER(length, 4),
           NUMBER(1));
    LAUNCH(t, "k_copy_runs", c.n_streams * 33, BUFFER(out, x->bytes + 16),
           BUFFER(scratch, room), BUFFER(runs, sizeof runs), NUMBER(c.n_streams),
           NUMBER(33));
    LAUNCH(t, "k_copy_runs", 33, BUFFER(out, x->bytes + 16), BUFFER(src, x->bytes),
           BUFFER(&whole, sizeof whole), NUMBER(1), NUMBER(33));
    free(scratch);
}

static void check_chunk(const struct target *t, const struct chunk_case *x,
                        uint64_t *seed)
{
    const struct target twin = {.name = "host", .lanes = K_LANES};
    uint8_t *src = block(x->bytes), *out = block(x->bytes + 16), *own, *got;
    uint32_t length = 0, again = 0;

    if (x->random)
        fill_random(src, x->bytes, seed);
    else
        fill_numbers(src, x->bytes, x->item, seed);
    encode_chunk(t, x, src, out, &length);
    assert_in_range(length, 17, x->bytes + 16);
    if (x->random || x->bytes > 5000) /* short chunks may be stored */
        assert_int_equal(out[2] & K_BLOSC_STORED, x->random ? K_BLOSC_STORED : 0);

    own = block(length);
    got = block(x->bytes);
    memcpy(own, out, length);
    assert_int_equal(blosc_decompress_ctx(own, got, x->bytes, 1), x->bytes);
    assert_memory_equal(got, src, x->bytes);
    free(own);
    free(got);

    own = block(x->bytes + 16);
    encode_chunk(&twin, x, src, own, &again);
    assert_int_equal(again, length);
    assert_memory_equal(own, out, length);
    free(own);
    free(src);
    free(out);
}

static void blosc_round_trip(void **state)
{
    static const struct chunk_case cases[] = {{40000, 8192, 4, K_BLOSC_SHUFFLED, 0},
                                              {40000, 8192, 4, K_BLOSC_BITS, 0},
                                              {40000, 40000, 2, 0, 0},
                                              {12345, 2048, 8, K_BLOSC_SHUFFLED, 0},
                                              {12345, 2048, 8, K_BLOSC_BITS, 0},
                                              {700, 700, 8, K_BLOSC_SHUFFLED, 0},
                                              {5000, 1700, 17, K_BLOSC_SHUFFLED, 0},
                                              {64, 64, 1, K_BLOSC_SHUFFLED, 0},
                                              {40000, 8192, 4, K_BLOSC_SHUFFLED, 1},
                                              {333, 333, 3, 0, 1}};
    uint64_t seed = 81;

    for (size_t i = 0; i < COUNT(cases); i++)
        check_chunk(*state, &cases[i], &seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lz4_round_trip), cmocka_unit_test(lz4_little_room),
        cmocka_unit_test(lz4_edges),      cmocka_unit_test(lz4_ratio),
        cmocka_unit_test(lz4_pieces),     cmocka_unit_test(blosc_round_trip)};

    return run_on_targets("encode", tests, COUNT(tests));
}
