/*
 * unit/codecs/test_codecs.c - round trips of every CPU codec over sizes and settings;
 * our bounds compared with those of the libraries; damaged bytes, which give an error or
 * exactly the expected size.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <blosc.h>
#include <libdeflate.h>
#include <lz4.h>
#if defined(ZR_HAVE_SNAPPY)
#    include <snappy-c.h>
#endif
#include <zstd.h>

#include "sanitizers.h"
#include "unit/impl/impl_test.h"

static struct impl_env env;

static int open_env(void **state)
{
    ZR_UNUSED(state);
    return impl_env_open(&env, NULL, NULL) == ZARR_OK ? 0 : -1;
}

static int close_env(void **state)
{
    ZR_UNUSED(state);
    impl_env_close(&env);
    return 0;
}

/* The codecs behind `bytes` in a v2 chain of int32 elements. */
static const char *const singles[] = {
    "{\"id\":\"zstd\",\"level\":1}",
    "{\"id\":\"zstd\",\"level\":-5,\"checksum\":true}",
    "{\"id\":\"gzip\",\"level\":1}",
    "{\"id\":\"zlib\",\"level\":6}",
    "{\"id\":\"lz4\",\"acceleration\":1}",
    "{\"id\":\"blosc\",\"cname\":\"lz4\",\"shuffle\":1}",
    "{\"id\":\"blosc\",\"cname\":\"zstd\",\"shuffle\":2}",
    "{\"id\":\"blosc\",\"cname\":\"blosclz\",\"shuffle\":0,\"blocksize\":1024}",
    "{\"id\":\"crc32c\"}",
    "{\"id\":\"crc32c\",\"location\":\"start\"}",
    "{\"id\":\"shuffle\",\"elementsize\":4}",
    "{\"id\":\"delta\",\"dtype\":\"<i4\"}",
    "{\"id\":\"delta\",\"dtype\":\">i4\",\"astype\":\"<i4\"}",
    "{\"id\":\"crc32\"}",
    "{\"id\":\"adler32\",\"location\":\"end\"}",
    "{\"id\":\"fletcher32\"}",
    "{\"id\":\"jenkins_lookup3\"}",
    "{\"id\":\"jenkins_lookup3\",\"initval\":4294967295,\"prefix\":[1,2,3,255]}",
    "{\"id\":\"base64\"}",
#if defined(ZR_HAVE_BZ2)
    "{\"id\":\"bz2\",\"level\":1}",
    "{\"id\":\"bz2\",\"level\":9}",
#endif
#if defined(ZR_HAVE_SNAPPY)
    "{\"id\":\"snappy\"}",
    "{\"id\":\"nvcomp_batch\",\"algorithm\":\"snappy\"}",
#endif
    "{\"id\":\"nvcomp_batch\",\"algorithm\":\"lz4\"}",
    "{\"id\":\"nvcomp_batch\",\"algorithm\":\"lz4\",\"options\":{\"has_header\":false}}",
    "{\"id\":\"nvcomp_batch\",\"algorithm\":\"zstd\"}",
    "{\"id\":\"nvcomp_batch\",\"algorithm\":\"deflate\"}",
#if defined(ZR_HAVE_LZMA)
    "{\"id\":\"lzma\",\"preset\":1}",
    "{\"id\":\"lzma\",\"check\":10,\"filters\":[{\"id\":3,\"dist\":4},{\"id\":33,"
    "\"preset\":0,\"dict_size\":4096}]}",
    "{\"id\":\"lzma\",\"format\":2,\"preset\":0}",
    "{\"id\":\"lzma\",\"format\":3,\"check\":0,\"filters\":[{\"id\":4},{\"id\":33,"
    "\"preset\":1,\"lc\":0,\"lp\":2,\"pb\":0}]}",
    "{\"id\":\"lzma\",\"format\":3,\"filters\":[{\"id\":4611686018427387905,"
    "\"dict_size\":65536}]}",
#endif
};

