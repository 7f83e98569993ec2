/*
 * unit/chain/test_resolve.c - shapes, types and sizes through chains, what does not fit,
 * completion, and failing allocations.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "unit/chain/chain_test.h"
#include "unit/json/fail_alloc.h"

static struct codec_env env;

static int open_env(void **state)
{
    ZR_UNUSED(state);
    return codec_env_open(&env, NULL, NULL) == ZARR_OK ? 0 : -1;
}

static int close_env(void **state)
{
    ZR_UNUSED(state);
    codec_env_close(&env);
    return 0;
}

#define BYTES "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define INDEX "\"index_codecs\":[" BYTES ",{\"name\":\"crc32c\"}]"
#define SHARD(shape, codecs)                                                             \
    "{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":" shape           \
    ",\"codecs\":" codecs "," INDEX "}}"

static zarr_status resolve(int format, const char *codecs, const char *dtype,
                           const uint64_t *dims, const zarr_limits *limits,
                           struct zr_chain_reps *reps, zarr_error *err)
{
    struct zr_chain *chain = NULL;
    zarr_chunk_spec chunk;
    zarr_status st = ZARR_OK;

    *reps = (struct zr_chain_reps){0};
    ZR_TRY(codec_env_parse(&chain, &env, format, codecs, NULL, err));
    ZR_TRY(codec_env_chunk(&chunk, &env, dtype, dims, err));
    ZR_TRY(zr_chain_resolve(reps, chain, &chunk, limits, NULL, err));
out:
    zr_chain_free(chain);
    return st;
}

static const struct {
    int format;
    const char *codecs, *dtype;
    uint64_t dims[4], n_bytes;
    uint32_t exact;
} sizes[] = {
    {3, "[" BYTES "]", "int32", {10, 10}, 400, 1},
    {3, "[\"bytes\"]", "uint8", {0}, 1, 1},
    {3, "[" BYTES ",\"crc32c\",\"crc32c\"]", "float64", {3}, 32, 1},
    {3, "[" BYTES ",\"zstd\"]", "float64", {16}, 128 + 63, 0},
    {3, "[" BYTES ",\"gzip\"]", "float64", {16}, 128 + 5 + 9 + 18, 0},
    {3, "[" BYTES ",\"numcodecs.lz4\"]", "float64", {16}, 128 + 16 + 4, 0},
    {3, "[" BYTES ",\"blosc\",\"crc32c\"]", "float64", {16}, 128 + 16 + 4, 0},
    {2,
     "[{\"id\":\"bytes\",\"endian\":\"little\"},{\"id\":\"delta\",\"dtype\":\"<i4\","
     "\"astype\""
     ":\"|i1\"},{\"id\":\"shuffle\",\"elementsize\":1}]",
     "int32",
     {8},
     8,
     1},
    {3, "[" SHARD("[5,2]", "[" BYTES "]") "]", "int16", {10, 10}, 200 + 16 * 10 + 4, 0},
    {3,
     "[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}}," SHARD(
         "[2,5]", "[" BYTES "]") "]",
     "int16",
     {10, 4},
     80 + 16 * 4 + 4,
     0},
    {3,
     "[" SHARD("[4]", "[" SHARD("[2]", "[" BYTES "]") "]") "]",
     "int16",
     {8},
     2 * (8 + 36) + 36,
     0},
};

static void sizes_are_known(void **state)
{
    ZR_UNUSED(state);
    for (size_t i = 0; i < ZR_COUNT(sizes); i++) {
        struct zr_chain_reps reps;
        zarr_error err = {0};

        if (resolve(sizes[i].format, sizes[i].codecs, sizes[i].dtype, sizes[i].dims, NULL,
                    &reps, &err) != ZARR_OK)
            fail_msg("%s: %s", sizes[i].codecs, err.message);
        assert_int_equal(reps.rep[reps.n].n_bytes, sizes[i].n_bytes);
        assert_int_equal(reps.rep[reps.n].exact, sizes[i].exact);
        zr_chain_reps_deinit(&reps);
    }
}

#define BASE64 "{\"name\":\"numcodecs.base64\"}"

static const struct {
    const char *codecs, *dtype;
    uint64_t dims[4];
    zarr_limits limits;
    zarr_status status;
    const char *says;
} bad[] = {
    {"[\"bytes\"]",
     "int16",
     {2},
     {0},
     ZARR_ERR_INVALID,
     "endian is required for type int16"},
    {"[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}}," BYTES "]",
     "int16",
     {2},
     {0},
     ZARR_ERR_INVALID,
     "order has 2 entries, the array has 1 dimensions"},
    {"[" BYTES "]", "int16", {1u << 30, 2}, {0}, ZARR_ERR_LIMIT, "limit chunk_bytes"},
    {"[{\"name\":\"zfp\",\"configuration\":{\"mode\":\"expert\",\"minbits\":16000,"
     "\"maxbits\":16658,\"maxprec\":64,\"minexp\":-1074}}]",
     "float64",
     {1u << 26},
     {0},
     ZARR_ERR_LIMIT,
     "zfp: a chunk of up to "},
    {"[" BYTES "," BASE64 "," BASE64 "," BASE64 "," BASE64 "," BASE64 "," BASE64 "]",
     "int16",
     {1u << 30},
     {0},
     ZARR_ERR_LIMIT,
     "base64: a chunk of up to "},
    {"[" BYTES "]", "int16", {1ull << 40, 1ull << 40}, {0}, ZARR_ERR_LIMIT, "64 bits"},
    {"[" BYTES "]", "int16", {2, 2, 2}, {.rank = 2}, ZARR_ERR_LIMIT, "limit rank"},
    {"[" BYTES ",{\"name\":\"numcodecs.shuffle\",\"configuration\":{\"elementsize\":3}}]",
     "int16",
     {2},
     {0},
     ZARR_ERR_INVALID,
     "not a whole number"},
    {"[" BYTES ",\"blosc\"]",
     "int16",
     {1u << 30},
     {.chunk_bytes = UINT64_MAX},
     ZARR_ERR_INVALID,
     "blosc: chunks have at most"},
    {"[{\"name\":\"numcodecs.delta\",\"configuration\":{\"dtype\":\"<i4\"}}," BYTES "]",
     "int16",
     {2},
     {0},
     ZARR_ERR_INVALID,
     "is not the array's"},
    {"[" SHARD("[3]", "[" BYTES "]") "]",
     "int16",
     {10},
     {0},
     ZARR_ERR_INVALID,
     "chunk_shape[0] 3 does not divide the shard's 10"},
    {"[" SHARD("[3,1]", "[" BYTES "]") "]",
     "int16",
     {9},
     {0},
     ZARR_ERR_INVALID,
     "2 dimensions, the shard 1"},
    {"[" SHARD("[1]", "[" BYTES "]") "]",
     "int16",
     {100},
     {.chunks_per_shard = 99},
     ZARR_ERR_LIMIT,
     "chunks_per_shard"},
    {"[" SHARD("[4]", "[" SHARD("[3]", "[" BYTES "]") "]") "]",
     "int16",
     {8},
     {0},
     ZARR_ERR_INVALID,
     "codecs[0]: sharding_indexed: codecs[0]: sharding_indexed: chunk_shape[0] 3"},
    {"[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[1],\"codecs\":"
     "[" BYTES "],\"index_codecs\":[" BYTES ",\"zstd\"]}}]",
     "int16",
     {2},
     {0},
     ZARR_ERR_INVALID,
     "index_codecs: the size of the encoded index is not fixed"},
    {"[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[1],\"codecs\":"
     "[" BYTES "],\"index_codecs\":[\"bytes\"]}}]",
     "int16",
     {2},
     {0},
     ZARR_ERR_INVALID,
     "codecs[0]: sharding_indexed: index_codecs[0]: bytes: endian is required"},
};

static void misfits_are_named(void **state)
{
    ZR_UNUSED(state);
    for (size_t i = 0; i < ZR_COUNT(bad); i++) {
        struct zr_chain_reps reps;
        zarr_error err = {0};
        zarr_status st = resolve(3, bad[i].codecs, bad[i].dtype, bad[i].dims,
                                 &bad[i].limits, &reps, &err);

        if (st != bad[i].status || !strstr(err.message, bad[i].says))
            fail_msg("%s: status %d, \"%s\"; expected %d, \"%s\"", bad[i].codecs, st,
                     err.message, bad[i].status, bad[i].says);
        assert_null(reps.rep);
    }
}

/* A shard may be larger than chunk_bytes, its inner chunks may not. */
static void shards_are_measured_inside(void **state)
{
    const uint64_t dims[] = {1u << 20, 0};
    const zarr_limits small = {.chunk_bytes = 4096}, smaller = {.chunk_bytes = 4095};
    struct zr_chain_reps reps;
    zarr_error err = {0};

    ZR_UNUSED(state);
    assert_int_equal(resolve(3, "[" SHARD("[4096]", "[" BYTES "]") "]", "int8", dims,
                             &small, &reps, &err),
                     ZARR_OK);
    zr_chain_reps_deinit(&reps);
    assert_int_equal(resolve(3, "[" SHARD("[4096]", "[" BYTES "]") "]", "int8", dims,
                             &smaller, &reps, &err),
                     ZARR_ERR_LIMIT);
}

