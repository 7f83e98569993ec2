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
    return (struct zr_http_want){.bytes = bytes, .is_whole = true};
}

/* As the room net makes them: it refuses a part that was not asked for. */
static struct zr_net_answer answer(uint32_t status, uint64_t total)
{
    return (struct zr_net_answer){.status = status, .length = total, .total = total};
}

static struct zr_net_answer part(uint64_t first, uint64_t last, uint64_t total)
{
    return (struct zr_net_answer){.status = 206,
                                  .length = last - first + 1,
                                  .is_range = true,
                                  .range_first = first,
                                  .range_bytes = last - first + 1,
                                  .total = total};
}

enum {
    OK,
    BAD,     /* IO */
    REFUSED, /* UNSUPPORTED */
    ASK,     /* OK, and another request */
    FAILED   /* OK, but the status of the answer is a failure */
};

struct value_row {
    struct zr_http_want want;
    struct zr_net_answer answer;
    int result;
    uint64_t at, object_bytes;
};

static const struct {
    zarr_status st;
    enum zr_http_verdict verdict;
} results[] = {[OK] = {ZARR_OK, ZR_HTTP_HAS_VALUE},
               [BAD] = {ZARR_ERR_IO, 0},
               [REFUSED] = {ZARR_ERR_UNSUPPORTED, 0},
               [ASK] = {ZARR_OK, ZR_HTTP_ASKS_LENGTH},
               [FAILED] = {ZARR_OK, ZR_HTTP_REFUSED}};

static void check_result(size_t row, int result, zarr_status st,
                         const struct zr_http_found *found)
{
    if (st != results[result].st)
        fail_msg("row %zu: %s", row, zarr_status_text(st));
    if (st == ZARR_OK && found->verdict != results[result].verdict)
        fail_msg("row %zu: verdict %d", row, (int)found->verdict);
}

static void check_values(const struct value_row *row, size_t n)
{
    for (size_t i = 0; i < n; i++, row++) {
        struct zr_http_found found = {0};
        zarr_error err;
        const zarr_status st = zr_http_judge(&row->want, &row->answer, &found, &err);

        check_result(i, row->result, st, &found);
        if (row->result == OK &&
            (found.at != row->at || found.object_bytes != row->object_bytes))
            fail_msg("row %zu: from %" PRIu64 " of %" PRIu64, i, found.at,
                     found.object_bytes);
    }
}

static void test_ranges(void **state)
{
    const uint64_t far = ZR_HTTP_SKIP_MOST + 1;
    const struct value_row row[] = {
        /* a range */
        {range(10, 5), part(10, 14, 100), OK, 10, 100},
        {range(10, 5), part(10, 14, NONE), OK, 10, NONE},
        {range(10, 5), part(10, 11, 12), OK, 10, 12},
        {range(0, NONE), part(0, 99, 100), OK, 0, 100},
        /* a server without ranges */
        {range(10, 5), answer(200, 100), OK, 0, 100},
        {range(10, 5), answer(200, 10), OK, 0, 10},
        {range(10, 5), answer(200, NONE), OK, 0, NONE},
        {range(far, 5), answer(200, NONE), REFUSED, 0, 0},
        {range(far, 5), answer(200, far + 5), REFUSED, 0, 0},
        {range(far, 5), answer(200, far), OK, 0, far},
        /* after the end */
        {range(10, 5), answer(416, 10), OK, 0, 10},
        {range(10, 5), answer(416, 0), OK, 0, 0},
        {range(10, 5), answer(416, 11), BAD, 0, 0},
        {range(10, 5), answer(416, NONE), ASK, 0, 0},
    };

    (void)state;
    check_values(row, ZR_COUNT(row));
}

static void test_suffixes_and_whole_values(void **state)
{
    const uint64_t far = ZR_HTTP_SKIP_MOST + 1;
    const struct value_row row[] = {
        /* a suffix */
        {suffix(5), part(95, 99, 100), OK, 95, 100},
        {suffix(5), part(0, 2, 3), OK, 0, 3},
        {suffix(5), answer(200, 100), OK, 0, 100},
        {suffix(5), answer(200, 3), OK, 0, 3},
        {suffix(5), answer(200, 0), OK, 0, 0},
        {suffix(5), answer(200, NONE), ASK, 0, 0},
        {suffix(5), answer(200, far + 5), ASK, 0, 0},
        {suffix(5), answer(416, 0), OK, 0, 0},
        {suffix(5), answer(416, 10), BAD, 0, 0},
        {suffix(5), answer(416, NONE), ASK, 0, 0},
        {suffix(5), answer(400, 0), ASK, 0, 0},
        {suffix(5), answer(501, 0), ASK, 0, 0},
        /* the whole value */
        {whole(5), answer(200, 5), OK, 0, 5},
        {whole(5), answer(200, 0), OK, 0, 0},
        {whole(5), answer(200, far + 5), OK, 0, far + 5},
        {whole(5), answer(200, NONE), OK, 0, NONE},
        {whole(5), answer(416, 0), FAILED, 0, 0},
        /* other statuses */
        {range(10, 5), answer(204, 0), FAILED, 0, 0},
        {range(10, 5), answer(301, 0), FAILED, 0, 0},
        {range(10, 5), answer(400, 0), FAILED, 0, 0},
        {range(10, 5), answer(404, 0), FAILED, 0, 0},
        {range(10, 5), answer(412, 0), FAILED, 0, 0},
        {suffix(5), answer(404, 0), FAILED, 0, 0},
        {range(10, 5), answer(503, 0), FAILED, 0, 0},
    };

    (void)state;
    check_values(row, ZR_COUNT(row));
}

