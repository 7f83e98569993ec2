/*
 * net/answer.c - what the header of an answer says. Each fact is checked or missing:
 * where two headers of one name differ, or a number is none, the answer is refused.
 *
 * Thread class: plain functions.
 */
#include "net/net_int.h"

#include <string.h>
#include <strings.h>

void zr_net_answer_reset(struct zr_net_answer *a, const zarr_allocator *alloc)
{
    struct zr_str lines = a->lines;

    lines.alloc = alloc;
    zr_str_clear(&lines);
    *a = (struct zr_net_answer){.length = UINT64_MAX,
                                .total = UINT64_MAX,
                                .retry_after_s = UINT64_MAX,
                                .lines = lines};
}

void zr_net_answer_deinit(struct zr_net_answer *a)
{
    zr_str_deinit(&a->lines);
    *a = (struct zr_net_answer){0};
}

/* ---- lines ---- */

/* "HTTP/1.1 206 Partial Content" */
static bool answer_parse_status(const char *line, size_t n, uint32_t *status)
{
    const char *const blank = memchr(line, ' ', n);
    const size_t left = blank ? n - (size_t)(blank + 1 - line) : 0;
    uint64_t number;

    if (left < 3 || (left > 3 && blank[4] != ' ') || !zr_parse_u64(blank + 1, 3, &number))
        return false;
    *status = (uint32_t)number;
    return number >= 100 && number <= 599;
}

zarr_status zr_net_answer_add(struct zr_net_answer *a, const char *line, size_t n,
                              zarr_error *err)
{
    const char *colon;

    while (n > 0 && (line[n - 1] == '\n' || line[n - 1] == '\r'))
        n--;
    for (size_t i = 0; i < n; i++)
        if (((uint8_t)line[i] < ' ' && line[i] != '\t') || line[i] == 0x7F)
            return zr_fail(err, ZARR_ERR_IO,
                           "the header of the answer has a control character");
    if (n >= 5 && memcmp(line, "HTTP/", 5) == 0) {
        zr_net_answer_reset(a, a->lines.alloc);
        if (!answer_parse_status(line, n, &a->status))
            return zr_fail(err, ZARR_ERR_IO,
                           "the status line of the answer is malformed");
        return ZARR_OK;
    }
    colon = memchr(line, ':', n);
    if (a->status == 0 || !colon || colon == line || *line == ' ' || *line == '\t' ||
        colon[-1] == ' ' || colon[-1] == '\t')
        return zr_fail(err, ZARR_ERR_IO, "the header of the answer is malformed");
    zr_str_append(&a->lines, line, n);
    zr_str_putc(&a->lines, '\0');
    return zr_str_status(&a->lines, err);
}

/* Copies nothing: blanks at the end are allowed in what zr_net_answer_header() gives only
 * if no caller compares it, so they are cut in place here. */
static void answer_trim(struct zr_net_answer *a)
{
    for (size_t at = 0, n; at < a->lines.bytes; at += n + 1) {
        char *const line = a->lines.ptr + at;

        n = strlen(line);
        for (size_t end = n; end > 0 && (line[end - 1] == ' ' || line[end - 1] == '\t');)
            line[--end] = '\0';
    }
}

static const char *answer_value(const char *line, const char *name)
{
    const size_t n = strlen(name);

    if (strncasecmp(line, name, n) != 0 || line[n] != ':')
        return NULL;
    line += n + 1;
    return line + strspn(line, " \t");
}

/* Skips the NULs that trimming left, too. */
static const char *answer_next_line(const struct zr_net_answer *a, const char *line)
{
    const char *const end = a->lines.ptr + a->lines.bytes;

    line = line ? line + strlen(line) : a->lines.ptr;
    while (line < end && *line == '\0')
        line++;
    return line < end ? line : NULL;
}

const char *zr_net_answer_header(const struct zr_net_answer *a, const char *name)
{
    const char *line = NULL, *value = NULL;

    while (a->lines.bytes > 0 && !value && (line = answer_next_line(a, line)))
        value = answer_value(line, name);
    return value;
}

