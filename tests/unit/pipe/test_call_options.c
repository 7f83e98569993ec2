/*
 * unit/pipe/test_call_options.c - options of one call: how ranges of shards are joined, a
 * memory budget of its own, and a preference for implementations of codecs.
 */
#include "pipe_test.h"

enum {
    N = 64,
    LARGE = 256,
    THREADS = 8
};

static const uint64_t shape[2] = {N, N}, large[2] = {LARGE, LARGE}, zero[2];
static int32_t data[LARGE * LARGE], got[LARGE * LARGE];

static void fill_data(void)
{
    for (int i = 0; i < LARGE * LARGE; i++)
        data[i] = i * 7 + 1;
    memset(got, 0, sizeof got);
}

/* ---- joined ranges --------------------------------------------------------------- */

/* One element of each second inner chunk in both dimensions: 16 chunks of one shard. */
static uint64_t ranges_with(zarr_array *a, uint64_t gap, uint64_t bytes)
{
    const int64_t dims[2] = {4, 4};
    zarr_io_options o = ZARR_IO_OPTIONS_INIT;
    zarr_stats stats = ZARR_STATS_INIT;
    const zarr_tensor t = pw_tensor(got, dims, 16 * sizeof *got);
    zarr_selection *sel = NULL;

    o.stats = &stats;
    o.max_threads = 1;
    o.coalesce_gap = gap;
    o.coalesce_bytes = bytes;
    assert_ok(zarr_selection_parse(&sel, 2, shape, "::16, ::16", &terr));
    assert_ok(zarr_array_read(a, sel, &t, &o, &terr));
    zarr_selection_free(sel);
    for (int i = 0; i < 16; i++)
        assert_int_equal(got[i], data[i / 4 * 16 * N + i % 4 * 16]);
    assert_int_equal(stats.chunks_done, 16);
    return stats.store_ranges - stats.index_reads;
}

static void test_coalesce(void **state)
{
    struct pw w;
    zarr_array *a;

    (void)state;
    fill_data();
    pw_open(&w, 1, UINT64_C(64) << 20, 0);
    a = pw_array(w.store, "a", "[" SHARD("[8,8]", BYTES "," GZIP, "end") "]", shape,
                 shape);
    assert_ok(pw_box(a, zero, shape, data, NULL, true));
    assert_int_equal(ranges_with(a, 0, 0), 4); /* by default four chunks together */
    assert_int_equal(ranges_with(a, 1, 0), 16);
    assert_int_equal(ranges_with(a, 0, 1), 16);
    assert_int_equal(ranges_with(a, UINT64_MAX, UINT64_MAX), 4);
    assert_in_range(ranges_with(a, 0, 600), 5, 15); /* some together */
    zarr_array_free(a);
    pw_close(&w);
}

/* ---- memory ------------------------------------------------------------------------ */

/* The most bytes of the budget that were in use during a read and a write. */
static uint64_t peak_with(uint32_t threads, uint64_t memory, const char *pipeline)
{
    const uint64_t chunk[2] = {32, 32};
    zarr_io_options o = ZARR_IO_OPTIONS_INIT;
    struct zr_budget_stats stats;
    struct pw w;
    zarr_array *a;

    fill_data();
    pw_open(&w, THREADS, UINT64_C(64) << 20, 0);
    a = pw_array(w.store, "a", "[" BYTES "," GZIP "]", large, chunk);
    o.max_threads = threads;
    o.memory_bytes = memory;
    o.pipeline = pipeline;
    assert_ok(pw_box(a, zero, large, data, &o, true));
    assert_ok(pw_box(a, zero, large, got, &o, false));
    assert_memory_equal(got, data, sizeof data);
    zr_budget_stats_get(&w.ctx->budget, &stats);
    assert_int_equal(stats.now, 0);
    assert_int_equal(stats.n_waiting, 0);
    zarr_array_free(a);
    pw_close(&w);
    return stats.peak;
}

