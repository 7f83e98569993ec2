/*
 * unit/pipe/test_host_kinds.c - pinned and managed tensors, which the CPU reads and
 * writes like host memory. Local files are read directly into them, decoders of the CPU
 * write directly into them, and the backend copies nothing. With a device's codec for
 * managed memory, that codec decodes there, and raw chunks still come without a copy.
 */
#include "pipe_test.h"

#include "fakedev/fakedev.h"

#include <unistd.h>

enum {
    ROWS = 64,
    COLS = 32,
    N = ROWS * COLS,
    ROCM_HOST = 11 /* DLPack's number */
};
static const uint64_t shape[2] = {ROWS, COLS}, chunk[2] = {16, COLS};
static const uint64_t sizes[2] = {ROWS, COLS};
static int32_t data[N];

/* ---- memory that the CPU may touch, whose backend counts ------------------------- */

static atomic_int n_allocs, n_copies;

/* Any of the tables will do: its functions read the type from `self`. */
static const zarr_memory_vtable *near_table(void)
{
    return zarr_fakedev_vtable_near(ZARR_DEVICE_CUDA_HOST);
}

static zarr_status counted_alloc(void *self, int32_t device_id, uint64_t bytes,
                                 zarr_memory *out, zarr_error *err)
{
    atomic_fetch_add(&n_allocs, 1);
    return near_table()->alloc(self, device_id, bytes, out, err);
}

static zarr_status counted_copy(void *self, const zarr_memory *dst,
                                const zarr_memory *src, uint64_t bytes, void *stream,
                                zarr_error *err)
{
    atomic_fetch_add(&n_copies, 1);
    return near_table()->copy(self, dst, src, bytes, stream, err);
}

static const int32_t kinds[] = {ZARR_DEVICE_CUDA_HOST, ZARR_DEVICE_CUDA_MANAGED,
                                ROCM_HOST};

static void add_kind(const struct pw *w, size_t k)
{
    static const char *const names[] = {"test-pinned", "test-managed", "test-rocm"};
    static zarr_memory_vtable v[ZR_COUNT(names)];

    v[k] = *near_table();
    v[k].name = names[k];
    v[k].device_type = kinds[k];
    v[k].alloc = counted_alloc;
    v[k].copy = counted_copy;
    assert_ok(zarr_context_register_memory(w->ctx, &v[k], &v[k], "test", &terr));
}

/* ---- a codec of the CPU that knows host memory only, and one of a device ---------- */

static atomic_int n_device_jobs, n_foreign;

static zarr_status turn(zarr_codec_job *jobs, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        const char *src = (char *)jobs[i].src.handle + jobs[i].src.offset;
        char *dst = (char *)jobs[i].dst.handle + jobs[i].dst.offset;

        for (uint64_t b = 0; b < jobs[i].src.bytes; b++)
            dst[b] = (char)~src[b];
        jobs[i].dst_used = jobs[i].src.bytes;
    }
    return ZARR_OK;
}

static zarr_status cpu_turn(void *self, zarr_codec_job *jobs, uint64_t n,
                            zarr_codec_exec *exec, zarr_error *err)
{
    (void)self;
    (void)exec;
    (void)err;
    for (uint64_t i = 0; i < n; i++)
        if (jobs[i].src.device_type != ZARR_DEVICE_CPU ||
            jobs[i].dst.device_type != ZARR_DEVICE_CPU)
            atomic_fetch_add(&n_foreign, 1);
    return turn(jobs, n);
}

static zarr_status device_turn(void *self, zarr_codec_job *jobs, uint64_t n,
                               zarr_codec_exec *exec, zarr_error *err)
{
    (void)self;
    (void)exec;
    (void)err;
    atomic_fetch_add(&n_device_jobs, (int)n);
    return turn(jobs, n);
}