static void shapes_and_fills_pass(void **state)
{
    static const char codecs[] =
        "[{\"name\":\"transpose\",\"configuration\":{\"order\":[2,0,1]}}," BYTES
        ",\"zstd\"]";
    struct zr_chain *chain = NULL;
    struct zr_chain_reps reps;
    zarr_chunk_spec chunk;
    const uint64_t dims[] = {2, 3, 5, 0};
    const int16_t fill = -7;

    ZR_UNUSED(state);
    assert_int_equal(codec_env_parse(&chain, &env, 3, codecs, NULL, NULL), ZARR_OK);
    assert_int_equal(codec_env_chunk(&chunk, &env, "int16", dims, NULL), ZARR_OK);
    chunk.fill = &fill;
    assert_int_equal(zr_chain_resolve(&reps, chain, &chunk, NULL, NULL, NULL), ZARR_OK);
    assert_int_equal(reps.n, 3);
    assert_int_equal(reps.rep[1].shape[0], 5);
    assert_int_equal(reps.rep[1].shape[1], 2);
    assert_int_equal(reps.rep[1].shape[2], 3);
    assert_memory_equal(reps.rep[1].fill, &fill, 2);
    assert_ptr_equal(reps.rep[1].fill, reps.fills + ZR_FILL_BYTES);
    assert_int_equal(reps.rep[2].item_bytes_hint, 2);
    assert_null(reps.rep[2].dtype);
    assert_null(reps.rep[2].fill);
    zr_chain_reps_deinit(&reps);
    zr_chain_free(chain);
}

