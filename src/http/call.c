/*
 * http/call.c - operations as requests. A GET is one request. The length of a value is
 * asked for by HEAD or, where that is refused, by a GET of its first byte. A range that
 * depends on the length, because the server knows no suffixes, is the next request, and
 * has to find the version that the first one found.
 *
 * The body goes from the receive buffer to the memory of the operation. When that has all
 * it needs, and the server sends more, the request is ended.
 *
 * Thread class: shared; a call is solo, and moves from the submitting thread to reactors.
 */
#include "http/http_int.h"

#include <stdio.h>
#include <string.h>

enum {
    REST_MOST = 128 << 10
};

typedef void http_done_fn(void *arg, zarr_store_op *op, const zarr_error *err);

struct http_call {
    struct zr_net_request request; /* first: done() gets its address */
    struct zr_http_store *store;
    zarr_store_op *op;
    http_done_fn *done;
    void *arg;
    enum http_step {
        STEP_GET,
        STEP_HEAD,
        STEP_FIRST_BYTE /* in place of a HEAD */
    } step;
    struct zr_http_want want;
    struct zr_http_plan plan;
    bool is_complete;   /* the request was ended, since no more is needed */
    bool is_known;      /* object_bytes and version are those of an earlier answer */
    bool has_condition; /* `version` is expected */
    zarr_store_version version;
    uint64_t object_bytes;
    uint64_t seen; /* bytes of the body */
    struct zr_str url;
    const char *headers[2];
    char if_match[sizeof "If-Match: " + ZR_HTTP_ETAG_ROOM];
};

/* ---- the end ---- */

static void call_free(struct http_call *c)
{
    const zarr_allocator *alloc = c->store->env.alloc;

    zr_net_request_deinit(&c->request);
    zr_str_deinit(&c->url);
    zr_free(alloc, c);
}

static zarr_status call_name(const struct http_call *c, zarr_status st, zarr_error *err)
{
    if (st != ZARR_OK && !strstr(err->message, c->op->key))
        zr_prefix_key(err, st, c->op->key);
    return st;
}

/* Ends the operation. The store may be gone afterwards. */
static void call_end(struct http_call *c, zarr_status st, zarr_error *err)
{
    zarr_store_op *op = c->op;
    http_done_fn *done = c->done;
    void *arg = c->arg;

    if (st == ZARR_ERR_DENIED && err->os_code == 403 && c->store->denied_is_missing)
        st = zr_fail(err, ZARR_ERR_NOT_FOUND, "no such key (HTTP 403)");
    if (st == ZARR_OK &&
        (op->flags & (ZARR_STORE_OP_WANT_VERSION | ZARR_STORE_OP_IF_VERSION)))
        op->version = c->version;
    op->status = call_name(c, st, err);
    op->os_code = st == ZARR_OK ? 0 : err->os_code;
    call_free(c);
    done(arg, op, st == ZARR_OK ? NULL : err);
}

/* ---- answers ---- */

static struct zr_http_answer read_answer(const struct zr_net_answer *a)
{
    return (struct zr_http_answer){.status = (int32_t)a->status,
                                   .content_bytes = a->length,
                                   .has_range = a->is_range,
                                   .first = a->range_first,
                                   .last = a->range_first + a->range_bytes - 1,
                                   .total = a->total,
                                   .etag = a->is_etag_weak ? NULL : a->etag};
}

/* Judges the head of the last answer. */
static zarr_status call_judge(struct http_call *c, const struct zr_net_answer *answer,
                              zarr_error *err)
{
    const struct zr_http_answer a = read_answer(answer);
    zarr_status st = ZARR_OK;

    c->seen = 0;
    if (!c->has_condition)
        c->version = (zarr_store_version){{0}}; /* of an answer that was cut off */
    if (c->step == STEP_GET)
        ZR_TRY(zr_http_judge(&c->want, &a, &c->plan, err));
    else
        ZR_TRY(zr_http_judge_length(&a, c->step == STEP_HEAD, &c->object_bytes, err));
    if (c->step != STEP_GET)
        c->plan = (struct zr_http_plan){.body_bytes = a.content_bytes};
    if (a.status != 200 && a.status != 206)
        goto out; /* it has no bytes, so their version does not matter */
    if (c->has_condition)
        ZR_TRY(zr_http_judge_version(&a, &c->version, err));
    zr_http_version_make(&c->version, a.etag);
    if (c->is_known && c->step == STEP_GET && c->plan.object_bytes != c->object_bytes)
        st = zr_fail(err, ZARR_ERR_CONFLICT, "was replaced while it was read");
out:
    return st;
}