static void open_chain(struct impl_chain *c, const char *codecs, uint64_t n)
{
    char text[512];
    const uint64_t dims[] = {n, 0};
    const struct impl_chain_args args = {
        .format = 2, .codecs = text, .dtype = "int32", .dims = dims};
    zarr_error err = {0};

    (void)snprintf(text, sizeof text, "[{\"id\":\"bytes\",\"endian\":\"little\"}%s%s]",
                   codecs[0] ? "," : "", codecs);
    if (impl_chain_open(c, &env, &args, &err) != ZARR_OK)
        fail_msg("%s: %s", codecs, err.message);
}

static void round_trip(const char *codecs, size_t n_items, int pattern)
{
    struct impl_chain c;
    uint8_t *src = malloc(4 * n_items), *enc = NULL, *dec = NULL;
    size_t enc_bytes = 0, dec_bytes = 0;
    zarr_error err = {0};

    impl_pattern(src, 4 * n_items, pattern);
    open_chain(&c, codecs, n_items);
    if (impl_run(c.encode, &env, src, 4 * n_items, &enc, &enc_bytes, &err) != ZARR_OK ||
        impl_run(c.decode, &env, enc, enc_bytes, &dec, &dec_bytes, &err) != ZARR_OK)
        fail_msg("%s, %zu items, pattern %d: %s", codecs, n_items, pattern, err.message);
    assert_true(enc_bytes <= c.encode->encoded_bound);
    assert_int_equal(dec_bytes, 4 * n_items);
    assert_memory_equal(src, dec, dec_bytes);
    impl_chain_close(&c);
    free(src);
    free(enc);
    free(dec);
}

static void round_trips(void **state)
{
    static const size_t sizes[] = {1,  2,   3,    7,    16,    31,
                                   64, 257, 1000, 4096, 65537, 250000};

    ZR_UNUSED(state);
    for (size_t k = 0; k < ZR_COUNT(singles); k++)
        for (size_t i = 0; i < ZR_COUNT(sizes); i++)
            for (int pattern = sizes[i] > 10000 ? 2 : 0; pattern < 4; pattern++)
                round_trip(singles[k], sizes[i], pattern);
}

static void every_setting(void **state)
{
    static const char *const cnames[] = {"lz4",  "lz4hc",  "blosclz",
                                         "zstd", "snappy", "zlib"};
    char text[128];

    ZR_UNUSED(state);
    for (int level = -3; level <= 22; level++) {
        (void)snprintf(text, sizeof text, "{\"id\":\"zstd\",\"level\":%d}", level);
        round_trip(text, 3000, 3);
    }
    for (int level = -1; level <= 9; level++) {
        (void)snprintf(text, sizeof text, "{\"id\":\"gzip\",\"level\":%d}", level);
        round_trip(text, 3000, 3);
        (void)snprintf(text, sizeof text, "{\"id\":\"zlib\",\"level\":%d}", level);
        round_trip(text, 3000, 3);
    }
    for (size_t k = 0; k < ZR_COUNT(cnames); k++) {
        if (blosc_compname_to_compcode(cnames[k]) < 0)
            continue;
        for (int shuffle = -1; shuffle <= 2; shuffle++)
            for (int clevel = 0; clevel <= 9; clevel += 3)
                for (int pattern = 1; pattern < 3; pattern++) {
                    (void)snprintf(text, sizeof text,
                                   "{\"id\":\"blosc\",\"cname\":\"%s\",\"clevel\":%d,"
                                   "\"shuffle\":%d}",
                                   cnames[k], clevel, shuffle);
                    round_trip(text, 30000, pattern);
                    round_trip(text, 77, pattern);
                }
    }
}

/* With more room, c-blosc keeps compressed streams that are longer than an uncompressed
 * chunk. */
