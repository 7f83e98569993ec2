/*
 * tests/kernels/test_zstd.c - frames of libzstd decode to what was encoded. Damaged ones
 * are compared in one direction: what the twin decodes, libzstd decodes to the same
 * bytes. libzstd accepts more than the format has, and the CPU decodes what kernels
 * refuse. All blocks have exactly their size, for the address sanitizer. Targets with a
 * compiler of their own accept what the twin accepts.
 */
#include "runner.h"
#include "zstd_known.h"

#include <dirent.h>
#include <stdio.h>
#include <zstd.h>

#include "base/base.h"

enum {
    BYTES_MOST = 2 << 20,
    LEVELS = 19,
    BATCH = 40
};

/* ---- chunks -------------------- */

struct encoded {
    uint8_t *plain, *bytes;
    size_t n_plain, n;
};

static void encoded_free(struct encoded *e)
{
    free(e->plain);
    free(e->bytes);
}

/* Places in the list of blocks, as plugins/port gives them to a chunk. */
static uint32_t most_blocks(size_t n_plain)
{
    return 4 + (uint32_t)(n_plain / 16384);
}

/* Describes chunks that lie one behind the other, with 50 bytes behind each output. The
 * blocks of all are in front of the scratch memory. */
static struct k_zstd_chunk *describe(const struct encoded *e, size_t count, size_t *n,
                                     size_t *m, size_t *room, size_t *n_blocks)
{
    struct k_zstd_chunk *chunks = calloc(count, sizeof *chunks);

    assert_non_null(chunks);
    *n = *m = *n_blocks = 0;
    for (size_t i = 0; i < count; i++)
        *n_blocks += most_blocks(e[i].n_plain);
    *room = *n_blocks * sizeof(struct k_zstd_block);
    *n_blocks = 0;
    for (size_t i = 0; i < count; i++) {
        const size_t sequences = e[i].n_plain / K_ZSTD_BYTES * 8;

        chunks[i] = (struct k_zstd_chunk){.src = *n,
                                          .src_bytes = e[i].n,
                                          .dst = *m,
                                          .dst_bytes = e[i].n_plain,
                                          .literals = *room + sequences,
                                          .sequences = *room,
                                          .first_block = (uint32_t)*n_blocks,
                                          .most_blocks = most_blocks(e[i].n_plain),
                                          .number = (uint32_t)(count - 1 - i)};
        *n += e[i].n;
        *m += e[i].n_plain + 50;
        *room += (sequences + e[i].n_plain + 7) / 8 * 8;
        *n_blocks += chunks[i].most_blocks;
    }
    return chunks;
}

static void decode_all(const struct target *t, const struct encoded *e, size_t count,
                       uint8_t *dst, size_t m, uint32_t *status)
{
    size_t n, bytes, room, n_blocks;
    struct k_zstd_chunk *chunks = describe(e, count, &n, &bytes, &room, &n_blocks);
    const struct argument list = BUFFER(chunks, count * sizeof *chunks),
                          src = BUFFER(block(n), n), scratch = BUFFER(block(room), room),
                          says = BUFFER(status, count * sizeof *status);

    assert_int_equal(bytes, m);
    for (size_t i = 0; i < count; i++)
        memcpy((uint8_t *)src.bytes + chunks[i].src, e[i].bytes, e[i].n);
    memset(scratch.bytes, 0xC3, room);
    LAUNCH(t, "k_zstd_open", count, scratch, src, list, says, NUMBER(0), NUMBER(count));
    LAUNCH_STREAMS(t, "k_zstd_literals", n_blocks, scratch, src, list, says, NUMBER(0),
                   NUMBER(n_blocks));
    LAUNCH_STREAMS(t, "k_zstd_sequences", n_blocks, scratch, src, list, says, NUMBER(0),
                   NUMBER(n_blocks));
    LAUNCH_STREAMS(t, "k_zstd_execute", count, BUFFER(dst, m), src, scratch, list, says,
                   NUMBER(0), NUMBER(count));
    free(chunks);
    free(src.bytes);
    free(scratch.bytes);
}

