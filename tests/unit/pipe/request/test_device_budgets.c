/*
 * unit/pipe/request/test_device_budgets.c - the memory that a device says it has: waves
 * and batches of units are cut so that they fit, and all requests of a context share it.
 * Who finds too little waits until others give some back, and nothing fails.
 */
#include "unit/pipe/device_test.h"
#include "unit/pipe/own_pipe.h"

#include <pthread.h>

static int32_t base[N], got[N];

/* ---- one request ------------------------------------------------------------------- */

/* However large waves may be otherwise. */
static void test_read(void **state)
{
    int n = 0;

    (void)state;
    for (int kind = 0; kind < N_KINDS; kind++)
        for (uint32_t threads = 1; threads <= 4; threads += 3) {
            zarr_stats stats = ZARR_STATS_INIT;
            zarr_io_options o = {.struct_size = sizeof o, .stats = &stats};
            struct pw w;
            zarr_array *a;
            zarr_tensor t;
            zarr_memory mem;

            if (n++ % ZR_CASE_STEP != 0)
                continue;
            open_world(&w, threads, 1 << 20);
            a = filled_array(&w, "a", kind);
            mem = tensor_new(&w, &t, sizes);
            budget_set(&w, 40 << 10);
            assert_ok(zarr_array_read(a, NULL, &t, &o, &terr));
            assert_int_equal(zarr_fakedev_peek(mem.handle, 0, got, sizeof got), 0);
            assert_memory_equal(got, data, sizeof got);
            assert_true(stats.waves > 1);
            zarr_memory_free(w.ctx, &mem);
            zarr_array_free(a);
            close_world(&w);
        }
}

/* An array with `base`. */
static zarr_array *write_base(const struct pw *w, const char *path, int kind)
{
    for (int i = 0; i < N; i++)
        base[i] = -5000 - i;
    return write_array(w, path, kind, base);
}

/* Leaves are gathered and encoded by as many as there is room for. */
static void test_write(void **state)
{
    static const char *const texts[] = {"...", "3:90, 5:37"};
    int n = 0;

    (void)state;
    for (int k = 0; k < N_KINDS; k++)
        for (size_t i = 0; i < ZR_COUNT(texts); i++) {
            struct source s;
            zarr_array *d, *h;
            struct pw w;

            if (n++ % ZR_CASE_STEP != 0)
                continue;
            open_world(&w, 2, 1 << 20);
            d = write_base(&w, "d", k);
            h = write_base(&w, "h", k);
            source_open(&w, &s, texts[i]);
            budget_set(&w, 20 << 10);
            assert_ok(zarr_array_write(d, s.sel, &s.t, NULL, &terr));
            assert_ok(zarr_array_write(h, s.sel, &s.host, NULL, &terr));
            same_arrays(&w, "d", "h", k);
            source_close(&w, &s);
            zarr_array_free(d);
            zarr_array_free(h);
            close_world(&w);
        }
}

/* Chunks that the device declines are done alone, while the others still have their
 * blocks. */
static void test_declined(void **state)
{
    int n = 0;

    (void)state;
    for (int kind = 0; kind < N_KINDS; kind++)
        for (uint32_t threads = 1; threads <= 4; threads += 3) {
            struct pw w;
            zarr_array *a;
            zarr_tensor t;
            zarr_memory mem;

            if (n++ % ZR_CASE_STEP != 0)
                continue;
            open_world(&w, threads, 1 << 20);
            a = filled_array(&w, "a", kind);
            mem = tensor_new(&w, &t, sizes);
            budget_set(&w, 20 << 10);
            declines = ZARR_ERR_UNSUPPORTED;
            assert_ok(zarr_array_read(a, NULL, &t, NULL, &terr));
            assert_int_equal(zarr_fakedev_peek(mem.handle, 0, got, sizeof got), 0);
            assert_memory_equal(got, data, sizeof got);
            assert_ok(zarr_array_write(a, NULL, &t, NULL, &terr));
            declines = ZARR_OK;
            assert_ok(zarr_array_read(a, NULL, &t, NULL, &terr));
            assert_int_equal(zarr_fakedev_peek(mem.handle, 0, got, sizeof got), 0);
            assert_memory_equal(got, data, sizeof got);
            zarr_memory_free(w.ctx, &mem);
            zarr_array_free(a);
            close_world(&w);
        }
}

