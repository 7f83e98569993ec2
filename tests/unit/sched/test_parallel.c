/*
 * unit/sched/test_parallel.c - parallel loops: each item runs once, the lowest failure
 * is returned, cancelling, nesting.
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

enum {
    MANY = 20000
};

struct sheet {
    atomic_uint times[MANY];
    atomic_uint busy[ZR_MAX_THREADS]; /* threads that use a worker number now */
    atomic_uint most_worker, shared_worker;
    uint32_t n_workers;
};

static void work_for(uint64_t ns)
{
    const uint64_t end = zr_now_ns() + ns;

    while (zr_now_ns() < end)
        zr_cpu_relax();
}

static zarr_status mark_item(void *arg, uint64_t i, uint32_t worker, zarr_error *err)
{
    struct sheet *s = arg;

    (void)err;
    if (worker >= s->n_workers || atomic_fetch_add(&s->busy[worker], 1) != 0)
        atomic_store(&s->shared_worker, 1);
    atomic_fetch_add(&s->times[i], 1);
    if (i % 64 == 0)
        work_for(20000);
    atomic_fetch_sub(&s->busy[worker], 1);
    return ZARR_OK;
}

static void every_item_once(void **state)
{
    static const struct {
        uint64_t n;
        struct zr_parallel_options opts;
    } cases[] = {
        {0, {0}},
        {1, {0}},
        {2, {.max_threads = 2}},
        {3, {.max_threads = 8}},
        {1000, {.max_threads = 1}},
        {1000, {.max_threads = 2}},
        {MANY, {.max_threads = 4}},
        {MANY, {.max_threads = 4, .grain = 1}},
        {MANY, {.max_threads = 3, .grain = 777}},
        {MANY, {.max_threads = 2, .grain = UINT32_MAX}},
        {MANY, {.max_threads = 16}},
        {MANY, {.max_threads = 4, .item_ns = 10}},
        {100, {.max_threads = 4, .item_ns = 1000000}},
    };
    struct sheet *s = malloc(sizeof *s);

    (void)state;
    assert_non_null(s);
    for (size_t k = 0; k < ZR_COUNT(cases); k++) {
        zarr_error err = {.code = 77};

        memset(s, 0, sizeof *s);
        s->n_workers = zr_parallel_workers(cases[k].n, &cases[k].opts);
        assert_int_equal(zr_parallel_run(cases[k].n, &cases[k].opts, mark_item, s, &err),
                         ZARR_OK);
        assert_int_equal(err.code, 77); /* is not changed */
        assert_int_equal(atomic_load(&s->shared_worker), 0);
        for (uint64_t i = 0; i < MANY; i++)
            assert_int_equal(atomic_load(&s->times[i]), i < cases[k].n);
    }
    free(s);
}

static void worker_numbers(void **state)
{
    static const struct {
        uint64_t n;
        struct zr_parallel_options opts;
        uint32_t want;
    } cases[] = {
        {0, {.max_threads = 4}, 1},
        {1, {.max_threads = 4}, 1},
        {3, {.max_threads = 4}, 3},
        {100, {.max_threads = 4}, 4},
        {UINT64_MAX, {.max_threads = UINT32_MAX}, ZR_MAX_THREADS},
        {100, {.max_threads = 4, .item_ns = 1000}, 1}, /* 100 us: on this thread */
        {100, {.max_threads = 4, .item_ns = 2500}, 2}, /* 250 us */
        {100, {.max_threads = 4, .item_ns = 1000000}, 4},
        {UINT64_MAX, {.max_threads = 4, .item_ns = 2}, 4}, /* the product overflows */
    };

    (void)state;
    for (size_t k = 0; k < ZR_COUNT(cases); k++)
        assert_int_equal(zr_parallel_workers(cases[k].n, &cases[k].opts), cases[k].want);
    assert_int_equal(zr_parallel_workers(1000000, NULL), ZR_MIN(zr_cpu_count(), 256U));
    assert_int_equal(zr_parallel_for((uint64_t)INT64_MAX + 1, 2, mark_item, NULL, NULL),
                     ZARR_ERR_INTERNAL);
}

struct failing {
    const uint64_t *bad; /* rising */
    size_t n_bad;
    bool with_text;
    atomic_uint done[MANY];
};

static zarr_status fail_items(void *arg, uint64_t i, uint32_t worker, zarr_error *err)
{
    struct failing *f = arg;

    (void)worker;
    for (size_t k = 0; k < f->n_bad; k++) {
        if (f->bad[k] != i)
            continue;
        if (k == 0)
            work_for(100000); /* the lowest index fails last */
        if (f->with_text)
            return zr_fail(err, ZARR_ERR_CORRUPT - (zarr_status)k, "item %" PRIu64, i);
        return ZARR_ERR_CORRUPT - (zarr_status)k;
    }
    atomic_store(&f->done[i], 1);
    return ZARR_OK;
}

