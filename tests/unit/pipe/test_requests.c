/*
 * unit/pipe/test_requests.c - how a program learns that a request is done: continuations
 * (order, once, freeing, submitting, after the end, threads, forks, no memory), a
 * descriptor, and submitted appends.
 */
#include "pipe_test.h"

#include "pipe/pipe_int.h"
#include <zarrc/plugin/store.h>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    N = 24,
    CHUNK = 4
};

static const uint64_t shape[2] = {N, N}, chunk[2] = {CHUNK, CHUNK}, zero[2];
static int32_t data[N * N], got[N * N];

/* ---- a gate: GETs of chunks wait until it opens ------------------------------------ */

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bool closed;
    zarr_store *below;
} gate = {.mutex = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};

static void gate_set(bool closed)
{
    pthread_mutex_lock(&gate.mutex);
    gate.closed = closed;
    pthread_cond_broadcast(&gate.cond);
    pthread_mutex_unlock(&gate.mutex);
}

static void gate_caps(void *self, zarr_store_caps *out)
{
    (void)self;
    out->flags = ZARR_STORE_CAP_LIST | ZARR_STORE_CAP_WRITE | ZARR_STORE_CAP_ATOMIC_PUT;
}

static void gate_run(void *self, zarr_store_op *op, zarr_error *err)
{
    char *p = op->mem.handle ? (char *)op->mem.handle + op->mem.offset : NULL;

    (void)self;
    pthread_mutex_lock(&gate.mutex);
    while (gate.closed && strstr(op->key, "/c/"))
        pthread_cond_wait(&gate.cond, &gate.mutex);
    pthread_mutex_unlock(&gate.mutex);
    op->done_bytes = 0;
    op->object_bytes = UINT64_MAX;
    if (op->verb == ZARR_STORE_PUT) {
        op->status = zarr_store_put(gate.below, op->key, p, op->mem.bytes, err);
    } else if (op->verb == ZARR_STORE_ERASE) {
        op->status = zarr_store_erase(gate.below, op->key, err);
    } else {
        op->done_bytes = op->verb == ZARR_STORE_GET ? op->mem.bytes : 0;
        op->status = zarr_store_get(gate.below, op->key, 0, p, &op->done_bytes,
                                    &op->object_bytes, err);
    }
}

static zarr_status gate_list(void *self, const char *prefix, uint32_t how,
                             zarr_store_list_fn fn, void *user, zarr_error *err)
{
    (void)self;
    return zarr_store_list(gate.below, prefix, how, fn, user, err);
}

static const zarr_store_vtable gate_vtable = {
    .struct_size = sizeof gate_vtable,
    .name = "gate",
    .caps = gate_caps,
    .run = gate_run,
    .list = gate_list,
};

struct scene {
    struct pw w;
    zarr_store *store;
    zarr_array *a;
    zarr_tensor t;
    int64_t dims[2];
};

static void scene_open(struct scene *s)
{
    pw_open(&s->w, 2, UINT64_C(64) << 20, 0);
    gate.below = s->w.store;
    gate.closed = false;
    assert_ok(
        zarr_store_open_custom(&s->store, s->w.ctx, &gate_vtable, NULL, NULL, &terr));
    s->a = pw_array(s->store, "a", NULL, shape, chunk);
    for (int i = 0; i < N * N; i++)
        data[i] = i + 1;
    assert_ok(pw_box(s->a, zero, shape, data, NULL, true));
    memset(got, 0, sizeof got);
    s->dims[0] = s->dims[1] = N;
    s->t = pw_tensor(got, s->dims, sizeof got);
}

static void scene_close(struct scene *s)
{
    zarr_array_free(s->a);
    zarr_store_free(s->store);
    pw_close(&s->w);
}

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
    struct scene s;
    zarr_request *rq;

    (void)state;
    for (int round = 0; round < 20; round++) {
        memset(&told, 0, sizeof told);
        scene_open(&s);
        gate_set(true);
        rq = start_read(&s);
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
        scene_close(&s);
    }
}

/* Done already: on this thread, before the call returns. */
static void test_late(void **state)
{
    struct scene s;
    zarr_request *rq;

    (void)state;
    memset(&told, 0, sizeof told);
    scene_open(&s);
    rq = start_read(&s);
    assert_ok(zarr_request_then(rq, tell, number(0), &terr));
    wait_settled(rq);
    assert_int_equal(atomic_load(&told.n), 1);
    assert_ok(zarr_request_then(rq, tell, number(1), &terr));
    assert_int_equal(atomic_load(&told.n), 2);
    assert_int_equal(told.order[1], 1);
    assert_true(pthread_equal(told.thread, pthread_self()));
    zarr_request_free(rq);
    assert_status(zarr_request_then(NULL, tell, NULL, &terr), ZARR_ERR_INVALID);
    rq = start_read(&s);
    assert_status(zarr_request_then(rq, NULL, NULL, &terr), ZARR_ERR_INVALID);
    zarr_request_free(rq);
    scene_close(&s);
}

