/*
 * unit/pipe/batch/test_device_waves.c - reads of a device that does all work late: chunks
 * go up and elements to their places in lists, codecs of the device leave their work on a
 * stream, and a wave waits once. Each call that fails ends the read, and damage names its
 * chunk.
 */
#include "unit/pipe/device_test.h"

#include <unistd.h>

#include <zarrc/parts.h>

static int32_t got[N];

static void test_read(void **state)
{
    (void)state;
    for (uint32_t threads = 1; threads <= 4; threads += 3)
        for (uint64_t wave = 1024; wave <= (1 << 20); wave *= 1024) {
            struct pw w;

            open_world(&w, threads, wave);
            for (int k = 0; k < N_KINDS; k++) {
                char path[16];
                zarr_array *a;

                snprintf(path, sizeof path, "a%d", k);
                a = filled_array(&w, path, k);
                compare_read(&w, a, "...", got);
                compare_read(&w, a, "3:90, 5:37", got);
                compare_read(&w, a, "::7, 1::3", got);
                assert_ok(zarr_array_block_erase(a, (uint64_t[2]){1, 0}, NULL, &terr));
                compare_read(&w, a, "...", got);
                zarr_array_free(a);
            }
            close_world(&w);
        }
}

/* ---- writing -------------------------------------------------------------------- */

/* Writes the data, or a part of it, from the device. Some chunks have only the fill
 * value. */
static void write_and_compare(const struct pw *w, int kind, const char *text)
{
    static int32_t want[N], part[N];
    static int n;
    zarr_array *a;
    uint64_t lengths[2];
    zarr_selection *sel = parse_selection(text, lengths);
    char path[16], other[16];
    zarr_tensor t, host;
    zarr_memory mem;

    snprintf(path, sizeof path, "w%d", ++n);
    snprintf(other, sizeof other, "h%d", n);
    a = pw_array(w->store, path, kinds[kind].codecs, shape, kinds[kind].chunk);
    for (int i = 0; i < N; i++)
        part[i] = i / 300 % 3 ? data[i] : 0;
    mem = tensor_new(w, &t, lengths);
    assert_int_equal(zarr_fakedev_poke(mem.handle, 0, part, sizeof part), 0);
    assert_ok(zarr_array_write(a, sel, &t, NULL, &terr));
    zarr_tensor_host(&host, NULL, want, sizeof want, 2, lengths);
    assert_ok(zarr_array_read(a, sel, &host, NULL, &terr));
    assert_memory_equal(want, part, zarr_selection_n_items(sel) * sizeof data[0]);
    zarr_array_free(a);
    /* the same from the host gives the same stored bytes */
    a = pw_array(w->store, other, kinds[kind].codecs, shape, kinds[kind].chunk);
    zarr_tensor_host(&host, NULL, part, sizeof part, 2, lengths);
    assert_ok(zarr_array_write(a, sel, &host, NULL, &terr));
    same_arrays(w, path, other, kind);
    zarr_array_free(a);
    zarr_selection_free(sel);
    zarr_memory_free(w->ctx, &mem);
}

static void test_write(void **state)
{
    (void)state;
    for (uint32_t threads = 1; threads <= 4; threads += 3)
        for (uint64_t wave = 1024; wave <= (1 << 20); wave *= 1024) {
            struct pw w;

            open_world(&w, threads, wave);
            for (int k = 0; k < N_KINDS; k++) {
                write_and_compare(&w, k, "...");
                write_and_compare(&w, k, "3:90, 5:37");
                write_and_compare(&w, k, "::7, 1::3");
            }
            close_world(&w);
        }
}

/* ---- the number of calls ------------------------------------------------------- */

/* 1,000 inner chunks of 10 shards: a list up, the codec, a list of boxes, one wait. */
static void test_calls(void **state)
{
    const uint64_t chunk[2] = {10, 40};
    zarr_io_options opts = ZARR_IO_OPTIONS_INIT;
    struct counts c;
    struct pw w;
    zarr_array *a;
    zarr_tensor t;
    zarr_memory mem;

    (void)state;
    open_world(&w, 2, 1 << 20);
    a = pw_array(w.store, "a", "[" SHARD("[2,2]", BYTES "," LATE, "end") "]", shape,
                 chunk);
    zarr_tensor_host(&t, NULL, data, sizeof data, 2, sizes);
    assert_ok(zarr_array_write(a, NULL, &t, NULL, &terr));
    mem = tensor_new(&w, &t, sizes);
    count_begin(&c, &opts);
    assert_ok(zarr_array_read(a, NULL, &t, &opts, &terr));
    count_end(&c);
    assert_int_equal(zarr_fakedev_peek(mem.handle, 0, got, sizeof got), 0);
    assert_memory_equal(got, data, sizeof data);
    assert_int_equal(atomic_load(&n_late.jobs), 1000);
    assert_int_equal(atomic_load(&n_late.calls), c.stats.waves);
    assert_int_equal(atomic_load(&n_late.settled), c.stats.waves);
    assert_int_equal(atomic_load(&n_late.at_once), 0);
    assert_in_range(c.stats.waves, 1, 3);
    assert_int_equal(c.late.lists, 2 * c.stats.waves);
    assert_int_equal(c.late.syncs, c.stats.waves);
    /* what was fetched at once went up at once */
    assert_in_range(c.moved.copies_up, 1, 10);
    assert_int_equal(c.moved.bytes_up, sizeof data);
    assert_int_equal(c.moved.bytes_down, 0);
    zarr_memory_free(w.ctx, &mem);
    zarr_array_free(a);
    close_world(&w);
}

