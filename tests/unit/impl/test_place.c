/*
 * unit/impl/test_place.c - placement: the chosen implementations and the memory of
 * buffers, with made-up implementations for a device. Also programs of chains that
 * compute, fallbacks, refusals, state of threads, failing allocations.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/impl/impl_test.h"
#include "unit/impl/program_text.h"
#include "unit/json/fail_alloc.h"

#define EXT ZARR_MEMORY_BIT(ZARR_DEVICE_EXT)
#define CPU ZARR_MEMORY_BIT(ZARR_DEVICE_CPU)

/* ---- made-up implementations --------------------------------------------- */

static int n_bound, n_states, refuse_to_bind;

static zarr_status made_up_bind(void **self, const zarr_codec_spec *spec,
                                const zarr_codec_binding *to, zarr_error *err)
{
    ZR_UNUSED(spec);
    ZR_UNUSED(to);
    if (refuse_to_bind)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED, "made-up: not this one");
    n_bound++;
    *self = &n_bound;
    return ZARR_OK;
}

static void made_up_close(void *self)
{
    assert_ptr_equal(self, &n_bound);
    n_bound--;
}

static int made_up_accepts(void *self, const zarr_codec_job *job)
{
    ZR_UNUSED(self);
    return job->src.bytes < 100;
}

static zarr_status made_up_open(void *self, void **state, zarr_error *err)
{
    ZR_UNUSED(self);
    ZR_UNUSED(err);
    n_states++;
    *state = &n_states;
    return ZARR_OK;
}

static void made_up_close_state(void *state)
{
    assert_ptr_equal(state, &n_states);
    n_states--;
}

static uint64_t made_up_used;

/* Produces made_up_used bytes, or fails for chunks that begin with 'x'. */
static zarr_status made_up_code(void *self, zarr_codec_job *jobs, uint64_t n,
                                zarr_codec_exec *exec, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    ZR_UNUSED(self);
    assert_ptr_equal(exec->thread_state, &n_states);
    for (uint64_t i = 0; i < n; i++) {
        jobs[i].dst_used = made_up_used;
        if (*(const char *)jobs[i].src.handle == 'x')
            st = jobs[i].status = zr_fail(err, ZARR_ERR_CORRUPT, "made-up: x");
    }
    return st;
}

static const zarr_codec_impl_vtable made_up = {
    .struct_size = sizeof(zarr_codec_impl_vtable),
    .caps = ZARR_CODEC_CAN_DECODE | ZARR_CODEC_CAN_ENCODE | ZARR_CODEC_BATCH,
    .codec = "zstd",
    .impl = "ext.test",
    .in_kinds = EXT,
    .out_kinds = EXT,
    .bind = made_up_bind,
    .accepts = made_up_accepts,
    .thread_open = made_up_open,
    .thread_close = made_up_close_state,
    .encode = made_up_code,
    .decode = made_up_code,
    .close = made_up_close,
};

struct made_up_row {
    const char *codec, *impl;
    uint32_t in, out;
    int32_t priority;
    uint32_t caps; /* 0: encodes and decodes */
};

static void open_with(struct impl_env *env, const struct made_up_row *rows)
{
    assert_int_equal(impl_env_open(env, NULL, NULL), ZARR_OK);
    for (; rows->codec; rows++) {
        zarr_codec_impl_vtable v = made_up;

        v.codec = rows->codec;
        v.impl = rows->impl;
        v.in_kinds = rows->in;
        v.out_kinds = rows->out;
        v.priority = rows->priority;
        if (rows->caps)
            v.caps = rows->caps;
        assert_int_equal(zr_impl_register(&env->impls, &v, "test", NULL), ZARR_OK);
    }
}

/* ---- placement ----------------------------------------------------------- */

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#    define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#    define BIG    "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}"
#else /* the structure, and the bytes to swap */
#    define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}"
#    define BIG    "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#endif
#define TURN  "{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}}"
#define DELTA "{\"name\":\"numcodecs.delta\",\"configuration\":{\"dtype\":\"<i4\"}}"