static void blosc_keeps_to_its_bound(void **state)
{
    static const char *const cnames[] = {"lz4", "blosclz", "zlib", "zstd"};
    uint8_t src[400], dst[600];
    struct impl_chain c;
    char text[128];

    ZR_UNUSED(state);
    for (size_t k = 0; k < ZR_COUNT(cnames); k++)
        for (size_t n = 10; n <= 100; n++) {
            zarr_codec_job job = {.src = zr_mem_of_host(src, 4 * n),
                                  .dst = zr_mem_of_host(dst, sizeof dst)};

            impl_pattern(src, 4 * n, 2);
            (void)snprintf(text, sizeof text,
                           "{\"id\":\"blosc\",\"cname\":\"%s\",\"shuffle\":0}",
                           cnames[k]);
            open_chain(&c, text, n);
            assert_int_equal(
                impl_run_stage(c.encode->stage, true, &env, &job, (zarr_memory){0}, NULL),
                ZARR_OK);
            assert_in_range(job.dst_used, 1, 4 * n + BLOSC_MAX_OVERHEAD);
            impl_chain_close(&c);
        }
}

static void stack_codecs(void **state)
{
    ZR_UNUSED(state);
    round_trip(
        "{\"id\":\"delta\",\"dtype\":\"<i4\"},{\"id\":\"shuffle\"},{\"id\":\"zstd\"},"
        "{\"id\":\"crc32c\"},{\"id\":\"gzip\"},{\"id\":\"lz4\"},{\"id\":\"blosc\"}",
        5000, 1);
    round_trip(
        "{\"id\":\"crc32c\"},{\"id\":\"zlib\"},{\"id\":\"zlib\"},{\"id\":\"crc32c\"}",
        999, 2);
}

/* The bounds that specifications give, compared with those of the libraries. */
static void bounds_hold(void **state)
{
    static const uint64_t sizes[] = {
        1, 4, 16, 100, 4999, 5000, 65536, 131071, 131072, 1000000, 100000000, 1900000000};
    static const char *const names[] = {"zstd", "gzip", "zlib", "lz4", "blosc", "snappy"};
    struct libdeflate_compressor *ld = libdeflate_alloc_compressor(1);

    ZR_UNUSED(state);
    for (size_t i = 0; i < ZR_COUNT(sizes); i++) {
        const uint64_t n = sizes[i];
        const uint64_t want[] = {
            ZSTD_compressBound(n),
            libdeflate_gzip_compress_bound(ld, n),
            libdeflate_zlib_compress_bound(ld, n),
            (uint64_t)LZ4_compressBound((int)n) + 4,
            n + BLOSC_MAX_OVERHEAD,
#if defined(ZR_HAVE_SNAPPY)
            snappy_max_compressed_length(n)
#endif
        };

        for (size_t k = 0; k < ZR_COUNT(want); k++) {
            const zarr_codec_spec_vtable *v =
                zr_codec_spec_lookup(&env.codec.codecs, names[k]);
            struct zarr_codec_spec spec = {.vt = v};
            zarr_chunk_spec in = {.n_bytes = n, .exact = 1}, out = in;

            assert_int_equal(v->resolve(&spec, &in, &out, NULL, NULL), ZARR_OK);
            if (out.n_bytes < want[k])
                fail_msg("%s: %llu bytes: bound %llu, library %llu", names[k],
                         (unsigned long long)n, (unsigned long long)out.n_bytes,
                         (unsigned long long)want[k]);
        }
    }
    libdeflate_free_compressor(ld);
}

/* ---- damage -------------------------------------------------------------- */

static void decode_damaged(const struct impl_chain *c, const uint8_t *enc, size_t n,
                           unsigned long *refused)
{
    uint8_t *dec = NULL;
    size_t dec_bytes = 0;
    zarr_error err = {0};
    zarr_status st = impl_run(c->decode, &env, enc, n, &dec, &dec_bytes, &err);

    if (st == ZARR_OK)
        assert_int_equal(dec_bytes, c->decode->decoded_bytes);
    else if (st != ZARR_ERR_CORRUPT && st != ZARR_ERR_UNSUPPORTED &&
             st != ZARR_ERR_LIMIT) /* of a decoder's memory */
        fail_msg("status %d: %s", st, err.message);
    else
        assert_true(err.message[0]);
    *refused += st != ZARR_OK;
    free(dec);
}

