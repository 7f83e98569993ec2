/*
 * http/answer.c - what an answer means for an operation, before its body is read: the
 * status of the operation, or which bytes of the body are its result. Nothing that the
 * server says is believed before it fits the request, so a body never lands at a wrong
 * place. Pure functions.
 */
#include "http/http_int.h"

#include <stdio.h>
#include <string.h>

/* ---- versions ---- */

enum {
    VERSION_ROOM = sizeof((zarr_store_version *)0)->bytes - 1,
    HASH_DIGITS = 16
};

/* Whether an ETag names one version of the bytes. NULL: no. */
static bool etag_is_strong(const char *etag)
{
    const size_t n = etag ? strlen(etag) : 0;

    if (n < 2 || etag[0] != '"' || etag[n - 1] != '"')
        return false;
    for (size_t i = 1; i < n - 1; i++) /* else no condition can have it */
        if (etag[i] <= ' ' || etag[i] > '~' || etag[i] == '"')
            return false;
    return true;
}

void zr_http_version_make(zarr_store_version *out, const char *etag)
{
    char text[VERSION_ROOM + 1];
    size_t n;

    *out = (zarr_store_version){{0}};
    if (!etag_is_strong(etag))
        return;
    n = strlen(etag);
    if (n > VERSION_ROOM) { /* no ETag begins with '#' */
        snprintf(text, sizeof text, "#%.*s%016" PRIx64,
                 (int)VERSION_ROOM - 1 - HASH_DIGITS, etag, zr_map_hash(etag, n));
        etag = text;
        n = VERSION_ROOM;
    }
    out->bytes[0] = (uint8_t)n;
    memcpy(out->bytes + 1, etag, n);
}

bool zr_http_version_etag(const zarr_store_version *v, char out[ZR_HTTP_ETAG_ROOM])
{
    const size_t n = v->bytes[0];

    if (n == 0 || n > VERSION_ROOM || v->bytes[1] != '"')
        return false;
    memcpy(out, v->bytes + 1, n);
    out[n] = '\0';
    return true;
}

/* ---- statuses ---- */

static zarr_status fail_status(const struct zr_http_answer *a, zarr_error *err)
{
    zarr_status st = ZARR_ERR_IO;
    const char *what = "the server refuses the request";

    switch (a->status) {
    case 404:
    case 410:
        st = ZARR_ERR_NOT_FOUND;
        what = "no such key";
        break;
    case 401:
    case 403:
    case 407:
        st = ZARR_ERR_DENIED;
        what = "the server denies access";
        break;
    case 412:
        st = ZARR_ERR_CONFLICT;
        what = "was replaced while it was read";
        break;
    default:
        if (a->status >= 500)
            what = "the server failed";
    }
    st = zr_fail(err, st, "%s (HTTP %" PRId32 ")", what, a->status);
    if (err) {
        err->os_code = a->status;
        err->os_domain = ZARR_OS_STORE;
    }
    return st;
}

/* ---- bodies ---- */

static zarr_status take_nothing(uint64_t object_bytes, struct zr_http_plan *plan)
{
    *plan =
        (struct zr_http_plan){.body_bytes = object_bytes, .object_bytes = object_bytes};
    return ZARR_OK;
}

static zarr_status ask_length(struct zr_http_plan *plan)
{
    *plan = (struct zr_http_plan){.asks_length = true, .object_bytes = UINT64_MAX};
    return ZARR_OK;
}

static zarr_status fail_range(const struct zr_http_answer *a, zarr_error *err)
{
    if (!a->has_range)
        return zr_fail(err, ZARR_ERR_IO,
                       "HTTP 206 without the Content-Range of one range");
    return zr_fail(err, ZARR_ERR_IO,
                   "the server sent bytes %" PRIu64 " to %" PRIu64
                   ", which are not those that were asked for",
                   a->first, a->last);
}

/* 206: exactly the range, or its part before the end of the value. */
static zarr_status judge_part(const struct zr_http_want *w,
                              const struct zr_http_answer *a, struct zr_http_plan *plan,
                              zarr_error *err)
{
    uint64_t first = w->offset, last = w->offset + (w->bytes - 1);

    if (!a->has_range || w->is_whole)
        return fail_range(a, err);
    if (w->is_suffix) {
        if (a->total == UINT64_MAX || a->total == 0)
            return fail_range(a, err);
        first = a->total - ZR_MIN(a->total, w->bytes);
        last = a->total - 1;
    } else if (a->total != UINT64_MAX) {
        if (a->total <= first)
            return fail_range(a, err);
        last = ZR_MIN(last, a->total - 1);
    }
    if (a->first != first || a->last != last)
        return fail_range(a, err);
    if (a->content_bytes != UINT64_MAX && a->content_bytes != last - first + 1)
        return zr_fail(err, ZARR_ERR_IO,
                       "the server sent a Content-Length of %" PRIu64
                       " for a range of %" PRIu64 " bytes",
                       a->content_bytes, last - first + 1);
    *plan = (struct zr_http_plan){.take = last - first + 1,
                                  .body_bytes = last - first + 1,
                                  .object_bytes = a->total};
    return ZARR_OK;
}

