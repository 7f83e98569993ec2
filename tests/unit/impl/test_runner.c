/*
 * unit/impl/test_runner.c - chains inside codecs. The codec "box" of this test contains
 * a chain and runs it: on bytes, on arrays, on another box. Also sizes unknown to
 * metadata, decompression bombs, and headers with false sizes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <zstd.h>

#include "unit/impl/impl_test.h"

/* ---- the codec ----------------------------------------------------------- */

static zarr_status box_canonical(const zarr_codec_spec *raw, int format, char *text,
                                 size_t cap, size_t *text_bytes, zarr_error *err)
{
    const char *inner = zarr_codec_spec_chain_json(raw, "codecs");

    ZR_UNUSED(format);
    if (!inner)
        return zr_fail(err, ZARR_ERR_INVALID, "box: codecs are missing");
    *text_bytes = (size_t)snprintf(text, cap, "{\"codecs\":%s}", inner);
    return ZARR_OK;
}

static zarr_status box_resolve(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                               zarr_chunk_spec *out, void *fill_out, zarr_error *err)
{
    zarr_chunk_spec inner = {0};
    zarr_status st = ZARR_OK;

    ZR_UNUSED(fill_out);
    ZR_TRY(zarr_codec_spec_chain_resolve(spec, "codecs", in, &inner, err));
    out->n_bytes = inner.n_bytes;
    out->exact = inner.exact;
out:
    return st;
}

/* The same codec without a bound of its output. */
static zarr_status sack_resolve(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                                zarr_chunk_spec *out, void *fill_out, zarr_error *err)
{
    zarr_status st = box_resolve(spec, in, out, fill_out, err);

    out->n_bytes = UINT64_MAX;
    return st;
}

static uint32_t n_bound;

static zarr_status box_bind(void **self, const zarr_codec_spec *spec,
                            const zarr_codec_binding *to, zarr_error *err)
{
    n_bound++;
    return zarr_codec_runner_open((zarr_codec_runner **)self, spec, "codecs", to->decoded,
                                  err);
}

static void box_close(void *self)
{
    zarr_codec_runner_close(self);
}

static zarr_status box_run(void *self, zarr_codec_job *job, zarr_codec_exec *exec,
                           bool encode, zarr_error *err)
{
    zarr_memory own = {0}, twice = {0};
    zarr_status st = ZARR_OK;

    /* Decodes to memory of the thread, twice, so that results lie next to each other. */
    ZR_TRY(encode ? zarr_codec_runner_encode(self, exec, &job->src, &own, err)
                  : zarr_codec_runner_decode(self, exec, &job->src, &own, err));
    ZR_TRY(encode ? zarr_codec_runner_encode(self, exec, &job->src, &twice, err)
                  : zarr_codec_runner_decode(self, exec, &job->src, &twice, err));
    assert_int_equal(own.bytes, twice.bytes);
    if (own.bytes)
        assert_memory_equal((uint8_t *)own.handle + own.offset,
                            (uint8_t *)twice.handle + twice.offset, (size_t)own.bytes);
    own = job->dst;
    ZR_TRY(encode ? zarr_codec_runner_encode(self, exec, &job->src, &own, err)
                  : zarr_codec_runner_decode(self, exec, &job->src, &own, err));
    job->dst_used = own.bytes;
out:
    return st;
}

static zarr_status box_encode(void *self, zarr_codec_job *jobs, uint64_t n,
                              zarr_codec_exec *exec, zarr_error *err)
{
    assert_int_equal(n, 1);
    return jobs->status = box_run(self, jobs, exec, true, err);
}

static zarr_status box_decode(void *self, zarr_codec_job *jobs, uint64_t n,
                              zarr_codec_exec *exec, zarr_error *err)
{
    assert_int_equal(n, 1);
    return jobs->status = box_run(self, jobs, exec, false, err);
}

static const char *const box_chains[] = {"codecs", NULL};
#define BOX_SPEC(n, k, r)                                                                \
    {                                                                                    \
        .struct_size = sizeof(zarr_codec_spec_vtable), .name = n, .kind = k,             \
        .canonical = box_canonical, .resolve = r, .chains = box_chains,                  \
    }
