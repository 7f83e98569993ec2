/*
 * unit/impl/test_programs.c - programs that are run: chains that compute, a transpose as
 * a stage, bytes around shards, batches, memory of a device, implementations that wrap
 * the next one, failing allocations.
 */
#include "unit/impl/made_up.h"
#include "unit/impl/program_text.h"
#include "unit/json/fail_alloc.h"

static int32_t native32(const uint8_t *at)
{
    int32_t v;

    memcpy(&v, at, sizeof v);
    return v;
}

static void computing_chain_runs(void **state)
{
    static const char *const chains[] = {
        "[" DELTA "," LITTLE "]",
        "[" DELTA "," BIG ",\"crc32c\"]",
        "[" DELTA "," TURN "," BIG ",\"zstd\"]",
        "[" TURN "," DELTA "," TURN "," TURN "," DELTA "," BIG "]",
    };
    struct impl_env env;
    int32_t data[24];

    ZR_UNUSED(state);
    assert_int_equal(impl_env_open(&env, NULL, NULL), ZARR_OK);
    for (int32_t i = 0; i < 24; i++)
        data[i] = i * i * 77 - 5;
    for (size_t k = 0; k < ZR_COUNT(chains); k++) {
        const uint64_t dims[] = {4, 6, 0};
        const struct impl_chain_args args = {
            .format = 3, .codecs = chains[k], .dtype = "int32", .dims = dims};
        struct impl_chain c;
        uint8_t *enc = NULL, *dec = NULL;
        size_t n = 0;

        assert_int_equal(impl_chain_open(&c, &env, &args, NULL), ZARR_OK);
        assert_int_equal(impl_run(c.encode, &env, data, sizeof data, &enc, &n, NULL),
                         ZARR_OK);
        if (k == 0) /* differences, in the array's order */
            assert_int_equal(native32(enc + 8), data[2] - data[1]);
        assert_int_equal(impl_run(c.decode, &env, enc, n, &dec, &n, NULL), ZARR_OK);
        assert_int_equal(n, sizeof data);
        assert_memory_equal(dec, data, n);
        free(enc);
        free(dec);
        impl_chain_close(&c);
    }
    impl_env_close(&env);
}

/* One transpose as a stage, byte by byte. */
static void transpose_stage(void **state)
{
    const char *codecs = "[" DELTA "," TURN "," LITTLE "]";
    const uint64_t dims[] = {2, 3, 0};
    const struct impl_chain_args args = {
        .format = 3, .codecs = codecs, .dtype = "int32", .dims = dims};
    const int32_t data[6] = {1, 2, 4, 8, 16, 32}, want[6] = {1, 4, 1, 8, 2, 16};
    struct impl_env env;
    struct impl_chain c;
    uint8_t *enc = NULL;
    size_t n = 0;

    ZR_UNUSED(state);
    assert_int_equal(impl_env_open(&env, NULL, NULL), ZARR_OK);
    assert_int_equal(impl_chain_open(&c, &env, &args, NULL), ZARR_OK);
    assert_int_equal(impl_run(c.encode, &env, data, sizeof data, &enc, &n, NULL),
                     ZARR_OK);
    assert_int_equal(n, sizeof want);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(native32(enc + 4 * i), want[i]);
    free(enc);
    impl_chain_close(&c);
    impl_env_close(&env);
}

