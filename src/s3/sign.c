/*
 * s3/sign.c - Signature Version 4 of AWS: a hash of what is sent, keyed by the secret.
 * Source: "Authenticating Requests (AWS Signature Version 4)" in the API reference of
 * Amazon S3. The path is encoded once, as S3 wants it; other services encode it twice,
 * but their paths are "/" here.
 * Pure functions.
 */
#include "s3/s3_int.h"

#include <stdio.h>
#include <string.h>

enum {
    SIGN_ROOM = 2048,    /* for all but the token, paths and queries */
    SIGN_PARTS_MOST = 32 /* headers, or parameters of a query */
};

/* Name and value, both in `text`, each with a NUL after it. */
struct sign_pair {
    size_t name, value;
};
struct sign_pairs {
    struct zr_str text;
    struct sign_pair pair[SIGN_PARTS_MOST];
    size_t n;
};

void zr_s3_put_hash(char out[ZR_S3_HASH_ROOM], const uint8_t in[ZR_SHA256_BYTES])
{
    for (size_t i = 0; i < ZR_SHA256_BYTES; i++)
        (void)snprintf(out + 2 * i, 3, "%02x", in[i]);
}

zarr_status zr_s3_hash(char out[2 * ZR_SHA256_BYTES + 1], const void *bytes, size_t n,
                       zarr_error *err)
{
    uint8_t hash[ZR_SHA256_BYTES];
    const zarr_status st = zr_sha256(hash, bytes, n, err);

    if (st == ZARR_OK)
        zr_s3_put_hash(out, hash);
    return st;
}

void zr_s3_encode(struct zr_str *out, const char *text, bool keeps_slash)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                "0123456789-._~";

    for (; *text; text++)
        if (strchr(plain, *text) || (keeps_slash && *text == '/'))
            zr_str_putc(out, *text);
        else
            zr_str_printf(out, "%%%02X", (uint8_t)*text);
}

/* ---- times ---- */

void zr_s3_put_time(char out[ZR_S3_TIME_ROOM], int64_t time_s)
{
    const int64_t day = time_s / 86400, second = time_s % 86400;
    /* of the Gregorian calendar, in years that begin in March */
    const int64_t z = day + 719468, era = z / 146097, of_era = z % 146097;
    const int64_t year =
        (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    const int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    const int64_t m = (5 * of_year + 2) / 153, month = m < 10 ? m + 3 : m - 9;

    (void)snprintf(out, ZR_S3_TIME_ROOM, "%04u%02u%02uT%02u%02u%02uZ",
                   (unsigned)(year + era * 400 + (month <= 2)) % 10000, (unsigned)month,
                   (unsigned)(of_year - (153 * m + 2) / 5 + 1), (unsigned)(second / 3600),
                   (unsigned)(second / 60 % 60), (unsigned)(second % 60));
}

/* ---- names and values ---- */

static zarr_status pairs_add(struct sign_pairs *p, zarr_error *err)
{
    if (p->n == SIGN_PARTS_MOST)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "more than %d parts of a request are signed", SIGN_PARTS_MOST);
    p->pair[p->n++] = (struct sign_pair){p->text.bytes, p->text.bytes};
    return ZARR_OK;
}

static const char *pairs_name(const struct sign_pairs *p, size_t i)
{
    return p->text.ptr + p->pair[i].name;
}

static const char *pairs_value(const struct sign_pairs *p, size_t i)
{
    return p->text.ptr + p->pair[i].value;
}

static bool pairs_are_sorted(const struct sign_pairs *p, size_t i)
{
    const int by_name = strcmp(pairs_name(p, i), pairs_name(p, i + 1));

    return by_name < 0 ||
           (by_name == 0 && strcmp(pairs_value(p, i), pairs_value(p, i + 1)) <= 0);
}

static void pairs_sort(struct sign_pairs *p)
{
    for (size_t i = 1; i < p->n; i++)
        for (size_t k = i; k > 0 && !pairs_are_sorted(p, k - 1); k--) {
            const struct sign_pair swap = p->pair[k];

            p->pair[k] = p->pair[k - 1];
            p->pair[k - 1] = swap;
        }
}

/* ---- the query ---- */

/* Decodes and encodes again, since '+' and others may stand in a URL as they are. */
static zarr_status put_encoded(struct sign_pairs *p, const char *text, size_t n,
                               zarr_error *err)
{
    struct zr_str plain;
    zarr_status st = ZARR_OK;

    zr_str_init(&plain, p->text.alloc);
    if (!zr_url_decode(&plain, text, n))
        ZR_FAIL(err, ZARR_ERR_INVALID, "the query of a request is no UTF-8");
    ZR_TRY(zr_str_status(&plain, err));
    zr_s3_encode(&p->text, zr_str_text(&plain), false);
    zr_str_putc(&p->text, '\0');
    st = zr_str_status(&p->text, err);
out:
    zr_str_deinit(&plain);
    return st;
}

