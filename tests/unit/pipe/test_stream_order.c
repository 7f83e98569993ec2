/*
 * unit/pipe/test_stream_order.c - a call is ordered after the application's stream
 * (zarr_io_options.stream). The device does queued work only when a caller waits, so a
 * call that does not order itself reads a tensor before its elements are there, or
 * overwrites elements that queued work still has to copy.
 */
#include "pipe_test.h"

#include "fakedev/fakedev.h"
#include <zarrc/parts.h>

enum {
    ROWS = 24,
    COLS = 16,
    N = ROWS * COLS
};
static const uint64_t shape[2] = {ROWS, COLS}, chunk[2] = {8, COLS};
static const int64_t sizes[2] = {ROWS, COLS};
static int32_t data[N], old[N], got[N];
static void *device;

struct world {
    struct pw w;
    zarr_array *a;
    void *stream;        /* the application's */
    zarr_mem mem, other; /* the tensor, and memory that the application copies with */
    zarr_tensor t;
};

static const zarr_memory_vtable *table(void)
{
    return zarr_fakedev_vtable_late();
}

static void put(const zarr_mem *mem, const int32_t *from)
{
    assert_int_equal(zarr_fakedev_poke(mem->handle, 0, from, sizeof data), 0);
}

static void peek(const zarr_mem *mem)
{
    assert_int_equal(zarr_fakedev_peek(mem->handle, 0, got, sizeof got), 0);
}

static void world_open(struct world *w, const char *codecs)
{
    memset(w, 0, sizeof *w);
    pw_context(&w->w, 2, UINT64_C(64) << 20, UINT64_C(1) << 20);
    device = zarr_fakedev_create();
    assert_ok(zarr_context_register_memory(w->w.ctx, table(), device, "test", &terr));
    assert_ok(zarr_store_open(&w->w.store, w->w.ctx, "memory:", NULL, &terr));
    w->a = pw_array(w->w.store, "a", codecs, shape, chunk);
    assert_ok(zarr_mem_alloc(w->w.ctx, ZARR_DEVICE_EXT, 0, sizeof data, &w->mem, &terr));
    assert_ok(
        zarr_mem_alloc(w->w.ctx, ZARR_DEVICE_EXT, 0, sizeof data, &w->other, &terr));
    assert_ok(table()->stream_open(device, 0, &w->stream, &terr));
    w->t = (zarr_tensor)ZARR_TENSOR_INIT;
    w->t.device_type = ZARR_DEVICE_EXT;
    w->t.ndim = 2;
    w->t.data = w->mem.handle;
    w->t.data_bytes = w->mem.bytes;
    w->t.shape = sizes;
    for (int i = 0; i < N; i++) {
        data[i] = 1000 + i;
        old[i] = -i;
    }
}

static void world_close(struct world *w)
{
    zarr_fakedev_counters c;

    assert_ok(table()->sync(device, w->stream, &terr));
    table()->stream_close(device, w->stream);
    zarr_mem_free(w->w.ctx, &w->mem);
    zarr_mem_free(w->w.ctx, &w->other);
    zarr_array_free(w->a);
    zarr_fakedev_count(device, &c);
    assert_int_equal(c.faults, 0);
    pw_close(&w->w);
}

/* The application queues a copy. */
static void queue_copy(const struct world *w, const zarr_mem *dst, const zarr_mem *src)
{
    assert_ok(table()->copy(device, dst, src, sizeof data, w->stream, &terr));
}

static uint64_t orders(void)
{
    zarr_fakedev_late_counters c;

    zarr_fakedev_late_count(device, &c);
    return c.orders;
}

enum how {
    CALL,
    SUBMIT,
    PARTS,
    PARTS_SUBMIT,
    HOWS
};

static void run(struct world *w, enum how how, bool write, const zarr_io_options *o)
{
    zarr_io_part part = {0};
    zarr_request *rq = NULL;

    part.tensor = &w->t;
    switch (how) {
    case CALL:
        assert_ok(write ? zarr_array_write(w->a, NULL, &w->t, o, &terr)
                        : zarr_array_read(w->a, NULL, &w->t, o, &terr));
        return;
    case PARTS:
        assert_ok(write ? zarr_array_write_many(w->a, &part, 1, o, &terr)
                        : zarr_array_read_many(w->a, &part, 1, o, &terr));
        return;
    case SUBMIT:
        assert_ok(write ? zarr_array_write_submit(&rq, w->a, NULL, &w->t, o, &terr)
                        : zarr_array_read_submit(&rq, w->a, NULL, &w->t, o, &terr));
        break;
    default:
        assert_ok(write ? zarr_array_write_many_submit(&rq, w->a, &part, 1, o, &terr)
                        : zarr_array_read_many_submit(&rq, w->a, &part, 1, o, &terr));
        break;
    }
    assert_ok(zarr_request_wait(rq, UINT64_MAX, NULL, &terr));
    zarr_request_free(rq);
}

/* What the store has. */
static void stored_is(struct world *w, const int32_t *want)
{
    zarr_tensor t;

    memset(got, 0, sizeof got);
    zarr_tensor_host(&t, got, sizeof got, 2, sizes);
    assert_ok(zarr_array_read(w->a, NULL, &t, NULL, &terr));
    assert_memory_equal(got, want, sizeof data);
}

