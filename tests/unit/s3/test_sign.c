/*
 * unit/s3/test_sign.c - signatures, compared with those that AWS publishes: its test
 * suite of Signature Version 4 (those of "get-..." and "post-..."), and the examples in
 * the API reference of S3. And times.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "s3/s3_int.h"

#define LETTERS   "-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#define FORM_HASH "9095672bbd1f56dfc5b65f3e153adc8731a4a654192329106275f4c7b24d0b6e"
#define TOKEN                                                                            \
    "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAe"  \
    "MicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phU"  \
    "ZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38x"  \
    "Vqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2"  \
    "ICCR/oLxBA=="

static zarr_error err;

struct vector {
    const char *method, *path, *signature;
    const char *lines[4];
    const char *hash, *token;
};

static void check_vector(const struct vector *v, bool is_s3)
{
    struct zr_s3_key *key = NULL;
    struct zr_url url;
    struct zr_str text, lines;
    const struct zr_s3_signing sign = {
        .method = v->method,
        .url = &url,
        .region = "us-east-1",
        .service = is_s3 ? "s3" : "service",
        .time_s = is_s3 ? 1369353600 : 1440938160,
        .payload_hash = v->hash ? v->hash : ZR_S3_EMPTY_HASH,
        .sends_payload_hash = is_s3,
        .lines = v->lines,
    };
    struct zr_s3_signing with_key;
    const char *last = NULL;

    assert_int_equal(zr_s3_key_create(&key, NULL,
                                      is_s3 ? "AKIAIOSFODNN7EXAMPLE" : "AKIDEXAMPLE",
                                      is_s3 ? "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
                                            : "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
                                      v->token, 0, &err),
                     ZARR_OK);
    zr_str_init(&text, NULL);
    zr_str_init(&lines, NULL);
    zr_str_printf(&text, "https://%s%s",
                  is_s3 ? "examplebucket.s3.amazonaws.com" : "example.amazonaws.com",
                  v->path);
    assert_int_equal(zr_url_parse(&url, NULL, zr_str_text(&text), &err), ZARR_OK);
    with_key = sign;
    with_key.key = key;
    if (zr_s3_sign(&lines, &with_key, &err) != ZARR_OK)
        fail_msg("%s: %s", v->path, err.message);
    for (size_t at = 0; at < lines.bytes; at += strlen(lines.ptr + at) + 1)
        last = lines.ptr + at;
    assert_non_null(last);
    if (!zr_starts_with(last, "Authorization: AWS4-HMAC-SHA256 Credential=AKI") ||
        !zr_ends_with(last, v->signature))
        fail_msg("%s %s: %s", v->method, v->path, last);
    zr_str_deinit(&lines);
    zr_str_deinit(&text);
    zr_url_deinit(&url);
    zr_s3_key_free(key);
}

static const struct vector suite[] = {
    {"GET",
     "/",
     "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
     {NULL},
     NULL,
     NULL},
    {"POST",
     "/",
     "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
     {NULL},
     NULL,
     NULL},
    {"GET",
     "/?Param2=value2&Param1=value1",
     "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
     {NULL},
     NULL,
     NULL},
    {"GET",
     "/?Param1=value1",
     "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb",
     {NULL},
     NULL,
     NULL},
    {"GET",
     "/?Param1=value2&Param1=value1",
     "5772eed61e12b33fae39ee5e7012498b51d56abc0abb7c60486157bd471c4694",
     {NULL},
     NULL,
     NULL},
    {"GET",
     "/?" LETTERS "=" LETTERS,
     "9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197",
     {NULL},
     NULL,
     NULL},
    {"GET",
     "/?\xE1\x88\xB4=bar",
     "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04",
     {NULL},
     NULL,
     NULL},
    {"GET",
     "/" LETTERS,
     "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f",
     {NULL},
     NULL,
     NULL},
    {"GET",
     "/\xE1\x88\xB4",
     "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85",
     {NULL},
     NULL,
     NULL},
    {"GET",
     "/",
     "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736",
     {"My-Header1: value1", "My-Header2: \"a   b   c\"", NULL},
     NULL,
     NULL},
    {"GET",
     "/",
     "08c7e5a9acfcfeb3ab6b2185e75ce8b1deb5e634ec47601a50643f830c755c01",
     {"My-Header1:value4,value1,value3,value2", NULL},
     NULL,
     NULL},
    {"POST",
     "/",
     "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
     {"Content-Type: application/x-www-form-urlencoded", NULL},
     FORM_HASH,
     NULL},
    {"POST",
     "/",
     "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead",
     {NULL},
     NULL,
     TOKEN},
};

static void test_suite_of_aws(void **state)
{
    (void)state;
    for (size_t i = 0; i < ZR_COUNT(suite); i++)
        check_vector(&suite[i], false);
}

static void test_examples_of_s3(void **state)
{
    static const struct vector rows[] = {
        {"GET",
         "/test.txt",
         "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
         {"Range: bytes=0-9", NULL},
         NULL,
         NULL},
        {"GET",
         "/?lifecycle",
         "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
         {NULL},
         NULL,
         NULL},
        {"GET",
         "/?max-keys=2&prefix=J",
         "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
         {NULL},
         NULL,
         NULL},
        {"PUT",
         "/test$file.text",
         "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
         {"Date: Fri, 24 May 2013 00:00:00 GMT",
          "x-amz-storage-class: REDUCED_REDUNDANCY", NULL},
         "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
         NULL},
    };

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(rows); i++)
        check_vector(&rows[i], true);
}

/* A name that begins another one comes first, though '-' is before '='. */
static void test_order_of_a_query(void **state)
{
    struct vector v = {"GET", "/?a-b=1&a=2", "", {NULL}, NULL, NULL};
    struct vector same = {"GET", "/?a=2&a-b=1", "", {NULL}, NULL, NULL};

    (void)state;
    v.signature = same.signature =
        "6db62b462e19a8f703fc26b3ea60639392275ec6108e6ca9b11acf1491cf4fa3";
    check_vector(&v, true);
    check_vector(&same, true);
}

