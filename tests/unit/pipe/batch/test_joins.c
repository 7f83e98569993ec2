/*
 * unit/pipe/batch/test_joins.c - which leaves are encoded in one batch.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pipe/batch/batch.h"

static const struct zr_impl *impl(int i)
{
    static const char impls[2];

    return (const void *)&impls[i]; /* compared, never read */
}

static void test_joins(void **state)
{
    struct zr_stage one = {.kind = ZR_STAGE_CODEC, .impl = impl(0)}, other = one;
    struct zr_program p = {.stage = &one, .n = 1}, q = {.stage = &other, .n = 1};
    const struct zr_level a = {.encode = &p}, b = {.encode = &q}, none = {.encode = NULL};

    (void)state;
    assert_true(zr_leaves_join(&a, &b));
    assert_true(zr_leaves_join(&none, &none));
    assert_false(zr_leaves_join(&a, &none));
    other.impl = impl(1);
    assert_false(zr_leaves_join(&a, &b));
    other = one;
    other.out_device = ZARR_DEVICE_CUDA;
    assert_false(zr_leaves_join(&a, &b));
    other = one;
    q.fetch_device = ZARR_DEVICE_CUDA;
    assert_false(zr_leaves_join(&a, &b));
    q = p;
    q.n = 0;
    assert_false(zr_leaves_join(&a, &b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_joins),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
