/*
 * meta/fill_v2.c - fill values of v2. Arrays of objects may have any JSON value, and the
 * codec that stores the objects tells which element it is: the codec of text has none but
 * text, that of values has all. Also of such arrays: NaN and Infinity stay bare, as
 * Python writes and reads them, because the string "NaN" is another value.
 * Thread class: plain functions.
 */
#include "meta_int.h"

#include <string.h>

/* Sets m->fill_defined for a fill value that is an element: null has an element, too, but
 * means that none is defined. */
static zarr_status set_fill_defined(struct zr_array_meta *m, const struct zr_json *v,
                                    struct zr_json_doc *doc, zarr_error *err)
{
    struct zr_json *stored = NULL;
    zarr_status st = zr_chain_fill(m->chain, m->dtype, v, true, doc, &stored, err);

    if (st == ZARR_OK && zr_json_is(stored, ZR_JSON_NULL))
        m->fill_defined = false;
    return st;
}

zarr_status zr_meta_fill_v2_read(struct zr_array_meta *m, const struct zr_meta_env *env,
                                 const struct zr_json *v, zarr_error *err)
{
    static const struct zr_json none = {.type = ZR_JSON_NULL};
    const bool defined = v && v->type != ZR_JSON_NULL;
    const bool spelled = env->fill_spelled && zr_json_is(v, ZR_JSON_STRING);
    struct zr_json *element = NULL;
    struct zr_json_doc doc;
    zarr_status st = ZARR_OK;

    zr_json_doc_init(&doc, m->alloc);
    if (!spelled)
        st = zr_chain_fill(m->chain, m->dtype, v ? v : &none, false, &doc, &element, err);
    if (st != ZARR_OK) {
        zr_prefix(err, st, "fill_value");
        goto out;
    }
    ZR_TRY(zr_meta_fill(m, env, element ? element : defined ? v : NULL, err));
    m->fill_defined = defined;
    if (spelled)
        st = set_fill_defined(m, v, &doc, err);
out:
    zr_json_doc_deinit(&doc);
    return st;
}

zarr_status zr_meta_fill_v2_write(const struct zr_array_meta *m, struct zr_json_doc *doc,
                                  struct zr_json **out, zarr_error *err)
{
    const struct zr_order order = zr_meta_order(m);
    struct zr_json *stored = NULL;

    if (!m->fill_defined) {
        *out = zr_json_new(doc, ZR_JSON_NULL);
        return ZARR_OK;
    }
    ZR_CHECK(zr_dtype_fill_write_v2(m->dtype, m->fill, &order, doc, out, err));
    ZR_CHECK(zr_chain_fill(m->chain, m->dtype, *out, true, doc, &stored, err));
    *out = stored ? stored : *out;
    return ZARR_OK;
}

static void keep_tokens(struct zr_json *document)
{
    const char *dtype = zr_json_string(zr_json_get(document, "dtype"));
    uint64_t format = 0;

    if (dtype && *dtype && strchr("<>|=", *dtype))
        dtype++;
    if (dtype && zr_streq(dtype, "O") &&
        zr_json_u64(zr_json_get(document, "zarr_format"), &format) && format == 2)
        zr_json_keep_tokens(zr_json_get(document, "fill_value"));
}

void zr_meta_keep_tokens(struct zr_json *document)
{
    const struct zr_json *map = zr_json_get(document, "metadata");

    keep_tokens(document);
    if (!zr_json_get(document, "zarr_consolidated_format") ||
        !zr_json_is(map, ZR_JSON_OBJECT))
        return;
    for (struct zr_json *v = map->u.children.first; v; v = v->next)
        keep_tokens(v);
}
