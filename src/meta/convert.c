/*
 * meta/convert.c - makes the same array in the other format. The new document is written
 * from the struct's fields and then read like any other, so a conversion cannot make what
 * reading would refuse. v2 can express less: no sharding, no permutation except the full
 * reversal, no codec that numcodecs does not know, no key encoding except its own, no
 * unnamed dimension beside a named one, no NaN except the usual one. Each is refused by
 * name.
 * Thread class: plain functions; the result is solo until it is handed on.
 */
#include "meta_int.h"

#include <stdio.h>
#include <string.h>

/* ---- to v2 ------------------------------------------------------------------ */

static bool is_codec(const struct zarr_codec_spec *s, enum zr_structure_kind kind)
{
    return s->structure.kind == kind;
}

/* order: 'C' or 'F' after this transpose; in, the order before it. */
static zarr_status reverse_order(const struct zarr_codec_spec *s, int32_t ndim,
                                 char *order, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    uint8_t to[ZARR_MAX_RANK] = {0};
    bool same = true, reversed = true;

    ZR_TRY(zr_spec_order(s, ndim, to, err));
    for (int32_t d = 0; d < ndim; d++) {
        same = same && to[d] == d;
        reversed = reversed && to[d] == ndim - 1 - d;
    }
    if (reversed && !same)
        *order = *order == 'C' ? 'F' : 'C';
    else if (!same)
        st = zr_fail(err, ZARR_ERR_UNSUPPORTED,
                     "Zarr v2 cannot express a transpose other than the reversal of all "
                     "dimensions");
out:
    return st;
}

/* Reads the array->array codecs: transposes become the order, the rest must be
 * filters. */
static zarr_status read_array_codecs(struct zr_array_meta *m,
                                     const struct zr_chain *chain, zarr_error *err)
{
    const struct zarr_codec_spec *a2b = &chain->codec[chain->a2b];
    bool filters = false;

    m->order = 'C';
    for (uint32_t i = 0; i < chain->a2b; i++) {
        if (!is_codec(&chain->codec[i], ZR_STRUCTURE_TRANSPOSE)) {
            filters = true;
            continue;
        }
        if (filters)
            return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                           "Zarr v2 cannot express a transpose after a filter");
        ZR_CHECK(reverse_order(&chain->codec[i], m->ndim, &m->order, err));
    }
    if (!is_codec(a2b, ZR_STRUCTURE_BYTES) && !zarr_dtype_variable(m->dtype) &&
        !(a2b->vt->flags & ZARR_CODEC_SPEC_NUMCODECS))
        return zr_fail(err, ZARR_ERR_UNSUPPORTED, "Zarr v2 cannot express codec \"%s\"",
                       zarr_codec_spec_name(a2b));
    m->byte_order = !zr_dtype_has_order(m->dtype)       ? (uint32_t)ZR_ORDER_NATIVE
                    : is_codec(a2b, ZR_STRUCTURE_BYTES) ? a2b->structure.stored.order
                                                        : (uint32_t)ZARR_ORDER_LITTLE;
    return ZARR_OK;
}

/* Returns the id of a codec in v2, or NULL if it has none. "numcodecs.delta" in v3 is the
 * filter "delta" in v2. */
static const char *v2_id(const struct zr_meta_env *env, const struct zarr_codec_spec *s)
{
    const char *name = zarr_codec_spec_name(s);

    if (!(s->vt->flags & ZARR_CODEC_SPEC_V3))
        return name;
    if (zr_starts_with(name, "numcodecs."))
        name += strlen("numcodecs.");
    return zr_codec_spec_lookup_v2(env->codecs, name) ? name : NULL;
}

/* Makes the last codec that gives bytes the compressor and all others filters. Codecs of
 * objects are always filters. */
