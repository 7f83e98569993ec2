/*
 * http/list.c - listings, from servers that send the index of a folder as JSON, as nginx
 * with `autoindex_format json`, or that have WebDAV. The first listing finds out which.
 * Other servers have none, and the error says so: an empty listing would hide nodes.
 *
 * Folders are listed one after another. Their names come from the server, so all of them
 * are checked, and the limit `listing_keys` bounds them.
 * Thread class: shared; a listing is solo.
 */
#include "http/http_int.h"

#include "json/json.h"

#include <string.h>

enum {
    PAGE_BYTES_MOST = 256 << 20
};

struct http_listing {
    struct zr_http_store *store;
    const char *prefix;
    bool is_deep, is_ended;
    bool is_dav, is_refused; /* of the last request */
    const char *folder;      /* that is listed */
    zarr_store_list_fn fn;
    void *user;
    const zarr_cancel *cancel;
    struct zr_str url, body, key;
    struct zr_str folders; /* still to be listed, each with a NUL after it */
    uint64_t n_folders;    /* that were found */
};

/* ---- one folder ---- */

enum http_page {
    PAGE_HERE,
    PAGE_MISSING, /* there is no such folder */
    PAGE_REFUSED  /* the server does not list in this way */
};

static zarr_status fail_no_listing(uint32_t status, zarr_error *err)
{
    return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                   "the server does not list its files (HTTP %" PRIu32
                   "): the root group needs consolidated metadata, or the server WebDAV "
                   "or an index in JSON (nginx: autoindex on; autoindex_format json)",
                   status);
}

static bool is_listing(const struct http_listing *l, const struct zr_net_answer *a)
{
    const char *type = zr_net_answer_header(a, "Content-Type");

    if (!type)
        return false;
    if (!l->is_dav)
        return a->status == 200 && zr_starts_with(type, "application/json");
    return a->status == 207 &&
           (zr_starts_with(type, "application/xml") || zr_starts_with(type, "text/xml"));
}

static zarr_status page_begin(void *user, const struct zr_net_answer *a, zarr_error *err)
{
    struct http_listing *l = user;

    zr_str_clear(&l->body); /* what a lost connection left */
    l->is_refused = !is_listing(l, a);
    return l->is_refused ? fail_no_listing(a->status, err) : ZARR_OK;
}

static zarr_status page_write(void *user, const void *bytes, size_t n, zarr_error *err)
{
    struct http_listing *l = user;

    zr_str_append(&l->body, bytes, n);
    return zr_str_status(&l->body, err);
}

/* Fetches the listing of l->url in one way into l->body. */
static zarr_status fetch_page(struct http_listing *l, enum http_page *out,
                              uint32_t *status, zarr_error *err)
{
    static const char *const json[] = {"Accept: application/json", NULL};
    static const char *const dav[] = {"Depth: 1", "Content-Type: application/xml", NULL};
    static const char question[] =
        "<?xml version=\"1.0\"?><propfind xmlns=\"DAV:\"><prop><resourcetype/>"
        "<getcontentlength/></prop></propfind>";
    struct zr_net_request r = {
        .method = l->is_dav ? "PROPFIND" : "GET",
        .url = zr_str_text(&l->url),
        .headers = l->is_dav ? dav : json,
        .body = l->is_dav ? question : NULL,
        .body_bytes = l->is_dav ? sizeof question - 1 : 0,
        .sink = {.begin = page_begin, .write = page_write, .user = l},
        .max_bytes = PAGE_BYTES_MOST,
        .cancel = l->cancel,
    };
    zarr_status st = ZARR_OK;

    l->is_refused = false;
    st = zr_net_run(l->store->reader.net, &r, err);
    *status = r.answer.status;
    *out = PAGE_HERE;
    if (l->is_refused)
        st = ZARR_OK;
    if (st == ZARR_OK && (*status == 404 || *status == 410))
        *out = PAGE_MISSING;
    else if (st == ZARR_OK && (l->is_refused || *status == 403 || *status == 405 ||
                               *status == 400 || *status == 501))
        *out = PAGE_REFUSED;
    else if (st == ZARR_OK && *status / 100 != 2)
        st = zr_net_fail_status(err, &r);
    zr_net_request_deinit(&r);
    return st;
}