/* ---- how large waves are ----------------------------------------------------------- */

static zarr_explanation *explain_waves(const struct pw *w, const char *path,
                                       uint64_t rows, uint64_t edge)
{
    const uint64_t lengths[2] = {rows, 512}, chunk[2] = {edge, 512};
    const uint64_t size[2] = {(uint64_t)rows, 512};
    const zarr_tensor t = {.struct_size = sizeof t,
                           .device_type = ZARR_DEVICE_EXT,
                           .ndim = 2,
                           .shape = size,
                           .data_bytes = rows * 512 * sizeof(int32_t)};
    zarr_array *a = pw_array(w->store, path, "[" BYTES "," LATE "]", lengths, chunk);
    zarr_explanation *e = NULL;

    assert_ok(zarr_array_explain(&e, a, ZARR_EXPLAIN_READ, NULL, &t, NULL, &terr));
    zarr_array_free(a);
    return e;
}

/* A wave has a thousand chunks in 128 MiB or 256 in more, unless a large request would
 * have fewer than sixteen waves, or memory has no room. */
static void test_wave_lengths(void **state)
{
    static const struct {
        uint64_t chunks, edge, device, waves; /* a chunk has 2 KiB * edge */
    } cases[] = {
        {64, 512, 0, 1},     {256, 512, 0, 1},    {1024, 512, 0, 4}, {2048, 512, 0, 8},
        {4096, 512, 0, 16},  {16384, 512, 0, 64}, {1024, 64, 0, 1},  {8192, 64, 0, 8},
        {1024, 4096, 0, 30}, {4096, 512, 1, 68},
    };

    (void)state;
    context_bytes = UINT64_C(16) << 30;
    for (size_t i = 0; i < ZR_COUNT(cases); i++) {
        zarr_explanation *e;
        struct pw w;

        open_world(&w, 4, 0);
        zarr_fakedev_budget(device, cases[i].device << 30, 0);
        e = explain_waves(&w, "a", cases[i].chunks * cases[i].edge, cases[i].edge);
        assert_int_equal(e->chunks, cases[i].chunks);
        assert_int_equal(e->waves, cases[i].waves);
        zarr_explanation_free(e);
        close_world(&w);
    }
    context_bytes = UINT64_C(64) << 20;
}

/* ---- host memory ------------------------------------------------------------------- */

enum {
    FAR_ROWS = 2048,
    FAR_COLS = 512,
    FAR_BUDGET = 1 << 20
};

/* A shard of 4 MiB, in files of a folder. */
static zarr_array *far_array(struct pw *w, const char *folder)
{
    static const uint64_t all[2] = {FAR_ROWS, FAR_COLS};
    static const uint64_t lengths[2] = {FAR_ROWS, FAR_COLS};
    const uint64_t bytes = sizeof(int32_t) * FAR_ROWS * FAR_COLS;
    int32_t *values = malloc(bytes);
    zarr_array *a;
    zarr_tensor t;

    assert_non_null(values);
    for (int i = 0; i < FAR_ROWS * FAR_COLS; i++)
        values[i] = i;
    zarr_store_free(w->store);
    assert_ok(zarr_store_open(&w->store, w->ctx, folder, NULL, &terr));
    a = pw_array(w->store, "a", "[" SHARD("[8,32]", BYTES "," LATE, "end") "]", all, all);
    zarr_tensor_host(&t, NULL, values, bytes, 2, lengths);
    assert_ok(zarr_array_write(a, NULL, &t, NULL, &terr));
    free(values);
    return a;
}