static void test_times(void **state)
{
    static const struct {
        const char *text, *put;
        int64_t s;
    } rows[] = {{"1970-01-01T00:00:00Z", "19700101T000000Z", 0},
                {"2000-02-29T23:59:59.123Z", "20000229T235959Z", 951868799},
                {"2013-05-24T00:00:00Z", "20130524T000000Z", 1369353600},
                {"2015-08-30T12:36:00+00:00", "20150830T123600Z", 1440938160},
                {"2015-08-30T14:36:00.25+02:00", "20150830T123600Z", 1440938160},
                {"2015-08-30T04:36:00-0800", "20150830T123600Z", 1440938160},
                {"2026-12-31T23:59:59Z", "20261231T235959Z", 1798761599},
                {"2100-03-01T00:00:00Z", "21000301T000000Z", 4107542400}};
    static const char *const wrong[] = {"",
                                        "2013",
                                        "2013-05-24",
                                        "2013-05-24T00:00:00",
                                        "2013-05-24 00:00:00Z",
                                        "2013-13-24T00:00:00Z",
                                        "2013-05-24T00:00:00Zx",
                                        "2013-05-24T00:00:00+2",
                                        "2013-05-24T00:00:00+24:00",
                                        "2013-00-24T00:00:00Z",
                                        "2013-05-00T00:00:00Z",
                                        "2013-05-24T24:00:00Z",
                                        "2013-05-24T00:60:00Z",
                                        "x013-05-24T00:00:00Z"};
    char put[ZR_S3_TIME_ROOM];
    int64_t s;

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(rows); i++) {
        assert_true(zr_s3_parse_time(rows[i].text, &s));
        assert_int_equal(s, rows[i].s);
        zr_s3_put_time(put, s);
        assert_string_equal(put, rows[i].put);
    }
    for (size_t i = 0; i < ZR_COUNT(wrong); i++)
        assert_false(zr_s3_parse_time(wrong[i], &s));
}

/* ---- places ---- */

static const char *no_variable(const char *name)
{
    return zr_starts_with(name, "AWS_CONFIG") || zr_starts_with(name, "AWS_SHARED")
               ? "/nonexistent"
               : NULL;
}

static void take_place(void *user, const zarr_store_place *place)
{
    (void)snprintf(user, 200, "%s|%s|%s|%s", place->scheme, place->endpoint,
                   place->bucket, place->prefix);
}

