/*
 * store/registry.c - stores by name. The name is also the URL scheme, so
 * "memory:" and "s3://bucket/x" find their store by the text before the colon.
 * The core's rows come first and no name can be registered twice, so nothing
 * can take a core store's place. A URL without a scheme is a local path; so is
 * "data:2024" unless somebody registered "data".
 * Thread class: solo while it is filled, frozen afterwards.
 */
#include "store/registry_int.h"

#include <string.h>

struct zr_store_registry {
    const zarr_allocator *alloc;
    struct zr_store_row *row;
    size_t n, cap;
};

zarr_status zr_store_registry_create(struct zr_store_registry **out,
                                     const zarr_allocator *alloc, zarr_error *err)
{
    struct zr_store_registry *r = zr_calloc(alloc, 1, sizeof *r);

    if (r == NULL)
        return zr_fail_memory(err, sizeof *r);
    r->alloc = alloc;
    *out = r;
    return ZARR_OK;
}

void zr_store_registry_free(struct zr_store_registry *r)
{
    if (r == NULL)
        return;
    for (size_t i = 0; i < r->n; i++) {
        zr_free(r->alloc, r->row[i].name);
        zr_free(r->alloc, r->row[i].origin);
    }
    zr_free(r->alloc, r->row);
    zr_free(r->alloc, r);
}

static const struct zr_store_row *registry_find(const struct zr_store_registry *r,
                                                const char *name, size_t n)
{
    for (size_t i = 0; i < r->n; i++)
        if (strncmp(r->row[i].name, name, n) == 0 && r->row[i].name[n] == '\0')
            return &r->row[i];
    return NULL;
}

/* A URL scheme: a letter, then letters, digits, '+', '-', '.'; lower case only. */
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
    struct zr_store_row *row;
    const struct zr_store_row *old = registry_find(r, name, strlen(name));
    zarr_status st = ZARR_OK;

    if (old != NULL)
        return zr_fail(err, ZARR_ERR_EXISTS, "there is a store named %s already, by %s",
                       name, old->origin);
    ZR_TRY(zr_grow(r->alloc, &r->row, &r->cap, r->n + 1, sizeof *r->row, err));
    row = &r->row[r->n];
    *row = (struct zr_store_row){.vt = *vt, .native = native};
    row->name = zr_strdup(r->alloc, name);
    row->origin = zr_strdup(r->alloc, origin != NULL ? origin : "");
    if (row->name == NULL || row->origin == NULL) {
        zr_free(r->alloc, row->name);
        zr_free(r->alloc, row->origin);
        st = zr_fail_memory(err, strlen(name));
        goto out;
    }
    row->vt.name = row->name;
    r->n++;
out:
    return st;
}

zarr_status zr_store_registry_add_core(struct zr_store_registry *r, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    ZR_TRY(registry_add(r, &zr_local_vtable, "local", &zr_local_native, "core", err));
    ZR_TRY(registry_add(r, &zr_local_vtable, "file", &zr_local_native, "core", err));
    ZR_TRY(registry_add(r, &zr_memory_vtable, "memory", &zr_memory_native, "core", err));
out:
    return st;
}

zarr_status zr_store_vtable_read(zarr_store_vtable *out, const zarr_store_vtable *vtable,
                                 zarr_error *err)
{
    zarr_status st = ZARR_OK;

    if (vtable == NULL)
        return zr_fail(err, ZARR_ERR_INVALID, "no store vtable");
    ZR_TRY(zr_struct_read(out, sizeof *out, offsetof(zarr_store_vtable, rename), vtable,
                          ZR_TAIL_IGNORE, "zarr_store_vtable", err));
    if (out->caps == NULL || (out->run == NULL && out->submit == NULL))
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
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_store_vtable_read(&vt, vtable, err));
    if (vt.open == NULL || vt.name == NULL || *vt.name == '\0' ||
        registry_scheme_bytes(vt.name) != strlen(vt.name)) {
        st = zr_fail(err, ZARR_ERR_INVALID,
                     "a registered store needs open and a name that can be a URL scheme");
        goto out;
    }
    st = registry_add(r, &vt, vt.name, NULL, origin, err);
out:
    return st;
}

size_t zr_store_registry_count(const struct zr_store_registry *r)
{
    return r->n;
}

void zr_store_registry_item(const struct zr_store_registry *r, size_t i,
                            const char **name, const char **origin, const char **detail)
{
    *name = r->row[i].name;
    *origin = r->row[i].origin;
    *detail = r->row[i].native != NULL ? r->row[i].native->detail : "";
}

zarr_status zr_store_registry_for_url(const struct zr_store_registry *r, const char *url,
                                      const char *kind, const struct zr_store_row **out,
                                      zarr_error *err)
{
    size_t n = registry_scheme_bytes(url);

    if (kind != NULL) {
        *out = registry_find(r, kind, strlen(kind));
        if (*out != NULL)
            return ZARR_OK;
        return zr_fail(err, ZARR_ERR_UNSUPPORTED, "no store is named %s", kind);
    }
    *out = n > 0 && url[n] == ':' ? registry_find(r, url, n) : NULL;
    if (*out != NULL)
        return ZARR_OK;
    if (n > 0 && zr_starts_with(url + n, "://"))
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "no store for URLs that begin with %.*s://", (int)n, url);
    *out = registry_find(r, "local", 5);
    return *out != NULL ? ZARR_OK : zr_fail(err, ZARR_ERR_UNSUPPORTED, "no local store");
}