static const struct {
    struct made_up_row rows[4];
    const char *codecs;
    int32_t target;
    const char *preference, *decode, *encode;
} placed[] = {
    {{{0}}, "[" LITTLE "]", 1, NULL, "raw", "raw"},
    {{{0}}, "[" LITTLE "]", 12, NULL, "raw", "raw"},
    {{{0}},
     "[" TURN "," BIG "]",
     1,
     NULL,
     "swap 4 -> transpose(1,0)",
     "swap 4 -> transpose(1,0)"},
    {{{0}}, "[" TURN "," TURN "," LITTLE "]", 1, NULL, "raw", "raw"},
    {{{0}},
     "[" BIG ",\"zstd\",\"crc32c\"]",
     1,
     NULL,
     "crc32c@cpu.zarrc -> zstd@cpu.libzstd -> swap 4",
     "swap 4 -> zstd@cpu.libzstd -> crc32c@cpu.zarrc"},
    /* No implementation on the device: decode on the host, then copy. */
    {{{0}},
     "[" LITTLE ",\"zstd\"]",
     12,
     NULL,
     "zstd@cpu.libzstd -> copy host->ext",
     "copy ext->host -> zstd@cpu.libzstd"},
    /* The compressed bytes are copied to the device. */
    {{{"zstd", "ext.test", EXT, EXT, 0, 0}},
     "[" LITTLE ",\"zstd\",\"crc32c\"]",
     12,
     NULL,
     "crc32c@cpu.zarrc -> copy host->ext -> zstd@ext.test/cpu.libzstd",
     "zstd@ext.test/cpu.libzstd -> copy ext->host -> crc32c@cpu.zarrc"},
    {{{"zstd", "ext.test", EXT, EXT, -1, 0}},
     "[" LITTLE ",\"zstd\"]",
     12,
     NULL,
     "copy host->ext -> zstd@ext.test/cpu.libzstd",
     "zstd@ext.test/cpu.libzstd -> copy ext->host"},
    {{{"zstd", "ext.slow", EXT, EXT, 1, 0}, {"zstd", "ext.test", EXT, EXT, 2, 0}},
     "[" LITTLE ",\"zstd\"]",
     12,
     NULL,
     "copy host->ext -> zstd@ext.test/cpu.libzstd",
     "zstd@ext.test/cpu.libzstd -> copy ext->host"},
    /* Stay on the host if the elements are wanted there, or if a preference says so. */
    {{{"zstd", "ext.test", EXT, EXT, 100, 0}},
     "[" LITTLE ",\"zstd\"]",
     1,
     NULL,
     "zstd@cpu.libzstd",
     "zstd@cpu.libzstd"},
    {{{"zstd", "ext.test", EXT, EXT, 0, 0}},
     "[" LITTLE ",\"zstd\"]",
     12,
     "zstd=cpu",
     "zstd@cpu.libzstd -> copy host->ext",
     "copy ext->host -> zstd@cpu.libzstd"},
    {{{"zstd", "ext.test", EXT, EXT, 0, 0}},
     "[" LITTLE ",\"zstd\"]",
     12,
     " gzip = a ; zstd = unknown , cpu.libzstd, ext ;",
     "zstd@cpu.libzstd -> copy host->ext",
     "copy ext->host -> zstd@cpu.libzstd"},
    /* A device codec behind a host codec: two more copies cost more than staying on the
     * host. */
    {{{"gzip", "ext.test", EXT, EXT, 0, 0}},
     "[" LITTLE ",\"zstd\",\"gzip\"]",
     12,
     NULL,
     "gzip@cpu.libdeflate -> zstd@cpu.libzstd -> copy host->ext",
     "copy ext->host -> zstd@cpu.libzstd -> gzip@cpu.libdeflate"},
    /* An implementation that reads host memory and writes device memory. */
    {{{"zstd", "ext.test", CPU, EXT, 0, 0}},
     "[" LITTLE ",\"zstd\"]",
     12,
     NULL,
     "zstd@ext.test/cpu.libzstd",
     "zstd@ext.test/cpu.libzstd"},
    /* An implementation that only decodes. */
    {{{"zstd", "ext.test", EXT, EXT, 0, ZARR_CODEC_CAN_DECODE}},
     "[" LITTLE ",\"zstd\"]",
     12,
     NULL,
     "copy host->ext -> zstd@ext.test/cpu.libzstd",
     "copy ext->host -> zstd@cpu.libzstd"},
    /* Decode directly into memory that the host shares. */
    {{{0}}, "[" LITTLE ",\"zstd\"]", 3, NULL, "zstd@cpu.libzstd", "zstd@cpu.libzstd"},
    /* A better host implementation that does not accept every job, so it has a
     * fallback. */
    {{{"zstd", "cpu.test", CPU, CPU, 5, 0}},
     "[" LITTLE ",\"zstd\"]",
     1,
     NULL,
     "zstd@cpu.test/cpu.libzstd",
     "zstd@cpu.test/cpu.libzstd"},
    /* Chains that compute: only transposes in front of the first such codec cost
     * nothing. */
    {{{0}},
     "[" DELTA "," LITTLE "]",
     1,
     NULL,
     "numcodecs.delta@cpu.zarrc",
     "numcodecs.delta@cpu.zarrc"},
    {{{0}},
     "[" TURN "," DELTA "," TURN "," BIG ",\"zstd\"]",
     1,
     NULL,
     "zstd@cpu.libzstd -> bytes@cpu.zarrc -> transpose@cpu.zarrc -> "
     "numcodecs.delta@cpu.zarrc -> transpose(1,0)",
     "transpose(1,0) -> numcodecs.delta@cpu.zarrc -> transpose@cpu.zarrc -> "
     "bytes@cpu.zarrc -> zstd@cpu.libzstd"},
};

