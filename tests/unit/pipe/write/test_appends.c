/*
 * unit/pipe/write/test_appends.c - submitted appends: several at once, cancelled ones,
 * and wrong arguments.
 */
#include "unit/pipe/gate_store.h"

static atomic_int n_told;

static void count_told(void *user, zarr_status status, const zarr_error *err)
{
    (void)user;
    (void)err;
    assert_int_equal(status, ZARR_OK);
    atomic_fetch_add(&n_told, 1);
}

static void test_append(void **state)
{
    enum {
        AT_ONCE = 8
    };
    static int32_t rows[AT_ONCE][3 * N];
    const uint64_t dims[2] = {3, N};
    zarr_request *rq[AT_ONCE] = {NULL};
    uint64_t first[AT_ONCE], now[2] = {0, 0};
    zarr_stats stats = ZARR_STATS_INIT;
    zarr_tensor t[AT_ONCE];
    bool seen[AT_ONCE] = {false};
    struct scene *s = NULL;

    (void)state;
    atomic_store(&n_told, 0);
    s = scene_open();
    for (int i = 0; i < AT_ONCE; i++) {
        for (int k = 0; k < 3 * N; k++)
            rows[i][k] = 1000 * (i + 1) + k;
        t[i] = pw_tensor(rows[i], dims, sizeof rows[i]);
        first[i] = UINT64_MAX;
        assert_ok(
            zarr_array_append_submit(&rq[i], s->a, 0, &t[i], &first[i], NULL, &terr));
        assert_ok(zarr_request_then(rq[i], count_told, NULL, &terr));
    }
    for (int i = 0; i < AT_ONCE; i++) {
        for (int done = 0; !done;) { /* asks also while the append begins */
            zarr_request_progress(rq[i], &stats);
            assert_ok(zarr_request_wait(rq[i], 1000, &done, &terr));
        }
        zarr_request_progress(rq[i], &stats);
        assert_true(stats.elements == UINT64_C(3) * N && stats.chunks_done >= N / CHUNK);
        zarr_request_free(rq[i]);
    }
    assert_int_equal(atomic_load(&n_told), AT_ONCE);
    memcpy(now, zarr_array_shape(s->a), sizeof now);
    assert_int_equal(now[0], N + 3 * AT_ONCE);
    for (int i = 0; i < AT_ONCE; i++) {
        const uint64_t start[2] = {first[i], 0}, count[2] = {3, N};

        assert_true(first[i] >= N && first[i] % 3 == 0 && first[i] < now[0]);
        assert_false(seen[(first[i] - N) / 3]);
        seen[(first[i] - N) / 3] = true;
        assert_ok(pw_box(s->a, start, count, got, NULL, false));
        assert_memory_equal(got, rows[i], sizeof rows[i]);
    }
    scene_close(s);
}

/* Cancelled by its handle, by its object, and by its free; the shape stays. */
static void test_append_cancelled(void **state)
{
    static int32_t rows[3 * N];
    const uint64_t dims[2] = {3, N};
    const zarr_tensor t = pw_tensor(rows, dims, sizeof rows);
    struct scene *s = NULL;

    (void)state;
    s = scene_open();
    for (int how = 0; how < 3; how++) {
        zarr_io_options o = ZARR_IO_OPTIONS_INIT;
        uint64_t first = 77;
        zarr_request *rq = NULL;
        zarr_cancel *c = NULL;

        assert_ok(zarr_cancel_create(&c, &terr));
        o.cancel = c;
        gate_set(true);
        assert_ok(zarr_array_append_submit(&rq, s->a, 0, &t, &first, &o, &terr));
        zarr_cancel_free(zr_cancel_ref(c));
        if (how == 0)
            zarr_request_cancel(rq);
        else if (how == 1)
            zarr_cancel_set(c);
        zarr_cancel_free(c); /* the request is an owner */
        if (how == 2)
            zarr_request_cancel(rq);
        gate_set(false);
        if (how < 2)
            assert_status(zarr_request_wait(rq, ZARR_WAIT_FOREVER, NULL, &terr),
                          ZARR_ERR_CANCELLED);
        zarr_request_free(rq);
        assert_int_equal(first, 77);
        assert_int_equal(zarr_array_shape(s->a)[0], N);
    }
    {
        uint64_t first = 0;

        assert_ok(zarr_array_append(s->a, 0, &t, &first, NULL, &terr));
        assert_int_equal(first, N);
        assert_ok(zarr_array_append(s->a, 0, &t, &first, NULL, &terr));
        assert_int_equal(first, N + 3);
    }
    scene_close(s);
}

/* Wrong arguments: of options at once, of the tensor by the wait. */
static void test_append_wrong(void **state)
{
    const uint64_t dims[2] = {3, N + 1};
    const zarr_tensor t = pw_tensor(got, dims, sizeof got);
    zarr_io_options o = {.struct_size = sizeof o, .flags = 1u << 30};
    zarr_request *rq = (zarr_request *)(void *)got;
    struct scene *s = NULL;

    (void)state;
    s = scene_open();
    assert_status(zarr_array_append_submit(&rq, s->a, 0, &t, NULL, &o, &terr),
                  ZARR_ERR_UNSUPPORTED);
    assert_null(rq);
    assert_ok(zarr_array_append_submit(&rq, s->a, 0, &t, NULL, NULL, &terr));
    assert_status(zarr_request_wait(rq, ZARR_WAIT_FOREVER, NULL, &terr),
                  ZARR_ERR_INVALID);
    zarr_request_free(rq);
    scene_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_append, gate_open),
        cmocka_unit_test_teardown(test_append_cancelled, gate_open),
        cmocka_unit_test_teardown(test_append_wrong, gate_open),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
