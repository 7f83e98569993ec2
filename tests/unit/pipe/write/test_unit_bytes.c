/*
 * unit/pipe/write/test_unit_bytes.c - the bytes of memory that the write of one unit asks
 * for.
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_budget),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
