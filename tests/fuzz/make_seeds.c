/*
 * fuzz/make_seeds.c - writes inputs of the decoder targets and of fuzz_chain to
 * FOLDER/<target>/: `fuzz_make_seeds FOLDER`. Chunks of several patterns
 * through our own encoders, some streams that other writers make, and codec lists
 * of every kind. Deterministic for given libraries; files are named by number.
 * scripts/fuzz calls it, and keeps those that reach something new.
 */
#include <stdio.h>
#include <sys/stat.h>

#include <zlib.h>
#include <zstd.h>

#include "unit/impl/impl_test.h"

static const char *seeds_root;
static int seeds_failed;

static void seed_write(const char *target, int number, uint8_t head, const void *bytes,
                       size_t n)
{
    char path[512];
    FILE *f = NULL;

    (void)snprintf(path, sizeof path, "%s/%s", seeds_root, target);
    (void)mkdir(path, 0777);
    (void)snprintf(path, sizeof path, "%s/%s/seed-%02d", seeds_root, target, number);
    f = fopen(path, "wb");
    if (!f || fwrite(&head, 1, 1, f) != 1 || fwrite(bytes, 1, n, f) != n)
        seeds_failed = 1;
    if (f && fclose(f) != 0)
        seeds_failed = 1;
}

static const struct {
    const char *target, *codec;
    uint8_t variant; /* place in the target's FUZZ_CODECS */
} seeds[] = {
    {"dec_zstd", "{\"id\":\"zstd\",\"level\":1}", 0},
    {"dec_zstd", "{\"id\":\"zstd\",\"level\":19,\"checksum\":true}", 1},
    {"dec_gzip", "{\"id\":\"gzip\",\"level\":0}", 0},
    {"dec_gzip", "{\"id\":\"gzip\",\"level\":9}", 0},
    {"dec_zlib", "{\"id\":\"zlib\",\"level\":0}", 0},
    {"dec_zlib", "{\"id\":\"zlib\",\"level\":9}", 0},
    {"dec_lz4", "{\"id\":\"lz4\"}", 0},
    {"dec_crc32c", "{\"id\":\"crc32c\"}", 0},
    {"dec_crc32c", "{\"id\":\"crc32c\",\"location\":\"start\"}", 1},
    {"dec_base64", "{\"id\":\"base64\"}", 0},
    {"dec_sums", "{\"id\":\"crc32\"}", 0},
    {"dec_sums", "{\"id\":\"adler32\"}", 1},
    {"dec_sums", "{\"id\":\"fletcher32\"}", 2},
    {"dec_sums", "{\"id\":\"jenkins_lookup3\"}", 3},
    {"dec_sums", "{\"id\":\"adler32\",\"location\":\"end\"}", 5},
    {"dec_bz2", "{\"id\":\"bz2\"}", 0},
    {"dec_snappy", "{\"id\":\"snappy\"}", 0},
    {"dec_nvcomp", "{\"id\":\"nvcomp_batch\",\"algorithm\":\"deflate\"}", 0},
    {"dec_nvcomp",
     "{\"id\":\"nvcomp_batch\",\"algorithm\":\"lz4\",\"options\":{\"has_header\":false}}",
     1},
    {"dec_nvcomp", "{\"id\":\"nvcomp_batch\",\"algorithm\":\"lz4\"}", 2},
    {"dec_nvcomp", "{\"id\":\"nvcomp_batch\",\"algorithm\":\"zstd\"}", 3},
    {"dec_lzma", "{\"id\":\"lzma\",\"preset\":0}", 0},
    {"dec_lzma", "{\"id\":\"lzma\",\"format\":2,\"preset\":0}", 1},
    {"dec_lzma", "{\"id\":\"lzma\",\"format\":3,\"filters\":[{\"id\":33}]}", 2},
    {"dec_shuffle", "{\"id\":\"shuffle\",\"elementsize\":1}", 0},
    {"dec_shuffle", "{\"id\":\"shuffle\",\"elementsize\":8}", 3},
    {"dec_delta", "{\"id\":\"delta\",\"dtype\":\"<i4\"}", 0},
    {"dec_delta", "{\"id\":\"delta\",\"dtype\":\">i8\",\"astype\":\"|i1\"}", 1},
    {"dec_delta", "{\"id\":\"delta\",\"dtype\":\"<f4\",\"astype\":\">f8\"}", 2},
    {"dec_blosc", "{\"id\":\"blosc\",\"cname\":\"lz4\"}", 0},
    {"dec_blosc", "{\"id\":\"blosc\",\"cname\":\"lz4hc\",\"blocksize\":512}", 0},
    {"dec_blosc", "{\"id\":\"blosc\",\"cname\":\"zstd\",\"shuffle\":2}", 1},
    {"dec_blosc", "{\"id\":\"blosc\",\"cname\":\"blosclz\",\"shuffle\":0}", 2},
    {"dec_blosc", "{\"id\":\"blosc\",\"cname\":\"zlib\",\"shuffle\":1}", 3},
    {"dec_blosc", "{\"id\":\"blosc\",\"cname\":\"snappy\",\"shuffle\":1}", 0},
    {"dec_blosc", "{\"id\":\"blosc\",\"cname\":\"lz4\",\"clevel\":0}", 0},
};

