/*
 * meta/write.c - writes canonical documents, strict and complete, with members in
 * zarr-python 3's order: codecs, grid and key encoding as objects with their
 * configuration, data types without parameters as plain strings, explicit separators.
 * Unknown members that were read are written back after the known ones. v2 keeps filters
 * and compressor as they were spelled, except in new arrays.
 * Thread class: solo in the document written, frozen in the metadata.
 */
#include "meta_int.h"

zarr_status zr_meta_doc_status(const struct zr_json_doc *doc, zarr_error *err)
{
    return zr_json_is_ok(doc) ? ZARR_OK : zr_fail_memory(err, doc->arena.used_bytes);
}

static struct zr_json *new_sizes(struct zr_json_doc *doc, const uint64_t *v, int32_t n)
{
    struct zr_json *list = zr_json_new(doc, ZR_JSON_ARRAY);

    for (int32_t d = 0; d < n; d++)
        zr_json_append(doc, list, zr_json_new_u64(doc, v[d]));
    return list;
}

/* Makes {"name": name, "configuration": text}; *out belongs to doc. */
static zarr_status new_extension(struct zr_json_doc *doc, const char *name,
                                 const struct zr_str *text, struct zr_json **out,
                                 zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct zr_json_doc config;
    struct zr_json *v;

    zr_json_doc_init(&config, doc->arena.alloc);
    ZR_TRY(zr_json_parse(&config, zr_str_text(text), text->bytes, NULL, err));
    v = zr_json_new(doc, ZR_JSON_OBJECT);
    zr_json_add(doc, v, "name", 4, zr_json_new_text(doc, name));
    zr_json_add(doc, v, "configuration", 13, zr_json_copy(doc, config.root));
    *out = v;
out:
    zr_json_doc_deinit(&config);
    return st;
}

zarr_status zr_array_meta_grid(const struct zr_array_meta *m, struct zr_json_doc *doc,
                               struct zr_json **out, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct zr_str text;

    zr_str_init(&text, m->alloc);
    ZR_TRY(zr_grid_canonical(&m->grid, &text, err));
    ZR_TRY(new_extension(doc, zr_grid_name(&m->grid), &text, out, err));
out:
    zr_str_deinit(&text);
    return st;
}

static zarr_status new_keys(struct zr_json_doc *doc, const struct zr_array_meta *m,
                            struct zr_json **out, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct zr_str text;

    zr_str_init(&text, m->alloc);
    ZR_TRY(zr_key_encoding_canonical(&m->keys, &text, err));
    ZR_TRY(new_extension(doc, m->keys.vt->name, &text, out, err));
out:
    zr_str_deinit(&text);
    return st;
}

static struct zr_json *new_names(struct zr_json_doc *doc, const struct zr_array_meta *m)
{
    struct zr_json *list = zr_json_new(doc, ZR_JSON_ARRAY);

    for (int32_t d = 0; d < m->ndim; d++)
        zr_json_append(doc, list,
                       m->dimension_names[d]
                           ? zr_json_new_text(doc, m->dimension_names[d])
                           : zr_json_new(doc, ZR_JSON_NULL));
    return list;
}

static struct zr_json *copy_or_empty(struct zr_json_doc *doc,
                                     const struct zr_json *object)
{
    return object ? zr_json_copy(doc, object) : zr_json_new(doc, ZR_JSON_OBJECT);
}

void zr_meta_write_others(struct zr_json_doc *doc, struct zr_json *to,
                          const struct zr_json *from, const char *const *known)
{
    if (!zr_json_is(from, ZR_JSON_OBJECT))
        return;
    for (const struct zr_json *v = from->u.children.first; v; v = v->next)
        if (!zr_meta_is_known(v, known))
            zr_json_add(doc, to, v->key, v->key_bytes, zr_json_copy(doc, v));
}

static zarr_status no_name(const struct zr_array_meta *m, int format, zarr_error *err)
{
    const char *name = zarr_dtype_name(m->dtype);

    return zr_fail(err, ZARR_ERR_UNSUPPORTED, "data type %s has no form in Zarr v%d",
                   name ? name : zarr_dtype_v2(m->dtype), format);
}

