/*
 * store/overlap.c - whether two places (each a prefix of a store) have keys in common,
 * however they are spelled. A copy asks this before it erases anything. Inside one store
 * the prefixes show it. For folders only the file system knows (local/same_folder.c). Two
 * handles of other stores have the same keys if their functions and their `self` are the
 * same, or if they are at one place (zarr_store_tell_place()). zr_store_place() names a
 * place, for another process to compare.
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

/* ---- places ---- */

/* A place as two texts. Places whose heads are equal have the same keys, which the tails
 * divide. */
struct overlap_place {
    struct zr_str head, tail;
    bool is_known;
};

static const char *place_text(const char *text)
{
    return text ? text : "";
}

static void place_note(void *user, const zarr_store_place *place)
{
    struct overlap_place *p = user;
    const char *prefix = place_text(place->prefix);
    size_t n;

    prefix += strspn(prefix, "/");
    for (n = strlen(prefix); n > 0 && prefix[n - 1] == '/';)
        n--;
    zr_str_clear(&p->head);
    zr_str_clear(&p->tail);
    zr_str_printf(&p->head, "%s://%s", place_text(place->scheme),
                  place_text(place->endpoint));
    if (*place_text(place->bucket))
        zr_str_printf(&p->head, "/%s", place->bucket);
    zr_str_append(&p->tail, prefix, n);
    p->is_known = true;
}

/* The place that the URL of a plug-in's store says. Without memory, and for a URL that is
 * none of a server, only equal URLs are one place. */
static void place_of_url(const zarr_store *s, zarr_store_place_fn fn, void *user)
{
    struct zr_str origin, path;
    zarr_store_place place = {
        .struct_size = sizeof place, .scheme = s->name, .endpoint = s->url};
    struct zr_url u;

    zr_str_init(&origin, s->env.alloc);
    zr_str_init(&path, s->env.alloc);
    if (zr_url_parse(&u, s->env.alloc, s->url, NULL) == ZARR_OK) {
        zr_url_put_origin(&origin, &u);
        if (zr_url_decode(&path, u.path, strlen(u.path)) && !origin.failed &&
            !path.failed) {
            place.endpoint = zr_str_text(&origin) + strlen(u.scheme) + strlen("://");
            place.prefix = zr_str_text(&path);
        }
        zr_url_deinit(&u);
    }
    fn(user, &place);
    zr_str_deinit(&origin);
    zr_str_deinit(&path);
}

void zarr_store_tell_place(const zarr_store *store, zarr_store_place_fn fn, void *user)
{
    if (!store)
        return;
    store = zr_store_of_key(store, "c/0");
    if (store->vt.place)
        store->vt.place(store->self, fn, user);
    else if (store->by_url && !store->native)
        place_of_url(store, fn, user);
}

static zarr_status place_init(struct overlap_place *p, const zarr_store *s,
                              const char *below, zarr_error *err)
{
    *p = (struct overlap_place){.is_known = false};
    zr_str_init(&p->head, s->env.alloc);
    zr_str_init(&p->tail, s->env.alloc);
    zarr_store_tell_place(s, place_note, p);
    if (*below && p->tail.bytes > 0)
        zr_str_putc(&p->tail, '/');
    zr_str_puts(&p->tail, below);
    ZR_CHECK(zr_str_status(&p->head, err));
    return zr_str_status(&p->tail, err);
}

static void place_deinit(struct overlap_place *p)
{
    zr_str_deinit(&p->head);
    zr_str_deinit(&p->tail);
}

static bool place_heads_equal(const struct overlap_place *p,
                              const struct overlap_place *q)
{
    return p->is_known && q->is_known && p->head.bytes > 0 &&
           zr_streq(zr_str_text(&p->head), zr_str_text(&q->head));
}

/* ---- two stores ---- */

static bool overlap_same_functions(const zarr_store *s, const zarr_store *t)
{
    return s->native == t->native && s->vt.run == t->vt.run &&
           s->vt.submit == t->vt.submit;
}

/* Whether both stores themselves tell that they are at one place. */
static bool overlap_same_place(const zarr_store *s, const zarr_store *t)
{
    struct overlap_place p, q = {.is_known = false};
    bool same;

    if (!s->vt.place || !t->vt.place)
        return false;
    same = place_init(&p, s, "", NULL) == ZARR_OK &&
           place_init(&q, t, "", NULL) == ZARR_OK && place_heads_equal(&p, &q) &&
           zr_streq(zr_str_text(&p.tail), zr_str_text(&q.tail));
    place_deinit(&p);
    place_deinit(&q);
    return same;
}

/* Two handles with the same functions and without a `self` are one store: the functions
 * have nothing else to work on. */
bool zr_store_same(const zarr_store *s, const zarr_store *t)
{
    if (s == t)
        return true;
    if (!overlap_same_functions(s, t))
        return false;
    if (s->self == t->self)
        return true;
    if (s->native)
        return s->native->same && s->native->same(s->self, t->self);
    return overlap_same_place(s, t);
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

static zarr_status overlap_by_place(const zarr_store *s, const char *a,
                                    const zarr_store *t, const char *b, bool *overlap,
                                    zarr_error *err)
{
    struct overlap_place p, q = {.is_known = false};
    zarr_status st = ZARR_OK;

    ZR_TRY(place_init(&p, s, a, err));
    ZR_TRY(place_init(&q, t, b, err));
    *overlap = place_heads_equal(&p, &q) &&
               overlap_texts(zr_str_text(&p.tail), zr_str_text(&q.tail));
out:
    place_deinit(&p);
    place_deinit(&q);
    return st;
}

static zarr_status overlap_plain(zarr_store *s, const char *a, zarr_store *t,
                                 const char *b, bool *overlap, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    if (zr_store_same(s, t) && overlap_texts(a, b))
        *overlap = true;
    else if (s->native && s->native == t->native)
        st = s->native->overlap ? s->native->overlap(s->self, a, t->self, b, overlap, err)
                                : ZARR_OK;
    else
        st = overlap_by_place(s, a, t, b, overlap, err);
    return st;
}

zarr_status zr_store_overlap(zarr_store *s, const char *a, zarr_store *t, const char *b,
                             bool *overlap, zarr_error *err)
{
    zarr_store *x[2], *y[2];
    const size_t n = overlap_parts(s, x), m = overlap_parts(t, y);

    *overlap = false;
    ZR_CHECK(zr_key_validate_prefix(a, strlen(a), err));
    ZR_CHECK(zr_key_validate_prefix(b, strlen(b), err));
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < m && !*overlap; k++)
            ZR_CHECK(overlap_plain(x[i], a, y[k], b, overlap, err));
    return ZARR_OK;
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
    struct overlap_place p = {.is_known = false};

    if (overlap_real_path(s, prefix, real))
        zr_str_puts(out, real);
    else if (overlap_real_path(s, "", real))
        zr_str_printf(out, "%s/%s", real, prefix);
    else if (place_init(&p, s, prefix, NULL) == ZARR_OK && p.is_known)
        zr_str_printf(out, "%s/%s", zr_str_text(&p.head), zr_str_text(&p.tail));
    else
        zr_str_printf(out, "%s:/%s", s->url, prefix);
    place_deinit(&p);
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
