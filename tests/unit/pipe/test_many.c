/*
 * unit/pipe/test_many.c - several selections in one request: each part gets what a read
 * of its own gives, chunks that parts share are fetched and decoded once, and writes of
 * parts are as writes one after the other.
 */
#include "many_test.h"

#include "fakedev/fakedev.h"
#include "sanitizers.h"

/* ---- reads and writes --------------------------------------------------------- */

static void test_reads(void **state)
{
    unsigned seed = 1;

    (void)state;
    for (size_t k = 0; k < N_KINDS * 4; k++) {
        zarr_io_options o = ZARR_IO_OPTIONS_INIT;
        struct pw w;
        zarr_array *a;

        pw_open(&w, k % 2 ? 4 : 1, UINT64_C(64) << 20, k & 8 ? 700 : 0);
        a = make_filled(&w, "a", k % N_KINDS);
        o.tuning = TUNING(.pipeline = k / N_KINDS == 3 ? "serial" : NULL);
        for (int round = 0; round < 1 + 24 / ZR_CASE_STEP; round++) {
            const int n = rand_r(&seed) % (MOST + 1);

            make_parts(n, &seed, false);
            assert_ok(zarr_array_read_many(a, ask, (size_t)n, &o, &terr));
            for (int i = 0; i < n; i++) {
                assert_int_equal(ask[i].status, ZARR_OK);
                check_part(a, &part[i]);
            }
            free_parts(n);
        }
        zarr_array_free(a);
        pw_close(&w);
    }
}

/* Both arrays hold the same. */
static void same_elements(zarr_array *a, zarr_array *b)
{
    static int32_t x[N], y[N];

    assert_ok(pw_box(a, zero, shape, x, NULL, false));
    assert_ok(pw_box(b, zero, shape, y, NULL, false));
    assert_memory_equal(x, y, sizeof x);
}

static void test_writes(void **state)
{
    unsigned seed = 2;

    (void)state;
    for (size_t k = 0; k < N_KINDS * 4; k++) {
        zarr_io_options o = ZARR_IO_OPTIONS_INIT;
        struct pw w;
        zarr_array *a, *b;

        pw_open(&w, k % 2 ? 4 : 1, UINT64_C(64) << 20, k & 8 ? 700 : 0);
        a = make_filled(&w, "a", k % N_KINDS);
        b = make_filled(&w, "b", k % N_KINDS);
        o.tuning = TUNING(.pipeline = k / N_KINDS == 3 ? "serial" : NULL);
        for (int round = 0; round < 1 + 11 / ZR_CASE_STEP; round++) {
            const int n = rand_r(&seed) % (MOST + 1);

            make_parts(n, &seed, true);
            assert_ok(zarr_array_write_many(a, ask, (size_t)n, &o, &terr));
            for (int i = 0; i < n; i++) {
                assert_int_equal(ask[i].status, ZARR_OK);
                assert_ok(zarr_array_write(b, part[i].sel, &part[i].t, NULL, &terr));
            }
            same_elements(a, b);
            free_parts(n);
        }
        zarr_array_free(a);
        zarr_array_free(b);
        pw_close(&w);
    }
}

/* Three crops that overlap: each chunk, and each index, is fetched once. */
static void test_once(void **state)
{
    (void)state;
    for (int sharded = 0; sharded < 2; sharded++) {
        zarr_io_options o = ZARR_IO_OPTIONS_INIT;
        zarr_stats stats = ZARR_STATS_INIT;
        struct pw w;
        zarr_array *a;

        pw_open(&w, 2, UINT64_C(64) << 20, 0);
        a = full(&w, "a", sharded ? 4 : 1);
        o.stats = &stats;
        o.tuning = TUNING(.coalesce_bytes = 1); /* each inner chunk alone */
        box_part(0, 0, 0, 20, 20);
        box_part(1, 5, 5, 20, 20);
        box_part(2, 5, 5, 3, 3);
        assert_ok(zarr_array_read_many(a, ask, 3, &o, &terr));
        check_box(0, 0, 0, 20, 20);
        check_box(1, 5, 5, 20, 20);
        check_box(2, 5, 5, 3, 3);
        assert_int_equal(stats.elements, 400 + 400 + 9);
        assert_int_equal(stats.chunks_total, stats.chunks_done);
        if (sharded) { /* inner chunks of 4 x 5 */
            assert_int_equal(stats.chunks_done, 5 * 4 + 6 * 4 - 4 * 3);
            assert_int_equal(stats.index_reads, 4);
            assert_int_equal(stats.store_gets, stats.chunks_done + stats.index_reads);
        } else { /* chunks of 16 x 16 */
            assert_int_equal(stats.chunks_done, 4);
            assert_int_equal(stats.store_gets, 4);
            assert_int_equal(stats.bytes_decoded, 4 * 16 * 16 * 4);
        }
        free_parts(3);
        zarr_array_free(a);
        pw_close(&w);
    }
}