static zarr_status put_query(struct zr_str *out, const char *query, zarr_error *err)
{
    struct sign_pairs p = {.n = 0};
    zarr_status st = ZARR_OK;

    zr_str_init(&p.text, out->alloc);
    for (const char *at = query; at && *at;) {
        const size_t n = strcspn(at, "&");
        const char *const equals = memchr(at, '=', n);
        const size_t name = equals ? (size_t)(equals - at) : n;

        if (n > 0) {
            ZR_TRY(pairs_add(&p, err));
            ZR_TRY(put_encoded(&p, at, name, err));
            p.pair[p.n - 1].value = p.text.bytes;
            ZR_TRY(put_encoded(&p, at + name + (equals != NULL),
                               n - name - (equals != NULL), err));
        }
        at += n + (at[n] == '&');
    }
    pairs_sort(&p);
    for (size_t i = 0; i < p.n; i++)
        zr_str_printf(out, "%s%s=%s", i > 0 ? "&" : "", pairs_name(&p, i),
                      pairs_value(&p, i));
out:
    zr_str_deinit(&p.text);
    return st;
}

/* ---- headers ---- */

/* Adds "Name: value", the name in lower case, runs of blanks in the value as one. */
static zarr_status add_header_pair(struct sign_pairs *p, const char *name,
                                   size_t name_bytes, const char *value, zarr_error *err)
{
    zarr_status st = pairs_add(p, err);

    if (st != ZARR_OK)
        return st;
    for (size_t i = 0; i < name_bytes; i++)
        zr_str_putc(&p->text, name[i] >= 'A' && name[i] <= 'Z'
                                  ? (char)(name[i] - 'A' + 'a')
                                  : name[i]);
    zr_str_putc(&p->text, '\0');
    p->pair[p->n - 1].value = p->text.bytes;
    for (bool first = true; *value; first = false) {
        value += strspn(value, " \t");
        if (!*value)
            break;
        if (!first)
            zr_str_putc(&p->text, ' ');
        for (; *value && *value != ' ' && *value != '\t'; value++)
            zr_str_putc(&p->text, *value);
    }
    zr_str_putc(&p->text, '\0');
    return zr_str_status(&p->text, err);
}

static zarr_status add_headers(struct sign_pairs *p, const struct zr_s3_signing *s,
                               const char *time, zarr_error *err)
{
    struct zr_str origin;
    zarr_status st = ZARR_OK;

    zr_str_init(&origin, p->text.alloc);
    zr_url_put_origin(&origin, s->url);
    ZR_TRY(zr_str_status(&origin, err));
    ZR_TRY(add_header_pair(p, "host", 4,
                           strstr(zr_str_text(&origin), "://") + strlen("://"), err));
    ZR_TRY(add_header_pair(p, "x-amz-date", 10, time, err));
    if (s->sends_payload_hash)
        ZR_TRY(add_header_pair(p, "x-amz-content-sha256", 20, s->payload_hash, err));
    if (s->key->token)
        ZR_TRY(add_header_pair(p, "x-amz-security-token", 20, s->key->token, err));
    for (const char *const *line = s->lines; line && *line; line++) {
        const char *colon = strchr(*line, ':');

        if (colon)
            ZR_TRY(add_header_pair(p, *line, (size_t)(colon - *line), colon + 1, err));
    }
    pairs_sort(p);
out:
    zr_str_deinit(&origin);
    return st;
}

/* ---- the signature ---- */

static void put_names(struct zr_str *out, const struct sign_pairs *headers)
{
    for (size_t i = 0; i < headers->n; i++)
        zr_str_printf(out, "%s%s", i > 0 ? ";" : "", pairs_name(headers, i));
}

/* The request in the form that is hashed. */
static zarr_status put_canonical(struct zr_str *out, const struct zr_s3_signing *s,
                                 const struct sign_pairs *headers, zarr_error *err)
{
    struct zr_str path;
    zarr_status st = ZARR_OK;

    zr_str_init(&path, out->alloc);
    if (!zr_url_decode(&path, s->url->path, strlen(s->url->path)))
        ZR_FAIL(err, ZARR_ERR_INVALID, "the path of a request is no UTF-8");
    ZR_TRY(zr_str_status(&path, err));
    zr_str_printf(out, "%s\n", s->method);
    zr_s3_encode(out, zr_str_text(&path), true);
    zr_str_putc(out, '\n');
    ZR_TRY(put_query(out, s->url->query, err));
    zr_str_putc(out, '\n');
    for (size_t i = 0; i < headers->n; i++)
        zr_str_printf(out, "%s:%s\n", pairs_name(headers, i), pairs_value(headers, i));
    zr_str_putc(out, '\n');
    put_names(out, headers);
    zr_str_printf(out, "\n%s", s->payload_hash);
    st = zr_str_status(out, err);
out:
    zr_str_deinit(&path);
    return st;
}