static zarr_status resolve_to_less(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                                   zarr_chunk_spec *out, void *fill_out, zarr_error *err)
{
    ZR_UNUSED(spec);
    ZR_UNUSED(fill_out);
    ZR_UNUSED(err);
    out->shape[0] = in->shape[0] - 1;
    return ZARR_OK;
}

/* A plug-in's codec that drops elements although its flags say that it keeps them. */
static void flags_that_lie(void **state)
{
    static const zarr_codec_spec_vtable v = {.struct_size = sizeof v,
                                             .flags = ZARR_CODEC_SPEC_RESHAPES,
                                             .name = "x.lies",
                                             .kind = ZARR_CODEC_ARRAY_ARRAY,
                                             .resolve = resolve_to_less};
    const uint64_t dims[] = {2, 3, 0};
    struct zr_chain *chain = NULL;
    struct zr_chain_reps reps;
    zarr_chunk_spec chunk;
    zarr_error err = {0};

    ZR_UNUSED(state);
    assert_int_equal(zr_codec_spec_register(&env.codecs, &v, "test", NULL), ZARR_OK);
    assert_int_equal(
        codec_env_parse(&chain, &env, 3, "[\"x.lies\",\"bytes\"]", NULL, NULL), ZARR_OK);
    assert_int_equal(codec_env_chunk(&chunk, &env, "int8", dims, NULL), ZARR_OK);
    assert_int_equal(zr_chain_resolve(&reps, chain, &chunk, NULL, NULL, &err),
                     ZARR_ERR_INTERNAL);
    assert_string_equal(
        err.message, "codecs[0]: codec \"x.lies\" of test broke its contract: resolve() "
                     "changes a fact that its flags promise to keep");
    zr_chain_free(chain);
}