static void bytes_around_shards(void **state)
{
    static const char codecs[] =
        "[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[4],"
        "\"codecs\":"
        "[" LITTLE "],\"index_codecs\":[" LITTLE "]}},\"gzip\",\"crc32c\"]";
    const struct zr_placement_options opts = {.target_device = ZARR_DEVICE_CPU};
    const uint64_t dims[] = {8, 0};
    struct impl_env env;
    struct zr_chain *chain = NULL;
    struct zr_chain_reps reps;
    struct zr_program *p = NULL;
    struct zr_str text;
    zarr_chunk_spec chunk;

    ZR_UNUSED(state);
    assert_int_equal(impl_env_open(&env, NULL, NULL), ZARR_OK);
    assert_int_equal(codec_env_parse(&chain, &env.codec, 3, codecs, NULL, NULL), ZARR_OK);
    assert_int_equal(codec_env_chunk(&chunk, &env.codec, "int32", dims, NULL), ZARR_OK);
    assert_int_equal(zr_chain_resolve(&reps, chain, &chunk, NULL, NULL, NULL), ZARR_OK);
    zr_str_init(&text, NULL);
    assert_int_equal(zr_program_make(&p, &env.impls, chain, &reps, &opts, NULL, NULL),
                     ZARR_OK); /* for a chunk that is decoded whole */
    program_print(p, &text);
    assert_string_equal(
        zr_str_text(&text),
        "crc32c@cpu.zarrc -> gzip@cpu.libdeflate -> sharding_indexed@cpu.zarrc");
    /* The implementation of a shard can ask for its configuration. */
    assert_string_equal(zarr_codec_spec_json(&p->stage[2].spec),
                        "{\"chunk_shape\":[4],\"codecs\":[" LITTLE
                        "],\"index_codecs\":[" LITTLE "],\"index_location\":\"end\"}");
    assert_int_equal(zarr_codec_spec_i64s(&p->stage[2].spec, "chunk_shape", NULL, 0), 1);
    zr_program_free(p);
    zr_str_clear(&text);
    assert_int_equal(
        zr_program_make_bytes(&p, &env.impls, chain, &reps, &opts, NULL, NULL), ZARR_OK);
    program_print(p, &text);
    assert_string_equal(zr_str_text(&text), "crc32c@cpu.zarrc -> gzip@cpu.libdeflate");
    assert_true(p->decoded_bytes >= 32 + 32);
    assert_false(p->stage[1].out_exact);
    zr_str_deinit(&text);
    zr_program_free(p);
    zr_chain_reps_deinit(&reps);
    zr_chain_free(chain);
    impl_env_close(&env);
}

static void batches_and_their_word(void **state)
{
    const struct made_up_row rows[] = {{"zstd", "cpu.test", CPU, CPU, 5, 0}, {0}};
    const uint64_t dims[] = {8, 0};
    const struct impl_chain_args args = {
        .format = 3, .codecs = "[" LITTLE ",\"zstd\"]", .dtype = "int32", .dims = dims};
    struct impl_env env;
    struct impl_chain c;
    char src[3] = {'a', 'b', 'x'};
    uint8_t dst[3][40];
    zarr_codec_job jobs[3] = {{.dst_used = 0}};
    struct zr_stage_call call = {.jobs = jobs, .n = 3, .ts = &env.threads};
    zarr_error err = {0};

    ZR_UNUSED(state);
    open_with(&env, rows);
    assert_int_equal(impl_chain_open(&c, &env, &args, NULL), ZARR_OK);
    for (size_t i = 0; i < 3; i++) {
        jobs[i].src = zr_mem_of_host(&src[i], 1);
        jobs[i].dst = zr_mem_of_host(dst[i], sizeof dst[i]);
    }
    made_up_used = 32;
    assert_int_equal(zr_stage_run(c.decode->stage, &call, false, &err), ZARR_ERR_CORRUPT);
    assert_int_equal(err.item, 2);
    assert_int_equal(jobs[0].status, ZARR_OK);
    assert_int_equal(jobs[0].dst.bytes, 32); /* the size that metadata gives */
    src[2] = 'c';
    assert_int_equal(zr_stage_run(c.decode->stage, &call, false, &err), ZARR_OK);
    made_up_used = 31;
    assert_int_equal(zr_stage_run(c.decode->stage, &call, false, &err), ZARR_ERR_CORRUPT);
    assert_string_equal(err.message, "zstd: 31 bytes, expected 32");
    made_up_used = 33;
    assert_int_equal(zr_stage_run(c.decode->stage, &call, false, &err),
                     ZARR_ERR_INTERNAL);
    assert_string_equal(
        err.message, "codec \"zstd\": \"cpu.test\" of test broke its contract: it says "
                     "that it gave more than there was room for: 33 bytes, not 32");
    jobs[1].dst.bytes = 31;
    assert_int_equal(zr_stage_run(c.decode->stage, &call, false, &err),
                     ZARR_ERR_INTERNAL);
    assert_int_equal(n_states, 1);
    impl_chain_close(&c);
    impl_env_close(&env);
    assert_int_equal(n_states, 0);
}

