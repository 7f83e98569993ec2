/*
 * unit/pipe/chunk/test_strided_decode.c - decoders that write with strides: whole chunks
 * are decoded directly into views of every layout; parts of chunks, and jobs that a
 * decoder refuses, take the general way; the decoder's answers are checked; and a chunk
 * counts as distrusted whichever of its codecs is.
 */
#include "unit/pipe/pipe_test.h"

enum {
    ROWS = 6,
    COLS = 9
};
static const uint64_t shape[] = {ROWS, COLS}, chunk[] = {3, 4}; /* 2 x 2 whole chunks */

static atomic_int n_strided, n_blocks;
static enum {
    TAKE,
    REFUSE,
    FAIL,
    SHORT
} mode;

static uint8_t *at(const zarr_memory *m)
{
    return (uint8_t *)m->handle + m->offset;
}

static zarr_status turn_each(void *self, zarr_codec_job *jobs, uint64_t n,
                             zarr_codec_exec *exec, zarr_error *err)
{
    (void)self;
    (void)exec;
    (void)err;
    for (uint64_t i = 0; i < n; i++) {
        for (uint64_t k = 0; k < jobs[i].src.bytes; k++)
            at(&jobs[i].dst)[k] = at(&jobs[i].src)[k] ^ 0x5a;
        jobs[i].dst_used = jobs[i].src.bytes;
        atomic_fetch_add(&n_blocks, 1);
    }
    return ZARR_OK;
}

static zarr_status turn_strided(void *self, zarr_codec_job *job,
                                const zarr_codec_strided *to, zarr_codec_exec *exec,
                                zarr_error *err)
{
    const uint8_t *src = at(&job->src);

    (void)self;
    (void)exec;
    (void)err;
    assert_int_equal(to->ndim, 2);
    assert_int_equal(to->item_bytes, 4);
    assert_int_equal(to->first.bytes, 4);
    assert_int_equal(to->shape[0] * to->shape[1], 12);
    assert_null(job->dst.handle);
    if (mode == REFUSE)
        return ZARR_ERR_UNSUPPORTED;
    if (mode == FAIL)
        return ZARR_ERR_CORRUPT;
    for (uint64_t r = 0; r < to->shape[0]; r++)
        for (uint64_t c = 0; c < to->shape[1]; c++)
            for (int b = 0; b < 4; b++)
                at(&to->first)[(int64_t)r * to->stride[0] + (int64_t)c * to->stride[1] +
                               b] = *src++ ^ 0x5a;
    job->dst_used = mode == SHORT ? 44 : 48;
    atomic_fetch_add(&n_strided, 1);
    return ZARR_OK;
}

#define CPU ZARR_MEMORY_BIT(ZARR_DEVICE_CPU)

/* "cpu.rash", which does not check its input, and "cpu.calm". */
static void add_rash(const struct pw *w)
{
    const zarr_codec_spec_vtable spec = {.struct_size = sizeof spec,
                                         .name = "test.rash",
                                         .kind = ZARR_CODEC_BYTES_BYTES,
                                         .resolve = pw_resolve_same};
    zarr_codec_impl_vtable v = {.struct_size = sizeof v,
                                .caps = ZARR_CODEC_CAN_DECODE | ZARR_CODEC_CAN_ENCODE,
                                .codec = "test.rash",
                                .impl = "cpu.rash",
                                .in_kinds = CPU,
                                .out_kinds = CPU,
                                .priority = 10,
                                .encode = turn_each,
                                .decode = turn_each};

    assert_ok(zarr_context_register_codec_spec(w->ctx, &spec, "test", &terr));
    assert_ok(zarr_context_register_codec_impl(w->ctx, &v, "test", &terr));
    v.caps |= ZARR_CODEC_SAFE;
    v.impl = "cpu.calm";
    v.priority = 0;
    assert_ok(zarr_context_register_codec_impl(w->ctx, &v, "test", &terr));
}

static void open_world(struct pw *w)
{
    const zarr_codec_spec_vtable spec = {.struct_size = sizeof spec,
                                         .name = "test.turn",
                                         .kind = ZARR_CODEC_BYTES_BYTES,
                                         .resolve = pw_resolve_same};
    const zarr_codec_impl_vtable v = {.struct_size = sizeof v,
                                      .caps = ZARR_CODEC_SAFE | ZARR_CODEC_CAN_DECODE |
                                              ZARR_CODEC_CAN_ENCODE,
                                      .codec = "test.turn",
                                      .impl = "cpu.test",
                                      .in_kinds = CPU,
                                      .out_kinds = CPU,
                                      .encode = turn_each,
                                      .decode = turn_each,
                                      .strided = turn_strided};

    pw_context(w, 2, UINT64_C(64) << 20, 0);
    assert_ok(zarr_context_register_codec_spec(w->ctx, &spec, "test", &terr));
    assert_ok(zarr_context_register_codec_impl(w->ctx, &v, "test", &terr));
    add_rash(w);
    assert_ok(zarr_store_open(&w->store, w->ctx, "memory:", NULL, &terr));
}

static int32_t data[ROWS][COLS], room[4 * ROWS * COLS];

/* Reads into `room` with the first element at `first` and strides in elements. */
static zarr_status read_to(zarr_array *a, int64_t first, int64_t row, int64_t col,
                           const zarr_io_options *opts)
{
    static const uint64_t size[] = {ROWS, COLS};
    const int64_t strides[] = {row * 4, col * 4};
    zarr_tensor t = pw_tensor(room, size, sizeof room);

    t.strides = strides;
    t.byte_offset = (uint64_t)first * 4;
    memset(room, 0x11, sizeof room);
    atomic_store(&n_strided, 0);
    atomic_store(&n_blocks, 0);
    return zarr_array_read(a, NULL, &t, opts, &terr);
}

