/*
 * unit/pipe/batch/test_device_traffic.c - what crosses between host and device, and with
 * how many calls, for a codec of the device that compresses. A read moves each encoded
 * byte up once, a write moves each encoded byte down once, and nothing decoded crosses.
 * Counts only, no time.
 */
#include "unit/pipe/device_test.h"

/* ---- a codec that compresses: an int32 of 1000 to 1255 is one byte ---------------- */

enum {
    FIRST = 1000,
    WIDEST = 64 * 1024
};

static zarr_status pack_resolve(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                                zarr_chunk_spec *out, void *fill_out, zarr_error *err)
{
    (void)spec;
    (void)fill_out;
    (void)err;
    out->n_bytes = in->n_bytes; /* a bound: how much it compresses is not known */
    out->exact = 0;
    return ZARR_OK;
}

static bool is_host(const zarr_memory *m)
{
    return m->device_type == ZARR_DEVICE_CPU;
}

/* The codec's own eyes and hands, on any memory. */
static void look_at(const zarr_memory *m, void *to, uint64_t bytes)
{
    assert_true(bytes <= m->bytes);
    if (is_host(m))
        memcpy(to, (const char *)m->handle + m->offset, bytes);
    else
        assert_int_equal(zarr_fakedev_peek(m->handle, m->offset, to, bytes), 0);
}

static void put_at(const zarr_memory *m, const void *from, uint64_t bytes)
{
    assert_true(bytes <= m->bytes);
    if (is_host(m))
        memcpy((char *)m->handle + m->offset, from, bytes);
    else
        assert_int_equal(zarr_fakedev_poke(m->handle, m->offset, from, bytes), 0);
}

static atomic_int n_calls, n_chunks;

static zarr_status pack(void *self, zarr_codec_job *jobs, uint64_t n,
                        zarr_codec_exec *exec, zarr_error *err)
{
    static _Thread_local int32_t in[WIDEST];
    static _Thread_local unsigned char out[WIDEST];

    (void)self;
    (void)exec;
    (void)err;
    atomic_fetch_add(&n_calls, 1);
    atomic_fetch_add(&n_chunks, (int)n);
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t items = jobs[i].src.bytes / sizeof in[0];

        look_at(&jobs[i].src, in, items * sizeof in[0]);
        for (uint64_t k = 0; k < items; k++)
            out[k] = (unsigned char)(in[k] - FIRST);
        put_at(&jobs[i].dst, out, items);
        jobs[i].dst_used = items;
    }
    return ZARR_OK;
}

static zarr_status unpack(void *self, zarr_codec_job *jobs, uint64_t n,
                          zarr_codec_exec *exec, zarr_error *err)
{
    static _Thread_local unsigned char in[WIDEST];
    static _Thread_local int32_t out[WIDEST];

    (void)self;
    (void)exec;
    (void)err;
    atomic_fetch_add(&n_calls, 1);
    atomic_fetch_add(&n_chunks, (int)n);
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t items = jobs[i].src.bytes;

        look_at(&jobs[i].src, in, items);
        for (uint64_t k = 0; k < items; k++)
            out[k] = FIRST + in[k];
        put_at(&jobs[i].dst, out, items * sizeof out[0]);
        jobs[i].dst_used = items * sizeof out[0];
    }
    return ZARR_OK;
}

/* A decoder whose input stays on the host: it reads headers there, and brings the bytes
 * to the device itself. */
static void add_host_reader(const struct pw *w)
{
    const zarr_codec_impl_vtable impl = {.struct_size = sizeof impl,
                                         .caps = ZARR_CODEC_SAFE | ZARR_CODEC_CAN_DECODE |
                                                 ZARR_CODEC_BATCH,
                                         .codec = "test.pack",
                                         .impl = "fake.reader",
                                         .in_kinds = CPU,
                                         .out_kinds = EXT,
                                         .priority = 20,
                                         .decode = unpack};

    assert_ok(zarr_context_register_codec_impl(w->ctx, &impl, "test", &terr));
}

