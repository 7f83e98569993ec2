/* unit/base/test_url.c - URLs: what is parsed, refused, normalised, composed and shown.
 */
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

static const struct {
    const char *text, *scheme, *user_info, *host, *path, *query, *key_url;
    uint32_t port;
} good[] = {
    {"http://h", "http", NULL, "h", "/", NULL, "http://h/k", 80},
    {"HTTPS://H.Example:443/A", "https", NULL, "h.example", "/A", NULL,
     "https://h.example/A/k", 443},
    {"http://h:/", "http", NULL, "h", "/", NULL, "http://h/k", 80},
    {"http://h:8080/a/", "http", NULL, "h", "/a/", NULL, "http://h:8080/a/k", 8080},
    {"http://u:p%40@h/a?x=1&y=%2f", "http", "u:p%40", "h", "/a", "x=1&y=%2f",
     "http://h/a/k?x=1&y=%2f", 80},
    {"http://h?", "http", NULL, "h", "/", "", "http://h/k?", 80},
    {"http://h?a/../b?c", "http", NULL, "h", "/", "a/../b?c", "http://h/k?a/../b?c", 80},
    {"http://h/a b/\xC3\xA9[1]", "http", NULL, "h", "/a%20b/%C3%A9%5B1%5D", NULL,
     "http://h/a%20b/%C3%A9%5B1%5D/k", 80},
    {"http://h/%7e%2f%3a%41%e9", "http", NULL, "h", "/~%2F%3AA%E9", NULL,
     "http://h/~%2F%3AA%E9/k", 80},
    {"http://h/a/./b/../c/.", "http", NULL, "h", "/a/c/", NULL, "http://h/a/c/k", 80},
    {"http://h/../%2e%2E/a/..", "http", NULL, "h", "/", NULL, "http://h/k", 80},
    {"http://h//a//b", "http", NULL, "h", "//a//b", NULL, "http://h//a//b/k", 80},
    {"http://[2001:DB8::0:1]:81/", "http", NULL, "[2001:db8::1]", "/", NULL,
     "http://[2001:db8::1]:81/k", 81},
    {"http://[::ffff:1.2.3.4]", "http", NULL, "[::ffff:1.2.3.4]", "/", NULL,
     "http://[::ffff:1.2.3.4]/k", 80},
    {"s3://Bucket_1/p.zarr", "s3", NULL, "Bucket_1", "/p.zarr", NULL,
     "s3://Bucket_1/p.zarr/k", 0},
    {"plug:///p", "plug", NULL, "", "/p", NULL, "plug:///p/k", 0},
    {"plug://", "plug", NULL, "", "/", NULL, "plug:///k", 0},
};

static void parses(void **state)
{
    (void)state;
    for (size_t i = 0; i < ZR_COUNT(good); i++) {
        struct zr_url u, again;
        struct zr_str s;

        zr_str_init(&s, NULL);
        assert_int_equal(zr_url_parse(&u, NULL, good[i].text, NULL), ZARR_OK);
        assert_string_equal(u.scheme, good[i].scheme);
        assert_true(zr_streq(u.user_info, good[i].user_info));
        assert_string_equal(u.host, good[i].host);
        assert_string_equal(u.path, good[i].path);
        assert_true(zr_streq(u.query, good[i].query));
        assert_int_equal(u.port, good[i].port);
        zr_url_put_key(&s, &u, NULL);
        assert_int_equal(zr_url_parse(&again, NULL, zr_str_text(&s), NULL), ZARR_OK);
        assert_string_equal(again.path, u.path);
        zr_str_clear(&s);
        zr_url_put_key(&s, &u, "k");
        assert_string_equal(zr_str_text(&s), good[i].key_url);
        zr_url_deinit(&again);
        zr_url_deinit(&u);
        zr_url_deinit(&u);
        zr_str_deinit(&s);
    }
}

static void refuses(void **state)
{
    static const char *const bad[] = {
        "",
        "h/a",
        "http:/h",
        "http:h",
        "h://x",
        "1http://h",
        "://h",
        "http://",
        "http:///a",
        "http://?a",
        "http://u:p@/a",
        "http://h:0/",
        "http://h:65536/",
        "http://h:99999999999999999999/",
        "http://h:8a/",
        "http://h:-1/",
        "http://h: 80/",
        "http://a:b:80/",
        "http://a@b@h/",
        "http://a%zz@h/",
        "http://a%00@h/",
        "http://a b@h/",
        "http://h h/",
        "http://h%41/",
        "http://h\xC3\xA9/",
        "http://[::1/",
        "http://[]/",
        "http://[::1%25eth0]/",
        "http://[1.2.3.4]/",
        "http://[0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000]/",
        "http://h\\@g/",
        "http://h/a\\b",
        "http://h/a\nb",
        "http://h/a\x7F",
        "http://h/%00",
        "http://h/%",
        "http://h/%4",
        "http://h/%4g",
        "http://h/?%g4",
        "http://h/?a\rb",
        "http://h/#f",
        "http://h?a#f",
        "http://h/\xFF",
        "http://h/\xC0\xAF",
    };
    zarr_error err;
    struct zr_url u;

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(bad); i++) {
        memset(&err, 0, sizeof err);
        if (zr_url_parse(&u, NULL, bad[i], &err) != ZARR_ERR_INVALID)
            fail_msg("%s", bad[i]);
        assert_true(strlen(err.message) > 20);
        assert_null(u.block);
    }
}

