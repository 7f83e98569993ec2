/*
 * store/registry.c - stores by name. The name is also the URL scheme: "memory:" and
 * "s3://bucket/x" find their store by the text before the colon. The core's stores are
 * registered first and no name can be registered twice, so no plug-in can replace a core
 * store. A URL without a scheme is a local path. So is "data:2024", unless a store "data"
 * is registered.
 * Thread class: solo while it is filled, frozen afterwards.
 */
#include "store/registry_int.h"

#include <string.h>

struct zr_store_registry {
    struct zr_registry rows; /* struct zr_store_row */
};

zarr_status zr_store_registry_create(struct zr_store_registry **out,
                                     const zarr_allocator *alloc, zarr_error *err)
{
    struct zr_store_registry *r = zr_calloc(alloc, 1, sizeof *r);

    if (!r)
        return zr_fail_memory(err, sizeof *r);
    zr_registry_init(&r->rows, "store", alloc, NULL);
    *out = r;
    return ZARR_OK;
}

void zr_store_registry_free(struct zr_store_registry *r)
{
    const zarr_allocator *alloc = NULL;

    if (!r)
        return;
    alloc = r->rows.alloc;
    zr_registry_deinit(&r->rows);
    zr_free(alloc, r);
}

static const struct zr_store_row *registry_find(const struct zr_store_registry *r,
                                                const char *name, size_t n)
{
    return zr_map_get_n(&r->rows.names, name, n);
}

bool zr_store_registry_is_foreign(const struct zr_store_registry *r, const char *name,
                                  size_t n)
{
    const struct zr_store_row *row = registry_find(r, name, n);

    return row && (!row->native || zr_streq(row->entry.name, "gds"));
}

/* A scheme before "//" may have capitals. */
static const struct zr_store_row *registry_find_scheme(const struct zr_store_registry *r,
                                                       const char *url, size_t n)
{
    char name[64];

    if (n >= sizeof name)
        return NULL;
    for (size_t i = 0; i < n; i++)
        name[i] = (char)(url[i] >= 'A' && url[i] <= 'Z' ? url[i] - 'A' + 'a' : url[i]);
    return registry_find(r, name, n);
}

/* The length of a URL scheme: a letter, then letters, digits, '+', '-', '.'; lower case
 * only. */
static size_t registry_scheme_bytes(const char *text)
{
    if (*text < 'a' || *text > 'z')
        return 0;
    return strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789+-.");
}

static zarr_status registry_add(struct zr_store_registry *r, const zarr_store_vtable *vt,
                                const char *name, const struct zr_store_native *native,
                                const char *origin, zarr_error *err)
{
    const struct zr_store_row row = {
        .entry = {.name = name, .origin = origin}, .vt = *vt, .native = native};
    struct zr_store_row *added = NULL;

    ZR_CHECK(zr_registry_add(&r->rows, &row.entry, sizeof row, NULL, err));
    added = (void *)zr_registry_find(&r->rows, name);
    added->vt.name = added->entry.name; /* "file" and "gds" use that of "local" */
    return ZARR_OK;
}

zarr_status zr_store_registry_add_core(struct zr_store_registry *r, zarr_error *err)
{
    ZR_CHECK(registry_add(r, &zr_local_vtable, "local", &zr_local_native, "core", err));
    ZR_CHECK(registry_add(r, &zr_local_vtable, "file", &zr_local_native, "core", err));
    ZR_CHECK(registry_add(r, &zr_local_vtable, "gds", &zr_local_native, "core", err));
    return registry_add(r, &zr_memory_vtable, "memory", &zr_memory_native, "core", err);
}

zarr_status zr_store_vtable_read(zarr_store_vtable *out, const zarr_store_vtable *vtable,
                                 zarr_error *err)
{
    zarr_status st = ZARR_OK;

    if (!vtable)
        return zr_fail(err, ZARR_ERR_INVALID, "no store vtable");
    ZR_TRY(zr_struct_read(out, sizeof *out, offsetof(zarr_store_vtable, rename), vtable,
                          ZR_TAIL_IGNORE, "zarr_store_vtable", err));
    if (!out->caps || (!out->run && !out->submit))
        st = zr_fail(err, ZARR_ERR_INVALID,
                     "store vtable: caps and run or submit are needed");
    else if ((out->lock == NULL) != (out->unlock == NULL))
        st =
            zr_fail(err, ZARR_ERR_INVALID, "store vtable: lock and unlock come together");
out:
    return st;
}

zarr_status zr_store_register(struct zr_store_registry *r,
                              const zarr_store_vtable *vtable, const char *origin,
                              zarr_error *err)
{
    zarr_store_vtable vt;

    ZR_CHECK(zr_store_vtable_read(&vt, vtable, err));
    if (!vt.open || !vt.name || *vt.name == '\0' ||
        registry_scheme_bytes(vt.name) != strlen(vt.name))
        return zr_fail(
            err, ZARR_ERR_INVALID,
            "a registered store needs open and a name that can be a URL scheme");
    return registry_add(r, &vt, vt.name, NULL, origin, err);
}

size_t zr_store_registry_count(const struct zr_store_registry *r)
{
    return r->rows.n;
}