static void encode_sample(struct impl_chain *c, const char *codecs, size_t n_items,
                          int pattern, uint8_t **enc, size_t *n)
{
    uint8_t *src = malloc(4 * n_items);

    impl_pattern(src, 4 * n_items, pattern);
    open_chain(c, codecs, n_items);
    assert_int_equal(impl_run(c->encode, &env, src, 4 * n_items, enc, n, NULL), ZARR_OK);
    free(src);
}

static void every_truncation(void **state)
{
    ZR_UNUSED(state);
    for (size_t k = 0; k < ZR_COUNT(singles); k++)
        for (int pattern = 1; pattern < 4; pattern++) {
            struct impl_chain c;
            uint8_t *enc = NULL;
            size_t n = 0;
            unsigned long refused = 0, cuts = 0;

            encode_sample(&c, singles[k], 300, pattern, &enc, &n);
            for (size_t cut = 0; cut < n; cut += (size_t)ZR_CASE_STEP, cuts++)
                decode_damaged(&c, enc, cut, &refused);
            if (refused != cuts)
                fail_msg("%s: %lu of %lu truncations were refused", singles[k], refused,
                         cuts);
            impl_chain_close(&c);
            free(enc);
        }
}

static void bytes_behind_the_end(void **state)
{
    ZR_UNUSED(state);
    for (size_t k = 0; k < ZR_COUNT(singles); k++) {
        struct impl_chain c;
        uint8_t *enc = NULL, *longer = NULL;
        size_t n = 0;
        unsigned long refused = 0;

        encode_sample(&c, singles[k], 300, 1, &enc, &n);
        longer = malloc(n + 1);
        memcpy(longer, enc, n);
        longer[n] = 0x5A;
        decode_damaged(&c, longer, n + 1, &refused);
        if (!refused)
            fail_msg("%s: a byte behind the end was taken", singles[k]);
        impl_chain_close(&c);
        free(longer);
        free(enc);
    }
}

static void bit_flips(void **state)
{
    uint64_t seed = 20240607;

    ZR_UNUSED(state);
    for (size_t k = 0; k < ZR_COUNT(singles); k++)
        for (int sample = 0; sample < 4; sample++) {
            struct impl_chain c;
            uint8_t *enc = NULL;
            size_t n = 0;
            unsigned long refused = 0;
            const int turns = strstr(singles[k], "lzma") || strstr(singles[k], "bz2")
                                  ? 300 /* slow to set up */
                                  : 2500 / ZR_CASE_STEP;

            encode_sample(&c, singles[k], sample == 0 ? 300 : 4000, sample ? sample : 1,
                          &enc, &n);
            for (int turn = 0; turn < turns; turn++) {
                const uint64_t r = impl_random(&seed);
                /* Half of the positions are near the front, where headers are. */
                const size_t span = turn % 2 ? n : ZR_MIN(n, (size_t)32);
                const size_t at = (size_t)(r >> 8) % span;

                enc[at] ^= (uint8_t)(1u << (r & 7));
                decode_damaged(&c, enc, n, &refused);
                enc[at] ^= (uint8_t)(1u << (r & 7));
            }
            impl_chain_close(&c);
            free(enc);
        }
}

static void garbage(void **state)
{
    uint8_t noise[700];
    uint64_t seed = 5;

    ZR_UNUSED(state);
    for (size_t k = 0; k < ZR_COUNT(singles); k++) {
        struct impl_chain c;
        unsigned long refused = 0, tried = 0;

        open_chain(&c, singles[k], 100);
        for (size_t n = 0; n < sizeof noise; n += (size_t)ZR_CASE_STEP, tried++) {
            for (size_t i = 0; i < n; i++)
                noise[i] = (uint8_t)impl_random(&seed);
            decode_damaged(&c, noise, n, &refused);
        }
        /* shuffle and delta accept any bytes of the right size */
        assert_true(refused >= tried - 1);
        impl_chain_close(&c);
    }
}