#define BOX_IMPL(n)                                                                      \
    {                                                                                    \
        .struct_size = sizeof(zarr_codec_impl_vtable),                                   \
        .caps = ZARR_CODEC_SAFE | ZARR_CODEC_CAN_DECODE | ZARR_CODEC_CAN_ENCODE,         \
        .codec = n, .impl = "test", .in_kinds = ZARR_MEMORY_BIT(ZARR_DEVICE_CPU),        \
        .out_kinds = ZARR_MEMORY_BIT(ZARR_DEVICE_CPU), .bind = box_bind,                 \
        .encode = box_encode, .decode = box_decode, .close = box_close,                  \
    }
static const zarr_codec_spec_vtable box_specs[] = {
    BOX_SPEC("box", ZARR_CODEC_BYTES_BYTES, box_resolve),
    BOX_SPEC("sack", ZARR_CODEC_BYTES_BYTES, sack_resolve),
    BOX_SPEC("crate", ZARR_CODEC_ARRAY_BYTES, box_resolve),
    BOX_SPEC("bag", ZARR_CODEC_ARRAY_BYTES, sack_resolve)};
static const zarr_codec_impl_vtable box_impls[] = {BOX_IMPL("box"), BOX_IMPL("sack"),
                                                   BOX_IMPL("crate"), BOX_IMPL("bag")};

static struct impl_env env;
static zarr_error error;

static void box_open(void)
{
    assert_int_equal(impl_env_open(&env, NULL, &error), ZARR_OK);
    for (size_t i = 0; i < ZR_COUNT(box_specs); i++) {
        assert_int_equal(
            zr_codec_spec_register(&env.codec.codecs, &box_specs[i], "test", &error),
            ZARR_OK);
        assert_int_equal(zr_impl_register(&env.impls, &box_impls[i], "test", &error),
                         ZARR_OK);
    }
}

static struct impl_chain open_chain(const char *codecs, uint64_t n)
{
    const uint64_t dims[] = {n, 0};
    const struct impl_chain_args args = {
        .format = 3, .codecs = codecs, .dtype = "uint16", .dims = dims};
    struct impl_chain c;

    if (impl_chain_open(&c, &env, &args, &error) != ZARR_OK)
        fail_msg("%s: %s", codecs, error.message);
    return c;
}

/* ---- one chunk of unknown size ---- */

static struct zr_buffer buffers[ZR_UNSIZED_BUFFERS];

static zarr_status grow(const struct zr_program *p, const void *src, size_t n,
                        zarr_memory *out)
{
    const zarr_memory in = zr_mem_of_host((void *)(uintptr_t)src, n);
    struct zr_unsized g = {.ts = &env.threads, .buffer = buffers};

    return p->encode ? zr_unsized_encode(p, &g, &in, NULL, out, &error)
                     : zr_unsized_decode(p, &g, &in, NULL, out, &error);
}

static void close_all(void)
{
    for (size_t i = 0; i < ZR_COUNT(buffers); i++)
        zr_buffer_free(&buffers[i], &env.threads);
    impl_env_close(&env);
}