/* Decodes chunks, and gives their outputs, each of exactly its size. */
static uint8_t **decode(const struct target *t, const struct encoded *e, size_t count,
                        uint32_t *status)
{
    uint8_t **out = calloc(count, sizeof *out), *dst;
    size_t m = 0, at = 0;

    assert_non_null(out);
    for (size_t i = 0; i < count; i++)
        m += e[i].n_plain + 50;
    dst = block(m);
    memset(dst, 0x5A, m);
    memset(status, 0, count * sizeof *status);
    decode_all(t, e, count, dst, m, status);
    for (size_t i = 0; i < count; i++) {
        out[i] = block(e[i].n_plain);
        memcpy(out[i], dst + at, e[i].n_plain);
        at += e[i].n_plain;
        for (size_t k = 0; k < 50; k++)
            assert_int_equal(dst[at + k], 0x5A);
        at += 50;
    }
    for (size_t i = 0; i < count / 2; i++) { /* in the order of the chunks */
        const uint32_t other = status[i];

        status[i] = status[count - 1 - i];
        status[count - 1 - i] = other;
    }
    free(dst);
    return out;
}

static void outputs_free(uint8_t **out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(out[i]);
    free(out);
}

/* All chunks decode to what was encoded. */
static void all_decode(const struct target *t, const struct encoded *e, size_t count)
{
    uint32_t *status = calloc(count, sizeof *status);
    uint8_t **out;

    assert_non_null(status);
    out = decode(t, e, count, status);
    for (size_t i = 0; i < count; i++) {
        if (status[i] != K_OK)
            fail_msg("chunk %zu of %zu bytes, %zu encoded: status %u", i, e[i].n_plain,
                     e[i].n, status[i]);
        assert_memory_equal(out[i], e[i].plain, e[i].n_plain);
    }
    outputs_free(out, count);
    free(status);
}

/* ---- encoded bytes -------------------- */

enum {
    KINDS = 7
};

static void fill(uint8_t *p, size_t n, uint64_t kind, uint64_t *seed)
{
    if (kind == 0)
        memset(p, (int)below(seed, 256), n);
    else if (kind == 1)
        fill_random(p, n, seed);
    else if (kind < 4)
        fill_numbers(p, n, 1 + below(seed, 8), seed);
    for (size_t i = 0; kind >= 4 && i < n; i++)
        p[i] = kind == 4 ? (uint8_t) "the cat sat on a mat. "[(i * i / 7) % 22]
                         : (uint8_t)(kind == 5 ? below(seed, 4) * below(seed, 40)
                                     : i % 2   ? i / 512
                                               : below(seed, 200));
}

/* Settings of a frame: the low bits of `how` say whether it has its size and a sum,
 * whether it is flushed often, and whether its blocks have 1 KiB at most. */
enum {
    SIZED = 1,
    SUMMED = 2,
    FLUSHED = 4,
    NARROW = 8,
    HOWS = 16
};

static ZSTD_CCtx *encoder; /* of all frames; main() frees it */

static void set(ZSTD_cParameter p, int value)
{
    assert_false(ZSTD_isError(ZSTD_CCtx_setParameter(encoder, p, value)));
}

