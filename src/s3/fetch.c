/*
 * s3/fetch.c - fetches a key that expires: from a program, from STS, or from a metadata
 * server. Redirects are never followed.
 * Thread class: shared.
 */
#include "s3/s3_int.h"

#include "json/json.h"

#include <stdio.h>
#include <string.h>

enum {
    FETCH_BYTES_MOST = 65536
};

/* What an answer has; owned. */
struct fetched {
    const zarr_allocator *alloc;
    char *id, *secret, *token, *expiration;
};

/* ---- times ---- */

/* Two digits, or more, at a place of a text of known length. */
static bool read_digits(const char *text, size_t at, size_t n, int64_t *out)
{
    uint64_t v = 0;

    if (!zr_parse_u64(text + at, n, &v))
        return false;
    *out = (int64_t)v;
    return true;
}

/* The end of a time: a fraction or none, then Z or an offset such as +02:00. */
static bool read_zone(const char *text, int64_t *offset_s)
{
    int64_t hour, minute;
    size_t colon;

    if (*text == '.')
        text += 1 + strspn(text + 1, "0123456789");
    *offset_s = 0;
    if (zr_streq(text, "Z"))
        return true;
    if ((*text != '+' && *text != '-') || strlen(text) < 5)
        return false;
    colon = text[3] == ':';
    if (strlen(text) != 5 + colon || !read_digits(text, 1, 2, &hour) ||
        !read_digits(text, 3 + colon, 2, &minute) || hour > 23 || minute > 59)
        return false;
    *offset_s = (hour * 60 + minute) * (*text == '-' ? -60 : 60);
    return true;
}

bool zr_s3_parse_time(const char *text, int64_t *out_s)
{
    static const char like[] = "0000-00-00T00:00:00";
    const size_t n = strlen(text);
    int64_t y, m, d, hour, minute, second, offset_s;

    for (size_t i = 0; i < sizeof like - 1; i++)
        if (i >= n || (like[i] != '0' && text[i] != like[i]))
            return false;
    if (!read_digits(text, 0, 4, &y) || !read_digits(text, 5, 2, &m) ||
        !read_digits(text, 8, 2, &d) || !read_digits(text, 11, 2, &hour) ||
        !read_digits(text, 14, 2, &minute) || !read_digits(text, 17, 2, &second) ||
        y < 1 || m < 1 || m > 12 || d < 1 || d > 31 || hour > 23 || minute > 59 ||
        second > 60 || !read_zone(text + sizeof like - 1, &offset_s))
        return false;
    y -= m <= 2; /* years that begin in March */
    m = (m + 9) % 12;
    *out_s =
        (365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + d - 719469) * 86400 +
        hour * 3600 + minute * 60 + second - offset_s;
    return true;
}

/* ---- answers ---- */

static zarr_status take_fetched(char **out, const zarr_allocator *alloc, const char *text,
                                zarr_error *err)
{
    zr_free_secret(alloc, *out);
    *out = zr_strdup(alloc, text);
    return *out ? ZARR_OK : zr_fail_memory(err, strlen(text) + 1);
}

/* {"AccessKeyId": ..., "SecretAccessKey": ..., "Token" or "SessionToken": ...} */
static zarr_status read_json(struct fetched *f, const struct zr_s3_keys *k,
                             const struct zr_str *text, zarr_error *err)
{
    const struct {
        const char *name;
        char **to;
    } members[] = {{"AccessKeyId", &f->id},
                   {"SecretAccessKey", &f->secret},
                   {"Token", &f->token},
                   {"SessionToken", &f->token},
                   {"Expiration", &f->expiration}};
    const struct zr_json *version;
    uint64_t number = 0;
    struct zr_json_doc doc;
    zarr_status st = ZARR_OK;

    zr_json_doc_init(&doc, k->alloc);
    if (zr_json_parse(&doc, zr_str_text(text), text->bytes, &k->limits, NULL) != ZARR_OK)
        ZR_FAIL(err, ZARR_ERR_CORRUPT, "the credentials are no JSON");
    version = zr_json_get(doc.root, "Version");
    if (k->origin.source == ZR_S3_PROCESS && version &&
        (!zr_json_u64(version, &number) || number != 1))
        ZR_FAIL(err, ZARR_ERR_CORRUPT, "the credentials have another version than 1");
    for (size_t i = 0; i < ZR_COUNT(members); i++) {
        const char *value = zr_json_string(zr_json_get(doc.root, members[i].name));

        if (value)
            ZR_TRY(take_fetched(members[i].to, f->alloc, value, err));
    }
out:
    zr_arena_wipe(&doc.arena);
    zr_json_doc_deinit(&doc);
    return st;
}

