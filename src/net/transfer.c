/*
 * net/transfer.c - one request as libcurl gets it, and what libcurl receives: the lines
 * of a header, then the body. The body goes straight from libcurl's buffer to the sink.
 * All that a server may send without end has a limit here. Nothing is left to libcurl
 * that another page of this room decides: it follows no redirect and decodes no content.
 * Its verbose output stays off, since that shows secrets.
 *
 * Thread class: a reactor.
 */
#include "net/curl_int.h"

#include <string.h>

#include <zarrc/version.h>

enum {
    TRANSFER_BUFFER_MIN = 16384, /* CURLOPT_BUFFERSIZE */
    TRANSFER_BUFFER_MAX = 524288 /* with a quarter libcurl takes up to a third more CPU */
};

#define TRANSFER_SHORT_NS UINT64_C(3000000000)

zarr_status zr_net_transfer_create(struct zr_net_transfer **out, struct zr_net *net,
                                   struct zr_net_request *r, zarr_error *err)
{
    struct zr_net_transfer *t = zr_calloc(net->opts.alloc, 1, sizeof *t);
    zarr_status st = ZARR_OK;

    *out = t;
    if (!t)
        return zr_fail_memory(err, sizeof *t);
    t->net = net;
    t->request = r;
    t->end_ns = r->flags & ZR_NET_IS_SHORT ? zr_now_ns() + TRANSFER_SHORT_NS : UINT64_MAX;
    ZR_TRY(zr_url_parse(&t->url, net->opts.alloc, r->url, err));
    if (strcmp(t->url.scheme, "http") != 0 && strcmp(t->url.scheme, "https") != 0)
        ZR_FAIL(err, ZARR_ERR_INVALID, "the URL is neither http nor https");
out:
    if (st != ZARR_OK) {
        zr_net_transfer_free(t);
        *out = NULL;
    }
    return st;
}

void zr_net_transfer_free(struct zr_net_transfer *t)
{
    if (!t)
        return;
    zr_url_deinit(&t->url);
    zr_free(t->net->opts.alloc, t);
}

void zr_net_transfer_release(struct zr_net_transfer *t)
{
    for (struct curl_slist *s = t->headers; s; s = s->next)
        zr_wipe(s->data, strlen(s->data));
    zr_curl.slist_free_all(t->headers);
    t->headers = NULL;
    atomic_fetch_sub(&zr_net_engine.buffer_bytes, t->buffer_bytes);
    t->buffer_bytes = 0;
}

void zr_net_fail(struct zr_net_transfer *t, zarr_status st, const char *fmt, ...)
{
    char text[ZARR_ERROR_MESSAGE_BYTES];
    struct zr_str shown;
    va_list args;

    if (t->st != ZARR_OK)
        return;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    zr_str_init(&shown, t->net->opts.alloc);
    zr_url_put_shown(&shown, t->request->url);
    t->st = zr_fail(&t->err, st, "%.200s: %s", zr_str_text(&shown), text);
    zr_str_deinit(&shown);
}

/* ---- the header of the request ---- */

static bool transfer_add_line(struct zr_net_transfer *t, const char *line)
{
    struct curl_slist *longer;

    for (const char *c = line; *c; c++)
        if (((uint8_t)*c < ' ' && *c != '\t') || *c == 0x7F) {
            zr_net_fail(t, ZARR_ERR_INVALID, "a header has a control character");
            return false;
        }
    longer = zr_curl.slist_append(t->headers, line);
    if (!longer) {
        zr_net_fail(t, ZARR_ERR_NO_MEMORY, "no memory for headers");
        return false;
    }
    t->headers = longer;
    return true;
}

static bool transfer_add_lines(struct zr_net_transfer *t, const char *const *lines)
{
    for (; lines && *lines; lines++)
        if (!transfer_add_line(t, *lines))
            return false;
    return true;
}

static bool transfer_add_range(struct zr_net_transfer *t)
{
    const struct zr_net_request *r = t->request;
    char line[80];

    if (!(r->flags & (ZR_NET_RANGE | ZR_NET_SUFFIX)))
        return true;
    if (r->range_bytes == 0 ||
        ((r->flags & ZR_NET_RANGE) && r->range_first > INT64_MAX - r->range_bytes)) {
        zr_net_fail(t, ZARR_ERR_INVALID, "the range is empty or too large");
        return false;
    }
    if (r->flags & ZR_NET_RANGE)
        (void)snprintf(line, sizeof line, "Range: bytes=%" PRIu64 "-%" PRIu64,
                       r->range_first, r->range_first + r->range_bytes - 1);
    else
        (void)snprintf(line, sizeof line, "Range: bytes=-%" PRIu64, r->range_bytes);
    return transfer_add_line(t, line);
}

