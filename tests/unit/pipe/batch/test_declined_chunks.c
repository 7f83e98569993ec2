/*
 * unit/pipe/batch/test_declined_chunks.c - chunks that an implementation does not take:
 * accepts() refuses them, their jobs are declined in the call or after it, or the whole
 * call is. Another implementation gets them, in reads and writes, on the host and on a
 * device; the counters say how many, and an error names all that tried.
 */
#include "unit/pipe/pipe_test.h"

#include "fakedev/fakedev.h"

enum {
    ROWS = 60,
    COLS = 40,
    N = ROWS * COLS,
    CHUNKS = (ROWS / 5) * (COLS / 4)
};
static const uint64_t shape[2] = {ROWS, COLS};
static int32_t data[N], got[N];

/* ---- the codec ------------------------------------------------------------------ */

enum mode {
    TAKES_ALL,
    REFUSES,    /* accepts() */
    IN_CALL,    /* some jobs, by their status */
    AFTER_CALL, /* some jobs, in settle() */
    WHOLE_CALL, /* all jobs, by what the function returns */
    N_MODES
};
static enum mode mode;
static uint64_t scratch_bytes; /* for any call of the codec */
static zarr_status answer;
static void *device;
static atomic_int n_hard, n_same, n_asked_host, n_asked_device;
static int32_t damage; /* a chunk that begins with this element is damaged; 0: none */

static int32_t first_element(const zarr_memory *m)
{
    int32_t first = 0;

    if (m->device_type == ZARR_DEVICE_CPU)
        memcpy(&first, (const char *)m->handle + m->offset, sizeof first);
    else
        assert_int_equal(zarr_fakedev_peek(m->handle, m->offset, &first, sizeof first),
                         0);
    return first;
}

/* accepts() refuses every third chunk. */
static bool is_hard(const zarr_codec_job *job)
{
    return first_element(&job->src) / 4 % 3 == 0;
}

static zarr_status copy_job(zarr_codec_job *job, void *stream, zarr_error *err)
{
    job->dst_used = job->src.bytes;
    if (job->src.device_type != ZARR_DEVICE_CPU) {
        zarr_memory dst = job->dst;

        dst.bytes = job->src.bytes;
        return zarr_fakedev_vtable_late()->copy_list(device, &dst, &job->src, 1, stream,
                                                     err);
    }
    memcpy((char *)job->dst.handle + job->dst.offset,
           (char *)job->src.handle + job->src.offset, job->src.bytes);
    return ZARR_OK;
}

static zarr_status say(zarr_error *err, zarr_status st)
{
    return zr_fail(err, st, "too hard");
}

static zarr_status picky(void *self, zarr_codec_job *jobs, uint64_t n,
                         zarr_codec_exec *exec, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    bool *hard = NULL;

    (void)self;
    if (mode == WHOLE_CALL) {
        atomic_fetch_add(&n_hard, (int)n);
        return say(err, answer);
    }
    hard = calloc(n, sizeof *hard);
    for (uint64_t i = 0; i < n; i++) {
        /* not by the input, which may still be on its way */
        hard[i] = (mode == IN_CALL || mode == AFTER_CALL) && i % 3 == 0;
        atomic_fetch_add(&n_hard, hard[i]);
        if (!hard[i]) {
            (void)copy_job(&jobs[i], exec->stream, err);
            continue;
        }
        jobs[i].dst_used = jobs[i].src.bytes;
        if (mode == AFTER_CALL && exec->stream)
            continue;
        jobs[i].status = answer;
        if (st == ZARR_OK)
            st = say(err, answer);
    }
    if (exec->stream)
        exec->pending = hard;
    else
        free(hard);
    return st;
}

static zarr_status picky_end(void *self, zarr_codec_job *jobs, uint64_t n,
                             zarr_codec_exec *exec, zarr_error *err)
{
    bool *hard = exec->pending;
    zarr_status st = ZARR_OK;

    (void)self;
    for (uint64_t i = 0; i < n; i++) {
        if (!hard[i])
            continue;
        jobs[i].status = answer;
        if (st == ZARR_OK)
            st = say(err, answer);
    }
    free(hard);
    return st;
}

static uint64_t picky_scratch(void *self, uint64_t n, uint64_t max_out)
{
    (void)self;
    (void)n;
    (void)max_out;
    return scratch_bytes;
}

