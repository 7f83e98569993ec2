/*
 * net/outcome.c - what follows when libcurl is done with a request: its end, a redirect,
 * or a repetition after a pause.
 *
 * Thread class: a reactor.
 */
#include "net/curl_int.h"

#include <stdlib.h>
#include <string.h>

static bool outcome_is_safe(const struct zr_net_request *r)
{
    return strcmp(r->method, "GET") == 0 || strcmp(r->method, "HEAD") == 0 ||
           strcmp(r->method, "PROPFIND") == 0;
}

bool zr_net_is_repeatable(const struct zr_net_request *r)
{
    return (r->flags & ZR_NET_REPEATABLE) || outcome_is_safe(r);
}

bool zr_net_is_redirect(const struct zr_net_transfer *t)
{
    const struct zr_net_answer *a = &t->request->answer;

    return (a->status == 301 || a->status == 302 || a->status == 303 ||
            a->status == 307 || a->status == 308) &&
           outcome_is_safe(t->request) && !(t->request->flags & ZR_NET_NO_REDIRECT) &&
           zr_net_answer_header(a, "Location");
}

static uint32_t outcome_most_tries(const struct zr_net_transfer *t)
{
    return t->net->opts.tries ? t->net->opts.tries : 10;
}

static bool outcome_is_passing(uint32_t status)
{
    return status == 408 || status == 429 || status == 500 || status == 502 ||
           status == 503 || status == 504;
}

bool zr_net_repeats_answer(const struct zr_net_transfer *t)
{
    const struct zr_net_answer *a = &t->request->answer;

    return (outcome_is_passing(a->status) ||
            (a->status == 409 && (t->request->flags & ZR_NET_409_PASSES))) &&
           zr_net_is_repeatable(t->request) && t->tries < outcome_most_tries(t) &&
           (a->retry_after_s == UINT64_MAX ||
            a->retry_after_s <= ZR_NET_RETRY_AFTER_MAX_S - t->asked_s);
}

/* Whether a failure of libcurl is one of the connection, which may be gone next time. */
static bool outcome_repeats_failure(const struct zr_net_transfer *t, CURLcode result)
{
    uint32_t most = outcome_most_tries(t);
    bool repeatable = zr_net_is_repeatable(t->request);

    if (result == CURLE_OPERATION_TIMEDOUT && !t->is_sent && zr_curl.version >= 0x075000)
        result = CURLE_COULDNT_CONNECT; /* older ones do not tell what was sent */
    switch ((int)result) {
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
        repeatable = true; /* nothing was sent */
        most = ZR_MIN(most, (uint32_t)ZR_NET_CONNECT_TRIES);
        break;
    case CURLE_SSL_CONNECT_ERROR:
        most = ZR_MIN(most, (uint32_t)ZR_NET_CONNECT_TRIES);
        break;
    case CURLE_PARTIAL_FILE:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_GOT_NOTHING:
        break;
    default:
        return false;
    }
    return repeatable && t->tries < most;
}

/* Exponential back-off with full jitter, or what the host asks for. */
static void outcome_pause(struct zr_net_transfer *t)
{
    const uint64_t base = t->net->opts.backoff_ms ? t->net->opts.backoff_ms : 100;
    const uint64_t most =
        ZR_MIN(base << ZR_MIN(t->tries - 1, 20U), (uint64_t)ZR_NET_BACKOFF_MAX_MS);
    const uint64_t after = t->request->answer.retry_after_s;
    uint64_t ms = zr_random_u64() % (most + 1);

    if (after != UINT64_MAX) {
        /* zr_net_repeats_answer() has compared it, unless a connection was lost then */
        const uint64_t s = ZR_MIN(after, ZR_NET_RETRY_AFTER_MAX_S - t->asked_s);

        t->asked_s += s;
        ms += s * 1000;
    }
    t->due_ns = zr_now_ns() + ms * 1000000;
    t->st = ZARR_OK;
}

