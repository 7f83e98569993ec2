/*
 * unit/codecs/test_streams.c - streams written by other programs: all kinds of frames
 * and members, containers with unusual headers, chunks of no bytes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <blosc.h>
#if defined(ZR_HAVE_BZ2)
#    include <bzlib.h>
#endif
#if defined(ZR_HAVE_LZMA)
#    include <lzma.h>
#endif
#include <zlib.h>
#include <zstd.h>

#include "unit/impl/impl_test.h"

enum {
    N = 6000
};

static struct impl_env env;
static uint8_t plain[N];

static int open_env(void **state)
{
    ZR_UNUSED(state);
    impl_pattern(plain, N, 3);
    return impl_env_open(&env, NULL, NULL) == ZARR_OK ? 0 : -1;
}

static int close_env(void **state)
{
    ZR_UNUSED(state);
    impl_env_close(&env);
    return 0;
}

/* Decodes with one v2 codec ("lzma,\"format\":2") to `want` bytes. *err gets the message
 * of a failure. */
static zarr_status decode(const char *codec, const void *src, size_t n, size_t want,
                          zarr_error *err)
{
    char text[256];
    const uint64_t dims[] = {want, 0};
    const struct impl_chain_args args = {
        .format = 2, .codecs = text, .dtype = "uint8", .dims = dims};
    struct impl_chain c;
    uint8_t *dec = NULL;
    size_t dec_bytes = 0;
    zarr_status st = ZARR_OK;

    (void)snprintf(text, sizeof text, "[{\"id\":\"bytes\"},{\"id\":\"%.*s\"%s}]",
                   (int)strcspn(codec, ","), codec, codec + strcspn(codec, ","));
    assert_int_equal(impl_chain_open(&c, &env, &args, NULL), ZARR_OK);
    st = impl_run(c.decode, &env, src, n, &dec, &dec_bytes, err);
    if (st == ZARR_OK && want <= N)
        assert_memory_equal(dec, plain, want);
    free(dec);
    impl_chain_close(&c);
    return st;
}

static void expect(const char *codec, const void *src, size_t n, zarr_status status,
                   const char *says)
{
    zarr_error err = {0};
    zarr_status st = decode(codec, src, n, N, &err);

    if (st != status || (says && !strstr(err.message, says)))
        fail_msg("%s: status %d, \"%s\"", codec, st, err.message);
}

/* ---- zstd ---------------------------------------------------------------- */

/* A zstd frame of plain[from..to) in `pieces` flushed blocks, with or without its size
 * in the header. */
static size_t zstd_frame(uint8_t *out, size_t room, size_t from, size_t to, int with_size,
                         size_t pieces)
{
    ZSTD_CCtx *c = ZSTD_createCCtx();
    ZSTD_outBuffer dst = {out, room, 0};

    (void)ZSTD_CCtx_setParameter(c, ZSTD_c_contentSizeFlag, with_size);
    if (with_size)
        (void)ZSTD_CCtx_setPledgedSrcSize(c, to - from);
    for (size_t i = 0; i < pieces; i++) {
        const size_t a = from + (to - from) * i / pieces,
                     b = from + (to - from) * (i + 1) / pieces;
        ZSTD_inBuffer src = {plain + a, b - a, 0};

        while (ZSTD_compressStream2(c, &dst, &src,
                                    i + 1 == pieces ? ZSTD_e_end : ZSTD_e_flush))
            ;
    }
    ZSTD_freeCCtx(c);
    return dst.pos;
}

static void zstd_streams(void **state)
{
    static const uint8_t skip[] = {0x57, 0x2A, 0x4D, 0x18, 3, 0, 0, 0, 'a', 'b', 'c'};
    static const uint8_t legacy[] = {0x27, 0xB5, 0x2F, 0xFD, 0, 0, 0, 0, 0};
    uint8_t out[2 * N];
    size_t n = 0;

    ZR_UNUSED(state);
    n = zstd_frame(out, sizeof out, 0, N, 0, 5);
    assert_int_equal(ZSTD_getFrameContentSize(out, n), ZSTD_CONTENTSIZE_UNKNOWN);
    expect("zstd", out, n, ZARR_OK, NULL);

    n = zstd_frame(out, sizeof out, 0, 1000, 0, 1);
    n += zstd_frame(out + n, sizeof out - n, 1000, 1000, 1, 1); /* an empty frame */
    n += zstd_frame(out + n, sizeof out - n, 1000, N, 1, 3);
    expect("zstd", out, n, ZARR_OK, NULL);

    memcpy(out, skip, sizeof skip);
    n = sizeof skip + zstd_frame(out + sizeof skip, sizeof out - sizeof skip, 0, N, 0, 2);
    memcpy(out + n, skip, sizeof skip);
    expect("zstd", out, n + sizeof skip, ZARR_OK, NULL);
    expect("zstd", out, n + sizeof skip - 1, ZARR_ERR_CORRUPT, "truncated");

    expect("zstd", skip, sizeof skip, ZARR_ERR_CORRUPT, "zstd: 0 bytes, expected 6000");
    expect("zstd", legacy, sizeof legacy, ZARR_ERR_CORRUPT, "no frame");
    expect("zstd", "", 0, ZARR_ERR_CORRUPT, "zstd: 0 bytes, expected 6000");
    n = zstd_frame(out, sizeof out, 0, N - 1, 0, 1);
    expect("zstd", out, n, ZARR_ERR_CORRUPT, "zstd: 5999 bytes, expected 6000");
}

