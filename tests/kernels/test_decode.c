/*
 * tests/kernels/test_decode.c - streams of LZ4 and snappy, and chunks of blosc, as their
 * libraries write them, decode to what was written. Damaged ones decode to the same bytes
 * as the CPU codecs give, or fail as those do; each is in blocks of exactly its size, for
 * the address sanitizer. Targets with a compiler of their own give what the twins give.
 */
#include "runner.h"

#include <blosc.h>
#include <lz4.h>
#include <lz4hc.h>
#if defined(ZR_HAVE_SNAPPY)
#    include <snappy-c.h>
#endif

#include "codecs/codecs_int.h"

enum {
    STREAMS = 40,
    BYTES_MOST = 24000,
    EACH = 33
};

/* ---- encoded bytes -------------------- */

struct encoded {
    uint8_t *plain, *bytes;
    size_t n_plain, n;
    uint32_t how; /* K_LZ4, K_LZ4_HEADED, K_SNAPPY, K_STORED */
};

static void encoded_free(struct encoded *e)
{
    free(e->plain);
    free(e->bytes);
}

static size_t encode_lz4(const struct encoded *e, uint8_t *to, size_t room, int high)
{
    const int n = high ? LZ4_compress_HC((const char *)e->plain, (char *)to,
                                         (int)e->n_plain, (int)room, 9)
                       : LZ4_compress_default((const char *)e->plain, (char *)to,
                                              (int)e->n_plain, (int)room);

    assert_true(n > 0);
    return (size_t)n;
}

static size_t encode_snappy(const struct encoded *e, uint8_t *to, size_t room)
{
#if defined(ZR_HAVE_SNAPPY)
    assert_int_equal(
        snappy_compress((const char *)e->plain, e->n_plain, (char *)to, &room),
        SNAPPY_OK);
    return room;
#else
    (void)e;
    (void)to;
    (void)room;
    return 0;
#endif
}

static void encode(struct encoded *e, uint32_t how, uint64_t *seed)
{
    const size_t item = 1 + below(seed, 8), most = below(seed, 3) ? 300 : BYTES_MOST;
    uint8_t *to = block(2 * BYTES_MOST);

#if !defined(ZR_HAVE_SNAPPY)
    how = how == K_SNAPPY ? K_LZ4 : how;
#endif
    e->how = how;
    e->n_plain = below(seed, most);
    e->plain = block(e->n_plain);
    if (below(seed, 8) == 0)
        fill_random(e->plain, e->n_plain, seed);
    else
        fill_numbers(e->plain, e->n_plain, item, seed);
    if (how == K_LZ4) {
        e->n = encode_lz4(e, to, 2 * BYTES_MOST, below(seed, 2) == 0);
    } else if (how == K_LZ4_HEADED) {
        e->n = 4 + encode_lz4(e, to + 4, 2 * BYTES_MOST - 4, 0);
        zr_store_le32(to, (uint32_t)e->n_plain);
    } else if (how == K_SNAPPY) {
        e->n = encode_snappy(e, to, 2 * BYTES_MOST);
    } else {
        e->n = e->n_plain;
        memcpy(to, e->plain, e->n);
    }
    e->bytes = block(e->n);
    memcpy(e->bytes, to, e->n);
    free(to);
}

/* Damages some bytes, or cuts or lengthens all. */
static void damage(uint8_t **bytes, size_t *n, uint64_t *seed)
{
    const uint64_t kind = below(seed, 6);
    uint8_t *out;

    if (kind == 0 && *n)
        *n = below(seed, *n);
    else if (kind == 1)
        *n += 1 + below(seed, 20);
    out = block(*n);
    for (size_t i = 0; i < *n; i++)
        out[i] = (uint8_t)(kind == 1 ? below(seed, 256) : 0);
    memcpy(out, *bytes, kind == 1 ? *n - 1 - (*n - 1 > 20 ? 20 : *n - 1) : *n);
    for (uint64_t k = 0; kind > 1 && *n && k < 1 + below(seed, 3); k++) {
        const size_t head = below(seed, 2) && *n > 24 ? 24 : *n;
        const size_t at = below(seed, head);

        out[at] = (uint8_t)(kind == 2   ? out[at] ^ 1U << below(seed, 8)
                            : kind == 3 ? 255
                            : kind == 4 ? 0
                                        : below(seed, 256));
    }
    free(*bytes);
    *bytes = out;
}

/* ---- streams -------------------- */

