/*
 * unit/pipe/batch/test_codecs.c - the pipeline with an application's codecs: chunks in
 * lock step, refused chunks, decoders and PUTs that answer NOT_FOUND.
 */
#include "unit/pipe/over_store.h"

static atomic_int n_batches, batch_most, n_single;
static int flip_fails;

static zarr_status flip(zarr_codec_job *jobs, uint64_t n, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    for (uint64_t i = 0; i < n && st == ZARR_OK; i++) {
        const uint8_t *src = (uint8_t *)jobs[i].src.handle + jobs[i].src.offset;
        uint8_t *dst = (uint8_t *)jobs[i].dst.handle + jobs[i].dst.offset;

        if (flip_fails)
            return jobs[i].status = zr_fail(err, (zarr_status)flip_fails, "flip fails");
        for (uint64_t k = 0; k < jobs[i].src.bytes; k++)
            dst[k] = src[k] ^ 0x5a;
        jobs[i].dst_used = jobs[i].src.bytes;
        jobs[i].status = ZARR_OK;
    }
    return st;
}

static zarr_status flip_single(void *self, zarr_codec_job *jobs, uint64_t n,
                               zarr_codec_exec *exec, zarr_error *err)
{
    (void)self;
    (void)exec;
    atomic_fetch_add(&n_single, (int)n);
    return flip(jobs, n, err);
}

static zarr_status flip_batch(void *self, zarr_codec_job *jobs, uint64_t n,
                              zarr_codec_exec *exec, zarr_error *err)
{
    (void)self;
    assert_true(exec->scratch.bytes >= 100 * n);
    atomic_fetch_add(&n_batches, 1);
    if ((int)n > atomic_load(&batch_most))
        atomic_store(&batch_most, (int)n);
    return flip(jobs, n, err);
}

/* Refuses some chunks, chosen by the lowest byte of their first element, when encoding
 * or decoding. */
static int flip_accepts(void *self, const zarr_codec_job *job)
{
    const uint8_t *src = (uint8_t *)job->src.handle + job->src.offset;

    (void)self;
    return ((src[0] ^ src[3]) & 16) != 0;
}

static uint64_t flip_scratch(void *self, uint64_t n, uint64_t max_out)
{
    (void)self;
    (void)max_out;
    return 100 * n;
}

static void register_flip(zarr_context *ctx, bool batch)
{
    const uint32_t cpu = ZARR_MEMORY_BIT(ZARR_DEVICE_CPU);
    const zarr_codec_spec_vtable spec = {.struct_size = sizeof spec,
                                         .name = "test.flip",
                                         .kind = ZARR_CODEC_BYTES_BYTES,
                                         .resolve = pw_resolve_same};
    zarr_codec_impl_vtable v = {.struct_size = sizeof v,
                                .caps = ZARR_CODEC_SAFE | ZARR_CODEC_CAN_DECODE |
                                        ZARR_CODEC_CAN_ENCODE,
                                .codec = "test.flip",
                                .impl = "cpu.single",
                                .in_kinds = cpu,
                                .out_kinds = cpu,
                                .encode = flip_single,
                                .decode = flip_single};

    assert_ok(zarr_context_register_codec_spec(ctx, &spec, "test", &terr));
    assert_ok(zarr_context_register_codec_impl(ctx, &v, "test", &terr));
    if (!batch)
        return;
    v.caps = ZARR_CODEC_SAFE | ZARR_CODEC_CAN_DECODE | ZARR_CODEC_BATCH;
    v.impl = "cpu.batch";
    v.priority = 1000;
    v.encode = NULL;
    v.decode = flip_batch;
    v.accepts = flip_accepts;
    v.scratch = flip_scratch;
    assert_ok(zarr_context_register_codec_impl(ctx, &v, "test", &terr));
}

#define FLIP "{\"name\":\"test.flip\"}"