/* 200: the whole value, of which a server without ranges sends all. */
static zarr_status judge_whole(const struct zr_http_want *w,
                               const struct zr_http_answer *a, struct zr_http_plan *plan,
                               zarr_error *err)
{
    const uint64_t has = a->content_bytes;
    uint64_t skip = w->offset;

    if (w->is_suffix && has == UINT64_MAX)
        return ask_length(plan);
    if (w->is_suffix)
        skip = has - ZR_MIN(has, w->bytes);
    if (has != UINT64_MAX && has <= skip)
        return take_nothing(has, plan);
    if (skip > ZR_HTTP_SKIP_MOST)
        return w->is_suffix ? ask_length(plan)
                            : zr_fail(err, ZARR_ERR_UNSUPPORTED,
                                      "the server ignores ranges, and sends %" PRIu64
                                      " bytes before the one that was asked for",
                                      skip);
    *plan = (struct zr_http_plan){.skip = skip,
                                  .take = w->bytes,
                                  .body_bytes = has,
                                  .object_bytes = has,
                                  .counts = has == UINT64_MAX && w->needs_length,
                                  .ignores_ranges = !w->is_whole};
    if (has != UINT64_MAX)
        plan->take = ZR_MIN(w->bytes, has - skip);
    return ZARR_OK;
}

/* 416: the value ends before the range. */
static zarr_status judge_unsatisfiable(const struct zr_http_want *w,
                                       const struct zr_http_answer *a,
                                       struct zr_http_plan *plan, zarr_error *err)
{
    if (w->is_whole)
        return fail_status(a, err);
    if (a->total == UINT64_MAX)
        return ask_length(plan);
    if (w->is_suffix ? a->total == 0 : a->total <= w->offset)
        return take_nothing(a->total, plan);
    return zr_fail(err, ZARR_ERR_IO,
                   "the server refuses a range of a value of %" PRIu64
                   " bytes (HTTP 416)",
                   a->total);
}

zarr_status zr_http_judge(const struct zr_http_want *w, const struct zr_http_answer *a,
                          struct zr_http_plan *plan, zarr_error *err)
{
    switch (a->status) {
    case 200:
        return judge_whole(w, a, plan, err);
    case 206:
        return judge_part(w, a, plan, err);
    case 416:
        return judge_unsatisfiable(w, a, plan, err);
    case 400: /* of servers that know no suffixes */
    case 501:
        if (w->is_suffix)
            return ask_length(plan);
        return fail_status(a, err);
    default:
        return fail_status(a, err);
    }
}

zarr_status zr_http_judge_length(const struct zr_http_answer *a, bool is_head,
                                 uint64_t *object_bytes, zarr_error *err)
{
    *object_bytes = UINT64_MAX;
    if (a->status == 206 && !is_head && a->has_range)
        *object_bytes = a->total;
    else if (a->status == 416 && !is_head && a->total == 0)
        *object_bytes = 0;
    else if (a->status == 200)
        *object_bytes = a->content_bytes;
    else if (!is_head || a->status == 404 || a->status == 410 || a->status == 412 ||
             (a->status >= 500 && a->status != 501))
        return fail_status(a, err);
    if (*object_bytes == UINT64_MAX && !is_head)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "the server does not tell the length of the value");
    return ZARR_OK;
}

zarr_status zr_http_judge_end(const struct zr_http_plan *plan, uint64_t seen,
                              zarr_store_op *op, zarr_error *err)
{
    const uint64_t end = plan->skip + plan->take;
    const bool is_told = plan->body_bytes != UINT64_MAX;

    if (is_told && seen < end)
        return zr_fail(err, ZARR_ERR_IO,
                       "the server sent %" PRIu64 " of %" PRIu64 " bytes", seen, end);
    if (is_told && seen > plan->body_bytes)
        return zr_fail(err, ZARR_ERR_IO, "the server sent more than %" PRIu64 " bytes",
                       plan->body_bytes);
    op->done_bytes = ZR_MIN(seen, end) - ZR_MIN(seen, plan->skip);
    op->object_bytes = plan->object_bytes;
    if (!is_told && (plan->counts || seen < end))
        op->object_bytes = seen;
    return ZARR_OK;
}

zarr_status zr_http_judge_version(const struct zr_http_answer *a,
                                  const zarr_store_version *expected, zarr_error *err)
{
    zarr_store_version now;

    zr_http_version_make(&now, a->etag);
    if (now.bytes[0] > 0 && zr_store_version_equal(&now, expected))
        return ZARR_OK;
    return zr_fail(err, ZARR_ERR_CONFLICT, "was replaced while it was read");
}