/* Appends a frame with n bytes. */
static void append(struct encoded *e, size_t n, uint64_t kind, int level, unsigned how,
                   uint64_t *seed)
{
    ZSTD_outBuffer out = {.size = 2 * ZSTD_compressBound(n) + n / 10 + 4096};
    uint8_t *plain = realloc(e->plain, e->n_plain + n + 1);
    ZSTD_inBuffer in = {0};

    encoder = encoder ? encoder : ZSTD_createCCtx();
    assert_true(encoder && plain);
    assert_false(
        ZSTD_isError(ZSTD_CCtx_reset(encoder, ZSTD_reset_session_and_parameters)));
    e->plain = plain;
    fill(plain + e->n_plain, n, kind, seed);
    out.dst = block(out.size);
    in.src = plain + e->n_plain;
    set(ZSTD_c_compressionLevel, level);
    set(ZSTD_c_checksumFlag, how & SUMMED ? 1 : 0);
    if (how & NARROW)
        set(ZSTD_c_windowLog, 10);
    if (how & SIZED)
        assert_false(ZSTD_isError(ZSTD_CCtx_setPledgedSrcSize(encoder, n)));
    while (how & FLUSHED && n > 2000 && in.pos < n) { /* else more blocks than fit */
        in.size = in.pos + 1 + below(seed, n / 3 + 10);
        in.size = in.size < n ? in.size : n;
        assert_int_equal(ZSTD_compressStream2(encoder, &out, &in, ZSTD_e_flush), 0);
    }
    in.size = n;
    assert_int_equal(ZSTD_compressStream2(encoder, &out, &in, ZSTD_e_end), 0);
    e->bytes = realloc(e->bytes, e->n + out.pos + 1);
    assert_non_null(e->bytes);
    memcpy(e->bytes + e->n, out.dst, out.pos);
    e->n += out.pos;
    e->n_plain += n;
    free(out.dst);
}

static void append_skipped(struct encoded *e, size_t n)
{
    e->bytes = realloc(e->bytes, e->n + n + 8);
    assert_non_null(e->bytes);
    zr_store_le32(e->bytes + e->n, 0x184D2A50U + (uint32_t)n % 16);
    zr_store_le32(e->bytes + e->n + 4, (uint32_t)n);
    memset(e->bytes + e->n + 8, 0x28, n);
    e->n += 8 + n;
}

static size_t draw_size(uint64_t *seed, size_t most)
{
    static const size_t edges[] = {0,     1,      2,      5,      63,    64,    255,
                                   256,   1023,   1024,   65535,  65536, 65791, 65792,
                                   98303, 131071, 131072, 131073, 262144};
    const size_t n =
        below(seed, 3) ? below(seed, most) : edges[below(seed, COUNT(edges))];

    return n < most ? n : most;
}

/* ---- tests -------------------- */

static size_t size_most(const struct target *t)
{
    if (getenv("ZARR_TEST_FEW"))
        return 2000;
    return t->team ? 20000 : t->opencl ? 200000 : BYTES_MOST;
}

static void all_levels_decode(void **state)
{
    const struct target *t = *state;
    uint64_t seed = 5;

    for (int level = 1; level <= LEVELS; level += 1 + (on_device(t) ? 2 : 0)) {
        struct encoded e[KINDS] = {{0}};

        for (uint64_t kind = 0; kind < KINDS; kind++) {
            const size_t n = level < 13 ? draw_size(&seed, size_most(t))
                                        : draw_size(&seed, size_most(t) / 8);

            append(&e[kind], n, kind, level, (unsigned)below(&seed, 4), &seed);
        }
        all_decode(t, e, KINDS);
        for (size_t i = 0; i < KINDS; i++)
            encoded_free(&e[i]);
    }
}

static void several_frames_decode(void **state)
{
    const struct target *t = *state;
    uint64_t seed = 7;

    for (int turn = 0; turn < draws_on(t, 30); turn++) {
        struct encoded e[BATCH / 4] = {{0}};

        for (size_t i = 0; i < COUNT(e); i++)
            for (uint64_t k = 0, frames = 1 + below(&seed, 3); k < frames; k++) {
                if (below(&seed, 4) == 0)
                    append_skipped(&e[i], below(&seed, 40));
                append(&e[i], draw_size(&seed, size_most(t) / 8), below(&seed, KINDS),
                       1 + (int)below(&seed, 9), (unsigned)below(&seed, HOWS), &seed);
            }
        all_decode(t, e, COUNT(e));
        for (size_t i = 0; i < COUNT(e); i++)
            encoded_free(&e[i]);
    }
}

