/*
 * unit/pipe/test_stream_order.c - a call is ordered after the application's stream
 * (zarr_io_options.stream). The device does queued work only when a caller waits, so a
 * call that does not order itself reads a tensor before its elements are there, or
 * overwrites elements that queued work still has to copy.
 */
#include "pipe_test.h"

#include "fakedev/fakedev.h"
#include <sched.h>
#include <zarrc/chunks.h>
#include <zarrc/parts.h>

enum {
    ROWS = 24,
    COLS = 16,
    N = ROWS * COLS
};
static const uint64_t shape[2] = {ROWS, COLS}, chunk[2] = {8, COLS};
static const uint64_t sizes[2] = {ROWS, COLS};
static int32_t data[N], old[N], got[N];
static void *device;

struct world {
    struct pw w;
    zarr_array *a;
    void *stream;           /* the application's */
    zarr_memory mem, other; /* the tensor, and memory that the application copies with */
    zarr_tensor t;
};

static const zarr_memory_vtable *table(void)
{
    return zarr_fakedev_vtable_late();
}

static void put(const zarr_memory *mem, const int32_t *from)
{
    assert_int_equal(zarr_fakedev_poke(mem->handle, 0, from, sizeof data), 0);
}

static void peek(const zarr_memory *mem)
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
    assert_ok(
        zarr_memory_alloc(&w->mem, w->w.ctx, ZARR_DEVICE_EXT, 0, sizeof data, &terr));
    assert_ok(
        zarr_memory_alloc(&w->other, w->w.ctx, ZARR_DEVICE_EXT, 0, sizeof data, &terr));
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

    if (w->stream) {
        assert_ok(table()->sync(device, w->stream, &terr));
        table()->stream_close(device, w->stream);
    }
    zarr_memory_free(w->w.ctx, &w->mem);
    zarr_memory_free(w->w.ctx, &w->other);
    zarr_array_free(w->a);
    zarr_fakedev_count(device, &c);
    assert_int_equal(c.faults, 0);
    pw_close(&w->w);
}

/* The application queues a copy. */
static void queue_copy(const struct world *w, const zarr_memory *dst,
                       const zarr_memory *src)
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
    zarr_tensor_host(&t, NULL, got, sizeof got, 2, sizes);
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
        zarr_tensor_host(&t, NULL, data, sizeof data, 2, sizes);
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
        zarr_tensor_host(&t, NULL, got, sizeof got, 2, sizes);
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

/* ---- a stream that is closed --------------------------------------------------- */

static zr_mutex gate;
static atomic_uint n_passed;

static void wait_for_gate(void *arg)
{
    (void)arg;
    zr_mutex_lock(&gate);
    zr_mutex_unlock(&gate);
    atomic_fetch_add(&n_passed, 1);
}

/* The application closes its stream as soon as the call has returned. The request has not
 * begun, because all threads of the pool are busy. */
static void test_closed(void **state)
{
    static struct zr_task busy[64];

    (void)state;
    for (int write = 0; write < 2; write++) {
        zarr_io_options o = ZARR_IO_OPTIONS_INIT;
        struct zr_pool_stats pool;
        zarr_request *rq = NULL;
        struct world w;
        zarr_tensor t;

        world_open(&w, chains[1]);
        if (!write) {
            zarr_tensor_host(&t, NULL, data, sizeof data, 2, sizes);
            assert_ok(zarr_array_write(w.a, NULL, &t, NULL, &terr));
        }
        put(&w.mem, old);
        put(&w.other, data);
        atomic_store(&n_passed, 0);
        zr_mutex_init(&gate);
        zr_mutex_lock(&gate);
        zr_pool_want(2);
        zr_pool_stats_get(&pool);
        assert_in_range(pool.n_wanted, 1, 64);
        for (uint32_t i = 0; i < pool.n_wanted; i++) {
            busy[i] = (struct zr_task){.fn = wait_for_gate};
            assert_ok(zr_task_submit(&busy[i], &terr));
        }
        queue_copy(&w, write ? &w.mem : &w.other, write ? &w.other : &w.mem);
        o.stream = w.stream;
        assert_ok(write ? zarr_array_write_submit(&rq, w.a, NULL, &w.t, &o, &terr)
                        : zarr_array_read_submit(&rq, w.a, NULL, &w.t, &o, &terr));
        table()->stream_close(device, w.stream);
        w.stream = NULL;
        zr_mutex_unlock(&gate);
        assert_ok(zarr_request_wait(rq, UINT64_MAX, NULL, &terr));
        zarr_request_free(rq);
        peek(write ? &w.mem : &w.other); /* the application's copy was done */
        assert_memory_equal(got, write ? data : old, sizeof data);
        if (write)
            stored_is(&w, data);
        peek(&w.mem);
        assert_memory_equal(got, data, sizeof data);
        while (atomic_load(&n_passed) < pool.n_wanted)
            sched_yield();
        zr_mutex_deinit(&gate);
        world_close(&w);
    }
}