static void places(void **state)
{
    ZR_UNUSED(state);
    for (size_t i = 0; i < ZR_COUNT(placed); i++) {
        const uint64_t dims[] = {6, 4, 0};
        const struct impl_chain_args args = {.format = 3,
                                             .codecs = placed[i].codecs,
                                             .dtype = "int32",
                                             .dims = dims,
                                             .target_device = placed[i].target,
                                             .preference = placed[i].preference};
        struct impl_env env;
        struct impl_chain c;
        struct zr_str text;
        zarr_error err = {0};

        open_with(&env, placed[i].rows);
        zr_str_init(&text, NULL);
        if (impl_chain_open(&c, &env, &args, &err) != ZARR_OK)
            fail_msg("row %zu: %s", i, err.message);
        program_print(c.decode, &text);
        assert_string_equal(zr_str_text(&text), placed[i].decode);
        zr_str_clear(&text);
        program_print(c.encode, &text);
        assert_string_equal(zr_str_text(&text), placed[i].encode);
        assert_int_equal(c.decode->decoded_bytes, 96);
        assert_int_equal(c.decode->raw, c.decode->n == 0);
        zr_str_deinit(&text);
        impl_chain_close(&c);
        impl_env_close(&env);
        assert_int_equal(n_bound, 0);
    }
}

static void stores_that_reach_the_device(void **state)
{
    const struct made_up_row rows[] = {{"zstd", "ext.test", EXT, EXT, 0, 0}, {0}};
    const int32_t reach[] = {ZARR_DEVICE_EXT};
    const uint64_t dims[] = {8, 0};
    const struct zr_placement_options opts = {
        .target_device = ZARR_DEVICE_EXT, .store_devices = reach, .n_store_devices = 1};
    struct impl_chain_args args = {
        .format = 3, .codecs = "[" LITTLE ",\"zstd\"]", .dtype = "int32", .dims = dims};
    struct impl_env env;
    struct impl_chain c;
    struct zr_program *p = NULL;

    ZR_UNUSED(state);
    open_with(&env, rows);
    assert_int_equal(impl_chain_open(&c, &env, &args, NULL), ZARR_OK);
    assert_int_equal(zr_program_make(&p, &env.impls, c.chain, &c.reps, &opts, NULL, NULL),
                     ZARR_OK);
    assert_int_equal(p->n, 1); /* no copy at all */
    assert_int_equal(p->fetch_device, ZARR_DEVICE_EXT);
    zr_program_free(p);
    impl_chain_close(&c);
    args.codecs = "[" LITTLE "]";
    assert_int_equal(impl_chain_open(&c, &env, &args, NULL), ZARR_OK);
    assert_int_equal(zr_program_make(&p, &env.impls, c.chain, &c.reps, &opts, NULL, NULL),
                     ZARR_OK);
    assert_true(p->raw && p->fetch_device == ZARR_DEVICE_EXT &&
                p->decoded_device == ZARR_DEVICE_EXT);
    zr_program_free(p);
    impl_chain_close(&c);
    impl_env_close(&env);
}