/* Appends a block that is not compressed. */
static void append_block(struct encoded *e, uint32_t kind, uint32_t n, int last)
{
    const uint32_t head = n << 3 | (kind - 1) << 1 | (last ? 1U : 0U);
    const size_t stored = kind == K_BLOCK_RLE ? 1 : n;

    e->bytes = realloc(e->bytes, e->n + 3 + stored);
    e->plain = realloc(e->plain, e->n_plain + n + 1);
    assert_true(e->bytes && e->plain);
    for (size_t k = 0; k < 3; k++)
        e->bytes[e->n + k] = (uint8_t)(head >> 8 * k);
    memset(e->bytes + e->n + 3, (int)(e->n % 251), stored);
    memset(e->plain + e->n_plain, (int)(e->n % 251), n);
    e->n += 3 + stored;
    e->n_plain += n;
}

/* A frame of up to `most` bytes in small blocks, with many that have no content. */
static void append_small_blocks(struct encoded *e, size_t most, uint32_t least)
{
    static const uint8_t head[] = {0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x00};

    e->bytes = realloc(e->bytes, e->n + sizeof head);
    assert_non_null(e->bytes);
    memcpy(e->bytes + e->n, head, sizeof head);
    e->n += sizeof head;
    for (uint32_t k = 0; e->n_plain + least + 20 < most; k++) {
        append_block(e, k % 2 ? K_BLOCK_RAW : K_BLOCK_RLE, 0, 0);
        append_block(e, k % 3 ? K_BLOCK_RAW : K_BLOCK_RLE, least + k % 20, 0);
    }
    append_block(e, K_BLOCK_RAW, 0, 1);
}

/* Blocks that have no place in the list are where sequences could be: eleven of these
 * are 44 bytes. Empty blocks need no place. */
static void small_blocks_decode(void **state)
{
    const struct target *t = *state;
    const size_t most = t->team ? 3000 : 40000;
    struct encoded e[3] = {{0}};
    uint32_t says = K_OK;

    append_small_blocks(&e[0], most, 60);
    append_small_blocks(&e[1], most / 2, 44);
    append_small_blocks(&e[1], most, 300);
    all_decode(t, e, 2);
    append_small_blocks(&e[2], most, 2);
    outputs_free(decode(t, &e[2], 1, &says), 1);
    assert_int_equal(says, K_UNSUPPORTED);
    for (size_t i = 0; i < COUNT(e); i++)
        encoded_free(&e[i]);
}

/* Streams of one chunk of blosc share a status, which other groups write while a group
 * reads: damage of one stream must not change what is done with the other. */
static void damage_of_others_is_not_read(void **state)
{
    const struct target *t = *state;
    struct encoded e = {0};
    uint32_t says = K_BAD_INPUT;
    uint8_t *dst;

    append_small_blocks(&e, 2000, 60);
    dst = block(e.n_plain + 50);
    memset(dst, 0x5A, e.n_plain + 50);
    decode_all(t, &e, 1, dst, e.n_plain + 50, &says);
    assert_int_equal(says, K_BAD_INPUT);
    assert_memory_equal(dst, e.plain, e.n_plain);
    free(dst);
    encoded_free(&e);
}

static void known_frame(const struct target *t, const struct known *k)
{
    struct encoded e = {.n = strlen(k->hex) / 2, .n_plain = k->m};
    uint32_t says = K_OK;
    uint8_t **out;

    e.bytes = block(e.n);
    for (size_t i = 0; i < e.n; i++) {
        const char two[3] = {k->hex[2 * i], k->hex[2 * i + 1], 0};

        e.bytes[i] = (uint8_t)strtoul(two, NULL, 16);
    }
    out = decode(t, &e, 1, &says);
    if (says != k->status)
        fail_msg("%s: status %u, expected %u", k->hex, says, k->status);
    for (size_t i = 0; says == K_OK && i < k->m; i++)
        assert_int_equal(out[0][i], k->value);
    outputs_free(out, 1);
    encoded_free(&e);
}

static void known_frames(void **state)
{
    const struct target *t = *state;

    for (size_t i = 0; i < COUNT(known); i++)
        known_frame(t, &known[i]);
}