static void test_memory(void **state)
{
    const uint64_t one = peak_with(1, 0, NULL);

    (void)state;
    assert_true(one > 32 * 32 * 4);
    for (int i = 0; i < 10; i++) { /* a chunk that needs more is alone */
        assert_int_equal(peak_with(THREADS, 1, NULL), one);
        assert_true(peak_with(THREADS, 3 * one, NULL) <= 3 * one);
    }
    assert_true(peak_with(THREADS, UINT64_MAX, NULL) >= one);
    assert_true(peak_with(THREADS, 1, "serial") <= one);
}

/* Requests with budgets of their own wait for each other in the context's. */
static void test_memory_shared(void **state)
{
    enum {
        AT_ONCE = 6
    };
    static int32_t into[AT_ONCE][N * N];
    const uint64_t one = peak_with(1, 0, NULL), chunk[2] = {32, 32};
    const int64_t dims[2] = {N, N};
    zarr_io_options o = ZARR_IO_OPTIONS_INIT;
    struct zr_budget_stats stats;
    zarr_request *rq[AT_ONCE];
    struct pw w;
    zarr_array *a;

    (void)state;
    fill_data();
    pw_open(&w, THREADS, 3 * one, 0);
    a = pw_array(w.store, "a", "[" BYTES "," GZIP "]", shape, chunk);
    assert_ok(pw_box(a, zero, shape, data, NULL, true));
    o.memory_bytes = 2 * one;
    for (int round = 0; round < 20; round++) {
        memset(into, 0, sizeof into);
        for (int i = 0; i < AT_ONCE; i++) {
            const zarr_tensor t = pw_tensor(into[i], dims, sizeof into[i]);

            assert_ok(zarr_array_read_submit(&rq[i], a, NULL, &t, &o, &terr));
        }
        for (int i = 0; i < AT_ONCE; i++) {
            assert_ok(zarr_request_wait(rq[i], ZARR_WAIT_FOREVER, NULL, &terr));
            zarr_request_free(rq[i]);
            assert_memory_equal(into[i], data, sizeof into[i]);
        }
    }
    zr_budget_stats_get(&w.ctx->budget, &stats);
    assert_int_equal(stats.now, 0);
    assert_true(stats.peak <= 3 * one);
    zarr_array_free(a);
    pw_close(&w);
}

/* ---- implementations --- */

static atomic_int n_first, n_second;

static zarr_status copy_job(atomic_int *count, zarr_codec_job *jobs, uint64_t n)
{
    atomic_fetch_add(count, (int)n);
    for (uint64_t i = 0; i < n; i++) {
        memcpy((char *)jobs[i].dst.handle + jobs[i].dst.offset,
               (char *)jobs[i].src.handle + jobs[i].src.offset, jobs[i].src.bytes);
        jobs[i].dst_used = jobs[i].src.bytes;
    }
    return ZARR_OK;
}

static zarr_status first_way(void *self, zarr_codec_job *jobs, uint64_t n,
                             zarr_codec_exec *exec, zarr_error *err)
{
    (void)self;
    (void)exec;
    (void)err;
    return copy_job(&n_first, jobs, n);
}

static zarr_status second_way(void *self, zarr_codec_job *jobs, uint64_t n,
                              zarr_codec_exec *exec, zarr_error *err)
{
    (void)self;
    (void)exec;
    (void)err;
    return copy_job(&n_second, jobs, n);
}

