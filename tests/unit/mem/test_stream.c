/*
 * unit/mem/test_stream.c - idle streams: which are kept, and what a forked child does
 * with those of its parent.
 */
#include "unit/mem/mem_test.h"

#include <sys/wait.h>
#include <unistd.h>

#include "fakedev/fakedev.h"

static struct {
    int opened, closed;
    bool order_fails, sync_fails;
} driver;

static zarr_status driver_open(void *self, int32_t device_id, void **stream,
                               zarr_error *err)
{
    static char handles[8];

    (void)self;
    (void)device_id;
    (void)err;
    *stream = &handles[driver.opened++];
    return ZARR_OK;
}

static void driver_close(void *self, void *stream)
{
    (void)self;
    (void)stream;
    driver.closed++;
}

static zarr_status driver_sync(void *self, void *stream, zarr_error *err)
{
    (void)self;
    (void)stream;
    return driver.sync_fails ? zr_fail(err, ZARR_ERR_DEVICE, "lost") : ZARR_OK;
}

static zarr_status driver_order(void *self, void *stream, void *foreign, zarr_error *err)
{
    (void)self;
    (void)stream;
    (void)foreign;
    return driver.order_fails ? zr_fail(err, ZARR_ERR_DEVICE, "half-way") : ZARR_OK;
}

struct world {
    struct zr_memory_registry r;
    struct zr_streams idle;
};

static int world_open(void **state)
{
    static struct world w;
    zarr_memory_vtable v = *zarr_fakedev_vtable_late();

    memset(&driver, 0, sizeof driver);
    v.stream_open = driver_open;
    v.stream_close = driver_close;
    v.sync = driver_sync;
    v.order = driver_order;
    v.close = NULL;
    assert_int_equal(zr_memory_registry_init(&w.r, NULL, NULL), ZARR_OK);
    assert_int_equal(zr_memory_register(&w.r, &v, NULL, "test", NULL), ZARR_OK);
    zr_streams_init(&w.idle);
    *state = &w;
    return 0;
}

static int world_close(void **state)
{
    struct world *w = *state;

    zr_streams_deinit(&w->idle);
    zr_memory_registry_deinit(&w->r);
    return driver.closed == driver.opened ? 0 : -1;
}

static void take(struct world *w, int32_t device_id, struct zr_stream *out)
{
    assert_int_equal(
        zr_stream_take(out, &w->idle, &w->r, ZARR_DEVICE_EXT, device_id, NULL), ZARR_OK);
}

static void test_kept(void **state)
{
    struct world *w = *state;
    struct zr_stream s, other;

    for (int i = 0; i < 3; i++) {
        take(w, 0, &s);
        take(w, 1, &other);
        zr_stream_give(&w->idle, &s);
        zr_stream_give(&w->idle, &other);
    }
    assert_int_equal(driver.opened, 2);
    assert_int_equal(driver.closed, 0);
    zr_streams_trim(&w->idle);
    assert_int_equal(driver.closed, 2);
}

/* A stream that may wait for another, or whose work failed, is not used again. */
static void test_not_kept(void **state)
{
    struct world *w = *state;
    struct zr_stream s;

    take(w, 0, &s);
    driver.order_fails = true;
    assert_int_equal(zr_stream_order(&s, w, NULL), ZARR_ERR_DEVICE);
    zr_stream_give(&w->idle, &s);
    assert_int_equal(driver.closed, 1);
    take(w, 0, &s);
    s.queued = driver.sync_fails = true;
    zr_stream_give(&w->idle, &s);
    assert_int_equal(driver.closed, 2);
    assert_int_equal(driver.opened, 2);
}

/* In a child: opens streams of its own, and does not touch those of its parent. */
static int child(struct world *w, struct zr_stream *in_use)
{
    struct zr_stream s;

    take(w, 0, &s);
    if (driver.opened != 3 || driver.closed != 0)
        return 1;
    zr_stream_give(&w->idle, in_use);
    zr_stream_give(&w->idle, &s);
    take(w, 0, &s);
    if (driver.opened != 3 || driver.closed != 0)
        return 2;
    zr_stream_give(&w->idle, &s);
    zr_streams_trim(&w->idle);
    return driver.closed == 1 ? 0 : 3;
}

static void test_fork(void **state)
{
    struct world *w = *state;
    struct zr_stream s, in_use;
    int status = 0;
    pid_t pid;

    take(w, 0, &s);
    take(w, 0, &in_use);
    zr_stream_give(&w->idle, &s);
    pid = fork();
    if (pid == 0)
        _exit(child(w, &in_use));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    zr_stream_give(&w->idle, &in_use);
    assert_int_equal(driver.opened, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_kept, world_open, world_close),
        cmocka_unit_test_setup_teardown(test_not_kept, world_open, world_close),
        cmocka_unit_test_setup_teardown(test_fork, world_open, world_close),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