static void streams_decode(void **state)
{
    static const uint32_t hows[] = {K_LZ4, K_LZ4_HEADED, K_SNAPPY, K_STORED};
    uint64_t seed = 23;

    for (int turn = 0; turn < draws_on(*state, 6); turn++) {
        struct encoded all[STREAMS];
        struct k_stream streams[STREAMS];
        uint32_t status[STREAMS] = {0};
        size_t n = 0, m = 0, i;
        uint8_t *src, *dst;

        for (i = 0; i < STREAMS; i++) {
            encode(&all[i], hows[i % 4], &seed);
            streams[i] = (struct k_stream){.src = n,
                                           .src_bytes = all[i].n,
                                           .dst = m,
                                           .dst_bytes = all[i].n_plain,
                                           .how = all[i].how,
                                           .number = STREAMS - 1 - (uint32_t)i};
            n += all[i].n;
            m += all[i].n_plain;
        }
        src = block(n);
        dst = block(m);
        memset(dst, 0, m);
        for (i = 0; i < STREAMS; i++)
            memcpy(src + streams[i].src, all[i].bytes, all[i].n);
        LAUNCH_STREAMS(*state, "k_decode", STREAMS, BUFFER(dst, m), BUFFER(src, n),
                       BUFFER(streams, sizeof streams), BUFFER(status, sizeof status),
                       NUMBER(STREAMS));
        for (i = 0; i < STREAMS; i++) {
            assert_int_equal(status[STREAMS - 1 - i], K_OK);
            assert_memory_equal(dst + streams[i].dst, all[i].plain, all[i].n_plain);
            encoded_free(&all[i]);
        }
        free(src);
        free(dst);
    }
}

/* Whether the CPU codec decodes the bytes to exactly m bytes. */
static int cpu_decodes(const zarr_codec_impl_vtable *codec, uint8_t *bytes, size_t n,
                       uint8_t *dst, size_t m)
{
    zarr_codec_exec exec = {.struct_size = sizeof exec};
    zarr_codec_job job = {
        .src = {.device_type = ZARR_DEVICE_CPU, .handle = bytes, .bytes = n},
        .dst = {.device_type = ZARR_DEVICE_CPU, .handle = dst, .bytes = m}};

    return codec->decode(NULL, &job, 1, &exec, NULL) == ZARR_OK && job.dst_used == m;
}

static const zarr_codec_impl_vtable *cpu_codec(uint32_t how)
{
#if defined(ZR_HAVE_SNAPPY)
    if (how == K_SNAPPY)
        return &zr_cpu_snappy;
#endif
    return how == K_LZ4_HEADED ? &zr_cpu_lz4 : NULL;
}

static uint32_t decode_one(const struct target *t, uint32_t how, const uint8_t *src,
                           size_t n, uint8_t *dst, size_t m)
{
    const struct k_stream s = {.src_bytes = n, .dst_bytes = m, .how = how};
    uint32_t status = K_OK;

    LAUNCH_STREAMS(t, "k_decode", 1, BUFFER(dst, m), BUFFER(src, n), BUFFER(&s, sizeof s),
                   BUFFER(&status, sizeof status), NUMBER(1));
    assert_true(status < K_STATUSES);
    return status;
}

/* The twin says of each stream what the CPU codec says. */
static void damaged_streams(const struct target *host, uint32_t how, int n)
{
    uint64_t seed = 31 + how;
    int good = 0, bad = 0;

    for (int turn = 0; turn < n; turn++) {
        struct encoded e;
        uint8_t *dst, *want;
        uint32_t says;
        int wanted;

        encode(&e, how, &seed);
        damage(&e.bytes, &e.n, &seed);
        if (below(&seed, 8) == 0)
            e.n_plain = e.n_plain ? e.n_plain - 1 : 1;
        dst = block(e.n_plain);
        want = block(e.n_plain);
        wanted = cpu_decodes(cpu_codec(how), e.bytes, e.n, want, e.n_plain);
        says = decode_one(host, how, e.bytes, e.n, dst, e.n_plain);
        if (says == K_BAD_OFFSET && how == K_LZ4_HEADED)
            wanted =
                0; /* liblz4 takes a match of no distance, which the format forbids */
        if ((says == K_OK) != wanted)
            fail_msg("draw %d, how %u, %zu bytes for %zu: status %u, CPU codec %d", turn,
                     how, e.n, e.n_plain, says, wanted);
        if (wanted)
            assert_memory_equal(dst, want, e.n_plain);
        good += wanted;
        bad += !wanted;
        free(dst);
        free(want);
        encoded_free(&e);
    }
    assert_true(good >= n / 100 && bad >= n / 4); /* the draw has both */
}

