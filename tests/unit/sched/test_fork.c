/* unit/sched/test_fork.c - children forked while the pool is busy, from any thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../sanitizers.h"
#include "sched/sched.h"
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* In a child the leak checker does not know the stacks of the parent's threads, so its
 * reports are unreliable. */
#if defined(__SANITIZE_ADDRESS__)
enum {
    CHILD_MAY_EXIT = 0
};
#else
enum {
    CHILD_MAY_EXIT = 1
};
#endif

#define SECOND UINT64_C(1000000000)

enum {
    FORKS = 50,
    CHILD_SECONDS = 20
};

static struct zr_budget budget;
static struct zr_event never; /* belongs to the parent, never set */
static zarr_cancel stop;

static zarr_status use_everything(void *arg, uint64_t i, uint32_t worker, zarr_error *err)
{
    struct zr_event e;
    const zarr_status st = zr_budget_take(&budget, 40, UINT64_MAX, &stop, err);

    (void)worker;
    if (st != ZARR_OK)
        return st;
    zr_event_init(&e);
    zr_event_set(&e);
    zr_event_wait(&e, UINT64_MAX);
    zr_event_deinit(&e);
    zr_budget_give(&budget, 40);
    atomic_fetch_add((atomic_uint_fast64_t *)arg, i);
    return ZARR_OK;
}

struct noise {
    struct zr_task task;
    struct zr_event done;
};

static void make_noise(void *arg)
{
    struct noise *n = arg;
    atomic_uint_fast64_t sum = 0;

    (void)zr_parallel_for(50, 4, use_everything, &sum, NULL);
    zr_event_set(&n->done);
}

/* Keeps the pool busy with tasks and loops until it is told to stop. */
static void *stay_busy(void *unused)
{
    while (!zr_is_cancelled(&stop)) {
        struct noise n = {.task = {.fn = make_noise, .arg = &n}};
        atomic_uint_fast64_t sum = 0;

        zr_event_init(&n.done);
        if (zr_task_submit(&n.task, NULL) == ZARR_OK) {
            (void)zr_parallel_for(50, 4, use_everything, &sum, NULL);
            zr_event_wait(&n.done, UINT64_MAX);
        }
        zr_event_deinit(&n.done);
    }
    return unused;
}

/* Returns 0 if everything works as in a new process. */
static int work_in_child(void)
{
    atomic_uint_fast64_t sum = 0;
    struct zr_budget_stats stats;
    struct zr_pool_stats pool;
    struct noise n = {.task = {.fn = make_noise, .arg = &n}};

    alarm(CHILD_SECONDS); /* a deadlock ends with SIGALRM */
    zr_budget_stats_get(&budget, &stats);
    zr_pool_stats_get(&pool);
    if (!zr_has_forked(0) || stats.now != 0 || stats.n_waiting != 0 ||
        pool.n_threads != 0 || pool.n_tasks != 0)
        return 1;
    if (zr_event_wait(&never, UINT64_MAX))
        return 2;
    zr_event_set(&never);
    if (!zr_event_wait(&never, UINT64_MAX))
        return 3;
    zr_event_deinit(&never);
    if (zr_parallel_for(1000, 4, use_everything, &sum, NULL) != ZARR_OK ||
        atomic_load(&sum) != 499500)
        return 4;
    zr_event_init(&n.done);
    if (zr_task_submit(&n.task, NULL) != ZARR_OK ||
        !zr_event_wait(&n.done, zr_now_ns() + CHILD_SECONDS * SECOND))
        return 5;
    zr_event_deinit(&n.done);
    return 0;
}

static void wait_for_child(pid_t pid)
{
    int status = 0;

    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("child ended with status %#x", (unsigned)status);
}

static void forking_beside_a_busy_pool(void **state)
{
    zr_thread t[2];

    (void)state;
    SKIP_WITHOUT_THREADED_FORK();
    for (int i = 0; i < 2; i++)
        assert_int_equal(zr_thread_start(&t[i], stay_busy, NULL, NULL), ZARR_OK);
    for (int i = 0; i < FORKS; i++) {
        const pid_t pid = fork();

        if (pid == 0) {
            const int rc = work_in_child();

            if (i % 2 && CHILD_MAY_EXIT)
                exit(rc); /* runs the destructors of the library */
            _exit(rc);
        }
        wait_for_child(pid);
    }
    zarr_cancel_set(&stop);
    for (int i = 0; i < 2; i++)
        zr_thread_join(&t[i]);
    zarr_cancel_reset(&stop);
}

