/* unit/base/test_str.c - growing strings, UTF-8, base64. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "unit/json/fail_alloc.h"

static const char *const want_text =
    "abc-12-18446744073709551615-0-"
    "a text that needs more than the first thirty-two bytes";

static zarr_status str_scenario(struct fail_alloc *f, zarr_error *err)
{
    struct zr_str s;
    zarr_status st;
    char *text;

    zr_str_init(&s, &f->alloc);
    assert_string_equal(zr_str_text(&s), "");
    zr_str_puts(&s, "ab");
    zr_str_putc(&s, 'c');
    zr_str_printf(&s, "-%d-", 12);
    zr_str_u64(&s, UINT64_MAX);
    zr_str_putc(&s, '-');
    zr_str_u64(&s, 0);
    zr_str_printf(&s, "-%s", "a text that needs more than the first thirty-two bytes");
    st = zr_str_status(&s, err);
    assert_int_equal(st == ZARR_OK, !s.failed);
    assert_int_equal(strlen(zr_str_text(&s)), s.bytes);
    /* After a failure: a prefix. */
    assert_memory_equal(zr_str_text(&s), want_text, s.bytes);
    text = zr_str_take(&s);
    assert_int_equal(text != NULL, st == ZARR_OK);
    if (text)
        assert_string_equal(text, want_text);
    zr_free(&f->alloc, text);
    zr_str_deinit(&s);
    return st;
}

static void strings_with_failing_memory(void **state)
{
    struct fail_alloc f;
    zarr_status st = ZARR_ERR_NO_MEMORY;

    (void)state;
    for (size_t n = 1; st != ZARR_OK && n < 100; n++) {
        zarr_error err = {0};

        fail_alloc_init(&f, n, 0);
        st = str_scenario(&f, &err);
        assert_int_equal(st == ZARR_OK, !f.failed);
        assert_int_equal(err.code, st);
        assert_int_equal(f.held, 0);
    }
    assert_int_equal(st, ZARR_OK);
}

static void strings_hold_bytes(void **state)
{
    struct zr_str s;
    char *text;

    (void)state;
    zr_str_init(&s, NULL);
    text = zr_str_take(&s);
    assert_string_equal(text, "");
    zr_free(NULL, text);

    zr_str_append(&s, NULL, 0);
    zr_str_append(&s, "a\0b", 3);
    zr_str_append(&s, "", 0);
    assert_int_equal(s.bytes, 3);
    assert_memory_equal(s.ptr, "a\0b", 4);
    zr_str_clear(&s);
    assert_string_equal(zr_str_text(&s), "");
    for (int i = 0; i < 100000; i++)
        zr_str_putc(&s, (char)('a' + i % 26));
    assert_int_equal(strlen(s.ptr), 100000);
    zr_str_append(&s, "x", SIZE_MAX - 10);
    assert_true(s.failed);
    zr_str_puts(&s, "ignored");
    assert_int_equal(s.bytes, 100000);
    assert_int_equal(zr_str_status(&s, NULL), ZARR_ERR_NO_MEMORY);
    zr_str_clear(&s);
    assert_int_equal(zr_str_status(&s, NULL), ZARR_OK);
    zr_str_append(&s, "x", SIZE_MAX - 10);
    assert_null(zr_str_take(&s));
    assert_null(s.ptr);
}

/* Texts of every length around the size of the buffer. */
static void printf_at_every_length(void **state)
{
    char wide[200];

    (void)state;
    memset(wide, 'w', sizeof wide);
    for (int before = 0; before < 70; before++) {
        for (int n = 0; n < 140; n++) {
            struct zr_str s;

            zr_str_init(&s, NULL);
            zr_str_append(&s, wide, (size_t)before);
            zr_str_printf(&s, "%.*s", n, wide);
            assert_int_equal(s.bytes, before + n);
            assert_int_equal(strlen(zr_str_text(&s)), before + n);
            zr_str_deinit(&s);
        }
    }
}

static void comparisons(void **state)
{
    (void)state;
    assert_true(zr_streq("a", "a") && zr_streq(NULL, NULL) && !zr_streq("a", NULL));
    assert_true(!zr_streq("a", "b") && !zr_streq(NULL, "a"));
    assert_true(zr_starts_with("abc", "ab") && zr_starts_with("abc", ""));
    assert_true(!zr_starts_with("ab", "abc"));
    assert_true(zr_ends_with("abc", "bc") && zr_ends_with("abc", ""));
    assert_true(!zr_ends_with("bc", "abc") && !zr_ends_with("abc", "ab"));
}