static void test_around(void **state)
{
    static const char *const chains[] = {
        "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}},"
        "{\"name\":\"box\",\"configuration\":{\"codecs\":[]}}]",
        "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}},"
        "{\"name\":\"box\",\"configuration\":{\"codecs\":[{\"name\":\"zstd\"},"
        "{\"name\":\"crc32c\"}]}}]",
        "[{\"name\":\"crate\",\"configuration\":{\"codecs\":[{\"name\":\"bytes\","
        "\"configuration\":{\"endian\":\"big\"}},{\"name\":\"gzip\"},"
        "{\"name\":\"crc32c\"},{\"name\":\"numcodecs.lz4\"}]}},{\"name\":\"zstd\"}]",
        "[{\"name\":\"bag\",\"configuration\":{\"codecs\":[{\"name\":\"bytes\","
        "\"configuration\":{\"endian\":\"big\"}},{\"name\":\"box\",\"configuration\":"
        "{\"codecs\":[{\"name\":\"box\",\"configuration\":{\"codecs\":"
        "[{\"name\":\"zstd\"},{\"name\":\"blosc\"}]}},{\"name\":\"zstd\"}]}}]}}]",
        "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}},{\"name\":\"sack\","
        "\"configuration\":{\"codecs\":[{\"name\":\"gzip\"}]}},{\"name\":\"zstd\"}]"};
    uint16_t data[5000];

    ZR_UNUSED(state);
    box_open();
    for (size_t i = 0; i < ZR_COUNT(data); i++)
        data[i] = (uint16_t)(i / 7);
    for (size_t i = 0; i < ZR_COUNT(chains); i++) {
        struct impl_chain c = open_chain(chains[i], ZR_COUNT(data));
        zarr_memory got = {0}, back = {0};
        char text[1024];
        uint8_t *stored = NULL;

        assert_true(codec_env_write(c.chain, 3, text, sizeof text));
        assert_int_equal(grow(c.encode, data, sizeof data, &got), ZARR_OK);
        stored = malloc((size_t)got.bytes);
        memcpy(stored, got.handle, (size_t)got.bytes);
        if (grow(c.decode, stored, (size_t)got.bytes, &back) != ZARR_OK)
            fail_msg("%s: %s", chains[i], error.message);
        assert_int_equal(back.bytes, sizeof data);
        if (i == 0) { /* only the byte order changes */
            assert_int_equal(((uint8_t *)back.handle)[0], 0);
            assert_int_equal(c.decode->swap_bytes, ZR_HOST_IS_LITTLE ? 2 : 0);
        }
        assert_memory_equal(back.handle, data, sizeof data);
        free(stored);
        /* writing it again gives the bytes read */
        {
            struct zr_chain *again = NULL;
            char second[1024];

            assert_int_equal(codec_env_parse(&again, &env.codec, 3, text, NULL, &error),
                             ZARR_OK);
            assert_true(codec_env_write(again, 3, second, sizeof second));
            assert_string_equal(text, second);
            zr_chain_free(again);
        }
        impl_chain_close(&c);
    }
    assert_int_equal(env.threads.decode.top + env.threads.encode.top, 0);
    close_all();
}

/* ---- false sizes ---- */

static void test_bombs(void **state)
{
    const char *codecs =
        "[{\"name\":\"bag\",\"configuration\":{\"codecs\":[{\"name\":\"bytes\","
        "\"configuration\":{\"endian\":\"little\"}},{\"name\":\"zstd\"}]}},"
        "{\"name\":\"zstd\"}]";
    const zarr_limits limits = {.chunk_bytes = 1 << 20};
    const zarr_chunk_spec chunk = {.ndim = 1, .shape = {8}, .exact = 1};
    struct zr_placement_options opts = {.target_device = ZARR_DEVICE_CPU};
    const size_t huge = 64 << 20;
    struct zr_chain *chain = NULL;
    struct zr_chain_reps reps = {0};
    struct zr_program *p = NULL;
    zarr_chunk_spec made_for = chunk;
    uint8_t *zeros = calloc(huge, 1), *bomb = malloc(ZSTD_compressBound(huge));
    size_t n = 0;
    zarr_memory out = {0};

    ZR_UNUSED(state);
    box_open();
    assert_int_equal(codec_env_parse(&chain, &env.codec, 3, codecs, &limits, &error),
                     ZARR_OK);
    assert_int_equal(
        zr_dtype_find(&env.codec.dtypes, "uint16", &made_for.dtype, NULL, &error),
        ZARR_OK);
    assert_int_equal(zr_chain_resolve(&reps, chain, &made_for, &limits, NULL, &error),
                     ZARR_OK);
    assert_true(reps.unsized);
    assert_int_equal(zr_program_make(&p, &env.impls, chain, &reps, &opts, NULL, &error),
                     ZARR_OK);
    assert_true(p->unsized);

    /* announced in the header: refused before decoding */
    n = ZSTD_compress(bomb, ZSTD_compressBound(huge), zeros, huge, 1);
    assert_int_equal(grow(p, bomb, n, &out), ZARR_ERR_LIMIT);
    assert_non_null(strstr(error.message, "limit chunk_bytes"));
    for (size_t i = 0; i < ZR_COUNT(buffers); i++)
        assert_true(buffers[i].bytes <= 1 << 20);
    /* not announced: detected at the limit */
    {
        ZSTD_CCtx *cctx = ZSTD_createCCtx();

        ZSTD_CCtx_setParameter(cctx, ZSTD_c_contentSizeFlag, 0);
        n = ZSTD_compress2(cctx, bomb, ZSTD_compressBound(huge), zeros, huge);
        ZSTD_freeCCtx(cctx);
    }
    assert_int_equal(grow(p, bomb, n, &out), ZARR_ERR_LIMIT);
    for (size_t i = 0; i < ZR_COUNT(buffers); i++)
        assert_true(buffers[i].bytes <= 2 << 20);
    /* inside: the elements have 16 bytes, whatever the header says */
    {
        uint8_t inner[256], outer[512];

        n = ZSTD_compress(inner, sizeof inner, zeros, 18, 1);
        n = ZSTD_compress(outer, sizeof outer, inner, n, 1);
        assert_int_equal(grow(p, outer, n, &out), ZARR_ERR_CORRUPT);
    }
    assert_int_equal(env.threads.decode.top + env.threads.encode.top, 0);
    zr_program_free(p);
    zr_chain_reps_deinit(&reps);
    zr_chain_free(chain);
    free(bomb);
    free(zeros);
    close_all();
}

