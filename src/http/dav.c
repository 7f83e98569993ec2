/*
 * http/dav.c - the members of a folder, from a WebDAV server's answer to PROPFIND with
 * depth 1 (RFC 4918, 207 Multi-Status). Each row names a URL, which must be that of the
 * folder or of one of its members: nothing else that a server says becomes a key.
 * Pure functions.
 */
#include "http/http_int.h"

#include <string.h>

/* A propstat of a row: properties that have one status. */
struct dav_props {
    bool is_folder, is_missing;
    uint64_t bytes;
};

struct dav_reader {
    const struct zr_http_page *page;
    struct zr_str origin;   /* of the folder */
    struct zr_str folder;   /* its path, decoded; ends with a slash */
    struct zr_str href;     /* of this row */
    struct dav_props props; /* of this propstat */
    struct dav_props row;
    bool is_multistatus, in_row, in_props;
    uint32_t status; /* of this row as a whole; 0: none */
};

static const char *show_href(const struct dav_reader *r)
{
    const char *href = zr_str_text(&r->href);

    return zr_is_plain_line(href) ? href : "?";
}

static zarr_status fail_row(const struct dav_reader *r, const char *what, zarr_error *err)
{
    return zr_fail(err, ZARR_ERR_CORRUPT, "it has %s \"%.100s\"", what, show_href(r));
}

/* ---- places ---- */

/* Parses the URL of a row: absolute, or the path of one. */
static zarr_status parse_href(const struct dav_reader *r, struct zr_url *out,
                              zarr_error *err)
{
    const char *href = zr_str_text(&r->href);
    struct zr_str text;
    zarr_status st = ZARR_OK;

    *out = (struct zr_url){.alloc = r->page->alloc};
    zr_str_init(&text, r->page->alloc);
    if (*href == '/' && href[1] != '/')
        zr_str_puts(&text, zr_str_text(&r->origin));
    zr_str_puts(&text, href);
    ZR_TRY(zr_str_status(&text, err));
    st = zr_url_parse(out, r->page->alloc, zr_str_text(&text), err);
    if (st == ZARR_ERR_INVALID || st == ZARR_ERR_LIMIT)
        st = fail_row(r, "no URL,", err);
out:
    zr_str_deinit(&text);
    return st;
}

/* Cuts the path of a member to its name; "": it is the folder itself. NULL: neither. */
static const char *cut_name(const struct zr_str *folder, struct zr_str *path)
{
    char *const text = path->ptr;
    const size_t n = folder->bytes;

    if (path->bytes + 1 == n && memcmp(text, folder->ptr, n - 1) == 0)
        return "";
    if (path->bytes < n || memcmp(text, folder->ptr, n) != 0)
        return NULL;
    if (path->bytes > n && text[path->bytes - 1] == '/')
        text[path->bytes - 1] = '\0';
    return strchr(text + n, '/') || (path->bytes > n && !text[n]) ? NULL : text + n;
}

static zarr_status take_row(struct dav_reader *r, zarr_error *err)
{
    struct zr_url url = {0};
    struct zr_str origin, path;
    const char *name = NULL;
    zarr_status st = ZARR_OK;

    zr_str_init(&origin, r->page->alloc);
    zr_str_init(&path, r->page->alloc);
    ZR_TRY(parse_href(r, &url, err));
    zr_url_put_origin(&origin, &url);
    ZR_TRY(zr_str_status(&origin, err));
    if (!zr_url_decode(&path, url.path, strlen(url.path)))
        ZR_LEAVE(fail_row(r, "a place that is no text,", err));
    ZR_TRY(zr_str_status(&path, err));
    if (strcmp(zr_str_text(&origin), zr_str_text(&r->origin)) == 0)
        name = cut_name(&r->folder, &path);
    if (!name)
        ZR_LEAVE(fail_row(r, "a place outside of the folder,", err));
    if (*name)
        st = r->page->fn(r->page->user, name, r->row.is_folder, r->row.bytes, err);
out:
    zr_str_deinit(&origin);
    zr_str_deinit(&path);
    zr_url_deinit(&url);
    return st;
}

/* ---- elements ---- */

