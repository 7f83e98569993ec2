/*
 * fuzz/fuzz_kernels.c - the kernels of plugins/kernels as host C, over chunks of any
 * bytes: decoders of streams, chunks of Blosc 1, frames of zstd, checksums, packed bits.
 * Blocks have exactly the size of their content, so the address sanitizer sees each wild
 * access. What the CPU's codecs decode, the kernels decode to the same bytes, and nothing
 * else; of zstd, they may decode less.
 * The first byte of the input picks the kernel, the next two are the decoded length.
 * Decoders run by one item (the twin) or by a team, which is what GPUs have.
 */
#include "fuzz.h"

#include <sanitizer/asan_interface.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "codecs/codecs_int.h"
#include "kernels/runner.h"

enum {
    FUZZ_HEAD = 3,
    FUZZ_KERNELS = 8,
    FUZZ_BLOSC = 5, /* less: how a stream is decoded */
    FUZZ_SUMS = 6,
    FUZZ_ZSTD = 8, /* only this number */
    FUZZ_TEAM = 9, /* zstd by a team, and the numbers after it streams by teams */
    FUZZ_TEAM_END = FUZZ_TEAM + 1 + FUZZ_BLOSC,
    FUZZ_BLOCKS = 6, /* places in the list of a chunk */
    FUZZ_GAP = 64,   /* bytes between parts of scratch memory */
    FUZZ_EACH = 5    /* work items of a sum, or of packed bits */
};

static const struct target fuzz_twin = {.name = "host", .lanes = 1},
                           fuzz_team = {.name = "team", .lanes = LANES, .team = 1};

struct fuzz_chunk {
    const struct target *by;
    uint8_t *src, *dst, *want; /* dst and want: m bytes */
    size_t n, m;
};

#define BYTES(p)              BUFFER(p, 0)
#define RUN(name, items, ...) LAUNCH(&fuzz_twin, name, items, __VA_ARGS__)

static void fuzz_check(bool ok)
{
    if (!ok)
        __builtin_trap();
}

/* Exactly n bytes; n may be 0. */
static void *fuzz_block(size_t n)
{
    void *p = calloc(n ? n : 1, 1);

    fuzz_check(p != NULL);
    return n ? p : (char *)p + 1;
}

static void fuzz_free(void *p, size_t n)
{
    free(n ? p : (char *)p - 1);
}

/* ---- streams and chunks ---------------------------------------------------------- */

static bool fuzz_cpu_decodes(const zarr_codec_impl_vtable *codec,
                             const struct fuzz_chunk *c)
{
    zarr_codec_exec exec = {.struct_size = sizeof exec};
    zarr_codec_job job = {
        .src = {.device_type = ZARR_DEVICE_CPU, .handle = c->src, .bytes = c->n},
        .dst = {.device_type = ZARR_DEVICE_CPU, .handle = c->want, .bytes = c->m}};

    return codec->decode(NULL, &job, 1, &exec, NULL) == ZARR_OK && job.dst_used == c->m;
}

/* Whether a stream of snappy has a literal of 4 GiB, which libsnappy takes as none. */
static bool fuzz_wraps(const struct fuzz_chunk *c)
{
    return memmem(c->src, c->n, "\xFC\xFF\xFF\xFF\xFF", 5) != NULL;
}

static void fuzz_compare(const struct fuzz_chunk *c, uint32_t says,
                         const zarr_codec_impl_vtable *codec)
{
    fuzz_check(says < K_STATUSES);
    /* liblz4 takes a match of no distance, which the format forbids; Blosc's other codecs
     * are for the CPU. */
    if (!codec || says == K_BAD_OFFSET || says == K_UNSUPPORTED ||
        (says == K_BAD_INPUT && fuzz_wraps(c)))
        return;
    fuzz_check(fuzz_cpu_decodes(codec, c) == (says == K_OK));
    if (says == K_OK)
        fuzz_check(memcmp(c->dst, c->want, c->m) == 0);
}

static const zarr_codec_impl_vtable *fuzz_codec(uint32_t how)
{
#if defined(ZR_HAVE_SNAPPY)
    if (how == K_SNAPPY)
        return &zr_cpu_snappy;
#endif
    return how == K_LZ4_HEADED ? &zr_cpu_lz4 : NULL;
}

static void fuzz_stream(const struct fuzz_chunk *c, uint32_t how)
{
    struct k_stream stream = {.src_bytes = c->n, .dst_bytes = c->m, .how = how};
    uint32_t status = K_OK;

    LAUNCH_STREAMS(c->by, "k_decode", 1, BYTES(c->dst), BYTES(c->src), BYTES(&stream),
                   BYTES(&status), NUMBER(1));
    fuzz_compare(c, status, fuzz_codec(how));
}

/* The headers of all forms. A stream that is decoded has a header that fits. */
static void fuzz_headers(const struct fuzz_chunk *c)
{
    for (uint32_t how = 0; how <= K_GZIP; how++) {
        struct k_stream stream = {.src_bytes = c->n, .dst_bytes = c->m, .how = how};
        uint32_t status = K_OK;

        RUN("k_check_streams", 1, BYTES(c->src), BYTES(&stream), BYTES(&status),
            NUMBER(1));
        fuzz_check(status == K_OK || status == K_UNSUPPORTED);
        if (status != K_OK && fuzz_codec(how))
            fuzz_check(!fuzz_cpu_decodes(fuzz_codec(how), c));
    }
}

