/*
 * s3/request.c - the signature of each request of a store, and requests that read no
 * value: writes, and those for the bucket. Of their body the hash is signed; it is also
 * the checksum, where one is sent.
 * Thread class: shared; a request is solo, and moves from its thread to reactors.
 */
#include "s3/s3_int.h"

#include "sched/sched.h"

#include <string.h>
#include <strings.h>

enum {
    REQUEST_AGAIN_MOST = 3
};

/* ---- URLs and signatures ---- */

static const struct zr_s3_store *get_store(const struct zr_http_reader *reader)
{
    return (const struct zr_s3_store *)(const void *)reader;
}

void zr_s3_put_url(const struct zr_http_reader *reader, struct zr_str *out,
                   const char *key)
{
    /* its path ends with a slash. A service may take '+' for a blank, so it is escaped */
    zr_url_put_key(out, &zr_s3_place_get(get_store(reader))->root, NULL);
    zr_s3_encode(out, key, true);
}

/* Whether a header of the options is about new objects alone: others are refused with it.
 */
static bool is_of_new_objects(const char *line)
{
    static const char *const begins[] = {
        "acl:",
        "grant-",
        "meta-",
        "object-lock-",
        "server-side-encryption:",
        "server-side-encryption-aws-",
        "server-side-encryption-bucket-",
        "server-side-encryption-context:",
        "storage-class:",
        "tagging:",
        "website-redirect-location:",
    };

    for (size_t i = 0; i < ZR_COUNT(begins); i++)
        if (strncasecmp(line + strlen("x-amz-"), begins[i], strlen(begins[i])) == 0)
            return true;
    return false;
}

/* What a request has to sign. */
struct request_parts {
    const char *const *lines; /* NULL: none */
    const char *hash;         /* of the body */
    bool makes_object;
};

static size_t collect_lines(const char **all, const struct zr_s3_store *s,
                            const struct request_parts *p)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n_lines; i++)
        if (p->makes_object || !is_of_new_objects(s->lines[i]))
            all[n++] = s->lines[i];
    for (size_t i = 0; p->lines && p->lines[i] && i < ZR_S3_OWN_LINES_MOST; i++)
        all[n++] = p->lines[i];
    all[n] = NULL;
    return n;
}

static zarr_status sign_request(struct zr_s3_store *s, struct zr_net_request *r,
                                const struct request_parts *p, struct zr_str *lines,
                                zarr_error *err)
{
    const char *all[ZR_S3_LINES_MOST + ZR_S3_OWN_LINES_MOST + 1];
    const size_t n = collect_lines(all, s, p);
    struct zr_s3_key *key = zr_s3_keys_get(&s->keys);
    struct zr_url url = {0};
    struct zr_s3_signing sign = {
        .alloc = s->reader.env.alloc,
        .method = r->method,
        .url = &url,
        .service = "s3",
        .key = key,
        .time_s = zr_wall_seconds() + atomic_load(&s->skew_s),
        .payload_hash = p->hash,
        .sends_payload_hash = true,
        .lines = all,
    };
    zarr_status st = ZARR_OK;

    for (size_t i = 0; s->is_anonymous && i < n; i++)
        zr_str_append(lines, all[i], strlen(all[i]) + 1);
    if (s->is_anonymous)
        goto out;
    if (!key)
        ZR_FAIL(err, ZARR_ERR_DENIED, "there are no credentials yet");
    ZR_TRY(zr_url_parse(&url, sign.alloc, r->url, err));
    if (key->token && strcmp(url.scheme, "http") == 0 && !s->allow_http &&
        !zr_s3_is_loopback(url.host))
        ZR_FAIL(
            err, ZARR_ERR_DENIED,
            "a session token is not sent without TLS, unless the option allow_http is "
            "true");
    r->key_number = key->number;
    sign.region = zr_s3_place_region(s, url.host);
    st = zr_s3_sign(lines, &sign, err);
out:
    zr_url_deinit(&url);
    zr_s3_key_free(key);
    return st;
}

