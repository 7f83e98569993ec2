/*
 * unit/pipe/write/test_rounds.c - round trips of a write on a store with latency. A write
 * takes one for old values, if it needs any, and one for all new ones (two if the store
 * has locks of its own, and only some of the units need them), between two looks at the
 * document. Also conflicts, other writers, and damaged old values.
 */
#include "unit/conditional_caps.h"
#include "unit/pipe/far_store.h"

/* A write sends the PUTs of many units at once, between two looks at the document. */
static void test_write(void **state)
{
    (void)state;
    for (int kind = 0; kind < N_KINDS; kind++) {
        zarr_io_options o = {.struct_size = sizeof o, .max_threads = 2};
        zarr_tensor t = whole_tensor(elements);
        zarr_array *a = NULL, *b = NULL;

        open_stores(ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_SUFFIX | ZARR_STORE_CAP_WRITE);
        a = make_array((enum kind)kind);
        for (size_t i = 0; i < (size_t)N * N; i++)
            elements[i] = kind + (int32_t)i / 64 * 64; /* the first chunks are empty */
        assert_ok(zarr_array_write(a, NULL, &t, &o, &err));
        assert_int_equal(d.rounds, 3);
        assert_non_null(strstr(traced, "a: wave 1 of a write: "));
        assert_non_null(strstr(traced, kind == CHUNKS ? " 1024 blocks" : " 16 blocks"));
        assert_ptr_equal(zarr_array_context(a), ctx);
        assert_ptr_equal(zarr_store_context(far), ctx);
        assert_int_equal(d.n_ops, (kind == CHUNKS ? 1024 : 16) + 2);
        assert_ok(zarr_array_open(&b, memory, "a", NULL, &err));
        t = whole_tensor(got);
        assert_ok(zarr_array_read(b, NULL, &t, NULL, &err));
        assert_memory_equal(got, elements, sizeof got);
        zarr_array_free(b);
        zarr_array_free(a);
        close_stores();
    }
}

/* The chunks of shards that are fewer than the threads are encoded in one loop, also for
 * a store that is written on the encoding thread. Their fetches and PUTs are one submit.
 */
static void test_few_shards(void **state)
{
    (void)state;
    for (int part = 0; part < 2; part++) {
        const uint64_t start[2] = {(uint64_t)part, 0}, count[2] = {N - start[0], N};
        zarr_io_options o = {.struct_size = sizeof o, .max_threads = 17};
        zarr_tensor t = whole_tensor(elements);
        zarr_selection *sel = NULL;
        zarr_array *a = NULL, *b = NULL;

        open_stores(ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_SUFFIX | ZARR_STORE_CAP_WRITE |
                    ZARR_STORE_CAP_FAST_GET);
        a = make_array(SHARDS);
        for (size_t i = 0; i < (size_t)N * N; i++)
            elements[i] = -(int32_t)i;
        zarr_tensor_host(&t, NULL, elements, sizeof elements, 2, count);
        assert_ok(zarr_selection_box(&sel, 2, zarr_array_shape(a), start, count, &err));
        assert_ok(zarr_array_write(a, sel, &t, &o, &err));
        assert_int_equal(d.rounds, part ? 4 : 3);
        assert_ok(zarr_array_open(&b, memory, "a", NULL, &err));
        t = whole_tensor(got);
        assert_ok(zarr_array_read(b, NULL, &t, NULL, &err));
        assert_int_equal(got[0], part ? 1 : 0);
        assert_memory_equal(&got[start[0] * N], elements,
                            count[0] * N * sizeof *elements);
        zarr_selection_free(sel);
        zarr_array_free(b);
        zarr_array_free(a);
        close_stores();
    }
}

/* ---- units that are written in part ----------------------------------------------- */

/* The last has locks of its own. */
static const uint32_t part_caps[] = {
    ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_SUFFIX | ZARR_STORE_CAP_WRITE,
    ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_SUFFIX | ZARR_STORE_CAP_WRITE |
        CAPS_CONDITIONAL,
    ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_SUFFIX | ZARR_STORE_CAP_WRITE |
        ZARR_STORE_CAP_LOCK | ZARR_STORE_CAP_WRITES_WAIT,
};

/* Every other column: all units are written in part. */
static zarr_selection *columns(const zarr_array *a, uint64_t first)
{
    zarr_selection *sel = NULL;

    assert_ok(zarr_selection_parse(&sel, 2, zarr_array_shape(a),
                                   first ? ":, 1::2" : ":, ::2", &err));
    return sel;
}

static int32_t half[N * N / 2];
static const uint64_t half_shape[] = {N, N / 2};

static zarr_tensor half_tensor(void)
{
    zarr_tensor t;

    zarr_tensor_host(&t, NULL, half, sizeof half, 2, half_shape);
    return t;
}

/* What the array has after a write of `half` to every other column. */
static void check_half(uint64_t first)
{
    zarr_tensor t = whole_tensor(got);
    zarr_array *b = NULL;

    assert_ok(zarr_array_open(&b, memory, "a", NULL, &err));
    assert_ok(zarr_array_read(b, NULL, &t, NULL, &err));
    for (size_t i = 0; i < (size_t)N * N; i++)
        assert_int_equal(got[i], i % 2 == first ? half[i / 2] : elements[i]);
    zarr_array_free(b);
}

