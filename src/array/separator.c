/*
 * array/separator.c - v2 arrays whose .zarray has no dimension_separator although old
 * writers stored their chunks as 0/0 instead of 0.0. The stored chunks show it: first the
 * two possible names of the first chunk; if that chunk is missing, the names in the
 * array's own folder. An array without chunks gets the format's default, '.'.
 * Thread class: plain functions, before a state is shared.
 */
#include "array/array_int.h"

#include <string.h>

static zarr_status use_slash(const zarr_array *a, struct zr_array_state *s,
                             zarr_error *err)
{
    struct zr_key_encoding keys = {0};
    struct zr_json *config = NULL;
    struct zr_json_doc doc;
    zarr_status st = ZARR_OK;

    zr_json_doc_init(&doc, s->alloc);
    config = zr_json_new(&doc, ZR_JSON_OBJECT);
    zr_json_set(&doc, config, "separator", zr_json_new_text(&doc, "/"));
    if (!zr_json_ok(&doc))
        ZR_TRY(zr_fail_memory(err, doc.arena.used_bytes));
    ZR_TRY(zr_key_encoding_parse(&keys, &a->h.ctx->grids, "v2", config, err));
    zr_key_encoding_deinit(&s->meta.keys);
    s->meta.keys = keys; /* moved */
    s->nested = true;
out:
    zr_json_doc_deinit(&doc);
    return st;
}

static zarr_status first_chunk_is_there(const zarr_array *a, int32_t ndim, char separator,
                                        bool *there, zarr_error *err)
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
    zr_path_key(&key, a->h.path, zr_str_text(&name));
    ZR_TRY(zr_str_status(&key, err));
    st = zr_key_is_there(a->chunk_store, zr_str_text(&key), ZARR_STORE_OP_CHUNK, there,
                         err);
out:
    zr_str_deinit(&name);
    zr_str_deinit(&key);
    return st;
}

struct separator_search {
    const struct zr_array_state *s;
    bool dots, slashes;
};

static bool only_digits(const char *p)
{
    return *p && p[strspn(p, "0123456789")] == '\0';
}

static int on_separator_name(void *user, const zarr_store_item *item)
{
    struct separator_search *f = user;
    const char *name = zr_path_name(item->key);
    uint64_t chunk[ZARR_MAX_RANK];

    if (item->is_prefix)
        f->slashes = only_digits(name);
    else
        f->dots = zr_key_encoding_chunk(&f->s->meta.keys, f->s->meta.ndim, name, chunk);
    return f->dots || f->slashes;
}

zarr_status zr_separator_probe(const zarr_array *a, struct zr_array_state *s,
                               zarr_error *err)
{
    struct separator_search f = {.s = s};
    zarr_status st = ZARR_OK;

    if (s->meta.format != 2 || s->meta.separator_given || s->meta.ndim < 2)
        return ZARR_OK;
    ZR_TRY(first_chunk_is_there(a, s->meta.ndim, '.', &f.dots, err));
    if (!f.dots)
        ZR_TRY(first_chunk_is_there(a, s->meta.ndim, '/', &f.slashes, err));
    if (!f.dots && !f.slashes && zr_store_can(a->chunk_store, ZARR_STORE_CAP_LIST))
        ZR_TRY(zr_store_list(a->chunk_store, a->h.path, ZARR_LIST_DIRECTORY,
                             on_separator_name, &f, err));
    if (f.slashes)
        ZR_TRY(use_slash(a, s, err));
out:
    return st;
}

zarr_status zr_separator_inherit(const zarr_array *a, const struct zr_array_state *from,
                                 struct zr_array_state *to, zarr_error *err)
{
    return from->nested && !to->meta.separator_given ? use_slash(a, to, err) : ZARR_OK;
}