static zarr_status sts_end(void *user, const char *name, const char *text,
                           zarr_error *err)
{
    struct fetched *f = user;
    const char *const local = zr_s3_local_name(name);

    if (!text)
        return ZARR_OK;
    if (zr_streq(local, "AccessKeyId"))
        return take_fetched(&f->id, f->alloc, text, err);
    if (zr_streq(local, "SecretAccessKey"))
        return take_fetched(&f->secret, f->alloc, text, err);
    if (zr_streq(local, "SessionToken"))
        return take_fetched(&f->token, f->alloc, text, err);
    if (zr_streq(local, "Expiration"))
        return take_fetched(&f->expiration, f->alloc, text, err);
    return ZARR_OK;
}

static zarr_status make_key(struct zr_s3_key **out, const struct fetched *f,
                            zarr_error *err)
{
    int64_t expires_s = 0;

    if (!f->id || !f->secret)
        return zr_fail(err, ZARR_ERR_CORRUPT,
                       "the answer has no access key, or not its secret");
    if (f->expiration && !zr_s3_parse_time(f->expiration, &expires_s))
        return zr_fail(err, ZARR_ERR_CORRUPT, "the time of expiration is malformed");
    if (expires_s != 0 && expires_s <= zr_wall_seconds())
        return zr_fail(err, ZARR_ERR_DENIED, "the credentials have expired already");
    return zr_s3_key_create(out, f->alloc, f->id, f->secret, f->token, expires_s, err);
}

/* ---- requests ---- */

static zarr_status body_write(void *user, const void *bytes, size_t n, zarr_error *err)
{
    zr_str_append(user, bytes, n);
    return zr_str_status(user, err);
}

static zarr_status body_begin(void *user, const struct zr_net_answer *a, zarr_error *err)
{
    ZR_UNUSED(a, err);
    zr_str_clear(user);
    return ZARR_OK;
}

/* Does a request, whose answer is a text. */
static zarr_status run_request(struct zr_s3_keys *k, struct zr_net_request *r,
                               struct zr_str *body, zarr_error *err)
{
    struct zr_str refusal;
    zarr_status st;

    zr_str_init(&refusal, k->alloc);
    zr_s3_text_reserve(body, FETCH_BYTES_MOST);
    r->error_body = &refusal;
    r->flags = ZR_NET_NO_REDIRECT | ZR_NET_REPEATABLE;
    r->sink = (struct zr_net_sink){body_begin, body_write, body};
    r->max_bytes = FETCH_BYTES_MOST;
    st = zr_net_run(k->net, r, err);
    if (st == ZARR_OK && r->answer.status != 200)
        st = zr_s3_fail_answer(k->alloc, r, zr_str_text(&refusal), refusal.bytes, err);
    zr_net_request_deinit(r);
    zr_str_deinit(&refusal);
    return st;
}

/* ---- STS ---- */

static void put_field(struct zr_str *out, const char *name, const char *value)
{
    zr_str_printf(out, "&%s=", name);
    zr_s3_encode(out, value, false);
}

/* Signs an AssumeRole, whose header is the same in each try. */
static zarr_status sign_sts(struct zr_str *lines, const struct zr_s3_keys *k,
                            const struct zr_str *form, zarr_error *err)
{
    char hash[ZR_S3_HASH_ROOM];
    struct zr_url url = {0};
    struct zr_s3_signing s = {.alloc = k->alloc,
                              .method = "POST",
                              .url = &url,
                              .region = k->origin.region,
                              .service = "sts",
                              .key = k->origin.parent,
                              .time_s = zr_wall_seconds(),
                              .payload_hash = hash};
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_url_parse(&url, k->alloc, k->origin.url, err));
    ZR_TRY(zr_s3_hash(hash, form->ptr, form->bytes, err));
    st = zr_s3_sign(lines, &s, err);
