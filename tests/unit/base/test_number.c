/* unit/base/test_number.c - numbers to text and back, in any locale. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include <locale.h>
#include <math.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum {
    RANDOM_DOUBLES = 50000
};
#else
enum {
    RANDOM_DOUBLES = 200000
};
#endif

static uint64_t next_random(uint64_t *s) /* xorshift64*: the same numbers in every run */
{
    *s ^= *s >> 12;
    *s ^= *s << 25;
    *s ^= *s >> 27;
    return *s * UINT64_C(0x2545F4914F6CDD1D);
}

static void integers(void **state)
{
    static const struct {
        const char *text;
        bool as_u64, as_i64;
        uint64_t u;
        int64_t i;
    } cases[] = {
        {"0", true, true, 0, 0},
        {"007", true, true, 7, 7},
        {"18446744073709551615", true, false, UINT64_MAX, 0},
        {"18446744073709551616", false, false, 0, 0},
        {"99999999999999999999", false, false, 0, 0},
        {"9223372036854775807", true, true, INT64_MAX, INT64_MAX},
        {"9223372036854775808", true, false, UINT64_C(1) << 63, 0},
        {"-9223372036854775808", false, true, 0, INT64_MIN},
        {"-9223372036854775809", false, false, 0, 0},
        {"-1", false, true, 0, -1},
        {"+1", false, true, 0, 1},
        {"-0", false, true, 0, 0},
        {"", false, false, 0, 0},
        {"-", false, false, 0, 0},
        {"--1", false, false, 0, 0},
        {"1 ", false, false, 0, 0},
        {" 1", false, false, 0, 0},
        {"1.0", false, false, 0, 0},
        {"0x10", false, false, 0, 0},
    };

    (void)state;
    for (size_t k = 0; k < ZR_COUNT(cases); k++) {
        uint64_t u = 0;
        int64_t i = 0;
        const size_t n = strlen(cases[k].text);

        assert_int_equal(zr_parse_u64(cases[k].text, n, &u), cases[k].as_u64);
        assert_int_equal(zr_parse_i64(cases[k].text, n, &i), cases[k].as_i64);
        if (cases[k].as_u64)
            assert_true(u == cases[k].u);
        if (cases[k].as_i64)
            assert_true(i == cases[k].i);
    }
}

static void reals_that_are_none(void **state)
{
    static const char *const bad[] = {
        "",    "-",    "+",    ".",     ".5",   "1.",   "01",    "-01",      "1e",  "1e+",
        "e5",  "1.e5", "1..0", "1.0.0", "1e5.", "1e 5", " 1",    "1 ",       "0x1", "inf",
        "nan", "NaN",  "++1",  "+-1",   "1,5",  "1e5e", "1_000", "Infinity", "00",  "1-",
    };

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(bad); i++) {
        double d;
        float f;

        assert_false(zr_parse_f64(bad[i], strlen(bad[i]), &d));
        assert_false(zr_parse_f32(bad[i], strlen(bad[i]), &f));
    }
}

static void assert_reads(const char *text, double want)
{
    double got = 42;

    assert_true(zr_parse_f64(text, strlen(text), &got));
    if (memcmp(&got, &want, sizeof got) != 0)
        fail_msg("%s read as %a, not %a", text, got, want);
}

static void reals_at_the_edges(void **state)
{
    static const struct {
        const char *text;
        double want;
    } cases[] = {
        {"0", 0.0},
        {"-0", -0.0},
        {"-0.0e999999999999999999999", -0.0},
        {"+1.5", 1.5},
        {"1e400", (double)INFINITY},
        {"-1e99999999999999999999", -(double)INFINITY},
        {"1e-400", 0.0},
        {"1e-99999999999999999999", 0.0},
        {"4.9e-324", 5e-324},
        {"2.4703282292062327e-324", 0.0}, /* just below half of the smallest denormal */
        {"2.4703282292062328e-324", 5e-324}, /* just above */
        {"1.7976931348623157e308", 0x1.fffffffffffffp+1023},
        {"1.7976931348623159e308", (double)INFINITY},
        {"9007199254740993", 9007199254740992.0}, /* a tie: to even */
        {"9007199254740993.0000000000000000000000000001", 9007199254740994.0},
        {"1e22", 1e22},
        {"1e23", 1e23},
        {"8.5e22", 8.5e22},
        {"123456789012345678901234567890", 123456789012345678901234567890.0},
        {"0.000001", 1e-6},
        {"1E+2", 100.0},
        {"2.2250738585072011e-308",
         0x0.fffffffffffffp-1022}, /* made PHP loop forever once */
        {"2.2250738585072012e-308", 0x1p-1022},
    };

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(cases); i++)
        assert_reads(cases[i].text, cases[i].want);
}

/* 2^53 + 1 lies halfway between two doubles. 10^3 more zeros do not change that, one
 * digit after them does. */
static void very_long_reals(void **state)
{
    enum {
        ZEROS = 5000
    };
    char *text = malloc(2 * ZEROS + 100);
    size_t n;

    (void)state;
    assert_non_null(text);
    n = (size_t)sprintf(text, "9007199254740993.");
    memset(text + n, '0', ZEROS);
    text[n + ZEROS] = '\0';
    assert_reads(text, 9007199254740992.0);
    text[n + ZEROS - 1] = '1';
    assert_reads(text, 9007199254740994.0);

    n = (size_t)sprintf(text, "0.");
    memset(text + n, '0', ZEROS);
    sprintf(text + n + ZEROS, "15e%d", ZEROS + 1);
    assert_reads(text, 1.5);
    text[0] = '1';
    memset(text + 1, '0', ZEROS);
    sprintf(text + 1 + ZEROS, "e-%d", ZEROS - 2);
    assert_reads(text, 100.0);
    free(text);
}