/* Writes four boxes that cover chunks together, or leave a hole. */
static void write_quarters(zarr_array *a, bool hole, zarr_stats *stats)
{
    zarr_io_options o = ZARR_IO_OPTIONS_INIT;

    o.stats = stats;
    for (int i = 0; i < 4; i++)
        box_part(i, i / 2 ? 10 : 0, i % 2 ? 7 : 0, i / 2 ? 22 : 10 - (uint64_t)hole,
                 i % 2 ? 33 : 7);
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < N; j++)
            crop[i][j] = 1000 * (i + 1) + j;
    assert_ok(zarr_array_write_many(a, ask, 4, &o, &terr));
    free_parts(4);
}

/* What the caller wrote at a place, or the old element. */
static void check_quarters(zarr_array *a, bool hole)
{
    static int32_t now[ROWS][COLS];

    assert_ok(pw_box(a, zero, shape, now[0], NULL, false));
    assert_int_equal(now[0][0], 1000);
    assert_int_equal(now[8][7], 2000 + 8 * 33);
    assert_int_equal(now[9][0], hole ? 9 * COLS * 11 + 1 : 1000 + 9 * 7);
    assert_int_equal(now[31][39], 4000 + 21 * 33 + 32);
    assert_int_equal(now[31][40], (31 * COLS + 40) * 11 + 1);
}

/* Parts that cover chunks together need no old value; parts that leave a hole do. */
static void test_covered(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        const bool hole = i % 2, sharded = i / 2;
        zarr_stats stats = ZARR_STATS_INIT;
        struct pw w;
        zarr_array *a;

        pw_open(&w, 2, UINT64_C(64) << 20, 0);
        a = full(&w, "a", sharded ? 4 : 1);
        write_quarters(a, hole, &stats);
        if (sharded) /* of 16 x 20 */
            assert_int_equal(stats.read_modify_writes, hole ? 2 : 0);
        else /* the last column of 16 x 16 is not written whole */
            assert_int_equal(stats.read_modify_writes, hole ? 2 + 2 : 2);
        assert_int_equal(stats.store_puts, sharded ? 4 : 6);
        check_quarters(a, hole);
        zarr_array_free(a);
        pw_close(&w);
    }
}

/* ---- memory of other kinds ----------------------------------------------------- */

/* Parts on a device, on the host, and on both. */
static void test_memories(void **state)
{
    (void)state;
    for (size_t k = 0; k < N_KINDS; k++)
        for (int mixed = 0; mixed < 2; mixed++) {
            void *device = zarr_fakedev_create();
            zarr_fakedev_counters c;
            static int32_t back[N];
            zarr_memory mem[2];
            struct pw w;
            zarr_array *a;

            pw_context(&w, 2, UINT64_C(64) << 20, 0);
            assert_ok(zarr_context_register_memory(w.ctx, zarr_fakedev_vtable_late(),
                                                   device, "test", &terr));
            assert_ok(zarr_store_open(&w.store, w.ctx, "memory:", NULL, &terr));
            a = full(&w, "a", k);
            box_part(0, 0, 0, 30, 20);
            box_part(1, 5, 5, 20, 20);
            box_part(2, 0, 0, ROWS, COLS);
            for (int i = 0; i < (mixed ? 1 : 2); i++) {
                assert_ok(zarr_memory_alloc(&mem[i], w.ctx, ZARR_DEVICE_EXT, 0,
                                            sizeof data, &terr));
                part[i].t.device_type = ZARR_DEVICE_EXT;
                part[i].t.data = mem[i].handle;
            }
            assert_ok(zarr_array_read_many(a, ask, mixed ? 3 : 2, NULL, &terr));
            assert_int_equal(zarr_fakedev_peek(mem[0].handle, 0, crop[0], UINT64_C(2400)),
                             0);
            check_box(0, 0, 0, 30, 20);
            if (!mixed)
                assert_int_equal(
                    zarr_fakedev_peek(mem[1].handle, 0, crop[1], UINT64_C(1600)), 0);
            check_box(1, 5, 5, 20, 20);
            if (mixed)
                check_box(2, 0, 0, ROWS, COLS);
            /* and written back, changed */
            for (int i = 0; i < 600; i++)
                crop[0][i] += 5;
            assert_int_equal(zarr_fakedev_poke(mem[0].handle, 0, crop[0], UINT64_C(2400)),
                             0);
            assert_ok(zarr_array_write_many(a, ask, 1, NULL, &terr));
            assert_ok(pw_box(a, zero, shape, back, NULL, false));
            for (int i = 0; i < N; i++)
                assert_int_equal(back[i],
                                 data[i] + (i / COLS < 30 && i % COLS < 20 ? 5 : 0));
            zarr_fakedev_count(device, &c);
            assert_int_equal(c.faults, 0);
            free_parts(3);
            zarr_memory_free(w.ctx, &mem[0]);
            if (!mixed)
                zarr_memory_free(w.ctx, &mem[1]);
            zarr_array_free(a);
            pw_close(&w);
        }
}

/* ---- fields and text ----------------------------------------------------------- */

