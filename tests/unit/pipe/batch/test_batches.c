/*
 * unit/pipe/batch/test_batches.c - writing with a codec that encodes batches. Outer
 * chunks, and inner chunks of shards, come in one call; the stored objects equal those of
 * `serial`, which encodes chunk by chunk; and errors name the chunk that failed.
 */
#include "unit/pipe/pipe_test.h"

enum {
    ROWS = 14,
    COLS = 18,
    N = ROWS * COLS,
    N_CHUNKS = 4 * 5,
};
static const uint64_t shape[2] = {ROWS, COLS}, chunk[2] = {4, 4}, zero[2] = {0, 0};
static int32_t data[N], got[N];

/* ---- the codec: adds one to each byte, and appends one byte as a mark ---- */

static atomic_int n_calls, n_jobs, most;
static int fails_at = -1; /* fails the job that begins with this element */

static uint8_t *block_bytes(const zarr_memory *m)
{
    return (uint8_t *)m->handle + m->offset;
}

static zarr_status resolve(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                           zarr_chunk_spec *out, void *fill_out, zarr_error *err)
{
    (void)spec;
    (void)fill_out;
    (void)err;
    out->n_bytes = in->n_bytes + 1;
    out->exact = in->exact;
    return ZARR_OK;
}

static zarr_status encode_one(zarr_codec_job *job, zarr_error *err)
{
    int32_t first = 0;

    memcpy(&first, block_bytes(&job->src),
           ZR_MIN(job->src.bytes, (uint64_t)sizeof first));
    if (fails_at >= 0 && first == fails_at)
        return zr_fail(err, ZARR_ERR_INVALID, "test.plus: element %d", (int)first);
    for (uint64_t i = 0; i < job->src.bytes; i++)
        block_bytes(&job->dst)[i] = (uint8_t)(block_bytes(&job->src)[i] + 1);
    block_bytes(&job->dst)[job->src.bytes] = '+';
    job->dst_used = job->src.bytes + 1;
    return ZARR_OK;
}

static zarr_status encode(void *self, zarr_codec_job *jobs, uint64_t n,
                          zarr_codec_exec *exec, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    (void)self;
    if (exec->scratch.bytes < 100 * n)
        return zr_internal(err);
    exec->down_copies++;
    exec->down_bytes += n;
    atomic_fetch_add(&n_calls, 1);
    atomic_fetch_add(&n_jobs, (int)n);
    if (atomic_load(&most) < (int)n)
        atomic_store(&most, (int)n);
    /* The failure with the lowest index is reported. */
    for (uint64_t i = 0; i < n; i++) {
        jobs[i].status = encode_one(&jobs[i], st == ZARR_OK ? err : NULL);
        st = st == ZARR_OK ? jobs[i].status : st;
    }
    return st;
}

static zarr_status decode(void *self, zarr_codec_job *jobs, uint64_t n,
                          zarr_codec_exec *exec, zarr_error *err)
{
    (void)self;
    for (uint64_t i = 0; i < n; i++) {
        zarr_codec_job *job = &jobs[i];
        const uint64_t bytes = job->src.bytes - 1;

        exec->up_copies++; /* as if it had a device of its own */
        exec->up_bytes += job->src.bytes;

        if (job->src.bytes == 0 || bytes > job->dst.bytes ||
            block_bytes(&job->src)[bytes] != '+')
            return job->status = zr_fail(err, ZARR_ERR_CORRUPT, "test.plus: no plus");
        for (uint64_t k = 0; k < bytes; k++)
            block_bytes(&job->dst)[k] = (uint8_t)(block_bytes(&job->src)[k] - 1);
        job->dst_used = bytes;
    }
    return ZARR_OK;
}

static uint64_t scratch(void *self, uint64_t n, uint64_t max_out)
{
    (void)self;
    (void)max_out;
    return 100 * n;
}

