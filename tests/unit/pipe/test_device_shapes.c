/*
 * unit/pipe/test_device_shapes.c - reads and writes of a device where the chunks of a
 * grid differ in shape. Each shape has a program of its own, but a wave has one wait for
 * all, and a batch of units as many as with one shape. Each call that fails ends the
 * request, damage names its chunk, and what is declined is done alone.
 */
#include "device_test.h"

static const char grid[] = "{\"name\":\"rectilinear\",\"configuration\":{"
                           "\"kind\":\"inline\",\"chunk_shapes\":"
                           "[[10,20,10,30,30],[5,15,20]]}}";
static const uint64_t rows[] = {10, 20, 10, 30, 30}, columns[] = {5, 15, 20};
enum {
    SHAPES = 9,
    CHUNKS = 15 /* one or two of each shape */
};

#define WIDE "{\"name\":\"test.wide\"}"
static const struct chain {
    const char *codecs;
    int codec_calls;     /* of a wave, for each shape */
    int waits_unchecked; /* a codec that does not check its input waits for one before it
                          */
} chains[] = {
    {"[" BYTES "]", 0, 1},
    {"[" BIG "," GZIP "]", 0, 1},
    {"[" TURN "," BIG "," GZIP "]", 0, 1},
    {"[" BYTES "," LATE "]", 1, 1},
    {"[" TURN "," BIG "," LATE "]", 1, 1},
    {"[" BYTES "," LATE "," CRC "]", 1, 1},
    {"[" BYTES "," LATE "," LATE "]", 2, 2},
    {"[" BYTES "," LATE "," GZIP "," LATE "]", 1, 1},
};

static int32_t got[N];

static zarr_array *array_of_shapes(const struct pw *w, const char *path,
                                   const char *codecs)
{
    const zarr_array_spec spec = {.struct_size = sizeof spec,
                                  .ndim = 2,
                                  .shape = shape,
                                  .data_type = "int32",
                                  .fill_value = "-1",
                                  .chunk_grid = grid,
                                  .codecs = codecs};
    zarr_array *a = NULL;
    zarr_tensor t;

    assert_ok(zarr_array_create(&a, w->store, path, &spec, NULL, &terr));
    zarr_tensor_host(&t, data, sizeof data, 2, sizes);
    assert_ok(zarr_array_write(a, NULL, &t, NULL, &terr));
    return a;
}

/* Reads a selection to the device, and the same to the host. */
static void compare(const struct pw *w, zarr_array *a, const char *text)
{
    static int32_t want[N];
    zarr_selection *sel = NULL;
    int64_t lengths[2];
    zarr_tensor t, host;
    uint64_t bytes;
    zarr_mem mem;

    assert_ok(zarr_selection_parse(&sel, 2, shape, text, &terr));
    for (int d = 0; d < 2; d++)
        lengths[d] = (int64_t)zarr_selection_shape(sel)[d];
    bytes = zarr_selection_n_items(sel) * sizeof data[0];
    mem = tensor_new(w, &t, lengths);
    assert_ok(zarr_array_read(a, sel, &t, NULL, &terr));
    assert_int_equal(zarr_fakedev_peek(mem.handle, 0, got, bytes), 0);
    zarr_tensor_host(&host, want, sizeof want, 2, lengths);
    assert_ok(zarr_array_read(a, sel, &host, NULL, &terr));
    assert_memory_equal(got, want, bytes);
    zarr_selection_free(sel);
    zarr_mem_free(w->ctx, &mem);
}

static void test_values(void **state)
{
    (void)state;
    for (uint32_t threads = 1; threads <= 4; threads += 3)
        for (uint64_t wave = 1024; wave <= (1 << 20); wave *= 1024)
            for (size_t c = 0; c < ZR_COUNT(chains); c++) {
                zarr_array *a;
                struct pw w;

                open_world(&w, threads, wave);
                a = array_of_shapes(&w, "a", chains[c].codecs);
                compare(&w, a, "...");
                compare(&w, a, "3:90, 5:37");
                compare(&w, a, "::7, 1::3");
                assert_ok(zarr_array_chunk_erase(a, (uint64_t[2]){1, 0}, &terr));
                compare(&w, a, "...");
                zarr_array_free(a);
                close_world(&w);
            }
}