static zarr_status dav_begin(void *user, const char *name, zarr_error *err)
{
    struct dav_reader *r = user;

    if (!r->is_multistatus && !zr_streq(name, "DAV: multistatus"))
        return zr_fail(err, ZARR_ERR_CORRUPT, "it is no multistatus");
    r->is_multistatus = true;
    if (zr_streq(name, "DAV: response")) {
        r->in_row = true;
        r->in_props = false;
        r->status = 0;
        r->row = (struct dav_props){.bytes = UINT64_MAX};
        zr_str_clear(&r->href);
    } else if (zr_streq(name, "DAV: propstat")) {
        r->in_props = true;
        r->props = (struct dav_props){.bytes = UINT64_MAX};
    } else if (zr_streq(name, "DAV: collection")) {
        r->props.is_folder = true;
    }
    return ZARR_OK;
}

static zarr_status take_href(struct dav_reader *r, const char *text, zarr_error *err)
{
    const size_t blank = strspn(text, " \t\r\n");

    if (!r->in_row || r->in_props)
        return ZARR_OK;
    if (r->href.bytes > 0)
        return fail_row(r, "a row of several places,", err);
    zr_str_puts(&r->href, text + blank);
    while (r->href.bytes > 0 && strchr(" \t\r\n", r->href.ptr[r->href.bytes - 1]))
        r->href.ptr[--r->href.bytes] = '\0';
    return zr_str_status(&r->href, err);
}

/* "HTTP/1.1 200 OK" */
static zarr_status take_status(struct dav_reader *r, const char *text, zarr_error *err)
{
    const char *blank = strchr(text, ' ');
    uint64_t status = 0;

    if (!blank || strnlen(blank, 4) < 4 || !zr_parse_u64(blank + 1, 3, &status))
        return fail_row(r, "a wrong status at", err);
    if (r->in_props)
        r->props.is_missing = status / 100 != 2;
    else
        r->status = (uint32_t)status;
    return ZARR_OK;
}

static zarr_status end_row(struct dav_reader *r, zarr_error *err)
{
    r->in_row = false;
    if (r->status == 404 || r->status == 410) /* deleted meanwhile */
        return ZARR_OK;
    if (r->status != 0 && r->status / 100 != 2)
        return zr_fail(err, ZARR_ERR_IO,
                       "the server does not list \"%.100s\" (HTTP %" PRIu32 ")",
                       show_href(r), r->status);
    if (r->href.bytes == 0)
        return fail_row(r, "a row without a place,", err);
    return take_row(r, err);
}

static zarr_status dav_end(void *user, const char *name, const char *text,
                           zarr_error *err)
{
    struct dav_reader *r = user;

    if (zr_streq(name, "DAV: response"))
        return end_row(r, err);
    if (zr_streq(name, "DAV: propstat")) {
        r->in_props = false;
        if (!r->props.is_missing) {
            r->row.is_folder = r->row.is_folder || r->props.is_folder;
            r->row.bytes = ZR_MIN(r->row.bytes, r->props.bytes);
        }
    } else if (text && zr_streq(name, "DAV: href")) {
        return take_href(r, text, err);
    } else if (text && zr_streq(name, "DAV: status")) {
        return take_status(r, text, err);
    } else if (text && *text && zr_streq(name, "DAV: getcontentlength") &&
               !zr_parse_u64(text, strlen(text), &r->props.bytes)) {
        return fail_row(r, "a wrong length at", err);
    }
    return ZARR_OK;
}

zarr_status zr_http_dav_read(const struct zr_http_page *page, const char *text, size_t n,
                             zarr_error *err)
{
    struct dav_reader r = {.page = page};
    const struct zr_xml_sink sink = {.begin = dav_begin, .end = dav_end, .user = &r};
    zarr_status st = ZARR_OK;

    zr_str_init(&r.origin, page->alloc);
    zr_str_init(&r.folder, page->alloc);
    zr_str_init(&r.href, page->alloc);
    zr_url_put_origin(&r.origin, page->folder);
    ZR_TRY(zr_str_status(&r.origin, err));
    if (!zr_url_decode(&r.folder, page->folder->path, strlen(page->folder->path)))
        ZR_FAIL(err, ZARR_ERR_UNSUPPORTED, "the path of the folder is no UTF-8");
    ZR_TRY(zr_str_status(&r.folder, err));
    st = zr_xml_read(&sink, page->alloc, text, n, err);
out:
    zr_str_deinit(&r.origin);
    zr_str_deinit(&r.folder);
    zr_str_deinit(&r.href);
    return st;
}
