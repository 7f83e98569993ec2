/* unit/http/test_answer.c - heads of answers, true and false ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "http/http_int.h"

#define NONE UINT64_MAX

static struct zr_http_want range(uint64_t offset, uint64_t bytes)
{
    return (struct zr_http_want){.offset = offset, .bytes = bytes};
}

static struct zr_http_want suffix(uint64_t bytes)
{
    return (struct zr_http_want){.bytes = bytes, .is_suffix = true};
}

static struct zr_http_want whole(uint64_t bytes)
{
    return (struct zr_http_want){.bytes = bytes, .is_whole = true, .needs_length = true};
}

static struct zr_http_answer part(uint64_t first, uint64_t last, uint64_t total)
{
    return (struct zr_http_answer){.status = 206,
                                   .content_bytes = last - first + 1,
                                   .has_range = true,
                                   .first = first,
                                   .last = last,
                                   .total = total};
}

static struct zr_http_answer full(uint64_t bytes)
{
    return (struct zr_http_answer){.status = 200, .content_bytes = bytes};
}

static struct zr_http_answer beyond(uint64_t total)
{
    return (struct zr_http_answer){.status = 416, .content_bytes = 0, .total = total};
}

enum {
    OK,
    BAD,       /* IO */
    REFUSED,   /* UNSUPPORTED */
    ASK_LENGTH /* OK, and another request */
};

struct body_row {
    struct zr_http_want want;
    struct zr_http_answer answer;
    int result;
    uint64_t skip, take, object_bytes;
};

static void check_bodies(const struct body_row *row, size_t n)
{
    static const zarr_status statuses[] = {ZARR_OK, ZARR_ERR_IO, ZARR_ERR_UNSUPPORTED,
                                           ZARR_OK};

    for (size_t i = 0; i < n; i++, row++) {
        struct zr_http_plan plan = {0};
        zarr_error err;
        const zarr_status st = zr_http_judge(&row->want, &row->answer, &plan, &err);

        if (st != statuses[row->result])
            fail_msg("row %zu: %s", i, zarr_status_text(st));
        if (st != ZARR_OK)
            continue;
        if (plan.asks_length != (row->result == ASK_LENGTH) || plan.skip != row->skip ||
            plan.take != row->take || plan.object_bytes != row->object_bytes)
            fail_msg("row %zu: skips %" PRIu64 ", takes %" PRIu64 " of %" PRIu64, i,
                     plan.skip, plan.take, plan.object_bytes);
    }
}

static void test_ranges(void **state)
{
    const uint64_t far = ZR_HTTP_SKIP_MOST + 1;
    const struct body_row row[] = {
        /* a range */
        {range(10, 5), part(10, 14, 100), OK, 0, 5, 100},
        {range(10, 5), part(10, 14, NONE), OK, 0, 5, NONE},
        {range(10, 5), part(10, 11, 12), OK, 0, 2, 12},
        {range(10, 5), part(10, 11, 100), BAD, 0, 0, 0},
        {range(10, 5), part(10, 11, NONE), BAD, 0, 0, 0},
        {range(10, 5), part(9, 13, 100), BAD, 0, 0, 0},
        {range(10, 5), part(10, 15, 100), BAD, 0, 0, 0},
        {range(10, 5), part(10, 14, 10), BAD, 0, 0, 0},
        {range(10, 5), part(10, 14, 13), BAD, 0, 0, 0},
        {range(0, UINT64_MAX), part(0, 99, 100), OK, 0, 100, 100},
        {range(10, 5), {.status = 206, .content_bytes = 5}, BAD, 0, 0, 0},
        {range(10, 5),
         {206, 4, true, 10, 14, 100, NULL}, /* the wrong Content-Length */
         BAD,
         0,
         0,
         0},
        /* a server without ranges */
        {range(10, 5), full(100), OK, 10, 5, 100},
        {range(10, 5), full(12), OK, 10, 2, 12},
        {range(10, 5), full(10), OK, 0, 0, 10},
        {range(10, 5), full(NONE), OK, 10, 5, NONE},
        {range(far, 5), full(NONE), REFUSED, 0, 0, 0},
        {range(far, 5), full(far + 5), REFUSED, 0, 0, 0},
        {range(far, 5), full(far), OK, 0, 0, far},
        /* after the end */
        {range(10, 5), beyond(10), OK, 0, 0, 10},
        {range(10, 5), beyond(0), OK, 0, 0, 0},
        {range(10, 5), beyond(11), BAD, 0, 0, 0},
        {range(10, 5), beyond(NONE), ASK_LENGTH, 0, 0, NONE},
    };

    (void)state;
    check_bodies(row, ZR_COUNT(row));
}