/* Those that the caller makes for this try. */
static bool transfer_add_made_lines(struct zr_net_transfer *t)
{
    struct zr_net_request *r = t->request;
    struct zr_str lines;
    zarr_error err = {0};
    zarr_status st;
    bool ok = true;

    if (!r->add_headers)
        return true;
    zr_str_init(&lines, t->net->opts.alloc);
    st = r->add_headers(r->header_user, r, &lines, &err);
    if (st == ZARR_OK)
        st = zr_str_status(&lines, &err);
    if (st != ZARR_OK)
        zr_net_fail(t, st, "%s", err.message);
    for (size_t at = 0; ok && st == ZARR_OK && at < lines.bytes;
         at += strlen(lines.ptr + at) + 1)
        ok = transfer_add_line(t, lines.ptr + at);
    zr_wipe(lines.ptr, lines.cap);
    zr_str_deinit(&lines);
    return ok && st == ZARR_OK;
}

/* A line without a value removes libcurl's own header of that name, but none of ours. */
static bool transfer_add_header(struct zr_net_transfer *t)
{
    const struct zr_net_request *r = t->request;

    return transfer_add_lines(t, r->headers) && transfer_add_range(t) &&
           transfer_add_line(t, "Accept-Encoding: identity") &&
           (t->has_left ||
            (transfer_add_lines(t, r->secret_headers) && transfer_add_made_lines(t) &&
             transfer_add_lines(t, (const char *const *)t->net->secret_headers))) &&
           (!r->body ||
            (transfer_add_line(t, "Expect:") && transfer_add_line(t, "Content-Type:")));
}

/* ---- the answer ---- */

/* Without the time in a queue, and to connect. */
static void receive_measure(struct zr_net_transfer *t)
{
    curl_off_t sent_us = 0, came_us = 0;

    (void)zr_curl.easy_getinfo(t->easy, CURLINFO_PRETRANSFER_TIME_T, &sent_us);
    (void)zr_curl.easy_getinfo(t->easy, CURLINFO_STARTTRANSFER_TIME_T, &came_us);
    t->request->answer.wait_ns =
        came_us > sent_us ? (uint64_t)(came_us - sent_us) * 1000 : 1000;
}

/* Checks the answer, and tells the sink. */
static zarr_status receive_begin_body(struct zr_net_transfer *t, zarr_error *err)
{
    const struct zr_net_request *r = t->request;
    const struct zr_net_answer *a = &r->answer;
    const bool has_body = strcmp(r->method, "HEAD") != 0 && a->status != 204;

    receive_measure(t);
    ZR_CHECK(zr_net_answer_check_range(a, r->flags, r->range_first, r->range_bytes, err));
    if (has_body && !a->is_chunked && a->length == UINT64_MAX)
        return zr_fail(err, ZARR_ERR_IO,
                       "the answer has no Content-Length, so its end cannot be told");
    if (has_body && r->max_bytes && a->length != UINT64_MAX && a->length > r->max_bytes)
        return zr_fail(err, ZARR_ERR_LIMIT,
                       "the answer has %" PRIu64 " bytes, expected %" PRIu64 " at most",
                       a->length, r->max_bytes);
    t->phase = ZR_NET_SINK;
    if (r->sink.begin)
        return r->sink.begin(r->sink.user, a, err);
    return ZARR_OK;
}

/* The header is complete: says what the body is for. */
static void receive_end_header(struct zr_net_transfer *t)
{
    struct zr_net_answer *a = &t->request->answer;
    zarr_error err = {0};
    zarr_status st = zr_net_answer_finish(a, &err);

    if (st == ZARR_OK) {
        t->phase = ZR_NET_ERROR;
        if (zr_net_is_redirect(t) || zr_net_repeats_answer(t))
            t->phase = ZR_NET_DROP;
        else if (a->status / 100 == 2)
            st = receive_begin_body(t, &err);
    }
    if (st != ZARR_OK)
        zr_net_fail(t, st, "%s", err.message);
}

static size_t on_header(char *line, size_t one, size_t n, void *user)
{
    struct zr_net_transfer *t = user;
    struct zr_net_answer *a = &t->request->answer;
    zarr_error err = {0};
    zarr_status st;

    n *= one;
    t->header_bytes += n;
    if (t->header_bytes > ZR_NET_HEADER_BYTES ||
        ++t->header_lines > ZR_NET_HEADER_LINES) {
        zr_net_fail(t, ZARR_ERR_IO, "the header of the answer is too long");
        return 0;
    }
    if (t->phase != ZR_NET_HEADER) /* a trailer */
        return n;
    if (line[0] == '\r' || line[0] == '\n') {
        if (a->status >= 200)
            receive_end_header(t);
        return t->st == ZARR_OK ? n : 0;
    }
    st = zr_net_answer_add(a, line, n, &err);
    if (st != ZARR_OK)
        zr_net_fail(t, st, "%s", err.message);
    return t->st == ZARR_OK ? n : 0;
}