/* However many shapes a wave has, and whether or not the device's codec checks its
 * input. */
static void test_calls(void **state)
{
    (void)state;
    context_trust = ZARR_TRUST_FULL;
    for (size_t i = 0; i < 2 * ZR_COUNT(chains); i++) {
        const struct chain *c = &chains[i / 2];
        zarr_io_options opts = ZARR_IO_OPTIONS_INIT;
        struct counts n;
        zarr_array *a;
        zarr_tensor t;
        zarr_mem mem;
        struct pw w;

        unchecked = i % 2;
        open_world(&w, 2, 1 << 20);
        a = array_of_shapes(&w, "a", c->codecs);
        assert_ok(zarr_array_chunk_erase(a, (uint64_t[2]){1, 0}, &terr));
        mem = tensor_new(&w, &t, sizes);
        count_begin(&n, &opts);
        assert_ok(zarr_array_read(a, NULL, &t, &opts, &terr));
        count_end(&n);
        assert_int_equal(n.stats.waves, 1);
        assert_int_equal(n.late.syncs, i % 2 ? c->waits_unchecked : 1);
        assert_int_equal(n.late.lists, 3); /* copies, boxes and fills */
        assert_int_equal(atomic_load(&n_late.calls), (SHAPES - 1) * c->codec_calls);
        assert_int_equal(atomic_load(&n_late.jobs), (CHUNKS - 1) * c->codec_calls);
        assert_int_equal(atomic_load(&n_late.at_once), 0);
        zarr_mem_free(w.ctx, &mem);
        zarr_array_free(a);
        close_world(&w);
    }
    unchecked = false;
    context_trust = 0;
}

/* ---- writes ------------------------------------------------------------------------ */

/* Writes a selection of `data` from the device. */
static zarr_status write_some(const struct pw *w, zarr_array *a, const char *text,
                              zarr_io_options *opts)
{
    zarr_selection *sel = NULL;
    int64_t lengths[2];
    zarr_tensor t;
    zarr_status st;
    zarr_mem mem;

    assert_ok(zarr_selection_parse(&sel, 2, shape, text, &terr));
    for (int d = 0; d < 2; d++)
        lengths[d] = (int64_t)zarr_selection_shape(sel)[d];
    mem = tensor_new(w, &t, lengths);
    assert_int_equal(zarr_fakedev_poke(mem.handle, 0, data, sizeof data), 0);
    st = zarr_array_write(a, sel, &t, opts, &terr);
    zarr_selection_free(sel);
    zarr_mem_free(w->ctx, &mem);
    return st;
}

static void write_same(const struct pw *w, zarr_array *a, zarr_array *h, const char *text)
{
    zarr_selection *sel = NULL;
    int64_t lengths[2];
    zarr_tensor host;

    assert_ok(write_some(w, a, text, NULL));
    assert_ok(zarr_selection_parse(&sel, 2, shape, text, &terr));
    for (int d = 0; d < 2; d++)
        lengths[d] = (int64_t)zarr_selection_shape(sel)[d];
    zarr_tensor_host(&host, data, sizeof data, 2, lengths);
    assert_ok(zarr_array_write(h, sel, &host, NULL, &terr));
    zarr_selection_free(sel);
    for (uint64_t r = 0; r < ZR_COUNT(rows); r++)
        for (uint64_t c = 0; c < ZR_COUNT(columns); c++)
            same_value(w, (const char *[2]){"a", "h"}, r, c);
}

/* What is written from the device is stored as from the host, also chunks with the fill
 * value alone and those that keep something. */
static void test_write(void **state)
{
    (void)state;
    for (uint32_t threads = 1; threads <= 4; threads += 3)
        for (uint64_t wave = 1024; wave <= (1 << 20); wave *= 1024)
            for (size_t c = 0; c < ZR_COUNT(chains); c++) {
                zarr_array *a, *h;
                struct pw w;

                open_world(&w, threads, wave);
                a = array_of_shapes(&w, "a", chains[c].codecs);
                h = array_of_shapes(&w, "h", chains[c].codecs);
                for (int i = 0; i < N; i++)
                    data[i] = i / 400 % 3 ? 5000 + i : -1;
                write_same(&w, a, h, "3:90, 5:37");
                write_same(&w, a, h, "::7, 1::3");
                write_same(&w, a, h, "...");
                zarr_array_free(a);
                zarr_array_free(h);
                close_world(&w);
            }
}