static void leave_child(void)
{
    _exit(0);
}

/* An item that forks: the loop has ended in the child, whichever thread ran the item. */
struct forking {
    atomic_uint done;
    atomic_int pid;
    bool in_task;
};

static zarr_status fork_in_item(void *arg, uint64_t i, uint32_t worker, zarr_error *err)
{
    struct forking *f = arg;

    (void)worker;
    (void)err;
    atomic_fetch_add(&f->done, 1);
    if (i == 100) {
        const pid_t pid = fork();

        if (pid != 0)
            atomic_store(&f->pid, pid);
        else if (alarm(CHILD_SECONDS) || (!CHILD_MAY_EXIT && atexit(leave_child)))
            _exit(6);
    }
    return ZARR_OK;
}

static void forking_inside_a_loop(void **state)
{
    (void)state;
    SKIP_WITHOUT_THREADED_FORK();
    for (int turn = 0; turn < 20; turn++) {
        struct forking f = {.done = 0};
        const uint64_t before = zr_fork_generation();
        const zarr_status st = zr_parallel_for(1000, 4, fork_in_item, &f, NULL);

        /* In the child, if this thread ran the item. */
        if (zr_has_forked(before))
            _exit(st == ZARR_ERR_CANCELLED ? work_in_child() : 9);
        assert_int_equal(st, ZARR_OK);
        assert_int_equal(atomic_load(&f.done), 1000);
        /* In the child, a thread of the pool ended here. */
        wait_for_child(atomic_load(&f.pid));
    }
}

/* A pool that was used only in a child. */
static void grandchildren(void **state)
{
    pid_t pid;

    (void)state;
    SKIP_WITHOUT_THREADED_FORK(); /* the child forks while it has its own pool */
    pid = fork();
    if (pid == 0) {
        int rc = work_in_child(), status = 0;

        zr_event_init(&never); /* the child's own pool, inherited by its child */
        pid = fork();
        if (pid == 0)
            _exit(!zr_has_forked(2) ? work_in_child() : 8);
        if (rc == 0 && (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0))
            rc = 7;
        _exit(rc);
    }
    wait_for_child(pid);
}

static int work_without_threads(void)
{
    const struct rlimit little = {1 << 20, 1 << 20}; /* too little for a thread's stack */
    atomic_uint_fast64_t sum = 0;
    struct noise n = {.task = {.fn = make_noise, .arg = &n}};
    struct zr_pool_stats pool;
    zarr_error err = {0};

    alarm(CHILD_SECONDS);
    if (setrlimit(RLIMIT_AS, &little) != 0)
        return 1;
    if (zr_parallel_for(1000, 4, use_everything, &sum, NULL) != ZARR_OK ||
        atomic_load(&sum) != 499500)
        return 2; /* the caller runs all items itself */
    if (zr_task_submit(&n.task, &err) != ZARR_ERR_NO_MEMORY || err.code == ZARR_OK)
        return 3;
    zr_pool_stats_get(&pool);
    return pool.n_threads != 0 || pool.n_tasks != 0 ? 4 : 0;
}

static void no_threads_to_be_had(void **state)
{
    pid_t pid;

    (void)state;
    if (!CHILD_MAY_EXIT) {
        print_message(
            "skipped: the address sanitizer lives in more memory than we leave\n");
        skip();
    }
    pid = fork();
    if (pid == 0)
        _exit(work_without_threads());
    wait_for_child(pid);
}

static int open_world(void **state)
{
    (void)state;
    zr_budget_init(&budget, 100);
    zr_event_init(&never);
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    zr_budget_deinit(&budget);
    zr_event_deinit(&never);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_threads_to_be_had), /* must be first: later threads would
                                                   reuse old stacks */
        cmocka_unit_test(forking_beside_a_busy_pool),
        cmocka_unit_test(forking_inside_a_loop),
        cmocka_unit_test(grandchildren),
    };

#if defined(__SANITIZE_THREAD__)
    if (ZR_COUNT(tests) > 0) {
        puts("SKIP: " ZR_NO_THREADED_FORK);
        return 77;
    }
#endif
    return cmocka_run_group_tests(tests, open_world, close_world);
}