static zarr_status odd_status;
static const char *odd_text = "";

static zarr_status odd_canonical(const zarr_codec_spec *raw, int format, char *text,
                                 size_t cap, size_t *text_bytes, zarr_error *err)
{
    ZR_UNUSED(raw);
    ZR_UNUSED(format);
    ZR_UNUSED(err);
    *text_bytes = (size_t)snprintf(text, cap, "%s", odd_text);
    return *odd_text ? ZARR_OK : odd_status;
}

static zarr_status odd_resolve(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                               zarr_chunk_spec *out, void *fill_out, zarr_error *err)
{
    ZR_UNUSED(spec);
    ZR_UNUSED(in);
    ZR_UNUSED(out);
    ZR_UNUSED(fill_out);
    ZR_UNUSED(err);
    return odd_status;
}

/* A plug-in's codec that fails with unknown statuses, or without a message. */
static void odd_failures(void **state)
{
    static const zarr_codec_spec_vtable v = {.struct_size = sizeof v,
                                             .name = "x.odd",
                                             .kind = ZARR_CODEC_BYTES_BYTES,
                                             .canonical = odd_canonical,
                                             .resolve = odd_resolve};
    static const struct {
        zarr_status given, expected;
        const char *text;
    } rows[] = {
        {1, ZARR_ERR_INTERNAL,
         "broke its contract: it failed with status 1, which means nothing"},
        {ZARR_ERR_CANCELLED, ZARR_ERR_INTERNAL, "cancelled, but no caller cancelled it"},
        {ZARR_ERR_INVALID, ZARR_ERR_INVALID, "failed (invalid) and does not say why"},
    };
    const uint64_t dims[] = {2, 3, 0};
    struct zr_chain *chain = NULL;
    struct zr_chain_reps reps;
    zarr_chunk_spec chunk;

    ZR_UNUSED(state);
    assert_int_equal(zr_codec_spec_register(&env.codecs, &v, "acme", NULL), ZARR_OK);
    assert_int_equal(codec_env_chunk(&chunk, &env, "int8", dims, NULL), ZARR_OK);
    for (size_t i = 0; i < ZR_COUNT(rows); i++) {
        zarr_error err;

        memset(&err, 'x', sizeof err);
        odd_status = rows[i].given;
        odd_text = "";
        assert_int_equal(
            codec_env_parse(&chain, &env, 3, "[\"bytes\",\"x.odd\"]", NULL, &err),
            rows[i].expected);
        assert_non_null(strstr(err.message, "codecs[1]: codec \"x.odd\" of acme "));
        assert_non_null(strstr(err.message, rows[i].text));
        odd_text = "{}";
        assert_int_equal(
            codec_env_parse(&chain, &env, 3, "[\"bytes\",\"x.odd\"]", NULL, &err),
            ZARR_OK);
        memset(&err, 'x', sizeof err);
        assert_int_equal(zr_chain_resolve(&reps, chain, &chunk, NULL, NULL, &err),
                         rows[i].expected);
        assert_non_null(strstr(err.message, "codecs[1]: codec \"x.odd\" of acme "));
        assert_non_null(strstr(err.message, rows[i].text));
        zr_chain_free(chain);
    }
    odd_text = "[]";
    {
        zarr_error err = {0};

        assert_int_equal(
            codec_env_parse(&chain, &env, 3, "[\"bytes\",\"x.odd\"]", NULL, &err),
            ZARR_ERR_INTERNAL);
        assert_non_null(strstr(err.message, "\"x.odd\" of acme broke its contract: "
                                            "canonical() gives no object"));
    }
}

