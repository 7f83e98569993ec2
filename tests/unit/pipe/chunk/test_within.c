/*
 * unit/pipe/chunk/test_within.c - codecs whose decoded chunk is a part of the encoded
 * one: it stays there unless it belongs in another block, the store's value is not
 * changed, and what the codec says is checked.
 */
#include "unit/pipe/pipe_test.h"

enum {
    ROWS = 6,
    COLS = 9,
    HEAD = 3 /* bytes before the elements */
};
static const uint64_t shape[] = {ROWS, COLS}, chunk[] = {3, 4}; /* 2 x 2 whole chunks */
static int32_t data[ROWS][COLS], room[2 * ROWS * COLS];
static atomic_int n_within, n_blocks;
static enum mode {
    TAKE,
    FAIL,
    OUTSIDE,
    LONG,
    OTHER
} mode;

static uint8_t *at(const zarr_memory *m)
{
    return (uint8_t *)m->handle + m->offset;
}

static zarr_status resolve_head(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                                zarr_chunk_spec *out, void *fill_out, zarr_error *err)
{
    (void)spec;
    (void)fill_out;
    (void)err;
    out->n_bytes = in->n_bytes + HEAD;
    return ZARR_OK;
}

static zarr_status head_encode(void *self, zarr_codec_job *jobs, uint64_t n,
                               zarr_codec_exec *exec, zarr_error *err)
{
    (void)self;
    (void)exec;
    (void)err;
    for (uint64_t i = 0; i < n; i++) {
        memset(at(&jobs[i].dst), 0x5a, HEAD);
        memcpy(at(&jobs[i].dst) + HEAD, at(&jobs[i].src), jobs[i].src.bytes);
        jobs[i].dst_used = jobs[i].src.bytes + HEAD;
    }
    return ZARR_OK;
}

static zarr_status head_decode(void *self, zarr_codec_job *jobs, uint64_t n,
                               zarr_codec_exec *exec, zarr_error *err)
{
    (void)self;
    (void)exec;
    (void)err;
    for (uint64_t i = 0; i < n; i++) {
        jobs[i].dst_used = jobs[i].src.bytes - HEAD;
        memcpy(at(&jobs[i].dst), at(&jobs[i].src) + HEAD, jobs[i].dst_used);
        atomic_fetch_add(&n_blocks, 1);
    }
    return ZARR_OK;
}

static zarr_status head_within(void *self, zarr_codec_job *job, zarr_codec_exec *exec,
                               zarr_error *err)
{
    (void)self;
    (void)exec;
    (void)err;
    if (mode == FAIL)
        return ZARR_ERR_CORRUPT;
    job->dst = job->src;
    job->dst.offset += mode == OUTSIDE ? HEAD + 1 : HEAD;
    job->dst.bytes -= mode == LONG ? HEAD + 1 : HEAD;
    if (mode == OTHER)
        job->dst.handle = room;
    job->dst_used = job->dst.bytes;
    atomic_fetch_add(&n_within, 1);
    return ZARR_OK;
}

static void open_world(struct pw *w)
{
    const zarr_codec_spec_vtable spec = {.struct_size = sizeof spec,
                                         .name = "test.head",
                                         .kind = ZARR_CODEC_BYTES_BYTES,
                                         .resolve = resolve_head};
    const zarr_codec_impl_vtable v = {.struct_size = sizeof v,
                                      .caps = ZARR_CODEC_SAFE | ZARR_CODEC_CAN_DECODE |
                                              ZARR_CODEC_CAN_ENCODE,
                                      .codec = "test.head",
                                      .impl = "cpu.test",
                                      .in_kinds = ZARR_MEMORY_BIT(ZARR_DEVICE_CPU),
                                      .out_kinds = ZARR_MEMORY_BIT(ZARR_DEVICE_CPU),
                                      .encode = head_encode,
                                      .decode = head_decode,
                                      .within = head_within};

    pw_context(w, 2, UINT64_C(64) << 20, 0);
    assert_ok(zarr_context_register_codec_spec(w->ctx, &spec, "test", &terr));
    assert_ok(zarr_context_register_codec_impl(w->ctx, &v, "test", &terr));
    assert_ok(zarr_store_open(&w->store, w->ctx, "memory:", NULL, &terr));
    for (int i = 0; i < ROWS * COLS; i++)
        data[i / COLS][i % COLS] = 1000 + i;
}

static zarr_array *make_filled(const struct pw *w, const char *path, const char *codecs,
                               const uint64_t *outer)
{
    static const uint64_t size[] = {ROWS, COLS};
    const zarr_tensor t = pw_tensor(data, size, sizeof data);
    zarr_array *a = pw_array(w->store, path, codecs, shape, outer);

    assert_ok(zarr_array_write(a, NULL, &t, NULL, &terr));
    return a;
}

static zarr_status read_all(zarr_array *a, const char *pipeline)
{
    static const uint64_t size[] = {ROWS, COLS};
    static const int64_t strides[] = {INT64_C(8) * COLS, 4};
    const zarr_io_options opts = {.struct_size = sizeof opts,
                                  .tuning = TUNING(.pipeline = pipeline)};
    zarr_tensor t = pw_tensor(room, size, sizeof room);

    t.strides = strides;
    memset(room, 0x11, sizeof room);
    atomic_store(&n_within, 0);
    atomic_store(&n_blocks, 0);
    return zarr_array_read(a, NULL, &t, &opts, &terr);
}

static void check(void)
{
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLS; c++)
            assert_int_equal(room[r * 2 * COLS + c], data[r][c]);
}

#define TEST_HEAD "{\"name\":\"test.head\"}"