static void refuses_long_texts(void **state)
{
    static char text[ZR_URL_MAX_BYTES + 2];
    struct zr_url u;

    (void)state;
    memset(text, 'a', sizeof text - 1);
    memcpy(text, "http://h/", 9);
    assert_int_equal(zr_url_parse(&u, NULL, text, NULL), ZARR_ERR_LIMIT);
    text[sizeof text - 2] = '\0';
    memset(text + 9, '"', sizeof text - 11); /* each becomes three bytes */
    assert_int_equal(zr_url_parse(&u, NULL, text, NULL), ZARR_OK);
    assert_int_equal(strlen(u.path), 1 + 3 * (ZR_URL_MAX_BYTES - 9));
    zr_url_deinit(&u);
}

static void escapes_keys(void **state)
{
    struct zr_url u;
    struct zr_str s;

    (void)state;
    zr_str_init(&s, NULL);
    assert_int_equal(zr_url_parse(&u, NULL, "http://h/r?q=1", NULL), ZARR_OK);
    zr_url_put_key(&s, &u, "a b/%41?#c\xC3\xA9/d:e@1~");
    assert_string_equal(zr_str_text(&s),
                        "http://h/r/a%20b/%2541%3F%23c%C3%A9/d:e@1~?q=1");
    zr_str_clear(&s);
    assert_true(zr_url_decode(&s, "a%20b%2541", 10));
    assert_string_equal(zr_str_text(&s), "a b%41");
    assert_false(zr_url_decode(&s, "%00", 3));
    assert_false(zr_url_decode(&s, "%4", 2));
    assert_false(zr_url_decode(&s, "%ff", 3));
    assert_false(zr_url_decode(&s, "%zz", 3));
    zr_url_deinit(&u);
    zr_str_deinit(&s);
}

static void shows_no_secret(void **state)
{
    static const struct {
        const char *text, *shown;
    } rows[] = {
        {"", ""},
        {"a/b?c=d", "a/b?c=d"},
        {"x:y?a=b", "x:y?a=b"}, /* no scheme has one letter */
        {"http://h/a", "http://h/a"},
        {"http://h:80/a@b", "http://h:80/a@b"},
        {"http://SECRET@h/a", "http://h/a"},
        {"http://u:SECRET@h/a@b", "http://h/a@b"},
        {"http://u:SE@CRET@h/a", "http://h/a"},
        {"http://u:SE/CRET@h/a", "http://h/a"},
        {"http://u:SE?CR=ET@h/a?b=SECRET", "http://h/a?b=***"},
        {"http://u:SE#CRET@h", "http://h"},
        {"http://[u:SE/CRET@h", "http://h"},
        {"http://u:SECRET@[::1]:8/a", "http://[::1]:8/a"},
        {"http://[::1]/a@b", "http://[::1]/a@b"},
        {"http://h?SECRET", "http://h?***"},
        {"http://h?", "http://h?"},
        {"http://h/a?b=SECRET&c=&SECRET;d=SECRET=SECRET",
         "http://h/a?b=***&c=***&***;d=***"},
        {"http://h/a#SECRET", "http://h/a#***"},
        {"http://h?a=b#SECRET?&", "http://h?a=***#***"},
        {"zip:https://u:SECRET@h/x.zip?t=SECRET", "zip:https://h/x.zip?t=***"},
        {"plug:a?t=SECRET", "plug:a?t=***"},
        {"PLUG://SECRET@", "PLUG://"},
        {"memory:", "memory:"},
    };
    struct zr_str s;

    (void)state;
    zr_str_init(&s, NULL);
    for (size_t i = 0; i < ZR_COUNT(rows); i++) {
        zr_str_clear(&s);
        zr_url_put_shown(&s, rows[i].text);
        assert_string_equal(zr_str_text(&s), rows[i].shown);
    }
    zr_str_deinit(&s);
}

static void wipes(void **state)
{
    char text[] = "secret";

    (void)state;
    zr_wipe(text, sizeof text);
    for (size_t i = 0; i < sizeof text; i++)
        assert_int_equal(text[i], 0);
    zr_wipe(NULL, 0);
    zr_free_secret(NULL, NULL);
    zr_free_secret(NULL, zr_strdup(NULL, "secret"));
}

static void survives_failing_memory(void **state)
{
    struct fail_alloc f;
    struct zr_url u;

    (void)state;
    fail_alloc_init(&f, 1, 0);
    assert_int_equal(zr_url_parse(&u, &f.alloc, "http://h", NULL), ZARR_ERR_NO_MEMORY);
    zr_url_deinit(&u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parses),
        cmocka_unit_test(refuses),
        cmocka_unit_test(refuses_long_texts),
        cmocka_unit_test(escapes_keys),
        cmocka_unit_test(shows_no_secret),
        cmocka_unit_test(wipes),
        cmocka_unit_test(survives_failing_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