/* Parts of one field, written and read; the others keep their elements. */
static void test_field(void **state)
{
    const uint64_t n = 20, chunk = 8, at[2] = {0, 5}, len = 10;
    const zarr_array_spec spec = {
        .struct_size = sizeof spec,
        .ndim = 1,
        .shape = &n,
        .chunk_shape = &chunk,
        .data_type = "{\"name\":\"struct\",\"configuration\":{\"fields\":["
                     "{\"name\":\"a\",\"data_type\":\"int32\"},"
                     "{\"name\":\"b\",\"data_type\":\"int16\"}]}}"};
    zarr_io_options o = ZARR_IO_OPTIONS_INIT;
    const uint64_t size = 10;
    int32_t value[2][10];
    zarr_tensor t[2];
    zarr_io_part two[2] = {{0}};
    zarr_array *a = NULL;
    struct pw w;

    (void)state;
    pw_open(&w, 2, UINT64_C(64) << 20, 0);
    assert_ok(zarr_array_create(&a, w.store, "a", &spec, NULL, &terr));
    o.field = "a";
    for (int i = 0; i < 2; i++) {
        zarr_selection *sel = NULL;

        for (int k = 0; k < 10; k++)
            value[i][k] = 100 * (i + 1) + k;
        zarr_tensor_host(&t[i], NULL, value[i], sizeof value[i], 1, &size);
        assert_ok(zarr_selection_box(&sel, 1, &n, &at[i], &len, &terr));
        two[i] = (zarr_io_part){.selection = sel, .tensor = &t[i]};
    }
    assert_ok(zarr_array_write_many(a, two, 2, &o, &terr));
    memset(value, 0, sizeof value);
    assert_ok(zarr_array_read_many(a, two, 2, &o, &terr));
    assert_int_equal(value[0][4], 104); /* the second part has overwritten the rest */
    assert_int_equal(value[0][5], 200);
    assert_int_equal(value[1][9], 209);
    t[1].byte_order = ZARR_ORDER_BIG;
    if (ZR_HOST_IS_LITTLE)
        assert_status(zarr_array_read_many(a, two, 2, &o, &terr), ZARR_ERR_UNSUPPORTED);
    t[0].byte_order = ZARR_ORDER_BIG;
    assert_ok(zarr_array_read_many(a, two, 2, &o, &terr));
    assert_int_equal(((uint8_t *)value[0])[19], 104);
    for (int i = 0; i < 2; i++)
        zarr_selection_free((zarr_selection *)(uintptr_t)two[i].selection);
    zarr_array_free(a);
    pw_close(&w);
}

static void test_text(void **state)
{
    const uint64_t n = 9, chunk = 4, at[2] = {1, 3}, len = 4;
    const zarr_array_spec spec = {.struct_size = sizeof spec,
                                  .ndim = 1,
                                  .shape = &n,
                                  .chunk_shape = &chunk,
                                  .data_type = "string",
                                  .fill_value = "\"none\""};
    zarr_io_options o = ZARR_IO_OPTIONS_INIT;
    const uint64_t size = 4;
    zarr_vlen value[2][4];
    zarr_tensor t[2];
    zarr_io_part two[2] = {{0}};
    zarr_array *a = NULL;
    struct pw w;

    (void)state;
    pw_open(&w, 2, UINT64_C(64) << 20, 0);
    assert_ok(zarr_array_create(&a, w.store, "a", &spec, NULL, &terr));
    assert_ok(zarr_heap_create(&o.heap, w.ctx, 0, &terr));
    for (int i = 0; i < 2; i++) {
        zarr_selection *sel = NULL;

        for (int k = 0; k < 4; k++)
            value[i][k] = (zarr_vlen){.data = i ? "second" : "first", .bytes = i ? 6 : 5};
        zarr_tensor_host(&t[i], NULL, value[i], sizeof value[i], 1, &size);
        assert_ok(zarr_selection_box(&sel, 1, &n, &at[i], &len, &terr));
        two[i] = (zarr_io_part){.selection = sel, .tensor = &t[i]};
    }
    assert_ok(zarr_array_write_many(a, two, 1, &o, &terr));
    memset(value, 0, sizeof value);
    assert_ok(zarr_array_read_many(a, two, 2, &o, &terr));
    assert_int_equal(value[0][0].bytes, 5);
    assert_memory_equal(value[0][3].data, "first", 5);
    assert_memory_equal(value[1][1].data, "first", 5);
    assert_int_equal(value[1][2].bytes, 4);
    assert_memory_equal(value[1][3].data, "none", 4);
    for (int i = 0; i < 2; i++)
        zarr_selection_free((zarr_selection *)(uintptr_t)two[i].selection);
    zarr_heap_free(o.heap);
    zarr_array_free(a);
    pw_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads),    cmocka_unit_test(test_writes),
        cmocka_unit_test(test_once),     cmocka_unit_test(test_covered),
        cmocka_unit_test(test_memories), cmocka_unit_test(test_field),
        cmocka_unit_test(test_text),
    };

    return cmocka_run_group_tests_name("several selections", tests, NULL, NULL);
}
