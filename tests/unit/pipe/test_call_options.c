/*
 * unit/pipe/test_call_options.c - options of one call: how ranges of shards are joined, a
 * memory budget of its own, a preference for implementations of codecs, what elements
 * outside of the shape become, the order of inner chunks, and which units exist.
 */
#include "pipe_test.h"

#define MEMORY (UINT64_C(64) << 20)

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
    const uint64_t dims[2] = {4, 4};
    zarr_io_options o = ZARR_IO_OPTIONS_INIT;
    zarr_stats stats = ZARR_STATS_INIT;
    const zarr_tensor t = pw_tensor(got, dims, 16 * sizeof *got);
    zarr_selection *sel = NULL;

    o.stats = &stats;
    o.max_threads = 1;
    o.tuning = TUNING(.coalesce_gap = gap, .coalesce_bytes = bytes);
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
    pw_open(&w, 1, MEMORY, 0);
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
    pw_open(&w, THREADS, MEMORY, 0);
    a = pw_array(w.store, "a", "[" BYTES "," GZIP "]", large, chunk);
    o.max_threads = threads;
    o.tuning = TUNING(.memory_bytes = memory, .pipeline = pipeline);
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
    assert_true(one > 4096);
    for (int i = 0; i < 10; i++)
        assert_true(peak_with(THREADS, 3 * one, NULL) <= 3 * one);
    assert_true(peak_with(THREADS, UINT64_MAX, NULL) >= one);
}

/* Requests with budgets of their own wait for each other in the context's. */
static void test_memory_shared(void **state)
{
    enum {
        AT_ONCE = 6
    };
    static int32_t into[AT_ONCE][N * N];
    const uint64_t one = peak_with(1, 0, NULL), chunk[2] = {32, 32};
    const uint64_t dims[2] = {N, N};
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
    o.tuning = TUNING(.memory_bytes = 2 * one);
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
                                  .caps = ZARR_CODEC_SAFE | ZARR_CODEC_CAN_DECODE |
                                          ZARR_CODEC_CAN_ENCODE,
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
    o.tuning = TUNING(.codec_preference = preference ? text : NULL);
    assert_ok(pw_box(a, zero, shape, write ? data : got, &o, write));
    assert_int_equal(atomic_load(&n_first), first);
    assert_int_equal(atomic_load(&n_second), second);
    assert_ok(zarr_array_explain(&e, a, write ? ZARR_EXPLAIN_WRITE : ZARR_EXPLAIN_READ,
                                 NULL, NULL, &o, &terr));
    assert_ok(zarr_explanation_text(e, ZARR_EXPLAIN_TEXT, explained, sizeof explained, &n,
                                    &terr));
    zarr_explanation_free(e);
    assert_true((strstr(explained, "@cpu.first") != NULL) == (first > 0));
    assert_true((strstr(explained, "@cpu.second") != NULL) == (second > 0));
    memset(text, 'x', sizeof text); /* it was copied */
}

