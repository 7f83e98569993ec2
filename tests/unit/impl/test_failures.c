/*
 * unit/impl/test_failures.c - failures of plug-ins' implementations: no message, numbers
 * that are not a status, a broken contract. The library writes the message and names the
 * plug-in.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/impl/impl_test.h"

#define CPU ZARR_MEMORY_BIT(ZARR_DEVICE_CPU)

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ /* no stage may have this index */
#    define NATIVE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#else
#    define NATIVE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}"
#endif

static struct {
    zarr_status code, job, bind, open, partial, strided;
    const char *text;
} odd;

static zarr_status odd_say(zarr_status st, zarr_error *err)
{
    if (err && odd.text && st != ZARR_OK)
        snprintf(err->message, sizeof err->message, "%s", odd.text);
    return st;
}

static zarr_status odd_bind(void **self, const zarr_codec_spec *spec,
                            const zarr_codec_binding *to, zarr_error *err)
{
    ZR_UNUSED(self);
    ZR_UNUSED(spec);
    ZR_UNUSED(to);
    return odd_say(odd.bind, err);
}

static zarr_status odd_open(void *self, void **state, zarr_error *err)
{
    (void)self;
    *state = &odd;
    return odd_say(odd.open, err);
}

static zarr_status odd_code(void *self, zarr_codec_job *jobs, uint64_t n,
                            zarr_codec_exec *exec, zarr_error *err)
{
    ZR_UNUSED(self);
    ZR_UNUSED(exec);
    for (uint64_t i = 0; i < n; i++) {
        jobs[i].dst_used = 32;
        jobs[i].status = i == 1 ? odd.job : ZARR_OK;
    }
    return odd_say(odd.code, err);
}

static zarr_status odd_partial(void *self, zarr_codec_job *job,
                               const zarr_codec_range *ranges, uint64_t n,
                               zarr_codec_exec *exec, zarr_error *err)
{
    ZR_UNUSED(self);
    ZR_UNUSED(ranges);
    ZR_UNUSED(n);
    ZR_UNUSED(exec);
    job->dst_used = odd.partial ? 0 : job->dst.bytes + 1;
    return odd_say(odd.partial, err);
}

static zarr_status odd_strided(void *self, zarr_codec_job *job,
                               const zarr_codec_strided *to, zarr_codec_exec *exec,
                               zarr_error *err)
{
    ZR_UNUSED(self);
    ZR_UNUSED(job);
    ZR_UNUSED(to);
    ZR_UNUSED(exec);
    return odd_say(odd.strided, err);
}

static const zarr_codec_impl_vtable odd_impl = {
    .struct_size = sizeof(zarr_codec_impl_vtable),
    .caps = ZARR_CODEC_SAFE | ZARR_CODEC_CAN_DECODE | ZARR_CODEC_CAN_ENCODE |
            ZARR_CODEC_BATCH,
    .codec = "zstd",
    .impl = "cpu.odd",
    .in_kinds = CPU,
    .out_kinds = CPU,
    .priority = 9,
    .bind = odd_bind,
    .thread_open = odd_open,
    .encode = odd_code,
    .decode = odd_code,
    .partial = odd_partial,
    .strided = odd_strided,
};

#define ODD       "codec \"zstd\": \"cpu.odd\" of acme "
#define ODD_BROKE ODD "broke its contract: "

static void assert_said(zarr_status st, zarr_status expected, const zarr_error *err,
                        const char *text)
{
    if (st != expected || err->code != expected || !zr_streq(err->message, text))
        fail_msg("%d, %d: %s, not %d: %s", (int)st, (int)err->code, err->message,
                 (int)expected, text);
}

