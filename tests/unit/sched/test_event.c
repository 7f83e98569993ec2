/* unit/sched/test_event.c - events and completion queues. */
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
#define MS     UINT64_C(1000000)

static void *set_it(void *arg)
{
    zr_event_set(arg);
    return NULL;
}

static void events_in_one_thread(void **state)
{
    struct zr_event e;
    const uint64_t begin = zr_now_ns();

    (void)state;
    zr_event_init(&e);
    assert_false(zr_event_is_set(&e));
    assert_false(zr_event_wait(&e, 0));
    assert_false(zr_event_wait(&e, zr_now_ns() + 20 * MS));
    assert_true(zr_now_ns() >= begin + 20 * MS);
    zr_event_set(&e);
    zr_event_set(&e);
    assert_true(zr_event_is_set(&e));
    assert_true(zr_event_wait(&e, 0));
    assert_true(zr_event_wait(&e, UINT64_MAX));
    zr_event_deinit(&e);
}

/* The waiter frees the event at once; sanitizers see a setter that still uses it. */
static void the_waiter_may_free(void **state)
{
    enum {
        TURNS = 500
    };

    (void)state;
    for (int i = 0; i < TURNS; i++) {
        struct zr_event *e = malloc(sizeof *e);
        zr_thread t;

        assert_non_null(e);
        zr_event_init(e);
        assert_int_equal(zr_thread_start(&t, set_it, e, NULL), ZARR_OK);
        if (i % 2) {
            assert_true(zr_event_wait(e, UINT64_MAX));
        } else {
            while (!zr_event_is_set(e))
                zr_cpu_relax();
        }
        zr_event_deinit(e);
        free(e);
        zr_thread_join(&t);
    }
}

struct item {
    struct zr_done_node node;
    int from, number;
};

enum {
    PUSHERS = 4,
    PUSHES = 5000
};

struct pusher {
    struct zr_done_queue *q;
    struct item *items;
};

static void *push_all(void *arg)
{
    struct pusher *p = arg;

    for (int i = 0; i < PUSHES; i++)
        zr_done_push(p->q, &p->items[i].node);
    return NULL;
}

static void queues_keep_the_order(void **state)
{
    struct zr_done_queue q;
    struct pusher p[PUSHERS];
    zr_thread t[PUSHERS];
    int next[PUSHERS] = {0}, n = 0;

    (void)state;
    zr_done_init(&q);
    for (int k = 0; k < PUSHERS; k++) {
        p[k] = (struct pusher){&q, calloc(PUSHES, sizeof(struct item))};
        assert_non_null(p[k].items);
        for (int i = 0; i < PUSHES; i++)
            p[k].items[i] = (struct item){{NULL}, k, i};
        assert_int_equal(zr_thread_start(&t[k], push_all, &p[k], NULL), ZARR_OK);
    }
    while (n < PUSHERS * PUSHES) {
        struct zr_done_node *node = zr_done_take(&q, zr_now_ns() + 30 * SECOND);

        assert_non_null(node);
        for (; node; node = node->next, n++) {
            const struct item *it = (const struct item *)node;

            assert_int_equal(it->number, next[it->from]++);
        }
    }
    assert_null(zr_done_take(&q, 0));
    assert_null(zr_done_take(&q, zr_now_ns() + MS));
    for (int k = 0; k < PUSHERS; k++) {
        zr_thread_join(&t[k]);
        free(p[k].items);
    }
    zr_done_deinit(&q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_in_one_thread),
        cmocka_unit_test(the_waiter_may_free),
        cmocka_unit_test(queues_keep_the_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