static void add_codecs(const struct pw *w, bool device)
{
    const zarr_codec_spec_vtable spec = {.struct_size = sizeof spec,
                                         .name = "test.not",
                                         .kind = ZARR_CODEC_BYTES_BYTES,
                                         .resolve = pw_resolve_same};
    zarr_codec_impl_vtable v = {.struct_size = sizeof v,
                                .caps = ZARR_CODEC_SAFE | ZARR_CODEC_CAN_DECODE |
                                        ZARR_CODEC_CAN_ENCODE,
                                .codec = "test.not",
                                .impl = "cpu.not",
                                .in_kinds = ZARR_MEMORY_BIT(ZARR_DEVICE_CPU),
                                .out_kinds = ZARR_MEMORY_BIT(ZARR_DEVICE_CPU),
                                .encode = cpu_turn,
                                .decode = cpu_turn};

    assert_ok(zarr_context_register_codec_spec(w->ctx, &spec, "test", &terr));
    assert_ok(zarr_context_register_codec_impl(w->ctx, &v, "test", &terr));
    if (!device)
        return;
    v.impl = "cuda.not";
    v.priority = 100;
    v.encode = v.decode = device_turn;
    v.in_kinds = v.out_kinds =
        ZARR_MEMORY_BIT(ZARR_DEVICE_CUDA) | ZARR_MEMORY_BIT(ZARR_DEVICE_CUDA_MANAGED);
    assert_ok(zarr_context_register_codec_impl(w->ctx, &v, "test", &terr));
}

/* ---- worlds ------------------------------------------------------------------------ */

struct world {
    struct pw w;
    char dir[64];
    bool device_codec;
};

