/*
 * unit/impl/test_place.c - placement: the chosen implementations and the memory of
 * buffers, with made-up implementations for a device; fallbacks, refusals, libraries that
 * a build lacks.
 */
#include "unit/impl/made_up.h"
#include "unit/impl/program_text.h"

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
    {{{"zstd", "ext.test", EXT, EXT, 0, ZARR_CODEC_SAFE | ZARR_CODEC_CAN_DECODE}},
     "[" LITTLE ",\"zstd\"]",
     12,
     NULL,
     "copy host->ext -> zstd@ext.test/cpu.libzstd",
     "copy ext->host -> zstd@cpu.libzstd"},
    /* One that was not measured is used if it is named. */
    {{{"zstd", "ext.test", EXT, EXT, 0,
       ZARR_CODEC_SAFE | ZARR_CODEC_CAN_DECODE | ZARR_CODEC_IF_FASTER}},
     "[" LITTLE ",\"zstd\"]",
     12,
     NULL,
     "zstd@cpu.libzstd -> copy host->ext",
     "copy ext->host -> zstd@cpu.libzstd"},
    {{{"zstd", "ext.test", EXT, EXT, 0,
       ZARR_CODEC_SAFE | ZARR_CODEC_CAN_DECODE | ZARR_CODEC_IF_FASTER}},
     "[" LITTLE ",\"zstd\"]",
     12,
     "zstd=ext",
     "copy host->ext -> zstd@ext.test/cpu.libzstd",
     "copy ext->host -> zstd@cpu.libzstd"},
    /* A device decodes what another one of its codecs gives, unless it must look. */
    {{{"crc32c", "ext.sum", EXT, EXT, 0, 0}, {"zstd", "ext.test", EXT, EXT, 0, 0}},
     "[" LITTLE ",\"zstd\",\"crc32c\"]",
     12,
     NULL,
     "copy host->ext -> crc32c@ext.sum/cpu.zarrc -> zstd@ext.test/cpu.libzstd",
     "zstd@ext.test/cpu.libzstd -> crc32c@ext.sum/cpu.zarrc -> copy ext->host"},
    {{{"crc32c", "ext.sum", EXT, EXT, 0, 0},
      {"zstd", "ext.test", EXT, EXT, 0,
       ZARR_CODEC_SAFE | ZARR_CODEC_CAN_DECODE | ZARR_CODEC_LOOKS}},
     "[" LITTLE ",\"zstd\",\"crc32c\"]",
     12,
     NULL,
     "crc32c@cpu.zarrc -> copy host->ext -> zstd@ext.test/cpu.libzstd",
     "copy ext->host -> zstd@cpu.libzstd -> crc32c@cpu.zarrc"},
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

static struct zr_measured measured = {.codec = "zstd",
                                      .impl = "ext.test",
                                      .device_type = ZARR_DEVICE_EXT,
                                      .chunk_bytes = 96,
                                      .host_ns = 20};

static const struct zr_costs *get_costs(void *arg)
{
    static const struct zr_costs costs = {.of = &measured, .n = 1};

    ZR_UNUSED(arg);
    return &costs;
}

/* Measurements decide between the CPU and an implementation of a device. */
static void measurements(void **state)
{
    const uint32_t caps[] = {ZARR_CODEC_SAFE | ZARR_CODEC_CAN_DECODE,
                             ZARR_CODEC_SAFE | ZARR_CODEC_CAN_DECODE |
                                 ZARR_CODEC_IF_FASTER};
    const uint64_t dims[] = {6, 4, 0};
    const struct impl_chain_args args = {.format = 3,
                                         .codecs = "[" LITTLE ",\"zstd\"]",
                                         .dtype = "int32",
                                         .dims = dims,
                                         .target_device = ZARR_DEVICE_EXT};

    ZR_UNUSED(state);
    for (size_t i = 0; i < 2 * ZR_COUNT(caps); i++) {
        const struct made_up_row rows[] = {{"zstd", "ext.test", EXT, EXT, 0, caps[i / 2]},
                                           {0}};
        struct impl_env env;
        struct impl_chain c;
        struct zr_str text;

        open_with(&env, rows);
        env.impls.costs = get_costs;
        measured.device_ns = i % 2 ? 30 : 10;
        zr_str_init(&text, NULL);
        assert_int_equal(impl_chain_open(&c, &env, &args, NULL), ZARR_OK);
        program_print(c.decode, &text);
        assert_string_equal(zr_str_text(&text),
                            i % 2 ? "zstd@cpu.libzstd -> copy host->ext"
                                  : "copy host->ext -> zstd@ext.test/cpu.libzstd");
        zr_str_deinit(&text);
        impl_chain_close(&c);
        impl_env_close(&env);
    }
}

static void stores_that_reach_the_device(void **state)
{
    const struct made_up_row rows[] = {{"zstd", "ext.test", CPU | EXT, EXT, 0, 0}, {0}};
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

static struct zr_program *make_program(const struct impl_env *env,
                                       const struct impl_chain *c,
                                       const struct zr_placement_options *opts)
{
    struct zr_program *p = NULL;

    assert_int_equal(
        zr_program_make(&p, &env->impls, c->chain, &c->reps, opts, NULL, NULL), ZARR_OK);
    return p;
}

/* An implementation is told the memory of both sides and the direction. */
static void bindings(void **state)
{
    const struct made_up_row rows[] = {{"zstd", "ext.test", CPU, EXT, 50, 0}, {0}};
    const uint64_t dims[] = {8, 0};
    struct zr_placement_options opts = {.target_device = ZARR_DEVICE_EXT,
                                        .preference = "zstd=ext"};
    const struct impl_chain_args args = {
        .format = 3, .codecs = "[" LITTLE ",\"zstd\"]", .dtype = "int32", .dims = dims};
    struct impl_env env;
    struct impl_chain c;

    ZR_UNUSED(state);
    memset(last_bound, 0, sizeof last_bound);
    open_with(&env, rows);
    assert_int_equal(impl_chain_open(&c, &env, &args, NULL), ZARR_OK);
    for (uint32_t encode = 0; encode < 2; encode++) {
        struct zr_program *p = NULL;

        opts.encode = encode;
        p = make_program(&env, &c, &opts);
        assert_int_equal(last_bound[encode].struct_size, sizeof(zarr_codec_binding));
        assert_int_equal(last_bound[encode].encode, encode);
        assert_int_equal(last_bound[encode].decoded_type, ZARR_DEVICE_EXT);
        assert_int_equal(last_bound[encode].encoded_type, ZARR_DEVICE_CPU);
        zr_program_free(p);
    }
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
        p = make_program(&env, &c, &opts);
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
    static const char *const malformed[] = {"zstd", "zstd=a=b", "=a", "zstd=a,,b"};
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
    for (size_t i = 0; i < ZR_COUNT(malformed); i++)
        assert_int_equal(
            zr_preference_check(malformed[i], &env.codec.codecs, &env.impls, NULL, &err),
            ZARR_ERR_INVALID);
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
        cmocka_unit_test(measurements),
        cmocka_unit_test(stores_that_reach_the_device),
        cmocka_unit_test(bindings),
        cmocka_unit_test(no_device_without_sizes),
        cmocka_unit_test(fallback_of_a_stage),
        cmocka_unit_test(refusals),
        cmocka_unit_test(formats),
        cmocka_unit_test(registration),
        cmocka_unit_test(absent_libraries),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