/* CPU implementations never access memory that is not the host's. */
static void foreign_memory(void **state)
{
    const uint64_t dims[] = {8, 0};
    const struct impl_chain_args args = {
        .format = 3, .codecs = "[" LITTLE ",\"zstd\"]", .dtype = "int32", .dims = dims};
    struct impl_env env;
    struct impl_chain c;
    uint8_t room[32];
    zarr_codec_job job = {
        .src = {.device_type = ZARR_DEVICE_EXT, .handle = &job, .bytes = 9},
        .dst = {ZARR_DEVICE_CPU, 0, room, 0, sizeof room}};

    ZR_UNUSED(state);
    assert_int_equal(impl_env_open(&env, NULL, NULL), ZARR_OK);
    assert_int_equal(impl_chain_open(&c, &env, &args, NULL), ZARR_OK);
    assert_int_equal(
        impl_run_stage(c.decode->stage, false, &env, &job, (zarr_memory){0}, NULL),
        ZARR_ERR_MEMORY_KIND);
    job.src = (zarr_memory){.device_type = ZARR_DEVICE_CPU, .bytes = 9};
    assert_int_equal(
        impl_run_stage(c.decode->stage, false, &env, &job, (zarr_memory){0}, NULL),
        ZARR_ERR_MEMORY_KIND);
    impl_chain_close(&c);
    impl_env_close(&env);
}

/* ---- implementations that wrap the next one -------------------------------------- */

static char wraps[200]; /* "wrapper>next " for each call */

static zarr_status wrap_bind(void **self, const zarr_codec_spec *spec,
                             const zarr_codec_binding *to, zarr_error *err)
{
    zarr_codec_next *next = NULL;
    const zarr_status st = zarr_codec_next_open(&next, to, err);

    ZR_UNUSED(spec);
    *self = next;
    if (st == ZARR_OK)
        snprintf(wraps + strlen(wraps), sizeof wraps - strlen(wraps), "%s>%s ", to->impl,
                 zarr_codec_next_name(next));
    return st;
}

static uint64_t wrap_scratch(void *self, uint64_t n, uint64_t max_out)
{
    return zarr_codec_next_scratch(self, n, max_out);
}

static zarr_status wrap_code(void *self, zarr_codec_job *jobs, uint64_t n,
                             zarr_codec_exec *exec, zarr_error *err)
{
    return zarr_codec_next_run(self, exec, jobs, n, err);
}

static void wrap_close(void *self)
{
    zarr_codec_next_close(self);
}

static const zarr_codec_impl_vtable wrapper = {
    .struct_size = sizeof wrapper,
    .caps = ZARR_CODEC_SAFE | ZARR_CODEC_CAN_DECODE | ZARR_CODEC_CAN_ENCODE |
            ZARR_CODEC_BATCH,
    .codec = "zstd",
    .in_kinds = CPU,
    .out_kinds = CPU,
    .bind = wrap_bind,
    .scratch = wrap_scratch,
    .encode = wrap_code,
    .decode = wrap_code,
    .close = wrap_close,
};