/* Fetches the listing of a folder as the server makes one. *there: false: there is no
 * such folder. */
static zarr_status fetch_listing(struct http_listing *l, const char *folder, bool *there,
                                 zarr_error *err)
{
    const bool has_index = atomic_load(&l->store->has_index);
    const bool has_dav = atomic_load(&l->store->has_dav);
    enum http_page page = PAGE_REFUSED, other = PAGE_REFUSED;
    uint32_t status = 0, other_status = 0;
    zarr_status st = ZARR_OK;

    zr_str_clear(&l->key);
    zr_str_printf(&l->key, "%s%s", folder, *folder ? "/" : "");
    zr_str_clear(&l->url);
    zr_url_put_key(&l->url, &l->store->url, zr_str_text(&l->key));
    ZR_TRY(zr_str_status(&l->url, err));
    l->is_dav = has_dav;
    ZR_TRY(fetch_page(l, &page, &status, err));
    if (page != PAGE_HERE && !has_index && !has_dav) {
        l->is_dav = true;
        ZR_TRY(fetch_page(l, &other, &other_status, err));
        page = other == PAGE_HERE ? other : page;
    }
    if (page == PAGE_HERE)
        atomic_store(l->is_dav ? &l->store->has_dav : &l->store->has_index, true);
    *there = page == PAGE_HERE;
    if (page == PAGE_REFUSED || (page == PAGE_MISSING && !*folder))
        st = fail_no_listing(status, err);
out:
    if (st != ZARR_OK && st != ZARR_ERR_UNSUPPORTED)
        zr_prefix(err, st, "%s/", folder);
    return st;
}

/* ---- rows ---- */

/* Appends a folder that has to be listed. */
static zarr_status push_folder(struct http_listing *l, const char *key, zarr_error *err)
{
    const uint64_t limit = l->store->reader.env.limits.listing_keys;

    if (++l->n_folders > limit)
        return zr_fail_limit(err, "listing_keys", limit,
                             "more than %" PRIu64 " folders in a listing", limit);
    zr_str_append(&l->folders, key, strlen(key) + 1);
    return zr_str_status(&l->folders, err);
}

static zarr_status list_row(void *user, const char *name, bool is_folder, uint64_t bytes,
                            zarr_error *err)
{
    struct http_listing *l = user;
    zarr_store_item item = {.bytes = is_folder ? UINT64_MAX : bytes,
                            .is_prefix = is_folder};
    zarr_status st = ZARR_OK;

    if (l->is_ended)
        return ZARR_OK;
    zr_str_clear(&l->key);
    zr_str_printf(&l->key, "%s%s%s", l->folder, *l->folder ? "/" : "", name);
    ZR_TRY(zr_str_status(&l->key, err));
    item.key = zr_str_text(&l->key);
    if (strchr(name, '/') || zr_key_validate(item.key, strlen(item.key), NULL) != ZARR_OK)
        ZR_FAIL(err, ZARR_ERR_CORRUPT, "the server lists a file whose name is no key");
    if (is_folder && l->is_deep)
        return push_folder(l, item.key, err);
    l->is_ended = l->fn(l->user, &item) != 0;
out:
    return st;
}

zarr_status zr_http_index_read(const struct zr_http_page *page, const char *text,
                               size_t n, zarr_error *err)
{
    struct zr_json_doc doc;
    zarr_status st = ZARR_OK;

    zr_json_doc_init(&doc, page->alloc);
    ZR_TRY(zr_json_parse(&doc, text, n, page->limits, err));
    if (!zr_json_is(doc.root, ZR_JSON_ARRAY))
        ZR_FAIL(err, ZARR_ERR_UNSUPPORTED, "it is no JSON array");
    for (const struct zr_json *row = doc.root->u.children.first; row; row = row->next) {
        const struct zr_json *name = zr_json_get(row, "name");
        const char *file = zr_json_string(name);
        uint64_t bytes = UINT64_MAX;
        char shown[80];

        if (!file)
            ZR_FAIL(err, ZARR_ERR_CORRUPT, "the server lists a file %s",
                    zr_json_excerpt(name, shown, sizeof shown));
        (void)zr_json_u64(zr_json_get(row, "size"), &bytes);
        ZR_TRY(page->fn(page->user, file,
                        zr_json_is_text(zr_json_get(row, "type"), "directory"), bytes,
                        err));
    }
out:
    zr_json_doc_deinit(&doc);
    return st;
}