/* Whether the address that is connected may be that of a proxy. */
static bool outcome_has_proxy(const struct zr_net_options *o)
{
    static const char *const names[] = {"http_proxy", "https_proxy", "HTTPS_PROXY",
                                        "all_proxy", "ALL_PROXY"};

    if (o->proxy)
        return *o->proxy != '\0';
    for (size_t i = 0; i < ZR_COUNT(names); i++) {
        const char *value = getenv(names[i]);

        if (value && *value)
            return true;
    }
    return false;
}

/* Notes whether the server that redirects is public, if that must be known: then the next
 * one must be public, too. Fails if a proxy hides the addresses. */
static bool outcome_may_leave(struct zr_net_transfer *t, const struct zr_url *next)
{
    char *there = NULL;

    if (!t->net->opts.untrusted)
        return true;
    if (outcome_has_proxy(&t->net->opts) && !zr_net_is_same_origin(next, &t->url)) {
        zr_net_fail(
            t, ZARR_ERR_IO,
            "refuses a redirect to another server, because the option untrusted is "
            "set and a proxy hides the server's address");
        return false;
    }
    (void)zr_curl.easy_getinfo(t->easy, CURLINFO_PRIMARY_IP, &there);
    if (!there || !*there || !zr_net_is_private_text(there))
        t->was_public = true;
    return true;
}

static enum zr_net_outcome outcome_redirect(struct zr_net_transfer *t)
{
    struct zr_url next;
    zarr_error err = {0};
    zarr_status st;

    if (t->redirects == ZR_NET_REDIRECTS) {
        zr_net_fail(t, ZARR_ERR_IO, "more than %d redirects", ZR_NET_REDIRECTS);
        return ZR_NET_END;
    }
    st = zr_net_location(&next, &t->url,
                         zr_net_answer_header(&t->request->answer, "Location"), &err);
    if (st != ZARR_OK) {
        zr_net_fail(t, st, "%s", err.message);
        return ZR_NET_END;
    }
    if (!outcome_may_leave(t, &next)) {
        zr_url_deinit(&next);
        return ZR_NET_END;
    }
    t->has_left = t->has_left || !zr_net_is_same_origin(&next, &t->url);
    t->redirects++;
    zr_url_deinit(&t->url);
    t->url = next;
    return ZR_NET_REDIRECT;
}

static void outcome_count(const struct zr_net_transfer *t)
{
    struct zr_net *net = t->net;
    long in_header = 0, out_header = 0;
    curl_off_t in = 0, out = 0;

    (void)zr_curl.easy_getinfo(t->easy, CURLINFO_HEADER_SIZE, &in_header);
    (void)zr_curl.easy_getinfo(t->easy, CURLINFO_REQUEST_SIZE, &out_header);
    (void)zr_curl.easy_getinfo(t->easy, CURLINFO_SIZE_DOWNLOAD_T, &in);
    (void)zr_curl.easy_getinfo(t->easy, CURLINFO_SIZE_UPLOAD_T, &out);
    atomic_fetch_add(&net->requests, 1);
    atomic_fetch_add(&net->in_bytes, (uint64_t)in_header + (uint64_t)in);
    atomic_fetch_add(&net->out_bytes, (uint64_t)out_header + (uint64_t)out);
}

/* The status of a proxy that refuses to connect; 0: it does not, or there is none. */
static uint32_t outcome_read_refusal(const struct zr_net_transfer *t)
{
    long status = 0;

    (void)zr_curl.easy_getinfo(t->easy, CURLINFO_HTTP_CONNECTCODE, &status);
    return status >= 300 ? (uint32_t)status : 0;
}

uint64_t zr_net_stall_s(const struct zr_net_transfer *t)
{
    const uint64_t stall_s = t->net->opts.stall_s;

    return t->request->flags & ZR_NET_IS_LONG ? 5 * stall_s : stall_s;
}

/* The option whose time is over. libcurl tells only since 7.80 whether it has connected.
 */