/* `folder` NULL: a store in memory, and codecs without a reader. */
static void open_packed(struct pw *w, uint32_t threads, uint64_t wave, const char *folder)
{
    const zarr_codec_spec_vtable spec = {.struct_size = sizeof spec,
                                         .name = "test.pack",
                                         .kind = ZARR_CODEC_BYTES_BYTES,
                                         .resolve = pack_resolve};
    zarr_codec_impl_vtable impl = {.struct_size = sizeof impl,
                                   .caps = ZARR_CODEC_SAFE | ZARR_CODEC_CAN_DECODE |
                                           ZARR_CODEC_CAN_ENCODE,
                                   .codec = "test.pack",
                                   .impl = "cpu.pack",
                                   .in_kinds = CPU,
                                   .out_kinds = CPU,
                                   .encode = pack,
                                   .decode = unpack};
    zarr_context_options opts = {
        .max_threads = threads, .memory_bytes = UINT64_C(1) << 30, .wave_bytes = wave};

    pw_context_options(w, &opts);
    device = zarr_fakedev_create();
    assert_ok(zarr_context_register_memory(w->ctx, zarr_fakedev_vtable_late(), device,
                                           "test", &terr));
    assert_ok(zarr_context_register_codec_spec(w->ctx, &spec, "test", &terr));
    assert_ok(zarr_context_register_codec_impl(w->ctx, &impl, "test", &terr));
    impl.caps |= ZARR_CODEC_BATCH;
    impl.impl = "fake.pack";
    impl.in_kinds = impl.out_kinds = EXT;
    impl.priority = 10;
    assert_ok(zarr_context_register_codec_impl(w->ctx, &impl, "test", &terr));
    if (folder)
        add_host_reader(w);
    assert_ok(
        zarr_store_open(&w->store, w->ctx, folder ? folder : "memory:", NULL, &terr));
    for (int i = 0; i < N; i++)
        data[i] = FIRST + 1 + i * 7 % 250;
}

/* ---- arrays ------------------------------------------------------------------------ */

#define PACK "{\"name\":\"test.pack\"}"
static const struct packed {
    const char *codecs;
    uint64_t chunk[2];
    uint32_t chunks;
    uint32_t extra; /* bytes of a chunk that other codecs add */
    bool far_crc;   /* a codec of the CPU is between device and store */
    /* bytes of indexes between inner shards, which go up with their neighbours */
    uint32_t between;
} packed[] = {
    {"[" BYTES "," PACK "]", {10, 40}, 10, 0, false, 0}, /* as in the tensor */
    {"[" BYTES "," PACK "]", {2, 10}, 200, 0, false, 0},
    {"[" BYTES "," PACK "," CRC "]", {2, 10}, 200, 4, true, 0},
    {"[" SHARD("[2,2]", BYTES "," PACK, "end") "]", {10, 40}, 1000, 0, false, 0},
    {"[" SHARD("[2,2]", BYTES "," PACK, "start") "]", {50, 40}, 1000, 0, false, 0},
    {"[" SHARD("[2,2]", BYTES "," PACK "," CRC, "end") "]", {10, 40}, 1000, 4, true, 0},
    {"[" SHARD("[10,20]", SHARD("[2,2]", BYTES "," PACK, "end"), "end") "]",
     {20, 40},
     1000,
     0,
     false,
     20 * (50 * 16 + 4)},
};

static void check_read(const struct packed *p, const struct counts *c)
{
    const uint64_t encoded = N + (uint64_t)p->extra * p->chunks;
    const uint64_t up = p->far_crc ? N : encoded;

    assert_int_equal(c->stats.chunks_done, p->chunks);
    assert_int_equal(c->stats.chunks_fallback, 0);
    assert_int_equal(atomic_load(&n_chunks), p->chunks);
    assert_int_equal(atomic_load(&n_calls), c->stats.waves);
    assert_in_range(c->moved.bytes_up, up, up + p->between);
    assert_int_equal(c->stats.bytes_up, c->moved.bytes_up);
    assert_int_equal(c->moved.bytes_down, 0);
    assert_int_equal(c->stats.bytes_down, 0);
    assert_int_equal(c->stats.copies_decoded_host, 0);
    /* up and boxes, one wait before the codec, which does all at once, and one at the
     * end */
    assert_in_range(c->late.lists, 1, 2 * c->stats.waves);
    assert_in_range(c->late.syncs, 1, 2 * c->stats.waves);
    assert_in_range(c->late.calls + c->stats.waves - c->late.streams_opened, 1,
                    6 * c->stats.waves);
}

