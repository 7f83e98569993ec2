/*
 * unit/pipe/test_memory_limit.c - the limit of memory of one call, or of a context: it
 * is kept, or the call is refused before any I/O, with the bytes that one chunk or shard
 * needs.
 */
#include "over_store.h"

#include <unistd.h>

#define MEMORY (UINT64_C(64) << 20)

enum {
    THREADS = 4
};
static const uint64_t unit[2] = {16, 32};

static const char *const chains[] = {
    "[" BYTES "]",
    "[" BYTES "," GZIP "]",
    "[" TURN "," BIG "," CRC "]",
    "[" SHARD("[8,8]", BYTES "," GZIP, "end") "]",
    "[" SHARD("[8,8]", BYTES, "start") "]",
    "[" SHARD("[16,16]", SHARD("[8,8]", BYTES "," GZIP, "end"), "end") "]",
    "[" SHARD("[8,8]", BYTES "," GZIP, "end") "," GZIP "]",
    "[" SHARD("[16,16]", SHARD("[8,8]", BYTES, "end") "," GZIP, "end") "," CRC "]",
};

enum place {
    IN_MEMORY,
    SLOW,   /* without ranges, in batches */
    RANGES, /* in batches */
    LOCAL,
    PLACES
};

static char dir[256];

static zarr_array *open_place(struct pw *w, struct over *o, enum place place,
                              const char *codecs)
{
    const char *tmp = getenv("TMPDIR");

    pw_context(w, THREADS, MEMORY, 0);
    snprintf(dir, sizeof dir, "%s/zarrc-limit-XXXXXX", tmp ? tmp : "/tmp");
    if (place == LOCAL)
        assert_non_null(mkdtemp(dir));
    assert_ok(zarr_store_open(&w->store, w->ctx, place == LOCAL ? dir : "memory:", NULL,
                              &terr));
    if (place == SLOW || place == RANGES)
        over_open(w, o, &over_submits,
                  place == RANGES ? ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_SUFFIX : 0);
    return pw_array(w->store, "a", codecs, shape, unit);
}

static void close_place(struct pw *w, zarr_array *a)
{
    assert_ok(zarr_node_delete(w->store, "a", &terr));
    (void)rmdir(dir); /* of LOCAL */
    zarr_array_free(a);
    pw_close(w);
}

/* Refuses the call with one byte, and returns the bytes that it asks for. */
static uint64_t needed_bytes(zarr_array *a, const uint64_t *at, const uint64_t *n,
                             const char *pipeline, bool write)
{
    zarr_stats stats = ZARR_STATS_INIT;
    zarr_io_options o = {.struct_size = sizeof o, .stats = &stats};
    const char *needs;
    uint64_t least;

    o.tuning = TUNING(.memory_bytes = 1, .pipeline = pipeline);
    assert_status(pw_box(a, at, n, got, &o, write), ZARR_ERR_LIMIT);
    needs = strstr(terr.message, " needs ");
    assert_non_null(needs);
    assert_non_null(strstr(terr.message, "/a: one "));
    least = strtoull(needs + strlen(" needs "), NULL, 10);
    assert_int_equal(stats.store_gets + stats.store_puts + stats.store_ranges, 0);
    o.tuning = TUNING(.memory_bytes = least - 1, .pipeline = pipeline);
    assert_status(pw_box(a, at, n, got, &o, write), ZARR_ERR_LIMIT);
    return least;
}

/* Runs the call with a limit, and checks that it kept the limit. */
static void check_limit(struct pw *w, zarr_array *a, const uint64_t *at,
                        const uint64_t *n, const char *pipeline, uint64_t bytes,
                        bool write)
{
    const zarr_io_options o = {.struct_size = sizeof o,
                               .tuning =
                                   TUNING(.memory_bytes = bytes, .pipeline = pipeline)};

    w->ctx->budget.peak = 0;
    assert_ok(pw_box(a, at, n, got, &o, write));
    assert_in_range(w->ctx->budget.peak, 0, bytes);
    assert_int_equal(w->ctx->budget.now, 0);
}

