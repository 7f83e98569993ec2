/*
 * s3/refuse.c - what the service means by an answer that is no success. Only the code
 * NoSuchKey means that a key is missing: a misspelt bucket must not read as fill values.
 * Thread class: shared.
 */
#include "s3/s3_int.h"

#include <string.h>

enum {
    SKEW_LEAST_S = 60 /* a clock that is wrong by less is right */
};

struct fault_reading {
    int depth, extra; /* extra: of STS, whose root is ErrorResponse */
    struct zr_s3_fault *fault;
};

/* ---- the body ---- */

/* Takes a text that a message may show. */
static void take_text(char out[ZR_S3_CODE_ROOM], const char *text)
{
    if (zr_is_plain_line(text) && strlen(text) < ZR_S3_CODE_ROOM)
        memcpy(out, text, strlen(text) + 1);
}

static zarr_status error_begin(void *user, const char *name, zarr_error *err)
{
    struct fault_reading *e = user;

    if (++e->depth > 1 || zr_streq(zr_s3_local_name(name), "Error"))
        return ZARR_OK;
    e->extra = 1;
    return zr_streq(zr_s3_local_name(name), "ErrorResponse")
               ? ZARR_OK
               : zr_fail(err, ZARR_ERR_CORRUPT, "it is no error");
}

/* The first text of each name counts, and none of the details inside of the error. */
static zarr_status error_end(void *user, const char *name, const char *text,
                             zarr_error *err)
{
    struct fault_reading *e = user;
    struct zr_s3_fault *f = e->fault;
    const char *const local = zr_s3_local_name(name);
    const int depth = e->depth-- - e->extra;

    ZR_UNUSED(err);
    if (!text || depth > 2)
        return ZARR_OK;
    if (zr_streq(local, "Code") && !*f->code)
        take_text(f->code, text);
    else if (zr_streq(local, "RequestId") && !*f->request)
        take_text(f->request, text);
    else if (zr_streq(local, "Region") && !*f->region)
        take_text(f->region, text);
    return ZARR_OK;
}

void zr_s3_fault_read(struct zr_s3_fault *f, const zarr_allocator *alloc,
                      const struct zr_net_request *r, const char *body, size_t n)
{
    struct fault_reading reading = {.fault = f};
    const struct zr_xml_sink sink = {error_begin, error_end, &reading};
    const char *text = zr_net_answer_header(&r->answer, "x-amz-request-id");

    *f = (struct zr_s3_fault){.code = {0}};
    if (n > 0 && zr_xml_read(&sink, alloc, body, n, NULL) != ZARR_OK)
        *f = (struct zr_s3_fault){.code = {0}}; /* a page of a proxy, or cut off */
    if (text && !*f->request)
        take_text(f->request, text);
    text = zr_net_answer_header(&r->answer, "x-amz-bucket-region");
    if (text)
        take_text(f->region, text);
}

/* ---- the failure ---- */

static const char *find_advice(const struct zr_s3_fault *e, uint32_t status)
{
    static const struct {
        const char *code, *advice;
    } rows[] = {
        {"AccessDenied", "the credentials do not permit this. A public bucket needs the "
                         "option anonymous=true"},
        {"AuthorizationHeaderMalformed", "set the option region"},
        {"ExpiredToken", "the session token has expired"},
        {"InvalidAccessKeyId", "the service does not know the access key"},
        {"InvalidObjectState", "the object is archived: restore it first"},
        {"InvalidToken", "the session token is not valid"},
        {"NoSuchBucket", "there is no such bucket at this endpoint"},
        {"PermanentRedirect", "set the options region and endpoint"},
        {"RequestTimeTooSkewed", "the clock of this machine is wrong"},
        {"SignatureDoesNotMatch", "the secret access key is wrong"},
    };

    for (size_t i = 0; i < ZR_COUNT(rows); i++)
        if (zr_streq(e->code, rows[i].code))
            return rows[i].advice;
    if (status == 404 && !*e->code)
        return "the server does not say what is missing. Is the endpoint that of an S3 "
               "service?";
    return "";
}

static zarr_status fail_refusal(const zarr_allocator *alloc,
                                const struct zr_net_request *r,
                                const struct zr_s3_fault *e, const char *advice,
                                zarr_error *err)
{
    zarr_error said = {0};
    zarr_status st = zr_net_fail_status(&said, r);
    struct zr_str shown;

    if (st == ZARR_ERR_NOT_FOUND || st == ZARR_ERR_CONFLICT)
        st = ZARR_ERR_IO;
    if (zr_streq(e->code, "ExpiredToken") || zr_streq(e->code, "InvalidToken") ||
        zr_streq(e->code, "RequestTimeTooSkewed"))
        st = ZARR_ERR_DENIED;
    zr_str_init(&shown, alloc);
    zr_url_put_shown(&shown, r->url);
    st =
        zr_fail(err, st, "%.200s: %s: %s%s%s%s%s%s%s", zr_str_text(&shown), r->method,
                said.message, *e->code ? ", code " : "", e->code,
                *e->request ? ", request " : "", e->request, *advice ? ": " : "", advice);
    zr_str_deinit(&shown);
    /* a store hides what has this domain. Wrong credentials must not hide objects */
    if (err && (st != ZARR_ERR_DENIED || zr_streq(e->code, "AccessDenied"))) {
        err->os_code = said.os_code;
        err->os_domain = said.os_domain;
    }
    return st;
}