/* HMAC of HMAC of ...: of the day, region, service, "aws4_request", and the text. */
static zarr_status compute_signature(char out[2 * ZR_SHA256_BYTES + 1],
                                     const struct zr_s3_signing *s, const char *time,
                                     const char *text, size_t n, zarr_error *err)
{
    char day[9];
    const char *const parts[] = {day, s->region, s->service, "aws4_request", text};
    const size_t bytes[] = {8, strlen(s->region), strlen(s->service), 12, n};
    uint8_t key[ZR_SHA256_BYTES], next[ZR_SHA256_BYTES];
    struct zr_str first;
    zarr_status st = ZARR_OK;

    (void)snprintf(day, sizeof day, "%.8s", time);
    zr_str_init(&first, s->alloc);
    zr_s3_text_reserve(&first, strlen("AWS4") + strlen(s->key->secret));
    zr_str_printf(&first, "AWS4%s", s->key->secret);
    ZR_TRY(zr_str_status(&first, err));
    for (size_t i = 0; i < ZR_COUNT(parts); i++) {
        ZR_TRY(i == 0
                   ? zr_hmac_sha256(next, first.ptr, first.bytes, parts[i], bytes[i], err)
                   : zr_hmac_sha256(next, key, sizeof key, parts[i], bytes[i], err));
        memcpy(key, next, sizeof key);
    }
    zr_s3_put_hash(out, key);
out:
    zr_wipe(key, sizeof key);
    zr_wipe(next, sizeof next);
    zr_s3_text_wipe(&first);
    return st;
}

/* Appends the lines of all signed headers but Host, which libcurl sends, and the
 * signature. */
static void put_lines(struct zr_str *lines, const struct zr_s3_signing *s,
                      const struct sign_pairs *headers, const char *scope,
                      const char *signature)
{
    for (size_t i = 0; i < headers->n; i++)
        if (strcmp(pairs_name(headers, i), "host") != 0) {
            zr_str_printf(lines, "%s: %s", pairs_name(headers, i),
                          pairs_value(headers, i));
            zr_str_putc(lines, '\0');
        }
    zr_str_printf(lines,
                  "Authorization: AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=",
                  s->key->id, scope);
    put_names(lines, headers);
    zr_str_printf(lines, ", Signature=%s", signature);
    zr_str_putc(lines, '\0');
}

zarr_status zr_s3_sign(struct zr_str *lines, const struct zr_s3_signing *s,
                       zarr_error *err)
{
    char time[ZR_S3_TIME_ROOM], hash[2 * ZR_SHA256_BYTES + 1];
    struct sign_pairs headers = {.n = 0};
    struct zr_str text, scope;
    zarr_status st = ZARR_OK;

    zr_str_init(&headers.text, s->alloc);
    zr_str_init(&text, s->alloc);
    zr_str_init(&scope, s->alloc);
    zr_s3_text_reserve(&headers.text,
                       SIGN_ROOM + (s->key->token ? strlen(s->key->token) : 0));
    zr_s3_put_time(time, s->time_s);
    zr_str_printf(&scope, "%.8s/%s/%s/aws4_request", time, s->region, s->service);
    ZR_TRY(add_headers(&headers, s, time, err));
    zr_s3_text_reserve(&text, headers.text.bytes + SIGN_ROOM + 3 * strlen(s->url->path) +
                                  3 * strlen(s->url->query ? s->url->query : ""));
    ZR_TRY(put_canonical(&text, s, &headers, err));
    ZR_TRY(zr_s3_hash(hash, text.ptr, text.bytes, err));
    zr_str_clear(&text);
    zr_str_printf(&text, "AWS4-HMAC-SHA256\n%s\n%s\n%s", time, zr_str_text(&scope), hash);
    ZR_TRY(zr_str_status(&text, err));
    ZR_TRY(zr_str_status(&scope, err));
    ZR_TRY(compute_signature(hash, s, time, text.ptr, text.bytes, err));
    zr_s3_text_reserve(lines, headers.text.bytes + SIGN_ROOM);
    put_lines(lines, s, &headers, zr_str_text(&scope), hash);
    st = zr_str_status(lines, err);
out:
    zr_s3_text_wipe(&headers.text); /* it has the token, and so has the text */
    zr_s3_text_wipe(&text);
    zr_str_deinit(&scope);
    return st;
}