out:
    zr_url_deinit(&url);
    return st;
}

static zarr_status put_form(struct zr_str *form, const struct zr_s3_keys *k,
                            zarr_error *err)
{
    const struct zr_s3_origin *o = &k->origin;
    const bool is_web = o->source == ZR_S3_WEB_IDENTITY;
    struct zr_str token;
    zarr_status st = ZARR_OK;

    zr_str_init(&token, k->alloc);
    zr_str_printf(form, "Action=AssumeRole%s&Version=2011-06-15",
                  is_web ? "WithWebIdentity" : "");
    put_field(form, "RoleArn", o->role);
    put_field(form, "RoleSessionName", o->session);
    if (o->external_id)
        put_field(form, "ExternalId", o->external_id);
    if (is_web) {
        ZR_TRY(zr_s3_read_file(&token, o->token_file, err));
        while (token.bytes > 0 && token.ptr[token.bytes - 1] == '\n')
            token.ptr[--token.bytes] = '\0';
        zr_s3_text_reserve(form, 3 * token.bytes + 64);
        put_field(form, "WebIdentityToken", zr_str_text(&token));
    }
    st = zr_str_status(form, err);
out:
    zr_s3_text_wipe(&token);
    return st;
}

static zarr_status fetch_sts(struct fetched *f, struct zr_s3_keys *k,
                             const zarr_cancel *cancel, zarr_error *err)
{
    const char *const plain[] = {"Content-Type: application/x-www-form-urlencoded", NULL};
    const struct zr_xml_sink sink = {.end = sts_end, .user = f};
    const char *signature[8] = {NULL};
    struct zr_str form, lines, body;
    struct zr_net_request r = {.method = "POST",
                               .url = k->origin.url,
                               .headers = plain,
                               .secret_headers = signature,
                               .cancel = cancel};
    size_t n = 0;
    zarr_status st = ZARR_OK;

    zr_str_init(&form, k->alloc);
    zr_str_init(&lines, k->alloc);
    zr_str_init(&body, k->alloc);
    ZR_TRY(put_form(&form, k, err));
    if (k->origin.source == ZR_S3_ROLE)
        ZR_TRY(sign_sts(&lines, k, &form, err));
    for (size_t at = 0; at < lines.bytes && n + 1 < ZR_COUNT(signature);
         at += strlen(lines.ptr + at) + 1)
        signature[n++] = lines.ptr + at;
    r.body = form.ptr;
    r.body_bytes = form.bytes;
    ZR_TRY(run_request(k, &r, &body, err));
    st = zr_xml_read(&sink, k->alloc, zr_str_text(&body), body.bytes, err);
out:
    zr_s3_text_wipe(&form);
    zr_s3_text_wipe(&lines);
    zr_s3_text_wipe(&body);
    return st;
}

/* ---- metadata servers ---- */

/* "Name: text", the text of a file without its last newline if path is not NULL. */
static zarr_status put_header(struct zr_str *out, const char *name, const char *text,
                              const char *path, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    zr_s3_text_reserve(out, strlen(name) + (text ? strlen(text) : 0) + 3);
    zr_str_printf(out, "%s: %s", name, text ? text : "");
    if (path)
        st = zr_s3_read_file(out, path, err);
    while (out->bytes > 0 && strchr("\r\n", out->ptr[out->bytes - 1]))
        out->ptr[--out->bytes] = '\0';
    return st == ZARR_OK ? zr_str_status(out, err) : st;
}

static zarr_status fetch_container(struct zr_str *body, struct zr_s3_keys *k,
                                   const zarr_cancel *cancel, zarr_error *err)
{
    const struct zr_s3_origin *o = &k->origin;
    const char *lines[2] = {NULL, NULL};
    struct zr_net_request r = {
        .method = "GET", .url = o->url, .secret_headers = lines, .cancel = cancel};
    struct zr_str header;
    zarr_status st = ZARR_OK;

    zr_str_init(&header, k->alloc);
    if (o->authorization || o->token_file) {
        ZR_TRY(put_header(&header, "Authorization",
                          o->token_file ? NULL : o->authorization, o->token_file, err));
        lines[0] = zr_str_text(&header);
    }
    st = run_request(k, &r, body, err);
out:
    zr_s3_text_wipe(&header);
    return st;
}