/* Elements of 4 bytes, so that blosc has something to shuffle. */
static void seeds_encoded(struct impl_env *env)
{
    static const uint64_t n_items[] = {2, 16, 250, 1024};
    int number = 0;

    for (size_t k = 0; k < ZR_COUNT(seeds); k++) {
        number = k && zr_streq(seeds[k].target, seeds[k - 1].target) ? number : 0;
        for (uint8_t i = 0; i < ZR_COUNT(n_items); i++) {
            const uint64_t dims[] = {n_items[i], 0};
            char text[256];
            const struct impl_chain_args args = {
                .format = 2, .codecs = text, .dtype = "int32", .dims = dims};
            struct impl_chain c;
            uint8_t plain[4096], *enc = NULL;
            size_t n = 0;

            (void)snprintf(text, sizeof text,
                           "[{\"id\":\"bytes\",\"endian\":\"little\"},%s]",
                           seeds[k].codec);
            impl_pattern(plain, sizeof plain, i == 2 ? 1 : 3);
            if (impl_chain_open(&c, env, &args, NULL) != ZARR_OK)
                continue;
            if (impl_run(c.encode, env, plain, 4 * (size_t)n_items[i], &enc, &n, NULL) ==
                ZARR_OK)
                seed_write(seeds[k].target, number++, (uint8_t)(seeds[k].variant * 5 + i),
                           enc, n);
            free(enc);
            impl_chain_close(&c);
        }
    }
}

/* The head of an input of `kernels`: which, and the decoded length. */
static void seeds_kernels(struct impl_env *env)
{
    static const struct {
        uint8_t kernel;
        const char *codec;
    } kinds[] = {
        {2, "{\"id\":\"lz4\"}"},
        {3, "{\"id\":\"snappy\"}"},
        {5, "{\"id\":\"blosc\",\"cname\":\"lz4\",\"shuffle\":1,\"blocksize\":512}"},
        {5, "{\"id\":\"blosc\",\"cname\":\"blosclz\",\"shuffle\":0,\"clevel\":9}"},
        {5, "{\"id\":\"blosc\",\"cname\":\"lz4\",\"shuffle\":2,\"clevel\":9}"},
        {5, "{\"id\":\"blosc\",\"cname\":\"lz4\",\"clevel\":0}"},
        {6, "{\"id\":\"crc32c\"}"},
        {7, "{\"id\":\"crc32c\"}"},
        {8, "{\"id\":\"zstd\",\"level\":1}"},
        {8, "{\"id\":\"zstd\",\"level\":19,\"checksum\":true}"},
    };
    static const uint64_t dims[] = {600, 0};

    for (size_t k = 0; k < ZR_COUNT(kinds); k++) {
        char text[256];
        const struct impl_chain_args args = {
            .format = 2, .codecs = text, .dtype = "int32", .dims = dims};
        struct impl_chain c;
        uint8_t plain[2400], *enc = NULL, input[4096] = {2400 % 256, 2400 / 256};
        size_t n = 0;

        (void)snprintf(text, sizeof text, "[{\"id\":\"bytes\",\"endian\":\"little\"},%s]",
                       kinds[k].codec);
        impl_pattern(plain, sizeof plain, 3);
        if (impl_chain_open(&c, env, &args, NULL) != ZARR_OK)
            continue;
        if (impl_run(c.encode, env, plain, sizeof plain, &enc, &n, NULL) == ZARR_OK &&
            n + 2 <= sizeof input) {
            memcpy(input + 2, enc, n);
            seed_write("kernels", (int)k, kinds[k].kernel, input, n + 2);
            if (kinds[k].kernel == 2) { /* the same block without its header */
                memcpy(input + 2, enc + 4, n - 4);
                seed_write("kernels", 90, 1, input, n - 2);
            }
        }
        free(enc);
        impl_chain_close(&c);
    }
}

