/*
 * http/call.c - operations as requests. The room coalesce merges the operations of a
 * submit(); each of its reads is a call. A read of bytes is one GET. The length of a
 * value is asked for by HEAD or, where that is refused, by a GET of its first byte. A
 * range that depends on the length, because the server knows no suffixes, is the next
 * request, and has to find the version that the first one found.
 *
 * The body goes from the receive buffer to the memory of the operations. When they have
 * all they need, and the server sends more, the request is ended.
 *
 * Thread class: shared; a call is solo, and moves from the submitting thread to reactors.
 */
#include "http/http_int.h"

#include <string.h>

enum {
    REST_MOST = 128 << 10,
    AGAIN_MOST = 3
};

typedef void http_done_fn(void *arg, zarr_store_op *op, const zarr_error *err);

struct http_call {
    struct zr_net_request request; /* first: done() gets its address */
    struct zr_http_reader *reader;
    struct zr_joint_read *read;
    http_done_fn *done;
    void *arg;
    enum http_step {
        STEP_GET,
        STEP_HEAD,
        STEP_FIRST_BYTE /* in place of a HEAD */
    } step;
    struct zr_http_want want;
    struct zr_http_found found; /* in the last answer */
    bool needs_more;            /* bytes of the body */
    bool needs_length;          /* which only the end of the body tells */
    bool is_complete;           /* the request was ended, since no more is needed */
    bool is_known;      /* object_bytes and version are those of an earlier answer */
    bool has_condition; /* `version` is expected */
    zarr_store_version version;
    uint64_t object_bytes;
    uint64_t enough_bytes; /* of the body, when nothing but the length was missing */
    uint64_t begun_ns;     /* when the body began */
    uint32_t n_again;      /* requests that were sent again for the service's reasons */
    bool was_renewed;      /* with other credentials */
    struct zr_str url, refusal; /* refusal: the body of an answer that is no success */
    const char *headers[2];
    struct zr_str if_match;
};

/* ---- the end ---- */

static void call_free(struct http_call *c)
{
    const zarr_allocator *alloc = c->reader->env.alloc;

    zr_net_request_deinit(&c->request);
    zr_str_deinit(&c->url);
    zr_str_deinit(&c->refusal);
    zr_str_deinit(&c->if_match);
    zr_free(alloc, c);
}

/* Ends the operations. The store may be gone afterwards. */
static void call_end(struct http_call *c, zarr_status st, zarr_error *err)
{
    struct zr_joint_read *const read = c->read;
    http_done_fn *const done = c->done;
    void *const arg = c->arg;
    const zarr_store_version version = c->version;
    struct zr_joint_answer answer = {
        .err = err, .object_bytes = c->object_bytes, .version = &version};

    if (st != ZARR_OK && !strstr(err->message, read->key))
        zr_prefix_key(err, st, read->key);
    answer.status = st;
    call_free(c);
    zr_joint_read_end(read, &answer, done, arg);
}

/* Whether an operation needs a length that the answer has not told. */
static bool call_needs_length(const struct http_call *c)
{
    bool needs = false;

    for (size_t i = 0; c->found.object_bytes == UINT64_MAX && i < c->read->n; i++)
        needs = needs || c->read->piece[i].needs_length;
    return needs;
}

/* ---- answers ---- */

/* Judges an answer to a GET, and prepares for its body. */
static zarr_status call_judge_value(struct http_call *c, const struct zr_net_answer *a,
                                    zarr_error *err)
{
    zarr_status st = zr_http_judge(&c->want, a, &c->found, err);

    if (st != ZARR_OK || c->found.verdict != ZR_HTTP_HAS_VALUE)
        return st;
    if (c->is_known && c->found.object_bytes != c->object_bytes)
        return zr_fail(err, ZARR_ERR_CONFLICT, "was replaced while it was read");
    c->object_bytes = c->found.object_bytes;
    ZR_TRY(zr_joint_read_begin(c->read, c->found.at, c->found.object_bytes, err));
    c->needs_more = zr_joint_read_take(c->read, NULL, 0);
    c->needs_length = call_needs_length(c);
    c->enough_bytes = 0;
out:
    return st;
}