static void open_world(struct pw *w, uint32_t threads)
{
    const uint32_t cpu = ZARR_MEMORY_BIT(ZARR_DEVICE_CPU);
    const zarr_codec_spec_vtable spec = {.struct_size = sizeof spec,
                                         .name = "test.plus",
                                         .kind = ZARR_CODEC_BYTES_BYTES,
                                         .resolve = resolve};
    const zarr_codec_impl_vtable way = {.struct_size = sizeof way,
                                        .caps = ZARR_CODEC_SAFE | ZARR_CODEC_CAN_DECODE |
                                                ZARR_CODEC_CAN_ENCODE | ZARR_CODEC_BATCH,
                                        .codec = "test.plus",
                                        .impl = "cpu.batch",
                                        .in_kinds = cpu,
                                        .out_kinds = cpu,
                                        .scratch = scratch,
                                        .encode = encode,
                                        .decode = decode};

    pw_context(w, threads, UINT64_C(64) << 20, 0);
    assert_ok(zarr_context_register_codec_spec(w->ctx, &spec, "test", &terr));
    assert_ok(zarr_context_register_codec_impl(w->ctx, &way, "test", &terr));
    assert_ok(zarr_store_open(&w->store, w->ctx, "memory:", NULL, &terr));
    fails_at = -1;
    for (int i = 0; i < N; i++)
        data[i] = 1000 + i;
}

static void count_anew(void)
{
    atomic_store(&n_calls, 0);
    atomic_store(&n_jobs, 0);
    atomic_store(&most, 0);
}

/* ---- the same objects as chunk by chunk ---------------------------------- */

#define PLUS "{\"name\":\"test.plus\"}"
#define IN   "[2,2]"
static const char *const codecs[] = {
    "[" BYTES "," PLUS "]",
    "[" BIG "," PLUS "," PLUS "]",
    "[" TURN "," BYTES "," GZIP "," PLUS "," CRC "]",
    "[" BYTES "," PLUS "," GZIP "]",
    "[" SHARD(IN, BYTES "," PLUS, "end") "]", /* shards from this row on */
    "[" SHARD(IN, BIG "," PLUS "," CRC, "start") "," CRC "]",
    "[" SHARD(IN, BYTES "," PLUS, "end") "," PLUS "]",
    "[" SHARD(IN, SHARD("[1,2]", BYTES "," PLUS, "end") "," PLUS, "end") "]",
};
enum {
    FIRST_SHARD = 4
};

/* The length of an object, and its bytes; -1: not found. */
static int object(const struct pw *w, const char *array, int row, int col, uint8_t *bytes,
                  uint64_t room)
{
    uint64_t n = room;
    char key[64];
    zarr_status st;

    snprintf(key, sizeof key, "%s/c/%d/%d", array, row, col);
    st = zarr_store_get(w->store, key, 0, bytes, &n, NULL, &terr);
    if (st == ZARR_ERR_NOT_FOUND)
        return -1;
    assert_ok(st);
    return (int)n;
}

static void same_objects(const struct pw *w, const char *what)
{
    static uint8_t a[4096], b[4096];

    for (int i = 0; i < N_CHUNKS; i++) {
        const int n = object(w, "waves", i / 5, i % 5, a, sizeof a);
        const int m = object(w, "serial", i / 5, i % 5, b, sizeof b);

        if (n != m || (n > 0 && memcmp(a, b, (size_t)n) != 0))
            fail_msg("%s: chunk %d, %d: %d bytes, where serial has %d", what, i / 5,
                     i % 5, n, m);
    }
}