/* If only decoding tells the size, buffers grow, and only host buffers can. */
static void no_device_without_sizes(void **state)
{
    const struct made_up_row rows[] = {{"zstd", "ext.test", EXT, EXT, 50, 0}, {0}};
    const int32_t reach[] = {ZARR_DEVICE_EXT};
    const uint64_t dims[] = {8, 0};
    struct zr_placement_options opts = {.target_device = ZARR_DEVICE_CPU,
                                        .store_devices = reach,
                                        .n_store_devices = 1,
                                        .preference = "zstd=ext"};
    const struct impl_chain_args args = {.format = 3,
                                         .codecs = "[\"vlen-utf8\",\"zstd\"]",
                                         .dtype = "string",
                                         .dims = dims};
    struct impl_env env;
    struct impl_chain c;

    ZR_UNUSED(state);
    open_with(&env, rows);
    assert_int_equal(impl_chain_open(&c, &env, &args, NULL), ZARR_OK);
    for (int encode = 0; encode < 2; encode++) {
        struct zr_program *p = NULL;

        opts.encode = encode;
        assert_int_equal(
            zr_program_make(&p, &env.impls, c.chain, &c.reps, &opts, NULL, NULL),
            ZARR_OK);
        assert_true(p->unsized);
        assert_int_equal(p->n, 2);
        for (uint32_t i = 0; i < p->n; i++) {
            assert_int_equal(p->stage[i].kind, ZR_STAGE_CODEC);
            assert_int_equal(p->stage[i].in_device, ZARR_DEVICE_CPU);
            assert_int_equal(p->stage[i].out_device, ZARR_DEVICE_CPU);
        }
        assert_int_equal(p->fetch_device, ZARR_DEVICE_CPU);
        zr_program_free(p);
    }
    impl_chain_close(&c);
    impl_env_close(&env);
}

static void fallback_of_a_stage(void **state)
{
    const struct made_up_row rows[] = {
        {"zstd", "ext.test", EXT, EXT, 0, 0}, {"zstd", "cpu.test", CPU, CPU, 9, 0}, {0}};
    const uint64_t dims[] = {8, 0};
    const struct impl_chain_args args = {.format = 3,
                                         .codecs = "[" LITTLE ",\"zstd\"]",
                                         .dtype = "int32",
                                         .dims = dims,
                                         .target_device = ZARR_DEVICE_EXT,
                                         .preference = "zstd=ext"};
    struct impl_env env;
    struct impl_chain c;
    const struct zr_stage *s = NULL;
    zarr_codec_job job = {.src = {.bytes = 99}};

    ZR_UNUSED(state);
    open_with(&env, rows);
    assert_int_equal(impl_chain_open(&c, &env, &args, NULL), ZARR_OK);
    s = &c.decode->stage[1];
    assert_true(zr_stage_accepts(s, &job));
    job.src.bytes = 100;
    assert_false(zr_stage_accepts(s, &job));
    s = s->fallback; /* does not accept every job, as well */
    assert_string_equal(s->impl->vt.impl, "cpu.test");
    assert_int_equal(s->in_device, ZARR_DEVICE_CPU);
    assert_int_equal(s->out_bytes, 32);
    s = s->fallback;
    assert_string_equal(s->impl->vt.impl, "cpu.libzstd");
    assert_true(zr_stage_accepts(s, &job));
    assert_null(s->fallback);
    impl_chain_close(&c);
    impl_env_close(&env);
}

