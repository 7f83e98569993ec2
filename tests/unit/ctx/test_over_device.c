/*
 * unit/ctx/test_over_device.c - a plug-in's store over another store, by the host's table
 * alone, with chunks in the memory of a device. Raw chunks go between the device's tensor
 * and the inner store's values without visiting the host.
 */
#include "ctx/ctx_int.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "fakedev/fakedev.h"
#include <zarrc/zarrc.h>

enum {
    ROWS = 40,
    COLS = 25,
    N = ROWS * COLS,
    CHUNKS = 4
};
static const uint64_t shape[2] = {ROWS, COLS}, chunk[2] = {ROWS / CHUNKS, COLS};
static const uint64_t sizes[2] = {ROWS, COLS};
static int32_t data[N], got[N];
static const zarr_host *const host = &zr_host;
static void *device;

/* ---- the store ------------------------------------------------------------------- */

static zarr_status over_open(void **self, zarr_context *ctx, const char *url,
                             const zarr_store_options *opts, const zarr_cancel *cancel,
                             zarr_error *err)
{
    zarr_store_options inner = ZARR_STORE_OPTIONS_INIT;

    (void)cancel;
    (void)url;
    (void)opts;
    inner.device_type = ZARR_DEVICE_EXT; /* values of chunks are on the device */
    return host->store_open((zarr_store **)self, ctx, "memory:", &inner, err);
}

static void over_caps(void *self, zarr_store_caps *out)
{
    static const int32_t kinds[] = {ZARR_DEVICE_CPU, ZARR_DEVICE_EXT};

    (void)self;
    out->flags = ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_SUFFIX | ZARR_STORE_CAP_WRITE |
                 ZARR_STORE_CAP_LIST | ZARR_STORE_CAP_ATOMIC_PUT |
                 ZARR_STORE_CAP_FAST_GET;
    out->device_types = kinds;
    out->n_device_types = 2;
}

static void over_run(void *self, zarr_store_op *op, zarr_error *err)
{
    (void)host->store_run(self, op, err);
}

static zarr_status over_list(void *self, const char *prefix, uint32_t how,
                             zarr_store_list_fn fn, void *user, const zarr_cancel *cancel,
                             zarr_error *err)
{
    return host->store_list(self, prefix, how, fn, user, cancel, err);
}

static void over_close(void *self)
{
    host->store_free(self);
}

static const zarr_store_vtable over = {.struct_size = sizeof over,
                                       .name = "over",
                                       .open = over_open,
                                       .caps = over_caps,
                                       .run = over_run,
                                       .list = over_list,
                                       .close = over_close};

/* ---- the test -------------------------------------------------------------------- */

static void check(zarr_status st, const zarr_error *err)
{
    if (st != ZARR_OK)
        fail_msg("%s: %s", zarr_status_text(st), err->message);
}

static void peek_is_data(const zarr_memory *mem, uint64_t first, uint64_t n)
{
    assert_int_equal(zarr_fakedev_peek(mem->handle, 0, got, n * sizeof data[0]), 0);
    assert_memory_equal(got, data + first, n * sizeof data[0]);
}

/* Writes all from the device, and reads all and some rows back to it. */
static void round_trip(zarr_context *ctx, zarr_store *s, const char *path, bool raw)
{
    zarr_array_spec spec = ZARR_ARRAY_SPEC_INIT;
    zarr_fakedev_counters before, after;
    zarr_selection *rows = NULL;
    zarr_error err = ZARR_ERROR_INIT;
    zarr_array *a = NULL;
    zarr_tensor t = ZARR_TENSOR_INIT;
    zarr_memory mem;

    spec.ndim = 2;
    spec.shape = shape;
    spec.chunk_shape = chunk;
    spec.data_type = "int32";
    spec.codecs = raw ? "[\"bytes\"]"
                      : "[\"bytes\",{\"name\":\"gzip\","
                        "\"configuration\":{\"level\":1}}]";
    check(zarr_array_create(&a, s, path, &spec, NULL, &err), &err);
    check(zarr_memory_alloc(&mem, ctx, ZARR_DEVICE_EXT, 0, sizeof data, &err), &err);
    assert_int_equal(zarr_fakedev_poke(mem.handle, 0, data, sizeof data), 0);
    t.device_type = ZARR_DEVICE_EXT;
    t.ndim = 2;
    t.data = mem.handle;
    t.data_bytes = mem.bytes;
    t.shape = sizes;
    zarr_fakedev_count(device, &before);
    check(zarr_array_write(a, NULL, &t, NULL, &err), &err);
    memset(got, 0, sizeof got);
    assert_int_equal(zarr_fakedev_poke(mem.handle, 0, got, sizeof got), 0);
    check(zarr_array_read(a, NULL, &t, NULL, &err), &err);
    zarr_fakedev_count(device, &after);
    peek_is_data(&mem, 0, N);
    if (raw) { /* each chunk twice */
        assert_int_equal(after.copies_up, before.copies_up);
        assert_int_equal(after.bytes_device - before.bytes_device, 2 * sizeof data);
    }
    check(zarr_selection_parse(&rows, 2, shape, "7:35", &err), &err);
    t.shape = (uint64_t[2]){28, COLS};
    check(zarr_array_read(a, rows, &t, NULL, &err), &err);
    peek_is_data(&mem, (uint64_t)7 * COLS, (uint64_t)28 * COLS);
    zarr_selection_free(rows);
    zarr_array_free(a);
    zarr_memory_free(ctx, &mem);
}

static void test_over_device(void **state)
{
    zarr_fakedev_counters c;
    zarr_context *ctx = NULL;
    zarr_store *s = NULL;
    zarr_error err = ZARR_ERROR_INIT;

    (void)state;
    for (int i = 0; i < N; i++)
        data[i] = i + 1;
    check(zarr_context_create(&ctx, NULL, &err), &err);
    device = zarr_fakedev_create();
    check(zarr_context_register_memory(ctx, zarr_fakedev_vtable(), device, "test", &err),
          &err);
    check(zarr_context_register_store(ctx, &over, "test", &err), &err);
    check(zarr_store_open(&s, ctx, "over:x", NULL, &err), &err);
    round_trip(ctx, s, "raw", true);
    round_trip(ctx, s, "gzip", false);
    zarr_store_free(s);
    zarr_context_trim(ctx);
    zarr_fakedev_count(device, &c);
    assert_int_equal(c.faults, 0);
    assert_int_equal(c.live_blocks, 0);
    zarr_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_over_device),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