static void test_reads(void **state)
{
    static const struct {
        const char *path, *codecs;
        int n; /* calls of within() in a read of six chunks */
    } arrays[] = {
        {"a", "[" BYTES "," TEST_HEAD "]", 6},
        {"b", "[" TURN "," BYTES "," TEST_HEAD "," TEST_HEAD "]", 12},
        {"c", "[" BYTES "," GZIP "," TEST_HEAD "," CRC "]", 6},
        {"d", "[" BYTES "," TEST_HEAD "," GZIP "," CRC "]", 6},
        {"e", "[" SHARD("[3,4]", BYTES "," TEST_HEAD "," CRC, "end") "]", 6},
        {"f", "[" BIG "," CRC "," TEST_HEAD "]", 6},
    };
    static const uint64_t shard[] = {6, 12};
    struct pw w;

    (void)state;
    mode = TAKE;
    open_world(&w);
    for (size_t i = 0; i < ZR_COUNT(arrays); i++) {
        zarr_array *a =
            make_filled(&w, arrays[i].path, arrays[i].codecs,
                        strstr(arrays[i].codecs, "sharding_indexed") ? shard : chunk);

        for (int turn = 0; turn < 4; turn++) { /* twice each: values did not change */
            assert_ok(read_all(a, turn % 2 ? "serial" : NULL));
            check();
            assert_int_equal(atomic_load(&n_within), turn % 2 ? 0 : arrays[i].n);
            assert_int_equal(atomic_load(&n_blocks), turn % 2 ? arrays[i].n : 0);
        }
        zarr_array_free(a);
    }
    pw_close(&w);
}

/* A chunk that lies in the tensor as it is decoded is copied there by the codec. */
static void test_direct(void **state)
{
    static const uint64_t rows[] = {3, COLS};
    static const uint64_t size[] = {ROWS, COLS};
    const zarr_tensor t = pw_tensor(room, size, sizeof data);
    zarr_array *a;
    struct pw w;

    (void)state;
    mode = TAKE;
    open_world(&w);
    a = make_filled(&w, "a", "[" BYTES "," TEST_HEAD "]", rows);
    atomic_store(&n_within, 0);
    atomic_store(&n_blocks, 0);
    assert_ok(zarr_array_read(a, NULL, &t, NULL, &terr));
    assert_memory_equal(room, data, sizeof data);
    assert_int_equal(atomic_load(&n_within), 0);
    assert_int_equal(atomic_load(&n_blocks), 2);
    zarr_array_free(a);
    pw_close(&w);
}

static void test_answers(void **state)
{
    static const struct {
        enum mode mode;
        zarr_status st;
        const char *text;
    } answers[] = {{FAIL, ZARR_ERR_CORRUPT, "cpu.test"},
                   {OUTSIDE, ZARR_ERR_INTERNAL, "outside of the encoded one"},
                   {OTHER, ZARR_ERR_INTERNAL, "outside of the encoded one"},
                   {LONG, ZARR_ERR_CORRUPT, "47 bytes, expected 48"}};
    zarr_array *a;
    struct pw w;

    (void)state;
    mode = TAKE;
    open_world(&w);
    a = make_filled(&w, "a", "[" BYTES "," TEST_HEAD "]", chunk);
    for (size_t i = 0; i < ZR_COUNT(answers); i++) {
        mode = answers[i].mode;
        assert_status(read_all(a, NULL), answers[i].st);
        if (!strstr(terr.message, answers[i].text))
            fail_msg("%s", terr.message);
    }
    zarr_array_free(a);
    pw_close(&w);
}

#define ADLER "{\"name\":\"numcodecs.adler32\",\"configuration\":{}}"

/* Checksums before and after the elements, and what they find. */
static void test_sums(void **state)
{
    static const char *const codecs[] = {
        "[" BYTES "," CRC "]",
        "[" BYTES ",{\"name\":\"numcodecs.crc32\",\"configuration\":{}}]",
        "[" BYTES "," ADLER "," GZIP "]",
        /* decoders before and after a sum, and after two, need different blocks */
        "[" BYTES "," GZIP "," ADLER "," GZIP "]",
        "[" BYTES "," GZIP "," GZIP "," ADLER "," CRC "," GZIP "," ADLER "," GZIP "]"};
    static const char *const paths[] = {"a", "b", "c", "d", "e"};
    static const uint8_t bytes[] = {1, 2, 3};
    struct pw w;

    (void)state;
    open_world(&w);
    for (size_t i = 0; i < ZR_COUNT(codecs); i++) {
        zarr_array *a = make_filled(&w, paths[i], codecs[i], chunk);
        char key[] = "?/c/0/0";
        uint8_t value[256];
        uint64_t n = sizeof value;

        key[0] = paths[i][0];
        for (int turn = 0; turn < 2; turn++) {
            assert_ok(read_all(a, NULL));
            check();
        }
        assert_ok(zarr_store_get(w.store, key, 0, value, &n, NULL, &terr));
        value[n / 2] ^= 1;
        assert_ok(zarr_store_put(w.store, key, value, n, NULL, &terr));
        assert_status(read_all(a, NULL), ZARR_ERR_CORRUPT);
        assert_ok(zarr_store_put(w.store, key, value, n - 1, NULL, &terr));
        assert_status(read_all(a, NULL), ZARR_ERR_CORRUPT);
        assert_ok(zarr_store_put(w.store, key, bytes, sizeof bytes, NULL, &terr));
        assert_status(read_all(a, NULL), ZARR_ERR_CORRUPT);
        zarr_array_free(a);
    }
    pw_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads), cmocka_unit_test(test_direct),
        cmocka_unit_test(test_answers), cmocka_unit_test(test_sums)};

    return cmocka_run_group_tests_name("pipe_within", tests, NULL, NULL);
}