static void check(const char *codecs, enum place place, const char *pipeline)
{
    const uint64_t at[2] = {3, 5}, n[2] = {N - 7, N - 9};
    struct over over;
    struct pw w;
    zarr_array *a = open_place(&w, &over, place, codecs);
    uint64_t least, part;

    for (int i = 0; i < N * N; i++)
        data[i] = got[i] = i / 3 + 1;
    part = needed_bytes(a, at, n, pipeline, true);
    least = needed_bytes(a, zero, unit, pipeline, true); /* without an old value */
    assert_true(least < part);
    for (uint64_t k = 1; k <= 4; k++)
        check_limit(&w, a, zero, unit, pipeline, least * (k + 1) / 2, true);
    least = part;
    for (uint64_t k = 1; k <= 4; k++) {
        check_limit(&w, a, at, n, pipeline, least * (k + 1) / 2, true);
        check_limit(&w, a, zero, shape, pipeline, least * (k + 1) / 2, true);
    }
    assert_ok(pw_box(a, zero, shape, data, NULL, true));
    least = needed_bytes(a, at, n, pipeline, false);
    for (uint64_t k = 1; k <= 4; k++) {
        memset(got, 0, sizeof got);
        check_limit(&w, a, at, n, pipeline, least * (k + 1) / 2, false);
        memset(got, 0, sizeof got);
        check_limit(&w, a, zero, shape, pipeline, least * (k + 1) / 2, false);
        assert_memory_equal(got, data, sizeof data);
    }
    close_place(&w, a);
}

static void test_kept_or_refused(void **state)
{
    (void)state;
    for (size_t c = 0; c < ZR_COUNT(chains); c++)
        for (int place = IN_MEMORY; place < PLACES; place++) {
            check(chains[c], (enum place)place, NULL);
            check(chains[c], (enum place)place, "serial");
        }
}

/* An append is refused before it changes anything. */
static void test_append(void **state)
{
    const uint64_t rows[2] = {3, N};
    const zarr_tensor t = pw_tensor(got, rows, 3 * N * sizeof *got);
    zarr_io_options o = ZARR_IO_OPTIONS_INIT;
    struct over over;
    struct pw w;
    zarr_array *a = open_place(&w, &over, IN_MEMORY, chains[1]);

    (void)state;
    o.tuning = TUNING(.memory_bytes = 1000);
    assert_status(zarr_array_append(a, 0, &t, NULL, &o, &terr), ZARR_ERR_LIMIT);
    assert_int_equal(zarr_array_shape(a)[0], N);
    o.tuning = TUNING(.memory_bytes = 200000);
    assert_ok(zarr_array_append(a, 0, &t, NULL, &o, &terr));
    close_place(&w, a);
}

/* The memory of a context counts as a limit if the user gave it. */
static void test_context(void **state)
{
    const uint64_t needs = 16 * 32 * sizeof *data * 3; /* elements, old and new bytes */
    const uint64_t rows[2] = {3, N};
    const uint64_t smaller[2] = {3, 3}, at[2] = {3, 5}, n[2] = {N - 7, N - 9};
    const zarr_tensor t = pw_tensor(got, rows, 3 * N * sizeof *got);
    zarr_context_options opts = {.max_threads = THREADS, .memory_bytes = needs - 1};
    zarr_io_options o = ZARR_IO_OPTIONS_INIT;
    char setting[32];
    struct pw w;
    zarr_array *a;

    (void)state;
    for (int i = 0; i < 2; i++) {
        pw_context_options(&w, &opts);
        assert_ok(zarr_store_open(&w.store, w.ctx, "memory:", NULL, &terr));
        a = pw_array(w.store, "a", chains[0], shape, unit);
        if (i == 0) {
            assert_status(pw_box(a, at, n, data, NULL, true), ZARR_ERR_LIMIT);
            assert_true(
                zarr_error_text(&terr, ZARR_ERROR_SETTING, setting, sizeof setting) > 0);
            assert_string_equal(setting, "memory_bytes");
            assert_status(zarr_array_append(a, 0, &t, NULL, NULL, &terr), ZARR_ERR_LIMIT);
            o.tuning = TUNING(.memory_bytes = 2 * needs); /* a call cannot have more */
            assert_status(pw_box(a, at, n, data, &o, true), ZARR_ERR_LIMIT);
            assert_status(zarr_array_resize(a, smaller, NULL, &terr), ZARR_ERR_LIMIT);
            assert_int_equal(zarr_array_shape(a)[0], N);
            w.ctx->engine.memory_limit = 0; /* as if it was the default */
        }
        assert_ok(pw_box(a, zero, shape, data, NULL, true));
        assert_ok(pw_box(a, zero, shape, got, NULL, false));
        assert_memory_equal(got, data, sizeof got);
        assert_in_range(w.ctx->budget.peak, 0, needs);
        assert_ok(zarr_array_resize(a, smaller, NULL, &terr));
        zarr_array_free(a);
        pw_close(&w);
        opts.memory_bytes = needs;
    }
}

/* A resize that removes whole chunks needs no memory for a chunk at the border. */
static void test_whole_chunks_go(void **state)
{
    zarr_context_options opts = {.max_threads = THREADS, .memory_bytes = 1000};
    const uint64_t cut[2] = {16, 33}, rows[2] = {16, N}, both[2] = {16, 32},
                   none[2] = {0, 5};
    struct pw w;
    zarr_array *a;

    (void)state;
    pw_context_options(&w, &opts);
    assert_ok(zarr_store_open(&w.store, w.ctx, "memory:", NULL, &terr));
    a = pw_array(w.store, "a", chains[1], shape, unit);
    assert_status(zarr_array_resize(a, cut, NULL, &terr), ZARR_ERR_LIMIT);
    assert_ok(zarr_array_resize(a, rows, NULL, &terr));
    assert_ok(zarr_array_resize(a, both, NULL, &terr));
    assert_ok(zarr_array_resize(a, none, NULL, &terr));
    zarr_array_free(a);
    pw_close(&w);
}