/* Reads one column. Returns the bytes of host memory that this took at most. */
static uint64_t read_far(struct pw *w, zarr_array *a, uint64_t gap)
{
    static const uint64_t all[2] = {FAR_ROWS, FAR_COLS};
    static const uint64_t lengths[2] = {FAR_ROWS, 1};
    zarr_io_options o = {.struct_size = sizeof o, .tuning = TUNING(.coalesce_gap = gap)};
    zarr_fakedev_late_counters c;
    zarr_selection *sel = NULL;
    zarr_tensor t;
    zarr_memory mem = tensor_new(w, &t, lengths);
    uint64_t before;

    assert_ok(zarr_selection_parse(&sel, 2, all, ":, 7:8", &terr));
    zarr_context_trim(w->ctx);
    before = atomic_load(&w->n_bytes);
    atomic_store(&w->peak_bytes, before);
    assert_ok(zarr_array_read(a, sel, &t, &o, &terr));
    zarr_fakedev_late_count(device, &c);
    assert_int_equal(zarr_fakedev_peek(mem.handle, 0, got, FAR_ROWS * sizeof got[0]), 0);
    for (int i = 0; i < FAR_ROWS; i++)
        assert_int_equal(got[i], i * FAR_COLS + 7);
    zarr_selection_free(sel);
    zarr_memory_free(w->ctx, &mem);
    return atomic_load(&w->peak_bytes) - before + c.pinned_peak;
}

/* Chunks that are far apart in a shard are fetched in one range with what is between
 * them, but with no more of it than memory has room for. */
static void test_holes(void **state)
{
    (void)state;
    context_bytes = FAR_BUDGET;
    for (uint32_t threads = 1; threads <= 4; threads += 3) {
        char dir[] = "/tmp/zarrc-budgets-XXXXXX", command[96];
        uint64_t without, with;
        zarr_array *a;
        struct pw w;

        assert_non_null(mkdtemp(dir));
        open_world(&w, threads, 0);
        a = far_array(&w, dir);
        without = read_far(&w, a, 1);
        with = read_far(&w, a, FAR_BUDGET);
        assert_in_range(with, 1, without + FAR_BUDGET);
        zarr_array_free(a);
        close_world(&w);
        snprintf(command, sizeof command, "rm -r %s", dir);
        assert_int_equal(system(command), 0); // NOLINT(cert-env33-c)
    }
    context_bytes = UINT64_C(64) << 20;
}

/* Each thread has a unit, over all batches that are in work at once: of elements that
 * are more than a wave, six. What zarr_array_explain() tells of them is true. */
static void test_batches(void **state)
{
    static const uint64_t chunk[2] = {10, 40}; /* 10 units of more than a wave */
    static const struct {
        const char *text;
        uint32_t threads;
        uint64_t batches;
    } cases[] = {
        {"...", 1, 10},  {"...", 2, 10},      {"...", 16, 4},       {"...", 64, 1},
        {"::10", 1, 10}, {"::10, 0:1", 2, 5}, {"::10, 0:1", 16, 1}, {"::10, 0:1", 64, 1},
    };

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(cases); i++) {
        zarr_io_options o = ZARR_IO_OPTIONS_INIT;
        zarr_stats stats = ZARR_STATS_INIT;
        zarr_explanation *e = NULL;
        struct source s;
        struct pw w;
        zarr_array *a;

        open_world(&w, cases[i].threads, 1024);
        a = pw_array(w.store, "a", "[" BYTES "," LATE "]", shape, chunk);
        source_open(&w, &s, cases[i].text);
        o.stats = &stats;
        assert_ok(zarr_array_explain(&e, a, ZARR_EXPLAIN_WRITE, s.sel, &s.t, &o, &terr));
        assert_int_equal(e->waves, cases[i].batches);
        assert_ok(zarr_array_write(a, s.sel, &s.t, &o, &terr));
        assert_int_equal(stats.waves, cases[i].batches);
        zarr_explanation_free(e);
        source_close(&w, &s);
        zarr_array_free(a);
        close_world(&w);
    }
}

/* ---- several at once --------------------------------------------------------------- */

enum {
    USERS = 6,
    TURNS = 6
};

/* A thread with an array and a tensor of its own. */
struct user {
    pthread_t thread;
    zarr_array *a;
    zarr_tensor t;
    zarr_memory mem;
    const char *pipeline;
    bool writes;
    zarr_status st;
    zarr_error err;
};