/* ---- gzip, zlib ---------------------------------------------------------- */

static size_t deflate_stream(uint8_t *out, size_t room, size_t from, size_t to,
                             int window, gz_header *header)
{
    z_stream z = {0};
    size_t n = 0;

    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY),
                     Z_OK);
    if (header)
        assert_int_equal(deflateSetHeader(&z, header), Z_OK);
    z.next_in = plain + from;
    z.avail_in = (uInt)((to - from) / 2);
    z.next_out = out;
    z.avail_out = (uInt)room;
    assert_int_equal(deflate(&z, Z_FULL_FLUSH), Z_OK);
    z.avail_in = (uInt)(to - from - (to - from) / 2);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    n = room - z.avail_out;
    (void)deflateEnd(&z);
    return n;
}

static void gzip_streams(void **state)
{
    uint8_t out[2 * N];
    gz_header header = {.name = (Bytef *)"chunk", .comment = (Bytef *)"c", .hcrc = 1};
    size_t n = 0;

    ZR_UNUSED(state);
    n = deflate_stream(out, sizeof out, 0, N, 31, &header);
    expect("gzip", out, n, ZARR_OK, NULL);

    n = deflate_stream(out, sizeof out, 0, 1234, 31, NULL);
    n += deflate_stream(out + n, sizeof out - n, 1234, 1234, 31, NULL);
    n += deflate_stream(out + n, sizeof out - n, 1234, N, 25, NULL);
    expect("gzip", out, n, ZARR_OK, NULL);
    memset(out + n, 0, 512); /* padding, as tar and tapes append */
    expect("gzip", out, n + 512, ZARR_OK, NULL);
    out[n + 100] = 1;
    expect("gzip", out, n + 512, ZARR_ERR_CORRUPT, "gzip:");
    n += deflate_stream(out + n, sizeof out - n, 0, 1, 31, NULL);
    expect("gzip", out, n, ZARR_ERR_CORRUPT, "gzip: more than");

    n = deflate_stream(out, sizeof out, 0, N, 15, NULL);
    expect("zlib", out, n, ZARR_OK, NULL);
    expect("gzip", out, n, ZARR_ERR_CORRUPT, "gzip:");
    n = deflate_stream(out, sizeof out, 0, N, 9, NULL); /* a window of 512 bytes */
    expect("zlib", out, n, ZARR_OK, NULL);
    n = deflate_stream(out, sizeof out, 0, N, -15, NULL); /* no wrapper at all */
    expect("zlib", out, n, ZARR_ERR_CORRUPT, "zlib:");
}

static void gzip_is_deterministic(void **state)
{
    const uint64_t dims[] = {N, 0};
    const struct impl_chain_args args = {
        .format = 3, .codecs = "[\"bytes\",\"gzip\"]", .dtype = "uint8", .dims = dims};
    struct impl_chain c;
    uint8_t *enc = NULL;
    size_t n = 0;

    ZR_UNUSED(state);
    assert_int_equal(impl_chain_open(&c, &env, &args, NULL), ZARR_OK);
    assert_int_equal(impl_run(c.encode, &env, plain, N, &enc, &n, NULL), ZARR_OK);
    assert_int_equal(zr_load_le32(enc + 4), 0); /* no time stamp */
    assert_int_equal(enc[9], 255);              /* no operating system */
    free(enc);
    impl_chain_close(&c);
}

/* ---- bz2, lzma ----------------------------------------------------------- */