/* Two waits, for the lengths and the copies, or one where the lengths are known; one more
 * if old values are decoded. */
static void test_write_calls(void **state)
{
    static const struct {
        const char *codecs;
        int calls, waits, old;
    } of[] = {
        {"[" BYTES "]", 0, 1, 0},
        {"[" BYTES "," LATE "]", SHAPES, 2, 1},
        {"[" TURN "," BIG "," LATE "]", SHAPES, 2, 1},
    };

    (void)state;
    for (size_t i = 0; i < 2 * ZR_COUNT(of); i++) {
        const bool old = i % 2;
        zarr_io_options opts = ZARR_IO_OPTIONS_INIT;
        struct counts n;
        zarr_array *a;
        struct pw w;

        open_world(&w, 2, 1 << 20);
        a = array_of_shapes(&w, "a", of[i / 2].codecs);
        count_begin(&n, &opts);
        assert_ok(write_some(&w, a, old ? "1:99, 1:39" : "...", &opts));
        count_end(&n);
        assert_int_equal(n.stats.waves, 1);
        assert_int_equal(n.stats.chunks_done, CHUNKS);
        assert_int_equal(atomic_load(&n_late.encode_calls), of[i / 2].calls);
        /* the one chunk of 20 x 15 elements keeps nothing */
        assert_int_equal(atomic_load(&n_late.calls),
                         old && of[i / 2].calls ? SHAPES - 1 : 0);
        assert_int_equal(n.late.syncs, of[i / 2].waits + (old ? of[i / 2].old : 0));
        zarr_array_free(a);
        close_world(&w);
    }
}

/* Whichever chunk cannot be encoded, the error names it. */
static void test_write_damage(void **state)
{
    zarr_array *a;
    struct pw w;

    (void)state;
    open_world(&w, 2, 1 << 20);
    a = array_of_shapes(&w, "a", "[" BYTES "," LATE "]");
    for (uint64_t r = 0, row = 0; r < ZR_COUNT(rows); row += rows[r++])
        for (uint64_t c = 0, column = 0; c < ZR_COUNT(columns); column += columns[c++]) {
            char key[32], want[32];

            refuses = data[row * COLS + column];
            assert_status(write_some(&w, a, "...", NULL), ZARR_ERR_CORRUPT);
            assert_true(zarr_error_text(&terr, ZARR_ERROR_KEY, key, sizeof key) > 0);
            snprintf(want, sizeof want, "a/c/%d/%d", (int)r, (int)c);
            assert_string_equal(key, want);
        }
    refuses = 0;
    declines = ZARR_ERR_UNSUPPORTED;
    assert_ok(write_some(&w, a, "...", NULL));
    declines = ZARR_OK;
    compare(&w, a, "...");
    assert_memory_equal(got, data, sizeof data);
    zarr_array_free(a);
    close_world(&w);
}

/* Each of both answers with half of the chains. */
static void test_failing_writes(void **state)
{
    (void)state;
    for (size_t i = 0; i < ZR_COUNT(chains); i++) {
        const zarr_status status = i % 2 ? ZARR_ERR_NO_MEMORY : ZARR_ERR_DEVICE;
        bool passed = false;
        zarr_array *a;
        struct pw w;

        open_world(&w, 2, 1 << 20);
        a = array_of_shapes(&w, "a", chains[i].codecs);
        for (uint64_t k = 4; !passed; k += ZR_FAIL_STEP(k)) {
            const char *text = k % 2 ? "..." : "1:99, 1:39";
            zarr_selection *sel = NULL;
            int64_t lengths[2];
            zarr_tensor t;
            zarr_status st;
            zarr_mem mem;

            assert_true(k < 2000);
            assert_ok(zarr_selection_parse(&sel, 2, shape, text, &terr));
            for (int d = 0; d < 2; d++)
                lengths[d] = (int64_t)zarr_selection_shape(sel)[d];
            mem = tensor_new(&w, &t, lengths);
            assert_int_equal(zarr_fakedev_poke(mem.handle, 0, data, sizeof data), 0);
            zarr_context_trim(w.ctx); /* so that blocks are allocated each time */
            zarr_fakedev_fail(device, ZARR_FAKEDEV_ALL, k, status);
            st = zarr_array_write(a, sel, &t, NULL, &terr);
            zarr_fakedev_fail(device, 0, 0, ZARR_OK);
            assert_true(st == ZARR_OK || st == status);
            passed = st == ZARR_OK && k > 150;
            assert_ok(zarr_array_write(a, sel, &t, NULL, &terr));
            zarr_selection_free(sel);
            zarr_mem_free(w.ctx, &mem);
        }
        zarr_array_free(a);
        close_world(&w);
    }
}