static uint8_t *read_file(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    long end;
    uint8_t *bytes;

    if (!f)
        return NULL;
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    end = ftell(f);
    assert_true(end >= 0);
    rewind(f);
    *n = (size_t)end;
    bytes = block(*n);
    assert_int_equal(fread(bytes, 1, *n, f), *n);
    assert_int_equal(fclose(f), 0);
    return bytes;
}

/* The files z000000.zst, ... of the folder KERNELS_FRAMES decode to z000000, ... So
 * zstd's program decodecorpus names what it writes (scripts/zstd-frames). */
static void frames_of_a_folder(void **state)
{
    const struct target *t = *state;
    const char *folder = getenv("KERNELS_FRAMES");
    size_t declined = 0, n = 0;

    if (!folder) {
        puts("KERNELS_FRAMES names no folder of frames");
        skip();
    }
    for (;; n++) {
        struct encoded e = {0};
        char path[1000];
        uint32_t says = K_OK;
        uint8_t **out;

        (void)snprintf(path, sizeof path, "%s/z%06zu.zst", folder, n);
        e.bytes = read_file(path, &e.n);
        path[strlen(path) - 4] = 0;
        e.plain = e.bytes ? read_file(path, &e.n_plain) : NULL;
        if (!e.plain)
            break;
        if (!t->team || e.n_plain < 300000) { /* fibers are slow */
            out = decode(t, &e, 1, &says);
            declined += says == K_UNSUPPORTED;
            if (says != K_OK && says != K_UNSUPPORTED)
                fail_msg("%s: status %u", path, says);
            if (says == K_OK)
                assert_memory_equal(out[0], e.plain, e.n_plain);
            outputs_free(out, 1);
        }
        encoded_free(&e);
    }
    printf("%zu frames, %zu declined\n", n, declined);
    assert_true(n > 0 && declined <= n / 10);
}

/* ---- golden folders -------------------- */

/* Decodes a file of zstd's golden folders, and says what became of it. */
typedef uint32_t golden_fn(const struct target *t, const char *path, struct encoded *e);

/* For each file of KERNELS_FRAMES/golden-<name>: how many gave K_OK, and all. */
static size_t each_golden(const struct target *t, const char *name, golden_fn *decodes,
                          size_t *n)
{
    char folder[800], path[1100];
    struct dirent *at;
    size_t good = 0;
    DIR *d;

    (void)snprintf(folder, sizeof folder, "%s/golden-%s", getenv("KERNELS_FRAMES"), name);
    *n = 0;
    d = opendir(folder);
    if (!d)
        return 0;
    while ((at = readdir(d))) {
        struct encoded e = {0};
        uint32_t says;

        if (*at->d_name == '.')
            continue;
        (void)snprintf(path, sizeof path, "%s/%s", folder, at->d_name);
        says = decodes(t, path, &e);
        printf("%s/%s: status %u\n", name, at->d_name, says);
        good += says == K_OK;
        ++*n;
        encoded_free(&e);
    }
    (void)closedir(d);
    return good;
}

static uint32_t golden_status(const struct target *t, const struct encoded *e)
{
    uint32_t says = K_OK;
    uint8_t **out;

    if (t->team && e->n_plain >= 300000) /* fibers are slow */
        return K_UNSUPPORTED;
    out = decode(t, e, 1, &says);
    if (says == K_OK)
        assert_memory_equal(out[0], e->plain, e->n_plain);
    outputs_free(out, 1);
    return says;
}

/* Of a frame that libzstd decodes, what it decodes to. */
static uint32_t golden_frame(const struct target *t, const char *path, struct encoded *e)
{
    size_t n;

    e->bytes = read_file(path, &e->n);
    e->plain = block(BYTES_MOST);
    n = ZSTD_decompress(e->plain, BYTES_MOST, e->bytes, e->n);
    e->n_plain = n;
    return ZSTD_isError(n) ? (uint32_t)K_UNSUPPORTED : golden_status(t, e);
}