/* Writes all elements, on request from memory in Fortran order. */
static void write_all(zarr_array *a, const char *pipeline, bool fortran,
                      zarr_stats *stats)
{
    static int32_t turned[N];
    const uint64_t size[2] = {ROWS, COLS};
    const int64_t stride[2] = {4, 4 * (int64_t)ROWS};
    const zarr_io_options opts = {.struct_size = sizeof opts,
                                  .stats = stats,
                                  .tuning = TUNING(.pipeline = pipeline)};
    zarr_tensor t = pw_tensor(data, size, sizeof data);

    for (int i = 0; i < N && fortran; i++)
        turned[i % COLS * ROWS + i / COLS] = data[i];
    if (fortran) {
        t.data = turned;
        t.strides = stride;
    }
    *stats = (zarr_stats)ZARR_STATS_INIT;
    assert_ok(zarr_array_write(a, NULL, &t, &opts, &terr));
}

static void write_both(struct pw *w, zarr_array *const *a, bool fortran, const char *what)
{
    zarr_stats together = ZARR_STATS_INIT, alone = ZARR_STATS_INIT;

    count_anew();
    write_all(a[0], NULL, fortran, &together);
    if (atomic_load(&most) < 2)
        fail_msg("%s: no batches", what);
    write_all(a[1], "serial", fortran, &alone);
    assert_int_equal(together.chunks_done, alone.chunks_done);
    assert_int_equal(together.chunks_missing, alone.chunks_missing);
    assert_int_equal(together.elements, alone.elements);
    assert_int_equal(together.bytes_decoded, alone.bytes_decoded);
    assert_int_equal(together.bytes_stored, alone.bytes_stored);
    same_objects(w, what);
    assert_ok(pw_box(a[0], zero, shape, got, NULL, false));
    assert_memory_equal(got, data, sizeof data);
}

static void write_part(struct pw *w, zarr_array *const *a, const char *what)
{
    static const uint64_t at[2] = {1, 2}, n[2] = {9, 13};
    static int32_t part[9 * 13];
    const zarr_io_options serial = {.struct_size = sizeof serial,
                                    .tuning = TUNING(.pipeline = "serial")};

    for (int i = 0; i < 9 * 13; i++)
        part[i] = data[(i / 13 + 1) * COLS + i % 13 + 2] = -2000 - i;
    assert_ok(pw_box(a[0], at, n, part, NULL, true));
    assert_ok(pw_box(a[1], at, n, part, &serial, true));
    same_objects(w, what);
    assert_ok(pw_box(a[0], zero, shape, got, NULL, false));
    assert_memory_equal(got, data, sizeof data);
}

static void all_writes(uint32_t threads, const char *chain)
{
    struct pw w;
    zarr_array *a[2];

    open_world(&w, threads);
    a[0] = pw_array(w.store, "waves", chain, shape, chunk);
    a[1] = pw_array(w.store, "serial", chain, shape, chunk);
    write_both(&w, a, false, chain);
    /* Chunk (1, 1) and some inner chunks of (2, 2) contain only the fill value. */
    for (int i = 0; i < 16; i++)
        data[(4 + i / 4) * COLS + 4 + i % 4] = data[(8 + i / 8) * COLS + 8 + i % 8] = -1;
    write_both(&w, a, true, chain);
    write_part(&w, a, chain);
    zarr_array_free(a[0]);
    zarr_array_free(a[1]);
    pw_close(&w);
}

static void test_same_objects(void **state)
{
    (void)state;
    for (size_t i = 0; i < ZR_COUNT(codecs); i++)
        for (uint32_t threads = 1; threads <= 3; threads += 2)
            all_writes(threads, codecs[i]);
}

/* One call gets all chunks that are stored, those written in part, or at the edge of the
 * array, with them. Chunks of the fill value are not encoded. */