/* Ends the request without a failure. */
static zarr_status call_complete(struct http_call *c, zarr_error *err)
{
    c->is_complete = true;
    return zr_fail(err, ZARR_ERR_CANCELLED, "no more bytes are needed");
}

/* Whether the rest of the body costs more than another connection. */
static bool call_has_enough(const struct http_call *c)
{
    return !c->plan.counts && c->seen >= c->plan.skip + c->plan.take &&
           c->plan.body_bytes > c->seen && c->plan.body_bytes - c->seen > REST_MOST;
}

static zarr_status call_begin(void *user, const struct zr_net_answer *a, zarr_error *err)
{
    struct http_call *c = user;
    const zarr_status st = call_judge(c, a, err);

    if (st != ZARR_OK)
        return st;
    if (c->plan.asks_length || (c->step != STEP_HEAD && call_has_enough(c)))
        return call_complete(c, err);
    if (c->plan.ignores_ranges && !atomic_exchange(&c->store->warned, true))
        zr_log(&c->store->env.log, ZARR_LOG_WARN,
               "%s: the server ignores ranges: a part of a value costs all bytes before "
               "it",
               c->op->key);
    return ZARR_OK;
}

static zarr_status call_write(void *user, const void *bytes, size_t n, zarr_error *err)
{
    struct http_call *c = user;
    const uint64_t skip = c->plan.skip, end = skip + c->plan.take;
    const uint64_t from = ZR_MAX(c->seen, skip), to = ZR_MIN(c->seen + n, end);

    if (from < to)
        memcpy((char *)c->op->mem.handle + c->op->mem.offset + (from - skip),
               (const char *)bytes + (from - c->seen), (size_t)(to - from));
    c->seen += n;
    if (c->plan.counts && c->seen > end && c->seen - end > ZR_HTTP_SKIP_MOST)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "the server sends a value of more than %" PRIu64
                       " bytes without its length",
                       c->seen);
    return call_has_enough(c) ? call_complete(c, err) : ZARR_OK;
}

/* ---- requests ---- */

static void call_done(struct zr_net_request *r, zarr_status st, const zarr_error *said);

static void call_send(struct http_call *c, enum http_step step)
{
    const struct zr_http_want *w = &c->want;
    char etag[ZR_HTTP_ETAG_ROOM];

    zr_net_request_deinit(&c->request); /* of the request before */
    c->step = step;
    c->is_complete = false;
    c->headers[0] = NULL;
    if (c->has_condition && zr_http_version_etag(&c->version, etag)) {
        snprintf(c->if_match, sizeof c->if_match, "If-Match: %s", etag);
        c->headers[0] = c->if_match;
    }
    c->request = (struct zr_net_request){
        .method = step == STEP_HEAD ? "HEAD" : "GET",
        .url = zr_str_text(&c->url),
        .headers = c->headers,
        .sink = {.begin = call_begin, .write = call_write, .user = c},
        .cancel = c->op->cancel,
        .tag = c->arg,
        .done = call_done,
    };
    if (step == STEP_FIRST_BYTE) {
        c->request.flags = ZR_NET_RANGE;
        c->request.range_bytes = 1;
    } else if (step == STEP_GET && !w->is_whole) {
        c->request.flags = w->is_suffix ? ZR_NET_SUFFIX : ZR_NET_RANGE;
        c->request.range_first = w->offset;
        c->request.range_bytes = w->bytes;
    }
    zr_net_submit(c->store->net, &c->request);
}

static void call_ask_length(struct http_call *c)
{
    call_send(c, atomic_load(&c->store->no_head) ? STEP_FIRST_BYTE : STEP_HEAD);
}

static zarr_status fail_disagreement(zarr_error *err)
{
    return zr_fail(err, ZARR_ERR_IO,
                   "the server refuses a range that is in the value (HTTP 416)");
}

/* A GET that waited for the length: the range, if there is one. Returns whether the
 * request was sent. */
