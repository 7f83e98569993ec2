/*
 * unit/pipe/test_requests.c - how a program learns that a request is done: continuations
 * (order, once, freeing, submitting, after the end, threads, forks, no memory), and a
 * descriptor.
 */
#include "gate_store.h"

#include "pipe/pipe_int.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static zarr_request *start_read(struct scene *s)
{
    zarr_request *rq = NULL;

    assert_ok(zarr_array_read_submit(&rq, s->a, NULL, &s->t, NULL, &terr));
    return rq;
}

/* The request is done, and no thread calls its functions any more. */
static void wait_settled(zarr_request *rq)
{
    assert_true(zr_event_wait(&rq->settled, zr_now_ns() + UINT64_C(20000000000)));
}

/* ---- continuations ----------------------------------------------------------------- */

static struct {
    atomic_int n;
    int order[16];
    zarr_status status;
    zarr_error err;
    pthread_t thread;
    zarr_request *to_free, *again;
    struct scene *scene;
} told;

static void tell(void *user, zarr_status status, const zarr_error *err)
{
    const int at = atomic_load(&told.n);

    told.order[at] = (int)(intptr_t)user;
    told.status = status;
    if (err)
        told.err = *err;
    assert_true((err != NULL) == (status != ZARR_OK));
    told.thread = pthread_self();
    atomic_fetch_add(&told.n, 1);
}

static void *number(int i)
{
    return (void *)(intptr_t)i;
}

/* In order, once each, with the result in place; a free waits for them. */
static void test_order(void **state)
{
    struct scene *s = NULL;
    zarr_request *rq;

    (void)state;
    for (int round = 0; round < 20; round++) {
        memset(&told, 0, sizeof told);
        s = scene_open();
        gate_set(true);
        rq = start_read(s);
        for (int i = 0; i < 5; i++)
            assert_ok(zarr_request_then(rq, tell, number(i), &terr));
        assert_int_equal(atomic_load(&told.n), 0);
        gate_set(false);
        if (round % 2)
            assert_ok(zarr_request_wait(rq, ZARR_WAIT_FOREVER, NULL, &terr));
        else
            while (atomic_load(&told.n) < 5)
                usleep(100);
        zarr_request_free(rq);
        assert_int_equal(atomic_load(&told.n), 5);
        for (int i = 0; i < 5; i++)
            assert_int_equal(told.order[i], i);
        assert_int_equal(told.status, ZARR_OK);
        assert_memory_equal(got, data, sizeof data);
        scene_close(s);
    }
}

/* Done already: on this thread, before the call returns. */
static void test_late(void **state)
{
    struct scene *s = NULL;
    zarr_request *rq;

    (void)state;
    memset(&told, 0, sizeof told);
    s = scene_open();
    rq = start_read(s);
    assert_ok(zarr_request_then(rq, tell, number(0), &terr));
    wait_settled(rq);
    assert_int_equal(atomic_load(&told.n), 1);
    assert_ok(zarr_request_then(rq, tell, number(1), &terr));
    assert_int_equal(atomic_load(&told.n), 2);
    assert_int_equal(told.order[1], 1);
    assert_true(pthread_equal(told.thread, pthread_self()));
    zarr_request_free(rq);
    assert_status(zarr_request_then(NULL, tell, NULL, &terr), ZARR_ERR_INVALID);
    rq = start_read(s);
    assert_status(zarr_request_then(rq, NULL, NULL, &terr), ZARR_ERR_INVALID);
    zarr_request_free(rq);
    scene_close(s);
}

/* A cancelled or failed request calls them with its error; free cancels. */
static void test_failed(void **state)
{
    struct scene *s = NULL;
    zarr_request *rq;

    (void)state;
    memset(&told, 0, sizeof told);
    s = scene_open();
    gate_set(true);
    rq = start_read(s);
    assert_ok(zarr_request_then(rq, tell, number(0), &terr));
    zarr_request_cancel(rq);
    gate_set(false);
    zarr_request_free(rq);
    assert_int_equal(atomic_load(&told.n), 1);
    assert_int_equal(told.status, ZARR_ERR_CANCELLED);
    assert_int_equal(told.err.code, ZARR_ERR_CANCELLED);
    assert_ok(zarr_store_put(s->w.store, "a/c/0/0", "x", 1, NULL, &terr));
    gate_set(true);
    rq = start_read(s);
    s->w.fails_on = zr_thread_self();
    s->w.fails_one = true; /* not one of the read, which waits for chunks */
    atomic_store(&s->w.fail_in, 1);
    assert_status(zarr_request_then(rq, tell, number(9), &terr), ZARR_ERR_NO_MEMORY);
    atomic_store(&s->w.fail_in, 0);
    gate_set(false);
    assert_ok(zarr_request_then(rq, tell, number(1), &terr));
    assert_status(zarr_request_wait(rq, ZARR_WAIT_FOREVER, NULL, &terr),
                  ZARR_ERR_CORRUPT);
    zarr_request_free(rq);
    assert_int_equal(atomic_load(&told.n), 2);
    assert_int_equal(told.status, ZARR_ERR_CORRUPT);
    assert_string_equal(told.err.message, terr.message);
    scene_close(s);
}