static void check_f64(double v)
{
    char text[40], other[64];
    double back = 0;
    size_t n, digits = 0;

    n = zr_format_f64(text, sizeof text, v);
    assert_int_equal(n, strlen(text));
    assert_true(n < sizeof text && strpbrk(text, ".e"));
    if (!zr_parse_f64(text, n, &back) || memcmp(&back, &v, sizeof v) != 0)
        fail_msg("%a became %s, which reads as %a", v, text, back);
    for (size_t i = 0; i < n && text[i] != 'e'; i++) /* one digit less is not enough */
        digits += text[i] >= '0' && text[i] <= '9' && (digits || text[i] != '0');
    if (digits < 2 || !strchr(text, 'e') || digits > 17)
        return;
    snprintf(other, sizeof other, "%.*e", (int)digits - 2, v);
    assert_true(strtod(other, NULL) != v);
}

static void random_bits_round_trip(void **state)
{
    uint64_t seed = UINT64_C(0x5DEECE66D1234567);

    (void)state;
    for (int i = 0; i < RANDOM_DOUBLES; i++) {
        const uint64_t bits = next_random(&seed);
        double d;

        memcpy(&d, &bits, sizeof d);
        if (isfinite(d))
            check_f64(d);
    }
}

static void human_numbers_round_trip(void **state)
{
    uint64_t seed = 99;

    (void)state;
    for (int i = 0; i < RANDOM_DOUBLES / 4; i++) {
        const uint64_t r = next_random(&seed);
        double tens = 1;

        for (uint64_t k = r >> 60; k > 0; k--)
            tens *= 10;
        check_f64((double)(int64_t)(r % 2000000) / tens);
    }
    for (int e = -1074; e <= 1023; e++) {
        check_f64(ldexp(1.0, e));
        check_f64(nextafter(ldexp(1.0, e), 0));
        check_f64(nextafter(ldexp(1.0, e), (double)INFINITY));
    }
}

/* The text of Python's repr(). */
static void texts_as_python_writes_them(void **state)
{
    static const struct {
        double v;
        const char *text;
    } cases[] = {
        {0.0, "0.0"},
        {-0.0, "-0.0"},
        {1, "1.0"},
        {-1.5, "-1.5"},
        {0.1, "0.1"},
        {0.3, "0.3"},
        {0.1 + 0.2, "0.30000000000000004"},
        {1e15, "1000000000000000.0"},
        {9999999999999998, "9999999999999998.0"},
        {1e16, "1e+16"},
        {1.5e16, "1.5e+16"},
        {123456789012345680, "1.2345678901234568e+17"},
        {0.0001, "0.0001"},
        {0.00012345, "0.00012345"},
        {0.00001, "1e-05"},
        {1e-7, "1e-07"},
        {1e100, "1e+100"},
        {5e-324, "5e-324"},
        {1.5e-323, "1.5e-323"},
        {2.2250738585072014e-308, "2.2250738585072014e-308"},
        {1.7976931348623157e308, "1.7976931348623157e+308"},
        {9007199254740992, "9007199254740992.0"},
        {9007199254740994, "9007199254740994.0"},
        {0x1p-44,
         "5.684341886080802e-14"}, /* the upper neighbour of the nearest number */
        {1.0 / 3, "0.3333333333333333"},
        {2.0 / 3, "0.6666666666666666"},
        {9.5367431640625e-07, "9.5367431640625e-07"},
        {1e23, "1e+23"},
        {8.98846567431158e307, "8.98846567431158e+307"},
        {123456.789, "123456.789"},
        {100, "100.0"},
        {(double)INFINITY, "Infinity"},
        {-(double)INFINITY, "-Infinity"},
        {(double)NAN, "NaN"},
    };
    char text[40];

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(cases); i++) {
        zr_format_f64(text, sizeof text, cases[i].v);
        assert_string_equal(text, cases[i].text);
    }
}

static void no_locale_matters(void **state)
{
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "fr_FR"};
    char text[40];
    double d;
    size_t i = 0;

    (void)state;
    while (i < ZR_COUNT(names) && !setlocale(LC_ALL, names[i]))
        i++;
    if (i == ZR_COUNT(names)) {
        print_message("skipped: no locale with a decimal comma on this machine\n");
        skip();
    }
    snprintf(text, sizeof text, "%.1f", 1.5);
    assert_string_equal(text, "1,5"); /* it is one */
    zr_format_f64(text, sizeof text, 0.1 + 0.2);
    assert_string_equal(text, "0.30000000000000004");
    assert_true(zr_parse_f64("0.30000000000000004", 19, &d) && d == 0.1 + 0.2);
    assert_true(zr_parse_f64("1.5", 3, &d) && d == 1.5);
    assert_false(zr_parse_f64("1,5", 3, &d));
    setlocale(LC_ALL, "C");
}

static void small_buffers_are_safe(void **state)
{
    char text[4] = "zzz";

    (void)state;
    assert_int_equal(zr_format_f64(text, sizeof text, 12345.5), 3);
    assert_string_equal(text, "123");
    assert_int_equal(zr_format_f64(text, 0, 1.5), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers),
        cmocka_unit_test(reals_that_are_none),
        cmocka_unit_test(reals_at_the_edges),
        cmocka_unit_test(very_long_reals),
        cmocka_unit_test(random_bits_round_trip),
        cmocka_unit_test(human_numbers_round_trip),
        cmocka_unit_test(texts_as_python_writes_them),
        cmocka_unit_test(no_locale_matters),
        cmocka_unit_test(small_buffers_are_safe),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