/* Judges the head of an answer. */
static zarr_status call_judge(struct http_call *c, const struct zr_net_answer *a,
                              zarr_error *err)
{
    zarr_status st = ZARR_OK;

    c->begun_ns = zr_now_ns();
    c->needs_more = c->needs_length = false;
    if (!c->has_condition)
        c->version = (zarr_store_version){{0}}; /* of an answer that was cut off */
    if (a->status == 200 || a->status == 206) { /* others have no bytes of a version */
        if (c->has_condition)
            ZR_TRY(zr_http_judge_version(a, &c->version, err));
        zr_http_version_make(&c->version, a);
        if (a->etag)
            zr_http_etag_keep(c->reader, &c->version, a->etag);
    }
    if (c->step == STEP_GET)
        return call_judge_value(c, a, err);
    st = zr_http_judge_length(a, c->step == STEP_HEAD, &c->found, err);
    c->object_bytes = c->found.object_bytes;
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
    const struct zr_net_answer *a = &c->request.answer;

    return !c->needs_more && !c->needs_length && a->length > a->body_bytes &&
           a->length - a->body_bytes > REST_MOST;
}

static zarr_status call_begin(void *user, const struct zr_net_answer *a, zarr_error *err)
{
    struct http_call *c = user;
    const zarr_status st = call_judge(c, a, err);

    if (st == ZARR_OK && c->step != STEP_HEAD && call_has_enough(c))
        return call_complete(c, err);
    return st;
}

static zarr_status call_write(void *user, const void *bytes, size_t n, zarr_error *err)
{
    struct http_call *c = user;
    const uint64_t seen = c->request.answer.body_bytes;

    if (c->needs_more)
        c->enough_bytes = seen;
    if (c->needs_more || c->needs_length)
        c->needs_more = zr_joint_read_take(c->read, bytes, n);
    if (c->needs_length && seen - c->enough_bytes > ZR_HTTP_SKIP_MOST)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "the server sends a value of more than %" PRIu64
                       " bytes without its length",
                       seen);
    return call_has_enough(c) ? call_complete(c, err) : ZARR_OK;
}

/* ---- requests ---- */

static void call_done(struct zr_net_request *r, zarr_status st, const zarr_error *said);

/* The header If-Match. NULL: the answer alone shows the version. */
static const char *call_condition(struct http_call *c)
{
    char room[ZR_HTTP_ETAG_ROOM];
    const char *etag = NULL;

    if (c->has_condition)
        etag = zr_http_version_etag(&c->version, room)
                   ? room
                   : zr_http_etag_find(c->reader, &c->version);
    zr_str_clear(&c->if_match);
    if (etag)
        zr_str_printf(&c->if_match, "If-Match: %s", etag);
    return etag && !c->if_match.failed ? zr_str_text(&c->if_match) : NULL;
}

static void call_send(struct http_call *c, enum http_step step)
{
    const struct zr_http_protocol *protocol = c->reader->protocol;
    const struct zr_http_want *w = &c->want;
    zr_net_request_deinit(&c->request); /* of the request before */
    c->step = step;
    c->is_complete = false;
    c->headers[0] = call_condition(c);
    c->request = (struct zr_net_request){
        .method = step == STEP_HEAD ? "HEAD" : "GET",
        .url = zr_str_text(&c->url),
        .flags = protocol->flags,
        .headers = c->headers,
        .add_headers = protocol->add_headers,
        .must_wait = protocol->must_wait,
        .header_user = c->reader,
        .error_body = &c->refusal,
        .sink = {.begin = call_begin, .write = call_write, .user = c},
        .cancel = c->read->cancel,
        .tag = c->arg,
        .done = call_done,
    };
    if (step == STEP_FIRST_BYTE) {
        c->request.flags |= ZR_NET_RANGE;
        c->request.range_bytes = 1;
    } else if (step == STEP_GET && !w->is_whole) {
        c->request.flags |= w->is_suffix ? ZR_NET_SUFFIX : ZR_NET_RANGE;
        c->request.range_first = w->offset;
        c->request.range_bytes = w->bytes;
    }
    zr_net_submit(c->reader->net, &c->request);
}