static void bz2_streams(void **state)
{
    ZR_UNUSED(state);
#if defined(ZR_HAVE_BZ2)
    uint8_t out[2 * N];
    unsigned n = sizeof out, more = 0;

    assert_int_equal(
        BZ2_bzBuffToBuffCompress((char *)out, &n, (char *)plain, 1234, 9, 0, 0), BZ_OK);
    more = (unsigned)sizeof out - n;
    assert_int_equal(
        BZ2_bzBuffToBuffCompress((char *)out + n, &more, (char *)plain, 0, 1, 0, 0),
        BZ_OK);
    n += more;
    more = (unsigned)sizeof out - n;
    assert_int_equal(BZ2_bzBuffToBuffCompress((char *)out + n, &more,
                                              (char *)plain + 1234, N - 1234, 1, 0, 0),
                     BZ_OK);
    n += more;
    expect("bz2", out, n, ZARR_OK, NULL);
    out[n] = 0;
    expect("bz2", out, n + 1, ZARR_ERR_CORRUPT, "bz2:");
    expect("bz2", out, n - 1, ZARR_ERR_CORRUPT, "bz2: truncated");
    expect("bz2", "", 0, ZARR_ERR_CORRUPT, "bz2: truncated");
    expect("bz2", "BZx9", 4, ZARR_ERR_CORRUPT, "bz2: no stream");
#else
    print_message("skipped: no libbz2 in this build\n");
    skip();
#endif
}

static void lzma_streams(void **state)
{
    ZR_UNUSED(state);
#if defined(ZR_HAVE_LZMA)
    static const uint8_t huge[] = {0x5D, 0xFF, 0xFF, 0xFF, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF,
                                   0xFF, 0xFF, 0xFF, 0xFF, 0,    0,    0,    0,    0};
    uint8_t out[2 * N];
    size_t n = 0;
    lzma_options_lzma options;
    lzma_stream z = LZMA_STREAM_INIT;

    assert_int_equal(lzma_easy_buffer_encode(1, LZMA_CHECK_SHA256, NULL, plain, 1234, out,
                                             &n, sizeof out),
                     LZMA_OK);
    memset(out + n, 0, 8); /* padding between streams: multiples of four zeros */
    n += 8;
    assert_int_equal(lzma_easy_buffer_encode(9, LZMA_CHECK_NONE, NULL, plain + 1234,
                                             N - 1234, out, &n, sizeof out),
                     LZMA_OK);
    expect("lzma", out, n, ZARR_OK, NULL);
    expect("lzma", out, n - 1, ZARR_ERR_CORRUPT, "lzma: truncated");
    memset(out + n, 0, 4);
    expect("lzma", out, n + 4, ZARR_OK, NULL);
    expect("lzma", out, n + 3, ZARR_ERR_CORRUPT, "lzma:");
    expect("lzma,\"format\":2", out, n, ZARR_ERR_CORRUPT, "lzma:");
    expect("lzma", "", 0, ZARR_ERR_CORRUPT, "lzma: truncated");
    expect("lzma", "no stream at all", 16, ZARR_ERR_CORRUPT, "lzma: no stream");
    /* a dictionary of 2 GiB for 6000 bytes */
    expect("lzma,\"format\":2", huge, sizeof huge, ZARR_ERR_LIMIT,
           "bytes of memory, more than");

    (void)lzma_lzma_preset(&options, 0);
    for (size_t half = 0; half < 2; half++) {
        assert_int_equal(lzma_alone_encoder(&z, &options), LZMA_OK);
        z.next_in = plain + half * N / 2;
        z.avail_in = N / 2;
        if (!half) {
            z.next_out = out;
            z.avail_out = sizeof out;
        }
        while (lzma_code(&z, LZMA_FINISH) == LZMA_OK)
            ;
    }
    expect("lzma,\"format\":2", out, sizeof out - z.avail_out, ZARR_OK, NULL);
    lzma_end(&z);
#else
    print_message("skipped: no liblzma in this build\n");
    skip();
#endif
}

/* ---- blosc --------------------------------------------------------------- */