static void check(int64_t first, int64_t row, int64_t col)
{
    for (int64_t r = 0; r < ROWS; r++)
        for (int64_t c = 0; c < COLS; c++)
            assert_int_equal(room[first + r * row + c * col], data[r][c]);
}

static void test_layouts(void **state)
{
    static const struct {
        int64_t first, row, col;
    } views[] = {{0, COLS, 1},
                 {0, 1, ROWS},
                 {3, INT64_C(2) * COLS, 2},
                 {INT64_C(1) * ROWS * COLS - 1, -COLS, -1},
                 {COLS - 1, COLS, -1},
                 {INT64_C(3) * (ROWS - 1) * COLS, INT64_C(-3) * COLS, 3}};
    static const char *const codecs[] = {
        "[" BYTES ",{\"name\":\"test.turn\"}]",
        "[" TURN "," BYTES ",{\"name\":\"test.turn\"}]",
        "[" BYTES ",{\"name\":\"test.turn\"}," GZIP "," CRC "]",
        "[" SHARD("[3,4]", BYTES ",{\"name\":\"test.turn\"}", "end") "]"};
    struct pw w;
    const uint64_t shard[] = {6, 12};

    (void)state;
    open_world(&w);
    for (int i = 0; i < ROWS * COLS; i++)
        data[i / COLS][i % COLS] = 1000 + i;
    for (size_t k = 0; k < 4; k++) {
        static const char *const paths[] = {"a", "b", "c", "d"};
        zarr_array *a =
            pw_array(w.store, paths[k], codecs[k], shape, k == 3 ? shard : chunk);
        zarr_stats stats = ZARR_STATS_INIT;
        zarr_io_options opts = {.struct_size = sizeof opts, .stats = &stats};
        static const uint64_t size[] = {ROWS, COLS};
        const zarr_tensor t = pw_tensor(data, size, sizeof data);

        assert_ok(zarr_array_write(a, NULL, &t, NULL, &terr));
        for (size_t v = 0; v < ZR_COUNT(views); v++) {
            mode = TAKE;
            assert_ok(read_to(a, views[v].first, views[v].row, views[v].col, &opts));
            check(views[v].first, views[v].row, views[v].col);
            assert_int_equal(atomic_load(&n_strided), 4);
            /* At the edge: parts of chunks. */
            assert_int_equal(atomic_load(&n_blocks), 2);
            assert_int_equal(stats.chunks_direct, 4);
            mode = REFUSE;
            assert_ok(read_to(a, views[v].first, views[v].row, views[v].col, &opts));
            check(views[v].first, views[v].row, views[v].col);
            assert_int_equal(atomic_load(&n_blocks), 6);
            assert_int_equal(stats.chunks_direct, 0);
        }
        mode = TAKE;
        opts.tuning = TUNING(.pipeline = "serial"); /* without short cuts */
        assert_ok(read_to(a, 0, COLS, 1, &opts));
        check(0, COLS, 1);
        assert_int_equal(atomic_load(&n_strided), 0);
        mode = FAIL;
        assert_status(read_to(a, 0, COLS, 1, NULL), ZARR_ERR_CORRUPT);
        mode = SHORT;
        assert_status(read_to(a, 0, COLS, 1, NULL), ZARR_ERR_CORRUPT);
        assert_non_null(strstr(terr.message, "44 bytes, expected 48"));
        zarr_array_free(a);
    }
    pw_close(&w);
}

/* Elements in another byte order than the view's are swapped on the way, through a
 * block. */
static void test_other_order(void **state)
{
    struct pw w;
    zarr_array *a;
    static const uint64_t size[] = {ROWS, COLS};
    const zarr_tensor t = pw_tensor(data, size, sizeof data);

    (void)state;
    mode = TAKE;
    open_world(&w);
    a = pw_array(w.store, "a", "[" BIG ",{\"name\":\"test.turn\"}]", shape, chunk);
    assert_ok(zarr_array_write(a, NULL, &t, NULL, &terr));
    assert_ok(read_to(a, 0, COLS, 1, NULL));
    check(0, COLS, 1);
    assert_int_equal(atomic_load(&n_strided), 0);
    zarr_array_free(a);
    pw_close(&w);
}

/* The decoder with strides is trusted, and the one before it is not. */
static void test_distrusted(void **state)
{
    zarr_stats stats = ZARR_STATS_INIT;
    zarr_io_options opts = {.struct_size = sizeof opts, .stats = &stats};
    static const uint64_t size[] = {ROWS, COLS};
    const zarr_tensor t = pw_tensor(data, size, sizeof data);
    zarr_array *a;
    struct pw w;

    (void)state;
    mode = TAKE;
    open_world(&w);
    a = pw_array(w.store, "a",
                 "[" BYTES ",{\"name\":\"test.turn\"},{\"name\":\"test.rash\"}]", shape,
                 chunk);
    assert_ok(zarr_array_write(a, NULL, &t, NULL, &terr));
    assert_ok(read_to(a, 0, COLS, 1, &opts));
    check(0, COLS, 1);
    assert_int_equal(atomic_load(&n_strided), 4);
    assert_int_equal(stats.chunks_distrusted, 6);
    opts.trust = ZARR_TRUST_FULL;
    stats = (zarr_stats)ZARR_STATS_INIT;
    assert_ok(read_to(a, 0, COLS, 1, &opts));
    assert_int_equal(stats.chunks_distrusted, 0);
    zarr_array_free(a);
    pw_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layouts),
        cmocka_unit_test(test_other_order),
        cmocka_unit_test(test_distrusted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