static void refusals(void **state)
{
    const struct made_up_row rows[] = {{"zstd", "ext.test", EXT, EXT, 0, 0},
                                       {"x.only", "ext.test", EXT, EXT, 0, 0},
                                       {0}};
    const zarr_codec_spec_vtable only = {
        .struct_size = sizeof only, .name = "x.only", .kind = ZARR_CODEC_BYTES_BYTES};
    const zarr_codec_spec_vtable none = {
        .struct_size = sizeof none, .name = "x.none", .kind = ZARR_CODEC_BYTES_BYTES};
    const uint64_t dims[] = {8, 0};
    struct impl_chain_args args = {.format = 3,
                                   .codecs = "[" LITTLE ",\"zstd\"]",
                                   .dtype = "int32",
                                   .dims = dims,
                                   .target_device = ZARR_DEVICE_EXT};
    struct impl_env env;
    struct impl_chain c;
    zarr_error err = {0};

    ZR_UNUSED(state);
    open_with(&env, rows);
    assert_int_equal(zr_codec_spec_register(&env.codec.codecs, &only, "test", NULL),
                     ZARR_OK);
    assert_int_equal(zr_codec_spec_register(&env.codec.codecs, &none, "test", NULL),
                     ZARR_OK);
    refuse_to_bind = 1; /* the next best is chosen */
    assert_int_equal(impl_chain_open(&c, &env, &args, NULL), ZARR_OK);
    assert_string_equal(c.decode->stage[0].impl->vt.impl, "cpu.libzstd");
    impl_chain_close(&c);
    /* No other exists: the message is its reason. */
    args.codecs = "[" LITTLE ",\"x.only\"]";
    assert_int_equal(impl_chain_open(&c, &env, &args, &err), ZARR_ERR_UNSUPPORTED);
    assert_string_equal(err.message, "made-up: not this one");
    refuse_to_bind = 0;
    args.codecs = "[" LITTLE ",\"x.none\"]";
    assert_int_equal(impl_chain_open(&c, &env, &args, &err), ZARR_ERR_UNSUPPORTED);
    assert_string_equal(
        err.message,
        "codec \"x.none\": no implementation decodes here (none is registered)");
    args.codecs = "[" LITTLE ",\"zstd\"]";
    args.preference = "zstd";
    assert_int_equal(impl_chain_open(&c, &env, &args, &err), ZARR_ERR_INVALID);
    args.preference = "zstd=a=b";
    assert_int_equal(impl_chain_open(&c, &env, &args, &err), ZARR_ERR_INVALID);
    args.preference = "=a";
    assert_int_equal(impl_chain_open(&c, &env, &args, &err), ZARR_ERR_INVALID);
    args.preference = "zstd=a,,b";
    assert_int_equal(impl_chain_open(&c, &env, &args, &err), ZARR_ERR_INVALID);
    impl_env_close(&env);
}

/* An implementation of a name's v2 codec does not implement its v3 codec. */
static void formats(void **state)
{
    const uint32_t caps = made_up.caps | ZARR_CODEC_FOR_V2;
    const struct made_up_row rows[] = {{"scale_offset", "ext.v2", CPU, CPU, 9, caps},
                                       {0}};
    const zarr_codec_spec_vtable v2 = {.struct_size = sizeof v2,
                                       .name = "scale_offset",
                                       .flags = ZARR_CODEC_SPEC_V2,
                                       .kind = ZARR_CODEC_BYTES_BYTES};
    const uint64_t dims[] = {8, 0};
    struct impl_chain_args args = {
        .dtype = "int32", .dims = dims, .preference = "scale_offset=ext.v2"};
    struct impl_env env;
    struct impl_chain c;
    zarr_error err = {0};

    ZR_UNUSED(state);
    open_with(&env, (const struct made_up_row[]){{0}});
    assert_int_equal(zr_codec_spec_register(&env.codec.codecs, &v2, "test", NULL),
                     ZARR_OK);
    args.format = 2; /* the core's is for v3 */
    args.codecs = "[{\"id\":\"bytes\",\"endian\":\"little\"},{\"id\":\"scale_offset\"}]";
    assert_int_equal(impl_chain_open(&c, &env, &args, &err), ZARR_ERR_UNSUPPORTED);
    assert_string_equal(
        err.message,
        "codec \"scale_offset\": no implementation decodes here (none is registered)");
    impl_env_close(&env);

    open_with(&env, rows);
    assert_int_equal(zr_codec_spec_register(&env.codec.codecs, &v2, "test", NULL),
                     ZARR_OK);
    assert_int_equal(impl_chain_open(&c, &env, &args, &err), ZARR_OK);
    assert_string_equal(c.decode->stage[0].impl->vt.impl, "ext.v2");
    impl_chain_close(&c);
    args.format = 3;
    args.codecs =
        "[{\"name\":\"scale_offset\",\"configuration\":{\"offset\":1}}," LITTLE "]";
    assert_int_equal(impl_chain_open(&c, &env, &args, &err), ZARR_OK);
    assert_string_equal(c.decode->stage[0].impl->vt.impl, "cpu.zarrc");
    impl_chain_close(&c);
    impl_env_close(&env);
}