static zarr_status read_back(struct zr_array_meta *m, const struct zr_meta_env *env,
                             const struct zr_chain *chain, struct zr_json_doc *doc,
                             zarr_error *err)
{
    struct zr_json *list = zr_chain_write(doc, chain, 2);
    struct zr_json *filters = zr_json_new(doc, ZR_JSON_ARRAY);
    struct zr_json *v = list ? list->u.children.first : NULL;

    m->filters = m->compressor = NULL;
    for (uint32_t i = 0; v && i < chain->n; i++, v = v->next) {
        const char *id;

        if ((i == chain->a2b && is_codec(&chain->codec[i], ZR_STRUCTURE_BYTES)) ||
            is_codec(&chain->codec[i], ZR_STRUCTURE_TRANSPOSE))
            continue;
        id = v2_id(env, &chain->codec[i]);
        if (!id)
            return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                           "Zarr v2 cannot express codec \"%s\"",
                           zarr_codec_spec_name(&chain->codec[i]));
        zr_json_set(doc, v, "id", zr_json_new_text(doc, id));
        if (i + 1 == chain->n &&
            (i > chain->a2b || (i == chain->a2b && !zarr_dtype_variable(m->dtype))))
            m->compressor = v;
        else
            zr_json_append(doc, filters, zr_json_copy(doc, v));
    }
    if (zr_json_count(filters) > 0)
        m->filters = filters;
    return zr_meta_doc_status(doc, err);
}

zarr_status zr_array_meta_codecs_v2(const struct zr_array_meta *m,
                                    const struct zr_meta_env *env,
                                    const struct zr_chain *chain, struct zr_json_doc *doc,
                                    struct zr_v2_codecs *out, zarr_error *err)
{
    struct zr_array_meta fields = *m; /* a shallow copy: not to be freed */

    ZR_CHECK(zr_chain_has_form(chain, 2, err));
    ZR_CHECK(read_array_codecs(&fields, chain, err));
    ZR_CHECK(read_back(&fields, env, chain, doc, err));
    *out = (struct zr_v2_codecs){.filters = fields.filters,
                                 .compressor = fields.compressor,
                                 .byte_order = fields.byte_order,
                                 .order = fields.order};
    return ZARR_OK;
}

static zarr_status make_v2(struct zr_array_meta *fields, const struct zr_meta_env *env,
                           struct zr_json_doc *doc, struct zr_json **root,
                           zarr_error *err)
{
    if (!fields->grid.regular)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "Zarr v2 cannot express chunk grid \"%s\"",
                       zr_grid_name(&fields->grid));
    if (!zr_streq(fields->keys.vt->name, "v2"))
        return zr_fail(
            err, ZARR_ERR_UNSUPPORTED,
            "Zarr v2 cannot express chunk key encoding \"%s\": its chunks have "
            "other names there",
            fields->keys.vt->name);
    ZR_CHECK(read_array_codecs(fields, fields->chain, err));
    ZR_CHECK(read_back(fields, env, fields->chain, doc, err));
    ZR_CHECK(zr_array_v2_write(fields, doc, root, err));
    zr_meta_carry(doc, *root, fields->document, true);
    return ZARR_OK;
}

/* v2 cannot leave out the name of one dimension, only all names. */
static zarr_status check_names(const struct zr_array_meta *in, bool *named,
                               zarr_error *err)
{
    int32_t n = 0, none = -1;

    for (int32_t d = 0; in->dimension_names && d < in->ndim; d++) {
        if (in->dimension_names[d])
            n++;
        else
            none = d;
    }
    *named = n > 0;
    if (n > 0 && n < in->ndim)
        return zr_fail(
            err, ZARR_ERR_UNSUPPORTED,
            "dimension_names[%" PRId32 "] is null: the names are the attribute "
            "\"" ZR_DIMENSIONS_ATTRIBUTE "\" in Zarr v2, which cannot express null",
            none);
    return ZARR_OK;
}

/* Makes .zattrs: the attributes and the dimension names. For xarray, the empty list of
 * names makes a scalar a variable; v3 says the same without names. */
static zarr_status v2_attributes(const struct zr_array_meta *in, struct zr_json_doc *doc,
                                 struct zr_json **out, zarr_error *err)
{
    const struct zr_json *attribute =
        zr_json_get(in->attributes, ZR_DIMENSIONS_ATTRIBUTE);
    struct zr_json *names = NULL;
    bool named = false;