static void check_write(const struct packed *p, const struct counts *c, uint64_t wave)
{
    const uint64_t batches = (uint64_t)atomic_load(&n_calls);

    assert_int_equal(c->stats.chunks_done, p->chunks);
    assert_int_equal(c->stats.chunks_fallback, 0);
    assert_int_equal(atomic_load(&n_chunks), p->chunks);
    if (wave >= sizeof data) /* else a shard is more than a wave */
        assert_int_equal(atomic_load(&n_calls), c->stats.waves);
    assert_int_equal(c->moved.bytes_down, N);
    assert_int_equal(c->stats.bytes_down, N);
    assert_int_equal(c->moved.bytes_up, 0);
    assert_int_equal(c->stats.bytes_up, 0);
    assert_int_equal(c->stats.copies_decoded_host, 0);
    /* gather, compare, down; a wait before the codec, and one after the copies */
    assert_in_range(c->late.lists, 1, 3 * batches);
    assert_in_range(c->late.syncs, 1, 2 * batches);
    /* with those of the codec, and without opening streams, which stay open */
    assert_in_range(c->late.calls + batches - c->late.streams_opened, 1, 6 * batches);
}

static void one_array(const struct packed *p, uint32_t threads, uint64_t wave)
{
    zarr_io_options opts = ZARR_IO_OPTIONS_INIT;
    struct counts c;
    struct pw w;
    zarr_array *a;
    zarr_tensor t;
    zarr_memory mem;

    open_packed(&w, threads, wave, NULL);
    a = pw_array(w.store, "a", p->codecs, shape, p->chunk);
    mem = tensor_new(&w, &t, sizes);
    assert_int_equal(zarr_fakedev_poke(mem.handle, 0, data, sizeof data), 0);
    atomic_store(&n_calls, 0);
    atomic_store(&n_chunks, 0);
    count_begin(&c, &opts);
    assert_ok(zarr_array_write(a, NULL, &t, &opts, &terr));
    count_end(&c);
    check_write(p, &c, wave);
    atomic_store(&n_calls, 0);
    atomic_store(&n_chunks, 0);
    read_data(&c, a, &t, &mem, &opts);
    check_read(p, &c);
    zarr_memory_free(w.ctx, &mem);
    zarr_array_free(a);
    close_world(&w);
}

/* Each is one wave, and then several in flight. */
static void test_traffic(void **state)
{
    (void)state;
    for (size_t i = 0; i < ZR_COUNT(packed); i++)
        for (uint32_t threads = 1; threads <= 4; threads += 3) {
            one_array(&packed[i], threads, 1 << 20);
            one_array(&packed[i], threads, 4096);
        }
}

/* ---- bytes that the codec reads on the host ---------------------------------------- */

/* It gets pinned memory, so that its copies are fast: a block for many chunks. */
static void test_host_reader(void **state)
{
    char command[96];

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(packed); i++) {
        char dir[] = "/tmp/zarrc-traffic-XXXXXX";
        zarr_io_options opts = ZARR_IO_OPTIONS_INIT;
        struct counts c;
        struct pw w;
        zarr_array *a;
        zarr_tensor t;
        zarr_memory mem;

        assert_non_null(mkdtemp(dir));
        open_packed(&w, 2, 1 << 20, dir);
        a = pw_array(w.store, "a", packed[i].codecs, shape, packed[i].chunk);
        mem = tensor_new(&w, &t, sizes);
        assert_int_equal(zarr_fakedev_poke(mem.handle, 0, data, sizeof data), 0);
        assert_ok(zarr_array_write(a, NULL, &t, NULL, &terr));
        zarr_context_trim(w.ctx);
        read_data(&c, a, &t, &mem, &opts);
        assert_in_range(c.late.pinned_allocs, 1, 2 * c.stats.waves);
        zarr_memory_free(w.ctx, &mem);
        zarr_array_free(a);
        close_world(&w);
        snprintf(command, sizeof command, "rm -r %s", dir);
        assert_int_equal(system(command), 0); // NOLINT(cert-env33-c)
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_traffic),
                                       cmocka_unit_test(test_host_reader)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
