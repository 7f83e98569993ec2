/*
 * http/list.c - listings, from servers that send the index of a folder as JSON: nginx
 * with `autoindex_format json`. Other servers have none, and the error says so: an empty
 * listing would hide nodes.
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
    zarr_store_list_fn fn;
    void *user;
    const zarr_cancel *cancel;
    struct zr_str url, body, key;
    struct zr_str folders; /* still to be listed, each with a NUL after it */
    uint64_t n_folders;    /* that were found */
};

/* ---- one folder ---- */

static zarr_status page_write(void *user, const void *bytes, size_t n, zarr_error *err)
{
    struct http_listing *l = user;

    zr_str_append(&l->body, bytes, n);
    return zr_str_status(&l->body, err);
}

static zarr_status fail_no_listing(uint32_t status, zarr_error *err)
{
    return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                   "the server does not list its files (HTTP %" PRIu32
                   "): the root group needs consolidated metadata, or the server an "
                   "index in JSON (nginx: autoindex on; autoindex_format json)",
                   status);
}

static bool is_json(const struct zr_net_answer *a)
{
    const char *type = zr_net_answer_header(a, "Content-Type");

    return type && zr_starts_with(type, "application/json");
}

static zarr_status page_begin(void *user, const struct zr_net_answer *a, zarr_error *err)
{
    struct http_listing *l = user;

    zr_str_clear(&l->body); /* what a lost connection left */
    return is_json(a) ? ZARR_OK : fail_no_listing(a->status, err);
}

/* Fetches the index of a folder into l->body. *there: false: there is no such folder. */
static zarr_status fetch_page(struct http_listing *l, const char *folder, bool *there,
                              zarr_error *err)
{
    static const char *const headers[] = {"Accept: application/json", NULL};
    struct zr_net_request r = {
        .method = "GET",
        .headers = headers,
        .sink = {.begin = page_begin, .write = page_write, .user = l},
        .max_bytes = PAGE_BYTES_MOST,
        .cancel = l->cancel,
    };
    zarr_status st = ZARR_OK;

    *there = true;
    zr_str_clear(&l->key);
    zr_str_printf(&l->key, "%s%s", folder, *folder ? "/" : "");
    zr_str_clear(&l->url);
    zr_url_put_key(&l->url, &l->store->url, zr_str_text(&l->key));
    ZR_TRY(zr_str_status(&l->url, err));
    r.url = zr_str_text(&l->url);
    ZR_TRY(zr_net_run(l->store->net, &r, err));
    if (r.answer.status == 200)
        goto out;
    *there = false;
    switch (r.answer.status) {
    case 404:
    case 410:
        if (*folder)
            goto out;
        st = fail_no_listing(r.answer.status, err);
        break;
    case 403:
    case 405:
        st = fail_no_listing(r.answer.status, err);
        break;
    default:
        st = zr_net_fail_status(err, &r);
    }
out:
    zr_net_request_deinit(&r);
    return st;
}

/* ---- rows ---- */

static zarr_status fail_name(const struct zr_json *name, const char *folder,
                             zarr_error *err)
{
    char text[80];

    return zr_fail(err, ZARR_ERR_CORRUPT, "%s/: the server lists a file %s", folder,
                   zr_json_excerpt(name, text, sizeof text));
}

/* Appends a folder that has to be listed. */
static zarr_status push_folder(struct http_listing *l, const char *key, zarr_error *err)
{
    const uint64_t limit = l->store->env.limits.listing_keys;

    if (++l->n_folders > limit)
        return zr_fail_limit(err, "listing_keys", limit,
                             "more than %" PRIu64 " folders in a listing", limit);
    zr_str_append(&l->folders, key, strlen(key) + 1);
    return zr_str_status(&l->folders, err);
}

static zarr_status list_row(struct http_listing *l, const char *folder,
                            const struct zr_json *row, zarr_error *err)
{
    const struct zr_json *name = zr_json_get(row, "name");
    const char *text = zr_json_string(name);
    const bool is_folder = zr_json_is_text(zr_json_get(row, "type"), "directory");
    zarr_store_item item = {.bytes = UINT64_MAX, .is_prefix = is_folder};
    zarr_status st = ZARR_OK;

    if (!text || strchr(text, '/'))
        return fail_name(name, folder, err);
    zr_str_clear(&l->key);
    zr_str_printf(&l->key, "%s%s%s", folder, *folder ? "/" : "", text);
    ZR_TRY(zr_str_status(&l->key, err));
    item.key = zr_str_text(&l->key);
    if (zr_key_validate(item.key, strlen(item.key), NULL) != ZARR_OK)
        return fail_name(name, folder, err);
    if (is_folder && l->is_deep)
        return push_folder(l, item.key, err);
    if (!is_folder)
        (void)zr_json_u64(zr_json_get(row, "size"), &item.bytes);
    l->is_ended = l->fn(l->user, &item) != 0;
out:
    return st;
}

static zarr_status list_folder(struct http_listing *l, const char *folder, bool *there,
                               zarr_error *err)
{
    struct zr_json_doc doc;
    zarr_status st = ZARR_OK;

    zr_json_doc_init(&doc, l->store->env.alloc);
    ZR_TRY(fetch_page(l, folder, there, err));
    if (!*there)
        goto out;
    st = zr_json_parse(&doc, zr_str_text(&l->body), l->body.bytes, &l->store->env.limits,
                       err);
    if (st != ZARR_OK)
        ZR_TRY(zr_prefix(err, st, "%s/: the server's index", folder));
    if (!zr_json_is(doc.root, ZR_JSON_ARRAY))
        ZR_FAIL(err, ZARR_ERR_UNSUPPORTED, "%s/: the server's index is no JSON array",
                folder);
    for (const struct zr_json *row = doc.root->u.children.first; row && !l->is_ended;
         row = row->next)
        ZR_TRY(list_row(l, folder, row, err));
out:
    zr_json_doc_deinit(&doc);
    return st;
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

    zr_str_init(&folder, l->store->env.alloc);
    ZR_TRY(list_folder(l, l->prefix, &there, err));
    if (!there) /* or the server lists nothing at all */
        ZR_TRY(fetch_page(l, "", &there, err));
    while (!l->is_ended && pop_folder(l, &folder)) {
        ZR_TRY(zr_str_status(&folder, err));
        ZR_TRY(zr_cancel_check(l->cancel, err));
        ZR_TRY(list_folder(l, zr_str_text(&folder), &there, err));
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
    zr_str_init(&l.url, s->env.alloc);
    zr_str_init(&l.body, s->env.alloc);
    zr_str_init(&l.key, s->env.alloc);
    zr_str_init(&l.folders, s->env.alloc);
    st = list_all(&l, err);
    zr_str_deinit(&l.url);
    zr_str_deinit(&l.body);
    zr_str_deinit(&l.key);
    zr_str_deinit(&l.folders);
    return st;
}