static void world_open(struct world *w, bool device_codec)
{
    pw_context(&w->w, 2, UINT64_C(64) << 20, UINT64_C(1) << 20);
    for (size_t i = 0; i < ZR_COUNT(kinds); i++)
        add_kind(&w->w, i);
    add_codecs(&w->w, device_codec);
    w->device_codec = device_codec;
    strcpy(w->dir, "/tmp/zarrc-kinds-XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    assert_ok(zarr_store_open(&w->w.store, w->w.ctx, w->dir, NULL, &terr));
    for (int i = 0; i < N; i++)
        data[i] = 7 * i - 1000;
    atomic_store(&n_allocs, 0);
    atomic_store(&n_copies, 0);
    atomic_store(&n_device_jobs, 0);
    atomic_store(&n_foreign, 0);
}

static void world_close(struct world *w)
{
    char command[96];

    snprintf(command, sizeof command, "rm -r %s", w->dir);
    assert_int_equal(system(command), 0); // NOLINT(cert-env33-c)
    pw_close(&w->w);
}

#define NOT "{\"name\":\"test.not\"}"

/* Chunks that fit the tensor; the inner chunks of raw shards are copied once from the
 * range that has several of them, on any host. */
static const char *const rounds[] = {
    "[" BYTES "]",
    "[" BYTES "," GZIP "]",
    "[" BYTES "," NOT "]",
    "[" SHARD("[4,32]", BYTES "," NOT "," CRC, "end") "]",
    "[" SHARD("[4,32]", BYTES, "end") "]",
};

static void no_copies(const zarr_stats *s)
{
    assert_int_equal(s->copies_up, 0);
    assert_int_equal(s->copies_down, 0);
    assert_int_equal(s->copies_device, 0);
    assert_int_equal(s->copies_decoded_host, 0);
    assert_int_equal(atomic_load(&n_copies), 0);
}

/* Writes all from a tensor of this kind and reads it back, and a part of it. */
static void round_trip(struct world *w, int round, int32_t kind)
{
    zarr_stats stats = ZARR_STATS_INIT;
    zarr_io_options opts = {.struct_size = sizeof opts, .stats = &stats};
    zarr_array *a = NULL;
    zarr_selection *sel = NULL;
    zarr_tensor t;
    zarr_memory mem;
    static int n;
    char path[16];
    int before = 0;

    snprintf(path, sizeof path, "a%d", ++n);
    a = pw_array(w->w.store, path, rounds[round], shape, chunk);
    assert_ok(zarr_memory_alloc(&mem, w->w.ctx, kind, 0, sizeof data, &terr));
    before = atomic_load(&n_allocs);
    zarr_tensor_host(&t, NULL, mem.handle, mem.bytes, 2, sizes);
    t.device_type = kind;
    memcpy(mem.handle, data, sizeof data);
    assert_ok(zarr_array_write(a, NULL, &t, &opts, &terr));
    no_copies(&stats);
    memset(mem.handle, 0, sizeof data);
    stats = (zarr_stats)ZARR_STATS_INIT;
    assert_ok(zarr_array_read(a, NULL, &t, &opts, &terr));
    assert_memory_equal(mem.handle, data, sizeof data);
    no_copies(&stats);
    assert_int_equal(stats.copies_host, round < 4 ? 0 : 16); /* no index is copied */
    if (round < 4)
        assert_int_equal(stats.chunks_direct, stats.chunks_done);
    /* rows 3 to 60 of it, in place */
    assert_ok(zarr_selection_parse(&sel, 2, shape, "3:60", &terr));
    memset(mem.handle, 0, sizeof data);
    t.shape = (uint64_t[2]){57, COLS};
    stats = (zarr_stats)ZARR_STATS_INIT;
    assert_ok(zarr_array_read(a, sel, &t, &opts, &terr));
    assert_memory_equal(mem.handle, data + (size_t)3 * COLS, 57 * COLS * sizeof data[0]);
    no_copies(&stats);
    if (!w->device_codec) /* nothing in between */
        assert_int_equal(atomic_load(&n_allocs), before);
    zarr_selection_free(sel);
    zarr_array_free(a);
    zarr_memory_free(w->w.ctx, &mem);
}

static void test_no_copies(void **state)
{
    struct world w;

    (void)state;
    world_open(&w, false);
    for (size_t k = 0; k < ZR_COUNT(kinds); k++)
        for (int i = 0; i < (int)ZR_COUNT(rounds); i++)
            round_trip(&w, i, kinds[k]);
    assert_int_equal(atomic_load(&n_foreign), 0);
    world_close(&w);
}

static void read_managed(struct world *w)
{
    zarr_array *a = pw_array(w->w.store, "m", rounds[2], shape, chunk);
    zarr_tensor t;
    zarr_memory mem;

    zarr_tensor_host(&t, NULL, data, sizeof data, 2, sizes);
    assert_ok(zarr_array_write(a, NULL, &t, NULL, &terr));
    assert_ok(zarr_memory_alloc(&mem, w->w.ctx, ZARR_DEVICE_CUDA_MANAGED, 0, sizeof data,
                                &terr));
    t.data = mem.handle;
    t.device_type = ZARR_DEVICE_CUDA_MANAGED;
    assert_ok(zarr_array_read(a, NULL, &t, NULL, &terr));
    assert_memory_equal(mem.handle, data, sizeof data);
    assert_int_equal(atomic_load(&n_device_jobs), 4);
    assert_int_equal(atomic_load(&n_copies), 0);
    zarr_array_free(a);
    zarr_memory_free(w->w.ctx, &mem);
}

/* A device decodes into managed memory; raw chunks come from the file. */
static void test_device_codec(void **state)
{
    struct world w;

    (void)state;
    world_open(&w, true);
    round_trip(&w, 2, ZARR_DEVICE_CUDA_HOST);
    assert_int_equal(atomic_load(&n_device_jobs), 0);
    round_trip(&w, 0, ZARR_DEVICE_CUDA_MANAGED);
    round_trip(&w, 1, ZARR_DEVICE_CUDA_MANAGED);
    read_managed(&w);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_copies),
        cmocka_unit_test(test_device_codec),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
