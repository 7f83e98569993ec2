/*
 * unit/pipe/request/test_too_large.c - chunks that alone need more than all memory that a
 * device has: the CPU does them, which counters and the log say. If no implementation
 * can, the error names the chunk, what it needs and the budget.
 */
#include "unit/pipe/device_test.h"

#include <stdbool.h>

enum {
    SMALL = 512 /* the device's budget: less than most chunks of device_test.h have */
};

static int32_t got[N];
static atomic_int n_told;

static void note_line(void *user, uint32_t level, const char *line)
{
    (void)user;
    if (level == ZARR_LOG_DEBUG && strstr(line, "the CPU does it"))
        atomic_fetch_add(&n_told, 1);
}

static void open_small(struct pw *w, uint32_t threads)
{
    context_log = note_line;
    context_log_level = ZARR_LOG_DEBUG;
    atomic_store(&n_told, 0);
    open_world(w, threads, 1 << 20);
}

/* Codecs that are placed on the device, for each leaf. */
static uint64_t codecs_there(int kind)
{
    const char *at = kinds[kind].codecs;
    uint64_t n = 0;

    while ((at = strstr(at, LATE))) {
        n++;
        at += strlen(LATE);
    }
    return n;
}

static uint64_t count_leaves(zarr_array *a)
{
    zarr_explanation *e = NULL;
    uint64_t n;

    assert_ok(zarr_array_explain(&e, a, ZARR_EXPLAIN_READ, NULL, NULL, NULL, &terr));
    n = e->chunks;
    zarr_explanation_free(e);
    return n;
}

/* Reads into the device with no room for a chunk, and from there with room enough. */
static void read_one(int kind, uint32_t threads, const char *pipeline)
{
    zarr_stats stats = ZARR_STATS_INIT;
    zarr_io_options o = {
        .struct_size = sizeof o, .stats = &stats, .tuning = TUNING(.pipeline = pipeline)};
    struct pw w;
    zarr_array *a;
    zarr_tensor t;
    zarr_memory mem;

    open_small(&w, threads);
    a = filled_array(&w, "a", kind);
    mem = tensor_new(&w, &t, sizes);
    budget_set(&w, SMALL);
    assert_ok(zarr_array_read(a, NULL, &t, &o, &terr));
    assert_int_equal(zarr_fakedev_peek(mem.handle, 0, got, sizeof got), 0);
    assert_memory_equal(got, data, sizeof got);
    assert_int_equal(stats.chunks_done, count_leaves(a));
    assert_int_equal(stats.elements, N);
    if (kinds[kind].chunk[0] * kinds[kind].chunk[1] * sizeof got[0] > 1024 &&
        !strstr(kinds[kind].codecs, "sharding")) {
        assert_int_equal(stats.chunks_fallback, count_leaves(a) * codecs_there(kind));
        assert_int_equal(atomic_load(&n_told) > 0, codecs_there(kind) > 0);
    }
    zarr_memory_free(w.ctx, &mem);
    zarr_array_free(a);
    close_world(&w);
}

static void test_read(void **state)
{
    (void)state;
    for (int kind = 0; kind < N_KINDS; kind++)
        for (uint32_t threads = 1; threads <= 4; threads += 3) {
            read_one(kind, threads, "waves");
            read_one(kind, threads, "serial");
        }
}

static void write_one(int kind, uint32_t threads, const char *pipeline, const char *text)
{
    zarr_stats stats = ZARR_STATS_INIT;
    zarr_io_options o = {
        .struct_size = sizeof o, .stats = &stats, .tuning = TUNING(.pipeline = pipeline)};
    static int32_t base[N];
    zarr_selection *sel = NULL;
    uint64_t lengths[2];
    zarr_tensor t, host;
    zarr_array *d, *h;
    struct pw w;
    zarr_memory mem;

    open_small(&w, threads);
    for (int i = 0; i < N; i++)
        base[i] = -5000 - i;
    d = write_array(&w, "d", kind, base);
    h = write_array(&w, "h", kind, base);
    assert_ok(zarr_selection_parse(&sel, 2, shape, text, &terr));
    for (int dim = 0; dim < 2; dim++)
        lengths[dim] = (uint64_t)zarr_selection_shape(sel)[dim];
    mem = tensor_new(&w, &t, lengths);
    assert_int_equal(zarr_fakedev_poke(mem.handle, 0, data, sizeof data), 0);
    zarr_tensor_host(&host, NULL, data, sizeof data, 2, lengths);
    budget_set(&w, SMALL);
    assert_ok(zarr_array_write(d, sel, &t, &o, &terr));
    assert_int_equal(stats.elements, (uint64_t)lengths[0] * (uint64_t)lengths[1]);
    if (codecs_there(kind) > 0 && atomic_load(&n_told) > 0)
        assert_true(stats.chunks_fallback > 0);
    assert_ok(zarr_array_write(h, sel, &host, NULL, &terr));
    same_arrays(&w, "d", "h", kind);
    zarr_selection_free(sel);
    zarr_memory_free(w.ctx, &mem);
    zarr_array_free(d);
    zarr_array_free(h);
    close_world(&w);
}