/* No length makes a damaged frame a good one. */
static uint32_t golden_damage(const struct target *t, const char *path, struct encoded *e)
{
    uint32_t says = K_BAD_INPUT;

    e->bytes = read_file(path, &e->n);
    e->plain = block(64);
    (void)ZSTD_decompress(e->plain, 64, e->bytes, e->n);
    for (e->n_plain = 0; e->n_plain < 64 && says != K_OK; e->n_plain++)
        says = golden_status(t, e);
    return says;
}

static uint32_t golden_plain(const struct target *t, const char *path, struct encoded *e)
{
    static const int levels[] = {-3, 1, 3, 9, 19};
    uint32_t says = K_OK;

    e->plain = read_file(path, &e->n_plain);
    e->bytes = block(ZSTD_compressBound(e->n_plain));
    for (size_t i = 0; i < COUNT(levels) && says == K_OK; i++) {
        e->n = ZSTD_compress(e->bytes, ZSTD_compressBound(e->n_plain), e->plain,
                             e->n_plain, levels[i]);
        says = golden_status(t, e);
    }
    return says;
}

/* A frame that needs this dictionary. */
static uint32_t golden_dictionary(const struct target *t, const char *path,
                                  struct encoded *e)
{
    ZSTD_CCtx *cctx = ZSTD_createCCtx();
    size_t n = 0;
    uint8_t *dictionary = read_file(path, &n);
    uint32_t says;

    assert_non_null(dictionary);
    e->plain = dictionary;
    e->n_plain = n;
    e->bytes = block(ZSTD_compressBound(n));
    e->n = ZSTD_compress_usingDict(cctx, e->bytes, ZSTD_compressBound(n), dictionary, n,
                                   dictionary, n, 3);
    (void)ZSTD_freeCCtx(cctx);
    assert_false(ZSTD_isError(e->n));
    says = golden_status(t, e);
    assert_int_equal(says, K_UNSUPPORTED);
    return says;
}

/* Beside the frames of decodecorpus. A good frame is decoded or declined: zeroSeq_2B has
 * a count of sequences in two bytes that is 0, which libzstd 1.5.4 refuses, too. Of what
 * its doc/decompressor_errata.md names, block-128k, empty-block and rle-first-block are
 * decoded. Damage is refused, also what libzstd up to 1.5.6 decodes: off0,
 * truncated_huff_state and zeroSeq_extraneous. */
static void frames_of_golden_folders(void **state)
{
    const struct target *t = *state;
    size_t n, good;

    if (!getenv("KERNELS_FRAMES")) {
        puts("KERNELS_FRAMES names no folder of frames");
        skip();
    }
    assert_true(each_golden(t, "decompression", golden_frame, &n) >= 1);
    assert_int_equal(each_golden(t, "decompression-errors", golden_damage, &n), 0);
    good = each_golden(t, "compression", golden_plain, &n);
    assert_true(n > 0 && good == n);
    (void)each_golden(t, "dictionaries", golden_dictionary, &n);
    assert_true(n > 0);
}

/* ---- damage -------------------- */

static uint8_t damaged_byte(uint8_t was, uint64_t kind, uint64_t *seed)
{
    return (uint8_t)(kind == 2   ? was ^ 1U << below(seed, 8)
                     : kind == 3 ? 255
                     : kind == 4 ? 0
                     : kind == 5 ? was + 1U
                                 : below(seed, 256));
}

/* Damages some bytes, or cuts or lengthens all. */
static void damage(struct encoded *e, uint64_t *seed)
{
    const uint64_t kind = below(seed, 8);
    const size_t n = e->n;
    uint8_t *bytes;

    if (kind == 0)
        e->n = below(seed, n);
    else if (kind == 1)
        e->n += 1 + below(seed, 20);
    bytes = block(e->n);
    memset(bytes, 0, e->n);
    memcpy(bytes, e->bytes, e->n < n ? e->n : n);
    free(e->bytes);
    e->bytes = bytes;
    for (uint64_t k = 0; kind > 1 && k < 1 + below(seed, 3); k++) {
        const size_t head = below(seed, 2) && n > 60 ? 60 : n, at = below(seed, head);

        bytes[at] = damaged_byte(bytes[at], kind, seed);
    }
    if (below(seed, 10) == 0)
        e->n_plain += below(seed, 2) || e->n_plain == 0 ? 1 : (size_t)-1;
}

