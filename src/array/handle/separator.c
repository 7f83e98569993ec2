/*
 * array/handle/separator.c - v2 arrays whose .zarray has no dimension_separator although
 * old writers stored their chunks as 0/0 instead of 0.0. The stored chunks show it: first
 * the two possible names of the first chunk; if that chunk is missing, the names in the
 * array's own folder. An array without chunks gets the format's default, '.'.
 * Other metadata may name the wrong separator. Then all elements would be the fill value,
 * so a read that found no chunk looks at the first key that is stored.
 * Thread class: plain functions, before a state is shared.
 */
#include "array/stored/stored_int.h"

#include <string.h>

/* Makes the key encoding with the other separator. out->vt NULL: it has none. */
static zarr_status make_other_keys(struct zr_key_encoding *out, const zarr_array *a,
                                   const struct zr_key_encoding *keys, zarr_error *err)
{
    struct zr_json_doc doc;
    struct zr_str text;
    const char *separator = NULL;
    zarr_status st = ZARR_OK;

    *out = (struct zr_key_encoding){0};
    zr_json_doc_init(&doc, a->h.ctx->alloc);
    zr_str_init(&text, a->h.ctx->alloc);
    ZR_TRY(zr_key_encoding_canonical(keys, &text, err));
    if (text.bytes > 0)
        ZR_TRY(zr_json_parse(&doc, zr_str_text(&text), text.bytes, NULL, err));
    separator = zr_json_string(zr_json_get(doc.root, "separator"));
    if (!separator || (!zr_streq(separator, "/") && !zr_streq(separator, ".")))
        goto out;
    zr_json_set(&doc, doc.root, "separator",
                zr_json_new_text(&doc, *separator == '/' ? "." : "/"));
    if (!zr_json_is_ok(&doc))
        ZR_FAIL_MEMORY(err, doc.arena.used_bytes);
    ZR_TRY(zr_key_encoding_parse(out, &a->h.ctx->grids, keys->vt->name, doc.root, err));
out:
    zr_str_deinit(&text);
    zr_json_doc_deinit(&doc);
    return st;
}

static zarr_status use_slash(const zarr_array *a, struct zr_array_state *s,
                             zarr_error *err)
{
    struct zr_key_encoding keys;
    zarr_status st = make_other_keys(&keys, a, &s->meta.keys, err);

    if (st != ZARR_OK)
        return st;
    zr_key_encoding_deinit(&s->meta.keys);
    s->meta.keys = keys; /* moved */
    s->nested = true;
    return ZARR_OK;
}

static zarr_status first_chunk_is_there(const zarr_array *a, int32_t ndim, char separator,
                                        bool *there, const zarr_cancel *cancel,
                                        zarr_error *err)
{
    struct zr_str name, key;
    zarr_status st = ZARR_OK;

    zr_str_init(&name, a->h.ctx->alloc);
    zr_str_init(&key, a->h.ctx->alloc);
    for (int32_t d = 0; d < ndim; d++) {
        if (d)
            zr_str_putc(&name, separator);
        zr_str_putc(&name, '0');
    }
    ZR_TRY(zr_str_status(&name, err));
    ZR_TRY(zr_path_key(&key, a->h.path, zr_str_text(&name), err));
    st = zr_key_is_there(a->chunk_store, zr_str_text(&key), ZARR_STORE_OP_CHUNK, there,
                         cancel, err);
out:
    zr_str_deinit(&name);
    zr_str_deinit(&key);
    return st;
}

struct separator_search {
    const struct zr_array_state *s;
    bool dots, slashes;
};

static bool is_only_digits(const char *p)
{
    return *p && p[strspn(p, "0123456789")] == '\0';
}

static int on_separator_name(void *user, const zarr_store_item *item)
{
    struct separator_search *f = user;
    const char *name = zr_path_name(item->key);
    uint64_t chunk[ZARR_MAX_RANK];

    if (item->is_prefix)
        f->slashes = is_only_digits(name);
    else
        f->dots = zr_key_encoding_chunk(&f->s->meta.keys, f->s->meta.ndim, name, chunk);
    return f->dots || f->slashes;
}