#define BIG "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}"
#define OPTIONAL(mask, data)                                                             \
    "{\"name\":\"optional\",\"configuration\":{\"mask_codecs\":[" mask                   \
    "],\"data_codecs\":[" data "]}}"

#define N5(behind)                                                                       \
    "{\"name\":\"n5_default\",\"configuration\":{\"codecs\":[{\"name\":\"transpose\","   \
    "\"configuration\":{\"order\":[0]}}," BIG behind "]}}"
#define IF(codecs)                                                                       \
    "{\"name\":\"conditional\",\"configuration\":{\"codecs\":[" codecs "]}}"

/* Codecs that make bytes of arrays: as many items as the targets' sizes say. */
static void seeds_arrays(struct impl_env *env)
{
    static const struct {
        const char *target, *codec, *dtype;
        uint8_t variant;
        bool bits; /* bytes are 0 or 1 */
    } arrays[] = {
        {"dec_packbits",
         "{\"name\":\"packbits\",\"configuration\":{\"first_bit\":2,\"last_bit\":12,"
         "\"padding_encoding\":\"first_byte\"}}",
         "int16", 0, false},
        {"dec_zfp", "{\"name\":\"zfp\",\"configuration\":{\"mode\":\"reversible\"}}",
         "float32", 0, false},
        {"dec_zfp",
         "{\"name\":\"zfp\",\"configuration\":{\"mode\":\"fixed_rate\",\"rate\":6}}",
         "float32", 1, false},
        {"dec_zfp", "{\"name\":\"numcodecs.zfpy\",\"configuration\":{\"mode\":4}}",
         "float32", 4, false},
        {"dec_optional", OPTIONAL("\"packbits\"", OPTIONAL("\"packbits\"", BIG)),
         "optional[optional[int16]]", 0, true},
        {"dec_optional",
         OPTIONAL("\"bytes\",\"zstd\"",
                  OPTIONAL("{\"name\":\"packbits\",\"configuration\":{"
                           "\"padding_encoding\":\"first_byte\"}}",
                           BIG) ",\"crc32c\""),
         "optional[optional[int16]]", 1, true},
        {"dec_n5", N5(""), "uint16", 0, false},
        {"dec_n5", N5(",{\"name\":\"gzip\",\"configuration\":{\"level\":1}}"), "uint16",
         1, false},
        {"dec_n5", N5(",\"crc32c\""), "uint16", 2, false},
        {"dec_conditional", "\"bytes\"," IF("\"zstd\""), "uint8", 0, false},
        {"dec_conditional",
         "\"bytes\"," IF("\"numcodecs.shuffle\",\"numcodecs.lz4\",\"crc32c\""), "uint8",
         1, false},
        {"dec_conditional",
         "\"bytes\"," IF(IF("\"zstd\",\"crc32c\"") "," IF("\"crc32c\"")), "uint8", 2,
         false},
    };
    static const uint64_t n_items[] = {8, 64, 1000};

    for (size_t k = 0; k < ZR_COUNT(arrays); k++)
        for (uint8_t i = 0; i < ZR_COUNT(n_items); i++) {
            const uint64_t dims[] = {n_items[i], 0};
            char text[512];
            const struct impl_chain_args args = {
                .format = 3, .codecs = text, .dtype = arrays[k].dtype, .dims = dims};
            struct impl_chain c;
            uint8_t plain[4000], *enc = NULL;
            size_t n = 0;

            (void)snprintf(text, sizeof text, "[%s]", arrays[k].codec);
            impl_pattern(plain, sizeof plain, 1);
            for (size_t at = 0; arrays[k].bits && at < sizeof plain; at++)
                plain[at] &= 1;
            if (impl_chain_open(&c, env, &args, NULL) != ZARR_OK)
                continue;
            if (impl_run(c.encode, env, plain, (size_t)c.encode->decoded_bytes, &enc, &n,
                         NULL) == ZARR_OK)
                seed_write(arrays[k].target, (int)(10 * k + i),
                           (uint8_t)(arrays[k].variant * 5 + i), enc, n);
            free(enc);
            impl_chain_close(&c);
        }
}