static void test_suffixes_and_whole_values(void **state)
{
    const uint64_t far = ZR_HTTP_SKIP_MOST + 1;
    const struct body_row row[] = {
        /* a suffix */
        {suffix(5), part(95, 99, 100), OK, 0, 5, 100},
        {suffix(5), part(0, 2, 3), OK, 0, 3, 3},
        {suffix(5), part(95, 99, NONE), BAD, 0, 0, 0},
        {suffix(5), part(0, 4, 100), BAD, 0, 0, 0}, /* read as 0 to 4 */
        {suffix(5), part(94, 98, 100), BAD, 0, 0, 0},
        {suffix(5), full(100), OK, 95, 5, 100},
        {suffix(5), full(3), OK, 0, 3, 3},
        {suffix(5), full(0), OK, 0, 0, 0},
        {suffix(5), full(NONE), ASK_LENGTH, 0, 0, NONE},
        {suffix(5), full(far + 5), ASK_LENGTH, 0, 0, NONE},
        {suffix(5), beyond(0), OK, 0, 0, 0},
        {suffix(5), beyond(10), BAD, 0, 0, 0},
        {suffix(5), {.status = 400, .content_bytes = 0}, ASK_LENGTH, 0, 0, NONE},
        /* the whole value */
        {whole(5), full(5), OK, 0, 5, 5},
        {whole(5), full(3), OK, 0, 3, 3},
        {whole(5), full(0), OK, 0, 0, 0},
        {whole(5), full(9), OK, 0, 5, 9},
        {whole(5), full(NONE), OK, 0, 5, NONE},
        {whole(5), part(0, 4, 5), BAD, 0, 0, 0},
        {whole(5), beyond(0), BAD, 0, 0, 0},
        /* other statuses */
        {range(10, 5), {.status = 204}, BAD, 0, 0, 0},
        {range(10, 5), {.status = 301}, BAD, 0, 0, 0},
        {range(10, 5), {.status = 400}, BAD, 0, 0, 0},
        {range(10, 5), {.status = 503}, BAD, 0, 0, 0},
    };

    (void)state;
    check_bodies(row, ZR_COUNT(row));
}

static void test_statuses(void **state)
{
    static const struct {
        int32_t http;
        zarr_status st;
    } row[] = {{404, ZARR_ERR_NOT_FOUND}, {410, ZARR_ERR_NOT_FOUND},
               {401, ZARR_ERR_DENIED},    {403, ZARR_ERR_DENIED},
               {407, ZARR_ERR_DENIED},    {412, ZARR_ERR_CONFLICT},
               {400, ZARR_ERR_IO},        {429, ZARR_ERR_IO},
               {500, ZARR_ERR_IO},        {0, ZARR_ERR_IO}};
    const struct zr_http_want want = range(0, 1);
    uint64_t bytes;

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(row); i++) {
        const struct zr_http_answer a = {.status = row[i].http, .content_bytes = 0};
        struct zr_http_plan plan;
        zarr_error err;

        assert_int_equal(zr_http_judge(&want, &a, &plan, &err), row[i].st);
        assert_int_equal(zr_http_judge_length(&a, false, &bytes, &err), row[i].st);
        assert_int_equal(err.os_code, row[i].http);
        assert_int_equal(err.os_domain, ZARR_OS_STORE);
    }
}

static void test_lengths(void **state)
{
    static const struct {
        struct zr_http_answer answer;
        bool is_head;
        zarr_status st;
        uint64_t bytes;
    } row[] = {
        {{.status = 200, .content_bytes = 7}, true, ZARR_OK, 7},
        {{.status = 200, .content_bytes = NONE}, true, ZARR_OK, NONE},
        {{.status = 403}, true, ZARR_OK, NONE}, /* may be refused for HEAD alone */
        {{.status = 405}, true, ZARR_OK, NONE},
        {{.status = 501}, true, ZARR_OK, NONE},
        {{.status = 404}, true, ZARR_ERR_NOT_FOUND, NONE},
        {{.status = 503}, true, ZARR_ERR_IO, NONE},
        {{206, 1, true, 0, 0, 7, NULL}, false, ZARR_OK, 7},
        {{206, 1, true, 0, 0, NONE, NULL}, false, ZARR_ERR_UNSUPPORTED, NONE},
        {{.status = 206, .content_bytes = 1}, false, ZARR_ERR_IO, NONE},
        {{.status = 200, .content_bytes = 7}, false, ZARR_OK, 7},
        {{.status = 200, .content_bytes = NONE}, false, ZARR_ERR_UNSUPPORTED, NONE},
        {{.status = 416, .total = 0}, false, ZARR_OK, 0},
        {{.status = 416, .total = 7}, false, ZARR_ERR_IO, NONE},
    };

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(row); i++) {
        uint64_t bytes = 1;
        zarr_error err;

        if (zr_http_judge_length(&row[i].answer, row[i].is_head, &bytes, &err) !=
                row[i].st ||
            bytes != row[i].bytes)
            fail_msg("row %zu", i);
    }
}