zarr_status zr_separator_probe(const zarr_array *a, struct zr_array_state *s,
                               const zarr_cancel *cancel, zarr_error *err)
{
    struct separator_search f = {.s = s};

    if (s->meta.format != 2 || s->meta.separator_given || s->meta.ndim < 2)
        return ZARR_OK;
    ZR_CHECK(first_chunk_is_there(a, s->meta.ndim, '.', &f.dots, cancel, err));
    if (!f.dots)
        ZR_CHECK(first_chunk_is_there(a, s->meta.ndim, '/', &f.slashes, cancel, err));
    if (!f.dots && !f.slashes && zr_store_can(a->chunk_store, ZARR_STORE_CAP_LIST))
        ZR_CHECK(zr_store_list(a->chunk_store, a->h.path, ZARR_LIST_DIRECTORY,
                               on_separator_name, &f, cancel, err));
    if (f.slashes)
        ZR_CHECK(use_slash(a, s, err));
    return ZARR_OK;
}

zarr_status zr_separator_inherit(const zarr_array *a, const struct zr_array_state *from,
                                 struct zr_array_state *to, zarr_error *err)
{
    return from->nested && !to->meta.separator_given ? use_slash(a, to, err) : ZARR_OK;
}

/* ---- metadata that names the wrong separator -------------------------------- */

enum {
    KEYS_MAX = 1000 /* objects that are no chunks, before the search ends */
};

struct key_search {
    const struct zr_array_state *s;
    const struct zr_key_encoding *other;
    size_t skip; /* length of the path and its slash */
    int n_seen;
    bool found;
    uint64_t chunk[ZARR_MAX_RANK];
    struct zr_str key;
};

static int on_first_chunk(void *user, const zarr_store_item *item)
{
    struct key_search *f = user;
    const struct zr_array_meta *m = &f->s->meta;
    const char *name = item->key + ZR_MIN(f->skip, strlen(item->key));

    if (zr_key_encoding_chunk(&m->keys, m->ndim, name, f->chunk))
        return 1;
    f->found = zr_key_encoding_chunk(f->other, m->ndim, name, f->chunk);
    for (int32_t d = 0; f->found && d < m->ndim; d++)
        f->found = f->chunk[d] < zr_grid_n_chunks(&m->grid, d);
    if (f->found)
        zr_str_puts(&f->key, item->key);
    return f->found || ++f->n_seen == KEYS_MAX;
}

/* Fails if the chunk that was found is not stored under its own key, too. */
static zarr_status judge_other_key(const zarr_array *a, const struct key_search *f,
                                   const zarr_cancel *cancel, zarr_error *err)
{
    struct zr_str own;
    bool there = false;
    zarr_status st = ZARR_OK;

    zr_str_init(&own, a->h.ctx->alloc);
    ZR_TRY(zr_str_status(&f->key, err));
    ZR_TRY(zr_array_key(a, f->s, f->chunk, &own, err));
    ZR_TRY(zr_key_is_there(a->chunk_store, zr_str_text(&own), ZARR_STORE_OP_CHUNK, &there,
                           cancel, err));
    if (!there)
        st = zr_fail(err, ZARR_ERR_CORRUPT,
                     "the metadata names the wrong separator of chunk keys: \"%s\" is "
                     "stored where \"%s\" is expected; correct %s",
                     zr_str_text(&f->key), zr_str_text(&own),
                     f->s->meta.format == 2 ? "dimension_separator in .zarray"
                                            : "chunk_key_encoding in zarr.json");
out:
    zr_str_deinit(&own);
    return st;
}

zarr_status zr_separator_check(zarr_array *a, const struct zr_array_state *s,
                               const zarr_cancel *cancel, zarr_error *err)
{
    struct key_search f = {.s = s, .skip = *a->h.path ? strlen(a->h.path) + 1 : 0};
    struct zr_key_encoding other = {0};
    zarr_error e = {0};
    zarr_status st = ZARR_OK;

    if (atomic_load(&a->keys_seen) || !zr_store_can(a->chunk_store, ZARR_STORE_CAP_LIST))
        return ZARR_OK;
    zr_str_init(&f.key, a->h.ctx->alloc);
    ZR_TRY(make_other_keys(&other, a, &s->meta.keys, err));
    f.other = &other;
    if (other.vt) /* a store that cannot be listed tells nothing */
        st = zr_store_list(a->chunk_store, a->h.path, ZARR_LIST_RECURSIVE, on_first_chunk,
                           &f, cancel, &e);
    st = st == ZARR_ERR_NO_MEMORY ? zr_pass(err, st, &e) : ZARR_OK;
    if (st == ZARR_OK && f.found)
        st = judge_other_key(a, &f, cancel, err);
    atomic_store(&a->keys_seen, st == ZARR_OK);
out:
    if (other.vt)
        zr_key_encoding_deinit(&other);
    zr_str_deinit(&f.key);
    return st;
}