/* A cancelled or failed request calls them with its error; free cancels. */
static void test_failed(void **state)
{
    struct scene s;
    zarr_request *rq;

    (void)state;
    memset(&told, 0, sizeof told);
    scene_open(&s);
    gate_set(true);
    rq = start_read(&s);
    assert_ok(zarr_request_then(rq, tell, number(0), &terr));
    zarr_request_cancel(rq);
    gate_set(false);
    zarr_request_free(rq);
    assert_int_equal(atomic_load(&told.n), 1);
    assert_int_equal(told.status, ZARR_ERR_CANCELLED);
    assert_int_equal(told.err.code, ZARR_ERR_CANCELLED);
    assert_ok(zarr_store_put(s.w.store, "a/c/0/0", "x", 1, &terr));
    gate_set(true);
    rq = start_read(&s);
    s.w.fails_on = zr_thread_self();
    s.w.fails_one = true; /* not one of the read, which waits for chunks */
    atomic_store(&s.w.fail_in, 1);
    assert_status(zarr_request_then(rq, tell, number(9), &terr), ZARR_ERR_NO_MEMORY);
    atomic_store(&s.w.fail_in, 0);
    gate_set(false);
    assert_ok(zarr_request_then(rq, tell, number(1), &terr));
    assert_status(zarr_request_wait(rq, ZARR_WAIT_FOREVER, NULL, &terr),
                  ZARR_ERR_CORRUPT);
    zarr_request_free(rq);
    assert_int_equal(atomic_load(&told.n), 2);
    assert_int_equal(told.status, ZARR_ERR_CORRUPT);
    assert_string_equal(told.err.message, terr.message);
    scene_close(&s);
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
    struct scene s;

    (void)state;
    for (int round = 0; round < 20; round++) {
        memset(&told, 0, sizeof told);
        scene_open(&s);
        gate_set(true);
        told.to_free = start_read(&s);
        assert_ok(zarr_request_then(told.to_free, add_one, number(0), &terr));
        assert_ok(zarr_request_then(told.to_free, free_it, number(1), &terr));
        assert_ok(zarr_request_then(told.to_free, tell, number(2), &terr));
        gate_set(false);
        while (atomic_load(&told.n) < 4)
            usleep(100);
        assert_int_equal(told.order[1], 1);
        assert_int_equal(told.order[2], 2);
        assert_int_equal(told.order[3], 7); /* added by the first */
        scene_close(&s);
    }
}

