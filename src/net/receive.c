/*
 * net/receive.c - what libcurl receives: the lines of a header, then the body. The body
 * goes straight from libcurl's buffer to the sink. All that a server may send without end
 * has a limit here.
 *
 * Thread class: a reactor, inside of libcurl.
 */
#include "net/curl_int.h"

#include <string.h>

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
    zarr_status st = ZARR_OK;

    receive_measure(t);
    ZR_TRY(zr_net_answer_check_range(a, r->flags, r->range_first, r->range_bytes, err));
    if (has_body && !a->is_chunked && a->length == UINT64_MAX)
        ZR_FAIL(err, ZARR_ERR_IO,
                "the answer has no Content-Length, so its end cannot be told");
    if (has_body && r->max_bytes && a->length != UINT64_MAX && a->length > r->max_bytes)
        ZR_FAIL(err, ZARR_ERR_LIMIT,
                "the answer has %" PRIu64 " bytes, expected %" PRIu64 " at most",
                a->length, r->max_bytes);
    t->phase = ZR_NET_SINK;
    if (r->sink.begin)
        st = r->sink.begin(r->sink.user, a, err);
out:
    return st;
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

size_t zr_net_on_header(char *line, size_t one, size_t n, void *user)
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

size_t zr_net_on_body(char *bytes, size_t one, size_t n, void *user)
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
