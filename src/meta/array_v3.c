/*
 * meta/array_v3.c - reads an array's zarr.json. Real files have bare names at extension
 * points, null or [] for optional members, and unambiguous codecs of old drafts, so these
 * are accepted. An unknown member is an error unless it says that it may be ignored; then
 * it is kept and written back.
 * Thread class: plain functions.
 */
#include "meta_int.h"

const char *const zr_array_v3_members[] = {
    "zarr_format",
    "node_type",
    "shape",
    "data_type",
    "chunk_grid",
    "chunk_key_encoding",
    "fill_value",
    "codecs",
    "attributes",
    "dimension_names",
    "storage_transformers",
    "consolidated_metadata",
    NULL,
};

/* Refuses all of them, even those that need not be understood: without them the elements
 * may be wrong. */
static zarr_status read_transformers(const struct zr_json *v, zarr_error *err)
{
    const struct zr_json *first = zr_json_at(v, 0);
    const struct zr_json *config = NULL;
    const char *name = NULL;
    zarr_status st = ZARR_OK;

    if (!v || v->type == ZR_JSON_NULL || (v->type == ZR_JSON_ARRAY && !first))
        return ZARR_OK;
    if (!first)
        return zr_meta_refuse("storage_transformers", "a list", v, err);
    name = zr_json_string(zr_json_get(first, "name"));
    if (!name || *name == '\0')
        st = zr_meta_extension("storage_transformers[0]", first, &name, &config, err);
    if (st == ZARR_OK)
        st = zr_prefix(
            err, zr_fail_refused(err, zr_codec_refused, "storage transformer", name),
            "storage_transformers[0]");
    return st;
}

/* zarr-python 3.2.0 and 3.2.1 call a grid "regular" although it has lists of edges. */
static bool has_lists(const char *name, const struct zr_json *config)
{
    const struct zr_json *edges = zr_json_get(config, "chunk_shape");

    if (!zr_streq(name, "regular") || !zr_json_is(edges, ZR_JSON_ARRAY))
        return false;
    for (const struct zr_json *v = edges->u.children.first; v; v = v->next)
        if (v->type == ZR_JSON_ARRAY)
            return true;
    return false;
}

/* The configuration of the grid "rectilinear" with the edges of such a grid. */
static struct zr_json *rectilinear(struct zr_json_doc *doc, const struct zr_json *config)
{
    struct zr_json *out = zr_json_new(doc, ZR_JSON_OBJECT);

    zr_json_set(doc, out, "kind", zr_json_new_text(doc, "inline"));
    zr_json_set(doc, out, "chunk_shapes",
                zr_json_copy(doc, zr_json_get(config, "chunk_shape")));
    return out;
}

static zarr_status read_grid(struct zr_array_meta *m, const struct zr_meta_env *env,
                             const struct zr_json *v, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    const struct zr_json *config = NULL;
    const char *name = NULL;
    struct zr_json_doc doc;

    zr_json_doc_init(&doc, m->alloc);
    ZR_TRY(zr_meta_extension("chunk_grid", v, &name, &config, err));
    if (env->stored && has_lists(name, config)) {
        name = "rectilinear";
        config = rectilinear(&doc, config);
        ZR_TRY(zr_meta_doc_status(&doc, err));
    }
    st = zr_grid_parse(&m->grid, env->grids, m->ndim, m->shape, name, config, err);
    zr_prefix(err, st, "chunk_grid");
out:
    zr_json_doc_deinit(&doc);
    return st;
}

static zarr_status read_keys(struct zr_array_meta *m, const struct zr_meta_env *env,
                             const struct zr_json *v, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    const struct zr_json *config = NULL;
    const char *name = NULL;

    ZR_TRY(zr_meta_extension("chunk_key_encoding", v, &name, &config, err));
    st = zr_key_encoding_parse(&m->keys, env->grids, name, config, err);
    zr_prefix(err, st, "chunk_key_encoding");
out:
    return st;
}