static bool receive_to_sink(struct zr_net_transfer *t, const char *bytes, size_t n)
{
    struct zr_net_request *r = t->request;
    const struct zr_net_answer *a = &r->answer;
    zarr_error err = {0};
    zarr_status st = ZARR_OK;

    if (a->is_range && a->body_bytes > a->range_bytes)
        zr_net_fail(t, ZARR_ERR_IO, "the answer is longer than its Content-Range");
    else if (r->max_bytes && a->body_bytes > r->max_bytes)
        zr_net_fail(t, ZARR_ERR_LIMIT,
                    "the answer has more bytes than expected, %" PRIu64, r->max_bytes);
    else if (r->sink.write)
        st = r->sink.write(r->sink.user, bytes, n, &err);
    if (st != ZARR_OK)
        zr_net_fail(t, st, "%s", err.message);
    return t->st == ZARR_OK;
}

static size_t on_body(char *bytes, size_t one, size_t n, void *user)
{
    struct zr_net_transfer *t = user;
    struct zr_net_request *r = t->request;

    n *= one;
    r->answer.body_bytes += n;
    if (t->phase == ZR_NET_SINK)
        return receive_to_sink(t, bytes, n) ? n : 0;
    if (t->phase == ZR_NET_ERROR && r->error_body &&
        r->error_body->bytes < ZR_NET_ERROR_BYTES)
        zr_str_append(r->error_body, bytes,
                      ZR_MIN(n, ZR_NET_ERROR_BYTES - r->error_body->bytes));
    return r->answer.body_bytes <= ZR_NET_DROP_BYTES ? n : 0;
}

/* ---- options ---- */