/* Numbers of 32 bits in a walk; words; few values, most of them small; and pages of noise
 * of which each is there twice. */
static void zstd_plain(uint8_t *p, size_t n, unsigned kind)
{
    uint64_t seed = 0x9E3779B97F4A7C15u + kind;
    uint32_t x = 0;

    for (size_t i = 0; i < n; i++) {
        const uint64_t r = impl_random(&seed) >> 20;

        x += i % 4 == 0 ? (uint32_t)(r % 200) : 0;
        p[i] =
            (uint8_t)(kind == 0   ? x >> 8 * (i % 4)
                      : kind == 1 ? (uint8_t) "the cat sat on a mat, "[(i * i / 7) % 22]
                      : kind == 2 ? r % 4 * (r % 41)
                      : i % 512 < 256 ? r
                                      : p[i - 256]);
    }
}

/* Appends a frame with `how`: its size and a sum; blocks of 1 KiB, which repeat tables;
 * or blocks of several lengths. Returns its bytes. */
static size_t zstd_frame(ZSTD_CCtx *cctx, uint8_t *to, size_t room, const uint8_t *plain,
                         size_t n, int level, unsigned how)
{
    ZSTD_outBuffer out = {.dst = to, .size = room};
    ZSTD_inBuffer in = {.src = plain};

    (void)ZSTD_CCtx_reset(cctx, ZSTD_reset_session_and_parameters);
    (void)ZSTD_CCtx_setParameter(cctx, ZSTD_c_compressionLevel, level);
    (void)ZSTD_CCtx_setParameter(cctx, ZSTD_c_checksumFlag, how == 0);
    if (how == 0)
        (void)ZSTD_CCtx_setPledgedSrcSize(cctx, n);
    if (how == 1)
        (void)ZSTD_CCtx_setParameter(cctx, ZSTD_c_windowLog, 10);
    for (size_t step = 40; how == 2 && in.pos + step < n; step += step / 2) {
        in.size = in.pos + step;
        if (ZSTD_compressStream2(cctx, &out, &in, ZSTD_e_flush) != 0)
            seeds_failed = 1;
    }
    in.size = n;
    if (ZSTD_compressStream2(cctx, &out, &in, ZSTD_e_end) != 0)
        seeds_failed = 1;
    return out.pos;
}

/* Frames of all levels for the kernels of zstd, by one item and by a team. A skippable
 * frame and another one follow the fourth of each kind. */
static void seeds_zstd(void)
{
    static const int levels[] = {-5, 1, 3, 9, 19};
    static const size_t lengths[] = {3000, 40000, 6000, 4000};
    static uint8_t plain[1 << 16], input[1 << 16];
    ZSTD_CCtx *cctx = ZSTD_createCCtx();
    int number = 100;

    for (unsigned k = 0; k < ZR_COUNT(levels) * 4 * 4; k++) {
        const int level = levels[k / 16];
        const unsigned kind = k / 4 % 4, how = k % 4;
        const size_t n = lengths[kind], part = n - (size_t)how * 100;
        const size_t decoded = how % 3 ? part : n;
        size_t at = 2;

        zstd_plain(plain, n, kind);
        at += zstd_frame(cctx, input + at, 20000, plain, part, level, how);
        if (how == 3) {
            memcpy(input + at, "\x50\x2A\x4D\x18\x05\0\0\0other", 13);
            at += 13;
            at += zstd_frame(cctx, input + at, 20000, plain + n - 300, 300, level, 0);
        }
        input[0] = (uint8_t)(decoded % 256);
        input[1] = (uint8_t)(decoded / 256);
        seed_write("kernels", number++, 8, input, at);
        if (n < 8192) /* a team is slow */
            seed_write("kernels", number++, 9, input, at);
    }
    ZSTD_freeCCtx(cctx);
}