static void *user_runs(void *arg)
{
    zarr_io_options o = ZARR_IO_OPTIONS_INIT;
    struct user *u = arg;

    o.tuning = TUNING(.pipeline = u->pipeline);
    for (int i = 0; i < TURNS && u->st == ZARR_OK; i++)
        u->st = u->writes ? zarr_array_write(u->a, NULL, &u->t, &o, &u->err)
                          : zarr_array_read(u->a, NULL, &u->t, &o, &u->err);
    return NULL;
}

static const char serial[] = "serial";

/* Each reads or writes its array again and again. One or two of them would fit. */
static void users_at_once(const struct pw *w, int kind, uint64_t bytes,
                          const char *pipeline)
{
    struct user u[USERS];
    char path[16];

    memset(u, 0, sizeof u);
    for (int i = 0; i < USERS; i++) {
        snprintf(path, sizeof path, "a%d", i);
        u[i].a = filled_array(w, path, kind);
        u[i].mem = tensor_new(w, &u[i].t, sizes);
        u[i].writes = i % 2;
        u[i].pipeline = pipeline != serial || i % 3 == 0 ? pipeline : NULL;
        assert_int_equal(zarr_fakedev_poke(u[i].mem.handle, 0, data, sizeof data), 0);
    }
    budget_set(w, bytes);
    for (int i = 0; i < USERS; i++)
        assert_int_equal(pthread_create(&u[i].thread, NULL, user_runs, &u[i]), 0);
    for (int i = 0; i < USERS; i++) {
        zarr_tensor t;

        assert_int_equal(pthread_join(u[i].thread, NULL), 0);
        if (u[i].st != ZARR_OK)
            fail_msg("kind %d, user %d: %s", kind, i, u[i].err.message);
        zarr_tensor_host(&t, NULL, got, sizeof got, 2, sizes);
        assert_ok(zarr_array_read(u[i].a, NULL, &t, NULL, &terr));
        assert_memory_equal(got, data, sizeof got);
        assert_int_equal(zarr_fakedev_peek(u[i].mem.handle, 0, got, sizeof got), 0);
        assert_memory_equal(got, data, sizeof got);
        zarr_memory_free(w->ctx, &u[i].mem);
        zarr_array_free(u[i].a);
    }
}

static void test_at_once(void **state)
{
    int n = 0;

    (void)state;
    for (int kind = 0; kind < N_KINDS; kind++)
        for (uint32_t threads = 1; threads <= 4; threads += 3)
            for (int i = 0; i < 2; i++) {
                struct pw w;

                if (n++ % ZR_CASE_STEP != 0)
                    continue;
                open_world(&w, threads, 1 << 20);
                users_at_once(&w, kind, 40 << 10, i ? serial : NULL);
                close_world(&w);
            }
}

static void with_own_pipe(const struct pw *w)
{
    assert_ok(zarr_context_register_pipeline(w->ctx, &own_pipe, &own_n, "test", &terr));
}

/* Pipelines of applications make the steps one by one, after they have reserved memory.
 * There is room for one chunk. */
static void test_own_pipeline(void **state)
{
    int n = 0;

    (void)state;
    more_codecs = with_own_pipe;
    own_reserves = true;
    for (int kind = 0; kind < N_KINDS; kind++)
        for (uint32_t threads = 1; threads <= 4; threads += 3) {
            struct pw w;

            if (n++ % ZR_CASE_STEP != 0)
                continue;
            open_world(&w, threads, 1 << 20);
            users_at_once(&w, kind, 6 << 10, own_pipe.name);
            close_world(&w);
        }
    more_codecs = NULL;
    own_reserves = false;
    assert_int_equal(atomic_load(&own_n.wrong), 0);
}

/* Many submitted at once, on the threads of the library; some are cancelled while they
 * wait. */
