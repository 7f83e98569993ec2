/*
 * unit/net/test_parse.c - the parsers of what servers send: headers, ranges, dates,
 * redirects; and which addresses are public.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "net/net_int.h"

/* ---- headers ---- */

/* Parses lines that end with '|'. */
static zarr_status parse(struct zr_net_answer *a, const char *text)
{
    zarr_error err = {0};
    zarr_status st = ZARR_OK;

    zr_net_answer_reset(a, NULL);
    while (*text && st == ZARR_OK) {
        const size_t n = strcspn(text, "|");
        char line[512];

        assert_true(n + 2 < sizeof line);
        (void)snprintf(line, sizeof line, "%.*s\r\n", (int)n, text);
        st = zr_net_answer_add(a, line, n + 2, &err);
        text += n + (text[n] == '|');
    }
    if (st == ZARR_OK)
        st = zr_net_answer_finish(a, &err);
    assert_true(st == ZARR_OK || err.message[0]);
    return st;
}

static void test_facts(void **state)
{
    struct zr_net_answer a = {0};

    (void)state;
    assert_int_equal(parse(&a, "HTTP/1.1 206 Partial Content|Content-Length: 4 \t|"
                               "content-range:bytes 2-5/10|ETag: \"x-y\"|X: |Y:1"),
                     ZARR_OK);
    assert_int_equal(a.status, 206);
    assert_true(a.is_range && !a.is_chunked && !a.is_etag_weak);
    assert_int_equal(a.length, 4);
    assert_int_equal(a.range_first, 2);
    assert_int_equal(a.range_bytes, 4);
    assert_int_equal(a.total, 10);
    assert_string_equal(a.etag, "\"x-y\"");
    assert_string_equal(zr_net_answer_header(&a, "x"), "");
    assert_string_equal(zr_net_answer_header(&a, "y"), "1");
    assert_null(zr_net_answer_header(&a, "Content"));
    /* another status line begins anew, as after 100 Continue */
    assert_int_equal(parse(&a, "HTTP/1.1 100 Continue|ETag: \"a\"|HTTP/1.1 200|"
                               "Transfer-Encoding: gzip, chunked|ETag: W/\"b\"|"
                               "Retry-After: 7"),
                     ZARR_OK);
    assert_int_equal(a.status, 200);
    assert_true(a.is_chunked && a.is_etag_weak);
    assert_string_equal(a.etag, "W/\"b\"");
    assert_true(a.total == UINT64_MAX && a.retry_after_s == 7);
    assert_int_equal(parse(&a, "HTTP/1.1 200 OK|Date: Fri, 30 Nov 2026 12:00:00 GMT"),
                     ZARR_OK);
    assert_int_equal(a.date_s, 1796040000);
    assert_int_equal(parse(&a, "HTTP/1.1 200 OK|Date: today"), ZARR_OK);
    assert_int_equal(a.date_s, 0);
    assert_int_equal(parse(&a, "HTTP/1.0 200 OK|Content-Length: 12|ETag: bare"), ZARR_OK);
    assert_true(a.total == 12 && a.is_etag_weak);
    assert_int_equal(parse(&a, "HTTP/1.1 416 x|Content-Range: bytes */7"), ZARR_OK);
    assert_true(a.total == 7 && !a.is_range);
    zr_net_answer_deinit(&a);
}