#define SET(option, value) (void)zr_curl.easy_setopt(t->easy, CURLOPT_##option, value)
/* libcurl copies texts, which may fail. */
#define SET_TEXT(option, value)                                                          \
    (is_set = is_set && zr_curl.easy_setopt(t->easy, CURLOPT_##option, value) == CURLE_OK)

static bool transfer_set_credentials(const struct zr_net_transfer *t)
{
    const struct zr_net_options *o = &t->net->opts;
    const char *info = t->url.user_info, *const colon = info ? strchr(info, ':') : NULL;
    struct zr_str name, password;
    bool is_set = true;

    if (o->user_password)
        SET_TEXT(USERPWD, o->user_password);
    if (info && t->redirects == 0) { /* a server gives no credentials */
        zr_str_init(&name, o->alloc);
        zr_str_init(&password, o->alloc);
        is_set =
            zr_url_decode(&name, info, colon ? (size_t)(colon - info) : strlen(info));
        if (colon)
            is_set = is_set && zr_url_decode(&password, colon + 1, strlen(colon + 1));
        is_set = is_set && !name.failed && !password.failed;
        SET_TEXT(USERNAME, zr_str_text(&name));
        SET_TEXT(PASSWORD, zr_str_text(&password));
        zr_wipe(name.ptr, name.bytes);
        zr_wipe(password.ptr, password.bytes);
        zr_str_deinit(&name);
        zr_str_deinit(&password);
    }
    if (o->netrc || o->netrc_file)
        SET(NETRC, (long)CURL_NETRC_OPTIONAL);
    if (o->netrc_file)
        SET_TEXT(NETRC_FILE, o->netrc_file);
    return is_set;
}

static bool transfer_set_client(const struct zr_net_transfer *t)
{
    const struct zr_net_options *o = &t->net->opts;
    bool is_set = t->has_left || transfer_set_credentials(t);

    SET(CONNECTTIMEOUT_MS, (long)o->connect_ms);
    SET(LOW_SPEED_LIMIT, 1L);
    SET(LOW_SPEED_TIME, (long)zr_net_stall_s(t));
    if (o->proxy)
        SET_TEXT(PROXY, o->proxy);
    if (o->no_proxy)
        SET_TEXT(NOPROXY, o->no_proxy);
    if (o->ca_file)
        SET_TEXT(CAINFO, o->ca_file);
    if (o->ca_folder)
        SET_TEXT(CAPATH, o->ca_folder);
    if (o->tls_unverified) {
        SET(SSL_VERIFYPEER, 0L);
        SET(SSL_VERIFYHOST, 0L);
    }
    return is_set;
}

static bool transfer_set_method(const struct zr_net_transfer *t)
{
    const struct zr_net_request *r = t->request;
    bool is_set = true;

    if (r->body) {
        SET(POSTFIELDS, r->body);
        SET(POSTFIELDSIZE_LARGE, (curl_off_t)r->body_bytes);
    }
    if (strcmp(r->method, "HEAD") == 0)
        SET(NOBODY, 1L);
    else if (strcmp(r->method, "GET") != 0 || r->body)
        SET_TEXT(CUSTOMREQUEST, r->method);
    return is_set;
}

static void transfer_set_callbacks(struct zr_net_transfer *t)
{
    SET(HEADERFUNCTION, on_header);
    SET(HEADERDATA, t);
    SET(WRITEFUNCTION, on_body);
    SET(WRITEDATA, t);
    SET(OPENSOCKETFUNCTION, zr_net_on_open);
    SET(OPENSOCKETDATA, t);
    SET(CLOSESOCKETFUNCTION, zr_net_on_close);
    SET(PRIVATE, t);
    if (zr_curl.version >= 0x075000) { /* 7.80 */
        SET(PREREQFUNCTION, zr_net_on_request);
        SET(PREREQDATA, t);
    } else if (t->was_public || !zr_net_is_repeatable(t->request) || t->request->body) {
        SET(FRESH_CONNECT, 1L);
    }
}

/* As long as the range, or the body to send, with limits. When those of all requests have
 * their share, the next ones get the least. */
static uint64_t transfer_take_buffer(struct zr_net_transfer *t)
{
    const struct zr_net_request *r = t->request;
    const uint64_t least = TRANSFER_BUFFER_MIN;
    uint64_t n = TRANSFER_BUFFER_MAX;

    if (r->flags & (ZR_NET_RANGE | ZR_NET_SUFFIX))
        n = ZR_MIN(n, ZR_MAX(r->range_bytes, least));
    if (r->body)
        n = ZR_MIN(n, ZR_MAX(r->body_bytes, least));
    if (atomic_fetch_add(&zr_net_engine.buffer_bytes, n) + n > ZR_NET_BUFFERS_BYTES) {
        atomic_fetch_sub(&zr_net_engine.buffer_bytes, n - least);
        n = least;
    }
    t->buffer_bytes = n;
    return n;
}

static void transfer_set_protocol(struct zr_net_transfer *t)
{
    const long buffer = (long)transfer_take_buffer(t);

    SET(BUFFERSIZE, t->request->body ? (long)TRANSFER_BUFFER_MIN : buffer);
    if (t->request->body)
        SET(UPLOAD_BUFFERSIZE, buffer);
    SET(HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2); /* or newer */
    SET(FOLLOWLOCATION, 0L);
    SET(PATH_AS_IS, 1L);
    SET(NOSIGNAL, 1L);
    SET(NOPROGRESS, 1L);
    SET(SUPPRESS_CONNECT_HEADERS, 1L);
    SET(USERAGENT, "zarrc/" ZARR_VERSION_STRING);
    if (zr_curl.version >= 0x075500) /* 7.85 */
        SET(PROTOCOLS_STR, "http,https");
    else
        SET(PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
    if (zr_curl.version >= 0x075700) /* 7.87 */
        SET(QUICK_EXIT, 1L);
}

zarr_status zr_net_transfer_prepare(struct zr_net_transfer *t)
{
    struct zr_str url;
    bool is_set;

    zr_net_answer_reset(&t->request->answer, t->net->opts.alloc);
    if (t->request->error_body)
        zr_str_clear(t->request->error_body);
    t->phase = ZR_NET_HEADER;
    t->header_bytes = 0;
    t->header_lines = 0;
    t->is_sent = false;
    t->outcome = ZR_NET_RUNS;
    if (!transfer_add_header(t))
        return t->st;
    zr_str_init(&url, t->net->opts.alloc);
    zr_url_put_key(&url, &t->url, NULL);
    is_set = zr_str_status(&url, NULL) == ZARR_OK;
    transfer_set_protocol(t);
    transfer_set_callbacks(t);
    SET_TEXT(URL, zr_str_text(&url));
    SET_TEXT(HTTPHEADER, t->headers);
    zr_str_deinit(&url);
    is_set = is_set && transfer_set_client(t) && transfer_set_method(t);
    if (!is_set)
        zr_net_fail(t, ZARR_ERR_NO_MEMORY, "libcurl refuses an option, or lacks memory");
    return t->st;
}