static int picky_accepts(void *self, const zarr_codec_job *job)
{
    (void)self;
    atomic_fetch_add(
        job->src.device_type == ZARR_DEVICE_CPU ? &n_asked_host : &n_asked_device, 1);
    if (mode != REFUSES || !is_hard(job))
        return 1;
    return 0;
}

static zarr_status same(void *self, zarr_codec_job *jobs, uint64_t n,
                        zarr_codec_exec *exec, zarr_error *err)
{
    (void)self;
    (void)exec;
    (void)n;
    atomic_fetch_add(&n_same, 1);
    if (damage && first_element(&jobs->src) == damage)
        return zr_fail(err, ZARR_ERR_CORRUPT, "damage");
    return copy_job(jobs, NULL, err);
}

#define CPU ZARR_MEMORY_BIT(ZARR_DEVICE_CPU)
#define EXT ZARR_MEMORY_BIT(ZARR_DEVICE_EXT)

static void open_world(struct pw *w, bool on_device)
{
    const zarr_codec_spec_vtable spec = {.struct_size = sizeof spec,
                                         .name = "test.hard",
                                         .kind = ZARR_CODEC_BYTES_BYTES,
                                         .resolve = pw_resolve_same};
    const zarr_codec_impl_vtable host = {.struct_size = sizeof host,
                                         .caps = ZARR_CODEC_SAFE | ZARR_CODEC_CAN_DECODE |
                                                 ZARR_CODEC_CAN_ENCODE,
                                         .codec = "test.hard",
                                         .impl = "cpu.same",
                                         .in_kinds = CPU,
                                         .out_kinds = CPU,
                                         .encode = same,
                                         .decode = same};
    const zarr_codec_impl_vtable fast = {
        .struct_size = sizeof fast,
        .caps = ZARR_CODEC_SAFE | ZARR_CODEC_CAN_DECODE | ZARR_CODEC_CAN_ENCODE |
                ZARR_CODEC_BATCH | (on_device ? ZARR_CODEC_ASYNC : 0),
        .codec = "test.hard",
        .impl = "fast.picky",
        .in_kinds = on_device ? EXT : CPU,
        .out_kinds = on_device ? EXT : CPU,
        .priority = 10,
        .accepts = picky_accepts,
        .scratch = picky_scratch,
        .encode = picky,
        .decode = picky,
        .settle = on_device ? picky_end : NULL};

    pw_context(w, 2, UINT64_C(64) << 20, 1 << 20);
    device = zarr_fakedev_create();
    assert_ok(zarr_context_register_memory(w->ctx, zarr_fakedev_vtable_late(), device,
                                           "test", &terr));
    assert_ok(zarr_context_register_codec_spec(w->ctx, &spec, "test", &terr));
    assert_ok(zarr_context_register_codec_impl(w->ctx, &host, "test", &terr));
    assert_ok(zarr_context_register_codec_impl(w->ctx, &fast, "test", &terr));
    assert_ok(zarr_store_open(&w->store, w->ctx, "memory:", NULL, &terr));
    mode = TAKES_ALL;
    damage = 0;
    for (int i = 0; i < N; i++)
        data[i] = 4 * (1 + i);
}

static void close_world(struct pw *w)
{
    zarr_fakedev_counters c;

    zarr_fakedev_count(device, &c);
    assert_int_equal(c.faults, 0);
    pw_close(w);
}

/* ---- all ways ------------------------------------------------------------------- */

#define HARD "{\"name\":\"test.hard\"}"
static const struct {
    const char *codecs;
    uint64_t chunk[2];
    int hard; /* how many codecs of a chunk are the picky one */
} kinds[] = {
    {"[" BYTES "," HARD "]", {5, 4}, 1},
    {"[" BYTES "," HARD "," HARD "]", {5, 4}, 2},
    {"[" SHARD("[5,4]", BYTES "," HARD, "end") "]", {20, 20}, 1},
    {"[" SHARD("[5,4]", TURN "," BYTES "," HARD "," CRC, "end") "]", {20, 20}, 1},
};

static uint64_t refused_chunks(void)
{
    uint64_t n = 0;

    for (int i = 0; i < ROWS; i += 5)
        for (int k = 0; k < COLS; k += 4)
            n += data[i * COLS + k] / 4 % 3 == 0;
    return n;
}