/* ---- packed tensors ------------------------------------------------------------ */

/* Elements of four bits: their bytes are the first half of `data` and `old`. */
static void test_packed(void **state)
{
    static const char *const codecs[] = {"[{\"name\":\"packbits\"}]",
                                         "[{\"name\":\"packbits\"}," GZIP "]",
                                         "[{\"name\":\"bytes\"}]"};
    enum {
        PACKED = N / 2
    };

    (void)state;
    for (size_t i = 0; i < 4 * ZR_COUNT(codecs); i++) {
        zarr_array_spec spec = ZARR_ARRAY_SPEC_INIT;
        zarr_io_options o = ZARR_IO_OPTIONS_INIT;
        const bool write = i % 2;
        const enum how how = i / 2 % 2 ? SUBMIT : CALL;
        struct world w;
        zarr_tensor t;

        world_open(&w, chains[0]);
        zarr_array_free(w.a);
        spec.ndim = 2;
        spec.shape = shape;
        spec.chunk_shape = chunk;
        spec.data_type = "int4";
        spec.codecs = codecs[i / 4];
        assert_ok(zarr_array_create(&w.a, w.w.store, "p", &spec, NULL, &terr));
        w.t.flags = ZARR_TENSOR_PACKED;
        w.t.data_bytes = PACKED;
        zarr_tensor_host(&t, NULL, write ? got : data, PACKED, 2, sizes);
        t.flags = ZARR_TENSOR_PACKED;
        if (!write)
            assert_ok(zarr_array_write(w.a, NULL, &t, NULL, &terr));
        put(&w.mem, old);
        put(&w.other, data);
        queue_copy(&w, write ? &w.mem : &w.other, write ? &w.other : &w.mem);
        o.stream = w.stream;
        run(&w, how, write, &o);
        assert_int_equal(orders(), 1);
        assert_ok(table()->sync(device, w.stream, &terr));
        if (write) {
            memset(got, 0, sizeof got);
            assert_ok(zarr_array_read(w.a, NULL, &t, NULL, &terr));
        } else {
            peek(&w.other);
            assert_memory_equal(got, old, sizeof data);
            peek(&w.mem);
        }
        assert_memory_equal(got, data, PACKED);
        world_close(&w);
    }
}

/* ---- chunks that the caller has ------------------------------------------------- */

enum {
    CHUNKS = ROWS / 8,
    MOST = 4 * N
};
static unsigned char kept[CHUNKS][MOST];
static zarr_memory kept_mem[CHUNKS];
static uint64_t kept_at[CHUNKS][2];

static zarr_status keep_chunk(void *user, const uint64_t *at, const zarr_memory *bytes,
                              zarr_error *err)
{
    const uint64_t i = at[0];

    (void)user;
    (void)err;
    assert_true(i < CHUNKS && bytes && bytes->bytes <= MOST);
    memcpy(kept[i], (char *)bytes->handle + bytes->offset, bytes->bytes);
    kept_mem[i] = (zarr_memory){
        .device_type = ZARR_DEVICE_CPU, .handle = kept[i], .bytes = bytes->bytes};
    kept_at[i][0] = i;
    kept_at[i][1] = 0;
    return ZARR_OK;
}