zarr_status zr_array_v3_write(const struct zr_array_meta *m, struct zr_json_doc *doc,
                              struct zr_json **out, zarr_error *err)
{
    struct zr_json *o = zr_json_new(doc, ZR_JSON_OBJECT);
    struct zr_json *dtype = zr_dtype_write_v3(m->dtype, doc);
    struct zr_json *grid = NULL, *keys = NULL, *fill = NULL;

    if (!dtype && zr_json_is_ok(doc))
        ZR_CHECK(no_name(m, 3, err));
    ZR_CHECK(zr_array_meta_grid(m, doc, &grid, err));
    ZR_CHECK(new_keys(doc, m, &keys, err));
    ZR_CHECK(zr_dtype_fill_write(m->dtype, m->fill, 3, doc, &fill, err));
    zr_json_set(doc, o, "shape", new_sizes(doc, m->shape, m->ndim));
    zr_json_set(doc, o, "data_type", dtype);
    zr_json_set(doc, o, "chunk_grid", grid);
    zr_json_set(doc, o, "chunk_key_encoding", keys);
    zr_json_set(doc, o, "fill_value", fill);
    zr_json_set(doc, o, "codecs", zr_chain_write(doc, m->chain, 3));
    zr_json_set(doc, o, "attributes", copy_or_empty(doc, m->attributes));
    if (m->dimension_names)
        zr_json_set(doc, o, "dimension_names", new_names(doc, m));
    zr_json_set(doc, o, "zarr_format", zr_json_new_u64(doc, 3));
    zr_json_set(doc, o, "node_type", zr_json_new_text(doc, "array"));
    zr_json_set(doc, o, "storage_transformers", zr_json_new(doc, ZR_JSON_ARRAY));
    if (m->format == 3)
        zr_meta_write_others(doc, o, m->document, zr_array_v3_members);
    ZR_CHECK(zr_meta_doc_status(doc, err));
    *out = o;
    return ZARR_OK;
}

/* Finds the separator in what the key encoding wrote; v2 has only this key encoding. */
static zarr_status new_separator(struct zr_json_doc *doc, const struct zr_array_meta *m,
                                 struct zr_json **out, zarr_error *err)
{
    struct zr_json *keys = NULL;
    const char *separator = NULL;

    ZR_CHECK(new_keys(doc, m, &keys, err));
    separator =
        zr_json_string(zr_json_get(zr_json_get(keys, "configuration"), "separator"));
    *out = zr_json_new_text(doc, separator ? separator : ".");
    return ZARR_OK;
}

static struct zr_json *copy_or_null(struct zr_json_doc *doc, const struct zr_json *v)
{
    return v ? zr_json_copy(doc, v) : zr_json_new(doc, ZR_JSON_NULL);
}

zarr_status zr_array_v2_write(const struct zr_array_meta *m, struct zr_json_doc *doc,
                              struct zr_json **out, zarr_error *err)
{
    struct zr_json *o = zr_json_new(doc, ZR_JSON_OBJECT);
    const struct zr_order stored = zr_meta_order(m);
    struct zr_json *dtype = zr_dtype_write_v2(m->dtype, &stored, doc);
    struct zr_json *fill = NULL, *separator = NULL;
    const char order[2] = {m->order, '\0'};

    if (!dtype && zr_json_is_ok(doc))
        ZR_CHECK(no_name(m, 2, err));
    ZR_CHECK(zr_meta_fill_v2_write(m, doc, &fill, err));
    ZR_CHECK(new_separator(doc, m, &separator, err));
    zr_json_set(doc, o, "shape", new_sizes(doc, m->shape, m->ndim));
    zr_json_set(doc, o, "chunks", new_sizes(doc, m->grid.chunk_shape, m->ndim));
    zr_json_set(doc, o, "dtype", dtype);
    zr_json_set(doc, o, "fill_value", fill);
    zr_json_set(doc, o, "order", zr_json_new_text(doc, order));
    zr_json_set(doc, o, "filters", copy_or_null(doc, m->filters));
    zr_json_set(doc, o, "dimension_separator", separator);
    zr_json_set(doc, o, "compressor", copy_or_null(doc, m->compressor));
    zr_json_set(doc, o, "zarr_format", zr_json_new_u64(doc, 2));
    if (m->format == 2)
        zr_meta_write_others(doc, o, m->document, zr_array_v2_members);
    zr_meta_keep_tokens(o);
    ZR_CHECK(zr_meta_doc_status(doc, err));
    *out = o;
    return ZARR_OK;
}