/* ---- arrays of any length ------------------------------------------------ */

static void varies(enum zr_direction runs)
{
    const char *codecs =
        "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}},"
        "{\"name\":\"box\",\"configuration\":{\"codecs\":[{\"name\":\"transpose\","
        "\"configuration\":{\"order\":[0]}},{\"name\":\"bytes\",\"configuration\":"
        "{\"endian\":\"big\"}},{\"name\":\"zstd\"}]}}]";
    struct zr_chain *chain = NULL;
    zarr_codec_spec stage;
    zarr_chunk_spec spec = {.struct_size = sizeof spec, .ndim = 1, .shape = {1000}};
    zarr_codec_runner *r = NULL;
    zarr_codec_exec exec = {.struct_size = sizeof exec, .inner = &env.threads};
    uint32_t data[1000], back[1000];

    box_open();
    assert_int_equal(codec_env_parse(&chain, &env.codec, 3, codecs, NULL, &error),
                     ZARR_OK);
    assert_int_equal(
        zr_dtype_find(&env.codec.dtypes, "uint32", &spec.dtype, NULL, &error), ZARR_OK);
    stage = chain->codec[1];
    stage.direction = runs;
    if (zarr_codec_runner_open(&r, &stage, "codecs", &spec, &error) != ZARR_OK)
        fail_msg("%s", error.message);
    for (uint32_t i = 0; i < 1000; i++)
        data[i] = i * 77;
    for (uint64_t n = 0; n <= 1000; n = n * 3 + 1) {
        zarr_memory src = zr_mem_of_host(data, n * 4), got = {0};
        zarr_memory dst = zr_mem_of_host(back, n * 4);

        assert_int_equal(zarr_codec_runner_encode(r, &exec, &src, &got, &error), ZARR_OK);
        assert_int_equal(zarr_codec_runner_decode(r, &exec, &got, &dst, &error), ZARR_OK);
        assert_int_equal(dst.bytes, n * 4);
        assert_memory_equal(back, data, (size_t)n * 4);
        if (n > 1) {
            dst = zr_mem_of_host(back, n * 4 - 4);
            exec.flags = 0;
            assert_int_equal(zarr_codec_runner_decode(r, &exec, &got, &dst, &error),
                             ZARR_ERR_CORRUPT);
            assert_int_equal(exec.flags, ZARR_CODEC_JOB_NO_ROOM);
        }
        env.threads.decode.top = env.threads.encode.top = 0; /* as a stage does */
    }
    zarr_codec_runner_close(r);
    zr_chain_free(chain);
    close_all();
}