static void test_batches_of_codecs(void **state)
{
    static const char *const codecs[] = {
        "[" BYTES "," FLIP "]", "[" BYTES "," GZIP "," FLIP "," CRC "]",
        "[" BIG "," FLIP "," FLIP "]", "[" SHARD("[4,8]", BYTES "," FLIP, "end") "]",
        "[" SHARD("[4,8]", BYTES, "end") "," FLIP "]"};

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(codecs); i++) {
        zarr_stats stats = ZARR_STATS_INIT;
        zarr_io_options opts = {.struct_size = sizeof opts, .stats = &stats};
        struct pw w;
        zarr_array *a;

        atomic_store(&n_batches, 0);
        atomic_store(&batch_most, 0);
        pw_context(&w, 3, UINT64_C(64) << 20, 0);
        register_flip(w.ctx, true);
        assert_ok(zarr_store_open(&w.store, w.ctx, "memory:", NULL, &terr));
        a = pw_array(w.store, "a", codecs[i], shape, chunk);
        make_data((int)i);
        assert_ok(pw_box(a, zero, shape, data, NULL, true));
        assert_ok(zarr_array_block_erase(a, (const uint64_t[]){1, 1}, NULL, &terr));
        assert_ok(pw_box(a, zero, shape, got, &opts, false));
        for (int k = 0; k < N * N; k++)
            assert_int_equal(got[k], k / N / 16 == 1 && k % N / 16 == 1 ? -1 : data[k]);
        assert_true(atomic_load(&n_batches) > 0);
        if (i == 0 || i == 3) {
            assert_true(stats.chunks_fallback > 0);
            assert_true(atomic_load(&batch_most) > 1);
        }
        assert_int_equal(stats.chunks_done, i < 3 ? 16 : 128);
        assert_int_equal(stats.elements, N * N);
        zarr_array_free(a);
        pw_close(&w);
    }
}

/* A PUT that answers NOT_FOUND has failed, also one that is sent with others. */
static void test_lost_puts(void **state)
{
    static const char *const codecs[] = {"[" BYTES "," FLIP "]", "[" BYTES "," GZIP "]"};
    const uint32_t cpu = ZARR_MEMORY_BIT(ZARR_DEVICE_CPU);
    const zarr_codec_impl_vtable batch = {.struct_size = sizeof batch,
                                          .caps =
                                              ZARR_CODEC_CAN_ENCODE | ZARR_CODEC_BATCH,
                                          .codec = "test.flip",
                                          .impl = "cpu.batch",
                                          .priority = 1000,
                                          .in_kinds = cpu,
                                          .out_kinds = cpu,
                                          .encode = flip_batch,
                                          .scratch = flip_scratch};
    const uint64_t at[2] = {1, 1}, part[2] = {40, 40};

    (void)state;
    for (size_t i = 0; i < 2 * ZR_COUNT(codecs); i++) {
        struct over o;
        struct pw w;
        zarr_array *a;

        pw_context(&w, 2, UINT64_C(64) << 20, 0);
        register_flip(w.ctx, false);
        assert_ok(zarr_context_register_codec_impl(w.ctx, &batch, "test", &terr));
        assert_ok(zarr_store_open(&w.store, w.ctx, "memory:", NULL, &terr));
        over_open(&w, &o, i % 2 ? &over_runs : &over_submits,
                  ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_SUFFIX);
        a = pw_array(w.store, "a", codecs[i / 2], shape, chunk);
        make_data(3);
        o.lose_puts = true;
        assert_status(pw_box(a, zero, shape, data, NULL, true), ZARR_ERR_NOT_FOUND);
        assert_non_null(strstr(terr.message, "a/c/"));
        assert_status(pw_box(a, at, part, data, NULL, true), ZARR_ERR_NOT_FOUND);
        o.lose_puts = false;
        assert_ok(pw_box(a, zero, shape, data, NULL, true));
        zarr_array_free(a);
        pw_close(&w);
    }
}

/* A decoder's NOT_FOUND does not make the chunk a missing one. */
static void test_decoder_not_found(void **state)
{
    static const char *const codecs[] = {"[" BYTES "," FLIP "]",
                                         "[" SHARD("[4,8]", BYTES, "end") "," FLIP "]",
                                         "[" SHARD("[4,8]", BYTES "," FLIP, "end") "]"};

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(codecs); i++) {
        struct pw w;
        zarr_array *a;

        pw_context(&w, 2, UINT64_C(64) << 20, 0);
        register_flip(w.ctx, false);
        assert_ok(zarr_store_open(&w.store, w.ctx, "memory:", NULL, &terr));
        a = pw_array(w.store, "a", codecs[i], shape, chunk);
        make_data(3);
        assert_ok(pw_box(a, zero, shape, data, NULL, true));
        flip_fails = ZARR_ERR_NOT_FOUND;
        assert_status(pw_box(a, zero, shape, got, NULL, false), ZARR_ERR_NOT_FOUND);
        flip_fails = 0;
        assert_ok(pw_box(a, zero, shape, got, NULL, false));
        assert_memory_equal(got, data, sizeof data);
        zarr_array_free(a);
        pw_close(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batches_of_codecs),
        cmocka_unit_test(test_lost_puts),
        cmocka_unit_test(test_decoder_not_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