static void test_batches(void **state)
{
    /* Chunk 0 in part, chunks 1 and 2 whole. */
    static const uint64_t at[2] = {0, 3}, n[2] = {4, 9};
    struct pw w;
    zarr_array *a;

    (void)state;
    open_world(&w, 2);
    a = pw_array(w.store, "a", codecs[0], shape, chunk);
    for (int i = 0; i < 16; i++)
        data[i / 4 * COLS + i % 4] = -1;
    count_anew();
    assert_ok(pw_box(a, zero, shape, data, NULL, true));
    assert_int_equal(atomic_load(&n_calls), 1);
    assert_int_equal(atomic_load(&n_jobs), N_CHUNKS - 1);
    count_anew();
    assert_ok(pw_box(a, at, n, data, NULL, true));
    assert_int_equal(atomic_load(&n_calls), 1);
    assert_int_equal(atomic_load(&n_jobs), 3);
    zarr_array_free(a);
    a = pw_array(w.store, "b", codecs[FIRST_SHARD], shape, chunk);
    count_anew();
    assert_ok(pw_box(a, (const uint64_t[]){4, 4}, chunk, data + 100, NULL, true));
    assert_int_equal(atomic_load(&n_calls), 1);
    assert_int_equal(atomic_load(&n_jobs), 4);
    zarr_array_free(a);
    pw_close(&w);
}

/* What the codec copied itself is in the counters, whether chunks come together or one by
 * one. */
static void test_own_copies(void **state)
{
    static const char *const pipelines[] = {"waves", "serial"};
    struct pw w;

    (void)state;
    open_world(&w, 2);
    for (int i = 0; i < 2; i++) {
        const uint64_t size[2] = {ROWS, COLS};
        const zarr_tensor t = pw_tensor(got, size, sizeof got);
        zarr_array *a = pw_array(w.store, pipelines[i], codecs[0], shape, chunk);
        zarr_stats stats = ZARR_STATS_INIT;
        const zarr_io_options opts = {.struct_size = sizeof opts,
                                      .stats = &stats,
                                      .tuning = TUNING(.pipeline = pipelines[i])};

        write_all(a, pipelines[i], false, &stats);
        assert_int_equal(stats.copies_down, i == 0 ? 1 : N_CHUNKS);
        assert_int_equal(stats.bytes_down, N_CHUNKS);
        stats = (zarr_stats)ZARR_STATS_INIT;
        assert_ok(zarr_array_read(a, NULL, &t, &opts, &terr));
        assert_int_equal(stats.copies_up, N_CHUNKS);
        assert_int_equal(stats.bytes_up, N_CHUNKS * (4 * 4 * 4 + 1));
        zarr_array_free(a);
    }
    pw_close(&w);
}

/* ---- failures ------------------------------------------------------------ */

static void fail_one_chunk(uint32_t threads, const char *chain)
{
    struct pw w;
    zarr_array *a;

    open_world(&w, threads);
    a = pw_array(w.store, "a", chain, shape, chunk);
    fails_at = data[4 * COLS + 8]; /* the first element of chunk (1, 2) */
    assert_status(pw_box(a, zero, shape, data, NULL, true), ZARR_ERR_INVALID);
    if (!strstr(terr.message, "a/c/1/2: ") ||
        !strstr(terr.message, "test.plus: element 1080"))
        fail_msg("%s", terr.message);
    fails_at = -1;
    assert_ok(pw_box(a, zero, shape, data, NULL, true));
    assert_ok(pw_box(a, zero, shape, got, NULL, false));
    assert_memory_equal(got, data, sizeof data);
    zarr_array_free(a);
    pw_close(&w);
}

static void test_failing_job(void **state)
{
    (void)state;
    for (uint32_t threads = 1; threads <= 3; threads += 2) {
        fail_one_chunk(threads, codecs[0]);
        fail_one_chunk(threads, codecs[3]);
        fail_one_chunk(threads, codecs[FIRST_SHARD]);
    }
}

/* Each allocation fails in turn: the call returns an error, leaks nothing, and the next
 * write succeeds. */