/* Many damaged streams in one launch: the target says what the twin says. */
static void damaged_batch(const struct target *t, uint32_t how, size_t count)
{
    const struct target host = {.name = "host", .lanes = 1};
    struct k_stream *streams = calloc(count, sizeof *streams);
    uint32_t *status = calloc(count, sizeof *status), *want = calloc(count, sizeof *want);
    uint8_t *src = block(count * 700), *dst = block(count * 400), *same;
    size_t n = 0, m = 0;
    uint64_t seed = 41 + how;

    assert_true(streams && status && want);
    for (size_t i = 0; i < count; i++) {
        struct encoded e;

        do {
            encode(&e, how, &seed);
            if (e.n_plain >= 300)
                encoded_free(&e);
        } while (e.n_plain >= 300);
        damage(&e.bytes, &e.n, &seed);
        streams[i] = (struct k_stream){n, e.n, m, e.n_plain, e.how, (uint32_t)i};
        memcpy(src + n, e.bytes, e.n);
        n += e.n;
        m += e.n_plain + 50; /* a gap that stays as it is */
        encoded_free(&e);
    }
    memset(dst, 0x5A, m);
    same = block(m);
    memcpy(same, dst, m);
    LAUNCH_STREAMS(t, "k_decode", count, BUFFER(dst, m), BUFFER(src, n),
                   BUFFER(streams, count * sizeof *streams),
                   BUFFER(status, count * sizeof *status), NUMBER(count));
    LAUNCH_STREAMS(&host, "k_decode", count, BUFFER(same, m), BUFFER(src, n),
                   BUFFER(streams, count * sizeof *streams),
                   BUFFER(want, count * sizeof *want), NUMBER(count));
    for (size_t i = 0; i < count; i++) {
        const struct k_stream *s = &streams[i];

        assert_int_equal(status[i], want[i]);
        for (size_t k = 0; k < 50; k++)
            assert_int_equal(dst[s->dst + s->dst_bytes + k], 0x5A);
    }
    assert_memory_equal(dst, same, m);
    free(streams);
    free(status);
    free(want);
    free(src);
    free(dst);
    free(same);
}

/* A match ends four bytes before the output's end: liblz4 refuses it, too. */
static void match_near_the_end(void **state)
{
    uint8_t bytes[34] = {39 + 4, 0, 0, 0, 0xFF, 20 - 15}, dst[43], want[43];
    size_t n = 6 + 20;

    bytes[n] = 1;     /* back one byte; the high byte is 0 */
    bytes[n + 2] = 0; /* the rest of the length 15 + 4 */
    bytes[n + 3] = 4 << 4;
    assert_int_equal(decode_one(*state, K_LZ4_HEADED, bytes, sizeof bytes, dst, 43),
                     K_BAD_INPUT);
    assert_int_equal(cpu_decodes(cpu_codec(K_LZ4_HEADED), bytes, sizeof bytes, want, 43),
                     0);
}

static void damaged_streams_fail(void **state)
{
    const struct target *t = *state;

    if (on_device(t)) {
        const int n = t->cuda ? 10000 : 4000;

        damaged_batch(t, K_LZ4, (size_t)draws_on(t, n));
        damaged_batch(t, K_LZ4_HEADED, (size_t)draws_on(t, n / 2));
        damaged_batch(t, K_SNAPPY, (size_t)draws_on(t, n));
        return;
    }
    damaged_streams(t, K_LZ4_HEADED, draws(4000));
#if defined(ZR_HAVE_SNAPPY)
    damaged_streams(t, K_SNAPPY, draws(4000));
#endif
}

/* ---- headers -------------------- */

/* A frame of zstd with stored and repeated blocks, of which only headers are read. */
static void frame_make(struct encoded *e, uint64_t *seed)
{
    const uint32_t code = (uint32_t)below(seed, 4), single = code == 0 || below(seed, 2);
    const uint64_t blocks = below(seed, 8);
    uint8_t *p = block(100 * 10);
    size_t n = 5;

    e->how = K_ZSTD;
    e->n_plain = 256 + below(seed, 3000);
    if (code == 0)
        e->n_plain = below(seed, 256);
    zr_store_le32(p, 0xFD2FB528);
    p[4] = (uint8_t)(code << 6 | single << 5 | (uint32_t)below(seed, 2) << 2);
    if (!single)
        p[n++] = (uint8_t)below(seed, 18 << 3);
    for (uint32_t k = 0; k < 1U << code; k++)
        p[n++] = (uint8_t)((e->n_plain - (code == 1 ? 256 : 0)) >> 8 * k);
    for (uint64_t k = 0; k <= blocks; k++) {
        const uint32_t kind = (uint32_t)below(seed, 3), bytes = (uint32_t)below(seed, 90);

        zr_store_le32(p + n, bytes << 3 | kind << 1 | (k == blocks));
        fill_random(p + n + 3, kind == 1 ? 1 : bytes, seed);
        n += 3 + (kind == 1 ? 1 : bytes);
    }
    if (p[4] & 4)
        n += 4;
    e->plain = NULL;
    e->n = n;
    e->bytes = block(n);
    memcpy(e->bytes, p, n);
    free(p);
}