zarr_status zr_array_meta_write(const struct zr_array_meta *m, struct zr_json_doc *doc,
                                struct zr_json **out, zarr_error *err)
{
    return m->format == 3 ? zr_array_v3_write(m, doc, out, err)
                          : zr_array_v2_write(m, doc, out, err);
}

/* Whether a codec is spelled as v2 writes it: it has the members of the canonical form
 * and no others, of the same values. blosc's shuffle -1 is the caller's choice, which the
 * canonical form of a new array replaces. Nested codecs may have the spelling of v3. */
static bool is_v2_spelling(const struct zarr_codec_spec *s, const struct zr_json *given,
                           const struct zr_json *canonical)
{
    if (s->n_sub > 0 || !zr_json_is(given, ZR_JSON_OBJECT) ||
        zr_json_count(given) != zr_json_count(canonical))
        return false;
    for (const struct zr_json *v = canonical->u.children.first; v; v = v->next)
        if (!zr_json_equal(zr_json_get(given, v->key), v))
            return false;
    return true;
}

/* A filter between arrays stays as it was given: the types that it names may differ from
 * the array's in their byte order. */
static struct zr_json *spell_v2(struct zr_json_doc *doc, const struct zarr_codec_spec *s,
                                const struct zr_json *given,
                                const struct zr_json *canonical, bool keep)
{
    const bool as_given = (s->vt->flags & ZARR_CODEC_SPEC_V3) ||
                          (keep && is_v2_spelling(s, given, canonical));

    return zr_json_copy(doc, as_given ? given : canonical);
}

/* keep: a codec that v2 spells so stays as it was given. */
static zarr_status meta_write_spelled(const struct zr_array_meta *m, bool keep,
                                      struct zr_json_doc *doc, struct zr_json **out,
                                      zarr_error *err)
{
    const struct zr_json *list = NULL, *v = NULL, *given = NULL;
    struct zr_json *filters = NULL;

    ZR_CHECK(zr_array_meta_write(m, doc, out, err));
    if (m->format == 3)
        return ZARR_OK;
    list = zr_chain_write(doc, m->chain, 2);
    filters = zr_json_new(doc, ZR_JSON_ARRAY);
    v = list ? list->u.children.first : NULL;
    for (uint32_t i = 0; v && i < m->chain->n; i++, v = v->next) {
        const struct zarr_codec_spec *s = &m->chain->codec[i];

        if (zr_streq(s->place.field, "filters")) {
            given = zr_json_at(m->filters, (size_t)s->place.at);
            zr_json_append(doc, filters, spell_v2(doc, s, given, v, keep));
        } else if (zr_streq(s->place.field, "compressor")) {
            zr_json_set(doc, *out, "compressor",
                        spell_v2(doc, s, m->compressor, v, keep));
        }
    }
    if (zr_json_count(filters) > 0)
        zr_json_set(doc, *out, "filters", filters);
    return zr_meta_doc_status(doc, err);
}

zarr_status zr_array_meta_write_new(const struct zr_array_meta *m,
                                    struct zr_json_doc *doc, struct zr_json **out,
                                    zarr_error *err)
{
    return meta_write_spelled(m, true, doc, out, err);
}

zarr_status zr_array_meta_write_canonical(const struct zr_array_meta *m,
                                          struct zr_json_doc *doc, struct zr_json **out,
                                          zarr_error *err)
{
    return meta_write_spelled(m, false, doc, out, err);
}

zarr_status zr_array_meta_codecs(const struct zr_array_meta *m, struct zr_json_doc *doc,
                                 struct zr_json **out, zarr_error *err)
{
    *out = zr_chain_show(doc, m->chain);
    return *out ? ZARR_OK : zr_fail_memory(err, doc->arena.used_bytes);
}