static void check_stats(const zarr_stats *s, uint64_t n)
{
    assert_int_equal(s->chunks_fallback, n);
    assert_int_equal(s->chunks_done, CHUNKS);
    assert_int_equal(s->elements, N);
    /* indexes of shards are decoded too */
    assert_in_range(s->bytes_decoded, sizeof data, sizeof data + (uint64_t)CHUNKS * 16);
}

static void one_way(const struct pw *w, int kind, bool on_device)
{
    const uint64_t sizes[2] = {ROWS, COLS};
    const int device_type = on_device ? ZARR_DEVICE_EXT : ZARR_DEVICE_CPU;
    zarr_io_options o = ZARR_IO_OPTIONS_INIT;
    zarr_stats stats = ZARR_STATS_INIT;
    zarr_array *a = pw_array(w->store, "a", kinds[kind].codecs, shape, kinds[kind].chunk);
    zarr_tensor t;
    zarr_memory mem;
    uint64_t n;

    o.stats = &stats;
    assert_ok(zarr_memory_alloc(&mem, w->ctx, device_type, 0, sizeof data, &terr));
    zarr_tensor_host(&t, NULL, mem.handle, sizeof data, 2, sizes);
    t.device_type = device_type;
    if (on_device)
        assert_int_equal(zarr_fakedev_poke(mem.handle, 0, data, sizeof data), 0);
    else
        memcpy(mem.handle, data, sizeof data);
    atomic_store(&n_hard, 0);
    assert_ok(zarr_array_write(a, NULL, &t, &o, &terr));
    n = (uint64_t)atomic_load(&n_hard);
    check_stats(&stats, n);
    if (mode >= IN_CALL)
        assert_in_range(n, CHUNKS / 3, 2 * CHUNKS);
    /* the first codec's input, the elements, comes down once */
    assert_in_range(stats.copies_decoded_host, on_device && kinds[kind].hard == 1 ? n : 0,
                    on_device ? n : 0);
    if (on_device)
        assert_int_equal(zarr_fakedev_poke(mem.handle, 0, got, sizeof got), 0);
    else
        memset(mem.handle, 0, sizeof data);
    stats = (zarr_stats)ZARR_STATS_INIT;
    atomic_store(&n_hard, 0);
    atomic_store(&n_asked_host, 0);
    atomic_store(&n_asked_device, 0);
    assert_ok(zarr_array_read(a, NULL, &t, &o, &terr));
    n = mode == REFUSES ? refused_chunks() * (uint64_t)kinds[kind].hard
                        : (uint64_t)atomic_load(&n_hard);
    check_stats(&stats, n);
    /* the last codec's output goes up once */
    assert_in_range(stats.copies_decoded_host,
                    on_device ? n / (uint64_t)kinds[kind].hard : 0, on_device ? n : 0);
    if (on_device)
        assert_int_equal(zarr_fakedev_peek(mem.handle, 0, got, sizeof got), 0);
    else
        memcpy(got, mem.handle, sizeof got);
    assert_memory_equal(got, data, sizeof data);
    memset(got, 0, sizeof got);
    assert_true(atomic_load(&n_asked_host) >= CHUNKS);
    zarr_memory_free(w->ctx, &mem);
    zarr_array_free(a);
}

static void test_all(void **state)
{
    static const zarr_status answers[] = {ZARR_ERR_UNSUPPORTED, ZARR_ERR_NO_MEMORY,
                                          ZARR_ERR_DEVICE};

    (void)state;
    for (int on_device = 0; on_device <= 1; on_device++)
        for (int m = 0; m < N_MODES; m++)
            for (size_t k = 0; k < ZR_COUNT(kinds) * ZR_COUNT(answers); k++) {
                struct pw w;

                open_world(&w, on_device);
                mode = (enum mode)m;
                answer = answers[k % ZR_COUNT(answers)];
                one_way(&w, (int)(k / ZR_COUNT(answers)), on_device);
                close_world(&w);
            }
}