#define B64     "{\"name\":\"numcodecs.base64\"}"
#define B64_4   B64 "," B64 "," B64 "," B64
#define B64_16  B64_4 "," B64_4 "," B64_4 "," B64_4
#define RESHAPE "{\"name\":\"reshape\",\"configuration\":{\"shape\":[268435456]}}"
#define ASTYPE                                                                           \
    "{\"name\":\"numcodecs.astype\",\"configuration\":{\"encode_dtype\":\"<f8\","        \
    "\"decode_dtype\":\"|u1\"}}"

/* Codecs behind a shard are bounded as behind any other codec. A shard that is read by
 * its inner chunks is not bounded, nor are the codecs in front of it. */
static void shards_do_not_hide_sizes(void **state)
{
    static const struct {
        const char *codecs, *dtype, *says; /* NULL: it fits */
        uint64_t dim, most;
    } cases[] = {
        {"[" BYTES "," B64_16 "]", "uint8", "base64", 1 << 28, 0},
        {"[" SHARD("[268435456]", "[" BYTES "]") "," B64_16 "]", "uint8", "base64",
         1 << 28, 0},
        {"[" RESHAPE "," SHARD("[268435456]", "[" BYTES "]") "," B64_16 "]", "uint8",
         "base64", 1 << 28, 0},
        {"[" SHARD("[268435456]", "[" BYTES "," B64_16 "]") "]", "uint8", "base64",
         1 << 28, 0},
        {"[" SHARD("[268435456]", "[" BYTES "]") "," B64_4 "]", "uint8", NULL, 1 << 28,
         UINT64_C(850) << 20},
        /* never in memory all at once */
        {"[" ASTYPE "," SHARD("[1024]", "[" BYTES "]") "]", "uint8", NULL, 1 << 30,
         UINT64_MAX},
        /* the sum of the bounds of many small chunks is never allocated, nor is the
         * bound of a codec behind them */
        {"[" SHARD("[16]", "[" BYTES ",\"zstd\"]") "," B64 "]", "uint8", NULL, 1 << 28,
         UINT64_C(1088) << 20},
        /* text: no size, and yet a bound */
        {"[{\"name\":\"vlen-utf8\"}," B64_16 "]", "string", NULL, 1000,
         UINT64_C(1088) << 20},
    };
    zarr_limits limits;

    ZR_UNUSED(state);
    zarr_limits_untrusted(&limits);
    for (size_t i = 0; i < ZR_COUNT(cases); i++) {
        const uint64_t dims[] = {cases[i].dim, 0};
        struct zr_chain_reps reps = {0};
        zarr_error err = {0};
        const zarr_status st =
            resolve(3, cases[i].codecs, cases[i].dtype, dims, &limits, &reps, &err);

        if (st != (cases[i].says ? ZARR_ERR_LIMIT : ZARR_OK) ||
            (cases[i].says && !strstr(err.message, cases[i].says)))
            fail_msg("%zu: %d, %s", i, st, err.message);
        if (!cases[i].says)
            assert_true(reps.rep[reps.n].n_bytes <= cases[i].most);
        zr_chain_reps_deinit(&reps);
    }
}