/* All old values are read at once, and all new ones stored at once, between two looks at
 * the document. One chunk or shard is missing. */
static void test_write_part(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * (size_t)N_KINDS; i++) {
        const enum kind kind = (enum kind)(i / 2);
        const uint32_t n = kind == CHUNKS ? 1024 : 16;
        zarr_stats stats = ZARR_STATS_INIT;
        zarr_io_options o = {.struct_size = sizeof o, .max_threads = 2, .stats = &stats};
        zarr_tensor t = half_tensor();
        zarr_selection *sel = NULL;
        zarr_array *a = NULL, *b = NULL;
        const uint64_t gone[] = {1, 1};

        open_stores(part_caps[i % 2]);
        a = make_array(kind);
        assert_ok(zarr_array_open(&b, memory, "a", NULL, &err));
        assert_ok(zarr_array_block_erase(b, gone, NULL, &err));
        for (size_t r = 0, edge = kind == CHUNKS ? 8 : 64; r < edge; r++)
            memset(&elements[(edge + r) * N + edge], 0, edge * sizeof *elements);
        for (size_t k = 0; k < (size_t)N * N / 2; k++)
            half[k] = -(int32_t)k - 1;
        sel = columns(a, 1);
        assert_ok(zarr_array_write(a, sel, &t, &o, &err));
        assert_int_equal(d.rounds, 4);
        assert_int_equal(d.n_ops, 2 * n + 2);
        assert_int_equal(d.most_at_once, n);
        assert_int_equal(stats.elements, N * N / 2);
        assert_int_equal(stats.read_modify_writes, n);
        assert_int_equal(stats.chunks_done, 1024);
        check_half(1);
        zarr_selection_free(sel);
        zarr_array_free(b);
        zarr_array_free(a);
        close_stores();
    }
}

/* Some units are covered, others in part. That takes no round trip more, unless the store
 * has locks of its own. */
static void test_write_mixed(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3 * (size_t)N_KINDS; i++) {
        const enum kind kind = (enum kind)(i / 3);
        const bool own_locks = i % 3 == 2;
        const uint32_t n_part = kind == CHUNKS ? 32 : 4;
        const uint32_t n_all = kind == CHUNKS ? 1024 : 16;
        const uint64_t size[] = {N - 3, N};
        zarr_stats stats = ZARR_STATS_INIT;
        zarr_io_options o = {.struct_size = sizeof o, .max_threads = 2, .stats = &stats};
        zarr_tensor t, all = whole_tensor(got);
        zarr_selection *sel = NULL;
        zarr_array *a = NULL, *b = NULL;

        open_stores(part_caps[i % 3]);
        a = make_array(kind);
        for (size_t k = 3 * (size_t)N; k < (size_t)N * N; k++)
            elements[k] = -(int32_t)k;
        zarr_tensor_host(&t, NULL, elements + 3 * (size_t)N, (uint64_t)(N - 3) * N * 4, 2,
                         size);
        assert_ok(zarr_selection_parse(&sel, 2, zarr_array_shape(a), "3:", &err));
        assert_ok(zarr_array_write(a, sel, &t, &o, &err));
        assert_int_equal(d.rounds, own_locks ? 5 : 4);
        assert_int_equal(d.n_ops, n_part + n_all + 2);
        assert_int_equal(d.most_at_once, own_locks ? n_all - n_part : n_all);
        assert_int_equal(stats.read_modify_writes, n_part);
        assert_ok(zarr_array_open(&b, memory, "a", NULL, &err));
        assert_ok(zarr_array_read(b, NULL, &all, NULL, &err));
        assert_memory_equal(got, elements, sizeof got);
        zarr_selection_free(sel);
        zarr_array_free(b);
        zarr_array_free(a);
        close_stores();
    }
}

/* Another writer replaces a chunk between the read of its old value and the PUT: that
 * unit is written once more, alone, from the value of the other writer. */
static void test_conflict(void **state)
{
    (void)state;
    for (int kind = 0; kind < N_KINDS; kind++) {
        zarr_stats stats = ZARR_STATS_INIT;
        zarr_io_options o = {.struct_size = sizeof o, .max_threads = 2, .stats = &stats};
        zarr_tensor t = half_tensor();
        zarr_selection *sel = NULL;
        zarr_array *a = NULL;

        open_stores(part_caps[1]);
        a = make_array((enum kind)kind);
        for (size_t k = 0; k < (size_t)N * N / 2; k++)
            half[k] = -(int32_t)k - 1;
        sel = columns(a, 0);
        d.other_writer = "a/c/2/1";
        assert_ok(zarr_array_write(a, sel, &t, &o, &err));
        assert_null(d.other_writer);
        /* the unit alone: a GET and a PUT more, after the PUT that met a conflict */
        assert_int_equal(d.rounds, 6);
        assert_int_equal(stats.elements, N * N / 2);
        assert_int_equal(stats.chunks_done, 1024);
        check_half(0);
        zarr_selection_free(sel);
        zarr_array_free(a);
        close_stores();
    }
}