static zarr_status list_page(struct http_listing *l, zarr_error *err)
{
    const struct zr_store_env *env = &l->store->reader.env;
    struct zr_url folder = {0};
    const struct zr_http_page page = {.alloc = env->alloc,
                                      .limits = &env->limits,
                                      .folder = &folder,
                                      .fn = list_row,
                                      .user = l};
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_url_parse(&folder, env->alloc, zr_str_text(&l->url), err));
    st = (l->is_dav ? zr_http_dav_read : zr_http_index_read)(&page, zr_str_text(&l->body),
                                                             l->body.bytes, err);
out:
    zr_url_deinit(&folder);
    return st;
}

static zarr_status list_folder(struct http_listing *l, const char *folder, bool *there,
                               zarr_error *err)
{
    zarr_status st = fetch_listing(l, folder, there, err);

    if (st != ZARR_OK || !*there)
        return st;
    l->folder = folder;
    st = list_page(l, err);
    return st == ZARR_OK ? st : zr_prefix(err, st, "%s/: the server's listing", folder);
}

/* ---- all folders ---- */

/* Takes the folder that was pushed last into `out`. */
static bool pop_folder(struct http_listing *l, struct zr_str *out)
{
    size_t at = l->folders.bytes;

    if (at == 0)
        return false;
    for (at--; at > 0 && l->folders.ptr[at - 1] != '\0';)
        at--;
    zr_str_clear(out);
    zr_str_puts(out, l->folders.ptr + at);
    l->folders.bytes = at;
    return true;
}

static zarr_status list_all(struct http_listing *l, zarr_error *err)
{
    struct zr_str folder;
    bool there = false;
    zarr_status st = ZARR_OK;

    zr_str_init(&folder, l->store->reader.env.alloc);
    ZR_TRY(list_folder(l, l->prefix, &there, err));
    if (!there) /* or the server lists nothing at all */
        ZR_TRY(fetch_listing(l, "", &there, err));
    while (!l->is_ended && pop_folder(l, &folder)) {
        ZR_TRY(zr_str_status(&folder, err));
        ZR_TRY(zr_cancel_check(l->cancel, err));
        ZR_TRY(list_folder(l, zr_str_text(&folder), &there, err));
        if (!there) /* its keys must not count as missing */
            ZR_FAIL(err, ZARR_ERR_IO, "%s/: the server lists this folder, but lacks it",
                    zr_str_text(&folder));
    }
out:
    zr_str_deinit(&folder);
    return st;
}

zarr_status zr_http_list(void *self, const char *prefix, uint32_t how,
                         zarr_store_list_fn fn, void *user, const zarr_cancel *cancel,
                         zarr_error *err)
{
    struct zr_http_store *s = self;
    struct http_listing l = {.store = s,
                             .prefix = prefix,
                             .is_deep = how != ZARR_LIST_DIRECTORY,
                             .fn = fn,
                             .user = user,
                             .cancel = cancel};
    zarr_status st = ZARR_OK;

    if (how == ZARR_LIST_DEBRIS)
        return ZARR_OK;
    zr_str_init(&l.url, s->reader.env.alloc);
    zr_str_init(&l.body, s->reader.env.alloc);
    zr_str_init(&l.key, s->reader.env.alloc);
    zr_str_init(&l.folders, s->reader.env.alloc);
    st = list_all(&l, err);
    zr_str_deinit(&l.url);
    zr_str_deinit(&l.body);
    zr_str_deinit(&l.key);
    zr_str_deinit(&l.folders);
    return st;
}