static void utf8(void **state)
{
    static const struct {
        const char *text;
        size_t n;
        bool valid;
    } cases[] = {
        {"", 0, true},
        {"plain ASCII text of some length", 31, true},
        {"a\0b", 3, true},
        {"\x7F", 1, true},
        {"\x80", 1, false},
        {"\xC2\x80", 2, true},
        {"\xC1\xBF", 2, false},     /* overlong */
        {"\xE0\x9F\xBF", 3, false}, /* overlong */
        {"\xE0\xA0\x80", 3, true},
        {"\xED\x9F\xBF", 3, true},
        {"\xED\xA0\x80", 3, false}, /* a surrogate */
        {"\xEE\x80\x80", 3, true},
        {"\xEF\xBF\xBF", 3, true},
        {"\xF0\x8F\xBF\xBF", 4, false}, /* overlong */
        {"\xF0\x90\x80\x80", 4, true},
        {"\xF4\x8F\xBF\xBF", 4, true},
        {"\xF4\x90\x80\x80", 4, false}, /* above U+10FFFF */
        {"\xF5\x80\x80\x80", 4, false},
        {"\xE2\x82", 2, false},
        {"\xE2\x82x", 3, false},
        {"1234567\xC3\xA9", 9, true}, /* across the border of an 8-byte step */
        {"12345678\xC3", 9, false},
    };

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(cases); i++)
        assert_int_equal(zr_utf8_is_valid(cases[i].text, cases[i].n), cases[i].valid);
}

static void base64_texts(void **state)
{
    static const struct {
        const char *text;
        bool valid;
        const char *bytes;
        size_t n;
    } cases[] = {
        {"", true, "", 0},
        {"Zg==", true, "f", 1},
        {"Zg", true, "f", 1},
        {"Zg=", true, "f", 1},
        {"Zm8=", true, "fo", 2},
        {"Zm8", true, "fo", 2},
        {"Zm9v", true, "foo", 3},
        {"Zm9vYg==", true, "foob", 4},
        {"/+8A", true, "\xFF\xEF\0", 3},
        {"Z", false, "", 0},
        {"Zm9vY", false, "", 0},
        {"Zm9v=", false, "", 0},
        {"Zm9v==", false, "", 0},
        {"Zm8==", false, "", 0},
        {"Zg===", false, "", 0},
        {"=", false, "", 0},
        {"==", false, "", 0},
        {"Zm 9v", false, "", 0},
        {"Zm9v\n", false, "", 0},
        {"Zm-v", false, "", 0},
        {"Z=g=", false, "", 0},
    };

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(cases); i++) {
        unsigned char out[16];
        size_t n = 99;

        assert_int_equal(
            zr_base64_decode(cases[i].text, strlen(cases[i].text), out, sizeof out, &n),
            cases[i].valid);
        if (cases[i].valid) {
            assert_int_equal(n, cases[i].n);
            assert_memory_equal(out, cases[i].bytes, n);
        }
    }
}

static void base64_round_trip(void **state)
{
    unsigned char in[100], out[100];

    (void)state;
    for (size_t i = 0; i < sizeof in; i++)
        in[i] = (unsigned char)(i * 197 + 13);
    for (size_t n = 0; n <= sizeof in; n++) {
        struct zr_str s;
        size_t got = 0;

        zr_str_init(&s, NULL);
        zr_base64_encode(&s, in, n);
        assert_int_equal(s.bytes, (n + 2) / 3 * 4);
        assert_true(zr_base64_decode(zr_str_text(&s), s.bytes, out, n, &got));
        assert_int_equal(got, n);
        assert_memory_equal(in, out, n);
        if (n)
            assert_false(zr_base64_decode(zr_str_text(&s), s.bytes, out, n - 1, &got));
        zr_str_deinit(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings_with_failing_memory),
        cmocka_unit_test(strings_hold_bytes),
        cmocka_unit_test(printf_at_every_length),
        cmocka_unit_test(comparisons),
        cmocka_unit_test(utf8),
        cmocka_unit_test(base64_texts),
        cmocka_unit_test(base64_round_trip),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
