/*
 * unit/pipe/request/test_waits.c - requests that wait inside of tasks of the pool. The
 * waits are announced, so other tasks run meanwhile. Requests that fill the pool end,
 * because none needs a second thread, and so do such requests that are cancelled.
 */
#include "unit/pipe/over_store.h"

#include "pipe/pipe_int.h"

#include <pthread.h>

#define SECOND UINT64_C(1000000000)

enum {
    MOST = ZR_MAX_THREADS,
    REQUESTS = ZR_MAX_THREADS + 44
};

/* ---- as many tasks as the pool runs at once, and one more ------------------------- */

struct waiter {
    struct zr_task task;
    struct zr_event ready, done;
    void (*wait)(struct waiter *w);
};
static struct waiter waiter[MOST];
static struct zr_event opened;
static struct zr_task opener;

static void open_gate(void *arg)
{
    (void)arg;
    zr_event_set(&opened);
}

static void wait_task(void *arg)
{
    struct waiter *w = arg;

    w->wait(w);
    zr_event_set(&w->done);
}

/* Each task waits, in its own way, for one that is submitted when all are about to. */
static void wait_for_opener(void (*wait)(struct waiter *w))
{
    struct zr_pool_stats pool;
    bool in_time;

    zr_pool_stats_get(&pool);
    assert_in_range(pool.n_wanted, 1, MOST / 2);
    zr_event_init(&opened);
    for (uint32_t i = 0; i < pool.n_wanted; i++) {
        waiter[i] =
            (struct waiter){.task = {.fn = wait_task, .arg = &waiter[i]}, .wait = wait};
        zr_event_init(&waiter[i].ready);
        zr_event_init(&waiter[i].done);
        assert_ok(zr_task_submit(&waiter[i].task, &terr));
    }
    for (uint32_t i = 0; i < pool.n_wanted; i++)
        assert_true(zr_event_wait(&waiter[i].ready, zr_now_ns() + 20 * SECOND));
    opener = (struct zr_task){.fn = open_gate};
    assert_ok(zr_task_submit(&opener, &terr));
    in_time = zr_event_wait(&opened, zr_now_ns() + 10 * SECOND);
    if (!in_time && zr_task_withdraw(&opener))
        open_gate(NULL);
    for (uint32_t i = 0; i < pool.n_wanted; i++) {
        assert_true(zr_event_wait(&waiter[i].done, zr_now_ns() + 20 * SECOND));
        zr_event_deinit(&waiter[i].ready);
        zr_event_deinit(&waiter[i].done);
    }
    zr_event_deinit(&opened);
    assert_true(in_time);
}

/* ---- the end of a request's flights ----------------------------------------------- */

struct flying {
    struct zr_flights f;
    struct zr_event helper;
    pthread_t owner;
};

/* A helper waits for the opener, and the owner for a helper to begin. */
static void pull(struct zr_flights *f)
{
    struct flying *y = (struct flying *)f;

    if (pthread_equal(y->owner, pthread_self())) {
        (void)zr_event_wait(&y->helper, UINT64_MAX);
        return;
    }
    zr_event_set(&y->helper);
    (void)zr_event_wait(&opened, UINT64_MAX);
}

static void wait_for_flights(struct waiter *w)
{
    struct flying *y = zr_calloc(NULL, 1, sizeof *y);

    assert_non_null(y);
    zr_flights_init(&y->f, pull);
    zr_event_init(&y->helper);
    y->owner = pthread_self();
    zr_flights_start(&y->f, 2);
    pull(&y->f);
    zr_event_deinit(&y->helper);
    zr_event_set(&w->ready);
    (void)zr_flights_end(&y->f, NULL);
    zr_flights_unref(&y->f);
}

static void the_end_of_flights(void **state)
{
    (void)state;
    wait_for_opener(wait_for_flights);
}

/* ---- the lock of an application's store ------------------------------------------- */

static zarr_store *locks;

static zarr_status wait_lock(void *self, const char *key, const zarr_cancel *cancel,
                             void **lock, zarr_error *err)
{
    (void)key;
    (void)cancel;
    (void)err;
    while (!zr_event_is_set(&opened)) /* not the library's wait */
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    *lock = self;
    return ZARR_OK;
}

static void no_unlock(void *self, void *lock)
{
    (void)self;
    (void)lock;
}

static void wait_for_lock(struct waiter *w)
{
    void *lock = NULL;

    zr_event_set(&w->ready);
    (void)zr_store_lock(locks, "k", NULL, &lock, NULL);
    zr_store_unlock(locks, lock);
}

static void the_lock_of_a_store(void **state)
{
    zarr_store_vtable vt = over_runs;
    struct over o;
    struct pw w;

    (void)state;
    vt.lock = wait_lock;
    vt.unlock = no_unlock;
    pw_open(&w, 2, 0, 0);
    over_open(&w, &o, &vt, ZARR_STORE_CAP_LOCK);
    locks = w.store;
    wait_for_opener(wait_for_lock);
    pw_close(&w);
}

/* ---- more requests than the pool has threads -------------------------------------- */

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bool closed;
    uint32_t n_inside;
} gate = {.mutex = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};

static void gate_set(bool closed)
{
    pthread_mutex_lock(&gate.mutex);
    gate.closed = closed;
    pthread_cond_broadcast(&gate.cond);
    pthread_mutex_unlock(&gate.mutex);
}