/* Streams are kept for later waves and requests, also after failures, and
 * zarr_context_trim() closes them. */
static void test_streams(void **state)
{

    (void)state;
    for (uint32_t threads = 1; threads <= 4; threads += 3) {
        zarr_stats stats = ZARR_STATS_INIT;
        zarr_io_options o = {.struct_size = sizeof o, .stats = &stats};
        zarr_fakedev_late_counters c;
        void *foreign = NULL;
        struct pw w;
        zarr_array *a;
        zarr_tensor t;
        zarr_memory mem;

        open_world(&w, threads, 1024);
        assert_ok(zarr_fakedev_vtable_late()->stream_open(device, 0, &foreign, &terr));
        a = filled_array(&w, "a", 5);
        mem = tensor_new(&w, &t, sizes);
        for (int i = 0; i < 10; i++) {
            o.stream = i % 2 ? foreign : NULL;
            assert_ok(zarr_array_read(a, NULL, &t, &o, &terr));
            assert_true(stats.waves > 3);
            damage = i == 7 ? data[0] : -1;
            assert_status(zarr_array_write(a, NULL, &t, NULL, &terr), ZARR_OK);
            assert_status(zarr_array_read(a, NULL, &t, NULL, &terr),
                          damage < 0 ? ZARR_OK : ZARR_ERR_CORRUPT);
            damage = -1;
        }
        zarr_fakedev_vtable_late()->stream_close(device, foreign);
        zarr_fakedev_late_count(device, &c);
        c.streams_opened--;
        /* twelve waves of a read in flight at most, or six of a write with old values
         * to decode, and the one that the request waited for */
        assert_in_range(c.streams_opened, 1, threads == 1 ? 2 : 13);
        assert_int_equal(c.streams, c.streams_opened);
        zarr_context_trim(w.ctx);
        zarr_fakedev_late_count(device, &c);
        assert_int_equal(c.streams, 0);
        zarr_memory_free(w.ctx, &mem);
        zarr_array_free(a);
        close_world(&w);
    }
}

/* Each wave of any chain makes at most six calls besides those of its codecs, and waits
 * once, also for a codec that does not check its input; if a codec of the CPU is between
 * two of the device, once more for each. */
static void test_bounds(void **state)
{
    int n = 0;

    (void)state;
    context_trust = ZARR_TRUST_FULL;
    for (int k = 0; k < N_KINDS; k++)
        for (int i = 0; i < 4; i++) {
            const bool parts = i % 2;
            const bool between = strstr(kinds[k].codecs, LATE "," GZIP "," LATE);
            zarr_io_options opts = ZARR_IO_OPTIONS_INIT;
            struct counts c;
            zarr_io_part part = {0};
            struct pw w;
            zarr_array *a;
            zarr_tensor t;
            zarr_memory mem;

            if (n++ % ZR_CASE_STEP != 0)
                continue;
            unchecked = i / 2;
            open_world(&w, 2, 1 << 20);
            a = filled_array(&w, "a", k);
            assert_ok(zarr_array_block_erase(a, (uint64_t[2]){1, 0}, NULL, &terr));
            mem = tensor_new(&w, &t, sizes);
            part.tensor = &t;
            assert_ok(zarr_array_read(a, NULL, &t, NULL, &terr)); /* warms the pool */
            count_begin(&c, &opts);
            assert_ok(parts ? zarr_array_read_many(a, &part, 1, &opts, &terr)
                            : zarr_array_read(a, NULL, &t, &opts, &terr));
            count_end(&c);
            assert_in_range(c.stats.waves, 1, 3);
            /* the codec of this test makes a call for each chunk */
            assert_in_range(c.late.calls - (uint64_t)atomic_load(&n_late.jobs), 3,
                            6 * c.stats.waves);
            if (!between)
                assert_int_equal(c.late.syncs, c.stats.waves);
            zarr_memory_free(w.ctx, &mem);
            zarr_array_free(a);
            close_world(&w);
        }
    unchecked = false;
    context_trust = 0;
}

