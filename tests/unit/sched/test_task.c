/*
 * unit/sched/test_task.c - tasks: each runs once, in order; tasks that block; the life
 * of the pool.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sched/sched.h"

#define SECOND UINT64_C(1000000000)

struct counted {
    struct zr_task task;
    atomic_uint *n;
    struct zr_event *last;
    uint32_t want;
};

static void count_up(void *arg)
{
    struct counted *c = arg;
    struct zr_event *last = c->last;
    const uint32_t want = c->want;
    atomic_uint *n = c->n;

    free(c); /* the pool does not use it any more */
    if (atomic_fetch_add(n, 1) + 1 == want)
        zr_event_set(last);
}

static void each_runs_once(void **state)
{
    enum {
        N = 5000
    };
    atomic_uint n = 0;
    struct zr_event last;

    (void)state;
    zr_event_init(&last);
    for (int i = 0; i < N; i++) {
        struct counted *c = malloc(sizeof *c);

        assert_non_null(c);
        *c = (struct counted){{.fn = count_up, .arg = c}, &n, &last, N};
        assert_int_equal(zr_task_submit(&c->task, NULL), ZARR_OK);
    }
    assert_true(zr_event_wait(&last, zr_now_ns() + 30 * SECOND));
    zr_event_deinit(&last);
    assert_int_equal(atomic_load(&n), N);
}

/* A chain: each task waits for the one submitted after it. */
struct link {
    struct zr_task task;
    struct zr_event done;
    struct link *after;
    bool ok;
};

static void wait_for_next(void *arg)
{
    struct link *l = arg;

    l->ok = !l->after || zr_event_wait(&l->after->done, zr_now_ns() + 30 * SECOND);
    zr_event_set(&l->done);
}

static void tasks_that_wait_for_each_other(void **state)
{
    enum {
        N = 40
    }; /* many more than the number of threads */
    static struct link chain[N];
    struct zr_pool_stats stats;

    (void)state;
    for (int turn = 0; turn < 10; turn++) {
        for (int i = 0; i < N; i++) {
            chain[i] = (struct link){.task = {.fn = wait_for_next, .arg = &chain[i]},
                                     .after = i + 1 < N ? &chain[i + 1] : NULL};
            zr_event_init(&chain[i].done);
        }
        for (int i = 0; i < N; i++)
            assert_int_equal(zr_task_submit(&chain[i].task, NULL), ZARR_OK);
        for (int i = 0; i < N; i++)
            assert_true(zr_event_wait(&chain[i].done, zr_now_ns() + 30 * SECOND));
        for (int i = 0; i < N; i++) {
            assert_true(chain[i].ok);
            zr_event_deinit(&chain[i].done);
        }
    }
    zr_pool_stats_get(&stats);
    assert_int_equal(stats.n_tasks, 0);
}

static zarr_status add_item(void *arg, uint64_t i, uint32_t worker, zarr_error *err)
{
    (void)worker;
    (void)err;
    atomic_fetch_add((atomic_uint_fast64_t *)arg, i);
    return ZARR_OK;
}

struct looping {
    struct zr_task task;
    struct zr_event done;
    atomic_uint_fast64_t sum;
    zarr_status status;
};

static void run_loop(void *arg)
{
    struct looping *l = arg;

    l->status = zr_parallel_for(1000, 8, add_item, &l->sum, NULL);
    zr_event_set(&l->done);
}

static void tasks_that_run_loops(void **state)
{
    enum {
        N = 30
    };
    static struct looping l[N];

    (void)state;
    for (int turn = 0; turn < 10; turn++) {
        for (int i = 0; i < N; i++) {
            l[i].task = (struct zr_task){.fn = run_loop, .arg = &l[i]};
            atomic_init(&l[i].sum, 0);
            zr_event_init(&l[i].done);
            assert_int_equal(zr_task_submit(&l[i].task, NULL), ZARR_OK);
        }
        for (int i = 0; i < N; i++) {
            assert_true(zr_event_wait(&l[i].done, zr_now_ns() + 30 * SECOND));
            assert_int_equal(l[i].status, ZARR_OK);
            assert_true(atomic_load(&l[i].sum) == 499500);
            zr_event_deinit(&l[i].done);
        }
    }
}

struct blocking {
    struct zr_task task;
    atomic_uint *inside;
    struct zr_event *go;
    struct zr_event done;
};

static void block_openly(void *arg)
{
    struct blocking *b = arg;
    uint32_t now;

    zr_block_begin();
    zr_block_begin(); /* calls may nest */
    now = atomic_fetch_add(b->inside, 1) + 1;
    if (now == 20)
        zr_event_set(b->go);
    zr_event_wait(b->go, zr_now_ns() + 30 * SECOND);
    zr_block_end();
    zr_block_end();
    zr_event_set(&b->done);
}

