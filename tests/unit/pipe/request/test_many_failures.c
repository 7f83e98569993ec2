/*
 * unit/pipe/request/test_many_failures.c - several selections in one request: a chunk
 * that fails fails only its parts; what arguments are refused; requests that are
 * submitted, and allocations that fail.
 */
#include "unit/pipe/many_test.h"

/* ---- failures ----------------------------------------------------------------- */

static void damage(zarr_array *a, uint64_t row, uint64_t col, uint64_t at, uint64_t n)
{
    const uint64_t chunk[2] = {row, col};
    static uint8_t bytes[65536];
    uint64_t len = sizeof bytes;

    assert_ok(zarr_array_block_read_encoded(a, chunk, bytes, &len, NULL, &terr));
    if (at > len)
        at = len - n;
    memset(bytes + at, 0xa5, n);
    assert_ok(zarr_array_block_write_encoded(a, chunk, bytes, len, NULL, &terr));
}

static void read_damaged(zarr_array *a, const zarr_io_options *o)
{
    box_part(0, 17, 0, 12, 12); /* the chunk below */
    box_part(1, 2, 0, 20, 5);   /* the damaged one, and the one below */
    box_part(2, 0, 21, 16, 10); /* beside it */
    box_part(3, 0, 0, 3, 3);
    assert_status(zarr_array_read_many(a, ask, 4, o, &terr), ZARR_ERR_CORRUPT);
    assert_int_equal(terr.item, 1);
    assert_non_null(strstr(terr.message, "a/c/0/0"));
    assert_int_equal(ask[0].status, ZARR_OK);
    assert_int_equal(ask[1].status, ZARR_ERR_CORRUPT);
    assert_int_equal(ask[2].status, ZARR_OK);
    assert_int_equal(ask[3].status, ZARR_ERR_CORRUPT);
    assert_string_equal(part[1].err.message, terr.message);
    assert_int_equal(part[0].err.code, ZARR_OK);
    assert_int_equal(part[3].err.code, ZARR_ERR_CORRUPT);
    assert_true(part[3].err.part[ZARR_ERROR_KEY].bytes > 0);
    assert_true(part[3].err.part[ZARR_ERROR_PATH].bytes > 0);
    check_box(0, 17, 0, 12, 12);
    check_box(2, 0, 21, 16, 10);
    free_parts(4);
}

/* A damaged chunk, a damaged index, and an inner chunk between good ones. */
static void test_failures(void **state)
{
    static const struct {
        size_t kind;
        uint64_t at, n;
    } faults[] = {{1, 5, 40}, {4, UINT64_MAX, 30}, {7, UINT64_MAX, 30}};

    (void)state;
    for (size_t f = 0; f < ZR_COUNT(faults); f++)
        for (uint32_t threads = 1; threads <= 4; threads += 3) {
            zarr_io_options o = ZARR_IO_OPTIONS_INIT;
            struct pw w;
            zarr_array *a;

            pw_open(&w, threads, UINT64_C(64) << 20, 0);
            a = full(&w, "a", faults[f].kind);
            damage(a, 0, 0, faults[f].at, faults[f].n);
            read_damaged(a, &o);
            o.tuning = TUNING(.pipeline = "serial");
            read_damaged(a, &o);
            zarr_array_free(a);
            pw_close(&w);
        }
}

/* Inner chunks that are fetched together: the good ones of the range are read. */
static void test_inner_failure(void **state)
{
    zarr_io_options o = ZARR_IO_OPTIONS_INIT;
    struct pw w;
    zarr_array *a;

    (void)state;
    pw_open(&w, 1, UINT64_C(64) << 20, 0);
    a = pw_array(w.store, "a", "[" SHARD("[16,4]", BYTES "," CRC, "end") "]", shape,
                 kinds[1].chunk);
    for (int i = 0; i < N; i++)
        data[i] = i * 11 + 1;
    assert_ok(pw_box(a, zero, shape, data, NULL, true));
    damage(a, 0, 0, 270, 4); /* in the second of four inner chunks of 260 bytes */
    for (int i = 0; i < 4; i++)
        box_part(i, 1, 4 * (uint64_t)i, 10, 4);
    assert_status(zarr_array_read_many(a, ask, 4, &o, &terr), ZARR_ERR_CORRUPT);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(ask[i].status, i == 1 ? ZARR_ERR_CORRUPT : ZARR_OK);
        if (i != 1)
            check_box(i, 1, 4 * (uint64_t)i, 10, 4);
    }
    assert_int_equal(terr.item, 1);
    assert_non_null(strstr(terr.message, "chunk [0,1]"));
    free_parts(4);
    zarr_array_free(a);
    pw_close(&w);
}