/* So are calls with parts and submitted calls. */
static void test_other_calls(void **state)
{
    const uint64_t all[2] = {N, N};
    zarr_tensor t = pw_tensor(got, all, sizeof got);
    zarr_io_part part = {.tensor = &t};
    zarr_io_options o = ZARR_IO_OPTIONS_INIT;
    zarr_request *rq = NULL;
    struct over over;
    struct pw w;
    zarr_array *a = open_place(&w, &over, IN_MEMORY, chains[0]);

    (void)state;
    o.tuning = TUNING(.memory_bytes = 1000);
    assert_status(zarr_array_read_many(a, &part, 1, &o, &terr), ZARR_ERR_LIMIT);
    assert_status(part.status, ZARR_ERR_LIMIT);
    assert_status(zarr_array_write_many(a, &part, 1, &o, &terr), ZARR_ERR_LIMIT);
    assert_status(zarr_array_read_submit(&rq, a, NULL, &t, &o, &terr), ZARR_ERR_LIMIT);
    assert_null(rq);
    close_place(&w, a);
}

/* A read of a part of an uncompressed chunk needs memory for the bytes from the first to
 * the last that are read; one of whole chunks in the order of the tensor needs none. */
static void test_direct(void **state)
{
    static const uint64_t big[2] = {1024, 1024}, row[2] = {1, 1024},
                          column[2] = {1024, 1}, most[2] = {900, 1000}, at[2] = {100, 0};
    static int32_t values[1024 * 1024], out[1024 * 1024];

    (void)state;
    for (int i = 0; i < 1024 * 1024; i++)
        values[i] = i + 1;
    for (int place = 0; place < PLACES; place++) {
        const bool own = place == IN_MEMORY || place == LOCAL;
        zarr_io_options o = ZARR_IO_OPTIONS_INIT;
        struct over over;
        struct pw w;
        zarr_array *a, *small = open_place(&w, &over, (enum place)place, chains[0]);

        if (own) { /* a chunk that goes straight to the tensor */
            assert_ok(pw_box(small, zero, unit, values, NULL, true));
            o.tuning = TUNING(.memory_bytes = 1);
            assert_ok(pw_box(small, zero, unit, out, &o, false));
            assert_memory_equal(out, values, sizeof *values * unit[0] * unit[1]);
        }
        zarr_array_free(small);
        assert_ok(zarr_node_delete(w.store, "a", &terr));
        a = pw_array(w.store, "a", chains[0], big, big);
        assert_ok(pw_box(a, zero, big, values, NULL, true));
        if (!own) { /* it fetches chunks in batches */
            assert_in_range(needed_bytes(a, at, row, NULL, false), sizeof values,
                            3 * sizeof values);
        } else {
            assert_int_equal(needed_bytes(a, at, row, NULL, false),
                             sizeof *values * 1024);
            check_limit(&w, a, at, row, NULL, sizeof *values * 1024, false);
            assert_memory_equal(got, &values[100 * 1024], sizeof *values * 1024);
            /* one read of the chunk costs less than one of each row */
            assert_int_equal(needed_bytes(a, zero, column, NULL, false),
                             2 * sizeof values);
            /* slabs of 256 KiB, by as many threads as the limit has room for */
            assert_int_equal(needed_bytes(a, at, most, NULL, false), 1 << 18);
            for (uint64_t k = 1; k <= 3; k++) {
                o.tuning = TUNING(.memory_bytes = k << 18);
                w.ctx->budget.peak = 0;
                assert_ok(pw_box(a, at, most, out, &o, false));
                assert_in_range(w.ctx->budget.peak, 1, k << 18);
                assert_int_equal(out[899 * 1000 + 999], values[999 * 1024 + 999]);
            }
            o.tuning = TUNING(.memory_bytes = 1 << 18);
            memset(out, 0, sizeof out);
            assert_ok(pw_box(a, zero, big, out, &o, false));
            assert_memory_equal(out, values, sizeof out);
        }
        assert_in_range(needed_bytes(a, at, row, "serial", false), sizeof values,
                        3 * sizeof values);
        close_place(&w, a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kept_or_refused), cmocka_unit_test(test_append),
        cmocka_unit_test(test_whole_chunks_go), cmocka_unit_test(test_other_calls),
        cmocka_unit_test(test_context),         cmocka_unit_test(test_direct),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