static void test_wrong_headers(void **state)
{
    static const char *const wrong[] = {
        "HTTP/1.1",
        "HTTP/1.1 20",
        "HTTP/1.1 2000 OK",
        "HTTP/1.1 099 OK",
        "HTTP/1.1 600 OK",
        "HTTP/1.1 2x0 OK",
        "A: b",
        "HTTP/1.1 200 OK|no colon",
        "HTTP/1.1 200 OK|: x",
        "HTTP/1.1 200 OK| folded: x",
        "HTTP/1.1 200 OK|a : x",
        "HTTP/1.1 200 OK|a: \x01",
        "HTTP/1.1 200 OK|Content-Length: -1",
        "HTTP/1.1 200 OK|Content-Length: 1x",
        "HTTP/1.1 200 OK|Content-Length: 18446744073709551616",
        "HTTP/1.1 200 OK|Content-Length: 18446744073709551615",
        "HTTP/1.1 200 OK|Content-Length: 1|Content-Length: 2",
        "HTTP/1.1 200 OK|ETag: \"a\"|etag: \"b\"",
        "HTTP/1.1 302 x|Location: /a|Location: /b",
        "HTTP/1.1 200 OK|Content-Encoding: gzip",
        "HTTP/1.1 206 OK|Content-Length: 4",
        "HTTP/1.1 206 OK|Content-Range: bytes */4",
        "HTTP/1.1 206 OK|Content-Length: 3|Content-Range: bytes 0-3/4",
        "HTTP/1.1 206 OK|Content-Range: bytes 0-3/4|Content-Range: bytes 0-2/4"};
    struct zr_net_answer a = {0};

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(wrong); i++)
        assert_int_equal(parse(&a, wrong[i]), ZARR_ERR_IO);
    /* an encoded error page is no data */
    assert_int_equal(parse(&a, "HTTP/1.1 404 x|Content-Encoding: gzip"), ZARR_OK);
    zr_net_answer_deinit(&a);
}

/* Only a strong ETag pins the bytes, and a condition can have it. */
static void test_etags(void **state)
{
    static const char *const weak[] = {"\"",       "abc",     "W/\"1\"", "\"a",
                                       "\"a\"b\"", "\"a b\"", "\"\x80\""};
    struct zr_net_answer a = {0};
    char text[64];

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(weak); i++) {
        (void)snprintf(text, sizeof text, "HTTP/1.1 200 OK|ETag: %s", weak[i]);
        assert_int_equal(parse(&a, text), ZARR_OK);
        assert_true(a.etag && a.is_etag_weak);
    }
    assert_int_equal(parse(&a, "HTTP/1.1 200 OK|ETag: \"\" "), ZARR_OK);
    assert_false(a.is_etag_weak);
    assert_int_equal(parse(&a, "HTTP/1.1 200 OK|ETag: "), ZARR_OK);
    assert_true(!a.etag && !a.is_etag_weak);
    zr_net_answer_deinit(&a);
}

static void test_content_range(void **state)
{
    static const char *const wrong[] = {"",
                                        "bytes",
                                        "bytes 0-3",
                                        "bytes 3-0/4",
                                        "bytes 0-4/4",
                                        "bytes -3/4",
                                        "bytes 0-/4",
                                        "bytes 0-3/",
                                        "bytes 0-3/x",
                                        "bytes 0-3/4 ",
                                        "items 0-3/4",
                                        "bytes=0-3/4",
                                        "bytes */4",
                                        "bytes 0-18446744073709551615/*",
                                        "bytes +0-3/4",
                                        "bytes 0-3,5-6/9"};
    uint64_t first, bytes, total;

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(wrong); i++)
        assert_false(zr_net_parse_content_range(wrong[i], true, &first, &bytes, &total));
    assert_true(zr_net_parse_content_range("BYTES  1-1/*", true, &first, &bytes, &total));
    assert_true(first == 1 && bytes == 1 && total == UINT64_MAX);
    assert_true(zr_net_parse_content_range("bytes */0", false, &first, &bytes, &total));
    assert_int_equal(total, 0);
    assert_false(zr_net_parse_content_range("bytes */*", false, &first, &bytes, &total));
    assert_false(
        zr_net_parse_content_range("bytes 0-1/2", false, &first, &bytes, &total));
}

static zarr_status check(const char *range, uint32_t flags, uint64_t first,
                         uint64_t bytes)
{
    struct zr_net_answer a = {0};
    char text[256];
    zarr_status st;

    (void)snprintf(text, sizeof text, "HTTP/1.1 206 x|Content-Range: bytes %s", range);
    assert_int_equal(parse(&a, text), ZARR_OK);
    st = zr_net_answer_check_range(&a, flags, first, bytes, NULL);
    zr_net_answer_deinit(&a);
    return st;
}

