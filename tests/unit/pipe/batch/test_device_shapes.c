/*
 * unit/pipe/batch/test_device_shapes.c - reads of a device where the chunks of a grid
 * differ in shape. Each shape has a program of its own, but a wave has one wait for all.
 * Each call that fails ends the read, damage names its chunk, and what is declined is
 * done alone.
 */
#include "unit/pipe/device_shapes.h"

static int32_t got[N];

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
                compare_read(&w, a, "...", got);
                compare_read(&w, a, "3:90, 5:37", got);
                compare_read(&w, a, "::7, 1::3", got);
                assert_ok(zarr_array_block_erase(a, (uint64_t[2]){1, 0}, NULL, &terr));
                compare_read(&w, a, "...", got);
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
        zarr_memory mem;
        struct pw w;

        unchecked = i % 2;
        open_world(&w, 2, 1 << 20);
        a = array_of_shapes(&w, "a", c->codecs);
        assert_ok(zarr_array_block_erase(a, (uint64_t[2]){1, 0}, NULL, &terr));
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
        zarr_memory_free(w.ctx, &mem);
        zarr_array_free(a);
        close_world(&w);
    }
    unchecked = false;
    context_trust = 0;
}

/* ---- room -------------------------------------------------------------------------- */

#define WIDE "{\"name\":\"test.wide\"}"
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
        zarr_memory mem;
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
        zarr_memory_free(w.ctx, &mem);
        zarr_array_free(a);
        close_world(&w);
    }
    more_codecs = NULL;
}

/* ---- failures ---------------------------------------------------------------------- */

static void failing_calls(zarr_status status)
{
    for (size_t c = 0; c < ZR_COUNT(chains); c++) {
        struct pw w;
        zarr_array *a;

        open_world(&w, 2, 1 << 20);
        a = array_of_shapes(&w, "a", chains[c].codecs);
        read_failing(&w, a, status);
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
    zarr_memory mem;

    (void)state;
    open_world(&w, 2, 1 << 20);
    a = array_of_shapes(&w, "a", "[" BYTES "," LATE "]");
    mem = tensor_new(&w, &t, sizes);
    for (uint64_t r = 0, row = 0; r < ZR_COUNT(rows); row += rows[r++])
        for (uint64_t c = 0, column = 0; c < ZR_COUNT(columns); column += columns[c++]) {
            damage = data[row * COLS + column];
            assert_status(zarr_array_read(a, NULL, &t, NULL, &terr), ZARR_ERR_CORRUPT);
            same_key(r, c);
        }
    damage = -1;
    assert_ok(zarr_array_read(a, NULL, &t, NULL, &terr));
    zarr_memory_free(w.ctx, &mem);
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
    zarr_memory mem;

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
    zarr_memory_free(w.ctx, &mem);
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
    zarr_memory mem;

    (void)state;
    open_world(&w, 2, 1 << 20);
    a = array_of_shapes(&w, "a", "[" BYTES "," LATE "]");
    mem = tensor_new(&w, &t, sizes);
    damage = data[0];
    declines_bytes = rows[1] * columns[1] * sizeof data[0];
    for (size_t i = 0; i < ZR_COUNT(answers); i++) {
        declines = answers[i];
        assert_status(zarr_array_read(a, NULL, &t, NULL, &terr), ZARR_ERR_CORRUPT);
        same_key(0, 0);
    }
    damage = -1;
    declines = ZARR_OK;
    declines_bytes = 0;
    zarr_memory_free(w.ctx, &mem);
    zarr_array_free(a);
    close_world(&w);
}

/* A value is too short, so its codec is not called, and a chunk of another shape is
 * declined. */
static void test_short_and_decline(void **state)
{
    static const unsigned char value[500];
    struct pw w;
    zarr_array *a;
    zarr_tensor t;
    zarr_memory mem;

    (void)state;
    open_world(&w, 2, 1 << 20);
    a = array_of_shapes(&w, "a", "[" BYTES "," LATE "]");
    assert_ok(zarr_store_put(w.store, "a/c/4/0", value, sizeof value, NULL, &terr));
    mem = tensor_new(&w, &t, sizes);
    declines_bytes = rows[0] * columns[0] * sizeof data[0];
    declines_lists = true;
    for (int i = 0; i < 2; i++) {
        declines = i ? ZARR_ERR_UNSUPPORTED : ZARR_OK;
        assert_status(zarr_array_read(a, NULL, &t, NULL, &terr), ZARR_ERR_CORRUPT);
        same_key(4, 0);
    }
    declines = ZARR_OK;
    declines_bytes = 0;
    declines_lists = false;
    zarr_memory_free(w.ctx, &mem);
    zarr_array_free(a);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_room),
        cmocka_unit_test(test_failing_calls),
        cmocka_unit_test(test_short_of_memory),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_declined),
        cmocka_unit_test(test_damage_and_decline),
        cmocka_unit_test(test_short_and_decline),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