/* A damaged chunk of up to `most` bytes. */
static void draw_damaged(struct encoded *e, size_t most, uint64_t *seed)
{
    *e = (struct encoded){0};
    append(e, draw_size(seed, most), below(seed, KINDS), 1 + (int)below(seed, 12),
           (unsigned)below(seed, HOWS) & (below(seed, 4) ? ~(unsigned)SUMMED : HOWS - 1U),
           seed);
    damage(e, seed);
}

/* What the twin decodes, libzstd decodes to the same bytes. Blocks that its versions up
 * to 1.5.2 refuse (doc/decompressor_errata.md of zstd) are not among these chunks. */
static void damaged_chunks_as_libzstd(void **state)
{
    const struct target *t = *state;
    uint64_t seed = 43;
    int good = 0, bad = 0;

    for (int turn = 0; turn < draws(on_device(t) ? 0 : 10000); turn++) {
        struct encoded e;
        uint32_t says = K_OK;
        uint8_t **out, *want;

        draw_damaged(&e, turn % 10 ? 2000 : 40000, &seed);
        want = block(e.n_plain);
        out = decode(t, &e, 1, &says);
        assert_true(says < K_STATUSES);
        good += says == K_OK;
        bad += says != K_OK;
        if (says == K_OK) {
            const size_t n = ZSTD_decompress(want, e.n_plain, e.bytes, e.n);

            if (n != e.n_plain)
                fail_msg("draw %d: libzstd says %s", turn,
                         ZSTD_isError(n) ? ZSTD_getErrorName(n) : "another length");
            assert_memory_equal(out[0], want, e.n_plain);
        }
        outputs_free(out, 1);
        free(want);
        encoded_free(&e);
    }
    assert_true(on_device(t) || (good >= draws(10000) / 200 && bad >= draws(10000) / 4));
}

/* Targets with a compiler of their own decode what the twin decodes. */
static void damaged_chunks_as_the_twin(void **state)
{
    const struct target *t = *state, host = {.name = "host", .lanes = 1};
    uint64_t seed = 47;

    for (int turn = 0; turn < (on_device(t) ? draws_on(t, 16) : 0); turn++) {
        struct encoded e[BATCH];
        uint32_t says[BATCH], wanted[BATCH];
        uint8_t **out, **want;

        for (size_t i = 0; i < BATCH; i++)
            draw_damaged(&e[i], 3000, &seed);
        out = decode(t, e, BATCH, says);
        want = decode(&host, e, BATCH, wanted);
        for (size_t i = 0; i < BATCH; i++) {
            if ((says[i] == K_OK) != (wanted[i] == K_OK))
                fail_msg("chunk %zu: status %u, the twin's is %u", i, says[i], wanted[i]);
            if (says[i] == K_OK)
                assert_memory_equal(out[i], want[i], e[i].n_plain);
            encoded_free(&e[i]);
        }
        outputs_free(out, BATCH);
        outputs_free(want, BATCH);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_frames),
        cmocka_unit_test(all_levels_decode),
        cmocka_unit_test(several_frames_decode),
        cmocka_unit_test(small_blocks_decode),
        cmocka_unit_test(damage_of_others_is_not_read),
        cmocka_unit_test(frames_of_a_folder),
        cmocka_unit_test(frames_of_golden_folders),
        cmocka_unit_test(damaged_chunks_as_libzstd),
        cmocka_unit_test(damaged_chunks_as_the_twin),
    };

    const int failed = run_on_targets("zstd", tests, COUNT(tests));

    (void)ZSTD_freeCCtx(encoder);
    return failed;
}