static void outcome_fail_timeout(struct zr_net_transfer *t)
{
    const struct zr_net_options *o = &t->net->opts;

    if (t->is_sent)
        zr_net_fail(t, ZARR_ERR_IO, "no byte came for %" PRIu64 " s (option stall_s)",
                    zr_net_stall_s(t));
    else if (zr_curl.version >= 0x075000)
        zr_net_fail(t, ZARR_ERR_IO,
                    "no connection within %" PRIu32 " ms (option connect_ms)",
                    o->connect_ms);
    else
        zr_net_fail(t, ZARR_ERR_IO,
                    "no connection within %" PRIu32 " ms (option connect_ms), or no byte "
                    "for %" PRIu64 " s (option stall_s)",
                    o->connect_ms, zr_net_stall_s(t));
}

/* The failure of a connection as an error. */
static void outcome_fail(struct zr_net_transfer *t, CURLcode result)
{
    long os_code = 0;

    (void)zr_curl.easy_getinfo(t->easy, CURLINFO_OS_ERRNO, &os_code);
    if (result == CURLE_OUT_OF_MEMORY)
        zr_net_fail(t, ZARR_ERR_NO_MEMORY, "libcurl lacks memory");
    else if (result == CURLE_OPERATION_TIMEDOUT)
        outcome_fail_timeout(t);
    else if (result == CURLE_COULDNT_CONNECT && os_code != 0) {
        zarr_error said = {0};

        (void)zr_fail_os(&said, ZARR_ERR_IO, (int)os_code, "cannot connect");
        zr_net_fail(t, ZARR_ERR_IO, "%s", said.message);
    } else {
        zr_net_fail(t, ZARR_ERR_IO, "%s", zr_curl.easy_strerror(result));
    }
    if (os_code != 0)
        t->err.os_code = (int32_t)os_code;
}

static enum zr_net_outcome outcome_repeat(struct zr_net_transfer *t)
{
    outcome_pause(t);
    zr_url_deinit(&t->url);
    if (zr_url_parse(&t->url, t->net->opts.alloc, t->request->url, NULL) != ZARR_OK) {
        zr_net_fail(t, ZARR_ERR_NO_MEMORY, "no memory for a URL");
        return ZR_NET_END;
    }
    t->redirects = 0;
    t->has_left = t->was_public = false;
    return ZR_NET_REPEAT;
}

/* The server has seen nothing of the request, so any request may be repeated. */
static enum zr_net_outcome outcome_refuse(struct zr_net_transfer *t, uint32_t status)
{
    const bool is_denied = status == 401 || status == 403 || status == 407;

    if (outcome_is_passing(status) && t->tries < outcome_most_tries(t))
        return outcome_repeat(t);
    zr_net_fail(t, is_denied ? ZARR_ERR_DENIED : ZARR_ERR_IO,
                "the proxy answered %" PRIu32 ", and does not connect to the server",
                status);
    return ZR_NET_END;
}

enum zr_net_outcome zr_net_decide(struct zr_net_transfer *t, CURLcode result)
{
    const struct zr_net_answer *a = &t->request->answer;
    uint32_t refusal;

    outcome_count(t);
    if (t->st != ZARR_OK)
        return ZR_NET_END;
    if (result == CURLE_WRITE_ERROR && t->phase != ZR_NET_SINK)
        result = CURLE_OK; /* on_body() refused the rest of a long body */
    /* chunks may end before the range does */
    if (result == CURLE_OK && t->phase == ZR_NET_SINK && a->is_range &&
        a->body_bytes != a->range_bytes && strcmp(t->request->method, "HEAD") != 0)
        result = CURLE_PARTIAL_FILE;
    if (result == CURLE_OK && t->phase == ZR_NET_HEADER)
        result = CURLE_GOT_NOTHING;
    if (result != CURLE_OK) {
        refusal = outcome_read_refusal(t);
        if (refusal)
            return outcome_refuse(t, refusal);
        if (outcome_repeats_failure(t, result))
            return outcome_repeat(t);
        outcome_fail(t, result);
        return ZR_NET_END;
    }
    if (zr_net_is_redirect(t))
        return outcome_redirect(t);
    return zr_net_repeats_answer(t) ? outcome_repeat(t) : ZR_NET_END;
}
