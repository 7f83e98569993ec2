/*
 * store/overlap.c - whether two places (each a prefix of a store) have keys in common,
 * however they are spelled. A copy asks this before it erases anything. Inside one store
 * the prefixes show it. For folders only the file system knows (local/same_folder.c). Two
 * handles of other stores have the same keys if their functions are the same, and also
 * their `self` or the URL that they were opened with. zr_store_place() names a place, for
 * another process to compare.
 * Thread class: any thread.
 */
#include "store/store_int.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static bool overlap_texts(const char *a, const char *b)
{
    return strcmp(a, b) == 0 || zr_key_is_below(a, b) || zr_key_is_below(b, a);
}

static bool overlap_same_functions(const zarr_store *s, const zarr_store *t)
{
    return s->native == t->native && s->vt.run == t->vt.run &&
           s->vt.submit == t->vt.submit;
}

/* Two handles with the same functions and without a `self` are one store: the functions
 * have nothing else to work on. */
bool zr_store_same(const zarr_store *s, const zarr_store *t)
{
    if (s == t)
        return true;
    if (!overlap_same_functions(s, t))
        return false;
    return s->self == t->self ||
           (s->native && s->native->same && s->native->same(s->self, t->self));
}

/* True if both handles have the same URL and nothing better is known. */
static bool overlap_same_url(const zarr_store *s, const zarr_store *t)
{
    return overlap_same_functions(s, t) && !s->native && s->by_url && t->by_url &&
           strcmp(s->url, t->url) == 0;
}

/* The parts of a store: documents and chunks of a composite one, else the store itself.
 * Returns how many. */
static size_t overlap_parts(zarr_store *s, zarr_store *out[2])
{
    if (!s->native || !s->native->part) {
        out[0] = s;
        return 1;
    }
    out[0] = s->native->part(s->self, ZR_DOC_V3);
    out[1] = s->native->part(s->self, "c/0");
    return 2;
}

static zarr_status overlap_plain(zarr_store *s, const char *a, zarr_store *t,
                                 const char *b, bool *overlap, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    if ((zr_store_same(s, t) || overlap_same_url(s, t)) && overlap_texts(a, b))
        *overlap = true;
    else if (s->native && s->native == t->native && s->native->overlap)
        ZR_TRY(s->native->overlap(s->self, a, t->self, b, overlap, err));
out:
    return st;
}

zarr_status zr_store_overlap(zarr_store *s, const char *a, zarr_store *t, const char *b,
                             bool *overlap, zarr_error *err)
{
    zarr_store *x[2], *y[2];
    const size_t n = overlap_parts(s, x), m = overlap_parts(t, y);
    zarr_status st = ZARR_OK;

    *overlap = false;
    ZR_TRY(zr_key_validate_prefix(a, strlen(a), err));
    ZR_TRY(zr_key_validate_prefix(b, strlen(b), err));
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < m && !*overlap; k++)
            ZR_TRY(overlap_plain(x[i], a, y[k], b, overlap, err));
out:
    return st;
}

/* Resolves links also below the root, unless the prefix does not exist. */
static bool overlap_real_path(const zarr_store *s, const char *prefix, char *real)
{
    struct zr_str joined;
    bool found = false;

    if (s->native != &zr_local_native)
        return false;
    zr_str_init(&joined, s->env.alloc);
    zr_str_printf(&joined, "%s/%s", zr_url_folder(s->url), prefix);
    found = !joined.failed && realpath(zr_str_text(&joined), real) != NULL;
    zr_str_deinit(&joined);
    return found;
}

void zr_store_place(struct zr_str *out, const zarr_store *s, const char *prefix)
{
    char real[PATH_MAX];

    if (overlap_real_path(s, prefix, real))
        zr_str_puts(out, real);
    else if (overlap_real_path(s, "", real))
        zr_str_printf(out, "%s/%s", real, prefix);
    else
        zr_str_printf(out, "%s:/%s", s->url, prefix);
}

zarr_status zarr_store_overlap(zarr_store *store, const char *prefix, zarr_store *other,
                               const char *other_prefix, int *overlap, zarr_error *err)
{
    bool yes = false;
    zarr_status st = ZARR_OK;

    ZR_NEED(store, err);
    ZR_NEED(other, err);
    *overlap = 0;
    if (!prefix || !other_prefix)
        return zr_fail(err, ZARR_ERR_INVALID, "no prefix");
    st = zr_store_overlap(store, prefix, other, other_prefix, &yes, err);
    *overlap = yes;
    return st == ZARR_OK ? st : zr_prefix(err, st, "%s", store->url);
}