/* Raw chunks go up in one list, missing chunks are filled in one, from pinned memory;
 * with a small budget for it, from ordinary memory. */
static void test_raw_and_missing(void **state)
{
    static const uint64_t budgets[] = {0, 64};
    static const char *const chains[] = {"[" BYTES "]", "[" BYTES "," GZIP "]"};
    const uint64_t chunk[2] = {1, 20}; /* 200 of them */

    (void)state;
    for (size_t i = 0; i < 2 * ZR_COUNT(budgets); i++) {
        zarr_io_options opts = ZARR_IO_OPTIONS_INIT;
        struct counts c;
        struct pw w;
        zarr_array *a;
        zarr_tensor t;
        zarr_memory mem;

        pinned_bytes = budgets[i / 2];
        open_world(&w, 2, 1 << 20);
        pinned_bytes = 0;
        a = pw_array(w.store, "a", chains[i % 2], shape, chunk);
        zarr_tensor_host(&t, NULL, data, sizeof data, 2, sizes);
        assert_ok(zarr_array_write(a, NULL, &t, NULL, &terr));
        for (uint64_t r = 0; r < ROWS; r += 3)
            assert_ok(zarr_array_block_erase(a, (uint64_t[2]){r, 1}, NULL, &terr));
        mem = tensor_new(&w, &t, sizes);
        count_begin(&c, &opts);
        assert_ok(zarr_array_read(a, NULL, &t, &opts, &terr));
        count_end(&c);
        assert_int_equal(zarr_fakedev_peek(mem.handle, 0, got, sizeof got), 0);
        for (int k = 0; k < N; k++)
            assert_int_equal(got[k], k % COLS >= 20 && k / COLS % 3 == 0 ? -1 : data[k]);
        assert_int_equal(c.stats.chunks_missing, 34);
        assert_in_range(c.stats.waves, 1, 3);
        /* one list of copies, one of fills, one wait; no single copies */
        assert_in_range(c.late.lists, 2, 2 * c.stats.waves);
        /* 34 fills; what the CPU decoded is in runs between the missing chunks */
        if (i % 2 == 0)
            assert_int_equal(c.late.list_items, 200);
        else
            assert_in_range(c.late.list_items, 34 + 34, 34 + 34 + c.stats.waves);
        assert_in_range(c.late.syncs, 1, c.stats.waves);
        assert_int_equal(c.moved.bytes_up, sizeof data[0] * 20 * (200 - 34));
        assert_int_equal(c.moved.bytes_down, 0);
        if (budgets[i / 2])
            assert_int_equal(c.late.pinned_allocs, 0);
        else
            assert_in_range(c.late.pinned_allocs, 1, 2 * c.stats.waves);
        zarr_memory_free(w.ctx, &mem);
        zarr_array_free(a);
        close_world(&w);
    }
}

/* ---- where blocks begin ----------------------------------------------------------- */

/* A store whose values are on the device: ranges of a shard begin anywhere. */
static void values_on_device(struct pw *w)
{
    zarr_store_options o = ZARR_STORE_OPTIONS_INIT;

    o.device_type = ZARR_DEVICE_EXT;
    zarr_store_free(w->store);
    assert_ok(zarr_store_open(&w->store, w->ctx, "memory:", &o, &terr));
}

/* A decoder gets its input where it says, from the host, from a store that reaches the
 * device, and from the codec before it. */
static void test_alignment(void **state)
{
    static const char *const texts[] = {"...", "3:90, 5:37"};
    static const uint32_t wanted[] = {0, 16, 256};
    int n = 0;

    (void)state;
    for (size_t i = 0; i < 2 * ZR_COUNT(wanted); i++)
        for (int kind = 0; kind < N_KINDS; kind++) {
            struct source s;
            struct pw w;
            zarr_array *a;

            if (n++ % ZR_CASE_STEP != 0)
                continue;
            codec_alignment = wanted[i / 2];
            open_world(&w, 2, 1 << 20);
            if (i % 2)
                values_on_device(&w);
            a = filled_array(&w, "a", kind);
            atomic_store(&n_crooked, 0);
            memset(&n_late, 0, sizeof n_late);
            for (size_t k = 0; k < ZR_COUNT(texts); k++)
                compare_read(&w, a, texts[k], got);
            source_open(&w, &s, "0::3, 3:25:2");
            assert_ok(zarr_array_write(a, s.sel, &s.t, NULL, &terr));
            compare_read(&w, a, "...", got);
            if (strstr(kinds[kind].codecs, "late"))
                assert_true(atomic_load(&n_late.jobs) > 0);
            assert_int_equal(atomic_load(&n_crooked), 0);
            source_close(&w, &s);
            zarr_array_free(a);
            close_world(&w);
        }
    codec_alignment = 0;
}