/* ---- room -------------------------------------------------------------------------- */

enum {
    WIDE_BYTES = 1 << 20, /* of scratch memory for a call, however many chunks it has */
    BUDGET = 8400 << 10   /* a wave has a sixth of four fifths */
};

static uint64_t wide_scratch(void *self, uint64_t n, uint64_t max_out)
{
    (void)self;
    (void)n;
    (void)max_out;
    return WIDE_BYTES;
}

static void add_wide(const struct pw *w)
{
    const zarr_codec_spec_vtable spec = {.struct_size = sizeof spec,
                                         .name = "test.wide",
                                         .kind = ZARR_CODEC_BYTES_BYTES,
                                         .resolve = pw_resolve_same};
    const zarr_codec_impl_vtable wide = {.struct_size = sizeof wide,
                                         .caps = ZARR_CODEC_SAFE | ZARR_CODEC_CAN_DECODE |
                                                 ZARR_CODEC_BATCH | ZARR_CODEC_ASYNC,
                                         .codec = "test.wide",
                                         .impl = "fake.wide",
                                         .in_kinds = EXT,
                                         .out_kinds = EXT,
                                         .priority = 10,
                                         .scratch = wide_scratch,
                                         .decode = late_decode,
                                         .settle = late_settle};
    const zarr_codec_impl_vtable host = {.struct_size = sizeof host,
                                         .caps = ZARR_CODEC_SAFE | ZARR_CODEC_CAN_DECODE |
                                                 ZARR_CODEC_CAN_ENCODE,
                                         .codec = "test.wide",
                                         .impl = "cpu.same",
                                         .in_kinds = CPU,
                                         .out_kinds = CPU,
                                         .encode = pw_copy_same,
                                         .decode = pw_copy_same};

    assert_ok(zarr_context_register_codec_spec(w->ctx, &spec, "test", &terr));
    assert_ok(zarr_context_register_codec_impl(w->ctx, &host, "test", &terr));
    assert_ok(zarr_context_register_codec_impl(w->ctx, &wide, "test", &terr));
}

/* A wave has room for one such call, and all of the device not for nine at once: they go
 * one after the other. */
static void test_room(void **state)
{
    (void)state;
    more_codecs = add_wide;
    for (uint32_t threads = 1; threads <= 4; threads += 3) {
        zarr_io_options opts = ZARR_IO_OPTIONS_INIT;
        struct counts n;
        zarr_array *a;
        zarr_tensor t;
        zarr_mem mem;
        struct pw w;

        open_world(&w, threads, 1 << 20);
        a = array_of_shapes(&w, "a", "[" BYTES "," WIDE "]");
        mem = tensor_new(&w, &t, sizes);
        budget_set(&w, BUDGET);
        count_begin(&n, &opts);
        assert_ok(zarr_array_read(a, NULL, &t, &opts, &terr));
        count_end(&n);
        assert_int_equal(zarr_fakedev_peek(mem.handle, 0, got, sizeof got), 0);
        assert_memory_equal(got, data, sizeof data);
        assert_int_equal(n.stats.waves, 1);
        assert_int_equal(n.late.syncs, SHAPES);
        assert_int_equal(n.stats.chunks_fallback, 0);
        assert_int_equal(atomic_load(&n_late.jobs), CHUNKS);
        zarr_mem_free(w.ctx, &mem);
        zarr_array_free(a);
        close_world(&w);
    }
    more_codecs = NULL;
}

/* ---- failures ---------------------------------------------------------------------- */

