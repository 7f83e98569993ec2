/*
 * array/handle/origin.c - what an array's own documents leave open and the program that
 * wrote them decides. netCDF-C's mode "zarr" writes shuffle with elementsize 0, which
 * means the size of the data type, and leaves no mark at the array: only the root has the
 * attribute _NCProperties. So if the size matters, this file looks for the attribute in
 * the groups above, also above the store if an array was opened alone. Other arrays cost
 * nothing. Thread class: plain functions, before a state is shared.
 */
#include "array/array_int.h"

#include <string.h>

#define NETCDF_MARK "_NCProperties"

/* What cannot be read has no mark: it must not keep the array from being opened. */
zarr_status zr_origin_mark_at(zarr_store *store, const char *path, bool *found,
                              const zarr_cancel *cancel, zarr_error *err)
{
    const struct zr_find where = {.store = store, .path = path, .cancel = cancel};
    struct zr_parsed *attrs = NULL;
    zarr_error e = {0};
    const zarr_status st = zr_attrs_read(&attrs, &where, NULL, &e);

    *found = attrs && zr_json_get(attrs->json.root, NETCDF_MARK);
    zr_parsed_free(attrs);
    return st == ZARR_ERR_NO_MEMORY || st == ZARR_ERR_CANCELLED ? zr_pass(err, st, &e)
                                                                : ZARR_OK;
}

/* Looks at all groups above the node in this store. */
static zarr_status find_mark(zarr_store *store, const char *path, bool *found,
                             const zarr_cancel *cancel, zarr_error *err)
{
    const zarr_context *ctx = zr_store_context(store);
    char *parent = zr_strdup(ctx->alloc, path);
    zarr_status st = ZARR_OK;

    *found = false;
    if (!parent)
        return zr_fail_memory(err, strlen(path));
    while (*parent && !*found) {
        char *slash = strrchr(parent, '/');

        *(slash ? slash : parent) = '\0';
        ZR_TRY(zr_origin_mark_at(store, parent, found, cancel, err));
    }
out:
    zr_free(ctx->alloc, parent);
    return st;
}

/* Looks above the folder of a local store. What cannot be read there has no mark. */
static bool has_mark_above(const zarr_store *store)
{
    zarr_context *ctx = (zarr_context *)(uintptr_t)zr_store_context(store);
    zarr_location *at = NULL;
    zarr_store *root = NULL;
    bool found = false;

    if (zarr_location_parse(&at, ctx, zarr_store_url(store), NULL) == ZARR_OK &&
        at->is_local && *at->path &&
        zarr_store_open(&root, ctx, at->url, NULL, NULL) == ZARR_OK &&
        find_mark(root, at->path, &found, NULL, NULL) != ZARR_OK)
        found = false;
    zarr_store_free(root);
    zarr_location_free(at);
    return found;
}

zarr_status zr_origin_mark_above(zarr_store *store, const char *path, bool *found,
                                 const zarr_cancel *cancel, zarr_error *err)
{
    const zarr_status st = find_mark(store, path, found, cancel, err);

    *found = *found || (st == ZARR_OK && has_mark_above(store));
    return st;
}

zarr_status zr_origin_state(struct zr_array_state **out, const zarr_array *a,
                            const struct zr_array_source *src, const zarr_cancel *cancel,
                            zarr_error *err)
{
    struct zr_array_source again = *src;
    bool zero = false;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_array_state_new(out, a->h.ctx, src, err));
    if (!a->may_probe || !zr_array_meta_shuffle_is_unclear(&(*out)->meta, &zero))
        goto out;
    ZR_TRY(zr_origin_mark_above(a->h.store, a->h.path, &again.nczarr, cancel, err));
    if (again.nczarr) {
        zr_array_state_free(*out);
        *out = NULL;
        st = zr_array_state_new(out, a->h.ctx, &again, err);
    }
out:
    if (st != ZARR_OK) {
        zr_array_state_free(*out);
        *out = NULL;
    }
    return st;
}

void zr_origin_warn(const zarr_array *a, const struct zr_array_state *s)
{
    bool zero = false;

    if (s->meta.fill_null)
        zr_log(&a->h.ctx->log, ZARR_LOG_WARN,
               "/%s: fill_value is null, which data type %s does not have: missing "
               "elements are zero",
               a->h.path, zr_dtype_label(s->meta.dtype));
    if (zr_array_meta_shuffle_is_unclear(&s->meta, &zero) && zero)
        zr_log(&a->h.ctx->log, ZARR_LOG_WARN,
               "/%s: shuffle has elementsize 0, which numcodecs does not shuffle and "
               "netCDF-C does: the elements are wrong if netCDF-C wrote them",
               a->h.path);
}