    *out = in->attributes ? zr_json_copy(doc, in->attributes)
                          : zr_json_new(doc, ZR_JSON_OBJECT);
    ZR_CHECK(check_names(in, &named, err));
    if (!named && (in->ndim > 0 || attribute))
        return ZARR_OK;
    names = zr_json_new(doc, ZR_JSON_ARRAY);
    for (int32_t d = 0; d < in->ndim; d++)
        zr_json_append(doc, names, zr_json_new_text(doc, in->dimension_names[d]));
    ZR_CHECK(zr_meta_doc_status(doc, err));
    if (attribute && !zr_json_equal(attribute, names))
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "attributes: \"" ZR_DIMENSIONS_ATTRIBUTE
                       "\" differs from dimension_names, and Zarr v2 has one place for "
                       "both");
    zr_json_set(doc, *out, ZR_DIMENSIONS_ATTRIBUTE, names);
    return ZARR_OK;
}

/* ---- both ------------------------------------------------------------------- */

/* The array was valid before, so whatever reading refuses now cannot be expressed in the
 * other format. */
static zarr_status read_made(struct zr_array_meta *out, const struct zr_meta_env *env,
                             int format, const struct zr_json *root,
                             const struct zr_json *attributes, zarr_error *err)
{
    struct zr_meta_env strict = *env;
    zarr_status st = ZARR_OK;

    strict.stored = false; /* the document is new */
    st = zr_array_meta_parse(out, &strict, format, root, attributes, err);

    if (st == ZARR_ERR_CORRUPT || st == ZARR_ERR_INVALID)
        return zr_prefix(err, ZARR_ERR_UNSUPPORTED, "as Zarr v%d", format);
    return st;
}

/* Compares the fill values bit by bit, in the form that v3 can express: readers see them
 * in chunks that were never stored. */
static zarr_status check_fill(const struct zr_array_meta *out,
                              const struct zr_array_meta *in, zarr_error *err)
{
    const uint64_t bytes = zarr_dtype_item_bytes(in->dtype);
    struct zr_json *was = NULL, *is = NULL;
    struct zr_json_doc doc;
    struct zr_str text[2];
    zarr_status st = ZARR_OK;

    if (!in->fill_defined) /* null in v2 has no value to keep */
        return ZARR_OK;
    if (!zarr_dtype_variable(in->dtype) && zarr_dtype_item_bytes(out->dtype) == bytes &&
        memcmp(in->fill, out->fill, (size_t)bytes) == 0)
        return ZARR_OK;
    zr_json_doc_init(&doc, in->alloc);
    zr_str_init(&text[0], in->alloc);
    zr_str_init(&text[1], in->alloc);
    ZR_TRY(zr_dtype_fill_write(in->dtype, in->fill, 3, &doc, &was, err));
    ZR_TRY(zr_dtype_fill_write(out->dtype, out->fill, 3, &doc, &is, err));
    if (zarr_dtype_variable(in->dtype) && zr_json_equal(was, is))
        goto out;
    zr_json_write(was, 0, &text[0]);
    zr_json_write(is, 0, &text[1]);
    ZR_TRY(zr_str_status(&text[0], err));
    ZR_TRY(zr_str_status(&text[1], err));
    ZR_FAIL(err, ZARR_ERR_UNSUPPORTED,
            "fill_value: Zarr v%" PRId32 " cannot express %.80s, it would become %.80s",
            out->format, zr_str_text(&text[0]), zr_str_text(&text[1]));
out:
    zr_str_deinit(&text[1]);
    zr_str_deinit(&text[0]);
    zr_json_doc_deinit(&doc);
    return st;
}

