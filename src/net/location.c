/*
 * net/location.c - where a redirect leads (RFC 3986, 5.2). The result is a URL that
 * zr_url_parse() accepts, so no other parser reads what a server sent.
 *
 * Thread class: plain functions.
 */
#include "net/net_int.h"

#include <string.h>

/* Writes `location` as an absolute URL without a fragment. */
static void location_put(struct zr_str *out, const struct zr_url *from,
                         const char *location)
{
    const size_t n = strcspn(location, "#");
    const char *const slash = strrchr(from->path, '/');

    if (zr_url_scheme_bytes(location) == 0) {
        if (zr_starts_with(location, "//")) {
            zr_str_printf(out, "%s:", from->scheme);
        } else {
            zr_url_put_origin(out, from);
            if (*location == '?')
                zr_str_puts(out, from->path);
            else if (*location != '/' && slash)
                zr_str_append(out, from->path, (size_t)(slash + 1 - from->path));
        }
    }
    zr_str_append(out, location, n);
}

static bool location_is_tls(const struct zr_url *u)
{
    return strcmp(u->scheme, "https") == 0;
}

zarr_status zr_net_location(struct zr_url *out, const struct zr_url *from,
                            const char *location, zarr_error *err)
{
    struct zr_str text;
    zarr_status st = ZARR_OK;

    *out = (struct zr_url){.alloc = from->alloc};
    zr_str_init(&text, from->alloc);
    location_put(&text, from, location);
    ZR_TRY(zr_str_status(&text, err));
    st = zr_url_parse(out, from->alloc, zr_str_text(&text), err);
    if (st == ZARR_ERR_INVALID || st == ZARR_ERR_LIMIT)
        ZR_LEAVE(zr_prefix(err, ZARR_ERR_IO, "a redirect leads to no URL"));
    ZR_TRY(st);
    if (!location_is_tls(out) && strcmp(out->scheme, "http") != 0)
        ZR_FAIL(err, ZARR_ERR_IO, "a redirect leads to neither http nor https");
    if (location_is_tls(from) && !location_is_tls(out))
        ZR_FAIL(err, ZARR_ERR_IO, "a redirect leads from https to http");
out:
    if (st != ZARR_OK)
        zr_url_deinit(out);
    zr_str_deinit(&text);
    return st;
}

bool zr_net_is_same_origin(const struct zr_url *a, const struct zr_url *b)
{
    return a->port == b->port && strcmp(a->scheme, b->scheme) == 0 &&
           strcmp(a->host, b->host) == 0;
}
