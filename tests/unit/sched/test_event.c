/* unit/sched/test_event.c - events. */
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

/* The waiter frees the event at once. Sanitizers detect a setter that still uses it. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_in_one_thread),
        cmocka_unit_test(the_waiter_may_free),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
