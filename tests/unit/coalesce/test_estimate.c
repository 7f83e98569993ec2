/*
 * unit/coalesce/test_estimate.c - latency and bandwidth from samples, and the gaps that
 * follow from them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "coalesce/coalesce.h"

#define MS  UINT64_C(1000000)
#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)

static uint64_t gap_after(struct zr_estimate *e)
{
    struct zr_joint_rules rules;

    zr_estimate_rules(e, &rules);
    assert_int_equal(rules.bytes, 8 * MIB);
    return rules.gap;
}

static void test_gaps(void **state)
{
    static const struct {
        uint64_t wait_ns, transfer_ns, bytes, gap;
    } rows[] = {
        {10 * MS, 1000 * MS, 16 * MIB, 16 * MIB / 100}, /* 10 ms at 16 MiB/s */
        {1 * MS, 1000 * MS, 128 * MIB, 128 * MIB / 1000},
        {100 * MS, 1000 * MS, 512 * MIB, 1 * MIB}, /* at most */
        {0, 1000 * MS, 1 * MIB, 16 * KIB},         /* at least */
        {10 * MS, 0, 1 * MIB, 1 * MIB},            /* faster than the clock */
        {UINT64_MAX, UINT64_MAX, UINT64_MAX, 16 * KIB},
        {UINT64_MAX, 1, UINT64_MAX, 1 * MIB},
    };

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(rows); i++) {
        struct zr_estimate e = {0};

        zr_estimate_add(&e, rows[i].wait_ns, rows[i].transfer_ns, rows[i].bytes);
        assert_in_range(gap_after(&e), rows[i].gap - rows[i].gap / 100, rows[i].gap);
    }
}

static void test_no_samples(void **state)
{
    struct zr_estimate e = {0};
    const uint64_t guess = gap_after(&e);

    (void)state;
    assert_in_range(guess, 64 * KIB, 1 * MIB);
    /* a short transfer tells the latency alone */
    zr_estimate_add(&e, 3 * MS, 1, 100);
    assert_in_range(gap_after(&e), guess / 11, guess / 9);
}

/* The same samples give the same result; one outlier moves it by an eighth, and many
 * samples make it forget. */
static void test_average(void **state)
{
    struct zr_estimate a = {0}, b = {0};

    (void)state;
    for (int i = 0; i < 100; i++) {
        zr_estimate_add(&a, (10 + (uint64_t)i % 3) * MS, 1000 * MS, 16 * MIB);
        zr_estimate_add(&b, (10 + (uint64_t)i % 3) * MS, 1000 * MS, 16 * MIB);
    }
    assert_int_equal(gap_after(&a), gap_after(&b));
    assert_in_range(atomic_load(&a.latency_ns), 10 * MS, 12 * MS);
    zr_estimate_add(&a, 90 * MS, 1000 * MS, 16 * MIB);
    assert_in_range(atomic_load(&a.latency_ns), 20 * MS, 22 * MS);
    for (int i = 0; i < 100; i++)
        zr_estimate_add(&a, 1 * MS, 1000 * MS, 16 * MIB);
    assert_in_range(atomic_load(&a.latency_ns), MS * 99 / 100, MS * 101 / 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_gaps),
                                       cmocka_unit_test(test_no_samples),
                                       cmocka_unit_test(test_average)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