/* ---- failures ------------------------------------------------------------------ */

static void failing_calls(zarr_status status)
{
    for (int kind = 0; kind < N_KINDS; kind++) {
        struct pw w;
        zarr_array *a;

        open_world(&w, 2, 1 << 20);
        a = filled_array(&w, "a", kind);
        read_failing(&w, a, status);
        zarr_array_free(a);
        close_world(&w);
    }
}

static void test_failing_calls(void **state)
{
    (void)state;
    failing_calls(ZARR_ERR_DEVICE);
}

static void test_short_of_memory(void **state)
{
    (void)state;
    failing_calls(ZARR_ERR_NO_MEMORY);
}

/* ---- threads that sleep ------------------------------------------------------------ */

static atomic_uint n_asleep, n_alone;
static uint32_t most_asleep;

/* A wait for the device that ends once so many threads wait. */
static zarr_status sleep_together(void *self, void *stream, zarr_error *err)
{
    const uint64_t end = zr_now_ns() + UINT64_C(20000000000);

    atomic_fetch_add(&n_asleep, 1);
    while (atomic_load(&n_asleep) < most_asleep && zr_now_ns() < end)
        usleep(1000);
    atomic_fetch_add(&n_alone, atomic_load(&n_asleep) < most_asleep);
    return zarr_fakedev_vtable_late()->sync(self, stream, err);
}

/* More requests wait for the device than the pool has threads for the CPU: a thread that
 * sleeps is none of them, so another one works. */
static void test_asleep(void **state)
{
    zarr_memory_vtable table = *zarr_fakedev_vtable_late();
    struct zr_pool_stats pool;
    zarr_request **r;
    zarr_tensor *t;
    zarr_memory *mem;
    zarr_array *a;
    struct pw w;

    (void)state;
    table.sync = sleep_together;
    device_table = &table;
    open_world(&w, 2, 1 << 20);
    device_table = NULL;
    a = filled_array(&w, "a", 4);
    zr_pool_stats_get(&pool);
    most_asleep = pool.n_wanted + 3;
    r = calloc(most_asleep, sizeof(zarr_request *));
    t = calloc(most_asleep, sizeof *t);
    mem = calloc(most_asleep, sizeof *mem);
    assert_true(r && t && mem);
    for (uint32_t i = 0; i < most_asleep; i++) {
        mem[i] = tensor_new(&w, &t[i], sizes);
        assert_ok(zarr_array_read_submit(&r[i], a, NULL, &t[i], NULL, &terr));
    }
    for (uint32_t i = 0; i < most_asleep; i++) {
        assert_ok(zarr_request_wait(r[i], UINT64_MAX, NULL, &terr));
        zarr_request_free(r[i]);
        zarr_memory_free(w.ctx, &mem[i]);
    }
    assert_int_equal(atomic_load(&n_alone), 0);
    free(r);
    free(t);
    free(mem);
    zarr_array_free(a);
    close_world(&w);
}

/* One chunk of a batch is damaged. */
static void test_damage(void **state)
{
    uint64_t chunk[ZARR_MAX_RANK];
    struct pw w;
    zarr_array *a;
    zarr_tensor t;
    zarr_memory mem;

    (void)state;
    open_world(&w, 2, 1 << 20);
    a = pw_array(w.store, "a", "[" SHARD("[5,4]", BYTES "," LATE, "end") "]", shape,
                 (uint64_t[2]){20, 20});
    zarr_tensor_host(&t, NULL, data, sizeof data, 2, sizes);
    assert_ok(zarr_array_write(a, NULL, &t, NULL, &terr));
    mem = tensor_new(&w, &t, sizes);
    damage = data[45 * COLS + 28];
    assert_status(zarr_array_read(a, NULL, &t, NULL, &terr), ZARR_ERR_CORRUPT);
    same_key(2, 1);
    assert_int_equal(zarr_error_chunk(&terr, chunk), 2);
    assert_int_equal(chunk[0], 45 / 5);
    assert_int_equal(chunk[1], 28 / 4);
    assert_non_null(strstr(terr.message, "test.late: damage"));
    damage = -1;
    assert_ok(zarr_array_read(a, NULL, &t, NULL, &terr));
    zarr_memory_free(w.ctx, &mem);
    zarr_array_free(a);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_write),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_failing_calls),
        cmocka_unit_test(test_short_of_memory),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_raw_and_missing),
        cmocka_unit_test(test_streams),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_alignment),
        cmocka_unit_test(test_asleep),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