static void test_submitted(void **state)
{
    enum {
        MANY = 24
    };

    (void)state;
    for (int kind = 0; kind < N_KINDS; kind++) {
        zarr_request *r[MANY] = {NULL};
        zarr_tensor t[MANY]; /* no two requests share memory */
        zarr_memory mem[MANY];
        zarr_array *a;
        struct pw w;

        open_world(&w, 2, 1 << 20);
        a = filled_array(&w, "a", kind);
        for (int i = 0; i < MANY; i++) {
            mem[i] = tensor_new(&w, &t[i], sizes);
            assert_int_equal(zarr_fakedev_poke(mem[i].handle, 0, data, sizeof data), 0);
        }
        budget_set(&w, 40 << 10);
        for (int i = 0; i < MANY; i++)
            assert_ok(i % 3
                          ? zarr_array_read_submit(&r[i], a, NULL, &t[i], NULL, &terr)
                          : zarr_array_write_submit(&r[i], a, NULL, &t[i], NULL, &terr));
        for (int i = 0; i < MANY; i += 4)
            zarr_request_cancel(r[i]);
        for (int i = 0; i < MANY; i++) {
            const zarr_status st = zarr_request_wait(r[i], UINT64_MAX, NULL, &terr);

            if (st != ZARR_OK && (i % 4 || st != ZARR_ERR_CANCELLED))
                fail_msg("kind %d: %s", kind, terr.message);
            zarr_request_free(r[i]);
        }
        assert_ok(zarr_array_read(a, NULL, &t[1], NULL, &terr));
        assert_int_equal(zarr_fakedev_peek(mem[1].handle, 0, got, sizeof got), 0);
        assert_memory_equal(got, data, sizeof got);
        for (int i = 0; i < MANY; i++)
            zarr_memory_free(w.ctx, &mem[i]);
        zarr_array_free(a);
        close_world(&w);
    }
}

/* ---- shards that are decoded whole ------------------------------------------------ */

/* Each has 64 KiB and more on the host while its chunks go to the device. The budget of
 * the host holds, however many requests there are. */
static void test_whole_shards(void **state)
{
    enum {
        READERS = 12,
        ROOM = 3 << 20
    };
    static const uint64_t shard[2] = {10, 40};
    const char *chain = "[" SHARD("[5,4]", BYTES "," LATE, "end") "," GZIP "]";

    (void)state;
    context_bytes = ROOM;
    for (uint32_t threads = 1; threads <= 4; threads += 3) {
        struct user u[READERS];
        struct zr_budget_stats s;
        struct pw w;

        memset(u, 0, sizeof u);
        open_world(&w, threads, 1 << 20);
        for (int i = 0; i < READERS; i++) {
            char path[16];
            zarr_tensor t;

            snprintf(path, sizeof path, "a%d", i);
            u[i].a = pw_array(w.store, path, chain, shape, shard);
            zarr_tensor_host(&t, NULL, data, sizeof data, 2, sizes);
            assert_ok(zarr_array_write(u[i].a, NULL, &t, NULL, &terr));
            u[i].mem = tensor_new(&w, &u[i].t, sizes);
        }
        budget_set(&w, 40 << 10);
        for (int i = 0; i < READERS; i++)
            assert_int_equal(pthread_create(&u[i].thread, NULL, user_runs, &u[i]), 0);
        for (int i = 0; i < READERS; i++) {
            assert_int_equal(pthread_join(u[i].thread, NULL), 0);
            if (u[i].st != ZARR_OK)
                fail_msg("reader %d: %s", i, u[i].err.message);
            assert_int_equal(zarr_fakedev_peek(u[i].mem.handle, 0, got, sizeof got), 0);
            assert_memory_equal(got, data, sizeof got);
            zarr_memory_free(w.ctx, &u[i].mem);
            zarr_array_free(u[i].a);
        }
        zr_budget_stats_get(&w.ctx->budget, &s);
        assert_int_equal(s.now, 0);
        assert_in_range(s.peak, sizeof data, ROOM);
        close_world(&w);
    }
    context_bytes = UINT64_C(64) << 20;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),         cmocka_unit_test(test_write),
        cmocka_unit_test(test_declined),     cmocka_unit_test(test_wave_lengths),
        cmocka_unit_test(test_holes),        cmocka_unit_test(test_at_once),
        cmocka_unit_test(test_submitted),    cmocka_unit_test(test_own_pipeline),
        cmocka_unit_test(test_whole_shards), cmocka_unit_test(test_batches),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