static void test_ends(void **state)
{
    static const struct {
        struct zr_http_plan plan;
        uint64_t seen;
        zarr_status st;
        uint64_t done, object;
    } row[] = {
        {{.take = 5, .body_bytes = 5, .object_bytes = 9}, 5, ZARR_OK, 5, 9},
        {{.take = 5, .body_bytes = 5, .object_bytes = 9}, 4, ZARR_ERR_IO, 0, 0},
        {{.take = 5, .body_bytes = 5, .object_bytes = 9}, 6, ZARR_ERR_IO, 0, 0},
        {{.skip = 3, .take = 5, .body_bytes = 9, .object_bytes = 9}, 8, ZARR_OK, 5, 9},
        {{.skip = 3, .take = 5, .body_bytes = NONE, .object_bytes = NONE},
         8,
         ZARR_OK,
         5,
         NONE},
        {{.skip = 3, .take = 5, .body_bytes = NONE, .object_bytes = NONE},
         6,
         ZARR_OK,
         3,
         6},
        {{.skip = 3, .take = 5, .body_bytes = NONE, .object_bytes = NONE},
         2,
         ZARR_OK,
         0,
         2},
        {{.counts = true, .take = 5, .body_bytes = NONE, .object_bytes = NONE},
         50,
         ZARR_OK,
         5,
         50},
        {{.object_bytes = 7}, 0, ZARR_OK, 0, 7},
    };

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(row); i++) {
        zarr_store_op op = {0};
        zarr_error err;

        if (zr_http_judge_end(&row[i].plan, row[i].seen, &op, &err) != row[i].st ||
            op.done_bytes != row[i].done || op.object_bytes != row[i].object)
            fail_msg("row %zu: %" PRIu64 " of %" PRIu64, i, op.done_bytes,
                     op.object_bytes);
    }
}

static void test_versions(void **state)
{
    static const char *const weak[] = {NULL,      "",        "\"",       "abc",
                                       "W/\"1\"", "\"a",     "\"a\"b\"", "\"a\" ",
                                       "\"a b\"", "\"\x80\""};
    char back[ZR_HTTP_ETAG_ROOM], text[200] = "\"";
    zarr_store_version v, other;
    struct zr_http_answer a = {.status = 200};
    zarr_error err;

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(weak); i++) {
        zr_http_version_make(&v, weak[i]);
        assert_int_equal(v.bytes[0], 0);
        assert_false(zr_http_version_etag(&v, back));
    }
    zr_http_version_make(&v, "\"\"");
    assert_true(zr_http_version_etag(&v, back));
    assert_string_equal(back, "\"\"");
    for (size_t n = 1; n < 190; n++) { /* with its quotes n + 1 bytes */
        text[n] = '"';
        zr_http_version_make(&v, text);
        assert_int_equal(v.bytes[0], n + 1 < 63 ? n + 1 : 63);
        assert_int_equal(zr_http_version_etag(&v, back), n + 1 <= 63);
        if (n + 1 <= 63)
            assert_string_equal(back, text);
        a.etag = text;
        assert_int_equal(zr_http_judge_version(&a, &v, &err), ZARR_OK);
        text[n] = 'y'; /* differs in its last byte */
        text[n + 1] = '"';
        zr_http_version_make(&other, text);
        assert_false(zr_store_version_equal(&v, &other));
        assert_int_equal(zr_http_judge_version(&a, &v, &err), ZARR_ERR_CONFLICT);
        text[n + 1] = '\0';
        text[n] = 'x';
    }
    a.etag = NULL; /* nothing says that it is the same */
    assert_int_equal(zr_http_judge_version(&a, &v, &err), ZARR_ERR_CONFLICT);
    v = (zarr_store_version){{0}}; /* there must be no value */
    assert_int_equal(zr_http_judge_version(&a, &v, &err), ZARR_ERR_CONFLICT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranges),   cmocka_unit_test(test_suffixes_and_whole_values),
        cmocka_unit_test(test_statuses), cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_ends),     cmocka_unit_test(test_versions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