zarr_status zr_s3_add_headers(void *reader, struct zr_net_request *r,
                              struct zr_str *lines, zarr_error *err)
{
    const struct request_parts parts = {.hash = ZR_S3_EMPTY_HASH};
    struct zr_s3_store *s = reader;
    const zarr_status st = zr_s3_keys_check(&s->keys, err);

    return st == ZARR_OK ? sign_request(s, r, &parts, lines, err) : st;
}

bool zr_s3_must_wait(void *reader)
{
    struct zr_s3_store *s = reader;

    return zr_s3_keys_are_awaited(&s->keys);
}

/* ---- requests that read no value ---- */

static zarr_status request_add_headers(void *request, struct zr_net_request *net,
                                       struct zr_str *lines, zarr_error *err)
{
    struct zr_s3_request *r = request;
    const char *own[ZR_S3_OWN_LINES_MOST + 1] = {NULL};
    const struct request_parts parts = {
        .lines = own, .hash = r->hash, .makes_object = r->makes_object};
    size_t n = 0;
    const zarr_status st = r->is_short ? ZARR_OK : zr_s3_keys_check(&r->store->keys, err);

    if (st != ZARR_OK)
        return st;
    if (*r->checksum)
        own[n++] = r->checksum;
    for (size_t i = 0; r->lines && r->lines[i] && n + 1 < ZR_COUNT(own); i++)
        own[n++] = r->lines[i];
    return sign_request(r->store, net, &parts, lines, err);
}

static bool request_must_wait(void *request)
{
    const struct zr_s3_request *r = request;

    return !r->is_short && zr_s3_keys_are_awaited(&r->store->keys);
}

static zarr_status request_begin_body(void *user, const struct zr_net_answer *a,
                                      zarr_error *err)
{
    struct zr_s3_request *r = user;

    ZR_UNUSED(a, err);
    zr_str_clear(&r->answer); /* what a lost connection left */
    return ZARR_OK;
}

static zarr_status request_take_body(void *user, const void *bytes, size_t n,
                                     zarr_error *err)
{
    struct zr_s3_request *r = user;

    zr_str_append(&r->answer, bytes, n);
    return zr_str_status(&r->answer, err);
}

static zarr_status hash_body(struct zr_s3_request *r, zarr_error *err)
{
    uint8_t hash[ZR_SHA256_BYTES];
    struct zr_str line;
    zarr_status st = ZARR_OK;

    *r->checksum = '\0';
    zr_str_init(&line, r->store->reader.env.alloc);
    if (r->body_hash)
        memcpy(hash, r->body_hash, sizeof hash);
    else if (r->body_bytes > ZR_S3_LATE_BYTES && zr_streq(r->method, "PUT") &&
             zr_net_is_reactor())
        ZR_LEAVE(zr_internal(err)); /* other requests would wait for it */
    else
        ZR_TRY(zr_sha256(hash, r->body ? r->body : "", r->body_bytes, err));
    zr_s3_put_hash(r->hash, hash);
    if (!r->body || r->has_no_checksum || (!r->needs_checksum && !r->store->checksums))
        goto out;
    zr_str_puts(&line, "x-amz-checksum-sha256: ");
    zr_base64_encode(&line, hash, sizeof hash);
    ZR_TRY(zr_str_status(&line, err));
    memcpy(r->checksum, zr_str_text(&line), ZR_MIN(line.bytes + 1, sizeof r->checksum));
out:
    zr_str_deinit(&line);
    return st;
}

static void s3_request_done(struct zr_net_request *net, zarr_status st,
                            const zarr_error *said);