static void test_places(void **state)
{
    static const struct {
        const char *url, *config, *value, *place;
    } rows[] = {
        {"s3://b/p/x.zarr", "", "https://b.s3.us-east-1.amazonaws.com/p/x.zarr/k%2B%23",
         "s3||b|p/x.zarr/"},
        {"s3://b.c/", "\"region\": \"cn-north-1\",",
         "https://s3.cn-north-1.amazonaws.com.cn/b.c/k%2B%23", "s3||b.c|"},
        {"s3://B_d/a%20+%25", "\"endpoint\": \"http://H:9000\",",
         "http://h:9000/B_d/a%20%2B%25/k%2B%23", "s3|h:9000|B_d|a +%/"},
        {"s3://b", "\"endpoint\": \"https://h/base\", \"style\": \"virtual\",",
         "https://b.h/base/k%2B%23", "s3|h|b|"},
        {"s3://b/x/", "\"endpoint\": \"https://s3.eu-west-1.amazonaws.com:443\",",
         "https://s3.eu-west-1.amazonaws.com/b/x/k%2B%23", "s3||b|x/"},
        {"s3://b/x", "\"style\": \"path\",",
         "https://s3.us-east-1.amazonaws.com/b/x/k%2B%23", "s3||b|x/"},
    };
    struct zr_store_env env = {.alloc = NULL};

    (void)state;
    zr_limits_default(&env.limits);
    for (size_t i = 0; i < ZR_COUNT(rows); i++) {
        char config[200], place[200];
        void *self = NULL;
        struct zr_str text;
        zarr_status st;

        (void)snprintf(config, sizeof config, "{%s \"anonymous\": true}", rows[i].config);
        st = zr_s3_open(&self, &env, rows[i].url, config, no_variable, &err);
        if (st == ZARR_ERR_UNSUPPORTED)
            skip();
        if (st != ZARR_OK)
            fail_msg("%s: %s", rows[i].url, err.message);
        zr_str_init(&text, NULL);
        ((struct zr_s3_store *)self)->reader.protocol->put_url(self, &text, "k+#");
        assert_string_equal(zr_str_text(&text), rows[i].value);
        zr_s3_vtable.place(self, take_place, place);
        assert_string_equal(place, rows[i].place);
        zr_str_deinit(&text);
        /* a server corrects the region once, and to nothing but a region */
        assert_false(zr_s3_place_correct(self, "evil.example.com/"));
        assert_true(zr_s3_place_correct(self, "eu-south-2"));
        assert_false(zr_s3_place_correct(self, "eu-north-1"));
        assert_string_equal(zr_s3_place_get(self)->region, "eu-south-2");
        /* a request that was made before goes to the old host, with its region */
        if (i == 0) {
            assert_string_equal(zr_s3_place_region(self, "b.s3.us-east-1.amazonaws.com"),
                                "us-east-1");
            assert_string_equal(zr_s3_place_region(self, "b.s3.eu-south-2.amazonaws.com"),
                                "eu-south-2");
        }
        zr_s3_vtable.close(self);
    }
}

static void test_loopback(void **state)
{
    (void)state;
    assert_true(zr_s3_is_loopback("127.1.2.3") && zr_s3_is_loopback("localhost") &&
                zr_s3_is_loopback("[::1]"));
    assert_false(zr_s3_is_loopback("127.example.com") || zr_s3_is_loopback("127.1") ||
                 zr_s3_is_loopback("128.0.0.1") || zr_s3_is_loopback("[::2]"));
}

static void test_keys_that_are_none(void **state)
{
    struct zr_s3_key *key = NULL;

    (void)state;
    assert_int_equal(zr_s3_key_create(&key, NULL, "", "s", NULL, 0, &err),
                     ZARR_ERR_INVALID);
    assert_int_equal(zr_s3_key_create(&key, NULL, "a\nb", "s", NULL, 0, &err),
                     ZARR_ERR_INVALID);
    assert_int_equal(zr_s3_key_create(&key, NULL, "a", "SECRET", "t\r\nX: y", 0, &err),
                     ZARR_ERR_INVALID);
    assert_null(strstr(err.message, "SECRET"));
    assert_null(key);
}

static int setup(void **state)
{
    (void)state;
    if (zr_crypto_load(&err) == ZARR_OK)
        return 0;
    printf("skipped: %s\n", err.message);
    exit(77);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_suite_of_aws),       cmocka_unit_test(test_examples_of_s3),
        cmocka_unit_test(test_order_of_a_query),   cmocka_unit_test(test_times),
        cmocka_unit_test(test_keys_that_are_none), cmocka_unit_test(test_places),
        cmocka_unit_test(test_loopback),
    };

    return cmocka_run_group_tests(tests, setup, NULL);
}