/* Two requests change the same shards at once: no write of either is lost. */
static void test_two_writers(void **state)
{
    static int32_t other[N * N / 2];

    (void)state;
    for (size_t i = 3 * (size_t)SHARDS; i < 3 * (size_t)N_KINDS; i++) {
        zarr_tensor t[2] = {half_tensor(), half_tensor()};
        zarr_selection *sel[2];
        zarr_request *rq[2];
        zarr_array *a = NULL;

        t[1].data = other;
        open_stores(part_caps[i % 3]);
        a = make_array((enum kind)(i / 3));
        for (size_t k = 0; k < (size_t)N * N / 2; k++) {
            half[k] = -(int32_t)k - 1;
            elements[2 * k + 1] = other[k] = 7 * (int32_t)k;
        }
        for (int k = 0; k < 2; k++) {
            sel[k] = columns(a, (uint64_t)k);
            assert_ok(zarr_array_write_submit(&rq[k], a, sel[k], &t[k], NULL, &err));
        }
        for (int k = 0; k < 2; k++) {
            assert_ok(zarr_request_wait(rq[k], UINT64_MAX, NULL, &err));
            zarr_request_free(rq[k]);
            zarr_selection_free(sel[k]);
        }
        check_half(0);
        zarr_array_free(a);
        close_stores();
    }
}

/* Each of two requests covers chunks that the other writes in part: a PUT that waits for
 * a lock of the other must hold none. */
static void test_crossed_writers(void **state)
{
    static int32_t rows[2][12 * N];
    const uint64_t size[] = {12, N};

    (void)state;
    alarm(60); /* instead of a deadlock */
    for (int round = 0; round < 9; round++) {
        zarr_tensor all = whole_tensor(got);
        zarr_selection *sel[2];
        zarr_request *rq[2];
        zarr_array *a = NULL;

        /* its one thread must not wait for a lock: the library takes it */
        open_stores(part_caps[round % 3] & ~(uint32_t)ZARR_STORE_CAP_WRITES_WAIT);
        a = make_array(CHUNKS);
        for (int k = 0; k < 2; k++) {
            zarr_tensor t;

            for (size_t i = 0; i < (size_t)12 * N; i++)
                rows[k][i] = -k - 1;
            zarr_tensor_host(&t, NULL, rows[k], sizeof rows[k], 2, size);
            assert_ok(zarr_selection_parse(&sel[k], 2, zarr_array_shape(a),
                                           k ? "4:16" : "0:12", &err));
            assert_ok(zarr_array_write_submit(&rq[k], a, sel[k], &t, NULL, &err));
        }
        for (int k = 0; k < 2; k++) {
            assert_ok(zarr_request_wait(rq[k], UINT64_MAX, NULL, &err));
            zarr_request_free(rq[k]);
            zarr_selection_free(sel[k]);
        }
        assert_ok(zarr_array_read(a, NULL, &all, NULL, &err));
        for (size_t i = 0; i < (size_t)16 * N; i++)
            assert_true(i < (size_t)4 * N    ? got[i] == -1
                        : i < (size_t)12 * N ? got[i] == -1 || got[i] == -2
                                             : got[i] == -2);
        zarr_array_free(a);
        close_stores();
    }
    alarm(0);
}

/* A damaged old value fails the write, and is not changed. */
static void test_damaged_old(void **state)
{
    const uint64_t chunk[] = {2, 1};

    (void)state;
    for (size_t i = 0; i < 2 * (size_t)N_KINDS; i++) {
        zarr_tensor t = half_tensor();
        zarr_selection *sel = NULL;
        zarr_array *a = NULL, *b = NULL;
        uint64_t n = 100;
        uint8_t bytes[100];

        open_stores(part_caps[i % 2]);
        a = make_array((enum kind)(i / 2));
        assert_ok(zarr_array_open(&b, memory, "a", NULL, &err));
        memset(bytes, 0x11, sizeof bytes);
        assert_ok(zarr_array_block_write_encoded(b, chunk, bytes, n, NULL, &err));
        sel = columns(a, 0);
        assert_int_equal(zarr_array_write(a, sel, &t, NULL, &err), ZARR_ERR_CORRUPT);
        assert_non_null(strstr(err.message, "a/c/2/1"));
        memset(bytes, 0, sizeof bytes);
        assert_ok(zarr_array_block_read_encoded(b, chunk, bytes, &n, NULL, &err));
        assert_int_equal(n, 100);
        assert_int_equal(bytes[0], 0x11);
        zarr_selection_free(sel);
        zarr_array_free(b);
        zarr_array_free(a);
        close_stores();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_write),       cmocka_unit_test(test_write_part),
        cmocka_unit_test(test_write_mixed), cmocka_unit_test(test_conflict),
        cmocka_unit_test(test_two_writers), cmocka_unit_test(test_crossed_writers),
        cmocka_unit_test(test_damaged_old), cmocka_unit_test(test_few_shards),
    };

    return cmocka_run_group_tests_name("round trips of writes", tests, NULL, NULL);
}