/* The five launches of a plug-in, for one chunk. */
static void fuzz_blosc(const struct fuzz_chunk *c)
{
    struct k_chunk chunk = {.src_bytes = c->n, .dst_bytes = c->m};
    struct k_frame frame = {0};
    struct k_stream *streams = NULL;
    struct k_planes *planes = NULL;
    uint8_t *scratch = fuzz_block(c->m);
    uint64_t totals[2] = {0};
    uint32_t status = K_OK;

    RUN("k_blosc_open", 1, BYTES(c->src), BYTES(&chunk), BYTES(&frame), BYTES(&status),
        NUMBER(1));
    RUN("k_blosc_number", 1, BYTES(&frame), BYTES(totals), NUMBER(1));
    fuzz_check(totals[0] <= c->n && totals[1] <= totals[0] * K_SPLITS);
    streams = fuzz_block((size_t)totals[1] * sizeof *streams);
    planes = fuzz_block((size_t)totals[0] * sizeof *planes);
    RUN("k_blosc_list", totals[0], BYTES(c->src), BYTES(&chunk), BYTES(&frame),
        BYTES(streams), BYTES(planes), NUMBER(1), NUMBER(totals[0]));
    RUN("k_decode", totals[1] * K_LANES, BYTES(scratch), BYTES(c->src), BYTES(streams),
        BYTES(&status), NUMBER(totals[1]));
    RUN("k_unshuffle", totals[0], BYTES(c->dst), BYTES(scratch), BYTES(planes),
        NUMBER(totals[0]), NUMBER(1));
    fuzz_compare(c, status, &zr_cpu_blosc);
    fuzz_free(streams, (size_t)totals[1]);
    fuzz_free(planes, (size_t)totals[0]);
    fuzz_free(scratch, c->m);
}

/* The launches for a chunk of zstd, with gaps in the scratch memory that no kernel may
 * touch. Returns the status. */
static uint32_t fuzz_zstd_decode(const struct fuzz_chunk *c, const struct target *by)
{
    const size_t blocks = FUZZ_BLOCKS * sizeof(struct k_zstd_block),
                 sequences = c->m / K_ZSTD_BYTES * 8, first = blocks + FUZZ_GAP,
                 second = first + sequences + FUZZ_GAP;
    struct k_zstd_chunk chunk = {.src_bytes = c->n,
                                 .dst_bytes = c->m,
                                 .literals = second,
                                 .sequences = first,
                                 .most_blocks = FUZZ_BLOCKS};
    uint8_t *scratch = malloc(second + c->m);
    const struct k_zstd_block *list = (const void *)scratch;
    uint32_t status = K_OK, n;

    fuzz_check(scratch != NULL);
    memset(scratch, 0xC3, second + c->m);
    ASAN_POISON_MEMORY_REGION(scratch + blocks, FUZZ_GAP);
    ASAN_POISON_MEMORY_REGION(scratch + first + sequences, FUZZ_GAP);
    RUN("k_zstd_open", 1, BYTES(scratch), BYTES(c->src), BYTES(&chunk), BYTES(&status),
        NUMBER(0), NUMBER(1));
    n = ZR_MAX(1, ZR_MIN(list->n_blocks, FUZZ_BLOCKS)); /* other groups do nothing */
    LAUNCH_STREAMS(by, "k_zstd_literals", n, BYTES(scratch), BYTES(c->src), BYTES(&chunk),
                   BYTES(&status), NUMBER(0), NUMBER(FUZZ_BLOCKS));
    LAUNCH_STREAMS(by, "k_zstd_sequences", n, BYTES(scratch), BYTES(c->src),
                   BYTES(&chunk), BYTES(&status), NUMBER(0), NUMBER(FUZZ_BLOCKS));
    LAUNCH_STREAMS(by, "k_zstd_execute", 1, BYTES(c->dst), BYTES(c->src), BYTES(scratch),
                   BYTES(&chunk), BYTES(&status), NUMBER(0), NUMBER(1));
    ASAN_UNPOISON_MEMORY_REGION(scratch, second);
    free(scratch);
    fuzz_check(status < K_STATUSES);
    if (status == K_OK) {
        fuzz_check(ZSTD_decompress(c->want, c->m, c->src, c->n) == c->m);
        fuzz_check(memcmp(c->dst, c->want, c->m) == 0);
    }
    return status;
}

/* The CPU decodes more than the kernels do. A team decodes what the twin decodes. */
static void fuzz_zstd(const struct fuzz_chunk *c)
{
    const bool good = fuzz_zstd_decode(c, &fuzz_twin) == K_OK;

    if (c->by == &fuzz_twin)
        return;
    memset(c->dst, 0, c->m);
    fuzz_check((fuzz_zstd_decode(c, c->by) == K_OK) == good);
}

/* ---- sums and bits -------------------------------------------------------------- */

