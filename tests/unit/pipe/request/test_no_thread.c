/*
 * unit/pipe/request/test_no_thread.c - the system starts no thread (its limit of
 * processes is reached): reads, writes and submitted requests go on with the caller's
 * thread.
 */
#include "unit/pipe/pipe_test.h"

#include <errno.h>
#include <pthread.h>

static int n_refused;

/* Replaces the function of the C library. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
                   void *arg)
{
    (void)thread;
    (void)attr;
    (void)fn;
    (void)arg;
    n_refused++;
    return EAGAIN;
}

enum {
    N = 1000
};

static int n_told;

static void on_this_thread(void *user, zarr_status status, const zarr_error *err)
{
    assert_int_equal(status, ZARR_OK);
    assert_null(err);
    assert_true(pthread_equal(*(pthread_t *)user, pthread_self()));
    n_told++;
}

static void test_no_thread(void **state)
{
    const uint64_t shape = N, chunk = 10;
    const zarr_array_spec spec = {.struct_size = sizeof spec,
                                  .ndim = 1,
                                  .shape = &shape,
                                  .chunk_shape = &chunk,
                                  .data_type = "int32"};
    static int32_t data[N], back[N];
    const uint64_t n = N;
    zarr_request *rq = NULL;
    zarr_array *a = NULL;
    pthread_t me = pthread_self();
    zarr_tensor t;
    struct pw w;

    (void)state;
    for (int i = 0; i < N; i++)
        data[i] = i;
    pw_open(&w, 8, 0, 0);
    assert_ok(zarr_array_create(&a, w.store, "a", &spec, NULL, &terr));
    zarr_tensor_host(&t, NULL, data, sizeof data, 1, &n);
    assert_ok(zarr_array_write(a, NULL, &t, NULL, &terr));
    zarr_tensor_host(&t, NULL, back, sizeof back, 1, &n);
    assert_ok(zarr_array_read(a, NULL, &t, NULL, &terr));
    assert_memory_equal(data, back, sizeof data);
    memset(back, 0, sizeof back);
    assert_ok(zarr_array_read_submit(&rq, a, NULL, &t, NULL, &terr));
    assert_ok(zarr_request_then(rq, on_this_thread, &me, &terr));
    assert_int_equal(n_told, 1);
    assert_ok(zarr_request_wait(rq, ZARR_WAIT_FOREVER, NULL, &terr));
    zarr_request_free(rq);
    assert_memory_equal(data, back, sizeof data);
    assert_true(n_refused > 0);
    zarr_array_free(a);
    pw_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_no_thread)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
