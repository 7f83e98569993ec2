/*
 * unit/pipe/request/test_progress.c - requests that are waited for and cancelled, their
 * progress, and what is held while it is told.
 */
#include "sanitizers.h"
#include "unit/pipe/over_store.h"

#include <unistd.h>

static void count_progress(void *user, const zarr_stats *so_far)
{
    zarr_stats *last = user;

    assert_true(so_far->chunks_done <= so_far->chunks_total);
    *last = *so_far;
}

static void test_requests(void **state)
{
    const uint64_t dims[2] = {N, N};
    const zarr_tensor t = pw_tensor(got, dims, sizeof got);
    zarr_stats last = ZARR_STATS_INIT;
    zarr_io_options opts = {.struct_size = sizeof opts,
                            .max_threads = 2,
                            .progress = count_progress,
                            .progress_user = &last};
    struct over o;
    struct pw w;
    zarr_array *a;
    zarr_request *rq = NULL;
    int done = 1;

    (void)state;
    pw_open(&w, 2, UINT64_C(64) << 20, 1024);
    over_open(&w, &o, &over_runs, ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_SUFFIX);
    a = pw_array(w.store, "a", "[" SHARD("[4,4]", BYTES, "end") "]", shape, chunk);
    make_data(5);
    assert_ok(pw_box(a, zero, shape, data, &opts, true));
    assert_int_equal(last.chunks_total, 256);
    assert_int_equal(last.chunks_done, 256);
    o.slow_ms = 3;
    assert_ok(zarr_array_read_submit(&rq, a, NULL, &t, &opts, &terr));
    assert_ok(zarr_request_wait(rq, 1000, &done, &terr));
    assert_int_equal(done, 0);
    assert_ok(zarr_request_wait(rq, ZARR_WAIT_FOREVER, &done, &terr));
    assert_int_equal(done, 1);
    assert_memory_equal(got, data, sizeof data);
    assert_int_equal(last.chunks_done, 256);
    zarr_request_free(rq);

    assert_ok(zarr_array_read_submit(&rq, a, NULL, &t, &opts, &terr));
    assert_ok(zarr_request_wait(rq, 20000000, &done, &terr));
    zarr_request_cancel(rq);
    assert_status(zarr_request_wait(rq, ZARR_WAIT_FOREVER, &done, &terr),
                  ZARR_ERR_CANCELLED);
    zarr_request_free(rq);
    zarr_array_free(a);
    pw_close(&w);
}

/* A progress callback that reads and writes the same chunks: no lock may be held during
 * the call, nor any of a budget that has room for one request only. */
struct nosy {
    zarr_array *array;
    int calls;
    bool busy;
};

static void nosy_progress(void *user, const zarr_stats *so_far)
{
    const uint64_t part[2] = {1, 3}, at[2] = {1, 1};
    struct nosy *n = user;
    int32_t few[3];

    (void)so_far;
    assert_false(n->busy);
    n->busy = true;
    n->calls++;
    assert_ok(pw_box(n->array, at, part, few, NULL, false));
    assert_ok(pw_box(n->array, at, part, few, NULL, true));
    n->busy = false;
}

static void test_progress_holds_nothing(void **state)
{
    static const char *const codecs[] = {"[" BYTES "," GZIP "]",
                                         "[" SHARD("[4,4]", BYTES "," GZIP, "end") "]"};
    static const char *const pipelines[] = {"waves", "serial"};
    const uint64_t at[2] = {1, 1};

    (void)state;
    alarm(60); /* a lock held here would deadlock */
    for (size_t i = 0; i < ZR_COUNT(codecs) * ZR_COUNT(pipelines) * 4;
         i += ZR_CASE_STEP) {
        const bool wide = i >= 8; /* four units, which are written together */
        const uint64_t part[2] = {wide ? 30 : 14, wide ? 31 : 15};
        struct nosy nosy = {0};
        zarr_io_options opts = {.struct_size = sizeof opts,
                                .progress = nosy_progress,
                                .progress_user = &nosy,
                                .tuning = TUNING(.pipeline = pipelines[i % 2])};
        struct over o;
        struct pw w;

        /* a budget for one request at a time */
        pw_open(&w, 2, wide ? UINT64_C(64) << 20 : 1, 0);
        over_open(&w, &o, i % 8 < 4 ? &over_runs : &over_submits,
                  ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_SUFFIX);
        nosy.array = pw_array(w.store, "a", codecs[i / 2 % 2], shape, chunk);
        make_data(3);
        assert_ok(pw_box(nosy.array, zero, shape, data, NULL, true));
        o.slow_ms = i / 2 % 2 ? 20 : 60;
        memcpy(got, data, sizeof got);
        assert_ok(pw_box(nosy.array, at, part, got, &opts, true));
        assert_ok(pw_box(nosy.array, at, part, got, &opts, false));
        assert_true(nosy.calls > (wide ? 1 : 2));
        zarr_array_free(nosy.array);
        pw_close(&w);
    }
    alarm(0);
}

/* Many short requests whose worker threads start late, each with its own context. */
static void test_late_helpers(void **state)
{
    (void)state;
    make_data(9);
    for (int i = 0; i < 100; i++) {
        struct pw w;
        zarr_array *a;

        pw_open(&w, 4, UINT64_C(64) << 20, 256);
        a = pw_array(w.store, "a", "[" BYTES "]", shape, chunk);
        assert_ok(pw_box(a, zero, shape, data, NULL, true));
        assert_ok(pw_box(a, zero, shape, got, NULL, false));
        assert_memory_equal(got, data, sizeof data);
        zarr_array_free(a);
        pw_close(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_progress_holds_nothing),
        cmocka_unit_test(test_late_helpers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