static void call_ask_length(struct http_call *c)
{
    call_send(c, atomic_load(&c->reader->no_head) ? STEP_FIRST_BYTE : STEP_HEAD);
}

/* After an answer with the length. Returns whether a GET was sent that waited for it. */
static bool call_take_length(struct http_call *c, zarr_status *st, zarr_error *err)
{
    struct zr_http_want *w = &c->want;
    const uint64_t has = c->object_bytes;

    if (has > 0 && w->bytes > 0 && w->is_suffix) {
        atomic_store(&c->reader->no_suffix, true);
        w->bytes = ZR_MIN(w->bytes, has);
        w->offset = has - w->bytes;
        w->is_suffix = false;
        c->is_known = true;
        c->has_condition = c->has_condition || c->version.bytes[0] > 0;
        call_send(c, STEP_GET);
        return true;
    }
    if (w->bytes > 0 && has > w->offset)
        *st = zr_fail(err, ZARR_ERR_IO,
                      "the server refuses a range that is in the value (HTTP 416)");
    else
        *st = zr_joint_read_begin(c->read, 0, has, err);
    return false;
}

/* The length, if only the end of the body tells it, and how long all took. */
static void call_measure(struct http_call *c)
{
    const struct zr_net_answer *a = &c->request.answer;

    if (c->object_bytes == UINT64_MAX && a->status == 200 && !c->is_complete)
        c->object_bytes = c->found.at + a->body_bytes;
    if (a->wait_ns > 0)
        zr_estimate_add(&c->reader->estimate, a->wait_ns, zr_now_ns() - c->begun_ns,
                        a->body_bytes);
}

/* Not in call_begin(): a log function may take its time, and the reactor holds a lock
 * there. */
static void call_warn(const struct http_call *c)
{
    if (c->step == STEP_GET && c->request.answer.status == 200 && !c->want.is_whole &&
        !atomic_exchange(&c->reader->warned, true))
        zr_log(&c->reader->env.log, ZARR_LOG_WARN,
               "%s: the server ignores ranges: a part of a value costs all bytes before "
               "it",
               c->read->key);
}

/* Judges an answer that is no success. */
static zarr_status call_judge_other(struct http_call *c, zarr_error *err)
{
    const struct zr_net_answer *a = &c->request.answer;

    if (!c->reader->protocol->is_strict || a->status == 416)
        return call_judge(c, a, err);
    c->found = (struct zr_http_found){ZR_HTTP_REFUSED, 0, UINT64_MAX};
    return ZARR_OK;
}

/* The answer is no success. Returns whether a request was sent that follows it; else *st
 * is the failure. */
static bool call_refuse(struct http_call *c, zarr_status *st, zarr_error *err)
{
    const struct zr_http_protocol *protocol = c->reader->protocol;
    enum zr_http_next next = c->n_again++ >= AGAIN_MOST ? ZR_HTTP_FAIL
                             : c->was_renewed           ? ZR_HTTP_RENEWED
                                                        : ZR_HTTP_AGAIN;

    *st = protocol->refuse(c->reader, &c->request, zr_str_text(&c->refusal),
                           c->refusal.bytes, &next, err);
    if (next == ZR_HTTP_FAIL)
        return false;
    c->was_renewed = c->was_renewed || next == ZR_HTTP_RENEWED;
    zr_str_clear(&c->url); /* it may be another one now */
    protocol->put_url(c->reader, &c->url, c->read->key);
    *st = zr_str_status(&c->url, err);
    if (*st != ZARR_OK)
        return false;
    call_send(c, next == ZR_HTTP_ASK_BODY ? STEP_FIRST_BYTE : c->step);
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
        st = call_judge_other(c, &err);
    if (st == ZARR_OK && c->found.verdict == ZR_HTTP_REFUSED && call_refuse(c, &st, &err))
        return;
    if (st == ZARR_OK && !atomic_load(&c->reader->has_found))
        atomic_store(&c->reader->has_found, true);
    if (st == ZARR_OK)
        call_warn(c);
    if (st == ZARR_OK && c->found.verdict == ZR_HTTP_ASKS_LENGTH) {
        if (c->step == STEP_HEAD && (r->answer.status == 405 || r->answer.status == 501))
            atomic_store(&c->reader->no_head, true);
        if (c->step == STEP_GET)
            call_ask_length(c);
        else
            call_send(c, STEP_FIRST_BYTE);
        return;
    }
    if (st == ZARR_OK && c->step == STEP_GET)
        call_measure(c);
    else if (st == ZARR_OK && call_take_length(c, &st, &err))
        return;
    call_end(c, st, &err);
}