static void test_lengths(void **state)
{
    static const struct {
        struct zr_net_answer answer;
        bool is_head;
        int result;
        uint64_t bytes;
    } row[] = {
        {{.status = 200, .total = 7}, true, OK, 7},
        {{.status = 200, .total = NONE}, true, ASK, NONE},
        {{.status = 206, .total = 7}, true, ASK, NONE},
        {{.status = 400}, true, ASK, NONE},
        {{.status = 403}, true, ASK, NONE}, /* may be refused for HEAD alone */
        {{.status = 405}, true, ASK, NONE},
        {{.status = 501}, true, ASK, NONE},
        {{.status = 404}, true, FAILED, 0},
        {{.status = 410}, true, FAILED, 0},
        {{.status = 412}, true, FAILED, 0},
        {{.status = 503}, true, FAILED, 0},
        {{.status = 206, .total = 7}, false, OK, 7},
        {{.status = 206, .total = NONE}, false, REFUSED, NONE},
        {{.status = 200, .total = 7}, false, OK, 7},
        {{.status = 200, .total = NONE}, false, REFUSED, NONE},
        {{.status = 416, .total = 0}, false, OK, 0},
        {{.status = 416, .total = 7}, false, FAILED, 0},
        {{.status = 403}, false, FAILED, 0},
    };

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(row); i++) {
        struct zr_http_found found = {0};
        zarr_error err;
        const zarr_status st =
            zr_http_judge_length(&row[i].answer, row[i].is_head, &found, &err);

        check_result(i, row[i].result, st, &found);
        if (row[i].result != FAILED && found.object_bytes != row[i].bytes)
            fail_msg("row %zu: %" PRIu64, i, found.object_bytes);
    }
}

static void test_versions(void **state)
{
    char back[ZR_HTTP_ETAG_ROOM], text[200] = "\"";
    zarr_store_version v, other;
    struct zr_net_answer a = {.status = 200, .etag = "\"1\"", .is_etag_weak = true};
    zarr_error err;

    (void)state;
    zr_http_version_make(&v, &a);
    assert_int_equal(v.bytes[0], 0);
    assert_false(zr_http_version_etag(&v, back));
    a = (struct zr_net_answer){.status = 200, .etag = "\"\""};
    zr_http_version_make(&v, &a);
    assert_true(zr_http_version_etag(&v, back));
    assert_string_equal(back, "\"\"");
    a.etag = text;
    for (size_t n = 1; n < 190; n++) { /* with its quotes n + 1 bytes */
        text[n] = '"';
        zr_http_version_make(&v, &a);
        assert_int_equal(v.bytes[0], n + 1 < 63 ? n + 1 : 63);
        assert_int_equal(zr_http_version_etag(&v, back), n + 1 <= 63);
        if (n + 1 <= 63)
            assert_string_equal(back, text);
        assert_int_equal(zr_http_judge_version(&a, &v, &err), ZARR_OK);
        text[n] = 'y'; /* differs in its last byte */
        text[n + 1] = '"';
        zr_http_version_make(&other, &a);
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

/* The table never gives an ETag of another version, also when it is full. */
static void test_long_etags(void **state)
{
    static struct zr_http_reader reader;
    struct zr_net_answer a = {.status = 200};
    size_t n_kept = 0;
    char text[301];

    (void)state;
    memset(text, 'x', sizeof text);
    a.etag = text;
    for (int i = 0; i < 4 * ZR_HTTP_ETAGS_MOST; i++) {
        zarr_store_version v;
        const char *kept;

        (void)snprintf(text, sizeof text, "\"%0298d\"", i);
        zr_http_version_make(&v, &a);
        assert_null(zr_http_etag_find(&reader, &v));
        zr_http_etag_keep(&reader, &v, a.etag);
        zr_http_etag_keep(&reader, &v, a.etag);
        kept = zr_http_etag_find(&reader, &v);
        n_kept += kept != NULL;
        if (kept)
            assert_string_equal(kept, text);
        else
            assert_true(i > 8);
    }
    assert_true(n_kept > ZR_HTTP_ETAGS_MOST / 2 && n_kept <= ZR_HTTP_ETAGS_MOST);
    zr_http_reader_deinit(&reader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_suffixes_and_whole_values),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_long_etags),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