/* Starts it. If the key is due, it waits for a new one, but an abort does not. */
static zarr_status s3_request_start(struct zr_s3_request *r, zarr_error *err)
{
    struct zr_s3_store *s = r->store;
    zarr_status st;

    zr_str_clear(&r->url);
    if (r->key)
        zr_s3_put_url(&s->reader, &r->url, r->key);
    else
        zr_url_put_key(&r->url, &zr_s3_place_get(s)->bucket, NULL);
    if (r->query)
        zr_str_printf(&r->url, "?%s", r->query);
    st = zr_str_status(&r->url, err);
    if (st == ZARR_OK && !r->is_short)
        st = zr_s3_keys_ask(&s->keys, err);
    if (st != ZARR_OK)
        return st;
    r->fault = (struct zr_s3_fault){.code = {0}};
    r->net = (struct zr_net_request){
        .method = r->method,
        .url = zr_str_text(&r->url),
        .flags = ZR_NET_NO_REDIRECT | (r->is_repeatable ? ZR_NET_REPEATABLE : 0u) |
                 (r->repeats_409 ? ZR_NET_409_PASSES : 0u) |
                 (r->is_long ? ZR_NET_IS_LONG : 0u) |
                 (r->is_short ? ZR_NET_IS_SHORT : 0u),
        .add_headers = request_add_headers,
        .must_wait = request_must_wait,
        .header_user = r,
        .body = r->body,
        .body_bytes = r->body_bytes,
        .sink = {request_begin_body, request_take_body, r},
        .max_bytes = r->max_bytes ? r->max_bytes : ZR_S3_ANSWER_MOST,
        .error_body = &r->answer,
        .cancel = r->cancel,
        .tag = r->tag,
        .done = s3_request_done,
    };
    zr_net_submit(s->reader.net, &r->net);
    return ZARR_OK;
}

/* Whether another key, region or clock may help. */
static bool request_can_correct(struct zr_s3_request *r)
{
    struct zr_s3_store *s = r->store;
    const bool was_renewed = r->was_renewed;

    if (r->is_short)
        return false;
    if (zr_s3_needs_key(s, &r->net, &r->fault)) {
        r->was_renewed = true;
        return !was_renewed;
    }
    return r->n_again < REQUEST_AGAIN_MOST && zr_s3_can_correct(s, &r->net, &r->fault);
}

static void s3_request_done(struct zr_net_request *net, zarr_status st,
                            const zarr_error *said)
{
    struct zr_s3_request *r = (struct zr_s3_request *)(void *)net;
    const uint32_t n_tries = zr_net_count_tries(net);
    zarr_error err = {0};

    if (st == ZARR_OK && net->answer.status / 100 != 2) {
        zr_s3_fault_read(&r->fault, r->store->reader.env.alloc, net,
                         zr_str_text(&r->answer), r->answer.bytes);
        if (request_can_correct(r)) {
            r->n_sent += n_tries > 1 ? n_tries : 0; /* one refusal did surely nothing */
            r->n_again++;
            zr_net_request_deinit(net);
            st = s3_request_start(r, &err);
            if (st != ZARR_OK)
                r->done(r, st, &err);
            return;
        }
    }
    r->n_sent += n_tries;
    r->done(r, st, said);
}

void zr_s3_send(struct zr_s3_request *r)
{
    zarr_error err = {0};
    zarr_status st;

    zr_str_init(&r->url, r->store->reader.env.alloc);
    zr_str_init(&r->answer, r->store->reader.env.alloc);
    r->n_sent = r->n_again = 0;
    r->was_renewed = false;
    st = hash_body(r, &err);
    if (st == ZARR_OK)
        st = s3_request_start(r, &err);
    if (st != ZARR_OK)
        r->done(r, st, &err);
}

void zr_s3_request_deinit(struct zr_s3_request *r)
{
    zr_net_request_deinit(&r->net);
    zr_str_deinit(&r->url);
    zr_str_deinit(&r->answer);
}

/* ---- waiting ---- */

static void call_ended(struct zr_s3_request *r, zarr_status st, const zarr_error *err)
{
    zr_outcome_set(r->user, st, err);
}

zarr_status zr_s3_call(struct zr_s3_request *r, zarr_error *err)
{
    struct zr_outcome outcome;
    const zarr_status st = zr_s3_keys_renew(&r->store->keys, r->cancel, err);

    if (st != ZARR_OK)
        return st;
    if (zr_attempt_runs())
        return zr_attempt_fail(err);
    zr_outcome_init(&outcome);
    r->done = call_ended;
    r->user = &outcome;
    zr_s3_send(r);
    return zr_outcome_wait(&outcome, err);
}