/* A missing chunk that must not be missing, and a write into a damaged chunk. */
static void test_other_failures(void **state)
{
    const uint64_t gone[2] = {1, 1};
    zarr_io_options o = ZARR_IO_OPTIONS_INIT;
    struct pw w;
    zarr_array *a;

    (void)state;
    pw_open(&w, 2, UINT64_C(64) << 20, 0);
    a = full(&w, "a", 1);
    assert_ok(zarr_array_block_erase(a, gone, NULL, &terr));
    o.missing_chunks = ZARR_MISSING_ERROR;
    box_part(0, 0, 0, 10, 40);
    box_part(1, 10, 20, 10, 10);
    assert_status(zarr_array_read_many(a, ask, 2, &o, &terr), ZARR_ERR_NOT_FOUND);
    assert_int_equal(terr.item, 1);
    assert_int_equal(ask[0].status, ZARR_OK);
    assert_int_equal(ask[1].status, ZARR_ERR_NOT_FOUND);
    check_box(0, 0, 0, 10, 40);
    free_parts(2);

    damage(a, 0, 0, 5, 40);
    box_part(0, 1, 1, 3, 3);   /* a part of the damaged chunk */
    box_part(1, 40, 0, 10, 9); /* elsewhere */
    memset(crop[1], 7, sizeof crop[1]);
    assert_status(zarr_array_write_many(a, ask, 2, NULL, &terr), ZARR_ERR_CORRUPT);
    assert_int_equal(ask[0].status, ZARR_ERR_CORRUPT);
    assert_int_equal(ask[1].status, ZARR_OK);
    free_parts(2);
    box_part(1, 40, 0, 10, 9);
    memset(crop[1], 0, sizeof crop[1]);
    assert_ok(zarr_array_read(a, part[1].sel, &part[1].t, NULL, &terr));
    assert_int_equal(crop[1][89], 0x07070707);
    zarr_selection_free(part[1].sel);
    zarr_array_free(a);
    pw_close(&w);
}

static void test_arguments(void **state)
{
    struct pw w;
    zarr_array *a;
    zarr_request *rq = NULL;
    zarr_tensor packed;

    (void)state;
    pw_open(&w, 2, UINT64_C(64) << 20, 0);
    a = full(&w, "a", 1);
    assert_ok(zarr_array_read_many(a, NULL, 0, NULL, &terr));
    assert_ok(zarr_array_write_many(a, NULL, 0, NULL, &terr));
    assert_status(zarr_array_read_many(a, NULL, 1, NULL, &terr), ZARR_ERR_INVALID);
    box_part(0, 0, 0, 4, 4);
    box_part(1, 0, 0, 4, 4);
    part[1].shape[1] = 5;
    memset(crop[0], 0, sizeof crop[0]);
    assert_status(zarr_array_read_many(a, ask, 2, NULL, &terr), ZARR_ERR_INVALID);
    assert_int_equal(terr.item, 1);
    assert_non_null(strstr(terr.message, "a: part 1: "));
    assert_int_equal(ask[0].status, ZARR_ERR_INVALID);
    assert_int_equal(part[0].err.code, ZARR_ERR_INVALID);
    assert_int_equal(crop[0][1], 0);
    assert_status(zarr_array_write_many_submit(&rq, a, ask, 2, NULL, &terr),
                  ZARR_ERR_INVALID);
    assert_null(rq);
    part[1].shape[1] = 4;
    packed = part[1].t;
    packed.flags = ZARR_TENSOR_PACKED;
    ask[1].tensor = &packed;
    assert_status(zarr_array_read_many(a, ask, 2, NULL, &terr), ZARR_ERR_UNSUPPORTED);
    ask[1].tensor = &part[1].t;
    ask[1].reserved = 1;
    assert_status(zarr_array_read_many(a, ask, 2, NULL, &terr), ZARR_ERR_UNSUPPORTED);
    ask[1].reserved = 0;
    free_parts(2);
    ask[0] = (zarr_io_part){.tensor = &part[0].t}; /* all elements */
    part[0].shape[0] = ROWS;
    part[0].shape[1] = COLS;
    zarr_tensor_host(&part[0].t, NULL, crop[0], sizeof crop[0], 2, part[0].shape);
    assert_ok(zarr_array_read_many(a, ask, 1, NULL, &terr));
    assert_memory_equal(crop[0], data, sizeof data);
    zarr_array_free(a);
    pw_close(&w);
}

/* ---- requests ------------------------------------------------------------------ */

static void note_status(void *user, zarr_status status, const zarr_error *e)
{
    zarr_status *to = user;

    (void)status;
    (void)e;
    to[0] = ask[0].status; /* they are set before */
    to[1] = ask[1].status;
}