/* A stage that decodes may use its runner to encode, and the reverse. */
static void test_varies(void **state)
{
    ZR_UNUSED(state);
    varies(ZR_DIRECTION_BOTH);
    varies(ZR_DIRECTION_DECODE);
    varies(ZR_DIRECTION_ENCODE);
}

/* ---- threads ---------------------------------------------------------------------- */

struct sharer {
    const zarr_codec_runner *runner;
    struct zr_thread_states threads;
    uint32_t data[500];
    bool same;
};

/* Both directions: one of them was not used before. */
static void *share(void *arg)
{
    struct sharer *s = arg;
    zarr_codec_exec exec = {.struct_size = sizeof exec, .inner = &s->threads};
    zarr_memory src = zr_mem_of_host(s->data, sizeof s->data), got = {0}, back = {0};

    s->same = zarr_codec_runner_encode(s->runner, &exec, &src, &got, NULL) == ZARR_OK &&
              zarr_codec_runner_decode(s->runner, &exec, &got, &back, NULL) == ZARR_OK &&
              back.bytes == sizeof s->data &&
              memcmp((uint8_t *)back.handle + back.offset, s->data, sizeof s->data) == 0;
    s->threads.decode.top = s->threads.encode.top = 0;
    return NULL;
}

static void test_threads(void **state)
{
    const char *codecs =
        "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}},"
        "{\"name\":\"box\",\"configuration\":{\"codecs\":[{\"name\":\"bytes\","
        "\"configuration\":{\"endian\":\"big\"}},{\"name\":\"zstd\"}]}}]";
    zarr_chunk_spec spec = {.struct_size = sizeof spec, .ndim = 1, .shape = {500}};
    static struct sharer sharers[4];

    ZR_UNUSED(state);
    box_open();
    assert_int_equal(
        zr_dtype_find(&env.codec.dtypes, "uint32", &spec.dtype, NULL, &error), ZARR_OK);
    for (int round = 0; round < 20; round++) {
        struct zr_chain *chain = NULL;
        zarr_codec_spec stage;
        zarr_codec_runner *r = NULL;
        zr_thread thread[ZR_COUNT(sharers)];

        assert_int_equal(codec_env_parse(&chain, &env.codec, 3, codecs, NULL, &error),
                         ZARR_OK);
        stage = chain->codec[1];
        stage.direction = round % 2 ? ZR_DIRECTION_DECODE : ZR_DIRECTION_ENCODE;
        assert_int_equal(zarr_codec_runner_open(&r, &stage, "codecs", &spec, &error),
                         ZARR_OK);
        for (size_t i = 0; i < ZR_COUNT(sharers); i++) {
            sharers[i] = (struct sharer){.runner = r};
            for (uint32_t k = 0; k < ZR_COUNT(sharers[i].data); k++)
                sharers[i].data[k] = k * (uint32_t)(i + 3);
            assert_int_equal(zr_thread_start(&thread[i], share, &sharers[i], &error),
                             ZARR_OK);
        }
        for (size_t i = 0; i < ZR_COUNT(sharers); i++) {
            zr_thread_join(&thread[i]);
            assert_true(sharers[i].same);
            zr_thread_states_close(&env.impls, &sharers[i].threads);
        }
        zarr_codec_runner_close(r);
        zr_chain_free(chain);
    }
    close_all();
}

/* ---- depth ----------------------------------------------------------------------- */

#define BOX "{\"name\":\"box\",\"configuration\":{\"codecs\":["
#define END "]}}"

/* Each codec that contains others has one runner a direction, not two for each codec
 * around it. */
