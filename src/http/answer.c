/*
 * http/answer.c - what an answer means for a request: the place of its body in the value,
 * or which request is next. The room net has compared a Content-Range with the range that
 * was asked for, so a body never lands at a wrong place. Pure functions.
 */
#include "http/http_int.h"

#include <stdio.h>
#include <string.h>

/* ---- versions ---- */

enum {
    VERSION_ROOM = sizeof((zarr_store_version *)0)->bytes - 1,
    HASH_DIGITS = 16
};

void zr_http_version_make(zarr_store_version *out, const struct zr_net_answer *a)
{
    const char *etag = a->etag;
    char text[VERSION_ROOM + 1];
    size_t n;

    *out = (zarr_store_version){{0}};
    if (!etag || a->is_etag_weak)
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

bool zr_http_version_is_hash(const zarr_store_version *v)
{
    return v->bytes[0] == VERSION_ROOM && v->bytes[1] == '#';
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

zarr_status zr_http_judge_version(const struct zr_net_answer *a,
                                  const zarr_store_version *expected, zarr_error *err)
{
    zarr_store_version now;

    zr_http_version_make(&now, a);
    if (now.bytes[0] > 0 && zr_store_version_equal(&now, expected))
        return ZARR_OK;
    return zr_fail(err, ZARR_ERR_CONFLICT, "was replaced while it was read");
}

/* ---- places ---- */

/* 200: the whole value, of which a server without ranges sends all. */
static zarr_status judge_whole(const struct zr_http_want *w, uint64_t object_bytes,
                               struct zr_http_found *out, zarr_error *err)
{
    const bool is_untold = w->is_suffix && object_bytes == UINT64_MAX;
    const uint64_t first =
        w->is_suffix ? object_bytes - ZR_MIN(object_bytes, w->bytes) : w->offset;

    if (is_untold || (first > ZR_HTTP_SKIP_MOST && object_bytes > first)) {
        if (!w->is_suffix)
            return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                           "the server ignores ranges, and sends %" PRIu64
                           " bytes before the one that was asked for",
                           first);
        out->verdict = ZR_HTTP_ASKS_LENGTH;
        return ZARR_OK;
    }
    out->verdict = ZR_HTTP_HAS_VALUE;
    return ZARR_OK;
}

/* 416: the value ends before the range. */
static zarr_status judge_unsatisfiable(const struct zr_http_want *w,
                                       uint64_t object_bytes, struct zr_http_found *out,
                                       zarr_error *err)
{
    if (w->is_whole)
        return ZARR_OK;
    out->verdict = object_bytes == UINT64_MAX ? ZR_HTTP_ASKS_LENGTH : ZR_HTTP_HAS_VALUE;
    if (object_bytes == UINT64_MAX ||
        (w->is_suffix ? object_bytes == 0 : object_bytes <= w->offset))
        return ZARR_OK;
    return zr_fail(err, ZARR_ERR_IO,
                   "the server refuses a range of a value of %" PRIu64
                   " bytes (HTTP 416)",
                   object_bytes);
}

zarr_status zr_http_judge(const struct zr_http_want *w, const struct zr_net_answer *a,
                          struct zr_http_found *out, zarr_error *err)
{
    *out = (struct zr_http_found){.object_bytes = a->total};
    switch (a->status) {
    case 200:
        return judge_whole(w, a->total, out, err);
    case 206:
        out->verdict = ZR_HTTP_HAS_VALUE;
        out->at = a->range_first;
        return ZARR_OK;
    case 416:
        return judge_unsatisfiable(w, a->total, out, err);
    case 400: /* of servers that know no suffixes */
    case 501:
        if (w->is_suffix)
            out->verdict = ZR_HTTP_ASKS_LENGTH;
        return ZARR_OK;
    default:
        return ZARR_OK;
    }
}

zarr_status zr_http_judge_length(const struct zr_net_answer *a, bool is_head,
                                 struct zr_http_found *out, zarr_error *err)
{
    const bool is_untold = a->total == UINT64_MAX;

    *out = (struct zr_http_found){.object_bytes = a->total};
    if (a->status == 200 || (a->status == 206 && !is_head) ||
        (a->status == 416 && !is_head && a->total == 0)) {
        out->verdict = is_untold ? ZR_HTTP_ASKS_LENGTH : ZR_HTTP_HAS_VALUE;
        if (is_untold && !is_head)
            return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                           "the server does not tell the length of the value");
    } else if (is_head && a->status != 404 && a->status != 410 && a->status != 412 &&
               (a->status < 500 || a->status == 501)) {
        *out = (struct zr_http_found){ZR_HTTP_ASKS_LENGTH, 0, UINT64_MAX};
    }
    return ZARR_OK;
}