static void test_submitted(void **state)
{
    zarr_status seen[2] = {ZARR_ERR_INTERNAL, ZARR_ERR_INTERNAL};
    zarr_io_options o = ZARR_IO_OPTIONS_INIT;
    zarr_stats stats = ZARR_STATS_INIT;
    zarr_cancel *cancel = NULL;
    zarr_request *rq = NULL;
    struct pw w;
    zarr_array *a;

    (void)state;
    pw_open(&w, 2, UINT64_C(64) << 20, 0);
    a = full(&w, "a", 4);
    o.stats = &stats;
    box_part(0, 0, 0, 20, 20);
    box_part(1, 5, 5, 20, 20);
    assert_ok(zarr_array_read_many_submit(&rq, a, ask, 2, &o, &terr));
    assert_ok(zarr_request_then(rq, note_status, seen, &terr));
    assert_ok(zarr_request_wait(rq, ZARR_WAIT_FOREVER, NULL, &terr));
    check_box(0, 0, 0, 20, 20);
    check_box(1, 5, 5, 20, 20);
    zarr_request_free(rq);
    assert_int_equal(seen[0], ZARR_OK);
    assert_int_equal(seen[1], ZARR_OK);
    assert_int_equal(stats.chunks_total, stats.chunks_done);
    assert_ok(zarr_array_write_many_submit(&rq, a, ask, 2, &o, &terr));
    zarr_request_free(rq);
    assert_ok(zarr_array_read_many_submit(&rq, a, ask, 0, NULL, &terr));
    assert_ok(zarr_request_wait(rq, ZARR_WAIT_FOREVER, NULL, &terr));
    zarr_request_free(rq);

    assert_ok(zarr_cancel_create(&cancel, &terr));
    zarr_cancel_set(cancel);
    o.cancel = cancel;
    for (int write = 0; write < 2; write++) {
        assert_status(write ? zarr_array_write_many(a, ask, 2, &o, &terr)
                            : zarr_array_read_many(a, ask, 2, &o, &terr),
                      ZARR_ERR_CANCELLED);
        assert_int_equal(ask[0].status, ZARR_ERR_CANCELLED);
        assert_int_equal(ask[1].status, ZARR_ERR_CANCELLED);
        assert_int_equal(part[1].err.code, ZARR_ERR_CANCELLED);
    }
    assert_ok(zarr_array_read_many_submit(&rq, a, ask, 2, &o, &terr));
    assert_status(zarr_request_wait(rq, ZARR_WAIT_FOREVER, NULL, &terr),
                  ZARR_ERR_CANCELLED);
    assert_int_equal(ask[0].status, ZARR_ERR_CANCELLED);
    zarr_request_free(rq);
    zarr_cancel_free(cancel);
    free_parts(2);
    zarr_array_free(a);
    pw_close(&w);
}

/* An array that was deleted meanwhile is the failure of all parts. */
static void test_gone(void **state)
{
    struct pw w;
    zarr_array *a;

    (void)state;
    pw_open(&w, 2, UINT64_C(64) << 20, 0);
    a = full(&w, "a", 1);
    assert_ok(zarr_node_delete(w.store, "a", &terr));
    box_part(0, 0, 0, 20, 20);
    box_part(1, 5, 5, 20, 20);
    assert_status(zarr_array_read_many(a, ask, 2, NULL, &terr), ZARR_ERR_NOT_FOUND);
    assert_int_equal(ask[0].status, ZARR_ERR_NOT_FOUND);
    assert_int_equal(ask[1].status, ZARR_ERR_NOT_FOUND);
    assert_status(zarr_array_write_many(a, ask, 2, NULL, &terr), ZARR_ERR_NOT_FOUND);
    assert_int_equal(ask[1].status, ZARR_ERR_NOT_FOUND);
    free_parts(2);
    zarr_array_free(a);
    pw_close(&w);
}

/* ---- allocations that fail ------------------------------------------------------ */

/* Each allocation fails once: the call fails, and so does a part, or all of them. */
static void fail_each(struct pw *w, zarr_array *a, bool write)
{
    zarr_status st = ZARR_ERR_NO_MEMORY;
    int64_t k = 1;

    for (; st != ZARR_OK; k++) {
        for (int i = 0; i < 2; i++)
            ask[i].status = ZARR_ERR_INTERNAL;
        atomic_store(&w->fail_in, k);
        st = write ? zarr_array_write_many(a, ask, 2, NULL, &terr)
                   : zarr_array_read_many(a, ask, 2, NULL, &terr);
        for (int i = 0; i < 2; i++)
            assert_true(ask[i].status == ZARR_OK || ask[i].status == ZARR_ERR_NO_MEMORY);
        assert_int_equal(st, ask[0].status != ZARR_OK ? ask[0].status : ask[1].status);
    }
    atomic_store(&w->fail_in, 0);
    assert_true(k > 10);
}

static void test_no_memory(void **state)
{
    struct pw w;
    zarr_array *a;

    (void)state;
    pw_open(&w, 1, UINT64_C(64) << 20, 0);
    a = full(&w, "a", 4);
    box_part(0, 0, 0, 20, 20);
    box_part(1, 5, 5, 20, 20);
    fail_each(&w, a, false);
    fail_each(&w, a, true);
    free_parts(2);
    zarr_array_free(a);
    pw_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_failures),       cmocka_unit_test(test_inner_failure),
        cmocka_unit_test(test_other_failures), cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_submitted),      cmocka_unit_test(test_gone),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests_name("several selections, failures", tests, NULL, NULL);
}