static void open_wrapped(struct impl_env *env, const char *const *names, int32_t priority)
{
    assert_int_equal(impl_env_open(env, NULL, NULL), ZARR_OK);
    wraps[0] = 0;
    for (; *names; names++) {
        zarr_codec_impl_vtable v = wrapper;

        v.impl = *names;
        v.priority = priority;
        assert_int_equal(zr_impl_register(&env->impls, &v, "test", NULL), ZARR_OK);
    }
}

/* Equal priorities: the first one registered wraps the second, which wraps the core's. */
static void wrappers_run_the_next(void **state)
{
    static const char *const names[] = {"cpu.first", "cpu.second", NULL};
    const uint64_t dims[] = {4, 6, 0};
    const struct impl_chain_args args = {
        .format = 3, .codecs = "[" LITTLE ",\"zstd\"]", .dtype = "int32", .dims = dims};
    struct impl_env env;
    struct impl_chain c;
    int32_t data[24] = {5, 6, 7};
    uint8_t *enc = NULL, *dec = NULL;
    zarr_error err = ZARR_ERROR_INIT;
    size_t n = 0;

    ZR_UNUSED(state);
    open_wrapped(&env, names, 50);
    assert_int_equal(impl_chain_open(&c, &env, &args, &err), ZARR_OK);
    assert_string_equal(c.decode->stage[0].impl->vt.impl, "cpu.first");
    /* bound for the stage, and once more as its fallback, in both directions */
    assert_non_null(strstr(wraps, "cpu.second>cpu.libzstd cpu.first>cpu.second "));
    assert_int_equal(impl_run(c.encode, &env, data, sizeof data, &enc, &n, &err),
                     ZARR_OK);
    assert_int_equal(impl_run(c.decode, &env, enc, n, &dec, &n, &err), ZARR_OK);
    assert_int_equal(n, sizeof data);
    assert_memory_equal(dec, data, n);
    free(dec);
    memset(enc, 7, 8); /* the error is that of the core's decoder */
    assert_int_equal(impl_run(c.decode, &env, enc, 12, &dec, &n, &err), ZARR_ERR_CORRUPT);
    assert_non_null(strstr(err.message, "zstd"));
    free(enc);
    impl_chain_close(&c);
    impl_env_close(&env);
}

/* Nothing comes after the last one: it refuses to bind, and is not used. */
static void the_last_wraps_nothing(void **state)
{
    static const char *const names[] = {"cpu.last", NULL};
    const uint64_t dims[] = {4, 0};
    const struct impl_chain_args args = {
        .format = 3, .codecs = "[" LITTLE ",\"zstd\"]", .dtype = "int32", .dims = dims};
    struct impl_env env;
    struct impl_chain c;

    ZR_UNUSED(state);
    open_wrapped(&env, names, -50);
    assert_int_equal(impl_chain_open(&c, &env, &args, NULL), ZARR_OK);
    assert_string_equal(c.decode->stage[0].impl->vt.impl, "cpu.libzstd");
    assert_null(c.decode->stage[0].fallback);
    assert_string_equal(wraps, "");
    impl_chain_close(&c);
    impl_env_close(&env);
}

/* A part of the chunks of a batch fails. One that the next one does not accept is
 * UNSUPPORTED, and one that it gives too much for is its bug. */