static void check_failure(struct failing *f, uint64_t n, uint32_t threads, uint32_t run)
{
    const struct zr_parallel_options opts = {.max_threads = threads, .grain = run};
    zarr_error err = {0};
    char text[64];

    for (uint64_t i = 0; i < n; i++)
        atomic_store(&f->done[i], 0);
    assert_int_equal(zr_parallel_run(n, &opts, fail_items, f, &err), ZARR_ERR_CORRUPT);
    assert_int_equal(err.item, f->bad[0]);
    if (f->with_text) {
        assert_int_equal(err.code, ZARR_ERR_CORRUPT);
        snprintf(text, sizeof text, "item %" PRIu64, f->bad[0]);
        assert_string_equal(err.message, text);
    }
    for (uint64_t i = 0; i < f->bad[0]; i++)
        assert_int_equal(atomic_load(&f->done[i]), 1); /* all lower ones completed */
    assert_int_equal(zr_parallel_run(n, &opts, fail_items, f, NULL), ZARR_ERR_CORRUPT);
}

static void the_lowest_failure_wins(void **state)
{
    static const uint64_t first[] = {0, 1, 2}, middle[] = {57, 58, 60, 99},
                          last[] = {MANY - 1}, spread[] = {500, 1000, 2000, 4000, 8000};
    static const struct {
        const uint64_t *bad;
        size_t n_bad;
        uint64_t n;
    } cases[] = {
        {first, 3, 3},   {first, 3, 1000},  {middle, 4, 100},
        {last, 1, MANY}, {spread, 5, MANY},
    };
    struct failing *f = malloc(sizeof *f);

    (void)state;
    assert_non_null(f);
    for (size_t k = 0; k < ZR_COUNT(cases); k++) {
        f->bad = cases[k].bad;
        f->n_bad = cases[k].n_bad;
        for (uint32_t threads = 1; threads <= 4; threads++) {
            for (uint32_t turn = 0; turn < 6; turn++) {
                f->with_text = turn % 2;
                check_failure(f, cases[k].n, threads, turn % 3);
            }
        }
    }
    free(f);
}

struct stop_at {
    zarr_cancel cancel;
    atomic_uint started;
    uint64_t when;
};

static zarr_status cancel_at(void *arg, uint64_t i, uint32_t worker, zarr_error *err)
{
    struct stop_at *s = arg;

    (void)worker;
    (void)err;
    atomic_fetch_add(&s->started, 1);
    if (i == s->when)
        zarr_cancel_set(&s->cancel);
    return ZARR_OK;
}

static void cancelled_loops_stop(void **state)
{
    (void)state;
    for (uint32_t threads = 1; threads <= 4; threads++) {
        struct stop_at s = {.when = 10};
        const struct zr_parallel_options opts = {
            .max_threads = threads, .grain = 1, .cancel = &s.cancel};
        zarr_error err = {0};

        assert_int_equal(zr_parallel_run(1000000, &opts, cancel_at, &s, &err),
                         ZARR_ERR_CANCELLED);
        assert_int_equal(err.code, ZARR_ERR_CANCELLED);
        assert_true(atomic_load(&s.started) < 1000000);
        assert_int_equal(zr_parallel_run(5, &opts, cancel_at, &s, &err),
                         ZARR_ERR_CANCELLED);

        zarr_cancel_reset(&s.cancel);
        s.when = 999; /* the last item: with one thread, every item had started */
        if (threads == 1)
            assert_int_equal(zr_parallel_run(1000, &opts, cancel_at, &s, NULL), ZARR_OK);
    }
}

struct nested {
    uint32_t depth;
    atomic_uint leaves;
};

static zarr_status go_deeper(void *arg, uint64_t i, uint32_t worker, zarr_error *err)
{
    struct nested *up = arg;
    struct nested here = {.depth = up->depth + 1};
    zarr_status st = ZARR_OK;

    (void)i;
    (void)worker;
    if (up->depth == 3) {
        atomic_fetch_add(&up->leaves, 1);
        return ZARR_OK;
    }
    st = zr_parallel_for(6, 4, go_deeper, &here, err);
    atomic_fetch_add(&up->leaves, atomic_load(&here.leaves));
    return st;
}

static void loops_inside_loops(void **state)
{
    (void)state;
    for (int turn = 0; turn < 20; turn++) {
        struct nested top = {.depth = 0};

        assert_int_equal(zr_parallel_for(6, 4, go_deeper, &top, NULL), ZARR_OK);
        assert_int_equal(atomic_load(&top.leaves), 6 * 6 * 6 * 6);
    }
}

static void *loop_often(void *arg)
{
    uint64_t sums[8] = {0};

    for (int turn = 0; turn < 300; turn++) {
        struct nested top = {.depth = 2};

        sums[turn % 8] += zr_parallel_for(6, 3, go_deeper, &top, NULL) == ZARR_OK;
        sums[turn % 8] += atomic_load(&top.leaves) == 36;
    }
    for (int i = 0; i < 8; i++)
        *(uint64_t *)arg += sums[i];
    return NULL;
}