static const struct {
    int format;
    const char *codecs, *dtype, *want;
} complete[] = {
    {2, "[{\"id\":\"bytes\",\"endian\":\"little\"},{\"id\":\"blosc\"}]", "int32",
     "[" BYTES ",{\"name\":\"blosc\",\"configuration\":{\"typesize\":4,\"cname\":\"lz4\","
     "\"clevel\":5,\"shuffle\":\"shuffle\",\"blocksize\":0}}]"},
    {3, "[\"bytes\",\"blosc\"]", "uint8",
     "[{\"name\":\"bytes\"},{\"name\":\"blosc\",\"configuration\":{\"typesize\":1,"
     "\"cname\":"
     "\"zstd\",\"clevel\":5,\"shuffle\":\"bitshuffle\",\"blocksize\":0}}]"},
    {3, "[" BYTES "]", "bool", "[{\"name\":\"bytes\"}]"},
    {3, "[" BYTES "]", "complex64", "[" BYTES "]"},
    {3, "[{\"name\":\"transpose\",\"configuration\":{\"order\":\"F\"}}," BYTES "]",
     "int16", "[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}}," BYTES "]"},
    {3, "[" SHARD("[2,2]", "[" BYTES ",\"blosc\"]") "]", "int8",
     "[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[2,2],"
     "\"codecs\":[{"
     "\"name\":\"bytes\"},{\"name\":\"blosc\",\"configuration\":{\"typesize\":1,"
     "\"cname\":"
     "\"zstd\",\"clevel\":5,\"shuffle\":\"bitshuffle\",\"blocksize\":0}}]," INDEX
     ",\"index_location\":\"end\"}}]"},
};

static void completes(void **state)
{
    const uint64_t dims[] = {4, 4, 0};

    ZR_UNUSED(state);
    for (size_t i = 0; i < ZR_COUNT(complete); i++) {
        struct zr_chain *chain = NULL;
        zarr_chunk_spec chunk;
        zarr_error err = {0};
        char text[1024];

        assert_int_equal(codec_env_parse(&chain, &env, complete[i].format,
                                         complete[i].codecs, NULL, NULL),
                         ZARR_OK);
        assert_int_equal(codec_env_chunk(&chunk, &env, complete[i].dtype, dims, NULL),
                         ZARR_OK);
        if (zr_chain_complete(chain, &chunk, &err) != ZARR_OK)
            fail_msg("%s: %s", complete[i].codecs, err.message);
        assert_true(codec_env_write(chain, 3, text, sizeof text));
        assert_string_equal(text, complete[i].want);
        zr_chain_free(chain);
    }
}

/* Registers, parses, resolves, completes and writes with the n-th allocation failing. */
static zarr_status everything(const zarr_allocator *alloc)
{
    static const char codecs[] =
        "[{\"name\":\"transpose\",\"configuration\":{\"order\":\"F\"}}," SHARD(
            "[2,2]", "[" BYTES ",\"blosc\",\"zstd\"]") ",\"gzip\"]";
    const uint64_t dims[] = {4, 4, 0};
    struct codec_env e;
    struct zr_chain *chain = NULL;
    struct zr_chain_reps reps = {0};
    struct zr_json_doc doc;
    zarr_chunk_spec chunk;
    zarr_status st = ZARR_OK;

    zr_json_doc_init(&doc, alloc);
    if (codec_env_open(&e, alloc, NULL) != ZARR_OK) {
        zr_json_doc_deinit(&doc);
        return ZARR_ERR_NO_MEMORY;
    }
    ZR_TRY(codec_env_parse(&chain, &e, 3, codecs, NULL, NULL));
    ZR_TRY(codec_env_chunk(&chunk, &e, "int16", dims, NULL));
    ZR_TRY(zr_chain_resolve(&reps, chain, &chunk, NULL, alloc, NULL));
    ZR_TRY(zr_chain_complete(chain, &chunk, NULL));
    if (!zr_chain_write(&doc, chain, 3))
        st = ZARR_ERR_NO_MEMORY;
out:
    zr_json_doc_deinit(&doc);
    zr_chain_reps_deinit(&reps);
    zr_chain_free(chain);
    codec_env_close(&e);
    return st;
}

static void allocations_fail(void **state)
{
    ZR_UNUSED(state);
    fail_alloc_every(everything, 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_known),
        cmocka_unit_test(misfits_are_named),
        cmocka_unit_test(shards_are_measured_inside),
        cmocka_unit_test(shapes_and_fills_pass),
        cmocka_unit_test(flags_that_lie),
        cmocka_unit_test(odd_failures),
        cmocka_unit_test(shards_do_not_hide_sizes),
        cmocka_unit_test(completes),
        cmocka_unit_test(allocations_fail),
    };

    return cmocka_run_group_tests(tests, open_env, close_env);
}