/* The message names the codec that stores elements of the data type in v3. */
zarr_status zr_array_meta_check_v3(const struct zr_array_meta *m,
                                   const struct zr_codec_registry *codecs,
                                   zarr_error *err)
{
    const char *other = zarr_dtype_codec(m->dtype);
    const struct zarr_codec_spec *s = &m->chain->codec[m->chain->a2b];
    const char *name = zarr_codec_spec_name(s);

    if (!(s->vt->flags & ZARR_CODEC_SPEC_V2) || zr_codec_spec_lookup(codecs, name))
        return ZARR_OK;
    if (!other || !zr_codec_spec_lookup(codecs, other))
        return zr_fail(err, ZARR_ERR_UNSUPPORTED, "Zarr v3 has no codec \"%s\"", name);
    return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                   "Zarr v3 has no codec \"%s\": the array must be re-encoded with "
                   "another one, such as \"%s\"",
                   name, other);
}

static zarr_status to_v3(struct zr_array_meta *out, const struct zr_meta_env *env,
                         const struct zr_array_meta *in, struct zr_json_doc *doc,
                         zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct zr_meta_env same = *env;
    struct zr_array_meta again = {0};
    struct zr_key_encoding said = {0};
    struct zr_json *root = NULL;

    /* Parses a separate chain, because v3 requires what v2 leaves open (blosc's
     * typesize). */
    same.nczarr = in->nczarr;
    ZR_TRY(zr_array_meta_parse(&again, &same, in->format, in->document, in->attributes,
                               err));
    if (again.byte_order == ZR_ORDER_MIXED)
        ZR_TRY(
            zr_fail(err, ZARR_ERR_UNSUPPORTED,
                    "Zarr v3 cannot express a struct whose fields differ in byte order: "
                    "its chunks must be written anew"));
    ZR_TRY(zr_array_meta_check_v3(&again, env->codecs, err));
    ZR_TRY(zr_array_meta_complete(&again, err));
    ZR_TRY(zr_chain_has_form(again.chain, 3, err));
    said = again.keys;
    again.keys = in->keys; /* the caller may have found the separator from the chunks */
    st = zr_array_v3_write(&again, doc, &root, err);
    again.keys = said;
    if (st != ZARR_OK)
        goto out;
    if (in->format == 2 && again.dimension_names)
        zr_json_remove(zr_json_get(root, "attributes"), ZR_DIMENSIONS_ATTRIBUTE);
    if (in->format == 2 && in->ndim == 0)
        zr_json_remove(root, "dimension_names"); /* an empty list has no meaning in v3 */
    ZR_TRY(read_made(out, env, 3, root, NULL, err));
    ZR_TRY(check_fill(out, in, err));
out:
    zr_array_meta_deinit(&again);
    return st;
}

static zarr_status to_v2(struct zr_array_meta *out, const struct zr_meta_env *env,
                         const struct zr_array_meta *in, struct zr_json_doc *doc,
                         zarr_error *err)
{
    struct zr_array_meta fields = *in; /* a shallow copy: not to be freed */
    struct zr_json *root = NULL, *attributes = NULL;

    if (in->format == 2) {
        ZR_CHECK(zr_array_v2_write(in, doc, &root, err));
        attributes = in->attributes ? zr_json_copy(doc, in->attributes) : NULL;
    } else {
        ZR_CHECK(make_v2(&fields, env, doc, &root, err));
        ZR_CHECK(v2_attributes(in, doc, &attributes, err));
    }
    ZR_CHECK(zr_meta_doc_status(doc, err));
    ZR_CHECK(read_made(out, env, 2, root, attributes, err));
    return check_fill(out, in, err);
}

zarr_status zr_array_meta_convert(struct zr_array_meta *out,
                                  const struct zr_meta_env *env,
                                  const struct zr_array_meta *in, int to_format,
                                  zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct zr_json_doc doc;

    *out = (struct zr_array_meta){0};
    zr_json_doc_init(&doc, env->alloc);
    if (to_format == 3)
        ZR_TRY(to_v3(out, env, in, &doc, err));
    else
        ZR_TRY(to_v2(out, env, in, &doc, err));
    out->own = doc; /* moved */
    zr_json_doc_init(&doc, env->alloc);
out:
    if (st != ZARR_OK)
        zr_array_meta_deinit(out); /* it was read, but its fill value differs */
    zr_json_doc_deinit(&doc);
    return st;
}