static void failing_calls(zarr_status status)
{
    for (size_t c = 0; c < ZR_COUNT(chains); c++) {
        bool passed = false;
        struct pw w;
        zarr_array *a;
        zarr_tensor t;
        zarr_mem mem;

        open_world(&w, 2, 1 << 20);
        a = array_of_shapes(&w, "a", chains[c].codecs);
        mem = tensor_new(&w, &t, sizes);
        for (uint64_t k = 1; !passed; k += ZR_FAIL_STEP(k)) {
            zarr_status st;

            assert_true(k < 2000);
            zarr_context_trim(w.ctx); /* so that blocks are allocated each time */
            zarr_fakedev_fail(device, ZARR_FAKEDEV_ALL, k, status);
            st = zarr_array_read(a, NULL, &t, NULL, &terr);
            zarr_fakedev_fail(device, 0, 0, ZARR_OK);
            if (st == ZARR_OK) {
                assert_int_equal(zarr_fakedev_peek(mem.handle, 0, got, sizeof got), 0);
                assert_memory_equal(got, data, sizeof data);
                passed = k > 150; /* an allocation is tried again after a trim */
            } else {
                assert_int_equal(st, status);
            }
        }
        zarr_mem_free(w.ctx, &mem);
        zarr_array_free(a);
        close_world(&w);
    }
}

static void test_failing_calls(void **state)
{
    (void)state;
    failing_calls(ZARR_ERR_DEVICE);
}

static void test_short_of_memory(void **state)
{
    (void)state;
    failing_calls(ZARR_ERR_NO_MEMORY);
}

/* Whichever chunk is damaged, of whichever shape, the error names it. */
static void test_damage(void **state)
{
    struct pw w;
    zarr_array *a;
    zarr_tensor t;
    zarr_mem mem;

    (void)state;
    open_world(&w, 2, 1 << 20);
    a = array_of_shapes(&w, "a", "[" BYTES "," LATE "]");
    mem = tensor_new(&w, &t, sizes);
    for (uint64_t r = 0, row = 0; r < ZR_COUNT(rows); row += rows[r++])
        for (uint64_t c = 0, column = 0; c < ZR_COUNT(columns); column += columns[c++]) {
            char key[32], want[32];

            damage = data[row * COLS + column];
            assert_status(zarr_array_read(a, NULL, &t, NULL, &terr), ZARR_ERR_CORRUPT);
            assert_true(zarr_error_text(&terr, ZARR_ERROR_KEY, key, sizeof key) > 0);
            snprintf(want, sizeof want, "a/c/%d/%d", (int)r, (int)c);
            assert_string_equal(key, want);
        }
    damage = -1;
    assert_ok(zarr_array_read(a, NULL, &t, NULL, &terr));
    zarr_mem_free(w.ctx, &mem);
    zarr_array_free(a);
    close_world(&w);
}

/* The first chunk of each shape is declined: just these are read alone. */
static void test_declined(void **state)
{
    zarr_io_options opts = ZARR_IO_OPTIONS_INIT;
    struct counts n;
    struct pw w;
    zarr_array *a;
    zarr_tensor t;
    zarr_mem mem;

    (void)state;
    open_world(&w, 2, 1 << 20);
    a = array_of_shapes(&w, "a", "[" BYTES "," LATE "]");
    mem = tensor_new(&w, &t, sizes);
    declines = ZARR_ERR_UNSUPPORTED;
    count_begin(&n, &opts);
    assert_ok(zarr_array_read(a, NULL, &t, &opts, &terr));
    count_end(&n);
    declines = ZARR_OK;
    assert_int_equal(zarr_fakedev_peek(mem.handle, 0, got, sizeof got), 0);
    assert_memory_equal(got, data, sizeof data);
    assert_int_equal(n.stats.chunks_done, CHUNKS);
    assert_int_equal(n.stats.chunks_fallback, SHAPES);
    assert_int_equal(atomic_load(&n_late.declined), SHAPES);
    zarr_mem_free(w.ctx, &mem);
    zarr_array_free(a);
    close_world(&w);
}

/* A chunk is damaged, which its codec says when the wave waits, and one of another shape
 * is declined before. */
