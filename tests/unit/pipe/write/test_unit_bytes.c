/*
 * unit/pipe/write/test_unit_bytes.c - the bytes of memory that the write of one unit asks
 * for, and what a unit that is stored later has counted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pipe/write/write.h"

static void test_budget(void **state)
{
    struct zr_level lv = {.decoded_bytes = 100, .encoded_bound = 120};

    (void)state;
    assert_int_equal(zr_unit_budget(&lv, true), 220);
    assert_int_equal(zr_unit_budget(&lv, false), 340); /* and the old value */
    lv.encoded_bound = UINT64_MAX - 150;
    assert_true(zr_unit_budget(&lv, true) == UINT64_MAX - 50);
    assert_true(zr_unit_budget(&lv, false) == UINT64_MAX);
    lv.decoded_bytes = 200;
    assert_true(zr_unit_budget(&lv, true) == UINT64_MAX);
}

static void test_later_is_done(void **state)
{
    char key[] = "c/0";
    struct zr_later l = {.key = NULL};

    (void)state;
    assert_true(zr_later_is_done(&l)); /* nothing is to be stored */
    l = (struct zr_later){.key = key, .op.verb = ZARR_STORE_PUT};
    assert_true(zr_later_is_done(&l));
    l.op.status = ZARR_ERR_CONFLICT;
    assert_false(zr_later_is_done(&l));
    l.op.status = ZARR_ERR_NOT_FOUND; /* of a PUT: its folder is gone */
    assert_false(zr_later_is_done(&l));
    l.op.verb = ZARR_STORE_ERASE;
    assert_true(zr_later_is_done(&l));
}

static void test_later_counts(void **state)
{
    zarr_stats stats = {.chunks_done = 10, .chunks_missing = 4, .elements = 1000};
    struct zr_later l = {.key = NULL};

    (void)state;
    zr_later_count(&l, &stats, false);
    stats.chunks_done += 3;
    stats.chunks_missing += 1;
    stats.elements += 48;
    zr_later_count(&l, &stats, true);
    assert_int_equal(l.chunks_done, 3);
    assert_int_equal(l.chunks_missing, 1);
    assert_int_equal(l.chunks_direct, 0);
    assert_int_equal(l.elements, 48);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_budget),
        cmocka_unit_test(test_later_is_done),
        cmocka_unit_test(test_later_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