static uint32_t check_one(const struct target *t, const struct encoded *e)
{
    const struct k_stream s = {.src_bytes = e->n, .dst_bytes = e->n_plain, .how = e->how};
    uint32_t status = K_OK;

    LAUNCH(t, "k_check_streams", 1, BUFFER(e->bytes, e->n), BUFFER(&s, sizeof s),
           BUFFER(&status, sizeof status), NUMBER(1));
    return status;
}

/* What the kernel says is what the host says of the same bytes. */
static void headers_are_checked(void **state)
{
    static const uint32_t hows[] = {K_ZLIB, K_GZIP, K_SNAPPY, K_LZ4_HEADED, K_STORED};
    const int n = draws(400);
    uint64_t seed = 61;
    int good = 0;

    for (int turn = 0; turn < n; turn++) {
        struct encoded e;
        uint32_t says;

        frame_make(&e, &seed);
        assert_int_equal(check_one(*state, &e), K_OK);
        e.n_plain++;
        assert_int_equal(check_one(*state, &e), K_UNSUPPORTED);
        e.n_plain--;
        damage(&e.bytes, &e.n, &seed);
        for (size_t k = 0; k <= COUNT(hows); k++) {
            e.how = k == 0 ? K_ZSTD : hows[k - 1];
            says = check_one(*state, &e);
            assert_int_equal(says, k_stream_fits(e.bytes, e.n, e.n_plain, e.how)
                                       ? K_OK
                                       : K_UNSUPPORTED);
            good += k == 0 && says == K_OK;
        }
        encoded_free(&e);
    }
    assert_true(n < 100 || (good > 0 && good < n)); /* the draw has both */
}

/* ---- blosc -------------------- */

struct blosc_kind {
    const char *inside;
    int level, shuffle;
    size_t item_bytes, bytes, block;
};

static struct blosc_kind blosc_draw(uint64_t *seed)
{
    static const char *const insides[] = {"lz4", "lz4hc", "blosclz", "snappy"};
    const size_t most = below(seed, 4) ? 3000 : 4 * BYTES_MOST;
    struct blosc_kind k = {.inside = insides[below(seed, COUNT(insides))],
                           .level = (int)below(seed, 10),
                           .shuffle = (int)below(seed, 3),
                           .item_bytes = 1 + below(seed, 20),
                           .bytes = below(seed, most)};

    k.block = below(seed, 3) ? below(seed, 9000) : 0;
    if (k.bytes > 40000 && k.block && k.block < 1024)
        k.block = 1024; /* fewer blocks */
    return k;
}

/* Encodes random numbers. Returns 0 if this libblosc lacks what is inside. */
static int blosc_make(struct encoded *e, const struct blosc_kind *k, uint64_t *seed)
{
    uint8_t *to = block(k->bytes + BLOSC_MAX_OVERHEAD);
    int n;

    *e = (struct encoded){.plain = block(k->bytes), .n_plain = k->bytes};
    if (below(seed, 8) == 0)
        fill_random(e->plain, k->bytes, seed);
    else
        fill_numbers(e->plain, k->bytes, k->item_bytes, seed);
    n = blosc_compress_ctx(k->level, k->shuffle, k->item_bytes, k->bytes, e->plain, to,
                           k->bytes + BLOSC_MAX_OVERHEAD, k->inside, k->block, 1);
    e->n = n > 0 ? (size_t)n : 0;
    e->bytes = block(e->n);
    memcpy(e->bytes, to, e->n);
    free(to);
    if (n <= 0)
        encoded_free(e);
    return n > 0;
}