static void wrapped_chunks_fail_alone(void **state)
{
    static const struct made_up_row rows[] = {{"zstd", "cpu.made", CPU, CPU, 10, 0},
                                              {NULL, NULL, 0, 0, 0, 0}};
    zarr_codec_impl_vtable v = wrapper;
    const uint64_t dims[] = {4, 0};
    const struct impl_chain_args args = {
        .format = 3, .codecs = "[" LITTLE ",\"zstd\"]", .dtype = "int32", .dims = dims};
    struct impl_env env;
    struct impl_chain c;
    char in[3][128] = {"a", "b", "x"};
    uint8_t out[3][16];
    zarr_codec_job jobs[3];
    struct zr_stage_call call = {.jobs = jobs, .n = 3, .ts = &env.threads};
    zarr_error err = ZARR_ERROR_INIT;

    ZR_UNUSED(state);
    open_with(&env, rows);
    v.impl = "cpu.wrapper";
    v.priority = 50;
    wraps[0] = 0;
    assert_int_equal(zr_impl_register(&env.impls, &v, "test", NULL), ZARR_OK);
    assert_int_equal(impl_chain_open(&c, &env, &args, NULL), ZARR_OK);
    assert_non_null(strstr(wraps, "cpu.wrapper>cpu.made"));
    for (size_t i = 0; i < 3; i++)
        jobs[i] = (zarr_codec_job){.src = zr_mem_of_host(in[i], i == 1 ? 128 : 8),
                                   .dst = zr_mem_of_host(out[i], sizeof out[i])};
    made_up_used = sizeof out[0];
    assert_int_equal(zr_stage_run(&c.decode->stage[0], &call, false, &err),
                     ZARR_ERR_UNSUPPORTED);
    assert_int_equal(err.item, 1);
    assert_non_null(strstr(err.message, "\"cpu.made\" does not take the chunk"));
    assert_int_equal(jobs[0].status, ZARR_OK);
    assert_int_equal(jobs[1].status, ZARR_ERR_UNSUPPORTED);
    assert_int_equal(jobs[2].status, ZARR_ERR_CORRUPT);
    made_up_used = 17; /* more than there is room for */
    call.n = 1;
    assert_int_equal(zr_stage_run(&c.decode->stage[0], &call, false, &err),
                     ZARR_ERR_INTERNAL);
    impl_chain_close(&c);
    assert_int_equal(n_bound, 0);
    impl_env_close(&env);
}

static zarr_status everything(const zarr_allocator *alloc)
{
    static const char codecs[] = "[" TURN "," DELTA "," TURN "," BIG
                                 ",\"numcodecs.shuffle\",\"blosc\",\"zstd\",\"gzip\","
                                 "\"numcodecs.lz4\",\"crc32c\"]";
    const struct made_up_row row = {"zstd", "cpu.test", CPU, CPU, 5, 0};
    zarr_codec_impl_vtable v = made_up;
    const uint64_t dims[] = {6, 4, 0};
    const struct impl_chain_args args = {
        .format = 3, .codecs = codecs, .dtype = "int32", .dims = dims};
    struct impl_env env;
    struct impl_chain c = {0};
    int32_t data[24] = {0};
    uint8_t *enc = NULL;
    size_t n = 0;
    zarr_status st = ZARR_OK;

    v.impl = row.impl;
    v.in_kinds = v.out_kinds = CPU;
    v.priority = -5; /* last fallback, never run */
    wraps[0] = 0;
    if (impl_env_open(&env, alloc, NULL) != ZARR_OK)
        return ZARR_ERR_NO_MEMORY;
    ZR_TRY(zr_impl_register(&env.impls, &v, "test", NULL));
    v = wrapper;
    v.impl = "cpu.wrapper";
    v.priority = 50;
    ZR_TRY(zr_impl_register(&env.impls, &v, "test", NULL));
    ZR_TRY(impl_chain_open(&c, &env, &args, NULL));
    ZR_TRY(impl_run(c.encode, &env, data, sizeof data, &enc, &n, NULL));
out:
    free(enc);
    impl_chain_close(&c);
    impl_env_close(&env);
    return st;
}

static void allocations_fail(void **state)
{
    ZR_UNUSED(state);
    fail_alloc_every(everything, 20);
    assert_int_equal(n_bound, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(computing_chain_runs),
        cmocka_unit_test(transpose_stage),
        cmocka_unit_test(bytes_around_shards),
        cmocka_unit_test(batches_and_their_word),
        cmocka_unit_test(foreign_memory),
        cmocka_unit_test(wrappers_run_the_next),
        cmocka_unit_test(the_last_wraps_nothing),
        cmocka_unit_test(wrapped_chunks_fail_alone),
        cmocka_unit_test(allocations_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