/* A stream whose length differs from the metadata is damage. The message gives both
 * lengths. */
static void wrong_lengths(void **state)
{
    static const struct {
        size_t stored, wanted;
        const char *codec, *says;
    } cases[] = {
        {1024, 262144, "{\"id\":\"zstd\"}", "zstd: 4096 bytes, expected 1048576"},
        {1024, 10, "{\"id\":\"zstd\"}", "zstd: more than 40 bytes"},
        {1024, 2048, "{\"id\":\"gzip\"}", "gzip: 4096 bytes, expected 8192"},
        {1024, 10, "{\"id\":\"gzip\"}", "gzip: more than 40 bytes"},
        {1024, 10, "{\"id\":\"zlib\"}", "zlib: more than 40 bytes"},
        {1024, 10, "{\"id\":\"lz4\"}", "lz4: block says it has 4096 bytes, expected 40"},
        {1024, 2048, "{\"id\":\"lz4\"}", "lz4: 4096 bytes, expected 8192"},
        {1024, 10, "{\"id\":\"blosc\"}",
         "blosc: chunk says it has 4096 bytes, expected 40"},
        {1024, 2048, "{\"id\":\"blosc\"}", "blosc: 4096 bytes, expected 8192"},
        {10, 11, "{\"id\":\"crc32c\"}", "crc32c: 44 encoded bytes, expected 48"},
        {10, 11, "{\"id\":\"shuffle\"}", "shuffle: 40 encoded bytes, expected 44"},
        {10, 11, "{\"id\":\"crc32\"}", "crc32: 44 encoded bytes, expected 48"},
        {10, 11, "{\"id\":\"base64\"}", "base64: 56 encoded bytes, expected 60"},
#if defined(ZR_HAVE_BZ2)
        {1024, 10, "{\"id\":\"bz2\"}", "bz2: more than 40 bytes"},
        {1024, 2048, "{\"id\":\"bz2\"}", "bz2: 4096 bytes, expected 8192"},
#endif
#if defined(ZR_HAVE_SNAPPY)
        {1024, 10, "{\"id\":\"snappy\"}",
         "snappy: block says it has 4096 bytes, expected 40"},
        {1024, 2048, "{\"id\":\"snappy\"}", "snappy: 4096 bytes, expected 8192"},
#endif
#if defined(ZR_HAVE_LZMA)
        {1024, 10, "{\"id\":\"lzma\"}", "lzma: more than 40 bytes"},
        {1024, 2048, "{\"id\":\"lzma\"}", "lzma: 4096 bytes, expected 8192"},
        {1024, 10, "{\"id\":\"lzma\",\"format\":2}", "lzma: more than 40 bytes"},
#endif
    };

    ZR_UNUSED(state);
    for (size_t i = 0; i < ZR_COUNT(cases); i++) {
        struct impl_chain c, other;
        uint8_t *enc = NULL, *dec = NULL;
        size_t n = 0;
        zarr_error err = {0};

        encode_sample(&c, cases[i].codec, cases[i].stored, 1, &enc, &n);
        open_chain(&other, cases[i].codec, cases[i].wanted);
        assert_int_equal(impl_run(other.decode, &env, enc, n, &dec, &n, &err),
                         ZARR_ERR_CORRUPT);
        assert_string_equal(err.message, cases[i].says);
        impl_chain_close(&c);
        impl_chain_close(&other);
        free(enc);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trips),
        cmocka_unit_test(every_setting),
        cmocka_unit_test(stack_codecs),
        cmocka_unit_test(blosc_keeps_to_its_bound),
        cmocka_unit_test(bounds_hold),
        cmocka_unit_test(every_truncation),
        cmocka_unit_test(bytes_behind_the_end),
        cmocka_unit_test(bit_flips),
        cmocka_unit_test(garbage),
        cmocka_unit_test(wrong_lengths),
    };

    return cmocka_run_group_tests(tests, open_env, close_env);
}