/* The request is done when the function is added, which frees it on this thread. */
static void test_chain(void **state)
{
    struct scene s;

    (void)state;
    memset(&told, 0, sizeof told);
    scene_open(&s);
    atomic_store(&chain_left, 200);
    told.to_free = start_read(&s);
    assert_ok(zarr_request_then(told.to_free, chain, &s, &terr));
    while (atomic_load(&chain_left) > 0)
        usleep(1000);
    scene_close(&s);
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
    struct scene s;

    (void)state;
    scene_open(&s);
    for (int round = 0; round < 30; round++) {
        zarr_request *rq = start_read(&s);
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
    scene_close(&s);
}

/* ---- fork -------------------------------------------------------------------------- */

static void test_fork(void **state)
{
    struct scene s;
    zarr_request *rq;
    int status = 0, fd = -1, other = -1;
    pid_t pid;

    (void)state;
    memset(&told, 0, sizeof told);
    scene_open(&s);
    gate_set(true);
    rq = start_read(&s);
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
    scene_close(&s);
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
    struct scene s;
    int fd = -1, same = -1, done = 0;

    (void)state;
    scene_open(&s);
    gate_set(true);
    rq = start_read(&s);
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
    rq = start_read(&s);
    wait_settled(rq);
    assert_ok(zarr_request_fd(rq, &fd, &terr)); /* done already */
    assert_true(is_readable(fd, 0));
    zarr_request_free(rq);
    rq = start_read(&s);
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
    scene_close(&s);
}

/* ---- submitted appends ------------------------------------------------------------ */

static void test_append(void **state)
{
    enum {
        AT_ONCE = 8
    };
    static int32_t rows[AT_ONCE][3 * N];
    const int64_t dims[2] = {3, N};
    zarr_request *rq[AT_ONCE] = {NULL};
    uint64_t first[AT_ONCE], now[2] = {0, 0};
    zarr_stats stats = ZARR_STATS_INIT;
    zarr_tensor t[AT_ONCE];
    bool seen[AT_ONCE] = {false};
    struct scene s;

    (void)state;
    memset(&told, 0, sizeof told);
    scene_open(&s);
    for (int i = 0; i < AT_ONCE; i++) {
        for (int k = 0; k < 3 * N; k++)
            rows[i][k] = 1000 * (i + 1) + k;
        t[i] = pw_tensor(rows[i], dims, sizeof rows[i]);
        first[i] = UINT64_MAX;
        assert_ok(
            zarr_array_append_submit(&rq[i], s.a, 0, &t[i], &first[i], NULL, &terr));
        assert_ok(zarr_request_then(rq[i], count_call, NULL, &terr));
    }
    for (int i = 0; i < AT_ONCE; i++) {
        for (int done = 0; !done;) { /* asks also while the append begins */
            zarr_request_progress(rq[i], &stats);
            assert_ok(zarr_request_wait(rq[i], 1000, &done, &terr));
        }
        zarr_request_progress(rq[i], &stats);
        assert_true(stats.elements == 3 * N && stats.chunks_done >= N / CHUNK);
        zarr_request_free(rq[i]);
    }
    memcpy(now, zarr_array_shape(s.a), sizeof now);
    assert_int_equal(now[0], N + 3 * AT_ONCE);
    for (int i = 0; i < AT_ONCE; i++) {
        const uint64_t start[2] = {first[i], 0}, count[2] = {3, N};

        assert_true(first[i] >= N && first[i] % 3 == 0 && first[i] < now[0]);
        assert_false(seen[(first[i] - N) / 3]);
        seen[(first[i] - N) / 3] = true;
        assert_ok(pw_box(s.a, start, count, got, NULL, false));
        assert_memory_equal(got, rows[i], sizeof rows[i]);
    }
    scene_close(&s);
}

/* Cancelled by its handle, by its object, and by its free; the shape stays. */
static void test_append_cancelled(void **state)
{
    static int32_t rows[3 * N];
    const int64_t dims[2] = {3, N};
    const zarr_tensor t = pw_tensor(rows, dims, sizeof rows);
    struct scene s;

    (void)state;
    scene_open(&s);
    for (int how = 0; how < 3; how++) {
        zarr_io_options o = ZARR_IO_OPTIONS_INIT;
        uint64_t first = 77;
        zarr_request *rq = NULL;
        zarr_cancel *c = NULL;

        assert_ok(zarr_cancel_create(&c, &terr));
        o.cancel = c;
        gate_set(true);
        assert_ok(zarr_array_append_submit(&rq, s.a, 0, &t, &first, &o, &terr));
        zarr_cancel_free(zarr_cancel_ref(c));
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
        assert_int_equal(zarr_array_shape(s.a)[0], N);
    }
    {
        uint64_t first = 0;

        assert_ok(zarr_array_append(s.a, 0, &t, &first, NULL, &terr));
        assert_int_equal(first, N);
        assert_ok(zarr_array_append(s.a, 0, &t, &first, NULL, &terr));
        assert_int_equal(first, N + 3);
    }
    scene_close(&s);
}

/* Wrong arguments: of options at once, of the tensor by the wait. */
static void test_append_wrong(void **state)
{
    const int64_t dims[2] = {3, N + 1};
    const zarr_tensor t = pw_tensor(got, dims, sizeof got);
    zarr_io_options o = {.struct_size = sizeof o, .flags = 1u << 30};
    zarr_request *rq = (zarr_request *)(void *)got;
    struct scene s;

    (void)state;
    scene_open(&s);
    assert_status(zarr_array_append_submit(&rq, s.a, 0, &t, NULL, &o, &terr),
                  ZARR_ERR_UNSUPPORTED);
    assert_null(rq);
    assert_ok(zarr_array_append_submit(&rq, s.a, 0, &t, NULL, NULL, &terr));
    assert_status(zarr_request_wait(rq, ZARR_WAIT_FOREVER, NULL, &terr),
                  ZARR_ERR_INVALID);
    zarr_request_free(rq);
    scene_close(&s);
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
    struct scene s;

    (void)state;
    scene_open(&s);
    gate_set(true);
    assert_ok(zarr_cancel_create(&signalled, &terr));
    o.cancel = signalled;
    for (int i = 0; i < AT_ONCE; i++)
        assert_ok(zarr_array_read_submit(&rq[i], s.a, NULL, &s.t, &o, &terr));
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
    scene_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),        cmocka_unit_test(test_late),
        cmocka_unit_test(test_failed),       cmocka_unit_test(test_freed_inside),
        cmocka_unit_test(test_chain),        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_fork),         cmocka_unit_test(test_fd),
        cmocka_unit_test(test_append),       cmocka_unit_test(test_append_cancelled),
        cmocka_unit_test(test_append_wrong), cmocka_unit_test(test_one_cancels_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