static void blocked_threads_are_replaced(void **state)
{
    static struct blocking b[20];
    atomic_uint inside = 0;
    struct zr_event go;
    struct zr_pool_stats stats;

    (void)state;
    zr_event_init(&go);
    for (int i = 0; i < 20; i++) {
        b[i] = (struct blocking){
            .task = {.fn = block_openly, .arg = &b[i]}, .inside = &inside, .go = &go};
        zr_event_init(&b[i].done);
        assert_int_equal(zr_task_submit(&b[i].task, NULL), ZARR_OK);
    }
    for (int i = 0; i < 20; i++) {
        assert_true(zr_event_wait(&b[i].done, zr_now_ns() + 30 * SECOND));
        zr_event_deinit(&b[i].done);
    }
    assert_int_equal(atomic_load(&inside), 20);
    zr_event_deinit(&go);

    zr_pool_stats_get(&stats);
    assert_true(stats.n_threads >= 20);
    for (int i = 0; i < 100 && stats.n_threads > stats.n_wanted;
         i++) { /* idle threads end */
        struct zr_event never;

        zr_event_init(&never);
        zr_event_wait(&never, zr_now_ns() + SECOND / 10);
        zr_event_deinit(&never);
        zr_pool_stats_get(&stats);
    }
    assert_true(stats.n_threads <= stats.n_wanted);
    assert_int_equal(stats.n_blocked, 0);
}

/* ---- tasks that are taken back ---- */

static zr_mutex held;

static void hold_thread(void *arg)
{
    zr_event_set(arg);
    zr_mutex_lock(&held); /* not announced: the thread counts as working */
    zr_mutex_unlock(&held);
}

static void note(void *arg)
{
    atomic_fetch_add((atomic_uint *)arg, 1);
}

static void set_event(void *arg)
{
    zr_event_set(arg);
}

static void withdraw_tasks(void **state)
{
    enum {
        N = 5
    };
    static struct zr_task busy[ZR_MAX_THREADS], t[N], end;
    static struct zr_event begun[ZR_MAX_THREADS];
    const bool back[N] = {true, false, true, false, true}; /* first, middle, last */
    atomic_uint n[N] = {0};
    struct zr_pool_stats stats;
    struct zr_event done;

    (void)state;
    zr_mutex_init(&held);
    zr_event_init(&done);
    zr_mutex_lock(&held);
    zr_pool_stats_get(&stats);
    for (uint32_t i = 0; i < stats.n_wanted; i++) {
        zr_event_init(&begun[i]);
        busy[i] = (struct zr_task){.fn = hold_thread, .arg = &begun[i]};
        assert_int_equal(zr_task_submit(&busy[i], NULL), ZARR_OK);
    }
    for (uint32_t i = 0; i < stats.n_wanted; i++)
        assert_true(zr_event_wait(&begun[i], zr_now_ns() + 30 * SECOND));
    for (int i = 0; i < N; i++) {
        t[i] = (struct zr_task){.fn = note, .arg = &n[i]};
        assert_int_equal(zr_task_submit(&t[i], NULL), ZARR_OK);
    }
    for (int i = 0; i < N; i++)
        assert_true(!back[i] || zr_task_withdraw(&t[i]));
    assert_false(zr_task_withdraw(&t[0]));
    zr_pool_stats_get(&stats);
    assert_int_equal(stats.n_tasks, 2);
    assert_int_equal(zr_task_submit(&t[2], NULL), ZARR_OK); /* again */
    end = (struct zr_task){.fn = set_event, .arg = &done};
    assert_int_equal(zr_task_submit(&end, NULL), ZARR_OK);
    zr_mutex_unlock(&held);
    assert_true(zr_event_wait(&done, zr_now_ns() + 30 * SECOND));
    do {
        zr_pool_stats_get(&stats);
    } while (stats.n_idle < stats.n_threads);
    for (int i = 0; i < N; i++) {
        assert_int_equal(atomic_load(&n[i]), !back[i] || i == 2);
        assert_false(zr_task_withdraw(&t[i]));
    }
    zr_event_deinit(&done);
    zr_mutex_deinit(&held);
}

static void wanting_more_threads(void **state)
{
    struct zr_pool_stats before, after;

    (void)state;
    zr_pool_stats_get(&before);
    zr_pool_want(0);
    zr_pool_want(1);
    zr_pool_stats_get(&after);
    assert_int_equal(after.n_wanted, before.n_wanted);
    zr_pool_want(before.n_wanted + 3);
    zr_pool_stats_get(&after);
    assert_int_equal(after.n_wanted, before.n_wanted + 3);
    zr_block_begin(); /* no effect on a thread outside the pool */
    zr_block_end();
    zr_pool_want(UINT32_MAX);
    zr_pool_stats_get(&after);
    assert_int_equal(after.n_wanted, ZR_MAX_THREADS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_runs_once),
        cmocka_unit_test(tasks_that_wait_for_each_other),
        cmocka_unit_test(tasks_that_run_loops),
        cmocka_unit_test(blocked_threads_are_replaced),
        cmocka_unit_test(withdraw_tasks),
        cmocka_unit_test(wanting_more_threads),
        cmocka_unit_test(each_runs_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