static zarr_status read_names(struct zr_array_meta *m, const struct zr_meta_env *env,
                              const struct zr_json *v, zarr_error *err)
{
    uint32_t limit = env->limits ? env->limits->dimension_name_bytes : 0;
    int32_t d = 0;

    limit = limit ? limit : 64 << 10; /* zarrc/limits.h */
    if (!v || v->type == ZR_JSON_NULL)
        return ZARR_OK;
    if (v->type != ZR_JSON_ARRAY || zr_json_count(v) != (size_t)m->ndim)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "dimension_names must be a list of %" PRId32
                       " names or nulls, not %s of %zu",
                       m->ndim, zr_json_type_text(v), zr_json_count(v));
    ZR_CHECK(zr_meta_names_alloc(m, err));
    for (const struct zr_json *name = v->u.children.first; name; name = name->next, d++) {
        if (name->type == ZR_JSON_NULL)
            continue;
        m->dimension_names[d] = zr_json_string(name);
        if (!m->dimension_names[d])
            ZR_CHECK(
                zr_meta_refuse("dimension_names", "a list of names or nulls", name, err));
        if (name->u.text.bytes > limit)
            return zr_fail_limit(err, "dimension_name_bytes", limit,
                                 "dimension_names[%" PRId32 "] has %zu bytes", d,
                                 name->u.text.bytes);
    }
    return ZARR_OK;
}

/* The data types whose fill value null is zero: GDAL writes null for numbers, and
 * zarr-python reads it as false. */
static bool null_is_zero(const zarr_dtype *dtype)
{
    const uint32_t kind = zarr_dtype_kind(dtype);

    return kind == ZARR_KIND_BOOL || kind == ZARR_KIND_INT || kind == ZARR_KIND_UINT ||
           kind == ZARR_KIND_FLOAT || kind == ZARR_KIND_COMPLEX;
}

static zarr_status read_fill(struct zr_array_meta *m, const struct zr_meta_env *env,
                             const struct zr_json *v, zarr_error *err)
{
    if (!v)
        return zr_fail(err, ZARR_ERR_INVALID, "fill_value is missing");
    /* null is a value of the type `optional` only */
    m->fill_null = v->type == ZR_JSON_NULL && env->stored && null_is_zero(m->dtype);
    return zr_meta_fill(m, env, m->fill_null ? NULL : v, err);
}

/* The predecessor of `struct`, which can express less. */
static bool is_structured(const struct zr_json *dtype)
{
    return zr_json_is_text(zr_json_get(dtype, "name"), "structured");
}

zarr_status zr_array_v3_parse(struct zr_array_meta *m, const struct zr_meta_env *env,
                              zarr_error *err)
{
    zarr_status st = ZARR_OK;
    const struct zr_json *root = m->document;
    const struct zr_json *type = zr_json_get(root, "node_type");
    const struct zr_json *dtype = zr_json_get(root, "data_type");
    zarr_limits limits;
    const struct zr_chain_parse_options chain = {.format = 3,
                                                 .limits = &limits,
                                                 .allow_missing_bytes = true,
                                                 .stored = env->stored};

    m->order = 'C';
    if (!zr_json_is_text(type, "array"))
        ZR_TRY(zr_meta_refuse("node_type", "\"array\"", type, err));
    ZR_TRY(zr_meta_check_members(root, zr_array_v3_members, err));
    ZR_TRY(read_transformers(zr_json_get(root, "storage_transformers"), err));
    ZR_TRY(zr_meta_shape(m, zr_json_get(root, "shape"), env, err));
    st = zr_dtype_from_v3(env->dtypes, dtype, &m->dtype, err);
    if (st != ZARR_OK) {
        zr_prefix(err, st, "data_type");
        goto out;
    }
    ZR_TRY(read_grid(m, env, zr_json_get(root, "chunk_grid"), err));
    ZR_TRY(read_keys(m, env, zr_json_get(root, "chunk_key_encoding"), err));
    ZR_TRY(read_fill(m, env, zr_json_get(root, "fill_value"), err));
    zr_chunk_limits(&limits, env->limits, m->dtype);
    ZR_TRY(zr_chain_parse(&m->chain, env->codecs, zr_json_get(root, "codecs"), &chain,
                          m->alloc, err));
    if (is_structured(dtype))
        ZR_TRY(zr_chain_complete_order(m->chain, m->dtype, err));
    ZR_TRY(read_names(m, env, zr_json_get(root, "dimension_names"), err));
    ZR_TRY(zr_meta_attributes(zr_json_get(root, "attributes"), &m->attributes, err));
out:
    return st;
}
