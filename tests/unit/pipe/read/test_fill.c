/*
 * unit/pipe/read/test_fill.c - whether elements are the fill value: bit for bit, so that
 * -0.0 is not 0.0 and a NaN is itself.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pipe/read/read.h"

#include <math.h>

static void test_fill(void **state)
{
    double fill = 0.0, elements[] = {0.0, 0.0, -0.0};
    const struct zr_layout layout = {.item_bytes = sizeof fill, .fill = (uint8_t *)&fill};

    (void)state;
    assert_true(zr_is_fill(&layout, elements, 0));
    assert_true(zr_is_fill(&layout, elements, 2));
    assert_false(zr_is_fill(&layout, elements, 3));
    fill = elements[0] = elements[1] = NAN;
    assert_true(zr_is_fill(&layout, elements, 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fill),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