void zr_store_registry_item(const struct zr_store_registry *r, size_t i,
                            const char **name, const char **origin, const char **detail)
{
    /* of the library's stores that are registered as those of plug-ins are */
    static const struct {
        const char *name, *detail;
    } details[] = {
        {ZR_STORE_ZIP, "a zip archive; URL: a path that ends in .zip "
                       "or .ozx, or zip:path"},
        {"http", "the files of a web server, read-only; URL: http://host/path"},
        {"https", "the files of a web server, read-only; URL: https://host/path"},
        {"s3", "the objects of a bucket; URL: s3://bucket/prefix"}};
    const struct zr_store_row *row = (const void *)r->rows.entry[i];

    *name = row->entry.name;
    *origin = row->entry.origin;
    *detail = row->native ? row->native->detail : "";
    for (size_t k = 0; k < ZR_COUNT(details); k++)
        if (!row->native && zr_streq(row->entry.name, details[k].name))
            *detail = details[k].detail;
}

size_t zr_url_of_files(const char *url)
{
    static const char *const known[] = {"file://", "local://"};

    if (*url == '/') /* the usual case, at no cost */
        return 0;
    for (size_t i = 0; i < ZR_COUNT(known); i++)
        if (zr_starts_with(url, known[i]))
            return strlen(known[i]);
    return zr_starts_with(url, "file:/") ? strlen("file:") : 0; /* RFC 8089 */
}

size_t zr_url_of_server(const char *url)
{
    const size_t n = zr_url_scheme_bytes(url);

    if (n == 0 || !zr_starts_with(url + n, "//") || memchr(url, '.', n) ||
        zr_url_of_files(url) > 0 || zr_starts_with(url, "gds:") ||
        zr_starts_with(url, ZR_STORE_ZIP ":"))
        return 0;
    return n + 2;
}

zarr_status zr_store_show_url(char **out, const zarr_allocator *alloc, const char *url,
                              zarr_error *err)
{
    const size_t n = zr_url_scheme_bytes(url);
    const bool is_zip = zr_starts_with(url, ZR_STORE_ZIP ":");
    struct zr_str shown;
    zarr_status st = ZARR_OK;

    *out = NULL;
    if (!strpbrk(url, "@?#")) /* user info, a query, a fragment */
        return ZARR_OK;
    if (zr_url_of_files(url) > 0 || zr_starts_with(url, "gds:") ||
        (is_zip && zr_url_of_server(url + n) == 0))
        return ZARR_OK; /* a path of this machine: '?' and '@' are parts of names */
    zr_str_init(&shown, alloc);
    zr_url_put_shown(&shown, url);
    ZR_TRY(zr_str_status(&shown, err));
    if (!zr_streq(zr_str_text(&shown), url)) {
        *out = zr_str_take(&shown);
        if (!*out)
            ZR_FAIL_MEMORY(err, strlen(url));
    }
out:
    zr_str_deinit(&shown);
    return st;
}

size_t zarr_url_show(const char *url, char *text, size_t cap)
{
    struct zr_str shown;
    size_t n;

    zr_str_init(&shown, NULL);
    zr_url_put_shown(&shown, url);
    n = shown.failed ? 0 : shown.bytes;
    if (cap > 0) {
        const size_t m = ZR_MIN(n, cap - 1);

        if (m > 0)
            memcpy(text, shown.ptr, m);
        text[m] = '\0';
    }
    zr_str_deinit(&shown);
    return n;
}

const char *zr_url_folder(const char *url)
{
    if (zr_starts_with(url, "gds:"))
        return url + (zr_starts_with(url, "gds://") ? 6 : 4);
    return url + zr_url_of_files(url);
}

zarr_status zr_store_registry_for_url(const struct zr_store_registry *r, const char *url,
                                      const char *kind, const struct zr_store_row **out,
                                      zarr_error *err)
{
    const size_t server = zr_url_of_server(url), files = zr_url_of_files(url);
    const size_t n =
        server > 0 ? zr_url_scheme_bytes(url) - 1 : registry_scheme_bytes(url);
    const struct zr_store_row *archive = NULL;

    if (kind) {
        *out = registry_find(r, kind, strlen(kind));
        if (*out)
            return ZARR_OK;
        return zr_fail(err, ZARR_ERR_UNSUPPORTED, "no store is named %s", kind);
    }
    *out = n > 0 && url[n] == ':' ? registry_find_scheme(r, url, n) : NULL;
    if (*out && files == 0 && zr_url_of_archive(url) == 0)
        return ZARR_OK;
    if (!*out && files == 0 && n > 0 && zr_starts_with(url + n, "://"))
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "no store for URLs that begin with %.*s://", (int)n, url);
    if (zr_url_of_archive(url) > 0 || zr_path_is_archive(url + files))
        archive = registry_find(r, ZR_STORE_ZIP, strlen(ZR_STORE_ZIP));
    if (archive)
        *out = archive;
    else if (!*out)
        *out = registry_find(r, "local", 5);
    return *out ? ZARR_OK : zr_fail(err, ZARR_ERR_UNSUPPORTED, "no local store");
}