static void blosc_containers(void **state)
{
    uint8_t out[N + 16], bad[N + 16];
    int n = 0;

    ZR_UNUSED(state);
    n = blosc_compress_ctx(5, 1, 4, N, plain, out, sizeof out, "lz4", 512, 1);
    assert_true(n > 0);
    expect("blosc", out, (size_t)n, ZARR_OK, NULL);

    memcpy(bad, out, (size_t)n);
    bad[3] = 0;
    expect("blosc", bad, (size_t)n, ZARR_ERR_CORRUPT, "damaged header");
    memcpy(bad, out, (size_t)n);
    bad[2] |= 5;
    expect("blosc", bad, (size_t)n, ZARR_ERR_UNSUPPORTED, "Blosc 2");
    memcpy(bad, out, (size_t)n);
    bad[0] = 5;
    expect("blosc", bad, (size_t)n, ZARR_ERR_UNSUPPORTED, "Blosc 2");
    memcpy(bad, out, (size_t)n);
    zr_store_le32(bad + 8, 0);
    expect("blosc", bad, (size_t)n, ZARR_ERR_CORRUPT, "block size");
    zr_store_le32(bad + 8, 0x7FFFFFFF);
    expect("blosc", bad, (size_t)n, ZARR_ERR_CORRUPT, "block size");
    zr_store_le32(bad + 8, 1);
    expect("blosc", bad, (size_t)n, ZARR_ERR_CORRUPT, "table of blocks");
    memcpy(bad, out, (size_t)n);
    zr_store_le32(bad + 16, 8);
    expect("blosc", bad, (size_t)n, ZARR_ERR_CORRUPT, "begins in the header");
    zr_store_le32(bad + 16, (uint32_t)n - 3);
    expect("blosc", bad, (size_t)n, ZARR_ERR_CORRUPT, "begins outside");
    zr_store_le32(bad + 16, 0xFFFFFFFF);
    expect("blosc", bad, (size_t)n, ZARR_ERR_CORRUPT, "begins outside");

    /* Not compressed. */
    n = blosc_compress_ctx(0, 1, 4, N, plain, out, sizeof out, "lz4", 0, 1);
    expect("blosc", out, (size_t)n, ZARR_OK, NULL);
    zr_store_le32(out + 12, (uint32_t)n - 1);
    expect("blosc", out, (size_t)n - 1, ZARR_ERR_CORRUPT,
           "stored chunk of 6000 bytes has 5999");
}

/* ---- empty chunks ---- */

static void empty_chunks(void **state)
{
    static const char *const codecs[] = {
        "zstd",
        "gzip",
        "zlib",
        "lz4",
        "blosc",
        "crc32c",
        "shuffle",
        "base64",
        "crc32",
        "adler32",
        "fletcher32",
        "jenkins_lookup3",
#if defined(ZR_HAVE_BZ2)
        "bz2",
#endif
#if defined(ZR_HAVE_LZMA)
        "lzma",
#endif
    };

    ZR_UNUSED(state);
    for (size_t k = 0; k < ZR_COUNT(codecs); k++) {
        struct zr_placement_options opts = {.target_device = ZARR_DEVICE_CPU};
        struct impl_chain c = {0};
        zarr_chunk_spec chunk = {.struct_size = sizeof chunk, .ndim = 1};
        char text[128];
        uint8_t *enc = NULL, *dec = NULL;
        size_t n = 0;

        (void)snprintf(text, sizeof text, "[{\"id\":\"bytes\"},{\"id\":\"%s\"}]",
                       codecs[k]);
        assert_int_equal(codec_env_parse(&c.chain, &env.codec, 2, text, NULL, NULL),
                         ZARR_OK);
        assert_int_equal(
            zr_dtype_find(&env.codec.dtypes, "uint8", &chunk.dtype, NULL, NULL), ZARR_OK);
        assert_int_equal(zr_chain_resolve(&c.reps, c.chain, &chunk, NULL, NULL, NULL),
                         ZARR_OK);
        assert_int_equal(
            zr_program_make(&c.decode, &env.impls, c.chain, &c.reps, &opts, NULL, NULL),
            ZARR_OK);
        opts.encode = true;
        assert_int_equal(
            zr_program_make(&c.encode, &env.impls, c.chain, &c.reps, &opts, NULL, NULL),
            ZARR_OK);
        assert_int_equal(impl_run(c.encode, &env, "", 0, &enc, &n, NULL), ZARR_OK);
        assert_int_equal(impl_run(c.decode, &env, enc, n, &dec, &n, NULL), ZARR_OK);
        assert_int_equal(n, 0);
        free(enc);
        free(dec);
        impl_chain_close(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zstd_streams),          cmocka_unit_test(gzip_streams),
        cmocka_unit_test(gzip_is_deterministic), cmocka_unit_test(blosc_containers),
        cmocka_unit_test(bz2_streams),           cmocka_unit_test(lzma_streams),
        cmocka_unit_test(empty_chunks),
    };

    return cmocka_run_group_tests(tests, open_env, close_env);
}