static void test_check_range(void **state)
{
    (void)state;
    assert_int_equal(check("2-5/10", ZR_NET_RANGE, 2, 4), ZARR_OK);
    assert_int_equal(check("2-5/*", ZR_NET_RANGE, 2, 4), ZARR_OK);
    assert_int_equal(check("2-9/10", ZR_NET_RANGE, 2, 100), ZARR_OK); /* up to the end */
    assert_int_equal(check("2-8/10", ZR_NET_RANGE, 2, 100), ZARR_ERR_IO);
    assert_int_equal(check("2-4/10", ZR_NET_RANGE, 2, 4), ZARR_ERR_IO);
    assert_int_equal(check("2-4/*", ZR_NET_RANGE, 2, 4), ZARR_ERR_IO);
    assert_int_equal(check("1-4/10", ZR_NET_RANGE, 2, 4), ZARR_ERR_IO);
    assert_int_equal(check("2-6/10", ZR_NET_RANGE, 2, 4), ZARR_ERR_IO);
    assert_int_equal(check("6-9/10", ZR_NET_SUFFIX, 0, 4), ZARR_OK);
    assert_int_equal(check("0-9/10", ZR_NET_SUFFIX, 0, 40), ZARR_OK);
    assert_int_equal(check("6-9/*", ZR_NET_SUFFIX, 0, 4), ZARR_ERR_IO);
    assert_int_equal(check("5-8/10", ZR_NET_SUFFIX, 0, 4), ZARR_ERR_IO);
    assert_int_equal(check("7-9/10", ZR_NET_SUFFIX, 0, 4), ZARR_ERR_IO);
    assert_int_equal(check("0-9/10", 0, 0, 0), ZARR_ERR_IO);
}

static void test_retry_after(void **state)
{
    uint64_t s = 0;

    (void)state;
    assert_true(zr_net_parse_retry_after("120", 0, &s) && s == 120);
    assert_true(zr_net_parse_retry_after("Sun, 06 Nov 1994 08:49:37 GMT", 784111700, &s));
    assert_int_equal(s, 77);
    assert_true(
        zr_net_parse_retry_after("Thu, 29 Feb 2024 00:00:00 GMT", 1709164799, &s));
    assert_int_equal(s, 1);
    assert_true(zr_net_parse_retry_after("Sun, 06 Nov 1994 08:49:37 GMT", 1 << 30, &s));
    assert_int_equal(s, 0);
    assert_false(zr_net_parse_retry_after("", 0, &s));
    assert_false(zr_net_parse_retry_after("-1", 0, &s));
    assert_false(zr_net_parse_retry_after("Sun, 06 Xxx 1994 08:49:37 GMT", 0, &s));
    assert_false(zr_net_parse_retry_after("Sun, 06 Nov 1994 08:49:37 CET", 0, &s));
    assert_false(zr_net_parse_retry_after("Sun, 06-Nov-1994 08:49:37 GMT", 0, &s));
}

/* ---- redirects ---- */