static void register_ways(struct pw *w)
{
    const uint32_t cpu = ZARR_MEMORY_BIT(ZARR_DEVICE_CPU);
    const zarr_codec_spec_vtable spec = {.struct_size = sizeof spec,
                                         .name = "test.same",
                                         .kind = ZARR_CODEC_BYTES_BYTES,
                                         .resolve = pw_resolve_same};
    zarr_codec_impl_vtable way = {.struct_size = sizeof way,
                                  .caps = ZARR_CODEC_CAN_DECODE | ZARR_CODEC_CAN_ENCODE,
                                  .codec = "test.same",
                                  .impl = "cpu.first",
                                  .priority = 10,
                                  .in_kinds = cpu,
                                  .out_kinds = cpu,
                                  .encode = first_way,
                                  .decode = first_way};

    assert_ok(zarr_context_register_codec_spec(w->ctx, &spec, "test", &terr));
    assert_ok(zarr_context_register_codec_impl(w->ctx, &way, "test", &terr));
    way.impl = "cpu.second";
    way.priority = 0;
    way.encode = way.decode = second_way;
    assert_ok(zarr_context_register_codec_impl(w->ctx, &way, "test", &terr));
}

static void expect_ways(zarr_array *a, const char *preference, bool write, int first,
                        int second)
{
    zarr_io_options o = ZARR_IO_OPTIONS_INIT;
    char text[64];
    char explained[8192];
    zarr_explanation *e = NULL;
    size_t n = 0;

    atomic_store(&n_first, 0);
    atomic_store(&n_second, 0);
    snprintf(text, sizeof text, "%s", preference ? preference : "");
    o.codec_preference = preference ? text : NULL;
    assert_ok(pw_box(a, zero, shape, write ? data : got, &o, write));
    assert_int_equal(atomic_load(&n_first), first);
    assert_int_equal(atomic_load(&n_second), second);
    assert_ok(zarr_array_explain(&e, a, write ? ZARR_EXPLAIN_WRITE : ZARR_EXPLAIN_READ,
                                 NULL, NULL, &o, &terr));
    assert_ok(zarr_explanation_text(e, ZARR_EXPLAIN_TEXT, explained, sizeof explained, &n,
                                    &terr));
    zarr_explanation_free(e);
    assert_true((strstr(explained, "cpu.first") != NULL) == (first > 0));
    assert_true((strstr(explained, "cpu.second") != NULL) == (second > 0));
    memset(text, 'x', sizeof text); /* it was copied */
}

static void test_preference(void **state)
{
    const uint64_t chunk[2] = {32, 32};
    zarr_io_options o = ZARR_IO_OPTIONS_INIT;
    zarr_request *rq = NULL;
    const int64_t dims[2] = {N, N};
    struct pw w;
    zarr_array *a;

    (void)state;
    fill_data();
    pw_context(&w, 2, UINT64_C(64) << 20, 0);
    register_ways(&w);
    assert_ok(zarr_store_open(&w.store, w.ctx, "memory:", NULL, &terr));
    a = pw_array(w.store, "a", "[" BYTES ",{\"name\":\"test.same\"}]", shape, chunk);
    for (int round = 0; round < 2; round++) {
        expect_ways(a, NULL, true, 4, 0);
        expect_ways(a, "test.same=cpu.second", true, 0, 4);
        expect_ways(a, "test.same=cpu.second", false, 0, 4);
        expect_ways(a, "test.same=cpu.first", false, 4, 0);
        expect_ways(a, NULL, false, 4, 0);
    }
    assert_memory_equal(got, data, N * N * sizeof *data);
    o.codec_preference = "test.same";
    assert_status(pw_box(a, zero, shape, got, &o, false), ZARR_ERR_INVALID);
    assert_non_null(strstr(terr.message, "codec preference"));
    {
        const zarr_tensor t = pw_tensor(got, dims, N * N * sizeof *got);
        char text[] = "test.same=cpu.second";

        o.codec_preference = text;
        atomic_store(&n_second, 0);
        assert_ok(zarr_array_read_submit(&rq, a, NULL, &t, &o, &terr));
        memset(text, '=', sizeof text - 1);
        assert_ok(zarr_request_wait(rq, ZARR_WAIT_FOREVER, NULL, &terr));
        zarr_request_free(rq);
        assert_int_equal(atomic_load(&n_second), 4);
    }
    zarr_array_free(a);
    pw_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_coalesce),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_memory_shared),
        cmocka_unit_test(test_preference),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