static const char *const chains[] = {
    "[" BYTES "]",
    "[" BIG "," GZIP "]",
    "[" SHARD("[4,4]", BYTES "," GZIP, "end") "]",
};

/* The elements to write are still on their way. */
static void test_write(void **state)
{
    (void)state;
    for (size_t i = 0; i < HOWS * ZR_COUNT(chains); i++) {
        zarr_io_options o = ZARR_IO_OPTIONS_INIT;
        struct world w;

        world_open(&w, chains[i / HOWS]);
        put(&w.mem, old);
        put(&w.other, data);
        queue_copy(&w, &w.mem, &w.other);
        o.stream = w.stream;
        run(&w, (enum how)(i % HOWS), true, &o);
        assert_int_equal(orders(), 1);
        stored_is(&w, data);
        world_close(&w);
    }
}

/* The tensor's old elements are still to be copied away. */
static void test_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < HOWS * ZR_COUNT(chains); i++) {
        zarr_io_options o = ZARR_IO_OPTIONS_INIT;
        struct world w;
        zarr_tensor t;

        world_open(&w, chains[i / HOWS]);
        zarr_tensor_host(&t, data, sizeof data, 2, sizes);
        assert_ok(zarr_array_write(w.a, NULL, &t, NULL, &terr));
        put(&w.mem, old);
        queue_copy(&w, &w.other, &w.mem);
        o.stream = w.stream;
        run(&w, (enum how)(i % HOWS), false, &o);
        assert_int_equal(orders(), 1);
        assert_ok(table()->sync(device, w.stream, &terr));
        peek(&w.other);
        assert_memory_equal(got, old, sizeof data);
        peek(&w.mem);
        assert_memory_equal(got, data, sizeof data);
        world_close(&w);
    }
}

static void test_append(void **state)
{
    (void)state;
    for (int submit = 0; submit < 2; submit++) {
        zarr_io_options o = ZARR_IO_OPTIONS_INIT;
        zarr_request *rq = NULL;
        zarr_selection *sel = NULL;
        struct world w;
        uint64_t first = 0;
        zarr_tensor t;

        world_open(&w, chains[1]);
        put(&w.mem, old);
        put(&w.other, data);
        queue_copy(&w, &w.mem, &w.other);
        o.stream = w.stream;
        if (submit) {
            assert_ok(zarr_array_append_submit(&rq, w.a, 0, &w.t, &first, &o, &terr));
            assert_ok(zarr_request_wait(rq, UINT64_MAX, NULL, &terr));
            zarr_request_free(rq);
        } else {
            assert_ok(zarr_array_append(w.a, 0, &w.t, &first, &o, &terr));
        }
        assert_int_equal(orders(), 1);
        assert_int_equal(first, ROWS);
        assert_ok(
            zarr_selection_parse(&sel, 2, (uint64_t[2]){2 * ROWS, COLS}, "24:", &terr));
        zarr_tensor_host(&t, got, sizeof got, 2, sizes);
        assert_ok(zarr_array_read(w.a, sel, &t, NULL, &terr));
        assert_memory_equal(got, data, sizeof data);
        zarr_selection_free(sel);
        world_close(&w);
    }
}

/* Work that the stream gets after the call does not count. */
static void test_entry(void **state)
{
    zarr_io_options o = ZARR_IO_OPTIONS_INIT;
    zarr_request *rq = NULL;
    struct world w;

    (void)state;
    world_open(&w, chains[0]);
    put(&w.mem, old);
    put(&w.other, data);
    queue_copy(&w, &w.mem, &w.other);
    o.stream = w.stream;
    assert_ok(zarr_array_write_submit(&rq, w.a, NULL, &w.t, &o, &terr));
    assert_ok(zarr_request_wait(rq, UINT64_MAX, NULL, &terr));
    put(&w.other, old);
    queue_copy(&w, &w.mem, &w.other);
    zarr_request_free(rq);
    peek(&w.mem); /* no caller waited for it */
    assert_memory_equal(got, data, sizeof data);
    stored_is(&w, data);
    world_close(&w);
}

/* A failing order, and a failing wait, are the failure of the call. */
static void test_failures(void **state)
{
    static const uint32_t calls[] = {ZARR_FAKEDEV_STREAM, ZARR_FAKEDEV_ORDER,
                                     ZARR_FAKEDEV_SYNC};

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(calls); i++) {
        zarr_io_options o = ZARR_IO_OPTIONS_INIT;
        struct world w;
        uint64_t n = 0;
        zarr_tensor t;

        world_open(&w, chains[0]);
        o.stream = w.stream;
        zarr_fakedev_fail(device, calls[i], 1, ZARR_ERR_DEVICE);
        assert_status(zarr_array_write(w.a, NULL, &w.t, &o, &terr), ZARR_ERR_DEVICE);
        zarr_fakedev_fail(device, 0, 0, ZARR_OK);
        /* nothing on a device */
        zarr_tensor_host(&t, data, sizeof data, 2, sizes);
        assert_status(zarr_array_read(w.a, NULL, &t, &o, &terr), ZARR_ERR_UNSUPPORTED);
        assert_status(zarr_array_stored(w.a, &n, NULL, &o, &terr), ZARR_ERR_UNSUPPORTED);
        world_close(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_write),    cmocka_unit_test(test_read),
        cmocka_unit_test(test_append),   cmocka_unit_test(test_entry),
        cmocka_unit_test(test_failures),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