static void registration(void **state)
{
    struct impl_env env;
    zarr_codec_impl_vtable v = made_up;

    ZR_UNUSED(state);
    assert_int_equal(impl_env_open(&env, NULL, NULL), ZARR_OK);
    assert_int_equal(zr_impl_register(&env.impls, &v, "test", NULL), ZARR_OK);
    assert_int_equal(zr_impl_register(&env.impls, &v, "test", NULL), ZARR_ERR_EXISTS);
    v.impl = "other";
    v.decode = NULL;
    assert_int_equal(zr_impl_register(&env.impls, &v, "test", NULL), ZARR_ERR_INVALID);
    v = made_up;
    v.impl = "";
    assert_int_equal(zr_impl_register(&env.impls, &v, "test", NULL), ZARR_ERR_INVALID);
    v = made_up;
    v.struct_size = 0;
    assert_int_equal(zr_impl_register(&env.impls, &v, "test", NULL), ZARR_ERR_ABI);
    impl_env_close(&env);
}

static int32_t native32(const uint8_t *at)
{
    int32_t v;

    memcpy(&v, at, sizeof v);
    return v;
}

/* ---- programs that compute, run ------------------------------------------ */

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

/* ---- stages -------------------------------------------------------------- */

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
        impl_run_stage(c.decode->stage, false, &env, &job, (zarr_mem){0}, NULL),
        ZARR_ERR_MEMORY_KIND);
    job.src = (zarr_mem){.device_type = ZARR_DEVICE_CPU, .bytes = 9};
    assert_int_equal(
        impl_run_stage(c.decode->stage, false, &env, &job, (zarr_mem){0}, NULL),
        ZARR_ERR_MEMORY_KIND);
    impl_chain_close(&c);
    impl_env_close(&env);
}

/* ---- allocations --------------------------------------------------------- */

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
    if (impl_env_open(&env, alloc, NULL) != ZARR_OK)
        return ZARR_ERR_NO_MEMORY;
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

/* Known codecs without a usable implementation: the message says which could do it. */
static void absent_libraries(void **state)
{
    static const struct {
        const char *codecs, *dtype, *says;
    } cases[] = {
        {"[{\"name\":\"numcodecs.pcodec\"}]", "uint16",
         "codec \"pcodec\": no implementation decodes here (none is registered): its "
         "library, pco, is in Rust"},
        {"[\"bytes\",\"zarrs.gdeflate\"]", "uint8", "no library of Debian has GDeflate"},
#if !defined(ZR_HAVE_BZ2)
        {"[\"bytes\",\"numcodecs.bz2\"]", "uint8", "this build has no libbz2"},
#endif
#if !defined(ZR_HAVE_LZMA)
        {"[\"bytes\",\"numcodecs.lzma\"]", "uint8", "this build has no liblzma"},
#endif
#if !defined(ZR_HAVE_SNAPPY)
        {"[\"bytes\",\"snappy\"]", "uint8", "this build has no libsnappy"},
#endif
#if !defined(ZR_HAVE_ZFP)
        {"[{\"name\":\"zfp\",\"configuration\":{\"mode\":\"reversible\"}}]", "int32",
         "this build has no libzfp"},
        {"[\"numcodecs.zfpy\"]", "int32", "this build has no libzfp"},
#endif
    };
    const uint64_t dims[] = {9, 0};

    ZR_UNUSED(state);
    for (size_t i = 0; i < ZR_COUNT(cases); i++) {
        struct impl_env env;
        struct impl_chain c;
        const struct impl_chain_args args = {.format = 3,
                                             .codecs = cases[i].codecs,
                                             .dtype = cases[i].dtype,
                                             .dims = dims};
        zarr_error err = {0};

        assert_int_equal(impl_env_open(&env, NULL, NULL), ZARR_OK);
        assert_int_equal(impl_chain_open(&c, &env, &args, &err), ZARR_ERR_UNSUPPORTED);
        if (!strstr(err.message, cases[i].says))
            fail_msg("%s: \"%s\"", cases[i].codecs, err.message);
        impl_env_close(&env);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places),
        cmocka_unit_test(stores_that_reach_the_device),
        cmocka_unit_test(no_device_without_sizes),
        cmocka_unit_test(fallback_of_a_stage),
        cmocka_unit_test(refusals),
        cmocka_unit_test(formats),
        cmocka_unit_test(registration),
        cmocka_unit_test(computing_chain_runs),
        cmocka_unit_test(transpose_stage),
        cmocka_unit_test(bytes_around_shards),
        cmocka_unit_test(batches_and_their_word),
        cmocka_unit_test(foreign_memory),
        cmocka_unit_test(absent_libraries),
        cmocka_unit_test(allocations_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
