/*
 * unit/pipe/test_device_budgets.c - the memory that a device says it has: waves and
 * batches of units are cut so that they fit, and all requests of a context share it. Who
 * finds too little waits until others give some back, and nothing fails.
 */
#include "device_test.h"

#include <pthread.h>

static int32_t base[N], got[N];

/* What the device has besides the blocks that are there. */
static void budget_set(const struct pw *w, uint64_t bytes)
{
    zarr_fakedev_counters c;
    uint64_t told = 0;

    zarr_fakedev_count(device, &c);
    zarr_fakedev_budget(device, bytes, 0);
    assert_ok(zr_pool_budget(w->ctx->pool, ZARR_DEVICE_EXT, 0, false, &told, &terr));
    assert_int_equal(told, bytes);
    zarr_fakedev_budget(device, c.live_bytes + bytes, 0);
}

/* ---- one request ------------------------------------------------------------------- */

/* However large waves may be otherwise. */
static void test_read(void **state)
{
    (void)state;
    for (int kind = 0; kind < N_KINDS; kind++)
        for (uint32_t threads = 1; threads <= 4; threads += 3) {
            zarr_stats stats = ZARR_STATS_INIT;
            zarr_io_options o = {.struct_size = sizeof o, .stats = &stats};
            struct pw w;
            zarr_array *a;
            zarr_tensor t;
            zarr_mem mem;

            open_world(&w, threads, 1 << 20);
            a = filled_array(&w, "a", kind);
            mem = tensor_new(&w, &t, sizes);
            budget_set(&w, 40 << 10);
            assert_ok(zarr_array_read(a, NULL, &t, &o, &terr));
            assert_int_equal(zarr_fakedev_peek(mem.handle, 0, got, sizeof got), 0);
            assert_memory_equal(got, data, sizeof got);
            assert_true(stats.waves > 1);
            zarr_mem_free(w.ctx, &mem);
            zarr_array_free(a);
            close_world(&w);
        }
}

/* An array with `base`. */
static zarr_array *based(const struct pw *w, const char *path, int kind)
{
    for (int i = 0; i < N; i++)
        base[i] = -5000 - i;
    return array_of(w, path, kind, base);
}

/* Leaves are gathered and encoded by as many as there is room for. */
static void test_write(void **state)
{
    static const char *const texts[] = {"...", "3:90, 5:37"};

    (void)state;
    for (int k = 0; k < N_KINDS; k++)
        for (size_t i = 0; i < ZR_COUNT(texts); i++) {
            zarr_selection *sel = NULL;
            int64_t lengths[2];
            zarr_tensor t, host;
            zarr_array *d, *h;
            struct pw w;
            zarr_mem mem;

            open_world(&w, 2, 1 << 20);
            d = based(&w, "d", k);
            h = based(&w, "h", k);
            assert_ok(zarr_selection_parse(&sel, 2, shape, texts[i], &terr));
            for (int dim = 0; dim < 2; dim++)
                lengths[dim] = (int64_t)zarr_selection_shape(sel)[dim];
            mem = tensor_new(&w, &t, lengths);
            assert_int_equal(zarr_fakedev_poke(mem.handle, 0, data, sizeof data), 0);
            zarr_tensor_host(&host, data, sizeof data, 2, lengths);
            budget_set(&w, 20 << 10);
            assert_ok(zarr_array_write(d, sel, &t, NULL, &terr));
            assert_ok(zarr_array_write(h, sel, &host, NULL, &terr));
            same_arrays(&w, "d", "h", k);
            zarr_selection_free(sel);
            zarr_mem_free(w.ctx, &mem);
            zarr_array_free(d);
            zarr_array_free(h);
            close_world(&w);
        }
}

/* ---- several at once --------------------------------------------------------------- */

enum {
    USERS = 6,
    TURNS = 12
};

/* A thread with an array and a tensor of its own. */
struct user {
    pthread_t thread;
    zarr_array *a;
    zarr_tensor t;
    zarr_mem mem;
    bool writes, serial;
    zarr_status st;
    zarr_error err;
};

static void *user_runs(void *arg)
{
    zarr_io_options o = ZARR_IO_OPTIONS_INIT;
    struct user *u = arg;

    if (u->serial)
        o.pipeline = "serial";
    for (int i = 0; i < TURNS && u->st == ZARR_OK; i++)
        u->st = u->writes ? zarr_array_write(u->a, NULL, &u->t, &o, &u->err)
                          : zarr_array_read(u->a, NULL, &u->t, &o, &u->err);
    return NULL;
}

/* Each reads or writes its array again and again. One or two of them would fit. */
static void users_at_once(const struct pw *w, int kind, uint64_t bytes, bool serial)
{
    struct user u[USERS];
    char path[16];

    memset(u, 0, sizeof u);
    for (int i = 0; i < USERS; i++) {
        snprintf(path, sizeof path, "a%d", i);
        u[i].a = filled_array(w, path, kind);
        u[i].mem = tensor_new(w, &u[i].t, sizes);
        u[i].writes = i % 2;
        u[i].serial = serial && i % 3 == 0;
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
        zarr_tensor_host(&t, got, sizeof got, 2, sizes);
        assert_ok(zarr_array_read(u[i].a, NULL, &t, NULL, &terr));
        assert_memory_equal(got, data, sizeof got);
        assert_int_equal(zarr_fakedev_peek(u[i].mem.handle, 0, got, sizeof got), 0);
        assert_memory_equal(got, data, sizeof got);
        zarr_mem_free(w->ctx, &u[i].mem);
        zarr_array_free(u[i].a);
    }
}

static void test_at_once(void **state)
{
    (void)state;
    for (int kind = 0; kind < N_KINDS; kind++)
        for (uint32_t threads = 1; threads <= 4; threads += 3)
            for (int serial = 0; serial < 2; serial++) {
                struct pw w;

                open_world(&w, threads, 1 << 20);
                users_at_once(&w, kind, 40 << 10, serial);
                close_world(&w);
            }
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
        zarr_mem mem[MANY];
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
            zarr_mem_free(w.ctx, &mem[i]);
        zarr_array_free(a);
        close_world(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_write),
        cmocka_unit_test(test_at_once),
        cmocka_unit_test(test_submitted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