/* All five launches for n chunks. `scratch` is as long as `dst`. */
static void blosc_decode(const struct target *t, const struct k_chunk *chunks, size_t n,
                         const struct argument *src, const struct argument *dst,
                         uint32_t *status)
{
    struct k_frame *frames = calloc(n, sizeof *frames);
    uint64_t totals[2] = {0};
    uint8_t *scratch = calloc(1, (size_t)dst->n + 1);
    const struct argument list = BUFFER(chunks, n * sizeof *chunks),
                          heads = BUFFER(frames, n * sizeof *frames),
                          says = BUFFER(status, n * sizeof *status),
                          room = BUFFER(scratch, dst->n);
    struct k_stream *streams;
    struct k_planes *planes;

    assert_true(frames && scratch);
    LAUNCH(t, "k_blosc_open", n, *src, list, heads, says, NUMBER(n));
    LAUNCH(t, "k_blosc_number", 1, heads, BUFFER(totals, sizeof totals), NUMBER(n));
    streams = block(totals[1] * sizeof *streams);
    planes = block(totals[0] * sizeof *planes);
    memset(streams, 0xFF, totals[1] * sizeof *streams);
    LAUNCH(t, "k_blosc_list", totals[0], *src, list, heads,
           BUFFER(streams, totals[1] * sizeof *streams),
           BUFFER(planes, totals[0] * sizeof *planes), NUMBER(n), NUMBER(totals[0]));
    LAUNCH_STREAMS(t, "k_decode", totals[1], room, *src,
                   BUFFER(streams, totals[1] * sizeof *streams), says, NUMBER(totals[1]));
    LAUNCH(t, "k_unshuffle", totals[0] * EACH, *dst, room,
           BUFFER(planes, totals[0] * sizeof *planes), NUMBER(totals[0]), NUMBER(EACH));
    free(frames);
    free(scratch);
    free(streams);
    free(planes);
}

static uint32_t blosc_decode_one(const struct target *t, const struct encoded *e,
                                 uint8_t *dst)
{
    const struct k_chunk c = {.src_bytes = e->n, .dst_bytes = e->n_plain};
    const struct argument src = BUFFER(e->bytes, e->n), to = BUFFER(dst, e->n_plain);
    uint32_t status = K_OK;

    blosc_decode(t, &c, 1, &src, &to, &status);
    return status;
}

static void blosc_chunks(void **state)
{
    uint64_t seed = 53;

    for (int turn = 0; turn < draws_on(*state, 8); turn++) {
        struct encoded all[STREAMS];
        struct k_chunk chunks[STREAMS];
        uint32_t status[STREAMS] = {0};
        size_t n = 0, m = 0, count = 0, i;
        struct argument src, dst;

        while (count < STREAMS) {
            const struct blosc_kind k = blosc_draw(&seed);

            if (!blosc_make(&all[count], &k, &seed))
                continue;
            chunks[count] = (struct k_chunk){.src = n,
                                             .src_bytes = all[count].n,
                                             .dst = m,
                                             .dst_bytes = k.bytes,
                                             .scratch = m,
                                             .number = count};
            n += all[count].n;
            m += all[count++].n_plain;
        }
        src = BUFFER(block(n), n);
        dst = BUFFER(block(m), m);
        memset(dst.bytes, 0, m);
        for (i = 0; i < STREAMS; i++)
            memcpy((uint8_t *)src.bytes + chunks[i].src, all[i].bytes, all[i].n);
        blosc_decode(*state, chunks, STREAMS, &src, &dst, status);
        for (i = 0; i < STREAMS; i++) {
            assert_int_equal(status[i], K_OK);
            assert_memory_equal((uint8_t *)dst.bytes + chunks[i].dst, all[i].plain,
                                all[i].n_plain);
            encoded_free(&all[i]);
        }
        free(src.bytes);
        free(dst.bytes);
    }
}

static void other_blosc_is_unsupported(void **state)
{
    static const char *const insides[] = {"zlib", "zstd"};
    uint64_t seed = 61;

    for (size_t i = 0; i < COUNT(insides); i++) {
        const struct blosc_kind k = {
            .inside = insides[i], .level = 5, .item_bytes = 4, .bytes = 5000};
        struct encoded e;
        uint8_t dst[5000];

        if (!blosc_make(&e, &k, &seed))
            continue;
        assert_int_equal(blosc_decode_one(*state, &e, dst), K_UNSUPPORTED);
        e.bytes[2] = 0x23; /* stored, but not so long */
        assert_int_equal(blosc_decode_one(*state, &e, dst), K_BAD_LENGTH);
        e.bytes[0] = 3; /* Blosc 2 */
        assert_int_equal(blosc_decode_one(*state, &e, dst), K_UNSUPPORTED);
        encoded_free(&e);
    }
}