static void test_location(void **state)
{
    static const struct {
        const char *from, *location, *to; /* to NULL: refused */
    } cases[] = {{"http://h/a/b?q=1", "c", "http://h/a/c"},
                 {"http://h/a/b?q=1", "/c?d", "http://h/c?d"},
                 {"http://h/a/b?q=1", "?d=2", "http://h/a/b?d=2"},
                 {"http://h/a/b", "../../../c", "http://h/c"},
                 {"http://h/a/b", "c#fragment", "http://h/a/c"},
                 {"http://h:81/a", "//g/x", "http://g/x"},
                 {"https://h/a", "//g:444/x", "https://g:444/x"},
                 {"http://h/a", "https://g", "https://g/"},
                 {"http://u:p@h/a", "/b", "http://h/b"},
                 {"http://h/a", "HTTP://G:80/x", "http://g/x"},
                 {"https://h/a", "http://h/a", NULL},
                 {"http://h/a", "ftp://h/a", NULL},
                 {"http://h/a", "file:///etc/passwd", NULL},
                 {"http://h/a", "gopher:x", NULL},
                 {"http://h/a", "http://", NULL},
                 {"http://h/a", "http://a@b@c/", NULL},
                 {"http://h/a", "http://h:0/", NULL},
                 {"http://h/a", "http://g\\@h/", NULL},
                 {"http://h/a", "/x\ny", NULL}};
    struct zr_url from, to;
    struct zr_str text;

    (void)state;
    zr_str_init(&text, NULL);
    for (size_t i = 0; i < ZR_COUNT(cases); i++) {
        zarr_error err = {0};
        zarr_status st;

        assert_int_equal(zr_url_parse(&from, NULL, cases[i].from, NULL), ZARR_OK);
        st = zr_net_location(&to, &from, cases[i].location, &err);
        if (cases[i].to) {
            assert_int_equal(st, ZARR_OK);
            zr_str_clear(&text);
            zr_url_put_key(&text, &to, NULL);
            assert_string_equal(zr_str_text(&text), cases[i].to);
        } else {
            assert_int_equal(st, ZARR_ERR_IO);
            assert_true(strlen(err.message) > 0);
        }
        zr_url_deinit(&to);
        zr_url_deinit(&from);
    }
    zr_str_deinit(&text);
}

static void test_origin(void **state)
{
    struct zr_url a, b;

    (void)state;
    assert_int_equal(zr_url_parse(&a, NULL, "http://h/a", NULL), ZARR_OK);
    assert_int_equal(zr_url_parse(&b, NULL, "http://u@H:80/b?c", NULL), ZARR_OK);
    assert_true(zr_net_is_same_origin(&a, &b));
    zr_url_deinit(&b);
    assert_int_equal(zr_url_parse(&b, NULL, "http://h:81/a", NULL), ZARR_OK);
    assert_false(zr_net_is_same_origin(&a, &b));
    zr_url_deinit(&b);
    assert_int_equal(zr_url_parse(&b, NULL, "https://h:80/a", NULL), ZARR_OK);
    assert_false(zr_net_is_same_origin(&a, &b));
    zr_url_deinit(&b);
    zr_url_deinit(&a);
}

static void test_addresses(void **state)
{
    static const char *const closed[] = {"0.0.0.0",
                                         "10.1.2.3",
                                         "100.64.0.1",
                                         "100.127.255.255",
                                         "127.0.0.1",
                                         "169.254.169.254",
                                         "172.16.0.1",
                                         "172.31.255.255",
                                         "192.168.1.1",
                                         "198.18.0.1",
                                         "198.19.255.255",
                                         "224.0.0.1",
                                         "240.0.0.1",
                                         "255.255.255.255",
                                         "::",
                                         "::1",
                                         "fe80::1",
                                         "fc00::1",
                                         "fd12::1",
                                         "ff02::1",
                                         "::ffff:127.0.0.1",
                                         "::ffff:10.0.0.1",
                                         "64:ff9b::10.0.0.1",
                                         "2002:7f00:1::",
                                         "2001:db8::1",
                                         "2001::1",
                                         "",
                                         "host"};
    static const char *const open[] = {
        "1.1.1.1",         "8.8.8.8",        "100.63.255.255",   "100.128.0.0",
        "172.15.255.255",  "172.32.0.0",     "198.20.0.0",       "223.255.255.255",
        "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2002:808:808::"};

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(closed); i++)
        assert_true(zr_net_is_private_text(closed[i]));
    for (size_t i = 0; i < ZR_COUNT(open); i++)
        assert_false(zr_net_is_private_text(open[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_facts),       cmocka_unit_test(test_wrong_headers),
        cmocka_unit_test(test_etags),       cmocka_unit_test(test_content_range),
        cmocka_unit_test(test_check_range), cmocka_unit_test(test_retry_after),
        cmocka_unit_test(test_location),    cmocka_unit_test(test_origin),
        cmocka_unit_test(test_addresses)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