static void test_no_memory(void **state)
{
    static const size_t chains[] = {2, FIRST_SHARD};
    int failed = 0;

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(chains); i++)
        for (int at = 1, more = 1; more; at++) {
            struct pw w;
            zarr_array *a;
            zarr_status st;

            open_world(&w, 1 + 2 * (uint32_t)(at % 2));
            a = pw_array(w.store, "a", codecs[chains[i]], shape, chunk);
            atomic_store(&w.fail_in, at);
            st = pw_box(a, zero, shape, data, NULL, true);
            more = atomic_load(&w.fail_in) <= 0;
            atomic_store(&w.fail_in, 0);
            if (st != ZARR_OK)
                assert_int_equal(st, ZARR_ERR_NO_MEMORY);
            failed += st != ZARR_OK;
            assert_ok(pw_box(a, zero, shape, data, NULL, true));
            assert_ok(pw_box(a, zero, shape, got, NULL, false));
            assert_memory_equal(got, data, sizeof data);
            zarr_array_free(a);
            pw_close(&w);
        }
    assert_true(failed > 20);
}

/* ---- other arrays -------------------------------------------------------- */

/* Unused bits are not stored: elements that have some set are copied first. */
static void test_padded(void **state)
{
    const zarr_array_spec spec = {.struct_size = sizeof spec,
                                  .ndim = 2,
                                  .shape = shape,
                                  .chunk_shape = (const uint64_t[]){2, COLS},
                                  .data_type = "bool",
                                  .codecs = "[{\"name\":\"bytes\"}," PLUS "]"};
    const uint64_t size[2] = {ROWS, COLS};
    static uint8_t odd[N], stored[2 * COLS + 1];
    const zarr_tensor t = pw_tensor(odd, size, sizeof odd);
    struct pw w;
    zarr_array *a = NULL;

    (void)state;
    open_world(&w, 2);
    assert_ok(zarr_array_create(&a, w.store, "a", &spec, NULL, &terr));
    for (int i = 0; i < N; i++)
        odd[i] = (uint8_t)(i % 3 * 100);
    count_anew();
    assert_ok(zarr_array_write(a, NULL, &t, NULL, &terr));
    assert_int_equal(atomic_load(&n_calls), 1);
    for (int row = 0; row < ROWS / 2; row++) {
        assert_int_equal(object(&w, "a", row, 0, stored, sizeof stored), sizeof stored);
        for (int i = 0; i < 2 * COLS; i++)
            assert_int_equal(stored[i], 1 + (odd[row * 2 * COLS + i] != 0));
    }
    for (int i = 0; i < N; i++)
        assert_int_equal(odd[i], i % 3 * 100); /* the caller's elements are not changed */
    zarr_array_free(a);
    pw_close(&w);
}

/* Chunks of different shapes: each batch has chunks of one shape. */
static void test_edges(void **state)
{
    const zarr_array_spec spec = {
        .struct_size = sizeof spec,
        .ndim = 2,
        .shape = shape,
        .data_type = "int32",
        .fill_value = "-1",
        .chunk_grid = "{\"name\":\"rectilinear\",\"configuration\":{\"kind\":\"inline\","
                      "\"chunk_shapes\":[[4,4,6],[6,6,6]]}}",
        .codecs = codecs[0]};
    struct pw w;
    zarr_array *a = NULL;

    (void)state;
    open_world(&w, 2);
    assert_ok(zarr_array_create(&a, w.store, "a", &spec, NULL, &terr));
    count_anew();
    assert_ok(pw_box(a, zero, shape, data, NULL, true));
    assert_int_equal(atomic_load(&n_calls), 2);
    assert_int_equal(atomic_load(&n_jobs), 9);
    assert_int_equal(atomic_load(&most), 6);
    assert_ok(pw_box(a, zero, shape, got, NULL, false));
    assert_memory_equal(got, data, sizeof data);
    zarr_array_free(a);
    pw_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_objects), cmocka_unit_test(test_batches),
        cmocka_unit_test(test_own_copies),   cmocka_unit_test(test_failing_job),
        cmocka_unit_test(test_no_memory),    cmocka_unit_test(test_padded),
        cmocka_unit_test(test_edges),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