/* The same, but IO if there is another one with another value. */
static zarr_status answer_get(const struct zr_net_answer *a, const char *name,
                              const char **out, zarr_error *err)
{
    const char *line = NULL, *value;

    *out = NULL;
    while (a->lines.bytes > 0 && (line = answer_next_line(a, line))) {
        value = answer_value(line, name);
        if (value && *out && strcmp(value, *out) != 0)
            return zr_fail(err, ZARR_ERR_IO, "the answer has two different headers %s",
                           name);
        if (value)
            *out = value;
    }
    return ZARR_OK;
}

/* ---- values ---- */

bool zr_net_parse_content_range(const char *text, bool is_range, uint64_t *first,
                                uint64_t *bytes, uint64_t *total)
{
    const char *slash, *dash;
    uint64_t last;

    *total = UINT64_MAX;
    if (strncasecmp(text, "bytes", 5) != 0 || (text[5] != ' ' && text[5] != '\t'))
        return false;
    text += 5 + strspn(text + 5, " \t");
    slash = strchr(text, '/');
    if (!slash)
        return false;
    if (strcmp(slash + 1, "*") == 0) {
        if (!is_range)
            return false;
    } else if (!zr_parse_u64(slash + 1, strlen(slash + 1), total)) {
        return false;
    }
    if (!is_range)
        return slash == text + 1 && *text == '*';
    dash = memchr(text, '-', (size_t)(slash - text));
    if (!dash || !zr_parse_u64(text, (size_t)(dash - text), first) ||
        !zr_parse_u64(dash + 1, (size_t)(slash - dash - 1), &last) || last < *first ||
        last == UINT64_MAX || (*total != UINT64_MAX && last >= *total))
        return false;
    *bytes = last - *first + 1;
    return true;
}

/* Days since 1970 of a date of the Gregorian calendar; month: 0 to 11. */
static int64_t answer_days(int64_t year, int64_t month, int64_t day)
{
    const int64_t y = month < 2 ? year - 1 : year, m = (month + 10) % 12;

    return 365 * y + y / 4 - y / 100 + y / 400 + (m * 306 + 5) / 10 + day - 719469;
}

/* "Sun, 06 Nov 1994 08:49:37 GMT" */
static bool answer_parse_date(const char *text, int64_t *out_s)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    static const char like[] = "Aaa, 00 Aaa 0000 00:00:00 GMT";
    uint64_t day, year, hour, minute, second;
    int64_t month = 0;

    if (strlen(text) != sizeof like - 1 || memcmp(text + 25, " GMT", 4) != 0)
        return false;
    for (size_t i = 3; i < 25; i++)
        if ((like[i] == ' ' || like[i] == ',' || like[i] == ':') && text[i] != like[i])
            return false;
    while (month < 12 && memcmp(text + 8, months + 3 * month, 3) != 0)
        month++;
    if (month == 12 || !zr_parse_u64(text + 5, 2, &day) ||
        !zr_parse_u64(text + 12, 4, &year) || !zr_parse_u64(text + 17, 2, &hour) ||
        !zr_parse_u64(text + 20, 2, &minute) || !zr_parse_u64(text + 23, 2, &second) ||
        day < 1 || day > 31 || hour > 23 || minute > 59 || second > 60)
        return false;
    *out_s = answer_days((int64_t)year, month, (int64_t)day) * 86400 +
             (int64_t)(hour * 3600 + minute * 60 + second);
    return true;
}

bool zr_net_parse_retry_after(const char *text, int64_t now_s, uint64_t *out_s)
{
    int64_t at;

    if (zr_parse_u64(text, strlen(text), out_s))
        return true;
    if (!answer_parse_date(text, &at))
        return false;
    *out_s = at > now_s ? (uint64_t)(at - now_s) : 0;
    return true;
}

/* ---- facts ---- */

static zarr_status answer_finish_length(struct zr_net_answer *a, zarr_error *err)
{
    const char *text;
    size_t n;

    ZR_CHECK(answer_get(a, "Transfer-Encoding", &text, err));
    n = text ? strlen(text) : 0;
    a->is_chunked = n >= 7 && strcasecmp(text + n - 7, "chunked") == 0;
    ZR_CHECK(answer_get(a, "Content-Length", &text, err));
    if (text && !a->is_chunked &&
        (!zr_parse_u64(text, strlen(text), &a->length) || a->length > INT64_MAX))
        return zr_fail(err, ZARR_ERR_IO,
                       "the answer has a wrong Content-Length \"%.64s\"", text);
    return ZARR_OK;
}