/* Decodes a chunk that may be damaged. The target must say what the CPU codec says, or
 * one with a compiler of its own what the twin says. Returns whether that is success. */
static int blosc_as_the_cpu(const struct target *t, const struct encoded *e)
{
    const struct target host = {.name = "host", .lanes = 1};
    uint8_t *dst = block(e->n_plain), *want = block(e->n_plain);
    const uint32_t says = blosc_decode_one(t, e, dst);
    const int wanted = on_device(t)
                           ? blosc_decode_one(&host, e, want) == K_OK
                           : cpu_decodes(&zr_cpu_blosc, e->bytes, e->n, want, e->n_plain);

    if (says != K_UNSUPPORTED && says != K_BAD_OFFSET && (says == K_OK) != wanted)
        fail_msg("%zu bytes for %zu, flags %02x: status %u, wanted %d", e->n, e->n_plain,
                 e->n > 2 ? e->bytes[2] : 0U, says, wanted);
    if (says == K_OK)
        assert_memory_equal(dst, want, e->n_plain);
    free(dst);
    free(want);
    return wanted;
}

static void damaged_blosc_fails(void **state)
{
    const struct target *t = *state;
    /* a launch for each is slow by OpenCL */
    const int n = draws(t->opencl || t->team ? 60 : t->cuda ? 1000 : 4000);
    uint64_t seed = 67;
    int good = 0, bad = 0;

    for (int turn = 0; turn < n; turn++) {
        const struct blosc_kind k = blosc_draw(&seed);
        struct encoded e;
        int wanted;

        if (!blosc_make(&e, &k, &seed))
            continue;
        damage(&e.bytes, &e.n, &seed);
        if (e.n >= 16 && below(&seed, 4))
            zr_store_le32(e.bytes + 12, (uint32_t)e.n); /* so that more is looked at */
        wanted = blosc_as_the_cpu(t, &e);
        good += wanted;
        bad += !wanted;
        encoded_free(&e);
    }
    assert_true(good >= n / 100 && bad >= n / 4);
}

/* All values of the flags and of the bytes around them. */
static void other_blosc_headers(void **state)
{
    const struct target *t = *state;
    const int few = t->opencl || t->team || t->cuda;
    uint64_t seed = 71;

    for (int turn = 0; turn < (few ? 1 : 3); turn++) {
        const struct blosc_kind k = blosc_draw(&seed);
        struct encoded e;

        if (!blosc_make(&e, &k, &seed))
            continue;
        for (int at = few ? 2 : 0; at < (few ? 3 : 12); at++) {
            const uint8_t was = e.bytes[at];

            for (int bits = 0; bits < 256; bits += few ? 8 : 1) {
                e.bytes[at] = (uint8_t)(was ^ bits);
                (void)blosc_as_the_cpu(t, &e);
            }
            e.bytes[at] = was;
        }
        encoded_free(&e);
    }
}

/* c-blosc has no blocks of more than a third of 2 GiB. */
static void long_blosc_block_fails(void **state)
{
    const uint32_t most = BLOSC_MAX_BLOCKSIZE;
    uint8_t bytes[32] = {2, 1, 0x30, 1};

    for (uint32_t more = 0; more < 2; more++) {
        struct k_chunk c = {.src_bytes = sizeof bytes, .dst_bytes = most + more};
        struct k_frame frame = {0};
        uint32_t status = K_OK;

        zr_store_le32(bytes + 4, most + more);
        zr_store_le32(bytes + 8, most + more);
        zr_store_le32(bytes + 12, sizeof bytes);
        LAUNCH(*state, "k_blosc_open", 1, BUFFER(bytes, sizeof bytes),
               BUFFER(&c, sizeof c), BUFFER(&frame, sizeof frame),
               BUFFER(&status, sizeof status), NUMBER(1));
        assert_int_equal(status, more ? K_BAD_HEADER : K_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_decode),
        cmocka_unit_test(match_near_the_end),
        cmocka_unit_test(damaged_streams_fail),
        cmocka_unit_test(headers_are_checked),
        cmocka_unit_test(blosc_chunks),
        cmocka_unit_test(other_blosc_is_unsupported),
        cmocka_unit_test(damaged_blosc_fails),
        cmocka_unit_test(other_blosc_headers),
        cmocka_unit_test(long_blosc_block_fails),
    };

    return run_on_targets("decode", tests, COUNT(tests));
}
