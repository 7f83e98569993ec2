/*
 * base/url.h - a part of the door: URLs as RFC 3986 has them, and texts that are erased
 * from memory.
 */
#ifndef ZR_BASE_URL_H
#define ZR_BASE_URL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <zarrc/context.h>
#include <zarrc/error.h>

#include "base/text.h"

enum {
    ZR_URL_MAX_BYTES = 65536
};

/*
 * A parsed URL "scheme://[user_info@]host[:port]/path[?query]". It is normalised: the
 * scheme, and of http and https also the host, are in lower case; an IPv6 address has its
 * shortest form; the path has no dot segments and begins with '/'; escapes in the path
 * have upper case, and only bytes that need them have escapes. So two URLs of one place
 * are equal texts. The query is kept as it is, since its text may be signed.
 */
struct zr_url {
    const zarr_allocator *alloc;
    char *block; /* has all texts */
    size_t block_bytes;
    const char *scheme;
    const char *user_info; /* percent-encoded; NULL: none */
    const char *host;      /* "" only if the scheme is not http or https */
    const char *path;      /* percent-encoded */
    const char *query;     /* percent-encoded, without '?'; NULL: none */
    uint32_t port;         /* of the scheme if the text has none; 0: not known */
};
/* Refuses all that could be read in two ways: control characters, backslashes, malformed
 * escapes and UTF-8, a fragment, an '@' in the user info, ports that are no ports. Blanks
 * and other characters that need an escape get one. Messages never quote the text.
 * INVALID; LIMIT above ZR_URL_MAX_BYTES. */
zarr_status zr_url_parse(struct zr_url *out, const zarr_allocator *alloc,
                         const char *text, zarr_error *err);
/* Wipes the texts; zeroed storage is allowed. */
void zr_url_deinit(struct zr_url *u);
/* Appends "scheme://host[:port]". A port that the scheme has anyway is left out. */
void zr_url_put_origin(struct zr_str *out, const struct zr_url *u);
/* Appends the URL of a key below u, without user info: the key's bytes are escaped, and
 * the query follows them. key NULL: of u itself. */
void zr_url_put_key(struct zr_str *out, const struct zr_url *u, const char *key);
/* Appends n bytes without their escapes. Returns false, with a part appended, if an
 * escape is malformed or the result has a NUL or is no UTF-8. */
bool zr_url_decode(struct zr_str *out, const char *text, size_t n);
/* Appends any text as it may be shown to others: if it begins with a scheme, user info is
 * left out, and the values of query parameters and a fragment become "***". The text need
 * not be a valid URL. */
void zr_url_put_shown(struct zr_str *out, const char *text);
/* The length of the scheme and the colon that a text begins with, as in "zip:x". A scheme
 * has two characters or more. 0: there is none. */
size_t zr_url_scheme_bytes(const char *text);

/* Overwrites bytes with zeros. No compiler removes it. p may be NULL if n is 0. */
void zr_wipe(void *p, size_t n);
/* Wipes and frees a text; NULL is allowed. */
void zr_free_secret(const zarr_allocator *a, char *text);

#endif