static zarr_status answer_finish_range(struct zr_net_answer *a, zarr_error *err)
{
    const char *text;

    if (a->status == 200)
        a->total = a->length;
    if (a->status != 206 && a->status != 416)
        return ZARR_OK;
    ZR_CHECK(answer_get(a, "Content-Range", &text, err));
    if (!text && a->status == 416)
        return ZARR_OK;
    if (!text)
        return zr_fail(err, ZARR_ERR_IO, "the answer has a part, but no Content-Range");
    if (!zr_net_parse_content_range(text, a->status == 206, &a->range_first,
                                    &a->range_bytes, &a->total))
        return zr_fail(err, ZARR_ERR_IO, "the answer has a wrong Content-Range \"%.64s\"",
                       text);
    a->is_range = a->status == 206;
    if (a->is_range && a->length != UINT64_MAX && a->length != a->range_bytes)
        return zr_fail(err, ZARR_ERR_IO,
                       "Content-Length %" PRIu64 " contradicts Content-Range \"%.64s\"",
                       a->length, text);
    return ZARR_OK;
}

/* Whether an ETag names one version of the bytes, and a condition can have it. */
static bool answer_is_strong(const char *etag)
{
    const size_t n = strlen(etag);

    if (n < 2 || etag[0] != '"' || etag[n - 1] != '"')
        return false;
    for (size_t i = 1; i < n - 1; i++)
        if (etag[i] <= ' ' || etag[i] > '~' || etag[i] == '"')
            return false;
    return true;
}

zarr_status zr_net_answer_finish(struct zr_net_answer *a, zarr_error *err)
{
    const char *text;

    answer_trim(a);
    ZR_CHECK(answer_finish_length(a, err));
    ZR_CHECK(answer_finish_range(a, err));
    ZR_CHECK(answer_get(a, "Content-Encoding", &text, err));
    if (text && *text && strcasecmp(text, "identity") != 0 && a->status / 100 == 2)
        return zr_fail(err, ZARR_ERR_IO,
                       "the answer has Content-Encoding \"%.64s\", expected identity",
                       text);
    ZR_CHECK(answer_get(a, "Location", &text, err));
    ZR_CHECK(answer_get(a, "ETag", &a->etag, err));
    if (a->etag && !*a->etag)
        a->etag = NULL;
    a->is_etag_weak = a->etag && !answer_is_strong(a->etag);
    text = zr_net_answer_header(a, "Retry-After");
    if (text && !zr_net_parse_retry_after(text, zr_wall_seconds(), &a->retry_after_s))
        a->retry_after_s = UINT64_MAX;
    text = zr_net_answer_header(a, "Date");
    if (text && !answer_parse_date(text, &a->date_s))
        a->date_s = 0;
    return ZARR_OK;
}

zarr_status zr_net_answer_check_range(const struct zr_net_answer *a, uint32_t flags,
                                      uint64_t first, uint64_t bytes, zarr_error *err)
{
    bool fits = true;

    if (!a->is_range)
        return ZARR_OK;
    if (flags & ZR_NET_RANGE) {
        const uint64_t last = zr_add_cap(first, bytes), end = ZR_MIN(last, a->total);

        fits = a->range_first == first && a->range_first + a->range_bytes == end;
    } else if (flags & ZR_NET_SUFFIX) {
        fits = a->total != UINT64_MAX && a->range_first + a->range_bytes == a->total &&
               a->range_bytes == ZR_MIN(bytes, a->total);
    } else {
        return zr_fail(err, ZARR_ERR_IO, "the answer has a part, but all was asked for");
    }
    return fits ? ZARR_OK
                : zr_fail(err, ZARR_ERR_IO,
                          "the answer has another range than the request: \"%.64s\"",
                          zr_net_answer_header(a, "Content-Range"));
}