static bool call_send_rest(struct http_call *c, zarr_status *st, zarr_error *err)
{
    struct zr_http_want *w = &c->want;
    const uint64_t has = c->object_bytes;

    c->op->object_bytes = has;
    c->op->done_bytes = 0;
    if (has == 0 || w->bytes == 0 || (!w->is_suffix && has <= w->offset))
        return false;
    if (!w->is_suffix) {
        *st = fail_disagreement(err);
        return false;
    }
    atomic_store(&c->store->no_suffix, true);
    w->bytes = ZR_MIN(w->bytes, has);
    w->offset = has - w->bytes;
    w->is_suffix = false;
    c->is_known = true;
    c->has_condition = c->has_condition || c->version.bytes[0] > 0;
    call_send(c, STEP_GET);
    return true;
}

/* After a HEAD or a GET of the first byte. Returns whether a request was sent. */
static bool call_take_length(struct http_call *c, zarr_status *st, zarr_error *err)
{
    if (c->object_bytes != UINT64_MAX) {
        if (c->op->verb == ZARR_STORE_GET)
            return call_send_rest(c, st, err);
        c->op->object_bytes = c->object_bytes;
        return false;
    }
    if (c->request.answer.status == 405 || c->request.answer.status == 501)
        atomic_store(&c->store->no_head, true);
    call_send(c, STEP_FIRST_BYTE);
    return true;
}

static void call_done(struct zr_net_request *r, zarr_status st, const zarr_error *said)
{
    struct http_call *c = (struct http_call *)(void *)r;
    zarr_error err = {0};

    if (said)
        err = *said;
    if (c->is_complete)
        st = ZARR_OK;
    else if (st == ZARR_OK && r->answer.status / 100 != 2) /* call_begin() saw others */
        st = call_judge(c, &r->answer, &err);
    if (st == ZARR_OK && c->step == STEP_GET && c->plan.asks_length) {
        call_ask_length(c);
        return;
    }
    if (st == ZARR_OK && c->step == STEP_GET)
        st = zr_http_judge_end(&c->plan, c->seen, c->op, &err);
    else if (st == ZARR_OK && call_take_length(c, &st, &err))
        return;
    call_end(c, st, &err);
}

/* ---- operations ---- */

static void call_start(struct http_call *c)
{
    zarr_store_op *op = c->op;
    const bool is_suffix = op->offset == ZARR_STORE_SUFFIX;
    zarr_error err;
    zarr_status st;

    zr_url_put_key(&c->url, &c->store->url, op->key);
    st = zr_str_status(&c->url, &err);
    if (st == ZARR_OK && op->verb != ZARR_STORE_GET && op->verb != ZARR_STORE_STAT)
        st = zr_fail(&err, ZARR_ERR_UNSUPPORTED, "an HTTP store writes nothing");
    if (st != ZARR_OK) {
        call_end(c, st, &err);
        return;
    }
    c->has_condition = (op->flags & ZARR_STORE_OP_IF_VERSION) != 0;
    c->version = c->has_condition ? op->version : (zarr_store_version){{0}};
    c->want = (struct zr_http_want){
        .offset = is_suffix ? 0 : op->offset,
        .bytes = ZR_MIN(ZR_MIN(op->length, op->mem.bytes),
                        is_suffix ? UINT64_MAX : UINT64_MAX - op->offset),
        .is_suffix = is_suffix,
        .is_whole = op->offset == 0 && op->length == ZARR_STORE_TO_END,
        .needs_length = op->length > op->mem.bytes,
    };
    if (op->verb == ZARR_STORE_STAT || c->want.bytes == 0 ||
        (c->want.is_suffix && atomic_load(&c->store->no_suffix)))
        call_ask_length(c);
    else
        call_send(c, STEP_GET);
}

void zr_http_submit(void *self, zarr_store_op **ops, uint64_t n,
                    void (*done)(void *arg, zarr_store_op *op, const zarr_error *err),
                    void *arg)
{
    struct zr_http_store *s = self;
    zarr_error err;

    for (uint64_t i = 0; i < n; i++) {
        zarr_store_op *op = ops[i];
        struct http_call *c = zr_calloc(s->env.alloc, 1, sizeof *c);

        if (!c) {
            op->status = zr_fail_memory(&err, sizeof *c);
            done(arg, op, &err);
            continue;
        }
        *c = (struct http_call){.store = s, .op = op, .done = done, .arg = arg};
        c->object_bytes = UINT64_MAX;
        zr_str_init(&c->url, s->env.alloc);
        call_start(c);
    }
}

void zr_http_cancel(void *self, void *arg)
{
    struct zr_http_store *s = self;

    zr_net_cancel(s->net, arg);
}