/* ---- operations ---- */

/* Whether a request without a range is right: an operation wants all of the value. */
static bool call_is_whole(const struct zr_joint_read *r)
{
    bool is_whole = false;

    for (size_t i = 0; i < r->n; i++)
        is_whole = is_whole || (r->piece[i].op->verb == ZARR_STORE_GET &&
                                r->piece[i].op->offset == 0 &&
                                r->piece[i].op->length == ZARR_STORE_TO_END);
    return is_whole;
}

static void call_start(struct http_call *c)
{
    const struct zr_joint_read *r = c->read;
    const bool is_suffix = r->offset == ZARR_STORE_SUFFIX;
    zarr_error err;
    zarr_status st;

    c->reader->protocol->put_url(c->reader, &c->url, r->key);
    st = zr_str_status(&c->url, &err);
    if (st != ZARR_OK) {
        call_end(c, st, &err);
        return;
    }
    c->has_condition = (r->flags & ZARR_STORE_OP_IF_VERSION) != 0;
    if (c->has_condition)
        c->version = r->version;
    c->want = (struct zr_http_want){.offset = is_suffix ? 0 : r->offset,
                                    .bytes = r->bytes,
                                    .is_suffix = is_suffix,
                                    .is_whole = !is_suffix && call_is_whole(r)};
    if (r->bytes == 0 || (is_suffix && atomic_load(&c->reader->no_suffix)))
        call_ask_length(c);
    else
        call_send(c, STEP_GET);
}

static void call_make(struct zr_http_reader *s, struct zr_joint_read *r,
                      http_done_fn *done, void *arg)
{
    struct http_call *c = zr_calloc(s->env.alloc, 1, sizeof *c);
    zarr_error err;

    if (!c) {
        const struct zr_joint_answer none = {.status = zr_fail_memory(&err, sizeof *c),
                                             .err = &err,
                                             .object_bytes = UINT64_MAX};

        zr_joint_read_end(r, &none, done, arg);
        return;
    }
    *c = (struct http_call){
        .reader = s, .read = r, .done = done, .arg = arg, .object_bytes = UINT64_MAX};
    zr_str_init(&c->url, s->env.alloc);
    zr_str_init(&c->refusal, s->env.alloc);
    zr_str_init(&c->if_match, s->env.alloc);
    call_start(c);
}

void zr_http_submit(void *self, zarr_store_op **ops, uint64_t n,
                    void (*done)(void *arg, zarr_store_op *op, const zarr_error *err),
                    void *arg)
{
    struct zr_http_reader *s = self;
    struct zr_joint_reads *all = NULL;
    struct zr_net_scope scope;
    struct zr_joint_rules rules;
    zarr_error err;
    size_t count = 0;
    zarr_status st = ZARR_OK;

    zr_estimate_rules(&s->estimate, &rules);
    st = zr_fits(n, &count) ? zr_joint_reads_make(&all, s->env.alloc, s->env.memory, ops,
                                                  count, &rules, &err)
                            : zr_fail_memory(&err, n);
    if (st != ZARR_OK) {
        for (uint64_t i = 0; i < n; i++) {
            ops[i]->status = st;
            done(arg, ops[i], &err);
        }
        return;
    }
    count = all->n_requests; /* the last one frees them */
    zr_net_scope_begin(&scope, s->net, arg);
    for (size_t i = 0; i < count; i++)
        call_make(s, &all->request[i], done, arg);
    zr_net_scope_end(&scope);
}

void zr_http_cancel(void *self, void *arg)
{
    struct zr_http_reader *s = self;

    zr_net_cancel(s->net, arg);
}