static void loops_from_many_threads(void **state)
{
    enum {
        THREADS = 6
    };
    zr_thread t[THREADS];
    uint64_t sums[THREADS] = {0};

    (void)state;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(zr_thread_start(&t[i], loop_often, &sums[i], NULL), ZARR_OK);
    for (int i = 0; i < THREADS; i++) {
        zr_thread_join(&t[i]);
        assert_int_equal(sums[i], 600);
    }
}

/* Plain memory written by items is visible to the caller afterwards, and the reverse. */
static zarr_status square(void *arg, uint64_t i, uint32_t worker, zarr_error *err)
{
    uint64_t *v = arg;

    (void)worker;
    (void)err;
    v[i] *= v[i];
    return ZARR_OK;
}

static void results_are_visible(void **state)
{
    static uint64_t v[4096];

    (void)state;
    for (int turn = 0; turn < 50; turn++) {
        for (uint64_t i = 0; i < ZR_COUNT(v); i++)
            v[i] = i;
        assert_int_equal(zr_parallel_for(ZR_COUNT(v), 4, square, v, NULL), ZARR_OK);
        for (uint64_t i = 0; i < ZR_COUNT(v); i++)
            assert_int_equal(v[i], i * i);
    }
}

static zarr_status take_a_while(void *arg, uint64_t i, uint32_t worker, zarr_error *err)
{
    (void)i;
    (void)err;
    atomic_store((atomic_uint *)arg + worker, 1);
    work_for(300000);
    return ZARR_OK;
}

static void several_threads_take_part(void **state)
{
    atomic_uint seen[4] = {0};
    struct zr_pool_stats stats;
    uint32_t n = 0;

    (void)state;
    for (int turn = 0; turn < 100 && n < 4; turn++) {
        assert_int_equal(zr_parallel_for(40, 4, take_a_while, seen, NULL), ZARR_OK);
        n = 0;
        for (int i = 0; i < 4; i++)
            n += atomic_load(&seen[i]);
    }
    assert_int_equal(n, 4);
    zr_pool_stats_get(&stats);
    assert_in_range(stats.n_threads, 3, ZR_MAX_THREADS - 1);
    assert_true(stats.n_wanted >= 4);
    assert_int_equal(stats.n_blocked, 0);
}

struct grains {
    atomic_uint worker[64]; /* by item: of which thread, plus 1 */
    uint64_t waits;         /* this item waits until the other thread began `for_item` */
    uint64_t for_item;
    atomic_bool was_late;
};

static zarr_status see_grains(void *arg, uint64_t i, uint32_t worker, zarr_error *err)
{
    struct grains *g = arg;
    const uint64_t end = zr_now_ns() + UINT64_C(10000000000);

    (void)err;
    atomic_store(&g->worker[i], worker + 1);
    if (i != g->waits)
        return ZARR_OK;
    while (atomic_load(&g->worker[g->for_item]) == 0 && zr_now_ns() < end)
        zr_cpu_relax();
    if (atomic_load(&g->worker[g->for_item]) == 0)
        atomic_store(&g->was_late, true);
    return ZARR_OK;
}

/* Two threads take four neighbours of 64 items at once: chunks whose rows may share a
 * line. While the first one has items 0 to 3, the other one begins with item 4. */
static void a_thread_takes_neighbours(void **state)
{
    struct grains g = {.waits = 0, .for_item = 4};

    (void)state;
    assert_int_equal(zr_parallel_for(64, 2, see_grains, &g, NULL), ZARR_OK);
    assert_false(atomic_load(&g.was_late));
    for (uint64_t i = 1; i < 4; i++)
        assert_int_equal(atomic_load(&g.worker[i]), atomic_load(&g.worker[0]));
    assert_int_not_equal(atomic_load(&g.worker[4]), atomic_load(&g.worker[0]));
}

/* The last items are taken one by one: none waits behind a slow one. */
static void the_last_grains_are_small(void **state)
{
    (void)state;
    for (uint64_t i = 57; i < 63; i++) {
        struct grains g = {.waits = i, .for_item = 63};

        assert_int_equal(zr_parallel_for(64, 2, see_grains, &g, NULL), ZARR_OK);
        assert_false(atomic_load(&g.was_late));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_item_once),
        cmocka_unit_test(worker_numbers),
        cmocka_unit_test(the_lowest_failure_wins),
        cmocka_unit_test(cancelled_loops_stop),
        cmocka_unit_test(loops_inside_loops),
        cmocka_unit_test(loops_from_many_threads),
        cmocka_unit_test(results_are_visible),
        cmocka_unit_test(several_threads_take_part),
        cmocka_unit_test(a_thread_takes_neighbours),
        cmocka_unit_test(the_last_grains_are_small),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