static void encode(const struct world *w, const zarr_tensor *t, const zarr_io_options *o)
{
    zarr_block_sink sink = ZARR_BLOCK_SINK_INIT;

    memset(kept_mem, 0, sizeof kept_mem);
    sink.fn = keep_chunk;
    assert_ok(zarr_array_encode(w->a, NULL, t, NULL, &sink, o, &terr));
}

static void decode(const struct world *w, const zarr_tensor *t, const zarr_memory *bytes,
                   const zarr_io_options *o)
{
    zarr_block_batch batch = ZARR_BLOCK_BATCH_INIT;

    batch.n_blocks = CHUNKS;
    batch.blocks = &kept_at[0][0];
    batch.bytes = bytes;
    assert_ok(zarr_array_decode(w->a, NULL, t, &batch, o, &terr));
}

static void test_encode(void **state)
{
    (void)state;
    for (size_t i = 0; i < ZR_COUNT(chains); i++) {
        zarr_io_options o = ZARR_IO_OPTIONS_INIT;
        struct world w;
        zarr_tensor t;

        world_open(&w, chains[i]);
        put(&w.mem, old);
        put(&w.other, data);
        queue_copy(&w, &w.mem, &w.other);
        o.stream = w.stream;
        encode(&w, &w.t, &o);
        assert_int_equal(orders(), 1);
        memset(got, 0, sizeof got);
        zarr_tensor_host(&t, NULL, got, sizeof got, 2, sizes);
        decode(&w, &t, kept_mem, NULL);
        assert_memory_equal(got, data, sizeof data);
        world_close(&w);
    }
}

/* The tensor's old elements are still to be copied away; or chunks in memory of the
 * device are still on their way. */
static void test_decode(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * ZR_COUNT(chains); i++) {
        zarr_io_options o = ZARR_IO_OPTIONS_INIT;
        const bool arriving = i % 2;
        zarr_memory on_device[CHUNKS];
        struct world w;
        zarr_tensor t;

        world_open(&w, chains[i / 2]);
        zarr_tensor_host(&t, NULL, data, sizeof data, 2, sizes);
        encode(&w, &t, NULL);
        put(&w.mem, old);
        if (!arriving)
            queue_copy(&w, &w.other, &w.mem);
        for (int k = 0; arriving && k < CHUNKS; k++) {
            const zarr_memory *from = &kept_mem[k];

            assert_ok(zarr_memory_alloc(&on_device[k], w.w.ctx, ZARR_DEVICE_EXT, 0,
                                        from->bytes, &terr));
            assert_ok(
                table()->copy(device, &on_device[k], from, from->bytes, w.stream, &terr));
        }
        o.stream = w.stream;
        decode(&w, &w.t, arriving ? on_device : kept_mem, &o);
        assert_int_equal(orders(), 1);
        assert_ok(table()->sync(device, w.stream, &terr));
        peek(&w.mem);
        assert_memory_equal(got, data, sizeof data);
        peek(&w.other);
        if (!arriving)
            assert_memory_equal(got, old, sizeof data);
        for (int k = 0; arriving && k < CHUNKS; k++)
            zarr_memory_free(w.w.ctx, &on_device[k]);
        world_close(&w);
    }
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
        zarr_tensor_host(&t, NULL, data, sizeof data, 2, sizes);
        assert_status(zarr_array_read(w.a, NULL, &t, &o, &terr), ZARR_ERR_UNSUPPORTED);
        assert_status(zarr_array_count_stored(w.a, &n, NULL, &o, &terr),
                      ZARR_ERR_UNSUPPORTED);
        world_close(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_write),    cmocka_unit_test(test_read),
        cmocka_unit_test(test_append),   cmocka_unit_test(test_entry),
        cmocka_unit_test(test_failures), cmocka_unit_test(test_closed),
        cmocka_unit_test(test_packed),   cmocka_unit_test(test_encode),
        cmocka_unit_test(test_decode),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
