/*
 * net/request.c - requests for callers that wait, sinks into one buffer, and answers as
 * errors.
 *
 * Thread class: shared.
 */
#include "net/curl_int.h"

#include <string.h>

/* ---- waiting ---- */

static void request_done(struct zr_net_request *r, zarr_status st, const zarr_error *err)
{
    zr_outcome_set(r->user, st, err);
}

zarr_status zr_net_run(struct zr_net *net, struct zr_net_request *r, zarr_error *err)
{
    struct zr_outcome outcome;

    if (zr_attempt_runs())
        return zr_attempt_fail(err);
    zr_outcome_init(&outcome);
    r->done = request_done;
    r->user = &outcome;
    zr_net_submit(net, r);
    return zr_outcome_wait(&outcome, err);
}

/* ---- a sink into one buffer ---- */

static zarr_status sink_begin(void *user, const struct zr_net_answer *a, zarr_error *err)
{
    struct zr_net_buffer *b = user;

    b->n = 0;
    if (a->length != UINT64_MAX && a->length > b->cap)
        return zr_fail(err, ZARR_ERR_IO,
                       "the answer has %" PRIu64 " bytes, expected %zu at most",
                       a->length, b->cap);
    return ZARR_OK;
}

static zarr_status sink_write(void *user, const void *bytes, size_t n, zarr_error *err)
{
    struct zr_net_buffer *b = user;

    if (n > b->cap - b->n)
        return zr_fail(err, ZARR_ERR_IO,
                       "the answer has more bytes than expected, %zu at most", b->cap);
    memcpy(b->bytes + b->n, bytes, n);
    b->n += n;
    return ZARR_OK;
}

void zr_net_buffer_sink(struct zr_net_sink *out, struct zr_net_buffer *buffer)
{
    *out = (struct zr_net_sink){.begin = sink_begin, .write = sink_write, .user = buffer};
}

/* ---- answers as errors ---- */

static const char *request_reason(uint32_t status)
{
    static const struct {
        uint32_t status;
        const char *reason;
    } reasons[] = {{400, "Bad Request"},
                   {401, "Unauthorized"},
                   {403, "Forbidden"},
                   {404, "Not Found"},
                   {405, "Method Not Allowed"},
                   {407, "Proxy Authentication Required"},
                   {408, "Request Timeout"},
                   {409, "Conflict"},
                   {410, "Gone"},
                   {411, "Length Required"},
                   {412, "Precondition Failed"},
                   {413, "Content Too Large"},
                   {416, "Range Not Satisfiable"},
                   {429, "Too Many Requests"},
                   {500, "Internal Server Error"},
                   {501, "Not Implemented"},
                   {502, "Bad Gateway"},
                   {503, "Service Unavailable"},
                   {504, "Gateway Timeout"},
                   {507, "Insufficient Storage"}};

    for (size_t i = 0; i < ZR_COUNT(reasons); i++)
        if (reasons[i].status == status)
            return reasons[i].reason;
    return "not expected";
}

static zarr_status request_status(uint32_t status)
{
    switch (status) {
    case 401:
    case 403:
    case 407:
        return ZARR_ERR_DENIED;
    case 404:
    case 410:
        return ZARR_ERR_NOT_FOUND;
    case 412:
        return ZARR_ERR_CONFLICT;
    default:
        return ZARR_ERR_IO;
    }
}

uint32_t zr_net_count_tries(const struct zr_net_request *r)
{
    return r->own ? ZR_MAX(r->own->tries, r->own->n_sends) : 1;
}

zarr_status zr_net_fail_status(zarr_error *err, const struct zr_net_request *r)
{
    const uint32_t status = r->answer.status;
    const uint32_t tries = zr_net_count_tries(r);
    const char *const reason = request_reason(status);
    zarr_status st = request_status(status);

    if (tries > 1)
        st = zr_fail(err, st,
                     "the server answered HTTP %" PRIu32 " (%s) to each of %" PRIu32
                     " tries",
                     status, reason, tries);
    else
        st =
            zr_fail(err, st, "the server answered HTTP %" PRIu32 " (%s)", status, reason);
    if (err) {
        err->os_code = (int32_t)status;
        err->os_domain = ZARR_OS_STORE;
    }
    return st;
}