static void free_it(void *user, zarr_status status, const zarr_error *err)
{
    zarr_request_free(told.to_free);
    tell(user, status, err);
}

static void add_one(void *user, zarr_status status, const zarr_error *err)
{
    tell(user, status, err);
    assert_ok(zarr_request_then(told.to_free, tell, number(7), &terr));
}

static atomic_int chain_left;

/* Frees its request and submits the next one. */
static void chain(void *user, zarr_status status, const zarr_error *err)
{
    struct scene *s = user;
    zarr_request *rq = told.to_free;

    (void)err;
    assert_int_equal(status, ZARR_OK);
    zarr_request_free(rq);
    if (atomic_fetch_sub(&chain_left, 1) == 1)
        return;
    told.to_free = start_read(s);
    assert_ok(zarr_request_then(told.to_free, chain, s, &terr));
}

static void test_freed_inside(void **state)
{
    struct scene *s = NULL;

    (void)state;
    for (int round = 0; round < 20; round++) {
        memset(&told, 0, sizeof told);
        s = scene_open();
        gate_set(true);
        told.to_free = start_read(s);
        assert_ok(zarr_request_then(told.to_free, add_one, number(0), &terr));
        assert_ok(zarr_request_then(told.to_free, free_it, number(1), &terr));
        assert_ok(zarr_request_then(told.to_free, tell, number(2), &terr));
        gate_set(false);
        while (atomic_load(&told.n) < 4)
            usleep(100);
        assert_int_equal(told.order[1], 1);
        assert_int_equal(told.order[2], 2);
        assert_int_equal(told.order[3], 7); /* added by the first */
        scene_close(s);
    }
}

/* The request is done when the function is added, which frees it on this thread. */
static void test_chain(void **state)
{
    struct scene *s = NULL;

    (void)state;
    memset(&told, 0, sizeof told);
    s = scene_open();
    atomic_store(&chain_left, 200);
    told.to_free = start_read(s);
    assert_ok(zarr_request_then(told.to_free, chain, s, &terr));
    while (atomic_load(&chain_left) > 0)
        usleep(1000);
    scene_close(s);
}

/* ---- many threads ---------------------------------------------------------------- */

static atomic_int n_calls;

static void count_call(void *user, zarr_status status, const zarr_error *err)
{
    (void)user;
    (void)err;
    assert_int_equal(status, ZARR_OK);
    atomic_fetch_add(&n_calls, 1);
}

static void *add_many(void *arg)
{
    for (int i = 0; i < 50; i++)
        assert_ok(zarr_request_then(arg, count_call, NULL, NULL));
    return NULL;
}

static void test_threads(void **state)
{
    struct scene *s = NULL;

    (void)state;
    s = scene_open();
    for (int round = 0; round < 30; round++) {
        zarr_request *rq = start_read(s);
        pthread_t thread[4];

        atomic_store(&n_calls, 0);
        for (int i = 0; i < 4; i++)
            assert_int_equal(pthread_create(&thread[i], NULL, add_many, rq), 0);
        for (int i = 0; i < 4; i++)
            pthread_join(thread[i], NULL);
        assert_ok(zarr_request_wait(rq, ZARR_WAIT_FOREVER, NULL, &terr));
        zarr_request_free(rq);
        assert_int_equal(atomic_load(&n_calls), 200);
    }
    scene_close(s);
}

/* ---- fork -------------------------------------------------------------------------- */