static void test_binds_once_each_way(void **state)
{
    const char *codecs =
        "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}," BOX BOX BOX BOX
            BOX BOX BOX BOX "\"crc32c\"" END END END END END END END END "]";
    struct impl_chain c;

    ZR_UNUSED(state);
    box_open();
    n_bound = 0;
    c = open_chain(codecs, 4);
    assert_int_equal(n_bound, 16);
    {
        const uint16_t data[4] = {1, 2, 3, 4};
        zarr_memory got = {0};
        uint8_t stored[12];

        assert_int_equal(grow(c.encode, data, sizeof data, &got), ZARR_OK);
        assert_int_equal(got.bytes, sizeof stored);
        memcpy(stored, (uint8_t *)got.handle + got.offset, sizeof stored);
        assert_int_equal(grow(c.decode, stored, sizeof stored, &got), ZARR_OK);
        assert_memory_equal((uint8_t *)got.handle + got.offset, data, sizeof data);
    }
    assert_int_equal(n_bound, 16);
    impl_chain_close(&c);
    close_all();
}

static void test_refusals(void **state)
{
    static const struct {
        const char *codecs;
        zarr_status st;
        const char *says;
    } cases[] = {
        {"[\"bytes\",{\"name\":\"box\"}]", ZARR_ERR_INVALID, "codecs are missing"},
        {"[\"bytes\",{\"name\":\"box\",\"configuration\":{\"codecs\":7}}]",
         ZARR_ERR_INVALID, "a list is expected"},
        {"[\"bytes\",{\"name\":\"box\",\"configuration\":{\"codecs\":[\"nope\"]}}]",
         ZARR_ERR_UNSUPPORTED, "nope"},
        {"[\"bytes\",{\"name\":\"box\",\"configuration\":{\"codecs\":[\"crc32c\","
         "\"bytes\"]}}]",
         ZARR_ERR_INVALID, "bytes come before it"},
        {"[\"bytes\",{\"name\":\"box\",\"configuration\":{\"codecs\":[{\"name\":"
         "\"transpose\",\"configuration\":{\"order\":[0]}}]}}]",
         ZARR_ERR_INVALID, "an array->bytes codec such as"},
    };
    char deep[8192];
    struct zr_chain *chain = NULL;
    size_t at = 0;

    ZR_UNUSED(state);
    box_open();
    for (size_t i = 0; i < ZR_COUNT(cases); i++) {
        assert_int_equal(
            codec_env_parse(&chain, &env.codec, 3, cases[i].codecs, NULL, &error),
            cases[i].st);
        if (!strstr(error.message, cases[i].says))
            fail_msg("\"%s\" lacks \"%s\"", error.message, cases[i].says);
    }
    /* An array codec does not accept bytes, nor a bytes codec an array: resolving
     * fails. */
    {
        const uint64_t dims[] = {8, 0};
        struct impl_chain c;
        struct impl_chain_args args = {
            .format = 3,
            .dtype = "uint8",
            .dims = dims,
            .codecs = "[{\"name\":\"crate\",\"configuration\":{\"codecs\":[\"zstd\"]}}]"};

        assert_int_equal(impl_chain_open(&c, &env, &args, &error), ZARR_ERR_INVALID);
        args.codecs =
            "[\"bytes\",{\"name\":\"box\",\"configuration\":{\"codecs\":[\"bytes\"]}}]";
        assert_int_equal(impl_chain_open(&c, &env, &args, &error), ZARR_ERR_INVALID);
    }
    /* The limit for the number of codecs limits the depth. */
    at += (size_t)snprintf(deep, sizeof deep, "[\"bytes\"");
    for (int i = 0; i < 40; i++)
        at += (size_t)snprintf(deep + at, sizeof deep - at,
                               "%s{\"name\":\"box\",\"configuration\":{\"codecs\":[",
                               i ? "" : ",");
    for (int i = 0; i < 40; i++)
        at += (size_t)snprintf(deep + at, sizeof deep - at, "]}}");
    (void)snprintf(deep + at, sizeof deep - at, "]");
    {
        const zarr_status st = codec_env_parse(&chain, &env.codec, 3, deep, NULL, &error);

        assert_true(st == ZARR_ERR_LIMIT);
    }
    close_all();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_around),   cmocka_unit_test(test_bombs),
        cmocka_unit_test(test_varies),   cmocka_unit_test(test_binds_once_each_way),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
