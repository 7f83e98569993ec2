/*
 * base/url.c - one parser of URLs for all rooms: where a location splits, which requests
 * are sent, and what is shown must not depend on three opinions of one text.
 * Thread class: plain functions.
 */
#include "base/base.h"

#include <arpa/inet.h>
#include <string.h>

#define URL_LETTERS    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define URL_DIGITS     "0123456789"
#define URL_UNRESERVED URL_LETTERS URL_DIGITS "-._~"
#define URL_IN_PATH    "!$&'()*+,;=:@/"
#define URL_IN_QUERY   URL_IN_PATH "?"

static const char url_hex[] = "0123456789ABCDEF";

/* ---- single bytes ---- */

static bool url_is_in(char c, const char *set)
{
    return c != '\0' && strchr(set, c) != NULL;
}

static int url_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The byte of the escape at s, of which n bytes are there; -1: it is malformed. */
static int url_escaped(const char *s, size_t n)
{
    const int high = n < 3 ? -1 : url_digit(s[1]);
    const int low = high < 0 ? -1 : url_digit(s[2]);

    return low < 0 ? -1 : high * 16 + low;
}

static char url_lower(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

static char *url_put_escape(char *at, uint8_t byte)
{
    *at++ = '%';
    *at++ = url_hex[byte >> 4];
    *at++ = url_hex[byte & 15];
    return at;
}

/* Appends a text, with an escape for each byte that a path cannot have. */
static void url_put_escaped(struct zr_str *out, const char *text)
{
    char escape[3];

    for (size_t i = 0; text[i]; i++)
        if (url_is_in(text[i], URL_UNRESERVED) || url_is_in(text[i], URL_IN_PATH))
            zr_str_putc(out, text[i]);
        else
            zr_str_append(out, escape,
                          (size_t)(url_put_escape(escape, (uint8_t)text[i]) - escape));
}

bool zr_url_decode(struct zr_str *out, const char *text, size_t n)
{
    const size_t before = out->bytes;

    for (size_t i = 0; i < n; i++) {
        const int byte = text[i] == '%' ? url_escaped(text + i, n - i) : (uint8_t)text[i];

        if (byte <= 0)
            return false;
        zr_str_putc(out, (char)byte);
        i += text[i] == '%' ? 2 : 0;
    }
    return out->failed ||
           zr_utf8_is_valid(zr_str_text(out) + before, out->bytes - before);
}

/* ---- parsing ---- */

/* A URL while it is parsed. */
struct url_parse {
    const char *text, *end; /* what is left of it */
    char *at;               /* where the next normalised byte goes */
    bool is_web;
    zarr_error *err;
};

static zarr_status url_refuse(struct url_parse *p, const char *what)
{
    return zr_fail(p->err, ZARR_ERR_INVALID, "the URL is malformed: %s", what);
}

static char *url_copy(struct url_parse *p, const char *text, size_t n)
{
    char *const begin = p->at;

    memcpy(p->at, text, n);
    p->at += n;
    *p->at++ = '\0';
    return begin;
}

/* Takes the text up to one of the stops. */
static const char *url_take(struct url_parse *p, const char *stops, size_t *n)
{
    const char *const begin = p->text;

    *n = strcspn(begin, stops);
    p->text += *n;
    return begin;
}

static uint32_t url_default_port(const char *scheme)
{
    return strcmp(scheme, "https") == 0 ? 443 : strcmp(scheme, "http") == 0 ? 80 : 0;
}

static zarr_status url_parse_scheme(struct zr_url *u, struct url_parse *p)
{
    const size_t n = zr_url_scheme_bytes(p->text);
    char *scheme;

    if (n == 0 || !zr_starts_with(p->text + n, "//"))
        return url_refuse(p, "it does not begin with a scheme and \"://\"");
    u->scheme = scheme = url_copy(p, p->text, n - 1);
    for (size_t i = 0; scheme[i]; i++)
        scheme[i] = url_lower(scheme[i]);
    u->port = url_default_port(scheme);
    p->is_web = u->port != 0;
    p->text += n + 2;
    return ZARR_OK;
}

static zarr_status url_parse_user_info(struct zr_url *u, struct url_parse *p,
                                       const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (text[i] == '%' ? url_escaped(text + i, n - i) <= 0
                           : !url_is_in(text[i], URL_UNRESERVED "!$&'()*+,;=:"))
            return url_refuse(p, "the user info has a character that needs an escape");
    u->user_info = url_copy(p, text, n);
    return ZARR_OK;
}

/* An address in brackets. */
static zarr_status url_parse_address(struct zr_url *u, struct url_parse *p,
                                     const char *text, size_t n)
{
    char in[INET6_ADDRSTRLEN], out[INET6_ADDRSTRLEN];
    unsigned char address[16];

    if (n - 2 >= sizeof in)
        return url_refuse(p, "the host is no IPv6 address");
    memcpy(in, text + 1, n - 2);
    in[n - 2] = '\0';
    if (inet_pton(AF_INET6, in, address) != 1 ||
        !inet_ntop(AF_INET6, address, out, sizeof out))
        return url_refuse(p, "the host is no IPv6 address");
    u->host = p->at;
    *p->at++ = '[';
    (void)url_copy(p, out, strlen(out));
    p->at[-1] = ']';
    *p->at++ = '\0';
    return ZARR_OK;
}

static zarr_status url_parse_host(struct zr_url *u, struct url_parse *p, const char *text,
                                  size_t n)
{
    char *host;

    if (n > 2 && text[0] == '[' && text[n - 1] == ']')
        return url_parse_address(u, p, text, n);
    if (n == 0 && p->is_web)
        return url_refuse(p, "it has no host");
    for (size_t i = 0; i < n; i++)
        if (!url_is_in(text[i], URL_LETTERS URL_DIGITS "-._"))
            return url_refuse(p, "a host has letters, digits, '-', '.' and '_'");
    u->host = host = url_copy(p, text, n);
    for (size_t i = 0; p->is_web && host[i]; i++)
        host[i] = url_lower(host[i]);
    return ZARR_OK;
}

static zarr_status url_parse_authority(struct zr_url *u, struct url_parse *p)
{
    size_t n = 0, name;
    const char *text = url_take(p, "/?#", &n), *at = memchr(text, '@', n), *colon;
    uint64_t port = 0;

    if (at) {
        ZR_CHECK(url_parse_user_info(u, p, text, (size_t)(at - text)));
        n -= (size_t)(at + 1 - text);
        text = at + 1;
    }
    name = n;
    while (name > 0 && url_is_in(text[name - 1], URL_DIGITS))
        name--;
    colon = name > 0 && text[name - 1] == ':' ? text + name : NULL;
    if (colon && name < n) {
        if (!zr_parse_u64(colon, n - name, &port) || port == 0 || port > 65535)
            return url_refuse(p, "the port is none of 1 to 65535");
        u->port = (uint32_t)port;
    }
    return url_parse_host(u, p, text, colon ? name - 1 : n);
}

/* Writes the bytes with escapes where they are needed, and only there. */
static zarr_status url_normalise(struct url_parse *p, const char *text, size_t n,
                                 const char *keep, bool decodes)
{
    for (size_t i = 0; i < n; i++) {
        const uint8_t c = (uint8_t)text[i];
        const int byte = c == '%' ? url_escaped(text + i, n - i) : c;

        if (byte < 0)
            return url_refuse(p, "a % is not followed by two hexadecimal digits");
        if (byte == 0 || c < ' ' || c == 0x7F || c == '\\')
            return url_refuse(p, "it has a control character or a backslash");
        if (c == '%' && !decodes) {
            memcpy(p->at, text + i, 3);
            p->at += 3;
        } else if (url_is_in((char)byte, URL_UNRESERVED) ||
                   (c != '%' && url_is_in((char)byte, keep))) {
            *p->at++ = (char)byte;
        } else {
            p->at = url_put_escape(p->at, (uint8_t)byte);
        }
        i += c == '%' ? 2 : 0;
    }
    *p->at++ = '\0';
    return ZARR_OK;
}

/* Removes the segments "." and "..", in place (RFC 3986, 5.2.4). The path begins with a
 * slash. */
static void url_remove_dots(char *path)
{
    char *to = path;

    for (const char *at = path; *at;) {
        const size_t n = 1 + strcspn(at + 1, "/");
        const bool is_last = at[n] == '\0', up = n == 3 && memcmp(at, "/..", 3) == 0;

        if (up || (n == 2 && at[1] == '.')) {
            while (up && to > path && *--to != '/')
                ;
            if (is_last)
                *to++ = '/';
        } else {
            memmove(to, at, n);
            to += n;
        }
        at += n;
    }
    *to = '\0';
}

static zarr_status url_parse_path(struct zr_url *u, struct url_parse *p)
{
    char *const path = p->at;
    size_t n = 0;
    const char *text = url_take(p, "?#", &n);
    zarr_status st = ZARR_OK;

    if (n == 0)
        *p->at++ = '/';
    ZR_TRY(url_normalise(p, text, n, URL_IN_PATH, true));
    url_remove_dots(path);
    u->path = path;
    if (*p->text == '?') {
        p->text++;
        u->query = p->at;
        text = url_take(p, "#", &n);
        ZR_TRY(url_normalise(p, text, n, URL_IN_QUERY, false));
    }
    if (*p->text == '#')
        st = url_refuse(p, "it has a fragment; write %23 for a '#' in a name");
out:
    return st;
}

zarr_status zr_url_parse(struct zr_url *out, const zarr_allocator *alloc,
                         const char *text, zarr_error *err)
{
    const size_t n = strnlen(text, ZR_URL_MAX_BYTES + 1);
    struct url_parse p = {.text = text, .err = err};
    zarr_status st = ZARR_OK;

    *out = (struct zr_url){.alloc = alloc};
    if (n > ZR_URL_MAX_BYTES)
        return zr_fail(err, ZARR_ERR_LIMIT, "the URL is longer than %d bytes",
                       ZR_URL_MAX_BYTES);
    if (!zr_utf8_is_valid(text, n))
        return url_refuse(&p, "it is no UTF-8");
    /* each byte has an escape at most; the address of a host may become longer */
    out->block_bytes = 3 * n + INET6_ADDRSTRLEN + 16;
    p.at = out->block = zr_calloc(alloc, 1, out->block_bytes);
    if (!out->block)
        ZR_FAIL_MEMORY(err, out->block_bytes);
    ZR_TRY(url_parse_scheme(out, &p));
    ZR_TRY(url_parse_authority(out, &p));
    ZR_TRY(url_parse_path(out, &p));
out:
    if (st != ZARR_OK)
        zr_url_deinit(out);
    return st;
}

void zr_url_deinit(struct zr_url *u)
{
    if (u->block) {
        zr_wipe(u->block, u->block_bytes);
        zr_free(u->alloc, u->block);
    }
    *u = (struct zr_url){.alloc = u->alloc};
}

/* ---- texts ---- */

void zr_url_put_origin(struct zr_str *out, const struct zr_url *u)
{
    zr_str_printf(out, "%s://%s", u->scheme, u->host);
    if (u->port != url_default_port(u->scheme))
        zr_str_printf(out, ":%" PRIu32, u->port);
}

void zr_url_put_key(struct zr_str *out, const struct zr_url *u, const char *key)
{
    zr_url_put_origin(out, u);
    zr_str_puts(out, u->path);
    if (key) {
        if (!zr_ends_with(u->path, "/"))
            zr_str_putc(out, '/');
        url_put_escaped(out, key);
    }
    if (u->query)
        zr_str_printf(out, "?%s", u->query);
}

size_t zr_url_scheme_bytes(const char *text)
{
    const size_t n =
        url_is_in(*text, URL_LETTERS) ? strspn(text, URL_LETTERS URL_DIGITS "+-.") : 0;

    return n > 1 && text[n] == ':' ? n + 1 : 0;
}

/* Whether an authority without user info is a host and a port. */
static bool url_is_host(const char *text, size_t n)
{
    const char *const colon = memchr(text, ':', n);

    if (*text == '[')
        return memchr(text, ']', n) != NULL;
    return !colon || strspn(colon + 1, URL_DIGITS) >= n - (size_t)(colon + 1 - text);
}

/* What follows the user info. A password may have characters that end an authority, and
 * must not be shown then either. */
static const char *url_skip_user_info(const char *text)
{
    const size_t n = strcspn(text, "/?#");
    const char *at = strrchr(text, '@');

    for (size_t i = n; i > 0; i--)
        if (text[i - 1] == '@')
            return text + i;
    return at && !url_is_host(text, n) ? at + 1 : text;
}

void zr_url_put_shown(struct zr_str *out, const char *text)
{
    size_t n = zr_url_scheme_bytes(text), more;

    if (n == 0) {
        zr_str_puts(out, text);
        return;
    }
    while ((more = zr_url_scheme_bytes(text + n)) > 0) /* as in zip:https://h/x */
        n += more;
    n += zr_starts_with(text + n, "//") ? 2 : 0;
    zr_str_append(out, text, n);
    text = text[n - 1] == '/' ? url_skip_user_info(text + n) : text + n;
    n = strcspn(text, "?#");
    zr_str_append(out, text, n);
    while (text[n] == '?' || text[n] == '&' || text[n] == ';') {
        const size_t end = n + 1 + strcspn(text + n + 1, "&;#");
        const char *const equals = memchr(text + n, '=', end - n);

        zr_str_append(out, text + n, equals ? (size_t)(equals + 1 - (text + n)) : 1);
        if (end > n + 1)
            zr_str_puts(out, "***");
        n = end;
    }
    if (text[n] == '#')
        zr_str_puts(out, "#***");
}

/* ---- secrets ---- */

void zr_wipe(void *p, size_t n)
{
    if (n == 0)
        return;
    memset(p, 0, n);
    __asm__ __volatile__(""
                         :
                         : "r"(p)
                         : "memory"); /* the zeros are read, for all it knows */
}

void zr_free_secret(const zarr_allocator *a, char *text)
{
    if (!text)
        return;
    zr_wipe(text, strlen(text));
    zr_free(a, text);
}