/* Waits at the gate until it opens or the operation is cancelled. */
static void gate_run(void *self, zarr_store_op *op, zarr_error *err)
{
    struct timespec until;
    bool cancelled = false;

    pthread_mutex_lock(&gate.mutex);
    gate.n_inside++;
    while (gate.closed && !cancelled) {
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec++;
        (void)pthread_cond_timedwait(&gate.cond, &gate.mutex, &until);
        cancelled = op->cancel && zarr_cancel_is_set(op->cancel);
    }
    gate.n_inside--;
    pthread_mutex_unlock(&gate.mutex);
    if (cancelled)
        op->status = ZARR_ERR_CANCELLED;
    else
        over_do(self, op, err);
}

static bool all_threads_inside(void)
{
    const uint64_t end = zr_now_ns() + 20 * SECOND;
    bool all = false;

    while (!all && zr_now_ns() < end) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        pthread_mutex_lock(&gate.mutex);
        all = gate.n_inside == MOST;
        pthread_mutex_unlock(&gate.mutex);
    }
    return all;
}

static void hold_thread(struct waiter *w)
{
    zr_event_set(&w->ready);
    pthread_mutex_lock(&gate.mutex); /* not announced: the thread counts as working */
    pthread_mutex_unlock(&gate.mutex);
}

/* Queues the requests while no thread of the pool is free, so that all are before the
 * tasks that they might submit. */
static void submit_all(zarr_request **rq, zarr_array *a, zarr_tensor *t, bool write)
{
    struct zr_pool_stats pool;

    zr_pool_stats_get(&pool);
    assert_in_range(pool.n_wanted, 1, MOST);
    pthread_mutex_lock(&gate.mutex);
    for (uint32_t i = 0; i < pool.n_wanted; i++) {
        waiter[i] = (struct waiter){.task = {.fn = wait_task, .arg = &waiter[i]},
                                    .wait = hold_thread};
        zr_event_init(&waiter[i].ready);
        zr_event_init(&waiter[i].done);
        assert_ok(zr_task_submit(&waiter[i].task, &terr));
    }
    for (uint32_t i = 0; i < pool.n_wanted; i++)
        assert_true(zr_event_wait(&waiter[i].ready, zr_now_ns() + 20 * SECOND));
    for (int i = 0; i < REQUESTS; i++)
        assert_ok((write ? zarr_array_write_submit
                         : zarr_array_read_submit)(&rq[i], a, NULL, &t[i], NULL, &terr));
    pthread_mutex_unlock(&gate.mutex);
    for (uint32_t i = 0; i < pool.n_wanted; i++) {
        assert_true(zr_event_wait(&waiter[i].done, zr_now_ns() + 20 * SECOND));
        zr_event_deinit(&waiter[i].ready);
        zr_event_deinit(&waiter[i].done);
    }
}

static void many_requests(bool write, bool cancel)
{
    const uint64_t small[2] = {4, 4}, part[2] = {2, 2};
    static const uint64_t size[2] = {4, 4};
    static int32_t elements[REQUESTS][16];
    static zarr_request *rq[REQUESTS];
    static zarr_tensor t[REQUESTS];
    zarr_store_vtable vt = over_runs;
    const uint64_t end = zr_now_ns() + 30 * SECOND;
    struct over o;
    struct pw w;
    zarr_array *a = NULL;

    vt.run = gate_run;
    pw_open(&w, 2, 0, 0);
    over_open(&w, &o, &vt, ZARR_STORE_CAP_RANGES);
    a = pw_array(w.store, "a", "[" BYTES "]", small, part);
    make_data(7);
    for (int i = 0; i < REQUESTS; i++) {
        memcpy(elements[i], data, sizeof elements[i]);
        t[i] = pw_tensor(elements[i], size, sizeof elements[i]);
    }
    assert_ok(zarr_array_write(a, NULL, &t[0], NULL, &terr));
    if (!write)
        memset(elements, 0, sizeof elements);
    gate_set(cancel);
    submit_all(rq, a, t, write);
    if (cancel) {
        assert_true(all_threads_inside());
        for (int i = 0; i < REQUESTS; i++)
            zarr_request_cancel(rq[i]);
    }
    for (int i = 0; i < REQUESTS; i++) {
        const uint64_t now = zr_now_ns();
        int done = 0;

        assert_status(zarr_request_wait(rq[i], now < end ? end - now : 0, &done, &terr),
                      cancel ? ZARR_ERR_CANCELLED : ZARR_OK);
        assert_true(done);
        if (!cancel)
            assert_memory_equal(elements[i], data, sizeof elements[i]);
        zarr_request_free(rq[i]);
    }
    gate_set(false);
    assert_ok(pw_box(a, zero, small, got, NULL, false));
    assert_memory_equal(got, data, sizeof elements[0]);
    zarr_array_free(a);
    pw_close(&w);
}

static void many_reads(void **state)
{
    (void)state;
    many_requests(false, false);
}

static void many_writes(void **state)
{
    (void)state;
    many_requests(true, false);
}

static void many_reads_cancelled(void **state)
{
    (void)state;
    many_requests(false, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_end_of_flights),   cmocka_unit_test(the_lock_of_a_store),
        cmocka_unit_test(many_reads),           cmocka_unit_test(many_writes),
        cmocka_unit_test(many_reads_cancelled),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