static void test_preference(void **state)
{
    const uint64_t chunk[2] = {32, 32};
    zarr_io_options o = ZARR_IO_OPTIONS_INIT;
    zarr_request *rq = NULL;
    const uint64_t dims[2] = {N, N};
    struct pw w;
    zarr_array *a;

    (void)state;
    fill_data();
    pw_context(&w, 2, MEMORY, 0);
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
    assert_memory_equal(got, data, sizeof *data * N * N);
    o.tuning = TUNING(.codec_preference = "test.same");
    assert_status(pw_box(a, zero, shape, got, &o, false), ZARR_ERR_INVALID);
    assert_non_null(strstr(terr.message, "codec preference"));
    {
        const zarr_tensor t = pw_tensor(got, dims, sizeof *got * N * N);
        char text[] = "test.same=cpu.second";

        o.tuning = TUNING(.codec_preference = text);
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

/* ---- elements outside of the shape ------------------------------------------------ */

static const uint64_t edge_shape[2] = {20, 20};

/* Writes through a handle that does not know that the array has grown. */
static void write_edge(const char *codecs, const uint64_t *chunk, uint32_t outside,
                       const char *pipeline)
{
    const uint64_t grown[2] = {30, 20}, at[2] = {20, 0}, n[2] = {10, 20};
    zarr_io_options o = ZARR_IO_OPTIONS_INIT;
    zarr_stats stats = ZARR_STATS_INIT;
    zarr_array *a, *b = NULL;
    struct pw w;

    fill_data();
    pw_open(&w, 2, MEMORY, 0);
    a = pw_array(w.store, "a", codecs, edge_shape, chunk);
    assert_ok(zarr_array_open(&b, w.store, "a", NULL, &terr));
    assert_ok(zarr_array_resize(b, grown, NULL, &terr));
    assert_ok(pw_box(b, zero, grown, data, NULL, true));
    o.outside = outside;
    o.stats = &stats;
    o.tuning = TUNING(.pipeline = pipeline);
    assert_ok(pw_box(a, zero, edge_shape, data, &o, true));
    assert_int_equal(stats.read_modify_writes, outside == ZARR_OUTSIDE_RESET ? 0 : 1);
    assert_ok(pw_box(b, at, n, got, NULL, false));
    /* rows 20 to 23 share chunks or shards with the rows before them */
    for (int i = 0; i < 200; i++)
        assert_int_equal(
            got[i], outside == ZARR_OUTSIDE_RESET && i < 4 * 20 ? -1 : data[400 + i]);
    assert_ok(pw_box(b, zero, edge_shape, got, NULL, false));
    assert_memory_equal(got, data, sizeof *got * 400);
    zarr_array_free(a);
    zarr_array_free(b);
    pw_close(&w);
}

static void test_outside(void **state)
{
    static const char *const codecs[] = {
        "[" BYTES "," GZIP "]", "[" BYTES "]", "[" SHARD("[4,4]", BYTES, "end") "]",
        "[" SHARD("[8,4]", SHARD("[2,4]", BYTES, "end"), "end") "]"};
    const uint64_t chunk[2] = {8, 20};
    zarr_io_options o = ZARR_IO_OPTIONS_INIT;
    struct pw w;
    zarr_array *a;

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(codecs); i++)
        for (uint32_t outside = 0; outside <= ZARR_OUTSIDE_RESET; outside++) {
            write_edge(codecs[i], chunk, outside, NULL);
            write_edge(codecs[i], chunk, outside, "serial");
        }
    pw_open(&w, 1, MEMORY, 0);
    a = pw_array(w.store, "a", codecs[0], edge_shape, chunk);
    o.outside = ZARR_OUTSIDE_RESET + 1;
    assert_status(pw_box(a, zero, edge_shape, data, &o, true), ZARR_ERR_INVALID);
    zarr_array_free(a);
    pw_close(&w);
}

/* ---- the order of inner chunks ----------------------------------------------------- */

enum {
    INNER = 8 /* elements along a dimension of an inner chunk; 4 x 3 of them in a shard */
};
static const uint64_t shard_shape[2] = {32, 24}; /* of inner chunks */

/* The coordinates of the inner chunks as they follow each other, such as "00 10 01". */
static void stored_order(zarr_array *a, bool at_start, char *text)
{
    static int32_t bytes[8192];
    uint64_t n = sizeof bytes;
    const size_t skip = at_start ? 12 * 16 + 4 : 0;

    assert_ok(zarr_array_block_read_encoded(a, zero, bytes, &n, NULL, &terr));
    assert_int_equal(n, 12 * (64 * 4 + 16) + 4);
    for (size_t i = 0; i < 12; i++) {
        int32_t first;

        memcpy(&first, (char *)bytes + skip + i * 256, sizeof first);
        sprintf(text, "%d%d ", (first - 1) / 7 / (3 * INNER) / INNER,
                (first - 1) / 7 % (3 * INNER) / INNER);
        text += 3;
    }
    *text = 0;
}

static void check_order(uint32_t order, bool at_start, const char *pipeline,
                        const char *want)
{
    const uint64_t at[2] = {1, 1}, n[2] = {2, 20};
    const char *codecs = at_start ? "[" SHARD("[8,8]", BYTES, "start") "]"
                                  : "[" SHARD("[8,8]", BYTES, "end") "]";
    static int32_t part[40];
    zarr_io_options o = ZARR_IO_OPTIONS_INIT;
    char text[64];
    struct pw w;
    zarr_array *a;

    fill_data();
    pw_open(&w, 2, MEMORY, 0);
    a = pw_array(w.store, "a", codecs, shard_shape, shard_shape);
    o.tuning = TUNING(.inner_order = order, .pipeline = pipeline);
    assert_ok(pw_box(a, zero, shard_shape, data, &o, true));
    stored_order(a, at_start, text);
    assert_string_equal(text, want);
    for (int i = 0; i < 40; i++)
        part[i] = data[(1 + i / 20) * 3 * INNER + 1 + i % 20];
    assert_ok(pw_box(a, at, n, part, NULL, true)); /* C order, unless told otherwise */
    stored_order(a, at_start, text);
    assert_string_equal(text, "00 01 02 10 11 12 20 21 22 30 31 32 ");
    assert_ok(pw_box(a, at, n, part, &o, true));
    stored_order(a, at_start, text);
    assert_string_equal(text, want);
    assert_ok(pw_box(a, zero, shard_shape, got, NULL, false));
    assert_memory_equal(got, data, sizeof *got * 12 * INNER * INNER);
    zarr_array_free(a);
    pw_close(&w);
}

static void test_inner_order(void **state)
{
    static const char *const want[] = {"00 01 02 10 11 12 20 21 22 30 31 32 ",
                                       "00 10 01 11 20 30 21 31 02 12 22 32 ",
                                       "00 10 20 30 01 11 21 31 02 12 22 32 "};
    zarr_io_options o = ZARR_IO_OPTIONS_INIT;
    const uint64_t whole[2] = {N, N}, nested[2] = {32, 32};
    struct pw w;
    zarr_array *a;

    (void)state;
    for (uint32_t order = 0; order < 3; order++)
        for (int i = 0; i < 4; i++)
            check_order(order, i % 2, i / 2 ? "serial" : NULL, want[order]);
    pw_open(&w, 2, MEMORY, 0);
    a = pw_array(w.store, "a",
                 "[" SHARD("[8,16]", TURN "," SHARD("[4,4]", BYTES "," GZIP, "end"),
                           "end") "," GZIP "]",
                 whole, nested);
    o.tuning = TUNING(.inner_order = ZARR_INNER_ORDER_MORTON);
    assert_ok(pw_box(a, zero, whole, data, &o, true));
    assert_ok(pw_box(a, zero, whole, got, NULL, false));
    assert_memory_equal(got, data, sizeof *got * N * N);
    o.tuning = TUNING(.inner_order = 3);
    assert_status(pw_box(a, zero, whole, data, &o, true), ZARR_ERR_INVALID);
    zarr_array_free(a);
    pw_close(&w);
}

/* ---- which units exist --------------------------------------------------- */

static void check_present(const char *codecs, const char *pipeline)
{
    const uint64_t chunk[2] = {16, 16}, gone[2] = {1, 2}, at[2] = {10, 10},
                   n[2] = {40, 50};
    uint8_t present[17];
    zarr_io_options o = ZARR_IO_OPTIONS_INIT;
    struct pw w;
    zarr_array *a;

    fill_data();
    pw_open(&w, 2, MEMORY, 0);
    a = pw_array(w.store, "a", codecs, shape, chunk);
    assert_ok(pw_box(a, at, n, data, NULL, true));
    assert_ok(zarr_array_block_erase(a, gone, NULL, &terr));
    memset(present, 7, sizeof present);
    o.tuning = TUNING(.pipeline = pipeline);
    o.present = present;
    o.n_present = 16;
    assert_ok(pw_box(a, zero, shape, got, &o, false));
    for (int i = 0; i < 16; i++)
        assert_int_equal(present[i], i != 1 * 4 + 2);
    assert_int_equal(present[16], 7);
    assert_ok(pw_box(a, (const uint64_t[2]){17, 33}, (const uint64_t[2]){31, 20}, got, &o,
                     false));
    assert_int_equal(present[0], 0);
    for (int i = 1; i < 4; i++)
        assert_int_equal(present[i], 1);
    o.n_present = 3;
    assert_status(pw_box(a, zero, shape, got, &o, false), ZARR_ERR_INVALID);
    zarr_array_free(a);
    pw_close(&w);
}

static void test_present(void **state)
{
    static const char *const codecs[] = {
        "[" BYTES "]", "[" BYTES "," GZIP "]", "[" SHARD("[4,8]", BYTES, "end") "]",
        "[" SHARD("[8,8]", SHARD("[4,4]", BYTES, "end"), "start") "]",
        "[" SHARD("[4,8]", BYTES, "end") "," GZIP "]"};

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(codecs); i++) {
        check_present(codecs[i], NULL);
        check_present(codecs[i], "serial");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_coalesce),      cmocka_unit_test(test_memory),
        cmocka_unit_test(test_memory_shared), cmocka_unit_test(test_preference),
        cmocka_unit_test(test_outside),       cmocka_unit_test(test_inner_order),
        cmocka_unit_test(test_present),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