/* Two frames without their sizes, a skippable one between; two gzip members. */
static void seeds_foreign(void)
{
    uint8_t plain[1000], out[4096];
    ZSTD_CCtx *cctx = ZSTD_createCCtx();
    z_stream z = {0};
    size_t n = 0;

    impl_pattern(plain, sizeof plain, 3);
    (void)ZSTD_CCtx_setParameter(cctx, ZSTD_c_contentSizeFlag, 0);
    n = ZSTD_compress2(cctx, out, sizeof out, plain, 400);
    memcpy(out + n, "\x50\x2A\x4D\x18\x01\0\0\0!", 9);
    n += 9;
    n += ZSTD_compress2(cctx, out + n, sizeof out - n, plain + 400, 600);
    seed_write("dec_zstd", 90, 2, out, n);
    ZSTD_freeCCtx(cctx);

    n = 0;
    for (size_t half = 0; half < 2; half++) {
        if (deflateInit2(&z, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY) != Z_OK)
            seeds_failed = 1;
        z.next_in = plain + 500 * half;
        z.avail_in = 500;
        z.next_out = out + n;
        z.avail_out = (uInt)(sizeof out - n);
        (void)deflate(&z, Z_FINISH);
        n = sizeof out - z.avail_out;
        (void)deflateEnd(&z);
    }
    seed_write("dec_gzip", 90, 2, out, n);
}

#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define INDEX  "\"index_codecs\":[" LITTLE ",{\"name\":\"crc32c\"}]"
static const struct {
    uint8_t head, shape;
    const char *text;
} chains[] = {
    {0, 1, "[\"bytes\"]"},
    {4, 2,
     "[" LITTLE
     ",{\"name\":\"zstd\",\"configuration\":{\"level\":3,\"checksum\":true}}]"},
    {4, 2,
     "[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}}," LITTLE
     ",{\"name\":\"blosc\",\"configuration\":{\"typesize\":2,\"cname\":\"lz4\","
     "\"clevel\":"
     "5,\"shuffle\":\"bitshuffle\",\"blocksize\":0}},{\"name\":\"gzip\","
     "\"configuration\":"
     "{\"level\":9}},\"crc32c\"]"},
    {8, 3, "[{\"name\":\"transpose\",\"configuration\":{\"order\":\"F\"}}," LITTLE "]"},
    {8, 1,
     "[{\"name\":\"numcodecs.delta\",\"configuration\":{\"dtype\":\"<f4\",\"astype\":"
     "\"<i2\"}}," LITTLE ",\"numcodecs.shuffle\",\"numcodecs.lz4\",\"numcodecs.zlib\"]"},
    {4, 2,
     "[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[2,3],"
     "\"codecs\":"
     "[" LITTLE ",\"zstd\"]," INDEX ",\"index_location\":\"start\"}}]"},
    {4, 1,
     "[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[6],\"codecs\":["
     "{"
     "\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[2],\"codecs\":["
     "\"bytes\"]," INDEX "}}]," INDEX "}},\"gzip\"]"},
    {2, 1, "[\"zstd\"]"},
    {1, 1, "[{\"id\":\"bytes\"},{\"id\":\"zlib\",\"level\":1}]"},
    {5, 2,
     "[{\"id\":\"transpose\",\"order\":[1,0]},{\"id\":\"bytes\",\"endian\":\"big\"},{"
     "\"id\""
     ":\"delta\",\"dtype\":\">i2\",\"astype\":\"|i1\"},{\"id\":\"shuffle\","
     "\"elementsize\":"
     "2},{\"id\":\"blosc\",\"cname\":\"zstd\",\"clevel\":3,\"shuffle\":-1,\"blocksize\":"
     "0}]"},
    {1, 4,
     "[{\"id\":\"bytes\"},{\"id\":\"crc32c\",\"location\":\"start\"},{\"id\":\"lz4\","
     "\"acceleration\":1},{\"id\":\"zstd\",\"level\":0},{\"id\":\"gzip\",\"level\":5}]"},
};

static void seeds_chains(void)
{
    for (size_t i = 0; i < ZR_COUNT(chains); i++) {
        char text[1024];

        (void)snprintf(text, sizeof text, "%c%s", chains[i].shape, chains[i].text);
        seed_write("chain", (int)i, chains[i].head, text, strlen(chains[i].text) + 1);
    }
}

int main(int argc, char **argv)
{
    struct impl_env env;

    if (argc != 2 || impl_env_open(&env, NULL, NULL) != ZARR_OK)
        return 2;
    seeds_root = argv[1];
    seeds_encoded(&env);
    seeds_arrays(&env);
    seeds_kernels(&env);
    seeds_zstd();
    seeds_foreign();
    seeds_chains();
    impl_env_close(&env);
    return seeds_failed;
}