/* A GET from the server of an instance, with the token of the session. */
static zarr_status fetch_metadata(struct zr_str *body, struct zr_s3_keys *k,
                                  const char *method, const char *path,
                                  const char *header, const zarr_cancel *cancel,
                                  zarr_error *err)
{
    const char *const lines[] = {header, NULL};
    struct zr_net_request r = {
        .method = method, .secret_headers = lines, .cancel = cancel};
    struct zr_str url;
    zarr_status st = ZARR_OK;

    zr_str_init(&url, k->alloc);
    zr_str_printf(&url, "%s/latest/%s", k->origin.url, path);
    ZR_TRY(zr_str_status(&url, err));
    r.url = zr_str_text(&url);
    st = run_request(k, &r, body, err);
out:
    zr_str_deinit(&url);
    return st;
}

static zarr_status fetch_instance(struct zr_str *body, struct zr_s3_keys *k,
                                  const zarr_cancel *cancel, zarr_error *err)
{
    static const char folder[] = "meta-data/iam/security-credentials/";
    struct zr_str header, path;
    zarr_status st = ZARR_OK;

    zr_str_init(&header, k->alloc);
    zr_str_init(&path, k->alloc);
    ZR_TRY(fetch_metadata(body, k, "PUT", "api/token",
                          "X-aws-ec2-metadata-token-ttl-seconds: 21600", cancel, err));
    ZR_TRY(put_header(&header, "X-aws-ec2-metadata-token", zr_str_text(body), NULL, err));
    ZR_TRY(fetch_metadata(body, k, "GET", folder, zr_str_text(&header), cancel, err));
    zr_str_puts(&path, folder);
    for (const char *role = zr_str_text(body); (uint8_t)*role > ' '; role++)
        zr_str_putc(&path, *role);
    if (path.bytes == sizeof folder - 1)
        ZR_FAIL(err, ZARR_ERR_DENIED, "the instance has no role");
    ZR_TRY(zr_str_status(&path, err));
    st = fetch_metadata(body, k, "GET", zr_str_text(&path), zr_str_text(&header), cancel,
                        err);
out:
    zr_s3_text_wipe(&header);
    zr_str_deinit(&path);
    return st == ZARR_OK
               ? st
               : zr_prefix(err, st == ZARR_ERR_IO ? ZARR_ERR_DENIED : st,
                           "no credentials were found: %s", zr_str_text(&k->looked));
}

/* ---- all ---- */

/* No object is to blame for the failure, and none is missing. */
static zarr_status fail_fetch(zarr_status st, zarr_error *err)
{
    if (st == ZARR_OK || st == ZARR_ERR_CANCELLED || st == ZARR_ERR_NO_MEMORY)
        return st;
    if (err) {
        err->os_code = 0;
        err->os_domain = 0;
    }
    return zr_prefix(err, st == ZARR_ERR_IO ? st : ZARR_ERR_DENIED, "new credentials");
}

zarr_status zr_s3_fetch(struct zr_s3_key **out, struct zr_s3_keys *k,
                        const zarr_cancel *cancel, zarr_error *err)
{
    const enum zr_s3_source source = k->origin.source;
    struct fetched f = {.alloc = k->alloc};
    struct zr_str body;
    zarr_status st = ZARR_OK;

    zr_str_init(&body, k->alloc);
    if (source == ZR_S3_PROCESS)
        ZR_TRY(zr_s3_fetch_process(&body, k->origin.command, cancel, err));
    else if (source == ZR_S3_CONTAINER)
        ZR_TRY(fetch_container(&body, k, cancel, err));
    else if (source == ZR_S3_INSTANCE)
        ZR_TRY(fetch_instance(&body, k, cancel, err));
    if (source == ZR_S3_ROLE || source == ZR_S3_WEB_IDENTITY)
        ZR_TRY(fetch_sts(&f, k, cancel, err));
    else
        ZR_TRY(read_json(&f, k, &body, err));
    st = make_key(out, &f, err);
out:
    zr_s3_text_wipe(&body);
    zr_free_secret(k->alloc, f.id);
    zr_free_secret(k->alloc, f.secret);
    zr_free_secret(k->alloc, f.token);
    zr_free_secret(k->alloc, f.expiration);
    return fail_fetch(st, err);
}