static void odd_run(struct impl_env *env, const struct zr_stage *s)
{
    static const struct {
        zarr_status code, job;
        const char *said;
        zarr_status expected;
        const char *text;
    } rows[] = {
        {ZARR_ERR_CORRUPT, 0, NULL, ZARR_ERR_CORRUPT,
         ODD "failed (corrupt) and does not say why"},
        {ZARR_ERR_CORRUPT, 0, "bad", ZARR_ERR_CORRUPT, "bad"},
        {ZARR_ERR_CORRUPT, 0, "two\nlines", ZARR_ERR_CORRUPT, "two?lines"},
        {1, 1, NULL, ZARR_ERR_INTERNAL,
         ODD_BROKE "it failed with status 1, which means nothing"},
        {-99, -99, "bad", ZARR_ERR_INTERNAL,
         ODD_BROKE "it failed with status -99, which means nothing: bad"},
        {0, 7, NULL, ZARR_ERR_INTERNAL,
         ODD_BROKE "it failed with status 7, which means nothing"},
        {0, ZARR_ERR_IO, NULL, ZARR_ERR_IO, ODD "failed (io) and does not say why"},
        {ZARR_ERR_CANCELLED, 0, NULL, ZARR_ERR_INTERNAL,
         ODD_BROKE "it failed with status -10, cancelled, but no caller cancelled it"},
    };
    char src = 'a';
    uint8_t dst[32];
    zarr_codec_job jobs[2] = {{.dst_used = 0}};
    struct zr_stage_call call = {.jobs = jobs, .n = 2, .ts = &env->threads};
    zarr_cancel cancel = {.set = true};
    zarr_error err;

    for (size_t i = 0; i < ZR_COUNT(rows); i++) {
        zarr_status st;

        memset(&err, 'x', sizeof err); /* the old contents of err are not read */
        jobs[0].src = jobs[1].src = zr_mem_of_host(&src, 1);
        jobs[0].dst = jobs[1].dst = zr_mem_of_host(dst, sizeof dst);
        odd.code = rows[i].code;
        odd.job = rows[i].job;
        odd.text = rows[i].said;
        st = zr_stage_run(s, &call, false, &err);
        assert_said(st, rows[i].expected, &err, rows[i].text);
        if (rows[i].job) {
            assert_int_equal(err.item, 1);
            assert_int_equal(jobs[1].status, rows[i].expected);
        }
        assert_int_equal(zr_stage_run(s, &call, false, NULL), rows[i].expected);
    }
    env->threads.cancel = &cancel;
    assert_said(zr_stage_run(s, &call, false, &err), ZARR_ERR_CANCELLED, &err,
                ODD "failed (cancelled) and does not say why");
    env->threads.cancel = NULL;
    odd.code = 0;
}

static void others_fail(void **state)
{
    const uint64_t dims[] = {8, 0};
    const struct impl_chain_args args = {
        .format = 3, .codecs = "[" NATIVE ",\"zstd\"]", .dtype = "int32", .dims = dims};
    const zarr_codec_range range = {0, 4};
    const zarr_codec_strided to = {.struct_size = sizeof to};
    struct impl_env env;
    struct impl_chain c;
    char src = 'a';
    uint8_t dst[64];
    zarr_codec_job job = {.src = zr_mem_of_host(&src, 1)};
    zarr_error err = {0};
    const struct zr_stage *s = NULL;

    ZR_UNUSED(state);
    assert_int_equal(impl_env_open(&env, NULL, NULL), ZARR_OK);
    assert_int_equal(zr_impl_register(&env.impls, &odd_impl, "acme", NULL), ZARR_OK);
    odd.bind = 5;
    assert_said(impl_chain_open(&c, &env, &args, &err), ZARR_ERR_INTERNAL, &err,
                ODD_BROKE "it failed with status 5, which means nothing");
    odd.bind = ZARR_ERR_DEVICE;
    assert_said(impl_chain_open(&c, &env, &args, &err), ZARR_ERR_DEVICE, &err,
                ODD "failed (device) and does not say why");
    odd.bind = ZARR_OK;
    assert_int_equal(impl_chain_open(&c, &env, &args, NULL), ZARR_OK);
    s = c.decode->stage;

    odd.open = 1;
    assert_said(impl_run_stage(s, false, &env, &job, (zarr_memory){0}, &err),
                ZARR_ERR_INTERNAL, &err,
                ODD_BROKE "it failed with status 1, which means nothing");
    odd.open = ZARR_OK;
    odd_run(&env, s);

    odd.partial = 1;
    odd.text = NULL;
    job.dst = zr_mem_of_host(dst, sizeof dst);
    assert_said(
        zr_stage_partial(s, &job, &range, 1, &env.threads, (zarr_memory){0}, &err),
        ZARR_ERR_INTERNAL, &err,
        ODD_BROKE "it failed with status 1, which means nothing");
    assert_int_equal(job.status, ZARR_ERR_INTERNAL);
    odd.partial = ZARR_OK; /* and one byte more than fits */
    assert_said(
        zr_stage_partial(s, &job, &range, 1, &env.threads, (zarr_memory){0}, &err),
        ZARR_ERR_INTERNAL, &err,
        ODD_BROKE "it says that it gave more than there was room for: 33 bytes, not 32");
    odd.strided = ZARR_ERR_CORRUPT;
    assert_said(
        zr_stage_decode_strided(s, &job, &to, &env.threads, (zarr_memory){0}, &err),
        ZARR_ERR_CORRUPT, &err, ODD "failed (corrupt) and does not say why");
    odd.strided = ZARR_ERR_UNSUPPORTED; /* no error: another way is taken */
    assert_int_equal(
        zr_stage_decode_strided(s, &job, &to, &env.threads, (zarr_memory){0}, &err),
        ZARR_ERR_UNSUPPORTED);
    odd.strided = ZARR_OK;
    impl_chain_close(&c);
    impl_env_close(&env);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(others_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