static void test_damage_and_decline(void **state)
{
    static const zarr_status answers[] = {ZARR_ERR_UNSUPPORTED, ZARR_ERR_NO_MEMORY,
                                          ZARR_ERR_DEVICE};
    struct pw w;
    zarr_array *a;
    zarr_tensor t;
    zarr_mem mem;

    (void)state;
    open_world(&w, 2, 1 << 20);
    a = array_of_shapes(&w, "a", "[" BYTES "," LATE "]");
    mem = tensor_new(&w, &t, sizes);
    damage = data[0];
    declines_bytes = rows[1] * columns[1] * sizeof data[0];
    for (size_t i = 0; i < ZR_COUNT(answers); i++) {
        char key[32];

        declines = answers[i];
        assert_status(zarr_array_read(a, NULL, &t, NULL, &terr), ZARR_ERR_CORRUPT);
        assert_true(zarr_error_text(&terr, ZARR_ERROR_KEY, key, sizeof key) > 0);
        assert_string_equal(key, "a/c/0/0");
    }
    damage = -1;
    declines = ZARR_OK;
    declines_bytes = 0;
    zarr_mem_free(w.ctx, &mem);
    zarr_array_free(a);
    close_world(&w);
}

/* A large unit and small ones are written in part: each old value takes its own length.
 */
static void test_lengths(void **state)
{
    enum {
        LARGE = 1 << 18, /* elements */
        SMALL = 8,
        ALL = LARGE + 15 * SMALL
    };
    static const uint64_t all[1] = {ALL};
    static int32_t in[ALL], out[ALL];
    const zarr_array_spec spec = {
        .struct_size = sizeof spec,
        .ndim = 1,
        .shape = all,
        .data_type = "int32",
        .fill_value = "-1",
        .chunk_grid = "{\"name\":\"rectilinear\",\"configuration\":{\"kind\":\"inline\","
                      "\"chunk_shapes\":[[262144,8,8,8,8,8,8,8,8,8,8,8,8,8,8,8]]}}",
        .codecs = "[" BYTES "," LATE "]"};
    int64_t length[1] = {ALL};
    zarr_selection *sel = NULL;
    zarr_array *a = NULL;
    zarr_tensor t;
    uint64_t before;
    zarr_mem mem;
    struct pw w;

    (void)state;
    pinned_bytes = UINT64_C(1) << 20; /* the rest is counted as ordinary memory */
    open_world(&w, 2, 0);
    pinned_bytes = 0;
    assert_ok(zarr_array_create(&a, w.store, "a", &spec, NULL, &terr));
    for (int i = 0; i < ALL; i++)
        in[i] = i;
    zarr_tensor_host(&t, in, sizeof in, 1, length);
    assert_ok(zarr_array_write(a, NULL, &t, NULL, &terr));
    zarr_context_trim(w.ctx);
    assert_ok(zarr_selection_parse(&sel, 1, all, "::2", &terr));
    length[0] = ALL / 2;
    assert_ok(zarr_mem_alloc(w.ctx, ZARR_DEVICE_EXT, 0, sizeof in, &mem, &terr));
    t = (zarr_tensor)ZARR_TENSOR_INIT;
    t.device_type = ZARR_DEVICE_EXT;
    t.ndim = 1;
    t.data = mem.handle;
    t.data_bytes = mem.bytes;
    t.shape = length;
    before = atomic_load(&w.n_bytes);
    atomic_store(&w.peak_bytes, before);
    assert_ok(zarr_array_write(a, sel, &t, NULL, &terr));
    assert_in_range(atomic_load(&w.peak_bytes) - before, 0, 12 << 20);
    length[0] = ALL;
    zarr_tensor_host(&t, out, sizeof out, 1, length);
    assert_ok(zarr_array_read(a, NULL, &t, NULL, &terr));
    for (int i = 1; i < ALL; i += 2)
        assert_int_equal(out[i], i);
    zarr_mem_free(w.ctx, &mem);
    zarr_selection_free(sel);
    zarr_array_free(a);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_write),
        cmocka_unit_test(test_write_calls),
        cmocka_unit_test(test_write_damage),
        cmocka_unit_test(test_failing_writes),
        cmocka_unit_test(test_room),
        cmocka_unit_test(test_failing_calls),
        cmocka_unit_test(test_short_of_memory),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_declined),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_damage_and_decline),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
