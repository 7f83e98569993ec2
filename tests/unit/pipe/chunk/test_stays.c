/*
 * unit/pipe/chunk/test_stays.c - chunks that stay on the host on their way to a device,
 * because the device's codec after a checksum refuses them: the codec of the host reads
 * them where they are, and nothing else may use that memory meanwhile.
 */
#include "unit/pipe/pipe_test.h"

#include "fakedev/fakedev.h"

#include <unistd.h>

enum {
    ROWS = 64,
    COLS = 2000,
    N = ROWS * COLS,
    ROUNDS = 4
};
static const uint64_t shape[2] = {ROWS, COLS}, chunk[2] = {4, 1000};
static const uint64_t sizes[2] = {ROWS, COLS};
static int32_t data[N], got[N];
static atomic_int n_changed, n_calls;

static uint8_t *at(const zarr_memory *m)
{
    return (uint8_t *)m->handle + m->offset;
}

/* Reverses the bytes, slowly, so that others have time to write to the input. */
static zarr_status reverse(void *self, zarr_codec_job *jobs, uint64_t n,
                           zarr_codec_exec *exec, zarr_error *err)
{
    (void)self;
    (void)exec;
    (void)err;
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t bytes = jobs[i].src.bytes;
        uint8_t *copy = malloc(bytes), *out = at(&jobs[i].dst);

        assert_non_null(copy);
        memcpy(copy, at(&jobs[i].src), bytes);
        (void)usleep(200);
        atomic_fetch_add(&n_calls, 1);
        atomic_fetch_add(&n_changed, memcmp(copy, at(&jobs[i].src), bytes) != 0);
        for (uint64_t k = 0; k < bytes; k++)
            out[k] = copy[bytes - 1 - k];
        atomic_fetch_add(&n_changed, out == at(&jobs[i].src));
        jobs[i].dst_used = bytes;
        free(copy);
    }
    return ZARR_OK;
}

static zarr_status never(void *self, zarr_codec_job *jobs, uint64_t n,
                         zarr_codec_exec *exec, zarr_error *err)
{
    (void)self;
    (void)jobs;
    (void)n;
    (void)exec;
    (void)err;
    return ZARR_ERR_UNSUPPORTED;
}

static int refuse(void *self, const zarr_codec_job *job)
{
    (void)self;
    (void)job;
    return 0;
}

static zarr_status same_bytes(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                              zarr_chunk_spec *out, void *fill_out, zarr_error *err)
{
    (void)spec;
    (void)in;
    (void)out;
    (void)fill_out;
    (void)err;
    return ZARR_OK;
}

static void open_world(struct pw *w, uint32_t threads, uint32_t batch)
{
    const uint32_t host = ZARR_MEMORY_BIT(ZARR_DEVICE_CPU),
                   ext = ZARR_MEMORY_BIT(ZARR_DEVICE_EXT);
    const zarr_codec_spec_vtable spec = {.struct_size = sizeof spec,
                                         .name = "test.reverse",
                                         .kind = ZARR_CODEC_BYTES_BYTES,
                                         .resolve = same_bytes};
    zarr_codec_impl_vtable v = {.struct_size = sizeof v,
                                .caps = ZARR_CODEC_SAFE | ZARR_CODEC_CAN_DECODE |
                                        ZARR_CODEC_CAN_ENCODE,
                                .codec = "test.reverse",
                                .impl = "cpu.test",
                                .in_kinds = host,
                                .out_kinds = host,
                                .encode = reverse,
                                .decode = reverse};

    pw_context(w, threads, UINT64_C(64) << 20, 65536);
    assert_ok(zarr_context_register_memory(w->ctx, zarr_fakedev_vtable_late(),
                                           zarr_fakedev_create(), "test", &terr));
    assert_ok(zarr_context_register_codec_spec(w->ctx, &spec, "test", &terr));
    assert_ok(zarr_context_register_codec_impl(w->ctx, &v, "test", &terr));
    v.caps = ZARR_CODEC_SAFE | ZARR_CODEC_CAN_DECODE | batch;
    v.impl = "test.device";
    v.in_kinds = v.out_kinds = ext;
    v.priority = 10;
    v.encode = NULL;
    v.decode = never;
    v.accepts = refuse;
    assert_ok(zarr_context_register_codec_impl(w->ctx, &v, "test", &terr));
    assert_ok(zarr_store_open(&w->store, w->ctx, "memory:", NULL, &terr));
}

static void read_some(uint32_t threads, uint32_t batch, const char *codecs,
                      const char *pipeline)
{
    const zarr_io_options o = {.struct_size = sizeof o,
                               .tuning = TUNING(.pipeline = pipeline)};
    zarr_tensor t;
    zarr_array *a;
    zarr_memory mem;
    struct pw w;

    open_world(&w, threads, batch);
    a = pw_array(w.store, "a", codecs, shape, chunk);
    zarr_tensor_host(&t, NULL, data, sizeof data, 2, sizes);
    assert_ok(zarr_array_write(a, NULL, &t, NULL, &terr));
    assert_ok(zarr_memory_alloc(&mem, w.ctx, ZARR_DEVICE_EXT, 0, sizeof data, &terr));
    zarr_tensor_host(&t, NULL, mem.handle, sizeof data, 2, sizes);
    t.device_type = ZARR_DEVICE_EXT;
    atomic_store(&n_changed, 0);
    atomic_store(&n_calls, 0);
    for (int i = 0; i < ROUNDS; i++) {
        assert_ok(zarr_array_read(a, NULL, &t, &o, &terr));
        assert_int_equal(zarr_fakedev_peek(mem.handle, 0, got, sizeof got), 0);
        assert_memory_equal(got, data, sizeof data);
    }
    assert_true(atomic_load(&n_calls) >= ROUNDS * 32);
    assert_int_equal(atomic_load(&n_changed), 0);
    zarr_memory_free(w.ctx, &mem);
    zarr_array_free(a);
    pw_close(&w);
}

static void test_reads(void **state)
{
    static const char *const codecs[] = {
        "[" BYTES ",{\"name\":\"test.reverse\"}," CRC "]",
        "[" BYTES ",{\"name\":\"test.reverse\"},{\"name\":\"test.reverse\"}]",
        "[" BYTES ",{\"name\":\"test.reverse\"}," GZIP "]"};

    (void)state;
    for (int i = 0; i < N; i++)
        data[i] = (int32_t)((uint32_t)i * 2654435761U >> 8);
    for (size_t k = 0; k < ZR_COUNT(codecs); k++)
        for (uint32_t threads = 1; threads <= 2; threads++) {
            read_some(threads, 0, codecs[k], NULL);
            read_some(threads, ZARR_CODEC_BATCH, codecs[k], NULL);
            read_some(threads, 0, codecs[k], "serial");
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_reads)};

    return cmocka_run_group_tests_name("pipe_stays", tests, NULL, NULL);
}