static void test_fork(void **state)
{
    struct scene *s = NULL;
    zarr_request *rq;
    int status = 0, fd = -1, other = -1;
    pid_t pid;

    (void)state;
    memset(&told, 0, sizeof told);
    s = scene_open();
    gate_set(true);
    rq = start_read(s);
    assert_ok(zarr_request_then(rq, tell, number(1), &terr));
    assert_ok(zarr_request_fd(rq, &fd, &terr));
    pid = fork();
    if (pid == 0) {
        int bad = 0;

        bad |= zarr_request_then(rq, tell, number(2), NULL) != ZARR_OK;
        bad |= told.n != 1 || told.order[0] != 2 || told.status != ZARR_ERR_CANCELLED;
        bad |= zarr_request_fd(rq, &other, NULL) != ZARR_ERR_CANCELLED || other != -1;
        zarr_request_free(rq);
        bad |= told.n != 1;
        bad |= fcntl(fd, F_GETFD) != -1; /* this process has it no more */
        _exit(bad);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(atomic_load(&told.n), 0);
    gate_set(false);
    assert_ok(zarr_request_wait(rq, ZARR_WAIT_FOREVER, NULL, &terr));
    zarr_request_free(rq);
    assert_int_equal(atomic_load(&told.n), 1);
    assert_int_equal(told.order[0], 1);
    assert_int_equal(told.status, ZARR_OK);
    scene_close(s);
}

/* ---- a descriptor ------------------------------------------------------------------ */

static bool is_readable(int fd, int timeout_ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, timeout_ms) == 1 && (p.revents & POLLIN);
}

static void test_fd(void **state)
{
    struct rlimit most, none;
    zarr_request *rq;
    struct scene *s = NULL;
    int fd = -1, same = -1, done = 0;

    (void)state;
    s = scene_open();
    gate_set(true);
    rq = start_read(s);
    assert_ok(zarr_request_fd(rq, &fd, &terr));
    assert_true(fd >= 0);
    assert_ok(zarr_request_fd(rq, &same, &terr));
    assert_int_equal(same, fd);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_false(is_readable(fd, 20));
    gate_set(false);
    assert_true(is_readable(fd, 10000));
    assert_ok(zarr_request_wait(rq, 0, &done, &terr));
    assert_int_equal(done, 1);
    assert_true(is_readable(fd, 0)); /* it stays so */
    zarr_request_free(rq);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
    rq = start_read(s);
    wait_settled(rq);
    assert_ok(zarr_request_fd(rq, &fd, &terr)); /* done already */
    assert_true(is_readable(fd, 0));
    zarr_request_free(rq);
    rq = start_read(s);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &most), 0);
    none = most;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    assert_status(zarr_request_fd(rq, &fd, &terr), ZARR_ERR_IO);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &most), 0);
    assert_int_equal(fd, -1);
    assert_ok(zarr_request_fd(rq, &fd, &terr));
    zarr_request_free(rq);
    assert_status(zarr_request_fd(NULL, &fd, &terr), ZARR_ERR_INVALID);
    scene_close(s);
}

/* ---- cancel objects of submitted requests --- */

static zarr_cancel *signalled;

static void on_alarm(int number_of_signal)
{
    (void)number_of_signal;
    zarr_cancel_set(signalled);
}

/* One object stops all requests that have it, from a signal handler. */
static void test_one_cancels_all(void **state)
{
    enum {
        AT_ONCE = 6
    };
    struct sigaction action = {.sa_handler = on_alarm}, before;
    const struct itimerval soon = {.it_value.tv_usec = 50000};
    zarr_io_options o = ZARR_IO_OPTIONS_INIT;
    zarr_request *rq[AT_ONCE];
    struct scene *s = NULL;

    (void)state;
    s = scene_open();
    gate_set(true);
    assert_ok(zarr_cancel_create(&signalled, &terr));
    o.cancel = signalled;
    for (int i = 0; i < AT_ONCE; i++)
        assert_ok(zarr_array_read_submit(&rq[i], s->a, NULL, &s->t, &o, &terr));
    assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &soon, NULL), 0);
    while (!zarr_cancel_is_set(signalled))
        usleep(1000);
    gate_set(false);
    for (int i = 0; i < AT_ONCE; i++) {
        assert_status(zarr_request_wait(rq[i], ZARR_WAIT_FOREVER, NULL, &terr),
                      ZARR_ERR_CANCELLED);
        zarr_request_free(rq[i]);
    }
    assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
    zarr_cancel_free(signalled);
    scene_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_order, gate_open),
        cmocka_unit_test_teardown(test_late, gate_open),
        cmocka_unit_test_teardown(test_failed, gate_open),
        cmocka_unit_test_teardown(test_freed_inside, gate_open),
        cmocka_unit_test_teardown(test_chain, gate_open),
        cmocka_unit_test_teardown(test_threads, gate_open),
        cmocka_unit_test_teardown(test_fork, gate_open),
        cmocka_unit_test_teardown(test_fd, gate_open),
        cmocka_unit_test_teardown(test_one_cancels_all, gate_open),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