/* A codec whose scratch memory no device has does nothing. */
static void test_no_scratch(void **state)
{
    const uint64_t sizes[2] = {ROWS, COLS};

    (void)state;
    for (size_t k = 0; k < ZR_COUNT(kinds); k++) {
        zarr_io_options o = ZARR_IO_OPTIONS_INIT;
        zarr_stats stats = ZARR_STATS_INIT;
        struct pw w;
        zarr_array *a;
        zarr_tensor t;
        zarr_memory mem;

        open_world(&w, true);
        o.stats = &stats;
        a = pw_array(w.store, "a", kinds[k].codecs, shape, kinds[k].chunk);
        assert_ok(zarr_memory_alloc(&mem, w.ctx, ZARR_DEVICE_EXT, 0, sizeof data, &terr));
        zarr_tensor_host(&t, NULL, mem.handle, sizeof data, 2, sizes);
        t.device_type = ZARR_DEVICE_EXT;
        assert_int_equal(zarr_fakedev_poke(mem.handle, 0, data, sizeof data), 0);
        scratch_bytes = UINT64_C(1) << 46;
        assert_ok(zarr_array_write(a, NULL, &t, &o, &terr));
        check_stats(&stats, CHUNKS * (uint64_t)kinds[k].hard);
        stats = (zarr_stats)ZARR_STATS_INIT;
        assert_int_equal(zarr_fakedev_poke(mem.handle, 0, got, sizeof got), 0);
        assert_ok(zarr_array_read(a, NULL, &t, &o, &terr));
        check_stats(&stats, CHUNKS * (uint64_t)kinds[k].hard);
        scratch_bytes = 0;
        assert_int_equal(zarr_fakedev_peek(mem.handle, 0, got, sizeof got), 0);
        assert_memory_equal(got, data, sizeof data);
        memset(got, 0, sizeof got);
        zarr_memory_free(w.ctx, &mem);
        zarr_array_free(a);
        close_world(&w);
    }
}

/* Chunks that accepts() refuses are not copied to the device. */
static void test_refused_early(void **state)
{
    const uint64_t sizes[2] = {ROWS, COLS};
    zarr_fakedev_counters before, after;
    struct pw w;
    zarr_array *a;
    zarr_tensor t;
    zarr_memory mem;

    (void)state;
    open_world(&w, true);
    a = pw_array(w.store, "a", kinds[2].codecs, shape, kinds[2].chunk);
    zarr_tensor_host(&t, NULL, data, sizeof data, 2, sizes);
    assert_ok(zarr_array_write(a, NULL, &t, NULL, &terr));
    assert_ok(zarr_memory_alloc(&mem, w.ctx, ZARR_DEVICE_EXT, 0, sizeof data, &terr));
    t.device_type = ZARR_DEVICE_EXT;
    t.data = mem.handle;
    mode = REFUSES;
    atomic_store(&n_asked_device, 0);
    zarr_fakedev_count(device, &before);
    assert_ok(zarr_array_read(a, NULL, &t, NULL, &terr));
    zarr_fakedev_count(device, &after);
    assert_int_equal(after.bytes_down, before.bytes_down);
    /* each chunk goes up once, encoded or decoded; holes of a range may go along */
    assert_in_range(after.bytes_up - before.bytes_up, sizeof data, 2 * sizeof data);
    zarr_memory_free(w.ctx, &mem);
    zarr_array_free(a);
    close_world(&w);
}

static void test_errors(void **state)
{
    const uint64_t sizes[2] = {ROWS, COLS};

    (void)state;
    for (int on_device = 0; on_device <= 1; on_device++)
        for (int m = IN_CALL; m < N_MODES; m++) {
            struct pw w;
            zarr_array *a;
            zarr_tensor t;
            zarr_memory mem;

            open_world(&w, on_device);
            a = pw_array(w.store, "a", kinds[0].codecs, shape, kinds[0].chunk);
            zarr_tensor_host(&t, NULL, data, sizeof data, 2, sizes);
            assert_ok(zarr_array_write(a, NULL, &t, NULL, &terr));
            assert_ok(zarr_memory_alloc(&mem, w.ctx,
                                        on_device ? ZARR_DEVICE_EXT : ZARR_DEVICE_CPU, 0,
                                        sizeof data, &terr));
            t.device_type = mem.device_type;
            t.data = mem.handle;
            mode = (enum mode)m;
            answer = ZARR_ERR_DEVICE;
            damage = data[0]; /* the first job is declined */
            assert_status(zarr_array_read(a, NULL, &t, NULL, &terr), ZARR_ERR_CORRUPT);
            assert_non_null(
                strstr(terr.message, "\"fast.picky\" did not take the chunk"));
            assert_non_null(strstr(terr.message, "damage"));
            assert_non_null(strstr(terr.message, "a/c/"));
            zarr_memory_free(w.ctx, &mem);
            zarr_array_free(a);
            close_world(&w);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all),
        cmocka_unit_test(test_no_scratch),
        cmocka_unit_test(test_refused_early),
        cmocka_unit_test(test_errors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