static uint32_t fuzz_sum(const struct fuzz_chunk *c, struct k_sum *sum, uint64_t each,
                         uint8_t *out)
{
    uint64_t slices[FUZZ_EACH] = {0};
    uint32_t status = K_OK;

    RUN("k_sum_slices", each, BYTES(c->src), BYTES(sum), BYTES(slices), NUMBER(1),
        NUMBER(each));
    RUN("k_sum_end", 1, BYTES(out), BYTES(c->src), BYTES(sum), BYTES(slices),
        BYTES(&status), NUMBER(1), NUMBER(each));
    return status;
}

/* A sum does not depend on how many slices it has, and what was stored is found again. */
static void fuzz_sums(const struct fuzz_chunk *c)
{
    struct k_sum sum = {.bytes = c->n,
                        .kind = (uint32_t)(c->m % 5),
                        .store = 1,
                        .start = (uint32_t)c->m * 2654435761U,
                        .prefix_bytes = (uint32_t)(c->m % (K_PREFIX + 1))};
    uint8_t one[4] = {0}, many[4] = {0};

    memcpy(sum.prefix, c->src, ZR_MIN(c->n, (size_t)sum.prefix_bytes));
    fuzz_check(fuzz_sum(c, &sum, 1, one) == K_OK);
    fuzz_check(fuzz_sum(c, &sum, FUZZ_EACH, many) == K_OK);
    fuzz_check(memcmp(one, many, sizeof one) == 0);
    sum.store = 0;
    fuzz_check(fuzz_sum(c, &sum, FUZZ_EACH, many) == K_OK);
    many[c->m % 4] ^= 1;
    fuzz_check(fuzz_sum(c, &sum, FUZZ_EACH, many) == K_BAD_SUM);
}

/* Unpacks all components that the bytes hold, and packs them again. */
static void fuzz_bits(const struct fuzz_chunk *c)
{
    const uint32_t bytes = 1 + (uint32_t)c->m % 8;
    const uint32_t first = (uint32_t)(c->m >> 3) % (8 * bytes);
    const uint32_t kept = 1 + (uint32_t)(c->m >> 9) % (8 * bytes - first);
    const uint64_t bits = c->n ? 8 * (uint64_t)(c->n - 1) : 0; /* the last counts */
    struct k_pack pack = {.n = bits / kept,
                          .count_at = c->n ? c->n - 1 : 0,
                          .bytes = bytes,
                          .first = first,
                          .kept = kept,
                          .is_signed = (uint32_t)(c->m >> 2) & 1,
                          .counted = c->n > 0};
    const size_t used = (size_t)((pack.n * kept + 7) / 8);
    uint8_t *plain = fuzz_block((size_t)pack.n * bytes), *again = fuzz_block(c->n);
    uint32_t status = K_OK;

    pack.high_first = kept == 1 && (c->m >> 8) % 2;
    RUN("k_unpack_bits", FUZZ_EACH, BYTES(plain), BYTES(c->src), BYTES(&pack),
        BYTES(&status), NUMBER(1), NUMBER(FUZZ_EACH));
    fuzz_check(status == K_OK || status == K_BAD_PADDING);
    RUN("k_pack_bits", FUZZ_EACH, BYTES(again), BYTES(plain), BYTES(&pack), NUMBER(1),
        NUMBER(FUZZ_EACH));
    if (c->n && status == K_OK)
        fuzz_check(again[c->n - 1] == c->src[c->n - 1]);
    for (size_t i = 0; i + 1 < used; i++) /* the last may have bits that are not kept */
        fuzz_check(again[i] == c->src[i]);
    fuzz_free(plain, (size_t)pack.n * bytes);
    fuzz_free(again, c->n);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_chunk c = {0};
    uint32_t kernel = 0;

    if (size < FUZZ_HEAD)
        return 0;
    kernel = data[0];
    c.by = kernel >= FUZZ_TEAM && kernel < FUZZ_TEAM_END ? &fuzz_team : &fuzz_twin;
    if (kernel == FUZZ_TEAM)
        kernel = FUZZ_ZSTD;
    else if (c.by == &fuzz_team)
        kernel -= FUZZ_TEAM + 1;
    else if (kernel != FUZZ_ZSTD)
        kernel %= FUZZ_KERNELS;
    c.n = size - FUZZ_HEAD;
    c.m = data[1] + 256U * data[2];
    c.src = fuzz_block(c.n);
    c.dst = fuzz_block(c.m);
    c.want = fuzz_block(c.m);
    memcpy(c.src, data + FUZZ_HEAD, c.n);
    if (kernel < FUZZ_BLOSC) {
        fuzz_stream(&c, kernel);
        fuzz_headers(&c);
    } else if (kernel == FUZZ_BLOSC) {
        fuzz_blosc(&c);
    } else if (kernel == FUZZ_SUMS) {
        fuzz_sums(&c);
    } else if (kernel == FUZZ_ZSTD) {
        fuzz_zstd(&c);
    } else {
        fuzz_bits(&c);
    }
    fuzz_free(c.src, c.n);
    fuzz_free(c.dst, c.m);
    fuzz_free(c.want, c.m);
    return 0;
}