zarr_status zr_s3_fail_answer(const zarr_allocator *alloc, const struct zr_net_request *r,
                              const char *body, size_t body_bytes, zarr_error *err)
{
    struct zr_s3_fault e;

    zr_s3_fault_read(&e, alloc, r, body, body_bytes);
    return fail_refusal(alloc, r, &e, "", err);
}

zarr_status zr_s3_request_fail(const struct zr_s3_request *r, zarr_error *err)
{
    return fail_refusal(r->store->reader.env.alloc, &r->net, &r->fault,
                        find_advice(&r->fault, r->net.answer.status), err);
}

/* ---- what to do ---- */

/* Corrects the clock, once. Requests that were signed before are sent again, too. */
static bool correct_skew(struct zr_s3_store *s, const struct zr_net_request *r)
{
    const int64_t skew = r->answer.date_s - zr_wall_seconds();
    int_fast64_t old = 0;

    if (r->answer.date_s == 0 || (skew > -SKEW_LEAST_S && skew < SKEW_LEAST_S))
        return false;
    if (atomic_compare_exchange_strong(&s->skew_s, &old, skew))
        return true;
    return old > skew - SKEW_LEAST_S && old < skew + SKEW_LEAST_S;
}

bool zr_s3_needs_key(struct zr_s3_store *s, const struct zr_net_request *r,
                     const struct zr_s3_fault *e)
{
    static const char *const codes[] = {"ExpiredToken", "ExpiredTokenException",
                                        "InvalidToken", "RequestExpired",
                                        "TokenRefreshRequired"};
    /* which an answer to HEAD does not tell */
    bool has_expired =
        r->answer.status == 400 && !*e->code && zr_streq(r->method, "HEAD");

    for (size_t i = 0; i < ZR_COUNT(codes); i++)
        has_expired = has_expired || zr_streq(e->code, codes[i]);
    return has_expired && zr_s3_keys_expire(&s->keys, r->key_number);
}

bool zr_s3_can_correct(struct zr_s3_store *s, const struct zr_net_request *r,
                       const struct zr_s3_fault *e)
{
    const uint32_t status = r->answer.status;

    if ((status == 301 || status == 307 || status == 400) && *e->region)
        return zr_s3_place_correct(s, e->region);
    if (zr_streq(e->code, "RequestTimeTooSkewed"))
        return correct_skew(s, r);
    return false;
}

zarr_status zr_s3_refuse(struct zr_http_reader *reader, const struct zr_net_request *r,
                         const char *body, size_t body_bytes, enum zr_http_next *next,
                         zarr_error *err)
{
    struct zr_s3_store *s = (struct zr_s3_store *)(void *)reader;
    const uint32_t status = r->answer.status;
    const bool is_head = strcmp(r->method, "HEAD") == 0;
    const zarr_allocator *const alloc = reader->env.alloc;
    struct zr_s3_fault e;
    bool can_ask, can_renew;

    zr_s3_fault_read(&e, alloc, r, body, body_bytes);
    if (*next != ZR_HTTP_FAIL && zr_s3_can_correct(s, r, &e)) {
        *next = ZR_HTTP_AGAIN;
        return ZARR_OK;
    }
    can_ask = *next != ZR_HTTP_FAIL;
    can_renew = *next == ZR_HTTP_AGAIN;
    *next = ZR_HTTP_FAIL;
    if (is_head && status == 404 && atomic_load(&reader->has_found))
        return zr_fail(err, ZARR_ERR_NOT_FOUND, "no such key (HTTP 404)");
    if (is_head && can_ask && status < 500 && status != 412) {
        *next = ZR_HTTP_ASK_BODY;
        return ZARR_OK;
    }
    if (!is_head && zr_s3_needs_key(s, r, &e) && can_renew &&
        zr_s3_keys_ask(&s->keys, NULL) == ZARR_OK) {
        *next = ZR_HTTP_RENEWED;
        return ZARR_OK;
    }
    if (status == 412)
        return zr_net_fail_status(err, r);
    if (zr_streq(e.code, "NoSuchKey") && status == 404) {
        atomic_store(&reader->has_found, true); /* the bucket is there */
        return zr_fail(err, ZARR_ERR_NOT_FOUND, "no such key (HTTP 404)");
    }
    if (s->denied_is_missing && zr_streq(e.code, "AccessDenied"))
        return zr_fail(err, ZARR_ERR_NOT_FOUND, "no such key (HTTP 403)");
    return fail_refusal(alloc, r, &e, find_advice(&e, status), err);
}