static void test_write(void **state)
{
    static const char *const texts[] = {"...", "3:90, 5:37"};

    (void)state;
    for (int kind = 0; kind < N_KINDS; kind++)
        for (uint32_t threads = 1; threads <= 4; threads += 3)
            for (size_t i = 0; i < ZR_COUNT(texts); i++) {
                write_one(kind, threads, "waves", texts[i]);
                write_one(kind, threads, "serial", texts[i]);
            }
}

/* ---- without an implementation for the CPU ---------------------------------------- */

static void device_alone(const struct pw *w)
{
    const zarr_codec_spec_vtable spec = {.struct_size = sizeof spec,
                                         .name = "test.alone",
                                         .kind = ZARR_CODEC_BYTES_BYTES,
                                         .resolve = pw_resolve_same};
    const zarr_codec_impl_vtable late = {.struct_size = sizeof late,
                                         .caps = ZARR_CODEC_SAFE | ZARR_CODEC_CAN_DECODE |
                                                 ZARR_CODEC_CAN_ENCODE |
                                                 ZARR_CODEC_BATCH | ZARR_CODEC_ASYNC,
                                         .codec = "test.alone",
                                         .impl = "fake.alone",
                                         .in_kinds = EXT,
                                         .out_kinds = EXT,
                                         .encode = late_encode,
                                         .decode = late_decode,
                                         .settle = late_settle};

    assert_ok(zarr_context_register_codec_spec(w->ctx, &spec, "test", &terr));
    assert_ok(zarr_context_register_codec_impl(w->ctx, &late, "test", &terr));
}

static void says_why(const char *key)
{
    char said[32];

    assert_true(zarr_error_text(&terr, ZARR_ERROR_KEY, said, sizeof said) > 0);
    assert_string_equal(said, key);
    assert_non_null(strstr(terr.message, "the chunk needs up to "));
    assert_non_null(strstr(terr.message, "whose budget is "));
    assert_non_null(strstr(terr.message, "test.alone"));
}

static void test_alone(void **state)
{
    static const char *const pipelines[] = {"waves", "serial"};

    (void)state;
    more_codecs = device_alone;
    for (size_t i = 0; i < ZR_COUNT(pipelines); i++) {
        zarr_io_options o = {.struct_size = sizeof o,
                             .tuning = TUNING(.pipeline = pipelines[i])};
        struct pw w;
        zarr_array *a;
        zarr_tensor t;
        zarr_memory mem;

        open_small(&w, 2);
        a = pw_array(w.store, "a", "[" BYTES ",{\"name\":\"test.alone\"}]", shape,
                     (uint64_t[2]){50, 20});
        mem = tensor_new(&w, &t, sizes);
        assert_int_equal(zarr_fakedev_poke(mem.handle, 0, data, sizeof data), 0);
        assert_ok(zarr_store_put(w.store, "a/c/0/0", data, sizeof data / 4, NULL, &terr));
        budget_set(&w, SMALL);
        assert_status(zarr_array_read(a, NULL, &t, &o, &terr), ZARR_ERR_NO_MEMORY);
        says_why("a/c/0/0");
        assert_status(zarr_array_write(a, NULL, &t, &o, &terr), ZARR_ERR_NO_MEMORY);
        says_why("a/c/0/0");
        zarr_memory_free(w.ctx, &mem);
        zarr_array_free(a);
        close_world(&w);
    }
    more_codecs = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_write),
        cmocka_unit_test(test_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
